//! Prints the sequences in line.

use std::borrow::Cow;

use super::super::cfi::Here;
use super::super::format::{EncodingIdx, Filled, Gap};
use super::super::marks::StatementIdx;
use super::super::number::push_signed;
use super::super::operand;
use super::super::statement::{Statement, StatementKind};
use super::{At, Printer, names};
use crate::asm::{Assembler, Branch, Label, Piece, Position, Reference, Referent};
use crate::encode::sites::SiteSequence;
use crate::lift::InstIdx;

/// The state of printing one sequence.
pub struct Walk<'w> {
    pub assembler: &'w Assembler,
    /// References of fields still to come.
    pub references: &'w [Reference],
    /// Labels still to come, the next one last.
    pub labels: Vec<(Position, Label)>,
    /// The original's operands.
    pub operands: Cow<'w, [u8]>,
    /// One of them has a base or an index.
    pub based: bool,
    /// What the last instruction pushed, for which no directive is printed yet.
    pub pending: i64,
    /// What was pushed before.
    pub pushed: i64,
    /// The frame address is relative to `rsp`.
    pub counts: bool,
    /// The numeric label of a `lock` prefix that was not printed yet.
    pub lock_label: Option<&'w [u8]>,
}

impl<'p> Printer<'p, '_> {
    pub(super) fn site(&mut self, k: StatementIdx, statement: &Statement, site: &'p SiteSequence) {
        let first = self.first_of(k);
        let start = self.input.statements[first.0 as usize].start as usize;
        let label = self.lock_label(first, site);
        match label {
            Some(label) => {
                let label = self.input.statements[label.0 as usize];
                self.copy_to(label.start as usize);
                self.copied = label.end as usize;
                self.copy_to(start);
            }
            None => self.copy_to(start),
        }
        self.fresh_line();
        self.labels_within(first, k);
        self.comment(start..statement.end as usize);
        let label = label.map(|l| self.input.statements[l.0 as usize].name(self.input.text));
        self.sequence(statement, site, label);
        self.copied = statement.end as usize;
        // The line that follows the sequence is the rest of the original's.
        self.out.pop();
    }

    /// The first statement of an instruction: its prefixes may be statements, and labels may stand
    /// between them and it.
    pub(super) fn first_of(&self, k: StatementIdx) -> StatementIdx {
        let before = self.input.statements[..k.0 as usize].iter().rev();
        let mut first = k.0;
        for (statement, at) in before.zip((0..k.0).rev()) {
            match statement.kind {
                StatementKind::Prefix => first = at,
                StatementKind::Label => {}
                _ => break,
            }
        }
        StatementIdx(first)
    }

    /// Labels between an instruction's prefixes and the rest of it, which is another one now: they
    /// name its beginning. No branch goes there: that would be the middle of the instruction.
    fn labels_within(&mut self, first: StatementIdx, k: StatementIdx) {
        let text = self.input.text;
        for statement in &self.input.statements[first.0 as usize..k.0 as usize] {
            if statement.kind == StatementKind::Label {
                self.out.extend_from_slice(statement.name(text));
                self.out.extend_from_slice(b":\n");
            }
        }
    }

    /// The label before an access with a `lock` prefix that the table of these prefixes
    /// names (`.smp_locks`). It moves with the access, unless branches go there.
    fn lock_label(&mut self, first: StatementIdx, site: &SiteSequence) -> Option<StatementIdx> {
        if !self.input.lifted.inst(site.inst).iced.has_lock_prefix() {
            return None;
        }
        let k = StatementIdx(first.0.checked_sub(1)?);
        let (text, statements) = (self.input.text, self.input.statements);
        let statement = &statements[k.0 as usize];
        let name = statement.name(text);
        let locks = self.locks.get_or_insert_with(|| {
            let mut locks = names::locked(text, statements);
            for target in statements
                .iter()
                .filter_map(|s| names::branch_target(text, s))
            {
                locks.remove(target);
            }
            locks
        });
        (statement.kind == StatementKind::Label && locks.contains(name)).then_some(k)
    }

    /// One site's code in line.
    fn sequence(
        &mut self,
        statement: &Statement,
        site: &'p SiteSequence,
        lock_label: Option<&'p [u8]>,
    ) {
        let assembler = &self.input.code.assemblers[usize::from(site.section)];
        let mut walk = Walk {
            assembler,
            references: self.references_from(site.section, site.from),
            labels: self.labels_in(site),
            operands: operand::of(statement.text(self.input.text)),
            based: operand::is_based(&self.input.lifted.inst(site.inst).iced),
            pending: 0,
            pushed: 0,
            counts: self.cfi.here().is_some_and(Here::counts_pushes),
            lock_label,
        };
        self.pieces(&mut walk, site.from, site.to, |printer, walk, to| {
            let at = At {
                cfi: printer.cfi.here().map(|h| h.pushed(walk.pushed)),
                loc: printer.loc,
            };
            if let Some(n) = printer.made(to) {
                printer.at[n] = Some(at);
            }
        });
        self.labels_at(&mut walk, site.to);
        // The original's own directives follow, for what the original did to rsp. So
        // only the sequence's own changes are undone here.
        walk.pending = -walk.pushed;
        self.print_frame_adjustment(&mut walk);
        self.labels = walk.labels;
    }

    /// Emitted code from a place to another. `branches` is told of each branch, before the
    /// branch is printed.
    pub(super) fn pieces(
        &mut self,
        walk: &mut Walk<'_>,
        from: Position,
        to: Position,
        mut branches: impl FnMut(&mut Self, &Walk<'_>, Label),
    ) {
        for piece in walk.assembler.pieces(from, to) {
            match piece {
                Piece::Code(at, len) => self.code(walk, at, len),
                Piece::Branch(at, branch, to) => {
                    self.labels_at(walk, at);
                    self.print_frame_adjustment(walk);
                    branches(self, walk, to);
                    self.branch(branch, to);
                }
                Piece::Align(_) => {}
            }
        }
    }

    /// The references of fields from a place on. Called nearly in the order of places.
    pub(super) fn references_from(&mut self, section: u16, at: Position) -> &'p [Reference] {
        let assembler = &self.input.code.assemblers[usize::from(section)];
        let near = &mut self.references[usize::from(section)];
        *near = assembler.references_before(at, *near);
        assembler.references_from(*near)
    }

    fn labels_in(&mut self, site: &SiteSequence) -> Vec<(Position, Label)> {
        let mut labels = std::mem::take(&mut self.labels);
        labels.clear();
        for label in site.labels.clone().map(Label) {
            // An out-of-line part may begin where the last site ends.
            if let Some((_, at)) = self.input.code.labels.find(label)
                && !self.apart[self.number(label)]
                && at >= site.from
                && at <= site.to
            {
                labels.push((at, label));
            }
        }
        labels.sort_unstable();
        labels.reverse();
        labels
    }

    /// The number of a label that was made for a sequence; none if it is an
    /// instruction's own.
    fn made(&self, label: Label) -> Option<usize> {
        (label.0 as usize).checked_sub(self.input.lifted.insts.len())
    }

    /// Number of a label among those that are not an instruction's.
    pub(super) fn number(&self, label: Label) -> usize {
        label.0 as usize - self.input.lifted.insts.len()
    }

    fn labels_at(&mut self, walk: &mut Walk<'_>, at: Position) {
        while let Some((_, label)) = walk.labels.pop_if(|(place, _)| *place <= at) {
            self.define(label);
        }
    }

    /// `len` bytes of instructions.
    fn code(&mut self, walk: &mut Walk<'_>, start: Position, len: u32) {
        let bytes = walk.assembler.bytes_from(start);
        let mut done = 0;
        while done < len as usize {
            let at = start.plus(done);
            if walk.labels.last().is_some_and(|(place, _)| *place <= at) {
                self.labels_at(walk, at);
            }
            if walk.pending != 0 {
                self.print_frame_adjustment(walk);
            }
            // The slice may have bytes after the branch that ends this code; they do no
            // harm.
            done += self.one(walk, at, &bytes[done..]);
            debug_assert!(done <= len as usize, "an instruction ends with its code");
        }
    }

    /// One emitted instruction, the first of `code`; gives its length.
    fn one(&mut self, walk: &mut Walk<'_>, at: Position, code: &[u8]) -> usize {
        let k = self.texts.first(code);
        let known = self.texts.known(k);
        let len = usize::from(known.len);
        walk.pending += i64::from(known.pushes);
        if known.locked
            && let Some(label) = walk.lock_label.take()
        {
            self.out.extend_from_slice(label);
            self.out.extend_from_slice(b":\n");
        }
        let end = at.offset() + len as u32;
        match walk.references.first() {
            Some(next) if next.offset() < end => self.filled(walk, at, k, code),
            _ => {
                let nothing = Filled::default();
                self.texts.write(k, code, nothing, &mut self.out, |_, _| {});
            }
        }
        len
    }

    /// The line of an instruction some of whose fields may hold references.
    fn filled(&mut self, walk: &mut Walk<'_>, at: Position, k: EncodingIdx, code: &[u8]) {
        let known = self.texts.known(k);
        let mut field = |offset: Option<u8>| {
            let offset = at.offset() + u32::from(offset?);
            let behind = walk.references.iter().position(|r| r.offset() >= offset);
            walk.references = &walk.references[behind.unwrap_or(walk.references.len())..];
            let next = walk.references.first()?;
            (next.offset() == offset).then(|| {
                walk.references = &walk.references[1..];
                next.referent
            })
        };
        // The displacement comes before the immediate (SDM volume 2, 2.1).
        let displacement = field(known.displacement_at);
        let immediate = field(known.immediate_at);
        let filled = Filled {
            displacement: displacement.is_some(),
            immediate: immediate.is_some(),
        };
        let (operands, based) = (&walk.operands, walk.based);
        self.texts
            .write(k, code, filled, &mut self.out, |gap, out| {
                let referent = match gap {
                    Gap::Displacement => displacement,
                    Gap::Immediate => immediate,
                };
                if let Some(Referent::Import(import, addend)) = referent
                    && names::runtime(import, addend, out)
                {
                    return;
                }
                let original = match gap {
                    Gap::Displacement => operand::displacement(operands, based),
                    Gap::Immediate => operand::immediate(operands),
                };
                out.extend_from_slice(original.unwrap_or_default());
            });
    }

    /// Prints a directive for what the last instruction did to the frame address.
    fn print_frame_adjustment(&mut self, walk: &mut Walk<'_>) {
        let bytes = std::mem::take(&mut walk.pending);
        walk.pushed += bytes;
        if bytes != 0 && walk.counts {
            self.out.extend_from_slice(b"\t.cfi_adjust_cfa_offset ");
            push_signed(&mut self.out, bytes);
            self.out.push(b'\n');
        }
    }

    pub(super) fn define(&mut self, label: Label) {
        let n = self.number(label);
        names::label(n as u32, &mut self.out);
        self.out.extend_from_slice(b":\n");
    }

    fn branch(&mut self, branch: Branch, to: Label) {
        self.out.extend_from_slice(names::branch(branch).as_bytes());
        match self.made(to) {
            Some(n) => names::label(n as u32, &mut self.out),
            None => names::case(InstIdx(to.0), &mut self.out),
        }
        self.out.push(b'\n');
    }
}
