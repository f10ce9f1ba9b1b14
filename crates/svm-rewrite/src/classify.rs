//! What each instruction is to Software Virtual Memory.
//!
//! A pure function of the lifted instruction. Every way in which an instruction
//! can reach memory has its case; what has none is refused, never copied on the
//! assumption that it is harmless.

use iced_x86::{Code as Op, FlowControl, Instruction, Mnemonic, OpKind, Register};
use liveness::Reg;

use crate::class::{Callee, Class, Kind, Port, Repeat, Segment, Space, StringOp};
use crate::copies;
use crate::extension;
use crate::flow::Flow;
use crate::lift::{Function, Inst, InstIdx, Lifted, Target, is_filler};
use crate::linkage;
use crate::linux::{self, Kept};
use crate::policy::{self, Policy};
use crate::prefix;
use crate::refusal::{Code, Refusal};
use crate::registers::gpr;
use crate::survey::{Memory, Survey};

/// Classifies one instruction of a function.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(
    lifted: &Lifted<'_>,
    flow: &Flow,
    survey: &Survey,
    function: &Function,
    i: InstIdx,
    policy: &Policy,
) -> Result<Class, Refusal> {
    let iced = &lifted.inst(i).iced;
    let class = match policy.kept(i) {
        Some(Kept::Section) => linux::refuse_system(iced).map(|()| Class::Keep(None)),
        Some(Kept::StaticBranch) => Ok(Class::StaticBranch),
        Some(Kept::Fixup) => linux::refuse_system(iced).map(|()| Class::Keep(Some(Kind::Other))),
        _ if function.padding => Ok(Class::Drop),
        Some(Kept::Alternative | Kept::Paravirt) => {
            in_kept_range(lifted, flow, survey, i, policy).map(|class| Class::Keep(class.kind()))
        }
        None if policy.is_process() => {
            crate::process::classify(lifted.inst(i), flow.goes_by_table(i))
        }
        None => by_itself(lifted, flow, survey, i, policy).map(|class| policy.settle(class, iced)),
    };
    class.map_err(|(code, reason)| lifted.refusal(code, i, reason))
}

/// An instruction that an alternative may replace stays as it is, so it must
/// reach no memory that would be translated.
fn in_kept_range(
    lifted: &Lifted<'_>,
    flow: &Flow,
    survey: &Survey,
    i: InstIdx,
    policy: &Policy,
) -> Result<Class, (Code, &'static str)> {
    let iced = &lifted.inst(i).iced;
    let class = by_itself(lifted, flow, survey, i, policy)?;
    let class = match policy.settle(class, iced) {
        Class::Drop => Class::Plain,
        class => class,
    };
    match class {
        Class::Keep(_) | Class::Branch | Class::Plain => Ok(class),
        _ if policy::is_cache_hint(iced) => Ok(Class::Plain),
        _ => Err((
            Code::Metadata,
            "it reaches memory through a register where the kernel may put another instruction",
        )),
    }
}

