//! The memory that one guest and the hypervisor share.
//!
//! ```text
//!             written by      running freely, an entry i is at i % RING
//! turn        both            who runs
//! events      the hypervisor  why the guest was entered
//! requests    the guest       packets to send             ─> answers   the hypervisor
//! posted      the guest       buffers for what comes in   ─> arrivals  the hypervisor
//! told_at     the guest       the answer of which it wants to be told
//! kick_at     the hypervisor  the request of which it wants to be told, if by_index says so; else of each
//! desk        the test        what a guest is to do, and what it has seen
//! ```
//!
//! An answer takes no place that a request does not leave: a guest that has more than a ring's requests unanswered
//! has lied about their number. An arrival has the place of its buffer.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

use super::turn::Turn;
use crate::packets::rings::{FRAGMENTS, Fragment, Request};
use crate::transport::mailbox::Zeroed;

/// Entries of each ring.
pub const RING: u32 = 256;

/// The guest is told that requests were answered.
pub const EVENT_ANSWERS: u32 = 1;
/// The guest is told that packets came in.
pub const EVENT_ARRIVALS: u32 = 2;

/// An answer to a request.
#[repr(C)]
#[derive(Debug, Default)]
pub struct AnswerSlot {
    /// The guest's name for the packet.
    pub cookie: AtomicU64,
    /// [`crate::packets::rings::Sent`].
    pub result: AtomicU32,
    zero: AtomicU32,
}

/// A buffer for a packet.
#[repr(C)]
#[derive(Debug, Default)]
pub struct PostSlot {
    /// Machine address.
    pub address: AtomicU64,
    /// Bytes.
    pub length: AtomicU32,
    zero: AtomicU32,
}

/// What became of a buffer.
#[repr(C)]
#[derive(Debug, Default)]
pub struct ArrivalSlot {
    /// Bytes of the packet that are in it; [`REFUSED`].
    pub length: AtomicU32,
    /// Segments of an aggregate in the low half, the payload of each in the high one.
    pub segments: AtomicU32,
}

/// In place of a length: the buffer was not the guest's.
pub const REFUSED: u32 = u32::MAX;

/// What the test says to a guest, and what the guest says to the test: on no real machine. The
/// hypervisor reads nothing of it.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Desk {
    /// What it is to do.
    pub order: AtomicU32,
    /// How often, or how many.
    pub argument: AtomicU32,
    /// [`super::front::Report`], by its order.
    pub report: [AtomicU64; 16],
}

/// The memory. All zeroes: empty rings, and the hypervisor's turn.
#[repr(C)]
pub struct Channel {
    /// Who runs.
    pub turn: Turn,
    /// [`EVENT_ANSWERS`], [`EVENT_ARRIVALS`].
    pub events: AtomicU32,
    /// Requests so far.
    pub requests: AtomicU32,
    /// Buffers so far.
    pub posted: AtomicU32,
    /// The guest wants to be told when answers pass this number.
    pub told_at: AtomicU32,
    /// Answers so far.
    pub answers: AtomicU32,
    /// Buffers that were used so far.
    pub arrivals: AtomicU32,
    /// The hypervisor wants a kick when requests reach this number.
    pub kick_at: AtomicU32,
    /// Whether that counts; 0: it wants a kick for whatever is put there.
    pub by_index: AtomicU32,
    zero: AtomicU32,
    /// The answers.
    pub answer: [AnswerSlot; RING as usize],
    /// The buffers.
    pub post: [PostSlot; RING as usize],
    /// What became of them.
    pub arrival: [ArrivalSlot; RING as usize],
    request: [UnsafeCell<Request>; RING as usize],
    /// The test's.
    pub desk: Desk,
}

// SAFETY: all fields are atomics but the requests, which are reached by volatile accesses through raw pointers, whose values
// nobody believes.
unsafe impl Sync for Channel {}
// SAFETY: all zeroes is a value of each field.
unsafe impl Zeroed for Channel {}

/// Whether an index that went on from `before` to `now` has reached `at` (virtio 1.1, 2.6.7.2). Any three values are safe.
pub fn reaches(before: u32, now: u32, at: u32) -> bool {
    now.wrapping_sub(at) < now.wrapping_sub(before)
}

