//! Imported routines that a rewriter must know by name.
//!
//! Everything here is a fact about the Linux kernel's assembly: which symbols
//! are no C functions and what they do to registers.

use elf_loader::Place;
use elf_loader::consts::SHF_ALLOC;
use iced_x86::{Code, FlowControl, Instruction, Mnemonic};
use liveness::Reg;

use crate::analyse::flow::Conventions;
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
    // and r11, and so do `clear_user` and copies of user memory (uaccess_64.h). Barriers of
    // predictors change rax, rcx and rdx alone (nospec-branch.h, entry/entry.S).
    const PRIVATE: [&str; 19] = [
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
        "entry_ibpb",
        "write_ibpb",
        "clear_bhb_loop",
        "entry_untrain_ret",
        "retbleed_untrain_ret",
        "srso_",
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

/// Whether it is a thunk that continues at an address in a register or on the stack, and none of
/// those above: one by which kernels replace these (arch/x86/lib/retpoline.S), or a compiler's own.
pub fn is_other_thunk(name: &str) -> bool {
    const BEGIN: [&str; 5] = [
        "__x86_indirect_",
        "__x86_retpoline_",
        "__llvm_retpoline_",
        "__llvm_external_retpoline_",
        "__llvm_lvi_thunk_",
    ];
    let known = indirect_thunk(name).is_some() || is_return_thunk(name);
    let plain = name.strip_prefix("__pi_").unwrap_or(name);
    let begins = BEGIN.iter().any(|begin| plain.starts_with(begin));
    !known && (begins || plain.ends_with("_return_thunk"))
}

/// Whether a call there only serves tracing.
pub fn is_trace_entry(name: &str) -> bool {
    matches!(name, "__fentry__" | "mcount")
}

/// Whether a routine never returns, so that the code after a call of it may belong to another
/// path. In a program, whose functions may have any name, only the C library's are known.
pub fn never_returns(name: &str, conventions: Conventions) -> bool {
    let in_kernel = || ends_kernel_code(name) || is_rust_panic(name);
    ends_program(name) || conventions == Conventions::Psabi && in_kernel()
}

/// Whether the C library, or a compiler's check of the stack, declares it so.
fn ends_program(name: &str) -> bool {
    matches!(
        name,
        "abort" | "exit" | "_exit" | "__assert_fail" | "__stack_chk_fail"
    )
}

/// Whether the kernel declares it `noreturn` (objtool has a list like this). A routine that
/// returns seldom is none of these: `nmi_panic` does where its processor panics already
/// (kernel/panic.c), and compilers have code for that after it.
fn ends_kernel_code(name: &str) -> bool {
    matches!(
        name,
        "panic"
            | "vpanic"
            | "fortify_panic"
            | "__fortify_panic"
            | "usercopy_abort"
            | "snp_abort"
            | "stop_this_cpu"
            | "machine_real_restart"
            | "do_exit"
            | "do_task_dead"
            | "make_task_dead"
            | "rewind_stack_and_make_dead"
            | "do_group_exit"
            | "kthread_exit"
            | "kthread_complete_and_exit"
            | "complete_and_exit"
            | "__module_put_and_exit"
            | "__module_put_and_kthread_exit"
            | "kunit_try_catch_throw"
            | "__kunit_abort"
            | "__ubsan_handle_builtin_unreachable"
            | "__reiserfs_panic"
            | "lbug_with_loc"
            | "ex_handler_msr_mce"
            | "mpt_halt_firmware"
            | "rust_helper_BUG"
    )
}

/// Whether the mangled name is of a function of Rust's `core` that panics. What is in
/// `core::panicking` does; elsewhere these do (`is_rust_noreturn` of objtool has the same).
fn is_rust_panic(name: &str) -> bool {
    let is_failure = |path: &str| {
        path.starts_with("9panicking")
            || path.starts_with("5slice5index") && path.ends_with("_fail")
            || matches!(
                path,
                "6option13expect_failed"
                    | "6option13unwrap_failed"
                    | "6result13unwrap_failed"
                    | "5sliceSp15copy_from_slice17len_mismatch_fail"
            )
    };
    path_in_core(name).is_some_and(is_failure)
}

/// The path in the crate `core` of a function, mangled as Rust's v0 does it:
/// `_R NvNtNt Cs<disambiguator>_ 4core <path>`, with `I` before it if the function is generic.
fn path_in_core(name: &str) -> Option<&str> {
    let path = name.strip_prefix("_R")?;
    let path = path.strip_prefix('I').unwrap_or(path).strip_prefix("Nv")?;
    let nested = |c: char| matches!(c, 'N' | 'v' | 't' | 'M');
    let (_, path) = path
        .trim_start_matches(nested)
        .strip_prefix("Cs")?
        .split_once('_')?;
    path.strip_prefix("4core")
}

/// Whether an instruction calls the machine's own hypervisor. To the decoder it is a call.
pub fn is_hypercall(iced: &Instruction) -> bool {
    matches!(iced.mnemonic(), Mnemonic::Vmcall | Mnemonic::Vmmcall)
}

/// Whether an instruction copies bytes between a port and memory, as VMware's faster call does
/// (`vmware_hypercall_hb_out`, arch/x86/include/asm/vmware.h).
pub fn moves_port_bytes(iced: &Instruction) -> bool {
    matches!(iced.code(), Code::Outsb_DX_m8 | Code::Insb_m8_DX)
}

/// Whether an object has the number of VMware's calls, which is in `eax` there. Where that comes from is
/// not followed: an object that has it in anything that is loaded may make such calls.
pub fn knows_vmware(lifted: &Lifted<'_>) -> bool {
    const MAGIC: [u8; 4] = 0x564d_5868_u32.to_le_bytes();
    let mut sections = lifted.object.sections();
    sections.any(|(_, section)| {
        section.flags & SHF_ALLOC != 0 && section.data.windows(4).any(|word| word == MAGIC)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panics_of_rust_never_return() {
        for name in [
            "_RNvNtCscIHVMyPnRZn_4core9panicking9panic_fmt",
            "_RNvNtNtCscIHVMyPnRZn_4core9panicking11panic_const24panic_const_add_overflow",
            "_RINvNtCscIHVMyPnRZn_4core9panicking13assert_failedjjECs1_4mine",
            "_RNvNtCscIHVMyPnRZn_4core6result13unwrap_failed",
            "_RNvNtNtCscIHVMyPnRZn_4core5slice5index16slice_index_fail",
            "_RNvNvMNtCscIHVMyPnRZn_4core5sliceSp15copy_from_slice17len_mismatch_fail",
        ] {
            assert!(never_returns(name, Conventions::Psabi), "{name}");
        }
    }

    #[test]
    fn others_may_return() {
        for name in [
            "_RNvNtCscIHVMyPnRZn_4core3fmt5write",
            "_RNvNtNtCscIHVMyPnRZn_4mine4core9panicking9panic_fmt",
            "_RNvMs_NtCscIHVMyPnRZn_4core6optionINtB4_6OptionE13unwrap_failed",
            "_RINvNtCs1_4mine3runNtNtCscIHVMyPnRZn_4core9panicking10AssertKindECs1_4mine",
            "nmi_panic",
            "emergency_restart",
        ] {
            assert!(!never_returns(name, Conventions::Psabi), "{name}");
        }
    }

    #[test]
    fn a_program_may_have_a_panic_that_returns() {
        assert!(!never_returns("panic", Conventions::Any));
        assert!(never_returns("exit", Conventions::Any));
    }
}
