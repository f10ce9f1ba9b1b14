//! Live locations of x86 machine code.
//!
//! Which registers and flags may be overwritten at a place of a program without changing what it
//! computes? Those that are not *live* there. This crate finds them for 64-bit machine
//! code. It does not depend on object files or on the rewriter.
//!
//! ```text
//! instructions ──x86──> effects ─┐
//! edges, boundary ───────────────┴─solve──> live-in and live-out sets ──> dead registers
//! ```
//!
//! The effect of an instruction, and what is dead before it when only `rax` and the flags are live
//! after it:
//!
//! ```
//! use liveness::{EffectFinder, LocSet, Reg, dead_registers};
//!
//! // mov 8(%rdi),%eax
//! let code = [0x8b, 0x47, 0x08];
//! let load = iced_x86::Decoder::new(64, &code, 0).decode();
//! let effect = EffectFinder::new().effect(&load);
//!
//! let live_after = LocSet::reg(Reg::RAX).union(LocSet::flags());
//! let live_before = effect.live_before(live_after);
//! assert_eq!(live_before.to_string(), "{rdi, flags}");
//! assert!(dead_registers(live_before).any(|reg| reg == Reg::RAX));
//! ```
//!
//! # The lattice, and why the fixpoint is right
//!
//! The elements are sets of locations ([`LocSet`]) ordered by inclusion: bottom is the empty set,
//! join is union, and with [`Loc::COUNT`] locations no chain has more than that many steps. An
//! instruction maps what is live after it to what is live before it:
//!
//! ```text
//! before = uses ∪ (after − kills)
//! after(last of b) = live_at_exit(b) ∪ ⋃ live_in(s) over the successors s of b
//! ```
//!
//! These functions are monotone, so the equations have a least solution, and evaluating them
//! upwards from the empty sets until nothing changes reaches it in any order: no step can go above
//! a solution, and the chains are finite.
//!
//! Liveness is defined over paths: a location is live at a point iff some path from there comes to
//! a use of it before it comes to a kill, or comes without a kill to an exit whose boundary has it.
//! The functions distribute over union, and for such functions the least fixpoint *is* the union
//! over all paths (Kildall 1973; Kam and Ullman 1977), so nothing is lost by merging
//! where paths meet. Least matters: in a greater solution, a location that is never used would keep
//! itself alive in a loop without exit. [`check`] has the definition over paths as an executable
//! oracle.
//!
//! # What soundness asks of the client
//!
//! A larger `uses`, a smaller `kills`, another edge, a larger boundary: each can only make more
//! locations live. So anything that is not known exactly is rounded that way, and [`x86`] does so
//! for each instruction. The client gives edges and boundaries: every edge that control can take,
//! and the locations that outside code may read wherever control leaves.
//!
//! An edge leaves a block after its last instruction, and so after that instruction's kills. An
//! exception leaves *before* its instruction has written anything. So if a fault resumes somewhere
//! in the program, either the instruction begins a block and the edge starts from the blocks before
//! it, or it ends a block and its effect is given without kills ([`Effect::interruptible`]).

pub mod check;
mod locations;
mod order;
mod solve;
pub mod x86;

pub use locations::{
    Flag, Loc, LocIter, LocSet, Piece, Reg, Registers, WholeRegisters, dead_registers,
};
pub use order::{Predecessors, Sweeps, postorder};
pub use solve::{BlockId, Effect, FlowGraph, InstId, Liveness, solve};
pub use x86::EffectFinder;
