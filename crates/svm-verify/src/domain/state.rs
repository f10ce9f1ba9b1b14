//! The facts at a program point and the operations that change them.

use super::{Addresses, Direction, Flags, Form, Kept, Name, Returns, Saved, Value};
use crate::domain::bounds;
use crate::insn::{Access, Gpr, GprSet, MemoryOperand, Origin, StringKind};

/// A name whose instruction would give the same number again: it reads only
/// registers, and none of them was written since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// The name that the instruction gives.
    pub name: Name,
    /// What it reads.
    pub inputs: GprSet,
}

/// Names that some fact may mention; no fact mentions a name that is not here. One bit
/// for all names that are equal modulo 64. It saves the search for facts about a name
/// that is given for the first time; outside of loops, this is every name.
#[derive(Clone, Copy, Debug, Default)]
struct Mentioned(u64);

impl Mentioned {
    /// Adds a name. False if it was certainly not here.
    fn add(&mut self, x: Name) -> bool {
        let bit = 1 << (x.0.get() % 64);
        let found = self.0 & bit != 0;
        self.0 |= bit;
        found
    }
}

/// It is not a fact itself: a name that it lacks, no fact mentions.
impl PartialEq for Mentioned {
    fn eq(&self, _: &Mentioned) -> bool {
        true
    }
}

impl Eq for Mentioned {}

/// The facts at a program point.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The general-purpose registers. `rsp` is always [`Form::Stack`], or
    /// [`Form::Aligned`] where [`State::realigned`] is known.
    regs: [Value; 16],
    /// `rsp` before it was aligned, relative to its value at entry. [`Form::Aligned`] is
    /// relative to the aligned `rsp`.
    pub realigned: Option<i32>,
    /// How far below that the aligned `rsp` is at most, in bytes.
    pub alignment: i32,
    /// Frame addresses in words of the frame.
    pub saved: Saved,
    /// The caller's registers.
    pub kept: Kept,
    /// Addresses by which code may be reached (target `linux`).
    pub addresses: Addresses,
    /// The status flags.
    pub flags: Flags,
    /// The address whose page is proved to be the tag of its entry
    /// (scheme `paper`).
    pub matched: Option<Name>,
    /// The last address computed from registers alone, while it can be recomputed.
    pub again: Option<Again>,
    /// The direction flag, if known.
    pub direction: Option<Direction>,
    /// The return address (target `hypervisor`).
    pub returns: Returns,
    /// Every name that is mentioned above went through [`State::rename`] first.
    mentioned: Mentioned,
}

impl State {
    /// At a function's entry: the stack is empty, DF is clear (psABI 3.2.1).
    pub fn entry() -> State {
        let mut regs = [Value::ANY; 16];
        regs[usize::from(Gpr::RSP.0)] = Value::of(Form::Stack(0));
        State {
            regs,
            realigned: None,
            alignment: 0,
            saved: Saved::NONE,
            kept: Kept::NOTHING,
            addresses: Addresses::default(),
            flags: Flags::Unknown,
            matched: None,
            again: None,
            direction: Some(Direction::Forward),
            returns: Returns::ENTRY,
            mentioned: Mentioned::default(),
        }
    }

    /// What register `r` holds.
    pub fn get(&self, r: Gpr) -> Value {
        self.regs[usize::from(r.0 & 15)]
    }

    /// `rsp` relative to its value at entry, in bytes; zero or negative.
    pub fn rsp(&self) -> i32 {
        match self.get(Gpr::RSP).form {
            Form::Stack(at) | Form::Aligned(at) => at,
            // Never: `write` keeps `rsp` out and `set_rsp` sets this form. The
            // answer fits no frame, so that whatever relies on it fails.
            _ => i32::MIN,
        }
    }

    /// Register `r`, not `rsp`, is written with `value`.
    pub fn write(&mut self, r: Gpr, value: Value) {
        self.forget(r.set());
        self.kept.written(r.set());
        self.addresses.forget(r.set());
        if r != Gpr::RSP {
            self.regs[usize::from(r.0 & 15)] = value;
        }
    }

