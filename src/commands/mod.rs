//! One file a subcommand: its options and `run()`.

pub mod cc;
pub mod completions;
pub mod explain;
pub mod man;
pub mod rewrite;
pub mod run;
pub mod stats;
pub mod verify;

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
}
