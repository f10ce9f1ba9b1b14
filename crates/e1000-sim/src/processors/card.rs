//! A simulated card: frames come at the cable's speed while their sender has room in its
//! window, as with TCP; the card interrupts 4,000 times a second at most.

use std::collections::VecDeque;

use super::model::{Frames, Machine, Traffic};
use super::queues::QueueId;
use crate::live::receive::wire_time;
use crate::traffic::Datagrams;

/// Frames that a sender has on the way, up to the guest; the card's ring has as many
/// descriptors.
pub(super) const WINDOW: u32 = 256;
/// Nanoseconds between two interrupts of a card: Intel's default of 4,000 a second (Dong et
/// al., 5.1).
pub(super) const THROTTLE: u64 = 250_000;

/// A frame on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) card: u32,
    pub(super) flow: u32,
    /// In its flow.
    pub(super) number: u64,
    /// Nanoseconds when the card had it.
    pub(super) at: u64,
}

/// A flow's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Route {
    pub(super) guest: u32,
    pub(super) queue: QueueId,
}

/// The flows of all cards: those of a card follow each other.
pub(super) fn routes(machine: &Machine, traffic: &Traffic) -> Vec<Route> {
    let spread = machine.spread();
    let all = 0..machine.cards * traffic.flows;
    let route = |flow: u32| {
        let (card, turn) = (flow / traffic.flows, flow % traffic.flows);
        let guest = match traffic.frames {
            Frames::OneGuest => card % machine.guests,
            Frames::AllGuests => turn % machine.guests,
        };
        let mut sender = Datagrams::new(crate::processors::flow(flow, guest), traffic.size);
        let queue = spread.queue_of(guest, sender.finished(0));
        Route { guest, queue }
    };
    all.map(route).collect()
}

/// A card and its sender.
#[derive(Debug)]
pub(super) struct Card {
    number: u32,
    /// Nanoseconds of a frame on the cable.
    gap: u64,
    flows: u32,
    /// The sender waits for nobody.
    open: bool,
    until: u64,
    ring: VecDeque<Frame>,
    /// When the next frame can have come.
    next: u64,
    turn: u64,
    on_the_way: u32,
    /// When it may interrupt again.
    ready: u64,
    /// Its processor looks by itself, because frames were left.
    pub(super) polled: bool,
    pub(super) missed: u64,
}

impl Card {
    pub(super) fn new(number: u32, traffic: &Traffic) -> Card {
        let gap = wire_time(traffic.size);
        Card {
            number,
            gap,
            flows: traffic.flows,
            open: traffic.flood == Some(number),
            until: traffic.time,
            ring: VecDeque::new(),
            next: gap,
            turn: 0,
            on_the_way: 0,
            ready: 0,
            polled: false,
            missed: 0,
        }
    }

    /// Frames so far, with those that were missed.
    pub(super) fn sent(&self) -> u64 {
        self.turn
    }

    fn sends(&self) -> bool {
        self.next < self.until && (self.open || self.on_the_way < WINDOW)
    }

    /// Frames up to now.
    fn arrive(&mut self, now: u64) {
        while self.next <= now && self.sends() {
            let turn = self.turn;
            self.turn += 1;
            if self.ring.len() < WINDOW as usize {
                self.on_the_way += 1;
                self.ring.push_back(Frame {
                    card: self.number,
                    flow: self.number * self.flows + (turn % u64::from(self.flows)) as u32,
                    number: turn / u64::from(self.flows),
                    at: self.next,
                });
            } else {
                self.missed += 1;
            }
            self.next += self.gap;
        }
    }

    /// When its processor is to look at it; `None`: only after some frame is taken.
    pub(super) fn due(&self) -> Option<u64> {
        let coming = self.sends().then_some(self.next);
        let first = self.ring.front().map(|frame| frame.at).or(coming)?;
        Some(match self.polled {
            true => first,
            false => first.max(self.ready),
        })
    }

    /// The next frame, if it has come.
    pub(super) fn take(&mut self, now: u64) -> Option<Frame> {
        self.arrive(now);
        self.ring.pop_front()
    }

    /// A visit ends; without frames left the card is to interrupt again.
    pub(super) fn leave(&mut self, began: u64, frames_left: bool) {
        self.polled = frames_left;
        self.ready = began + THROTTLE;
    }

    /// A frame is off the way: its sender may send another.
    pub(super) fn done(&mut self, now: u64) {
        self.arrive(now);
        if !self.sends() {
            self.next = self.next.max(now);
        }
        self.on_the_way -= 1;
    }
}
