//! Packets through the hypervisor instance: the rewritten driver sends and
//! receives, the runtime's switch passes packets to guests, dom0 is not involved.

use std::ffi::{c_int, c_void};
use std::rc::Rc;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use process_lab::runtime::{self, Arrival, Cpu, Delivery, Frame, Packet, Switch};

use super::gather;
use crate::error::LiveError;
use crate::hypervisor::instance::{Instance, Service, Stopped};
use crate::hypervisor::unconfined::Unconfined;
use crate::image::KernelPlan;
use crate::measure::profile::Component;
use crate::memory::Machine;
use crate::packets::outgoing::{Counts, Outgoing};
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{
    Done, RELEASE, RX_FRAGMENTS, RX_HELD, RX_PIECES, RX_UNWANTED, Request, Rings, Sent,
};
use crate::system::CPU;
use crate::traffic::source::TrafficSource;

/// The first of [`super::SERVICES`].
pub const HOST_RECEIVE: Service = host_receive;
/// Packets that guests may have waiting in all.
const PACKETS: usize = 4096;
/// Packets that one poll may receive.
const BUDGET: u64 = 300;
/// Polls in a row that receive nothing and are not done.
pub(super) const PATIENCE: u32 = 64;

pub(super) static SWITCH: AtomicPtr<Switch> = AtomicPtr::new(std::ptr::null_mut());
pub(super) static INSTANCE: AtomicPtr<runtime::Instance> = AtomicPtr::new(std::ptr::null_mut());

/// The driver as dom0 describes it when it has been opened (paper, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driver {
    /// dom0 address of its `struct net_device`.
    pub net_device: u64,
    /// dom0 address of its interrupt handler, in the VM instance.
    pub handler: u64,
    /// The interrupt's number.
    pub irq: u32,
    /// The handler's argument.
    pub dev_id: u64,
}

/// Whether dom0 lets its interrupt handler run: words in its memory.
#[derive(Clone, Copy, Debug)]
pub struct VirtualInterrupts<'m> {
    /// The virtual interrupt flag of its CPU 0 (paper, 4.4); 1: they may come.
    pub enabled: &'m AtomicU32,
    /// To be set if one could not.
    pub pending: &'m AtomicU32,
    /// How often dom0 has disabled this interrupt.
    pub depth: &'m AtomicU32,
    /// 1 while some CPU runs the handler.
    pub running: &'m AtomicU32,
}

/// The handler is running here, until this is dropped.
struct Running<'m>(&'m AtomicU32);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl<'m> VirtualInterrupts<'m> {
    /// Takes the handler, if it may run.
    fn take(&self) -> Option<Running<'m>> {
        if !self.enabled() || self.depth.load(Ordering::Acquire) != 0 {
            return None;
        }
        let taken = self
            .running
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.ok().map(|_| Running(self.running))
    }

    fn enabled(&self) -> bool {
        if self.enabled.load(Ordering::Acquire) != 0 {
            return true;
        }
        self.pending.store(1, Ordering::SeqCst);
        // Enabled in the meantime, perhaps before our flag was set.
        self.enabled.load(Ordering::SeqCst) != 0
    }
}

/// The engine. One a process.
pub struct TwinEngine<'a> {
    /// The rewritten driver.
    pub instance: Instance<'a>,
    rings: Rings,
    outgoing: Outgoing,
    driver: Driver,
    interrupts: VirtualInterrupts<'a>,
    pub(super) switch: *mut Switch,
    /// Switch number, flow number and Ethernet address.
    pub(super) guests: Vec<(u32, u32, [u8; 6])>,
    entries: Entries,
    stopped: Option<Stopped>,
    /// Buffers that guests have taken and that are not yet back in the driver's pool.
    pub(super) owed: Vec<u64>,
}

/// Addresses of the routines that are called for every packet: the hypervisor's, or dom0's while the
/// driver is not confined.
#[derive(Clone, Copy)]
struct Entries {
    transmit: u64,
    acks: u64,
    poll: u64,
    pending: u64,
    release: u64,
    handler: u64,
}

