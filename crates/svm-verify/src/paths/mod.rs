//! All paths: from every entry, block by block, until nothing new is learned.
//!
//! A block begins where a branch, a call or an entry leads. It continues, past
//! conditional branches, to the next block. Facts are kept at block starts only. When a
//! block is interpreted again, the earlier findings in it are dropped: at the end the
//! findings are those of the final facts.

mod arguments;
mod callees;
mod checks;
mod interpretation;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use self::arguments::{ArgumentWrites, Arguments};
use self::callees::Callees;
use self::checks::Miss;
pub use self::interpretation::Interpretation;
use crate::domain::{Address, Addresses, Flags, Form, Kept, Name, State};
use crate::findings::ViolationCode;
use crate::insn::{BranchTarget, Disassembly, Gpr, GprSet, Insn, Op, Routine};
use crate::kernel::{Marks, Patches};
use crate::object::Image;
use crate::rules::{Broken, Laws, Next, Proved, Site, Step, fell_through, left, unmet};
use crate::targets::{self, Frames};

/// No state, no block's start, no check.
const NONE: u32 = u32::MAX;
/// A block's start that was not reached yet.
const UNREACHED: u32 = u32::MAX - 1;

/// Interprets the whole object. The address of functions that begin at `taken` is somewhere in it.
pub fn interpret(
    image: &Image<'_>,
    disassembly: &Disassembly,
    entries: &[u32],
    patches: &Patches,
    taken: &[u32],
) -> Interpretation {
    let run = |known: ArgumentWrites| {
        let mut flow = Flow::new(image, disassembly, entries, patches, taken);
        flow.known = known;
        flow.everything(entries);
        let written = flow.arguments.written(disassembly, patches);
        (flow, written)
    };
    let (mut flow, mut written) = run(ArgumentWrites::default());
    if flow.arguments.reach_followed(&written) {
        // The second run forgets more words at calls. It has fewer facts, and no new
        // writes to arguments.
        (flow, written) = run(written);
    }
    flow.finish(&written)
}

struct Flow<'a, 'o> {
    image: &'a Image<'o>,
    disassembly: &'a Disassembly,
    /// The kernel's changes of the code.
    patches: &'a Patches,
    /// What `patches` has of each instruction; empty if nothing at all.
    marks: Vec<Marks>,
    /// For each instruction, the number of the state before it, or one of the
    /// constants above.
    slot: Vec<u32>,
    states: Vec<State>,
    /// Blocks to interpret, first ones first: nearly the order in which
    /// structured code runs.
    work: BinaryHeap<Reverse<u32>>,
    queued: Vec<bool>,
    proved: Vec<Proved>,
    /// The branch of the check whose out-of-line part an instruction is in.
    owner: Vec<u32>,
    entered: Vec<u32>,
    /// Broken rules, by block.
    broken: BTreeMap<u32, Vec<(u32, Broken)>>,
    /// Broken rules about two paths that meet.
    meetings: BTreeMap<u32, Broken>,
    /// Branches of checks.
    checks: Vec<u32>,
    /// Writes of callees to their callers' frames (target `linux`).
    arguments: Arguments,
    /// The writes to arguments that were found by the run before.
    known: ArgumentWrites,
    /// Which registers callees keep, where they are trusted to (target `linux`).
    callees: Callees,
    /// The block that is interpreted.
    current: u32,
    /// What each of its instructions is judged by.
    laws: Laws,
}

impl<'a, 'o> Flow<'a, 'o> {
    fn new(
        image: &'a Image<'o>,
        disassembly: &'a Disassembly,
        entries: &[u32],
        patches: &'a Patches,
        taken: &[u32],
    ) -> Self {
        let count = disassembly.insns.len();
        let (mut slot, mut blocks) = (vec![NONE; count], 0);
        let mut begin = |n: u32| {
            let before = std::mem::replace(&mut slot[n as usize], UNREACHED);
            blocks += usize::from(before == NONE);
        };
        entries.iter().copied().for_each(&mut begin);
        // All other instructions lead only to the next one.
        for &n in &disassembly.branches {
            if let Some(to) = leads_to(disassembly, n) {
                begin(to);
            }
        }
        patches.leaders().for_each(&mut begin);
        Flow {
            image,
            disassembly,
            patches,
            marks: patches.marks(count),
            states: Vec::with_capacity(blocks),
            slot,
            work: BinaryHeap::new(),
            queued: vec![false; count],
            proved: vec![Proved::Unreached; count],
            owner: vec![NONE; count],
            entered: Vec::new(),
            broken: BTreeMap::new(),
            meetings: BTreeMap::new(),
            checks: Vec::new(),
            arguments: Arguments::default(),
            known: ArgumentWrites::default(),
            callees: match image.rules.callees {
                targets::Callees::KeepByPsabi => Callees::new(disassembly, entries, taken),
                targets::Callees::Untrusted => Callees::default(),
            },
            current: NONE,
            laws: Laws::new(image.scheme, image.rules),
        }
    }

