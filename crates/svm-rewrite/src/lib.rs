//! The rewriter: takes the code of a driver apart and puts it together again so
//! that every access to dom0's memory goes through Software Virtual Memory.
//!
//! ```text
//! lift ──> analysis ──> forward ──> plan ──> apply ──> emit
//! ```
//!
//! Each step borrows what the former made and gives data; `apply` alone writes
//! code. Nothing here is trusted with safety: `svm-verify` proves the
//! result without knowing how it was made. What is trusted to this crate is
//! that the result computes what the original did.

mod analysis;
mod apply;
mod asm;
pub mod class;
mod classify;
mod codemap;
mod copies;
mod effects;
mod encode;
mod explanations;
mod extension;
mod flow;
mod forward;
mod frame;
mod hash;
mod import;
mod invocations;
pub mod lift;
mod linkage;
pub mod listing;
mod metadata;
mod plan;
mod prefix;
mod reach;
mod refusal;
mod registers;
mod report;
mod returns;
mod reuse;
mod schemes;
mod sequences;
mod sites;
pub mod source;
mod stats;
mod survey;
mod targets;
pub mod text;
mod trace;
mod values;

use std::collections::BTreeSet;

use elf_loader::Object;

pub use refusal::{Code, Refusal};
pub use report::Site;
pub use stats::{DeadRegisters, LivenessCounts, Sites, Stats};
pub use twin_abi::{Scheme, Target};

use analysis::Analysis;
use apply::{Applied, Decisions};
use class::Class;
use copies::Copies;
use flow::Hints;
use forward::FactsBefore;
use lift::{CodeIdx, Lifted};
use plan::{Plan, Planner};
use returns::ReturnWords;

/// Everything that was decided and done.
struct Rewriting<'a> {
    lifted: &'a Lifted<'a>,
    scheme: Scheme,
    plans: Vec<Plan>,
    returns: ReturnWords,
    applied: Applied,
}

/// A rewritten object and the account of it.
#[derive(Debug)]
pub struct Rewritten {
    /// The object, ready to be verified and written.
    pub object: Object<'static>,
    /// Counts over the original.
    pub stats: Stats,
    /// What was done at each site; empty unless it was asked for.
    pub sites: Vec<Site>,
}

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the result runs on.
    pub target: Target,
    /// Translation scheme.
    pub scheme: Scheme,
    /// Whether [`Rewritten::sites`] is wanted; it takes as long as the rest.
    pub report: bool,
    /// For tests: before each sequence, also overwrite every register and the
    /// flags that liveness calls dead there. Behaviour must not change.
    pub poison: bool,
}

impl Options {
    /// The ordinary rewriting for the default target under a scheme.
    pub fn new(scheme: Scheme) -> Options {
        Options::of(Target::default(), scheme)
    }

    /// The ordinary rewriting for a target under a scheme.
    pub fn of(target: Target, scheme: Scheme) -> Options {
        Options {
            target,
            scheme,
            report: false,
            poison: false,
        }
    }
}

/// Whether code for a target can have the checks of a scheme.
pub fn suits(scheme: Scheme, target: Target) -> bool {
    schemes::row(scheme).reaches(targets::of(target).plans.table)
}

