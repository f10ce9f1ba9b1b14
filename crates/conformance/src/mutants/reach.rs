//! Which instructions of a rewritten object some path reaches.
//!
//! Takes the object, follows every direct branch and call from every function's
//! start. There is no indirect transfer in these objects. In one for a hypervisor unreached
//! code comes after static branches that are off. In a module a kernel turns them on, and goes
//! on behind a WARN (`tables.rs`): both are followed.

use std::collections::{HashMap, HashSet};

use elf_loader::consts::{STB_LOCAL, STT_FUNC};
use elf_loader::special::{self, SpecialKind};
use elf_loader::{Object, Place as Defined, Section, SectionId};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, OpKind};

use super::tables::Tables;

/// Section and offset of an instruction.
pub type Place = (SectionId, u64);

/// What is reached, and from where.
#[derive(Clone, Debug, Default)]
pub struct Reached {
    places: HashSet<Place>,
    /// The instructions that fall through or jump to each.
    before: HashMap<Place, Vec<Place>>,
    /// The instructions that each falls through or jumps to.
    after: HashMap<Place, Vec<Place>>,
    /// Places that are called, or whose address something other than a branch holds.
    entries: HashSet<Place>,
    /// Places that are called.
    called: HashSet<Place>,
    /// See [`Reached::is_partial`].
    is_partial: bool,
}

impl Reached {
    /// Whether some path reaches it.
    pub fn contains(&self, place: Place) -> bool {
        self.places.contains(&place)
    }

    /// Whether a kernel's table adds paths that are not followed: then everything is an entry.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// All reached instructions.
    pub fn places(&self) -> impl Iterator<Item = Place> {
        self.places.iter().copied()
    }

    /// The reached instructions that fall through or jump to it, wherever they are.
    pub fn before(&self, place: Place) -> impl Iterator<Item = Place> {
        self.before.get(&place).into_iter().flatten().copied()
    }

    /// The instructions that it falls through or jumps to, in this object.
    pub fn after(&self, place: Place) -> impl Iterator<Item = Place> {
        self.after.get(&place).into_iter().flatten().copied()
    }

    /// Whether control comes to it from elsewhere too, or nothing reached leads to it.
    pub fn is_entry(&self, place: Place) -> bool {
        self.is_partial || self.is_named(place) || self.before(place).next().is_none()
    }

    /// Whether a call leads to it.
    pub fn is_called(&self, place: Place) -> bool {
        self.called.contains(&place)
    }

    /// Whether it is called, or something other than a branch holds its address.
    pub fn is_named(&self, place: Place) -> bool {
        self.entries.contains(&place)
    }

    fn follow(&mut self, from: Place, to: Place) {
        self.before.entry(to).or_default().push(from);
        self.after.entry(from).or_default().push(to);
    }
}

/// Follows every path from every function.
pub fn reached(object: &Object<'_>) -> Reached {
    let fields = branch_fields(object);
    let tables = Tables::of(object);
    let mut found = Reached {
        is_partial: tables.adds_others,
        ..Reached::default()
    };
    let mut branches = HashSet::new();
    let mut open: Vec<Place> = Vec::new();
    for (place, is_global) in functions(object) {
        open.push(place);
        if is_global {
            found.entries.insert(place);
        }
    }
    while let Some((section, mut at)) = open.pop() {
        while found.places.insert((section, at)) {
            let Some(decoded) = decoded(object, (section, at)) else {
                break;
            };
            if let Some(to) = target(&decoded, section, &fields) {
                branches.insert((section, field(&decoded)));
                match decoded.flow_control() {
                    FlowControl::Call => drop(found.called.insert(to)),
                    _ => found.follow((section, at), to),
                }
                open.push(to);
            }
            for to in tables.also_after((section, at), &decoded) {
                found.follow((section, at), to);
                open.push(to);
            }
            if !goes_on(&decoded) {
                break;
            }
            found.follow((section, at), (section, decoded.next_ip()));
            at = decoded.next_ip();
        }
    }
    found.entries.extend(referred(object, &branches));
    found.entries.extend(&found.called);
    found
}

/// Starts of functions, and whether other objects can name them.
pub(super) fn functions(object: &Object<'_>) -> impl Iterator<Item = (Place, bool)> {
    let functions = object.symbols().filter(|(_, s)| s.kind == STT_FUNC);
    functions.filter_map(|(_, symbol)| match symbol.place {
        Defined::In(section) => Some(((section, symbol.value), symbol.binding != STB_LOCAL)),
        _ => None,
    })
}

fn decoded(object: &Object<'_>, (section, at): Place) -> Option<Instruction> {
    let bytes = object.section(section).data.get(at as usize..)?;
    let mut decoder = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE);
    (!bytes.is_empty()).then(|| decoder.decode())
}

