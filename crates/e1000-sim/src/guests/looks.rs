//! When guests' rings are looked at without a kick: the stage `look`.
//!
//! ```text
//!   asleep: rings are armed            awake: rings are not armed              asleep
//!   kick . . kick kick kick kick . . look . . look . . . . look . . . look ── arm, look again ──
//!            `---- busy ----'        |<- delay ->|  card's interrupt   few in a window
//! ```
//!
//! Asleep, the hypervisor has armed each ring when that was empty: its guest kicks for the next request. [`Pace::busy`] kicks in
//! a window wake it up. Awake, it arms no ring, and guests kick for nothing that they put there (but for [`super::crossing::AHEAD`] requests, so that no
//! guest has to stop). It looks at all rings when the card has interrupted, because it runs anyway, and by a timer when that has
//! not happened for [`Pace::delay`]. After a window with fewer than [`Pace::busy`] packets it arms all rings and looks
//! once more, so that no request is left between an empty ring and its arming (virtio 1.1, 2.6.7.3), and sleeps.
//!
//! So a request waits at most that delay. Whether a look is due is asked of the clock each time that the hypervisor runs, not only by the
//! timer: a timer that is lost delays a look until then. Nothing here is read from a guest.

use serde::{Deserialize, Serialize};

/// After an interrupt that came too early to find anything, the timer ends after this part of the delay. What it finds has an
/// interrupt of the card, a throttle's time after the last one, and that finds what has come until then: so looks ride along again.
const SOON: u64 = 4;

/// How rings are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Nanoseconds: the longest that a request waits for a look, and the length of a window.
    pub delay: u64,
    /// So many kicks in a window wake the hypervisor up; with fewer packets it sleeps.
    pub busy: u32,
}

/// Looks at all rings so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookCounts {
    /// By the timer.
    pub timed: u64,
    /// With an interrupt of the card.
    pub riding: u64,
    /// Because a look was due when a guest kicked: the timer was late.
    pub overdue: u64,
    /// Of all these, those that found nothing.
    pub empty: u64,
    /// Packets that they found.
    pub found: u64,
    /// Times that the hypervisor woke up.
    pub woken: u64,
    /// Times that it armed all rings to sleep, and found something.
    pub kept_awake: u64,
}

impl LookCounts {
    /// What was added since `before`.
    #[must_use]
    pub fn since(self, before: LookCounts) -> LookCounts {
        LookCounts {
            timed: self.timed - before.timed,
            riding: self.riding - before.riding,
            overdue: self.overdue - before.overdue,
            empty: self.empty - before.empty,
            found: self.found - before.found,
            woken: self.woken - before.woken,
            kept_awake: self.kept_awake - before.kept_awake,
        }
    }
}

/// Why the hypervisor looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// Its timer has ended.
    Timer,
    /// The card has interrupted.
    Interrupt,
    /// A guest has kicked, and a look was due.
    Kick,
}

/// What is to be done with rings after a kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterKick {
    /// The ring is armed again.
    Arm,
    /// No ring is armed from now on.
    DisarmAll,
    /// The hypervisor is awake already.
    Nothing,
}

/// The hypervisor's state. It sleeps at first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    pace: Option<Pace>,
    now: u64,
    /// When the next look is due, if it is awake.
    due: Option<u64>,
    window_end: u64,
    /// In this window: kicks if it sleeps, packets if it is awake.
    seen: u32,
    /// So far.
    pub counts: LookCounts,
}

impl Looks {
    /// Another pace from now on; none: each kick is served, and nothing else is looked at. It sleeps.
    pub fn set(&mut self, pace: Option<Pace>) {
        self.pace = pace;
        self.due = None;
        self.open_window();
    }

