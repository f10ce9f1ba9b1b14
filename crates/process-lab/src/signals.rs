//! Signals of a worker: handlers on a stack of their own, and the timer.

use libc::{c_int, c_void, siginfo_t};

use crate::error::Error;

/// A handler with the interrupted context.
pub type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);

/// Bytes of the alternate stack: handlers run the import model's code.
const STACK: usize = 1 << 18;

/// The signals that the kernel sends for the processor's exceptions.
pub const PROCESSOR: [c_int; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGILL,
    libc::SIGFPE,
    libc::SIGTRAP,
];

/// TF, DF and AC: they may be set when a driver is left, and must be clear in host code.
pub const DIRTY_FLAGS: libc::greg_t = 0x40500;

/// Gives the thread a stack for handlers, for as long as the process lives.
pub fn alternate_stack() -> Result<(), Error> {
    // SAFETY: a new mapping at an address of the kernel's choice, never freed.
    let stack = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(
            std::ptr::null_mut(),
            STACK,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if stack == libc::MAP_FAILED {
        return Err(Error::last("mapping a signal stack"));
    }
    let description = libc::stack_t {
        ss_sp: stack,
        ss_flags: 0,
        ss_size: STACK,
    };
    // SAFETY: the memory is ours and stays.
    match unsafe { libc::sigaltstack(&description, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Error::last("giving a signal stack")),
    }
}

/// Installs `handler` on the alternate stack.
pub fn handle(signal: c_int, handler: Handler) -> Result<(), Error> {
    handle_at(signal, handler as *const () as usize)
}

/// As [`handle`], for a handler that begins in assembly: `entry` is the address
/// of code that is called as a [`Handler`] is.
pub fn handle_at(signal: c_int, entry: usize) -> Result<(), Error> {
    // SAFETY: all zeroes is a valid `sigaction` (no flags, empty mask).
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = entry;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
    // SAFETY: the entry has the signature that SA_SIGINFO promises.
    match unsafe { libc::sigaction(signal, &action, std::ptr::null_mut()) } {
        0 => Ok(()),
        _ => Err(Error::last("installing a signal handler")),
    }
}

/// SIGPROF after that much processor time and every millisecond from then on;
/// 0 stops it.
pub fn arm_timer(microseconds: u64) {
    let time = |us: u64| libc::timeval {
        tv_sec: (us / 1_000_000) as i64,
        tv_usec: (us % 1_000_000) as i64,
    };
    let again = if microseconds == 0 { 0 } else { 1000 };
    let timer = libc::itimerval {
        it_interval: time(again),
        it_value: time(microseconds),
    };
    // SAFETY: plain system call; it cannot fail with these arguments.
    unsafe { libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut()) };
}

/// A fault that is not the driver's: the worker is broken and dies of it, which
/// its parent reports.
pub fn give_up(signal: c_int) -> ! {
    // SAFETY: these system calls end the process.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
        libc::_exit(100 + signal)
    }
}
