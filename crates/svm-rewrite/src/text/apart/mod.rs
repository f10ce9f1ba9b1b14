//! Tables that stand among code, put into a section of their own.
//!
//! ```text
//!         ret                          ret
//!         .align 64                    .pushsection .rodata.twin,"a"; .align 64
//! K256:   .long 0x428a2f98, ...  ──>   K256:   .long 0x428a2f98, ...; .popsection
//! ```
//!
//! Their bytes are no instructions, so an object with them cannot be decoded; elsewhere they can
//! stay as they are. Hand-written cryptography has them (openssl's, before its release 3.2).
//!
//! All tables of a text are moved, or none. They are if
//!
//! * the text is plain: without macros, and symbols whose value is a place ([`uses`]);
//! * nothing runs on into a table, and nothing can mean it by the place of code: a return or a jump
//!   stands before, and no branch names its labels; behind are the section's end, or an alignment and
//!   code ([`finder`]); and the text has the address of none of its code ([`address`]);
//! * every name of it, with the number that is added, is a place in it ([`mention`]); whoever goes to
//!   a place whose address is taken meets what cannot be run, before he may leave ([`proof`]), and
//!   code that takes one goes nowhere by a register;
//! * tables of one section that the text names are one: distances between do not change;
//! * the assembler makes the same bytes of it at both places, aligned alike ([`proof`]).
//!
//! Otherwise they stay, and the text is refused as before.

mod address;
mod finder;
mod mention;
mod points;
mod proof;
mod stack;
mod uses;

use std::ops::Range;

use elf_loader::Object;

use super::statement::{Statement, split_to_end};
use crate::lift::lift_for;
use points::Point;
use proof::{Assembled, is_data, is_the_same};
use uses::Uses;

/// The section that tables are put into. Another's contents may have to stay side by side.
const SECTION: &str = ".rodata.twin";

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
    /// Alignments in it.
    gaps: Vec<usize>,
    /// Directives in it that switch to the section that it is in.
    switches: Vec<usize>,
    labels: Vec<Named>,
}

/// A label of a table, and the places that it is named for.
#[derive(Debug)]
struct Named {
    /// Its statement.
    at: usize,
    /// What is added where it is read.
    read: Vec<i64>,
    /// What is added where its address is taken.
    taken: Vec<i64>,
}

/// How a table stands in its section.
#[derive(Debug)]
struct Stand<'o> {
    /// What the section is aligned to.
    align: u64,
    /// How many bytes it stands beyond that.
    rest: u64,
    /// What fills its alignments: code is filled up with other bytes than data.
    gaps: Vec<&'o [u8]>,
}

/// Which text is written.
#[derive(Clone, Copy)]
enum Form<'p> {
    /// As it was, with marks.
    Original,
    /// Tables apart, with marks.
    Marked(&'p [Stand<'p>]),
    /// The same without marks.
    Apart(&'p [Stand<'p>]),
}

