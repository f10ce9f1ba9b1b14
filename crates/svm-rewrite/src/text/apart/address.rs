//! Whether a text has an address of its code: it could go, or read, from there to a table by a
//! number that no name shows.
//!
//! The object with the tables apart says so. There the code can be decoded, whoever wrote it and
//! in whatever form.

use elf_loader::consts::SHF_ALLOC;
use foldhash::HashSet;
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};
use liveness::Reg;

use crate::asm::Operand;
use crate::lift::{Destination, Inst, InstIdx, Lifted};
use crate::registers::gpr;

/// Whether an operand, loaded data, a call or an instruction gives an address of code.
pub fn is_had(lifted: &Lifted<'_>) -> bool {
    let called = lifted.insts.iter().filter_map(|inst| match inst.target {
        Some(Destination::Inst(to)) if is_call(&inst.iced) => Some(to),
        _ => None,
    });
    is_in_data(lifted)
        || lifted.insts.iter().any(|inst| names_code(lifted, inst))
        || called
            .collect::<HashSet<_>>()
            .into_iter()
            .any(|to| sees_return(lifted, to))
}

/// Whether code goes where no name shows: an address in a table may be added to before.
pub fn goes_by_register(lifted: &Lifted<'_>) -> bool {
    let is_indirect = |inst: &Inst| {
        let iced = &inst.iced;
        let is_indirect = matches!(
            iced.flow_control(),
            FlowControl::IndirectBranch | FlowControl::IndirectCall
        );
        // What is in memory is an address as data has it.
        is_indirect && !iced.is_ip_rel_memory_operand()
    };
    let returns_elsewhere = |two: &[Inst]| {
        let (before, last) = (&two[0].iced, &two[1].iced);
        let stores = before.op0_kind() == OpKind::Memory
            && Operand::of(before).simple() == Some((Reg::RSP, 0));
        last.flow_control() == FlowControl::Return
            && (before.mnemonic() == Mnemonic::Push || stores)
    };
    lifted.insts.iter().any(is_indirect) || lifted.insts.windows(2).any(returns_elsewhere)
}

/// Whether loaded data has a place of code, or its distance. Tables of unwinders name functions.
fn is_in_data(lifted: &Lifted<'_>) -> bool {
    let loaded = lifted.object.sections().filter(|(id, section)| {
        section.flags & SHF_ALLOC != 0
            && lifted.code_section(*id).is_none()
            && section.name != ".eh_frame"
    });
    let mut all = loaded.flat_map(|(_, section)| &section.relocations);
    all.any(|r| lifted.code_place(r.symbol, 0).is_some())
}

/// Whether an instruction, other than a branch, has a place of code in its operands, or learns
/// it: `syscall` leaves it in rcx (SDM volume 2, SYSCALL), the x87 state has the last one's, the
/// shadow stack those of the calls.
fn names_code(lifted: &Lifted<'_>, inst: &Inst) -> bool {
    let is_code = |value| {
        let value = lifted.value(value);
        lifted.code_place(value.symbol, 0).is_some()
    };
    let learns = matches!(
        inst.iced.mnemonic(),
        Mnemonic::Syscall
            | Mnemonic::Fnstenv
            | Mnemonic::Fstenv
            | Mnemonic::Fnsave
            | Mnemonic::Fsave
            | Mnemonic::Rdsspd
            | Mnemonic::Rdsspq
    );
    let is_resolved = inst.displacement.is_none() && inst.iced.is_ip_rel_memory_operand();
    let is_named = inst.target.is_none() && inst.relocated_values().any(is_code);
    learns || is_resolved || is_named
}

fn is_call(iced: &Instruction) -> bool {
    iced.flow_control() == FlowControl::Call
}

/// Where a routine's return address is: so many bytes above what each register points to, if
/// that is known.
#[derive(Clone, Copy)]
struct Place {
    above: [Option<i64>; 16],
}

