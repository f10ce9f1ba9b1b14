//! Processes: made by one function, and asked whether they live.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::os::fd::OwnedFd;

use iced_x86::{Decoder, DecoderOptions, Encoder};
use libc::{c_int, pid_t};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open,
    set_parent_process_death_signal, waitpid,
};
use rustix::thread::gettid;

thread_local! {
    /// Process and thread number, once asked for; a child begins anew.
    static NUMBERS: Cell<(pid_t, pid_t)> = const { Cell::new((0, 0)) };
}

/// The numbers of this process and thread, without a system call most times.
pub fn this_thread() -> (pid_t, pid_t) {
    let known = NUMBERS.get();
    if known.0 != 0 {
        return known;
    }
    let numbers = (getpid().as_raw_pid(), gettid().as_raw_pid());
    NUMBERS.set(numbers);
    numbers
}

/// A child process, which is killed when the value is dropped.
#[derive(Debug)]
pub struct Child {
    pid: pid_t,
    status: Option<c_int>,
}

/// Makes the tables that iced makes when they are first used. A child that is forked while another thread makes one
/// would wait for that thread, which it does not have.
fn make_tables() {
    let nop = Decoder::new(64, &[0x90], DecoderOptions::NONE).decode();
    // It can be encoded; what matters is that it was tried.
    let _ = Encoder::new(64).encode(&nop, 0);
    let _ = nop.op_code();
}

/// Forks. The child runs `work` and ends with the status that it returns; it
/// dies with the thread that made it. Use it before there are other threads:
/// the child has copies of the locks they hold. (Tests have them: of what children use, iced's tables are
/// made before.)
pub fn fork(work: impl FnOnce() -> c_int) -> io::Result<Child> {
    make_tables();
    // SAFETY: the child goes on with copies of what this thread has, and takes
    // no lock but the C library's allocator's, which fork keeps usable.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            NUMBERS.set((0, 0));
            // Linux has it since 2.1.57.
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            let caught = caught.inspect_err(|panic| say(panic.as_ref()));
            // SAFETY: ends the process without running what belongs to the
            // parent's other threads.
            unsafe { libc::_exit(caught.unwrap_or(101)) }
        }
        pid => Ok(Child { pid, status: None }),
    }
}

/// Says on stderr itself what a child panicked with: a test runner keeps what its threads print
/// and would lose it with the child.
fn say(panic: &(dyn Any + Send)) {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    if let Some(text) = text {
        let line = format!("a child process panicked: {text}\n");
        // Nobody is left to tell if that fails.
        let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    }
}

impl Child {
    /// Its number, for signals.
    pub fn pid(&self) -> pid_t {
        self.pid
    }

    /// Whether it still runs.
    pub fn is_alive(&self) -> bool {
        self.status.is_none() && is_alive(self.pid)
    }

    /// Waits for its end: its wait status, or `None` if somebody else has waited for it.
    pub fn wait(&mut self) -> Option<c_int> {
        self.reap(WaitOptions::empty());
        self.status
    }

    /// Kills it, if it is still there.
    pub fn kill(&mut self) {
        if let (None, Some(pid)) = (self.status, Pid::from_raw(self.pid)) {
            // It is our own child, not yet waited for: the number is nobody else's, and this cannot fail.
            let _ = kill_process(pid, Signal::KILL);
            self.wait();
        }
    }

    /// How it ended, if it has: `died of signal 11`.
    pub fn fate(&mut self) -> Option<String> {
        self.reap(WaitOptions::NOHANG);
        self.status.map(fate)
    }

