//! What instructions compute: conditions, operands, results and flags.

use iced_x86::{Code, ConditionCode, Instruction, Mnemonic, OpKind, Register};

use super::{Cpu, StatusFlags, mask, window::constant};

impl Cpu {
    pub(super) fn holds(&self, i: &Instruction) -> bool {
        let f = self.flags;
        match i.condition_code() {
            ConditionCode::None => match i.code() {
                Code::Jrcxz_rel8_64 => self.regs[1] == 0,
                _ => true,
            },
            ConditionCode::o => f.of,
            ConditionCode::no => !f.of,
            ConditionCode::b => f.cf,
            ConditionCode::ae => !f.cf,
            ConditionCode::e => f.zf,
            ConditionCode::ne => !f.zf,
            ConditionCode::be => f.cf || f.zf,
            ConditionCode::a => !f.cf && !f.zf,
            ConditionCode::s => f.sf,
            ConditionCode::ns => !f.sf,
            ConditionCode::p => f.pf,
            ConditionCode::np => !f.pf,
            ConditionCode::l => f.sf != f.of,
            ConditionCode::ge => f.sf == f.of,
            ConditionCode::le => f.zf || f.sf != f.of,
            ConditionCode::g => !f.zf && f.sf == f.of,
        }
    }

    /// The memory operand's address. A relocation is the displacement, whatever
    /// the bytes are (psABI 4.4: S + A); symbols are zero here.
    fn address(&self, i: &Instruction, name: Option<(&str, i64)>) -> u64 {
        let part = |r: Register| if r == Register::None { 0 } else { self.get(r) };
        let sum = part(i.memory_base())
            .wrapping_add(part(i.memory_index()).wrapping_mul(u64::from(i.memory_index_scale())))
            .wrapping_add(name.map_or(i.memory_displacement64(), |(_, addend)| addend as u64));
        let (base, index) = (i.memory_base(), i.memory_index());
        let alone = base == Register::None && index == Register::None;
        let narrow = base.size() == 4
            || index.size() == 4
            || alone && name.is_none() && i.memory_displ_size() == 4;
        let cut = if narrow { sum & 0xffff_ffff } else { sum };
        match i.segment_prefix() {
            Register::GS => cut.wrapping_add(self.segment_base()),
            _ => cut,
        }
    }

    /// A symbol's value, or a table access.
    fn operand(
        &mut self,
        i: &Instruction,
        n: u32,
        name: Option<(&str, i64)>,
    ) -> Result<u64, String> {
        if i.op_kind(n) == OpKind::Register {
            return Ok(self.get(i.op_register(n)));
        }
        if let Some(value) = constant(name) {
            return Ok(value);
        }
        match i.op_kind(n) {
            OpKind::Memory => {
                let at = self.address(i, name);
                match name {
                    Some(("twin_stlb", _)) => self.table(at),
                    _ => self.read(at, i.memory_size().size()),
                }
            }
            _ => Ok(name.map_or(i.immediate(n), |(_, addend)| addend as u64)),
        }
    }

    fn store(&mut self, i: &Instruction, value: u64) -> Result<(), String> {
        match i.op0_kind() {
            OpKind::Register => {
                self.set(i.op0_register(), value);
                Ok(())
            }
            _ => self.write(self.address(i, None), i.memory_size().size(), value),
        }
    }

