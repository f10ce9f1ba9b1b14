//! One CPU's rings with the hot routines: the layouts of
//! `runtime/include/twin/guest.h`, which explains each field, and how the trusted
//! side reads and writes them.
//!
//! The rings lie in dom0's memory, so no value read here is trusted: indices are
//! reduced, and a completion's reader checks it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// CPUs that may run hot routines.
pub const CPUS: usize = 4;
/// Requests of a CPU.
pub const REQUESTS: usize = 256;
/// Completions of a CPU.
pub const TX_DONE: usize = 1024;
/// Buffers that one call releases at most.
pub const RELEASE: usize = 256;
/// Most bytes of a request's linear part.
pub const HEADER: usize = 128;
/// Most fragments of a request.
pub const FRAGMENTS: usize = 17;
/// Most further numbers of a template of acknowledgements.
pub const ACKS: usize = 19;
/// The guest number of dom0 itself.
pub const DOM0: u32 = 0xffff;
/// `netdev_queue.xmit_lock_owner` while `hot_transmit()` on CPU 0 has the lock; others follow.
pub const QUEUE_OWNER: u32 = 0x10000;
/// A segment for the card to split, TCP over IPv4.
pub const GSO_TCPV4: u16 = 1;
/// Insert the VLAN tag.
pub const TX_VLAN: u16 = 1;
/// `host_receive`: held.
pub const RX_HELD: u32 = 0;
/// `host_receive`: unwanted.
pub const RX_UNWANTED: u32 = 1;
/// The card has verified the transport checksum.
pub const RX_CHECKSUM_OK: u32 = 1;
/// The received bytes are only the linear part of a larger packet.
pub const RX_FRAGMENTS: u32 = 4;
/// The received bytes are a `struct hot_rx_chain`.
pub const RX_PIECES: u32 = 8;
/// Most segments of an aggregate.
pub const SEGMENTS: u32 = 45;

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Sent {
    /// The driver has it.
    Sent = 0,
    /// The queue is stopped.
    Busy = 1,
    /// No buffers.
    NoBuffer = 2,
    /// The request is malformed.
    Invalid = 3,
    /// The interface is down.
    Down = 4,
    /// It names a frame that is not the guest's; set by the runtime, never by dom0.
    Foreign = 5,
    /// Its source is not the guest's address; set by the stage `bridge`, never by dom0.
    Spoofed = 6,
}

impl Sent {
    /// From the shared word; anything unknown counts as malformed.
    pub(crate) fn from_word(word: u32) -> Sent {
        match word {
            0 => Sent::Sent,
            1 => Sent::Busy,
            2 => Sent::NoBuffer,
            4 => Sent::Down,
            5 => Sent::Foreign,
            6 => Sent::Spoofed,
            _ => Sent::Invalid,
        }
    }
}

/// `struct hot_tx_fragment`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Fragment {
    /// Machine address.
    pub address: u64,
    /// Bytes of it.
    pub length: u32,
    zero: u32,
}

impl Fragment {
    /// A piece of memory.
    pub fn new(address: u64, length: u32) -> Fragment {
        Fragment {
            address,
            length,
            zero: 0,
        }
    }
}

/// `struct hot_tx_request`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the header says what each field is")]
pub struct Request {
    pub cookie: u64,
    pub guest: u32,
    pub header_length: u16,
    pub fragments: u16,
    pub gso_size: u16,
    pub gso_type: u16,
    pub checksum_start: u16,
    pub checksum_offset: u16,
    pub vlan_tag: u16,
    pub flags: u16,
    pub result: u32,
    pub header: [u8; HEADER],
    pub fragment: [Fragment; FRAGMENTS],
    pub acks: u32,
    pub ack: [u32; ACKS],
}

impl Request {
    /// Bytes in use, from its start on: without the fragments that it does not have.
    fn used(&self) -> usize {
        let fragments = usize::from(self.fragments).min(FRAGMENTS);
        std::mem::offset_of!(Request, fragment) + fragments * size_of::<Fragment>()
    }

    /// Makes it a copy of another, of the bytes in use.
    pub fn copy_from(&mut self, other: &Request) {
        // SAFETY: both are of this size or larger, plain bytes, and not the same.
        unsafe { copy(other, self) };
    }
}

/// Copies the bytes of a request that are in use.
///
/// # Safety
/// `to` is memory for a request, aligned, and not `from`'s.
unsafe fn copy(from: &Request, to: *mut Request) {
    let from_bytes = std::ptr::from_ref(from).cast::<u8>();
    // SAFETY: no more than a request's bytes; the caller's promise.
    unsafe { std::ptr::copy_nonoverlapping(from_bytes, to.cast::<u8>(), from.used()) };
}

