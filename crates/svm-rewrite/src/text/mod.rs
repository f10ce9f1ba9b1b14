//! Rewrites assembly text: as in the paper (5.1), a step of a build before the
//! assembler.
//!
//! ```text
//! text ──statement──> statements ──marks──> marked text ──(as)──> object
//!                                                                   │
//!   object ──lift──> instructions ──tie──> tied to statements       │
//!   labels whose address is taken ──> edges of indirect jumps       │
//!   the pipeline for objects, up to its plans ──sites──> sequences ─┘
//!   print: the text again, sequences in place of their lines
//! ```
//!
//! The assembler decides what a line means; mnemonics are not interpreted here. So there
//! is one source of semantics, and the plans for a text are those for the object made
//! from it. Where an access is in a macro, the text is taken with its macros written out
//! ([`expand`](mod@expand)), if the assembler makes the same object of both. Where tables stand among
//! the code, it is taken with these in a section of their own ([`apart`]).

mod apart;
mod arguments;
mod bytes;
mod cfi;
mod copied;
mod counted;
mod directives;
mod distances;
mod expand;
mod expression;
mod format;
mod kept;
mod lengths;
mod marks;
mod moved;
mod narrow;
mod number;
mod operand;
mod places;
mod plainer;
mod print;
mod reached;
mod runtime;
mod sections;
mod shadowed;
mod spilled;
mod statement;
mod switched;
mod switching;
mod tables;
mod taken;
mod tie;

use std::collections::{BTreeMap, BTreeSet};

use elf_loader::Object;

use crate::analyse::class::SiteClass;
use crate::analyse::codemap;
use crate::analyse::flow::Hints;
use crate::analyse::unread::Unread;
use crate::decide::{Decided, decide};
use crate::encode::sites::{self, SiteCode};
use crate::explain::stats::Stats;
use crate::lift;
use crate::options::Options;
use crate::plan::Flags;
use crate::refusal::{self, Refusal, RefusalCode};
use crate::targets::{self, Descriptor};
pub use expand::{Expansion, expand, same};
use lengths::LazyLengths;
use marks::Marks;
pub use marks::StatementIdx;
pub use plainer::plainer;
use print::Obstacle;
pub use runtime::{
    Returns, print as module_runtime, returns as module_returns, stop as module_stop,
};
use statement::{Misread, Statement};
use tie::{Tie, Tied};

/// A text, split into statements.
#[derive(Debug)]
pub struct Source<'t> {
    text: &'t [u8],
    statements: Vec<Statement>,
    marks: Marks,
    /// Lines of the original.
    lines: u32,
    /// Its macros and repetitions are written out.
    written_out: bool,
    /// Where an assembler may read it otherwise.
    misread: Option<Misread>,
}

/// A rewritten text and counts of what was done.
#[derive(Debug)]
pub struct Printed {
    /// The rewritten text.
    pub text: Vec<u8>,
    /// Counts over the original.
    pub stats: Stats,
    /// Instructions that were replaced by sequences, by class.
    pub rewritten: BTreeMap<SiteClass, u64>,
    /// Lines of the original.
    pub lines: u32,
    /// Why the text cannot stand alone: what it names has to be defined by another one.
    pub unresolved: Vec<Refusal>,
}

impl<'t> Source<'t> {
    /// Splits a text. The second value is the text to assemble for [`Source::rewrite`].
    pub fn new(text: &'t [u8]) -> (Source<'t>, Vec<u8>) {
        let (statements, misread) = statement::split_to_end(text);
        let (source, marked) = Source::of(text, statements, newlines(text), false);
        (Source { misread, ..source }, marked)
    }

    /// The same for a text whose macros and repetitions were written out: lines are those
    /// of the original.
    pub fn expanded(expansion: &'t Expansion) -> (Source<'t>, Vec<u8>) {
        let (mut statements, misread) = statement::split_to_end(&expansion.text);
        let line = |line: u32| expansion.lines[line as usize - 1];
        for statement in &mut statements {
            statement.line = line(statement.line);
        }
        let misread = misread.map(|place| Misread {
            line: line(place.line),
            ..place
        });
        let lines = expansion.lines.last().map_or(0, |last| last - 1);
        let (source, marked) = Source::of(&expansion.text, statements, lines, true);
        (Source { misread, ..source }, marked)
    }

    fn of(
        text: &'t [u8],
        statements: Vec<Statement>,
        lines: u32,
        written_out: bool,
    ) -> (Source<'t>, Vec<u8>) {
        let (marked, marks) = marks::mark(text, &statements);
        let source = Source {
            text,
            statements,
            marks,
            lines,
            written_out,
            misread: None,
        };
        (source, marked)
    }

