//! Writes above a function's return address: to arguments, which are in the frame of the
//! caller (target `linux`; psABI 3.2.2).
//!
//! A function may write there, as compilers do with parameters on the stack. The
//! verifier knows the callers in this object: each must have room above `rsp` at the
//! call, up to its own return address. If the callee may write words in which the caller
//! keeps addresses of its frame, all code is interpreted once more, and these words are
//! forgotten at the call. Callers outside of the object, and indirect calls, whose
//! targets are unknown, are assumed to pass the declared arguments.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use crate::domain::{Form, State};
use crate::findings::ViolationCode;
use crate::insn::{Access, BranchTarget, Disassembly, Insn, Op};
use crate::kernel::Patches;
use crate::rules::Broken;

/// Bytes of the return address.
const RETURN: i64 = 8;

/// Writes to arguments and calls found, by instruction number.
#[derive(Default)]
pub struct Arguments {
    /// How far above the return address an instruction writes, in bytes.
    written: BTreeMap<u32, i64>,
    /// Direct calls of functions in this object, with the room in each caller's frame.
    calls: BTreeMap<u32, Call>,
}

/// A direct call.
struct Call {
    callee: u32,
    /// Bytes from `rsp` up to the return address.
    room: i64,
    /// Bytes from `rsp` up to the first word with an address of the frame.
    followed: i64,
}

/// For an instruction, how many bytes above the return address may be written from there
/// to the function's end; no entry if none.
pub type ArgumentWrites = HashMap<u32, i64>;

impl Arguments {
    /// Looks at an instruction and the facts before it.
    pub fn note(&mut self, n: u32, insn: &Insn, state: &State) {
        if let Op::Call(BranchTarget::Insn(callee)) = insn.op {
            let (room, followed) = state.room();
            let call = Call {
                callee,
                room,
                followed,
            };
            self.calls.insert(n, call);
        }
        if insn.memory.access == Access::Write
            && let Some(at) = state.frame_place(&insn.memory)
        {
            let start = match (at, state.realigned) {
                (Form::Stack(at), _) => i64::from(at),
                (Form::Aligned(at), Some(from)) => i64::from(at) + i64::from(from),
                _ => return,
            };
            let above = start + i64::from(insn.memory.size) - RETURN;
            if above > 0 {
                self.written.insert(n, above);
            }
        }
    }

    /// Whether a callee may write words that its caller follows.
    pub fn reach_followed(&self, written: &ArgumentWrites) -> bool {
        let most = |call: &Call| written.get(&call.callee).copied();
        self.calls
            .values()
            .any(|call| most(call).is_some_and(|above| above > call.followed))
    }

    /// Calls of functions that write more than the caller has room for.
    pub fn exceeded(&self, written: &ArgumentWrites) -> Vec<(u32, Broken)> {
        let most = |call: &Call| written.get(&call.callee).copied();
        let short = self
            .calls
            .iter()
            .filter(|(_, call)| most(call).is_some_and(|above| above > call.room));
        let reason = "the callee may write its arguments over the return address";
        short
            .map(|(&n, _)| (n, (ViolationCode::ReturnSlot, reason.into())))
            .collect()
    }

    /// The writes of functions. Found backwards from the largest write down, so that each
    /// instruction is visited once.
    pub fn written(&self, disassembly: &Disassembly, patches: &Patches) -> ArgumentWrites {
        let mut most = HashMap::new();
        if self.written.is_empty() {
            return most;
        }
        let mut before: HashMap<u32, Vec<u32>> = HashMap::new();
        for n in 0..disassembly.insns.len() as u32 {
            for to in ways(disassembly, patches, n) {
                before.entry(to).or_default().push(n);
            }
        }
        let mut order: Vec<(i64, u32)> = self.written.iter().map(|(&n, &a)| (a, n)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        for (above, n) in order {
            let mut work = vec![n];
            while let Some(n) = work.pop() {
                if let Entry::Vacant(first) = most.entry(n) {
                    first.insert(above);
                    work.extend(before.get(&n).into_iter().flatten());
                }
            }
        }
        most
    }
}

/// Where control may go from instruction `n` within the same frame, or out of it by
/// a tail call.
fn ways(disassembly: &Disassembly, patches: &Patches, n: u32) -> Vec<u32> {
    let op = disassembly.insns[n as usize].op;
    let mut ways: Vec<u32> = match op {
        Op::Jump(BranchTarget::Insn(to)) | Op::Branch(_, BranchTarget::Insn(to)) => vec![to],
        _ => Vec::new(),
    };
    let stops = matches!(op, Op::Jump(_) | Op::JumpIndirect(_) | Op::Ret | Op::Stop);
    let warns = patches.warns.contains(&n);
    ways.extend(disassembly.next(n).filter(|_| !stops || warns));
    let listed = [&patches.before, &patches.instead].map(|list| list.get(&n));
    ways.extend(listed.into_iter().flatten().flatten());
    ways.extend(patches.fixups.get(&n).map(|fixup| fixup.to));
    ways.extend(patches.ends.get(&n));
    ways
}
