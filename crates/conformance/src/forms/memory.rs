//! dom0's memory for forms, and the places of operands in it.
//!
//! ```text
//! 0x2000_0000  data       random; nothing before or after it
//! 0x2100_0000  aliases    pages with the table indices of the data's
//! 0x2404_0000  read-only  one page
//! FAR          far        random; an address that no window shows whole: a register that holds
//!                         the place instead of the address holds another number
//! ```

use std::ffi::c_void;

use libc::c_int;
use process_lab::address_space::PAGE;
use process_lab::error::Error;
use process_lab::random::{Random, mix};
use process_lab::shared::Shared;

use super::state::FRAME_TOP;

/// First address of the data.
pub const DATA: u64 = 0x2000_0000;
/// First address of the aliases: 4096 pages further, which is one round of the
/// translation table.
pub const ALIASES: u64 = DATA + twin_abi::stlb::ENTRIES * PAGE;
/// A page that may not be written.
pub const READ_ONLY: u64 = 0x2404_0000;

/// First address of the far pages: its low 32 bits, its low 42 and all of them differ, and the
/// first two are those of nothing else.
pub const FAR: u64 = 7 << twin_abi::window::wide::BITS | 5 << 33 | 0xa800_0000;
/// How many there are.
pub const FAR_PAGES: u64 = 4;

/// Whether a window of that size shows a far page at an address.
pub fn is_far_in(window: u64, address: u64) -> bool {
    let first = FAR % window;
    (first..first + FAR_PAGES * PAGE).contains(&address)
}

/// A piece of dom0's address space in the file.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// dom0 address.
    pub start: u64,
    pub length: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Whether it may be written.
    pub writable: bool,
}

/// The pieces with that many pages of data.
pub fn pieces(pages: u64) -> [Piece; 4] {
    let length = pages * PAGE;
    let piece = |start, length, offset, writable| Piece {
        start,
        length,
        offset,
        writable,
    };
    [
        piece(DATA, length, 0, true),
        piece(ALIASES, length, length, true),
        piece(READ_ONLY, PAGE, 2 * length, false),
        piece(FAR, FAR_PAGES * PAGE, 2 * length + PAGE, true),
    ]
}

/// Where an operand is placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In a page's middle, aligned for any vector.
    Aligned,
    /// In a page's middle.
    Middle,
    /// At a page's first byte.
    Start,
    /// That many bytes before a page's end, with a page after it.
    End(u64),
    /// That many bytes before the end of the data, with nothing after it.
    LastEnd(u64),
    /// At an unmapped address.
    Hole,
    /// In the page that may not be written.
    ReadOnly,
    /// At an address that is not canonical.
    NotCanonical,
    /// In the function's own frame.
    OwnStack,
    /// In the middle of a far page, aligned for any vector.
    Far,
}

/// Distances from a page's end.
const ENDS: [u64; 7] = [1, 2, 4, 8, 16, 32, 63];

impl Placement {
    /// How many there are to go through.
    pub const COUNT: u64 = 16;

    /// Number `n` of them.
    pub fn number(n: u64, random: &mut Random) -> Placement {
        match n % Placement::COUNT {
            0 => Placement::Aligned,
            1 => Placement::Middle,
            2 => Placement::Start,
            3..=9 => Placement::End(ENDS[n as usize % Placement::COUNT as usize - 3]),
            10 => Placement::End(random.below(64) + 1),
            11 => Placement::LastEnd(ENDS[random.below(7) as usize]),
            12 => Placement::Hole,
            13 => Placement::ReadOnly,
            14 => Placement::NotCanonical,
            _ => Placement::OwnStack,
        }
    }

    /// One for an address that is part of the code: in the data.
    pub fn fixed(random: &mut Random) -> Placement {
        let n = random.below(12);
        Placement::number(n, random)
    }

    /// An address there, with `pages` of data.
    pub fn address(self, random: &mut Random, pages: u64) -> u64 {
        // A page with one before it and one after it.
        let page = DATA + (1 + random.below(pages - 2)) * PAGE;
        match self {
            Placement::Aligned => page + 0x400 + random.below(16) * 64,
            Placement::Middle => page + 0x400 + random.below(0x400),
            Placement::Start => page,
            Placement::End(distance) => page + PAGE - distance,
            Placement::LastEnd(distance) => DATA + pages * PAGE - distance,
            Placement::Hole => DATA + (pages + 3) * PAGE + random.below(8) * 64,
            Placement::ReadOnly => READ_ONLY + random.below(32) * 64,
            Placement::NotCanonical => (0x8000_0000_0000 << random.below(8)) + DATA,
            Placement::OwnStack => FRAME_TOP - 0x100 + random.below(16) * 8,
            Placement::Far => FAR + random.below(FAR_PAGES) * PAGE + 0x400 + random.below(16) * 64,
        }
    }
}

