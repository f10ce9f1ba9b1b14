//! The expressions in an instruction's text that the assembler left to the
//! linker: printed again as they were written.

/// The operands of a statement that begins with `name`. What follows a prefix is the
/// mnemonic.
pub fn of<'t>(name: &[u8], rest: &'t [u8]) -> &'t [u8] {
    let rest = rest.trim_ascii_start();
    match (name, rest.iter().position(u8::is_ascii_whitespace)) {
        (b"notrack", Some(end)) => &rest[end..],
        _ => rest,
    }
}

/// The displacement of the memory operand of an instruction's operands,
/// `sym+4` of `%eax, %gs:sym+4(,%rdx,8)`.
pub fn displacement(operands: &[u8]) -> Option<&[u8]> {
    let operand = split(operands).find(|o| {
        let o = o.trim_ascii();
        !o.starts_with(b"$") && (!o.starts_with(b"%") || o.contains(&b':'))
    })?;
    let operand = operand.trim_ascii();
    let operand = operand.strip_prefix(b"*").unwrap_or(operand);
    let operand = match operand.iter().position(|b| *b == b':') {
        Some(colon) if operand.starts_with(b"%") => &operand[colon + 1..],
        _ => operand,
    };
    // The parentheses of base and index come last and hold a register.
    let open = operand.iter().rposition(|b| *b == b'(');
    let end = open.filter(|o| operand[*o..].contains(&b'%') || operand[*o..].contains(&b','));
    let expression = operand[..end.unwrap_or(operand.len())].trim_ascii();
    (!expression.is_empty()).then_some(expression)
}

/// The immediate, `sym+4` of `$sym+4, (%rax)`.
pub fn immediate(operands: &[u8]) -> Option<&[u8]> {
    split(operands).find_map(|o| o.trim_ascii().strip_prefix(b"$"))
}

/// Operands, split at the commas outside parentheses.
fn split(operands: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut depth = 0i32;
    operands.split(move |b| {
        match b {
            b'(' => depth += 1,
            b')' => depth -= 1,
            _ => {}
        }
        *b == b',' && depth == 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disp(operands: &str) -> Option<String> {
        displacement(operands.as_bytes()).map(|d| String::from_utf8_lossy(d).into_owned())
    }

    #[test]
    fn displacements() {
        assert_eq!(disp("%eax, sym+4(,%rdx,8)").as_deref(), Some("sym+4"));
        assert_eq!(disp("$5, %gs:(a-b)*2(%rdx)").as_deref(), Some("(a-b)*2"));
        assert_eq!(disp("*.L4(,%rax,8)").as_deref(), Some(".L4"));
        assert_eq!(disp("$sym, (%rax)"), None);
        assert_eq!(disp("%eax, (a+b)").as_deref(), Some("(a+b)"));
    }

    #[test]
    fn immediates() {
        assert_eq!(immediate(b"$sym+4, 8(%rax,%rbx)"), Some(&b"sym+4"[..]));
        assert_eq!(immediate(b"8(%rax,%rbx), %ecx"), None);
    }
}
