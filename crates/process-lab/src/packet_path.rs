//! The runtime's stages of the packet path, as `runtime/include/twin/{bridge,notify,gather}.h`
//! state them; `e1000-sim`'s `packets/rings.rs` compares the layouts.

#![allow(missing_docs, reason = "the headers describe each item")]

use std::ffi::{c_int, c_void};

use crate::runtime::{Arrival, Instance, Outgoing, Switch};

/// `enum twin_way`: for nobody here.
pub const NOWHERE: c_int = 0;
pub const WIRE: c_int = 1;
pub const GUESTS: c_int = 2;
pub const BOTH: c_int = 3;
pub const SPOOFED: c_int = 4;
pub const STORM: c_int = 5;

/// Bytes of a header that the bridge reads.
pub const BRIDGE_HEADER: usize = 14;

/// `struct twin_storm_limit`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StormLimit {
    pub interval: u64,
    pub burst: u32,
    pub zero: u32,
}

/// `struct twin_bridge_statistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BridgeStatistics {
    pub wire: u64,
    pub local: u64,
    pub group: u64,
    pub received: u64,
    pub unknown: u64,
    pub spoofed: u64,
    pub storm: u64,
}

/// `struct twin_bridge`, opaque.
#[repr(C)]
pub struct Bridge {
    _opaque: [u8; 0],
}

/// No deadline.
pub const NEVER: u64 = u64::MAX;

/// `struct twin_notify_limits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyLimits {
    pub delay: u64,
    pub count: u32,
    pub most: u32,
}

/// `struct twin_notify_statistics`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NotifyStatistics {
    pub count: u64,
    pub delay: u64,
    pub most: u64,
    pub at_once: u64,
    pub saved: u64,
}

/// `struct twin_latency`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    pub card: u64,
    pub guest: u64,
}

/// `struct twin_notify`, opaque.
#[repr(C)]
pub struct Notify {
    _opaque: [u8; 0],
}

/// `struct twin_gather`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gather {
    pub list: u64,
    pub ticket: u64,
    pub offset: u32,
    pub bytes: u32,
    pub each: u32,
}

/// `twin_guest_memory`.
pub type GuestMemory = extern "C" fn(data: *mut c_void, machine: u64) -> *const c_void;

unsafe extern "C" {
    pub fn twin_gather(
        instance: *mut Instance,
        outgoing: *mut Outgoing,
        gather: *const Gather,
        memory: GuestMemory,
        data: *mut c_void,
    ) -> c_int;

    pub fn twin_notify_size() -> u64;
    pub fn twin_notify_init(notify: *mut Notify, limits: *const NotifyLimits);
    pub fn twin_notify_set(notify: *mut Notify, limits: *const NotifyLimits);
    pub fn twin_notify_arrived(notify: *mut Notify, guest: u32, packets: u32, now: u64);
    pub fn twin_notify_taken(notify: *mut Notify, guest: u32, packets: u32);
    pub fn twin_notify_forget(notify: *mut Notify, guest: u32);
    pub fn twin_notify_due(notify: *mut Notify, now: u64) -> u64;
    pub fn twin_notify_deadline(notify: *const Notify) -> u64;
    pub fn twin_notify_events(notify: *const Notify, copy: *mut NotifyStatistics);
    pub fn twin_notify_split(budget: u64, guests: u32, card_cost: u32, guest_cost: u32) -> Latency;

    pub fn twin_read_header(instance: *mut Instance, from: u64, header: *mut u8) -> c_int;
    pub fn twin_copy_from_dom0(
        instance: *mut Instance,
        to: *mut c_void,
        from: u64,
        size: u32,
    ) -> c_int;
    pub fn twin_switch_hold_aggregate(
        switch: *mut Switch,
        instance: *mut Instance,
        guests: u64,
        arrival: *const Arrival,
    ) -> c_int;

    pub fn twin_bridge_size() -> u64;
    pub fn twin_bridge_init(bridge: *mut Bridge, limit: *const StormLimit);
    pub fn twin_bridge_add(bridge: *mut Bridge, number: u32, mac: *const u8) -> c_int;
    pub fn twin_bridge_remove(bridge: *mut Bridge, number: u32);
    pub fn twin_bridge_send(
        bridge: *mut Bridge,
        number: u32,
        header: *const u8,
        now: u64,
        guests: *mut u64,
    ) -> c_int;
    pub fn twin_bridge_receive(
        bridge: *mut Bridge,
        header: *const u8,
        now: u64,
        guests: *mut u64,
    ) -> c_int;
    pub fn twin_bridge_hold(
        bridge: *mut Bridge,
        switch: *mut Switch,
        instance: *mut Instance,
        arrival: *const Arrival,
        now: u64,
        guests: *mut u64,
    ) -> c_int;
    pub fn twin_bridge_events(bridge: *mut Bridge, copy: *mut BridgeStatistics);
}
