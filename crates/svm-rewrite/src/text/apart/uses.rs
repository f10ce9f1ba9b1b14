//! How a text uses its names, if it is plain enough to tell.

use foldhash::{HashMap, HashSet};

use super::super::directives::{declares, is_assignment, makes_bytes, switches};
use super::super::expression::{self, names};
use super::super::statement::{Statement, StatementKind, is_prefix};
use super::mention::{Mention, is_constant};

/// How the places behind a label are named.
#[derive(Default)]
pub struct Places {
    /// They are read there.
    pub read: Vec<i64>,
    /// An instruction or data has their address.
    pub taken: Vec<i64>,
}

/// How a text uses its names.
#[derive(Default)]
pub struct Uses<'t> {
    pub places: HashMap<&'t [u8], Places>,
    /// Labels in other expressions, in branches, and of what is written: no table is there.
    pub others: HashSet<&'t [u8]>,
    pub functions: HashSet<&'t [u8]>,
    pub objects: HashSet<&'t [u8]>,
    /// Others may name them.
    pub global: HashSet<&'t [u8]>,
}

impl<'t> Uses<'t> {
    /// `None` if macros, another syntax, or symbols with places for their values hide uses, or if
    /// what is code cannot be told from the names of sections.
    pub fn find(text: &'t [u8], statements: &[Statement]) -> Option<Uses<'t>> {
        let mut uses = Uses::default();
        for statement in statements {
            let (name, rest) = (statement.name(text), statement.rest(text));
            match statement.kind {
                StatementKind::Opaque => return None,
                // A macro that nothing uses any more.
                StatementKind::Definition | StatementKind::Prefix => {}
                StatementKind::Label if name.starts_with(b"\"") => return None,
                StatementKind::Label => {}
                StatementKind::Assignment => names(rest).all(is_constant).then_some(())?,
                StatementKind::Instruction => uses.instruction(statement.text(text))?,
                StatementKind::Directive => uses.directive(name, rest)?,
            }
        }
        Some(uses)
    }

    fn instruction(&mut self, text: &'t [u8]) -> Option<()> {
        let (mnemonic, operands) = unprefixed(text);
        let plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b',' | b'.' | b'_');
        if !mnemonic.iter().all(plain) || operands.windows(2).any(|pair| pair == b"/*") {
            return None;
        }
        let name = mnemonic.to_ascii_lowercase();
        let all: Vec<&[u8]> = expression::split(operands)
            .map(<[u8]>::trim_ascii)
            .collect();
        for (n, operand) in all.iter().enumerate() {
            let is_indirect = operand.starts_with(b"*");
            let may_be_written = n + 1 == all.len() && !only_reads(&name) || exchanges(&name);
            match Mention::of(operand) {
                _ if transfers(&name) && !is_indirect => self.others.extend(names(operand)),
                Mention::Number => {}
                Mention::Distance(to, from) => self.reach(to, from),
                Mention::Place(label, offset)
                    if operand.starts_with(b"$") || name.starts_with(b"lea") =>
                {
                    self.take(label, offset);
                }
                Mention::Place(label, offset) if is_indirect => self.read(label, offset),
                Mention::Place(label, _) if may_be_written => _ = self.others.insert(label),
                Mention::Place(label, offset) => self.read(label, offset),
                Mention::Other => self.others.extend(names(operand)),
            }
        }
        Some(())
    }

    /// Whoever is at one label may go to the other.
    fn reach(&mut self, to: &'t [u8], from: &'t [u8]) {
        self.take(to, 0);
        self.take(from, 0);
    }

    fn take(&mut self, label: &'t [u8], offset: i64) {
        self.places.entry(label).or_default().taken.push(offset);
    }

    fn read(&mut self, label: &'t [u8], offset: i64) {
        self.places.entry(label).or_default().read.push(offset);
    }

