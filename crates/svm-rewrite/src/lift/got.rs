//! Addresses out of a global offset table, as a linker takes them where it knows them.
//!
//! Position-independent code loads the address of what may be in another object from a table that
//! the linker makes (`-fpic`, and clang's `-fpie`). Kernels' loaders make none. The instruction
//! becomes the one that a linker makes of it (psABI B.2), at the end of the same bytes. A linker
//! does that only where the assembler says that it may, for it does not decode; here the
//! instruction is known, so unmarked loads (rustc's, and of older assemblers) become direct, too:
//!
//! ```text
//! mov  f@GOTPCREL(%rip),%r        lea  f(%rip),%r
//! cmp  f@GOTPCREL(%rip),%r        cmp  $f,%r              and add, or, adc, sbb, and, sub, xor
//! test %r,f@GOTPCREL(%rip)        test $f,%r
//! call *f@GOTPCREL(%rip)          nop ; call f
//! jmp  *f@GOTPCREL(%rip)          nop ; jmp  f
//! ```
//!
//! All others stay, and are refused. So are those of a symbol that is weak and undefined, whose
//! address may be zero, and of one whose address is a number or a resolver's.

use std::borrow::Cow;

use elf_loader::consts::{
    R_X86_64_32S, R_X86_64_GOTPCREL, R_X86_64_GOTPCRELX, R_X86_64_PC32, R_X86_64_PLT32,
    R_X86_64_REX_GOTPCRELX, STB_WEAK, STT_GNU_IFUNC,
};
use elf_loader::{Object, Place, Relocation, Section, Symbol};
use iced_x86::{Code, Decoder, DecoderOptions, Encoder, Instruction, MemoryOperand, Register};

/// Bytes of the displacement, which ends the instruction, and of what takes its place.
const FIELD: usize = 4;
/// What such a field has that counts from its end.
const FROM_END: i64 = -(FIELD as i64);

/// The object with direct addresses in place of those out of a table.
pub fn relaxed<'o>(object: &'o Object<'o>) -> Cow<'o, Object<'o>> {
    let mut relaxed = Cow::Borrowed(object);
    for (n, section) in object
        .sections
        .iter()
        .enumerate()
        .filter(|(_, s)| s.is_code())
    {
        for direct in direct(object, section) {
            let section = &mut relaxed.to_mut().sections[n];
            let bytes = &mut section.data.to_mut()[direct.at..];
            bytes[..direct.bytes.len()].copy_from_slice(&direct.bytes);
            section.relocations[direct.number] = direct.relocation;
        }
    }
    relaxed
}

/// What takes the place of an instruction.
struct Direct {
    /// Where its bytes begin.
    at: usize,
    /// As many as it has.
    bytes: Vec<u8>,
    /// Which relocation of the section this is.
    number: usize,
    relocation: Relocation,
}

/// The instructions of a section that may become others, as lifting decodes them.
fn direct(object: &Object<'_>, section: &Section<'_>) -> Vec<Direct> {
    let relocations = section.relocations.iter().enumerate();
    let mut relocations = relocations
        .filter(|(_, r)| is_relaxable(object, r))
        .peekable();
    let mut decoder = Decoder::with_ip(64, &section.data, 0, DecoderOptions::NONE);
    let mut found = Vec::new();
    while relocations.peek().is_some() && decoder.can_decode() {
        let iced = decoder.decode();
        if iced.is_invalid() {
            break;
        }
        while let Some((number, r)) = relocations.next_if(|(_, r)| r.offset < iced.next_ip()) {
            found.extend(Direct::of(&iced, (number, r)));
        }
    }
    found
}

/// Whether it is a place in the table, of a symbol whose address a loader knows.
fn is_relaxable(object: &Object<'_>, r: &Relocation) -> bool {
    matches!(
        r.kind,
        R_X86_64_GOTPCREL | R_X86_64_GOTPCRELX | R_X86_64_REX_GOTPCRELX
    ) && is_known(object.symbol(r.symbol))
}

fn is_known(symbol: &Symbol<'_>) -> bool {
    let is_zero = symbol.place == Place::Undefined && symbol.binding == STB_WEAK;
    let placed = matches!(symbol.place, Place::In(_) | Place::Undefined);
    placed && !is_zero && symbol.kind != STT_GNU_IFUNC
}

impl Direct {
    /// Of an instruction that a relocation is in, if it may become another one.
    fn of(iced: &Instruction, (number, r): (usize, &Relocation)) -> Option<Direct> {
        const NOP: u8 = 0x90;
        let loads = iced.memory_base() == Register::RIP
            && !matches!(iced.segment_prefix(), Register::FS | Register::GS)
            && r.offset.checked_add(FIELD as u64) == Some(iced.next_ip())
            && r.addend == FROM_END;
        let (other, kind, addend) = other(iced).filter(|_| loads)?;
        let end = encoded(&other)?;
        // Prefixes mean nothing here, and are left out.
        let mut bytes = vec![NOP; iced.len().checked_sub(end.len())?];
        bytes.extend(end);
        Some(Direct {
            at: iced.ip() as usize,
            bytes,
            number,
            relocation: Relocation { kind, addend, ..*r },
        })
    }
}

/// The other instruction, and what fills its last four bytes: type and addend of a relocation.
fn other(iced: &Instruction) -> Option<(Instruction, u32, i64)> {
    let (a, b) = (iced.op0_register(), iced.op1_register());
    let branch = |code| {
        let branch = Instruction::with_branch(code, 0).ok()?;
        Some((branch, R_X86_64_PLT32, FROM_END))
    };
    let immediate = |code, register| {
        let operation = Instruction::with2(code, register, 0).ok()?;
        Some((operation, R_X86_64_32S, 0))
    };
    match iced.code() {
        Code::Call_rm64 => branch(Code::Call_rel32_64),
        Code::Jmp_rm64 => branch(Code::Jmp_rel32_64),
        Code::Mov_r64_rm64 => {
            let address = MemoryOperand::with_base_displ(Register::RIP, 0);
            let lea = Instruction::with2(Code::Lea_r64_m, a, address).ok()?;
            Some((lea, R_X86_64_PC32, FROM_END))
        }
        Code::Test_rm64_r64 => immediate(Code::Test_rm64_imm32, b),
        Code::Add_r64_rm64 => immediate(Code::Add_rm64_imm32, a),
        Code::Or_r64_rm64 => immediate(Code::Or_rm64_imm32, a),
        Code::Adc_r64_rm64 => immediate(Code::Adc_rm64_imm32, a),
        Code::Sbb_r64_rm64 => immediate(Code::Sbb_rm64_imm32, a),
        Code::And_r64_rm64 => immediate(Code::And_rm64_imm32, a),
        Code::Sub_r64_rm64 => immediate(Code::Sub_rm64_imm32, a),
        Code::Xor_r64_rm64 => immediate(Code::Xor_rm64_imm32, a),
        Code::Cmp_r64_rm64 => immediate(Code::Cmp_rm64_imm32, a),
        _ => None,
    }
}

/// Its bytes; the relocated field holds 0.
fn encoded(iced: &Instruction) -> Option<Vec<u8>> {
    let mut encoder = Encoder::new(64);
    encoder.encode(iced, 0).ok()?;
    let mut bytes = encoder.take_buffer();
    let field = bytes.len().checked_sub(FIELD)?;
    bytes[field..].fill(0);
    Some(bytes)
}