    /// More is known of what register `r`, not `rsp`, holds: nothing writes it.
    pub fn learn(&mut self, r: Gpr, value: Value) {
        if r != Gpr::RSP {
            self.regs[usize::from(r.0 & 15)] = value;
        }
    }

    /// `rsp` is moved to `at`. False, and `rsp` stays, if that is above the
    /// entry or may be deeper than [`twin_abi::stack::MAX_FRAME`].
    #[must_use]
    pub fn set_rsp(&mut self, at: i64) -> bool {
        if !bounds::in_frame(at) {
            return false;
        }
        let form = match self.get(Gpr::RSP).form {
            Form::Aligned(_) => Form::Aligned(at as i32),
            _ => Form::Stack(at as i32),
        };
        if !self.lowest(form).is_some_and(bounds::in_frame) {
            return false;
        }
        self.forget(Gpr::RSP.set());
        self.regs[usize::from(Gpr::RSP.0)] = Value::of(form);
        let realigned = self.realigned;
        let stays = |place| above(form, realigned, place).is_some();
        self.saved.keep(stays);
        self.kept.keep(stays);
        if form == Form::Stack(0) {
            // The next function may align its stack anew.
            self.forget_alignment();
            self.saved = Saved::NONE;
        }
        true
    }

    /// Where a place of the frame is at the lowest, relative to `rsp` at entry.
    pub fn lowest(&self, place: Form) -> Option<i64> {
        match (place, self.realigned) {
            (Form::Stack(at), _) => Some(at.into()),
            (Form::Aligned(at), Some(from)) => {
                Some(i64::from(at) + i64::from(from) - i64::from(self.alignment))
            }
            _ => None,
        }
    }

    /// Forgets where the stack was aligned, and all facts relative to that.
    fn forget_alignment(&mut self) {
        (self.realigned, self.alignment) = (None, 0);
        self.saved.forget_aligned();
        self.kept.forget_aligned();
        for value in &mut self.regs {
            if let Form::Aligned(_) | Form::LoadedAligned(_) = value.form {
                value.form = Form::Any;
            }
        }
    }

    /// `size` bytes are written at a place of the frame, with `form` if that is a word.
    /// The word is remembered only where no other code writes: at or above `rsp`, and
    /// below the return address.
    pub fn store(&mut self, at: Form, size: u16, form: Form) {
        let form = match self.is_own(at) {
            true => form,
            false => Form::Any,
        };
        self.saved.write(at, size, form, self.realigned);
        self.kept.overwrite(at, size, self.realigned);
    }

    /// The same of register `s`.
    pub fn store_register(&mut self, at: Form, size: u16, s: Gpr, form: Form) {
        self.store(at, size, form);
        if size == 8 && self.is_own(at) {
            self.kept.save(s, at);
        }
    }

    /// Whether a word of the frame is one that no other code writes.
    fn is_own(&self, at: Form) -> bool {
        let own = match (at, self.realigned) {
            (Form::Stack(at), _) => at <= -8,
            // The aligned part begins at or below where `rsp` was before.
            (Form::Aligned(at), Some(from)) => i64::from(at) + i64::from(from) <= -8,
            _ => false,
        };
        own && above(self.get(Gpr::RSP).form, self.realigned, at).is_some()
    }

    /// Where a memory operand lies in the frame, if it does.
    pub fn frame_place(&self, m: &MemoryOperand) -> Option<Form> {
        let in_frame = !m.indexed && m.origin == Origin::Registers;
        self.get(m.base).form.moved(m.disp).filter(|_| in_frame)
    }

    /// Forgets the words of the frame that an operand writes.
    pub fn forget_written(&mut self, m: &MemoryOperand) {
        if m.access == Access::Write
            && let Some(at) = self.frame_place(m)
        {
            self.store(at, m.size, Form::Any);
        }
    }

    /// Bytes from `rsp` up to the return address, at least, and up to the first
    /// saved word.
    pub fn room(&self) -> (i64, i64) {
        let rsp = self.get(Gpr::RSP).form;
        let end = above(rsp, self.realigned, Form::Stack(0)).unwrap_or(0);
        let words = self.saved.places().chain(self.kept.places());
        let words = words.filter_map(|place| above(rsp, self.realigned, place));
        (end, words.fold(i64::MAX, i64::min))
    }

