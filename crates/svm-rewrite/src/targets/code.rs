//! Names of sections of code.
//!
//! Kernels find sections by their names and do not ask for flags: code in one of another
//! name may be written over, or not loaded (`find_module_sections`, kernel/module/main.c). For a
//! hypervisor, `twin_vm:kfree` would be the section of this name to one and the kernel's function to
//! another.

use elf_loader::Object;

use crate::refusal::{Refusal, RefusalCode};

/// The names (include/asm-generic/vmlinux.lds.h; `.fixup` of Linux 5.15 and before). More may
/// follow behind a dot.
const KNOWN: [&str; 19] = [
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

/// Refuses code in a section of another name, by that code of a refusal.
///
/// # Errors
/// The first such section.
pub fn check(object: &Object<'_>, refused: RefusalCode) -> Result<(), Refusal> {
    let mut code = object.sections().filter(|(_, section)| section.is_code());
    let Some((_, other)) = code.find(|(_, section)| !is_known(&section.name)) else {
        return Ok(());
    };
    let reason = "code in a section whose name is none of code's, so that a kernel may take it \
                  for something else: put it into .text";
    Err(Refusal::at(refused, &other.name, 0, reason))
}

fn is_known(name: &str) -> bool {
    let mut rests = KNOWN.iter().filter_map(|known| name.strip_prefix(known));
    rests.any(|rest| rest.is_empty() || rest.starts_with('.'))
}
