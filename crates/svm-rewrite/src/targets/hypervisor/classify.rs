//! The class of an instruction of a driver in a hypervisor: no instruction stays that
//! reaches memory outside the frame, and those that stay must be listed.

use iced_x86::{Code, FlowControl, Instruction};

use super::names::refuse_names;
use super::sensitive::refuse_sensitive;
use crate::analyse::class::Class;
use crate::analyse::classify::extension;
use crate::analyse::classify::prefix;
use crate::analyse::classify::{Differences, Kept, Question, Refused, of_object, refuse_hypercall};
use crate::analyse::routines;
use crate::lift::Destination;
use crate::refusal::RefusalCode;

const DIFFERENCES: Differences = Differences {
    refuse: refuse_sensitive,
    first: |_| Ok(None),
    refuse_form: refuse_unlisted,
};

/// Classifies one instruction.
///
/// # Errors
/// The instruction cannot be rewritten soundly.
pub fn classify(question: &Question<'_>) -> Result<Class, Refused> {
    if let Some(Kept::TypeHash(hash)) = question.kept {
        return Ok(Class::TypeHash(hash));
    }
    refuse_conditional(question)?;
    refuse_names(question.lifted, question.lifted.inst(question.inst))?;
    refuse_hypercall(question)?;
    refuse_vmware(question)?;
    of_object(question, &DIFFERENCES)
}

/// A tail call by a condition goes to a name outside, and none of the kernel's thunks is there.
fn refuse_conditional(question: &Question<'_>) -> Result<(), Refused> {
    let inst = question.lifted.inst(question.inst);
    let conditional = inst.iced.flow_control() == FlowControl::ConditionalBranch;
    let Some(Destination::Import(s)) = inst.target.filter(|_| conditional) else {
        return Ok(());
    };
    let name = question.lifted.symbol_name(s);
    match routines::indirect_thunk(name).is_some() || routines::is_return_thunk(name) {
        true => Err((
            RefusalCode::BranchTarget,
            "a thunk of the kernel under a condition",
        )),
        false => Ok(()),
    }
}

//      mov $0x564d5868, %eax
//      in (%dx), %eax
//
/// VMware's calls through a port have arguments and results in registers that an access to a port does
/// not name (arch/x86/include/asm/vmware.h): the gate of ports knows none of them.
fn refuse_vmware(question: &Question<'_>) -> Result<(), Refused> {
    let iced = &question.lifted.inst(question.inst).iced;
    let may_call = iced.code() == Code::In_EAX_DX || routines::moves_port_bytes(iced);
    match may_call && routines::knows_vmware(question.lifted) {
        true => Err((
            RefusalCode::Unsupported,
            "a call of VMware's through a port: the gate of ports does not know the registers that it takes and changes",
        )),
        false => Ok(()),
    }
}

/// An instruction that is replaced or dropped may be of any extension; one that is kept
/// may not.
fn refuse_unlisted(iced: &Instruction, bytes: &[u8], class: Class) -> Result<(), Refused> {
    if matches!(class, Class::AddressOf(_)) && iced.code() != Code::Lea_r64_m {
        let reason = "dom0's address does not fit the destination of this lea";
        return Err((RefusalCode::Unsupported, reason));
    }
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
        return Ok(());
    }
    let extension = extension::refused(iced).map(|reason| (RefusalCode::Extension, reason));
    let prefix = || prefix::meaningless(iced, bytes).map(|reason| (RefusalCode::Prefix, reason));
    extension.or_else(prefix).map_or(Ok(()), Err)
}
