//! Value numbering: finds the registers and words of the frame that hold the same number
//! up to a constant. `mov %rdi,%rbx` copies a number, `add $16,%rax` adds a constant to
//! one, and `mov 8(%rsp),%rcx` loads one that was stored there.
//!
//! Each number has an [`Id`], a new one whenever a register is written with something
//! unknown. Two values with one id differ by their offsets, modulo 2^64, on every path to
//! the place.
//!
//! Words of the frame are those at a constant distance from `rsp`. Any other write to
//! memory may write there too, so it ends all knowledge of these words; so does any
//! instruction that leaves the function.

use iced_x86::{Code, Instruction, OpKind};
use liveness::{LocSet, Reg};

use crate::analyse::survey::{MemoryEffect, Survey};
use crate::asm::Operand;
use crate::lift::Inst;
use crate::registers::gpr;

/// A number that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Id(u32);

/// Gives ids, each once.
#[derive(Clone, Debug, Default)]
pub struct Ids(u32);

impl Ids {
    fn next(&mut self) -> Id {
        self.0 += 1;
        Id(self.0)
    }

    /// So many ids, from this one on.
    fn several(&mut self, count: u32) -> u32 {
        let first = self.0 + 1;
        self.0 += count;
        first
    }

    fn fresh(&mut self) -> NumberedValue {
        let id = self.next();
        NumberedValue { id, offset: 0 }
    }
}

/// A number that has an id, plus an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedValue {
    /// The number that it counts from.
    pub id: Id,
    /// What is added to it.
    pub offset: i32,
}

impl NumberedValue {
    /// The value plus `by`; `None` if the offset does not fit. Offsets in compiled code
    /// do.
    fn plus(self, by: i32) -> Option<NumberedValue> {
        let offset = self.offset.checked_add(by)?;
        Some(NumberedValue { offset, ..self })
    }
}

/// Words of the frame that are followed at a time.
const WORDS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FrameWord {
    /// Its address.
    at: NumberedValue,
    holds: NumberedValue,
}

/// What an instruction does to values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Motion {
    /// `mov %from,%to`, `lea by(%from),%to`, `add $by,%to`.
    Copy {
        /// What is written.
        to: Reg,
        /// What is read.
        from: Reg,
        /// What is added.
        by: i32,
    },
    /// `mov at(%rsp),%to`.
    Load {
        /// What is written.
        to: Reg,
        /// Displacement.
        at: i32,
    },
    /// `mov %from,at(%rsp)`.
    Store {
        /// What is read.
        from: Reg,
        /// Displacement.
        at: i32,
    },
    /// `push %from`.
    Push(Reg),
    /// `pop %to`.
    Pop(Reg),
    /// Writes the registers of its survey with something unknown, and this memory.
    Other(Written),
}

/// Which memory an instruction writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// None.
    Nothing,
    /// These bytes of the frame, by displacement from `rsp`.
    Frame(i32, u16),
    /// Any bytes.
    Anything,
}

impl Motion {
    pub fn of(inst: &Inst, survey: &Survey) -> Motion {
        let iced = &inst.iced;
        let plain = inst.displacement.is_none() && inst.immediate.is_none();
        let known = plain.then(|| known(iced)).flatten();
        known.unwrap_or_else(|| {
            Motion::Other(match (survey.memory, in_frame(iced)) {
                (MemoryEffect::Untouched | MemoryEffect::Read, _) => Written::Nothing,
                (MemoryEffect::Written, Some(at)) if plain && is_simple(iced) => {
                    Written::Frame(at, iced.memory_size().size() as u16)
                }
                (MemoryEffect::Written, _) => Written::Anything,
            })
        })
    }
}

fn known(iced: &Instruction) -> Option<Motion> {
    let first = || gpr(iced.op0_register());
    match iced.code() {
        Code::Mov_r64_rm64 | Code::Mov_rm64_r64 => match (iced.op0_kind(), iced.op1_kind()) {
            (OpKind::Register, OpKind::Register) => Some(Motion::Copy {
                to: first()?,
                from: gpr(iced.op1_register())?,
                by: 0,
            }),
            (OpKind::Register, _) => Some(Motion::Load {
                to: first()?,
                at: in_frame(iced)?,
            }),
            (_, _) => Some(Motion::Store {
                from: gpr(iced.op1_register())?,
                at: in_frame(iced)?,
            }),
        },
        Code::Lea_r64_m => {
            let (base, displacement) = Operand::of(iced).simple()?;
            Some(Motion::Copy {
                to: first()?,
                from: base,
                by: displacement as i32,
            })
        }
        Code::Add_rm64_imm8 | Code::Add_rm64_imm32 if iced.op0_kind() == OpKind::Register => {
            moved(first()?, iced.immediate(1) as i32)
        }
        Code::Sub_rm64_imm8 | Code::Sub_rm64_imm32 if iced.op0_kind() == OpKind::Register => {
            moved(first()?, (iced.immediate(1) as i32).checked_neg()?)
        }
        Code::Push_r64 => Some(Motion::Push(first()?)),
        Code::Pop_r64 => Some(Motion::Pop(first()?)),
        _ => None,
    }
}

