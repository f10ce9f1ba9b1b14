//! Ties statements to the instructions that the assembler made of them.
//!
//! A copy of the text gets labels, `.twin.N:`, at the start and the end of each
//! *run*: adjacent instructions with nothing between them that makes bytes or could be
//! jumped to. Labels neither move nor lengthen anything. After assembly, the symbols of
//! the labels give the place of each run, and decoding gives its number of instructions.
//! If this is the number of the run's statements, they correspond in order. If not (a
//! macro, a statement that makes two instructions), the run stays untied, and a change
//! of one of its instructions is refused.
//!
//! A label at the start of each branch of `.if` shows whether the branch was assembled.
//! One that was not is text without a meaning.

use elf_loader::{Object, Place, SectionId};
use foldhash::{HashMap, HashSet};
use iced_x86::{Decoder, DecoderOptions};

use super::number::{digits, push_number};
use super::statement::{Statement, StatementKind};
use crate::lift::{CodeIdx, InstIdx, Lifted};

/// Index of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementIdx(pub u32);

/// No C identifier and no compiler's label begins with this.
const PREFIX: &str = ".twin.";

/// Instructions in a row.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Statements, directives that make nothing among them.
    first: u32,
    end: u32,
    /// How many of them are instructions, their prefixes not counted.
    made: u32,
    /// Numbers of the labels at its start and end.
    from: u32,
    to: u32,
}

/// The runs of a text.
#[derive(Debug)]
pub struct Marks {
    runs: Vec<Run>,
    branches: Vec<Branch>,
    /// Statements of no run that may make code.
    others: Vec<u32>,
    count: u32,
}

/// What is assembled if a condition holds: statements of one branch of `.if`.
#[derive(Clone, Copy, Debug)]
struct Branch {
    first: u32,
    end: u32,
    /// Number of the label at its start.
    mark: u32,
}

impl Marks {
    /// The statements that were assembled: those of other branches are comments.
    pub fn assembled(&self, statements: &[Statement], object: &Object<'_>) -> Vec<Statement> {
        let mut statements = statements.to_vec();
        if self.branches.is_empty() {
            return statements;
        }
        let numbers = object
            .symbols()
            .filter_map(|(_, symbol)| number(&symbol.name));
        let found: HashSet<u32> = numbers.collect();
        for branch in self.branches.iter().filter(|b| !found.contains(&b.mark)) {
            for statement in &mut statements[branch.first as usize..branch.end as usize] {
                statement.kind = StatementKind::Definition;
            }
        }
        statements
    }
}

/// The number of a label.
fn number(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

/// The text with labels, and the runs that they delimit.
pub fn mark(text: &[u8], statements: &[Statement]) -> (Vec<u8>, Marks) {
    let mut marker = Marker {
        text,
        // `as` does not preprocess a file that begins with `#NO_APP`: it would not
        // remove comments after labels. After an empty line, `#NO_APP` is a comment.
        out: Vec::with_capacity(text.len() + text.len() / 4),
        copied: 0,
        marks: Marks {
            runs: Vec::with_capacity(statements.len() / 8),
            branches: Vec::new(),
            others: Vec::new(),
            count: 0,
        },
        state: State::Outside,
        open: Vec::new(),
    };
    marker.out.push(b'\n');
    for (k, statement) in statements.iter().enumerate() {
        marker.statement(k as u32, statement);
    }
    marker.finish()
}

/// Where the marker is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// In no run.
    Outside,
    /// In the last run.
    Inside,
    /// After the last run and labels; its end has no mark yet.
    Behind,
}

struct Marker<'t> {
    text: &'t [u8],
    out: Vec<u8>,
    copied: usize,
    marks: Marks,
    state: State,
    /// Branches of `.if` that have not ended, by number.
    open: Vec<usize>,
}

