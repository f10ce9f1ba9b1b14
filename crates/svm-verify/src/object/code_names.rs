//! Names of sections of code. Whoever takes an object goes by names, whatever the flags say, and
//! each takes other names for something else:
//!
//! * A kernel writes list heads over `__dyndbg_classes` (`ddebug_attach_module_classes`,
//!   lib/dynamic_debug.c), does not load `__versions` (`rewrite_section_headers`,
//!   kernel/module/main.c), and takes symbols in `.data..percpu` for places in per-CPU memory
//!   (`simplify_symbols`, ibid.).
//! * A linker keeps one of all `.gnu.linkonce.t.x`, leaves out `.gnu.warning`, takes entries out of
//!   `.eh_frame` (binutils, bfd/elflink.c and bfd/elf-eh-frame.c), and leaves out `.note.GNU-stack`
//!   (lld, ELF/InputFiles.cpp).
//! * A loader of code for a hypervisor takes `twin_vm:kfree` for the kernel's function: the codemap
//!   would answer for its calls.

/// The names that the kernel's own linker script has (include/asm-generic/vmlinux.lds.h), and
/// `.fixup` of Linux 5.15 and before.
const CODE: [&str; 19] = [
    ".text",
    ".init.text",
    ".exit.text",
    ".meminit.text",
    ".memexit.text",
    ".head.text",
    ".ref.text",
    ".sched.text",
    ".spinlock.text",
    ".cpuidle.text",
    ".kprobes.text",
    ".noinstr.text",
    ".entry.text",
    ".irqentry.text",
    ".softirqentry.text",
    ".static_call.text",
    ".altinstr_replacement",
    ".altinstr_aux",
    ".fixup",
];

/// Whether everybody takes a section of this name for code: it is one of these, perhaps with a
/// dot and more behind it.
pub fn is_code_name(name: &str) -> bool {
    let rest = CODE.iter().find_map(|code| name.strip_prefix(code));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