fn moved(r: Reg, by: i32) -> Option<Motion> {
    Some(Motion::Copy { to: r, from: r, by })
}

/// The displacement of an operand `disp(%rsp)`.
fn in_frame(iced: &Instruction) -> Option<i32> {
    let (base, displacement) = Operand::of(iced).simple()?;
    (base == Reg::RSP).then_some(displacement as i32)
}

/// Whether it writes only its explicit operand, whose size is known.
fn is_simple(iced: &Instruction) -> bool {
    iced.stack_pointer_increment() == 0
        && iced.memory_size().size() > 0
        && !iced.is_string_instruction()
        && iced.op0_kind() == OpKind::Memory
        && iced.op_kinds().filter(|k| *k == OpKind::Memory).count() == 1
        && !matches!(
            iced.code(),
            Code::Bts_rm16_r16
                | Code::Bts_rm32_r32
                | Code::Bts_rm64_r64
                | Code::Btr_rm16_r16
                | Code::Btr_rm32_r32
                | Code::Btr_rm64_r64
                | Code::Btc_rm16_r16
                | Code::Btc_rm32_r32
                | Code::Btc_rm64_r64
        )
}

/// The values known at a place.
#[derive(Clone, Debug)]
pub struct Values {
    registers: [NumberedValue; 16],
    words: [Option<FrameWord>; WORDS],
    /// The word that the next new one replaces.
    next: u8,
}

impl Values {
    /// Nothing is known.
    pub fn unknown(ids: &mut Ids) -> Values {
        let first = ids.several(Reg::COUNT.into());
        let value = |n| NumberedValue {
            id: Id(first + n as u32),
            offset: 0,
        };
        Values {
            registers: std::array::from_fn(value),
            words: [None; WORDS],
            next: 0,
        }
    }

    /// What a register holds.
    pub fn get(&self, r: Reg) -> NumberedValue {
        self.registers[usize::from(r.number())]
    }

    /// The words of the frame that hold a number plus a constant: displacement from
    /// `rsp`, and constant.
    pub fn words_of(&self, id: Id) -> impl Iterator<Item = (i32, i32)> {
        let top = self.get(Reg::RSP);
        let words = self.words.iter().flatten();
        let holders = words.filter(move |word| word.holds.id == id && word.at.id == top.id);
        holders.filter_map(move |word| {
            let at = word.at.offset.checked_sub(top.offset)?;
            Some((at, word.holds.offset))
        })
    }

    /// Whether a register or a word of the frame holds a number, plus a constant.
    pub fn mention(&self, id: Id) -> bool {
        self.registers.iter().any(|value| value.id == id)
            || self.words.iter().flatten().any(|word| word.holds.id == id)
    }

    fn set(&mut self, r: Reg, value: NumberedValue) {
        self.registers[usize::from(r.number())] = value;
    }

    /// Updates the values over an instruction that stays in the function and changes
    /// the registers `writes`.
    pub fn pass(&mut self, motion: Motion, writes: LocSet, ids: &mut Ids) {
        match motion {
            Motion::Copy { to, from, by } => {
                let value = self.get(from).plus(by);
                self.set(to, value.unwrap_or_else(|| ids.fresh()));
            }
            Motion::Load { to, at } => {
                let value = self.load(at, ids);
                self.set(to, value);
            }
            Motion::Store { from, at } => self.store(at, self.get(from)),
            Motion::Push(from) => {
                let value = self.get(from);
                self.move_stack(-8, ids);
                self.store(0, value);
            }
            Motion::Pop(to) => {
                let value = self.load(0, ids);
                self.move_stack(8, ids);
                self.set(to, value);
            }
            Motion::Other(memory) => {
                match memory {
                    Written::Nothing => {}
                    Written::Frame(at, size) => self.overwrite(at, size.into()),
                    Written::Anything => self.words = [None; WORDS],
                }
                for r in writes.touched_registers() {
                    self.set(r, ids.fresh());
                }
            }
        }
    }

