//! The analyses, which come before all decisions.
//!
//! Everything about a single instruction is found in one pass, while the instruction is
//! in the CPU's cache: whole objects do not fit. Control flow and liveness need all
//! instructions and come after.

mod alike;
pub mod class;
pub mod classify;
pub mod codemap;
pub mod distances;
pub mod flow;
mod foreign;
mod private;
pub mod reach;
pub mod references;
pub mod routines;
pub mod survey;
pub mod switches;
mod threads;
pub mod type_checks;
mod unbalanced;
pub mod unread;

use std::num::NonZero;
use std::ops::Range;

use foldhash::HashMap;
use iced_x86::Instruction;
use liveness::{BlockId, Effect, LocSet};
use twin_abi::Accesses;

use crate::lift::{FuncIdx, Function, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};
use alike::{Alike, Bytes, Known, bytes_tell_class};
use class::Class;
use classify::{Kept, Question};
use flow::effects;
use flow::{Conventions, Exit, Flow, HiddenFlow, Hints};
use references::References;
use survey::{Survey, Surveyor};
use switches::Switches;

/// Results of the analyses.
pub struct Analysis<'a> {
    pub(crate) lifted: &'a Lifted<'a>,
    /// What the relocated fields of its instructions become.
    pub(crate) references: References,
    /// What the decoder's tables say of each instruction.
    pub(crate) surveys: Vec<Survey>,
    /// Whether each may change a fact of [`crate::frame`].
    pub(crate) changes_facts: Vec<bool>,
    pub(crate) flow: Flow,
    /// Where control goes after each instruction.
    pub(crate) exits: Vec<Exit>,
    /// Class of each instruction; `None` where it is refused.
    pub(crate) classes: Vec<Option<Class>>,
    /// Live locations before each instruction.
    pub(crate) live_before: Vec<LocSet>,
    pub(crate) refusals: Vec<Refusal>,
    /// Jumps through tables.
    pub(crate) switches: Switches,
}

/// Analyses code, of which these accesses are to be translated, on so many threads. Refusals
/// of instructions are in the result.
///
/// # Errors
/// Metadata that cannot be read.
pub(crate) fn analyse<'a>(
    lifted: &'a Lifted<'a>,
    hints: &Hints,
    rules: &classify::Rules,
    accesses: Accesses,
    threads: NonZero<usize>,
) -> Result<Analysis<'a>, Vec<Refusal>> {
    // Facts from metadata and the target, before any instruction is looked at.
    let hidden = HiddenFlow::find(lifted, hints).map_err(|refusal| vec![refusal])?;
    let kept = (rules.kept)(lifted).map_err(|refusal| vec![refusal])?;
    let mut judge = Judge {
        lifted,
        hidden: &hidden,
        hints,
        rules,
        accesses,
        kept: &kept,
        hypercalls: routines::has_hypercalls(lifted),
        conventions: rules.conventions,
    };
    let mut references = (rules.references)(lifted);
    let refused = std::mem::take(&mut references.refusals);
    let judged = |judge: &Judge<'_>, refused| {
        let runs = threads::by_functions(lifted, threads, |functions| judge.run(functions));
        let mut judgements = Judgements::joined(runs, lifted.insts.len(), refused);
        if rules.conventions == Conventions::Psabi {
            hidden.go_on_behind_stops(lifted, &mut judgements.exits);
        }
        let effects = std::mem::take(&mut judgements.effects);
        let known = flow::InstFacts {
            exits: &judgements.exits,
            surveys: &judgements.surveys,
            changes_facts: &judgements.changes_facts,
        };
        let flow = flow::analyse(lifted, &hidden, judge.conventions, &known, effects);
        (judgements, flow)
    };
    let (mut judgements, mut flow) = judged(&judge, refused.clone());
    // Hand-written code may call its own functions through registers, by a convention of its own.
    let private = (rules.conventions == Conventions::Psabi)
        .then(|| private::call(lifted, &flow, &judgements.exits, &judgements.surveys));
    match private.flatten() {
        // Where returns are guarded, all functions keep to the psABI: any may be entered.
        Some(call) if rules.guards_returns => {
            let reason = "a register is read after it that the psABI lets the callee change";
            let refusal = lifted.refusal(RefusalCode::Unsupported, call, reason);
            refusal::add(&mut judgements.refusals, refusal);
        }
        Some(_) => {
            judge.conventions = Conventions::Any;
            (judgements, flow) = judged(&judge, refused);
        }
        None => {}
    }
    if rules.conventions == Conventions::Psabi {
        let backward = backward(lifted, &flow, &judgements.classes);
        for refusal in backward.chain(unbalanced::refusals(lifted, &flow, rules)) {
            refusal::add(&mut judgements.refusals, refusal);
        }
    }
    let live_before = live_before(&flow, lifted.insts.len());
    let mut refusals = judgements.refusals;
    refusals.extend(switches::refusals(lifted, &hints.switches, &live_before));
    Ok(Analysis {
        lifted,
        references,
        surveys: judgements.surveys,
        changes_facts: judgements.changes_facts,
        flow,
        exits: judgements.exits,
        classes: judgements.classes,
        live_before,
        refusals,
        switches: hints.switches.clone(),
    })
}

