//! The stack frame: facts about `rsp`, registers that point into the frame and the
//! direction flag ([`facts`]); the variants of a function that realigns its stack
//! ([`variants`]); the classes that depend on either ([`refine`]); which of two stacks has
//! which words ([`words`]).

mod contents;
mod dependents;
pub mod facts;
pub mod refine;
pub mod variants;
pub mod words;

pub use contents::FramePlace;
