//! Mutants of the sequences for return addresses: of the two instructions that keep
//! one, and of those that compare it, or write it anew, before the function is left.
//!
//! ```text
//! kept      0 mov (%rsp), %s           compared  0 mov -SHADOW(%rsp), %s
//!           1 mov %s, -SHADOW(%rsp)              1 cmp %s, (%rsp)      or mov
//!                                                2 jne smashed
//! ```
//!
//! with `push` and `pop` of `%s` around, if it is live. The verifier must reject a
//! mutant that leaves an instruction out, names another word or another register,
//! branches on another condition, skips a part, or leads to the `ret` although the
//! address was found overwritten.
//!
//! Where `%s` still holds the address since it was kept, the load before a comparison
//! may be left out. A repeated instruction does no harm.

use elf_loader::{Object, SectionId};
use iced_x86::{Encoder, Mnemonic, OpKind, Register};
use svm_rewrite::{Site, Target};
use svm_verify::{Accesses, Contract};
use twin_abi::stack;

use super::check::{Facts, decode};
use super::inserted::function_of;
use super::splice::New;
use super::tally::ask;
use super::{Check, Mutant, MutantKind, Piece, Tally};
use crate::mutants::reach;

/// Conditional, so that what it skips is entered both ways.
const JB: [u8; 6] = [0x0f, 0x82, 0, 0, 0, 0];

/// The sequence for a return address at one place.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Its instructions, and the one after them.
    check: Check,
    /// Whether it keeps the address rather than compares it.
    keeps: bool,
}

/// The guards of the sites that some path reaches, in the order of the sites. A place
/// that keeps an address is left out where no reached instruction reads it.
pub fn guards(object: &Object<'_>, sites: &[Site]) -> Vec<Guard> {
    let reached = &reach::reached(object);
    let mut found: Vec<Guard> = Vec::new();
    for site in sites.iter().filter(|s| !s.return_address.is_empty()) {
        let Some(section) = object.section_named(&site.section) else {
            continue;
        };
        let end = (site.emitted.end + 15).min(object.section(section).size);
        let pieces = decode(object, section, site.emitted.start..end);
        for (n, piece) in pieces.iter().enumerate() {
            let inside = piece.at < site.emitted.end && reached.contains((section, piece.at));
            if inside && names_shadow(piece) {
                found.extend(guard(site, section, &pieces, n));
            }
        }
    }
    let looked_at: Vec<(SectionId, u64)> = found
        .iter()
        .filter(|guard| !guard.keeps)
        .map(|guard| (guard.check.section, guard.check.pieces[0].at))
        .collect();
    found.retain(|guard| {
        let function = function_of(object, &guard.check);
        let here = |(section, at): &(SectionId, u64)| {
            *section == guard.check.section && function.contains(at)
        };
        !guard.keeps || looked_at.iter().any(here)
    });
    found
}

/// Whether an operand is in the shadow.
fn names_shadow(piece: &Piece) -> bool {
    let i = &piece.decoded;
    let displacement = i.memory_displacement64() as i64;
    let shadow = stack::SHADOW as i64;
    i.memory_base() == Register::RSP && (-shadow..-shadow + 16).contains(&displacement)
}

/// The guard whose access to the shadow is instruction `n`.
fn guard(site: &Site, section: SectionId, pieces: &[Piece], n: usize) -> Option<Guard> {
    let keeps = pieces[n].decoded.op0_kind() == OpKind::Memory;
    let first = if keeps { n.checked_sub(1)? } else { n };
    let is_last = |piece: &Piece| match keeps {
        true => names_shadow(piece),
        // The comparison's branch, or the word written anew.
        false => {
            piece.decoded.mnemonic() == Mnemonic::Jne
                || piece.decoded.op0_kind() == OpKind::Memory
                    && piece.decoded.mnemonic() == Mnemonic::Mov
        }
    };
    let length = pieces[first..].iter().position(is_last)? + 1;
    let check = Check {
        section,
        pieces: pieces.get(first..=first + length)?.to_vec(),
        slow: Vec::new(),
        place: format!("{}+{:#x} ({})", site.section, site.offset, site.function),
        function: site.function.clone(),
        facts: Facts::default(),
        target: Target::Hypervisor,
        accesses: Accesses::All,
    };
    Some(Guard { check, keeps })
}

impl Guard {
    fn mutants(&self) -> Vec<Mutant> {
        let check = &self.check;
        let sequence = &check.pieces[..check.pieces.len() - 1];
        let mut made = Vec::new();
        for (n, piece) in sequence.iter().enumerate() {
            let load = !self.keeps && n == 0;
            made.push(check.deleted(piece, load));
            // The next instruction may also come before; `pop` may follow the branch.
            let spilled = piece.decoded.mnemonic() == Mnemonic::Pop;
            if n + 1 < sequence.len() {
                made.push(Mutant {
                    harmless: load || spilled,
                    ..check.swapped(n)
                });
            }
            made.extend(self.displaced(piece));
            made.extend(self.by_other_conditions(piece));
            made.push(check.twice(piece, piece.decoded.mnemonic() != Mnemonic::Pop));
        }
        made.extend(self.by_other_registers(sequence));
        made.extend(self.skipped());
        made.extend(self.taken_to_the_exit(sequence));
        made
    }