    pub(super) fn data(
        &mut self,
        i: &Instruction,
        name: Option<(&str, i64)>,
    ) -> Result<(), String> {
        use Mnemonic::*;
        let size = match i.op0_kind() {
            OpKind::Register => i.op0_register().size(),
            _ => i.memory_size().size(),
        };
        if i.is_string_instruction() {
            return self.string(i);
        }
        match i.mnemonic() {
            Nop | Prefetcht0 | Endbr64 => Ok(()),
            Mov | Movzx => {
                let value = self.operand(i, 1, name)?;
                self.store(i, value)
            }
            Pext => {
                let (a, bits) = (self.operand(i, 1, name)?, self.operand(i, 2, name)?);
                let places = (0..64).filter(|n| bits >> n & 1 != 0);
                let value = places.enumerate().map(|(to, from)| (a >> from & 1) << to);
                self.set(i.op0_register(), value.sum());
                Ok(())
            }
            Lea => {
                self.set(i.op0_register(), self.address(i, name));
                Ok(())
            }
            Xchg => {
                let (a, b) = (self.operand(i, 0, name)?, self.operand(i, 1, name)?);
                self.store(i, b)?;
                self.set(i.op1_register(), a);
                Ok(())
            }
            Push => {
                let value = self.operand(i, 0, name)?;
                self.push(value)
            }
            Pop => {
                let value = self.pop()?;
                self.store(i, value)
            }
            Cmova | Cmovae | Cmovb | Cmovbe | Cmove | Cmovne => {
                let value = self.operand(i, 1, name)?;
                let old = self.get(i.op0_register());
                let value = if self.holds(i) { value } else { old };
                self.store(i, value)
            }
            Seto => {
                let value = u64::from(self.flags.of);
                self.store(i, value)
            }
            Cld | Std => {
                self.flags.df = i.mnemonic() == Std;
                Ok(())
            }
            Lahf => {
                let f = self.flags;
                let ah = [(f.sf, 7), (f.zf, 6), (f.pf, 2), (true, 1), (f.cf, 0)];
                let ah = ah
                    .iter()
                    .fold(0, |v, &(bit, at)| v | (u64::from(bit) << at));
                self.set(Register::AH, ah);
                Ok(())
            }
            Sahf => {
                let ah = self.get(Register::AH);
                let bit = |n: u32| ah & (1 << n) != 0;
                let f = self.flags;
                self.flags = StatusFlags {
                    sf: bit(7),
                    zf: bit(6),
                    pf: bit(2),
                    cf: bit(0),
                    ..f
                };
                Ok(())
            }
            Inc | Dec | Not | Neg => {
                let a = self.operand(i, 0, name)?;
                let (value, op) = match i.mnemonic() {
                    Inc => (a.wrapping_add(1), Some(Add)),
                    Dec => (a.wrapping_sub(1), Some(Sub)),
                    Neg => (a.wrapping_neg(), None),
                    _ => (!a, None),
                };
                if let Some(op) = op {
                    let cf = self.flags.cf;
                    self.arithmetic_flags(op, a, 1, value, size);
                    self.flags.cf = cf;
                }
                self.store(i, value)
            }
            op => {
                let (a, b) = (self.operand(i, 0, name)?, self.operand(i, 1, name)?);
                if op == Bts && self.has_window() && b >= size as u64 * 8 {
                    return Err("a bit that is not in the operand".into());
                }
                let value = match op {
                    Add => a.wrapping_add(b),
                    Sub | Cmp => a.wrapping_sub(b),
                    And | Test => a & b,
                    Or => a | b,
                    Xor => a ^ b,
                    Shr => (a & mask(size)) >> (b & 63 & (size as u64 * 8 - 1)),
                    Shl => a << (b & 63 & (size as u64 * 8 - 1)),
                    Bts => a | 1 << (b & (size as u64 * 8 - 1)),
                    _ => return Err(format!("the machine does not know {op:?}")),
                };
                if !matches!(op, Bts) {
                    self.arithmetic_flags(op, a, b, value, size);
                }
                if matches!(op, Cmp | Test) {
                    Ok(())
                } else {
                    self.store(i, value)
                }
            }
        }
    }

    pub(super) fn arithmetic_flags(
        &mut self,
        op: Mnemonic,
        a: u64,
        b: u64,
        value: u64,
        size: usize,
    ) {
        let (a, b, v) = (a & mask(size), b & mask(size), value & mask(size));
        let sign = |x: u64| x & (1 << (size.clamp(1, 8) * 8 - 1)) != 0;
        let (cf, of) = match op {
            Mnemonic::Add => (v < a, sign(a) == sign(b) && sign(v) != sign(a)),
            Mnemonic::Sub | Mnemonic::Cmp => (a < b, sign(a) != sign(b) && sign(v) != sign(a)),
            _ => (false, false),
        };
        let pf = (v as u8).count_ones().is_multiple_of(2);
        self.flags = StatusFlags {
            cf,
            of,
            zf: v == 0,
            sf: sign(v),
            pf,
            ..self.flags
        };
    }
}
