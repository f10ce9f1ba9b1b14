//! The liveness effects of calls, tail calls and returns. They follow the psABI; the
//! few routines that do not are listed in [`crate::analyse::routines`].

use foldhash::{HashMap, HashSet};
use iced_x86::{FlowControl, Instruction, Mnemonic};
use liveness::{Effect, Flag, LocSet, Reg};

use crate::analyse::flow::balance::ReturnsTo;
use crate::analyse::flow::{Conventions, Exit, Handler, Hints};
use crate::analyse::routines::{self, Convention};
use crate::lift::{Destination, InstIdx, Lifted};

/// Arguments of a call: the six integer registers, and `al` for a variadic
/// callee (psABI 3.2.3).
const ARGUMENTS: [Reg; 7] = [
    Reg::RDI,
    Reg::RSI,
    Reg::RDX,
    Reg::RCX,
    Reg::R8,
    Reg::R9,
    Reg::RAX,
];

/// Kept by a callee for its caller (psABI 3.2.1), and the stack pointer.
const CALLEE_SAVED: [Reg; 7] = [
    Reg::RBX,
    Reg::RSP,
    Reg::RBP,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

/// The registers that a callee keeps for its caller (psABI 3.2.1), the stack pointer among them.
pub fn callee_saved() -> LocSet {
    set(&CALLEE_SAVED)
}

fn set(regs: &[Reg]) -> LocSet {
    regs.iter()
        .fold(LocSet::empty(), |s, &r| s.union(LocSet::reg(r)))
}

/// What the effect of an instruction depends on, beside the instruction.
pub struct Context<'c> {
    /// Indices of the instructions that may not take effect before control leaves them.
    pub skipped: &'c HashSet<u32>,
    /// What handlers of their faults do.
    pub handlers: &'c HashMap<u32, Handler>,
    /// Functions that may be replaced.
    pub hints: &'c Hints,
    /// What functions and calls may do to registers.
    pub conventions: Conventions,
    /// Whether an indirect call may be one of Xen.
    pub hypercalls: bool,
}

/// The effect of an instruction that continues as `exit` says, given its effect `alone`.
pub fn effect(
    lifted: &Lifted<'_>,
    i: InstIdx,
    alone: Effect,
    exit: &Exit,
    context: &Context<'_>,
) -> Effect {
    let inst = lifted.inst(i);
    let conventions = context.conventions;
    let mut effect = match exit {
        Exit::CallOut | Exit::CallStop | Exit::TailOut if conventions == Conventions::Any => {
            Effect {
                uses: alone.uses.union(everything()),
                kills: LocSet::empty(),
            }
        }
        Exit::CallOut | Exit::CallStop => call_effect(lifted, inst.target, &inst.iced, alone),
        // The callee's own instructions say what a local call reads.
        Exit::CallLocal(_) | Exit::Return => Effect {
            uses: LocSet::reg(Reg::RSP),
            kills: LocSet::empty(),
        },
        // The destination takes what a call of it would: a thunk, its register.
        // It returns for the code here, which may keep for its caller all that the destination
        // keeps.
        Exit::TailOut => {
            let called = call_effect(lifted, inst.target, &inst.iced, alone);
            let own = alone.uses.union(called.uses);
            Effect {
                uses: match convention(lifted, inst.target) {
                    Convention::C | Convention::IndirectThunk(_) => {
                        own.union(set(&ARGUMENTS)).union(set(&CALLEE_SAVED))
                    }
                    Convention::KeepsAll | Convention::Private | Convention::Hypercall => {
                        own.union(everything())
                    }
                },
                ..alone
            }
        }
        // A signal's handler, or a tool, sees them all.
        Exit::Next
            if conventions == Conventions::Any
                && (is_trap(&inst.iced) || context.hints.markers.contains(&i.0)) =>
        {
            Effect {
                uses: everything(),
                kills: LocSet::empty(),
            }
        }
        // A trap only passes its address to the runtime.
        Exit::Next | Exit::Stop if is_trap(&inst.iced) => Effect::NONE,
        // That it goes to a label is not proved: it may be a tail call as well.
        Exit::Table if conventions == Conventions::Any => Effect {
            uses: alone.uses.union(everything()),
            ..alone
        },
        Exit::Table => Effect {
            uses: alone.uses.union(thunk_register(lifted, inst.target)),
            ..alone
        },
        Exit::Next | Exit::Jump { .. } | Exit::Stop => alone,
    };
    if let Exit::CallLocal(to) | Exit::Jump { to, .. } = exit
        && context.hints.replaceable.contains(&to.0)
    {
        effect.uses = effect.uses.union(match conventions {
            Conventions::Psabi => set(&ARGUMENTS),
            Conventions::Any => everything(),
        });
    }
    if context.hypercalls && *exit == Exit::CallOut && is_indirect(lifted, i) {
        effect.uses = effect.uses.union(LocSet::reg(Reg::R10));
        effect.kills = LocSet::empty();
    }
    if context.skipped.contains(&i.0) {
        effect.kills = LocSet::empty();
    }
    if let Some(handler) = context.handlers.get(&i.0) {
        effect.uses = effect.uses.union(handler.reads);
    }
    effect
}

