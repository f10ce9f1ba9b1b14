//! Guests with the stock driver, the card and the hypervisor, driven from outside.
//!
//! ```text
//! Grounds ── Hypervisor of each ── Post of each ─> processes ─> Rig
//! send, receive ─> card ─> vectors ─> hypervisor ─> virtual interrupts ─> guests
//! ```

use std::sync::atomic::{AtomicU32, Ordering};

use serde::{Deserialize, Serialize};

use super::ContextId;
use super::card::Card;
use super::guest::{Ask, Post, Report, ReportSlot, WORKS};
use super::layout::Layout;
use super::protection::{Hypervisor, Protection};
use super::vectors::Consumer;
use crate::dom0::interface::Info;
use crate::dom0::job::Look;
use crate::dom0::{Dom0, host};
use crate::error::LiveError;
use crate::image::files::Files;
use crate::image::{KernelPlan, Missing};
use crate::measure::profile::{self, Component, cycles};
use crate::measure::steps;
use crate::memory::{BarMode, Machine, PAGE};
use crate::nic::{Register, Ring};
use crate::packets::card::registers;
use crate::packets::packet_loop::Stop;
use crate::packets::round::guest_mac;
use crate::system::SystemError;
use crate::traffic::Sink;
use crate::transport::command::Command;
use crate::transport::mailbox::{InterruptOwner, Mailbox, SharedPages};
use crate::transport::rendezvous::Limits;

const SECOND: u64 = 1_000_000_000;
/// Buffers for which the stock driver writes a tail: `E1000_RX_BUFFER_WRITE` (Linux, e1000.h).
const REFILL: u32 = 16;
/// Interrupts and waits in a row after which guests count as stuck.
const PATIENCE: u32 = 4096;

/// What guests are made from. Made before all that refers to it.
pub struct Grounds<'f> {
    layout: Layout,
    machines: Vec<Machine>,
    mailboxes: Vec<SharedPages<Mailbox>>,
    reports: Vec<SharedPages<ReportSlot>>,
    plans: Vec<KernelPlan<'f>>,
}

impl<'f> Grounds<'f> {
    /// For so many guests.
    ///
    /// # Errors
    /// The kernel's objects do not fit together, or there is no memory.
    pub fn new(files: &'f Files, guests: usize) -> Result<Grounds<'f>, LiveError> {
        let layout = Layout::new(guests);
        let plan =
            |sizes| KernelPlan::new(sizes, &files.modules(), &host::address, Missing::Refuse);
        Ok(Grounds {
            machines: layout.machines()?,
            mailboxes: (0..guests)
                .map(|_| Mailbox::new())
                .collect::<Result<_, _>>()?,
            reports: (0..guests)
                .map(|_| SharedPages::new())
                .collect::<Result<_, _>>()?,
            plans: layout
                .parts()
                .iter()
                .copied()
                .map(plan)
                .collect::<Result<_, _>>()?,
            layout,
        })
    }

    /// The hypervisor's part for each guest.
    ///
    /// # Errors
    /// There is no memory.
    pub fn hypervisors(&self) -> Result<Vec<Hypervisor<'_>>, LiveError> {
        let each = self.machines.iter().zip(&self.plans);
        each.map(|(machine, plan)| Hypervisor::new(machine, plan.space().dma()))
            .collect()
    }

    /// What each guest's process is given.
    pub fn posts<'w>(&'w self, hypervisors: &'w [Hypervisor<'w>]) -> Vec<Post<'w>> {
        let each = hypervisors.iter().zip(&self.reports).zip(0..);
        let post = |((hypervisor, report), number): ((_, &'w SharedPages<ReportSlot>), u32)| Post {
            number,
            guests: hypervisors.len(),
            hypervisor,
            report: report.get(),
        };
        each.map(post).collect()
    }
}

/// What crossed, and what it cost, since the last [`Rig::take_tally`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Packets that drivers have taken, and frames that were stored.
    pub packets: u64,
    /// The card's interrupts.
    pub interrupts: u64,
    /// Interrupts for guests.
    pub virtual_interrupts: u64,
    /// Tails that drivers have written and that are no memory then, and pages protected.
    pub tails: u64,
    /// Instructions, if they were counted: hypervisor, guest (with its driver).
    pub instructions: [u64; 2],
    /// Cycles of both.
    pub cycles: u64,
}

