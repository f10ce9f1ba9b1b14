//! Plays a [`Tape`]: the driver alone, natively or rewritten, with the same calls,
//! answers and memory as when it was recorded.
//!
//! ```text
//! stream   ENTRY function rdi rsi rdx  n  (address value) x n
//!          ANSWER number  rax          n  (address value) x n
//!          ...
//!          END
//!
//! player ──call──> driver ──call──> routine, whose first bytes are now a jump:
//!   ^                 |   <──ret─── next answer of the stream
//!   └──────ret────────┘
//! ```
//!
//! Only two reads of the time-stamp counter, before the first entry and after the last
//! return, measure the driver. The player's own time is measured the same way: the
//! same stream without the driver, its calls made by the player.
//!
//! A driver that calls a routine other than the tape's, or one too many or too few,
//! executes a `ud2`.

mod code;

pub use code::{JUMP, PlayerPlace, code};

use super::tape::{Crossing, Event, Tape};
use code::{END, ENTRY, ROUTINES};

/// A process that has the driver, natively or rewritten.
pub trait Ground {
    /// The memory of a dom0 address, where the driver itself would reach it.
    fn pointer(&mut self, dom0: u64) -> Option<*mut u64>;

    /// The address of the code of a dom0 function that other objects may call.
    fn function(&self, dom0: u64) -> Option<u64>;

    /// The address of the code of a routine that the driver calls.
    fn routine(&self, dom0: u64) -> Option<u64>;

    /// Writes code, and gives the previous bytes.
    ///
    /// # Errors
    /// Why it cannot.
    fn patch(&mut self, address: u64, bytes: [u8; JUMP]) -> Result<[u8; JUMP], String>;

    /// Calls code as the driver is called.
    ///
    /// # Errors
    /// How it stopped instead of returning.
    fn call(&mut self, function: u64, arguments: [u64; 6]) -> Result<(), String>;
}

/// A tape, ready to be played here. Dropping it restores routines and memory.
pub struct Player<'g, G: Ground> {
    ground: &'g mut G,
    place: PlayerPlace,
    stream: Vec<u64>,
    /// Words that the driver sees: address, values before and after, the bytes that the
    /// driver knows, and whether it changes.
    words: Vec<Seen>,
    patched: Vec<(u64, [u8; JUMP])>,
}

struct Seen {
    at: *mut u64,
    dom0: u64,
    found: u64,
    first: u64,
    last: u64,
    known: u64,
    changes: bool,
}

impl<'g, G: Ground> Player<'g, G> {
    /// Of a tape, at a place.
    ///
    /// # Errors
    /// Why the tape cannot be played here.
    pub fn new(
        tape: &Tape,
        ground: &'g mut G,
        place: PlayerPlace,
    ) -> Result<Player<'g, G>, String> {
        code::install().map_err(|error| error.to_string())?;
        let mut player = Player {
            stream: Vec::new(),
            words: Vec::with_capacity(tape.words.len()),
            patched: Vec::new(),
            ground,
            place,
        };
        let routines = tape.routines();
        if routines.len() > ROUTINES {
            return Err(format!("the driver calls {} routines", routines.len()));
        }
        for event in &tape.events {
            player.add(event, &routines)?;
        }
        player.stream.push(END);
        player.find(tape)?;
        for (number, routine) in routines.iter().enumerate() {
            let lacking = || format!("no routine for {routine:#x}");
            let at = player.ground.routine(*routine).ok_or_else(lacking)?;
            let jump = place.jump_from(at, number as u32);
            let was = player.ground.patch(at, jump)?;
            player.patched.push((at, was));
        }
        Ok(player)
    }

    fn add(&mut self, event: &Event, routines: &[u64]) -> Result<(), String> {
        match event.crossing {
            Crossing::Entry {
                function,
                arguments: [a, b, c],
            } => {
                let at = self.ground.function(function);
                let at = at.ok_or_else(|| format!("no function for {function:#x}"))?;
                self.stream.extend([ENTRY, at, a, b, c]);
            }
            Crossing::Answer { routine, result } => {
                let number = routines.binary_search(&routine);
                let number = number.map_err(|_| "an unknown routine".to_owned())?;
                self.stream.extend([number as u64, result]);
            }
        }
        self.stream.push(event.stores.len() as u64);
        for store in &event.stores {
            let at = self.pointer(store.address)?;
            self.stream.extend([at as u64, store.value]);
        }
        Ok(())
    }

    fn pointer(&mut self, dom0: u64) -> Result<*mut u64, String> {
        let pointer = self.ground.pointer(dom0);
        pointer.ok_or_else(|| format!("{dom0:#x} is nobody's memory"))
    }

    /// Finds the words of the tape, and gives those that stay the same their values.
    fn find(&mut self, tape: &Tape) -> Result<(), String> {
        for word in &tape.words {
            let at = self.pointer(word.address)?;
            // SAFETY: the ground's: eight aligned bytes that only this thread uses
            // now.
            let found = unsafe { at.read_volatile() };
            let seen = Seen {
                at,
                dom0: word.address,
                found,
                first: word.first,
                last: word.last,
                known: word.known,
                changes: word.changes,
            };
            self.words.push(seen);
            // A word with the right value may be in a page that is not writable.
            if !word.changes && found != word.first {
                // SAFETY: as above.
                unsafe { at.write_volatile(word.first) };
            }
        }
        Ok(())
    }

    /// Cycles of one play; without the driver, of the player alone.
    ///
    /// # Errors
    /// How the driver stopped.
    pub fn play(&mut self, alone: bool) -> Result<u64, String> {
        for word in self.words.iter().filter(|word| word.changes) {
            // SAFETY: as in `find`.
            unsafe { word.at.write_volatile(word.first) };
        }
        let mut stamps = [0u64; 2];
        let arguments = [
            self.stream.as_ptr() as u64,
            stamps.as_mut_ptr() as u64,
            u64::from(alone),
            self.place.lower(),
            0,
            0,
        ];
        self.ground.call(self.place.start(), arguments)?;
        // SAFETY: ours, and written by the player.
        let [from, to] = unsafe { std::ptr::read_volatile(&stamps) };
        Ok(to.wrapping_sub(from))
    }

    /// Checks that the driver has left memory as it did when it was recorded.
    ///
    /// # Errors
    /// The word that differs.
    pub fn check(&self) -> Result<(), String> {
        for word in &self.words {
            // SAFETY: as in `find`.
            let now = unsafe { word.at.read_volatile() };
            if (now ^ word.last) & word.known != 0 {
                return Err(format!(
                    "played, the driver leaves {now:#x} at {:#x} instead of {:#x}",
                    word.dom0, word.last
                ));
            }
        }
        Ok(())
    }
}

