//! Another emulated card under the same driver: QEMU's own e1000, with and without its
//! moderation of interrupts (`mitigation=on|off`), in a stock kernel.
//!
//! ```text
//! the kernel's packet generator ─> e1000.ko ─> card ── hub ── card ─> e1000.ko ─> dropped
//!                                   sender                    receiver
//! ```
//!
//! It is an outside check of the rows of `twin-run`'s emulated card: kernel, device and cable are
//! all made by others, only the driver and its parameters are the same. **Counted** are frames,
//! the guest's interrupts (`/proc/interrupts`), and each access to the cards' registers, from QEMU's
//! log of events. The guest's clock follows its instructions (`-icount`), so nothing depends on the
//! host's speed: an instruction is a nanosecond.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::time::Duration;

use super::machine::{Cable, Guest, MEMORY};
use super::modules;
use super::ramdisk::Ramdisk;
use super::report::GuestReport;
use super::{Error, io, target};

const COMMON: &[u8] = include_bytes!("../guest/common.sh");
const SCRIPT: &[u8] = include_bytes!("../guest/moderation.sh");

/// How long a guest may take on a slow machine; usually some seconds.
const LIMIT: Duration = Duration::from_secs(600);

/// What QEMU's card does about interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mitigation {
    /// It honours the driver's throttle.
    On,
    /// It interrupts for each cause.
    Off,
}

/// What moves, and under which settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Of the card.
    pub mitigation: Mitigation,
    /// The driver's `InterruptThrottleRate`; all its other delays are 0.
    pub throttle: u32,
    /// Frames.
    pub frames: u64,
    /// Nanoseconds of the guest's clock from one frame to the next; 0: as fast as it can.
    pub delay: u64,
}

/// Accesses to a card's registers, by those that the driver touches for packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// TDT and RDT written.
    pub tails: u64,
    /// ICR read.
    pub cause: u64,
    /// IMC and IMS written.
    pub masks: u64,
    /// STATUS read, to flush a write.
    pub status: u64,
    /// ITR written.
    pub throttle: u64,
}

impl Accesses {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.tails + self.in_handler() + self.throttle
    }

    /// Those of interrupt handler and poll: five an interrupt with a poll.
    pub fn in_handler(&self) -> u64 {
        self.cause + self.masks + self.status
    }
}

/// What one card had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    /// Frames that it sent, or received.
    pub frames: u64,
    /// Its interrupts.
    pub interrupts: u64,
    /// Accesses to its registers.
    pub accesses: Accesses,
}

impl Side {
    /// Frames of an interrupt.
    pub fn frames_an_interrupt(&self) -> f64 {
        self.frames as f64 / self.interrupts.max(1) as f64
    }

    /// Register accesses of a frame, each of which is an exit on a machine with virtualization.
    pub fn accesses_a_frame(&self) -> f64 {
        self.accesses.all() as f64 / self.frames.max(1) as f64
    }
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The card that sends.
    pub sender: Side,
    /// The card that receives.
    pub receiver: Side,
    /// Frames for which the receiver had no descriptor.
    pub missed: u64,
    /// Microseconds of the guest's clock in which the generator sent.
    pub micros: u64,
}

impl Seen {
    /// Frames a second, in thousands.
    pub fn kpps(&self) -> f64 {
        self.sender.frames as f64 / self.micros.max(1) as f64 * 1e3
    }

    /// Interrupts of a card a second, in thousands.
    pub fn interrupts_khz(&self, side: &Side) -> f64 {
        side.interrupts as f64 / self.micros.max(1) as f64 * 1e3
    }
}

