//! The driver, its interface, and what may be in the way.

use super::{Check, Row};
use crate::code::XenCode;
use crate::driver::{DRIVER, Likeness};
use crate::facts::{Facts, Interface};
use crate::tools::Loaded;

/// With larger ones the card receives in pieces (runtime/dom0/card.c).
const LARGEST_MTU: u32 = 1500;

pub fn driver(facts: &Facts) -> Check {
    let row = Row(
        XenCode::Driver,
        "driver",
        "the module e1000, and the very file it came from",
    );
    let again = "load the file that is installed: `modprobe -r e1000; modprobe e1000`, or start \
                 the machine anew";
    match (&facts.driver.file, facts.driver.loaded) {
        (_, false) => row.judge(
            false,
            format!("{DRIVER} is not loaded as a module"),
            "load it: `modprobe e1000`; cards of other drivers cannot be used",
        ),
        (None, true) => row.judge(
            false,
            format!("/lib/modules has no file of {DRIVER} for this kernel"),
            "install the package of the kernel that runs, or run depmod",
        ),
        (Some((file, Likeness::Same)), true) => row.judge(true, file.display().to_string(), ""),
        (Some((file, Likeness::Other)), true) => row.judge(
            false,
            format!(
                "{} is another build than the one that is loaded",
                file.display()
            ),
            again,
        ),
        (Some((file, Likeness::Unknown(why))), true) => {
            row.judge(false, format!("{}: {why}", file.display()), again)
        }
    }
}

pub fn interface(interface: &Interface) -> Check {
    let row = Row(
        XenCode::Interface,
        "interface",
        "one of e1000, up, with one queue, an MTU of at most 1500 bytes and an interrupt of its own",
    );
    let Interface { name, driver, .. } = interface;
    let (found, remedy) = match driver.as_deref() {
        _ if !interface.exists => (
            format!("there is no {name}"),
            "give one that `ip link` shows".to_owned(),
        ),
        Some(DRIVER) if !interface.up => (
            format!("{name} is down"),
            format!("set it up: `ip link set {name} up`"),
        ),
        Some(DRIVER) if interface.queues != 1 => (
            format!("{name} has {} transmit queues", interface.queues),
            "set it up with one".to_owned(),
        ),
        Some(DRIVER) if interface.mtu.is_some_and(|bytes| bytes > LARGEST_MTU) => (
            format!("{name} has an MTU of {}", interface.mtu.unwrap_or_default()),
            format!("`ip link set {name} mtu {LARGEST_MTU}`"),
        ),
        Some(DRIVER) if !interface.sharers.is_empty() => (
            format!(
                "{name} shares its interrupt with {}",
                interface.sharers.join(" and ")
            ),
            "put the card into another slot, or unload the other's driver".to_owned(),
        ),
        Some(DRIVER) => return row.judge(true, format!("{name}, of {DRIVER}"), ""),
        Some(other) => (
            format!("{name} is of the driver {other}"),
            "give an interface of e1000's".to_owned(),
        ),
        None => (
            format!("{name} is of no device"),
            "give an interface of e1000's".to_owned(),
        ),
    };
    row.judge(false, found, &remedy)
}

/// dom0 does without it: its packets are dropped while the driver is in Xen.
pub fn own_traffic(interface: &Interface) -> Check {
    let row = Row(
        XenCode::OwnTraffic,
        "own traffic",
        "an interface that dom0 does without",
    );
    let name = &interface.name;
    match (
        &interface.master,
        interface.default_route,
        &interface.above[..],
    ) {
        (Some(master), _, _) => row.judge(
            false,
            format!("{name} is a port of {master}"),
            &format!("take it out, if dom0 has another way: `ip link set {name} nomaster`"),
        ),
        (None, true, _) => row.judge(
            false,
            format!("a default route of dom0's leads through {name}"),
            &format!("take it away, if dom0 has another way: `ip route del default dev {name}`"),
        ),
        (None, false, [first, ..]) => row.judge(
            false,
            format!(
                "the packets of {} go through {name}",
                interface.above.join(" and ")
            ),
            &format!("take that away, if dom0 has another way: `ip link del {first}`"),
        ),
        (None, false, []) => row.judge(true, "no default route, no bridge, no VLAN", ""),
    }
}

/// Nothing of ours is in the way.
pub fn free(facts: &Facts) -> Check {
    let row = Row(
        XenCode::InUse,
        "state",
        "nothing attached, no livepatch in Xen",
    );
    let status = match &facts.status {
        Ok(status) => status,
        Err(refusal) => return row.judge(false, &refusal.why, "see above"),
    };
    let attached = status.as_ref().and_then(|status| status.interface.as_ref());
    let left = facts.payloads.iter().flatten();
    let left = left
        .clone()
        .any(|payload| payload.name == crate::livepatch::NAME);
    let mut applied = facts.payloads.iter().flatten();
    let other =
        applied.find(|payload| payload.is_applied() && payload.name != crate::livepatch::NAME);
    match (attached, left) {
        (Some(name), _) => row.judge(
            false,
            format!("{name} is driven inside Xen already"),
            &format!("`twin xen detach {name}` first; there is one at a time"),
        ),
        (None, true) => row.judge(
            false,
            "Xen has a payload `twin` from before, for other addresses of dom0",
            "`twin xen detach DEV` takes it out, with any DEV",
        ),
        (None, false) => match other {
            Some(Loaded { name, .. }) => row.judge(
                false,
                format!("Xen has the livepatch {name}, and twin's has to be its first"),
                &format!("`xen-livepatch revert {name}`, or do without twin"),
            ),
            None => row.judge(true, "nothing attached", ""),
        },
    }
}
