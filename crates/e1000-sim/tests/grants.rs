//! Grants: what the hypervisor lets dom0 do with guests' pages, and what not. No process but this one: guest, dom0
//! and hypervisor are each what they may call.

use std::sync::atomic::Ordering;

use e1000_sim::grants::maptrack::{Handle, MAPPINGS};
use e1000_sim::grants::operations::{Copy, End, Grants, Map, Unmap};
use e1000_sim::grants::table::{
    ENTRIES, Entry, Granter, NotEnded, READING, READONLY, Table, WRITING,
};
use e1000_sim::grants::window::WindowPage;
use e1000_sim::grants::{Access, DOM0, Domain, Reference, Status};
use e1000_sim::memory::{Machine, NotGiven, Owner, PAGE, Sizes};

/// The guest that grants, and another.
const ANNA: u32 = 0;
const BERT: u32 = 1;

struct World {
    machine: Machine,
    tables: Vec<Table>,
}

impl World {
    fn new() -> World {
        World {
            machine: Machine::new(Sizes::default()).expect("memory"),
            tables: (0..2).map(|_| Table::default()).collect(),
        }
    }

    fn grants(&self) -> Grants<'_> {
        Grants::new(&self.machine, &self.tables)
    }

    fn granter(&self, guest: u32) -> Granter<'_> {
        Granter::new(&self.tables[guest as usize])
    }

    /// A frame of a guest's.
    fn frame(&self, guest: u32) -> u64 {
        self.machine.sizes().guest(guest).start / PAGE
    }

    fn entry(&self, guest: u32, reference: Reference) -> &Entry {
        &self.tables[guest as usize].0[reference.0 as usize]
    }

    fn pins(&self, guest: u32) -> u32 {
        self.machine.frames().pins(self.frame(guest) * PAGE)
    }
}

fn map_at(
    grants: &mut Grants<'_>,
    reference: Reference,
    access: Access,
    page: Option<WindowPage>,
) -> Map {
    let mut map = [Map::new(Domain::of_guest(ANNA), reference, access, page)];
    grants.map(&mut map);
    map[0]
}

fn map(grants: &mut Grants<'_>, reference: Reference, access: Access) -> Map {
    map_at(grants, reference, access, Some(WindowPage(3)))
}

fn unmap(grants: &mut Grants<'_>, map: &Map) -> Status {
    let mut unmap = [Unmap::new(map.handle, map.page)];
    grants.unmap(&mut unmap);
    unmap[0].status
}

/// dom0's frame, and its bytes of that length at an offset, to or from a guest's page.
fn copy(
    grants: &mut Grants<'_>,
    (source, source_offset): (End, u16),
    (target, target_offset): (End, u16),
    length: u16,
) -> Status {
    let mut copy = [Copy {
        source,
        source_offset,
        target,
        target_offset,
        length,
        status: Status::GeneralError,
    }];
    grants.copy(&mut copy);
    copy[0].status
}

/// Any frame of dom0's.
const OWN: u64 = 512;

#[test]
fn the_layout_is_xens() {
    assert_eq!(size_of::<Entry>(), 8);
    assert_eq!(size_of::<Table>() as u64, PAGE);
    let world = World::new();
    let mut granter = world.granter(ANNA);
    let frame = world.frame(ANNA);
    let reference = granter
        .grant(Domain(0x1234), frame, Access::Read)
        .expect("room");
    // As grant_entry_v1: flags, domain, frame, little-endian.
    let entry = world.entry(ANNA, reference);
    assert_eq!(entry.header.load(Ordering::Relaxed), 0x1234_0005);
    assert_eq!(u64::from(entry.frame.load(Ordering::Relaxed)), frame);
    // Entries for the toolstack stay free.
    assert!(reference.0 >= 8);
}

