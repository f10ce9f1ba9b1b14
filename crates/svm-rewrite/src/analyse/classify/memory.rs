//! Instructions with a memory operand: how the operand is addressed, and whether it can
//! be replaced by `(%reg)`.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use liveness::Reg;

use crate::analyse::class::{Class, Space};
use crate::asm::{Base, Operand, Shape};
use crate::lift::Inst;
use crate::refusal::RefusalCode;
use crate::registers::gpr;

/// Memory operands of an instruction.
pub enum MemoryOperands {
    /// None.
    None,
    /// One that it names.
    One,
    /// One that it implies.
    Implicit,
}

/// How an instruction names memory.
pub fn memory_operands(iced: &Instruction) -> MemoryOperands {
    let mut found = MemoryOperands::None;
    for op in 0..iced.op_count() {
        match iced.op_kind(op) {
            OpKind::Memory => found = MemoryOperands::One,
            OpKind::MemorySegSI
            | OpKind::MemorySegESI
            | OpKind::MemorySegRSI
            | OpKind::MemorySegDI
            | OpKind::MemorySegEDI
            | OpKind::MemorySegRDI
            | OpKind::MemoryESDI
            | OpKind::MemoryESEDI
            | OpKind::MemoryESRDI => return MemoryOperands::Implicit,
            OpKind::Register
            | OpKind::NearBranch16
            | OpKind::NearBranch32
            | OpKind::NearBranch64
            | OpKind::FarBranch16
            | OpKind::FarBranch32
            | OpKind::Immediate8
            | OpKind::Immediate8_2nd
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => {}
        }
    }
    found
}

/// The refusal of an instruction with an operand that does not show all that it reaches.
pub const REACHES_MORE: (RefusalCode, &str) =
    (RefusalCode::Unsupported, "it reaches more than its operand");

/// The refusal of an access to some elements of its operand.
pub const MASKED: (RefusalCode, &str) = (
    RefusalCode::Unsupported,
    "masked-out elements must not be accessed",
);

/// Whether its destination is an address in a register, beside the operand.
pub fn stores_by_register(iced: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(iced.mnemonic(), M::Movdir64b | M::Enqcmd | M::Enqcmds)
}

/// The class of an instruction that names one operand in memory.
///
/// # Errors
/// Why that operand cannot be replaced by `(%reg)`.
pub fn one_memory_operand(inst: &Inst) -> Result<Class, (RefusalCode, &'static str)> {
    use Mnemonic as M;
    let iced = &inst.iced;
    if iced.mnemonic() == M::Lea {
        return match iced.memory_base() {
            Register::RIP => gpr(iced.op0_register()).map(Class::AddressOf).ok_or((
                RefusalCode::Unsupported,
                "its destination is no general register",
            )),
            Register::EIP => Err((
                RefusalCode::Unsupported,
                "a 32-bit instruction-relative address",
            )),
            _ => Ok(Class::Plain),
        };
    }
    if is_hint(iced) {
        return Ok(Class::Drop);
    }
    if is_masked(iced) {
        return Err(MASKED);
    }
    if iced.is_vsib() {
        return Err((
            RefusalCode::Unsupported,
            "gather and scatter reach many places at once",
        ));
    }
    if iced.is_save_restore_instruction() {
        return Err((
            RefusalCode::Unsupported,
            "it saves or restores a whole register file",
        ));
    }
    if matches!(
        iced.mnemonic(),
        M::Bndmk | M::Bndcl | M::Bndcn | M::Bndcu | M::Bndldx | M::Bndstx | M::Bndmov
    ) || matches!(
        iced.mnemonic(),
        M::Ldtilecfg | M::Sttilecfg | M::Tileloadd | M::Tileloaddt1 | M::Tilestored
    ) || stores_by_register(iced)
    {
        return Err(REACHES_MORE);
    }
    let space = space(inst)?;
    if is_prefetch(iced.mnemonic()) {
        return Ok(if space == Space::Stack {
            Class::Drop
        } else {
            Class::Prefetch(space)
        });
    }
    let size = iced.memory_size().size();
    if size == 0 || size > 64 {
        return Err((
            RefusalCode::Unsupported,
            "the size of its memory operand is not between 1 and 64 bytes",
        ));
    }
    match iced.mnemonic() {
        M::Push | M::Pop if iced.stack_pointer_increment().abs() != 8 => Err((
            RefusalCode::Unsupported,
            "a push or pop of other than 8 bytes",
        )),
        M::Push if space != Space::Stack => Ok(Class::PushMemory(space)),
        // Its address is computed from `rsp` after the pop; the translation
        // computes it explicitly.
        M::Pop => Ok(Class::PopMemory(space)),
        M::Bt | M::Bts | M::Btr | M::Btc
            if iced.op1_kind() == OpKind::Register && inst.operand().narrow =>
        {
            Err((
                RefusalCode::Unsupported,
                "a bit string whose address wraps at 4 GiB",
            ))
        }
        M::Bt | M::Bts | M::Btr | M::Btc if iced.op1_kind() == OpKind::Register => {
            Ok(Class::BitString(space))
        }
        _ if space == Space::Stack => Ok(Class::Stack),
        _ => Ok(Class::Memory(space)),
    }
}