/// Places that relocations other than those of `branches` refer to. In code a field's addend
/// may count from the field or from its end: both places are taken.
fn referred(object: &Object<'_>, branches: &HashSet<Place>) -> Vec<Place> {
    let mut found = Vec::new();
    for (id, section) in object.sections().filter(|(_, s)| !only_describes(s)) {
        let others = section.relocations.iter();
        for r in others.filter(|r| !branches.contains(&(id, r.offset))) {
            let symbol = object.symbol(r.symbol);
            if let Defined::In(to) = symbol.place {
                let place = symbol.value.wrapping_add_signed(r.addend);
                found.push((to, place));
                found.extend(section.is_code().then(|| (to, place.wrapping_add(4))));
            }
        }
    }
    found
}

/// Whether a section only says how to unwind from places, which instructions a kernel may write
/// over, or what it goes on behind: nobody else goes there by it.
fn only_describes(section: &Section<'_>) -> bool {
    use SpecialKind as K;
    matches!(
        special::kind_of(&section.name),
        Some(
            K::OrcUnwind
                | K::OrcUnwindIp
                | K::SmpLocks
                | K::ReturnSites
                | K::RetpolineSites
                | K::CallSites
                | K::StaticCallSites
                | K::BugTable
                | K::JumpTable
                | K::KcfiTraps
        )
    )
}

/// The targets of relocated branches, by the place of their field; `None` for a target
/// outside the object.
type Fields = HashMap<Place, Option<Place>>;

fn branch_fields(object: &Object<'_>) -> Fields {
    let mut fields = Fields::new();
    for (id, section) in object.sections().filter(|(_, s)| s.is_code()) {
        for r in &section.relocations {
            let symbol = object.symbol(r.symbol);
            let to = match symbol.place {
                // The addend counts from the field, the branch from its end.
                Defined::In(to) => Some((to, symbol.value.wrapping_add_signed(r.addend + 4))),
                _ => None,
            };
            fields.insert((id, r.offset), to);
        }
    }
    fields
}

/// Where the field of a direct branch with a relocation is: its last four bytes.
fn field(branch: &Instruction) -> u64 {
    branch.next_ip().wrapping_sub(4)
}

fn target(branch: &Instruction, section: SectionId, fields: &Fields) -> Option<Place> {
    // Every direct branch: `jrcxz` and `loop` as well as `jmp`, `jcc` and `call`.
    let is_direct = matches!(
        branch.op0_kind(),
        OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64
    );
    let unrelocated = || Some((section, branch.near_branch_target()));
    match fields.get(&(section, field(branch))) {
        _ if !is_direct => None,
        Some(to) => *to,
        None => unrelocated(),
    }
}

fn goes_on(instruction: &Instruction) -> bool {
    matches!(
        instruction.flow_control(),
        FlowControl::Next
            | FlowControl::ConditionalBranch
            | FlowControl::Call
            | FlowControl::IndirectCall
    )
}

#[cfg(test)]
mod tests {
    use elf_loader::consts::{R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR};
    use elf_loader::{Relocation, Section, Symbol, SymbolId};

    use super::*;

    const TEXT: SectionId = SectionId(1);
    const COLD: SectionId = SectionId(2);

    /// `f` in .text and `f.cold` in .text.unlikely.
    fn object(text: &'static [u8], cold: &'static [u8]) -> Object<'static> {
        let mut object = Object::new();
        for (name, code, section) in [("f", text, TEXT), ("f.cold", cold, COLD)] {
            let flags = SHF_ALLOC | SHF_EXECINSTR;
            let code = Section::with_data(name, flags, 1, code);
            object.sections.push(code);
            object.symbols.push(Symbol {
                kind: STT_FUNC,
                place: Defined::In(section),
                ..object.symbols[0].clone()
            });
        }
        object
    }

    #[test]
    fn follows_branches_on_the_count() {
        // jrcxz 3; ret; loop 0; ret
        let object = object(&[0xe3, 0x01, 0xc3, 0xe2, 0xfb, 0xc3], &[0xc3]);
        let reached = reached(&object);
        for at in [0, 2, 3, 5] {
            assert!(reached.contains((TEXT, at)), "{at}");
        }
        let before: Vec<Place> = reached.before((TEXT, 0)).collect();
        assert_eq!(before, [(TEXT, 3)]);
    }

    #[test]
    fn a_cold_part_is_entered_from_its_function_only() {
        // nop; jb f.cold; ret
        let mut object = object(&[0x90, 0x0f, 0x82, 0, 0, 0, 0, 0xc3], &[0xc3]);
        let to_cold = Relocation {
            offset: 3,
            kind: R_X86_64_PLT32,
            symbol: SymbolId(2),
            addend: -4,
        };
        object.sections[1].relocations.push(to_cold);
        let found = reached(&object);
        assert!(!found.is_entry((COLD, 0)));
        let before: Vec<Place> = found.before((COLD, 0)).collect();
        assert_eq!(before, [(TEXT, 1)]);
        assert!(found.is_entry((TEXT, 0)), "nothing leads to it");

        // Its address in data: it may be called from anywhere.
        let mut data = Section::with_data(".data", SHF_ALLOC, 8, vec![0; 8]);
        data.relocations.push(Relocation {
            offset: 0,
            addend: 0,
            ..to_cold
        });
        object.sections.push(data);
        assert!(reached(&object).is_entry((COLD, 0)));
    }
}
