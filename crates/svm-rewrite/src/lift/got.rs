//! Addresses out of a global offset table, as a linker takes them where it knows them.
//!
//! Position-independent code loads the address of what may be in another object from a table that
//! the linker makes (`-fpic`, and clang's `-fpie`). Kernels' loaders make none. Where the assembler
//! says that the instruction may become another one, it becomes that (psABI B.2), in the same
//! bytes:
//!
//! ```text
//! mov  f@GOTPCREL(%rip),%r        lea  f(%rip),%r
//! cmp  f@GOTPCREL(%rip),%r        cmp  $f,%r              and add, or, adc, sbb, and, sub, xor
//! test %r,f@GOTPCREL(%rip)        test $f,%r
//! call *f@GOTPCREL(%rip)          nop ; call f
//! jmp  *f@GOTPCREL(%rip)          nop ; jmp  f
//! ```
//!
//! All others stay, and are refused. So are those of a symbol that is weak and undefined, whose
//! address may be zero, and of one whose address is a number or a resolver's.

use std::borrow::Cow;

use elf_loader::consts::{
    R_X86_64_32S, R_X86_64_GOTPCRELX, R_X86_64_PC32, R_X86_64_PLT32, R_X86_64_REX_GOTPCRELX,
    STB_WEAK, STT_GNU_IFUNC,
};
use elf_loader::{Object, Place, Relocation, Symbol};

/// The object with direct addresses in place of those out of a table.
pub fn relaxed<'o>(object: &'o Object<'o>) -> Cow<'o, Object<'o>> {
    let mut relaxed = Cow::Borrowed(object);
    for (n, section) in object
        .sections
        .iter()
        .enumerate()
        .filter(|(_, s)| s.is_code())
    {
        for (k, r) in section.relocations.iter().enumerate() {
            let known = is_known(object.symbol(r.symbol));
            let direct = known.then(|| Direct::of(&section.data, r)).flatten();
            let Some(direct) = direct else {
                continue;
            };
            let section = &mut relaxed.to_mut().sections[n];
            let bytes = &mut section.data.to_mut()[direct.at..];
            bytes[..direct.bytes.len()].copy_from_slice(&direct.bytes);
            section.relocations[k] = direct.relocation;
        }
    }
    relaxed
}

/// Whether the symbol's address is one that a loader knows.
fn is_known(symbol: &Symbol<'_>) -> bool {
    let is_zero = symbol.place == Place::Undefined && symbol.binding == STB_WEAK;
    let placed = matches!(symbol.place, Place::In(_) | Place::Undefined);
    placed && !is_zero && symbol.kind != STT_GNU_IFUNC
}

/// What takes the place of an instruction.
struct Direct {
    /// Where its bytes begin.
    at: usize,
    bytes: Vec<u8>,
    relocation: Relocation,
}

/// The operand `disp32(%rip)` in `modrm` (SDM volume 2, table 2-2).
const MODRM_RIP: u8 = 0b00_000_101;
const NOP: u8 = 0x90;

impl Direct {
    /// Of the instruction whose displacement a relocation fills, if it may become another one.
    fn of(code: &[u8], r: &Relocation) -> Option<Direct> {
        const FIELD: i64 = -4;
        if r.addend != FIELD {
            return None;
        }
        let field = usize::try_from(r.offset).ok()?;
        let before = |n| code.get(field.checked_sub(n)?).copied();
        code.get(field..field.checked_add(4)?)?;
        let (opcode, modrm) = (before(2)?, before(1)?);
        let register = modrm >> 3 & 7;
        if modrm & 0b11_000_111 != MODRM_RIP {
            return None;
        }
        match (r.kind, opcode, register) {
            (R_X86_64_GOTPCRELX, 0xff, 2) => Some(Direct::branch(field, before(3), 0xe8, *r)),
            (R_X86_64_GOTPCRELX, 0xff, 4) => Some(Direct::branch(field, before(3), 0xe9, *r)),
            (R_X86_64_REX_GOTPCRELX, 0x8b, _) => Some(Direct {
                at: field - 2,
                bytes: vec![0x8d],
                relocation: Relocation {
                    kind: R_X86_64_PC32,
                    ..*r
                },
            }),
            (R_X86_64_REX_GOTPCRELX, _, _) => {
                let rex = before(3)?;
                Direct::immediate(field, (rex, opcode, register), *r)
            }
            _ => None,
        }
    }

    /// `call` or `jmp`, one byte shorter; it ends where the indirect one does. A nop is before it,
    /// but not behind what may be REX.B: the two are an exchange with `r8` (SDM volume 2, NOP).
    fn branch(field: usize, previous: Option<u8>, opcode: u8, r: Relocation) -> Direct {
        const REX_B: u8 = 0x41;
        let exchanges = previous.is_some_and(|b| b & 0xf1 == REX_B);
        let (bytes, offset) = match exchanges {
            true => (vec![opcode, 0, 0, 0, 0, NOP], r.offset - 1),
            false => (vec![NOP, opcode], r.offset),
        };
        let kind = R_X86_64_PLT32;
        Direct {
            at: field - 2,
            bytes,
            relocation: Relocation { offset, kind, ..r },
        }
    }

    /// An operation with the address as its immediate; the register is in the other field.
    fn immediate(
        field: usize,
        (rex, opcode, register): (u8, u8, u8),
        r: Relocation,
    ) -> Option<Direct> {
        const W: u8 = 0x48;
        const R: u8 = 0x04;
        const REGISTER: u8 = 0b11_000_000;
        if rex & !R != W {
            return None;
        }
        let (opcode, operation) = match opcode {
            0x85 => (0xf7, 0),
            _ if opcode & 0b11_000_111 == 0b00_000_011 => (0x81, opcode >> 3),
            _ => return None,
        };
        Some(Direct {
            at: field - 3,
            bytes: vec![
                W | (rex & R) >> 2,
                opcode,
                REGISTER | operation << 3 | register,
                0,
                0,
                0,
                0,
            ],
            relocation: Relocation {
                kind: R_X86_64_32S,
                addend: 0,
                ..r
            },
        })
    }
}
