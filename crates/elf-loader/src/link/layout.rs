//! Chooses the addresses of an object's sections.
//!
//! [`layout`] puts the loaded sections one after another in three segments. Each
//! segment begins at a page boundary, so that it can have its own protection:
//!
//! ```text
//! base ─> | code | pad | read-only data | pad | writable data, bss | pad |
//! ```

use std::ops::Range;

use super::LinkError;
use crate::model::{MAX_SECTION_SIZE, Object, Section, SectionId, consts};

/// Page size in bytes: the boundary between segments.
const PAGE: u64 = 4096;

/// What may be done with a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Protection {
    /// Executed and read.
    Code,
    /// Only read.
    ReadOnly,
    /// Read and written.
    Writable,
}

impl Protection {
    /// What a section needs by its flags. Code that is also writable is code.
    pub fn of(section: &Section<'_>) -> Protection {
        if section.flags & consts::SHF_EXECINSTR != 0 {
            Protection::Code
        } else if section.flags & consts::SHF_WRITE != 0 {
            Protection::Writable
        } else {
            Protection::ReadOnly
        }
    }
}

/// Whole pages with one protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// How all of it has to be mapped.
    pub protection: Protection,
    /// First address and address after the last, multiples of 4096.
    pub addresses: Range<u64>,
}

/// The virtual address of each section that has one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Layout {
    addresses: Vec<Option<u64>>,
    segments: Vec<Segment>,
}

impl Layout {
    /// The placement that `address` gives for each section; it has no segments.
    pub fn from_fn(object: &Object<'_>, address: impl Fn(SectionId) -> Option<u64>) -> Layout {
        let addresses = object.sections().map(|(id, _)| address(id)).collect();
        Layout {
            addresses,
            segments: Vec::new(),
        }
    }

    /// The address of a section, if it is placed.
    pub fn address(&self, id: SectionId) -> Option<u64> {
        self.addresses.get(id.0 as usize).copied().flatten()
    }

    /// The placed sections with their addresses, in section order.
    pub fn placed(&self) -> impl Iterator<Item = (SectionId, u64)> + '_ {
        let numbered = self.addresses.iter().enumerate();
        numbered.filter_map(|(i, address)| Some((SectionId(i as u32), (*address)?)))
    }

    /// The segments that [`layout`] made, by address; empty ones are left out.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// From the first segment's begin to the last one's end: the range to reserve.
    pub fn span(&self) -> Range<u64> {
        match (self.segments.first(), self.segments.last()) {
            (Some(first), Some(last)) => first.addresses.start..last.addresses.end,
            _ => 0..0,
        }
    }

    /// Every placed section is aligned, none overlaps, all together are small.
    pub(super) fn check(&self, object: &Object<'_>) -> Result<(), LinkError> {
        if self.addresses.len() != object.sections.len() {
            let (layout, object) = (self.addresses.len(), object.sections.len());
            return Err(LinkError::OtherObject { layout, object });
        }
        let mut placed: Vec<_> = self
            .placed()
            .map(|(id, address)| (address, object.section(id)))
            .collect();
        check_total(placed.iter().map(|(_, section)| *section))?;
        placed.retain(|(_, section)| section.size != 0);
        placed.sort_by_key(|(address, _)| *address);
        let mut free = (0, "");
        for (address, section) in placed {
            let name = || section.name.to_string();
            if !address.is_multiple_of(section.align.max(1)) {
                return Err(LinkError::Misaligned {
                    section: name(),
                    address,
                    align: section.align,
                });
            }
            // The section may end where the address space does.
            let last = address.checked_add(section.size - 1);
            let Some(last) = last.filter(|_| address >= free.0) else {
                return Err(LinkError::Overlap {
                    section: name(),
                    address,
                    other: free.1.into(),
                });
            };
            free = (last.saturating_add(1), &section.name);
        }
        Ok(())
    }
}

fn check_total<'s>(sections: impl Iterator<Item = &'s Section<'s>>) -> Result<(), LinkError> {
    let size = sections.fold(0u64, |sum, section| sum.saturating_add(section.size));
    if size > MAX_SECTION_SIZE {
        Err(LinkError::TooLarge { size })
    } else {
        Ok(())
    }
}

/// Places the loaded sections (`SHF_ALLOC`) that `filter` accepts: code first,
/// then read-only, then writable data, each from a page boundary, in section
/// order with their alignment. `base` is rounded up to a page.
///
/// # Errors
/// [`LinkError::TooLarge`] if they take more than 2 GiB, alignment included,
/// or do not fit above `base`.
pub fn layout(
    object: &Object<'_>,
    base: u64,
    filter: impl Fn(SectionId, &Section<'_>) -> bool,
) -> Result<Layout, LinkError> {
    let mut layout = Layout {
        addresses: vec![None; object.sections.len()],
        segments: Vec::new(),
    };
    let mut cursor = Cursor {
        start: base,
        next: base,
    };
    for protection in [Protection::Code, Protection::ReadOnly, Protection::Writable] {
        let start = cursor.aligned(PAGE)?;
        for (id, section) in object.sections() {
            let loaded = section.flags & consts::SHF_ALLOC != 0;
            if loaded && Protection::of(section) == protection && filter(id, section) {
                layout.addresses[id.0 as usize] = Some(cursor.aligned(section.align)?);
                cursor.advance(section.size)?;
            }
        }
        let end = cursor.aligned(PAGE)?;
        if start != end {
            layout.segments.push(Segment {
                protection,
                addresses: start..end,
            });
        }
    }
    Ok(layout)
}

/// The next free address.
struct Cursor {
    start: u64,
    next: u64,
}

impl Cursor {
    fn aligned(&mut self, align: u64) -> Result<u64, LinkError> {
        let next = self.next.checked_next_multiple_of(align.max(1));
        self.move_to(next)?;
        Ok(self.next)
    }

    fn advance(&mut self, size: u64) -> Result<(), LinkError> {
        self.move_to(self.next.checked_add(size))
    }

    fn move_to(&mut self, next: Option<u64>) -> Result<(), LinkError> {
        match next {
            Some(next) if next - self.start <= MAX_SECTION_SIZE => {
                self.next = next;
                Ok(())
            }
            _ => Err(LinkError::TooLarge {
                size: next.unwrap_or(u64::MAX) - self.start,
            }),
        }
    }
}
