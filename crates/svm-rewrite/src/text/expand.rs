//! Macros and repetitions written out, so that each instruction has a statement of its own.
//!
//! ```text
//!     .macro load from, to         .macro load from, to
//!     mov (\from), \to             mov (\from), \to
//!     .endm                        .endm
//!     load %rdi, %rax      ──>     mov (%rdi), %rax
//!     .rept 2                      nop
//!     nop                          nop
//!     .endr
//! ```
//!
//! These are the usual forms of as.info, ".macro", ".rept", ".irp" and ".irpc"; others stay
//! as they are. The assembler is the judge: an expansion counts only if it is assembled to
//! the object that the text is assembled to ([`same`]). So what is misunderstood here is
//! refused, never taken for something else.

use elf_loader::consts::SHF_ALLOC;
use elf_loader::{Object, Section, Symbol};
use foldhash::HashMap;

use super::arguments::{Parameter, bind, list, number, parameters, substitute};
use super::directives::{Conditional, is_end, is_repetition};
use super::statement::{Statement, StatementKind, split};

/// Deepest nesting of uses: a macro may use itself.
const DEEPEST: u32 = 64;
/// Longest expansion, in bytes.
const LONGEST: usize = 16 << 20;

/// A text with its macros and repetitions written out.
#[derive(Debug)]
pub struct Expansion {
    /// The text.
    pub text: Vec<u8>,
    /// For each of its lines the one of the original that it comes from, from 1.
    pub(super) lines: Vec<u32>,
}

/// Expands a text. `None` if there is nothing to expand, or if that is not possible.
pub fn expand(text: &[u8]) -> Option<Expansion> {
    let mut expander = Expander {
        macros: HashMap::default(),
        uses: 0,
        changed: false,
        out: Expansion {
            text: Vec::with_capacity(text.len()),
            lines: Vec::new(),
        },
    };
    expander.text(text, Line::Counted(1), 0)?;
    // The last line may lack its end.
    let last = text.iter().filter(|b| **b == b'\n').count() as u32 + 1;
    expander.out.lines.push(last);
    expander.changed.then_some(expander.out)
}

/// Whether two objects are loaded alike: the same sections, relocations and symbols. What
/// is not loaded, as debug information, may differ: it tells of lines.
pub fn same(a: &Object<'_>, b: &Object<'_>) -> bool {
    let sections = a.sections.len() == b.sections.len();
    let symbols = a.symbols.len() == b.symbols.len();
    sections
        && symbols
        && a.symbols.iter().zip(&b.symbols).all(|(a, b)| {
            let of = |s: &Symbol<'_>| (s.place, s.value, s.size, s.kind, s.binding);
            a.name == b.name && of(a) == of(b)
        })
        && a.sections.iter().zip(&b.sections).all(|(one, other)| {
            let of = |s: &Section<'_>| (s.kind, s.flags, s.align);
            let loaded = one.flags & SHF_ALLOC != 0;
            one.name == other.name
                && of(one) == of(other)
                && (!loaded
                    || one.size == other.size
                        && one.data == other.data
                        && one.relocations == other.relocations)
        })
}

/// A macro.
struct Macro {
    parameters: Vec<Parameter>,
    body: Vec<u8>,
}

/// The line of the original that text comes from.
#[derive(Clone, Copy)]
enum Line {
    /// It is the original itself, at this line.
    Counted(u32),
    /// It was made of this line.
    Fixed(u32),
}

impl Line {
    fn number(self) -> u32 {
        match self {
            Line::Counted(n) | Line::Fixed(n) => n,
        }
    }

    /// Goes on past this text.
    fn pass(&mut self, text: &[u8]) {
        if let Line::Counted(n) = self {
            *n += text.iter().filter(|b| **b == b'\n').count() as u32;
        }
    }
}

/// What a statement begins, with its last statement.
enum Construct {
    /// Nothing that is expanded.
    Other,
    /// The definition of a macro.
    Definition(usize),
    /// A repetition or the use of a macro, and the texts that it stands for.
    Use(usize, Vec<Vec<u8>>),
}

struct Expander {
    macros: HashMap<Vec<u8>, Macro>,
    /// How many macros were used: `\@`.
    uses: u32,
    changed: bool,
    out: Expansion,
}