const WORD: usize = size_of::<u64>();
/// Words of a request before its fragments.
const HEAD: usize = std::mem::offset_of!(Request, fragment) / WORD;
const _: () = assert!(std::mem::offset_of!(Request, fragment).is_multiple_of(WORD));
const _: () = assert!(size_of::<Fragment>() == 2 * WORD && align_of::<Request>() == WORD);

impl Channel {
    /// The guest's part, after requests went on from `before` to `now`: whether it is to kick.
    pub fn is_kick_wanted(&self, before: u32, now: u32) -> bool {
        if self.by_index.load(Ordering::Relaxed) == 0 {
            return true;
        }
        // Either this finds the ring armed, or who arms it finds the requests.
        fence(Ordering::SeqCst);
        reaches(before, now, self.kick_at.load(Ordering::Relaxed))
    }

    /// The hypervisor's part: it wants a kick when requests reach that number. Requests are to be looked at once more after
    /// [`Channel::is_armed`].
    pub fn arm(&self, at: u32) {
        self.kick_at.store(at, Ordering::Relaxed);
    }

    /// What was armed before is seen by a guest whose requests are not seen from here on.
    pub fn is_armed() {
        fence(Ordering::SeqCst);
    }

    /// Where a request is: for the guest that writes it.
    pub fn request(&self, index: u32) -> *mut Request {
        self.request[(index % RING) as usize].get()
    }

    /// Copies a request; each word that it has is read once. What it says of itself is the guest's claim still: of
    /// more fragments than there can be, all are copied and the number stays.
    pub fn read_request(&self, index: u32, into: &mut Request) {
        let from: *const u64 = self.request(index).cast_const().cast();
        let to: *mut u64 = std::ptr::from_mut(into).cast();
        // SAFETY: both are requests, aligned, and have so many words; the copy is only ours.
        unsafe { copy_words(from, to, HEAD) };
        // From here on only the copy is looked at.
        compiler_fence(Ordering::SeqCst);
        let fragments = usize::from(into.fragments).min(FRAGMENTS);
        // SAFETY: as above.
        unsafe { copy_words(from.add(HEAD), to.add(HEAD), fragments * 2) };
    }
}

/// Copies words of which the source may change meanwhile, each by one access.
///
/// # Safety
/// Both have as many words, aligned, and the target is the caller's.
unsafe fn copy_words(from: *const u64, to: *mut u64, words: usize) {
    for word in 0..words {
        // SAFETY: the caller's promise.
        unsafe { to.add(word).write(from.add(word).read_volatile()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::rings::HEADER;
    use crate::transport::mailbox::SharedPages;

    #[test]
    fn an_event_index_is_reached_once() {
        for start in [0, 7, u32::MAX - 2, u32::MAX] {
            let index = |by: u32| start.wrapping_add(by);
            let reached: Vec<u32> = (0..10)
                .filter(|by| reaches(index(*by), index(by + 1), index(4)))
                .collect();
            assert_eq!(reached, [3], "{start}");
            assert!(reaches(start, index(9), index(4)), "by more than one");
            assert!(!reaches(start, start, index(4)) && !reaches(start, start, start));
        }
    }

    #[test]
    fn a_request_is_copied_as_far_as_it_goes() {
        let pages = SharedPages::<Channel>::new().expect("memory");
        let channel = pages.get();
        let mut request = Request {
            cookie: 5,
            fragments: 2,
            header: [7; HEADER],
            ..Request::default()
        };
        request.fragment = std::array::from_fn(|at| Fragment::new(at as u64 + 1, 9));
        // SAFETY: the place of request 3, which nobody else uses.
        unsafe { channel.request(RING + 3).write(request) };
        let mut copy = Request::default();
        channel.read_request(3, &mut copy);
        assert_eq!(
            (copy.cookie, copy.fragments, copy.header),
            (5, 2, [7; HEADER])
        );
        let addresses = copy.fragment.map(|fragment| fragment.address);
        assert_eq!(addresses[..3], [1, 2, 0]);
        // SAFETY: as above.
        unsafe { (*channel.request(3)).fragments = u16::MAX };
        channel.read_request(3, &mut copy);
        assert_eq!(copy.fragments, u16::MAX);
        assert_eq!(copy.fragment[FRAGMENTS - 1].address, FRAGMENTS as u64);
    }
}
