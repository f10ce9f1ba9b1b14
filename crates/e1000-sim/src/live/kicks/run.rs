//! One load in one way, played: work and crossings advance the clock, and a request's wait is its time.

use std::collections::VecDeque;

use super::price::KickPrice;
use super::rig::Rig;
use super::{Sending, Sent};
use crate::guests::looks::LookCounts;
use crate::live::clock::Clock;
use crate::live::price::{HYPERCALL, QUOTED};
use crate::packets::packet_loop::{Card, Stop};

/// A run.
pub(super) struct Run<'r, 's> {
    rig: &'r mut Rig<'s>,
    price: &'r KickPrice,
    sending: Sending,
    bursts: u64,
    clock: Clock,
    /// The rig's time when the clock was 0.
    start: u64,
    done: u64,
    /// When the packets that a guest has in its ring were put there.
    waiting: Vec<VecDeque<u64>>,
    /// How far each ring had been read.
    taken: Vec<u32>,
    /// When those were that work has taken which is not charged yet.
    leaving: Vec<u64>,
    latencies: Vec<u64>,
    kicks: u64,
    notifications: u64,
    seen: Sent,
}

/// What a piece of work did.
struct Did {
    kicks: u64,
    /// Guests of which it took packets, and packets.
    guests: u64,
    packets: u64,
    /// By kicks: the rest was found by looks.
    looks: LookCounts,
}

impl Run<'_, '_> {
    /// Plays that load.
    pub fn of(
        rig: &mut Rig<'_>,
        sending: Sending,
        packets: u64,
        price: &KickPrice,
    ) -> Result<Sent, Stop> {
        let counts = rig.guests.counts();
        let looks = rig.guests.look_counts();
        let mut run = Run {
            start: rig.now,
            taken: (0..sending.guests)
                .map(|guest| rig.guests.back(guest).taken())
                .collect(),
            rig,
            price,
            sending,
            bursts: packets / u64::from(sending.burst),
            clock: Clock::default(),
            done: 0,
            waiting: vec![VecDeque::new(); sending.guests as usize],
            leaving: Vec::new(),
            latencies: Vec::new(),
            kicks: counts.kicks,
            notifications: counts.notifications,
            seen: Sent::default(),
        };
        while run.step()? {}
        let mut seen = run.seen;
        seen.cycles = run.clock.worked();
        run.latencies.sort_unstable();
        let last = run.latencies.len().saturating_sub(1) as f64;
        let at = |part: f64| run.latencies.get((last * part) as usize).copied();
        [seen.latency_median, seen.latency_p99, seen.latency_most] =
            [0.5, 0.99, 1.0].map(|part| at(part).unwrap_or(0));
        let after = run.rig.guests.counts();
        seen.kicks = after.kicks - counts.kicks;
        seen.notifications = after.notifications - counts.notifications;
        seen.looks = run.rig.guests.look_counts().since(looks);
        Ok(seen)
    }

    /// One thing; false if nothing is left to do.
    fn step(&mut self) -> Result<bool, Stop> {
        self.play();
        let now = self.clock.now();
        let timer = self.rig.guests.deadline();
        let timer = timer.map(|deadline| deadline.saturating_sub(self.start));
        let burst = (self.done < self.bursts).then(|| self.done * self.sending.interval());
        if self.rig.packets.card.interrupt() {
            self.interrupt()?;
        } else if timer.is_some_and(|timer| timer <= now) {
            self.timer()?;
        } else if burst.is_some_and(|burst| burst <= now) {
            self.burst()?;
        } else {
            let card = self.rig.packets.card.next_event();
            let card = card.map(|wait| now + wait.max(1));
            let Some(next) = [timer, burst, card].into_iter().flatten().min() else {
                return Ok(false);
            };
            self.clock.idle_until(next);
        }
        Ok(true)
    }