/// The memory of one process: the file, and how it was before the run.
pub struct Memory {
    file: Shared,
    pristine: Vec<u8>,
    pages: u64,
}

impl Memory {
    /// Memory with random contents that depend on `seed`.
    pub fn new(pages: u64, seed: u64) -> Result<Memory, Error> {
        let length: u64 = pieces(pages).iter().map(|p| p.length).sum();
        let mut file = Shared::new(length).map_err(Error::system("making dom0's memory"))?;
        let pristine = pristine(length, seed);
        file.write(0, &pristine);
        Ok(Memory {
            file,
            pristine,
            pages,
        })
    }

    /// The file that backs it.
    pub fn fd(&self) -> c_int {
        self.file.fd()
    }

    /// Pages of data.
    pub fn pages(&self) -> u64 {
        self.pages
    }

    /// Overwrites bytes; addresses that are not dom0's are skipped.
    pub fn patch(&mut self, address: u64, bytes: &[u8]) {
        for piece in pieces(self.pages) {
            let inside = address.wrapping_sub(piece.start);
            if inside < piece.length {
                let length = bytes.len().min((piece.length - inside) as usize);
                self.file
                    .write((piece.offset + inside) as usize, &bytes[..length]);
            }
        }
    }

    /// A word that sums up the changes; restores all bytes.
    pub fn restore(&mut self) -> u64 {
        let mut hash = 0;
        self.changed(|_, offset, page| {
            hash = mix(hash ^ digest(page) ^ offset as u64);
            true
        });
        hash
    }

    /// The bytes that differ from the pristine ones: dom0 address and value.
    pub fn changes(&mut self) -> Vec<(u64, u8)> {
        let pages = self.pages;
        let mut found = Vec::new();
        self.changed(|before, offset, page| {
            let differing = before.iter().zip(page).enumerate();
            found.extend(
                differing
                    .filter(|(_, (a, b))| a != b)
                    .map(|(i, (_, b))| (address_of(pages, (offset + i) as u64), *b)),
            );
            false
        });
        found
    }

    /// Visits the pages that changed: as they were, offset, as they are. Those
    /// for which `restore` says so are restored.
    fn changed(&mut self, mut restore: impl FnMut(&[u8], usize, &[u8]) -> bool) {
        let size = PAGE as usize;
        for (n, before) in self.pristine.chunks_exact(size).enumerate() {
            let offset = n * size;
            // SAFETY: the page is inside the mapping; the process that changes
            // it is this one, which does nothing else now.
            let page = unsafe { std::slice::from_raw_parts(self.file.as_ptr().add(offset), size) };
            if page != before && restore(before, offset, page) {
                self.file.write(offset, before);
            }
        }
    }

    /// Maps the memory at dom0's addresses.
    pub fn map_at_dom0(&self) -> Result<(), Error> {
        for piece in pieces(self.pages) {
            let write = if piece.writable { libc::PROT_WRITE } else { 0 };
            let flags = libc::MAP_SHARED | libc::MAP_FIXED_NOREPLACE | libc::MAP_POPULATE;
            // SAFETY: with FIXED_NOREPLACE no existing mapping is replaced.
            let at = unsafe {
                libc::mmap(
                    piece.start as *mut c_void,
                    piece.length as usize,
                    libc::PROT_READ | write,
                    flags,
                    self.fd(),
                    piece.offset as libc::off_t,
                )
            };
            if at as u64 != piece.start {
                return Err(Error::last("mapping dom0's memory"));
            }
        }
        Ok(())
    }
}

/// The pristine bytes: the same in every process that gives the same seed.
pub fn pristine(length: u64, seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..length / 8)
        .flat_map(|_| random.word().to_le_bytes())
        .collect()
}

fn address_of(pages: u64, offset: u64) -> u64 {
    pieces(pages)
        .iter()
        .find(|p| offset.wrapping_sub(p.offset) < p.length)
        .map_or(0, |p| p.start + offset - p.offset)
}

/// A word that depends on every byte.
pub fn digest(bytes: &[u8]) -> u64 {
    bytes
        .chunks(8)
        .fold(0x9e37_79b9_7f4a_7c15, |hash: u64, chunk| {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            (hash ^ u64::from_le_bytes(word))
                .wrapping_mul(0xff51_afd7_ed55_8ccd)
                .rotate_left(29)
        })
}
