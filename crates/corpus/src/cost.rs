//! What a run costs: elapsed time, processor time, memory at peak
//! (getrusage(2)).

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::files::is_compressed;

/// Cost of a run.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// Elapsed, in seconds.
    pub seconds: f64,
    /// Processor time, in seconds.
    pub processor: f64,
    /// Most memory of one process, in MiB.
    pub peak: f64,
}

/// Measures this process, or its children.
pub struct Meter {
    start: Instant,
    who: libc::c_int,
    before: f64,
}

impl Meter {
    /// Of this process.
    pub fn of_this_process() -> Meter {
        Meter::of(libc::RUSAGE_SELF)
    }

    /// Of its children that ended.
    pub fn children() -> Meter {
        Meter::of(libc::RUSAGE_CHILDREN)
    }

    fn of(who: libc::c_int) -> Meter {
        Meter {
            start: Instant::now(),
            who,
            before: usage(who).0,
        }
    }

    /// What it cost since.
    pub fn read(&self) -> Cost {
        let (processor, peak) = usage(self.who);
        Cost {
            seconds: self.start.elapsed().as_secs_f64(),
            processor: processor - self.before,
            peak,
        }
    }
}

/// Processor time in seconds and peak memory in MiB.
fn usage(who: libc::c_int) -> (f64, f64) {
    // SAFETY: rusage is plain data that getrusage fills in; `who` is one of its
    // two constants.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(who, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    // ru_maxrss is in KiB.
    let time = seconds(usage.ru_utime) + seconds(usage.ru_stime);
    (time, usage.ru_maxrss as f64 / 1024.0)
}

/// Runs `objdump -d` over the files, in several processes at a time.
///
/// # Errors
/// objdump cannot be run, or cannot read a file.
pub fn disassemble(files: &[PathBuf], processes: usize) -> std::io::Result<Cost> {
    if let Some(file) = files.iter().find(|file| is_compressed(file)) {
        let why = "objdump reads no compressed module: give --no-objdump";
        return Err(std::io::Error::other(format!("{}: {why}", file.display())));
    }
    let meter = Meter::children();
    let next = AtomicUsize::new(0);
    let results: Vec<std::io::Result<()>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..processes.max(1))
            .map(|_| {
                scope.spawn(|| {
                    while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                        Command::new("objdump")
                            .arg("-d")
                            .arg(file)
                            .stdout(Stdio::null())
                            .stderr(Stdio::null())
                            .status()?;
                    }
                    Ok(())
                })
            })
            .collect();
        let panicked = || Err(std::io::Error::other("a worker panicked"));
        workers
            .into_iter()
            .map(|w| w.join().unwrap_or_else(|_| panicked()))
            .collect()
    });
    results.into_iter().collect::<std::io::Result<()>>()?;
    Ok(meter.read())
}
