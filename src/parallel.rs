//! Many inputs at once: results in the order of the inputs, whatever the
//! number of threads.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use command_line::codes::CommandCode;
use command_line::failure::{Failure, Status};
use command_line::output::say;

/// Cores that this process may use.
pub fn cores() -> NonZero<usize> {
    thread::available_parallelism().unwrap_or(NonZero::<usize>::MIN)
}

/// Does `job` for every input on `threads` threads and passes each result to
/// `sink`, in the order of the inputs and on the calling thread. A failed job is
/// printed and does not stop the rest; an error of `sink` does.
///
/// # Errors
/// The first error of `sink`, else [`Failure::Reported`] with the gravest
/// status of what was printed.
pub fn each<T: AsRef<Path> + Sync, R: Send>(
    inputs: &[T],
    threads: NonZero<usize>,
    job: impl Fn(&T) -> Result<R, Failure> + Sync,
    mut sink: impl FnMut(&T, Result<R, Failure>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let progress = Progress::new(inputs.len());
    let mut status = Status::Done;
    let mut failed = 0;
    let mut take = |input: &T, result: Result<R, Failure>| {
        let taken = progress.around(|| {
            if let Err(failure) = &result {
                failure.print();
                failed += 1;
                status = status.max(failure.status());
            }
            sink(input, result)
        });
        progress.step();
        taken
    };
    let guarded = |input: &T| guard(input, &job);
    match threads.get().min(inputs.len()) {
        0 | 1 => inputs
            .iter()
            .try_for_each(|input| take(input, guarded(input)))?,
        threads => in_order(inputs, threads, guarded, take)?,
    }
    drop(progress);
    if failed > 0 && inputs.len() > 1 {
        say(&format!(
            "twin: {failed} of {} files failed\n",
            inputs.len()
        ));
    }
    match status {
        Status::Done => Ok(()),
        status => Err(Failure::Reported(status)),
    }
}

/// Does `job` for one input. A panic is a defect of this program that this input
/// triggers: it becomes a failure, so that the others go on.
pub fn guard<T: AsRef<Path>, R>(
    input: &T,
    job: impl Fn(&T) -> Result<R, Failure>,
) -> Result<R, Failure> {
    let name = || command_line::input::name(input.as_ref());
    unless_defect(name, || job(input))
}

/// Does something; a panic becomes a failure of what has this name.
pub fn unless_defect<R>(
    name: impl Fn() -> String,
    job: impl FnOnce() -> Result<R, Failure>,
) -> Result<R, Failure> {
    catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|_| {
        let why = "internal error: twin met a defect of its own (above); please report this";
        Err(Failure::refused(name(), CommandCode::Internal, why))
    })
}

/// Workers take the next input each; the calling thread puts results in order.
fn in_order<T: Sync, R: Send>(
    inputs: &[T],
    threads: usize,
    job: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(&T, R) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let next = AtomicUsize::new(0);
    let work = |sender: mpsc::Sender<(usize, R)>| {
        loop {
            let i = next.fetch_add(1, Ordering::Relaxed);
            let Some(input) = inputs.get(i) else { return };
            if sender.send((i, job(input))).is_err() {
                return;
            }
        }
    };
    thread::scope(|scope| {
        let (sender, results) = mpsc::channel();
        let work = &work;
        let spawn = |_: &usize| {
            let sender = sender.clone();
            let worker = thread::Builder::new().spawn_scoped(scope, move || work(sender));
            worker.is_ok()
        };
        // Where no thread is allowed (RLIMIT_NPROC), this one does all.
        match (0..threads).take_while(spawn).count() {
            0 => work(sender),
            _ => drop(sender),
        }
        let mut early = BTreeMap::new();
        let mut due = 0;
        for (i, result) in results {
            early.insert(i, result);
            while let Some(result) = early.remove(&due) {
                // Dropping the receiver on an error ends the workers.
                take(&inputs[due], result)?;
                due += 1;
            }
        }
        Ok(())
    })
}

/// A progress bar on standard error if that is a terminal and there are
/// several inputs.
struct Progress(ProgressBar);

impl Progress {
    fn new(inputs: usize) -> Progress {
        if inputs < 2 {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(Some(inputs as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len} files, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress(bar)
    }

    /// Does something that may print.
    fn around<R>(&self, print: impl FnOnce() -> R) -> R {
        self.0.suspend(print)
    }

    fn step(&self) {
        self.0.inc(1);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
