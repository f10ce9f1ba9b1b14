//! What is known about the machine at a program point, and how two such
//! knowledges meet.
//!
//! # The lattice
//!
//! A [`State`] is a set of facts. Fewer facts describe more machines, so the
//! top knows nothing, and a join keeps the facts that both sides state
//! ([`State::join`]). Nothing is ever added by a join and a state has finitely
//! many facts, so going up ends: that is the fixpoint's termination.
//!
//! # Names
//!
//! Facts relate registers to unknown 64-bit numbers. Such a number is named by
//! the instruction that made it: [`Name`] `X` means *the value that
//! instruction X gave when it was last executed*. `mov %rdi,%rax` at X leaves
//! both registers with the name X, and `mov %eax,%ecx` then makes `%ecx` the
//! low half of that number.
//!
//! Why this is sound: along one execution, at one moment, every name that was
//! executed has exactly one meaning. A fact about X is true when it is made.
//! It can become false in two ways only: a register that it speaks of is
//! written, then [`State::write`] replaces the fact; or X is executed again and
//! the name means another number, then [`State::rename`] has dropped every
//! older fact that mentions X. Facts that survive a join hold on both paths,
//! each with its own meaning of the names, and nothing compares meanings of
//! different paths. An instruction that names a number which already has a name
//! ([`State::name`]) replaces the old name in all facts, as both mean that
//! number.
//!
//! A value has a name and a form, independently: the address of a local
//! variable is a *stack* form and, once copied for a check, has a name as well.

use std::num::NonZeroU32;

use twin_abi::stack;

/// A general-purpose register by its number in the encoding: `rax rcx rdx rbx
/// rsp rbp rsi rdi r8 ... r15`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reg(pub u8);

impl Reg {
    /// `%rax`.
    pub const RAX: Reg = Reg(0);
    /// `%rcx`.
    pub const RCX: Reg = Reg(1);
    /// `%rsp`.
    pub const RSP: Reg = Reg(4);
    /// `%rbp`.
    pub const RBP: Reg = Reg(5);
    /// `%rsi`.
    pub const RSI: Reg = Reg(6);
    /// `%rdi`.
    pub const RDI: Reg = Reg(7);

    /// The set with this register alone.
    pub fn set(self) -> RegSet {
        RegSet(1 << self.0)
    }
}

/// A set of general-purpose registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegSet(pub u16);

impl RegSet {
    /// No register.
    pub const NONE: RegSet = RegSet(0);

    /// Whether the register is in the set.
    pub fn has(self, r: Reg) -> bool {
        self.0 & r.set().0 != 0
    }

    /// The registers in the set.
    pub fn iter(self) -> impl Iterator<Item = Reg> {
        let mut left = self.0;
        std::iter::from_fn(move || {
            let r = Reg((left != 0).then(|| left.trailing_zeros() as u8)?);
            left &= left - 1;
            Some(r)
        })
    }

    /// Registers in either set.
    pub fn or(self, other: RegSet) -> RegSet {
        RegSet(self.0 | other.0)
    }
}

/// The instruction that made a value, by its number in the object, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub NonZeroU32);

impl Name {
    /// The name that instruction number `index`, from 0, gives.
    pub fn of(index: u32) -> Name {
        Name(NonZeroU32::MIN.saturating_add(index))
    }

    /// The number of the instruction, from 0.
    pub fn instruction(self) -> u32 {
        self.0.get() - 1
    }
}

/// Direction of a string instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// DF = 0, towards higher addresses.
    Forward,
    /// DF = 1.
    Backward,
}

/// At most as many elements of `1 << shift` bytes as a translation of `from`
/// covers from there in that direction, the one at `from` included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// The address that they begin at.
    pub from: Name,
    /// log2 of the element's size in bytes.
    pub shift: u8,
    /// Where the others lie.
    pub direction: Direction,
}

