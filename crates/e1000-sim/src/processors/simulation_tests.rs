//! With a made-up price: what must hold whatever the work costs.

use super::*;
use crate::live::price::{Price, QUOTED, SentPrice};
use crate::processors::model::Frames;

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
        completed: 600,
    },
    hash: 60,
    put: 50,
    take: 50,
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

fn run(machine: &Machine, traffic: &Traffic) -> Outcome {
    simulate(machine, traffic, &PRICE, &QUOTED)
}

/// Each frame is somewhere, once, and guests got theirs in order.
fn whole(seen: &Outcome) {
    let elsewhere = seen.missed + seen.dropped + seen.waiting;
    assert_eq!(seen.sent, seen.packets + elsewhere, "{seen:?}");
    assert_eq!(seen.reordered, 0);
}

#[test]
fn every_frame_arrives_once_and_in_order() {
    for processors in [1, 2, 3, 4, 8] {
        for locks in [Locks::One, Locks::Queues] {
            for frames in [Frames::OneGuest, Frames::AllGuests] {
                for (guests, queues) in [(10, 1), (3, 4), (1, 1)] {
                    let machine = Machine {
                        guests,
                        queues,
                        locks,
                        ..machine(processors)
                    };
                    let traffic = Traffic { frames, ..SMALL };
                    let seen = run(&machine, &traffic);
                    whole(&seen);
                    assert_eq!((seen.missed, seen.dropped, seen.waiting), (0, 0, 0));
                    assert!(seen.sent > 1000);
                }
            }
        }
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    let traffic = Traffic {
        frames: Frames::AllGuests,
        ..SMALL
    };
    let first = run(&machine(4), &traffic);
    assert_eq!(first, run(&machine(4), &traffic));
    assert!(first.locked_out > 0, "there was something to decide");
}

#[test]
fn one_processor_works_the_sum_of_its_work() {
    for locks in [Locks::One, Locks::Queues] {
        let machine = Machine {
            locks,
            ..machine(1)
        };
        let seen = run(&machine, &SMALL);
        let each = PRICE.visit(1) - PRICE.visit(0) + PRICE.delivery(1) - PRICE.delivery(0);
        let sum = seen.visits * PRICE.visit(0)
            + seen.deliveries * (PRICE.delivery(0) + QUOTED.virtual_interrupt)
            + seen.interrupts * QUOTED.interrupt
            + seen.packets * each;
        assert_eq!(seen.worked, [sum]);
        assert_eq!((seen.locked_out, seen.wakes), (0, 0));
    }
}

#[test]
fn locks_of_their_own_scale_and_one_lock_does_not() {
    let rate = |processors, locks| {
        let machine = Machine {
            locks,
            ..machine(processors)
        };
        run(&machine, &SMALL).rate(&SMALL)
    };
    let alone = rate(1, Locks::One);
    assert!(rate(4, Locks::Queues) / alone > 3.4);
    assert!(rate(4, Locks::One) / alone < 3.0);
    // No faster than the lock lets packets through.
    let longest = 1e9 / (PRICE.delivery(1) - PRICE.delivery(0)) as f64 * 2.8;
    assert!(rate(8, Locks::One) < longest);
}

/// Frames at the cables' speed, so processors sleep in between: a thread has to be switched to, a tasklet
/// does not.
#[test]
fn threads_cost_their_switches_and_lose_nothing() {
    let traffic = Traffic {
        size: 1514,
        ..SMALL
    };
    let tasklets = run(&machine(4), &traffic);
    let threads = |switch| {
        let machine = Machine {
            back_end: BackEnd::Threads { switch },
            ..machine(4)
        };
        run(&machine, &traffic)
    };
    let (free, dear) = (threads(0), threads(7_600));
    for seen in [&tasklets, &free, &dear] {
        whole(seen);
    }
    assert_eq!((tasklets.switches, &tasklets.worked), (0, &free.worked));
    assert!(free.switches > 0 && dear.switches > 0);
    assert!(dear.load() > free.load());
}

/// Slow senders: the line is the limit, and more processors are idle.
#[test]
fn no_more_arrives_than_the_cables_carry() {
    let traffic = Traffic {
        size: 1514,
        ..SMALL
    };
    for processors in [4, 8] {
        let seen = run(&machine(processors), &traffic);
        assert!(seen.bits(&traffic) < 10e9 * 1514.0 / 1538.0);
        whole(&seen);
    }
}

/// All frames of one flow: one card and one queue. Two processors share the work, as a pipe of
/// two; others find none.
#[test]
fn a_hot_flow_does_not_scale_and_stays_in_order() {
    let hot = Traffic { flows: 1, ..SMALL };
    let rate = |processors| {
        let machine = Machine {
            cards: 1,
            guests: 1,
            queues: 4,
            ..machine(processors)
        };
        let seen = run(&machine, &hot);
        whole(&seen);
        assert!(seen.worked.iter().filter(|work| **work > 0).count() <= 2);
        seen.rate(&hot)
    };
    let alone = rate(1);
    for processors in [2, 4, 8] {
        assert!(rate(processors) / alone < 2.0);
    }
}

/// A guest that takes nothing while frames for it come as fast as the cable carries them.
#[test]
fn a_flood_costs_others_no_frame() {
    for processors in [1, 2, 4] {
        for locks in [Locks::One, Locks::Queues] {
            let machine = Machine {
                locks,
                room: 256,
                ..machine(processors)
            };
            // Others may have a window's frames in their queues.
            let calm = run(&machine, &SMALL);
            let traffic = Traffic {
                flood: Some(3),
                ..SMALL
            };
            let seen = run(&machine, &traffic);
            whole(&seen);
            assert_eq!((seen.waiting, seen.in_time[3]), (256, 0));
            assert!(seen.dropped > 0, "the guest's own");
            for guest in (0..10).filter(|guest| *guest != 3) {
                let (with, without) = (seen.in_time[guest], calm.in_time[guest]);
                assert!(with * 4 > without * 3, "{guest}: {with} of {without}");
            }
        }
    }
}

/// Without a card and a queue there is nothing to do; with a queue alone it is woken.
#[test]
fn an_idle_processor_idles_until_it_is_woken() {
    let one = Machine {
        cards: 1,
        guests: 1,
        queues: 1,
        ..machine(4)
    };
    let seen = run(&one, &SMALL);
    whole(&seen);
    assert_eq!(seen.worked[1..], [0, 0, 0]);
    let four = Machine { queues: 4, ..one };
    let slow = Traffic {
        size: 1514,
        ..SMALL
    };
    let seen = run(&four, &slow);
    whole(&seen);
    assert!(seen.wakes > 0);
    assert!(seen.worked.iter().all(|worked| *worked > 0));
}
