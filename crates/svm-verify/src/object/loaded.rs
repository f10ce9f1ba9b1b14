//! Sections that are where their symbols say, as long as the module is there (target `linux`).
//!
//! A kernel loads each section that has the flag for it. From some it takes the flag first
//! (`rewrite_section_headers`, kernel/module/main.c), and reads them in its copy of the file. There
//! are their symbols, as those of all that has no flag, and others have that memory when the module
//! has begun. A distance to it may lead anywhere: the kernel writes 32 bits of one that has more
//! (`R_X86_64_PC32`, arch/x86/kernel/module.c).

use elf_loader::consts::SHF_ALLOC;
use elf_loader::special;
use elf_loader::{Role, Section};

/// Those that the kernel reads in the file.
const KERNELS: [&str; 4] = [
    ".modinfo",
    "__versions",
    "__version_ext_crcs",
    "__version_ext_names",
];

/// The module's own per-CPU data, of which each processor has a copy.
const PER_CPU: &str = ".data..percpu";

/// Whether a section is the module's own per-CPU data.
pub fn is_per_cpu(section: &Section<'_>) -> bool {
    section.name == PER_CPU
}

/// Whether what is in a section is gone when the module runs.
pub fn is_gone(section: &Section<'_>) -> bool {
    let loaded = section.role == Role::Contents && section.flags & SHF_ALLOC != 0;
    !loaded || KERNELS.contains(&&*section.name)
}

/// Whether an operand may reach what is in a section.
///
/// # Errors
/// Why it may not.
pub fn is_reachable(section: &Section<'_>) -> Result<(), &'static str> {
    match () {
        () if KERNELS.contains(&&*section.name) => {
            Err("a section that is gone when the module runs")
        }
        () if is_per_cpu(section) => Err("per-CPU data, which only %gs reaches"),
        () if is_gone(section) => Err("a section that is not loaded"),
        () if special::kind_of(&section.name).is_some() => Err("a table of the kernel's"),
        () => Ok(()),
    }
}
