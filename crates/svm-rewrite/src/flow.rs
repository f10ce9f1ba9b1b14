//! Control flow of lifted code, as the graph that liveness runs over.
//!
//! Takes [`Lifted`] and what the special sections say about it (static
//! branches, alternatives, exception fixups); gives [`Flow`], blocks and edges
//! over the whole object. Calls inside the object are edges into the callee and
//! from its returns to the instruction after the call, so a compiler's private
//! conventions (-fipa-ra, hand-written subroutines) are seen as they are. Calls
//! out of it follow the psABI, and the few routines that do not are listed.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use iced_x86::{FlowControl, Mnemonic};
use liveness::{BlockId, Effect, InstId, LocSet, Program};

use crate::effects::{effects, live_at_return};
use crate::invocations::{self, Ending};
use crate::lift::{InstIdx, Lifted, Target};
use crate::linkage;
use crate::metadata::ExtraEdges;
use crate::refusal::Refusal;
use crate::survey::Survey;

/// Control flow that no instruction and no metadata shows.
#[derive(Debug, Default)]
pub struct Hints {
    /// Where indirect jumps go, beside out of the object.
    pub by_jumps: Vec<InstIdx>,
    /// Where whoever unwinds out of a call goes on.
    pub by_unwinding: Vec<InstIdx>,
    /// Functions that a linker may replace by others of their name.
    pub replaceable: HashSet<u32>,
}

/// How an instruction continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// To the next instruction only.
    Next,
    /// To a branch target, and to the next instruction if conditional.
    Jump { to: InstIdx, conditional: bool },
    /// To one of the places in a table.
    Table,
    /// Into a function of this object and back behind the call.
    CallLocal(InstIdx),
    /// Out of this object and back: an import, or an indirect call.
    CallOut,
    /// Out of this object without return (`__stack_chk_fail`).
    CallStop,
    /// Out of this object for good: a tail call, direct or indirect.
    TailOut,
    /// Back to the caller.
    Return,
    /// Nowhere: `ud2` that is a BUG, `int3`.
    Stop,
}

/// The `ud2` of a WARN continues behind it; that of a BUG does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// `BUGFLAG_WARNING` is set for this address.
    Warn,
    /// It is not, or the address has no entry.
    Bug,
}

/// Blocks, edges and effects of an object's code.
#[derive(Debug)]
pub struct Flow {
    blocks: Vec<std::ops::Range<u32>>,
    block_of: Vec<u32>,
    successors: Vec<Vec<BlockId>>,
    at_exit: Vec<LocSet>,
    effects: Vec<Effect>,
    warns: HashSet<u32>,
    /// Calls of local functions that never return.
    stops: HashSet<u32>,
    /// Blocks without instructions that stand for the places in tables.
    tables: std::ops::Range<u32>,
    /// Indirect jumps that go to a place in a table.
    by_table: HashSet<u32>,
}

impl Program for Flow {
    fn block_count(&self) -> usize {
        self.successors.len()
    }
    fn instructions(&self, block: BlockId) -> std::ops::Range<u32> {
        // Return hubs come after the real blocks and hold no instruction.
        self.blocks.get(block.0 as usize).cloned().unwrap_or(0..0)
    }
    fn effect(&self, inst: InstId) -> Effect {
        self.effects[inst.0 as usize]
    }
    fn successors(&self, block: BlockId) -> &[BlockId] {
        &self.successors[block.0 as usize]
    }
    fn live_at_exit(&self, block: BlockId) -> LocSet {
        self.at_exit[block.0 as usize]
    }
}

impl Flow {
    /// Blocks that hold instructions, as ranges of instruction indices.
    pub fn blocks(&self) -> &[std::ops::Range<u32>] {
        &self.blocks
    }

    /// The block that holds an instruction.
    pub fn block_of(&self, i: InstIdx) -> BlockId {
        BlockId(self.block_of[i.0 as usize])
    }

