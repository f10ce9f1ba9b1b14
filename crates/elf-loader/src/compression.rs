//! Compresses modules as distributions ship them. The same bytes give the same bytes:
//! no time, no name and no number of threads is in them.

use std::io::Write;

/// Dictionary of the xz encoder, in bytes: that of the kernel's own `make
/// modules_install` (scripts/Makefile.modinst).
const XZ_DICTIONARY: u32 = 1 << 20;
/// The presets that the programs xz and gzip have by default.
const LEVEL: u32 = 6;

/// A format that modules are compressed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// `.xz`, with the CRC-32 that the kernel's decoder wants (lib/decompress_unxz.c).
    Xz,
    /// `.zst`.
    Zstd,
    /// `.gz`.
    Gzip,
}

impl Compression {
    /// Every format.
    pub const ALL: [Compression; 3] = [Compression::Xz, Compression::Zstd, Compression::Gzip];

    /// The ending of a file's name.
    pub fn ending(self) -> &'static str {
        match self {
            Compression::Xz => ".xz",
            Compression::Zstd => ".zst",
            Compression::Gzip => ".gz",
        }
    }

    /// A file's name without the ending of its compression, and the compression. An
    /// ending alone is a name.
    pub fn split(name: &[u8]) -> (&[u8], Option<Compression>) {
        let found = Compression::ALL.into_iter().find_map(|format| {
            let stem = name.strip_suffix(format.ending().as_bytes())?;
            (!stem.is_empty()).then_some((stem, Some(format)))
        });
        found.unwrap_or((name, None))
    }

    /// Compresses.
    ///
    /// # Errors
    /// The encoder has no memory.
    pub fn pack(self, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
        match self {
            Compression::Xz => xz(bytes),
            Compression::Zstd => {
                let level = ruzstd::encoding::CompressionLevel::Fastest;
                Ok(ruzstd::encoding::compress_to_vec(bytes, level))
            }
            Compression::Gzip => {
                let level = flate2::Compression::new(LEVEL);
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
                encoder.write_all(bytes)?;
                encoder.finish()
            }
        }
    }
}

fn xz(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    use liblzma::stream::{Check, Filters, LzmaOptions, Stream};
    let mut options = LzmaOptions::new_preset(LEVEL)?;
    options.dict_size(XZ_DICTIONARY);
    let mut filters = Filters::new();
    filters.lzma2(&options);
    let stream = Stream::new_stream_encoder(&filters, Check::Crc32)?;
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    encoder.write_all(bytes)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_unpacks_to_the_same() {
        let bytes: Vec<u8> = (0..100_000_u32)
            .map(|n| (n.wrapping_mul(n) >> 7) as u8)
            .collect();
        for format in Compression::ALL {
            let packed = format.pack(&bytes).expect("memory");
            assert!(packed.len() < bytes.len(), "{format:?}");
            assert_eq!(packed, format.pack(&bytes).expect("memory"), "{format:?}");
            let unpacked = crate::input::decompress(packed).expect("sound");
            assert!(unpacked == bytes, "{format:?}");
        }
    }

    #[test]
    fn endings_are_split_off_names() {
        let split = |name: &'static str| Compression::split(name.as_bytes());
        assert_eq!(split("a.ko.xz"), (&b"a.ko"[..], Some(Compression::Xz)));
        assert_eq!(split("a.ko"), (&b"a.ko"[..], None));
        assert_eq!(split(".gz"), (&b".gz"[..], None));
    }
}
