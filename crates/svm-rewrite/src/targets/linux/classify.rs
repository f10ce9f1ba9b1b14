//! The class of an instruction in a module for a stock kernel: most stay as they are,
//! and all that the kernel patches do.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};

use liveness::Reg;

use super::{named, system};
use crate::analyse::class::{Callee, Class, SiteClass, Space, StringOp};
use crate::analyse::classify::prefix;
use crate::analyse::classify::{
    Differences, Kept, Question, Refused, in_words, is_cache_hint, of_object, unless_load,
};
use crate::analyse::flow::Trap;
use crate::analyse::routines;
use crate::asm::{Branch, Index, Jump, Operand, Segment};
use crate::frame::facts::ends_beyond_arguments;
use crate::lift::{Destination, Inst, Lifted, is_filler};
use crate::refusal::RefusalCode;

const DIFFERENCES: Differences = Differences {
    refuse: system::refuse,
    first,
    refuse_form: refuse_prefixes,
};

/// Classifies one instruction.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(question: &Question<'_>) -> Result<Class, Refused> {
    let inst = question.lifted.inst(question.inst);
    let iced = &inst.iced;
    if question.kept != Some(Kept::Unused) {
        named::refuse(question)?;
    }
    let class = match question.kept {
        None => by_itself(question),
        Some(Kept::StaticBranch) => static_branch(inst),
        Some(Kept::Trace) if is_filler(iced) => Ok(Class::StaticNop),
        Some(Kept::Trace) => by_itself(question),
        Some(Kept::Prefix) => Ok(Class::Plain),
        Some(Kept::TypeCheck | Kept::TypeHash(_)) => Ok(Class::Keep(of_check(question))),
        Some(Kept::Unused) => Ok(Class::Keep(None)),
        Some(Kept::Alternative | Kept::Paravirt) => {
            in_kept_range(question).map(|class| Class::Keep(class.site_class()))
        }
        Some(Kept::Fixup) if routines::moves_port_bytes(iced) => {
            let reason = "bytes of a port whose faults are answered: VMware's call by them changes rbp, and nothing takes it back";
            Err((RefusalCode::Unsupported, reason))
        }
        Some(Kept::Fixup) => system::refuse(iced).map(|()| Class::Keep(Some(SiteClass::Other))),
        Some(Kept::Section) => system::refuse(iced).and_then(|()| in_kept_section(question)),
    }?;
    // What is known of the stack is the same on all ways from an instruction.
    if question.hidden.extra.skipped.contains(&question.inst.0) && moves_stack(question) {
        let reason =
            "it moves rsp where the kernel may put another instruction, or go on after a fault";
        return Err((RefusalCode::Patched, reason));
    }
    match class {
        Class::Keep(_) => movable(question, class),
        class => Ok(class),
    }
}

/// Whether `rsp` is another one after an instruction. A callee returns with what it was.
fn moves_stack(question: &Question<'_>) -> bool {
    let iced = &question.lifted.inst(question.inst).iced;
    question.survey.writes(Reg::RSP) && !routines::is_call(iced)
}

/// A static branch (`struct jump_entry`) is a `nop` or a `jmp`.
fn static_branch(inst: &Inst) -> Result<Class, Refused> {
    match (inst.target, Branch::of(&inst.iced)) {
        (None, _) if is_filler(&inst.iced) => Ok(Class::StaticNop),
        (Some(Destination::Inst(_)), Some(Branch::Jump(Jump::Always))) => {
            Ok(Class::KeepBranch(Jump::Always))
        }
        _ => Err((
            RefusalCode::Unsupported,
            "a static branch is a nop or a jmp",
        )),
    }
}

