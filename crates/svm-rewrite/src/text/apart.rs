//! Tables that stand among code, put into a section of their own, `.rodata`.
//!
//! ```text
//!         ret                          ret
//!         .align 64                    .pushsection .rodata; .p2align 6; .align 64
//! K256:   .long 0x428a2f98, ...  ──>   K256:   .long 0x428a2f98, ...; .popsection
//! ```
//!
//! Their bytes are no instructions, so an object with them cannot be decoded; elsewhere they can
//! stay as they are. Hand-written cryptography has them (openssl's, before its release 3.2).
//!
//! Where something may run or address such bytes by what stands beside them, they stay, and the
//! text is refused as before. A table is moved if
//!
//! * nothing runs on into it: a return or a jump stands before, and no branch names its labels;
//! * the code behind does not read it backwards, as Haskell's does by its functions' addresses:
//!   the section ends behind the table, or is aligned there;
//! * each of its labels whose address is taken is an object's by its type, or its bytes cannot be
//!   run: an instruction that is none, or a branch out of the section, comes before any that ends
//!   or leaves. If `lea` alone takes the address, and the text leaves for nowhere that it does not
//!   name, such an instruction may come later ([`Evidence`]);
//! * the assembler makes the same bytes of it at both places ([`Proposal::settle`]).

use std::ops::Range;

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PC64, SHF_EXECINSTR,
};
use elf_loader::{Object, Place, Section, SectionId};
use foldhash::{HashMap, HashSet};
use iced_x86::{Decoder, DecoderOptions, FlowControl};

use super::directives::{aligns, declares, is_assignment, makes_bytes, switches};
use super::expression::{self, names};
use super::marks::PREFIX;
use super::sections::{Sections, Spot};
use super::statement::{Statement, StatementKind, is_prefix, split_to_end};
use crate::lift::is_direct_branch;

/// A text with its tables apart, if the assembler agrees.
#[derive(Debug)]
pub struct Proposal<'t> {
    text: &'t [u8],
    statements: Vec<Statement>,
    tables: Vec<Table>,
}

/// A table, by its statements.
#[derive(Debug)]
struct Table {
    /// Its statements, and the alignment before it.
    statements: Range<usize>,
    /// Its first byte or label, behind the alignment.
    first: usize,
    /// Alignments in it: code is filled up with other bytes than data.
    gaps: Vec<usize>,
    /// Labels whose bytes must be shown to be no code.
    suspects: Vec<(usize, Evidence)>,
}

/// What shows that the bytes at a label are no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Evidence {
    /// Whoever goes there comes to what cannot be run.
    OnThePath,
    /// Something there cannot be run: only for what nothing in the text can go to.
    Anywhere,
}

/// Which text is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// As it was, with marks.
    Original,
    /// Tables apart, with marks.
    Marked,
    /// Tables apart.
    Apart,
}

