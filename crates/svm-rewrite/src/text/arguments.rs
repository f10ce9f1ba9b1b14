//! Parameters and arguments of macros (as.info, ".macro"), in their usual forms.

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    name: Vec<u8>,
    default: Vec<u8>,
    /// It takes all that is left (`:vararg`).
    takes_rest: bool,
}

/// A name and what stands for it.
pub type Binding = (Vec<u8>, Vec<u8>);

fn is_symbol(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$')
}

/// The name and the parameters of a definition.
pub fn parameters(rest: &[u8]) -> Option<(Vec<u8>, Vec<Parameter>)> {
    let end = rest.iter().position(|b| !is_symbol(*b));
    let (name, rest) = rest.split_at(end.unwrap_or(rest.len()));
    let rest = rest.trim_ascii();
    let rest = rest.strip_prefix(b",").unwrap_or(rest);
    let mut parameters = Vec::new();
    for word in list(rest)? {
        let (head, default) = match word.iter().position(|b| *b == b'=') {
            Some(at) => (&word[..at], &word[at + 1..]),
            None => (&word[..], &b""[..]),
        };
        let (name, kind) = match head.iter().position(|b| *b == b':') {
            Some(at) => (&head[..at], &head[at + 1..]),
            None => (head, &b""[..]),
        };
        if name.is_empty() || !name.iter().all(|b| is_symbol(*b)) {
            return None;
        }
        parameters.push(Parameter {
            name: name.to_owned(),
            default: default.to_owned(),
            takes_rest: kind == b"vararg",
        });
    }
    Some((name.to_ascii_lowercase(), parameters))
}

/// The arguments of a use, by parameter.
pub fn bind(parameters: &[Parameter], rest: &[u8]) -> Option<Vec<Binding>> {
    let mut bound: Vec<Binding> = Vec::new();
    for parameter in parameters {
        bound.push((parameter.name.clone(), parameter.default.clone()));
    }
    let mut next = 0;
    let mut rest = rest.trim_ascii();
    while !rest.is_empty() {
        let named = rest.iter().position(|b| !is_symbol(*b));
        let named = named.filter(|at| rest[*at] == b'=').and_then(|at| {
            let n = parameters.iter().position(|p| p.name == rest[..at])?;
            Some((n, &rest[at + 1..]))
        });
        let n = match named {
            Some((n, value)) => {
                rest = value;
                n
            }
            None => {
                next += 1;
                next - 1
            }
        };
        if parameters.get(n)?.takes_rest {
            bound[n].1 = rest.to_owned();
            break;
        }
        let (value, left) = argument(rest)?;
        // One that is empty leaves the default.
        if !value.is_empty() {
            bound[n].1 = value;
        }
        rest = left;
    }
    Some(bound)
}

/// Words separated by commas or blanks.
pub fn list(mut rest: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words = Vec::new();
    while !rest.is_empty() {
        let (word, left) = argument(rest)?;
        words.push(word);
        rest = left;
    }
    Some(words)
}

/// The first argument, and what follows its separator: a comma with blanks around it, or
/// blanks. In brackets blanks do not separate.
fn argument(rest: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let rest = rest.trim_ascii();
    let (mut depth, mut at, mut value) = (0_u32, 0, Vec::new());
    while let Some(byte) = rest.get(at) {
        match byte {
            b',' => break,
            b' ' | b'\t' if depth == 0 => break,
            b'"' => {
                let length = rest[at + 1..].iter().position(|b| *b == b'"')?;
                let quoted = &rest[at + 1..at + 1 + length];
                // What a backslash means there is not followed.
                if quoted.contains(&b'\\') {
                    return None;
                }
                value.extend_from_slice(quoted);
                at += length + 2;
                continue;
            }
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        value.push(*byte);
        at += 1;
    }
    let left = rest[at..].trim_ascii_start();
    let left = left.strip_prefix(b",").unwrap_or(left).trim_ascii_start();
    Some((value, left))
}

/// A body with its names replaced: `\name`, `\()` for nothing, and `\@` for how many macros
/// were used before.
pub fn substitute(body: &[u8], bound: &[Binding], uses: Option<u32>) -> Vec<u8> {
    let mut out = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(at) = rest.iter().position(|b| *b == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.iter().position(|b| !is_symbol(*b));
        let name = &rest[..end.unwrap_or(rest.len())];
        if let Some((_, value)) = bound.iter().find(|(bound, _)| bound == name) {
            out.extend_from_slice(value);
            rest = &rest[name.len()..];
        } else if let Some(left) = rest.strip_prefix(b"()") {
            rest = left;
        } else if let (Some(left), Some(uses)) = (rest.strip_prefix(b"@"), uses) {
            out.extend_from_slice(uses.to_string().as_bytes());
            rest = left;
        } else {
            out.push(b'\\');
        }
    }
    out.extend_from_slice(rest);
    out
}

/// The value of an expression of numbers; `None` if it has symbols, or is none.
pub fn number(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let mut parser = Parser {
        rest: text.trim_start(),
    };
    let value = parser.sum()?;
    parser.rest.is_empty().then_some(value)
}

struct Parser<'t> {
    rest: &'t str,
}

