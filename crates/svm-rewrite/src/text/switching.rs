//! Which functions may go to another stack: only they are [searched](super::switched).
//!
//! A function goes there by an instruction that sets `rsp` to more than another place of the same
//! stack, or by a `leave` behind one that makes `rbp` of something else. Functions that control
//! goes between without a call, as to parts that compilers move away (`.cold`), count as one.

use iced_x86::{Instruction, Mnemonic, Register};
use liveness::Reg;

use crate::analyse::Analysis;
use crate::analyse::survey::Survey;
use crate::frame::Sets;

/// By function: whether it may.
pub struct Switching(Vec<bool>);

impl Switching {
    /// Looks at all instructions.
    pub fn of(analysis: &Analysis<'_>) -> Switching {
        let functions = analysis.lifted.functions.iter();
        let mut signs: Vec<Signs> = functions
            .map(|function| {
                let insts = function.insts.clone().map(|i| i as usize);
                insts.fold(Signs::default(), |signs, i| {
                    let iced = &analysis.lifted.insts[i].iced;
                    signs.or(Signs::of(iced, &analysis.surveys[i]))
                })
            })
            .collect();
        share(&mut signs, crossings(analysis));
        Switching(signs.into_iter().map(Signs::may_switch).collect())
    }

    /// Whether no function may.
    pub fn is_empty(&self) -> bool {
        !self.0.contains(&true)
    }

    /// Whether a function may, by its number.
    pub fn has(&self, function: u32) -> bool {
        self.0[function as usize]
    }

    /// The numbers of those that may.
    pub fn functions(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.0).filter_map(|(f, may)| may.then_some(f))
    }
}

/// Pairs of functions between which control goes without a call.
fn crossings(analysis: &Analysis<'_>) -> impl Iterator<Item = (u32, u32)> {
    let flow = &analysis.flow;
    let function = |block| flow.function_of(block).0;
    let from = flow.nodes();
    let edges = from.flat_map(|from| flow.continuations(from).iter().map(move |to| (from, *to)));
    let pairs = edges.map(move |(from, to)| (function(from), function(to)));
    pairs.filter(|(from, to)| from != to)
}

/// What one function of a pair has, the other has, too.
fn share(signs: &mut [Signs], pairs: impl Iterator<Item = (u32, u32)>) {
    let mut sets = Sets::new(signs.len());
    pairs.for_each(|(a, b)| sets.join(a, b));
    let of: Vec<usize> = (0..signs.len() as u32).map(|f| sets.of(f)).collect();
    for (f, set) in of.iter().enumerate() {
        signs[*set] = signs[*set].or(signs[f]);
    }
    for (f, set) in of.iter().enumerate() {
        signs[f] = signs[*set];
    }
}

/// What the instructions of a function do.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Signs {
    /// One may set `rsp` to another stack.
    switches: bool,
    /// One makes `rbp` of something else than `rsp`.
    reframes: bool,
    /// One is a `leave`, which goes where `rbp` points.
    leaves: bool,
}

impl Signs {
    fn of(iced: &Instruction, survey: &Survey) -> Signs {
        Signs {
            switches: survey.writes(Reg::RSP) && sets_stack(iced),
            reframes: survey.writes(Reg::RBP) && !is_frame_of_stack(iced),
            leaves: iced.mnemonic() == Mnemonic::Leave,
        }
    }

    fn or(self, other: Signs) -> Signs {
        Signs {
            switches: self.switches || other.switches,
            reframes: self.reframes || other.reframes,
            leaves: self.leaves || other.leaves,
        }
    }

    fn may_switch(self) -> bool {
        self.switches || self.leaves && self.reframes
    }
}

/// Whether an instruction that writes `rsp` sets it to more than another place of the same stack.
fn sets_stack(iced: &Instruction) -> bool {
    match iced.mnemonic() {
        Mnemonic::Pop => iced.op0_register() == Register::RSP,
        // `add $8, %esp` clears the upper half.
        Mnemonic::Add | Mnemonic::Sub | Mnemonic::And => iced.op0_register() != Register::RSP,
        _ => !iced.is_stack_instruction(),
    }
}

/// Whether an instruction that writes `rbp` makes it a place of the same stack. A `pop` may take
/// what something else was pushed.
fn is_frame_of_stack(iced: &Instruction) -> bool {
    match iced.mnemonic() {
        Mnemonic::Leave | Mnemonic::Enter => true,
        Mnemonic::Mov => iced.op1_register() == Register::RSP,
        Mnemonic::Lea => iced.memory_base() == Register::RSP,
        _ => false,
    }
}
