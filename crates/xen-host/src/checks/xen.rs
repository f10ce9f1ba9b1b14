//! The system: Xen, dom0, the tools, the build.

use super::{Check, Row};
use crate::code::XenCode;
use crate::facts::Facts;
use crate::system::ProgramError;

pub fn hypervisor(kind: Option<&str>) -> Check {
    let row = Row(XenCode::NoXen, "hypervisor", "Xen");
    match kind {
        Some("xen") => row.judge(true, "Xen", ""),
        other => row.judge(
            false,
            match other {
                Some(other) => format!("this system runs on {other}, not on Xen"),
                None => "this system runs on no hypervisor that it knows of".to_owned(),
            },
            "install xen-system-amd64, and choose Xen when the machine starts",
        ),
    }
}

pub fn dom0(facts: &Facts) -> Check {
    let row = Row(XenCode::NoDom0, "domain", "dom0, paravirtual");
    let kind = facts
        .guest_type
        .as_deref()
        .unwrap_or("of a kind that it does not show");
    match (facts.controls, kind) {
        (true, "PV") => row.judge(true, "dom0, paravirtual", ""),
        (true, other) => row.judge(
            false,
            format!("dom0 is {other}, not PV"),
            "start Xen without dom0=pvh",
        ),
        (false, _) => row.judge(
            false,
            "this is a guest, not dom0",
            "run this in dom0, as root, with xenfs mounted on /proc/xen",
        ),
    }
}

pub fn tools(facts: &Facts) -> Check {
    let row = Row(
        XenCode::Tools,
        "tools",
        "xl and xen-livepatch, in a Xen with livepatching",
    );
    let failed = |name: &str, error: &ProgramError| format!("{name}: {}", error.line());
    match (&facts.xl, &facts.payloads) {
        (Ok(_), Ok(_)) => row.judge(true, "xl and xen-livepatch answer", ""),
        (Err(error), _) => row.judge(
            false,
            failed("xl", error),
            "install xen-utils of the Xen that runs, and run this as root",
        ),
        (_, Err(error)) => row.judge(
            false,
            failed("xen-livepatch", error),
            "install xen-utils of the Xen that runs; its hypervisor must have livepatching, as \
             Debian's has",
        ),
    }
}

pub fn build(facts: &Facts) -> Check {
    let row = Row(XenCode::Build, "build", "a table of the hypervisor's build");
    let id = facts.build_id.as_deref().unwrap_or_default();
    match &facts.table {
        Ok(version) => row.judge(true, format!("Xen {version}, build-id {id}"), ""),
        Err(why) => row.judge(
            false,
            why,
            "make a table of the hypervisor that runs, with scripts/xen-install.sh; after an \
             update of Xen start the machine anew first",
        ),
    }
}