impl Entries {
    /// By their names, and the interrupt handler; `None` if one is missing.
    fn of(function: impl Fn(&str) -> Option<u64>, handler: Option<u64>) -> Option<Entries> {
        Some(Entries {
            transmit: function("hot_transmit")?,
            acks: function("hot_transmit_acks")?,
            poll: function("hot_poll")?,
            pending: function("hot_pending")?,
            release: function("hot_release")?,
            handler: handler?,
        })
    }
}

fn entries(instance: &Instance<'_>, driver: &Driver) -> Option<Entries> {
    let handler = instance.lookup(driver.handler);
    Entries::of(|name| instance.function(name), handler)
}

/// Zeroed memory for a switch and its packets, for the process's life.
fn new_switch() -> *mut Switch {
    // SAFETY: plain function.
    let words = unsafe { runtime::twin_switch_size() }.div_ceil(8) as usize;
    let switch: &'static mut [u64] = Box::leak(vec![0u64; words].into_boxed_slice());
    let packets = Box::leak(vec![Packet::default(); PACKETS].into_boxed_slice());
    let switch: *mut Switch = switch.as_mut_ptr().cast();
    // SAFETY: both are as large as said, aligned, and never freed.
    let made = unsafe { runtime::twin_switch_init(switch, packets.as_mut_ptr(), PACKETS as u32) };
    assert_eq!(made, runtime::OK, "there are packets");
    switch
}

