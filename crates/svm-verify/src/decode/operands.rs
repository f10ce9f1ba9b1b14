//! P3: kinds of operands that no instruction on the list has.
//!
//! The decoder has a table of the kinds of operands of each encoding. But this table is
//! built at the first use, mostly from text, which takes as long as the proof of a small
//! driver. So this file lists by name the encodings whose mnemonic, extension and
//! encoding are listed ([`crate::decode::allow`]) while an operand is not. A test
//! compares the list with the decoder's table.

use iced_x86::Code;

/// Whether an operand is of a kind that is not listed, or 64-bit mode does not have
/// the form: of encodings that are on the list otherwise.
#[rustfmt::skip] // A table: one line some names.
pub fn unlisted(code: Code) -> bool {
    use Code::*;
    matches!(
        code,
        // Branches of 16 and 32 bits, and counters of 16.
        Jo_rel8_16 | Jo_rel8_32 | Jno_rel8_16 | Jno_rel8_32 | Jb_rel8_16 | Jb_rel8_32
        | Jae_rel8_16 | Jae_rel8_32 | Je_rel8_16 | Je_rel8_32 | Jne_rel8_16 | Jne_rel8_32
        | Jbe_rel8_16 | Jbe_rel8_32 | Ja_rel8_16 | Ja_rel8_32 | Js_rel8_16 | Js_rel8_32
        | Jns_rel8_16 | Jns_rel8_32 | Jp_rel8_16 | Jp_rel8_32 | Jnp_rel8_16 | Jnp_rel8_32
        | Jl_rel8_16 | Jl_rel8_32 | Jge_rel8_16 | Jge_rel8_32 | Jle_rel8_16 | Jle_rel8_32
        | Jg_rel8_16 | Jg_rel8_32 | Loopne_rel8_16_CX | Loopne_rel8_32_CX | Loopne_rel8_16_ECX
        | Loopne_rel8_32_ECX | Loopne_rel8_16_RCX | Loope_rel8_16_CX | Loope_rel8_32_CX
        | Loope_rel8_16_ECX | Loope_rel8_32_ECX | Loope_rel8_16_RCX | Loop_rel8_16_CX
        | Loop_rel8_32_CX | Loop_rel8_16_ECX | Loop_rel8_32_ECX | Loop_rel8_16_RCX | Jrcxz_rel8_16
        | Jo_rel16 | Jo_rel32_32 | Jno_rel16 | Jno_rel32_32 | Jb_rel16 | Jb_rel32_32 | Jae_rel16
        | Jae_rel32_32 | Je_rel16 | Je_rel32_32 | Jne_rel16 | Jne_rel32_32 | Jbe_rel16
        | Jbe_rel32_32 | Ja_rel16 | Ja_rel32_32 | Js_rel16 | Js_rel32_32 | Jns_rel16
        | Jns_rel32_32 | Jp_rel16 | Jp_rel32_32 | Jnp_rel16 | Jnp_rel32_32 | Jl_rel16
        | Jl_rel32_32 | Jge_rel16 | Jge_rel32_32 | Jle_rel16 | Jle_rel32_32 | Jg_rel16
        | Jg_rel32_32
        // Segment, control and debug registers.
        | Pushw_ES | Pushd_ES | Popw_ES | Popd_ES | Pushw_CS | Pushd_CS | Pushw_SS | Pushd_SS
        | Popw_SS | Popd_SS | Pushw_DS | Pushd_DS | Popw_DS | Popd_DS | Mov_rm16_Sreg
        | Mov_r32m16_Sreg | Mov_r64m16_Sreg | Mov_Sreg_rm16 | Mov_Sreg_r32m16 | Mov_Sreg_r64m16
        | Mov_r32_cr | Mov_r64_cr | Mov_r32_dr | Mov_r64_dr | Mov_cr_r32 | Mov_cr_r64 | Mov_dr_r32
        | Mov_dr_r64 | Pushw_FS | Pushd_FS | Pushq_FS | Popw_FS | Popd_FS | Popq_FS | Pushw_GS
        | Pushd_GS | Pushq_GS | Popw_GS | Popd_GS | Popq_GS
        // MMX, in extensions that are listed.
        | Pinsrw_mm_r32m16_imm8 | Pinsrw_mm_r64m16_imm8 | Pextrw_r32_mm_imm8 | Pextrw_r64_mm_imm8
        | Pmovmskb_r32_mm | Pmovmskb_r64_mm | Pminub_mm_mmm64 | Pmaxub_mm_mmm64 | Pavgb_mm_mmm64
        | Pavgw_mm_mmm64 | Pmulhuw_mm_mmm64 | Pminsw_mm_mmm64 | Pmaxsw_mm_mmm64
        | Pmuludq_mm_mmm64 | Psadbw_mm_mmm64 | Psubq_mm_mmm64 | Pshufb_mm_mmm64 | Phaddw_mm_mmm64
        | Phaddd_mm_mmm64 | Phaddsw_mm_mmm64 | Pmaddubsw_mm_mmm64 | Phsubw_mm_mmm64
        | Phsubd_mm_mmm64 | Phsubsw_mm_mmm64 | Psignb_mm_mmm64 | Psignw_mm_mmm64 | Psignd_mm_mmm64
        | Pmulhrsw_mm_mmm64 | Pabsb_mm_mmm64 | Pabsw_mm_mmm64 | Pabsd_mm_mmm64
        | Palignr_mm_mmm64_imm8
        // Forms that 64-bit mode does not have.
        | Inc_r16 | Inc_r32 | Dec_r16 | Dec_r32 | Push_r32 | Pop_r32 | Pushd_imm32 | Pushd_imm8
        | Add_rm8_imm8_82 | Or_rm8_imm8_82 | Adc_rm8_imm8_82 | Sbb_rm8_imm8_82 | And_rm8_imm8_82
        | Sub_rm8_imm8_82 | Xor_rm8_imm8_82 | Cmp_rm8_imm8_82 | Pop_rm32 | Retnd_imm16 | Retnd
        | Leaved | Push_rm32
    )
}

