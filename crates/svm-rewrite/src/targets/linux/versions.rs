//! Versions of the runtime's imports (`struct modversion_info` in
//! include/linux/module.h of Linux 6.1; scripts/genksyms).
//!
//! A kernel built with versions requires, for each symbol that a module imports, a
//! checksum of its declaration in `__versions`, and warns if there is none. The module
//! has those of its own imports. Further imports of the runtime are declared here as they
//! were when the runtime was written: a kernel that declares them differently refuses
//! the module, as it should.

use elf_loader::Object;

use crate::refusal::{Code, Refusal};

const SECTION: &str = "__versions";
/// Bytes of `struct modversion_info`: a checksum, and a name filled up with zeros.
const ENTRY: usize = 64;
const CHECKSUM: usize = 8;

/// The runtime's imports, with the declarations as genksyms prints them
/// (`genksyms -D`): the preprocessor's tokens, without the names of parameters.
const DECLARATIONS: [(&str, &str); 2] = [
    (
        "_printk",
        "__attribute__ ( ( __format__ ( printf , 1 , 2 ) ) ) __attribute__ ( ( __cold__ ) ) \
         int _printk ( const char * , ... ) ",
    ),
    ("__x86_return_thunk", "void __x86_return_thunk ( void ) "),
];

/// Adds the versions of the runtime's imports that the module lacks. A module without
/// versions stays without.
///
/// # Errors
/// The section holds no whole entries.
pub fn complete(object: &mut Object<'static>) -> Result<(), Refusal> {
    let Some(id) = object.section_named(SECTION) else {
        return Ok(());
    };
    let section = &mut object.sections[id.0 as usize];
    if !section.data.len().is_multiple_of(ENTRY) {
        let reason = "its size is no multiple of an entry's";
        return Err(Refusal::at(Code::Metadata, SECTION, 0, reason));
    }
    for (name, declaration) in DECLARATIONS {
        if !has(&section.data, name) {
            section.data.to_mut().extend(entry(name, declaration));
        }
    }
    section.size = section.data.len() as u64;
    Ok(())
}

fn has(entries: &[u8], name: &str) -> bool {
    entries.chunks_exact(ENTRY).any(|entry| {
        let own = &entry[CHECKSUM..];
        own.starts_with(name.as_bytes()) && own[name.len()] == 0
    })
}

fn entry(name: &str, declaration: &str) -> [u8; ENTRY] {
    let mut entry = [0; ENTRY];
    let checksum = u64::from(crc32(declaration.as_bytes()));
    entry[..CHECKSUM].copy_from_slice(&checksum.to_le_bytes());
    entry[CHECKSUM..CHECKSUM + name.len()].copy_from_slice(name.as_bytes());
    entry
}

/// The CRC-32 of IEEE 802.3, as genksyms computes it.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 }
        })
    })
}
