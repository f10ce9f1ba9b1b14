//! Expressions as the assembler reads them (as.info, "Expressions"): names, numbers and the
//! operators between. Names may be in quotes, and a character may be a number (`','`).

use std::iter::Peekable;

use foldhash::HashSet;

/// Parentheses in one another that are read.
const DEEPEST: u32 = 64;

/// Length of the string or character that begins here; 1 of anything else.
pub fn quoted(text: &[u8]) -> usize {
    let length = match text {
        [b'"', rest @ ..] => end_of_string(rest).map_or(text.len(), |end| end + 2),
        [b'\'', b'\\', _, b'\'', ..] => 4,
        [b'\'', b'\\', ..] | [b'\'', _, b'\'', ..] => 3,
        [b'\'', ..] => 2,
        _ => 1,
    };
    length.min(text.len())
}

/// Where a string ends that has begun; a quote in it follows a backslash.
pub fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|b| {
        let ends = *b == b'"' && !escaped;
        escaped = *b == b'\\' && !escaped;
        ends
    })
}

/// A name without quotes.
pub fn unquoted(name: &[u8]) -> &[u8] {
    let inner = name.strip_prefix(b"\"");
    inner
        .and_then(|name| name.strip_suffix(b"\""))
        .unwrap_or(name)
}

/// Whether a name is a number, or that of a numeric label. In quotes it may be empty.
pub fn begins_with_digit(name: &[u8]) -> bool {
    name.first().is_some_and(u8::is_ascii_digit)
}

/// Operands, split at the commas outside parentheses, strings and characters.
pub fn split(operands: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(operands);
    std::iter::from_fn(move || {
        let text = rest?;
        let comma = comma(text);
        rest = comma.map(|at| &text[at + 1..]);
        Some(&text[..comma.unwrap_or(text.len())])
    })
}

fn comma(text: &[u8]) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_i32);
    while let Some(byte) = text.get(at) {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' if depth == 0 => return Some(at),
            _ => {}
        }
        at += quoted(&text[at..]);
    }
    None
}

/// A part of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token<'t> {
    /// A name, without quotes, the `$` of an immediate, and what follows `@`.
    Name(&'t [u8]),
    /// A number, or a reference to a numeric label.
    Number(&'t [u8]),
    /// A character.
    Character,
    /// A register.
    Register,
    /// Anything else.
    Sign(u8),
}

/// The parts of an expression.
pub fn tokens(expression: &[u8]) -> impl Iterator<Item = Token<'_>> {
    let mut rest = expression.trim_ascii();
    std::iter::from_fn(move || {
        let end = match rest.first()? {
            b'%' => 1 + symbol(&rest[1..]),
            first if is_symbol(*first) => symbol(rest),
            _ => quoted(rest),
        };
        let (text, behind) = rest.split_at(end);
        // A quoted name may have a kind, as `"f"@PLT` has.
        let kind = if text[0] == b'"' { symbol(behind) } else { 0 };
        rest = behind[kind..].trim_ascii_start();
        Some(token(text))
    })
}

/// Length of the symbol that begins here.
fn symbol(text: &[u8]) -> usize {
    let end = text.iter().position(|b| !is_symbol(*b));
    end.unwrap_or(text.len())
}

fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$' | b'@') || byte >= 128
}

fn token(text: &[u8]) -> Token<'_> {
    let name = text.split(|b| *b == b'@').next().unwrap_or_default();
    let name = name.strip_prefix(b"$").unwrap_or(name);
    match text[0] {
        b'"' => Token::Name(unquoted(text)),
        b'\'' => Token::Character,
        b'%' => Token::Register,
        first if !is_symbol(first) => Token::Sign(first),
        _ => match name.first() {
            None => Token::Sign(text[0]),
            Some(b'0'..=b'9') => Token::Number(name),
            Some(_) => Token::Name(name),
        },
    }
}

/// The names and numbers of an expression.
pub fn names(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    tokens(expression).filter_map(|token| match token {
        Token::Name(name) | Token::Number(name) => Some(name),
        Token::Character | Token::Register | Token::Sign(_) => None,
    })
}

/// Whether a number is other than zero; `None` if it is a reference to a numeric label.
pub fn is_nonzero(number: &[u8]) -> Option<bool> {
    let label = matches!(number.split_last(), Some((b'b' | b'f', rest))
        if !rest.is_empty() && rest.iter().all(u8::is_ascii_digit));
    (!label).then(|| number.iter().any(|b| !matches!(b, b'0' | b'x')))
}

/// Whether there is another operator than those of sums, as `/`, `>>` and `==`.
pub fn has_operator(expression: &[u8]) -> bool {
    // `x = 1` is no comparison, and `jmp *x` no product.
    let expression = expression.trim_ascii_start();
    let signs = expression.iter().position(|b| !matches!(b, b'=' | b'*'));
    let expression = &expression[signs.unwrap_or(expression.len())..];
    let mut before = Token::Sign(b'(');
    let mut is_operator = |token| match (std::mem::replace(&mut before, token), token) {
        (before, Token::Sign(b'=')) => before == token,
        (_, Token::Sign(sign)) => OPERATORS.contains(&sign),
        // `5 % 3`, and not `%fs:5(%rax)`.
        (before, Token::Register) => !matches!(before, Token::Sign(sign) if sign != b')'),
        (_, Token::Name(_) | Token::Number(_) | Token::Character) => false,
    };
    may_have_operator(expression) && tokens(expression).any(&mut is_operator)
}

