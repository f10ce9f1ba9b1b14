//! The hypervisor instance, loaded and running: rewritten code, its runtime, its
//! stubs, and the report when it was aborted.
//!
//! In its process nothing of dom0 is mapped at dom0's addresses: the driver reaches
//! only memory to which the translation table leads, or that is in the window.

mod imports;
mod report;

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use process_lab::program::{STACK_VIEW, STLB, STUBS, Scheme, WINDOW, map_constants};
use process_lab::runtime::{
    self, AbortReport, Config, Cpu, Frame, Host, PortRange, Region, Testbed,
};
use process_lab::{code_memory, mapping, segments};

use super::locks;
use super::payload::{Payload, STUB, StubDestination};
use super::time_limit::TimeLimit;
use super::unconfined::Unconfined;
use crate::error::LiveError;
use crate::image::{KernelPlan, Module};
use crate::memory::DOM0_ADDRESSES;
use crate::memory::view::View;
use crate::packets::guard::Guard;
use crate::replay::player;
use imports::{CALLBACKS, Callbacks, callbacks, import, resolve_upcall, warn};

pub use imports::Upcalls;
pub(crate) use imports::stack_in_use;
pub use report::{DriverAbort, Lock, Stopped};

/// A routine of the hypervisor that driver code calls by a stub. Runs on the
/// host's stack, inside.
pub type Service = extern "C" fn(*mut Cpu, *mut Frame) -> c_int;

/// The inputs of an instance.
pub struct Loading<'a> {
    /// The rewritten code, at its addresses.
    pub payload: &'a Payload,
    /// The addresses of the original in dom0, for reports.
    pub plan: &'a KernelPlan<'a>,
    /// dom0's memory and the card's registers.
    pub regions: Vec<Region>,
    /// The ports that the driver may use.
    pub ports: PortRange,
    /// The driver stack's block.
    pub block: u64,
    /// The pages of the data stack, if the scheme has one.
    pub data_stack: DataStack,
    /// `%gs` base of this CPU in dom0.
    pub gs_base: u64,
    /// dom0's memory, for reports.
    pub memory: View<'a>,
    /// The check of the card's rings around each entry.
    pub guard: Rc<Guard<'a>>,
    /// The hypervisor's own services, by number.
    pub services: Vec<Service>,
    /// The server of upcalls.
    pub upcalls: Box<dyn Upcalls + 'a>,
}

/// Pages of a file.
#[derive(Clone, Copy, Debug)]
pub struct DataStack {
    /// Open as long as the instance.
    pub fd: i32,
    /// Where they begin in it.
    pub offset: u64,
}

/// The running instance.
pub struct Instance<'a> {
    payload: &'a Payload,
    plan: &'a KernelPlan<'a>,
    limit: TimeLimit,
    regions: Vec<Region>,
    data_stack: DataStack,
    memory: View<'a>,
    guard: Rc<Guard<'a>>,
    ports: Box<PortRange>,
    cpu: *mut Cpu,
    testbed: *mut Testbed,
    callbacks: *mut Callbacks<'a>,
    /// Entered instead of the rewritten code, as long as it is there.
    unconfined: Option<Rc<Unconfined<'a>>>,
}

impl<'a> Instance<'a> {
    /// Loads it. Once in a process.
    /// # Panics
    /// If there is one already.
    pub fn load(loading: Loading<'a>) -> Result<Instance<'a>, LiveError> {
        let payload = loading.payload;
        code_memory::load_program(&payload.hot).map_err(unloaded)?;
        code_memory::load_program(&payload.driver).map_err(unloaded)?;
        load_stubs(payload, &loading.services)?;
        map_constants(payload.driver.variant.scheme, DOM0_ADDRESSES).map_err(unloaded)?;
        // SAFETY: once in this process, before it has other threads.
        let ready = unsafe {
            runtime::twin_testbed_faults_start() == 0 && runtime::twin_testbed_thread_start() == 0
        };
        if !ready {
            return Err(LiveError::last("catching faults"));
        }
        // SAFETY: nothing is at the block's address: this is its only maker.
        let cpu = unsafe { runtime::twin_testbed_block_create(loading.block) };
        if cpu.is_null() {
            return Err(LiveError::last("making a stack block"));
        }
        // SAFETY: the block is ours and nothing runs on it.
        unsafe {
            (*cpu).gs_base = loading.gs_base;
            (*cpu).fs_base = 0;
        }
        let callbacks = Box::into_raw(Box::new(callbacks(payload, loading.upcalls)));
        let before = CALLBACKS.swap(callbacks.cast(), Ordering::SeqCst);
        assert!(before.is_null(), "one instance a process");
        let mut instance = Instance {
            payload,
            plan: loading.plan,
            limit: TimeLimit::start(cpu)?,
            regions: loading.regions,
            data_stack: loading.data_stack,
            memory: loading.memory,
            guard: loading.guard,
            ports: Box::new(loading.ports),
            cpu,
            testbed: std::ptr::null_mut(),
            callbacks,
            unconfined: None,
        };
        instance.testbed = instance.create()?;
        instance.take_turn()?;
        Ok(instance)
    }

    /// Limits the processor time of an invocation; initially
    /// [`super::time_limit::DEFAULT`].
    pub fn limit_time(&self, limit: std::time::Duration) -> Result<(), LiveError> {
        self.limit.set(limit)
    }

    /// Starts anew after an abort: empty tables, nothing mapped.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn renew(&mut self) {
        let before = std::mem::replace(&mut self.testbed, std::ptr::null_mut());
        // SAFETY: made by `create`, and nothing runs in it.
        unsafe { runtime::twin_testbed_destroy(before) };
        self.testbed = self.create().expect("what could be made before");
    }

