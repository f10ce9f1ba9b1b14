//! Prints out-of-line parts: after the function's last instruction, so that the
//! function's size and its unwind information cover them. They repeat the state of
//! `.loc` and `.cfi_*` at their site.

use foldhash::HashSet;

use super::super::cfi::Here;
use super::super::expression::begins_with_digit;
use super::super::marks::StatementIdx;
use super::super::operand;
use super::super::statement::StatementKind;
use super::sequence::Walk;
use super::{At, Input, Loc, Printer, said_is_stmt};
use crate::asm::Position;
use crate::encode::control::PADDING;
use crate::encode::function::runs_on;
use crate::encode::sites::{End, FunctionCode, Part};
use crate::lift::{Destination, FuncIdx, InstIdx, Lifted};

impl<'p> Printer<'p, '_> {
    /// Decides where a function's out-of-line parts go, and what stops control.
    pub(super) fn place_parts(&mut self, f: FuncIdx) {
        let emitted = &self.input.code.functions[f.0 as usize];
        if emitted.parts.is_empty() && !matches!(emitted.end, End::Stopped | End::Padded) {
            return;
        }
        for part in &emitted.parts {
            let n = self.number(part.label);
            self.apart[n] = true;
        }
        match self.end(f) {
            Some(k) => self.parts_after.push((k, f)),
            // Nothing is in the way of what follows.
            None if emitted.parts.is_empty() => {}
            None => {
                let last = InstIdx(self.input.lifted.function(f).insts.end - 1);
                let at = self.input.tie.near(last).unwrap_or(StatementIdx(0));
                self.obstacle(
                    at,
                    "the function's last lines do not become one instruction each",
                );
            }
        }
    }

    /// The statement behind which a function's code has ended, or goes on in lines that control
    /// does not run into.
    fn end(&self, f: FuncIdx) -> Option<StatementIdx> {
        let Input {
            tie,
            lifted,
            analysis,
            ..
        } = self.input;
        let insts = lifted.function(f).insts.clone();
        // Padding has no statement.
        let tied = |i: &InstIdx| tie.statement(*i).is_some();
        let last = insts.clone().map(InstIdx).rfind(tied)?;
        let end = self.behind_fragments(tie.statement(last)?);
        let rest = last.0 + 1..insts.end;
        let goes_on = || !rest.is_empty() && tie.has_untied(&rest, end);
        (!runs_on(analysis, last) || !goes_on()).then_some(end)
    }

    /// Whether control may come to a label between the last instruction of a function and
    /// statement `k`, as by `jne 1f; ret; 1:` to what follows.
    fn is_entered_behind(&mut self, f: FuncIdx, k: StatementIdx) -> bool {
        let Input {
            tie, lifted, code, ..
        } = *self.input;
        let insts = lifted.function(f).insts.clone().map(InstIdx);
        let last = insts.filter_map(|i| tie.statement(i)).next_back();
        let passed = last.map_or(k.0, |last| last.0)..k.0 + 1;
        let labels = tie.labels();
        let first = labels.partition_point(|label| label.at < passed.start);
        let mut labels = labels[first..]
            .iter()
            .take_while(|label| passed.contains(&label.at));
        let reached = &mut self.reached;
        labels.any(|label| {
            let (section, offset) = label.place;
            code.any_label
                || lifted.inst_at(section, offset).is_some_and(|i| {
                    let reached = reached.get_or_insert_with(|| reached_by_branches(lifted));
                    reached.contains(&i)
                })
        })
    }

    /// Skips statements after an instruction that belong to it: ends of alternatives,
    /// whose length is the distance between numeric labels, and tables in sections
    /// entered with `.pushsection`.
    fn behind_fragments(&self, last: StatementIdx) -> StatementIdx {
        let (text, statements) = (self.input.text, self.input.statements);
        let mut depth = 0;
        let mut end = last;
        for k in last.0 + 1..statements.len() as u32 {
            let statement = &statements[k as usize];
            let name = statement.name(text);
            match (statement.kind, name) {
                (StatementKind::Directive, b".pushsection") => depth += 1,
                (StatementKind::Directive, b".popsection") if depth > 0 => depth -= 1,
                _ if depth > 0 => continue,
                (StatementKind::Label, _) if begins_with_digit(name) => {}
                (StatementKind::Directive, b".skip" | b".org" | b".byte" | b".long") => {}
                _ => break,
            }
            if depth == 0 {
                end = StatementIdx(k);
            }
        }
        end
    }

    /// What follows a function's code, after statement `k`.
    pub(super) fn behind(&mut self, f: FuncIdx, k: StatementIdx) {
        let end = self.input.statements[k.0 as usize].end as usize;
        self.copy_to(end);
        self.copy_comment();
        self.fresh_line();
        let emitted = &self.input.code.functions[f.0 as usize];
        match emitted.end {
            End::Stopped => self.line("\tint3\t# twin: nothing follows"),
            End::Padded => self.line(&format!("\t.skip\t{PADDING}, 0xcc\t# twin: no trampoline")),
            End::Closed | End::Open => {}
        }
        if !emitted.parts.is_empty() {
            let open = emitted.end == End::Open || self.is_entered_behind(f, k);
            self.parts(f, emitted, open);
        }
    }

    /// The out-of-line parts of a function; control that comes there goes over them if it is
    /// `open`.
    fn parts(&mut self, f: FuncIdx, emitted: &'p FunctionCode, open: bool) {
        let over = open.then(|| format!(".Ltwin_over{}", f.0));
        if let Some(over) = &over {
            self.line(&format!("\tjmp\t{over}"));
        }
        let here = self.cfi.here().cloned();
        if here.is_some() {
            self.line("\t.cfi_remember_state");
        }
        let mut at = At {
            cfi: here.clone(),
            loc: self.loc,
        };
        for (n, part) in emitted.parts.iter().enumerate() {
            let next = emitted.parts.get(n + 1);
            let to = next.map_or(emitted.parts_end, |p| p.from);
            self.part(part, to, &mut at, emitted);
        }
        // The lines after the parts may rely on the state before them.
        if at.loc.is_stmt != self.loc.is_stmt {
            self.repeat_loc(self.loc, at.loc.is_stmt);
        }
        if here.is_some() {
            self.line("\t.cfi_restore_state");
        }
        if let Some(over) = over {
            self.line(&format!("{over}:"));
        }
    }

    /// The rest of a line that holds nothing but a comment.
    fn copy_comment(&mut self) {
        let rest = &self.input.text[self.copied..];
        let end = rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
        let line = rest[..end].trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            self.copy_to((self.copied + end + 1).min(self.input.text.len()));
        }
    }

    /// One part, up to `to`. `at` is the state of directives before it, then after it.
    fn part(&mut self, part: &'p Part, to: Position, at: &mut At<'p>, emitted: &'p FunctionCode) {
        let input = self.input;
        let Some(k) = input.tie.statement(part.inst) else {
            return;
        };
        let n = self.number(part.label);
        if let Some(site) = self.at[n].take() {
            self.repeat(at, site);
        }
        self.define(part.label);
        let assembler = &input.code.assemblers[usize::from(emitted.section)];
        let mut walk = Walk {
            assembler,
            references: self.references_from(emitted.section, part.from),
            labels: Vec::new(),
            operands: operand::of(input.statements[k.0 as usize].text(input.text)),
            based: operand::is_based(&input.lifted.inst(part.inst).iced),
            pending: 0,
            pushed: 0,
            counts: at.cfi.as_ref().is_some_and(Here::counts_pushes),
            lock_label: None,
        };
        self.pieces(&mut walk, part.from, to, |_, _, _| {});
    }

    /// Prints directives that lead from the state `at` to the state at a site.
    fn repeat(&mut self, at: &mut At<'p>, site: At<'p>) {
        if let (Some(from), Some(to)) = (&at.cfi, &site.cfi) {
            from.lead_to(to, &mut self.out);
            at.cfi = site.cfi;
        }
        if site.loc != at.loc {
            self.repeat_loc(site.loc, at.loc.is_stmt);
            at.loc = site.loc;
        }
    }

    /// Repeats a `.loc`, without the view that it names, given the last `is_stmt`.
    fn repeat_loc(&mut self, loc: Loc, is_stmt: bool) {
        let Some(k) = loc.at else {
            return;
        };
        let text = self.input.statements[k.0 as usize].text(self.input.text);
        let view = text.windows(6).position(|w| w == b" view ");
        let text = &text[..view.unwrap_or(text.len())];
        self.out.push(b'\t');
        self.out.extend_from_slice(text);
        if said_is_stmt(text).is_none() && loc.is_stmt != is_stmt {
            let digit = if loc.is_stmt { b'1' } else { b'0' };
            self.out.extend_from_slice(b" is_stmt ");
            self.out.push(digit);
        }
        self.out.push(b'\n');
    }
}

/// The instructions that direct branches lead to.
fn reached_by_branches(lifted: &Lifted<'_>) -> HashSet<InstIdx> {
    let targets = lifted.insts.iter().filter_map(|inst| inst.target);
    let insts = targets.filter_map(|target| match target {
        Destination::Inst(to) => Some(to),
        Destination::Import(_) | Destination::Hypercall(..) | Destination::Behind(_) => None,
    });
    insts.collect()
}
