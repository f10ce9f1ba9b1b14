//! Decompresses modules as distributions ship them: plain, or compressed with xz, zstd
//! or gzip. The format is recognised by content, not by name.
//!
//! Takes bytes, gives the bytes of the object. Memory is bounded whatever the
//! input claims.

use std::io::{self, Read};

use ruzstd::decoding::errors::FrameDecoderError;
use thiserror::Error;

/// Most bytes that a file may decompress to: far more than any module, far
/// less than memory.
pub const MAX_DECOMPRESSED: u64 = 512 << 20;
/// Most bytes that a file may decompress to for each of its own, in addition to
/// [`FREE_DECOMPRESSED`]: compiled code is compressed to a fifth at best. Later phases
/// take memory for each byte of code, so a few kilobytes must not become many megabytes.
pub const MAX_RATIO: u64 = 100;
/// Bytes that any file may decompress to.
pub const FREE_DECOMPRESSED: u64 = 1 << 20;
/// Most memory that the xz decoder may use for its dictionary, in bytes.
const XZ_MEMORY: u64 = 256 << 20;

const XZ_MAGIC: &[u8] = &[0xfd, b'7', b'z', b'X', b'Z', 0];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];

/// Why a file could not be decompressed.
#[derive(Debug, Error)]
pub enum InputError {
    /// The compressed data is damaged or cut off.
    #[error("the {format} data is damaged or cut off: {source}; copy the file again")]
    Damaged {
        /// The compression: xz, zstd or gzip.
        format: &'static str,
        /// What the decoder says.
        source: io::Error,
    },
    /// It refers back to more of what it expands to than is kept for it.
    #[error(
        "the {format} data needs more than {limit} bytes of memory to expand, which is all that it is given; decompress it yourself"
    )]
    TooMuchMemory {
        /// The compression: xz or zstd.
        format: &'static str,
        /// What it may use, in bytes.
        limit: u64,
    },
    /// It expands to more than [`MAX_DECOMPRESSED`] bytes, or to more than [`MAX_RATIO`]
    /// allows.
    #[error(
        "the {format} data expands to more than {limit} bytes, which no module does; decompress it yourself if it is one"
    )]
    TooLarge {
        /// The compression: xz, zstd or gzip.
        format: &'static str,
        /// The limit in bytes.
        limit: u64,
    },
}

/// The decompressed bytes of an xz, zstd or gzip file (several concatenated
/// streams are one file); any other bytes unchanged.
///
/// # Errors
/// [`InputError`] if the data is damaged or expands to more than
/// [`MAX_DECOMPRESSED`] bytes, or than [`MAX_RATIO`] allows.
pub fn decompress(bytes: Vec<u8>) -> Result<Vec<u8>, InputError> {
    let limit = (bytes.len() as u64)
        .saturating_mul(MAX_RATIO)
        .saturating_add(FREE_DECOMPRESSED)
        .min(MAX_DECOMPRESSED);
    decompress_up_to(bytes, limit)
}

/// Bytes that [`beginning`] gives.
const BEGINNING: usize = 4096;

/// The first bytes of what a file that begins with `bytes` holds: decompressed, if
/// they are compressed. Fewer, perhaps none, if they are damaged or too few.
pub fn beginning(bytes: &[u8]) -> Vec<u8> {
    if bytes.starts_with(XZ_MAGIC) {
        let flags = liblzma::stream::CONCATENATED;
        let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags);
        let decoder = stream.map(|s| liblzma::read::XzDecoder::new_stream(bytes, s));
        decoder.map(start_of).unwrap_or_default()
    } else if let Some(frame) = first_zstd_frame(bytes) {
        let block = first_block(frame).unwrap_or_default();
        let frame = ruzstd::decoding::StreamingDecoder::new(&block[..]);
        frame.map(start_of).unwrap_or_default()
    } else if bytes.starts_with(GZIP_MAGIC) {
        start_of(flate2::read::MultiGzDecoder::new(bytes))
    } else {
        bytes[..bytes.len().min(BEGINNING)].to_vec()
    }
}

/// What begins with the first frame of zstd that holds data, if this is zstd.
fn first_zstd_frame(mut bytes: &[u8]) -> Option<&[u8]> {
    while let Some(length) = skippable(bytes) {
        bytes = bytes.get(length..)?;
    }
    bytes.starts_with(ZSTD_MAGIC).then_some(bytes)
}

/// A zstd frame that ends after its first block: a decoder gives nothing of a frame that
/// goes on before it has a whole window of it. RFC 8878 3.1.1.
fn first_block(frame: &[u8]) -> Option<Vec<u8>> {
    const LAST: u8 = 1;
    const CHECKSUM: u8 = 1 << 2;
    let descriptor = *frame.get(ZSTD_MAGIC.len())?;
    let one_segment = descriptor >> 5 & 1;
    let dictionary = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let size = [usize::from(one_segment), 2, 4, 8][usize::from(descriptor >> 6)];
    let window = 1 - usize::from(one_segment);
    let block = ZSTD_MAGIC.len() + 1 + window + dictionary + size;
    let mut bytes = frame.to_vec();
    bytes[ZSTD_MAGIC.len()] &= !CHECKSUM;
    *bytes.get_mut(block)? |= LAST;
    Some(bytes)
}

