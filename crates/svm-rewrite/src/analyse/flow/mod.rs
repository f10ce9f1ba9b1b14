//! Control flow of lifted code, as the graph that liveness runs over.
//!
//! Takes [`Lifted`] and the special sections (static branches, alternatives, exception
//! fixups); gives [`Flow`], blocks and edges over the whole object. A call inside the
//! object is an edge into the callee, with edges from its returns to the instruction
//! after the call, so private conventions (-fipa-ra, hand-written subroutines) are seen
//! as they are. A return that may go elsewhere is an exit to unknown code ([`balance`]).
//! Calls out of the object follow the psABI, and the few routines that do not are listed;
//! unless [`Conventions`] says that there may be more.

mod balance;
mod edges;
pub mod effects;
mod exits;
mod invocations;
mod metadata;

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use iced_x86::FlowControl;
use liveness::{BlockId, Effect, FlowGraph, InstId, LocSet};

use crate::analyse::survey::Survey;
use crate::lift::{FuncIdx, InstIdx, Lifted};
use exits::Tables;
use invocations::{BlockEnding, Callees};
use metadata::ExtraEdges;

pub use balance::{Deep, Unbalanced, is_gate};
pub use edges::Edges;
pub use exits::{Conventions, Exit, HiddenFlow, Hints, Trap};
pub use metadata::Handler;

/// Blocks, edges and effects of an object's code.
#[derive(Debug)]
pub struct Flow {
    /// Instructions of each block that has any.
    blocks: Vec<std::ops::Range<u32>>,
    /// Block of each instruction.
    block_of: Vec<u32>,
    /// Function of each block that has instructions, and of each hub of a table: a block is
    /// in one.
    function_of: Vec<FuncIdx>,
    /// Of all blocks, hubs included.
    successors: Edges,
    /// Successors in the same invocation, of blocks with instructions and of hubs of tables.
    continuations: Edges,
    /// What is live where a block leaves the object or returns; of hubs as well.
    at_exit: Vec<LocSet>,
    /// Of each instruction.
    effects: Vec<Effect>,
    /// Calls that never return, by instruction: of local functions, and of routines that are
    /// known to.
    stops: HashSet<u32>,
    /// Instructions that may not take effect before control leaves them, by index.
    skipped: HashSet<u32>,
    /// What handlers of their faults do.
    handlers: HashMap<u32, Handler>,
    /// A block that leads to each hub of a table, if one does. The hubs have the numbers behind
    /// the blocks with instructions.
    origins: Vec<Option<BlockId>>,
    /// Calls and returns where the direction flag may be set.
    pub backward: Vec<InstIdx>,
    /// Where the stack is not in order.
    pub unbalanced: Vec<(InstIdx, Unbalanced)>,
    /// Instructions, in order, where the stack is so deep that a sequence may make it deeper
    /// than it may be.
    deep: Vec<Deep>,
}

