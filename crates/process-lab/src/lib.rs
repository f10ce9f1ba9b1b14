//! Support for tests that execute rewritten code: it runs driver code in a process of
//! this machine, with dom0's addresses, the runtime and the processor's faults.
//!
//! ```text
//! stock, imports, e1000          the stock driver as dom0 has it, and what it calls
//! program, entries               the rewritten driver: verified, linked, where it is entered
//! address_space, shared          dom0's memory: its addresses, and the file that backs it
//! mapping, code_memory           pages at fixed addresses; code that is written, then sealed
//! enter                          the host's frame under code with a stack of its own
//! signals, segments, decode      the processor's faults, `%gs`, the instruction that faulted
//! runtime, packet_path           the C runtime on the testbed's platform; its stages
//! process, patience              child processes, and how long to wait for them
//! random, error, verdict         seeds; failures; exit statuses
//! ```
//!
//! The crate contains no tests of drivers: `conformance` uses it to compare single
//! functions and instructions, `e1000-sim` to boot a kernel and move packets.

pub mod address_space;
pub mod code_memory;
pub mod decode;
pub mod e1000;
mod enter;
pub mod entries;
pub mod error;
pub mod imports;
pub mod mapping;
pub mod packet_path;
pub mod patience;
pub mod process;
pub mod program;
pub mod random;
pub mod runtime;
pub mod segments;
pub mod shared;
pub mod signals;
pub mod stock;
pub mod verdict;

pub use error::Error;
