//! The stage `bridge`: the runtime's (`runtime/include/twin/bridge.h`), for one machine.

use std::ffi::c_int;

use process_lab::packet_path::{self, BRIDGE_HEADER, BridgeStatistics, StormLimit};
use process_lab::runtime;
use serde::{Deserialize, Serialize};

/// Packets for groups that a source may send: 64 at once, then one each millisecond.
pub const STORM: StormLimit = StormLimit {
    interval: 1_000_000,
    burst: 64,
    zero: 0,
};

/// Ways of packets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BridgeCounts {
    /// From a guest, to the wire only.
    pub wire: u64,
    /// From a guest to one guest.
    pub local: u64,
    /// For a group.
    pub group: u64,
    /// From the wire to one guest.
    pub received: u64,
    /// For none of the guests.
    pub unknown: u64,
    /// Refused: the source is not the sender's.
    pub spoofed: u64,
    /// Dropped: too many for groups.
    pub storm: u64,
}

impl BridgeCounts {
    /// By name.
    pub fn list(&self) -> [(&'static str, u64); 7] {
        [
            ("wire", self.wire),
            ("local", self.local),
            ("group", self.group),
            ("received", self.received),
            ("unknown", self.unknown),
            ("spoofed", self.spoofed),
            ("storm", self.storm),
        ]
    }
}

/// Where a packet goes; guests as bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It is dropped.
    Nowhere,
    /// To the card.
    Wire,
    /// To these guests.
    Guests(u64),
    /// To the card and these guests.
    Both(u64),
    /// It is refused: another sender's source.
    Spoofed,
    /// It is dropped: too many for groups.
    Storm,
}

impl Way {
    fn from_runtime(way: c_int, guests: u64) -> Way {
        match way {
            packet_path::WIRE => Way::Wire,
            packet_path::GUESTS => Way::Guests(guests),
            packet_path::BOTH => Way::Both(guests),
            packet_path::SPOOFED => Way::Spoofed,
            packet_path::STORM => Way::Storm,
            _ => Way::Nowhere,
        }
    }
}

/// A bridge. Its address stays: services find it by that.
pub struct Bridge {
    raw: *mut packet_path::Bridge,
    /// Kept because `raw` points there.
    _memory: Box<[u64]>,
}

impl Bridge {
    /// One without guests.
    pub fn new(limit: StormLimit) -> Bridge {
        // SAFETY: plain function.
        let words = unsafe { packet_path::twin_bridge_size() }.div_ceil(8) as usize;
        let mut memory = vec![0u64; words].into_boxed_slice();
        let raw = memory.as_mut_ptr().cast();
        // SAFETY: as large as said, and aligned.
        unsafe { packet_path::twin_bridge_init(raw, &limit) };
        Bridge {
            raw,
            _memory: memory,
        }
    }

    /// The runtime's.
    pub fn raw(&self) -> *mut packet_path::Bridge {
        self.raw
    }

    /// A guest has that address; false if it is another's, or not one of a single station.
    pub fn add(&mut self, guest: u32, mac: [u8; 6]) -> bool {
        // SAFETY: alive; six bytes.
        unsafe { packet_path::twin_bridge_add(self.raw, guest, mac.as_ptr()) == runtime::OK }
    }

    /// The guest is gone.
    pub fn remove(&mut self, guest: u32) {
        // SAFETY: alive.
        unsafe { packet_path::twin_bridge_remove(self.raw, guest) }
    }

    /// The way of a packet that `guest` sends, in nanoseconds of the machine's time.
    pub fn send(&mut self, guest: u32, header: &[u8; BRIDGE_HEADER], now: u64) -> Way {
        let mut guests = 0;
        let header = header.as_ptr();
        // SAFETY: alive; as many bytes as it reads.
        let way =
            unsafe { packet_path::twin_bridge_send(self.raw, guest, header, now, &mut guests) };
        Way::from_runtime(way, guests)
    }

    /// The counts so far.
    pub fn counts(&self) -> BridgeCounts {
        let mut copy = BridgeStatistics::default();
        // SAFETY: alive.
        unsafe { packet_path::twin_bridge_events(self.raw, &mut copy) };
        BridgeCounts {
            wire: copy.wire,
            local: copy.local,
            group: copy.group,
            received: copy.received,
            unknown: copy.unknown,
            spoofed: copy.spoofed,
            storm: copy.storm,
        }
    }
}

/// The way of a packet from the wire.
///
/// # Safety
/// `bridge` is a [`Bridge::raw`] of one that lives.
pub unsafe fn receive(
    bridge: *mut packet_path::Bridge,
    header: &[u8; BRIDGE_HEADER],
    now: u64,
) -> Way {
    let mut guests = 0;
    // SAFETY: the caller's promise; as many bytes as it reads.
    let way =
        unsafe { packet_path::twin_bridge_receive(bridge, header.as_ptr(), now, &mut guests) };
    Way::from_runtime(way, guests)
}
