//! Writes above a function's return address: to arguments, which are in the frame of the
//! caller (target `linux`; psABI 3.2.2).
//!
//! A function may write there, as compilers do with parameters on the stack. The
//! verifier knows the callers in this object: each must have room above `rsp` at the
//! call, up to its own return address. If the callee may write words in which the caller
//! keeps addresses of its frame, all code is interpreted once more, and these words are
//! forgotten at the call. Callers outside of the object, and indirect calls, whose
//! targets are unknown, are assumed to pass the declared arguments.

use std::collections::BTreeMap;

use crate::domain::{Form, State};
use crate::findings::ViolationCode;
use crate::insn::{Access, BranchTarget, Disassembly, Gpr, Insn, Op};
use crate::kernel::Patches;
use crate::rules::{Broken, unmet};

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

/// How many bytes above the return address may be written from an instruction to the
/// function's end.
#[derive(Default)]
pub struct ArgumentWrites {
    /// By instruction, 0 if none; empty if nothing is written there at all.
    most: Vec<i64>,
}

impl ArgumentWrites {
    /// Those from instruction `n` on, if any.
    pub fn from(&self, n: u32) -> Option<i64> {
        self.most.get(n as usize).copied().filter(|&most| most > 0)
    }
}

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
        let Some((at, size)) = written_in_frame(insn, state) else {
            return;
        };
        let start = match (at.trusted(), state.realigned) {
            (Form::Stack(at), _) => i64::from(at),
            (Form::Aligned(at), Some(from)) => i64::from(at) + i64::from(from),
            _ => return,
        };
        let above = start + i64::from(size) - RETURN;
        if above > 0 {
            self.written.insert(n, above);
        }
    }

    /// Whether a callee may write words that its caller follows.
    pub fn reach_followed(&self, written: &ArgumentWrites) -> bool {
        let most = |call: &Call| written.from(call.callee);
        self.calls
            .values()
            .any(|call| most(call).is_some_and(|above| above > call.followed))
    }

    /// Calls of functions that write more than the caller has room for.
    pub fn exceeded(&self, written: &ArgumentWrites) -> Vec<(u32, Broken)> {
        let most = |call: &Call| written.from(call.callee);
        let short = self
            .calls
            .iter()
            .filter(|(_, call)| most(call).is_some_and(|above| above > call.room));
        let reason = "the callee may write its arguments over the return address";
        short
            .map(|(&n, _)| (n, unmet(ViolationCode::ReturnSlot, reason)))
            .collect()
    }

    /// The writes of functions. Found backwards from the largest write down, so that each
    /// instruction is visited once.
    pub fn written(&self, disassembly: &Disassembly, patches: &Patches) -> ArgumentWrites {
        let mut most = Vec::new();
        if self.written.is_empty() {
            return ArgumentWrites { most };
        }
        most.resize(disassembly.insns.len(), 0);
        let ways = Ways::new(disassembly, patches);
        let mut order: Vec<(i64, u32)> = self.written.iter().map(|(&n, &a)| (a, n)).collect();
        order.sort_unstable_by(|a, b| b.cmp(a));
        let mut work = Vec::new();
        for (above, n) in order {
            work.push(n);
            while let Some(n) = work.pop() {
                let known = &mut most[n as usize];
                if *known == 0 {
                    *known = above;
                    work.extend(ways.to(n));
                }
            }
        }
        ArgumentWrites { most }
    }
}

/// Where in the frame an instruction writes, also by an address that was loaded from it, and how many
/// bytes. Of a copy of user memory, whose
/// count no constant says, it is the first element, as everywhere (`docs/proof/linux.md`, P1).
fn written_in_frame(insn: &Insn, state: &State) -> Option<(Form, u16)> {
    match insn.op {
        Op::String { kind, shift, rep } if kind.writes() => {
            let (from, bytes) = state.extent(shift, rep).unwrap_or((0, 1 << shift));
            Some((state.get(Gpr::RDI).form.moved(from)?, bytes))
        }
        _ if insn.memory.access == Access::Write => {
            Some((state.frame_place(&insn.memory)?, insn.memory.size))
        }
        _ => None,
    }
}

/// No way.
const NONE: u32 = u32::MAX;

/// The ways of control within the same frame, or out of it by a tail call, by where they lead.
/// Nearly all lead to the next instruction; only the others are listed.
struct Ways<'w> {
    disassembly: &'w Disassembly,
    patches: &'w Patches,
    /// For each instruction the last of the listed ways to it, or [`NONE`].
    last: Vec<u32>,
    /// Where a way begins, and the way to the same instruction that was listed before it.
    listed: Vec<(u32, u32)>,
}

impl<'w> Ways<'w> {
    fn new(disassembly: &'w Disassembly, patches: &'w Patches) -> Ways<'w> {
        let mut ways = Ways {
            disassembly,
            patches,
            last: vec![NONE; disassembly.insns.len()],
            listed: Vec::with_capacity(disassembly.branches.len()),
        };
        for &n in &disassembly.branches {
            if let Op::Jump(BranchTarget::Insn(to)) | Op::Branch(_, BranchTarget::Insn(to)) =
                disassembly.insns[n as usize].op
            {
                ways.add(n, to);
            }
        }
        for (&n, to) in patches.before.iter().chain(&patches.instead) {
            to.iter().for_each(|&to| ways.add(n, to));
        }
        for (&n, fixup) in &patches.fixups {
            ways.add(n, fixup.to);
        }
        for (&n, &to) in &patches.ends {
            ways.add(n, to);
        }
        ways
    }

    fn add(&mut self, from: u32, to: u32) {
        let number = self.listed.len() as u32;
        let before = std::mem::replace(&mut self.last[to as usize], number);
        self.listed.push((from, before));
    }

    /// The instructions from which control may come to `n`.
    fn to(&self, n: u32) -> impl Iterator<Item = u32> {
        let mut next = self.last[n as usize];
        let listed = std::iter::from_fn(move || {
            let &(from, before) = self.listed.get(next as usize)?;
            next = before;
            Some(from)
        });
        let before = n.checked_sub(1);
        before
            .filter(|&p| self.continues(p))
            .into_iter()
            .chain(listed)
    }

    /// Whether control may go from an instruction to the next one. From the last one of a replacement it
    /// goes back to the site, not to the replacement that follows.
    fn continues(&self, n: u32) -> bool {
        let op = self.disassembly.insns[n as usize].op;
        let stops = matches!(op, Op::Jump(_) | Op::JumpIndirect(_) | Op::Ret | Op::Stop);
        let goes_back = self.patches.ends.contains_key(&n);
        self.disassembly.next(n).is_some()
            && !goes_back
            && (!stops || self.patches.warns.contains(&n))
    }
}
