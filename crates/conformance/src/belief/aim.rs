//! Registers that lead a memory operand to a place of one's choice.

use svm_verify::belief::{Belief, CountsFrom, Operand};

use super::check::RSP;
use super::machine::{Executor, Piece};

/// Where an operand is, with these registers.
pub fn address(machine: &Executor, registers: &[u64; 16], operand: &Operand) -> u64 {
    let held = |r: u8| registers[usize::from(r)];
    let base = operand.base.map_or(0, held);
    let index = operand
        .index
        .map_or(0, |(r, scale)| held(r).wrapping_mul(scale.into()));
    let sum = base.wrapping_add(index);
    let sum = sum.wrapping_add_signed(operand.displacement.into());
    match operand.from {
        CountsFrom::Zero => sum,
        CountsFrom::Gs => machine.window.wrapping_add(sum),
        CountsFrom::GsInLowHalf => machine.window + (sum & 0xffff_ffff),
    }
}

/// Changes one register, of the operand's own, so that the operand is at `target`. An
/// operand relative to `rsp` stays where it is. False if it is at neither place.
pub fn at(machine: &Executor, registers: &mut [u64; 16], operand: &Operand, target: u64) -> bool {
    let usable = |r: u8| usize::from(r) != RSP && operand.bit != Some(r);
    let base = operand
        .base
        .filter(|&r| usable(r) && operand.index.is_none_or(|(i, _)| i != r));
    let index = operand
        .index
        .filter(|&(r, scale)| usable(r) && scale == 1 && Some(r) != operand.base);
    if let Some(free) = base.or(index.map(|(r, _)| r)) {
        let register = &mut registers[usize::from(free)];
        let kept = *register & !0xffff_ffff;
        *register = 0;
        let rest = address(machine, registers, operand);
        let missing = target.wrapping_sub(rest);
        registers[usize::from(free)] = match operand.from {
            // The upper half is any.
            CountsFrom::GsInLowHalf => kept | missing & 0xffff_ffff,
            CountsFrom::Zero | CountsFrom::Gs => missing,
        };
    }
    let start = address(machine, registers, operand);
    let inside = |p: &Piece| p.start <= start && start + u64::from(operand.size) <= p.end();
    machine.pieces.iter().any(inside)
}

/// The same for an operand without registers: its displacement is changed, in the bytes and
/// in the belief.
pub fn at_displacement(machine: &Executor, code: &[u8], belief: &Belief) -> (Vec<u8>, Belief) {
    let (mut code, mut belief) = (code.to_vec(), belief.clone());
    if let Some(operand) = &mut belief.operand
        && (operand.base, operand.index) == (None, None)
        && operand.from == CountsFrom::GsInLowHalf
    {
        let target = machine.pieces[0].start as u32 + 2048;
        operand.displacement = target as i32;
        let at = operand.displacement_at;
        code[at..at + 4].copy_from_slice(&target.to_le_bytes());
    }
    (code, belief)
}
