//! Guests that are processes of their own: what each shares, what a kick and a notification are, and guests that
//! die, lie, change what was read, do not answer, or kick without end. The others are served, nothing is lost but the bad guest's
//! own, and nothing leaks.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use e1000_sim::guests::back::{CrossingCounts, State};
use e1000_sim::guests::channel::RING;
use e1000_sim::guests::crossing::{EMPTY_KICKS, Guests, KICKS, Kicks, Loop};
use e1000_sim::guests::front::{BUFFER, Entry, Front, Order, honest};
use e1000_sim::image::files::Files;
use e1000_sim::memory::{Machine, NotGiven, Owner, PAGE, Sizes};
use e1000_sim::packets::rings::{Fragment, Request};
use e1000_sim::packets::round::{PEER, guest_mac};
use e1000_sim::stages::{Stage, Stages};
use e1000_sim::system::{Blueprint, System};
use e1000_sim::traffic::source::{HEADER_COPY, Shape};
use e1000_sim::traffic::{Datagrams, Flow};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::packet_path::NotifyLimits;
use process_lab::process;
use process_lab::program::{Scheme, Variant};

#[path = "common/pools.rs"]
mod pools;
#[path = "common/turn.rs"]
mod turn;

const GUESTS: u32 = 3;
/// The one that is not honest.
const BAD: u32 = 1;
const HONEST: [u32; 2] = [0, 2];
const FRAME: usize = 1000;

