//! An outside check of the emulated card's rows: QEMU's own e1000 under the stock driver, with and
//! without moderation. `make mitigation` has more frames, and prints a table.

use qemu_tests::moderation::{Load, Mitigation, Seen, run};

const FRAMES: u64 = 3_000;

fn seen(name: &str, mitigation: Mitigation) -> Seen {
    let load = Load {
        mitigation,
        throttle: 4000,
        frames: FRAMES,
        delay: 0,
    };
    let (report, seen) = run(name, &load).unwrap_or_else(|error| panic!("{error}"));
    report.assert_good(&[
        "load", "generator", "carrier-eth0", "carrier-eth1", "unload",
    ]);
    let all = (seen.sender.frames, seen.receiver.frames, seen.missed);
    assert_eq!(all, (FRAMES, FRAMES, 0), "{seen:?} ({})", report.place);
    println!("{mitigation:?}: {seen:?}");
    seen
}

#[test]
fn moderation_saves_interrupts_and_register_accesses_by_the_rows_law() {
    let on = seen("moderation-on", Mitigation::On);
    let off = seen("moderation-off", Mitigation::Off);
    // An interrupt with its poll: ICR, IMC, IMS, and STATUS after each of the two.
    for side in [on.sender, on.receiver, off.sender, off.receiver] {
        assert_eq!(side.accesses.in_handler(), 5 * side.interrupts, "{side:?}");
    }
    // Without moderation every frame has an interrupt, and six accesses (thesis, 3.1).
    for side in [off.sender, off.receiver] {
        assert_eq!(side.interrupts, FRAMES, "{side:?}");
        assert_eq!(side.accesses.all(), 6 * FRAMES, "{side:?}");
    }
    // With it at most 4,002 a second of the guest's clock, and one that was under way.
    for (moderated, plain) in [(on.sender, off.sender), (on.receiver, off.receiver)] {
        assert!(
            moderated.interrupts < plain.interrupts / 10,
            "{on:?} {off:?}"
        );
        assert!(
            moderated.accesses.all() < plain.accesses.all(),
            "{on:?} {off:?}"
        );
        let most = on.micros * 4_002 / 1_000_000 + 2;
        assert!(moderated.interrupts <= most, "{on:?}");
    }
}
