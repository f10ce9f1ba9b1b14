//! With a made-up price: what must hold whatever the work costs.

use super::super::simulation::tests::{PRICE, SMALL, machine};
use super::*;
use crate::live::price::QUOTED;
use crate::processors::model::{BackEnd, Frames};
use crate::processors::work::Handing;

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
        for locks in [Locks::One, Locks::Queues, Locks::Handed] {
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

#[test]
fn one_processor_that_hands_works_the_sum_of_its_work() {
    let machine = Machine {
        locks: Locks::Handed,
        ..machine(1)
    };
    for frames in [Frames::OneGuest, Frames::AllGuests] {
        let seen = run(&machine, &Traffic { frames, ..SMALL });
        let Handing {
            round,
            check,
            take,
            put,
            described,
            ..
        } = PRICE.handing;
        let handing = 2 * take.each + check + put.each + described;
        let each = handing + PRICE.sent.packet + PRICE.sent.completed;
        let sum = seen.interrupts * (QUOTED.interrupt + PRICE.driver.interrupt)
            + seen.wakes * QUOTED.interrupt
            + seen.deliveries * QUOTED.virtual_interrupt
            + seen.rounds * (round + take.one)
            + seen.handed * put.one
            + seen.batches * (take.one + PRICE.sent.batch)
            + seen.packets * each;
        assert_eq!(seen.worked, [sum]);
        assert_eq!((seen.locked_out, seen.held), (0, 0));
        // A guest's batch has each card's packets at most once.
        assert!(seen.handed <= seen.rounds * u64::from(machine.cards));
    }
}

/// Where all guests send by all cards, processors wait for cards' locks, and for cards' queues less than
/// a hundredth of that; none of these waits is longer than the code polls for a lock.
#[test]
fn who_hands_waits_for_no_driver() {
    let traffic = Traffic {
        frames: Frames::AllGuests,
        ..SMALL
    };
    for processors in [4, 8] {
        let with = |locks| {
            let machine = Machine {
                locks,
                ..machine(processors)
            };
            let seen = run(&machine, &traffic);
            whole(&seen);
            seen
        };
        let [shared, handed] = [Locks::Queues, Locks::Handed].map(with);
        assert!(shared.locked_out_of_cards > 0);
        assert_eq!(shared.locked_out, shared.locked_out_of_cards);
        assert!(handed.locked_out_of_cards * 100 < shared.locked_out_of_cards);
        assert!(handed.rate(&traffic) > shared.rate(&traffic));
        assert!(handed.longest_wait < u64::from(handing::POLLS * handing::POLL));
    }
}

/// A packet that was handed cost its guest's processor its part, and the card's the rest.
#[test]
fn a_cards_driver_runs_on_its_processor() {
    let machine = Machine {
        cards: 1,
        guests: 2,
        locks: Locks::Handed,
        ..machine(2)
    };
    let seen = run(&machine, &SMALL);
    whole(&seen);
    // Guest 1's queue is processor 1's, the card processor 0's; only guest 0 sends.
    assert_eq!(seen.worked[1], 0);
    let all = Traffic {
        frames: Frames::AllGuests,
        ..SMALL
    };
    let seen = run(&machine, &all);
    whole(&seen);
    assert!(seen.worked[1] > 0);
    let driver = PRICE.sent.packet - PRICE.sent.guest + PRICE.sent.completed;
    assert!(seen.worked[0] > seen.packets * driver);
    assert!(seen.worked[1] < seen.packets * driver / 4, "{seen:?}");
}
