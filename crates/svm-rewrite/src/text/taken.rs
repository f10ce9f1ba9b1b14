//! Labels whose address is taken: where indirect jumps may go.
//!
//! A compiler's jump tables, computed gotos and exception tables name labels
//! (`.L5`) in data, or in instructions other than direct branches. Text still has these
//! names where objects have differences of numbers. An indirect jump is assumed to reach
//! every label of its function that is named in this way, whatever the label is called:
//! people write `case0` and `1`.
//!
//! A name may be one that macros make, or that an assignment gives. So every address of code
//! counts, too, that loaded data of the assembled object has, or an operand. Where macros
//! make names, every label counts.

use elf_loader::consts::{SHF_ALLOC, STB_LOCAL, STT_SECTION};
use elf_loader::reloc::relocation_type;
use elf_loader::{Place, Relocation, Symbol};
use foldhash::{HashMap, HashSet};
use iced_x86::{Instruction, Mnemonic, OpKind};

use super::directives::is_data;
use super::expression::{begins_with_digit, end_of_string, unquoted};
use super::marks::StatementIdx;
use super::print::Obstacle;
use super::reached::displaced_place;
use super::sections::{Section, Sections};
use super::statement::{Statement, StatementKind};
use super::tie::{self, Label, Tie, Tied};
use crate::analyse::flow::Hints;
use crate::lift::{CodeIdx, InstIdx, Lifted};
use crate::refusal::RefusalCode;

