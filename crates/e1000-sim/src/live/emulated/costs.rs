//! What crossings cost, in cycles: quoted, because no process without privileges can show them.
//!
//! Two lists. [`QUOTED`] has Dong's prices, for a back end and an application that cost next to
//! nothing: what is left is the driver, so its ratios are the largest. [`sent`] and [`received`] are
//! what the thesis' own tables imply: its machine's back end and exits through QEMU are dearer.

use serde::{Deserialize, Serialize};

use crate::live::price;

/// Cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Costs {
    /// A trapped access: exit, decoding, entry. On the guest's processor.
    pub trap: u64,
    /// An interrupt for the guest. On its processor.
    pub interrupt: u64,
    /// A page is protected: on the device side's processor, and on the guest's, which has to
    /// forget its translation.
    pub rearm: u64,
    /// A frame in the device side: descriptor, copy, back end.
    pub frame: u64,
    /// A received packet in the guest's stack and application, beyond the driver.
    pub application: u64,
}

/// A frame of 60 bytes in a back end that shares memory: **assumed**, not quoted.
const FAST_FRAME: u64 = 1_000;

/// Dong et al., 3.1 (see [`price::QUOTED`]): a trap from the middle of 3,000 to 5,000.
pub const QUOTED: Costs = Costs {
    trap: price::QUOTED.interrupt,
    interrupt: price::QUOTED.virtual_interrupt,
    rearm: price::QUOTED.interrupt,
    frame: FAST_FRAME,
    application: 0,
};

/// Cycles a second of the thesis' processor (3.1).
const THESIS_HZ: f64 = 2.5e9;

/// Cycles between two packets at that many thousand a second.
const fn cycles(kpps: f64) -> u64 {
    (THESIS_HZ / (kpps * 1e3)) as u64
}

/// What tables 3.1 and 4.1 imply for sending, one virtual CPU, if the driver takes `driver`
/// cycles a packet.
///
/// With the status block the device side never waits (1.35 doorbells an interrupt), so a frame
/// costs it the whole period of 183.4 kpps. Of a packet's cycles without anything (20.6 kpps) the
/// rest is the driver, six traps and an interrupt, of which Dong's price is taken for the
/// interrupt.
pub const fn sent(driver: u64) -> Costs {
    let interrupt = price::QUOTED.virtual_interrupt;
    let frame = cycles(183.4);
    let trap = (cycles(20.6) - frame - driver - interrupt) / 6;
    Costs {
        trap,
        interrupt,
        rearm: trap,
        frame,
        application: 0,
    }
}

/// What tables 3.2 and 4.3 imply for receiving. With the status block the guest never waits: the
/// rate is its critical one. So a packet has two periods, of which both have the same driver and
/// application, and Dong's price of an interrupt:
///
/// ```text
/// without anything   14.4 kpps    6 traps            1 interrupt
/// status block      317.3 kpps    11.318/317.3       3.774/317.3
/// ```
pub const fn received(driver: u64) -> Costs {
    let interrupt = price::QUOTED.virtual_interrupt;
    let (traps, interrupts) = (11.318 / 317.3, 3.774 / 317.3);
    let (slow, fast) = (cycles(14.4) as f64, cycles(317.3) as f64);
    let trap = (slow - fast - (1.0 - interrupts) * interrupt as f64) / (6.0 - traps);
    let guest = (fast - traps * trap - interrupts * interrupt as f64) as u64;
    Costs {
        trap: trap as u64,
        interrupt,
        rearm: trap as u64,
        frame: FAST_FRAME,
        application: guest.saturating_sub(driver),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thesis_own_rates_come_out_again() {
        let driver = 1_000;
        let packet = |c: Costs| 6 * c.trap + c.interrupt + c.application + driver;
        let sent = sent(driver);
        assert!(
            (packet(sent) + sent.frame).abs_diff(121_359) <= 6,
            "{sent:?}"
        );
        let received = received(driver);
        assert!(packet(received).abs_diff(173_611) <= 6, "{received:?}");
        let crossings = received.trap * 11_318 + received.interrupt * 3_774;
        let guest = received.application + driver + crossings / 317_300;
        assert!(guest.abs_diff(7_878) <= 6, "{received:?}");
        assert_eq!((sent.trap, received.trap), (16_121, 26_130));
    }
}
