//! Mutants of code for a window (`docs/spec/window.md`): the verifier must reject each.
//!
//! ```text
//! operand   65 67 8b 47 08      mov %gs:8(%edi), %eax
//!           67 8b 47 08         without 65          65 8b 47 08    without 67
//!           8b 47 08            without both        64 67 8b ...   another segment
//! stack     push, pop, sub $N,%rsp, lea N(%rsp),%rsp: left out, and N changed
//! string    movabs $twin_window, %t ; mov %edi, %edi ; lea (%rdi,%t), %rdi:
//!           each left out; the sum scaled; another constant
//! ```
//!
//! cut       65 8b 40 08         mov %gs:8(%rax), %eax, scheme `window`: without 65, with 64
//!           pext twin_window_mask(%rip), %rdi, %rax: of 32 bits; of what follows it
//!           and twin_window_mask(%rip), %rdi; mov twin_window_mask(%rip), %rax: the same; or
//!           for and
//!           and %rdi, %rax, after the latter: or for and
//!
//! strict    cmp twin_lowest(%rip), %rdi: of 32 bits; an addition; a store to the word; of
//!           what follows it; of a byte further
//!
//! The push of a pointer before `call twin_wild` may be left out: the runtime reports the word
//! above the return address, which a function always has, as the pointer, and ends the invocation.
//!
//! What is left out is filled up with `nop`. A move of `rsp` matters only where the function
//! is left after it: functions without `ret` keep theirs.

use std::ops::Range;

use elf_loader::{Object, Relocation, SectionId};
use iced_x86::{Code, Mnemonic, OpKind, Register};
use process_lab::random::Random;
use svm_verify::Contract;
use twin_abi::names;

use super::check::decode;
use super::mutant::Change;
use super::tally::ask_in;
use super::{Mutant, MutantKind, Piece, Tally};
use crate::mutants::reach;

const NOP: u8 = 0x90;
const GS: u8 = 0x65;
const FS: u8 = 0x64;
const ADDRESS_SIZE: u8 = 0x67;

/// An instruction that the confinement depends on, with the mutants of it.
#[derive(Clone, Debug)]
pub struct Subject {
    function: String,
    mutants: Vec<Mutant>,
}

/// The instructions of an object with a window that some path reaches, in the order of the
/// code, as far as a mutant of them can do harm.
pub fn subjects(object: &Object<'_>) -> Vec<Subject> {
    let reached = &reach::reached(object);
    let mut found = Vec::new();
    for (section, function, range) in functions(object) {
        let pieces: Vec<Piece> = decode(object, section, range)
            .into_iter()
            .filter(|piece| reached.contains((section, piece.at)))
            .collect();
        let returns = pieces.iter().any(|p| p.decoded.mnemonic() == Mnemonic::Ret);
        for (n, piece) in pieces.iter().enumerate() {
            let place = Place {
                section,
                function: &function,
                piece,
            };
            let mut mutants = place.operand();
            if refers_to(object, piece, names::WINDOW_MASK) {
                mutants.extend(place.cut());
                mutants.extend(pieces.get(n + 1).and_then(|next| place.masked(next)));
            }
            if [names::LOWEST, names::HIGHEST]
                .into_iter()
                .any(|bound| refers_to(object, piece, bound))
            {
                mutants.extend(place.compared());
            }
            if returns {
                let reported = matches!(&pieces[n..], [_, _, call, ..]
                    if refers_to(object, call, names::WILD));
                mutants.extend(place.stack().into_iter().map(|mutant| Mutant {
                    harmless: reported,
                    ..mutant
                }));
            }
            if refers_to(object, piece, names::WINDOW) {
                mutants.extend(pointers(section, &function, &pieces[n..]));
            }
            if !mutants.is_empty() {
                let function = function.clone();
                found.push(Subject { function, mutants });
            }
        }
    }
    found
}

/// Shows the verifier the mutants of `count` instructions.
pub fn judge_window(
    object: &mut Object<'static>,
    contract: Contract,
    subjects: &[Subject],
    count: usize,
    seed: u64,
) -> Tally {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    for _ in 0..count {
        let subject = &subjects[random.below(subjects.len() as u64) as usize];
        tally.checks += 1;
        for mutant in &subject.mutants {
            ask_in(
                object,
                contract,
                &subject.function,
                mutant.clone(),
                &mut tally,
            );
        }
    }
    tally
}

