//! The stack frame: what is known of `rsp`, of registers that point into the frame
//! and of the direction flag ([`facts`]), how often a function is written that aligns
//! its stack ([`variants`]), and the classes that depend on either ([`refine`]).

mod contents;
pub mod facts;
pub mod refine;
pub mod variants;
