//! `/sys/kernel/twin/status`: what dom0's modules and the platform inside Xen count.
//!
//! The file has a line `NAME VALUE` for each (`runtime/dom0/main.c`), and one for each guest's
//! interface, `vifDOMAIN.HANDLE NAME VALUE NAME VALUE ...`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::code::XenCode;
use crate::refusal::Refusal;
use crate::system::{System, describe};

/// Where dom0's modules have their controls.
pub const CONTROLS: &str = "sys/kernel/twin";
const FILE: &str = "sys/kernel/twin/status";

/// What dom0's modules say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Status {
    /// The interface whose driver is in Xen.
    pub interface: Option<String>,
    /// dom0's own packets to it, which are dropped.
    pub dropped_in_dom0: u64,
    /// Notifications of guests that dom0 had, and not Xen.
    pub notifications_in_dom0: u64,
    /// Whether the hot routines do something of large packets that the card does not.
    pub offload: bool,
    /// The platform's part; absent while no payload is in Xen.
    pub xen: Option<Instance>,
}

/// The hypervisor instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// What it does.
    pub state: State,
    /// What it does with packets.
    pub stages: Stages,
    /// Packets that the driver sent for guests. This and all below is counted since the driver
    /// was attached, or restarted.
    pub transmitted: u64,
    /// Frames that it received, for guests or for nobody.
    pub received: u64,
    /// Those for nobody.
    pub unwanted: u64,
    /// Those that are several segments of TCP.
    pub merged: u64,
    /// The segments in them.
    pub merged_segments: u64,
    /// By the stage `bridge`: packets from one guest to one other.
    pub local: u64,
    /// The same: packets whose source was another's.
    pub spoofed: u64,
    /// The same: packets for groups beyond the limit.
    pub storm: u64,
    /// By the stage `dma`: descriptors that went on to the card.
    pub descriptors: u64,
    /// The same: pages of dom0's that the card may use all the time.
    pub held_pages: u64,
    /// The same: writes to the card's registers that were refused.
    pub refused_writes: u64,
    /// Interrupts of the card.
    pub interrupts: u64,
    /// Entries into driver code.
    pub entries: u64,
    /// Entries by processor.
    pub entries_by_processor: Vec<u64>,
    /// Calls out of driver code.
    pub calls_out: u64,
    /// Those that dom0 did for the driver, which waited for it.
    pub upcalls: u64,
    /// Aborts since the driver was attached, or restarted: 0 or 1, since none runs after one.
    pub aborts: u64,
    /// The last of them.
    pub last_abort: Option<Abort>,
    /// Guests' interfaces.
    pub interfaces: Vec<Vif>,
}

/// What is done with packets between driver and guests (`runtime/include/twin/xen.h`): parameters of
/// `twin_dom0.ko`, as the attachment has taken them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stages {
    /// Most segments of TCP that guests get as one packet; below 2 none are merged.
    pub aggregate: u64,
    /// Guests are found by a hash, their sources checked, groups limited.
    pub bridge: bool,
    /// Packets for groups that a source may send in a second then; 0: any.
    pub storm: u64,
    /// Received frames of which a guest is told at once; below 2 it is told of each.
    pub notify: u64,
    /// Guests that send much are looked at by time.
    pub pace: bool,
    /// What the driver gives to the card is checked.
    pub dma: bool,
}

/// The state of the hypervisor instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// There is no driver in it.
    Detached,
    /// The driver runs.
    Attached,
    /// The driver was aborted: nothing moves by the card until it is restarted or detached.
    /// Guests reach each other.
    Aborted,
}

/// Where and why driver code was stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Abort {
    /// The kind in words.
    pub what: String,
    /// Its detail: of a fault the processor's exception.
    pub reason: u64,
    /// dom0's address, or what the kind says, in hexadecimal digits.
    pub address: String,
    /// Function and offset of the instruction.
    pub at: String,
    /// The function that Xen had entered.
    pub entered: String,
    /// The routine, if calling it was the reason.
    pub import: Option<String>,
    /// What the driver wanted the card to do, if that was: ring, descriptor, and machine address.
    pub card: Option<String>,
}

/// A guest's interface. Counts are since it was connected.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Vif {
    /// `vifDOMAIN.HANDLE`, as `xl` calls it.
    pub name: String,
    /// Packets of the guest that were taken.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Frames that it was given.
    pub received: u64,
    /// Their bytes.
    pub received_bytes: u64,
    /// Requests that were malformed.
    pub refused: u64,
    /// Frames for which its ring had no room.
    pub no_room: u64,
}

/// The lines of the file.
struct Lines<'t>(BTreeMap<&'t str, &'t str>);

impl Status {
    /// Reads it; `None` if dom0's modules are not loaded.
    ///
    /// # Errors
    /// It cannot be read, or is of other modules than this release's.
    pub fn read(system: &System) -> Result<Option<Status>, Refusal> {
        if !system.has(CONTROLS) {
            return Ok(None);
        }
        let text = system.text(FILE).map_err(|error| {
            Refusal::new(
                XenCode::State,
                format!("/{FILE}: {}; run this as root", describe(&error)),
            )
        })?;
        Status::parse(&text).map(Some)
    }

