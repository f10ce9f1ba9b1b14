//! dom0's side of the guests' interfaces, after Linux' back end: what it needs of guests' memory it asks the hypervisor
//! for, by guest and reference. It trusts nothing in the rings.
//!
//! ```text
//! transmit.rs   requests ─> copy headers, map the rest ─> bridge ─> hot_transmit, or another guest
//! receive.rs    bridge's queue ─> copy into the guest's pages ─> response, hot_release
//! ```
//!
//! Each guest's work is a batch of its own, as each has a thread of its own in Linux: so each has its own
//! hypercalls.

mod receive;
mod transmit;

use std::sync::atomic::Ordering;

use super::bridge::BridgeView;
use super::pending::{PendingId, PendingPackets};
use super::ring::{
    Ask, BackCounts, Channel, DEFERRED, FAILED, Generation, INTERFACES, NetRing, mac_word,
};
use super::slots::Response;
use crate::grants::Reference;
use crate::grants::maptrack::MAPPINGS;
use crate::grants::operations::{Copy, Grants, Map, Unmap};
use crate::grants::window::WindowPage;
use crate::measure::profile::{Component, cycles, enter_phase};
use crate::memory::{DIRECT_MAP, Machine, PAGE};
use crate::packets::packet_loop::Stop;
use crate::packets::rings::{Rings, TX_DONE};
use crate::packets::round::PEER;

/// What the back end needs from dom0's kernel.
pub trait Dom0Kernel {
    /// This CPU's rings with the driver.
    fn rings(&mut self) -> &mut Rings;
    /// `hot_transmit`.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn transmit(&mut self, count: u32) -> Result<u32, Stop>;
    /// Handler and poll; false if they were put off.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn interrupt(&mut self) -> Result<bool, Stop>;
    /// The bridge's state.
    fn bridge(&mut self) -> &mut BridgeView;
    /// Lets the bridge say where requests `first` to `first + count` go; how many go anywhere but to the card.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn route(&mut self, first: u32, count: u32) -> Result<u32, Stop>;
    /// A guest's port, with its address, or no such port any more.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn port(&mut self, port: u32, mac: Option<u64>) -> Result<(), Stop>;
    /// Releases that many packets that [`BridgeView::put_release`] has named.
    ///
    /// # Errors
    /// [`Stop::Driver`].
    fn release(&mut self, count: u32) -> Result<(), Stop>;
}

/// What the back end knows of an interface.
#[derive(Debug, Default)]
struct Port {
    generation: Generation,
    /// Requests taken, responses made.
    tx_taken: u32,
    tx_made: u32,
    rx_taken: u32,
    rx_made: u32,
    /// Packets that are over, with the status that their guest gets.
    over: Vec<(PendingId, i16)>,
}

/// The back end of all guests. It stays from one job to the next, as packets that are on their way do.
pub struct BackEnd<'m> {
    net: &'m NetRing,
    machine: &'m Machine,
    grants: Grants<'m>,
    ports: Vec<Port>,
    pending: PendingPackets,
    /// Packets that the driver has not taken yet, oldest first.
    waiting: std::collections::VecDeque<PendingId>,
    /// The packets of the present call of `hot_transmit`, in the order of its requests.
    batch: Vec<PendingId>,
    pages: Vec<u16>,
    channel: Channel,
    counts: BackCounts,
    /// Cycles of hypercalls.
    hypercalls: u64,
    copies: Vec<Copy>,
    maps: Vec<Map>,
    unmaps: Vec<Unmap>,
    map_of: Vec<transmit::Piece>,
    copy_of: Vec<PendingId>,
    given: Vec<receive::Given>,
    releases: Vec<u32>,
}

