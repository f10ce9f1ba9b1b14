//! Prefixes that do not mean what they seem to, read from the bytes: a decoder does not
//! report prefixes without effect.
//!
//! A later processor may give them a meaning, as `rep bsf` became `tzcnt` (SDM volume
//! 2, 2.1.1), and the manual calls some unpredictable, so code with them is refused.

use iced_x86::{Code, EncodingKind, FlowControl, Instruction, MandatoryPrefix, Mnemonic, OpKind};

use crate::analyse::classify::{MemoryOperands, memory_operands};

/// The bytes before the opcode, REX being the last that counts.
fn prefixes(bytes: &[u8]) -> &[u8] {
    let prefix = |b: &u8| is_legacy(*b) || is_rex(*b);
    let count = bytes.iter().take_while(|b| prefix(b)).count();
    &bytes[..count]
}

/// Whether a byte before the opcode is one of the prefixes that are older than REX.
fn is_legacy(byte: u8) -> bool {
    matches!(
        byte,
        0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x66 | 0x67 | 0xf0 | 0xf2 | 0xf3
    )
}

/// Whether it is a REX prefix.
pub fn is_rex(byte: u8) -> bool {
    byte & 0xf0 == 0x40
}

/// Whether an instruction has such a prefix. A REX prefix before it has no meaning.
pub fn has_legacy(bytes: &[u8]) -> bool {
    let first = bytes.iter().find(|b| !is_rex(**b));
    first.is_some_and(|b| is_legacy(*b))
}

/// Why processors disagree about a branch: with an operand size prefix, AMD's
/// branch in 16 bits and Intel's ignore it (SDM volume 2, JMP; APM volume 3,
/// Near Branches).
pub fn ambiguous(iced: &Instruction, bytes: &[u8]) -> Option<&'static str> {
    let branches = !matches!(
        iced.flow_control(),
        FlowControl::Next | FlowControl::Exception | FlowControl::Interrupt
    );
    (branches && prefixes(bytes).contains(&0x66))
        .then_some("processors disagree about this prefix on a branch")
}

/// Why an instruction with such prefixes is not kept.
pub fn meaningless(iced: &Instruction, bytes: &[u8]) -> Option<&'static str> {
    let found = prefixes(bytes);
    if is_string_with_rex(iced, found) {
        return Some("the REX prefix of a string instruction has no effect, or a wrong one");
    }
    if is_wide_scalar(iced, &bytes[found.len()..]) {
        return Some("VEX.L on a scalar instruction is unpredictable");
    }
    // Nothing, or REX alone.
    match *found {
        [] => return None,
        [only] if is_rex(only) => return None,
        _ => {}
    }
    let has = |list: &[u8]| found.iter().any(|b| list.contains(b));
    let straight = matches!(
        iced.flow_control(),
        FlowControl::Next | FlowControl::Interrupt
    );
    if found.iter().rev().skip(1).any(|b| is_rex(*b)) {
        Some("a REX prefix that another prefix follows has no effect")
    } else if is_repeated(found) {
        Some("a prefix is repeated, or contradicts another")
    } else if iced.has_xacquire_prefix() || iced.has_xrelease_prefix() {
        Some("lock elision is not supported; processors no longer have it")
    } else if straight && is_idle_repeat(iced) {
        Some("a repeat prefix means nothing on this instruction")
    } else if straight && !has_address(iced) && has(&[0x64, 0x65, 0x67]) {
        Some("an address prefix without a memory operand has no effect")
    } else if iced.code() == Code::Pause && bytes.len() != 2 {
        Some("pause with another prefix is an exchange to some decoders")
    } else if straight && has(&[0x66]) && may_select(iced, found) {
        Some("an operand size that changes no operand may select another instruction")
    } else if straight && is_torn(iced, found) {
        Some("a prefix is between the opcode and one that belongs to it")
    } else {
        None
    }
}

/// Whether another prefix follows the one that selects the opcode. The decoder of Linux counts the last
/// one alone (`insn_last_prefix_id`, arch/x86/lib/insn.c).
fn is_torn(iced: &Instruction, found: &[u8]) -> bool {
    let mut older = found.iter().rev().filter(|b| is_legacy(**b));
    // The decoder's table of opcodes is built at its first use: it is rarely needed.
    let (Some(last), Some(_)) = (older.next(), older.next()) else {
        return false;
    };
    let own = match iced.code().op_code().mandatory_prefix() {
        MandatoryPrefix::P66 => 0x66,
        MandatoryPrefix::PF3 => 0xf3,
        MandatoryPrefix::PF2 => 0xf2,
        MandatoryPrefix::None | MandatoryPrefix::PNP => return false,
    };
    // Of VEX and EVEX it is in the prefix itself.
    iced.code().encoding() == EncodingKind::Legacy && *last != own
}

