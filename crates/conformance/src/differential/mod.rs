//! Functions of the stock `e1000.ko`, run twice on the same random image of dom0's
//! memory: unmodified, in a process that has the image at dom0's addresses, and
//! rewritten, in a process that has nothing at these addresses. The result, every byte
//! of memory, every call out with its arguments, and the place and reason of an abort
//! must agree.
//!
//! ```text
//! stock ─> program (rewritten, verified, linked)           process_lab
//!   │          │
//!   ├─ native  └─ twin          workers: processes that run functions
//!   │      └─ model ─┘          what imports do, the same for both
//!   └─ image, functions         random memory and arguments
//! session ─> compare ─> campaign
//! ```

pub mod campaign;
pub(crate) mod compare;
pub mod features;
pub mod functions;
pub(crate) mod image;
pub(crate) mod model;
pub mod native;
pub(crate) mod objects;
mod ports;
pub mod session;
pub(crate) mod symbolise;
pub mod trace;
pub(crate) mod twin;
pub(crate) mod worker;
