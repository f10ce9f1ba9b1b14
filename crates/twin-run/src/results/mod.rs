//! Results of a run as JSON has them. `tx`, `rx`, `upcalls_per_packet`, `stlb` and
//! `ratios` are the stable interface for scripts; `detail` says how they came about.

mod made;

use e1000_sim::packets::round::PacketDirection;
use e1000_sim::stages::StageCounts;
use serde::{Deserialize, Serialize};

use crate::code_size::CodeSize;
use crate::processor::Processor;

/// One load on some paths.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Results {
    /// The driver's file.
    pub module: String,
    /// How it was rewritten.
    pub scheme: String,
    /// Bytes of a packet, or payload of a segment.
    pub size: usize,
    /// Whether packets are segments that the card cuts.
    pub tso: bool,
    /// Guests, or programs in dom0.
    pub guests: u32,
    /// Hot routines that were upcalls.
    pub upcalls: Vec<String>,
    /// The driver's parameters.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub driver_args: String,
    /// Whose cycles they are.
    pub processor: Processor,
    /// Cycles a second of the counter.
    pub tsc_hz: f64,
    /// How much code the driver has.
    #[serde(default)]
    pub code: CodeSize,
    /// What was measured.
    pub paths: Paths,
    /// `twin` to `native`, if both were measured.
    pub ratios: Option<Ratios>,
    /// `twin` to `unconfined`, if both were measured: what confining the driver costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confinement: Option<Ratios>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Paths {
    /// dom0 owns the machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<OnPath>,
    /// dom0 on a hypervisor.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dom0: Option<OnPath>,
    /// A guest, through dom0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<OnPath>,
    /// A guest, through the hypervisor instance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub twin: Option<OnPath>,
    /// A guest, through the driver in the hypervisor as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfined: Option<OnPath>,
}

impl Paths {
    /// Those that were measured, by name: the paper's in its order, then the one that it has not.
    pub fn list(&self) -> Vec<(&'static str, &OnPath)> {
        let all = [
            ("native", &self.native),
            ("dom0", &self.dom0),
            ("guest", &self.guest),
            ("twin", &self.twin),
            ("unconfined", &self.unconfined),
        ];
        let measured = all.into_iter();
        measured
            .filter_map(|(name, path)| Some((name, path.as_ref()?)))
            .collect()
    }
}

/// What a path costs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct OnPath {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Flow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<Flow>,
    /// Of packets whose cycles were counted, both ways.
    pub upcalls_per_packet: f64,
    /// Of the single-stepped packets, both ways.
    pub stlb: Stlb,
    /// What the stages have counted since the instance started, warm-up included; of those
    /// that are on.
    #[serde(default, skip_serializing_if = "none_on")]
    pub stages: StageCounts,
    /// How the numbers came about.
    pub detail: Details,
}

fn none_on(stages: &StageCounts) -> bool {
    *stages == StageCounts::default()
}

impl OnPath {
    /// One way, with its details.
    pub fn way(&self, direction: PacketDirection) -> Option<(&Flow, &Detail)> {
        match direction {
            PacketDirection::Send => self.tx.as_ref().zip(self.detail.tx.as_ref()),
            PacketDirection::Receive => self.rx.as_ref().zip(self.detail.rx.as_ref()),
        }
    }
}

/// One way.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Flow {
    /// Packets whose cycles were counted; a segment that the card cuts is one.
    pub packets: u64,
    /// Bytes of their frames, without checksum.
    pub bytes: u64,
    /// The card excepted; median.
    pub cycles_per_packet: f64,
    /// Of single-stepped packets.
    pub instructions_per_packet: f64,
    /// The driver alone, with warm caches; nothing if it was not measured, or two
    /// recordings disagree.
    pub driver_cycles_per_packet: Option<f64>,
    /// Frames that did not arrive.
    pub lost: u64,
    /// Frames that arrived not as they were sent.
    pub corrupted: u64,
    /// Packets refused because a frame was not their guest's.
    #[serde(default)]
    pub foreign: u64,
}

/// The translation table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stlb {
    /// Look-ups that found their entry.
    pub hits: u64,
    /// Look-ups whose page had to be mapped.
    pub misses: u64,
    /// Look-ups whose entry was taken by another page.
    pub collisions: u64,
}

/// Details of both ways.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Details {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Detail>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<Detail>,
}

/// How one way's numbers came about.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Detail {
    /// A tenth of the batches cost less a packet.
    pub cycles_p10: f64,
    /// A tenth of the batches cost more a packet.
    pub cycles_p90: f64,
    /// Cycles a packet by whose turn it was, the driver's taken out of its host's.
    pub cycles: Turns,
    /// How the driver's were measured, if they were.
    pub driver: Option<Driver>,
    /// Packets that were single-stepped.
    pub stepped_packets: u64,
    /// Instructions a packet, of these.
    pub instructions: Parts,
    /// Instructions a packet in all, without the check of descriptors for the card; of as
    /// many packets, in the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchecked_instructions: Option<f64>,
    /// Table look-ups a packet, of these.
    pub stlb_per_packet: f64,
    /// Packets after the warm-up, recorded and single-stepped ones too.
    pub steady_packets: u64,
    /// Upcalls made for them.
    pub steady_upcalls: u64,
    /// Upcalls of packets whose cycles were counted.
    pub upcalls: u64,
    /// Calls of hot routines by the driver, a packet; single-stepped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<Calls>,
    /// Where in the rewritten driver, a packet; single-stepped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<Function>,
}

