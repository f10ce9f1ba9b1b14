//! Executes forms natively and rewritten, in every way, and counts.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use iced_x86::EncodingKind;
use process_lab::error::Error;
use process_lab::program::{ANYWHERE, Bounds, Scheme, Variant};
use process_lab::random::mix;
use twin_abi::Processor;

use super::cases::{self, Case, Live};
use super::compare::{Difference, agree, describe, is_out_of_reach, listing};
use super::copies::Copies;
use super::enter::{self, Features};
use super::image::{self, Image, Rewritten};
use super::native::Native;
use super::object::{HELPER, object};
use super::process::{PATIENCE, Share, Work, run_all};
use super::record::{Ending, Record, Records};
use super::report::FormsReport;
use super::state::Setting;
use super::survey::{self, FormVerdict};
use super::twin::Twin;
use super::{Form, known};

/// What to run.
#[derive(Clone, Debug)]
pub struct Extent {
    /// States of each case.
    pub states: u64,
    /// States of each case of a string instruction.
    pub string_states: u64,
    /// First seed, and how many.
    pub seeds: (u64, u64),
    /// One form in this many, chosen by its number.
    pub one_in: u64,
    /// Only forms of these numbers, unless there are none.
    pub only: Vec<usize>,
    /// Batches that run at the same time.
    pub jobs: usize,
    /// Whether known defects are run too, to see whether they still exist.
    pub known: bool,
}

/// A way to run rewritten code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Execution {
    /// How it is rewritten.
    pub variant: Variant,
    /// With the identity for a table.
    pub identity: bool,
    /// Who copies strings.
    pub copies: Copies,
    /// What strict code compares pointers with.
    pub dom0: Bounds,
}

impl Execution {
    /// Which states are run this way. The effect of poisoned code depends on its
    /// registers, not on the table, and the identity is the same table in every state:
    /// a quarter of the states suffices for both, and for other processors' copies.
    fn share(self) -> Share {
        let replayed = self.copies != Copies::Processor;
        Share {
            one_in: match self.identity || self.variant.poison || replayed {
                true => 4,
                false => 1,
            },
            only_copies: replayed,
        }
    }
}

/// Its name in the description of a difference.
impl fmt::Display for Execution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.variant.name())?;
        if self.identity {
            f.write_str(", identity")?;
        }
        match self.copies {
            Copies::Processor => Ok(()),
            copies => write!(f, ", strings copied by {}", copies.name()),
        }
    }
}

const fn execution(scheme: Scheme, poison: bool, identity: bool) -> Execution {
    execution_on(Processor::Any, scheme, poison, identity)
}

const fn execution_on(
    processor: Processor,
    scheme: Scheme,
    poison: bool,
    identity: bool,
) -> Execution {
    Execution {
        variant: Variant {
            scheme,
            processor,
            strict: false,
            poison,
        },
        identity,
        copies: Copies::Processor,
        dom0: ANYWHERE,
    }
}

/// With comparisons of pointers, none of which is wild.
const fn strict(processor: Processor, scheme: Scheme, poison: bool) -> Execution {
    let plain = execution_on(processor, scheme, poison, false);
    Execution {
        variant: Variant {
            strict: true,
            ..plain.variant
        },
        ..plain
    }
}

/// Without the identity, which has one mapping of each page.
const fn replayed(scheme: Scheme, copies: Copies) -> Execution {
    Execution {
        copies,
        ..execution(scheme, false, false)
    }
}

/// All ways in which rewritten code is executed.
pub const EXECUTIONS: [Execution; 18] = [
    execution(Scheme::Stlb, false, false),
    execution(Scheme::Stlb, false, true),
    execution(Scheme::Stlb, true, false),
    execution(Scheme::Paper, false, false),
    execution(Scheme::Paper, false, true),
    execution(Scheme::Paper, true, false),
    replayed(Scheme::Stlb, Copies::Cautious),
    replayed(Scheme::Stlb, Copies::Fast),
    replayed(Scheme::Paper, Copies::Cautious),
    replayed(Scheme::Paper, Copies::Fast),
    execution(Scheme::Window32, false, false),
    execution(Scheme::Window32, true, false),
    execution_on(Processor::Bmi2, Scheme::Window, false, false),
    execution_on(Processor::Bmi2, Scheme::Window, true, false),
    execution(Scheme::Window, false, false),
    execution(Scheme::Window, true, false),
    strict(Processor::Any, Scheme::Window32, false),
    strict(Processor::Bmi2, Scheme::Window, true),
];

