//! The driver in the hypervisor as it is: dom0's own code, neither rewritten nor confined, with dom0's
//! memory at dom0's addresses. That is the fast and dangerous way of having a driver in a hypervisor, and
//! what the rewritten driver is to be compared with: the same hypervisor, guests, hot routines and checks of
//! what guests and descriptors say.
//!
//! ```text
//! hypervisor ── enter ──> hot.o, e1000.ko in dom0's memory, mapped here as in dom0
//!     └── receive <── a jump, in a private copy of kernel.o's page with `host_receive`
//! ```
//!
//! A wild pointer of the driver reaches all of this process, and a fault ends it. So this is for
//! measurements, and loaded only if one asks for it.

use std::rc::Rc;

use process_lab::{mapping, segments};

use super::instance::Stopped;
use crate::dom0::{enter, job};
use crate::error::LiveError;
use crate::image::KernelPlan;
use crate::memory::{self, BarMode, Machine, PAGE};
use crate::packets::guard::{self, Guard};

/// `host_receive` as hot.o calls it (`runtime/include/twin/guest.h`): data, length, sk_buff, flags, VLAN tag.
pub type Receive = extern "sysv64" fn(u64, u32, u64, u32, u32) -> u32;

/// `movabs $receive,%r11; jmp *%r11`: r11 is no argument and kept by nobody (psABI 3.2.1).
const JUMP: usize = 13;

/// dom0's code, ready to be entered by this thread.
pub struct Unconfined<'m> {
    cpu: usize,
    guard: Rc<Guard<'m>>,
}

impl<'m> Unconfined<'m> {
    /// Maps dom0's memory, and lets its `host_receive` be `receive`. This thread is the CPU `cpu`
    /// whenever it is in dom0's code. Once in a process, which is the hypervisor's.
    ///
    /// # Errors
    /// A system call's, or kernel.o has no `host_receive`.
    pub fn load(
        plan: &KernelPlan<'_>,
        machine: &'m Machine,
        guard: Rc<Guard<'m>>,
        cpu: usize,
        receive: Receive,
    ) -> Result<Unconfined<'m>, LiveError> {
        plan.space().map_memory(machine)?;
        memory::set_bar(BarMode::Open)?;
        let service = plan.symbol("host_receive").ok_or_else(lacking)?;
        redirect(service, receive as *const () as u64).map_err(LiveError::system(REDIRECTING))?;
        enter::attach(cpu)?;
        job::declare(plan);
        Ok(Unconfined { cpu, guard })
    }

    /// Makes `%gs` dom0's: rewritten code has its own.
    ///
    /// # Errors
    /// The system call's.
    pub fn take_turn(&self) -> Result<(), LiveError> {
        let base = memory::percpu(self.cpu);
        segments::set_gs(base).map_err(LiveError::system(segments::SETTING_GS))
    }

    /// Runs a function of dom0's, with the same check of descriptors around it as the runtime has around the
    /// rewritten driver.
    ///
    /// # Errors
    /// A descriptor was refused.
    pub(super) fn enter(&self, function: u64, arguments: &[u64; 6]) -> Result<u64, Stopped> {
        let refused = |report| Stopped::Unconfined(guard::describe(&report));
        self.guard.show().map_err(refused)?;
        // SAFETY: dom0's memory is mapped, and the function is one of the plan's. Faults are not
        // caught: they end the process, as `load` says.
        let entered = unsafe { enter::enter(function, *arguments) };
        let result = entered.map_err(|error| Stopped::Unconfined(error.to_string()))?;
        self.guard.ring_doorbells().map_err(refused)?;
        Ok(result)
    }
}

const REDIRECTING: &str = "redirecting host_receive";

fn lacking() -> LiveError {
    LiveError::system(REDIRECTING)(std::io::ErrorKind::NotFound.into())
}

/// Lets the code at `from` jump to `to`, in this process alone: its pages become private copies.
fn redirect(from: u64, to: u64) -> std::io::Result<()> {
    let start = from / PAGE * PAGE;
    let length = (from + JUMP as u64).next_multiple_of(PAGE) - start;
    let within = (from - start) as usize;
    // SAFETY: dom0's code, which was mapped readable just now, and does not change.
    let code = unsafe { std::slice::from_raw_parts(start as *const u8, length as usize) };
    let mut copy = code.to_vec();
    copy[within..within + JUMP].copy_from_slice(&jump(to));
    // SAFETY: no code of dom0's runs in this process yet; the copy was made before.
    let memory = unsafe { mapping::replace(start, length)? };
    // SAFETY: as long as the copy, writable, and nobody else's.
    unsafe { std::ptr::copy_nonoverlapping(copy.as_ptr(), memory, copy.len()) };
    process_lab::code_memory::seal(memory, length)
}

fn jump(to: u64) -> [u8; JUMP] {
    let mut code = [0x49, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0x41, 0xff, 0xe3];
    code[2..10].copy_from_slice(&to.to_le_bytes());
    code
}
