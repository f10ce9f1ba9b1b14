//! Writes the text again, with sequences in place of the lines that they replace. All
//! other lines are copied byte for byte.
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
//! [`sequence`] prints the code in line, [`parts`] the out-of-line parts after a
//! function, [`names`] the names that the printer needs.

mod names;
mod parts;
mod sequence;

use foldhash::HashSet;

use super::cfi::{Here, Tracker};
use super::format::Texts;
use super::marks::StatementIdx;
use super::moved::Expressions;
use super::sections::Sections;
use super::statement::{Statement, StatementKind};
use super::tables::Words;
use super::tie::Tie;
use crate::analyse::Analysis;
use crate::asm::{Label, Position};
use crate::encode::sites::{SiteCode, SiteSequence};
use crate::lift::{FuncIdx, InstIdx, Lifted};
use crate::refusal::RefusalCode;

/// A line that cannot be printed, and why.
#[derive(Debug)]
pub struct Obstacle {
    /// The statement that cannot be printed.
    pub at: StatementIdx,
    /// The code of the refusal that it becomes.
    pub code: RefusalCode,
    /// Why it cannot be printed.
    pub reason: String,
}

/// What the printer works from.
pub struct Input<'p, 'a> {
    /// The original text.
    pub text: &'p [u8],
    /// The statements that the text consists of.
    pub statements: &'p [Statement],
    /// Which instruction each statement was assembled to.
    pub tie: &'p Tie,
    /// The instructions of the object that the text was assembled to.
    pub lifted: &'p Lifted<'a>,
    /// What is known of them.
    pub analysis: &'p Analysis<'a>,
    /// What was emitted.
    pub code: &'p SiteCode,
    /// Instructions that sequences name: the cases of switches.
    pub named: &'p HashSet<u32>,
    /// The words of jump tables.
    pub words: &'p Words,
}

/// The rewritten text.
///
/// # Errors
/// Every line that cannot be printed.
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

/// The state of directives where a check branches out of line.
#[derive(Clone, Debug)]
struct At<'p> {
    cfi: Option<Here<'p>>,
    loc: Loc,
}

/// The state from `.loc` (as.info, ".loc").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Loc {
    /// The last one.
    at: Option<StatementIdx>,
    /// Whether debuggers should stop there: the last `is_stmt`, which holds for the
    /// lines after its own as well.
    is_stmt: bool,
}

impl Loc {
    /// At the beginning of a text.
    const START: Loc = Loc {
        at: None,
        is_stmt: true,
    };

    /// After one more.
    fn then(self, at: StatementIdx, rest: &[u8]) -> Loc {
        Loc {
            at: Some(at),
            is_stmt: said_is_stmt(rest).unwrap_or(self.is_stmt),
        }
    }
}

/// What a `.loc` says itself of `is_stmt`.
fn said_is_stmt(rest: &[u8]) -> Option<bool> {
    const NAME: &[u8] = b" is_stmt ";
    let at = rest.windows(NAME.len()).position(|w| w == NAME)?;
    rest.get(at + NAME.len()).map(|digit| *digit != b'0')
}

/// An estimate of the size of the rewritten text: the original, and the lines of
/// sequences, of some twenty bytes for an instruction of about four.
fn room_for(input: &Input<'_, '_>) -> usize {
    let emitted = input.code.assemblers.iter().map(|a| a.here().offset());
    input.text.len() + 5 * emitted.sum::<u32>() as usize
}

struct Printer<'p, 'a> {
    input: &'p Input<'p, 'a>,
    out: Vec<u8>,
    copied: usize,
    texts: Texts,
    cfi: Tracker<'p>,
    sections: Sections<'p>,
    loc: Loc,
    intel: bool,
    /// Functions whose out-of-line parts follow a statement, the next one last.
    parts_after: Vec<(StatementIdx, FuncIdx)>,
    /// Site of each instruction.
    sites: Vec<Option<&'p SiteSequence>>,
    /// The state of directives at each branch out of line, by the number of its label.
    at: Vec<Option<At<'p>>>,
    /// Whether a label is that of an out-of-line part, by number.
    apart: Vec<bool>,
    /// Calls that do not return.
    closed: HashSet<u32>,
    /// Room for the labels of a sequence.
    labels: Vec<(Position, Label)>,
    /// By section, how many references of fields come before the code printed next.
    references: Vec<usize>,
    /// Labels of `lock` prefixes that no branch goes to; computed when first needed.
    locks: Option<HashSet<&'p [u8]>>,
    /// Instructions that direct branches lead to; computed when first needed.
    reached: Option<HashSet<InstIdx>>,
    expressions: Expressions<'p>,
    obstacles: Vec<Obstacle>,
}