    /// The machine's time is the clock's.
    fn play(&mut self) {
        let behind = (self.start + self.clock.now()).saturating_sub(self.rig.now);
        self.rig.pass(behind);
    }

    fn crossings(&mut self, cycles: u64) {
        self.seen.crossing_cycles += cycles;
        self.clock.work(cycles);
    }

    /// A guest has the processor.
    fn burst(&mut self) -> Result<(), Stop> {
        let guest = (self.done % u64::from(self.sending.guests)) as u32;
        let count = u64::from(self.sending.burst);
        self.done += 1;
        self.clock
            .work(self.price.guest[0] + count * self.price.guest[1]);
        self.play();
        let now = self.clock.now();
        self.waiting[guest as usize].extend((0..count).map(|_| now));
        let did = self.during(|rig| rig.burst(guest, count as u32))?;
        self.charge(&did);
        Ok(())
    }

    fn interrupt(&mut self) -> Result<(), Stop> {
        self.seen.interrupts += 1;
        self.crossings(QUOTED.interrupt);
        self.play();
        let before = self.rig.guests.in_flight();
        let did = self.during(|rig| rig.guests.interrupt(&mut rig.packets))?;
        let sent = u64::from(before) + did.packets - u64::from(self.rig.guests.in_flight());
        self.clock
            .work(self.price.interrupt[0] + sent * self.price.interrupt[1]);
        self.charge(&did);
        Ok(())
    }

    fn timer(&mut self) -> Result<(), Stop> {
        self.crossings(QUOTED.interrupt);
        self.play();
        let did = self.during(|rig| rig.guests.timer(&mut rig.packets).map(|_| ()))?;
        self.charge(&did);
        Ok(())
    }

    /// Does something, and says what came of it.
    fn during(&mut self, work: impl FnOnce(&mut Rig<'_>) -> Result<(), Stop>) -> Result<Did, Stop> {
        let looks = self.rig.guests.look_counts();
        work(self.rig)?;
        let counts = self.rig.guests.counts();
        let kicks = counts.kicks - std::mem::replace(&mut self.kicks, counts.kicks);
        let told = counts.notifications;
        let told = told - std::mem::replace(&mut self.notifications, told);
        self.crossings(kicks * HYPERCALL + told * QUOTED.virtual_interrupt);
        let fresh = self.fresh();
        Ok(Did {
            kicks,
            guests: fresh.iter().filter(|fresh| **fresh > 0).count() as u64,
            packets: fresh.iter().map(|fresh| u64::from(*fresh)).sum(),
            looks: self.rig.guests.look_counts().since(looks),
        })
    }

    /// Requests that were read of each guest since this was asked.
    fn fresh(&mut self) -> Vec<u32> {
        let rig = &mut *self.rig;
        let of = |(guest, taken): (usize, &mut u32)| {
            let now = rig.guests.back(guest as u32).taken();
            now.wrapping_sub(std::mem::replace(taken, now))
        };
        let fresh: Vec<u32> = self.taken.iter_mut().enumerate().map(of).collect();
        self.seen.packets += fresh.iter().map(|fresh| u64::from(*fresh)).sum::<u64>();
        for (waiting, fresh) in self.waiting.iter_mut().zip(&fresh) {
            // They are with the card when the work of this is done.
            self.leaving
                .extend(waiting.drain(..(*fresh as usize).min(waiting.len())));
        }
        fresh
    }

    /// The hypervisor's work for what kicks and looks have brought.
    fn charge(&mut self, did: &Did) {
        let found = did.looks.found;
        let by_kicks = did.packets.saturating_sub(found);
        self.clock
            .work(did.kicks * self.price.kick[0] + by_kicks * self.price.kick[1]);
        let looks = did.looks.timed + did.looks.riding + did.looks.overdue;
        if looks > 0 {
            self.clock.work(self.price.of_look(did.guests, found));
        }
        let now = self.clock.now();
        self.latencies
            .extend(self.leaving.drain(..).map(|put| now - put));
    }
}
