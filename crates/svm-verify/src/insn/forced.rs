//! P3: a `ud2` behind which a hypervisor goes on.
//!
//! ```text
//!     ud2; .ascii "xen"; cpuid
//! ```
//!
//! Xen executes the `cpuid` for a paravirtual guest, and goes on behind it
//! (`emulate_forced_invalid_op`, xen/arch/x86/pv/emul-inv-op.c). For others it may execute whatever
//! follows (`hvm_fep`), as KVM may behind `kvm` (`handle_ud`, arch/x86/kvm/x86.c), also in the middle
//! of an instruction. To the kernel's own decoder the five bytes are a prefix
//! (`insn_get_emulate_prefix`, arch/x86/lib/insn.c). To a processor they are `ud2` and other code, which is
//! judged by the paths that lead there; that from the `ud2` is none of them.

const UD2: [u8; 2] = [0x0f, 0x0b];
const SIGNATURES: [&[u8]; 2] = [b"xen", b"kvm"];

/// Why such bytes are refused.
pub const REASON: &str =
    "a hypervisor takes ud2 before these bytes for a prefix, and goes on behind them";

/// Whether a `ud2` is there, and behind it what a hypervisor asks for.
pub fn begins(bytes: &[u8]) -> bool {
    bytes.strip_prefix(&UD2).is_some_and(follows)
}

/// Whether code that is written over other code may make such bytes with what is before it: it begins
/// as what a hypervisor asks for ends.
pub fn may_go_on(written: &[u8]) -> bool {
    let goes_on =
        |signature: &[u8]| (0..signature.len()).any(|n| written.starts_with(&signature[n..]));
    SIGNATURES.into_iter().any(goes_on)
}

/// The same of what is behind it: it ends in `ud2`.
pub fn may_begin(written: &[u8]) -> bool {
    written.ends_with(&UD2)
}

/// Whether bytes are what a hypervisor asks for behind a `ud2`. At the start of a section, the `ud2`
/// may be at the end of another one.
pub fn follows(bytes: &[u8]) -> bool {
    SIGNATURES
        .iter()
        .any(|signature| bytes.starts_with(signature))
}
