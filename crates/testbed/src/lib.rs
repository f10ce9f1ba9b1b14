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
pub mod compare;
pub mod counting;
pub mod features;
pub mod forms;
pub mod functions;
pub mod fuzz;
pub mod image;
pub mod live;
pub mod model;
pub mod mutate;
pub mod native;
pub mod nic;
mod policy;
pub mod qemu;
mod reach;
pub mod scene;
pub mod session;
pub mod symbolise;
pub mod trace;
pub mod twin;
pub mod worker;
