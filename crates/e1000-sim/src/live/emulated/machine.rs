//! The played machine: the guest's processor and the device side's, whichever is behind goes on.
//!
//! A step of the guest is a packet that it transmits, its interrupt's handler, or one poll, 64 packets
//! at most. What a step does is seen from its begin on, and what comes during a poll is found by the
//! next one: after a full poll NAPI polls again, with interrupts off; after another one it unmasks.
//! So there are somewhat more interrupts here than on a machine whose processors really run at once.
//!
//! After [`SOFTIRQ`] packets the application has the processor for as long as these took, as with
//! Linux' `ksoftirqd`.
//!
//! Between two instructions nothing happens but in an [`Order::strike`], which tests use at each of
//! them ([`strike`]).
//!
//! [`strike`]: crate::measure::strike

use super::device::{self, Device, Event};
use super::guest::{self, Guest};
use super::order::{AtEnd, Order, Outcome, Processors, Rarely, Strike, Task, Traffic};
use crate::dom0::job::{self, JobPlace};
use crate::measure::strike;
use crate::nic::Register;
use crate::packets::packet_loop::{Card, Stop};

/// Interrupts after which nothing may be left.
const PATIENCE: u32 = 64;
/// Longer than each of the card's delays and throttles, in nanoseconds.
const LONG: u64 = 20_000_000;
/// Packets that a softirq receives before it leaves the processor (Linux, `netdev_budget`).
const SOFTIRQ: u64 = 300;
/// Steps after which the machine counts as stuck.
const STEPS: u32 = 4_000_000;

/// Performs the order in the mailbox on dom0's thread 0; the outcome is there afterwards.
pub fn perform(place: &JobPlace) {
    job::declare(place.plan);
    let slot = &place.mailbox.emulated;
    let result = match slot.asked() {
        Some((Task::Count, order)) => guest::count(&order, place).map(|price| Outcome {
            price,
            ..Outcome::default()
        }),
        Some((Task::Run, order)) => run(order, place),
        None => Err(Stop::Stuck("no order")),
    };
    slot.put(result.map_err(|stop| stop.to_string()));
}

fn run(order: Order, place: &JobPlace) -> Result<Outcome, Stop> {
    let here = JobPlace { ..*place };
    let machine = Machine {
        guest: Guest::new(&order, place)?,
        order,
        blocked: false,
        softirq: None,
        applications_until: 0,
        finished: 0,
    };
    let (mut device, outcome) = device::behind(Device::new(order, here)?, || machine.run());
    let closed = device.card.close();
    let outcome = outcome?;
    closed?;
    Ok(outcome)
}

struct Machine {
    guest: Guest,
    order: Order,
    /// The driver had no room for a packet.
    blocked: bool,
    /// The driver is being polled.
    softirq: Option<Softirq>,
    /// Until then the application goes before polls.
    applications_until: u64,
    /// When the last packet was through, in nanoseconds.
    finished: u64,
}

/// Polls that follow each other.
#[derive(Clone, Copy, Debug)]
struct Softirq {
    /// Frames that were in the ring, or had been, when the interrupt was taken.
    stored: u64,
    /// When it began, or went on.
    began: u64,
    /// Packets since then.
    received: u64,
}

/// What the guest does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    /// It takes an interrupt that is due.
    Interrupt,
    /// It polls its driver.
    Poll,
    /// It transmits, or its application takes a packet.
    Work,
    /// It waits.
    Nothing,
}

impl Machine {
    fn run(mut self) -> Result<Outcome, Stop> {
        let mut steps = 0;
        while self.step()? {
            steps += 1;
            if steps > STEPS {
                return Err(Stop::Stuck("the played machine does not come to an end"));
            }
        }
        let mut outcome = self.outcome();
        self.settle()?;
        outcome.corrupted += self.guest.source.bad_completions;
        Ok(outcome)
    }