/// Boots, sends, counts.
///
/// # Errors
/// The guest could not be run, or its log of register accesses not be read.
pub fn run(name: &str, load: &Load) -> Result<(GuestReport, Seen), Error> {
    let directory = target("qemu").join(name);
    let made = std::fs::create_dir_all(&directory);
    io(directory.display().to_string(), made)?;
    let log = directory.join("events.log");
    let guest = Guest {
        name,
        card: match load.mitigation {
            Mitigation::On => "e1000,mitigation=on",
            Mitigation::Off => "e1000,mitigation=off",
        },
        buses: &[],
        cable: Cable::Card,
        processor: "qemu64",
        processors: 1,
        memory: MEMORY,
        ramdisk: ramdisk(load)?,
        // Nothing random decides which instructions are executed, and IPv6 sends nothing.
        options: format!(
            "nokaslr ipv6.disable=1 twin.frames={} twin.delay={}",
            load.frames, load.delay
        ),
        limit: LIMIT,
    };
    let arguments = [
        "-icount",
        "shift=0,sleep=off",
        "-rtc",
        "base=2026-01-01,clock=vm",
        "-trace",
        "memory_region_ops_read",
        "-trace",
        "memory_region_ops_write",
        "-D",
        &log.display().to_string(),
    ]
    .map(str::to_owned);
    let output = guest.run_with(&arguments)?;
    let report = GuestReport::read(&output)?;
    let seen = counts(&report, &log)?;
    // A hundred bytes an access.
    let removed = std::fs::remove_file(&log);
    io(log.display().to_string(), removed)?;
    Ok((report, seen))
}

fn ramdisk(load: &Load) -> Result<Vec<u8>, Error> {
    let mut disk = Ramdisk::system()?;
    disk.file("init", SCRIPT);
    disk.file("common.sh", COMMON);
    for (name, path) in [
        ("e1000", "drivers/net/ethernet/intel/e1000/e1000.ko"),
        ("pktgen", "net/core/pktgen.ko"),
    ] {
        disk.file(&format!("modules/{name}.ko"), &modules::stock(path)?);
    }
    disk.file("parameters", parameters(load.throttle).as_bytes());
    Ok(disk.finish())
}

/// The driver's parameters for both cards: those of the rows (`live/emulated/measure.rs`).
fn parameters(throttle: u32) -> String {
    let both = |name: &str, value: u32| format!("{name}={value},{value}");
    [
        both("InterruptThrottleRate", throttle),
        both("TxIntDelay", 0),
        both("TxAbsIntDelay", 0),
        both("RxIntDelay", 0),
        both("RxAbsIntDelay", 0),
    ]
    .join(" ")
}

// ---- What the guest counted -------------------------------------------------------

