//! Loads, stores and read-modify-writes of one explicit operand; prefetches;
//! `push` and `pop` of memory; `xlat`.

use elf_loader::consts::R_X86_64_PC32;
use iced_x86::{Code, Instruction, MemoryOperand, Register};
use liveness::Reg;
use twin_abi::stack;

use super::{Address, Emitter};
use crate::asm::{Field, Referent, mr, r, ri, rm, rr};
use crate::class::{Segment, Space};
use crate::dom0;
use crate::import::Import;
use crate::lift::{Inst, InstIdx};
use crate::plan::Plan;
use crate::refusal::Hitch;
use crate::registers::{gpr, reg32, reg64};

/// `disp(%base)`.
pub(super) fn at(base: Reg, displacement: i64) -> MemoryOperand {
    let size = match displacement {
        0 => 0,
        -128..=127 => 1,
        _ => 8,
    };
    MemoryOperand::new(
        reg64(base),
        Register::None,
        1,
        displacement,
        size,
        false,
        Register::None,
    )
}

/// `(%base,%index,scale)`.
pub(super) fn indexed(base: Reg, index: Reg, scale: u32) -> MemoryOperand {
    MemoryOperand::new(
        reg64(base),
        reg64(index),
        scale,
        0,
        0,
        false,
        Register::None,
    )
}

