//! Memory that all processes of the live system share in addition to the machine's: made
//! before they are forked, at the same address in all of them.
//!
//! ```text
//! device    the NIC's model, under a spin lock
//! command   supervisor -> dom0's thread 0
//! upcalls   hypervisor CPU k -> dom0's upcall thread k
//! console   what dom0 printed
//! counters, events, frames on the wire
//! ```

use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use libc::c_void;

use super::command::{self, KernelEnding};
use super::console::Console;
use super::lock::{Guard, SpinLock, Taken};
use super::rendezvous::Rendezvous;
use super::wire::WireRing;
use crate::dom0::job::OutcomeSlot;
use crate::engines::guest::NetRing;
use crate::error::LiveError;
use crate::live::emulated;
use crate::memory::{self, CPUS};
use crate::nic::{Config, Nic};
use crate::replay::TapeSlot;

/// Zeroed memory that holds a `T` and stays shared with children.
#[derive(Debug)]
pub struct SharedPages<T> {
    at: NonNull<T>,
}

/// Types of which all zeroes is a valid value, and that several processes may
/// use at once through `&T`.
///
/// # Safety
/// The above.
pub unsafe trait Zeroed: Sync {}

// SAFETY: an atomic word, 0 is free.
unsafe impl Zeroed for SpinLock {}
// SAFETY: atomic words, 0 is idle.
unsafe impl Zeroed for Rendezvous {}
// SAFETY: its parts are; the device is reached under its lock.
unsafe impl Zeroed for Mailbox {}

// SAFETY: gives `&T` only, and `T` is `Sync`.
unsafe impl<T: Zeroed> Send for SharedPages<T> {}
// SAFETY: as above.
unsafe impl<T: Zeroed> Sync for SharedPages<T> {}

impl<T: Zeroed> SharedPages<T> {
    /// New memory.
    pub fn new() -> Result<SharedPages<T>, LiveError> {
        // SAFETY: a new mapping at an address of the kernel's choice.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<T>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        match NonNull::new(at.cast::<T>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => Ok(SharedPages { at }),
            _ => Err(LiveError::last("mapping shared memory")),
        }
    }

    /// What is in it.
    pub fn get(&self) -> &T {
        // SAFETY: mapped as long as `self` lives, zeroed at first, which is a
        // valid `T`; pages are aligned enough.
        unsafe { self.at.as_ref() }
    }
}

impl<T> Drop for SharedPages<T> {
    fn drop(&mut self) {
        // SAFETY: ours, and all references are bound to `self`.
        unsafe { libc::munmap(self.at.as_ptr().cast::<c_void>(), size_of::<T>()) };
    }
}

/// The shared memory.
#[repr(C)]
pub struct Mailbox {
    device_lock: SpinLock,
    device: UnsafeCell<Nic>,
    /// Requests of the supervisor.
    pub command: CommandSlot,
    /// Calls from the hypervisor's CPUs; number 0 is not used.
    pub upcalls: [UpcallSlot; CPUS],
    /// The guest's path through dom0.
    pub net: NetRing,
    /// Interrupts that go to the hypervisor before dom0.
    pub event: Rendezvous,
    /// The outcome of dom0's last packet loop.
    pub outcome: OutcomeSlot,
    /// An order for the emulated card, and its outcome.
    pub emulated: emulated::Slot,
    /// The tape of the last loop that was recorded.
    pub tape: TapeSlot,
    /// What the kernel prints.
    pub console: Console,
    /// Counts of events.
    pub counters: Counters,
    /// Events that kernel.o reported of the driver.
    pub events: Events,
    /// Frames that the NIC sent.
    pub wire: WireRing,
    interrupts: AtomicU32,
}

/// Who runs the driver's interrupt handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum InterruptOwner {
    /// dom0, as on a machine without a hypervisor.
    Dom0 = 0,
    /// The hypervisor instance: dom0 sees no pending interrupt.
    Hypervisor = 1,
}

// SAFETY: the device is reached under its lock, the slots by the rules of
// `Rendezvous`.
unsafe impl Sync for Mailbox {}

impl Mailbox {
    /// Makes the memory, before any fork.
    pub fn new() -> Result<SharedPages<Mailbox>, LiveError> {
        SharedPages::new()
    }

    /// Locks the NIC. Not for a thread that holds the lock.
    pub fn device(&self) -> DeviceGuard<'_> {
        let (guard, taken) = self.device_lock.lock();
        if taken == Taken::FromTheDead {
            self.counters.add(Counter::LocksFromTheDead, 1);
        }
        DeviceGuard {
            device: &self.device,
            _guard: guard,
        }
    }

    /// Powers the NIC on, as dom0 expects it, with this MAC address.
    pub fn power_on(&self, mac: [u8; 6]) {
        self.device().power_on(&Config {
            mac,
            bar0: memory::BAR_BUS,
            io_base: u32::from(memory::PORTS),
            irq: memory::IRQ as u8,
        });
    }

    /// Sets who runs the interrupt handler from now on; initially dom0.
    pub fn set_interrupt_owner(&self, owner: InterruptOwner) {
        self.interrupts.store(owner as u32, Ordering::Release);
    }

    /// Whether dom0 is to run the interrupt handler.
    pub fn dom0_has_interrupts(&self) -> bool {
        self.interrupts.load(Ordering::Acquire) == InterruptOwner::Dom0 as u32
    }

    /// Frees the locks that this thread holds, when its stack was abandoned.
    pub(crate) fn abandon(&self) {
        self.device_lock.release_if_mine();
        self.console.abandon();
        self.wire.abandon();
    }
}

