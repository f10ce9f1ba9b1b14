//! One walk over the paths of an object gives all that is known of its stack: the facts before
//! the instructions that ask for some ([`Facts`]), and the registers that functions do not keep
//! ([`Lost`]).
//!
//! Facts depend on what calls lose, and that is found on the same walk. So it is done again until
//! both agree, in those parts of the code whose calls lose more: nearly always the first one does,
//! where nothing is lost.
//!
//! Functions that realign their stack have a walk for each variant. What a function loses does not
//! depend on the variant.

use iced_x86::Instruction;
use liveness::{BlockId, FlowGraph, LocSet};

use super::before::{Before, Join};
use super::dependents;
use super::facts::{Asked, FactsBefore, Found, Input, is_left_out};
use super::frames::{Frames, Leads};
use super::lost::{self, Called, Kept, Lost, Moves};
use super::parts::Parts;
use super::path::Path;
use super::variants::{Variant, Variants};
use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::analyse::codemap::Codemap;
use crate::analyse::flow::Exit;
use crate::analyse::routines;
use crate::analyse::survey::Survey;
use crate::lift::{FuncIdx, InstIdx};

/// Most rounds: each follows losses one call further up. After that, all is lost everywhere.
const ROUNDS: usize = 64;

/// What the walk works from, but for what calls lose.
#[derive(Clone, Copy)]
pub struct Code<'c> {
    /// The code, analysed.
    pub analysis: &'c Analysis<'c>,
    /// Its classes so far.
    pub classes: &'c [Class],
    /// The places whose address is taken.
    pub codemap: &'c Codemap,
    /// Which blocks share a frame.
    pub frames: &'c Frames,
    /// In how many ways each function is written.
    pub variants: &'c Variants,
    /// Who asks for facts.
    pub asked: Asked,
    /// Whether code that no path reaches is taken for functions.
    pub enters_unreached: bool,
}

/// Finds the facts before each instruction whose treatment depends on them, and what calls lose.
pub fn solve(code: Code<'_>) -> (FactsBefore, Lost) {
    let none = Lost::default();
    let dependents = dependents::find(code.input(&none), code.asked);
    let count = code.classes.len();
    let mut facts = FactsBefore::none(dependents.clone(), count);
    let mut walk = Walk::new(code, &dependents);
    let mut lost = none;
    let mut parts = None;
    walk.variant(code.input(&lost), Variant::FIRST);
    for round in 1.. {
        let found = code.lost(|entry| walk.lost[code.frame_of(entry)]);
        if found == lost || round > ROUNDS {
            break;
        }
        let now = match round < ROUNDS {
            true => found,
            false => code.lost(|_| lost::kept()),
        };
        let parts = parts.get_or_insert_with(|| Parts::find(code.analysis, code.frames));
        let changed = parts.changed(&lost, &now);
        lost = now;
        walk.again(code.input(&lost), |block| changed[parts.of(block)]);
    }
    facts.add(walk.found());
    for variant in code.variants.all().filter(|v| *v != Variant::FIRST) {
        walk.variant(code.input(&lost), variant);
        facts.add(walk.found());
    }
    (facts, lost)
}

impl<'c> Code<'c> {
    fn input<'i>(&self, lost: &'i Lost) -> Input<'i>
    where
        'c: 'i,
    {
        Input::of(self.analysis, self.classes, lost)
    }

    /// Where frames begin, with the function.
    fn entries(self) -> impl Iterator<Item = (FuncIdx, InstIdx)> {
        let lifted = self.analysis.lifted;
        let functions = (0..lifted.functions.len() as u32).map(FuncIdx);
        functions.flat_map(move |f| lifted.entries_of(f).map(move |i| (f, i)))
    }

    fn frame_of(&self, i: InstIdx) -> usize {
        self.frames.of(self.analysis.flow.block_of(i))
    }

    /// What calls lose, if invocations that begin at an entry lose so much.
    fn lost(self, at_entry: impl Fn(InstIdx) -> LocSet) -> Lost {
        let mut lost = Lost::default();
        for (f, entry) in self.entries() {
            let registers = at_entry(entry);
            let function = self.analysis.lifted.function(f);
            let begins = || function.insts.start == entry.0;
            let is_taken = || self.codemap.contains(&(function.section, function.start));
            lost.add(entry, registers, || begins() && is_taken());
        }
        lost
    }
}