impl<'t> Proposal<'t> {
    /// Finds the tables of a text. `None` if there are none, or if its macros hide what it says.
    pub fn find(text: &'t [u8]) -> Option<Proposal<'t>> {
        let (statements, misread) = split_to_end(text);
        let uses = Uses::find(text, &statements)?;
        let tables = Finder::new(text, &statements, &uses).tables();
        let found = misread.is_none() && !tables.is_empty();
        found.then_some(Proposal {
            text,
            statements,
            tables,
        })
    }

    /// The text as it was, to be assembled for [`Proposal::settle`].
    pub fn original(&self) -> Vec<u8> {
        self.written(Form::Original, |_| true)
    }

    /// The text with its tables apart, for the same.
    pub fn apart(&self) -> Vec<u8> {
        self.written(Form::Marked, |_| true)
    }

    /// The text with those tables apart that were assembled to the same bytes, and cannot be run.
    /// `None` if there are none. Its lines are those of the original.
    pub fn settle(&self, original: &Object<'_>, apart: &Object<'_>) -> Option<Vec<u8>> {
        let (before, behind) = (marks(original), marks(apart));
        let holds: Vec<bool> = (0..self.tables.len())
            .map(|n| {
                self.is_the_same(n, (original, &before), (apart, &behind))
                    && self.cannot_run(n, original, &before)
            })
            .collect();
        let any = holds.contains(&true);
        any.then(|| self.written(Form::Apart, |n| holds[n]))
    }

    fn written(&self, form: Form, holds: impl Fn(usize) -> bool) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.text.len() + 64 * self.tables.len());
        let mut copied = 0;
        let mut copy = |out: &mut Vec<u8>, to: u32| {
            out.extend_from_slice(&self.text[copied..to as usize]);
            copied = to as usize;
        };
        let (moves, is_marked) = (form != Form::Original, form != Form::Apart);
        for (n, table) in self.tables.iter().enumerate().filter(|(n, _)| holds(*n)) {
            copy(&mut out, self.statements[table.statements.start].start);
            if moves {
                out.extend_from_slice(b".pushsection .rodata; .p2align 6; ");
            }
            let places = table.suspects.iter().enumerate();
            let places = places.map(|(place, (k, _))| (*k, Mark::Label(place)));
            let mut places: Vec<(usize, Mark)> = places.collect();
            places.push((table.first, Mark::First));
            let gaps = table.gaps.iter().enumerate();
            places.extend(gaps.map(|(gap, k)| (*k, Mark::Gap(gap))));
            places.sort_by_key(|(k, _)| *k);
            for (k, mark) in places.into_iter().filter(|_| is_marked) {
                copy(&mut out, self.statements[k].start);
                out.extend_from_slice(format!("{}: ", mark.name(n)).as_bytes());
                if let Mark::Gap(gap) = mark {
                    copy(&mut out, self.statements[k].end);
                    out.extend_from_slice(format!("; {}:", Mark::GapEnd(gap).name(n)).as_bytes());
                }
            }
            copy(&mut out, self.statements[table.statements.end - 1].end);
            if is_marked {
                out.extend_from_slice(format!("; {}:", Mark::End.name(n)).as_bytes());
            }
            if moves {
                out.extend_from_slice(b"; .popsection");
            }
        }
        out.extend_from_slice(&self.text[copied..]);
        out
    }

    /// Whether a table's bytes are the same at both places, but for what relocations fill: a
    /// distance to code is a number at one place, and a relocation at the other.
    fn is_the_same(
        &self,
        n: usize,
        (original, before): (&Object<'_>, &Places),
        (apart, behind): (&Object<'_>, &Places),
    ) -> bool {
        let of = |object, places, is_code| {
            let (id, range) = bytes(object, places, n)?;
            let section: &Section<'_> = object.section(id);
            if (section.flags & SHF_EXECINSTR != 0) != is_code {
                return None;
            }
            let mut contents = contents(section, &range)?;
            for gap in 0..self.tables[n].gaps.len() {
                let place = |mark| usize::try_from(places.get(&(n, mark))?.1).ok();
                let (from, to) = (place(Mark::Gap(gap))?, place(Mark::GapEnd(gap))?);
                let gap = from.checked_sub(range.start)?..to.checked_sub(range.start)?;
                contents.get_mut(gap)?.fill(None);
            }
            Some(contents)
        };
        let both = (of(original, before, true), of(apart, behind, false));
        let (Some(one), Some(other)) = both else {
            return false;
        };
        let is_equal = |(one, other): (&Option<u8>, &Option<u8>)| {
            one.is_none() || other.is_none() || one == other
        };
        one.len() == other.len() && one.iter().zip(&other).all(is_equal)
    }

    fn cannot_run(&self, n: usize, original: &Object<'_>, before: &Places) -> bool {
        let Some((section, bytes)) = bytes(original, before, n) else {
            return false;
        };
        let code = &original.section(section).data;
        let mut suspects = self.tables[n].suspects.iter().enumerate();
        suspects.all(|(label, (_, evidence))| {
            let at = before.get(&(n, Mark::Label(label)));
            at.and_then(|(_, at)| usize::try_from(*at).ok())
                .is_some_and(|at| cannot_run(code, at..bytes.end, *evidence))
        })
    }
}

/// Bytes of a section; none where a relocation fills a field. `None` if a field is too short for
/// a distance to another section.
fn contents(section: &Section<'_>, range: &Range<usize>) -> Option<Vec<Option<u8>>> {
    let data = &section.data[range.clone()];
    let mut contents: Vec<Option<u8>> = data.iter().map(|byte| Some(*byte)).collect();
    let bytes = range.start as u64..range.end as u64;
    let within = section
        .relocations
        .iter()
        .filter(|r| bytes.contains(&r.offset));
    for relocation in within {
        let field = match relocation.kind {
            R_X86_64_64 | R_X86_64_PC64 => 8,
            R_X86_64_PC32 | R_X86_64_32 | R_X86_64_32S => 4,
            _ => return None,
        };
        for at in relocation.offset..relocation.offset.saturating_add(field) {
            let at = usize::try_from(at).ok();
            let at = at.and_then(|at| at.checked_sub(range.start));
            if let Some(byte) = at.and_then(|at| contents.get_mut(at)) {
                *byte = None;
            }
        }
    }
    Some(contents)
}

/// A place of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Mark {
    First,
    Label(usize),
    Gap(usize),
    GapEnd(usize),
    End,
}

