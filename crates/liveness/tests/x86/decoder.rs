//! The properties of the decoder that this crate relies on, and properties of a finder
//! for any instruction.

use iced_x86::{Instruction, InstructionInfoFactory, OpAccess, Register};
use liveness::{Effect, EffectFinder, LocSet, Reg};
use proptest::prelude::*;

use crate::decode;

/// What this crate relies on: iced widens a 32-bit write to the 64-bit register and
/// leaves narrower writes narrow.
#[test]
fn iced_reports_the_register_that_a_write_replaces() {
    let written = |bytes: &[u8]| {
        let mut factory = InstructionInfoFactory::new();
        let info = factory.info(&decode(bytes));
        let mut used = info.used_registers().iter();
        let write = used.find(|used| used.access() == OpAccess::Write);
        write.expect("a register written").register()
    };
    let mov_ebx = [0x89, 0xc3];
    let mov_bx = [0x66, 0x89, 0xc3];
    let mov_bh = [0x88, 0xc7];
    assert_eq!(written(&mov_ebx), Register::RBX);
    assert_eq!(written(&mov_bx), Register::BX);
    assert_eq!(written(&mov_bh), Register::BH);
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
    assert_eq!(effect, Effect::OPAQUE);
}

/// A finder keeps nothing from one instruction to the next.
#[test]
fn a_finder_can_be_used_again() {
    let mut finder = EffectFinder::new();
    let push = decode(&[0x50]);
    let first = finder.effect(&push);
    finder.effect(&decode(&[0x0f, 0xa2]));
    assert_eq!(finder.effect(&push), first);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..Default::default() })]

    /// Whatever the bytes: no panic, and nothing that is no location.
    #[test]
    fn any_bytes_have_an_effect(bytes in any::<[u8; 15]>()) {
        let Effect { uses, kills } = EffectFinder::new().effect(&decode(&bytes));
        prop_assert!(LocSet::all().contains(uses.union(kills)));
    }
}
