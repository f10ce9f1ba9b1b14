//! Registers that later code reads as numbers, and not only to reach memory.
//!
//! Where an address is cut in a register, cutting it twice gives the same place. So a
//! register that from here on is only the base of accesses may hold the place instead of
//! the address: nobody can tell, on any path. The accesses cut it, or find it cut.
//!
//! This is liveness in which a base is no use ([`base_alone`]).

use iced_x86::{Instruction, Mnemonic, OpKind};
use liveness::{BlockId, Effect, FlowGraph, InstId, LocSet, Reg};

use crate::analyse::class::Class;
use crate::analyse::flow::Flow;
use crate::lift::{Inst, Lifted};
use crate::plan::reuse::Access;
use crate::plan::strict::PointerCheck;
use crate::registers::{gpr, register_operands};
use crate::schemes::Row;

/// The registers that are live as numbers
/// before each instruction. A pointer that is compared before it, by `pointers`, is one.
pub fn needed(
    lifted: &Lifted<'_>,
    flow: &Flow,
    classes: &[Class],
    scheme: &Row,
    pointers: &[Option<PointerCheck>],
) -> Vec<LocSet> {
    let all = lifted.insts.iter().zip(classes);
    let bases = all.map(|(inst, class)| base_alone(inst, *class, scheme));
    let mut bases: Vec<Option<Reg>> = bases.collect();
    for (base, compared) in bases.iter_mut().zip(pointers) {
        *base = base.filter(|_| compared.is_none());
    }
    let graph = Numbers { flow, bases };
    let solution = liveness::solve(&graph);
    let mut needed = vec![LocSet::empty(); lifted.insts.len()];
    for block in 0..flow.blocks().len() as u32 {
        solution.before_each(&graph, BlockId(block), |inst, live, _| {
            needed[inst.0 as usize] = live;
        });
    }
    needed
}

/// Flow in which some instructions do not use their base.
struct Numbers<'f> {
    flow: &'f Flow,
    /// Of each instruction.
    bases: Vec<Option<Reg>>,
}

impl FlowGraph for Numbers<'_> {
    fn block_count(&self) -> usize {
        self.flow.block_count()
    }
    fn instructions(&self, block: BlockId) -> std::ops::Range<u32> {
        self.flow.instructions(block)
    }
    fn effect(&self, inst: InstId) -> Effect {
        let effect = self.flow.effect(inst);
        let base = self.bases[inst.0 as usize].map_or(LocSet::empty(), LocSet::reg);
        Effect {
            uses: effect.uses.minus(base),
            ..effect
        }
    }
    fn successors(&self, block: BlockId) -> &[BlockId] {
        self.flow.successors(block)
    }
    fn live_at_exit(&self, block: BlockId) -> LocSet {
        self.flow.live_at_exit(block)
    }
}

/// The base of an access that reads it for nothing else. What an instruction reads without
/// naming it is not known here, so only those that read no such register count.
pub fn base_alone(inst: &Inst, class: Class, scheme: &Row) -> Option<Reg> {
    use Mnemonic::*;
    let plain = matches!(
        inst.iced.mnemonic(),
        Mov | Movzx
            | Movsx
            | Movsxd
            | Add
            | Adc
            | Sub
            | Sbb
            | And
            | Or
            | Xor
            | Cmp
            | Test
            | Inc
            | Dec
            | Not
            | Neg
            | Cmove
            | Cmovne
            | Bt
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
    );
    let base = plain.then(|| Access::of(inst, class, scheme))??.base();
    let mut read = register_operands(&inst.iced).skip(usize::from(only_writes(&inst.iced)));
    (!read.any(|r| gpr(r) == Some(base))).then_some(base)
}

/// Whether the first operand is a register that is only written, wholly or in part.
fn only_writes(iced: &Instruction) -> bool {
    use Mnemonic::*;
    matches!(iced.mnemonic(), Mov | Movzx | Movsx | Movsxd) && iced.op0_kind() == OpKind::Register
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;
    use crate::analyse::class::Space;
    use crate::lift::CodeIdx;
    use crate::schemes;

    /// The base that an instruction reads for nothing else.
    fn base(bytes: &[u8]) -> Option<Reg> {
        let iced = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let inst = Inst {
            iced,
            section: CodeIdx(0),
            displacement: None,
            immediate: None,
            target: None,
        };
        let scheme = schemes::row(twin_abi::Scheme::Window, twin_abi::Processor::Bmi2);
        base_alone(&inst, Class::Memory(Space::Heap), scheme)
    }

    #[test]
    fn a_base_that_is_read_otherwise_is_a_number() {
        let alone = [
            &[0x48, 0x8b, 0x47, 0x08][..], // mov 8(%rdi),%rax
            &[0x48, 0x8b, 0x7f, 0x08],     // mov 8(%rdi),%rdi
            &[0x8a, 0x07],                 // mov (%rdi),%al
            &[0x48, 0x01, 0x07],           // add %rax,(%rdi)
            &[0x83, 0x07, 0x01],           // addl $1,(%rdi)
        ];
        for bytes in alone {
            assert_eq!(base(bytes), Some(Reg::RDI), "{bytes:x?}");
        }
        let needed = [
            &[0x48, 0x89, 0x3f][..],   // mov %rdi,(%rdi)
            &[0x40, 0x88, 0x3f],       // mov %dil,(%rdi)
            &[0x48, 0x03, 0x3f],       // add (%rdi),%rdi
            &[0x48, 0x39, 0x3f],       // cmp %rdi,(%rdi)
            &[0x48, 0x8b, 0x04, 0x37], // mov (%rdi,%rsi),%rax
            &[0x67, 0x8b, 0x07],       // mov (%edi),%eax
            &[0x48, 0x0f, 0x44, 0x3f], // cmove (%rdi),%rdi
            &[0x48, 0xf7, 0x20],       // mulq (%rax), which rax is an operand of, too
            &[0x48, 0x0f, 0xb1, 0x08], // cmpxchg %rcx,(%rax)
            &[0xd3, 0x21],             // shl %cl,(%rcx)
        ];
        for bytes in needed {
            assert_eq!(base(bytes), None, "{bytes:x?}");
        }
    }
}
