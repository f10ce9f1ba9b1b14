//! The properties of the decoder that this crate relies on, and properties of a finder
//! for any instruction.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};
use liveness::{Effect, EffectFinder, LocSet, Reg, WordSize};
use proptest::prelude::*;

use crate::{decode, word_size};

/// What this crate relies on: iced widens a 32-bit write to the 64-bit register in 64-bit mode
/// only, and leaves narrower writes narrow.
#[test]
fn iced_reports_the_register_that_a_write_replaces() {
    let written = |bits, bytes: &[u8]| {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&decode(bits, bytes));
        let mut used = info.used_registers().iter();
        let write = used.find(|used| used.access() == OpAccess::Write);
        write.expect("a register written").register()
    };
    let mov_ebx = [0x89, 0xc3];
    let mov_bx = [0x66, 0x89, 0xc3];
    let mov_bh = [0x88, 0xc7];
    assert_eq!(written(64, &mov_ebx), Register::RBX);
    assert_eq!(written(32, &mov_ebx), Register::EBX);
    assert_eq!(written(64, &mov_bx), Register::BX);
    assert_eq!(written(64, &mov_bh), Register::BH);
}

/// What this crate relies on: an undefined flag is not reported as written too.
#[test]
fn iced_reports_undefined_flags_apart() {
    for code in iced_x86::Code::values() {
        let mut instruction = Instruction::default();
        instruction.set_code(code);
        let written =
            instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set();
        assert_eq!(written & instruction.rflags_undefined(), 0, "{code:?}");
    }
}

/// An instruction that was made rather than decoded counts as 64-bit code.
#[test]
fn made_instructions_are_64_bit_code() {
    let mov = Instruction::with2(iced_x86::Code::Mov_r32_imm32, Register::R9D, 1);
    let effect = EffectFinder::new().effect(&mov.expect("operands fit"));
    assert_eq!(effect.kills, LocSet::reg(Reg::R9));
    let cpuid = Instruction::with(iced_x86::Code::Cpuid);
    let effect = EffectFinder::new().effect(&cpuid);
    assert_eq!(effect, Effect::opaque(WordSize::Bits64));
}

/// A finder keeps nothing from one instruction to the next.
#[test]
fn a_finder_can_be_used_again() {
    let mut finder = EffectFinder::new();
    let push = decode(64, &[0x50]);
    let first = finder.effect(&push);
    finder.effect(&decode(32, &[0x60]));
    finder.effect(&decode(64, &[0x0f, 0xa2]));
    assert_eq!(finder.effect(&push), first);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    /// Whatever the bytes: no panic, and nothing outside the registers of the word size.
    #[test]
    fn any_bytes_have_an_effect(bytes in any::<[u8; 15]>(), bits in prop_oneof![Just(32), Just(64)]) {
        let Effect { uses, kills } = EffectFinder::new().effect(&decode(bits, &bytes));
        let everything = LocSet::everything(word_size(bits));
        prop_assert!(everything.contains(uses.union(kills)));
    }
}
