//! Places in code that are named by a label and a distance, in data and in the values of
//! symbols:
//!
//! ```text
//!     .quad f+4          the code between f and there becomes longer
//!     .set  x, 1b+3      so does that before x, and `jmp x` looks like any other branch
//!     x = . + 6
//! ```
//!
//! Differences of labels are numbers, and stay right: `len = . - f`.

use foldhash::HashSet;

use super::directives::is_data;
use super::marks::StatementIdx;
use super::operand;
use super::print::Obstacle;
use super::sections::{Section, Sections};
use super::statement::{Statement, StatementKind};
use crate::refusal::RefusalCode;

/// Finds such places. `statements` are those that were assembled.
pub fn find(text: &[u8], statements: &[Statement]) -> Vec<Obstacle> {
    let mut sections = Sections::default();
    let mut code: Option<HashSet<&[u8]>> = None;
    let mut found = Vec::new();
    for (k, statement) in (0..).zip(statements) {
        let (name, rest) = (statement.name(text), statement.rest(text));
        let values = match statement.kind {
            StatementKind::Assignment | StatementKind::Opaque => rest,
            StatementKind::Directive => {
                sections.directive(name, rest);
                // What `.reloc` refers to is refused with words of its own.
                if !is_data(name) || name == b".reloc" || statement.is_constant(text) {
                    continue;
                }
                rest
            }
            StatementKind::Label
            | StatementKind::Instruction
            | StatementKind::Prefix
            | StatementKind::Definition => continue,
        };
        // Few have a number beside a name.
        if !has_number(values) || !matches!(sections.current, Section::Code | Section::Data) {
            continue;
        }
        let code = code.get_or_insert_with(|| labels_of_code(text, statements));
        let values = operand::without_comments(values);
        let here = sections.is_code();
        let is_code = |symbol: &[u8]| match symbol.split_last() {
            Some((b'.', [])) => here,
            Some((b'b' | b'f', number)) if number.iter().all(u8::is_ascii_digit) => {
                code.contains(number) || code.contains(symbol)
            }
            _ => code.contains(symbol),
        };
        if values
            .split(|b| *b == b',')
            .any(|value| is_by_distance(value, is_code))
        {
            found.push(Obstacle {
                at: StatementIdx(k),
                code: RefusalCode::Statement,
                reason: "a place in code by a distance, which changes with the code in between; \
                         put a label there and name it"
                    .to_owned(),
            });
        }
    }
    found
}

/// Whether there is a number that is not a numeric label, zero, or a part of a name.
fn has_number(values: &[u8]) -> bool {
    tokens(values).any(|token| number(token) == Some(true))
}

/// Whether an expression is a label of code and numbers, with no other symbol.
fn is_by_distance(value: &[u8], is_code: impl Fn(&[u8]) -> bool) -> bool {
    // The place that the linker makes for a symbol, not the symbol's own.
    if value.windows(4).any(|four| four == b"@GOT") {
        return false;
    }
    let (mut symbols, mut numbers) = (Vec::new(), false);
    for token in tokens(value) {
        match number(token) {
            Some(counts) => numbers |= counts,
            None => symbols.push(token),
        }
    }
    match &*symbols {
        [symbol] => numbers && is_code(symbol),
        _ => false,
    }
}

/// Whether a token is a number, and one other than zero.
fn number(token: &[u8]) -> Option<bool> {
    let digits = token.first()?.is_ascii_digit();
    let label = matches!(token.split_last(), Some((b'b' | b'f', rest))
        if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit));
    (digits && !label).then(|| token.iter().any(|b| !matches!(b, b'0' | b'x')))
}

/// The names and numbers of an expression, without what follows `@`, and registers.
pub(super) fn tokens(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    let symbol = |b: &u8| {
        b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'@' | b'%') || *b >= 128
    };
    let words = expression.split(move |b| !symbol(b));
    let names = words.map(|word| word.split(|b| *b == b'@').next().unwrap_or_default());
    let names = names.filter(|name| !name.starts_with(b"%"));
    names
        .map(|name| name.strip_prefix(b"$").unwrap_or(name))
        .filter(|name| !name.is_empty())
}

/// Labels in sections of code, and references to numeric ones, which may be.
pub(super) fn labels_of_code<'t>(text: &'t [u8], statements: &[Statement]) -> HashSet<&'t [u8]> {
    let mut sections = Sections::default();
    let mut labels = HashSet::default();
    for statement in statements {
        let name = statement.name(text);
        match statement.kind {
            StatementKind::Directive => sections.directive(name, statement.rest(text)),
            StatementKind::Label if sections.is_code() => _ = labels.insert(name),
            _ => {}
        }
    }
    labels
}

#[cfg(test)]
mod tests {
    use super::super::statement::split;
    use super::*;

    #[test]
    fn a_label_and_a_number_are_a_place_by_distance() {
        let count = |line: &str| {
            let text = format!(".text\nf: nop\ng: ret\n.data\nd: .quad 0\n{line}\n");
            find(text.as_bytes(), &split(text.as_bytes())).len()
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
        ] {
            assert_eq!(count(bad), 1, "{bad}");
        }
        for good in [
            ".quad f, 4",
            ".quad f+0",
            ".quad g-f+4",
            "x = d+4",
            "x = .+6",
            ".quad other+8",
            ".long f@GOTPCREL+4",
            ".section .debug_loc\n.quad f-1",
        ] {
            assert_eq!(count(good), 0, "{good}");
        }
    }
}
