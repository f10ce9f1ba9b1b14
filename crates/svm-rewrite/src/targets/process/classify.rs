//! The class of an instruction in a program.

use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind};
use twin_abi::Accesses;

use crate::analyse::Analysis;
use crate::analyse::class::{Class, SiteClass, Space};
use crate::analyse::classify::{self, MemoryOperands, Question, Refused, unless_load};
use crate::analyse::survey::MemoryEffect;
use crate::asm::Shape;
use crate::frame::through_frame_pointer;
use crate::lift::{Inst, InstIdx, R_X86_64_TLSDESC_CALL, is_filler};
use crate::refusal::{self, Refusal, RefusalCode};

/// Classifies one instruction.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(question: &Question<'_>) -> Result<Class, Refused> {
    classify::refuse_hypercall(question)?;
    let inst = question.lifted.inst(question.inst);
    let iced = &inst.iced;
    // It is one of a function with jump tables or computed gotos.
    let by_table = question.hidden.goes_by_table(question.inst);
    match iced.flow_control() {
        FlowControl::Next => straight(inst, question)
            .map(|class| unless_load(class, iced, question.survey, question.accesses)),
        FlowControl::IndirectCall if through_heap(inst) && !calls_descriptor(question) => {
            classify::callee(inst).map(Class::CallIndirect)
        }
        FlowControl::IndirectBranch if through_heap(inst) && !by_table => {
            classify::callee(inst).map(Class::JumpIndirect)
        }
        FlowControl::IndirectCall => Ok(Class::Keep(Some(SiteClass::IndirectCall))),
        FlowControl::IndirectBranch => Ok(Class::Keep(Some(SiteClass::IndirectJump))),
        FlowControl::ConditionalBranch
        | FlowControl::UnconditionalBranch
        | FlowControl::Call
        | FlowControl::Return
        | FlowControl::Exception
        | FlowControl::Interrupt
        | FlowControl::XbeginXabortXend => Ok(Class::Keep(None)),
    }
}

fn straight(inst: &Inst, question: &Question<'_>) -> Result<Class, Refused> {
    let iced = &inst.iced;
    if let Some((op, log2)) = classify::string_op(iced.code()) {
        return classify::string_repeat(iced).map(|repeat| Class::String(op, log2, repeat));
    }
    if let Some(class) = classify::xlat(iced)? {
        return Ok(class);
    }
    match classify::memory_operands(iced) {
        MemoryOperands::None if stores_unnamed(iced, question) => Err(classify::UNNAMED),
        MemoryOperands::None => Ok(Class::Keep(None)),
        MemoryOperands::Implicit => Err(classify::NO_TRANSLATION),
        MemoryOperands::One if has_other_place(iced) => Err(classify::REACHES_MORE),
        MemoryOperands::One if reaches_nothing(iced) => Ok(Class::Keep(None)),
        MemoryOperands::One => match kept_operand(inst) {
            Some(kind) => Ok(Class::Keep(Some(kind))),
            None if iced.has_xacquire_prefix() || iced.has_xrelease_prefix() => Err((
                RefusalCode::Prefix,
                "lock elision is not supported; processors no longer have it",
            )),
            None if may_be_frames(inst) => Ok(Class::Memory(Space::Heap)),
            None if loads_elements(question) => match question.accesses {
                Accesses::Stores => Ok(Class::Keep(Some(SiteClass::Heap))),
                Accesses::All => Err(LOADS_ELEMENTS),
            },
            None => classify::one_memory_operand(inst),
        },
    }
}

/// Instructions that only compute an address, and hints, which cannot fault.
fn reaches_nothing(iced: &Instruction) -> bool {
    iced.mnemonic() == Mnemonic::Lea || is_filler(iced) || classify::is_cache_hint(iced)
}

/// A store that no operand shows, and that is none to the stack, such as `xstore`.
fn stores_unnamed(iced: &Instruction, question: &Question<'_>) -> bool {
    // The decoder's tables do not have the line that `clzero` writes.
    let stores =
        question.survey.memory == MemoryEffect::Written || iced.mnemonic() == Mnemonic::Clzero;
    stores && !iced.is_stack_instruction()
}

/// Whether it reaches another place than that of its operand, which may be one that stays.
fn has_other_place(iced: &Instruction) -> bool {
    classify::stores_by_register(iced) || is_bndstx(iced)
}

/// It stores to a table that a register of the processor has. To the decoder it is the `nop`
/// that it is without MPX (SDM volume 2, BNDSTX).
fn is_bndstx(iced: &Instruction) -> bool {
    let opcode = matches!(
        iced.code(),
        Code::Reservednop_rm32_r32_0F1B | Code::Reservednop_rm64_r64_0F1B
    );
    opcode && !iced.has_rep_prefix() && !iced.has_repne_prefix()
}

/// A load of some elements, by a mask or from many places, which has no translation, but
/// needs none where loads stay.
fn loads_elements(question: &Question<'_>) -> bool {
    let iced = &question.lifted.inst(question.inst).iced;
    classify::only_reads(question.survey) && (classify::is_masked(iced) || iced.is_vsib())
}

/// The refusal of such a load.
const LOADS_ELEMENTS: Refused = (
    RefusalCode::Unsupported,
    "it loads some elements only, or from many places at once; with --accesses stores it stays",
);

/// Whether it reaches some elements of an operand that stays if its register is a frame pointer
/// ([`elements`] refuses it if not).
fn may_be_frames(inst: &Inst) -> bool {
    classify::is_masked(&inst.iced) && through_frame_pointer(inst)
}

/// Refuses accesses to some elements of an operand, where no frame pointer reaches it.
pub fn elements(analysis: &Analysis<'_>, classes: &[Class]) -> Vec<Refusal> {
    let Analysis {
        lifted, surveys, ..
    } = analysis;
    let mut refusals = Vec::new();
    for (i, class) in (0..).map(InstIdx).zip(classes) {
        let inst = lifted.inst(i);
        if *class != Class::Memory(Space::Heap) || !classify::is_masked(&inst.iced) {
            continue;
        }
        let (code, reason) = match classify::only_reads(&surveys[i.0 as usize]) {
            true => LOADS_ELEMENTS,
            false => classify::MASKED,
        };
        refusal::add(&mut refusals, lifted.refusal(code, i, reason));
    }
    refusals
}

/// The kind of an operand that stays as it is. Operands of a frame pointer are found
/// later, by [`crate::frame::refine::keep_frame_pointer`].
fn kept_operand(inst: &Inst) -> Option<SiteClass> {
    match inst.operand().shape() {
        Shape::Segment(_) => Some(SiteClass::Percpu),
        Shape::Stack => Some(SiteClass::Stack),
        Shape::Constant => Some(SiteClass::Global),
        Shape::Pointer => None,
    }
}

/// `call *x@TLSCALL(%rax)`, which the linker finds by its relocation and may replace
/// (-mtls-dialect=gnu2; A. Oliva, "Thread-Local Storage Descriptors for x86", 2.4).
fn calls_descriptor(question: &Question<'_>) -> bool {
    let inst = question.lifted.inst(question.inst);
    let section = question.lifted.sections[usize::from(inst.section.0)].id;
    let all = &question.lifted.object.section(section).relocations;
    let first = all.partition_point(|r| r.offset < inst.offset());
    let mut own = all[first..]
        .iter()
        .take_while(|r| r.offset == inst.offset());
    own.any(|r| r.kind == R_X86_64_TLSDESC_CALL)
}

fn through_heap(inst: &Inst) -> bool {
    inst.iced.op0_kind() == OpKind::Memory && kept_operand(inst).is_none()
}