/// What a function of the rewritten driver executes for a packet.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Function {
    pub function: String,
    /// Instructions, those of checks included.
    pub instructions: f64,
    /// Look-ups of the translation table.
    pub checks: f64,
    /// Those of them that took the slow path.
    pub slow_paths: f64,
}

/// The driver alone, playing recordings of packets.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Driver {
    /// Cycles a packet: the median of the undisturbed recordings, the player's own
    /// subtracted.
    pub cycles: f64,
    /// A tenth of the recordings were below.
    pub cycles_p10: f64,
    /// A tenth of the recordings were above.
    pub cycles_p90: f64,
    /// The median is between these in 95 of 100 such runs; nothing with fewer than six
    /// undisturbed recordings.
    pub cycles_between: Option<[f64; 2]>,
    /// The player's own cycles a packet.
    pub player_cycles: f64,
    /// Instructions a packet of the recordings.
    pub instructions: f64,
}

/// Cycles by whose turn it was. Hot routines work on their host's.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Turns {
    /// The driver, taken out of its host's; 0 if that is not known.
    pub driver: f64,
    /// Runtime, switch, entries; in `guest`, the event channel is in dom0's part.
    pub hypervisor: f64,
    /// dom0's kernel and programs.
    pub dom0: f64,
    pub guest: f64,
}

impl Turns {
    /// By name, in the order of plots.
    pub fn list(&self) -> [(&'static str, f64); 4] {
        [
            ("driver", self.driver),
            ("hypervisor", self.hypervisor),
            ("dom0", self.dom0),
            ("guest", self.guest),
        ]
    }
}

/// Instructions by component.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Parts {
    pub driver: f64,
    /// The hot routines.
    pub support: f64,
    /// Runtime, switch, entries; in `guest`, the event channel is in dom0's part.
    pub hypervisor: f64,
    /// dom0's kernel and programs.
    pub dom0: f64,
    pub guest: f64,
}

/// Calls of one routine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Calls {
    pub routine: String,
    pub per_packet: f64,
}

/// `twin` to another path.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Ratios {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tx: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rx: Option<Ratio>,
}

/// One way. The ratios of cycles are medians over rounds that both ran one after the
/// other, because the machine's speed varies; those of the driver alone, over recordings
/// that both played by turns.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Ratio {
    /// Of cycles a packet. Nothing if the median is not known within a tenth.
    pub cycles: Option<f64>,
    /// A tenth of the rounds were below.
    pub cycles_p10: f64,
    /// A tenth of the rounds were above.
    pub cycles_p90: f64,
    /// The median is between these in 95 of 100 such runs; nothing with fewer than six rounds.
    pub cycles_between: Option<[f64; 2]>,
    /// Of instructions a packet.
    pub instructions: f64,
    /// Of the driver's cycles: the paper's slow-down. Nothing if it was not measured,
    /// or the median is not known within a tenth.
    pub driver_cycles: Option<f64>,
    /// A tenth of the recordings were below.
    pub driver_cycles_p10: Option<f64>,
    /// A tenth of the recordings were above.
    pub driver_cycles_p90: Option<f64>,
    /// The median is between these in 95 of 100 such runs; nothing with fewer than six
    /// undisturbed recordings.
    pub driver_cycles_between: Option<[f64; 2]>,
    /// As `driver_cycles`, with the player's cycles left in both. The driver's own ratio is
    /// between the two figures.
    pub driver_cycles_unsubtracted: Option<f64>,
    /// Of the driver's instructions.
    pub driver_instructions: f64,
}

impl Results {
    /// Frames lost and frames corrupted, on all paths.
    pub fn damage(&self) -> (u64, u64) {
        let paths = self.paths.list();
        let flows = paths.iter().flat_map(|(_, path)| [&path.tx, &path.rx]);
        flows.flatten().fold((0, 0), |(lost, corrupted), flow| {
            (lost + flow.lost, corrupted + flow.corrupted)
        })
    }

    /// Gigabits a second that a processor would carry at a packet's cost.
    pub fn gigabits(&self, flow: &Flow) -> f64 {
        let bits = flow.bytes as f64 * 8.0 / flow.packets.max(1) as f64;
        bits * self.tsc_hz / flow.cycles_per_packet.max(1.0) / 1e9
    }

    /// The range without the lowest and the highest tenth of the batches.
    pub fn gigabits_spread(&self, (flow, detail): (&Flow, &Detail)) -> (f64, f64) {
        let at = |cycles: f64| self.gigabits(flow) * flow.cycles_per_packet / cycles.max(1.0);
        (at(detail.cycles_p90), at(detail.cycles_p10))
    }
}
