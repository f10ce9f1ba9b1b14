//! One instruction at a time, executed on the processor that this process has.
//! (`crates/process-lab/src/enter.rs` says how this entry differs from the others.)
//!
//! ```text
//! guard | first data page | guard | second data page | guard | stack, 2 pages | guard
//!
//! code slot:  instruction   jmp *fell     ...   jmp *landed
//!             +0            +length             +LANDING
//! ```
//!
//! The instruction begins with the requested registers and flags. It ends at one of
//! the two jumps, which tell whether it branched, or in a signal. No memory but the
//! three pieces is mapped near any address that a register holds.

use std::arch::global_asm;
use std::cell::UnsafeCell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, siginfo_t, ucontext_t};

use process_lab::address_space::PAGE;
use process_lab::error::Error;
use process_lab::random::Random;
use process_lab::signals;

/// Where a branch leads, from the slot's start.
pub const LANDING: usize = 32;
/// Bytes of a slot.
const SLOT: usize = 64;
/// Slots: a processor is slow after a change of code that it has just executed.
const SLOTS: usize = 2048;
/// Pages of the pieces: two of data, one of stack.
const PIECES: [u64; 3] = [1, 1, 2];

/// Registers before and after an instruction. Assembly finds it by name.
#[repr(C)]
struct Context {
    /// `rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15`.
    registers: [u64; 16],
    flags: u64,
    entry: u64,
    host_rsp: u64,
    end: u64,
    out: [u64; 16],
    out_flags: u64,
    mxcsr: u32,
    default_mxcsr: u32,
}

struct Cell(UnsafeCell<Context>);

// SAFETY: a process has one machine, used by one thread.
unsafe impl Sync for Cell {}

static CONTEXT: Cell = Cell(UnsafeCell::new(Context {
    registers: [0; 16],
    flags: 0,
    entry: 0,
    host_rsp: 0,
    end: 0,
    out: [0; 16],
    out_flags: 0,
    mxcsr: 0,
    default_mxcsr: 0x1f80,
}));

const _: () = assert!(
    std::mem::offset_of!(Context, flags) == 128
        && std::mem::offset_of!(Context, entry) == 136
        && std::mem::offset_of!(Context, host_rsp) == 144
        && std::mem::offset_of!(Context, end) == 152
        && std::mem::offset_of!(Context, out) == 160
        && std::mem::offset_of!(Context, out_flags) == 288
        && std::mem::offset_of!(Context, mxcsr) == 296
        && std::mem::offset_of!(Context, default_mxcsr) == 300
);

global_asm!(
    ".text",
    ".balign 16",
    "twin_belief_enter:",
    process_lab::push_host_frame!(),
    "    movq  %rsp, {c}+144(%rip)",
    "    ldmxcsr {c}+300(%rip)",
    "    pushq {c}+128(%rip)",
    "    popfq",
    "    movq  {c}+0(%rip), %rax",
    "    movq  {c}+8(%rip), %rcx",
    "    movq  {c}+16(%rip), %rdx",
    "    movq  {c}+24(%rip), %rbx",
    "    movq  {c}+32(%rip), %rsp",
    "    movq  {c}+40(%rip), %rbp",
    "    movq  {c}+48(%rip), %rsi",
    "    movq  {c}+56(%rip), %rdi",
    "    movq  {c}+64(%rip), %r8",
    "    movq  {c}+72(%rip), %r9",
    "    movq  {c}+80(%rip), %r10",
    "    movq  {c}+88(%rip), %r11",
    "    movq  {c}+96(%rip), %r12",
    "    movq  {c}+104(%rip), %r13",
    "    movq  {c}+112(%rip), %r14",
    "    movq  {c}+120(%rip), %r15",
    "    jmpq  *{c}+136(%rip)",
    "twin_belief_fell:",
    "    movq  $0, {c}+152(%rip)",
    "    jmp   .Ltwin_belief_save",
    "twin_belief_landed:",
    "    movq  $1, {c}+152(%rip)",
    ".Ltwin_belief_save:",
    "    movq  %rsp, {c}+192(%rip)",
    "    movq  {c}+144(%rip), %rsp",
    "    pushfq",
    "    popq  {c}+288(%rip)",
    "    movq  %rax, {c}+160(%rip)",
    "    movq  %rcx, {c}+168(%rip)",
    "    movq  %rdx, {c}+176(%rip)",
    "    movq  %rbx, {c}+184(%rip)",
    "    movq  %rbp, {c}+200(%rip)",
    "    movq  %rsi, {c}+208(%rip)",
    "    movq  %rdi, {c}+216(%rip)",
    "    movq  %r8, {c}+224(%rip)",
    "    movq  %r9, {c}+232(%rip)",
    "    movq  %r10, {c}+240(%rip)",
    "    movq  %r11, {c}+248(%rip)",
    "    movq  %r12, {c}+256(%rip)",
    "    movq  %r13, {c}+264(%rip)",
    "    movq  %r14, {c}+272(%rip)",
    "    movq  %r15, {c}+280(%rip)",
    "    stmxcsr {c}+296(%rip)",
    "    jmp   .Ltwin_belief_leave",
    "twin_belief_trapped:",
    "    movq  $2, {c}+152(%rip)",
    "    movq  {c}+144(%rip), %rsp",
    ".Ltwin_belief_leave:",
    "    pushq $0x202",
    "    popfq",
    "    ldmxcsr {c}+300(%rip)",
    process_lab::pop_host_frame!(),
    "    ret",
    c = sym CONTEXT,
    options(att_syntax)
);

