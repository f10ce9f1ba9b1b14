//! The words of jump tables in a text: `.quad .L5` for a case becomes its number.
//!
//! An object has a relocation for each word, and the text a name. The words are found by
//! the names of the cases' labels, and counted: a text with another number of them than its
//! object is not changed.

use foldhash::{HashMap, HashSet};

use super::directives::is_data;
use super::marks::StatementIdx;
use super::sections::Sections;
use super::statement::StatementKind;
use super::tie::{self, Tied};
use crate::analyse::switches::Switches;
use crate::lift::InstIdx;

/// The directives of tables, each with the numbers of its words.
pub type Words = HashMap<u32, Vec<u32>>;

/// Finds the directives to change.
///
/// # Errors
/// The statement where a word is, or the first one, if the text does not show what the
/// object holds.
pub fn find(tied: Tied<'_, '_>, switches: &Switches) -> Result<Words, StatementIdx> {
    let Tied {
        text, statements, ..
    } = tied;
    let expected = switches.words().count();
    let mut found = Words::default();
    if expected == 0 {
        return Ok(found);
    }
    let names = names(tied, switches);
    let (mut sections, mut count) = (Sections::default(), 0);
    for (k, statement) in statements.iter().enumerate() {
        if statement.kind != StatementKind::Directive {
            continue;
        }
        let (name, rest) = (statement.name(text), statement.rest(text));
        sections.directive(name, rest);
        if !is_data(name) || !sections.is_data() {
            continue;
        }
        let words = rest.split(|b| *b == b',').map(<[u8]>::trim_ascii);
        let numbers: Vec<Option<u32>> = words.map(|word| names.get(word).copied()).collect();
        if numbers.iter().all(Option::is_none) {
            continue;
        }
        let whole: Option<Vec<u32>> = numbers.into_iter().collect();
        let (Some(numbers), b".quad" | b".8byte") = (whole, name) else {
            return Err(StatementIdx(k as u32));
        };
        count += numbers.len();
        found.insert(k as u32, numbers);
    }
    match count == expected {
        true => Ok(found),
        false => Err(StatementIdx(0)),
    }
}

/// The names of the labels at each case.
fn names<'t>(tied: Tied<'t, '_>, switches: &Switches) -> HashMap<&'t [u8], u32> {
    let all = switches.iter().flat_map(|(_, switch)| &switch.cases);
    let cases: HashMap<InstIdx, u32> = all.map(|case| (case.to, case.number)).collect();
    let (mut names, mut twice) = (HashMap::default(), HashSet::default());
    tie::labels(tied, |_, name, i| {
        // A numeric label may be there many times.
        if let (Some(number), true) = (cases.get(&i), twice.insert(name)) {
            names.insert(name, *number);
        } else {
            names.remove(name);
        }
    });
    names
}
