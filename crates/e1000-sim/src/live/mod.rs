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
//! high_level  guests that send large packets, or frames: by the packet loop
//! emulated  a guest's stock driver on a card whose registers trap
//! acknowledgements  a TCP stream, with what its guest sends back
//! early_ack  the card's interrupt acknowledged before its handler runs
//! by_dom0   guests by way of dom0, or of the hypervisor: the same
//! entered   the machine whose guests are processes
//! crossing  guests called, or as processes of their own
//! kicks     guests that kick, or whose rings are looked at
//! channel   how the bytes of a guest's packet get to dom0
//! merged_by_dom0  segments that dom0 merges before its bridge
//! ```

pub mod acknowledgements;
pub mod by_dom0;
pub mod channel;
pub mod clock;
pub mod crossing;
pub mod early_ack;
pub mod emulated;
pub mod entered;
pub mod high_level;
pub mod kicks;
pub mod merged_by_dom0;
pub mod price;
pub mod receive;
pub mod rig;
pub mod rows;
