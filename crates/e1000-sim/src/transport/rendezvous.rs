//! One request at a time from a client process to a server process.
//!
//! ```text
//!      client          client         server           server         client
//! Idle ──────> Claimed ──────> Asked ──────> Serving ─────────> Done ──────> Idle
//!                                │              │
//!                  Idle <────────┘ client gives up
//!                                               └─> Abandoned ── server ──> Idle
//! ```
//!
//! Request and answer lie next to the word; each side accesses them only in its own
//! states: the client in Claimed and Done, the server in Serving. A client that gave up
//! (because of time, or because the server died) does not access them until the server
//! has finished too.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use libc::pid_t;
use process_lab::patience::Patience;
use process_lab::process;
use thiserror::Error;

use super::lock::pause;

const IDLE: u32 = 0;
const ASKED: u32 = 1;
const SERVING: u32 = 2;
const DONE: u32 = 3;
const ABANDONED: u32 = 4;
const CLAIMED: u32 = 5;

/// The word and the server. All zeroes: idle, and no server yet.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Rendezvous {
    state: AtomicU32,
    server: AtomicU32,
    generation: AtomicU32,
    /// Someone sleeps on `state`.
    sleepers: AtomicU32,
}

/// How long a client waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most time for an answer, of the server's own ([`Patience`]).
    pub time: Duration,
    /// Polls of the word before sleeping on it.
    pub spin: u32,
}

impl Limits {
    /// This many seconds for an answer; the rest as by default.
    pub fn of_seconds(seconds: u64) -> Limits {
        Limits {
            time: Duration::from_secs(seconds),
            ..Limits::default()
        }
    }
}

/// Long: a virtual machine counts as a process's time what its host gave to others, and an emulator
/// takes a hundred times as long.
impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: Duration::from_secs(60),
            spin: 2000,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NoAnswer {
    /// Not within the limit. The server may still be working.
    #[error("no answer within {0:?}; dom0 hangs, restart it")]
    Timeout(Duration),
    /// The server's process ended, or was never there.
    #[error("dom0 is dead; restart it")]
    Dead,
    /// The server is still busy with a request that a client gave up.
    #[error("dom0 is still busy with an earlier request that took too long")]
    Busy,
}

/// A wait is divided into pieces of this length, with a check after each whether the
/// server lives: a process that dies does not wake its clients.
const PIECE: Duration = Duration::from_millis(20);

impl Rendezvous {
    /// Forgets an earlier server and its requests. Only while there is neither server
    /// nor client.
    pub fn reset(&self) {
        self.server.store(0, Ordering::Release);
        self.state.store(IDLE, Ordering::Release);
    }

    /// Sets the server's process, which clients watch. Called by its parent, before any
    /// client's request.
    pub fn enlist(&self, server: pid_t) {
        self.server.store(server as u32, Ordering::Release);
    }

    /// How many requests there were.
    pub fn generation(&self) -> u32 {
        self.generation.load(Ordering::Acquire)
    }

    /// The client's part: `ask` writes the request, `answer` reads the answer.
    ///
    /// # Errors
    /// [`NoAnswer`]; `answer` then was not called.
    pub fn call<T>(
        &self,
        limits: &Limits,
        ask: impl FnOnce(),
        answer: impl FnOnce() -> T,
    ) -> Result<T, NoAnswer> {
        if self.exchange(IDLE, CLAIMED).is_err() {
            return Err(if self.server_lives() {
                NoAnswer::Busy
            } else {
                NoAnswer::Dead
            });
        }
        ask();
        self.generation.fetch_add(1, Ordering::Relaxed);
        self.move_on(ASKED);
        self.wait_done(limits).inspect_err(|_| self.abandon())?;
        let result = answer();
        self.state.store(IDLE, Ordering::Release);
        Ok(result)
    }

    fn server_lives(&self) -> bool {
        match self.server.load(Ordering::Acquire) {
            0 => false,
            pid => process::is_alive(pid as pid_t),
        }
    }

    fn wait_done(&self, limits: &Limits) -> Result<(), NoAnswer> {
        if self.spin(limits.spin, |state| state == DONE).is_some() {
            return Ok(());
        }
        // Most answers come before time has to be counted.
        let mut patience: Option<Patience> = None;
        loop {
            let state = self.state.load(Ordering::Acquire);
            if state == DONE {
                return Ok(());
            }
            if !self.server_lives() {
                return Err(NoAnswer::Dead);
            }
            let left = patience.as_ref().map_or(limits.time, Patience::left);
            if left.is_zero() {
                return Err(NoAnswer::Timeout(limits.time));
            }
            let piece = left.min(PIECE);
            if self.sleep(state, Some(piece)) {
                let server = self.server.load(Ordering::Acquire) as pid_t;
                let patience = patience.get_or_insert_with(|| Patience::new(server, limits.time));
                patience.waited(piece);
            }
        }
    }

