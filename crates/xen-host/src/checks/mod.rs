//! Whether a driver can run inside this Xen: every condition by itself, as data.
//!
//! A condition that cannot be known is [`Verdict::Unknown`]. There are two, the memory and CET,
//! which the platform judges again before Xen applies anything (`runtime/platform/xen/attach.c`,
//! `machine_fault`).

mod installed;
mod interface;
mod machine;
mod xen;

use serde::Serialize;

use crate::code::XenCode;
use crate::facts::{Facts, Interface};
use crate::refusal::Refusal;
use crate::system::System;

/// What was found of one condition.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The stable code.
    #[serde(serialize_with = "as_text")]
    pub code: XenCode,
    /// What it is about.
    pub what: &'static str,
    /// What is so.
    pub found: String,
    /// What has to be so.
    pub wanted: &'static str,
    /// The judgement.
    pub verdict: Verdict,
    /// What to do, unless it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// `attach` will know: Xen or dom0's module judges it before anything is driven.
    Unknown,
}

use Verdict::{Fails, Holds};

fn as_text<S: serde::Serializer>(code: &XenCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(code.as_str())
}

/// Whether none fails.
pub fn works(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.verdict != Fails)
}

/// All conditions. Where this is no dom0 of Xen, there is only that to be said.
pub fn checks(facts: &Facts) -> Vec<Check> {
    let first = [
        xen::hypervisor(facts.hypervisor.as_deref()),
        xen::dom0(facts),
    ];
    if let Some(none) = first.iter().find(|check| check.verdict == Fails) {
        return vec![none.clone()];
    }
    let rest = [
        xen::tools(facts),
        xen::build(facts),
        machine::processor(facts),
        machine::memory(facts),
        machine::cet(facts),
        installed::platform(facts),
        installed::modules(facts),
        installed::signatures(facts),
        installed::addresses(facts),
        installed::netback(facts),
        interface::driver(facts),
    ];
    let asked = facts.interface.iter();
    let asked = asked.flat_map(of_interface);
    let all = first.into_iter().chain(rest).chain(asked);
    all.chain([interface::free(facts)]).collect()
}

/// The conditions of the interface that was asked for.
fn of_interface(interface: &Interface) -> [Check; 2] {
    [
        interface::interface(interface),
        interface::own_traffic(interface),
    ]
}

/// Whether the system runs on Xen at all.
///
/// # Errors
/// It does not.
pub fn on_xen(system: &System) -> Result<(), Refusal> {
    let check = xen::hypervisor(system.word("sys/hypervisor/type").as_deref());
    match check.remedy {
        None => Ok(()),
        Some(remedy) => Err(Refusal::new(
            check.code,
            format!("{}; {remedy}", check.found),
        )),
    }
}

/// A row of the table: what it is about, what has to be so.
struct Row(XenCode, &'static str, &'static str);

impl Row {
    fn check(self, verdict: Verdict, found: impl Into<String>, remedy: &str) -> Check {
        let Row(code, what, wanted) = self;
        Check {
            code,
            what,
            found: found.into(),
            wanted,
            verdict,
            remedy: (verdict != Holds).then(|| remedy.to_owned()),
        }
    }

    fn judge(self, holds: bool, found: impl Into<String>, remedy: &str) -> Check {
        self.check(if holds { Holds } else { Fails }, found, remedy)
    }
}
