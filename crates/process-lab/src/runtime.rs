//! The part of the runtime's C interface that the testbed uses: the layouts of
//! `runtime/include/twin/{abi,dma,frames,runtime,switch,testbed}.h`, which explain each item.

#![allow(missing_docs, reason = "the headers say what each item is")]

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::AtomicU32;

pub const OK: c_int = 0;
pub const ABORTED: c_int = 1;
pub const DEAD: c_int = 2;
pub const BUSY: c_int = 3;
pub const COLLISION: c_int = 6;

pub const ABORT_ACCESS: u32 = 1;
pub const ABORT_CALL: u32 = 2;
pub const ABORT_BUG: u32 = 3;
pub const ABORT_PORT: u32 = 4;
pub const ABORT_STACK: u32 = 5;
pub const ABORT_FAULT: u32 = 6;
pub const ABORT_RESOURCES: u32 = 7;
pub const ABORT_IMPORT: u32 = 8;
pub const ABORT_DEAD: u32 = 9;
pub const ABORT_RETURN: u32 = 10;
pub const ABORT_DMA: u32 = 11;
pub const ABORT_TIME: u32 = 12;
/// Locks that a report names at most.
pub const HELD_LOCKS: usize = 8;

#[repr(C)]
pub struct Constant {
    pub name: *const c_char,
    pub value: i64,
}

