//! The description of a fault that ended kernel code, as plain integers, because
//! it crosses processes.

use std::fmt;
use std::ops::Range;

use libc::{c_int, greg_t};

use crate::image::KernelPlan;
use crate::memory;

/// Words of the kernel stack that an oops searches for its trace.
const TRACE_SEARCH: usize = 512;
/// Most places in a trace.
const TRACE: usize = 12;

/// A fault that ended kernel code. Plain integers: it crosses processes.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oops {
    pub signal: u64,
    /// The processor's trap number (SDM volume 3, table 6-1).
    pub trap: u64,
    pub rip: u64,
    /// The stack pointer.
    pub rsp: u64,
    /// What was accessed, for page faults.
    pub address: u64,
    /// `rax rbx rcx rdx rsi rdi rbp r8`...`r15`.
    pub registers: [u64; 15],
    /// Words on the stack that are code addresses, innermost first; zeroes
    /// after the last.
    pub trace: [u64; TRACE],
    /// kernel.o's message before it gave up; empty for a fault of the processor.
    pub last_words: Words,
}

/// The beginning of a text.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    length: u64,
    bytes: [u8; 120],
}

impl Default for Words {
    fn default() -> Words {
        Words {
            length: 0,
            bytes: [0; 120],
        }
    }
}

impl Words {
    /// The text's beginning, as far as there is room.
    pub fn new(text: &[u8]) -> Words {
        let mut words = Words::default();
        let length = text.len().min(words.bytes.len());
        words.bytes[..length].copy_from_slice(&text[..length]);
        words.length = length as u64;
        words
    }

    /// Whether nothing was said.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.bytes.get(..self.length as usize).unwrap_or_default();
        f.write_str(&String::from_utf8_lossy(said))
    }
}

impl fmt::Display for Oops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.last_words.is_empty() {
            return write!(f, "{}", self.last_words);
        }
        write!(
            f,
            "{} at {:#x} (rip {:#x})",
            self.kind(),
            self.address,
            self.rip
        )
    }
}

impl Oops {
    /// From a fault's handler: `registers` are the interrupted ones, `stack` the CPU's
    /// own.
    pub(crate) fn of_fault(
        signal: c_int,
        address: u64,
        registers: &[greg_t; 23],
        stack: &Range<u64>,
        is_code: impl Fn(u64) -> bool,
    ) -> Oops {
        let get = |register: c_int| registers[register as usize] as u64;
        let rsp = get(libc::REG_RSP);
        Oops {
            signal: signal as u64,
            trap: get(libc::REG_TRAPNO),
            rip: get(libc::REG_RIP),
            rsp,
            address,
            registers: [
                libc::REG_RAX,
                libc::REG_RBX,
                libc::REG_RCX,
                libc::REG_RDX,
                libc::REG_RSI,
                libc::REG_RDI,
                libc::REG_RBP,
                libc::REG_R8,
                libc::REG_R9,
                libc::REG_R10,
                libc::REG_R11,
                libc::REG_R12,
                libc::REG_R13,
                libc::REG_R14,
                libc::REG_R15,
            ]
            .map(get),
            trace: trace(rsp, stack, is_code),
            last_words: Words::default(),
        }
    }

    /// What kind of fault, in words.
    pub fn kind(&self) -> &'static str {
        match self.trap {
            0 => "division error",
            3 => "breakpoint",
            6 => "BUG or unknown instruction",
            13 => "general protection fault",
            14 => "page fault",
            _ => "processor fault",
        }
    }

    /// Several lines with names from the plan.
    pub fn report(&self, plan: &KernelPlan<'_>) -> String {
        let mut text = if self.last_words.is_empty() {
            let (kind, place) = (self.kind(), plan.describe(self.rip));
            format!("oops: {kind} at {:#x} in {place}", self.address)
        } else {
            format!("oops: {}", self.last_words)
        };
        for place in self.trace.iter().take_while(|place| **place != 0) {
            text += &format!("\n  {}", plan.describe(*place));
        }
        text
    }
}

/// Code addresses on the stack: callers, and remains of earlier calls.
fn trace(rsp: u64, stack: &Range<u64>, is_code: impl Fn(u64) -> bool) -> [u64; TRACE] {
    let mut found = [0; TRACE];
    let start = rsp.next_multiple_of(8);
    let Some(end) = stack_end(start, stack) else {
        return found;
    };
    let words = (((end - start) / 8) as usize).min(TRACE_SEARCH);
    let start = start as *const u64;
    // SAFETY: dom0's memory up to `end` is mapped.
    let words = (0..words).map(|i| unsafe { start.add(i).read() });
    for (place, word) in found.iter_mut().zip(words.filter(|word| is_code(*word))) {
        *place = word;
    }
    found
}

/// An upper bound of a stack: the end of the CPU's own, or of a page that kernel.o took
/// from its heap for a task's stack.
fn stack_end(rsp: u64, stack: &Range<u64>) -> Option<u64> {
    if stack.contains(&rsp) {
        return Some(stack.end);
    }
    let in_heap = (memory::EXCHANGE.end..memory::VMEMMAP).contains(&rsp);
    in_heap.then(|| (rsp + 1).next_multiple_of(memory::PAGE))
}
