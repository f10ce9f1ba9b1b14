//! Places in code that are named by a label and a distance, in data and in the values of
//! symbols:
//!
//! ```text
//!     .quad f+4          the code between f and there becomes longer
//!     .set  x, 1b+3      so does that before x, and `jmp x` looks like any other branch
//!     x = . + 6
//! ```
//!
//! Differences of labels are numbers, and stay right: `len = . - f`. With a number beside they
//! may be such a place, seen from another: `.long case+2-table`, `add $(case+2-here), %rax`.
//! So they may if more than a sum is made of them: `.long (case-table)/4`. And a comparison,
//! `add $(1b-f > 8), %rax`, has another result when the code is longer.
//!
//! Macros may make such a place out of sight. So each address of code that loaded data or a
//! symbol of the assembled object has must be that of a label.

use elf_loader::consts::STT_SECTION;
use foldhash::HashSet;

use super::directives::{fills, is_assignment, is_data};
use super::expression::{
    self, Sum, Token, begins_with_digit, has_operator, is_nonzero, names, tokens, unquoted,
};
use super::lengths::{LazyLengths, Lengths};
use super::marks::{self, StatementIdx};
use super::operand;
use super::print::Obstacle;
use super::sections::{Section, Sections};
use super::statement::{Statement, StatementKind};
use super::taken;
use super::tie::Tie;
use crate::lift::{CodeIdx, InstIdx, Lifted};
use crate::refusal::RefusalCode;

/// Finds lines of macros and repetitions that may make such places, by values that are not
/// seen before they are written out.
pub fn hidden(text: &[u8], statements: &[Statement]) -> Vec<Obstacle> {
    // Macros that nothing uses make nothing.
    if !statements.iter().any(|s| s.kind == StatementKind::Opaque) {
        return Vec::new();
    }
    let hides = |s: &Statement| {
        matches!(s.kind, StatementKind::Opaque | StatementKind::Definition)
            && may_make_sum(s.name(text), s.rest(text))
    };
    let found = (0..).zip(statements).filter(|(_, s)| hides(s));
    let reason = "a macro may make a place in code by a distance here, and it is not seen";
    found.map(|(k, _)| obstacle(k, reason)).collect()
}

/// Finds such places. `statements` are those that were assembled.
pub fn find(text: &[u8], statements: &[Statement], lengths: &LazyLengths<'_>) -> Vec<Obstacle> {
    let mut sections = Sections::default();
    let constants = constants(text, statements);
    let mut found = Vec::new();
    for (k, statement) in (0..).zip(statements) {
        let (name, rest) = (statement.name(text), statement.rest(text));
        let values = match statement.kind {
            StatementKind::Assignment | StatementKind::Opaque => rest,
            StatementKind::Directive => {
                sections.directive(name, rest);
                // In code these pad, and may as they like: alternatives of kernels do.
                let is_value = is_data(name) || fills(name) && !sections.is_code();
                // What `.reloc` refers to is refused with words of its own.
                if !is_value || name == b".reloc" || statement.is_constant(text) {
                    continue;
                }
                rest
            }
            StatementKind::Instruction if may_be_sum(rest) || may_be_scaled(rest) => rest,
            StatementKind::Label
            | StatementKind::Instruction
            | StatementKind::Prefix
            | StatementKind::Definition => continue,
        };
        // Few have a number or an operator beside a name.
        if !has_number(values, &constants) && !may_be_scaled(values)
            || !matches!(sections.current(), Section::Code | Section::Data)
        {
            continue;
        }
        let lengths = lengths.found();
        if is_scaled(values, lengths) {
            found.push(obstacle(
                k,
                "a number made of a length of code by more than a sum, which changes when the \
                 code is rewritten; use the plain difference of two labels",
            ));
            continue;
        }
        // A count is no place.
        if statement.kind == StatementKind::Directive && fills(name) {
            continue;
        }
        let values = operand::without_comments(values);
        let here = sections.is_code();
        let is_code = |symbol: &[u8]| lengths.labels().have(symbol, here);
        // One name in an operand is seen by the relocation that it makes.
        let least = match statement.kind {
            StatementKind::Instruction => 2,
            _ => 1,
        };
        if expression::split(&values).any(|value| is_by_distance(value, least, &constants, is_code))
        {
            found.push(obstacle(
                k,
                "a place in code by a distance, which changes with the code in between; put a \
                 label there and name it",
            ));
        }
    }
    found
}

