//! Mutants of the rewriter's checks: does the verifier notice each?
//!
//! Takes a rewritten object and its sites, finds the checks by their
//! relocations against the translation table, and makes objects that differ
//! from it in one instruction of one check: deleted, swapped with its
//! neighbour, branching elsewhere, or with another register. A relocation moves
//! with its instruction. Every mutant is shown to the verifier.
//!
//! ```text
//! stlb  0 lea|mov ADDRESS, %v       paper  0 lea|mov ADDRESS, %i
//!       1 mov  %vd, %id                    1 mov  %i, %v
//!       2 shr  $8, %id                     2 and  $-4096, %i
//!       3 and  $0xfff0, %id                3 mov  %i, %p
//!       4 sub  twin_stlb(%i), %v           4 and  $0xfff000, %i
//!       5 cmp  $0xfff, %v                  5 shr  $8, %i
//!       6 ja   slow                        6 cmp  twin_stlb(%i), %p
//!       7 add  twin_stlb+8(%i), %v         7 jne  slow
//!                                          8 xor  twin_stlb+8(%i), %v
//! ```
//!
//! Instruction 0 says which address is translated, not whether: without it, or
//! with another register in it, the rest is still a whole check of whatever
//! address is there, so such a mutant computes something else but is confined
//! as before. The verifier may accept it (it does where the slow path does not
//! compute the address again).
//!
//! Two kinds of mutants mean the same. Where instruction 0 is `mov %reg, ...`,
//! `%reg` holds the same address and may be read instead. And in scheme `stlb`
//! any entry may be asked, instruction 1's source being another register:
//! every entry is whole, and its tag is compared with all of the address, so a
//! wrong one misses and the slow path answers.
//!
//! A copy of the address to where it is already (`%v` is that `%reg`) may go.
//! All others the verifier must reject, or [`Survivor`] has to be looked at:
//! `mutations` runs its function, native against mutated.
//!
//! An instruction that does the same twice as once (a copy, a mask, a compare and
//! its branch) may stand there twice. A branch into the check may skip
//! instruction 0, and in scheme `stlb` what chooses the entry, 1 to 3, for the
//! same reasons; not the mask, without which the index is anything. It may skip
//! all of it where the register still holds the translated address of the check
//! before: the access is then to that one's, and covered.
//!
//! Checks that no path reaches are left out: behind a static branch that is
//! off, nothing is executed, so nothing needs to hold.

pub mod campaign;
mod everywhere;
mod inserted;
mod splice;

pub use everywhere::{Systematic, systematic};

use std::ops::Range;

use elf_loader::{Object, Relocation, SectionId, SymbolId};
use iced_x86::{
    Code, Decoder, DecoderOptions, Encoder, FlowControl, Instruction, Mnemonic, OpKind, Register,
};
use svm_rewrite::{Scheme, Site};
use twin_abi::{names, stlb};

use crate::random::Random;
use crate::reach;

/// An instruction of the object, with what is relocated in it.
#[derive(Clone, Debug)]
struct Piece {
    at: u64,
    decoded: Instruction,
    bytes: Vec<u8>,
    /// Offsets are relative to the instruction.
    relocations: Vec<Relocation>,
}

/// One check.
#[derive(Clone, Debug)]
pub struct Check {
    section: SectionId,
    /// Its instructions, as in the module's figure, and the one behind it.
    pieces: Vec<Piece>,
    /// The instructions of its out-of-line part.
    slow: Vec<Piece>,
    /// The site, for messages.
    place: String,
    /// The function it is in.
    function: String,
}

/// What was done to a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An instruction became no-operations.
    Deleted,
    /// An instruction and the next changed places.
    Swapped,
    /// A branch or call leads elsewhere.
    Retargeted,
    /// An operand is another register.
    Register,
    /// An instruction stands there twice.
    Duplicated,
    /// A branch leads into the check.
    Entered,
    /// An access reaches beyond what the check covers.
    Grown,
    /// The stack pointer is moved, or used for another register.
    StackPointer,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 8] = [
        Kind::Deleted,
        Kind::Swapped,
        Kind::Retargeted,
        Kind::Register,
        Kind::Duplicated,
        Kind::Entered,
        Kind::Grown,
        Kind::StackPointer,
    ];
}

/// A change of one section.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What was done.
    pub kind: Kind,
    /// Whether it is confined as before or means the same, see the module.
    pub harmless: bool,
    /// For messages.
    pub text: String,
    section: SectionId,
    range: Range<u64>,
    change: Change,
}

