//! The systematic part: on a small object with every kind of sequence, all
//! mutants of all checks, and each branch of each check to every byte of its
//! function.
//!
//! The verifier reads the whole object for each mutant, so this is only for an object
//! of a few dozen functions.

use elf_loader::Object;
use iced_x86::FlowControl;
use process_lab::random::Random;
use svm_verify::Contract;

use super::inserted::function_of;
use super::tally::ask;
use super::{Check, Guard, Setting, Tally, checks, guards, judge_guards};
use crate::forms;

/// A small object and its checks.
#[derive(Clone)]
pub struct Systematic {
    /// The rewritten object.
    pub object: Object<'static>,
    /// What it has to keep.
    pub contract: Contract,
    /// Its checks, in the order of the code.
    pub checks: Vec<Check>,
    /// Its sequences for return addresses.
    pub guards: Vec<Guard>,
}

impl Systematic {
    /// One form of each sequence, with many and with few registers live.
    pub fn new(setting: Setting) -> Systematic {
        let rewritten = setting.rewritten(&forms::sequences(setting.target));
        let rewritten = rewritten.expect("plain forms are rewritten");
        let checks = checks(&rewritten.object, &rewritten.sites, setting);
        let guards = guards(&rewritten.object, &rewritten.sites);
        Systematic {
            object: rewritten.object,
            contract: setting.contract(),
            checks,
            guards,
        }
    }
}

/// All mutants of every `one_in`th check, beginning with number `first`.
pub fn systematic(subject: &mut Systematic, first: usize, one_in: usize) -> Tally {
    let (object, all) = (&mut subject.object, &subject.checks);
    let contract = subject.contract;
    let mut random = Random::new(first as u64);
    let mut tally = Tally::default();
    for check in all.iter().skip(first).step_by(one_in) {
        tally.checks += 1;
        // Enough other checks to branch to.
        let others = &all[..all.len().min(4)];
        for mutant in check.mutants(object, others, true, &mut random) {
            ask(object, contract, check, mutant, &mut tally);
        }
        let function = function_of(object, check);
        let back = check.slow.iter();
        let back = back.filter(|p| p.decoded.flow_control() == FlowControl::UnconditionalBranch);
        let branch = &check.pieces[check.pieces.len() - 3];
        for branch in back.chain([branch]) {
            for target in function.clone() {
                if let Some(mutant) = check.branching(branch, target) {
                    ask(object, contract, check, mutant, &mut tally);
                }
            }
        }
    }
    let guards = subject.guards.clone();
    tally.add(judge_guards(
        &mut subject.object,
        contract,
        &guards,
        first,
        one_in,
    ));
    tally
}