/// The rewritings that [`EXECUTIONS`] needs.
const VARIANTS: [Variant; 12] = [
    EXECUTIONS[0].variant,
    EXECUTIONS[2].variant,
    EXECUTIONS[3].variant,
    EXECUTIONS[5].variant,
    EXECUTIONS[10].variant,
    EXECUTIONS[11].variant,
    EXECUTIONS[12].variant,
    EXECUTIONS[13].variant,
    EXECUTIONS[14].variant,
    EXECUTIONS[15].variant,
    EXECUTIONS[16].variant,
    EXECUTIONS[17].variant,
];

/// Cases that are rewritten and run together.
struct Batch {
    cases: Vec<Case>,
    pages: u64,
    states: u64,
}

/// Executes the forms that were accepted.
///
/// # Errors
/// A system call's, the linker's, or a process that cannot be set up.
pub fn run(
    forms: &[Form],
    verdicts: &[FormVerdict],
    plan: &Extent,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Result<FormsReport, Error> {
    let batches = batches(forms, verdicts, plan);
    let (next, total) = (AtomicUsize::new(0), Mutex::new(left_out(forms, verdicts)));
    let failure = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = batches.get(n) else { break };
                    match run_batch(batch, plan) {
                        Ok(report) => total.lock().expect("no panic").add(report),
                        Err(error) => *failure.lock().expect("no panic") = Some(error),
                    }
                    progress(n + 1, batches.len());
                }
            });
        }
    });
    match failure.into_inner().expect("no panic") {
        Some(error) => Err(error),
        None => Ok(total.into_inner().expect("no panic")),
    }
}

/// Whether it changes registers that the machines here neither set nor compare: those
/// of AVX-512 without its masks of 64 bits. A processor without AVX-512 executes it
/// too, and reports that it does not know the instruction.
fn is_unobserved(form: &Form) -> bool {
    let wide = form.code.op_code().encoding() == EncodingKind::EVEX;
    let known = std::arch::is_x86_feature_detected!("avx512f");
    wide && known && enter::features() != Features::Avx512
}

/// Rewritten forms that are not executed, by reason.
fn left_out(forms: &[Form], verdicts: &[FormVerdict]) -> FormsReport {
    let mut report = FormsReport::default();
    for (n, form) in forms.iter().enumerate() {
        if !verdicts[n].is_rewritten() {
            continue;
        }
        let reason = if is_unobserved(form) {
            "AVX512F without AVX512BW, whose registers are not observed"
        } else if !Case::new(n, form, Live::Few, cases::Direction::Up, 8).can_run() {
            "a jump through its own frame, or a return: no function of its own"
        } else {
            continue;
        };
        report
            .skipped
            .entry(reason.to_owned())
            .or_default()
            .insert(n);
    }
    report
}

fn batches(forms: &[Form], verdicts: &[FormVerdict], plan: &Extent) -> Vec<Batch> {
    const CASES: usize = 2000;
    const STRING_CASES: usize = 60;
    const PAGES: u64 = 8;
    const STRING_PAGES: u64 = 32;
    let (mut plain, mut strings) = (Vec::new(), Vec::new());
    for (n, form) in forms.iter().enumerate() {
        let skip = !verdicts[n].is_rewritten() || is_unobserved(form);
        let probe = Case::new(n, form, Live::Few, cases::Direction::Up, PAGES);
        let chosen = probe.is_string() || mix(n as u64).is_multiple_of(plan.one_in);
        let left_out = !plan.only.is_empty() && !plan.only.contains(&n);
        if skip || left_out || !chosen || !probe.can_run() {
            continue;
        }
        match probe.is_string() {
            true => strings.extend(cases::of_form(n, form, STRING_PAGES)),
            false => plain.extend(cases::of_form(n, form, PAGES)),
        }
    }
    let batch = |cases: &[Case], pages, states| Batch {
        cases: cases.to_vec(),
        pages,
        states,
    };
    let strings = strings.chunks(STRING_CASES);
    let plain = plain.chunks(CASES);
    let strings = strings.map(|c| batch(c, STRING_PAGES, plan.string_states));
    strings
        .chain(plain.map(|c| batch(c, PAGES, plan.states)))
        .collect()
}