impl Parser<'_> {
    fn takes(&mut self, operator: &str) -> bool {
        match self.rest.strip_prefix(operator) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn sum(&mut self) -> Option<i64> {
        let mut value = self.product()?;
        loop {
            if self.takes("+") {
                value = value.checked_add(self.product()?)?;
            } else if self.takes("-") {
                value = value.checked_sub(self.product()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn product(&mut self) -> Option<i64> {
        let mut value = self.atom()?;
        loop {
            if self.takes("*") {
                value = value.checked_mul(self.atom()?)?;
            } else if self.takes("/") {
                value = value.checked_div(self.atom()?)?;
            } else if self.takes("%") {
                value = value.checked_rem(self.atom()?)?;
            } else if self.takes("<<") {
                value = value.checked_shl(u32::try_from(self.atom()?).ok()?)?;
            } else if self.takes(">>") {
                value = value.checked_shr(u32::try_from(self.atom()?).ok()?)?;
            } else {
                return Some(value);
            }
        }
    }

    fn atom(&mut self) -> Option<i64> {
        if self.takes("-") {
            return self.atom()?.checked_neg();
        }
        if self.takes("(") {
            let value = self.sum()?;
            return self.takes(")").then_some(value);
        }
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric());
        let (digits, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest.trim_start();
        match digits.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16).ok(),
            None if digits.len() > 1 && digits.starts_with('0') => {
                i64::from_str_radix(digits, 8).ok()
            }
            None => digits.parse().ok(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: Vec<Vec<u8>>) -> Vec<String> {
        let text = |b: Vec<u8>| String::from_utf8_lossy(&b).into_owned();
        bytes.into_iter().map(text).collect()
    }

    #[test]
    fn arguments_are_separated_by_commas_or_blanks() {
        let found = list(b"%rax, 8(%rdi) \"a, b\" (1 + 2),,x").expect("words");
        assert_eq!(text(found), ["%rax", "8(%rdi)", "a, b", "(1 + 2)", "", "x"]);
    }

    #[test]
    fn arguments_are_bound_by_place_by_name_and_by_default() {
        let (name, parameters) = parameters(b"Load from:req, to=%rax rest:vararg").expect("it is");
        assert_eq!(name, b"load");
        let values = |rest: &[u8]| {
            let bound = bind(&parameters, rest)?;
            Some(text(bound.into_iter().map(|(_, value)| value).collect()))
        };
        let all = |words: [&str; 3]| Some(words.map(str::to_owned).to_vec());
        assert_eq!(values(b"%rdi"), all(["%rdi", "%rax", ""]));
        assert_eq!(values(b"to=%rcx, %rdi"), all(["%rdi", "%rcx", ""]));
        assert_eq!(values(b"%rdi,, 1, 2 3"), all(["%rdi", "%rax", "1, 2 3"]));
    }

    #[test]
    fn names_in_a_body_are_replaced() {
        let bound = [(b"r".to_vec(), b"%rax".to_vec())];
        let made = substitute(b"mov \\r, \\r\\()d\n.L\\@: \\rx", &bound, Some(7));
        assert_eq!(String::from_utf8_lossy(&made), "mov %rax, %raxd\n.L7: \\rx");
    }

    #[test]
    fn numbers() {
        assert_eq!(number(b" 2 * (3+0x10) - 010 "), Some(30));
        for bad in [&b"n"[..], b"2+", b"1/0", b"(1", b""] {
            assert_eq!(number(bad), None);
        }
    }
}
