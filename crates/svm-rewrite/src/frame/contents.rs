//! Registers and stack words that hold an address in the function's own frame, as
//! distances from `rsp` at the function's entry.
//!
//! This is needed for `rsp` itself: compilers keep a frame's address in `rbp` or in
//! another callee-saved register, or push it, and set `rsp` to it later. The rewriter
//! moves `rsp` by a constant instead, so that no word in memory decides where `rsp`
//! points. A pushed word is assumed to stay the same until the function itself
//! overwrites it: compilers never pass on the address of a pushed word, nor keep it in memory.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use liveness::{LocSet, Reg};

use crate::analyse::survey::FOLLOWED;
use crate::asm::Operand;
use crate::registers::gpr;

/// A place in the frame, counted from where `rsp` pointed at entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePlace(pub i64);

/// No known distance; no frame is so large.
const UNKNOWN: i32 = i32::MIN;

/// Words that are followed at a time.
const WORDS: usize = 8;

/// As many of them as are kept for what registers of [`FOLLOWED`] hold: `rsp` is set to that.
const RESERVED: usize = 4;

/// The stack words whose contents are known. Kept so that two of these are compared at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Words {
    /// Where each is: a place is listed once, and `UNKNOWN` is none.
    at: [i32; WORDS],
    value: [i32; WORDS],
    /// A bit for each: whether `push` made it, and nothing else has written it.
    pushed: u8,
}

impl Words {
    const NONE: Words = Words {
        at: [UNKNOWN; WORDS],
        value: [UNKNOWN; WORDS],
        pushed: 0,
    };

    /// The number of the word at a place.
    fn find(&self, FramePlace(place): FramePlace) -> Option<usize> {
        self.at.iter().position(|at| i64::from(*at) == place)
    }

    fn is_pushed(&self, n: usize) -> bool {
        self.pushed & 1 << n != 0
    }

    fn clear(&mut self, n: usize) {
        (self.at[n], self.value[n]) = (UNKNOWN, UNKNOWN);
        self.pushed &= !(1 << n);
    }

    /// Bytes are written there.
    fn forget(&mut self, at: i64, size: i64) {
        self.forget_where(at, size, |_| true);
    }

    /// Bytes are written there or elsewhere, by an address that was in memory: by now it may be that
    /// of the next element of a list. It is no pushed word's.
    fn forget_stored(&mut self, at: i64, size: i64) {
        let pushed = self.pushed;
        self.forget_where(at, size, |n| pushed & 1 << n == 0);
    }

    fn forget_where(&mut self, at: i64, size: i64, may_be: impl Fn(usize) -> bool) {
        for n in (0..WORDS).filter(|n| may_be(*n)) {
            let place = i64::from(self.at[n]);
            if place < at + size && at < place + 8 {
                self.clear(n);
            }
        }
    }

    /// A word is written, if there is a free entry from the `first` on.
    fn remember(&mut self, first: usize, at: i32, value: i32, is_pushed: bool) {
        if let Some(n) = (first..WORDS).find(|n| self.at[*n] == UNKNOWN) {
            (self.at[n], self.value[n]) = (at, value);
            self.pushed |= u8::from(is_pushed) << n;
        }
    }

    /// Those that hold the same on both paths.
    fn join(mut self, other: &Words) -> Words {
        for n in 0..WORDS {
            let same = |m: &usize| (other.at[*m], other.value[*m]) == (self.at[n], self.value[n]);
            match (0..WORDS).find(same) {
                Some(m) if other.is_pushed(m) => {}
                Some(_) => self.pushed &= !(1 << n),
                None => self.clear(n),
            }
        }
        self
    }
}

/// What registers hold at a place of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Registers {
    /// By number.
    at: [i32; 16],
    /// Those that point into the frame.
    known: LocSet,
    /// Those of them whose content comes from a word of the frame.
    loaded: LocSet,
}

impl Registers {
    /// What a 64-bit register holds.
    pub fn get(&self, register: Register) -> Option<i64> {
        known(self.at[usize::from(gpr(register)?.number())])
    }

    /// Whether one of these registers points into the frame.
    pub fn knows_any(&self, registers: LocSet) -> bool {
        self.known.intersects(registers)
    }

    /// The registers that point into the frame, with where.
    pub fn pointers(&self) -> impl Iterator<Item = (Reg, i64)> {
        let all = Reg::all().zip(self.at);
        all.filter_map(|(register, at)| Some((register, known(at)?)))
    }