/// The NIC, as long as this is held.
pub struct DeviceGuard<'m> {
    device: &'m UnsafeCell<Nic>,
    _guard: Guard<'m>,
}

impl std::ops::Deref for DeviceGuard<'_> {
    type Target = Nic;
    fn deref(&self) -> &Nic {
        // SAFETY: the lock is held.
        unsafe { &*self.device.get() }
    }
}

impl std::ops::DerefMut for DeviceGuard<'_> {
    fn deref_mut(&mut self) -> &mut Nic {
        // SAFETY: the lock is held, by this guard.
        unsafe { &mut *self.device.get() }
    }
}

/// A request of the supervisor's and its answer.
#[repr(C)]
#[derive(Debug)]
pub struct CommandSlot {
    /// Whose turn it is.
    pub meet: Rendezvous,
    pub(crate) request: UnsafeCell<[u64; command::WORDS]>,
    pub(crate) answer: UnsafeCell<KernelEnding>,
}

/// Most arguments of an upcall after the sixth.
pub const STACK_ARGUMENTS: usize = 16;
/// Bytes of a driver stack.
pub const WINDOW: usize = (twin_abi::stack::HIGH - twin_abi::stack::LOW) as usize;

/// A hypervisor CPU's request to dom0.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct UpcallRequest {
    /// The dom0 address of the function.
    pub function: u64,
    /// The first six arguments.
    pub arguments: [u64; 6],
    /// The further ones.
    pub stack: [u64; STACK_ARGUMENTS],
    /// dom0 addresses of that part of the driver's stack that the call may
    /// refer to: `low` to `high`, both in `memory::driver_stack(cpu)`, or equal.
    pub low: u64,
    /// See `low`.
    pub high: u64,
}

/// An upcall: the request, the driver's stack both ways, the ending.
#[repr(C)]
#[derive(Debug)]
pub struct UpcallSlot {
    /// Whose turn it is.
    pub meet: Rendezvous,
    pub(crate) request: UnsafeCell<UpcallRequest>,
    pub(crate) answer: UnsafeCell<KernelEnding>,
    /// Bytes `low..high`, from index 0.
    pub(crate) window: UnsafeCell<[u8; WINDOW]>,
}

// SAFETY: request and answer are reached by the rules of `Rendezvous`, which
// give them to one side at a time.
unsafe impl Sync for CommandSlot {}
// SAFETY: as for `CommandSlot`.
unsafe impl Sync for UpcallSlot {}

/// Events that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Counter {
    /// Register accesses that trapped.
    MmioTraps,
    /// Port instructions.
    PortTraps,
    /// Upcalls served.
    Upcalls,
    /// Commands served.
    Commands,
    /// Faults of kernel code.
    Oopses,
    /// Warnings (WARN).
    Warnings,
    /// Locks taken from a dead process.
    LocksFromTheDead,
}

const COUNTERS: usize = 16;

/// Counters that all processes add to.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Counters {
    values: [AtomicU64; COUNTERS],
}

impl Counters {
    /// Adds to a counter; any process may, at any time.
    pub fn add(&self, counter: Counter, count: u64) {
        self.values[counter as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// How often so far.
    pub fn get(&self, counter: Counter) -> u64 {
        self.values[counter as usize].load(Ordering::Relaxed)
    }
}

/// Kinds of events, `enum kernel_event` of kernel.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Event {
    /// The driver has a handler; argument: irq.
    IrqRequested = 1,
    /// It has none any more; irq.
    IrqFreed = 2,
    /// Its interrupt may be delivered; irq.
    IrqEnabled = 3,
    /// It may not; irq.
    IrqDisabled = 4,
    /// Argument: 1 on, 0 off.
    Carrier = 5,
    /// Argument: address of the `net_device`.
    Registered = 6,
    /// Argument: address of the `net_device`.
    Unregistered = 7,
    /// A stopped transmit queue was restarted.
    QueueWoken = 8,
}

const EVENTS: usize = 16;

/// For each kind of event, how often there was one and the last one's argument.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Events {
    counts: [AtomicU64; EVENTS],
    arguments: [AtomicU64; EVENTS],
}

impl Events {
    pub(crate) fn note(&self, event: u32, argument: u64) {
        if let Some(last) = self.arguments.get(event as usize) {
            last.store(argument, Ordering::Release);
            self.counts[event as usize].fetch_add(1, Ordering::AcqRel);
        }
    }

    /// How often it happened, and the last one's argument.
    pub fn get(&self, event: Event) -> (u64, u64) {
        let count = self.counts[event as usize].load(Ordering::Acquire);
        (
            count,
            self.arguments[event as usize].load(Ordering::Acquire),
        )
    }
}
