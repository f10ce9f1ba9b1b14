//! A cache of judgements: rewritten code is full of equal instructions, because all
//! checks look alike.
//!
//! [`Memo`] maps the bytes of an instruction to what the rules of P3 made of
//! them: the first decoding, the allow-list, the prefix rules, the
//! classification and the second decoder's agreement. One belongs to one
//! verification; it only ever saves time.
//!
//! # Why an answer from the memo is the answer that judging would give
//!
//! 1. *All bytes are compared.* A [`Key`] is the instruction's bytes, up to 15
//!    of them, and their number. Its slot in the table is a hash, and so is
//!    the guess at the length; but an entry answers only if its whole key is
//!    equal. A wrong guess or two keys with one slot only cost time.
//! 2. *The bytes decide the length.* Both decoders read bytes one after the
//!    other and stop with the last of the instruction, so bytes that begin with
//!    a whole instruction are that instruction, whatever follows. (SDM volume 2,
//!    2.1: an encoding is never the beginning of another.) A test checks this of both
//!    decoders. Near a section's end, where bytes could be missing, nothing
//!    is looked up.
//! 3. *The rest is a function of the bytes and of the kind of relocation.* No
//!    rule of P3 depends on the place of an instruction. The exceptions are parts
//!    of a [`Remembered`] that are not taken as they are: the caller fills in the
//!    place; the target of a direct branch is kept as its distance, which is
//!    in the bytes, and computed from the new place; `rip`-relative instructions are
//!    kept only if a relocation says what they reach, the window's mask.
//! 4. *A direct branch is known by its opcode.* One without prefixes is the opcode
//!    and the distance, nothing else ([`Branch`]). So all branches with one opcode mean
//!    the same except for the distance, which is read from the bytes each time.
//! 5. *A displacement or an immediate that ends an instruction is read each time*, as that distance
//!    is ([`Last`]). What says that there is one, how wide it is and that nothing follows,
//!    comes before it (SDM volume 2, 2.1.3 to 2.1.5), and is compared. All that the rules of P3
//!    make of it is [`MemoryOperand::disp`], the number in [`Op::Alu`] or [`Op::Constant`], or
//!    nothing; what it may be, later phases judge at each place.
//! 6. *A relocation is judged each time.* Only its [`OperandField`] is kept, which is all
//!    that classification sees. The caller judges the current relocation, with its own
//!    symbol, addend and offset, and takes the answer only if the field is the same. Keys
//!    of relocated instructions differ from those of others.
//! 7. *Nothing refused is kept.* An instruction that breaks a rule is judged each time,
//!    so that each violation is reported at its place.
//! 8. *What a list says of a code is a function of the code.* The list of unprivileged
//!    instructions is long, so it is asked once for each code ([`Memo::admission`]).

use iced_x86::{
    Code, ConstantOffsets, Decoder, EncodingKind, Instruction, Mnemonic, OpKind, Register,
};

use crate::decode::allow::{self, Admission};
use crate::decode::classify::OperandField;
use crate::insn::{Access, Insn, Op};
use crate::targets::Instructions;

/// Fewest and most instructions that are remembered at a time. The most is about
/// the number of different instructions in a large module. What is judged anew costs far
/// more than what is not in a CPU's second-level cache.
const PLACES: (usize, usize) = (1 << 8, 1 << 14);

/// Entries of one slot of the table: a frequent instruction and a rare one often share it.
const WAYS: usize = 2;

/// Bytes of code for each place, so that small objects have small tables.
const BYTES_PER_PLACE: usize = 16;

/// Guesses at the shape for each place, a byte each: a wrong one is as bad as no entry.
const SHAPES_PER_PLACE: usize = 4;

/// Bytes that are read for a key: one more than the longest instruction has.
const WINDOW: usize = 16;

/// Where the operands of an instruction lie in its bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operands {
    /// Whether it is a direct branch, so that the immediate is a distance.
    pub branch: bool,
    /// Offset and size of the immediate, if it has one.
    pub immediate: Option<(u8, u8)>,
    /// Offset and size of the displacement, if it has one.
    pub displacement: Option<(u8, u8)>,
    /// Whether the displacement is a distance from the instruction's end.
    pub relative: bool,
}

