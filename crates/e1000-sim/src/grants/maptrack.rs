//! The hypervisor's record of what dom0 has mapped. A handle is a place in it, with the place's count of uses: a handle
//! of a mapping that has ended is nobody's.
//!
//! ```text
//!  31    16 15     0
//! +--------+--------+
//! |  uses  | place  |
//! +--------+--------+
//! ```

use super::window::WindowPage;
use super::{Access, Domain, Reference};

/// Mappings at once.
pub const MAPPINGS: usize = 4096;

/// dom0's name for a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub u32);

/// A mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// Whose page.
    pub domain: Domain,
    /// By which entry.
    pub reference: Reference,
    /// For what.
    pub access: Access,
    /// Where dom0 has it; `None`: for devices only.
    pub page: Option<WindowPage>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Place {
    uses: u16,
    mapping: Option<Mapping>,
}

/// All mappings.
#[derive(Debug)]
pub struct Maptrack {
    places: Vec<Place>,
    free: Vec<u16>,
}

impl Default for Maptrack {
    fn default() -> Maptrack {
        Maptrack {
            places: vec![Place::default(); MAPPINGS],
            free: (0..MAPPINGS as u16).rev().collect(),
        }
    }
}

impl Maptrack {
    /// Whether another mapping has room.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Records a mapping, if there is room.
    pub fn add(&mut self, mapping: Mapping) -> Option<Handle> {
        let number = self.free.pop()?;
        let place = &mut self.places[usize::from(number)];
        place.mapping = Some(mapping);
        Some(Handle(u32::from(place.uses) << 16 | u32::from(number)))
    }

    /// The mapping of a handle.
    pub fn get(&self, handle: Handle) -> Option<Mapping> {
        let place = self.places.get(usize::from(handle.0 as u16))?;
        let current = u32::from(place.uses) == handle.0 >> 16;
        place.mapping.filter(|_| current)
    }

    /// Takes a mapping out.
    pub fn remove(&mut self, handle: Handle) -> Option<Mapping> {
        let mapping = self.get(handle)?;
        let number = handle.0 as u16;
        let place = &mut self.places[usize::from(number)];
        place.mapping = None;
        place.uses = place.uses.wrapping_add(1);
        self.free.push(number);
        Some(mapping)
    }

    /// The handles of all mappings.
    pub fn handles(&self) -> Vec<Handle> {
        let all = self.places.iter().enumerate();
        all.filter(|(_, place)| place.mapping.is_some())
            .map(|(number, place)| Handle(u32::from(place.uses) << 16 | number as u32))
            .collect()
    }
}