    /// The client gives up. The server may still serve the request.
    fn abandon(&self) {
        let withdrawn = self.exchange(ASKED, IDLE).is_ok();
        if !withdrawn && self.exchange(SERVING, ABANDONED).is_err() {
            // Done in the meantime: too late.
            let _ = self.exchange(DONE, IDLE);
        }
    }

    fn exchange(&self, from: u32, to: u32) -> Result<u32, u32> {
        self.state
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
    }

    /// The server's part: waits for a request and serves it. `serve` reads the
    /// request and writes the answer.
    pub fn serve<T>(&self, spin: u32, serve: impl FnOnce() -> T) -> T {
        self.wait_asked(spin);
        let result = serve();
        self.finish();
        result
    }

    fn wait_asked(&self, spin: u32) {
        loop {
            self.spin(spin, |state| state == ASKED);
            match self.exchange(ASKED, SERVING) {
                Ok(_) => return,
                Err(state) => _ = self.sleep(state, None),
            }
        }
    }

    fn finish(&self) {
        if self.exchange(SERVING, DONE).is_err() {
            self.state.store(IDLE, Ordering::Release);
        }
        self.wake();
    }

    fn spin(&self, looks: u32, wanted: impl Fn(u32) -> bool) -> Option<u32> {
        (1..=looks).find_map(|look| {
            let state = self.state.load(Ordering::Acquire);
            if wanted(state) {
                return Some(state);
            }
            pause(look);
            None
        })
    }

    fn move_on(&self, state: u32) {
        self.state.store(state, Ordering::SeqCst);
        self.wake();
    }

    /// Sleeps until the word is no longer `state`, a wake-up comes, or the time is over:
    /// then true.
    fn sleep(&self, state: u32, limit: Option<Duration>) -> bool {
        let time = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the word lives as long as `self`; the time is null or valid.
        // FUTEX_WAIT without PRIVATE, because other processes wake it.
        let woken =
            unsafe { libc::syscall(libc::SYS_futex, &self.state, libc::FUTEX_WAIT, state, time) };
        let over =
            woken != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        over
    }

    fn wake(&self) {
        std::sync::atomic::fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            // SAFETY: the word lives as long as `self`.
            unsafe { libc::syscall(libc::SYS_futex, &self.state, libc::FUTEX_WAKE, i32::MAX) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::mailbox::SharedPages;
    use process_lab::process::fork;

    fn limits(milliseconds: u64) -> Limits {
        Limits {
            time: Duration::from_millis(milliseconds),
            spin: 100,
        }
    }

    fn server(meet: &Rendezvous, work: impl FnOnce() -> i32) -> process::Child {
        let child = fork(work).expect("fork");
        meet.enlist(child.pid());
        child
    }

    #[test]
    fn requests_are_served_one_after_the_other() {
        let pages = SharedPages::<Rendezvous>::new().expect("memory");
        let meet = pages.get();
        let _server = server(meet, || {
            loop {
                meet.serve(0, || ());
            }
        });
        for _ in 0..100 {
            let answer = meet.call(&limits(5000), || (), || 7);
            assert_eq!(answer, Ok(7));
        }
        assert_eq!(meet.generation(), 100);
    }

    #[test]
    fn a_server_that_hangs_is_left_and_keeps_the_place() {
        let pages = SharedPages::<Rendezvous>::new().expect("memory");
        let meet = pages.get();
        // SAFETY: waits for a signal that never comes.
        let _server = server(meet, || meet.serve(0, || unsafe { libc::pause() }));
        // The server begins to serve at some time; until then the place is free.
        while meet.state.load(Ordering::Acquire) != ABANDONED {
            let answer = meet.call(&limits(100), || (), || ());
            assert!(matches!(answer, Err(NoAnswer::Timeout(_))));
        }
        assert_eq!(meet.call(&limits(100), || (), || ()), Err(NoAnswer::Busy));
    }

    #[test]
    fn a_server_that_dies_is_noticed_before_the_limit() {
        let pages = SharedPages::<Rendezvous>::new().expect("memory");
        let meet = pages.get();
        // SAFETY: ends the process.
        let mut server = server(meet, || meet.serve(0, || unsafe { libc::_exit(1) }));
        let call = || meet.call(&limits(60_000), || (), || ());
        assert_eq!(call(), Err(NoAnswer::Dead));
        server.wait();
        assert_eq!(call(), Err(NoAnswer::Dead));
    }

    #[test]
    fn without_a_server_nobody_waits() {
        let meet = Rendezvous::default();
        let answer = meet.call(&limits(60_000), || (), || ());
        assert_eq!(answer, Err(NoAnswer::Dead));
    }
}
