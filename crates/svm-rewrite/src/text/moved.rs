//! What a text says that does not mean the same in rewritten text: it depends on the place
//! where it stands, or on something that is not in the text.
//!
//! ```text
//!     lea .+16(%rip), %rax       the code between becomes longer
//!     mov 1f(%rdi), %rax         the slow path, elsewhere, computes the address again
//!     .include "macros.inc"      may define a macro that is called as an instruction is
//!     .reloc 1b+3, ...           changes bytes of an instruction that is replaced
//! ```
//!
//! Each is refused with its line.

use std::cell::OnceCell;

use elf_loader::{Object, Place};
use foldhash::HashSet;

use super::directives::{is_assignment, is_end, is_repetition, switches};
use super::distances::is_label;
use super::expression::{self, names};
use super::marks::StatementIdx;
use super::operand::{self, is_based};
use super::places::named;
use super::print::Obstacle;
use super::sections::Sections;
use super::statement::{Statement, StatementKind};
use super::tie::Tied;
use crate::lift::{self, Inst, InstIdx, Lifted, RelocatedValue};
use crate::refusal::RefusalCode;

/// Statements that are refused before the text is assembled.
pub fn misread(text: &[u8], statements: &[Statement]) -> Vec<Obstacle> {
    let mut found = unread(text, statements);
    found.extend(types_of_functions(text, statements));
    found
}

/// What clang's `-fsanitize=function` puts before or into functions: numbers that say that
/// their types follow (`getUBSanFunctionSignature`; `MagicNumber` since version 17).
fn types_of_functions(text: &[u8], statements: &[Statement]) -> Option<Obstacle> {
    let marks = |s: &Statement| {
        s.kind == StatementKind::Directive
            && s.name(text) == b".long"
            && matches!(s.rest(text), b"846595819" | b"3238382334")
    };
    let k = statements.iter().position(marks)?;
    let mut sections = Sections::default();
    for before in statements[..k].iter().filter(|s| s.is_directive(text)) {
        sections.directive(before.name(text), before.rest(text));
    }
    let reason = "the type of a function, as data in code, for -fsanitize=function (a part of \
                  -fsanitize=undefined); add -fno-sanitize=function";
    sections.is_code().then(|| obstacle(k, reason))
}

/// Symbols that have a name of the runtime's, which is appended to the text.
pub fn names_of_runtime(
    text: &[u8],
    statements: &[Statement],
    object: &Object<'_>,
) -> Vec<Obstacle> {
    let is_own = |name: &str| {
        name == twin_abi::names::STLB
            || name.starts_with(twin_abi::names::SLOW_PREFIX)
            || name.starts_with("twin_identity_")
    };
    let defined = object
        .symbols()
        .filter(|(_, s)| s.place != Place::Undefined);
    let own = defined.filter(|(_, symbol)| is_own(&symbol.name));
    let found = own.map(|(_, symbol)| {
        let has = |s: &Statement| {
            let mut all = names(s.text(text));
            all.any(|name| name == symbol.name.as_bytes())
        };
        let k = statements.iter().position(has).unwrap_or(0);
        obstacle(k, "a name of twin's runtime; rename it")
    });
    found.collect()
}

fn unread(text: &[u8], statements: &[Statement]) -> Vec<Obstacle> {
    let found = statements.iter().enumerate().filter_map(|(k, statement)| {
        let name = statement.name(text);
        let reason = match statement.kind {
            StatementKind::Directive if enters_twins_section(name, statement.rest(text)) => {
                let reason = "a section of twin's: the text was made by twin";
                return Some(Obstacle {
                    code: RefusalCode::AlreadyRewritten,
                    ..obstacle(k, reason)
                });
            }
            // `as` looks names up in lower case, and here they are taken as they are.
            StatementKind::Directive if name.iter().any(u8::is_ascii_uppercase) => {
                "directives are known here in lower case"
            }
            StatementKind::Opaque | StatementKind::Definition if hides_a_body(name) => {
                "directives are known here in lower case"
            }
            StatementKind::Directive if enters_unseen(name) => {
                "it goes to another section, and is not followed here; write `.section`"
            }
            StatementKind::Directive if switches(name) && has_comment(statement.rest(text)) => {
                "a comment in the name of a section or behind it is not read here; put it on a \
                 line of its own"
            }
            StatementKind::Directive if name == b".end" && k + 1 < statements.len() => {
                "what follows is not assembled; leave it out"
            }
            StatementKind::Label if is_own_label(name) => {
                "a label of rewritten text; a text is rewritten once"
            }
            _ => return None,
        };
        Some(obstacle(k, reason))
    });
    found.collect()
}

/// Whether a name, which `as` takes in lower case, would begin or end what is read
/// differently.
fn hides_a_body(name: &[u8]) -> bool {
    if !name.iter().any(u8::is_ascii_uppercase) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    name == b".macro"
        || name == b".include"
        || is_repetition(&name)
        || is_end(&name)
        || switches(&name)
}