/// What is known about a register apart from its name. `V(X)` is the number
/// that X names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing.
    Any,
    /// `rsp` at the function's entry plus this many bytes.
    Stack(i32),
    /// `rsp` as the function's `and $-N,%rsp` left it plus this many bytes
    /// (target `linux`).
    Aligned(i32),
    /// `rsp | (BLOCK - 1)`: the last byte of the CPU's block.
    ContextTop,
    /// `V(X) & 0xffff_ffff`.
    Low32(Name),
    /// `(V(X) & 0xffff_ffff) >> INDEX_SHIFT`.
    Shifted(Name),
    /// `V(X) & -PAGE_SIZE`.
    Page(Name),
    /// `V(X) & (INDEX_MASK << INDEX_SHIFT)`.
    PageBits(Name),
    /// `(V(X) >> INDEX_SHIFT) & INDEX_MASK`: byte offset of X's table entry.
    Index(Name),
    /// `V(X)` minus the tag in X's entry.
    Offset(Name),
    /// The same, proved less than a page: the tag is that of X's page.
    Checked(Name),
    /// What a check or the slow path made of an address, of `V(X)` if a name
    /// is given: the [`twin_abi::stlb::BELOW`] bytes before it and the
    /// [`twin_abi::stlb::COVERED`] from it on are dom0's or in a hole.
    Translated(Option<Name>),
    /// `(V(X) & (PAGE_SIZE - 1)) >> shift`.
    PageOffset(Name, u8),
    /// Within one or two bounds, alike but for where they begin: the pointers
    /// of one string instruction.
    Count(Bound, Option<Name>),
    /// At most this.
    Below(u8),
}

impl Form {
    /// Whether the form speaks of `V(x)`.
    fn mentions(self, x: Name) -> bool {
        match self {
            Form::Any | Form::Stack(_) | Form::Aligned(_) | Form::ContextTop | Form::Below(_) => {
                false
            }
            Form::Low32(n)
            | Form::Shifted(n)
            | Form::Page(n)
            | Form::PageBits(n)
            | Form::Index(n)
            | Form::Offset(n)
            | Form::Checked(n)
            | Form::PageOffset(n, _) => n == x,
            Form::Translated(n) => n == Some(x),
            Form::Count(a, b) => a.from == x || b == Some(x),
        }
    }

    /// What is left of the form when `V(x)` is forgotten.
    fn without(self, x: Name) -> Form {
        match self {
            form if !form.mentions(x) => form,
            // Its translation stays a translation, of an address without name.
            Form::Translated(_) => Form::Translated(None),
            Form::Count(..) => count(self.bounds().into_iter().flatten().filter(|b| b.from != x)),
            _ => Form::Any,
        }
    }

    /// The form when `V(new)` is the same number as `V(old)`.
    fn renamed(self, old: Name, new: Name) -> Form {
        let rename = |name: Name| if name == old { new } else { name };
        match self {
            form if !form.mentions(old) => form,
            Form::Any | Form::Stack(_) | Form::Aligned(_) | Form::ContextTop | Form::Below(_) => {
                self
            }
            Form::Low32(_) => Form::Low32(new),
            Form::Shifted(_) => Form::Shifted(new),
            Form::Page(_) => Form::Page(new),
            Form::PageBits(_) => Form::PageBits(new),
            Form::Index(_) => Form::Index(new),
            Form::Offset(_) => Form::Offset(new),
            Form::Checked(_) => Form::Checked(new),
            Form::Translated(_) => Form::Translated(Some(new)),
            Form::PageOffset(_, shift) => Form::PageOffset(new, shift),
            Form::Count(a, b) => {
                let from = rename(a.from);
                Form::Count(Bound { from, ..a }, b.map(rename).filter(|&b| b != from))
            }
        }
    }

    /// What holds if the one or the other holds.
    fn join(self, other: Form) -> Form {
        match (self, other) {
            (a, b) if a == b => a,
            (Form::Translated(_), Form::Translated(_)) => Form::Translated(None),
            (Form::Count(..), Form::Count(..)) => {
                let theirs = other.bounds();
                count(
                    self.bounds()
                        .into_iter()
                        .flatten()
                        .filter(|&b| theirs.contains(&Some(b))),
                )
            }
            _ => Form::Any,
        }
    }

    /// So many bytes further, if it is an address in the frame.
    pub fn moved(self, by: i32) -> Option<Form> {
        match self {
            Form::Stack(at) => at.checked_add(by).map(Form::Stack),
            Form::Aligned(at) => at.checked_add(by).map(Form::Aligned),
            _ => None,
        }
    }

