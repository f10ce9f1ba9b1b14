//! String instructions, element by element.

use iced_x86::{Instruction, Mnemonic};

use super::{Cpu, FAULT};

/// Elements that one instruction reaches at most in a window: then it faults, as at a guard.
const ELEMENTS: u32 = 64;

impl Cpu {
    pub(super) fn string(&mut self, i: &Instruction) -> Result<(), String> {
        let size = i.memory_size().size();
        let delta = if self.flags.df {
            (size as u64).wrapping_neg()
        } else {
            size as u64
        };
        let rep = i.has_rep_prefix() || i.has_repne_prefix();
        let mut reached = 0;
        loop {
            if rep && self.regs[1] == 0 {
                return Ok(());
            }
            if self.has_window() && reached == ELEMENTS {
                return Err(FAULT.into());
            }
            reached += 1;
            let (mut compared, mut moves) = (None, (false, true));
            match i.mnemonic().to_string_kind() {
                'm' => {
                    let value = self.read(self.regs[6], size)?;
                    self.write(self.regs[7], size, value)?;
                    moves.0 = true;
                }
                's' => self.write(self.regs[7], size, self.regs[0])?,
                'l' => {
                    let value = self.read(self.regs[6], size)?;
                    self.regs[0] = value;
                    moves = (true, false);
                }
                'c' => {
                    compared = Some((
                        self.read(self.regs[6], size)?,
                        self.read(self.regs[7], size)?,
                    ));
                    moves.0 = true;
                }
                _ => compared = Some((self.regs[0], self.read(self.regs[7], size)?)),
            }
            if moves.0 {
                self.regs[6] = self.regs[6].wrapping_add(delta);
            }
            if moves.1 {
                self.regs[7] = self.regs[7].wrapping_add(delta);
            }
            if let Some((a, b)) = compared {
                self.arithmetic_flags(Mnemonic::Cmp, a, b, a.wrapping_sub(b), size);
            }
            if !rep {
                return Ok(());
            }
            self.regs[1] = self.regs[1].wrapping_sub(1);
            if compared.is_some() && self.flags.zf == i.has_repne_prefix() {
                return Ok(());
            }
        }
    }
}

trait StringInstruction {
    fn to_string_kind(self) -> char;
}

impl StringInstruction for Mnemonic {
    fn to_string_kind(self) -> char {
        use Mnemonic::*;
        match self {
            Movsb | Movsw | Movsd | Movsq => 'm',
            Stosb | Stosw | Stosd | Stosq => 's',
            Lodsb | Lodsw | Lodsd | Lodsq => 'l',
            Cmpsb | Cmpsw | Cmpsd | Cmpsq => 'c',
            _ => 'a',
        }
    }
}
