//! Labels whose address is taken: where indirect jumps may go.
//!
//! A compiler's jump tables, computed gotos and exception tables name labels
//! (`.L5`) in data, or in instructions other than direct branches. Text still has these
//! names where objects have differences of numbers. An indirect jump is assumed to reach
//! every label of its function that is named in this way.

use elf_loader::Symbol;
use foldhash::HashSet;

use super::marks::{StatementIdx, Tie};
use super::statement::{Statement, StatementKind};
use crate::analyse::flow::Hints;
use crate::lift::Lifted;

/// What a section's contents mean to control flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    Code,
    Data,
    Unwinding,
    /// Its contents are not used for jumps.
    Debug,
}

/// Finds where indirect jumps and unwinding may go, by the labels that the text takes
/// the address of.
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
        ..Hints::default()
    };
    if names.jumped.is_empty() && names.unwound.is_empty() {
        return reached;
    }
    let mut waiting: Vec<&[u8]> = Vec::new();
    for (k, statement) in statements.iter().enumerate() {
        match statement.kind {
            StatementKind::Label => waiting.push(statement.name(text)),
            StatementKind::Instruction if !waiting.is_empty() => {
                let inst = tie.inst(StatementIdx(k as u32));
                for name in waiting.drain(..) {
                    reached
                        .by_jumps
                        .extend(inst.filter(|_| names.jumped.contains(name)));
                    reached
                        .by_unwinding
                        .extend(inst.filter(|_| names.unwound.contains(name)));
                }
            }
            StatementKind::Directive if switches(statement.name(text)) => waiting.clear(),
            _ => {}
        }
    }
    reached
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

/// Names of labels that are referred to by more than branches.
#[derive(Default)]
struct Names<'t> {
    jumped: HashSet<&'t [u8]>,
    unwound: HashSet<&'t [u8]>,
}

impl<'t> Names<'t> {
    fn find(text: &'t [u8], statements: &[Statement]) -> Names<'t> {
        let mut names = Names::default();
        let mut sections = Sections::default();
        for statement in statements {
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
            let into = match sections.current {
                Section::Debug => continue,
                Section::Unwinding => &mut names.unwound,
                Section::Code | Section::Data => &mut names.jumped,
            };
            let rest = statement.rest(text);
            // Few have a label, and this test is cheap.
            if rest.contains(&b'.') {
                into.extend(local_labels(rest));
            }
        }
        names
    }
}

/// The names in an expression that are compilers' labels.
fn local_labels(expression: &[u8]) -> impl Iterator<Item = &[u8]> {
    let symbol = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$');
    expression
        .split(move |b| !symbol(b))
        .filter(|name| name.starts_with(b".L"))
}

pub(super) fn is_data(name: &[u8]) -> bool {
    matches!(
        name,
        b".long"
            | b".quad"
            | b".8byte"
            | b".4byte"
            | b".2byte"
            | b".int"
            | b".value"
            | b".word"
            | b".short"
            | b".hword"
            | b".byte"
            | b".octa"
            | b".uleb128"
            | b".sleb128"
            | b".set"
            | b".equ"
            | b".equiv"
            | b".reloc"
    )
}

fn is_direct_branch(text: &[u8], statement: &Statement) -> bool {
    let branch = match text[statement.start as usize] {
        b'j' => true,
        b'c' => statement.name(text).starts_with(b"call"),
        b'l' => statement.name(text).starts_with(b"loop"),
        _ => false,
    };
    branch && !statement.rest(text).starts_with(b"*")
}

pub(super) fn switches(name: &[u8]) -> bool {
    matches!(
        name,
        b".section"
            | b".text"
            | b".data"
            | b".bss"
            | b".pushsection"
            | b".popsection"
            | b".previous"
            | b".subsection"
    )
}

/// The current section, by the directives that switch it.
pub(super) struct Sections {
    current: Section,
    previous: Section,
    pushed: Vec<(Section, Section)>,
}

impl Default for Sections {
    fn default() -> Sections {
        Sections {
            current: Section::Code,
            previous: Section::Code,
            pushed: Vec::new(),
        }
    }
}

impl Sections {
    /// Whether the current section holds data that is loaded.
    pub(super) fn is_data(&self) -> bool {
        matches!(self.current, Section::Code | Section::Data)
    }

    pub(super) fn directive(&mut self, name: &[u8], rest: &[u8]) {
        match name {
            b".text" => self.enter(Section::Code),
            b".data" | b".bss" => self.enter(Section::Data),
            b".section" => self.enter(kind_of(rest)),
            b".pushsection" => {
                self.pushed.push((self.current, self.previous));
                self.enter(kind_of(rest));
            }
            b".popsection" => {
                if let Some((current, previous)) = self.pushed.pop() {
                    (self.current, self.previous) = (current, previous);
                }
            }
            b".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            _ => {}
        }
    }

    fn enter(&mut self, section: Section) {
        self.previous = self.current;
        self.current = section;
    }
}

fn kind_of(arguments: &[u8]) -> Section {
    let name = arguments.strip_prefix(b"\"").unwrap_or(arguments);
    let starts = |prefix: &[u8]| name.starts_with(prefix);
    if starts(b".debug") || starts(b".eh_frame") || starts(b".note") || starts(b".stab") {
        Section::Debug
    } else if starts(b".gcc_except_table") {
        Section::Unwinding
    } else if starts(b".text") {
        Section::Code
    } else {
        Section::Data
    }
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
}
