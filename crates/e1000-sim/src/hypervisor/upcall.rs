//! The hypervisor's side of a call into dom0.

use std::ops::Range;

use thiserror::Error;

use crate::dom0::Failure;
use crate::dom0::oops::Oops;
use crate::transport::command::{OOPS, RETURNED};
use crate::transport::mailbox::{STACK_ARGUMENTS, UpcallRequest, UpcallSlot, WINDOW};
use crate::transport::rendezvous::{Limits, NoAnswer};

/// Why an upcall has no result.
#[derive(Clone, Debug, Error)]
pub enum UpcallError {
    /// dom0 did not answer: too late, dead, or still busy with an upcall that
    /// was given up.
    #[error(transparent)]
    NoAnswer(#[from] NoAnswer),
    /// The function was left by a fault; dom0 lives on.
    #[error("the upcall ended in an oops of dom0: {0}")]
    Oops(Box<Oops>),
    /// dom0 could not begin.
    #[error("the upcall was not begun: {0}")]
    Failed(Failure),
    /// More stack arguments than the slot has room for.
    #[error("{0} stack arguments, but upcalls have at most {STACK_ARGUMENTS}")]
    TooManyArguments(usize),
    /// The window is not part of a driver stack.
    #[error("the stack window {0:#x?} is larger than a driver stack")]
    Window(Range<u64>),
}

/// A call to be made.
#[derive(Clone, Debug)]
pub struct Upcall<'s> {
    /// The dom0 address of the function.
    pub function: u64,
    /// The first six arguments.
    pub arguments: [u64; 6],
    /// The further ones, as many as there may be.
    pub stack: &'s [u64],
    /// The part of this CPU's driver stack that the arguments may point into:
    /// its addresses are the same here and in dom0. Empty: none of it.
    pub window: Range<u64>,
}

/// Makes the call and waits for `(rax, rdx)`. dom0's writes to the window are in the
/// driver's stack when it returns, after an oops too.
///
/// # Safety
/// The window is readable and writable memory here, and nothing else uses it
/// meanwhile.
///
/// # Errors
/// [`UpcallError`]; there is always an answer within about the limit.
pub unsafe fn call(
    slot: &UpcallSlot,
    upcall: &Upcall<'_>,
    limits: &Limits,
) -> Result<(u64, u64), UpcallError> {
    let length = upcall.window.end.saturating_sub(upcall.window.start) as usize;
    if length > WINDOW {
        return Err(UpcallError::Window(upcall.window.clone()));
    }
    if upcall.stack.len() > STACK_ARGUMENTS {
        return Err(UpcallError::TooManyArguments(upcall.stack.len()));
    }
    let mut stack = [0; STACK_ARGUMENTS];
    stack[..upcall.stack.len()].copy_from_slice(upcall.stack);
    let low = upcall.window.start;
    let request = UpcallRequest {
        function: upcall.function,
        arguments: upcall.arguments,
        stack,
        low,
        high: low + length as u64,
    };
    // SAFETY: the client's turn, see `Rendezvous`; `length` bytes fit the
    // slot, and the caller promises the window.
    let ask = || unsafe {
        *slot.request.get() = request;
        let to = slot.window.get().cast::<u8>();
        std::ptr::copy_nonoverlapping(low as *const u8, to, length);
    };
    // SAFETY: as above.
    let answer = || unsafe {
        let from = slot.window.get().cast::<u8>();
        std::ptr::copy_nonoverlapping(from, low as *mut u8, length);
        *slot.answer.get()
    };
    let ending = slot.meet.call(limits, ask, answer)?;
    match ending.kind {
        RETURNED => Ok((ending.result, ending.result_high)),
        OOPS => Err(UpcallError::Oops(Box::new(ending.oops))),
        _ => Err(UpcallError::Failed(Failure::from_number(ending.result))),
    }
}
