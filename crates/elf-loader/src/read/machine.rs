//! Machines by name: what an object is for, and what is taken.

use std::fmt;

use goblin::elf::header;

/// What an object is for: `e_machine` with class and byte order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfMachine {
    number: u16,
    bits: u32,
    big_endian: bool,
}

/// The one machine that is taken.
pub(super) const TAKEN: ElfMachine = ElfMachine::new(header::EM_X86_64, 64, false);

/// Machines that Linux runs on, by their names (gABI chapter 4, `e_machine`).
const NAMES: [(u16, &str); 16] = [
    (header::EM_X86_64, "x86-64"),
    (header::EM_386, "i386"),
    (header::EM_AARCH64, "AArch64"),
    (header::EM_ARM, "Arm"),
    (header::EM_PPC, "PowerPC"),
    (header::EM_PPC64, "PowerPC 64"),
    (header::EM_RISCV, "RISC-V"),
    (header::EM_S390, "S/390"),
    (header::EM_MIPS, "MIPS"),
    (header::EM_SPARC, "SPARC"),
    (header::EM_SPARCV9, "SPARC V9"),
    (header::EM_IA_64, "IA-64"),
    (header::EM_68K, "68000"),
    (header::EM_PARISC, "PA-RISC"),
    (header::EM_BPF, "BPF"),
    (258, "LoongArch"),
];

impl ElfMachine {
    pub(super) const fn new(number: u16, bits: u32, big_endian: bool) -> ElfMachine {
        ElfMachine {
            number,
            bits,
            big_endian,
        }
    }
}

impl fmt::Display for ElfMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(number, _)| *number == self.number);
        let name = match name {
            // x86-64 with words of 32 bits.
            Some((header::EM_X86_64, _)) if self.bits == 32 => "x32",
            Some((_, name)) => name,
            None => "an unknown machine",
        };
        let order = if self.big_endian { "big" } else { "little" };
        let (number, bits) = (self.number, self.bits);
        write!(
            f,
            "{name} (ELF machine {number}, {bits}-bit, {order}-endian)"
        )
    }
}
