//! Guests' queues, which processors share: each has a lock of its own, and one processor that
//! takes from it.
//!
//! ```text
//! card 0 ─ processor 0 ─┬─ hash ─> guest 0, queue 0 ─> processor 0 ─> guest 0
//! card 1 ─ processor 1 ─┴─ hash ─> guest 0, queue 1 ─> processor 1 ─> guest 0
//! ```
//!
//! A flow has one queue, a queue one taker, and a lock gives its packets one order: so those
//! of a flow stay in order. A queue is consistent whenever its owner dies: a packet is in it
//! when its last word is written, and out of it when it has been copied.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::mem::MaybeUninit;

use super::hash::flow_hash;
use crate::transport::lock::SpinLock;
use crate::transport::mailbox::Zeroed;

/// Packets that a queue holds.
pub const ROOM: usize = 64;
/// Entries of the table from hash to queue (Microsoft, "RSS": 128).
const INDIRECTION: u32 = 128;

/// A queue of one of the guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct QueueId(pub u32);

/// A processor, which has a card and an instance of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessorId(pub u32);

/// Which queue has which packets, and which processor has which queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spread {
    /// Guests.
    pub guests: u32,
    /// Queues of each.
    pub queues: u32,
    /// Processors that take from queues.
    pub processors: u32,
}

impl Spread {
    /// The queue of a guest's frame.
    pub fn queue_of(&self, guest: u32, frame: &[u8]) -> QueueId {
        self.queue(guest, flow_hash(frame))
    }

    /// The queue of a guest's packets with that hash.
    pub fn queue(&self, guest: u32, hash: u32) -> QueueId {
        QueueId(guest * self.queues + hash % INDIRECTION % self.queues)
    }

    /// Who takes from a queue: a guest's queues have neighbouring processors, and guests begin
    /// at different ones.
    pub fn processor(&self, queue: QueueId) -> ProcessorId {
        let (guest, number) = (queue.0 / self.queues, queue.0 % self.queues);
        ProcessorId((guest + number) % self.processors)
    }

    /// The guest of a queue.
    pub fn guest(&self, queue: QueueId) -> u32 {
        queue.0 / self.queues
    }

    /// The queues that a processor takes from.
    pub fn of(&self, processor: ProcessorId) -> impl Iterator<Item = QueueId> + use<> {
        let spread = *self;
        let all = (0..self.guests * self.queues).map(QueueId);
        all.filter(move |queue| spread.processor(*queue) == processor)
    }
}

/// A queue in memory that processes share. All zeroes is an empty one.
#[repr(C)]
#[derive(Debug)]
pub struct Queue<T, const N: usize = ROOM> {
    lock: SpinLock,
    ring: UnsafeCell<Ring<T, N>>,
}

#[repr(C)]
#[derive(Debug)]
struct Ring<T, const N: usize> {
    put: u64,
    taken: u64,
    slots: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> Ring<T, N> {
    fn put(&mut self, packet: &T) -> Result<(), Full> {
        if self.put - self.taken == N as u64 {
            return Err(Full);
        }
        self.slots[self.put as usize % N].write(*packet);
        self.put += 1;
        Ok(())
    }

    fn take(&mut self) -> Option<T> {
        if self.put == self.taken {
            return None;
        }
        // SAFETY: written by `put`, since it was not taken.
        let packet = unsafe { self.slots[self.taken as usize % N].assume_init_read() };
        self.taken += 1;
        Some(packet)
    }
}

/// There is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// Somebody who lives has the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held;

// SAFETY: the ring is reached under the lock only, and packets are copied.
unsafe impl<T: Copy + Send, const N: usize> Sync for Queue<T, N> {}
// SAFETY: counts of 0, and slots that may hold anything.
unsafe impl<T: Copy + Send, const N: usize> Zeroed for Queue<T, N> {}

impl<T: Copy, const N: usize> Queue<T, N> {
    /// Puts a packet at the end.
    ///
    /// # Errors
    /// [`Full`]; the queue is as before.
    pub fn put(&self, packet: &T) -> Result<(), Full> {
        let _guard = self.lock.lock();
        // SAFETY: the lock is held.
        unsafe { &mut *self.ring.get() }.put(packet)
    }

    /// Puts packets at the end, from the first on, as many as there is room for, and takes them from
    /// `packets`. All under one lock, which is polled so often.
    ///
    /// # Errors
    /// [`Held`]; nothing was put. With more than one poll a dead owner loses the lock.
    pub fn put_from(&self, packets: &mut VecDeque<T>, polls: u32) -> Result<(), Held> {
        let _guard = self.lock.lock_within(polls).ok_or(Held)?;
        // SAFETY: the lock is held.
        let ring = unsafe { &mut *self.ring.get() };
        while let Some(packet) = packets.front() {
            if ring.put(packet).is_err() {
                break;
            }
            packets.pop_front();
        }
        Ok(())
    }

    /// Takes the first packet.
    pub fn take(&self) -> Option<T> {
        let _guard = self.lock.lock();
        // SAFETY: the lock is held.
        unsafe { &mut *self.ring.get() }.take()
    }

