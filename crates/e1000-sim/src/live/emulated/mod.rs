//! A card that is all software, for a guest's stock `e1000.ko` (Maffione's thesis, 2 to 4).
//!
//! **Takes** an [`Order`]: who sends, how doorbells are rung, what crossings cost. **Gives** an
//! [`Outcome`]: each register access that trapped, each interrupt, each frame, by count.
//!
//! ```text
//! guest's processor                        the device side's own
//! stock driver ── register access ─┐
//!   page trapped:  exit, performed │       takes frames from the back end, in all schemes;
//!   page open:     memory ─────────┼─────> with the status block it sends, too
//! handler, poll <─ interrupt ──────┘
//! ```
//!
//! The guest is dom0's process: its driver is the stock one, and whether an access traps is up to
//! the processor's page protection. Time is played ([`super::clock`]): traps, interrupts and the
//! back end cost what [`costs`] quotes, the driver what its instructions count.
//!
//! ```text
//! order     what is asked, what is counted
//! costs     of crossings
//! pages     which pages of the registers trap
//! device    the card's side: traps, bursts, sleeping and waking
//! doorbell  when a write of the tail must trap
//! backend   frames that wait for the card
//! guest     the driver's side, and its price in instructions
//! machine   both processors, event by event
//! measure   the rows
//! ```

pub mod backend;
pub mod costs;
mod device;
mod doorbell;
mod guest;
mod machine;
pub mod measure;
pub mod order;
mod pages;

pub use device::{trapped_read, trapped_write};
pub use machine::perform;
pub use order::{Order, Outcome, Slot};
