//! Rings that are looked at without a kick: who is served when, and guests that make the worst of it.

use std::sync::atomic::Ordering;

use e1000_sim::guests::back::State;
use e1000_sim::guests::channel::RING;
use e1000_sim::guests::crossing::{EMPTY_KICKS, Kicks};
use e1000_sim::guests::front::{Entry, Front, Order};
use e1000_sim::guests::looks::{LookCounts, Pace};

use super::lies::{good_request, put};
use super::rig::{BAD, GUESTS, HONEST, Rig};

const PACE: Pace = Pace {
    delay: 1_000,
    busy: 4,
};
/// Guests 0 and 2.
const FAST: u32 = HONEST[0];
const SLOW: u32 = HONEST[1];

impl Rig<'_> {
    fn set_pace(&mut self, pace: Option<Pace>) {
        let set = self.guests.set_pace(&mut self.packets, pace);
        set.unwrap_or_else(|stop| panic!("{stop}"));
    }

    /// A guest puts so many packets into its ring, and kicks if it is asked to.
    fn put(&mut self, guest: u32, count: u32) {
        let made = self.guests.prepare(&mut self.packets, guest, count);
        made.unwrap_or_else(|stop| panic!("{stop}"));
        self.schedule(guest, Order::Send);
    }

    /// The hypervisor's timer ends, if it is time; how many packets it finds.
    fn timer(&mut self) -> u32 {
        let found = self.guests.timer(&mut self.packets);
        found.unwrap_or_else(|stop| panic!("{stop}"))
    }

    /// The time of the next look comes; how many packets it finds.
    fn next_look(&mut self) -> u32 {
        let due = self.due();
        self.guests.set_time(due);
        self.timer()
    }

    fn due(&self) -> u64 {
        self.guests.deadline().expect("the hypervisor is awake")
    }

    fn looks(&self) -> LookCounts {
        self.guests.look_counts()
    }

    /// So many kicks that the hypervisor wakes up, and rings are armed no more.
    fn wake(&mut self) {
        // Linux' limit of bytes in the queue has to grow first.
        self.others_are_served();
        self.set_pace(Some(PACE));
        (0..PACE.busy).for_each(|_| self.put(FAST, 1));
        self.serve();
        assert!(self.guests.looks().is_awake());
    }

    /// Looks until there is no timer any more: rings are armed, and nothing is in them.
    fn fall_asleep(&mut self) {
        for _ in 0..4 {
            if self.guests.deadline().is_some() {
                self.next_look();
            }
        }
        assert_eq!(self.guests.deadline(), None);
        for guest in 0..GUESTS {
            let back = self.guests.back(guest);
            assert!(back.state() == State::Dead || back.requests() == 0);
        }
    }

    /// Asleep, each of these guests' packets is sent at once, by a kick.
    fn each_kicks_again(&mut self, guests: &[u32]) {
        for guest in guests {
            let (kicks, wire) = (self.counts(*guest).kicks, self.on_the_wire(*guest));
            self.put(*guest, 2);
            assert_eq!(self.counts(*guest).kicks, kicks + 1);
            assert_eq!(self.on_the_wire(*guest), wire + 2);
        }
        self.serve();
    }
}

/// Awake, nobody kicks, and what is there is sent at the time of the look and not before. Who stops is armed again.
pub fn who_stops_is_armed_again(rig: &mut Rig<'_>) {
    rig.wake();
    let (kicks, wire) = (rig.guests.counts().kicks, rig.on_the_wire(SLOW));
    rig.put(FAST, 3);
    rig.put(SLOW, 5);
    rig.guests.set_time(rig.due() - 1);
    assert_eq!(rig.timer(), 0);
    assert_eq!(rig.on_the_wire(SLOW), wire, "nobody has looked");
    assert_eq!(rig.next_look(), 8);
    assert_eq!(rig.on_the_wire(SLOW), wire + 5);
    assert_eq!(rig.guests.counts().kicks, kicks);
    rig.serve();
    rig.fall_asleep();
    rig.each_kicks_again(&[FAST, BAD, SLOW]);
    rig.others_are_served();
}

/// What a guest puts into its ring after the last look and before that is armed has no kick: it is found by the look after
/// that, and keeps the hypervisor awake.
pub fn what_comes_before_the_arming_is_found(rig: &mut Rig<'_>) {
    rig.wake();
    let (kicks, wire) = (rig.guests.counts().kicks, rig.on_the_wire(SLOW));
    rig.put(SLOW, 2);
    let found = rig.guests.fall_asleep(&mut rig.packets);
    assert_eq!(found, Ok(2));
    assert_eq!(rig.on_the_wire(SLOW), wire + 2);
    assert_eq!(rig.looks().kept_awake, 1);
    assert!(rig.guests.deadline().is_some());
    rig.put(SLOW, 1);
    assert_eq!(rig.guests.counts().kicks, kicks, "no ring is armed");
    assert_eq!(rig.next_look(), 1);
    rig.serve();
    rig.fall_asleep();
    rig.each_kicks_again(&[SLOW]);
}

