//! What was measured, as [`Results`].

use e1000_sim::experiment::{Against, Alone, Known, Measured};
use e1000_sim::measure::profile::Component;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::paths::PacketPath;
use e1000_sim::traffic::source::Shape;

use super::{
    Calls, Detail, Details, Driver, Flow, Function, OnPath, Parts, Paths, Ratio, Ratios, Results,
    Stlb, Turns,
};
use crate::code_size::CodeSize;
use crate::processor::Processor;
use crate::run::Job;

impl Results {
    /// The results of one load.
    pub fn new(job: &Job<'_>, shape: Shape, measured: &[Measured], tsc_hz: f64) -> Results {
        let of = |path| on_path(measured, path, shape);
        let paths = Paths {
            native: of(PacketPath::Native),
            dom0: of(PacketPath::Dom0),
            guest: of(PacketPath::Guest),
            twin: of(PacketPath::Twin),
            unconfined: of(PacketPath::Unconfined),
        };
        let (size, tso) = match shape {
            Shape::Frames(size) => (size, false),
            Shape::Segments(size) => (size, true),
        };
        let mut upcalls: Vec<String> = job.setup.upcalls.iter().cloned().collect();
        upcalls.sort();
        Results {
            module: job.module.to_owned(),
            scheme: job.setup.variant.name().to_owned(),
            size,
            tso,
            guests: job.setup.guests,
            upcalls,
            driver_args: job.setup.driver_args.clone(),
            processor: Processor::this(),
            tsc_hz,
            code: CodeSize::of(job).unwrap_or_default(),
            ratios: ratios(measured, shape, PacketPath::Native),
            confinement: ratios(measured, shape, PacketPath::Unconfined),
            paths,
        }
    }
}

impl Driver {
    fn new(alone: &Alone) -> Driver {
        let Known { all, between } = alone.cycles();
        Driver {
            cycles: all.median,
            cycles_p10: all.low,
            cycles_p90: all.high,
            cycles_between: between,
            player_cycles: alone.player(),
            instructions: alone.instructions(),
        }
    }
}

impl Turns {
    fn new(of: impl Fn(Component) -> f64) -> Turns {
        Turns {
            driver: of(Component::Driver),
            hypervisor: of(Component::Hypervisor),
            dom0: of(Component::Dom0),
            guest: of(Component::Guest),
        }
    }
}

impl Parts {
    fn new(of: impl Fn(Component) -> f64) -> Parts {
        Parts {
            driver: of(Component::Driver),
            support: of(Component::Support),
            hypervisor: of(Component::Hypervisor),
            dom0: of(Component::Dom0),
            guest: of(Component::Guest),
        }
    }
}

fn on_path(measured: &[Measured], path: PacketPath, shape: Shape) -> Option<OnPath> {
    let mine = || {
        measured
            .iter()
            .filter(|m| m.path == path && m.shape == shape)
    };
    mine().next()?;
    let of = |direction| mine().find(|m| m.direction == direction);
    let (tx, rx) = (of(PacketDirection::Send), of(PacketDirection::Receive));
    let (upcalls, packets) = mine().fold((0, 0), |(upcalls, packets), m| {
        (upcalls + m.upcalls, packets + m.packets)
    });
    Some(OnPath {
        tx: tx.map(flow),
        rx: rx.map(flow),
        upcalls_per_packet: upcalls as f64 / packets.max(1) as f64,
        stlb: mine().fold(Stlb::default(), |sum, m| Stlb {
            hits: sum.hits + m.hits(),
            misses: sum.misses + m.missed.fills,
            collisions: sum.collisions + m.missed.collisions,
        }),
        stages: mine().next().map(|m| m.stages).unwrap_or_default(),
        detail: Details {
            tx: tx.map(detail),
            rx: rx.map(detail),
        },
    })
}

fn flow(m: &Measured) -> Flow {
    Flow {
        packets: m.packets,
        bytes: m.bytes,
        cycles_per_packet: m.cycles.median,
        instructions_per_packet: m.steps.costs() as f64 / m.stepped.max(1) as f64,
        driver_cycles_per_packet: m.driver_cycles(),
        lost: m.lost,
        corrupted: m.corrupted,
        foreign: m.foreign,
    }
}

fn detail(m: &Measured) -> Detail {
    let per_packet = |count: u64| count as f64 / m.stepped.max(1) as f64;
    let calls = m.calls.iter().filter(|(_, count)| *count > 0);
    Detail {
        cycles_p10: m.cycles.low,
        cycles_p90: m.cycles.high,
        cycles: Turns::new(|component| m.cycles_of(component)),
        driver: m.alone.as_ref().map(Driver::new),
        stepped_packets: m.stepped,
        instructions: Parts::new(|component| m.instructions_of(component)),
        unchecked_instructions: m.unchecked_instructions(),
        stlb_per_packet: per_packet(m.steps.lookups),
        steady_packets: m.steady,
        steady_upcalls: m.steady_upcalls,
        upcalls: m.upcalls,
        calls: calls
            .map(|(name, count)| Calls {
                routine: name.clone(),
                per_packet: per_packet(*count),
            })
            .collect(),
        functions: m
            .spent
            .iter()
            .map(|spent| Function {
                function: spent.function.clone(),
                instructions: per_packet(spent.instructions),
                checks: per_packet(spent.checks),
                slow_paths: per_packet(spent.slow),
            })
            .collect(),
    }
}

