//! The expressions in an instruction's text that the assembler left to the
//! linker: printed again as they were written.

use std::borrow::Cow;

use iced_x86::{Instruction, Register};

use super::expression::{quoted, split};
use super::statement::is_prefix;

/// The operands of an instruction's statement: what follows its mnemonic, which follows
/// prefixes (`lock addl`, `rep/movsb`, `{vex} vaddps`). Comments are left out.
pub fn of(statement: &[u8]) -> Cow<'_, [u8]> {
    match without_comments(statement) {
        Cow::Borrowed(text) => Cow::Borrowed(behind_mnemonic(text)),
        Cow::Owned(text) => Cow::Owned(behind_mnemonic(&text).to_owned()),
    }
}

fn behind_mnemonic(mut rest: &[u8]) -> &[u8] {
    loop {
        rest = rest.trim_ascii_start();
        if rest.starts_with(b"{") {
            let close = rest.iter().position(|b| *b == b'}');
            rest = close.map_or(&[][..], |close| &rest[close + 1..]);
            continue;
        }
        let end = rest
            .iter()
            .position(|b| b.is_ascii_whitespace() || *b == b'/');
        let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
        rest = behind.trim_ascii_start();
        if !is_prefix(word) {
            return rest;
        }
        // `/` separates prefixes, too (as.info, "i386-Prefixes").
        rest = rest.strip_prefix(b"/").unwrap_or(rest);
    }
}

/// A statement with a blank for each comment in it. Strings may hold what looks like one.
pub fn without_comments(statement: &[u8]) -> Cow<'_, [u8]> {
    if !statement.windows(2).any(|two| two == b"/*") {
        return Cow::Borrowed(statement);
    }
    let (mut out, mut rest) = (Vec::with_capacity(statement.len()), statement);
    while !rest.is_empty() {
        if let Some(comment) = rest.strip_prefix(b"/*") {
            let close = comment.windows(2).position(|two| two == b"*/");
            rest = close.map_or(&[], |close| &comment[close + 2..]);
            out.push(b' ');
            continue;
        }
        let (word, behind) = rest.split_at(quoted(rest));
        out.extend_from_slice(word);
        rest = behind;
    }
    Cow::Owned(out)
}

/// Whether an instruction's memory operand has a base or an index.
pub fn is_based(iced: &Instruction) -> bool {
    iced.memory_base() != Register::None || iced.memory_index() != Register::None
}

/// The displacement of the memory operand of an instruction's operands,
/// `sym+4` of `%eax, %gs:sym+4(,%rdx,8)`. `based` says that the operand has a base or an
/// index, which are in the parentheses at its end, by whatever names: registers may have
/// others (`.set ptr, %rdi`), or no `%`. `None` if it cannot be told which operand it is.
pub fn displacement(operands: &[u8], based: bool) -> Option<&[u8]> {
    let mut found = split(operands).map(without_mask).filter(|o| {
        let register = o.starts_with(b"%") && !o.contains(&b':');
        !o.starts_with(b"$") && !register && (!based || o.ends_with(b")"))
    });
    let operand = found.next().filter(|_| found.next().is_none())?;
    let operand = operand.strip_prefix(b"*").unwrap_or(operand);
    let operand = match operand.iter().position(|b| *b == b':') {
        Some(colon) if operand.starts_with(b"%") => &operand[colon + 1..],
        _ => operand,
    };
    let open = operand.iter().rposition(|b| *b == b'(');
    let end = open.filter(|o| based || operand[*o..].iter().any(|b| matches!(b, b'%' | b',')));
    let expression = operand[..end.unwrap_or(operand.len())].trim_ascii();
    // A segment without `%` is no part of an expression.
    let plain = expression.starts_with(b"\"") || !expression.contains(&b':');
    (plain && !expression.is_empty()).then_some(expression)
}

/// An operand without the braces behind it, `x(%rdi)` of `x(%rdi){%k1}{z}`.
fn without_mask(operand: &[u8]) -> &[u8] {
    let mut operand = operand.trim_ascii();
    while let (Some(open), true) = (
        operand.iter().rposition(|b| *b == b'{'),
        operand.ends_with(b"}"),
    ) {
        operand = operand[..open].trim_ascii_end();
    }
    operand
}

/// The immediate, `sym+4` of `$sym+4, (%rax)`.
pub fn immediate(operands: &[u8]) -> Option<&[u8]> {
    split(operands).find_map(|o| o.trim_ascii().strip_prefix(b"$"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disp(operands: &str) -> Option<String> {
        let based = operands.contains("(,") || operands.contains("(%") || operands.contains("(r");
        displacement(operands.as_bytes(), based).map(|d| String::from_utf8_lossy(d).into_owned())
    }

    #[test]
    fn operands_follow_prefixes_and_comments() {
        let operands = |text: &'static str| {
            let operands = of(text.as_bytes()).into_owned();
            String::from_utf8(operands).expect("ASCII")
        };
        for text in [
            "lock addq $1, x(,%rdi,8)",
            "lock/addq $1, x(,%rdi,8)",
            "xacquire lock addq $1, x(,%rdi,8)",
            "addq $1, x(,%rdi,8)",
            "{disp32} addq $1, x(,%rdi,8)",
            "{disp32}addq\t$1, x(,%rdi,8)",
            "LOCK addq $1, x(,%rdi,8)",
        ] {
            assert_eq!(operands(text), "$1, x(,%rdi,8)", "{text}");
        }
        assert_eq!(
            disp_of("mov /* a, b( */ x(%rdi), %rax").as_deref(),
            Some("x")
        );
        assert_eq!(operands("ret"), "");
        assert_eq!(operands("jne,pn x"), "x");
    }

    fn disp_of(statement: &str) -> Option<String> {
        disp(&String::from_utf8_lossy(&of(statement.as_bytes())))
    }

    #[test]
    fn displacements() {
        assert_eq!(disp("%eax, sym+4(,%rdx,8)").as_deref(), Some("sym+4"));
        assert_eq!(disp("$5, %gs:(a-b)*2(%rdx)").as_deref(), Some("(a-b)*2"));
        assert_eq!(disp("*.L4(,%rax,8)").as_deref(), Some(".L4"));
        assert_eq!(disp("$sym, (%rax)"), None);
        assert_eq!(disp("%eax, (a+b)").as_deref(), Some("(a+b)"));
        assert_eq!(disp("$',', x(%rdi)").as_deref(), Some("x"));
        assert_eq!(disp("\"a,b\"+4(%rdi), %eax").as_deref(), Some("\"a,b\"+4"));
        assert_eq!(disp("x(%rdi){%k1}{z}, %zmm1").as_deref(), Some("x"));
        assert_eq!(disp("(x)(%rip), %rax").as_deref(), Some("(x)"));
        // Other names of registers.
        assert_eq!(displacement(b"eax, x(ptr)", true), Some(&b"x"[..]));
        assert_eq!(displacement(b"x, eax", false), None);
        assert_eq!(disp("fs:x(rdi), eax"), None);
    }

    #[test]
    fn immediates() {
        assert_eq!(immediate(b"$sym+4, 8(%rax,%rbx)"), Some(&b"sym+4"[..]));
        assert_eq!(immediate(b"8(%rax,%rbx), %ecx"), None);
    }
}
