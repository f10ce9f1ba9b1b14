//! Where tapes are played: dom0's process, and that of the hypervisor instance.

use std::collections::HashMap;

use process_lab::code_memory;

use super::player::{Ground, JUMP};
use crate::dom0::enter;
use crate::hypervisor::instance::Instance;
use crate::image::KernelPlan;
use crate::memory::view::View;
use crate::memory::{BAR, BAR_SIZE, Machine, PERCPU_SIZE, percpu};
use crate::system::{self, Blueprint};

/// dom0's process, on thread 0: everything is at its dom0 address.
pub struct Native<'m> {
    view: View<'m>,
}

impl<'m> Native<'m> {
    /// Of this dom0.
    pub fn new(plan: &'m KernelPlan<'_>, machine: &'m Machine) -> Native<'m> {
        Native {
            view: plan.view(machine),
        }
    }
}

impl Ground for Native<'_> {
    fn pointer(&mut self, dom0: u64) -> Option<*mut u64> {
        let is_register = (BAR..BAR + BAR_SIZE).contains(&dom0);
        let exists = is_register || self.view.pointer(dom0, 8).is_some();
        exists.then_some(dom0 as *mut u64)
    }

    fn function(&self, dom0: u64) -> Option<u64> {
        Some(dom0)
    }

    fn routine(&self, dom0: u64) -> Option<u64> {
        Some(dom0)
    }

    fn patch(&mut self, address: u64, bytes: [u8; JUMP]) -> Result<[u8; JUMP], String> {
        let mut was = [0; JUMP];
        let read = self.view.read(address, &mut was);
        let written = read.and_then(|()| self.view.write(address, &bytes));
        // Code that was written at another address than it is executed at (SDM
        // volume 3, 8.1.3): a serializing instruction.
        std::arch::x86_64::__cpuid(0);
        written
            .map(|()| was)
            .ok_or_else(|| format!("no code at {address:#x}"))
    }

    fn call(&mut self, function: u64, arguments: [u64; 6]) -> Result<(), String> {
        // SAFETY: this is the dom0 process; the player changes dom0's memory and
        // this thread's only.
        let ended = unsafe { enter::enter(function, arguments) };
        ended.map(|_| ()).map_err(|error| error.to_string())
    }
}

/// The hypervisor instance.
pub struct Rewritten<'i, 'a> {
    instance: &'i mut Instance<'a>,
    routines: HashMap<u64, u64>,
}

impl<'i, 'a> Rewritten<'i, 'a> {
    /// This instance, whose CPU is number [`system::CPU`].
    pub fn new(instance: &'i mut Instance<'a>, blueprint: &Blueprint<'_>) -> Rewritten<'i, 'a> {
        let names = blueprint.routines();
        let addresses = names.iter().filter_map(|name| {
            let dom0 = blueprint.plan.symbol(name)?;
            Some((dom0, blueprint.payload.hot.entries.exported(name)?))
        });
        Rewritten {
            routines: addresses.collect(),
            instance,
        }
    }
}

impl Ground for Rewritten<'_, '_> {
    fn pointer(&mut self, dom0: u64) -> Option<*mut u64> {
        // The recording has the per-CPU data of dom0's CPU 0; here they are this CPU's.
        let inside = dom0.wrapping_sub(percpu(0));
        let own = match inside < PERCPU_SIZE {
            true => percpu(system::CPU) + inside,
            false => dom0,
        };
        self.instance.translate(own).map(|at| at as *mut u64)
    }

    fn function(&self, dom0: u64) -> Option<u64> {
        self.instance.lookup(dom0)
    }

    fn routine(&self, dom0: u64) -> Option<u64> {
        self.routines.get(&dom0).copied()
    }

    fn patch(&mut self, address: u64, bytes: [u8; JUMP]) -> Result<[u8; JUMP], String> {
        // SAFETY: the hot routines' code, which nothing executes now.
        let patched = unsafe { code_memory::patch(address, bytes) };
        patched.map_err(|error| format!("code at {address:#x}: {error}"))
    }

    fn call(&mut self, function: u64, arguments: [u64; 6]) -> Result<(), String> {
        let ended = self.instance.enter(function, &arguments);
        ended.map(|_| ()).map_err(|stopped| stopped.to_string())
    }
}
