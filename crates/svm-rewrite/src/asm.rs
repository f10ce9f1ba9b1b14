//! An assembler for emitted code: bytes, labels, branches that choose their
//! length, relocations.
//!
//! One [`Assembler`] makes one section. Everything of fixed size goes into one
//! buffer; what may change size (branches and alignment) is an *item* at a
//! position of that buffer. Layout starts with every branch short and lengthens
//! those that do not reach, until all do; branches never shrink again, so it
//! ends.

use iced_x86::{Code, Encoder, IcedError, Instruction, MemoryOperand, Register};
use liveness::Reg;

use crate::encode::{self, Form, ImmediateForm, Operand};
use crate::import::Import;
use crate::registers::reg64;

/// A place in emitted code, in any section of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(pub u32);

/// What a field of emitted code holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Referent {
    /// The address of something outside the object, plus an addend.
    Import(Import, i64),
    /// A label in another section.
    Label(Label),
}

/// The width and signedness of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Field {
    /// 32 bits, relative to the end of the field.
    Rel32,
    /// 32 bits, relative to the end of the field: data, not a branch.
    Data32,
    /// 32 bits, zero-extended.
    Abs32,
    /// 32 bits, sign-extended.
    Abs32S,
    /// 64 bits.
    Abs64,
}

/// A reference from emitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Position of the field: buffer offset and number of items before it.
    at: Position,
    /// The field.
    pub field: Field,
    /// What it holds.
    pub referent: Referent,
}

impl Reference {
    /// Where the field is, in the bytes of fixed size.
    pub fn offset(&self) -> u32 {
        self.at.offset
    }
}

/// A place between two bytes of a section that is being assembled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    offset: u32,
    items: u32,
}

impl Position {
    /// The place `bytes` of fixed size further on.
    pub fn plus(self, bytes: usize) -> Position {
        Position {
            offset: self.offset + bytes as u32,
            ..self
        }
    }

    /// The place behind the branch at this one.
    pub fn behind_item(self) -> Position {
        Position {
            items: self.items + 1,
            ..self
        }
    }

    /// Offset in the bytes of fixed size.
    pub fn offset(self) -> u32 {
        self.offset
    }
}

/// A part of emitted code whose layout is not decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Instructions: so many bytes.
    Code(Position, u32),
    /// A branch to a label.
    Branch(Position, Jump, Label),
    /// Padding up to a multiple.
    Align(u32),
}

/// Condition of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jump {
    /// `jmp`.
    Always,
    /// `jcc`, by the low four bits of its opcode.
    If(u8),
    /// `call`; always near.
    Call,
    /// `jrcxz`/`jecxz`/`loop*`: exists in the short form only.
    ShortOnly(u8),
}

/// `jcc` numbers used by sequences (SDM volume 2, appendix B, table B-10).
pub mod cc {
    /// Equal, zero.
    pub const E: u8 = 4;
    /// Not equal.
    pub const NE: u8 = 5;
    /// Above, unsigned.
    pub const A: u8 = 7;
}

/// Opcode of `jrcxz`.
pub const JRCXZ: u8 = 0xe3;

#[derive(Clone, Copy, Debug)]
enum Item {
    Branch { jump: Jump, to: Label, long: bool },
    Align(u32),
}

/// Assembles one section.
pub struct Assembler {
    bytes: Vec<u8>,
    items: Vec<(u32, Item)>,
    references: Vec<Reference>,
    encoder: Encoder,
}

/// A branch of a kind that has no long form does not reach its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach {
    /// The target.
    pub to: Label,
}

/// A section after layout.
pub struct Laid {
    /// The bytes; fields that have a relocation hold zero.
    pub bytes: Vec<u8>,
    /// Those that the section could not resolve.
    references: Vec<Reference>,
    sizes: Vec<u32>,
}

impl Laid {
    /// Offset and content of each reference that the section could not resolve.
    pub fn references(&self) -> impl ExactSizeIterator<Item = (u64, Field, Referent)> {
        let references = self.references.iter();
        references.map(|r| (self.offset(r.at), r.field, r.referent))
    }

    /// Offset in the section of a position taken while assembling.
    pub fn offset(&self, p: Position) -> u64 {
        // `sizes[n]` is the size of the first n items together.
        u64::from(p.offset + self.sizes[p.items as usize])
    }
}

/// Where every label is.
#[derive(Default)]
pub struct Labels {
    places: Vec<Option<(u16, Position)>>,
}

