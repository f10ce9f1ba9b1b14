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

mod aim;
mod check;
mod encodings;
mod machine;

use std::collections::BTreeMap;
use std::fmt;

use iced_x86::{Decoder, DecoderOptions};
use svm_verify::Scheme;
use svm_verify::belief::{self, Belief, CountsFrom};

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
    /// Those with an operand too far from `rsp` to be executed.
    pub out_of_reach: u64,
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
        writeln!(f, "{:<34}{:>12}", "  too far from rsp", self.out_of_reach)?;
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

/// The schemes, and what encodings begin with: all operands in the window have the prefixes
/// 65 and 67, or in the scheme `window` 65 alone.
const RUNS: [(Scheme, &[u8]); 5] = [
    (Scheme::Stlb, &[]),
    (Scheme::Window32, &[]),
    (Scheme::Window32, &[0x65, 0x67]),
    (Scheme::Window, &[]),
    (Scheme::Window, &[0x65]),
];

/// Whether a belief is another one than in the runs before.
fn is_new(belief: &Belief, scheme: Scheme, first: &[u8]) -> bool {
    let cuts = belief.after.iter().any(|after| after.place);
    let clears = belief.after.iter().any(|after| after.clear);
    match scheme {
        Scheme::Window => cuts || !first.is_empty(),
        _ => scheme == Scheme::Stlb || !first.is_empty() || clears || belief.elements.is_some(),
    }
}

/// Executes one in `share` of all encodings. For a process that does nothing else
/// meanwhile: it replaces the handlers of the processor's signals.
pub fn run(share: u64) -> Result<BeliefReport, Error> {
    let mut machine = Executor::new()?;
    let mut report = BeliefReport::default();
    let mut number = 0;
    for (scheme, first) in RUNS {
        encodings::each(first, &mut |bytes| {
            number += 1;
            if !mix(number).is_multiple_of(share.max(1)) {
                return;
            }
            // String instructions have a meaning for each direction.
            for backward in [false, true] {
                let belief = belief::of(bytes, scheme, backward);
                let belief = belief.filter(|belief| is_new(belief, scheme, first));
                let Some(belief) = belief.filter(|b| !backward || b.elements.is_some()) else {
                    return;
                };
                report.allowed += 1;
                let code = &bytes[..belief.length];
                let verdict = check::judge(&mut machine, code, &belief, backward);
                report.note(code, verdict);
            }
        });
    }
    Ok(report)
}

/// Compares beliefs that are wrong in one point each, and gives the points that the
/// comparison misses. For a process that does nothing else meanwhile.
pub fn wrong_beliefs_that_pass() -> Result<Vec<&'static str>, Error> {
    let mut machine = Executor::new()?;
    let mut passed = Vec::new();
    for (point, scheme, code, spoil) in SPOILT {
        let mut bytes = [0x90; 32];
        bytes[..code.len()].copy_from_slice(code);
        let belief = belief::of(&bytes, *scheme, false);
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

/// The point that is wrong, the scheme, the instruction, and the change.
type Spoilt = (&'static str, Scheme, &'static [u8], fn(&mut Belief));

const SPOILT: &[Spoilt] = &[
    ("a register", Scheme::Stlb, &[0x48, 0x01, 0xd8], |b| {
        // add %rbx,%rax
        b.after[0].same = Some(0);
    }),
    ("the flags", Scheme::Stlb, &[0x48, 0x01, 0xd8], |b| {
        b.flags = false
    }),
    ("the stack pointer", Scheme::Stlb, &[0x50], |b| {
        // push %rax
        b.after[4].frame = Some(0);
    }),
    (
        "memory that is written",
        Scheme::Stlb,
        &[0x48, 0x89, 0x07],
        |b| {
            // mov %rax,(%rdi)
            b.operand = b.operand.map(|o| belief::Operand {
                written: false,
                ..o
            });
        },
    ),
    (
        "bytes beyond what is read",
        Scheme::Stlb,
        &[0x48, 0x8b, 0x07],
        |b| {
            // mov (%rdi),%rax
            b.operand = b.operand.map(|o| belief::Operand { size: 4, ..o });
        },
    ),
    ("the direction", Scheme::Stlb, &[0xfd], |b| {
        b.direction = None
    }), // std
    ("a copy", Scheme::Stlb, &[0x48, 0x89, 0xd8], |b| {
        // mov %rbx,%rax
        b.after[0].same = Some(1);
    }),
    ("a bound", Scheme::Stlb, &[0x83, 0xe0, 0x3f], |b| {
        // and $63,%eax
        b.after[0].at_most = Some(2);
    }),
    (
        "the elements of a string",
        Scheme::Stlb,
        &[0x48, 0xab],
        |b| {
            // stos %rax,(%rdi)
            b.elements = Some((4, false));
        },
    ),
    ("where control goes", Scheme::Stlb, &[0xeb, 0x00], |b| {
        // jmp
        b.leaves = belief::Leaves::Return;
    }),
    (
        "an upper half",
        Scheme::Window32,
        &[0x48, 0x89, 0xd8],
        |b| {
            // mov %rbx,%rax
            b.after[0].clear = true;
        },
    ),
    ("a place", Scheme::Window, &[0x48, 0xc1, 0xe8, 0x15], |b| {
        // shr $21,%rax
        b.after[0].place = true;
    }),
    (
        "an index",
        Scheme::Window32,
        &[0x65, 0x67, 0x8b, 0x04, 0x4f],
        |b| {
            // mov %gs:(%edi,%ecx,2),%eax
            b.operand = b.operand.map(|o| belief::Operand { index: None, ..o });
        },
    ),
    (
        "a bit's offset",
        Scheme::Window32,
        &[0x65, 0x67, 0x48, 0x0f, 0xab, 0x37],
        |b| {
            // bts %rsi,%gs:(%edi)
            b.before[6] = belief::Before::Any;
        },
    ),
    (
        "where pop writes",
        Scheme::Window32,
        &[0x65, 0x67, 0x8f, 0x44, 0x24, 0x10],
        |b| {
            // pop %gs:0x10(%esp)
            b.operand = b.operand.map(|o| belief::Operand {
                displacement: 0x10,
                ..o
            });
        },
    ),
    ("a cut to 32 bits", Scheme::Stlb, &[0x48, 0x8b, 0x07], |b| {
        // mov (%rdi),%rax
        b.operand = b.operand.map(|o| belief::Operand {
            from: CountsFrom::GsInLowHalf,
            ..o
        });
    }),
    (
        "bytes beyond a place in the window",
        Scheme::Window,
        &[0x65, 0x48, 0x8b, 0x07],
        |b| {
            // mov %gs:(%rdi),%rax
            b.operand = b.operand.map(|o| belief::Operand { size: 4, ..o });
        },
    ),
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
            BeliefVerdict::OutOfReach => self.out_of_reach += 1,
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
