//! Received packets to guests that are processes of their own ([`crate::guests`]): the hypervisor copies each into a buffer that its guest
//! has given it.
//!
//! As in [`Staged::deliver`], but for where packets go. A guest without a buffer keeps its packets in the switch's queue, which
//! is bounded; frames from other guests are dropped then, as they are where a guest has no room.

use std::ffi::c_void;
use std::sync::atomic::Ordering;

use process_lab::runtime::{self, Delivery};

use super::staged::{NOW, Staged};
use super::twin::TwinEngine;
use crate::packets::packet_loop::Stop;
use crate::stages::Stage;

/// Memory for one packet.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Where it is; whoever else writes there changes no more than the packet.
    pub at: *mut u8,
    /// Bytes.
    pub length: u32,
}

/// A packet in the room that was given last.
#[derive(Clone, Copy, Debug)]
pub struct Given {
    /// Bytes of it that are there.
    pub length: u32,
    /// Segments, if it is several in one; else 0.
    pub segments: u16,
    /// Payload of each but the last.
    pub size: u16,
}

/// The guests' buffers.
pub trait Rooms {
    /// Room for a guest's next packet, if it has any: memory that can be written until [`Rooms::given`] is called.
    fn room(&mut self, guest: u32) -> Option<Room>;

    /// Whether the guest was asked for room since, and had none: packets may wait for it still.
    fn is_without(&self, guest: u32) -> bool;

    /// The room has a packet. None: it has none, and is not used.
    fn given(&mut self, guest: u32, packet: Option<Given>);
}

/// The numbers of the bits that are set, from the lowest on.
pub(crate) fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let lowest = (word != 0).then(|| word.trailing_zeros());
        word &= word.wrapping_sub(1);
        lowest
    })
}

impl Staged<'_> {
    /// Guests that are to get their packets now, as bits: those that are due with the stage `notify`, else all that
    /// have any.
    pub fn due_now(&mut self) -> u64 {
        if !self.stages().has(Stage::Notify) {
            // SAFETY: the switch is alive.
            let news = unsafe { runtime::twin_switch_news(self.twin.switch) };
            return news | self.local.waiting();
        }
        self.read_clock();
        let due = self.due(NOW.load(Ordering::Relaxed));
        self.told = 0;
        due
    }

    /// Gives guests, as bits, their packets.
    ///
    /// # Errors
    /// The driver stopped.
    pub fn deliver_apart(&mut self, guests: u64, rooms: &mut dyn Rooms) -> Result<(), Stop> {
        for guest in bits(guests) {
            self.local
                .take_all(guest, |frame| give(rooms, guest, frame));
        }
        let delivered = self.twin.deliver_apart(guests, rooms);
        if self.stages().has(Stage::Notify) {
            let satisfied = bits(guests).filter(|guest| !rooms.is_without(*guest));
            satisfied.for_each(|guest| self.notify.taken(guest));
        }
        delivered
    }

    /// A guest is gone, with all that waited for it; its number and address are free. The driver's buffers go back with
    /// the next delivery.
    pub fn detach(&mut self, guest: u32) {
        self.bridge.remove(guest);
        self.local.forget(guest);
        self.notify.forget(guest);
        self.told &= !(1 << guest);
        self.twin.detach(guest);
    }

    /// The guest of that number is back, with the address that it had.
    ///
    /// # Panics
    /// If its number or address was given to another meanwhile.
    pub fn attach_again(&mut self, guest: u32, address: [u8; 6]) {
        assert!(self.bridge.add(guest, address), "the address is another's");
        // SAFETY: the switch is alive; six bytes.
        let number = unsafe { runtime::twin_switch_attach(self.twin.switch, address.as_ptr()) };
        assert_eq!(u32::try_from(number), Ok(guest), "the number is another's");
        self.twin.guests.push((guest, guest, address));
    }
}

/// A frame of another guest's; false if there is no room for it.
fn give(rooms: &mut dyn Rooms, guest: u32, frame: &[u8]) -> bool {
    let Some(room) = rooms.room(guest) else {
        return false;
    };
    let fits = frame.len() <= room.length as usize;
    if fits {
        // SAFETY: the room is as large, and the frame is the hypervisor's own.
        unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), room.at, frame.len()) };
    }
    let given = Given {
        length: frame.len() as u32,
        segments: 0,
        size: 0,
    };
    rooms.given(guest, fits.then_some(given));
    fits
}

impl TwinEngine<'_> {
    fn detach(&mut self, guest: u32) {
        let mut buffers = [0; runtime::SWITCH_QUEUE];
        // SAFETY: the switch is alive; there is room for a whole queue.
        let count =
            unsafe { runtime::twin_switch_detach(self.switch, guest, buffers.as_mut_ptr()) };
        self.owed.extend_from_slice(&buffers[..count as usize]);
        self.guests.retain(|(number, ..)| *number != guest);
    }

    fn deliver_apart(&mut self, guests: u64, rooms: &mut dyn Rooms) -> Result<(), Stop> {
        // SAFETY: the instance is alive, and this thread is outside of it.
        unsafe { runtime::twin_instance_hold(self.instance.raw()) };
        let mut taken = Ok(());
        for guest in bits(guests) {
            taken = taken.and(self.give_all(guest, rooms));
        }
        // SAFETY: held above.
        unsafe { runtime::twin_instance_release(self.instance.raw()) };
        // Releases what is owed.
        let released = self.deliver_to(0, &mut []);
        taken.and(released)
    }

    /// All that waits for a guest, as far as it has room.
    fn give_all(&mut self, guest: u32, rooms: &mut dyn Rooms) -> Result<(), Stop> {
        while let Some(room) = rooms.room(guest) {
            let mut delivery = Delivery::default();
            // SAFETY: the instance is held by the caller; the room is as large as it says.
            let taken = unsafe {
                runtime::twin_switch_take(
                    self.switch,
                    self.instance.raw(),
                    guest,
                    room.at.cast::<c_void>(),
                    room.length,
                    &mut delivery,
                )
            };
            if delivery.release != 0 {
                self.owed.push(delivery.release);
            }
            let mut given = Given {
                length: delivery.length.min(room.length),
                segments: 0,
                size: 0,
            };
            match taken {
                runtime::OK => {}
                runtime::SWITCH_AGGREGATE => {
                    (given.segments, given.size) = (delivery.segments, delivery.size);
                }
                runtime::ABORTED => {
                    rooms.given(guest, None);
                    return Err(Stop::Driver("a held packet is gone".to_owned()));
                }
                _ => {
                    rooms.given(guest, None);
                    return Ok(());
                }
            }
            rooms.given(guest, Some(given));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::bits;

    #[test]
    fn bits_are_numbered() {
        assert_eq!(bits(0).count(), 0);
        assert_eq!(bits(1 << 63 | 5).collect::<Vec<_>>(), [0, 2, 63]);
    }
}
