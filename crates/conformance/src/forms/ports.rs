//! Simulated ports for both processes. The value read depends on the port, the width
//! and the number of accesses before; one word sums up all accesses of a run.
//!
//! The rewritten code comes here through the runtime's gate. A native process has no
//! ports: each access faults (#GP, SDM volume 1, 19.5.1), and [`step`] performs it as
//! the manual says (volume 2, IN, OUT, INS, OUTS): for each element it checks the
//! memory, then uses the port, then advances.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::c_int;
use process_lab::random::mix;
use process_lab::runtime::PortRange;

use super::probe::{self, Fault, Probe};

/// Every port may be used.
pub static ALL: [PortRange; 1] = [PortRange {
    first: 0,
    last: u16::MAX,
}];

/// The accesses since [`reset`]; a process has one run at a time.
static DONE: AtomicU64 = AtomicU64::new(0);

/// A new run begins.
pub fn reset() {
    DONE.store(0, Ordering::Relaxed);
}

/// The accesses of this run, in order, as one word; zero if there were none.
pub fn done() -> u64 {
    DONE.load(Ordering::Relaxed)
}

fn note(input: bool, port: u16, size: u32, value: u32) -> u64 {
    let what = u64::from(port) << 40 | u64::from(size) << 34 | u64::from(value) << 1;
    let now = mix(done().rotate_left(7) ^ what ^ u64::from(input)) | 1;
    DONE.store(now, Ordering::Relaxed);
    now
}

/// A port is read.
pub extern "C" fn port_in(_: *mut c_void, port: u16, size: u32) -> u32 {
    let value = mix(note(true, port, size, 0)) as u32;
    match size {
        1 => value & 0xff,
        2 => value & 0xffff,
        _ => value,
    }
}

/// A port is written.
pub extern "C" fn port_out(_: *mut c_void, port: u16, size: u32, value: u32) {
    note(false, port, size, value);
}

/// The result for an instruction that faulted.
pub enum Step {
    /// It uses no port.
    Other,
    /// It was done; the registers say so.
    Done,
    /// Its memory is not mapped: trap and address.
    Fault(u64, u64),
}

/// An instruction that uses a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PortAccess {
    input: bool,
    size: u64,
    string: bool,
    repeats: bool,
    /// The port, if it is in the instruction.
    number: Option<u8>,
    length: u64,
}

/// Reads the instruction: prefixes of size and repetition, REX, opcode.
fn decode(bytes: &[u8]) -> Option<PortAccess> {
    let prefixes = bytes
        .iter()
        .take_while(|b| matches!(b, 0x66 | 0xf2 | 0xf3 | 0x40..=0x4f));
    let at = prefixes.count();
    let opcode = *bytes.get(at)?;
    let has = |prefix| bytes[..at].contains(&prefix);
    let wide = if has(0x66) { 2 } else { 4 };
    let (string, immediate) = match opcode {
        0x6c..=0x6f => (true, false),
        0xe4..=0xe7 => (false, true),
        0xec..=0xef => (false, false),
        _ => return None,
    };
    Some(PortAccess {
        input: matches!(opcode, 0x6c | 0x6d | 0xe4 | 0xe5 | 0xec | 0xed),
        size: if opcode & 1 == 0 { 1 } else { wide },
        string,
        repeats: string && (has(0xf2) || has(0xf3)),
        number: if immediate {
            Some(*bytes.get(at + 1)?)
        } else {
            None
        },
        length: at as u64 + 1 + u64::from(immediate),
    })
}

/// Does the instruction at `rip` of a native run, if it uses a port.
pub fn step(registers: &mut [i64]) -> Step {
    let mut code = [0; 15];
    let rip = registers[libc::REG_RIP as usize] as u64;
    let readable = probe::read(rip, &mut code);
    let Some(access) = decode(&code[..readable]) else {
        return Step::Other;
    };
    if !access.string {
        single(&access, registers);
    } else if let Err((trap, address)) = string(&access, registers) {
        return Step::Fault(trap, address);
    }
    registers[libc::REG_RIP as usize] = rip.wrapping_add(access.length) as i64;
    Step::Done
}

fn port(access: &PortAccess, registers: &[i64]) -> u16 {
    access
        .number
        .map_or(registers[libc::REG_RDX as usize] as u16, u16::from)
}

fn single(access: &PortAccess, registers: &mut [i64]) {
    let (port, size) = (port(access, registers), access.size as u32);
    let rax = &mut registers[libc::REG_RAX as usize];
    if !access.input {
        let mask = (1u64 << (8 * size)) - 1;
        port_out(
            std::ptr::null_mut(),
            port,
            size,
            (*rax as u64 & mask) as u32,
        );
        return;
    }
    let value = i64::from(port_in(std::ptr::null_mut(), port, size));
    // A write of 32 bits clears the upper half (SDM volume 1, 3.4.1.1).
    *rax = match size {
        1 => *rax & !0xff | value,
        2 => *rax & !0xffff | value,
        _ => value,
    };
}

/// `ins` or `outs`, all of its elements.
fn string(access: &PortAccess, registers: &mut [i64]) -> Result<(), Fault> {
    const DIRECTION: i64 = 0x400;
    let backward = registers[libc::REG_EFL as usize] & DIRECTION != 0;
    let pointer = if access.input {
        libc::REG_RDI
    } else {
        libc::REG_RSI
    };
    let (port, size) = (port(access, registers), access.size as u32);
    let mut probe = Probe::new(access.input);
    while !access.repeats || registers[libc::REG_RCX as usize] != 0 {
        let at = registers[pointer as usize] as u64;
        probe.element(at, access.size)?;
        if access.input {
            let value = u64::from(port_in(std::ptr::null_mut(), port, size));
            // SAFETY: the probe found the element, to be written.
            unsafe { probe::store(at, value.to_le_bytes(), access.size) };
        } else {
            // SAFETY: the probe found the element.
            let value = u64::from_le_bytes(unsafe { probe::load(at, access.size) });
            port_out(std::ptr::null_mut(), port, size, value as u32);
        }
        let next = match backward {
            true => at.wrapping_sub(access.size),
            false => at.wrapping_add(access.size),
        };
        registers[pointer as usize] = next as i64;
        if !access.repeats {
            break;
        }
        registers[libc::REG_RCX as usize] -= 1;
    }
    Ok(())
}

/// #GP, which a port access is without permission.
pub const TRAP: c_int = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_uses_a_port_is_told_from_what_does_not() {
        let access = |bytes: &[u8]| decode(bytes).map(|a| (a.input, a.size, a.string, a.length));
        assert_eq!(access(&[0xec]), Some((true, 1, false, 1)), "in %dx,%al");
        assert_eq!(
            access(&[0x66, 0xef]),
            Some((false, 2, false, 2)),
            "out %ax,%dx"
        );
        assert_eq!(
            access(&[0xe5, 0x60]),
            Some((true, 4, false, 2)),
            "in $0x60,%eax"
        );
        assert_eq!(
            access(&[0xf3, 0x66, 0x6d]),
            Some((true, 2, true, 3)),
            "rep insw"
        );
        assert_eq!(access(&[0x6e]), Some((false, 1, true, 1)), "outsb");
        assert_eq!(access(&[0x8b, 0x00]), None);
        assert_eq!(access(&[0xe4]), None, "cut off");
        assert!(decode(&[0xf3, 0x6c]).is_some_and(|a| a.repeats));
        assert!(decode(&[0x6c]).is_some_and(|a| !a.repeats));
    }
}
