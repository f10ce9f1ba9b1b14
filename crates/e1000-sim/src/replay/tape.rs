//! A recording of the driver's calls and answers while it moved some packets, complete
//! enough to let it do the same again alone.
//!
//! ```text
//! words    memory that the driver accesses: values before, and after
//! events   entries   a function of the driver is called, with these arguments
//!          answers   a routine that the driver calls returns this
//!          ... and before each, memory that others changed meanwhile
//! ```
//!
//! All addresses are dom0's. A tape is recorded in dom0's process and played in
//! others, so it crosses as plain integers.

use std::cell::UnsafeCell;

use super::Turn;

/// Bytes that driver and others may change, eight of them, aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word {
    /// dom0 address.
    pub address: u64,
    pub first: u64,
    /// The value afterwards, as far as the driver knows it.
    pub last: u64,
    /// Which bytes the driver knows: bits of `last`.
    pub known: u64,
    /// Whether it changes while the tape is played.
    pub changes: bool,
}

/// A word that others have changed since the driver's last access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Store {
    /// dom0 address.
    pub address: u64,
    /// Its new value.
    pub value: u64,
}

/// How control comes to the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crossing {
    /// A function is called.
    Entry {
        /// dom0 address.
        function: u64,
        /// `rdi`, `rsi`, `rdx`.
        arguments: [u64; 3],
    },
    /// A routine that the driver called returns.
    Answer {
        /// dom0 address.
        routine: u64,
        /// `rax`.
        result: u64,
    },
}

/// A crossing, and what others have changed before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// How control comes to the driver.
    pub crossing: Crossing,
    /// Changes that the driver will see.
    pub stores: Vec<Store>,
}

/// What the driver did in a round, and what it met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tape {
    /// Packets moved.
    pub packets: u64,
    /// The driver's instructions in it.
    pub instructions: u64,
    /// Memory that it reads, with the contents at the beginning.
    pub words: Vec<Word>,
    /// Calls and returns between driver and kernel, in order.
    pub events: Vec<Event>,
}

const ENTRY: u64 = 1;
const ANSWER: u64 = 2;

impl Tape {
    /// Routines that the driver calls, each once.
    pub fn routines(&self) -> Vec<u64> {
        let routine = |event: &Event| match event.crossing {
            Crossing::Answer { routine, .. } => Some(routine),
            Crossing::Entry { .. } => None,
        };
        let mut routines: Vec<u64> = self.events.iter().filter_map(routine).collect();
        routines.sort_unstable();
        routines.dedup();
        routines
    }

    fn encode(&self) -> Vec<u64> {
        let counts = [self.words.len() as u64, self.events.len() as u64];
        let mut out = vec![self.packets, self.instructions, counts[0], counts[1]];
        for word in &self.words {
            let changes = u64::from(word.changes);
            out.extend([word.address, word.first, word.last, word.known, changes]);
        }
        for event in &self.events {
            match event.crossing {
                Crossing::Entry {
                    function,
                    arguments: [a, b, c],
                } => out.extend([ENTRY, function, a, b, c]),
                Crossing::Answer { routine, result } => {
                    out.extend([ANSWER, routine, result, 0, 0]);
                }
            }
            out.push(event.stores.len() as u64);
            for store in &event.stores {
                out.extend([store.address, store.value]);
            }
        }
        out
    }

    fn decode(mut words: &[u64]) -> Option<Tape> {
        let mut take = |count: usize| {
            let (taken, rest) = words.split_at_checked(count)?;
            words = rest;
            Some(taken)
        };
        let &[packets, instructions, touched, events] = take(4)? else {
            return None;
        };
        let mut tape = Tape {
            packets,
            instructions,
            ..Tape::default()
        };
        for _ in 0..touched {
            let &[address, first, last, known, changes] = take(5)? else {
                return None;
            };
            tape.words.push(Word {
                address,
                first,
                last,
                known,
                changes: changes != 0,
            });
        }
        for _ in 0..events {
            let &[kind, at, a, b, c, stores] = take(6)? else {
                return None;
            };
            let crossing = match kind {
                ENTRY => Crossing::Entry {
                    function: at,
                    arguments: [a, b, c],
                },
                ANSWER => Crossing::Answer {
                    routine: at,
                    result: a,
                },
                _ => return None,
            };
            let pairs = take(2 * usize::try_from(stores).ok()?)?.chunks_exact(2);
            let stores = pairs.map(|pair| Store {
                address: pair[0],
                value: pair[1],
            });
            tape.events.push(Event {
                crossing,
                stores: stores.collect(),
            });
        }
        Some(tape)
    }
}

/// Words that a tape may have when it crosses.
const ROOM: usize = 1 << 18;

/// The mailbox's place for the last tape.
#[repr(C)]
pub struct TapeSlot {
    length: UnsafeCell<u64>,
    words: UnsafeCell<[u64; ROOM]>,
    turn: UnsafeCell<Turn>,
}

// SAFETY: written by dom0 while it serves a command, read by dom0 while it serves
// another, or after the answer by the process that sent the command.
unsafe impl Sync for TapeSlot {}

impl std::fmt::Debug for TapeSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TapeSlot")
    }
}

impl TapeSlot {
    /// Puts a tape in; false if it is too long. For dom0, on its turn.
    pub(crate) fn put(&self, tape: &Tape) -> bool {
        let encoded = tape.encode();
        if encoded.len() > ROOM {
            return false;
        }
        // SAFETY: dom0's turn.
        unsafe {
            *self.length.get() = encoded.len() as u64;
            (&mut *self.words.get())[..encoded.len()].copy_from_slice(&encoded);
        }
        true
    }

    /// Stores the cost of a turn with it. For dom0, on its turn.
    pub(crate) fn put_turn(&self, turn: Turn) {
        // SAFETY: dom0's turn.
        unsafe { *self.turn.get() = turn };
    }

    /// The cost of the last turn. For the process that requested it, after the answer.
    pub fn turn(&self) -> Turn {
        // SAFETY: dom0 has answered and writes no more.
        unsafe { *self.turn.get() }
    }

    /// The last tape; `None` if there was none.
    pub fn get(&self) -> Option<Tape> {
        // SAFETY: in either process's turn, nothing writes.
        let (length, words) = unsafe { (*self.length.get(), &*self.words.get()) };
        Tape::decode(words.get(..usize::try_from(length).ok()?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tapes_survive_the_crossing() {
        let stores = vec![Store {
            address: 8,
            value: 9,
        }];
        let tape = Tape {
            packets: 3,
            instructions: 100,
            words: vec![Word {
                address: 8,
                first: 1,
                last: 2,
                known: 0xff,
                changes: true,
            }],
            events: vec![
                Event {
                    crossing: Crossing::Entry {
                        function: 16,
                        arguments: [1, 2, 3],
                    },
                    stores,
                },
                Event {
                    crossing: Crossing::Answer {
                        routine: 24,
                        result: 7,
                    },
                    stores: Vec::new(),
                },
            ],
        };
        let encoded = tape.encode();
        assert_eq!(Tape::decode(&encoded), Some(tape.clone()));
        assert_eq!(Tape::decode(&encoded[..encoded.len() - 1]), None);
        assert_eq!(tape.routines(), [24]);
    }
}
