//! Macros that have the name of an instruction, `.macro ret`: what is printed after them
//! would become something else.

use foldhash::HashMap;

use super::marks::StatementIdx;
use super::print::Obstacle;
use super::statement::{Statement, StatementKind, split};
use crate::refusal::RefusalCode;

/// The macros of a text that a text which was printed from it uses more often.
pub fn find(text: &[u8], statements: &[Statement], printed: &[u8]) -> Vec<Obstacle> {
    let definitions: Vec<(u32, Vec<u8>)> = (0..)
        .zip(statements)
        .filter(|(_, s)| is_inside(s) && s.name(text) == b".macro")
        .map(|(k, s)| (k, defined(s.rest(text))))
        .collect();
    if definitions.is_empty() {
        return Vec::new();
    }
    let before = uses(text, statements);
    let after = uses(printed, &split(printed));
    let more = |name: &[u8]| after.get(name) > before.get(name);
    let shadowing = definitions.iter().filter(|(_, name)| more(name));
    let obstacle = |(k, _): &(u32, Vec<u8>)| Obstacle {
        at: StatementIdx(*k),
        code: RefusalCode::Statement,
        reason: "a macro with the name of an instruction that sequences have; name it otherwise"
            .to_owned(),
    };
    shadowing.map(obstacle).collect()
}

/// The name that a definition gives; `as` compares names in lower case.
fn defined(rest: &[u8]) -> Vec<u8> {
    let end = rest
        .iter()
        .position(|b| b.is_ascii_whitespace() || *b == b',');
    rest[..end.unwrap_or(rest.len())].to_ascii_lowercase()
}

/// How often each name begins a statement where a macro of some name is known.
fn uses(text: &[u8], statements: &[Statement]) -> HashMap<Vec<u8>, u32> {
    let mut uses = HashMap::default();
    for statement in statements.iter().filter(|s| is_inside(s)) {
        *uses
            .entry(statement.name(text).to_ascii_lowercase())
            .or_default() += 1;
    }
    uses
}

fn is_inside(statement: &Statement) -> bool {
    matches!(
        statement.kind,
        StatementKind::Opaque | StatementKind::Definition
    )
}
