//! The `linux` target: a module that a stock kernel loads in place of the
//! original. Its shape is that of ARCHITECTURE.md, "What a rewritten object is
//! (`--target linux`)".
//!
//! ```text
//! series    whether its tables are those that are known
//! kept      which instructions the kernel's metadata wants as they are   (before anything is decided)
//! system    which instructions it may have
//! own       what references in code are called
//! places    where original places are now
//! tables    the kernel's tables about code, moved
//! orc       unwind tables, made anew
//! runtime   the slow path, linked in
//! versions  checksums of what the slow path imports
//! emit      all of it into one object
//! ```

mod emit;
mod kept;
mod orc;
mod own;
mod places;
mod runtime;
mod series;
mod system;
mod tables;
mod versions;

pub use emit::emit;
pub use kept::{Kept, is_verbatim, keep_realigned, kept};
pub use own::{check, field, referent};
pub use series::check as check_series;
pub use system::refuse as refuse_system;
