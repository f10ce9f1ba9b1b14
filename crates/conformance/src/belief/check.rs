//! Compares an instruction's effect with the verifier's belief.

use process_lab::random::{Random, mix};
use svm_verify::belief::{Before, Belief, Leaves};
use twin_abi::window::wide;

use super::STATES;
use super::aim;
use super::machine::{End, Executor, LANDING, Left};

/// CF PF AF ZF SF OF.
const STATUS: u64 = 0x8d5;
const DIRECTION: u64 = 0x400;
/// TF IF IOPL NT AC VIF VIP ID: no allowed instruction changes them.
const SYSTEM: u64 = 0x3c_7300;
/// `mxcsr` without the exception flags.
const CONTROL: u32 = !0x3f;

const RAX: usize = 0;
const RCX: usize = 1;
const RDX: usize = 2;
/// Its number.
pub const RSP: usize = 4;
const RSI: usize = 6;
const RDI: usize = 7;

/// The result for an encoding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BeliefVerdict {
    /// It was executed that many times, as believed.
    Good(u64),
    /// It trapped, in every state.
    Trapped(&'static str),
    /// Its operand is far from `rsp`, which does not move for it.
    OutOfReach,
    /// It did something else.
    Wrong(String),
}

/// Where a memory operand lies in its page: in the middle, or at an edge, so that one
/// byte more would be on an unmapped page.
#[derive(Clone, Copy, Debug)]
enum Placement {
    Middle,
    End,
    Start,
}

/// Executes an encoding from several states.
pub fn judge(
    machine: &mut Executor,
    code: &[u8],
    belief: &Belief,
    backward: bool,
) -> BeliefVerdict {
    if belief.leaves == Leaves::Nowhere {
        return BeliefVerdict::Trapped("by itself");
    }
    let (code, belief) = &aim::at_displacement(machine, code, belief);
    let entry = machine.place(&aimed(code, belief));
    let (mut runs, mut trapped) = (0, None);
    for number in 0..STATES {
        let placement = [Placement::Middle, Placement::End, Placement::Start][number as usize % 3];
        let state = State::new(machine, code, belief, (number, backward), placement);
        let Some(state) = state else { continue };
        if belief.leaves == Leaves::Return {
            let landing = entry + LANDING as u64;
            machine.pieces[2].poke(state.registers[RSP], landing);
        }
        let (end, left) = machine.run(entry, &state.registers, state.flags);
        let result = match end {
            // The operand is mapped, so the instruction reached something else.
            End::Trapped(14) => Err(format!(
                "a page fault, its operand in its page's {placement:?}"
            )),
            End::Trapped(trap) => {
                trapped = Some(name(trap));
                Ok(())
            }
            end => {
                runs += 1;
                compare(machine, (entry, belief), &state, end, &left)
            }
        };
        let result = result.and(memory(machine, belief, &state));
        if let Err(reason) = result {
            return BeliefVerdict::Wrong(format!("{reason}; {state:x?}"));
        }
    }
    match (runs, trapped) {
        (0, Some(trap)) => BeliefVerdict::Trapped(trap),
        (0, None) => BeliefVerdict::OutOfReach,
        _ => BeliefVerdict::Good(runs),
    }
}

fn name(trap: u64) -> &'static str {
    match trap {
        0 => "#DE",
        3 => "#BP",
        6 => "#UD",
        13 => "#GP",
        17 => "#AC",
        19 => "#XM",
        _ => "another trap",
    }
}

/// A branch that leads to the landing: its distance is in its last bytes.
fn aimed(code: &[u8], belief: &Belief) -> Vec<u8> {
    let mut code = code.to_vec();
    if let Leaves::Branch | Leaves::Call = belief.leaves {
        let distance = (LANDING - code.len()) as i32;
        // One byte of opcode and one of distance, or four of distance.
        let width = if code.len() < 5 { 1 } else { 4 };
        let at = code.len() - width;
        code[at..].copy_from_slice(&distance.to_le_bytes()[..width]);
    }
    code
}

/// The state before.
#[derive(Debug)]
struct State {
    registers: [u64; 16],
    flags: u64,
}

impl State {
    fn new(
        machine: &Executor,
        code: &[u8],
        belief: &Belief,
        (number, backward): (u64, bool),
        placement: Placement,
    ) -> Option<State> {
        let seed = code
            .iter()
            .fold(number / 3, |hash, &b| mix(hash ^ u64::from(b)));
        let mut random = Random::new(seed);
        let small = number < 3;
        let mut registers: [u64; 16] = std::array::from_fn(|_| match small {
            true => 1 + random.below(100),
            false => value(&mut random),
        });
        if small {
            // Divisions that end.
            (registers[RAX], registers[RDX]) = (5, 0);
        }
        let rsp = machine.pieces[2].start + 4096;
        registers[RSP] = rsp;
        let count = random.below(4);
        for (register, before) in registers.iter_mut().zip(belief.before) {
            match before {
                Before::Any | Before::Pointer => {}
                Before::Frame(by) => *register = rsp.wrapping_add_signed(by.into()),
                Before::AtMost(most) => *register = random.below(u64::from(most) + 1),
                Before::Place => *register &= wide::MASK,
                Before::Count => *register = count,
            }
        }
        if let Some(elements) = belief.elements {
            for (n, register) in [(0, RDI), (1, RSI)] {
                let piece = &machine.pieces[n];
                let bytes = u64::from(elements.0) * if elements.1 { count.max(1) } else { 1 };
                let low = low(piece.start, piece.end(), bytes, placement);
                let last = bytes - u64::from(elements.0);
                registers[register] = if backward { low + last } else { low };
            }
        } else if let Some(operand) = &belief.operand {
            let piece = &machine.pieces[0];
            let low = low(piece.start, piece.end(), operand.size.into(), placement);
            if !aim::at(machine, &mut registers, operand, low) {
                return None;
            }
        }
        let direction = if backward { DIRECTION } else { 0 };
        Some(State {
            registers,
            flags: random.word() & STATUS | direction | 0x202,
        })
    }
}

