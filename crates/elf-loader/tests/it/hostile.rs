//! Damaged input: the reader, and all code that works on its result, return and never
//! panic.

use crate::common::{SAMPLE_64, assemble, stock_e1000};
use elf_loader::input::decompress;
use elf_loader::link::{SymbolUse, Trampolines, layout, link};
use elf_loader::{Object, read, refers_to_code, special, write};

/// Reads and, if that succeeds, does all that the crate can do.
fn exercise(bytes: &[u8]) {
    let Ok(object) = read(bytes) else { return };
    if let Ok(written) = write(&object) {
        read(&written).expect("what the writer writes is readable");
    }
    for (id, _) in object.sections() {
        let _ = special::entries(&object, id);
    }
    let _ = refers_to_code(&object).count();
    link_somewhere(&object);
}

/// Links all sections but those that damage made huge: zeroing memory is slow.
fn link_somewhere(object: &Object<'_>) {
    let resolve = |_: &str, _: SymbolUse| Some(0x10_0000);
    let _ = Trampolines::new(object, 0x20_0000, &resolve);
    if let Ok(placed) = layout(object, 0x40_0000, |_, section| section.size < 1 << 24) {
        let _ = link(object, &placed, &resolve);
    }
}

/// xorshift64*: the same sequence every time.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % below
    }
}

#[test]
fn truncated_at_any_length() {
    let bytes = assemble(&[], SAMPLE_64);
    for length in 0..bytes.len() {
        assert!(read(&bytes[..length]).is_err(), "length {length}");
    }
    let stock = stock_e1000();
    for length in (0..stock.len()).step_by(997) {
        exercise(&stock[..length]);
    }
}

#[test]
fn flipped_bytes() {
    let bytes = assemble(&[], SAMPLE_64);
    for seed in [1, 2] {
        let mut random = Random(seed);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            for _ in 0..=random.next(3) {
                let at = random.next(damaged.len());
                damaged[at] = random.next(256) as u8;
            }
            exercise(&damaged);
        }
    }
}

#[test]
fn flipped_headers() {
    // Section headers are the richest target, so they get their own share.
    let bytes = assemble(&[], SAMPLE_64);
    let table = bytes[40..].first_chunk().expect("e_shoff");
    let start = u64::from_le_bytes(*table) as usize;
    for seed in [3, 4] {
        let mut random = Random(seed);
        for _ in 0..20_000 {
            let mut damaged = bytes.clone();
            let at = start + random.next(bytes.len() - start);
            damaged[at] = [0, 1, 0x7f, 0x80, 0xff, random.next(256) as u8][random.next(6)];
            exercise(&damaged);
        }
    }
}

#[test]
fn flipped_stock_module() {
    let stock = stock_e1000();
    let mut random = Random(5);
    for _ in 0..200 {
        let mut damaged = stock.clone();
        for _ in 0..8 {
            let at = random.next(damaged.len());
            damaged[at] = random.next(256) as u8;
        }
        exercise(&damaged);
    }
}

#[test]
fn damaged_compressed_files() {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("m"), assemble(&[], SAMPLE_64)).expect("write");
    for tool in ["xz", "zstd", "gzip"] {
        let packed = crate::input::packed(tool, dir.path());
        for length in 0..packed.len() {
            let _ = decompress(packed[..length].to_vec());
        }
        let mut random = Random(6);
        for _ in 0..300 {
            let mut damaged = packed.clone();
            let at = random.next(damaged.len());
            damaged[at] ^= 1 << random.next(8);
            let _ = decompress(damaged);
        }
    }
}
