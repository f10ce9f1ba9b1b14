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

/// Whether an instruction goes where no name shows: an address in a table may be added to before.
pub fn goes_by_register(inst: &Inst) -> bool {
    let iced = &inst.iced;
    let is_indirect = matches!(
        iced.flow_control(),
        FlowControl::IndirectBranch | FlowControl::IndirectCall
    );
    // What is in memory is an address as data has it.
    is_indirect && !iced.is_ip_rel_memory_operand()
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
/// it: `syscall` leaves it in rcx (SDM volume 2, SYSCALL), the x87 state has the last one's.
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
    );
    let is_resolved = inst.displacement.is_none() && inst.iced.is_ip_rel_memory_operand();
    let is_named = inst.target.is_none() && inst.relocated_values().any(is_code);
    learns || is_resolved || is_named
}

fn is_call(iced: &Instruction) -> bool {
    iced.flow_control() == FlowControl::Call
}

/// Where a routine's return address is: so many bytes above what registers point to.
#[derive(Clone, Copy)]
struct Place {
    /// Above rsp, if that is known.
    top: Option<i64>,
    /// Above another register that was copied from it.
    frame: Option<(Reg, i64)>,
}

/// Whether a routine that is called uses its return address otherwise than to return.
fn sees_return(lifted: &Lifted<'_>, entry: InstIdx) -> bool {
    let called = Place {
        top: Some(0),
        frame: None,
    };
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
    /// Whether an instruction has the return address, or its place, in an operand.
    fn is_used(self, iced: &Instruction) -> bool {
        let is_top = |at: Option<i64>| at.is_some_and(|at| at <= 0);
        if iced.mnemonic() == Mnemonic::Pop && is_top(self.top) {
            return true;
        }
        let Some((base, displacement)) = Operand::of(iced).simple() else {
            return false;
        };
        let at = match self.frame {
            _ if base == Reg::RSP => self.top,
            Some((register, at)) if base == register => Some(at),
            _ => None,
        };
        let size = (iced.memory_size().size() as i64).max(1);
        at.is_some_and(|at| displacement < at + 8 && displacement + size > at)
    }

    /// Where it is behind an instruction.
    fn behind(mut self, iced: &Instruction) -> Place {
        let written = match iced.op0_kind() {
            OpKind::Register if !matches!(iced.mnemonic(), Mnemonic::Cmp | Mnemonic::Test) => {
                gpr(iced.op0_register())
            }
            _ => None,
        };
        let moved = i64::from(iced.stack_pointer_increment());
        if moved != 0 {
            let is_plain = matches!(
                iced.mnemonic(),
                Mnemonic::Push | Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq
            );
            self.top = self.top.filter(|_| is_plain).map(|at| at - moved);
        }
        let is_popped = iced.mnemonic() == Mnemonic::Pop;
        match (written, self.pointed(iced)) {
            (Some(Reg::RSP), pointed) if moved == 0 => self.top = pointed,
            (Some(register), Some(at)) if moved == 0 => self.frame = Some((register, at)),
            (Some(register), _) if moved == 0 || is_popped => {
                self.frame = self.frame.filter(|(frame, _)| *frame != register);
            }
            _ => {}
        }
        self
    }

    /// How far below it the result of an instruction points, if that is a sum that is known.
    fn pointed(self, iced: &Instruction) -> Option<i64> {
        let of = |register: Reg| match self.frame {
            _ if register == Reg::RSP => self.top,
            Some((frame, at)) if frame == register => Some(at),
            _ => None,
        };
        match iced.code() {
            Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => of(gpr(iced.op1_register())?),
            Code::Lea_r64_m => {
                let (base, displacement) = Operand::of(iced).simple()?;
                Some(of(base)? - displacement)
            }
            Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 => {
                Some(of(gpr(iced.op0_register())?)? + iced.immediate(1) as i64)
            }
            Code::Add_rm64_imm8 | Code::Add_rm64_imm32 => {
                Some(of(gpr(iced.op0_register())?)? - iced.immediate(1) as i64)
            }
            _ => None,
        }
    }
}
