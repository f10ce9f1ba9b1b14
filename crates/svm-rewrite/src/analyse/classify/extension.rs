//! Which instructions are kept in rewritten code at all, by extension.
//!
//! Takes an instruction's encoding, gives the name under which it is refused,
//! or nothing. Kernel code is compiled for the integer instructions; the vector
//! instructions that it uses (between `kernel_fpu_begin` and `_end`) are SSE to AVX2
//! and 64-byte moves. Everything else is refused here, by name, so that a person reads
//! what is wrong with the place and not that a proof failed. The verifier has a list
//! of its own, which is not used here.
//!
//! An allow-list: an extension that is not listed is refused.

use iced_x86::{Code, CpuidFeature, EncodingKind, Instruction, Mnemonic, Register};

use crate::registers::register_operands;

const UNKNOWN: &str = "an extension that is not known here";
const AVX512: &str = "AVX-512, of which only plain moves of 64 bytes are kept";
const X87: &str = "x87: its exceptions arrive late, and its state holds code addresses";
const MMX: &str = "MMX shares its registers with x87";
const NOW3D: &str = "3DNow!: no current processor has it";
const WITHDRAWN: &str = "an extension that AMD withdrew";
const LATE_VECTORS: &str = "a vector extension after AVX2";
const CACHE: &str = "it writes back, empties or zeroes a line of the cache";
const LATE_STORES: &str = "a store of an unusual kind (direct, atomic, trace)";
const WAITS: &str = "it waits for a write to memory, or for a time";
const SHADOW_STACK: &str = "the shadow stack is the kernel's";
const KEYS: &str = "wrapped keys are the kernel's";
const MACHINE: &str = "it identifies the machine, and dom0's is another";
const CONTROL: &str = "it reads or sets how floating point rounds and traps";
const UNDOCUMENTED: &str = "an undocumented encoding";
const DISAGREE: &str = "processors or decoders disagree about this form";
const SEGMENT: &str = "it loads a segment register";

/// Why an instruction is not kept; `None` if it may be.
pub fn refused(iced: &Instruction) -> Option<&'static str> {
    let code = iced.code();
    by_encoding(iced)
        .or_else(|| by_operand(iced))
        .or_else(|| code.cpuid_features().iter().find_map(|&f| by_feature(f)))
        .or_else(|| by_name(code))
}

// `Code::op_code` is not used: its table is built at the first call, mostly from text,
// which takes as long as rewriting a small driver.

fn by_encoding(iced: &Instruction) -> Option<&'static str> {
    match iced.code().encoding() {
        EncodingKind::Legacy | EncodingKind::VEX => None,
        EncodingKind::EVEX if is_wide_move(iced) => None,
        EncodingKind::EVEX => Some(AVX512),
        EncodingKind::XOP => Some(WITHDRAWN),
        EncodingKind::D3NOW => Some(NOW3D),
        _ => Some(UNKNOWN),
    }
}

/// `vmov*` between a `zmm` register and memory.
fn is_wide_move(iced: &Instruction) -> bool {
    let moves = matches!(
        iced.mnemonic(),
        Mnemonic::Vmovups
            | Mnemonic::Vmovupd
            | Mnemonic::Vmovaps
            | Mnemonic::Vmovapd
            | Mnemonic::Vmovdqu32
            | Mnemonic::Vmovdqu64
            | Mnemonic::Vmovdqa32
            | Mnemonic::Vmovdqa64
    );
    moves && register_operands(iced).any(Register::is_zmm)
}

/// Registers that no listed extension has.
fn by_operand(iced: &Instruction) -> Option<&'static str> {
    // With an operand in memory these name no MMX register, and still put the
    // processor into MMX state.
    if let Mnemonic::Cvtpi2ps | Mnemonic::Cvtpi2pd = iced.mnemonic() {
        return Some(MMX);
    }
    register_operands(iced).find_map(|register| match register {
        _ if register.is_mm() => Some(MMX),
        _ if register.is_k() => Some(AVX512),
        _ => None,
    })
}

fn by_feature(feature: CpuidFeature) -> Option<&'static str> {
    use CpuidFeature::*;
    match feature {
        // Integers, clocks, hints.
        INTEL8086 | INTEL186 | INTEL286 | INTEL386 | INTEL486 | X64 | CMOV | CX8 | CMPXCHG16B
        | MULTIBYTENOP | PAUSE | TSC | RDTSCP | RDRAND | RDSEED | POPCNT | LZCNT | BMI1 | BMI2
        | ADX | MOVBE | CET_IBT | PREFETCHW => None,
        // Vectors. The encoding was judged before.
        SSE | SSE2 | SSE3 | SSSE3 | SSE4_1 | SSE4_2 | AVX | AVX2 | AVX512F | FMA | F16C | AES
        | VAES | PCLMULQDQ | SHA => None,
        FPU | FPU287 | FPU387 => Some(X87),
        CpuidFeature::MMX => Some(self::MMX),
        D3NOW | D3NOWEXT | CYRIX_D3NOW => Some(NOW3D),
        SSE4A | FMA4 | XOP | TBM | LWP => Some(WITHDRAWN),
        GFNI | VPCLMULQDQ | SHA512 | SM3 | SM4 | AVX_VNNI | AVX_VNNI_INT8 | AVX_VNNI_INT16
        | AVX_IFMA | AVX_NE_CONVERT => Some(LATE_VECTORS),
        CLFSH | CLFLUSHOPT | CLWB | CLZERO | PCOMMIT => Some(CACHE),
        MOVDIRI | MOVDIR64B | ENQCMD | RAO_INT | CMPCCXADD | PTWRITE => Some(LATE_STORES),
        MONITORX | WAITPKG => Some(WAITS),
        CET_SS => Some(SHADOW_STACK),
        AESKLE | WIDE_KL | KL => Some(KEYS),
        CPUID | RDPID | RDPRU | SERIALIZE => Some(MACHINE),
        _ => Some(UNKNOWN),
    }
}