    /// Takes the first packets, so many at most, under one lock, and appends them to `packets`.
    pub fn take_into(&self, packets: &mut Vec<T>, most: usize) {
        let _guard = self.lock.lock();
        // SAFETY: the lock is held.
        let ring = unsafe { &mut *self.ring.get() };
        let count = (ring.put - ring.taken).min(most as u64);
        for at in ring.taken..ring.taken + count {
            // SAFETY: written by `put`, since it was not taken.
            packets.push(*unsafe { ring.slots[at as usize % N].assume_init_ref() });
            ring.taken = at + 1;
        }
    }

    /// Packets that wait.
    pub fn waiting(&self) -> u64 {
        let _guard = self.lock.lock();
        // SAFETY: the lock is held.
        let ring = unsafe { &*self.ring.get() };
        ring.put - ring.taken
    }

    /// Holds its lock, as a processor does that gets no further.
    pub(super) fn hold(&self) -> impl Drop {
        self.lock.lock().0
    }

    /// Whether nobody holds its lock at the moment.
    pub fn is_free(&self) -> bool {
        self.lock.is_free()
    }
}

#[cfg(test)]
mod tests {
    use process_lab::process;

    use super::*;
    use crate::transport::mailbox::SharedPages;

    #[test]
    fn each_queue_has_one_processor_and_all_have_some() {
        for processors in [1, 2, 3, 4, 8] {
            let spread = Spread {
                guests: 3,
                queues: 8,
                processors,
            };
            let mut all: Vec<u32> = (0..processors)
                .flat_map(|processor| spread.of(ProcessorId(processor)))
                .map(|queue| queue.0)
                .collect();
            all.sort_unstable();
            assert_eq!(all, (0..24).collect::<Vec<u32>>());
            for guest in 0..3 {
                for hash in [0, 1, 127, 128, u32::MAX] {
                    let queue = spread.queue(guest, hash);
                    assert_eq!(spread.guest(queue), guest);
                    assert!(spread.processor(queue).0 < processors);
                }
            }
        }
    }

    #[test]
    fn first_in_first_out_and_full_is_said() {
        let pages = SharedPages::<Queue<u64>>::new().expect("memory");
        let queue = pages.get();
        for turn in 0..3 {
            let first = turn * 1000;
            for number in 0..ROOM as u64 {
                assert_eq!(queue.put(&(first + number)), Ok(()));
            }
            assert_eq!(queue.put(&0), Err(Full));
            let taken: Vec<u64> = std::iter::from_fn(|| queue.take()).collect();
            assert_eq!(taken, (first..first + ROOM as u64).collect::<Vec<_>>());
        }
        assert!(queue.is_free());
    }

    /// Two processes put, one takes: nothing is lost, and each one's packets stay in order.
    #[test]
    fn processes_share_it() {
        const EACH: u64 = 20_000;
        let pages = SharedPages::<Queue<(u32, u64)>>::new().expect("memory");
        let queue = pages.get();
        let put = |who: u32| {
            for number in 0..EACH {
                while queue.put(&(who, number)).is_err() {
                    std::thread::yield_now();
                }
            }
            0
        };
        let mut children = [0, 1].map(|who| process::fork(|| put(who)).expect("fork"));
        let mut next = [0; 2];
        while next != [EACH; 2] {
            match queue.take() {
                Some((who, number)) => {
                    assert_eq!(number, next[who as usize]);
                    next[who as usize] += 1;
                }
                None => std::thread::yield_now(),
            }
        }
        assert_eq!(process::wait_for_all(&mut children), Ok(()));
        assert_eq!((queue.take(), queue.is_free()), (None, true));
    }

    #[test]
    fn batches_keep_their_order_and_what_has_no_room_stays() {
        let pages = SharedPages::<Queue<u64, 8>>::new().expect("memory");
        let queue = pages.get();
        let mut left: VecDeque<u64> = (0..20).collect();
        let mut taken = Vec::new();
        while !left.is_empty() {
            assert_eq!(queue.put_from(&mut left, 1), Ok(()));
            assert!(left.is_empty() || queue.waiting() == 8);
            queue.take_into(&mut taken, 5);
        }
        queue.take_into(&mut taken, 8);
        assert_eq!(taken, (0..20).collect::<Vec<u64>>());
        let guard = queue.lock.lock();
        left.push_back(1);
        assert_eq!(queue.put_from(&mut left, 3), Err(Held));
        assert_eq!(left, [1], "it is still the caller's");
        drop(guard);
    }

    #[test]
    fn who_dies_with_the_lock_leaves_a_whole_queue() {
        let pages = SharedPages::<Queue<u64>>::new().expect("memory");
        let queue = pages.get();
        queue.put(&1).expect("room");
        let mut child = process::fork(|| {
            std::mem::forget(queue.lock.lock());
            0
        })
        .expect("fork");
        child.wait();
        assert!(!queue.is_free());
        queue.put(&2).expect("room");
        assert_eq!((queue.take(), queue.take()), (Some(1), Some(2)));
        assert!(queue.is_free());
    }
}