#[repr(C)]
pub struct Name {
    pub name: *const c_char,
    pub text: *const c_char,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct AbortReport {
    pub kind: u32,
    pub reason: u32,
    pub address: u64,
    pub rip: u64,
    pub entry_function: u64,
    pub locks: u32,
    pub zero: u32,
    pub lock: [HeldLock; HELD_LOCKS],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldLock {
    pub address: u64,
    pub site: u64,
}

// The header asserts the same.
const _: () = assert!(size_of::<AbortReport>() == 40 + 16 * HELD_LOCKS);

/// The context page; only its first words are the host's.
#[repr(C)]
pub struct Cpu {
    pub fs_base: u64,
    pub gs_base: u64,
}

#[repr(C)]
pub struct Frame {
    pub registers: [u64; 6],
    pub rax: u64,
    pub stack: *const u64,
    pub site: u64,
    pub target: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodemapEntry {
    pub vm: u64,
    pub hyp: u64,
}

#[repr(C)]
pub struct Region {
    pub dom0_start: u64,
    pub length: u64,
    pub file_offset: u64,
    pub fd: i32,
    pub writable: u32,
}

#[repr(C)]
pub struct Host {
    pub data: *mut c_void,
    pub resolve_upcall: Option<unsafe extern "C" fn(*mut c_void, u64) -> u64>,
    pub import: Option<unsafe extern "C" fn(*mut c_void, *mut Frame) -> c_int>,
    pub port_in: Option<unsafe extern "C" fn(*mut c_void, u16, u32) -> u32>,
    pub port_out: Option<unsafe extern "C" fn(*mut c_void, u16, u32, u32)>,
    pub warn: Option<unsafe extern "C" fn(*mut c_void, u64)>,
}

#[repr(C)]
pub struct PortRange {
    pub first: u16,
    pub last: u16,
}

#[repr(C)]
pub struct Config {
    pub scheme: u32,
    pub windows: u32,
    pub regions: u32,
    pub port_count: u32,
    pub vector_free: u32,
    pub gs_is_set: u32,
    pub ports: *const PortRange,
    pub stlb: *mut c_void,
    pub window: u64,
    pub stack_view: u64,
    pub host: Host,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub start: u64,
    pub length: u64,
    pub unmapped: u32,
}

/// `struct twin_testbed`, opaque.
#[repr(C)]
pub struct Testbed {
    _opaque: [u8; 0],
}

/// `struct twin_instance`, opaque.
#[repr(C)]
pub struct Instance {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    pub entries: u64,
    pub fills: u64,
    pub collisions: u64,
    pub refusals: u64,
    pub promotions: u64,
    pub call_misses: u64,
    pub imports: u64,
    pub warnings: u64,
    pub aborts: u64,
}

/// `struct twin_switch`, opaque.
#[repr(C)]
pub struct Switch {
    _opaque: [u8; 0],
}

/// Packets that wait for one guest at most.
pub const SWITCH_QUEUE: usize = 512;
pub const SWITCH_HELD: c_int = 0;
pub const SWITCH_UNWANTED: c_int = 1;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrival {
    pub buffer: u64,
    pub data: u64,
    pub length: u32,
    pub flags: u32,
    pub vlan: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Packet {
    pub arrival: Arrival,
    pub holders: u32,
    pub next: u32,
}

/// `twin_switch_take`: the packet was an aggregate.
pub const SWITCH_AGGREGATE: c_int = 64;

/// Most pieces of an aggregate.
pub const SWITCH_PIECES: usize = 45;

/// A piece of an aggregate.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment {
    pub data: u64,
    pub length: u32,
    pub zero: u32,
}

/// Segments that are reported as one packet.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Aggregate {
    pub segments: u32,
    pub size: u32,
    pub piece: [Segment; SWITCH_PIECES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivery {
    pub length: u32,
    pub flags: u32,
    pub vlan: u32,
    pub segments: u16,
    pub size: u16,
    pub release: u64,
}

pub const OWNER_NOBODY: u32 = 0;
pub const OWNER_DOM0: u32 = 0xffff;
/// Guests have numbers below.
pub const OWNER_GUESTS: u32 = 0xfffe;

#[repr(C)]
#[derive(Debug)]
pub struct Frames {
    pub words: *mut u64,
    pub count: u64,
}

/// Pieces of a packet at most.
pub const PIECES: usize = 17;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Piece {
    pub address: u64,
    pub length: u32,
    pub zero: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    pub cookie: u64,
    pub guest: u32,
    pub pieces: u32,
    pub uses: u32,
    pub next: u32,
    pub piece: [Piece; PIECES],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OutgoingStatistics {
    pub admitted: u64,
    pub foreign: u64,
    pub malformed: u64,
    pub full: u64,
    pub completed: u64,
    pub unknown: u64,
}

#[repr(C)]
#[derive(Debug)]
pub struct Outgoing {
    pub frames: *mut Frames,
    pub flights: *mut Flight,
    pub count: u32,
    pub free: u32,
    pub statistics: OutgoingStatistics,
}

impl Default for Outgoing {
    fn default() -> Outgoing {
        Outgoing {
            frames: std::ptr::null_mut(),
            flights: std::ptr::null_mut(),
            count: 0,
            free: 0,
            statistics: OutgoingStatistics::default(),
        }
    }
}

pub const ADMITTED: c_int = 0;
pub const FOREIGN: c_int = 1;
pub const FULL: c_int = 3;
/// A packet's pin of a frame (`runtime/core/frames.h`).
pub const PIN_PACKET: u64 = 1;

pub const DMA_TRANSMIT: u32 = 0;
pub const DMA_RECEIVE: u32 = 1;
pub const DMA_TAIL: u32 = 1;
pub const DMA_OVERRUN: u32 = 2;
pub const DMA_FORMAT: u32 = 3;
pub const DMA_LENGTH: u32 = 4;
pub const DMA_FOREIGN: u32 = 5;
pub const DMA_CHANGED: u32 = 6;
pub const DMA_RING: u32 = 7;

/// `struct twin_dma`, opaque.
#[repr(C)]
pub struct Dma {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DmaDescriptor {
    pub address: u64,
    pub control: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct DmaSlot {
    pub address: u64,
    pub length: u32,
    pub last: u32,
}

/// `struct twin_dma_ring_config`
#[repr(C)]
#[derive(Debug)]
pub struct DmaRing {
    pub base: u64,
    pub driver: *mut DmaDescriptor,
    pub copy: *mut DmaDescriptor,
    pub slots: *mut DmaSlot,
    pub doorbell: *const AtomicU32,
    pub tail_register: *const AtomicU32,
    pub count: u32,
    pub head: u32,
    pub tail: u32,
    pub buffer: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DmaStatistics {
    pub doorbells: u64,
    pub checked: u64,
    pub shown: u64,
    pub refused: u64,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DmaReport {
    pub fault: u32,
    pub kind: u32,
    pub index: u32,
    pub zero: u32,
    pub address: u64,
}

impl DmaReport {
    /// What the reason and the address of a report of kind [`ABORT_DMA`] say.
    pub fn from_abort(reason: u32, address: u64) -> DmaReport {
        DmaReport {
            fault: reason >> 24,
            kind: reason >> 16 & 0xff,
            index: reason & 0xffff,
            zero: 0,
            address,
        }
    }
}

// The header asserts the same.
const _: () = assert!(size_of::<DmaRing>() == 64 && size_of::<DmaSlot>() == 16);
const _: () = assert!(size_of::<DmaStatistics>() == 32 && size_of::<DmaReport>() == 24);

unsafe extern "C" {
    pub static twin_abi_constants: [Constant; 0];
    pub static twin_abi_constants_count: u64;
    pub static twin_abi_names: [Name; 0];
    pub static twin_abi_names_count: u64;

    pub fn twin_entry_address(name: *const c_char) -> u64;
    pub fn twin_instance_set_codemap(
        instance: *mut Instance,
        map: *const CodemapEntry,
        count: u64,
    ) -> c_int;
    pub fn twin_instance_add_text(instance: *mut Instance, start: u64, end: u64) -> c_int;
    pub fn twin_instance_report(instance: *const Instance) -> *const AbortReport;
    pub fn twin_enter(
        cpu: *mut Cpu,
        instance: *mut Instance,
        hyp: u64,
        arguments: *const [u64; 6],
        result: *mut u64,
    ) -> c_int;
    pub fn twin_stop(cpu: *mut Cpu, rip: u64, rsp: u64) -> bool;
    pub fn twin_abort_from_fault();
    pub fn twin_import_entry();

    pub fn twin_testbed_create(config: *const Config) -> *mut Testbed;
    pub fn twin_testbed_destroy(testbed: *mut Testbed);
    pub fn twin_testbed_instance(testbed: *mut Testbed) -> *mut Instance;
    pub fn twin_testbed_add_region(testbed: *mut Testbed, region: *const Region) -> c_int;
    pub fn twin_testbed_collision(testbed: *const Testbed) -> *const Range;
    pub fn twin_testbed_add_stack(
        testbed: *mut Testbed,
        cpu: *mut Cpu,
        fd: i32,
        file_offset: u64,
    ) -> c_int;
    pub fn twin_testbed_block_create(wanted: u64) -> *mut Cpu;
    pub fn twin_testbed_faults_start() -> c_int;
    pub fn twin_testbed_thread_start() -> c_int;
    pub fn twin_testbed_write_import(at: *mut c_void, number: u32);
    pub fn twin_testbed_write_hot(
        at: *mut c_void,
        routine: extern "C" fn(*mut Cpu, *mut Frame) -> c_int,
    );
    pub fn twin_testbed_write_lock(at: *mut c_void, hyp: u64, frees: bool);
    pub fn twin_translate(instance: *mut Instance, va: u64, mapped: *mut u64) -> c_int;
    pub fn twin_call_lookup(instance: *mut Instance, vm: u64) -> u64;
    pub fn twin_instance_hold(instance: *mut Instance);
    pub fn twin_instance_release(instance: *mut Instance);
    pub fn twin_instance_statistics(instance: *const Instance, copy: *mut Statistics);
    static twin_entry_text_start: [u8; 0];
    static twin_entry_text_end: [u8; 0];

    pub fn twin_switch_size() -> u64;
    pub fn twin_switch_init(switch: *mut Switch, packets: *mut Packet, count: u32) -> c_int;
    pub fn twin_switch_attach(switch: *mut Switch, mac: *const u8) -> c_int;
    pub fn twin_switch_detach(switch: *mut Switch, guest: u32, release: *mut u64) -> u32;
    pub fn twin_switch_receive(
        switch: *mut Switch,
        instance: *mut Instance,
        arrival: *const Arrival,
    ) -> c_int;
    pub fn twin_switch_receive_aggregate(
        switch: *mut Switch,
        instance: *mut Instance,
        arrival: *const Arrival,
    ) -> c_int;
    pub fn twin_switch_take(
        switch: *mut Switch,
        instance: *mut Instance,
        guest: u32,
        to: *mut c_void,
        size: u32,
        delivery: *mut Delivery,
    ) -> c_int;
    pub fn twin_switch_news(switch: *mut Switch) -> u64;

    pub fn twin_frames_init(frames: *mut Frames, words: *mut u64, count: u64);
    pub fn twin_frame_owner(frames: *const Frames, frame: u64) -> u32;
    pub fn twin_frame_pins(frames: *const Frames, frame: u64) -> u32;
    pub fn twin_frame_move(frames: *mut Frames, frame: u64, from: u32, to: u32) -> c_int;
    pub fn twin_frames_pin(
        frames: *mut Frames,
        owner: u32,
        piece: *const Piece,
        pin: u64,
        sent: bool,
    ) -> c_int;
    pub fn twin_frames_unpin(frames: *mut Frames, piece: *const Piece, pin: u64);
    pub fn twin_outgoing_init(
        outgoing: *mut Outgoing,
        frames: *mut Frames,
        flights: *mut Flight,
        count: u32,
    ) -> c_int;
    pub fn twin_outgoing_admit(
        outgoing: *mut Outgoing,
        guest: u32,
        cookie: u64,
        piece: *const Piece,
        pieces: u32,
        ticket: *mut u64,
    ) -> c_int;
    pub fn twin_outgoing_complete(
        outgoing: *mut Outgoing,
        ticket: u64,
        guest: *mut u32,
        cookie: *mut u64,
    ) -> c_int;
    pub fn twin_outgoing_reset(outgoing: *mut Outgoing);

    pub fn twin_dma_size() -> u64;
    pub fn twin_dma_init(dma: *mut Dma, frames: *mut Frames, pool: *const u64, held: *mut u64);
    pub fn twin_dma_take(dma: *mut Dma, rings: *const [DmaRing; 2]) -> c_int;
    pub fn twin_dma_give_back(dma: *mut Dma);
    pub fn twin_dma_release(dma: *mut Dma, frame: u64) -> c_int;
    pub fn twin_dma_has_half(dma: *mut Dma, kind: u32) -> bool;
    pub fn twin_dma_show(dma: *mut Dma, report: *mut DmaReport) -> bool;
    pub fn twin_dma_ring(dma: *mut Dma, report: *mut DmaReport) -> bool;
    pub fn twin_dma_events(dma: *mut Dma, copy: *mut DmaStatistics, last: *mut DmaReport);
    pub fn twin_instance_set_dma(instance: *mut Instance, dma: *mut Dma);
}

/// The address of a runtime entry that rewritten code may name.
pub fn entry(name: &str) -> Option<u64> {
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the name is a terminated string; the function only compares it.
    let address = unsafe { twin_entry_address(name.as_ptr()) };
    (address != 0).then_some(address)
}

/// The runtime's numbers by the names that `crates/abi` gives them.
pub fn constants() -> Vec<(String, i64)> {
    // SAFETY: the table has `count` entries with terminated names, and is
    // constant.
    unsafe {
        let table = (&raw const twin_abi_constants).cast::<Constant>();
        (0..twin_abi_constants_count as usize)
            .map(|i| &*table.add(i))
            .map(|c| (text(c.name), c.value))
            .collect()
    }
}

/// The runtime's strings by the names that `crates/abi` gives them.
pub fn strings() -> Vec<(String, String)> {
    // SAFETY: as for `constants`.
    unsafe {
        let table = (&raw const twin_abi_names).cast::<Name>();
        (0..twin_abi_names_count as usize)
            .map(|i| &*table.add(i))
            .map(|n| (text(n.name), text(n.text)))
            .collect()
    }
}

/// # Safety
/// `pointer` points to a terminated string that stays.
unsafe fn text(pointer: *const c_char) -> String {
    // SAFETY: the caller's promise.
    unsafe { std::ffi::CStr::from_ptr(pointer) }
        .to_string_lossy()
        .into_owned()
}

/// Addresses of the runtime's entry code, which driver code returns to.
pub fn entry_text() -> std::ops::Range<u64> {
    (&raw const twin_entry_text_start) as u64..(&raw const twin_entry_text_end) as u64
}

/// Where the runtime translates addresses and targets of indirect calls: the entries
/// between the way into the driver and the port gate, in entry_x86_64.S's order.
///
/// # Panics
/// If the runtime lacks an entry point that the rewriter's code calls.
pub fn translation_text() -> std::ops::Range<u64> {
    let known = |name| entry(name).unwrap_or_else(|| panic!("the runtime has {name}"));
    known("twin_slow_rax")..known("twin_in8")
}
