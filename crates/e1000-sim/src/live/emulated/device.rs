//! The device side: it performs accesses that trap, and keeps the played times of both
//! processors.
//!
//! ```text
//! trapped access ─> exit costs ─> card ─┬─ TDT ─> doorbell.rs
//!                                       └─ RDT ─> frames that waited for descriptors
//! interrupt line ─> look ─> interrupt, if none is on its way
//! ```
//!
//! **What memory cannot say.** While the pages are open nobody sees the handler read ICR. That it
//! has done so shows in IMC, which it writes next: what was in ICR when the interrupt was given is
//! acknowledged by the first look that finds IMC written, not before. Until then no second
//! interrupt is given.

use std::cell::RefCell;
use std::sync::atomic::Ordering;

use super::backend::BackEnd;
use super::order::{Order, Outcome, Processors, Scheme, Traffic};
use super::pages::{BarPage, Pages};
use crate::dom0::job::JobPlace;
use crate::live::clock::Clock;
use crate::memory::PageMode;
use crate::nic::Register;
use crate::packets::card::{OpenCard, registers};
use crate::packets::packet_loop::{Card, Stop};
use crate::traffic::SHORTEST;

/// What the device side's processor is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits for a frame, a doorbell or a timer.
    Asleep,
    /// It works bursts.
    Working,
    /// It found nothing, and is about to protect pages.
    Arming,
}

/// What happens next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The device side goes on.
    Step,
    /// A frame arrives while it sleeps.
    Arrival,
    /// A timer of the card.
    Timer,
    /// Packets behind a tail that is memory are due.
    Flush,
}

/// The device side. Lives on the guest's thread, where its traps are handled.
pub struct Device {
    pub(super) order: Order,
    pub(super) card: OpenCard<'static>,
    place: JobPlace,
    pub(super) pages: Pages,
    pub(super) back_end: BackEnd,
    /// The guest's processor.
    pub vcpu: Clock,
    /// The device side's.
    pub(super) own: Clock,
    pub(super) state: State,
    /// The driver uses registers of pages that always trap, and no frame has moved since: the page of
    /// the masks traps, too.
    pub(super) slow: bool,
    /// Frames of its present turn.
    pub(super) turn: u64,
    /// When that began.
    pub(super) turn_began: u64,
    /// On one processor: until then it is the guest's.
    pub(super) guests_until: u64,
    /// When the shadow of TDT is read at the latest.
    pub(super) flush_at: Option<u64>,
    /// An interrupt was given, and nothing shows yet that the handler has read its causes.
    injected: bool,
    first_interrupt: Option<u64>,
    /// The card's time at the clocks' 0.
    started: u64,
    /// Frames that are in the guest's ring, or were.
    pub stored: u64,
    /// Counts.
    pub seen: Outcome,
    failure: Option<Stop>,
}

thread_local! {
    static DEVICE: RefCell<Option<Device>> = const { RefCell::new(None) };
}

/// Puts a device behind this thread's registers while `work` runs.
pub(super) fn behind<T>(device: Device, work: impl FnOnce() -> T) -> (Device, T) {
    DEVICE.set(Some(device));
    let result = work();
    (DEVICE.take().expect("it was put there"), result)
}

/// Works with the device. Not while kernel code runs: its traps take it.
///
/// # Panics
/// Outside of [`behind`].
pub(super) fn with<T>(work: impl FnOnce(&mut Device) -> T) -> T {
    DEVICE.with_borrow_mut(|device| work(device.as_mut().expect("a device is there")))
}

/// Reads a register that trapped: `offset` in BAR 0. `None` if no emulated card is there.
pub fn trapped_read(offset: u32) -> Option<u32> {
    DEVICE.with_borrow_mut(|device| device.as_mut().map(|device| device.read(offset)))
}

/// Writes one.
pub fn trapped_write(offset: u32, value: u32) -> Option<()> {
    DEVICE.with_borrow_mut(|device| device.as_mut().map(|device| device.write(offset, value)))
}

impl Device {
    /// A device that sleeps, with pages as the scheme has them then.
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn new(order: Order, place: JobPlace) -> Result<Device, Stop> {
        let dma = place.plan.space().dma();
        let card = OpenCard::new(place.machine, place.mailbox, dma, 1, None)?;
        let pages = Pages::new().map_err(|error| Stop::Card(error.to_string()))?;
        let (packets, interval) = match order.traffic {
            Traffic::Send => (0, 0),
            Traffic::Receive(interval) => (order.packets, interval),
        };
        let mut device = Device {
            order,
            started: card.now(),
            card,
            place,
            pages,
            back_end: BackEnd::new(packets, interval, SHORTEST),
            vcpu: Clock::default(),
            own: Clock::default(),
            state: State::Asleep,
            slow: false,
            turn: 0,
            turn_began: 0,
            guests_until: 0,
            flush_at: None,
            injected: false,
            first_interrupt: None,
            stored: 0,
            seen: Outcome::default(),
            failure: None,
        };
        if order.scheme == Scheme::StatusBlock {
            device.set(BarPage::Control, PageMode::Open);
            device.set(BarPage::Receive, PageMode::Open);
            device.set(BarPage::Transmit, PageMode::ReadOnly);
        }
        Ok(device)
    }

