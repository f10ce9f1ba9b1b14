//! Results as text for people.

use std::fmt::Write;

use command_line::text::{count, number};
use e1000_sim::packets::round::PacketDirection;

use super::results::{OnPath, Ratio, Ratios, Results, Stlb};

/// The note on what the numbers leave out, printed with all numbers.
const NOT_MODELLED: &str = "\
Not modelled: netfilter, queueing and flushes of translations on the guest path, so it is
cheaper here than on a real machine; privilege changes between guest and hypervisor. The
card's own work and the making and checking of packets are not counted.
";

/// What is compared with `unconfined`.
const UNCONFINED: &str = "\
Unconfined: the same hypervisor, guests, hot routines and checks, and the driver as it is; a
wild pointer of its reaches the hypervisor. So these are the costs of confining it alone.
";

/// The slow-down of the paper's rewritten driver in cycles, sending and receiving
/// (section 6.2).
pub const PAPER_SLOWDOWN: [f64; 2] = [2.31, 2.5];

/// The slow-down that LFI's authors publish, x86-64, geometric mean of SPEC 2017's programs.
pub const LFI_SLOWDOWN: f64 = 1.075;

/// The table of a run.
pub fn of(results: &Results) -> String {
    let mut out = header(results);
    for direction in [PacketDirection::Send, PacketDirection::Receive] {
        out += &way(results, direction);
    }
    out += &twin(results);
    out + "\n" + NOT_MODELLED
}

fn header(results: &Results) -> String {
    let what = match results.tso {
        false => format!("{} bytes", number(results.size as u64)),
        true => format!("segments of {} bytes", number(results.size as u64)),
    };
    let mut out = format!(
        "{}: packets of {what}, {}, scheme {}, {:.2} GHz\n{}\n",
        results.module,
        count(results.guests.into(), "guest"),
        results.scheme,
        results.tsc_hz / 1e9,
        results.processor.text(),
    );
    if !results.upcalls.is_empty() {
        let _ = writeln!(out, "upcalls: {}", results.upcalls.join(", "));
    }
    if !results.driver_args.is_empty() {
        let _ = writeln!(out, "driver: {}", results.driver_args);
    }
    out
}

fn way(results: &Results, direction: PacketDirection) -> String {
    let paths = results.paths.list();
    let rows: Vec<_> = paths
        .iter()
        .filter_map(|(name, path)| Some((*name, path.way(direction)?)))
        .collect();
    if rows.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n{:<8}{:>11}{:>7}{:>6}{:>10}  {:<16}{:>10}{:>9}{:>9}{:>8}\n",
        match direction {
            PacketDirection::Send => "send",
            PacketDirection::Receive => "receive",
        },
        "packets",
        "lost",
        "bad",
        "cycles",
        " p10 .. p90",
        "instr.",
        "driver",
        "instr.",
        "Gb/s",
    );
    for (name, (flow, detail)) in rows {
        let spread = format!(
            "{} .. {}",
            number(detail.cycles_p10 as u64),
            number(detail.cycles_p90 as u64)
        );
        let _ = writeln!(
            out,
            "{name:<8}{:>11}{:>7}{:>6}{:>10}  {:<16}{:>10.1}{:>9}{:>9.1}{:>8.2}",
            number(flow.packets),
            number(flow.lost),
            number(flow.corrupted),
            number(flow.cycles_per_packet.round() as u64),
            spread,
            flow.instructions_per_packet,
            known(flow.driver_cycles_per_packet, |cycles| {
                number(cycles.round() as u64)
            }),
            detail.instructions.driver,
            results.gigabits(flow),
        );
    }
    out
}

fn range(low: f64, high: f64) -> String {
    format!("{low:.2} .. {high:.2}")
}

fn known(figure: Option<f64>, text: impl Fn(f64) -> String) -> String {
    figure.map_or_else(|| "-".to_owned(), text)
}

/// A packet's instructions by function of the rewritten driver.
pub fn by_function(results: &Results) -> String {
    let Some(twin) = &results.paths.twin else {
        return String::new();
    };
    let mut out = String::new();
    for (name, detail) in [("send", &twin.detail.tx), ("receive", &twin.detail.rx)] {
        let Some(detail) = detail else { continue };
        let _ = writeln!(
            out,
            "\n{name}, a packet, in the driver {:>23}{:>9}{:>12}",
            "instr.", "checks", "slow paths"
        );
        for function in &detail.functions {
            let _ = writeln!(
                out,
                "{:<40}{:>12.1}{:>9.1}{:>12.1}",
                function.function, function.instructions, function.checks, function.slow_paths
            );
        }
    }
    out
}

/// Results of the hypervisor instance alone.
fn twin(results: &Results) -> String {
    let Some(twin) = &results.paths.twin else {
        return String::new();
    };
    let mut out = String::new();
    if let Some(ratios) = &results.ratios {
        out += &against("twin / native", ratios);
        out += &slowdown(results, ratios);
    }
    if let Some(confinement) = &results.confinement {
        out += &against("/ unconfined", confinement);
        out += UNCONFINED;
    }
    let details = [&twin.detail.tx, &twin.detail.rx];
    let details = || details.into_iter().flatten();
    let (upcalls, packets, stepped) = details().fold((0, 0, 0), |(u, p, s), detail| {
        (
            u + detail.steady_upcalls,
            p + detail.steady_packets,
            s + detail.stepped_packets,
        )
    });
    let _ = write!(
        out,
        "\ntwin: {} for {} after the warm-up",
        count(upcalls, "upcall"),
        count(packets, "packet")
    );
    let Stlb {
        hits,
        misses,
        collisions,
    } = twin.stlb;
    let _ = writeln!(
        out,
        "; table look-ups of {}: {}, {}, {}",
        count(stepped, "stepped packet"),
        count(hits, "hit"),
        count(misses, "miss"),
        count(collisions, "collision")
    );
    let flows = [&twin.tx, &twin.rx].into_iter().flatten();
    let foreign = flows.map(|flow| flow.foreign).sum();
    let _ = writeln!(
        out,
        "      {} refused because a frame was not the guest's",
        count(foreign, "packet")
    );
    out += &checks(results, twin);
    out + &stages(twin)
}

