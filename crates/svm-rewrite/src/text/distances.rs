//! Branches that name their destination by a distance: `jmp .+6`, `.byte 0xeb, 4`,
//! `call 1f+2`. The code that they pass over becomes longer, and they would go elsewhere.
//!
//! A branch to code of the same object must name a label, alone. What a macro becomes is
//! not seen: a branch in one is found here, too, so that the macro is written out.
//!
//! The assembler makes such a branch itself, over the `nop`s of a wide alignment
//! (`.p2align 7`). It makes them again of the rewritten text.

use std::cell::LazyCell;

use super::directives::{aligns, declares, makes_bytes, switches, width};
use super::expression::{self, Token, is_nonzero, quoted};
use super::marks::StatementIdx;
use super::operand;
use super::print::Obstacle;
use super::statement::{Statement, StatementKind};
use super::tie::Tied;
use crate::lift::{Destination, InstIdx, Lifted, is_filler};
use crate::refusal::RefusalCode;

/// Finds such branches.
pub fn find(
    Tied {
        text,
        statements,
        tie,
        lifted,
        ..
    }: Tied<'_, '_>,
) -> Vec<Obstacle> {
    let alignments = LazyCell::new(|| alignments(text, statements));
    let is_of_alignment = |i| {
        let before = tie.before(i).filter(|k| alignments[k.0 as usize]);
        let before = before.and_then(|k| tie.inst(k));
        before.is_some_and(|j| lifted.inst(j).section == lifted.inst(i).section)
    };
    let insts = lifted.insts.iter().enumerate();
    let branches = insts.filter(|(_, inst)| {
        matches!(
            inst.target,
            Some(Destination::Inst(_) | Destination::Behind(_))
        )
    });
    let found = branches.filter_map(|(n, inst)| {
        let i = InstIdx(n as u32);
        let named = match tie.statement(i) {
            Some(k) => is_named(&statements[k.0 as usize], text),
            None => {
                is_of_alignment(i) && passes_fillers(lifted, i)
                    || is_made_with_a_name(text, statements, tie.near(i)?, inst.iced.len())
            }
        };
        (!named).then(|| Obstacle {
            at: tie.near(i).unwrap_or(StatementIdx(0)),
            code: RefusalCode::Statement,
            reason: "a branch by a distance, which changes with the code that it passes over; \
                     name a label"
                .to_owned(),
        })
    });
    found.collect()
}

/// For each statement, whether all that is made between it and the next instruction is made by
/// alignments: there is one, and no directive that is not known.
fn alignments(text: &[u8], statements: &[Statement]) -> Vec<bool> {
    let mut alone = vec![false; statements.len()];
    let (mut aligned, mut known) = (false, true);
    for (k, statement) in statements.iter().enumerate().rev() {
        alone[k] = aligned && known;
        let name = statement.name(text);
        match statement.kind {
            StatementKind::Label | StatementKind::Assignment => {}
            StatementKind::Directive if aligns(name) => aligned = true,
            // Bytes that these make in code are of a run.
            StatementKind::Directive if makes_bytes(name) || switches(name) || declares(name) => {}
            StatementKind::Directive | StatementKind::Opaque | StatementKind::Definition => {
                known = false;
            }
            StatementKind::Instruction | StatementKind::Prefix => (aligned, known) = (false, true),
        }
    }
    alone
}

/// Whether a jump forward passes over fillers alone.
fn passes_fillers(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let inst = lifted.inst(i);
    let Some(Destination::Inst(to)) = inst.target else {
        return false;
    };
    let same = lifted.inst(to).section == inst.section && to > i;
    same && lifted.insts[i.0 as usize + 1..to.0 as usize]
        .iter()
        .all(|inst| is_filler(&inst.iced))
}

/// Whether a statement names a label and nothing else. `jmp .` goes to itself.
fn is_named(statement: &Statement, text: &[u8]) -> bool {
    let operand = operand::without_comments(statement.rest(text));
    let operand = operand.trim_ascii();
    // Of `jne,pn x` and `bnd jmp x` the last word. Before `4 + x` is no operator.
    let (before, name) = operand.split_at(last_word(operand));
    let word =
        |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b' ' | b'\t' | b'.' | b',' | b'{' | b'}');
    statement.kind == StatementKind::Instruction && before.iter().all(word) && is_label(name)
}

