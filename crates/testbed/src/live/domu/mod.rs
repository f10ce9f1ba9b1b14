//! The guest's packets through dom0, as an unoptimised Xen guest sends them
//! (paper, figure 1): the guest's front end and dom0's back end share a ring, and
//! every kick and every interrupt is an event from one process to the other.
//!
//! ```text
//! guest (hypervisor process)                      dom0 process
//! requests ─> NetRing ─ kick ──────────────────>  back end checks each request,
//!                                                 hot_transmit
//! interrupt ─ event ───────────────────────────>  handler, poll
//! completions, packets <─ NetRing <─ event ─────  back end copies packets out
//! ```
//!
//! What is not modelled makes this path look cheaper than it is: mapping and
//! unmapping grants, and the bridge in dom0's network stack.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::endpoint::Endpoint;
use super::native_engine::{Notify, deliver_to};
use super::profile::{Component, cycles, enter_phase};
use super::pump::{Card, Engine, Stop};
use super::rendezvous::{Limits, Rendezvous};
use super::rings::{Done, Memory, RELEASE, REQUESTS, Request, Rings, TX_DONE};

/// Packets on their way to guests.
const SLOTS: u32 = 512;
/// Bytes of a slot.
const SLOT: usize = 2040;

/// What the front end asks of the back end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum Ask {
    /// Send that many requests.
    Transmit = 1,
    /// The card has interrupted.
    Interrupt = 2,
    /// End.
    End = 3,
}

/// A packet for a guest.
#[repr(C)]
struct Slot {
    length: u64,
    data: [u8; SLOT],
}

/// The memory that front and back end share. All zeroes is an empty one.
#[repr(C)]
pub struct NetRing {
    meet: Rendezvous,
    ask: AtomicU64,
    count: AtomicU64,
    answer: AtomicU64,
    /// Cycles that the back end has worked, waits excepted.
    served: AtomicU64,
    failure: UnsafeCell<Failure>,
    rx_produce: AtomicU32,
    rx_consume: AtomicU32,
    /// Packets dropped for want of a slot.
    pub rx_dropped: AtomicU64,
    shared: UnsafeCell<[u64; 64]>,
    requests: UnsafeCell<[Request; REQUESTS]>,
    done: UnsafeCell<[Done; TX_DONE]>,
    release: UnsafeCell<[u64; RELEASE]>,
    slots: UnsafeCell<[Slot; SLOTS as usize]>,
}

// SAFETY: used by turns, which the rendezvous gives.
unsafe impl Sync for NetRing {}

/// Why the back end failed, as text.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Failure {
    length: u64,
    text: [u8; 504],
}

impl Failure {
    /// Keeps as much of the text as there is room for.
    pub fn set(&mut self, text: &str) {
        let length = text.len().min(self.text.len());
        self.text[..length].copy_from_slice(&text.as_bytes()[..length]);
        self.length = length as u64;
    }

    /// The text.
    pub fn get(&self) -> String {
        let length = (self.length as usize).min(self.text.len());
        String::from_utf8_lossy(&self.text[..length]).into_owned()
    }
}

/// Words of `hot_shared` that [`NetRing::rings`] fills.
const REQUESTS_WORD: usize = 0;
const DONE_WORD: usize = 1;
const RELEASE_WORD: usize = 2;
/// Words that hold the produce and consume counters of the completions.
const PRODUCE_WORD: usize = 8;
const CONSUME_WORD: usize = 16;

impl std::fmt::Debug for NetRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("NetRing")
    }
}

impl Memory for &NetRing {
    fn dom0(&self, address: u64, length: u64) -> Option<*mut u8> {
        let start = std::ptr::from_ref(*self) as u64;
        let end = start + size_of::<NetRing>() as u64;
        let inside = address >= start && address.checked_add(length)? <= end;
        inside.then_some(address as *mut u8)
    }
}

impl NetRing {
    /// Says whose process serves.
    pub fn enlist(&self, server: libc::pid_t) {
        self.meet.enlist(server);
    }

    /// The front end's view: a ring as the hot routines have one.
    fn rings(&self) -> Rings {
        let words = self.shared.get().cast::<u64>();
        // SAFETY: before the first turn; inside the array.
        unsafe {
            words.add(REQUESTS_WORD).write(self.requests.get() as u64);
            words.add(DONE_WORD).write(self.done.get() as u64);
            words.add(RELEASE_WORD).write(self.release.get() as u64);
        }
        Rings::new(&self, words as u64, 0).expect("its own memory")
    }

