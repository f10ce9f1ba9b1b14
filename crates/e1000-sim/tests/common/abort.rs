//! A service of the hypervisor that stops the driver while it hands over a packet.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::engines::twin;
use process_lab::runtime::{self, Cpu, Frame};

/// When [`host_receive`] aborts the driver.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
#[allow(dead_code, reason = "not every test that has this module uses all")]
pub enum Abort {
    Never,
    /// With each packet that is the driver's still: nobody will release it.
    Before,
    /// With each packet that waits for a guest already.
    After,
    /// As `Before`, with the next packet only.
    Once,
}

impl Abort {
    /// From now on, in this process.
    pub fn set(self) {
        WHEN.store(self as u32, Ordering::SeqCst);
    }
}

static WHEN: AtomicU32 = AtomicU32::new(Abort::Never as u32);

/// In place of the service of that name.
pub extern "C" fn host_receive(cpu: *mut Cpu, frame: *mut Frame) -> c_int {
    let when = WHEN.load(Ordering::SeqCst);
    if when == Abort::Once as u32 {
        Abort::Never.set();
    }
    if when == Abort::Before as u32 || when == Abort::Once as u32 {
        return runtime::ABORTED;
    }
    let served = twin::HOST_RECEIVE(cpu, frame);
    if when == Abort::After as u32 {
        return runtime::ABORTED;
    }
    served
}