/// An instruction that stays keeps its bytes, except where they depend on its place: a
/// branch inside the object, or an operand relative to the instruction.
fn movable(question: &Question<'_>, class: Class) -> Result<Class, Refused> {
    let Question {
        lifted, inst: i, ..
    } = *question;
    let inst = lifted.inst(i);
    match inst.target {
        // A section that stays keeps its distances.
        Some(Destination::Inst(to))
            if question.kept == Some(Kept::Section) && lifted.inst(to).section == inst.section =>
        {
            Ok(class)
        }
        // So does a check of a type.
        Some(Destination::Inst(_)) if question.kept == Some(Kept::TypeCheck) => Ok(class),
        Some(Destination::Inst(_)) => match Branch::of(&inst.iced) {
            Some(Branch::Jump(jump)) => Ok(Class::KeepBranch(jump)),
            _ => Err((
                RefusalCode::Unsupported,
                "a branch of this form cannot stay where the kernel may patch it",
            )),
        },
        None if !inst.iced.is_ip_rel_memory_operand() || inst.displacement.is_some() => Ok(class),
        None if inst.iced.mnemonic() == Mnemonic::Lea => {
            let place = lifted.inst_at(inst.section, inst.iced.ip_rel_memory_address());
            let reason = "it refers into its own code, but to no instruction";
            place
                .map(Class::KeepOwnPlace)
                .ok_or((RefusalCode::Relocation, reason))
        }
        None => Err((
            RefusalCode::Relocation,
            "it reads its own code: an instruction-relative address without relocation",
        )),
        Some(Destination::Import(_) | Destination::Hypercall(..) | Destination::Behind(_)) => {
            Ok(class)
        }
    }
}

/// The kind that an instruction of a check of a type counts as.
fn of_check(question: &Question<'_>) -> Option<SiteClass> {
    let iced = &question.lifted.inst(question.inst).iced;
    let is_load = iced.op_count() == 2 && iced.op1_kind() == OpKind::Memory;
    is_load.then_some(SiteClass::Other)
}

fn by_itself(question: &Question<'_>) -> Result<Class, Refused> {
    let iced = &question.lifted.inst(question.inst).iced;
    if routines::is_hypercall(iced) {
        return match prefix::meaningless(iced, question.lifted.bytes(question.inst)) {
            Some(reason) => Err((RefusalCode::Prefix, reason)),
            None => Ok(Class::Keep(Some(SiteClass::Sensitive))),
        };
    }
    if calls_vmware(question) {
        let reason = "a call of VMware's by the bytes of a port: it takes registers and memory as they are, and cannot be made in pieces";
        return Err((RefusalCode::Unsupported, reason));
    }
    if is_sanitizer_trap(iced) && question.hidden.trap(question.inst) == Trap::Bug {
        return Ok(Class::Stop);
    }
    if iced.code() == Code::Popfq && !sets_direction(question.lifted) {
        let bytes = question.lifted.bytes(question.inst);
        return refuse_prefixes(iced, bytes, Class::PopFlags).map(|()| Class::PopFlags);
    }
    let class = of_object(question, &DIFFERENCES)?;
    if iced.flow_control() != FlowControl::Next {
        let bytes = question.lifted.bytes(question.inst);
        if let Some(reason) = prefix::meaningless_on_transfer(iced, bytes) {
            return Err((RefusalCode::Prefix, reason));
        }
    }
    refuse_segment(iced, class)?;
    let class = match class {
        Class::Memory(Space::Global) if named::ends_behind_section(question) => class,
        class => unless_kept(class, iced),
    };
    Ok(unless_load(class, iced, question.survey, question.accesses))
}

//      ud1l 22(%eax), %eax
//
/// Whether it is clang's trap of UBSAN (`-fsanitize-trap`). Behind it no kernel goes on: those before
/// Linux 6.13 know no `ud1`, later ones print the number of what was wrong (`decode_bug`, `handle_bug`,
/// arch/x86/kernel/traps.c: `BUG_UD1_UBSAN`). It reaches no memory.
fn is_sanitizer_trap(iced: &Instruction) -> bool {
    iced.code() == Code::Ud1_r32_rm32
        && iced.op0_register() == Register::EAX
        && iced.op1_kind() == OpKind::Memory
        && iced.memory_base() == Register::EAX
        && iced.memory_index() == Register::None
        && iced.segment_prefix() == Register::None
}

