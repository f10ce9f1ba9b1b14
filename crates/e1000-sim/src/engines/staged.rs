//! The hypervisor instance with stages of the packet path ([`crate::stages`]). Without any,
//! the path is [`TwinEngine`]'s by itself.
//!
//! ```text
//! submit ─ bridge ─┬─ wire ──> TwinEngine: admit, driver
//!                  ├─ guests > local queues ─ deliver ─> guests
//!                  └─ spoofed, storm: refused, dropped
//! line ─ ack ─ handler, poll (super::early)
//! host_receive ─ bridge ─> the switch's queues ─ notify ─ deliver ─> guests
//!      └ frames, or aggregates of segments: `aggregate` is on in the hot routines
//! ```
//!
//! A packet that does not go to the wire is settled when it is submitted: its completion
//! waits for the batch's, so that guests see no other order than without stages.

use std::collections::VecDeque;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use process_lab::packet_path::{self, BRIDGE_HEADER, NotifyLimits};
use process_lab::runtime::{self, Arrival, Cpu, Frame};

use super::twin::{Driver, INSTANCE, SWITCH, TwinEngine};
use crate::hypervisor::instance::Service;
use crate::measure::profile::Component;
use crate::memory::Machine;
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{
    Done, RX_FRAGMENTS, RX_HELD, RX_PIECES, RX_UNWANTED, Request, Rings, SEGMENTS, Sent,
};
use crate::stages::ack::Ack;
use crate::stages::aggregate::{self, AggregateCounts, Merged};
use crate::stages::bridge::{self, Bridge, STORM, Way};
use crate::stages::local::{Local, Unfit};
use crate::stages::notify::{self, AT_ONCE, Notify};
use crate::stages::offload::OffloadCounts;
use crate::stages::{Stage, StageCounts, Stages};
use crate::traffic::source::TrafficSource;

/// The first of [`super::SERVICES`], in place of [`super::twin::HOST_RECEIVE`].
pub const HOST_RECEIVE: Service = host_receive;

static NOTIFY: AtomicPtr<packet_path::Notify> = AtomicPtr::new(std::ptr::null_mut());
/// Packets that were put into guests' queues by it; of an aggregate, its segments.
static ARRIVED: AtomicU64 = AtomicU64::new(0);
/// Aggregates among them, and their segments.
static AGGREGATES: AtomicU64 = AtomicU64::new(0);
static MERGED: AtomicU64 = AtomicU64::new(0);
static BRIDGE: AtomicPtr<packet_path::Bridge> = AtomicPtr::new(std::ptr::null_mut());
/// The machine's time in nanoseconds when the last batch or interrupt began.
pub(super) static NOW: AtomicU64 = AtomicU64::new(0);

/// What became of a submitted request.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// It is the wire's request of that number.
    Wire(usize),
    /// Settled.
    Here(Sent),
}

/// The engine. One a process.
pub struct Staged<'a> {
    /// What the stages are around.
    pub twin: TwinEngine<'a>,
    stages: Stages,
    /// Causes that wait for the handler.
    pub(super) ack: Ack,
    /// Most segments of an aggregate, if the stage is on.
    segments: u32,
    pub(super) bridge: Bridge,
    pub(super) local: Local<'a>,
    places: Vec<Place>,
    wire: usize,
    /// Packets for all of the batch: the wire's number, guests as bits, bytes.
    groups: Vec<(usize, u64, Vec<u8>)>,
    /// Completions of packets that did not go to the wire.
    done: VecDeque<Done>,
    pub(super) notify: Notify,
    /// Guests that were told and have not come yet, as bits.
    pub(super) told: u64,
    /// None if the time is played.
    start: Option<Instant>,
}