    /// Whether this indirect jump stays inside its function.
    pub fn goes_by_table(&self, i: InstIdx) -> bool {
        self.by_table.contains(&i.0)
    }

    /// The places that a block stands for which has no instructions, if it stands
    /// for those in tables.
    pub fn table(&self, block: BlockId) -> Option<&[BlockId]> {
        self.tables
            .contains(&block.0)
            .then(|| &self.successors[block.0 as usize][..])
    }

    /// Whether this is a call of a local function that never returns.
    pub fn stops(&self, i: InstIdx) -> bool {
        self.stops.contains(&i.0)
    }

    /// What `ud2` at this instruction stands for.
    pub fn trap(&self, i: InstIdx) -> Trap {
        if self.warns.contains(&i.0) {
            Trap::Warn
        } else {
            Trap::Bug
        }
    }
}

/// Finds blocks and edges.
///
/// # Errors
/// Metadata that cannot be read: an edge may be missing.
pub fn analyse(lifted: &Lifted<'_>, surveys: &[Survey], hints: &Hints) -> Result<Flow, Refusal> {
    let extra = ExtraEdges::find(lifted)?;
    let mut exits: Vec<Exit> = (0..lifted.insts.len() as u32)
        .map(|i| exit_of(lifted, InstIdx(i), &extra.warns))
        .collect();
    let tables = Tables::find(lifted, hints, &mut exits);
    let (blocks, block_of) = split(lifted, &exits, &extra, &tables);
    let mut flow = Flow {
        successors: vec![Vec::new(); blocks.len()],
        at_exit: vec![LocSet::empty(); blocks.len()],
        effects: effects(lifted, surveys, &exits, &extra, hints),
        blocks,
        block_of,
        warns: extra.warns.clone(),
        stops: HashSet::default(),
        tables: 0..0,
        by_table: tables.jumps.iter().map(|(i, _)| i.0).collect(),
    };
    flow.connect(lifted, &exits, &extra.ends);
    for &(from, to) in &extra.edges {
        let (from, to) = (flow.block_of(from), flow.block_of(to));
        flow.successors[from.0 as usize].push(to);
    }
    flow.connect_tables(&tables);
    flow.connect_returns(lifted, &exits);
    Ok(flow)
}

fn exit_of(lifted: &Lifted<'_>, i: InstIdx, warns: &HashSet<u32>) -> Exit {
    let inst = lifted.inst(i);
    let iced = &inst.iced;
    match (iced.flow_control(), inst.target) {
        (FlowControl::Next, _) => Exit::Next,
        (
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend,
            Some(Target::Inst(to)),
        ) => Exit::Jump {
            to,
            conditional: true,
        },
        // A conditional tail call leaves or goes on; both are edges.
        (FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend, _) => Exit::TailOut,
        (FlowControl::UnconditionalBranch, Some(Target::Inst(to))) => Exit::Jump {
            to,
            conditional: false,
        },
        (FlowControl::UnconditionalBranch, Some(Target::Import(s)))
            if linkage::is_return_thunk(lifted.symbol_name(s)) =>
        {
            Exit::Return
        }
        (FlowControl::UnconditionalBranch | FlowControl::IndirectBranch, _) => Exit::TailOut,
        (FlowControl::Call, Some(Target::Inst(to))) => Exit::CallLocal(to),
        (FlowControl::Call, Some(Target::Import(s)))
            if linkage::never_returns(lifted.symbol_name(s)) =>
        {
            Exit::CallStop
        }
        (FlowControl::Call | FlowControl::IndirectCall, _) => Exit::CallOut,
        (FlowControl::Return, _) => Exit::Return,
        (FlowControl::Exception, _) if iced.mnemonic() == Mnemonic::Ud2 && warns.contains(&i.0) => {
            Exit::Next
        }
        (FlowControl::Exception, _) => Exit::Stop,
        (FlowControl::Interrupt, _) if iced.mnemonic() == Mnemonic::Int3 => Exit::Stop,
        (FlowControl::Interrupt, _) => Exit::Next,
    }
}

