//! What functions of the object do to the frames of functions that call them: arguments on the
//! stack, and what registers point to.
//!
//! A word that a callee reaches is on the data stack, also if it keeps a register there. The
//! places of a callee's frame are counted from its own entry, where `rsp` was 8 less than
//! before the call. What it reaches above the frame of its caller is in the frame of that one's
//! caller, and so on: each step leads further down, so this ends.

use std::ops::Range;

use foldhash::{HashMap, HashSet};
use iced_x86::{Instruction, Mnemonic, Register};
use liveness::{BlockId, LocSet, Reg};

use super::super::contents::FramePlace;
use super::super::facts::Facts;
use super::super::frames::{Frames, Leads};
use super::super::variants::Variant;
use super::uses::{Found, Use, Written};
use crate::analyse::Analysis;
use crate::analyse::classify::WORD;
use crate::analyse::routines;
use crate::asm::Operand;
use crate::lift::{Destination, InstIdx};

/// What functions reach their arguments through.
const FRAME: [Register; 2] = [Register::RSP, Register::RBP];

/// So many places of callers are looked at for each instruction of the object, on average; no
/// module of Debian 12 needs half a place.
const PLACES: usize = 64;

/// What a function does to words above its return address.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Above {
    /// It reaches these bytes.
    Reach(Range<i64>),
    /// It takes the address of this byte.
    Address(i64),
}

impl Above {
    /// The same, so many bytes further up.
    fn plus(&self, by: i64) -> Above {
        match self {
            Above::Reach(bytes) => Above::Reach(bytes.start + by..bytes.end + by),
            Above::Address(at) => Above::Address(at + by),
        }
    }

    /// The part that is above the return address.
    fn clipped(&self) -> Option<Above> {
        match self {
            Above::Reach(bytes) if bytes.end > WORD => {
                Some(Above::Reach(bytes.start.max(WORD)..bytes.end))
            }
            Above::Address(at) if *at >= WORD => Some(self.clone()),
            Above::Reach(_) | Above::Address(_) => None,
        }
    }
}

/// An operand relative to a register that its function has not written.
struct Through {
    register: Reg,
    bytes: Range<i64>,
}

/// A call of a function of the object.
struct Call {
    inst: InstIdx,
    variant: Variant,
    from: usize,
    to: usize,
    /// What is added to a place of the callee's frame to have it in the caller's.
    shift: i64,
    /// The registers that point into the caller's frame.
    pointers: Vec<(Reg, i64)>,
}

/// All calls, and what callees do.
#[derive(Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// By frame.
    above: HashMap<usize, HashSet<Above>>,
    /// By frame.
    through: HashMap<usize, Vec<Through>>,
}

impl Calls {
    /// Takes in an instruction.
    pub fn add(
        &mut self,
        analysis: &Analysis<'_>,
        frames: &Frames,
        (i, frame, variant): (InstIdx, usize, Variant),
        facts: &Facts,
    ) {
        let lifted = analysis.lifted;
        let inst = lifted.inst(i);
        let Some(Destination::Inst(target)) = inst.target else {
            return;
        };
        let Some(FramePlace(rsp)) = facts.stack_pointer() else {
            return;
        };
        if routines::is_call(&inst.iced) {
            let pointers = facts.pointers().filter(|(r, _)| *r != Reg::RSP);
            self.calls.push(Call {
                inst: i,
                variant,
                from: frame,
                to: frames.of(analysis.flow.block_of(target)),
                shift: rsp - WORD,
                pointers: pointers.collect(),
            });
        }
    }

    /// Takes in what an instruction does to the frame, or above it.
    pub fn add_use(&mut self, frame: usize, iced: &Instruction, facts: &Facts, used: &Use) {
        let above = match used {
            // `lea` reaches nothing; it takes an address, or keeps it in a register.
            Use::Reach(_) if iced.mnemonic() == Mnemonic::Lea => return,
            // Through other registers it may be a member of a list, or another type of object.
            Use::Reach(_) if !FRAME.contains(&iced.memory_base()) => return,
            Use::Reach(bytes) => Above::Reach(bytes.clone()),
            Use::Address(at) => Above::Address(*at),
            _ => return,
        };
        if let Some(above) = above.clipped().filter(|_| is_certain(used, iced, facts)) {
            self.above.entry(frame).or_default().insert(above);
        }
    }

