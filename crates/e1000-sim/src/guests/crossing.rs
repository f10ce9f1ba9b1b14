//! All guests with the driver: kicks are served, guests are told.
//!
//! ```text
//! send     a guest is entered ─> kick: its requests ─> stages, hot_transmit ─> card
//!                             ─> idle                                      interrupt
//!          answers ─> those guests that want to know of them are told
//! receive  frames ─> interrupt, poll ─> those guests that are due: packets into their buffers, told
//! ```
//!
//! A guest has [`KICKS`] kicks each time that it is entered, and [`EMPTY_KICKS`] without work. Then it stays where it is
//! until its turn comes again, so that one that floods costs the others no more than that. One that is
//! late or dead is left out.
//!
//! With a [`Pace`] guests kick by an event index, and the hypervisor looks at all rings by itself while they are busy ([`super::looks`],
//! `looking`).
//!
//! Packets are frames: the stage `aggregate` makes longer ones, of which a buffer has the beginning only.

mod looking;

use super::back::{Back, CrossingCounts, Making, State};
use super::channel::{EVENT_ANSWERS, EVENT_ARRIVALS, RING};
use super::front::{Entry, Front, Order, Report, honest};
use super::looks::{Looks, Occasion};
use super::turn::Exit;
use crate::engines::apart::{Given, Room, Rooms, bits};
use crate::engines::staged::Staged;
use crate::error::LiveError;
use crate::measure::profile::{Component, enter_phase};
use crate::measure::steps;
use crate::memory::Machine;
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Card, Engine, PacketLoop, Stop};
use crate::packets::rings::{REQUESTS, Request, Sent, TX_DONE};
use crate::packets::round::guest_mac;
use crate::traffic::source::Shape;
use crate::transport::rendezvous::Limits;

/// Kicks that are served each time that a guest is entered: as many as its ring has requests.
pub const KICKS: u32 = RING;
/// Kicks without work that are served each time that a guest is entered.
pub const EMPTY_KICKS: u32 = 8;
/// Requests that a guest may have in its ring without a kick while rings are looked at: half of it, so that it is never full
/// before the hypervisor knows.
pub const AHEAD: u32 = RING / 2;
/// Requests of a guest that are taken before the others have their turn.
pub const QUOTA: u32 = 32;
/// Times in a row that guests are told and send more, before something else has its turn.
const ROUNDS: u32 = 64;

const _: () = assert!(
    RING as usize <= REQUESTS,
    "one kick's requests are one batch"
);

/// The loop that has the driver.
pub type Loop<'s> = PacketLoop<Staged<'s>, OpenCard<'s>>;

/// When guests kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kicks {
    /// For each packet.
    Each,
    /// For all that they have to send.
    Batch,
}

/// The guests, by number.
pub struct Guests<'m> {
    machine: &'m Machine,
    backs: Vec<Back<'m>>,
    shape: Shape,
    limits: Limits,
    /// Guests for which packets wait because they have no buffer, as bits.
    hungry: u64,
    /// Guests that are dead, and for which nothing is kept any more, as bits.
    buried: u64,
    /// Guests whose packets the driver could not take, as bits.
    turned_away: u64,
    /// Guests that had too many kicks since interrupts were last served, as bits.
    throttled: u64,
    request: Request,
    looks: Looks,
    /// The guest at whose ring the next look begins.
    first: u32,
    /// What a look gives the driver: whose each packet is, and its ticket.
    batch: Vec<(u32, u64)>,
}

