//! A guest's process, from inside: the stock driver on the kernel shim, its packets, and the
//! hypervisor's calls, which count for the hypervisor.
//!
//! ```text
//! send       packets ─> hot_transmit ─> driver ─> tail ─> Hypervisor::doorbell ─> context
//! interrupt  Hypervisor::show ─> handler, poll ─> tail ─> Hypervisor::doorbell ─> context
//! ```
//!
//! As on the path through the hypervisor instance, guest and hypervisor call each other here for
//! nothing; what a real crossing costs is quoted (`live/price.rs`). A batch of packets has one
//! doorbell: the driver honours `xmit_more`.

use std::cell::{RefCell, UnsafeCell};

use process_lab::runtime::DmaReport;

use super::protection::{Hypervisor, Protection, ReceiveTail};
use crate::dom0::enter::EnterError;
use crate::dom0::job::{self, Look};
use crate::dom0::work::{Local, Work};
use crate::engines::native::{Directly, NativeEngine};
use crate::measure::profile::{ByComponent, Component};
use crate::measure::steps::{self, Steps};
use crate::memory;
use crate::packets::card::registers;
use crate::packets::packet_loop::{CycleMeter, Engine, Stop};
use crate::packets::rings::{REQUESTS, Request, Sent, TX_DONE};
use crate::packets::round::outgoing;
use crate::traffic::source::{Shape, TrafficSource};
use crate::transport::mailbox::Zeroed;

/// What a guest's process is asked to do; the supervisor's numbers for [`WORKS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Ask {
    /// Arguments: address of its [`Post`], bytes of its frames, dom0 addresses of its device and
    /// of the ring of packets that its stack delivers.
    Begin = 0,
    /// Arguments: packets, protection, look.
    Send = 1,
    /// Arguments: protection, look.
    Interrupt = 2,
}

/// The functions, by [`Ask`].
pub const WORKS: &[Work] = &[begin, send, interrupt];

/// Where a guest is and what it is given. Made before its process, which has a copy.
pub struct Post<'w> {
    /// Its number.
    pub number: u32,
    /// How many guests there are.
    pub guests: usize,
    /// The hypervisor's part for it.
    pub hypervisor: &'w Hypervisor<'w>,
    /// Where it reports.
    pub report: &'w ReportSlot,
}

/// What a guest has done. Plain integers: it crosses processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Instructions of the last ask, if they were counted.
    pub steps: Steps,
    /// Cycles of the last ask.
    pub spent: ByComponent,
    /// Packets that the driver has taken, ever.
    pub sent: u64,
    /// Of them, completed.
    pub completed: u64,
    /// Completions of nothing.
    pub bad_completions: u64,
    /// Frames that came to it, each whole and its own.
    pub received: u64,
    /// Frames that were changed, or another's.
    pub damaged: u64,
    /// Violations, by which it lost its context.
    pub refused: u64,
    /// The last one.
    pub refusal: DmaReport,
    /// The driver stopped.
    pub broken: u32,
    /// Writing the receive tail was no trap in the last ask: 1.
    pub tail_is_memory: u32,
    /// Times that the page of the receive tail was protected again.
    pub rearmed: u64,
}

/// Memory for a report, in all processes.
#[repr(C)]
pub struct ReportSlot(UnsafeCell<Report>);

// SAFETY: written by the guest while it serves an ask, read after the answer.
unsafe impl Sync for ReportSlot {}
// SAFETY: integers; all zeroes is a valid report.
unsafe impl Zeroed for ReportSlot {}

impl ReportSlot {
    /// The report. For the process that asked, after the answer.
    pub fn get(&self) -> Report {
        // SAFETY: the guest writes no more.
        unsafe { *self.0.get() }
    }

    fn change(&self, change: impl FnOnce(&mut Report)) {
        // SAFETY: the guest's turn.
        change(unsafe { &mut *self.0.get() });
    }
}

struct Guest {
    post: &'static Post<'static>,
    local: Local<'static>,
    engine: NativeEngine<Directly>,
    source: TrafficSource<'static>,
    meter: CycleMeter,
    request: Request,
    receive_tail: ReceiveTail,
}

thread_local! {
    static GUEST: RefCell<Option<Guest>> = const { RefCell::new(None) };
}

