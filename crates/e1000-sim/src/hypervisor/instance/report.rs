//! How a call of the driver ended that did not return, as text.

use std::ffi::c_int;
use std::fmt;

use process_lab::runtime::{self, DmaReport};
use serde::Serialize;

use crate::packets::guard;

/// How a call of the driver ended, if not by returning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It was aborted just now.
    Aborted(DriverAbort),
    /// It had been aborted before.
    Dead,
    /// The runtime refused to enter: its status.
    NotEntered(c_int),
    /// The driver is not confined: a descriptor was refused, or it could not be entered.
    Unconfined(String),
}

impl fmt::Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Aborted(report) => report.fmt(f),
            Stopped::Dead => f.write_str("the driver instance had been aborted before"),
            Stopped::NotEntered(status) => write!(f, "the runtime refused: status {status}"),
            Stopped::Unconfined(why) => write!(f, "the driver, not confined: {why}"),
        }
    }
}

/// A lock that an aborted invocation had taken, or was waiting for, and not freed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lock {
    /// What it is, if hot routines or the network core have it for one purpose.
    pub name: Option<&'static str>,
    /// Its dom0 address.
    pub address: u64,
    /// The code that took it.
    pub by: String,
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Lock { name, address, by } = self;
        let name = name.map_or(String::new(), |name| format!("{name} "));
        write!(f, "{name}{address:#x} taken by {by}")
    }
}

/// Why the driver was aborted, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DriverAbort {
    /// The runtime's kind.
    pub kind: u32,
    /// The runtime's reason.
    pub reason: u32,
    /// dom0 address, call target, port or stub.
    pub address: u64,
    /// In which function and object, and at which offset.
    pub place: String,
    /// Locks that it had taken: those that the driver took, then the hot routines'.
    pub locks: Vec<Lock>,
    /// Locks of the driver's beyond these, of which the runtime has the number only.
    pub more_locks: u32,
    /// The message of an import that failed.
    pub import: Option<String>,
}

impl DriverAbort {
    /// Whether it took too long.
    pub fn is_time_limit(&self) -> bool {
        self.kind == runtime::ABORT_TIME
    }

    /// The ring, descriptor and address, if that is why.
    pub fn dma(&self) -> Option<DmaReport> {
        let refused = self.kind == runtime::ABORT_DMA;
        refused.then(|| DmaReport::from_abort(self.reason, self.address))
    }

    /// The kind in words.
    pub fn what(&self) -> &'static str {
        match self.kind {
            runtime::ABORT_TIME => "time limit exceeded",
            runtime::ABORT_ACCESS => "access to memory that is not dom0's",
            runtime::ABORT_CALL => "indirect call to no entry point",
            runtime::ABORT_BUG => "the driver's own BUG",
            runtime::ABORT_PORT => "port outside the policy",
            runtime::ABORT_STACK => "driver stack overflow",
            runtime::ABORT_FAULT => "processor fault",
            runtime::ABORT_RESOURCES => "no window or node left",
            runtime::ABORT_IMPORT => "an imported routine failed",
            runtime::ABORT_RETURN => "return address overwritten",
            runtime::ABORT_DMA => "DMA refused",
            runtime::ABORT_DEAD => "another invocation was aborted",
            _ => "unknown",
        }
    }
}

impl fmt::Display for DriverAbort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}: ", self.what(), self.place)?;
        match self.dma() {
            Some(dma) => f.write_str(&guard::describe(&dma))?,
            None => write!(f, "{:#x}", self.address)?,
        }
        if let Some(said) = &self.import {
            write!(f, ": {said}")?;
        }
        for (place, lock) in self.locks.iter().enumerate() {
            let before = if place == 0 { "; locks held: " } else { ", " };
            write!(f, "{before}{lock}")?;
        }
        match self.more_locks {
            0 => Ok(()),
            more => write!(f, ", and {more} more"),
        }
    }
}
