//! Packets from guest to guest: copied once into the hypervisor, and once more when the
//! receiver is scheduled.
//!
//! ```text
//! guest 0's frames ─ checked, copied ─> [queue of guest 1] ─ copied ─> guest 1's memory
//! ```
//!
//! The first copy ends the sender's part: its frames are free at once, and a receiver that
//! does not come holds none of them. A queue has a bound of its own, so a flood costs the
//! flooded guest packets, and nobody else.

use process_lab::runtime::{self, Piece};
use serde::{Deserialize, Serialize};

use crate::memory::{Frames, Machine};
use crate::packets::rings::{Request, TX_VLAN};
use crate::traffic::LONGEST;

/// Packets that wait for one guest at most.
pub const QUEUE: usize = 64;

/// Packets between guests so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalCounts {
    /// Put into a queue, once for each receiver.
    pub queued: u64,
    /// Taken by their receivers.
    pub taken: u64,
    /// Dropped: the queue was full, or the receiver had no room.
    pub dropped: u64,
    /// Dropped: longer than a frame, or with a tag to be inserted.
    pub unfit: u64,
    /// Refused: a frame was not the sender's.
    pub foreign: u64,
}

impl LocalCounts {
    /// By name.
    pub fn list(&self) -> [(&'static str, u64); 5] {
        [
            ("queued", self.queued),
            ("taken", self.taken),
            ("dropped", self.dropped),
            ("unfit", self.unfit),
            ("foreign", self.foreign),
        ]
    }
}

/// Why a packet is not a frame to be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// A frame of memory is not the sender's.
    Foreign,
    /// It has no such length, or asks for what is not done here.
    Shape,
}

/// A frame as the receiver gets it.
pub struct Frame {
    length: usize,
    bytes: [u8; LONGEST],
}

