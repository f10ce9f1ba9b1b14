//! Instructions that stay as they are, except for the names in their relocations.

use iced_x86::{Code, Register};

use super::Emitter;
use crate::analyse::classify::prefix;
use crate::asm::Address;
use crate::asm::Referent;
use crate::asm::import::Import;
use crate::lift::InstIdx;
use crate::refusal::Hitch;
use crate::registers::gpr;

impl Emitter<'_> {
    /// `lea sym(%rip), %reg` yields the address in dom0. Without relocation it is an
    /// address in the code itself (`_THIS_IP_`), and becomes the one in the VM instance.
    ///
    /// ```text
    ///     movabs $twin_vm:sym, %reg
    /// ```
    pub fn address_of(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        if inst.iced.code() != Code::Lea_r64_m {
            return Err("dom0's address does not fit the destination of this lea".into());
        }
        let referent = match inst.displacement {
            Some(value) => self.referent(self.lifted.value(value))?,
            None => {
                let code = self.lifted.sections[usize::from(inst.section.0)].id;
                Referent::Import(
                    Import::Section(code),
                    inst.iced.memory_displacement64() as i64,
                )
            }
        };
        let to = gpr(inst.iced.op0_register()).ok_or("its destination is no general register")?;
        Address::Symbol(referent).emit(&mut self.asm, to);
        Ok(())
    }

    /// A copied instruction, its relocations renamed to dom0's names.
    pub fn copy_inst(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        if inst.displacement.is_none() && inst.immediate.is_none() {
            return self.copy_plain(i);
        }
        let start = self.asm.here();
        let mut bytes = self.lifted.bytes(i).to_vec();
        for value in self.lifted.values_of(inst) {
            let field =
                (self.rules.field)(value.kind).ok_or("its relocation cannot be carried over")?;
            let at = usize::from(value.at);
            bytes[at..at + field.width()].fill(0);
            let referent = self.referent(value)?;
            self.asm.refer(start, at, field, referent);
        }
        self.asm.raw(&bytes);
        Ok(())
    }

    /// A copied instruction without relocations. Prefixes without meaning are left out:
    /// the verifier refuses them.
    pub(super) fn copy_plain(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let lifted = self.lifted;
        let bytes = lifted.bytes(i);
        // A REX prefix before another prefix has no meaning either.
        let first = bytes.iter().find(|b| !prefix::is_rex(**b));
        if first.is_some_and(|b| prefix::is_legacy(*b)) {
            let mut iced = self.lifted.inst(i).iced;
            iced.set_segment_prefix(Register::None);
            self.asm.inst(&iced)?;
        } else {
            self.asm.raw(bytes);
        }
        Ok(())
    }
}
