//! From one instruction to the next: calls, returns, and what the kernel does when it is called.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::{
    DEPTH, ENTRY, End, Frame, HEAP, IMPORT, KERNEL, Machine, PAGES, PUT_USER, RSP, SLOW, STACK,
    STACK_SIZE, Step, TEXT, WINDOWS,
};

impl Machine<'_> {
    pub(super) fn step(&mut self) -> Step<()> {
        if self.random.one_in(12) {
            self.spoil();
        }
        let rip = self.rip;
        if !self.starts.contains(&rip) {
            return Err(End::Breach(format!(
                "{:#x} is no instruction",
                rip.wrapping_sub(TEXT)
            )));
        }
        let bytes = &self.text[(rip - TEXT) as usize..];
        let i = Decoder::with_ip(64, bytes, rip, DecoderOptions::NONE).decode();
        let rsp = self.regs[RSP];
        self.trace.push((i, rsp.wrapping_sub(ENTRY) as i64));
        self.rip = i.next_ip();
        let before = self.regs;
        match self.execute(&i) {
            Err(End::Stopped("fault")) => {
                self.regs = before;
                self.rip = self.fixups[&rip];
                Ok(())
            }
            other => other,
        }
    }

    pub(super) fn branch(&mut self, to: u64, i: &Instruction) -> Step<()> {
        match to {
            IMPORT => {
                self.leave(i)?;
                self.kernel(None)
            }
            _ => {
                self.rip = to;
                Ok(())
            }
        }
    }

    /// The frame is empty, and the return address as it was.
    pub(super) fn leave(&mut self, i: &Instruction) -> Step<()> {
        let frame = self.frames.last().expect("a frame");
        let (at, word) = (frame.at, frame.word);
        if self.regs[RSP] != at {
            return Err(self.fault("the frame is not empty".into(), i));
        }
        let start = (at - STACK) as usize;
        let found = u64::from_le_bytes(self.stack[start..start + 8].try_into().expect("a word"));
        match found == word {
            true => Ok(()),
            false => Err(self.fault("another return address".into(), i)),
        }
    }

    pub(super) fn returned(&mut self) -> Step<()> {
        let frame = self.frames.pop().expect("a frame");
        self.regs[RSP] = frame.at + 8;
        match frame.resume {
            Some((rip, rsp)) => {
                self.regs[RSP] = rsp;
                self.called();
                match rip {
                    0 => self.returned(),
                    _ => {
                        self.rip = rip;
                        Ok(())
                    }
                }
            }
            None if frame.word == KERNEL => Err(End::Returned),
            None => {
                self.rip = frame.word;
                Ok(())
            }
        }
    }

    /// What callees may leave.
    pub(super) fn called(&mut self) {
        for r in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
            self.regs[r] = self.number();
        }
    }

    /// A routine of the kernel is called, or jumped to. It may call the module back.
    pub(super) fn kernel(&mut self, back: Option<u64>) -> Step<()> {
        self.spoil();
        let rsp = self.regs[RSP];
        if self.random.one_in(4) && self.frames.len() < 5 && rsp > STACK + 0x2000 {
            self.called();
            self.regs[RSP] = rsp - 0x900;
            self.enter(1, KERNEL + 1, Some((back.unwrap_or(0), rsp)));
            return Ok(());
        }
        self.called();
        match back {
            Some(rip) => {
                self.rip = rip;
                Ok(())
            }
            None => self.returned(),
        }
    }

    pub(super) fn call(&mut self, to: u64, i: &Instruction) -> Step<()> {
        let back = i.next_ip();
        match to {
            IMPORT => {
                // Its return address is written and read again.
                self.push(back, i)?;
                self.regs[RSP] += 8;
                self.kernel(Some(back))
            }
            PUT_USER => {
                self.push(back, i)?;
                self.regs[RSP] += 8;
                self.spoil();
                self.called();
                self.regs[3] = self.number();
                Ok(())
            }
            SLOW.. if to < SLOW + 256 => {
                let r = ((to - SLOW) >> 4) as usize;
                let address = self.regs[r];
                if (STACK - 0x1000..STACK + STACK_SIZE + 0x1000).contains(&address) {
                    return Err(End::Stopped("a pointer to the stack"));
                }
                if !(HEAP..HEAP + PAGES * 0x1000).contains(&address) {
                    return Err(End::Stopped("a wild pointer"));
                }
                let page = (address - HEAP) >> 12;
                self.regs[r] = WINDOWS + page * 0x4000 + 0x1000 + (address & 0xfff);
                Ok(())
            }
            _ if self.frames.len() > DEPTH => Err(End::Stopped("depth")),
            _ => {
                self.push(back, i)?;
                let at = self.regs[RSP];
                self.frames.push(Frame {
                    at,
                    word: back,
                    resume: None,
                });
                self.rip = to;
                Ok(())
            }
        }
    }
}
