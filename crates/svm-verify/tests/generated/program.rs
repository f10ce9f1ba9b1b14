//! A program: lines of instructions and labels, and what the kernel does to them.

use svm_verify::{Violation, ViolationCode};

use super::object::Placed;

/// Functions of a program. Each begins at the label of its number.
pub const FUNCTIONS: u32 = 4;

/// Numbers that depend on a seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

/// What the last four bytes of an instruction, or its displacement, lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    None,
    /// A label.
    To(u32),
    /// A routine of the kernel.
    Import,
    /// One of those that do not keep `rbx`.
    PutUser,
    /// What is called if a return address was overwritten (target `hypervisor`).
    Smashed,
    /// The slow path for the register of that number.
    Slow(u32),
    /// A half of the table's entry; where the displacement is.
    Table(usize, i64),
    /// What the loader writes in a field (target `hypervisor`).
    Named(Named),
}

/// A field, and the relocation of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    pub at: usize,
    pub kind: u32,
    pub name: &'static str,
    pub addend: i64,
}

#[derive(Clone, Debug)]
pub enum Line {
    Label(u32),
    Insn(Vec<u8>, Link),
}

/// A range that may be replaced, and by what.
pub struct Alternative {
    pub from: u32,
    pub to: u32,
    pub replacement: Vec<(Vec<u8>, Link)>,
}

/// A program.
#[derive(Default)]
pub struct Program {
    pub lines: Vec<Line>,
    pub alternatives: Vec<Alternative>,
    /// Labels of an instruction, and of where it goes on if it faults.
    pub fixups: Vec<(u32, u32)>,
    /// Labels of `ud2`, behind which the kernel goes on.
    pub warnings: Vec<u32>,
    /// Labels of a nop, and of where the kernel may make it jump.
    pub branches: Vec<(u32, u32)>,
}

impl Program {
    /// Takes out what a violation is about. `None` if that is no part of a program.
    pub fn take_out(
        &mut self,
        violation: &Violation,
        placed: &Placed,
        random: &mut Random,
    ) -> Option<()> {
        let at = violation.offset;
        let entry = |size: u64| (at / size) as usize;
        match &*violation.section {
            ".altinstructions" => drop(self.alternatives.remove(entry(12))),
            "__ex_table" => _ = self.fixups.remove(entry(12)),
            "__bug_table" => _ = self.warnings.remove(entry(12)),
            "__jump_table" => _ = self.branches.remove(entry(16)),
            ".altinstr_replacement" => {
                let number = placed.ranges.iter().position(|r| r.contains(&at))?;
                self.alternatives.remove(number);
            }
            ".text" => {
                let jumps = self.jumps_to(at, placed);
                // Of two paths that meet, either is wrong.
                let meets = violation.code == ViolationCode::Depth && !jumps.is_empty();
                let line = if meets {
                    random.of(&jumps)
                } else {
                    self.line_at(at)?
                };
                self.lines.remove(line);
            }
            _ => return None,
        }
        Some(())
    }

    /// The line with the instruction that is at an offset.
    fn line_at(&self, offset: u64) -> Option<usize> {
        let mut start = 0;
        self.lines.iter().position(|line| {
            let Line::Insn(bytes, _) = line else {
                return false;
            };
            let found = (start..start + bytes.len() as u64).contains(&offset);
            start += bytes.len() as u64;
            found
        })
    }

    /// The lines with jumps to an offset.
    fn jumps_to(&self, offset: u64, placed: &Placed) -> Vec<usize> {
        const CALL: u8 = 0xe8;
        let leads = |line: &Line| match line {
            Line::Insn(bytes, Link::To(label)) => {
                bytes[0] != CALL && placed.labels.get(label) == Some(&offset)
            }
            _ => false,
        };
        let lines = self.lines.iter().enumerate();
        lines
            .filter(|(_, line)| leads(line))
            .map(|(n, _)| n)
            .collect()
    }
}
