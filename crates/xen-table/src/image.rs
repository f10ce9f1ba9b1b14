//! The hypervisor's image as the boot loader gets it: an ELF file of 32 bits with one segment,
//! in which the code is linked for the hypervisor's own addresses.

/// Where Xen's own addresses begin: `XEN_VIRT_START` (xen/arch/x86/include/asm/config.h of
/// 4.17 to 4.20). Its symbols are relative to it, and `symbols.rs` compares.
pub const START: u64 = 0xffff_82d0_4000_0000;

/// Program header types.
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;
/// `NT_GNU_BUILD_ID`.
const BUILD_ID: u32 = 3;

/// The image.
pub struct Image<'f> {
    bytes: &'f [u8],
    /// Bytes from [`START`] to the first.
    base: u64,
    build_id: [u8; 20],
}

impl<'f> Image<'f> {
    /// Finds the segment and the note.
    pub fn new(file: &'f [u8]) -> Result<Image<'f>, String> {
        if file.get(..5) != Some(b"\x7fELF\x01") {
            return Err(
                "it is no ELF file of 32 bits; give the decompressed /boot/xen-*.gz".into(),
            );
        }
        let half = |at: usize| read(file, at, 2).map(|n| n as usize);
        let (table, size, count) = (read(file, 0x1c, 4)? as usize, half(0x2a)?, half(0x2c)?);
        let (mut segment, mut note) = (None, None);
        for header in (0..count).map(|n| table + n * size) {
            let word = |n: usize| read(file, header + 4 * n, 4);
            let range = word(1)? as usize..(word(1)? + word(4)?) as usize;
            let bytes = file.get(range).ok_or("a segment is cut off")?;
            match word(0)? as u32 {
                PT_LOAD if segment.is_none() => segment = Some((word(3)?, bytes)),
                PT_NOTE if note.is_none() => note = Some(bytes),
                _ => return Err("it has other segments than Xen's image".into()),
            }
        }
        let (base, bytes) = segment.ok_or("it has no segment")?;
        let build_id = build_id(note.ok_or("it has no note")?)?;
        Ok(Image {
            bytes,
            base,
            build_id,
        })
    }

    /// The build-id.
    pub fn build_id(&self) -> &[u8; 20] {
        &self.build_id
    }

    /// All bytes.
    pub fn bytes(&self) -> &'f [u8] {
        self.bytes
    }

    /// At most so many bytes at an address.
    pub fn at(&self, address: u64, count: usize) -> Result<&'f [u8], String> {
        let offset = address.checked_sub(START + self.base);
        let rest = offset.and_then(|offset| self.bytes.get(offset as usize..));
        let rest = rest.ok_or_else(|| format!("{address:#x} is not in the image"))?;
        Ok(&rest[..count.min(rest.len())])
    }

    /// How many words of 8 bytes in the image are one of these addresses, ascending.
    pub fn mentions(&self, addresses: &[u64]) -> usize {
        let (words, _) = self.bytes.as_chunks::<8>();
        let known = |word: &&[u8; 8]| addresses.binary_search(&u64::from_le_bytes(**word)).is_ok();
        words.iter().filter(known).count()
    }
}

/// A little-endian number.
pub fn read(bytes: &[u8], at: usize, size: usize) -> Result<u64, String> {
    let field = at.checked_add(size).and_then(|end| bytes.get(at..end));
    let field = field.ok_or("it is cut off")?;
    Ok(field
        .iter()
        .rev()
        .fold(0, |n, byte| n << 8 | u64::from(*byte)))
}

/// The descriptor of the one note (gABI, chapter 5).
fn build_id(note: &[u8]) -> Result<[u8; 20], String> {
    let header = [read(note, 0, 4)?, read(note, 4, 4)?, read(note, 8, 4)?];
    let descriptor = note.get(16..36).and_then(|d| d.try_into().ok());
    match (
        header == [4, 20, u64::from(BUILD_ID)],
        note.get(12..16),
        descriptor,
    ) {
        (true, Some(b"GNU\0"), Some(id)) => Ok(id),
        _ => Err("its note is no build-id of 20 bytes".into()),
    }
}