/// Finds where indirect jumps and unwinding may go, by the labels that the text takes
/// the address of, and where other objects may enter.
pub fn find(tied: Tied<'_, '_>, is_replaceable: fn(&Symbol<'_>) -> bool) -> Hints {
    let Tied {
        text,
        statements,
        tie,
        lifted,
        ..
    } = tied;
    let names = Names::find(text, statements);
    let addressed = addressed(lifted).filter_map(|(code, offset)| lifted.inst_at(code, offset));
    let mut reached = Hints {
        by_jumps: addressed.filter(|i| !begins_function(lifted, *i)).collect(),
        replaceable: replaceable(lifted, is_replaceable),
        entered: entered(lifted),
        markers: markers(lifted, tie),
        ..Hints::default()
    };
    if names.is_empty() {
        return reached;
    }
    if names.made {
        let all = tie.untied().flat_map(|insts| insts.start..=insts.end);
        let all = all.filter(|i| (*i as usize) < lifted.insts.len());
        reached.by_jumps.extend(all.map(InstIdx));
    }
    let numeric = names.numeric_labels(text, statements);
    tie::labels(tied, |k, name, i| {
        let name = unquoted(name);
        let jumped = names.made || names.jumped.contains(name) || numeric.contains(&k);
        // A function's address is that of its calls.
        if jumped && (name.starts_with(b".L") || !begins_function(lifted, i)) {
            reached.by_jumps.push(i);
        }
        if names.unwound.contains(name) {
            reached.by_unwinding.push(i);
        }
    });
    reached.by_jumps.sort_unstable();
    reached.by_jumps.dedup();
    reached
}

/// Labels between the prefix of an instruction and the rest that something jumps to, perhaps:
/// `.byte 0xf3; x: movsb` is two instructions then, and taken for one.
pub fn inside(
    Tied {
        text,
        statements,
        tie,
        lifted,
        ..
    }: Tied<'_, '_>,
) -> Vec<Obstacle> {
    let mut labels = tie.labels().iter().filter(|l| l.is_inside).peekable();
    if labels.peek().is_none() {
        return Vec::new();
    }
    let names = Names::find(text, statements);
    let numeric = names.numeric_labels(text, statements);
    let addressed: HashSet<(CodeIdx, u64)> = addressed(lifted).collect();
    let symbols = lifted.object.symbols();
    let global: HashSet<(CodeIdx, u64)> = symbols
        .filter(|(_, symbol)| symbol.binding != STB_LOCAL)
        .filter_map(|(id, _)| lifted.code_place(id, 0))
        .collect();
    let is_taken = |label: &&Label| {
        let name = unquoted(tie::defined(text, &statements[label.at as usize]));
        // clang's labels for debuggers are there, and no macro makes their names.
        names.made && !name.starts_with(b".Ltmp")
            || names.jumped.contains(name)
            || numeric.contains(&label.at)
            || addressed.contains(&label.place)
            || global.contains(&label.place)
    };
    let obstacle = |label: &Label| Obstacle {
        at: StatementIdx(label.at),
        code: RefusalCode::Statement,
        reason: "a label inside an instruction, whose address is taken; put it before the prefix"
            .to_owned(),
    };
    labels.filter(is_taken).map(obstacle).collect()
}

/// Places in code whose addresses loaded data has. Unwinders' tables name functions.
pub fn words(lifted: &Lifted<'_>) -> impl Iterator<Item = (CodeIdx, u64)> {
    let sections = lifted.object.sections.iter();
    let loaded = sections.filter(|s| s.flags & SHF_ALLOC != 0 && s.name != ".eh_frame");
    let words = loaded.flat_map(|s| &s.relocations).filter(is_address);
    words.filter_map(|r| lifted.code_place(r.symbol, r.addend))
}

/// The same, and the places of operands of instructions that are no direct branches.
fn addressed(lifted: &Lifted<'_>) -> impl Iterator<Item = (CodeIdx, u64)> {
    let insts = lifted.insts.iter().filter(|inst| inst.target.is_none());
    words(lifted).chain(insts.filter_map(|inst| displaced_place(lifted, inst)))
}

/// Whether a relocation makes an address: of a distance it is not known from where.
fn is_address(relocation: &&Relocation) -> bool {
    let made = relocation_type(relocation.kind);
    made.is_some_and(|made| made.width >= 4 && !made.pc_relative)
}

/// Instructions inside functions that symbols name to other objects: hand-written code has
/// functions with several entries, and functions that no directive calls so.
fn entered(lifted: &Lifted<'_>) -> Vec<InstIdx> {
    let symbols = lifted.object.symbols();
    let named = symbols.filter(|(_, symbol)| {
        symbol.binding != STB_LOCAL
            && symbol.kind != STT_SECTION
            && matches!(symbol.place, Place::In(_))
    });
    let insts = named.filter_map(|(id, _)| {
        let (code, offset) = lifted.code_place(id, 0)?;
        lifted.inst_at(code, offset)
    });
    insts.filter(|i| !begins_function(lifted, *i)).collect()
}

/// Instructions that do nothing and have a statement of their own, as padding has none.
fn markers(lifted: &Lifted<'_>, tie: &Tie) -> HashSet<u32> {
    let insts = (0..lifted.insts.len() as u32).map(InstIdx);
    let idle = insts.filter(|i| does_nothing(&lifted.inst(*i).iced));
    idle.filter(|i| tie.statement(*i).is_some())
        .map(|i| i.0)
        .collect()
}

/// `nop` in all its forms, and `xchg %rbx,%rbx` with which valgrind's requests end.
fn does_nothing(iced: &Instruction) -> bool {
    let itself = iced.mnemonic() == Mnemonic::Xchg
        && iced.op_kind(0) == OpKind::Register
        && iced.op_kind(1) == OpKind::Register
        && iced.op0_register() == iced.op1_register();
    itself || iced.mnemonic() == Mnemonic::Nop
}

fn begins_function(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    lifted.function(lifted.function_of(i)).insts.start == i.0
}

/// Entries of functions that another object may define as well: the linker decides where
/// calls of them go (psABI 3.5.5, and ELF's symbol preemption).
fn replaceable(lifted: &Lifted<'_>, is_replaceable: fn(&Symbol<'_>) -> bool) -> HashSet<u32> {
    let symbols = lifted.object.symbols();
    let global = symbols.filter(|(_, symbol)| is_replaceable(symbol));
    global
        .filter_map(|(id, _)| {
            let (code, offset) = lifted.code_place(id, 0)?;
            Some(lifted.inst_at(code, offset)?.0)
        })
        .collect()
}

/// A reference to a numeric label, `1f`.
#[derive(Clone, Copy)]
struct Numeric<'t> {
    /// The statement that has it.
    at: u32,
    number: &'t [u8],
    /// It is `f`, and the label comes later.
    forward: bool,
    /// The statement may stand for others, elsewhere.
    anywhere: bool,
}