    /// The bounds of a count; none for anything else.
    pub fn bounds(self) -> [Option<Bound>; 2] {
        match self {
            Form::Count(a, b) => [Some(a), b.map(|from| Bound { from, ..a })],
            _ => [None, None],
        }
    }

    /// The form of the smaller of two numbers: within the bounds of each.
    pub fn minimum(self, other: Form) -> Form {
        let mine = self.bounds();
        let theirs = other
            .bounds()
            .into_iter()
            .flatten()
            .filter(|&b| !mine.contains(&Some(b)));
        count(mine.into_iter().flatten().chain(theirs))
    }
}

/// The form of a number within these bounds. Two are kept, an instruction has no
/// more pointers; and only if they are alike, as it has one size and direction.
fn count(mut bounds: impl Iterator<Item = Bound>) -> Form {
    let Some(a) = bounds.next() else {
        return Form::Any;
    };
    let alike = |b: &Bound| (b.shift, b.direction) == (a.shift, a.direction) && b.from != a.from;
    Form::Count(a, bounds.find(alike).map(|b| b.from))
}

/// What is known about one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The number that it holds, if that has a name.
    pub name: Option<Name>,
    /// What else is known.
    pub form: Form,
}

impl Value {
    /// Nothing is known.
    pub const ANY: Value = Value {
        name: None,
        form: Form::Any,
    };

    /// Only the form is known.
    pub fn of(form: Form) -> Value {
        Value { name: None, form }
    }

    fn join(self, other: Value) -> Value {
        let name = if self.name == other.name {
            self.name
        } else {
            None
        };
        Value {
            name,
            form: self.form.join(other.form),
        }
    }
}

/// What the status flags say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// Nothing that matters.
    Unknown,
    /// `cmp $PAGE_SIZE-1, %v` where `%v` is [`Form::Offset`] of the name.
    Window {
        /// `%v`, not written since.
        register: Reg,
        /// The address.
        address: Name,
    },
    /// `cmp twin_stlb(%i), %p`: the page of the name with the tag of its entry.
    Tag(Name),
    /// `cmp %right, %left`, both 64 bits wide and not written since.
    Compared {
        /// Minuend.
        left: Reg,
        /// Subtrahend.
        right: Reg,
    },
}

impl Flags {
    fn mentions(self, x: Name) -> bool {
        matches!(self, Flags::Window { address, .. } | Flags::Tag(address) if address == x)
    }

    fn speaks_of(self, written: RegSet) -> bool {
        match self {
            Flags::Unknown | Flags::Tag(_) => false,
            Flags::Window { register, .. } => written.has(register),
            Flags::Compared { left, right } => written.has(left) || written.has(right),
        }
    }
}

/// A name whose instruction would give the same number again: it reads only
/// registers, and none of them was written since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Again {
    /// The instruction.
    pub name: Name,
    /// What it reads.
    pub inputs: RegSet,
}

/// Names that some fact may mention; one that is not here, none does. A bit for
/// all names that are equal modulo 64. It saves the search for facts about a name
/// that is given for the first time, which outside of loops is each.
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

/// It is no fact itself: what it leaves out, the facts leave out.
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
    /// Where `rsp` was, from its value at entry, when it was aligned.
    pub realigned: Option<i32>,
    /// Frame addresses in words of the frame.
    pub saved: Saved,
    /// The status flags.
    pub flags: Flags,
    /// The address whose page is proved to be the tag of its entry
    /// (scheme `paper`).
    pub matched: Option<Name>,
    /// The last address computed from registers alone, while recomputable.
    pub again: Option<Again>,
    /// The direction flag, if known.
    pub direction: Option<Direction>,
    /// Every name that is mentioned above went through [`State::rename`] first.
    mentioned: Mentioned,
}

impl State {
    /// At a function's entry: the stack is empty, DF is clear (psABI 3.2.1).
    pub fn entry() -> State {
        let mut regs = [Value::ANY; 16];
        regs[usize::from(Reg::RSP.0)] = Value::of(Form::Stack(0));
        State {
            regs,
            realigned: None,
            saved: Saved::NONE,
            flags: Flags::Unknown,
            matched: None,
            again: None,
            direction: Some(Direction::Forward),
            mentioned: Mentioned::default(),
        }
    }

    /// What register `r` holds.
    pub fn get(&self, r: Reg) -> Value {
        self.regs[usize::from(r.0 & 15)]
    }

