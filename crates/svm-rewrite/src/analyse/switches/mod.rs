//! Jump tables: indirect jumps that stay inside their function, and every place that each
//! may go to.
//!
//! ```text
//!     jmp   *T(,%i,8)                 mov T(,%i,8),%r ; ... ; jmp *%r
//!                                     (or through a thunk)
//! T:  .quad label ...                 in read-only data
//! ```
//!
//! An object has no bounds of a table, but it has relocations. The table is the run of
//! words around `T` that are relocated to labels of the jump's own function: an index may be
//! negative, and then `T` is not where the table begins. It counts if
//!
//! * the section is loaded, is not writable but by a loader, and is not one of the kernel's
//!   tables;
//! * the run ends where the relocations to code end, or where something else is referred
//!   to. A word for other code in the middle of a run is no label of a switch;
//! * on all ways to the jump the register was loaded so, and nothing reads it in between.
//!
//! A word outside the run would be an index that the source does not have. Rewritten code
//! compares what was loaded with what the run holds, and stops if it is nothing of that
//! (`encode/switch.rs`); so nothing rests on the index.
//!
//! Something else may read the words: it refers into the run, or reads the register that the
//! table's address or the word is in. Such a jump is refused, because in a module the words
//! are changed. And an instruction may name a label. Unless it is only passed to calls, all
//! indirect jumps of the function must be switches ([`refusals`]).

mod computed;
mod escape;
mod find;
mod kept;
mod reaching;
mod relative;

use std::cell::LazyCell;
use std::collections::{BTreeMap, BTreeSet};

use elf_loader::consts::{SHF_ALLOC, SHF_WRITE, SHT_PROGBITS};
use elf_loader::{Section, SectionId, special};
use foldhash::{HashMap, HashSet};

use crate::analyse::class::Callee;
use crate::lift::{CodeIdx, InstIdx, Lifted, RelocatedValue};

pub use computed::refusals;
use escape::{Known, Until, Walk};
use find::{Candidate, Finder};

/// A label of a switch.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Where control goes.
    pub to: InstIdx,
    /// Its number in the function; of distances, in the table.
    pub number: u32,
}

/// A word of a table.
#[derive(Clone, Copy, Debug)]
pub struct Word {
    /// The number of its case.
    pub number: u32,
    /// Its size in bytes.
    pub width: u64,
}

/// A jump through a table.
#[derive(Clone, Debug)]
pub struct Switch {
    /// Where the address comes from.
    pub callee: Callee,
    /// From where the words of the table count, if they are distances.
    pub from: Option<RelocatedValue>,
    /// The labels, each once, in the order of their addresses.
    pub cases: Vec<Case>,
}

/// All switches of an object, and the words of their tables.
#[derive(Clone, Debug, Default)]
pub struct Switches {
    by_jump: HashMap<u32, Switch>,
    /// The words of tables.
    words: BTreeMap<(SectionId, u64), Word>,
    /// Jumps whose table, or what it holds, something else reads.
    leaks: Vec<InstIdx>,
    /// Other jumps to labels ([`computed`]).
    computed: Vec<InstIdx>,
}

impl Switches {
    /// The switch whose jump this is.
    pub fn at(&self, jump: InstIdx) -> Option<&Switch> {
        self.by_jump.get(&jump.0)
    }

    /// Whether the word there belongs to a table.
    pub fn holds(&self, section: SectionId, offset: u64) -> bool {
        self.words.contains_key(&(section, offset))
    }

    /// The words of all tables: section, offset, and what it is.
    pub fn words(&self) -> impl Iterator<Item = (SectionId, u64, Word)> {
        let words = self.words.iter();
        words.map(|((section, offset), word)| (*section, *offset, *word))
    }

    /// All of them, by their jumps, in order.
    pub fn iter(&self) -> impl Iterator<Item = (InstIdx, &Switch)> {
        let mut jumps: Vec<u32> = self.by_jump.keys().copied().collect();
        jumps.sort_unstable();
        let all = jumps.into_iter().map(InstIdx);
        all.filter_map(|jump| Some((jump, self.at(jump)?)))
    }

    /// Where each goes, by the jump's instruction.
    fn cases(&self) -> HashMap<u32, Vec<InstIdx>> {
        let all = self.by_jump.iter();
        all.map(|(jump, switch)| (*jump, switch.cases.iter().map(|case| case.to).collect()))
            .collect()
    }

