//! Processes: made by one function, and asked whether they live.

use std::any::Any;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

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

/// Waits until all have ended. The first one that ends otherwise than with status 0 ends the others, which may wait for it
/// without end.
///
/// # Errors
/// That one's number, and how it ended.
pub fn wait_for_all(children: &mut [Child]) -> Result<(), String> {
    while children.iter().any(|child| child.status.is_none()) {
        for number in ended(children).map_err(|error| error.to_string())? {
            children[number].wait();
            if children[number].status == Some(0) {
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
    let mut polled: Vec<libc::pollfd> = running
        .iter()
        .map(|(_, file)| libc::pollfd {
            fd: file.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    // SAFETY: as many descriptors as there are, all open.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, -1) };
    match (ready, io::Error::last_os_error()) {
        (-1, error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
        _ => {}
    }
    let ready = running.iter().zip(&polled);
    let ready = ready.filter(|(_, polled)| polled.revents != 0);
    Ok(ready.map(|((number, _), _)| *number).collect())
}

/// A descriptor that is readable once the process has ended (pidfd_open(2)).
fn open(pid: pid_t) -> io::Result<OwnedFd> {
    // SAFETY: plain system call; the number is only a name.
    match unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) } as c_int {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: new, and nobody else's.
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
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
    let Ok(file) = open(pid) else {
        return false;
    };
    let mut poll = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: one descriptor, which is open.
    let ended = unsafe { libc::poll(&mut poll, 1, 0) };
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
        // SAFETY: our own child.
        unsafe { libc::kill(killed[0].pid(), libc::SIGKILL) };
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