/// A kick for each packet: without an index each is one, and awake none is.
pub fn a_guest_that_kicks_for_each_kicks_no_more(rig: &mut Rig<'_>) {
    rig.wake();
    let before = rig.guests.counts();
    rig.send(GUESTS * 8, Kicks::Each);
    assert_eq!(rig.guests.counts().since(before).kicks, 0);
    assert_eq!(rig.looks().found, u64::from(GUESTS) * 8);
    rig.set_pace(None);
    let before = rig.guests.counts();
    rig.send(GUESTS * 8, Kicks::Each);
    let kicks = rig.guests.counts().since(before).kicks;
    assert_eq!(kicks, u64::from(GUESTS) * 8);
}

/// When looks end, what is in rings is sent.
pub fn what_waits_is_sent_when_looks_end(rig: &mut Rig<'_>) {
    rig.wake();
    let wire = rig.on_the_wire(SLOW);
    rig.put(SLOW, 3);
    rig.set_pace(None);
    assert_eq!(rig.on_the_wire(SLOW), wire + 3);
    rig.serve();
    rig.others_are_served();
}

pub fn kicks_unasked(front: &mut Front<'_>, entry: Entry) {
    match entry.order {
        Order::SendEach => front.kick(),
        _ => front.act(entry),
    }
}

/// The timer never ends. An interrupt of the card finds what waits, and so does a kick of whoever, after the time of the look.
pub fn a_lost_timer_costs_the_time_until_something_happens(rig: &mut Rig<'_>) {
    rig.wake();
    let wire = rig.on_the_wire(FAST);
    rig.put(FAST, 3);
    rig.guests.set_time(rig.due() + 10 * PACE.delay);
    // Frames of another guest come in.
    rig.receive(&[SLOW]);
    assert_eq!(rig.on_the_wire(FAST), wire + 3);
    // Fewer than a window's were found, so it sleeps.
    assert_eq!(rig.guests.deadline(), None);
    (0..PACE.busy).for_each(|_| rig.put(FAST, 1));
    let wire = rig.on_the_wire(FAST);
    rig.put(FAST, 6);
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.on_the_wire(FAST), wire, "it is not time");
    rig.guests.set_time(rig.due() + 10 * PACE.delay);
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.on_the_wire(FAST), wire + 6);
    assert_eq!((rig.looks().timed, rig.looks().overdue), (0, 1));
    rig.serve();
    rig.others_are_served();
}

/// The guest puts so many requests into its ring and does not kick.
fn put_quietly(front: &Front<'_>, count: u32) {
    let requests = &front.channel.requests;
    let first = requests.load(Ordering::Relaxed);
    let good = good_request(front, 0);
    for index in first..first + count {
        put(front, index, good);
    }
    requests.store(first + count, Ordering::Release);
}

/// Values of an index that a guest is not to write, or makes no sense.
const ANY: [u32; 8] = [0, 1, 2, RING, u32::MAX, 1 << 31, 7_000, u32::MAX - 5];

pub fn writes_any_index(front: &mut Front<'_>, entry: Entry) {
    if entry.order != Order::SendEach {
        return;
    }
    for value in ANY {
        let channel = front.channel;
        channel.kick_at.store(value, Ordering::Release);
        channel.by_index.store(value, Ordering::Release);
        channel.told_at.store(value, Ordering::Release);
        channel.answers.store(value, Ordering::Release);
        put_quietly(front, 1);
    }
}

/// Who writes the hypervisor's words does itself harm at most: what it has in its ring is sent with the next look, and waits while
/// nobody looks. The others do not notice.
pub fn any_index_harms_its_guest_only(rig: &mut Rig<'_>) {
    // Linux' limit of bytes in the queue has to grow first.
    rig.others_are_served();
    rig.set_pace(Some(PACE));
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.on_the_wire(BAD), 0);
    assert_eq!(rig.counts(BAD).kicks, 0);
    assert_eq!(rig.guests.deadline(), None);
    rig.others_are_served();
    (0..PACE.busy).for_each(|_| rig.put(FAST, 1));
    rig.next_look();
    let quiet = ANY.len() as u64;
    assert_eq!(rig.on_the_wire(BAD), quiet);
    // Awake.
    rig.schedule(BAD, Order::SendEach);
    let found = rig.next_look();
    assert_eq!(u64::from(found), quiet);
    assert_eq!(rig.on_the_wire(BAD), 2 * quiet);
    rig.serve();
    rig.fall_asleep();
    rig.each_kicks_again(&HONEST);
    rig.others_are_served();
    assert_eq!(rig.guests.in_flight(), 0);
    assert_eq!(rig.counts(BAD).wild, 0);
    rig.nothing_is_held(BAD);
}

/// Indices that no ring has, found by a look.
pub fn wild_indices_are_skipped_by_looks(rig: &mut Rig<'_>) {
    rig.set_pace(Some(PACE));
    super::lies::wild_indices_are_skipped(rig);
    rig.fall_asleep();
    rig.each_kicks_again(&HONEST);
}