impl<'t> Proposal<'t> {
    /// Finds the tables of a text. `None` if there are none, or if it is not plain.
    pub fn find(text: &'t [u8]) -> Option<Proposal<'t>> {
        let (statements, misread) = split_to_end(text);
        let uses = Uses::find(text, &statements)?;
        let tables = finder::tables(text, &statements, &uses);
        let found = misread.is_none() && !tables.is_empty();
        found.then_some(Proposal {
            text,
            statements,
            tables,
        })
    }

    /// The text with its tables apart, if `assemble`, which gives the object of a text, makes the
    /// same bytes of them and they cannot be run. Its lines are those of the original.
    pub fn settle(&self, assemble: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let original = assemble(&self.written(Form::Original))?;
        let original = elf_loader::read(&original).ok()?;
        let original = Assembled::new(&original);
        let tables = || self.tables.iter().enumerate();
        let stands = tables().map(|(n, table)| {
            let (align, rest) = original.stands(n)?;
            let gaps = original.gaps(n, table)?;
            Some(Stand { align, rest, gaps })
        });
        let stands: Vec<Stand<'_>> = stands.collect::<Option<_>>()?;
        if original.has_section() {
            return None;
        }
        // With a distance between code and a table it may not be assembled.
        let apart = assemble(&self.written(Form::Marked(&stands)))?;
        let apart: Object<'_> = elf_loader::read(&apart).ok()?;
        let moved = Assembled::new(&apart);
        let is_data = tables()
            .all(|(n, table)| is_data(table, n, &original) && is_the_same(n, &original, &moved));
        let holds = is_data && self.is_read_alone(&apart, &moved);
        holds.then(|| self.written(Form::Apart(&stands)))
    }

    /// Whether code goes and reads to a table by its names alone: it has no address of its own; it
    /// does not go where a register points, which may be more than the address of a table; and no
    /// operand reads beyond the end.
    fn is_read_alone(&self, apart: &Object<'_>, moved: &Assembled<'_, '_>) -> bool {
        let Ok(lifted) = lift_for(apart, true) else {
            return false;
        };
        let mut labels = self.tables.iter().flat_map(|table| &table.labels);
        let is_taken = labels.any(|label| !label.taken.is_empty());
        let goes_on = is_taken && address::goes_by_register(&lifted);
        let mut insts = lifted.insts.iter();
        !goes_on && !address::is_had(&lifted) && insts.all(|inst| moved.ends_within(&lifted, inst))
    }

    fn written(&self, form: Form<'_>) -> Vec<u8> {
        let mut writer = Writer {
            text: self.text,
            copied: 0,
            out: Vec::with_capacity(self.text.len() + 64 * self.tables.len()),
        };
        let (stands, is_marked) = match form {
            Form::Original => (None, true),
            Form::Marked(stands) => (Some(stands), true),
            Form::Apart(stands) => (Some(stands), false),
        };
        let statement = |k: usize| &self.statements[k];
        for (n, table) in self.tables.iter().enumerate() {
            writer.copy(statement(table.statements.start).start);
            let stand = stands.map(|stands| &stands[n]);
            if let Some(Stand { align, rest, .. }) = stand {
                writer.add(&format!(
                    ".pushsection {SECTION},\"a\",@progbits; .balign {align}; "
                ));
                // The assembler warns of none.
                if *rest != 0 {
                    writer.add(&format!(".skip {rest}; "));
                }
            }
            for (k, part) in table.parts() {
                writer.copy(statement(k).start);
                let end = statement(k).end;
                match (part, stand) {
                    (Part::Switch, Some(_)) => writer.leave_out(end),
                    (Part::At(Point::Gap(gap)), Some(stand)) => {
                        writer.leave_out(end);
                        writer.add(&numbers(stand.gaps[gap]));
                    }
                    (Part::At(point @ Point::Gap(gap)), None) => {
                        writer.add(&format!("{}: ", point.name(n)));
                        writer.copy(end);
                        writer.add(&format!("; {}:", Point::GapEnd(gap).name(n)));
                    }
                    (Part::At(point), _) if is_marked => {
                        writer.add(&format!("{}: ", point.name(n)));
                    }
                    (Part::Switch, None) | (Part::At(_), _) => {}
                }
            }
            writer.copy(statement(table.statements.end - 1).end);
            if is_marked {
                writer.add(&format!("; {}:", Point::End.name(n)));
            }
            if stand.is_some() {
                writer.add("; .popsection");
            }
        }
        writer.copy(self.text.len() as u32);
        writer.out
    }
}

/// Bytes as a directive; nothing for none.
fn numbers(bytes: &[u8]) -> String {
    let numbers: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
    match bytes {
        [] => String::new(),
        _ => format!(".byte {}", numbers.join(",")),
    }
}

/// A text as it is copied.
struct Writer<'t> {
    text: &'t [u8],
    copied: usize,
    out: Vec<u8>,
}