    fn create(&self) -> Result<*mut Testbed, LiveError> {
        let window = has_window(self.payload);
        let config = Config {
            scheme: self.payload.driver.variant.scheme as u32,
            windows: 0,
            regions: 64,
            port_count: 1,
            vector_free: self.payload.vector_free.into(),
            gs_is_set: window.into(),
            ports: &raw const *self.ports,
            stlb: if window {
                std::ptr::null_mut()
            } else {
                STLB as *mut c_void
            },
            window: if window { WINDOW } else { 0 },
            stack_view: if window { STACK_VIEW } else { 0 },
            host: Host {
                data: std::ptr::null_mut(),
                resolve_upcall: Some(resolve_upcall),
                import: Some(import),
                port_in: None,
                port_out: None,
                warn: Some(warn),
            },
        };
        // SAFETY: the table is mapped, ports and codemap live as long as `self`;
        // the rest of the configuration is copied.
        unsafe {
            let testbed = runtime::twin_testbed_create(&config);
            if testbed.is_null() {
                return Err(LiveError::last("making an instance"));
            }
            if let Err(error) = self.add_memory(testbed) {
                runtime::twin_testbed_destroy(testbed);
                return Err(error);
            }
            let instance = runtime::twin_testbed_instance(testbed);
            let codemap = &self.payload.codemap;
            let count = codemap.len() as u64;
            let set = runtime::twin_instance_set_codemap(instance, codemap.as_ptr(), count);
            assert_eq!(set, runtime::OK, "the codemap ascends");
            runtime::twin_instance_set_dma(instance, self.guard.raw());
            for (start, end) in texts(self.payload) {
                let added = runtime::twin_instance_add_text(instance, start, end);
                assert_eq!(added, runtime::OK, "text {start:#x}");
            }
            Ok(testbed)
        }
    }

    /// dom0's memory, and with a window the data stack. The runtime finds what was added
    /// first soonest: RAM with every packet, the stack at every entry.
    fn add_memory(&self, testbed: *mut Testbed) -> Result<(), LiveError> {
        let mut regions: Vec<_> = self.regions.iter().collect();
        regions.sort_by_key(|region| std::cmp::Reverse(region.length));
        let (most, others) = regions.split_at(regions.len().min(1));
        add_regions(testbed, most)?;
        if has_window(self.payload) {
            let DataStack { fd, offset } = self.data_stack;
            // SAFETY: the testbed is alive; the block is ours.
            let added = unsafe { runtime::twin_testbed_add_stack(testbed, self.cpu, fd, offset) };
            let view = (self.cpu as u64 & !(twin_abi::stack::BLOCK - 1)) + STACK_VIEW;
            done(testbed, added, view..view + twin_abi::stack::BLOCK)?;
        }
        add_regions(testbed, others)
    }

    /// From here on functions are dom0's, at dom0's addresses, and not confined; or again the
    /// rewritten ones.
    ///
    /// # Errors
    /// A system call's.
    pub fn set_unconfined(
        &mut self,
        unconfined: Option<Rc<Unconfined<'a>>>,
    ) -> Result<(), LiveError> {
        self.unconfined = unconfined;
        match &self.unconfined {
            Some(unconfined) => unconfined.take_turn(),
            None => self.take_turn(),
        }
    }

    /// Makes `%gs` the rewritten code's, for this thread, which is the only one that enters it. Nothing else in
    /// this process uses `%gs`: so it stays, instead of being changed with every entry and upcall.
    fn take_turn(&self) -> Result<(), LiveError> {
        if !has_window(self.payload) {
            return Ok(());
        }
        segments::set_gs(WINDOW).map_err(LiveError::system(segments::SETTING_GS))
    }

