//! Where on the driver's stack its waiting functions' return addresses are.
//!
//! A word that looks like a code address need not be one: a frame has room that its
//! function never writes, and an earlier call's return address may still be there. So the
//! code is followed from where a function continues to its `ret`, by every branch, and what
//! it takes off the stack on the way is counted. The next return address is there.
//!
//! ```text
//! stack[0]            after the waiting call's return address
//!   |  saved registers, variables, stale words
//! stack[frame / 8]    where this function returns to: the next one's code
//!   :
//! stack[n]            where the first function returns to: the runtime's entry
//! ```

use std::collections::HashSet;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use process_lab::program::LinkedCode;
use process_lab::runtime;
use twin_abi::names;

use crate::hypervisor::payload::Payload;

/// Routines that driver code calls and that never return to it.
const ENDS: [&str; 3] = [names::BUG, names::SMASHED, "__stack_chk_fail"];

/// The numbers of the words of `stack` that are return addresses, innermost first. `site` is
/// where the innermost function goes on, with `rsp` at the first word.
///
/// # Errors
/// The code does not tell where one is: says at which address.
pub fn return_addresses(payload: &Payload, site: u64, stack: &[u64]) -> Result<Vec<usize>, String> {
    let mut found = Vec::new();
    let (mut at, mut next) = (0, site);
    while !runtime::entry_text().contains(&next) {
        let code = [&payload.driver, &payload.hot]
            .into_iter()
            .find(|code| within(code, next))
            .ok_or_else(|| format!("{next:#x} is in no code"))?;
        at += frame(code, next).ok_or_else(|| format!("no one way out from {next:#x}"))?;
        next = *stack
            .get(at)
            .ok_or_else(|| format!("the stack ends before word {at}"))?;
        found.push(at);
        at += 1;
    }
    Ok(found)
}

fn within(code: &LinkedCode, address: u64) -> bool {
    let (start, end) = code.text();
    (start..end).contains(&address)
}

/// Words between `rsp` at `start` and the return address of the function that `start` is in:
/// the same by every way to a `ret`.
fn frame(code: &LinkedCode, start: u64) -> Option<usize> {
    let ends = ENDS.map(|name| code.trampolines.address(name));
    let mut seen = HashSet::from([start]);
    let mut ways = vec![(start, 0)];
    let mut frames = HashSet::new();
    while let Some((address, bytes)) = ways.pop() {
        let Some(instruction) = decode(code, address) else {
            continue;
        };
        let near = instruction.near_branch_target();
        let (branch, next) = match instruction.flow_control() {
            FlowControl::Return => {
                frames.insert(bytes);
                (false, false)
            }
            FlowControl::UnconditionalBranch => (true, false),
            FlowControl::ConditionalBranch => (true, true),
            FlowControl::Next | FlowControl::IndirectCall => (false, true),
            FlowControl::Call => (false, !ends.contains(&Some(near))),
            FlowControl::IndirectBranch
            | FlowControl::Interrupt
            | FlowControl::XbeginXabortXend
            | FlowControl::Exception => (false, false),
        };
        let Some(bytes) = moved(&instruction).map(|moved| bytes + moved) else {
            continue;
        };
        let to = [(branch, near), (next, instruction.next_ip())];
        let to = to.iter().filter(|(goes, _)| *goes).map(|(_, to)| *to);
        ways.extend(to.filter(|to| seen.insert(*to)).map(|to| (to, bytes)));
    }
    match frames.into_iter().collect::<Vec<i64>>()[..] {
        [bytes] if bytes % 8 == 0 => usize::try_from(bytes / 8).ok(),
        _ => None,
    }
}

fn decode(code: &LinkedCode, address: u64) -> Option<Instruction> {
    let inside = code.linked.iter().find_map(|linked| {
        let offset = usize::try_from(address.checked_sub(linked.address)?).ok()?;
        linked.bytes.get(offset..).filter(|rest| !rest.is_empty())
    })?;
    let instruction = Decoder::with_ip(64, inside, address, DecoderOptions::NONE).decode();
    (!instruction.is_invalid()).then_some(instruction)
}

/// Bytes that an instruction moves `rsp` by, once a call has returned; `None` if unknown.
fn moved(instruction: &Instruction) -> Option<i64> {
    let to_rsp =
        instruction.op0_kind() == OpKind::Register && instruction.op0_register() == Register::RSP;
    let constant =
        instruction.op1_kind() != OpKind::Register && instruction.op1_kind() != OpKind::Memory;
    let of_rsp =
        instruction.memory_base() == Register::RSP && instruction.memory_index() == Register::None;
    match instruction.mnemonic() {
        Mnemonic::Call | Mnemonic::Cmp | Mnemonic::Test => Some(0),
        Mnemonic::Enter | Mnemonic::Leave => None,
        Mnemonic::Add if to_rsp && constant => Some(instruction.immediate(1).cast_signed()),
        Mnemonic::Sub if to_rsp && constant => Some(-instruction.immediate(1).cast_signed()),
        Mnemonic::Lea if to_rsp && of_rsp => {
            Some(instruction.memory_displacement64().cast_signed())
        }
        Mnemonic::Push => Some(i64::from(instruction.stack_pointer_increment())),
        _ if to_rsp => None,
        _ => Some(i64::from(instruction.stack_pointer_increment())),
    }
}
