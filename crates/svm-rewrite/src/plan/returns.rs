//! Where a function copies its return address, and where it compares it with the copy
//! (target `hypervisor`).
//!
//! The return address is on the driver's own stack, which the driver can reach by
//! pointer. So a function stores a copy where no pointer leads
//! (`twin_abi::stack::SHADOW`) and compares the two before it leaves. Redundant code is
//! omitted: a place that no write by pointer and no call comes before needs no
//! comparison, and a function without comparisons makes no copy.
//!
//! Two data-flow problems over the blocks of one invocation:
//!
//! * *Forward*: is the return word certainly unchanged? Yes at an entry; no after a write
//!   by pointer or a call; yes again after each place that compares. Where paths meet,
//!   the answer must be yes on all.
//! * *Backward*: does a comparison follow? Then the copy must have been made, at each
//!   entry from which a path leads there.
//!
//! A jump to the beginning of another function leaves the invocation. That function
//! trusts the word as it is, so the word is compared before the jump. A jump to the
//! function's own beginning stays in the invocation and goes to the place after the copy
//! is made.

use foldhash::{HashMap, HashSet};
use iced_x86::{FlowControl, Mnemonic};
use liveness::{BlockId, LocSet, Reg};

use crate::analyse::class::Class;
use crate::analyse::codemap::Codemap;
use crate::analyse::flow::{Edges, Flow};
use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::{Branch, Jump};
use crate::lift::{Destination, FuncIdx, InstIdx, Lifted};
use crate::plan::InstPlan;

/// The register that a sequence uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// Its value is not read.
    Dead(Reg),
    /// It is live: pushed before and popped after.
    Spilled(Reg),
}

/// What is done about a word that may have been overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// It is compared; if it was overwritten, the invocation is aborted.
    Compare,
    /// It is written again from the copy, where the flags are live.
    Restore,
}

/// The sequence before a place that leaves the invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReturnCheck {
    /// What is done.
    pub remedy: Remedy,
    /// By which register.
    pub holder: Holder,
}

/// Where return addresses are kept and compared, by the index of instructions.
#[derive(Debug, Default)]
pub struct ReturnWords {
    keeps: HashMap<u32, Holder>,
    checks: HashMap<u32, ReturnCheck>,
    falls: HashMap<u32, ReturnCheck>,
}

impl ReturnWords {
    /// The register through which the address is copied at an entry, if it is copied.
    pub fn kept_at(&self, entry: InstIdx) -> Option<Holder> {
        self.keeps.get(&entry.0).copied()
    }

    /// What is done about the return address at an instruction, in words for reports.
    pub fn at(&self, i: InstIdx) -> Vec<&'static str> {
        let kept = self.kept_at(i).map(|_| "kept");
        let checked = self.check_before(i).map(|check| match check.remedy {
            Remedy::Compare => "compared",
            Remedy::Restore => "restored",
        });
        kept.into_iter().chain(checked).collect()
    }

    /// The sequence before an instruction that leaves the invocation, if there is one.
    pub fn check_before(&self, i: InstIdx) -> Option<ReturnCheck> {
        self.checks.get(&i.0).copied()
    }

    /// The sequence before an entry that control runs into from above, if there is one.
    pub fn check_above(&self, entry: InstIdx) -> Option<ReturnCheck> {
        self.falls.get(&entry.0).copied()
    }
}

/// The input of the analysis of return addresses.
pub struct Input<'a> {
    /// The code.
    pub lifted: &'a Lifted<'a>,
    /// The survey of each instruction.
    pub surveys: &'a [Survey],
    /// Where control goes.
    pub flow: &'a Flow,
    pub plans: &'a [InstPlan],
    /// Live locations before each.
    pub live_before: &'a [LocSet],
    /// Code addresses that data may hold.
    pub codemap: &'a Codemap,
}

/// Finds where return addresses are kept and compared.
pub fn plan(input: &Input<'_>) -> ReturnWords {
    let entries = input.entries();
    let paths = Paths::find(input, &entries);
    let intact = paths.intact_before();
    let needs = paths.needs_copy(&intact);
    let mut words = ReturnWords::default();
    for (n, insts) in (0..).zip(input.flow.blocks()) {
        let last = InstIdx(insts.end - 1);
        if paths.leaves[n] && !paths.intact_at_end(n, intact[n]) {
            let check = check(input.plans[last.0 as usize].live);
            words.checks.insert(last.0, check);
        }
        let first = InstIdx(insts.start);
        let live = input.live_before[first.0 as usize];
        if entries.contains(&first.0) && needs[n] {
            words.keeps.insert(first.0, holder(live));
        }
        if let Some(above) = paths.above[n]
            && !paths.intact_behind(above, intact[above])
        {
            words.falls.insert(first.0, check(live));
        }
    }
    words
}