/// What stands at a mutant's range.
#[derive(Clone, Debug)]
enum Change {
    /// As many bytes as before.
    Replace(Vec<u8>, Vec<Relocation>),
    /// Other instructions, so that what is behind them moves.
    Splice(Vec<splice::New>),
}

/// Instructions of a check under a scheme.
fn length(scheme: Scheme) -> usize {
    match scheme {
        Scheme::Paper => 9,
        Scheme::Stlb => 8,
    }
}

fn decode(object: &Object<'_>, section: SectionId, range: Range<u64>) -> Vec<Piece> {
    let s = object.section(section);
    let bytes = &s.data[range.start as usize..range.end as usize];
    Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE)
        .into_iter()
        .map(|decoded| {
            let (at, end) = (decoded.ip(), decoded.next_ip());
            let from = s.relocations.partition_point(|r| r.offset < at);
            let inside = s.relocations[from..].iter().take_while(|r| r.offset < end);
            let relocations = inside
                .map(|r| Relocation {
                    offset: r.offset - at,
                    ..*r
                })
                .collect();
            Piece {
                at,
                decoded,
                bytes: s.data[at as usize..end as usize].to_vec(),
                relocations,
            }
        })
        .collect()
}

/// The checks of the sites that some path reaches, in the order of the sites.
pub fn checks(object: &Object<'_>, sites: &[Site], scheme: Scheme) -> Vec<Check> {
    let Some((table, _)) = object.symbols().find(|(_, s)| s.name == names::STLB) else {
        return Vec::new();
    };
    let reached = reach::reached(object);
    let mut found = Vec::new();
    for site in sites.iter().filter(|site| site.scheme.is_some()) {
        let Some(section) = object.section_named(&site.section) else {
            continue;
        };
        // The instruction behind the last one may belong to the next site.
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
            if !reached.contains(&(section, piece.at)) {
                continue;
            }
            let branch = &check[length(scheme) - 2].decoded;
            let target = branch.near_branch_target();
            let slow = slow
                .iter()
                .find(|part| part.first().is_some_and(|p| p.at == target));
            let place = format!("{}+{:#x} ({})", site.section, site.offset, site.function);
            let slow = slow.cloned().unwrap_or_default();
            found.push(Check {
                section,
                pieces: check.to_vec(),
                slow,
                place,
                function: site.function.clone(),
            });
        }
    }
    found
}

impl Check {
    /// Its mutants. `others` are further checks of the same object: places to
    /// branch to. `everywhere` is for every other register, and branches into
    /// every byte of the check, where one register and every instruction are the
    /// rule.
    pub fn mutants(
        &self,
        object: &Object<'_>,
        others: &[Check],
        everywhere: bool,
        random: &mut Random,
    ) -> Vec<Mutant> {
        let mut all = Vec::new();
        let count = self.pieces.len() - 1;
        for i in 0..count {
            let spare = i == 0 || self.is_redundant(&self.pieces[i]);
            all.push(self.deleted(&self.pieces[i], spare));
            all.push(self.swapped(i));
            all.extend(self.registers(&self.pieces[i], spare, everywhere, random));
        }
        for piece in &self.slow {
            all.push(self.deleted(piece, false));
            all.extend(self.registers(piece, false, everywhere, random));
            all.extend(self.other_slow_path(object, piece));
        }
        all.extend(self.retargeted(others, random));
        all.extend(self.inserted(object, everywhere, random));
        all
    }

    fn mutant(
        &self,
        kind: Kind,
        piece: &Piece,
        bytes: Vec<u8>,
        relocations: Vec<Relocation>,
        how: &str,
    ) -> Mutant {
        let range = piece.at..piece.at + bytes.len() as u64;
        let moved = relocations
            .into_iter()
            .map(|r| Relocation {
                offset: r.offset + piece.at,
                ..r
            })
            .collect();
        let text = format!("{}: `{}` {how}", self.place, piece.decoded);
        Mutant {
            kind,
            harmless: false,
            text,
            section: self.section,
            range,
            change: Change::Replace(bytes, moved),
        }
    }

    fn deleted(&self, piece: &Piece, harmless: bool) -> Mutant {
        let nops = vec![0x90; piece.bytes.len()];
        let mutant = self.mutant(Kind::Deleted, piece, nops, Vec::new(), "deleted");
        Mutant { harmless, ..mutant }
    }

