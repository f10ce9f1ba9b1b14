//! Checks the hypervisor's translation table from outside: each entry that emitted code
//! could use must lead to the page of dom0's that it names, as the operating system has
//! it mapped (`/proc/self/maps`).

use std::ops::Range;

use process_lab::mapping;
use process_lab::program::{STLB, Variant};

use crate::memory::{BAR, BAR_SIZE, PAGE, Space};

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

/// The first entry that leads elsewhere, if there is one.
pub fn wrong(space: &Space, variant: Variant) -> Option<String> {
    let mappings = mappings();
    (0..twin_abi::stlb::ENTRIES).find_map(|index| {
        let (page, translation) = entry(index);
        // A free entry has the tag of another index.
        if page / PAGE % twin_abi::stlb::ENTRIES != index {
            return None;
        }
        let mapped = variant.scheme.mapped(page, translation);
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