/// Whether 66 is beside a prefix that selects the opcode and makes no operand of 16 bits, which
/// is reserved (SDM volume 2, 2.1.1), or before an opcode that prefixes share out.
fn may_select(iced: &Instruction, found: &[u8]) -> bool {
    use Mnemonic as M;
    let selects = found.iter().any(|b| matches!(b, 0xf2 | 0xf3));
    let word = (0..iced.op_count()).any(|n| iced.op_register(n).is_gpr16())
        || iced.memory_size().size() == 2;
    let shared = matches!(
        iced.mnemonic(),
        M::Cmpxchg8b
            | M::Cmpxchg16b
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Prefetchw
            | M::Rdtsc
            | M::Rdtscp
    );
    shared || selects && !word
}

/// Whether a string instruction has another REX than the REX.W of words of 8 bytes. Processors
/// with fast short strings lose their instruction pointer over it (CVE-2023-23583).
fn is_string_with_rex(iced: &Instruction, found: &[u8]) -> bool {
    use Mnemonic as M;
    let Some(&rex) = found.last().filter(|b| is_rex(**b)) else {
        return false;
    };
    let words = matches!(
        iced.mnemonic(),
        M::Movsq | M::Stosq | M::Lodsq | M::Cmpsq | M::Scasq
    );
    iced.is_string_instruction() && (!words || rex != 0x48)
}

/// Whether a VEX prefix says 256 bits while no operand has them: "unpredictable behavior across
/// different processor generations" (SDM volume 2, ADDSS and all scalars).
fn is_wide_scalar(iced: &Instruction, opcode: &[u8]) -> bool {
    let long = match *opcode {
        [0xc5, p, ..] | [0xc4, _, p, ..] => p & 4 != 0,
        _ => false,
    };
    if !long {
        return false;
    }
    let has_ymm = (0..iced.op_count()).any(|n| iced.op_register(n).is_ymm());
    !has_ymm && iced.memory_size().size() != 32 && iced.code() != Code::VEX_Vzeroall
}

/// Why a return, a call or a jump does not stay as it is. `rep ret`
/// is how compilers padded returns for old processors.
pub fn meaningless_on_transfer(iced: &Instruction, bytes: &[u8]) -> Option<&'static str> {
    use FlowControl as F;
    let found = prefixes(bytes);
    let has = |list: &[u8]| found.iter().any(|b| list.contains(b));
    let returns = iced.flow_control() == F::Return;
    let idle = match iced.flow_control() {
        F::Return => has(&[0x64, 0x65, 0x67, 0xf2]) || found.iter().any(|b| is_rex(*b)),
        F::Call | F::UnconditionalBranch => {
            has(&[0x64, 0x65, 0x67]) || found.iter().any(|b| is_rex(*b))
        }
        F::IndirectCall | F::IndirectBranch => {
            has(&[0xf2, 0xf3]) || iced.op0_kind() == OpKind::Register && has(&[0x64, 0x65, 0x67])
        }
        _ => return None,
    };
    let rex = found.iter().rev().skip(1).any(|b| is_rex(*b));
    (idle || rex || is_repeated(found)).then_some(match returns {
        true => "a prefix without effect on a return",
        false => "a prefix without effect on a call or jump",
    })
}

/// Whether it has an operand in memory. That of `lea` counts: it is an address.
fn has_address(iced: &Instruction) -> bool {
    !matches!(memory_operands(iced), MemoryOperands::None)
}

/// Whether a group occurs twice. Compilers pad with segment prefixes; the verifier, too,
/// accepts no more than one.
fn is_repeated(found: &[u8]) -> bool {
    const GROUPS: [&[u8]; 5] = [
        &[0x66],
        &[0x67],
        &[0xf0],
        &[0xf2, 0xf3],
        &[0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65],
    ];
    let count = |group: &[u8]| found.iter().filter(|b| group.contains(b)).count();
    GROUPS.iter().any(|group| count(group) > 1)
}

/// `rep` and `repne` where they are not part of the opcode and repeat nothing.
fn is_idle_repeat(iced: &Instruction) -> bool {
    use Mnemonic as M;
    let compares = matches!(
        iced.mnemonic(),
        M::Cmpsb | M::Cmpsw | M::Cmpsd | M::Cmpsq | M::Scasb | M::Scasw | M::Scasd | M::Scasq
    );
    let string = iced.is_string_instruction();
    iced.has_rep_prefix() && !string || iced.has_repne_prefix() && !(string && compares)
}
