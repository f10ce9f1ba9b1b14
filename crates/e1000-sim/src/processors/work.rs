//! What the simulated processors' work costs: counted here, one instruction after the other,
//! of the rewritten driver and of the queues' own code.
//!
//! ```text
//! interrupt + k * (packet + hash + put)     a card's processor: handler, poll, into queues
//! round + guest + k * (take + taken)        a queue's processor: out of it, to its guest
//! batch + k * (take + packet)               a queue's processor: out of it, to its card
//! interrupt + k * completed                 a card's processor: what was sent
//!                     └ under the queue's lock: put, take
//! ```

use std::hint::black_box;

use serde::{Deserialize, Serialize};

use super::hash::flow_hash;
use super::queues::Queue;
use crate::error::LiveError;
use crate::live::price::{Price, SentPrice};
use crate::measure::profile::Component;
use crate::measure::steps;
use crate::transport::mailbox::SharedPages;

/// Instructions of each kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkPrice {
    /// Of the rewritten driver, the switch and the guests.
    pub driver: Price,
    /// Of what guests send.
    pub sent: SentPrice,
    /// Hashing a frame.
    pub hash: u64,
    /// Putting a packet into a queue whose lock is free.
    pub put: u64,
    /// Taking one out.
    pub take: u64,
}

/// What a queue of the runtime has of a packet: the buffer's address, and its length.
type Descriptor = [u64; 2];

impl WorkPrice {
    /// Counts hash and queue, beside a driver's price.
    ///
    /// # Errors
    /// No memory, or no single steps.
    pub fn count(driver: Price, sent: SentPrice, frame: &[u8]) -> Result<WorkPrice, LiveError> {
        let pages = SharedPages::<Queue<Descriptor>>::new()?;
        let queue = pages.get();
        // The thread's number is asked for once.
        queue.waiting();
        let counted = |work: &mut dyn FnMut()| {
            let (nothing, all) = (instructions(|| {})?, instructions(&mut *work)?);
            Ok::<u64, LiveError>(all.saturating_sub(nothing))
        };
        Ok(WorkPrice {
            driver,
            sent,
            hash: counted(&mut || _ = black_box(flow_hash(black_box(frame))))?,
            put: counted(&mut || _ = black_box(queue.put(black_box(&[1, 2]))))?,
            take: counted(&mut || _ = black_box(queue.take()))?,
        })
    }

    /// Of a card's visit that brings so many packets, without its interrupt's crossing.
    pub fn visit(&self, packets: u64) -> u64 {
        self.driver.interrupt + packets * (self.driver.packet + self.hash + self.put)
    }

    /// Of a guest that takes so many packets, without its interrupt's crossing.
    pub fn delivery(&self, packets: u64) -> u64 {
        self.driver.round + self.driver.guest + packets * (self.take + self.driver.taken)
    }
}

fn instructions(work: impl FnOnce()) -> Result<u64, LiveError> {
    let ((), steps) = steps::count(work)?;
    Ok(Component::ALL.iter().map(|part| steps.of(*part)).sum())
}