    fn swapped(&self, i: usize) -> Mutant {
        let (a, b) = (&self.pieces[i], &self.pieces[i + 1]);
        // A branch goes to the same place from where it is now.
        let mut bytes = moved(b, a.at);
        bytes.extend(moved(a, a.at + b.bytes.len() as u64));
        let shifted = |r: &Relocation| Relocation {
            offset: r.offset + b.bytes.len() as u64,
            ..*r
        };
        let relocations = b
            .relocations
            .iter()
            .copied()
            .chain(a.relocations.iter().map(shifted))
            .collect();
        let how = format!("swapped with `{}`", b.decoded);
        self.mutant(Kind::Swapped, a, bytes, relocations, &how)
    }

    /// The register that held the address before the check, whole, if there
    /// is one.
    fn source(&self) -> Option<Register> {
        let first = &self.pieces[0].decoded;
        match first.mnemonic() {
            Mnemonic::Mov if first.op1_kind() == OpKind::Register => Some(first.op1_register()),
            _ => None,
        }
    }

    /// Whether it copies the address to the register that it came from.
    fn is_redundant(&self, piece: &Piece) -> bool {
        let copied = &piece.decoded;
        copied.mnemonic() == Mnemonic::Mov
            && copied.op1_register() == self.pieces[0].decoded.op0_register()
            && self.source() == Some(copied.op0_register())
    }

    /// Each register operand as another register, or as each other one.
    fn registers(
        &self,
        piece: &Piece,
        spare: bool,
        everywhere: bool,
        random: &mut Random,
    ) -> Vec<Mutant> {
        let mut made = Vec::new();
        let mut attempt = |changed: Instruction, harmless: bool| {
            let Some(bytes) = encode(&changed, piece) else {
                return;
            };
            let kind = match names_rsp(&changed) {
                true => Kind::StackPointer,
                false => Kind::Register,
            };
            let how = format!("as `{changed}`");
            let mutant = self.mutant(kind, piece, bytes, piece.relocations.clone(), &how);
            made.push(Mutant {
                harmless: harmless || spare,
                ..mutant
            });
        };
        let mut others = |register| match everywhere {
            true => all_others(register),
            false => vec![other(register, random)],
        };
        for operand in 0..piece.decoded.op_count() {
            if piece.decoded.op_kind(operand) != OpKind::Register {
                continue;
            }
            let register = piece.decoded.op_register(operand);
            let is_copy = piece.decoded.mnemonic() == Mnemonic::Mov && operand == 1;
            let is_index = self.pieces[1].at == piece.at && register.size() == 4;
            for now in others(register)
                .into_iter()
                .chain([stack_pointer(register)])
            {
                let mut changed = piece.decoded;
                changed.set_op_register(operand, now);
                let same = is_copy && (is_index || self.source() == Some(now.full_register()));
                attempt(changed, same);
            }
        }
        if is_general(piece.decoded.memory_base()) {
            for now in others(piece.decoded.memory_base()) {
                let mut changed = piece.decoded;
                changed.set_memory_base(now);
                attempt(changed, false);
            }
        }
        made
    }

    fn retargeted(&self, others: &[Check], random: &mut Random) -> Vec<Mutant> {
        let count = self.pieces.len() - 1;
        let branch = &self.pieces[count - 2];
        let mut targets: Vec<u64> = self.pieces.iter().map(|p| p.at).collect();
        targets.extend(self.slow.iter().skip(1).map(|p| p.at));
        let mut made: Vec<_> = targets
            .iter()
            .filter_map(|target| self.branching(branch, *target))
            .collect();
        for other in others.iter().filter(|other| other.section == self.section) {
            let slow = other.pieces[other.pieces.len() - 3]
                .decoded
                .near_branch_target();
            made.extend(self.branching(branch, slow));
        }
        if let Some(back) = self
            .slow
            .iter()
            .find(|p| p.decoded.flow_control() == FlowControl::UnconditionalBranch)
        {
            made.extend(
                targets
                    .iter()
                    .filter_map(|target| self.branching(back, *target)),
            );
            let other = &others[random.below(others.len() as u64) as usize];
            if other.section == self.section {
                made.extend(self.branching(back, other.pieces[other.pieces.len() - 1].at));
            }
        }
        made
    }

    /// The branch with another target that its field reaches.
    fn branching(&self, branch: &Piece, target: u64) -> Option<Mutant> {
        if target == branch.decoded.near_branch_target() || !branch.relocations.is_empty() {
            return None;
        }
        let bytes = with_target(branch, branch.at, target)?;
        let how = format!("leading to {target:#x}");
        Some(self.mutant(Kind::Retargeted, branch, bytes, Vec::new(), &how))
    }

