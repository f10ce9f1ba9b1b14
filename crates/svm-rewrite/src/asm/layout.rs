//! Layout: chooses the length of each branch, and so the place of everything.
//!
//! It starts with every branch short and lengthens those that do not reach, until all
//! do. Branches never shrink again, so it ends.

use super::{Assembler, Field, Item, Jump, Labels, Position, Reference, Referent};

/// A section after layout.
pub struct Laid {
    /// The bytes; fields that have a relocation hold zero.
    pub bytes: Vec<u8>,
    /// Those that the section could not resolve.
    references: Vec<Reference>,
    sizes: Vec<u32>,
}

impl Laid {
    /// Offset and content of each reference that the section could not resolve.
    pub fn references(&self) -> impl ExactSizeIterator<Item = (u64, Field, Referent)> {
        let references = self.references.iter();
        references.map(|r| (self.offset(r.at), r.field, r.referent))
    }

    /// Offset in the section of a position taken while assembling.
    pub fn offset(&self, p: Position) -> u64 {
        // `sizes[n]` is the size of the first n items together.
        u64::from(p.offset + self.sizes[p.items as usize])
    }
}

impl Assembler {
    /// Chooses branch lengths and gives the final bytes.
    pub fn lay_out(mut self, section: u16, labels: &Labels) -> Laid {
        let sizes = loop {
            let sizes = self.sizes();
            if !self.lengthen(section, labels, &sizes) {
                break sizes;
            }
        };
        let mut laid = Laid {
            bytes: Vec::new(),
            references: std::mem::take(&mut self.references),
            sizes,
        };
        laid.bytes = self.bytes_with_items(labels, &laid);
        laid
    }

    fn sizes(&self) -> Vec<u32> {
        let mut sizes = Vec::with_capacity(self.items.len() + 1);
        let mut sum = 0;
        sizes.push(0);
        for (at, item) in &self.items {
            sum += match *item {
                Item::Branch { jump, long, .. } => match long {
                    true => jump.long_size(),
                    false => 2,
                },
                Item::Skip { .. } => 2,
                Item::Align(align) => (at + sum).wrapping_neg() & (align - 1),
            };
            sizes.push(sum);
        }
        sizes
    }

    fn lengthen(&mut self, section: u16, labels: &Labels, sizes: &[u32]) -> bool {
        let mut changed = false;
        for (i, (at, item)) in self.items.iter_mut().enumerate() {
            let Item::Branch { to, long, .. } = item else {
                continue;
            };
            if *long {
                continue;
            }
            let (there, position) = labels.get(*to);
            debug_assert_eq!(
                there, section,
                "branches out of a section carry a relocation"
            );
            let target = position.offset + sizes[position.items as usize];
            let end = *at + sizes[i + 1];
            if i8::try_from(i64::from(target) - i64::from(end)).is_err() {
                *long = true;
                changed = true;
            }
        }
        changed
    }

    fn bytes_with_items(&self, labels: &Labels, laid: &Laid) -> Vec<u8> {
        let total = *laid.sizes.last().unwrap_or(&0);
        let mut out = Vec::with_capacity(self.bytes.len() + total as usize);
        let mut done = 0;
        for (i, (at, item)) in self.items.iter().enumerate() {
            out.extend_from_slice(&self.bytes[done..*at as usize]);
            done = *at as usize;
            match *item {
                Item::Branch { jump, to, long } => {
                    let end = u64::from(at + laid.sizes[i + 1]);
                    let delta = laid.offset(labels.get(to).1) as i64 - end as i64;
                    push_branch(&mut out, jump, long, delta);
                }
                // The jump that it goes over follows at once.
                Item::Skip { by, .. } => {
                    let jump = laid.sizes[i + 2] - laid.sizes[i + 1];
                    out.extend([by.opcode(), jump as u8]);
                }
                // Unreachable space: a stray jump there stops at once.
                Item::Align(_) => out.resize((at + laid.sizes[i + 1]) as usize, 0xcc),
            }
        }
        out.extend_from_slice(&self.bytes[done..]);
        out
    }
}

