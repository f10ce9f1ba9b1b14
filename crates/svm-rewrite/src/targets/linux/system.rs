//! The instructions that a module for a stock kernel may have.
//!
//! A module has the kernel's rights, so most privileged instructions stay as they are.
//! Refused are instructions that enter or leave an environment in which the translation
//! table is not valid (guests, users, enclaves), and those with unknown effects on
//! registers, memory or control. An allow-list, as for extensions: an instruction that
//! is not listed is refused.

use iced_x86::{CpuidFeature, EncodingKind, Instruction, Mnemonic, OpKind, Register};

use crate::analyse::classify::extension;
use crate::analyse::classify::is_cache_hint;
use crate::refusal::RefusalCode;
use crate::registers::names_system_register;

/// Refuses instructions that no module may have.
///
/// # Errors
/// Which and why.
pub fn refuse(iced: &Instruction) -> Result<(), (RefusalCode, &'static str)> {
    if let Some(reason) = other_world(iced.mnemonic()) {
        return Err((RefusalCode::Privileged, reason));
    }
    if let Some(refusal) = unsound(iced) {
        return Err(refusal);
    }
    if is_cache_hint(iced) || is_listed(iced.mnemonic()) {
        return Ok(());
    }
    if is_of_the_system(iced) {
        let reason = "a system instruction whose effects are not known here";
        return Err((RefusalCode::Privileged, reason));
    }
    match extension::refused(iced) {
        _ if is_vector_of_the_kernel(iced) => Ok(()),
        Some(_) if iced.has_op_mask() => Err((RefusalCode::Extension, MASKED)),
        Some(reason) => Err((RefusalCode::Extension, reason)),
        None => Ok(()),
    }
}

/// Why an instruction goes to an environment in which the translation table is not
/// valid.
fn other_world(mnemonic: Mnemonic) -> Option<&'static str> {
    use Mnemonic as M;
    match mnemonic {
        M::Vmxon
        | M::Vmxoff
        | M::Vmlaunch
        | M::Vmresume
        | M::Vmptrld
        | M::Vmptrst
        | M::Vmclear
        | M::Vmread
        | M::Vmwrite
        | M::Invept
        | M::Invvpid
        | M::Vmrun
        | M::Vmload
        | M::Vmsave
        | M::Clgi
        | M::Stgi
        | M::Skinit
        | M::Invlpga
        | M::Vmfunc => Some("it belongs to virtualization: a guest's code is not rewritten"),
        // What is shared with the hypervisor then is in memory (arch/x86/coco/sev).
        M::Vmgexit => Some("it leaves an encrypted guest, whose memory says what happens"),
        M::Syscall
        | M::Sysret
        | M::Sysretq
        | M::Sysenter
        | M::Sysexit
        | M::Sysexitq
        | M::Iret
        | M::Iretd
        | M::Iretq
        | M::Swapgs
        | M::Int
        | M::Int1
        | M::Into
        | M::Uiret => Some("it goes between the kernel and another level of privilege"),
        M::Enclu
        | M::Encls
        | M::Enclv
        | M::Getsec
        | M::Tdcall
        | M::Seamcall
        | M::Seamops
        | M::Seamret => Some("it goes into an enclave, whose code is not rewritten"),
        M::Xbegin | M::Xabort | M::Xend => Some("transactions do not survive a slow path"),
        _ => None,
    }
}

/// Why rewritten code with this instruction could not be relied on.
fn unsound(iced: &Instruction) -> Option<(RefusalCode, &'static str)> {
    use Mnemonic as M;
    match iced.mnemonic() {
        M::Movdir64b | M::Enqcmd | M::Enqcmds => Some((
            RefusalCode::Unsupported,
            "its destination is an address in a register that nothing translates",
        )),
        M::Popf | M::Popfd | M::Popfq => Some((
            RefusalCode::Direction,
            "it may set the direction flag, which calls, returns and string instructions need known",
        )),
        M::Serialize => Some((
            RefusalCode::Unsupported,
            "a decoder of the verifier's does not know it",
        )),
        // `decode_bug`, arch/x86/kernel/traps.c of Linux 6.14 and later: by its operand the trap is
        // one of UBSAN's, or a warning, whose entry is where a register leads.
        M::Ud1 if iced.op_kinds().any(|kind| kind == OpKind::Memory) => Some((
            RefusalCode::Unsupported,
            "a trap whose operand says to the kernel what it is for, and whether to go on behind it",
        )),
        M::Vshufps | M::Vshufpd if may_reach_device(iced) => Some((
            RefusalCode::Unsupported,
            "kernels of encrypted guests take it for a store to a device",
        )),
        _ if loads_segment(iced) => Some((RefusalCode::Privileged, "it loads a segment register")),
        _ => None,
    }
}