impl Operands {
    /// The operands of a decoded instruction.
    pub fn new(i: &Instruction, fields: &ConstantOffsets) -> Operands {
        let part = |has: bool, at: usize, size: usize| has.then_some((at as u8, size as u8));
        Operands {
            branch: i.is_call_near() || i.is_jmp_short_or_near() || i.is_jcc_short_or_near(),
            immediate: part(
                fields.has_immediate(),
                fields.immediate_offset(),
                fields.immediate_size(),
            ),
            displacement: part(
                fields.has_displacement(),
                fields.displacement_offset(),
                fields.displacement_size(),
            ),
            relative: i.is_ip_rel_memory_operand(),
        }
    }
}

/// The field at the end of an instruction without a relocation, if that is read each time, and its
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Last {
    /// A displacement. All that the rules of P3 make of it is [`MemoryOperand::disp`].
    ///
    /// [`MemoryOperand::disp`]: crate::insn::MemoryOperand::disp
    Displacement(u8),
    /// An immediate. All that they make of it is a number in the [`Op`], if it has one.
    Immediate(u8),
}

impl Last {
    /// That of an instruction that was just decoded, if it ends with such a field.
    pub fn of(i: &Instruction, insn: &Insn, decoder: &Decoder<'_>) -> Option<Last> {
        let (is_number, is_distance) = (is_number(i, insn), is_distance(i, insn));
        if i.code().encoding() != EncodingKind::Legacy || !is_number && !is_distance {
            return None;
        }
        let fields = decoder.get_constant_offsets(i);
        let ends = |offset: usize, size: usize| matches!(size, 1 | 4) && offset + size == i.len();
        if fields.has_immediate() {
            let size = fields.immediate_size();
            let is_read = is_number && ends(fields.immediate_offset(), size);
            let has_sign = match insn.op {
                // Of 32 bits, those without one are no number of it.
                Op::Alu { wide, .. } => wide || size == 1,
                _ => true,
            };
            return (is_read && has_sign).then_some(Last::Immediate(size as u8));
        }
        let size = fields.displacement_size();
        let is_read = is_distance && ends(fields.displacement_offset(), size);
        is_read.then_some(Last::Displacement(size as u8))
    }

    fn bytes(self) -> u8 {
        match self {
            Last::Displacement(bytes) | Last::Immediate(bytes) => bytes,
        }
    }

    /// Puts what was read there into the instruction.
    fn put(self, value: i32, insn: &mut Insn) {
        match (self, &mut insn.op) {
            (Last::Displacement(_), _) => insn.memory.disp = value,
            (Last::Immediate(_), Op::Alu { imm, .. }) => *imm = value,
            // Negative ones are large ones, whether the instruction extends their sign or not.
            (Last::Immediate(_), Op::Constant { small, .. }) => *small = u8::try_from(value).ok(),
            (Last::Immediate(_), _) => {}
        }
    }
}

/// Whether a displacement is only added to a register, to reach memory. `lea` computes with it, and
/// what `pop` adds to it depends on its value. Without a base, its width says more than its value.
fn is_distance(i: &Instruction, insn: &Insn) -> bool {
    let base = i.memory_base();
    insn.memory.access != Access::None
        && !i.is_stack_instruction()
        && !i.is_string_instruction()
        && base != Register::None
        && !base.is_ip()
}

/// Whether it has an immediate that it only moves, combines or compares. The count of a shift is
/// none: flags depend on it.
fn is_number(i: &Instruction, insn: &Insn) -> bool {
    use Mnemonic as M;
    let is_usual = matches!(
        i.mnemonic(),
        M::Mov | M::Add | M::Sub | M::And | M::Or | M::Xor | M::Cmp | M::Test
    );
    let to_whole = i.op0_kind() == OpKind::Register && i.op0_register().size() >= 4;
    is_usual
        && !matches!(i.op1_kind(), OpKind::Register | OpKind::Memory)
        && match insn.op {
            Op::Constant { .. } | Op::Alu { .. } => true,
            // Of another number it would be [`Op::Alu`].
            Op::Plain => !to_whole || i.mnemonic() == M::Test,
            _ => false,
        }
}

/// An instruction that keeps the rules of P3 at any place.
#[derive(Clone, Copy, Debug)]
pub struct Remembered {
    /// The instruction for the interpretation, without its place and target.
    pub insn: Insn,
    /// The field at its end, if that may be another one.
    last: Option<Last>,
    /// What its relocation was of, [`OperandField::None`] if it had none.
    pub field: OperandField,
    /// Where a relocation may be; the default if it had none.
    pub operands: Operands,
    /// From its end to where it branches, if it is a direct branch.
    distance: u64,
}

