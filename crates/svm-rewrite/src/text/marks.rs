//! Marks in a copy of the text: labels that show where the assembler puts what.
//!
//! The copy gets labels, `.twin.N:`, at the start and the end of each
//! *run*: adjacent instructions with nothing between them that makes bytes or could be
//! jumped to. Labels neither move nor lengthen anything. A directive that makes bytes in
//! code is a run of its own; so are a use of a macro and a repetition.
//!
//! Each label of code has a mark at its address, for its own may be no symbol (`.L5`, `1`).
//! So has each symbol that is given the place where it stands, `x = .`.
//!
//! A label at the start of each branch of `.if` shows whether the branch was assembled.
//! One that was not is text without a meaning.

use elf_loader::{Object, Place, SectionId};
use foldhash::HashSet;
use iced_x86::{Decoder, DecoderOptions};

use super::directives::{Conditional, is_assignment, is_end, is_repetition, makes_bytes, switches};
use super::expression::names;
use super::number::{digits, push_number};
use super::sections::Sections;
use super::statement::{Statement, StatementKind};

/// Index of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StatementIdx(pub u32);

/// No C identifier and no compiler's label begins with this.
pub const PREFIX: &str = ".twin.";

/// What the statements of a run are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Instructions, and directives that make nothing. How many are instructions, their
    /// prefixes not counted.
    Instructions(u32),
    /// One directive that makes bytes.
    Bytes,
    /// A use of a macro, or a repetition with its body.
    Opaque,
}

/// Statements in a row.
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Its first statement.
    pub first: u32,
    /// One past the last one.
    pub end: u32,
    /// What they are.
    pub form: Form,
    /// Number of the label at its start.
    pub from: u32,
    /// Number of the label at its end.
    pub to: u32,
}

/// The runs of a text.
#[derive(Debug)]
pub struct Marks {
    /// In the order of their statements.
    pub runs: Vec<Run>,
    /// Statements of labels, each with the number of the mark at its address.
    pub labels: Vec<(u32, u32)>,
    /// Those between the prefix of an instruction and the rest, which may be several.
    pub inside: Vec<u32>,
    branches: Vec<Branch>,
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

    /// Section and offset of each mark, by its number.
    pub fn places(&self, object: &Object<'_>) -> Vec<Option<(SectionId, u64)>> {
        let mut places = vec![None; self.count as usize];
        for (_, symbol) in object.symbols() {
            let slot = number(&symbol.name).and_then(|n| places.get_mut(n as usize));
            if let (Some(slot), Place::In(section)) = (slot, symbol.place) {
                *slot = Some((section, symbol.value));
            }
        }
        places
    }

    /// The statement that became the instruction at an offset of a section's code, by the
    /// places of the marks: of its run, as many instructions on.
    pub fn statement_at(
        &self,
        statements: &[Statement],
        places: &[Option<(SectionId, u64)>],
        (section, code, offset): (SectionId, &[u8], u64),
    ) -> Option<StatementIdx> {
        let place = |mark: u32| match places[mark as usize] {
            Some((id, at)) if id == section => Some(at),
            _ => None,
        };
        let holds = |run: &&Run| {
            let ends = place(run.from).zip(place(run.to));
            ends.is_some_and(|(from, to)| (from..to).contains(&offset))
        };
        let Some(run) = self.runs.iter().find(holds) else {
            // No line made it, as the filling of an alignment: the one before it is named.
            let ends = self
                .runs
                .iter()
                .filter_map(|run| Some((place(run.to)?, run)));
            let before = ends.filter(|(end, _)| *end <= offset);
            let (_, run) = before.max_by_key(|(end, _)| *end)?;
            return Some(StatementIdx(run.end.saturating_sub(1)));
        };
        let from = place(run.from)?;
        let code = code.get(usize::try_from(from).ok()?..)?;
        let decoder = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
        let before = decoder.into_iter().take_while(|i| i.ip() < offset).count();
        let instruction = |k: &u32| statements[*k as usize].kind == StatementKind::Instruction;
        let nth = (run.first..run.end).filter(instruction).nth(before);
        Some(StatementIdx(nth.unwrap_or(run.first)))
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
            labels: Vec::new(),
            inside: Vec::new(),
            branches: Vec::new(),
            count: 0,
        },
        state: State::Outside,
        unplaced: Vec::new(),
        hidden: false,
        sections: Sections::default(),
        prefixed: false,
        repetitions: 0,
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
    /// Labels that have no mark yet: nothing that makes bytes came behind them.
    unplaced: Vec<u32>,
    /// Macros or repetitions may switch sections.
    hidden: bool,
    sections: Sections<'t>,
    /// The last statement of the run is a prefix.
    prefixed: bool,
    /// How many repetitions are open.
    repetitions: u32,
    /// Branches of `.if` that have not ended, by number.
    open: Vec<usize>,
}