impl Marker<'_> {
    fn statement(&mut self, k: u32, statement: &Statement) {
        match statement.kind {
            StatementKind::Instruction | StatementKind::Prefix => self.instruction(k, statement),
            StatementKind::Label if self.state == State::Inside => self.state = State::Behind,
            StatementKind::Label => {}
            StatementKind::Directive if makes_nothing(statement.name(self.text)) => {}
            StatementKind::Directive => match Conditional::of(statement.name(self.text)) {
                Some(conditional) => {
                    self.leave_run(statement, true);
                    self.conditional(k, statement, conditional);
                }
                None => {
                    self.leave_run(statement, false);
                    if makes_bytes(statement.name(self.text)) {
                        self.marks.others.push(k);
                    }
                }
            },
            StatementKind::Opaque => {
                self.leave_run(statement, false);
                self.marks.others.push(k);
            }
            StatementKind::Assignment | StatementKind::Definition => {
                self.leave_run(statement, false)
            }
        }
    }

    /// Ends the run before a statement. In a branch that is not assembled, `as` looks for
    /// `.endif` at the start of a line, where then no label may be: `alone` gives it a line
    /// of its own.
    fn leave_run(&mut self, statement: &Statement, alone: bool) {
        if self.state != State::Outside {
            let mark = self.label(statement.start as usize);
            self.end_run(mark);
            if alone {
                self.out.push(b'\n');
            }
            self.state = State::Outside;
        }
    }

    fn conditional(&mut self, k: u32, statement: &Statement, conditional: Conditional) {
        if conditional != Conditional::If
            && let Some(ended) = self.open.pop()
        {
            self.marks.branches[ended].end = k;
        }
        if conditional != Conditional::End {
            self.out
                .extend_from_slice(&self.text[self.copied..statement.end as usize]);
            self.copied = statement.end as usize;
            self.out.push(b'\n');
            let mark = self.label(statement.end as usize);
            self.out.push(b'\n');
            self.open.push(self.marks.branches.len());
            let first = k + 1;
            self.marks.branches.push(Branch {
                first,
                end: first,
                mark,
            });
        }
    }

    fn instruction(&mut self, k: u32, statement: &Statement) {
        let made = u32::from(statement.kind == StatementKind::Instruction);
        if self.state == State::Inside {
            let run = self.marks.runs.last_mut().expect("the run it is in");
            run.end = k + 1;
            run.made += made;
            return;
        }
        let mark = self.label(statement.start as usize);
        if self.state == State::Behind {
            self.end_run(mark);
        }
        self.marks.runs.push(Run {
            first: k,
            end: k + 1,
            made,
            from: mark,
            to: mark,
        });
        self.state = State::Inside;
    }

    fn end_run(&mut self, mark: u32) {
        self.marks.runs.last_mut().expect("the run it is behind").to = mark;
    }

    fn label(&mut self, at: usize) -> u32 {
        let mark = self.marks.count;
        self.marks.count += 1;
        self.out.extend_from_slice(&self.text[self.copied..at]);
        self.copied = at;
        self.out.extend_from_slice(PREFIX.as_bytes());
        push_number(&mut self.out, mark);
        self.out.push(b':');
        mark
    }

    fn finish(mut self) -> (Vec<u8>, Marks) {
        if self.state != State::Outside {
            let mark = self.label(self.text.len());
            self.end_run(mark);
            // The last line may lack its end.
            let label = self.out.len() - PREFIX.len() - digits(mark) - 1;
            self.out.insert(label, b'\n');
        }
        self.out.extend_from_slice(&self.text[self.copied..]);
        self.out.push(b'\n');
        (self.out, self.marks)
    }
}

/// A directive of conditional assembly (as.info, ".if").
#[derive(Clone, Copy, PartialEq, Eq)]
enum Conditional {
    /// `.if` and its variants.
    If,
    /// `.else`, `.elseif`.
    Else,
    /// `.endif`.
    End,
}

impl Conditional {
    fn of(name: &[u8]) -> Option<Conditional> {
        match name {
            b".endif" | b".endc" => Some(Conditional::End),
            b".else" | b".elseif" | b".elsec" => Some(Conditional::Else),
            _ if name.starts_with(b".if") => Some(Conditional::If),
            _ => None,
        }
    }
}

/// Directives between two instructions that leave them adjacent and define no place to
/// jump to.
fn makes_nothing(name: &[u8]) -> bool {
    name == b".loc" || name.starts_with(b".cfi_")
}

/// Directives that make bytes, which may be instructions.
fn makes_bytes(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 19] = [
        b".byte", b".2byte", b".4byte", b".8byte", b".value", b".short", b".hword", b".word",
        b".int", b".long", b".quad", b".octa", b".ascii", b".asciz", b".string", b".fill",
        b".insn", b".incbin", b".nops",
    ];
    NAMES.contains(&name)
}