/// What the guests of a test do, by their number.
type Conduct = fn(&mut Front<'_>, Entry);
type Test = fn(&mut Rig<'_>);

/// Each test with a machine, guests and a system of its own, in a process of its own. Guests come first.
fn each_alone(tests: &[(&str, Conduct, Test)]) {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let variant = Variant::here(Scheme::Stlb);
    let blueprint = Blueprint::new(&files, variant, &HashSet::new());
    let blueprint = blueprint.unwrap_or_else(|error| panic!("{error}"));
    for (name, conduct, test) in tests {
        let mut child = process::fork(|| {
            with_guests(&blueprint, *conduct, *test);
            0
        })
        .expect("fork");
        child.wait();
        let fate = child.fate();
        assert_eq!(fate.as_deref(), Some("ended with status 0"), "{name}");
    }
}

fn with_guests(blueprint: &Blueprint<'_>, conduct: Conduct, test: Test) {
    let machine = Machine::new(Sizes::default()).expect("memory");
    let shape = Shape::Frames(FRAME);
    let of = |guest| if guest == BAD { conduct } else { honest };
    let guests = Guests::start_with(&machine, GUESTS, shape, guest_limits(), of);
    let guests = guests.unwrap_or_else(|error| panic!("{error}"));
    let mailbox = Mailbox::new().expect("memory");
    let system = System::start(blueprint, &machine, mailbox.get(), Limits::of_seconds(60));
    let system = system.unwrap_or_else(|error| panic!("{error}"));
    let engine = system.staged(Limits::of_seconds(60), GUESTS, Stages::NONE);
    let engine = engine.unwrap_or_else(|error| panic!("{error}"));
    let runner = system.staged_runner(engine, GUESTS, shape);
    let runner = runner.unwrap_or_else(|error| panic!("{error}"));
    let peer = |number| Flow {
        number,
        source: PEER,
        destination: guest_mac(number),
    };
    test(&mut Rig {
        guests,
        packets: runner.packet_loop,
        peers: (0..GUESTS)
            .map(|n| Datagrams::new(peer(n), FRAME))
            .collect(),
        numbers: vec![0; GUESTS as usize],
        system: &system,
    });
}

/// Of a guest's own processor time.
fn guest_limits() -> Limits {
    Limits {
        time: Duration::from_secs(1),
        spin: 0,
    }
}

struct Rig<'s> {
    guests: Guests<'s>,
    packets: Loop<'s>,
    peers: Vec<Datagrams>,
    numbers: Vec<u64>,
    system: &'s System<'s>,
}

impl Rig<'_> {
    fn send(&mut self, count: u32, kicks: Kicks) {
        let Rig {
            guests, packets, ..
        } = self;
        let sent = guests.send(packets, GUESTS, count, kicks);
        sent.unwrap_or_else(|stop| panic!("{stop}"));
    }

    /// A frame for each of these guests, with one interrupt.
    fn receive(&mut self, guests: &[u32]) {
        let frames: Vec<Vec<u8>> = guests.iter().map(|guest| self.frame(*guest)).collect();
        let Rig {
            guests, packets, ..
        } = self;
        let stored = guests.receive(packets, frames.iter().map(Vec::as_slice));
        let stored = stored.unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(stored, frames.len() as u32);
    }

    fn frame(&mut self, guest: u32) -> Vec<u8> {
        let number = &mut self.numbers[guest as usize];
        *number += 1;
        self.peers[guest as usize].finished(*number - 1).to_vec()
    }

    fn check(&mut self) {
        let Rig {
            guests, packets, ..
        } = self;
        let checked = guests.check(packets);
        checked.unwrap_or_else(|stop| panic!("{stop}"));
    }

    fn schedule(&mut self, guest: u32, order: Order) {
        let Rig {
            guests, packets, ..
        } = self;
        let done = guests.schedule(packets, guest, order);
        done.unwrap_or_else(|stop| panic!("{stop}"));
    }

    fn serve(&mut self) {
        let Rig {
            guests, packets, ..
        } = self;
        let served = guests.serve(packets);
        served.unwrap_or_else(|stop| panic!("{stop}"));
    }

    fn deliver(&mut self) {
        let Rig {
            guests, packets, ..
        } = self;
        let delivered = guests.deliver(packets);
        delivered.unwrap_or_else(|stop| panic!("{stop}"));
    }

    fn counts(&mut self, guest: u32) -> CrossingCounts {
        self.guests.back(guest).counts
    }

    /// The honest guests send and receive, and all of it arrives.
    fn others_are_served(&mut self) {
        self.check();
        let before = self.guests.reports();
        let wire = HONEST.map(|guest| self.on_the_wire(guest));
        for _ in 0..4 {
            self.send(GUESTS * 16, Kicks::Batch);
            self.receive(&[HONEST, HONEST, HONEST, HONEST].concat());
        }
        self.check();
        let after = self.guests.reports();
        for (at, guest) in HONEST.into_iter().enumerate() {
            let [before, after] = [before[guest as usize], after[guest as usize]];
            assert_eq!(
                after.completed - before.completed,
                64,
                "guest {guest}: {after:?}"
            );
            assert_eq!(
                after.received - before.received,
                16,
                "guest {guest}: {after:?}"
            );
            assert_eq!((after.corrupted, after.missing), (0, 0), "guest {guest}");
            assert_eq!((after.ready, after.unanswered), (0, 0), "guest {guest}");
            assert_eq!((after.refused, after.bad_answers), (0, 0), "guest {guest}");
            assert_eq!(self.on_the_wire(guest) - wire[at], 64, "guest {guest}");
        }
    }

    /// Frames of a guest's on the cable. None of anybody's is damaged.
    fn on_the_wire(&self, guest: u32) -> u64 {
        let sent = &self.packets.card.sent;
        assert_eq!((sent.corrupted, sent.strangers), (0, 0), "{:?}", sent.first);
        sent.flows[guest as usize].packets
    }

    /// Nothing of a guest's memory is held any more, and it can be given away.
    fn nothing_is_held(&mut self, guest: u32) {
        let machine = self.guests.machine();
        let memory = machine.sizes().guest(guest);
        for page in memory.clone().step_by(PAGE as usize) {
            assert_eq!(machine.frames().pins(page), 0, "{page:#x}");
        }
        let frames = machine.frames();
        let given = frames.give(&memory, Owner::Guest(guest), Owner::Nobody);
        assert_eq!(given, Ok(()));
        let back = frames.give(&memory, Owner::Nobody, Owner::Guest(guest));
        assert_eq!(back, Ok(()));
    }

    /// The driver's pools are as at another time when everything had ended.
    fn pools(&mut self) -> Vec<[usize; 4]> {
        pools::pools(self.system)
    }
}

