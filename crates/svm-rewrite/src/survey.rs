//! What the decoder's tables know of each instruction, asked once: control flow,
//! classification, planning and facts about the stack all look here.

use iced_x86::{Code, Instruction, InstructionInfo, InstructionInfoFactory, OpAccess};
use liveness::x86::EffectFinder;
use liveness::{Effect, LocSet, Reg, WordSize};

use crate::lift::Lifted;
use crate::registers::gpr;

/// One instruction by itself, whatever stands around it.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// What it does to liveness.
    pub effect: Effect,
    /// All general registers that it names or implies.
    pub named: LocSet,
    /// Those that it may change.
    pub written: LocSet,
    /// What it does to memory, by an operand or without naming it.
    pub memory: Memory,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// Nothing.
    Untouched,
    /// It reads and never writes.
    Read,
    /// It may write.
    Written,
}

impl Survey {
    /// Whether it may change a register.
    pub fn writes(&self, register: Reg) -> bool {
        self.written.intersects(LocSet::reg(register))
    }
}

/// Asks for instructions; keeps the buffers that this takes.
pub struct Surveyor {
    info: InstructionInfoFactory,
    finder: EffectFinder,
}

impl Surveyor {
    /// One for any number of instructions.
    pub fn new() -> Surveyor {
        Surveyor {
            info: InstructionInfoFactory::new(),
            finder: EffectFinder::new(),
        }
    }

    /// What is known of this instruction.
    pub fn of(&mut self, iced: &Instruction) -> Survey {
        let info = self.info.info(iced);
        let mut survey = Survey {
            effect: self.finder.effect_of(iced, info),
            named: LocSet::empty(),
            written: LocSet::empty(),
            memory: memory(info),
        };
        for used in info.used_registers() {
            let Some(register) = gpr(used.register()).map(LocSet::reg) else {
                continue;
            };
            survey.named = survey.named.union(register);
            if !only_reads(used.access()) {
                survey.written = survey.written.union(register);
            }
        }
        survey
    }
}

fn memory(info: &InstructionInfo) -> Memory {
    let used = info.used_memory();
    if used.is_empty() {
        Memory::Untouched
    } else if used.iter().all(|m| only_reads(m.access())) {
        Memory::Read
    } else {
        Memory::Written
    }
}

fn only_reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead)
}

/// `in (%dx),%eax` may be a call of VMware's hypervisor, its "backdoor", which
/// takes and gives more registers than a decoder tells (vmw_balloon, vmmouse;
/// arch/x86/include/asm/vmware.h of Linux 6.1): in a module for a stock kernel it
/// reads and may change all but `rsp` and `rbp`.
pub fn assume_backdoors(lifted: &Lifted<'_>, surveys: &mut [Survey]) {
    let kept = LocSet::reg(Reg::RSP).union(LocSet::reg(Reg::RBP));
    let registers = LocSet::registers(WordSize::Bits64);
    for (inst, survey) in lifted.insts.iter().zip(surveys) {
        if inst.iced.code() == Code::In_EAX_DX {
            survey.effect.uses = registers;
            survey.written = registers.minus(kept);
        }
    }
}

/// Each instruction of an object, by index.
pub fn survey(lifted: &Lifted<'_>) -> Vec<Survey> {
    let mut surveyor = Surveyor::new();
    let insts = lifted.insts.iter();
    insts.map(|inst| surveyor.of(&inst.iced)).collect()
}
