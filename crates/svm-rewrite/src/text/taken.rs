//! Labels whose address is taken: where indirect jumps may go.
//!
//! A compiler's jump tables, computed gotos and exception tables name labels
//! (`.L5`) in data, or in instructions other than direct branches. Text still has these
//! names where objects have differences of numbers. An indirect jump is assumed to reach
//! every label of its function that is named in this way, whatever the label is called:
//! people write `case0` and `1`.

use elf_loader::consts::{STB_LOCAL, STT_SECTION};
use elf_loader::{Place, Symbol};
use foldhash::{HashMap, HashSet};

use super::directives::is_data;
use super::sections::{Section, Sections};
use super::statement::{Statement, StatementKind};
use super::tie::{self, Tie};
use crate::analyse::flow::Hints;
use crate::lift::{InstIdx, Lifted};

/// Finds where indirect jumps and unwinding may go, by the labels that the text takes
/// the address of, and where other objects may enter.
pub fn find(
    text: &[u8],
    statements: &[Statement],
    tie: &Tie,
    lifted: &Lifted<'_>,
    is_replaceable: fn(&Symbol<'_>) -> bool,
) -> Hints {
    let names = Names::find(text, statements);
    let mut reached = Hints {
        replaceable: replaceable(lifted, is_replaceable),
        entered: entered(lifted),
        ..Hints::default()
    };
    if names.is_empty() {
        return reached;
    }
    let numeric = names.numeric_labels(text, statements);
    tie::labels(text, statements, tie, |k, name, i| {
        let name = unquoted(name);
        let jumped = names.jumped.contains(name) || numeric.contains(&k);
        // A function's address is that of its calls.
        if jumped && (name.starts_with(b".L") || !begins_function(lifted, i)) {
            reached.by_jumps.push(i);
        }
        if names.unwound.contains(name) {
            reached.by_unwinding.push(i);
        }
    });
    reached
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
            match sections.current {
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
                        number,
                        forward: *direction == b'f',
                        anywhere,
                    });
                }
                _ if name[0].is_ascii_digit() => {}
                _ => _ = self.jumped.insert(name),
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.jumped.is_empty() && self.numeric.is_empty() && self.unwound.is_empty()
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
                labels.entry(name).or_default().push(k);
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

/// The names and numbers in an expression or in operands, registers left out. A name may be
/// in quotes.
fn symbols(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    let symbol = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$') || b >= 128;
    let mut rest = expression;
    std::iter::from_fn(move || {
        loop {
            let start = rest
                .iter()
                .position(|b| symbol(*b) || matches!(b, b'%' | b'"'))?;
            let first = rest[start];
            rest = &rest[start + usize::from(!symbol(first))..];
            let end = match first {
                b'"' => rest.iter().position(|b| *b == b'"'),
                _ => rest.iter().position(|b| !symbol(*b)),
            };
            let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after.strip_prefix(b"\"").unwrap_or(after);
            // `$x` is an immediate.
            let name = name.strip_prefix(b"$").unwrap_or(name);
            if first != b'%' && !name.is_empty() {
                return Some(name);
            }
        }
    })
}

/// A label's name without quotes.
fn unquoted(name: &[u8]) -> &[u8] {
    let inner = name.strip_prefix(b"\"");
    inner
        .and_then(|name| name.strip_suffix(b"\""))
        .unwrap_or(name)
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
        assert_eq!(all("$case0+4, 8(%rdi,%rax)"), ["case0", "4", "8"]);
        assert_eq!(all("1f-\"a b\"(,%r8)"), ["1f", "a b"]);
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
