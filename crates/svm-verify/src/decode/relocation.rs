//! P2: the relocations that code may have, and what each makes of its
//! instruction.
//!
//! Each target has a table of them in `docs/spec/object.md` and `docs/spec/linux-module.md`;
//! [`judge`] is those tables, a match arm a row.

use elf_loader::Relocation;
use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32,
};
use twin_abi::stlb;

use crate::decode::classify::OperandField;
use crate::decode::memo::Operands;
use crate::insn::{CodeAt, Routine};
use crate::object::module::called_by_name;
use crate::object::{Image, Meaning};
use crate::targets::{Contents, NamedMemory};

/// Where a direct branch leads, before it is known where instructions start.
#[derive(Clone, Copy)]
pub enum Destination {
    /// To something outside of the object's code.
    Routine(Routine),
    /// To a place in the object's code, or one that no section has.
    Code(CodeAt),
    /// Nowhere: no branch, or one whose relocation was refused.
    Bad,
}

/// What a relocation makes of an instruction: the operand field that it fills in, and the
/// destination if that is a branch's.
#[derive(Clone, Copy)]
pub struct Relocated {
    /// The operand field that it fills in.
    pub field: OperandField,
    /// Where it leads, if the field is [`OperandField::Branch`].
    pub to: Destination,
}

impl Relocated {
    /// An instruction without a relocation.
    pub const NONE: Relocated = Relocated {
        field: OperandField::None,
        to: Destination::Bad,
    };

    /// A relocation of anything but a branch.
    pub fn operand(field: OperandField) -> Relocated {
        Relocated {
            field,
            to: Destination::Bad,
        }
    }

    /// A branch's.
    pub fn branch(to: Destination) -> Relocated {
        Relocated {
            field: OperandField::Branch,
            to,
        }
    }
}

/// What the relocation makes of the instruction at byte `at` of its section, whose
/// operands lie at `operands`.
///
/// # Errors
/// Why the contract does not allow it.
pub fn judge(
    image: &Image<'_>,
    r: &Relocation,
    at: u32,
    operands: Operands,
) -> Result<Relocated, &'static str> {
    let meaning = image.meaning(r.symbol);
    if let Meaning::Unusable(reason) = meaning {
        return Err(reason);
    }
    let field = Fields { r, at, operands };
    // The first rows of both tables.
    let relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
    let branch = operands.branch && relative && field.immediate(4);
    match meaning {
        Meaning::Routine(Routine::Imported) if branch && is_hypercall(image, r) => {
            Ok(Relocated::branch(Destination::Routine(Routine::Imported)))
        }
        Meaning::Routine(routine) if branch => to_routine(r, routine),
        Meaning::Code(place) if branch => to_code(r, place),
        _ => match image.rules.contents {
            Contents::CodeAlone => in_code_alone(r, meaning, &field, image.rules.named_memory),
            Contents::Module => in_module(r, meaning, &field),
        },
    }
}

/// Why an instruction may not have the relocations that it has.
pub const TWO: &str = "two relocations in one instruction";

/// The same for the two relocations of `movq $symbol, symbol(%rip)` (target
/// `linux`), in order: the displacement's, which is the one that matters, and the
/// immediate's.
///
/// # Errors
/// Why the contract does not allow one of them, or that the instruction is another one.
pub fn judge_both(
    image: &Image<'_>,
    [displacement, immediate]: [&Relocation; 2],
    at: u32,
    operands: Operands,
) -> Result<Relocated, &'static str> {
    let displacement = judge(image, displacement, at, operands)?;
    let immediate = judge(image, immediate, at, operands)?;
    match (displacement.field, immediate.field) {
        (OperandField::Displacement, OperandField::Immediate) => Ok(displacement),
        _ => Err(TWO),
    }
}

/// The rest of the table where data stays in dom0.
fn in_code_alone(
    r: &Relocation,
    meaning: Meaning,
    at: &Fields<'_>,
    memory: NamedMemory,
) -> Result<Relocated, &'static str> {
    let branch = at.operands.branch;
    match (r.kind, meaning) {
        // The low half of the address, whatever the high half is.
        (R_X86_64_32, Meaning::Vm) if at.displacement() && memory.is_window() => {
            Ok(Relocated::operand(OperandField::LowDisplacement))
        }
        (R_X86_64_64, Meaning::Window) if at.immediate(8) && r.addend == 0 => {
            Ok(Relocated::operand(OperandField::WindowStart))
        }
        // A distance from the field, which ends the instruction: pext has no immediate.
        (R_X86_64_PC32, Meaning::WindowMask) if at.displacement() && r.addend == -4 => {
            Ok(Relocated::operand(OperandField::WindowMask))
        }
        // `cmp` has no immediate either.
        (R_X86_64_PC32, Meaning::Bound) if at.displacement() && r.addend == -4 => {
            Ok(Relocated::operand(OperandField::Bound))
        }
        (R_X86_64_64, Meaning::StackView) if at.immediate(8) && r.addend == 0 => {
            Ok(Relocated::operand(OperandField::Immediate))
        }
        (R_X86_64_32S, Meaning::Vm) if !branch && at.immediate(4) => {
            Ok(Relocated::operand(OperandField::Immediate))
        }
        (R_X86_64_32S, Meaning::Vm) if at.displacement() => {
            Ok(Relocated::operand(OperandField::Displacement))
        }
        (R_X86_64_64, Meaning::Vm) if at.immediate(8) => {
            Ok(Relocated::operand(OperandField::Immediate))
        }
        (R_X86_64_32S, Meaning::Table) if at.displacement() => table_half(r),
        _ => Err("not one of the relocations that the contract lists for this operand"),
    }
}

