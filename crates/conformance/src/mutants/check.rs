//! The checks of a rewritten object: which instructions each consists of.

use std::ops::Range;

use elf_loader::{Object, Relocation, Section, SectionId};
use iced_x86::{Decoder, DecoderOptions, Instruction, Register};
use svm_rewrite::{Scheme, Site};
use svm_verify::{Accesses, Target};
use twin_abi::{names, stlb};

use super::Setting;
use super::held::Paths;
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
    /// Whether the register it translates into has the address of an earlier check
    /// on every way to it.
    pub(super) held: bool,
    /// The same, at the access behind it, of the register that another REX.B makes of that.
    pub(super) other_held: bool,
    /// Whether what it translates is only loaded by, where stores alone are confined: then
    /// nothing depends on it.
    pub(super) needless: bool,
    /// What the object is for.
    pub(super) target: Target,
    /// Which accesses are confined.
    pub(super) accesses: Accesses,
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
    let paths = Paths { object, reached };
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
            let translated = piece.decoded.op0_register();
            found.push(Check {
                section,
                pieces: check.to_vec(),
                slow,
                place,
                function: site.function.clone(),
                held: paths.hold(translated, (section, check[0].at)),
                other_held: paths.hold(
                    by_other_rex(translated),
                    (section, check[length(scheme)].at),
                ),
                needless: setting.accesses == Accesses::Stores
                    && paths.only_loads(translated, (section, check[length(scheme)].at)),
                target: setting.target,
                accesses: setting.accesses,
            });
        }
    }
    found
}

/// The register of 64 bits that another bit of REX makes of this one.
pub(super) fn by_other_rex(register: Register) -> Register {
    let number = register as u32 - Register::RAX as u32;
    Register::RAX + (number ^ 8)
}