/// Directives that switch sections in some assemblers: GNU's (gas/config/obj-elf.c), LLVM's
/// (ELFAsmParser.cpp).
fn enters_unseen(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 8] = [
        b".sect", b".sect.s", b".section.s", b".rodata", b".tdata", b".tbss", b".data.rel",
        b".eh_frame",
    ];
    NAMES.contains(&name)
}

fn has_comment(operands: &[u8]) -> bool {
    operands.windows(2).any(|two| two == b"/*")
}

/// Whether a directive goes to a section with a name that twin gives.
fn enters_twins_section(directive: &[u8], operands: &[u8]) -> bool {
    let end = operands
        .iter()
        .position(|b| *b == b',' || b.is_ascii_whitespace());
    let name = operands[..end.unwrap_or(operands.len())].trim_ascii();
    let name = name.strip_prefix(b"\"").unwrap_or(name);
    let name = name.strip_suffix(b"\"").unwrap_or(name);
    matches!(directive, b".section" | b".pushsection")
        && std::str::from_utf8(name).is_ok_and(lift::is_twins)
}

/// `.Ltwin5`, `.Ltwin_over5`, `.twin.5`: labels that are printed, or that mark text.
fn is_own_label(name: &[u8]) -> bool {
    let number = |rest: &[u8]| rest.iter().all(u8::is_ascii_digit) || rest.starts_with(b"_");
    name.strip_prefix(b".Ltwin").is_some_and(number)
        || name.strip_prefix(b".twin.").is_some_and(number)
}

/// Changes of syntax in a macro or a repetition, which are not followed there. `statements`
/// are all of the text.
pub fn hidden_syntax(text: &[u8], statements: &[Statement]) -> Vec<Obstacle> {
    let hidden = statements.iter().enumerate().filter(|(_, statement)| {
        matches!(
            statement.kind,
            StatementKind::Opaque | StatementKind::Definition
        ) && matches!(statement.name(text), b".intel_syntax" | b".att_syntax")
    });
    let reason = "the syntax changes in a macro or a repetition";
    hidden.map(|(k, _)| obstacle(k, reason)).collect()
}

/// What a macro or a repetition in use does that is told by statements elsewhere: it defines symbols,
/// goes to other sections, or is given the name of what it does.
pub fn hidden_meaning(text: &[u8], statements: &[Statement]) -> Vec<Obstacle> {
    if !statements.iter().any(|s| s.kind == StatementKind::Opaque) {
        return Vec::new();
    }
    let hidden = statements.iter().enumerate().filter(|(_, statement)| {
        matches!(
            statement.kind,
            StatementKind::Opaque | StatementKind::Definition
        ) && has_meaning(text, statement)
    });
    let reason = "a macro or a repetition defines a symbol or goes to another section here, and \
                  that is not seen";
    hidden.map(|(k, _)| obstacle(k, reason)).collect()
}

fn has_meaning(text: &[u8], statement: &Statement) -> bool {
    let (name, rest) = (statement.name(text), statement.rest(text));
    let all = statement.text(text);
    switches(name)
        || is_assignment(name)
        || rest.starts_with(b"=")
        || all.ends_with(b":")
        || all.starts_with(b"\\")
}

/// Statements that are refused wherever they are. `written_out` says that macros are.
pub fn find(
    Tied {
        text,
        statements,
        tie,
        lifted,
        ..
    }: Tied<'_, '_>,
    written_out: bool,
) -> Vec<Obstacle> {
    let directives = statements.iter().enumerate().filter_map(|(k, statement)| {
        let reason = directive(text, statement, written_out)?;
        Some(obstacle(k, reason))
    });
    let insts = lifted.insts.iter().enumerate().filter_map(|(n, inst)| {
        let k = tie.statement(InstIdx(n as u32))?;
        let unnamed = names_code_by_distance(text, &statements[k.0 as usize], inst, lifted);
        unnamed.then(|| {
            let reason = "the address of code by a distance, which changes with the code in \
                          between; name a label";
            obstacle(k.0 as usize, reason)
        })
    });
    directives.chain(insts).collect()
}

fn obstacle(k: usize, reason: &str) -> Obstacle {
    Obstacle {
        at: StatementIdx(k as u32),
        code: RefusalCode::Statement,
        reason: reason.to_owned(),
    }
}

/// Why a directive, or the definition of a macro, is refused.
fn directive(text: &[u8], statement: &Statement, written_out: bool) -> Option<&'static str> {
    let (name, rest) = (statement.name(text), statement.rest(text));
    match (statement.kind, name) {
        (
            StatementKind::Directive | StatementKind::Opaque | StatementKind::Definition,
            b".include",
        ) => Some(
            "what is in the file is not seen here, and it may define macros; put its lines \
             in the place of this one",
        ),
        (StatementKind::Directive, b".code16" | b".code16gcc" | b".code32") => {
            Some("code of another mode than 64 bits")
        }
        (StatementKind::Directive, b".intel_mnemonic") => {
            Some("instructions have other names from here on, and sequences do not know that")
        }
        (StatementKind::Directive, b".reloc") if !is_no_relocation(rest) => {
            Some("it changes bytes of an instruction by their place, which rewriting changes")
        }
        (StatementKind::Directive, b".altmacro" | b".mri") if !written_out => {
            Some("macros have other rules from here on")
        }
        (StatementKind::Definition | StatementKind::Opaque, b".macro") if !written_out => {
            let end = rest.iter().position(u8::is_ascii_whitespace);
            let dynamic = rest[..end.unwrap_or(rest.len())].contains(&b'\\');
            dynamic.then_some("a macro whose name is made by another macro is not seen here")
        }
        _ => None,
    }
}