/// The rest of the table of modules.
fn in_module(r: &Relocation, meaning: Meaning, at: &Fields<'_>) -> Result<Relocated, &'static str> {
    let branch = at.operands.branch;
    if let Meaning::Routine(routine) = meaning
        && let Some(reason) = called_by_name(routine)
    {
        return Err(reason);
    }
    match (r.kind, meaning) {
        (R_X86_64_32S, Meaning::Table) if at.displacement() => table_half(r),
        (_, Meaning::Table) => Err("the table is read in checks only"),
        (_, Meaning::Routine(Routine::Slow(_))) => Err("the runtime's code is only called"),
        _ if branch => Err("a branch to something that is not code"),
        // psABI 4.4: PC32 is a distance from the field, the others are the address.
        (R_X86_64_PC32 | R_X86_64_32S | R_X86_64_32, _)
            if at.displacement() && (r.kind == R_X86_64_PC32) != at.operands.relative =>
        {
            Err("a distance where an address belongs, or an address where a distance does")
        }
        (R_X86_64_PC32 | R_X86_64_32S | R_X86_64_32, _) if at.displacement() => match meaning {
            Meaning::Data(..) | Meaning::Code(_) | Meaning::Routine(Routine::Imported) => {
                Ok(Relocated::operand(OperandField::Displacement))
            }
            _ => Err("nothing that an operand may name"),
        },
        (R_X86_64_32S | R_X86_64_32, _) if at.immediate(4) => {
            Ok(Relocated::operand(OperandField::Immediate))
        }
        (R_X86_64_64 | R_X86_64_PC64, _) if at.immediate(8) => {
            Ok(Relocated::operand(OperandField::Immediate))
        }
        _ => Err("not one of the relocations that the contract lists for this operand"),
    }
}

/// A branch to a routine outside of the object, which is entered at its start.
fn to_routine(r: &Relocation, routine: Routine) -> Result<Relocated, &'static str> {
    // S + A - P counts from the field, the branch from its end, 4 bytes on.
    match r.addend {
        -4 => Ok(Relocated::branch(Destination::Routine(routine))),
        _ => Err("not the routine's start"),
    }
}

/// Whether a branch of a module goes to an entry of the kernel's page of Xen's calls. It has 128
/// of 32 bytes (`hypercall_page`, arch/x86/xen/xen-head.S of Linux 5.10 to 6.12; `__HYPERCALL`,
/// arch/x86/include/asm/xen/hypercall.h), each a routine that keeps all that the psABI asks for,
/// but one: `iret` does not return. It takes `rip`, `rsp` and flags from its caller's frame
/// (`hypercall_page_initialise_ring3_kernel`, xen/arch/x86/pv/hypercall.c).
fn is_hypercall(image: &Image<'_>, r: &Relocation) -> bool {
    const PAGE: i64 = 4096;
    const ENTRY: i64 = 32;
    const IRET: i64 = 23 * ENTRY;
    let offset = r.addend.wrapping_add(4);
    image.rules.contents == Contents::Module
        && image.object.symbol(r.symbol).name == "hypercall_page"
        && (0..PAGE).contains(&offset)
        && offset % ENTRY == 0
        && offset != IRET
}

/// A branch to code of the object: to `place`, `addend` bytes on and 4 for the field.
fn to_code(r: &Relocation, place: CodeAt) -> Result<Relocated, &'static str> {
    let to = place.offset.checked_add(r.addend);
    let offset = to
        .and_then(|o| o.checked_add(4))
        .ok_or("its target is outside every section")?;
    Ok(Relocated::branch(Destination::Code(CodeAt {
        offset,
        ..place
    })))
}

/// A check's reference to one of the two words of a table entry.
fn table_half(r: &Relocation) -> Result<Relocated, &'static str> {
    match u64::try_from(r.addend) {
        Ok(stlb::TAG) => Ok(Relocated::operand(OperandField::Tag)),
        Ok(stlb::XLATE) => Ok(Relocated::operand(OperandField::Xlate)),
        _ => Err("the table is read at its tag or at its translation only"),
    }
}

/// Which operand field of the instruction at `at` a relocation is on.
struct Fields<'r> {
    r: &'r Relocation,
    at: u32,
    operands: Operands,
}

impl Fields<'_> {
    /// The immediate, of so many bytes; the distance, if it is a branch.
    fn immediate(&self, bytes: u8) -> bool {
        self.is(self.operands.immediate, bytes)
    }

    /// The displacement of 4 bytes.
    fn displacement(&self) -> bool {
        self.is(self.operands.displacement, 4)
    }

    fn is(&self, field: Option<(u8, u8)>, bytes: u8) -> bool {
        let offset = self.r.offset.checked_sub(u64::from(self.at));
        field.is_some_and(|(start, size)| offset == Some(start.into()) && size == bytes)
    }
}