impl FlowGraph for Flow {
    fn block_count(&self) -> usize {
        self.successors.blocks()
    }
    fn instructions(&self, block: BlockId) -> std::ops::Range<u32> {
        // Hubs, of tables and of returns, come after the real blocks and hold no
        // instruction.
        self.blocks.get(block.0 as usize).cloned().unwrap_or(0..0)
    }
    fn effect(&self, inst: InstId) -> Effect {
        self.effects[inst.0 as usize]
    }
    fn successors(&self, block: BlockId) -> &[BlockId] {
        self.successors.of(block)
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

    /// The function that a block is in. A hub is in that of the blocks that lead to it.
    pub fn function_of(&self, block: BlockId) -> FuncIdx {
        self.function_of[block.0 as usize]
    }

    /// Whether a sequence anywhere may make the stack too deep.
    pub fn has_deep(&self) -> bool {
        !self.deep.is_empty()
    }

    /// What is known where the stack is so deep that a sequence may make it too deep.
    pub fn deep_at(&self, i: InstIdx) -> Option<Deep> {
        let found = self.deep.binary_search_by_key(&i, |deep| deep.inst);
        found.ok().map(|n| self.deep[n])
    }

    /// Whether control may leave this instruction before it takes effect.
    pub fn may_be_skipped(&self, i: InstIdx) -> bool {
        self.skipped.contains(&i.0)
    }

    /// Registers that a handler of the instruction's faults may write before control continues.
    pub fn written_by_handler(&self, i: InstIdx) -> LocSet {
        let handler = self.handlers.get(&i.0);
        handler.map_or(LocSet::empty(), |handler| handler.writes)
    }

    /// Whether this is a call that never returns: of a local function, or of a routine
    /// that is known to.
    pub fn never_returns(&self, i: InstIdx) -> bool {
        self.stops.contains(&i.0)
    }

    /// Successors in the same invocation: after a local call, the instruction that it
    /// returns to, not the callee.
    ///
    /// An indirect jump leads to a hub, and that to the places in its table: a function with
    /// thousands of jumps to any of thousands of places has as many edges, not millions.
    pub fn continuations(&self, block: BlockId) -> &[BlockId] {
        self.continuations.of(block)
    }

    /// What [`Flow::continuations`] leads between: the blocks that hold instructions, in their
    /// order, and behind them hubs, which hold none.
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = BlockId> + Clone + use<> {
        (0..self.continuations.blocks() as u32).map(BlockId)
    }

    /// Where a node begins; a hub does nowhere.
    pub fn begin(&self, node: BlockId) -> Option<InstIdx> {
        let insts = self.blocks.get(node.0 as usize)?;
        Some(InstIdx(insts.start))
    }

    /// The instruction that leads on from a node: its last one, or for a hub that of one of the
    /// blocks that lead there. Either all of them end with calls, or none.
    pub fn last_of(&self, node: BlockId) -> Option<InstIdx> {
        let hub = (node.0 as usize).checked_sub(self.blocks.len());
        let block = hub.map_or(Some(node), |hub| self.origins[hub])?;
        Some(InstIdx(self.blocks[block.0 as usize].end - 1))
    }
}

/// What is known of single instructions, by index.
pub struct InstFacts<'k> {
    /// How each continues.
    pub exits: &'k [Exit],
    /// What the decoder says of each.
    pub surveys: &'k [Survey],
    /// Whether each may change what is known of the stack.
    pub changes_facts: &'k [bool],
}

