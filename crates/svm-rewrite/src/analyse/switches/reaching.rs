//! Reaching definitions: which instructions write a register last before each instruction, on all
//! ways there.

use foldhash::HashMap;
use iced_x86::{FlowControl, Instruction, InstructionInfoFactory, OpAccess};
use liveness::Reg;

use super::find::Finder;
use crate::lift::{Destination, InstIdx};
use crate::registers::reg64;

/// As many definitions are told apart at one place. More are as good as unknown ones, so that all
/// of them are found in linear time.
const MOST: usize = 32;

/// A set of definitions, by its number in [`Sets`].
type SetIdx = u32;
/// No way there has been seen.
const NONE: SetIdx = 0;
/// On some way it is not known who wrote last.
const UNKNOWN: SetIdx = 1;

/// Each set once.
struct Sets {
    all: Vec<Vec<u32>>,
    numbers: HashMap<Vec<u32>, SetIdx>,
}

impl Sets {
    fn new() -> Sets {
        Sets {
            all: vec![Vec::new(), Vec::new()],
            numbers: HashMap::default(),
        }
    }

    fn number(&mut self, set: Vec<u32>) -> SetIdx {
        if let Some(&known) = self.numbers.get(&set) {
            return known;
        }
        let new = self.all.len() as SetIdx;
        self.all.push(set.clone());
        self.numbers.insert(set, new);
        new
    }

    fn joined(&mut self, a: SetIdx, b: SetIdx) -> SetIdx {
        match (a, b) {
            _ if a == b => a,
            (NONE, other) | (other, NONE) => other,
            (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
            _ => {
                let mut set = [&self.all[a as usize][..], &self.all[b as usize]].concat();
                set.sort_unstable();
                set.dedup();
                match set.len() > MOST {
                    true => UNKNOWN,
                    false => self.number(set),
                }
            }
        }
    }
}

/// What reaches each instruction of an object, for one register.
pub(super) struct Reaching {
    sets: Sets,
    before: Vec<SetIdx>,
}

impl Reaching {
    /// The instructions that write the register last before this one, in part or as a whole, on all
    /// ways there. None if a way is not known.
    pub(super) fn at(&self, i: InstIdx) -> Option<impl Iterator<Item = InstIdx>> {
        let set = self.before[i.0 as usize];
        let known = set != NONE && set != UNKNOWN;
        let set = known.then(|| &self.sets.all[set as usize])?;
        Some(set.iter().copied().map(InstIdx))
    }

    pub(super) fn of(finder: &Finder<'_, '_>, register: Reg) -> Reaching {
        Solver::new(finder, register).solve()
    }
}

/// Carries sets forward until none grows.
struct Solver<'s, 'l, 'a> {
    finder: &'s Finder<'l, 'a>,
    register: Reg,
    factory: InstructionInfoFactory,
    found: Reaching,
    /// What comes to the labels of each function by its indirect jumps.
    by_table: HashMap<&'l str, SetIdx>,
    labels: HashMap<&'l str, Vec<u32>>,
    work: Vec<u32>,
}

impl<'s, 'l, 'a> Solver<'s, 'l, 'a> {
    fn new(finder: &'s Finder<'l, 'a>, register: Reg) -> Solver<'s, 'l, 'a> {
        let count = finder.lifted.insts.len();
        let mut labels: HashMap<&str, Vec<u32>> = HashMap::default();
        for &label in &finder.labels {
            let whole = finder.whole(InstIdx(label));
            labels.entry(whole).or_default().push(label);
        }
        Solver {
            finder,
            register,
            factory: InstructionInfoFactory::new(),
            found: Reaching {
                sets: Sets::new(),
                before: vec![NONE; count],
            },
            by_table: HashMap::default(),
            labels,
            // Each once, the first one first: what writes begins a set wherever it is.
            work: (0..count as u32).rev().collect(),
        }
    }

    fn solve(mut self) -> Reaching {
        for &i in &self.finder.entered {
            self.found.before[i as usize] = UNKNOWN;
        }
        while let Some(i) = self.work.pop() {
            let behind = self.behind(i);
            if behind != NONE {
                self.pass(i, behind);
            }
        }
        self.found
    }

    /// What reaches the instructions after this one.
    fn behind(&mut self, i: u32) -> SetIdx {
        let iced = &self.finder.lifted.insts[i as usize].iced;
        let passes = match iced.flow_control() {
            FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch => true,
            FlowControl::Call | FlowControl::IndirectCall => {
                self.finder.keeps(InstIdx(i), self.register)
            }
            _ => false,
        };
        match changes(&mut self.factory, iced, self.register) {
            _ if !passes => UNKNOWN,
            true => self.found.sets.number(vec![i]),
            false => self.found.before[i as usize],
        }
    }

    /// Carries a set from an instruction to all that may follow it.
    fn pass(&mut self, i: u32, set: SetIdx) {
        if self.finder.falls_through(i) {
            self.reach(i + 1, set);
        }
        let finder = self.finder;
        if let Some(Destination::Inst(to)) = finder.lifted.insts[i as usize].target {
            self.reach(to.0, set);
        }
        if finder.destination(InstIdx(i)).is_none() {
            return;
        }
        let whole = finder.whole(InstIdx(i));
        let known = self.by_table.get(whole).copied().unwrap_or(NONE);
        let joined = self.found.sets.joined(known, set);
        if joined != known {
            self.by_table.insert(whole, joined);
            let labels = self.labels.get(whole).cloned().unwrap_or_default();
            labels.into_iter().for_each(|to| self.reach(to, joined));
        }
    }

    fn reach(&mut self, to: u32, set: SetIdx) {
        let Some(&known) = self.found.before.get(to as usize) else {
            return;
        };
        let joined = self.found.sets.joined(known, set);
        if joined != known {
            self.found.before[to as usize] = joined;
            self.work.push(to);
        }
    }
}

/// Whether an instruction writes a register, or a part of it.
pub(super) fn changes(
    factory: &mut InstructionInfoFactory,
    iced: &Instruction,
    register: Reg,
) -> bool {
    let info = factory.info(iced);
    let used = info.used_registers().iter();
    let writes = |access| {
        !matches!(
            access,
            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
        )
    };
    used.into_iter()
        .any(|u| u.register().full_register() == reg64(register) && writes(u.access()))
}
