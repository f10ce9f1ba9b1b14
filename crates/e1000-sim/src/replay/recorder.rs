//! Makes a [`Tape`]: observes each instruction of the driver while dom0 moves packets,
//! by the single steps of [`crate::measure::steps`].
//!
//! ```text
//!  outside ──call──> driver ──call──> routine ──ret──> driver ──ret──> outside
//!           entry                               answer
//! ```
//!
//! The recorder remembers each byte that the driver has read or written. If a byte
//! differs from the driver's last access to it, other code has changed it since: it
//! becomes a store of the last crossing. So a tape holds what the driver *sees*, and no
//! other effects of other code. The driver's own stack is not part of it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicPtr, Ordering};

use iced_x86::{InstructionInfoFactory, OpAccess, Register};
use libc::greg_t;
use process_lab::decode;

use super::tape::{Crossing, Event, Store, Tape, Word};

/// The recorder that steps are shown to.
static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(std::ptr::null_mut());

/// Longest instruction (SDM volume 2, 2.3.11).
const LONGEST: usize = 15;

/// Where the driver is, as the recorder needs to know it.
#[derive(Clone, Debug)]
pub struct Surroundings {
    pub code: Range<u64>,
    /// Thunks, which the driver goes through and which belong to no component.
    pub thunks: Range<u64>,
    /// The stack it runs on.
    pub stack: Range<u64>,
    /// `%gs` base.
    pub gs: u64,
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug)]
struct Call {
    function: u64,
    /// Where it returns to, and `rsp` then.
    back: u64,
    rsp: u64,
}

/// Records the thread that single-steps.
pub struct Recorder {
    around: Surroundings,
    info: InstructionInfoFactory,
    words: BTreeMap<u64, Word>,
    events: Vec<Event>,
    /// Entered and not returned.
    entry: Option<Call>,
    /// Called by the driver and not returned.
    routine: Option<Call>,
    /// Address and bytes of what the last instruction writes.
    pending: Vec<(u64, u64)>,
    failed: Option<&'static str>,
}

type Registers = [greg_t; 23];

fn register(registers: &Registers, number: libc::c_int) -> u64 {
    registers[number as usize] as u64
}

/// Shows a step to the recorder, if there is one: the instruction at `rip` is the
/// next one.
pub(crate) fn step(registers: &Registers) {
    // SAFETY: null, or `record`'s, which waits for the stepped work's end on this
    // very thread and does not touch it meanwhile.
    if let Some(recorder) = unsafe { RECORDER.load(Ordering::Relaxed).as_mut() } {
        recorder.step(registers);
    }
}

/// Records what the driver does in `work`, which single-steps.
pub fn record<T>(around: Surroundings, work: impl FnOnce() -> T) -> (T, Recorder) {
    let recorder = Box::into_raw(Box::new(Recorder {
        around,
        info: InstructionInfoFactory::new(),
        words: BTreeMap::new(),
        events: Vec::new(),
        entry: None,
        routine: None,
        pending: Vec::new(),
        failed: None,
    }));
    RECORDER.store(recorder, Ordering::SeqCst);
    let result = work();
    RECORDER.store(std::ptr::null_mut(), Ordering::SeqCst);
    // SAFETY: made above, and no longer used elsewhere.
    (result, *unsafe { Box::from_raw(recorder) })
}