/// Kicks without work do not make the hypervisor look more often.
pub fn who_floods_kicks_wakes_nobody(rig: &mut Rig<'_>) {
    rig.set_pace(Some(PACE));
    rig.schedule(BAD, Order::SendEach);
    let counts = rig.counts(BAD);
    assert_eq!(counts.kicks, u64::from(EMPTY_KICKS) + 1);
    assert_eq!((counts.empty, counts.throttled), (counts.kicks, 1));
    assert_eq!(rig.guests.deadline(), None);
    rig.others_are_served();
    rig.guests.back(BAD).kill();
    rig.others_are_served();
    rig.nothing_is_held(BAD);
}

/// A packet for each kick, without end, asked or not: as without looks.
pub fn who_sends_without_end_is_throttled(rig: &mut Rig<'_>) {
    rig.set_pace(Some(PACE));
    super::gone::who_sends_without_end_is_throttled(rig);
    rig.fall_asleep();
    rig.each_kicks_again(&HONEST);
}

pub fn fills_its_ring(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        let answers = front.channel.answers.load(Ordering::Acquire);
        let requests = front.channel.requests.load(Ordering::Relaxed);
        put_quietly(front, RING - requests.wrapping_sub(answers));
    }
}

/// A guest whose ring is full at each look: the others' packets are sent in the same look, and it gets a ring's worth.
pub fn who_fills_its_ring_holds_up_nobody(rig: &mut Rig<'_>) {
    rig.wake();
    for turn in 0..8 {
        rig.schedule(BAD, Order::SendEach);
        let wire = HONEST.map(|guest| rig.on_the_wire(guest));
        rig.put(FAST, 6);
        rig.put(SLOW, 6);
        let found = rig.next_look();
        assert_eq!(found, RING + 12, "{turn}");
        let after = HONEST.map(|guest| rig.on_the_wire(guest));
        assert_eq!(after, wire.map(|wire| wire + 6), "{turn}");
        rig.serve();
    }
    assert!(rig.on_the_wire(BAD) > 0);
    assert_eq!(rig.guests.in_flight(), 0);
    rig.fall_asleep();
    rig.each_kicks_again(&HONEST);
    rig.nothing_is_held(BAD);
}

/// One guest sends all the time, another seldom: it does not kick, and waits for one look. When the first one stops, it
/// kicks again.
pub fn who_sends_seldom_waits_for_one_look(rig: &mut Rig<'_>) {
    rig.wake();
    let kicks = rig.counts(SLOW).kicks;
    for turn in 0..20 {
        rig.put(FAST, 8);
        let seldom = turn % 5 == 2;
        let wire = rig.on_the_wire(SLOW);
        if seldom {
            rig.put(SLOW, 1);
        }
        let before = rig.due();
        assert_eq!(rig.next_look(), 8 + u32::from(seldom));
        assert_eq!(rig.due(), before + PACE.delay, "no request waits longer");
        assert_eq!(rig.on_the_wire(SLOW), wire + u64::from(seldom));
        rig.serve();
    }
    assert_eq!(rig.counts(SLOW).kicks, kicks);
    rig.fall_asleep();
    rig.each_kicks_again(&[SLOW]);
    rig.others_are_served();
}

/// A guest dies with packets in its ring for which it had not to kick. Nothing is kept for it; its successor kicks by index, too.
pub fn who_dies_while_rings_are_looked_at_leaves_nothing(rig: &mut Rig<'_>) {
    rig.wake();
    let wire = rig.on_the_wire(BAD);
    rig.put(BAD, 20);
    rig.guests.back(BAD).kill();
    rig.put(FAST, 6);
    assert_eq!(rig.next_look(), 6);
    assert_eq!(rig.on_the_wire(BAD), wire);
    rig.check();
    rig.nothing_is_held(BAD);
    let Rig {
        guests, packets, ..
    } = rig;
    guests.restart(packets, BAD).expect("a new guest");
    let kicks = rig.counts(BAD).kicks;
    rig.put(BAD, 6);
    assert_eq!(rig.counts(BAD).kicks, kicks, "the hypervisor is awake");
    rig.next_look();
    rig.serve();
    rig.fall_asleep();
    rig.each_kicks_again(&[BAD]);
}

pub fn stays_with_requests(front: &mut Front<'_>, entry: Entry) {
    if entry.order == Order::SendEach {
        put_quietly(front, 2);
        loop {
            std::hint::spin_loop();
        }
    }
    front.act(entry);
}

/// A guest that does not leave has put packets into its ring, for which it had not to kick: a look finds them.
pub fn who_stays_with_requests_is_looked_at(rig: &mut Rig<'_>) {
    rig.wake();
    rig.schedule(BAD, Order::SendEach);
    assert_eq!(rig.guests.back(BAD).state(), State::Late);
    let wire = rig.on_the_wire(BAD);
    assert_eq!(rig.next_look(), 2);
    assert_eq!(rig.on_the_wire(BAD), wire + 2);
    rig.serve();
    rig.guests.back(BAD).kill();
    rig.check();
    rig.others_are_served();
    rig.nothing_is_held(BAD);
}
