//! The command line as its users meet it: messages, exit statuses, files.
//!
//! Inputs are assembled here with the system assembler, except where the stock
//! e1000 module is asked for. What is expected of one command, line by line, is in
//! `tests/cases`; here is what needs more than a shell.

mod archives;
mod bad_input;
mod cc;
mod first_bytes;
mod hand_written;
mod html;
mod kbuild;
mod macros;
#[path = "../../crates/xen-host/tests/host/made_up/mod.rs"]
mod made_up;
mod memory;
mod outputs;
mod places;
mod report;
mod run;
mod sandbox;
mod setup;
mod signals;
mod signing;
#[path = "../simulator/mod.rs"]
mod simulator;
mod stock;
mod stores;
mod subcommands;
mod switches;
mod text;
mod threads;
mod trees;
mod xen;
