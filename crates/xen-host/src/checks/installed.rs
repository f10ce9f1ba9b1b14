//! dom0: what is installed for twin, and what its kernel allows.

use super::{Check, Row};
use crate::code::XenCode;
use crate::facts::Facts;

pub fn platform(facts: &Facts) -> Check {
    let row = Row(
        XenCode::Platform,
        "platform",
        "the runtime's object for Xen",
    );
    let remedy = "install it with scripts/xen-install.sh, or name its directory with --kit";
    match &facts.platform {
        Ok(()) => row.judge(true, "installed", ""),
        Err(why) => row.judge(false, why, remedy),
    }
}

pub fn modules(facts: &Facts) -> Check {
    let row = Row(
        XenCode::Modules,
        "modules",
        "twin_dom0 and twin_hot for the kernel that runs",
    );
    let release = facts.release.as_deref().unwrap_or("an unknown kernel");
    let remedy = "run scripts/xen-install.sh under this kernel, with its headers installed";
    match &facts.modules {
        Ok(()) if !facts.foreign.is_empty() => {
            let names = facts.foreign.join(" and ");
            row.judge(
                false,
                format!("{names} loaded from another build than the one installed for {release}"),
                "unload what is loaded: `rmmod twin_hot; rmmod twin_dom0`",
            )
        }
        Ok(()) => row.judge(true, format!("installed for {release}"), ""),
        Err(others) if others.is_empty() => row.judge(
            false,
            format!("none are installed, for {release} or another"),
            remedy,
        ),
        Err(others) => {
            let others = others.join(", ");
            row.judge(
                false,
                format!("none for {release}, but for {others}"),
                remedy,
            )
        }
    }
}

pub fn signatures(facts: &Facts) -> Check {
    let row = Row(
        XenCode::Signatures,
        "signatures",
        "a kernel that loads unsigned modules",
    );
    match facts.signatures {
        None => row.judge(true, "the kernel does not demand them", ""),
        Some(by) => row.judge(
            false,
            format!("the kernel loads signed modules only ({by})"),
            "turn secure boot off, or start the kernel without module.sig_enforce",
        ),
    }
}

pub fn addresses(facts: &Facts) -> Check {
    let row = Row(
        XenCode::Addresses,
        "addresses",
        "the kernel's, in /proc/kallsyms",
    );
    match facts.addresses {
        true => row.judge(true, "shown", ""),
        false => row.judge(
            false,
            "/proc/kallsyms shows zeroes, or nothing",
            "run this as root, and set kernel.kptr_restrict to 0 or 1",
        ),
    }
}

pub fn netback(facts: &Facts) -> Check {
    let row = Row(XenCode::Netback, "netback", "xen-netback not in the way");
    match facts.netback {
        false => row.judge(true, "not in the way", ""),
        true => row.judge(
            false,
            "xen-netback is loaded, and guests' interfaces are its",
            "shut guests with interfaces down, then `modprobe -r xen-netback`",
        ),
    }
}