unsafe extern "C" {
    fn twin_belief_enter();
    fn twin_belief_fell();
    fn twin_belief_landed();
    fn twin_belief_trapped();
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// At the next instruction.
    Fell,
    /// At the branch's target.
    Landed,
    /// In this trap of the processor (SDM volume 3, table 6-1).
    Trapped(u64),
}

/// The state that an instruction leaves.
#[derive(Clone, Copy, Debug)]
pub struct Left {
    /// Registers by number.
    pub registers: [u64; 16],
    pub flags: u64,
    /// The vector registers' control and status.
    pub mxcsr: u32,
}

/// A piece of memory, and what it holds before each execution.
pub struct Piece {
    /// First address.
    pub start: u64,
    pub pristine: Vec<u8>,
}

impl Piece {
    /// The address after its last byte.
    pub fn end(&self) -> u64 {
        self.start + self.pristine.len() as u64
    }

    /// The bytes as they are now.
    fn now(&self) -> &'static mut [u8] {
        // SAFETY: mapped for as long as the process lives, and nothing executes.
        unsafe { std::slice::from_raw_parts_mut(self.start as *mut u8, self.pristine.len()) }
    }

    /// Addresses of the bytes that changed since; restores them.
    pub fn restore(&self) -> Vec<u64> {
        let now = self.now();
        if *now == *self.pristine {
            return Vec::new();
        }
        let differs = |n: &usize| now[*n] != self.pristine[*n];
        let changed = (0..now.len()).filter(differs);
        let addresses = changed.map(|n| self.start + n as u64).collect();
        now.copy_from_slice(&self.pristine);
        addresses
    }

    /// Writes a word that is not counted as a change until it is settled.
    pub fn poke(&self, address: u64, word: u64) {
        let at = (address - self.start) as usize;
        self.now()[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// The word at an address.
    pub fn peek(&self, address: u64) -> u64 {
        let at = (address - self.start) as usize;
        let bytes = &self.now()[at..at + 8];
        u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
    }
}

/// Executes instructions. One a process.
pub struct Executor {
    /// Two pieces of data, and the stack.
    pub pieces: [Piece; 3],
    writable: *mut u8,
    executable: u64,
    slot: usize,
}

/// Where code is, for the handler.
static CODE: AtomicU64 = AtomicU64::new(0);
/// The trap that the handler found.
static TRAP: AtomicU64 = AtomicU64::new(0);

impl Executor {
    /// Maps memory and takes the processor's signals.
    pub fn new() -> Result<Executor, Error> {
        let pages = PIECES.iter().sum::<u64>() + PIECES.len() as u64 + 1;
        let area = reserve(pages * PAGE)?;
        let mut random = Random::new(0x6265_6c69);
        let mut at = area + PAGE;
        let mut piece = |pages: u64| -> Result<Piece, Error> {
            let (start, length) = (at, pages * PAGE);
            at += length + PAGE;
            // SAFETY: inside the area that was just reserved.
            let status = unsafe {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                libc::mprotect(start as *mut c_void, length as usize, protection)
            };
            if status != 0 {
                return Err(Error::last("mapping memory for instructions"));
            }
            let words = (0..length / 8).flat_map(|_| random.word().to_le_bytes());
            let piece = Piece {
                start,
                pristine: words.collect(),
            };
            piece.now().copy_from_slice(&piece.pristine);
            Ok(piece)
        };
        let pieces = [piece(PIECES[0])?, piece(PIECES[1])?, piece(PIECES[2])?];
        let (writable, executable) = code()?;
        CODE.store(executable, Ordering::SeqCst);
        signals::alternate_stack()?;
        for signal in signals::PROCESSOR {
            signals::handle(signal, on_signal)?;
        }
        Ok(Executor {
            pieces,
            writable,
            executable,
            slot: 0,
        })
    }

    /// Puts an instruction of at most 15 bytes into the next slot; gives its address.
    pub fn place(&mut self, code: &[u8]) -> u64 {
        assert!(code.len() + 14 <= LANDING, "an instruction");
        self.slot = (self.slot + 1) % SLOTS;
        let at = self.slot * SLOT;
        let mut bytes = [0xcc; SLOT];
        bytes[..code.len()].copy_from_slice(code);
        let fell = twin_belief_fell as *const () as u64;
        let landed = twin_belief_landed as *const () as u64;
        for (place, to) in [(code.len(), fell), (LANDING, landed)] {
            // jmp *0(%rip), and the address after it.
            bytes[place..place + 6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
            bytes[place + 6..place + 14].copy_from_slice(&to.to_le_bytes());
        }
        // SAFETY: inside the mapping of code, which nothing executes now.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.writable.add(at), SLOT) };
        self.executable + at as u64
    }

    /// Executes what was placed at `entry`.
    pub fn run(&mut self, entry: u64, registers: &[u64; 16], flags: u64) -> (End, Left) {
        // SAFETY: nothing else uses the context while nothing executes; the code comes
        // back by one of its jumps, or the handler brings it back.
        unsafe {
            let context = &mut *CONTEXT.0.get();
            context.registers = *registers;
            context.flags = flags;
            context.entry = entry;
            twin_belief_enter();
            let context = &*CONTEXT.0.get();
            let end = match context.end {
                0 => End::Fell,
                1 => End::Landed,
                _ => End::Trapped(TRAP.load(Ordering::SeqCst)),
            };
            let left = Left {
                registers: context.out,
                flags: context.out_flags,
                mxcsr: context.mxcsr,
            };
            (end, left)
        }
    }
}

/// Address space that nothing can be read from or written to.
fn reserve(length: u64) -> Result<u64, Error> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let area = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let nothing = std::ptr::null_mut();
        libc::mmap(nothing, length as usize, libc::PROT_NONE, flags, -1, 0)
    };
    match area == libc::MAP_FAILED {
        true => Err(Error::last("mapping memory for instructions")),
        false => Ok(area as u64),
    }
}

