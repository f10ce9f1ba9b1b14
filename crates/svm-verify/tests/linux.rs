//! Modules for a stock kernel: what is accepted, and tricks that are not, each
//! named and refused by the rule that it breaks.

mod common;

use common::module::module as linked;
use common::{ABI, LINUX, codes_for, note, verify};
use twin_abi::Scheme;

/// A module with this code and these further sections, the runtime linked in.
fn module(source: &str) -> Vec<u8> {
    linked(source, twin_linux_runtime::object(Scheme::Stlb))
}

#[track_caller]
fn accept(source: &str) {
    if let Err(violations) = verify(&module(&expand(source)), LINUX) {
        panic!("refused:\n{violations}\n{source}");
    }
}

/// What is wrong with how a trick is answered.
fn answer(name: &str, code: &str, source: &str) -> Option<String> {
    match verify(&module(&expand(source)), LINUX) {
        Ok(_) => Some(format!("{name}: accepted")),
        Err(violations) => {
            let found = violations.list.iter().any(|v| v.code.as_str() == code);
            (!found).then(|| format!("{name}: not {code} but {violations}"))
        }
    }
}

/// `{T}` is a check of `(%rdi)` into `%rax`.
fn expand(source: &str) -> String {
    let check = common::stlb("(%rdi)", 1);
    let text = source.replace("{T}", &check);
    format!(".globl f\n.type f,@function\nf:\n{text}\n.size f,.-f\n")
}

#[test]
fn what_a_module_may_do() {
    accept("ret");
    accept("{T} mov (%rax), %dl; jmp __x86_return_thunk");
    accept("mov %gs:0x28, %rax; incl %gs:(%rdi); mov %gs:cpu_number(%rip), %eax; ret");
    accept("mov jiffies(%rip), %rax; mov d+8(%rip), %rdx; ret\n.data\nd: .quad 0, 0\n.text");
    accept("lea d(%rip), %rdi; mov $d, %rsi; ret\n.data\nd: .quad f\n.text");
    accept("call __x86_indirect_thunk_rax; call *%rcx; call *pv_ops+8(%rip); ret");
    accept("cli; rdmsr; mov %cr3, %rax; in %dx, %al; sti; ret");
    accept(
        "push %rbp; mov %rsp, %rbp; sub $16, %rsp; mov %rax, -8(%rbp); call g; mov -8(%rbp), %rax; leave; ret",
    );
    // Both of gcc's realigned frames.
    accept(
        "push %rbp; mov %rsp, %rbp; push %rbx; and $-16, %rsp; sub $32, %rsp; mov %rax, 8(%rsp); lea -8(%rbp), %rsp; pop %rbx; pop %rbp; ret",
    );
    accept(
        "lea 8(%rsp), %r10; and $-32, %rsp; push %rax; push %rbp; mov %rsp, %rbp; push %r10; sub $40, %rsp; mov %rax, -40(%rbp); call g; mov -8(%rbp), %r10; leave; lea -8(%r10), %rsp; ret",
    );
    // Per table.
    accept("1: call __fentry__; ret\n.pushsection __mcount_loc,\"a\"\n.quad 1b\n.popsection");
    accept(
        "{T} 1: lock incl (%rax); ret\n.pushsection .smp_locks,\"a\"\n.long 1b - .\n.popsection",
    );
    accept(
        "1: ud2; ret\n.pushsection __bug_table,\"aw\"\n.long 1b - ., d - .\n.short 1, 1\n.popsection\n.data\nd: .quad 0\n.text",
    );
    accept(
        "1: .byte 0x0f,0x1f,0x44,0,0; ret; 2: ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., 2b - .\n.quad key - .\n.popsection",
    );
    // The short forms, as the assembler leaves them.
    accept(
        "1: xchg %ax, %ax; ret; 2: ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., 2b - .\n.quad key - .\n.popsection",
    );
    accept(
        "1: jmp 2f; ret; 2: ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., 2b - .\n.quad key - .\n.popsection",
    );
    // Where it is, and what debuggers are told.
    accept("lea 1f(%rip), %rdi; 1: call g; ret");
    accept("1: ret\n.section .debug_info,\"\",@progbits\n.quad 1b\n.text");
    accept(
        "1: mov (%rdi), %rax; 2: ret\n.pushsection __ex_table,\"a\"\n.long 1b - ., 2b - .\n.long 1\n.popsection",
    );
    accept(
        "1: nop; nop; nop; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: clac\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 2b - .\n.short 20\n.byte 3, 3b-2b\n.popsection",
    );
    accept(
        "1: jmp __x86_return_thunk\n.pushsection .return_sites,\"a\"\n.long 1b - .\n.popsection",
    );
}

