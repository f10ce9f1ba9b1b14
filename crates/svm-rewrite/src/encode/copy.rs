//! Instructions that stay as they are, except for the names in their relocations.

use iced_x86::Register;
use liveness::Reg;

use super::Emitter;
use crate::analyse::classify::prefix;
use crate::analyse::references::FieldReference;
use crate::asm::import::Import;
use crate::asm::{Address, Referent};
use crate::lift::InstIdx;

impl Emitter<'_> {
    /// `lea sym(%rip), %reg` yields the address in dom0. Without relocation it is an
    /// address in the code itself (`_THIS_IP_`), and becomes the one in the VM instance.
    ///
    /// ```text
    ///     movabs $twin_vm:sym, %reg
    /// ```
    pub fn address_of(&mut self, i: InstIdx, to: Reg) {
        let inst = self.lifted.inst(i);
        let referent = match inst.displacement {
            Some(value) => self.references.get(value).referent,
            None => {
                let code = self.lifted.sections[usize::from(inst.section.0)].id;
                Referent::Import(Import::Section(code), inst.operand().displacement)
            }
        };
        Address::Symbol(referent).emit(&mut self.asm, to);
    }

    /// A copied instruction, its relocations renamed to dom0's names.
    pub fn copy_inst(&mut self, i: InstIdx) {
        let inst = self.lifted.inst(i);
        match inst.relocated_values().next() {
            None => self.copy_plain(i),
            Some(_) if inst.iced.segment_prefix() != Register::None => {
                self.copy_without_segment(i);
            }
            Some(_) => self.carry_over(i, None),
        }
    }

    /// A copied instruction that reaches no memory (`lea %gs:sym(%rdi),%rax`), without the
    /// segment that it names: that has no meaning, and the verifier refuses it.
    fn copy_without_segment(&mut self, i: InstIdx) {
        let inst = self.lifted.inst(i);
        let mut iced = inst.iced;
        iced.set_segment_prefix(Register::None);
        let held = |value: Option<_>| {
            let reference = value.map(|value| self.references.get(value));
            reference.map(|reference| (reference.field, reference.referent))
        };
        let (displacement, immediate) = (held(inst.displacement), held(inst.immediate));
        self.asm.inst_referring(&iced, displacement, immediate);
    }

    /// The bytes of an instruction; its relocated fields, and perhaps another one, hold
    /// references.
    pub(super) fn carry_over(&mut self, i: InstIdx, further: Option<FieldReference>) {
        let inst = self.lifted.inst(i);
        let start = self.asm.here();
        self.asm.raw(self.bytes(i));
        for reference in self.references.of(inst).chain(further) {
            let (at, field) = (usize::from(reference.at), reference.field);
            self.asm.hold(start, at, field, reference.referent);
        }
    }

    /// A copied instruction without relocations. Prefixes without meaning are left out:
    /// the verifier refuses them.
    pub(super) fn copy_plain(&mut self, i: InstIdx) {
        let bytes = self.bytes(i);
        if prefix::has_legacy(bytes) {
            let mut iced = self.lifted.inst(i).iced;
            iced.set_segment_prefix(Register::None);
            self.asm.inst(&iced);
        } else {
            self.asm.raw(bytes);
        }
    }
}
