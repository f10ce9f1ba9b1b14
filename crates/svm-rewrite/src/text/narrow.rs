//! Lengths of code in fields that may be too short for them, as tables of jumps have them:
//!
//! ```text
//!     movsbq (%rdx,%rdi), %rdx; add %rdx, %rax; jmp *%rax
//!     .byte c0-base, c1-base        127 at most, for who reads it with its sign
//! ```
//!
//! A length that passes this limit, or that of the field, when the code becomes longer means
//! something else. The assembler does not say so. How much longer code becomes is estimated
//! from above. A number of variable length (`.uleb128`) is one byte until then, and whoever reads it
//! as that byte, or by its place, finds another; unwinders read theirs as what they are. A length that
//! counts bytes (`.skip 2b-1b`) may not change at all: what stands behind is found by its place. Nor may
//! one in a directive that is not known here.

use std::ops::Range;

use foldhash::HashMap;

use super::directives::{fills, fits_lengths, is_data, is_repetition, width};
use super::distances::is_label;
use super::expression::{self, unquoted};
use super::lengths::Lengths;
use super::marks::StatementIdx;
use super::operand;
use super::print::Obstacle;
use super::sections::{Section, Sections};
use super::statement::{Statement, StatementKind};
use super::tie::{self, Label, Tie, Tied};
use crate::asm::Piece;
use crate::encode::sites::{SiteCode, SiteSequence};
use crate::lift::{CodeIdx, Lifted};
use crate::refusal::RefusalCode;

/// What a directive makes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    /// One byte or two.
    Bytes(usize),
    /// As many bytes as it needs.
    Variable,
    /// So many bytes, or bytes up to there.
    Count,
    /// Nobody knows.
    Unknown,
}

/// What such a number may be to be one byte, with a sign or without.
const SHORTEST: u64 = 63;
/// By how many bytes a branch that stays may become longer.
const BRANCH: u64 = 4;
/// Most bytes of a branch of a sequence.
const LONG_BRANCH: u64 = 10;
/// Most bytes of padding that are expected of a directive.
const PADDING: u64 = 63;

/// Finds lengths that may pass their limits. `counts` asks for those alone that count bytes of data.
pub fn find(
    Tied {
        text,
        statements,
        tie,
        lifted,
        lengths,
    }: Tied<'_, '_>,
    code: &SiteCode,
    counts: bool,
) -> Vec<Obstacle> {
    if code.functions.iter().all(|f| f.sites.is_empty()) {
        return Vec::new();
    }
    let mut fields = fields(text, statements);
    fields.retain(|(_, section, field)| {
        !counts || *section == Section::Data && *field == Field::Count
    });
    if fields.is_empty() {
        return Vec::new();
    }
    let lengths = lengths.found();
    let growth = Growth {
        text,
        statements,
        lifted,
        code,
        labels: Labels::of(text, statements, tie),
    };
    let is_used = statements.iter().any(|s| s.kind == StatementKind::Opaque);
    let given = uses_have_lengths(text, statements, lengths);
    let passes = |(k, _, field): &(u32, Section, Field)| {
        let statement = &statements[*k as usize];
        let values = operand::without_comments(statement.rest(text));
        let hidden = match statement.kind {
            StatementKind::Opaque => values.contains(&b'\\'),
            // Written out, its uses are seen.
            StatementKind::Definition => is_used && values.contains(&b'\\'),
            _ => false,
        };
        let mut values = expression::split(&values);
        values.any(|value| {
            let value = value.trim_ascii();
            let is_hidden = hidden && (value.contains(&b'-') || given && value.contains(&b'\\'));
            (is_hidden || lengths.are_in(value)) && !growth.stays_within(*k, value, *field)
        })
    };
    let found = fields.iter().filter(|field| passes(field));
    let obstacle = |(k, _, field): &(u32, Section, Field)| Obstacle {
        at: StatementIdx(*k),
        code: RefusalCode::Statement,
        reason: match field {
            Field::Bytes(1) => too_long("one byte"),
            Field::Bytes(_) => too_long("two bytes"),
            Field::Variable => too_long("a number of variable length"),
            Field::Count => "a length of code that counts bytes, which changes when the code is \
                             rewritten: what is behind it moves; use a number"
                .to_owned(),
            Field::Unknown => "a length of code, which changes when the code is rewritten, in a \
                               directive that is not known here; use `.long`"
                .to_owned(),
        },
    };
    found.map(obstacle).collect()
}

fn too_long(field: &str) -> String {
    format!("a length of code in {field}, which may become too long for it; use `.long`")
}

/// Whether a macro or a repetition is given a length of code: `E c1-base`, `.irp n, c1-base`.
fn uses_have_lengths(text: &[u8], statements: &[Statement], lengths: &Lengths<'_>) -> bool {
    let mut uses = statements
        .iter()
        .filter(|s| s.kind == StatementKind::Opaque || is_repetition(s.name(text)));
    // An argument may be in quotes.
    uses.any(|s| {
        let arguments = s
            .rest(text)
            .iter()
            .map(|b| if *b == b'"' { b' ' } else { *b });
        lengths.are_in(&arguments.collect::<Vec<u8>>())
    })
}

/// Directives of such fields that are loaded, with the section's kind.
fn fields(text: &[u8], statements: &[Statement]) -> Vec<(u32, Section, Field)> {
    let mut sections = Sections::default();
    let mut fields = Vec::new();
    for (k, statement) in (0..).zip(statements) {
        let (name, rest) = (statement.name(text), statement.rest(text));
        match statement.kind {
            StatementKind::Directive => sections.directive(name, rest),
            StatementKind::Opaque | StatementKind::Definition => {}
            _ => continue,
        }
        let section = sections.current();
        if matches!(section, Section::Code | Section::Data)
            && !statement.is_constant(text)
            && !(section == Section::Code && pads(name, rest))
        {
            fields.extend(field(name).map(|field| (k, section, field)));
        }
    }
    fields
}

