//! The player's code, at several places of each process that plays: native and rewritten
//! calls of routines reach each by a jump of five bytes.
//!
//! Where code and stack are decides which branches and which accesses get into each
//! other's way in the processor's predictors and buffers. At one place alone that is worth
//! more than what is to be measured: 16 bytes more of the player's code took half of the
//! native driver's cycles for a received packet away (Intel family 6, model 167). So a turn
//! plays at all places (Mytkowicz and others, "Producing wrong data without doing anything
//! obviously wrong!", ASPLOS 2009).

use std::arch::global_asm;

use process_lab::mapping;

use crate::error::LiveError;

/// The player's address in each process that has one: in a jump's reach of native and
/// rewritten code, where neither testbed nor C library has anything.
const AT: u64 = 0x2800_0000;
/// Its places: a page for each, and after them a page of data.
const PLACES: u64 = 16;
/// Bytes of a place, and of the data.
const PAGE: u64 = 0x1000;
/// Bytes by which each place's code begins later in its page than the last one's.
const LATER: u64 = 112;
/// Bytes by which the stack begins lower at each place than at the last one.
const LOWER: u64 = 272;
/// Bytes of a jump over a routine's beginning.
pub const JUMP: usize = 5;
/// Most routines of a tape.
pub(super) const ROUTINES: usize = 64;
/// Bytes of a jump's target, one a routine: `mov $number, %eax; jmp answer`.
const STUB: u64 = 16;

pub(super) const ENTRY: u64 = 0x656e_7472_7900;
pub(super) const END: u64 = 0x656e_6400;

global_asm!(
    ".pushsection .text.twin_player, \"ax\", @progbits",
    ".set TWIN_CURSOR, {data}",
    // void play(const u64 *stream, u64 stamps[2], u64 alone, u64 lower): alone, the
    // driver is left out; the stack begins so many bytes lower.
    ".balign 16",
    ".globl twin_player_start",
    "twin_player_start:",
    "    pushq %rbx",
    "    pushq %rbp",
    "    pushq %r12",
    "    pushq %r13",
    "    movq  %rsp, %r13",
    "    negq  %rcx",
    "    leaq  -8(%rsp,%rcx), %rsp",
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
    // Not rdtscp, which not every processor has: lfence waits for what is before it as well (SDM vol. 2,
    // RDTSC).
    "    lfence",
    "    rdtsc",
    "    lfence",
    "    shlq  $32, %rdx",
    "    orq   %rdx, %rax",
    "    movq  %rax, 8(%rbp)",
    "    movq  %r13, %rsp",
    "    popq  %r13",
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
    data = const AT + PLACES * PAGE,
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

/// One of the places at which a tape is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerPlace(u64);

impl PlayerPlace {
    /// All of them.
    pub fn all() -> impl Iterator<Item = PlayerPlace> {
        (0..PLACES).map(PlayerPlace)
    }

    /// Where the code begins.
    pub(super) fn start(self) -> u64 {
        AT + self.0 * (PAGE + LATER)
    }

    /// Bytes by which the stack begins lower.
    pub(super) fn lower(self) -> u64 {
        self.0 * LOWER
    }

    /// The jump to a routine's stub from an address.
    pub(super) fn jump_from(self, from: u64, routine: u32) -> [u8; JUMP] {
        jump(from, self.stub_at(routine))
    }

    /// Stubs are at the end of a place.
    fn stub_at(self, routine: u32) -> u64 {
        AT + self.0 * PAGE + STUBS_AT + u64::from(routine) * STUB
    }

    /// `mov $routine, %eax; jmp answer`
    fn stub(self, routine: u32) -> [u8; 10] {
        let at = self.stub_at(routine);
        // SAFETY: addresses of labels.
        let answer = unsafe { ANSWER.as_ptr().addr() - START.as_ptr().addr() } as u64;
        let mut bytes = [0; 10];
        bytes[0] = 0xb8;
        bytes[1..5].copy_from_slice(&routine.to_le_bytes());
        bytes[5..].copy_from_slice(&jump(at + 5, self.start() + answer));
        bytes
    }
}

/// Where stubs begin in a page.
const STUBS_AT: u64 = PAGE - ROUTINES as u64 * STUB;

/// The range of the player's code.
pub fn code() -> std::ops::Range<u64> {
    AT..AT + PLACES * PAGE
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
    let memory = match mapping::new_memory(AT, (PLACES + 1) * PAGE) {
        Ok(memory) => memory,
        Err(error) => return Err(failed(error)),
    };
    // SAFETY: the labels enclose the player's code.
    let code = unsafe {
        let length = CODE_END.as_ptr().addr() - START.as_ptr().addr();
        std::slice::from_raw_parts(START.as_ptr(), length)
    };
    let room = STUBS_AT - (PLACES - 1) * LATER;
    assert!(code.len() as u64 <= room, "the player's code has room");
    let write = |at: u64, bytes: &[u8]| {
        // SAFETY: inside the new mapping: the code ends before the stubs of its page.
        unsafe {
            let to = memory.add((at - AT) as usize);
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    };
    for place in PlayerPlace::all() {
        write(place.start(), code);
        for routine in 0..ROUTINES as u32 {
            write(place.stub_at(routine), &place.stub(routine));
        }
    }
    process_lab::code_memory::seal(memory, PLACES * PAGE).map_err(failed)
}

/// `jmp to`, at `from`; both are below 2 GiB.
fn jump(from: u64, to: u64) -> [u8; JUMP] {
    let distance = to.wrapping_sub(from + JUMP as u64) as u32;
    let [a, b, c, d] = distance.to_le_bytes();
    [0xe9, a, b, c, d]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_go_both_ways() {
        assert_eq!(jump(0x1000, 0x1010), [0xe9, 0x0b, 0, 0, 0]);
        assert_eq!(jump(0x1010, 0x1000), [0xe9, 0xeb, 0xff, 0xff, 0xff]);
    }
}