impl<'a> TwinEngine<'a> {
    /// An engine that owns the instance. `None` if the payload lacks an entry point.
    pub fn new(
        instance: Instance<'a>,
        machine: &'a Machine,
        rings: Rings,
        mut outgoing: Outgoing,
        driver: Driver,
        interrupts: VirtualInterrupts<'a>,
    ) -> Option<TwinEngine<'a>> {
        let entries = entries(&instance, &driver)?;
        let switch = new_switch();
        SWITCH.store(switch, Ordering::SeqCst);
        INSTANCE.store(instance.raw(), Ordering::SeqCst);
        // SAFETY: the outgoing packets are boxed and stay with the engine, which runs the
        // instance; the machine outlives both.
        unsafe { gather::set(outgoing.raw(), machine.ram()) };
        Some(TwinEngine {
            instance,
            rings,
            outgoing,
            driver,
            interrupts,
            switch,
            guests: Vec::new(),
            entries,
            stopped: None,
            owed: Vec::with_capacity(RELEASE),
        })
    }

    /// Adds a guest by its Ethernet address; false if there is one.
    pub fn attach(&mut self, source: &TrafficSource<'_>) -> bool {
        let flow = source.flow();
        self.attach_flow(flow.number, flow.source)
    }

    /// Guests: number, flow number and Ethernet address.
    pub fn guests(&self) -> &[(u32, u32, [u8; 6])] {
        &self.guests
    }

    fn attach_flow(&mut self, flow: u32, address: [u8; 6]) -> bool {
        // SAFETY: the switch is alive; six bytes.
        let number = unsafe { runtime::twin_switch_attach(self.switch, address.as_ptr()) };
        let Ok(number) = u32::try_from(number) else {
            return false;
        };
        self.guests.push((number, flow, address));
        true
    }

    /// Drops the packets that wait for guests, and holds no buffer of dom0's after that:
    /// dom0 is gone, or takes all of them back by itself (`hot_recover`).
    ///
    /// # Panics
    /// Never: guests that were attached can be attached again.
    pub fn forget_packets(&mut self) {
        self.owed.clear();
        for (number, flow, address) in std::mem::take(&mut self.guests) {
            let mut buffers = [0; runtime::SWITCH_QUEUE];
            // SAFETY: the switch is alive; there is room for a whole queue.
            unsafe { runtime::twin_switch_detach(self.switch, number, buffers.as_mut_ptr()) };
            assert!(self.attach_flow(flow, address), "it was attached");
        }
    }

    /// After an abort, when dom0 has reset the driver: a new instance. The
    /// rings are this CPU's, which a new dom0 may have elsewhere.
    pub fn renew(&mut self, driver: Driver, rings: Rings) -> Option<()> {
        self.instance.renew();
        INSTANCE.store(self.instance.raw(), Ordering::SeqCst);
        self.driver = driver;
        self.rings = rings;
        // The card was reset and reads none of the packets that were being sent.
        self.outgoing.reset();
        self.stopped = None;
        self.entries = entries(&self.instance, &driver)?;
        Some(())
    }

    /// Runs dom0's own code from here on, at the addresses of its plan.
    ///
    /// # Errors
    /// A system call's.
    ///
    /// # Panics
    /// If the plan lacks a routine that the payload has.
    pub fn unconfine(
        &mut self,
        unconfined: &Rc<Unconfined<'a>>,
        plan: &KernelPlan<'_>,
    ) -> Result<(), LiveError> {
        let handler = Some(self.driver.handler);
        let entries = Entries::of(|name| plan.symbol(name), handler);
        self.entries = entries.expect("the payload was made of the plan");
        self.instance.set_unconfined(Some(Rc::clone(unconfined)))
    }

    /// Runs the rewritten code again.
    ///
    /// # Errors
    /// A system call's.
    ///
    /// # Panics
    /// Never: it was run before.
    pub fn confine(&mut self) -> Result<(), LiveError> {
        self.entries = entries(&self.instance, &self.driver).expect("as when it was made");
        self.instance.set_unconfined(None)
    }

    /// The runtime's counts of guests' packets.
    pub fn outgoing(&self) -> Counts {
        self.outgoing.counts()
    }

    /// How the driver stopped since the last call, if it did.
    pub fn take_stopped(&mut self) -> Option<Stopped> {
        self.stopped.take()
    }

    /// Runs the driver; records it if the driver stops.
    fn run(&mut self, function: u64, arguments: [u64; 6]) -> Result<u64, Stop> {
        let ran = self.instance.enter(function, &arguments);
        ran.map_err(|mut stopped| {
            if let Stopped::Aborted(report) = &mut stopped {
                let device = self.driver.net_device;
                report
                    .locks
                    .extend(self.instance.held_by_routines(device, CPU));
            }
            let stop = Stop::Driver(stopped.to_string());
            self.stopped = Some(stopped);
            stop
        })
    }

    /// The handler, if dom0 lets it run: whether it did. `before` is called first, if it will.
    pub(super) fn handle(
        &mut self,
        card: &mut dyn Card,
        before: impl FnOnce(&mut dyn Card) -> Result<(), Stop>,
    ) -> Result<bool, Stop> {
        let Some(running) = self.interrupts.take() else {
            return Ok(false);
        };
        before(card)?;
        let arguments = [u64::from(self.driver.irq), self.driver.dev_id, 0, 0, 0, 0];
        let handled = self.run_apart(self.entries.handler, arguments);
        drop(running);
        handled?;
        card.absorb_writes(true)?;
        Ok(true)
    }

    /// As [`TwinEngine::run`], for the stages: so that it is compiled into the plain path as it would be
    /// without them.
    #[inline(never)]
    fn run_apart(&mut self, function: u64, arguments: [u64; 6]) -> Result<u64, Stop> {
        self.run(function, arguments)
    }

    /// Whether dom0 lets its handler run.
    pub fn virtual_interrupts(&self) -> VirtualInterrupts<'a> {
        self.interrupts
    }

    /// One poll; whether more is to be polled.
    pub(super) fn poll_once(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        self.run_apart(self.entries.poll, [BUDGET, 0, 0, 0, 0, 0])?;
        card.absorb_writes(false)?;
        Ok(self.run_apart(self.entries.pending, [0; 6])? as u32 != 0)
    }

    fn poll(&mut self, card: &mut dyn Card) -> Result<(), Stop> {
        for _ in 0..PATIENCE {
            self.run(self.entries.poll, [BUDGET, 0, 0, 0, 0, 0])?;
            card.absorb_writes(false)?;
            if self.run(self.entries.pending, [0; 6])? as u32 == 0 {
                return Ok(());
            }
        }
        Err(Stop::Stuck("the poll does not end"))
    }

    /// Packets for `guest` into its inbox; buffers to release into `release`.
    #[inline(always)]
    fn take_all(
        &mut self,
        guest: u32,
        source: &mut TrafficSource<'_>,
        release: &mut Vec<u64>,
    ) -> Result<(), Stop> {
        loop {
            let room = source.room();
            let mut delivery = Delivery::default();
            // SAFETY: the instance is held by the caller; the room is ours.
            let taken = unsafe {
                runtime::twin_switch_take(
                    self.switch,
                    self.instance.raw(),
                    guest,
                    room.as_mut_ptr().cast::<c_void>(),
                    room.len() as u32,
                    &mut delivery,
                )
            };
            if delivery.release != 0 {
                release.push(delivery.release);
            }
            match taken {
                runtime::OK => source.arrived(delivery.length as usize),
                runtime::SWITCH_AGGREGATE => {
                    let length = delivery.length as usize;
                    source.arrived_aggregate(length, delivery.segments, delivery.size);
                }
                runtime::ABORTED => return Err(Stop::Driver("a held packet is gone".to_owned())),
                _ => return Ok(()),
            }
        }
    }

    /// Sends acknowledgements by template (`runtime/hot/acks.c`): its result.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn transmit_template(&mut self, guest: u32, template: &Request) -> Result<Sent, Stop> {
        let placed = self
            .outgoing
            .place_template(guest, template, &mut self.rings);
        if placed > 0 {
            let arguments = [self.driver.net_device, 0, 0, 0, 0, 0];
            let claimed = self.run_apart(self.entries.acks, arguments)? as u32;
            self.outgoing.collect_results(placed, claimed, &self.rings);
        }
        Ok(self.outgoing.result(0))
    }

    /// Whether the hot routines do what the card cannot.
    pub fn set_offload(&mut self, on: bool) {
        self.rings.set_offload(on);
    }

    /// Asks the hot routines for aggregates of at most `segments`; below 2: none.
    pub fn set_aggregate(&mut self, segments: u32) {
        self.rings.set_aggregate(segments);
    }

    /// The hot routines' counts of that name ([`crate::packets::rings::COUNTERS`]).
    pub fn counter(&self, name: &str) -> Option<u64> {
        self.rings.counter(name)
    }

    /// Calls of the driver's poll so far, as dom0's memory says.
    pub(super) fn polled(&self) -> u64 {
        self.rings.polled()
    }

    /// Gives received buffers back to the driver's pool.
    fn release(&mut self, buffers: &[u64]) -> Result<(), Stop> {
        for batch in buffers.chunks(RELEASE) {
            for (index, buffer) in batch.iter().enumerate() {
                self.rings.put_release(index, *buffer);
            }
            let arguments = [self.rings.release_at, batch.len() as u64, 0, 0, 0, 0];
            self.run(self.entries.release, arguments)?;
        }
        Ok(())
    }

    /// Passes their packets to guests, as bits. Once in the program, so that a packet costs the
    /// same with stages and without.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    #[inline(never)]
    pub(super) fn deliver_to(
        &mut self,
        news: u64,
        sources: &mut [TrafficSource<'_>],
    ) -> Result<(), Stop> {
        let mut owed = std::mem::take(&mut self.owed);
        let guests = self.guests.clone();
        // SAFETY: the instance is alive, and this thread is outside of it.
        unsafe { runtime::twin_instance_hold(self.instance.raw()) };
        let mut taken = Ok(());
        for (guest, flow, _) in guests.iter().filter(|(guest, ..)| news >> guest & 1 != 0) {
            let source = sources.iter_mut().find(|e| e.flow().number == *flow);
            if let Some(source) = source {
                taken = taken.and(self.take_all(*guest, source, &mut owed));
            }
        }
        // SAFETY: held above.
        unsafe { runtime::twin_instance_release(self.instance.raw()) };
        let released = self.release(&owed);
        if released.is_ok() {
            owed.clear();
        }
        self.owed = owed;
        taken.and(released)
    }
}