impl<'m> BackEnd<'m> {
    /// No interface is connected yet.
    pub fn new(net: &'m NetRing, machine: &'m Machine) -> BackEnd<'m> {
        BackEnd {
            net,
            machine,
            grants: Grants::new(machine, net.tables()),
            ports: (0..INTERFACES).map(|_| Port::default()).collect(),
            pending: PendingPackets::default(),
            waiting: std::collections::VecDeque::new(),
            batch: Vec::new(),
            pages: (0..MAPPINGS as u16).rev().collect(),
            channel: Channel::Copied,
            counts: BackCounts::default(),
            hypercalls: 0,
            copies: Vec::new(),
            maps: Vec::new(),
            unmaps: Vec::new(),
            map_of: Vec::new(),
            copy_of: Vec::new(),
            given: Vec::new(),
            releases: Vec::new(),
        }
    }

    /// Serves the front ends until they end, and counts the cycles of this, except waits for them.
    pub fn serve(&mut self, kernel: &mut dyn Dom0Kernel) {
        let net = self.net;
        let mut go_on = true;
        while go_on {
            net.meet.serve(0, || {
                let start = cycles();
                enter_phase(Component::Dom0);
                self.hypercalls = 0;
                let ask = net.ask.load(Ordering::Relaxed);
                go_on = ask != Ask::End as u64;
                let answer = self.answer(kernel, ask).unwrap_or_else(|stop| {
                    // SAFETY: the back end's turn.
                    unsafe { &mut *net.failure.get() }.set(&stop.to_string());
                    FAILED
                });
                net.answer.store(answer, Ordering::Relaxed);
                self.counts.grants = self.grants.counts();
                net.put_counts(&self.counts);
                enter_phase(Component::Idle);
                let worked = (cycles() - start).saturating_sub(self.hypercalls);
                net.served.fetch_add(worked, Ordering::Relaxed);
            });
        }
    }

    fn answer(&mut self, kernel: &mut dyn Dom0Kernel, ask: u64) -> Result<u64, Stop> {
        self.connections(kernel)?;
        if ask == Ask::Transmit as u64 {
            self.channel = Channel::of_word(self.net.channel.load(Ordering::Relaxed));
            self.transmit(kernel)?;
            return Ok(0);
        }
        if ask == Ask::Interrupt as u64 {
            let ran = kernel.interrupt()?;
            self.complete(kernel.rings());
            if !self.waiting.is_empty() {
                self.transmit(kernel)?;
            }
            self.receive(kernel)?;
            return Ok(if ran { 1 } else { DEFERRED });
        }
        Ok(0)
    }

    /// Notices guests that have come or gone.
    fn connections(&mut self, kernel: &mut dyn Dom0Kernel) -> Result<(), Stop> {
        for guest in 0..INTERFACES {
            let generation = self.net.interfaces[guest].generation();
            if generation != self.ports[guest].generation {
                self.reconnect(kernel, guest, generation)?;
            }
        }
        Ok(())
    }

    /// Forgets what it has of a guest. What the driver has of it stays mapped until it is completed.
    fn reconnect(
        &mut self,
        kernel: &mut dyn Dom0Kernel,
        guest: usize,
        generation: Generation,
    ) -> Result<(), Stop> {
        let waiting = std::mem::take(&mut self.waiting);
        let (theirs, others) = waiting
            .into_iter()
            .partition(|id| self.pending.get(*id).guest == guest as u32);
        self.waiting = others;
        let theirs: std::collections::VecDeque<PendingId> = theirs;
        for id in theirs {
            self.over(id, super::slots::DROPPED);
        }
        let port = guest + 1;
        while let Some(packet) = kernel.bridge().first(port).map(|packet| packet.number) {
            kernel.bridge().advance(port);
            self.give_back(kernel, packet);
        }
        self.release(kernel)?;
        if self.ports[guest].generation.is_connected() {
            kernel.port(port as u32, None)?;
        }
        let state = &mut self.ports[guest];
        state.generation = generation;
        // Before anything is said in the new rings.
        (state.tx_taken, state.tx_made) = (0, 0);
        (state.rx_taken, state.rx_made) = (0, 0);
        self.finish(guest);
        let interface = &self.net.interfaces[guest];
        if generation.is_connected() {
            kernel.port(port as u32, Some(interface.mac.load(Ordering::Relaxed)))?;
            // A guest that begins to send asks for its peer's address, and the bridge sees the answer.
            kernel.port(0, Some(mac_word(PEER)))?;
        }
        Ok(())
    }

    /// A call of the hypervisor.
    fn hypercall(&mut self, call: impl FnOnce(&mut Self)) {
        let start = cycles();
        enter_phase(Component::Hypervisor);
        call(self);
        enter_phase(Component::Dom0);
        self.hypercalls += cycles() - start;
    }

    /// Packets that the driver is done with.
    fn complete(&mut self, rings: &mut Rings) {
        for _ in 0..TX_DONE {
            let Some(done) = rings.completion() else {
                break;
            };
            match self.pending.find(done.cookie) {
                Some(id) => {
                    self.counts.sent += 1;
                    self.over(id, super::slots::OKAY);
                }
                None => self.counts.unknown += 1,
            }
        }
        self.finish_all();
    }

    /// A packet is over; its guest is told by [`BackEnd::finish`].
    fn over(&mut self, id: PendingId, status: i16) {
        let guest = self.pending.get(id).guest as usize;
        self.ports[guest].over.push((id, status));
    }

    fn finish_all(&mut self) {
        for guest in 0..INTERFACES {
            if !self.ports[guest].over.is_empty() {
                self.finish(guest);
            }
        }
    }

    /// Unmaps a guest's packets that are over, then tells it.
    fn finish(&mut self, guest: usize) {
        let over = std::mem::take(&mut self.ports[guest].over);
        self.unmaps.clear();
        for (id, _) in &over {
            for mapped in self.pending.get_mut(*id).take_mappings() {
                self.unmaps.push(Unmap::new(mapped.handle, mapped.page));
                self.pages.extend(mapped.page.map(|page| page.0));
            }
        }
        if !self.unmaps.is_empty() {
            let mut unmaps = std::mem::take(&mut self.unmaps);
            self.hypercall(|back| back.grants.unmap(&mut unmaps));
            self.unmaps = unmaps;
        }
        let generation = self.ports[guest].generation;
        let interface = &self.net.interfaces[guest];
        let state = &mut self.ports[guest];
        for (id, status) in &over {
            let packet = self.pending.get(*id);
            if packet.generation == generation && generation.is_connected() {
                for id in packet.ids() {
                    let response = Response {
                        id: *id,
                        status: *status,
                        offset: 0,
                        flags: 0,
                    };
                    interface.tx.put_response(state.tx_made, &response);
                    state.tx_made = state.tx_made.wrapping_add(1);
                }
            }
            self.pending.remove(*id);
        }
        if generation.is_connected() {
            interface.tx.show_responses(state.tx_made);
        }
        state.over = over;
        state.over.clear();
    }

    /// A port has had a received packet.
    fn give_back(&mut self, kernel: &mut dyn Dom0Kernel, number: u32) {
        if kernel.bridge().used(number) {
            self.releases.push(number);
        }
    }

    /// Releases what no port waits for.
    fn release(&mut self, kernel: &mut dyn Dom0Kernel) -> Result<(), Stop> {
        if self.releases.is_empty() {
            return Ok(());
        }
        let count = kernel.bridge().put_release(&self.releases);
        self.releases.clear();
        kernel.release(count)
    }

    fn window_page(&mut self) -> Option<WindowPage> {
        self.pages.pop().map(WindowPage)
    }

    /// The machine address of dom0's own data in its direct map.
    fn machine_address(&self, data: u64) -> u64 {
        data.wrapping_sub(DIRECT_MAP)
            .wrapping_add(self.machine.sizes().base)
    }
}

/// The frame and the offset of a machine address.
fn place(machine: u64) -> (u64, u16) {
    (machine / PAGE, (machine % PAGE) as u16)
}

/// Whether there is a page in a request.
fn names_page(reference: Reference) -> bool {
    reference != Reference(0)
}