    /// Refuses what would be misread before the assembler says so.
    ///
    /// # Errors
    /// Every such place.
    pub fn check(&self) -> Result<(), Vec<Refusal>> {
        if let Some(Misread { line, reason }) = self.misread {
            let refusal = Refusal::of_object(RefusalCode::Statement, reason);
            return Err(vec![Refusal { line, ..refusal }]);
        }
        self.none(&moved::misread(self.text, &self.statements))
    }

    /// Refuses macros that would change what was printed.
    ///
    /// # Errors
    /// Every such macro.
    pub fn check_macros(&self, printed: &[u8]) -> Result<(), Vec<Refusal>> {
        self.none(&shadowed::find(self.text, &self.statements, printed))
    }

    fn none(&self, obstacles: &[Obstacle]) -> Result<(), Vec<Refusal>> {
        match obstacles {
            [] => Ok(()),
            _ => Err(self.refusals(obstacles)),
        }
    }

    fn refusals(&self, obstacles: &[Obstacle]) -> Vec<Refusal> {
        let mut refusals = Vec::new();
        for obstacle in obstacles {
            if refusal::is_full(&refusals) {
                break;
            }
            refusal::add(&mut refusals, self.refusal(obstacle));
        }
        refusals
    }

    /// Rewrites the text, given the object that the marked text was assembled to.
    ///
    /// # Errors
    /// Every place that cannot be rewritten soundly.
    pub fn rewrite(&self, object: &Object<'_>, options: Options) -> Result<Printed, Vec<Refusal>> {
        let target = targets::of(options.target);
        let statements = self.marks.assembled(&self.statements, object);
        self.none(&moved::names_of_runtime(self.text, &statements, object))?;
        let lifted = lift::lift_for(object, target.any_relocation);
        let lifted = lifted.map_err(|refusals| self.locate_unlifted(refusals, object))?;
        let tie = Tie::find(self.text, &statements, &lifted, &self.marks);
        let tied = Tied {
            text: self.text,
            statements: &statements,
            tie: &tie,
            lifted: &lifted,
            lengths: &LazyLengths::of(self.text, &statements),
        };
        self.check_places(tied, target.refuses_jump_tables)?;
        let reached = reached_places(tied, target)?;
        let decided = decide(&lifted, &reached, &BTreeSet::new(), options);
        let decided = decided.map_err(|refusals| self.locate(refusals, tied))?;
        let switches = &decided.analysis.switches;
        let words = tables::find(tied, switches);
        let words = words.map_err(|at| vec![self.refusal(&no_table(at))])?;
        // --- all decisions about code are made; the rest prints ---
        let code = sites::emit(&decided.decisions(options), target.closes_calls);
        self.check_lengths(tied, target, &decided, &code)?;
        if target.plans.loads_rsp {
            self.none(&switched::find(&decided.analysis, &tie, &code))?;
        }
        let cases = switches.iter().flat_map(|(_, switch)| &switch.cases);
        let input = print::Input {
            text: self.text,
            statements: &statements,
            tie: &tie,
            lifted: &lifted,
            analysis: &decided.analysis,
            code: &code,
            named: &cases.map(|case| case.to.0).collect(),
            words: &words,
        };
        let text = print::print(&input).map_err(|obstacles| self.refusals(&obstacles))?;
        Ok(Printed {
            text,
            stats: decided.stats(),
            rewritten: replaced_by_class(&decided, &code),
            lines: self.lines,
            unresolved: self.locate((target.unresolved)(&lifted), tied),
        })
    }

    /// Refuses statements that would be wrong, or mean another place, in the printed text.
    fn check_places(&self, tied: Tied<'_, '_>, is_module: bool) -> Result<(), Vec<Refusal>> {
        let Tied {
            text,
            statements,
            tie,
            lifted,
            lengths,
        } = tied;
        self.none(&distances::find(tied))?;
        self.none(&places::find(text, statements, lengths))?;
        if !self.written_out {
            self.none(&moved::hidden_syntax(text, &self.statements))?;
            // Modules' tables of jumps are found by their relocations.
            if !is_module {
                self.none(&moved::hidden_meaning(text, &self.statements))?;
            }
            self.none(&places::hidden(text, statements))?;
        }
        self.none(&moved::find(tied, self.written_out))?;
        // What has a line of its own was refused by it.
        self.none(&places::find_assembled(tie, lifted))?;
        self.none(&taken::inside(tied))
    }