    fn parse(text: &str) -> Result<Status, Refusal> {
        let pairs = text.lines().filter_map(|line| line.split_once(' '));
        let lines = Lines(pairs.collect());
        Ok(Status {
            interface: match lines.word("interface")? {
                "-" => None,
                name => Some(name.to_owned()),
            },
            dropped_in_dom0: lines.number("dropped-egress")?,
            offload: lines.number("offload")? != 0,
            notifications_in_dom0: lines.number("kicks-in-dom0")?,
            xen: match lines.word("payload")? {
                "0" => Some(Instance::parse(&lines)?),
                _ => None,
            },
        })
    }

    /// Whether this interface's driver runs in Xen.
    pub fn drives(&self, interface: &str) -> bool {
        let attached = |xen: &Instance| xen.state == State::Attached;
        self.interface.as_deref() == Some(interface) && self.xen.as_ref().is_some_and(attached)
    }
}

impl Instance {
    fn parse(lines: &Lines<'_>) -> Result<Instance, Refusal> {
        let aborts = lines.number("aborts")?;
        Ok(Instance {
            state: match lines.word("state")? {
                "0" => State::Detached,
                "1" => State::Attached,
                "2" => State::Aborted,
                other => return Err(foreign(&format!("state {other}"))),
            },
            stages: Stages::parse(lines.word("stages")?)?,
            transmitted: lines.number("transmitted")?,
            received: lines.number("received")?,
            unwanted: lines.number("unwanted")?,
            merged: lines.number("aggregates")?,
            merged_segments: lines.number("merged")?,
            local: lines.number("local")?,
            spoofed: lines.number("spoofed")?,
            storm: lines.number("storm")?,
            descriptors: lines.number("descriptors")?,
            held_pages: lines.number("held-pages")?,
            refused_writes: lines.number("refused-writes")?,
            interrupts: lines.number("interrupts")?,
            entries: lines.number("entries")?,
            entries_by_processor: lines.numbers("entries-by-processor")?,
            calls_out: lines.number("imports")?,
            upcalls: lines.number("upcalls")?,
            aborts,
            last_abort: match aborts {
                0 => None,
                _ => Some(Abort::parse(lines)?),
            },
            interfaces: lines.vifs()?,
        })
    }
}

impl Stages {
    /// `NAME VALUE` for each, in any order; names that are not known are another release's.
    fn parse(values: &str) -> Result<Stages, Refusal> {
        let strange = || foreign(&format!("stages {values}"));
        let mut words = values.split_whitespace();
        let mut stages = Stages::default();
        let mut missing: Vec<&str> =
            Vec::from(["aggregate", "bridge", "storm", "notify", "pace", "dma"]);
        while let Some(name) = words.next() {
            let value: u64 = words
                .next()
                .and_then(|word| word.parse().ok())
                .ok_or_else(strange)?;
            match name {
                "aggregate" => stages.aggregate = value,
                "bridge" => stages.bridge = value != 0,
                "storm" => stages.storm = value,
                "notify" => stages.notify = value,
                "pace" => stages.pace = value != 0,
                "dma" => stages.dma = value != 0,
                _ => return Err(strange()),
            }
            missing.retain(|one| *one != name);
        }
        match missing.is_empty() {
            true => Ok(stages),
            false => Err(strange()),
        }
    }
}

impl Abort {
    fn parse(lines: &Lines<'_>) -> Result<Abort, Refusal> {
        let text = |name| lines.word(name).map(str::to_owned);
        Ok(Abort {
            what: text("abort-what")?,
            reason: lines.number("abort-reason")?,
            address: text("abort-address")?,
            at: text("abort-at")?,
            entered: text("abort-entered")?,
            import: text("abort-import").ok().filter(|name| name != "-"),
            card: text("abort-card").ok().filter(|words| words != "-"),
        })
    }
}

impl<'t> Lines<'t> {
    fn word(&self, name: &str) -> Result<&'t str, Refusal> {
        let found = self.0.get(name).copied();
        found.ok_or_else(|| foreign(&format!("no line {name}")))
    }

    fn number(&self, name: &str) -> Result<u64, Refusal> {
        let word = self.word(name)?;
        word.parse().map_err(|_| foreign(&format!("{name} {word}")))
    }

    fn numbers(&self, name: &str) -> Result<Vec<u64>, Refusal> {
        let line = self.word(name)?;
        let numbers: Result<_, _> = line.split_whitespace().map(str::parse).collect();
        numbers.map_err(|_| foreign(&format!("{name} {line}")))
    }

    fn vifs(&self) -> Result<Vec<Vif>, Refusal> {
        let lines = self.0.iter().filter(|(name, _)| name.starts_with("vif"));
        lines
            .map(|(name, values)| Vif::parse(name, values))
            .collect()
    }
}

