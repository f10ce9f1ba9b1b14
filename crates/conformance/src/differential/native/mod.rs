//! The native worker: the unmodified module at dom0's addresses.
//!
//! The runtime is not used. Driver code runs on the stack block's stack; `enter.rs`
//! switches there and back. The processor's faults come as signals (`faults.rs`): a
//! fault ends the run, a WARN's `ud2` and port instructions are performed and skipped.

mod enter;
mod faults;

use std::sync::atomic::{AtomicPtr, Ordering};

use process_lab::address_space::{AddressSpace, PERCPU, RegionAccess, STACK, clear_stack};
use process_lab::error::Error;
use process_lab::mapping::{self, Backing};
use process_lab::segments;
use process_lab::shared::Shared;
use process_lab::signals;
use process_lab::stock::Stock;

use crate::differential::model::Recorder;
use crate::differential::trace::{Channel, Ending, RunOutcome};
use crate::differential::worker::Machine;
use enter::{enter, prepare};
use faults::on_signal;

pub use enter::import_entry;

/// The run that signal handlers and imports belong to.
static RUN: AtomicPtr<Run<'static>> = AtomicPtr::new(std::ptr::null_mut());

/// The run in progress.
struct Run<'w> {
    machine: &'w Native<'w>,
    recorder: Recorder<'w>,
    step: bool,
    coverage: (*mut u8, usize),
    fault: Option<RunOutcome>,
}

/// The native worker's machine.
pub struct Native<'f> {
    stock: &'f Stock<'f>,
}

impl<'f> Native<'f> {
    /// Maps dom0's memory at its addresses, and a driver stack. For a process
    /// that does nothing else.
    pub fn new(stock: &'f Stock<'f>, memory: &Shared) -> Result<Native<'f>, Error> {
        for region in stock.space.regions() {
            let protection = match region.access {
                RegionAccess::Code => libc::PROT_READ | libc::PROT_EXEC,
                RegionAccess::ReadOnly => libc::PROT_READ,
                RegionAccess::Writable => libc::PROT_READ | libc::PROT_WRITE,
            };
            let backing = Backing::File {
                fd: memory.fd(),
                offset: region.offset,
            };
            mapping::map(region.start, region.length, protection, backing)
                .map_err(Error::system("mapping dom0's memory"))?;
        }
        mapping::new_memory(STACK.0, STACK.1 - STACK.0)
            .map_err(Error::system("mapping dom0's memory"))?;
        segments::set_gs(PERCPU).map_err(Error::system(segments::SETTING_GS))?;
        signals::alternate_stack()?;
        for signal in signals::PROCESSOR {
            signals::handle(signal, on_signal)?;
        }
        signals::handle(libc::SIGPROF, on_signal)?;
        Ok(Native { stock })
    }
}

impl Machine for Native<'_> {
    fn run(&mut self, memory: &mut Shared, channel: &mut Channel) -> RunOutcome {
        let request = channel.request();
        let coverage = channel.coverage_memory();
        // SAFETY: `new` mapped it, and no driver code runs.
        unsafe { clear_stack() };
        let space: &AddressSpace = &self.stock.space;
        let recorder = Recorder::new(space, memory, channel, request);
        let mut run = Run {
            machine: self,
            recorder,
            step: request.step != 0,
            coverage,
            fault: None,
        };
        prepare(&request, run.step);
        RUN.store((&raw mut run).cast(), Ordering::SeqCst);
        signals::arm_timer(request.time_budget);
        // SAFETY: the context is prepared, dom0 is mapped, and faults end in
        // `unwind`; the function is the driver's, which reaches dom0's memory
        // and its stack as long as its pointers are right. Wild ones are random
        // 64-bit words, which practically never hit the host's mappings.
        let unwound = unsafe { enter() };
        signals::arm_timer(0);
        RUN.store(std::ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: the driver is left.
        let result = unsafe { enter::result() };
        let returned = RunOutcome {
            ending: Ending::Returned as u64,
            result,
            ..RunOutcome::default()
        };
        let unwound_by = run.fault.or(run.recorder.ended()).unwrap_or_default();
        let mut outcome = if unwound == 0 { returned } else { unwound_by };
        outcome.events = run.recorder.events();
        outcome
    }
}