    /// Where `rsp` points, from where it pointed at entry; zero or negative.
    pub fn rsp(&self) -> i32 {
        match self.get(Reg::RSP).form {
            Form::Stack(at) | Form::Aligned(at) => at,
            // Never: `write` keeps `rsp` out and `set_rsp` sets this form. The
            // answer fits no frame, so that whatever relies on it fails.
            _ => i32::MIN,
        }
    }

    /// Register `r`, not `rsp`, is written with `value`.
    pub fn write(&mut self, r: Reg, value: Value) {
        self.forget(r.set());
        if r != Reg::RSP {
            self.regs[usize::from(r.0 & 15)] = value;
        }
    }

    /// `rsp` is moved to `at`. False, and `rsp` stays, if that is above the
    /// entry or deeper than [`stack::MAX_FRAME`].
    #[must_use]
    pub fn set_rsp(&mut self, at: i64) -> bool {
        if !(-stack::MAX_FRAME..=0).contains(&at) {
            return false;
        }
        self.forget(Reg::RSP.set());
        let form = match self.get(Reg::RSP).form {
            Form::Aligned(_) => Form::Aligned(at as i32),
            _ => Form::Stack(at as i32),
        };
        self.regs[usize::from(Reg::RSP.0)] = Value::of(form);
        self.saved.popped(form);
        if form == Form::Stack(0) {
            // The next function may align its stack anew.
            self.realigned = None;
            self.saved = Saved::NONE;
        }
        true
    }

    /// `rsp` is set to an address in the frame. False, and `rsp` stays, if it is
    /// none, or out of bounds as with [`State::set_rsp`].
    #[must_use]
    pub fn set_rsp_to(&mut self, form: Form) -> bool {
        let before = self.get(Reg::RSP);
        let (Form::Stack(at) | Form::Aligned(at)) = form else {
            return false;
        };
        self.regs[usize::from(Reg::RSP.0)] = Value::of(form);
        let done = self.set_rsp(i64::from(at));
        if !done {
            self.regs[usize::from(Reg::RSP.0)] = before;
        }
        done
    }

