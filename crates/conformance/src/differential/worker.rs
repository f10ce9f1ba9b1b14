//! Worker processes: forked; one byte is a request and one byte an answer. All else
//! is in shared memory.
//!
//! A worker survives many runs, with faults of the driver. If it dies anyway, the
//! parent sees the closed pipe.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd};
use std::time::{Duration, Instant};

use libc::c_int;
use process_lab::error::Error;
use process_lab::patience::Patience;
use process_lab::process::fate;
use process_lab::shared::Shared;

use crate::differential::trace::{Channel, Request, RunOutcome};

/// The machine that a worker runs functions on.
pub trait Machine {
    /// Performs the channel's request on `memory`.
    fn run(&mut self, memory: &mut Shared, channel: &mut Channel) -> RunOutcome;
}

/// Time of its own that a run may take before the worker counts as hung.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between polls.
const PIECE: Duration = Duration::from_millis(200);

/// A worker process, seen from its parent.
pub struct Worker {
    name: &'static str,
    pid: libc::pid_t,
    to: File,
    from: File,
    /// dom0's memory of this worker.
    pub memory: Shared,
    /// Requests and outcomes.
    pub channel: Channel,
}

fn pipe() -> Result<(File, File), Error> {
    let mut ends = [0; 2];
    // SAFETY: the array has room for two descriptors.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(Error::last("making a pipe"));
    }
    // SAFETY: both are new and have no other owner.
    Ok(unsafe { (File::from_raw_fd(ends[0]), File::from_raw_fd(ends[1])) })
}

impl Worker {
    /// Starts a worker whose machine `make` makes in the new process.
    pub fn start<M: Machine>(
        name: &'static str,
        mut memory: Shared,
        mut channel: Channel,
        make: impl FnOnce(&Shared) -> Result<M, Error>,
    ) -> Result<Worker, Error> {
        let (mut request_read, request_write) = pipe()?;
        let (reply_read, mut reply_write) = pipe()?;
        // SAFETY: the child goes on with copies of what this thread has. Other
        // threads do not exist there; it takes no lock of theirs but the C
        // library's allocator's, which fork keeps usable.
        let pid = unsafe { libc::fork() };
        if pid < 0 {
            return Err(Error::last("starting a worker"));
        }
        if pid == 0 {
            drop((request_write, reply_read));
            // SAFETY: the worker is not to outlive its parent's thread.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
            let status = match make(&memory) {
                Ok(mut machine) => serve(
                    &mut machine, &mut memory, &mut channel, &mut request_read, &mut reply_write,
                ),
                Err(error) => {
                    let _ = writeln!(std::io::stderr(), "{name} worker: {error}");
                    1
                }
            };
            // SAFETY: ends the process without running what belongs to the
            // parent's other threads.
            unsafe { libc::_exit(status) };
        }
        Ok(Worker {
            name,
            pid,
            to: request_write,
            from: reply_read,
            memory,
            channel,
        })
    }

    pub fn pid(&self) -> i32 {
        self.pid
    }

    /// Lets it begin a run on what `memory` and the request hold.
    pub fn begin(&mut self, request: &Request) {
        self.channel.set_request(request);
        // A dead worker is noticed by `finish`.
        let _ = self.to.write_all(b"r");
    }

    /// Waits for the run's end. The error says what happened to the worker.
    pub fn finish(&mut self) -> Result<RunOutcome, String> {
        let mut patience = Patience::new(self.pid, PATIENCE);
        loop {
            let mut poll = libc::pollfd {
                fd: self.from.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            // SAFETY: one descriptor, which is open.
            let ready = unsafe { libc::poll(&mut poll, 1, PIECE.as_millis() as c_int) };
            if ready > 0 && poll.revents & libc::POLLIN != 0 {
                let mut reply = [0];
                return match self.from.read_exact(&mut reply) {
                    Ok(()) => Ok(self.channel.outcome()),
                    Err(_) => Err(self.fate()),
                };
            }
            // Its pipe may still be open in another worker.
            if let Some(fate) = self.death() {
                return Err(fate);
            }
            patience.waited(PIECE);
            if patience.left().is_zero() {
                return Err("does not answer".to_owned());
            }
        }
    }

    /// The worker's name, for messages.
    pub fn name(&self) -> &'static str {
        self.name
    }

    fn fate(&mut self) -> String {
        self.death().unwrap_or_else(|| "closed its pipe".to_owned())
    }

    fn death(&mut self) -> Option<String> {
        let mut status = 0;
        // SAFETY: our own child.
        if unsafe { libc::waitpid(self.pid, &mut status, libc::WNOHANG) } != self.pid {
            return None;
        }
        self.pid = 0;
        Some(fate(status))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if self.pid > 0 {
            // SAFETY: our own child, which nothing else waits for.
            unsafe {
                libc::kill(self.pid, libc::SIGKILL);
                libc::waitpid(self.pid, std::ptr::null_mut(), 0);
            }
        }
    }
}

fn serve(
    machine: &mut impl Machine,
    memory: &mut Shared,
    channel: &mut Channel,
    requests: &mut File,
    replies: &mut File,
) -> i32 {
    let mut byte = [0];
    while requests.read_exact(&mut byte).is_ok() {
        let start = Instant::now();
        let mut outcome = machine.run(memory, channel);
        outcome.time = start.elapsed().as_nanos() as u64;
        channel.set_outcome(&outcome);
        if replies.write_all(&byte).is_err() {
            break;
        }
    }
    0
}
