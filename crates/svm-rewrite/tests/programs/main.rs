//! Programs in assembly whose meaning is easily missed: rewritten, each prints what it prints
//! natively, or it is refused for the reason that its test names.

mod labels;
mod lengths;
mod reached;
mod registers;
mod run;
mod stacks;
mod statements;
mod tables;
