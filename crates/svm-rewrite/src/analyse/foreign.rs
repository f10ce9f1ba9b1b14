//! Alternatives whose replacement is the kernel's own code, not the object's.
//!
//! objtool of Linux 5.13 to 5.17 makes one of each call and jump through a thunk
//! (`arch_rewrite_retpolines`, tools/objtool/arch/x86/decode.c; arch/x86/lib/retpoline.S):
//!
//! ```text
//! call __x86_indirect_thunk_<reg>      may become      call *%<reg>, and nops
//! jmp  __x86_indirect_thunk_<reg>      may become      jmp  *%<reg>, and nops
//! ```
//!
//! It spares processors that need no thunk a jump. The thunk does the same on all of them, so
//! the site may keep its code. Of any other code of the kernel nothing is known: such an
//! object is refused.

use elf_loader::special::Entry;
use iced_x86::{FlowControl, Instruction};

use crate::lift::{Destination, InstIdx, Lifted};
use crate::refusal::{Refusal, RefusalCode};

/// Looks at an entry of `.altinstructions`.
///
/// # Errors
/// Its replacement is code of the kernel that may do something else than the site.
pub fn check(lifted: &Lifted<'_>, section: &str, entry: &Entry) -> Result<(), Refusal> {
    let Some((symbol, addend)) = entry.foreign_replacement() else {
        return Ok(());
    };
    let name = lifted.symbol_name(symbol);
    let same = addend == 0 && thunk_without_jump(lifted, entry).is_some_and(|own| own == name);
    match same {
        true => Ok(()),
        false => {
            let reason = format!(
                "a replacement that is `{name}`, which is no code of this object, and not known to do what it replaces"
            );
            Err(Refusal::at(
                RefusalCode::Metadata,
                section,
                entry.offset,
                reason,
            ))
        }
    }
}

/// The name of what does the same as the site, if that is a branch to a thunk and nothing more.
fn thunk_without_jump(lifted: &Lifted<'_>, entry: &Entry) -> Option<String> {
    let inst = lifted.inst(site(lifted, entry)?);
    let Some(Destination::Import(thunk)) = inst.target else {
        return None;
    };
    let register = lifted
        .symbol_name(thunk)
        .strip_prefix("__x86_indirect_thunk_")?;
    let whole = usize::from(entry.site_len()) == inst.iced.len();
    let how = branch(&inst.iced).filter(|_| whole)?;
    Some(format!("__x86_indirect_alt_{how}_{register}"))
}

/// How the kernel's names call a branch.
fn branch(iced: &Instruction) -> Option<&'static str> {
    match iced.flow_control() {
        FlowControl::Call => Some("call"),
        FlowControl::UnconditionalBranch => Some("jmp"),
        _ => None,
    }
}

fn site(lifted: &Lifted<'_>, entry: &Entry) -> Option<InstIdx> {
    let (id, offset) = entry.site()?;
    lifted.inst_at(lifted.code_section(id)?, offset)
}
