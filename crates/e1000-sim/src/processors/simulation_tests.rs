//! What holds whichever way packets go, with a made-up price, which the tests of each way have, too.

use super::*;
use crate::live::price::{Price, QUOTED, SentPrice};
use crate::processors::model::Frames;
use crate::processors::work::{Batch, Handing};
use crate::processors::{receiving, sending};

pub(in crate::processors) const PRICE: WorkPrice = WorkPrice {
    driver: Price {
        interrupt: 1000,
        packet: 1200,
        round: 300,
        guest: 200,
        taken: 400,
        merged: crate::live::price::MergedPrice {
            handed: 0,
            segment: 0,
            given: 0,
            taken: 0,
        },
    },
    sent: SentPrice {
        batch: 900,
        packet: 2000,
        guest: 300,
        completed: 600,
    },
    hash: 60,
    put: 50,
    take: 50,
    handing: Handing {
        round: 40,
        check: 30,
        take: Batch { one: 20, each: 10 },
        put: Batch { one: 30, each: 15 },
        tried: 10,
        described: 25,
    },
};

pub(in crate::processors) fn machine(processors: u32) -> Machine {
    Machine {
        processors,
        cards: 10,
        guests: 10,
        queues: 1,
        locks: Locks::Queues,
        back_end: BackEnd::Tasklets,
        room: 4096,
        transfer: 300,
    }
}

pub(in crate::processors) const SMALL: Traffic = Traffic {
    size: 60,
    flows: 8,
    frames: Frames::OneGuest,
    time: 2_000_000,
    flood: None,
};

type Simulate = fn(&Machine, &Traffic, &WorkPrice, &Crossings) -> Outcome;

/// Both ways.
const BOTH: [Simulate; 2] = [receiving::simulate, sending::simulate];

/// What was received, and what was sent. Nothing of it is lost or out of order.
fn both(machine: &Machine, traffic: &Traffic) -> [Outcome; 2] {
    BOTH.map(|simulate| {
        let seen = simulate(machine, traffic, &PRICE, &QUOTED);
        assert_eq!(seen.damage(), 0, "{seen:?}");
        assert!(seen.sent > 100, "{seen:?}");
        seen
    })
}

#[test]
fn a_run_is_the_same_each_time() {
    let traffic = Traffic {
        frames: Frames::AllGuests,
        ..SMALL
    };
    let first = both(&machine(4), &traffic);
    assert_eq!(first, both(&machine(4), &traffic));
    for seen in first {
        assert!(seen.locked_out > 0, "there was something to decide");
    }
}

#[test]
fn locks_of_their_own_scale_and_one_lock_does_not() {
    let rates = |processors, locks| {
        let machine = Machine {
            locks,
            ..machine(processors)
        };
        both(&machine, &SMALL).map(|seen| seen.rate(&SMALL))
    };
    let alone = rates(1, Locks::One);
    let [one, own] = [Locks::One, Locks::Queues].map(|locks| rates(4, locks));
    for (way, limit) in [3.0, 2.0].into_iter().enumerate() {
        assert!(own[way] / alone[way] > 3.4);
        assert!(one[way] / alone[way] < limit);
    }
    // No faster than the lock lets received packets through.
    let longest = 1e9 / (PRICE.delivery(1) - PRICE.delivery(0)) as f64 * 2.8;
    assert!(rates(8, Locks::One)[0] < longest);
}

/// All packets are of one flow: one card and one queue. Two processors share the work, as a pipe of
/// two; others find none.
#[test]
fn a_hot_flow_does_not_scale() {
    let hot = Traffic { flows: 1, ..SMALL };
    let seen = |processors| {
        let machine = Machine {
            cards: 1,
            guests: 1,
            queues: 4,
            ..machine(processors)
        };
        both(&machine, &hot)
    };
    let alone = seen(1);
    for processors in [2, 4, 8] {
        for (seen, alone) in seen(processors).iter().zip(&alone) {
            assert!(seen.worked.iter().filter(|work| **work > 0).count() <= 2);
            assert!(seen.rate(&hot) / alone.rate(&hot) < 2.0);
        }
    }
}

/// Packets at the cables' speed, so processors sleep in between: a thread has to be switched to, a tasklet
/// does not.
#[test]
fn threads_cost_their_switches_and_lose_nothing() {
    let traffic = Traffic {
        size: 1514,
        ..SMALL
    };
    let with = |back_end| {
        let machine = Machine {
            back_end,
            ..machine(4)
        };
        both(&machine, &traffic)
    };
    let tasklets = with(BackEnd::Tasklets);
    let free = with(BackEnd::Threads { switch: 0 });
    let dear = with(BackEnd::Threads { switch: 7_600 });
    for way in 0..BOTH.len() {
        let [tasklets, free, dear] = [&tasklets, &free, &dear].map(|seen| &seen[way]);
        assert_eq!((tasklets.switches, &tasklets.worked), (0, &free.worked));
        assert!(free.switches > 0 && dear.switches > 0);
        assert!(dear.load() > free.load());
        assert_eq!(dear.switches % 2, 0, "to the thread, and back");
    }
}
/// Of runs whose processors meet at queues: packets, interrupts, deliveries, wakes, cycles worked and
/// nanoseconds locked out, received and sent. Whatever changes these changes the row `vrss`.
#[test]
fn the_counts_of_a_run_are_known() {
    let traffic = Traffic {
        frames: Frames::AllGuests,
        ..SMALL
    };
    let known = [
        (1, Locks::One, [5040, 12, 64, 0, 9_670_400, 0]),
        (1, Locks::One, [4096, 16, 128, 0, 12_272_000, 0]),
        (4, Locks::One, [7940, 14, 370, 136, 21_074_900, 7_150_097]),
        (4, Locks::One, [4094, 25, 143, 0, 14_925_000, 15_442_510]),
        (4, Locks::Queues, [12_349, 14, 237, 2, 28_227_940, 12_824]),
        (4, Locks::Queues, [6357, 65, 248, 0, 20_540_550, 3_503_500]),
    ];
    for (simulate, (processors, locks, counts)) in BOTH.iter().cycle().zip(known) {
        let machine = Machine {
            locks,
            ..machine(processors)
        };
        let seen = simulate(&machine, &traffic, &PRICE, &QUOTED);
        let work = seen.worked.iter().sum();
        assert_eq!(
            [
                seen.packets, seen.interrupts, seen.deliveries, seen.wakes, work, seen.locked_out
            ],
            counts,
            "{machine:?}"
        );
    }
}