impl Writer<'_> {
    fn copy(&mut self, to: u32) {
        self.out
            .extend_from_slice(&self.text[self.copied..to as usize]);
        self.copied = to as usize;
    }

    fn leave_out(&mut self, to: u32) {
        self.copied = to as usize;
    }

    fn add(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }
}

/// What is written differently in a table.
#[derive(Clone, Copy)]
enum Part {
    /// A mark stands before.
    At(Point),
    /// It is left out.
    Switch,
}

impl Table {
    /// The statements before which something else is written, in order.
    fn parts(&self) -> Vec<(usize, Part)> {
        let labels = self.labels.iter().enumerate();
        let gaps = self.gaps.iter().enumerate();
        let mut parts: Vec<(usize, Part)> = labels
            .map(|(n, label)| (label.at, Part::At(Point::Label(n))))
            .collect();
        parts.push((self.first, Part::At(Point::First)));
        parts.extend(gaps.map(|(gap, k)| (*k, Part::At(Point::Gap(gap)))));
        parts.extend(self.switches.iter().map(|k| (*k, Part::Switch)));
        parts.sort_by_key(|(k, _)| *k);
        parts
    }
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
            tables("f: mov k(%rip),%al\njmp h\nk: .asciz \"k\"\n.p2align 2\nh: ret\n"),
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
            "f: ret\nk: .long 1\n.align 1\ng: ret\n",
            // More data is at a distance from it.
            "f: ret\nk: .long 1\n.align 8\n.set x,1\nl: .long 2\n",
            // Others run on into it.
            ".section .init,\"ax\"\n.byte 0x90\n",
            "f: nop\n.text 1\n.byte 0x90,0xc3\n",
            // Something else has the name of its place.
            "f: lea e(%rip),%rax\nret\ne: .cfi_endproc\n.long 1\n",
            // Another name of that place is taken; the section goes on later.
            "f: lea g(%rip),%rcx\nret\nk: .long 1\n.align 8\n.globl x\nx:\ng: ret\n",
            "f: mov k(%rip),%eax\nret\nk: .long 1\n.data\n.long 1\n.text\ng: ret\n",
            // It is written.
            "f: mov %eax,k(%rip)\nret\nk: .long 1\n",
            "f: incl k(%rip)\nret\nk: .long 1\n",
            // Names that are not read as such.
            "f: {disp32} call k\nret\nk: .long 1\n",
            "f: call \"k\"\nret\n\"k\": .long 1\n",
            "f: mov k@GOTPCREL(%rip),%rcx\nret\nk: .long 1\n",
            "f: call g\nret\n.set g,.\n.long 1\n",
            "f: call g\nret\n.set g,k\nk: .long 1\n",
            "f: call g\nret\ng = k\nk: .long 1\n",
            "f: ret\n.TYPE k,@function\nk: .long 1\n",
            // Sections of one name.
            ".text 0x0\nf: nop\n.text\n.byte 0x90,0xc3\n",
            ".section .text.f,\"axG\",@progbits,g\nf: ret\n.long 1\n",
            ".section .text.f,\"awx\"\nf: ret\n.long 1\n",
            ".section \".te\\170t\"\nf: ret\n.text\n.long 1\n",
            // Two that are reached from one another, across code.
            "f: mov k(%rip),%eax\nmov l(%rip),%eax\nret\nk: .long 1\n.align 8\ng: ret\nl: .long 2\n",
            // It is no code's section, or what hides more.
            "f: ret\n.data\nk: .long 1\n",
            ".macro m\nnop\n.endm\nf: m\nret\nk: .long 1\n",
            "f: nop\n.macro m\nret\n.endm\nk: .long 1\n",
            ".intel_syntax noprefix\nf: ret\nk: .long 1\n",
        ] {
            assert_eq!(tables(text), [""; 0], "{text}");
        }
    }
}
