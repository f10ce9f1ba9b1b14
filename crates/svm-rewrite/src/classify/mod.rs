//! What each instruction is to Software Virtual Memory.
//!
//! A pure function of the lifted instruction. Every way in which an instruction
//! can reach memory has its case; what has none is refused, never copied on the
//! assumption that it is harmless. This file tells the cases apart; each file below
//! handles one of them.

mod implied;
mod memory;
mod sensitive;
mod stack_pointer;

use iced_x86::{Code as Op, FlowControl, Instruction, Mnemonic, OpKind};

use crate::class::{Callee, Class, Kind, Space};
use crate::extension;
use crate::flow::Unseen;
use crate::lift::{Function, Inst, InstIdx, Lifted, Target, is_filler};
use crate::linkage;
use crate::linux::{self, Kept};
use crate::policy::{self, Policy};
use crate::prefix;
use crate::refusal::{Code, Refusal};
use crate::registers::gpr;
use crate::survey::{Memory, Survey};

pub use implied::{NO_TRANSLATION, string_op, string_repeat, xlat};
pub use memory::{MemoryOperands, memory_operands, one_memory_operand};

use implied::{port, port_string};
use memory::space;
use sensitive::refuse_sensitive;
pub use stack_pointer::{PART_OF_A_WORD, WORD};
use stack_pointer::{in_words, stack_pointer};

/// Classifies one instruction of a function.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(
    lifted: &Lifted<'_>,
    unseen: &Unseen,
    survey: &Survey,
    function: &Function,
    i: InstIdx,
    policy: &Policy,
) -> Result<Class, Refusal> {
    let iced = &lifted.inst(i).iced;
    let class = match policy.kept(i) {
        Some(Kept::Section) => linux::refuse_system(iced)
            .and_then(|()| in_kept_section(lifted, unseen, survey, i, policy)),
        Some(Kept::StaticBranch) => Ok(Class::StaticBranch),
        Some(Kept::Fixup) => linux::refuse_system(iced).map(|()| Class::Keep(Some(Kind::Other))),
        _ if function.padding => Ok(Class::Drop),
        Some(Kept::Alternative | Kept::Paravirt) => {
            in_kept_range(lifted, unseen, survey, i, policy).map(|class| Class::Keep(class.kind()))
        }
        None if policy.is_process() => {
            crate::process::classify(lifted.inst(i), unseen.goes_by_table(i))
        }
        None => {
            by_itself(lifted, unseen, survey, i, policy).map(|class| policy.settle(class, iced))
        }
    };
    class.map_err(|(code, reason)| lifted.refusal(code, i, reason))
}

/// An instruction that an alternative may replace stays as it is, so it must
/// reach no memory that would be translated.
fn in_kept_range(
    lifted: &Lifted<'_>,
    unseen: &Unseen,
    survey: &Survey,
    i: InstIdx,
    policy: &Policy,
) -> Result<Class, (Code, &'static str)> {
    let iced = &lifted.inst(i).iced;
    let class = by_itself(lifted, unseen, survey, i, policy)?;
    let class = match policy.settle(class, iced) {
        Class::Drop => Class::Plain,
        class => class,
    };
    match class {
        Class::Keep(_) | Class::Branch | Class::Plain => Ok(class),
        _ if policy::is_cache_hint(iced) => Ok(Class::Plain),
        _ => Err((
            Code::Patched,
            "it reaches memory through a register where the kernel may put another instruction",
        )),
    }
}

/// An instruction of a section that stays as it is: it may be anything that reaches
/// no memory through a register.
fn in_kept_section(
    lifted: &Lifted<'_>,
    unseen: &Unseen,
    survey: &Survey,
    i: InstIdx,
    policy: &Policy,
) -> Result<Class, (Code, &'static str)> {
    match in_kept_range(lifted, unseen, survey, i, policy) {
        Err(refused @ (Code::Patched, _)) => Err(refused),
        _ => Ok(Class::Keep(None)),
    }
}

/// The class of an instruction that no metadata names.
fn by_itself(
    lifted: &Lifted<'_>,
    unseen: &Unseen,
    survey: &Survey,
    i: InstIdx,
    policy: &Policy,
) -> Result<Class, (Code, &'static str)> {
    let inst = lifted.inst(i);
    let bytes = lifted.bytes(i);
    if policy.is_linux() {
        linux::refuse_system(&inst.iced)?;
    } else {
        refuse_sensitive(&inst.iced)?;
    }
    if let Some(reason) = prefix::ambiguous(&inst.iced, bytes) {
        return Err((Code::Unsupported, reason));
    }
    let listed = |class| match policy.is_linux() {
        true => refuse_prefixes(&inst.iced, bytes, policy.settle(class, &inst.iced)).map(|_| class),
        false => refuse_unlisted(&inst.iced, bytes, class),
    };
    match inst.iced.flow_control() {
        FlowControl::Next => classify_straight(inst, survey, policy).and_then(listed),
        FlowControl::ConditionalBranch => listed(Class::Branch),
        FlowControl::UnconditionalBranch | FlowControl::Call => Ok(classify_direct(lifted, inst)),
        FlowControl::IndirectCall => callee(inst).map(Class::CallIndirect),
        FlowControl::IndirectBranch => callee(inst).map(Class::JumpIndirect),
        FlowControl::Return if inst.iced.code() == Op::Retnq => Ok(Class::Return),
        FlowControl::Return => Err((
            Code::Unsupported,
            "this form of return moves more than a return address",
        )),
        // `ud1` marks the end of a static call's trampoline.
        FlowControl::Exception if matches!(inst.iced.mnemonic(), Mnemonic::Ud1 | Mnemonic::Ud2) => {
            Ok(Class::Trap(unseen.trap(i)))
        }
        FlowControl::Interrupt if inst.iced.mnemonic() == Mnemonic::Int3 => listed(Class::Plain),
        FlowControl::Exception | FlowControl::Interrupt | FlowControl::XbeginXabortXend => {
            Err((Code::Privileged, "this control transfer leaves the driver"))
        }
    }
}