    // ---- Traps ------------------------------------------------------------------

    /// An exit: it costs the guest time, which the card sees pass.
    fn exit(&mut self, register: Option<Register>) {
        let traps = &mut self.seen.traps;
        let count = match register {
            Some(Register::Tdt) => &mut traps.transmit_tail,
            Some(Register::Rdt) => &mut traps.receive_tail,
            Some(Register::Icr) => &mut traps.cause,
            Some(Register::Imc) => &mut traps.mask,
            Some(Register::Ims) => &mut traps.unmask,
            Some(Register::Status) => &mut traps.status,
            Some(Register::Itr) => &mut traps.throttle,
            _ => &mut traps.other,
        };
        *count += 1;
        self.vcpu.work(self.order.costs.trap);
        self.sync(self.vcpu.now());
    }

    fn read(&mut self, offset: u32) -> u32 {
        self.exit(Register::at(offset));
        self.slow_path(offset);
        let bar = registers(self.place.machine);
        // A handler that reads the causes with a trap has read them.
        self.injected &= offset != Register::Icr.offset();
        let mut nic = self.place.mailbox.device();
        nic.beside(bar, |nic| nic.mmio_read(offset))
    }

    fn write(&mut self, offset: u32, value: u32) {
        let register = Register::at(offset);
        self.exit(register);
        // What was written to memory before is earlier.
        self.look_with(register == Some(Register::Imc));
        self.slow_path(offset);
        let bar = registers(self.place.machine);
        let mut nic = self.place.mailbox.device();
        nic.beside(bar, |nic| nic.mmio_write(offset, value));
        match register {
            Some(Register::Tdt) => {
                drop(nic);
                self.rung();
            }
            Some(Register::Rdt) => {
                drop(nic);
                self.descriptors_came();
            }
            Some(Register::Ims | Register::Imc | Register::Icr | Register::Itr) => {}
            _ => nic.show_constants(bar),
        }
    }

    /// The driver uses a page that always traps: it configures the card, and may write any register
    /// next. Until frames move again the masks' page traps, too, so that each is seen.
    fn slow_path(&mut self, offset: u32) {
        let opens = self.order.scheme == Scheme::StatusBlock;
        if !opens || self.slow || BarPage::of(offset).is_some() {
            return;
        }
        self.look();
        self.slow = true;
        self.seen.closed += 1;
        self.set(BarPage::Control, PageMode::Trapped);
    }

    // ---- Registers in memory ----------------------------------------------------

    /// Takes what the guest has written to pages that are open.
    pub(super) fn look(&mut self) {
        self.look_with(false);
    }

    /// `masks`: the guest is just writing IMC.
    fn look_with(&mut self, masks: bool) {
        if self.order.scheme == Scheme::Trapped {
            return;
        }
        let bar = registers(self.place.machine);
        let written = Register::Imc.offset() as usize / 4;
        let masked = masks || bar[written].load(Ordering::Acquire) != 0;
        let ran = self.injected && masked;
        let mut nic = self.place.mailbox.device();
        let rare = nic.absorb_rare(bar);
        let absorbed = rare.and_then(|rare| Ok((rare, nic.absorb(bar, ran)?)));
        drop(nic);
        match absorbed {
            Ok((rare, absorbed)) => {
                self.injected &= !ran;
                self.seen.rare_writes += u64::from(rare);
                self.seen.throttle_writes += u64::from(absorbed.throttle);
            }
            Err(untracked) => self.fail(Stop::Card(untracked.to_string())),
        }
    }

    /// The guest writes a register of the control page: a trap, or memory.
    pub fn guest_writes(&mut self, register: Register, value: u32) {
        self.guest_pokes(register.offset(), value);
    }

    /// The guest writes any word of the control page.
    pub fn guest_pokes(&mut self, offset: u32, value: u32) {
        match self.pages.is_open(BarPage::Control) {
            true => {
                registers(self.place.machine)[offset as usize / 4].store(value, Ordering::Release);
            }
            false => self.write(offset, value),
        }
    }

    /// A register as the card has it.
    pub(super) fn peek(&self, register: Register) -> u32 {
        self.place.mailbox.device().peek(register)
    }

