//! Faults in the driver's own stack, from the trusted side, while the driver waits in
//! an import: the one that passes a received packet on.
//!
//! Return addresses are found by the code that takes them off ([`super::unwind`]); the canary
//! is known; the other words are saved registers and variables of the driver's functions
//! and of the hot routines' below them, and what earlier calls left there.
//!
//! A return address is replaced by any value, every other time by a place in the
//! hypervisor's code. In each case the function that was to return there aborts.

use std::ffi::c_int;
use std::sync::atomic::{AtomicPtr, Ordering};

use process_lab::random::Random;
use process_lab::runtime::{self, Cpu, Frame};

use super::fault::{FaultKind, Struck, wild_address};
use super::faulty::Armed;
use super::unwind;
use crate::engines::staged;
use crate::hypervisor::instance::stack_in_use;
use crate::hypervisor::payload::Payload;
use crate::memory::CANARY;

/// The fault to strike inside the running poll, or null.
static ARMED: AtomicPtr<Armed<'static>> = AtomicPtr::new(std::ptr::null_mut());

/// Runs `poll` with faults struck inside of it.
pub fn strike_inside<T>(armed: &mut Armed<'_>, poll: impl FnOnce() -> T) -> T {
    let pointer: *mut Armed<'_> = armed;
    ARMED.store(pointer.cast(), Ordering::SeqCst);
    let result = poll();
    ARMED.store(std::ptr::null_mut(), Ordering::SeqCst);
    result
}

/// In place of the service of that name: strikes, then serves.
pub(super) extern "C" fn host_receive(cpu: *mut Cpu, frame: *mut Frame) -> c_int {
    let armed = ARMED.load(Ordering::SeqCst);
    // SAFETY: `strike_inside` waits on this thread with its borrow, which it
    // does not use meanwhile; the runtime gives the frame of a driver that
    // waits, so its stack is ours.
    unsafe {
        if let Some(armed) = armed.as_mut() {
            let [_, _, buffer, ..] = (*frame).registers;
            armed.strike_inside(buffer, (*frame).site, stack_in_use((*frame).stack));
        }
    }
    staged::HOST_RECEIVE(cpu, frame)
}

/// Whether return addresses are on the stack that data is on: not with a window
/// (`docs/spec/window.md`).
fn keeps_returns(payload: &Payload) -> bool {
    payload.driver.variant.scheme.window_size().is_none()
}

/// Strikes a word of the stack below the function that goes on at `site`.
///
/// # Panics
/// If the code does not tell where the return addresses are.
pub fn strike(
    kind: FaultKind,
    (site, stack): (u64, &mut [u64]),
    payload: &Payload,
    random: &mut Random,
    (dom0_ram, hypervisor_heap): (u64, u64),
) -> Option<Struck> {
    let returns = if keeps_returns(payload) {
        let found = unwind::return_addresses(payload, site, stack);
        found.unwrap_or_else(|why| panic!("no return addresses: {why}"))
    } else {
        Vec::new()
    };
    let texts = [
        payload.hot.text(),
        payload.driver.text(),
        (runtime::entry_text().start, runtime::entry_text().end),
    ];
    let wanted = |place: &usize| match kind {
        FaultKind::StackCanary => stack[*place] == CANARY,
        FaultKind::StackReturn => returns.contains(place),
        _ => !returns.contains(place) && stack[*place] != CANARY,
    };
    let places: Vec<usize> = (0..stack.len()).filter(wanted).collect();
    if places.is_empty() {
        return None;
    }
    let place = places[random.below(places.len() as u64) as usize];
    let before = stack[place];
    let mut after = wild_address(random, dom0_ram, hypervisor_heap);
    if kind == FaultKind::StackReturn {
        if random.one_in(2) {
            let (start, end) = texts[random.below(texts.len() as u64) as usize];
            after = start + random.below(end - start);
        }
    } else if random.one_in(2) {
        after = before ^ 1 << random.below(64);
    }
    stack[place] = after;
    Some(Struck {
        what: format!("{}, word {place} of {}", kind.as_str(), stack.len()),
        at: (&raw const stack[place]) as u64,
        size: 8,
        before,
        after,
    })
}
