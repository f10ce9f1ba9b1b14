//! What no payload is made of: each refusal by its code, and with the name of what it is about.

mod common;

use common::{Set, refused};
use payload::PayloadCode::{self, *};
use payload::{Table, sealed};

/// The set after a change of one of its texts is refused with this code, and the message has
/// these words.
fn refuses(change: impl Fn(&mut Set), code: PayloadCode, words: &[&str]) {
    let mut set = Set::new();
    set.build().expect("a payload of the set as it is");
    change(&mut set);
    let (found, why) = refused(set.build());
    assert_eq!(found, Some(code), "{why}");
    for word in words {
        assert!(why.contains(word), "`{word}` in: {why}");
    }
    assert!(why.contains(';'), "what to do: {why}");
}

/// One place of a text is replaced.
fn swap(text: &mut String, old: &str, new: &str) {
    assert!(text.contains(old), "`{old}`");
    *text = text.replacen(old, new, 1);
}

/// The same of an instruction of the runtime's hook.
fn in_hook(new: &str) -> impl Fn(&mut Set) {
    move |set| swap(&mut set.runtime, "call    printk", new)
}

#[test]
fn tables() {
    let lines = [
        ("twin-xen-table 2", "twin-xen-table 1", "first line"),
        (
            "value domain_refcnt 0x220",
            "value domain_refcnt 0x22g",
            "line 5",
        ),
        (
            "value domain_refcnt 0x220",
            "value domain_refcnt 1\nvalue domain_refcnt 2",
            "line 6",
        ),
        (
            "head evtchn_send 8b87dc000000",
            "head evtchn_send 8b8",
            "line 7",
        ),
        (
            "init 0xffff82d040400000 0xffff82d040500000",
            "init 2 1",
            "line 6",
        ),
        ("init 0xffff82d040400000 0xffff82d040500000", "", "init"),
        (
            "build-id 000102030405060708090a0b0c0d0e0f10111213",
            "build-id 0001",
            "line 4",
        ),
        (
            "build-id 000102030405060708090a0b0c0d0e0f10111213",
            "",
            "build-id",
        ),
        (
            "symbol 0xffff82d040200000 T printk",
            "symbol printk",
            "line 8",
        ),
        (
            "value domain_refcnt 0x220",
            "value domain_refcnt +5",
            "line 5",
        ),
        (
            "value domain_refcnt 0x220",
            "value domain_refcnt 0x+5",
            "line 5",
        ),
    ];
    for (old, new, word) in lines {
        refuses(
            |set| swap(&mut set.table, old, new),
            PayloadCode::Table,
            &[word],
        );
    }
}

/// A digit is an address inside Xen.
#[test]
fn a_table_that_was_changed_is_refused() {
    let table = sealed(&Set::new().table);
    Table::parse(&table).expect("the table");
    let refused = |text: &str, words: &str| {
        let refusal = Table::parse(text).expect_err(words);
        assert_eq!(refusal.code, PayloadCode::Table);
        assert!(refusal.why.contains(words), "{}", refusal.why);
    };
    refused(&table.replace("refcnt 0x220", "refcnt 0x228"), "digest");
    refused(&table.replace("T memcpy\n", "T memcpy\n\n"), "digest");
    refused(&Set::new().table, "no line `sha256`");
    refused(&format!("{table}# more\n"), "is not understood");
}

#[test]
fn another_build() {
    let set = Set::new();
    let table = Table::parse(&sealed(&set.table)).expect("the table");
    assert!(
        table
            .is_of("000102030405060708090A0B0C0D0E0F10111213\n")
            .is_ok()
    );
    for other in ["ff0102030405060708090a0b0c0d0e0f10111213", "0001", ""] {
        let refusal = table.is_of(other).expect_err(other);
        assert_eq!(refusal.code, BuildId);
        assert!(
            refusal.why.contains("4.17.0 of the tests"),
            "{}",
            refusal.why
        );
    }
}

#[test]
fn what_the_table_does_not_have() {
    let gone = |line: &'static str| move |set: &mut Set| swap(&mut set.table, line, "");
    refuses(
        gone("value domain_refcnt 0x220"),
        NoValue,
        &["domain_refcnt"],
    );
    refuses(
        gone("head evtchn_send 8b87dc000000"),
        Replace,
        &["evtchn_send", "head"],
    );
    // The jump is no short one, or leads into what is overwritten.
    for jump in ["e906", "0f84", "74", "7406ff"] {
        let odd = format!("4885f690 {jump}");
        refuses(
            |set| swap(&mut set.table, "8b87dc000000", &odd),
            PayloadCode::Table,
            &["head evtchn_send", "not understood"],
        );
    }
    refuses(
        |set| swap(&mut set.table, "8b87dc000000", "4885f6 74fe"),
        Replace,
        &["evtchn_send", "overwritten"],
    );
    refuses(
        |set| swap(&mut set.table, "8b87dc000000", "8b87dc00"),
        Replace,
        &["evtchn_send", "5 to 31"],
    );
    refuses(
        |set| {
            swap(
                &mut set.table,
                "0xffff82d040201100 T memcpy",
                "0xffff82d040201004 T memcpy",
            )
        },
        Replace,
        &["longer than the function"],
    );
}

