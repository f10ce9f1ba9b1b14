//! `__ex_table`: what the kernel does when an instruction faults, before it continues at
//! the fixup (`fixup_exception`, arch/x86/mm/extable.c).

use elf_loader::consts::STB_WEAK;
use elf_loader::special::{Entry, EntryData, FieldRole, Referent};
use elf_loader::{Place, SymbolId};

use super::reader::Reader;
use super::tables::Series;
use crate::insn::{Gpr, GprSet};

/// The first kernel whose entries have a type, in whose numbers there are no registers yet. Later
/// releases of 5.15 have types, too, in the numbers of 5.17.
const FIRST_WITH_TYPES: Series = (5, 16);
const OTHER: &str = "its type of handler is none that leaves the stack and the fixup alone";

/// The largest type that is harmless where it may be read as a routine's distance from the entry.
/// Data is there, of this module, which kernels do not execute: behind its read-only data, to
/// which the table belongs, is a page or more of other data.
const MOST: u32 = 0xfff;
const FAR: &str = "its type, with a number beside it, is a routine's distance to early releases of Linux 5.15, \
and only of 5.15.224 and Ubuntu's 5.15.0-204, and later ones, it is known that they read types";

/// Where control goes when an instruction faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixup {
    /// The instruction where the handler continues, by number.
    pub to: u32,
    /// Callee-saved registers that the handler writes.
    pub writes: GprSet,
    /// Registers of which the handler makes the number in `rcx`.
    pub counts: GprSet,
}

impl Fixup {
    pub(super) fn new(reader: &Reader<'_, '_>, entry: &Entry) -> Result<Fixup, &'static str> {
        let EntryData::Exception(data) = entry.data else {
            return Err("it has no type");
        };
        let routine = entry
            .references
            .iter()
            .find(|r| r.role == FieldRole::Handler);
        let writes = match routine.map(|r| r.to) {
            None if reader.is_routine && data > MOST => return Err(FAR),
            None => handler(data, reader.series)?,
            Some(Referent::Symbol(symbol, 0)) => routines(reader, symbol)?,
            Some(_) => return Err("its handler is no routine of the kernel"),
        };
        let (to, _) = entry
            .target()
            .and_then(|to| reader.insn(to))
            .ok_or("its fixup is no instruction")?;
        let counts = routine.map_or_else(|| counts(data), |_| GprSet::NONE);
        Ok(Fixup { to, writes, counts })
    }
}

/// The registers that a handler of Linux 5.15 (its first releases) and before writes, besides `rax` and `rdx`: there
/// an entry names the routine (arch/x86/mm/extable.c of Linux 5.10). Refused are those that
/// load a segment (`ex_handler_clear_fs`) or restore vector registers
/// (`ex_handler_fprestore`), and any that is not known.
fn routines(reader: &Reader<'_, '_>, symbol: SymbolId) -> Result<GprSet, &'static str> {
    const KNOWN: [&str; 6] = [
        "ex_handler_default",
        "ex_handler_fault",
        "ex_handler_uaccess",
        "ex_handler_copy",
        "ex_handler_rdmsr_unsafe",
        "ex_handler_wrmsr_unsafe",
    ];
    let symbol = reader.image.object.symbol(symbol);
    let imported = symbol.place == Place::Undefined && symbol.binding != STB_WEAK;
    match imported && KNOWN.contains(&&*symbol.name) {
        true => Ok(GprSet::NONE),
        false => Err("its handler is none that leaves the stack and the fixup alone"),
    }
}

/// The registers that a handler writes, besides `rax`, `rcx` and `rdx`, which are unknown
/// at a fixup anyway. The types are those of arch/x86/include/asm/extable_fixup_types.h:
/// bits 0 to 7 of an entry's data; the register is in bits 8 to 11.
///
/// Refused are types that move `rsp` (`POP_REG`), use the fixup field for something else
/// (`BPF`), load a segment (`CLEAR_FS`), restore vector registers (`FPU_RESTORE`) or
/// never return (`NONE`, `WRMSR_IN_MCE`, `RDMSR_IN_MCE`), and any that Linux 5.17 to 7.3 do
/// not have. Linux 5.16 has numbers of its own.
fn handler(data: u32, series: Option<Series>) -> Result<GprSet, &'static str> {
    let register = register(data);
    match data & 0xff {
        // DEFAULT, FAULT, UACCESS, COPY; WRMSR, RDMSR; for machine checks. 9 is BPF.
        1..=4 | 7 | 8 | 12 | 13 if series == Some(FIRST_WITH_TYPES) => Ok(GprSet::NONE),
        _ if series == Some(FIRST_WITH_TYPES) => Err(OTHER),
        // DEFAULT, FAULT, UACCESS, COPY, and for machine checks
        1..=4 | 14 | 15 => Ok(GprSet::NONE),
        // WRMSR, RDMSR; FAULT_SGX, UCOPY_LEN
        8 | 9 | 18 | 19 => Ok(GprSet::NONE),
        // ZEROPAD: what the instruction itself writes
        20 => Ok(GprSet::NONE),
        // WRMSR_SAFE, RDMSR_SAFE, IMM_REG
        10 | 11 | 17 if register == Gpr::RSP => Err("its handler writes %rsp"),
        10 | 11 | 17 => Ok(register.set()),
        _ => Err(OTHER),
    }
}

/// The registers of which a handler makes a number: `UCOPY_LEN` multiplies `rcx` and adds another
/// one (`ex_handler_ucopy_len`, arch/x86/mm/extable.c).
fn counts(data: u32) -> GprSet {
    const UCOPY_LEN: u32 = 19;
    match data & 0xff {
        UCOPY_LEN => register(data).set().or(Gpr::RCX.set()),
        _ => GprSet::NONE,
    }
}

/// The register in an entry's data.
fn register(data: u32) -> Gpr {
    Gpr((data >> 8 & 0xf) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `data` of an entry.
    fn data(kind: u32, register: u32) -> u32 {
        kind | register << 8 | 0xfff2_0000
    }

    #[test]
    fn a_handler_writes_its_register_and_never_the_stack_pointer() {
        for kind in [10, 11, 17] {
            for register in 0..16 {
                let expected = (register != 4).then(|| Gpr(register as u8).set());
                assert_eq!(handler(data(kind, register), None).ok(), expected, "{kind}");
            }
        }
    }

    #[test]
    fn types_that_are_not_listed_are_refused() {
        let good = |series| -> Vec<u32> {
            let is_good = |&k: &u32| handler(data(k, 3), series).is_ok();
            (0..=255).filter(is_good).collect()
        };
        let later = [1, 2, 3, 4, 8, 9, 10, 11, 14, 15, 17, 18, 19, 20];
        assert_eq!(good(None), later);
        assert_eq!(good(Some((5, 17))), later);
        assert_eq!(good(Some((5, 15))), later);
        assert_eq!(good(Some((5, 16))), [1, 2, 3, 4, 7, 8, 12, 13]);
    }
}
