//! Schemes with a window: operands reach the window alone, `push` and `pop` the control stack alone.

use twin_abi::window;

use super::{Cpu, Place};

/// Where the window starts.
const START: u64 = 0x5000_0020_0000;
/// From the control stack to where dom0 has the data stack.
const STACK_VIEW: u64 = 0x6_0000_0000;
/// The bounds that pointers are compared with.
const BOUNDS: [u64; 2] = [0xffff_8800_0000_0000, 0xffff_ffff_ffff_efff];
/// Bytes that a function may have on the control stack.
const FRAME: u64 = 4096;

/// The window of a scheme.
#[derive(Clone, Copy)]
pub struct Window {
    size: u64,
    mirror: u64,
    guard: u64,
}

impl Window {
    fn of(wide: bool) -> Window {
        match wide {
            true => Window {
                size: window::wide::SIZE,
                mirror: window::wide::MIRROR,
                guard: window::wide::GUARD,
            },
            false => Window {
                size: window::SIZE,
                mirror: 0,
                guard: window::GUARD,
            },
        }
    }
}

/// The number that the runtime gives a name, or that is there.
pub(super) fn constant(name: Option<(&str, i64)>) -> Option<u64> {
    match name?.0 {
        "twin_window" => Some(START),
        "twin_window_mask" => Some(window::wide::MASK),
        "twin_stack_view" => Some(STACK_VIEW),
        "twin_lowest" => Some(BOUNDS[0]),
        "twin_highest" => Some(BOUNDS[1]),
        _ => None,
    }
}

impl Cpu {
    /// A machine with a window, and these registers, except `rsp`.
    pub fn with_window(wide: bool, regs: [u64; 16]) -> Cpu {
        Cpu {
            window: Some(Window::of(wide)),
            ..Cpu::new(false, regs, &[])
        }
    }

    /// Whether memory is a window.
    pub(super) fn has_window(&self) -> bool {
        self.window.is_some()
    }

    /// What the prefix 65 adds to an address.
    pub(super) fn segment_base(&self) -> u64 {
        self.window.map_or(0, |_| START)
    }

    /// Where an operand is: in the window, its mirror or a guard; or it reads the own return address
    /// or a segment base.
    pub(super) fn in_window(&self, w: Window, at: u64, size: usize, write: bool) -> Place {
        let first = START - w.mirror - w.guard;
        let last = START + w.size + w.guard - size as u64;
        if (first..=last).contains(&at) {
            let place = if at < START { at + w.size } else { at };
            return Ok((place, true));
        }
        let readable = [self.entry(), Cpu::CONTEXT, Cpu::CONTEXT + 8];
        match !write && size == 8 && readable.contains(&at) {
            true => Ok((at, false)),
            false => Err(format!(
                "{size} bytes at {at:#x}, which is not in the window"
            )),
        }
    }

    /// A word that `push`, `pop` or `call` moves: the function's own.
    pub(super) fn own_word(&self, at: u64) -> Result<(), String> {
        let entry = self.entry();
        match (entry - FRAME..entry).contains(&at) && at.is_multiple_of(8) {
            true => Ok(()),
            false => Err(format!(
                "a word at {at:#x}, the return address is at {entry:#x}"
            )),
        }
    }
}