impl Vif {
    /// `kicks N notified N sent PACKETS BYTES received PACKETS BYTES refused N full N`
    fn parse(name: &str, values: &str) -> Result<Vif, Refusal> {
        let mut vif = Vif {
            name: name.to_owned(),
            ..Vif::default()
        };
        let mut words = values.split_whitespace();
        while let Some(word) = words.next() {
            let mut next = || words.next()?.parse::<u64>().ok();
            let parsed = match word {
                "sent" => next()
                    .zip(next())
                    .map(|pair| (vif.sent, vif.sent_bytes) = pair),
                "received" => next()
                    .zip(next())
                    .map(|pair| (vif.received, vif.received_bytes) = pair),
                "refused" => next().map(|n| vif.refused = n),
                "full" => next().map(|n| vif.no_room = n),
                _ => next().map(|_| ()),
            };
            parsed.ok_or_else(|| foreign(&format!("{name} {values}")))?;
        }
        Ok(vif)
    }
}

fn foreign(what: &str) -> Refusal {
    Refusal::new(
        XenCode::State,
        format!(
            "/{FILE} has {what}: the modules that are loaded, or the payload, are not of this \
             release; detach with the twin that attached, or boot anew"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const ATTACHED: &str = "interface eth0\ndropped-egress 3\nkicks-in-dom0 1\noffload 1\npayload 0\nstate 2\n\
        stages aggregate 20 bridge 1 storm 1000 notify 16 pace 0 dma 1\nlocal 8\nspoofed 9\nstorm 10\n\
        doorbells 11\ndescriptors 12\nwritten-back 13\nheld-pages 15\nrefused-writes 14\n\
        interrupts 12\nentries 40\nentries-by-processor 30 10 0 0\nimports 5\naborts 1\npolls 9\n\
        transmitted 100\nreceived 200\nunwanted 7\naggregates 5\nmerged 60\nupcalls 3\nabort-what a fault\nabort-kind 6\n\
        abort-reason 14\nabort-address 10\nabort-at e1000:e1000_intr+0x20/0x1c0 [twin]\n\
        abort-entered e1000:e1000_intr+0/0x1c0 [twin]\nabort-import -\nabort-card receive descriptor 5: no\n\
        vif1.0 kicks 4 notified 5 sent 100 6000 received 190 90000 refused 0 full 2\n";

    #[test]
    fn every_line_is_understood() {
        let status = Status::parse(ATTACHED).expect("a status");
        assert_eq!(status.interface.as_deref(), Some("eth0"));
        let xen = status.xen.expect("the platform's part");
        assert_eq!((xen.state, xen.transmitted), (State::Aborted, 100));
        assert_eq!(xen.entries_by_processor, [30, 10, 0, 0]);
        assert_eq!((xen.calls_out, xen.upcalls), (5, 3));
        assert_eq!((xen.local, xen.spoofed, xen.storm), (8, 9, 10));
        assert_eq!((xen.descriptors, xen.refused_writes), (12, 14));
        assert_eq!(xen.held_pages, 15);
        let stages = Stages {
            aggregate: 20,
            bridge: true,
            storm: 1000,
            notify: 16,
            pace: false,
            dma: true,
        };
        assert_eq!((xen.stages, status.offload), (stages, true));
        let abort = xen.last_abort.expect("an abort");
        assert_eq!(abort.at, "e1000:e1000_intr+0x20/0x1c0 [twin]");
        assert_eq!(
            (abort.reason, &*abort.address, abort.import),
            (14, "10", None)
        );
        assert_eq!(abort.card.as_deref(), Some("receive descriptor 5: no"));
        let vif = &xen.interfaces[0];
        assert_eq!(
            (&*vif.name, vif.sent, vif.sent_bytes),
            ("vif1.0", 100, 6000)
        );
        assert_eq!((vif.received_bytes, vif.no_room), (90000, 2));
    }

    #[test]
    fn without_a_payload_there_is_no_instance() {
        let text = "interface -\ndropped-egress 0\nkicks-in-dom0 0\noffload 0\npayload -38\n";
        let status = Status::parse(text).expect("a status");
        assert_eq!((status.interface, status.xen), (None, None));
    }

    #[test]
    fn a_status_of_other_modules_is_refused() {
        let older = ATTACHED.replace("entries-by-processor", "entries-by");
        let refusal = Status::parse(&older).expect_err("a line is missing");
        assert!(
            refusal.why.contains("no line entries-by-processor"),
            "{refusal}"
        );
        for broken in ["state 7", "state x"] {
            let text = ATTACHED.replace("state 2", broken);
            assert!(Status::parse(&text).is_err(), "{broken}");
        }
        for broken in [
            "storm 1000 notify",
            "storm 1000 other 1 notify 16",
            "notify 16",
        ] {
            let text = ATTACHED.replace("storm 1000 notify 16", broken);
            assert!(Status::parse(&text).is_err(), "{broken}");
        }
        let cut = ATTACHED.replace("full 2", "full");
        assert!(Status::parse(&cut).is_err());
    }
}
