//! Calls and returns: each function has its own return address, and a shadow of it.

use super::{Cpu, ENTRY, SHADOW};

/// Functions that are entered at once, at most.
const DEPTH: usize = 6;

/// A function that was entered.
#[derive(Clone, Copy)]
pub struct Frame {
    /// Where its return address is, and which.
    at: u64,
    word: u64,
    /// Where its caller goes on, if that is in the same code.
    back: Option<u64>,
}

/// Where control goes next, if it stays in the code.
type Next = Result<Option<u64>, String>;

impl Cpu {
    /// A function is entered: its return address is pushed, and it has no shadow yet.
    pub(super) fn enter(&mut self, word: u64, back: Option<u64>) {
        let at = self.regs[4].wrapping_sub(8);
        self.regs[4] = at;
        self.memory.remove(&(at - SHADOW));
        self.put_word(at, word);
        self.frames.push(Frame { at, word, back });
    }

    /// Where the return address of the function is that is executed.
    pub(super) fn entry(&self) -> u64 {
        self.frames.last().map_or(ENTRY, |frame| frame.at)
    }

    /// That return address.
    pub(super) fn word(&self) -> u64 {
        self.frames.last().map_or(0, |frame| frame.word)
    }

    /// A write by pointer hits every return address.
    pub(super) fn overwrite_words(&mut self) {
        for frame in &self.frames {
            self.memory.insert(frame.at + 1, 0x66);
        }
    }

    /// A call of a function in the same code.
    pub(super) fn call(&mut self, target: u64, next: u64) -> Next {
        self.forward()?;
        if self.frames.len() == DEPTH {
            return Ok(None);
        }
        // The caller's own bytes only: a push.
        self.pushed(next)?;
        self.enter(next << 32 | self.frames.len() as u64, Some(next));
        Ok(Some(target))
    }

    /// A call of a routine of the runtime, or of other code.
    pub(super) fn call_routine(&mut self, name: &str, next: u64) -> Next {
        if name == "twin_smashed" {
            return Ok(None);
        }
        if name == "twin_wild" {
            return self.forward().map(|()| None);
        }
        self.pushed(next)?;
        match name.strip_prefix("twin_slow_") {
            Some(r) => {
                let number = slow(r).ok_or("no such register")?;
                self.regs[number] = self.translate(self.regs[number]);
            }
            None if self.left.is_empty() => return Err("a call of another routine".into()),
            None => {
                self.forward()?;
                self.others_ran();
            }
        }
        Ok(Some(next))
    }

    /// `ret`, or a jump to a routine that returns in the function's place.
    pub(super) fn leave(&mut self) -> Next {
        self.forward()?;
        if self.regs[4] != self.entry() {
            return Err("a return with a frame".into());
        }
        let expected = self.word();
        if self.word_at(self.regs[4]) != expected {
            return Err("a return elsewhere".into());
        }
        self.regs[4] = self.regs[4].wrapping_add(8);
        let back = self.frames.pop().and_then(|frame| frame.back);
        if back.is_some() {
            self.others_ran();
        }
        Ok(back)
    }

    /// The direction flag is clear wherever control leaves a function (psABI 3.2.1).
    fn forward(&self) -> Result<(), String> {
        match self.flags.df {
            true => Err("the direction flag where control leaves".into()),
            false => Ok(()),
        }
    }

    /// Other code ran: it leaves anything in the registers, and writes by pointer.
    fn others_ran(&mut self) {
        if self.left.is_empty() {
            return;
        }
        for n in (0..16).filter(|&n| n != 4) {
            self.drawn = self.drawn.wrapping_mul(0x5851_f42d_4c95_7f2d) + 1;
            self.regs[n] = self.left[(self.drawn >> 33) as usize % self.left.len()];
        }
        if self.hostile {
            self.overwrite_words();
        }
    }
}

/// The register of a slow path's name.
fn slow(name: &str) -> Option<usize> {
    let first = ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"];
    let number = first.iter().position(|&n| n == name);
    number.or_else(|| name.strip_prefix('r')?.parse().ok())
}
