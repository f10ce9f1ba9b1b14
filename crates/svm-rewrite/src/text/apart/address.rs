//! Whether a text has an address of its code: it could go, or read, from there to a table by a
//! number that no name shows.
//!
//! The object with the tables apart says so. There the code can be decoded, whoever wrote it and
//! in whatever form.

use elf_loader::consts::SHF_ALLOC;
use iced_x86::{FlowControl, Mnemonic, OpKind};
use liveness::Reg;

use super::stack;
use crate::asm::Operand;
use crate::lift::{Inst, Lifted};

/// Whether an operand, loaded data, a call or an instruction gives an address of code.
pub fn is_had(lifted: &Lifted<'_>) -> bool {
    is_in_data(lifted)
        || lifted.insts.iter().any(|inst| names_code(lifted, inst))
        || stack::is_seen(lifted)
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
    lifted.insts.iter().any(is_indirect)
        || lifted.insts.windows(2).any(returns_elsewhere)
        || stack::returns_elsewhere(lifted)
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
            | Mnemonic::Fxsave
            | Mnemonic::Fxsave64
            | Mnemonic::Xsave
            | Mnemonic::Xsave64
            | Mnemonic::Xsavec
            | Mnemonic::Xsavec64
            | Mnemonic::Xsaveopt
            | Mnemonic::Xsaveopt64
            | Mnemonic::Xsaves
            | Mnemonic::Xsaves64
            | Mnemonic::Rdsspd
            | Mnemonic::Rdsspq
    );
    let is_resolved = inst.displacement.is_none() && inst.iced.is_ip_rel_memory_operand();
    let is_named = inst.target.is_none() && inst.relocated_values().any(is_code);
    learns || is_resolved || is_named
}
