//! The systematic part: on a small object with every kind of sequence, all
//! mutants of all checks, and each branch of each check to every byte of its
//! function.
//!
//! The verifier reads the whole object for each mutant, so this is only for an object
//! of a few dozen functions.

use elf_loader::Object;
use iced_x86::FlowControl;
use process_lab::random::Random;
use svm_rewrite::{Options, Scheme, rewrite};

use super::inserted::function_of;
use super::tally::ask;
use super::{Check, Guard, Tally, checks, guards, judge_guards};
use crate::forms;

/// A small object and its checks.
#[derive(Clone)]
pub struct Systematic {
    /// The rewritten object.
    pub object: Object<'static>,
    /// Its checks, in the order of the code.
    pub checks: Vec<Check>,
    /// Its sequences for return addresses.
    pub guards: Vec<Guard>,
}

impl Systematic {
    /// One form of each sequence, with many and with few registers live.
    pub fn new(scheme: Scheme) -> Systematic {
        let object = forms::sequences();
        let options = Options {
            report: true,
            ..Options::new(scheme)
        };
        let rewritten = rewrite(&object, options).expect("plain forms are rewritten");
        let checks = checks(&rewritten.object, &rewritten.sites, scheme);
        let guards = guards(&rewritten.object, &rewritten.sites);
        Systematic {
            object: rewritten.object,
            checks,
            guards,
        }
    }
}

/// All mutants of every `one_in`th check, beginning with number `first`.
pub fn systematic(subject: &mut Systematic, first: usize, one_in: usize) -> Tally {
    let (object, all) = (&mut subject.object, &subject.checks);
    let mut random = Random::new(first as u64);
    let mut tally = Tally::default();
    for check in all.iter().skip(first).step_by(one_in) {
        tally.checks += 1;
        // Enough other checks to branch to.
        let others = &all[..all.len().min(4)];
        for mutant in check.mutants(object, others, true, &mut random) {
            ask(object, check, mutant, &mut tally);
        }
        let function = function_of(object, check);
        let back = check.slow.iter();
        let back = back.filter(|p| p.decoded.flow_control() == FlowControl::UnconditionalBranch);
        let branch = &check.pieces[check.pieces.len() - 3];
        for branch in back.chain([branch]) {
            for target in function.clone() {
                if let Some(mutant) = check.branching(branch, target) {
                    ask(object, check, mutant, &mut tally);
                }
            }
        }
    }
    let guards = subject.guards.clone();
    tally.add(judge_guards(&mut subject.object, &guards, first, one_in));
    tally
}