/// Calls and returns with the direction flag set (psABI 3.2.1), and what becomes a call.
fn backward(
    lifted: &Lifted<'_>,
    flow: &Flow,
    classes: &[Option<Class>],
) -> impl Iterator<Item = Refusal> {
    flow.backward.iter().filter_map(|&i| {
        let becomes_call = matches!(classes[i.0 as usize], Some(Class::Port(_) | Class::Trap(_)));
        let reason = match (becomes_call, flow::is_gate(&lifted.inst(i).iced)) {
            (true, _) => {
                "the direction flag may be set here, and this becomes a call; put cld before it"
            }
            (false, true) => return None,
            (false, false) => {
                "the direction flag may be set here; put cld before calls and returns"
            }
        };
        Some(lifted.refusal(RefusalCode::Direction, i, reason))
    })
}

/// The inputs for judging an instruction.
struct Judge<'q> {
    lifted: &'q Lifted<'q>,
    hidden: &'q HiddenFlow,
    hints: &'q Hints,
    rules: &'q classify::Rules,
    accesses: Accesses,
    kept: &'q HashMap<u32, Kept>,
    /// Whether an indirect call may be one of Xen.
    hypercalls: bool,
    /// What calls and returns do to registers.
    conventions: Conventions,
}

/// The results for each instruction, by index.
struct Judgements {
    surveys: Vec<Survey>,
    changes_facts: Vec<bool>,
    exits: Vec<Exit>,
    effects: Vec<Effect>,
    classes: Vec<Option<Class>>,
    refusals: Vec<Refusal>,
}

impl Judgements {
    /// Those of one run of functions after the other; refusals come after earlier ones.
    fn joined(runs: Vec<Judgements>, count: usize, refusals: Vec<Refusal>) -> Judgements {
        let mut runs = runs.into_iter();
        let mut all = runs.next().unwrap_or_else(|| Judgements::room_for(0));
        let own = std::mem::replace(&mut all.refusals, refusals);
        all.refuse(own);
        let missing = count - all.surveys.len();
        all.surveys.reserve_exact(missing);
        all.exits.reserve_exact(missing);
        all.effects.reserve_exact(missing);
        for run in runs {
            all.surveys.extend(run.surveys);
            all.changes_facts.extend(run.changes_facts);
            all.exits.extend(run.exits);
            all.effects.extend(run.effects);
            all.classes.extend(run.classes);
            all.refuse(run.refusals);
        }
        all
    }

    fn refuse(&mut self, refusals: Vec<Refusal>) {
        for refusal in refusals {
            refusal::add(&mut self.refusals, refusal);
        }
    }

    fn room_for(count: usize) -> Judgements {
        Judgements {
            surveys: Vec::with_capacity(count),
            changes_facts: Vec::with_capacity(count),
            exits: Vec::with_capacity(count),
            effects: Vec::with_capacity(count),
            classes: Vec::with_capacity(count),
            refusals: Vec::new(),
        }
    }
}

