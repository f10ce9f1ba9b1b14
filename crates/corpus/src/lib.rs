//! The whole distribution: every module of the stock kernel, rewritten and
//! verified.
//!
//! [`run`] takes files, works on several at a time and gives a [`Tally`], the result
//! for each. [`Tally::row`] and [`Tally::refused`] are its tables as `make corpus`
//! prints them. A [`Survey`] is one kernel's modules for both targets.

mod cost;
mod files;
mod survey;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use svm_rewrite::{Options, Scheme, Target};
use svm_verify::Contract;

pub use cost::{Cost, Meter, disassemble};
pub use files::modules;
pub use survey::{Kernel, Survey, total};

/// The result for one module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleOutcome {
    /// Rewritten, and the verifier proved the result.
    Accepted {
        /// Instructions of the original.
        instructions: u64,
        /// Sites: instructions that were treated.
        sites: u64,
    },
    /// Refused by the rewriter: why, each reason once, and the first refusal.
    Refused(BTreeSet<String>, String),
    /// Rewritten, but not proved: the codes, and the first violation. A defect of twin.
    Unproved(BTreeSet<String>, String),
    /// It cannot be read, is no object, or its rewritten object cannot be written or
    /// read again.
    Unreadable(String),
}

/// Rewrites one module under scheme `stlb` and verifies the result, as `twin
/// rewrite` does.
fn try_module(path: &Path, target: Target) -> ModuleOutcome {
    let raw = match std::fs::read(path) {
        Ok(raw) => raw,
        Err(error) => return ModuleOutcome::Unreadable(error.to_string()),
    };
    let bytes = match elf_loader::input::decompress(raw) {
        Ok(bytes) => bytes,
        Err(error) => return ModuleOutcome::Unreadable(error.to_string()),
    };
    let object = match elf_loader::read(&bytes) {
        Ok(object) => object,
        Err(error) => return ModuleOutcome::Unreadable(error.to_string()),
    };
    let rewritten = match svm_rewrite::rewrite(&object, Options::of(target, Scheme::Stlb)) {
        Ok(rewritten) => rewritten,
        Err(refusals) => {
            let reasons = refusals.iter().map(|r| reason(r.code.as_str(), &r.reason));
            let first = refusals
                .first()
                .map_or_else(String::new, ToString::to_string);
            return ModuleOutcome::Refused(reasons.collect(), first);
        }
    };
    let counts = (rewritten.stats.instructions, rewritten.stats.sites.total());
    let made = match elf_loader::write(&rewritten.object) {
        Ok(made) => made,
        Err(error) => return ModuleOutcome::Unreadable(error.to_string()),
    };
    drop(rewritten);
    let contract = Contract::of(match target {
        Target::Hypervisor | Target::Process => svm_verify::Target::Hypervisor,
        Target::Linux => svm_verify::Target::Linux,
    });
    // The serialised bytes are verified, not the object in memory.
    let proof = match elf_loader::read(&made) {
        Ok(object) => svm_verify::verify(&object, contract),
        Err(error) => return ModuleOutcome::Unreadable(error.to_string()),
    };
    match proof {
        Ok(_) => ModuleOutcome::Accepted {
            instructions: counts.0,
            sites: counts.1,
        },
        Err(violations) => {
            let list = &violations.list;
            let reasons = list.iter().map(|v| reason("unproved", v.code.as_str()));
            let first = list.first().map_or_else(String::new, ToString::to_string);
            ModuleOutcome::Unproved(reasons.collect(), first)
        }
    }
}

/// A reason without the places that it may name.
fn reason(code: &str, text: &str) -> String {
    let general = text
        .split_once(": ")
        .map_or(text, |(before, after)| match before {
            // "data refers to .text+0x134d, which ...: a jump table".
            _ if before.contains("+0x") => after,
            _ => text,
        });
    format!("{general} [{code}]")
}

/// The results for all modules.
#[derive(Debug)]
pub struct Tally {
    /// In the order of the files.
    pub modules: Vec<(PathBuf, ModuleOutcome)>,
}

/// Tries all files for a target with `threads` threads and passes the number done to
/// `progress`. Largest files first, so that no thread still works on one at the end.
pub fn run(
    files: &[PathBuf],
    target: Target,
    threads: usize,
    progress: &(dyn Fn(usize, usize) + Sync),
) -> Tally {
    let size = |path: &PathBuf| std::fs::metadata(path).map_or(0, |m| m.len());
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_cached_key(|&n| std::cmp::Reverse(size(&files[n])));
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let outcomes: Mutex<Vec<Option<ModuleOutcome>>> = Mutex::new(vec![None; files.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(&n) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let outcome = try_module(&files[n], target);
                    if let Ok(mut outcomes) = outcomes.lock() {
                        outcomes[n] = Some(outcome);
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, files.len());
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().unwrap_or_default();
    let modules = files.iter().cloned().zip(outcomes.into_iter().flatten());
    Tally {
        modules: modules.collect(),
    }
}

impl Tally {
    /// Modules that were accepted.
    pub fn accepted(&self) -> usize {
        let accepted =
            |(_, o): &&(PathBuf, ModuleOutcome)| matches!(o, ModuleOutcome::Accepted { .. });
        self.modules.iter().filter(accepted).count()
    }

    /// Their share of all.
    pub fn share(&self) -> f64 {
        self.accepted() as f64 / self.modules.len().max(1) as f64
    }

    /// A row of the table of targets, in Markdown: the label, modules, instructions
    /// and sites of the accepted ones, how many were accepted, their share.
    pub fn row(&self, label: &str) -> String {
        let (mut instructions, mut sites) = (0, 0);
        for (_, outcome) in &self.modules {
            if let ModuleOutcome::Accepted {
                instructions: i,
                sites: s,
            } = outcome
            {
                instructions += i;
                sites += s;
            }
        }
        let (all, accepted) = (self.modules.len(), self.accepted());
        let share = 100.0 * self.share();
        format!("| {label} | {all} | {instructions} | {sites} | {accepted} | {share:.2}% |")
    }

    /// The modules that were not accepted: a table of reasons and modules, and the
    /// first place in each. A module with several reasons is in one row, with all of
    /// them.
    pub fn refused(&self) -> String {
        let mut by_reason: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut places = String::new();
        for (path, outcome) in &self.modules {
            let (reasons, text) = match outcome {
                ModuleOutcome::Accepted { .. } => continue,
                ModuleOutcome::Refused(reasons, text) | ModuleOutcome::Unproved(reasons, text) => {
                    (reasons.iter().cloned().collect::<Vec<_>>().join("; "), text)
                }
                ModuleOutcome::Unreadable(text) => ("unreadable".to_owned(), text),
            };
            let name = files::module_name(path).unwrap_or_default();
            let _ = writeln!(places, "    {name}: {text}");
            by_reason.entry(reasons).or_default().push(name);
        }
        if by_reason.is_empty() {
            return String::new();
        }
        let mut out = "| refused because | modules |\n|---|---|\n".to_owned();
        for (reasons, modules) in by_reason {
            let _ = writeln!(out, "| {reasons} | {} |", modules.join(" "));
        }
        let _ = write!(out, "\nThe first place in each:\n{places}");
        out
    }
}
