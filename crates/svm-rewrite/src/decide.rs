//! All decisions about code, in order: the class of each instruction, the stack facts
//! there, and how it will be written. Objects and assembly text both use this.

use std::num::NonZero;

use twin_abi::{Accesses, stack};

use crate::analyse::class::Class;
use crate::analyse::codemap::Codemap;
use crate::analyse::flow::{Conventions, Hints};
use crate::analyse::unread::Unread;
use crate::analyse::{self, Analysis, codemap, reach};
use crate::encode::apply::Decisions;
use crate::encode::deep;
use crate::explain::stats::{self, Stats};
use crate::frame::facts::{Asked, FactsBefore};
use crate::frame::frames::Frames;
use crate::frame::lost::Lost;
use crate::frame::solve::{self, solve};
use crate::frame::variants::Variants;
use crate::frame::words::{self, StackWords};
use crate::lift::Lifted;
use crate::options::{Options, contradiction};
use crate::plan::returns::{self, ReturnWords};
use crate::plan::{self, InstPlan, Planner};
use crate::refusal::{self, Refusal, RefusalCode};
use crate::targets::{self, Descriptor};

/// Everything that was decided about an object's code.
pub struct Decided<'a> {
    /// Results of the analyses.
    pub analysis: Analysis<'a>,
    /// The variants of functions.
    pub variants: Variants,
    /// Stack facts.
    pub facts: FactsBefore,
    /// What each instruction is. Its plan says so too, among much that most questions are not
    /// about.
    pub classes: Vec<Class>,
    /// How each instruction is treated.
    pub plans: Vec<InstPlan>,
    /// Where return addresses are kept and compared.
    pub returns: ReturnWords,
    /// Which stack has which words, if there are two.
    pub words: Option<StackWords>,
}

impl Decided<'_> {
    /// Counts of the instructions.
    pub fn stats(&self) -> Stats {
        let classes = self.classes.iter().copied().map(Some);
        stats::stats(&self.analysis, classes, Accesses::All)
    }

    /// All of it, in the form that [`crate::encode`] takes.
    pub fn decisions(&self, options: Options) -> Decisions<'_> {
        let rules = &targets::of(options.target).code;
        Decisions {
            analysis: &self.analysis,
            rules,
            scheme: options.scheme,
            row: options.row(),
            classes: &self.classes,
            plans: &self.plans,
            facts: &self.facts,
            variants: &self.variants,
            returns: &self.returns,
            words: self.words.as_ref(),
            parts_traps: (rules.parts_traps)(self.analysis.lifted.object),
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
    codemap: &Codemap,
    options: Options,
) -> Result<Decided<'a>, Vec<Refusal>> {
    let target = targets::of(options.target);
    if let Some(reason) = contradiction(options, target) {
        return Err(vec![Refusal::of_object(RefusalCode::Options, reason)]);
    }
    (target.check_object)(lifted.object).map_err(|refusal| vec![refusal])?;
    // Control flow, what each instruction is, what is live before it.
    let analysis = analyse::analyse(
        lifted, hints, &target.classes, options.accesses, options.threads,
    )?;
    let asked = match options.row().has_checks() {
        true => Asked::of(target.keeps_frames),
        false => Asked::AllWords,
    };
    let Some(refined) = refine(&analysis, codemap, target, asked) else {
        return Err(analysis.refusals);
    };
    let Refined {
        classes,
        variants,
        facts,
        frames,
        lost,
    } = refined;
    // --- classes do not change beyond this point ---
    let refusals = (target.refused)(&analysis, &classes);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // Registers and flags for each sequence.
    let plans = plan_all(&analysis, &classes, options, &target.plans)?;
    let refusals = plan::stack::check(lifted, &classes, &plans, &facts, &variants);
    if !refusals.is_empty() {
        return Err(refusals);
    }
    // A second stack has the data; no return address is on it.
    let words = match options.row().has_checks() {
        true => None,
        false => Some(words::find(
            &analysis, &classes, &facts, &lost, &frames, &variants,
        )?),
    };
    let returns = match target.classes.guards_returns && words.is_none() {
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
    let decided = Decided {
        analysis,
        variants,
        facts,
        classes,
        plans,
        returns,
        words,
    };
    match too_deep(&decided, target, options) {
        refusals if refusals.is_empty() => Ok(decided),
        refusals => Err(refusals),
    }
}

