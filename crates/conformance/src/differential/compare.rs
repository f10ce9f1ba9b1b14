//! Compares two runs.
//!
//! Runs are equal if they make the same calls in the same order from the same places
//! with the same arguments; end alike, with the same result or the same address at the
//! same instruction; and leave the same memory, byte by byte.

use std::fmt;

use process_lab::imports::IMPORTS;
use process_lab::program::LinkedCode;
use process_lab::stock::Stock;

use crate::differential::symbolise::{self, OriginalPlace};
use crate::differential::trace::{Ending, Event, RunOutcome, number};
use crate::differential::worker::Worker;

/// The longest instruction (SDM volume 2, 2.3.11).
const LONGEST: u64 = 15;

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// One made a call that the other did not.
    Calls {
        /// Number of the call.
        index: u64,
        /// The native worker's.
        native: String,
        /// The rewritten worker's.
        twin: String,
    },
    /// They ended differently.
    End {
        /// The native worker's end.
        native: String,
        /// The rewritten worker's.
        twin: String,
    },
    /// A byte of dom0's memory differs.
    Memory {
        /// Its dom0 address.
        address: u64,
        /// The word there, native.
        native: u64,
        /// The word there, rewritten.
        twin: u64,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Calls {
                index,
                native,
                twin,
            } => {
                write!(f, "call {index}: native {native}, rewritten {twin}")
            }
            Difference::End { native, twin } => write!(f, "end: native {native}, rewritten {twin}"),
            Difference::Memory {
                address,
                native,
                twin,
            } => {
                write!(
                    f,
                    "memory at {address:#x}: native {native:#018x}, rewritten {twin:#018x}"
                )
            }
        }
    }
}

/// Both runs of one request.
pub struct Pair<'r> {
    pub stock: &'r Stock<'r>,
    /// The rewritten driver.
    pub program: &'r LinkedCode,
    /// The native worker, after its run.
    pub native: (&'r Worker, RunOutcome),
    /// The rewritten worker, after its run.
    pub twin: (&'r Worker, RunOutcome),
}

impl Pair<'_> {
    /// The first difference, if there is one.
    pub fn difference(&self) -> Option<Difference> {
        if self.is_out_of_reach() {
            return None;
        }
        self.calls()
            .or_else(|| self.ends())
            .or_else(|| self.memory())
    }

    /// Whether the native run ended at an address that a window has the low half of only:
    /// the rewritten one may go on from there, confined.
    fn is_out_of_reach(&self) -> bool {
        let native = self.native.1;
        let faulted = Ending::from_number(native.ending) == Ending::Fault;
        let size = self.program.variant.scheme.window_size();
        faulted && size.is_some_and(|size| native.address >= size)
    }

    fn calls(&self) -> Option<Difference> {
        let ((native, a), (twin, b)) = (self.native, self.twin);
        for index in 0..a.events.max(b.events) {
            let event = |worker: &Worker, outcome: &RunOutcome| {
                (index < outcome.events).then(|| worker.channel.event(index as usize))
            };
            let (x, y) = (event(native, &a), event(twin, &b));
            if !self.same_call(x, y) {
                let native = self.call_text(x, |address| symbolise::native(self.stock, address));
                let twin = self.call_text(y, |address| {
                    symbolise::rewritten(self.stock, self.program, address)
                });
                return Some(Difference::Calls {
                    index,
                    native,
                    twin,
                });
            }
        }
        None
    }

    fn same_call(&self, native: Option<Event>, twin: Option<Event>) -> bool {
        match (native, twin) {
            (Some(x), Some(y)) => {
                x.number == y.number
                    && x.count == y.count
                    && x.arguments == y.arguments
                    && self.same_place((x.site, 1), (y.site, 1))
            }
            (None, None) => true,
            _ => false,
        }
    }

    /// Places are compared as places in the original. A return address belongs to the
    /// instruction before it.
    fn same_place(&self, native: (u64, u64), twin: (u64, u64)) -> bool {
        let native_site = symbolise::native(self.stock, native.0.wrapping_sub(native.1));
        let twin_site = symbolise::rewritten(self.stock, self.program, twin.0.wrapping_sub(twin.1));
        match (native_site, twin_site) {
            (Some(x), Some(y)) if x.section == y.section => {
                let inside = x.offset.wrapping_sub(y.offset);
                if native.1 == 0 {
                    inside == 0
                } else {
                    inside < LONGEST
                }
            }
            (None, None) => true,
            _ => false,
        }
    }

    fn call_text(
        &self,
        event: Option<Event>,
        place: impl Fn(u64) -> Option<OriginalPlace>,
    ) -> String {
        let Some(event) = event else {
            return "none".to_owned();
        };
        let name = match event.number {
            number::WARN => "a WARN",
            number::PORT_IN => "port input",
            number::PORT_OUT => "port output",
            n => IMPORTS.get(n as usize).map_or("?", |import| import.name),
        };
        let arguments: Vec<String> = event.arguments[..event.count as usize]
            .iter()
            .map(|a| format!("{a:#x}"))
            .collect();
        let at = place(event.site.wrapping_sub(1))
            .map_or_else(|| "entry".to_owned(), |site| site.to_string());
        format!("{name}({}) at {at}", arguments.join(", "))
    }

    fn ends(&self) -> Option<Difference> {
        let (a, b) = (self.native.1, self.twin.1);
        let same = a.ending == b.ending
            && a.address == b.address
            && a.result == b.result
            && Ending::from_number(a.ending) != Ending::Broken
            && self.same_place((a.rip, a.after), (b.rip, b.after));
        if same {
            return None;
        }
        let native = end_text(&a, symbolise::native(self.stock, a.place()));
        let twin = symbolise::rewritten(self.stock, self.program, b.place());
        let twin = end_text(&b, twin);
        Some(Difference::End { native, twin })
    }

    fn memory(&self) -> Option<Difference> {
        let (native, twin) = (&self.native.0.memory, &self.twin.0.memory);
        let offset = native.first_difference(twin)?;
        let word = |memory: &process_lab::shared::Shared| {
            let mut bytes = [0; 8];
            memory.read(offset & !7, &mut bytes);
            u64::from_le_bytes(bytes)
        };
        let address = self.stock.space.address(offset).unwrap_or(0);
        Some(Difference::Memory {
            address,
            native: word(native),
            twin: word(twin),
        })
    }
}

/// An end in words.
pub fn end_text(outcome: &RunOutcome, site: Option<OriginalPlace>) -> String {
    let at = site.map_or_else(|| format!("{:#x}", outcome.rip), |site| site.to_string());
    let address = outcome.address;
    match Ending::from_number(outcome.ending) {
        Ending::Returned => format!("returned {:#x}", outcome.result),
        Ending::Stopped => {
            let name = IMPORTS
                .get(address as usize)
                .map_or("?", |import| import.name);
            format!("stopped in {name} at {at}")
        }
        Ending::Fault => format!("fault on {address:#x} at {at}"),
        Ending::BadCall => format!("call to {address:#x} at {at}"),
        Ending::Bug => format!("BUG at {at}"),
        Ending::Port => format!("port {address:#x} at {at}"),
        Ending::CallBudget => format!("too many calls at {at}"),
        Ending::TimeBudget => format!("too long at {at}"),
        Ending::BadArgument => format!("{address:#x} passed at {at}"),
        Ending::Broken => format!("broken ({}) at {at}, address {address:#x}", outcome.detail),
    }
}