/// Whether a `.reloc` only refers to a symbol, as a linker's garbage collection sees it.
fn is_no_relocation(operands: &[u8]) -> bool {
    let kind = operands.split(|b| *b == b',').nth(1).unwrap_or_default();
    matches!(
        kind.trim_ascii(),
        b"R_X86_64_NONE" | b"BFD_RELOC_NONE" | b"NONE"
    )
}

/// Whether an instruction has the address of code of its object, and its statement does not
/// name a label for it, alone. `lea (%rip)` is the next instruction, which stays the next.
fn names_code_by_distance(
    text: &[u8],
    statement: &Statement,
    inst: &Inst,
    lifted: &Lifted<'_>,
) -> bool {
    let is_code = |value: RelocatedValue| match lifted.object.symbol(value.symbol).place {
        Place::In(section) => lifted.code_section(section).is_some(),
        _ => false,
    };
    let resolved = inst.displacement.is_none()
        && inst.iced.is_ip_rel_memory_operand()
        && inst.iced.ip_rel_memory_address() != inst.iced.next_ip();
    let relocated = |value: Option<_>| value.is_some_and(|v| is_code(lifted.value(v)));
    if !(resolved || relocated(inst.displacement) || relocated(inst.immediate)) {
        return false;
    }
    let operands = operand::of(statement.text(text));
    let is_named = |expression: Option<&[u8]>| expression.is_some_and(is_label);
    (resolved || relocated(inst.displacement))
        && !is_named(operand::displacement(&operands, is_based(&inst.iced)))
        || relocated(inst.immediate) && !is_named(operand::immediate(&operands))
}

/// The expressions in a text that change their value along it.
pub struct Expressions<'t> {
    text: &'t [u8],
    statements: &'t [Statement],
    /// Symbols that are given several values; computed when first needed.
    reassigned: OnceCell<HashSet<&'t [u8]>>,
}

impl<'t> Expressions<'t> {
    /// Those of a text.
    pub fn of(text: &'t [u8], statements: &'t [Statement]) -> Expressions<'t> {
        Expressions {
            text,
            statements,
            reassigned: OnceCell::new(),
        }
    }

    /// Why an access cannot be printed with the expressions of its statement: its address is
    /// computed again out of line, where these mean something else.
    pub fn obstacle(&self, k: StatementIdx, inst: &Inst) -> Option<&'static str> {
        inst.relocated_values().next()?;
        let statement = &self.statements[k.0 as usize];
        let operands = operand::of(statement.text(self.text));
        if inst.displacement.is_some() {
            let Some(address) = operand::displacement(&operands, is_based(&inst.iced)) else {
                return Some("an address that is not in the text");
            };
            if names(address).any(|t| t == b"." || is_numeric_label(t)) {
                return Some(
                    "an address by a place in the text, which is computed again elsewhere; \
                     name a label",
                );
            }
            let reassigned = self.reassigned.get_or_init(|| self.reassigned());
            if names(address).any(|t| reassigned.contains(t)) {
                return Some("an address by a symbol that is given several values");
            }
        }
        if inst.immediate.is_some() {
            match operand::immediate(&operands) {
                None => return Some("a number that is not in the text"),
                Some(number) if names(number).any(|t| t == b".") => {
                    return Some("a number by its place in the text, which changes; name a label");
                }
                Some(_) => {}
            }
        }
        None
    }

    /// In the body of a macro or a repetition, one assignment may be several.
    fn reassigned(&self) -> HashSet<&'t [u8]> {
        let (mut once, mut twice) = (HashSet::default(), HashSet::default());
        for statement in self.statements {
            let Some((symbol, repeated)) = assigned(self.text, statement) else {
                continue;
            };
            if repeated || !once.insert(symbol) {
                twice.insert(symbol);
            }
        }
        twice
    }
}

/// The symbol that a statement gives a value, and whether it may do so several times.
fn assigned<'t>(text: &'t [u8], statement: &Statement) -> Option<(&'t [u8], bool)> {
    let (name, rest) = (statement.name(text), statement.rest(text));
    let repeated = matches!(
        statement.kind,
        StatementKind::Opaque | StatementKind::Definition
    );
    if matches!(name, b".set" | b".equ" | b".eqv") {
        let symbol = expression::split(rest).next().unwrap_or_default();
        return Some((named(symbol.trim_ascii()), repeated));
    }
    let assigns = statement.kind == StatementKind::Assignment || rest.starts_with(b"=");
    assigns.then_some((named(name), repeated))
}

/// `1f`, `22b`.
fn is_numeric_label(token: &[u8]) -> bool {
    match token.split_last() {
        Some((b'b' | b'f', digits)) => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}