/// Which statement made which instruction.
#[derive(Debug)]
pub struct Tie {
    /// By instruction.
    statement_of: Vec<u32>,
    /// By statement.
    inst_of: Vec<u32>,
    /// Instructions of runs that could not be tied, with the run's statements.
    untied: Vec<(std::ops::Range<u32>, std::ops::Range<u32>)>,
    /// Statements of no run that may make code, in order.
    others: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Tie {
    /// The statement that made an instruction. Of an instruction whose prefixes
    /// are statements, the last one.
    pub fn statement(&self, i: InstIdx) -> Option<StatementIdx> {
        let k = self.statement_of[i.0 as usize];
        (k != NONE).then_some(StatementIdx(k))
    }

    /// The instruction that a statement made.
    pub fn inst(&self, k: StatementIdx) -> Option<InstIdx> {
        let i = self.inst_of[k.0 as usize];
        (i != NONE).then_some(InstIdx(i))
    }

    /// The statement that made an instruction, or one near it, for messages. What no run
    /// has is of the first macro or data after the last instruction that one has.
    pub fn near(&self, i: InstIdx) -> Option<StatementIdx> {
        let run = || {
            let (_, run) = self.untied.iter().find(|(insts, _)| insts.contains(&i.0))?;
            Some(StatementIdx(run.start))
        };
        let between = || {
            let before = (0..i.0).rev().find_map(|i| self.statement(InstIdx(i)));
            let first = before.map_or(0, |k| k.0 + 1);
            let next = self.others.partition_point(|k| *k < first);
            self.others.get(next).copied().map(StatementIdx)
        };
        self.statement(i).or_else(run).or_else(between)
    }

    /// Ties the statements to the code of the assembled marked text.
    pub fn find(lifted: &Lifted<'_>, statements: &[Statement], marks: &Marks) -> Tie {
        let places = places(lifted.object, marks.count);
        let codes: HashMap<SectionId, CodeIdx> = lifted
            .sections
            .iter()
            .enumerate()
            .map(|(n, section)| (section.id, CodeIdx(n as u16)))
            .collect();
        let mut tie = Tie {
            statement_of: vec![NONE; lifted.insts.len()],
            inst_of: vec![NONE; statements.len()],
            untied: Vec::new(),
            others: marks.others.clone(),
        };
        for run in &marks.runs {
            // If a mark was not assembled, the text around it was not either.
            let ends = (places[run.from as usize], places[run.to as usize]);
            let (Some((id, from)), Some((_, to))) = ends else {
                continue;
            };
            if let Some(code) = codes.get(&id) {
                tie.run(lifted, statements, run, (*code, from, to));
            }
        }
        tie
    }

    fn run(
        &mut self,
        lifted: &Lifted<'_>,
        statements: &[Statement],
        run: &Run,
        (code, from, to): (CodeIdx, u64, u64),
    ) {
        let section = &lifted.sections[usize::from(code.0)].insts;
        let after = |offset: u64| {
            let insts = &lifted.insts[section.start as usize..section.end as usize];
            section.start + insts.partition_point(|inst| inst.offset() < offset) as u32
        };
        let first = lifted
            .inst_at(code, from)
            .map_or_else(|| after(from), |i| i.0);
        let end = lifted.inst_at(code, to).map_or_else(|| after(to), |i| i.0);
        let prefixed = self::prefixed(lifted, first.checked_sub(1), from);
        let first = first - u32::from(prefixed);
        let exact = (prefixed || lifted.inst_at(code, from).is_some())
            && run.made == end.saturating_sub(first);
        if !exact {
            self.untied.push((first..end, run.first..run.end));
            return;
        }
        let mut i = first;
        for k in run.first..run.end {
            if statements[k as usize].kind == StatementKind::Instruction {
                // A line cannot be replaced if its instruction begins before it.
                if prefixed && i == first {
                    self.untied.push((i..i + 1, k..k + 1));
                } else {
                    self.statement_of[i as usize] = k;
                    self.inst_of[k as usize] = i;
                }
                i += 1;
            }
        }
    }
}

/// Whether an instruction has prefixes from a directive, and the rest from a line at
/// `from`: `.value 0x6666; rex64; call __tls_get_addr@PLT`.
fn prefixed(lifted: &Lifted<'_>, i: Option<u32>, from: u64) -> bool {
    let Some(i) = i.map(InstIdx) else {
        return false;
    };
    let inst = lifted.inst(i);
    let Some(prefixes) = from.checked_sub(inst.offset()) else {
        return false;
    };
    let bytes = lifted.bytes(i);
    let (prefixes, rest) = bytes.split_at(bytes.len().min(prefixes as usize));
    let mut alone = Decoder::new(64, rest, DecoderOptions::NONE);
    !prefixes.is_empty()
        && prefixes
            .iter()
            .all(|b| matches!(b, 0x66 | 0x67 | 0xf2 | 0xf3 | 0x40..=0x4f))
        && !alone.decode().is_invalid()
        && alone.position() == rest.len()
}

/// Section and offset of each mark.
fn places(object: &Object<'_>, count: u32) -> Vec<Option<(SectionId, u64)>> {
    let mut places = vec![None; count as usize];
    for (_, symbol) in object.symbols() {
        let slot = number(&symbol.name).and_then(|n| places.get_mut(n as usize));
        if let (Some(slot), Place::In(section)) = (slot, symbol.place) {
            *slot = Some((section, symbol.value));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::super::statement::split;
    use super::*;

    #[test]
    fn runs_get_labels_at_both_ends() {
        let text =
            b"f:\n\tnop; ret\n\t.loc 1 2\n\tnop\n.L1:\n\tnop\n\t.p2align 4\n\tlock\n\tincl x";
        let (marked, marks) = mark(text, &split(text));
        let expected = "\nf:\n\t.twin.0:nop; ret\n\t.loc 1 2\n\tnop\n.L1:\n\t.twin.1:nop\n\
                        \t.twin.2:.p2align 4\n\t.twin.3:lock\n\tincl x\n.twin.4:\n";
        assert_eq!(String::from_utf8_lossy(&marked), expected);
        let runs: Vec<_> = marks.runs.iter().map(|r| (r.from, r.to)).collect();
        assert_eq!(runs, [(0, 1), (1, 2), (3, 4)]);
    }
}