fn check(live: LocSet) -> ReturnCheck {
    let remedy = match live.intersects(LocSet::flags()) {
        true => Remedy::Restore,
        false => Remedy::Compare,
    };
    ReturnCheck {
        remedy,
        holder: holder(live),
    }
}

/// The register for a sequence: one that calls overwrite anyway, preferably one that
/// carries no argument.
fn holder(live: LocSet) -> Holder {
    const PREFERENCE: [Reg; 9] = [
        Reg::R11,
        Reg::R10,
        Reg::RAX,
        Reg::RCX,
        Reg::RDX,
        Reg::RSI,
        Reg::RDI,
        Reg::R8,
        Reg::R9,
    ];
    let dead = PREFERENCE
        .into_iter()
        .find(|r| !live.intersects(LocSet::reg(*r)));
    dead.map_or(Holder::Spilled(Reg::RAX), Holder::Dead)
}

impl Input<'_> {
    /// The instructions that a `call` leads to: beginnings of functions, and other
    /// targets of calls.
    fn entries(&self) -> HashSet<u32> {
        let lifted = self.lifted;
        let functions = (0..lifted.functions.len() as u32).map(FuncIdx);
        let begins = functions.filter_map(|f| {
            let function = lifted.function(f);
            let place = (function.section, function.start);
            let known =
                function.has_symbol && lifted.is_entered(f) || self.codemap.contains(&place);
            (known && !function.padding).then_some(function.insts.start)
        });
        let called =
            lifted
                .insts
                .iter()
                .filter_map(|inst| match (inst.iced.flow_control(), inst.target) {
                    (FlowControl::Call, Some(Destination::Inst(to))) => Some(to.0),
                    _ => None,
                });
        begins.chain(called).collect()
    }

    /// Whether the sequence of an instruction may write through a pointer, or calls code
    /// that may.
    fn may_write(&self, i: u32) -> bool {
        let written = self.surveys[i as usize].memory == MemoryEffect::Written;
        match self.plans[i as usize].class {
            Class::Plain
            | Class::Stack
            | Class::Drop
            | Class::Unreached(_)
            | Class::Prefetch(_)
            | Class::Xlat
            | Class::PushMemory(_)
            | Class::AddressOf(_)
            | Class::JumpIndirect(_)
            | Class::Switch(_)
            | Class::Return
            | Class::Trap(_)
            | Class::Stop
            | Class::PopFlags
            | Class::TypeHash(_)
            | Class::Port(_)
            | Class::FramePointerToStack
            | Class::Realign(_)
            | Class::Keep(_)
            | Class::KeepOwnPlace(_)
            | Class::KeepBranch(_)
            | Class::StaticNop => false,
            Class::Memory(_) | Class::BitString(_) => written,
            Class::PopMemory(_) => true,
            Class::String(op, ..) => op.writes(),
            Class::PortString(port, _) => port.input,
            Class::CallIndirect(_) => true,
            Class::Branch(branch) => branch == Branch::Jump(Jump::Call),
        }
    }

    /// Whether an instruction passes the return address on: to `ret`, or to the target
    /// of a jump.
    fn leaves(&self, i: InstIdx, entries: &HashSet<u32>) -> bool {
        let lifted = self.lifted;
        match self.plans[i.0 as usize].class {
            Class::Return | Class::JumpIndirect(_) => true,
            Class::Branch(Branch::Jump(Jump::Call)) => false,
            Class::Branch(_) => match lifted.destination(i) {
                Destination::Import(_) | Destination::Hypercall(..) | Destination::Behind(_) => {
                    true
                }
                Destination::Inst(to) => entries.contains(&to.0) && !begins_own(lifted, i, to),
            },
            _ => false,
        }
    }
}

/// Whether a branch leads to the beginning of the function that it is in.
pub fn begins_own(lifted: &Lifted<'_>, from: InstIdx, to: InstIdx) -> bool {
    let insts = &lifted.function(lifted.function_of(from)).insts;
    insts.start == to.0 && insts.contains(&from.0)
}

/// Paths from block to block inside an invocation, and out of it.
struct Paths {
    /// Edges between the nodes of the flow, both ways.
    to: Edges,
    from: Edges,
    /// Whether a block's last instruction leaves the invocation, perhaps conditionally.
    leaves: Vec<bool>,
    /// For each block that begins with an entry, the one that control runs into it
    /// from.
    above: Vec<Option<usize>>,
    /// Of each node.
    writes: Vec<Writes>,
}

/// Whether a block may write the word.
#[derive(Clone, Copy, Default)]
struct Writes {
    before_last: bool,
    anywhere: bool,
}