impl Engine for TwinEngine<'_> {
    fn submit(&mut self, index: usize, guest: u32, request: &Request) {
        self.outgoing.submit(index, guest, request);
    }

    fn submit_by(
        &mut self,
        index: usize,
        guest: u32,
        _: &mut Request,
        describe: impl FnOnce(&mut Request),
    ) {
        describe(self.outgoing.place_for(index, guest));
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        let placed = self.outgoing.place(count as usize, &mut self.rings);
        let arguments = [self.driver.net_device, 0, u64::from(placed), 0, 0, 0];
        let claimed = self.run(self.entries.transmit, arguments)? as u32;
        let sent = self.outgoing.collect_results(placed, claimed, &self.rings);
        Ok(sent)
    }

    fn result(&self, index: usize) -> Sent {
        self.outgoing.result(index)
    }

    fn completion(&mut self) -> Option<Done> {
        self.outgoing.completion(&mut self.rings)
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        // As `handle`, written out: with a call of it a packet costs instructions more.
        let Some(running) = self.interrupts.take() else {
            return Ok(false);
        };
        let arguments = [u64::from(self.driver.irq), self.driver.dev_id, 0, 0, 0, 0];
        let handled = self.run(self.entries.handler, arguments);
        drop(running);
        handled?;
        card.absorb_writes(true)?;
        self.poll(card)?;
        Ok(true)
    }

    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop> {
        // SAFETY: the switch is alive.
        let news = unsafe { runtime::twin_switch_news(self.switch) };
        self.deliver_to(news, sources)
    }

    fn host(&self) -> Component {
        Component::Hypervisor
    }

    fn user(&self) -> Component {
        Component::Guest
    }
}