/// Whether any code of the object sets the direction flag: flags that are saved may have it then.
fn sets_direction(lifted: &Lifted<'_>) -> bool {
    let code = |inst: &Inst| inst.iced.code();
    lifted.insts.iter().any(|inst| code(inst) == Code::Std)
}

//      mov $0x564d5868, %eax
//      rep outsb
//
/// Whether it may be VMware's faster call. Arguments are in `rax rbx rdx rdi rbp`, which the bytes of
/// any other port do not depend on.
fn calls_vmware(question: &Question<'_>) -> bool {
    let iced = &question.lifted.inst(question.inst).iced;
    routines::moves_port_bytes(iced) && routines::knows_vmware(question.lifted)
}

/// Of operands relative to a segment, only per-CPU variables stay.
fn refuse_segment(iced: &Instruction, class: Class) -> Result<(), Refused> {
    if class.site_class() != Some(SiteClass::Percpu) {
        return Ok(());
    }
    let operand = Operand::of(iced);
    if operand.segment == Some(Segment::Fs) {
        return Err((
            RefusalCode::Unsupported,
            "%fs is user space's in the kernel",
        ));
    }
    if operand.narrow {
        let reason = "a per-CPU variable with an address of 32 bits";
        return Err((RefusalCode::Unsupported, reason));
    }
    Ok(())
}

/// An instruction that an alternative may replace stays as it is, so it must
/// reach no memory that would be translated.
fn in_kept_range(question: &Question<'_>) -> Result<Class, Refused> {
    let iced = &question.lifted.inst(question.inst).iced;
    match by_itself(question)? {
        Class::Drop => Ok(Class::Plain),
        class @ (Class::Keep(_) | Class::Branch(_) | Class::Plain) => Ok(class),
        _ if is_cache_hint(iced) => Ok(Class::Plain),
        _ => Err((
            RefusalCode::Patched,
            "it reaches memory through a register where the kernel may put another instruction",
        )),
    }
}

/// An instruction of a section that stays as it is. It must not reach memory through a
/// register; otherwise it may be any instruction.
fn in_kept_section(question: &Question<'_>) -> Result<Class, Refused> {
    match in_kept_range(question) {
        Err(refused @ (RefusalCode::Patched, _)) => Err(refused),
        _ => Ok(Class::Keep(None)),
    }
}

/// Instructions that a module may have and a driver in a hypervisor may not.
fn first(iced: &Instruction) -> Result<Option<Class>, Refused> {
    if is_cache_hint(iced) {
        return Ok(Some(Class::Prefetch(Space::Heap)));
    }
    in_words(iced)?;
    Ok((makes_frame(iced) || saves_flags(iced)).then_some(Class::Plain))
}

/// In a module for a stock kernel all extensions may stay, but no prefix without a meaning:
/// the verifier accepts none in what stays as it is, either. `nop` may be padded with any, and
/// a direct branch is encoded again.
fn refuse_prefixes(iced: &Instruction, bytes: &[u8], class: Class) -> Result<(), Refused> {
    let Some(reason) = prefix::meaningless(iced, bytes) else {
        return Ok(());
    };
    let padded = iced.mnemonic() == Mnemonic::Nop;
    match unless_kept(class, iced) {
        Class::Drop | Class::Branch(_) => Ok(()),
        _ if padded => Ok(()),
        _ => Err((RefusalCode::Prefix, reason)),
    }
}

/// `pushfq`, which reaches only the top of the stack.
fn saves_flags(iced: &Instruction) -> bool {
    iced.mnemonic() == Mnemonic::Pushfq
}

