//! The row `vrss`: throughput by processors (Dong et al., 5.4), simulated from counted
//! instructions, and beside it what real processors move at once.

use std::fmt::Write;

use command_line::text::number;
use e1000_sim::image::files::Files;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::processors::measured::{self, Measured};
use e1000_sim::processors::model::{BackEnd, Locks};
use e1000_sim::processors::simulated::{self, Case, PROCESSORS, SWITCH, Simulated, TRANSFER};
use e1000_sim::processors::work::Handing;
use e1000_sim::system::SystemError;
use process_lab::program::Variant;
use serde::Serialize;

use super::verdict::Verdict;
use crate::plot::{Chart, Scale, Series};

/// Dong et al., 5.4: 9.5 Gb/s of ten cards, 2.61 times what the single thread carried.
const PAPER: f64 = 2.61;
/// What the paper's single thread carried, in Gb/s.
const PAPERS_ONE: f64 = 9.5 / PAPER;
/// Dong et al., 5.4: processors in hundredths, beside the single thread's.
const PAPERS_TASKLETS: u32 = 502;
const PAPERS_THREADS: u32 = 581;
/// In the order of the table.
const DIRECTIONS: [PacketDirection; 2] = [PacketDirection::Receive, PacketDirection::Send];
/// What the design sets, for each processor.
const EACH: f64 = 0.85;

/// The row.
#[derive(Debug, Serialize)]
pub struct Vrss {
    simulated: Simulated,
    measured: Option<Measured>,
    /// Of cases that keep all processors busy.
    verdicts: Vec<Judged>,
}

/// A ratio, and what it is to be.
#[derive(Debug, Serialize)]
struct Judged {
    #[serde(rename = "sent")]
    direction: PacketDirection,
    case: Case,
    processors: u32,
    ratio: f64,
    /// Dong's figure for four processors, the design's for more.
    wanted: f64,
    whose: &'static str,
    verdict: Verdict,
}

/// Simulates and measures. The process may use all processors still.
///
/// # Errors
/// [`SystemError`].
pub fn measure(files: &Files, variant: Variant) -> Result<Vrss, SystemError> {
    let simulated = simulated::measure(files, variant)?;
    let measured = measured::measure(files, variant)?;
    Ok(Vrss {
        verdicts: judged(&simulated),
        simulated,
        measured,
    })
}

fn judged(simulated: &Simulated) -> Vec<Judged> {
    let wanted = [
        (4, PAPER, "Dong"),
        (4, 4.0 * EACH, "design"),
        (8, 8.0 * EACH, "design"),
    ];
    let cases = [Case::OwnCard, Case::EveryCard];
    let all = DIRECTIONS.into_iter();
    let all = all.flat_map(|direction| cases.map(|case| (direction, case)));
    let all = all.flat_map(|of| wanted.map(|wanted| (of, wanted)));
    all.filter_map(|((direction, case), (processors, wanted, whose))| {
        let line = simulated.line(direction, case, simulated::best(direction), processors)?;
        Some(Judged {
            direction,
            case,
            processors,
            ratio: line.ratio,
            wanted,
            whose,
            verdict: Verdict::of(line.ratio >= wanted && line.outcome.damage() == 0),
        })
    })
    .collect()
}

impl Vrss {
    /// Frames lost or out of order.
    pub fn damage(&self) -> u64 {
        let simulated = &self.simulated;
        let lines = simulated.lines.iter().chain(&simulated.sent);
        let lines: u64 = lines.map(|line| line.outcome.damage()).sum();
        let compared: u64 = simulated.compared.iter().map(|of| of.damage).sum();
        let measured = self.measured.as_ref();
        lines + compared + measured.map_or(0, |seen| seen.damage + seen.sent.damage)
    }