#[test]
fn dom0_texts() {
    refuses(
        |set| set.kallsyms.push_str("what is this"),
        Dom0,
        &["line 8", "what is this"],
    );
    refuses(
        |set| set.kallsyms = "0000000000000000 T kfree\n".into(),
        Dom0,
        &["as root", "kptr_restrict"],
    );
    refuses(
        |set| swap(&mut set.kallsyms, "ffffffff81a00000", "+fffffff81a00000"),
        Dom0,
        &["+fffffff81a00000"],
    );
    refuses(
        |set| swap(&mut set.kallsyms, "ffffffff81a00000", "0000000000000000"),
        NoAddress,
        &["`kfree`", "zero"],
    );
    let without = |section: &'static str| {
        move |set: &mut Set| {
            set.sections.remove(&("e1000".into(), section.into()));
        }
    };
    refuses(without(".rodata"), NoAddress, &[".rodata", "e1000"]);
    refuses(without(".text"), NoAddress, &[".text", "e1000"]);
    let unknown = |set: &mut Set| swap(&mut set.kallsyms, "D jiffies", "D jiffies_64");
    refuses(unknown, NoAddress, &["`jiffies`"]);
    refuses(
        |set| swap(&mut set.kallsyms, "T kfree", "T kfree_rcu"),
        NoAddress,
        &["`kfree`"],
    );
    let several = |set: &mut Set| set.kallsyms.push_str("ffffffff82700000 D jiffies\n");
    refuses(
        several,
        NoAddress,
        &["`jiffies`", "0xffffffff82600000", "0xffffffff82700000"],
    );
}

/// What is missing may be the rest of a name, or that a symbol is a module's.
#[test]
fn texts_that_are_cut_off() {
    let cut = |text: &mut String| text.truncate(text.trim_end().len());
    refuses(|set| cut(&mut set.kallsyms), Dom0, &["cut off"]);
    refuses(|set| cut(&mut set.table), PayloadCode::Table, &["cut off"]);
}

#[test]
fn a_static_symbol_and_a_module_are_passed_over() {
    let mut set = Set::new();
    let expected = set.build().expect("a payload").bytes;
    set.kallsyms
        .push_str("ffffffff82700000 d jiffies\nffffffffc0000000 D jiffies\t[other]\n");
    assert!(set.build().expect("a payload").bytes == expected);
}

#[test]
fn addresses_that_do_not_fit() {
    let at = |section: &'static str, to: u64| {
        move |set: &mut Set| {
            set.sections.insert(("e1000".into(), section.into()), to);
        }
    };
    refuses(
        at(".rodata", 0x1234_5678_9000),
        Overflow,
        &["twin_vm:.rodata", "0x123456789000"],
    );
    refuses(
        at(".rodata", 0xffff_ffff_7fff_ffff),
        Overflow,
        &["twin_vm:.rodata"],
    );
    refuses(
        |set| {
            swap(
                &mut set.kallsyms,
                "ffffffff82600000 D jiffies",
                "ffff888000000000 D jiffies",
            )
        },
        Overflow,
        &["twin_vm:jiffies", ".text+"],
    );
    // movabs has 64 bits.
    let mut set = Set::new();
    at(".data", 0xffff_8880_0000_0000)(&mut set);
    assert!(set.build().is_ok());
}

