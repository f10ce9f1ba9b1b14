//! Tests that rewritten code does what the original does, and that the verifier notices
//! where it does not. Every suite executes or verifies small pieces: one instruction,
//! one function, one changed check. No packets, no kernel.
//!
//! ```text
//! forms          every instruction form, and compiled C functions, native against rewritten
//! differential   e1000's functions on random memory, native against rewritten
//! belief         the verifier's belief about each allowed encoding, against execution
//! mutants        the rewriter's checks, changed: the verifier must reject each
//! fuzz           any input: read, lifted, rewritten, verified, executed
//! counting       what a piece of work costs, without a clock
//! ```

pub mod belief;
pub mod counting;
pub mod differential;
pub mod forms;
pub mod fuzz;
pub mod mutants;
