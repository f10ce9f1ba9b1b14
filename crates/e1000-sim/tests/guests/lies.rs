//! Guests that write what is not so: indices, addresses, lengths, and words that change after they were read.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use e1000_sim::guests::channel::RING;
use e1000_sim::guests::front::{BUFFER, Entry, Front, Order};
use e1000_sim::packets::rings::{Fragment, Request};
use e1000_sim::packets::round::{PEER, guest_mac};
use e1000_sim::traffic::source::HEADER_COPY;
use e1000_sim::traffic::{Datagrams, Flow};

use super::rig::{BAD, FRAME, Rig};

/// Whether this guest has done what it is bad for: then it does nothing any more. In its own process.
static SPOILT: AtomicBool = AtomicBool::new(false);

/// Acts honestly until it is to send with a kick each: then it does what is bad, and nothing after that.
fn once(front: &mut Front<'_>, entry: Entry, bad: impl FnOnce(&mut Front<'_>)) {
    if SPOILT.load(Ordering::Relaxed) {
        return;
    }
    if entry.order != Order::SendEach {
        return front.act(entry);
    }
    SPOILT.store(true, Ordering::Relaxed);
    bad(front);
}

/// How far beyond what was answered an index is, one after the other, each with a kick: no ring has so many.
const WILD: [u32; 5] = [RING + 1, u32::MAX, 1 << 31, 7_000, u32::MAX - 5];

pub fn wild_indices(front: &mut Front<'_>, entry: Entry) {
    once(front, entry, |front| {
        let channel = front.channel;
        for further in WILD {
            let wild = |from: &AtomicU32| from.load(Ordering::Acquire).wrapping_add(further);
            channel
                .requests
                .store(wild(&channel.answers), Ordering::Release);
            channel
                .posted
                .store(wild(&channel.arrivals), Ordering::Release);
            channel.told_at.store(further, Ordering::Release);
            front.kick();
        }
    });
}

pub fn wild_indices_are_skipped(rig: &mut Rig<'_>) {
    rig.others_are_served();
    rig.schedule(BAD, Order::SendEach);
    let counts = rig.counts(BAD);
    assert_eq!(counts.wild, WILD.len() as u64, "{counts:?}");
    rig.receive(&[BAD, 0, BAD]);
    assert!(rig.counts(BAD).wild > counts.wild, "{:?}", rig.counts(BAD));
    rig.others_are_served();
    assert_eq!(rig.guests.in_flight(), 0);
    rig.nothing_is_held(BAD);
}

/// A packet of a guest's that is whole but for what the test makes of it.
pub fn good_request(front: &Front<'_>, number: u64) -> Request {
    let flow = Flow {
        number: front.guest,
        source: guest_mac(front.guest),
        destination: PEER,
    };
    let frame = Datagrams::new(flow, FRAME).make(number).to_vec();
    let (header, rest) = frame.split_at(HEADER_COPY);
    let at = front.memory.start;
    front.source.machine().write(at, rest).expect("its memory");
    let mut request = Request {
        cookie: number,
        guest: front.guest,
        header_length: HEADER_COPY as u16,
        fragments: 1,
        ..Request::default()
    };
    request.header[..HEADER_COPY].copy_from_slice(header);
    request.fragment[0] = Fragment::new(at, rest.len() as u32);
    (request.checksum_start, request.checksum_offset) = Datagrams::CHECKSUM;
    request
}

pub fn put(front: &Front<'_>, index: u32, request: Request) {
    // SAFETY: its own place, aligned.
    unsafe { front.channel.request(index).write_volatile(request) };
}

/// Spoilt copies of a good request: none of them is to be sent.
fn spoilt(good: &Request, front: &Front<'_>) -> Vec<Request> {
    let piece = |address: u64, length: u32| {
        let mut request = *good;
        request.fragment[0] = Fragment::new(address, length);
        request
    };
    let mut many = *good;
    many.fragments = u16::MAX;
    let mut long = *good;
    long.header_length = u16::MAX;
    let neighbour = front.memory.end;
    vec![
        piece(neighbour, 100),
        piece(neighbour - 50, 100),
        piece(0x10_0000, 100),
        piece(u64::MAX - 10, 100),
        piece(1 << 40, 100),
        piece(front.memory.start, u32::MAX),
        piece(front.memory.start, 0),
        many,
        long,
    ]
}

pub fn wild_requests(front: &mut Front<'_>, entry: Entry) {
    once(front, entry, |front| {
        let good = good_request(front, 0);
        let all = spoilt(&good, front);
        for (index, request) in all.iter().enumerate() {
            put(front, index as u32, *request);
        }
        // A good one among them is sent.
        put(front, all.len() as u32, good);
        front
            .channel
            .requests
            .store(all.len() as u32 + 1, Ordering::Release);
        front.kick();
    });
}

