//! An assembler for emitted code: bytes, labels, branches that choose their
//! length, relocations.
//!
//! One [`Assembler`] makes one section. Everything of fixed size goes into one buffer.
//! Branches and alignment may change size: each is an *item* at a position of that
//! buffer, until [`Assembler::lay_out`] decides ([`layout`]).

mod address;
mod branch;
pub mod encode;
pub mod import;
mod instructions;
mod labels;
mod layout;
mod operand;

use iced_x86::Instruction;
use liveness::Reg;

use encode::{Encoder, Form, ImmediateForm};
use import::Import;

pub use address::{Address, movabs};
pub use branch::{Branch, Jump, ShortOnly, cc};
pub use encode::LONGEST;
pub use instructions::{m, mi, mr, r, ri, rm, rr};
pub use labels::{Label, Labels};
pub use layout::Laid;
pub use operand::{Base, Index, Operand, Segment, Shape};

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
    /// 32 bits of data, relative to the end of the instruction, which is so many bytes
    /// after the end of the field.
    Data32 {
        /// The bytes: those of an immediate.
        behind: u8,
    },
    /// 32 bits, zero-extended.
    Abs32,
    /// 32 bits, sign-extended.
    Abs32S,
    /// 64 bits.
    Abs64,
}

impl Field {
    /// Bytes that it takes.
    pub fn width(self) -> usize {
        match self {
            Field::Rel32 | Field::Data32 { .. } | Field::Abs32 | Field::Abs32S => 4,
            Field::Abs64 => 8,
        }
    }
}

/// A reference from emitted code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Position of the field: buffer offset and number of items before it.
    at: Position,
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

    /// The place after the branch at this one.
    fn behind_item(self) -> Position {
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
    Branch(Position, Branch, Label),
    /// Padding up to a multiple.
    Align(u32),
}

#[derive(Clone, Copy, Debug)]
enum Item {
    Branch {
        jump: Jump,
        to: Label,
        long: bool,
    },
    /// A branch over the next item, to the label after that.
    Skip {
        by: ShortOnly,
        over: Label,
    },
    Align(u32),
}

/// Assembles one section.
pub struct Assembler {
    bytes: Vec<u8>,
    items: Vec<(u32, Item)>,
    references: Vec<Reference>,
    encoder: Encoder,
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

    /// An empty section with room for the code that `original` bytes of code become:
    /// about four times as many bytes, and an item and a reference for each
    /// instruction. Only speed depends on these estimates.
    pub fn for_code(original: usize) -> Assembler {
        Assembler {
            bytes: Vec::with_capacity(5 * original),
            items: Vec::with_capacity(original / 4),
            references: Vec::with_capacity(original / 4),
            encoder: Encoder::new(original),
        }
    }

    /// Frees the encoder's cache; nothing more will be assembled. (The cache is larger
    /// than many a section, and there may be thousands of sections.)
    pub fn forget_encodings(&mut self) {
        self.encoder = Encoder::new(0);
    }

    /// The place after everything assembled so far.
    pub fn here(&self) -> Position {
        Position {
            offset: self.bytes.len() as u32,
            items: self.items.len() as u32,
        }
    }

    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The field that begins `offset` bytes after `start` holds `referent`.
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

    /// The field that begins `offset` bytes after `start`, and is there already, holds
    /// `referent` and nothing else.
    pub fn hold(&mut self, start: Position, offset: usize, field: Field, referent: Referent) {
        let from = start.offset as usize + offset;
        self.bytes[from..from + field.width()].fill(0);
        self.refer(start, offset, field, referent);
    }

    /// One instruction without relocations.
    ///
    /// # Panics
    /// If the operands do not fit the instruction. They do in instructions of sequences,
    /// and in all that classification lets through (tests in `analyse/classify`).
    pub fn inst(&mut self, instruction: &Instruction) {
        self.inst_with(instruction, None);
    }

    /// One instruction whose immediate may hold a reference.
    ///
    /// # Panics
    /// As [`Assembler::inst`].
    pub fn inst_with(&mut self, instruction: &Instruction, immediate: Option<(Field, Referent)>) {
        self.inst_referring(instruction, None, immediate);
    }

