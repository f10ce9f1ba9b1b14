//! Checks from outside that the driver's accesses lead to dom0's pages, as the operating
//! system has them mapped (`/proc/self/maps`): each entry of the translation table that
//! emitted code could use; or, with a window, each page that is in it.

use std::ops::Range;

use process_lab::mapping;
use process_lab::program::{STLB, Variant, WINDOW};
use twin_abi::window;

use crate::memory::{BAR, BAR_SIZE, PAGE, Space, data_stack, data_stack_view};
use crate::system::CPU;

/// A mapping of the machine's memory or of the card's registers.
struct Mapping {
    addresses: Range<u64>,
    offset: u64,
}

/// Mappings of the testbed's shared files, ascending.
fn mappings() -> Vec<Mapping> {
    const FILE: &str = "memfd:twin-testbed";
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let files = maps.lines().filter(|line| line.contains(FILE));
    files.filter_map(parsed).collect()
}

/// `start-end rights offset device inode path`
fn parsed(line: &str) -> Option<Mapping> {
    let offset = line.split_whitespace().nth(2)?;
    Some(Mapping {
        addresses: mapping::addresses(line)?,
        offset: u64::from_str_radix(offset, 16).ok()?,
    })
}

/// The first entry, or page in the window, that leads elsewhere, if there is one.
pub fn wrong(space: &Space, variant: Variant) -> Option<String> {
    match variant.scheme.window_size() {
        None => wrong_entry(space, variant),
        Some(size) => wrong_page(space, size),
    }
}

/// A range of dom0's and where it is in its file.
struct Shown {
    dom0: Range<u64>,
    offset: u64,
}

/// What the window is to show: dom0's memory, the card's registers, the data stack.
fn shown(space: &Space) -> Vec<Shown> {
    let memory = space.regions().iter().map(|region| Shown {
        dom0: region.dom0_start..region.dom0_start + region.length,
        offset: region.file_offset,
    });
    let registers = Shown {
        dom0: BAR..BAR + BAR_SIZE,
        offset: 0,
    };
    let stack = Shown {
        dom0: data_stack_view(CPU),
        offset: data_stack(CPU),
    };
    memory.chain([registers, stack]).collect()
}

fn wrong_page(space: &Space, size: u64) -> Option<String> {
    let place = |dom0: u64| WINDOW + dom0 % size;
    let mappings = mappings();
    let shown = shown(space);
    let expected = |at: u64| {
        let inside = |s: &&Shown| at.wrapping_sub(place(s.dom0.start)) < s.dom0.end - s.dom0.start;
        let range = shown.iter().find(inside)?;
        Some(range.offset + (at - place(range.dom0.start)))
    };
    let in_window = |m: &&Mapping| {
        m.addresses.end > WINDOW - window::GUARD
            && m.addresses.start < WINDOW + size + window::GUARD
    };
    // Neighbours may be one mapping: its first and last page are looked at.
    let mapped = mappings.iter().filter(in_window);
    let mapped = mapped.flat_map(|m| [m.addresses.start, m.addresses.end - PAGE]);
    let ranges = shown.iter().flat_map(|s| [s.dom0.start, s.dom0.end - PAGE]);
    mapped.chain(ranges.map(place)).find_map(|at| {
        let found = offset_at(&mappings, at);
        (found.is_none() || found != expected(at))
            .then(|| format!("the window at {at:#x} ({found:x?} in the file)"))
    })
}

fn wrong_entry(space: &Space, variant: Variant) -> Option<String> {
    let mappings = mappings();
    (0..twin_abi::stlb::ENTRIES).find_map(|index| {
        let (page, translation) = entry(index);
        // A free entry has the tag of another index.
        if page / PAGE % twin_abi::stlb::ENTRIES != index {
            return None;
        }
        let mapped = variant.scheme.mapped(page, translation)?;
        let expected = offset_of(space, page);
        let found = offset_at(&mappings, mapped);
        (found.is_none() || found != expected).then(|| {
            format!("the translation of {page:#x}, which is {mapped:#x} ({found:x?} in the file)")
        })
    })
}

fn entry(index: u64) -> (u64, u64) {
    let at = (STLB + (index << twin_abi::stlb::ENTRY_SHIFT)) as *const u64;
    // SAFETY: the table is mapped as long as there is an instance, and no
    // driver runs.
    unsafe { (at.read_volatile(), at.add(1).read_volatile()) }
}

/// Where a page of dom0's is in its file.
fn offset_of(space: &Space, page: u64) -> Option<u64> {
    let registers = page.wrapping_sub(BAR);
    if registers < BAR_SIZE {
        return Some(registers);
    }
    space.machine_address(page)
}

fn offset_at(mappings: &[Mapping], address: u64) -> Option<u64> {
    let next = mappings.partition_point(|mapping| mapping.addresses.end <= address);
    let mapping = mappings.get(next)?;
    let inside = mapping.addresses.contains(&address);
    inside.then(|| mapping.offset + (address - mapping.addresses.start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_systems_table_is_understood() {
        let line = "7f10000-7f12000 rw-s 0003f000 00:01 1034 /memfd:twin-testbed (deleted)";
        let mapping = parsed(line).expect("a mapping");
        assert_eq!(mapping.addresses, 0x7f1_0000..0x7f1_2000);
        assert_eq!(offset_at(&[mapping], 0x7f1_1008), Some(0x4_0008));
    }
}