fn counts(report: &GuestReport, log: &Path) -> Result<Seen, Error> {
    let shown = |name: &str| -> u64 {
        let text = report.text("counts");
        let mut pairs = text.lines().filter_map(|line| line.split_once(' '));
        let value = pairs.find(|(key, _)| *key == name).map(|(_, value)| value);
        value.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let more = |name: &str| shown(&format!("after-{name}")) - shown(&format!("before-{name}"));
    let accesses = Cards::read(log)?;
    let mut seen = Seen {
        sender: Side {
            frames: more("sent"),
            interrupts: more("interrupts-sender"),
            accesses: Accesses::default(),
        },
        receiver: Side {
            frames: more("received"),
            interrupts: more("interrupts-receiver"),
            accesses: Accesses::default(),
        },
        missed: more("missed"),
        micros: micros(report.text("generator")),
    };
    (seen.sender.accesses, seen.receiver.accesses) = accesses.of_traffic();
    Ok(seen)
}

/// From the generator's `Result: OK: 52341(c51234+d1107) usec, ...`.
fn micros(text: &str) -> u64 {
    let after = text.split_once("Result: OK: ").map_or("", |(_, rest)| rest);
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

// ---- What QEMU logged --------------------------------------------------------------

/// Registers of an 82540EM (8254x manual, 13.2), by offset.
const STATUS: u64 = 0x0008;
const ICR: u64 = 0x00c0;
const ITR: u64 = 0x00c4;
const IMS: u64 = 0x00d0;
const IMC: u64 = 0x00d8;
const RDT: u64 = 0x2818;
const TDT: u64 = 0x3818;
/// Bytes of BAR 0, which is aligned to them (13.4.2: 128 KiB).
const BAR: u64 = 0x2_0000;

/// One access: `memory_region_ops_write cpu 0 mr 0x55d0c8 addr 0xfebc3818 value 0x1 size 4 name
/// 'e1000-mmio'`.
struct Access<'l> {
    /// The card, as QEMU knows it.
    region: &'l str,
    write: bool,
    offset: u64,
    value: u64,
}

impl<'l> Access<'l> {
    fn read(line: &'l str) -> Option<Access<'l>> {
        let (event, rest) = line.split_once(" cpu ")?;
        let word = |name: &str| {
            let mut words = rest.split(' ');
            words.find(|word| *word == name)?;
            words.next()
        };
        let number = |name: &str| u64::from_str_radix(word(name)?.strip_prefix("0x")?, 16).ok();
        rest.ends_with("'e1000-mmio'").then_some(())?;
        Some(Access {
            region: word("mr")?,
            write: event.ends_with("memory_region_ops_write"),
            offset: number("addr")? % BAR,
            value: number("value")?,
        })
    }
}

/// The accesses of one card.
#[derive(Default)]
struct Log {
    so_far: Accesses,
    /// Written transmit tails.
    doorbells: u64,
    /// What there was before the sender's first doorbell.
    before: Accesses,
    /// What there was when the last poll had ended: it unmasks, and reads STATUS to flush that.
    polled: Accesses,
    unmasked: bool,
}

impl Log {
    fn note(&mut self, access: &Access<'_>) {
        let so_far = &mut self.so_far;
        match (access.write, access.offset) {
            (true, TDT | RDT) => so_far.tails += 1,
            (false, ICR) => so_far.cause += 1,
            (true, IMS | IMC) => so_far.masks += 1,
            (false, STATUS) => so_far.status += 1,
            (true, ITR) => so_far.throttle += 1,
            _ => {}
        }
        if self.unmasked && (access.write, access.offset) == (false, STATUS) {
            self.polled = self.so_far;
        }
        self.unmasked = (access.write, access.offset) == (true, IMS);
    }

    /// From the first doorbell to the end of the last poll.
    fn of_traffic(&self) -> Accesses {
        let (all, before) = (self.polled, self.before);
        Accesses {
            tails: all.tails - before.tails,
            cause: all.cause - before.cause,
            masks: all.masks - before.masks,
            status: all.status - before.status,
            throttle: all.throttle - before.throttle,
        }
    }
}

/// Those of all cards, by QEMU's name of each.
#[derive(Default)]
struct Cards(BTreeMap<String, Log>);

impl Cards {
    fn read(path: &Path) -> Result<Cards, Error> {
        let name = path.display().to_string();
        let mut cards = Cards::default();
        for line in BufReader::new(io(name.clone(), File::open(path))?).lines() {
            if let Some(access) = Access::read(&io(name.clone(), line)?) {
                cards.note(&access);
            }
        }
        Ok(cards)
    }

    fn note(&mut self, access: &Access<'_>) {
        let doorbell = access.write && access.offset == TDT && access.value != 0;
        // Until the first packet: probe, open, the link's interrupt.
        if doorbell && self.0.values().all(|log| log.doorbells == 0) {
            for log in self.0.values_mut() {
                log.before = log.so_far;
            }
        }
        let log = self.0.entry(access.region.to_owned()).or_default();
        log.doorbells += u64::from(doorbell);
        log.note(access);
    }

    /// The sender's, which is the card that rang, and the other's.
    fn of_traffic(&self) -> (Accesses, Accesses) {
        let side = |sends: bool| {
            let mut logs = self.0.values().filter(|log| (log.doorbells > 0) == sends);
            logs.next().map(Log::of_traffic).unwrap_or_default()
        };
        (side(true), side(false))
    }
}
