//! Ties statements to the instructions that the assembler made of them.
//!
//! After assembly, the symbols of the marks give the place of each run, and decoding gives
//! its number of instructions. If this is the number of the run's statements, they
//! correspond in order. If not (a macro, a statement that makes two instructions), the run
//! stays untied, and a change of one of its instructions is refused. A directive that makes
//! bytes is tied if it makes exactly one instruction. If control does not come there, it may
//! be data, and is not changed.

use std::ops::Range;

use elf_loader::SectionId;
use foldhash::{HashMap, HashSet};
use iced_x86::{Decoder, DecoderOptions};

use super::expression;
use super::lengths::LazyLengths;
use super::marks::{Form, Marks, Run, StatementIdx};
use super::reached::Reached;
use super::statement::{Statement, StatementKind};
use crate::lift::{CodeIdx, InstIdx, Lifted};

/// Which statement made which instruction.
#[derive(Debug)]
pub struct Tie {
    /// By instruction.
    statement_of: Vec<u32>,
    /// By statement.
    inst_of: Vec<u32>,
    /// Runs that were assembled to code and could not be tied, in the order of their
    /// statements: their instructions, which may be none, and their statements.
    untied: Vec<(Range<u32>, Range<u32>)>,
    /// Instructions that a directive makes and that may be data.
    data: HashSet<u32>,
    /// Labels of code, in the order of their statements.
    labels: Vec<Label>,
    /// Where the rest of an instruction begins whose prefixes are from a directive.
    rests: HashSet<(CodeIdx, u64)>,
}

/// A text, and what its statements were assembled to.
#[derive(Clone, Copy, Debug)]
pub struct Tied<'p, 'a> {
    /// The original text.
    pub text: &'p [u8],
    /// The statements that it consists of.
    pub statements: &'p [Statement],
    /// Which instruction each was assembled to.
    pub tie: &'p Tie,
    /// The instructions of the object.
    pub lifted: &'p Lifted<'a>,
    /// What is a length of code in the text.
    pub lengths: &'p LazyLengths<'p>,
}

/// A label of code, or a symbol that is given its place.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Its statement.
    pub at: u32,
    /// Its address.
    pub place: (CodeIdx, u64),
    /// It is between the prefix of an instruction and the rest.
    pub is_inside: bool,
}

const NONE: u32 = u32::MAX;

impl Tie {
    /// The statement that made an instruction. Of an instruction whose prefixes
    /// are statements, the last one.
    pub fn statement(&self, i: InstIdx) -> Option<StatementIdx> {
        let k = self.statement_of[i.0 as usize];
        (k != NONE).then_some(StatementIdx(k))
    }

    /// Whether an instruction is made by a directive, and may be data.
    pub fn may_be_data(&self, i: InstIdx) -> bool {
        self.data.contains(&i.0)
    }

    /// The instruction that a statement made.
    pub fn inst(&self, k: StatementIdx) -> Option<InstIdx> {
        let i = self.inst_of[k.0 as usize];
        (i != NONE).then_some(InstIdx(i))
    }

    /// The statement that made an instruction, or the first of those that made it and
    /// others, for messages.
    pub fn near(&self, i: InstIdx) -> Option<StatementIdx> {
        let mut untied = self.untied.iter();
        let mut run = || untied.find(|(insts, _)| insts.contains(&i.0));
        self.statement(i)
            .or_else(|| Some(StatementIdx(run()?.1.start)))
            .or_else(|| (0..i.0).rev().find_map(|i| self.statement(InstIdx(i))))
    }

    /// The statement before an instruction that is of no run: what made it stands between two.
    pub fn before(&self, i: InstIdx) -> Option<StatementIdx> {
        let untied = self.untied.iter().any(|(insts, _)| insts.contains(&i.0));
        if untied || self.statement(i).is_some() {
            return None;
        }
        self.near(i)
    }

    /// Whether statements behind `k` made some of these instructions, and it is not known which.
    pub fn has_untied(&self, among: &Range<u32>, k: StatementIdx) -> bool {
        self.untied.iter().any(|(insts, run)| {
            run.start > k.0 && insts.start < among.end && among.start < insts.end
        })
    }

