//! Guests that die, do not leave, kick or send without end, or take nothing.

use std::sync::atomic::Ordering;

use e1000_sim::guests::back::State;
use e1000_sim::guests::channel::RING;
use e1000_sim::guests::crossing::{EMPTY_KICKS, KICKS, Kicks};
use e1000_sim::guests::front::{Entry, Front, Order};
use e1000_sim::memory::{NotGiven, Owner};

use super::lies::{good_request, put};
use super::rig::{BAD, GUESTS, Rig};

pub fn dies_before_its_kick(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        // Its requests are in the ring, and it has not kicked.
        front.channel.requests.store(3, Ordering::Release);
        // SAFETY: plain system calls, on itself.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    }
    front.act(entry);
}

pub fn who_dies_leaves_nothing(rig: &mut Rig<'_>) {
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
pub fn who_dies_in_its_kick_leaves_nothing(rig: &mut Rig<'_>) {
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

pub fn never_answers(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        loop {
            std::hint::spin_loop();
        }
    }
    front.act(entry);
}

pub fn who_never_answers_is_left(rig: &mut Rig<'_>) {
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

pub fn kicks_without_end(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        loop {
            front.kick();
        }
    }
    front.act(entry);
}

pub fn who_floods_kicks_is_throttled(rig: &mut Rig<'_>) {
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
pub fn sends_without_end(front: &mut Front<'_>, entry: Entry) {
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

pub fn who_sends_without_end_is_throttled(rig: &mut Rig<'_>) {
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

pub fn posts_nothing(front: &mut Front<'_>, entry: Entry) {
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
pub fn who_posts_nothing_keeps_its_own_packets(rig: &mut Rig<'_>) {
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
