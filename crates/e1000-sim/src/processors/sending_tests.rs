//! With a made-up price: what must hold whatever the work costs.

use super::super::simulation::tests::{PRICE, SMALL, machine};
use super::*;
use crate::live::price::QUOTED;
use crate::processors::model::Frames;

fn run(machine: &Machine, traffic: &Traffic) -> Outcome {
    simulate(machine, traffic, &PRICE, &QUOTED)
}

/// Each packet was on its cable, once, in order.
fn whole(seen: &Outcome) {
    let counts = (seen.packets, seen.waiting, seen.reordered);
    assert_eq!(counts, (seen.sent, 0, 0), "{seen:?}");
    assert!(seen.sent > 500, "{seen:?}");
}

#[test]
fn every_packet_is_sent_once_and_in_order() {
    for processors in [1, 2, 3, 4, 8] {
        for locks in [Locks::One, Locks::Queues] {
            for frames in [Frames::OneGuest, Frames::AllGuests] {
                for back_end in [BackEnd::Tasklets, BackEnd::Threads { switch: 7_600 }] {
                    for (guests, queues) in [(10, 1), (3, 4), (1, 1)] {
                        let machine = Machine {
                            guests,
                            queues,
                            locks,
                            back_end,
                            ..machine(processors)
                        };
                        let traffic = Traffic { frames, ..SMALL };
                        whole(&run(&machine, &traffic));
                    }
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
        let sum = seen.interrupts * (QUOTED.interrupt + PRICE.driver.interrupt)
            + seen.wakes * QUOTED.interrupt
            + seen.deliveries * QUOTED.virtual_interrupt
            + seen.batches * PRICE.sent.batch
            + seen.packets * (PRICE.take + PRICE.sent.packet + PRICE.sent.completed);
        assert_eq!(seen.worked, [sum]);
        assert_eq!((seen.locked_out, seen.switches), (0, 0));
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
    assert!(rate(4, Locks::One) / alone < 2.0);
}

#[test]
fn no_more_is_sent_than_the_cables_carry() {
    let traffic = Traffic {
        size: 1514,
        ..SMALL
    };
    for processors in [4, 8] {
        let seen = run(&machine(processors), &traffic);
        whole(&seen);
        assert!(seen.bits(&traffic) <= 10e9 * 1514.0 / 1538.0);
        assert!(seen.bits(&traffic) > 9e9, "{seen:?}");
    }
}

/// One flow has one queue and one card: two processors share the work at most.
#[test]
fn a_hot_flow_does_not_scale() {
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
        seen.rate(&hot)
    };
    let alone = rate(1);
    for processors in [2, 4, 8] {
        assert!(rate(processors) / alone < 2.0);
    }
}

#[test]
fn threads_cost_their_switches() {
    let traffic = Traffic {
        size: 1514,
        ..SMALL
    };
    let with = |back_end| {
        let machine = Machine {
            back_end,
            ..machine(4)
        };
        run(&machine, &traffic)
    };
    let tasklets = with(BackEnd::Tasklets);
    let free = with(BackEnd::Threads { switch: 0 });
    let dear = with(BackEnd::Threads { switch: 7_600 });
    assert_eq!((tasklets.switches, &tasklets.worked), (0, &free.worked));
    assert!(dear.switches > 0 && dear.load() > free.load());
    assert_eq!(dear.switches % 2, 0);
}
