//! The emulated card: what traps, what is saved, and that nothing is lost when a tail is memory.
//!
//! A process boots for each throttle, because the driver reads it when it is loaded. All figures
//! are counts, so they are the same in each run.

use std::collections::HashSet;

use e1000_sim::image::files::Files;
use e1000_sim::live::emulated::costs::{Costs, QUOTED};
use e1000_sim::live::emulated::measure::{Bench, Prices, driver_args};
use e1000_sim::live::emulated::order::{
    AtEnd, BURST, Order, Outcome, Recheck, Retune, Scheme, Traffic, Traps,
};
use e1000_sim::memory::{Machine, Sizes};
use e1000_sim::system::{Blueprint, System};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Variant;

#[path = "common/turn.rs"]
mod turn;

fn with_driver<T>(arguments: &str, work: impl FnOnce(&mut Bench<'_, '_>) -> T) -> T {
    let _turn = turn::turn();
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let variant = Variant::here(process_lab::program::Scheme::Stlb);
    let blueprint = Blueprint::new(&files, variant, &HashSet::new())
        .expect("it is rewritten")
        .with_driver_args(arguments);
    let machine = Machine::new(Sizes::default()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    let limits = Limits::of_seconds(60);
    let mut system = System::start(&blueprint, &machine, mailbox.get(), limits)
        .unwrap_or_else(|error| panic!("{error}"));
    let mut bench = Bench::new(&mut system).unwrap_or_else(|error| panic!("{error}"));
    work(&mut bench)
}

fn run(bench: &mut Bench<'_, '_>, order: Order) -> Outcome {
    bench
        .run(order)
        .unwrap_or_else(|error| panic!("{order:?}: {error}"))
}

/// All packets arrived, each once and unchanged.
#[track_caller]
fn whole(outcome: &Outcome, packets: u64) {
    assert_eq!(
        (outcome.packets, outcome.damage()),
        (packets, 0),
        "{outcome:?}"
    );
}

/// A device side that is always done before the guest's next packet: it would sleep after each.
const FAST: Costs = Costs {
    frame: 50,
    ..QUOTED
};

/// ITR for 4,000 interrupts a second, in units of 256 ns.
const THROTTLED: u32 = 976;

#[test]
fn without_anything_a_packet_has_six_traps_and_an_interrupt() {
    with_driver(&driver_args(0), |bench| {
        for scheme in [Scheme::Trapped, Scheme::Batched] {
            let packets = 600;
            let order = Order {
                packets,
                ..bench.order(scheme, Traffic::Send, QUOTED)
            };
            let sent = run(bench, order);
            whole(&sent, packets);
            // Batching without a delay is useless and harmless (thesis, 3.3.3).
            let handler = Traps {
                cause: packets,
                mask: packets,
                unmask: packets,
                status: 2 * packets,
                ..Traps::default()
            };
            let traps = Traps {
                transmit_tail: packets,
                ..handler
            };
            assert_eq!((sent.traps, sent.interrupts), (traps, packets));
            let order = Order {
                packets,
                ..bench.order(scheme, Traffic::Receive(50_000), QUOTED)
            };
            let received = run(bench, order);
            whole(&received, packets);
            let traps = Traps {
                receive_tail: packets,
                ..handler
            };
            assert_eq!((received.traps, received.interrupts), (traps, packets));
        }
    });
}

#[test]
fn with_a_throttle() {
    with_driver(&driver_args(4000), |bench| {
        the_counts_are_the_thesis_or_less(bench);
        a_second_look_finds_what_did_not_trap(bench);
        what_a_dead_sender_left_goes_out(bench);
        a_throttle_that_is_written_in_flight_loses_nothing(bench);
        bursts_without_a_limit_starve_the_guest(bench);
    });
}

fn the_counts_are_the_thesis_or_less(bench: &mut Bench<'_, '_>) {
    for prices in [Prices::Quoted, Prices::Thesis] {
        for (scheme, most) in [
            (Scheme::Trapped, 1.4),
            (Scheme::Batched, 0.07),
            (Scheme::StatusBlock, 0.0087),
        ] {
            let costs = bench.costs(prices, true);
            let order = Order {
                packets: 4_000,
                ..bench.order(scheme, Traffic::Send, costs)
            };
            let sent = run(bench, order);
            whole(&sent, order.packets);
            assert!(sent.traps_a_packet() <= most, "{scheme:?}: {sent:?}");
            assert!(sent.interrupts_khz() <= 4.01, "{scheme:?}: {sent:?}");
        }
        let costs = bench.costs(prices, false);
        // The thesis' rate.
        let traffic = Traffic::Receive(1_000_000 / 317);
        let received = run(bench, bench.order(Scheme::StatusBlock, traffic, costs));
        whole(&received, 4_000);
        assert!(received.traps_a_packet() <= 0.036, "{received:?}");
        assert!(received.interrupts_khz() <= 4.01, "{received:?}");
    }
}

/// A lost wake-up: the guest writes its tail between the last look and the protection.
fn a_second_look_finds_what_did_not_trap(bench: &mut Bench<'_, '_>) {
    let mut left = 0;
    for packets in 1..=16 {
        let order = Order {
            packets,
            ..bench.order(Scheme::StatusBlock, Traffic::Send, FAST)
        };
        let sent = run(bench, order);
        whole(&sent, packets);
        let without = Order {
            recheck: Recheck::Left,
            ..order
        };
        let sent_without = run(bench, without);
        assert_eq!(sent_without.packets + sent_without.stranded, packets);
        assert!(sent.rescued > 0 || sent_without.stranded == 0, "{sent:?}");
        left += sent_without.stranded;
    }
    assert!(
        left > 0,
        "without the second look something is lost, or this shows nothing"
    );
}

/// The guest stops for good after its last packet: it takes no interrupt and rings no doorbell.
fn what_a_dead_sender_left_goes_out(bench: &mut Bench<'_, '_>) {
    for scheme in [Scheme::Batched, Scheme::StatusBlock] {
        for packets in [1, 2, 3, 50, 200] {
            let order = Order {
                packets,
                at_end: AtEnd::Dies,
                ..bench.order(scheme, Traffic::Send, QUOTED)
            };
            let sent = run(bench, order);
            whole(&sent, packets);
            let unrung = packets - sent.traps.transmit_tail;
            assert!(packets < 50 || unrung > packets / 2, "{scheme:?}: {sent:?}");
        }
    }
}

/// One processor, and frames that arrive faster than the device side takes them.
fn bursts_without_a_limit_starve_the_guest(bench: &mut Bench<'_, '_>) {
    let mut at = |interval, burst| {
        let overload = bench.overloaded(interval, burst);
        overload.unwrap_or_else(|error| panic!("{error}"))
    };
    let calm = at(4_000, None);
    let (starved, bounded) = (at(300, None), at(300, Some(BURST)));
    assert!(calm.kpps > 200.0, "{calm:?}");
    assert_eq!(starved.outcome.in_time, 0, "{starved:?}");
    assert!(bounded.kpps > 0.3 * calm.kpps, "{bounded:?}");
    assert!(bounded.outcome.longest_burst <= u64::from(BURST));
    assert!(starved.outcome.longest_burst > 10 * u64::from(BURST));
}

/// ITR goes from a short interval to a long one, to none and back, while packets and interrupts are
/// on their way.
fn a_throttle_that_is_written_in_flight_loses_nothing(bench: &mut Bench<'_, '_>) {
    for scheme in [Scheme::Trapped, Scheme::Batched, Scheme::StatusBlock] {
        for traffic in [Traffic::Send, Traffic::Receive(20_000)] {
            for values in [[THROTTLED, 0], [THROTTLED, 0x4000], [0, 1]] {
                let retune = Retune { every: 70, values };
                let order = Order {
                    packets: 1_000,
                    retune: Some(retune),
                    ..bench.order(scheme, traffic, QUOTED)
                };
                let outcome = run(bench, order);
                whole(&outcome, order.packets);
                let written = outcome.traps.throttle + outcome.throttle_writes;
                assert!(
                    written >= 2,
                    "{scheme:?} {traffic:?} {values:?}: {outcome:?}"
                );
            }
        }
    }
    // The last value was another than the driver's.
    let restore = Order {
        packets: 1,
        retune: Some(Retune {
            every: 1,
            values: [THROTTLED; 2],
        }),
        ..bench.order(Scheme::Trapped, Traffic::Send, QUOTED)
    };
    whole(&run(bench, restore), 1);
}

/// The card's other delays: an interrupt comes after the least of those that are set, here RADV and
/// TADV of 64 units of 1,024 ns.
#[test]
fn absolute_delays_bound_interrupts_and_open_the_tail() {
    let delays =
        "InterruptThrottleRate=0 TxIntDelay=64 TxAbsIntDelay=64 RxIntDelay=64 RxAbsIntDelay=64";
    with_driver(delays, |bench| {
        for scheme in [Scheme::Trapped, Scheme::Batched, Scheme::StatusBlock] {
            for traffic in [Traffic::Send, Traffic::Receive(20_000)] {
                let order = Order {
                    packets: 1_000,
                    ..bench.order(scheme, traffic, QUOTED)
                };
                let outcome = run(bench, order);
                whole(&outcome, order.packets);
                assert!(outcome.interrupts_khz() <= 15.3, "{scheme:?}: {outcome:?}");
            }
        }
        let order = bench.order(Scheme::Batched, Traffic::Send, QUOTED);
        let sent = run(bench, order);
        assert!(sent.traps_a_packet() < 0.5, "{sent:?}");
    });
}
