//! Instructions that only the kernel or the hypervisor may execute (P3).

use iced_x86::{Instruction, Mnemonic};

use crate::refusal::RefusalCode;
use crate::registers::names_system_register;

/// Refuses instructions that only the kernel may execute, or that reach state which
/// the contract keeps from drivers (P3). Port I/O is not refused: it goes through the
/// port gate.
///
/// # Errors
/// The instruction must not be executed by a driver.
pub fn refuse_sensitive(iced: &Instruction) -> Result<(), (RefusalCode, &'static str)> {
    use Mnemonic as M;
    if matches!(
        iced.mnemonic(),
        M::In | M::Out | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd
    ) {
        return Ok(());
    }
    // Those that iced does not call privileged.
    let sensitive = matches!(
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
    if iced.is_privileged() || names_system_register(iced) || sensitive {
        return Err((
            RefusalCode::Privileged,
            "only the kernel or the hypervisor may execute this",
        ));
    }
    Ok(())
}