    /// Runs a function of the driver or the hot routines, by hypervisor address.
    ///
    /// # Errors
    /// It was aborted, or could not be entered.
    pub fn enter(&mut self, function: u64, arguments: &[u64; 6]) -> Result<u64, Stopped> {
        if let Some(unconfined) = &self.unconfined {
            return unconfined.enter(function, arguments);
        }
        let mut result = 0;
        // SAFETY: the instance is alive, the block is this thread's, and
        // `function` is one of verified code: only the payload gives addresses.
        let status = unsafe {
            let instance = runtime::twin_testbed_instance(self.testbed);
            self.limit
                .watch(|| runtime::twin_enter(self.cpu, instance, function, arguments, &mut result))
        };
        match status {
            runtime::OK => Ok(result),
            runtime::ABORTED => Err(Stopped::Aborted(self.report())),
            runtime::DEAD => Err(Stopped::Dead),
            status => Err(Stopped::NotEntered(status)),
        }
    }

    /// As [`Instance::enter`], by name.
    ///
    /// # Errors
    /// The same.
    ///
    /// # Panics
    /// If there is no such function.
    pub fn call(&mut self, name: &str, arguments: &[u64]) -> Result<u64, Stopped> {
        let function = self.payload.function(name);
        let function = function.unwrap_or_else(|| panic!("the payload has no {name}"));
        let mut six = [0; 6];
        six[..arguments.len()].copy_from_slice(arguments);
        self.enter(function, &six)
    }

    /// Hypervisor address of a function, by name.
    pub fn function(&self, name: &str) -> Option<u64> {
        self.payload.function(name)
    }

    /// Hypervisor address for a dom0 code address, as an indirect call finds it.
    pub fn lookup(&self, vm: u64) -> Option<u64> {
        // SAFETY: the instance is alive.
        let hyp =
            unsafe { runtime::twin_call_lookup(runtime::twin_testbed_instance(self.testbed), vm) };
        (hyp != 0).then_some(hyp)
    }

    /// The hypervisor address of the memory at a dom0 address.
    pub fn translate(&self, dom0: u64) -> Option<u64> {
        let mut mapped = 0;
        let instance = self.raw();
        // SAFETY: the instance is alive, and held meanwhile.
        let refusal = unsafe {
            runtime::twin_instance_hold(instance);
            let refusal = runtime::twin_translate(instance, dom0, &mut mapped);
            runtime::twin_instance_release(instance);
            refusal
        };
        (refusal == runtime::OK).then_some(mapped)
    }

    fn report(&self) -> DriverAbort {
        // SAFETY: the context is this thread's; its report was just written.
        let report =
            unsafe { runtime::twin_instance_report(runtime::twin_testbed_instance(self.testbed)) };
        // SAFETY: null, or good as long as the instance.
        let report = unsafe { report.as_ref() }.copied().unwrap_or_default();
        // SAFETY: only this thread runs callbacks, and none runs now.
        let failed = unsafe { (*self.callbacks).failed.take() };
        self.describe(&report, failed)
    }

    fn describe(&self, report: &AbortReport, import: Option<String>) -> DriverAbort {
        // A fault and a time limit name their instruction, a refused descriptor the
        // function entered, any other abort the instruction after a call.
        let exact = matches!(
            report.kind,
            runtime::ABORT_FAULT | runtime::ABORT_STACK | runtime::ABORT_TIME | runtime::ABORT_DMA
        );
        let place = self.place(report.rip.saturating_sub(u64::from(!exact)));
        let noted = report.lock.iter().take(report.locks as usize);
        let locks = noted.map(|lock| Lock {
            name: None,
            address: lock.address,
            by: self.place(lock.site.saturating_sub(1)),
        });
        DriverAbort {
            kind: report.kind,
            reason: report.reason,
            address: report.address,
            place,
            locks: locks.collect(),
            more_locks: report.locks.saturating_sub(runtime::HELD_LOCKS as u32),
            import,
        }
    }

    /// Locks of the hot routines and of the device's transmit queue that `cpu` holds.
    pub(crate) fn held_by_routines(&self, net_device: u64, cpu: usize) -> Vec<Lock> {
        locks::held(self.plan, &self.memory, net_device, cpu)
    }

    /// The code at a hypervisor address, by the original's names.
    fn place(&self, rip: u64) -> String {
        let Some((object, section, offset)) = self.payload.original(rip) else {
            return format!("{rip:#x}");
        };
        let module = [Module::Driver, Module::Hot];
        let module = module.into_iter().find(|m| m.to_string() == object);
        let start = module.and_then(|module| self.plan.section(module, section));
        match start {
            Some(start) => self.plan.describe(start + offset),
            None => format!("{object}:{section}+{offset:#x}"),
        }
    }

