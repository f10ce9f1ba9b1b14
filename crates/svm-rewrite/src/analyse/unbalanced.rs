//! Refuses functions that do not keep their stack in order: where a frame is, the rest of the
//! rewriter and the verifier know only if it is the same on every path.

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
    // Where return addresses are compared, one that was written is found when it runs.
    let found = flow.unbalanced.iter();
    let found = found.filter(|(_, why)| *why != Unbalanced::Overwritten || !rules.guards_returns);
    found.map(|(i, why)| {
        let reason = reason(*why) + &believed(lifted, *i, *why);
        lifted.refusal(code(*why), *i, reason)
    })
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
            format!("the frame has {bytes} bytes here, and it may have {most}")
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