    fn directive(&mut self, name: &[u8], rest: &'t [u8]) -> Option<()> {
        let contains = |part: &[u8]| rest.windows(part.len()).any(|window| window == part);
        if name.iter().any(u8::is_ascii_uppercase) {
            return None;
        }
        match name {
            b".intel_syntax" | b".include" | b".mri" | b".subsection" => return None,
            b".att_syntax" if contains(b"noprefix") => return None,
            b".section" | b".pushsection" => return is_plain(rest).then_some(()),
            b".text" | b".data" | b".bss" => return rest.is_empty().then_some(()),
            b".globl" | b".global" | b".weak" => self.global.extend(names(rest)),
            b".type" => {
                let symbol = names(rest).next()?;
                // The comma may be left out. A name may have these letters, too.
                let kind = rest
                    .split(|b| matches!(b, b',' | b' ' | b'\t'))
                    .next_back()?;
                let is = |part: &[u8]| kind.windows(part.len()).any(|window| window == part);
                match is(b"object") || is(b"OBJECT") {
                    true => self.objects.insert(symbol),
                    false => self.functions.insert(symbol),
                };
            }
            b".size" => {}
            _ if is_assignment(name) => {
                let (_, value) = rest.split_at(rest.iter().position(|b| *b == b',')?);
                return names(value).all(is_constant).then_some(());
            }
            // An unwinder goes there.
            b".cfi_personality" => self.others.extend(names(rest)),
            _ if name.starts_with(b".cfi_") || switches(name) => {}
            b".ascii" | b".asciz" | b".string" => {}
            _ if makes_bytes(name) || !declares(name) => self.data(rest),
            _ => {}
        }
        Some(())
    }

    fn data(&mut self, fields: &'t [u8]) {
        for field in expression::split(fields).map(<[u8]>::trim_ascii) {
            match Mention::of(field) {
                Mention::Number => {}
                Mention::Distance(to, from) => self.reach(to, from),
                Mention::Place(label, offset) => self.take(label, offset),
                Mention::Other => self.others.extend(names(field)),
            }
        }
    }
}

/// Whether a section is what its name says: `.text.f,"ax",@progbits`. Sections of one name
/// may be several by their groups and numbers, and code may be written.
fn is_plain(arguments: &[u8]) -> bool {
    let mut fields = arguments.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let name = fields.next().unwrap_or_default();
    let flags = fields.next();
    let is_code = name.starts_with(b".text") || name.starts_with(b"\".text");
    let more = fields.count();
    // What the text itself puts beside the assembler's has the addresses of functions.
    let is_unwinders = name
        .strip_prefix(b"\"")
        .unwrap_or(name)
        .starts_with(b".eh_frame");
    !name.contains(&b'\\')
        && !is_unwinders
        && match flags {
            None => true,
            Some(b"\"ax\"") => more <= 1,
            Some(flags) => {
                let group = flags.iter().any(|b| matches!(b, b'G' | b'?' | b'0'..=b'9'));
                !is_code && !flags.contains(&b'x') && !group && flags.starts_with(b"\"")
            }
        }
}

/// Instructions that write both operands, or their only one in any case: `xchg`, `cmpxchg`,
/// `cmpbexadd`.
fn exchanges(name: &[u8]) -> bool {
    let parts: [&[u8]; 2] = [b"xchg", b"xadd"];
    parts
        .iter()
        .any(|part| name.windows(4).any(|window| window == *part))
}

/// Instructions that do not write their last operand in memory.
fn only_reads(name: &[u8]) -> bool {
    let starts = |prefix: &[u8]| name.starts_with(prefix);
    starts(b"cmp") || starts(b"test") || starts(b"push") || starts(b"mul") || starts(b"prefetch")
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

/// Whether an instruction, in lower case, goes to the place that its operand names.
fn transfers(name: &[u8]) -> bool {
    let prefixes: [&[u8]; 4] = [b"j", b"call", b"loop", b"xbegin"];
    prefixes.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether nothing runs on behind a statement. `rep ret` is often written in bytes.
pub fn ends(text: &[u8]) -> bool {
    const NAMES: [&[u8]; 4] = [b"ret", b"retq", b"jmp", b"jmpq"];
    let (name, operands) = unprefixed(text);
    let bytes = || operands.iter().filter(|b| !b.is_ascii_whitespace());
    NAMES.contains(&name) || name == b".byte" && bytes().eq(b"0xf3,0xc3")
}
