//! kCFI: before a call through a pointer, code compares the hash of the type that it expects with
//! the one that is stored before the function (clang's `-fsanitize=kcfi`).
//!
//! ```text
//!     mov   $-hash, %r10d
//!     add   -4(%r11), %r10d       # farther back by the padding that the kernel may write to
//!     je    1f
//!     ud2                         # named in __kcfi_traps
//! 1:  call  *%r11                 # or jmp, or a thunk
//! ```

use elf_loader::special::{self, Entry, SpecialKind};
use iced_x86::{Code, FlowControl, Instruction, OpKind, Register};

use super::routines;
use crate::lift::{Destination, InstIdx, Lifted};
use crate::refusal::{Refusal, RefusalCode};

/// A check, with the call or jump that it is for.
#[derive(Clone, Copy, Debug)]
pub struct TypeCheck {
    /// Its first instruction.
    first: u32,
    /// The hash of the type that is expected.
    pub hash: i32,
}

impl TypeCheck {
    /// Its instructions, the call included.
    pub fn insts(&self) -> std::ops::Range<u32> {
        self.first..self.first + 5
    }

    /// The one that reads the hash of the function's type.
    pub fn load(&self) -> InstIdx {
        InstIdx(self.first + 1)
    }
}

/// Finds the checks of an object.
///
/// # Errors
/// A table that cannot be read, or that names what is no check.
pub fn find(lifted: &Lifted<'_>) -> Result<Vec<TypeCheck>, Refusal> {
    let mut found = Vec::new();
    for (id, section) in lifted.object.sections() {
        if special::kind_of(&section.name) != Some(SpecialKind::KcfiTraps) {
            continue;
        }
        let refused =
            |at, reason: String| Refusal::at(RefusalCode::Metadata, &section.name, at, reason);
        let entries = special::entries(lifted.object, id).map_err(|e| refused(0, e.to_string()))?;
        for entry in entries {
            let reason = "it names no check of a type as clang makes it (-fsanitize=kcfi): \
                          mov, add, je, ud2, and the call";
            let check = before(lifted, &entry).ok_or_else(|| refused(entry.offset, reason.into()));
            found.push(check?);
        }
    }
    Ok(found)
}

/// The check that an entry names by its trap.
fn before(lifted: &Lifted<'_>, entry: &Entry) -> Option<TypeCheck> {
    let (section, offset) = entry.site()?;
    let trap = lifted.inst_at(lifted.code_section(section)?, offset)?.0;
    let first = trap.checked_sub(3)?;
    let insts = lifted.insts.get(first as usize..trap as usize + 2)?;
    let [expected, load, branch, trap, transfer] = insts else {
        return None;
    };
    let hash = expected.iced.immediate32().wrapping_neg().cast_signed();
    let sum = expected.iced.op0_register();
    let function = load.iced.memory_base();
    let is_check = expected.iced.code() == Code::Mov_r32_imm32
        && expected.immediate.is_none()
        && adds_hash(&load.iced, sum)
        && load.displacement.is_none()
        && branch.iced.code() == Code::Je_rel8_64
        && branch.target == Some(Destination::Inst(InstIdx(first + 4)))
        && trap.iced.code() == Code::Ud2
        && insts.iter().all(|inst| inst.section == expected.section)
        && goes_to(lifted, transfer.target, &transfer.iced) == Some(function);
    is_check.then_some(TypeCheck { first, hash })
}

/// Whether it adds the word at a distance from a register to `sum`.
fn adds_hash(iced: &Instruction, sum: Register) -> bool {
    iced.code() == Code::Add_r32_rm32
        && iced.op0_register() == sum
        && iced.op1_kind() == OpKind::Memory
        && iced.memory_base().is_gpr64()
        && iced.memory_base().full_register() != sum.full_register()
        && iced.memory_base() != Register::RSP
        && iced.memory_index() == Register::None
        && iced.segment_prefix() == Register::None
}

/// The register that an indirect transfer goes to.
fn goes_to(
    lifted: &Lifted<'_>,
    target: Option<Destination>,
    iced: &Instruction,
) -> Option<Register> {
    match (iced.flow_control(), target) {
        (FlowControl::IndirectCall | FlowControl::IndirectBranch, None) => {
            (iced.op0_kind() == OpKind::Register).then(|| iced.op0_register())
        }
        (FlowControl::Call | FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => {
            let register = routines::indirect_thunk(lifted.symbol_name(s))?;
            Some(crate::registers::reg64(register))
        }
        _ => None,
    }
}
