//! Lengths of code as operands of instructions that are replaced:
//!
//! ```text
//!     movl $(1b-0b), (%rdi)      the sequence has the number that the object had
//!     mov  $(1b-0b), %ecx        the line stays, and the assembler counts again
//! ```
//!
//! A length is counted again where its line stays. A sequence is made of the instruction that
//! was assembled, so it has the old number, and the two differ. Such an instruction is refused,
//! and a comparison that would be repeated.

use std::cell::OnceCell;

use foldhash::{HashMap, HashSet};

use super::expression::{self, begins_with_digit, is_nonzero};
use super::operand;
use super::places::{CodeLabels, named};
use super::print::Obstacle;
use super::statement::{Statement, StatementKind};
use super::tie::Tied;
use crate::lift::InstIdx;
use crate::refusal::RefusalCode;

/// Finds the instructions among `replaced` that have a length of code for an operand.
pub fn find(
    Tied {
        text,
        statements,
        tie,
        lengths,
        ..
    }: Tied<'_, '_>,
    replaced: impl Iterator<Item = InstIdx>,
) -> Vec<Obstacle> {
    let found = replaced.filter_map(|i| {
        let k = tie.statement(i)?;
        let operands = statements[k.0 as usize].rest(text);
        if !may_be_length(operands) {
            return None;
        }
        lengths.found().are_in(operands).then(|| Obstacle {
            at: k,
            code: RefusalCode::Statement,
            reason: "a length of code, which changes when the code is rewritten; load it into a \
                     register by `mov`"
                .to_owned(),
        })
    });
    let mut found: Vec<Obstacle> = found.collect();
    found.sort_by_key(|obstacle| obstacle.at);
    found
}

/// Whether operands may name a label or a symbol besides registers: most name none.
fn may_be_length(operands: &[u8]) -> bool {
    names(operands).next().is_some()
}

/// The names in an expression, without numbers.
fn names(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    let numeric = |name: &&[u8]| begins_with_digit(name) && is_nonzero(name).is_some();
    expression::names(expression).filter(move |name| !numeric(name))
}

/// What is a length of code in a text. It is found when something asks for it.
#[derive(Debug)]
pub struct LazyLengths<'t> {
    text: &'t [u8],
    statements: &'t [Statement],
    found: OnceCell<Lengths<'t>>,
}

impl<'t> LazyLengths<'t> {
    /// Nobody has asked yet.
    pub fn of(text: &'t [u8], statements: &'t [Statement]) -> LazyLengths<'t> {
        LazyLengths {
            text,
            statements,
            found: OnceCell::new(),
        }
    }

    pub(super) fn found(&self) -> &Lengths<'t> {
        self.found
            .get_or_init(|| Lengths::find(self.text, self.statements))
    }
}

/// What is a length of code.
#[derive(Debug)]
pub(super) struct Lengths<'t> {
    labels: CodeLabels<'t>,
    /// Symbols that have one for a value.
    symbols: HashSet<&'t [u8]>,
}

impl<'t> Lengths<'t> {
    fn find(text: &'t [u8], statements: &[Statement]) -> Lengths<'t> {
        let mut lengths = Lengths {
            labels: CodeLabels::find(text, statements),
            symbols: HashSet::default(),
        };
        // A symbol may be assigned before those that its value names.
        let mut users: HashMap<&[u8], Vec<&[u8]>> = HashMap::default();
        let mut found = Vec::new();
        for statement in statements {
            let rest = statement.rest(text);
            let symbol = match (statement.kind, statement.name(text)) {
                (StatementKind::Assignment, name) => named(name),
                (StatementKind::Directive, b".set" | b".equ" | b".equiv" | b".eqv") => {
                    names(rest).next().unwrap_or_default()
                }
                _ => continue,
            };
            if lengths.are_in(rest) {
                found.push(symbol);
            }
            for name in names(rest).filter(|name| *name != symbol) {
                users.entry(name).or_default().push(symbol);
            }
        }
        while let Some(symbol) = found.pop() {
            if lengths.symbols.insert(symbol) {
                found.extend(users.remove(symbol).into_iter().flatten());
            }
        }
        lengths
    }

    /// The labels of code.
    pub(super) fn labels(&self) -> &CodeLabels<'t> {
        &self.labels
    }

    /// Whether an expression is a difference with a label of code, or names such a length.
    pub(super) fn are_in(&self, expression: &[u8]) -> bool {
        let expression = &*operand::without_comments(expression);
        let labels = names(expression)
            .filter(|name| self.labels.have(name, true))
            .count();
        names(expression).any(|name| self.symbols.contains(name))
            || labels >= 2 && expression.contains(&b'-')
    }
}
