//! What the hypervisor does with grants when dom0 asks: maps, unmaps, copies. Each function takes a batch, which is one
//! hypercall, and writes a status into each operation; one that fails leaves nothing behind and does not stop the others.
//!
//! An operation lies in dom0's memory: each field of it is read once. Entries of the guests' tables are read once, too
//! ([`super::active`]). dom0 names a page by guest and reference; it gets a handle, and the address that its card
//! needs.

use super::active::ActiveEntries;
use super::maptrack::{Handle, Mapping, Maptrack};
use super::table::Table;
use super::window::{Window, WindowPage};
use super::{Access, Domain, Reference, Status};
use crate::memory::{Machine, NotPinned, Owner, PAGE};

/// `GNTTABOP_map_grant_ref`.
#[derive(Clone, Copy, Debug)]
pub struct Map {
    /// Whose page.
    pub domain: Domain,
    /// By which entry.
    pub reference: Reference,
    /// For what.
    pub access: Access,
    /// Where dom0 wants it; `None`: for devices only (`GNTMAP_device_map` alone).
    pub page: Option<WindowPage>,
    /// Out: what happened.
    pub status: Status,
    /// Out: the mapping.
    pub handle: Handle,
    /// Out: the page's address for devices (`dev_bus_addr`).
    pub bus: u64,
}

impl Map {
    /// A page to be mapped.
    pub fn new(
        domain: Domain,
        reference: Reference,
        access: Access,
        page: Option<WindowPage>,
    ) -> Map {
        Map {
            domain,
            reference,
            access,
            page,
            status: Status::GeneralError,
            handle: Handle(u32::MAX),
            bus: 0,
        }
    }
}

/// `GNTTABOP_unmap_grant_ref`.
#[derive(Clone, Copy, Debug)]
pub struct Unmap {
    /// The mapping.
    pub handle: Handle,
    /// Where dom0 has it.
    pub page: Option<WindowPage>,
    /// Out: what happened.
    pub status: Status,
}

impl Unmap {
    /// A page to be unmapped.
    pub fn new(handle: Handle, page: Option<WindowPage>) -> Unmap {
        Unmap {
            handle,
            page,
            status: Status::GeneralError,
        }
    }
}

/// One end of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A frame of dom0's own, by its number.
    Own(u64),
    /// A guest's page.
    Granted(Domain, Reference),
}

/// `GNTTABOP_copy`: within a page on both ends.
#[derive(Clone, Copy, Debug)]
pub struct Copy {
    /// From where.
    pub source: End,
    /// Its first byte in the page.
    pub source_offset: u16,
    /// To where.
    pub target: End,
    /// Its first byte in the page.
    pub target_offset: u16,
    /// Bytes.
    pub length: u16,
    /// Out: what happened.
    pub status: Status,
}

/// The ends of a batch's last copy, which are in use: which, and their frames.
#[derive(Debug, Default)]
struct Ends {
    source: Option<(End, u64)>,
    target: Option<(End, u64)>,
}

/// Counts of what dom0 has asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct GrantCounts {
    /// Calls, of one or many operations.
    pub hypercalls: u64,
    /// Pages mapped at a page of dom0's.
    pub maps: u64,
    /// Pages made known to the card only.
    pub device_maps: u64,
    /// Mappings ended.
    pub unmaps: u64,
    /// Copies.
    pub copies: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Operations refused.
    pub refused: u64,
}

/// dom0's grants, as the hypervisor keeps them.
#[derive(Debug)]
pub struct Grants<'m> {
    machine: &'m Machine,
    guests: Vec<ActiveEntries<'m>>,
    maptrack: Maptrack,
    window: Window,
    counts: GrantCounts,
}