    /// Interprets all code that is entered from outside. Other code that was not reached
    /// cannot be executed.
    fn everything(&mut self, entries: &[u32]) {
        for &entry in entries {
            self.enter(entry);
        }
        self.run();
    }

    /// Control comes to function entry `n` from a call or from outside.
    fn enter(&mut self, n: u32) {
        self.entered.push(n);
        let mut state = State::entry();
        if self.callees.are_judged() {
            state.kept = Kept::entry(n);
        }
        self.come(n, &state);
    }

    /// Control comes to block `n` with these facts, in the same call of the function or, if
    /// another one begins there, as that.
    fn arrive(&mut self, n: u32, state: &State) {
        if !self.callees.is_function(n) {
            return self.come(n, state);
        }
        let blocks = self.callees.goes_on(&state.kept, n);
        self.again(blocks);
        let mut state = state.clone();
        state.kept = Kept::entry(n);
        self.come(n, &state);
    }

    /// Blocks are to be interpreted again: they call functions that keep less than was known.
    fn again(&mut self, blocks: Vec<u32>) {
        for n in blocks {
            if !std::mem::replace(&mut self.queued[n as usize], true) {
                self.work.push(Reverse(n));
            }
        }
    }

    /// Control comes to block `n` with these facts, not by a copy of the kernel: code
    /// that the kernel only copies does not run in place.
    fn come(&mut self, n: u32, state: &State) {
        if self.marks(n).has(Marks::COPY) {
            let reason = "the kernel copies this code elsewhere, but something leads into it";
            self.meetings
                .insert(n, unmet(ViolationCode::Metadata, reason));
        }
        self.reach(n, state);
    }

    /// What `patches` has of instruction `n`.
    fn marks(&self, n: u32) -> Marks {
        self.marks.get(n as usize).copied().unwrap_or_default()
    }

    fn reach(&mut self, n: u32, state: &State) {
        let changed = match self.slot[n as usize] {
            NONE => {
                // When blocks are found, only the jump at the end of an out-of-line
                // part is not followed.
                let reason = "the way back from the slow path is used by something else";
                self.meetings
                    .insert(n, unmet(ViolationCode::OutOfLine, reason));
                false
            }
            UNREACHED => {
                self.slot[n as usize] = self.states.len() as u32;
                self.states.push(state.clone());
                true
            }
            slot => self.meet(n, slot, state),
        };
        if changed && !std::mem::replace(&mut self.queued[n as usize], true) {
            self.work.push(Reverse(n));
        }
    }

    fn meet(&mut self, n: u32, slot: u32, state: &State) -> bool {
        let known = &mut self.states[slot as usize];
        // If `rsp` is relative to an alignment, it has to be the same one.
        let rsp = state.get(Gpr::RSP).form;
        let same = known.realigned == state.realigned || matches!(rsp, Form::Stack(_));
        if known.get(Gpr::RSP).form == rsp && same {
            return known.join(state);
        }
        let reason = format!(
            "the stack is {} bytes deep on one path to here and {} on another",
            -i64::from(known.rsp()),
            -i64::from(state.rsp())
        );
        self.meetings
            .entry(n)
            .or_insert(unmet(ViolationCode::Depth, reason));
        false
    }

    fn run(&mut self) {
        while let Some(Reverse(n)) = self.work.pop() {
            self.queued[n as usize] = false;
            let found = self.block(n);
            if !found.is_empty() {
                self.broken.insert(n, found);
            } else if !self.broken.is_empty() {
                self.broken.remove(&n);
            }
        }
    }

    /// Interprets the block that begins at `first`.
    fn block(&mut self, first: u32) -> Vec<(u32, Broken)> {
        let disassembly = self.disassembly;
        self.current = first;
        let mut found = Vec::new();
        let mut state = self.states[self.slot[first as usize] as usize].clone();
        let mut last = first;
        for (n, insn) in disassembly.from(first) {
            if n != first && self.slot[n as usize] != NONE {
                self.arrive(n, &state);
                return found;
            }
            let marks = self.marks(n);
            if marks != Marks::NONE {
                self.patched_ways(n, marks, &state);
            }
            if !self.instruction((n, insn), marks, &mut state, &mut found) {
                return found;
            }
            if marks.has(Marks::END)
                && let Some(&back) = self.patches.ends.get(&n)
            {
                self.arrive(back, &state);
                return found;
            }
            last = n;
        }
        let reason = "the code runs past the end of its section";
        found.push((last, unmet(ViolationCode::FallOff, reason)));
        found
    }