impl Default for Request {
    fn default() -> Request {
        Request {
            cookie: 0,
            guest: 0,
            header_length: 0,
            fragments: 0,
            gso_size: 0,
            gso_type: 0,
            checksum_start: 0,
            checksum_offset: 0,
            vlan_tag: 0,
            flags: 0,
            result: 0,
            header: [0; HEADER],
            fragment: [Fragment::default(); FRAGMENTS],
            acks: 0,
            ack: [0; ACKS],
        }
    }
}

/// `struct hot_tx_done`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// The sender's name for the packet.
    pub cookie: u64,
    /// The guest that sent it.
    pub guest: u32,
    zero: u32,
}

impl Done {
    /// The completion of a guest's packet.
    pub fn new(guest: u32, cookie: u64) -> Done {
        Done {
            cookie,
            guest,
            zero: 0,
        }
    }
}

/// `struct hot_shared`.
#[repr(C)]
struct Shared {
    requests: AtomicU64,
    tx_done: AtomicU64,
    release: AtomicU64,
    aggregate: AtomicU32,
    offload: AtomicU32,
    reserved0: [u32; 8],
    tx_done_produce: AtomicU32,
    tx_done_lock: AtomicU32,
    reserved1: [u32; 14],
    tx_done_consume: AtomicU32,
    reserved2: [u32; 15],
    tx_sent: AtomicU32,
    tx_wake: AtomicU32,
    reserved3: [u32; 14],
    counter: [AtomicU64; 32],
}

/// Bytes of one CPU's part of `hot_shared`.
pub const SHARED_SIZE: u64 = size_of::<Shared>() as u64;

/// Events that the hot routines count, in the order of `enum hot_counter`.
pub const COUNTERS: [&str; 29] = [
    "sent", "busy", "no_buffer", "invalid", "down", "completed", "completion_lost", "received",
    "released", "skb_exhausted", "buffer_exhausted", "reclaimed", "bad_free", "foreign_free",
    "bad_completion", "scheduled", "polled", "wake", "aggregates", "merged", "flush_end",
    "flush_limit", "flush_boundary", "flush_order", "flush_header", "flush_collision", "cut",
    "parts", "gathered",
];

/// Where "polled" is among [`COUNTERS`].
const POLLED: usize = 16;
const _: () = assert!(matches!(COUNTERS[POLLED].as_bytes(), b"polled"));

/// Finds dom0's memory in this process.
pub trait Dom0Memory {
    /// Where `length` bytes at a dom0 address are, if they are dom0's and
    /// contiguous here. Other processes change them as well.
    fn dom0(&self, address: u64, length: u64) -> Option<*mut u8>;
}

/// One CPU's rings, in this process.
#[derive(Debug)]
pub struct Rings {
    shared: *const Shared,
    requests: *mut Request,
    done: *const Done,
    release: *mut AtomicU64,
    /// The dom0 address of `release`, an argument of `hot_release`.
    pub release_at: u64,
}

