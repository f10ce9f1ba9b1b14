//! The driver's stack of CPU 1, mapped as the runtime does in the hypervisor.

use std::sync::{Mutex, MutexGuard, PoisonError};

use e1000_sim::memory::driver_stack;

/// While it lives, the stack is mapped, and no other test of this process uses it.
pub struct DriverStack {
    _alone: MutexGuard<'static, ()>,
}

impl DriverStack {
    pub fn new() -> DriverStack {
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let stack = driver_stack(1);
        // SAFETY: nothing is there: it is mapped under the lock only.
        let at = unsafe {
            libc::mmap(
                stack.start as *mut libc::c_void,
                (stack.end - stack.start) as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED_NOREPLACE,
                -1,
                0,
            )
        };
        assert_eq!(at as u64, stack.start);
        DriverStack { _alone: alone }
    }
}

impl Drop for DriverStack {
    fn drop(&mut self) {
        let stack = driver_stack(1);
        let length = (stack.end - stack.start) as usize;
        // SAFETY: mapped by `new`; no references into it.
        unsafe { libc::munmap(stack.start as *mut libc::c_void, length) };
    }
}