impl Mark {
    fn name(self, table: usize) -> String {
        match self {
            Mark::First => format!("{PREFIX}{table}.first"),
            Mark::Label(n) => format!("{PREFIX}{table}.{n}"),
            Mark::Gap(n) => format!("{PREFIX}{table}.gap{n}"),
            Mark::GapEnd(n) => format!("{PREFIX}{table}.filled{n}"),
            Mark::End => format!("{PREFIX}{table}.end"),
        }
    }

    /// The table and the mark of a symbol.
    fn of(symbol: &str) -> Option<(usize, Mark)> {
        let (table, mark) = symbol.strip_prefix(PREFIX)?.split_once('.')?;
        let mark = match mark {
            "first" => Mark::First,
            "end" => Mark::End,
            other => match (other.strip_prefix("gap"), other.strip_prefix("filled")) {
                (Some(number), _) => Mark::Gap(number.parse().ok()?),
                (None, Some(number)) => Mark::GapEnd(number.parse().ok()?),
                (None, None) => Mark::Label(other.parse().ok()?),
            },
        };
        Some((table.parse().ok()?, mark))
    }
}

/// Where the marks of an object are.
type Places = HashMap<(usize, Mark), (SectionId, u64)>;

fn marks(object: &Object<'_>) -> Places {
    let symbols = object.symbols().filter_map(|(_, symbol)| {
        let Place::In(section) = symbol.place else {
            return None;
        };
        Some((Mark::of(&symbol.name)?, (section, symbol.value)))
    });
    symbols.collect()
}

/// Where a table's bytes are.
fn bytes(object: &Object<'_>, places: &Places, n: usize) -> Option<(SectionId, Range<usize>)> {
    let (section, from) = *places.get(&(n, Mark::First))?;
    let (end, to) = *places.get(&(n, Mark::End))?;
    let bytes = usize::try_from(from).ok()?..usize::try_from(to).ok()?;
    let whole = section == end && object.section(section).data.len() >= bytes.end;
    (whole && bytes.start <= bytes.end).then_some((section, bytes))
}

/// Whether the bytes from a label on are no code: there is an instruction that is none, or a branch
/// out of the section. A path that runs out of the table comes to no code, either.
fn cannot_run(code: &[u8], table: Range<usize>, evidence: Evidence) -> bool {
    let Some(rest) = code.get(table.clone()) else {
        return false;
    };
    let decoder = Decoder::with_ip(64, rest, table.start as u64, DecoderOptions::NONE);
    let mut may_end = false;
    for iced in decoder {
        let leaves = is_direct_branch(&iced) && iced.near_branch_target() >= code.len() as u64;
        if iced.is_invalid() || leaves {
            return true;
        }
        let goes_on = match iced.flow_control() {
            FlowControl::Next => true,
            FlowControl::ConditionalBranch
            | FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Interrupt
            | FlowControl::XbeginXabortXend
            | FlowControl::Exception => false,
        };
        may_end |= !goes_on;
        if may_end && evidence == Evidence::OnThePath {
            return false;
        }
    }
    !may_end
}