impl Labels {
    /// Labels `0..count`, none placed, one for each instruction, and room for those
    /// of checks: two each, at about a quarter of the instructions.
    pub fn new(count: usize) -> Labels {
        let mut places = Vec::with_capacity(count + count / 2);
        places.resize(count, None);
        Labels { places }
    }

    /// A new label.
    pub fn fresh(&mut self) -> Label {
        self.places.push(None);
        Label(self.places.len() as u32 - 1)
    }

    /// Places a label in a section.
    pub fn place(&mut self, label: Label, section: u16, at: Position) {
        self.places[label.0 as usize] = Some((section, at));
    }

    /// How many labels there are.
    pub fn count(&self) -> u32 {
        self.places.len() as u32
    }

    /// Section and position of a label, if it was placed.
    pub fn find(&self, label: Label) -> Option<(u16, Position)> {
        self.places[label.0 as usize]
    }

    /// Section and position of a label.
    ///
    /// # Panics
    /// If the label was never placed: every label made is placed by whoever
    /// made it.
    pub fn get(&self, label: Label) -> (u16, Position) {
        self.places[label.0 as usize].expect("every label is placed")
    }
}

impl Default for Assembler {
    fn default() -> Self {
        Self::new()
    }
}

impl Assembler {
    /// An empty section.
    pub fn new() -> Assembler {
        Assembler::for_code(0)
    }

    /// An empty section with room for what becomes of as many bytes of original
    /// code: about four times as many and a reference for each other
    /// instruction.
    pub fn for_code(original: usize) -> Assembler {
        Assembler {
            bytes: Vec::with_capacity(5 * original),
            items: Vec::with_capacity(original / 4),
            references: Vec::with_capacity(original / 4),
            encoder: Encoder::new(64),
        }
    }

    /// The place after everything assembled so far.
    pub fn here(&self) -> Position {
        Position {
            offset: self.bytes.len() as u32,
            items: self.items.len() as u32,
        }
    }

    /// Bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// A field of `width` bytes at `offset_in_raw` bytes behind `start` holds `referent`.
    pub fn refer(&mut self, start: Position, offset: usize, field: Field, referent: Referent) {
        let at = Position {
            offset: start.offset + offset as u32,
            ..start
        };
        self.references.push(Reference {
            at,
            field,
            referent,
        });
    }

    /// One instruction without relocations.
    ///
    /// # Errors
    /// The operands do not fit the instruction.
    pub fn inst(&mut self, instruction: &Instruction) -> Result<(), IcedError> {
        self.inst_with(instruction, None, None)
    }

    /// One instruction whose displacement and immediate may hold references.
    /// Such a field must be encoded in full width.
    ///
    /// # Errors
    /// The operands do not fit the instruction.
    pub fn inst_with(
        &mut self,
        instruction: &Instruction,
        displacement: Option<(Field, Referent)>,
        immediate: Option<(Field, Referent)>,
    ) -> Result<(), IcedError> {
        self.encoder.encode(instruction, 0)?;
        let fields = self.encoder.get_constant_offsets();
        let start = self.here();
        let encoded = self.encoder.take_buffer();
        self.bytes.extend_from_slice(&encoded);
        let mut encoded = encoded;
        encoded.clear();
        self.encoder.set_buffer(encoded);
        if let Some((field, referent)) = displacement {
            self.refer(start, fields.displacement_offset(), field, referent);
            self.clear(
                start,
                fields.displacement_offset(),
                fields.displacement_size(),
            );
        }
        if let Some((field, referent)) = immediate {
            self.refer(start, fields.immediate_offset(), field, referent);
            self.clear(start, fields.immediate_offset(), fields.immediate_size());
        }
        Ok(())
    }

    /// `op %rm, %reg`
    pub fn registers(&mut self, form: Form, reg: Reg, rm: Reg) {
        encode::registers(&mut self.bytes, form, reg, rm);
    }

    /// `op $imm, %rm` with an immediate of 8 bits.
    pub fn immediate8(&mut self, form: ImmediateForm, rm: Reg, imm: u8) {
        encode::immediate8(&mut self.bytes, form, rm, imm);
    }

    /// `op $imm, %rm` with an immediate of 32 bits.
    pub fn immediate32(&mut self, form: ImmediateForm, rm: Reg, imm: i32) {
        encode::immediate32(&mut self.bytes, form, rm, imm);
    }

    /// `op referent(%base), %reg`
    pub fn table(&mut self, form: Form, reg: Reg, base: Reg, referent: Referent) {
        encode::memory(&mut self.bytes, form, reg, Operand::relocated(base));
        self.displacement_refers(referent);
    }