/// The length in bytes of a frame that holds no data, if `bytes` begin with one (RFC 8878 3.1.2).
/// Tools that compress on several processors put one before each frame.
fn skippable(bytes: &[u8]) -> Option<usize> {
    const HEADER: usize = 8;
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    let is_one = word(0)? & !0xf == 0x184d_2a50;
    is_one.then(|| word(4).map_or(HEADER, |data| HEADER + data as usize))
}

/// What a decoder gives before it fails, if it does.
fn start_of(decoder: impl Read) -> Vec<u8> {
    let mut start = Vec::new();
    // An error after some bytes leaves these; `decompress` reports it.
    let _ = decoder.take(BEGINNING as u64).read_to_end(&mut start);
    start
}

fn decompress_up_to(bytes: Vec<u8>, limit: u64) -> Result<Vec<u8>, InputError> {
    if bytes.starts_with(XZ_MAGIC) {
        BoundedOutput::new("xz", limit).xz(&bytes)
    } else if bytes.starts_with(ZSTD_MAGIC) || skippable(&bytes).is_some() {
        BoundedOutput::new("zstd", limit).zstd(&bytes)
    } else if bytes.starts_with(GZIP_MAGIC) {
        BoundedOutput::new("gzip", limit).take(flate2::read::MultiGzDecoder::new(&bytes[..]))
    } else {
        Ok(bytes)
    }
}

/// The decompressed bytes, with their limit.
struct BoundedOutput {
    format: &'static str,
    limit: u64,
    bytes: Vec<u8>,
}

impl BoundedOutput {
    fn new(format: &'static str, limit: u64) -> BoundedOutput {
        BoundedOutput {
            format,
            limit,
            bytes: Vec::new(),
        }
    }

    fn damaged(&self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> InputError {
        InputError::Damaged {
            format: self.format,
            source: io::Error::other(source),
        }
    }

    /// Why a decoder stopped. What that of zstd says is for those who debug it.
    fn stopped(&self, source: io::Error) -> InputError {
        let inner = source.get_ref();
        let of_zstd = inner.and_then(|inner| inner.downcast_ref::<FrameDecoderError>());
        let of_xz = inner.and_then(|inner| inner.downcast_ref::<liblzma::stream::Error>());
        let limit = match (of_zstd, of_xz) {
            (Some(FrameDecoderError::WindowSizeTooBig { max, .. }), _) => *max,
            (_, Some(liblzma::stream::Error::MemLimit)) => XZ_MEMORY,
            (Some(FrameDecoderError::DictNotProvided { .. }), _) => {
                return self.damaged("it names a dictionary, which is another file");
            }
            (Some(_), _) if ends_early(&source) => return self.damaged("it ends too early"),
            (Some(_), _) => return self.damaged("a frame cannot be decoded"),
            (None, _) => {
                return InputError::Damaged {
                    format: self.format,
                    source,
                };
            }
        };
        InputError::TooMuchMemory {
            format: self.format,
            limit,
        }
    }

    /// Appends all that `decoder` gives.
    fn append(&mut self, decoder: impl Read) -> Result<(), InputError> {
        let room = self.limit - self.bytes.len() as u64;
        let mut decoder = decoder.take(room + 1);
        let format = self.format;
        let read = decoder.read_to_end(&mut self.bytes);
        read.map_err(|source| self.stopped(source))?;
        if self.bytes.len() as u64 > self.limit {
            return Err(InputError::TooLarge {
                format,
                limit: self.limit,
            });
        }
        Ok(())
    }

    fn take(mut self, decoder: impl Read) -> Result<Vec<u8>, InputError> {
        self.append(decoder)?;
        Ok(self.bytes)
    }

    fn xz(self, bytes: &[u8]) -> Result<Vec<u8>, InputError> {
        let flags = liblzma::stream::CONCATENATED;
        let stream = liblzma::stream::Stream::new_stream_decoder(XZ_MEMORY, flags);
        let stream = stream.map_err(|e| self.damaged(e))?;
        self.take(liblzma::read::XzDecoder::new_stream(bytes, stream))
    }

    /// One frame after another; checksums are compared where there are any.
    fn zstd(mut self, bytes: &[u8]) -> Result<Vec<u8>, InputError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(length) = skippable(rest) {
                rest = rest
                    .get(length..)
                    .ok_or_else(|| self.damaged("it ends in the middle of a frame"))?;
                continue;
            }
            let frame = ruzstd::decoding::StreamingDecoder::new(&mut rest);
            let mut frame = frame.map_err(|e| self.stopped(io::Error::other(e)))?;
            self.append(&mut frame)?;
            let stored = frame.decoder.get_checksum_from_data();
            if stored.is_some() && stored != frame.decoder.get_calculated_checksum() {
                return Err(self.damaged("its checksum is wrong"));
            }
        }
        Ok(self.bytes)
    }
}