#[test]
fn rewritten_code() {
    let stlb = |set: &mut Set| {
        *set = Set::new();
        swap(&mut set.driver, ", 3, 64, 0, 0, 1", ", 1, 64, 0, 0, 0");
        let from = set.driver.find("probe:").expect("code");
        let to = set
            .driver
            .find(".section .twin.codemap")
            .expect("the codemap");
        set.driver
            .replace_range(from..to, "probe: ret\n.size probe, . - probe\n");
        swap(&mut set.driver, ".quad   \"twin_vm:.text\"+0x200, poll", "");
        swap(
            &mut set.driver,
            ".quad   \"twin_vm:.init.text\"+0x10, init_module",
            "",
        );
        set.hot = None;
        swap(&mut set.runtime, "call    twin_function_hot_poll", "");
    };
    refuses(stlb, Scheme, &["stlb", "--scheme window"]);
    let other = |set: &mut Set| {
        let hot = set.hot.as_mut().expect("hot routines");
        swap(hot, ", 3, 64, 0, 0, 1", ", 2, 64, 0, 0, 0");
        *hot = hot.replace("mov     %gs:\"twin_vm:hot_state\", %rax", "");
        *hot = hot.replace("mov     %gs:\"twin_vm:.data\", %rax", "");
    };
    refuses(other, Scheme, &["window32", "`window`"]);
    let vectors = |set: &mut Set| {
        swap(
            &mut set.driver,
            "pop     %rbx",
            "pxor %xmm0, %xmm0\npop %rbx",
        )
    };
    refuses(vectors, Vectors, &["vector registers"]);
    let wide = |set: &mut Set| {
        let section = ".section .text.unlikely,\"ax\",@progbits";
        swap(
            &mut set.driver,
            section,
            &format!("{section}\n.balign 8192"),
        );
    };
    refuses(wide, Section, &[".text.unlikely", "more than a page"]);
    let start = |set: &mut Set| swap(&mut set.driver, "call    kfree", "call init_module");
    refuses(start, Section, &[".init.text", "left out"]);
    let mut set = Set::new();
    swap(&mut set.driver, "%gs:8(%rax)", "8(%rax)");
    assert_eq!(refused(set.build()), (None, "P1-operand".into()));
}

#[test]
fn names_that_nobody_has() {
    refuses(
        in_hook("call no_such_function"),
        Undefined,
        &["no_such_function"],
    );
    refuses(
        in_hook("call twin_no_such_part"),
        Undefined,
        &["twin_no_such_part", "runtime"],
    );
    refuses(in_hook("call twin_function_none"), Undefined, &["`none`"]);
    refuses(
        in_hook("mov twin_value_none(%rip), %eax"),
        NoValue,
        &["none"],
    );
    refuses(
        in_hook("mov twin_dom0_none(%rip), %eax"),
        NoAddress,
        &["`none`"],
    );
    refuses(
        in_hook("call twin_original_printk"),
        Replace,
        &["printk", "head"],
    );
    let hidden = |set: &mut Set| {
        swap(&mut set.runtime, ".globl  twin_stlb_call,", ".globl ");
    };
    refuses(hidden, Undefined, &["twin_stlb_call", ".text+"]);
    let no_entry = |set: &mut Set| swap(&mut set.runtime, "twin_import_entry, ", "");
    refuses(no_entry, Undefined, &["twin_import_entry", "runtime/core"]);
}

#[test]
fn names_that_bind_by_accident() {
    // What Xen frees after its start, though its loader still resolves it.
    refuses(
        in_hook("call request_irq"),
        Init,
        &["request_irq", "0xffff82d040400010"],
    );
    refuses(
        in_hook("call init_one"),
        Ambiguous,
        &["one.c#init_one", "two.c#init_one"],
    );
    let twice = |set: &mut Set| set.table.push_str("symbol 0xffff82d040209999 T printk\n");
    refuses(twice, Ambiguous, &["printk"]);
    let defined = |set: &mut Set| swap(&mut set.table, "T memcpy", "T twin_import_entry");
    refuses(defined, Ambiguous, &["twin_import_entry", "Xen's"]);
    let both = |set: &mut Set| {
        let poll = "poll:   pext";
        swap(
            &mut set.driver,
            "        .type   poll,@function",
            ".type hot_poll,@function",
        );
        swap(&mut set.driver, poll, "hot_poll: poll: pext");
    };
    refuses(both, Undefined, &["hot_poll", "several times"]);
    // `memcpy`, which Xen has as well, is a stub's.
    let payload = Set::new().build().expect("a payload");
    assert_eq!(payload.imports, ["kfree", "memcpy"]);
}

#[test]
fn relocations_of_the_runtime() {
    for (line, name) in [
        ("mov $load, %eax", "R_X86_64_32 "),
        ("mov $load, %rax", "R_X86_64_32S"),
        ("mov printk@GOTPCREL(%rip), %rax", "R_X86_64_GOTPCREL"),
        ("movabs $printk-., %rax", "R_X86_64_PC64"),
    ] {
        refuses(in_hook(line), Relocation, &[name, ".text+", "-fpic"]);
    }
}

#[test]
fn what_rewritten_code_relies_on() {
    let mask = |new: &'static str| {
        move |set: &mut Set| swap(&mut set.runtime, ".quad   0x3ffffffffff", new)
    };
    let words = ["`twin_window_mask`", "2^42 - 1"];
    refuses(mask(".quad 0x3fffffffffe"), Section, &words);
    refuses(mask(".quad printk"), Section, &words);
    let writable = |set: &mut Set| {
        swap(
            &mut set.runtime,
            ".section .rodata,\"a\"",
            ".section .data.mask,\"aw\"",
        );
    };
    refuses(writable, Section, &words);
    refuses(
        in_hook("lea twin_function_hot_poll+2(%rip), %rax"),
        Relocation,
        &["start", ".text+"],
    );
}

