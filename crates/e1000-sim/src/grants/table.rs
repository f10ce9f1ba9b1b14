//! A guest's table of grants, and the guest's own use of it.
//!
//! ```text
//!  63          32 31    16 15     0
//! +--------------+--------+--------+
//! |    frame     | domain | flags  |   grant_entry_v1: little-endian, as one word of it each
//! +--------------+--------+--------+
//! ```
//!
//! The guest writes an entry while its flags are 0, the flags last. The hypervisor sets `READING` and `WRITING` by
//! compare and exchange; the guest ends an entry by the same, and cannot while one of these is set.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Access, Domain, Reference};

/// Mask of the entry's kind.
pub const KIND: u32 = 3;
/// The kind that lets another domain use the page (`GTF_permit_access`).
pub const PERMIT: u32 = 1;
/// The page may only be read (`GTF_readonly`).
pub const READONLY: u32 = 1 << 2;
/// The page is in use (`GTF_reading`).
pub const READING: u32 = 1 << 3;
/// It is in use by someone who writes (`GTF_writing`).
pub const WRITING: u32 = 1 << 4;
/// Entries of a table: one page of them.
pub const ENTRIES: usize = 512;
/// Entries that a guest leaves alone, for what the toolstack puts there (`NR_RESERVED_ENTRIES` of Linux).
pub const RESERVED: usize = 8;

/// An entry.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Entry {
    /// Flags in the low half, domain in the high half.
    pub header: AtomicU32,
    /// Number of the machine frame.
    pub frame: AtomicU32,
}

/// A guest's table, which guest and hypervisor share. All zeroes grants nothing.
#[repr(C, align(4096))]
#[derive(Debug)]
pub struct Table(pub [Entry; ENTRIES]);

impl Default for Table {
    fn default() -> Table {
        Table(std::array::from_fn(|_| Entry::default()))
    }
}

/// Why a grant goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotEnded {
    /// Someone uses the page: try again later.
    InUse,
    /// Nothing is granted there: it was ended before, or never was.
    NotGranted,
}

/// The guest's side: which entries are free.
#[derive(Debug)]
pub struct Granter<'t> {
    table: &'t Table,
    free: Vec<u16>,
    /// Ended by an earlier owner of the table, or in vain: in use then.
    kept: Vec<u16>,
}

impl<'t> Granter<'t> {
    /// Takes over a table. What an earlier owner has granted is ended, as soon as nobody uses it.
    pub fn new(table: &'t Table) -> Granter<'t> {
        let mut granter = Granter {
            table,
            free: Vec::with_capacity(ENTRIES),
            kept: (RESERVED as u16..ENTRIES as u16).rev().collect(),
        };
        granter.reclaim();
        granter
    }

    /// Lets `to` use a frame; `None` if no entry is free.
    pub fn grant(&mut self, to: Domain, frame: u64, access: Access) -> Option<Reference> {
        if self.free.is_empty() {
            self.reclaim();
        }
        let number = self.free.pop()?;
        let entry = &self.table.0[usize::from(number)];
        let rights = match access {
            Access::Read => PERMIT | READONLY,
            Access::Write => PERMIT,
        };
        entry.frame.store(frame as u32, Ordering::Relaxed);
        // The flags last: from here on the hypervisor may read the entry.
        let header = rights | u32::from(to.0) << 16;
        entry.header.store(header, Ordering::Release);
        Some(Reference(number.into()))
    }

    /// Ends a grant.
    ///
    /// # Errors
    /// [`NotEnded`]; the page must not be used for anything else then.
    pub fn end(&mut self, reference: Reference) -> Result<(), NotEnded> {
        let number = reference.0 as u16;
        let entry = self.table.0.get(reference.0 as usize);
        end(entry.ok_or(NotEnded::NotGranted)?)?;
        self.free.push(number);
        Ok(())
    }

    /// Gives a grant up that could not be ended: its entry is free as soon as nobody uses it.
    pub fn give_up(&mut self, reference: Reference) {
        self.kept.push(reference.0 as u16);
    }

    /// Entries that are free.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    fn reclaim(&mut self) {
        let (table, free) = (self.table, &mut self.free);
        self.kept.retain(|number| {
            let in_use = end(&table.0[usize::from(*number)]) == Err(NotEnded::InUse);
            if !in_use {
                free.push(*number);
            }
            in_use
        });
    }
}

/// Ends an entry, by compare and exchange: the hypervisor may begin to use it meanwhile.
fn end(entry: &Entry) -> Result<(), NotEnded> {
    let mut seen = entry.header.load(Ordering::Relaxed);
    loop {
        if seen & KIND == 0 {
            return Err(NotEnded::NotGranted);
        }
        if seen & (READING | WRITING) != 0 {
            return Err(NotEnded::InUse);
        }
        match entry
            .header
            .compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Relaxed)
        {
            Ok(_) => return Ok(()),
            Err(now) => seen = now,
        }
    }
}