    /// The table.
    pub fn text(&self) -> String {
        let mut out = "\nvrss: ten cards of a gigabit, simulated from counted instructions; frames a second, and of one \
                       processor's;\n  in brackets the part of all processors' time that went into waiting for locks\n"
            .to_owned();
        let _ = writeln!(
            out,
            "  {:<28}{:<18}{}",
            "",
            "lock",
            PROCESSORS
                .map(|count| format!("{:>21}", format!("{count} CPU")))
                .concat()
        );
        for direction in DIRECTIONS {
            let _ = writeln!(out, "  {}", direction.as_str());
            for case in Case::ALL {
                for locks in simulated::schemes(direction) {
                    let _ = writeln!(
                        out,
                        "  {:<28}{:<18}{}",
                        case.as_str(),
                        name(direction, *locks),
                        PROCESSORS
                            .map(|count| self.cell(direction, case, *locks, count))
                            .concat()
                    );
                }
            }
        }
        out += &self.remarks();
        out += &self.back_ends();
        out += &self.real();
        out
    }

    /// Tasklets and threads.
    fn back_ends(&self) -> String {
        let mut out = format!(
            "  the back end, full frames of ten cards on eight processors; a switch of threads {SWITCH} cycles \
             (quoted, Li, Ding and Shen 2007); Dong: {PAPERS_TASKLETS} and {PAPERS_THREADS}% at 9.5 Gb/s\n"
        );
        for of in &self.simulated.compared {
            let name = match of.back_end {
                BackEnd::Tasklets => "tasklets",
                BackEnd::Threads { .. } => "threads of high priority",
            };
            let _ = writeln!(
                out,
                "    {:<9} {name:<26}{:>6.2} Gb/s {:>6.1}% of a processor, {} switches a second; 60 bytes on four \
                 processors {:.2}: {}",
                of.direction.as_str(),
                of.bits / 1e9,
                of.load,
                number(of.switches as u64),
                of.ratio,
                Verdict::of(of.ratio >= PAPER).text()
            );
        }
        out
    }

    fn cell(
        &self,
        direction: PacketDirection,
        case: Case,
        locks: Locks,
        processors: u32,
    ) -> String {
        let line = self.simulated.line(direction, case, locks, processors);
        let Some(line) = line else {
            return String::new();
        };
        let cell = format!(
            "{:.2} M {:.2} ({:.0}%)",
            line.rate / 1e6,
            line.ratio,
            line.outcome.lock_share() * 100.0
        );
        format!("{cell:>21}")
    }

    fn remarks(&self) -> String {
        let mut out = String::new();
        for judged in &self.verdicts {
            let _ = writeln!(
                out,
                "  {}, {}, {} processors: {:.2}; {} {:.2}: {}",
                judged.direction.as_str(),
                judged.case.as_str(),
                judged.processors,
                judged.ratio,
                judged.whose,
                judged.wanted,
                judged.verdict.text()
            );
        }
        let received = PacketDirection::Receive;
        if let Some(one) = self.simulated.line(received, Case::Full, Locks::Queues, 1) {
            let _ = writeln!(
                out,
                "  full frames: one processor carries {:.2} Gb/s, Dong's single thread {PAPERS_ONE:.2}; what is left \
                 of the cables is no measure: {}",
                one.outcome.bits(&Case::Full.traffic()) / 1e9,
                Verdict::NotComparable.text()
            );
        }
        let [small, _] = self.simulated.prices;
        let _ = writeln!(
            out,
            "  instructions beside the driver's: hash {}, put {}, take {}; a lock that another processor had last \
             {TRANSFER} cycles (assumed;\n  without: {:.2} of {} on four processors)",
            small.hash,
            small.put,
            small.take,
            self.simulated.free_transfer,
            Case::EveryCard.as_str()
        );
        let _ = writeln!(
            out,
            "  sending: a batch {}, a packet {}, of which the guest's {}, found sent {}",
            small.sent.batch, small.sent.packet, small.sent.guest, small.sent.completed
        );
        let Handing {
            round,
            check,
            take,
            put,
            described,
            ..
        } = small.handing;
        let _ = writeln!(
            out,
            "  handing: a round {round}, a packet checked {check}; and described to the driver {described}; taken {} + {} each, \
             put {} + {} each, under the queue's lock",
            take.one, take.each, put.one, put.each
        );
        out += &self.waiting();
        out
    }