impl Rings {
    /// The rings of `cpu`; `hot_shared` is that symbol's dom0 address. `None` if
    /// they are not set up, or not in dom0's memory.
    pub fn new(memory: &dyn Dom0Memory, hot_shared: u64, cpu: usize) -> Option<Rings> {
        let at = hot_shared + cpu as u64 * SHARED_SIZE;
        let shared = memory.dom0(at, SHARED_SIZE)?.cast::<Shared>();
        if !shared.is_aligned() {
            return None;
        }
        // SAFETY: mapped, as long as the memory itself is, and aligned; all its
        // fields are atomics or never used.
        let words = unsafe { &*shared };
        let place = |address: u64, size: usize| {
            let pointer = memory.dom0(address, size as u64)?;
            pointer.cast::<u64>().is_aligned().then_some(pointer)
        };
        // Each once: dom0 may change them.
        let [requests, done, release] = [&words.requests, &words.tx_done, &words.release]
            .map(|word| word.load(Ordering::Acquire));
        Some(Rings {
            shared,
            requests: place(requests, REQUESTS * size_of::<Request>())?.cast(),
            done: place(done, TX_DONE * size_of::<Done>())?.cast(),
            release: place(release, RELEASE * 8)?.cast(),
            release_at: release,
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: `new` checked it; the machine's memory outlives its users.
        unsafe { &*self.shared }
    }

    /// Writes request `index`, modulo their number.
    pub fn put(&mut self, index: usize, request: &Request) {
        // SAFETY: inside the ring that `new` checked; no reference is made.
        unsafe { copy(request, self.requests.add(index % REQUESTS)) };
    }

    /// Request `index`, in dom0's memory: for dom0's own code, which fills it in place.
    pub fn place(&mut self, index: usize) -> *mut Request {
        // SAFETY: inside the ring that `new` checked; no reference is made.
        unsafe { self.requests.add(index % REQUESTS) }
    }

    /// Writes request `index`, which is a template of acknowledgements: all of it.
    pub fn put_template(&mut self, index: usize, template: &Request) {
        // SAFETY: inside the ring that `new` checked, aligned; no reference is made.
        unsafe {
            self.requests
                .add(index % REQUESTS)
                .write_volatile(*template)
        };
    }

    /// The result of request `index`.
    pub fn result(&self, index: usize) -> Sent {
        // SAFETY: inside the ring that `new` checked; no reference is made.
        let word =
            unsafe { (&raw const (*self.requests.add(index % REQUESTS)).result).read_volatile() };
        Sent::from_word(word)
    }

    /// Takes the next completion. If the indices show more than the ring has room for,
    /// there is none: they are in dom0's memory and may be wrong.
    pub fn completion(&mut self) -> Option<Done> {
        let shared = self.shared();
        let consume = shared.tx_done_consume.load(Ordering::Relaxed);
        let produce = shared.tx_done_produce.load(Ordering::Acquire);
        if produce == consume {
            return None;
        }
        if produce.wrapping_sub(consume) as usize > TX_DONE {
            shared.tx_done_consume.store(produce, Ordering::Release);
            return None;
        }
        // SAFETY: inside the ring that `new` checked; no reference is made.
        let done = unsafe { self.done.add(consume as usize % TX_DONE).read_volatile() };
        shared
            .tx_done_consume
            .store(consume.wrapping_add(1), Ordering::Release);
        Some(done)
    }

    /// Writes buffer `index` of the next release.
    ///
    /// # Panics
    /// If `index` is not below [`RELEASE`].
    pub fn put_release(&mut self, index: usize, buffer: u64) {
        assert!(index < RELEASE, "release holds {RELEASE}");
        // SAFETY: inside the array that `new` checked, aligned, an atomic.
        unsafe { (*self.release.add(index)).store(buffer, Ordering::Relaxed) };
    }

    /// Asks for aggregates of at most `segments` from the next poll on; below 2: none.
    pub fn set_aggregate(&mut self, segments: u32) {
        self.shared().aggregate.store(segments, Ordering::Relaxed);
    }

    /// Whether the hot routines do what the card cannot, from the next request on.
    pub fn set_offload(&mut self, on: bool) {
        self.shared().offload.store(on.into(), Ordering::Relaxed);
    }

    /// The count of an event, by its name in [`COUNTERS`].
    pub fn counter(&self, name: &str) -> Option<u64> {
        let index = COUNTERS.iter().position(|counter| *counter == name)?;
        Some(self.shared().counter[index].load(Ordering::Relaxed))
    }

    /// Calls of a driver's poll, among [`COUNTERS`]: without a search, for the packet path.
    pub fn polled(&self) -> u64 {
        self.shared().counter[POLLED].load(Ordering::Relaxed)
    }

    /// All counters, in the order of [`COUNTERS`].
    pub fn counters(&self) -> [u64; COUNTERS.len()] {
        std::array::from_fn(|i| self.shared().counter[i].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::ffi::{CStr, c_char};
    use std::mem::offset_of;

    use process_lab::packet_path;

    use super::*;
    use process_lab::runtime;

    #[repr(C)]
    struct Layout {
        name: *const c_char,
        value: u64,
    }

    unsafe extern "C" {
        static twin_guest_layout: [Layout; 0];
        static twin_guest_layout_count: u64;
    }

    fn c_layout() -> HashMap<String, u64> {
        // SAFETY: layout.c gives that many entries with static names.
        unsafe {
            let entries = std::slice::from_raw_parts(
                twin_guest_layout.as_ptr(),
                twin_guest_layout_count as usize,
            );
            entries
                .iter()
                .map(|entry| {
                    let name = CStr::from_ptr(entry.name).to_str().expect("ASCII");
                    (name.to_owned(), entry.value)
                })
                .collect()
        }
    }

    macro_rules! fields {
        ($($c:literal $rust:ty { $($field:ident),* })*) => {
            vec![$(
                ($c.to_string(), size_of::<$rust>() as u64),
                $((concat!($c, ".", stringify!($field)).to_string(), offset_of!($rust, $field) as u64),)*
            )*]
        };
    }

    #[test]
    fn layouts_and_numbers_are_those_of_the_header() {
        let mut rust = fields! {
            "hot_tx_fragment" Fragment { address, length }
            "hot_tx_request" Request {
                cookie, guest, header_length, fragments, gso_size, gso_type, checksum_start,
                checksum_offset, vlan_tag, flags, result, header, fragment, acks, ack
            }
            "twin_piece" runtime::Piece { address, length }
            "twin_flight" runtime::Flight { cookie, guest, pieces, uses, next, piece }
            "twin_frames" runtime::Frames { words, count }
            "twin_outgoing" runtime::Outgoing { frames, flights, count, free, statistics }
            "twin_outgoing_statistics" runtime::OutgoingStatistics {
                admitted, foreign, malformed, full, completed, unknown
            }
            "twin_gather" packet_path::Gather { list, ticket, offset, bytes, each }
            "twin_storm_limit" packet_path::StormLimit { interval, burst }
            "twin_bridge_statistics" packet_path::BridgeStatistics {
                wire, local, group, received, unknown, spoofed, storm
            }
            "twin_notify_limits" packet_path::NotifyLimits { delay, count, most }
            "twin_notify_statistics" packet_path::NotifyStatistics {
                count, delay, most, at_once, saved
            }
            "twin_latency" packet_path::Latency { card, guest }
            "hot_tx_done" Done { cookie, guest }
            "hot_rx_piece" runtime::Segment { data, length }
            "hot_rx_chain" runtime::Aggregate { segments, size, piece }
            "twin_segment" runtime::Segment { data, length }
            "twin_aggregate" runtime::Aggregate { segments, size, piece }
            "twin_delivery" runtime::Delivery { length, flags, vlan, segments, size, release }
            "hot_shared" Shared {
                requests, tx_done, release, aggregate, offload, tx_done_produce, tx_done_consume, tx_sent, tx_wake,
                counter
            }
        };
        let numbers: [(&str, u64); 42] = [
            ("HOT_CPUS", CPUS as u64),
            ("HOT_REQUESTS", REQUESTS as u64),
            ("HOT_TX_DONE", TX_DONE as u64),
            ("HOT_RELEASE", RELEASE as u64),
            ("HOT_HEADER", HEADER as u64),
            ("HOT_FRAGMENTS", FRAGMENTS as u64),
            ("HOT_ACKS", ACKS as u64),
            ("HOT_DOM0", u64::from(DOM0)),
            ("HOT_QUEUE_OWNER", u64::from(QUEUE_OWNER)),
            ("HOT_GSO_TCPV4", u64::from(GSO_TCPV4)),
            ("HOT_GSO_TCPV6", 2),
            ("HOT_TX_VLAN", u64::from(TX_VLAN)),
            ("HOT_SENT", Sent::Sent as u64),
            ("HOT_BUSY", Sent::Busy as u64),
            ("HOT_NO_BUFFER", Sent::NoBuffer as u64),
            ("HOT_INVALID", Sent::Invalid as u64),
            ("HOT_DOWN", Sent::Down as u64),
            ("HOT_FOREIGN", Sent::Foreign as u64),
            ("HOT_SPOOFED", Sent::Spoofed as u64),
            ("HOT_RX_HELD", u64::from(RX_HELD)),
            ("HOT_RX_UNWANTED", u64::from(RX_UNWANTED)),
            ("HOT_RX_CHECKSUM_OK", u64::from(RX_CHECKSUM_OK)),
            ("HOT_RX_VLAN", 2),
            ("HOT_RX_FRAGMENTS", u64::from(RX_FRAGMENTS)),
            ("HOT_RX_PIECES", u64::from(RX_PIECES)),
            ("HOT_RX_SEGMENTS", u64::from(SEGMENTS)),
            ("TWIN_SWITCH_AGGREGATE", runtime::SWITCH_AGGREGATE as u64),
            ("TWIN_SWITCH_PIECES", runtime::SWITCH_PIECES as u64),
            ("HOT_COUNTERS", COUNTERS.len() as u64),
            ("TWIN_PIECES", runtime::PIECES as u64),
            ("TWIN_OWNER_NOBODY", u64::from(runtime::OWNER_NOBODY)),
            ("TWIN_OWNER_DOM0", u64::from(runtime::OWNER_DOM0)),
            ("TWIN_OWNER_GUESTS", u64::from(runtime::OWNER_GUESTS)),
            ("TWIN_ADMITTED", runtime::ADMITTED as u64),
            ("TWIN_FOREIGN", runtime::FOREIGN as u64),
            ("TWIN_FULL", runtime::FULL as u64),
            ("TWIN_BUSY", runtime::BUSY as u64),
            ("TWIN_WAY_WIRE", packet_path::WIRE as u64),
            ("TWIN_WAY_GUESTS", packet_path::GUESTS as u64),
            ("TWIN_WAY_BOTH", packet_path::BOTH as u64),
            ("TWIN_WAY_SPOOFED", packet_path::SPOOFED as u64),
            ("TWIN_WAY_STORM", packet_path::STORM as u64),
        ];
        rust.extend(numbers.map(|(name, value)| (name.to_owned(), value)));
        assert_eq!(rust.into_iter().collect::<HashMap<_, _>>(), c_layout());
    }
}