    /// The call to the slow path of another register.
    fn other_slow_path(&self, object: &Object<'_>, piece: &Piece) -> Vec<Mutant> {
        let slow: Vec<SymbolId> = object
            .symbols()
            .filter(|(_, s)| s.name.starts_with(names::SLOW_PREFIX))
            .map(|(id, _)| id)
            .collect();
        let [call] = piece.relocations.as_slice() else {
            return Vec::new();
        };
        let Some(at) = slow.iter().position(|id| *id == call.symbol) else {
            return Vec::new();
        };
        let symbol = slow[(at + 1) % slow.len()];
        let relocations = vec![Relocation { symbol, ..*call }];
        let how = format!("leading to {}", object.symbol(symbol).name);
        vec![self.mutant(
            Kind::Retargeted,
            piece,
            piece.bytes.clone(),
            relocations,
            &how,
        )]
    }
}

/// The instruction's bytes at another address: a branch keeps its target.
fn moved(piece: &Piece, to: u64) -> Vec<u8> {
    if piece.decoded.is_jcc_short_or_near() && piece.relocations.is_empty() {
        return with_target(piece, to, piece.decoded.near_branch_target())
            .unwrap_or_else(|| piece.bytes.clone());
    }
    piece.bytes.clone()
}

/// A direct branch at `at` with this target, in the same number of bytes.
fn with_target(piece: &Piece, at: u64, target: u64) -> Option<Vec<u8>> {
    let mut bytes = piece.bytes.clone();
    let distance = target.wrapping_sub(at);
    write_target(&mut bytes, 0, piece.bytes.len(), distance)?;
    Some(bytes)
}

/// Makes the branch of `length` bytes at offset `at` of the code lead to offset
/// `target`, if its field is wide enough.
fn write_target(code: &mut [u8], at: u64, length: usize, target: u64) -> Option<()> {
    let end = at as usize + length;
    let distance = target.wrapping_sub(end as u64) as i64;
    if length <= 3 {
        code[end - 1] = i8::try_from(distance).ok()? as u8;
    } else {
        let distance = i32::try_from(distance).ok()?;
        code[end - 4..end].copy_from_slice(&distance.to_le_bytes());
    }
    Some(())
}

/// The changed instruction, if it has the same shape: equally long, its
/// relocated field where it was.
fn encode(changed: &Instruction, piece: &Piece) -> Option<Vec<u8>> {
    if matches!(changed.code(), Code::INVALID) {
        return None;
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(changed, piece.at).ok()?;
    let offsets = encoder.get_constant_offsets();
    let bytes = encoder.take_buffer();
    let field = piece.relocations.first().map(|r| r.offset as usize);
    let is_kept = field.is_none_or(|at| {
        offsets.has_displacement() && offsets.displacement_offset() == at
            || offsets.has_immediate() && offsets.immediate_offset() == at
    });
    (bytes.len() == piece.bytes.len() && bytes != piece.bytes && is_kept).then_some(bytes)
}

/// The stack pointer by a name of the same width.
fn stack_pointer(register: Register) -> Register {
    match register.size() {
        8 => Register::RSP,
        4 => Register::ESP,
        _ => register,
    }
}

fn names_rsp(i: &Instruction) -> bool {
    (0..i.op_count()).any(|n| {
        i.op_kind(n) == OpKind::Register && i.op_register(n).full_register() == Register::RSP
    })
}

fn is_general(register: Register) -> bool {
    register.is_gpr() && register != Register::RSP
}

/// Another general register of the same width, not the stack pointer.
fn other(register: Register, random: &mut Random) -> Register {
    let all = all_others(register);
    match all.is_empty() {
        true => register,
        false => all[random.below(all.len() as u64) as usize],
    }
}

/// All of them.
fn all_others(register: Register) -> Vec<Register> {
    let (first, last) = match register.size() {
        8 => (Register::RAX, Register::R15),
        4 => (Register::EAX, Register::R15D),
        _ => return Vec::new(),
    };
    Register::values()
        .filter(|r| *r >= first && *r <= last && *r != register)
        .filter(|r| r.full_register() != Register::RSP)
        .collect()
}

impl Mutant {
    /// The object with the change; `undo` takes it back. `None` if a branch does
    /// not reach its target any more.
    pub fn apply(&self, object: &mut Object<'static>) -> Option<Undo> {
        let (bytes, relocations) = match &self.change {
            Change::Replace(bytes, relocations) => (bytes, relocations),
            Change::Splice(new) => {
                let changed = splice::spliced(object, self.section, self.range.clone(), new)?;
                return Some(Undo::Whole(Box::new(std::mem::replace(object, changed))));
            }
        };
        let section = &mut object.sections[self.section.0 as usize];
        let was = section.data[self.range.start as usize..self.range.end as usize].to_vec();
        let inside = section.relocations.iter();
        let inside = inside.filter(|r| self.range.contains(&r.offset));
        let undo = Undo::Part {
            section: self.section,
            range: self.range.clone(),
            bytes: was,
            relocations: inside.copied().collect(),
        };
        replace(object, self.section, &self.range, bytes, relocations);
        Some(undo)
    }
}

/// What a mutant replaced.
#[derive(Clone, Debug)]
pub enum Undo {
    /// Bytes and relocations.
    Part {
        /// Where.
        section: SectionId,
        /// Where in it.
        range: Range<u64>,
        /// The bytes.
        bytes: Vec<u8>,
        /// The relocations.
        relocations: Vec<Relocation>,
    },
    /// Everything.
    Whole(Box<Object<'static>>),
}

impl Undo {
    /// Makes the object what it was.
    pub fn undo(self, object: &mut Object<'static>) {
        match self {
            Undo::Part {
                section,
                range,
                bytes,
                relocations,
            } => replace(object, section, &range, &bytes, &relocations),
            Undo::Whole(was) => *object = *was,
        }
    }
}

fn replace(
    object: &mut Object<'static>,
    section: SectionId,
    range: &Range<u64>,
    bytes: &[u8],
    relocations: &[Relocation],
) {
    let section = &mut object.sections[section.0 as usize];
    section.data.to_mut()[range.start as usize..range.end as usize].copy_from_slice(bytes);
    let from = section
        .relocations
        .partition_point(|r| r.offset < range.start);
    let to = section
        .relocations
        .partition_point(|r| r.offset < range.end);
    section
        .relocations
        .splice(from..to, relocations.iter().copied());
}

/// Counts of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Mutants made.
    pub made: u64,
    /// Rejected by the verifier.
    pub rejected: u64,
    /// Accepted, and confined as before or of the same meaning.
    pub harmless: u64,
}

/// A mutant that was accepted without an argument for it.
#[derive(Clone, Debug)]
pub struct Survivor {
    /// The change.
    pub mutant: Mutant,
    /// The function it is in.
    pub function: String,
}

/// What the verifier said to all mutants.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By kind, in the order of [`Kind::ALL`].
    pub counts: [Count; Kind::ALL.len()],
    /// Checks that were mutated.
    pub checks: u64,
    /// Mutants that were accepted and should not have been.
    pub survivors: Vec<Survivor>,
}