/// Whether an operand in memory is neither on the stack nor in the module's data.
fn may_reach_device(iced: &Instruction) -> bool {
    use Register as R;
    let own = matches!(iced.memory_base(), R::RSP | R::RIP | R::None)
        && iced.memory_index() == R::None
        && iced.segment_prefix() == R::None;
    iced.op_kinds().any(|kind| kind == OpKind::Memory) && !own
}

fn loads_segment(iced: &Instruction) -> bool {
    use Mnemonic as M;
    let to_segment = iced.op_count() > 0
        && iced.op0_kind() == OpKind::Register
        && iced.op0_register().is_segment_register();
    (to_segment && matches!(iced.mnemonic(), M::Mov | M::Pop))
        || matches!(
            iced.mnemonic(),
            M::Lds | M::Les | M::Lfs | M::Lgs | M::Lss | M::Wrfsbase | M::Wrgsbase
        )
}

/// System instructions that modules use: their operands are registers, or explicit
/// memory operands.
#[rustfmt::skip] // A table: one line a dozen names.
fn is_listed(mnemonic: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        mnemonic,
        M::Cli | M::Sti | M::Hlt | M::Clac | M::Stac | M::Clts | M::Cpuid | M::Rdmsr | M::Wrmsr
        | M::Rdpmc | M::Rdpid | M::Wbinvd | M::Wbnoinvd | M::Xgetbv | M::Xsetbv
        | M::Rdpkru | M::Wrpkru | M::Monitor | M::Mwait | M::Monitorx | M::Mwaitx | M::In | M::Out
        | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd | M::Pushfq
        | M::Ud1 | M::Fninit | M::Wait | M::Emms | M::Mov | M::Tpause | M::Umwait | M::Verw
        // All registers but `rsp` and `rbp` count as read and written (`analyse/survey.rs`).
        | M::Vmcall | M::Vmmcall
    )
}

/// Whether only the kernel may execute it, or it reveals the kernel's state.
fn is_of_the_system(iced: &Instruction) -> bool {
    use Mnemonic as M;
    iced.is_privileged()
        || names_system_register(iced)
        || matches!(
            iced.mnemonic(),
            M::Pushf
                | M::Pushfd
                | M::Sgdt
                | M::Sidt
                | M::Sldt
                | M::Str
                | M::Smsw
                | M::Lar
                | M::Lsl
                | M::Verr
                | M::Rdfsbase
                | M::Rdgsbase
        )
}

const MASKED: &str = "AVX-512 with a mask, which says what is read and written";

/// Vector extensions after AVX2 that the kernel's cryptography and RAID have.
fn is_vector_of_the_kernel(iced: &Instruction) -> bool {
    iced.code().encoding() == EncodingKind::EVEX && !iced.has_op_mask() && is_wide(iced)
}

/// AVX-512 that computes with whole registers, and moves them (SDM volume 1, 5.19).
#[rustfmt::skip] // A table: one line half a dozen names.
fn is_wide(iced: &Instruction) -> bool {
    use CpuidFeature::*;
    use Mnemonic::*;
    let listed = matches!(
        iced.mnemonic(),
        Vmovdqa32 | Vmovdqa64 | Vmovdqu8 | Vmovdqu16 | Vmovdqu32 | Vmovdqu64 | Vmovapd | Vmovaps
        | Vmovupd | Vmovups | Vmovntdq | Vmovntdqa | Vmovntpd | Vmovntps
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
    listed && iced.code().cpuid_features().iter().all(known)
}
