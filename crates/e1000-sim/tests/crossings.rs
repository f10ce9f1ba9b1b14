//! The row `crossings`: kicks and notifications of each way are exact, and nothing is lost by any.

use e1000_sim::image::files::Files;
use e1000_sim::live::crossing::{self, ByCrossing, Way, WayCost};
use e1000_sim::packets::round::PacketDirection;
use process_lab::program::{Scheme, Variant};

#[test]
fn kicks_and_notifications_are_counted_exactly() {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let seen = crossing::measure(&files, Variant::here(Scheme::Stlb), crossing::COUNTS);
    let seen = seen.unwrap_or_else(|error| panic!("{error}"));
    let cases: Vec<_> = seen.iter().map(|by| (by.direction, by.guests)).collect();
    let (send, receive) = (PacketDirection::Send, PacketDirection::Receive);
    assert_eq!(cases, [(send, 1), (send, 8), (receive, 1), (receive, 8)]);
    for by in &seen {
        assert_eq!(by.damage, 0, "{by:?}");
        let [call_each, each, call, batch, late] = &by.costs[..] else {
            panic!("five ways: {by:?}");
        };
        for called in [call_each, call] {
            assert_eq!((called.kicks, called.notifications), (0.0, 0.0), "{by:?}");
        }
        // A batch of 32 packets is of all guests.
        let share = f64::from(by.guests) / 32.0;
        let kicks = |own| match by.direction {
            PacketDirection::Send => own,
            PacketDirection::Receive => 0.0,
        };
        assert_eq!(
            (each.kicks, each.notifications),
            (kicks(1.0), 1.0),
            "{by:?}"
        );
        assert_eq!(
            (batch.kicks, batch.notifications),
            (kicks(share), share),
            "{by:?}"
        );
        assert_eq!(late.kicks, kicks(share), "{by:?}");
        assert_late(by, late);
    }
}

/// Each 32 frames the card interrupts, after 394 us. 1,000 us after the first of these have passed with the third further
/// one: 128 frames, which are for all guests. What was sent is told after 128 answers, but a guest that
/// sends takes them before.
fn assert_late(by: &ByCrossing, late: &WayCost) {
    assert_eq!(late.way, Way::ProcessNotify);
    let told = match by.direction {
        PacketDirection::Send => 0.0,
        PacketDirection::Receive => f64::from(by.guests) / 128.0,
    };
    assert_eq!(late.notifications, told, "{by:?}");
}