    /// One instruction whose displacement of 32 bits, immediate, or both hold references.
    ///
    /// # Panics
    /// As [`Assembler::inst`].
    pub fn inst_referring(
        &mut self,
        instruction: &Instruction,
        displacement: Option<(Field, Referent)>,
        immediate: Option<(Field, Referent)>,
    ) {
        let start = self.here();
        let fields = self.encoder.encode(instruction, &mut self.bytes);
        let fields = fields.expect("an instruction whose operands fit it");
        let places = [
            (
                displacement,
                fields.displacement_offset(),
                fields.displacement_size(),
            ),
            (
                immediate,
                fields.immediate_offset(),
                fields.immediate_size(),
            ),
        ];
        for (held, offset, size) in places {
            if let Some((field, referent)) = held {
                self.refer(start, offset, field, referent);
                let from = start.offset as usize + offset;
                self.bytes[from..from + size].fill(0);
            }
        }
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
        let relocated = Operand {
            relocated: true,
            ..Operand::at(base, 0)
        };
        encode::memory(&mut self.bytes, form, reg, &relocated);
        self.displacement_refers(referent);
    }

    /// `op operand, %reg`
    pub fn memory(&mut self, form: Form, reg: Reg, operand: &Operand) {
        encode::memory(&mut self.bytes, form, reg, operand);
    }

    /// `lea referent(%rip), %to`
    pub fn lea_relative(&mut self, to: Reg, referent: Referent) {
        self.relative(Form::LEA, to, referent);
    }

    /// `op referent(%rip), %to`
    pub fn relative(&mut self, form: Form, to: Reg, referent: Referent) {
        let start = self.here();
        encode::relative(&mut self.bytes, form, to);
        let offset = self.here().offset - start.offset - 4;
        self.refer(
            start,
            offset as usize,
            Field::Data32 { behind: 0 },
            referent,
        );
    }

    /// `lea operand, %to`; the referent is in the displacement of a relocated operand.
    pub fn lea(&mut self, operand: &Operand, referent: Option<Referent>, to: Reg) {
        self.memory(Form::LEA, to, operand);
        if let Some(referent) = referent {
            self.displacement_refers(referent);
        }
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

    /// A branch to a label of this section.
    pub fn branch(&mut self, jump: Jump, to: Label) {
        let long = jump == Jump::Call;
        self.items
            .push((self.bytes.len() as u32, Item::Branch { jump, to, long }));
    }

    /// A branch to a label of this section that has a 32-bit displacement
    /// whether it needs it or not.
    pub fn branch_long(&mut self, jump: Jump, to: Label) {
        let long = true;
        self.items
            .push((self.bytes.len() as u32, Item::Branch { jump, to, long }));
    }

    /// A short branch, and the jump that it goes over. The caller places `over` after
    /// them. So the short branch always reaches.
    pub fn branch_unless(&mut self, by: ShortOnly, to: Label, over: Label) {
        self.items
            .push((self.bytes.len() as u32, Item::Skip { by, over }));
        self.branch(Jump::Always, to);
    }

    /// A branch that always has a 32-bit displacement, with a relocation.
    pub fn branch_out(&mut self, jump: Jump, to: Referent) {
        let start = self.here();
        let opcode: &[u8] = match jump {
            Jump::Always => &[0xe9],
            Jump::If(cc) => &[0x0f, 0x80 | cc],
            Jump::Call => &[0xe8],
        };
        self.raw(opcode);
        self.raw(&[0; 4]);
        self.refer(start, opcode.len(), Field::Rel32, to);
    }

    /// The code between two places, before branches have their lengths: code and branches
    /// alternate, code first and last, perhaps of no bytes.
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
                Item::Branch { jump, to, .. } => Piece::Branch(here, Branch::Jump(jump), to),
                Item::Skip { by, over } => Piece::Branch(here, Branch::ShortOnly(by), over),
                Item::Align(align) => Piece::Align(align),
            })
        })
    }

    /// The bytes of fixed size from a place on.
    pub fn bytes_from(&self, at: Position) -> &[u8] {
        &self.bytes[at.offset as usize..]
    }

    /// How many references of fields are before a place. `near` is a guess; the search is
    /// fast if the guess is a few too low.
    pub fn references_before(&self, at: Position, near: usize) -> usize {
        const FEW: usize = 8;
        let before = |r: &Reference| r.at.offset < at.offset;
        let ahead = match near.checked_sub(1) {
            Some(last) if !self.references.get(last).is_some_and(before) => None,
            _ => self.references.get(near..),
        };
        let few = ahead.and_then(|ahead| ahead.iter().take(FEW).position(|r| !before(r)));
        match (few, ahead) {
            (Some(few), _) => near + few,
            (None, Some(ahead)) if ahead.len() <= FEW => self.references.len(),
            (None, _) => self.references.partition_point(before),
        }
    }

    /// The references of fields from the `n`th on.
    pub fn references_from(&self, n: usize) -> &[Reference] {
        &self.references[n..]
    }

    /// Padding up to a multiple of `align` bytes, a power of two.
    pub fn align(&mut self, align: u32) {
        self.items
            .push((self.bytes.len() as u32, Item::Align(align)));
    }
}
