//! Packets that arrive at their times, work that takes time, and crossings between guest
//! and hypervisor that cost something: for what the packet loop, which lets the card's time
//! pass only while it waits, cannot show.
//!
//! ```text
//! clock     time that work advances
//! price     what work and crossings cost
//! rig       the machine that receives
//! receive   frames at a rate, up to their guests
//! rows      stages off and on, with the figures of the papers
//! ```

pub mod clock;
pub mod price;
pub mod receive;
pub mod rig;
pub mod rows;