/// How a text uses its names.
#[derive(Default)]
struct Uses<'t> {
    /// By branches.
    branches: HashSet<&'t [u8]>,
    /// Their addresses are taken by `lea`.
    loaded: HashSet<&'t [u8]>,
    /// Their addresses are taken otherwise: by an immediate, or data.
    taken: HashSet<&'t [u8]>,
    /// They are read or written.
    accessed: HashSet<&'t [u8]>,
    functions: HashSet<&'t [u8]>,
    objects: HashSet<&'t [u8]>,
    /// Others may name them.
    global: HashSet<&'t [u8]>,
    labels: HashSet<&'t [u8]>,
    /// It goes to where an operand says, or to an address that it may have put on the stack.
    is_indirect: bool,
    /// Registers that have an address since the last place where nothing runs on.
    held: HashSet<&'t [u8]>,
}

impl<'t> Uses<'t> {
    /// `None` if macros, or another syntax, hide uses, or sections are linked or left out together.
    fn find(text: &'t [u8], statements: &[Statement]) -> Option<Uses<'t>> {
        let mut uses = Uses::default();
        for statement in statements {
            let (name, rest) = (statement.name(text), statement.rest(text));
            if ends(statement.text(text)) {
                uses.held.clear();
            }
            match statement.kind {
                StatementKind::Opaque => return None,
                // A macro that nothing uses any more.
                StatementKind::Definition | StatementKind::Prefix => {}
                StatementKind::Label => _ = uses.labels.insert(name),
                StatementKind::Assignment => uses.taken.extend(names(rest)),
                StatementKind::Instruction => uses.instruction(statement.text(text)),
                StatementKind::Directive => uses.directive(name, rest)?,
            }
        }
        Some(uses)
    }

    fn instruction(&mut self, text: &'t [u8]) {
        let (name, operands) = unprefixed(text);
        let transfers = transfers(name);
        self.follow(name, operands);
        for operand in expression::split(operands).map(<[u8]>::trim_ascii) {
            let used = match operand.first() {
                Some(b'$') => &mut self.taken,
                _ if name.starts_with(b"lea") => &mut self.loaded,
                Some(b'*') => {
                    self.is_indirect = true;
                    &mut self.accessed
                }
                _ if transfers => &mut self.branches,
                _ => &mut self.accessed,
            };
            used.extend(names(operand));
        }
    }

    /// Follows an address that `lea` made to where `ret` takes one from: `push %rcx; ret`.
    fn follow(&mut self, name: &[u8], operands: &'t [u8]) {
        let mut all = expression::split(operands).map(<[u8]>::trim_ascii);
        let first = all.next().unwrap_or_default();
        let last = all.last().unwrap_or_default();
        let is_label = name.starts_with(b"lea") && first.ends_with(b"(%rip)");
        let has_address = is_label || self.held.contains(first);
        if has_address && last.starts_with(b"%") {
            self.held.insert(last);
        }
        let is_put = name.starts_with(b"push") || last == b"(%rsp)";
        self.is_indirect |= is_put && self.held.contains(first);
    }

    /// Whether control leaves for what the text does not name, but by returns.
    fn leaves(&self) -> bool {
        let is_here = |name: &&[u8]| self.labels.contains(*name) || name[0].is_ascii_digit();
        self.is_indirect || !self.branches.iter().all(is_here)
    }

    /// What must be shown of the bytes at a label.
    fn evidence(&self, label: &[u8]) -> Option<Evidence> {
        if self.objects.contains(label) {
            None
        } else if self.taken.contains(label) || self.loaded.contains(label) && self.leaves() {
            Some(Evidence::OnThePath)
        } else {
            self.loaded.contains(label).then_some(Evidence::Anywhere)
        }
    }

    fn names(&self, label: &[u8]) -> bool {
        let all = [&self.taken, &self.loaded, &self.accessed];
        all.iter().any(|names| names.contains(label))
    }

    fn directive(&mut self, name: &[u8], rest: &'t [u8]) -> Option<()> {
        let contains = |part: &[u8]| rest.windows(part.len()).any(|window| window == part);
        match name {
            b".intel_syntax" | b".include" => return None,
            b".section" | b".pushsection" if contains(b"comdat") => return None,
            b".globl" | b".global" | b".weak" => self.global.extend(names(rest)),
            b".type" => {
                let symbol = names(rest).next()?;
                match contains(b"object") || contains(b"OBJECT") {
                    true => self.objects.insert(symbol),
                    false => self.functions.insert(symbol),
                };
            }
            b".size" => {}
            _ if name.starts_with(b".cfi_") || switches(name) => {}
            _ if makes_bytes(name) || is_assignment(name) || !declares(name) => {
                self.taken.extend(names(rest));
            }
            _ => {}
        }
        Some(())
    }
}

/// Finds the tables, statement by statement.
struct Finder<'t, 'u> {
    text: &'t [u8],
    statements: &'u [Statement],
    uses: &'u Uses<'t>,
    sections: Sections<'t>,
    /// Where nothing runs on to what comes next, for each place of code, and the labels there.
    ended: HashMap<Spot<'t>, Option<Vec<usize>>>,
}

impl<'t, 'u> Finder<'t, 'u> {
    fn new(text: &'t [u8], statements: &'u [Statement], uses: &'u Uses<'t>) -> Finder<'t, 'u> {
        Finder {
            text,
            statements,
            uses,
            sections: Sections::default(),
            ended: HashMap::default(),
        }
    }

