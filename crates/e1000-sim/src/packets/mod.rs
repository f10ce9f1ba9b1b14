//! Packets from a traffic source to the wire and back, the same for every path.
//!
//! ```text
//! round         some thousand packets one way through one path
//! streams       TCP streams to guests, and their acknowledgements
//! packet_loop   hands packets to an engine, lets the card work, takes completions
//! rings         a CPU's rings with the hot routines, as the runtime lays them out
//! outgoing      guests' packets, checked by the runtime before the driver has them
//! card          the card's cable and registers
//! guard         the card's rings under the runtime's check
//! ```

pub(crate) mod card;
pub mod guard;
pub(crate) mod outgoing;
pub mod packet_loop;
pub mod rings;
pub mod round;
pub mod streams;
