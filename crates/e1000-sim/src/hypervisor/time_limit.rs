//! A limit on the processor time of one invocation of the driver: an endless loop is
//! aborted like a wild access, and the hypervisor goes on.
//!
//! ```text
//! arm ─ driver ─ disarm       two stores an invocation
//! tick, tick, tick, ...       the thread's processor time, TICKS a limit
//! ```
//!
//! The handler counts ticks of the same invocation. Past the limit the runtime stops the
//! driver (`twin_stop`): where it is, if the signal interrupted its code, which the
//! rewritten hot routines belong to; else on its way back from the hypervisor's code to its
//! own. Nothing has to cooperate: each tick tries again. Waiting for an upcall takes no
//! processor time; it has a limit of its own.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use process_lab::runtime::{self, Cpu};
use process_lab::signals;

use crate::error::LiveError;
use crate::timer::ThreadTimer;

/// Ticks that make a limit.
const TICKS: u32 = 4;
/// The limit unless another is set.
pub const DEFAULT: Duration = Duration::from_secs(1);

/// The invocation that runs: a number, 0 between invocations.
static RUNNING: AtomicU64 = AtomicU64::new(0);
static SEEN: AtomicU64 = AtomicU64::new(0);
static COUNTED: AtomicU32 = AtomicU32::new(0);
static CPU: AtomicPtr<Cpu> = AtomicPtr::new(std::ptr::null_mut());

/// The running clock of the thread that made it. One a process.
#[derive(Debug)]
pub struct TimeLimit {
    timer: ThreadTimer,
    invocations: UnsafeCell<u64>,
}

/// The signal of a tick, which a test may send as well.
pub fn signal() -> c_int {
    libc::SIGRTMIN() + 1
}

impl TimeLimit {
    /// Starts it for the calling thread, which runs the driver on `cpu`.
    pub fn start(cpu: *mut Cpu) -> Result<TimeLimit, LiveError> {
        let signal = signal();
        CPU.store(cpu, Ordering::SeqCst);
        signals::handle(signal, on_tick).map_err(|_| LiveError::last("limiting time"))?;
        let timer = ThreadTimer::new(libc::CLOCK_THREAD_CPUTIME_ID, signal)
            .map_err(LiveError::system("making the driver's timer"))?;
        let limit = TimeLimit {
            timer,
            invocations: UnsafeCell::new(0),
        };
        limit.set(DEFAULT)?;
        Ok(limit)
    }

    /// Another limit, of the thread's processor time.
    pub fn set(&self, limit: Duration) -> Result<(), LiveError> {
        let set = self.timer.run(limit / TICKS);
        set.map_err(LiveError::system("setting the driver's timer"))
    }

    /// Runs `driver` as an invocation.
    #[inline]
    pub fn watch<T>(&self, driver: impl FnOnce() -> T) -> T {
        // SAFETY: the value is not `Sync`, so this thread alone is here, and
        // `driver` does not come back to it: an outer invocation is watched once.
        let number = unsafe {
            *self.invocations.get() += 1;
            *self.invocations.get()
        };
        RUNNING.store(number, Ordering::Relaxed);
        let result = driver();
        RUNNING.store(0, Ordering::Relaxed);
        result
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        // A tick that comes before the timer is deleted finds no driver to abort.
        CPU.store(std::ptr::null_mut(), Ordering::SeqCst);
    }
}

/// Counts; true if the running invocation is past its limit.
fn tick() -> bool {
    let running = RUNNING.load(Ordering::Relaxed);
    if running == 0 {
        return false;
    }
    if SEEN.swap(running, Ordering::Relaxed) != running {
        COUNTED.store(0, Ordering::Relaxed);
    }
    COUNTED.fetch_add(1, Ordering::Relaxed) + 1 >= TICKS
}

extern "C" fn on_tick(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let cpu = CPU.load(Ordering::SeqCst);
    if !tick() || cpu.is_null() {
        return;
    }
    // SAFETY: the kernel gives a handler the interrupted context, and the timer
    // signals the CPU's own thread. The runtime's function may be called at any time;
    // where it says so, control goes to its own code in the driver's place.
    unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        let rip = registers[libc::REG_RIP as usize] as u64;
        let rsp = registers[libc::REG_RSP as usize] as u64;
        if runtime::twin_stop(cpu, rip, rsp) {
            registers[libc::REG_RIP as usize] = runtime::twin_abort_from_fault as *const () as i64;
            registers[libc::REG_RDI as usize] = cpu as i64;
            registers[libc::REG_EFL as usize] &= !signals::DIRTY_FLAGS;
        }
    }
}
