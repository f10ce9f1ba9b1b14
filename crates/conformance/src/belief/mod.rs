//! The verifier's beliefs about each instruction, compared with this processor.
//!
//! ```text
//! encodings ──bytes──> svm_verify::belief ──belief────────┐
//!                └────────────> machine ──what happened──> check
//! ```
//!
//! [`encodings`] enumerates prefixes, opcodes and operands as bytes. Those that the
//! verifier's rules allow are executed from several states. A finding is a change that
//! the verifier does not expect, or a value other than it says: of registers, `rsp`,
//! flags, bytes of memory, and the extent of a memory operand, for which the operand is
//! placed at the edges of a mapped page.
//!
//! Vector registers are not compared: the verifier believes nothing of them. Their
//! control word is compared: it must stay as it was.

mod check;
mod encodings;
mod machine;

use std::collections::BTreeMap;
use std::fmt;

use iced_x86::{Decoder, DecoderOptions};
use svm_verify::belief::{self, Belief};

use check::BeliefVerdict;
use machine::Executor;
use process_lab::error::Error;
use process_lab::random::mix;

/// States that each encoding is executed from.
pub const STATES: u64 = 6;

/// Findings that are described; all are counted.
const DESCRIBED: usize = 50;

/// The results of a run.
#[derive(Debug, Default)]
pub struct BeliefReport {
    /// Encodings that the verifier allows.
    pub allowed: u64,
    /// Those of them that were executed from one state at least.
    pub executed: u64,
    /// Executions of all encodings, traps left out.
    pub runs: u64,
    /// The others, by trap and mnemonic: the processor lacks them, or they trap in
    /// every state.
    pub trapped: BTreeMap<String, u64>,
    /// Encodings whose effect differs from the verifier's belief.
    pub wrong: u64,
    /// The first of them.
    pub described: Vec<String>,
}

impl fmt::Display for BeliefReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<34}{:>12}", "encodings allowed", self.allowed)?;
        writeln!(f, "{:<34}{:>12}", "  executed", self.executed)?;
        writeln!(f, "{:<34}{:>12}", "  executions", self.runs)?;
        for (what, count) in &self.trapped {
            writeln!(f, "  {what:<32}{count:>12}")?;
        }
        writeln!(
            f,
            "{:<34}{:>12}",
            "not as the verifier believes", self.wrong
        )?;
        self.described
            .iter()
            .try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Executes one in `share` of all encodings. For a process that does nothing else
/// meanwhile: it replaces the handlers of the processor's signals.
pub fn run(share: u64) -> Result<BeliefReport, Error> {
    let mut machine = Executor::new()?;
    let mut report = BeliefReport::default();
    let mut number = 0;
    encodings::each(&mut |bytes| {
        number += 1;
        if !mix(number).is_multiple_of(share.max(1)) {
            return;
        }
        // String instructions have a meaning for each direction.
        for backward in [false, true] {
            let Some(belief) = belief::of(bytes, backward) else {
                return;
            };
            if backward && belief.elements.is_none() {
                return;
            }
            report.allowed += 1;
            let code = &bytes[..belief.length];
            let verdict = check::judge(&mut machine, code, &belief, backward);
            report.note(code, verdict);
        }
    });
    Ok(report)
}

/// Compares beliefs that are wrong in one point each, and gives the points that the
/// comparison misses. For a process that does nothing else meanwhile.
pub fn wrong_beliefs_that_pass() -> Result<Vec<&'static str>, Error> {
    let mut machine = Executor::new()?;
    let mut passed = Vec::new();
    for (point, code, spoil) in SPOILT {
        let mut bytes = [0x90; 32];
        bytes[..code.len()].copy_from_slice(code);
        let belief = belief::of(&bytes, false);
        let mut belief = belief.ok_or_else(|| Error::Rejected(format!("{point}: refused")))?;
        let good = check::judge(&mut machine, code, &belief, false);
        spoil(&mut belief);
        let spoilt = check::judge(&mut machine, code, &belief, false);
        if !matches!(
            (good, spoilt),
            (BeliefVerdict::Good(_), BeliefVerdict::Wrong(_))
        ) {
            passed.push(*point);
        }
    }
    Ok(passed)
}

/// The point that is wrong, the instruction, and the change.
type Spoilt = (&'static str, &'static [u8], fn(&mut Belief));

const SPOILT: &[Spoilt] = &[
    ("a register", &[0x48, 0x01, 0xd8], |b| {
        // add %rbx,%rax
        b.after[0].same = Some(0);
    }),
    ("the flags", &[0x48, 0x01, 0xd8], |b| b.flags = false),
    ("the stack pointer", &[0x50], |b| {
        // push %rax
        b.after[4].frame = Some(0);
    }),
    ("memory that is written", &[0x48, 0x89, 0x07], |b| {
        // mov %rax,(%rdi)
        b.operand = b.operand.map(|o| belief::Operand {
            written: false,
            ..o
        });
    }),
    ("bytes beyond what is read", &[0x48, 0x8b, 0x07], |b| {
        // mov (%rdi),%rax
        b.operand = b.operand.map(|o| belief::Operand { size: 4, ..o });
    }),
    ("the direction", &[0xfd], |b| b.direction = None), // std
    ("a copy", &[0x48, 0x89, 0xd8], |b| {
        // mov %rbx,%rax
        b.after[0].same = Some(1);
    }),
    ("a bound", &[0x83, 0xe0, 0x3f], |b| {
        // and $63,%eax
        b.after[0].at_most = Some(2);
    }),
    ("the elements of a string", &[0x48, 0xab], |b| {
        // stos %rax,(%rdi)
        b.elements = Some((4, false));
    }),
    ("where control goes", &[0xeb, 0x00], |b| {
        // jmp
        b.leaves = belief::Leaves::Return;
    }),
];

impl BeliefReport {
    fn note(&mut self, code: &[u8], verdict: BeliefVerdict) {
        match verdict {
            BeliefVerdict::Good(runs) => {
                self.executed += 1;
                self.runs += runs;
            }
            BeliefVerdict::Trapped(trap) => {
                let i = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
                let what = format!("{trap} {:?}", i.mnemonic());
                *self.trapped.entry(what).or_default() += 1;
            }
            BeliefVerdict::Wrong(reason) => {
                self.wrong += 1;
                if self.described.len() < DESCRIBED {
                    let i = Decoder::with_ip(64, code, 0, DecoderOptions::NONE).decode();
                    self.described.push(format!("{code:02x?} {i}: {reason}"));
                }
            }
        }
    }
}
