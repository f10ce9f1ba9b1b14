//! P3: the instructions that may occur, by encoding.
//!
//! An allow-list and nothing else: [`admission`] allows an encoding only
//! if its mnemonic is listed here, its encoding is legacy or VEX, it
//! belongs to a listed CPU feature, and each of its operands is of a listed
//! kind (general-purpose, `xmm` and `ymm` registers, plain memory,
//! immediates, 64-bit branch targets). The operand kinds exclude `mov %cr3`,
//! `mov %ds`, `push %fs`, far and indirect transfers, gathers and everything of x87
//! and MMX. The encoding excludes XOP and EVEX, except plain moves of 64 bytes.
//!
//! Not listed on purpose although user code may execute them: `cpuid` and `rdpid`
//! (they reveal the machine, not dom0), `pushf`/`popf` (IF, DF), `xlat` and
//! `maskmovdqu` (an address in no operand), masked moves (their length is in a
//! register), `ldmxcsr` (unmasks exceptions), `enter`, `clflush` and the `xsave`
//! family.
//!
//! References to chapters are to Intel's manual, volume 1 (SDM).

use iced_x86::{Code, CpuidFeature, EncodingKind, Instruction, Mnemonic};

pub use crate::decode::system::{is_cache_hint, is_hypercall};

use crate::decode::operands;
use crate::decode::system::admission_by_kernel;
use crate::targets::Instructions;

/// Whether an encoding may occur, without regard to its prefixes ([`crate::decode::prefix`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It may occur.
    Allowed,
    /// A call or jump, near or far, to an address in a register or memory.
    Indirect,
    /// For the kernel alone, and reaches no memory except as `ins`, `outs`, `pushf` and
    /// `popf` do: a module for a stock kernel may have it.
    System,
    /// Anything else: it may not occur.
    Refused,
}

/// Whether an instruction may occur where these may.
pub fn admission_among(i: &Instruction, listed: Instructions) -> Admission {
    match listed {
        Instructions::Unprivileged => admission(i.code()),
        Instructions::Kernel => admission_by_kernel(i),
    }
}

/// Whether an instruction is allowed for the kernel alone, where these may occur.
pub fn is_system(i: &Instruction, listed: Instructions) -> bool {
    listed == Instructions::Kernel && admission_by_kernel(i) == Admission::System
}

/// The admission on one encoding.
pub fn admission(code: Code) -> Admission {
    let transfer = matches!(code.mnemonic(), Mnemonic::Call | Mnemonic::Jmp);
    let direct = matches!(
        code,
        Code::Call_rel32_64 | Code::Jmp_rel32_64 | Code::Jmp_rel8_64
    );
    if transfer && !direct {
        Admission::Indirect
    } else if wide_move(code) || is_listed(code) && !operands::unlisted(code) {
        Admission::Allowed
    } else {
        Admission::Refused
    }
}

/// Whether an encoding is listed in every respect except its operands.
pub fn is_listed(code: Code) -> bool {
    (general(code.mnemonic()) || vector(code.mnemonic()))
        && matches!(code.encoding(), EncodingKind::Legacy | EncodingKind::VEX)
        && code.cpuid_features().iter().all(|&f| feature(f))
        && !narrow(code)
        && !undocumented(code)
}

/// The only instructions in EVEX encoding on the list: moves of 64 bytes between
/// a register and memory. With a mask, `decode` refuses them.
#[rustfmt::skip] // A table: a pair a line.
pub fn wide_move(code: Code) -> bool {
    use Code::*;
    matches!(
        code,
        EVEX_Vmovups_zmm_k1z_zmmm512 | EVEX_Vmovups_zmmm512_k1z_zmm
        | EVEX_Vmovupd_zmm_k1z_zmmm512 | EVEX_Vmovupd_zmmm512_k1z_zmm
        | EVEX_Vmovaps_zmm_k1z_zmmm512 | EVEX_Vmovaps_zmmm512_k1z_zmm
        | EVEX_Vmovapd_zmm_k1z_zmmm512 | EVEX_Vmovapd_zmmm512_k1z_zmm
        | EVEX_Vmovdqu32_zmm_k1z_zmmm512 | EVEX_Vmovdqu32_zmmm512_k1z_zmm
        | EVEX_Vmovdqu64_zmm_k1z_zmmm512 | EVEX_Vmovdqu64_zmmm512_k1z_zmm
        | EVEX_Vmovdqa32_zmm_k1z_zmmm512 | EVEX_Vmovdqa32_zmmm512_k1z_zmm
        | EVEX_Vmovdqa64_zmm_k1z_zmmm512 | EVEX_Vmovdqa64_zmmm512_k1z_zmm
    )
}

