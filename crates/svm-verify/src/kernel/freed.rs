//! `.init`: code and data that are gone once the module has begun.
//!
//! The kernel frees them (`do_init_module`, kernel/module/main.c), and others have the memory then:
//! the code of the next module, at any byte of its instructions. So code that stays does not lead
//! there, by a branch or by what a table of the kernel's says: the target of a static branch, a fixup,
//! a replacement. What operands name is judged in [`super::references`], keys in [`super::tables`].
//!
//! Some sections have parts of other sections' functions ([`PARTS`]), `.init` among them. What is
//! there may lead to `.init` if nothing that stays leads to it.

use std::collections::BTreeSet;

use elf_loader::Section;

use super::Patches;
use crate::findings::{Findings, ViolationCode};
use crate::insn::{BranchTarget, Disassembly, Op};
use crate::object::Image;
use crate::object::module::is_freed;

/// Sections with parts of functions: ways that alternatives, tests of the processor and fixups take.
const PARTS: [&str; 3] = [".altinstr_replacement", ".altinstr_aux", ".fixup"];

/// How long the code of a section is there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Stays,
    Freed,
    /// As long as what leads to it.
    Part,
}

fn life(section: &Section<'_>) -> Life {
    let named = |part: &&str| {
        let rest = section.name.strip_prefix(*part);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    match () {
        () if is_freed(section) => Life::Freed,
        () if PARTS.iter().any(named) => Life::Part,
        () => Life::Stays,
    }
}

/// Refuses ways from code that stays to code that is freed. `entries`: what may be called.
pub fn judge<'o>(
    image: &Image<'o>,
    disassembly: &Disassembly,
    patches: &Patches,
    entries: &[u32],
    findings: &mut Findings<'o>,
) {
    let sections = image.code.iter().map(|id| life(image.object.section(*id)));
    let ways = Ways {
        disassembly,
        patches,
        lives: sections.collect(),
    };
    if !ways.lives.contains(&Life::Freed) {
        return;
    }
    for n in ways.to_freed(entries) {
        let (section, offset) = image.place(&disassembly.insns[n as usize]);
        let reason = "code that stays leads to code of .init, whose memory others have later";
        findings.at(section, offset, ViolationCode::Target, reason);
    }
}

struct Ways<'a> {
    disassembly: &'a Disassembly,
    patches: &'a Patches,
    /// Of each code section.
    lives: Vec<Life>,
}

impl Ways<'_> {
    /// Instructions that stay, or that what stays leads to, and that lead to freed code.
    fn to_freed(&self, entries: &[u32]) -> BTreeSet<u32> {
        let parts = entries.iter().filter(|n| self.life(**n) == Life::Part);
        let mut work: Vec<u32> = parts.copied().collect();
        let staying = self.leading().filter(|n| self.life(*n) == Life::Stays);
        let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut follow = |n: u32, to: u32, work: &mut Vec<u32>| match self.life(to) {
            Life::Freed => _ = found.insert(n),
            Life::Part => work.push(to),
            Life::Stays => {}
        };
        for n in staying {
            self.elsewhere(n).for_each(|to| follow(n, to, &mut work));
        }
        while let Some(n) = work.pop() {
            if seen.insert(n) {
                let ways = self.elsewhere(n).chain(self.behind(n));
                ways.for_each(|to| follow(n, to, &mut work));
            }
        }
        found
    }

    fn life(&self, n: u32) -> Life {
        let insn = self.disassembly.get(n);
        insn.map_or(Life::Stays, |insn| self.lives[usize::from(insn.section)])
    }

    /// All instructions that lead to another one than the next.
    fn leading(&self) -> impl Iterator<Item = u32> {
        let (before, instead) = (&self.patches.before, &self.patches.instead);
        let branches = self.disassembly.branches.iter();
        let tables = before.keys().chain(instead.keys());
        branches
            .chain(tables)
            .chain(self.patches.fixups.keys())
            .copied()
    }

    /// Where an instruction leads besides the next one.
    fn elsewhere(&self, n: u32) -> impl Iterator<Item = u32> {
        let target = match self.disassembly.get(n).map(|insn| insn.op) {
            Some(
                Op::Call(BranchTarget::Insn(to))
                | Op::Jump(BranchTarget::Insn(to))
                | Op::Branch(_, BranchTarget::Insn(to)),
            ) => Some(to),
            _ => None,
        };
        let (before, instead) = (self.patches.before.get(&n), self.patches.instead.get(&n));
        let tables = before.into_iter().chain(instead).flatten().copied();
        let fixup = self.patches.fixups.get(&n).map(|fixup| fixup.to);
        target.into_iter().chain(tables).chain(fixup)
    }

    /// What follows an instruction: behind a replacement, what follows the site.
    fn behind(&self, n: u32) -> Option<u32> {
        let ends = match self.disassembly.get(n)?.op {
            Op::Jump(_) | Op::JumpIndirect(_) | Op::Ret | Op::Breakpoint => true,
            Op::Stop => !self.patches.warns.contains(&n),
            _ => false,
        };
        let site = self.patches.ends.get(&n).copied();
        let next = site.or_else(|| self.disassembly.next(n));
        next.filter(|_| !ends)
    }
}
