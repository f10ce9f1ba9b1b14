//! Grants: pages that a guest lets dom0 use, in Xen's version 1 (`xen/include/public/grant_table.h`).
//!
//! ```text
//! guest                          hypervisor                        dom0
//! entry in its table ──────────> reads it once, marks it in use <── map, copy (guest, reference)
//!   who, which page, rights      page the guest's? pinned             ──> handle, status
//! ends it: not while marked      unmarks, unpins                <── unmap (handle)
//! ```
//!
//! [`table`] is the guest's side, [`operations`] the hypervisor's, which trusts neither of the two;
//! [`maptrack`] is its record of what dom0 has mapped, [`active`] of what is in use, [`window`] the pages of
//! dom0's at which guests' pages appear.
//!
//! A hypercall is a function here, which runs where dom0 calls it: the crossing itself is not executed. Calls are
//! counted, so that a crossing's price can be added.

pub mod active;
pub mod maptrack;
pub mod operations;
pub mod table;
pub mod window;

use crate::memory::Owner;

/// A domain's number: 0 is dom0, guest n has n + 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Domain(pub u16);

/// dom0's number.
pub const DOM0: Domain = Domain(0);

impl Domain {
    /// The domain of guest `number`.
    pub fn of_guest(number: u32) -> Domain {
        Domain(number as u16 + 1)
    }

    /// Whose frames it has.
    pub fn owner(self) -> Owner {
        match self.0 {
            0 => Owner::Dom0,
            number => Owner::Guest(u32::from(number) - 1),
        }
    }
}

/// The number of an entry of a guest's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reference(pub u32);

/// What is done with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is read and written.
    Write,
}

/// The outcome of an operation, with Xen's numbers (`GNTST_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i16)]
pub enum Status {
    /// Done.
    Okay = 0,
    /// The page is not the granting guest's, or the entry grants nothing.
    GeneralError = -1,
    /// There is no such guest.
    BadDomain = -2,
    /// There is no such entry.
    BadReference = -3,
    /// Nothing is mapped by that handle, or it is another page of dom0's.
    BadHandle = -4,
    /// No page of dom0's for a mapping, or one in use.
    BadVirtualAddress = -5,
    /// No room to record the mapping, or the page has too many pins.
    NoSpace = -7,
    /// The entry is for another domain, or for reading only.
    PermissionDenied = -8,
    /// A page of dom0's own that is not its.
    BadPage = -9,
    /// An offset or a length beyond the page.
    BadCopyArgument = -10,
}
