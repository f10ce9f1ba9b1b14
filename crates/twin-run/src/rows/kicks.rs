//! The row `kicks`: guests that kick for what they send, and guests whose rings are looked at.

use std::fmt::Write;

use e1000_sim::image::files::Files;
use e1000_sim::live::kicks::{self, Loaded, PACKETS, ROW, Sent, Way};
use e1000_sim::system::SystemError;
use process_lab::program::Variant;
use serde::Serialize;

use super::crossings::GONE;
use super::verdict::Verdict;

/// A load, judged.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(flatten)]
    seen: Loaded,
    /// The part of the kicks that looks with the card's interrupts save, of one a packet.
    gone: f64,
    verdict: Verdict,
}

/// The row.
#[derive(Debug, Serialize)]
pub struct KickRow {
    price: kicks::KickPrice,
    /// Nanoseconds: from a look to the next one, and of the card's throttle.
    formula: [u64; 2],
    riding: u64,
    wanted: f64,
    loads: Vec<Judged>,
    damage: u64,
}

impl KickRow {
    /// Measures it.
    pub fn measure(files: &Files, variant: Variant) -> Result<KickRow, SystemError> {
        let kicks::Kicks {
            price,
            formula,
            riding,
            loads,
            damage,
        } = kicks::measure(files, variant, &ROW, PACKETS)?;
        Ok(KickRow {
            price,
            formula,
            riding,
            wanted: GONE,
            loads: loads.into_iter().map(Judged::new).collect(),
            damage,
        })
    }

    /// Frames that were lost or changed.
    pub fn damage(&self) -> u64 {
        self.damage
    }

    /// For people.
    pub fn text(&self) -> String {
        let us = |time: u64| time as f64 / 1e3;
        let [delay, throttle] = self.formula;
        let mut out = format!(
            "\nkicks: guests that kick, and rings that are looked at; a packet of 1,514 bytes, the card's throttle 250 us\n\
             \x20 a request waits {:.0} us for a look at most, by the formula {:.0} us (with a throttle of {:.0} us)\n\
             \x20 way         kicks   gone  timers  interrupts  instructions  with crossings  a kick a trap  waits: half, 99%, all (us)\n",
            us(self.riding),
            us(delay),
            us(throttle),
        );
        for load in &self.loads {
            load.write(&mut out);
        }
        out
    }
}

fn gone(sent: &Sent) -> f64 {
    1.0 - sent.kicks_a_packet()
}

impl Judged {
    fn new(seen: Loaded) -> Judged {
        let gone = seen.by(Way::Riding).map_or(0.0, gone);
        Judged {
            gone,
            verdict: Verdict::of(gone >= GONE),
            seen,
        }
    }

    fn write(&self, out: &mut String) {
        let sending = self.seen.sending;
        let _ = writeln!(
            out,
            "  {} guest{}, {} at a time, {} Mb/s: {:.1}% gone (design {:.0}%: {})",
            sending.guests,
            if sending.guests == 1 { "" } else { "s" },
            sending.burst,
            sending.rate,
            self.gone * 100.0,
            GONE * 100.0,
            self.verdict.text(),
        );
        for by in &self.seen.ways {
            let sent = &by.sent;
            let us = |time: u64| time as f64 / 1e3;
            let _ = writeln!(
                out,
                "    {:<8}{:>7.4}{:>6.1}%{:>8.4}{:>12.4}{:>14.0}{:>16.0}{:>15.0}{:>14.0}{:>6.0}{:>6.0}",
                by.way.as_str(),
                sent.kicks_a_packet(),
                gone(sent) * 100.0,
                sent.a_packet(sent.looks.timed),
                sent.a_packet(sent.interrupts),
                sent.instructions(),
                sent.priced(),
                sent.priced_with_traps(),
                us(sent.latency_median),
                us(sent.latency_p99),
                us(sent.latency_most),
            );
        }
    }
}
