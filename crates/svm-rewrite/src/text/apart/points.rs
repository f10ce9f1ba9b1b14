//! Marks of the places of tables: labels that the assembler finds again in an object.

use std::ops::Range;

use elf_loader::{Object, Place, SectionId};
use foldhash::HashMap;

use super::super::marks::PREFIX;

/// A place of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Point {
    First,
    /// The label of this number.
    Label(usize),
    /// Where an alignment begins.
    Gap(usize),
    GapEnd(usize),
    End,
}

impl Point {
    /// The label for it in the `table`th table.
    pub fn name(self, table: usize) -> String {
        match self {
            Point::First => format!("{PREFIX}{table}.first"),
            Point::Label(n) => format!("{PREFIX}{table}.{n}"),
            Point::Gap(n) => format!("{PREFIX}{table}.gap{n}"),
            Point::GapEnd(n) => format!("{PREFIX}{table}.filled{n}"),
            Point::End => format!("{PREFIX}{table}.end"),
        }
    }

    /// The table and the place of a symbol.
    fn of(symbol: &str) -> Option<(usize, Point)> {
        let (table, point) = symbol.strip_prefix(PREFIX)?.split_once('.')?;
        let point = match point {
            "first" => Point::First,
            "end" => Point::End,
            other => match (other.strip_prefix("gap"), other.strip_prefix("filled")) {
                (Some(number), _) => Point::Gap(number.parse().ok()?),
                (None, Some(number)) => Point::GapEnd(number.parse().ok()?),
                (None, None) => Point::Label(other.parse().ok()?),
            },
        };
        Some((table.parse().ok()?, point))
    }
}

/// Where the points of an object's tables are.
pub struct Points(HashMap<(usize, Point), (SectionId, usize)>);

impl Points {
    pub fn of(object: &Object<'_>) -> Points {
        let symbols = object.symbols().filter_map(|(_, symbol)| {
            let Place::In(section) = symbol.place else {
                return None;
            };
            let at = usize::try_from(symbol.value).ok()?;
            Some((Point::of(&symbol.name)?, (section, at)))
        });
        Points(symbols.collect())
    }

    /// The offset of a point in its section.
    pub fn at(&self, table: usize, point: Point) -> Option<usize> {
        self.0.get(&(table, point)).map(|(_, at)| *at)
    }

    /// Where the tables in a section are.
    pub fn all(&self, section: SectionId) -> impl Iterator<Item = Range<u64>> {
        let first = self
            .0
            .iter()
            .filter_map(move |((table, point), (at, from))| {
                let is_here = *point == Point::First && *at == section;
                is_here.then_some((*table, *from as u64))
            });
        first.filter_map(|(table, from)| Some(from..self.at(table, Point::End)? as u64))
    }

    /// Where a table's bytes are.
    pub fn bytes(&self, object: &Object<'_>, table: usize) -> Option<(SectionId, Range<usize>)> {
        let (section, from) = *self.0.get(&(table, Point::First))?;
        let (end, to) = *self.0.get(&(table, Point::End))?;
        let whole = section == end && object.section(section).data.len() >= to;
        (whole && from <= to).then_some((section, from..to))
    }
}
