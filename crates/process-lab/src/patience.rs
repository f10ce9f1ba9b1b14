//! How long to wait for another process.
//!
//! By elapsed time, a process that hangs cannot be told from one that gets no
//! processor. So this counts the time that the process *has had*: while one of its
//! threads can run, its processor time; while all of them sleep, the time that the
//! waiting thread has slept, poll by poll. A busy machine, one processor for both, or a
//! debugger makes neither grow faster.

use std::time::Duration;

use libc::{clockid_t, pid_t};

/// The remaining time to wait for a process.
#[derive(Clone, Debug)]
pub struct Patience {
    process: pid_t,
    left: Duration,
    processor: Duration,
}

impl Patience {
    /// This much time for this process.
    pub fn new(process: pid_t, most: Duration) -> Patience {
        Patience {
            process,
            left: most,
            processor: processor_time(process),
        }
    }

    /// What is left of it.
    pub fn left(&self) -> Duration {
        self.left
    }

    /// After a wait that was to take so long, however long it took.
    pub fn waited(&mut self, piece: Duration) {
        let now = processor_time(self.process);
        let used = now.saturating_sub(self.processor);
        self.processor = now;
        self.charge(piece, used, wants_to_run(self.process));
    }

    fn charge(&mut self, piece: Duration, used: Duration, wants_to_run: bool) {
        let charge = match wants_to_run {
            true => used,
            false => piece.max(used),
        };
        self.left = self.left.saturating_sub(charge);
    }
}

/// The processor time of all threads of a process so far; zero if there is none.
fn processor_time(process: pid_t) -> Duration {
    let mut clock: clockid_t = 0;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both write what they are given; the number is only a name.
    let read = unsafe {
        libc::clock_getcpuclockid(process, &mut clock) == 0
            && libc::clock_gettime(clock, &mut time) == 0
    };
    match read {
        true => Duration::new(time.tv_sec as u64, time.tv_nsec as u32),
        false => Duration::ZERO,
    }
}

/// Whether a thread of the process other than the caller runs or waits for a processor
/// (or for a disk, for which it is not to blame either).
fn wants_to_run(process: pid_t) -> bool {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else {
        return false;
    };
    // SAFETY: plain system call that cannot fail.
    let own = unsafe { libc::gettid() }.to_string();
    let others = threads
        .flatten()
        .filter(|thread| *thread.file_name() != *own);
    let mut states = others.filter_map(|thread| {
        let line = std::fs::read_to_string(thread.path().join("stat")).ok()?;
        state(&line)
    });
    states.any(|state| matches!(state, 'R' | 'D'))
}

/// The state in a line of `/proc/PID/stat`: after the name, which may contain any
/// character (proc(5)).
fn state(line: &str) -> Option<char> {
    let (_, rest) = line.rsplit_once(')')?;
    rest.trim_start().chars().next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    const PIECE: Duration = Duration::from_millis(10);
    const MOST: Duration = Duration::from_millis(30);

    #[test]
    fn who_sleeps_is_charged_what_was_waited() {
        let mut patience = Patience::new(0, MOST);
        patience.charge(PIECE, Duration::ZERO, false);
        assert_eq!(patience.left(), MOST - PIECE);
    }

    #[test]
    fn who_runs_is_charged_what_it_got() {
        let mut patience = Patience::new(0, MOST);
        // On a machine that others keep busy.
        patience.charge(PIECE, Duration::ZERO, true);
        assert_eq!(patience.left(), MOST);
        patience.charge(PIECE, PIECE / 2, true);
        assert_eq!(patience.left(), MOST - PIECE / 2);
    }

    /// Both kinds of processes that hang come to an end.
    #[test]
    fn patience_ends() {
        let sleeps = process::fork(|| {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        });
        let computes = process::fork(|| {
            loop {
                std::hint::spin_loop();
            }
        });
        for child in [sleeps, computes] {
            let child = child.expect("fork");
            let mut patience = Patience::new(child.pid(), MOST);
            while !patience.left().is_zero() {
                std::thread::sleep(PIECE);
                patience.waited(PIECE);
            }
        }
    }

    #[test]
    fn processor_time_is_that_of_the_process() {
        let computes = process::fork(|| {
            loop {
                std::hint::spin_loop();
            }
        });
        let child = computes.expect("fork");
        while processor_time(child.pid()) < PIECE {
            std::thread::yield_now();
        }
        assert!(wants_to_run(child.pid()));
        // Numbers are below this (proc(5), pid_max).
        assert_eq!(processor_time(1 << 22), Duration::ZERO);
    }

    #[test]
    fn a_name_may_look_like_a_state() {
        assert_eq!(state("12 (a) R (b) S 1 2"), Some('S'));
        assert_eq!(state("12 (x"), None);
    }
}
