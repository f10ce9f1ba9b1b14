//! Programs that this one runs and waits for: a signal that ends this one ends them, too.
//!
//! A signal from a terminal reaches them anyway. One that is sent to this process alone
//! (`kill`, `make`) would leave them behind, with files that they have not finished.
//!
//! Each is started and listed under one lock, and is reaped under it. So the number of a
//! listed process is not given to another one.

use std::collections::HashSet;
use std::io;
use std::process::{Command, ExitStatus};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

/// Those that run.
static LIST: LazyLock<Mutex<HashSet<Pid>>> = LazyLock::new(Mutex::default);

fn list() -> MutexGuard<'static, HashSet<Pid>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a program to its end.
///
/// # Errors
/// It cannot be started.
pub fn status(command: &mut Command) -> io::Result<ExitStatus> {
    let (mut child, pid) = {
        let mut list = list();
        let child = command.spawn()?;
        let pid = Pid::from_child(&child);
        list.insert(pid);
        (child, pid)
    };
    wait_for_end(pid);
    let mut list = list();
    let status = child.wait();
    list.remove(&pid);
    status
}

/// Waits for the end of a process, which keeps its number.
fn wait_for_end(pid: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
}

/// Ends all of them by a signal, and waits until they have ended. Whoever wants to start more
/// waits for ever, so the caller has to end the program.
pub fn end_all(signal: i32) {
    let list = list();
    if let Some(signal) = Signal::from_named_raw(signal) {
        for pid in list.iter() {
            // One that has ended is not reaped yet: the signal does nothing.
            let _ = kill_process(*pid, signal);
        }
        list.iter().for_each(|pid| wait_for_end(*pid));
    }
    std::mem::forget(list);
}
