//! Rings that are looked at without a kick, by the played clock: kicks are counted exactly, no request waits longer than it may, and
//! nothing is lost.

use e1000_sim::image::files::Files;
use e1000_sim::live::kicks::{self, Kicks, ROW, Sending, Sent, Way};
use process_lab::program::{Scheme, Variant};

/// A multiple of all bursts.
const PACKETS: u64 = 1024;
/// Nanoseconds of work between the time at which a look is due and a packet's with the card: the card's interrupt or a guest may
/// just have the processor, and a look's packets are one batch. A look of 40 packets, and one interrupt that finds as many.
const WORK: u64 = 80_000;

fn measured(loads: &[Sending]) -> Kicks {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let seen = kicks::measure(&files, Variant::here(Scheme::Stlb), loads, PACKETS);
    let seen = seen.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(seen.damage, 0, "{seen:?}");
    seen
}

#[test]
fn kicks_are_gone_and_no_request_waits_longer_than_it_may() {
    let seen = measured(&ROW);
    let parts = seen.price;
    let parts = [parts.guest, parts.kick, parts.interrupt].concat();
    assert!(
        parts
            .iter()
            .chain(&[seen.price.nothing])
            .all(|part| *part > 0)
    );
    for load in &seen.loads {
        let Sending {
            guests,
            burst,
            rate,
        } = load.sending;
        let [kicks, formula, riding, eager] = [Way::Kicks, Way::Formula, Way::Riding, Way::Eager]
            .map(|way| *load.by(way).expect("measured"));
        // Each packet is read once, in all ways: the driver turned none away.
        let all = [kicks, formula, riding, eager];
        assert!(all.iter().all(|sent| sent.packets == PACKETS), "{load:?}");
        assert_eq!(kicks.kicks, PACKETS / u64::from(burst), "{load:?}");
        assert_eq!(kicks.looks, Default::default(), "{load:?}");
        for (sent, delay) in [
            (formula, seen.formula[0]),
            (riding, seen.riding),
            (eager, seen.riding),
        ] {
            let most = kicks.latency_most.max(delay) + WORK;
            assert!(sent.latency_most <= most, "{load:?}");
        }
        match (guests, burst, rate) {
            // One kick for 32 packets, once in a window: there is nothing to be gained.
            (1, 32, _) => assert_eq!(riding, kicks),
            (_, _, 500..) => assert_gone(&kicks, &riding, 0.9),
            // Fewer in a window than wake the hypervisor up: nobody waits.
            _ => assert_eq!(riding.kicks, kicks.kicks),
        }
        // One packet keeps it awake.
        if burst == 1 {
            assert_gone(&kicks, &eager, 0.99);
        }
    }
}

/// That part of the kicks is gone, and what is left costs less.
fn assert_gone(kicks: &Sent, looks: &Sent, part: f64) {
    let gone = 1.0 - looks.kicks_a_packet() / kicks.kicks_a_packet();
    assert!(gone >= part, "{kicks:?} {looks:?}");
    assert!(looks.priced() < kicks.priced(), "{kicks:?} {looks:?}");
    assert!(looks.looks.found > 0 && looks.looks.woken > 0);
}

#[test]
fn a_run_is_the_same_each_time() {
    let loads = &ROW[1..2];
    let text = || format!("{:?}", measured(loads));
    assert_eq!(text(), text());
}