/// What is known on a path to a place.
#[derive(Clone, Copy, PartialEq)]
struct State {
    path: Path,
    /// `None` where control comes only from other frames: that says nothing of what this
    /// function keeps.
    kept: Option<Kept>,
}

impl Join for State {
    fn join(self, other: State) -> State {
        let kept = match (self.kept, other.kept) {
            (Some(one), Some(two)) => Some(one.join(two)),
            (one, two) => one.or(two),
        };
        State {
            path: self.path.join(other.path),
            kept,
        }
    }
}

impl State {
    /// The same where another frame begins.
    fn of_another(self) -> State {
        State { kept: None, ..self }
    }

    /// Whether an instruction may change it. Most do not.
    fn concerns(&self, iced: &Instruction, survey: &Survey) -> bool {
        let registers = survey.registers();
        let kept = self.kept.as_ref();
        self.path.concerns(iced, survey) || kept.is_some_and(|kept| kept.concerns(registers))
    }

    /// Updates it over an instruction.
    fn pass(&mut self, input: Input<'_>, i: InstIdx, variant: Variant) {
        let (inst, survey) = (input.lifted.inst(i), &input.surveys[i.0 as usize]);
        match &mut self.kept {
            Some(kept) if input.changes_facts[i.0 as usize] => {
                if routines::is_call(&inst.iced) {
                    self.path.pass(input, i, variant);
                    kept.called(input.lost.at_call(inst));
                    return;
                }
                let moves = Moves::of(inst, survey, &self.path);
                self.path.pass(input, i, variant);
                kept.pass(inst, survey, moves, &self.path);
            }
            _ => self.path.pass(input, i, variant),
        }
    }
}

/// One walk after the other.
struct Walk<'w> {
    code: Code<'w>,
    /// The instructions whose facts are kept, in order.
    dependents: &'w [InstIdx],
    /// The first of them in each node of the flow.
    first: Vec<u32>,
    /// What is known before each of them.
    found: Found,
    /// What invocations with each frame lose.
    lost: Vec<LocSet>,
    /// What is known before each block, on this walk.
    before: Before<State>,
}

