//! Names of the kernel's assembly that are no routines of the psABI.
//!
//! Where processors enter the kernel (`DECLARE_IDTENTRY`, arch/x86/include/asm/idtentry.h), it
//! ends with `iretq`, which takes `rip`, `rsp` and flags from the frame of whoever came there. The
//! kernel exports one such place, for KVM's handling of NMIs.
//!
//! `__put_user_4` and its siblings leave a limit of user addresses in `rbx`
//! (arch/x86/lib/putuser.S). They are called by their names; whoever calls a pointer believes that
//! `rbx` is kept.
//!
//! A thunk goes on at the address in a register (arch/x86/lib/retpoline.S). It is reached by its name,
//! which says the register.

use elf_loader::{Place, Symbol};
use iced_x86::FlowControl;

use super::unresolved::naming;
use crate::lift::Lifted;
use crate::refusal::{Refusal, RefusalCode};

/// How the names of entries begin; the last are those of a guest of Xen's
/// (arch/x86/xen/xen-asm.S).
const ENTRIES: [&str; 6] = [
    "asm_exc_",
    "asm_sysvec_",
    "asm_int80_",
    "asm_common_interrupt",
    "asm_spurious_interrupt",
    "xen_asm_",
];

/// Refusals of what names them, except calls of the second kind and branches to the third.
pub fn find(lifted: &Lifted<'_>) -> Vec<Refusal> {
    let mut found = naming(
        lifted,
        |symbol| is_imported(symbol) && ENTRIES.iter().any(|e| symbol.name.starts_with(e)),
        |_| true,
        (RefusalCode::BranchTarget, |name: &str| {
            format!(
                "`{name}` is the entry of an interrupt, which does not return: it takes rip and \
                 rsp from the frame"
            )
        }),
    );
    found.extend(naming(
        lifted,
        |symbol| is_imported(symbol) && is_put_user(&symbol.name),
        |inst| inst.iced.flow_control() != FlowControl::Call,
        (RefusalCode::BranchTarget, |name: &str| {
            format!("`{name}` changes rbx, so it is called by its name, and no other way")
        }),
    ));
    found.extend(naming(
        lifted,
        |symbol| is_imported(symbol) && is_thunk(&symbol.name),
        |inst| !is_branch(inst.iced.flow_control()),
        (RefusalCode::BranchTarget, |name: &str| {
            format!("`{name}` goes on at the address in a register, so its own address is nowhere")
        }),
    ));
    found
}

fn is_branch(flow: FlowControl) -> bool {
    use FlowControl::{Call, ConditionalBranch, UnconditionalBranch};
    matches!(flow, Call | ConditionalBranch | UnconditionalBranch)
}

/// `__x86_indirect_thunk_rax`; `__x86_retpoline_rax` of assembly in Linux 5.12 and before.
fn is_thunk(name: &str) -> bool {
    let kinds = ["__x86_indirect_", "__x86_retpoline_"];
    kinds.iter().any(|kind| name.starts_with(kind))
}

fn is_imported(symbol: &Symbol<'_>) -> bool {
    symbol.place == Place::Undefined
}

/// `__put_user_4`, `__put_user_nocheck_4`, and not `__put_user_ns`.
fn is_put_user(name: &str) -> bool {
    let rest = name.strip_prefix("__put_user_");
    let size = rest.map(|rest| rest.strip_prefix("nocheck_").unwrap_or(rest));
    matches!(size, Some("1" | "2" | "4" | "8"))
}
