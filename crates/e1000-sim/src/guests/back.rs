//! The hypervisor's view of one guest: its process, how far its rings have been read, and what was promised to it.
//!
//! All that is relied on is in the hypervisor's own memory. An index that shows more than a ring has is a lie: what
//! is between is skipped and counted, and the guest has lost its own requests. A request has a ticket in place of its guest's
//! cookie while the driver has it, so that neither a late completion nor one of a guest that is gone is another's.

use std::io;
use std::ops::Range;
use std::sync::atomic::Ordering;

use process_lab::process::{self, Child};

use super::channel::{Channel, REFUSED, RING, reaches};
use super::confine::confine;
use super::front::{Entry, Front, Order, Report};
use super::turn::Exit;
use crate::error::LiveError;
use crate::memory::{Machine, Owner, PAGE, Pinned};
use crate::packets::rings::{Request, Sent};
use crate::traffic::LONGEST;
use crate::traffic::source::Shape;
use crate::transport::mailbox::SharedPages;
use crate::transport::rendezvous::Limits;

/// What was counted of one guest, or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CrossingCounts {
    /// The guest left with work for the hypervisor, and its ring was looked at.
    pub kicks: u64,
    /// Of these, without any work.
    pub empty: u64,
    /// The guest was entered because it was to be told of something.
    pub notifications: u64,
    /// The guest was entered because it wants to send.
    pub scheduled: u64,
    /// It was not entered again after a kick, because it had too many.
    pub throttled: u64,
    /// Indices that showed more than a ring has.
    pub wild: u64,
    /// Requests refused: malformed, of another's memory, of another's address.
    pub refused: u64,
    /// Buffers refused: not the guest's own.
    pub refused_buffers: u64,
    /// It did not leave in time.
    pub late: u64,
    /// Completions of a guest that was gone.
    pub orphans: u64,
}

impl CrossingCounts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: CrossingCounts) -> CrossingCounts {
        self.with(other, |one, another| one + another)
    }

    /// What was added since `before`.
    #[must_use]
    pub fn since(self, before: CrossingCounts) -> CrossingCounts {
        self.with(before, |now, before| now - before)
    }

    fn with(self, other: CrossingCounts, of: impl Fn(u64, u64) -> u64) -> CrossingCounts {
        CrossingCounts {
            kicks: of(self.kicks, other.kicks),
            empty: of(self.empty, other.empty),
            notifications: of(self.notifications, other.notifications),
            scheduled: of(self.scheduled, other.scheduled),
            throttled: of(self.throttled, other.throttled),
            wild: of(self.wild, other.wild),
            refused: of(self.refused, other.refused),
            refused_buffers: of(self.refused_buffers, other.refused_buffers),
            late: of(self.late, other.late),
            orphans: of(self.orphans, other.orphans),
        }
    }
}

/// Whether the hypervisor can enter a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It waits to be entered.
    Ready,
    /// It has not left, and is not waited for any more.
    Late,
    /// Its process is dead.
    Dead,
}

/// Where a packet for a guest goes: its own memory, pinned as long as this is there.
pub struct Buffer<'m> {
    /// Where it is in this process. The guest writes to it as it likes.
    pub at: *mut u8,
    /// Bytes.
    pub length: u32,
    _pinned: Pinned<'m>,
}

/// One guest.
pub struct Back<'m> {
    machine: &'m Machine,
    channel: SharedPages<Channel>,
    process: Child,
    guest: u32,
    state: State,
    limits: Limits,
    /// Requests read, answers given, buffers used: of the present process.
    taken: u32,
    answers: u32,
    used: u32,
    /// The guest's names for what the driver has, by place.
    cookies: Vec<Option<u64>>,
    /// Places without one.
    free: Vec<u32>,
    /// Distinguishes tickets of a guest that is gone.
    life: u32,
    /// The driver has so many packets of this guest's, of all its lives.
    pub in_flight: u32,
    /// So far, of all its lives.
    pub counts: CrossingCounts,
}

/// What a guest's process is made of.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    /// Its number.
    pub guest: u32,
    /// What it sends.
    pub shape: Shape,
    /// How many guests there are, whose flows it may get.
    pub flows: u32,
    /// How long the hypervisor waits for it.
    pub limits: Limits,
}

impl<'m> Back<'m> {
    /// Starts a guest whose process does `conduct` each time that it is entered. It has given up all that is not
    /// its own when this returns.
    ///
    /// # Errors
    /// There is no memory or no process, or it did not come up.
    pub fn start(
        machine: &'m Machine,
        making: Making,
        conduct: impl FnMut(&mut Front<'_>, Entry),
    ) -> Result<Back<'m>, LiveError> {
        let (channel, process) = new_process(machine, making, conduct)?;
        let mut back = Back {
            machine,
            channel,
            process,
            guest: making.guest,
            state: State::Ready,
            limits: making.limits,
            taken: 0,
            answers: 0,
            used: 0,
            cookies: vec![None; RING as usize],
            free: (0..RING).collect(),
            life: 0,
            in_flight: 0,
            counts: CrossingCounts::default(),
        };
        back.booted()?;
        Ok(back)
    }

