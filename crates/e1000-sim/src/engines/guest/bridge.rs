//! dom0's bridge (`kernel/bridge.c`) as the back end, which is dom0's code, sees it: its structures in dom0's memory.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::memory::view::View;
use crate::packets::rings::REQUESTS;

/// `KERNEL_BRIDGE_PORTS`.
const PORTS: usize = 16;
/// `KERNEL_BRIDGE_QUEUE`.
const QUEUE: u32 = 64;
/// `KERNEL_BRIDGE_HELD`.
const HELD: usize = 192;
/// `KERNEL_BRIDGE_PIECES`.
const PIECES: usize = 45;
/// The verdict of a packet that goes to the card alone.
pub const CARD: u32 = 1;

/// `struct kernel_bridge_piece`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// dom0 address.
    pub data: u64,
    /// Bytes.
    pub length: u32,
    zero: u32,
}

/// `struct kernel_bridge_held`
#[repr(C)]
#[derive(Debug)]
struct Held {
    skb: u64,
    uses: u32,
    next: u32,
    pieces: u32,
    length: u32,
    size: u32,
    flags: u32,
    piece: [Piece; PIECES],
}

/// `struct kernel_bridge_queue`
#[repr(C)]
#[derive(Debug)]
struct Queue {
    produce: AtomicU32,
    consume: AtomicU32,
    dropped: u64,
    held: [u32; QUEUE as usize],
}

/// Counts of the bridge, of frames and addresses (`kernel/kernel.h` says what each is).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the header says what each field is")]
pub struct BridgeCounts {
    pub learned: u64,
    pub moved: u64,
    pub aged: u64,
    pub full: u64,
    pub forwarded: u64,
    pub flooded: u64,
    pub filtered: u64,
    pub refused: u64,
    pub dropped: u64,
}

/// `struct kernel_bridge`
#[repr(C)]
#[derive(Debug)]
struct State {
    size: u64,
    ports: u32,
    free: u32,
    counts: BridgeCounts,
    verdict: [u32; REQUESTS],
    release: [u32; HELD],
    queue: [Queue; PORTS],
    held: [Held; HELD],
}

/// The bridge's state.
#[derive(Debug)]
pub struct BridgeView {
    state: *mut State,
}

/// A received packet that waits for a port.
#[derive(Clone, Copy, Debug)]
pub struct Waiting<'b> {
    /// Its number.
    pub number: u32,
    /// Bytes in all.
    pub length: u32,
    /// Payload of each TCP segment; 0: it is no aggregate.
    pub size: u32,
    /// `host_receive`'s.
    pub flags: u32,
    /// Where it is.
    pub pieces: &'b [Piece],
}

impl BridgeView {
    /// The state at a dom0 address, if it is one of this layout.
    pub fn new(memory: &View<'_>, address: u64) -> Option<BridgeView> {
        let length = size_of::<State>() as u64;
        let state = memory.pointer(address, length)?.cast::<State>();
        if !state.is_aligned() {
            return None;
        }
        // SAFETY: inside dom0's memory, aligned; any bytes are a number.
        let size = unsafe { (&raw const (*state).size).read() };
        (size == length).then_some(BridgeView { state })
    }

    /// The counts.
    pub fn counts(&self) -> BridgeCounts {
        // SAFETY: `new` checked it; plain numbers.
        unsafe { (&raw const (*self.state).counts).read_volatile() }
    }

    /// Packets for a port that its queue had no room for.
    pub fn dropped(&self, port: usize) -> u64 {
        // SAFETY: `new` checked it; the index is checked.
        unsafe { (&raw const (*self.state).queue[port].dropped).read_volatile() }
    }

    /// Ports that a routed request goes to, as bits.
    pub fn verdict(&self, index: usize) -> u32 {
        // SAFETY: `new` checked it; the kernel writes it in this thread's calls only.
        unsafe { (&raw const (*self.state).verdict[index % REQUESTS]).read() }
    }

    fn queue(&self, port: usize) -> &Queue {
        // SAFETY: `new` checked it; produce and consume are atomics, the rest is not written between them.
        unsafe { &(*self.state).queue[port] }
    }

    fn held(&self, number: u32) -> *mut Held {
        // SAFETY: `new` checked it; reduced to the array.
        unsafe {
            (&raw mut (*self.state).held)
                .cast::<Held>()
                .add(number as usize % HELD)
        }
    }

    /// The oldest packet that waits for a port.
    pub fn first(&self, port: usize) -> Option<Waiting<'_>> {
        let queue = self.queue(port);
        let consume = queue.consume.load(Ordering::Relaxed);
        if consume == queue.produce.load(Ordering::Acquire) {
            return None;
        }
        let number = queue.held[(consume % QUEUE) as usize];
        // SAFETY: a packet in a queue is not written until its uses are 0.
        let held = unsafe { &*self.held(number) };
        Some(Waiting {
            number,
            length: held.length,
            size: held.size,
            flags: held.flags,
            pieces: &held.piece[..(held.pieces as usize).min(PIECES)],
        })
    }

    /// Takes it out of the queue. It stays held until [`BridgeView::used`].
    pub fn advance(&self, port: usize) {
        let queue = self.queue(port);
        let consume = queue.consume.load(Ordering::Relaxed);
        queue
            .consume
            .store(consume.wrapping_add(1), Ordering::Release);
    }

    /// A port has had a packet; true if that was the last one.
    pub fn used(&mut self, number: u32) -> bool {
        let held = self.held(number);
        // SAFETY: its uses are changed by this thread, and by the kernel before it is in a queue.
        unsafe {
            (*held).uses -= 1;
            (*held).uses == 0
        }
    }

    /// Names packets that are to be released; gives how many.
    pub fn put_release(&mut self, numbers: &[u32]) -> u32 {
        let count = numbers.len().min(HELD);
        for (index, number) in numbers[..count].iter().enumerate() {
            // SAFETY: `new` checked it; inside the array.
            unsafe { (&raw mut (*self.state).release[index]).write(*number) };
        }
        count as u32
    }
}
