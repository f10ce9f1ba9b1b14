//! The emulated card: what traps, what is saved, and that nothing is lost when a tail is memory.
//!
//! A process boots for each throttle, because the driver reads it when it is loaded. All figures
//! are counts, so they are the same in each run.

use e1000_sim::live::emulated::costs::{Costs, QUOTED};
use e1000_sim::live::emulated::measure::{Bench, Prices, RINGS, driver_args};
use e1000_sim::live::emulated::order::{
    AtEnd, BURST, MaskDoorbell, Order, Outcome, Rarely, Recheck, Retune, Scheme, Strike, Traffic,
    Traps,
};
use e1000_sim::nic::Register;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::transport::rendezvous::Limits;

#[path = "common/system.rs"]
mod system;
#[path = "common/turn.rs"]
mod turn;

use system::with_changed;

fn with_driver<T>(arguments: &str, work: impl FnOnce(&mut Bench<'_, '_>) -> T) -> T {
    let _turn = turn::turn();
    with_changed(
        process_lab::program::Scheme::Stlb,
        |plan| plan.with_driver_args(arguments),
        Limits::of_seconds(60),
        |mut system| {
            let bench = Bench::new(&mut system);
            work(&mut bench.unwrap_or_else(|error| panic!("{error}")))
        },
    )
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

/// RCTL: EN; UPE. CTRL: RST (13.4.22, 13.4.1).
const RECEIVES: u32 = 1 << 1;
const PROMISCUOUS: u32 = 1 << 3;
const RESET: u32 = 1 << 26;

#[test]
fn without_anything_a_packet_has_six_traps_and_an_interrupt() {
    with_driver(&driver_args(0, 256), |bench| {
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
    with_driver(&driver_args(4000, 256), |bench| {
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
            let costs = bench.costs(prices, PacketDirection::Send);
            let order = Order {
                packets: 4_000,
                ..bench.order(scheme, Traffic::Send, costs)
            };
            let sent = run(bench, order);
            whole(&sent, order.packets);
            assert!(sent.traps_a_packet() <= most, "{scheme:?}: {sent:?}");
            assert!(sent.interrupts_khz() <= 4.01, "{scheme:?}: {sent:?}");
        }
        let costs = bench.costs(prices, PacketDirection::Receive);
        // The thesis' rate.
        let traffic = Traffic::Receive(1_000_000 / 317);
        let received = run(bench, bench.order(Scheme::StatusBlock, traffic, costs));
        whole(&received, 20_000);
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

/// 22 times the rate at which a guest is busy whose accesses all trap, by Dong's costs: with the driver's
/// own ring, and with twice that.
#[test]
fn the_status_block_receives_the_thesis_ratio() {
    for descriptors in RINGS {
        let busy = with_driver(&driver_args(0, descriptors), |bench| {
            // Slow enough that each frame has an interrupt and six traps to itself.
            let order = bench.order(Scheme::Trapped, Traffic::Receive(20_000), QUOTED);
            let alone = run(
                bench,
                Order {
                    packets: 500,
                    ..order
                },
            );
            whole(&alone, 500);
            // In cycles of 2.8 GHz, so in nanoseconds:
            alone.guest_cycles / 500 * 10 / 28
        });
        assert!(busy > 12_000, "six traps, an interrupt: {busy}");
        with_driver(&driver_args(4_000, descriptors), |bench| {
            let order = bench.order(Scheme::StatusBlock, Traffic::Receive(busy / 22), QUOTED);
            let saved = run(bench, order);
            whole(&saved, order.packets);
            assert!(saved.traps_a_packet() <= 0.036, "{saved:?}");
            assert!(saved.interrupts_khz() <= 4.01, "{saved:?}");
            assert!(
                saved.found > order.packets / 10,
                "polls find more: {saved:?}"
            );
        });
    }
}

/// More steps than the device side takes until it sleeps.
const UNTIL_ASLEEP: u32 = 16;

/// What strikes at all instructions came to.
#[derive(Debug, Default)]
struct Struck {
    instructions: u64,
    /// Second frames that the first interrupt's poll found, and interrupts after the first.
    found: u64,
    interrupted: u64,
    /// Writes of IMS that trapped.
    rung: u64,
    /// Frames that were lost without that doorbell.
    lost: u64,
}

impl Struck {
    /// False if the first interrupt has no such instruction.
    fn strike(&mut self, bench: &mut Bench<'_, '_>, instruction: u64) -> bool {
        let order = |bench: &Bench<'_, '_>, steps, masks| Order {
            packets: 2,
            strike: Some(Strike { instruction, steps }),
            masks,
            ..bench.order(Scheme::StatusBlock, Traffic::Receive(50_000), QUOTED)
        };
        // The device side sleeps again before the guest goes on, or is about to protect pages.
        let sleeps = [UNTIL_ASLEEP, 2].into_iter();
        for steps in sleeps.take(1 + usize::from(instruction.is_multiple_of(3))) {
            let outcome = run(bench, order(bench, steps, MaskDoorbell::Rung));
            whole(&outcome, 2);
            if !outcome.struck {
                return false;
            }
            self.found += outcome.found;
            self.interrupted += outcome.interrupts - 1;
            self.rung += outcome.traps.unmask;
        }
        self.instructions += 1;
        if instruction.is_multiple_of(5) {
            let left = run(bench, order(bench, UNTIL_ASLEEP, MaskDoorbell::Left));
            assert_eq!(left.damage(), 0, "{left:?}");
            self.lost += 2 - left.packets;
        }
        true
    }
}

/// A frame that comes between any two instructions of the first interrupt, from the handler's first
/// to the last of its poll. It is the last one: whoever does not see it then never will.
#[test]
fn a_frame_between_any_two_instructions_of_an_interrupt_arrives() {
    with_driver(&driver_args(0, 256), |bench| {
        let mut seen = Struck::default();
        while seen.strike(bench, seen.instructions) {}
        assert!(seen.instructions > 400, "{seen:?}");
        assert!(
            seen.found > 0,
            "NAPI finds what comes before it looks: {seen:?}"
        );
        assert!(seen.interrupted > 0, "and not what comes later: {seen:?}");
        assert!(seen.rung > 0, "{seen:?}");
        assert!(
            seen.lost > 0,
            "without the doorbell something is lost, or this shows nothing: {seen:?}"
        );
    });
}

#[test]
fn settings_beside_the_masks_are_found_where_they_are_memory() {
    with_driver(&driver_args(4000, 256), |bench| {
        a_receive_mode_that_is_written_in_flight_holds(bench);
        the_driver_sets_its_receive_mode(bench);
    });
}

/// RCTL past the driver, while frames for another address than the card's arrive: with promiscuous
/// mode all of them are received, and none from the first look on that finds it off.
fn a_receive_mode_that_is_written_in_flight_holds(bench: &mut Bench<'_, '_>) {
    let write = |bench: &Bench<'_, '_>, value| Order {
        packets: 1_000,
        rarely: Some(Rarely::Poke(500, Register::Rctl.offset(), value)),
        ..bench.order(Scheme::StatusBlock, Traffic::Receive(20_000), QUOTED)
    };
    let quiet = run(bench, write(bench, RECEIVES | PROMISCUOUS));
    whole(&quiet, 1_000);
    let seen = (quiet.rare_writes, quiet.receive_control);
    assert_eq!(seen, (1, RECEIVES | PROMISCUOUS), "{quiet:?}");
    let own = run(bench, write(bench, RECEIVES));
    assert_eq!((own.rare_writes, own.receive_control), (1, RECEIVES));
    assert_eq!(own.packets + own.missed, 1_000, "{own:?}");
    // An interrupt's worth may have come before.
    assert!((500..520).contains(&own.packets), "{own:?}");
}

/// RCTL, then the tables of multicast and addresses, which always trap: `ip link set promisc` and a
/// group, while packets are sent.
fn the_driver_sets_its_receive_mode(bench: &mut Bench<'_, '_>) {
    for every in [97, 250] {
        let order = Order {
            packets: 1_000,
            rarely: Some(Rarely::ReceiveMode(every)),
            ..bench.order(Scheme::StatusBlock, Traffic::Send, QUOTED)
        };
        let outcome = run(bench, order);
        whole(&outcome, order.packets);
        // RCTL in memory, at least after frames have moved.
        assert!(outcome.rare_writes > 1, "{outcome:?}");
        assert!(outcome.closed > 1, "{outcome:?}");
        let all = outcome.receive_control & PROMISCUOUS != 0;
        assert_eq!(
            all,
            ((order.packets - 1) / every).is_multiple_of(2),
            "{outcome:?}"
        );
    }
}

/// A register whose writes start something, from the page that is memory: the run says which.
#[test]
fn a_command_beside_the_masks_is_refused() {
    let commands = [
        (Register::Mdic, 0x0821_0000, "MDIC"),
        (Register::Eecd, 0x0000_0111, "EECD"),
        (Register::Ctrl, RESET, "CTRL"),
    ];
    for (register, value, name) in commands {
        with_driver(&driver_args(4000, 256), |bench| {
            let order = Order {
                packets: 1_000,
                rarely: Some(Rarely::Poke(100, register.offset(), value)),
                ..bench.order(Scheme::StatusBlock, Traffic::Send, QUOTED)
            };
            let refused = bench.run(order).expect_err("it is refused").to_string();
            let clear = refused.contains(name) && refused.contains("written without a trap");
            assert!(clear, "{refused}");
        });
    }
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