    /// Operands in memory a word, a byte and a page further.
    fn displaced(&self, piece: &Piece) -> Vec<Mutant> {
        let i = &piece.decoded;
        if i.memory_base() != Register::RSP {
            return Vec::new();
        }
        let away = [8, -8, 1, -1, 0x1000, -0x1000, 0x8000, -0x8000];
        let made = away.into_iter().filter_map(|by: i64| {
            let displacement = i.memory_displacement64().wrapping_add_signed(by);
            let mut changed = *i;
            changed.set_memory_displacement64(displacement);
            changed.set_memory_displ_size(8);
            let mut encoder = Encoder::new(64);
            encoder.encode(&changed, piece.at).ok()?;
            let new = vec![New::plain(&encoder.take_buffer())];
            let how = format!("`{i}` moved by {by:#x}");
            let length = piece.bytes.len();
            Some(
                self.check
                    .splice(MutantKind::Displaced, piece.at, length, new, &how),
            )
        });
        made.collect()
    }

    /// The branch on each other condition.
    fn by_other_conditions(&self, piece: &Piece) -> Vec<Mutant> {
        if piece.decoded.mnemonic() != Mnemonic::Jne {
            return Vec::new();
        }
        // SDM volume 2, appendix B, table B-10: the low bits of the last opcode byte.
        let opcode = if piece.bytes.len() == 2 { 0 } else { 1 };
        let made = (0..16)
            .filter(|cc| piece.bytes[opcode] & 15 != *cc)
            .map(|cc| {
                let mut bytes = piece.bytes.clone();
                bytes[opcode] = bytes[opcode] & 0xf0 | cc;
                let how = format!("on condition {cc}");
                self.check
                    .mutant(MutantKind::Condition, piece, bytes, Vec::new(), &how)
            });
        made.collect()
    }

    /// The last register operand as another one: what is stored, or compared.
    fn by_other_registers(&self, sequence: &[Piece]) -> Vec<Mutant> {
        let stores = sequence.iter().filter(|piece| {
            let i = &piece.decoded;
            i.op_count() == 2 && i.op0_kind() == OpKind::Memory
        });
        let made = stores.flat_map(|piece| {
            [Register::RAX, Register::RBX, Register::RDX, Register::R9]
                .into_iter()
                .filter(|r| *r != piece.decoded.op1_register())
                .filter_map(|register| {
                    let mut changed = piece.decoded;
                    changed.set_op1_register(register);
                    let mut encoder = Encoder::new(64);
                    encoder.encode(&changed, piece.at).ok()?;
                    let new = vec![New::plain(&encoder.take_buffer())];
                    let how = format!("as `{changed}`");
                    let length = piece.bytes.len();
                    Some(
                        self.check
                            .splice(MutantKind::Register, piece.at, length, new, &how),
                    )
                })
        });
        made.collect()
    }

    /// A branch before it that skips part of it, or all.
    fn skipped(&self) -> Vec<Mutant> {
        let pieces = &self.check.pieces;
        let start = pieces[0].at;
        let made = pieces.iter().enumerate().skip(1).map(|(n, to)| {
            let branch = New {
                target: Some(to.at),
                ..New::plain(&JB)
            };
            let how = format!("entered at `{}`", to.decoded);
            let mutant = self
                .check
                .splice(MutantKind::Entered, start, 0, vec![branch], &how);
            Mutant {
                harmless: !self.keeps && n == 1,
                ..mutant
            }
        });
        made.collect()
    }

    /// The branch of a comparison to what follows it.
    fn taken_to_the_exit(&self, sequence: &[Piece]) -> Vec<Mutant> {
        let behind = self.check.pieces[self.check.pieces.len() - 1].at;
        let branches = sequence
            .iter()
            .filter(|piece| piece.decoded.mnemonic() == Mnemonic::Jne);
        branches
            .filter_map(|branch| self.check.branching(branch, behind))
            .collect()
    }
}

/// All mutants of every `one_in`th guard, beginning with number `first`.
pub fn judge_guards(
    object: &mut Object<'static>,
    contract: Contract,
    guards: &[Guard],
    first: usize,
    one_in: usize,
) -> Tally {
    let mut tally = Tally::default();
    for guard in guards.iter().skip(first).step_by(one_in) {
        tally.checks += 1;
        for mutant in guard.mutants() {
            ask(object, contract, &guard.check, mutant, &mut tally);
        }
    }
    tally
}
