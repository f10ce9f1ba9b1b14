//! A kernel's patches to code that it loads, so that dom0's driver is as fast as on a
//! real one. Without them, native would look slower than it is, and the rewritten
//! driver, whose rewriter leaves the same code out, faster in comparison.
//!
//! ```text
//! __mcount_loc    call __fentry__              nopl 0x0(%rax,%rax,1)    no tracing
//! .return_sites   jmp __x86_return_thunk       ret; int3 (4)            no return thunks
//! ```
//!
//! Linux 6.1: `ftrace_init_nop` in `arch/x86/kernel/ftrace.c`, `apply_returns` in
//! `arch/x86/kernel/alternative.c` on a processor that needs no return thunk, the case
//! that favours native most.

use elf_loader::Object;
use elf_loader::link::Linked;

use crate::error::LiveError;
use crate::image::Module;

/// Bytes of a site.
const SITE: usize = 5;
/// `P6_NOP5`.
const NOP: [u8; SITE] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
/// `ret`, and `int3` in the bytes that never execute.
const RETURN: [u8; SITE] = [0xc3, 0xcc, 0xcc, 0xcc, 0xcc];
const CALL: u8 = 0xe8;
const JUMP: u8 = 0xe9;

/// One kind of site.
struct SiteKind {
    section: &'static str,
    /// Bytes of an entry.
    entry: usize,
    /// The address that an entry at an address means.
    site: fn(u64, &[u8]) -> u64,
    /// What is at a site, and where it goes.
    opcode: u8,
    target: &'static str,
    becomes: [u8; SITE],
}

const KINDS: [SiteKind; 2] = [
    SiteKind {
        section: "__mcount_loc",
        entry: 8,
        site: |_, bytes| u64::from_le_bytes(bytes.try_into().expect("eight bytes")),
        opcode: CALL,
        target: "__fentry__",
        becomes: NOP,
    },
    SiteKind {
        section: ".return_sites",
        entry: 4,
        site: |at, bytes| {
            let distance = i32::from_le_bytes(bytes.try_into().expect("four bytes"));
            at.wrapping_add_signed(distance.into())
        },
        opcode: JUMP,
        target: "__x86_return_thunk",
        becomes: RETURN,
    },
];

/// Patches the linked sections of an object; `address_of` knows global symbols.
///
/// # Errors
/// [`LiveError::Site`]: an entry's place has other contents than expected.
pub fn apply(
    module: Module,
    object: &Object<'_>,
    linked: &mut [Linked],
    address_of: &dyn Fn(&str) -> Option<u64>,
) -> Result<(), LiveError> {
    for kind in KINDS {
        for site in sites(&kind, object, linked) {
            let patched = address_of(kind.target)
                .zip(bytes_at(linked, site))
                .filter(|(target, bytes)| is_branch(bytes, kind.opcode, site, *target))
                .map(|(_, bytes)| *bytes = kind.becomes);
            patched.ok_or(LiveError::Site {
                module,
                section: kind.section,
                site,
                target: kind.target,
            })?;
        }
    }
    Ok(())
}

fn sites(kind: &SiteKind, object: &Object<'_>, linked: &[Linked]) -> Vec<u64> {
    let id = object.section_named(kind.section);
    let table = linked.iter().find(|section| Some(section.section) == id);
    let Some(table) = table else {
        return Vec::new();
    };
    let entries = table.bytes.chunks_exact(kind.entry).enumerate();
    entries
        .map(|(i, bytes)| (kind.site)(table.address + (i * kind.entry) as u64, bytes))
        .collect()
}

fn bytes_at(linked: &mut [Linked], address: u64) -> Option<&mut [u8; SITE]> {
    linked.iter_mut().find_map(|section| {
        let offset = usize::try_from(address.checked_sub(section.address)?).ok()?;
        section
            .bytes
            .get_mut(offset..offset.checked_add(SITE)?)?
            .try_into()
            .ok()
    })
}

fn is_branch(bytes: &[u8; SITE], opcode: u8, site: u64, target: u64) -> bool {
    let [first, distance @ ..] = *bytes;
    let end = site + SITE as u64;
    let goes_to = end.wrapping_add_signed(i32::from_le_bytes(distance).into());
    first == opcode && goes_to == target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_are_known_by_where_they_go() {
        let call = [CALL, 0x0b, 0, 0, 0];
        assert!(is_branch(&call, CALL, 0x1000, 0x1010));
        assert!(!is_branch(&call, CALL, 0x1000, 0x1011));
        assert!(!is_branch(&call, JUMP, 0x1000, 0x1010));
        let back = [JUMP, 0xfb, 0xff, 0xff, 0xff];
        assert!(is_branch(&back, JUMP, 0x1000, 0x1000));
    }
}
