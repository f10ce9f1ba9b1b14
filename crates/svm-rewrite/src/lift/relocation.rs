//! Finds the operand whose field a relocation fills.

use elf_loader::Relocation;
use elf_loader::consts::{R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32};
use elf_loader::reloc::{relocation_name, relocation_type};
use iced_x86::{Decoder, Instruction};

use super::{RelocatedValue, is_direct_branch};

/// What a relocation fills.
pub enum Tie {
    /// The displacement of the memory operand, with this value.
    Displacement(RelocatedValue),
    /// The immediate.
    Immediate(RelocatedValue),
    /// The distance of a direct branch.
    Branch,
}

/// Ties a relocation to the operand of an instruction whose field it fills.
///
/// # Errors
/// It fills none.
pub fn tie(
    decoder: &Decoder<'_>,
    iced: &Instruction,
    r: &Relocation,
    any_relocation: bool,
) -> Result<Tie, String> {
    let fields = decoder.get_constant_offsets(iced);
    let at = (r.offset - iced.ip()) as usize;
    let width = match r.kind {
        R_X86_64_64 => 8,
        R_X86_64_PC32 | R_X86_64_PLT32 | R_X86_64_32 | R_X86_64_32S => 4,
        other if any_relocation => width_of(other)?,
        other => {
            return Err(format!(
                "{} is not expected in code",
                relocation_name(other)
            ));
        }
    };
    let pc_relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
    let value = RelocatedValue {
        symbol: r.symbol,
        addend: r.addend,
        kind: r.kind,
        at: at as u8,
    };
    if is_direct_branch(iced) {
        return if pc_relative && at + width == iced.len() {
            Ok(Tie::Branch)
        } else {
            Err("a branch with a relocation that is not its displacement".into())
        };
    }
    if fields.has_displacement()
        && at == fields.displacement_offset()
        && width == fields.displacement_size()
    {
        if pc_relative != iced.is_ip_rel_memory_operand() && !any_relocation {
            return Err(
                "relocation type and addressing mode disagree about the instruction pointer".into(),
            );
        }
        let correction = if pc_relative {
            (iced.next_ip() - r.offset) as i64
        } else {
            0
        };
        let addend = r
            .addend
            .checked_add(correction)
            .ok_or("the relocation's addend is no distance that 64 bits hold")?;
        return Ok(Tie::Displacement(RelocatedValue { addend, ..value }));
    }
    if fields.has_immediate()
        && at == fields.immediate_offset()
        && width == fields.immediate_size()
        && !pc_relative
    {
        return Ok(Tie::Immediate(value));
    }
    Err("the relocation fills no operand of the instruction there".into())
}

/// Bytes of the field of a relocation type (psABI, table 4.9).
fn width_of(kind: u32) -> Result<usize, String> {
    match relocation_type(kind) {
        Some(known) => Ok(known.width as usize),
        None => Err(format!("relocation type {kind} is not known")),
    }
}