    /// Follows the paths that the kernel opens at instruction `n`.
    fn patched_ways(&mut self, n: u32, marks: Marks, state: &State) {
        let patches = self.patches;
        if marks.has(Marks::BEFORE) {
            for &to in patches.before.get(&n).into_iter().flatten() {
                self.arrive(to, state);
            }
        }
        if marks.has(Marks::INSTEAD) {
            for &to in patches.instead.get(&n).into_iter().flatten() {
                self.reach(to, state);
            }
        }
        if marks.has(Marks::FIXUP)
            && let Some(fixup) = patches.fixups.get(&n)
        {
            // The effects of the faulting instruction and of the handler are as
            // unknown as those of a callee, in registers and memory.
            let insn = &self.disassembly.insns[n as usize];
            let mut after = state.clone();
            after.forget_written(&insn.memory);
            if let Op::String { kind, shift, rep } = insn.op {
                after.forget_strings(kind, shift, rep);
            }
            after.called_by_psabi();
            after.clobber(insn.writes.or(fixup.writes));
            after.direction = state.direction;
            // The handler leaves all other registers as they are.
            after.addresses = state.addresses;
            if let Some(address) = left(insn, state.addresses) {
                after.addresses.add(address, insn.results);
            }
            // What was loaded before the element that faulted is there.
            let step = Step {
                laws: &self.laws,
                site: site(marks),
                name: self.laws.name(n),
                insn,
                state: &mut state.clone(),
            };
            if step.lods_return_address() {
                after.addresses.add(Address::Counted, insn.results);
            }
            if state.addresses.of(fixup.counts) != Addresses::default() {
                after.addresses.add(Address::Counted, Gpr::RCX.set());
            }
            self.arrive(fixup.to, &after);
        }
    }

    /// Interprets one instruction. True if the next one may follow.
    fn instruction(
        &mut self,
        (n, insn): (u32, &Insn),
        marks: Marks,
        state: &mut State,
        found: &mut Vec<(u32, Broken)>,
    ) -> bool {
        if let Op::Branch(condition, target) = insn.op
            && let Some(address) = self.image.scheme.checked(condition, state.flags)
        {
            self.proved[n as usize] = Proved::Reached;
            if let Err(broken) = self.check(n, target, address, state) {
                found.push((n, broken));
            }
            return true;
        }
        if marks.has(Marks::WARN) {
            self.proved[n as usize] = Proved::Reached;
            return true;
        }
        if self.image.rules.frames == Frames::Compiled {
            self.arguments.note(n, insn, state);
            if let Op::Call(BranchTarget::Insn(callee)) = insn.op
                && let Some(bytes) = self.known.from(callee)
            {
                state.forget_arguments(bytes);
            }
        }
        if self.callees.are_judged() {
            let blocks = self.callees.left(insn.op, marks, &state.kept);
            if !blocks.is_empty() {
                self.again(blocks);
            }
        }
        let step = Step {
            laws: &self.laws,
            site: site(marks),
            name: self.laws.name(n),
            insn,
            state,
        };
        match step.run() {
            Ok((next, proved)) => {
                self.proved[n as usize] = proved;
                if self.callees.are_judged() {
                    let lost = self.callees.called(self.current, n, insn.op, marks);
                    if lost != GprSet::NONE {
                        state.lose(lost);
                    }
                }
                let follows = self.go(next, state);
                if let Op::Branch(condition, _) = insn.op {
                    fell_through(condition, state);
                }
                follows
            }
            Err(broken) => {
                self.proved[n as usize] = Proved::Reached;
                let lost = matches!(
                    broken.0,
                    ViolationCode::StackPointer | ViolationCode::Frame | ViolationCode::Alignment
                );
                found.push((n, broken));
                !lost && !matches!(insn.op, Op::Jump(_) | Op::JumpIndirect(_) | Op::Ret)
            }
        }
    }

    fn go(&mut self, next: Next, state: &State) -> bool {
        match next {
            Next::Fall => true,
            Next::End => false,
            Next::Called(callee) => {
                self.enter(callee);
                true
            }
            Next::Jump(to) => {
                self.arrive(to, state);
                false
            }
            Next::Branch(to) => {
                self.arrive(to, state);
                true
            }
        }
    }

