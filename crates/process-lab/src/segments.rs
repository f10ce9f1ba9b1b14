//! The bases of `%fs` and `%gs` of the calling thread (arch_prctl(2)). Rust and
//! the C library keep thread-local data at `%fs`; `%gs` is free, so it points to the
//! per-CPU area as in the kernel.

use std::io;

use libc::{c_int, c_long};

/// What [`set_gs`] tries, for the error that says it failed.
pub const SETTING_GS: &str = "setting the base of %gs";

// <asm/prctl.h>; the libc crate lacks them.
const ARCH_SET_GS: c_int = 0x1001;
const ARCH_GET_FS: c_int = 0x1003;

/// Sets the base of `%gs`.
pub fn set_gs(base: u64) -> io::Result<()> {
    // SAFETY: Rust and the C library use %fs; neither uses %gs.
    done(unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, base) })
}

/// The base of `%fs`.
pub fn fs() -> io::Result<u64> {
    let mut base = 0u64;
    // SAFETY: the kernel writes the one word.
    done(unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_FS, &raw mut base) })?;
    Ok(base)
}

fn done(status: c_long) -> io::Result<()> {
    match status {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
