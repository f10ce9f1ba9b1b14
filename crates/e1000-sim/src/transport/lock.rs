//! A spin lock that processes share, and that outlives its owner's death.
//!
//! The word is 0 or the owner: process number in the upper half, thread number
//! in the lower. A thread that waits too long checks whether the owner's process is
//! alive. If not, it takes the lock over; the result says so, because the protected
//! data may be half changed.

use std::sync::atomic::{AtomicU64, Ordering};

use process_lab::process;

/// The lock. All zeroes is a free one.
#[repr(C)]
#[derive(Debug, Default)]
pub struct SpinLock {
    owner: AtomicU64,
}

/// How a lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It was free.
    Free,
    /// From a process that died holding it.
    FromTheDead,
}

/// Polls of a held lock between two checks whether its owner lives.
const PATIENCE: u32 = 200_000;
/// Polls before the processor is yielded: the owner of the lock may be waiting for this
/// processor.
const SPIN: u32 = 64;

impl SpinLock {
    /// Takes it. May be used in signal handlers of threads that do not hold it.
    pub fn lock(&self) -> (Guard<'_>, Taken) {
        let me = this_thread();
        let mut looks = 0u32;
        loop {
            let free = self
                .owner
                .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed);
            let Err(owner) = free else {
                return (Guard { lock: self }, Taken::Free);
            };
            looks += 1;
            if looks.is_multiple_of(PATIENCE) && self.is_orphan(owner) && self.take(owner, me) {
                return (Guard { lock: self }, Taken::FromTheDead);
            }
            pause(looks);
        }
    }

    /// Takes it if it becomes free within so many polls, or its owner is found dead then. `None`:
    /// somebody who lives has it.
    pub fn lock_within(&self, polls: u32) -> Option<(Guard<'_>, Taken)> {
        let me = this_thread();
        let mut owner = 0;
        for _ in 0..polls {
            match self
                .owner
                .compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed)
            {
                Ok(_) => return Some((Guard { lock: self }, Taken::Free)),
                Err(other) => owner = other,
            }
            std::hint::spin_loop();
        }
        let orphan = polls > 1 && self.is_orphan(owner) && self.take(owner, me);
        // Made only then: a guard frees the lock at its end.
        orphan.then(|| (Guard { lock: self }, Taken::FromTheDead))
    }

    fn is_orphan(&self, owner: u64) -> bool {
        !process::is_alive((owner >> 32) as libc::pid_t)
    }

    fn take(&self, from: u64, me: u64) -> bool {
        self.owner
            .compare_exchange(from, me, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }

    /// Whether nobody holds it.
    pub fn is_free(&self) -> bool {
        self.owner.load(Ordering::Acquire) == 0
    }

    /// Whether this thread holds it.
    pub fn is_mine(&self) -> bool {
        self.owner.load(Ordering::Relaxed) == this_thread()
    }

    /// Frees the lock if this thread holds it: for a thread whose stack was
    /// abandoned. Whether it did.
    pub fn release_if_mine(&self) -> bool {
        let mine = self.is_mine();
        if mine {
            self.owner.store(0, Ordering::Release);
        }
        mine
    }
}

/// Frees the lock at its end.
#[derive(Debug)]
pub struct Guard<'l> {
    lock: &'l SpinLock,
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.lock.owner.store(0, Ordering::Release);
    }
}

/// Waits between two polls of a word that another process will change: mostly a few
/// cycles, sometimes until that process has had this processor.
pub(crate) fn pause(looks: u32) {
    if looks.is_multiple_of(SPIN) {
        // SAFETY: plain system call.
        unsafe { libc::sched_yield() };
    } else {
        std::hint::spin_loop();
    }
}

fn this_thread() -> u64 {
    let (pid, tid) = process::this_thread();
    (pid as u64) << 32 | tid as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::mailbox::SharedPages;

    #[test]
    fn one_thread_at_a_time() {
        static LOCK: SpinLock = SpinLock {
            owner: AtomicU64::new(0),
        };
        static COUNT: AtomicU64 = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let _guard = LOCK.lock();
                        let seen = COUNT.load(Ordering::Relaxed);
                        COUNT.store(seen + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(COUNT.load(Ordering::Relaxed), 30_000);
    }

    #[test]
    fn who_lives_keeps_it_and_others_do_not_wait() {
        let lock = SpinLock::default();
        let (guard, _) = lock.lock();
        for polls in [1, 100] {
            assert!(lock.lock_within(polls).is_none());
        }
        drop(guard);
        assert!(lock.lock_within(1).is_some());
        assert!(lock.is_free());
    }

    #[test]
    fn a_dead_owner_loses_it_to_who_polls() {
        let pages = SharedPages::<SpinLock>::new().expect("memory");
        let mut child = process::fork(|| {
            std::mem::forget(pages.get().lock());
            0
        })
        .expect("fork");
        child.wait();
        assert!(pages.get().lock_within(1).is_none(), "one try asks nothing");
        let taken = pages.get().lock_within(2).map(|(_, taken)| taken);
        assert_eq!(taken, Some(Taken::FromTheDead));
    }

    #[test]
    fn a_dead_owner_loses_it() {
        let pages = SharedPages::<SpinLock>::new().expect("memory");
        let mut child = process::fork(|| {
            std::mem::forget(pages.get().lock());
            0
        })
        .expect("fork");
        child.wait();
        let (guard, taken) = pages.get().lock();
        assert_eq!(taken, Taken::FromTheDead);
        drop(guard);
        assert_eq!(pages.get().lock().1, Taken::Free);
    }
}