#[test]
fn a_granted_page_is_mapped_and_unmapped() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let frame = world.frame(ANNA);
    let reference = granter.grant(DOM0, frame, Access::Read).expect("room");
    let seen = map(&mut grants, reference, Access::Read);
    assert_eq!((seen.status, seen.bus), (Status::Okay, frame * PAGE));
    assert_eq!(grants.window().address(WindowPage(3)), Some(frame * PAGE));
    assert_eq!(world.pins(ANNA), 1);
    // It keeps its owner meanwhile.
    let range = frame * PAGE..(frame + 1) * PAGE;
    let given = world
        .machine
        .frames()
        .give(&range, Owner::Guest(ANNA), Owner::Guest(BERT));
    assert_eq!(given, Err(NotGiven::Pinned));

    assert_eq!(unmap(&mut grants, &seen), Status::Okay);
    assert_eq!(grants.window().address(WindowPage(3)), None);
    assert_eq!(world.pins(ANNA), 0);
    assert_eq!(granter.end(reference), Ok(()));
    let counts = grants.counts();
    assert_eq!((counts.hypercalls, counts.maps, counts.unmaps), (2, 1, 1));
}

#[test]
fn a_grant_in_use_is_not_ended_and_none_is_ended_twice() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Write)
        .expect("room");
    let first = map(&mut grants, reference, Access::Write);
    let second = map_at(&mut grants, reference, Access::Read, None);
    let flags = || world.entry(ANNA, reference).header.load(Ordering::Relaxed) & 0xffff;
    assert_eq!(flags() & (READING | WRITING), READING | WRITING);
    assert_eq!(granter.end(reference), Err(NotEnded::InUse));
    assert_eq!(unmap(&mut grants, &first), Status::Okay);
    // Still read by the second one.
    assert_eq!(flags() & (READING | WRITING), READING);
    assert_eq!(granter.end(reference), Err(NotEnded::InUse));
    assert_eq!(unmap(&mut grants, &second), Status::Okay);
    let free = granter.free();
    assert_eq!(granter.end(reference), Ok(()));
    assert_eq!(granter.end(reference), Err(NotEnded::NotGranted));
    assert_eq!(granter.free(), free + 1);
}

#[test]
fn a_revoked_grant_is_none() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Read)
        .expect("room");
    granter.end(reference).expect("nobody uses it");
    let seen = map(&mut grants, reference, Access::Read);
    assert_eq!(seen.status, Status::GeneralError);
    let from = (End::Granted(Domain::of_guest(ANNA), reference), 0);
    let copied = copy(&mut grants, from, (End::Own(OWN), 0), 8);
    assert_eq!(copied, Status::GeneralError);
    assert_eq!(world.pins(ANNA), 0);
    assert_eq!(grants.counts().refused, 2);
}

#[test]
fn an_entry_that_names_anothers_frame_gives_nothing() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let frames = [
        world.frame(BERT),
        OWN,
        world.machine.sizes().hypervisor().start / PAGE,
        u64::from(u32::MAX),
    ];
    for frame in frames {
        let reference = granter.grant(DOM0, frame, Access::Write).expect("room");
        let seen = map(&mut grants, reference, Access::Read);
        assert_eq!(seen.status, Status::GeneralError, "frame {frame:#x}");
        assert_eq!(seen.bus, 0);
        assert_eq!(grants.window().address(WindowPage(3)), None);
        let to = (End::Granted(Domain::of_guest(ANNA), reference), 0);
        let copied = copy(&mut grants, (End::Own(OWN), 0), to, 8);
        assert_eq!(copied, Status::GeneralError, "frame {frame:#x}");
        // Nothing stays behind: the guest can end it.
        assert_eq!(granter.end(reference), Ok(()));
    }
    assert_eq!((world.pins(ANNA), world.pins(BERT)), (0, 0));
    assert_eq!(world.machine.frames().pins(OWN * PAGE), 0);
}

#[test]
fn a_grant_for_another_domain_is_not_dom0s() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let to = Domain::of_guest(BERT);
    let reference = granter
        .grant(to, world.frame(ANNA), Access::Write)
        .expect("room");
    let seen = map(&mut grants, reference, Access::Read);
    assert_eq!(seen.status, Status::PermissionDenied);
    // And there are no more guests than there are tables.
    let mut map = [Map::new(Domain(3), reference, Access::Read, None)];
    grants.map(&mut map);
    assert_eq!(map[0].status, Status::BadDomain);
    let mut map = [Map::new(DOM0, reference, Access::Read, None)];
    grants.map(&mut map);
    assert_eq!(map[0].status, Status::BadDomain);
}