/// Finds such places in the assembled object. Each is shown by the line of the code there.
pub fn find_assembled(tie: &Tie, lifted: &Lifted<'_>) -> Vec<Obstacle> {
    let own = |name: &str| name.starts_with(marks::PREFIX);
    let symbols = lifted.object.symbols();
    let symbols = symbols.filter(|(_, s)| s.kind != STT_SECTION && !own(&s.name));
    let symbols = symbols.filter_map(|(id, _)| lifted.code_place(id, 0));
    let labels: HashSet<(CodeIdx, u64)> = tie.labels().iter().map(|l| l.place).collect();
    let places = symbols.chain(taken::words(lifted));
    let found = places.filter(|place| !labels.contains(place));
    let found = found.filter_map(|(code, offset)| {
        let at = tie.near(inst_around(lifted, code, offset)?)?;
        Some(obstacle(
            at.0,
            "data or a symbol has the address of a place here by a distance, which changes with \
             the code in between; put a label there and name it",
        ))
    });
    found.collect()
}

/// The instruction that has the byte at an offset. None is behind the section's end.
fn inst_around(lifted: &Lifted<'_>, code: CodeIdx, offset: u64) -> Option<InstIdx> {
    let section = &lifted.sections[usize::from(code.0)];
    let insts = &lifted.insts[section.insts.start as usize..section.insts.end as usize];
    let n = insts.partition_point(|inst| inst.offset() <= offset);
    let inst = insts.get(n.checked_sub(1)?)?;
    let is_inside = offset < inst.iced.next_ip();
    is_inside.then(|| InstIdx(section.insts.start + n as u32 - 1))
}

fn obstacle(k: u32, reason: &str) -> Obstacle {
    Obstacle {
        at: StatementIdx(k),
        code: RefusalCode::Statement,
        reason: reason.to_owned(),
    }
}

/// Symbols that are given numbers.
fn constants<'t>(text: &'t [u8], statements: &[Statement]) -> HashSet<&'t [u8]> {
    let mut constants: HashSet<&[u8]> = HashSet::default();
    for (symbol, value, _) in assignments(text, statements) {
        let mut parts = tokens(value);
        if parts.all(|token| match token {
            Token::Name(name) => constants.contains(name),
            Token::Number(number) => is_nonzero(number).is_some(),
            Token::Character | Token::Register | Token::Sign(_) => true,
        }) {
            constants.insert(symbol);
        }
    }
    constants
}

/// Each symbol that is given a value, the value, and whether that is in a section of code.
fn assignments<'t>(
    text: &'t [u8],
    statements: &[Statement],
) -> impl Iterator<Item = (&'t [u8], &'t [u8], bool)> {
    let mut sections = Sections::default();
    statements.iter().filter_map(move |statement| {
        let (name, rest) = (statement.name(text), statement.rest(text));
        let (symbol, value) = match statement.kind {
            StatementKind::Assignment => (name, rest),
            StatementKind::Directive if is_assignment(name) => {
                let symbol = expression::split(rest).next()?;
                (symbol.trim_ascii(), rest.get(symbol.len() + 1..)?)
            }
            StatementKind::Directive => {
                sections.directive(name, rest);
                return None;
            }
            _ => return None,
        };
        Some((named(symbol), value, sections.is_code()))
    })
}