impl<'m> Guests<'m> {
    /// Starts guests 0 to `count` - 1, honest ones: before dom0 and the driver are there, so that they have no copies of these.
    ///
    /// # Errors
    /// A guest's.
    pub fn start(
        machine: &'m Machine,
        count: u32,
        shape: Shape,
        limits: Limits,
    ) -> Result<Guests<'m>, LiveError> {
        Guests::start_with(machine, count, shape, limits, |_| honest)
    }

    /// The same, each with a conduct of its own.
    ///
    /// # Errors
    /// A guest's.
    pub fn start_with<C: FnMut(&mut Front<'_>, Entry)>(
        machine: &'m Machine,
        count: u32,
        shape: Shape,
        limits: Limits,
        conduct: impl Fn(u32) -> C,
    ) -> Result<Guests<'m>, LiveError> {
        let making = |guest| Making {
            guest,
            shape,
            flows: count,
            limits,
        };
        let backs = (0..count).map(|guest| Back::start(machine, making(guest), conduct(guest)));
        Ok(Guests {
            machine,
            backs: backs.collect::<Result<_, _>>()?,
            shape,
            limits,
            hungry: 0,
            buried: 0,
            turned_away: 0,
            throttled: 0,
            request: Request::default(),
            looks: Looks::default(),
            first: 0,
            batch: Vec::with_capacity(REQUESTS),
        })
    }

    /// A new, honest process for a guest that was buried.
    ///
    /// # Errors
    /// There is none.
    pub fn restart(&mut self, packets: &mut Loop<'_>, guest: u32) -> Result<(), LiveError> {
        let making = Making {
            guest,
            shape: self.shape,
            flows: self.backs.len() as u32,
            limits: self.limits,
        };
        self.backs[guest as usize].restart(making, honest)?;
        self.buried &= !(1 << guest);
        self.is_told_by_index(guest);
        packets.engine.attach_again(guest, guest_mac(guest));
        Ok(())
    }

    /// One guest.
    pub fn back(&mut self, guest: u32) -> &mut Back<'m> {
        &mut self.backs[guest as usize]
    }

    /// The machine.
    pub fn machine(&self) -> &'m Machine {
        self.machine
    }

    /// All guests' counts.
    pub fn counts(&self) -> CrossingCounts {
        let all = self.backs.iter().map(|back| back.counts);
        all.fold(CrossingCounts::default(), CrossingCounts::plus)
    }

    /// Packets that the driver has, of all guests.
    pub fn in_flight(&self) -> u32 {
        self.backs.iter().map(|back| back.in_flight).sum()
    }

    /// What guests have reported last.
    pub fn reports(&self) -> Vec<Report> {
        self.backs.iter().map(Back::report).collect()
    }

    /// Guests are told of each answer, or when half a ring was answered.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn tell_each(&mut self, packets: &mut Loop<'_>, each: bool) -> Result<(), Stop> {
        self.desk(packets, Order::Tell, u32::from(each))
    }

    /// The guests' own instructions are counted from now on, or not.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn count_steps(&mut self, packets: &mut Loop<'_>, counted: bool) -> Result<(), Stop> {
        self.desk(packets, Order::Count, u32::from(counted))
    }

    /// Guests check what came in and report.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn check(&mut self, packets: &mut Loop<'_>) -> Result<(), Stop> {
        self.desk(packets, Order::Check, 0)
    }

    /// The test's work, in guests' processes: it costs no packet anything.
    fn desk(&mut self, packets: &mut Loop<'_>, order: Order, argument: u32) -> Result<(), Stop> {
        (0..self.backs.len() as u32)
            .try_for_each(|guest| self.run(packets, guest, 0, order, argument))
    }

    /// Guests 0 to `guests` - 1 send so many packets, by turns; all have their answers then, if the
    /// guests are honest.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn send(
        &mut self,
        packets: &mut Loop<'_>,
        guests: u32,
        count: u32,
        kicks: Kicks,
    ) -> Result<(), Stop> {
        for guest in 0..guests {
            let own = count / guests + u32::from(guest < count % guests);
            self.prepare(packets, guest, own)?;
        }
        let order = match kicks {
            Kicks::Each => Order::SendEach,
            Kicks::Batch => Order::Send,
        };
        for guest in 0..guests {
            self.schedule(packets, guest, order)?;
        }
        self.serve(packets)
    }

    /// A guest makes so many packets more, which it does not send yet.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn prepare(&mut self, packets: &mut Loop<'_>, guest: u32, count: u32) -> Result<(), Stop> {
        self.run(packets, guest, 0, Order::Prepare, count)
    }

    /// A guest gets the processor, to send what it has made.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn schedule(
        &mut self,
        packets: &mut Loop<'_>,
        guest: u32,
        order: Order,
    ) -> Result<(), Stop> {
        if self.backs[guest as usize].state() == State::Ready {
            self.backs[guest as usize].counts.scheduled += 1;
        }
        self.run(packets, guest, 0, order, 0)
    }

    /// Interrupts of the card until there is none, and answers to guests. Those that the driver had turned away are told as well,
    /// and send again. A guest that had too many kicks is told the next time.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn serve(&mut self, packets: &mut Loop<'_>) -> Result<(), Stop> {
        self.throttled = 0;
        let mut later = 0;
        for _ in 0..ROUNDS {
            packets.serve_interrupts()?;
            packets.meter.switch(packets.engine.host());
            let told = std::mem::take(&mut self.turned_away) | self.answer_all(packets);
            let found = self.look_if_awake(packets, Occasion::Interrupt)?;
            later |= told & self.throttled;
            let now = told & !self.throttled;
            if now == 0 && found == 0 {
                break;
            }
            for guest in bits(now) {
                self.tell(packets, guest, EVENT_ANSWERS)?;
            }
        }
        self.turned_away |= later;
        packets.meter.switch(Component::Idle);
        Ok(())
    }

    /// Answers what was sent; guests that want to be told, as bits.
    fn answer_all(&mut self, packets: &mut Loop<'_>) -> u64 {
        let mut told = 0;
        // Not more than a ring holds: dom0 may go on writing while this reads.
        for _ in 0..TX_DONE {
            let Some(done) = packets.engine.completion() else {
                break;
            };
            let Some(back) = self.backs.get_mut(done.guest as usize) else {
                continue;
            };
            told |= u64::from(back.answer(done.cookie, Sent::Sent)) << done.guest;
        }
        told
    }

    /// Frames come in, with one interrupt, and guests that are due get theirs.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn receive<'f>(
        &mut self,
        packets: &mut Loop<'_>,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Result<u32, Stop> {
        packets.meter.switch(Component::Card);
        let mut stored = 0;
        for frame in frames {
            stored += u32::from(packets.card.receive(frame));
        }
        packets.serve_interrupts()?;
        self.look_if_awake(packets, Occasion::Interrupt)?;
        self.deliver(packets)?;
        Ok(stored)
    }

    /// Guests that are due get their packets.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn deliver(&mut self, packets: &mut Loop<'_>) -> Result<(), Stop> {
        packets.meter.switch(packets.engine.host());
        let due = packets.engine.due_now() | std::mem::take(&mut self.hungry);
        let mut rooms = Buffers {
            guests: self,
            lent: None,
            got: 0,
            without: 0,
        };
        let delivered = packets.engine.deliver_apart(due, &mut rooms);
        let (got, without) = (rooms.got, rooms.without);
        self.hungry = without;
        for guest in bits(got) {
            self.tell(packets, guest, EVENT_ARRIVALS)?;
        }
        packets.meter.switch(Component::Idle);
        delivered
    }

    /// A guest is told.
    fn tell(&mut self, packets: &mut Loop<'_>, guest: u32, events: u32) -> Result<(), Stop> {
        if self.backs[guest as usize].state() == State::Ready {
            self.backs[guest as usize].counts.notifications += 1;
        }
        self.run(packets, guest, events, Order::Rest, 0)
    }

    /// Enters a guest and serves its kicks until it has nothing to do.
    fn run(
        &mut self,
        packets: &mut Loop<'_>,
        guest: u32,
        events: u32,
        order: Order,
        argument: u32,
    ) -> Result<(), Stop> {
        match self.backs[guest as usize].state() {
            State::Ready => {}
            State::Late => return Ok(()),
            State::Dead => return self.bury(packets, guest),
        }
        let component = match order {
            Order::Rest | Order::Send | Order::SendEach => packets.engine.user(),
            Order::Prepare | Order::Check | Order::Tell | Order::Count => Component::Card,
        };
        // One that was late, or had too many: no kick is lost.
        if self.backs[guest as usize].has_kicked() {
            packets.meter.switch(packets.engine.host());
            self.kicked(packets, guest)?;
        }
        packets.meter.switch(component);
        self.backs[guest as usize].enter(events, order, argument);
        let (mut kicks, mut empty) = (0, 0);
        loop {
            // A wait is nobody's work: how often it looks depends on how long the guest takes.
            enter_phase(Component::Idle);
            if steps::counting() {
                steps::attend(false);
            }
            match self.backs[guest as usize].wait() {
                Exit::Idle | Exit::Late => break,
                Exit::Dead => {
                    self.bury(packets, guest)?;
                    break;
                }
                Exit::Kick => {
                    packets.meter.switch(packets.engine.host());
                    let served = self.kicked(packets, guest)?;
                    kicks += 1;
                    empty += u32::from(served == 0);
                    if kicks > KICKS || empty > EMPTY_KICKS {
                        self.backs[guest as usize].counts.throttled += 1;
                        self.throttled |= 1 << guest;
                        break;
                    }
                    packets.meter.switch(component);
                    self.backs[guest as usize].resume();
                }
            }
        }
        packets.meter.switch(Component::Idle);
        Ok(())
    }

    /// Gives the driver what a guest has to send; how many packets.
    fn serve_kick(&mut self, packets: &mut Loop<'_>, guest: u32) -> Result<u32, Stop> {
        let back = &mut self.backs[guest as usize];
        back.counts.kicks += 1;
        let mut tickets = [0; RING as usize];
        let mut count = 0;
        for _ in 0..back.requests() {
            if back.read(&mut self.request).is_none() {
                break;
            }
            tickets[count] = self.request.cookie;
            packets.engine.submit(count, guest, &self.request);
            count += 1;
        }
        if count == 0 {
            back.counts.empty += 1;
            return Ok(0);
        }
        packets.engine.transmit(count as u32)?;
        for (at, ticket) in tickets[..count].iter().enumerate() {
            match packets.engine.result(at) {
                Sent::Sent => {}
                refused @ (Sent::Invalid | Sent::Foreign | Sent::Spoofed) => {
                    back.answer(*ticket, refused);
                }
                later @ (Sent::Busy | Sent::NoBuffer | Sent::Down) => {
                    back.answer(*ticket, later);
                    self.turned_away |= 1 << guest;
                }
            }
        }
        packets.meter.switch(Component::Card);
        packets.card.absorb_writes(false)?;
        packets.card.send();
        packets.meter.switch(packets.engine.host());
        Ok(count as u32)
    }

    /// A guest is dead: nothing is kept for it. What the driver has of it is answered to nobody.
    fn bury(&mut self, packets: &mut Loop<'_>, guest: u32) -> Result<(), Stop> {
        let bit = 1 << guest;
        if self.buried & bit != 0 {
            return Ok(());
        }
        self.buried |= bit;
        self.hungry &= !bit;
        self.turned_away &= !bit;
        packets.engine.detach(guest);
        packets.engine.deliver_apart(0, &mut Nowhere)
    }
}

