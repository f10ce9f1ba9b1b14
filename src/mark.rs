//! The mark of a rewritten object: which version made it, how, and from what.
//!
//! ```text
//! twin=0.1.0 scheme=stlb target=linux original=sha256:5c7d...
//! ```
//!
//! A module has it in `.modinfo`, where `modinfo` shows it; an object for a hypervisor in
//! `.twin.origin`, which is not loaded. A module that was compiled with `twin cc` has
//! `from=source` in the place of the original. A mark says what its maker says: it protects
//! from mistakes, a signature protects it from others.

use std::borrow::Cow;

use elf_loader::consts::SHF_ALLOC;
use elf_loader::{Object, Section, modinfo};
use ring::digest::{SHA256, digest};
use svm_rewrite::{Accesses, Options, Target};
use twin_abi::sections;

/// The key of the mark.
const KEY: &str = "twin";
/// What comes before the hash of the original.
const ORIGINAL: &str = "original=";
const MODINFO: &str = ".modinfo";
/// Which build a module is, by a number that its debug information has, too.
const BUILD_ID: &str = ".note.gnu.build-id";

/// The hash of a file's contents, as marks and reports have it: `sha256:` and 64 digits.
pub fn hash(contents: &[u8]) -> String {
    let hash = digest(&SHA256, contents);
    let digits = hash.as_ref().iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

/// Which version made something, and how.
fn made(options: Options) -> String {
    let accesses = match options.accesses {
        Accesses::All => String::new(),
        Accesses::Stores => format!(" accesses={}", options.accesses.as_str()),
    };
    let processor = match options.processor == options.scheme.processor() {
        true => String::new(),
        false => format!(" processor={}", options.processor.as_str()),
    };
    let strict = match options.strict {
        true => " strict",
        false => "",
    };
    format!(
        "{KEY}={} scheme={} target={}{accesses}{processor}{strict}",
        env!("CARGO_PKG_VERSION"),
        options.scheme.as_str(),
        options.target.as_str(),
    )
}

/// The mark of a module that was made from texts, for the one that describes the module. It
/// names no original: that would be many files.
pub fn text(options: Options) -> String {
    let made = made(options);
    format!("\t.section {MODINFO},\"a\",@progbits\n\t.asciz \"{made} from=source\"\n")
}

/// Marks an object that was made from contents with this hash. If it has a build-id, it gets
/// another: debuggers and profilers find the original's debug information by that one.
pub fn put(object: &mut Object<'static>, options: Options, original: &str) {
    let mark = format!("{} {ORIGINAL}{original}\0", made(options));
    if let Some(id) = object.section_named(BUILD_ID) {
        rename(&mut object.sections[id.0 as usize], &mark);
    }
    let (name, flags) = match options.target {
        Target::Linux => (MODINFO, SHF_ALLOC),
        Target::Hypervisor | Target::Process => (sections::ORIGIN, 0),
    };
    let section = match object.section_named(name) {
        Some(id) => &mut object.sections[id.0 as usize],
        None => {
            let empty = Section::with_data(name.to_owned(), flags, 1, Vec::new());
            object.sections.push(empty);
            object.sections.last_mut().expect("it was added")
        }
    };
    append(section, mark.as_bytes());
}

/// Makes the build-id, of any length, a hash of itself and the mark. A note is three words, of
/// which the second is the length of what it says, a name of four bytes, and that (gABI,
/// chapter 5). A section of another form is no build-id, and stays.
fn rename(note: &mut Section<'static>, mark: &str) {
    const GNU: &[u8] = b"\x03\0\0\0GNU\0";
    let data: &mut Vec<u8> = Cow::to_mut(&mut note.data);
    let Some((header, id)) = data.split_at_mut_checked(GNU.len() + 8) else {
        return;
    };
    let says = u32::try_from(id.len()).map(u32::to_le_bytes);
    if header[..4] == 4u32.to_le_bytes()
        && says.is_ok_and(|n| header[4..8] == n)
        && &header[8..] == GNU
    {
        let own = digest(&SHA256, &[&*id, mark.as_bytes()].concat());
        for (byte, new) in id.iter_mut().zip(own.as_ref()) {
            *byte = *new;
        }
    }
}

/// Adds a string to strings that end in zeros.
fn append(section: &mut Section<'static>, string: &[u8]) {
    let data: &mut Vec<u8> = Cow::to_mut(&mut section.data);
    if data.last().is_some_and(|last| *last != 0) {
        data.push(0);
    }
    data.extend_from_slice(string);
    section.size = data.len() as u64;
}

/// The hash of what an object was made from, by its mark.
pub fn original<'o>(object: &'o Object<'_>) -> Option<&'o str> {
    let mark = match object.section_named(sections::ORIGIN) {
        Some(id) => {
            let text = std::str::from_utf8(&object.section(id).data).ok()?;
            text.strip_suffix('\0')?
                .strip_prefix(KEY)?
                .strip_prefix('=')?
        }
        // A part that was rewritten by itself may have left its own mark before this one.
        None => modinfo::values_of_key(object, KEY).pop()?,
    };
    mark.split(' ').find_map(|word| word.strip_prefix(ORIGINAL))
}