/// Whether a decoder stopped because there was nothing more to read.
fn ends_early(error: &(dyn std::error::Error + 'static)) -> bool {
    let reading = error.downcast_ref::<io::Error>();
    let ended = reading.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    ended || error.source().is_some_and(ends_early)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    #[test]
    fn the_limit_is_exact() {
        let packed = gzip(&[7; 1000]);
        assert_eq!(
            decompress_up_to(packed.clone(), 1000).expect("fits"),
            [7; 1000]
        );
        let error = decompress_up_to(packed, 999).expect_err("too large");
        assert!(
            matches!(error, InputError::TooLarge { limit: 999, .. }),
            "{error}"
        );
    }

    #[test]
    fn a_small_file_does_not_become_a_large_one() {
        let free = FREE_DECOMPRESSED as usize;
        let small = gzip(&vec![0x74; free]);
        assert_eq!(decompress(small).expect("fits").len(), free);
        // A file of nothing but `je .+2` is compressed to a thousandth.
        let packed = gzip(&vec![0x74; 4 * free]);
        let limit = packed.len() as u64 * MAX_RATIO + FREE_DECOMPRESSED;
        let error = decompress(packed).expect_err("too large");
        let InputError::TooLarge { limit: found, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(found, limit);
    }

    #[test]
    fn the_beginning_of_what_is_compressed_needs_the_beginning_only() {
        // xorshift64: nothing that a compressor finds.
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        });
        let noise: Vec<u8> = noise.take(1 << 20).collect();
        for format in crate::compression::Compression::ALL {
            let packed = format.pack(&noise).expect("memory");
            assert!(packed.len() > 1_000_000);
            assert_eq!(
                beginning(&packed[..256 << 10]),
                noise[..BEGINNING],
                "{format:?}"
            );
            assert_eq!(beginning(&packed[..10]), [0; 0], "{format:?}");
        }
        assert_eq!(beginning(&noise), noise[..BEGINNING]);
    }

    #[test]
    fn what_needs_much_memory_is_not_damaged() {
        let large = |dictionary| {
            let mut options = liblzma::stream::LzmaOptions::new_preset(0).expect("a preset");
            options.dict_size(dictionary);
            let mut filters = liblzma::stream::Filters::new();
            filters.lzma2(&options);
            let check = liblzma::stream::Check::Crc32;
            let stream = liblzma::stream::Stream::new_stream_encoder(&filters, check);
            let stream = stream.expect("an encoder");
            let mut encoder = liblzma::read::XzEncoder::new_stream(&b"a module"[..], stream);
            let mut packed = Vec::new();
            encoder.read_to_end(&mut packed).expect("memory");
            packed
        };
        assert_eq!(decompress(large(64 << 20)).expect("fits"), b"a module");
        let error = decompress(large(320 << 20)).expect_err("a large dictionary");
        assert!(
            matches!(error, InputError::TooMuchMemory { format: "xz", .. }),
            "{error}"
        );
        // A window of 2^(10 + 18) bytes (RFC 8878 3.1.1.1.2), and one raw block without bytes.
        let frame = [ZSTD_MAGIC, &[0, 18 << 3, 1, 0, 0]].concat();
        let error = decompress(frame).expect_err("a large window");
        assert!(
            matches!(error, InputError::TooMuchMemory { format: "zstd", .. }),
            "{error}"
        );
    }

    /// No message shows the decoder's own names for what is wrong.
    #[test]
    fn damage_is_said_in_words() {
        let text: Vec<u8> = (0..200_u32).flat_map(|n| (n * n).to_le_bytes()).collect();
        let packed = crate::compression::Compression::Zstd.pack(&text);
        let packed = packed.expect("memory");
        for length in ZSTD_MAGIC.len()..packed.len() {
            let error = decompress(packed[..length].to_vec()).expect_err("a part of it");
            assert!(error.to_string().contains("it ends too early"), "{error}");
        }
        for at in ZSTD_MAGIC.len()..packed.len() {
            let mut damaged = packed.clone();
            damaged[at] ^= 0x81;
            if let Err(error) = decompress(damaged) {
                let message = error.to_string();
                assert!(!message.contains(['{', '(', '_']), "{message}");
            }
        }
    }

    #[test]
    fn other_bytes_are_unchanged() {
        for bytes in [&b""[..], b"\x7fELF", b"\xfd7z", b"(\xb5/"] {
            assert_eq!(decompress(bytes.to_vec()).expect("unchanged"), bytes);
        }
    }
}
