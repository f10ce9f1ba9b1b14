//! Writes the text again, with the sequences in place of the lines they stand
//! for. All other lines are copied byte for byte.
//!
//! ```text
//!     # twin: movl 8(%rdi), %eax
//!     leaq  8(%rdi), %rcx
//!     movl  %ecx, %edx
//!     ...
//!     ja    .Ltwin3
//!     addq  twin_stlb+8(%rdx), %rcx
//! .Ltwin4:
//!     movl  (%rcx), %eax
//! ```
//!
//! The out-of-line parts follow the function's last instruction, so the
//! function's size and its unwind information cover them. They repeat what
//! `.loc` and `.cfi_*` said at their site.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};

use super::cfi::{State, Tracker};
use super::format::Texts;
use super::marks::{StatementIdx, Tie};
use super::operand;
use super::statement::{Kind, Statement};
use crate::asm::{Assembler, Jump, Label, Piece, Position, Referent};
use crate::import::Import;
use crate::lift::{FuncIdx, InstIdx, Lifted};
use crate::linkage::REGISTER_NAMES;
use crate::refusal::Code;
use crate::sites::{Site, SiteCode};

/// A line that stands in the way, and why.
#[derive(Debug)]
pub struct Obstacle {
    /// The statement.
    pub at: StatementIdx,
    /// Stable code.
    pub code: Code,
    /// Why.
    pub reason: String,
}

/// What the printer works from.
pub struct Input<'p, 'a> {
    /// The text.
    pub text: &'p [u8],
    /// Its statements.
    pub statements: &'p [Statement],
    /// Their instructions.
    pub tie: &'p Tie,
    /// The code.
    pub lifted: &'p Lifted<'a>,
    /// What was emitted.
    pub code: &'p SiteCode,
}

/// The rewritten text.
///
/// # Errors
/// Every line that stands in the way.
pub fn print(input: &Input<'_, '_>) -> Result<Vec<u8>, Vec<Obstacle>> {
    let mut printer = Printer::new(input);
    for k in 0..input.statements.len() as u32 {
        printer.statement(StatementIdx(k));
    }
    printer.copy_to(input.text.len());
    if printer.obstacles.is_empty() {
        Ok(printer.out)
    } else {
        Err(printer.obstacles)
    }
}

/// What was true where a check branches out of line.
#[derive(Clone, Debug)]
struct At {
    cfi: Option<State>,
    loc: Option<StatementIdx>,
}

struct Printer<'p, 'a> {
    input: &'p Input<'p, 'a>,
    out: Vec<u8>,
    copied: usize,
    texts: Texts,
    cfi: Tracker,
    /// The last `.loc`.
    loc: Option<StatementIdx>,
    intel: bool,
    /// Functions whose out-of-line parts follow a statement.
    parts_after: HashMap<u32, FuncIdx>,
    /// Site of each instruction, as an index into the sites of its function.
    sites: HashMap<u32, (u32, u32)>,
    /// What was true at each branch out of line, by label.
    at: BTreeMap<u32, At>,
    /// Labels of out-of-line parts.
    apart: HashSet<u32>,
    /// Instructions that some branch goes to.
    targets: HashSet<u32>,
    obstacles: Vec<Obstacle>,
}

impl<'p, 'a> Printer<'p, 'a> {
    fn new(input: &'p Input<'p, 'a>) -> Printer<'p, 'a> {
        let mut printer = Printer {
            input,
            out: Vec::with_capacity(input.text.len() * 3),
            copied: 0,
            texts: Texts::new(),
            cfi: Tracker::default(),
            loc: None,
            intel: false,
            parts_after: HashMap::default(),
            sites: HashMap::default(),
            at: BTreeMap::new(),
            apart: HashSet::default(),
            targets: HashSet::default(),
            obstacles: Vec::new(),
        };
        for inst in &input.lifted.insts {
            if let Some(crate::lift::Target::Inst(to)) = inst.target
                && inst.iced.flow_control() != iced_x86::FlowControl::Call
            {
                printer.targets.insert(to.0);
            }
        }
        for f in 0..input.code.functions.len() as u32 {
            printer.place_parts(FuncIdx(f));
        }
        printer
    }