/// The arguments of the service.
#[inline(always)]
fn arrival(frame: &Frame) -> Arrival {
    let [data, length, buffer, flags, vlan, _] = frame.registers;
    Arrival {
        buffer,
        data,
        length: length as u32,
        flags: flags as u32,
        vlan: vlan as u32,
    }
}

/// The service: `u32 host_receive(void *data, u32 length, struct sk_buff *skb, u32 flags, u32 vlan)`
pub(crate) extern "C" fn host_receive(_: *mut Cpu, frame: *mut Frame) -> c_int {
    // SAFETY: the runtime gives a frame.
    let frame = unsafe { &mut *frame };
    let arrival = arrival(frame);
    if arrival.flags & (RX_FRAGMENTS | RX_PIECES) != 0 {
        return host_receive_pieces(frame, &arrival);
    }
    answer(frame, offer(&arrival))
}

/// Offers a packet in one piece to the switch; its verdict.
#[inline(always)]
fn offer(arrival: &Arrival) -> c_int {
    // SAFETY: set before the driver runs; this is inside an import.
    unsafe {
        runtime::twin_switch_receive(
            SWITCH.load(Ordering::Relaxed),
            INSTANCE.load(Ordering::Relaxed),
            arrival,
        )
    }
}

/// The service for code that is not confined: it is called like any function.
///
/// # Panics
/// If a confined driver would be aborted. There is nothing else that could be done about it.
pub(crate) extern "sysv64" fn receive_unconfined(
    data: u64,
    length: u32,
    buffer: u64,
    flags: u32,
    vlan: u32,
) -> u32 {
    if flags & (RX_FRAGMENTS | RX_PIECES) != 0 {
        return RX_UNWANTED;
    }
    let arrival = Arrival {
        buffer,
        data,
        length,
        flags,
        vlan,
    };
    match offer(&arrival) {
        runtime::SWITCH_HELD => RX_HELD,
        runtime::SWITCH_UNWANTED => RX_UNWANTED,
        verdict => panic!("a packet of a driver that is not confined: status {verdict}"),
    }
}

/// What `host_receive` returns, or that the driver is to be aborted.
#[inline(always)]
fn answer(frame: &mut Frame, verdict: c_int) -> c_int {
    frame.rax = u64::from(match verdict {
        runtime::SWITCH_HELD => RX_HELD,
        runtime::SWITCH_UNWANTED => RX_UNWANTED,
        _ => return runtime::ABORTED,
    });
    runtime::OK
}

/// `host_receive` of a packet that is not in one piece.
#[cold]
fn host_receive_pieces(frame: &mut Frame, arrival: &Arrival) -> c_int {
    if arrival.flags & RX_FRAGMENTS != 0 {
        // Frames longer than a page are not supported: the MTU is Ethernet's.
        return answer(frame, runtime::SWITCH_UNWANTED);
    }
    // SAFETY: set before the driver runs; this is inside an import.
    let verdict = unsafe {
        runtime::twin_switch_receive_aggregate(
            SWITCH.load(Ordering::Relaxed),
            INSTANCE.load(Ordering::Relaxed),
            arrival,
        )
    };
    answer(frame, verdict)
}