/// Names of labels that are referred to by more than branches.
#[derive(Default)]
struct Names<'t> {
    jumped: HashSet<&'t [u8]>,
    numeric: Vec<Numeric<'t>>,
    unwound: HashSet<&'t [u8]>,
    /// There may be others, which macros or repetitions make, or labels of such names.
    made: bool,
}

impl<'t> Names<'t> {
    fn find(text: &'t [u8], statements: &[Statement]) -> Names<'t> {
        let mut names = Names::default();
        let mut sections = Sections::default();
        for (k, statement) in (0..).zip(statements) {
            match statement.kind {
                StatementKind::Directive => {
                    let name = statement.name(text);
                    // Most directives are these, which neither switch sections nor make
                    // data.
                    if name.starts_with(b".cfi_") || name == b".loc" {
                        continue;
                    }
                    sections.directive(name, statement.rest(text));
                    if !is_data(name) {
                        continue;
                    }
                }
                StatementKind::Instruction if is_direct_branch(text, statement) => continue,
                StatementKind::Instruction
                | StatementKind::Assignment
                | StatementKind::Opaque
                | StatementKind::Definition => {}
                StatementKind::Label | StatementKind::Prefix => continue,
            }
            let rest = statement.rest(text);
            names.made |= may_make_names(text, statement);
            match sections.current() {
                Section::Debug => {}
                Section::Unwinding => names.unwound.extend(symbols(rest)),
                Section::Code | Section::Data => {
                    let anywhere = matches!(
                        statement.kind,
                        StatementKind::Opaque | StatementKind::Definition
                    );
                    names.jumps(k, rest, anywhere);
                }
            }
        }
        names
    }

    /// Records what the operands of statement `at` name.
    fn jumps(&mut self, at: u32, rest: &'t [u8], anywhere: bool) {
        for name in symbols(rest) {
            match name.split_last() {
                Some((direction @ (b'b' | b'f'), number)) if is_number(number) => {
                    self.numeric.push(Numeric {
                        at,
                        number: without_zeros(number),
                        forward: *direction == b'f',
                        anywhere,
                    });
                }
                _ if begins_with_digit(name) => {}
                _ => _ = self.jumped.insert(name),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.jumped.is_empty() && self.numeric.is_empty() && self.unwound.is_empty() && !self.made
    }

    /// The numeric labels that are referred to, by their statements.
    fn numeric_labels(&self, text: &'t [u8], statements: &[Statement]) -> HashSet<u32> {
        let mut found = HashSet::default();
        if self.numeric.is_empty() {
            return found;
        }
        let mut labels: HashMap<&[u8], Vec<u32>> = HashMap::default();
        for (k, statement) in (0..).zip(statements) {
            let name = statement.name(text);
            if statement.kind == StatementKind::Label && is_number(name) {
                labels.entry(without_zeros(name)).or_default().push(k);
            }
        }
        for reference in &self.numeric {
            let all = labels.get(reference.number).map_or(&[][..], Vec::as_slice);
            let later = all.partition_point(|k| *k < reference.at);
            if reference.anywhere {
                found.extend(all);
            } else if reference.forward {
                found.extend(all.get(later));
            } else {
                found.extend(later.checked_sub(1).map(|n| all[n]));
            }
        }
        found
    }
}

fn is_number(name: &[u8]) -> bool {
    !name.is_empty() && name.iter().all(u8::is_ascii_digit)
}

/// `01` and `1` are the same label.
fn without_zeros(number: &[u8]) -> &[u8] {
    let zeros = number.iter().take_while(|digit| **digit == b'0').count();
    &number[zeros.min(number.len() - 1)..]
}

/// Whether a statement in a macro or a repetition may name, or be, a label that is not in the
/// text: `.quad .Lcase\\n`.
fn may_make_names(text: &[u8], statement: &Statement) -> bool {
    let inside = matches!(
        statement.kind,
        StatementKind::Opaque | StatementKind::Definition
    );
    inside
        && (statement.text(text).contains(&b'\\') && !is_direct_branch(text, statement)
            || statement.text(text).contains(&b':'))
}

/// The names and numbers in an expression or in operands, registers left out. A name may be
/// in quotes.
fn symbols(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    let symbol = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$') || b >= 128;
    let mut rest = expression;
    let mut immediate: &[u8] = &[];
    std::iter::from_fn(move || {
        // `$x` is an immediate, or the name of a label.
        if let Some((b'$', name)) = std::mem::take(&mut immediate).split_first() {
            return Some(name);
        }
        loop {
            let start = rest
                .iter()
                .position(|b| symbol(*b) || matches!(b, b'%' | b'"' | b'/'))?;
            let first = rest[start];
            rest = &rest[start + usize::from(!symbol(first))..];
            let end = match first {
                b'"' => end_of_string(rest),
                b'/' => Some(length_of_comment(rest)),
                _ => rest.iter().position(|b| !symbol(*b)),
            };
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            if first == b'"' {
                rest = after.strip_prefix(b"\"").unwrap_or(after);
            }
            if !matches!(first, b'%' | b'/') && !name.is_empty() && name != b"$" {
                immediate = if first == b'$' { name } else { b"" };
                return Some(name);
            }
        }
    })
}

/// Length of a comment behind its first `/`; none if it is a division.
fn length_of_comment(text: &[u8]) -> usize {
    if !text.starts_with(b"*") {
        return 0;
    }
    let close = text[1..].windows(2).position(|two| two == b"*/");
    close.map_or(text.len(), |close| 1 + close + 2)
}

fn is_direct_branch(text: &[u8], statement: &Statement) -> bool {
    let branch = match text[statement.start as usize].to_ascii_lowercase() {
        b'j' => true,
        b'c' => statement
            .name(text)
            .to_ascii_lowercase()
            .starts_with(b"call"),
        b'l' => statement
            .name(text)
            .to_ascii_lowercase()
            .starts_with(b"loop"),
        _ => false,
    };
    branch && !statement.rest(text).starts_with(b"*")
}

#[cfg(test)]
mod tests {
    use super::super::statement::split;
    use super::*;

    #[test]
    fn tables_and_addresses_name_labels_branches_do_not() {
        let text = b".text\n jmp .L1\n leaq .L2(%rip), %rax\n jmp *.L3(,%rax,8)\n\
            .section .rodata\n.L3: .quad .L4\n .long .L5-.L3\n\
            .section .debug_info,\"\",@progbits\n .quad .L6\n\
            .section .gcc_except_table,\"a\"\n .uleb128 .L7-.LFB0\n";
        let names = Names::find(text, &split(text));
        let sorted = |set: &HashSet<&[u8]>| {
            let mut all: Vec<String> = set
                .iter()
                .map(|n| String::from_utf8_lossy(n).into_owned())
                .collect();
            all.sort();
            all.join(" ")
        };
        assert_eq!(sorted(&names.jumped), ".L2 .L3 .L4 .L5");
        assert_eq!(sorted(&names.unwound), ".L7 .LFB0");
    }

    #[test]
    fn names_that_people_give_to_labels() {
        let all = |text: &'static str| -> Vec<&str> {
            let names = symbols(text.as_bytes());
            names
                .map(|name| std::str::from_utf8(name).expect("ASCII"))
                .collect()
        };
        assert_eq!(all("$case0+4, 8(%rdi,%rax)"), ["$case0", "case0", "4", "8"]);
        assert_eq!(all("a, /* \" */ b/2 /* c */"), ["a", "b", "2"]);
        assert_eq!(all("1f-\"a\\\" b\"(,%r8)"), ["1f", "a\\\" b"]);
        assert!(all("%st(1), %gs:(%rax)").contains(&"1"));
    }

    #[test]
    fn numeric_labels_are_the_nearest() {
        let text = b"1: nop\n lea 1b(%rip), %rax\n lea 1f(%rip), %rax\n1: nop\n1: jmp 1b\n";
        let statements = split(text);
        let names = Names::find(text, &statements);
        let mut found: Vec<u32> = names
            .numeric_labels(text, &statements)
            .into_iter()
            .collect();
        found.sort_unstable();
        assert_eq!(found, [0, 4]);
    }
}