    /// One thing; false if nothing is left to happen.
    fn step(&mut self) -> Result<bool, Stop> {
        let wish = self.wish();
        if wish == Wish::Nothing && !self.is_dead() && device::with(Device::halt) {
            self.note_end();
            return Ok(true);
        }
        let next = device::with(|device| {
            let next = device.next()?;
            (wish == Wish::Nothing || self.comes_first(device, next)).then_some(next)
        });
        match (next, wish) {
            (Some((at, event)), _) => device::with(|device| device.happen(at, event))?,
            (None, Wish::Interrupt) => self.interrupt()?,
            (None, Wish::Poll) => self.poll()?,
            (None, Wish::Work) => self.work()?,
            (None, Wish::Nothing) => return Ok(false),
        }
        self.note_end();
        Ok(true)
    }

    /// Notes when the last packet was sent.
    fn note_end(&mut self) {
        let out = device::with(|device| device.frames_out());
        if self.order.traffic == Traffic::Send && out == self.order.packets && self.finished == 0 {
            self.finished = device::with(|device| device.now().max(device.vcpu.now()));
        }
    }

    fn wish(&mut self) -> Wish {
        if self.is_dead() {
            return Wish::Nothing;
        }
        let works = match self.order.traffic {
            Traffic::Send => self.guest.accepted < self.order.packets && !self.blocked,
            Traffic::Receive(_) => self.guest.has_packets(),
        };
        let (due, now) = device::with(|device| (device.is_due(), device.vcpu.now()));
        let yields = works && now < self.applications_until;
        match (due, works) {
            (true, _) => Wish::Interrupt,
            (false, _) if self.softirq.is_some() && !yields => Wish::Poll,
            (false, true) => Wish::Work,
            (false, false) => Wish::Nothing,
        }
    }

    fn is_dead(&self) -> bool {
        self.order.at_end == AtEnd::Dies && self.guest.accepted == self.order.packets
    }

    /// Whether an event is before the guest's next step.
    fn comes_first(&self, device: &Device, (at, event): (u64, Event)) -> bool {
        let now = device.vcpu.now();
        match (self.order.processors, event) {
            (Processors::Two, _) | (Processors::One, Event::Timer | Event::Flush) => at <= now,
            // The host's scheduler is fair: the device side, unless it has just had its turn.
            (Processors::One, Event::Step | Event::Arrival) => {
                at <= now && now >= device.guests_until
            }
        }
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        if !device::with(|device| device.interrupt())? {
            return Ok(());
        }
        let struck = self
            .order
            .strike
            .filter(|_| device::with(|d| d.seen.interrupts == 1));
        if let Some(strike) = struck {
            return self.struck(strike);
        }
        self.guest.handle()?;
        self.spend(self.order.price.handler);
        if self.guest.polls()? && self.softirq.is_none() {
            self.softirq = Some(device::with(|device| Softirq {
                stored: device.stored,
                began: device.vcpu.now(),
                received: 0,
            }));
        }
        Ok(())
    }

    /// One poll.
    fn poll(&mut self) -> Result<(), Stop> {
        let begins = device::with(|device| device.vcpu.now());
        let handled = self.guest.poll()?;
        self.blocked &= handled.cleaned == 0;
        self.spend(self.order.price.of_poll(handled));
        let more = self.guest.polls()?;
        let received = self.guest.received;
        let Some(softirq) = &mut self.softirq else {
            return Ok(());
        };
        softirq.received += handled.received;
        // An application that needed less than its time gives the rest back.
        softirq.began = softirq.began.min(begins);
        let now = device::with(|device| {
            device.seen.polls += 1;
            if !more {
                device.seen.found += received.saturating_sub(softirq.stored);
            }
            device.vcpu.now()
        });
        if !more {
            self.softirq = None;
        } else if softirq.received >= SOFTIRQ {
            self.applications_until = now + (now - softirq.began);
            softirq.began = self.applications_until;
            softirq.received = 0;
        }
        Ok(())
    }

