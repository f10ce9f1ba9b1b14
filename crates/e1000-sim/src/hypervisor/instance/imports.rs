//! The runtime's callbacks: the driver's imports go to dom0 as upcalls, WARNs are
//! counted.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use process_lab::runtime::{self, Frame};

use crate::hypervisor::payload::{Payload, StubDestination, stub_address};
use crate::hypervisor::stack_mask::MaskedWords;
use crate::hypervisor::upcall::Upcall;

/// Words of stack arguments that an upcall carries.
const STACK_ARGUMENTS: usize = (twin_abi::stack::INCOMING_ARGS / 8) as usize;
/// The third argument's register, which is also the second half of a result.
const RDX: usize = 2;

/// The server of upcalls.
pub trait Upcalls {
    /// Calls dom0's routine; gives rax and rdx. The window, if there is one, is
    /// memory of this process that nothing else uses meanwhile.
    ///
    /// # Errors
    /// Why it did not come back. The driver is then aborted.
    fn upcall(&mut self, call: &Upcall<'_>) -> Result<(u64, u64), String>;
}

/// Data of the callbacks. One in a process: the runtime has one instance here.
pub(super) struct Callbacks<'a> {
    targets: Vec<StubDestination>,
    stubs_by_vm: Vec<(u64, u64)>,
    pub(super) names: Vec<String>,
    pub(super) calls: Vec<AtomicU64>,
    text: [(u64, u64); 2],
    upcalls: Box<dyn Upcalls + 'a>,
    pub(super) failed: Option<String>,
    pub(super) warnings: u64,
}

pub(super) static CALLBACKS: AtomicPtr<Callbacks<'static>> = AtomicPtr::new(std::ptr::null_mut());

pub(super) fn callbacks<'a>(payload: &Payload, upcalls: Box<dyn Upcalls + 'a>) -> Callbacks<'a> {
    let mut stubs_by_vm: Vec<_> = payload
        .stubs
        .iter()
        .enumerate()
        .filter_map(|(number, stub)| match stub.target {
            StubDestination::Upcall(vm) => Some((vm, stub_address(number))),
            StubDestination::Host(_)
            | StubDestination::StackCorrupted
            | StubDestination::Lock(_) => None,
        })
        .collect();
    stubs_by_vm.sort_unstable();
    Callbacks {
        targets: payload
            .stubs
            .iter()
            .map(|stub| stub.target.clone())
            .collect(),
        stubs_by_vm,
        names: payload.stubs.iter().map(|stub| stub.name.clone()).collect(),
        calls: payload.stubs.iter().map(|_| AtomicU64::new(0)).collect(),
        text: [payload.hot.text(), payload.driver.text()],
        upcalls,
        failed: None,
        warnings: 0,
    }
}

/// # Safety
/// An instance is loaded; the result is used by one callback at a time, on the
/// thread that runs the driver.
unsafe fn loaded<'a>() -> &'a mut Callbacks<'static> {
    // SAFETY: set by `load` and cleared after the last run.
    unsafe { &mut *CALLBACKS.load(Ordering::SeqCst) }
}

pub(super) extern "C" fn import(_: *mut c_void, frame: *mut Frame) -> c_int {
    // SAFETY: the runtime gives a frame; an instance is running.
    let (frame, callbacks) = unsafe { (&mut *frame, loaded()) };
    let number = frame.target as usize;
    match callbacks.targets[number] {
        StubDestination::Upcall(vm) => upcall(callbacks, frame, number, vm),
        StubDestination::StackCorrupted => {
            callbacks.failed = Some("the stack protector's canary was overwritten".to_owned());
            runtime::ABORTED
        }
        StubDestination::Host(_) | StubDestination::Lock(_) => runtime::ABORTED,
    }
}

fn upcall(callbacks: &mut Callbacks<'_>, frame: &mut Frame, number: usize, vm: u64) -> c_int {
    callbacks.calls[number].fetch_add(1, Ordering::Relaxed);
    // SAFETY: the driver waits, so its stack is ours; `frame.stack` is in it.
    let stack = unsafe { stack_in_use(frame.stack) };
    let at = stack.as_ptr() as u64;
    let end = at + size_of_val(stack) as u64;
    let by_reference = frame
        .registers
        .iter()
        .any(|argument| (at..end).contains(argument));
    let hidden = if by_reference {
        MaskedWords::mask(stack, |word| is_code(callbacks, word))
    } else {
        MaskedWords::default()
    };
    let arguments = stack[..stack.len().min(STACK_ARGUMENTS)].to_vec();
    let call = Upcall {
        function: vm,
        arguments: frame.registers,
        stack: &arguments,
        window: if by_reference { at..end } else { at..at },
    };
    let answer = callbacks.upcalls.upcall(&call);
    hidden.restore(stack);
    match answer {
        Ok((rax, rdx)) => {
            frame.rax = rax;
            frame.registers[RDX] = rdx;
            runtime::OK
        }
        Err(why) => {
            callbacks.failed = Some(format!("upcall of {}: {why}", callbacks.names[number]));
            runtime::ABORTED
        }
    }
}

/// Words of the driver's stack, or of its data stack, from `from` up to its end. Both
/// have a block's shape.
///
/// # Safety
/// The driver waits, and `from` is where its arguments are.
pub(crate) unsafe fn stack_in_use<'s>(from: *const u64) -> &'s mut [u64] {
    let block = from as u64 & !(twin_abi::stack::BLOCK - 1);
    let high = block + twin_abi::stack::HIGH;
    let words = (high - from as u64) / 8;
    // SAFETY: the caller's promise: the rest of a mapped stack that nothing uses.
    unsafe { std::slice::from_raw_parts_mut(from.cast_mut(), words as usize) }
}

/// Whether a word is an address of code that driver code returns to.
fn is_code(callbacks: &Callbacks<'_>, word: u64) -> bool {
    let mut text = callbacks.text.iter();
    text.any(|(start, end)| (*start..*end).contains(&word)) || runtime::entry_text().contains(&word)
}

pub(super) extern "C" fn resolve_upcall(_: *mut c_void, vm: u64) -> u64 {
    // SAFETY: an instance is running.
    let stubs = unsafe { &loaded().stubs_by_vm };
    match stubs.binary_search_by_key(&vm, |(vm, _)| *vm) {
        Ok(found) => stubs[found].1,
        Err(_) => 0,
    }
}

pub(super) extern "C" fn warn(_: *mut c_void, _: u64) {
    // SAFETY: an instance is running.
    unsafe { loaded() }.warnings += 1;
}
