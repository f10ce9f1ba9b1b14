//! The testbed: dom0 and the hypervisor as processes on one machine, and the
//! proof of correctness that is made with them.
//!
//! Functions of the stock `e1000.ko` are run twice on the same random image of
//! dom0's memory: unmodified, in a process that has the image at dom0's
//! addresses, and rewritten, in a process that has nothing there. The result,
//! every byte of memory, every call out with its arguments, and where and why a
//! run was aborted must agree.
//!
//! ```text
//! stock ─> program (rewritten, verified, linked)
//!   │          │
//!   ├─ native  └─ twin          workers: processes that run functions
//!   │      └─ model ─┘          what imports do, the same for both
//!   └─ image, functions         random memory and arguments
//! session ─> compare ─> campaign
//! ```

pub mod belief;
pub mod campaign;
mod code_memory;
pub mod compare;
pub mod counting;
mod decode;
pub mod dom0;
pub mod entries;
pub mod error;
pub mod features;
pub mod forms;
pub mod functions;
pub mod fuzz;
pub mod image;
pub mod imports;
pub mod live;
mod mapping;
pub mod model;
pub mod mutate;
pub mod native;
pub mod nic;
pub mod patience;
mod policy;
pub mod program;
pub mod qemu;
pub mod random;
mod reach;
pub mod runtime;
pub mod scene;
mod segments;
pub mod session;
mod signals;
pub mod stock;
pub mod symbolise;
pub mod trace;
pub mod twin;
pub mod verdict;
pub mod worker;

pub use error::Error;
