//! Prefixes, read from the bytes and not from a decoder's result.
//!
//! Processors disagree about some: `66 e8` is a call with a 16-bit or a 32-bit
//! offset, depending on the maker (AMD's manual, volume 3, 1.2.2; Intel's,
//! volume 2, CALL). An instruction that another processor may read differently
//! is not the instruction that was verified. So a prefix is refused where processors
//! may differ about it: where it could select another instruction, where a manual calls
//! its effect undefined or unpredictable, and where processors have been wrong.

use iced_x86::{Code, EncodingKind, Instruction, MandatoryPrefix, Mnemonic, OpKind, Register};

use crate::decode::system::is_hypercall;
use crate::findings::ViolationCode;
use crate::targets::{Instructions, NamedMemory, Rules};

/// Bytes of a call of the hypervisor. KVM writes as many where that is another maker's, from the
/// instruction's first byte on, and has them executed (`emulator_fix_hypercall`, arch/x86/kvm/x86.c).
const HYPERCALL: usize = 3;

/// How often each prefix occurs before an instruction.
#[derive(Default)]
struct Prefixes {
    opsize: u8,
    addrsize: u8,
    /// `cs`, `ds`, `es`, `ss`: without effect in 64-bit mode.
    ignored_segment: u8,
    /// `fs`, `gs`.
    segment: u8,
    lock: u8,
    rep: u8,
    repne: u8,
    rex: bool,
    /// A REX that another prefix follows, so that it has no effect.
    stray_rex: bool,
}

fn scan(bytes: &[u8]) -> Prefixes {
    let mut found = Prefixes::default();
    for &byte in bytes {
        let count = match byte {
            0x66 => &mut found.opsize,
            0x67 => &mut found.addrsize,
            0x26 | 0x2e | 0x36 | 0x3e => &mut found.ignored_segment,
            0x64 | 0x65 => &mut found.segment,
            0xf0 => &mut found.lock,
            0xf2 => &mut found.repne,
            0xf3 => &mut found.rep,
            0x40..=0x4f => {
                found.stray_rex |= found.rex;
                found.rex = true;
                continue;
            }
            _ => break,
        };
        *count = count.saturating_add(1);
        found.stray_rex |= found.rex;
    }
    found
}

/// Whether a byte is a prefix other than REX.
fn legacy(byte: u8) -> bool {
    matches!(
        byte,
        0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
    )
}

/// Whether the bytes begin without a prefix other than REX, as most instructions do;
/// then nothing has to be judged.
fn plain(bytes: &[u8]) -> bool {
    match *bytes {
        [0x40..=0x4f, next, ..] => !legacy(next) && next & 0xf0 != 0x40,
        [first, ..] => !legacy(first),
        [] => true,
    }
}

/// Judges the prefixes of an allowed instruction.
pub fn check(
    instruction: &Instruction,
    bytes: &[u8],
    rules: &Rules,
) -> Result<(), (ViolationCode, &'static str)> {
    if is_long_scalar(instruction, bytes) {
        let reason = "a scalar with VEX.L set is not the same on all processors";
        return Err((ViolationCode::Prefix, reason));
    }
    let rex = matches!(bytes.first(), Some(0x40..=0x4f));
    let plain = plain(bytes);
    if plain && !rex {
        return Ok(());
    }
    if plain && !is_transfer(instruction) && !instruction.is_string_instruction() {
        return Ok(());
    }
    let p = scan(bytes);
    address(instruction, &p, rules.named_memory)?;
    match wrong(instruction, bytes, &p, rules) {
        Some(reason) => Err((ViolationCode::Prefix, reason)),
        None => Ok(()),
    }
}

/// Judges the prefixes that move an address: segments, and registers of 32 bits.
fn address(
    instruction: &Instruction,
    p: &Prefixes,
    memory: NamedMemory,
) -> Result<(), (ViolationCode, &'static str)> {
    let nop = instruction.mnemonic() == Mnemonic::Nop;
    // What string instructions reach, no operand shows: a segment would move it.
    let shown = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    let gs = p.segment == 1 && instruction.segment_prefix() == Register::GS;
    let gs = gs && shown;
    let lea = instruction.mnemonic() == Mnemonic::Lea;
    // User memory, by registers of 32 bits: only where the kernel answers for faults.
    let kernel = memory == NamedMemory::SymbolsAndPerCpu;
    let narrow = kernel && p.segment == 0 && is_narrow(instruction);
    if memory.is_window() && shown && !lea && !nop {
        return in_window(p, gs, memory == NamedMemory::WideWindow);
    }
    if memory.is_window() && p.ignored_segment != 0 && instruction.is_string_instruction() {
        let reason = "a string instruction has no segment prefix";
        return Err((ViolationCode::Operand, reason));
    }
    if p.segment != 0 && !(kernel && gs) {
        let reason = "%fs and %gs are not dom0's here";
        return Err((ViolationCode::AddressForm, reason));
    }
    if p.addrsize != 0 && !lea && !narrow {
        let reason = "addresses of 32 bits are not dom0's";
        return Err((ViolationCode::AddressForm, reason));
    }
    Ok(())
}

