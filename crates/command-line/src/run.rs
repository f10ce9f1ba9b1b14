//! The options of `twin run`: `twin` has them for its help, completions, manual pages
//! and messages, and `twin-run` does what they say.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use twin_abi::{Processor, Scheme};

use crate::options::{Format, processor, scheme};

const EXAMPLES: &str = "\
Examples:
  twin run e1000.ko
  twin run e1000.ko --path twin --packets 1000000 --size 60
  twin run e1000.ko --path native,twin --scheme paper --tso
  twin run e1000.ko --path twin --upcalls dma_map_page_attrs,dma_unmap_page_attrs
  twin run e1000.ko --path unconfined,twin --scheme window32
  twin run e1000.ko --path twin --stages bridge
  twin run e1000.ko --path guest,twin --tso --without segmentation
  twin run e1000.ko --driver-args 'InterruptThrottleRate=4000 TxDescriptors=512'
  twin run e1000.ko --format json | jq '.ratios.tx.driver_cycles'
  twin run e1000.ko --guests-apart
  twin run e1000.ko --experiment rows --scheme window32
  twin run e1000.ko --experiment all --output target/bench

The driver, the hot routines and dom0's kernel are really run, unprivileged, in
processes of this program; the card is a model of the 82540EM. Cycles are those
of the processor, the card's excepted; instructions are counted one by one.

Exit status:
  0  done: every packet arrived as it was sent
  1  packets were lost or corrupted, or the driver was aborted
  2  wrong usage, or a file that cannot be read or is not what it must be";

/// Most guests: what the card's model has memory for.
const GUESTS: i64 = 8;
/// Packets that are single-stepped, each way on each path.
const STEPPED: u64 = 32;
/// Turns that each driver gets alone, unless it is said.
const TURNS: u64 = 100;

/// Options of `twin run`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The stock e1000 module, plain or compressed; `-` is standard input.
    #[arg(value_name = "MODULE.ko")]
    pub module: PathBuf,
    /// Paths to measure, interleaved in one run.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all")]
    pub path: Vec<PathName>,
    /// Packets to count each way on each path.
    #[arg(long, value_name = "N", default_value_t = 10_000,
          value_parser = clap::value_parser!(u64).range(1..))]
    pub packets: u64,
    /// Bytes of a packet, without checksum: 60 to 1514.
    #[arg(long, value_name = "BYTES", default_value_t = 1514,
          value_parser = clap::value_parser!(u16).range(60..=1514))]
    pub size: u16,
    /// Guests that send and receive: 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=GUESTS))]
    pub guests: u32,
    /// Send 64 KiB segments, which the card splits; received packets are split already.
    #[arg(long, conflicts_with = "size")]
    pub tso: bool,
    /// Packets to single-step each way on each path: slow.
    #[arg(long, value_name = "N", default_value_t = STEPPED, hide = true)]
    pub stepped: u64,
    /// Turns that the driver gets alone, natively and rewritten, each way.
    #[arg(long, value_name = "N", default_value_t = TURNS, hide = true)]
    pub turns: u64,
    /// The instruction sequence that translates addresses.
    #[arg(long, value_name = "SCHEME", default_value = Scheme::Stlb.as_str(),
          value_parser = scheme())]
    pub scheme: Scheme,
    /// Which processors the code is for [default: this one].
    #[arg(long, value_name = "PROCESSOR", value_parser = processor())]
    pub processor: Option<Processor>,
    /// Compare pointers with dom0's first and last address before they are used; for schemes
    /// with a window.
    #[arg(long)]
    pub strict: bool,
    /// Hot routines that the hypervisor instance is to call in dom0.
    #[arg(long, value_name = "ROUTINE,...", value_delimiter = ',')]
    pub upcalls: Vec<String>,
    /// Stages of the packet path through the hypervisor; without any it is the plain path.
    #[arg(long, value_enum, value_name = "STAGE,...", value_delimiter = ',')]
    pub stages: Vec<StageName>,
    /// What the card does not do, as after `ethtool -K`; the hot routines do it: with it comes the
    /// stage `offload`.
    #[arg(long, value_enum, value_name = "FEATURE,...", value_delimiter = ',')]
    pub without: Vec<FeatureName>,
    /// Parameters of the driver, as insmod takes them; given more than once, all of them.
    #[arg(long, value_name = "NAME=VALUE ...", value_delimiter = ' ')]
    pub driver_args: Vec<String>,
    /// Also say which functions of the rewritten driver a packet's instructions
    /// and table look-ups are in.
    #[arg(long, conflicts_with = "experiment")]
    pub by_function: bool,
    /// Only compare guests that are processes of their own with guests that are called, by turns: what
    /// kicks and notifications between them and the hypervisor cost.
    #[arg(long, conflicts_with_all = ["path", "packets", "size", "guests", "tso", "upcalls",
                                      "stages", "without", "driver_args", "by_function",
                                      "experiment"])]
    pub guests_apart: bool,
    /// Figures and tables of the paper to make, as text, JSON and SVG. Only rows take --scheme.
    #[arg(long, value_enum, value_delimiter = ',',
          conflicts_with_all = ["path", "size", "tso", "upcalls", "driver_args", "stages",
                                "without"])]
    pub experiment: Vec<Figure>,
    /// Directory for what experiments leave; made if missing.
    #[arg(
        long,
        value_name = "DIR",
        default_value = "target/bench",
        requires = "experiment"
    )]
    pub output: PathBuf,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Directory of kernel.o and hot.o [default: $TWIN_SUPPORT, else `support` or
    /// `lib/twin` beside this program's directory, else target/support].
    #[arg(long, value_name = "DIR")]
    pub support: Option<PathBuf>,
}

/// A way that packets take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PathName {
    /// dom0 owns the machine.
    Native,
    /// dom0 on a hypervisor.
    Dom0,
    /// A guest, through dom0.
    Guest,
    /// A guest, through the rewritten driver in the hypervisor.
    Twin,
    /// A guest, through the driver in the hypervisor as it is: what confining it costs.
    Unconfined,
    /// The first four, which are the paper's.
    All,
}

/// A stage of the packet path that can be on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StageName {
    /// The card's interrupt is acknowledged when it comes, and its handler runs when dom0 allows
    Ack,
    /// TCP segments that one poll finds are one packet for their guest
    Aggregate,
    /// Guests' addresses by a hash, packets from guest to guest, checked source addresses,
    /// a limit for packets to all
    Bridge,
    /// Guests are told of packets by count, delay and event index; with it comes `bridge`
    Notify,
    /// Large packets are cut, fragments gathered and checksums computed where the card does not;
    /// see --without
    Offload,
    /// All of them
    All,
}

/// What a card may do for the packets that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FeatureName {
    /// Cut large packets of TCP (`tso`)
    Segmentation,
    /// Send a packet that is in several pieces (`sg`)
    ScatterGather,
    /// Compute checksums (`tx`)
    Checksums,
}

/// A figure or table of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Figure {
    /// What a core sends, at 1514 bytes and in 64 KiB segments
    Fig5,
    /// What a core receives
    Fig6,
    /// Cycles of a sent packet by component
    Fig7,
    /// Cycles of a received packet by component
    Fig8,
    /// What a core sends, by the number of routines that are upcalls
    Fig10,
    /// How often the driver calls each hot routine
    Table1,
    /// Driver cycles a packet, rewritten, to native, and bytes of code
    Slowdown,
    /// All of them, but for the rows
    All,
    /// Stages of the packet path off and on by turns, with the papers' figures; by itself
    Rows,
}
