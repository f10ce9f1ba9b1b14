//! `host_gather`: a guest's bytes for the hot routines, where the card cannot gather pieces or
//! compute a checksum (`runtime/include/twin/gather.h`).

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use process_lab::packet_path::{self, Gather};
use process_lab::runtime::{self, Cpu, Frame, Outgoing};

use super::twin::INSTANCE;

static OUTGOING: AtomicPtr<Outgoing> = AtomicPtr::new(std::ptr::null_mut());
static RAM: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Where the packets that are being sent are, and the machine's memory in this process.
///
/// # Safety
/// Both stay while the instance runs.
pub(super) unsafe fn set(outgoing: *mut Outgoing, ram: *mut u8) {
    OUTGOING.store(outgoing, Ordering::SeqCst);
    RAM.store(ram, Ordering::SeqCst);
}

extern "C" fn guest_memory(ram: *mut c_void, machine: u64) -> *const c_void {
    // The runtime asks for frames of guests only, which are in the mapping.
    ram.cast::<u8>().wrapping_add(machine as usize).cast()
}

/// The service: `u32 host_gather(void *to, u64 cookie, u32 offset, u32 bytes, u32 each, ...)`
pub(crate) extern "C" fn host_gather(_: *mut Cpu, frame: *mut Frame) -> c_int {
    // SAFETY: the runtime gives a frame.
    let frame = unsafe { &mut *frame };
    let [list, ticket, offset, bytes, each, ..] = frame.registers;
    let gather = Gather {
        list,
        ticket,
        offset: offset as u32,
        bytes: bytes as u32,
        each: each as u32,
    };
    // SAFETY: set before the driver runs; this is inside an import, on the CPU whose
    // packets they are.
    let gathered = unsafe {
        packet_path::twin_gather(
            INSTANCE.load(Ordering::Relaxed),
            OUTGOING.load(Ordering::Relaxed),
            &gather,
            guest_memory,
            RAM.load(Ordering::Relaxed).cast(),
        )
    };
    if gathered == runtime::ABORTED {
        return runtime::ABORTED;
    }
    frame.rax = u64::from(gathered == runtime::OK);
    runtime::OK
}