    /// `op displacement(%base,%index), %reg`
    pub fn indexed(&mut self, form: Form, reg: Reg, base: Reg, index: Reg, displacement: i8) {
        let operand = Operand::indexed(base, index, displacement);
        encode::memory(&mut self.bytes, form, reg, operand);
    }

    /// `lea referent(%rip), %to`
    pub fn lea_relative(&mut self, to: Reg, referent: Referent) {
        let start = self.here();
        encode::relative(&mut self.bytes, Form::LEA, to);
        let offset = self.here().offset - start.offset - 4;
        self.refer(start, offset as usize, Field::Data32, referent);
    }

    /// `lea operand, %to`
    ///
    /// # Errors
    /// The operand does not fit the instruction.
    pub fn lea(
        &mut self,
        operand: MemoryOperand,
        referent: Option<Referent>,
        to: Reg,
    ) -> Result<(), IcedError> {
        let Some(simple) = Operand::of(&operand) else {
            let displacement = referent.map(|r| (Field::Abs32S, r));
            let lea = rm(Code::Lea_r64_m, reg64(to), operand);
            return self.inst_with(&lea, displacement, None);
        };
        encode::memory(&mut self.bytes, Form::LEA, to, simple);
        if let Some(referent) = referent {
            self.displacement_refers(referent);
        }
        Ok(())
    }

    /// The last four bytes are a displacement that holds `referent`.
    fn displacement_refers(&mut self, referent: Referent) {
        let here = self.here();
        let at = Position {
            offset: here.offset - 4,
            ..here
        };
        self.references.push(Reference {
            at,
            field: Field::Abs32S,
            referent,
        });
    }

    fn clear(&mut self, start: Position, offset: usize, size: usize) {
        let from = start.offset as usize + offset;
        self.bytes[from..from + size].fill(0);
    }

    /// A branch to a label of this section.
    pub fn branch(&mut self, jump: Jump, to: Label) {
        let long = jump == Jump::Call;
        self.items
            .push((self.bytes.len() as u32, Item::Branch { jump, to, long }));
    }

    /// A branch to a label of this section that has a 32-bit displacement
    /// whether it needs it or not.
    pub fn branch_long(&mut self, jump: Jump, to: Label) {
        let long = !matches!(jump, Jump::ShortOnly(_));
        self.items
            .push((self.bytes.len() as u32, Item::Branch { jump, to, long }));
    }

    /// A branch that always has a 32-bit displacement, with a relocation.
    pub fn branch_out(&mut self, jump: Jump, to: Referent) {
        let start = self.here();
        let opcode: &[u8] = match jump {
            Jump::Always => &[0xe9],
            Jump::If(cc) => &[0x0f, 0x80 | cc],
            Jump::Call => &[0xe8],
            Jump::ShortOnly(_) => {
                unreachable!("the caller refuses short-only branches that leave the section")
            }
        };
        self.raw(opcode);
        self.raw(&[0; 4]);
        self.refer(start, opcode.len(), Field::Rel32, to);
    }

    /// What lies between two places, before branches have their lengths: code and
    /// branches by turns, code first and last, perhaps of no bytes.
    pub fn pieces(&self, from: Position, to: Position) -> impl Iterator<Item = Piece> {
        let mut at = from;
        let mut code_next = true;
        std::iter::from_fn(move || {
            if code_next {
                code_next = false;
                let next = self.items.get(at.items as usize);
                let end = next.map_or(to.offset, |(offset, _)| *offset).min(to.offset);
                let len = end - at.offset;
                let piece = Piece::Code(at, len);
                at = at.plus(len as usize);
                return Some(piece);
            }
            if at.items == to.items {
                return None;
            }
            code_next = true;
            let here = at;
            at = at.behind_item();
            Some(match self.items[here.items as usize].1 {
                Item::Branch { jump, to, .. } => Piece::Branch(here, jump, to),
                Item::Align(align) => Piece::Align(align),
            })
        })
    }

    /// The bytes of fixed size from a place on.
    pub fn bytes_from(&self, at: Position) -> &[u8] {
        &self.bytes[at.offset as usize..]
    }

    /// The references of fields from a place on, in their order.
    pub fn references_from(&self, at: Position) -> &[Reference] {
        let first = self.references.partition_point(|r| r.at.offset < at.offset);
        &self.references[first..]
    }

