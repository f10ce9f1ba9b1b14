//! What cards bring for guests, simulated.
//!
//! ```text
//! visit a card     [interrupt] handler, poll: up to 64 frames ─ hash ─ lock ─ put ─ unlock
//! serve a queue    lock ─ take ─ unlock, for each ─ the guest's interrupt ─ its packets
//! ```

use super::card::{Card, Frame};
use super::model::{Locks, Machine, Outcome, Traffic};
use super::queues::{ProcessorId, QueueId};
use super::simulation::{Left, Locked, Setting, Simulation, WEIGHT, Way};
use super::work::WorkPrice;
use crate::live::price::Crossings;

/// Sends frames to a machine and follows each to its guest.
///
/// # Panics
/// If a machine without processors, cards, guests or queues, or traffic without flows, is given.
pub fn simulate(
    machine: &Machine,
    traffic: &Traffic,
    price: &WorkPrice,
    crossings: &Crossings,
) -> Outcome {
    let setting = Setting {
        machine,
        traffic,
        price,
        crossings,
    };
    let cards = (0..machine.cards).map(|card| Card::new(card, traffic));
    let mut receiving = Receiving {
        cards: cards.collect(),
    };
    let seen = Simulation::new(setting, traffic.flood).run(&mut receiving);
    Outcome {
        sent: receiving.cards.iter().map(Card::sent).sum(),
        missed: receiving.cards.iter().map(|card| card.missed).sum(),
        ..seen
    }
}

struct Receiving {
    cards: Vec<Card>,
}

/// What a processor is at.
enum Doing {
    /// At a card; with a frame that is to be put into its queue.
    Visit { visit: Visit, frame: Option<Frame> },
    /// Out of a queue, so many still.
    Take {
        queue: QueueId,
        left: usize,
        taken: Vec<Frame>,
    },
    /// They are the guest's at this time.
    Given(Vec<Frame>),
}

/// A processor's visit of a card.
#[derive(Clone, Copy)]
struct Visit {
    card: usize,
    /// Nanoseconds.
    began: u64,
    /// Frames that it may still take.
    left: u32,
}

type All<'a> = Simulation<'a, Receiving>;

impl Way for Receiving {
    type Packet = Frame;
    type Doing = Doing;

    fn due(&self, card: usize) -> Option<u64> {
        self.cards[card].due()
    }

    /// All that is in the queue goes to its guest.
    fn serve(&mut self, all: &mut All<'_>, on: ProcessorId, queue: QueueId) -> Left<Receiving> {
        let Setting {
            machine,
            price,
            crossings,
            ..
        } = all.setting;
        let left = all.waiting(queue);
        match machine.locks {
            Locks::Queues | Locks::Handed => {
                Some(take(all, on, queue, left, Vec::with_capacity(left)))
            }
            Locks::One => {
                let cycles = price.delivery(left as u64) + crossings.virtual_interrupt;
                all.hold(on, Locked::Queue(queue), cycles);
                let taken = (0..left).filter_map(|_| all.take(queue));
                Some(Doing::Given(taken.collect()))
            }
        }
    }

    /// The card's interrupt, and its handler.
    fn visit(&mut self, all: &mut All<'_>, on: ProcessorId, card: usize) -> Left<Receiving> {
        let began = all.clock(on).now();
        all.seen.visits += 1;
        if !self.cards[card].polled {
            all.seen.interrupts += 1;
            let interrupt = all.setting.crossings.interrupt;
            all.clock(on).work(interrupt);
        }
        let handler = all.setting.price.driver.interrupt;
        all.clock(on).work(handler);
        let left = WEIGHT;
        let visit = Visit { card, began, left };
        Some(Doing::Visit { visit, frame: None })
    }

    fn go_on(&mut self, all: &mut All<'_>, on: ProcessorId, doing: Doing) -> Left<Receiving> {
        match doing {
            Doing::Visit { visit, frame: None } => self.poll(all, on, visit),
            Doing::Visit {
                visit,
                frame: Some(frame),
            } => {
                self.put(all, on, frame);
                Some(Doing::Visit { visit, frame: None })
            }
            Doing::Take { queue, left, taken } => Some(take(all, on, queue, left, taken)),
            Doing::Given(frames) => {
                self.given(all, on, &frames);
                None
            }
        }
    }
}

impl Receiving {
    /// The driver takes a frame, or the visit ends.
    fn poll(&mut self, all: &mut All<'_>, on: ProcessorId, visit: Visit) -> Option<Doing> {
        let card = &mut self.cards[visit.card];
        let frame = match visit.left {
            0 => None,
            _ => card.take(all.clock(on).now()),
        };
        if frame.is_none() {
            card.leave(visit.began, visit.left == 0);
            return None;
        }
        let price = all.setting.price;
        all.clock(on).work(price.driver.packet + price.hash);
        let left = visit.left - 1;
        let visit = Visit { left, ..visit };
        Some(Doing::Visit { visit, frame })
    }

    /// Into the queue of its flow.
    fn put(&mut self, all: &mut All<'_>, on: ProcessorId, frame: Frame) {
        let route = all.routes[frame.flow as usize];
        all.hold(on, Locked::Queue(route.queue), all.setting.price.put);
        let now = all.clock(on).now();
        let Setting {
            machine, traffic, ..
        } = all.setting;
        let full = all.waiting(route.queue) >= machine.room;
        match full {
            true => all.seen.dropped += 1,
            false => all.put(route.queue, frame, now, Some(on)),
        }
        // Else when its guest has it.
        if full || Some(route.guest) == traffic.flood {
            self.cards[frame.card as usize].done(now);
        }
    }

    /// The guest has them.
    fn given(&mut self, all: &mut All<'_>, on: ProcessorId, frames: &[Frame]) {
        let now = all.clock(on).now();
        all.seen.deliveries += 1;
        for frame in frames {
            all.arrived(frame.flow, frame.number, now);
            self.cards[frame.card as usize].done(now);
        }
    }
}

/// Takes a frame, or gives what was taken.
fn take(
    all: &mut All<'_>,
    on: ProcessorId,
    queue: QueueId,
    left: usize,
    mut taken: Vec<Frame>,
) -> Doing {
    let Setting {
        price, crossings, ..
    } = all.setting;
    if left > 0 {
        all.hold(on, Locked::Queue(queue), price.take);
        taken.extend(all.take(queue));
        let left = left - 1;
        return Doing::Take { queue, left, taken };
    }
    let count = taken.len() as u64;
    let cycles = price.delivery(count) - count * price.take;
    all.clock(on).work(cycles + crossings.virtual_interrupt);
    Doing::Given(taken)
}

#[cfg(test)]
#[path = "receiving_tests.rs"]
mod tests;
