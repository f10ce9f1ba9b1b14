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

use std::arch::global_asm;

use process_lab::mapping;

use super::tape::{Crossing, Event, Tape};
use crate::error::LiveError;

/// The player's address in each process that has one: in a jump's reach of native and
/// rewritten code, where neither testbed nor C library has anything.
const AT: u64 = 0x2800_0000;
/// Bytes of its code, and of its data after that.
const PAGE: u64 = 0x1000;
/// Bytes of a jump over a routine's beginning.
pub const JUMP: usize = 5;
/// Most routines of a tape.
const ROUTINES: usize = 64;
/// Bytes of a jump's target, one a routine: `mov $number, %eax; jmp answer`.
const STUB: u64 = 16;

const ENTRY: u64 = 0x656e_7472_7900;
const END: u64 = 0x656e_6400;

global_asm!(
    ".pushsection .text.twin_player, \"ax\", @progbits",
    ".set TWIN_CURSOR, {at} + {page}",
    // void play(const u64 *stream, u64 stamps[2], u64 alone): alone, the driver is
    // left out.
    ".balign 16",
    ".globl twin_player_start",
    "twin_player_start:",
    "    pushq %rbx",
    "    pushq %rbp",
    "    pushq %r12",
    "    movq  %rdi, %rbx",
    "    movq  %rsi, %rbp",
    "    movq  %rdx, %r12",
    "    movabsq ${entry}, %r8",
    "    lfence",
    "    rdtsc",
    "    lfence",
    "    shlq  $32, %rdx",
    "    orq   %rdx, %rax",
    "    movq  %rax, (%rbp)",
    ".Lnext:",
    "    movabsq ${entry}, %r8",
    "    cmpq  %r8, (%rbx)",
    "    jne   .Lend",
    "    movq  8(%rbx), %rax",
    "    movq  40(%rbx), %rcx",
    "    leaq  48(%rbx), %r11",
    "    testq %rcx, %rcx",
    "    jz    2f",
    "1:  movq  (%r11), %r9",
    "    movq  8(%r11), %r10",
    "    movq  %r10, (%r9)",
    "    addq  $16, %r11",
    "    decq  %rcx",
    "    jnz   1b",
    "2:  movq  %r11, TWIN_CURSOR",
    "    movq  16(%rbx), %rdi",
    "    movq  24(%rbx), %rsi",
    "    movq  32(%rbx), %rdx",
    "    testq %r12, %r12",
    "    jnz   .Lalone",
    "    call  *%rax",
    ".Lreturned:",
    "    movq  TWIN_CURSOR, %rbx",
    "    jmp   .Lnext",
    ".Lend:",
    "    movabsq ${end}, %r8",
    "    cmpq  %r8, (%rbx)",
    "    jne   .Lwrong",
    "    rdtscp",
    "    lfence",
    "    shlq  $32, %rdx",
    "    orq   %rdx, %rax",
    "    movq  %rax, 8(%rbp)",
    "    popq  %r12",
    "    popq  %rbp",
    "    popq  %rbx",
    "    ret",
    // Instead of the driver: its calls.
    ".Lalone:",
    "    movq  TWIN_CURSOR, %r11",
    "    movq  (%r11), %rax",
    "    cmpq  ${routines}, %rax",
    "    jae   .Lreturned",
    "    call  .Lanswer",
    "    jmp   .Lalone",
    // eax: number of the routine that is called.
    ".globl twin_player_answer",
    "twin_player_answer:",
    ".Lanswer:",
    "    movq  TWIN_CURSOR, %r11",
    "    cmpq  %rax, (%r11)",
    "    jne   .Lwrong",
    "    movq  8(%r11), %rax",
    "    movq  16(%r11), %rcx",
    "    leaq  24(%r11), %r11",
    "    testq %rcx, %rcx",
    "    jz    2f",
    "1:  movq  (%r11), %r9",
    "    movq  8(%r11), %r10",
    "    movq  %r10, (%r9)",
    "    addq  $16, %r11",
    "    decq  %rcx",
    "    jnz   1b",
    "2:  movq  %r11, TWIN_CURSOR",
    "    ret",
    ".Lwrong:",
    "    ud2",
    ".globl twin_player_end",
    "twin_player_end:",
    ".popsection",
    at = const AT,
    page = const PAGE,
    entry = const ENTRY,
    end = const END,
    routines = const ROUTINES,
    options(att_syntax)
);