    /// The runtime's instance, for its C interface.
    pub fn raw(&self) -> *mut runtime::Instance {
        // SAFETY: the instance is alive.
        unsafe { runtime::twin_testbed_instance(self.testbed) }
    }

    /// Upcalls so far, by name; only routines that were called.
    pub fn upcalls(&self) -> Vec<(String, u64)> {
        // SAFETY: only this thread runs callbacks, and none runs now.
        let callbacks = unsafe { &*self.callbacks };
        let counted = callbacks.names.iter().zip(&callbacks.calls);
        counted
            .map(|(name, calls)| (name.clone(), calls.load(Ordering::Relaxed)))
            .filter(|(_, calls)| *calls > 0)
            .collect()
    }

    /// Upcalls so far.
    pub fn upcall_count(&self) -> u64 {
        // SAFETY: as above.
        let callbacks = unsafe { &*self.callbacks };
        callbacks
            .calls
            .iter()
            .map(|calls| calls.load(Ordering::Relaxed))
            .sum()
    }

    /// WARNs of the driver so far.
    pub fn warnings(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (*self.callbacks).warnings }
    }

    /// Misses (windows mapped), collisions and entries since it was renewed.
    pub fn statistics(&self) -> runtime::Statistics {
        let mut copy = runtime::Statistics::default();
        // SAFETY: the instance is alive; the function copies.
        unsafe { runtime::twin_instance_statistics(self.raw(), &mut copy) };
        copy
    }
}

impl Drop for Instance<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing runs in it; the callbacks are used by nothing else.
        unsafe {
            if !self.testbed.is_null() {
                runtime::twin_testbed_destroy(self.testbed);
            }
            CALLBACKS.store(std::ptr::null_mut(), Ordering::SeqCst);
            drop(Box::from_raw(self.callbacks));
        }
    }
}

fn has_window(payload: &Payload) -> bool {
    !Scheme::TABLES.contains(&payload.driver.variant.scheme)
}

fn add_regions(testbed: *mut Testbed, regions: &[&Region]) -> Result<(), LiveError> {
    for region in regions {
        // SAFETY: the testbed is alive, and the region's file.
        let added = unsafe { runtime::twin_testbed_add_region(testbed, *region) };
        let range = region.dom0_start..region.dom0_start + region.length;
        done(testbed, added, range)?;
    }
    Ok(())
}

/// The status of adding dom0's `range` as an error.
fn done(testbed: *mut Testbed, status: c_int, range: Range<u64>) -> Result<(), LiveError> {
    match status {
        runtime::OK => Ok(()),
        runtime::COLLISION => {
            // SAFETY: the testbed is alive, and gives a part of itself.
            let other = unsafe { *runtime::twin_testbed_collision(testbed) };
            Err(LiveError::Collision {
                one: range,
                other: other.start..other.start + other.length,
            })
        }
        _ => Err(LiveError::last("showing dom0's memory to the driver")),
    }
}

fn texts(payload: &Payload) -> [(u64, u64); 4] {
    let stubs = STUBS + payload.stubs.len() as u64 * STUB;
    let player = player::code();
    [
        payload.hot.text(),
        payload.driver.text(),
        (STUBS, stubs),
        (player.start, player.end),
    ]
}

/// A failure to load code.
fn unloaded(source: std::io::Error) -> LiveError {
    LiveError::system("loading rewritten code")(source)
}

fn load_stubs(payload: &Payload, services: &[Service]) -> Result<(), LiveError> {
    let length = (payload.stubs.len() as u64 * STUB).next_multiple_of(crate::memory::PAGE);
    let memory = mapping::new_memory(STUBS, length).map_err(unloaded)?;
    for (number, stub) in payload.stubs.iter().enumerate() {
        // SAFETY: inside the new mapping; each writes STUB bytes.
        unsafe {
            let at = memory.add(number * STUB as usize).cast();
            match stub.target {
                StubDestination::Host(service) => {
                    runtime::twin_testbed_write_hot(at, services[service])
                }
                StubDestination::Lock(lock) => {
                    let routine = payload.hot.entries.exported(lock.name);
                    let routine = routine.expect("the linker found it in hot.o");
                    runtime::twin_testbed_write_lock(at, routine, lock.frees);
                }
                StubDestination::Upcall(_) | StubDestination::StackCorrupted => {
                    runtime::twin_testbed_write_import(at, number as u32);
                }
            }
        }
    }
    code_memory::seal(memory, length).map_err(unloaded)
}
