//! `twin xen status`: what runs inside Xen, and what it has counted.

use command_line::failure::Failure;
use command_line::options::Format;
use command_line::output;
use command_line::text::{count, number};
use serde::Serialize;
use xen_host::{Abort, Instance, Stages, State, Status, System, Vif};

use super::refused;

/// Version of the report as JSON. Further fields do not change it.
const VERSION: u32 = 1;

/// The status as JSON has it.
#[derive(Serialize)]
struct Report {
    version: u32,
    /// Whether dom0's modules are loaded: without them there is nothing else.
    modules: bool,
    #[serde(flatten)]
    status: Option<Status>,
}

/// Prints it.
pub(super) fn run(system: &System, format: Format) -> Result<(), Failure> {
    let failed = |refusal| refused("Xen", &refusal);
    xen_host::on_xen(system).map_err(failed)?;
    let status = Status::read(system).map_err(failed)?;
    match format {
        Format::Json => output::json(&Report {
            version: VERSION,
            modules: status.is_some(),
            status,
        }),
        Format::Text => output::text(text(status.as_ref()).as_bytes()),
    }
}

fn text(status: Option<&Status>) -> String {
    let Some(status) = status else {
        return "nothing is attached: dom0's modules are not loaded\n".to_owned();
    };
    let name = status.interface.as_deref();
    match (name, &status.xen) {
        (Some(name), Some(xen)) => attached(name, status, xen),
        (Some(name), None) => format!("{name}: attached, and Xen does not answer\n"),
        (None, xen) => format!(
            "nothing is attached; dom0's modules are loaded, {} in Xen\n",
            if xen.is_some() {
                "and the payload is"
            } else {
                "and nothing is"
            }
        ),
    }
}

fn merged(xen: &Instance) -> String {
    format!(
        "{} of TCP in {} of those received",
        count(xen.merged_segments, "segment"),
        number(xen.merged)
    )
}

/// Those that are on, in the order of a received packet's way.
fn stages(status: &Status, stages: &Stages) -> String {
    let limit = match stages.storm {
        0 => String::new(),
        most => format!(" ({} for groups a second)", count(most, "packet")),
    };
    let on = [
        (status.offload, "offload".to_owned()),
        (
            stages.aggregate > 1,
            format!("aggregate {}", stages.aggregate),
        ),
        (stages.bridge, format!("bridge{limit}")),
        (stages.notify > 1, format!("notify {}", stages.notify)),
        (stages.pace, "pace".to_owned()),
        (stages.dma, "dma".to_owned()),
    ];
    let names: Vec<String> = on
        .into_iter()
        .filter(|(on, _)| *on)
        .map(|(_, name)| name)
        .collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

fn bridge(xen: &Instance) -> String {
    format!(
        "{} from guest to guest, {} with another's source, {} for groups beyond the limit",
        count(xen.local, "packet"),
        number(xen.spoofed),
        number(xen.storm)
    )
}

fn card(xen: &Instance) -> String {
    format!(
        "{} checked, {} of dom0's held, {} to its registers refused",
        count(xen.descriptors, "descriptor"),
        count(xen.held_pages, "page"),
        count(xen.refused_writes, "write")
    )
}

fn attached(name: &str, status: &Status, xen: &Instance) -> String {
    let mut out = match (xen.state, &xen.last_abort) {
        (State::Aborted, Some(abort)) => format!(
            "{name}: ABORTED, nothing moves by the card: {}\n  `twin xen restart {name}` begins anew\n",
            aborted(abort)
        ),
        (State::Aborted, None) => format!("{name}: ABORTED, nothing moves by the card\n"),
        (State::Attached, _) => format!("{name}: driven inside Xen\n"),
        (State::Detached, _) => format!("{name}: being detached\n"),
    };
    let mut line = |what: &str, text: String| out.push_str(&format!("  {what:<11} {text}\n"));
    line("stages", stages(status, &xen.stages));
    line(
        "packets",
        format!(
            "{} sent, {} received ({} of them for no guest)",
            number(xen.transmitted),
            number(xen.received),
            number(xen.unwanted)
        ),
    );
    if xen.merged != 0 {
        line("merged", merged(xen));
    }
    if xen.stages.bridge {
        line("bridge", bridge(xen));
    }
    if xen.stages.dma {
        line("card", card(xen));
    }
    line(
        "interrupts",
        format!("{} of the card, in Xen", number(xen.interrupts)),
    );
    line(
        "entries",
        format!(
            "{} into driver code{}",
            number(xen.entries),
            by_processor(xen)
        ),
    );
    line(
        "calls out",
        format!(
            "{}; {}",
            number(xen.calls_out),
            count(xen.upcalls, "upcall")
        ),
    );
    line("aborts", aborts(xen));
    line(
        "dom0",
        format!(
            "{} of its own dropped, {} of guests for it",
            count(status.dropped_in_dom0, "packet"),
            count(status.notifications_in_dom0, "notification")
        ),
    );
    for vif in &xen.interfaces {
        line(&vif.name, guest(vif));
    }
    out
}

/// Only the processors that have run it.
fn by_processor(xen: &Instance) -> String {
    let each = xen.entries_by_processor.iter().enumerate();
    let each = each.filter(|(_, entries)| **entries != 0);
    let each: Vec<String> = each
        .map(|(processor, entries)| format!("{} on processor {processor}", number(*entries)))
        .collect();
    match each.is_empty() {
        true => String::new(),
        false => format!(": {}", each.join(", ")),
    }
}

fn aborts(xen: &Instance) -> String {
    match &xen.last_abort {
        Some(abort) if xen.state != State::Aborted => {
            format!("{}, the last: {}", number(xen.aborts), aborted(abort))
        }
        _ => number(xen.aborts),
    }
}

fn aborted(abort: &Abort) -> String {
    let Abort {
        what,
        reason,
        address,
        at,
        entered,
        ..
    } = abort;
    let import = abort
        .import
        .as_ref()
        .map_or(String::new(), |name| format!(" ({name})"));
    match &abort.card {
        Some(card) => format!("{what}: {card}, entered at {entered}"),
        None => format!(
            "{what} ({reason}){import} at {at}, dom0's address {address}, entered at {entered}"
        ),
    }
}

fn guest(vif: &Vif) -> String {
    format!(
        "{} ({} bytes) sent, {} ({} bytes) received; {} refused, {} without room",
        count(vif.sent, "packet"),
        number(vif.sent_bytes),
        number(vif.received),
        number(vif.received_bytes),
        number(vif.refused),
        number(vif.no_room)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(offload: bool) -> Status {
        Status {
            interface: None,
            dropped_in_dom0: 0,
            notifications_in_dom0: 0,
            offload,
            xen: None,
        }
    }

    #[test]
    fn the_stages_that_are_on_are_named() {
        assert_eq!(stages(&status(false), &Stages::default()), "none");
        let off = Stages {
            aggregate: 1,
            notify: 1,
            storm: 1000,
            ..Stages::default()
        };
        assert_eq!(stages(&status(false), &off), "none");
        let on = Stages {
            aggregate: 20,
            bridge: true,
            storm: 1000,
            notify: 16,
            pace: true,
            dma: true,
        };
        assert_eq!(
            stages(&status(true), &on),
            "offload, aggregate 20, bridge (1,000 packets for groups a second), notify 16, pace, dma"
        );
        let any = Stages { storm: 0, ..on };
        assert!(stages(&status(false), &any).contains(" bridge, "));
    }
}
