//! Rewrite, verify, execute: a rewritten program that the verifier accepts does what
//! the original does.

use crate::forms::campaign::EXECUTIONS;
use crate::forms::programs::{ExecutionVerdict, run};

use super::runnable::body;

/// States of each program.
const STATES: u64 = 8;

/// The result for an input, for counting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuzzOutcome {
    /// No program whose behaviour is defined.
    Undefined,
    /// Refused by the rewriter, or rewritten and refused by the verifier, for
    /// what the program does to its stack or to DF.
    Refused,
    /// Executed from a number of states, and how many of them ended with a fault.
    Executed(usize, usize),
}

/// The first byte says which way it is rewritten and seeds registers and memory;
/// the others are choices of instructions for the program (`runnable::body`).
pub fn execute(data: &[u8]) -> FuzzOutcome {
    let Some((&first, choices)) = data.split_first() else {
        return FuzzOutcome::Undefined;
    };
    let Some(body) = body(choices) else {
        return FuzzOutcome::Undefined;
    };
    let execution = EXECUTIONS[usize::from(first) % EXECUTIONS.len()];
    if !execution.variant.is_executable() {
        return FuzzOutcome::Undefined;
    }
    match run(&body, execution, u64::from(first), STATES).expect("the machines can be set up") {
        ExecutionVerdict::Same { states, faults } => FuzzOutcome::Executed(states, faults),
        ExecutionVerdict::Refused(_) | ExecutionVerdict::VerifierRefused(_) => FuzzOutcome::Refused,
        // With -fork=1 the fuzzer shows lines with this word only.
        ExecutionVerdict::Different(text) => panic!("ERROR: {text}"),
    }
}