#[test]
fn guests_as_processes() {
    let _turn = turn::turn();
    each_alone(&[
        ("what a guest shares", honest, what_a_guest_shares),
        (
            "a foreign address",
            reads_anothers_memory,
            who_reads_anothers_memory_dies,
        ),
        ("crossings", honest, crossings_are_counted),
        ("notify", honest, notifications_are_batched),
        (
            "dies before its kick",
            dies_before_its_kick,
            who_dies_leaves_nothing,
        ),
        (
            "dies in its kick",
            honest,
            who_dies_in_its_kick_leaves_nothing,
        ),
        ("wild indices", wild_indices, wild_indices_are_skipped),
        ("wild requests", wild_requests, wild_requests_are_refused),
        ("wild buffers", wild_buffers, wild_buffers_are_refused),
        (
            "changed after it was read",
            changes_after_its_kick,
            what_was_read_is_what_is_sent,
        ),
        (
            "changes all the time",
            changes_all_the_time,
            nothing_foreign_is_sent,
        ),
        ("never answers", never_answers, who_never_answers_is_left),
        (
            "kicks without end",
            kicks_without_end,
            who_floods_kicks_is_throttled,
        ),
        (
            "sends without end",
            sends_without_end,
            who_sends_without_end_is_throttled,
        ),
        (
            "posts nothing",
            posts_nothing,
            who_posts_nothing_keeps_its_own_packets,
        ),
    ]);
}

/// The shared lines of a process's map, and its files that are no standard streams.
fn shared_with(pid: libc::pid_t) -> (Vec<(u64, u64, String)>, usize) {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("its map");
    let shared = maps
        .lines()
        .filter(|line| line.split(' ').nth(1).is_some_and(|p| p.contains('s')));
    let shared = shared.map(|line| {
        let mut words = line.split_whitespace();
        let (start, end) = words
            .next()
            .and_then(|r| r.split_once('-'))
            .expect("a range");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("a number");
        let offset = number(words.nth(1).expect("an offset"));
        let name = words.nth(2).unwrap_or_default().to_owned();
        (offset, number(end) - number(start), name)
    });
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("its files");
    let others = files.flatten().filter(|file| {
        let number: u32 = file
            .file_name()
            .to_string_lossy()
            .parse()
            .expect("a number");
        number > 2
    });
    (shared.collect(), others.count())
}

/// Its own part of the machine's memory and its channel, no other shared memory and no file: by what
/// the kernel says of the process.
fn what_a_guest_shares(rig: &mut Rig<'_>) {
    for guest in 0..GUESTS {
        let own = rig.guests.machine().sizes().guest(guest);
        let pid = rig.guests.back(guest).pid();
        let (mut shared, files) = shared_with(pid);
        assert_eq!(files, 0);
        let memory = shared.iter().position(|(.., name)| name.contains("memfd"));
        let (offset, length, _) = shared.remove(memory.expect("its memory"));
        assert_eq!(offset..offset + length, own);
        let [(_, length, name)] = &shared[..] else {
            panic!("more than memory and channel: {shared:?}");
        };
        assert!(
            name.contains("zero") && *length < 1 << 20,
            "{name}, {length}"
        );
    }
    // The hypervisor has more, so the look at the map finds what there is.
    let (all, files) = shared_with(process::this_thread().0);
    assert!(all.len() > 5 && files > 2, "{all:?}");
    rig.others_are_served();
}

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

fn reads_anothers_memory(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        let mut bytes = [0; 8];
        // As a wild pointer would: the next guest's first page.
        let _ = front.source.machine().read(front.memory.end, &mut bytes);
        // SAFETY: ends the process; only who could read gets here.
        unsafe { libc::_exit(0) };
    }
    front.act(entry);
}

fn who_reads_anothers_memory_dies(rig: &mut Rig<'_>) {
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.guests.back(BAD).state(), State::Dead);
    let fate = rig.guests.back(BAD).fate();
    assert_eq!(fate.as_deref(), Some("died of signal 11"));
    rig.others_are_served();
    rig.nothing_is_held(BAD);
}

/// A kick for each packet, or for each guest's batch; answers and arrivals told as asked. The numbers are exact.
fn crossings_are_counted(rig: &mut Rig<'_>) {
    // Linux' limit of bytes in the queue has to grow first.
    rig.others_are_served();
    let before = rig.guests.counts();
    rig.send(30, Kicks::Each);
    let each = rig.guests.counts().since(before);
    // Each interrupt answers all; the card's first interrupt has all three guests' packets.
    let expected = CrossingCounts {
        kicks: 30,
        notifications: 3,
        scheduled: 3,
        ..CrossingCounts::default()
    };
    assert_eq!(each, expected);

    let Rig {
        guests, packets, ..
    } = rig;
    guests.tell_each(packets, false).expect("guests");
    let before = rig.guests.counts();
    rig.send(30, Kicks::Batch);
    let batch = rig.guests.counts().since(before);
    let expected = CrossingCounts {
        kicks: 3,
        scheduled: 3,
        ..CrossingCounts::default()
    };
    assert_eq!(batch, expected);

    let (before, idle) = (rig.guests.counts(), rig.counts(2).notifications);
    rig.receive(&[0, 1, 0, 1, 0]);
    let received = rig.guests.counts().since(before);
    let expected = CrossingCounts {
        notifications: 2,
        ..CrossingCounts::default()
    };
    assert_eq!(received, expected);
    // Only the ring of who has kicked was looked at, and only who got something was told.
    assert_eq!(rig.counts(2).notifications, idle);
    rig.others_are_served();
}