impl Remembered {
    /// The entry for an instruction that no rule refused; `None` if its meaning depends
    /// on its place.
    pub fn new(
        i: &Instruction,
        insn: Insn,
        field: OperandField,
        operands: Operands,
    ) -> Option<Remembered> {
        let elsewhere = |kind| {
            use OpKind::*;
            matches!(
                kind,
                NearBranch16 | NearBranch32 | FarBranch16 | FarBranch32
            )
        };
        let constant = matches!(field, OperandField::WindowMask | OperandField::Bound);
        let relative = i.is_ip_rel_memory_operand() && !constant;
        if relative || i.op_kinds().any(elsewhere) {
            return None;
        }
        let distance = match i.op0_kind() {
            OpKind::NearBranch64 => i.near_branch64().wrapping_sub(i.next_ip()),
            _ => 0,
        };
        Some(Remembered {
            insn,
            last: None,
            field,
            operands,
            distance,
        })
    }

    /// The entry for all instructions that differ in the field at the end alone.
    pub fn of_any(self, last: Option<Last>) -> Remembered {
        Remembered { last, ..self }
    }
}

/// The bytes of a direct branch without prefixes (SDM volume 2, Jcc, JMP, CALL,
/// LOOP): the opcode, then the distance from its end, of 8 or 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Branch {
    opcode: usize,
    distance: usize,
}

impl Branch {
    /// The one that the bytes begin with, if they begin with one.
    fn of(window: u128) -> Option<Branch> {
        let (opcode, distance) = match window as u16 & 0xff {
            0x70..=0x7f | 0xe0..=0xe3 | 0xeb => (1, 1),
            0xe8 | 0xe9 => (1, 4),
            0x0f if matches!(window as u16 >> 8, 0x80..=0x8f) => (2, 4),
            _ => return None,
        };
        Some(Branch { opcode, distance })
    }

    fn length(self) -> usize {
        self.opcode + self.distance
    }

    /// How far the one at the start of the bytes goes.
    fn distance(self, window: u128) -> u64 {
        signed(window, self.opcode, self.distance) as u64
    }
}

/// The number in a field of the bytes.
fn signed(window: u128, at: usize, size: usize) -> i64 {
    let field = (window >> (8 * at)) as u64;
    let above = 64 - 8 * size as u32;
    (field << above) as i64 >> above
}

/// What [`Memo::find`] knows of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'m> {
    pub known: &'m Remembered,
    /// What is in the field at its end, if that is not the entry's.
    last: i32,
    /// How many bytes it has. This is the length in the key, which is that of the entry; but
    /// nothing has to wait for the entry, which is often in no near cache: a processor looks up
    /// the next instruction meanwhile.
    pub length: usize,
    /// From its end to where it branches, if it is a direct branch.
    pub distance: u64,
}

impl Answer<'_> {
    /// The instruction for the interpretation, without its place and target.
    pub fn insn(&self) -> Insn {
        let mut insn = self.known.insn;
        if let Some(last) = self.known.last {
            last.put(self.last, &mut insn);
        }
        insn
    }
}

/// Masks of the first so many bytes.
const FIRST: [u128; WINDOW] = {
    let mut masks = [0; WINDOW];
    let mut bytes = 1;
    while bytes < WINDOW {
        masks[bytes] = masks[bytes - 1] << 8 | 0xff;
        bytes += 1;
    }
    masks
};

/// All bytes of an instruction, their number in the low half of the last byte,
/// above it whether a relocation applies to them, and above that how many bytes at the end do
/// not count: those of the distance of a [`Branch`], or of a [`Last`]. They are zero here.
/// Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Key(u128);

impl Key {
    /// Of an instruction of `length` bytes, of which the first `compared` count.
    fn new(window: u128, compared: usize, length: usize, relocated: bool) -> Key {
        debug_assert!((1..WINDOW).contains(&length) && compared <= length);
        debug_assert!(length - compared < 8);
        let bytes = window & FIRST[compared];
        let left_out = (length - compared) as u128;
        Key(bytes | (length as u128) << 120 | u128::from(relocated) << 124 | left_out << 125)
    }

