//! Timers that signal one thread (timer_create(2), SIGEV_THREAD_ID).

use std::io;
use std::time::Duration;

use libc::{c_int, c_long, clockid_t};

/// A timer of the thread that made it; deleted when dropped.
#[derive(Debug)]
pub(super) struct ThreadTimer(libc::timer_t);

impl ThreadTimer {
    /// A timer on `clock` that sends `signal` to the calling thread, for which there
    /// is a handler. It does not run yet.
    pub fn new(clock: clockid_t, signal: c_int) -> io::Result<ThreadTimer> {
        // SAFETY: all zeroes is a valid value.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = signal;
        // SAFETY: plain system call.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both are valid for the call.
        match unsafe { libc::timer_create(clock, &mut event, &mut timer) } {
            0 => Ok(ThreadTimer(timer)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Lets it signal every `interval`, which is not 0, from now on.
    pub fn run(&self, interval: Duration) -> io::Result<()> {
        let time = libc::timespec {
            tv_sec: interval.as_secs() as libc::time_t,
            tv_nsec: c_long::from(interval.subsec_nanos() as i32),
        };
        let times = libc::itimerspec {
            it_interval: time,
            it_value: time,
        };
        // SAFETY: our own timer.
        match unsafe { libc::timer_settime(self.0, 0, &times, std::ptr::null_mut()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for ThreadTimer {
    fn drop(&mut self) {
        // SAFETY: our own timer, used no more.
        unsafe { libc::timer_delete(self.0) };
    }
}