#[cfg(test)]
pub use kinds::{branch, general};

#[cfg(test)]
mod kinds {
    use iced_x86::OpCodeOperandKind;

    /// Operands of direct calls and jumps.
    pub fn branch(kind: OpCodeOperandKind) -> bool {
        matches!(kind, OpCodeOperandKind::br64_1 | OpCodeOperandKind::br64_4)
    }

    /// Operands of the integer instructions.
    pub fn general(kind: OpCodeOperandKind) -> bool {
        use OpCodeOperandKind::*;
        matches!(
            kind,
            mem | mem_offs
                | r8_or_mem
                | r16_or_mem
                | r32_or_mem
                | r64_or_mem
                | r8_reg
                | r8_opcode
                | r16_reg
                | r16_reg_mem
                | r16_rm
                | r16_opcode
                | r32_reg
                | r32_reg_mem
                | r32_rm
                | r32_opcode
                | r32_vvvv
                | r64_reg
                | r64_reg_mem
                | r64_rm
                | r64_opcode
                | r64_vvvv
                | al
                | cl
                | ax
                | eax
                | rax
                | imm8
                | imm8_const_1
                | imm8sex16
                | imm8sex32
                | imm8sex64
                | imm16
                | imm32
                | imm32sex64
                | imm64
                | seg_rSI
                | es_rDI
                | br64_1
                | br64_4
        )
    }

    /// Operands of the vector instructions.
    pub fn vector(kind: OpCodeOperandKind) -> bool {
        use OpCodeOperandKind::*;
        matches!(
            kind,
            mem | xmm_or_mem
                | ymm_or_mem
                | r8_or_mem
                | r16_or_mem
                | r32_or_mem
                | r64_or_mem
                | xmm_reg
                | xmm_rm
                | xmm_vvvv
                | xmm_is4
                | ymm_reg
                | ymm_rm
                | ymm_vvvv
                | ymm_is4
                | r32_reg
                | r32_reg_mem
                | r32_rm
                | r64_reg
                | r64_reg_mem
                | r64_rm
                | imm8
        )
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::EncodingKind;

    use super::*;
    use crate::decode::allow;

    /// The list above, as a rule over the decoder's own table.
    #[test]
    fn every_form_has_operands_of_listed_kinds() {
        for code in Code::values().filter(|&code| allow::is_listed(code)) {
            if allow::admission(code) == allow::Admission::Indirect {
                // Calls and jumps were judged by name.
                continue;
            }
            let info = code.op_code();
            let all = |of: fn(iced_x86::OpCodeOperandKind) -> bool| {
                info.op_kinds().iter().all(|&kind| of(kind))
            };
            let integer = allow::general(code.mnemonic()) && all(kinds::general);
            let vector = allow::vector(code.mnemonic()) && all(kinds::vector);
            let good = (integer || vector) && info.is_instruction() && info.mode64();
            assert_eq!(unlisted(code), !good, "{code:?}");
        }
    }

    #[test]
    fn only_forms_that_are_listed_otherwise_stand_there() {
        let named = Code::values().filter(|&code| unlisted(code));
        let idle: Vec<Code> = named.filter(|&code| !allow::is_listed(code)).collect();
        assert_eq!(idle, []);
    }

    #[test]
    fn both_tables_of_the_decoder_say_the_same_encoding() {
        for code in Code::values() {
            let kind: EncodingKind = code.encoding();
            assert_eq!(kind, code.op_code().encoding(), "{code:?}");
        }
    }
}