impl Paths {
    fn find(input: &Input<'_>, entries: &HashSet<u32>) -> Paths {
        let (lifted, flow) = (input.lifted, input.flow);
        let nodes = flow.nodes().len();
        let mut leaves = vec![false; nodes];
        let mut above = vec![None; nodes];
        let mut writes = vec![Writes::default(); nodes];
        let (mut to, mut from) = (Vec::new(), Vec::new());
        let mut edge = |here, next| {
            to.push((here, next));
            from.push((next, here));
        };
        for (n, insts) in flow.blocks().iter().enumerate() {
            let (here, last) = (BlockId(n as u32), InstIdx(insts.end - 1));
            if matches!(input.plans[last.0 as usize].class, Class::Unreached(_)) {
                continue;
            }
            let before_last = (insts.start..last.0).any(|i| input.may_write(i));
            writes[n] = Writes {
                before_last,
                anywhere: before_last || input.may_write(last.0),
            };
            leaves[n] = input.leaves(last, entries);
            let jumps_to = match (
                lifted.inst(last).iced.flow_control(),
                lifted.inst(last).target,
            ) {
                (FlowControl::Call, _) => None,
                (_, Some(Destination::Inst(to))) => Some(to),
                _ => None,
            };
            for &next in flow.continuations(here) {
                let Some(InstIdx(first)) = flow.begin(next) else {
                    edge(here, next);
                    continue;
                };
                let is_entry = entries.contains(&first);
                let jumped = jumps_to == Some(InstIdx(first));
                if is_entry && first == insts.end && runs_on(input, last) {
                    above[next.0 as usize] = Some(n);
                }
                if !is_entry || jumped && begins_own(lifted, last, InstIdx(first)) {
                    edge(here, next);
                }
            }
        }
        // A hub leads to other places than entries by an indirect jump or a landing pad.
        for hub in flow.nodes().skip(flow.blocks().len()) {
            let inside = |to: &BlockId| flow.begin(*to).is_none_or(|i| !entries.contains(&i.0));
            let places = flow.continuations(hub).iter().copied();
            places.filter(inside).for_each(|to| edge(hub, to));
        }
        Paths {
            to: Edges::sorted(nodes, &to),
            from: Edges::sorted(nodes, &from),
            leaves,
            above,
            writes,
        }
    }

    /// Whether the word is certainly unchanged before the last instruction of a block,
    /// given whether it was `before` the block.
    fn intact_at_end(&self, block: usize, before: bool) -> bool {
        before && !self.writes[block].before_last
    }

    /// The same behind it.
    fn intact_behind(&self, block: usize, before: bool) -> bool {
        // If a block may leave the invocation but control continues (a conditional
        // tail call), it has compared.
        self.leaves[block] || before && !self.writes[block].anywhere
    }

    /// Whether the word is certainly unchanged, where each block begins.
    fn intact_before(&self) -> Vec<bool> {
        let mut intact = vec![true; self.leaves.len()];
        let mut work: Vec<usize> = (0..intact.len()).collect();
        while let Some(block) = work.pop() {
            if self.intact_behind(block, intact[block]) {
                continue;
            }
            for next in self.to.of(BlockId(block as u32)) {
                if std::mem::replace(&mut intact[next.0 as usize], false) {
                    work.push(next.0 as usize);
                }
            }
        }
        intact
    }

    /// Whether a comparison follows, from where each block begins.
    fn needs_copy(&self, intact: &[bool]) -> Vec<bool> {
        let mut needs = vec![false; self.leaves.len()];
        let mut work = Vec::new();
        let blocks = 0..intact.len();
        work.extend(blocks.filter(|&n| self.leaves[n] && !self.intact_at_end(n, intact[n])));
        let above = self.above.iter().flatten();
        work.extend(above.filter(|&&n| !self.intact_behind(n, intact[n])));
        while let Some(block) = work.pop() {
            if !std::mem::replace(&mut needs[block], true) {
                let before = self.from.of(BlockId(block as u32)).iter();
                work.extend(before.map(|block| block.0 as usize));
            }
        }
        needs
    }
}

/// Whether the next instruction may follow this one.
fn runs_on(input: &Input<'_>, i: InstIdx) -> bool {
    let iced = &input.lifted.inst(i).iced;
    match iced.flow_control() {
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => true,
        FlowControl::Call | FlowControl::IndirectCall => !input.flow.never_returns(i),
        FlowControl::Exception => true,
        FlowControl::Interrupt => iced.mnemonic() != Mnemonic::Int3,
        FlowControl::UnconditionalBranch | FlowControl::IndirectBranch | FlowControl::Return => {
            false
        }
    }
}
