//! Which of a guest and the hypervisor runs: one word that both can write, and that neither has to
//! believe.
//!
//! ```text
//!             hypervisor: enter
//! Idle, Kick ───────────────────> Guest
//!            <───────────────────
//!             guest: idle, kick
//! ```
//!
//! The hypervisor takes a word that it does not know for [`Exit::Idle`]. It keeps the guest's process and what it waits
//! for in its own memory: of a `Rendezvous` both would be in the shared one.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use process_lab::patience::Patience;
use process_lab::process::Child;

use crate::transport::lock::pause;
use crate::transport::rendezvous::Limits;

/// The guest has left, and has nothing to do.
const IDLE: u32 = 0;
/// It is the guest's turn.
const GUEST: u32 = 1;
/// The guest has left: it has work for the hypervisor, and goes on when it is entered.
const KICK: u32 = 2;

/// A wait is divided into pieces of this length, with a check after each whether the guest lives: a process that
/// dies wakes nobody.
const PIECE: Duration = Duration::from_millis(20);

/// Why a guest does not run any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It has nothing to do.
    Idle,
    /// It has work for the hypervisor.
    Kick,
    /// It runs still, and has had all the time that it may have.
    Late,
    /// Its process has ended.
    Dead,
}

/// The word. All zeroes: the hypervisor runs.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Turn {
    word: AtomicU32,
}

impl Turn {
    /// The hypervisor's part: the guest runs from here on.
    pub fn enter(&self) {
        self.give(GUEST);
    }

    /// The hypervisor's part: waits until the guest has left, as long as its process may take.
    pub fn wait(&self, guest: &Child, limits: &Limits) -> Exit {
        for look in 1..=limits.spin {
            if let Some(exit) = self.left() {
                return exit;
            }
            pause(look);
        }
        // Most guests leave before time has to be counted.
        let mut patience: Option<Patience> = None;
        loop {
            if let Some(exit) = self.left() {
                return exit;
            }
            let left = patience.as_ref().map_or(limits.time, Patience::left);
            if left.is_zero() {
                return Exit::Late;
            }
            let piece = PIECE.min(left);
            if self.sleep(GUEST, Some(piece)) {
                let patience =
                    patience.get_or_insert_with(|| Patience::new(guest.pid(), limits.time));
                patience.waited(piece);
                if !guest.is_alive() {
                    return Exit::Dead;
                }
            }
        }
    }

    /// The hypervisor's part: why the guest has left, if it has.
    pub fn left(&self) -> Option<Exit> {
        match self.word.load(Ordering::Acquire) {
            GUEST => None,
            KICK => Some(Exit::Kick),
            _ => Some(Exit::Idle),
        }
    }

    /// The guest's part: leaves with work for the hypervisor; comes back when it is entered again.
    pub fn kick(&self) {
        self.give(KICK);
        self.wait_entered();
    }

    /// The guest's part: leaves because it has nothing to do; comes back when it is entered again.
    pub fn idle(&self) {
        self.give(IDLE);
        self.wait_entered();
    }

    fn wait_entered(&self) {
        loop {
            match self.word.load(Ordering::Acquire) {
                GUEST => return,
                other => _ = self.sleep(other, None),
            }
        }
    }

    fn give(&self, word: u32) {
        self.word.store(word, Ordering::Release);
        // SAFETY: the word lives as long as `self`. Without PRIVATE, because another process sleeps on it.
        unsafe { libc::syscall(libc::SYS_futex, &self.word, libc::FUTEX_WAKE, i32::MAX) };
    }

    /// Sleeps until the word is no longer that, a wake-up comes, or the time is over: then true.
    fn sleep(&self, word: u32, limit: Option<Duration>) -> bool {
        let time = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos() as i32),
        });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the word lives as long as `self`; the time is null or valid.
        let woken =
            unsafe { libc::syscall(libc::SYS_futex, &self.word, libc::FUTEX_WAIT, word, time) };
        woken != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ETIMEDOUT)
    }

    /// The word itself, for guests that write what they like.
    pub fn word(&self) -> &AtomicU32 {
        &self.word
    }
}

#[cfg(test)]
mod tests {
    use process_lab::process::fork;

    use super::*;
    use crate::transport::mailbox::{SharedPages, Zeroed};

    // SAFETY: an atomic word; 0 is the hypervisor's turn.
    unsafe impl Zeroed for Turn {}

    fn limits(milliseconds: u64) -> Limits {
        Limits {
            time: Duration::from_millis(milliseconds),
            spin: 10,
        }
    }

    #[test]
    fn a_guest_kicks_and_goes_on() {
        let pages = SharedPages::<Turn>::new().expect("memory");
        let turn = pages.get();
        turn.enter();
        let guest = fork(|| {
            loop {
                turn.kick();
                turn.idle();
            }
        })
        .expect("fork");
        for _ in 0..100 {
            assert_eq!(turn.wait(&guest, &limits(60_000)), Exit::Kick);
            turn.enter();
            assert_eq!(turn.wait(&guest, &limits(60_000)), Exit::Idle);
            turn.enter();
        }
    }

    #[test]
    fn who_does_not_leave_is_late_and_who_dies_is_dead() {
        let pages = SharedPages::<Turn>::new().expect("memory");
        let turn = pages.get();
        turn.enter();
        // SAFETY: waits for a signal that never comes.
        let mut guest = fork(|| unsafe { libc::pause() }).expect("fork");
        assert_eq!(turn.wait(&guest, &limits(50)), Exit::Late);
        assert_eq!(turn.left(), None);
        guest.kill();
        assert_eq!(turn.wait(&guest, &limits(60_000)), Exit::Dead);
    }

    #[test]
    fn any_word_is_safe() {
        let turn = Turn::default();
        for word in [3, 77, u32::MAX] {
            turn.word().store(word, Ordering::Relaxed);
            assert_eq!(turn.left(), Some(Exit::Idle));
        }
    }
}