#[test]
fn what_may_be_read_is_not_written() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let frame = world.frame(ANNA);
    let reference = granter.grant(DOM0, frame, Access::Read).expect("room");
    let seen = map(&mut grants, reference, Access::Write);
    assert_eq!(seen.status, Status::PermissionDenied);
    let guest = End::Granted(Domain::of_guest(ANNA), reference);
    world.machine.write(OWN * PAGE, b"from dom0").expect("RAM");
    world
        .machine
        .write(frame * PAGE, b"the guest")
        .expect("RAM");
    let written = copy(&mut grants, (End::Own(OWN), 0), (guest, 0), 9);
    assert_eq!(written, Status::PermissionDenied);
    let mut bytes = [0; 9];
    world.machine.read(frame * PAGE, &mut bytes).expect("RAM");
    assert_eq!(&bytes, b"the guest");
    // Reading is what it is for.
    let read = copy(&mut grants, (guest, 4), (End::Own(OWN), 5), 5);
    assert_eq!(read, Status::Okay);
    world.machine.read(OWN * PAGE, &mut bytes[..]).expect("RAM");
    assert_eq!(&bytes, b"from gues");
    let flags = world.entry(ANNA, reference).header.load(Ordering::Relaxed);
    assert_eq!(flags & (READING | WRITING | READONLY), READONLY);
}

#[test]
fn references_and_handles_out_of_range_are_refused() {
    let world = World::new();
    let mut grants = world.grants();
    for number in [ENTRIES as u32, u32::MAX] {
        let seen = map(&mut grants, Reference(number), Access::Read);
        assert_eq!(seen.status, Status::BadReference);
    }
    for handle in [0, MAPPINGS as u32, 0xffff, u32::MAX] {
        let mut unmap = [Unmap::new(Handle(handle), None)];
        grants.unmap(&mut unmap);
        assert_eq!(unmap[0].status, Status::BadHandle, "{handle:#x}");
    }
    let page = WindowPage(MAPPINGS as u16);
    let mut granter = world.granter(ANNA);
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Read)
        .expect("room");
    let seen = map_at(&mut grants, reference, Access::Read, Some(page));
    assert_eq!(seen.status, Status::BadVirtualAddress);
}

#[test]
fn a_copy_ends_with_the_page() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Write)
        .expect("room");
    let guest = End::Granted(Domain::of_guest(ANNA), reference);
    let mut copied = |source, target, length| {
        copy(
            &mut grants,
            (guest, source),
            (End::Own(OWN), target),
            length,
        )
    };
    assert_eq!(copied(4000, 0, 96), Status::Okay);
    assert_eq!(copied(0, 4000, 96), Status::Okay);
    assert_eq!(copied(4000, 0, 97), Status::BadCopyArgument);
    assert_eq!(copied(0, 4000, 97), Status::BadCopyArgument);
    assert_eq!(copied(0xffff, 0, 1), Status::BadCopyArgument);
    assert_eq!(copied(0, 0xffff, 0xffff), Status::BadCopyArgument);
    assert_eq!(grants.counts().bytes, 192);
    // dom0's end must be dom0's.
    let frame = world.frame(BERT);
    let stolen = copy(&mut grants, (guest, 0), (End::Own(frame), 0), 8);
    assert_eq!(stolen, Status::BadPage);
    let stolen = copy(&mut grants, (End::Own(frame), 0), (guest, 0), 8);
    assert_eq!(stolen, Status::BadPage);
    assert_eq!((world.pins(ANNA), world.pins(BERT)), (0, 0));
    assert_eq!(granter.end(reference), Ok(()));
}