    /// A callee writes so many bytes from `rsp` up.
    pub fn forget_arguments(&mut self, bytes: i64) {
        let (rsp, realigned) = (self.get(Gpr::RSP).form, self.realigned);
        let stays = |place| above(rsp, realigned, place).is_some_and(|at| at >= bytes);
        self.saved.keep(stays);
        self.kept.keep(stays);
    }

    /// The bytes that a string instruction reaches, if a constant in `rcx` bounds them: how far from
    /// its pointers the first one is, and how many they are.
    pub fn extent(&self, shift: u8, rep: bool) -> Option<(i32, u16)> {
        let elements = match (rep, self.get(Gpr::RCX).form) {
            (false, _) => 1,
            (true, Form::Below(most)) => u16::from(most),
            (true, _) => return None,
        };
        let (all, others) = (elements << shift, elements.saturating_sub(1) << shift);
        Some(match self.direction {
            Some(Direction::Forward) => (0, all),
            Some(Direction::Backward) => (-i32::from(others), all),
            None => (-i32::from(others), all + others),
        })
    }

    /// A string instruction may write in the frame.
    pub fn forget_strings(&mut self, kind: StringKind, shift: u8, rep: bool) {
        let at = self.get(Gpr::RDI).form.trusted();
        if kind.writes() && at.in_frame() {
            let extent = self.extent(shift, rep);
            let known = extent.and_then(|(from, bytes)| Some((at.moved(from)?, bytes)));
            let (first, bytes) = known.unwrap_or((at, 1 << shift));
            self.store(first, bytes, Form::Any);
            // Those of `kept` stay. How far it goes is the count's affair: it may as well reach the
            // return address (`docs/proof/linux.md`, P1).
            if known.is_none() || self.direction != Some(Direction::Forward) {
                self.saved = Saved::NONE;
            }
        }
    }

    /// `rsp` is set to an address in the frame. False, and `rsp` stays, if it is
    /// none, or out of bounds as with [`State::set_rsp`].
    #[must_use]
    pub fn set_rsp_to(&mut self, form: Form) -> bool {
        let before = self.get(Gpr::RSP);
        let form = form.trusted();
        let (Form::Stack(at) | Form::Aligned(at)) = form else {
            return false;
        };
        self.regs[usize::from(Gpr::RSP.0)] = Value::of(form);
        let done = self.set_rsp(i64::from(at));
        if !done {
            self.regs[usize::from(Gpr::RSP.0)] = before;
        }
        done
    }

    /// Drops the facts, other than those of registers, that rely on one of `written`.
    fn forget(&mut self, written: GprSet) {
        if self.flags.speaks_of(written) {
            self.flags = Flags::Unknown;
        }
        if self
            .again
            .is_some_and(|again| again.inputs.0 & written.0 != 0)
        {
            self.again = None;
        }
    }

    /// Forgets the values of `written`, except `rsp`.
    pub fn clobber(&mut self, written: GprSet) {
        self.forget(written);
        self.kept.written(written);
        self.addresses.forget(written);
        for r in written.iter().filter(|&r| r != Gpr::RSP) {
            self.regs[usize::from(r.0)] = Value::ANY;
        }
    }

    /// Something else may have written `registers`, or nothing: addresses may be left there.
    pub fn lose(&mut self, registers: GprSet) {
        let addresses = self.addresses;
        self.clobber(registers);
        self.addresses = addresses;
    }

    /// Instruction `x` is executed: its name means a new number from here on.
    pub fn rename(&mut self, x: Name) {
        if !self.mentioned.add(x) {
            debug_assert!(!self.mentions(x), "a name that was not given");
            return;
        }
        for value in &mut self.regs {
            if value.name == Some(x) {
                value.name = None;
            }
            value.form = value.form.without(x);
        }
        if self.flags.mentions(x) {
            self.flags = Flags::Unknown;
        }
        if self.matched == Some(x) {
            self.matched = None;
        }
        if self.again.is_some_and(|again| again.name == x) {
            self.again = None;
        }
    }

