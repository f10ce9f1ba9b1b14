//! The effect of one x86 instruction by itself, from what iced knows about its form.
//!
//! Takes a decoded instruction, gives an [`Effect`]. The guarantee: it never leaves out a use and
//! never kills what might survive. Interprocedural effects are not here: a call uses its operands
//! and the stack pointer, a return uses the stack pointer.
//!
//! The rules, with the functions that hold them:
//!
//! | what | rule |
//! |---|---|
//! | forms not understood: `is_understood` | use everything, kill nothing |
//! | `nop`, with operands or without | no effect: its address is not even computed |
//! | registers: `register_effect` | only an unconditional write kills, and only the pieces it replaces |
//! | flags: `flag_effect` | only a flag certainly written is killed; an undefined one is neither used nor killed |
//!
//! Instruction pointer, segment, vector, x87 and control registers are not locations; their part
//! of an effect is dropped.

use crate::locations::{Flag, LocSet, Piece, Reg};
use crate::solve::Effect;
use iced_x86::{
    Code, CpuidFeature, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory,
    InstructionInfoOptions, Mnemonic, OpAccess, OpKind, Register, RflagsBits,
};

/// Finds effects of instructions; keeps its buffers between calls.
#[derive(Debug)]
pub struct EffectFinder {
    factory: InstructionInfoFactory,
    known: UnderstoodForms,
}

impl Default for EffectFinder {
    fn default() -> EffectFinder {
        EffectFinder::new()
    }
}

impl EffectFinder {
    /// A finder that has seen no instruction.
    pub fn new() -> EffectFinder {
        EffectFinder {
            factory: InstructionInfoFactory::new(),
            known: UnderstoodForms(vec![None; Code::values().len()]),
        }
    }

    /// The effect of an instruction of 64-bit code by itself.
    pub fn effect(&mut self, instruction: &Instruction) -> Effect {
        let options = InstructionInfoOptions::NO_MEMORY_USAGE;
        let info = self.factory.info_options(instruction, options);
        self.known.effect(instruction, info)
    }

    /// As [`EffectFinder::effect`], with iced's `info` of the instruction, if the caller has it
    /// already.
    pub fn effect_of(&mut self, instruction: &Instruction, info: &InstructionInfo) -> Effect {
        self.known.effect(instruction, info)
    }
}

/// Cached results of [`is_understood`] by form.
#[derive(Debug)]
struct UnderstoodForms(Vec<Option<bool>>);

impl UnderstoodForms {
    fn effect(&mut self, instruction: &Instruction, info: &InstructionInfo) -> Effect {
        let understood = &mut self.0[instruction.code() as usize];
        if !*understood.get_or_insert_with(|| is_understood(instruction)) {
            return Effect::OPAQUE;
        }
        if instruction.mnemonic() == Mnemonic::Nop {
            return Effect::NONE;
        }
        let registers = register_effect(instruction, info);
        let flags = flag_effect(instruction);
        Effect {
            uses: registers.uses.union(flags.uses),
            kills: registers.kills.union(flags.kills),
        }
    }
}

/// Uses are all registers read, be it as an address or only under a condition. Kills are the
/// pieces replaced by a write that happens on every execution.
fn register_effect(instruction: &Instruction, info: &InstructionInfo) -> Effect {
    let mut effect = Effect::NONE;
    for used in info.used_registers() {
        let (reads, writes) = reads_and_writes(used.access());
        if reads {
            effect.uses = effect.uses.union(pieces_read(used.register()));
        }
        if writes {
            effect.kills = effect.kills.union(pieces_written(used.register()));
        }
    }
    if is_cmov(instruction.mnemonic()) {
        // iced calls the 32-bit form a read and a write, since the upper half becomes zero.
        effect.kills = LocSet::empty();
    }
    if let Some(register) = borrow_idiom(instruction) {
        effect.uses = effect.uses.minus(pieces_read(register));
    }
    effect
}

/// Whether an access reads, under whatever condition, and whether it certainly writes.
fn reads_and_writes(access: OpAccess) -> (bool, bool) {
    match access {
        OpAccess::None | OpAccess::NoMemAccess | OpAccess::CondWrite => (false, false),
        OpAccess::Read | OpAccess::CondRead | OpAccess::ReadCondWrite => (true, false),
        OpAccess::Write => (false, true),
        OpAccess::ReadWrite => (true, true),
    }
}

/// The general register that a register is or is a part of.
fn general(register: Register) -> Option<Reg> {
    if !register.is_gpr() {
        return None;
    }
    Reg::new(register.full_register().number() as u8)
}

