//! When a write of a tail must trap, and what is done about those that did not.
//!
//! | scheme | TDT traps | packets behind it go out |
//! |---|---|---|
//! | trapped | always | in the exit |
//! | batched | while no interrupt is expected | in the exit; before that interrupt; after its delay |
//! | status block | while the device side sleeps | in its bursts |
//!
//! **Batched** (3.3). The thesis patches the driver; here the tail's page becomes memory with the
//! doorbell after which an interrupt is expected. When the interrupt is given, and at the latest
//! when its delay has passed, whatever the guest's masks are, the page traps again and the tail is
//! read *after* that. So what a guest put there before it stopped goes out by itself. It also goes
//! out when the guest halts, because its ring is full: the thesis' driver would let it wait. Without a
//! delay an interrupt is never merely expected, and every doorbell traps (3.3.3).
//!
//! **Status block** (4.4). The thesis' TXNTFY and RXNTFY are the pages' protection:
//!
//! ```text
//! working ─ nothing found ─> arming ─ protect ─> look again ─ nothing ─> asleep
//!    ^                                              │ something            │ doorbell, frame
//!    └──────────────────────────────────────────────┴──────────────────────┘
//! ```
//!
//! A tail that is written between the last look and the protection did not trap: the second look
//! finds it. A page is protected for what is still wanted of it only: RDT if frames wait for
//! descriptors, the masks if a cause waits for them.

use super::device::{Device, State};
use super::order::{MaskDoorbell, NoRoom, Recheck, Scheme};
use super::pages::BarPage;
use crate::memory::PageMode;
use crate::nic::Register;
use crate::nic::registers::cause;
use crate::packets::packet_loop::Card;

/// Units of ITR, and of TADV and RADV (13.4.18, 13.4.44).
const THROTTLE_UNIT: u64 = 256;
const DELAY_UNIT: u64 = 1024;
/// Causes that packets raise and the driver unmasks.
const TRAFFIC: u32 = cause::TXDW | cause::RXT0 | cause::RXDMT0;

impl Device {
    /// TDT was written with a trap.
    pub(super) fn rung(&mut self) {
        match self.order.scheme {
            Scheme::Trapped => self.send_in_exit(),
            Scheme::Batched => {
                self.send_in_exit();
                self.expect_interrupt();
            }
            Scheme::StatusBlock => {
                self.set(BarPage::Transmit, PageMode::Open);
                self.wake(self.vcpu.now());
            }
        }
    }

    /// RDT was written with a trap.
    pub(super) fn descriptors_came(&mut self) {
        if self.order.scheme == Scheme::StatusBlock {
            self.set(BarPage::Receive, PageMode::Open);
        }
        if self.back_end.waits() {
            self.wake(self.vcpu.now());
        }
    }

    /// The guest's processor sends, and the guest waits.
    fn send_in_exit(&mut self) {
        let sent = self.send(u32::MAX);
        self.vcpu.work(sent * self.order.costs.frame);
        self.sync(self.vcpu.now());
    }

    // ---- Batched ----------------------------------------------------------------

    /// How long an interrupt for a packet sent may take: the least of the delays that are set, in
    /// nanoseconds; 0 if there is none (3.2).
    pub(super) fn delay(&self) -> u64 {
        let throttle = u64::from(self.peek(Register::Itr)) * THROTTLE_UNIT;
        let absolute = match self.peek(Register::Tidv) {
            0 => 0,
            _ => u64::from(self.peek(Register::Tadv)) * DELAY_UNIT,
        };
        let valid = [throttle, absolute].into_iter().filter(|delay| *delay > 0);
        valid.min().unwrap_or(0)
    }

    /// Until it comes the tail is memory.
    fn expect_interrupt(&mut self) {
        let delay = self.delay();
        if delay > 0 && !self.card.interrupt() {
            self.set(BarPage::Transmit, PageMode::Open);
            self.flush_at = Some(self.vcpu.now() + delay);
        }
    }

    /// The tail traps again; what is behind it goes out.
    pub(super) fn flush(&mut self) {
        self.flush_at = None;
        if self.set(BarPage::Transmit, PageMode::Trapped) {
            self.vcpu.work(self.order.costs.rearm);
        }
        self.look();
        self.send_in_exit();
    }

    /// The guest halts, which is an exit: what is behind a tail that is memory goes out at once.
    /// The interrupt is still expected. Whether anything went out.
    pub fn halt(&mut self) -> bool {
        if self.flush_at.is_none() {
            return false;
        }
        self.look();
        let waits = self.sends();
        if waits {
            self.seen.halts += 1;
            self.vcpu.work(self.order.costs.trap);
            self.send_in_exit();
        }
        waits
    }

    // ---- Status block -----------------------------------------------------------

    /// What the device side does next, at its own time.
    pub(super) fn step(&mut self) {
        match self.state {
            State::Asleep => {}
            State::Working => self.burst(),
            State::Arming => self.arm(),
        }
    }