/// Whether an encoding may read or write vector state: true unless it is only on the
/// list of integer instructions. `movsd` and `cmpsd` are on both lists, as string and as
/// vector instructions.
pub fn touches_vectors(code: Code) -> bool {
    let mnemonic = code.mnemonic();
    let string = matches!(code, Code::Movsd_m32_m32 | Code::Cmpsd_m32_m32);
    !general(mnemonic) || vector(mnemonic) && !string
}

/// CPU features whose instructions may be on the list.
fn feature(f: CpuidFeature) -> bool {
    use CpuidFeature::*;
    matches!(
        f,
        INTEL8086
            | INTEL186
            | INTEL286
            | INTEL386
            | INTEL486
            | X64
            | CMOV
            | CX8
            | CMPXCHG16B
            | MULTIBYTENOP
            | PAUSE
            | TSC
            | RDTSCP
            | RDRAND
            | RDSEED
            | POPCNT
            | LZCNT
            | BMI1
            | BMI2
            | ADX
            | MOVBE
            | CET_IBT
            | PREFETCHW
            | SSE
            | SSE2
            | SSE3
            | SSSE3
            | SSE4_1
            | SSE4_2
            | AVX
            | AVX2
            | FMA
            | F16C
            | AES
            | VAES
            | PCLMULQDQ
            | VPCLMULQDQ
            | SHA
    )
}

/// 16- and 32-bit forms of instructions that move `rsp`, `rip` or a loop counter, and
/// forms that AMD's and Intel's processors read differently.
fn narrow(code: Code) -> bool {
    use Code::*;
    matches!(
        code,
        Pushw_imm8
            | Push_imm16
            | Push_r16
            | Push_rm16
            | Pop_r16
            | Pop_rm16
            | Leavew
            | Retnw
            | Retnw_imm16
            | Retnq_imm16
            | Loop_rel8_64_ECX
            | Loope_rel8_64_ECX
            | Loopne_rel8_64_ECX
            | Movsxd_r16_rm16
            | Bswap_r16
    )
}

/// Undocumented encodings of documented instructions, which no assembler emits.
fn undocumented(code: Code) -> bool {
    use Code::*;
    match code.mnemonic() {
        Mnemonic::Lfence => code != Lfence,
        Mnemonic::Mfence => code != Mfence,
        Mnemonic::Sfence => code != Sfence,
        Mnemonic::Prefetchw => code != Prefetchw_m8,
        Mnemonic::Test => matches!(
            code,
            Test_rm8_imm8_F6r1 | Test_rm16_imm16_F7r1 | Test_rm32_imm32_F7r1 | Test_rm64_imm32_F7r1
        ),
        _ => false,
    }
}