impl Recorder {
    /// The recording, of this many packets and instructions of the driver.
    ///
    /// # Errors
    /// Why it is not a tape.
    pub fn tape(self, packets: u64, instructions: u64) -> Result<Tape, &'static str> {
        if let Some(why) = self.failed {
            return Err(why);
        }
        if self.entry.is_some() || self.routine.is_some() {
            return Err("the driver was still running");
        }
        Ok(Tape {
            packets,
            instructions,
            words: self.words.into_values().collect(),
            events: self.events,
        })
    }

    fn step(&mut self, registers: &Registers) {
        let rip = register(registers, libc::REG_RIP);
        let rsp = register(registers, libc::REG_RSP);
        for (address, bytes) in std::mem::take(&mut self.pending) {
            self.written(address, bytes);
        }
        let inside = self.around.code.contains(&rip);
        let thunk = self.around.thunks.contains(&rip);
        match (self.entry, self.routine) {
            (None, _) if inside => self.enter(rip, rsp, registers),
            (None, _) => return,
            (Some(entry), Some(routine)) => {
                if (rip, rsp) != (routine.back, routine.rsp) {
                    if inside {
                        self.failed = Some("the driver was entered by a routine that it called");
                    }
                    return;
                }
                self.answered(routine, entry, registers);
            }
            (Some(entry), None) if (rip, rsp) == (entry.back, entry.rsp) => self.entry = None,
            (Some(_), None) if !inside && !thunk => {
                self.routine = Some(Call {
                    function: rip,
                    back: word(rsp),
                    rsp: rsp + 8,
                });
            }
            (Some(_), None) => {}
        }
        if inside && self.entry.is_some() {
            self.look(rip, registers);
        }
    }

    fn enter(&mut self, rip: u64, rsp: u64, registers: &Registers) {
        self.entry = Some(Call {
            function: rip,
            back: word(rsp),
            rsp: rsp + 8,
        });
        let arguments = [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX];
        self.events.push(Event {
            crossing: Crossing::Entry {
                function: rip,
                arguments: arguments.map(|number| register(registers, number)),
            },
            stores: Vec::new(),
        });
    }

    fn answered(&mut self, routine: Call, entry: Call, registers: &Registers) {
        self.events.push(Event {
            crossing: Crossing::Answer {
                routine: routine.function,
                result: register(registers, libc::REG_RAX),
            },
            stores: Vec::new(),
        });
        self.routine = None;
        // Jumped to at the end of the entered function, it returns for both.
        if (routine.back, routine.rsp) == (entry.back, entry.rsp) {
            self.entry = None;
        }
    }

    /// The memory that the instruction at `rip` reads and will write.
    fn look(&mut self, rip: u64, registers: &Registers) {
        // SAFETY: the driver's code is mapped, and data of the module follows it.
        let bytes = unsafe { std::slice::from_raw_parts(rip as *const u8, LONGEST) };
        let instruction = decode::instruction(bytes, rip);
        // A repeated string instruction is stepped element by element.
        let repeats = instruction.has_rep_prefix() || instruction.has_repne_prefix();
        if repeats && register(registers, libc::REG_RCX) == 0 {
            return;
        }
        let value = |name: Register, _, _| match name {
            Register::GS => Some(self.around.gs),
            Register::CS | Register::DS | Register::ES | Register::SS => Some(0),
            // iced gives the displacement as an address then.
            Register::RIP => Some(0),
            _ => decode::gregister(name.full_register())
                .map(|number| register(registers, number) & mask(name.size())),
        };
        let used = self.info.info(&instruction).used_memory();
        let mut accesses = Vec::with_capacity(used.len());
        for memory in used {
            let bytes = memory.memory_size().size() as u64;
            let access = memory.access();
            if access == OpAccess::NoMemAccess || access == OpAccess::None {
                continue;
            }
            match memory.virtual_address(0, value) {
                Some(address) if bytes > 0 => accesses.push((address, bytes, access)),
                _ => self.failed = Some("an access of the driver has no address"),
            }
        }
        for (address, bytes, access) in accesses {
            if self.around.stack.contains(&address) {
                continue;
            }
            use OpAccess::{CondRead, CondWrite, Read, ReadCondWrite, ReadWrite, Write};
            if matches!(
                access,
                Read | CondRead | ReadWrite | ReadCondWrite | CondWrite
            ) {
                self.read(address, bytes);
            }
            if matches!(access, Write | CondWrite | ReadWrite | ReadCondWrite) {
                self.touch(address, bytes);
                self.pending.push((address, bytes));
            }
        }
    }

    /// Remembers words as they are before the driver writes them.
    fn touch(&mut self, address: u64, bytes: u64) {
        for (at, _) in parts(address, bytes) {
            self.words.entry(at).or_insert_with(|| new_word(at));
        }
    }

    fn read(&mut self, address: u64, bytes: u64) {
        self.touch(address, bytes);
        for (at, mask) in parts(address, bytes) {
            let Some(known) = self.words.get_mut(&at) else {
                continue;
            };
            let now = word(at);
            // Bytes that have not been accessed yet keep their value when played.
            let expected = known.last & known.known | known.first & !known.known;
            let changed = (expected ^ now) & mask != 0;
            known.last = known.last & !mask | now & mask;
            known.known |= mask;
            if !changed {
                continue;
            }
            known.changes = true;
            let value = known.last & known.known | known.first & !known.known;
            if let Some(event) = self.events.last_mut() {
                event.stores.retain(|store| store.address != at);
                event.stores.push(Store { address: at, value });
            }
        }
    }

    fn written(&mut self, address: u64, bytes: u64) {
        for (at, mask) in parts(address, bytes) {
            if let Some(known) = self.words.get_mut(&at) {
                known.last = known.last & !mask | word(at) & mask;
                known.known |= mask;
                known.changes = true;
            }
        }
    }
}