/// Guests' buffers, one of which is lent at a time.
struct Buffers<'g, 'm> {
    guests: &'g mut Guests<'m>,
    lent: Option<super::back::Buffer<'m>>,
    /// Guests that got something, as bits.
    got: u64,
    /// Guests that had no buffer when they were asked for one, as bits.
    without: u64,
}

impl Rooms for Buffers<'_, '_> {
    fn room(&mut self, guest: u32) -> Option<Room> {
        let back = self.guests.backs.get_mut(guest as usize)?;
        let buffer = match back.state() {
            State::Ready => back.buffer(),
            State::Late | State::Dead => None,
        };
        let Some(buffer) = buffer else {
            self.without |= 1 << guest;
            return None;
        };
        let room = Room {
            at: buffer.at,
            length: buffer.length,
        };
        self.lent = Some(buffer);
        Some(room)
    }

    fn is_without(&self, guest: u32) -> bool {
        self.without >> guest & 1 != 0
    }

    fn given(&mut self, guest: u32, packet: Option<Given>) {
        self.lent = None;
        if let (Some(packet), Some(back)) = (packet, self.guests.backs.get_mut(guest as usize)) {
            back.arrived(packet.length, packet.segments, packet.size);
            self.got |= 1 << guest;
        }
    }
}

/// Room for nobody.
struct Nowhere;

impl Rooms for Nowhere {
    fn room(&mut self, _: u32) -> Option<Room> {
        None
    }

    fn is_without(&self, _: u32) -> bool {
        true
    }

    fn given(&mut self, _: u32, _: Option<Given>) {}
}
