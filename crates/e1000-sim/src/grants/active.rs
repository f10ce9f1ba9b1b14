//! What of a guest's grants is in use, as the hypervisor knows it.
//!
//! The first use of an entry reads which frame it names, and pins it. Later uses, while it is in use, get that frame
//! whatever the guest has written since. The entry's marks go with the last use.

use std::sync::atomic::Ordering;

use super::table::{ENTRIES, Entry, KIND, PERMIT, READING, READONLY, Table, WRITING};
use super::{Access, DOM0, Domain, Reference, Status};
use crate::memory::{Frames, NotPinned};

/// Uses of one entry.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    frame: u32,
    readers: u32,
    writers: u32,
}

/// The entries of one guest that are in use.
#[derive(Debug)]
pub struct ActiveEntries<'t> {
    domain: Domain,
    table: &'t Table,
    active: Vec<Active>,
}

impl<'t> ActiveEntries<'t> {
    /// None yet.
    pub fn new(domain: Domain, table: &'t Table) -> ActiveEntries<'t> {
        ActiveEntries {
            domain,
            table,
            active: vec![Active::default(); ENTRIES],
        }
    }

    /// Begins a use of an entry by dom0; gives its frame, which is the guest's and pinned.
    ///
    /// # Errors
    /// Why dom0 may not.
    pub fn acquire(
        &mut self,
        frames: &Frames,
        reference: Reference,
        access: Access,
    ) -> Result<u64, Status> {
        let number = reference.0 as usize;
        let entry = self.table.0.get(number).ok_or(Status::BadReference)?;
        mark(entry, access)?;
        let active = &mut self.active[number];
        if active.readers + active.writers == 0 {
            // Read once: the guest may write it at any time.
            active.frame = entry.frame.load(Ordering::Relaxed);
        }
        // One pin for each use: a guest's balloon must wait for all of them.
        if let Err(why) = frames.pin(active.frame.into(), self.domain.owner()) {
            self.unmark(number);
            return Err(match why {
                NotPinned::NotOwned => Status::GeneralError,
                NotPinned::Full => Status::NoSpace,
            });
        }
        match access {
            Access::Read => active.readers += 1,
            Access::Write => active.writers += 1,
        }
        Ok(active.frame.into())
    }

    /// Ends a use that [`ActiveEntries::acquire`] began.
    pub fn release(&mut self, frames: &Frames, reference: Reference, access: Access) {
        let number = reference.0 as usize;
        let active = &mut self.active[number];
        match access {
            Access::Read => active.readers -= 1,
            Access::Write => active.writers -= 1,
        }
        frames.unpin(active.frame.into());
        self.unmark(number);
    }

    /// Takes the marks off the entry that no use needs any more.
    fn unmark(&self, number: usize) {
        let active = &self.active[number];
        let mut marks = 0;
        if active.writers == 0 {
            marks |= WRITING;
        }
        if active.readers + active.writers == 0 {
            marks |= READING;
        }
        if marks != 0 {
            let entry = &self.table.0[number];
            entry.header.fetch_and(!marks, Ordering::Release);
        }
    }
}

/// Marks an entry as in use, if it grants dom0 that access: judged and marked in one word, which the guest cannot
/// change in between.
fn mark(entry: &Entry, access: Access) -> Result<(), Status> {
    let mut seen = entry.header.load(Ordering::Relaxed);
    loop {
        if seen & KIND != PERMIT {
            return Err(Status::GeneralError);
        }
        if seen >> 16 != u32::from(DOM0.0) {
            return Err(Status::PermissionDenied);
        }
        let marks = match access {
            Access::Read => READING,
            Access::Write if seen & READONLY != 0 => return Err(Status::PermissionDenied),
            Access::Write => READING | WRITING,
        };
        match entry
            .header
            .compare_exchange(seen, seen | marks, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => return Ok(()),
            Err(now) => seen = now,
        }
    }
}