impl<G: Ground> Drop for Player<'_, G> {
    fn drop(&mut self) {
        for (at, was) in std::mem::take(&mut self.patched) {
            let undone = self.ground.patch(at, was);
            undone.expect("what could be patched can be patched back");
        }
        for word in &self.words {
            // SAFETY: as in `find`.
            if unsafe { word.at.read_volatile() } != word.found {
                // SAFETY: it was written before.
                unsafe { word.at.write_volatile(word.found) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A driver of two instructions, in this process.
    struct Own {
        memory: Vec<u64>,
        calls: u64,
    }

    impl Ground for Own {
        fn pointer(&mut self, dom0: u64) -> Option<*mut u64> {
            self.memory
                .get_mut(dom0 as usize / 8)
                .map(std::ptr::from_mut)
        }

        fn function(&self, dom0: u64) -> Option<u64> {
            Some(dom0)
        }

        fn routine(&self, dom0: u64) -> Option<u64> {
            Some(dom0)
        }

        fn patch(&mut self, _: u64, bytes: [u8; JUMP]) -> Result<[u8; JUMP], String> {
            Ok(bytes)
        }

        fn call(&mut self, function: u64, arguments: [u64; 6]) -> Result<(), String> {
            self.calls += 1;
            // SAFETY: the player, whose calling convention this is.
            unsafe {
                let play: extern "C" fn(u64, u64, u64, u64) = std::mem::transmute(function);
                play(arguments[0], arguments[1], arguments[2], arguments[3]);
            }
            Ok(())
        }
    }

    fn place(number: usize) -> PlayerPlace {
        let mut all = PlayerPlace::all();
        all.nth(number).expect("there are more")
    }

    extern "C" fn driver(memory: *mut u64, add: u64) {
        // SAFETY: the test gives it memory.
        unsafe { *memory += add };
    }

    #[test]
    fn the_same_happens_each_time_and_nothing_stays() {
        use super::super::tape::{Store, Word};
        let mut own = Own {
            memory: vec![7, 100],
            calls: 0,
        };
        let at = own.memory.as_ptr() as u64;
        let entry = |add, stores| Event {
            crossing: Crossing::Entry {
                function: driver as *const () as u64,
                arguments: [at, add, 0],
            },
            stores,
        };
        let store = Store {
            address: 0,
            value: 50,
        };
        let word = |last| Word {
            address: 0,
            first: 1,
            last,
            known: u64::MAX,
            changes: true,
        };
        let tape = |last| Tape {
            packets: 1,
            instructions: 4,
            words: vec![word(last)],
            events: vec![entry(10, Vec::new()), entry(20, vec![store])],
        };
        let mut player = Player::new(&tape(70), &mut own, place(3)).expect("a player");
        for _ in 0..3 {
            player.play(false).expect("it returns");
            player.check().expect("50 and 20");
        }
        player.play(true).expect("it returns");
        player.check().expect_err("the driver was left out");
        drop(player);
        assert_eq!((&own.memory[..], own.calls), (&[7, 100][..], 4));
        let mut player = Player::new(&tape(71), &mut own, place(0)).expect("a player");
        player.play(false).expect("it returns");
        player.check().expect_err("another value");
    }
}
