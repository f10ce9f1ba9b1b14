//! The stage `notify` under frames that come at their times: each of its reasons releases
//! packets, none is lost or late, whatever the timer, the count or the pool does.

use e1000_sim::live::price::{MergedPrice, Price, QUOTED};
use e1000_sim::live::receive::{Offered, Outcome, receive, wire_time};
use e1000_sim::live::rig::Rig;
use e1000_sim::live::rows::with_rig;
use e1000_sim::stages::notify::AT_ONCE;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::packet_path::NotifyLimits;
use process_lab::program::Scheme;

#[path = "common/system.rs"]
mod system;

use system::with_changed;

const US: u64 = 1000;
const FULL: usize = 1514;
const PACKETS: u64 = 1024;
/// A price as it is counted, roughly: the tests are of time, not of what work costs.
const PRICE: Price = Price {
    interrupt: 2000,
    packet: 2700,
    round: 300,
    guest: 300,
    taken: 500,
    merged: MergedPrice {
        handed: 0,
        segment: 0,
        given: 0,
        taken: 0,
    },
};

/// One instance a process, so all in one; interrupts of the card are not throttled.
#[test]
fn packets_that_wait_are_released_by_what_comes_first() {
    let limits = Limits::of_seconds(60);
    with_changed(
        Scheme::Stlb,
        |plan| plan.with_driver_args("InterruptThrottleRate=0"),
        limits,
        |system| {
            with_rig(&system, limits, |rig| {
                at_once(rig);
                by_delay(rig);
                by_count(rig);
                a_count_that_is_never_met(rig);
                before_the_pool_is_empty(rig);
                more_than_can_be_received(rig);
                by_timers_of_their_own(rig);
                a_guest_that_finds_nothing(rig);
                the_same_each_time(rig);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
        },
    );
}

fn full_speed(guests: u32) -> Offered {
    Offered {
        guests,
        packets: PACKETS,
        interval: wire_time(FULL),
        timer: None,
    }
}

fn run(rig: &mut Rig<'_>, offered: Offered, limits: NotifyLimits) -> Outcome {
    rig.engine.set_limits(limits);
    let outcome = receive(rig, offered, &PRICE, &QUOTED);
    rig.engine.set_limits(AT_ONCE);
    let outcome = outcome.unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(outcome.corrupted, 0);
    assert_eq!(
        outcome.packets + outcome.missed + outcome.dropped,
        offered.packets,
        "none forgotten"
    );
    outcome
}

fn whole(rig: &mut Rig<'_>, offered: Offered, limits: NotifyLimits) -> Outcome {
    let outcome = run(rig, offered, limits);
    assert_eq!((outcome.missed, outcome.dropped), (0, 0), "{outcome:?}");
    outcome
}

fn limits(delay: u64, count: u32, most: u32) -> NotifyLimits {
    NotifyLimits {
        delay: delay * US,
        count,
        most,
    }
}

/// What one guest's processor needs for a packet is less than a frame's time on the cable.
fn at_once(rig: &mut Rig<'_>) {
    let outcome = whole(rig, full_speed(1), AT_ONCE);
    assert_eq!(outcome.interrupts, PACKETS);
    assert_eq!(outcome.virtual_interrupts, PACKETS);
    assert!(outcome.latency_most < 20 * US, "{outcome:?}");
}

fn by_delay(rig: &mut Rig<'_>) {
    for guests in [1, 3] {
        let outcome = whole(rig, full_speed(guests), limits(500, 0, 0));
        let periods = outcome.time / (500 * US) + 1;
        assert!(
            outcome.virtual_interrupts <= periods * u64::from(guests),
            "{outcome:?}"
        );
        assert!(outcome.latency_most >= 490 * US, "{outcome:?}");
        assert!(outcome.latency_most <= 600 * US, "{outcome:?}");
    }
}

fn by_count(rig: &mut Rig<'_>) {
    let outcome = whole(rig, full_speed(1), limits(100_000, 8, 0));
    assert_eq!(outcome.virtual_interrupts, PACKETS / 8);
}

/// Slowly, so that the count is far away: the delay ends the wait.
fn a_count_that_is_never_met(rig: &mut Rig<'_>) {
    let slow = Offered {
        interval: 1000 * US,
        packets: 64,
        guests: 1,
        timer: None,
    };
    let outcome = whole(rig, slow, limits(300, 1000, 0));
    assert_eq!(outcome.virtual_interrupts, 64);
    assert!(
        (300 * US..350 * US).contains(&outcome.latency_median),
        "{outcome:?}"
    );
}

/// A delay in which four times as many frames come as the driver has buffers for.
fn before_the_pool_is_empty(rig: &mut Rig<'_>) {
    let outcome = whole(rig, full_speed(3), limits(100_000, 0, 192));
    assert!(outcome.virtual_interrupts >= PACKETS / 192, "{outcome:?}");
    let outcome = whole(rig, full_speed(3), AT_ONCE);
    assert_eq!(outcome.packets, PACKETS);
}

/// Frames of 60 bytes at the cable's speed: most are missed by the card, those that it has
/// are delivered, and afterwards all is as before.
fn more_than_can_be_received(rig: &mut Rig<'_>) {
    rig.resize(60);
    let small = Offered {
        guests: 3,
        packets: 8192,
        interval: wire_time(60),
        timer: None,
    };
    let outcome = run(rig, small, limits(200, 0, 192));
    assert!(outcome.missed > 0 && outcome.packets > 1000, "{outcome:?}");
    rig.resize(FULL);
    whole(rig, full_speed(3), AT_ONCE);
}

/// Guests look twice a millisecond and are not told: no packet waits longer than that.
fn by_timers_of_their_own(rig: &mut Rig<'_>) {
    for guests in [1, 3] {
        let offered = Offered {
            timer: Some(500 * US),
            ..full_speed(guests)
        };
        let outcome = whole(rig, offered, limits(100_000, 0, 0));
        let looks = outcome.time / (500 * US) * u64::from(guests);
        let most = looks + u64::from(guests);
        assert!(
            (looks..=most).contains(&outcome.virtual_interrupts),
            "{looks} {outcome:?}"
        );
        assert!(outcome.latency_most <= 600 * US, "{outcome:?}");
    }
    // Too slow a timer: they are told before the pool is empty.
    let offered = Offered {
        timer: Some(100_000 * US),
        ..full_speed(3)
    };
    let outcome = whole(rig, offered, limits(200_000, 0, 192));
    assert!(outcome.virtual_interrupts >= PACKETS / 192, "{outcome:?}");
}

/// A frame each millisecond, and a timer ten times as fast: each look costs what it costs, and the
/// timer ends with the last frame.
fn a_guest_that_finds_nothing(rig: &mut Rig<'_>) {
    let slow = Offered {
        interval: 1000 * US,
        packets: 16,
        guests: 1,
        timer: Some(100 * US),
    };
    let outcome = whole(rig, slow, limits(100_000, 0, 0));
    assert!(
        (150..=152).contains(&outcome.virtual_interrupts),
        "{outcome:?}"
    );
    assert!(outcome.latency_most <= 120 * US, "{outcome:?}");
}

/// The figures are exact: nothing of this machine's load is in them.
fn the_same_each_time(rig: &mut Rig<'_>) {
    let mut outcomes = [0, 0].map(|_| whole(rig, full_speed(3), limits(250, 4, 192)));
    for outcome in &mut outcomes {
        outcome.measured_cycles = 0;
    }
    assert_eq!(outcomes[0], outcomes[1]);
}