impl Emitter<'_> {
    /// ```text
    ///     <open> <address> <check> -> %v <flags>
    ///     op    (%v)
    ///     <close>
    /// ```
    pub fn memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        self.check(i, address, roles[0], &roles[1..]);
        self.restore_flags(plan);
        self.access(i, roles[0])?;
        self.close(plan);
        Ok(())
    }

    /// A hint must not abort, so a miss skips it:
    ///
    /// ```text
    ///     <check, miss to skip> -> %v
    ///     prefetch (%v)
    /// skip:
    /// ```
    pub fn prefetch(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        let roles = Self::roles(plan);
        self.open(plan);
        let address = self.address(i, space, plan.scratch.spilled().len(), &roles);
        let skip = self.labels.fresh();
        self.check_or_skip(&address, roles[0], &roles[1..], skip);
        self.access(i, roles[0])?;
        self.place(skip);
        self.restore_flags(plan);
        self.close(plan);
        Ok(())
    }

    /// Without spills:
    ///
    /// ```text
    ///     <check> -> %v
    ///     push  (%v)
    /// ```
    ///
    /// With spills the pushed value's slot is made first, below which the
    /// spilled registers go:
    ///
    /// ```text
    ///     lea   -8(%rsp), %rsp
    ///     <open> <check> -> %v
    ///     mov   (%v), %v
    ///     mov   %v, 8*spills(%rsp)
    ///     <close>
    /// ```
    pub fn push_memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        let spills = plan.scratch.spilled().len();
        if spills == 0 {
            return self.memory(i, plan, space);
        }
        let roles = Self::roles(plan);
        let v = roles[0];
        self.lea(at(Reg::RSP, -8), Reg::RSP);
        self.open(plan);
        let address = self.address(i, space, spills + 1, &roles);
        self.check(i, address, v, &roles[1..]);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), at(v, 0)));
        self.emit(&mr(
            Code::Mov_rm64_r64,
            at(Reg::RSP, 8 * spills as i64),
            reg64(v),
        ));
        self.restore_flags(plan);
        self.close(plan);
        Ok(())
    }

    /// `pop` adds 8 to `rsp` before it computes its operand's address (SDM
    /// volume 2, POP), so an `rsp` in it counts 8 more.
    ///
    /// ```text
    ///     <check> -> %v
    ///     pop   (%v)
    /// ```
    ///
    /// With spills, through one of the check's registers:
    ///
    /// ```text
    ///     <open> <check> -> %v
    ///     mov   8*spills(%rsp), %i
    ///     mov   %i, (%v)
    ///     <close>
    ///     lea   8(%rsp), %rsp
    /// ```
    pub fn pop_memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        let spills = plan.scratch.spilled().len();
        let roles = Self::roles(plan);
        let (v, t) = (roles[0], roles[1]);
        self.open(plan);
        let address = self.address(i, space, spills + 1, &roles);
        self.check(i, address, v, &roles[1..]);
        self.restore_flags(plan);
        if spills == 0 {
            return self.access(i, v);
        }
        self.emit(&rm(
            Code::Mov_r64_rm64,
            reg64(t),
            at(Reg::RSP, 8 * spills as i64),
        ));
        self.emit(&mr(Code::Mov_rm64_r64, at(v, 0), reg64(t)));
        self.close(plan);
        self.lea(at(Reg::RSP, 8), Reg::RSP);
        Ok(())
    }

    /// ```text
    ///     <open>
    ///     movzbl %al, %td
    ///     lea   (%rbx,%t), %t
    ///     <check of %t> -> %v <flags>
    ///     mov   (%v), %al
    ///     <close>
    /// ```
    pub fn xlat(&mut self, i: InstIdx, plan: &Plan) {
        let roles = Self::roles(plan);
        let t = roles[roles.len() - 1];
        self.open(plan);
        self.emit(&rr(Code::Movzx_r32_rm8, reg32(t), Register::AL));
        self.lea(indexed(Reg::RBX, t, 1), t);
        self.check(i, Address::Copy(t), roles[0], &roles[1..]);
        self.restore_flags(plan);
        self.emit(&rm(Code::Mov_r8_rm8, Register::AL, at(roles[0], 0)));
        self.close(plan);
    }

    /// The address of an operand. `pushed` words were pushed since the
    /// instruction would have run. Of `roles`, the last holds a
    /// segment-relative sum and the first serves as a temporary for it.
    pub(super) fn address(
        &mut self,
        i: InstIdx,
        space: Space,
        pushed: usize,
        roles: &[Reg],
    ) -> Address {
        let inst = self.lifted.inst(i);
        let plain = self.flat_address(inst, pushed);
        match space {
            Space::Stack | Space::Heap | Space::Global => plain,
            Space::PerCpu(segment) => {
                let (v, t) = (roles[0], roles[roles.len() - 1]);
                self.segment_base(segment, v);
                plain.emit(&mut self.asm, t);
                self.emit(&rr(Code::Add_r64_rm64, reg64(t), reg64(v)));
                Address::Copy(t)
            }
        }
    }

    /// The operand's address without its segment.
    fn flat_address(&self, inst: &Inst, pushed: usize) -> Address {
        let iced = &inst.iced;
        let (base, index) = (iced.memory_base(), iced.memory_index());
        let value = inst.displacement;
        let referent =
            value.map(|v| dom0::referent(self.lifted.object, v).expect("checked by dom0::check"));
        match (referent, value) {
            (Some(referent), Some(value))
                if value.kind == R_X86_64_PC32
                    || iced.memory_displ_size() == 8 && is_moffs(iced) =>
            {
                Address::Symbol(referent)
            }
            (Some(referent), _) => Address::Lea(operand(base, index, iced, 0, 8), Some(referent)),
            (None, _) if is_moffs(iced) => Address::Constant(iced.memory_displacement64()),
            (None, _)
                if index == Register::None
                    && iced.memory_displacement64() == 0
                    && base.is_gpr64()
                    && base != Register::RSP =>
            {
                Address::Copy(gpr(base).expect("a general register"))
            }
            (None, _) => {
                let adjust = if base == Register::RSP {
                    8 * pushed as i64
                } else {
                    0
                };
                let displacement = (iced.memory_displacement64() as i64).wrapping_add(adjust);
                let size = match (base, displacement) {
                    (Register::None, _) => 8,
                    (_, 0) => 0,
                    (_, -128..=127) => 1,
                    _ => 8,
                };
                Address::Lea(operand(base, index, iced, displacement, size), None)
            }
        }
    }

    /// The base that dom0 has for a segment, out of the CPU's context.
    ///
    /// ```text
    ///     mov   %rsp, %v
    ///     or    $0x7fff, %v
    ///     mov   BASE_FROM_TOP(%v), %v
    /// ```
    fn segment_base(&mut self, segment: Segment, v: Reg) {
        let offset = match segment {
            Segment::Fs => stack::FS_BASE_FROM_TOP,
            Segment::Gs => stack::GS_BASE_FROM_TOP,
        };
        self.copy(Reg::RSP, v);
        self.emit(&ri(Code::Or_rm64_imm32, reg64(v), stack::BLOCK as i32 - 1));
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), at(v, offset)));
    }

    /// The instruction itself with `(%v)` for its memory operand.
    pub(super) fn access(&mut self, i: InstIdx, v: Reg) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        let mut iced = inst.iced;
        if let Some(code) = without_moffs(iced.code()) {
            iced.set_code(code);
        }
        iced.set_segment_prefix(Register::None);
        iced.set_memory_base(reg64(v));
        iced.set_memory_index(Register::None);
        iced.set_memory_index_scale(1);
        iced.set_memory_displacement64(0);
        iced.set_memory_displ_size(0);
        let immediate = match inst.immediate {
            Some(value) => {
                let field = dom0::field(value.kind).filter(|f| *f == Field::Abs32S);
                let field = field.ok_or("its immediate holds an address of unexpected width")?;
                Some((field, dom0::referent(self.lifted.object, value)?))
            }
            None => None,
        };
        self.asm.inst_with(&iced, None, immediate)?;
        Ok(())
    }

    /// `lea sym(%rip), %reg` gives the address in dom0. Without relocation it is
    /// an address in the code itself (`_THIS_IP_`): the VM instance's.
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
            Some(value) => dom0::referent(self.lifted.object, value)?,
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
        let start = self.asm.here();
        let mut bytes = self.lifted.bytes(i).to_vec();
        for value in [inst.displacement, inst.immediate].into_iter().flatten() {
            let field = dom0::field(value.kind).ok_or("its relocation cannot be carried over")?;
            let width = if field == Field::Abs64 { 8 } else { 4 };
            let at = usize::from(value.at);
            bytes[at..at + width].fill(0);
            let referent = dom0::referent(self.lifted.object, value)?;
            self.asm.refer(start, at, field, referent);
        }
        self.asm.raw(&bytes);
        Ok(())
    }

    /// `leave`, `mov %rbp,%rsp`, `lea d(%rbp),%rsp`, where `rbp - rsp` is known
    /// to be `distance`:
    ///
    /// ```text
    ///     lea   distance+d(%rsp), %rsp
    ///     pop   %rbp                        for leave
    /// ```
    pub fn frame_pointer_to_stack(&mut self, i: InstIdx, distance: i64) {
        let iced = &self.lifted.inst(i).iced;
        let displacement = match iced.code() {
            Code::Lea_r64_m => iced.memory_displacement64() as i64,
            _ => 0,
        };
        self.lea(at(Reg::RSP, distance + displacement), Reg::RSP);
        if iced.code() == Code::Leaveq {
            self.emit(&r(Code::Pop_r64, Register::RBP));
        }
    }
}

fn operand(
    base: Register,
    index: Register,
    iced: &Instruction,
    displacement: i64,
    size: u32,
) -> MemoryOperand {
    MemoryOperand::new(
        base,
        index,
        iced.memory_index_scale(),
        displacement,
        size,
        false,
        Register::None,
    )
}

/// `mov` between `al/ax/eax/rax` and a 64-bit absolute address.
fn is_moffs(iced: &Instruction) -> bool {
    without_moffs(iced.code()).is_some()
}

fn without_moffs(code: Code) -> Option<Code> {
    Some(match code {
        Code::Mov_AL_moffs8 => Code::Mov_r8_rm8,
        Code::Mov_AX_moffs16 => Code::Mov_r16_rm16,
        Code::Mov_EAX_moffs32 => Code::Mov_r32_rm32,
        Code::Mov_RAX_moffs64 => Code::Mov_r64_rm64,
        Code::Mov_moffs8_AL => Code::Mov_rm8_r8,
        Code::Mov_moffs16_AX => Code::Mov_rm16_r16,
        Code::Mov_moffs32_EAX => Code::Mov_rm32_r32,
        Code::Mov_moffs64_RAX => Code::Mov_rm64_r64,
        _ => return None,
    })
}
