//! Refuses functions that do not keep their stack in order: where a frame is, the rest of the
//! rewriter and the verifier know only if it is the same on every path.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, Register};
use twin_abi::stack;

use super::classify;
use super::flow::{Flow, Unbalanced};
use super::routines::is_call;
use crate::lift::{Destination, InstIdx, Lifted};
use crate::refusal::{Refusal, RefusalCode};

/// The refusals of code where the psABI holds.
pub fn refusals(
    lifted: &Lifted<'_>,
    flow: &Flow,
    rules: &classify::Rules,
) -> impl Iterator<Item = Refusal> {
    flow.unbalanced.iter().filter_map(|(i, why)| {
        if is_own_thunk(lifted, *i, *why) {
            return Some(lifted.refusal(RefusalCode::Retpoline, *i, OWN_THUNK));
        }
        // Where return addresses are compared, one that was written is found when it runs.
        if *why == Unbalanced::Overwritten && rules.guards_returns {
            return None;
        }
        let reason = reason(*why) + &believed(lifted, *i, *why);
        Some(lifted.refusal(code(*why), *i, reason))
    })
}

/// Why the thunks of a compiler's own are refused.
const OWN_THUNK: &str = "its `ret` is a jump, or a return from another function: a thunk that the \
                         compiler itself made";

//          jmp  .L0
//      .L1: mov  %rax,(%rsp)       -mindirect-branch=thunk, thunk-inline; -mretpoline
//          ret
//
//          jmp  .L0
//      .L1: lea  8(%rsp),%rsp      -mfunction-return=thunk, thunk-inline
//          ret
//
/// Whether these instructions are what is not in order. Where return addresses are compared, the
/// first thunk would be an abort whenever it runs.
fn is_own_thunk(lifted: &Lifted<'_>, i: InstIdx, why: Unbalanced) -> bool {
    let first = match why {
        Unbalanced::Overwritten => i.0.checked_sub(1),
        Unbalanced::Above => Some(i.0),
        Unbalanced::Paths(..)
        | Unbalanced::RealignedPaths
        | Unbalanced::Deep(_)
        | Unbalanced::Left(_)
        | Unbalanced::Realigned
        | Unbalanced::Computed(_) => None,
    };
    let Some(first) = first.filter(|first| is_behind_loop(lifted, *first)) else {
        return false;
    };
    let pair = lifted.insts[first as usize..].first_chunk::<2>();
    pair.is_some_and(|[first, ret]| {
        let writes = match first.iced.code() {
            Code::Mov_rm64_r64 => is_at_rsp(&first.iced, 0),
            Code::Lea_r64_m => is_at_rsp(&first.iced, 8),
            _ => false,
        };
        writes && ret.iced.code() == Code::Retnq && first.section == ret.section
    })
}

/// Whether a jump of the same function stands before the instruction, or before the padding there:
/// the end of the loop that holds up a processor which runs ahead.
fn is_behind_loop(lifted: &Lifted<'_>, first: u32) -> bool {
    let pads = |i: InstIdx| {
        let mnemonic = lifted.inst(i).iced.mnemonic();
        matches!(mnemonic, Mnemonic::Nop | Mnemonic::Int3)
    };
    let before = (0..first).rev().map(InstIdx).find(|i| !pads(*i));
    let f = lifted.function_of(InstIdx(first));
    before.is_some_and(|i| {
        let ends = lifted.inst(i).iced.flow_control() == FlowControl::UnconditionalBranch;
        ends && lifted.function_of(i) == f
    })
}

/// Whether the operand in memory is so many bytes above `rsp`.
fn is_at_rsp(iced: &Instruction, bytes: u64) -> bool {
    iced.memory_base() == Register::RSP
        && iced.memory_index() == Register::None
        && iced.memory_displacement64() == bytes
}

fn code(why: Unbalanced) -> RefusalCode {
    match why {
        Unbalanced::Computed(_) => RefusalCode::CodeReference,
        Unbalanced::Paths(..)
        | Unbalanced::RealignedPaths
        | Unbalanced::Above
        | Unbalanced::Deep(_)
        | Unbalanced::Left(_)
        | Unbalanced::Realigned
        | Unbalanced::Overwritten => RefusalCode::StackPointer,
    }
}

/// Names the routine that is called right before a function, where that it returns is all that
/// leads from there into the function.
fn believed(lifted: &Lifted<'_>, i: InstIdx, why: Unbalanced) -> String {
    let begins = lifted.function(lifted.function_of(i)).insts.start == i.0;
    let before = i.0.checked_sub(1).map(|i| lifted.inst(InstIdx(i)));
    let before =
        before.filter(|inst| inst.section == lifted.inst(i).section && is_call(&inst.iced));
    match (why, before.and_then(|inst| inst.target)) {
        (Unbalanced::Paths(..), Some(Destination::Import(callee))) if begins => {
            let callee = lifted.symbol_name(callee);
            format!(
                ", because nothing shows that `{callee}` does not return: declare it without \
                 `noreturn`, and put __builtin_trap() behind its call"
            )
        }
        _ => String::new(),
    }
}

fn reason(why: Unbalanced) -> String {
    match why {
        Unbalanced::Paths(one, other) => {
            format!("the stack is {one} bytes deep on one path to here and {other} on another")
        }
        Unbalanced::RealignedPaths => {
            "the stack is realigned, and not as deep on one path to here as on another".to_owned()
        }
        Unbalanced::Above => "rsp is moved above the return address".to_owned(),
        Unbalanced::Deep(bytes) => {
            let most = stack::MAX_FRAME;
            format!(
                "the frame has {bytes} bytes here, and it may have {most}: allocate large arrays"
            )
        }
        Unbalanced::Left(bytes) => {
            format!("the function ends with {bytes} bytes of its frame on the stack")
        }
        Unbalanced::Realigned => {
            "the function ends with its stack realigned: rsp is not what it was".to_owned()
        }
        Unbalanced::Computed(bytes) => format!(
            "an indirect jump with {bytes} bytes of the frame on the stack is to a label of the \
             function, and no table shows to which"
        ),
        Unbalanced::Overwritten => {
            "it returns after it may have written its own return address".to_owned()
        }
    }
}