/// With the stage `notify` a guest is told when a count or a delay is reached, and gets all that waited.
fn notifications_are_batched(rig: &mut Rig<'_>) {
    let engine = &mut rig.packets.engine;
    engine.play_time();
    engine.set_limits(NotifyLimits {
        delay: 1_000_000,
        count: 4,
        most: 0,
    });
    engine.set_stages(Stages::of([Stage::Bridge, Stage::Notify]));
    let before = rig.guests.counts();
    for _ in 0..8 {
        rig.receive(&[0]);
    }
    rig.receive(&[2]);
    assert_eq!(rig.guests.counts().since(before).notifications, 2);
    rig.packets.engine.set_time(2_000_000);
    rig.deliver();
    assert_eq!(rig.guests.counts().since(before).notifications, 3);
    rig.check();
    let all: Vec<u64> = rig.guests.reports().iter().map(|r| r.received).collect();
    assert_eq!(all, [8, 0, 1]);
}

fn dies_before_its_kick(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        // Its requests are in the ring, and it has not kicked.
        front.channel.requests.store(3, Ordering::Release);
        // SAFETY: plain system calls, on itself.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    front.act(entry);
}

fn who_dies_leaves_nothing(rig: &mut Rig<'_>) {
    rig.others_are_served();
    let pools = rig.pools();
    rig.send(GUESTS * 8, Kicks::Batch);
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.guests.back(BAD).state(), State::Dead);
    rig.receive(&[BAD, 0, BAD, 2]);
    rig.others_are_served();
    assert_eq!(rig.guests.in_flight(), 0);
    rig.nothing_is_held(BAD);
    assert_eq!(rig.pools(), pools, "the driver's buffers");
    let Rig {
        guests, packets, ..
    } = rig;
    guests.restart(packets, BAD).expect("a new guest");
    rig.receive(&[BAD, BAD]);
    rig.send(GUESTS * 4, Kicks::Each);
    rig.check();
    let report = rig.guests.back(BAD).report();
    assert_eq!((report.completed, report.received), (4, 2), "{report:?}");
    assert_eq!(
        (report.bad_answers, report.unanswered),
        (0, 0),
        "{report:?}"
    );
}

/// The driver has its packets, and the card has not sent them, when it is killed.
fn who_dies_in_its_kick_leaves_nothing(rig: &mut Rig<'_>) {
    rig.others_are_served();
    let pools = rig.pools();
    let Rig {
        guests, packets, ..
    } = rig;
    guests.prepare(packets, BAD, 20).expect("a guest");
    guests.schedule(packets, BAD, Order::Send).expect("a guest");
    guests.back(BAD).kill();
    assert_eq!(rig.guests.in_flight(), 20);
    let frames = rig.guests.machine().frames();
    let memory = rig.guests.machine().sizes().guest(BAD);
    let given = frames.give(&memory, Owner::Guest(BAD), Owner::Nobody);
    assert_eq!(given, Err(NotGiven::Pinned), "the card may read it");
    rig.serve();
    assert_eq!(rig.guests.in_flight(), 0);
    assert_eq!(rig.counts(BAD).orphans, 20);
    rig.others_are_served();
    rig.nothing_is_held(BAD);
    assert_eq!(rig.pools(), pools, "the driver's buffers");
}

/// How far beyond what was answered an index is, one after the other, each with a kick: no ring has so many.
const WILD: [u32; 5] = [RING + 1, u32::MAX, 1 << 31, 7_000, u32::MAX - 5];

