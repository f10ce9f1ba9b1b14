//! Where time goes: a sampling profiler for one thread.
//!
//! A timer interrupts the thread at a rate that is no multiple of anything the
//! packet loop does, and the handler counts to whom the interrupted instruction
//! belongs: to a range of code that was declared, else to the phase that the loop
//! says it is in. Nothing is added to the code that is measured.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use libc::{c_int, c_void, siginfo_t, ucontext_t};

use super::error::LiveError;
use crate::signals;

/// Who spends time (paper, figures 7 and 8, and the card, which is no processor
/// time on a real machine).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Component {
    /// Not in the packet loop.
    Idle = 0,
    /// The driver.
    Driver = 1,
    /// The hot routines: dom0's or the hypervisor's, as the path has it.
    Support = 2,
    /// The hypervisor: runtime, switch, entries.
    Hypervisor = 3,
    /// dom0's kernel and its programs.
    Dom0 = 4,
    /// A guest.
    Guest = 5,
    /// The model of the card, and the packets' checking behind it.
    Card = 6,
}

impl Component {
    /// All that are counted in a packet's cost.
    pub const COSTS: [Component; 5] = [
        Component::Driver,
        Component::Support,
        Component::Hypervisor,
        Component::Dom0,
        Component::Guest,
    ];
    const ALL: [Component; 7] = [
        Component::Idle,
        Component::Driver,
        Component::Support,
        Component::Hypervisor,
        Component::Dom0,
        Component::Guest,
        Component::Card,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Component::Idle => "idle",
            Component::Driver => "driver",
            Component::Support => "support",
            Component::Hypervisor => "hypervisor",
            Component::Dom0 => "dom0",
            Component::Guest => "guest",
            Component::Card => "card",
        }
    }
}

/// Ranges that can be declared.
const RANGES: usize = 8;
/// Nanoseconds between samples: 40 kHz, near enough, and prime.
const INTERVAL: i64 = 24_989;

static PHASE: AtomicU32 = AtomicU32::new(0);
static SAMPLES: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];
static STARTS: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static ENDS: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static OWNERS: [AtomicU32; RANGES] = [const { AtomicU32::new(0) }; RANGES];
static DECLARED: AtomicUsize = AtomicUsize::new(0);

/// Says what the thread does from here on.
#[inline]
pub fn enter_phase(component: Component) {
    PHASE.store(component as u32, Ordering::Relaxed);
}

/// Declares code at `[start, end)` to be a component's.
///
/// # Panics
/// If there are too many.
pub fn declare(start: u64, end: u64, component: Component) {
    let index = DECLARED.fetch_add(1, Ordering::SeqCst);
    assert!(index < RANGES, "room for {RANGES} ranges");
    STARTS[index].store(start, Ordering::Relaxed);
    ENDS[index].store(end, Ordering::Relaxed);
    OWNERS[index].store(component as u32, Ordering::Relaxed);
}

/// Samples so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Samples(pub [u64; 7]);

impl Samples {
    /// Those of this process.
    pub fn now() -> Samples {
        Samples(std::array::from_fn(|i| SAMPLES[i].load(Ordering::Relaxed)))
    }

    /// Those since `before`.
    pub fn since(&self, before: &Samples) -> Samples {
        Samples(std::array::from_fn(|i| self.0[i] - before.0[i]))
    }

    /// Both together.
    pub fn plus(&self, other: &Samples) -> Samples {
        Samples(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    /// A component's.
    pub fn of(&self, component: Component) -> u64 {
        self.0[component as usize]
    }

    /// Those of all that a packet costs.
    pub fn costs(&self) -> u64 {
        Component::COSTS.iter().map(|c| self.of(*c)).sum()
    }
}

/// A running profiler of the thread that started it; stops when dropped.
pub struct Profiler {
    timer: libc::timer_t,
}

impl Profiler {
    /// Starts it.
    ///
    /// # Errors
    /// A system call's.
    pub fn start() -> Result<Profiler, LiveError> {
        let signal = libc::SIGRTMIN();
        signals::handle(signal, on_sample)
            .map_err(|_| LiveError::last("installing the profiler's handler"))?;
        // SAFETY: all zeroes is a valid value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: plain system call.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both are valid for the call.
        let made = unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer) };
        if made != 0 {
            return Err(LiveError::last("making the profiler's timer"));
        }
        let profiler = Profiler { timer };
        profiler.set(INTERVAL)?;
        Ok(profiler)
    }

    fn set(&self, nanoseconds: i64) -> Result<(), LiveError> {
        let time = libc::timespec {
            tv_sec: 0,
            tv_nsec: nanoseconds,
        };
        let times = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: our own timer.
        match unsafe { libc::timer_settime(self.timer, 0, &times, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(LiveError::last("setting the profiler's timer")),
        }
    }
}

impl Drop for Profiler {
    fn drop(&mut self) {
        // SAFETY: our own timer, used no more.
        unsafe { libc::timer_delete(self.timer) };
    }
}

extern "C" fn on_sample(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler the interrupted context.
    let rip = unsafe { (*context.cast::<ucontext_t>()).uc_mcontext.gregs[libc::REG_RIP as usize] };
    SAMPLES[owner(rip as u64) as usize].fetch_add(1, Ordering::Relaxed);
}

pub(super) fn owner(rip: u64) -> Component {
    let declared = DECLARED.load(Ordering::Relaxed).min(RANGES);
    let phase = PHASE.load(Ordering::Relaxed);
    let found = (0..declared).find(|i| {
        (STARTS[*i].load(Ordering::Relaxed)..ENDS[*i].load(Ordering::Relaxed)).contains(&rip)
    });
    let number = match found {
        // Outside the loop the same code works for nobody's packet.
        Some(i) if phase != Component::Idle as u32 => OWNERS[i].load(Ordering::Relaxed),
        _ => phase,
    };
    Component::ALL[number as usize % Component::ALL.len()]
}

/// The processor's time-stamp counter.
#[inline]
pub fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_phase_is_seen() {
        let before = Samples::now();
        let profiler = Profiler::start().expect("a timer");
        enter_phase(Component::Guest);
        let start = std::time::Instant::now();
        let mut sum = 0u64;
        while start.elapsed().as_millis() < 50 {
            sum = sum.wrapping_add(cycles());
        }
        enter_phase(Component::Idle);
        drop(profiler);
        std::hint::black_box(sum);
        let samples = Samples::now().since(&before);
        assert!(samples.of(Component::Guest) > 20, "{samples:?}");
        assert_eq!(samples.of(Component::Driver), 0);
    }
}