    /// The card works the transmit ring up to `tail` only; the guest's tail stays.
    pub(super) fn set_tail(&mut self, tail: u32) {
        let mut nic = self.place.mailbox.device();
        nic.mmio_write(Register::Tdt.offset(), tail);
    }

    /// Changes a page's protection; whether it was writable and is not any more.
    pub(super) fn set(&mut self, page: BarPage, mode: PageMode) -> bool {
        self.pages.set(page, mode).unwrap_or_else(|error| {
            self.fail(Stop::Card(error.to_string()));
            false
        })
    }

    fn fail(&mut self, why: Stop) {
        self.failure.get_or_insert(why);
    }

    // ---- Time -------------------------------------------------------------------

    /// Nanoseconds of the card's time since the begin.
    pub fn now(&self) -> u64 {
        self.card.now() - self.started
    }

    /// Lets the card's time pass until then.
    pub(super) fn sync(&mut self, then: u64) {
        if let Some(rest) = then.checked_sub(self.now()).filter(|rest| *rest > 0) {
            self.card.tick(rest);
        }
    }

    /// What happens next by itself, and when.
    pub fn next(&self) -> Option<(u64, Event)> {
        let awake = (self.state != State::Asleep).then(|| (self.own.now(), Event::Step));
        let arrival = match self.state == State::Asleep && !self.back_end.waits() {
            true => self.back_end.next().map(|at| (at, Event::Arrival)),
            false => None,
        };
        let timer = self.card.next_event();
        let timer = timer.map(|rest| (self.now() + rest, Event::Timer));
        let flush = self.flush_at.map(|at| (at, Event::Flush));
        let all = [awake, arrival, timer, flush];
        all.into_iter().flatten().min_by_key(|(at, _)| *at)
    }

    /// Lets that happen.
    ///
    /// # Errors
    /// The card's model cannot follow the driver.
    pub fn happen(&mut self, at: u64, event: Event) -> Result<(), Stop> {
        match event {
            Event::Step => {
                if self.order.processors == Processors::One {
                    self.own.idle_until(self.vcpu.now());
                }
                self.step();
                if self.order.processors == Processors::One {
                    self.vcpu.idle_until(self.own.now());
                }
            }
            Event::Arrival => self.wake(at),
            Event::Timer => {
                // Masks and throttle may have changed in memory.
                self.look();
                self.sync(at);
            }
            Event::Flush => {
                self.vcpu.idle_until(at);
                self.sync(at);
                self.flush();
            }
        }
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// The device side wakes.
    pub(super) fn wake(&mut self, at: u64) {
        if self.state == State::Asleep {
            self.own.idle_until(at);
            self.state = State::Working;
        }
    }

    /// A frame arrives now, whatever its time was, and the device side takes so many steps while
    /// the guest does nothing: its processor has been taken away.
    pub fn strike(&mut self, steps: u32) {
        self.back_end.arrive_now();
        self.seen.struck = true;
        self.sync(self.vcpu.now());
        self.wake(self.vcpu.now());
        for _ in 0..steps {
            self.step();
        }
    }

    // ---- Interrupts -------------------------------------------------------------

    /// Whether an interrupt may be due: the line is asserted, and none is on its way.
    pub fn is_due(&mut self) -> bool {
        if !self.card.interrupt() {
            return false;
        }
        self.look();
        !self.injected && self.card.interrupt()
    }

    /// Whether the guest is to be interrupted now; then it is on its way.
    ///
    /// # Errors
    /// The card's model cannot follow the driver.
    pub fn interrupt(&mut self) -> Result<bool, Stop> {
        if !self.is_due() {
            return self.failure.clone().map_or(Ok(false), Err);
        }
        // An idle guest takes it when it comes.
        self.vcpu.idle_until(self.now());
        if self.flush_at.is_some() {
            self.flush();
            // The handler must find the causes of what was sent, too.
            self.look();
        }
        // Only from a page that does not trap the handler reads ICR unseen.
        self.injected = self.order.scheme == Scheme::StatusBlock;
        let first = *self.first_interrupt.get_or_insert(self.vcpu.now());
        self.seen.interrupting = self.vcpu.now() - first;
        self.seen.interrupts += 1;
        self.vcpu.work(self.order.costs.interrupt);
        self.failure.clone().map_or(Ok(true), Err)
    }

    /// Everything traps from now on, and what waits goes out: the end of a run.
    ///
    /// # Errors
    /// The card's model cannot follow the driver.
    pub fn settle(&mut self) -> Result<(), Stop> {
        self.look();
        for page in [BarPage::Control, BarPage::Receive, BarPage::Transmit] {
            self.set(page, PageMode::Trapped);
        }
        self.order.scheme = Scheme::Trapped;
        self.injected = false;
        self.flush_at = None;
        self.state = State::Asleep;
        self.card.send();
        self.failure.clone().map_or(Ok(()), Err)
    }
}