fn push_branch(out: &mut Vec<u8>, jump: Jump, long: bool, delta: i64) {
    match (jump, long) {
        (Jump::Call, _) => out.push(0xe8),
        (Jump::Always, false) => out.push(0xeb),
        (Jump::Always, true) => out.push(0xe9),
        (Jump::If(cc), false) => out.push(0x70 | cc),
        (Jump::If(cc), true) => out.extend([0x0f, 0x80 | cc]),
    }
    if long {
        out.extend((delta as i32).to_le_bytes());
    } else {
        out.push(delta as i8 as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Label, ShortOnly, cc};
    use super::*;
    use crate::asm::import::Import;
    use iced_x86::{Decoder, DecoderOptions};

    /// Lays out `jne` over `gap` bytes, forwards or backwards, and gives the
    /// decoded target and the place it should be.
    fn jump_over(gap: usize, forwards: bool) -> (u64, u64, usize) {
        let mut labels = Labels::new(1);
        let mut asm = Assembler::new();
        let filler = vec![0x90; gap];
        if forwards {
            asm.branch(Jump::If(cc::NE), Label(0));
            asm.raw(&filler);
            labels.place(Label(0), 0, asm.here());
            asm.raw(&[0xc3]);
        } else {
            labels.place(Label(0), 0, asm.here());
            asm.raw(&filler);
            asm.branch(Jump::If(cc::NE), Label(0));
        }
        let laid = asm.lay_out(0, &labels);
        let at = if forwards { 0 } else { gap };
        let mut decoder = Decoder::with_ip(64, &laid.bytes[at..], at as u64, DecoderOptions::NONE);
        let jump = decoder.decode();
        (
            jump.near_branch_target(),
            laid.offset(labels.get(Label(0)).1),
            jump.len(),
        )
    }

    #[test]
    fn branches_take_the_shortest_form_that_reaches() {
        for gap in 0..300 {
            let (target, label, length) = jump_over(gap, true);
            assert_eq!(target, label, "forwards over {gap}");
            assert_eq!(
                length,
                if gap <= 127 { 2 } else { 6 },
                "forwards over {gap}"
            );
            let (target, label, length) = jump_over(gap, false);
            assert_eq!(target, label, "backwards over {gap}");
            assert_eq!(
                length,
                if gap + 2 <= 128 { 2 } else { 6 },
                "backwards over {gap}"
            );
        }
    }

    #[test]
    fn lengthening_one_branch_lengthens_those_it_pushes_out_of_reach() {
        // Two interleaved branches, each just in reach while the other is short.
        let mut labels = Labels::new(2);
        let mut asm = Assembler::new();
        asm.branch(Jump::Always, Label(0));
        asm.branch(Jump::Always, Label(1));
        asm.raw(&[0x90; 125]);
        labels.place(Label(0), 0, asm.here());
        asm.raw(&[0x90; 3]);
        labels.place(Label(1), 0, asm.here());
        let laid = asm.lay_out(0, &labels);
        let decoded: Vec<_> = Decoder::new(64, &laid.bytes, DecoderOptions::NONE)
            .iter()
            .take(2)
            .collect();
        assert_eq!(
            decoded[0].near_branch_target(),
            laid.offset(labels.get(Label(0)).1)
        );
        assert_eq!(
            decoded[1].near_branch_target(),
            laid.offset(labels.get(Label(1)).1)
        );
        assert_eq!((decoded[0].len(), decoded[1].len()), (5, 5));
    }

    #[test]
    fn a_short_only_branch_reaches_over_a_jump_of_any_length() {
        for gap in [0, 200] {
            let mut labels = Labels::new(2);
            let mut asm = Assembler::new();
            asm.branch_unless(ShortOnly::JRCXZ, Label(0), Label(1));
            labels.place(Label(1), 0, asm.here());
            asm.raw(&vec![0x90; gap]);
            labels.place(Label(0), 0, asm.here());
            let laid = asm.lay_out(0, &labels);
            let over = laid.offset(labels.get(Label(1)).1);
            assert_eq!(laid.bytes[..2], [0xe3, over as u8 - 2]);
        }
    }

    #[test]
    fn alignment_moves_labels_and_references() {
        let mut labels = Labels::new(1);
        let mut asm = Assembler::new();
        asm.raw(&[0x90; 3]);
        asm.align(16);
        labels.place(Label(0), 0, asm.here());
        asm.branch_out(Jump::Call, Referent::Import(Import::Stlb, 0));
        let laid = asm.lay_out(0, &labels);
        assert_eq!(laid.offset(labels.get(Label(0)).1), 16);
        assert_eq!(laid.bytes[3..16], [0xcc; 13]);
        assert_eq!(laid.references().next().map(|r| r.0), Some(17));
    }
}
