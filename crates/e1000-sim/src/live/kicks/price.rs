//! What work costs, counted of the real processes, instruction by instruction.

use process_lab::packet_path::Latency;
use serde::{Deserialize, Serialize};

use super::rig::{LONG, Rig};
use crate::dom0::job::{Look, observe};
use crate::guests::front::Order;
use crate::guests::looks::Pace;
use crate::hypervisor::time_limit;
use crate::live::entered::{GUESTS, WAIT};
use crate::live::price::QUOTED;
use crate::packets::packet_loop::Stop;
use crate::packets::round::Round;
use crate::stages::notify::split;
use crate::system::SystemError;

/// Nanoseconds that a sent packet may wait, for the look and for the card's interrupt together.
const BUDGET: u64 = 500_000;
/// Packets of the larger of two samples of a price.
const MANY: u32 = 9;
/// Rounds before prices are counted: Linux' limit of bytes in the queue grows with what was sent.
const WARM: u32 = 64;
/// Packets of each of these.
const BATCH: u32 = 32;

/// Instructions of work, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KickPrice {
    /// A guest that sends, and each packet of it.
    pub guest: [u64; 2],
    /// A kick, without its crossing, and each packet of it: the hypervisor's part and the driver's.
    pub kick: [u64; 2],
    /// The card's interrupt, without its crossing, and each packet that is found sent.
    pub interrupt: [u64; 2],
    /// A look at all rings that finds something, each guest of which it does, and each packet.
    pub look: [u64; 3],
    /// A look that finds nothing, with the second one after rings are armed.
    pub nothing: u64,
}

impl KickPrice {
    /// What an interrupt of the card costs whatever it finds.
    pub(super) fn card(&self) -> u64 {
        self.interrupt[0] + QUOTED.interrupt
    }

    /// What a look by the timer costs whatever it finds.
    pub(super) fn timer(&self) -> u64 {
        self.look[0] + QUOTED.interrupt
    }

    /// The budget, split by Dong's formula 4. One look is for all guests, whatever their number.
    pub(super) fn split(&self) -> Latency {
        split(BUDGET, 1, self.card() as u32, self.timer() as u32)
    }

    /// What a look costs that finds so many packets, of so many guests.
    pub(super) fn of_look(&self, guests: u64, packets: u64) -> u64 {
        match packets {
            0 => self.nothing,
            _ => self.look[0] + guests * self.look[1] + packets * self.look[2],
        }
    }
}

struct KickSample {
    guest: u64,
    kick: u64,
    interrupt: u64,
}

impl Rig<'_> {
    /// Counts what work costs, when rings and pools have gone round.
    pub(super) fn price(&mut self) -> Result<KickPrice, SystemError> {
        for _ in 0..WARM {
            self.burst(0, BATCH)?;
            self.settle()?;
        }
        self.packets.engine.limit_time(WAIT.time)?;
        let [one, many] = [1, MANY].map(|count| self.kick_sample(count));
        let (one, many) = (one?, many?);
        let [some, more, spread, none] = [(1, 1), (1, MANY), (GUESTS, 1), (0, 0)]
            .map(|(guests, count)| self.look_sample(guests, count));
        let (some, more, spread, nothing) = (some?, more?, spread?, none?);
        self.packets.engine.limit_time(time_limit::DEFAULT)?;
        let each =
            |one: u64, many: u64, further: u32| many.saturating_sub(one) / u64::from(further);
        let both = |of: fn(&KickSample) -> u64| {
            let packet = each(of(&one), of(&many), MANY - 1);
            [of(&one).saturating_sub(packet), packet]
        };
        let packet = each(some, more, MANY - 1);
        let guest = each(some, spread, GUESTS - 1).saturating_sub(packet);
        Ok(KickPrice {
            guest: both(|sample| sample.guest),
            kick: both(|sample| sample.kick),
            interrupt: both(|sample| sample.interrupt),
            look: [some.saturating_sub(guest + packet), guest, packet],
            nothing,
        })
    }

    fn kick_sample(&mut self, count: u32) -> Result<KickSample, SystemError> {
        self.guests.prepare(&mut self.packets, 0, count)?;
        let [kick, guest] =
            self.counted(|rig| rig.guests.schedule(&mut rig.packets, 0, Order::Send))?;
        self.pass(LONG);
        let [interrupt, _] = self.counted(|rig| rig.guests.interrupt(&mut rig.packets))?;
        self.settle()?;
        Ok(KickSample {
            guest,
            kick,
            interrupt,
        })
    }

    /// Instructions of a look that finds `count` packets of each of so many guests.
    fn look_sample(&mut self, guests: u32, count: u32) -> Result<u64, SystemError> {
        let pace = Pace { delay: 1, busy: 1 };
        self.guests.set_pace(&mut self.packets, Some(pace))?;
        // The first kick wakes it up.
        self.burst(0, 1)?;
        for guest in 0..guests {
            self.burst(guest, count)?;
        }
        self.pass(LONG);
        let mut found = 0;
        let [look, _] = self.counted(|rig| {
            found = rig.guests.timer(&mut rig.packets)?;
            Ok(())
        })?;
        if found != guests * count {
            return Err(Stop::Stuck("a look does not find what guests sent").into());
        }
        self.guests.set_pace(&mut self.packets, None)?;
        self.settle()?;
        Ok(look)
    }

    /// Instructions of this process, and of guests.
    fn counted(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<(), Stop>,
    ) -> Result<[u64; 2], SystemError> {
        self.guests.count_steps(&mut self.packets, true)?;
        let before = self.guests_instructions()?;
        let (_, steps) = observe(Look::Steps, || {
            work(self)?;
            Ok(Round::default())
        })?;
        let guests = self.guests_instructions()? - before;
        self.guests.count_steps(&mut self.packets, false)?;
        Ok([steps.costs(), guests])
    }

    fn guests_instructions(&mut self) -> Result<u64, Stop> {
        self.guests.check(&mut self.packets)?;
        let reports = self.guests.reports();
        Ok(reports.iter().map(|report| report.instructions).sum())
    }
}