/// Whether there is a number that is not a numeric label, zero, or a part of a name.
fn has_number(values: &[u8], constants: &HashSet<&[u8]>) -> bool {
    tokens(values).any(|token| match token {
        Token::Name(name) => constants.contains(name),
        Token::Number(number) => is_nonzero(number) == Some(true),
        Token::Character => true,
        Token::Register | Token::Sign(_) => false,
    })
}

/// Whether operands may have a sum of two names and a number: most have no two signs.
fn may_be_sum(operands: &[u8]) -> bool {
    let signs = operands.iter().filter(|b| matches!(b, b'+' | b'-'));
    signs.take(2).count() == 2
}

/// Whether more than a sum may be made of a difference in operands.
fn may_be_scaled(operands: &[u8]) -> bool {
    operands.contains(&b'-') && has_operator(operands)
}

/// Whether a value, one of several, is made of a length of code by more than sums.
fn is_scaled(values: &[u8], lengths: &Lengths<'_>) -> bool {
    if !has_operator(values) {
        return false;
    }
    let values = operand::without_comments(values);
    expression::split(&values).any(|value| has_operator(value) && lengths.are_in(value))
}

/// Whether a line of a macro may have such a sum once its parameters have values.
fn may_make_sum(name: &[u8], rest: &[u8]) -> bool {
    let may_be = may_be_sum(rest) || may_be_scaled(rest);
    rest.contains(&b'\\') && may_be && (is_data(name) || !name.starts_with(b"."))
}

/// Whether an expression adds up a number and `least` names or more, one of code.
fn is_by_distance(
    value: &[u8],
    least: usize,
    constants: &HashSet<&[u8]>,
    is_code: impl Fn(&[u8]) -> bool,
) -> bool {
    // The place that the linker makes for a symbol, not the symbol's own.
    if value.windows(4).any(|four| four == b"@GOT") {
        return false;
    }
    let sum = Sum::of(value, constants);
    sum.number && sum.names.len() >= least && sum.names.iter().any(|name| is_code(name))
}

/// A symbol as expressions name it.
pub(super) fn named(symbol: &[u8]) -> &[u8] {
    let name = unquoted(symbol);
    name.strip_prefix(b"$").unwrap_or(name)
}

fn is_number(name: &[u8]) -> bool {
    begins_with_digit(name) && is_nonzero(name).is_some()
}

/// Labels in sections of code, the names of these sections, and symbols that are given the place
/// of one.
#[derive(Debug)]
pub(super) struct CodeLabels<'t>(HashSet<&'t [u8]>);