    /// Refuses lengths that sequences change.
    fn check_lengths(
        &self,
        tied: Tied<'_, '_>,
        target: &Descriptor,
        decided: &Decided<'_>,
        code: &SiteCode,
    ) -> Result<(), Vec<Refusal>> {
        let sites = code.functions.iter().flat_map(|f| &f.sites);
        let repeated = decided.plans.iter().filter_map(|plan| match plan.flags {
            Flags::Recompute(compare) => Some(compare),
            Flags::Dead | Flags::Save(_) => None,
        });
        let replaced = sites.map(|site| site.inst).chain(repeated);
        self.none(&lengths::find(tied, replaced))?;
        // A module's tables of jumps were found, and kernels know lengths of their own.
        let is_module = target.refuses_jump_tables;
        self.none(&narrow::find(tied, code, is_module))?;
        if is_module {
            return Ok(());
        }
        let surveys = &decided.analysis.surveys;
        self.none(&copied::find(tied.lifted, tied.tie, surveys, code))?;
        self.none(&counted::find(tied.lifted, tied.tie, surveys, code))
    }

    /// Adds the lines that refused instructions come from.
    fn locate(&self, mut refusals: Vec<Refusal>, tied: Tied<'_, '_>) -> Vec<Refusal> {
        let Tied { tie, lifted, .. } = tied;
        for refusal in &mut refusals {
            let section = lifted.object.section_named(&refusal.section);
            let inst = section
                .and_then(|id| lifted.code_section(id))
                .and_then(|code| lifted.inst_at(code, refusal.offset));
            if let Some(k) = inst.and_then(|i| tie.near(i)) {
                refusal.line = self.statements[k.0 as usize].line;
            }
        }
        refusals
    }

    /// The same for an object that could not be lifted.
    fn locate_unlifted(&self, mut refusals: Vec<Refusal>, object: &Object<'_>) -> Vec<Refusal> {
        let places = self.marks.places(object);
        let mut strings = BTreeSet::new();
        refusals.retain_mut(|refusal| {
            let section = object.section_named(&refusal.section);
            let k = section.and_then(|id| {
                let data = &object.section(id).data;
                let code = (id, &**data, refusal.offset);
                self.marks.statement_at(&self.statements, &places, code)
            });
            let Some(k) = k else {
                return true;
            };
            refusal.line = self.line(k);
            if !directives::makes_strings(self.statements[k.0 as usize].name(self.text)) {
                return true;
            }
            // Its letters are many branches.
            refusal.code = RefusalCode::Undecodable;
            refusal.reason = STRING.to_owned();
            refusal.instruction.clear();
            strings.insert(k.0)
        });
        refusals
    }

    fn refusal(&self, obstacle: &Obstacle) -> Refusal {
        let statement = self.statements.get(obstacle.at.0 as usize);
        let mut refusal = Refusal::of_object(obstacle.code, obstacle.reason.clone());
        if let Some(statement) = statement {
            refusal.line = statement.line;
            refusal.instruction = String::from_utf8_lossy(statement.text(self.text)).into_owned();
        }
        refusal
    }

    /// Line of a statement, from 1.
    pub fn line(&self, k: StatementIdx) -> u32 {
        self.statements[k.0 as usize].line
    }
}

/// Where indirect jumps, unwinding and other objects may go.
///
/// # Errors
/// Data that refers into the middle of a function.
fn reached_places(tied: Tied<'_, '_>, target: &Descriptor) -> Result<Hints, Vec<Refusal>> {
    let reached = taken::find(tied, target.is_replaceable);
    if !target.refuses_jump_tables {
        return Ok(reached);
    }
    // As for objects: what jumps may reach is what their tables hold.
    let reached = Hints {
        by_unwinding: reached.by_unwinding,
        replaceable: reached.replaceable,
        entered: reached.entered,
        ..Hints::of_text(tied.lifted)
    };
    // The text keeps all its tables.
    codemap::entries(tied.lifted, &reached.switches, &Unread::default())?;
    Ok(reached)
}

const STRING: &str = "a string among code, which is read as instructions";

fn no_table(at: StatementIdx) -> Obstacle {
    let reason = "a jump table of its object is not found in the text: its words are not names of \
                  labels";
    Obstacle {
        at,
        code: RefusalCode::CodeReference,
        reason: reason.to_owned(),
    }
}

/// Counts the instructions that sequences replace.
fn replaced_by_class(decided: &Decided<'_>, code: &SiteCode) -> BTreeMap<SiteClass, u64> {
    let mut all = BTreeMap::new();
    for site in code.functions.iter().flat_map(|f| &f.sites) {
        let kind = decided.plans[site.inst.0 as usize].class.site_class();
        *all.entry(kind.unwrap_or(SiteClass::Other)).or_default() += 1;
    }
    all
}

/// How many bytes of a text are newlines. Counted in parts short enough for a count of
/// one byte, so that the compiler can compare many bytes at once.
fn newlines(text: &[u8]) -> u32 {
    let part = |part: &[u8]| -> u8 { part.iter().map(|b| u8::from(*b == b'\n')).sum() };
    text.chunks(255).map(|bytes| u32::from(part(bytes))).sum()
}