fn split(
    lifted: &Lifted<'_>,
    exits: &[Exit],
    extra: &ExtraEdges,
    tables: &Tables,
) -> (Vec<std::ops::Range<u32>>, Vec<u32>) {
    let count = exits.len();
    let mut leader = vec![false; count + 1];
    for function in &lifted.functions {
        leader[function.insts.start as usize] = true;
    }
    for (i, exit) in exits.iter().enumerate() {
        match exit {
            Exit::Next | Exit::CallOut => continue,
            Exit::Jump { to, .. } | Exit::CallLocal(to) => leader[to.0 as usize] = true,
            Exit::CallStop | Exit::TailOut | Exit::Table | Exit::Return | Exit::Stop => {}
        }
        leader[i + 1] = true;
    }
    for (from, to) in &extra.edges {
        leader[from.0 as usize + 1] = true;
        leader[to.0 as usize] = true;
    }
    for (from, _) in tables.jumps.iter().chain(&tables.calls) {
        leader[from.0 as usize + 1] = true;
    }
    for to in tables.places.iter().flatten() {
        leader[to.0 as usize] = true;
    }
    let mut blocks: Vec<std::ops::Range<u32>> = Vec::new();
    let mut block_of = vec![0; count];
    for i in 0..count as u32 {
        match blocks.last_mut() {
            Some(block) if !leader[i as usize] => block.end = i + 1,
            _ => blocks.push(i..i + 1),
        }
        block_of[i as usize] = blocks.len() as u32 - 1;
    }
    (blocks, block_of)
}

impl Flow {
    /// Edges inside functions, tail jumps and fall-through included.
    fn connect(&mut self, lifted: &Lifted<'_>, exits: &[Exit], ends: &HashSet<u32>) {
        for b in 0..self.blocks.len() {
            let last = self.blocks[b].end - 1;
            let next = self.block_of.get(last as usize + 1).map(|&n| BlockId(n));
            // Sections are adjacent here but not in memory.
            let next = next.filter(|_| {
                let section = |i: u32| lifted.insts[i as usize].section;
                section(last) == section(last + 1) && !ends.contains(&last)
            });
            let mut to = Vec::with_capacity(2);
            match exits[last as usize] {
                Exit::Next | Exit::CallOut => to.extend(next),
                Exit::Jump {
                    to: target,
                    conditional,
                } => {
                    to.push(self.block_of(target));
                    to.extend(next.filter(|_| conditional));
                }
                // A conditional tail call goes on if not taken; harmless if not conditional.
                Exit::TailOut => {
                    let conditional = lifted.insts[last as usize].iced.flow_control()
                        == FlowControl::ConditionalBranch;
                    to.extend(next.filter(|_| conditional));
                }
                Exit::CallLocal(target) => to.push(self.block_of(target)),
                Exit::Return => self.at_exit[b] = live_at_return(),
                Exit::CallStop | Exit::Table | Exit::Stop => {}
            }
            self.successors[b] = to;
        }
    }

    /// Edges of indirect jumps and of calls that are unwound out of, through one
    /// block without instructions for each set of places.
    fn connect_tables(&mut self, tables: &Tables) {
        let first = self.successors.len() as u32;
        for places in &tables.places {
            let mut to: Vec<BlockId> = places.iter().map(|i| self.block_of(*i)).collect();
            to.sort();
            to.dedup();
            self.successors.push(to);
            self.at_exit.push(LocSet::empty());
        }
        self.tables = first..self.successors.len() as u32;
        for (from, table) in tables.jumps.iter().chain(&tables.calls) {
            let from = self.block_of(*from);
            self.successors[from.0 as usize].push(BlockId(first + table));
        }
    }

