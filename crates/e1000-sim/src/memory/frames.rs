//! The owner of each frame of the machine: the runtime's table
//! (`runtime/include/twin/frames.h`), in memory that every process of the hypervisor
//! maps at the same address.

use process_lab::runtime::{self, Piece};
use process_lab::shared::Shared;

use super::layout::PAGE;
use crate::error::LiveError;

/// Who owns a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// No owner: no guest may send it.
    Nobody,
    /// dom0's kernel.
    Dom0,
    /// That guest.
    Guest(u32),
}

impl Owner {
    fn code(self) -> u32 {
        match self {
            Owner::Nobody => runtime::OWNER_NOBODY,
            Owner::Dom0 => runtime::OWNER_DOM0,
            Owner::Guest(number) => {
                assert!(number < runtime::OWNER_GUESTS, "no such guest");
                number + 1
            }
        }
    }

    fn from_code(code: u32) -> Owner {
        match code {
            runtime::OWNER_NOBODY => Owner::Nobody,
            runtime::OWNER_DOM0 => Owner::Dom0,
            guest => Owner::Guest(guest - 1),
        }
    }
}

/// Why a frame did not change hands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotGiven {
    /// A packet that is being sent lies in it: try again after completions.
    Pinned,
    /// It is not the giver's.
    NotOwned,
}

/// Why a frame was not pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPinned {
    /// It is not that owner's, or does not exist.
    NotOwned,
    /// It has as many pins as can be counted.
    Full,
}

/// A frame as a piece of memory.
fn whole(frame: u64) -> Piece {
    Piece {
        address: frame * PAGE,
        length: PAGE as u32,
        zero: 0,
    }
}

/// Memory whose frames are pinned as long as this is there.
#[derive(Debug)]
pub struct Pinned<'f> {
    frames: &'f Frames,
    piece: Piece,
}

impl Drop for Pinned<'_> {
    fn drop(&mut self) {
        let piece = &raw const self.piece;
        // SAFETY: the table is alive; `pin_piece` has pinned these frames.
        unsafe { runtime::twin_frames_unpin(self.frames.raw(), piece, runtime::PIN_PACKET) };
    }
}

/// The owner of each frame of the machine's memory, as the runtime asks for it.
#[derive(Debug)]
pub struct Frames {
    /// The words; kept because `table` points to them.
    _memory: Shared,
    table: Box<runtime::Frames>,
}

// SAFETY: the table is not changed after `new`, and its words by the runtime's
// atomic operations alone.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    /// A number of frames without owners.
    pub fn new(count: u64) -> Result<Frames, LiveError> {
        let failed = LiveError::system("making the table of frames");
        let memory = Shared::new(count * size_of::<u64>() as u64).map_err(failed)?;
        let mut table = Box::new(runtime::Frames {
            words: memory.as_ptr().cast(),
            count,
        });
        // SAFETY: the mapping has that many words, aligned, for as long as `memory`.
        unsafe { runtime::twin_frames_init(&raw mut *table, table.words, count) };
        Ok(Frames {
            _memory: memory,
            table,
        })
    }

    /// How many frames the machine has.
    pub fn count(&self) -> u64 {
        self.table.count
    }

    /// Pointer for the runtime, which does not write to it.
    pub fn raw(&self) -> *mut runtime::Frames {
        (&raw const *self.table).cast_mut()
    }

    /// Gives the frames of a range of machine addresses, whole frames, to another
    /// owner, as far as they can be given.
    ///
    /// # Errors
    /// Why the first frame that could not be given was not; those before it were.
    pub fn give(
        &self,
        range: &std::ops::Range<u64>,
        from: Owner,
        to: Owner,
    ) -> Result<(), NotGiven> {
        (range.start / PAGE..range.end / PAGE).try_for_each(|frame| {
            // SAFETY: the table is alive.
            let moved =
                unsafe { runtime::twin_frame_move(self.raw(), frame, from.code(), to.code()) };
            match moved {
                runtime::OK => Ok(()),
                runtime::BUSY => Err(NotGiven::Pinned),
                _ => Err(NotGiven::NotOwned),
            }
        })
    }

    /// Pins frame number `frame`, if it is `owner`'s: it then keeps its owner.
    ///
    /// # Errors
    /// Why not; nothing has changed.
    pub fn pin(&self, frame: u64, owner: Owner) -> Result<(), NotPinned> {
        let pin = runtime::PIN_PACKET;
        let whole = whole(frame);
        // SAFETY: the table is alive; the piece is on this stack.
        let pinned = unsafe {
            runtime::twin_frames_pin(self.raw(), owner.code(), &raw const whole, pin, false)
        };
        match pinned {
            runtime::ADMITTED => Ok(()),
            runtime::FULL => Err(NotPinned::Full),
            _ => Err(NotPinned::NotOwned),
        }
    }

    /// Takes one pin off a frame that [`Frames::pin`] pinned.
    pub fn unpin(&self, frame: u64) {
        let whole = whole(frame);
        // SAFETY: the table is alive; the caller has pinned the frame.
        unsafe {
            runtime::twin_frames_unpin(self.raw(), &raw const whole, runtime::PIN_PACKET);
        }
    }

    /// Pins the frames of a piece of memory, if all of them are `owner`'s, for as long as the result is there.
    ///
    /// # Errors
    /// Why not; nothing has changed.
    pub fn pin_piece(
        &self,
        address: u64,
        length: u32,
        owner: Owner,
    ) -> Result<Pinned<'_>, NotPinned> {
        let zero = 0;
        let piece = Piece {
            address,
            length,
            zero,
        };
        let (raw, pin) = (self.raw(), runtime::PIN_PACKET);
        // SAFETY: the table is alive; the piece is on this stack.
        let pinned =
            unsafe { runtime::twin_frames_pin(raw, owner.code(), &raw const piece, pin, false) };
        match pinned {
            runtime::ADMITTED => Ok(Pinned {
                frames: self,
                piece,
            }),
            runtime::FULL => Err(NotPinned::Full),
            _ => Err(NotPinned::NotOwned),
        }
    }

    /// Who has the frame at a machine address.
    pub fn owner(&self, machine: u64) -> Owner {
        // SAFETY: the table is alive.
        Owner::from_code(unsafe { runtime::twin_frame_owner(self.raw(), machine / PAGE) })
    }

    /// The frame's pins: packets being sent that lie in it, and the card's descriptors.
    pub fn pins(&self, machine: u64) -> u32 {
        // SAFETY: the table is alive.
        unsafe { runtime::twin_frame_pins(self.raw(), machine / PAGE) }
    }
}