pub fn wild_requests_are_refused(rig: &mut Rig<'_>) {
    let before = rig.on_the_wire(BAD);
    rig.schedule(BAD, Order::SendEach);
    rig.serve();
    let counts = rig.counts(BAD);
    assert_eq!(counts.refused, 9, "{counts:?}");
    assert_eq!(rig.on_the_wire(BAD) - before, 1, "the good one");
    assert_eq!(rig.guests.in_flight(), 0);
    rig.nothing_is_held(BAD);
    rig.others_are_served();
}

pub fn wild_buffers(front: &mut Front<'_>, entry: Entry) {
    if entry.order != Order::SendEach {
        return front.act(entry);
    }
    let own = front.memory.end - BUFFER;
    let wild = [
        (front.memory.end, BUFFER as u32),
        (front.memory.end - 100, BUFFER as u32),
        (0x10_0000, BUFFER as u32),
        (u64::MAX - 100, BUFFER as u32),
        (own, 10),
        (own, u32::MAX),
    ];
    for (at, (address, length)) in wild.iter().enumerate() {
        front.channel.post[at]
            .address
            .store(*address, Ordering::Relaxed);
        front.channel.post[at]
            .length
            .store(*length, Ordering::Relaxed);
    }
}

/// The packets go into the next buffers that are its own.
pub fn wild_buffers_are_refused(rig: &mut Rig<'_>) {
    rig.schedule(BAD, Order::SendEach);
    let dom0 = {
        let mut bytes = [0; 4096];
        rig.guests.machine().read(0x10_0000, &mut bytes);
        bytes
    };
    rig.receive(&[BAD, 0, BAD, 2]);
    assert_eq!(rig.counts(BAD).refused_buffers, 6);
    rig.check();
    let report = rig.guests.back(BAD).report();
    assert_eq!(
        (report.received, report.refused_buffers),
        (2, 6),
        "{report:?}"
    );
    let mut after = [0; 4096];
    rig.guests.machine().read(0x10_0000, &mut after);
    assert!(dom0 == after, "dom0's memory was written");
    rig.others_are_served();
    rig.nothing_is_held(BAD);
}

/// After its kick, in which the driver got its packet, it makes another one of it in the same place.
pub fn changes_after_its_kick(front: &mut Front<'_>, entry: Entry) {
    once(front, entry, |front| {
        put(front, 0, good_request(front, 0));
        front.channel.requests.store(1, Ordering::Release);
        front.kick();
        let mut other = good_request(front, 0);
        other.header = [0xee; 128];
        other.fragment[0] = Fragment::new(front.memory.end, 904);
        other.cookie = 99;
        put(front, 0, other);
    });
}

pub fn what_was_read_is_what_is_sent(rig: &mut Rig<'_>) {
    rig.schedule(BAD, Order::SendEach);
    rig.serve();
    assert_eq!(rig.on_the_wire(BAD), 1);
    let slot = &rig.guests.back(BAD).channel().answer[0];
    assert_eq!(
        slot.cookie.load(Ordering::Relaxed),
        0,
        "its own name for it"
    );
    rig.nothing_is_held(BAD);
    rig.others_are_served();
}

/// Packets of each kick below.
const BURST: u32 = 32;

/// Another thread of the guest's changes the address in each of its requests for as long as the guest lives, between its own
/// memory and its neighbour's.
pub fn changes_all_the_time(front: &mut Front<'_>, entry: Entry) {
    if entry.order != Order::SendEach {
        return;
    }
    if !SPOILT.swap(true, Ordering::Relaxed) {
        begin_to_change(front);
    }
    let so_far = front.channel.requests.load(Ordering::Relaxed);
    front
        .channel
        .requests
        .store(so_far + BURST, Ordering::Release);
    front.kick();
}

fn begin_to_change(front: &Front<'_>) {
    let good = good_request(front, 0);
    let mut bad = good;
    bad.fragment[0].address = front.memory.end;
    (0..RING).for_each(|index| put(front, index, good));
    // The places are one after the other.
    let first = front.channel.request(0) as usize;
    std::thread::spawn(move || {
        loop {
            for request in [good, bad] {
                for index in 0..RING as usize {
                    // SAFETY: places of its own; others read them at any time.
                    unsafe { (first as *mut Request).add(index).write_volatile(request) };
                }
            }
        }
    });
}

/// Each packet is the guest's own or refused: the neighbour's page, which has other bytes, is on no frame, because
/// the frames' sums are checked.
pub fn nothing_foreign_is_sent(rig: &mut Rig<'_>) {
    let neighbour = rig.guests.machine().sizes().guest(BAD).end;
    rig.others_are_served();
    let others = rig.guests.machine().write(neighbour, &[0xdd; 1000]);
    others.expect("memory");
    for _ in 0..16 {
        rig.schedule(BAD, Order::SendEach);
        rig.serve();
    }
    let counts = rig.counts(BAD);
    let sent = rig.on_the_wire(BAD);
    assert_eq!(counts.refused + sent, 16 * u64::from(BURST), "{counts:?}");
    assert_eq!(rig.guests.in_flight(), 0);
    rig.guests.back(BAD).kill();
    rig.nothing_is_held(BAD);
    rig.others_are_served();
}