#[test]
fn a_batch_of_copies_keeps_an_end_that_is_named_again_and_no_other() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let (first, second) = (world.frame(ANNA), world.frame(ANNA) + 1);
    let mut grant = |frame, access| granter.grant(DOM0, frame, access).expect("room");
    let (open, next) = (grant(first, Access::Write), grant(second, Access::Write));
    let readonly = grant(second, Access::Read);
    let byte = |frame: u64, offset: u64| {
        let at = world.machine.at(frame * PAGE + offset, 1).expect("memory");
        // SAFETY: inside of the machine, and no other thread runs.
        unsafe { at.read() }
    };
    let own = world.machine.at(OWN * PAGE, 8).expect("memory");
    // SAFETY: inside of the machine, and no other thread runs.
    unsafe { own.copy_from(b"abcdefgh".as_ptr(), 8) };
    let domain = Domain::of_guest(ANNA);
    let copy = |number: u16, reference, target_offset| Copy {
        source: End::Own(OWN),
        source_offset: number,
        target: End::Granted(domain, reference),
        target_offset,
        length: 1,
        status: Status::GeneralError,
    };
    // The refused ones lie between two of the page that was in use before.
    let mut copies = [
        copy(0, open, 0),
        copy(1, open, 1),
        copy(2, next, 0),
        copy(3, readonly, 1),
        copy(4, Reference(100), 2),
        copy(5, open, 2),
        copy(6, open, PAGE as u16),
        copy(7, open, 3),
    ];
    grants.copy(&mut copies);
    use Status::{BadCopyArgument, GeneralError, Okay, PermissionDenied};
    assert_eq!(
        copies.map(|copy| copy.status),
        [
            Okay, Okay, Okay, PermissionDenied, GeneralError, Okay, BadCopyArgument, Okay
        ]
    );
    assert_eq!([0, 1, 2, 3].map(|at| byte(first, at)), *b"abfh");
    assert_eq!([0, 1, 2].map(|at| byte(second, at)), *b"c\0\0");
    assert_eq!((grants.counts().copies, grants.counts().refused), (5, 3));
    // Nothing is in use any more: pins and marks are gone, whichever was the last.
    for frame in [first, second, OWN] {
        assert_eq!(world.machine.frames().pins(frame * PAGE), 0, "{frame}");
    }
    for reference in [open, next, readonly] {
        let marks = world.entry(ANNA, reference).header.load(Ordering::Relaxed);
        assert_eq!(marks & (READING | WRITING), 0);
        assert_eq!(granter.end(reference), Ok(()));
    }
    // The next batch judges a page anew.
    let mut revoked = [copy(0, open, 0)];
    grants.copy(&mut revoked);
    assert_eq!(revoked[0].status, GeneralError);
}

#[test]
fn a_handle_is_used_once() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Read)
        .expect("room");
    let first = map(&mut grants, reference, Access::Read);
    // Another page of dom0's is not what the handle has.
    let mut wrong = [Unmap::new(first.handle, Some(WindowPage(4)))];
    grants.unmap(&mut wrong);
    assert_eq!(wrong[0].status, Status::BadVirtualAddress);
    // A page that is in use is not mapped over.
    let over = map(&mut grants, reference, Access::Read);
    assert_eq!(over.status, Status::BadVirtualAddress);
    assert_eq!(unmap(&mut grants, &first), Status::Okay);
    assert_eq!(unmap(&mut grants, &first), Status::BadHandle);
    // The same place in the record, for another mapping.
    let second = map(&mut grants, reference, Access::Read);
    assert_eq!(second.handle.0 & 0xffff, first.handle.0 & 0xffff);
    assert_eq!(unmap(&mut grants, &first), Status::BadHandle);
    assert_eq!(world.pins(ANNA), 1);
    assert_eq!(unmap(&mut grants, &second), Status::Okay);
}

#[test]
fn an_entry_is_read_once() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let frame = world.frame(ANNA);
    let reference = granter.grant(DOM0, frame, Access::Read).expect("room");
    let first = map(&mut grants, reference, Access::Read);
    // While it is in use the guest makes it another's frame, and one to write.
    let entry = world.entry(ANNA, reference);
    entry
        .frame
        .store(world.frame(BERT) as u32, Ordering::Relaxed);
    let header = entry.header.load(Ordering::Relaxed);
    entry.header.store(header & !READONLY, Ordering::Relaxed);
    let second = map_at(&mut grants, reference, Access::Write, Some(WindowPage(7)));
    // It gets what was checked.
    assert_eq!((second.status, second.bus), (Status::Okay, frame * PAGE));
    assert_eq!((world.pins(ANNA), world.pins(BERT)), (2, 0));
    // It wipes the entry: what is unpinned is what was pinned.
    entry.header.store(0, Ordering::Relaxed);
    assert_eq!(unmap(&mut grants, &first), Status::Okay);
    assert_eq!(unmap(&mut grants, &second), Status::Okay);
    assert_eq!((world.pins(ANNA), world.pins(BERT)), (0, 0));
    assert_eq!(entry.header.load(Ordering::Relaxed), 0);
}

