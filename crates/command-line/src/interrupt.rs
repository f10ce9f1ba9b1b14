//! Signals that end the program: it leaves nothing behind, and dies of the signal.
//!
//! A shell then has the status 128 + n, and knows that the user stopped it. A signal
//! that was ignored when the program started (`nohup`, background jobs) stays ignored.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXCPU, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

use crate::{child, temporary};

/// Held while something may not be left half done.
static WHOLE: Mutex<()> = Mutex::new(());
/// Whether a signal has come that will end the program.
static COMING: AtomicBool = AtomicBool::new(false);

/// Something that is not left half done: while this lives, a signal does not end the program.
pub struct Postponed(Option<MutexGuard<'static, ()>>);

/// From now on signals wait.
pub fn postpone() -> Postponed {
    Postponed(Some(whole()))
}

fn whole() -> MutexGuard<'static, ()> {
    WHOLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Postponed {
    /// A signal that has come meanwhile ends the program here, and no later.
    fn drop(&mut self) {
        drop(self.0.take());
        while COMING.load(Ordering::Acquire) {
            thread::park();
        }
    }
}

/// Waits for these signals on a thread of its own. Where that is impossible, they end
/// the program at once, as they do without it.
pub fn watch() {
    let ignored = ignored();
    if ignored & bit(SIGXFSZ) == 0 {
        // Handled by nothing, it leaves the failure to write that comes with it (setrlimit(2),
        // RLIMIT_FSIZE), which has a message and removes what was begun.
        let _ = flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)));
    }
    let wanted = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGXCPU];
    let wanted = wanted.into_iter().filter(|n| ignored & bit(*n) == 0);
    let Ok(mut signals) = Signals::new(wanted) else {
        return;
    };
    let wait = move || {
        if let Some(signal) = signals.forever().next() {
            // Kept: nothing that may not be left half done begins any more.
            COMING.store(true, Ordering::Release);
            let _whole = whole();
            child::end_all(signal);
            temporary::remove_all();
            // It does not return for these signals.
            let _ = emulate_default_handler(signal);
        }
    };
    let _ = thread::Builder::new().name("signals".into()).spawn(wait);
}

/// The signals that are ignored, a bit each: `SigIgn` of proc(5).
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}
