//! Copies of strings, `rep movs`, in rewritten code: executed by the processor, or by a
//! handler that does what another processor would.
//!
//! Rewritten code reaches source and target through windows, and two windows may show
//! the same pages. A processor detects overlap by comparing linear addresses (SDM
//! volume 3, 8.2.4: fast strings do not overlap), and processors differ: some copy one
//! element after the other, some load far ahead, some copy the end of a string before
//! its middle. So each chunk is also copied by
//!
//! * the *cautious* machine: each element is loaded and stored before the next (SDM
//!   volume 2, MOVS and REP, "Operation");
//! * the *fast* machine: if the linear addresses of source and target do not overlap,
//!   elements are done from the last to the first; else as the cautious one does.
//!
//! The last element first is the most harmful order. Where the target is ahead of the
//! source in the copy's direction, no element sees what an earlier one stored, as if all
//! loads came before all stores; where the source is ahead, each sees what a later one
//! stored.
//!
//! ```text
//! f3 48 a5   rep movsq     becomes     cc 48 a5      SIGTRAP, and the handler does it
//! ```

use std::ffi::c_void;
use std::sync::OnceLock;

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind};
use libc::{c_int, siginfo_t, ucontext_t};
use process_lab::error::Error;

use super::probe::{self, Fault, Probe};

/// The machine that copies strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// The processor at hand.
    Processor,
    /// One element after the other.
    Cautious,
    /// The most harmful order, unless linear addresses overlap.
    Fast,
}

impl Copies {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Copies::Processor => "the processor",
            Copies::Cautious => "the cautious machine",
            Copies::Fast => "the fast machine",
        }
    }
}

/// A `rep movs`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Site {
    address: u64,
    /// Bytes of the instruction.
    length: u64,
    /// Bytes of an element.
    size: u64,
}

/// Data of this process's handler.
struct Replay {
    copies: Copies,
    sites: Vec<Site>,
    /// The previous handler of breakpoints.
    before: libc::sigaction,
}

static REPLAY: OnceLock<Replay> = OnceLock::new();

/// Puts breakpoints on the copies in `code`, instructions that are to be at `start`,
/// and handles them from now on as `copies` says. Once in a process, after all other
/// handlers of SIGTRAP are installed.
pub fn replay(copies: Copies, start: u64, code: &mut [u8]) -> Result<(), Error> {
    if copies == Copies::Processor {
        return Ok(());
    }
    let sites = sites(start, code);
    for site in &sites {
        code[(site.address - start) as usize] = 0xcc;
    }
    let before = install()?;
    let replay = Replay {
        copies,
        sites,
        before,
    };
    let fresh = REPLAY.set(replay).is_ok();
    assert!(fresh, "a process replays one program");
    Ok(())
}

fn install() -> Result<libc::sigaction, Error> {
    // SAFETY: all zeroes is a valid `sigaction`; the handler has the signature that
    // SA_SIGINFO promises.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        let mut before: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = on_breakpoint as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        match libc::sigaction(libc::SIGTRAP, &action, &mut before) {
            0 => Ok(before),
            _ => Err(Error::last("handling breakpoints")),
        }
    }
}

fn sites(start: u64, code: &[u8]) -> Vec<Site> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let copies = decoder.into_iter().filter(|i| {
        let string = i.op0_kind() == OpKind::MemoryESRDI && i.op1_kind() == OpKind::MemorySegRSI;
        let moves = matches!(
            i.mnemonic(),
            Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq
        );
        string && moves && (i.has_rep_prefix() || i.has_repne_prefix())
    });
    let site = |i: iced_x86::Instruction| Site {
        address: i.ip(),
        length: i.len() as u64,
        size: i.memory_size().size() as u64,
    };
    copies.map(site).collect()
}

extern "C" fn on_breakpoint(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let replay = REPLAY.get().expect("the handler is installed with it");
    // SAFETY: the kernel gives a handler the interrupted context.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    // The breakpoint is one byte.
    let at = registers[libc::REG_RIP as usize] as u64 - 1;
    if let Ok(n) = replay.sites.binary_search_by_key(&at, |site| site.address) {
        let site = replay.sites[n];
        match copy(replay.copies, registers, site.size) {
            Ok(()) => {
                registers[libc::REG_RIP as usize] = (at + site.length) as i64;
                return;
            }
            Err((trap, address)) => fault_at(registers, at, (trap, address)),
        }
    }
    // SAFETY: an action that was in force, of the kind that its flags say: the
    // runtime's, which was installed before.
    unsafe {
        assert!(replay.before.sa_flags & libc::SA_SIGINFO != 0, "a handler");
        let before: process_lab::signals::Handler = std::mem::transmute(replay.before.sa_sigaction);
        before(signal, info, context);
    }
}

/// The context that a handler gets for a fault at the instruction at `rip`.
fn fault_at(registers: &mut [i64], rip: u64, (trap, address): Fault) {
    registers[libc::REG_RIP as usize] = rip as i64;
    registers[libc::REG_TRAPNO as usize] = trap as i64;
    registers[libc::REG_CR2 as usize] = address as i64;
    registers[libc::REG_ERR as usize] = 0;
}

/// Does a `rep movs` of elements of `size` bytes. A fault is found before any element is
/// copied out of order: faults are precise (SDM volume 3, 8.2.4.1).
fn copy(copies: Copies, registers: &mut [i64], size: u64) -> Result<(), Fault> {
    let [rsi, rdi, rcx] = [libc::REG_RSI, libc::REG_RDI, libc::REG_RCX].map(|r| r as usize);
    let [from, to, count] = [rsi, rdi, rcx].map(|r| registers[r] as u64);
    let step = step(registers, size);
    let after = |start: u64, n: u64| start.wrapping_add(step.wrapping_mul(n));
    let (mut read, mut written) = (Probe::new(false), Probe::new(true));
    let mut reach = |n| {
        read.element(after(from, n), size)?;
        written.element(after(to, n), size)
    };
    let stop = (0..count).find_map(|n| reach(n).err().map(|fault| (n, fault)));
    let done = stop.map_or(count, |(n, _)| n);
    let reversed = is_reversed(copies, (from, to), count * size);
    for n in 0..done {
        let n = if reversed { done - 1 - n } else { n };
        // SAFETY: the probes found both elements.
        unsafe {
            let element = probe::load(after(from, n), size);
            probe::store(after(to, n), element, size);
        }
    }
    registers[rsi] = after(from, done) as i64;
    registers[rdi] = after(to, done) as i64;
    registers[rcx] = (count - done) as i64;
    stop.map_or(Ok(()), |(_, fault)| Err(fault))
}

/// What is added to a pointer after each element.
fn step(registers: &[i64], size: u64) -> u64 {
    const DIRECTION: i64 = 0x400;
    match registers[libc::REG_EFL as usize] & DIRECTION {
        0 => size,
        _ => size.wrapping_neg(),
    }
}

/// Whether a copy of that many bytes is done from its last element to its first.
fn is_reversed(copies: Copies, (from, to): (u64, u64), bytes: u64) -> bool {
    let overlap = from.abs_diff(to) < bytes;
    match copies {
        Copies::Processor | Copies::Cautious => false,
        Copies::Fast => !overlap,
    }
}