impl<'p, 'a> Printer<'p, 'a> {
    fn new(input: &'p Input<'p, 'a>) -> Printer<'p, 'a> {
        let made = (input.code.labels.count() as usize).saturating_sub(input.lifted.insts.len());
        let mut printer = Printer {
            input,
            out: Vec::with_capacity(room_for(input)),
            copied: 0,
            texts: Texts::new(),
            cfi: Tracker::default(),
            sections: Sections::default(),
            loc: Loc::START,
            intel: false,
            parts_after: Vec::new(),
            sites: vec![None; input.lifted.insts.len()],
            at: vec![None; made],
            apart: vec![false; made],
            closed: input.code.closed.iter().map(|i| i.0).collect(),
            labels: Vec::new(),
            references: vec![0; input.code.assemblers.len()],
            locks: None,
            reached: None,
            expressions: Expressions::of(input.text, input.statements),
            obstacles: Vec::new(),
        };
        printer.cfi.enter(printer.sections.spot());
        for f in 0..input.code.functions.len() as u32 {
            printer.place_sites(FuncIdx(f));
            printer.place_parts(FuncIdx(f));
        }
        for i in input.named.iter().map(|i| InstIdx(*i)) {
            if input.tie.statement(i).is_none() {
                let at = input.tie.near(i).unwrap_or(StatementIdx(0));
                printer.obstacle(
                    at,
                    "a jump table goes to one of these lines, and it cannot be told which",
                );
            }
        }
        printer.parts_after.sort_by_key(|(k, f)| (k.0, f.0));
        printer.parts_after.reverse();
        printer
    }

    fn place_sites(&mut self, f: FuncIdx) {
        for site in &self.input.code.functions[f.0 as usize].sites {
            self.sites[site.inst.0 as usize] = Some(site);
            let Some(at) = self.input.tie.statement(site.inst) else {
                let at = self.input.tie.near(site.inst).unwrap_or(StatementIdx(0));
                self.obstacle(
                    at,
                    "these lines do not become one instruction each, so it cannot be told \
                     which of them to change",
                );
                continue;
            };
            if self.input.tie.may_be_data(site.inst) {
                self.obstacle(
                    at,
                    "these numbers look like an instruction, and may be data; put constants \
                     into .rodata, or name a function (.type, .globl)",
                );
            }
            let inst = self.input.lifted.inst(site.inst);
            if let Some(reason) = self.expressions.obstacle(at, inst) {
                self.obstacle(at, reason);
            }
        }
    }

    fn obstacle(&mut self, at: StatementIdx, reason: &str) {
        self.obstacles.push(Obstacle {
            at,
            code: RefusalCode::Statement,
            reason: reason.to_owned(),
        });
    }

    fn statement(&mut self, k: StatementIdx) {
        let statement = self.input.statements[k.0 as usize];
        match statement.kind {
            StatementKind::Directive if self.input.tie.inst(k).is_none() => {
                self.directive(k, &statement)
            }
            StatementKind::Instruction | StatementKind::Directive => {
                self.instruction(k, &statement)
            }
            StatementKind::Label
            | StatementKind::Assignment
            | StatementKind::Prefix
            | StatementKind::Opaque
            | StatementKind::Definition => {}
        }
        while let Some((_, f)) = self.parts_after.pop_if(|(after, _)| *after == k) {
            self.behind(f, k);
        }
    }

    fn directive(&mut self, k: StatementIdx, statement: &Statement) {
        let text = self.input.text;
        let name = statement.name(text);
        if let Some(numbers) = self.input.words.get(&k.0) {
            self.words(statement, numbers);
        } else if name.starts_with(b".cfi_") {
            if let Err(reason) = self.cfi.directive(name, statement.rest(text)) {
                self.obstacle(k, reason);
            }
        } else if name == b".end" {
            // The last statement; the runtime follows it.
            self.copy_to(statement.start as usize);
            self.out.extend_from_slice(b"# twin: ");
        } else if name == b".loc" {
            self.loc = self.loc.then(k, statement.rest(text));
        } else if name == b".intel_syntax" {
            self.intel = true;
        } else if name == b".att_syntax" {
            self.intel = false;
        } else {
            self.sections.directive(name, statement.rest(text));
            self.cfi.enter(self.sections.spot());
        }
    }