/// Refuses each function whose frame is too large only with what sequences push there. Of
/// programs nothing is proved, and their stacks are large.
fn too_deep(decided: &Decided<'_>, target: &Descriptor, options: Options) -> Vec<Refusal> {
    if !decided.analysis.flow.has_deep() || target.classes.conventions != Conventions::Psabi {
        return Vec::new();
    }
    let mut refusals = Vec::new();
    for (i, bytes) in deep::too_deep(&decided.decisions(options), target.keeps_frames) {
        let most = stack::MAX_FRAME;
        let reason = format!(
            "the frame has {bytes} bytes here with what the rewritten code pushes, and it may \
             have {most}"
        );
        let refusal = decided
            .analysis
            .lifted
            .refusal(RefusalCode::StackPointer, i, reason);
        refusal::add(&mut refusals, refusal);
    }
    refusals
}

/// Counts the instructions of code that may be refused, if it can be analysed; of accesses
/// to memory only these.
///
/// # Errors
/// Metadata that cannot be read.
pub fn statistics(
    lifted: &Lifted<'_>,
    target: &Descriptor,
    accesses: Accesses,
) -> Result<Stats, Vec<Refusal>> {
    let hints = Hints::of_object(lifted);
    let analysis = analyse::analyse(
        lifted,
        &hints,
        &target.classes,
        Accesses::All,
        NonZero::<usize>::MIN,
    )?;
    let codemap = codemap::entries(lifted, &hints.switches, &Unread::find(lifted.object)).ok();
    let asked = Asked::of(target.keeps_frames);
    let refined = codemap.and_then(|codemap| refine(&analysis, &codemap, target, asked));
    Ok(match refined {
        Some(refined) => {
            let classes = refined.classes.into_iter().map(Some);
            stats::stats(&analysis, classes, accesses)
        }
        None => stats::stats(&analysis, analysis.classes.iter().copied(), accesses),
    })
}

/// The classes of code that is accepted so far, and the stack facts that they depend on.
struct Refined {
    classes: Vec<Class>,
    variants: Variants,
    facts: FactsBefore,
    frames: Frames,
    lost: Lost,
}

/// Gives the final classes; `None` if an instruction is refused.
fn refine(
    analysis: &Analysis<'_>,
    codemap: &Codemap,
    target: &Descriptor,
    asked: Asked,
) -> Option<Refined> {
    if !analysis.refusals.is_empty() {
        return None;
    }
    let lifted = analysis.lifted;
    let classes = analysis.classes.iter();
    let mut classes: Vec<Class> = classes
        .map(|class| class.expect("what is not refused has one"))
        .collect();
    if target.leaves_out_unreached {
        reach::leave_out(
            lifted, &analysis.flow, &analysis.exits, &analysis.switches, codemap, &mut classes,
        );
    }
    let variants = Variants::find(lifted, &analysis.flow, &classes);
    let frames = Frames::find(lifted, &analysis.flow);
    let (facts, lost) = solve(solve::Code {
        analysis,
        classes: &classes,
        codemap,
        frames: &frames,
        variants: &variants,
        asked,
        enters_unreached: target.enters_unreached,
    });
    (target.refine)(analysis, &facts, &mut classes);
    Some(Refined {
        classes,
        variants,
        facts,
        frames,
        lost,
    })
}

fn plan_all(
    analysis: &Analysis<'_>,
    classes: &[Class],
    options: Options,
    rules: &plan::Rules,
) -> Result<Vec<InstPlan>, Vec<Refusal>> {
    let code = plan::Code {
        lifted: analysis.lifted,
        surveys: &analysis.surveys,
        flow: &analysis.flow,
        classes,
        live_before: &analysis.live_before,
    };
    let planner = Planner::new(code, options.row(), rules, options.strict);
    planner.plan_all()
}