unsafe extern "C" {
    #[link_name = "twin_player_start"]
    static START: [u8; 0];
    #[link_name = "twin_player_answer"]
    static ANSWER: [u8; 0];
    #[link_name = "twin_player_end"]
    static CODE_END: [u8; 0];
}

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

/// The range of the player's code.
pub fn code() -> std::ops::Range<u64> {
    AT..AT + PAGE
}

/// Puts the player into this process, once.
///
/// # Errors
/// A system call's, or the address is taken.
pub fn install() -> Result<(), LiveError> {
    static ONCE: std::sync::Once = std::sync::Once::new();
    let mut result = Ok(());
    ONCE.call_once(|| result = load());
    result
}

fn load() -> Result<(), LiveError> {
    let failed = LiveError::system("loading the player");
    let memory = match mapping::new_memory(AT, 2 * PAGE) {
        Ok(memory) => memory,
        Err(error) => return Err(failed(error)),
    };
    // SAFETY: the labels enclose the player's code, which fits its page.
    let bytes = unsafe {
        let length = CODE_END.as_ptr().addr() - START.as_ptr().addr();
        std::slice::from_raw_parts(START.as_ptr(), length)
    };
    let stubs = STUBS_AT as usize;
    assert!(bytes.len() <= stubs, "the player's code has room");
    // SAFETY: inside the new mapping.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
    for number in 0..ROUTINES {
        let stub = stub(number as u32);
        // SAFETY: inside the code page.
        unsafe {
            let to = memory.add(stubs + number * STUB as usize);
            std::ptr::copy_nonoverlapping(stub.as_ptr(), to, stub.len());
        }
    }
    process_lab::code_memory::seal(memory, PAGE).map_err(failed)
}

/// Where stubs begin in the code page.
const STUBS_AT: u64 = PAGE - ROUTINES as u64 * STUB;

/// `mov $number, %eax; jmp answer`
fn stub(number: u32) -> [u8; 10] {
    let at = AT + STUBS_AT + u64::from(number) * STUB;
    // SAFETY: addresses of labels.
    let answer = unsafe { ANSWER.as_ptr().addr() - START.as_ptr().addr() } as u64;
    let mut bytes = [0; 10];
    bytes[0] = 0xb8;
    bytes[1..5].copy_from_slice(&number.to_le_bytes());
    bytes[5..].copy_from_slice(&jump(at + 5, AT + answer));
    bytes
}

/// `jmp to`, at `from`; both are below 2 GiB.
fn jump(from: u64, to: u64) -> [u8; JUMP] {
    let distance = to.wrapping_sub(from + JUMP as u64) as u32;
    let [a, b, c, d] = distance.to_le_bytes();
    [0xe9, a, b, c, d]
}

/// A tape, ready to be played here. Dropping it restores routines and memory.
pub struct Player<'g, G: Ground> {
    ground: &'g mut G,
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
    /// # Errors
    /// Why the tape cannot be played here.
    pub fn new(tape: &Tape, ground: &'g mut G) -> Result<Player<'g, G>, String> {
        install().map_err(|error| error.to_string())?;
        let mut player = Player {
            stream: Vec::new(),
            words: Vec::with_capacity(tape.words.len()),
            patched: Vec::new(),
            ground,
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
            let to = AT + STUBS_AT + number as u64 * STUB;
            let was = player.ground.patch(at, jump(at, to))?;
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
            0,
            0,
            0,
        ];
        self.ground.call(AT, arguments)?;
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

    #[test]
    fn jumps_go_both_ways() {
        assert_eq!(jump(0x1000, 0x1010), [0xe9, 0x0b, 0, 0, 0]);
        assert_eq!(jump(0x1010, 0x1000), [0xe9, 0xeb, 0xff, 0xff, 0xff]);
    }

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
                let play: extern "C" fn(u64, u64, u64) = std::mem::transmute(function);
                play(arguments[0], arguments[1], arguments[2]);
            }
            Ok(())
        }
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
        let mut player = Player::new(&tape(70), &mut own).expect("a player");
        for _ in 0..3 {
            player.play(false).expect("it returns");
            player.check().expect("50 and 20");
        }
        player.play(true).expect("it returns");
        player.check().expect_err("the driver was left out");
        drop(player);
        assert_eq!((&own.memory[..], own.calls), (&[7, 100][..], 4));
        let mut player = Player::new(&tape(71), &mut own).expect("a player");
        player.play(false).expect("it returns");
        player.check().expect_err("another value");
    }
}
