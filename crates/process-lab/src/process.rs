//! Processes: made by one function, and asked whether they live.

use std::any::Any;
use std::cell::Cell;
use std::io;

use libc::{c_int, pid_t};

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
    // SAFETY: both cannot fail.
    let numbers = unsafe { (libc::getpid(), libc::gettid()) };
    NUMBERS.set(numbers);
    numbers
}

/// A child process, which is killed when the value is dropped.
#[derive(Debug)]
pub struct Child {
    pid: pid_t,
    status: Option<c_int>,
}

/// Forks. The child runs `work` and ends with the status that it returns; it
/// dies with the thread that made it. Use it before there are other threads:
/// the child has copies of the locks they hold.
pub fn fork(work: impl FnOnce() -> c_int) -> io::Result<Child> {
    // SAFETY: the child goes on with copies of what this thread has, and takes
    // no lock but the C library's allocator's, which fork keeps usable.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            NUMBERS.set((0, 0));
            // SAFETY: plain system call.
            unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
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
        // SAFETY: plain system call with a buffer of that length.
        unsafe { libc::write(libc::STDERR_FILENO, line.as_ptr().cast(), line.len()) };
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

    /// Waits for its end.
    pub fn wait(&mut self) {
        self.reap(0);
    }

    /// Kills it, if it is still there.
    pub fn kill(&mut self) {
        if self.status.is_none() {
            // SAFETY: our own child, not yet waited for.
            unsafe { libc::kill(self.pid, libc::SIGKILL) };
            self.wait();
        }
    }

    /// How it ended, if it has: `died of signal 11`.
    pub fn fate(&mut self) -> Option<String> {
        self.reap(libc::WNOHANG);
        self.status.map(fate)
    }

    fn reap(&mut self, options: c_int) {
        if self.status.is_some() {
            return;
        }
        let mut status = 0;
        // SAFETY: our own child, not yet waited for.
        if unsafe { libc::waitpid(self.pid, &mut status, options) } == self.pid {
            self.status = Some(status);
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill();
    }
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
    // SAFETY: plain system call; the number is only a name.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as c_int;
    if fd < 0 {
        return false;
    }
    let mut poll = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor, which is ours: readable once the process ended
    // (pidfd_open(2)).
    let ended = unsafe { libc::poll(&mut poll, 1, 0) };
    // SAFETY: ours, and used no more.
    unsafe { libc::close(fd) };
    // Interrupted by the profiler (-1), it has not ended either.
    ended < 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_is_not_alive_even_before_it_is_waited_for() {
        assert!(is_alive(this_thread().0));
        let mut child = fork(|| 3).expect("fork");
        // SAFETY: all zeroes is a valid value.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let unreaped = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: our child, left unreaped.
        unsafe { libc::waitid(libc::P_PID, child.pid() as u32, &mut info, unreaped) };
        assert!(!is_alive(child.pid()));
        assert_eq!(child.fate().as_deref(), Some("ended with status 3"));
        assert!(!is_alive(child.pid()));
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let child = fork(|| {
            loop {
                // SAFETY: waits for a signal.
                unsafe { libc::pause() };
            }
        })
        .expect("fork");
        let pid = child.pid();
        assert!(child.is_alive());
        drop(child);
        assert!(!is_alive(pid));
    }
}
