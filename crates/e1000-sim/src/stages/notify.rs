//! The stage `notify`: the runtime's (`runtime/include/twin/notify.h`).

use process_lab::packet_path::{self, Latency, NotifyLimits, NotifyStatistics};
use serde::{Deserialize, Serialize};

/// A guest is told of each packet at once: what a run without a clock can do.
pub const AT_ONCE: NotifyLimits = NotifyLimits {
    delay: 0,
    count: 0,
    most: 0,
};

/// Guests told so far, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotifyCounts {
    /// As many packets waited.
    pub count: u64,
    /// The first had waited as long.
    pub delay: u64,
    /// As many waited for all guests together.
    pub most: u64,
    /// None was to wait.
    pub at_once: u64,
    /// Packets that needed no interrupt of their own.
    pub saved: u64,
}

impl NotifyCounts {
    /// By name.
    pub fn list(&self) -> [(&'static str, u64); 5] {
        [
            ("count", self.count),
            ("delay", self.delay),
            ("most", self.most),
            ("at_once", self.at_once),
            ("saved", self.saved),
        ]
    }
}

/// Who waits for how long. Its address stays: services find it by that.
pub struct Notify {
    raw: *mut packet_path::Notify,
    /// Kept because `raw` points there.
    _memory: Box<[u64]>,
}

impl Notify {
    /// Nobody waits.
    pub fn new(limits: NotifyLimits) -> Notify {
        // SAFETY: plain function.
        let words = unsafe { packet_path::twin_notify_size() }.div_ceil(8) as usize;
        let mut memory = vec![0u64; words].into_boxed_slice();
        let raw = memory.as_mut_ptr().cast();
        // SAFETY: as large as said, and aligned.
        unsafe { packet_path::twin_notify_init(raw, &limits) };
        Notify {
            raw,
            _memory: memory,
        }
    }

    /// The runtime's.
    pub fn raw(&self) -> *mut packet_path::Notify {
        self.raw
    }

    /// Other limits from now on.
    pub fn set(&mut self, limits: NotifyLimits) {
        // SAFETY: alive.
        unsafe { packet_path::twin_notify_set(self.raw, &limits) }
    }

    /// A packet waits for each of these guests, as bits.
    pub fn arrived(&mut self, guests: u64, now: u64) {
        // SAFETY: alive, and nothing else uses it now.
        unsafe { arrived(self.raw, guests, 1, now) }
    }

    /// The guest has taken all that waited.
    pub fn taken(&mut self, guest: u32) {
        // SAFETY: alive.
        unsafe { packet_path::twin_notify_taken(self.raw, guest, u32::MAX) }
    }

    /// The guest's packets are gone.
    pub fn forget(&mut self, guest: u32) {
        // SAFETY: alive.
        unsafe { packet_path::twin_notify_forget(self.raw, guest) }
    }

    /// Guests to be told now, as bits; they count as told.
    pub fn due(&mut self, now: u64) -> u64 {
        // SAFETY: alive.
        unsafe { packet_path::twin_notify_due(self.raw, now) }
    }

    /// When somebody is to be told, if nothing arrives.
    pub fn deadline(&self) -> Option<u64> {
        // SAFETY: alive.
        let deadline = unsafe { packet_path::twin_notify_deadline(self.raw) };
        (deadline != packet_path::NEVER).then_some(deadline)
    }

    /// The counts so far.
    pub fn counts(&self) -> NotifyCounts {
        let mut copy = NotifyStatistics::default();
        // SAFETY: alive.
        unsafe { packet_path::twin_notify_events(self.raw, &mut copy) };
        NotifyCounts {
            count: copy.count,
            delay: copy.delay,
            most: copy.most,
            at_once: copy.at_once,
            saved: copy.saved,
        }
    }
}

/// Packets, or segments of one, wait for each of these guests, as bits.
///
/// # Safety
/// `notify` is a [`Notify::raw`] of one that lives, and nothing else uses it now.
pub unsafe fn arrived(notify: *mut packet_path::Notify, guests: u64, packets: u32, now: u64) {
    let mut rest = guests;
    while rest != 0 {
        // SAFETY: the caller's promise.
        unsafe { packet_path::twin_notify_arrived(notify, rest.trailing_zeros(), packets, now) };
        rest &= rest - 1;
    }
}

/// One budget of latency for the card's throttle and this stage (Dong et al., formula 4).
pub fn split(budget: u64, guests: u32, card_cost: u32, guest_cost: u32) -> Latency {
    // SAFETY: plain function.
    unsafe { packet_path::twin_notify_split(budget, guests, card_cost, guest_cost) }
}
