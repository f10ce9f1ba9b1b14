//! Sets of locations as text.

use std::fmt;

use super::{Flag, Loc, LocSet, Reg};

/// Whole registers by name, pieces with their bits, then flags, the six arithmetic ones together as
/// `flags`: `{rax, rcx[0-15], rdx[8-15], CF, DF}`.
impl fmt::Display for LocSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = Part::of_set(*self).map(|part| part.to_string()).collect();
        write!(f, "{{{}}}", names.join(", "))
    }
}

impl fmt::Debug for LocSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A group of locations with a name of its own, for display.
enum Part {
    Reg(Reg),
    Low16(Reg),
    ArithmeticFlags,
    Loc(Loc),
}

impl Part {
    fn of_set(set: LocSet) -> impl Iterator<Item = Part> {
        let registers = Reg::all().flat_map(move |reg| Part::of_register(set, reg));
        registers.chain(Part::of_flags(set))
    }

    fn of_register(set: LocSet, reg: Reg) -> Vec<Part> {
        let here = set.intersect(LocSet::reg(reg));
        if here == LocSet::reg(reg) {
            vec![Part::Reg(reg)]
        } else if here.contains(LocSet::low16(reg)) {
            vec![Part::Low16(reg)]
        } else {
            here.iter().map(Part::Loc).collect()
        }
    }

    fn of_flags(set: LocSet) -> Vec<Part> {
        if !set.contains(LocSet::flags()) {
            return set
                .intersect(LocSet::all_flags())
                .iter()
                .map(Part::Loc)
                .collect();
        }
        let direction = set.intersect(LocSet::flag(Flag::Direction));
        let mut parts = vec![Part::ArithmeticFlags];
        parts.extend(direction.iter().map(Part::Loc));
        parts
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Reg(reg) => reg.fmt(f),
            Part::Low16(reg) => write!(f, "{reg}[0-15]"),
            Part::ArithmeticFlags => f.write_str("flags"),
            Part::Loc(loc) => loc.fmt(f),
        }
    }
}