    fn word(&self, index: usize) -> &AtomicU32 {
        // SAFETY: inside the array, aligned; only ever used as an atomic.
        unsafe {
            &*self
                .shared
                .get()
                .cast::<u64>()
                .add(index)
                .cast::<AtomicU32>()
        }
    }

    fn put_done(&self, done: Done) {
        let produce = self.word(PRODUCE_WORD).load(Ordering::Relaxed);
        if produce.wrapping_sub(self.word(CONSUME_WORD).load(Ordering::Acquire)) < TX_DONE as u32 {
            let at = self.done.get().cast::<Done>();
            // SAFETY: inside the ring; the back end's turn.
            unsafe { at.add(produce as usize % TX_DONE).write(done) };
            self.word(PRODUCE_WORD)
                .store(produce.wrapping_add(1), Ordering::Release);
        }
    }

    fn put_packet(&self, packet: &[u8]) {
        let produce = self.rx_produce.load(Ordering::Relaxed);
        let full = produce.wrapping_sub(self.rx_consume.load(Ordering::Acquire)) == SLOTS;
        if full || packet.len() > SLOT {
            self.rx_dropped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // SAFETY: inside the ring; the back end's turn.
        unsafe {
            let slot = self
                .slots
                .get()
                .cast::<Slot>()
                .add((produce % SLOTS) as usize);
            (*slot).length = packet.len() as u64;
            std::ptr::copy_nonoverlapping(packet.as_ptr(), (*slot).data.as_mut_ptr(), packet.len());
        }
        self.rx_produce
            .store(produce.wrapping_add(1), Ordering::Release);
    }

    fn take_packets(&self, mut take: impl FnMut(&[u8])) {
        let mut consume = self.rx_consume.load(Ordering::Relaxed);
        while consume != self.rx_produce.load(Ordering::Acquire) {
            // SAFETY: between produce and consume a slot is the front end's.
            let slot = unsafe {
                &*self
                    .slots
                    .get()
                    .cast::<Slot>()
                    .add((consume % SLOTS) as usize)
            };
            take(&slot.data[..(slot.length as usize).min(SLOT)]);
            consume = consume.wrapping_add(1);
            self.rx_consume.store(consume, Ordering::Release);
        }
    }
}

// ---- The guest's side ------------------------------------------------------------

/// The answer of a back end that failed.
const FAILED: u64 = u64::MAX;
/// The answer to an interrupt that was put off.
const DEFERRED: u64 = 2;

/// The guest's front end.
pub struct DomuEngine<'m> {
    ring: &'m NetRing,
    rings: Rings,
    limits: Limits,
    /// What the back end had worked when it was asked last.
    seen: u64,
}

impl<'m> DomuEngine<'m> {
    /// A front end; [`serve`] runs in dom0, or will soon.
    pub fn new(ring: &'m NetRing, limits: Limits) -> DomuEngine<'m> {
        DomuEngine {
            ring,
            rings: ring.rings(),
            limits,
            seen: ring.served.load(Ordering::Relaxed),
        }
    }

    /// Ends the back end.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    pub fn end(&mut self) -> Result<(), Stop> {
        let ended = self.ask(Ask::End, 0).map(|_| ());
        // No packet's cycles.
        self.elsewhere();
        ended
    }

    fn ask(&mut self, ask: Ask, count: u64) -> Result<u64, Stop> {
        let ring = self.ring;
        let write = || {
            ring.ask.store(ask as u64, Ordering::Relaxed);
            ring.count.store(count, Ordering::Relaxed);
        };
        let read = || ring.answer.load(Ordering::Relaxed);
        let answer = ring.meet.call(&self.limits, write, read);
        match answer.map_err(|error| Stop::Driver(format!("dom0's back end: {error}")))? {
            // SAFETY: the back end has answered and does not write now.
            FAILED => Err(Stop::Driver(unsafe { &*ring.failure.get() }.get())),
            answer => Ok(answer),
        }
    }
}

