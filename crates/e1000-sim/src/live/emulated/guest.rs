//! The guest: a sender, or an application that receives, on the stock driver. What it executes of
//! the driver is counted once, instruction by instruction ([`count`]); runs are charged with it.

use std::collections::VecDeque;

use super::order::{Order, Price};
use crate::dom0::job::JobPlace;
use crate::engines::native::{Directly, EAGAIN, NativeEngine, deliver_to, run};
use crate::measure::profile::{Component, enter_phase};
use crate::measure::steps;
use crate::memory::{self, BarMode, set_bar};
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{Request, Sent};
use crate::packets::round::{peers, sources};
use crate::traffic::source::{Shape, TrafficSource};
use crate::traffic::{Datagrams, SHORTEST};

/// `KERNEL_RX_PROMISC`.
const PROMISCUOUS: u64 = 1;
/// A multicast address: mDNS.
static GROUP: [u8; 6] = [0x01, 0x00, 0x5e, 0x00, 0x00, 0xfb];
const SHAPE: Shape = Shape::Frames(SHORTEST);

/// Packets that wait for the application; one that comes then is dropped. Linux' default has room for
/// about 280 small ones (`rmem_default`), so this is one whose `SO_RCVBUF` was raised.
const SOCKET: usize = 1024;

/// The driver's work in a poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handled {
    /// Packets sent that it cleaned.
    pub cleaned: u64,
    /// Packets that it received.
    pub received: u64,
}

/// The guest.
pub struct Guest {
    engine: NativeEngine<Directly>,
    /// dom0 addresses of the handler alone, of the softirq, and of the question whether one is due.
    handler: u64,
    softirq: u64,
    pending: u64,
    /// dom0 address of what `ip link set promisc` calls.
    mode: u64,
    /// Packets that its application has not taken.
    socket: VecDeque<Vec<u8>>,
    /// Its packets.
    pub source: TrafficSource<'static>,
    request: Request,
    /// Packets that its driver took.
    pub accepted: u64,
    /// Packets that its driver received.
    pub received: u64,
}

impl Guest {
    /// A guest that computes checksums, so a packet is one descriptor.
    ///
    /// # Errors
    /// The driver is not set up.
    pub fn new(order: &Order, place: &JobPlace) -> Result<Guest, Stop> {
        let (plan, machine) = (place.plan, place.machine);
        let (device, ring) = (order.net_device, order.rx_ring);
        let engine = NativeEngine::new(plan, machine, Directly, device, memory::IRQ, ring);
        let mut source = sources(machine, 1, SHAPE).remove(0);
        source.sums = true;
        let unset = || Stop::Driver("the driver is not set up".to_owned());
        let entry = |name| plan.symbol(name).ok_or_else(unset);
        Ok(Guest {
            engine: engine.ok_or_else(unset)?,
            handler: entry("kernel_handle")?,
            softirq: entry("hot_poll")?,
            pending: entry("hot_pending")?,
            mode: entry("kernel_set_rx_mode")?,
            socket: VecDeque::new(),
            source,
            request: Request::default(),
            accepted: 0,
            received: 0,
        })
    }

    /// Gives its next packet to the driver; false if that has no room.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn transmit(&mut self) -> Result<bool, Stop> {
        let packet = self.source.prepare();
        let packet = packet.ok_or(Stop::Stuck("the guest's memory is full of packets"))?;
        self.source.describe(&packet, &mut self.request);
        self.engine.submit(0, 0, &self.request);
        self.engine.transmit(1)?;
        match self.engine.result(0) {
            Sent::Sent => {
                self.accepted += 1;
                Ok(true)
            }
            Sent::Busy => {
                self.source.cancel(&packet);
                Ok(false)
            }
            other => Err(Stop::Driver(format!("a packet was refused: {other:?}"))),
        }
    }

    /// Tells the driver to receive all frames and those of a group, or its own only.
    ///
    /// # Errors
    /// The driver stopped, or refuses.
    pub fn receive_mode(&mut self, all: bool) -> Result<(), Stop> {
        let flags = if all { PROMISCUOUS } else { 0 };
        // Kernel code of this process may read it.
        let group = GROUP.as_ptr() as u64;
        match run(self.mode, [flags, group, u64::from(all), 0, 0, 0])? as i64 {
            0 => Ok(()),
            error => Err(Stop::Driver(format!("kernel_set_rx_mode: {error}"))),
        }
    }

    /// The handler alone.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn handle(&mut self) -> Result<(), Stop> {
        let arguments = [u64::from(memory::IRQ), 0, 0, 0, 0, 0];
        match run(self.handler, arguments)? as i64 {
            EAGAIN => Err(Stop::Stuck("the guest's interrupts are off")),
            _ => Ok(()),
        }
    }

    /// Whether its driver is to be polled.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn polls(&mut self) -> Result<bool, Stop> {
        Ok(run(self.pending, [0; 6])? != 0)
    }

    /// One poll: as many packets as the driver's weight, at most.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn poll(&mut self) -> Result<Handled, Stop> {
        let before = self.driver_received();
        // A budget of one packet is one poll.
        run(self.softirq, [1, 0, 0, 0, 0, 0])?;
        let mut cleaned = 0;
        while let Some(done) = self.engine.completion() {
            self.source.complete(done.cookie);
            cleaned += 1;
        }
        let received = self.driver_received() - before;
        self.received += received;
        let socket = &mut self.socket;
        self.engine.delivered().for_each(|packet| {
            if socket.len() < SOCKET {
                socket.push_back(packet.to_vec());
            }
        });
        Ok(Handled { cleaned, received })
    }

    /// Polls until nothing is left.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn poll_out(&mut self) -> Result<(), Stop> {
        while self.polls()? {
            self.poll()?;
        }
        Ok(())
    }

    fn driver_received(&mut self) -> u64 {
        self.engine.rings().counter("received").unwrap_or(0)
    }

    /// The application takes a packet from its socket; false if there is none.
    pub fn take(&mut self) -> bool {
        let source = std::slice::from_mut(&mut self.source);
        let packet = self.socket.pop_front();
        if let Some(packet) = &packet {
            deliver_to(source, packet);
        }
        self.source.check();
        packet.is_some()
    }

    /// Whether packets wait in its socket.
    pub fn has_packets(&self) -> bool {
        !self.socket.is_empty()
    }
}

