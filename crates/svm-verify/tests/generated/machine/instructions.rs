//! What instructions compute.

use iced_x86::{ConditionCode, Instruction, Mnemonic, OpKind};

use super::{End, Flags, Machine, RSP, Step};

impl Machine<'_> {
    pub(super) fn result(&mut self, value: u64, size: u64) {
        let value = value & mask(size);
        self.flags.zf = value == 0;
        self.flags.sf = value >> (8 * size - 1) & 1 == 1;
        self.flags.pf = (value as u8).count_ones().is_multiple_of(2);
    }

    pub(super) fn sub(&mut self, a: u64, b: u64, size: u64) -> u64 {
        let value = a.wrapping_sub(b) & mask(size);
        self.flags.cf = a < b;
        self.flags.of = ((a ^ b) & (a ^ value)) >> (8 * size - 1) & 1 == 1;
        self.result(value, size);
        value
    }

    pub(super) fn add(&mut self, a: u64, b: u64, size: u64) -> u64 {
        let value = a.wrapping_add(b) & mask(size);
        self.flags.cf = value < a;
        self.flags.of = (!(a ^ b) & (a ^ value)) >> (8 * size - 1) & 1 == 1;
        self.result(value, size);
        value
    }

    pub(super) fn holds(&self, condition: ConditionCode) -> bool {
        let Flags { cf, zf, sf, of, pf } = self.flags;
        use ConditionCode as C;
        match condition {
            C::o => of,
            C::no => !of,
            C::b => cf,
            C::ae => !cf,
            C::e => zf,
            C::ne => !zf,
            C::be => cf || zf,
            C::a => !cf && !zf,
            C::s => sf,
            C::ns => !sf,
            C::p => pf,
            C::np => !pf,
            C::l => sf != of,
            C::ge => sf == of,
            C::le => zf || sf != of,
            C::g => !zf && sf == of,
            C::None => true,
        }
    }

    pub(super) fn execute(&mut self, i: &Instruction) -> Step<()> {
        use Mnemonic as M;
        let size = Machine::size(i, 0).min(8);
        match i.mnemonic() {
            M::Nop | M::Endbr64 | M::Pause | M::Cld => Ok(()),
            M::In | M::Out => {
                for r in [0, 1, 2, 3, 6, 7] {
                    self.regs[r] = self.number();
                }
                Ok(())
            }
            M::Ud2 if self.warnings.contains(&i.ip()) => Ok(()),
            M::Int3 | M::Ud2 => Err(End::Stopped("a trap")),
            M::Mov | M::Movups => {
                let value = match i.op_kind(1) {
                    OpKind::Register if !i.op_register(1).is_gpr() => self.number(),
                    _ => self.get(i, 1)?,
                };
                match i.op_kind(0) == OpKind::Register && !i.op_register(0).is_gpr() {
                    true => Ok(()),
                    false => self.put(i, 0, value),
                }
            }
            M::Movzx => {
                let value = self.get(i, 1)?;
                self.put(i, 0, value)
            }
            M::Movsxd => {
                let value = self.get(i, 1)? as i32;
                self.put(i, 0, value as i64 as u64)
            }
            M::Lea => self.put(i, 0, self.address(i)),
            M::Add | M::Sub | M::And | M::Or | M::Xor | M::Cmp | M::Test => {
                let (a, b) = (self.get(i, 0)?, self.get(i, 1)?);
                let value = match i.mnemonic() {
                    M::Add => self.add(a, b, size),
                    M::Sub | M::Cmp => self.sub(a, b, size),
                    logic => {
                        let value = match logic {
                            M::Or => a | b,
                            M::Xor => a ^ b,
                            _ => a & b,
                        };
                        (self.flags.cf, self.flags.of) = (false, false);
                        self.result(value, size);
                        value
                    }
                };
                match i.mnemonic() {
                    M::Cmp | M::Test => Ok(()),
                    _ => self.put(i, 0, value),
                }
            }
            M::Inc | M::Dec => {
                let (a, cf) = (self.get(i, 0)?, self.flags.cf);
                let value = match i.mnemonic() {
                    M::Inc => self.add(a, 1, size),
                    _ => self.sub(a, 1, size),
                };
                self.flags.cf = cf;
                self.put(i, 0, value)
            }
            M::Not => {
                let a = self.get(i, 0)?;
                self.put(i, 0, !a)
            }
            M::Neg => {
                let a = self.get(i, 0)?;
                let value = self.sub(0, a, size);
                self.put(i, 0, value)
            }
            M::Adc | M::Sbb => {
                let (a, b, carry) = (self.get(i, 0)?, self.get(i, 1)?, u64::from(self.flags.cf));
                let value = match i.mnemonic() {
                    M::Adc => self.add(a, b.wrapping_add(carry) & mask(size), size),
                    _ => self.sub(a, b.wrapping_add(carry) & mask(size), size),
                };
                self.put(i, 0, value)
            }
            M::Shr | M::Shl | M::Sar => {
                let (a, n) = (self.get(i, 0)?, self.get(i, 1)? & (8 * size - 1).max(31));
                let value = match i.mnemonic() {
                    M::Shr => a >> n.min(63),
                    M::Shl => a << n.min(63),
                    _ => ((a << (64 - 8 * size)) as i64 >> (64 - 8 * size) >> n.min(63)) as u64,
                };
                self.result(value, size);
                self.put(i, 0, value)
            }
            M::Xchg => {
                let (a, b) = (self.get(i, 0)?, self.get(i, 1)?);
                let (memory, other) = match i.op_kind(0) {
                    OpKind::Memory => (0, 1),
                    _ => (1, 0),
                };
                let (to_memory, to_other) = if memory == 0 { (b, a) } else { (a, b) };
                self.put(i, memory, to_memory)?;
                self.put(i, other, to_other)
            }
            M::Push => {
                let value = self.get(i, 0)?;
                self.push(value, i)
            }
            M::Pop => {
                let value = self.pop(i)?;
                self.put(i, 0, value)
            }
            M::Leave => {
                self.regs[RSP] = self.regs[5];
                self.regs[5] = self.pop(i)?;
                Ok(())
            }
            M::Ret => {
                self.leave(i)?;
                self.returned()
            }
            M::Call if i.op_kind(0) == OpKind::NearBranch64 => self.call(i.near_branch64(), i),
            M::Jmp if i.op_kind(0) == OpKind::NearBranch64 => self.branch(i.near_branch64(), i),
            _ if i.is_jcc_short_or_near() => match self.holds(i.condition_code()) {
                true => self.branch(i.near_branch64(), i),
                false => Ok(()),
            },
            other if i.condition_code() != ConditionCode::None => {
                let holds = self.holds(i.condition_code());
                match i.op_count() {
                    1 => self.put(i, 0, holds.into()),
                    2 => {
                        let (old, new) = (self.get(i, 0)?, self.get(i, 1)?);
                        self.put(i, 0, if holds { new } else { old })
                    }
                    _ => Err(End::Unknown(other)),
                }
            }
            other => Err(End::Unknown(other)),
        }
    }
}

/// The bits of so many bytes.
pub(super) fn mask(size: u64) -> u64 {
    if size >= 8 {
        u64::MAX
    } else {
        (1 << (8 * size)) - 1
    }
}
