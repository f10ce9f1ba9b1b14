//! dom0's clock, for kernel code that waits for it.
//!
//! Time in dom0 advances when kernel code sleeps or delays, or on a command. A driver
//! that spins on `jiffies` does neither: e1000's loopback test waits 20 of them for a
//! packet that never comes back. So a thread that stays inside kernel code, uses
//! processor time and does not advance the clock, advances it by the time used.
//!
//! ```text
//! tick        tick        tick        tick           TICK of the thread's own time
//! entry 7     entry 7     entry 7     entry 8
//! jiffies 5   jiffies 5   jiffies 10  jiffies 10
//!             nudge       nudge       (another entry)
//! ```

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use libc::{c_int, c_void, siginfo_t};
use process_lab::signals;

use super::enter;
use crate::error::LiveError;
use crate::image::KernelPlan;
use crate::measure::steps;
use crate::timer::ThreadTimer;

/// Nanoseconds of the thread's time between ticks.
const TICK: u64 = 20_000_000;
/// Ticks without a change of the clock after which it is advanced: working kernel code,
/// as during boot, takes less in one entry.
const PATIENCE: u64 = 25;

/// dom0 addresses of the clock's word and of what moves it.
static JIFFIES: AtomicU64 = AtomicU64::new(0);
static NUDGE: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The entry and the clock that the last tick saw, and how many ticks before it.
    static SEEN: Cell<(u64, u64, u64)> = const { Cell::new((0, 0, 0)) };
}

/// Watches the calling thread, a CPU of dom0's, for its whole life. A kernel
/// without a clock is left alone.
pub fn watch(plan: &KernelPlan<'_>) -> Result<(), LiveError> {
    let names = ["jiffies", "kernel_clock_nudge"];
    let [Some(jiffies), Some(nudge)] = names.map(|name| plan.symbol(name)) else {
        return Ok(());
    };
    JIFFIES.store(jiffies, Ordering::Relaxed);
    NUDGE.store(nudge, Ordering::Relaxed);
    let signal = libc::SIGRTMIN() + 2;
    signals::handle(signal, on_tick).map_err(|_| LiveError::last("watching the clock"))?;
    let timer = ThreadTimer::new(libc::CLOCK_THREAD_CPUTIME_ID, signal)
        .and_then(|timer| timer.run(Duration::from_nanos(TICK)).map(|()| timer))
        .map_err(LiveError::system("making the clock's timer"))?;
    // The thread's, as long as it lives.
    std::mem::forget(timer);
    Ok(())
}

extern "C" fn on_tick(_: c_int, _: *mut siginfo_t, _: *mut c_void) {
    // Single-stepped code takes long, but does not wait.
    let Some(entry) = enter::entered().filter(|_| !steps::counting()) else {
        return;
    };
    let (seen, clock, times) = SEEN.get();
    if (seen, clock) != (entry, jiffies()) {
        SEEN.set((entry, jiffies(), 0));
    } else if times < PATIENCE {
        SEEN.set((entry, clock, times + 1));
    } else {
        let address = NUDGE.load(Ordering::Relaxed);
        // SAFETY: kernel.h: a signal handler may call it at any time; this thread is
        // a CPU of dom0's, whose memory is mapped.
        let nudge = unsafe { std::mem::transmute::<u64, extern "C" fn(u64)>(address) };
        nudge(TICK);
        SEEN.set((entry, jiffies(), PATIENCE));
    }
}

fn jiffies() -> u64 {
    let word = JIFFIES.load(Ordering::Relaxed) as *const AtomicU64;
    // SAFETY: an aligned word of dom0's memory, which is mapped in its process.
    unsafe { (*word).load(Ordering::Relaxed) }
}