#[rustfmt::skip] // A table: name, rule, code.
const TRICKS: &[(&str, &str, &str)] = &[
    ("the address of an instruction's middle", "P2-target", "lea 1f+1(%rip), %rdi; 1: call g; ret"),
    ("a short static branch that does not reach", "P2-metadata", "1: xchg %ax, %ax; ret; .skip 200, 0xcc; 2: ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., 2b - .\n.quad key - .\n.popsection"),
    ("a static branch over another nop of 2 bytes", "P2-metadata", "1: nop; nop; ret; 2: ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., 2b - .\n.quad key - .\n.popsection"),
    ("notes to nobody that refer to code", "P2-metadata", "1: ret\n.section .notes,\"\",@progbits\n.quad 1b\n.text"),
    ("a load through a register", "P1-untranslated", "mov (%rdi), %rax; ret"),
    ("a store through a register", "P1-untranslated", "mov %rax, 8(%rdi); ret"),
    ("a byte too far before a translation", "P1-window", "{T} mov %rdx, -4097(%rax); ret"),
    ("an index on a symbol", "P1-address-form", "mov d(,%rdi,8), %rax; ret\n.data\nd: .quad 0\n.text"),
    ("a symbol as displacement of a pointer", "P1-untranslated", "mov d(%rdi), %rax; ret\n.data\nd: .quad 0\n.text"),
    ("an address on the null page", "P1-address-form", "mov 0x10, %rax; ret"),
    ("a place behind its section", "P1-address-form", "mov %rax, d+4096(%rip); ret\n.data\nd: .quad 0\n.text"),
    ("a place before its section", "P1-address-form", "mov %rax, d-8(%rip); ret\n.data\nd: .quad 0\n.text"),
    ("far from a kernel's symbol", "P1-address-form", "mov %rax, jiffies+0x1000000(%rip); ret"),
    ("writing its own code", "P1-address-form", "movb $0x90, f(%rip); ret"),
    ("fs is the user's", "P1-address-form", "mov %fs:0, %rax; ret"),
    ("gs on the other operand only", "P1-untranslated", "mov %gs:(%rdi), %rax; mov (%rax), %rdx; ret"),
    ("an unchecked string", "P1-string-pointer", "mov %rsi, %rcx; rep stosb; ret"),
    ("an unchecked string from a port", "P1-string-pointer", "rep insb; ret"),
    ("more of a string than is covered", "P1-string-count", "{T} mov %rax, %rdi; mov %rsi, %rcx; rep stosb; ret"),
    ("the return address", "P1-return-slot", "mov %rax, (%rsp); ret"),
    ("the return address through a frame pointer", "P1-return-slot", "push %rbp; mov %rsp, %rbp; mov %rax, 8(%rbp); pop %rbp; ret"),
    ("the return address, perhaps, from an aligned frame", "P1-return-slot", "push %rbp; mov %rsp, %rbp; and $-64, %rsp; mov %rax, 8(%rsp); leave; ret"),
    ("a frame pointer of its choice", "P1-untranslated", "mov %rdi, %rbp; mov %rax, -8(%rbp); ret"),
    ("a stack of its choice", "P4-rsp", "mov %rdi, %rsp; mov %rax, 8(%rsp); ret"),
    ("a stack from a pointer that was never saved", "P4-rsp", "lea -8(%r10), %rsp; ret"),
    ("a stack from a word that was overwritten", "P4-rsp", "lea 8(%rsp), %r10; push %r10; mov %rdi, (%rsp); pop %r10; lea -8(%r10), %rsp; ret"),
    ("a stack from half of a saved word", "P4-rsp", "lea 8(%rsp), %r10; push %r10; movb $0, 3(%rsp); pop %r10; lea -8(%r10), %rsp; ret"),
    ("aligned twice", "P4-rsp", "push %rbp; mov %rsp, %rbp; and $-16, %rsp; and $-64, %rsp; leave; ret"),
    ("masked by no alignment", "P4-rsp", "push %rbp; mov %rsp, %rbp; and $-17, %rsp; leave; ret"),
    ("leaving with an aligned frame", "P4-return", "and $-16, %rsp; ret"),
    ("a frame on one path only", "P4-depth", "test %edi, %edi; je 1f; push %rax; 1: nop; ret"),
    ("a thunk with a frame", "P4-return", "push %rax; jmp __x86_indirect_thunk_rax"),
    ("a guest", "P3-instruction", "vmlaunch; ret"),
    ("back to the user", "P3-instruction", "swapgs; sysretq"),
    ("an interrupt", "P3-instruction", "int $0x80; ret"),
    ("a segment", "P3-instruction", "mov %eax, %ds; ret"),
    ("a far jump", "P2-indirect", "ljmp *(%rsp)"),
    ("a direction for the callee", "P2-direction", "std; call g; cld; ret"),
    ("flags of its choice", "P2-direction", "push $0x400; popf; call g; ret"),
    // ---- the runtime
    ("the table as data", "P2-relocation", "mov $twin_stlb, %rdi; ret"),
    ("the table in data", "P5-runtime", "ret\n.data\n.quad twin_stlb\n.text"),
    ("the table read at will", "P5-table", "mov twin_stlb(%rdi), %rax; ret"),
    ("the table at another place", "P2-relocation", "sub twin_stlb+4(%rcx), %rax; ret"),
    ("the slow path's address in data", "P5-runtime", "ret\n.data\n.quad twin_slow_rax\n.text"),
    ("the slow path out of a check", "P2-out-of-line", "call twin_slow_rax; mov (%rax), %rdx; ret"),
    ("the slow path as a tail call", "P2-callee", "jmp twin_slow_rax"),
    ("behind the slow path's entry", "P2-relocation", "call twin_slow_rax+4; ret"),
    ("a codemap", "object-section", "ret\n.section .twin.codemap,\"a\"\n.quad 0,0\n.text"),
    ("writable code", "object-section", "ret\n.section .wx,\"awx\"\nret\n.text"),
    // ---- the kernel's tables
    ("data into the middle of a function", "P2-target", "nop; 1: ret\n.data\n.quad 1b\n.text"),
    ("the address of half an instruction", "P2-target", "mov $f+1, %rax; mov $0, %edx; ret"),
    ("an exception entry inside an instruction", "P2-metadata", "1: mov (%rdi), %rax; 2: ret\n.pushsection __ex_table,\"a\"\n.long 1b+1 - ., 2b - .\n.long 1\n.popsection"),
    ("an exception entry for another instruction", "P1-untranslated", "1: nop; mov (%rdi), %rax; 2: ret\n.pushsection __ex_table,\"a\"\n.long 1b - ., 2b - .\n.long 1\n.popsection"),
    ("a fixup that is no instruction", "P2-metadata", "1: mov (%rdi), %rax; 2: ret\n.pushsection __ex_table,\"a\"\n.long 1b - ., 1b+1 - .\n.long 1\n.popsection"),
    ("a fixup into a check", "P5-table", "1: mov (%rdi), %rdx; {T} 2: ret\n.pushsection __ex_table,\"a\"\n.long 1b - ., .Lback1-7 - .\n.long 1\n.popsection"),
    ("a fixup behind a check", "P1-untranslated", "1: mov (%rdi), %rdx; {T} mov (%rax), %dl; ret\n.pushsection __ex_table,\"a\"\n.long 1b - ., .Lback1 - .\n.long 1\n.popsection"),
    ("a static branch behind a check", "P1-untranslated", "1: .byte 0x0f,0x1f,0x44,0,0; {T} mov (%rax), %dl; ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., .Lback1 - .\n.quad key - .\n.popsection"),
    ("a static branch over something else", "P2-metadata", "1: mov $1, %eax; ret\n.pushsection __jump_table,\"aw\"\n.long 1b - ., f - .\n.quad key - .\n.popsection"),
    ("a lock that is none", "P2-metadata", "1: nop; ret\n.pushsection .smp_locks,\"a\"\n.long 1b - .\n.popsection"),
    ("a lock in an immediate", "P2-metadata", "1: mov $0xf0f0f0f0, %eax; ret\n.pushsection .smp_locks,\"a\"\n.long 1b+1 - .\n.popsection"),
    ("a trace entry over a check", "P2-metadata", "{T} 1: mov (%rax), %rdx; ret\n.pushsection __mcount_loc,\"a\"\n.quad .Lback1-7\n.popsection"),
    ("a trace entry over another call", "P2-metadata", "1: call g; ret\n.pushsection __mcount_loc,\"a\"\n.quad 1b\n.popsection"),
    ("a return site over another jump", "P2-metadata", "1: jmp g\n.pushsection .return_sites,\"a\"\n.long 1b - .\n.popsection"),
    ("a thunk site over another call", "P2-metadata", "1: call g; ret\n.pushsection .retpoline_sites,\"a\"\n.long 1b - .\n.popsection"),
    ("a warning that is none", "P2-metadata", "1: nop; ret\n.pushsection __bug_table,\"aw\"\n.long 1b - ., d - .\n.short 1, 1\n.popsection\n.data\nd: .quad 0\n.text"),
    ("what stands behind a warning", "P1-untranslated", "1: ud2; mov (%rdi), %rax; ret\n.pushsection __bug_table,\"aw\"\n.long 1b - ., d - .\n.short 1, 1\n.popsection\n.data\nd: .quad 0\n.text"),
    ("a static call over a nop", "P2-metadata", "1: nopl 0(%rax,%rax); ret\n.pushsection .static_call_sites,\"aw\"\n.long 1b - ., key - .\n.popsection"),
    ("an alternative that reaches memory", "P1-untranslated", "1: nop; nop; nop; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: mov (%rdi), %rax\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 2b - .\n.short 20\n.byte 3, 3b-2b\n.popsection"),
    ("an alternative that loses a translation", "P1-untranslated", "{T} 1: nop; nop; nop; mov (%rax), %dl; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: mov %rdi, %rax\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 2b - .\n.short 20\n.byte 3, 3b-2b\n.popsection"),
    ("an alternative over half an instruction", "P2-metadata", "1: mov $1, %eax; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: clac\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 2b - .\n.short 20\n.byte 3, 3b-2b\n.popsection"),
    ("an alternative over a check", "P2-metadata", "{T} mov (%rax), %dl; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: nop\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long .Lback1-7 - ., 2b - .\n.short 20\n.byte 7, 3b-2b\n.popsection"),
    ("an alternative that is too long", "P2-metadata", "1: nop; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: clac\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 2b - .\n.short 20\n.byte 1, 3b-2b\n.popsection"),
    ("a branch into what an alternative replaces", "P2-metadata", "test %edi, %edi; je 4f; 1: nop; nop; 4: nop; ret\n.pushsection .altinstr_replacement,\"ax\"\n2: clac\n3:\n.popsection\n.pushsection .altinstructions,\"a\"\n.long 1b - ., 2b - .\n.short 20\n.byte 3, 3b-2b\n.popsection"),
    ("unwinding from half an instruction", "P2-metadata", "mov $1, %eax; ret\n.pushsection .orc_unwind_ip,\"a\"\n.long f+1 - .\n.popsection"),
];

