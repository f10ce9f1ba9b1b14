//! Packets through dom0's own, unmodified driver: runs in the dom0 process.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::dom0::enter::{self, EnterError};
use crate::image::KernelPlan;
use crate::measure::profile::Component;
use crate::memory::Machine;
use crate::memory::view::View;
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{Dom0Memory, Done, Request, Rings, Sent};
use crate::traffic::source::TrafficSource;

impl Dom0Memory for View<'_> {
    fn dom0(&self, address: u64, length: u64) -> Option<*mut u8> {
        self.pointer(address, length)
    }
}

/// Slots of `struct kernel_rx_ring`.
const SLOTS: u32 = 256;
/// `KERNEL_RX_BRIDGE`.
const TO_BRIDGE: u32 = 2;
/// Bytes of a slot's data.
const SLOT_DATA: usize = 2048 - 16;

/// `struct kernel_rx_slot`
#[repr(C)]
struct Slot {
    length: u32,
    flags: u32,
    vlan: u32,
    zero: u32,
    data: [u8; SLOT_DATA],
}

/// The head of `struct kernel_rx_ring`; its slots follow.
#[repr(C)]
struct RxRing {
    produce: AtomicU32,
    consume: AtomicU32,
    packets: u64,
    bytes: u64,
    dropped: u64,
    truncated: u64,
    mode: AtomicU32,
    zero: u32,
}

/// Packets that dom0's own stack has delivered.
pub struct Delivered {
    ring: *const RxRing,
}

impl Delivered {
    /// The ring at dom0 address `rx_ring`; `None` if that is not dom0's memory.
    pub fn new(memory: &dyn Dom0Memory, rx_ring: u64) -> Option<Delivered> {
        let length = size_of::<RxRing>() + SLOTS as usize * size_of::<Slot>();
        let ring = memory.dom0(rx_ring, length as u64)?.cast::<RxRing>();
        ring.is_aligned().then_some(Delivered { ring })
    }

    /// Gives each packet's bytes to `take`, oldest first.
    pub fn for_each(&mut self, mut take: impl FnMut(&[u8])) {
        // SAFETY: `new` checked it; the fields used are atomics.
        let ring = unsafe { &*self.ring };
        let mut consume = ring.consume.load(Ordering::Relaxed);
        while consume != ring.produce.load(Ordering::Acquire) {
            // SAFETY: inside the memory that `new` checked; the kernel does not
            // touch a slot between produce and consume.
            let slot = unsafe {
                &*self
                    .ring
                    .add(1)
                    .cast::<Slot>()
                    .add((consume % SLOTS) as usize)
            };
            take(&slot.data[..(slot.length as usize).min(SLOT_DATA)]);
            consume = consume.wrapping_add(1);
            ring.consume.store(consume, Ordering::Release);
        }
    }

    /// Whether frames go to the bridge from now on, and not into the ring.
    pub fn bridge(&mut self, bridge: bool) {
        // SAFETY: `new` checked it; the fields used are atomics.
        let ring = unsafe { &*self.ring };
        let mode = if bridge { TO_BRIDGE } else { 0 };
        ring.mode.store(mode, Ordering::Relaxed);
    }
}

/// The receiver of an interrupt before dom0.
pub trait Notify {
    /// The line was asserted; returns when dom0 is to handle it.
    fn interrupt(&mut self);

    /// Cycles that dom0 has waited for that since the last call: they are the
    /// hypervisor's.
    fn waited(&mut self) -> u64 {
        0
    }
}

/// No receiver: dom0 owns the machine.
pub struct Directly;

impl Notify for Directly {
    fn interrupt(&mut self) {}
}

pub struct NativeEngine<N> {
    rings: Rings,
    delivered: Delivered,
    notify: N,
    net_device: u64,
    irq: u32,
    transmit: u64,
    interrupt: u64,
}

/// Interrupts are off in dom0.
pub(crate) const EAGAIN: i64 = -11;

impl<N: Notify> NativeEngine<N> {
    /// An engine for CPU 0. `None` if kernel.o or hot.o lack an entry point, or the
    /// driver is not set up.
    pub fn new(
        plan: &KernelPlan<'_>,
        machine: &Machine,
        notify: N,
        net_device: u64,
        irq: u32,
        rx_ring: u64,
    ) -> Option<NativeEngine<N>> {
        let memory = View::new(plan.space(), machine);
        Some(NativeEngine {
            rings: Rings::new(&memory, plan.symbol("hot_shared")?, 0)?,
            delivered: Delivered::new(&memory, rx_ring)?,
            notify,
            net_device,
            irq,
            transmit: plan.symbol("hot_transmit")?,
            interrupt: plan.symbol("kernel_interrupt")?,
        })
    }
}

impl<N> NativeEngine<N> {
    /// Handler and poll; false if dom0's virtual interrupts are off.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    pub fn handle(&mut self) -> Result<bool, Stop> {
        let answer = run(self.interrupt, [u64::from(self.irq), 0, 0, 0, 0, 0])?;
        Ok(answer as i64 != EAGAIN)
    }

    /// This CPU's rings.
    pub fn rings(&mut self) -> &mut Rings {
        &mut self.rings
    }

    /// Packets that dom0's stack has delivered.
    pub fn delivered(&mut self) -> &mut Delivered {
        &mut self.delivered
    }
}

/// Calls a function of dom0's kernel.
///
/// # Errors
/// [`Stop::Driver`].
pub(crate) fn run(function: u64, arguments: [u64; 6]) -> Result<u64, Stop> {
    // SAFETY: this is the dom0 process, whose memory is mapped and whose traps
    // are caught; the function is dom0's.
    let ran = unsafe { enter::enter(function, arguments) };
    ran.map_err(|error: EnterError| Stop::Driver(error.to_string()))
}

impl<N: Notify> Engine for NativeEngine<N> {
    /// dom0's own packets: dom0 may send what it can reach.
    fn submit(&mut self, index: usize, _: u32, request: &Request) {
        self.rings.put(index, request);
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        let arguments = [self.net_device, 0, u64::from(count), 0, 0, 0];
        Ok(run(self.transmit, arguments)? as u32)
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        self.notify.interrupt();
        if !self.handle()? {
            return Ok(false);
        }
        card.absorb_writes(true)?;
        Ok(true)
    }

    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop> {
        self.delivered
            .for_each(|packet| deliver_to(sources, packet));
        Ok(())
    }

    fn result(&self, index: usize) -> Sent {
        self.rings.result(index)
    }

    fn completion(&mut self) -> Option<Done> {
        self.rings.completion()
    }

    fn host(&self) -> Component {
        Component::Dom0
    }

    fn user(&self) -> Component {
        Component::Dom0
    }

    fn elsewhere(&mut self) -> (Component, u64) {
        (Component::Hypervisor, self.notify.waited())
    }
}

/// Copies a packet to the traffic source that it is for.
pub fn deliver_to(sources: &mut [TrafficSource<'_>], packet: &[u8]) {
    let receiver = sources
        .iter_mut()
        .find(|e| packet.starts_with(&e.flow().source));
    if let Some(source) = receiver {
        let room = source.room();
        let length = packet.len().min(room.len());
        room[..length].copy_from_slice(&packet[..length]);
        source.arrived(length);
    }
}
