//! Instructions that stay as they are in a module for a stock kernel, and those
//! that the kernel patches.

use elf_loader::SymbolId;

use super::Emitter;
use super::control::jump_of;
use crate::analyse::routines;
use crate::asm::import::Import;
use crate::asm::{Field, Jump, Label, Referent};
use crate::lift::{CodeIdx, Destination, InstIdx, Value, is_direct_branch, is_filler};
use crate::refusal::Hitch;

/// The kernel's `nop` of five bytes (arch/x86/kernel/alternative.c, `x86nops`):
/// `nopl 0(%rax,%rax,1)`.
const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

impl Emitter<'_> {
    /// The instruction's own bytes, its relocations carried over. A branch inside the
    /// object gets its long form, so that the kernel's replacement fits.
    pub fn keep(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        match inst.target {
            Some(Destination::Import(s)) => {
                self.raw_branch(i, Referent::Import(Import::Routine(s), 0))
            }
            Some(Destination::Inst(to)) if !self.is_near(to) => {
                self.asm
                    .branch_out(jump_of(&inst.iced)?, Referent::Label(Label(to.0)));
            }
            // Its displacement is still right.
            Some(Destination::Inst(_)) if self.is_verbatim() => self.asm.raw(self.lifted.bytes(i)),
            Some(Destination::Inst(to)) => self.asm.branch_long(jump_of(&inst.iced)?, Label(to.0)),
            None if is_direct_branch(&inst.iced) => {
                return Err("its destination is not known".into());
            }
            None => self.keep_straight(i)?,
        }
        self.kept_ends.push((i.0, self.asm.here()));
        Ok(())
    }

    fn is_near(&self, to: InstIdx) -> bool {
        self.lifted.inst(to).section == CodeIdx(self.section)
    }

    /// A branch that had a relocation keeps all its bytes: `cs call` of a thunk is one
    /// byte longer than `call`, and the kernel uses the space.
    pub(super) fn raw_branch(&mut self, i: InstIdx, to: Referent) {
        let start = self.asm.here();
        let mut bytes = self.lifted.bytes(i).to_vec();
        let field = bytes.len() - 4;
        bytes[field..].fill(0);
        self.asm.raw(&bytes);
        self.asm.refer(start, field, Field::Rel32, to);
    }

    fn keep_straight(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        let start = self.asm.here();
        let mut bytes = self.lifted.bytes(i).to_vec();
        for value in self.lifted.values_of(inst) {
            let field = (self.rules.field)(value.kind);
            let field = field.ok_or("its relocation cannot be carried over")?;
            let (at, width) = (usize::from(value.at), field.width());
            bytes[at..at + width].fill(0);
            let referent = match field {
                // The field is relative to its own end, the value to the instruction's.
                Field::Data32 => self.behind(value, (bytes.len() - at - width) as i64)?,
                Field::Rel32 | Field::Abs32 | Field::Abs32S | Field::Abs64 => {
                    self.referent(value)?
                }
            };
            self.asm.refer(start, at, field, referent);
        }
        if inst.displacement.is_none() && inst.iced.is_ip_rel_memory_operand() {
            let at = bytes.len() - 4;
            bytes[at..].fill(0);
            let label = self.own_place(i)?;
            self.asm
                .refer(start, at, Field::Data32, Referent::Label(label));
        }
        self.asm.raw(&bytes);
        Ok(())
    }

    /// What a field refers to that ends `behind` bytes before the end of its instruction.
    fn behind(&self, value: Value, behind: i64) -> Result<Referent, Hitch> {
        match self.referent(value)? {
            Referent::Import(import, addend) => Ok(Referent::Import(import, addend - behind)),
            label if behind == 0 => Ok(label),
            Referent::Label(_) => {
                Err("it refers to code by a field that an immediate follows".into())
            }
        }
    }

    /// `lea 1f(%rip),%reg` without relocation: a place in the same section.
    fn own_place(&self, i: InstIdx) -> Result<Label, Hitch> {
        let inst = self.lifted.inst(i);
        let to = self
            .lifted
            .inst_at(inst.section, inst.iced.ip_rel_memory_address());
        to.map(|to| Label(to.0))
            .ok_or_else(|| "it refers into its own code, but to no instruction".into())
    }

    /// A direct branch to the kernel.
    pub(super) fn branch_to_kernel(&mut self, i: InstIdx, s: SymbolId) -> Result<(), Hitch> {
        self.raw_branch(i, Referent::Import(Import::Routine(s), 0));
        let jump = jump_of(&self.lifted.inst(i).iced)?;
        if jump == Jump::Call && routines::never_returns(self.lifted.symbol_name(s)) {
            self.stop();
        }
        Ok(())
    }

    /// A static branch (`struct jump_entry`) is five bytes long: its target may now be
    /// out of reach of a short one:
    ///
    /// ```text
    ///     nopl  0(%rax,%rax,1)              or jmp target
    /// ```
    pub fn static_branch(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        match inst.target {
            None if is_filler(&inst.iced) => self.asm.raw(&NOP5),
            Some(Destination::Inst(to)) if jump_of(&inst.iced)? == Jump::Always => {
                if self.is_near(to) {
                    self.asm.branch_long(Jump::Always, Label(to.0));
                } else {
                    self.asm
                        .branch_out(Jump::Always, Referent::Label(Label(to.0)));
                }
            }
            _ => return Err("a static branch is a nop or a jmp".into()),
        }
        Ok(())
    }
}