impl<'m> Grants<'m> {
    /// Nothing is in use. Guest n's table is `tables[n]`.
    pub fn new(machine: &'m Machine, tables: &'m [Table]) -> Grants<'m> {
        let guests = (0..).zip(tables);
        Grants {
            machine,
            guests: guests
                .map(|(number, table)| ActiveEntries::new(Domain::of_guest(number), table))
                .collect(),
            maptrack: Maptrack::default(),
            window: Window::default(),
            counts: GrantCounts::default(),
        }
    }

    /// The counts so far.
    pub fn counts(&self) -> GrantCounts {
        self.counts
    }

    /// What dom0 sees at a page of its window. No hypercall: its processor would walk the table.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// Maps a batch of pages.
    pub fn map(&mut self, operations: &mut [Map]) {
        self.counts.hypercalls += 1;
        for operation in operations {
            let asked = *operation;
            match self.map_one(&asked) {
                Ok((handle, bus)) => {
                    (operation.handle, operation.bus) = (handle, bus);
                    operation.status = Status::Okay;
                }
                Err(status) => {
                    self.counts.refused += 1;
                    operation.status = status;
                }
            }
        }
    }

    /// Unmaps a batch of pages.
    pub fn unmap(&mut self, operations: &mut [Unmap]) {
        self.counts.hypercalls += 1;
        for operation in operations {
            let asked = *operation;
            operation.status = self.unmap_one(asked.handle, asked.page);
            if operation.status != Status::Okay {
                self.counts.refused += 1;
            }
        }
    }

    /// Copies a batch. An end that the next operation names again stays in use, as in Xen (`gnttab_copy_one`): pieces
    /// that are put into one page, one behind the other, take it once.
    pub fn copy(&mut self, operations: &mut [Copy]) {
        self.counts.hypercalls += 1;
        let mut ends = Ends::default();
        for operation in operations {
            let asked = *operation;
            operation.status = match self.copy_one(&mut ends, &asked) {
                Ok(()) => Status::Okay,
                Err(status) => {
                    self.counts.refused += 1;
                    status
                }
            };
        }
        self.finish(&mut ends.source, Access::Read);
        self.finish(&mut ends.target, Access::Write);
    }

    /// Unmaps all that dom0 has: it is gone.
    pub fn release_all(&mut self) {
        for handle in self.maptrack.handles() {
            let page = self.maptrack.get(handle).and_then(|mapping| mapping.page);
            self.unmap_one(handle, page);
        }
    }

    fn guest(&mut self, domain: Domain) -> Result<&mut ActiveEntries<'m>, Status> {
        let number = usize::from(domain.0).checked_sub(1);
        let guest = number.and_then(|number| self.guests.get_mut(number));
        guest.ok_or(Status::BadDomain)
    }

    fn map_one(&mut self, asked: &Map) -> Result<(Handle, u64), Status> {
        if asked.page.is_some_and(|page| !self.window.is_free(page)) {
            return Err(Status::BadVirtualAddress);
        }
        if !self.maptrack.has_room() {
            return Err(Status::NoSpace);
        }
        let frames = self.machine.frames();
        let guest = self.guest(asked.domain)?;
        let frame = guest.acquire(frames, asked.reference, asked.access)?;
        let mapping = Mapping {
            domain: asked.domain,
            reference: asked.reference,
            access: asked.access,
            page: asked.page,
        };
        let handle = self.maptrack.add(mapping).ok_or(Status::NoSpace)?;
        match asked.page {
            Some(page) => {
                let writable = asked.access == Access::Write;
                self.window.set(page, frame, writable);
                self.counts.maps += 1;
            }
            None => self.counts.device_maps += 1,
        }
        Ok((handle, frame * PAGE))
    }

    fn unmap_one(&mut self, handle: Handle, page: Option<WindowPage>) -> Status {
        let Some(mapping) = self.maptrack.get(handle) else {
            return Status::BadHandle;
        };
        if mapping.page != page {
            return Status::BadVirtualAddress;
        }
        self.maptrack.remove(handle);
        if let Some(page) = page {
            self.window.clear(page);
        }
        let frames = self.machine.frames();
        if let Ok(guest) = self.guest(mapping.domain) {
            guest.release(frames, mapping.reference, mapping.access);
        }
        self.counts.unmaps += 1;
        Status::Okay
    }

    fn copy_one(&mut self, ends: &mut Ends, asked: &Copy) -> Result<(), Status> {
        let inside = |offset: u16| u64::from(offset) + u64::from(asked.length) <= PAGE;
        if !inside(asked.source_offset) || !inside(asked.target_offset) {
            return Err(Status::BadCopyArgument);
        }
        let from = self.take(&mut ends.source, asked.source, Access::Read)?;
        let to = self.take(&mut ends.target, asked.target, Access::Write)?;
        self.move_bytes(
            from * PAGE + u64::from(asked.source_offset),
            to * PAGE + u64::from(asked.target_offset),
            asked.length,
        );
        self.counts.copies += 1;
        self.counts.bytes += u64::from(asked.length);
        Ok(())
    }

    /// Both ends are pinned, and inside frames.
    fn move_bytes(&self, from: u64, to: u64, length: u16) {
        let [from, to] = [from, to].map(|at| self.machine.at(at, length.into()));
        if let (Some(from), Some(to)) = (from, to) {
            // SAFETY: `at` checked both; guests and dom0 may change the bytes meanwhile, and the ends may be
            // the same frame.
            unsafe { std::ptr::copy(from, to, length.into()) };
        }
    }

    /// The frame of an end, in use until another one takes its place.
    #[inline(always)]
    fn take(
        &mut self,
        place: &mut Option<(End, u64)>,
        end: End,
        access: Access,
    ) -> Result<u64, Status> {
        if let Some((used, frame)) = *place
            && used == end
        {
            return Ok(frame);
        }
        self.finish(place, access);
        let frame = self.begin(end, access)?;
        *place = Some((end, frame));
        Ok(frame)
    }

    fn begin(&mut self, end: End, access: Access) -> Result<u64, Status> {
        let frames = self.machine.frames();
        match end {
            End::Own(frame) => match frames.pin(frame, Owner::Dom0) {
                Ok(()) => Ok(frame),
                Err(NotPinned::NotOwned) => Err(Status::BadPage),
                Err(NotPinned::Full) => Err(Status::NoSpace),
            },
            End::Granted(domain, reference) => {
                self.guest(domain)?.acquire(frames, reference, access)
            }
        }
    }

    /// Ends the use of an end, if there is one.
    fn finish(&mut self, place: &mut Option<(End, u64)>, access: Access) {
        let Some((end, frame)) = place.take() else {
            return;
        };
        let frames = self.machine.frames();
        match end {
            End::Own(_) => frames.unpin(frame),
            End::Granted(domain, reference) => {
                if let Ok(guest) = self.guest(domain) {
                    guest.release(frames, reference, access);
                }
            }
        }
    }
}