#[test]
fn sections_of_the_runtime() {
    let with = |text: &'static str| move |set: &mut Set| set.runtime.push_str(text);
    let cases = [
        (
            ".section .wx,\"awx\"\nret\n",
            ".wx",
            "writable and executable",
        ),
        (
            ".section .altinstructions,\"a\"\n.long 0\n",
            ".altinstructions",
            "no such section",
        ),
        (
            ".section .modinfo,\"a\"\n.long 0\n",
            ".modinfo",
            "no such section",
        ),
        (
            ".section .livepatch.funcs,\"aw\"\n.skip 104\n",
            ".livepatch.funcs",
            "no such section",
        ),
        (
            ".section .livepatch.hooks.applied,\"a\"\n.quad load\n",
            "applied",
            "no such hook",
        ),
        (
            ".section .livepatch.hooks.apply,\"a\"\n.quad load, load\n",
            "apply",
            "one function",
        ),
        (
            ".section .text.twin.stubs,\"ax\"\nret\n",
            ".text.twin.stubs",
            "another",
        ),
        (
            ".data\n.balign 8192\n.quad 1\n",
            ".data",
            "more than a page",
        ),
        (".comm shared, 8\n", "shared", "-fno-common"),
        // Xen would call it.
        (
            ".section .livepatch.hooks.unload,\"a\"\n.quad 0\n",
            "unload",
            "address of a function",
        ),
        (
            ".section .livepatch.hooks.unload,\"a\"\n.quad load, load+1\n",
            "unload",
            "address of a function",
        ),
        (
            ".section .livepatch.hooks.unload,\"a\"\n.quad printk\n",
            "unload",
            "address of a function",
        ),
        // The loader would pass over it.
        (
            ".section .livepatch.hooks.load,\"a\",@progbits,unique,1\n.quad load\n",
            ".livepatch.hooks.load",
            "twice",
        ),
        (
            ".section .twin.replace,\"aw\",@progbits,unique,1\n.quad name, send\n",
            ".twin.replace",
            "twice",
        ),
        (
            ".globl twin_bug2\n.set twin_bug2, load\n.section .note.x,\"a\"\ngone: .quad 1\n.text\nlea gone(%rip),%rax\n",
            ".note.x",
            "not part",
        ),
    ];
    for (text, name, word) in cases {
        refuses(with(text), Section, &[name, word]);
    }
}

#[test]
fn functions_to_replace() {
    let rows =
        |row: &'static str| move |set: &mut Set| swap(&mut set.runtime, ".quad   name, send", row);
    refuses(rows(".quad name"), Replace, &["two addresses"]);
    refuses(rows(".quad 1, send"), Replace, &["two addresses"]);
    refuses(rows(".quad name, name"), Replace, &["row 0", "no function"]);
    refuses(
        rows(".quad name, send+1"),
        Replace,
        &["row 0", "no function"],
    );
    // Xen would take its two jumps back in the wrong order, and keep one.
    let twice = ["row 1", "another row"];
    refuses(rows(".quad name, send, name, load"), Replace, &twice);
    let alias = |set: &mut Set| {
        set.table
            .push_str("symbol 0xffff82d040201000 T alias\nhead alias 8b87dc000000\n");
        rows(".quad name, send, name2, load")(set);
        set.runtime
            .push_str(".section .rodata\nname2: .asciz \"alias\"\n");
    };
    refuses(alias, Replace, &twice);
    let other = |set: &mut Set| {
        swap(
            &mut set.runtime,
            ".asciz  \"evtchn_send\"",
            ".asciz \"nothing\"",
        )
    };
    refuses(other, Undefined, &["nothing"]);
}

#[test]
fn limits() {
    let with = |text: String| move |set: &mut Set| set.runtime.push_str(&text);
    refuses(
        with(".data\n.skip 0x200000, 1\n".into()),
        Limit,
        &["2097152", "bytes"],
    );
    refuses(
        with(".bss\n.skip 0x200000\n".into()),
        Limit,
        &[".bss", "2097152"],
    );
    let many: String = (0..1000)
        .map(|n| format!(".section .text.f{n},\"ax\"\nret\n"))
        .collect();
    refuses(with(many), Limit, &["sections", "1024"]);
    let name = "x".repeat(128);
    refuses(
        with(format!(".text\n{name}: ret\n")),
        Limit,
        &[&name, "127"],
    );
}

#[test]
fn two_addresses_of_dom0_are_one() {
    let same = |set: &mut Set| {
        set.sections
            .insert(("twin_hot".into(), ".text".into()), 0xffff_ffff_c040_00e0);
    };
    refuses(same, Ambiguous, &["0xffffffffc0400100", "overlap"]);
}
