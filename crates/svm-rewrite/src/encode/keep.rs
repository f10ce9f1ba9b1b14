//! Instructions that stay as they are in a module for a stock kernel, and those
//! that the kernel patches.

use elf_loader::SymbolId;

use super::Emitter;
use super::control::BEHIND;
use crate::analyse::references::FieldReference;
use crate::asm::import::Import;
use crate::asm::{Field, Jump, Label, Referent};
use crate::lift::{Destination, InstIdx};

/// The kernel's `nop` of five bytes (arch/x86/kernel/alternative.c, `x86nops`):
/// `nopl 0(%rax,%rax,1)`.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

impl Emitter<'_> {
    /// The instruction's own bytes, its relocations carried over. The bytes of a branch
    /// inside the section are still right: the section stays as it is.
    pub fn keep(&mut self, i: InstIdx) {
        match self.lifted.inst(i).target {
            Some(Destination::Import(s)) => {
                self.raw_branch(i, Referent::Import(Import::Routine(s), 0));
            }
            Some(Destination::Hypercall(page, offset)) => self.raw_branch(i, entry(page, offset)),
            Some(Destination::Inst(_) | Destination::Behind(_)) | None => self.carry_over(i, None),
        }
    }

    /// The same for `lea 1f(%rip),%reg` without relocation, which gets one: `1` may be
    /// farther now.
    pub fn keep_own_place(&mut self, i: InstIdx, place: InstIdx) {
        let field = Field::Data32 { behind: 0 };
        let own = FieldReference {
            at: self.bytes(i).len() as u8 - field.width() as u8,
            field,
            referent: Referent::Label(Label(place.0)),
        };
        self.carry_over(i, Some(own));
    }

    /// A branch inside the object gets its long form, so that the kernel's replacement
    /// fits.
    pub fn keep_branch(&mut self, i: InstIdx, jump: Jump) {
        match self.lifted.destination(i) {
            Destination::Inst(to) if self.is_near(to) => self.asm.branch_long(jump, Label(to.0)),
            Destination::Inst(to) => self.asm.branch_out(jump, Referent::Label(Label(to.0))),
            Destination::Import(s) => {
                self.asm
                    .branch_out(jump, Referent::Import(Import::Routine(s), 0));
            }
            Destination::Hypercall(page, offset) => {
                self.asm.branch_out(jump, entry(page, offset));
            }
            Destination::Behind(_) => unreachable!("{BEHIND}"),
        }
    }

    /// A static branch (`struct jump_entry`) is five bytes long: its target may now be
    /// out of reach of a short one.
    ///
    /// ```text
    ///     nopl  0(%rax,%rax,1)
    /// ```
    pub fn static_nop(&mut self) {
        self.asm.raw(&NOP5);
    }

    pub(super) fn is_near(&self, to: InstIdx) -> bool {
        let own = &self.lifted.sections[usize::from(self.section)].insts;
        own.contains(&to.0)
    }

    /// A branch that had a relocation keeps all its bytes: `cs call` of a thunk is one
    /// byte longer than `call`, and the kernel uses the space.
    pub(super) fn raw_branch(&mut self, i: InstIdx, to: Referent) {
        let start = self.asm.here();
        let bytes = self.bytes(i);
        let field = bytes.len() - 4;
        self.asm.raw(&bytes[..field]);
        self.asm.raw(&[0; 4]);
        self.asm.refer(start, field, Field::Rel32, to);
    }
}

/// An entry of Xen's page of calls.
pub(super) fn entry(page: SymbolId, offset: u16) -> Referent {
    Referent::Import(Import::Routine(page), offset.into())
}