/// Operators of one sign, as one of two signs begins.
const OPERATORS: &[u8] = b"*/<>&|^!~";

/// Whether a sign may be an operator, by what is before: most operands have none.
fn may_have_operator(expression: &[u8]) -> bool {
    let mut before = b'(';
    expression.iter().any(|b| match b {
        b' ' | b'\t' => false,
        b'%' => !b"(,{*:-+$".contains(&before),
        _ => {
            before = *b;
            *b == b'=' || OPERATORS.contains(b)
        }
    })
}

/// Names and a number that are added and subtracted. What is multiplied or compared is a
/// number, whatever it is made of.
#[derive(Debug, Default)]
pub struct Sum<'t> {
    pub names: Vec<&'t [u8]>,
    /// There is a number other than zero.
    pub number: bool,
}

impl<'t> Sum<'t> {
    /// What an expression adds up, as far as it is one: `(%rdi)` may follow. Of the names,
    /// `constants` are numbers.
    pub fn of(expression: &'t [u8], constants: &HashSet<&[u8]>) -> Sum<'t> {
        let mut tokens = tokens(expression).peekable();
        tokens.next_if_eq(&Token::Sign(b'$'));
        Sum::read(&mut tokens, constants, 0)
    }

    fn read(
        tokens: &mut Peekable<impl Iterator<Item = Token<'t>>>,
        constants: &HashSet<&[u8]>,
        depth: u32,
    ) -> Sum<'t> {
        let mut sum = Sum::default();
        // One term, and whether it is a product.
        let (mut term, mut is_product) = (Sum::default(), false);
        let mut behind = Token::Sign(b'(');
        while let Some(token) = tokens.next_if(|token| *token != Token::Sign(b')')) {
            let before = std::mem::replace(&mut behind, token);
            match token {
                Token::Name(name) if constants.contains(name) => term.number = true,
                Token::Name(name) => term.names.push(name),
                Token::Number(number) => match is_nonzero(number) {
                    Some(counts) => term.number |= counts,
                    None => term.names.push(number),
                },
                Token::Character => term.number = true,
                Token::Register => {}
                // Of base and index.
                Token::Sign(b'(') if !matches!(before, Token::Sign(_)) => break,
                Token::Sign(b'(') if depth < DEEPEST => {
                    let inner = Sum::read(tokens, constants, depth + 1);
                    tokens.next_if_eq(&Token::Sign(b')'));
                    term.add(inner, false);
                }
                Token::Sign(b'+' | b'-') => {
                    sum.add(std::mem::take(&mut term), is_product);
                    is_product = false;
                }
                // A symbol or a parameter is given what follows.
                Token::Sign(b'=') => (sum, term, is_product) = Default::default(),
                Token::Sign(_) => is_product = true,
            }
        }
        sum.add(term, is_product);
        sum
    }

    fn add(&mut self, term: Sum<'t>, is_product: bool) {
        if !is_product {
            self.names.extend(term.names);
        }
        self.number |= term.number || is_product;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_in_quotes() {
        let all = |text: &'static str| -> Vec<&str> {
            let names = names(text.as_bytes());
            names
                .map(|name| std::str::from_utf8(name).expect("ASCII"))
                .collect()
        };
        assert_eq!(all("\"en d\"-\"pc\"@PLT + 4"), ["en d", "pc", "4"]);
        assert_eq!(all("$f@GOTPCREL(%rip), %rax"), ["f"]);
        assert_eq!(all("'a+1f-$.L5"), ["1f", ".L5"]);
    }

    #[test]
    fn commas_in_names_and_characters_do_not_split() {
        let parts = |text: &'static str| split(text.as_bytes()).count();
        assert_eq!(parts("$',', 8(%rax,%rbx)"), 2);
        assert_eq!(parts("$'\\'', \"a,(b\"(%rax), %ecx"), 3);
        assert_eq!(parts(""), 1);
    }

    #[test]
    fn operators_are_not_those_of_sums() {
        let has = |text: &str| has_operator(text.as_bytes());
        for other in [
            "(a-b)/4",
            "a-b>>2",
            "(a-b)%4",
            "$((a-b) % 4), %rax",
            "~(a-b)",
            "a-b==4",
            "= (a-b)*2",
            "8(%rax),(a-b) % 4",
        ] {
            assert!(has(other), "{other}");
        }
        for sum in [
            "a-b",
            "= a-b",
            "= = a-b",
            "*a-b(%rax)",
            "%fs:a-b(%rax,%rcx), %rdx",
            "n=a-b",
            "$(a-b), %al",
        ] {
            assert!(!has(sum), "{sum}");
        }
    }

    #[test]
    fn sums_have_names_and_a_number() {
        let of = |text: &'static str| {
            let sum = Sum::of(text.as_bytes(), &HashSet::default());
            (sum.names.len(), sum.number)
        };
        assert_eq!(of("c+2-tab"), (2, true));
        assert_eq!(of("$(2+c-(d))"), (2, true));
        assert_eq!(of("c-d+0(%rdi,%rsi,4)"), (2, false));
        assert_eq!(of("c+2*1-'a"), (1, true));
        assert_eq!(of("(c-d+7)/8"), (0, true));
        assert_eq!(of("~(c-d)"), (0, true));
        assert_eq!(of("= c-1b"), (2, false));
    }
}
