//! After a fault: dom0 resets the driver, the hypervisor instance is renewed, and
//! packets go both ways again. If dom0 cannot reset the driver, it is restarted.
//!
//! ```text
//! view closed, interrupts dom0's, guests' packets dropped ─> hot_recover ─> close
//! ─> hot_recover ─> open ─> instance renewed ─> view open, interrupts the hypervisor's
//! ─> served?
//! ```
//!
//! The host holds none of dom0's packets from then on, so the second `hot_recover` takes all
//! back to the pools: those that waited for guests, and one that the driver was just giving
//! when it was aborted, which the host does not know.

use super::service::{Exchanged, Service};
use crate::dom0::CommandError;
use crate::dom0::interface::ReceiveMode;
use crate::packets::packet_loop::Stop;
use crate::system::{CPU, System, SystemError};
use crate::transport::mailbox::InterruptOwner;
use crate::transport::rendezvous::Limits;

/// Packets each way for each guest that show that the instance works.
const PROOF: u32 = 12;
/// Virtual time for the link to come up.
const LINK: u64 = 10_000_000_000;

/// How it recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mended {
    /// dom0 reset the driver.
    Reset,
    /// dom0 had to be restarted.
    Restarted,
}

/// A CPU's percpu words as they are between invocations.
#[derive(Clone, Debug)]
pub struct Quiet(Vec<(u64, u32)>);

impl Quiet {
    /// Records them, before any fault has struck.
    pub fn note(system: &System<'_>) -> Quiet {
        let plan = &system.blueprint().plan;
        let view = plan.view(system.machine());
        let words = ["__preempt_count", "hot_vif"];
        let places = words
            .iter()
            .filter_map(|name| plan.percpu_symbol(name, CPU));
        let noted = places.filter_map(|at| {
            let mut word = [0; 4];
            view.read(at, &mut word)?;
            Some((at, u32::from_le_bytes(word)))
        });
        Quiet(noted.collect())
    }

    fn restore(&self, system: &System<'_>) {
        let view = system.blueprint().plan.view(system.machine());
        for (at, word) in &self.0 {
            // Percpu areas are dom0's RAM.
            let _ = view.write(*at, &word.to_le_bytes());
        }
    }
}

/// The parts of the system that take part in a recovery.
pub struct Recovery<'s, 'r> {
    /// The system that had the fault.
    pub system: &'r mut System<'s>,
    /// The hypervisor instance and its guests.
    pub service: &'r mut Service<'s>,
    /// See there.
    pub quiet: &'r Quiet,
    /// For a dom0 that starts.
    pub start: Limits,
    /// For commands.
    pub limits: Limits,
}

impl Recovery<'_, '_> {
    /// Recovers: resets the driver, or else restarts dom0 and gives the reason.
    ///
    /// # Errors
    /// A new dom0 does not work either: a violation.
    pub fn mend(&mut self) -> Result<(Mended, Option<String>), String> {
        self.leave_card();
        self.service.packet_loop.engine.engine.forget_packets();
        let reset = self.reset().map_err(|error| error.to_string());
        let why = match reset.and_then(|()| self.served()) {
            Ok(()) => return Ok((Mended::Reset, None)),
            Err(why) => why,
        };
        self.restart()
            .map_err(|error| format!("no new dom0: {error}"))?;
        self.served()
            .map_err(|what| format!("a new dom0, but: {what}"))?;
        Ok((Mended::Restarted, Some(why)))
    }

    /// Gives the card to dom0.
    fn leave_card(&self) {
        let mailbox = self.system.mailbox();
        self.service.packet_loop.card.leave();
        mailbox.set_interrupt_owner(InterruptOwner::Dom0);
    }

    fn reset(&mut self) -> Result<(), SystemError> {
        self.hot_recover()?;
        self.quiet.restore(self.system);
        self.system.dom0.close()?;
        self.hold_nothing()?;
        self.hot_recover()?;
        self.system.dom0.open()?;
        self.bring_up()
    }

    /// Says to `hot_recover`, which alone asks, that the host has forgotten its packets.
    fn hold_nothing(&self) -> Result<(), SystemError> {
        let symbol = self.system.blueprint().plan.symbol("hot_host_holds");
        symbol
            .and_then(|at| self.system.memory().write(at, &0u32.to_le_bytes()))
            .ok_or_else(|| SystemError::Lacking("hot_host_holds".to_owned()))
    }

    fn hot_recover(&mut self) -> Result<(), CommandError> {
        let device = self.system.driver.net_device;
        let arguments = [device, CPU as u64];
        self.system.dom0.call("hot_recover", &arguments).map(drop)
    }

    fn bring_up(&mut self) -> Result<(), SystemError> {
        let dom0 = &mut self.system.dom0;
        dom0.link_wait(LINK)?;
        dom0.set_receive_mode(ReceiveMode::Promiscuous, &[])?;
        self.system.refresh()?;
        self.renew()
    }

    /// A new dom0.
    pub fn restart(&mut self) -> Result<(), SystemError> {
        self.leave_card();
        self.service.packet_loop.engine.engine.forget_packets();
        self.system.restart_dom0(self.start)?;
        self.system.dom0.set_limits(self.limits);
        self.renew()
    }

    fn renew(&mut self) -> Result<(), SystemError> {
        let rings = self.system.rings(CPU)?;
        let packet_loop = &mut self.service.packet_loop;
        let renewed = packet_loop.engine.engine.renew(self.system.driver, rings);
        renewed.ok_or_else(|| SystemError::Lacking("the driver's handler".to_owned()))?;
        let mailbox = self.system.mailbox();
        mailbox.set_interrupt_owner(InterruptOwner::Hypervisor);
        packet_loop.card.open()?;
        self.service.drop_in_flight();
        Ok(())
    }

    /// All guests, both ways, nothing lost or damaged.
    fn served(&mut self) -> Result<(), String> {
        let guests = 0..self.service.sources.len();
        match self.service.exchange(guests, PROOF) {
            Ok(Exchanged {
                lost: 0,
                damaged: 0,
            }) => Ok(()),
            Ok(exchanged) => Err(format!("packets do not go: {exchanged:?}")),
            Err(stop) => Err(stop_text(&stop)),
        }
    }
}

fn stop_text(stop: &Stop) -> String {
    format!("packets do not go: {stop}")
}
