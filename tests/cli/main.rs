//! The command line as its users meet it: messages, exit statuses, files.
//!
//! Inputs are assembled here with the system assembler, except where the stock
//! e1000 module is asked for. Expected text is in `snapshots/`; after reading
//! each change, `INSTA_UPDATE=always cargo test -p twin --test cli` renews it.

#![allow(missing_docs, reason = "tests")]

mod bad_input;
mod cc;
mod help;
mod html;
mod kbuild;
mod outputs;
mod run;
mod sandbox;
#[path = "../simulator/mod.rs"]
mod simulator;
mod stock;
mod subcommands;
mod switches;
mod text;
mod usage;
