//! The stage `ack`: the card's interrupt is acknowledged when it comes, and the driver's handler
//! gets the causes later (DBNet, 5.2), when dom0's virtual interrupt flag allows it.
//!
//! Each cause that the card gave is handed to the handler once, or was taken by a poll that began
//! after it.

use serde::{Deserialize, Serialize};

/// What became of interrupts so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AckCounts {
    /// Interrupts that were acknowledged before the handler ran.
    pub early: u64,
    /// Of these, further ones while the causes of others waited.
    pub joined: u64,
    /// Handlers that were given causes.
    pub handed: u64,
    /// Times that dom0's flag put a handler off.
    pub put_off: u64,
    /// Reads of causes that a poll took: no interrupt followed.
    pub polled: u64,
}

impl AckCounts {
    /// By name.
    pub fn list(&self) -> [(&'static str, u64); 5] {
        [
            ("early", self.early),
            ("joined", self.joined),
            ("handed", self.handed),
            ("put_off", self.put_off),
            ("polled", self.polled),
        ]
    }
}

/// Causes that no handler has seen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ack {
    saved: u32,
    counts: AckCounts,
}

impl Ack {
    /// The card's line was asserted for these.
    pub fn acknowledged(&mut self, causes: u32) {
        self.counts.early += 1;
        self.counts.joined += u64::from(self.saved != 0);
        self.saved |= causes;
    }

    /// Whether a handler is to run.
    pub fn waits(&self) -> bool {
        self.saved != 0
    }

    /// All causes for a handler that runs now, those that came meanwhile too.
    pub fn hand(&mut self, meanwhile: u32) -> u32 {
        self.counts.handed += 1;
        std::mem::take(&mut self.saved) | meanwhile
    }

    /// dom0 does not let the handler run.
    pub fn put_off(&mut self) {
        self.counts.put_off += 1;
    }

    /// A poll has ended that began after these came, and has looked for those of `taken`.
    pub fn polled(&mut self, causes: u32, taken: u32) {
        self.counts.polled += u64::from(causes & taken != 0);
        self.saved |= causes & !taken;
    }

    /// The card was reset, and the driver with it.
    pub fn forget(&mut self) {
        self.saved = 0;
    }

    /// The counts so far.
    pub fn counts(&self) -> AckCounts {
        self.counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_handed_once() {
        let mut ack = Ack::default();
        assert!(!ack.waits());
        ack.acknowledged(0x80);
        ack.put_off();
        ack.acknowledged(0x05);
        assert!(ack.waits());
        assert_eq!(ack.hand(0x02), 0x87);
        assert!(!ack.waits());
        // Of a poll's causes those remain that it does not look for.
        ack.polled(0x84, 0x83);
        assert_eq!(ack.hand(0), 0x04);
        ack.polled(0x80, 0);
        assert!(ack.waits());
        ack.forget();
        assert!(!ack.waits());
        let counts = AckCounts {
            early: 2,
            joined: 1,
            handed: 2,
            put_off: 1,
            polled: 1,
        };
        assert_eq!(ack.counts(), counts);
    }
}