impl Expander {
    /// Appends a text, expanded.
    fn text(&mut self, text: &[u8], mut line: Line, depth: u32) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        let statements = split(text);
        let (mut k, mut copied) = (0, 0);
        let mut conditions = Conditions::default();
        while let Some(statement) = statements.get(k) {
            conditions.statement(statement.name(text), statement.rest(text));
            if conditions.is_dead() {
                // `as` does not look at it: a macro that uses itself ends here.
                k += 1;
                continue;
            }
            let last = match self.construct(text, &statements, k)? {
                Construct::Other => k,
                Construct::Definition(last) => last,
                Construct::Use(last, made) => {
                    let (start, end) = (statement.start as usize, statements[last].end as usize);
                    self.copy(&text[copied..start], &mut line);
                    self.made(made, line.number(), depth)?;
                    line.pass(&text[start..end]);
                    copied = end;
                    last
                }
            };
            k = last + 1;
        }
        self.copy(&text[copied..], &mut line);
        (self.out.text.len() <= LONGEST).then_some(())
    }

    /// Appends what was made of a line, from a new line on: a label may come before.
    fn made(&mut self, made: Vec<Vec<u8>>, line: u32, depth: u32) -> Option<()> {
        self.changed = true;
        self.copy(b"\n", &mut Line::Fixed(line));
        for part in made {
            self.text(&part, Line::Fixed(line), depth + 1)?;
            self.copy(b"\n", &mut Line::Fixed(line));
        }
        Some(())
    }

    fn copy(&mut self, text: &[u8], line: &mut Line) {
        self.out.text.extend_from_slice(text);
        for _ in text.iter().filter(|b| **b == b'\n') {
            self.out.lines.push(line.number());
            line.pass(b"\n");
        }
    }

    /// The definition, repetition or use that begins with statement `k`. `None` if it
    /// cannot be told what it stands for.
    fn construct(&mut self, text: &[u8], statements: &[Statement], k: usize) -> Option<Construct> {
        let statement = &statements[k];
        if matches!(
            statement.kind,
            StatementKind::Label | StatementKind::Assignment
        ) {
            return Some(Construct::Other);
        }
        let name = statement.name(text).to_ascii_lowercase();
        match &*name {
            // Other rules hold from here on, or bodies end early.
            b".altmacro" | b".exitm" | b".mri" => None,
            b".purgem" => {
                self.macros
                    .remove(&statement.rest(text).to_ascii_lowercase());
                Some(Construct::Other)
            }
            b".macro" => {
                let (last, body) = body(text, statements, k)?;
                let (name, parameters) = parameters(statement.rest(text))?;
                let body = body.to_owned();
                self.macros.insert(name, Macro { parameters, body });
                Some(Construct::Definition(last))
            }
            name if is_repetition(name) => {
                let (last, body) = body(text, statements, k)?;
                let made = repeated(name, statement.rest(text), body)?;
                Some(Construct::Use(last, made))
            }
            name => {
                let Some(used) = self.macros.get(name) else {
                    return Some(Construct::Other);
                };
                let bound = bind(&used.parameters, statement.rest(text))?;
                let made = substitute(&used.body, &bound, Some(self.uses));
                self.uses += 1;
                Some(Construct::Use(k, vec![made]))
            }
        }
    }
}

/// The open conditions of a text, each with its value if that is known.
#[derive(Default)]
struct Conditions(Vec<Option<bool>>);

impl Conditions {
    fn statement(&mut self, name: &[u8], rest: &[u8]) {
        match Conditional::of(name) {
            Some(Conditional::If) => self.0.push(condition(name, rest)),
            Some(Conditional::End) => _ = self.0.pop(),
            Some(Conditional::Else) => {
                if let Some(last) = self.0.last_mut() {
                    *last = last.filter(|_| name == b".else").map(|value| !value);
                }
            }
            None => {}
        }
    }

    fn is_dead(&self) -> bool {
        self.0.contains(&Some(false))
    }
}

/// The value of a condition, if it does not depend on symbols.
fn condition(name: &[u8], rest: &[u8]) -> Option<bool> {
    match name {
        b".if" | b".ifne" => number(rest).map(|value| value != 0),
        b".ifeq" => number(rest).map(|value| value == 0),
        b".ifb" => Some(rest.is_empty()),
        b".ifnb" => Some(!rest.is_empty()),
        _ => None,
    }
}

/// The body that statement `k` opens, and the statement that closes it.
fn body<'t>(text: &'t [u8], statements: &[Statement], k: usize) -> Option<(usize, &'t [u8])> {
    let mut open = 0_u32;
    for (n, statement) in statements.iter().enumerate().skip(k) {
        let name = &*statement.name(text).to_ascii_lowercase();
        open += u32::from(is_repetition(name) || name == b".macro");
        open -= u32::from(is_end(name));
        if open == 0 {
            let (from, to) = (statements[k].end as usize, statement.start as usize);
            return Some((n, &text[from..to]));
        }
    }
    None
}

/// The texts that a repetition stands for.
fn repeated(name: &[u8], rest: &[u8], body: &[u8]) -> Option<Vec<Vec<u8>>> {
    if matches!(name, b".rept" | b".rep") {
        let count = usize::try_from(number(rest)?).unwrap_or(0);
        let fits = count.checked_mul(body.len())? <= LONGEST;
        return fits.then(|| vec![body.to_owned(); count]);
    }
    let end = rest.iter().position(|b| matches!(b, b',' | b' ' | b'\t'));
    let (symbol, values) = rest.split_at(end.unwrap_or(rest.len()));
    let values = values.trim_ascii_start();
    let values = values.strip_prefix(b",").unwrap_or(values).trim_ascii();
    let values = match name {
        b".irpc" | b".irepc" => list(values)?.concat().iter().map(|c| vec![*c]).collect(),
        _ => list(values)?,
    };
    let values = if values.is_empty() {
        vec![Vec::new()]
    } else {
        values
    };
    let one = |value: Vec<u8>| substitute(body, &[(symbol.to_owned(), value)], None);
    Some(values.into_iter().map(one).collect())
}
