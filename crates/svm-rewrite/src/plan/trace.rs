//! Follows one number: the registers and words of the frame that hold it plus a constant,
//! from an instruction on. Only for looking ahead, where a mistake costs one more check
//! and nothing else; sound facts come from [`crate::plan::numbering`].

use liveness::{LocSet, Reg};

use crate::plan::numbering::{Id, Motion, Values, Written};

/// Words of the frame that are followed at a time.
const WORDS: usize = 4;

/// The places that hold the number.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    holders: LocSet,
    /// What each register that holds it has in addition to the number.
    offsets: [i32; 16],
    /// Words that hold it: displacement from where `rsp` was at the beginning, and
    /// offset.
    words: [Option<(i32, i32)>; WORDS],
    /// How far `rsp` has moved since the beginning; `None` if unknown.
    moved: Option<i32>,
}

impl Trace {
    /// Begins with the registers and words that are known to hold it.
    pub fn of(id: Id, values: &Values) -> Trace {
        let mut trace = Trace {
            holders: LocSet::empty(),
            offsets: [0; 16],
            words: [None; WORDS],
            moved: Some(0),
        };
        for r in (0..Reg::COUNT).filter_map(Reg::new) {
            let value = values.get(r);
            if value.id == id {
                trace.hold(r, value.offset);
            }
        }
        let words = values.words_of(id);
        for (slot, word) in trace.words.iter_mut().zip(words) {
            *slot = Some(word);
        }
        trace
    }

    /// What a register has in addition to the number, if it holds it.
    pub fn offset(&self, r: Reg) -> Option<i32> {
        let holds = self.holders.intersects(LocSet::reg(r));
        holds.then(|| self.offsets[usize::from(r.number())])
    }

    /// Whether nothing holds it any more.
    pub fn is_lost(&self) -> bool {
        self.holders.is_empty() && self.words.iter().all(Option::is_none)
    }

    /// Updates the places over an instruction that stays in the function and changes
    /// the registers `writes`.
    pub fn pass(&mut self, motion: Motion, writes: LocSet) {
        match motion {
            Motion::Copy { to, from, by } => {
                if to == Reg::RSP {
                    let moved = self.moved.filter(|_| from == Reg::RSP);
                    self.moved = moved.and_then(|at| at.checked_add(by));
                }
                let held = self.offset(from).and_then(|offset| offset.checked_add(by));
                self.set(to, held);
            }
            Motion::Load { to, at } => self.set(to, self.loaded(at)),
            Motion::Store { from, at } => self.store(at, self.offset(from)),
            Motion::Push(from) => {
                let held = self.offset(from);
                self.move_stack(-8);
                self.store(0, held);
            }
            Motion::Pop(to) => {
                let held = self.loaded(0);
                self.move_stack(8);
                self.set(to, held);
            }
            Motion::Other(memory) => {
                match memory {
                    Written::Nothing => {}
                    Written::Frame(at, size) => self.overwrite(at, size.into()),
                    Written::Anything => self.words = [None; WORDS],
                }
                self.holders = self.holders.minus(writes);
                if writes.intersects(LocSet::reg(Reg::RSP)) {
                    self.moved = None;
                }
            }
        }
    }

    fn hold(&mut self, r: Reg, offset: i32) {
        self.holders = self.holders.union(LocSet::reg(r));
        self.offsets[usize::from(r.number())] = offset;
    }

    fn set(&mut self, r: Reg, held: Option<i32>) {
        match held {
            Some(offset) => self.hold(r, offset),
            None => self.holders = self.holders.minus(LocSet::reg(r)),
        }
    }

    fn move_stack(&mut self, by: i32) {
        self.moved = self.moved.and_then(|at| at.checked_add(by));
        let held = self
            .offset(Reg::RSP)
            .and_then(|offset| offset.checked_add(by));
        self.set(Reg::RSP, held);
    }

    fn loaded(&self, at: i32) -> Option<i32> {
        let at = self.moved?.checked_add(at)?;
        let word = self.words.iter().flatten().find(|word| word.0 == at);
        word.map(|word| word.1)
    }

    fn store(&mut self, at: i32, held: Option<i32>) {
        self.overwrite(at, 8);
        let at = self.moved.and_then(|moved| moved.checked_add(at));
        let free = self.words.iter_mut().find(|slot| slot.is_none());
        if let (Some(at), Some(offset), Some(slot)) = (at, held, free) {
            *slot = Some((at, offset));
        }
    }

    fn overwrite(&mut self, at: i32, size: i32) {
        let first = self.moved.and_then(|moved| moved.checked_add(at));
        for slot in &mut self.words {
            let apart = slot.zip(first).is_some_and(|((word, _), first)| {
                word.saturating_add(8) <= first || first.saturating_add(size) <= word
            });
            if !apart {
                *slot = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::numbering::Ids;

    const NOTHING: LocSet = LocSet::empty();

    /// What `rdi` holds, from a place where nothing is known.
    fn of_rdi() -> Trace {
        let values = Values::unknown(&mut Ids::default());
        Trace::of(values.get(Reg::RDI).id, &values)
    }

    fn other(trace: &mut Trace, memory: Written, writes: Reg) {
        trace.pass(Motion::Other(memory), LocSet::reg(writes));
    }

    #[test]
    fn follows_copies_until_all_are_written() {
        let mut trace = of_rdi();
        let (to, from, by) = (Reg::RBX, Reg::RDI, 16);
        trace.pass(Motion::Copy { to, from, by }, LocSet::reg(to));
        other(&mut trace, Written::Nothing, Reg::RDI);
        assert_eq!(trace.offset(Reg::RBX), Some(16));
        assert_eq!(trace.offset(Reg::RDI), None);
        assert!(!trace.is_lost());
        other(&mut trace, Written::Nothing, Reg::RBX);
        assert!(trace.is_lost());
    }

    #[test]
    fn follows_words_of_the_frame_where_the_stack_pointer_moves() {
        let mut trace = of_rdi();
        trace.pass(Motion::Push(Reg::RDI), NOTHING);
        trace.pass(Motion::Push(Reg::RAX), NOTHING);
        other(&mut trace, Written::Frame(0, 8), Reg::RDI);
        let (to, at) = (Reg::RCX, 8);
        trace.pass(Motion::Load { to, at }, LocSet::reg(to));
        assert_eq!(trace.offset(Reg::RCX), Some(0));
        other(&mut trace, Written::Frame(12, 4), Reg::RCX);
        assert!(trace.is_lost(), "the word's upper half was written");
    }

    #[test]
    fn forgets_words_when_anything_may_be_written() {
        let mut trace = of_rdi();
        let (from, at) = (Reg::RDI, -8);
        trace.pass(Motion::Store { from, at }, NOTHING);
        other(&mut trace, Written::Anything, Reg::RDI);
        assert!(trace.is_lost());
    }
}