fn classify_direct(lifted: &Lifted<'_>, inst: &Inst) -> Class {
    let Some(Target::Import(s)) = inst.target else {
        return Class::Branch;
    };
    let name = lifted.symbol_name(s);
    let is_call = inst.iced.flow_control() == FlowControl::Call;
    match linkage::indirect_thunk(name) {
        Some(register) if is_call => Class::CallIndirect(Callee::Register(register)),
        Some(register) => Class::JumpIndirect(Callee::Register(register)),
        None if linkage::is_return_thunk(name) && !is_call => Class::Return,
        None if linkage::is_trace_entry(name) && is_call => Class::Drop,
        None => Class::Branch,
    }
}

/// Where an indirect transfer takes its destination from.
///
/// # Errors
/// A form that is not known.
pub fn callee(inst: &Inst) -> Result<Callee, (Code, &'static str)> {
    match inst.iced.op0_kind() {
        OpKind::Register if inst.iced.op0_register().is_gpr64() => Ok(Callee::Register(
            gpr(inst.iced.op0_register()).expect("a general register"),
        )),
        OpKind::Memory if inst.iced.memory_size().size() == 8 => Ok(Callee::Memory(space(inst)?)),
        _ => Err((Code::Unsupported, "a far or narrow indirect transfer")),
    }
}

/// What is replaced or dropped may be of any extension; what is kept may not.
fn refuse_unlisted(
    iced: &Instruction,
    bytes: &[u8],
    class: Class,
) -> Result<Class, (Code, &'static str)> {
    let replaced = matches!(
        class,
        Class::Drop
            | Class::Xlat
            | Class::Port(_)
            | Class::Trap(_)
            | Class::FramePointerToStack
            | Class::Realign(_)
    );
    if replaced {
        return Ok(class);
    }
    let extension = extension::refused(iced).map(|reason| (Code::Extension, reason));
    let prefix = || prefix::meaningless(iced, bytes).map(|reason| (Code::Prefix, reason));
    extension.or_else(prefix).map_or(Ok(class), Err)
}

/// In a module for a stock kernel all extensions may stay; a translated access
/// is encoded anew, which keeps no prefix without meaning.
fn refuse_prefixes(
    iced: &Instruction,
    bytes: &[u8],
    class: Class,
) -> Result<Class, (Code, &'static str)> {
    if matches!(class, Class::Keep(_) | Class::Drop | Class::Branch) {
        return Ok(class);
    }
    match prefix::meaningless(iced, bytes) {
        Some(reason) => Err((Code::Prefix, reason)),
        None => Ok(class),
    }
}

fn classify_straight(
    inst: &Inst,
    survey: &Survey,
    policy: &Policy,
) -> Result<Class, (Code, &'static str)> {
    let iced = &inst.iced;
    if is_filler(iced) {
        return Ok(Class::Drop);
    }
    if policy.is_linux() && policy::is_cache_hint(iced) {
        return Ok(Class::Prefetch(Space::Heap));
    }
    in_words(iced)?;
    if let Some(port) = port(iced) {
        return Ok(Class::Port(port));
    }
    if let Some((op, log2)) = string_op(iced.code()) {
        return string_repeat(iced).map(|repeat| Class::String(op, log2, repeat));
    }
    if let Some(port) = port_string(iced.code()) {
        return string_repeat(iced).map(|repeat| Class::PortString(port, repeat));
    }
    if let Some(class) = xlat(iced)? {
        return Ok(class);
    }
    if policy.is_linux() && (policy::makes_frame(iced) || saves_flags(iced)) {
        return Ok(Class::Plain);
    }
    if let Some(class) = stack_pointer(iced, survey)? {
        return Ok(class);
    }
    match memory_operands(iced) {
        MemoryOperands::None => no_explicit_memory(iced, survey),
        MemoryOperands::One => one_memory_operand(inst),
        MemoryOperands::Implicit => Err(NO_TRANSLATION),
    }
}

/// `pushfq`: what it reaches is the top of the stack.
fn saves_flags(iced: &Instruction) -> bool {
    iced.mnemonic() == Mnemonic::Pushfq
}

fn no_explicit_memory(iced: &Instruction, survey: &Survey) -> Result<Class, (Code, &'static str)> {
    let plain_stack = matches!(iced.mnemonic(), Mnemonic::Push | Mnemonic::Pop);
    if plain_stack && iced.stack_pointer_increment().abs() == 8 {
        return Ok(Class::Plain);
    }
    // For the other word size; nothing at this one (SDM volume 2, ENDBR32).
    if iced.mnemonic() == Mnemonic::Endbr32 {
        return Ok(Class::Drop);
    }
    if survey.memory == Memory::Untouched && !iced.is_stack_instruction() {
        return Ok(Class::Plain);
    }
    Err((Code::Unsupported, "it reaches memory without naming it"))
}