    /// Its slot in a table of `places` slots, at least two.
    fn place(self, places: usize) -> usize {
        let half = (self.0 >> 64) as u64;
        spread((self.0 as u64) ^ half.rotate_left(29), places)
    }
}

/// A number below `places`, a power of two (Fibonacci hashing; Knuth, volume 3,
/// 6.4).
fn spread(value: u64, places: usize) -> usize {
    let product = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product >> (64 - places.trailing_zeros())) as usize
}

/// The first [`WINDOW`] bytes, if there are as many.
fn window(bytes: &[u8]) -> Option<u128> {
    bytes
        .first_chunk::<WINDOW>()
        .copied()
        .map(u128::from_le_bytes)
}

/// A guess at the shape of an instruction: its length, and above it the bytes of the field at its
/// end, if that may be another one.
fn shape(length: u8, last: u8) -> u8 {
    length | last << 4
}

/// The slot of the guess at the shape: by opcode and ModRM, with the byte before them
/// if there is exactly one, and behind the prefixes 65 67 of an operand in the window.
fn shape_place(window: u128, places: usize) -> usize {
    let in_window = matches!(window as u16, 0x6765 | 0x6567);
    let window = if in_window { window >> 16 } else { window };
    let [first, second, ..] = window.to_le_bytes();
    let bytes = match first {
        0x0f => 3,
        0x40..=0x4f | 0x66 | 0xf2 | 0xf3 => 3 - usize::from(is_before_immediate(second)),
        _ => 2 - usize::from(is_before_immediate(first)),
    };
    spread((window & FIRST[bytes]) as u64, places)
}

/// Whether an immediate follows this opcode at once, of those in [`is_number`]: no ModRM is
/// there, and what is says nothing.
fn is_before_immediate(opcode: u8) -> bool {
    matches!(opcode, 0xa8 | 0xa9 | 0xb0..=0xbf) || opcode < 0x40 && opcode & 6 == 4
}

/// Instructions by their bytes. See the top of the file.
pub struct Memo {
    /// A power of two of slots, the younger entry first in each; empty if nothing is to be
    /// remembered.
    entries: Vec<[Option<(Key, Remembered)>; WAYS]>,
    /// The [`shape`] that the last instruction with the same first bytes had; 0 if there
    /// was none. A guess.
    shapes: Vec<u8>,
    /// What the list of unprivileged instructions says, by code; empty if nothing is to be
    /// remembered.
    admissions: Vec<Option<Admission>>,
}

impl Memo {
    /// An empty memo for `bytes` bytes of code.
    pub fn new(bytes: usize) -> Memo {
        let wanted = (bytes / BYTES_PER_PLACE).clamp(PLACES.0, PLACES.1);
        Memo::with_places(wanted.next_power_of_two())
    }

    fn with_places(places: usize) -> Memo {
        Memo {
            entries: vec![[None; WAYS]; places / WAYS],
            shapes: vec![0; places * SHAPES_PER_PLACE],
            admissions: vec![None; Code::values().len()],
        }
    }

    /// One that remembers nothing, for tests to compare with.
    pub fn disabled() -> Memo {
        Memo {
            entries: Vec::new(),
            shapes: Vec::new(),
            admissions: Vec::new(),
        }
    }

    /// [`allow::admission_among`].
    pub fn admission(&mut self, i: &Instruction, listed: Instructions) -> Admission {
        let known = self.admissions.get_mut(i.code() as usize);
        match (listed, known) {
            (Instructions::Unprivileged, Some(known)) => {
                *known.get_or_insert_with(|| allow::admission_among(i, listed))
            }
            (Instructions::Unprivileged | Instructions::Kernel, _) => {
                allow::admission_among(i, listed)
            }
        }
    }