/// Finds blocks and edges, given what is known of single instructions and what each does
/// to liveness.
pub fn analyse(
    lifted: &Lifted<'_>,
    hidden: &HiddenFlow,
    conventions: Conventions,
    known: &InstFacts<'_>,
    effects: Vec<Effect>,
) -> Flow {
    let HiddenFlow { extra, tables, .. } = hidden;
    let exits = known.exits;
    let (blocks, block_of) = split(lifted, exits, extra, tables);
    let mut flow = Flow {
        successors: Edges::default(),
        continuations: Edges::default(),
        at_exit: vec![LocSet::empty(); blocks.len()],
        effects,
        function_of: functions_of(lifted, &blocks),
        blocks,
        block_of,
        stops: HashSet::default(),
        skipped: extra.skipped.clone(),
        handlers: extra.handlers.clone(),
        origins: Vec::new(),
        backward: Vec::new(),
        unbalanced: Vec::new(),
        deep: Vec::new(),
    };
    let mut found = Vec::with_capacity(2 * flow.blocks.len());
    flow.connect(lifted, exits, &extra.ends, &mut found);
    let edges = extra.edges.iter();
    found.extend(edges.map(|(from, to)| (flow.block_of(*from), flow.block_of(*to))));
    flow.connect_tables(tables, &mut found);
    let endings: Vec<BlockEnding> = (0..flow.at_exit.len())
        .map(|b| flow.ending(lifted, exits, b))
        .collect();
    let successors = Edges::sorted(endings.len(), &found);
    let nowhere = HashSet::default();
    let input = balance::Input {
        lifted,
        exits,
        surveys: known.surveys,
        changes_facts: known.changes_facts,
        blocks: &flow.blocks,
        endings: &endings,
        successors: &successors,
        stops: &nowhere,
        skipped: &extra.skipped,
    };
    let invocations = flow.entries(lifted, exits, extra);
    let balance = balance::analyse(input, &invocations);
    let returns = &balance.returns;
    for (b, ending) in endings.iter().enumerate() {
        if *ending == BlockEnding::Return {
            let last = &lifted.insts[flow.blocks[b].end as usize - 1].iced;
            flow.at_exit[b] = effects::live_at_return(last, returns[b], conventions);
        }
    }
    let callees = invocations::analyse(&endings, returns, &successors);
    let stops = flow.stops_of(&endings, &callees);
    // Behind a call that never returns there is often the next function.
    let (unbalanced, deep) = match balance.unbalanced.is_empty() {
        true => (Vec::new(), balance.deep),
        false => {
            let input = balance::Input {
                blocks: &flow.blocks,
                stops: &stops,
                ..input
            };
            let again = balance::analyse(input, &invocations);
            (again.unbalanced, again.deep)
        }
    };
    flow.connect_returns(&endings, &callees, found);
    flow.stops = stops;
    let known = (0..).zip(exits);
    let known = known.filter(|(_, exit)| **exit == Exit::CallStop);
    flow.stops.extend(known.map(|(i, _)| i));
    flow.continuations = flow.find_continuations(exits);
    flow.backward = balance.backward;
    flow.unbalanced = unbalanced;
    flow.deep = deep;
    flow
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

/// The function of each block; both are in order.
fn functions_of(lifted: &Lifted<'_>, blocks: &[std::ops::Range<u32>]) -> Vec<FuncIdx> {
    let mut function = FuncIdx(0);
    let of = blocks.iter().map(|block| {
        function = lifted.function_from(function, InstIdx(block.start));
        function
    });
    of.collect()
}

/// Edges as they are found, each from the first block to the second.
type Found = Vec<(BlockId, BlockId)>;

impl Flow {
    /// Edges inside functions, tail jumps and fall-through included.
    fn connect(
        &mut self,
        lifted: &Lifted<'_>,
        exits: &[Exit],
        ends: &HashSet<u32>,
        found: &mut Found,
    ) {
        for b in 0..self.blocks.len() {
            let last = self.blocks[b].end - 1;
            let next = self.block_of.get(last as usize + 1).map(|&n| BlockId(n));
            // Sections are adjacent here but not in memory.
            let next = next.filter(|_| !lifted.begins_section(last + 1) && !ends.contains(&last));
            let mut to = |block| found.push((BlockId(b as u32), block));
            match exits[last as usize] {
                Exit::Next | Exit::CallOut => next.into_iter().for_each(to),
                Exit::Jump {
                    to: target,
                    conditional,
                } => {
                    to(self.block_of(target));
                    next.filter(|_| conditional).into_iter().for_each(to);
                }
                // A conditional tail call that is not taken falls through.
                Exit::TailOut => {
                    let conditional = lifted.insts[last as usize].iced.flow_control()
                        == FlowControl::ConditionalBranch;
                    next.filter(|_| conditional).into_iter().for_each(to);
                }
                Exit::CallLocal(target) => to(self.block_of(target)),
                Exit::CallStop | Exit::Return | Exit::Table | Exit::Stop => {}
            }
        }
    }

    /// Edges of indirect jumps, and of calls to their landing pads, through hubs: blocks without
    /// instructions.
    ///
    /// Each set of places has a hub for each function that leads there. Whether another
    /// function or frame begins at a place depends on where control comes from.
    fn connect_tables(&mut self, tables: &Tables, found: &mut Found) {
        let mut hubs: HashMap<(u32, FuncIdx), BlockId> = HashMap::default();
        for (from, table) in tables.jumps.iter().chain(&tables.calls) {
            let from = self.block_of(*from);
            let function = self.function_of(from);
            let places = &tables.places[*table as usize];
            let hub = *hubs
                .entry((*table, function))
                .or_insert_with(|| self.add_table(places, Some(from), function, found));
            found.push((from, hub));
        }
        // Control may come to these from elsewhere.
        let used: HashSet<u32> = hubs.keys().map(|(table, _)| *table).collect();
        for (table, places) in (0..).zip(&tables.places) {
            if let (false, Some(first)) = (used.contains(&table), places.first()) {
                let function = self.function_of(self.block_of(*first));
                self.add_table(places, None, function, found);
            }
        }
    }

    /// A new hub that leads to places.
    fn add_table(
        &mut self,
        places: &[InstIdx],
        origin: Option<BlockId>,
        function: FuncIdx,
        found: &mut Found,
    ) -> BlockId {
        let hub = BlockId(self.at_exit.len() as u32);
        let mut to: Vec<BlockId> = places.iter().map(|i| self.block_of(*i)).collect();
        to.sort();
        to.dedup();
        found.extend(to.into_iter().map(|to| (hub, to)));
        self.at_exit.push(LocSet::empty());
        self.function_of.push(function);
        self.origins.push(origin);
        hub
    }

    /// Where functions are entered. Replacements of alternatives and exception fixups
    /// are not functions: control comes to them inside one. Nor is what has no name and is
    /// jumped to (`.altinstr_aux`, arch/x86/include/asm/cpufeature.h).
    fn entries(&self, lifted: &Lifted<'_>, exits: &[Exit], extra: &ExtraEdges) -> Vec<BlockId> {
        let mut inside: HashSet<u32> = extra.edges.iter().map(|(_, to)| to.0).collect();
        if lifted.functions.iter().any(|f| !f.has_symbol && !f.padding) {
            let is_named = |to: InstIdx| {
                let function = self.function_of(self.block_of(to));
                lifted.function(function).has_symbol
            };
            inside.extend(exits.iter().filter_map(|exit| match *exit {
                Exit::Jump { to, .. } if !is_named(to) => Some(to.0),
                _ => None,
            }));
        }
        let functions = (0..).map(FuncIdx).zip(&lifted.functions);
        functions
            .filter(|(f, function)| {
                lifted.is_entered(*f) && !inside.contains(&function.insts.start)
            })
            .map(|(_, function)| self.block_of(InstIdx(function.insts.start)))
            .collect()
    }

    /// Calls of local functions that never return, by instruction.
    fn stops_of(&self, endings: &[BlockEnding], callees: &Callees) -> HashSet<u32> {
        let calls = endings.iter().zip(&self.blocks);
        let stops = calls.filter(
            |(ending, _)| matches!(ending, BlockEnding::Call(to, _) if !callees.each[to].comes_back),
        );
        stops.map(|(_, block)| block.end - 1).collect()
    }

    /// Edges from a callee's returns to the instructions after its calls, through one
    /// empty hub block for each callee.
    fn connect_returns(&mut self, endings: &[BlockEnding], callees: &Callees, mut found: Found) {
        let mut behind: BTreeMap<BlockId, Vec<BlockId>> = BTreeMap::new();
        for ending in endings {
            let BlockEnding::Call(to, next) = ending else {
                continue;
            };
            if callees.each[to].comes_back {
                behind.entry(*to).or_default().extend(*next);
            }
        }
        // Returns of invocations that could not be told apart go through one hub.
        if let Some(returns) = &callees.shared {
            let places = std::mem::take(&mut behind).into_values().flatten();
            self.connect_hub(places.collect(), returns, &mut found);
        }
        for (entry, places) in behind {
            self.connect_hub(places, &callees.each[&entry].returns, &mut found);
        }
        self.successors = Edges::sorted(self.at_exit.len(), &found);
    }

    /// Edges from returns to a new hub, and from there to the places after calls.
    fn connect_hub(&mut self, mut places: Vec<BlockId>, returns: &[BlockId], found: &mut Found) {
        places.sort();
        places.dedup();
        let hub = BlockId(self.at_exit.len() as u32);
        found.extend(places.into_iter().map(|to| (hub, to)));
        self.at_exit.push(LocSet::empty());
        found.extend(returns.iter().map(|from| (*from, hub)));
    }

    /// [`Flow::continuations`] of all nodes, when their successors are known.
    fn find_continuations(&self, exits: &[Exit]) -> Edges {
        let real = self.blocks.len() as u32;
        let nodes = real + self.origins.len() as u32;
        let mut found = Vec::with_capacity(2 * nodes as usize);
        for (block, insts) in (0..).map(BlockId).zip(&self.blocks) {
            let calls = matches!(exits[insts.end as usize - 1], Exit::CallLocal(_));
            // Not into callees, and not by returns, whose hubs are the last.
            let inside = (if calls { real } else { 0 })..nodes;
            let inside = self
                .successors(block)
                .iter()
                .filter(|to| inside.contains(&to.0));
            found.extend(inside.map(|to| (block, *to)));
            let follows = (insts.end as usize) < exits.len();
            if calls && follows && !self.never_returns(InstIdx(insts.end - 1)) {
                found.push((block, self.block_of(InstIdx(insts.end))));
            }
        }
        // Where nothing in the object leads, no invocation goes on.
        let hubs = (real..).map(BlockId).zip(&self.origins);
        for (hub, _) in hubs.filter(|(_, origin)| origin.is_some()) {
            found.extend(self.successors(hub).iter().map(|place| (hub, *place)));
        }
        Edges::sorted(nodes as usize, &found)
    }

    fn ending(&self, lifted: &Lifted<'_>, exits: &[Exit], block: usize) -> BlockEnding {
        let Some(last) = self.blocks.get(block).map(|b| b.end - 1) else {
            return BlockEnding::Other;
        };
        match exits[last as usize] {
            Exit::Return => BlockEnding::Return,
            Exit::TailOut => BlockEnding::TailOut,
            Exit::CallLocal(to) => {
                let next = self.block_of.get(last as usize + 1);
                let adjacent = next.filter(|_| !lifted.begins_section(last + 1));
                let behind = adjacent.map(|&n| BlockId(n));
                BlockEnding::Call(self.block_of(to), behind)
            }
            Exit::Next
            | Exit::Jump { .. }
            | Exit::Table
            | Exit::CallOut
            | Exit::CallStop
            | Exit::Stop => BlockEnding::Other,
        }
    }
}