    fn move_stack(&mut self, by: i32, ids: &mut Ids) {
        let value = self.get(Reg::RSP).plus(by);
        self.set(Reg::RSP, value.unwrap_or_else(|| ids.fresh()));
    }

    /// The value of the word at a displacement from `rsp`. An unknown word gets a new id.
    fn load(&mut self, at: i32, ids: &mut Ids) -> NumberedValue {
        let Some(at) = self.get(Reg::RSP).plus(at) else {
            return ids.fresh();
        };
        let found = self.words.iter().flatten().find(|word| word.at == at);
        if let Some(word) = found {
            return word.holds;
        }
        let holds = ids.fresh();
        self.remember(FrameWord { at, holds });
        holds
    }

    fn store(&mut self, at: i32, holds: NumberedValue) {
        self.overwrite(at, 8);
        if let Some(at) = self.get(Reg::RSP).plus(at) {
            self.remember(FrameWord { at, holds });
        }
    }

    fn remember(&mut self, word: FrameWord) {
        let free = self.words.iter().position(Option::is_none);
        let n = free.unwrap_or(usize::from(self.next));
        self.words[n] = Some(word);
        self.next = ((n + 1) % WORDS) as u8;
    }

    fn overwrite(&mut self, at: i32, size: i32) {
        let Some(first) = self.get(Reg::RSP).plus(at) else {
            self.words = [None; WORDS];
            return;
        };
        for slot in &mut self.words {
            let apart = slot.is_some_and(|word| {
                word.at.id == first.id
                    && (word.at.offset.saturating_add(8) <= first.offset
                        || first.offset.saturating_add(size) <= word.at.offset)
            });
            if !apart {
                *slot = None;
            }
        }
    }

    /// Updates the values to those that hold on both paths. Returns the new number for
    /// each pair of old ones.
    pub fn join(&mut self, other: &Values, ids: &mut Ids) -> Pairs {
        let mut pairs = Pairs(Vec::new());
        if self.registers == other.registers && self.words == other.words {
            return pairs;
        }
        pairs.0.reserve(self.registers.len() + WORDS);
        if self.get(Reg::RSP) != other.get(Reg::RSP) {
            self.words = [None; WORDS];
        }
        for (mine, theirs) in self.registers.iter_mut().zip(&other.registers) {
            *mine = pairs.join(*mine, *theirs, ids);
        }
        for slot in &mut self.words {
            *slot = slot.and_then(|word| {
                let same = other.words.iter().flatten().find(|w| w.at == word.at)?;
                let holds = pairs.join(word.holds, same.holds, ids);
                Some(FrameWord { holds, ..word })
            });
        }
        pairs
    }
}

/// Pairs of numbers from two paths that meet, and the number of each pair after that.
pub struct Pairs(Vec<Pair>);

/// A value `mine + n` of the one path that is `theirs + n - distance` on the other is
/// `both + n` after the place where they meet.
#[derive(Clone, Copy)]
struct Pair {
    mine: Id,
    theirs: Id,
    distance: i32,
    both: Id,
}

impl Pairs {
    /// The value that is `mine` on the one path and `theirs` on the other, if some
    /// register or word holds it plus a constant.
    pub fn find(&self, mine: NumberedValue, theirs: NumberedValue) -> Option<NumberedValue> {
        if mine == theirs {
            return Some(mine);
        }
        let distance = mine.offset.checked_sub(theirs.offset)?;
        let wanted = (mine.id, theirs.id, distance);
        let mut pairs = self.0.iter();
        let pair = pairs.find(|pair| (pair.mine, pair.theirs, pair.distance) == wanted)?;
        let id = pair.both;
        Some(NumberedValue { id, ..mine })
    }

    fn join(&mut self, mine: NumberedValue, theirs: NumberedValue, ids: &mut Ids) -> NumberedValue {
        if let Some(value) = self.find(mine, theirs) {
            return value;
        }
        let Some(distance) = mine.offset.checked_sub(theirs.offset) else {
            return ids.fresh();
        };
        let both = ids.next();
        self.0.push(Pair {
            mine: mine.id,
            theirs: theirs.id,
            distance,
            both,
        });
        NumberedValue { id: both, ..mine }
    }
}
