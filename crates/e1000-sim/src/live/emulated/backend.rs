//! The back end of the emulated card: frames that arrive at their times, and wait.

use std::collections::VecDeque;

use crate::packets::round::peers;
use crate::traffic::Datagrams;
use crate::traffic::source::Shape;

/// Frames that may wait: the queue of a TAP device (`txqueuelen`) is 500 or 1,000.
const QUEUE: usize = 512;

/// Frames for one guest.
pub struct BackEnd {
    sender: Datagrams,
    interval: u64,
    left: u64,
    made: u64,
    waiting: VecDeque<u64>,
    /// Frames for which it had no room.
    pub missed: u64,
}

impl BackEnd {
    /// `packets` frames of `size` bytes, each `interval` nanoseconds after the one before.
    pub fn new(packets: u64, interval: u64, size: usize) -> BackEnd {
        BackEnd {
            sender: peers(1, Shape::Frames(size)).remove(0),
            interval,
            left: packets,
            made: 0,
            waiting: VecDeque::new(),
            missed: 0,
        }
    }

    /// When the next frame arrives, in nanoseconds.
    pub fn next(&self) -> Option<u64> {
        (self.left > 0).then(|| self.made * self.interval)
    }

    /// What has arrived by `now` waits.
    pub fn arrive(&mut self, now: u64) {
        while self.next().is_some_and(|at| at <= now) {
            match self.waiting.len() < QUEUE {
                true => self.waiting.push_back(self.made),
                false => self.missed += 1,
            }
            self.made += 1;
            self.left -= 1;
        }
    }

    /// The next frame waits now, before its time.
    pub fn arrive_now(&mut self) {
        if self.left > 0 {
            self.waiting.push_back(self.made);
            self.made += 1;
            self.left -= 1;
        }
    }

    /// Whether frames wait.
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The frame that waits longest.
    pub fn take(&mut self) -> Option<&[u8]> {
        let number = self.waiting.pop_front()?;
        Some(self.sender.finished(number))
    }
}