/// Cache hints, which compute nothing: dropped. Mnemonic `prefetchw` includes
/// encodings that are reserved for other hints.
fn is_hint(iced: &Instruction) -> bool {
    use Mnemonic as M;
    match iced.mnemonic() {
        M::Cldemote
        | M::Prefetch
        | M::Prefetchit0
        | M::Prefetchit1
        | M::Prefetchwt1
        | M::Reservednop => true,
        M::Prefetchw => iced.code() != Code::Prefetchw_m8,
        _ => false,
    }
}

/// Whether it reaches some elements of its operand alone.
pub fn is_masked(iced: &Instruction) -> bool {
    use Mnemonic as M;
    iced.has_op_mask()
        || matches!(
            iced.mnemonic(),
            M::Vmaskmovps | M::Vmaskmovpd | M::Vpmaskmovd | M::Vpmaskmovq
        )
}

fn is_prefetch(m: Mnemonic) -> bool {
    use Mnemonic as M;
    matches!(
        m,
        M::Prefetchnta | M::Prefetcht0 | M::Prefetcht1 | M::Prefetcht2 | M::Prefetchw
    )
}

/// Bytes below `rsp` that an instruction may reach.
const RED_ZONE: i64 = twin_abi::stack::BELOW_RSP;

/// How a memory operand is addressed.
///
/// # Errors
/// Why that cannot be translated.
pub fn space(inst: &Inst) -> Result<Space, (RefusalCode, &'static str)> {
    let operand = inst.operand();
    match operand.base {
        Base::Rip if operand.narrow => {
            return Err((
                RefusalCode::Unsupported,
                "a 32-bit instruction-relative address",
            ));
        }
        Base::Rip if !operand.relocated => {
            let reason =
                "it reads its own code: an instruction-relative address without relocation";
            return Err((RefusalCode::Relocation, reason));
        }
        _ => {}
    }
    // Spills are pushed before the address is computed, which adds their size to the
    // displacement. No sequence pushes so much.
    const SPILLS: i32 = 128;
    let on_stack = operand.base == Base::Register(Reg::RSP);
    if on_stack && operand.displacement as i32 > i32::MAX - SPILLS {
        return Err((
            RefusalCode::Unsupported,
            "its displacement from the stack pointer leaves no room for spilled registers",
        ));
    }
    if on_stack && operand.relocated {
        return Err((
            RefusalCode::Unsupported,
            "it adds a symbol's address to the stack pointer, which spilled registers change",
        ));
    }
    match operand.shape() {
        Shape::Segment(segment) => Ok(Space::PerCpu(segment)),
        Shape::Stack if operand.simple().is_some() => stack_operand(&inst.iced, &operand),
        // Without a relocation it is a number, such as a member of a structure
        // at address zero that a compiler saw being reached.
        Shape::Constant if operand.relocated => Ok(Space::Global),
        Shape::Stack | Shape::Constant | Shape::Pointer => Ok(Space::Heap),
    }
}

/// `disp(%rsp)`. Below the stack pointer only instructions that keep the memory there:
/// `smp_mb()` is `lock addl $0,-4(%rsp)`.
fn stack_operand(
    iced: &Instruction,
    operand: &Operand,
) -> Result<Space, (RefusalCode, &'static str)> {
    use Mnemonic as M;
    let keeps = matches!(iced.mnemonic(), M::Add | M::Sub | M::Or | M::Xor)
        && iced.op0_kind() == OpKind::Memory
        && iced.try_immediate(1).is_ok_and(|i| i == 0);
    match operand.displacement {
        0.. => Ok(Space::Stack),
        d if d >= -RED_ZONE && keeps => Ok(Space::Stack),
        _ => Err((
            RefusalCode::RedZone,
            "it keeps data below the stack pointer",
        )),
    }
}

