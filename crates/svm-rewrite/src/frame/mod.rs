//! The stack frame: facts about `rsp`, registers that point into the frame and the
//! direction flag ([`facts`]), with what calls do to them ([`lost`]); the variants of a function that realigns its stack
//! ([`variants`]); the classes that depend on either ([`refine`]); which of two stacks has
//! which words ([`words`]).

mod before;
mod contents;
mod dependents;
pub mod facts;
pub mod frames;
pub mod lost;
mod parts;
mod path;
pub mod refine;
mod sets;
pub mod solve;
pub mod variants;
pub mod words;

pub use dependents::through_frame_pointer;

pub use contents::FramePlace;
pub use sets::Sets;