    /// Whose locks processors wait for, where all guests send by all cards.
    fn waiting(&self) -> String {
        let mut out = String::new();
        for locks in [Locks::Queues, Locks::Handed] {
            for processors in [4, 8] {
                let line =
                    self.simulated
                        .line(PacketDirection::Send, Case::EveryCard, locks, processors);
                let Some(line) = line else { continue };
                let seen = &line.outcome;
                let _ = writeln!(
                    out,
                    "  sent, {}, {}, {processors} processors: {:.2}% of their time for locks, {:.2}% for cards'; the \
                     longest wait {} cycles",
                    Case::EveryCard.as_str(),
                    name(PacketDirection::Send, locks),
                    seen.lock_share() * 100.0,
                    seen.card_lock_share() * 100.0,
                    number(seen.longest_wait)
                );
            }
        }
        out
    }

    fn real(&self) -> String {
        let Some(seen) = &self.measured else {
            return "  measured here: nothing, this process may use one processor only\n"
                .to_owned();
        };
        let line = |what: &str, [low, half, high]: [f64; 3], alone: f64, damage| {
            format!(
                "  measured here, {what}, {} processes at once, card's model and checks in it: {half:.2} \
                 ({low:.2}..{high:.2}) of one's {} frames a second; {damage} lost or out of order\n",
                seen.processors,
                number(alone as u64),
            )
        };
        let sent = &seen.sent;
        line("received", seen.ratio, seen.alone, seen.damage)
            + &line("sent, handed", sent.ratio, sent.alone, sent.damage)
            + &format!(
                "    a card's queue was locked {} times to put packets there, {} times held by another\n",
                number(sent.batches + sent.held),
                number(sent.held)
            )
    }

    /// Throughput by processors.
    pub fn chart(&self) -> Chart {
        let ratios = |direction, case, locks| {
            let line = |count| self.simulated.line(direction, case, locks, count);
            PROCESSORS.map(|count| line(count).map_or(0.0, |line| line.ratio))
        };
        let series = |label: &str, case, locks| {
            Series::exact(
                label,
                ratios(PacketDirection::Receive, case, locks).to_vec(),
            )
        };
        let sent = |locks| ratios(PacketDirection::Send, Case::EveryCard, locks).to_vec();
        Chart {
            title: "Processors that share guests' queues".to_owned(),
            unit: "throughput, one processor's is 1".to_owned(),
            decimals: 2,
            scale: Scale::Linear,
            stacked: false,
            axis: "processors; ten cards of a gigabit, frames of 60 bytes".to_owned(),
            categories: PROCESSORS.map(|count| count.to_string()).to_vec(),
            series: vec![
                series("a lock a queue, own cards", Case::OwnCard, Locks::Queues),
                series(
                    "a lock a queue, shared cards",
                    Case::EveryCard,
                    Locks::Queues,
                ),
                series("one lock, shared cards", Case::EveryCard, Locks::One),
                series("one queue for all", Case::HotQueue, Locks::Queues),
                Series::exact("sent, a driver a lock, shared cards", sent(Locks::Queues)),
                Series::exact("sent, handed, shared cards", sent(Locks::Handed)),
            ],
            notes: format!(
                "Simulated from counted instructions. Dong et al. report {PAPER} for full frames, where ten cards are \
                 the limit."
            ),
        }
    }
}

fn name(direction: PacketDirection, locks: Locks) -> &'static str {
    match locks {
        Locks::One => "one for all",
        Locks::Queues => match direction {
            PacketDirection::Send => "a queue, a driver",
            PacketDirection::Receive => "one a queue",
        },
        Locks::Handed => "a queue, handed",
    }
}
