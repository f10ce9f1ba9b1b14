//! Why the live system could not be set up.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::image::Module;

/// Why something could not be set up.
#[derive(Debug, Error)]
pub enum LiveError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}; run `make stock support`, or name the file", path.display())]
    NoFile {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An object cannot be read.
    #[error("{module}: {source}")]
    Read {
        /// Which of the objects.
        module: Module,
        /// What is wrong.
        source: elf_loader::ReadError,
    },
    /// Driver and dom0's kernel are of different kernels.
    #[error(
        "the driver was built for kernel {driver}, the testbed's kernel.o and hot.o for \
         {kernel}: structures may differ; take e1000.ko of {kernel}, or build the two anew"
    )]
    Release {
        /// The driver's, by its `vermagic`.
        driver: String,
        /// That of kernel.o.
        kernel: String,
    },
    /// An object cannot be placed or linked.
    #[error("{module}: {source}")]
    Link {
        /// Which of the objects.
        module: Module,
        /// What is wrong.
        source: elf_loader::link::LinkError,
    },
    /// Two objects define the same global symbol.
    #[error("`{name}` is defined by {first} and by {second}; make one of them static")]
    Duplicate {
        /// The symbol.
        name: String,
        /// The first object that defines it.
        first: Module,
        /// The second.
        second: Module,
    },
    /// Imports without a definition.
    #[error(
        "nobody defines {}; define them in kernel.o or hot.o, or plan with `Missing::Trap`",
        names.join(", ")
    )]
    Missing {
        /// Their names.
        names: Vec<String>,
    },
    /// An image needs more room than its place has.
    #[error("{what} needs {needed:#x} bytes, but its place has {room:#x}; see memory/layout.rs")]
    NoRoom {
        /// The image.
        what: String,
        /// Bytes of the image.
        needed: u64,
        /// Bytes of its place.
        room: u64,
    },
    /// A table of places to patch names one with other contents.
    #[error(
        "{module}: {section} names {site:#x}, where no branch to `{target}` is; build the \
         object for the stock kernel (`make support`), or take the stock module"
    )]
    Site {
        /// The object with the table.
        module: Module,
        /// The table.
        section: &'static str,
        /// The dom0 address of the place.
        site: u64,
        /// Where the branch must go.
        target: &'static str,
    },
    /// Two ranges of dom0 have the same place in the window.
    #[error(
        "dom0's {one:#x?} and {other:#x?} have low halves in common, so a window cannot show \
         both; place them apart in memory/layout.rs, or take the scheme stlb"
    )]
    Collision {
        /// The one that was to be added.
        one: std::ops::Range<u64>,
        /// The one that is there; from 0 on, small numbers, which are no pointers.
        other: std::ops::Range<u64>,
    },
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl LiveError {
    /// For `map_err`: a system call failed that was to do `what`.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> LiveError {
        move |source| LiveError::System { what, source }
    }

    /// The last system call's failure.
    pub fn last(what: &'static str) -> LiveError {
        LiveError::System {
            what,
            source: io::Error::last_os_error(),
        }
    }
}