    /// Padding up to a multiple of `align` bytes, a power of two.
    pub fn align(&mut self, align: u32) {
        self.items
            .push((self.bytes.len() as u32, Item::Align(align)));
    }

    /// Chooses branch lengths and gives the final bytes.
    ///
    /// # Errors
    /// A branch without long form does not reach.
    pub fn lay_out(mut self, section: u16, labels: &Labels) -> Result<Laid, OutOfReach> {
        let sizes = loop {
            let sizes = self.sizes();
            if !self.lengthen(section, labels, &sizes)? {
                break sizes;
            }
        };
        let mut laid = Laid {
            bytes: Vec::new(),
            references: std::mem::take(&mut self.references),
            sizes,
        };
        laid.bytes = self.bytes_with_items(labels, &laid);
        Ok(laid)
    }

    fn sizes(&self) -> Vec<u32> {
        let mut sizes = Vec::with_capacity(self.items.len() + 1);
        let mut sum = 0;
        sizes.push(0);
        for (at, item) in &self.items {
            sum += match *item {
                Item::Branch { jump, long, .. } => branch_size(jump, long),
                Item::Align(align) => (at + sum).wrapping_neg() & (align - 1),
            };
            sizes.push(sum);
        }
        sizes
    }

    fn lengthen(
        &mut self,
        section: u16,
        labels: &Labels,
        sizes: &[u32],
    ) -> Result<bool, OutOfReach> {
        let mut changed = false;
        for (i, (at, item)) in self.items.iter_mut().enumerate() {
            let Item::Branch { jump, to, long } = item else {
                continue;
            };
            if *long {
                continue;
            }
            let (there, position) = labels.get(*to);
            debug_assert_eq!(
                there, section,
                "branches out of a section carry a relocation"
            );
            let target = position.offset + sizes[position.items as usize];
            let end = *at + sizes[i + 1];
            if i8::try_from(i64::from(target) - i64::from(end)).is_err() {
                if matches!(jump, Jump::ShortOnly(_)) {
                    return Err(OutOfReach { to: *to });
                }
                *long = true;
                changed = true;
            }
        }
        Ok(changed)
    }

    fn bytes_with_items(&self, labels: &Labels, laid: &Laid) -> Vec<u8> {
        let total = *laid.sizes.last().unwrap_or(&0);
        let mut out = Vec::with_capacity(self.bytes.len() + total as usize);
        let mut done = 0;
        for (i, (at, item)) in self.items.iter().enumerate() {
            out.extend_from_slice(&self.bytes[done..*at as usize]);
            done = *at as usize;
            match *item {
                Item::Branch { jump, to, long } => {
                    let end = u64::from(at + laid.sizes[i + 1]);
                    let delta = laid.offset(labels.get(to).1) as i64 - end as i64;
                    push_branch(&mut out, jump, long, delta);
                }
                // Unreachable space: a stray jump there stops at once.
                Item::Align(_) => out.resize((at + laid.sizes[i + 1]) as usize, 0xcc),
            }
        }
        out.extend_from_slice(&self.bytes[done..]);
        out
    }
}

fn branch_size(jump: Jump, long: bool) -> u32 {
    match (jump, long) {
        (Jump::Call, _) => 5,
        (_, false) => 2,
        (Jump::Always, true) => 5,
        (Jump::If(_), true) => 6,
        (Jump::ShortOnly(_), true) => unreachable!("never lengthened"),
    }
}

fn push_branch(out: &mut Vec<u8>, jump: Jump, long: bool, delta: i64) {
    match (jump, long) {
        (Jump::Call, _) => out.push(0xe8),
        (Jump::Always, false) => out.push(0xeb),
        (Jump::Always, true) => out.push(0xe9),
        (Jump::If(cc), false) => out.push(0x70 | cc),
        (Jump::If(cc), true) => out.extend([0x0f, 0x80 | cc]),
        (Jump::ShortOnly(opcode), _) => out.push(opcode),
    }
    if long {
        out.extend((delta as i32).to_le_bytes());
    } else {
        out.push(delta as i8 as u8);
    }
}

/// `op reg, reg`.
pub fn rr(code: Code, a: Register, b: Register) -> Instruction {
    Instruction::with2(code, a, b).expect("register operands fit the form")
}

/// `op reg`.
pub fn r(code: Code, a: Register) -> Instruction {
    Instruction::with1(code, a).expect("a register operand fits the form")
}

/// `op imm, reg`.
pub fn ri(code: Code, a: Register, imm: i32) -> Instruction {
    Instruction::with2(code, a, imm).expect("an immediate operand fits the form")
}

