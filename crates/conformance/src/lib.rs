//! Does rewritten code do what the original does, and does the verifier notice when
//! not? Every suite executes or judges small pieces: one instruction, one function,
//! one changed check. No packets, no kernel.
//!
//! ```text
//! forms          every instruction form, native against rewritten
//! differential   e1000's functions on random memory, native against rewritten
//! belief         what the verifier believes of each allowed encoding, executed
//! mutants        the rewriter's checks, changed: the verifier must reject each
//! fuzz           any input: read, lifted, rewritten, verified, executed
//! counting       what a piece of work costs, without a clock
//! ```

#![allow(missing_docs, reason = "what a name says needs no comment")]

pub mod belief;
pub mod counting;
pub mod differential;
pub mod forms;
pub mod fuzz;
pub mod mutants;
