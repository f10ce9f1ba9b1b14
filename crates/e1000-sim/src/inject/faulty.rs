//! The hypervisor instance as the packet loop's engine, with a fault that strikes
//! at a chosen moment.

use std::sync::Arc;
use std::time::{Duration, Instant};

use process_lab::random::Random;

use super::anatomy::Anatomy;
use super::fault::{FaultKind, Moment, Struck};
use super::stack;
use super::strike::Striker;
use crate::engines::staged::Staged;
use crate::hypervisor::payload::Payload;
use crate::measure::profile::Component;
use crate::packets::packet_loop::{Card, Engine, Stop};
use crate::packets::rings::{Done, Request, Sent};
use crate::traffic::source::TrafficSource;

/// A fault that waits for its moment.
pub struct Armed<'a> {
    /// The driver's data.
    pub anatomy: Arc<Anatomy<'a>>,
    /// The instance's code.
    pub payload: &'a Payload,
    /// The kind of fault.
    pub kind: FaultKind,
    pub moment: Moment,
    /// Moments of this kind to skip.
    pub countdown: u64,
    /// Source of random choices.
    pub random: Random,
    /// An address of the hypervisor's own heap.
    pub hypervisor_heap: u64,
    /// The fault as it struck, if it has.
    pub struck: Option<Struck>,
}

impl Armed<'_> {
    /// Counts a moment; gives whether it is the chosen one.
    fn is_due(&mut self, moment: Moment) -> bool {
        if moment != self.moment || self.struck.is_some() {
            return false;
        }
        let due = self.countdown == 0;
        self.countdown = self.countdown.saturating_sub(1);
        due
    }

    /// Strikes while another thread runs the driver, some time after packets began.
    pub fn meanwhile(&mut self) {
        const MOST: u64 = 1_500;
        let start = Instant::now();
        let delay = Duration::from_micros(self.random.below(MOST));
        while start.elapsed() < delay {
            std::hint::spin_loop();
        }
        self.strike(None);
    }

    /// Strikes at a moment between calls of the driver.
    fn outside(&mut self, moment: Moment) {
        if self.is_due(moment) {
            self.strike(None);
        }
    }

    /// Strikes inside of a poll, where `buffer` is being received and the driver goes on at
    /// `site`.
    pub fn strike_inside(&mut self, buffer: u64, site: u64, stack: &mut [u64]) {
        if !self.is_due(Moment::Inside) {
            return;
        }
        match self.kind {
            FaultKind::StackWord | FaultKind::StackReturn | FaultKind::StackCanary => {
                let ram = self.anatomy.plan.space().sizes().dom0;
                let places = (ram, self.hypervisor_heap);
                self.struck = stack::strike(
                    self.kind,
                    (site, stack),
                    self.payload,
                    &mut self.random,
                    places,
                );
            }
            _ => self.strike(Some(buffer)),
        }
    }

    fn strike(&mut self, receiving: Option<u64>) {
        let mut striker = Striker {
            anatomy: &self.anatomy,
            random: &mut self.random,
            receiving,
            hypervisor_heap: self.hypervisor_heap,
        };
        self.struck = striker.strike(self.kind);
    }
}

pub struct Faulty<'a> {
    /// The hypervisor instance, with the stages of the campaign.
    pub engine: Staged<'a>,
    /// The fault, pending or struck.
    pub armed: Option<Armed<'a>>,
}

impl Faulty<'_> {
    fn outside(&mut self, moment: Moment) {
        if let Some(armed) = &mut self.armed {
            armed.outside(moment);
        }
    }
}

impl Engine for Faulty<'_> {
    fn submit(&mut self, index: usize, guest: u32, request: &Request) {
        self.engine.submit(index, guest, request);
    }

    fn submit_by(
        &mut self,
        index: usize,
        guest: u32,
        scratch: &mut Request,
        describe: impl FnOnce(&mut Request),
    ) {
        self.engine.submit_by(index, guest, scratch, describe);
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        self.outside(Moment::BeforeTransmit);
        let accepted = self.engine.transmit(count);
        self.outside(Moment::AfterTransmit);
        accepted
    }

    fn interrupt(&mut self, card: &mut dyn Card) -> Result<bool, Stop> {
        self.outside(Moment::BeforeHandler);
        match &mut self.armed {
            Some(armed) => stack::strike_inside(armed, || self.engine.interrupt(card)),
            None => self.engine.interrupt(card),
        }
    }

    fn causes_wait(&self) -> bool {
        self.engine.causes_wait()
    }

    fn deliver(&mut self, sources: &mut [TrafficSource<'_>]) -> Result<(), Stop> {
        self.engine.deliver(sources)
    }

    fn result(&self, index: usize) -> Sent {
        self.engine.result(index)
    }

    fn completion(&mut self) -> Option<Done> {
        self.engine.completion()
    }

    fn host(&self) -> Component {
        self.engine.host()
    }

    fn user(&self) -> Component {
        self.engine.user()
    }
}