/// What is wrong with the prefixes, whatever the operands' addresses.
fn wrong(
    instruction: &Instruction,
    bytes: &[u8],
    p: &Prefixes,
    rules: &Rules,
) -> Option<&'static str> {
    let nop = instruction.mnemonic() == Mnemonic::Nop;
    let repeated = p.addrsize > 1
        || p.lock > 1
        || p.rep + p.repne > 1
        || (!nop && (p.opsize > 1 || p.ignored_segment > 1));
    if p.stray_rex {
        Some("a REX prefix that another prefix follows has no effect")
    } else if repeated {
        Some("a prefix is repeated, or contradicts another")
    } else if instruction.code() == Code::Pause && bytes.len() != 2 {
        Some("pause is f3 90 and nothing else")
    } else if (p.rex && is_transfer(instruction))
        || (p.opsize != 0 && (goes(instruction) || moves_rsp(instruction)))
    {
        Some("processors disagree about this prefix on a branch, push or pop")
    } else if p.opsize != 0 && selects_opcode(instruction, p) {
        Some("66 makes no operand 16 bits wide, but may select another instruction")
    } else if is_hypercall(instruction.mnemonic()) && bytes.len() != HYPERCALL {
        Some("KVM writes another call over its first three bytes, and the last one stays")
    } else if rules.instructions == Instructions::Kernel && misleads_kernels(instruction, bytes) {
        Some("kernels read these prefixes otherwise, and take a part of the operand for code")
    } else if instruction.is_string_instruction() && has_idle_rex(instruction, bytes) {
        Some("the REX prefix of a string instruction has no effect")
    } else if instruction.has_xacquire_prefix() || instruction.has_xrelease_prefix() {
        Some("lock elision is not verified")
    } else {
        repeat(instruction)
    }
}

/// The prefixes of an operand that is reached: one 65 and one 67, in either order, and no
/// other of their groups; or none at all, then `crate::rules` judges the register. The
/// effect of two prefixes of a group is not defined (SDM volume 2, 2.1.1). In a window of
/// 42 bits, 65 may be alone.
fn in_window(p: &Prefixes, gs: bool, is_wide: bool) -> Result<(), (ViolationCode, &'static str)> {
    match (p.segment, p.addrsize, p.ignored_segment) {
        (1, 1, 0) if gs => Ok(()),
        (1, 0, 0) if gs && is_wide => Ok(()),
        (0, 0, 0) => Ok(()),
        (0, ..) => Err((ViolationCode::Operand, "it has no prefix 65")),
        (_, 0, _) => Err((ViolationCode::Operand, "it has no prefix 67")),
        (1, ..) if !gs => Err((ViolationCode::Operand, "its segment is not %gs")),
        _ => Err((
            ViolationCode::Operand,
            "it has a segment or address size prefix too many",
        )),
    }
}

/// Whether the operand in memory is made of registers of 32 bits. It may be an access of
/// user memory, whose faults the kernel handles ([`crate::rules`] says where).
pub fn is_narrow(instruction: &Instruction) -> bool {
    let shown = instruction.op_kinds().any(|kind| kind == OpKind::Memory);
    shown && (instruction.memory_base().is_gpr32() || instruction.memory_index().is_gpr32())
}

/// Whether 66 could be read as a part of the opcode, and of another instruction's.
///
/// Beside `f2` or `f3`: `66 f3 0f 7e /r` loads 8 bytes into a vector register where `f3`
/// counts, and writes 4 bytes or a general register where 66 does. Such use is reserved
/// and may be unpredictable (SDM volume 2, 2.1.1). And where prefixes tell instructions of one
/// opcode apart, new ones among them: `66 0f ae f0` was `mfence` before it was `tpause`,
/// and `0f 01`, `0f 18` and `0f c7` are shared like that.
fn selects_opcode(instruction: &Instruction, p: &Prefixes) -> bool {
    use Mnemonic::*;
    let narrow = instruction.memory_size().size() == 2
        || (0..instruction.op_count()).any(|n| instruction.op_register(n).is_gpr16());
    let shared = matches!(
        instruction.mnemonic(),
        Cmpxchg8b
            | Cmpxchg16b
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Prefetchw
            | Rdtsc
            | Rdtscp
    );
    shared || p.rep + p.repne != 0 && !narrow
}

