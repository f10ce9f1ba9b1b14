//! The checks of a rewritten object: which instructions each consists of.

use std::ops::Range;

use elf_loader::{Object, Relocation, Section, SectionId};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, Register};
use svm_rewrite::{Scheme, Site};
use svm_verify::{Accesses, Target};
use twin_abi::{names, stlb};

use super::Setting;
use super::held::{Paths, writes};
use super::registers::Registers;
use super::relied::{self, Relied};
use crate::mutants::reach;

/// An instruction of the object, with what is relocated in it.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) decoded: Instruction,
    pub(super) bytes: Vec<u8>,
    /// Offsets are relative to the instruction.
    pub(super) relocations: Vec<Relocation>,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    pub(super) section: SectionId,
    /// Its instructions, as in the module's figure, and the one after it.
    pub(super) pieces: Vec<Piece>,
    /// The instructions of its out-of-line part.
    pub(super) slow: Vec<Piece>,
    /// The site, for messages.
    pub(super) place: String,
    /// The function it is in.
    pub(super) function: String,
    /// What holds where it is.
    pub(super) facts: Facts,
    /// What the object is for.
    pub(super) target: Target,
    /// Which accesses are confined.
    pub(super) accesses: Accesses,
}

/// What is known of an object's paths.
struct Analyses<'o> {
    paths: Paths<'o>,
    registers: Registers,
    relied: Relied,
}

/// What holds on every path to a check, and from it.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Whether the register it translates into has the address of an earlier check
    /// on every way to it.
    pub(super) held: bool,
    /// The same, at the access behind it, of the register that another REX.B makes of that.
    pub(super) other_held: bool,
    /// Whether the access behind it stays in the own frame, and does no harm there, by that
    /// other register.
    pub(super) other_in_frame: bool,
    /// Whether what it translates is only loaded by, where stores alone are confined: then
    /// nothing depends on it.
    pub(super) needless: bool,
    /// Whether its first instruction copies what the register holds already, and the next one
    /// changes neither.
    pub(super) copies_nothing: bool,
    /// The registers that a count is computed from, of a string instruction that the check is
    /// for: it is at most what is covered from each of them.
    pub(super) counted: Vec<Register>,
    /// The registers that hold the address after the first instruction.
    pub(super) alike: Vec<Register>,
    /// What is relied on behind the first instruction, and behind the second.
    pub(super) relied: [relied::Set; 2],
}

impl Facts {
    /// Those of a check and the access behind it.
    fn of(all: &Analyses<'_>, section: SectionId, check: &[Piece]) -> Facts {
        let Analyses {
            paths,
            registers,
            relied,
        } = all;
        let [first, next, third, .., last, access] = check else {
            return Facts::default();
        };
        let address = first.decoded.op0_register();
        let behind = [next, third].map(|piece| (section, piece.at));
        let translated = last.decoded.op0_register();
        let other = by_other_rex(translated);
        let (start, end) = ((section, first.at), (section, access.at));
        Facts {
            held: paths.hold(translated, start),
            other_held: paths.hold(other, end),
            other_in_frame: registers.is_in_frame(&access.decoded, other, end),
            needless: paths.only_loads(translated, end),
            copies_nothing: registers.copies_nothing(&first.decoded, start) && {
                let of_copy = [first.decoded.op0_register(), first.decoded.op1_register()];
                !of_copy.iter().any(|r| writes(&next.decoded, *r))
            },
            counted: Vec::new(),
            alike: registers.alike(address, behind[0]),
            relied: behind.map(|at| relied.at(at)),
        }
    }
}

impl Piece {
    /// The instruction at a place where there is one.
    pub(super) fn at(object: &Object<'_>, (section, at): reach::Place) -> Piece {
        let s = object.section(section);
        let mut decoder = Decoder::with_ip(64, &s.data[at as usize..], at, DecoderOptions::NONE);
        Piece::of(s, decoder.decode())
    }

    fn of(section: &Section<'_>, decoded: Instruction) -> Piece {
        let (at, end) = (decoded.ip(), decoded.next_ip());
        let from = section.relocations.partition_point(|r| r.offset < at);
        let inside = section.relocations[from..].iter();
        let inside = inside.take_while(|r| r.offset < end);
        let relocations = inside.map(|r| Relocation {
            offset: r.offset - at,
            ..*r
        });
        Piece {
            at,
            decoded,
            bytes: section.data[at as usize..end as usize].to_vec(),
            relocations: relocations.collect(),
        }
    }
}