/// Cases that all of some variants accept, linked for each of these. A variant that lacks one
/// would have the functions after it at other places than the original has them.
struct Prepared<'b> {
    cases: Vec<(usize, &'b Case)>,
    original: Image,
    original_object: elf_loader::Object<'static>,
    rewritten: Vec<Rewritten<'static>>,
}

impl<'b> Prepared<'b> {
    fn new(
        cases: Vec<(usize, &'b Case)>,
        variants: impl Iterator<Item = Variant>,
    ) -> Result<Prepared<'b>, Error> {
        let made = object(cases.iter().copied());
        let rewritten = variants.map(|variant| {
            let object = survey::rewrite(&made, variant)?;
            Rewritten::new(object, variant)
        });
        Ok(Prepared {
            rewritten: rewritten.collect::<Result<_, Error>>()?,
            original: image::original(&made)?,
            original_object: made,
            cases,
        })
    }

    /// The ways in which it is executed.
    fn executions(&self) -> impl Iterator<Item = (Execution, &Rewritten<'static>)> {
        let executable = |execution: &Execution| execution.variant.is_executable();
        EXECUTIONS
            .into_iter()
            .filter(executable)
            .filter_map(|execution| {
                let share = execution.share();
                let has_case = self.cases.iter().any(|(_, case)| share.has_case(case));
                let mut programs = self.rewritten.iter();
                let program = programs.find(|r| r.variant == execution.variant)?;
                has_case.then_some((execution, program))
            })
    }
}

/// The cases of a batch that every variant accepts, and those that a window refuses (uses of
/// the stack pointer as a number); counts those that others refuse.
fn prepare<'b>(
    batch: &'b Batch,
    plan: &Extent,
    report: &mut FormsReport,
) -> Result<Vec<Prepared<'b>>, Error> {
    let verdicts = VARIANTS.map(|variant| survey::judge(&batch.cases, variant));
    let has_table = |variant: &Variant| Scheme::TABLES.contains(&variant.scheme);
    let refused_by = |n: usize, table: bool| {
        let judged = VARIANTS.iter().zip(&verdicts);
        let mut judged = judged.filter(|(variant, _)| has_table(variant) == table);
        judged.find_map(|(_, verdicts)| match &verdicts[n] {
            FormVerdict::Refused(code, _) => Some(*code),
            _ => None,
        })
    };
    let (mut everywhere, mut with_table) = (Vec::new(), Vec::new());
    for (n, case) in batch.cases.iter().enumerate() {
        match (refused_by(n, true), refused_by(n, false)) {
            (Some(code), _) => {
                let code = format!("{code}, {:?} live", case.live);
                *report.refused.entry(code).or_default() += 1;
            }
            _ if known::of(case).is_some() && !plan.known => {}
            (None, None) => everywhere.push((n, case)),
            (None, Some(_)) => with_table.push((n, case)),
        }
    }
    let unverified = |n: usize| verdicts.iter().any(|v| v[n] != FormVerdict::Accepted);
    let accepted = everywhere.iter().chain(&with_table);
    report.unverified = accepted.filter(|(n, _)| unverified(*n)).count();
    report.not_in_window = with_table.len();
    let tables = VARIANTS.into_iter().filter(has_table);
    Ok(vec![
        Prepared::new(everywhere, VARIANTS.into_iter())?,
        Prepared::new(with_table, tables)?,
    ])
}

fn run_batch(batch: &Batch, plan: &Extent) -> Result<FormsReport, Error> {
    let mut report = FormsReport::default();
    for prepared in prepare(batch, plan, &mut report)? {
        if !prepared.cases.is_empty() {
            run_prepared(batch, &prepared, plan, &mut report)?;
        }
    }
    Ok(report)
}