    /// Whether the content of a register comes from a word of the frame.
    pub fn is_loaded(&self, register: Register) -> bool {
        gpr(register).is_some_and(|r| self.loaded.intersects(LocSet::reg(r)))
    }

    /// A register is written with a place of the frame, or with something else.
    fn write(&mut self, register: Reg, at: Option<i64>, is_loaded: bool) {
        let at = stored(at);
        self.at[usize::from(register.number())] = at;
        let register = LocSet::reg(register);
        let when = |is: bool| if is { register } else { LocSet::empty() };
        self.known = self.known.minus(register).union(when(at != UNKNOWN));
        let is_loaded = is_loaded && at != UNKNOWN;
        self.loaded = self.loaded.minus(register).union(when(is_loaded));
    }

    /// The place of a memory operand that has a followed register for its base
    /// and no index. That of `pop` counts from `rsp` after it has moved (SDM volume 2, POP).
    pub fn place(&self, iced: &Instruction) -> Option<FramePlace> {
        let (base, displacement) = Operand::of(iced).simple()?;
        let at = known(self.at[usize::from(base.number())])?;
        let moved = match (iced.mnemonic(), base) {
            (Mnemonic::Pop, Reg::RSP) => i64::from(iced.stack_pointer_increment()),
            _ => 0,
        };
        Some(FramePlace(at + displacement + moved))
    }

    fn join(mut self, other: &Registers) -> Registers {
        let loaded = self.loaded.union(other.loaded);
        for r in self.known.touched_registers() {
            let n = usize::from(r.number());
            if self.at[n] != other.at[n] {
                self.write(r, None, false);
            }
        }
        self.loaded = loaded.intersect(self.known);
        self
    }
}

/// The known contents at a program point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    registers: Registers,
    /// Whether all registers are followed, or only [`FOLLOWED`]. No other register is ever known.
    follows_all: bool,
    words: Words,
}

impl Frame {
    /// At entry: `rsp` points to the return address.
    pub fn at_entry(follows_all: bool) -> Frame {
        let mut at = [UNKNOWN; 16];
        at[Reg::RSP.number() as usize] = 0;
        Frame {
            registers: Registers {
                at,
                known: LocSet::reg(Reg::RSP),
                loaded: LocSet::empty(),
            },
            follows_all,
            words: Words::NONE,
        }
    }

    /// What registers hold.
    pub fn registers(&self) -> &Registers {
        &self.registers
    }

    /// Whether all registers are followed, not only those in which compilers keep addresses
    /// of the frame.
    pub fn follows_all(&self) -> bool {
        self.follows_all
    }

    /// What a 64-bit register holds.
    pub fn get(&self, register: Register) -> Option<i64> {
        self.registers.get(register)
    }

    /// A register is written.
    pub fn set(&mut self, register: Register, value: Option<i64>) {
        self.write(register, value, false);
    }

    /// A register is loaded from a word of the frame that holds this.
    pub fn set_loaded(&mut self, register: Register, value: Option<i64>) {
        // `rsp` is what it is set to: its operands are in the frame in any case.
        self.write(register, value, gpr(register) != Some(Reg::RSP));
    }

    fn write(&mut self, register: Register, value: Option<i64>, is_loaded: bool) {
        if let Some(register) = gpr(register) {
            let is_followed = self.follows_all || FOLLOWED.contains(LocSet::reg(register));
            let value = value.filter(|_| is_followed);
            self.registers.write(register, value, is_loaded);
        }
    }

    /// A register is loaded from a place of the frame. Where all registers are followed, a word
    /// that was pushed is taken to be what was pushed: compilers make no objects by `push` that
    /// others write.
    pub fn load_into(&mut self, register: Register, from: Option<FramePlace>) {
        let word = from.and_then(|at| self.words.find(at));
        let value = word.and_then(|n| known(self.words.value[n]));
        match self.follows_all() && word.is_some_and(|n| self.words.is_pushed(n)) {
            true => self.set(register, value),
            false => self.set_loaded(register, value),
        }
    }

    /// Two registers are exchanged.
    pub fn exchange(&mut self, a: Register, b: Register) {
        let before = self.registers;
        self.copy(a, b, 0);
        let value = before.get(a);
        match before.is_loaded(a) {
            true => self.set_loaded(b, value),
            false => self.set(b, value),
        }
    }

    /// A register gets the content of another one plus a constant.
    pub fn copy(&mut self, to: Register, from: Register, by: i64) {
        let value = self.get(from).map(|at| at + by);
        match self.registers.is_loaded(from) {
            true => self.set_loaded(to, value),
            false => self.set(to, value),
        }
    }