/// The integer instructions.
#[rustfmt::skip] // A table: one line a dozen names.
pub fn general(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        // Moves, extensions and address arithmetic (SDM 7.3.1, 7.3.17).
        Mov | Movzx | Movsx | Movsxd | Movbe | Movnti | Lea | Xchg | Bswap | Cbw | Cwde | Cdqe
        | Cwd | Cdq | Cqo | Cmovo | Cmovno | Cmovb | Cmovae | Cmove | Cmovne | Cmovbe | Cmova
        | Cmovs | Cmovns | Cmovp | Cmovnp | Cmovl | Cmovge | Cmovle | Cmovg | Seto | Setno | Setb
        | Setae | Sete | Setne | Setbe | Seta | Sets | Setns | Setp | Setnp | Setl | Setge
        | Setle | Setg
        // Arithmetic and logic (7.3.2 to 7.3.4).
        | Add | Adc | Sub | Sbb | And | Or | Xor | Not | Neg | Inc | Dec | Cmp | Test | Mul
        | Imul | Div | Idiv | Xadd | Cmpxchg | Cmpxchg8b | Cmpxchg16b | Adcx | Adox | Mulx
        | Crc32
        // Shifts, rotates and bits (7.3.5, 7.3.6; BMI1, BMI2).
        | Shl | Shr | Sar | Rol | Ror | Rcl | Rcr | Shld | Shrd | Bt | Bts | Btr | Btc | Bsf
        | Bsr | Popcnt | Lzcnt | Tzcnt | Andn | Bextr | Blsi | Blsmsk | Blsr | Bzhi | Pdep | Pext
        | Rorx | Sarx | Shlx | Shrx
        // Flags, except those that popf could change (7.3.13).
        | Clc | Stc | Cmc | Lahf | Sahf | Cld | Std
        // Stack and control transfers (7.3.8); decode.rs judges their targets.
        | Push | Pop | Leave | Ret | Call | Jmp | Loop | Loope | Loopne | Jrcxz | Jo | Jno | Jb
        | Jae | Je | Jne | Jbe | Ja | Js | Jns | Jp | Jnp | Jl | Jge | Jle | Jg
        // Strings (7.3.9). Movsd and Cmpsd are vector mnemonics, too.
        | Movsb | Movsw | Movsd | Movsq | Stosb | Stosw | Stosd | Stosq | Lodsb | Lodsw | Lodsd
        | Lodsq | Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq
        // Fences, hints, clocks and random numbers; ud2 and int3 end a path.
        | Nop | Pause | Endbr64 | Lfence | Mfence | Sfence | Prefetchnta | Prefetcht0
        | Prefetcht1 | Prefetcht2 | Prefetchw | Rdtsc | Rdtscp | Rdrand | Rdseed | Ud2 | Int3
    )
}