#[test]
fn a_guest_that_writes_its_entries_all_the_time_changes_nothing_that_is_not_its() {
    let world = World::new();
    let mut grants = world.grants();
    let reference = Reference(9);
    let frames = [ANNA, BERT].map(|guest| world.frame(guest));
    world
        .machine
        .write(frames[1] * PAGE, b"a secret")
        .expect("RAM");
    let stop = std::sync::atomic::AtomicBool::new(false);
    let outcomes = std::thread::scope(|scope| {
        scope.spawn(|| {
            let entry = world.entry(ANNA, reference);
            while !stop.load(Ordering::Relaxed) {
                for frame in frames {
                    entry.frame.store(frame as u32, Ordering::Relaxed);
                    entry.header.store(1, Ordering::Release);
                }
            }
        });
        let mut outcomes = [0; 2];
        // Until both frames have been met.
        while outcomes.contains(&0) {
            let from = (End::Granted(Domain::of_guest(ANNA), reference), 0);
            let status = copy(&mut grants, from, (End::Own(OWN), 0), 8);
            outcomes[usize::from(status != Status::Okay)] += 1;
            let mut bytes = [0; 8];
            world.machine.read(OWN * PAGE, &mut bytes).expect("RAM");
            assert_eq!(bytes, [0; 8]);
        }
        stop.store(true, Ordering::Relaxed);
        outcomes
    });
    assert!(outcomes.iter().all(|count| *count > 0));
    assert_eq!((world.pins(ANNA), world.pins(BERT)), (0, 0));
}

#[test]
fn a_batch_goes_on_behind_an_operation_that_fails() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Read)
        .expect("room");
    let domain = Domain::of_guest(ANNA);
    let mut maps = [
        Map::new(domain, Reference(100), Access::Read, Some(WindowPage(0))),
        Map::new(domain, reference, Access::Read, Some(WindowPage(0))),
    ];
    grants.map(&mut maps);
    let statuses = maps.map(|map| map.status);
    assert_eq!(statuses, [Status::GeneralError, Status::Okay]);
    assert_eq!(grants.counts().hypercalls, 1);
}

#[test]
fn the_record_of_mappings_is_finite() {
    let world = World::new();
    let (mut granter, mut grants) = (world.granter(ANNA), world.grants());
    let reference = granter
        .grant(DOM0, world.frame(ANNA), Access::Read)
        .expect("room");
    for _ in 0..MAPPINGS {
        let seen = map_at(&mut grants, reference, Access::Read, None);
        assert_eq!(seen.status, Status::Okay);
    }
    let seen = map_at(&mut grants, reference, Access::Read, None);
    assert_eq!(seen.status, Status::NoSpace);
    assert_eq!(world.pins(ANNA), MAPPINGS as u32);
    // dom0 dies: nothing of the guest's stays mapped.
    grants.release_all();
    assert_eq!(world.pins(ANNA), 0);
    assert_eq!(granter.end(reference), Ok(()));
}

#[test]
fn a_table_that_is_full_grants_no_more_and_a_new_owner_takes_what_is_free() {
    let world = World::new();
    let mut granter = world.granter(ANNA);
    let mut grants = world.grants();
    let frame = world.frame(ANNA);
    let mut references = Vec::new();
    while let Some(reference) = granter.grant(DOM0, frame, Access::Read) {
        references.push(reference);
    }
    assert_eq!(references.len(), ENTRIES - 8);
    let seen = map(&mut grants, references[5], Access::Read);
    // The guest's driver is loaded anew, while dom0 has one page.
    let mut next = world.granter(ANNA);
    assert_eq!(next.free(), ENTRIES - 8 - 1);
    assert_eq!(unmap(&mut grants, &seen), Status::Okay);
    let all = std::iter::from_fn(|| next.grant(DOM0, frame, Access::Read)).count();
    assert_eq!(all, ENTRIES - 8);
}