    /// The entry for the instruction at the start of the bytes. `relocation`: how many bytes
    /// from their start the next relocation is.
    pub fn find(&self, bytes: &[u8], relocation: u64) -> Option<Answer<'_>> {
        let window = window(bytes)?;
        let branch = Branch::of(window);
        let (length, last) = match branch {
            Some(branch) => (branch.length(), 0),
            None => {
                let place = shape_place(window, self.shapes.len().max(2));
                let guess = usize::from(*self.shapes.get(place)?);
                (guess & 15, guess >> 4)
            }
        };
        if length == 0 {
            return None;
        }
        let relocated = relocation < length as u64;
        let last = if relocated { 0 } else { last };
        let compared = branch.map_or(length - last, |branch| branch.opcode);
        let key = Key::new(window, compared, length, relocated);
        let slot = self.entries.get(key.place(self.entries.len().max(2)))?;
        let (_, known) = slot.iter().flatten().find(|(found, _)| *found == key)?;
        Some(Answer {
            known,
            last: match last {
                0 => 0,
                size => signed(window, compared, size) as i32,
            },
            length,
            distance: branch.map_or(known.distance, |branch| branch.distance(window)),
        })
    }

    /// Adds an entry for the instruction at the start of the bytes.
    pub fn keep(&mut self, bytes: &[u8], remembered: Remembered) {
        let (Some(window), length) = (window(bytes), usize::from(remembered.insn.len)) else {
            return;
        };
        let last = remembered.last.map_or(0, Last::bytes);
        let compared = length - usize::from(last);
        let compared = Branch::of(window).map_or(compared, |branch| branch.opcode);
        let key = Key::new(
            window,
            compared,
            length,
            remembered.field != OperandField::None,
        );
        let place = key.place(self.entries.len().max(2));
        let guess = shape_place(window, self.shapes.len().max(2));
        if let (Some(slot), Some(guess)) = (self.entries.get_mut(place), self.shapes.get_mut(guess))
        {
            match slot {
                // A wrong guess at the shape may hide an entry that is there.
                [Some((found, known)), _] if *found == key => *known = remembered,
                [younger, older] => *older = younger.replace((key, remembered)),
            }
            *guess = shape(remembered.insn.len, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{DecoderOptions, InstructionInfoFactory};

    use twin_abi::{Accesses, MadeFor, Processor, Scheme, Target};
    use yaxpeax_x86::long_mode::InstDecoder;

    use super::*;
    use crate::decode::{self, classify, second};
    use crate::targets::Rules;

    /// The entry for the instruction at the start of the bytes, at an address.
    fn known(bytes: &[u8], at: u64, field: OperandField) -> Option<Remembered> {
        let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
        let i = decoder.decode();
        let operands = Operands::new(&i, &decoder.get_constant_offsets(&i));
        let insn = classify::classify(
            &i,
            field,
            Rules::hypervisor(twin_abi::Scheme::Stlb, twin_abi::Processor::Any),
            &mut InstructionInfoFactory::new(),
        );
        let insn = insn.unwrap_or_else(|(.., insn)| insn);
        let len = i.len() as u8;
        Remembered::new(&i, Insn { len, ..insn }, field, operands)
    }

    /// The bytes of an instruction with zeros after it.
    fn padded(bytes: &[u8]) -> [u8; 24] {
        let mut all = [0; 24];
        all[..bytes.len()].copy_from_slice(bytes);
        all
    }

    const FAR: u64 = u64::MAX;

    /// `add $n, %eax`: equal first bytes, equal lengths.
    fn add(n: u32) -> [u8; 24] {
        padded(&[&[0x05][..], &n.to_le_bytes()].concat())
    }

    #[test]
    fn an_entry_answers_for_its_bytes_only() {
        // With four places, each collides with half of the others.
        for places in [4, 1 << 8, 1 << 13] {
            let mut memo = Memo::with_places(places);
            for n in 0..3000 {
                memo.keep(&add(n), known(&add(n), 0, OperandField::None).unwrap());
                for m in (0..=n).rev().step_by(97) {
                    let imm = memo.find(&add(m), FAR).map(|a| match a.known.insn.op {
                        crate::insn::Op::Alu { imm, .. } => imm,
                        op => panic!("{op:?}"),
                    });
                    assert!(m != n || imm.is_some());
                    assert!(imm.is_none_or(|imm| imm == m as i32));
                }
            }
        }
    }

    #[test]
    fn a_shorter_or_longer_instruction_is_another() {
        let mut memo = Memo::with_places(1 << 13);
        // mov (%rax),%ecx and mov (%rsp),%ecx, whose ModRM is followed by a SIB.
        let short = padded(&[0x8b, 0x08, 0x24]);
        let long = padded(&[0x8b, 0x0c, 0x24]);
        memo.keep(&short, known(&short, 0, OperandField::None).unwrap());
        let found = memo.find(&short, FAR).unwrap();
        assert_eq!((found.length, found.known.insn.len), (2, 2));
        assert!(memo.find(&long, FAR).is_none());
        // A guess of two bytes for three.
        let place = shape_place(window(&long).unwrap(), memo.shapes.len());
        memo.shapes[place] = 2;
        assert!(memo.find(&long, FAR).is_none());
    }

    #[test]
    fn with_and_without_a_relocation_are_two_instructions() {
        let mut memo = Memo::with_places(1 << 13);
        let bytes = padded(&[0x48, 0x2b, 0x81, 0, 0, 0, 0]);
        memo.keep(&bytes, known(&bytes, 0, OperandField::Tag).unwrap());
        assert!(memo.find(&bytes, FAR).is_none());
        // After its last byte, at its last byte.
        assert!(memo.find(&bytes, 7).is_none());
        let found = memo.find(&bytes, 6).unwrap().known;
        assert_eq!(found.field, OperandField::Tag);
        assert_eq!(found.operands.displacement, Some((3, 4)));
    }

    /// Opcodes of [`Branch`], of a short and of a near distance.
    fn branches() -> impl Iterator<Item = (Vec<u8>, usize)> {
        let short = (0x70..=0x7f).chain(0xe0..=0xe3).chain([0xeb]);
        let near = (0x80..=0x8f).map(|b| vec![0x0f, b]);
        let near = near.chain([vec![0xe8], vec![0xe9]]);
        short.map(|b| (vec![b], 1)).chain(near.map(|o| (o, 4)))
    }

    #[test]
    fn a_branch_is_known_by_its_opcode() {
        for (opcode, width) in branches() {
            let bytes = |distance: i32| {
                let field = &distance.to_le_bytes()[..width];
                padded(&[&opcode, field].concat())
            };
            let mut memo = Memo::with_places(1 << 13);
            let first = known(&bytes(-16), 0x1000, OperandField::None).unwrap();
            memo.keep(&bytes(-16), first);
            for distance in [0, 1, -1, 5, 127, -128, 0x1234_5678, i32::MIN] {
                let distance = if width == 1 {
                    i32::from(distance as i8)
                } else {
                    distance
                };
                let own = known(&bytes(distance), 0x2000, OperandField::None).unwrap();
                let answer = memo.find(&bytes(distance), FAR).expect("the same opcode");
                let (found, far) = (answer.known, answer.distance);
                assert_eq!(answer.length, usize::from(own.insn.len));
                assert_eq!(format!("{:?}", found.insn), format!("{:?}", own.insn));
                assert_eq!(
                    (far, found.field),
                    (own.distance, own.field),
                    "{opcode:02x?}"
                );
                assert_eq!(far as i64, i64::from(distance), "{opcode:02x?}");
            }
            assert!(memo.find(&bytes(0), 1).is_none(), "with a relocation");
        }
    }

    /// With a prefix it is like any other instruction: all bytes count.
    #[test]
    fn a_branch_with_a_prefix_is_kept_with_its_distance() {
        let mut memo = Memo::with_places(1 << 13);
        let bytes = |distance| padded(&[0x3e, 0x74, distance]);
        memo.keep(
            &bytes(0xf0),
            known(&bytes(0xf0), 0x1000, OperandField::None).unwrap(),
        );
        let found = memo.find(&bytes(0xf0), FAR).unwrap();
        assert_eq!((found.length, found.distance as i64), (3, -16));
        assert!(memo.find(&bytes(0xf1), FAR).is_none());
    }

    /// The entry for the instruction at the start of the bytes, if no rule of P3 refuses it.
    fn judged(bytes: &[u8], rules: &Rules) -> Option<Remembered> {
        let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        let i = decoder.decode();
        let admission = decode::allowed(&i, &bytes[..i.len()], rules).ok()?;
        let field = OperandField::None;
        let insn = classify::classify(&i, field, rules, &mut InstructionInfoFactory::new()).ok()?;
        let agrees = match admission {
            Admission::System => second::same_length(&InstDecoder::default(), &i, bytes),
            _ => second::agrees(&InstDecoder::default(), &i, &insn, bytes),
        };
        agrees.ok()?;
        let len = i.len() as u8;
        let known = Remembered::new(&i, Insn { len, ..insn }, field, Operands::default())?;
        Some(known.of_any(Last::of(&i, &insn, &decoder)))
    }

    /// The rules of modules.
    fn linux() -> &'static Rules {
        let made = MadeFor {
            target: Target::Linux,
            scheme: Scheme::Stlb,
            accesses: Accesses::All,
            processor: Processor::Any,
        };
        Rules::of(made).expect("there are such modules")
    }

    /// An operand in ModRM and SIB, and how many bytes its displacement has.
    type Operand = (&'static [u8], usize);

    /// Those of modules, and of a hypervisor's instances.
    fn several_rules() -> [&'static Rules; 4] {
        let hypervisor = |scheme| Rules::hypervisor(scheme, Processor::Any);
        [
            hypervisor(Scheme::Window32),
            hypervisor(Scheme::Window),
            hypervisor(Scheme::Stlb),
            linux(),
        ]
    }

    /// Beginnings of instructions of all opcodes of one and two bytes, with these operands, and the
    /// size of the displacement.
    fn beginnings(operands: &[Operand]) -> impl Iterator<Item = (Vec<u8>, usize)> {
        let prefixes: [&[u8]; 8] = [
            &[],
            &[0x48],
            &[0x66],
            &[0xf0],
            &[0xf3],
            &[0x65, 0x67],
            &[0x67, 0x65, 0x4d],
            &[0x65],
        ];
        let opcodes = (0..2 * 256).map(|n| (n / 256 == 1, n as u8));
        opcodes.flat_map(move |(second, opcode)| {
            let map: &[u8] = if second { &[0x0f] } else { &[] };
            prefixes.into_iter().flat_map(move |prefix| {
                operands.iter().flat_map(move |&(operand, size)| {
                    (0..8).map(move |reg| {
                        let modrm = [opcode, operand[0] | reg << 3];
                        let all = [prefix, map, &modrm, &operand[1..]].concat();
                        (all, size)
                    })
                })
            })
        })
    }

    /// d8(%rbx), d32(%rbx), d8(%rsp), d32(%rbx,%rcx,4).
    const WITH_DISPLACEMENT: &[Operand] = &[
        (&[0x43], 1),
        (&[0x83], 4),
        (&[0x44, 0x24], 1),
        (&[0x84, 0x8b], 4),
    ];

    /// What is judged with one displacement is judged the same with any other.
    #[test]
    fn a_displacement_at_the_end_is_read_each_time() {
        let mut kept = 0;
        for (rules, (start, size)) in several_rules()
            .into_iter()
            .flat_map(|rules| beginnings(WITH_DISPLACEMENT).map(move |start| (rules, start)))
        {
            let bytes = |displacement: i32| {
                let field = &displacement.to_le_bytes()[..size];
                padded(&[&start, field].concat())
            };
            let is_read = |first: &Remembered| matches!(first.last, Some(Last::Displacement(_)));
            let Some(first) = judged(&bytes(0x11), rules).filter(is_read) else {
                continue;
            };
            kept += 1;
            let mut memo = Memo::with_places(4);
            memo.keep(&bytes(0x11), first);
            for displacement in [0, 1, -1, 8, -8, 127, -128, 0x1234_5678, i32::MAX, i32::MIN] {
                let bytes = bytes(displacement);
                let own = judged(&bytes, rules).expect("as with the other displacement");
                let found = memo.find(&bytes, FAR).expect("it is kept").insn();
                assert_eq!(
                    format!("{found:?}"),
                    format!("{:?}", own.insn),
                    "{start:02x?}"
                );
                // With a relocation it is another one.
                assert!(memo.find(&bytes, 0).is_none());
            }
        }
        assert!(kept > 5_000, "{kept}");
    }

    #[test]
    fn displacements_that_count_are_not_left_out() {
        // lea 8(%rbx),%rax; pop 8(%rsp); push 8(%rbx); movl $1,8(%rbx); shll $3,8(%rbx);
        // mov 8,%eax; mov 8(,%rbx,4),%eax; vmovups 8(%rbx),%xmm0
        let counts: [&[u8]; 8] = [
            &[0x48, 0x8d, 0x43, 8],
            &[0x8f, 0x44, 0x24, 8],
            &[0xff, 0x73, 8],
            &[0xc7, 0x43, 8, 1, 0, 0, 0],
            &[0xc1, 0x63, 8, 3],
            &[0x8b, 0x04, 0x25, 8, 0, 0, 0],
            &[0x8b, 0x04, 0x9d, 8, 0, 0, 0],
            &[0xc5, 0xf8, 0x10, 0x43, 8],
        ];
        for bytes in counts {
            let known = judged(&padded(bytes), linux());
            assert!(
                known.is_none_or(|known| !matches!(known.last, Some(Last::Displacement(_)))),
                "{bytes:02x?}"
            );
        }
    }

    /// What is judged with one immediate is judged the same with any other.
    #[test]
    fn an_immediate_at_the_end_is_read_each_time() {
        // %rbx, (%rbx), and those with a displacement.
        let operands = [&[(&[0xc3][..], 0), (&[0x03], 0)], WITH_DISPLACEMENT].concat();
        let mut kept = 0;
        for (rules, (start, _)) in several_rules()
            .into_iter()
            .flat_map(|rules| beginnings(&operands).map(move |start| (rules, start)))
        {
            let mut bytes = [0x11; 24];
            bytes[..start.len()].copy_from_slice(&start);
            let Some(first) = judged(&bytes, rules) else {
                continue;
            };
            let Some(Last::Immediate(size)) = first.last else {
                continue;
            };
            kept += 1;
            let mut memo = Memo::with_places(4);
            memo.keep(&bytes, first);
            let (end, size) = (usize::from(first.insn.len), usize::from(size));
            for value in [
                0,
                1,
                -1,
                8,
                -16,
                127,
                -128,
                255,
                256,
                0x1234_5678,
                i32::MAX,
                i32::MIN,
            ] {
                bytes[end - size..end].copy_from_slice(&value.to_le_bytes()[..size]);
                let own = judged(&bytes, rules).expect("as with the other immediate");
                let found = memo.find(&bytes, FAR).expect("it is kept").insn();
                assert_eq!(
                    format!("{found:?}"),
                    format!("{:?}", own.insn),
                    "{bytes:02x?}"
                );
                // With a relocation it is another one.
                assert!(memo.find(&bytes, 0).is_none());
            }
        }
        assert!(kept > 5_000, "{kept}");
    }

    #[test]
    fn immediates_that_count_are_not_left_out() {
        // shl $3,%ebx; in $8,%al; int $3; enter $8,$1; and $0xfffffff0,%ebx; add $8,%bx, of two bytes;
        // movabs $8,%rbx; push $8
        let counts: [&[u8]; 8] = [
            &[0xc1, 0xe3, 3],
            &[0xe4, 8],
            &[0xcd, 3],
            &[0xc8, 8, 0, 1],
            &[0x81, 0xe3, 0xf0, 0xff, 0xff, 0xff],
            &[0x66, 0x81, 0xc3, 8, 0],
            &[0x48, 0xbb, 8, 0, 0, 0, 0, 0, 0, 0],
            &[0x6a, 8],
        ];
        for bytes in counts {
            let known = judged(&padded(bytes), linux());
            assert!(
                known.is_none_or(|known| known.last.is_none()),
                "{bytes:02x?}"
            );
        }
    }

    #[test]
    fn what_depends_on_the_place_is_not_kept() {
        let relative = [0x8b, 0x0d, 1, 0, 0, 0];
        let nop = [0x0f, 0x1f, 0x05, 1, 0, 0, 0];
        let narrow = [0x66, 0xe9, 1, 0, 0, 0];
        for bytes in [&relative[..], &nop] {
            assert!(
                known(&padded(bytes), 0, OperandField::None).is_none(),
                "{bytes:02x?}"
            );
        }
        let other = Decoder::with_ip(64, &narrow, 0, DecoderOptions::AMD).decode();
        let insn = known(&padded(&[0x90]), 0, OperandField::None).unwrap().insn;
        assert!(Remembered::new(&other, insn, OperandField::None, Operands::default()).is_none());
    }

    #[test]
    fn near_the_end_and_when_disabled_nothing_is_found() {
        let bytes = add(7);
        let mut memo = Memo::with_places(1 << 13);
        memo.keep(&bytes, known(&bytes, 0, OperandField::None).unwrap());
        assert!(memo.find(&bytes[..16], FAR).is_some());
        assert!(memo.find(&bytes[..15], FAR).is_none());
        let mut none = Memo::disabled();
        none.keep(&bytes, known(&bytes, 0, OperandField::None).unwrap());
        assert!(none.find(&bytes, FAR).is_none());
    }
}
