//! Memory that no fault may change: the hypervisor's code and memory, and the memory of
//! guests without packets.
//!
//! * code: every executable mapping of the process, the rewritten driver, its
//!   stubs and the runtime among them;
//! * pages of a known pattern next to the translation table and the driver's stack
//!   block, which a near miss would hit;
//! * the translation table: entries lead to the pages that they name;
//! * a megabyte on the heap, and the code map that indirect calls trust;
//! * all memory of guests without packets.

use std::ops::Range;

use crc32fast::hash;
use process_lab::mapping;
use process_lab::program::{STLB, STLB_SIZE};

use super::translations;
use crate::error::LiveError;
use crate::hypervisor::payload::Payload;
use crate::memory::{DRIVER_STACK, Machine, PAGE, Space};
use crate::system::Blueprint;

const HEAP: usize = 1 << 20;
const PATTERN: u8 = 0xa5;

/// The guarded memory's contents when the guards were set up.
pub struct Guards<'m> {
    machine: &'m Machine,
    space: &'m Space,
    payload: &'m Payload,
    heap: Vec<u8>,
    pages: Vec<u64>,
    codemap: u32,
    code: Vec<(Range<u64>, u32)>,
    guests: Vec<(Range<u64>, u32)>,
}

impl<'m> Guards<'m> {
    /// Sets guards up. The instance is loaded; `idle` guests have no packets.
    pub fn new(
        machine: &'m Machine,
        blueprint: &'m Blueprint<'m>,
        idle: Range<u32>,
    ) -> Result<Guards<'m>, LiveError> {
        let block = DRIVER_STACK..DRIVER_STACK + twin_abi::stack::BLOCK;
        let pages = [STLB - PAGE, STLB + STLB_SIZE, block.start - PAGE, block.end];
        for page in pages {
            guard_page(page)?;
        }
        for guest in idle.clone() {
            fill(machine, &machine.sizes().guest(guest));
        }
        let guests = idle.map(|guest| machine.sizes().guest(guest));
        let payload = &blueprint.payload;
        Ok(Guards {
            machine,
            space: blueprint.plan.space(),
            payload,
            heap: vec![PATTERN; HEAP],
            pages: pages.to_vec(),
            codemap: codemap(payload),
            code: executable().into_iter().map(hashed).collect(),
            guests: guests
                .map(|range| (range.clone(), crc(machine, &range)))
                .collect(),
        })
    }

    /// An address on the guarded heap.
    pub fn heap_address(&self) -> u64 {
        self.heap.as_ptr() as u64 + HEAP as u64 / 2
    }

    /// Hash of a guest's memory.
    pub fn guest(&self, number: u32) -> u32 {
        crc(self.machine, &self.machine.sizes().guest(number))
    }

    /// The changes, if any; for guests' memory since the last call.
    pub fn changed(&mut self) -> Option<String> {
        // SAFETY: elements of a live vector; volatile, because writes there would be
        // unknown to the compiler.
        let read = |byte: &u8| unsafe { std::ptr::from_ref(byte).read_volatile() };
        if self.heap.iter().any(|byte| read(byte) != PATTERN) {
            return Some("the hypervisor's heap".to_owned());
        }
        if let Some(page) = self.pages.iter().find(|page| !is_whole(**page)) {
            return Some(format!("the guard page at {page:#x}"));
        }
        let variant = self.payload.driver.variant;
        if let Some(what) = translations::wrong(self.space, variant) {
            return Some(what);
        }
        if codemap(self.payload) != self.codemap {
            return Some("the code map".to_owned());
        }
        let machine = self.machine;
        let mut guests = self.guests.iter_mut();
        guests.find_map(|(range, before)| {
            let now = crc(machine, range);
            (std::mem::replace(before, now) != now).then(|| format!("guest memory {range:#x?}"))
        })
    }

    /// The same for all code: many megabytes.
    pub fn code_changed(&self) -> Option<String> {
        let now: Vec<_> = executable().into_iter().map(hashed).collect();
        (now != self.code).then(|| "executable memory".to_owned())
    }
}

fn guard_page(at: u64) -> Result<(), LiveError> {
    let page = mapping::new_memory(at, PAGE).map_err(LiveError::system("mapping a guard page"))?;
    // SAFETY: our own new page.
    unsafe { page.write_bytes(PATTERN, PAGE as usize) };
    Ok(())
}

fn is_whole(page: u64) -> bool {
    let bytes = page as *const u8;
    // SAFETY: mapped by `guard_page`, for the process's life.
    (0..PAGE as usize).all(|i| unsafe { bytes.add(i).read_volatile() } == PATTERN)
}

fn fill(machine: &Machine, range: &Range<u64>) {
    for at in (range.start..range.end).step_by(8) {
        machine.write(at, &at.to_le_bytes()).expect("guest memory");
    }
}

fn crc(machine: &Machine, range: &Range<u64>) -> u32 {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    machine.read(range.start, &mut bytes).expect("guest memory");
    hash(&bytes)
}

fn codemap(payload: &Payload) -> u32 {
    let words: Vec<u8> = payload
        .codemap
        .iter()
        .flat_map(|entry| [entry.vm.to_le_bytes(), entry.hyp.to_le_bytes()].concat())
        .collect();
    hash(&words)
}

/// Executable mappings of this process that are not writable.
fn executable() -> Vec<Range<u64>> {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let mut ranges = Vec::new();
    for line in maps.lines().filter(|line| !line.contains("[vsyscall]")) {
        let rights = line.split_whitespace().nth(1);
        if rights.is_some_and(|rights| rights.contains('x')) {
            ranges.extend(mapping::addresses(line));
        }
    }
    ranges
}

fn hashed(range: Range<u64>) -> (Range<u64>, u32) {
    let length = (range.end - range.start) as usize;
    // SAFETY: mapped and readable, as /proc/self/maps just said: code of this
    // process, which unmaps none.
    let bytes = unsafe { std::slice::from_raw_parts(range.start as *const u8, length) };
    let sum = hash(bytes);
    (range, sum)
}
