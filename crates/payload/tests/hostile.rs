//! Crafted content of driver and hot routines, which nobody trusts: names, sizes, places, sections.
//! Each is refused, or gives a payload in which it means nothing but what it is.

mod common;

use common::Set;
use payload::PayloadCode::{self, *};
use payload::{Part, Payload, PayloadError, check};

/// What becomes of a set.
#[derive(Debug, PartialEq)]
enum Becomes {
    /// A payload, with stubs of these numbers.
    Payload(Vec<String>),
    Refused(PayloadCode, Part),
    /// Refused by the verifier, with this code among others.
    Violated(Part, Vec<&'static str>),
}

fn made(imports: &[&str]) -> Becomes {
    Becomes::Payload(imports.iter().map(|name| (*name).to_owned()).collect())
}

fn usual() -> Becomes {
    made(&["kfree", "memcpy"])
}

fn violated(code: &'static str) -> Becomes {
    Becomes::Violated(Part::Driver, vec![code])
}

fn becomes(result: Result<Payload, PayloadError>) -> Becomes {
    match result {
        Ok(payload) => {
            check(&payload.bytes).expect("its proof again");
            Becomes::Payload(payload.imports)
        }
        Err(PayloadError::Refused(refusal)) => Becomes::Refused(refusal.code, refusal.part),
        Err(PayloadError::Violated { part, violations }) => {
            let codes = violations.list.iter().map(|v| v.code.as_str());
            Becomes::Violated(part, codes.collect())
        }
    }
}

/// Judges a set; of violations one code is asked for.
fn judge(what: &str, set: &Set, expected: &Becomes) {
    let found = becomes(set.build());
    let same = match (&found, expected) {
        (Becomes::Violated(part, codes), Becomes::Violated(of, asked)) => {
            part == of && asked.iter().all(|code| codes.contains(code))
        }
        _ => found == *expected,
    };
    assert!(same, "{what}: {found:?}, not {expected:?}");
}

/// A function of this name in this section.
fn function(section: &str, name: &str) -> String {
    format!(
        "        .section {section},\"ax\",@progbits\n        .globl \"{name}\"\n        \
         .type \"{name}\",@function\n\"{name}\": ret\n"
    )
}

#[test]
fn what_is_added_to_a_driver() {
    let with = |what: &str, text: &str, expected: Becomes| {
        let mut set = Set::new();
        set.driver.push_str(text);
        judge(what, &set, &expected);
    };
    let text = |name: &str| function(".text", name);
    let limit = || Becomes::Refused(Limit, Part::Output);
    with("a stub's name", &text("stub:kfree"), usual());
    with("a name of the hot routines", &text("hot_wake"), usual());
    with(
        "a control character",
        &text("a\u{1b}b"),
        Becomes::Refused(Section, Part::Output),
    );
    with("a long name", &text(&"y".repeat(130)), limit());
    with(
        "a name of the runtime",
        &text("twin_import_kmalloc"),
        violated("object-symbol"),
    );
    with(
        "the stubs' section",
        &function(".text.twin.stubs", "z"),
        usual(),
    );
    with(
        "a size",
        &format!("{}.size z, 0x7fffffffffffffff\n", text("z")),
        usual(),
    );
    with(
        "a place behind the code",
        ".text\n.globl z\nz:\n",
        violated("P2-target"),
    );
    with("what is too large", ".text\n.skip 3 << 20, 0xcc\n", limit());
    let many: String = (0..1100)
        .map(|n| function(&format!(".text.s{n}"), &format!("s{n}")))
        .collect();
    with("many sections", &many, limit());
    let origin = ".section .twin.origin,\"\",@progbits\n.skip 3 << 20\n";
    with("what it was made from", origin, limit());
    let aligned = ".section .text.al,\"ax\"\n.balign 8192\n.type al,@function\nal: ret\n";
    with(
        "an alignment",
        aligned,
        Becomes::Refused(Section, Part::Driver),
    );
    for (section, flags) in [
        (".livepatch.funcs", "\"aw\""),
        (".livepatch.hooks.load", "\"a\""),
        (".text.g", "\"axG\",@progbits,g,comdat"),
        (".text.ex", "\"axe\""),
        (".altinstructions", "\"a\""),
    ] {
        let text = format!(".section {section},{flags}\n.skip 104, 0xcc\n");
        with(section, &text, violated("object-section"));
    }
}

#[test]
fn what_a_driver_refers_to() {
    let instead = |old: &str, new: &str, expected: Becomes| {
        let mut set = Set::new();
        assert!(set.driver.contains(old), "{old}");
        set.driver = set.driver.replacen(old, new, 1);
        judge(new, &set, &expected);
    };
    let call = |name: &str, expected| instead("call    kfree", &format!("call {name}"), expected);
    let nowhere = || Becomes::Refused(NoAddress, Part::Driver);
    call("\"stub:kfree\"", nowhere());
    call("import_entry", nowhere());
    call("call_out", nowhere());
    call("kfree+4", violated("P2-relocation"));
    call("netif_wake+4", violated("P2-relocation"));
    call("helper.cold+1", violated("P2-target"));
    let address = |what: &str, expected| {
        instead(
            "mov     %rbx, %r11",
            &format!("movabs ${what}, %r11"),
            expected,
        );
    };
    for what in [
        "probe", "kfree", "twin_window_mask", "twin_lowest", "twin_window+8",
    ] {
        address(what, violated("P2-relocation"));
    }
    for name in ["../../x y", ".hot_bss"] {
        instead("twin_vm:jiffies", &format!("twin_vm:{name}"), nowhere());
    }
    let row = "\"twin_vm:.text\"+0x200, poll";
    // Where a hot routine is: its section is 1 MiB behind the driver's.
    let hot = Becomes::Refused(Ambiguous, Part::Sections);
    instead(row, "\"twin_vm:.text\"+0x100020, poll", hot);
    instead(
        row,
        "\"twin_vm:.text\"+0x200, poll+1",
        violated("P2-codemap"),
    );
    instead(
        row,
        "\"twin_vm:.text\"+0x200, kfree",
        violated("P2-codemap"),
    );
    instead(row, "\"twin_vm:kfree\", poll", violated("P2-codemap"));
}

#[test]
fn what_hot_routines_show_to_the_driver() {
    let with = |name: &str, expected: Becomes| {
        let mut set = Set::new();
        let hot = set.hot.as_mut().expect("hot routines");
        hot.push_str(&function(".text", name));
        judge(name, &set, &expected);
    };
    with("kfree", made(&["memcpy"]));
    with("memcpy", made(&["kfree"]));
    with("probe", usual());
    with(
        "twin_stlb_call",
        Becomes::Violated(Part::Hot, vec!["object-symbol"]),
    );
}