/// `op mem, reg`.
pub fn rm(code: Code, a: Register, m: MemoryOperand) -> Instruction {
    Instruction::with2(code, a, m).expect("a memory operand fits the form")
}

/// `op reg, mem`.
pub fn mr(code: Code, m: MemoryOperand, a: Register) -> Instruction {
    Instruction::with2(code, m, a).expect("a memory operand fits the form")
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::{Decoder, DecoderOptions};

    /// Lays out `jmp` over `gap` bytes, forwards or backwards, and gives the
    /// decoded target and the place it should be.
    fn jump_over(gap: usize, forwards: bool) -> (u64, u64, usize) {
        let mut labels = Labels::new(1);
        let mut asm = Assembler::new();
        let filler = vec![0x90; gap];
        if forwards {
            asm.branch(Jump::If(cc::NE), Label(0));
            asm.raw(&filler);
            labels.place(Label(0), 0, asm.here());
            asm.raw(&[0xc3]);
        } else {
            labels.place(Label(0), 0, asm.here());
            asm.raw(&filler);
            asm.branch(Jump::If(cc::NE), Label(0));
        }
        let laid = asm
            .lay_out(0, &labels)
            .expect("a conditional jump has a long form");
        let at = if forwards { 0 } else { gap };
        let mut decoder = Decoder::with_ip(64, &laid.bytes[at..], at as u64, DecoderOptions::NONE);
        let jump = decoder.decode();
        (
            jump.near_branch_target(),
            laid.offset(labels.get(Label(0)).1),
            jump.len(),
        )
    }

    #[test]
    fn branches_take_the_shortest_form_that_reaches() {
        for gap in 0..300 {
            let (target, label, length) = jump_over(gap, true);
            assert_eq!(target, label, "forwards over {gap}");
            assert_eq!(
                length,
                if gap <= 127 { 2 } else { 6 },
                "forwards over {gap}"
            );
            let (target, label, length) = jump_over(gap, false);
            assert_eq!(target, label, "backwards over {gap}");
            assert_eq!(
                length,
                if gap + 2 <= 128 { 2 } else { 6 },
                "backwards over {gap}"
            );
        }
    }

    #[test]
    fn lengthening_one_branch_lengthens_those_it_pushes_out_of_reach() {
        // Two interleaved branches, each just in reach while the other is short.
        let mut labels = Labels::new(2);
        let mut asm = Assembler::new();
        asm.branch(Jump::Always, Label(0));
        asm.branch(Jump::Always, Label(1));
        asm.raw(&[0x90; 125]);
        labels.place(Label(0), 0, asm.here());
        asm.raw(&[0x90; 3]);
        labels.place(Label(1), 0, asm.here());
        let laid = asm.lay_out(0, &labels).expect("jmp has a long form");
        let decoded: Vec<_> = Decoder::new(64, &laid.bytes, DecoderOptions::NONE)
            .iter()
            .take(2)
            .collect();
        assert_eq!(
            decoded[0].near_branch_target(),
            laid.offset(labels.get(Label(0)).1)
        );
        assert_eq!(
            decoded[1].near_branch_target(),
            laid.offset(labels.get(Label(1)).1)
        );
        assert_eq!((decoded[0].len(), decoded[1].len()), (5, 5));
    }

    #[test]
    fn a_short_only_branch_out_of_reach_is_an_error() {
        let mut labels = Labels::new(1);
        let mut asm = Assembler::new();
        asm.branch(Jump::ShortOnly(JRCXZ), Label(0));
        asm.raw(&[0x90; 128]);
        labels.place(Label(0), 0, asm.here());
        assert_eq!(
            asm.lay_out(0, &labels).err(),
            Some(OutOfReach { to: Label(0) })
        );
    }

    #[test]
    fn alignment_moves_labels_and_references() {
        let mut labels = Labels::new(1);
        let mut asm = Assembler::new();
        asm.raw(&[0x90; 3]);
        asm.align(16);
        labels.place(Label(0), 0, asm.here());
        asm.branch_out(Jump::Call, Referent::Import(Import::Stlb, 0));
        let laid = asm.lay_out(0, &labels).expect("nothing to reach");
        assert_eq!(laid.offset(labels.get(Label(0)).1), 16);
        assert_eq!(laid.bytes[3..16], [0xcc; 13]);
        assert_eq!(laid.references().next().map(|r| r.0), Some(17));
    }
}
