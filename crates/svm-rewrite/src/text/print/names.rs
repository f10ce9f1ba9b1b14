//! Names that the printer makes (labels, branches, the runtime's symbols), and a few
//! names in the text that it needs.

use foldhash::HashSet;
use twin_abi::names;

use super::super::number::push_number;
use super::super::statement::{Statement, StatementKind};
use crate::asm::import::Import;
use crate::asm::{Branch, Jump};
use crate::lift::InstIdx;

/// `.Ltwin5`
pub fn label(number: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(b".Ltwin");
    push_number(out, number);
}

/// `.Ltwin_case5`: an instruction of the original.
pub fn case(i: InstIdx, out: &mut Vec<u8>) {
    out.extend_from_slice(b".Ltwin_case");
    push_number(out, i.0);
}

/// The mnemonic of a branch, with blanks around it. Of the branches that have only a
/// short form, sequences contain `jrcxz` and no other.
pub fn branch(branch: Branch) -> &'static str {
    const CONDITIONS: [&str; 16] = [
        "\tjo\t", "\tjno\t", "\tjb\t", "\tjae\t", "\tje\t", "\tjne\t", "\tjbe\t", "\tja\t",
        "\tjs\t", "\tjns\t", "\tjp\t", "\tjnp\t", "\tjl\t", "\tjge\t", "\tjle\t", "\tjg\t",
    ];
    match branch {
        Branch::Jump(Jump::Always) => "\tjmp\t",
        Branch::Jump(Jump::If(cc)) => CONDITIONS[usize::from(cc & 15)],
        Branch::Jump(Jump::Call) => "\tcall\t",
        Branch::ShortOnly(_) => "\tjrcxz\t",
    }
}

/// Appends the name of a symbol of the runtime; false if the symbol is the original's.
pub fn runtime(import: Import, addend: i64, out: &mut Vec<u8>) -> bool {
    match import {
        Import::Stlb => out.extend_from_slice(names::STLB.as_bytes()),
        Import::Window => out.extend_from_slice(names::WINDOW.as_bytes()),
        Import::WindowMask => out.extend_from_slice(names::WINDOW_MASK.as_bytes()),
        Import::Lowest => out.extend_from_slice(names::LOWEST.as_bytes()),
        Import::Highest => out.extend_from_slice(names::HIGHEST.as_bytes()),
        Import::StackView => out.extend_from_slice(names::STACK_VIEW.as_bytes()),
        Import::Slow(reg) => {
            out.extend_from_slice(names::SLOW_PREFIX.as_bytes());
            out.extend_from_slice(reg.name().as_bytes());
        }
        Import::Runtime(service) => out.extend_from_slice(service.name().as_bytes()),
        Import::Section(_) | Import::Data(_) | Import::Routine(_) | Import::Own(_) => return false,
    }
    if addend != 0 {
        out.push(if addend < 0 { b'-' } else { b'+' });
        push_number(out, addend.unsigned_abs() as u32);
    }
    true
}

/// Branches that have no long form.
pub fn is_short_only(name: &[u8]) -> bool {
    match name.first() {
        Some(b'j' | b'J') => {
            name.eq_ignore_ascii_case(b"jrcxz") || name.eq_ignore_ascii_case(b"jecxz")
        }
        Some(b'l' | b'L') => name[..name.len().min(4)].eq_ignore_ascii_case(b"loop"),
        _ => false,
    }
}

/// The label that a branch goes to: `1` of `jne 1b`, `.L5` of `jmp .L5`.
pub fn branch_target<'t>(text: &'t [u8], statement: &Statement) -> Option<&'t [u8]> {
    let name = statement.name(text);
    let branch = name.starts_with(b"j") || name.starts_with(b"loop") || name == b"call";
    match statement.kind == StatementKind::Instruction && branch {
        true => Some(label_of(statement.rest(text))),
        false => None,
    }
}

/// The labels that the table of `lock` prefixes names: `671` of `.long 671f - .`, and
/// clang's form of it, `.Ltmp4` of `.long .Ltmp4-.Ltmp5`.
pub fn locked<'t>(text: &'t [u8], statements: &[Statement]) -> HashSet<&'t [u8]> {
    let mut names = HashSet::default();
    let mut inside = false;
    for statement in statements
        .iter()
        .filter(|s| s.kind == StatementKind::Directive)
    {
        match statement.name(text) {
            b".pushsection" | b".section" => {
                inside = statement.rest(text).starts_with(b".smp_locks");
            }
            b".popsection" | b".previous" | b".text" | b".data" => inside = false,
            b".long" | b".4byte" if inside => {
                let symbol = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$');
                let first = statement.rest(text).split(|b| !symbol(b)).next();
                names.extend(first.map(label_of));
            }
            _ => {}
        }
    }
    names
}

/// A label's name without the direction in which a numeric one lies.
fn label_of(name: &[u8]) -> &[u8] {
    match name.split_last() {
        Some((b'b' | b'f', number))
            if !number.is_empty() && number.iter().all(u8::is_ascii_digit) =>
        {
            number
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::statement::split;
    use super::*;

    #[test]
    fn labels_of_locks_and_of_branches() {
        let text = b".pushsection .smp_locks,\"a\"\n.long 671f - .\n.Ltmp5:\n.long .Ltmp4-.Ltmp5\n\
            .popsection\n.long 5b\n jne 1b\n jmp .L5\n jmp f\n";
        let statements = split(text);
        let mut found: Vec<_> = locked(text, &statements).into_iter().collect();
        found.sort_unstable();
        assert_eq!(found, [&b".Ltmp4"[..], b"671"]);
        let targets = statements.iter().filter_map(|s| branch_target(text, s));
        let targets: Vec<_> = targets.collect();
        assert_eq!(targets, [&b"1"[..], b".L5", b"f"]);
    }
}
