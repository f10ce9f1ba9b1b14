//! Time that work advances.
//!
//! An instruction counts as one cycle of a processor of 2.8 GHz, that of Dong's paper: a
//! figure to convert by, so that a run gives the same numbers each time and on each machine.
//! What the processor here takes is measured beside it.

/// Cycles a second of the machine that is played.
pub const HZ: u64 = 2_800_000_000;
const SECOND: u64 = 1_000_000_000;

/// A clock, in nanoseconds since it started.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    now: u64,
    /// What is left of a nanosecond, in parts of [`HZ`].
    rest: u64,
    worked: u64,
}

impl Clock {
    /// Nanoseconds.
    pub fn now(&self) -> u64 {
        self.now
    }

    /// Cycles worked.
    pub fn worked(&self) -> u64 {
        self.worked
    }

    /// The processor works so many cycles.
    pub fn work(&mut self, cycles: u64) {
        self.worked += cycles;
        let parts = cycles * SECOND + self.rest;
        self.now += parts / HZ;
        self.rest = parts % HZ;
    }

    /// The processor is idle until then, if that is not past.
    pub fn idle_until(&mut self, then: u64) {
        self.now = self.now.max(then);
    }

    /// The part of the time that the processor worked.
    pub fn load(&self) -> f64 {
        self.worked as f64 / HZ as f64 / (self.now.max(1) as f64 / SECOND as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_by_rounding() {
        let mut clock = Clock::default();
        for _ in 0..HZ / 1000 {
            clock.work(1);
        }
        assert_eq!((clock.now(), clock.worked()), (SECOND / 1000, HZ / 1000));
        clock.idle_until(3 * SECOND / 1000);
        clock.idle_until(0);
        assert_eq!(clock.now(), 3 * SECOND / 1000);
        assert!((clock.load() - 1.0 / 3.0).abs() < 1e-9);
    }
}
