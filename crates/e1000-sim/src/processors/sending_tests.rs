//! With a made-up price: what must hold whatever the work costs.

use super::super::simulation::tests::{PRICE, SMALL, machine};
use super::*;
use crate::live::price::QUOTED;
use crate::processors::model::{BackEnd, Frames};

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