/// Packets of two samples; more of received ones, because buffers are given back by sixteens.
const SENT: [u64; 2] = [1, 9];
const RECEIVED: [u64; 2] = [16, 48];
/// Packets before that: rings and pools go round.
const WARM: u64 = 640;
const BATCH: u64 = 32;
/// Longer than each of the card's delays, in nanoseconds.
const LONG: u64 = 100_000_000;

/// Counts the driver's price: registers are memory, so no access traps.
///
/// # Errors
/// The driver stopped, or nothing can be counted.
pub fn count(order: &Order, place: &JobPlace) -> Result<Price, Stop> {
    let untold = |error: crate::LiveError| Stop::Driver(error.to_string());
    let dma = place.plan.space().dma();
    let mut counting = Counting {
        guest: Guest::new(order, place)?,
        card: OpenCard::new(place.machine, place.mailbox, dma, 1, None)?,
        peer: peers(1, SHAPE).remove(0),
        number: 0,
        handler: 0,
    };
    set_bar(BarMode::Open).map_err(untold)?;
    let price = counting.price();
    let closed = counting.card.close();
    set_bar(BarMode::Trapped).map_err(untold)?;
    let price = price?;
    closed?;
    Ok(price)
}

struct Counting {
    guest: Guest,
    card: OpenCard<'static>,
    peer: Datagrams,
    number: u64,
    /// Instructions of the last handler that was counted.
    handler: u64,
}

/// Instructions of driver and hot routines in `work`.
fn instructions<T>(work: impl FnOnce() -> Result<T, Stop>) -> Result<u64, Stop> {
    enter_phase(Component::Dom0);
    let counted = steps::count(work);
    enter_phase(Component::Idle);
    let (result, steps) = counted.map_err(|error| Stop::Driver(error.to_string()))?;
    result?;
    Ok(steps.of(Component::Driver) + steps.of(Component::Support))
}

impl Counting {
    fn price(&mut self) -> Result<Price, Stop> {
        for _ in 0..WARM / BATCH {
            self.send(BATCH, false)?;
            self.receive(BATCH, false)?;
        }
        let [one, many] = SENT.map(|packets| self.send(packets, true));
        let [few, more] = RECEIVED.map(|packets| self.receive(packets, true));
        let handler = self.handler;
        let (one, many, few, more) = (one?, many?, few?, more?);
        let each =
            |low: u64, high: u64, [few, many]: [u64; 2]| high.saturating_sub(low) / (many - few);
        let cleaned = each(one.1, many.1, SENT);
        Ok(Price {
            transmit: each(one.0, many.0, SENT),
            handler,
            interrupt: one.1.saturating_sub(cleaned),
            cleaned,
            received: each(few, more, RECEIVED),
        })
    }

    /// Instructions of sending and of the interrupt afterwards.
    fn send(&mut self, packets: u64, counted: bool) -> Result<(u64, u64), Stop> {
        let mut sent = 0;
        for _ in 0..packets {
            sent += self.counted(counted, |guest| guest.transmit().map(|_| ()))?;
        }
        self.card.absorb_writes(false)?;
        self.card.send();
        Ok((sent, self.interrupt(counted)?))
    }

    /// Instructions of the interrupt that brings so many.
    fn receive(&mut self, packets: u64, counted: bool) -> Result<u64, Stop> {
        for _ in 0..packets {
            self.card.receive(self.peer.finished(self.number));
            self.number += 1;
        }
        let spent = self.interrupt(counted)?;
        while self.guest.take() {}
        Ok(spent)
    }

    fn interrupt(&mut self, counted: bool) -> Result<u64, Stop> {
        // The handler must find the causes, whatever the driver's delays.
        self.card.tick(LONG);
        self.card.absorb_writes(false)?;
        self.handler = self.counted(counted, Guest::handle)?;
        let polls = self.counted(counted, Guest::poll_out)?;
        self.card.absorb_writes(true)?;
        Ok(self.handler + polls)
    }

    fn counted(
        &mut self,
        counted: bool,
        work: impl FnOnce(&mut Guest) -> Result<(), Stop>,
    ) -> Result<u64, Stop> {
        match counted {
            true => instructions(|| work(&mut self.guest)),
            false => work(&mut self.guest).map(|()| 0),
        }
    }
}

impl Price {
    /// Of a poll that did this.
    pub fn of_poll(&self, handled: Handled) -> u64 {
        self.interrupt - self.handler
            + handled.cleaned * self.cleaned
            + handled.received * self.received
    }
}
