//! The rewritten worker, which plays the hypervisor. dom0's addresses are not
//! mapped; the runtime maps windows of dom0's memory at addresses of its choice.
//!
//! Imports come through the runtime to the same model as the native worker's.
//! An abort leaves the process intact; the next run has a new instance.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{siginfo_t, ucontext_t};
use process_lab::address_space::{AddressSpace, KERNEL, PERCPU, STACK, STACK_BLOCK, clear_stack};
use process_lab::code_memory;
use process_lab::error::Error;
use process_lab::imports::IMPORTS;
use process_lab::program::{
    ANYWHERE, LinkedCode, NO_VIEW, STLB, STUBS, Scheme, WINDOW, map_constants, stub,
};
use process_lab::runtime::{
    self, AbortReport, Config, Cpu, Frame, Host, Instance, Region, Testbed,
};
use process_lab::shared::Shared;
use process_lab::signals;
use process_lab::stock::{self, Stock};

use crate::differential::model::{Call, Recorder};
use crate::differential::ports::PORTS;
use crate::differential::trace::{Channel, Ending, RunOutcome};
use crate::differential::worker::Machine;

/// [`RunOutcome::detail`] if the program lacks the function.
const NO_FUNCTION: u64 = 1;
/// [`RunOutcome::detail`] for an unexpected status of `twin_enter` is this and the status.
const STATUS: u64 = 100;

/// The recorder of the run in progress.
static RUN: AtomicPtr<Recorder<'static>> = AtomicPtr::new(std::ptr::null_mut());
/// The CPU, for the timer's handler.
static CPU: AtomicPtr<Cpu> = AtomicPtr::new(std::ptr::null_mut());

/// The rewritten worker's machine.
pub struct Twin<'f> {
    stock: &'f Stock<'f>,
    program: &'f LinkedCode,
    fd: c_int,
    cpu: *mut Cpu,
    testbed: *mut Testbed,
    /// Whether it has a table; if not, it has a window.
    has_table: bool,
    /// The pages of the data stack.
    data_stack: Shared,
}

impl<'f> Twin<'f> {
    /// Loads the rewritten driver. For a process that does nothing else.
    pub fn new(
        stock: &'f Stock<'f>,
        program: &'f LinkedCode,
        memory: &Shared,
    ) -> Result<Twin<'f>, Error> {
        let failed = || Error::system("loading rewritten code");
        code_memory::load_program(program).map_err(failed())?;
        let stubs = LinkedCode::stubs();
        let end = STUBS + stubs.len() as u64;
        code_memory::load(STUBS, end, &[(STUBS, &stubs)]).map_err(failed())?;
        let has_table = Scheme::TABLES.contains(&program.variant.scheme);
        map_constants(program.variant.scheme, ANYWHERE).map_err(failed())?;
        let data_stack = Shared::new(STACK.1 - STACK.0).map_err(failed())?;
        signals::alternate_stack()?;
        // SAFETY: once in this process, on its only thread.
        let ready = unsafe {
            runtime::twin_testbed_faults_start() == 0 && runtime::twin_testbed_thread_start() == 0
        };
        if !ready {
            return Err(Error::last("catching faults"));
        }
        signals::handle(libc::SIGPROF, on_timer)?;
        // SAFETY: nothing is at the block's address: this is its only maker.
        let cpu = unsafe { runtime::twin_testbed_block_create(STACK_BLOCK) };
        if cpu.is_null() {
            return Err(Error::last("making a stack block"));
        }
        CPU.store(cpu, Ordering::SeqCst);
        Ok(Twin {
            stock,
            program,
            fd: memory.fd(),
            cpu,
            testbed: std::ptr::null_mut(),
            has_table,
            data_stack,
        })
    }

    fn renew(&mut self) {
        if !self.testbed.is_null() {
            // SAFETY: made by `create`, and nothing runs in it.
            unsafe { runtime::twin_testbed_destroy(self.testbed) };
        }
        self.testbed = self.create();
    }

    fn create(&self) -> *mut Testbed {
        let config = Config {
            scheme: self.program.variant.scheme as u32,
            windows: 512,
            regions: 16,
            port_count: 1,
            vector_free: 0,
            gs_is_set: 0,
            ports: &raw const PORTS,
            stlb: match self.has_table {
                true => STLB as *mut c_void,
                false => std::ptr::null_mut(),
            },
            window: WINDOW,
            stack_view: NO_VIEW,
            host: Host {
                data: std::ptr::null_mut(),
                resolve_upcall: Some(resolve_upcall),
                import: Some(import),
                port_in: Some(port_in),
                port_out: Some(port_out),
                warn: Some(warn),
            },
        };
        // SAFETY: the table is mapped here and the ports are static; the rest
        // of the configuration is copied.
        unsafe {
            let testbed = runtime::twin_testbed_create(&config);
            assert!(!testbed.is_null(), "no instance");
            let instance = runtime::twin_testbed_instance(testbed);
            for region in self.stock.space.regions() {
                let writable =
                    u32::from(region.access == process_lab::address_space::RegionAccess::Writable);
                let (dom0_start, length, file_offset) =
                    (region.start, region.length, region.offset);
                let region = Region {
                    dom0_start,
                    length,
                    file_offset,
                    fd: self.fd,
                    writable,
                };
                assert_eq!(
                    runtime::twin_testbed_add_region(testbed, &region),
                    runtime::OK,
                    "a region"
                );
            }
            if !self.has_table {
                let fd = self.data_stack.fd();
                let added = runtime::twin_testbed_add_stack(testbed, self.cpu, fd, 0);
                assert_eq!(added, runtime::OK, "a data stack");
            }
            let codemap = self.program.entries.codemap();
            let set = runtime::twin_instance_set_codemap(
                instance,
                codemap.as_ptr(),
                codemap.len() as u64,
            );
            assert_eq!(set, runtime::OK, "the codemap");
            let (start, end) = self.program.text();
            let stubs = (
                STUBS,
                STUBS + IMPORTS.len() as u64 * process_lab::program::STUB,
            );
            for (start, end) in [(start, end), stubs] {
                assert_eq!(
                    runtime::twin_instance_add_text(instance, start, end),
                    runtime::OK,
                    "text"
                );
            }
            testbed
        }
    }

    fn function(&self, dom0: u64) -> Option<u64> {
        let function = self.stock.functions.iter().find(|f| f.address == dom0)?;
        self.program.entries.function(&function.name)
    }
}