#[test]
fn tricks_are_refused() {
    let wrong = TRICKS
        .iter()
        .filter_map(|(name, code, source)| answer(name, code, source));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_runtime_with_one_byte_changed_is_refused() {
    let mut runtime = twin_linux_runtime::object(Scheme::Stlb).to_vec();
    // The first instruction of the first slow path.
    let object = elf_loader::read(&runtime).expect("the runtime");
    let id = object.section_named(".twin.text").expect("its code");
    let code = object.section(id).data.to_vec();
    let at = runtime
        .windows(code.len())
        .position(|w| w == code)
        .expect("its bytes");
    runtime[at] ^= 1;
    assert!(codes_for(LINUX, &linked(&expand("ret"), &runtime)).contains(&"P5-runtime"));
}

#[test]
fn the_other_scheme_s_runtime_is_refused() {
    let module = linked(&expand("ret"), twin_linux_runtime::object(Scheme::Paper));
    assert!(codes_for(LINUX, &module).contains(&"P5-runtime"));
}

#[test]
fn without_a_runtime_it_is_refused() {
    let source = format!("{}.text\n{}", note([ABI, 1, 64, 1]), expand("ret"));
    assert!(codes_for(LINUX, &common::assemble(&source)).contains(&"P5-runtime"));
}

/// `SHF_RELA_LIVEPATCH` (include/uapi/linux/elf.h): the kernel leaves such a table to
/// whoever patches it live, and the code unrelocated.
#[test]
fn relocations_that_the_kernel_applies_later_are_refused() {
    const HEADERS: usize = 0x28;
    let mut module = module(&expand("call g; ret"));
    assert!(codes_for(LINUX, &module).is_empty());
    let object = elf_loader::read(&module).expect("the module");
    let is_table = |role| matches!(role, elf_loader::Role::Relocations(_));
    let table = object.sections.iter().position(|s| is_table(s.role));
    let word = |at: usize| module[at..at + 8].try_into().expect("eight bytes");
    let headers = u64::from_le_bytes(word(HEADERS)) as usize;
    let flags = headers + 64 * table.expect("relocations") + 8;
    drop(object);
    module[flags + 2] |= 0x10;
    assert!(codes_for(LINUX, &module).contains(&"object-section"));
}