/// The pieces that a read of a register uses. A 32-bit read counts as one of the whole register.
fn pieces_read(register: Register) -> LocSet {
    let Some(reg) = general(register) else {
        return LocSet::empty();
    };
    match register {
        Register::AH | Register::CH | Register::DH | Register::BH => {
            LocSet::piece(reg, Piece::High)
        }
        _ if register.is_gpr8() => LocSet::piece(reg, Piece::Low),
        _ if register.is_gpr16() => LocSet::low16(reg),
        _ => LocSet::reg(reg),
    }
}

/// The pieces that a write of a register replaces. A 32-bit write replaces all: the upper half becomes
/// zero (SDM volume 1, 3.4.1.1).
fn pieces_written(register: Register) -> LocSet {
    pieces_read(register)
}

/// `sbb %eax,%eax` and so on: the result is minus the carry, whatever the register was. (`xor` and
/// `sub` of a register with itself need no rule: iced reports them as writes.)
fn borrow_idiom(instruction: &Instruction) -> Option<Register> {
    let same = instruction.mnemonic() == Mnemonic::Sbb
        && instruction.op0_kind() == OpKind::Register
        && instruction.op1_kind() == OpKind::Register
        && instruction.op0_register() == instruction.op1_register();
    same.then(|| instruction.op0_register())
}

/// Flags used, and flags certainly overwritten. Those that iced calls undefined are in none of its
/// other sets.
fn flag_effect(instruction: &Instruction) -> Effect {
    let written = flags_of(
        instruction.rflags_written() | instruction.rflags_cleared() | instruction.rflags_set(),
    );
    Effect {
        uses: flags_of(instruction.rflags_read()),
        kills: written.minus(flags_that_may_survive(instruction)),
    }
}

/// Flags that are reported as written but that an execution may leave unchanged, or undefined.
fn flags_that_may_survive(instruction: &Instruction) -> LocSet {
    use Mnemonic::*;
    match instruction.mnemonic() {
        Rol | Ror | Rcl | Rcr | Shl | Shr | Sal | Sar | Shld | Shrd => shift_survivors(instruction),
        // With a count of zero nothing is compared.
        Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq
            if is_repeated(instruction) =>
        {
            LocSet::flags()
        }
        // AMD's and Intel's manuals do not agree about the other flags.
        Fcomi | Fcomip | Fucomi | Fucomip => LocSet::flags()
            .minus(LocSet::flag(Flag::Carry))
            .minus(LocSet::flag(Flag::Parity))
            .minus(LocSet::flag(Flag::Zero)),
        _ => LocSet::empty(),
    }
}

/// Shifts and rotates (SDM volume 2, SAL/SAR/SHL/SHR, RCL/RCR/ROL/ROR, SHLD, SHRD). A masked count
/// of zero leaves every flag unchanged: iced handles immediate counts, and a count in `cl` may be
/// zero. A count larger than the operand leaves CF undefined for `shl` and `shr`, all flags for
/// `shld` and `shrd`.
fn shift_survivors(instruction: &Instruction) -> LocSet {
    use Mnemonic::*;
    let count_at = instruction.op_count() - 1;
    if instruction.op_kind(count_at) == OpKind::Register {
        return LocSet::flags();
    }
    let count = u32::from(instruction.immediate8() & 0x1f);
    let bits = 8 * operand_size(instruction) as u32;
    match instruction.mnemonic() {
        Shl | Sal | Shr if bits < 32 && count >= bits => LocSet::flag(Flag::Carry),
        Shld | Shrd if bits < 32 && count > bits => LocSet::flags(),
        _ => LocSet::empty(),
    }
}

/// The size of the first operand in bytes.
fn operand_size(instruction: &Instruction) -> usize {
    match instruction.op0_kind() {
        OpKind::Register => instruction.op0_register().size(),
        _ => instruction.memory_size().size(),
    }
}

fn is_repeated(instruction: &Instruction) -> bool {
    instruction.has_rep_prefix() || instruction.has_repne_prefix()
}

/// The locations among iced's [`RflagsBits`]; interrupt, alignment and x87 flags are not locations.
const fn flags_of(bits: u32) -> LocSet {
    const TABLE: [LocSet; LISTED as usize + 1] = {
        let mut table = [LocSet::empty(); LISTED as usize + 1];
        let mut bits = 0;
        while bits <= LISTED {
            table[bits as usize] = flags_one_by_one(bits);
            bits += 1;
        }
        table
    };
    TABLE[(bits & LISTED) as usize]
}

/// The bits that have a location.
const LISTED: u32 = RflagsBits::CF
    | RflagsBits::PF
    | RflagsBits::AF
    | RflagsBits::ZF
    | RflagsBits::SF
    | RflagsBits::OF
    | RflagsBits::DF;
const _: () = assert!(LISTED < 256, "they are the lowest bits");