    /// The time, in nanoseconds. It does not go back.
    pub fn set_time(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Whether the stage is on.
    pub fn is_on(&self) -> bool {
        self.pace.is_some()
    }

    /// Whether it is awake.
    pub fn is_awake(&self) -> bool {
        self.due.is_some()
    }

    /// When the timer is to end.
    pub fn deadline(&self) -> Option<u64> {
        self.due
    }

    /// Whether a look is due.
    pub fn is_due(&self) -> bool {
        self.due.is_some_and(|due| self.now >= due)
    }

    fn pace(&self) -> Pace {
        self.pace.unwrap_or(Pace { delay: 0, busy: 0 })
    }

    fn after_delay(&self) -> u64 {
        self.now.saturating_add(self.pace().delay)
    }

    fn open_window(&mut self) {
        self.window_end = self.after_delay();
        self.seen = 0;
    }

    /// A guest has kicked, and its ring was served: packets that it had.
    pub fn kicked(&mut self, packets: u32) -> AfterKick {
        if self.is_awake() {
            self.seen = self.seen.saturating_add(packets);
            return AfterKick::Nothing;
        }
        if self.now >= self.window_end {
            self.open_window();
        }
        // One without work is no reason to look more often.
        self.seen += u32::from(packets > 0);
        if self.seen < self.pace().busy {
            return AfterKick::Arm;
        }
        self.wake();
        AfterKick::DisarmAll
    }

    /// It is awake from now on.
    pub fn wake(&mut self) {
        self.counts.woken += 1;
        self.due = Some(self.after_delay());
        self.open_window();
    }

    /// It has looked at all rings and found so many packets; whether it is to arm them all, look again, and sleep if
    /// there is nothing.
    pub fn looked(&mut self, occasion: Occasion, found: u32) -> bool {
        match occasion {
            Occasion::Timer => self.counts.timed += 1,
            Occasion::Interrupt => self.counts.riding += 1,
            Occasion::Kick => self.counts.overdue += 1,
        }
        self.counts.empty += u64::from(found == 0);
        self.counts.found += u64::from(found);
        self.seen = self.seen.saturating_add(found);
        self.due = Some(match (occasion, found) {
            (Occasion::Interrupt, 0) => self.now.saturating_add(self.pace().delay / SOON),
            _ => self.after_delay(),
        });
        if self.now < self.window_end {
            return false;
        }
        let few = self.seen < self.pace().busy;
        self.open_window();
        few
    }

    /// It has looked again, with all rings armed: it sleeps if nothing was found.
    pub fn looked_again(&mut self, found: u32) {
        self.counts.found += u64::from(found);
        match found {
            0 => self.due = None,
            _ => self.counts.kept_awake += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        delay: 100,
        busy: 3,
    };

    fn looks() -> Looks {
        let mut looks = Looks::default();
        looks.set(Some(PACE));
        looks
    }

    fn awake() -> Looks {
        let mut looks = looks();
        (0..2).for_each(|_| assert_eq!(looks.kicked(1), AfterKick::Arm));
        assert_eq!(looks.kicked(1), AfterKick::DisarmAll);
        looks
    }

    #[test]
    fn kicks_in_a_window_wake_it_up_and_slower_ones_do_not() {
        let mut looks = looks();
        for time in (0..1000).step_by(50) {
            looks.set_time(time);
            assert_eq!(looks.kicked(9), AfterKick::Arm, "{time}");
        }
        assert!(!looks.is_awake());
        let looks = awake();
        assert_eq!(looks.deadline(), Some(100));
        assert_eq!(looks.counts.woken, 1);
    }

    #[test]
    fn kicks_without_work_wake_nobody_up() {
        let mut looks = looks();
        (0..100).for_each(|_| assert_eq!(looks.kicked(0), AfterKick::Arm));
        assert!(!looks.is_awake());
    }

    #[test]
    fn it_stays_awake_while_there_is_enough() {
        let mut looks = awake();
        for turn in 1..100 {
            looks.set_time(turn * 100 - 1);
            assert!(!looks.is_due());
            looks.set_time(turn * 100);
            assert!(looks.is_due());
            assert!(!looks.looked(Occasion::Timer, 3), "{turn}");
        }
        looks.set_time(10_000);
        assert!(looks.looked(Occasion::Timer, 2), "fewer");
        looks.looked_again(0);
        assert_eq!(looks.deadline(), None);
        assert_eq!(looks.counts.found, 99 * 3 + 2);
    }

    #[test]
    fn what_comes_while_it_falls_asleep_keeps_it_awake() {
        let mut looks = awake();
        looks.set_time(100);
        assert!(looks.looked(Occasion::Timer, 0));
        looks.looked_again(1);
        assert_eq!(looks.deadline(), Some(200));
    }

    /// Each look makes the next one later, but the window ends when it ends.
    #[test]
    fn looks_with_interrupts_make_the_timer_later() {
        let mut looks = awake();
        looks.set_time(60);
        assert!(!looks.looked(Occasion::Interrupt, 1));
        assert_eq!(looks.deadline(), Some(160));
        looks.set_time(120);
        assert!(looks.looked(Occasion::Interrupt, 1), "two in a window");
    }

    #[test]
    fn an_interrupt_that_finds_nothing_makes_the_timer_sooner() {
        let mut looks = awake();
        looks.set_time(10);
        assert!(!looks.looked(Occasion::Interrupt, 0));
        assert_eq!(looks.deadline(), Some(35));
        looks.set_time(35);
        assert!(!looks.looked(Occasion::Timer, 0));
        assert_eq!(looks.deadline(), Some(135), "not again");
    }

    #[test]
    fn time_does_not_go_back_and_does_not_overflow() {
        let mut looks = awake();
        looks.set_time(500);
        looks.set_time(3);
        assert!(looks.is_due());
        looks.set_time(u64::MAX - 1);
        looks.looked(Occasion::Timer, 5);
        assert_eq!(looks.deadline(), Some(u64::MAX));
    }
}
