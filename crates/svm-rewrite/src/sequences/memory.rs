//! Loads, stores and read-modify-writes of one explicit operand; prefetches;
//! `push` and `pop` of memory; `xlat`.

use elf_loader::consts::{R_X86_64_64, R_X86_64_PC32};
use iced_x86::{Code, Instruction, MemoryOperand, Register};
use liveness::Reg;
use twin_abi::stack;

use super::{Address, Emitter};
use crate::asm::{Field, Jump, Label, Referent, cc, mr, r, ri, rm, rr};
use crate::class::{Segment, Space};
use crate::dom0;
use crate::import::Import;
use crate::lift::{Inst, InstIdx, Value};
use crate::plan::Plan;
use crate::refusal::Hitch;
use crate::registers::{gpr, reg32, reg64};

/// The encoder's word for a displacement: none, a byte, or 32 bits of a 64-bit
/// address.
fn displacement_size(displacement: i64) -> u32 {
    match displacement {
        0 => 0,
        -128..=127 => 1,
        _ => 8,
    }
}

/// `disp(%base)`.
pub(super) fn at(base: Reg, displacement: i64) -> MemoryOperand {
    MemoryOperand::new(
        reg64(base),
        Register::None,
        1,
        displacement,
        displacement_size(displacement),
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
    ///
    /// Where an earlier translation serves:
    ///
    /// ```text
    ///     op    distance(%v)
    /// ```
    pub fn memory(&mut self, i: InstIdx, plan: &Plan, space: Space) -> Result<(), Hitch> {
        if let Some(reuse) = plan.reuse {
            return self.access_at(i, reuse.register, reuse.displacement.into());
        }
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
        self.pushed(1);
        self.open(plan);
        let address = self.address(i, space, spills + 1, &roles);
        self.check(i, address, v, &roles[1..]);
        self.emit(&rm(Code::Mov_r64_rm64, reg64(v), at(v, 0)));
        self.emit(&mr(
            Code::Mov_rm64_r64,
            at(Reg::RSP, 8 * spills as i64 + self.skipped(plan)),
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
            at(Reg::RSP, 8 * spills as i64 + self.skipped(plan)),
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
                // The stack protector's word, above all.
                if let Address::Constant(offset) = plain
                    && let Ok(offset) = i32::try_from(offset as i64)
                {
                    self.segment_base(segment, t);
                    return Address::Lea(at(t, offset.into()), None);
                }
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
        let displacement = iced.memory_displacement64();
        if let Some(value) = inst.displacement {
            let value = self.lifted.value(value);
            let referent = self
                .referent(value)
                .expect("checked before anything was decided");
            return match value.kind {
                R_X86_64_PC32 | R_X86_64_64 => Address::Symbol(referent),
                _ => Address::Lea(operand(iced, 0, full_width(iced)), Some(referent)),
            };
        }
        if base == Register::None && index == Register::None {
            return Address::Constant(displacement);
        }
        let plain = index == Register::None && displacement == 0 && base.is_gpr64();
        match gpr(base) {
            Some(base) if plain && base != Reg::RSP => return Address::Copy(base),
            _ => {}
        }
        let on_stack = base.full_register() == Register::RSP;
        let adjust = if on_stack { 8 * pushed as i64 } else { 0 };
        // Of a 32-bit address the decoder gives the displacement without sign;
        // modulo 2^32 it is the same.
        let displacement = match full_width(iced) {
            4 => i64::from(displacement as u32 as i32),
            _ => displacement as i64,
        };
        let displacement = displacement.wrapping_add(adjust);
        let size = match (base, displacement) {
            (Register::None, _) => full_width(iced),
            (_, 0) => 0,
            (_, -128..=127) => 1,
            _ => full_width(iced),
        };
        Address::Lea(operand(iced, displacement, size), None)
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
        self.access_at(i, v, 0)
    }

    /// The instruction itself with `displacement(%v)` for its memory operand.
    fn access_at(&mut self, i: InstIdx, v: Reg, displacement: i64) -> Result<(), Hitch> {
        let inst = self.lifted.inst(i);
        let mut iced = inst.iced;
        if let Some(code) = without_moffs(iced.code()) {
            iced.set_code(code);
        }
        iced.set_segment_prefix(Register::None);
        iced.set_memory_base(reg64(v));
        iced.set_memory_index(Register::None);
        iced.set_memory_index_scale(1);
        iced.set_memory_displacement64(displacement as u64);
        iced.set_memory_displ_size(displacement_size(displacement));
        self.note_lock(i);
        let immediate = match inst.immediate {
            Some(value) => {
                let value = self.lifted.value(value);
                let field = self
                    .policy
                    .field(value.kind)
                    .filter(|f| *f == Field::Abs32S);
                let field = field.ok_or("its immediate holds an address of unexpected width")?;
                Some((field, self.referent(value)?))
            }
            None => None,
        };
        self.asm.inst_with(&iced, None, immediate)?;
        Ok(())
    }

    /// What a relocation's value is called in emitted code.
    pub(super) fn referent(&self, value: Value) -> Result<Referent, &'static str> {
        self.policy.referent(self.lifted, value)
    }

    /// `.smp_locks` names the accesses with a `lock` prefix.
    pub(super) fn note_lock(&mut self, i: InstIdx) {
        if self.lifted.inst(i).iced.has_lock_prefix() {
            self.locked.push((i, self.asm.here()));
        }
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
            Some(value) => dom0::referent(self.lifted.object, self.lifted.value(value))?,
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

    /// A copied instruction without relocations. Prefixes that mean nothing on
    /// it are left out: the verifier knows no reason for them.
    pub(super) fn copy_plain(&mut self, i: InstIdx) -> Result<(), Hitch> {
        const PREFIXES: [u8; 11] = [
            0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3,
        ];
        let lifted = self.lifted;
        let bytes = lifted.bytes(i);
        // A REX that another prefix follows means nothing either.
        let first = bytes.iter().find(|b| **b & 0xf0 != 0x40);
        if first.is_some_and(|b| PREFIXES.contains(b)) {
            let mut iced = self.lifted.inst(i).iced;
            iced.set_segment_prefix(Register::None);
            self.asm.inst(&iced)?;
        } else {
            self.asm.raw(bytes);
        }
        Ok(())
    }

    /// The register that `rsp` is set to.
    pub fn frame_pointer(&self, i: InstIdx) -> Register {
        let iced = &self.lifted.inst(i).iced;
        match iced.code() {
            Code::Leaveq => Register::RBP,
            Code::Lea_r64_m => iced.memory_base(),
            _ => iced.op1_register(),
        }
    }

    /// `leave`, `mov %reg,%rsp`, `lea d(%reg),%rsp`, where `reg - rsp` is known
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

impl Emitter<'_> {
    /// `and $-alignment,%rsp` where it is known how far that moves `rsp`, and
    /// the flags that it leaves:
    ///
    /// ```text
    ///     lea   -padding(%rsp), %rsp        unless that is none
    ///     test  %rsp, %rsp
    /// ```
    pub fn realign(&mut self, padding: i64) {
        if padding != 0 {
            self.lea(at(Reg::RSP, -padding), Reg::RSP);
        }
        self.emit(&rr(Code::Test_rm64_r64, Register::RSP, Register::RSP));
    }

    /// At the entry of a function that realigns its stack: on to the copy that
    /// is for what `rsp` is modulo `8 * copies`. The first one follows.
    ///
    /// ```text
    ///     test  $8, %esp
    ///     je    1f
    ///     test  $16, %esp ; jne copy 3 ; jmp copy 1
    /// 1:  test  $16, %esp ; jne copy 2
    /// ```
    pub fn choose_by_rsp(&mut self, copies: &[Label]) {
        self.choose(copies, 0, 1);
    }

    /// Of the copies whose number is `number` below `bit`.
    fn choose(&mut self, copies: &[Label], number: usize, bit: usize) {
        self.emit(&ri(Code::Test_rm32_imm32, Register::ESP, 8 * bit as i32));
        if 2 * bit == copies.len() {
            self.asm.branch(Jump::If(cc::NE), copies[number | bit]);
            if number != 0 {
                self.asm.branch(Jump::Always, copies[number]);
            }
            return;
        }
        let even = self.labels.fresh();
        self.asm.branch(Jump::If(cc::E), even);
        self.choose(copies, number | bit, 2 * bit);
        self.place(even);
        self.choose(copies, number, 2 * bit);
    }
}

/// The operand's base, index and scale with another displacement.
fn operand(iced: &Instruction, displacement: i64, size: u32) -> MemoryOperand {
    let (base, index) = (iced.memory_base(), iced.memory_index());
    let scale = iced.memory_index_scale();
    MemoryOperand::new(
        base,
        index,
        scale,
        displacement,
        size,
        false,
        Register::None,
    )
}

/// The encoder's word for a 32-bit displacement: as wide as the address.
fn full_width(iced: &Instruction) -> u32 {
    let narrow = iced.memory_base().is_gpr32() || iced.memory_index().is_gpr32();
    if narrow { 4 } else { 8 }
}

/// `mov` between `al/ax/eax/rax` and a 64-bit absolute address, as the form with
/// any address.
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