/// Whether a routine that is called uses its return address otherwise than to return.
fn sees_return(lifted: &Lifted<'_>, entry: InstIdx) -> bool {
    let mut called = Place { above: [None; 16] };
    called.set(Reg::RSP, Some(0));
    let (mut paths, mut seen) = (vec![(entry, called)], HashSet::default());
    while let Some((i, place)) = paths.pop() {
        if i.0 as usize >= lifted.insts.len() || !seen.insert(i) {
            continue;
        }
        let inst = lifted.inst(i);
        if place.is_used(&inst.iced) {
            return true;
        }
        let next = InstIdx(i.0 + 1);
        if let Some(Destination::Inst(to)) = inst.target.filter(|_| !is_call(&inst.iced)) {
            paths.push((to, place));
        }
        match inst.iced.flow_control() {
            FlowControl::Next => paths.push((next, place.behind(&inst.iced))),
            // A callee leaves rsp as it was.
            FlowControl::ConditionalBranch
            | FlowControl::XbeginXabortXend
            | FlowControl::Call
            | FlowControl::IndirectCall
            | FlowControl::Interrupt => paths.push((next, place)),
            FlowControl::UnconditionalBranch
            | FlowControl::IndirectBranch
            | FlowControl::Return
            | FlowControl::Exception => {}
        }
    }
    false
}

impl Place {
    fn of(&self, register: Reg) -> Option<i64> {
        self.above[usize::from(register.number())]
    }

    fn set(&mut self, register: Reg, at: Option<i64>) {
        self.above[usize::from(register.number())] = at;
    }

    /// Whether an instruction has the return address, or its place, in an operand.
    fn is_used(&self, iced: &Instruction) -> bool {
        let is_top = self.of(Reg::RSP).is_some_and(|at| at <= 0);
        let pushes_place =
            iced.mnemonic() == Mnemonic::Push && gpr(iced.op0_register()) == Some(Reg::RSP);
        if iced.mnemonic() == Mnemonic::Pop && is_top || pushes_place {
            return true;
        }
        // Their operands have no displacement.
        if iced.is_string_instruction() {
            return [Reg::RSI, Reg::RDI]
                .iter()
                .any(|register| self.of(*register).is_some());
        }
        let operand = Operand::of(iced);
        let Some((base, displacement)) = operand.simple() else {
            return operand.is_indexed_stack();
        };
        let size = (iced.memory_size().size() as i64).max(1);
        let at = self.of(base);
        at.is_some_and(|at| displacement < at + 8 && displacement + size > at)
    }

    /// Where it is behind an instruction.
    fn behind(mut self, iced: &Instruction) -> Place {
        let moved = i64::from(iced.stack_pointer_increment());
        let pointed = self.pointed(iced);
        if moved != 0 {
            let is_plain = matches!(
                iced.mnemonic(),
                Mnemonic::Push | Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq
            );
            let top = self.of(Reg::RSP).filter(|_| is_plain);
            self.set(Reg::RSP, top.map(|at| at - moved));
        }
        let only_reads = matches!(
            iced.mnemonic(),
            Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push
        );
        if iced.op0_kind() == OpKind::Register
            && !only_reads
            && let Some(register) = gpr(iced.op0_register())
        {
            self.set(register, pointed);
        }
        self
    }

    /// How far below it the result of an instruction points, if that is a sum that is known.
    fn pointed(&self, iced: &Instruction) -> Option<i64> {
        match iced.code() {
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => self.of(gpr(iced.op1_register())?),
            Code::Lea_r64_m => {
                let (base, displacement) = Operand::of(iced).simple()?;
                Some(self.of(base)? - displacement)
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
                Some(self.of(gpr(iced.op0_register())?)? + iced.immediate(1) as i64)
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => {
                Some(self.of(gpr(iced.op0_register())?)? - iced.immediate(1) as i64)
            }
            _ => None,
        }
    }
}