    /// Whether any fact is about a name.
    fn mentions(&self, x: Name) -> bool {
        let value = |v: &Value| v.name == Some(x) || v.form.mentions(x);
        self.regs.iter().any(value)
            || self.flags.mentions(x)
            || self.matched == Some(x)
            || self.again.is_some_and(|again| again.name == x)
    }

    /// Instruction `x` is executed and names the number that register `r` holds. If the
    /// number had another name, the new name replaces it in all facts, as both mean that
    /// number. So names after an instruction do not depend on the path to it.
    pub fn name(&mut self, r: Gpr, x: Name) {
        let old = self.get(r).name;
        if old != Some(x) {
            self.rename(x);
        }
        if let Some(old) = old {
            for value in &mut self.regs {
                if value.name == Some(old) {
                    value.name = Some(x);
                }
                value.form = value.form.renamed(old, x);
            }
        }
        if r != Gpr::RSP {
            self.regs[usize::from(r.0 & 15)].name = Some(x);
        }
    }

    /// After a call: only `rsp` is known, that DF is clear, and the facts about the
    /// return address that a callee cannot change.
    pub fn called(&mut self) {
        let (rsp, returns) = (self.get(Gpr::RSP), self.returns);
        *self = State::entry();
        self.regs[usize::from(Gpr::RSP.0)] = rsp;
        self.returns = returns;
        self.written_by_pointer();
    }

    /// Any place that a pointer leads to may have been written, including the return
    /// address.
    pub fn written_by_pointer(&mut self) {
        self.returns.intact = false;
        if self.flags == Flags::ReturnWord {
            self.flags = Flags::Unknown;
        }
    }

    /// After a call where callees are trusted to keep the registers of the psABI (3.2.1):
    /// frame addresses in those registers and in the frame stay. An address may be left
    /// in any register: a callee writes those that it needs, and one without a result not even
    /// `rax`.
    pub fn called_by_psabi(&mut self) {
        let before = self.clone();
        self.called();
        (self.realigned, self.alignment) = (before.realigned, before.alignment);
        self.saved = before.saved;
        self.kept = before.kept;
        for r in [Gpr::RBX, Gpr::RBP, Gpr(12), Gpr(13), Gpr(14), Gpr(15)] {
            let form = before.get(r).form;
            if form.trusted().in_frame() {
                self.regs[usize::from(r.0)] = Value::of(form);
            }
        }
        self.addresses = before.addresses;
    }

    /// Keeps only the facts that `other` has as well. True if any was dropped. The caller
    /// has made sure that `rsp` agrees.
    pub fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.regs.iter_mut().zip(&other.regs) {
            // Most are unknown and stay so.
            if !mine.is_any() && *mine != *theirs {
                let joined = mine.join(*theirs);
                changed |= joined != *mine;
                *mine = joined;
            }
        }
        changed |= self.saved.join(&other.saved);
        changed |= self.kept.join(&other.kept);
        changed |= self.addresses.join(other.addresses);
        if self.realigned != other.realigned && self.realigned.is_some() {
            // Both may count from there, each from its own.
            self.forget_alignment();
            changed = true;
        }
        if self.realigned.is_some() && self.alignment < other.alignment {
            self.alignment = other.alignment;
            changed = true;
        }
        changed |= keep(&mut self.flags, &other.flags, Flags::Unknown);
        changed |= keep(&mut self.matched, &other.matched, None);
        changed |= keep(&mut self.again, &other.again, None);
        changed |= keep(&mut self.direction, &other.direction, None);
        changed |= self.returns.join(other.returns);
        // `mentioned` stays: what is left was among the own facts.
        changed
    }
}