    fn reap(&mut self, options: WaitOptions) {
        if self.status.is_some() {
            return;
        }
        // Our own child, not yet waited for. The profiler's signals interrupt.
        if let Ok(Some((_, status))) = retry_on_intr(|| waitpid(Pid::from_raw(self.pid), options)) {
            self.status = Some(status.as_raw());
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Waits until all have ended. The first one that ends otherwise than with status 0 ends the others, which may wait for it
/// without end.
///
/// # Errors
/// That one's number, and how it ended.
pub fn wait_for_all(children: &mut [Child]) -> Result<(), String> {
    while children.iter().any(|child| child.status.is_none()) {
        for number in ended(children).map_err(|error| error.to_string())? {
            if children[number].wait() == Some(0) {
                continue;
            }
            let how = children[number].fate().unwrap_or_default();
            children.iter_mut().for_each(Child::kill);
            return Err(format!("child {number} {how}"));
        }
    }
    Ok(())
}

/// Waits until one has ended that was not waited for, and gives the numbers of those that have.
fn ended(children: &[Child]) -> io::Result<Vec<usize>> {
    let mut running = Vec::new();
    for (number, child) in children.iter().enumerate() {
        if child.status.is_none() {
            running.push((number, open(child.pid)?));
        }
    }
    let mut polled: Vec<PollFd<'_>> = running
        .iter()
        .map(|(_, file)| PollFd::new(file, PollFlags::IN))
        .collect();
    match poll(&mut polled, None) {
        // Nothing is ready then.
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready = running.iter().zip(&polled);
    let ready = ready.filter(|(_, polled)| !polled.revents().is_empty());
    Ok(ready.map(|((number, _), _)| *number).collect())
}

/// A descriptor that is readable once the process has ended (pidfd_open(2)).
fn open(pid: pid_t) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// How a process ended, from its wait status: `died of signal 11`.
pub fn fate(status: c_int) -> String {
    match libc::WIFSIGNALED(status) {
        true => format!("died of signal {}", libc::WTERMSIG(status)),
        false => format!("ended with status {}", libc::WEXITSTATUS(status)),
    }
}

/// Whether the process runs: one that ended and was not waited for does not.
///
/// Takes some system calls; for waits that were too long already.
pub fn is_alive(pid: pid_t) -> bool {
    let Ok(file) = open(pid) else {
        return false;
    };
    let mut polled = [PollFd::new(&file, PollFlags::IN)];
    let ended = poll(&mut polled, Some(&Timespec::default()));
    // Interrupted by the profiler, it has not ended either.
    !matches!(ended, Ok(1..))
}

#[cfg(test)]
mod tests {
    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn a_process_that_ended_is_not_alive_even_before_it_is_waited_for() {
        assert!(is_alive(this_thread().0));
        let mut child = fork(|| 3).expect("fork");
        let unreaped = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        let pid = Pid::from_raw(child.pid()).expect("a number");
        waitid(WaitId::Pid(pid), unreaped).expect("waitid");
        assert!(!is_alive(child.pid()));
        assert_eq!(child.fate().as_deref(), Some("ended with status 3"));
        assert!(!is_alive(child.pid()));
    }

    fn waits_for_ever() -> c_int {
        loop {
            // SAFETY: waits for a signal.
            unsafe { libc::pause() };
        }
    }

    #[test]
    fn who_fails_ends_those_who_wait_for_it() {
        for failing in 0..3 {
            let mut children = [0, 1, 2].map(|number| {
                let work = move || match number == failing {
                    true => 7,
                    false => waits_for_ever(),
                };
                fork(work).expect("fork")
            });
            let failed = wait_for_all(&mut children);
            let expected = format!("child {failing} ended with status 7");
            assert_eq!(failed, Err(expected));
            assert!(children.iter().all(|child| !child.is_alive()));
        }
        let mut children = [1, 2, 3].map(|_| fork(|| 0).expect("fork"));
        assert_eq!(wait_for_all(&mut children), Ok(()));
        assert_eq!(wait_for_all(&mut children), Ok(()), "again");
        let mut killed = [fork(waits_for_ever).expect("fork")];
        let pid = Pid::from_raw(killed[0].pid()).expect("a number");
        kill_process(pid, Signal::KILL).expect("kill");
        let failed = wait_for_all(&mut killed);
        assert_eq!(failed, Err("child 0 died of signal 9".to_owned()));
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let child = fork(waits_for_ever).expect("fork");
        let pid = child.pid();
        assert!(child.is_alive());
        drop(child);
        assert!(!is_alive(pid));
    }
}