impl<'t> CodeLabels<'t> {
    pub(super) fn find(text: &'t [u8], statements: &[Statement]) -> CodeLabels<'t> {
        let mut sections = Sections::default();
        let mut labels = CodeLabels(HashSet::from_iter([sections.name()]));
        for statement in statements {
            let name = statement.name(text);
            match statement.kind {
                StatementKind::Directive => {
                    sections.directive(name, statement.rest(text));
                    if sections.is_code() {
                        labels.0.insert(sections.name());
                    }
                }
                StatementKind::Label if sections.is_code() => _ = labels.0.insert(named(name)),
                _ => {}
            }
        }
        // One may be given the place of another that comes later.
        let assigned: Vec<_> = assignments(text, statements).collect();
        loop {
            let before = labels.0.len();
            for (symbol, value, here) in &assigned {
                let mut names = names(value).filter(|name| !is_number(name));
                if let (Some(name), None) = (names.next(), names.next())
                    && labels.have(name, *here)
                {
                    labels.0.insert(symbol);
                }
            }
            if labels.0.len() == before {
                return labels;
            }
        }
    }

    /// Whether a name is one of them, as a reference to a numeric one may be. `here` says that
    /// `.` is in code.
    pub(super) fn have(&self, name: &[u8], here: bool) -> bool {
        match name.split_last() {
            Some((b'.', [])) => here,
            Some((b'b' | b'f', number)) if number.iter().all(u8::is_ascii_digit) => {
                self.0.contains(number) || self.0.contains(name)
            }
            _ => self.0.contains(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::statement::split;
    use super::*;

    #[test]
    fn a_label_and_a_number_are_a_place_by_distance() {
        let count = |line: &str| {
            let text = format!(".text\nf: nop\ng: ret\n.data\nd: .quad 0\n{line}\n");
            let statements = split(text.as_bytes());
            let lengths = LazyLengths::of(text.as_bytes(), &statements);
            find(text.as_bytes(), &statements, &lengths).len()
        };
        for bad in [
            ".quad f+4",
            ".quad 0, 4+g",
            "x = f+1",
            ".set x, g - 1",
            ".text\nx = .+6",
            ".quad f@PLT+4",
            ".text\n1: nop\n.data\n.quad 1b+4",
            ".rept 1\n.quad f+4\n.endr",
            ".set three, 3\n.quad f+three",
            "three = 3\n.quad three+f",
            ".set al, f\n.quad al+3",
            ".section .note.q,\"a\"\n.quad f+3",
            ".long g-f+4",
            ".long f+2-d",
            ".long 0, 2+f-.",
            ".quad d-f-2",
            ".long \"f\"+three-d\nthree = 3",
            "\"x,y\" = f\n.quad \"x,y\"+4",
            ".text\nadd $(g+1-f), %rax",
            ".text\nlea g-2-f(%rax,%rcx), %rax",
            ".text\nadd $.+2-f, %rax",
            ".quad (g-f+7)/8",
            ".long 0, (g-f) >> 2",
            ".long (g-f)%4",
            "x = (g-f) > 3",
            ".set len, g-f\n.long len*8",
            ".text\nadd $((g-f)==4), %rax",
            ".text\nimul $((g-f) % 4), (%rdi), %rax",
            ".fill (g-f)*2, 8, 5",
            ".dcb.b (g-f)*2, 5",
            ".ds.w (g-f)*2",
            ".nops (g-f)*2",
            ".org (g-f)*2",
            ".long .text+2-d",
            ".slong g-f+4",
            ".new g-f+4",
            ".section code,\"ax\"\nnop\n.data\n.quad code+2",
        ] {
            assert_eq!(count(bad), 1, "{bad}");
        }
        for good in [
            ".quad f, 4",
            ".quad f+0",
            ".quad (d-e+7)/8\ne:",
            ".skip g-f",
            ".skip 8-(g-f)",
            ".text\n2: nop\n.data\n2: .long 1\n.org 2b+12",
            ".text\n.skip -((g-f) > 3)*(g-f), 0x90",
            ".text\njmp *g-f(%rax)",
            ".text\nmov $(g-f), %rax",
            ".text\nmov %fs:g-f(%rax), %rcx",
            ".text\nmov -8-8(%rax), %rax",
            ".section .note.r,\"a\"\n.long e+4-d\ne:",
            "x = d+4",
            "x = .+6",
            ".quad other+8",
            ".set len, g-f\n.quad f+len",
            ".set al, d\n.quad al+3",
            ".section .note.q\n.quad f+3",
            ".long f@GOTPCREL+4",
            ".section .debug_loc\n.quad f-1",
        ] {
            assert_eq!(count(good), 0, "{good}");
        }
    }

    #[test]
    fn macros_may_make_such_places() {
        let count = |text: &str| hidden(text.as_bytes(), &split(text.as_bytes())).len();
        assert_eq!(count(".macro m n\n.long f+\\n-d\n.endm\nm 2"), 1);
        assert_eq!(count(".irp n, 2, 4\n.long f+\\n-d\n.endr"), 1);
        assert_eq!(count(".macro m n\n.long (\\n-d)/4\n.endm\nm f"), 1);
        assert_eq!(count(".macro m n\n.long f+\\n-d\n.endm"), 0);
        assert_eq!(count(".macro m n\n.long \\n-d\n.endm\nm f"), 0);
    }
}