//      66 2e 0f d6 90 90 00 00 00      movq %xmm2, %cs:0x90(%rax)
//
/// Whether the kernel's decoder may find another length. Of several prefixes it takes the last
/// one for a part of the opcode, and no other (`insn_last_prefix_id`, arch/x86/lib/insn.c), so here
/// it sees `0f d6`, which has no operand to it, and two `nop`s. And it stops behind four different
/// ones (`insn_get_prefixes`). By such lengths it writes longer nops over nops in alternatives
/// (`optimize_nops`, arch/x86/kernel/alternative.c): above, the store goes through `%rsi` then.
fn misleads_kernels(instruction: &Instruction, bytes: &[u8]) -> bool {
    const MOST: usize = 4;
    let prefixes = bytes.iter().position(|b| !legacy(*b)).unwrap_or(0);
    let prefixes = &bytes[..prefixes];
    let is_first = |n: &usize| !prefixes[..*n].contains(&prefixes[*n]);
    let different = (0..prefixes.len()).filter(is_first).count();
    if different > MOST {
        return true;
    }
    // The decoder's table of opcodes is built at its first use: it is rarely needed.
    let code = instruction.code();
    let asks = different > 1 && instruction.mnemonic() != Mnemonic::Nop;
    let own = match code.encoding() {
        EncodingKind::Legacy if asks => code.op_code().mandatory_prefix(),
        _ => MandatoryPrefix::None,
    };
    let own = match own {
        MandatoryPrefix::P66 => 0x66,
        MandatoryPrefix::PF3 => 0xf3,
        MandatoryPrefix::PF2 => 0xf2,
        MandatoryPrefix::None | MandatoryPrefix::PNP => return false,
    };
    prefixes.last() != Some(&own)
}

/// Whether a VEX prefix asks for 256 bits of an instruction that has none. It is ignored, says
/// the manual, and also that the behavior is unpredictable across processor generations (SDM
/// volume 2, ADDSS and every other scalar instruction).
fn is_long_scalar(instruction: &Instruction, bytes: &[u8]) -> bool {
    let before = |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67);
    let first = bytes.iter().position(|b| !before(b)).unwrap_or(0);
    let long = match bytes[first..] {
        [0xc5, last, _, ..] | [0xc4, _, last, _, ..] => last & 4 != 0,
        _ => false,
    };
    let is_ymm = |n| instruction.op_register(n).is_ymm();
    long && instruction.code() != Code::VEX_Vzeroall
        && instruction.memory_size().size() != 32
        && !(0..instruction.op_count()).any(is_ymm)
}

/// Whether a string instruction has a REX prefix that is not the REX.W of its elements of 8
/// bytes. The other bits name nothing there, and processors with fast short strings lost
/// their instruction pointer over them (CVE-2023-23583).
fn has_idle_rex(instruction: &Instruction, bytes: &[u8]) -> bool {
    use Mnemonic::*;
    let quads = matches!(
        instruction.mnemonic(),
        Movsq | Stosq | Lodsq | Cmpsq | Scasq
    );
    match *bytes {
        [.., rex @ 0x40..=0x4f, _] => !(quads && rex == 0x48),
        _ => false,
    }
}

/// `rep` and `repne` where they are not part of the opcode.
fn repeat(instruction: &Instruction) -> Option<&'static str> {
    use Mnemonic::*;
    let (rep, repne) = (instruction.has_rep_prefix(), instruction.has_repne_prefix());
    let string = instruction.is_string_instruction();
    let compares = string
        && matches!(
            instruction.mnemonic(),
            Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq
        );
    if repne && !compares {
        return Some("repne means something only on cmps and scas");
    }
    // `rep ret` is how compilers padded returns for old AMD processors.
    if rep && !string && instruction.mnemonic() != Ret {
        return Some("rep means something only on string instructions");
    }
    None
}

/// Instructions with a 16-bit form that moves `rsp` by another amount.
fn moves_rsp(instruction: &Instruction) -> bool {
    matches!(
        instruction.mnemonic(),
        Mnemonic::Push | Mnemonic::Pop | Mnemonic::Leave
    )
}

/// Branches, indirect ones too: the register of such a one may need a REX prefix.
fn goes(instruction: &Instruction) -> bool {
    use iced_x86::FlowControl::*;
    is_transfer(instruction) || matches!(instruction.flow_control(), IndirectBranch | IndirectCall)
}

/// Branches: none needs a REX prefix.
fn is_transfer(instruction: &Instruction) -> bool {
    use iced_x86::FlowControl::*;
    matches!(
        instruction.flow_control(),
        UnconditionalBranch | ConditionalBranch | Call | Return
    )
}