const fn flags_one_by_one(bits: u32) -> LocSet {
    const fn flag(set: bool, flag: Flag) -> LocSet {
        if set {
            LocSet::flag(flag)
        } else {
            LocSet::empty()
        }
    }
    flag(bits & RflagsBits::CF != 0, Flag::Carry)
        .union(flag(bits & RflagsBits::PF != 0, Flag::Parity))
        .union(flag(bits & RflagsBits::AF != 0, Flag::Adjust))
        .union(flag(bits & RflagsBits::ZF != 0, Flag::Zero))
        .union(flag(bits & RflagsBits::SF != 0, Flag::Sign))
        .union(flag(bits & RflagsBits::OF != 0, Flag::Overflow))
        .union(flag(bits & RflagsBits::DF != 0, Flag::Direction))
}

fn is_cmov(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Cmova
            | Cmovae
            | Cmovb
            | Cmovbe
            | Cmove
            | Cmovg
            | Cmovge
            | Cmovl
            | Cmovle
            | Cmovne
            | Cmovno
            | Cmovnp
            | Cmovns
            | Cmovo
            | Cmovp
            | Cmovs
    )
}

/// Whether iced lists all registers and flags of an instruction, and its meaning does not depend on
/// a kernel, a hypervisor or the state of the machine.
///
/// An allow-list: only instructions that the lists below admit are understood.
fn is_understood(instruction: &Instruction) -> bool {
    !instruction.is_invalid()
        && !instruction.is_save_restore_instruction()
        && is_ordinary_flow(instruction)
        && (!instruction.is_privileged() || is_privileged_but_plain(instruction.mnemonic()))
        && !is_system(instruction.mnemonic())
        && !is_far(instruction)
        && instruction
            .cpuid_features()
            .iter()
            .all(|feature| is_plain_feature(*feature))
}

/// Control that stays in this code or leaves it by a call or a return. System calls and virtual
/// machine calls count as calls here; their features exclude them.
fn is_ordinary_flow(instruction: &Instruction) -> bool {
    match instruction.flow_control() {
        FlowControl::Next
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::ConditionalBranch
        | FlowControl::Return
        | FlowControl::Call
        | FlowControl::IndirectCall => true,
        FlowControl::Interrupt | FlowControl::XbeginXabortXend | FlowControl::Exception => false,
    }
}

/// Transfers to another code segment.
fn is_far(instruction: &Instruction) -> bool {
    instruction.is_call_far()
        || instruction.is_call_far_indirect()
        || instruction.is_jmp_far()
        || instruction.is_jmp_far_indirect()
}

fn is_privileged_but_plain(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        In | Insb | Insw | Insd | Out | Outsb | Outsw | Outsd | Cli | Sti | Clac | Stac
    )
}

/// Instructions of plain features that depend on the state of the machine, leave the flat memory
/// model, or are not settled: later processors may give a reserved no-operation a meaning.
fn is_system(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Cpuid
            | Sgdt
            | Sidt
            | Sldt
            | Str
            | Smsw
            | Lar
            | Lsl
            | Verr
            | Verw
            | Arpl
            | Lds
            | Les
            | Lfs
            | Lgs
            | Lss
            | Bound
            | Iret
            | Iretd
            | Iretq
            | Retf
            | Reservednop
            | Zero_bytes
    )
}

/// Features whose instructions compute, load, store and branch, and nothing else; a few order
/// memory, prefetch or read the clock. Vector instructions matter for the few that read or write
/// general registers and flags.
fn is_plain_feature(feature: CpuidFeature) -> bool {
    use CpuidFeature::*;
    #[rustfmt::skip]
    let plain = matches!(
        feature,
        // integer
        INTEL8086 | INTEL186 | INTEL286 | INTEL386 | INTEL486 | X64
        | CMOV | CX8 | CMPXCHG16B | MOVBE | POPCNT | LZCNT | BMI1 | BMI2 | ADX | RDRAND | RDSEED
        // hints, ordering, caches, the clock
        | MULTIBYTENOP | PAUSE | CET_IBT | PREFETCHW | CLFSH | CLFLUSHOPT | CLWB | MOVDIRI | SMAP
        | TSC | RDTSCP
        // x87 and vectors
        | FPU | FPU287 | FPU387 | MMX
        | SSE | SSE2 | SSE3 | SSSE3 | SSE4_1 | SSE4_2 | AES | PCLMULQDQ | SHA | GFNI
        | AVX | AVX2 | FMA | F16C | VAES | VPCLMULQDQ
        | AVX512F | AVX512VL | AVX512BW | AVX512DQ | AVX512CD | AVX512_IFMA
        | AVX512_VBMI | AVX512_VBMI2 | AVX512_VNNI | AVX512_BITALG | AVX512_VPOPCNTDQ
    );
    plain
}