    fn tables(mut self) -> Vec<Table> {
        let (mut k, mut found) = (0, Vec::new());
        while k < self.statements.len() {
            match self.table(k) {
                Some(table) => {
                    k = table.statements.end;
                    found.push(table);
                }
                None => {
                    self.pass(k);
                    k += 1;
                }
            }
        }
        found
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
            StatementKind::Directive if declares(name) || aligns(name) => {}
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
        let is_named = |k: &usize| self.uses.names(self.statements[*k].name(self.text));
        if labels.iter().any(is_named) {
            return None;
        }
        let table = self.whole(k)?;
        let labels = self.labels(&table);
        let closed = self.is_closed(table.statements.end, labels.is_empty());
        let suspect = |k: usize| Some((k, self.uses.evidence(self.statements[k].name(self.text))?));
        let suspects = labels.into_iter().filter_map(suspect).collect();
        closed.then_some(Table { suspects, ..table })
    }

    /// As many statements as make one.
    fn whole(&self, start: usize) -> Option<Table> {
        let (mut first, mut end) = (None, None);
        let (mut own, mut gaps) = (HashSet::default(), Vec::new());
        for (k, statement) in self.statements.iter().enumerate().skip(start) {
            let name = statement.name(self.text);
            match statement.kind {
                StatementKind::Label if self.is_own(name) => {
                    first.get_or_insert(k);
                    own.insert(name);
                }
                StatementKind::Directive if is_table(name) => {
                    first.get_or_insert(k);
                    end = Some(k + 1);
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
                _ => break,
            }
            // It would begin with what describes something else.
            if k == start && describes(name) {
                return None;
            }
        }
        let end = end?;
        gaps.retain(|k| *k < end);
        let has_bytes =
            |k: &Statement| k.kind == StatementKind::Directive && is_table(k.name(self.text));
        let any = self.statements[start..end].iter().any(has_bytes);
        any.then_some(Table {
            statements: start..end,
            first: first?,
            gaps,
            suspects: Vec::new(),
        })
    }

    /// Whether a label may be a table's: nobody branches there, and no function is there.
    fn is_own(&self, label: &[u8]) -> bool {
        let uses = self.uses;
        !label[0].is_ascii_digit()
            && !uses.branches.contains(label)
            && !uses.functions.contains(label)
            && (uses.objects.contains(label) || !uses.global.contains(label))
    }

    fn labels(&self, table: &Table) -> Vec<usize> {
        let is_label = |k: &usize| self.statements[*k].kind == StatementKind::Label;
        table.statements.clone().filter(is_label).collect()
    }

    /// Whether nothing behind can mean the table's bytes by its own place: the section ends, or,
    /// if the table has a name, code that has one is aligned.
    fn is_closed(&self, end: usize, must_end: bool) -> bool {
        let (mut is_aligned, mut is_named) = (false, false);
        for statement in &self.statements[end..] {
            let name = statement.name(self.text);
            match statement.kind {
                StatementKind::Directive if switches(name) => return true,
                StatementKind::Directive if aligns(name) => {
                    is_aligned |= !matches!(statement.rest(self.text), b"0" | b"1");
                }
                StatementKind::Directive if declares(name) => {}
                // The code's address may be taken for what stands before it.
                StatementKind::Label if name[0].is_ascii_digit() || self.uses.names(name) => {
                    return false;
                }
                // More data would be at another distance.
                StatementKind::Label if self.is_own(name) => is_named = true,
                StatementKind::Label => return is_aligned && !must_end,
                StatementKind::Instruction => return is_aligned && is_named && !must_end,
                _ => return false,
            }
        }
        true
    }
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

/// The mnemonic and operands of an instruction, without its prefixes.
fn unprefixed(mut text: &[u8]) -> (&[u8], &[u8]) {
    loop {
        let end = text.iter().position(u8::is_ascii_whitespace);
        let (name, rest) = text.split_at(end.unwrap_or(text.len()));
        let rest = rest.trim_ascii_start();
        match is_prefix(name) && !rest.is_empty() {
            true => text = rest,
            false => return (name, rest),
        }
    }
}

/// Whether an instruction goes to the place that its operand names.
fn transfers(name: &[u8]) -> bool {
    let starts = |prefix: &[u8]| {
        name.split_at_checked(prefix.len())
            .is_some_and(|(start, _)| start.eq_ignore_ascii_case(prefix))
    };
    starts(b"j") || starts(b"call") || starts(b"loop") || starts(b"xbegin")
}

/// Whether nothing runs on behind a statement. `rep ret` is often written in bytes.
fn ends(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"ret", b"retq", b"jmp", b"jmpq"];
    let (name, operands) = unprefixed(text);
    let bytes = || operands.iter().filter(|b| !b.is_ascii_whitespace());
    NAMES.contains(&name) || name == b".byte" && bytes().eq(b"0xf3,0xc3")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tables that are proposed, each as it begins.
    fn tables(text: &str) -> Vec<String> {
        let Some(proposal) = Proposal::find(text.as_bytes()) else {
            return Vec::new();
        };
        let first = |table: &Table| {
            let statement = &proposal.statements[table.first];
            String::from_utf8_lossy(statement.text(text.as_bytes())).into_owned()
        };
        proposal.tables.iter().map(first).collect()
    }

    #[test]
    fn a_table_stands_where_nothing_runs_on() {
        let text = "f: lea k(%rip),%rax\n.byte 0xf3,0xc3\n.size f,.-f\n.align 16\nk: .long 1\n";
        assert_eq!(tables(text), ["k:"]);
        assert_eq!(
            tables("k: .long 1\n.align 16\nf: mov k(%rip),%eax\nret\n"),
            ["k:"]
        );
        assert_eq!(
            tables("f: jmp h\nk: .asciz \"k\"\n.p2align 2\nh: ret\n"),
            ["k:"]
        );
        // A name of nobody's, behind all code.
        assert_eq!(
            tables("f: ret\n.asciz \"f, by nobody\"\n"),
            [".asciz \"f, by nobody\""]
        );
    }

    #[test]
    fn bytes_that_are_run_or_meant_by_their_place_are_no_table() {
        for text in [
            // It is run on to, gone to, or called.
            "f: nop\nk: .long 1\n",
            "f: call g\nk: .long 1\n",
            "f: ret\nk: .byte 0x90,0xc3\ng: jmp k\n",
            "f: ret\n.globl k\nk: .byte 0x90,0xc3\n",
            "f: ret\n.type k,@function\nk: .byte 0x90,0xc3\n",
            "f: jmp 1f\n1: .byte 0x90,0xc3\n",
            "f: jmp 1f\n1: .align 4\n .byte 0x90,0xc3\n",
            // The signal's handler may read it.
            "f: ud2\nk: .long 1\n",
            // The code behind has it before its own address, or goes on from it.
            "f: ret\n.align 8\n.quad 1\ng: ret\n",
            "f: ret\nk: .long 1\ng: mov -4(%rdi),%eax\nret\n",
            "f: ret\n.quad 1\n.align 8\ng: ret\n",
            "f: ret\nk: .byte 0x48\nmov %eax,%ebx\nret\n",
            "f: lea g(%rip),%rcx\nret\nk: .long 1\n.align 8\ng: ret\n",
            "f: lea 1f(%rip),%rcx\nret\nk: .long 1\n.align 8\n1: ret\n",
            "f: ret\nk: .long 1\n.align 1\ng: ret\n",
            // More data is at a distance from it.
            "f: ret\nk: .long 1\n.align 8\n.set x,1\nl: .long 2\n",
            // Others run on into it.
            ".section .init,\"ax\"\n.byte 0x90\n",
            "f: nop\n.text 1\n.byte 0x90,0xc3\n",
            // Something else has the name of its place.
            "f: lea e(%rip),%rax\nret\ne: .cfi_endproc\n.long 1\n",
            // It is no code's section, or what hides more.
            "f: ret\n.data\nk: .long 1\n",
            ".macro m\nnop\n.endm\nf: m\nret\nk: .long 1\n",
            "f: nop\n.macro m\nret\n.endm\nk: .long 1\n",
            ".intel_syntax noprefix\nf: ret\nk: .long 1\n",
        ] {
            assert_eq!(tables(text), [""; 0], "{text}");
        }
    }

    #[test]
    fn what_can_be_run_is_not_moved() {
        let runs = |code: &[u8], evidence| !cannot_run(code, 0..code.len(), evidence);
        let thunk = [0x31, 0xc0, 0xc3, 0x0f, 0xff];
        assert!(runs(&thunk, Evidence::OnThePath));
        assert!(!runs(&thunk, Evidence::Anywhere));
        assert!(runs(&thunk[..3], Evidence::Anywhere));
        // It may always be taken.
        assert!(runs(&[0x74, 0x01, 0x06, 0xc3], Evidence::OnThePath));
        // Invalid, out of the section, running out of the table.
        for code in [&[0x90, 0x06][..], &[0xeb, 0x40], &[0, 0, 0, 0]] {
            assert!(!runs(code, Evidence::OnThePath));
        }
    }

    #[test]
    fn evidence_is_by_how_a_label_is_named() {
        let of = |text: &str, label: &str| {
            let (statements, _) = split_to_end(text.as_bytes());
            let uses = Uses::find(text.as_bytes(), &statements).expect("plain");
            uses.evidence(label.as_bytes())
        };
        let lea = "f: lea k(%rip),%rax\nret\nk: .long 1\n";
        assert_eq!(of(lea, "k"), Some(Evidence::Anywhere));
        for more in [
            "jmp *%rax\n", "call elsewhere\n", "mov $k,%edi\n", ".quad k\n",
        ] {
            assert_eq!(
                of(&format!("{lea}{more}"), "k"),
                Some(Evidence::OnThePath),
                "{more}"
            );
        }
        assert_eq!(of("f: mov k(%rip),%eax\nret\nk: .long 1\n", "k"), None);
        assert_eq!(of(&format!(".type k,@object\n{lea}"), "k"), None);
    }
}
