//! Finds the tables of a text, statement by statement.

use foldhash::{HashMap, HashSet};

use super::super::arguments::number;
use super::super::directives::{aligns, declares, is_assignment, makes_bytes, switches};
use super::super::expression::{begins_with_digit, names};
use super::super::sections::{Sections, Spot};
use super::super::statement::{Statement, StatementKind};
use super::uses::{Uses, ends};
use super::{Named, Table};

/// The tables of a text.
pub fn tables<'t>(text: &'t [u8], statements: &[Statement], uses: &Uses<'t>) -> Vec<Table> {
    let finder = Finder {
        text,
        statements,
        uses,
        behind: behind(text, statements),
        sections: Sections::default(),
        ended: HashMap::default(),
    };
    finder.tables()
}

/// For each statement the next one in the same section.
fn behind(text: &[u8], statements: &[Statement]) -> Vec<Option<usize>> {
    let mut behind = vec![None; statements.len()];
    let mut sections = Sections::default();
    let mut last = HashMap::default();
    for (k, statement) in statements.iter().enumerate() {
        let name = statement.name(text);
        if statement.kind == StatementKind::Directive && switches(name) {
            sections.directive(name, statement.rest(text));
        } else if let Some(before) = last.insert(sections.spot(), k) {
            behind[before] = Some(k);
        }
    }
    behind
}

struct Finder<'t, 'u> {
    text: &'t [u8],
    statements: &'u [Statement],
    uses: &'u Uses<'t>,
    behind: Vec<Option<usize>>,
    sections: Sections<'t>,
    /// Where nothing runs on to what comes next, for each place of code, and the labels there.
    ended: HashMap<Spot<'t>, Option<Vec<usize>>>,
}