    /// Drops the facts beside the registers that rely on one of `written`.
    fn forget(&mut self, written: RegSet) {
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

    /// Nothing is known of `written` any more; `rsp` is left out.
    pub fn clobber(&mut self, written: RegSet) {
        self.forget(written);
        for r in written.iter().filter(|&r| r != Reg::RSP) {
            self.regs[usize::from(r.0)] = Value::ANY;
        }
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

    /// Instruction `x` is executed and names the number that register `r`
    /// holds. If it had another name, that means the same number, and what is
    /// known of registers by the old name is known by the new one from here
    /// on. So names after an instruction do not depend on the path to it.
    pub fn name(&mut self, r: Reg, x: Name) {
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
        if r != Reg::RSP {
            self.regs[usize::from(r.0 & 15)].name = Some(x);
        }
    }

    /// After a call: nothing but `rsp` is known, and DF is clear.
    pub fn called(&mut self) {
        let rsp = self.get(Reg::RSP);
        *self = State::entry();
        self.regs[usize::from(Reg::RSP.0)] = rsp;
    }

    /// After a call where callees are trusted to keep what the psABI (3.2.1)
    /// says: frame addresses in those registers and in the frame stay.
    pub fn called_by_psabi(&mut self) {
        let before = self.clone();
        self.called();
        self.realigned = before.realigned;
        self.saved = before.saved;
        for r in [Reg(3), Reg::RBP, Reg(12), Reg(13), Reg(14), Reg(15)] {
            if let form @ (Form::Stack(_) | Form::Aligned(_)) = before.get(r).form {
                self.regs[usize::from(r.0)] = Value::of(form);
            }
        }
    }

    /// Keeps what `other` knows as well. True if something was dropped. The
    /// caller has made sure that `rsp` agrees.
    pub fn join(&mut self, other: &State) -> bool {
        let mut changed = false;
        for (mine, theirs) in self.regs.iter_mut().zip(&other.regs) {
            if *mine != *theirs {
                let joined = mine.join(*theirs);
                changed |= joined != *mine;
                *mine = joined;
            }
        }
        changed |= keep(&mut self.realigned, &other.realigned, None);
        changed |= self.saved.join(&other.saved);
        changed |= keep(&mut self.flags, &other.flags, Flags::Unknown);
        changed |= keep(&mut self.matched, &other.matched, None);
        changed |= keep(&mut self.again, &other.again, None);
        changed |= keep(&mut self.direction, &other.direction, None);
        // `mentioned` stays: what is left was among the own facts.
        changed
    }
}

/// Words of the frame that hold an address of the frame: where, and which.
/// Compilers keep a frame pointer there, and nobody else gets the address of
/// such a word: whoever relies on it relies on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Saved([(Form, Form); 4]);

impl Saved {
    /// None.
    pub const NONE: Saved = Saved([(Form::Any, Form::Any); 4]);

    /// What the word at a place holds.
    pub fn get(&self, at: Form) -> Form {
        let found = self.0.iter().find(|(place, _)| *place == at);
        found.map_or(Form::Any, |(_, form)| *form)
    }

    /// `size` bytes are written at a place, with `form` if that is a word.
    /// Places from the two origins may be the same: an alignment apart.
    pub fn write(&mut self, at: Form, size: u16, form: Form) {
        for word in &mut self.0 {
            let apart = match (word.0, at) {
                (Form::Stack(a), Form::Stack(b)) | (Form::Aligned(a), Form::Aligned(b)) => {
                    i64::from(a) >= i64::from(b) + i64::from(size)
                        || i64::from(b) >= i64::from(a) + 8
                }
                (Form::Any, _) => true,
                _ => false,
            };
            if !apart {
                *word = (Form::Any, Form::Any);
            }
        }
        let frame = matches!(form, Form::Stack(_) | Form::Aligned(_)) && size == 8;
        let free = self.0.iter_mut().find(|(place, _)| *place == Form::Any);
        if let (true, Some(word)) = (frame, free) {
            *word = (at, form);
        }
    }

    /// `rsp` was moved there: what is below is forgotten.
    fn popped(&mut self, rsp: Form) {
        for word in &mut self.0 {
            let below = match (word.0, rsp) {
                (Form::Stack(at), Form::Stack(rsp)) | (Form::Aligned(at), Form::Aligned(rsp)) => {
                    at < rsp
                }
                (Form::Aligned(_), Form::Stack(_)) => true,
                _ => false,
            };
            if below {
                *word = (Form::Any, Form::Any);
            }
        }
    }

    fn join(&mut self, other: &Saved) -> bool {
        let mut changed = false;
        for word in &mut self.0 {
            if word.0 != Form::Any && other.get(word.0) != word.1 {
                *word = (Form::Any, Form::Any);
                changed = true;
            }
        }
        changed
    }
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
                Reg::RAX,
                Value {
                    name: Some(x),
                    form,
                },
            );
            s.flags = Flags::Tag(x);
            s.matched = Some(x);
            s.again = Some(Again {
                name: x,
                inputs: RegSet::NONE,
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
        a.write(Reg::RAX, Value::of(Form::Translated(Some(Name::of(1)))));
        a.write(
            Reg::RCX,
            Value::of(Form::Count(bound(1), Some(Name::of(2)))),
        );
        let mut b = State::entry();
        b.write(Reg::RAX, Value::of(Form::Translated(Some(Name::of(2)))));
        b.write(Reg::RCX, Value::of(Form::Count(bound(2), None)));
        assert!(a.join(&b));
        assert_eq!(a.get(Reg::RAX).form, Form::Translated(None));
        assert_eq!(a.get(Reg::RCX).form, Form::Count(bound(2), None));
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
        s.clobber(RegSet(0xffff));
        s.write(Reg::RSP, Value::ANY);
        assert_eq!(i64::from(s.rsp()), -stack::MAX_FRAME);
    }

    #[test]
    fn writing_a_register_forgets_what_relied_on_it() {
        let mut s = State::entry();
        s.again = Some(Again {
            name: Name::of(X),
            inputs: Reg::RDI.set().or(Reg::RSP.set()),
        });
        s.flags = Flags::Compared {
            left: Reg::RAX,
            right: Reg::RCX,
        };
        s.write(Reg::RCX, Value::ANY);
        assert_eq!(s.flags, Flags::Unknown);
        assert!(s.again.is_some() && s.set_rsp(-8) && s.again.is_none());
    }
}