impl Marker<'_> {
    fn statement(&mut self, k: u32, statement: &Statement) {
        if defines_a_place(self.text, statement) {
            self.unplaced.push(k);
        }
        match statement.kind {
            // Data, of which nothing has to be known.
            StatementKind::Prefix
                if statement.is_directive(self.text) && !self.sections.is_code() =>
            {
                self.leave_run(statement, false);
            }
            StatementKind::Instruction | StatementKind::Prefix => self.instruction(k, statement),
            // clang's for debuggers, between the prefix of a jump to a thunk and the jump: it is
            // one instruction all the same.
            StatementKind::Label if self.prefixed => {}
            StatementKind::Label if self.state == State::Inside => self.state = State::Behind,
            StatementKind::Label => {}
            // Between a prefix and its instruction it makes two of what is one.
            StatementKind::Directive
                if makes_nothing(statement.name(self.text)) && !self.prefixed => {}
            StatementKind::Directive => self.directive(k, statement),
            StatementKind::Opaque => {
                self.hidden |= switches(statement.name(self.text));
                self.opaque(k, statement);
            }
            // `as` takes a label in the line of `.macro` for the macro's name.
            StatementKind::Definition => {
                self.hidden |= switches(statement.name(self.text));
                self.leave_run(statement, true);
            }
            StatementKind::Assignment => self.leave_run(statement, false),
        }
    }

    fn directive(&mut self, k: u32, statement: &Statement) {
        let name = statement.name(self.text);
        if let Some(conditional) = Conditional::of(name) {
            self.leave_run(statement, true);
            return self.conditional(k, statement, conditional);
        }
        // Labels before it are of the section that is left.
        let in_code = self.sections.is_code();
        self.sections.directive(name, statement.rest(self.text));
        match makes_bytes(name) && in_code {
            true => self.alone(k, statement, Form::Bytes),
            false => self.leave_code(statement, false, in_code),
        }
    }

    /// A use of a macro, or a repetition from its start to its end. Inside there are no
    /// labels: they would be repeated.
    fn opaque(&mut self, k: u32, statement: &Statement) {
        let name = statement.name(self.text);
        let opens = is_repetition(name) || name == b".macro";
        match self.repetitions {
            0 => self.alone(k, statement, Form::Opaque),
            _ => self.marks.runs.last_mut().expect("a repetition").end = k + 1,
        }
        let closes = u32::from(is_end(name));
        self.repetitions = (self.repetitions + u32::from(opens)).saturating_sub(closes);
    }

    /// A run of one statement.
    fn alone(&mut self, k: u32, statement: &Statement, form: Form) {
        self.enter_run(k, statement, form);
        self.state = State::Behind;
    }

    /// Ends the run before a statement; `alone` gives the label a line of its own. In a branch
    /// that is not assembled, `as` looks for `.endif` at the start of a line.
    fn leave_run(&mut self, statement: &Statement, alone: bool) {
        self.leave_code(statement, alone, self.sections.is_code());
    }

    /// The same; labels of data get no mark.
    fn leave_code(&mut self, statement: &Statement, alone: bool, in_code: bool) {
        if !in_code && !self.hidden {
            self.unplaced.clear();
        }
        if self.state != State::Outside || !self.unplaced.is_empty() {
            let mark = self.label(statement.start as usize);
            if self.state != State::Outside {
                self.end_run(mark);
            }
            if alone {
                self.out.push(b'\n');
            }
            self.state = State::Outside;
        }
        self.prefixed = false;
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
        let one = u32::from(statement.kind == StatementKind::Instruction);
        self.prefixed = statement.kind == StatementKind::Prefix;
        if self.state == State::Inside {
            self.place_inside(statement);
            let run = self.marks.runs.last_mut().expect("the run it is in");
            run.end = k + 1;
            if let Form::Instructions(made) = &mut run.form {
                *made += one;
            }
            return;
        }
        self.enter_run(k, statement, Form::Instructions(one));
        self.state = State::Inside;
    }

    /// Marks labels between the prefix of an instruction and the rest, in a run.
    fn place_inside(&mut self, statement: &Statement) {
        if !self.unplaced.is_empty() {
            self.marks.inside.extend(&self.unplaced);
            self.label(statement.start as usize);
        }
    }

    /// Begins a run, where the one before ends.
    fn enter_run(&mut self, k: u32, statement: &Statement, form: Form) {
        let mark = self.label(statement.start as usize);
        if self.state != State::Outside {
            self.end_run(mark);
        }
        self.marks.runs.push(Run {
            first: k,
            end: k + 1,
            form,
            from: mark,
            to: mark,
        });
    }

    fn end_run(&mut self, mark: u32) {
        self.marks.runs.last_mut().expect("the run it is behind").to = mark;
    }

    fn label(&mut self, at: usize) -> u32 {
        let mark = self.marks.count;
        self.marks.count += 1;
        let placed = self.unplaced.drain(..).map(|k| (k, mark));
        self.marks.labels.extend(placed);
        self.out.extend_from_slice(&self.text[self.copied..at]);
        self.copied = at;
        self.out.extend_from_slice(PREFIX.as_bytes());
        push_number(&mut self.out, mark);
        self.out.push(b':');
        mark
    }

    fn finish(mut self) -> (Vec<u8>, Marks) {
        if self.state != State::Outside || !self.unplaced.is_empty() {
            let mark = self.label(self.text.len());
            if self.state != State::Outside {
                self.end_run(mark);
            }
            // The last line may lack its end.
            let label = self.out.len() - PREFIX.len() - digits(mark) - 1;
            self.out.insert(label, b'\n');
        }
        self.out.extend_from_slice(&self.text[self.copied..]);
        self.out.push(b'\n');
        (self.out, self.marks)
    }
}

/// Whether a statement is a label, or gives a symbol the place where it stands.
fn defines_a_place(text: &[u8], statement: &Statement) -> bool {
    match statement.kind {
        StatementKind::Label => true,
        StatementKind::Assignment => names_its_place(statement.rest(text)),
        StatementKind::Directive => {
            is_assignment(statement.name(text)) && names_its_place(statement.rest(text))
        }
        _ => false,
    }
}

/// Whether an expression has `.` for a symbol.
fn names_its_place(expression: &[u8]) -> bool {
    names(expression).any(|name| name == b".")
}

/// Directives between two instructions that leave them adjacent and define no place to
/// jump to.
fn makes_nothing(name: &[u8]) -> bool {
    name == b".loc" || name.starts_with(b".cfi_")
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