/// Cache hints that an alternative may choose among.
pub fn is_cache_hint(iced: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        iced.mnemonic(),
        M::Prefetch
            | M::Prefetchw
            | M::Prefetchwt1
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Cldemote
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use iced_x86::{Decoder, DecoderOptions, Encoder, FlowControl};

    use super::*;
    use crate::lift::CodeIdx;
    use crate::registers::{register_operands, uses_high_byte};

    /// Beginnings of instructions up to the opcode: prefixes and maps, VEX, EVEX.
    fn heads() -> Vec<Vec<u8>> {
        let prefixes: [&[u8]; 14] = [
            &[],
            &[0x66],
            &[0x67],
            &[0xf0],
            &[0xf2],
            &[0xf3],
            &[0x64],
            &[0x48],
            &[0x4c],
            &[0x41],
            &[0x66, 0x48],
            &[0xf0, 0x48],
            &[0xf2, 0x48],
            &[0xf3, 0x48],
        ];
        let maps: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];
        let legacy = prefixes.iter().flat_map(|p| maps.map(|m| [*p, m].concat()));
        let vex = (0..16).flat_map(|n| {
            let (w, rest) = ((n & 8) << 4, 0x78 | n & 7);
            let three = [0xe1, 0xe2, 0xe3].map(|map| vec![0xc4, map, w | rest]);
            three.into_iter().chain([vec![0xc5, 0x80 | rest]])
        });
        let evex = (1..=6).flat_map(|map| {
            let words = (0..8).map(|n| (n & 4) << 5 | 0x7c | n & 3);
            words.flat_map(move |word| {
                [0x08, 0x28, 0x48, 0x18].map(|last| vec![0x62, 0xf0 | map, word, last])
            })
        });
        legacy.chain(vex).chain(evex).collect()
    }

    /// Each instruction encodes again as it is, and with any register in place of an operand
    /// that is said to be replaceable: the code is written when nothing can be refused any
    /// more.
    #[test]
    fn what_is_accepted_encodes() {
        let (mut encoder, mut seen) = (Encoder::new(64), 0);
        let mut wrong = BTreeSet::new();
        for head in heads() {
            for opcode in 0..=255_u8 {
                for modrm in (0..8).flat_map(|reg| [0x03, 0x05, 0x84].map(|rm| rm | reg << 3)) {
                    let mut code = head.clone();
                    code.extend([opcode, modrm, 0x91, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
                    let iced = Decoder::new(64, &code, DecoderOptions::NONE).decode();
                    let inst = Inst {
                        iced,
                        section: CodeIdx(0),
                        displacement: None,
                        immediate: None,
                        target: None,
                    };
                    if iced.is_invalid() || iced.flow_control() != FlowControl::Next {
                        continue;
                    }
                    let mut copied = iced;
                    copied.set_segment_prefix(Register::None);
                    if let Err(error) = encoder.encode(&copied, 0) {
                        wrong.insert(format!("{:?} copied: {error}", iced.code()));
                    }
                    let _ = encoder.take_buffer();
                    let one = matches!(memory_operands(&iced), MemoryOperands::One);
                    // `xlat` is a class of its own, found before.
                    if !one || iced.mnemonic() == Mnemonic::Xlatb {
                        continue;
                    }
                    let class = one_memory_operand(&inst);
                    let (Ok(Class::Memory(_) | Class::Prefetch(_) | Class::BitString(_))
                    | Ok(Class::PushMemory(_) | Class::PopMemory(_))) = class
                    else {
                        continue;
                    };
                    seen += 1;
                    for base in [Reg::RAX, Reg::RBP, Reg::R9, Reg::R13] {
                        if base.number() >= 8 && uses_high_byte(&iced) {
                            continue;
                        }
                        for displacement in [0, 4096] {
                            let mut replaced = iced;
                            Operand::at(base, displacement).replace_in(&mut replaced);
                            if let Err(error) = encoder.encode(&replaced, 0) {
                                wrong.insert(format!("{:?}: {error}", iced.code()));
                                continue;
                            }
                            let bytes = encoder.take_buffer();
                            let again = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
                            let same = again.mnemonic() == iced.mnemonic()
                                && again.memory_size() == iced.memory_size()
                                && register_operands(&again).eq(register_operands(&iced));
                            if !same {
                                wrong.insert(format!("{iced} ({:?}) became {again}", iced.code()));
                            }
                        }
                    }
                }
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(seen > 10_000, "{seen}");
    }
}