    pub fn find(lifted: &Lifted<'_>) -> Switches {
        Switches::of_kind(lifted, |_| true)
    }

    /// Those whose tables hold addresses. The words of others are not known in a text.
    pub fn of_addresses(lifted: &Lifted<'_>) -> Switches {
        Switches::of_kind(lifted, |candidate| candidate.from.is_none())
    }

    fn of_kind(lifted: &Lifted<'_>, wanted: impl Fn(&Candidate) -> bool) -> Switches {
        let finder = LazyCell::new(|| Finder::new(lifted));
        let mut switches = match has_labels(lifted) {
            true => Switches::of_tables(lifted, &finder, wanted),
            false => Switches::default(),
        };
        switches.computed = computed::find(lifted, &switches, || &finder);
        switches
    }

    fn of_tables(
        lifted: &Lifted<'_>,
        finder: &Finder<'_, '_>,
        wanted: impl Fn(&Candidate) -> bool,
    ) -> Switches {
        let jumps = (0..lifted.insts.len() as u32).map(InstIdx);
        let found = jumps.filter_map(|i| finder.candidate(i).filter(&wanted));
        let found: Vec<Candidate> = found.collect();
        let numbers = numbers(finder, &found);
        let own: HashSet<u32> = found.iter().flat_map(|c| c.uses.clone()).collect();
        let cases = found.iter().map(|c| (c.jump.0, c.cases())).collect();
        let known = Known::default();
        let walk = Walk {
            known: &known,
            own: &own,
            cases: &cases,
            until: Until::End,
            indexed: false,
            passed: false,
            returned: false,
        };
        let mut switches = Switches::default();
        for candidate in found {
            if !finder.is_alone(&candidate, &walk) || finder.is_read_elsewhere(&candidate, &walk) {
                switches.leaks.push(candidate.jump);
            }
            let (width, from) = (candidate.width(), candidate.from);
            let mut cases: Vec<Case> = Vec::new();
            for (section, at, case) in candidate.words {
                let number = match from {
                    Some(_) => case.number,
                    None => numbers[&case.to.0],
                };
                switches.words.insert((section, at), Word { number, width });
                cases.push(Case { number, ..case });
            }
            cases.sort_by_key(|case| case.to);
            cases.dedup_by_key(|case| case.to);
            let switch = Switch {
                callee: candidate.callee,
                from,
                cases,
            };
            switches.by_jump.insert(candidate.jump.0, switch);
        }
        switches
    }
}

/// The number of a function's first case: no number that other data is likely to hold, and
/// an immediate of 32 bits with all that follow.
const FIRST: u32 = 0x7477_0000;

/// The number of each case in its function, by instruction.
fn numbers(finder: &Finder<'_, '_>, found: &[Candidate]) -> HashMap<u32, u32> {
    let addresses = found.iter().filter(|c| c.from.is_none());
    let words = addresses.flat_map(|c| &c.words);
    let cases: BTreeSet<InstIdx> = words.map(|(_, _, case)| case.to).collect();
    let mut last: HashMap<&str, u32> = HashMap::default();
    let numbered = cases.into_iter().map(|to| {
        let next = last.entry(finder.whole(to)).or_insert(FIRST);
        *next += 1;
        (to.0, *next - 1)
    });
    numbered.collect()
}

/// Whether any data refers to code that is no function's start.
fn has_labels(lifted: &Lifted<'_>) -> bool {
    let starts: HashSet<(CodeIdx, u64)> = lifted
        .functions
        .iter()
        .map(|f| (f.section, f.start))
        .collect();
    let tables = lifted.object.sections().filter(|(_, s)| is_table(s));
    tables.into_iter().any(|(_, section)| {
        let mut places = section.relocations.iter();
        places.any(|r| {
            let place = lifted.code_place(r.symbol, r.addend);
            place.is_some_and(|place| !starts.contains(&place))
        })
    })
}

/// Whether a section may hold a jump table.
fn is_table(section: &Section<'_>) -> bool {
    let constant = section.flags & SHF_WRITE == 0 || is_relocated_once(&section.name);
    constant
        && section.flags & SHF_ALLOC != 0
        && section.kind == SHT_PROGBITS
        && !section.is_code()
        && special::kind_of(&section.name).is_none()
}

/// Whether compilers put into a section of this name what only a loader writes, because it holds
/// addresses (`-fpic`).
fn is_relocated_once(name: &str) -> bool {
    let rest = name.strip_prefix(".data.rel.ro");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