/// The class of an instruction that no metadata names.
fn by_itself(
    lifted: &Lifted<'_>,
    flow: &Flow,
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
            Ok(Class::Trap(flow.trap(i)))
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

/// Instructions that only the kernel may execute, or that change state which
/// the contract keeps from drivers (P3).
fn refuse_sensitive(iced: &Instruction) -> Result<(), (Code, &'static str)> {
    use Mnemonic as M;
    if matches!(
        iced.mnemonic(),
        M::In | M::Out | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd
    ) {
        return Ok(());
    }
    let touches_system_register = (0..iced.op_count()).any(|op| {
        iced.op_kind(op) == OpKind::Register && {
            let r = iced.op_register(op);
            r.is_segment_register() || r.is_cr() || r.is_dr() || r.is_tr()
        }
    });
    let odd = matches!(
        iced.mnemonic(),
        M::Pushf
            | M::Pushfd
            | M::Pushfq
            | M::Popf
            | M::Popfd
            | M::Popfq
            | M::Syscall
            | M::Sysenter
            | M::Sysret
            | M::Sysexit
            | M::Int
            | M::Int1
            | M::Into
            | M::Iret
            | M::Iretd
            | M::Iretq
            | M::Cli
            | M::Sti
            | M::Hlt
            | M::Clac
            | M::Stac
            | M::Sgdt
            | M::Sidt
            | M::Sldt
            | M::Str
            | M::Smsw
            | M::Lar
            | M::Lsl
            | M::Verr
            | M::Verw
            | M::Rdfsbase
            | M::Rdgsbase
            | M::Wrfsbase
            | M::Wrgsbase
            | M::Swapgs
            | M::Monitor
            | M::Mwait
            | M::Rdpmc
            | M::Vmcall
            | M::Vmmcall
            | M::Vmfunc
            | M::Xgetbv
            | M::Xsetbv
            | M::Xbegin
            | M::Xabort
            | M::Enclu
            | M::Encls
            | M::Getsec
            | M::Rdpkru
            | M::Wrpkru
    );
    if iced.is_privileged() || touches_system_register || odd {
        return Err((
            Code::Privileged,
            "only the kernel or the hypervisor may execute this",
        ));
    }
    Ok(())
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
    if let Some(port) = port(iced) {
        return Ok(Class::Port(port));
    }
    if let Some((op, log2)) = string_op(iced.code()) {
        return string_repeat(iced).map(|repeat| Class::String(op, log2, repeat));
    }
    if let Some(port) = port_string(iced.code()) {
        return string_repeat(iced).map(|repeat| Class::PortString(port, repeat));
    }
    if iced.mnemonic() == Mnemonic::Xlatb {
        return if iced.segment_prefix() == Register::None && iced.memory_base() == Register::RBX {
            Ok(Class::Xlat)
        } else {
            Err((Code::Unsupported, "xlat with a segment or a 32-bit address"))
        };
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
        MemoryOperands::Implicit => Err((
            Code::Unsupported,
            "its memory operand is implicit and has no translation yet",
        )),
    }
}

/// Memory operands of an instruction.
pub enum MemoryOperands {
    /// None.
    None,
    /// One that it names.
    One,
    /// One that it implies.
    Implicit,
}

/// How an instruction names memory.
pub fn memory_operands(iced: &Instruction) -> MemoryOperands {
    let mut found = MemoryOperands::None;
    for op in 0..iced.op_count() {
        match iced.op_kind(op) {
            OpKind::Memory => found = MemoryOperands::One,
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return MemoryOperands::Implicit,
            OpKind::Register
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => {}
        }
    }
    found
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

/// Vector register or kind of instruction whose operand cannot be moved to
/// `(%reg)`.
///
/// # Errors
/// Why it cannot.
pub fn one_memory_operand(inst: &Inst) -> Result<Class, (Code, &'static str)> {
    use Mnemonic as M;
    let iced = &inst.iced;
    if iced.mnemonic() == M::Lea {
        return match iced.memory_base() {
            Register::RIP => Ok(Class::AddressOf),
            Register::EIP => Err((Code::Unsupported, "a 32-bit instruction-relative address")),
            _ => Ok(Class::Plain),
        };
    }
    if is_hint(iced) {
        return Ok(Class::Drop);
    }
    if is_masked(iced) {
        return Err((
            Code::Unsupported,
            "what its mask leaves out is not reached, and must not abort",
        ));
    }
    if iced.is_vsib() {
        return Err((
            Code::Unsupported,
            "gather and scatter reach many places at once",
        ));
    }
    if iced.is_save_restore_instruction() {
        return Err((
            Code::Unsupported,
            "it saves or restores a whole register file",
        ));
    }
    if matches!(
        iced.mnemonic(),
        M::Bndmk | M::Bndcl | M::Bndcn | M::Bndcu | M::Bndldx | M::Bndstx | M::Bndmov
    ) || matches!(
        iced.mnemonic(),
        M::Ldtilecfg | M::Sttilecfg | M::Tileloadd | M::Tileloaddt1 | M::Tilestored
            // Their destination is an address in a register.
            | M::Movdir64b | M::Enqcmd | M::Enqcmds
    ) {
        return Err((Code::Unsupported, "it reaches more than its operand"));
    }
    let space = space(inst)?;
    if is_prefetch(iced.mnemonic()) {
        return Ok(if space == Space::Stack {
            Class::Drop
        } else {
            Class::Prefetch(space)
        });
    }
    let size = iced.memory_size().size();
    if size == 0 || size > 64 {
        return Err((
            Code::Unsupported,
            "the size of its memory operand is not between 1 and 64 bytes",
        ));
    }
    match iced.mnemonic() {
        M::Push | M::Pop if iced.stack_pointer_increment().abs() != 8 => {
            Err((Code::Unsupported, "a push or pop of other than 8 bytes"))
        }
        M::Push if space != Space::Stack => Ok(Class::PushMemory(space)),
        // Its address counts from the popped stack pointer; through a translation
        // that is plain to see.
        M::Pop => Ok(Class::PopMemory(space)),
        M::Bt | M::Bts | M::Btr | M::Btc
            if iced.op1_kind() == OpKind::Register
                && (iced.memory_base().is_gpr32() || iced.memory_index().is_gpr32()) =>
        {
            Err((
                Code::Unsupported,
                "a bit string whose address wraps at 4 GiB",
            ))
        }
        M::Bt | M::Bts | M::Btr | M::Btc if iced.op1_kind() == OpKind::Register => {
            Ok(Class::BitString(space))
        }
        _ if space == Space::Stack => Ok(Class::Stack),
        _ => Ok(Class::Memory(space)),
    }
}

/// Hints about caches that compute nothing: dropped. `prefetchw` has encodings
/// beside its own that are reserved for other hints.
fn is_hint(iced: &Instruction) -> bool {
    use Mnemonic as M;
    match iced.mnemonic() {
        M::Cldemote
        | M::Prefetch
        | M::Prefetchit0
        | M::Prefetchit1
        | M::Prefetchwt1
        | M::Reservednop => true,
        M::Prefetchw => iced.code() != Op::Prefetchw_m8,
        _ => false,
    }
}

fn is_masked(iced: &Instruction) -> bool {
    use Mnemonic as M;
    iced.has_op_mask()
        || matches!(
            iced.mnemonic(),
            M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq
        )
}

fn is_prefetch(m: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        m,
        M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchw
    )
}

/// Most bytes below `rsp` that the psABI lets an instruction use.
const RED_ZONE: i64 = twin_abi::stack::BELOW_RSP;

fn space(inst: &Inst) -> Result<Space, (Code, &'static str)> {
    let iced = &inst.iced;
    let (base, index) = (iced.memory_base(), iced.memory_index());
    match base {
        Register::EIP => {
            return Err((Code::Unsupported, "a 32-bit instruction-relative address"));
        }
        Register::RIP if inst.displacement.is_none() => {
            let reason =
                "it reads its own code: an instruction-relative address without relocation";
            return Err((Code::Relocation, reason));
        }
        _ => {}
    }
    // Spills are pushed before the address is computed: it grows by their size.
    const SPILLS: i32 = 128;
    let displacement = iced.memory_displacement64() as i32;
    if base.full_register() == Register::RSP && displacement > i32::MAX - SPILLS {
        return Err((
            Code::Unsupported,
            "its displacement from the stack pointer leaves no room for spilled registers",
        ));
    }
    let constant = base == Register::RIP || base == Register::None;
    match iced.segment_prefix() {
        Register::FS => Ok(Space::PerCpu(Segment::Fs)),
        Register::GS => Ok(Space::PerCpu(Segment::Gs)),
        _ if base == Register::RSP && index == Register::None && inst.displacement.is_none() => {
            stack_operand(iced)
        }
        // Without a relocation it is a number, such as a member of a structure
        // at address zero that a compiler saw being reached.
        _ if constant && index == Register::None && inst.displacement.is_some() => {
            Ok(Space::Global)
        }
        _ => Ok(Space::Heap),
    }
}

/// `disp(%rsp)`. Below the stack pointer only what keeps what is there:
/// `smp_mb()` is `lock addl $0,-4(%rsp)`.
fn stack_operand(iced: &Instruction) -> Result<Space, (Code, &'static str)> {
    use Mnemonic as M;
    let keeps = matches!(iced.mnemonic(), M::Add | M::Sub | M::Or | M::Xor)
        && iced.op0_kind() == OpKind::Memory
        && iced.try_immediate(1).is_ok_and(|i| i == 0);
    match iced.memory_displacement64() as i64 {
        0.. => Ok(Space::Stack),
        d if d >= -RED_ZONE && keeps => Ok(Space::Stack),
        _ => Err((Code::RedZone, "it keeps data below the stack pointer")),
    }
}

/// The repetition of a string instruction.
///
/// # Errors
/// Why it is not known.
pub fn string_repeat(iced: &Instruction) -> Result<Repeat, (Code, &'static str)> {
    let addresses_64 = (0..iced.op_count()).all(|i| {
        matches!(
            iced.op_kind(i),
            OpKind::Register | OpKind::MemorySegRSI | OpKind::MemoryESRDI
        )
    });
    if !addresses_64 || iced.segment_prefix() != Register::None {
        return Err((
            Code::Unsupported,
            "a string instruction with a segment or 32-bit addresses",
        ));
    }
    Ok(
        match (
            iced.has_rep_prefix() || iced.has_repe_prefix(),
            iced.has_repne_prefix(),
        ) {
            (_, true) => Repeat::Repne,
            (true, false) => Repeat::Rep,
            (false, false) => Repeat::Once,
        },
    )
}

fn port_string(code: Op) -> Option<Port> {
    let (input, log2) = match code {
        Op::Insb_m8_DX => (true, 0),
        Op::Insw_m16_DX => (true, 1),
        Op::Insd_m32_DX => (true, 2),
        Op::Outsb_DX_m8 => (false, 0),
        Op::Outsw_DX_m16 => (false, 1),
        Op::Outsd_DX_m32 => (false, 2),
        _ => return None,
    };
    Some(Port {
        input,
        log2,
        number: None,
    })
}

/// Operation and log2 of the element size of a string instruction.
pub fn string_op(code: Op) -> Option<(StringOp, u8)> {
    Some(match code {
        Op::Movsb_m8_m8 => (StringOp::Movs, 0),
        Op::Movsw_m16_m16 => (StringOp::Movs, 1),
        Op::Movsd_m32_m32 => (StringOp::Movs, 2),
        Op::Movsq_m64_m64 => (StringOp::Movs, 3),
        Op::Stosb_m8_AL => (StringOp::Stos, 0),
        Op::Stosw_m16_AX => (StringOp::Stos, 1),
        Op::Stosd_m32_EAX => (StringOp::Stos, 2),
        Op::Stosq_m64_RAX => (StringOp::Stos, 3),
        Op::Lodsb_AL_m8 => (StringOp::Lods, 0),
        Op::Lodsw_AX_m16 => (StringOp::Lods, 1),
        Op::Lodsd_EAX_m32 => (StringOp::Lods, 2),
        Op::Lodsq_RAX_m64 => (StringOp::Lods, 3),
        Op::Cmpsb_m8_m8 => (StringOp::Cmps, 0),
        Op::Cmpsw_m16_m16 => (StringOp::Cmps, 1),
        Op::Cmpsd_m32_m32 => (StringOp::Cmps, 2),
        Op::Cmpsq_m64_m64 => (StringOp::Cmps, 3),
        Op::Scasb_AL_m8 => (StringOp::Scas, 0),
        Op::Scasw_AX_m16 => (StringOp::Scas, 1),
        Op::Scasd_EAX_m32 => (StringOp::Scas, 2),
        Op::Scasq_RAX_m64 => (StringOp::Scas, 3),
        _ => return None,
    })
}

fn port(iced: &Instruction) -> Option<Port> {
    let number = |op: u32| match iced.op_kind(op) {
        OpKind::Immediate8 => Some(iced.immediate8()),
        _ => None,
    };
    let (input, log2, port_operand) = match iced.code() {
        Op::In_AL_DX | Op::In_AL_imm8 => (true, 0, 1),
        Op::In_AX_DX | Op::In_AX_imm8 => (true, 1, 1),
        Op::In_EAX_DX | Op::In_EAX_imm8 => (true, 2, 1),
        Op::Out_DX_AL | Op::Out_imm8_AL => (false, 0, 0),
        Op::Out_DX_AX | Op::Out_imm8_AX => (false, 1, 0),
        Op::Out_DX_EAX | Op::Out_imm8_EAX => (false, 2, 0),
        _ => return None,
    };
    Some(Port {
        input,
        log2,
        number: number(port_operand),
    })
}

/// Instructions that move `rsp` other than by `push` and `pop`.
fn stack_pointer(
    iced: &Instruction,
    survey: &Survey,
) -> Result<Option<Class>, (Code, &'static str)> {
    match iced.code() {
        Op::Leaveq => return Ok(Some(Class::FramePointerToStack)),
        Op::Enterq_imm16_imm8 | Op::Enterw_imm16_imm8 | Op::Enterd_imm16_imm8 | Op::Leavew => {
            return Err((
                Code::StackPointer,
                "this form of frame set-up is not followed",
            ));
        }
        _ => {}
    }
    if matches!(iced.mnemonic(), Mnemonic::Push | Mnemonic::Pop) {
        let pops_rsp = iced.mnemonic() == Mnemonic::Pop
            && iced.op0_kind() == OpKind::Register
            && iced.op0_register().full_register() == Register::RSP;
        return if pops_rsp {
            Err((Code::StackPointer, "rsp is loaded from memory"))
        } else {
            Ok(None)
        };
    }
    if !survey.writes(Reg::RSP) {
        return Ok(None);
    }
    let from_register = iced.memory_base().is_gpr64() && iced.memory_index() == Register::None;
    match iced.code() {
        Op::Add_rm64_imm8 | Op::Add_rm64_imm32 | Op::Sub_rm64_imm8 | Op::Sub_rm64_imm32
            if iced.op0_kind() == OpKind::Register =>
        {
            Ok(Some(Class::Plain))
        }
        Op::Lea_r64_m
            if iced.memory_base() == Register::RSP && iced.memory_index() == Register::None =>
        {
            Ok(Some(Class::Plain))
        }
        Op::Lea_r64_m if from_register => Ok(Some(Class::FramePointerToStack)),
        Op::Mov_r64_rm64 | Op::Mov_rm64_r64
            if iced.op1_kind() == OpKind::Register && iced.op1_register().is_gpr64() =>
        {
            Ok(Some(Class::FramePointerToStack))
        }
        Op::And_rm64_imm8 | Op::And_rm64_imm32 if iced.op0_kind() == OpKind::Register => {
            realign(iced.immediate(1)).map(Some)
        }
        _ => Err((Code::StackPointer, "rsp is moved by other than a constant")),
    }
}

/// `and $-alignment,%rsp`.
fn realign(mask: u64) -> Result<Class, (Code, &'static str)> {
    let alignment = mask.wrapping_neg();
    if !alignment.is_power_of_two() {
        return Err((
            Code::StackPointer,
            "rsp is masked by something not an alignment",
        ));
    }
    match alignment <= u64::from(copies::MAX_ALIGNMENT) {
        true => Ok(Class::Realign(alignment as u8)),
        false => Err((
            Code::StackPointer,
            "the stack is realigned to more than 64 bytes",
        )),
    }
}
