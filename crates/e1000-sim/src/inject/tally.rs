//! Outcomes of faults, by kind. They are in shared memory: if the hypervisor dies, its
//! supervisor still has them.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use super::fault::{FaultEnding, FaultKind};
use super::recovery::Mended;
use crate::transport::mailbox::Zeroed;

const KINDS: usize = FaultKind::ALL.len();

twin_abi::listed! {
    /// The counts of each kind.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(usize)]
    pub enum Column {
        /// Faults that struck.
        Injected => "injected",
        /// The invocation was aborted.
        Aborted => "aborted",
        /// Card, stack protector or packet loop noticed.
        Detected => "detected",
        /// The guest that was served noticed: packets lost or damaged.
        Noticed => "by guest",
        /// Nothing happened.
        Harmless => "harmless",
        /// Aborted because it took too long.
        TimeLimit => "time limit",
        /// dom0 had to be restarted.
        Restarts => "new dom0",
        /// Packets went both ways again.
        Served => "served again",
    }
}

const COLUMNS: usize = Column::ALL.len();

/// The counts. All zeroes: nothing yet.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Tally {
    counts: [[AtomicU64; COLUMNS]; KINDS],
    /// Grows with every step: if it stays, the run hangs.
    pub pulse: AtomicU64,
    /// Events that must never happen.
    pub violations: AtomicU64,
    /// Set when all was done.
    pub finished: AtomicU64,
}

// SAFETY: atomic words.
unsafe impl Zeroed for Tally {}

impl Tally {
    fn add(&self, kind: FaultKind, column: Column) {
        self.counts[kind as usize][column as usize].fetch_add(1, Ordering::Relaxed);
        self.beat();
    }

    /// Something was done.
    pub fn beat(&self) {
        self.pulse.fetch_add(1, Ordering::Relaxed);
    }

    /// How a fault ended.
    pub fn ended(&self, kind: FaultKind, ending: &FaultEnding) {
        self.add(kind, Column::Injected);
        let column = match ending {
            FaultEnding::Aborted(_) => Column::Aborted,
            FaultEnding::TimeLimit(_) => Column::TimeLimit,
            FaultEnding::Detected(_) => Column::Detected,
            FaultEnding::Noticed(_) => Column::Noticed,
            FaultEnding::Harmless => Column::Harmless,
        };
        self.add(kind, column);
    }

    /// It serves again.
    pub fn mended(&self, kind: FaultKind, how: Mended) {
        if how == Mended::Restarted {
            self.add(kind, Column::Restarts);
        }
        self.add(kind, Column::Served);
    }

    /// Something happened that never must.
    pub fn violation(&self) {
        self.violations.fetch_add(1, Ordering::SeqCst);
    }

    /// A count of a kind.
    pub fn count(&self, kind: FaultKind, column: Column) -> u64 {
        self.counts[kind as usize][column as usize].load(Ordering::Relaxed)
    }

    /// A count of all kinds.
    pub fn total(&self, column: Column) -> u64 {
        FaultKind::ALL
            .iter()
            .map(|kind| self.count(*kind, column))
            .sum()
    }

    /// As a table.
    pub fn table(&self) -> String {
        let mut text = format!("{:34}", "fault");
        for column in Column::ALL {
            let _ = write!(text, "{:>13}", column.as_str());
        }
        let mut row = |name: &str, count: &dyn Fn(Column) -> u64| {
            let _ = write!(text, "\n{name:34}");
            for column in Column::ALL {
                let _ = write!(text, "{:>13}", count(column));
            }
        };
        for kind in FaultKind::ALL {
            row(kind.as_str(), &|column| self.count(kind, column));
        }
        row("all", &|column| self.total(column));
        text
    }
}