impl Machine for Twin<'_> {
    fn run(&mut self, memory: &mut Shared, channel: &mut Channel) -> RunOutcome {
        let request = channel.request();
        if self.testbed.is_null() || request.fresh != 0 {
            self.renew();
        }
        let broken = |detail| RunOutcome {
            ending: Ending::Broken as u64,
            detail,
            ..RunOutcome::default()
        };
        let Some(entry) = self.function(request.function) else {
            return broken(NO_FUNCTION);
        };
        // SAFETY: it is part of the stack block, which `new` made, and no driver
        // code runs.
        unsafe { clear_stack() };
        let length = self.data_stack.length();
        self.data_stack.write(0, &vec![0; length]);
        let space: &AddressSpace = &self.stock.space;
        // The stack is below 4 GiB, so its place in the window is its address.
        let data_stack = if self.has_table { 0 } else { WINDOW };
        let recorder = Recorder::new(space, memory, channel, request);
        let mut recorder = recorder.with_data_stack(data_stack);
        RUN.store((&raw mut recorder).cast(), Ordering::SeqCst);
        let mut result = 0;
        signals::arm_timer(request.time_budget);
        // SAFETY: the instance is alive, the block is ours, `entry` is a
        // function of verified code, and callbacks find the recorder.
        let (status, report) = unsafe {
            (*self.cpu).gs_base = PERCPU;
            (*self.cpu).fs_base = 0;
            let instance = runtime::twin_testbed_instance(self.testbed);
            let status =
                runtime::twin_enter(self.cpu, instance, entry, &request.arguments, &mut result);
            signals::arm_timer(0);
            (status, report(instance))
        };
        RUN.store(std::ptr::null_mut(), Ordering::SeqCst);
        let mut outcome = match (status, report) {
            (runtime::OK, _) => RunOutcome {
                ending: Ending::Returned as u64,
                result,
                ..RunOutcome::default()
            },
            (runtime::ABORTED, Some(report)) => aborted(&report, recorder.ended()),
            _ => broken(STATUS + status as u64),
        };
        outcome.events = recorder.events();
        if status != runtime::OK {
            self.renew();
        }
        outcome
    }
}