fn field(name: &[u8]) -> Option<Field> {
    match name {
        b".uleb128" | b".sleb128" => Some(Field::Variable),
        b".dc.b" => Some(Field::Bytes(1)),
        b".dc" | b".dc.w" => Some(Field::Bytes(2)),
        _ if fills(name) => Some(Field::Count),
        _ if fits_lengths(name) || !is_data(name) => None,
        _ => Some(width(name).map_or(Field::Unknown, Field::Bytes)),
    }
}

/// Whether a directive pads code: with `nop`s, as alternatives of kernels do, or up to a place that
/// it counts from here (`.skip 64-(.-f)`).
fn pads(name: &[u8], rest: &[u8]) -> bool {
    let last = rest.rsplit(|b| *b == b',').next().map(<[u8]>::trim_ascii);
    let with_nops = matches!(last, Some(b"0x90" | b"144"));
    name == b".nops" || fills(name) && (with_nops || expression::names(rest).any(|n| n == b"."))
}

/// Labels of code by their names; numeric ones are there many times.
struct Labels<'t>(HashMap<&'t [u8], Vec<Label>>);

impl<'t> Labels<'t> {
    fn of(text: &'t [u8], statements: &[Statement], tie: &Tie) -> Labels<'t> {
        let mut labels: HashMap<&[u8], Vec<Label>> = HashMap::default();
        for label in tie.labels() {
            let name = unquoted(tie::defined(text, &statements[label.at as usize]));
            labels.entry(name).or_default().push(*label);
        }
        Labels(labels)
    }

    /// The label that statement `k` names.
    fn get(&self, k: u32, name: &[u8]) -> Option<Label> {
        if let [label] = self.0.get(unquoted(name)).map_or(&[][..], Vec::as_slice) {
            return Some(*label);
        }
        let (direction, number) = name.split_last()?;
        let all = self.0.get(number)?;
        let later = all.partition_point(|label| label.at < k);
        match direction {
            b'f' => all.get(later).copied(),
            b'b' => all.get(later.checked_sub(1)?).copied(),
            _ => None,
        }
    }
}

/// How much longer code becomes.
struct Growth<'t> {
    text: &'t [u8],
    statements: &'t [Statement],
    lifted: &'t Lifted<'t>,
    code: &'t SiteCode,
    labels: Labels<'t>,
}

impl Growth<'_> {
    /// Whether a length stays within what its field has, read with its sign if it can be now.
    fn stays_within(&self, k: u32, value: &[u8], field: Field) -> bool {
        let Some((to, from)) = self.ends(k, value) else {
            return false;
        };
        if to.place.0 != from.place.0 {
            return false;
        }
        let (low, high) = (from.place.1.min(to.place.1), from.place.1.max(to.place.1));
        let Some(grown) = self.between(from.place.0, low..high) else {
            return false;
        };
        let between = from.at.min(to.at) as usize..from.at.max(to.at) as usize;
        let aligns = self.statements[between].iter().filter(|s| {
            let name = s.name(self.text);
            name.ends_with(b"align") || name == b".org"
        });
        let length = high - low;
        let limit = match field {
            Field::Count | Field::Unknown => length,
            Field::Variable => SHORTEST,
            Field::Bytes(width) => {
                let half = 1 << (8 * width - 1);
                match (to.place.1 < from.place.1, length < half) {
                    (true, _) => half,
                    (false, true) => half - 1,
                    (false, false) => 2 * half - 1,
                }
            }
        };
        length + grown + PADDING * aligns.count() as u64 <= limit
    }

    /// The labels of a plain difference.
    fn ends(&self, k: u32, value: &[u8]) -> Option<(Label, Label)> {
        let mut parts = value.split(|b| *b == b'-').map(<[u8]>::trim_ascii);
        let (to, from) = (parts.next()?, parts.next()?);
        let plain = parts.next().is_none() && is_label(to) && is_label(from);
        plain.then_some(())?;
        self.labels.get(k, to).zip(self.labels.get(k, from))
    }

    /// How many bytes come in at most between two offsets of one function.
    fn between(&self, code: CodeIdx, range: Range<u64>) -> Option<u64> {
        let section = &self.lifted.sections[usize::from(code.0)].insts;
        let insts = &self.lifted.insts[section.start as usize..section.end as usize];
        let index = |offset: u64| {
            section.start + insts.partition_point(|inst| inst.offset() < offset) as u32
        };
        let inside = index(range.start)..index(range.end);
        // Behind each function come its out-of-line parts.
        let mut functions = self.lifted.functions.iter();
        functions.find(|f| {
            f.section == code && f.insts.start <= inside.start && inside.end <= f.insts.end
        })?;
        let sites = self.code.functions.iter().flat_map(|f| &f.sites);
        let sites = sites.filter(|s| inside.contains(&s.inst.0));
        let sequences: u64 = sites.map(|site| self.longest(site)).sum();
        let inside = inside.start as usize..inside.end as usize;
        let branches = self.lifted.insts[inside].iter();
        let branches = branches.filter(|inst| inst.target.is_some()).count();
        Some(sequences + BRANCH * branches as u64)
    }

    /// Most bytes of a sequence.
    fn longest(&self, site: &SiteSequence) -> u64 {
        let pieces = self.code.assemblers[usize::from(site.section)].pieces(site.from, site.to);
        let bytes = pieces.map(|piece| match piece {
            Piece::Code(_, bytes) => u64::from(bytes),
            Piece::Branch(..) => LONG_BRANCH,
            Piece::Align(to) => u64::from(to),
        });
        bytes.sum()
    }
}