/// The lowest address of `size` bytes in a piece of memory.
fn low(start: u64, end: u64, bytes: u64, placement: Placement) -> u64 {
    match placement {
        Placement::Middle => start + 2048,
        Placement::End => end - bytes,
        Placement::Start => start,
    }
}

fn value(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << random.below(64),
        3 => random.word() & 0xffff_ffff,
        4 => random.below(256),
        _ => random.word(),
    }
}

/// Registers, flags and where control went.
fn compare(
    machine: &Executor,
    (entry, belief): (u64, &Belief),
    state: &State,
    end: End,
    left: &Left,
) -> Result<(), String> {
    let (before, after) = (&state.registers, &left.registers);
    let landed = end == End::Landed;
    match belief.leaves {
        Leaves::Next if landed => return Err("it branched".into()),
        Leaves::Return | Leaves::Call if !landed => return Err("it went on".into()),
        _ => {}
    }
    let moved = match (belief.leaves, belief.after[RSP].frame) {
        (Leaves::Call, _) => -8,
        (Leaves::Return, _) => 8,
        (_, Some(by)) => i64::from(by),
        (_, None) => return Err("nothing is believed of rsp".into()),
    };
    if after[RSP] != before[RSP].wrapping_add_signed(moved) {
        return Err(format!("rsp is {:#x}, not {moved} more", after[RSP]));
    }
    if belief.leaves == Leaves::Call {
        let pushed = machine.pieces[2].peek(after[RSP]);
        if pushed != entry + belief.length as u64 {
            return Err(format!("{pushed:#x} was pushed"));
        }
    }
    registers(belief, before, after)?;
    flags(belief, state.flags, left.flags)?;
    match (left.mxcsr ^ 0x1f80) & CONTROL {
        0 => Ok(()),
        _ => Err(format!("mxcsr is {:#x}", left.mxcsr)),
    }
}

fn registers(belief: &Belief, before: &[u64; 16], after: &[u64; 16]) -> Result<(), String> {
    let mut named = None;
    for (n, (known, &is)) in belief.after.iter().zip(after).enumerate() {
        let held = |r: u8| before[usize::from(r)];
        let frame = |by: i32| before[RSP].wrapping_add_signed(by.into());
        let equal = [
            known.same.map(held),
            known.frame.filter(|_| n != RSP).map(frame),
            known.low_half.map(|r| held(r) & 0xffff_ffff),
            known.page.map(|r| held(r) & !0xfff),
            Some(is & 0xffff_ffff).filter(|_| known.clear),
            named.filter(|_| known.named),
        ];
        let wrong = equal.into_iter().flatten().find(|&expected| expected != is);
        if let Some(expected) = wrong {
            return Err(format!(
                "register {n} is {is:#x}, not {expected:#x}: {known:?}"
            ));
        }
        if known.at_most.is_some_and(|most| is > u64::from(most)) {
            return Err(format!("register {n} is {is:#x}: {known:?}"));
        }
        if known.place && is > wide::MASK {
            return Err(format!("register {n} is {is:#x}: {known:?}"));
        }
        if known.named {
            named = Some(is);
        }
    }
    Ok(())
}

fn flags(belief: &Belief, before: u64, after: u64) -> Result<(), String> {
    let changed = before ^ after;
    let direction = belief.direction.unwrap_or(before & DIRECTION != 0);
    let wrong = changed & SYSTEM != 0
        || changed & STATUS != 0 && !belief.flags
        || (after & DIRECTION != 0) != direction;
    match wrong {
        true => Err(format!("flags are {after:#x}, not {before:#x}")),
        false => Ok(()),
    }
}

/// Whether only those bytes changed that may. Memory is as before afterwards.
fn memory(machine: &Executor, belief: &Belief, state: &State) -> Result<(), String> {
    let mut allowed = Vec::new();
    if let Some(operand) = belief.operand.filter(|o| o.written) {
        let at = aim::address(machine, &state.registers, &operand);
        allowed.push(at..at + u64::from(operand.size));
    }
    if let Some((size, repeated)) = belief.elements {
        let count = if repeated { state.registers[RCX] } else { 1 };
        let (at, bytes) = (state.registers[RDI], count * u64::from(size));
        allowed.push(match state.flags & DIRECTION {
            0 => at..at + bytes,
            _ => (at + u64::from(size)).saturating_sub(bytes)..at + u64::from(size),
        });
    }
    let rsp = state.registers[RSP];
    let pushed = match belief.leaves {
        Leaves::Call => 8,
        _ => belief.after[RSP]
            .frame
            .map_or(0, |by| u64::from((-by).max(0) as u32)),
    };
    // `sub $8,%rsp` may write there as well: the place holds nothing else.
    allowed.push(rsp - pushed.min(8)..rsp);
    if belief.leaves == Leaves::Return {
        // Put there before.
        allowed.push(rsp..rsp + 8);
    }
    let changed: Vec<u64> = machine
        .pieces
        .iter()
        .flat_map(|piece| piece.restore())
        .collect();
    match changed
        .iter()
        .find(|at| !allowed.iter().any(|range| range.contains(at)))
    {
        Some(at) => Err(format!("the byte at {at:#x} was written")),
        None => Ok(()),
    }
}