/// Instructions that are refused although their extension is listed.
fn by_name(code: Code) -> Option<&'static str> {
    use Mnemonic::*;
    match code.mnemonic() {
        Ldmxcsr | Stmxcsr | Vldmxcsr | Vstmxcsr => Some(CONTROL),
        Lds | Les | Lfs | Lgs | Lss => Some(SEGMENT),
        Wait => Some(X87),
        Sal => Some(UNDOCUMENTED),
        // With a register: AMD's processors fault at some, Intel's at none.
        Reservednop => Some(DISAGREE),
        _ => by_form(code),
    }
}

#[rustfmt::skip] // A table: a family a line.
fn by_form(code: Code) -> Option<&'static str> {
    use Code::*;
    match code {
        Test_rm8_imm8_F6r1 | Test_rm16_imm16_F7r1 | Test_rm32_imm32_F7r1 | Test_rm64_imm32_F7r1
        | Lfence_E9 | Lfence_EA | Lfence_EB | Lfence_EC | Lfence_ED | Lfence_EE | Lfence_EF
        | Mfence_F1 | Mfence_F2 | Mfence_F3 | Mfence_F4 | Mfence_F5 | Mfence_F6 | Mfence_F7
        | Sfence_F9 | Sfence_FA | Sfence_FB | Sfence_FC | Sfence_FD | Sfence_FE | Sfence_FF
            => Some(UNDOCUMENTED),
        Movsxd_r16_rm16 | Bswap_r16
        | Loop_rel8_64_ECX | Loope_rel8_64_ECX | Loopne_rel8_64_ECX | Jecxz_rel8_64
        // W is ignored there (SDM volume 2, PEXTRB and PEXTRW), not by every decoder.
        | VEX_Vpextrb_r64m8_xmm_imm8 | VEX_Vpextrw_r64m16_xmm_imm8
            => Some(DISAGREE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{OpCodeOperandKind as OperandKind, OpKind};

    use super::*;

    fn kinds(code: Code) -> &'static [OperandKind] {
        code.op_code().op_kinds()
    }

    /// The registers that [`by_operand`] sees in an instruction are those that the
    /// decoder's tables give for its form.
    #[test]
    fn mmx_and_mask_registers_are_named_by_an_operand() {
        for code in Code::values() {
            let kinds = kinds(code);
            let in_memory = |kind: &&OperandKind| {
                matches!(kind, OperandKind::mm_or_mem | OperandKind::k_or_mem)
            };
            let named = |kind: &&OperandKind| {
                use OperandKind::*;
                matches!(kind, mm_reg | mm_rm | k_reg | kp1_reg | k_rm | k_vvvv)
            };
            let hidden = kinds.iter().any(|k| in_memory(&k)) && !kinds.iter().any(|k| named(&k));
            let listed = matches!(code.mnemonic(), Mnemonic::Cvtpi2ps | Mnemonic::Cvtpi2pd);
            assert_eq!(hidden, listed, "{code:?}");
        }
    }

    #[test]
    fn a_wide_move_is_one_between_zmm_and_memory() {
        let evex = Code::values().filter(|code| code.encoding() == EncodingKind::EVEX);
        for code in evex {
            let (zmm, memory) = (OperandKind::zmm_reg, OperandKind::zmm_or_mem);
            let wide = kinds(code).contains(&zmm);
            if wide && is_wide_move(&named(code)) {
                assert!(kinds(code).contains(&memory), "{code:?}");
            }
            assert!(wide || !is_wide_move(&named(code)), "{code:?}");
        }
    }

    /// An instruction of a form whose operands are registers of the kinds it names.
    fn named(code: Code) -> Instruction {
        let mut iced = Instruction::default();
        iced.set_code(code);
        for (n, kind) in (0..).zip(kinds(code)).take(4) {
            let register = match kind {
                OperandKind::zmm_reg
                | OperandKind::zmm_or_mem
                | OperandKind::zmm_rm
                | OperandKind::zmm_vvvv => Register::ZMM1,
                _ => Register::XMM1,
            };
            iced.set_op_kind(n, OpKind::Register);
            iced.set_op_register(n, register);
        }
        iced
    }
}