    fn instruction(&mut self, k: StatementIdx, statement: &Statement) {
        let Some(i) = self.input.tie.inst(k) else {
            return;
        };
        if self.input.named.contains(&i.0) {
            self.name(k, i);
        }
        if let Some(site) = self.sites[i.0 as usize] {
            if self.intel {
                self.obstacle(k, "sequences are in AT&T syntax, and this is not");
            }
            self.site(k, statement, site);
        } else if names::is_short_only(statement.name(self.input.text)) {
            self.short_only(statement);
        } else if self.closed.contains(&i.0) {
            // objtool does not treat `int3` as code that should be reached.
            self.copy_to(statement.end as usize);
            self.line("\n\tint3\t# twin: does not return");
            self.out.pop();
        }
    }

    /// A line of a jump table, with the numbers of its cases.
    fn words(&mut self, statement: &Statement, numbers: &[u32]) {
        self.copy_to(statement.start as usize);
        self.fresh_line();
        self.comment(statement.start as usize..statement.end as usize);
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        self.line(&format!("\t.quad\t{}", numbers.join(", ")));
        self.copied = statement.end as usize;
        // The line that follows is the rest of the original's.
        self.out.pop();
    }

    /// A label before an instruction, its prefixes included.
    fn name(&mut self, k: StatementIdx, i: InstIdx) {
        let start = self.input.statements[self.first_of(k).0 as usize].start as usize;
        if start < self.copied {
            return self.obstacle(k, "a jump table goes there, and a label cannot be printed");
        }
        self.copy_to(start);
        names::case(i, &mut self.out);
        self.out.extend_from_slice(b": ");
    }

    fn copy_to(&mut self, end: usize) {
        self.out
            .extend_from_slice(&self.input.text[self.copied..end]);
        self.copied = end;
    }

    /// Ends the current line unless it is empty.
    fn fresh_line(&mut self) {
        let blank = |b: &u8| matches!(b, b' ' | b'\t');
        while self.out.last().is_some_and(blank) {
            self.out.pop();
        }
        if self.out.last().is_some_and(|b| *b != b'\n') {
            self.out.push(b'\n');
        }
    }

    fn line(&mut self, line: &str) {
        self.out.extend_from_slice(line.as_bytes());
        self.out.push(b'\n');
    }

    /// `# twin: ` and the original, its blanks as single spaces.
    fn comment(&mut self, original: std::ops::Range<usize>) {
        self.out.extend_from_slice(b"\t# twin: ");
        let start = self.out.len();
        self.out.extend_from_slice(&self.input.text[original]);
        // Byte by byte and without branches: there are many lines, and they are short.
        let (mut blank, mut twice) = (false, false);
        for byte in &mut self.out[start..] {
            let space = matches!(*byte, b' ' | b'\t' | b'\n');
            *byte = if space { b' ' } else { *byte };
            twice |= space & blank;
            blank = space;
        }
        if twice {
            self.single_spaces(start);
        }
        self.out.push(b'\n');
    }

    /// Leaves one of several spaces in a row, from `start` on.
    #[cold]
    fn single_spaces(&mut self, start: usize) {
        let mut end = start;
        for at in start..self.out.len() {
            let byte = self.out[at];
            if byte != b' ' || end == start || self.out[end - 1] != b' ' {
                self.out[end] = byte;
                end += 1;
            }
        }
        self.out.truncate(end);
    }

    /// `jrcxz` and `loop` have no long form, and the code that they jump over grew:
    ///
    /// ```text
    ///     jrcxz 1f ; jmp 2f ; 1: jmp target ; 2:
    /// ```
    fn short_only(&mut self, statement: &Statement) {
        let text = self.input.text;
        self.copy_to(statement.start as usize);
        self.fresh_line();
        self.comment(statement.start as usize..statement.end as usize);
        let name = String::from_utf8_lossy(statement.name(text));
        let target = String::from_utf8_lossy(statement.rest(text));
        let n = statement.start;
        let target = match &*target {
            // Itself.
            "." => {
                self.line(&format!(".Ltwin_self{n}:"));
                format!(".Ltwin_self{n}").into()
            }
            _ => target,
        };
        self.line(&format!("\t{name}\t.Ltwin_taken{n}"));
        self.line(&format!("\tjmp\t.Ltwin_on{n}"));
        self.line(&format!(".Ltwin_taken{n}:"));
        self.line(&format!("\tjmp\t{target}"));
        self.line(&format!(".Ltwin_on{n}:"));
        self.copied = statement.end as usize;
        self.out.pop();
    }
}