impl Engine for DomuEngine<'_> {
    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        Ok(self.ask(Ask::Transmit, count.into())? as u32)
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        if self.ask(Ask::Interrupt, 0)? == DEFERRED {
            return Ok(false);
        }
        card.settle(true)?;
        Ok(true)
    }

    fn deliver(&mut self, endpoints: &mut [Endpoint<'_>]) -> Result<(), Stop> {
        self.ring
            .take_packets(|packet| deliver_to(endpoints, packet));
        Ok(())
    }

    fn rings(&mut self) -> &mut Rings {
        &mut self.rings
    }

    fn host(&self) -> Component {
        Component::Hypervisor
    }

    fn user(&self) -> Component {
        Component::Guest
    }

    /// What the front end waits for is dom0's work, which dom0 counts; the rest is
    /// the switches between both, which are the hypervisor's.
    fn elsewhere(&mut self) -> (Component, u64) {
        let served = self.ring.served.load(Ordering::Relaxed);
        let worked = served - std::mem::replace(&mut self.seen, served);
        (Component::Dom0, worked)
    }
}

// ---- dom0's side -----------------------------------------------------------------

/// What the back end needs of dom0.
pub trait BackEnd {
    /// This CPU's rings with the driver.
    fn rings(&mut self) -> &mut Rings;
    /// `hot_transmit`.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn transmit(&mut self, count: u32) -> Result<u32, Stop>;
    /// Handler and poll; false if they were put off.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn interrupt(&mut self) -> Result<bool, Stop>;
    /// Packets that came in.
    fn packets(&mut self, take: &mut dyn FnMut(&[u8]));
}

/// Serves the front end until it says that it ends, and counts the cycles that this
/// takes, waits for the front end excepted. Runs in dom0.
pub fn serve(ring: &NetRing, back: &mut dyn BackEnd, guests: u32) {
    let mut go_on = true;
    while go_on {
        ring.meet.serve(0, || {
            let start = cycles();
            enter_phase(Component::Dom0);
            let ask = ring.ask.load(Ordering::Relaxed);
            go_on = ask != Ask::End as u64;
            let answer = answer(ring, back, guests, ask).unwrap_or_else(|stop| {
                // SAFETY: the back end's turn.
                unsafe { &mut *ring.failure.get() }.set(&stop.to_string());
                FAILED
            });
            ring.answer.store(answer, Ordering::Relaxed);
            enter_phase(Component::Idle);
            let worked = cycles() - start;
            ring.served.fetch_add(worked, Ordering::Relaxed);
        });
    }
}

fn answer(ring: &NetRing, back: &mut dyn BackEnd, guests: u32, ask: u64) -> Result<u64, Stop> {
    if ask == Ask::Transmit as u64 {
        return transmit(ring, back, guests);
    }
    if ask == Ask::Interrupt as u64 {
        let ran = back.interrupt()?;
        while let Some(done) = back.rings().completion() {
            ring.put_done(done);
        }
        back.packets(&mut |packet| ring.put_packet(packet));
        return Ok(if ran { 1 } else { DEFERRED });
    }
    Ok(0)
}

/// Each request is copied once, so that the guest cannot change it after it was
/// looked at.
fn transmit(ring: &NetRing, back: &mut dyn BackEnd, guests: u32) -> Result<u64, Stop> {
    let count = (ring.count.load(Ordering::Relaxed) as usize).min(REQUESTS);
    for index in 0..count {
        // SAFETY: inside the ring; whatever is there is a valid value.
        let request = unsafe {
            ring.requests
                .get()
                .cast::<Request>()
                .add(index)
                .read_volatile()
        };
        if request.guest >= guests {
            return Err(Stop::Driver(format!(
                "a request of guest {}",
                request.guest
            )));
        }
        back.rings().put(index, &request);
    }
    let accepted = back.transmit(count as u32)?;
    for index in 0..count {
        let result = back.rings().result(index);
        // SAFETY: inside the ring; the back end's turn.
        unsafe {
            let request = ring.requests.get().cast::<Request>().add(index);
            (&raw mut (*request).result).write_volatile(result as u32);
        }
    }
    Ok(accepted.into())
}

/// Tells the hypervisor of an interrupt before dom0 handles it: dom0 on a
/// hypervisor (paper, figures 5 to 8).
pub struct ByEvent<'m> {
    /// Where the hypervisor listens.
    pub event: &'m Rendezvous,
    /// How long dom0 waits.
    pub limits: Limits,
    /// Cycles of waits that nobody has asked about.
    pub waited: u64,
}

impl Notify for ByEvent<'_> {
    fn interrupt(&mut self) {
        let start = cycles();
        enter_phase(Component::Hypervisor);
        // Without an answer the handler runs all the same: the line is asserted.
        let _ = self.event.call(&self.limits, || (), || ());
        enter_phase(Component::Dom0);
        self.waited += cycles() - start;
    }

    fn waited(&mut self) -> u64 {
        std::mem::take(&mut self.waited)
    }
}