fn begin(
    local: &Local<'_>,
    [post, bytes, device, rx_ring, _]: [u64; 5],
) -> Result<u64, EnterError> {
    // SAFETY: the address of a `Post` that was made before this process, which has it and all
    // that it refers to until it ends; what `local` has, too (`dom0/threads.rs`).
    let (post, local) = unsafe {
        (
            &*(post as *const Post<'static>),
            std::mem::transmute::<Local<'_>, Local<'static>>(*local),
        )
    };
    job::declare(local.plan);
    let Some(engine) = NativeEngine::new(
        local.plan,
        local.machine,
        Directly,
        device,
        memory::IRQ,
        rx_ring,
    ) else {
        return Ok(0);
    };
    let memory = local.machine.sizes().guest(0);
    let shape = Shape::Frames(bytes as usize);
    let flow = outgoing(post.number);
    let guest = Guest {
        post,
        local,
        engine,
        source: TrafficSource::new(local.machine, flow, memory, shape, post.guests),
        meter: CycleMeter::default(),
        request: Request::default(),
        receive_tail: ReceiveTail::Traps,
    };
    GUEST.set(Some(guest));
    Ok(1)
}

fn send(_: &Local<'_>, [packets, protection, look, ..]: [u64; 5]) -> Result<u64, EnterError> {
    let protection = Protection::from_number(protection);
    Ok(asked(look, |guest| guest.send(packets, protection)))
}

fn interrupt(_: &Local<'_>, [protection, look, ..]: [u64; 5]) -> Result<u64, EnterError> {
    let protection = Protection::from_number(protection);
    Ok(asked(look, |guest| guest.interrupt(protection).map(|()| 0)))
}

/// Does it, counts it and reports.
fn asked(look: u64, work: impl FnOnce(&mut Guest) -> Result<u64, Stop>) -> u64 {
    GUEST.with_borrow_mut(|guest| {
        let Some(guest) = guest else { return 0 };
        let before = guest.meter.spent;
        let (done, steps) = if look == Look::Steps as u64 {
            match steps::count(|| work(guest)) {
                Ok(counted) => counted,
                Err(error) => (Err(Stop::Driver(error.to_string())), Steps::default()),
            }
        } else {
            (work(guest), Steps::default())
        };
        guest.meter.switch(Component::Idle);
        guest.report(steps, before, done.is_err());
        if let Err(stop) = &done {
            let text = format!("<3> guest: {stop}\n");
            guest.local.mailbox.console.write(text.as_bytes());
        }
        done.unwrap_or(0)
    })
}

impl Guest {
    /// Gives the driver so many packets, or as many as it takes: how many that were.
    fn send(&mut self, packets: u64, protection: Protection) -> Result<u64, Stop> {
        self.meter.switch(Component::Card);
        let packets: Vec<_> = (0..packets.min(REQUESTS as u64))
            .map_while(|_| self.source.prepare())
            .collect();
        self.meter.switch(Component::Guest);
        for (index, packet) in packets.iter().enumerate() {
            let source = &self.source;
            self.engine
                .submit_by(index, 0, &mut self.request, |request| {
                    source.describe(packet, request);
                });
        }
        let accepted = self.engine.transmit(packets.len() as u32)?;
        self.doorbell(protection, false)?;
        // Withdrawn in reverse order, because numbers were given in order.
        for (index, packet) in packets.iter().enumerate().rev() {
            if self.engine.result(index) != Sent::Sent {
                self.source.cancel(packet);
            }
        }
        Ok(accepted.into())
    }

    /// A virtual interrupt.
    fn interrupt(&mut self, protection: Protection) -> Result<(), Stop> {
        // What the guest finds in its registers is what the device has.
        self.meter.switch(Component::Card);
        self.absorb(false)?;
        self.meter.switch(Component::Hypervisor);
        if let Err(report) = self.show(protection) {
            self.refuse(report);
            return Ok(());
        }
        self.meter.switch(Component::Guest);
        if !self.engine.handle()? {
            return Err(Stop::Stuck("the guest has its interrupts off"));
        }
        self.polled(protection)?;
        self.meter.switch(Component::Guest);
        for _ in 0..TX_DONE {
            let Some(done) = self.engine.completion() else {
                break;
            };
            self.source.complete(done.cookie);
        }
        self.engine
            .deliver(std::slice::from_mut(&mut self.source))?;
        self.meter.switch(Component::Card);
        self.source.check();
        Ok(())
    }

    fn show(&mut self, protection: Protection) -> Result<(), DmaReport> {
        let before = self.receive_tail;
        self.receive_tail = self.post.hypervisor.show(protection, before)?;
        let rearmed = before == ReceiveTail::Memory && self.receive_tail == ReceiveTail::Traps;
        let memory = self.receive_tail == ReceiveTail::Memory;
        self.post.report.change(|report| {
            report.rearmed += u64::from(rearmed);
            report.tail_is_memory = memory.into();
        });
        Ok(())
    }

    /// Handler and poll are over. A receive tail that is memory was no trap: the hypervisor has not
    /// run, and the card has what was checked before.
    fn polled(&mut self, protection: Protection) -> Result<(), Stop> {
        self.meter.switch(Component::Card);
        match self.receive_tail {
            ReceiveTail::Memory if !self.post.hypervisor.transmits() => self.absorb(true),
            ReceiveTail::Memory | ReceiveTail::Traps => self.doorbell(protection, true),
        }
    }

    /// The driver has run and may have written tails: a trap, if there is protection.
    fn doorbell(&mut self, protection: Protection, handler_ran: bool) -> Result<(), Stop> {
        self.meter.switch(Component::Hypervisor);
        let rung = self.post.hypervisor.doorbell(protection);
        self.meter.switch(Component::Card);
        match rung {
            Ok(()) => self.absorb(handler_ran),
            Err(report) => {
                self.refuse(report);
                Ok(())
            }
        }
    }

    /// The device takes what was written to its registers, with the tails that were checked.
    fn absorb(&mut self, handler_ran: bool) -> Result<(), Stop> {
        let mut device = self.local.mailbox.device();
        device.pass_tails(self.post.hypervisor.guard.tails());
        let absorbed = device.absorb(registers(self.local.machine), handler_ran);
        absorbed
            .map(|_| ())
            .map_err(|untracked| Stop::Card(untracked.to_string()))
    }

    fn refuse(&mut self, refusal: DmaReport) {
        self.post.report.change(|report| {
            report.refused += 1;
            report.refusal = refusal;
        });
    }

    fn report(&mut self, steps: Steps, before: ByComponent, broken: bool) {
        let received = &self.source.received;
        let own = self.post.number as usize;
        let all: u64 = received.flows.iter().map(|flow| flow.packets).sum();
        let mine = received.flows.get(own).map_or(0, |flow| flow.packets);
        self.post.report.change(|report| {
            report.steps = steps;
            report.spent = std::array::from_fn(|i| self.meter.spent[i] - before[i]);
            report.sent = self.source.sent;
            report.completed = self.source.completed;
            report.bad_completions = self.source.bad_completions;
            report.received = mine;
            report.damaged = received.corrupted + received.strangers + (all - mine);
            report.broken |= u32::from(broken);
        });
    }
}