impl<'w> Walk<'w> {
    fn new(code: Code<'w>, dependents: &'w [InstIdx]) -> Walk<'w> {
        let mut at = 0;
        let flow = &code.analysis.flow;
        let nodes = flow.nodes();
        let first = nodes.clone().map(|node| {
            let insts = flow.instructions(node);
            let rest = dependents[at..].iter();
            at += rest.take_while(|i| i.0 < insts.start).count();
            at as u32
        });
        Walk {
            code,
            dependents,
            first: first.collect(),
            found: Found::default(),
            lost: vec![LocSet::empty(); nodes.len()],
            before: Before::new(nodes.len()),
        }
    }

    /// Takes out what the last walk has found.
    fn found(&mut self) -> Found {
        std::mem::take(&mut self.found)
    }

    /// Walks all paths in one variant.
    fn variant(&mut self, input: Input<'_>, variant: Variant) {
        self.found = Found::new(self.dependents.len());
        self.walk(input, variant, &|_| true);
    }

    /// Walks those paths again, in the first variant, that begin with such a block. Others do not
    /// come to where these lead.
    fn again(&mut self, input: Input<'_>, is_again: impl Fn(BlockId) -> bool) {
        for (n, lost) in (0..).zip(&mut self.lost) {
            if is_again(BlockId(n)) {
                *lost = LocSet::empty();
            }
        }
        self.walk(input, Variant::FIRST, &is_again);
    }

    /// Walks the paths that begin with such a block.
    fn walk(&mut self, input: Input<'_>, variant: Variant, begins: &dyn Fn(BlockId) -> bool) {
        let flow = input.flow;
        let Code {
            variants, asked, ..
        } = self.code;
        self.before.clear();
        let mut work = Vec::new();
        // Functions and subroutines are entered with an empty frame, parts of functions that
        // the compiler split off are not: those get their facts from their jumps.
        for (f, entry) in self.code.entries() {
            let block = flow.block_of(entry);
            let is_written = variants.of(f).any(|c| c == variant) && !is_left_out(input, block);
            if is_written && begins(block) {
                let state = State {
                    path: Path::at_entry(asked.follows_all()),
                    kept: (variant == Variant::FIRST).then(Kept::at_entry),
                };
                self.before.arrive(block, &state);
                work.push(block);
            }
        }
        self.follow(input, variant, work, &[]);
        if self.code.enters_unreached {
            self.unreached(input, variant, begins);
        }
    }

    /// Walks what no path has reached, as functions in the order of the text. What is reached
    /// keeps its facts.
    fn unreached(&mut self, input: Input<'_>, variant: Variant, begins: &dyn Fn(BlockId) -> bool) {
        let Code {
            variants, asked, ..
        } = self.code;
        let blocks = (0..input.flow.blocks().len() as u32).map(BlockId);
        let closed: Vec<bool> = blocks
            .clone()
            .map(|b| self.before.get(b).is_some())
            .collect();
        let state = State {
            path: Path::at_entry(asked.follows_all()),
            kept: None,
        };
        for block in blocks {
            let mut written = variants.of(input.flow.function_of(block));
            let is_open = self.before.get(block).is_none() && begins(block);
            if is_open && !is_left_out(input, block) && written.any(|c| c == variant) {
                self.before.arrive(block, &state);
                self.follow(input, variant, vec![block], &closed);
            }
        }
    }

    /// Walks on from blocks, but for closed ones.
    fn follow(
        &mut self,
        input: Input<'_>,
        variant: Variant,
        mut work: Vec<BlockId>,
        closed: &[bool],
    ) {
        let flow = input.flow;
        let frames = self.code.frames;
        let is_closed = |block: BlockId| closed.get(block.0 as usize) == Some(&true);
        while let Some(block) = work.pop() {
            let Some(mut state) = self.before.get(block).copied() else {
                continue;
            };
            self.block(input, block, variant, &mut state);
            let at_end = self.lost_at_end(block, &state, input.lost);
            let lost = &mut self.lost[frames.of(block)];
            *lost = lost.union(at_end);
            for (next, leads) in frames.edges(flow, block) {
                if let (Leads::Away, Some(kept), Some(entry)) =
                    (leads, &state.kept, flow.begin(next))
                {
                    *lost = lost
                        .union(kept.lost())
                        .union(input.lost.to(Called::Entry(entry)));
                }
                if is_left_out(input, next) || is_closed(next) {
                    continue;
                }
                let changed = match leads {
                    Leads::Inside => self.before.arrive(next, &state),
                    Leads::Away | Leads::Nowhere => self.before.arrive(next, &state.of_another()),
                };
                if changed {
                    work.push(next);
                }
            }
        }
    }

    /// Walks through a block.
    fn block(&mut self, input: Input<'_>, block: BlockId, variant: Variant, state: &mut State) {
        let insts = input.flow.instructions(block);
        let Some(last) = insts.clone().last().map(InstIdx) else {
            return;
        };
        let all = state.path.follows_all();
        let mut n = self.first[block.0 as usize] as usize;
        let mut before_last = None;
        let mut may_differ = true;
        for i in insts.map(InstIdx) {
            if self.dependents.get(n) == Some(&i) {
                match std::mem::take(&mut may_differ) {
                    true => self.found.keep(n, &state.path.facts()),
                    false => self.found.keep_latest(n),
                }
                n += 1;
            }
            if i == last && input.flow.may_be_skipped(i) {
                before_last = Some(*state);
            }
            let at = i.0 as usize;
            let survey = &input.surveys[at];
            let writes = || survey.written().intersects(LocSet::registers());
            let concerns = || state.concerns(&input.lifted.insts[at].iced, survey);
            if (input.changes_facts[at] || all && writes()) && concerns() {
                state.pass(input, i, variant);
                may_differ = true;
            }
        }
        // Where control leaves it before, its effect is missing, and a handler has written.
        if let Some(before_last) = before_last {
            *state = state.join(before_last);
            let written = input.flow.written_by_handler(last);
            state.path.overwrite(written);
            state
                .kept
                .iter_mut()
                .for_each(|kept| kept.overwrite(written));
        }
    }

    /// What is lost where a function ends with a block.
    fn lost_at_end(&self, block: BlockId, after: &State, lost: &Lost) -> LocSet {
        let analysis = self.code.analysis;
        let Some(kept) = &after.kept else {
            return LocSet::empty();
        };
        let last = analysis.flow.instructions(block).last();
        match last.map(|last| analysis.exits[last as usize]) {
            Some(Exit::Return) => kept.lost(),
            Some(Exit::TailOut) => kept.lost().union(lost.to(Called::Pointed)),
            _ => LocSet::empty(),
        }
    }
}