/// Memory for code, mapped twice: to write it, and to execute it.
fn code() -> Result<(*mut u8, u64), Error> {
    // SAFETY: a new file without a name, and new mappings of it.
    let (writable, executable) = unsafe {
        let file = libc::memfd_create(c"belief".as_ptr(), 0);
        let length = SLOTS * SLOT;
        if file < 0 || libc::ftruncate(file, length as i64) != 0 {
            return Err(Error::last("making memory for code"));
        }
        let map = |protection: c_int| {
            let nothing = std::ptr::null_mut();
            libc::mmap(nothing, length, protection, libc::MAP_SHARED, file, 0)
        };
        let writable = map(libc::PROT_READ | libc::PROT_WRITE);
        let executable = map(libc::PROT_READ | libc::PROT_EXEC);
        libc::close(file);
        (writable, executable)
    };
    match writable == libc::MAP_FAILED || executable == libc::MAP_FAILED {
        true => Err(Error::last("making memory for code")),
        false => Ok((writable.cast(), executable as u64)),
    }
}

extern "C" fn on_signal(signal: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler the interrupted context.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    let rip = registers[libc::REG_RIP as usize] as u64;
    let code = CODE.load(Ordering::SeqCst);
    if rip.wrapping_sub(code) >= (SLOTS * SLOT) as u64 {
        signals::give_up(signal);
    }
    TRAP.store(
        registers[libc::REG_TRAPNO as usize] as u64,
        Ordering::SeqCst,
    );
    registers[libc::REG_RIP as usize] = twin_belief_trapped as *const () as i64;
    registers[libc::REG_EFL as usize] &= !signals::DIRTY_FLAGS;
}