    /// Where a function's out-of-line parts go, and which sites it has.
    fn place_parts(&mut self, f: FuncIdx) {
        let emitted = &self.input.code.functions[f.0 as usize];
        for (n, site) in emitted.sites.iter().enumerate() {
            self.sites.insert(site.inst.0, (f.0, n as u32));
            if self.input.tie.statement(site.inst).is_none() {
                let at = self.input.tie.near(site.inst).unwrap_or(StatementIdx(0));
                let reason = "these lines do not become one instruction each, so it cannot be told which of them to change".to_owned();
                self.obstacles.push(Obstacle {
                    at,
                    code: Code::Statement,
                    reason,
                });
            }
        }
        if emitted.parts.is_empty() {
            return;
        }
        self.apart.extend(emitted.parts.iter().map(|p| p.label.0));
        let last = InstIdx(self.input.lifted.function(f).insts.end - 1);
        match self.last_statement(f) {
            Some(k) => {
                let k = self.behind_fragments(k);
                self.parts_after.insert(k.0, f);
            }
            None => {
                let at = self.input.tie.near(last).unwrap_or(StatementIdx(0));
                let reason =
                    "the function's last lines do not become one instruction each".to_owned();
                self.obstacles.push(Obstacle {
                    at,
                    code: Code::Statement,
                    reason,
                });
            }
        }
    }

    /// The statement of the last instruction of a function; padding behind it
    /// has none.
    fn last_statement(&self, f: FuncIdx) -> Option<StatementIdx> {
        let insts = self.input.lifted.function(f).insts.clone();
        insts
            .rev()
            .find_map(|i| self.input.tie.statement(InstIdx(i)))
    }

    /// Past what belongs to an instruction although it stands behind it: ends of
    /// alternatives, whose length is the distance between numeric labels, and
    /// tables that are pushed.
    fn behind_fragments(&self, last: StatementIdx) -> StatementIdx {
        let (text, statements) = (self.input.text, self.input.statements);
        let mut depth = 0;
        let mut end = last;
        for k in last.0 + 1..statements.len() as u32 {
            let statement = &statements[k as usize];
            let name = statement.name(text);
            match (statement.kind, name) {
                (Kind::Directive, b".pushsection") => depth += 1,
                (Kind::Directive, b".popsection") if depth > 0 => depth -= 1,
                _ if depth > 0 => continue,
                (Kind::Label, _) if name[0].is_ascii_digit() => {}
                (Kind::Directive, b".skip" | b".org" | b".byte" | b".long") => {}
                _ => break,
            }
            if depth == 0 {
                end = StatementIdx(k);
            }
        }
        end
    }

    fn statement(&mut self, k: StatementIdx) {
        let statement = self.input.statements[k.0 as usize];
        match statement.kind {
            Kind::Directive => self.directive(k, &statement),
            Kind::Instruction => self.instruction(k, &statement),
            Kind::Label | Kind::Assignment | Kind::Prefix | Kind::Opaque => {}
        }
        if let Some(f) = self.parts_after.get(&k.0).copied() {
            self.parts(f, k);
        }
    }

    fn directive(&mut self, k: StatementIdx, statement: &Statement) {
        let text = self.input.text;
        let name = statement.name(text);
        if name.starts_with(b".cfi_") {
            let (name, rest) = (utf8(name), utf8(statement.rest(text)));
            if let Err(reason) = self.cfi.directive(&name, &rest) {
                let reason = reason.to_owned();
                self.obstacles.push(Obstacle {
                    at: k,
                    code: Code::Statement,
                    reason,
                });
            }
        } else if name == b".loc" {
            self.loc = Some(k);
        } else if name == b".intel_syntax" {
            self.intel = true;
        } else if name == b".att_syntax" {
            self.intel = false;
        }
    }

    fn instruction(&mut self, k: StatementIdx, statement: &Statement) {
        let input = self.input;
        let Some(i) = input.tie.inst(k) else {
            return;
        };
        if let Some(&(f, n)) = self.sites.get(&i.0) {
            if self.intel {
                let reason = "sequences are in AT&T syntax, and this is not".to_owned();
                self.obstacles.push(Obstacle {
                    at: k,
                    code: Code::Statement,
                    reason,
                });
            }
            let site = &input.code.functions[f as usize].sites[n as usize];
            self.site(k, statement, site);
        } else if is_short_only(statement.name(input.text)) {
            self.short_only(statement);
        }
    }