impl Judge<'_> {
    /// Judges the instructions of functions that follow one another.
    fn run(&self, functions: Range<u32>) -> Judgements {
        let insts = functions.clone().map(|f| self.lifted.function(FuncIdx(f)));
        let count = insts.map(|function| function.insts.len()).sum();
        let (mut memory, mut judgements) = (Memory::new(count), Judgements::room_for(count));
        for f in functions.map(FuncIdx) {
            self.function(f, &mut memory, &mut judgements);
        }
        judgements
    }

    /// Judges the instructions of a function.
    fn function(&self, f: FuncIdx, memory: &mut Memory, judgements: &mut Judgements) {
        let lifted = self.lifted;
        let function = lifted.function(f);
        let context = effects::Context {
            skipped: &self.hidden.extra.skipped,
            handlers: &self.hidden.extra.handlers,
            hints: self.hints,
            conventions: self.conventions,
            hypercalls: self.hypercalls,
        };
        let contents = lifted.contents(function.section);
        for i in function.insts.clone().map(InstIdx) {
            let Known {
                survey,
                effect,
                changes_facts,
                class,
            } = self.instruction((function, contents, i), memory, &mut judgements.refusals);
            let exit = self.hidden.exit(lifted, i, self.rules.conventions);
            let effect = effects::effect(lifted, i, effect, &exit, &context);
            judgements.effects.push(effect);
            judgements.exits.push(exit);
            judgements.changes_facts.push(changes_facts);
            judgements.surveys.push(survey);
            judgements.classes.push(class);
        }
    }

    /// Whether more is known of an instruction, by its place, than its bytes tell.
    fn is_named(&self, function: &Function, i: InstIdx) -> bool {
        function.padding || self.kept.contains_key(&i.0) || self.hidden.extra.skipped.contains(&i.0)
    }

    /// Judges an instruction of a function, in a section with these contents. What its bytes
    /// tell is kept for others with the same bytes. Refusals are of a place: they are found
    /// again.
    fn instruction(
        &self,
        (function, contents, i): (&Function, &[u8], InstIdx),
        Memory { surveyor, alike }: &mut Memory,
        refusals: &mut Vec<Refusal>,
    ) -> Known {
        let inst = self.lifted.inst(i);
        let bytes = Bytes::of(inst, contents);
        let tell_class = bytes_tell_class(inst) && !self.is_named(function, i);
        let found = alike.get(bytes);
        if let Some(known) = found.filter(|known| tell_class && known.class.is_some()) {
            return *known;
        }
        let is_new = found.is_none();
        let mut known = match found {
            Some(known) => *known,
            None => self.survey(&inst.iced, surveyor),
        };
        known.class = self
            .class(function, i, &known.survey)
            .map_err(|refusal| refusal::add(refusals, refusal))
            .ok();
        if tell_class {
            alike.keep(bytes, known);
        } else if is_new {
            alike.keep(
                bytes,
                Known {
                    class: None,
                    ..known
                },
            );
        }
        known
    }

    /// All but its class.
    fn survey(&self, iced: &Instruction, surveyor: &mut Surveyor) -> Known {
        let (mut survey, mut effect) = surveyor.of(iced);
        (self.rules.amend)(iced, &mut survey, &mut effect);
        Known {
            survey,
            effect,
            changes_facts: survey::may_change_facts(iced, &survey),
            class: None,
        }
    }

    fn class(&self, function: &Function, i: InstIdx, survey: &Survey) -> Result<Class, Refusal> {
        let question = Question {
            lifted: self.lifted,
            hidden: self.hidden,
            survey,
            inst: i,
            padding: function.padding,
            kept: self.kept.get(&i.0).copied(),
            switch: self.hints.switches.at(i).map(|switch| switch.callee),
            accesses: self.accesses,
        };
        classify::classify(self.rules, &question)
    }
}

/// What is kept of instructions that were judged, for others like them.
struct Memory {
    surveyor: Surveyor,
    alike: Alike,
}

impl Memory {
    fn new(instructions: usize) -> Memory {
        Memory {
            surveyor: Surveyor::new(),
            alike: Alike::new(instructions),
        }
    }
}

fn live_before(flow: &Flow, count: usize) -> Vec<LocSet> {
    let liveness = liveness::solve(flow);
    let mut before = vec![LocSet::empty(); count];
    for block in 0..flow.blocks().len() as u32 {
        liveness.before_each(flow, BlockId(block), |inst, live, _| {
            before[inst.0 as usize] = live
        });
    }
    before
}