/// The twin to another path, the ways that both were measured.
fn ratios(measured: &[Measured], shape: Shape, to: PacketPath) -> Option<Ratios> {
    let on = |path, direction| {
        let wanted = |m: &&Measured| (m.path, m.shape, m.direction) == (path, shape, direction);
        measured.iter().find(wanted)
    };
    let way = |direction| {
        let (twin, other) = (on(PacketPath::Twin, direction)?, on(to, direction)?);
        Some(ratio(twin, other))
    };
    let (tx, rx) = (way(PacketDirection::Send), way(PacketDirection::Receive));
    (tx.is_some() || rx.is_some()).then_some(Ratios { tx, rx })
}

fn ratio(twin: &Measured, other: &Measured) -> Ratio {
    let of = |what: &dyn Fn(&Measured) -> f64| what(twin) / what(other);
    let Against {
        cycles,
        driver,
        driver_unsubtracted,
    } = twin.against(other);
    Ratio {
        cycles: cycles.figure(),
        cycles_p10: cycles.all.low,
        cycles_p90: cycles.all.high,
        cycles_between: cycles.between,
        instructions: of(&|m| m.steps.costs() as f64 / m.stepped.max(1) as f64),
        driver_cycles: driver.and_then(|known| known.figure()),
        driver_cycles_p10: driver.map(|known| known.all.low),
        driver_cycles_p90: driver.map(|known| known.all.high),
        driver_cycles_between: driver.and_then(|known| known.between),
        driver_cycles_unsubtracted: driver_unsubtracted.and_then(|known| known.figure()),
        driver_instructions: of(&|m| m.instructions_of(Component::Driver)),
    }
}

#[cfg(test)]
mod tests {
    use e1000_sim::replay::Turn;
    use serde_json::Value;

    use super::*;

    const SHAPE: Shape = Shape::Frames(60);

    /// What a path's driver and the player took of each recording.
    type Recordings<'a> = &'a [(f64, f64)];

    /// A way out, with those recordings, if the driver was measured alone.
    fn measured(path: PacketPath, recordings: Option<Recordings<'_>>) -> Measured {
        let turns = |all: Recordings<'_>| {
            let all = all.iter();
            all.map(|&(cycles, player)| Turn { cycles, player })
                .collect()
        };
        Measured {
            alone: recordings.map(|all| Alone {
                executed: 100,
                packets: 1,
                turns: turns(all),
            }),
            ..Measured::new(path, SHAPE, PacketDirection::Send)
        }
    }

    /// The ratios of that way as `--format json` has them, with recordings of `native` and `twin`.
    fn sent(native: Option<Recordings<'_>>, twin: Option<Recordings<'_>>) -> Value {
        let measured = [
            measured(PacketPath::Native, native),
            measured(PacketPath::Twin, twin),
        ];
        let ratios = ratios(&measured, SHAPE, PacketPath::Native).expect("both were measured");
        let mut json = serde_json::to_value(ratios).expect("it is JSON");
        json["tx"].take()
    }

    /// The named members, which are there whether they are known or not.
    fn of<const N: usize>(json: &Value, names: [&str; N]) -> [Option<f64>; N] {
        names.map(|name| json.get(name).expect("it is there").as_f64())
    }

    const SPREAD: [&str; 2] = ["driver_cycles_p10", "driver_cycles_p90"];

    /// Ratios of 2.00 to 2.10; before them one of 9, in which something shared the core.
    #[test]
    fn the_drivers_spread_is_that_of_the_undisturbed_recordings() {
        let mut native = vec![(100.0, 500.0); 12];
        let mut twin = vec![(900.0, 600.0)];
        twin.extend((200..=210).map(|cycles| (f64::from(cycles), 510.0)));
        let json = sent(Some(&native), Some(&twin));
        assert_eq!(of(&json, SPREAD), [Some(2.01), Some(2.09)], "{json}");
        assert_eq!(of(&json, ["driver_cycles"]), [Some(2.05)], "{json}");
        assert!(json["driver_cycles_between"].is_array(), "{json}");
        // Too few for a figure, and still some of which a tenth is below.
        native.truncate(6);
        let json = sent(Some(&native), Some(&twin[..6]));
        assert!(of(&json, SPREAD).iter().all(Option::is_some), "{json}");
        assert_eq!(of(&json, ["driver_cycles"]), [None], "{json}");
        assert!(json["driver_cycles_between"].is_null(), "{json}");
    }

    #[test]
    fn without_an_undisturbed_recording_of_both_there_is_no_spread() {
        let [calm, disturbed] = [(100.0, 500.0), (130.0, 600.0)];
        let never_both = [Some(&[calm, disturbed][..]), Some(&[disturbed, calm][..])];
        for [native, twin] in [
            never_both,
            [Some(&[]), Some(&[])],
            [None, Some(&[calm])],
            [None, None],
        ] {
            let json = sent(native, twin);
            assert_eq!(of(&json, SPREAD), [None, None], "{json}");
        }
    }
}
