//! The out-of-line part of a check: the only code that is recognised by its form.
//!
//! ```text
//!         cmp    $0xfff, %v            # or cmp twin_stlb(%i), %p
//!         ja     .Lslow                # or jne
//!         add    twin_stlb+8(%i), %v   # or xor
//! .Lback: ...
//! .Lslow: lea    ADDRESS, %v           # only if %v does not hold it any more
//!         call   twin_slow_<v>
//!         jmp    .Lback
//! ```
//!
//! or, where the access is a prefetch that a miss may skip:
//!
//! ```text
//!         ja     .Lskip
//!         add    twin_stlb+8(%i), %v
//!         prefetch (%v)
//! .Lskip: ...
//! ```
//!
//! Why the first form needs no interpretation: on the fall-through path, at `.Lback`,
//! `%v` is known to be the translation of the checked address V, and nothing is known of
//! the flags. The out-of-line part puts the same address into `%v` again and calls the
//! slow path for its translation, which keeps all other registers
//! (`twin_abi::names::SLOW_PREFIX`). So each fact that holds after `add` holds after
//! `jmp`, too, and joining the two changes nothing. The address is the same for one of
//! two reasons. Either the instruction has the same bytes and the same relocation as the
//! one that made V, reads only registers, none of them was written in between
//! ([`State::again`]), and it does not count from its own place; or it copies a register
//! that still has the name V.

use elf_loader::Relocation;
use elf_loader::consts::R_X86_64_PC64;

use crate::domain::{Name, State};
use crate::findings::ViolationCode;
use crate::insn::{Access, BranchTarget, Disassembly, Gpr, Half, Insn, Op, Routine, TableRead};
use crate::kernel::references::relative_lea;
use crate::object::Image;
use crate::rules::{Broken, unmet};

/// What a check's branch does when the check fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Miss {
    /// It takes the slow path in these instructions, by number, and comes back with the
    /// translation: this path need not be followed.
    Slow {
        first: u32,
        /// The last of them, the jump back.
        last: u32,
    },
    /// It skips a prefetch.
    Skip,
}

fn broken<T>(reason: &'static str) -> Result<T, Broken> {
    Err(unmet(ViolationCode::OutOfLine, reason))
}

/// Judges the branch, instruction number `branch`, of a check for `address` that goes to
/// `target`. `state` is that before the branch.
pub fn confirm(
    image: &Image<'_>,
    disassembly: &Disassembly,
    state: &State,
    branch: u32,
    target: u32,
    address: Name,
) -> Result<Miss, Broken> {
    let Some((translate, v)) = translation(disassembly, branch) else {
        return broken("the check's branch is not followed by the translation");
    };
    let after = disassembly.next(translate);
    if skips_prefetch(disassembly, after, v, target) {
        return Ok(Miss::Skip);
    }
    let holds = state.get(v).name == Some(address);
    let call = if holds {
        Some(target)
    } else {
        disassembly.next(target)
    };
    if !holds && !same_address(image, disassembly, state, target, v, address) {
        return broken("the out-of-line part does not begin with the address that is checked");
    }
    let slow = call.and_then(|call| Some((call, disassembly.get(call)?.op)));
    let Some((call, Op::Call(BranchTarget::Routine(Routine::Slow(r))))) = slow else {
        return broken("the out-of-line part does not call the slow path");
    };
    if r != v {
        return broken("the slow path is called for another register");
    }
    let jump = disassembly
        .next(call)
        .and_then(|jump| Some((jump, disassembly.get(jump)?.op)));
    match jump {
        Some((last, Op::Jump(BranchTarget::Insn(back)))) if Some(back) == after => Ok(Miss::Slow {
            first: target,
            last,
        }),
        _ => broken("the out-of-line part does not return to the instruction after the check"),
    }
}

/// The instruction after the branch, if it translates, and what register.
fn translation(disassembly: &Disassembly, branch: u32) -> Option<(u32, Gpr)> {
    let n = disassembly.next(branch)?;
    match disassembly.get(n)?.op {
        Op::Table {
            read: TableRead {
                half: Half::Xlate, ..
            },
            r,
            ..
        } => Some((n, r)),
        _ => None,
    }
}

//      prefetch (%v)
// .Lskip:
fn skips_prefetch(disassembly: &Disassembly, after: Option<u32>, v: Gpr, target: u32) -> bool {
    let prefetch = after.and_then(|n| Some((n, disassembly.get(n)?)));
    prefetch.is_some_and(|(n, insn)| {
        matches!(insn.op, Op::Prefetch)
            && insn.memory.access != Access::None
            && insn.memory.base == v
            && disassembly.next(n) == Some(target)
    })
}

/// Whether instruction `copy` gives `v` the value of `address` again.
fn same_address(
    image: &Image<'_>,
    disassembly: &Disassembly,
    state: &State,
    copy: u32,
    v: Gpr,
    address: Name,
) -> bool {
    let (Some(made), Some(again)) = (
        disassembly.get(address.instruction()),
        disassembly.get(copy),
    ) else {
        return false;
    };
    let same_inputs = match made.op {
        Op::Copy { d, s } => d == v && state.get(s).name == Some(address),
        Op::Lea { d, .. } | Op::Constant { d, .. } => {
            d == v && state.again.is_some_and(|a| a.name == address)
        }
        _ => false,
    };
    same_inputs && same_bytes(image, made, again)
}

fn same_bytes(image: &Image<'_>, a: &Insn, b: &Insn) -> bool {
    // A distance from elsewhere leads elsewhere, unless the operand counts from there, too.
    let moves = |bytes: &[u8]| match a.relocated {
        true => relocations(image, a).any(|r| r.kind == R_X86_64_PC64),
        false => relative_lea(bytes).is_some(),
    };
    image
        .bytes(a)
        .is_some_and(|a| Some(a) == image.bytes(b) && !moves(a))
        && a.relocated == b.relocated
        && (!a.relocated || relocations(image, a).eq(relocations(image, b)))
}

/// The relocations in an instruction, as seen from its start.
fn relocations<'o>(image: &Image<'o>, insn: &Insn) -> impl Iterator<Item = Relocation> + use<'o> {
    let start = u64::from(insn.at);
    image.relocations(insn).map(move |r| Relocation {
        offset: r.offset - start,
        ..*r
    })
}