    /// The branch of a check for `address`: `state` becomes that of the fall-through.
    fn check(
        &mut self,
        n: u32,
        target: BranchTarget,
        address: Name,
        state: &mut State,
    ) -> Result<(), Broken> {
        let compared = std::mem::replace(&mut state.flags, Flags::Unknown);
        let result = match target {
            BranchTarget::Insn(to) => {
                checks::confirm(self.image, self.disassembly, state, n, to, address)
                    .map(|miss| self.missed(n, to, miss, state))
            }
            BranchTarget::Routine(_) | BranchTarget::Bad => Err(unmet(
                ViolationCode::OutOfLine,
                "the check's branch leaves the object",
            )),
        };
        self.image.scheme.passed(state, compared);
        result.and_then(|owned| owned)
    }

    /// Follows the branch of a check that missed.
    fn missed(&mut self, n: u32, to: u32, miss: Miss, state: &State) -> Result<(), Broken> {
        self.checks.push(n);
        match miss {
            Miss::Skip => {
                self.arrive(to, state);
                Ok(())
            }
            Miss::Slow { first, last } => {
                let mut shared = false;
                for owner in &mut self.owner[first as usize..=last as usize] {
                    // The first branch stays the owner, so each other one is
                    // reported whenever it is interpreted.
                    match *owner {
                        NONE => *owner = n,
                        other => shared |= other != n,
                    }
                }
                match shared {
                    true => Err(unmet(
                        ViolationCode::OutOfLine,
                        "two checks share an out-of-line part",
                    )),
                    false => Ok(()),
                }
            }
        }
    }

    /// The findings, when all facts are final.
    fn finish(mut self, written: &ArgumentWrites) -> Interpretation {
        let mut broken: Vec<_> = self.broken.into_values().flatten().collect();
        broken.extend(self.meetings);
        broken.extend(self.arguments.exceeded(written));
        for (part, _) in self
            .owner
            .iter()
            .enumerate()
            .filter(|&(_, &owner)| owner != NONE)
        {
            if std::mem::replace(&mut self.proved[part], Proved::Reached) != Proved::Unreached {
                let reason = "there is another way into the out-of-line part of a check";
                broken.push((part as u32, unmet(ViolationCode::OutOfLine, reason)));
            }
            // The part is recognised, not interpreted, so its other ways would not be.
            let diverts = self
                .marks
                .get(part)
                .is_some_and(|marks| marks.has(Marks::DIVERTS));
            if diverts {
                let reason = "the kernel may change the out-of-line part of a check";
                broken.push((part as u32, unmet(ViolationCode::Metadata, reason)));
            }
        }
        for range in &self.patches.whole {
            for n in range.clone() {
                let inside = n != range.start && self.slot[n as usize] != NONE;
                if inside || self.owner[n as usize] != NONE {
                    let reason = "the kernel may replace this range, but something leads into it";
                    broken.push((n, unmet(ViolationCode::Metadata, reason)));
                }
            }
        }
        for list in [&mut self.entered, &mut self.checks] {
            list.sort_unstable();
            list.dedup();
        }
        Interpretation {
            proved: self.proved,
            broken,
            checks: self.checks.len(),
            functions: self.entered.len(),
        }
    }
}

/// What the kernel does at an instruction, as far as the rules ask for it.
fn site(marks: Marks) -> Site {
    if marks == Marks::NONE {
        return Site::PLAIN;
    }
    Site {
        faulting: marks.has(Marks::FIXUP),
        leaving: marks.has(Marks::LEAVES),
        reads_hash: marks.has(Marks::HASH),
        address: match (marks.has(Marks::LABEL), marks.has(Marks::NAME)) {
            (true, _) => Some(Address::Counted),
            (false, true) => Some(Address::Named),
            (false, false) => None,
        },
    }
}

/// Where instruction `n` leads besides the next one. The jump back from a slow path is
/// left out: it brings the same facts as the check (`checks.rs`), so it begins no block.
fn leads_to(disassembly: &Disassembly, n: u32) -> Option<u32> {
    match disassembly.insns[n as usize].op {
        Op::Jump(BranchTarget::Insn(to)) => {
            let before = n.checked_sub(1).filter(|&p| disassembly.next(p) == Some(n));
            let slow = before
                .and_then(|p| disassembly.get(p))
                .is_some_and(|p| matches!(p.op, Op::Call(BranchTarget::Routine(Routine::Slow(_)))));
            (!slow).then_some(to)
        }
        Op::Call(BranchTarget::Insn(to)) | Op::Branch(_, BranchTarget::Insn(to)) => Some(to),
        _ => None,
    }
}
