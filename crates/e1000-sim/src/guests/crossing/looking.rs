//! Rings that are looked at without a kick.
//!
//! ```text
//! kick       its ring is served ─> asleep: armed again, looked at once more
//! interrupt  ─┐
//! timer      ─┴> awake: all rings, by turns, into one batch ─> driver, card
//!                few in a window: all armed, looked at once more, asleep
//! ```

use super::{AHEAD, Guests, Loop, QUOTA};
use crate::engines::apart::bits;
use crate::guests::back::State;
use crate::guests::channel::{Channel, EVENT_ANSWERS, RING};
use crate::guests::looks::{AfterKick, LookCounts, Looks, Occasion, Pace};
use crate::measure::profile::Component;
use crate::packets::packet_loop::{Card, Engine, Metered, Stop};
use crate::packets::rings::{REQUESTS, Sent};

const _: () = assert!(QUOTA as usize <= REQUESTS && AHEAD < RING);

impl Guests<'_> {
    /// Rings are looked at in that pace from now on; none: guests kick for whatever they put there. What is in rings now
    /// is served.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn set_pace(&mut self, packets: &mut Loop<'_>, pace: Option<Pace>) -> Result<(), Stop> {
        self.looks.set(pace);
        for guest in 0..self.backs.len() as u32 {
            self.is_told_by_index(guest);
        }
        Channel::is_armed();
        if self.look_at_all(packets)? > 0 && self.looks.is_on() {
            // What a guest puts there meanwhile is looked at later.
            self.looks.wake();
            self.arm_all(AHEAD);
        }
        Ok(())
    }

    /// A guest learns how it is to kick.
    pub(super) fn is_told_by_index(&self, guest: u32) {
        let back = &self.backs[guest as usize];
        back.arm(if self.looks.is_awake() { AHEAD } else { 1 });
        back.tell_by_index(self.looks.is_on());
    }

    /// The time, in nanoseconds. It does not go back.
    pub fn set_time(&mut self, now: u64) {
        self.looks.set_time(now);
    }

    /// When the hypervisor's timer is to end, if it has one.
    pub fn deadline(&self) -> Option<u64> {
        self.looks.deadline()
    }

    /// Looks so far.
    pub fn look_counts(&self) -> LookCounts {
        self.looks.counts
    }

    /// The timer has ended: rings are looked at, if a look is due; how many packets there were.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn timer(&mut self, packets: &mut Loop<'_>) -> Result<u32, Stop> {
        let found = match self.looks.is_due() {
            true => self.look_if_awake(packets, Occasion::Timer)?,
            false => 0,
        };
        packets.meter.switch(Component::Idle);
        Ok(found)
    }

    /// One interrupt of the card, whose line is asserted. Rings are looked at by the way, and guests are told of answers.
    ///
    /// # Errors
    /// The driver stopped, or dom0 has put the interrupt off.
    pub fn interrupt(&mut self, packets: &mut Loop<'_>) -> Result<(), Stop> {
        self.throttled = 0;
        packets.meter.switch(Component::Card);
        packets.card.absorb_writes(false)?;
        packets.meter.switch(packets.engine.host());
        let mut card = Metered::new(&mut packets.card, &mut packets.meter);
        if !packets.engine.interrupt(&mut card)? {
            return Err(Stop::Stuck("dom0 keeps its virtual interrupts disabled"));
        }
        packets.meter.switch(Component::Card);
        packets.card.send();
        packets.meter.switch(packets.engine.host());
        let told = std::mem::take(&mut self.turned_away) | self.answer_all(packets);
        self.look_if_awake(packets, Occasion::Interrupt)?;
        for guest in bits(told) {
            self.tell(packets, guest, EVENT_ANSWERS)?;
        }
        packets.meter.switch(Component::Idle);
        Ok(())
    }

    /// Serves a guest's kick; how many packets it had.
    pub(super) fn kicked(&mut self, packets: &mut Loop<'_>, guest: u32) -> Result<u32, Stop> {
        let served = self.serve_kick(packets, guest)?;
        if self.looks.is_on() {
            self.after_kick(packets, guest, served)?;
        }
        Ok(served)
    }

    fn after_kick(&mut self, packets: &mut Loop<'_>, guest: u32, served: u32) -> Result<(), Stop> {
        match self.looks.kicked(served) {
            AfterKick::Arm => {
                self.backs[guest as usize].arm(1);
                Channel::is_armed();
                // One that puts requests there while it is served is looked at later.
                if self.backs[guest as usize].requests() > 0 {
                    self.looks.wake();
                    self.arm_all(AHEAD);
                }
            }
            AfterKick::DisarmAll => self.arm_all(AHEAD),
            AfterKick::Nothing => {
                self.backs[guest as usize].arm(AHEAD);
                if self.looks.is_due() {
                    self.look_if_awake(packets, Occasion::Kick)?;
                }
            }
        }
        Ok(())
    }

    fn arm_all(&self, ahead: u32) {
        self.backs.iter().for_each(|back| back.arm(ahead));
    }

    /// Looks at all rings if the hypervisor is awake; how many packets there were. It sleeps afterwards if these are few.
    pub(super) fn look_if_awake(
        &mut self,
        packets: &mut Loop<'_>,
        occasion: Occasion,
    ) -> Result<u32, Stop> {
        if !self.looks.is_awake() {
            return Ok(0);
        }
        let found = self.look_at_all(packets)?;
        if !self.looks.looked(occasion, found) {
            return Ok(found);
        }
        Ok(found + self.fall_asleep(packets)?)
    }

    /// Arms all rings, looks at them once more, and sleeps if nothing is there; how many packets there were, which guests may have put
    /// there between the look before and the arming.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn fall_asleep(&mut self, packets: &mut Loop<'_>) -> Result<u32, Stop> {
        self.arm_all(1);
        Channel::is_armed();
        let found = self.look_at_all(packets)?;
        self.looks.looked_again(found);
        if found > 0 {
            self.arm_all(AHEAD);
        }
        Ok(found)
    }

    /// Gives the driver what is in all rings, a ring's worth of each guest at most, a few of each by turns; how many packets.
    fn look_at_all(&mut self, packets: &mut Loop<'_>) -> Result<u32, Stop> {
        packets.meter.switch(packets.engine.host());
        let guests = self.backs.len() as u32;
        let first = self.first;
        self.first = (first + 1) % guests.max(1);
        let mut found = 0;
        for _ in 0..RING / QUOTA {
            let mut more = false;
            for turn in 0..guests {
                more |= self.take(packets, (first + turn) % guests);
                if self.batch.len() + QUOTA as usize > REQUESTS {
                    found += self.give(packets)?;
                }
            }
            found += self.give(packets)?;
            if !more {
                break;
            }
        }
        Ok(found)
    }

    /// Takes some of a guest's requests into the batch; whether it has more. One that is late may have put them there: it has no
    /// kick for them, as its ring was not armed.
    fn take(&mut self, packets: &mut Loop<'_>, guest: u32) -> bool {
        let back = &mut self.backs[guest as usize];
        let new = match back.state() {
            State::Ready | State::Late => back.requests(),
            State::Dead => 0,
        };
        for _ in 0..new.min(QUOTA) {
            if back.read(&mut self.request).is_none() {
                break;
            }
            let at = self.batch.len();
            packets.engine.submit(at, guest, &self.request);
            self.batch.push((guest, self.request.cookie));
        }
        if new > 0 && self.looks.is_awake() {
            back.arm(AHEAD);
        }
        new > QUOTA
    }

    /// Gives the driver the batch, and answers what it does not take; how many packets it had.
    fn give(&mut self, packets: &mut Loop<'_>) -> Result<u32, Stop> {
        if self.batch.is_empty() {
            return Ok(0);
        }
        let mut batch = std::mem::take(&mut self.batch);
        packets.engine.transmit(batch.len() as u32)?;
        for (at, (guest, ticket)) in batch.iter().enumerate() {
            self.settle(*guest, *ticket, packets.engine.result(at));
        }
        let count = batch.len() as u32;
        batch.clear();
        self.batch = batch;
        packets.meter.switch(Component::Card);
        packets.card.absorb_writes(false)?;
        packets.card.send();
        packets.meter.switch(packets.engine.host());
        Ok(count)
    }

    fn settle(&mut self, guest: u32, ticket: u64, result: Sent) {
        let back = &mut self.backs[guest as usize];
        match result {
            Sent::Sent => {}
            Sent::Invalid | Sent::Foreign | Sent::Spoofed => _ = back.answer(ticket, result),
            Sent::Busy | Sent::NoBuffer | Sent::Down => {
                back.answer(ticket, result);
                self.turned_away |= 1 << guest;
            }
        }
    }
}

/// The state, for tests.
impl Guests<'_> {
    /// The hypervisor's state.
    pub fn looks(&self) -> &Looks {
        &self.looks
    }
}
