//! The part that `twin` and `twin-run` share as programs: inputs, outputs, failures
//! with their messages, codes and exit statuses, and the options that both read.
//!
//! ```text
//! path ──input──> bytes        bytes ──output──> a file, whole or not at all
//! anything that goes wrong ──failure, codes──> a message and an exit status
//! ```

pub mod assembler;
pub mod child;
pub mod codes;
pub mod failure;
pub mod input;
pub mod interrupt;
pub mod memory;
pub mod options;
pub mod output;
pub mod run;
pub mod standard;
pub mod temporary;
pub mod text;
