//! Worker processes: forked; one byte is a request and one byte an answer. All else
//! is in shared memory.
//!
//! A worker survives many runs, with faults of the driver. If it dies anyway, the
//! parent sees the closed pipe.

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::time::{Duration, Instant};

use process_lab::error::Error;
use process_lab::patience::Patience;
use process_lab::process::{Child, fork};
use process_lab::shared::Shared;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

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
/// The same, for poll(2).
const PIECE_SPEC: Timespec = Timespec {
    tv_sec: PIECE.as_secs() as i64,
    tv_nsec: PIECE.subsec_nanos() as i64,
};

/// A worker process, seen from its parent.
pub struct Worker {
    name: &'static str,
    child: Child,
    to: PipeWriter,
    from: PipeReader,
    /// dom0's memory of this worker.
    pub memory: Shared,
    /// Requests and outcomes.
    pub channel: Channel,
}

impl Worker {
    /// Starts a worker whose machine `make` makes in the new process.
    pub fn start<M: Machine>(
        name: &'static str,
        mut memory: Shared,
        mut channel: Channel,
        make: impl FnOnce(&Shared) -> Result<M, Error>,
    ) -> Result<Worker, Error> {
        let pipes = || Ok((pipe()?, pipe()?));
        let ((mut requests, to), (from, mut replies)) =
            pipes().map_err(Error::system("making a pipe"))?;
        // The worker has copies of both other ends, too: it ends when this value is dropped, not at the end of a pipe.
        let child = fork(|| match make(&memory) {
            Ok(mut machine) => serve(
                &mut machine, &mut memory, &mut channel, &mut requests, &mut replies,
            ),
            Err(error) => {
                let _ = writeln!(std::io::stderr(), "{name} worker: {error}");
                1
            }
        });
        let child = child.map_err(Error::system("starting a worker"))?;
        Ok(Worker {
            name,
            child,
            to,
            from,
            memory,
            channel,
        })
    }

    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// Lets it begin a run on what `memory` and the request hold.
    pub fn begin(&mut self, request: &Request) {
        self.channel.set_request(request);
        // A dead worker is noticed by `finish`.
        let _ = self.to.write_all(b"r");
    }

    /// Waits for the run's end. The error says what happened to the worker.
    pub fn finish(&mut self) -> Result<RunOutcome, String> {
        let mut patience = Patience::new(self.child.pid(), PATIENCE);
        loop {
            let mut polled = [PollFd::new(&self.from, PollFlags::IN)];
            // What fails or is interrupted is a wait without news.
            let _ = poll(&mut polled, Some(&PIECE_SPEC));
            if polled[0].revents().contains(PollFlags::IN) {
                let mut reply = [0];
                return match self.from.read_exact(&mut reply) {
                    Ok(()) => Ok(self.channel.outcome()),
                    Err(_) => Err(self.fate()),
                };
            }
            // Its pipe may still be open in another worker.
            if let Some(fate) = self.child.fate() {
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
        let fate = self.child.fate();
        fate.unwrap_or_else(|| "closed its pipe".to_owned())
    }
}

fn serve(
    machine: &mut impl Machine,
    memory: &mut Shared,
    channel: &mut Channel,
    requests: &mut PipeReader,
    replies: &mut PipeWriter,
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
