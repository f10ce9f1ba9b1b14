//! How an expression names a label: `k+16(%rip)` is a place of its table, `c-k` is a distance.

use super::super::arguments::number;
use super::super::expression::{Token, begins_with_digit, is_nonzero, names, tokens};

/// What an expression says of the labels in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mention<'t> {
    /// A label, and so many bytes.
    Place(&'t [u8], i64),
    /// One label's distance from another: no address, but a way to both.
    Distance(&'t [u8], &'t [u8]),
    /// Anything else that has names.
    Other,
    /// It has no names.
    Number,
}

impl<'t> Mention<'t> {
    /// Reads an operand of an instruction or of data.
    pub fn of(operand: &'t [u8]) -> Mention<'t> {
        let expression = operand.strip_prefix(b"*").unwrap_or(operand);
        let expression = expression.strip_prefix(b"$").unwrap_or(expression);
        let expression = without_registers(expression).trim_ascii();
        let end = expression.iter().position(|b| matches!(b, b'+' | b'-'));
        let (name, rest) = expression.split_at(end.unwrap_or(expression.len()));
        if let Some((to, from)) = distance(expression) {
            return Mention::Distance(to, from);
        }
        let name = name.trim_ascii();
        match (single(name), offset(rest)) {
            (Some(name), Some(offset)) => Mention::Place(name, offset),
            _ if names(operand).any(|name| !is_constant(name)) => Mention::Other,
            _ => Mention::Number,
        }
    }
}

/// Whether a name of an expression is a number, and no reference to a numeric label.
pub fn is_constant(name: &[u8]) -> bool {
    begins_with_digit(name) && is_nonzero(name).is_some()
}

/// Without the parentheses of base and index at the end.
fn without_registers(operand: &[u8]) -> &[u8] {
    let open = operand.iter().rposition(|b| *b == b'(');
    match open {
        Some(open) if operand[open..].contains(&b'%') => &operand[..open],
        _ => operand,
    }
}

/// A text that is one name: no kind behind `@`, no quotes.
fn single(text: &[u8]) -> Option<&[u8]> {
    let mut tokens = tokens(text);
    match (tokens.next(), tokens.next()) {
        (Some(Token::Name(name)), None) if name == text => Some(name),
        _ => None,
    }
}

/// The number that is added to a name.
fn offset(rest: &[u8]) -> Option<i64> {
    match rest {
        [] => Some(0),
        [b'+', rest @ ..] => number(rest),
        _ => number(&[b"0", rest].concat()),
    }
}

fn distance(expression: &[u8]) -> Option<(&[u8], &[u8])> {
    let label = |token| match token {
        Some(Token::Name(name)) if name != b"." => Some(name),
        Some(Token::Number(name)) if !is_constant(name) => Some(name),
        _ => None,
    };
    let mut tokens = tokens(expression);
    let to = label(tokens.next())?;
    let is_difference = tokens.next() == Some(Token::Sign(b'-'));
    let from = label(tokens.next()).filter(|_| is_difference)?;
    tokens.next().is_none().then_some((to, from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_label_and_a_number() {
        let place = |offset| Mention::Place(b"k", offset);
        for (text, mention) in [
            ("k(%rip)", place(0)),
            ("$k", place(0)),
            ("*k+8(%rip)", place(8)),
            ("k+512-32(%rip)", place(480)),
            ("k-0x80(%rip)", place(-128)),
            ("k - 2*8(,%rdi,4)", place(-16)),
            ("c-k", Mention::Distance(b"c", b"k")),
            ("k-1b(%rcx)", Mention::Distance(b"k", b"1b")),
            ("16(%rip)", Mention::Number),
            ("$0xA040608020C0E000", Mention::Number),
            ("%rax", Mention::Number),
            ("(%rax)", Mention::Number),
            ("8+k(%rip)", Mention::Other),
            ("k+c(%rip)", Mention::Other),
            ("k-.", Mention::Other),
            ("(k)(%rip)", Mention::Other),
            ("k@GOTPCREL(%rip)", Mention::Other),
            ("\"k\"(%rip)", Mention::Other),
            ("1f(%rip)", Mention::Other),
        ] {
            assert_eq!(Mention::of(text.as_bytes()), mention, "{text}");
        }
    }
}
