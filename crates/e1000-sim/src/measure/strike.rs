//! Something happens between two instructions of the driver: what another processor does meanwhile.
//!
//! **Takes** the number of an instruction of driver and hot routines, and what is to happen before it.
//! **Gives** every interleaving, if it is asked for each number: the processor's single-step trap
//! counts, so the place is exact and the same in each run.

use std::cell::Cell;
use std::ptr;

use libc::{c_int, c_void, greg_t, siginfo_t, ucontext_t};
use process_lab::signals;

use super::profile::{self, Component, enter_phase};
use super::steps;
use crate::error::LiveError;

/// The trap flag (SDM volume 1, 3.4.3.3).
const TRAP: greg_t = 0x100;

struct Strike<'a> {
    /// Instructions until it happens.
    left: u64,
    /// The instruction before; a repeated string instruction traps before each element.
    last: u64,
    act: &'a mut dyn FnMut(),
}

thread_local! {
    /// The strike of this thread, for the handler; null without one.
    static STRIKE: Cell<*mut Strike<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// Runs `work`, and `act` before its instruction with that number, from 0, of those that are the
/// driver's or the hot routines'. It does not happen if there are fewer.
///
/// `act` runs in a signal handler, while this thread is in `work`'s code outside of Rust: it may do
/// what the handlers of faulting accesses may.
///
/// # Errors
/// A system call's.
pub fn before<T>(
    instruction: u64,
    mut act: impl FnMut(),
    work: impl FnOnce() -> T,
) -> Result<T, LiveError> {
    let mut strike = Strike {
        left: instruction,
        last: 0,
        act: &mut act,
    };
    // SAFETY: all zeroes is a valid value.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: plain system call that only reads the present handler.
    if unsafe { libc::sigaction(libc::SIGTRAP, ptr::null(), &mut old) } != 0 {
        return Err(LiveError::last("asking for the handler of traps"));
    }
    signals::handle(libc::SIGTRAP, on_step)
        .map_err(|_| LiveError::last("installing the handler of strikes"))?;
    STRIKE.set((&raw mut strike).cast());
    enter_phase(Component::Dom0);
    steps::attend(true);
    let result = work();
    steps::attend(false);
    enter_phase(Component::Idle);
    STRIKE.set(ptr::null_mut());
    // SAFETY: the handler that was there.
    if unsafe { libc::sigaction(libc::SIGTRAP, &old, ptr::null_mut()) } != 0 {
        return Err(LiveError::last("restoring the handler of traps"));
    }
    Ok(result)
}

extern "C" fn on_step(signal: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let strike = STRIKE.get();
    if strike.is_null() {
        signals::give_up(signal);
    }
    // SAFETY: set by `before`, which waits for the code that was interrupted; only this handler
    // uses it meanwhile, and it does not interrupt itself.
    let strike = unsafe { &mut *strike };
    // SAFETY: the kernel gives a handler the context, which is its own.
    let context = unsafe { &mut *context.cast::<ucontext_t>() };
    let rip = context.uc_mcontext.gregs[libc::REG_RIP as usize] as u64;
    let again = std::mem::replace(&mut strike.last, rip) == rip;
    // SAFETY: this is a handler, and the context its own.
    let owner = unsafe { profile::owner(context) };
    if again || !matches!(owner, Component::Driver | Component::Support) {
        return;
    }
    match strike.left.checked_sub(1) {
        Some(left) => strike.left = left,
        None => {
            // Once, and the rest at full speed.
            context.uc_mcontext.gregs[libc::REG_EFL as usize] &= !TRAP;
            (strike.act)();
        }
    }
}
