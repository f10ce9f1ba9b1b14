//! What a campaign over forms counted, and how it is printed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::compare::Difference;

/// The results of a campaign.
#[derive(Debug, Default)]
pub struct FormsReport {
    /// Functions executed.
    pub executed: usize,
    /// Functions refused where more is live, by code.
    pub refused: BTreeMap<String, usize>,
    /// Forms of which functions were executed.
    pub forms: BTreeSet<usize>,
    /// Forms of which none could be, by CPU feature or other reason.
    pub skipped: BTreeMap<String, BTreeSet<usize>>,
    /// Functions that are rewritten and executed, as far as the processor knows
    /// them, although the verifier refuses them.
    pub unverified: usize,
    /// States whose outcome was compared.
    pub states: u64,
    /// Of these, runs that ended with a fault in both.
    pub faults: u64,
    /// Of these, runs of string instructions.
    pub string_states: u64,
    /// Of these, runs whose copies a machine other than the processor did.
    pub replayed: u64,
    /// Functions of these that a variant with a window refuses.
    pub not_in_window: usize,
    /// States that are not compared, because their addresses are beyond a window.
    pub out_of_reach: u64,
    /// Differences found; not all are described.
    pub differences: u64,
    /// Some of them.
    pub described: Vec<Difference>,
    /// Cases spoiled by each known defect that was seen.
    pub known: BTreeMap<&'static str, usize>,
}

impl FormsReport {
    /// Adds what another part of the campaign found.
    pub(super) fn add(&mut self, other: FormsReport) {
        self.executed += other.executed;
        self.unverified += other.unverified;
        self.states += other.states;
        self.faults += other.faults;
        self.string_states += other.string_states;
        self.replayed += other.replayed;
        self.out_of_reach += other.out_of_reach;
        self.not_in_window += other.not_in_window;
        self.differences += other.differences;
        self.described.extend(other.described);
        for (name, n) in other.refused {
            *self.refused.entry(name).or_default() += n;
        }
        self.forms.extend(other.forms);
        for (name, forms) in other.skipped {
            self.skipped.entry(name).or_default().extend(forms);
        }
        for (name, n) in other.known {
            *self.known.entry(name).or_default() += n;
        }
    }
}

impl fmt::Display for FormsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let row = |f: &mut fmt::Formatter<'_>, name: &str, value: u64| {
            writeln!(f, "{name:<34}{value:>12}")
        };
        row(f, "forms executed", self.forms.len() as u64)?;
        let skipped: usize = self.skipped.values().map(BTreeSet::len).sum();
        row(f, "forms skipped", skipped as u64)?;
        for (name, forms) in &self.skipped {
            row(f, &format!("  {name}"), forms.len() as u64)?;
        }
        row(f, "functions executed", self.executed as u64)?;
        row(f, "  of these not for the verifier", self.unverified as u64)?;
        for (name, n) in &self.refused {
            row(f, &format!("  refused in context: {name}"), *n as u64)?;
        }
        row(f, "  refused for a window only", self.not_in_window as u64)?;
        row(f, "states compared", self.states)?;
        row(f, "  that fault in both", self.faults)?;
        row(f, "  of string instructions", self.string_states)?;
        row(f, "    copied by machines of our own", self.replayed)?;
        row(f, "states beyond a window", self.out_of_reach)?;
        for (name, n) in &self.known {
            row(f, &format!("  known: {name}"), *n as u64)?;
        }
        row(f, "differences", self.differences)
    }
}