impl Tally {
    /// Adds another thread's.
    pub fn add(&mut self, other: Tally) {
        for (a, b) in self.counts.iter_mut().zip(other.counts) {
            a.made += b.made;
            a.rejected += b.rejected;
            a.harmless += b.harmless;
        }
        self.checks += other.checks;
        self.survivors.extend(other.survivors);
    }
}

impl std::fmt::Display for Tally {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (kind, count) in Kind::ALL.iter().zip(self.counts) {
            let Count {
                made,
                rejected,
                harmless,
            } = count;
            writeln!(
                f,
                "{kind:?}: {made} made, {rejected} rejected, {harmless} harmless"
            )?;
        }
        let made: u64 = self.counts.iter().map(|c| c.made).sum();
        write!(
            f,
            "{} checks, {made} mutants, {} accepted without an argument",
            self.checks,
            self.survivors.len()
        )
    }
}

/// Mutates `checks` in `object` and asks the verifier.
pub fn judge(object: &mut Object<'static>, checks: &[Check], all: &[Check], seed: u64) -> Tally {
    let mut tally = Tally::default();
    let mut random = Random::new(seed);
    for check in checks {
        tally.checks += 1;
        let others: Vec<Check> = (0..3)
            .map(|_| all[random.below(all.len() as u64) as usize].clone())
            .collect();
        for mutant in check.mutants(object, &others, false, &mut random) {
            ask(object, check, mutant, &mut tally);
        }
    }
    tally
}

/// Asks the verifier about one mutant.
fn ask(object: &mut Object<'static>, check: &Check, mutant: Mutant, tally: &mut Tally) {
    let Some(undo) = mutant.apply(object) else {
        return;
    };
    let count = &mut tally.counts[mutant.kind as usize];
    count.made += 1;
    let accepted = svm_verify::verify_with(object, svm_verify::Options { limit: 1 }).is_ok();
    undo.undo(object);
    match (accepted, mutant.harmless) {
        (false, _) => count.rejected += 1,
        (true, true) => count.harmless += 1,
        (true, false) => {
            let function = check.function.clone();
            tally.survivors.push(Survivor { mutant, function });
        }
    }
}