    /// The first statement of an instruction: its prefixes may be statements.
    fn first_of(&self, k: StatementIdx) -> StatementIdx {
        let mut first = k.0;
        while first > 0 && self.input.statements[first as usize - 1].kind == Kind::Prefix {
            first -= 1;
        }
        StatementIdx(first)
    }

    fn copy_to(&mut self, end: usize) {
        self.out
            .extend_from_slice(&self.input.text[self.copied..end]);
        self.copied = end;
    }

    /// Ends the line that was begun, unless nothing is in it.
    fn fresh_line(&mut self) {
        let blank = |b: &u8| matches!(b, b' ' | b'\t');
        while self.out.last().is_some_and(blank) {
            self.out.pop();
        }
        if self.out.last().is_some_and(|b| *b != b'\n') {
            self.out.push(b'\n');
        }
    }

    fn site(&mut self, k: StatementIdx, statement: &Statement, site: &Site) {
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
        self.comment(start..statement.end as usize);
        let label = label.map(|l| self.input.statements[l.0 as usize].name(self.input.text));
        self.sequence(statement, site, label);
        self.copied = statement.end as usize;
        // The line that follows the sequence is the rest of the original's.
        self.out.pop();
    }

    /// `# twin: ` and the original.
    fn comment(&mut self, original: std::ops::Range<usize>) {
        self.out.extend_from_slice(b"\t# twin: ");
        let mut blank = false;
        for &byte in &self.input.text[original] {
            let space = matches!(byte, b' ' | b'\t' | b'\n');
            if !(space && blank) {
                self.out.push(if space { b' ' } else { byte });
            }
            blank = space;
        }
        self.out.push(b'\n');
    }

    /// The numeric label before an access with a `lock` prefix names the prefix
    /// (`.smp_locks`) and goes with it, unless something jumps there.
    fn lock_label(&self, first: StatementIdx, site: &Site) -> Option<StatementIdx> {
        let k = StatementIdx(first.0.checked_sub(1)?);
        let statement = &self.input.statements[k.0 as usize];
        let locked = self.input.lifted.inst(site.inst).iced.has_lock_prefix();
        let numeric =
            statement.kind == Kind::Label && statement.name(self.input.text)[0].is_ascii_digit();
        (locked && numeric && !self.targets.contains(&site.inst.0)).then_some(k)
    }

    /// One site's code in line.
    fn sequence(&mut self, statement: &Statement, site: &Site, lock_label: Option<&[u8]>) {
        let assembler = &self.input.code.assemblers[usize::from(site.section)];
        let mut walk = Walk {
            assembler,
            labels: self.labels_in(site),
            statement: *statement,
            pending: 0,
            pushed: 0,
            counts: self.cfi.state().is_some_and(State::counts_pushes),
            lock_label: lock_label.map(<[u8]>::to_vec),
        };
        for piece in assembler.pieces(site.from, site.to) {
            match piece {
                Piece::Code(at, bytes) => self.code(&mut walk, at, bytes),
                Piece::Branch(at, jump, to) => {
                    self.labels_at(&mut walk, at);
                    self.settle(&mut walk);
                    let cfi = self.cfi.state().map(|s| s.pushed(walk.pushed));
                    let loc = self.loc;
                    self.at.insert(to.0, At { cfi, loc });
                    self.branch(jump, to);
                }
                Piece::Align(_) => {}
            }
        }
        self.labels_at(&mut walk, site.to);
        // What the original did to rsp, its own directives say.
        walk.pending -= walk.pushed + walk.pending;
        walk.pushed = -walk.pending;
        self.settle(&mut walk);
    }

    fn labels_in(&self, site: &Site) -> Vec<(Position, Label)> {
        let placed = |l: u32| {
            let (_, at) = self.input.code.labels.find(Label(l))?;
            // An out-of-line part may begin where the last site ends.
            (!self.apart.contains(&l) && at >= site.from && at <= site.to).then_some((at, Label(l)))
        };
        let mut labels: Vec<_> = site.labels.clone().filter_map(placed).collect();
        labels.sort();
        labels.reverse();
        labels
    }

