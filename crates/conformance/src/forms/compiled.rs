//! Objects that compilers made, natively and rewritten, on the machines of the forms.
//!
//! Unlike a fixture, such an object has data of its own, several code sections and
//! jump tables. Its function `f0` makes the frame that [`super::programs`] draws. Its
//! data is dom0's memory, above the pages that `dom0_data` names.

use std::fmt;

use elf_loader::Object;
use process_lab::address_space::PAGE;
use process_lab::error::Error;

use super::campaign::{EXECUTIONS, Execution};
use super::cases::Case;
use super::compare::{agree, describe_state, listing};
use super::copies::Copies;
use super::image::{Module, Rewritten};
use super::memory::{DATA, Memory};
use super::native::Native;
use super::programs::{ExecutionVerdict, PAGES, case, run_states, state};
use super::record::{Ending, Record};
use super::state::State;
use super::survey;
use super::twin::Twin;

/// A compiled object, and what it does natively.
pub struct Compiled<'o> {
    object: &'o Object<'o>,
    module: Module,
    seed: u64,
    pages: u64,
    states: Vec<State>,
    native: Vec<Record>,
}

/// What is said of one object.
#[derive(Debug, Default)]
pub struct Lines {
    /// What must not be: another result, or a rewritten object that is not verified.
    pub wrong: Vec<String>,
    /// Refusals, and runs that compare nothing.
    pub other: Vec<String>,
}

/// How many comparisons ended in which way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Objects that were linked and run.
    pub objects: usize,
    /// Builds that the compiler does not take.
    pub uncompiled: usize,
    /// Objects that do not return natively.
    pub not_returned: usize,
    /// Ways to rewrite an object that computed the same.
    pub same: usize,
    /// Ways that the rewriter refused.
    pub refused: usize,
    /// Ways whose result the verifier refused.
    pub unverified: usize,
    /// Ways that computed something else.
    pub different: usize,
}

impl Tally {
    /// Whether something was compared, and all that was is the same.
    pub fn is_good(&self) -> bool {
        self.same > 0 && self.unverified == 0 && self.different == 0
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} objects: {} ways to rewrite them the same, {} refused, {} not verified, {} different; \
             {} objects do not return, {} builds not taken by their compiler",
            self.objects,
            self.same,
            self.refused,
            self.unverified,
            self.different,
            self.not_returned,
            self.uncompiled,
        )
    }
}

/// Seconds of processor time that all states of an object have.
const PATIENCE: u32 = 3;

impl<'o> Compiled<'o> {
    /// Links and runs it, from `states` states.
    ///
    /// # Errors
    /// A system call's or the linker's.
    pub fn new(object: &'o Object<'o>, seed: u64, states: u64) -> Result<Compiled<'o>, Error> {
        let module = Module::new(object, DATA + PAGES * PAGE)?;
        let pages = PAGES.max((module.end - DATA).div_ceil(PAGE)) + 1;
        let states = (0..states).map(|n| {
            let mut state = state(seed, n);
            state.patches.extend(module.data.iter().cloned());
            state
        });
        let mut compiled = Compiled {
            object,
            seed,
            pages,
            states: states.collect(),
            native: Vec::new(),
            module,
        };
        let native = |memory: &Memory| Native::new(&compiled.module.image, memory);
        compiled.native = run_states(&compiled.states, (pages, seed, PATIENCE), native)?;
        Ok(compiled)
    }

    /// Compares it under every scheme, with and without poison, and counts.
    ///
    /// # Errors
    /// A system call's or the linker's.
    pub fn compare(&self, tally: &mut Tally) -> Result<Lines, Error> {
        let mut lines = Lines::default();
        tally.objects += 1;
        // One that overflows its stack or does not end compares nothing.
        if let Some(run) = self.native.iter().find(|r| !r.is(Ending::Returned)) {
            tally.not_returned += 1;
            lines.other.push(format!("natively it {run}"));
            return Ok(lines);
        }
        let plain = |e: &&Execution| {
            e.variant.is_executable() && !e.identity && e.copies == Copies::Processor
        };
        for execution in EXECUTIONS.iter().filter(plain) {
            match self.run(*execution)? {
                ExecutionVerdict::Same { .. } => tally.same += 1,
                ExecutionVerdict::Refused(why) => {
                    tally.refused += 1;
                    lines.other.push(format!("{execution}: refused: {why}"));
                }
                ExecutionVerdict::VerifierRefused(why) => {
                    tally.unverified += 1;
                    lines
                        .wrong
                        .push(format!("{execution}: not verified: {why}"));
                }
                ExecutionVerdict::Different(why) => {
                    tally.different += 1;
                    lines.wrong.push(format!("different: {why}"));
                }
            }
        }
        Ok(lines)
    }

    /// Rewrites, verifies and executes it.
    ///
    /// # Errors
    /// A system call's or the linker's.
    pub fn run(&self, execution: Execution) -> Result<ExecutionVerdict, Error> {
        let variant = execution.variant;
        let rewritten = match survey::rewrite(self.object, variant) {
            Ok(object) => object,
            Err(refusals) => return Ok(ExecutionVerdict::Refused(refusals[0].to_string())),
        };
        if let Err(violations) = svm_verify::verify(&rewritten, variant.contract()) {
            let list: Vec<String> = violations.list.iter().map(ToString::to_string).collect();
            return Ok(ExecutionVerdict::VerifierRefused(list.join("\n")));
        }
        let resolve = |name: &str, use_| self.module.resolve(name, use_);
        let program = Rewritten::with(rewritten, variant, &resolve)?;
        let native = |memory: &Memory| Native::new(&self.module.image, memory);
        let twin = |memory: &Memory| Twin::new(&program, memory, execution);
        let runs = run_states(&self.states, (self.pages, self.seed, 4 * PATIENCE), twin)?;
        let (a, b) = (&self.native, &runs);
        let Some(n) = (0..a.len()).find(|&n| !agree(&a[n], &b[n])) else {
            let states = a.len();
            return Ok(ExecutionVerdict::Same { states, faults: 0 });
        };
        let mut text = format!("{execution}, seed {:#x}, state {n}\n", self.seed);
        let memory = (self.pages, self.seed);
        text += &describe_state((0, &case()), &self.states[n], memory, native, twin)?;
        text += &format!("  recorded: native {}, rewritten {}\n", a[n], b[n]);
        text += &listing(self.object, &Case::symbol(0));
        Ok(ExecutionVerdict::Different(text))
    }
}
