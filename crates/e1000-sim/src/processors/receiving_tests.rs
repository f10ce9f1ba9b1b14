//! With a made-up price: what must hold whatever the work costs.

use super::super::simulation::tests::{PRICE, SMALL, machine};
use super::*;
use crate::live::price::QUOTED;
use crate::processors::model::Frames;

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