    /// A new process in place of one that is dead. What the driver has of the old one completes as nobody's.
    ///
    /// # Errors
    /// As [`Back::start`].
    pub fn restart(
        &mut self,
        making: Making,
        conduct: impl FnMut(&mut Front<'_>, Entry),
    ) -> Result<(), LiveError> {
        self.process.kill();
        (self.channel, self.process) = new_process(self.machine, making, conduct)?;
        (self.taken, self.answers, self.used) = (0, 0, 0);
        self.forget_tickets();
        self.booted()
    }

    fn booted(&mut self) -> Result<(), LiveError> {
        self.state = State::Ready;
        match self.wait() {
            Exit::Idle => Ok(()),
            Exit::Kick | Exit::Late | Exit::Dead => {
                let why = io::Error::other("it did not come up");
                Err(LiveError::system("a guest's process")(why))
            }
        }
    }

    /// Its number.
    pub fn guest(&self) -> u32 {
        self.guest
    }

    /// Its process, for signals.
    pub fn pid(&self) -> libc::pid_t {
        self.process.pid()
    }

    /// Whether it can be entered. One that was late and has left since can be.
    pub fn state(&mut self) -> State {
        match self.state {
            State::Ready | State::Dead => {}
            State::Late if self.channel.get().turn.left().is_some() => self.state = State::Ready,
            State::Late if !self.process.is_alive() => self.state = State::Dead,
            State::Late => {}
        }
        self.state
    }

    /// Whether it has left with a kick that was not served.
    pub fn has_kicked(&self) -> bool {
        self.channel.get().turn.left() == Some(Exit::Kick)
    }

    /// Kills it, wherever it is.
    pub fn kill(&mut self) {
        self.process.kill();
        self.state = State::Dead;
    }

    /// How its process ended, if it has.
    pub fn fate(&mut self) -> Option<String> {
        self.process.fate()
    }

    /// What the guest has reported last, for the test.
    pub fn report(&self) -> Report {
        Report::read(self.channel.get())
    }

    /// The channel, for tests.
    pub fn channel(&self) -> &Channel {
        self.channel.get()
    }

    /// Lets the guest run, with these events and that order.
    pub fn enter(&mut self, events: u32, order: Order, argument: u32) {
        let channel = self.channel.get();
        channel.events.store(events, Ordering::Relaxed);
        channel.desk.order.store(order as u32, Ordering::Relaxed);
        channel.desk.argument.store(argument, Ordering::Relaxed);
        channel.turn.enter();
    }

    /// Lets it run on after a kick.
    pub fn resume(&self) {
        self.channel.get().turn.enter();
    }

    /// Waits until it does not run any more, or is not waited for.
    pub fn wait(&mut self) -> Exit {
        let exit = self.channel.get().turn.wait(&self.process, &self.limits);
        self.state = match exit {
            Exit::Idle | Exit::Kick => State::Ready,
            Exit::Late => {
                self.counts.late += 1;
                State::Late
            }
            Exit::Dead => State::Dead,
        };
        exit
    }

    /// From now on the guest kicks only for the request that is armed, or for whatever it puts into its ring.
    pub fn tell_by_index(&self, on: bool) {
        let by_index = &self.channel.get().by_index;
        by_index.store(u32::from(on), Ordering::Release);
    }

    /// The guest is to kick when so many requests are there that were not read.
    pub fn arm(&self, ahead: u32) {
        self.channel.get().arm(self.taken.wrapping_add(ahead));
    }

    /// Requests read so far, of the present process, running freely.
    pub fn taken(&self) -> u32 {
        self.taken
    }

    /// How many requests there are to be read.
    pub fn requests(&mut self) -> u32 {
        let channel = self.channel.get();
        let claimed = channel.requests.load(Ordering::Acquire);
        let unanswered = claimed.wrapping_sub(self.answers);
        let new = claimed.wrapping_sub(self.taken);
        if unanswered <= RING && new <= unanswered {
            return new;
        }
        // There is no telling which of them it means: as if all were read and answered.
        self.counts.wild += 1;
        (self.taken, self.answers) = (claimed, claimed);
        channel.answers.store(claimed, Ordering::Release);
        self.forget_tickets();
        0
    }

    /// What the driver has of the guest completes as nobody's.
    fn forget_tickets(&mut self) {
        self.cookies.fill(None);
        self.free = (0..RING).collect();
        self.life = self.life.wrapping_add(1);
    }

    /// Reads the next request, once; it has a ticket in place of its cookie then. None if the driver has a ring of the
    /// guest's packets.
    pub fn read(&mut self, into: &mut Request) -> Option<()> {
        let place = self.free.pop()?;
        self.channel.get().read_request(self.taken, into);
        self.taken = self.taken.wrapping_add(1);
        self.cookies[place as usize] = Some(into.cookie);
        into.cookie = u64::from(self.life) << 32 | u64::from(place);
        into.guest = self.guest;
        self.in_flight += 1;
        Some(())
    }

    /// Answers a request by its ticket; whether the guest wants to be told now.
    pub fn answer(&mut self, ticket: u64, result: Sent) -> bool {
        self.in_flight = self.in_flight.saturating_sub(1);
        let (life, place) = ((ticket >> 32) as u32, ticket as u32);
        let cookie = match life == self.life && self.state != State::Dead {
            true => self.cookies.get_mut(place as usize).and_then(Option::take),
            false => None,
        };
        let Some(cookie) = cookie else {
            self.counts.orphans += 1;
            return false;
        };
        self.free.push(place);
        if matches!(result, Sent::Foreign | Sent::Spoofed | Sent::Invalid) {
            self.counts.refused += 1;
        }
        let channel = self.channel.get();
        let slot = &channel.answer[(self.answers % RING) as usize];
        slot.cookie.store(cookie, Ordering::Relaxed);
        slot.result.store(result as u32, Ordering::Relaxed);
        let before = self.answers;
        self.answers = before.wrapping_add(1);
        channel.answers.store(self.answers, Ordering::Release);
        // Any value is safe: at worst the guest is told too often, once for each batch, or never.
        let told_at = channel.told_at.load(Ordering::Acquire);
        reaches(before, self.answers, told_at)
    }

    /// How many buffers there are for what comes in.
    pub fn buffers(&mut self) -> u32 {
        let claimed = self.channel.get().posted.load(Ordering::Acquire);
        let posted = claimed.wrapping_sub(self.used);
        if posted > RING {
            self.counts.wild += 1;
            self.used = claimed;
            self.channel
                .get()
                .arrivals
                .store(claimed, Ordering::Release);
            return 0;
        }
        posted
    }

    /// The next buffer, if there is one. Those that are not the guest's own are refused.
    pub fn buffer(&mut self) -> Option<Buffer<'m>> {
        for _ in 0..self.buffers() {
            let slot = &self.channel.get().post[(self.used % RING) as usize];
            let address = slot.address.load(Ordering::Relaxed);
            let length = slot.length.load(Ordering::Relaxed);
            if let Some(buffer) = self.checked(address, length) {
                return Some(buffer);
            }
            self.counts.refused_buffers += 1;
            self.arrived(REFUSED, 0, 0);
        }
        None
    }