    fn labels_at(&mut self, walk: &mut Walk<'_>, at: Position) {
        while walk.labels.last().is_some_and(|(place, _)| *place <= at) {
            let (_, label) = walk.labels.pop().expect("it is there");
            self.define(label);
        }
    }

    fn code(&mut self, walk: &mut Walk<'_>, start: Position, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let at = start.plus(done);
            self.labels_at(walk, at);
            self.settle(walk);
            done += self.one(walk, at, &bytes[done..]);
        }
    }

    /// One emitted instruction; gives its length.
    fn one(&mut self, walk: &mut Walk<'_>, at: Position, code: &[u8]) -> usize {
        let referent = |field: usize| walk.assembler.referent(at.offset() + field as u32);
        let known = self.texts.first(code, |field| referent(field).is_some());
        let operands = walk.statement.rest(self.input.text);
        let name = |field: Option<usize>, original: Option<&[u8]>| match field.and_then(referent) {
            Some(Referent::Import(import, addend)) => runtime_name(import, addend)
                .or_else(|| original.map(<[u8]>::to_vec))
                .unwrap_or_default(),
            Some(Referent::Label(_)) => original.map(<[u8]>::to_vec).unwrap_or_default(),
            None => Vec::new(),
        };
        let displacement = name(known.displacement_at, operand::displacement(operands));
        let immediate = name(known.immediate_at, operand::immediate(operands));
        if known.locked
            && let Some(label) = walk.lock_label.take()
        {
            self.out.extend_from_slice(&label);
            self.out.extend_from_slice(b":\n");
        }
        self.out.push(b'\t');
        known.write(&displacement, &immediate, &mut self.out);
        self.out.push(b'\n');
        walk.pending += known.pushes;
        known.len
    }

    /// Says what the last instruction did to the frame address.
    fn settle(&mut self, walk: &mut Walk<'_>) {
        let bytes = std::mem::take(&mut walk.pending);
        walk.pushed += bytes;
        if bytes != 0 && walk.counts {
            self.line(&format!("\t.cfi_adjust_cfa_offset {bytes}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.out.extend_from_slice(line.as_bytes());
        self.out.push(b'\n');
    }

    fn label_name(&self, label: Label) -> String {
        format!(".Ltwin{}", label.0 - self.input.lifted.insts.len() as u32)
    }

    fn define(&mut self, label: Label) {
        let name = self.label_name(label);
        self.line(&format!("{name}:"));
    }

    fn branch(&mut self, jump: Jump, to: Label) {
        const CONDITIONS: [&str; 16] = [
            "jo", "jno", "jb", "jae", "je", "jne", "jbe", "ja", "js", "jns", "jp", "jnp", "jl",
            "jge", "jle", "jg",
        ];
        let mnemonic = match jump {
            Jump::Always => "jmp",
            Jump::If(cc) => CONDITIONS[usize::from(cc & 15)],
            Jump::Call => "call",
            Jump::ShortOnly(_) => "jrcxz",
        };
        let name = self.label_name(to);
        self.line(&format!("\t{mnemonic}\t{name}"));
    }

    /// `jrcxz` and `loop` have no long form, and what they jumped over grew:
    ///
    /// ```text
    ///     jrcxz 1f ; jmp 2f ; 1: jmp target ; 2:
    /// ```
    fn short_only(&mut self, statement: &Statement) {
        let text = self.input.text;
        self.copy_to(statement.start as usize);
        self.fresh_line();
        self.comment(statement.start as usize..statement.end as usize);
        let (name, target) = (utf8(statement.name(text)), utf8(statement.rest(text)));
        let n = statement.start;
        let lines = [
            format!("\t{name}\t.Ltwin_taken{n}"),
            format!("\tjmp\t.Ltwin_on{n}"),
            format!(".Ltwin_taken{n}:"),
            format!("\tjmp\t{target}"),
            format!(".Ltwin_on{n}:"),
        ];
        for line in lines {
            self.line(&line);
        }
        self.copied = statement.end as usize;
        self.out.pop();
    }

    /// The out-of-line parts of a function, behind statement `k`.
    fn parts(&mut self, f: FuncIdx, k: StatementIdx) {
        let input = self.input;
        let end = input.statements[k.0 as usize].end as usize;
        self.copy_to(end);
        self.copy_comment();
        self.fresh_line();
        let emitted = &input.code.functions[f.0 as usize];
        let over = emitted.falls_through.then(|| format!(".Ltwin_over{}", f.0));
        if let Some(over) = &over {
            self.line(&format!("\tjmp\t{over}"));
        }
        let here = self.cfi.state().cloned();
        if here.is_some() {
            self.line("\t.cfi_remember_state");
        }
        let mut state = here.clone();
        let mut loc = self.loc;
        for (n, part) in emitted.parts.iter().enumerate() {
            let to = emitted
                .parts
                .get(n + 1)
                .map_or(emitted.parts_end, |p| p.from);
            self.part(part, to, &mut state, &mut loc, emitted);
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

    fn part(
        &mut self,
        part: &crate::sites::Part,
        to: Position,
        state: &mut Option<State>,
        loc: &mut Option<StatementIdx>,
        emitted: &crate::sites::FunctionCode,
    ) {
        let input = self.input;
        let Some(k) = input.tie.statement(part.inst) else {
            return;
        };
        let at = self.at.get(&part.label.0).cloned();
        if let Some(at) = at {
            if let (Some(from), Some(target)) = (&*state, &at.cfi) {
                let mut text = String::new();
                from.lead_to(target, &mut text);
                self.out.extend_from_slice(text.as_bytes());
                *state = at.cfi;
            }
            if at.loc != *loc {
                self.repeat_loc(at.loc);
                *loc = at.loc;
            }
        }
        self.define(part.label);
        let statement = input.statements[k.0 as usize];
        let mut walk = Walk {
            assembler: &input.code.assemblers[usize::from(emitted.section)],
            labels: Vec::new(),
            statement,
            pending: 0,
            pushed: 0,
            counts: state.as_ref().is_some_and(State::counts_pushes),
            lock_label: None,
        };
        for piece in walk.assembler.pieces(part.from, to) {
            match piece {
                Piece::Code(at, bytes) => self.code(&mut walk, at, bytes),
                Piece::Branch(_, jump, to) => {
                    self.settle(&mut walk);
                    self.branch(jump, to);
                }
                Piece::Align(_) => {}
            }
        }
    }

    /// A `.loc` again, without the view that it names.
    fn repeat_loc(&mut self, loc: Option<StatementIdx>) {
        let Some(k) = loc else {
            return;
        };
        let text = self.input.statements[k.0 as usize].text(self.input.text);
        let text = utf8(text);
        let text = text.split(" view ").next().unwrap_or_default().to_owned();
        self.line(&format!("\t{text}"));
    }
}

/// The way through one sequence.
struct Walk<'w> {
    assembler: &'w Assembler,
    /// Labels still to come, the next one last.
    labels: Vec<(Position, Label)>,
    /// The original.
    statement: Statement,
    /// What the last instruction pushed, not yet said.
    pending: i64,
    /// What was pushed before.
    pushed: i64,
    /// The frame address is relative to `rsp`.
    counts: bool,
    lock_label: Option<Vec<u8>>,
}

fn utf8(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn is_short_only(name: &[u8]) -> bool {
    matches!(name, b"jrcxz" | b"jecxz") || name.starts_with(b"loop")
}

/// How code names what the runtime provides; `None` for what is the original's.
fn runtime_name(import: Import, addend: i64) -> Option<Vec<u8>> {
    let name = match import {
        Import::Stlb => twin_abi::names::STLB.to_owned(),
        Import::Slow(reg) => format!(
            "{}{}",
            twin_abi::names::SLOW_PREFIX,
            REGISTER_NAMES[usize::from(reg.number())]
        ),
        Import::Runtime(name) => name.to_owned(),
        _ => return None,
    };
    let name = match addend {
        0 => name,
        _ => format!("{name}{addend:+}"),
    };
    Some(name.into_bytes())
}
