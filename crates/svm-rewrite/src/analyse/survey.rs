//! Facts about each instruction from the decoder's tables, looked up once for control
//! flow, classification, planning and stack facts.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    OpKind, Register,
};
use liveness::x86::EffectFinder;
use liveness::{Effect, LocSet, Reg};

use crate::hash;
use crate::registers::gpr;

/// Facts about one instruction that do not depend on its context.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// What it does to liveness.
    pub effect: Effect,
    /// All general registers that it names or implies.
    pub named: LocSet,
    /// Those that it may change.
    pub written: LocSet,
    /// What it does to memory, by an operand or without naming it.
    pub memory: MemoryEffect,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEffect {
    /// It reaches none.
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

/// Surveys instructions; keeps the decoder's buffers and a cache of answers.
pub struct Surveyor {
    info: InstructionInfoFactory,
    finder: EffectFinder,
    /// The cache, by [`place`].
    known: Vec<Option<(Instruction, Survey)>>,
}

/// Fewest answers in the cache.
const FEWEST: usize = 1 << 10;
/// Most answers in the cache.
const MOST: usize = 1 << 13;
/// Instructions of an object for each answer in the cache: most instructions repeat.
const REPEATED: usize = 16;

impl Surveyor {
    /// A surveyor for an object of that many instructions.
    pub fn new(instructions: usize) -> Surveyor {
        let places = (instructions / REPEATED).next_power_of_two();
        Surveyor {
            info: InstructionInfoFactory::new(),
            finder: EffectFinder::new(),
            known: vec![None; places.clamp(FEWEST, MOST)],
        }
    }

    pub fn of(&mut self, iced: &Instruction) -> Survey {
        let asked = anywhere(iced);
        let place = place(&asked, self.known.len());
        match &self.known[place] {
            // All of an instruction is compared except its place.
            Some((known, survey)) if *known == asked => *survey,
            _ => {
                let survey = self.ask(&asked);
                self.known[place] = Some((asked, survey));
                survey
            }
        }
    }

    fn ask(&mut self, iced: &Instruction) -> Survey {
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

/// The instruction without the parts that a survey does not depend on: branch distance
/// and displacement.
fn anywhere(iced: &Instruction) -> Instruction {
    let mut asked = *iced;
    if iced.op0_kind() == OpKind::NearBranch64 {
        asked.set_near_branch64(0);
    } else if iced.memory_base() != Register::None || iced.memory_index() != Register::None {
        // Without registers the same field may be part of an immediate, and the
        // second one of `enter` matters.
        asked.set_memory_displacement64(0);
    }
    asked
}

/// The slot of an answer, out of `places`.
fn place(iced: &Instruction, places: usize) -> usize {
    let registers = [
        iced.op0_register(),
        iced.op1_register(),
        iced.memory_base(),
        iced.memory_index(),
    ];
    let start = iced.code() as u64 | u64::from(iced.immediate32()) << 16;
    let mixed = registers.into_iter().fold(start, |mixed, register| {
        mixed.rotate_left(9) ^ register as u64
    });
    hash::place(mixed, places)
}

fn memory(info: &InstructionInfo) -> MemoryEffect {
    let used = info.used_memory();
    if used.is_empty() {
        MemoryEffect::Untouched
    } else if used.iter().all(|m| only_reads(m.access())) {
        MemoryEffect::Read
    } else {
        MemoryEffect::Written
    }
}

fn only_reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead)
}

/// `in (%dx),%eax` may be a call of VMware's hypervisor, its "backdoor", which reads and
/// writes more registers than the decoder's tables say (vmw_balloon, vmmouse;
/// arch/x86/include/asm/vmware.h of Linux 6.1). So in a module for a stock kernel it
/// reads and may change all registers but `rsp` and `rbp`.
pub fn assume_backdoor(iced: &Instruction, survey: &mut Survey) {
    let kept = LocSet::reg(Reg::RSP).union(LocSet::reg(Reg::RBP));
    let registers = LocSet::registers();
    if iced.code() == Code::In_EAX_DX {
        survey.effect.uses = registers;
        survey.written = registers.minus(kept);
    }
}

/// Registers that [`crate::frame`] follows: `rsp`, and those that no instruction of a compiler
/// writes unless an operand names them.
pub const FOLLOWED: LocSet = LocSet::registers()
    .minus(LocSet::reg(Reg::RAX))
    .minus(LocSet::reg(Reg::RCX))
    .minus(LocSet::reg(Reg::RDX))
    .minus(LocSet::reg(Reg::RBX))
    .minus(LocSet::reg(Reg::RSI))
    .minus(LocSet::reg(Reg::RDI));

/// Whether an instruction may change a fact of [`crate::frame`]. Nearly none does.
pub fn may_change_facts(iced: &Instruction, survey: &Survey) -> bool {
    survey.memory == MemoryEffect::Written
        || survey.written.intersects(FOLLOWED)
        || matches!(iced.mnemonic(), Mnemonic::Std | Mnemonic::Cld)
        || matches!(
            iced.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        )
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;

    /// Two bytes of opcode and ModRM after these prefixes, with bytes for the operands.
    fn instructions(mut see: impl FnMut(&Instruction)) {
        for head in [&[][..], &[0x48], &[0x66], &[0xf3], &[0x0f], &[0x4c, 0x0f]] {
            for opcode in 0..=0xffff_u16 {
                for rest in [[0; 12], [0x11; 12], [0xf3; 12]] {
                    let bytes = [head, &opcode.to_le_bytes(), &rest].concat();
                    let mut decoder = Decoder::with_ip(64, &bytes, 0, DecoderOptions::NONE);
                    let iced = decoder.decode();
                    if !iced.is_invalid() {
                        see(&iced);
                    }
                }
            }
        }
    }

    #[test]
    fn displacements_and_distances_change_nothing_and_answers_are_of_their_question() {
        let (mut asking, mut remembering) = (Surveyor::new(0), Surveyor::new(0));
        instructions(|iced| {
            let asked = format!("{:?}", asking.ask(iced));
            assert_eq!(asked, format!("{:?}", remembering.of(iced)), "{iced}");
        });
    }
}