/// # Safety
/// `instance` is one.
unsafe fn report(instance: *mut Instance) -> Option<AbortReport> {
    // SAFETY: the caller's promise; the report stays as long as the instance.
    unsafe { runtime::twin_instance_report(instance).as_ref().copied() }
}

/// What a report says in the testbed's terms.
fn aborted(report: &AbortReport, ended: Option<RunOutcome>) -> RunOutcome {
    let outcome = |ending: Ending, after: u64| RunOutcome {
        ending: ending as u64,
        address: report.address,
        rip: report.rip,
        after,
        detail: u64::from(report.reason),
        ..RunOutcome::default()
    };
    match report.kind {
        _ if ended.is_some() => ended.unwrap_or_default(),
        runtime::ABORT_ACCESS => outcome(Ending::Fault, 1),
        runtime::ABORT_TIME => outcome(Ending::TimeBudget, 0),
        runtime::ABORT_FAULT | runtime::ABORT_STACK => outcome(Ending::Fault, 0),
        runtime::ABORT_CALL => outcome(Ending::BadCall, 1),
        runtime::ABORT_BUG => RunOutcome {
            address: 0,
            ..outcome(Ending::Bug, 1)
        },
        runtime::ABORT_PORT => outcome(Ending::Port, 1),
        kind => RunOutcome {
            detail: u64::from(kind),
            ..outcome(Ending::Broken, 1)
        },
    }
}

// ---- Callbacks ---------------------------------------------------------------

/// # Safety
/// A run is in progress; the result is used by one callback at a time.
unsafe fn recorder<'r>() -> &'r mut Recorder<'static> {
    // SAFETY: set by `run`, which is waiting for the driver.
    unsafe { &mut *RUN.load(Ordering::SeqCst) }
}

extern "C" fn import(_: *mut c_void, frame: *mut Frame) -> c_int {
    // SAFETY: the runtime gives a frame; a run is in progress.
    let (frame, recorder) = unsafe { (&mut *frame, recorder()) };
    let call = Call {
        number: frame.target as u32,
        registers: frame.registers,
        stack: frame.stack as u64 - recorder.data_stack(),
        site: frame.site,
    };
    match recorder.call(&call) {
        Some(answer) => {
            if answer.clobbers {
                frame.registers = answer.garbage;
                frame.rax = answer.result;
            }
            runtime::OK
        }
        None => runtime::ABORTED,
    }
}

extern "C" fn port_in(_: *mut c_void, port: u16, size: u32) -> u32 {
    // SAFETY: a run is in progress.
    unsafe { recorder() }.port_in(u64::from(port), u64::from(size))
}

extern "C" fn port_out(_: *mut c_void, port: u16, size: u32, value: u32) {
    // SAFETY: a run is in progress.
    unsafe { recorder() }.port_out(u64::from(port), u64::from(size), u64::from(value));
}

extern "C" fn warn(_: *mut c_void, site: u64) {
    // SAFETY: a run is in progress.
    unsafe { recorder() }.warn(site);
}

extern "C" fn resolve_upcall(_: *mut c_void, vm: u64) -> u64 {
    let offset = vm.wrapping_sub(KERNEL);
    let number = offset / stock::STUB;
    let is_stub = offset.is_multiple_of(stock::STUB) && number < IMPORTS.len() as u64;
    if is_stub { stub(number as u32) } else { 0 }
}

/// Stops a driver that runs too long, wherever it is.
extern "C" fn on_timer(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let cpu = CPU.load(Ordering::SeqCst);
    // SAFETY: the kernel gives a handler the interrupted context, the CPU is
    // this process's, and the runtime's function may be called at any time; where it
    // says so, control goes to its own code in the driver's place.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let rip = registers[libc::REG_RIP as usize] as u64;
        let rsp = registers[libc::REG_RSP as usize] as u64;
        if !RUN.load(Ordering::SeqCst).is_null() && runtime::twin_stop(cpu, rip, rsp) {
            registers[libc::REG_RIP as usize] = runtime::twin_abort_from_fault as *const () as i64;
            registers[libc::REG_RDI as usize] = cpu as i64;
            registers[libc::REG_EFL as usize] &= !signals::DIRTY_FLAGS;
        }
    }
}