    /// The first interrupt, whole, with what happens between two of its instructions.
    fn struck(&mut self, strike: Strike) -> Result<(), Stop> {
        let stored = device::with(|device| device.stored);
        let guest = &mut self.guest;
        let act = || device::with(|device| device.strike(strike.steps));
        strike::before(strike.instruction, act, || {
            guest.handle()?;
            guest.poll_out()
        })
        .map_err(|error| Stop::Driver(error.to_string()))??;
        let received = self.guest.received;
        device::with(|device| device.seen.found += received - stored);
        self.blocked = false;
        self.spend(self.order.price.interrupt + received * self.order.price.received);
        Ok(())
    }

    fn work(&mut self) -> Result<(), Stop> {
        self.retune();
        self.configure()?;
        match self.order.traffic {
            Traffic::Send => {
                self.blocked = !self.guest.transmit()?;
                if !self.blocked {
                    self.spend(self.order.price.transmit);
                }
            }
            Traffic::Receive(_) => {
                self.guest.take();
                self.spend(self.order.costs.application);
                self.finished = device::with(|device| {
                    device.seen.in_time += u64::from(device.back_end.next().is_some());
                    device.vcpu.now()
                });
            }
        }
        Ok(())
    }

    /// Writes the throttle when its time has come.
    fn retune(&self) {
        let done = self.done();
        let Some(retune) = self
            .order
            .retune
            .filter(|retune| done.is_multiple_of(retune.every))
        else {
            return;
        };
        let value = retune.values[(done / retune.every % 2) as usize];
        device::with(|device| device.guest_writes(Register::Itr, value));
    }

    /// Writes registers that share the page of the masks, when their time has come.
    fn configure(&mut self) -> Result<(), Stop> {
        let done = self.done();
        match self.order.rarely {
            Some(Rarely::ReceiveMode(every)) if done.is_multiple_of(every) => {
                self.guest.receive_mode((done / every).is_multiple_of(2))
            }
            Some(Rarely::Poke(after, offset, value)) if done == after => {
                device::with(|device| device.guest_pokes(offset, value));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Packets that the guest has sent, or its application has taken.
    fn done(&self) -> u64 {
        match self.order.traffic {
            Traffic::Send => self.guest.accepted,
            Traffic::Receive(_) => self.guest.source.received.packets(),
        }
    }

    fn spend(&self, cycles: u64) {
        device::with(|device| device.vcpu.work(cycles));
    }

    fn outcome(&self) -> Outcome {
        device::with(|device| {
            let received = &self.guest.source.received;
            let sent = &device.card.sent;
            let mut outcome = device.seen;
            let sink = match self.order.traffic {
                Traffic::Send => sent,
                Traffic::Receive(_) => received,
            };
            outcome.packets = sink.packets();
            outcome.corrupted = sink.corrupted + sink.strangers;
            outcome.stranded = self.guest.accepted - device.frames_out();
            outcome.missed = device.back_end.missed + device.card.not_stored;
            outcome.dropped = self.guest.received - received.packets() - received.corrupted;
            outcome.opened = device.pages.opened;
            outcome.rearmed = device.pages.rearmed;
            outcome.receive_control = device.peek(Register::Rctl);
            outcome.time = self.finished;
            outcome.guest_cycles = device.vcpu.worked();
            outcome
        })
    }

    /// What is left goes out, and the driver cleans it, so that the next run finds it idle.
    fn settle(&mut self) -> Result<(), Stop> {
        device::with(Device::settle)?;
        self.guest.poll_out()?;
        for _ in 0..PATIENCE {
            device::with(|device| device.card.tick(LONG));
            if !device::with(|device| device.card.interrupt()) {
                while self.guest.take() {}
                return Ok(());
            }
            self.guest.handle()?;
            self.guest.poll_out()?;
        }
        Err(Stop::Stuck("the interrupt line stays asserted"))
    }
}