impl<'t> Finder<'t, '_> {
    fn tables(mut self) -> Vec<Table> {
        let (mut k, mut found) = (0, Vec::new());
        while k < self.statements.len() {
            match self.table(k) {
                Some(table) => {
                    k = table.statements.end;
                    found.push((self.sections.spot(), table));
                }
                None => {
                    self.pass(k);
                    k += 1;
                }
            }
        }
        let is_apart = !self.has_several(&found);
        let found = found.into_iter().filter(|_| is_apart);
        found.map(|(_, table)| table).collect()
    }

    /// Whether there are two tables that it names in one section: one may be reached from another.
    fn has_several(&self, tables: &[(Spot<'t>, Table)]) -> bool {
        let mut sections = HashSet::default();
        let is_named = |table: &Table| table.labels.iter().any(|label| self.is_named(label.at));
        let mut named = tables.iter().filter(|(_, table)| is_named(table));
        !named.all(|(section, _)| sections.insert(*section))
    }

    /// Goes on past a statement that is in no table.
    fn pass(&mut self, k: usize) {
        let statement = &self.statements[k];
        let (name, rest) = (statement.name(self.text), statement.rest(self.text));
        if statement.kind == StatementKind::Directive && switches(name) {
            self.sections.directive(name, rest);
            return;
        }
        let spot = self.sections.spot();
        let is_own = self.is_own(name);
        let ended = self.ended.entry(spot).or_insert_with(|| Some(Vec::new()));
        match statement.kind {
            // What is run begins there, in bytes if nothing else follows.
            StatementKind::Label if !is_own => *ended = None,
            StatementKind::Label => {
                if let Some(labels) = ended {
                    labels.push(k);
                }
            }
            StatementKind::Definition => {}
            StatementKind::Directive if is_assignment(name) || declares(name) || aligns(name) => {}
            _ => *ended = ends(statement.text(self.text)).then(Vec::new),
        }
    }

    /// The table that begins with a statement.
    fn table(&self, k: usize) -> Option<Table> {
        if !self.sections.is_code() || !self.sections.is_apart() {
            return None;
        }
        // A section that nothing was put into begins with nothing before it.
        let labels = match self.ended.get(&self.sections.spot()) {
            Some(None) => return None,
            Some(Some(labels)) => &**labels,
            None => &[],
        };
        // What has a name stays at it, also for others.
        let has_name = |k: &usize| self.is_named(*k) || self.uses.global.contains(self.name(*k));
        if labels.iter().any(has_name) {
            return None;
        }
        let table = self.whole(k)?;
        let is_named = table.labels.iter().any(|label| self.is_named(label.at));
        let closed = self.is_closed(table.statements.end - 1, is_named);
        closed.then_some(table)
    }

    /// As many statements as make one.
    fn whole(&self, start: usize) -> Option<Table> {
        let (mut first, mut end, mut has_bytes) = (None, None, false);
        let (mut own, mut labels) = (HashSet::default(), Vec::new());
        let (mut gaps, mut switches) = (Vec::new(), Vec::new());
        for (k, statement) in self.statements.iter().enumerate().skip(start) {
            let name = statement.name(self.text);
            match statement.kind {
                StatementKind::Label if self.is_own(name) => {
                    first.get_or_insert(k);
                    own.insert(name);
                    labels.push(k);
                }
                StatementKind::Directive if is_table(name) => {
                    first.get_or_insert(k);
                    end = Some(k + 1);
                    has_bytes = true;
                }
                StatementKind::Directive if name == b".size" => {
                    // It has a distance from its symbol.
                    if names(statement.rest(self.text)).any(|symbol| own.contains(symbol)) {
                        end = Some(k + 1);
                    }
                }
                StatementKind::Directive if aligns(name) => {
                    if first.is_some() {
                        gaps.push(k);
                    }
                }
                StatementKind::Directive if describes(name) => {}
                // It is there already.
                StatementKind::Directive if name == b".text" && self.is_in_text() => {
                    switches.push(k);
                }
                _ => break,
            }
            // It would begin with what describes something else.
            if k == start && (describes(name) || name == b".text") {
                return None;
            }
        }
        let end = end.filter(|_| has_bytes)?;
        gaps.retain(|k| *k < end);
        labels.retain(|k| *k < end);
        switches.retain(|k| *k < end);
        Some(Table {
            statements: start..end,
            first: first?,
            gaps,
            switches,
            labels: labels.into_iter().map(|k| self.named(k)).collect(),
        })
    }

    fn is_in_text(&self) -> bool {
        let mut text = Sections::default();
        text.directive(b".text", b"");
        text.spot() == self.sections.spot()
    }

    fn name(&self, k: usize) -> &'t [u8] {
        self.statements[k].name(self.text)
    }

    /// Which places a label is named for. Others may have the address of a global one.
    fn named(&self, k: usize) -> Named {
        let name = self.name(k);
        let places = self.uses.places.get(name);
        let of = |places: Option<&Vec<i64>>| places.cloned().unwrap_or_default();
        let mut taken = of(places.map(|places| &places.taken));
        taken.extend(self.uses.global.contains(name).then_some(0));
        Named {
            at: k,
            read: of(places.map(|places| &places.read)),
            taken,
        }
    }

    /// Whether the text names the label that is a statement.
    fn is_named(&self, k: usize) -> bool {
        let name = self.name(k);
        self.uses.places.contains_key(name) || self.uses.others.contains(name)
    }

    /// Whether a label may be a table's: it is named as a place to read, or by its address, and no
    /// function is there.
    fn is_own(&self, label: &[u8]) -> bool {
        let uses = self.uses;
        !begins_with_digit(label)
            && !uses.others.contains(label)
            && !uses.functions.contains(label)
            && (uses.objects.contains(label) || !uses.global.contains(label))
    }

    /// Whether nothing behind a statement can mean the table's bytes by its own place: the section
    /// ends, or, if the text names the table, code is aligned whose address nobody here takes.
    fn is_closed(&self, last: usize, is_named: bool) -> bool {
        let (mut is_aligned, mut is_code) = (false, false);
        let mut next = self.behind[last];
        while let Some(k) = next {
            next = self.behind[k];
            let (statement, name) = (&self.statements[k], self.name(k));
            match statement.kind {
                StatementKind::Directive if aligns(name) => {
                    is_aligned |= is_wide(statement.rest(self.text));
                }
                StatementKind::Directive if declares(name) => {}
                StatementKind::Label
                    if begins_with_digit(name) || self.uses.places.contains_key(name) =>
                {
                    return false;
                }
                // A function may begin with bytes.
                StatementKind::Label => is_code |= !self.is_own(name),
                StatementKind::Instruction => return is_aligned && is_named,
                _ => return is_aligned && is_named && is_code,
            }
        }
        true
    }
}

/// Whether an alignment is of more than a byte, whatever it takes: `4,,10` may be none.
fn is_wide(operands: &[u8]) -> bool {
    let mut fields = operands.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let to = fields.next().and_then(number);
    to.is_some_and(|to| to > 1) && fields.nth(1).is_none()
}

/// Directives that make the bytes of tables.
fn is_table(name: &[u8]) -> bool {
    makes_bytes(name) && !matches!(name, b".insn" | b".nops" | b".incbin")
}

/// Directives that say something of a table's symbol.
fn describes(name: &[u8]) -> bool {
    matches!(
        name,
        b".globl" | b".global" | b".hidden" | b".type" | b".size" | b".local"
    )
}