    /// Edges from a callee's returns to the places behind its calls, through
    /// one empty hub block a callee.
    fn connect_returns(&mut self, lifted: &Lifted<'_>, exits: &[Exit]) {
        let endings: Vec<Ending> = (0..self.successors.len())
            .map(|b| self.ending(lifted, exits, b))
            .collect();
        let callees = invocations::analyse(&endings, &self.successors);
        let mut behind: BTreeMap<BlockId, Vec<BlockId>> = BTreeMap::new();
        for (block, ending) in endings.iter().enumerate() {
            let Ending::Call(to, next) = ending else {
                continue;
            };
            if callees[to].comes_back {
                behind.entry(*to).or_default().extend(*next);
            } else {
                self.stops.insert(self.blocks[block].end - 1);
            }
        }
        for (entry, mut places) in behind {
            places.sort();
            places.dedup();
            let hub = BlockId(self.successors.len() as u32);
            self.successors.push(places);
            self.at_exit.push(LocSet::empty());
            for from in &callees[&entry].returns {
                self.successors[from.0 as usize].push(hub);
            }
        }
    }

    fn ending(&self, lifted: &Lifted<'_>, exits: &[Exit], block: usize) -> Ending {
        let Some(last) = self.blocks.get(block).map(|b| b.end - 1) else {
            return Ending::Other;
        };
        match exits[last as usize] {
            Exit::Return => Ending::Return,
            Exit::TailOut => Ending::TailOut,
            Exit::CallLocal(to) => {
                let next = lifted.insts.get(last as usize + 1);
                let adjacent =
                    next.is_some_and(|n| n.section == lifted.insts[last as usize].section);
                let behind = adjacent.then(|| BlockId(self.block_of[last as usize + 1]));
                Ending::Call(self.block_of(to), behind)
            }
            Exit::Next
            | Exit::Jump { .. }
            | Exit::Table
            | Exit::CallOut
            | Exit::CallStop
            | Exit::Stop => Ending::Other,
        }
    }
}

/// Indirect jumps and the sets of places that they may go to.
#[derive(Default)]
struct Tables {
    /// Each jump, and its set.
    jumps: Vec<(InstIdx, u32)>,
    /// Each call that may be unwound out of, and its set.
    calls: Vec<(InstIdx, u32)>,
    places: Vec<Vec<InstIdx>>,
}

impl Tables {
    /// Finds them. Both parts of a function that the compiler split count as one,
    /// and any jump of it may go to any place in it.
    fn find(lifted: &Lifted<'_>, hints: &Hints, exits: &mut [Exit]) -> Tables {
        let mut tables = Tables::default();
        if hints.by_jumps.is_empty() && hints.by_unwinding.is_empty() {
            return tables;
        }
        let whole = |i: InstIdx| {
            let name = &lifted.function(lifted.function_of(i)).name;
            name.split(".cold").next().unwrap_or_default()
        };
        let mut sets: HashMap<(&str, bool), u32> = HashMap::default();
        let jumps = hints.by_jumps.iter().map(|i| (i, false));
        for (&i, unwound) in jumps.chain(hints.by_unwinding.iter().map(|i| (i, true))) {
            let next = tables.places.len() as u32;
            let set = *sets.entry((whole(i), unwound)).or_insert(next);
            if set == next {
                tables.places.push(Vec::new());
            }
            tables.places[set as usize].push(i);
        }
        for (n, exit) in exits.iter_mut().enumerate() {
            let i = InstIdx(n as u32);
            match lifted.inst(i).iced.flow_control() {
                FlowControl::IndirectBranch => {
                    if let Some(&set) = sets.get(&(whole(i), false)) {
                        tables.jumps.push((i, set));
                        *exit = Exit::Table;
                    }
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    if let Some(&set) = sets.get(&(whole(i), true)) {
                        tables.calls.push((i, set));
                    }
                }
                _ => {}
            }
        }
        tables
    }
}
