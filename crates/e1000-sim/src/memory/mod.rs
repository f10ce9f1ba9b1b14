//! The machine's memory, and dom0's address layout.
//!
//! One file is the machine's memory: a machine address, which is also the
//! address that the NIC uses for DMA, is an offset in it.
//!
//! ```text
//! machine address                         dom0 address
//! 0           unused (64 KiB)             DIRECT_MAP + machine address,
//! 0x0001_0000 percpu areas                for all of dom0's RAM
//! 0x0010_0000 kernel stacks
//! 0x0018_0000 data stacks                 also above the driver stacks
//! 0x0020_0000 exchange area
//! 0x0030_0000 struct page[]               also at VMEMMAP
//!             images of the modules       also at DRIVER, HOT, KERNEL
//!             heap: kernel.o's pages
//! dom0 RAM    guest 0, guest 1, ...       none: dom0 has only the struct page
//!                                         of a guest's page
//! end         the hypervisor's frames:    none
//!             copies of the card's rings
//! ```
//!
//! The registers of the NIC are a second file, at [`BAR`].

mod frames;
mod layout;
mod machine;
mod space;
pub mod view;

pub use frames::{Frames, NotGiven, NotPinned, Owner, Pinned};
pub use layout::*;
pub use machine::Machine;
pub use space::{BarMode, PageMode, Region, Space, set_bar, set_bar_page};