/// Rewrites an object.
///
/// # Errors
/// Every place that cannot be rewritten soundly; nothing is passed through.
pub fn rewrite(object: &Object<'_>, options: Options) -> Result<Rewritten, Vec<Refusal>> {
    let target = targets::of(options.target);
    let emit = target
        .emit
        .map_err(|reason| vec![Refusal::of_object(Code::Machine, reason)])?;
    // The object's code as instructions, functions and branch targets.
    let lifted = lift::lift(object)?;
    let codemap = codemap::entries(&lifted)?;
    let Decided {
        analysis,
        copies,
        facts,
        plans,
    } = decide(&lifted, &Hints::default(), &codemap, options)?;
    let returns = match target.guards_returns {
        true => returns::plan(&returns::Input {
            lifted: &lifted,
            surveys: &analysis.surveys,
            flow: &analysis.flow,
            plans: &plans,
            live_before: &analysis.live_before,
            codemap: &codemap,
        }),
        false => ReturnWords::default(),
    };
    // --- nothing is decided beyond this point ---
    let decisions = Decisions {
        plans: &plans,
        facts: &facts,
        copies: &copies,
        returns: &returns,
    };
    let applied = apply::apply(&analysis, decisions, options)?;
    let mut rewriting = Rewriting {
        lifted: &lifted,
        scheme: options.scheme,
        plans,
        returns,
        applied,
    };
    let sites = if options.report {
        report::sites(&rewriting)
    } else {
        Vec::new()
    };
    // --- the code itself goes into the object beyond this point ---
    let applied = &mut rewriting.applied;
    let object = emit(&lifted, applied, &codemap, options.scheme)?;
    let stats = stats::stats(&analysis);
    Ok(Rewritten {
        object,
        stats,
        sites,
    })
}

/// Everything that was decided about an object's code.
struct Decided<'a> {
    analysis: Analysis<'a>,
    copies: Copies,
    facts: FactsBefore,
    plans: Vec<Plan>,
}

/// Analyses and plans. `codemap` is what indirect calls may reach, where nothing else
/// is known to be entered.
///
/// # Errors
/// Every place that cannot be rewritten soundly.
fn decide<'a>(
    lifted: &'a Lifted<'a>,
    hints: &Hints,
    codemap: &BTreeSet<(CodeIdx, u64)>,
    options: Options,
) -> Result<Decided<'a>, Vec<Refusal>> {
    if !suits(options.scheme, options.target) {
        let reason = "its checks have absolute addresses, which the target cannot have";
        return Err(vec![Refusal::of_object(Code::Unsupported, reason)]);
    }
    let target = targets::of(options.target);
    (target.check_object)(lifted.object).map_err(|refusal| vec![refusal])?;
    // Control flow, what each instruction is, what is live before it.
    let analysis = analysis::analyse(lifted, hints, &target.classes)?;
    let mut classes = accepted(&analysis)?;
    if target.leaves_out_unreached {
        reach::leave_out(
            lifted,
            &analysis.flow,
            &analysis.exits,
            codemap,
            &mut classes,
        );
    }
    let copies = Copies::find(lifted, &analysis.flow, &classes);
    let input = forward::Input {
        lifted,
        changes_facts: &analysis.changes_facts,
        flow: &analysis.flow,
        classes: &classes,
    };
    let facts = forward::analyse(input, &copies, target.keeps_frames);
    (target.refine)(&analysis, &facts, &mut classes);
    // Registers and flags for each sequence: the last decision.
    let plans = plan_all(&analysis, &classes, options.scheme, &target.plans)?;
    Ok(Decided {
        analysis,
        copies,
        facts,
        plans,
    })
}

/// Counts what an object's code consists of. Works for objects that would be
/// refused, as long as they can be lifted.
///
/// # Errors
/// The code cannot be lifted.
pub fn statistics(object: &Object<'_>) -> Result<Stats, Vec<Refusal>> {
    let lifted = lift::lift(object)?;
    Ok(stats::stats(&analysis::analyse(
        &lifted,
        &Hints::default(),
        &targets::of(Target::default()).classes,
    )?))
}

fn accepted(analysis: &Analysis<'_>) -> Result<Vec<Class>, Vec<Refusal>> {
    if !analysis.refusals.is_empty() {
        return Err(analysis.refusals.clone());
    }
    let mut classes = Vec::with_capacity(analysis.classes.len());
    classes.extend(analysis.classes.iter().flatten());
    Ok(classes)
}

fn plan_all(
    analysis: &Analysis<'_>,
    classes: &[Class],
    scheme: Scheme,
    rules: &plan::Rules,
) -> Result<Vec<Plan>, Vec<Refusal>> {
    let planner = Planner::new(
        analysis.lifted,
        &analysis.surveys,
        &analysis.flow,
        schemes::row(scheme),
        rules,
        classes,
        &analysis.live_before,
    );
    planner.plan_all()
}