    /// Works what is there, up to the limit.
    fn burst(&mut self) {
        self.sync(self.own.now());
        self.look();
        let limit = self.order.burst.unwrap_or(u32::MAX);
        let sent = match self.order.scheme {
            Scheme::Trapped | Scheme::Batched => 0,
            Scheme::StatusBlock => self.send(limit),
        };
        let frames = sent + self.receive(u64::from(limit) - sent.min(u64::from(limit)));
        if self.turn == 0 {
            self.turn_began = self.own.now();
        }
        self.own.work(frames * self.order.costs.frame);
        self.turn += frames;
        self.slow &= frames == 0;
        // A burst with a limit lets others run after it, one without when nothing is left.
        if frames == 0 || self.order.burst.is_some() {
            self.end_turn();
        }
        if frames == 0 {
            self.go_to_sleep();
        }
    }

    /// The guest may run for as long as the turn took.
    fn end_turn(&mut self) {
        if self.turn > 0 {
            self.seen.longest_burst = self.seen.longest_burst.max(self.turn);
            self.guests_until = self.own.now() + (self.own.now() - self.turn_began);
            self.turn = 0;
        }
    }

    /// Protecting takes time, in which the guest goes on writing.
    fn go_to_sleep(&mut self) {
        match self.order.scheme {
            Scheme::Trapped | Scheme::Batched => self.state = State::Asleep,
            Scheme::StatusBlock => {
                self.state = State::Arming;
                if self.pages.is_open(BarPage::Transmit) {
                    self.own.work(self.order.costs.rearm);
                }
            }
        }
    }

    /// Protects what is wanted, and looks again.
    fn arm(&mut self) {
        self.sync(self.own.now());
        let wanted = |wanted| match wanted {
            true => PageMode::ReadOnly,
            false => PageMode::Open,
        };
        let receive = wanted(self.back_end.waits() && !self.has_descriptor());
        let rung = self.order.masks == MaskDoorbell::Rung;
        let control = match self.slow {
            true => PageMode::Trapped,
            false => wanted(rung && self.waits_for_masks()),
        };
        let pages = [
            (BarPage::Transmit, PageMode::ReadOnly),
            (BarPage::Receive, receive),
            (BarPage::Control, control),
        ];
        let mut protected = false;
        for (page, mode) in pages {
            protected |= self.set(page, mode);
        }
        if protected {
            // The guest's processor forgets its translations.
            self.vcpu.work(self.order.costs.rearm);
        }
        self.state = State::Asleep;
        if self.order.recheck == Recheck::Left {
            return;
        }
        self.look();
        if self.has_work() {
            self.seen.rescued += u64::from(protected);
            self.wake(self.own.now());
            if self.sends() {
                self.set(BarPage::Transmit, PageMode::Open);
            }
        }
    }

    /// A cause of packets is there, and masked: without a doorbell nobody would see it unmasked.
    fn waits_for_masks(&self) -> bool {
        self.peek(Register::Icr) & !self.peek(Register::Ims) & TRAFFIC != 0
    }

    fn sends(&self) -> bool {
        self.peek(Register::Tdh) != self.peek(Register::Tdt)
    }

    fn has_work(&mut self) -> bool {
        self.back_end.arrive(self.own.now());
        self.sends() || self.back_end.waits() && self.takes_frames()
    }

    fn takes_frames(&self) -> bool {
        self.order.no_room == NoRoom::Dropped || self.has_descriptor()
    }

    fn has_descriptor(&self) -> bool {
        self.peek(Register::Rdh) != self.peek(Register::Rdt)
    }

    // ---- Frames -----------------------------------------------------------------

    /// Sends at most so many descriptors; gives the frames.
    fn send(&mut self, limit: u32) -> u64 {
        let before = self.frames_out();
        let count = self.peek(Register::Tdlen) / 16;
        let (head, tail) = (self.peek(Register::Tdh), self.peek(Register::Tdt));
        let waiting = (tail + count - head).checked_rem(count).unwrap_or(0);
        if waiting > limit {
            self.set_tail((head + limit) % count);
        }
        self.card.send();
        self.frames_out() - before
    }

    /// Frames that the card has sent, whatever they are.
    pub(super) fn frames_out(&self) -> u64 {
        let sent = &self.card.sent;
        sent.packets() + sent.corrupted + sent.strangers
    }

    /// Takes at most so many frames from the back end; gives how many.
    fn receive(&mut self, limit: u64) -> u64 {
        self.back_end.arrive(self.own.now());
        let mut taken = 0;
        while taken < limit && self.back_end.waits() && self.takes_frames() {
            let frame = self.back_end.take().unwrap_or_default();
            // Without a descriptor the card counts it as missed.
            self.stored += u64::from(self.card.receive(frame));
            taken += 1;
        }
        taken
    }
}