    fn checked(&self, address: u64, length: u32) -> Option<Buffer<'m>> {
        if (length as usize) < LONGEST {
            return None;
        }
        let owner = Owner::Guest(self.guest);
        let pinned = self
            .machine
            .frames()
            .pin_piece(address, length, owner)
            .ok()?;
        Some(Buffer {
            at: self.machine.at(address, length.into())?,
            length,
            _pinned: pinned,
        })
    }

    /// That buffer was used for a packet of so many bytes.
    pub fn arrived(&mut self, length: u32, segments: u16, size: u16) {
        let channel = self.channel.get();
        let slot = &channel.arrival[(self.used % RING) as usize];
        slot.length.store(length, Ordering::Relaxed);
        let segments = u32::from(segments) | u32::from(size) << 16;
        slot.segments.store(segments, Ordering::Relaxed);
        self.used = self.used.wrapping_add(1);
        channel.arrivals.store(self.used, Ordering::Release);
    }
}

fn new_process(
    machine: &Machine,
    making: Making,
    mut conduct: impl FnMut(&mut Front<'_>, Entry),
) -> Result<(SharedPages<Channel>, Child), LiveError> {
    let channel = SharedPages::<Channel>::new()?;
    let shared = channel.get();
    shared.turn.enter();
    let memory = machine.sizes().guest(making.guest);
    let ram = machine.ram() as u64;
    let start = std::ptr::from_ref(shared) as u64;
    let end = (start + size_of::<Channel>() as u64).next_multiple_of(PAGE);
    let keep: [Range<u64>; 2] = [ram + memory.start..ram + memory.end, start..end];
    let process = process::fork(|| {
        if confine(&keep).is_err() {
            return 1;
        }
        let Making {
            guest,
            shape,
            flows,
            ..
        } = making;
        let mut front = Front::new(machine, shared, guest, shape, flows);
        loop {
            shared.turn.idle();
            let entry = front.entry();
            conduct(&mut front, entry);
        }
    })
    .map_err(LiveError::system("a guest's process"))?;
    Ok((channel, process))
}