/// SSE to SSE4.2, AVX, AVX2, FMA, F16C, AES, PCLMULQDQ and SHA: moves and
/// arithmetic.
#[rustfmt::skip] // A table: one line a dozen names.
pub fn vector(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Addpd | Addps | Addsd | Addss | Addsubpd | Addsubps | Aesdec | Aesdeclast | Aesenc
        | Aesenclast | Aesimc | Aeskeygenassist | Andnpd | Andnps | Andpd | Andps | Blendpd
        | Blendps | Blendvpd | Blendvps | Cmppd | Cmpps | Cmpsd | Cmpss | Comisd | Comiss
        | Cvtdq2pd | Cvtdq2ps | Cvtpd2dq | Cvtpd2ps | Cvtps2dq | Cvtps2pd | Cvtsd2si | Cvtsd2ss
        | Cvtsi2sd | Cvtsi2ss | Cvtss2sd | Cvtss2si | Cvttpd2dq | Cvttps2dq | Cvttsd2si
        | Cvttss2si | Divpd | Divps | Divsd | Divss | Dppd | Dpps | Extractps | Haddpd | Haddps
        | Hsubpd | Hsubps | Insertps | Lddqu | Maxpd | Maxps | Maxsd | Maxss | Minpd | Minps
        | Minsd | Minss | Movapd | Movaps | Movd | Movddup | Movdqa | Movdqu | Movhlps | Movhpd
        | Movhps | Movlhps | Movlpd | Movlps | Movmskpd | Movmskps | Movntdq | Movntdqa | Movntpd
        | Movntps | Movq | Movsd | Movshdup | Movsldup | Movss | Movupd | Movups | Mpsadbw
        | Mulpd | Mulps | Mulsd | Mulss | Orpd | Orps | Pabsb | Pabsd | Pabsw | Packssdw
        | Packsswb | Packusdw | Packuswb | Paddb | Paddd | Paddq | Paddsb | Paddsw | Paddusb
        | Paddusw | Paddw | Palignr | Pand | Pandn | Pavgb | Pavgw | Pblendvb | Pblendw
        | Pclmulqdq | Pcmpeqb | Pcmpeqd | Pcmpeqq | Pcmpeqw | Pcmpestri | Pcmpestri64 | Pcmpestrm
        | Pcmpestrm64 | Pcmpgtb | Pcmpgtd | Pcmpgtq | Pcmpgtw | Pcmpistri | Pcmpistrm | Pextrb
        | Pextrd | Pextrq | Pextrw | Phaddd | Phaddsw | Phaddw | Phminposuw | Phsubd | Phsubsw
        | Phsubw | Pinsrb | Pinsrd | Pinsrq | Pinsrw | Pmaddubsw | Pmaddwd | Pmaxsb | Pmaxsd
        | Pmaxsw | Pmaxub | Pmaxud | Pmaxuw | Pminsb | Pminsd | Pminsw | Pminub | Pminud | Pminuw
        | Pmovmskb | Pmovsxbd | Pmovsxbq | Pmovsxbw | Pmovsxdq | Pmovsxwd | Pmovsxwq | Pmovzxbd
        | Pmovzxbq | Pmovzxbw | Pmovzxdq | Pmovzxwd | Pmovzxwq | Pmuldq | Pmulhrsw | Pmulhuw
        | Pmulhw | Pmulld | Pmullw | Pmuludq | Por | Psadbw | Pshufb | Pshufd | Pshufhw | Pshuflw
        | Psignb | Psignd | Psignw | Pslld | Pslldq | Psllq | Psllw | Psrad | Psraw | Psrld
        | Psrldq | Psrlq | Psrlw | Psubb | Psubd | Psubq | Psubsb | Psubsw | Psubusb | Psubusw
        | Psubw | Ptest | Punpckhbw | Punpckhdq | Punpckhqdq | Punpckhwd | Punpcklbw | Punpckldq
        | Punpcklqdq | Punpcklwd | Pxor | Rcpps | Rcpss | Roundpd | Roundps | Roundsd | Roundss
        | Rsqrtps | Rsqrtss | Sha1msg1 | Sha1msg2 | Sha1nexte | Sha1rnds4 | Sha256msg1
        | Sha256msg2 | Sha256rnds2 | Shufpd | Shufps | Sqrtpd | Sqrtps | Sqrtsd | Sqrtss | Subpd
        | Subps | Subsd | Subss | Ucomisd | Ucomiss | Unpckhpd | Unpckhps | Unpcklpd | Unpcklps
        | Vaddpd | Vaddps | Vaddsd | Vaddss | Vaddsubpd | Vaddsubps | Vaesdec | Vaesdeclast
        | Vaesenc | Vaesenclast | Vaesimc | Vaeskeygenassist | Vandnpd | Vandnps | Vandpd
        | Vandps | Vblendpd | Vblendps | Vblendvpd | Vblendvps | Vbroadcastf128 | Vbroadcasti128
        | Vbroadcastsd | Vbroadcastss | Vcmppd | Vcmpps | Vcmpsd | Vcmpss | Vcomisd | Vcomiss
        | Vcvtdq2pd | Vcvtdq2ps | Vcvtpd2dq | Vcvtpd2ps | Vcvtph2ps | Vcvtps2dq | Vcvtps2pd
        | Vcvtps2ph | Vcvtsd2si | Vcvtsd2ss | Vcvtsi2sd | Vcvtsi2ss | Vcvtss2sd | Vcvtss2si
        | Vcvttpd2dq | Vcvttps2dq | Vcvttsd2si | Vcvttss2si | Vdivpd | Vdivps | Vdivsd | Vdivss
        | Vdppd | Vdpps | Vextractf128 | Vextracti128 | Vextractps | Vfmadd132pd | Vfmadd132ps
        | Vfmadd132sd | Vfmadd132ss | Vfmadd213pd | Vfmadd213ps | Vfmadd213sd | Vfmadd213ss
        | Vfmadd231pd | Vfmadd231ps | Vfmadd231sd | Vfmadd231ss | Vfmaddsub132pd | Vfmaddsub132ps
        | Vfmaddsub213pd | Vfmaddsub213ps | Vfmaddsub231pd | Vfmaddsub231ps | Vfmsub132pd
        | Vfmsub132ps | Vfmsub132sd | Vfmsub132ss | Vfmsub213pd | Vfmsub213ps | Vfmsub213sd
        | Vfmsub213ss | Vfmsub231pd | Vfmsub231ps | Vfmsub231sd | Vfmsub231ss | Vfmsubadd132pd
        | Vfmsubadd132ps | Vfmsubadd213pd | Vfmsubadd213ps | Vfmsubadd231pd | Vfmsubadd231ps
        | Vfnmadd132pd | Vfnmadd132ps | Vfnmadd132sd | Vfnmadd132ss | Vfnmadd213pd | Vfnmadd213ps
        | Vfnmadd213sd | Vfnmadd213ss | Vfnmadd231pd | Vfnmadd231ps | Vfnmadd231sd | Vfnmadd231ss
        | Vfnmsub132pd | Vfnmsub132ps | Vfnmsub132sd | Vfnmsub132ss | Vfnmsub213pd | Vfnmsub213ps
        | Vfnmsub213sd | Vfnmsub213ss | Vfnmsub231pd | Vfnmsub231ps | Vfnmsub231sd | Vfnmsub231ss
        | Vhaddpd | Vhaddps | Vhsubpd | Vhsubps | Vinsertf128 | Vinserti128 | Vinsertps | Vlddqu
        | Vmaxpd | Vmaxps | Vmaxsd | Vmaxss | Vminpd | Vminps | Vminsd | Vminss | Vmovapd
        | Vmovaps | Vmovd | Vmovddup | Vmovdqa | Vmovdqu | Vmovhlps | Vmovhpd | Vmovhps
        | Vmovlhps | Vmovlpd | Vmovlps | Vmovmskpd | Vmovmskps | Vmovntdq | Vmovntdqa | Vmovntpd
        | Vmovntps | Vmovq | Vmovsd | Vmovshdup | Vmovsldup | Vmovss | Vmovupd | Vmovups
        | Vmpsadbw | Vmulpd | Vmulps | Vmulsd | Vmulss | Vorpd | Vorps | Vpabsb | Vpabsd | Vpabsw
        | Vpackssdw | Vpacksswb | Vpackusdw | Vpackuswb | Vpaddb | Vpaddd | Vpaddq | Vpaddsb
        | Vpaddsw | Vpaddusb | Vpaddusw | Vpaddw | Vpalignr | Vpand | Vpandn | Vpavgb | Vpavgw
        | Vpblendd | Vpblendvb | Vpblendw | Vpbroadcastb | Vpbroadcastd | Vpbroadcastq
        | Vpbroadcastw | Vpclmulqdq | Vpcmpeqb | Vpcmpeqd | Vpcmpeqq | Vpcmpeqw | Vpcmpestri
        | Vpcmpestri64 | Vpcmpestrm | Vpcmpestrm64 | Vpcmpgtb | Vpcmpgtd | Vpcmpgtq | Vpcmpgtw
        | Vpcmpistri | Vpcmpistrm | Vperm2f128 | Vperm2i128 | Vpermd | Vpermilpd | Vpermilps
        | Vpermpd | Vpermps | Vpermq | Vpextrb | Vpextrd | Vpextrq | Vpextrw | Vphaddd | Vphaddsw
        | Vphaddw | Vphminposuw | Vphsubd | Vphsubsw | Vphsubw | Vpinsrb | Vpinsrd | Vpinsrq
        | Vpinsrw | Vpmaddubsw | Vpmaddwd | Vpmaxsb | Vpmaxsd | Vpmaxsw | Vpmaxub | Vpmaxud
        | Vpmaxuw | Vpminsb | Vpminsd | Vpminsw | Vpminub | Vpminud | Vpminuw | Vpmovmskb
        | Vpmovsxbd | Vpmovsxbq | Vpmovsxbw | Vpmovsxdq | Vpmovsxwd | Vpmovsxwq | Vpmovzxbd
        | Vpmovzxbq | Vpmovzxbw | Vpmovzxdq | Vpmovzxwd | Vpmovzxwq | Vpmuldq | Vpmulhrsw
        | Vpmulhuw | Vpmulhw | Vpmulld | Vpmullw | Vpmuludq | Vpor | Vpsadbw | Vpshufb | Vpshufd
        | Vpshufhw | Vpshuflw | Vpsignb | Vpsignd | Vpsignw | Vpslld | Vpslldq | Vpsllq | Vpsllvd
        | Vpsllvq | Vpsllw | Vpsrad | Vpsravd | Vpsraw | Vpsrld | Vpsrldq | Vpsrlq | Vpsrlvd
        | Vpsrlvq | Vpsrlw | Vpsubb | Vpsubd | Vpsubq | Vpsubsb | Vpsubsw | Vpsubusb | Vpsubusw
        | Vpsubw | Vptest | Vpunpckhbw | Vpunpckhdq | Vpunpckhqdq | Vpunpckhwd | Vpunpcklbw
        | Vpunpckldq | Vpunpcklqdq | Vpunpcklwd | Vpxor | Vrcpps | Vrcpss | Vroundpd | Vroundps
        | Vroundsd | Vroundss | Vrsqrtps | Vrsqrtss | Vshufpd | Vshufps | Vsqrtpd | Vsqrtps
        | Vsqrtsd | Vsqrtss | Vsubpd | Vsubps | Vsubsd | Vsubss | Vtestpd | Vtestps | Vucomisd
        | Vucomiss | Vunpckhpd | Vunpckhps | Vunpcklpd | Vunpcklps | Vxorpd | Vxorps | Vzeroall
        | Vzeroupper | Xorpd | Xorps
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use iced_x86::FlowControl;

    fn allowed() -> impl Iterator<Item = Code> {
        Code::values().filter(|&code| admission(code) == Admission::Allowed)
    }

    #[test]
    fn nothing_privileged_or_indirect_is_allowed() {
        for code in allowed() {
            let info = code.op_code();
            assert!(
                !code.is_privileged() && !code.is_save_restore_instruction(),
                "{code:?}"
            );
            assert!(!info.is_input_output(), "{code:?}");
            assert!(!code.is_call_far() && !code.is_jmp_far(), "{code:?}");
            let direct = match code.flow_control() {
                FlowControl::Next => true,
                FlowControl::Call | FlowControl::UnconditionalBranch => {
                    info.op_kinds().iter().all(|&k| operands::branch(k))
                }
                FlowControl::ConditionalBranch => true,
                FlowControl::Return => code == Code::Retnq,
                FlowControl::Interrupt => code == Code::Int3,
                FlowControl::Exception => code == Code::Ud2,
                _ => false,
            };
            assert!(direct, "{code:?}");
        }
    }

    /// Checks `touches_vectors` against iced's operands of each encoding.
    #[test]
    fn what_names_a_vector_register_touches_vectors() {
        use iced_x86::OpCodeOperandKind as OperandKind;
        let names_one = |code: Code| {
            let kinds = code.op_code().op_kinds().to_vec();
            let general = |kind: &OperandKind| operands::general(*kind) || operands::branch(*kind);
            !kinds.iter().all(general)
        };
        let without: Vec<Code> = allowed()
            .filter(|&code| touches_vectors(code) && !names_one(code))
            .collect();
        // Every register, and none in particular.
        assert_eq!(without, [Code::VEX_Vzeroupper, Code::VEX_Vzeroall]);
        for code in allowed().filter(|&code| names_one(code)) {
            assert!(touches_vectors(code), "{code:?}");
        }
    }

    #[test]
    fn what_moves_rsp_is_on_a_short_list() {
        let list: Vec<Code> = allowed()
            .filter(|code| code.is_stack_instruction())
            .collect();
        use Code::*;
        let expected = [
            Push_r64, Pop_r64, Pushq_imm32, Pushq_imm8, Pop_rm64, Retnq, Leaveq, Call_rel32_64,
            Push_rm64,
        ];
        assert_eq!(list, expected);
    }

    /// A change of the list must be intended: then this number changes, too.
    #[test]
    fn the_list_is_as_long_as_it_was_when_it_was_reviewed() {
        assert_eq!(allowed().count(), 1559);
    }
}
