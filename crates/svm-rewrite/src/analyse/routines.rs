//! Imported routines that a rewriter must know by name.
//!
//! Everything here is a fact about the Linux kernel's assembly: which symbols
//! are no C functions and what they do to registers.

use elf_loader::Place;
use iced_x86::{FlowControl, Instruction, Mnemonic};
use liveness::Reg;

use crate::lift::{InstIdx, Lifted};

/// How a routine treats registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Convention {
    /// The psABI's.
    C,
    /// Keeps every register (called from inline assembly without clobbers).
    KeepsAll,
    /// A private one: may read any register but r10 and r11, may keep any.
    Private,
    /// A call of the hypervisor: may read any register, r10 among them, and may keep any.
    Hypercall,
    /// `__x86_indirect_thunk_<reg>`: an indirect call through the register.
    IndirectThunk(Reg),
}

/// The page of Xen's calls, of older kernels (arch/x86/xen/xen-head.S).
const PAGE: &str = "hypercall_page";

/// The convention of an imported routine.
pub fn convention(name: &str) -> Convention {
    if let Some(register) = indirect_thunk(name) {
        return Convention::IndirectThunk(register);
    }
    // arch/x86: ftrace's entry, and the preemption thunks that inline assembly
    // calls with no clobbers but the flags.
    const KEEPS_ALL: [&str; 6] = [
        "__fentry__",
        "__SCT__preempt_schedule",
        "__SCT__preempt_schedule_notrace",
        "preempt_schedule_thunk",
        "preempt_schedule_notrace_thunk",
        "__x86_return_thunk",
    ];
    // arch/x86/lib: arguments and results in registers of their own. Or what inline assembly
    // declares to be changed is less than the psABI allows: `clear_page` (page_64.h) keeps r10
    // and r11, and so do `clear_user` and copies of user memory (uaccess_64.h).
    const PRIVATE: [&str; 13] = [
        "__get_user_",
        "__put_user_",
        "cmpxchg8b_emu",
        "cmpxchg16b_emu",
        "this_cpu_cmpxchg",
        "__raw_callee_save_",
        "__sw_hweight",
        "call_rwsem_",
        "clear_page_",
        "__clear_pages_",
        "clear_user_",
        "rep_movs_alternative",
        "rep_stos_alternative",
    ];
    // Xen's fourth argument is in r10 (arch/x86/include/asm/xen/hypercall.h).
    if matches!(name, "__SCT__xen_hypercall" | PAGE) {
        Convention::Hypercall
    } else if KEEPS_ALL.contains(&name) {
        Convention::KeepsAll
    } else if PRIVATE.iter().any(|p| name.starts_with(p)) {
        Convention::Private
    } else {
        Convention::C
    }
}

/// Whether an object has the address of the page of Xen's calls, of older kernels. A call
/// there has its fourth argument in r10 (arch/x86/include/asm/xen/hypercall.h).
pub fn has_hypercalls(lifted: &Lifted<'_>) -> bool {
    let mut symbols = lifted.object.symbols.iter();
    symbols.any(|symbol| symbol.name == PAGE)
}

/// The register of `__x86_indirect_thunk_<reg>` and its variants.
pub fn indirect_thunk(name: &str) -> Option<Reg> {
    // The last one is that of assembly in Linux 5.12 and before (arch/x86/lib/retpoline.S).
    const THUNKS: [&str; 4] = [
        "__x86_indirect_thunk_",
        "__x86_indirect_call_thunk_",
        "__x86_indirect_jump_thunk_",
        "__x86_retpoline_",
    ];
    let register = THUNKS.iter().find_map(|p| name.strip_prefix(p))?;
    let mut all = (0..Reg::COUNT).filter_map(Reg::new);
    all.find(|r| r.name() == register)
}

/// Whether a jump there is a return.
pub fn is_return_thunk(name: &str) -> bool {
    name == "__x86_return_thunk"
}

/// Whether a call there only serves tracing.
pub fn is_trace_entry(name: &str) -> bool {
    matches!(name, "__fentry__" | "mcount")
}

/// Whether the kernel declares the routine `noreturn` (objtool has a list like this).
/// The code after a call of it may belong to another path.
pub fn never_returns(name: &str) -> bool {
    matches!(
        name,
        "__stack_chk_fail"
            | "fortify_panic"
            | "__fortify_panic"
            | "panic"
            | "nmi_panic"
            | "do_exit"
            | "make_task_dead"
            | "rewind_stack_and_make_dead"
            | "do_group_exit"
            | "kthread_exit"
            | "kthread_complete_and_exit"
            | "__module_put_and_kthread_exit"
            | "complete_and_exit"
            | "machine_real_restart"
            | "emergency_restart"
            | "usercopy_abort"
            | "snp_abort"
            | "stop_this_cpu"
            | "__ubsan_handle_builtin_unreachable"
            | "__reiserfs_panic"
            | "lbug_with_loc"
            | "ex_handler_msr_mce"
            | "mpt_halt_firmware"
            | "abort"
            | "exit"
            | "_exit"
            | "__assert_fail"
    )
}

/// Whether an instruction calls the machine's own hypervisor. To the decoder it is a call.
pub fn is_hypercall(iced: &Instruction) -> bool {
    matches!(iced.mnemonic(), Mnemonic::Vmcall | Mnemonic::Vmmcall)
}

/// Whether an instruction calls a function.
pub fn is_call(iced: &Instruction) -> bool {
    let calls = matches!(
        iced.flow_control(),
        FlowControl::Call | FlowControl::IndirectCall
    );
    calls && !is_hypercall(iced)
}

/// Whether this is a call through a slot of the kernel's `pv_ops`.
pub fn is_paravirtual(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let inst = lifted.inst(i);
    let slot = inst.displacement.map(|v| lifted.value(v).symbol);
    let named = slot.is_some_and(|symbol| {
        let symbol = lifted.object.symbol(symbol);
        symbol.name == "pv_ops" && symbol.place == Place::Undefined
    });
    named && inst.iced.flow_control() == FlowControl::IndirectCall
}