/// The functions of an object: section, name and bytes.
fn functions(object: &Object<'_>) -> Vec<(SectionId, String, Range<u64>)> {
    let symbols = object.symbols().filter_map(|(_, symbol)| {
        let elf_loader::Place::In(section) = symbol.place else {
            return None;
        };
        let code = object.section(section).is_code() && symbol.size > 0;
        let range = symbol.value..symbol.value + symbol.size;
        code.then(|| (section, symbol.name.to_string(), range))
    });
    let mut functions: Vec<_> = symbols.collect();
    functions.sort_by_key(|(section, _, range)| (section.0, range.start));
    functions.dedup_by_key(|(section, _, range)| (section.0, range.start));
    functions
}

/// One instruction, to be changed.
struct Place<'p> {
    section: SectionId,
    function: &'p str,
    piece: &'p Piece,
}

impl Place<'_> {
    /// The mutant with these bytes in place of the instruction's, filled up.
    fn mutant(&self, kind: MutantKind, what: &str, bytes: &[u8], moved: u64) -> Mutant {
        let piece = self.piece;
        let mut padded = bytes.to_vec();
        padded.resize(piece.bytes.len(), NOP);
        let relocations = piece.relocations.iter().map(|r| Relocation {
            offset: piece.at + r.offset - moved,
            ..*r
        });
        let relocations = match bytes.is_empty() {
            true => Vec::new(),
            false => relocations.collect(),
        };
        Mutant {
            kind,
            harmless: false,
            text: format!(
                "{}: {} at {:#x}: {what}",
                self.function,
                svm_rewrite::syntax::plain(&piece.decoded),
                piece.at
            ),
            section: self.section,
            range: piece.at..piece.at + piece.bytes.len() as u64,
            change: Change::Replace(padded, relocations),
        }
    }

    fn deleted(&self) -> Mutant {
        self.mutant(MutantKind::Deleted, "left out", &[], 0)
    }

    /// Those of an operand in the window: its prefixes come first.
    fn operand(&self) -> Vec<Mutant> {
        let bytes = &self.piece.bytes;
        let head = bytes.iter().take_while(|b| is_prefix(**b)).count();
        let (head, rest) = bytes.split_at(head);
        let reaches = self.piece.decoded.memory_base() != Register::None
            || self.piece.decoded.memory_displ_size() != 0;
        if !reaches || !head.contains(&GS) {
            return Vec::new();
        }
        let without = |gone: &[u8]| -> Vec<u8> {
            let kept = head.iter().filter(|b| !gone.contains(b)).copied();
            kept.chain(rest.iter().copied()).collect()
        };
        let other: Vec<u8> = head
            .iter()
            .map(|b| if *b == GS { FS } else { *b })
            .chain(rest.iter().copied())
            .collect();
        let mut made = vec![("without 65", without(&[GS]), 1), ("64 for 65", other, 0)];
        if head.contains(&ADDRESS_SIZE) {
            made.push(("without 67", without(&[ADDRESS_SIZE]), 1));
            made.push(("without 65 and 67", without(&[GS, ADDRESS_SIZE]), 2));
        }
        made.into_iter()
            .map(|(what, bytes, moved)| self.mutant(MutantKind::Prefix, what, &bytes, moved))
            .collect()
    }

    /// Those of an instruction that names the mask: `c4 RXB W.vvvv f5 ...` or `REX.W 23`,
    /// `REX.W 8b`.
    fn cut(&self) -> Vec<Mutant> {
        const VEX: u8 = 0xc4;
        const VEX_WIDTH: (usize, u8) = (2, 0x80);
        const REX_WIDTH: (usize, u8) = (0, 8);
        let bytes = &self.piece.bytes;
        let (at, bit) = match bytes[0] {
            VEX => VEX_WIDTH,
            _ => REX_WIDTH,
        };
        let mut narrow = bytes.clone();
        narrow[at] ^= bit;
        let mut unmasked = self.mutant(MutantKind::Register, "no mask", bytes, 0);
        unmasked.change = Change::Replace(bytes.clone(), Vec::new());
        let narrow = self.mutant(MutantKind::Register, "of 32 bits", &narrow, 0);
        [narrow, unmasked].into_iter().chain(self.ored()).collect()
    }

    /// Those of a comparison with a word of the runtime's: `REX.W 3b /r`.
    fn compared(&self) -> Vec<Mutant> {
        const REX_WIDTH: u8 = 8;
        const ADD: u8 = 0x03;
        const STORE: u8 = 0x89;
        let bytes = &self.piece.bytes;
        let changed = |what: &str, at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            self.mutant(MutantKind::Register, what, &bytes, 0)
        };
        let mut elsewhere = self.mutant(MutantKind::Register, "no bound", bytes, 0);
        elsewhere.change = Change::Replace(bytes.clone(), Vec::new());
        let mut further = self.mutant(MutantKind::Register, "one byte further", bytes, 0);
        if let Change::Replace(_, relocations) = &mut further.change {
            relocations.iter_mut().for_each(|r| r.addend += 1);
        }
        vec![
            changed("of 32 bits", 0, bytes[0] ^ REX_WIDTH),
            changed("add for cmp", 1, ADD),
            changed("a store for cmp", 1, STORE),
            elsewhere,
            further,
        ]
    }

    /// `or` for the `and` that follows a load of the mask.
    fn masked(&self, next: &Piece) -> Option<Mutant> {
        let loads = self.piece.decoded.code() == Code::Mov_r64_rm64;
        let same = next.decoded.op0_register() == self.piece.decoded.op0_register();
        let place = Place {
            piece: next,
            ..*self
        };
        (loads && same).then(|| place.ored())?
    }

    /// `or` for `and`.
    fn ored(&self) -> Option<Mutant> {
        const AND_TO_OR: u8 = 0x23 ^ 0x0b;
        let mut bytes = self.piece.bytes.clone();
        (self.piece.decoded.code() == Code::And_r64_rm64).then(|| {
            bytes[1] ^= AND_TO_OR;
            self.mutant(MutantKind::Register, "or for and", &bytes, 0)
        })
    }

    /// Those of a move of `rsp`.
    fn stack(&self) -> Vec<Mutant> {
        let iced = &self.piece.decoded;
        let moves = match iced.code() {
            Code::Push_r64 | Code::Pop_r64 => true,
            Code::Add_rm64_imm8 | Code::Sub_rm64_imm8 | Code::Lea_r64_m => {
                iced.op0_kind() == OpKind::Register && iced.op0_register() == Register::RSP
            }
            _ => false,
        };
        if !moves {
            return Vec::new();
        }
        let mut mutants = vec![self.deleted()];
        if !matches!(iced.code(), Code::Push_r64 | Code::Pop_r64) {
            // The constant is the last byte, or the first of four.
            let size = if iced.memory_displ_size() > 1 { 4 } else { 1 };
            let at = self.piece.bytes.len() - size;
            for (what, change) in [("8 more", 8), ("8 less", 0xf8), ("one more", 1)] {
                let mut bytes = self.piece.bytes.clone();
                bytes[at] = bytes[at].wrapping_add(change);
                mutants.push(self.mutant(MutantKind::StackPointer, what, &bytes, 0));
            }
        }
        mutants
    }
}

fn is_prefix(byte: u8) -> bool {
    matches!(
        byte,
        0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
    )
}

fn refers_to(object: &Object<'_>, piece: &Piece, name: &str) -> bool {
    let names = |r: &Relocation| object.symbol(r.symbol).name == name;
    piece.relocations.iter().any(names)
}

/// Those of the instructions from the window's start up to the string instruction.
fn pointers(section: SectionId, function: &str, pieces: &[Piece]) -> Vec<Mutant> {
    let Some(string) = pieces
        .iter()
        .take(6)
        .position(|p| p.decoded.is_string_instruction())
    else {
        return Vec::new();
    };
    let mut mutants = Vec::new();
    for piece in &pieces[..string] {
        let place = Place {
            section,
            function,
            piece,
        };
        mutants.push(place.deleted());
        if piece.decoded.mnemonic() == Mnemonic::Lea {
            // The scale is in the top bits of the SIB byte, the last.
            let mut bytes = piece.bytes.clone();
            let last = bytes.len() - 1;
            bytes[last] ^= 0x40;
            mutants.push(place.mutant(MutantKind::Register, "index times 2", &bytes, 0));
        }
    }
    mutants
}