impl<'a> Staged<'a> {
    /// An engine with these stages, whose instance has [`HOST_RECEIVE`]; its guests are those
    /// that are attached here.
    pub fn new(
        twin: TwinEngine<'a>,
        machine: &'a Machine,
        guests: u32,
        stages: Stages,
    ) -> Staged<'a> {
        let bridge = Bridge::new(STORM);
        BRIDGE.store(bridge.raw(), Ordering::SeqCst);
        Staged {
            twin,
            stages,
            ack: Ack::default(),
            segments: aggregate::LIMIT,
            bridge,
            local: Local::new(machine, guests),
            places: Vec::new(),
            wire: 0,
            groups: Vec::new(),
            done: VecDeque::new(),
            notify: Notify::new(AT_ONCE),
            told: 0,
            start: Some(Instant::now()),
        }
    }

    /// Adds a guest; false if its address is another's.
    ///
    /// # Panics
    /// If it gets another number than its flow has: guests are attached in order.
    pub fn attach(&mut self, source: &TrafficSource<'_>) -> bool {
        let flow = source.flow();
        if !self.bridge.add(flow.number, flow.source) || !self.twin.attach(source) {
            return false;
        }
        let last = self.twin.guests().last();
        assert_eq!(last.map(|guest| guest.0), Some(flow.number), "in order");
        true
    }

    /// The stages.
    pub fn stages(&self) -> Stages {
        self.stages
    }

    /// As [`TwinEngine::forget_packets`]; what `notify` knows of them is forgotten, too.
    ///
    /// # Panics
    /// As there.
    pub fn forget_packets(&mut self) {
        self.twin.forget_packets();
        self.told = 0;
        for (guest, ..) in self.twin.guests() {
            self.notify.forget(*guest);
        }
    }

    /// As [`TwinEngine::renew`]; the same stages are on.
    pub fn renew(&mut self, driver: Driver, rings: Rings) -> Option<()> {
        self.twin.renew(driver, rings)?;
        self.ack.forget();
        self.places.clear();
        self.groups.clear();
        self.done.clear();
        self.set_stages(self.stages);
        Some(())
    }

    /// Other stages from now on, between two batches.
    pub fn set_stages(&mut self, stages: Stages) {
        self.stages = stages;
        self.twin.set_aggregate(match stages.has(Stage::Aggregate) {
            true => self.segments,
            false => 0,
        });
        self.twin.set_offload(stages.has(Stage::Offload));
        BRIDGE.store(
            match stages.has(Stage::Bridge) {
                true => self.bridge.raw(),
                false => std::ptr::null_mut(),
            },
            Ordering::SeqCst,
        );
        NOTIFY.store(
            match stages.has(Stage::Notify) {
                true => self.notify.raw(),
                false => std::ptr::null_mut(),
            },
            Ordering::SeqCst,
        );
    }

    /// Other limits of the stage `notify`.
    pub fn set_limits(&mut self, limits: NotifyLimits) {
        self.notify.set(limits);
    }

    /// Another limit of the stage `aggregate`: segments of a packet.
    pub fn set_segments(&mut self, segments: u32) {
        self.segments = segments;
        self.set_stages(self.stages);
    }

    /// Aggregates that came in for guests so far, while `notify` is on, and their segments.
    pub fn merged(&self) -> Merged {
        Merged {
            aggregates: AGGREGATES.load(Ordering::Relaxed),
            segments: MERGED.load(Ordering::Relaxed),
        }
    }

    /// Packets that came in for guests so far, while `notify` is on; segments of aggregates.
    pub fn arrived(&self) -> u64 {
        ARRIVED.load(Ordering::Relaxed)
    }

    /// Guests that were told of packets, or are now, and have not come yet, as bits.
    pub fn due(&mut self, now: u64) -> u64 {
        self.told |= self.notify.due(now);
        self.told
    }

    /// These guests, as bits, come by themselves: they are due, whether they were told or not.
    pub fn comes(&mut self, guests: u64) {
        self.told |= guests;
    }

    /// When the next guest is to be told, if nothing arrives.
    pub fn deadline(&self) -> Option<u64> {
        self.notify.deadline()
    }

    /// Limits the processor time of an invocation of the driver.
    ///
    /// # Errors
    /// There is no timer.
    pub fn limit_time(&self, limit: Duration) -> Result<(), crate::LiveError> {
        self.twin.instance.limit_time(limit)
    }

    /// The counts of the stages that are on.
    pub fn counts(&self) -> StageCounts {
        let ack = self.stages.has(Stage::Ack);
        let bridge = self.stages.has(Stage::Bridge);
        let aggregate = self.stages.has(Stage::Aggregate);
        let offload = self.stages.has(Stage::Offload);
        StageCounts {
            ack: ack.then(|| self.ack.counts()),
            offload: offload.then(|| OffloadCounts::read(|name| self.twin.counter(name))),
            aggregate: aggregate.then(|| AggregateCounts::read(|name| self.twin.counter(name))),
            bridge: bridge.then(|| self.bridge.counts()),
            local: bridge.then(|| self.local.counts()),
            notify: self.stages.has(Stage::Notify).then(|| self.notify.counts()),
        }
    }

    /// From here on the time is what [`Staged::set_time`] says.
    pub fn play_time(&mut self) {
        self.start = None;
        self.set_time(0);
    }

    /// The machine's time, in nanoseconds, if it is played.
    pub fn set_time(&mut self, now: u64) {
        NOW.store(now, Ordering::Relaxed);
    }

    pub(super) fn read_clock(&self) {
        if let Some(start) = self.start {
            NOW.store(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    /// Passes packets of guests to guests, as bits.
    fn deliver_local(&mut self, guests: u64, sources: &mut [TrafficSource<'_>]) {
        for source in sources.iter_mut() {
            let guest = source.flow().number;
            if guests >> guest & 1 == 0 {
                continue;
            }
            self.local.take_all(guest, |frame| {
                let Some(room) = source.room().get_mut(..frame.len()) else {
                    return false;
                };
                room.copy_from_slice(frame);
                source.arrived(frame.len());
                true
            });
        }
    }

    /// Where a packet goes, and what becomes of it if not to the wire.
    fn place(&mut self, guest: u32, request: &Request) -> Place {
        let header = request.header.first_chunk::<BRIDGE_HEADER>();
        let header = header.expect("a request has room for it");
        if usize::from(request.header_length) < BRIDGE_HEADER {
            return Place::Here(Sent::Invalid);
        }
        let way = self.bridge.send(guest, header, NOW.load(Ordering::Relaxed));
        let fits = match way {
            Way::Wire => return self.for_wire(),
            Way::Both(guests) => return self.for_all(guest, request, guests),
            Way::Spoofed => return Place::Here(Sent::Spoofed),
            Way::Guests(guests) => {
                let sent = self.local.send(guest, request, guests);
                if sent.is_ok() {
                    self.tell(guests);
                }
                sent
            }
            Way::Nowhere | Way::Storm => Ok(()),
        };
        if fits == Err(Unfit::Foreign) {
            return Place::Here(Sent::Foreign);
        }
        self.done.push_back(Done::new(guest, request.cookie));
        Place::Here(Sent::Sent)
    }

    /// To the wire, and to these guests when the driver has taken it: a packet that it
    /// cannot take now comes again.
    fn for_all(&mut self, guest: u32, request: &Request, guests: u64) -> Place {
        match self.local.copy_of(guest, request) {
            Ok(frame) => self.groups.push((self.wire, guests, frame)),
            Err(Unfit::Foreign) => return Place::Here(Sent::Foreign),
            Err(Unfit::Shape) => {}
        }
        self.for_wire()
    }

    /// A packet waits for each of these guests, as bits.
    fn tell(&mut self, guests: u64) {
        if self.stages.has(Stage::Notify) {
            self.notify.arrived(guests, NOW.load(Ordering::Relaxed));
        }
    }

    /// Packets for all of the batch that was transmitted.
    fn queue_groups(&mut self) {
        for (at, guests, frame) in std::mem::take(&mut self.groups) {
            if self.twin.result(at) == Sent::Sent {
                self.local.queue(guests, &frame);
                self.tell(guests);
            }
        }
    }

    fn for_wire(&mut self) -> Place {
        self.wire += 1;
        Place::Wire(self.wire - 1)
    }
}

impl Engine for Staged<'_> {
    fn submit(&mut self, index: usize, guest: u32, request: &Request) {
        if index == 0 {
            self.places.clear();
            self.wire = 0;
            self.groups.clear();
            self.read_clock();
        }
        let place = match self.stages.has(Stage::Bridge) {
            true => self.place(guest, request),
            false => self.for_wire(),
        };
        if let Place::Wire(at) = place {
            self.twin.submit(at, guest, request);
        }
        self.places.push(place);
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        let here = self.places[..count as usize].iter();
        let here = here.filter(|place| matches!(place, Place::Here(Sent::Sent)));
        let here = here.count() as u32;
        match self.wire {
            0 => Ok(here),
            wire => {
                let sent = self.twin.transmit(wire as u32)?;
                self.queue_groups();
                Ok(here + sent)
            }
        }
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        self.read_clock();
        // What was acknowledged is handed on, whether the stage is still on or not.
        if self.stages.has(Stage::Ack) || self.ack.waits() {
            return self.interrupt_early(card);
        }
        self.twin.interrupt(card)
    }

    fn causes_wait(&self) -> bool {
        self.ack.waits()
    }

    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop> {
        if !self.stages.has(Stage::Notify) {
            self.deliver_local(u64::MAX, sources);
            return self.twin.deliver(sources);
        }
        self.read_clock();
        let due = self.due(NOW.load(Ordering::Relaxed));
        self.told = 0;
        self.deliver_local(due, sources);
        let delivered = self.twin.deliver_to(due, sources);
        let mut rest = due;
        while rest != 0 {
            self.notify.taken(rest.trailing_zeros());
            rest &= rest - 1;
        }
        delivered
    }

    fn result(&self, index: usize) -> Sent {
        match self.places.get(index) {
            Some(Place::Wire(at)) => self.twin.result(*at),
            Some(Place::Here(sent)) => *sent,
            None => Sent::Busy,
        }
    }

    fn completion(&mut self) -> Option<Done> {
        let local = self.done.pop_front();
        local.or_else(|| self.twin.completion())
    }

    fn host(&self) -> Component {
        self.twin.host()
    }

    fn user(&self) -> Component {
        self.twin.user()
    }
}

/// The service, as [`super::twin::host_receive`]: the bridge decides, if it is on.
extern "C" fn host_receive(cpu: *mut Cpu, frame: *mut Frame) -> c_int {
    let bridge = BRIDGE.load(Ordering::Relaxed);
    if bridge.is_null() {
        return super::twin::host_receive(cpu, frame);
    }
    // SAFETY: the runtime gives a frame.
    let frame = unsafe { &mut *frame };
    let arrival = arrival(frame);
    if arrival.flags & (RX_FRAGMENTS | RX_PIECES) != 0 {
        return host_receive_pieces(bridge, frame, &arrival);
    }
    let mut guests = 0;
    // SAFETY: set by an engine that lives, as the driver runs; this is inside an import.
    let verdict = unsafe {
        packet_path::twin_bridge_hold(
            bridge,
            SWITCH.load(Ordering::Relaxed),
            INSTANCE.load(Ordering::Relaxed),
            &arrival,
            NOW.load(Ordering::Relaxed),
            &mut guests,
        )
    };
    if verdict == runtime::SWITCH_HELD {
        // SAFETY: set before the driver runs.
        unsafe { tell(guests, 1) };
    }
    answer(frame, verdict)
}

/// The packet that `host_receive` is called with.
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

/// What the bridge reads of a frame; whether it is dom0's, and not shorter.
#[inline(always)]
fn read_header(data: u64, length: u32, header: &mut [u8; BRIDGE_HEADER]) -> bool {
    // SAFETY: the instance is entered; as many bytes as there is room for.
    let read = unsafe {
        let instance = INSTANCE.load(Ordering::Relaxed);
        packet_path::twin_read_header(instance, data, header.as_mut_ptr())
    };
    length as usize >= BRIDGE_HEADER && read == runtime::OK
}

/// Bytes of dom0's, inside an import; whether they are.
#[inline(always)]
fn copy_in(from: u64, to: &mut [u8]) -> bool {
    let room = to.as_mut_ptr().cast::<c_void>();
    // SAFETY: the instance is entered; as many bytes as there is room for.
    let copied = unsafe {
        let instance = INSTANCE.load(Ordering::Relaxed);
        packet_path::twin_copy_from_dom0(instance, room, from, to.len() as u32)
    };
    copied == runtime::OK
}

/// Bytes of an aggregate before its pieces, and of a piece (`struct twin_aggregate`).
const HEAD: usize = 8;
const PIECE: usize = 16;

/// `host_receive` of a packet that is not in one piece.
#[cold]
fn host_receive_pieces(
    bridge: *mut packet_path::Bridge,
    frame: &mut Frame,
    arrival: &Arrival,
) -> c_int {
    if arrival.flags & RX_FRAGMENTS != 0 {
        // Frames longer than a page are not supported: the MTU is Ethernet's.
        return answer(frame, runtime::SWITCH_UNWANTED);
    }
    let mut first = [0u8; HEAD + PIECE];
    if (arrival.length as usize) < first.len() || !copy_in(arrival.data, &mut first) {
        return runtime::ABORTED;
    }
    let [.., a, b, c, d, _, _, _, _] = first;
    let length = u32::from_le_bytes([a, b, c, d]);
    let data = first[HEAD..]
        .first_chunk()
        .map_or(0, |d| u64::from_le_bytes(*d));
    let mut header = [0u8; BRIDGE_HEADER];
    if !read_header(data, length, &mut header) {
        return runtime::ABORTED;
    }
    // The switch refuses an aggregate whose own word says another number.
    let segments = (arrival.length as usize - HEAD).div_ceil(PIECE) as u32;
    // SAFETY: set by an engine that lives, as the driver runs.
    let verdict = match unsafe { way_of_all(bridge, &header, segments) } {
        // SAFETY: set before the driver runs.
        Way::Guests(guests) | Way::Both(guests) => unsafe {
            hold_aggregate(guests, arrival, segments)
        },
        Way::Nowhere | Way::Wire | Way::Spoofed | Way::Storm => runtime::SWITCH_UNWANTED,
    };
    answer(frame, verdict)
}

/// The way of an aggregate. To a group each of its segments is a packet: otherwise a storm
/// would have as many times its limit.
///
/// # Safety
/// As [`bridge::receive`].
unsafe fn way_of_all(
    bridge: *mut packet_path::Bridge,
    header: &[u8; BRIDGE_HEADER],
    segments: u32,
) -> Way {
    let now = NOW.load(Ordering::Relaxed);
    // SAFETY: the caller's promise.
    let mut way = unsafe { bridge::receive(bridge, header, now) };
    let group = header[0] & 1 != 0;
    for _ in 1..segments.min(SEGMENTS) {
        if !group || way == Way::Storm {
            break;
        }
        // SAFETY: the caller's promise.
        way = unsafe { bridge::receive(bridge, header, now) };
    }
    way
}

/// What `host_receive` returns, or that the driver is to be aborted.
fn answer(frame: &mut Frame, verdict: c_int) -> c_int {
    frame.rax = u64::from(match verdict {
        runtime::SWITCH_HELD => RX_HELD,
        runtime::SWITCH_UNWANTED => RX_UNWANTED,
        _ => return runtime::ABORTED,
    });
    runtime::OK
}

/// Queues an aggregate for guests, which are to be told; the switch checks its pieces.
///
/// # Safety
/// The switch, and `notify` if it is on, are those of an engine that lives; inside an import.
unsafe fn hold_aggregate(guests: u64, arrival: &Arrival, segments: u32) -> c_int {
    // SAFETY: the caller's promise.
    let verdict = unsafe {
        packet_path::twin_switch_hold_aggregate(
            SWITCH.load(Ordering::Relaxed),
            INSTANCE.load(Ordering::Relaxed),
            guests,
            arrival,
        )
    };
    if verdict == runtime::SWITCH_HELD {
        // Each segment has a buffer of the driver's, which waits with it.
        // SAFETY: the caller's promise.
        if unsafe { tell(guests, segments) } {
            AGGREGATES.fetch_add(1, Ordering::Relaxed);
            MERGED.fetch_add(u64::from(segments), Ordering::Relaxed);
        }
    }
    verdict
}

/// Guests are to be told of packets; false without `notify`.
///
/// # Safety
/// As [`hold_aggregate`].
#[inline(always)]
unsafe fn tell(guests: u64, packets: u32) -> bool {
    let notify = NOTIFY.load(Ordering::Relaxed);
    if notify.is_null() {
        return false;
    }
    ARRIVED.fetch_add(u64::from(packets), Ordering::Relaxed);
    // SAFETY: the caller's promise; its engine waits for the driver.
    unsafe { notify::arrived(notify, guests, packets, NOW.load(Ordering::Relaxed)) };
    true
}
