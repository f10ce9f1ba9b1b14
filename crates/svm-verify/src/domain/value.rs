//! Facts about one register: the name of the number that it holds, and how that number
//! was computed ([`Form`]).
//!
//! The forms are the stages of a check, of a count or a pointer of a string instruction or
//! of an address in the frame; `crate::rules` takes a value from one stage to the next.

use std::num::NonZeroU32;

/// The instruction that made a value, by its number in the object, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name(pub NonZeroU32);

impl Name {
    /// That of the first instruction.
    pub const FIRST: Name = Name(NonZeroU32::MIN);

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
    /// Where the other elements are.
    pub direction: Direction,
}

/// The fact about a register's value, in addition to its name. `V(X)` is the number
/// that X names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Nothing: it may hold any number.
    Any,
    /// `rsp` at the function's entry plus this many bytes.
    Stack(i32),
    /// `rsp` as the function's `and $-N,%rsp` left it plus this many bytes
    /// (target `linux`).
    Aligned(i32),
    /// A number that was loaded from a word of the frame where the first address was
    /// stored, unless something else wrote the word since (target `linux`): `rsp` may be
    /// set to it, but no operand is in the frame because of it.
    LoadedStack(i32),
    /// The same of [`Form::Aligned`].
    LoadedAligned(i32),
    /// `rsp | (BLOCK - 1)`: the last byte of the CPU's block.
    ContextTop,
    /// The address that the caller's `call` pushed.
    ReturnWord,
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
    /// The translation of an address by a check or the slow path; of `V(X)` if a name is
    /// given. The [`twin_abi::stlb::BELOW`] bytes before it and the
    /// [`twin_abi::stlb::COVERED`] from it on are dom0's or in a hole.
    Translated(Option<Name>),
    /// `(V(X) & (PAGE_SIZE - 1)) >> shift`.
    PageOffset(Name, u8),
    /// Within one or two bounds, which differ only in where they begin: at the pointers
    /// of one string instruction.
    Count(Bound, Option<Name>),
    /// At most this.
    Below(u8),
    /// Below 2^32 (schemes with a window, as the next two).
    LowHalf,
    /// The window's start.
    WindowStart,
    /// The window's start plus a number below 2^32.
    WindowPointer,
    /// Below 2^42 (scheme `window`, as the next).
    Place,
    /// The window's start plus a number below 2^42.
    WidePointer,
}

impl Form {
    /// Whether it says that the number is below 2^32.
    pub fn is_low_half(self) -> bool {
        matches!(self, Form::LowHalf | Form::Below(_))
    }

    /// Whether the form mentions `V(x)`.
    pub(super) fn mentions(self, x: Name) -> bool {
        match self {
            Form::Any
            | Form::Stack(_)
            | Form::Aligned(_)
            | Form::LoadedStack(_)
            | Form::LoadedAligned(_)
            | Form::ContextTop
            | Form::ReturnWord
            | Form::Below(_)
            | Form::LowHalf
            | Form::WindowStart
            | Form::WindowPointer
            | Form::Place
            | Form::WidePointer => false,
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
    pub(super) fn without(self, x: Name) -> Form {
        match self {
            form if !form.mentions(x) => form,
            // Its translation stays a translation, of an address without name.
            Form::Translated(_) => Form::Translated(None),
            Form::Count(..) => count(self.bounds().into_iter().flatten().filter(|b| b.from != x)),
            _ => Form::Any,
        }
    }

    /// The form when `V(new)` is the same number as `V(old)`.
    pub(super) fn renamed(self, old: Name, new: Name) -> Form {
        let rename = |name: Name| if name == old { new } else { name };
        match self {
            form if !form.mentions(old) => form,
            Form::Any
            | Form::Stack(_)
            | Form::Aligned(_)
            | Form::LoadedStack(_)
            | Form::LoadedAligned(_)
            | Form::ContextTop
            | Form::ReturnWord
            | Form::Below(_)
            | Form::LowHalf
            | Form::WindowStart
            | Form::WindowPointer
            | Form::Place
            | Form::WidePointer => self,
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

    /// The form that holds if either form holds.
    fn join(self, other: Form) -> Form {
        match (self, other) {
            (a, b) if a == b => a,
            // The same number; what was loaded serves for less.
            (a, b) if a.loaded() == b.loaded() && a.trusted().in_frame() => a.loaded(),
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

    /// The form `by` bytes further, if it is an address in the frame, or one was loaded.
    pub fn moved(self, by: i32) -> Option<Form> {
        match self {
            Form::Stack(at) => at.checked_add(by).map(Form::Stack),
            Form::Aligned(at) => at.checked_add(by).map(Form::Aligned),
            Form::LoadedStack(at) => at.checked_add(by).map(Form::LoadedStack),
            Form::LoadedAligned(at) => at.checked_add(by).map(Form::LoadedAligned),
            _ => None,
        }
    }

    /// The form when it is loaded from a word of the frame.
    pub fn loaded(self) -> Form {
        match self {
            Form::Stack(at) => Form::LoadedStack(at),
            Form::Aligned(at) => Form::LoadedAligned(at),
            form => form,
        }
    }

    /// The address in the frame that it stands for, if the word that it was loaded from
    /// was not written by anything else.
    pub fn trusted(self) -> Form {
        match self {
            Form::LoadedStack(at) => Form::Stack(at),
            Form::LoadedAligned(at) => Form::Aligned(at),
            form => form,
        }
    }

    /// Whether it is an address in the frame.
    pub fn in_frame(self) -> bool {
        matches!(self, Form::Stack(_) | Form::Aligned(_))
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

/// The form of a number within these bounds. At most two are kept: an instruction has no
/// more pointers. They are kept only with equal size and direction, as an instruction has
/// one of each.
fn count(mut bounds: impl Iterator<Item = Bound>) -> Form {
    let Some(a) = bounds.next() else {
        return Form::Any;
    };
    let alike = |b: &Bound| (b.shift, b.direction) == (a.shift, a.direction) && b.from != a.from;
    Form::Count(a, bounds.find(alike).map(|b| b.from))
}

/// The facts about one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The number that it holds, if that has a name.
    pub name: Option<Name>,
    /// The fact about its value.
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

    /// Whether nothing is known.
    pub(super) fn is_any(self) -> bool {
        self.name.is_none() && matches!(self.form, Form::Any)
    }

    pub(super) fn join(self, other: Value) -> Value {
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
