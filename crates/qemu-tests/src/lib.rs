//! A stock kernel in QEMU, under software emulation: rewritten modules are loaded
//! into it and used.
//!
//! ```text
//! ramdisk   busybox, ethtool, modules, the guest's script: an initramfs
//! server    bytes down and up over TCP, on the host's side of the guest's network
//! machine   QEMU from start to power-off; the console goes to a file
//! report    reads the console: steps, results, complaints of the kernel
//! modules   modules rewritten, verified and written for the guest
//! distribution   the stock kernel's modules by name, with what they need
//! traces    what the kernel's tracing shows of the modules
//! trial     any of them on one of QEMU's cards
//! processors   programs of the host's on another processor; built: which programs
//! moderation   interrupts of QEMU's own e1000 with its moderation on and off
//! ```
//!
//! Needs `qemu-system-x86_64`, a static busybox and `ethtool` (scripts/setup.sh),
//! and the stock kernel (scripts/stock.sh); no privileges.

pub mod built;
pub mod distribution;
pub mod machine;
pub mod moderation;
pub mod modules;
pub mod processors;
pub mod ramdisk;
pub mod report;
pub mod server;
pub mod traces;
pub mod trial;

use std::path::PathBuf;

/// Why a guest could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or program that the tests need is missing.
    #[error("{what} is missing ({path}); run `make setup stock` first")]
    Missing {
        /// In words for the message.
        what: &'static str,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A file, process or socket.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What came of it.
        source: std::io::Error,
    },
    /// A module was refused.
    #[error("{module}: {why}")]
    Module {
        /// The file as the distribution has it.
        module: PathBuf,
        /// The first reason.
        why: String,
    },
    /// The guest did not power off in time.
    #[error("the guest was still running after {seconds} s; its console is in {console}")]
    Timeout {
        /// The limit, in seconds of this process's own time.
        seconds: u64,
        /// What the kernel printed until then.
        console: PathBuf,
    },
}

/// Adds the operation to an I/O error.
pub(crate) fn io<T>(what: impl Into<String>, result: std::io::Result<T>) -> Result<T, Error> {
    result.map_err(|source| Error::Io {
        what: what.into(),
        source,
    })
}

/// The series, and flavour, of the kernel that is booted: `7.3`, `6.1-rt`; without it, the
/// stock kernel.
pub const KERNEL: &str = "KERNEL";

/// A place in the unpacked package of the kernel that is booted.
pub(crate) fn package(below: &str) -> PathBuf {
    of_kernel("stock").join(below)
}

/// A directory below `target/` of which each kernel has one.
pub(crate) fn of_kernel(kind: &str) -> PathBuf {
    let named = std::env::var(KERNEL).unwrap_or_default();
    match named.as_str() {
        "" => target(kind),
        named => target(&format!("{kind}-{named}")),
    }
}

/// A directory below the workspace's `target/`.
pub(crate) fn target(below: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")).join(below)
}
