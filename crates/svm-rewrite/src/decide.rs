//! All decisions about code, in order: the class of each instruction, the stack facts
//! there, and how it will be written. Objects and assembly text both use this.

use std::collections::BTreeSet;

use twin_abi::{Scheme, Target};

use crate::analyse::class::Class;
use crate::analyse::flow::Hints;
use crate::analyse::{self, Analysis, reach};
use crate::encode::apply::Decisions;
use crate::frame::facts::{self, FactsBefore};
use crate::frame::variants::Variants;
use crate::lift::{CodeIdx, Lifted};
use crate::plan::returns::{self, ReturnWords};
use crate::plan::{self, Plan, Planner};
use crate::refusal::{Code, Refusal};
use crate::{schemes, targets};

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the result runs on.
    pub target: Target,
    /// How addresses are translated.
    pub scheme: Scheme,
    /// Whether to fill [`crate::Rewritten::sites`], which takes as long as the rest.
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

/// Everything that was decided about an object's code.
pub struct Decided<'a> {
    /// Results of the analyses.
    pub analysis: Analysis<'a>,
    /// The variants of functions.
    pub variants: Variants,
    /// Stack facts.
    pub facts: FactsBefore,
    /// How each instruction is treated.
    pub plans: Vec<Plan>,
    /// Where return addresses are kept and compared.
    pub returns: ReturnWords,
}

impl Decided<'_> {
    /// All of it, in the form that [`crate::encode`] takes.
    pub fn decisions(&self, options: Options) -> Decisions<'_> {
        Decisions {
            analysis: &self.analysis,
            rules: &targets::of(options.target).code,
            scheme: options.scheme,
            plans: &self.plans,
            facts: &self.facts,
            variants: &self.variants,
            returns: &self.returns,
        }
    }
}

/// Analyses and plans. `codemap` has the places that indirect calls may reach: entries
/// that no direct branch shows.
///
/// # Errors
/// Every place that cannot be rewritten soundly.
pub fn decide<'a>(
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
    let analysis = analyse::analyse(lifted, hints, &target.classes)?;
    let mut classes = accepted(&analysis)?;
    if target.leaves_out_unreached {
        reach::leave_out(
            lifted,
            &analysis.flow,
            &analysis.exits,
            &analysis.switches,
            codemap,
            &mut classes,
        );
    }
    let variants = Variants::find(lifted, &analysis.flow, &classes);
    let input = facts::Input {
        lifted,
        changes_facts: &analysis.changes_facts,
        flow: &analysis.flow,
        classes: &classes,
    };
    let facts = facts::analyse(input, &variants, target.keeps_frames);
    (target.refine)(&analysis, &facts, &mut classes);
    // --- classes do not change beyond this point ---
    // Registers and flags for each sequence.
    let plans = plan_all(&analysis, &classes, options.scheme, &target.plans)?;
    let refusals = plan::stack::check(lifted, &plans, &facts, &variants);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let returns = match target.guards_returns {
        true => returns::plan(&returns::Input {
            lifted,
            surveys: &analysis.surveys,
            flow: &analysis.flow,
            plans: &plans,
            live_before: &analysis.live_before,
            codemap,
        }),
        false => ReturnWords::default(),
    };
    Ok(Decided {
        analysis,
        variants,
        facts,
        plans,
        returns,
    })
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