/// How many bytes a place of the frame is above `rsp`, at least; `None` if it may be
/// below. The aligned part begins at or below `realigned`, where `rsp` was.
fn above(rsp: Form, realigned: Option<i32>, place: Form) -> Option<i64> {
    let distance = match (place, rsp) {
        (Form::Stack(at), Form::Stack(rsp)) | (Form::Aligned(at), Form::Aligned(rsp)) => {
            i64::from(at) - i64::from(rsp)
        }
        (Form::Stack(at), Form::Aligned(rsp)) => {
            i64::from(at) - i64::from(realigned?) - i64::from(rsp)
        }
        _ => return None,
    };
    (distance >= 0).then_some(distance)
}

/// Replaces a fact by `unknown` unless the other side agrees.
fn keep<T: PartialEq>(mine: &mut T, theirs: &T, unknown: T) -> bool {
    let drop = mine != theirs && *mine != unknown;
    if drop {
        *mine = unknown;
    }
    drop
}

#[cfg(test)]
mod tests {
    use twin_abi::stack;

    use super::super::Bound;
    use super::*;

    const X: u32 = 7;

    fn bound(n: u32) -> Bound {
        Bound {
            from: Name::of(n),
            shift: 3,
            direction: Direction::Forward,
        }
    }

    #[test]
    fn a_name_executed_again_means_nothing_to_older_facts() {
        let x = Name::of(X);
        let forms = [
            Form::Low32(x),
            Form::Shifted(x),
            Form::Page(x),
            Form::PageBits(x),
            Form::Index(x),
            Form::Offset(x),
            Form::Checked(x),
            Form::PageOffset(x, 0),
            Form::Count(bound(X), None),
        ];
        for form in forms {
            let mut s = State::entry();
            s.rename(x);
            s.write(
                Gpr::RAX,
                Value {
                    name: Some(x),
                    form,
                },
            );
            s.flags = Flags::Tag(x);
            s.matched = Some(x);
            s.again = Some(Again {
                name: x,
                inputs: GprSet::NONE,
            });
            s.rename(x);
            assert_eq!(s, State::entry(), "{form:?}");
        }
        let translated = Form::Translated(Some(x));
        assert_eq!(translated.without(x), Form::Translated(None));
        let both = Form::Count(bound(X), Some(Name::of(1)));
        assert_eq!(both.without(x), Form::Count(bound(1), None));
    }

    #[test]
    fn joins_keep_what_agrees_and_report_what_they_drop() {
        let mut a = State::entry();
        a.write(Gpr::RAX, Value::of(Form::Translated(Some(Name::of(1)))));
        a.write(
            Gpr::RCX,
            Value::of(Form::Count(bound(1), Some(Name::of(2)))),
        );
        let mut b = State::entry();
        b.write(Gpr::RAX, Value::of(Form::Translated(Some(Name::of(2)))));
        b.write(Gpr::RCX, Value::of(Form::Count(bound(2), None)));
        assert!(a.join(&b));
        assert_eq!(a.get(Gpr::RAX).form, Form::Translated(None));
        assert_eq!(a.get(Gpr::RCX).form, Form::Count(bound(2), None));
        let again = a.clone();
        assert!(!a.join(&again));
        b.direction = Some(Direction::Backward);
        assert!(a.join(&b) && a.direction.is_none());
    }

    #[test]
    fn rsp_stays_between_the_entry_and_the_deepest_frame() {
        let mut s = State::entry();
        assert!(!s.set_rsp(8) && !s.set_rsp(-stack::MAX_FRAME - 1));
        assert!(s.set_rsp(-stack::MAX_FRAME));
        s.clobber(GprSet(0xffff));
        s.write(Gpr::RSP, Value::ANY);
        assert_eq!(i64::from(s.rsp()), -stack::MAX_FRAME);
    }

    #[test]
    fn writing_a_register_forgets_what_relied_on_it() {
        let mut s = State::entry();
        s.again = Some(Again {
            name: Name::of(X),
            inputs: Gpr::RDI.set().or(Gpr::RSP.set()),
        });
        s.flags = Flags::Compared {
            left: Gpr::RAX,
            right: Gpr::RCX,
        };
        s.write(Gpr::RCX, Value::ANY);
        assert_eq!(s.flags, Flags::Unknown);
        assert!(s.again.is_some() && s.set_rsp(-8) && s.again.is_none());
    }
}