/// [`Class::Keep`] for an instruction that stays as it is, else the class.
fn unless_kept(class: Class, iced: &Instruction) -> Class {
    let keep = Class::Keep(class.site_class());
    match class {
        // Calls of `__fentry__`, and instructions that stop speculation.
        Class::Drop if iced.flow_control() != FlowControl::Next => keep,
        Class::Drop
        | Class::Unreached(_)
        | Class::Branch(_)
        | Class::Keep(_)
        | Class::KeepOwnPlace(_)
        | Class::KeepBranch(_)
        | Class::StaticNop
        | Class::Stop
        | Class::PopFlags
        | Class::TypeHash(_) => class,
        // What is known of the frame decides (`frame/refine.rs`). At most, `rsp` is where it
        // was at entry.
        class if class.is_in_frame() && ends_beyond_arguments(0, iced) => class,
        Class::Plain
        | Class::Stack
        | Class::Prefetch(_)
        | Class::AddressOf(_)
        | Class::Return
        | Class::Trap(_)
        | Class::Port(_)
        | Class::Realign(_) => keep,
        Class::FramePointerToStack => class,
        Class::Memory(Space::Heap) => class,
        Class::Memory(Space::Stack | Space::Global | Space::PerCpu(_)) => keep,
        // One instruction must stay one.
        Class::BitString(Space::PerCpu(_)) => keep,
        Class::BitString(Space::Stack | Space::Heap | Space::Global) => class,
        // Where `pop` writes to counts from `rsp` after it has moved.
        Class::PushMemory(Space::Heap) | Class::PopMemory(Space::Heap | Space::Stack) => class,
        Class::PushMemory(_) | Class::PopMemory(_) => keep,
        Class::Xlat | Class::String(..) => class,
        // The kernel has no port gate: it stays a string instruction with one pointer.
        Class::PortString(port, repeat) => {
            let op = if port.input {
                StringOp::Ins
            } else {
                StringOp::Outs
            };
            Class::String(op, port.log2, repeat)
        }
        // A thunk is an import; the kernel patches calls of it.
        Class::CallIndirect(Callee::Register(_)) | Class::JumpIndirect(Callee::Register(_)) => {
            match iced.op0_kind() {
                OpKind::Register => keep,
                _ => Branch::of(iced).map_or(keep, Class::Branch),
            }
        }
        Class::CallIndirect(Callee::Memory(Space::Heap))
        | Class::JumpIndirect(Callee::Memory(Space::Heap)) => class,
        Class::CallIndirect(Callee::Memory(_)) | Class::JumpIndirect(Callee::Memory(_)) => keep,
        Class::Switch(_) => class,
    }
}

/// Whether an instruction moves `rsp` in a way that kernel code makes frames: by a
/// constant, to an alignment, from another register.
fn makes_frame(iced: &Instruction) -> bool {
    use Mnemonic as M;
    let to_rsp = iced.op_count() == 2
        && iced.op0_kind() == OpKind::Register
        && iced.op0_register() == Register::RSP;
    let from_register = iced.op1_kind() == OpKind::Register;
    let from_memory = iced.op1_kind() == OpKind::Memory;
    // A word of the frame, in which the function has put an address of its frame: the
    // verifier follows it.
    let from_frame = matches!(
        Operand::of(iced).simple(),
        Some((Reg::RSP | Reg::RBP | Reg::R10, _))
    );
    match iced.mnemonic() {
        M::Pop => iced.code() == Code::Pop_r64 && iced.op0_register() == Register::RSP,
        M::Mov if to_rsp && from_memory => from_frame,
        // A frame whose size is in a register is of unknown size.
        M::Add | M::Sub | M::And => to_rsp && !from_memory && !from_register,
        M::Mov => to_rsp && !from_memory && points_to_frame(iced.op1_register()),
        M::Lea => to_rsp && Operand::of(iced).index == Index::None,
        M::Leave => true,
        _ => false,
    }
}

/// Registers that unwinding may count from. A move from any other register must become
/// a move by a constant.
fn points_to_frame(register: Register) -> bool {
    matches!(register, Register::RBP | Register::R10)
}