/// Whether an expression is a label and nothing else.
pub(super) fn is_label(expression: &[u8]) -> bool {
    // Compilers write `($f)` for a name that begins with a dollar sign.
    let inner = expression.strip_prefix(b"(");
    let inner = inner.and_then(|inner| inner.strip_suffix(b")"));
    let mut tokens = expression::tokens(inner.unwrap_or(expression));
    let names = match tokens.next() {
        Some(Token::Name(_)) => true,
        Some(Token::Number(number)) => is_nonzero(number).is_none(),
        _ => false,
    };
    names && tokens.next().is_none()
}

/// Where the last word begins; blanks in quotes are a part of it.
fn last_word(text: &[u8]) -> usize {
    let (mut at, mut begins) = (0, 0);
    while at < text.len() {
        at += quoted(&text[at..]);
        if matches!(text[at - 1], b' ' | b'\t') {
            begins = at;
        }
    }
    begins
}

/// Whether one of the directives that make an instruction of `len` bytes has a name, as
/// `.byte 0xe9; .long .L5 - 2f; 2:`.
fn is_made_with_a_name(
    text: &[u8],
    statements: &[Statement],
    first: StatementIdx,
    len: usize,
) -> bool {
    let mut made = 0;
    for statement in &statements[first.0 as usize..] {
        match (statement.kind, width(statement.name(text))) {
            (StatementKind::Label, _) => {}
            (StatementKind::Directive, Some(_)) if !statement.is_constant(text) => return true,
            (StatementKind::Directive | StatementKind::Prefix, Some(width)) if made < len => {
                made += width * statement.rest(text).split(|b| *b == b',').count();
            }
            _ => return false,
        }
        if made >= len {
            return false;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::statement::split;
    use super::*;

    #[test]
    fn labels_alone_are_names() {
        let is = |text: &str| is_named(&split(text.as_bytes())[0], text.as_bytes());
        for good in [
            "jmp .L5", "jne 1b", "call f@PLT", "jmp .", "jne,pn x", "loop 22f", "bnd jmp f",
            "jmp \"ab\"", "jmp /* 1 + */ f", "jmp ($f)", "call \"a b+c\"", "jmp \"a b\"@PLT",
        ] {
            assert!(is(good), "{good}");
        }
        for bad in [
            "jmp .+6", "jmp . + 6", "jmp .-2", "jmp 1f+3", "call f+4", "jmp 5", ".byte 1",
            "call f@PLT+4", "jmp 4 + f", "jmp -4+ 1f", "call \"a b\"+4", "jmp (f+4)",
        ] {
            assert!(!is(bad), "{bad}");
        }
    }

    #[test]
    fn alignments_alone_make_what_is_between_instructions() {
        let is = |text: &str| alignments(text.as_bytes(), &split(text.as_bytes()))[0];
        for good in [
            "ret\n.p2align 7\nx: nop",
            "ret\n.size f, .-f\n.text\n.balign 128\n.globl g\ng: nop",
            "jmp x\n.section .rodata\n.long 1\n.text\n.align 128, 0x90\nx: nop",
            "ret\n.p2align 7",
            "ret\n.p2align 7\nx: nop\n.dc.b 0xeb, 1\n.p2align 7",
        ] {
            assert!(is(good), "{good}");
        }
        for bad in [
            "ret\nx: nop\n.p2align 7",
            "ret\n.dc.b 0xeb, 1\n.p2align 7\nnop",
            "ret\n.p2align 7\n.dcb.b 2, 0xeb\nnop",
            "ret\n.long 1\nnop",
            "ret\n.org 5\nnop",
        ] {
            assert!(!is(bad), "{bad}");
        }
    }

    #[test]
    fn directives_with_a_name_make_branches_to_it() {
        let is = |text: &str| {
            is_made_with_a_name(text.as_bytes(), &split(text.as_bytes()), StatementIdx(0), 5)
        };
        assert!(is(".byte 0xe9\n.long .L5 - 2f\n2:"));
        assert!(!is(".byte 0xe9\n.long 20\n.long x"));
        assert!(!is("m 5\n"));
    }
}
