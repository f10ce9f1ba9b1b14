//! Indirect calls by a convention of the code's own: after them a register is read that the
//! psABI lets callees change.
//!
//! ```text
//!         lea   __camellia_enc_blk16(%rip), %r9
//!         ...
//!         call  *%r9
//!         vpxor (%rsi), %xmm7, %xmm7        (arch/x86/crypto of Linux 5.10)
//! ```
//!
//! Compilers write no such code. What is called is not followed, so in an object that has it any
//! function may keep each register for its caller, and read it.

use foldhash::HashMap;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind};
use liveness::{BlockId, FlowGraph, InstId, LocSet, Reg};

use crate::analyse::flow::{Exit, Flow};
use crate::analyse::routines;
use crate::analyse::survey::Survey;
use crate::lift::{Destination, InstIdx, Lifted};

/// What callees may change (psABI 3.2.1), apart from what they return.
const CHANGED: [Reg; 7] = [
    Reg::RCX,
    Reg::RSI,
    Reg::RDI,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
];

/// The first such call.
pub fn call(
    lifted: &Lifted<'_>,
    flow: &Flow,
    exits: &[Exit],
    surveys: &[Survey],
) -> Option<InstIdx> {
    let mut walk = Walk {
        lifted,
        flow,
        exits,
        surveys,
        seen: HashMap::default(),
    };
    let all = CHANGED
        .iter()
        .fold(LocSet::empty(), |set, r| set.union(LocSet::reg(*r)));
    let mut insts = lifted.transfers.iter().copied();
    let leaves = |i: InstIdx| exits[i.0 as usize] == Exit::CallOut;
    insts.find(|i| leaves(*i) && is_by_register(lifted, *i) && walk.reads_behind(*i, all))
}

/// Whether a call goes where a register says, perhaps through a thunk.
fn is_by_register(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let inst = lifted.inst(i);
    match (inst.iced.flow_control(), inst.target) {
        (FlowControl::IndirectCall, _) => inst.iced.op0_kind() == OpKind::Register,
        (FlowControl::Call, Some(Destination::Import(s))) => {
            routines::indirect_thunk(lifted.symbol_name(s)).is_some()
        }
        _ => false,
    }
}

/// Whether what it writes does not depend on the register that it names: the short forms of
/// compilers for -1 and 0, and all bits as the carry flag is.
fn sets_constant(iced: &Instruction) -> bool {
    let registers = iced.op_count() == 2 && iced.op0_kind() == OpKind::Register;
    let value = || iced.try_immediate(1).ok();
    registers
        && match iced.mnemonic() {
            Mnemonic::Or => value() == Some(u64::MAX),
            Mnemonic::And => value() == Some(0),
            Mnemonic::Sbb => {
                iced.op1_kind() == OpKind::Register && iced.op0_register() == iced.op1_register()
            }
            _ => false,
        }
}

struct Walk<'w> {
    lifted: &'w Lifted<'w>,
    flow: &'w Flow,
    exits: &'w [Exit],
    surveys: &'w [Survey],
    /// Registers that are known not to be read from a block on.
    seen: HashMap<BlockId, LocSet>,
}

impl Walk<'_> {
    /// Whether one of the registers is read after an instruction, before anything writes it or
    /// another call may.
    fn reads_behind(&mut self, i: InstIdx, registers: LocSet) -> bool {
        let block = self.flow.block_of(i);
        let end = self.flow.blocks()[block.0 as usize].end;
        let mut work = Vec::new();
        match self.pass(i.0 + 1..end, registers) {
            None => return true,
            Some(rest) => work.push((block, rest)),
        }
        while let Some((from, rest)) = work.pop() {
            for &to in self.flow.continuations(from) {
                let seen = self.seen.entry(to).or_insert(LocSet::empty());
                let new = rest.minus(*seen);
                if new.is_empty() {
                    continue;
                }
                *seen = seen.union(new);
                match self.pass(self.flow.instructions(to), new) {
                    None => return true,
                    Some(rest) => work.push((to, rest)),
                }
            }
        }
        false
    }

    /// Those of the registers that instructions neither read nor write; `None` if one is read.
    fn pass(&self, insts: std::ops::Range<u32>, registers: LocSet) -> Option<LocSet> {
        let mut rest = registers;
        for i in insts {
            match self.exits[i as usize] {
                Exit::Next | Exit::Jump { .. } | Exit::Table => {}
                // The psABI holds for these.
                Exit::CallLocal(_)
                | Exit::CallOut
                | Exit::CallStop
                | Exit::TailOut
                | Exit::Return
                | Exit::Stop => return Some(LocSet::empty()),
            }
            let survey = &self.surveys[i as usize];
            // A WARN and `in` count as reading more than they name.
            let named = rest.minus(LocSet::registers().minus(survey.named()));
            let sets = sets_constant(&self.lifted.insts[i as usize].iced);
            if !sets && self.flow.effect(InstId(i)).uses.intersects(named) {
                return None;
            }
            // Of a register in which they write a part, compilers may copy the rest.
            rest = rest.minus(survey.written());
            if rest.is_empty() {
                break;
            }
        }
        Some(rest)
    }
}