    /// `push` of a register, or of something that is not followed.
    pub fn push(&mut self, register: Option<Register>) {
        let value = register.and_then(|r| self.get(r));
        let rsp = self.get(Register::RSP).map(|rsp| rsp - 8);
        self.set(Register::RSP, rsp);
        let Some(at) = rsp else { return };
        self.words.forget(at, 8);
        self.remember(at, value, register.unwrap_or(Register::None), true);
    }

    /// The instruction may write its memory operand; if that is in the frame, the words
    /// there become unknown or get a new content.
    pub fn store(&mut self, iced: &Instruction) {
        if iced.op_count() == 0 || iced.op0_kind() != OpKind::Memory {
            return;
        }
        let Some(FramePlace(at)) = self.registers.place(iced) else {
            return;
        };
        if matches!(
            iced.mnemonic(),
            Mnemonic::Push | Mnemonic::Cmp | Mnemonic::Test
        ) {
            return;
        }
        let size = iced.memory_size().size() as i64;
        match self.registers.is_loaded(iced.memory_base()) {
            true => self.words.forget_stored(at, size),
            false => self.words.forget(at, size),
        }
        let word = iced.op1_kind() == OpKind::Register && iced.op1_register().is_gpr64();
        let is_free = self.words.find(FramePlace(at)).is_none();
        if iced.mnemonic() == Mnemonic::Mov && word && is_free {
            let from = iced.op1_register();
            self.remember(at, self.get(from), from, false);
        }
    }

    /// Any other instruction: the registers that it writes become unknown, but for `rsp`.
    pub fn overwrite(&mut self, written: LocSet) {
        let written = written.minus(LocSet::reg(Reg::RSP));
        let known = self.registers.known.intersect(written);
        for r in known.touched_registers() {
            self.registers.write(r, None, false);
        }
    }

    /// After a call: only callee-saved registers are still known (psABI 3.2.1), and none that
    /// the callee may have `lost`.
    pub fn called(&mut self, lost: LocSet) {
        const CLOBBERED: LocSet = LocSet::reg(Reg::RAX)
            .union(LocSet::reg(Reg::RCX))
            .union(LocSet::reg(Reg::RDX))
            .union(LocSet::reg(Reg::RSI))
            .union(LocSet::reg(Reg::RDI))
            .union(LocSet::reg(Reg::R8))
            .union(LocSet::reg(Reg::R9))
            .union(LocSet::reg(Reg::R10))
            .union(LocSet::reg(Reg::R11));
        self.overwrite(CLOBBERED.union(lost));
    }

    /// What holds on both paths.
    pub fn join(&self, other: &Frame) -> Frame {
        // Nearly always equal.
        let words = match self.words == other.words {
            true => self.words,
            false => self.words.join(&other.words),
        };
        Frame {
            registers: self.registers.join(&other.registers),
            follows_all: self.follows_all,
            words,
        }
    }

    fn remember(&mut self, at: i64, value: Option<i64>, from: Register, is_pushed: bool) {
        let is_kept = gpr(from).is_some_and(|r| FOLLOWED.contains(LocSet::reg(r)));
        let first = if is_kept { 0 } else { RESERVED };
        if let (Some(value), Ok(at)) = (value, i32::try_from(at)) {
            self.words
                .remember(first, at, stored(Some(value)), is_pushed);
        }
    }
}

fn known(value: i32) -> Option<i64> {
    (value != UNKNOWN).then_some(i64::from(value))
}

fn stored(value: Option<i64>) -> i32 {
    value.and_then(|v| i32::try_from(v).ok()).unwrap_or(UNKNOWN)
}

#[cfg(test)]
mod tests {
    use iced_x86::{Code, MemoryOperand};

    use super::*;

    /// The frame after `mov %rsp,%rbp` and a store of `from` to `-8(%rsp)`.
    fn after_store(code: Code, from: Register) -> Frame {
        let to = MemoryOperand::with_base_displ(Register::RSP, -8);
        let store = Instruction::with2(code, to, from).expect("a store");
        let mut frame = Frame::at_entry(false);
        frame.set(Register::RBP, Some(0));
        frame.store(&store);
        frame
    }

    #[test]
    fn half_of_a_frame_pointer_is_none() {
        let whole = after_store(Code::Mov_rm64_r64, Register::RBP);
        let value = |frame: Frame| {
            frame
                .words
                .find(FramePlace(-8))
                .map(|n| frame.words.value[n])
        };
        assert_eq!(value(whole), Some(0));
        let half = after_store(Code::Mov_rm32_r32, Register::EBP);
        assert_eq!(value(half), None);
    }
}