fn wild_indices(front: &mut Front<'_>, entry: Entry) {
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

fn wild_indices_are_skipped(rig: &mut Rig<'_>) {
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
fn good_request(front: &Front<'_>, number: u64) -> Request {
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

fn put(front: &Front<'_>, index: u32, request: Request) {
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

fn wild_requests(front: &mut Front<'_>, entry: Entry) {
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

fn wild_requests_are_refused(rig: &mut Rig<'_>) {
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

fn wild_buffers(front: &mut Front<'_>, entry: Entry) {
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
fn wild_buffers_are_refused(rig: &mut Rig<'_>) {
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
fn changes_after_its_kick(front: &mut Front<'_>, entry: Entry) {
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

fn what_was_read_is_what_is_sent(rig: &mut Rig<'_>) {
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
fn changes_all_the_time(front: &mut Front<'_>, entry: Entry) {
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
fn nothing_foreign_is_sent(rig: &mut Rig<'_>) {
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

fn never_answers(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        loop {
            std::hint::spin_loop();
        }
    }
    front.act(entry);
}

fn who_never_answers_is_left(rig: &mut Rig<'_>) {
    rig.others_are_served();
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.guests.back(BAD).state(), State::Late);
    assert_eq!(rig.counts(BAD).late, 1);
    // Not waited for again.
    rig.receive(&[BAD, 0]);
    rig.others_are_served();
    assert_eq!(rig.counts(BAD).late, 1);
    let pools = rig.pools();
    rig.guests.back(BAD).kill();
    rig.check();
    rig.others_are_served();
    rig.nothing_is_held(BAD);
    // The packet that had waited for it is the driver's again.
    assert_ne!(rig.pools(), pools);
}

fn kicks_without_end(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        loop {
            front.kick();
        }
    }
    front.act(entry);
}

fn who_floods_kicks_is_throttled(rig: &mut Rig<'_>) {
    rig.schedule(BAD, Order::SendEach);
    let first = rig.counts(BAD);
    assert_eq!(first.kicks, u64::from(EMPTY_KICKS) + 1);
    assert_eq!((first.empty, first.throttled), (first.kicks, 1));
    rig.others_are_served();
    // As many again each time that it is entered, and the one that it was left with.
    let before = rig.counts(BAD);
    rig.schedule(BAD, Order::Rest);
    let again = rig.counts(BAD).since(before);
    assert_eq!(again.kicks, u64::from(EMPTY_KICKS) + 2);
    rig.guests.back(BAD).kill();
    rig.others_are_served();
    rig.nothing_is_held(BAD);
}

/// A packet for each kick, and it does not end.
fn sends_without_end(front: &mut Front<'_>, entry: Entry) {
    if entry.order != Order::SendEach {
        return;
    }
    let good = good_request(front, 0);
    for index in (0..RING).cycle() {
        put(front, index, good);
        front.channel.requests.fetch_add(1, Ordering::AcqRel);
        front.kick();
    }
}

fn who_sends_without_end_is_throttled(rig: &mut Rig<'_>) {
    rig.schedule(BAD, Order::SendEach);
    let first = rig.counts(BAD);
    assert_eq!(first.kicks, u64::from(KICKS) + 1);
    assert_eq!((first.empty, first.throttled), (0, 1));
    // Told of its answers it kicks as often again, each time that interrupts are served.
    rig.serve();
    let again = rig.counts(BAD).since(first);
    assert_eq!(
        (again.kicks, again.notifications),
        (u64::from(KICKS) + 2, 1)
    );
    rig.others_are_served();
    rig.guests.back(BAD).kill();
    rig.others_are_served();
    assert_eq!(rig.guests.in_flight(), 0);
    rig.nothing_is_held(BAD);
}

fn posts_nothing(front: &mut Front<'_>, entry: Entry) {
    // It takes back what it had posted, as far as nothing was used.
    front.channel.posted.store(0, Ordering::Release);
    if entry.order == Order::SendEach {
        return;
    }
    if entry.order != Order::Check {
        front.act(entry);
    }
}

/// Its packets wait in its own queue, which is bounded; the others' pool does not run dry, and when it is gone
/// all buffers are the driver's again.
fn who_posts_nothing_keeps_its_own_packets(rig: &mut Rig<'_>) {
    rig.others_are_served();
    let pools = rig.pools();
    rig.schedule(BAD, Order::SendEach);
    rig.receive(&[BAD, 0, BAD, BAD]);
    assert_ne!(rig.pools(), pools, "they wait");
    rig.others_are_served();
    rig.guests.back(BAD).kill();
    rig.check();
    rig.others_are_served();
    assert_eq!(rig.pools(), pools, "the driver's buffers");
    rig.nothing_is_held(BAD);
}