/// Whether a call goes where a register or a word says, perhaps through a thunk.
fn is_indirect(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let inst = lifted.inst(i);
    inst.iced.flow_control() == FlowControl::IndirectCall
        || !thunk_register(lifted, inst.target).is_empty()
}

/// The register that a jump through a thunk reads.
fn thunk_register(lifted: &Lifted<'_>, target: Option<Destination>) -> LocSet {
    match target {
        Some(Destination::Import(s)) => {
            routines::indirect_thunk(lifted.symbol_name(s)).map_or(LocSet::empty(), LocSet::reg)
        }
        _ => LocSet::empty(),
    }
}

/// What a routine with a private convention may read: all registers but r10 and r11,
/// which compilers and linkers overwrite around calls.
fn private_uses() -> LocSet {
    LocSet::registers().minus(set(&[Reg::R10, Reg::R11]))
}

/// The convention of what a call or tail call goes to.
fn convention(lifted: &Lifted<'_>, target: Option<Destination>) -> Convention {
    match target {
        Some(Destination::Import(s)) => routines::convention(lifted.symbol_name(s)),
        Some(Destination::Hypercall(..)) => Convention::Hypercall,
        Some(Destination::Inst(_) | Destination::Behind(_)) | None => Convention::C,
    }
}

fn is_trap(iced: &Instruction) -> bool {
    matches!(
        iced.mnemonic(),
        Mnemonic::Ud0 | Mnemonic::Ud1 | Mnemonic::Ud2 | Mnemonic::Int3
    )
}

/// What a call out of the object reads and certainly overwrites. Of the registers that
/// the psABI lets the callee clobber, r10 and r11 are overwritten by the code between
/// caller and callee ([`crate::plan`]). The others count neither as read nor as
/// overwritten: no compiler reads them afterwards, and a routine with a private
/// convention may keep them.
fn call_effect(
    lifted: &Lifted<'_>,
    target: Option<Destination>,
    iced: &Instruction,
    alone: Effect,
) -> Effect {
    let rsp = LocSet::reg(Reg::RSP);
    match convention(lifted, target) {
        Convention::KeepsAll => Effect {
            uses: rsp,
            kills: LocSet::empty(),
        },
        Convention::Private => Effect {
            uses: private_uses(),
            kills: LocSet::empty(),
        },
        Convention::Hypercall => Effect {
            uses: LocSet::registers(),
            kills: LocSet::empty(),
        },
        Convention::IndirectThunk(register) => Effect {
            uses: set(&ARGUMENTS).union(rsp).union(LocSet::reg(register)),
            kills: set(&[Reg::RAX, Reg::R10, Reg::R11]),
        },
        // A call through memory may be one of pv_ops, whose callees keep more
        // than the psABI asks for.
        Convention::C if iced.flow_control() == FlowControl::IndirectCall => Effect {
            uses: alone.uses.union(set(&ARGUMENTS)).union(rsp),
            kills: LocSet::empty(),
        },
        Convention::C => Effect {
            uses: set(&ARGUMENTS).union(rsp),
            kills: set(&[Reg::RAX, Reg::R10, Reg::R11]),
        },
    }
}

/// Live at a return: the locations that the caller may read, or the code that a return
/// elsewhere leads to.
pub fn live_at_return(last: &Instruction, returns: ReturnsTo, conventions: Conventions) -> LocSet {
    // Where the psABI holds, a return after an epilogue that is not followed here
    // (`lea -8(%r10),%rsp`) is one all the same: code that makes another stack its own, as a
    // switch of contexts does, resumes after a call. `iret` goes to code that was interrupted.
    let from_call = matches!(last.mnemonic(), Mnemonic::Ret | Mnemonic::Jmp);
    match (returns, conventions) {
        (ReturnsTo::ToCaller | ReturnsTo::Anywhere, Conventions::Psabi) if from_call => {
            set(&CALLEE_SAVED)
                .union(LocSet::reg(Reg::RAX))
                .union(LocSet::reg(Reg::RDX))
                .union(LocSet::flag(Flag::Direction))
        }
        _ => everything(),
    }
}

/// All registers, and the direction flag. No convention passes the other flags.
fn everything() -> LocSet {
    LocSet::registers().union(LocSet::flag(Flag::Direction))
}