/// The ratios to another path, a line for each way.
fn against(title: &str, ratios: &Ratios) -> String {
    let mut out = format!(
        "\n{title:<15}{:>8}{:>13}{:>8}{:>15}{:>13}{:>14}{:>15}\n",
        "cycles",
        "p10 .. p90",
        "instr.",
        "driver cycles",
        "p10 .. p90",
        "unsubtracted",
        "driver instr."
    );
    for (name, ratio) in [("send", &ratios.tx), ("receive", &ratios.rx)] {
        let Some(ratio) = ratio else { continue };
        let _ = writeln!(
            out,
            "{name:<15}{:>8}{:>13}{:>8.2}{:>15}{:>13}{:>14}{:>15.2}",
            known(ratio.cycles, |times| format!("{times:.2}")),
            range(ratio.cycles_p10, ratio.cycles_p90),
            ratio.instructions,
            known(ratio.driver_cycles, |times| format!("{times:.2}")),
            driver_range(ratio),
            known(ratio.driver_cycles_unsubtracted, |times| format!(
                "{times:.2}"
            )),
            ratio.driver_instructions
        );
    }
    out
}

/// What each stage that is on has counted.
fn stages(twin: &OnPath) -> String {
    let mut out = String::new();
    for (stage, counts) in twin.stages.list() {
        let counts: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{} {name}", number(*count)))
            .collect();
        let _ = writeln!(out, "      stage {stage}: {}", counts.join(", "));
    }
    out
}

/// What the check of descriptors costs: side by side, from one run. dom0's own driver does
/// without, so the native path has none.
fn checks(results: &Results, twin: &OnPath) -> String {
    let mut out = String::new();
    let ways = [
        ("send", PacketDirection::Send),
        ("receive", PacketDirection::Receive),
    ];
    for (name, direction) in ways {
        let Some((flow, detail)) = twin.way(direction) else {
            continue;
        };
        let Some(without) = detail.unchecked_instructions else {
            continue;
        };
        let with = flow.instructions_per_packet;
        let native = results.paths.native.as_ref();
        let native = native.and_then(|native| native.way(direction));
        let times = native.map_or_else(String::new, |(native, _)| {
            let native = native.instructions_per_packet;
            format!(
                ": {:.2} and {:.2} times native",
                with / native,
                without / native
            )
        });
        let _ = writeln!(
            out,
            "      {name}: {with:.1} instructions a packet with descriptors checked, {without:.1} without{times}"
        );
    }
    out
}

/// The spread of a figure that there is.
fn driver_range(ratio: &Ratio) -> String {
    match (
        ratio.driver_cycles,
        ratio.driver_cycles_p10,
        ratio.driver_cycles_p90,
    ) {
        (Some(_), Some(low), Some(high)) => range(low, high),
        _ => String::new(),
    }
}

/// Why there is no figure of that ratio.
fn unknown(between: Option<[f64; 2]>) -> String {
    match between {
        Some([low, high]) => format!("not known within a tenth: between {low:.2} and {high:.2}"),
        None => "not known: measured undisturbed less than six times; \
                 --packets 20000 measures more often"
            .to_owned(),
    }
}

/// How the driver's slow-down was measured, and what of it is not known.
fn slowdown(results: &Results, ratios: &Ratios) -> String {
    let mut out = String::new();
    for (name, ratio) in [("send", &ratios.tx), ("receive", &ratios.rx)] {
        let Some(ratio) = ratio else { continue };
        if ratio.cycles.is_none() {
            let why = unknown(ratio.cycles_between);
            let _ = writeln!(out, "{name}: the path's slow-down is {why}");
        }
        if ratio.driver_cycles.is_none() && ratio.driver_cycles_p10.is_some() {
            let why = unknown(ratio.driver_cycles_between);
            let _ = writeln!(out, "{name}: the driver's slow-down is {why}");
        }
    }
    let paths = results.paths.list();
    let details = paths
        .iter()
        .flat_map(|(_, path)| [&path.detail.tx, &path.detail.rx]);
    let players = details.flatten().filter_map(|detail| detail.driver);
    let most = players
        .map(|driver| driver.player_cycles)
        .fold(0.0, f64::max);
    let _ = writeln!(
        out,
        "Driver cycles in the paper: {} sent, {} received, on a machine of 2009. Whole paths:\n\
         medians of rounds in which both took turns; other load on caches and memory is in them, so\n\
         compare only runs whose native cycles are alike. The driver alone: recorded packets\n\
         played again, natively and rewritten by turns, in several layouts of the code and at\n\
         sixteen places of player and stack, with warm caches, where nothing else shared the\n\
         core, the player's own cycles ({} a packet at most) subtracted. That is too much, as a\n\
         processor works at both at once; with them left in both the figure is the unsubtracted\n\
         one, and the driver's own is between. Figures only where the median is known within a\n\
         tenth (95 of 100 runs).",
        PAPER_SLOWDOWN[0],
        PAPER_SLOWDOWN[1],
        number(most.round() as u64),
    );
    out
}