impl Tally {
    /// Adds another one.
    pub fn add(&mut self, other: &Tally) {
        self.packets += other.packets;
        self.interrupts += other.interrupts;
        self.virtual_interrupts += other.virtual_interrupts;
        self.tails += other.tails;
        for (sum, more) in self.instructions.iter_mut().zip(other.instructions) {
            *sum += more;
        }
        self.cycles += other.cycles;
    }
}

/// A guest, as the supervisor has it.
struct Running<'w> {
    dom0: Dom0<'w, 'w>,
    info: Info,
    refused: u64,
    rearmed: u64,
}

/// All of it.
pub struct Rig<'w> {
    grounds: &'w Grounds<'w>,
    posts: &'w [Post<'w>],
    guests: Vec<Running<'w>>,
    protection: Protection,
    consumer: Consumer<'w>,
    /// The card.
    pub card: Card<'w>,
    /// The other end of the cable.
    pub wire: Sink,
    /// How asks are observed.
    pub look: Look,
    /// Guests that get no interrupt: not scheduled.
    pub descheduled: u64,
    waiting: u64,
    tally: Tally,
}

impl<'w> Rig<'w> {
    /// Boots the guests, which send frames of so many bytes, under that protection.
    ///
    /// # Errors
    /// A guest does not come up.
    pub fn start(
        grounds: &'w Grounds<'w>,
        posts: &'w [Post<'w>],
        bytes: usize,
        protection: Protection,
        limits: Limits,
    ) -> Result<Rig<'w>, SystemError> {
        let vectors = grounds.layout.vectors();
        let consumer = Consumer::new(&grounds.machines[0], vectors);
        let lacking = || SystemError::Lacking("there is no memory for vectors".to_owned());
        let mut rig = Rig {
            grounds,
            posts,
            guests: Vec::new(),
            protection,
            consumer: consumer.ok_or_else(lacking)?,
            card: Card::new(vectors),
            wire: Sink::new(posts.len()),
            look: Look::Cycles,
            descheduled: 0,
            waiting: 0,
            tally: Tally::default(),
        };
        for post in posts {
            rig.boot(post, bytes, limits)?;
        }
        Ok(rig)
    }

    fn boot(
        &mut self,
        post: &'w Post<'w>,
        bytes: usize,
        limits: Limits,
    ) -> Result<(), SystemError> {
        let number = post.number as usize;
        let machine = &self.grounds.machines[number];
        let mailbox = self.grounds.mailboxes[number].get();
        mailbox.power_on(guest_mac(post.number));
        mailbox.set_interrupt_owner(InterruptOwner::Dom0);
        let plan = &self.grounds.plans[number];
        let mut dom0 = Dom0::start_with(plan, machine, mailbox, limits, WORKS)?;
        dom0.boot()?;
        dom0.load("")?;
        dom0.open()?;
        dom0.link_wait(10 * SECOND)?;
        let info = dom0.info()?;
        mailbox.set_interrupt_owner(InterruptOwner::Hypervisor);
        dom0.command("opening registers", Command::SetBar(BarMode::Open))?;
        self.card.add(mailbox, machine, guest_mac(post.number));
        self.guests.push(Running {
            dom0,
            info,
            refused: 0,
            rearmed: 0,
        });
        let id = ContextId(number);
        self.take_rings(id)?;
        let at = std::ptr::from_ref(post) as u64;
        let ready = self.ask(
            id,
            Ask::Begin,
            [at, bytes as u64, info.net_device, info.rx_ring],
        )?;
        match ready {
            1 => Ok(()),
            _ => Err(SystemError::Lacking(
                "a guest has no packet loop".to_owned(),
            )),
        }
    }

    fn take_rings(&mut self, id: ContextId) -> Result<(), SystemError> {
        let hypervisor = self.posts[id.0].hypervisor;
        let machine = &self.grounds.machines[id.0];
        let mut device = self.grounds.mailboxes[id.0].get().device();
        let opened = device.open(registers(machine));
        opened.map_err(|untracked| Stop::Card(untracked.to_string()))?;
        hypervisor.take(self.protection, &mut device)?;
        drop(device);
        self.card.protect(id, self.protection, &hypervisor.table);
        Ok(())
    }

    /// Has all guests' rings under another protection. Nothing is under way.
    ///
    /// # Errors
    /// A ring is refused.
    pub fn set_protection(&mut self, protection: Protection) -> Result<(), SystemError> {
        self.protection = protection;
        for id in self.ids() {
            let mut device = self.grounds.mailboxes[id.0].get().device();
            self.posts[id.0].hypervisor.give_back(&mut device);
            drop(device);
            self.take_rings(id)?;
        }
        Ok(())
    }

    /// All contexts.
    pub fn ids(&self) -> impl Iterator<Item = ContextId> + use<> {
        (0..self.guests.len()).map(ContextId)
    }

    /// What a guest has reported last.
    pub fn report(&self, id: ContextId) -> Report {
        self.posts[id.0].report.get()
    }

    /// A guest's machine: its part, its registers.
    pub fn machine(&self, id: ContextId) -> &'w Machine {
        &self.grounds.machines[id.0]
    }

    /// A guest's mailbox: its device.
    pub fn mailbox(&self, id: ContextId) -> &'w Mailbox {
        self.grounds.mailboxes[id.0].get()
    }

    /// The hypervisor's part for a guest.
    pub fn hypervisor(&self, id: ContextId) -> &'w Hypervisor<'w> {
        self.posts[id.0].hypervisor
    }

    /// A guest's own interface, for what rows do not do.
    pub fn guest(&mut self, id: ContextId) -> (&mut Dom0<'w, 'w>, Info) {
        let guest = &mut self.guests[id.0];
        (&mut guest.dom0, guest.info)
    }

    fn ask(&mut self, id: ContextId, ask: Ask, [a, b, c, d]: [u64; 4]) -> Result<u64, SystemError> {
        let command = Command::Work {
            number: ask as u32,
            arguments: [a, b, c, d, 0],
        };
        let before = self.tails(id);
        let answer = self.guests[id.0]
            .dom0
            .command("a guest's packets", command)?;
        let report = self.report(id);
        if report.broken != 0 {
            return Err(Stop::Driver(answer.console).into());
        }
        self.tally.tails += self.trapped_since(id, before, &report);
        let hypervisor = report.steps.of(Component::Hypervisor);
        self.tally.instructions[0] += hypervisor;
        self.tally.instructions[1] += report.steps.costs() - hypervisor;
        let costs = Component::COSTS.iter();
        self.tally.cycles += costs.map(|cost| report.spent[*cost as usize]).sum::<u64>();
        if report.refused > self.guests[id.0].refused {
            self.guests[id.0].refused = report.refused;
            self.revoke(id);
        }
        Ok(answer.value)
    }

    fn tails(&self, id: ContextId) -> [u32; 2] {
        [Ring::Transmit, Ring::Receive].map(|ring| self.tail(id, ring).load(Ordering::Acquire))
    }

    /// Tails that the driver has written in one ask, as far as they are no memory then: one for a
    /// batch of packets that are sent (`xmit_more`), one for every [`REFILL`] buffers. A page that
    /// was protected counts as one more.
    fn trapped_since(&mut self, id: ContextId, before: [u32; 2], report: &Report) -> u64 {
        let device = self.mailbox(id).device();
        let [sent, refilled] = [Ring::Transmit, Ring::Receive].map(|ring| {
            let count = device.driver_ring(ring).count.max(1);
            let now = self.tail(id, ring).load(Ordering::Acquire);
            (now + count - before[ring as usize] % count) % count
        });
        let refills = match report.tail_is_memory {
            0 => u64::from(refilled.div_ceil(REFILL)),
            _ => 0,
        };
        let seen = &mut self.guests[id.0].rearmed;
        let rearmed = report.rearmed - std::mem::replace(seen, report.rearmed);
        u64::from(sent != 0) + refills + rearmed
    }

    /// Takes the context away (thesis, 5.1.1): nothing of it is sent or received any more, and
    /// its frames are its again.
    pub fn revoke(&mut self, id: ContextId) {
        self.card.revoke(id);
        let mut device = self.mailbox(id).device();
        self.posts[id.0].hypervisor.give_back(&mut device);
        self.waiting &= !id.bit();
    }

    /// Has a guest give its driver so many packets: how many it took.
    ///
    /// # Errors
    /// Its driver stopped.
    pub fn send(&mut self, id: ContextId, packets: u64) -> Result<u64, SystemError> {
        let arguments = [packets, self.protection as u64, self.look as u64, 0];
        let taken = self.ask(id, Ask::Send, arguments)?;
        self.tally.packets += taken;
        Ok(taken)
    }

    /// The card sends so many bytes, by turns.
    pub fn serve(&mut self, bytes: u64) -> u64 {
        self.card.serve(bytes, &mut self.wire)
    }

    /// A frame comes in: how many contexts have stored it.
    pub fn receive(&mut self, frame: &[u8]) -> u32 {
        let stored = self.card.receive(frame);
        self.tally.packets += u64::from(stored);
        stored
    }

    /// Interrupts until nobody has news, and no timer runs.
    ///
    /// # Errors
    /// A driver stopped, or makes no progress.
    pub fn settle(&mut self) -> Result<(), SystemError> {
        for _ in 0..PATIENCE {
            if self.interrupts()? {
                continue;
            }
            match self.card.next_event() {
                Some(nanoseconds) => self.card.tick(nanoseconds),
                None => return Ok(()),
            }
        }
        Err(Stop::Stuck("guests' interrupts do not end").into())
    }

    /// The card's interrupt and the guests' that it brings, if there are any.
    ///
    /// # Errors
    /// A driver stopped.
    pub fn interrupts(&mut self) -> Result<bool, SystemError> {
        if self.card.update() {
            self.tally.interrupts += 1;
            self.waiting |= self.drain()?;
        }
        let due = self.waiting & !self.descheduled;
        self.waiting &= self.descheduled;
        for id in ContextId::of_vector(due) {
            if self.card.stopped(id).is_none() {
                self.tally.virtual_interrupts += 1;
                let arguments = [self.protection as u64, self.look as u64, 0, 0];
                self.ask(id, Ask::Interrupt, arguments)?;
            }
        }
        Ok(due != 0)
    }

    /// The hypervisor's handler.
    fn drain(&mut self) -> Result<u64, LiveError> {
        if self.look == Look::Steps {
            let (bits, steps) = steps::count(|| {
                profile::enter_phase(Component::Hypervisor);
                let bits = self.consumer.drain();
                profile::enter_phase(Component::Idle);
                bits
            })?;
            self.tally.instructions[0] += steps.of(Component::Hypervisor);
            return Ok(bits);
        }
        let before = cycles();
        let bits = self.consumer.drain();
        self.tally.cycles += cycles().wrapping_sub(before);
        Ok(bits)
    }

    /// What was counted since the last call.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Pins of a guest's frames, by its table.
    pub fn pins(&self, id: ContextId) -> u64 {
        let machine = self.machine(id);
        let sizes = machine.sizes();
        let frames = (sizes.base..sizes.total()).step_by(PAGE as usize);
        frames
            .map(|frame| u64::from(machine.frames().pins(frame)))
            .sum()
    }

    /// A tail in a guest's register page, as the guest writes it.
    pub fn tail(&self, id: ContextId, ring: Ring) -> &'w AtomicU32 {
        let register = match ring {
            Ring::Transmit => Register::Tdt,
            Ring::Receive => Register::Rdt,
        };
        &registers(self.machine(id))[register.offset() as usize / 4]
    }

    /// Moves the device's own tails past the hypervisor, as a guest could whose card has its
    /// mailboxes mapped (thesis, 5.2).
    ///
    /// # Errors
    /// [`Stop::Card`].
    pub fn move_tails(&self, id: ContextId, tails: [u32; 2]) -> Result<(), Stop> {
        let mut device = self.mailbox(id).device();
        device.pass_tails(tails);
        let absorbed = device.absorb(registers(self.machine(id)), false);
        absorbed
            .map(|_| ())
            .map_err(|untracked| Stop::Card(untracked.to_string()))
    }
}
