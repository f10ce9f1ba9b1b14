//! P3: what a module for a stock kernel may have besides the list of
//! [`crate::decode::allow`]: instructions of the system, calls of the hypervisor, hints,
//! and vectors of 64 bytes.

use iced_x86::{Code, CpuidFeature, EncodingKind, Instruction, Mnemonic};

use crate::decode::allow::{Admission, admission};

/// The admission on an instruction of a module for a stock kernel. It may do what the
/// kernel does, except entering guests, enclaves or user mode.
pub fn admission_by_kernel(i: &Instruction) -> Admission {
    match admission(i.code()) {
        Admission::Refused if system(i.mnemonic()) => Admission::System,
        Admission::Refused if is_cache_hint(i.mnemonic()) => Admission::Allowed,
        Admission::Refused if is_wide(i.code()) => Admission::Allowed,
        admission => admission,
    }
}

/// Hints about cache lines: they compute nothing and cannot fault the driver's
/// data.
pub fn is_cache_hint(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Prefetch
            | Prefetchw
            | Prefetchwt1
            | Prefetchnta
            | Prefetcht0
            | Prefetcht1
            | Prefetcht2
            | Clflush
            | Clflushopt
            | Clwb
            | Cldemote
    )
}

/// System instructions (SDM volume 1, 5.20). `Mov` is here for control and debug
/// registers; classification refuses loads of segment registers. Which registers a
/// hypercall changes depends on the hypervisor: classification believes all. Not `invd`: what was
/// written to caches and not to memory it undoes, return addresses too (SDM volume 2, INVD).
#[rustfmt::skip] // A table: one line a dozen names.
fn system(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Cli | Sti | Hlt | Clac | Stac | Clts | Cpuid | Rdmsr | Wrmsr | Rdpmc | Rdpid | Wbinvd
        | Wbnoinvd | Xgetbv | Xsetbv | Rdpkru | Wrpkru | Monitor | Mwait | Monitorx
        | Mwaitx | In | Out | Insb | Insw | Insd | Outsb | Outsw | Outsd | Pushfq | Popfq
        | Serialize | Ud1 | Fninit | Wait | Emms | Mov | Tpause | Umwait | Verw | Vmcall
        | Vmmcall
    )
}

/// Whether a move of a control or debug register has the ModRM byte of a register. Processors
/// ignore the mode there (SDM volume 2, MOV - Move to/from Control Registers). The kernel's
/// decoder does not: it finds a displacement, which is the next instruction
/// (`insn_get_displacement`, arch/x86/lib/insn.c), adds a distance to it in an alternative's
/// replacement (`__apply_relocation`), and continues behind it in an encrypted guest
/// (`vc_finish_insn`, arch/x86/coco/sev/vc-handle.c).
pub fn is_usual(code: Code, bytes: &[u8]) -> bool {
    use Code::*;
    let moves = matches!(code, Mov_r64_cr | Mov_r64_dr | Mov_cr_r64 | Mov_dr_r64);
    // It is the last byte: there is no operand in memory and no immediate.
    !moves || bytes.last().is_some_and(|modrm| modrm >> 6 == 0b11)
}

/// Calls of the machine's own hypervisor, by Intel's and by AMD's instruction
/// (arch/x86/include/asm/{kvm_para,vmware}.h).
pub fn is_hypercall(mnemonic: Mnemonic) -> bool {
    matches!(mnemonic, Mnemonic::Vmcall | Mnemonic::Vmmcall)
}

/// AVX-512 of the kernel's RAID and cryptography: logic, sums, shifts, shuffles and moves
/// of whole registers (SDM volume 1, 5.19). Their operand in memory is as wide as the
/// decoder says only without a mask, so `decode` refuses masks; nothing is listed whose
/// place or width in memory depends on more (gathers, compressed stores).
#[rustfmt::skip] // A table: one line half a dozen names.
fn is_wide(code: Code) -> bool {
    use CpuidFeature::*;
    use Mnemonic::*;
    let listed = matches!(
        code.mnemonic(),
        Vmovdqa32 | Vmovdqa64 | Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64
        | Vmovapd | Vmovaps | Vmovupd | Vmovups | Vmovntdq | Vmovntdqa | Vmovntpd | Vmovntps
        | Vpxord | Vpxorq | Vpandd | Vpandq | Vpandnd | Vpandnq | Vpord | Vporq | Vpternlogd
        | Vpternlogq | Vpaddb | Vpaddw | Vpaddd | Vpaddq | Vpsubb | Vpsubw | Vpsubd | Vpsubq
        | Vpmuludq | Vpsllw | Vpslld | Vpsllq | Vpsrlw | Vpsrld | Vpsrlq | Vpsraw | Vpsrad
        | Vpsraq | Vprold | Vprolq | Vprord | Vprorq | Vprolvd | Vprolvq | Vprorvd | Vprorvq
        | Vpshufb | Vpshufd | Vpunpckldq | Vpunpckhdq | Vpunpcklqdq | Vpunpckhqdq
        | Vshufi32x4 | Vshufi64x2 | Vbroadcasti32x4 | Vbroadcasti64x2 | Vbroadcasti64x4
        | Vpbroadcastb | Vpbroadcastd | Vpbroadcastq | Vextracti32x4 | Vextracti64x2
        | Vextracti64x4 | Vinserti32x4 | Vinserti64x2 | Vinserti64x4 | Vpcmpgtb | Vpmovm2b
    );
    let known = |f: &CpuidFeature| matches!(f, AVX512F | AVX512VL | AVX512BW | AVX512DQ);
    listed && code.encoding() == EncodingKind::EVEX && code.cpuid_features().iter().all(known)
}
