//! One file for each subcommand: its options and `run()`.

pub mod cc;
pub mod completions;
pub mod explain;
pub mod man;
pub mod payload;
pub mod rewrite;
pub mod run;
pub mod stats;
pub mod verify;
pub mod xen;
