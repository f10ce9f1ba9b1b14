//! Which registers the functions of the object keep (psABI 3.2.1; target `linux`).
//!
//! Each is taken to keep all until a path through it is found that does not: at a return, or a
//! jump out of the object, a register holds something else than at the entry
//! ([`crate::domain::Kept`]). Then what calls it is interpreted again without the facts that were
//! in that register. A function that goes on as another one keeps what both keep. A call through a
//! pointer may be one of any function of the object whose address is taken. So may what a call of
//! the kernel leads to: its routines call the module back and end with such a call, and its static
//! calls are what their keys say. What else the kernel does keeps all.

use std::collections::{BTreeSet, HashMap};

use crate::domain::Kept;
use crate::insn::{BranchTarget, Disassembly, GprSet, Op, Routine};
use crate::kernel::Marks;

/// In the place of a function: it is not known which one, so it may be any.
const ALL: u32 = u32::MAX;
/// The same where a pointer or the kernel leads: one whose address is taken.
const POINTED: u32 = u32::MAX - 1;

/// What is known of the functions. A function is its first instruction.
#[derive(Default)]
pub struct Callees {
    /// Where calls and what is outside begin a function; empty where no callee is trusted.
    functions: Vec<bool>,
    /// Registers that each does not keep, and those that all do not ([`ALL`]).
    lost: HashMap<u32, GprSet>,
    /// Blocks with calls of a function, each once for each call.
    calls: HashMap<u32, Vec<u32>>,
    /// Whether each instruction is in `calls`. It is in one block and calls one function.
    noted: Vec<bool>,
    /// Functions that go on as this one.
    tails: HashMap<u32, BTreeSet<u32>>,
}

impl Callees {
    /// All functions: those that are entered from outside, and those that are called. Of these
    /// the address is `taken`.
    pub fn new(disassembly: &Disassembly, entries: &[u32], taken: &[u32]) -> Callees {
        let mut functions = vec![false; disassembly.insns.len()];
        let called =
            disassembly
                .branches
                .iter()
                .filter_map(|&n| match disassembly.insns[n as usize].op {
                    Op::Call(BranchTarget::Insn(to)) => Some(to),
                    _ => None,
                });
        for n in called.chain(entries.iter().copied()) {
            functions[n as usize] = true;
        }
        let tails = taken.iter().map(|&n| (n, BTreeSet::from([POINTED])));
        Callees {
            noted: vec![false; functions.len()],
            functions,
            tails: tails.collect(),
            ..Callees::default()
        }
    }

    /// Whether callees are trusted to keep registers, so that those of the object are judged.
    pub fn are_judged(&self) -> bool {
        !self.functions.is_empty()
    }

    /// Whether a function begins there.
    pub fn is_function(&self, n: u32) -> bool {
        self.functions.get(n as usize).copied().unwrap_or(false)
    }

    /// Registers that a function does not keep.
    pub fn lost(&self, function: u32) -> GprSet {
        let lost = |function| self.lost.get(&function).copied().unwrap_or_default();
        lost(function).or(lost(ALL))
    }

    /// A block has this instruction, number `n`. Returns registers that it loses by a call.
    pub fn called(&mut self, block: u32, n: u32, op: Op, marks: Marks) -> GprSet {
        let function = match op {
            Op::Call(BranchTarget::Insn(function)) => function,
            // The kernel may make it a call of the trace entry, as below.
            Op::Nop if marks.has(Marks::LEAVES) => POINTED,
            Op::CallIndirect(_) => POINTED,
            Op::Call(BranchTarget::Routine(routine)) if leads_back(routine) => POINTED,
            _ => return GprSet::NONE,
        };
        if !std::mem::replace(&mut self.noted[n as usize], true) {
            self.calls.entry(function).or_default().push(block);
        }
        self.lost(function)
    }

    /// A function goes on as another one, with these registers. Returns the blocks whose facts
    /// this changes.
    pub fn goes_on(&mut self, kept: &Kept, as_function: u32) -> Vec<u32> {
        let function = kept.function.unwrap_or(ALL);
        self.tails.entry(as_function).or_default().insert(function);
        self.loses(function, kept.lost().or(self.lost(as_function)))
    }

    /// A function has this instruction, with these registers. Returns the blocks whose facts this
    /// changes, if it leaves the function for good.
    pub fn left(&mut self, op: Op, marks: Marks, kept: &Kept) -> Vec<u32> {
        match op {
            // A static call's trampoline, of which the kernel may make a jump that leads anywhere.
            Op::Ret if marks.has(Marks::LEAVES) => self.goes_on(kept, POINTED),
            Op::JumpIndirect(_) => self.goes_on(kept, POINTED),
            Op::Jump(BranchTarget::Routine(routine))
            | Op::Branch(_, BranchTarget::Routine(routine))
                if leads_back(routine) =>
            {
                self.goes_on(kept, POINTED)
            }
            Op::Ret
            | Op::Jump(BranchTarget::Routine(_))
            | Op::Branch(_, BranchTarget::Routine(_)) => self.leaves(kept),
            // A static call's jump, which may lead anywhere; what the others call is the kernel's.
            Op::Jump(_) | Op::Branch(..) if marks.has(Marks::LEAVES) => self.goes_on(kept, POINTED),
            _ if marks.has(Marks::LEAVES) => self.leaves(kept),
            _ => Vec::new(),
        }
    }

    fn leaves(&mut self, kept: &Kept) -> Vec<u32> {
        self.loses(kept.function.unwrap_or(ALL), kept.lost())
    }

    fn loses(&mut self, function: u32, registers: GprSet) -> Vec<u32> {
        let (mut blocks, mut work) = (Vec::new(), vec![function]);
        while let Some(function) = work.pop() {
            let before = self.lost(function);
            if registers.0 & !before.0 == 0 {
                continue;
            }
            self.lost.insert(function, before.or(registers));
            if function == ALL {
                return self.calls.values().flatten().copied().collect();
            }
            blocks.extend(self.calls.get(&function).into_iter().flatten());
            work.extend(self.tails.get(&function).into_iter().flatten());
        }
        blocks
    }
}

/// Whether a routine outside of the object may go on as a function of it.
fn leads_back(routine: Routine) -> bool {
    match routine {
        Routine::Imported | Routine::Trace | Routine::Thunk(_) | Routine::Indirect => true,
        Routine::PutUser | Routine::PortIn | Routine::Keeps | Routine::Bug | Routine::Slow(_) => {
            false
        }
    }
}