fn run_prepared(
    batch: &Batch,
    prepared: &Prepared<'_>,
    plan: &Extent,
    report: &mut FormsReport,
) -> Result<(), Error> {
    report.executed += prepared.cases.len();
    let forms = prepared.cases.iter().map(|(_, case)| case.form);
    report.forms.extend(forms);
    for seed in plan.seeds.0..plan.seeds.0 + plan.seeds.1 {
        let pristine = Setting::memory(batch.pages, seed);
        let setting = Setting {
            pages: batch.pages,
            pristine: &pristine,
            count: batch.states,
            seed,
            helper: prepared.original.functions[HELPER],
        };
        let work = Work {
            cases: &prepared.cases,
            setting,
            patience: PATIENCE,
        };
        let native = run_all(&work, Share::ALL, "native", |memory| {
            Native::new(&prepared.original, memory)
        })?;
        if seed == plan.seeds.0 {
            count_skipped(&work, &native, report);
        }
        for (execution, program) in prepared.executions() {
            let twin = run_all(&work, execution.share(), "rewritten", |memory| {
                Twin::new(program, memory, execution)
            })?;
            let ways = (execution, program);
            compare(&work, prepared, ways, (&native, &twin), report)?;
        }
    }
    Ok(())
}

fn count_skipped(work: &Work<'_>, native: &Records, report: &mut FormsReport) {
    let states = work.setting.count as usize;
    for (n, (_, case)) in work.cases.iter().enumerate() {
        let record = native.get(n * states);
        let reason = if record.is(Ending::Unknown) {
            features(case)
        } else if record.is(Ending::Skipped) {
            "%fs cannot be set here".to_owned()
        } else {
            continue;
        };
        report.skipped.entry(reason).or_default().insert(case.form);
        report.forms.remove(&case.form);
        report.executed -= 1;
    }
}

fn features(case: &Case) -> String {
    let features = case.instruction.cpuid_features();
    let names: Vec<String> = features.iter().map(|f| format!("{f:?}")).collect();
    names.join("+")
}

/// Most differences that are described in full, of one way and batch.
const DESCRIBED: usize = 4;

fn compare(
    work: &Work<'_>,
    prepared: &Prepared<'_>,
    (execution, program): (Execution, &Rewritten<'_>),
    (native, twin): (&Records, &Records),
    report: &mut FormsReport,
) -> Result<(), Error> {
    let mut described = 0;
    let mut last = usize::MAX;
    for n in 0..work.runs() {
        let (a, b): (Record, Record) = (native.get(n), twin.get(n));
        if a.is(Ending::Unknown) && b.is(Ending::Unknown) || a.is(Ending::Skipped) {
            continue;
        }
        let (number, case, state) = work.run(n);
        if !execution.share().has(case, state) {
            continue;
        }
        if is_out_of_reach(&a, execution) && !agree(&a, &b) {
            report.out_of_reach += 1;
            continue;
        }
        report.states += 1;
        report.string_states += u64::from(case.is_string());
        report.replayed += u64::from(execution.copies != Copies::Processor);
        report.faults += u64::from(a.is(Ending::Fault));
        if agree(&a, &b) {
            continue;
        }
        if let Some(defect) = known::of(case) {
            *report.known.entry(known::KNOWN[defect].name).or_default() += 1;
            continue;
        }
        report.differences += 1;
        // One of each case is enough to begin with.
        if described < DESCRIBED && number != last {
            let run = (number, case, state);
            let difference = difference(work, prepared, (execution, program), run, (a, b))?;
            report.described.push(difference);
            described += 1;
            last = number;
        }
    }
    Ok(())
}

fn difference(
    work: &Work<'_>,
    prepared: &Prepared<'_>,
    (execution, program): (Execution, &Rewritten<'_>),
    (number, case, state): (usize, &Case, u64),
    (native, twin): (Record, Record),
) -> Result<Difference, Error> {
    let mut text = describe(
        (number, case),
        state,
        &work.setting,
        |memory| Native::new(&prepared.original, memory),
        |memory| Twin::new(program, memory, execution),
    )?;
    text.push_str(&format!("  recorded: native {native}, rewritten {twin}\n"));
    let name = Case::symbol(number);
    text.push_str(&listing(&prepared.original_object, &name));
    text.push_str("  rewritten:\n");
    text.push_str(&listing(&program.object, &name));
    Ok(Difference {
        case: *case,
        execution,
        state: (state, work.setting.seed),
        text,
    })
}