    /// Finds the operands of callees that registers of their callers lead to, and what
    /// functions do by way of those that they call or jump to.
    ///
    /// # Errors
    /// A call where there are too many, so that memory and time are bounded.
    pub fn solve(
        &mut self,
        analysis: &Analysis<'_>,
        written: &Written<'_>,
        frames: &Frames,
    ) -> Result<(), InstIdx> {
        let pointed: HashSet<usize> = self
            .calls
            .iter()
            .filter(|call| !call.pointers.is_empty())
            .map(|call| call.to)
            .collect();
        let (lifted, flow) = (analysis.lifted, &analysis.flow);
        for (block, insts) in (0..).map(BlockId).zip(flow.blocks()) {
            if pointed.contains(&frames.of(block)) {
                self.find_through(analysis, written, frames.of(block), insts.clone());
            }
        }
        let jumps = flow.nodes().flat_map(|from| {
            let edges = frames.edges(flow, from);
            let away = edges.filter(|(_, leads)| *leads == Leads::Away);
            away.map(move |(to, _)| (frames.of(from), frames.of(to), 0))
        });
        let mut left = PLACES * (WORD as usize + lifted.insts.len());
        self.reach_callers(jumps.collect(), &mut left);
        for call in &self.calls {
            let above = self.above.get(&call.to).map_or(0, HashSet::len);
            let through = self.through.get(&call.to).map_or(0, Vec::len);
            spend(&mut left, above + through * call.pointers.len());
            if left == 0 {
                return Err(call.inst);
            }
        }
        Ok(())
    }

    /// Hands what functions do above their frames on to those that call or jump to them, until
    /// nothing is `left` to spend.
    fn reach_callers(&mut self, jumps: Vec<(usize, usize, i64)>, left: &mut usize) {
        let mut callers: HashMap<usize, HashSet<(usize, i64)>> = HashMap::default();
        let calls = self
            .calls
            .iter()
            .map(|call| (call.from, call.to, call.shift));
        for (from, to, shift) in calls.chain(jumps) {
            callers.entry(to).or_default().insert((from, shift));
        }
        let all = self.above.iter();
        let all = all.flat_map(|(frame, above)| above.iter().map(|a| (*frame, a.clone())));
        let mut new: Vec<(usize, Above)> = all.collect();
        while let Some((callee, above)) = new.pop() {
            let callers = callers.get(&callee);
            spend(left, callers.map_or(0, HashSet::len));
            if *left == 0 {
                return;
            }
            for (from, shift) in callers.into_iter().flatten() {
                if let Some(above) = above.plus(*shift).clipped()
                    && self.above.entry(*from).or_default().insert(above.clone())
                {
                    new.push((*from, above));
                }
            }
        }
    }

    fn find_through(
        &mut self,
        analysis: &Analysis<'_>,
        written: &Written<'_>,
        frame: usize,
        insts: Range<u32>,
    ) {
        for i in insts.map(InstIdx) {
            let iced = &analysis.lifted.inst(i).iced;
            let size = iced.memory_size().size() as i64;
            if size == 0 || iced.mnemonic() == Mnemonic::Lea {
                continue;
            }
            let Some((register, at)) = Operand::of(iced).simple() else {
                continue;
            };
            let is_own = written.before(i).intersects(LocSet::reg(register));
            if register != Reg::RSP && !is_own {
                self.through.entry(frame).or_default().push(Through {
                    register,
                    bytes: at..at + size,
                });
            }
        }
    }

    /// What calls do to the words of one variant. Gives the calls of functions that reach
    /// their caller's return address.
    pub fn apply(&self, variant: Variant, found: &mut Found) -> Vec<InstIdx> {
        let mut refused = Vec::new();
        let reached = |bytes: &Range<i64>| bytes.start < WORD && bytes.end > 0;
        // They were added variant by variant.
        let first = self.calls.partition_point(|call| call.variant < variant);
        let calls = self.calls[first..].iter();
        for call in calls.take_while(|call| call.variant == variant) {
            let frame = call.from;
            for above in self.above.get(&call.to).into_iter().flatten() {
                match above.plus(call.shift) {
                    Above::Reach(bytes) if reached(&bytes) => refused.push(call.inst),
                    Above::Reach(bytes) => found.add(frame, call.inst, Use::Reach(bytes)),
                    Above::Address(at) if at < 0 => {
                        found.add(frame, call.inst, Use::Address(at));
                    }
                    Above::Address(_) => {}
                }
            }
            for (register, at) in &call.pointers {
                let through = self.through.get(&call.to).into_iter().flatten();
                for Through { bytes, .. } in through.filter(|t| t.register == *register) {
                    let bytes = bytes.start + at..bytes.end + at;
                    // What an argument points to has the type that other arguments say, perhaps.
                    // A frame pointer is none.
                    let is_at = (0..WORD).contains(at) || *register == Reg::RBP;
                    match reached(&bytes) && is_at {
                        true => refused.push(call.inst),
                        false => found.add(frame, call.inst, Use::Reach(bytes)),
                    }
                }
            }
        }
        refused.sort_unstable();
        refused.dedup();
        refused
    }
}

/// Whether it does not depend on what a word of the frame holds that others may write: of an operand
/// its base tells where it is, whatever is stored there; of an address what it is copied from.
fn is_certain(used: &Use, iced: &Instruction, facts: &Facts) -> bool {
    let is_computed = iced.memory_index() != Register::None || iced.mnemonic() == Mnemonic::Lea;
    let from = match used {
        Use::Address(_) if !is_computed => iced.op1_register(),
        _ => iced.memory_base(),
    };
    !facts.is_loaded(from)
}

fn spend(left: &mut usize, places: usize) {
    *left = left.saturating_sub(places);
}
