//! Which instructions may be where the entries of the tables say, each with what the kernel
//! writes there.

use elf_loader::special::{Entry, SpecialKind};

use super::reader::{Reader, SectionPlace};
use crate::insn::{BranchTarget, Insn, Op, Routine};

impl Reader<'_, '_> {
    /// Whether an entry is one of the runtime's own.
    pub(super) fn is_runtimes_own(
        &self,
        kind: SpecialKind,
        entry: &Entry,
        site: SectionPlace,
    ) -> bool {
        match kind {
            SpecialKind::ReturnSites => self.returns(site),
            // A BUG. After a WARN the runtime would let the driver go on.
            SpecialKind::BugTable => !entry.is_warning(),
            // objtool makes them where the runtime is a part of compiled texts. The
            // bytes before the called function are known, and are no padding.
            SpecialKind::CallSites => self.image.runtime_calls.contains(&site.1),
            _ => false,
        }
    }

    //      call __fentry__         or      nopl 0(%rax,%rax)
    //
    // ftrace_nop_initialize, kernel/trace/ftrace.c; what is called then takes the word
    // behind its own return address for the function's (ftrace_graph_func,
    // arch/x86/kernel/ftrace.c). In a kernel that clang made, objtool has made the call
    // a nop (`--mnop`), and the kernel makes it a call again (ftrace_make_call, ibid.)
    pub(super) fn is_traced(&self, insn: &Insn) -> bool {
        let called = is_trace_call(insn) && insn.len == 5;
        let bytes = self.image.bytes(insn);
        called || matches!(insn.op, Op::Nop) && bytes == Some(&[0x0f, 0x1f, 0x44, 0, 0])
    }

    //      jmp __x86_return_thunk
    //
    // patch_return, arch/x86/kernel/alternative.c: all of the instruction is replaced.
    // clang's has a prefix (-mindirect-branch-cs-prefix)
    pub(super) fn is_return(&self, insn: &Insn) -> bool {
        let bytes = self.image.bytes(insn);
        matches!(insn.op, Op::Jump(BranchTarget::Routine(Routine::Imported)))
            && matches!(bytes, Some([0xe9, ..] | [0x2e, 0xe9, ..]))
            && self.names(insn) == "__x86_return_thunk"
    }

    /// Whether it is the `ud2` of a BUG or a WARN.
    pub(super) fn is_ud2(&self, insn: &Insn) -> bool {
        self.image.bytes(insn) == Some(&[0x0f, 0x0b])
    }

    // poison_endbr, arch/x86/kernel/alternative.c: a nop of the same length
    pub(super) fn is_endbr64(&self, insn: &Insn) -> bool {
        self.image.bytes(insn) == Some(&[0xf3, 0x0f, 0x1e, 0xfa])
    }
}

/// Whether it is a call of the trace entry.
pub(super) fn is_trace_call(insn: &Insn) -> bool {
    matches!(insn.op, Op::Call(BranchTarget::Routine(Routine::Trace)))
}

/// Whether it is a branch to an indirect thunk (patch_retpoline,
/// arch/x86/kernel/alternative.c).
pub(super) fn is_thunked(insn: &Insn) -> bool {
    matches!(
        insn.op,
        Op::Call(BranchTarget::Routine(Routine::Thunk(_)))
            | Op::Jump(BranchTarget::Routine(Routine::Thunk(_)))
            | Op::Branch(_, BranchTarget::Routine(Routine::Thunk(_)))
    )
}

/// Whether it is a call of a function (patch_call, arch/x86/kernel/callthunks.c). What is
/// written before the called function is judged for all calls. Between slow paths are bytes that
/// are known, and no padding; before the first one is another section.
pub(super) fn is_call(insn: &Insn) -> bool {
    matches!(
        insn.op,
        Op::Call(
            BranchTarget::Insn(_)
                | BranchTarget::Routine(
                    Routine::Imported | Routine::Trace | Routine::PutUser | Routine::Slow(_)
                )
        )
    ) && insn.len == 5
}