impl Check {
    /// Whether an instruction that says which address is translated may write this register
    /// instead: nothing relies on it then.
    pub(super) fn may_overwrite(&self, piece: &Piece, register: Register) -> bool {
        let n = self.pieces[..2].iter().position(|p| p.at == piece.at);
        n.is_some_and(|n| !relied::has(self.facts.relied[n], register))
    }

    /// Where it is, for messages: section, offset in the original, function.
    pub fn place(&self) -> &str {
        &self.place
    }
}

/// Instructions of a check under a scheme.
fn length(scheme: Scheme) -> usize {
    match scheme {
        Scheme::Paper => 9,
        Scheme::Stlb => 8,
        Scheme::Window32 | Scheme::Window => 0,
    }
}

pub(super) fn decode(object: &Object<'_>, section: SectionId, range: Range<u64>) -> Vec<Piece> {
    let s = object.section(section);
    let bytes = &s.data[range.start as usize..range.end as usize];
    let decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
    decoder.into_iter().map(|i| Piece::of(s, i)).collect()
}

/// The checks of the sites that some path reaches, in the order of the sites.
pub fn checks(object: &Object<'_>, sites: &[Site], setting: Setting) -> Vec<Check> {
    let scheme = setting.scheme;
    let Some((table, _)) = object.symbols().find(|(_, s)| s.name == names::STLB) else {
        return Vec::new();
    };
    let reached = &reach::reached(object);
    let analyses = Analyses {
        paths: Paths { object, reached },
        registers: Registers::new(object, reached, setting.target),
        relied: Relied::new(object, reached, setting.accesses),
    };
    let mut found = Vec::new();
    for site in sites.iter().filter(|site| site.scheme.is_some()) {
        let Some(section) = object.section_named(&site.section) else {
            continue;
        };
        // The instruction after the last one may belong to the next site.
        let end = (site.emitted.end + 15).min(object.section(section).size);
        let pieces = decode(object, section, site.emitted.start..end);
        let slow: Vec<_> = site
            .out_of_line
            .iter()
            .map(|range| decode(object, section, range.clone()))
            .collect();
        let counted = counted(&pieces);
        for (last, piece) in pieces.iter().enumerate() {
            let is_xlate = |r: &Relocation| r.symbol == table && r.addend == stlb::XLATE as i64;
            if piece.at >= site.emitted.end || !piece.relocations.iter().any(is_xlate) {
                continue;
            }
            let Some(first) = (last + 1).checked_sub(length(scheme)) else {
                continue;
            };
            let Some(check) = pieces.get(first..last + 2) else {
                continue;
            };
            if !reached.contains((section, piece.at)) {
                continue;
            }
            let branch = &check[length(scheme) - 2].decoded;
            let target = branch.near_branch_target();
            let slow = slow
                .iter()
                .find(|part| part.first().is_some_and(|p| p.at == target));
            let place = format!("{}+{:#x} ({})", site.section, site.offset, site.function);
            let slow = slow.cloned().unwrap_or_default();
            let mut facts = Facts::of(&analyses, section, check);
            facts.needless &= setting.accesses == Accesses::Stores;
            facts.counted.clone_from(&counted);
            found.push(Check {
                section,
                pieces: check.to_vec(),
                slow,
                place,
                function: site.function.clone(),
                facts,
                target: setting.target,
                accesses: setting.accesses,
            });
        }
    }
    found
}

/// The registers that the count of a repeated string instruction is computed from: by their
/// places in a page.
fn counted(pieces: &[Piece]) -> Vec<Register> {
    let repeats = |i: &Instruction| i.is_string_instruction() && has_count(i);
    if !pieces.iter().any(|piece| repeats(&piece.decoded)) {
        return Vec::new();
    }
    let places = pieces.windows(2).filter_map(|two| {
        let (copy, mask) = (&two[0].decoded, &two[1].decoded);
        let is_place = copy.mnemonic() == Mnemonic::Mov
            && mask.mnemonic() == Mnemonic::And
            && mask.op0_register() == copy.op0_register()
            && mask.immediate(1) == stlb::PAGE_SIZE - 1;
        is_place.then(|| copy.op1_register().full_register())
    });
    places.collect()
}

fn has_count(i: &Instruction) -> bool {
    i.has_rep_prefix() || i.has_repne_prefix()
}

/// The register of 64 bits that another bit of REX makes of this one.
pub(super) fn by_other_rex(register: Register) -> Register {
    let number = register as u32 - Register::RAX as u32;
    Register::RAX + (number ^ 8)
}