impl Frame {
    fn empty() -> Frame {
        Frame {
            length: 0,
            bytes: [0; LONGEST],
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn set(&mut self, bytes: &[u8]) {
        self.length = bytes.len();
        self.bytes[..bytes.len()].copy_from_slice(bytes);
    }

    /// Appends bytes; false if there is no room.
    fn append(&mut self, length: usize, copy: impl FnOnce(&mut [u8]) -> Option<()>) -> bool {
        let end = self.length + length;
        let Some(room) = self.bytes.get_mut(self.length..end) else {
            return false;
        };
        self.length = end;
        copy(room).is_some()
    }

    /// Computes the checksum that the card would have: the sum from `start` on goes to
    /// `start + offset`, where the pseudo header's is (RFC 1071). False if that is not in
    /// the frame.
    fn sum(&mut self, start: usize, offset: usize) -> bool {
        let frame = &mut self.bytes[..self.length];
        let field = start + offset;
        if start >= frame.len() || field + 2 > frame.len() {
            return false;
        }
        let words = frame[start..].chunks(2);
        let sum = words.fold(0u32, |sum, word| {
            sum + u32::from(u16::from_be_bytes([word[0], *word.get(1).unwrap_or(&0)]))
        });
        let sum = (sum >> 16) + (sum & 0xffff);
        let sum = !((sum >> 16) + sum) as u16;
        // Zero means none; its complement is the same number (RFC 768).
        let sum = if sum == 0 { 0xffff } else { sum };
        frame[field..field + 2].copy_from_slice(&sum.to_be_bytes());
        true
    }
}

/// The frames that wait for one guest: entry `i` is at `i % QUEUE`.
struct Queue {
    frames: Box<[Frame]>,
    produced: usize,
    consumed: usize,
}

impl Queue {
    fn new() -> Queue {
        Queue {
            frames: (0..QUEUE).map(|_| Frame::empty()).collect(),
            produced: 0,
            consumed: 0,
        }
    }

    fn put(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > LONGEST || self.produced - self.consumed == QUEUE {
            return false;
        }
        self.frames[self.produced % QUEUE].set(bytes);
        self.produced += 1;
        true
    }
}

/// All queues of a machine.
pub struct Local<'m> {
    machine: &'m Machine,
    /// Pins what is being copied: a frame keeps its owner meanwhile.
    pins: runtime::Outgoing,
    _flight: Box<runtime::Flight>,
    queues: Vec<Queue>,
    scratch: Frame,
    counts: LocalCounts,
}

impl<'m> Local<'m> {
    /// Empty queues of so many guests.
    ///
    /// # Panics
    /// Never: there is a place.
    pub fn new(machine: &'m Machine, guests: u32) -> Local<'m> {
        let mut pins = runtime::Outgoing::default();
        let mut flight = Box::new(runtime::Flight::default());
        let frames: &Frames = machine.frames();
        // SAFETY: the flight lives as long as the pins, the frames as long as the machine.
        let made =
            unsafe { runtime::twin_outgoing_init(&mut pins, frames.raw(), &raw mut *flight, 1) };
        assert_eq!(made, runtime::OK, "there is a place");
        Local {
            machine,
            pins,
            _flight: flight,
            queues: (0..guests).map(|_| Queue::new()).collect(),
            scratch: Frame::empty(),
            counts: LocalCounts::default(),
        }
    }

    /// Copies a packet of `sender`'s for `guests`, as bits. `request` is the caller's own
    /// copy.
    ///
    /// # Errors
    /// [`Unfit`]; nobody gets it then.
    pub fn send(&mut self, sender: u32, request: &Request, guests: u64) -> Result<(), Unfit> {
        self.copy_counted(sender, request)?;
        put(
            &mut self.queues,
            &mut self.counts,
            guests,
            self.scratch.bytes(),
        );
        Ok(())
    }

    /// The bytes of a packet, for [`Local::queue`].
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn copy_of(&mut self, sender: u32, request: &Request) -> Result<Vec<u8>, Unfit> {
        self.copy_counted(sender, request)?;
        Ok(self.scratch.bytes().to_vec())
    }

    /// Puts a frame into queues of guests, as bits; longer ones are not put.
    pub fn queue(&mut self, guests: u64, frame: &[u8]) {
        put(&mut self.queues, &mut self.counts, guests, frame);
    }

    fn copy_counted(&mut self, sender: u32, request: &Request) -> Result<(), Unfit> {
        let copied = self.copy(sender, request);
        match copied {
            Ok(()) => {}
            Err(Unfit::Foreign) => self.counts.foreign += 1,
            Err(Unfit::Shape) => self.counts.unfit += 1,
        }
        copied
    }

    fn copy(&mut self, sender: u32, request: &Request) -> Result<(), Unfit> {
        let pieces = usize::from(request.fragments);
        let Some(header) = request.header.get(..usize::from(request.header_length)) else {
            return Err(Unfit::Shape);
        };
        let Some(fragments) = request.fragment.get(..pieces) else {
            return Err(Unfit::Shape);
        };
        if request.gso_size != 0 || request.flags & TX_VLAN != 0 {
            return Err(Unfit::Shape);
        }
        self.scratch.set(header);
        let mut ticket = 0;
        // SAFETY: the pins are alive, and there are that many pieces.
        let admission = unsafe {
            runtime::twin_outgoing_admit(
                &mut self.pins,
                sender,
                0,
                fragments.as_ptr().cast::<Piece>(),
                pieces as u32,
                &mut ticket,
            )
        };
        match admission {
            runtime::ADMITTED => {}
            runtime::FOREIGN => return Err(Unfit::Foreign),
            _ => return Err(Unfit::Shape),
        }
        let machine = self.machine;
        let scratch = &mut self.scratch;
        let whole = fragments.iter().all(|fragment| {
            scratch.append(fragment.length as usize, |room| {
                machine.read(fragment.address, room)
            })
        });
        let (mut guest, mut cookie) = (0, 0);
        // SAFETY: alive; admitted above.
        unsafe {
            runtime::twin_outgoing_complete(&mut self.pins, ticket, &mut guest, &mut cookie);
        }
        let (start, offset) = (request.checksum_start, request.checksum_offset);
        let summed = start == 0 || self.scratch.sum(start.into(), offset.into());
        (whole && summed).then_some(()).ok_or(Unfit::Shape)
    }

    /// Gives the frames that wait for a guest to `take`, oldest first; what it does not
    /// take is dropped.
    pub fn take_all(&mut self, guest: u32, mut take: impl FnMut(&[u8]) -> bool) {
        let Some(queue) = self.queues.get_mut(guest as usize) else {
            return;
        };
        while queue.consumed != queue.produced {
            match take(queue.frames[queue.consumed % QUEUE].bytes()) {
                true => self.counts.taken += 1,
                false => self.counts.dropped += 1,
            }
            queue.consumed += 1;
        }
    }

    /// Guests for which frames wait, as bits.
    pub fn waiting(&self) -> u64 {
        let queues = self.queues.iter().enumerate();
        let waits = queues.filter(|(_, queue)| queue.consumed != queue.produced);
        waits.fold(0, |bits, (guest, _)| bits | 1 << guest)
    }

    /// Drops what waits for a guest.
    pub fn forget(&mut self, guest: u32) {
        self.take_all(guest, |_| false);
    }

    /// The counts so far.
    pub fn counts(&self) -> LocalCounts {
        self.counts
    }
}

fn put(queues: &mut [Queue], counts: &mut LocalCounts, guests: u64, frame: &[u8]) {
    let queues = queues.iter_mut().enumerate();
    for (_, queue) in queues.filter(|(guest, _)| guests >> guest & 1 != 0) {
        match queue.put(frame) {
            true => counts.queued += 1,
            false => counts.dropped += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_the_cards() {
        let mut frame = Frame::empty();
        // The pseudo header's sum, then data of odd length.
        frame.set(&[9, 9, 0x12, 0x34, 0xff, 0xff, 0x01]);
        assert!(frame.sum(2, 0));
        let sum = 0x1234u32 + 0xffff + 0x0100;
        let folded = !((sum >> 16) + (sum & 0xffff)) as u16;
        assert_eq!(frame.bytes()[2..4], folded.to_be_bytes());
        assert!(!frame.sum(7, 0) && !frame.sum(2, 4) && !frame.sum(60_000, 60_000));
    }

    #[test]
    fn a_sum_of_zero_is_sent_as_its_complement() {
        let mut frame = Frame::empty();
        frame.set(&[0xff, 0xff, 0, 0]);
        assert!(frame.sum(0, 2));
        assert_eq!(frame.bytes()[2..4], [0xff, 0xff]);
    }
}