    /// Ties the statements to the code of the assembled marked text.
    pub fn find(text: &[u8], statements: &[Statement], lifted: &Lifted<'_>, marks: &Marks) -> Tie {
        let places = marks.places(lifted.object);
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
            data: HashSet::default(),
            labels: Vec::new(),
            rests: HashSet::default(),
        };
        // Instructions that lines of the text are, and those that directives make.
        let (mut written, mut bytes) = (vec![false; lifted.insts.len()], Vec::new());
        for run in &marks.runs {
            // If a mark was not assembled, the text around it was not either.
            let ends = (places[run.from as usize], places[run.to as usize]);
            let (Some((id, from)), Some((end, to))) = ends else {
                continue;
            };
            // A macro that ends in another section makes code there of which nothing is known.
            let to = if end == id { to } else { from };
            let Some(code) = codes.get(&id) else {
                continue;
            };
            // What a symbol makes of its bytes is not known.
            let known = run.form != Form::Bytes || statements[run.first as usize].is_constant(text);
            let (insts, exact) = tie.run(lifted, statements, run, known, (*code, from, to));
            match run.form {
                Form::Instructions(_) => {
                    written[insts.start as usize..insts.end as usize].fill(true);
                }
                Form::Bytes if exact => bytes.push(InstIdx(insts.start)),
                Form::Bytes | Form::Opaque => {}
            }
        }
        if !bytes.is_empty() {
            let reached = Reached::of(lifted, &written);
            let data = bytes.iter().filter(|i| !reached.is_run(lifted, **i));
            tie.data.extend(data.map(|i| i.0));
        }
        for (k, mark) in &marks.labels {
            let Some((id, offset)) = places[*mark as usize] else {
                continue;
            };
            let Some(code) = codes.get(&id) else {
                continue;
            };
            let place = (*code, offset);
            tie.labels.push(Label {
                at: *k,
                place,
                is_inside: marks.inside.contains(k) || tie.rests.contains(&place),
            });
        }
        tie
    }

    /// The labels of the code.
    pub fn labels(&self) -> &[Label] {
        &self.labels
    }

    /// Instructions of which no statement is known.
    pub fn untied(&self) -> impl Iterator<Item = Range<u32>> {
        self.untied.iter().map(|(insts, _)| insts.clone())
    }

    /// Ties a run; gives its instructions, and whether each has its statement.
    fn run(
        &mut self,
        lifted: &Lifted<'_>,
        statements: &[Statement],
        run: &Run,
        known: bool,
        (code, from, to): (CodeIdx, u64, u64),
    ) -> (Range<u32>, bool) {
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
        if prefixed {
            self.rests.insert((code, from));
        }
        let whole = prefixed || lifted.inst_at(code, from).is_some();
        let exact = match run.form {
            Form::Instructions(made) => whole && made == end.saturating_sub(first),
            Form::Bytes => {
                let one = lifted.inst_at(code, from);
                one.is_some_and(|i| known && lifted.inst(i).iced.next_ip() == to)
            }
            Form::Opaque => false,
        };
        let insts = first..end.max(first);
        if !exact {
            self.untied.push((first..end, run.first..run.end));
            return (insts, false);
        }
        let mut i = first;
        for k in run.first..run.end {
            if run.form == Form::Bytes || statements[k as usize].kind == StatementKind::Instruction
            {
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
        (insts, true)
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

/// Each label of the code that is at an instruction: its statement, its name, and the
/// instruction.
pub fn labels<'t>(
    Tied {
        text,
        statements,
        tie,
        lifted,
        ..
    }: Tied<'t, '_>,
    mut each: impl FnMut(u32, &'t [u8], InstIdx),
) {
    for label in tie.labels() {
        let (code, offset) = label.place;
        if let Some(i) = lifted.inst_at(code, offset) {
            each(label.at, defined(text, &statements[label.at as usize]), i);
        }
    }
}

/// The symbol that a label or an assignment defines.
pub fn defined<'t>(text: &'t [u8], statement: &Statement) -> &'t [u8] {
    if statement.kind != StatementKind::Directive {
        return statement.name(text);
    }
    let symbol = expression::split(statement.rest(text)).next();
    symbol.unwrap_or_default().trim_ascii()
}