fn mask(size: usize) -> u64 {
    match size {
        0..8 => (1 << (8 * size)) - 1,
        _ => u64::MAX,
    }
}

/// The word of memory at `at`, of the driver's.
fn word(at: u64) -> u64 {
    // SAFETY: the driver is about to access bytes of it, or has; a page is
    // mapped as a whole, and the word is aligned. The same holds for stack words.
    unsafe { (at as *const u64).read_volatile() }
}

fn new_word(at: u64) -> Word {
    Word {
        address: at,
        first: word(at),
        last: 0,
        known: 0,
        changes: false,
    }
}

/// The aligned words of `bytes` bytes at `address`, each with a mask of the bytes'
/// bits.
fn parts(address: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = address + bytes;
    (address & !7..end).step_by(8).map(move |at| {
        let from = address.saturating_sub(at).min(8);
        let to = (end - at).min(8);
        let below = |bytes: u64| mask(bytes as usize);
        (at, below(to) & !below(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_parts_of_words() {
        let all = |address, bytes| parts(address, bytes).collect::<Vec<_>>();
        assert_eq!(all(16, 8), [(16, u64::MAX)]);
        assert_eq!(all(17, 2), [(16, 0x00ff_ff00)]);
        assert_eq!(all(20, 8), [(16, 0xffff_ffff << 32), (24, 0xffff_ffff)]);
    }

    #[test]
    fn what_others_change_is_a_store_and_what_the_driver_changes_is_not() {
        let memory = [1u64, 2, 3];
        let at = memory.as_ptr() as u64;
        let mut recorder = Recorder {
            around: Surroundings {
                code: 0..0,
                thunks: 0..0,
                stack: 0..0,
                gs: 0,
            },
            info: InstructionInfoFactory::new(),
            words: BTreeMap::new(),
            events: vec![Event {
                crossing: Crossing::Answer {
                    routine: 0,
                    result: 0,
                },
                stores: Vec::new(),
            }],
            entry: None,
            routine: None,
            pending: Vec::new(),
            failed: None,
        };
        let set = |index: usize, value: u64| {
            // SAFETY: inside the array, which only `word` reads.
            unsafe { (memory.as_ptr().add(index).cast_mut()).write_volatile(value) };
        };
        recorder.read(at, 4);
        recorder.touch(at + 8, 8);
        set(1, 20);
        recorder.written(at + 8, 8);
        recorder.read(at + 8, 8);
        assert!(recorder.events[0].stores.is_empty());
        set(0, 10);
        recorder.read(at, 4);
        let expected = [Store {
            address: at,
            value: 10,
        }];
        assert_eq!(recorder.events[0].stores, expected);
        let tape = recorder.tape(1, 1).expect("a tape");
        let words: Vec<_> = tape
            .words
            .iter()
            .map(|w| (w.first, w.last, w.changes))
            .collect();
        assert_eq!(words, [(1, 10, true), (2, 20, true)]);
    }
}
