//! A second opinion on what the bytes are: each instruction is decoded by
//! `yaxpeax-x86` too, which shares neither tables nor authors with iced.
//!
//! It takes what the interpretation is going to believe of an instruction
//! ([`Insn`]) and compares each part of it with the second decoding: length,
//! what it does, branch target, operand registers and constant, the address,
//! size and direction of its memory operand, and the registers that it writes.
//! One decoder's mistake is then a refusal, not a hole.
//!
//! Instructions that a rule refuses already are not asked about. Where the
//! second decoder is known to be wrong, or says less, the form stands in
//! [`known_to_differ`], with the page of the manual.

use iced_x86::{Code, Instruction, Mnemonic, OpKind, Register};
use yaxpeax_arch::{Decoder as _, LengthedInstruction, U8Reader};
use yaxpeax_x86::long_mode::{
    InstDecoder, Instruction as Second, Opcode, Operand, RegSpec, behavior::AccessVisitor,
    register_class,
};

use crate::allow;
use crate::domain::{Reg, RegSet};
use crate::insn::{Access, Alu, Condition, Insn, Op, StringKind, TableRead};

/// SDM volume 2, 2.3.11: no instruction is longer.
const LONGEST: usize = 15;

/// Asks the second decoder about the instruction at the start of `bytes`,
/// which the first one made into `i` and [`crate::classify`] into `insn`.
pub fn agrees(
    decoder: &InstDecoder,
    i: &Instruction,
    insn: &Insn,
    bytes: &[u8],
) -> Result<(), &'static str> {
    // One byte more than the longest: what is too long shall not look cut off.
    let bytes = &bytes[..bytes.len().min(LONGEST + 1)];
    let mut second = Second::invalid();
    if decoder
        .decode_into(&mut second, &mut U8Reader::new(bytes))
        .is_err()
    {
        return Err("a second decoder reads no instruction here");
    }
    let differs = |part: Part, same: bool| !same && !known_to_differ(part, i);
    let memory = memory_operand(i, &second);
    let part = if length(&second) != i.len() {
        Part::Length
    } else if differs(Part::Meaning, does(insn.op, i, &second)) {
        Part::Meaning
    } else if !reaches(i, insn, &second, memory) {
        Part::Memory
    } else if differs(Part::Size, fits(i, insn, &second, memory)) {
        Part::Size
    } else if differs(Part::Destination, writes(insn, &second)) {
        Part::Destination
    } else {
        return Ok(());
    };
    Err(part.reason())
}

/// Less is asked where an instruction of the system is concerned, whose operands
/// are registers: that both read as many bytes.
pub fn same_length(decoder: &InstDecoder, i: &Instruction, bytes: &[u8]) -> bool {
    let bytes = &bytes[..bytes.len().min(LONGEST + 1)];
    let mut second = Second::invalid();
    decoder
        .decode_into(&mut second, &mut U8Reader::new(bytes))
        .is_ok()
        && length(&second) == i.len()
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Length,
    Meaning,
    Memory,
    Size,
    Destination,
}

impl Part {
    fn reason(self) -> &'static str {
        match self {
            Part::Length => "a second decoder reads another length",
            Part::Meaning => "a second decoder reads another instruction",
            Part::Memory => "a second decoder reads another memory operand",
            Part::Size => "a second decoder reads a wider memory operand",
            Part::Destination => "a second decoder reads another destination",
        }
    }
}

/// Forms of which the second decoder says something wrong, with the page of
/// the manual (SDM volume 2). Their other parts are compared.
fn known_to_differ(part: Part, i: &Instruction) -> bool {
    use Mnemonic::*;
    match part {
        // "Jcc": `jrcxz` reads rcx and changes no register.
        Part::Destination => i.mnemonic() == Jrcxz,
        // "BT": `0f ba /4 ib` without REX.W has an operand of 32 bits.
        Part::Size if matches!(i.mnemonic(), Bt | Bts | Btr | Btc) => true,
        Part::Size => has_narrow_memory(i.mnemonic()),
        // "POP": `8f /0` has an operand of 64 bits also if it is a register.
        Part::Meaning => i.code() == Code::Pop_rm64 && !has_memory(i),
        // These are right in every listed form.
        Part::Length | Part::Memory => false,
    }
}

/// Instructions whose memory operand is narrower than their register
/// ("m32", "m64" and so on in the instruction's own table in the manual), but
/// not to the second decoder.
#[rustfmt::skip] // A table: one line half a dozen names.
fn has_narrow_memory(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Crc32 | Cvtdq2pd | Movd | Vcmpsd | Vcmpss | Vcvtdq2pd | Vcvtph2ps | Vcvtps2ph | Vinsertps
        | Vmovlps | Vrcpss | Vroundsd | Vroundss | Vrsqrtss
        | Vpmovsxbd | Vpmovsxbq | Vpmovsxbw | Vpmovsxdq | Vpmovsxwd | Vpmovsxwq
        | Vpmovzxbd | Vpmovzxbq | Vpmovzxbw | Vpmovzxdq | Vpmovzxwd | Vpmovzxwq
        | Vfmadd132sd | Vfmadd132ss | Vfmadd213sd | Vfmadd213ss | Vfmadd231sd | Vfmadd231ss
        | Vfmsub132sd | Vfmsub132ss | Vfmsub213sd | Vfmsub213ss | Vfmsub231sd | Vfmsub231ss
        | Vfnmadd132sd | Vfnmadd132ss | Vfnmadd213sd | Vfnmadd213ss | Vfnmadd231sd | Vfnmadd231ss
        | Vfnmsub132sd | Vfnmsub132ss | Vfnmsub213sd | Vfnmsub213ss | Vfnmsub231sd | Vfnmsub231ss
    )
}

fn length(second: &Second) -> usize {
    second.len().to_const() as usize
}

/// Whether the second decoding does what the interpretation believes.
fn does(op: Op, i: &Instruction, second: &Second) -> bool {
    let opcode = second.opcode();
    match op {
        Op::Plain => !is_special(opcode),
        Op::Copy { d, s } => opcode == Opcode::MOV && registers(second, d, s, 8),
        Op::Copy32 { d, s } => opcode == Opcode::MOV && registers(second, d, s, 4),
        Op::Constant { d } => {
            // Of 32 bits, one decoder extends the constant and one does not.
            let value = immediate(second, 1).map(|value| value as u64);
            let (full, low) = (i.immediate(1), i.immediate(1) as u32);
            opcode == Opcode::MOV
                && ((register(second, 0, d, 8) && value == Some(full))
                    || (register(second, 0, d, 4) && value.map(|v| v as u32) == Some(low)))
        }
        Op::Lea { d, .. } => {
            opcode == Opcode::LEA && (register(second, 0, d, 8) || register(second, 0, d, 4))
        }
        Op::Alu { op, d, imm, wide } => {
            let size = if wide { 8 } else { 4 };
            let same = match opcode {
                Opcode::INC => imm == 1,
                // One decoder extends the count and one does not.
                Opcode::SHR => immediate(second, 1).map(|count| count as u8) == Some(imm as u8),
                _ => immediate(second, 1) == Some(i64::from(imm)),
            };
            is_alu(op, opcode) && register(second, 0, d, size) && same
        }
        Op::Compare { left, right } => opcode == Opcode::CMP && registers(second, left, right, 8),
        Op::MoveIfAbove { d, s } => opcode == Opcode::CMOVA && registers(second, d, s, 8),
        Op::Table { read, r, .. } => opcode == table_opcode(read) && register(second, 0, r, 8),
        Op::Prefetch => is_prefetch(opcode),
        Op::BitAt { r, bits } => {
            matches!(opcode, Opcode::BT | Opcode::BTS | Opcode::BTR | Opcode::BTC)
                && register(second, 1, r, bits / 8)
        }
        Op::Push | Op::PushRegister { .. } => matches!(opcode, Opcode::PUSH | Opcode::PUSHF),
        Op::PopFlags => opcode == Opcode::POPF,
        Op::Load { d } => opcode == Opcode::MOV && register(second, 0, d, 8),
        Op::Store { s } => opcode == Opcode::MOV && register(second, 1, s, 8),
        Op::CallIndirect => opcode == Opcode::CALL,
        Op::JumpIndirect => opcode == Opcode::JMP,
        Op::Pop { d } => opcode == Opcode::POP && register(second, 0, d, 8),
        Op::PopMemory => opcode == Opcode::POP && second.operand(0).is_memory(),
        Op::Leave => opcode == Opcode::LEAVE,
        Op::Ret => opcode == Opcode::RETURN && second.operand_count() == 0,
        Op::Call(_) => opcode == Opcode::CALL && same_target(i, second),
        Op::Jump(_) => opcode == Opcode::JMP && same_target(i, second),
        Op::Branch(condition, _) => is_branch(condition, opcode) && same_target(i, second),
        Op::Stop => matches!(
            opcode,
            Opcode::UD0 | Opcode::UD1 | Opcode::UD2 | Opcode::INT
        ),
        Op::Cld => opcode == Opcode::CLD,
        Op::Std => opcode == Opcode::STD,
        Op::String { kind, shift, rep } => is_string(kind, shift, rep, second),
    }
}

/// What the interpretation must know of, so that it is never "any other".
fn is_special(opcode: Opcode) -> bool {
    use Opcode::*;
    let control = matches!(
        opcode,
        CALL | CALLF
            | JMP
            | JMPF
            | LOOP
            | LOOPZ
            | LOOPNZ
            | JRCXZ
            | RETURN
            | RETF
            | INT
            | IRET
            | SYSCALL
            | SYSRET
            | SYSENTER
            | SYSEXIT
            | HLT
            | UD0
            | UD1
            | UD2
    );
    let stack = matches!(opcode, PUSH | POP | PUSHF | POPF | ENTER | LEAVE);
    let string = matches!(opcode, MOVS | STOS | LODS | CMPS | SCAS | INS | OUTS);
    control || stack || string || opcode.is_jcc() || matches!(opcode, CLD | STD)
}

fn is_alu(op: Alu, opcode: Opcode) -> bool {
    match op {
        Alu::Add => matches!(opcode, Opcode::ADD | Opcode::INC),
        Alu::Sub => opcode == Opcode::SUB,
        Alu::And => opcode == Opcode::AND,
        Alu::Or => opcode == Opcode::OR,
        Alu::Xor => opcode == Opcode::XOR,
        Alu::Shr => opcode == Opcode::SHR,
        Alu::Cmp => opcode == Opcode::CMP,
    }
}

fn table_opcode(read: TableRead) -> Opcode {
    match read {
        TableRead::SubTag => Opcode::SUB,
        TableRead::AddXlate => Opcode::ADD,
        TableRead::CmpTag => Opcode::CMP,
        TableRead::XorXlate => Opcode::XOR,
    }
}

fn is_prefetch(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        PREFETCHNTA | PREFETCH0 | PREFETCH1 | PREFETCH2 | PREFETCHW
    )
}

fn is_branch(condition: Condition, opcode: Opcode) -> bool {
    use Opcode::*;
    match condition {
        Condition::Above => opcode == JA,
        Condition::NotEqual => opcode == JNZ,
        Condition::Other => {
            matches!(opcode, LOOP | LOOPZ | LOOPNZ | JRCXZ)
                || (opcode.is_jcc() && !matches!(opcode, JA | JNZ))
        }
    }
}

fn is_string(kind: StringKind, shift: u8, rep: bool, second: &Second) -> bool {
    let opcode = match kind {
        StringKind::Movs => Opcode::MOVS,
        StringKind::Stos => Opcode::STOS,
        StringKind::Lods => Opcode::LODS,
        StringKind::Cmps => Opcode::CMPS,
        StringKind::Scas => Opcode::SCAS,
        StringKind::Ins => Opcode::INS,
        StringKind::Outs => Opcode::OUTS,
    };
    second.opcode() == opcode
        && size(second) == Some(1 << shift)
        && second.prefixes.rep_any() == rep
}

fn size(second: &Second) -> Option<u8> {
    second.mem_size()?.bytes_size()
}

/// Whether a direct branch goes as far as the first decoder says.
fn same_target(i: &Instruction, second: &Second) -> bool {
    let distance = i.near_branch_target().wrapping_sub(i.next_ip());
    immediate(second, 0) == Some(distance as i64)
}

fn is_register(r: RegSpec, expected: Reg, size: u8) -> bool {
    let class = match size {
        8 => register_class::Q,
        4 => register_class::D,
        _ => register_class::W,
    };
    r.class() == class && r.num() == expected.0
}

fn register(second: &Second, n: u8, expected: Reg, size: u8) -> bool {
    matches!(second.operand(n), Operand::Register { reg } if is_register(reg, expected, size))
}

fn registers(second: &Second, d: Reg, s: Reg, size: u8) -> bool {
    register(second, 0, d, size) && register(second, 1, s, size)
}

fn immediate(second: &Second, n: u8) -> Option<i64> {
    Some(match second.operand(n) {
        Operand::ImmediateI8 { imm } => imm.into(),
        Operand::ImmediateU8 { imm } => imm.into(),
        Operand::ImmediateI16 { imm } => imm.into(),
        Operand::ImmediateU16 { imm } => imm.into(),
        Operand::ImmediateI32 { imm } => imm.into(),
        Operand::ImmediateU32 { imm } => imm.into(),
        Operand::ImmediateI64 { imm } => imm,
        Operand::ImmediateU64 { imm } => imm as i64,
        _ => return None,
    })
}

/// Base, index, scale and displacement.
#[derive(PartialEq)]
struct Address {
    base: Option<(u8, u8)>,
    index: Option<(u8, u8)>,
    scale: u8,
    disp: i32,
}

/// A register in an address: number and size. `rip` has no number.
fn part(r: RegSpec) -> Option<(u8, u8)> {
    let class = r.class();
    let number = match class {
        register_class::RIP | register_class::EIP => u8::MAX,
        _ => r.num(),
    };
    Some((number, class.width()))
}

fn first_part(r: Register) -> Option<(u8, u8)> {
    let number = if r.is_ip() { u8::MAX } else { r.number() as u8 };
    (r != Register::None).then_some((number, r.size() as u8))
}

fn address(operand: Operand) -> Option<Address> {
    let (base, index, scale, disp) = match operand {
        Operand::AbsoluteU32 { addr } => (None, None, 1, addr as i32),
        Operand::MemDeref { base } => (part(base), None, 1, 0),
        Operand::Disp { base, disp } => (part(base), None, 1, disp),
        Operand::MemIndexScale { index, scale } => (None, part(index), scale, 0),
        Operand::MemIndexScaleDisp { index, scale, disp } => (None, part(index), scale, disp),
        Operand::MemBaseIndexScale { base, index, scale } => (part(base), part(index), scale, 0),
        Operand::MemBaseIndexScaleDisp {
            base,
            index,
            scale,
            disp,
        } => (part(base), part(index), scale, disp),
        _ => return None,
    };
    Some(Address {
        base,
        index,
        scale,
        disp,
    })
}

/// The explicit memory operand as the first decoder reads it.
fn first_address(i: &Instruction) -> Option<Address> {
    has_memory(i).then_some(())?;
    let base = i.memory_base();
    let disp = match base.is_ip() {
        true => i.memory_displacement64().wrapping_sub(i.next_ip()),
        false => i.memory_displacement64(),
    };
    let index = first_part(i.memory_index());
    Some(Address {
        base: first_part(base),
        index,
        // The scale bits mean nothing without an index (table 2-3).
        scale: index.map_or(1, |_| i.memory_index_scale() as u8),
        disp: disp as i32,
    })
}

/// Number of the second decoding's explicit memory operand.
fn memory_operand(i: &Instruction, second: &Second) -> Option<u8> {
    // Saves the search for the many that have none.
    if second.mem_size().is_none() && !has_memory(i) {
        return None;
    }
    (0..second.operand_count()).find(|&n| second.operand(n).is_memory())
}

fn has_memory(i: &Instruction) -> bool {
    // Absent operands count as registers, a fifth is never in memory.
    [i.op0_kind(), i.op1_kind(), i.op2_kind(), i.op3_kind()].contains(&OpKind::Memory)
}

/// Whether the address is the same, and written only if the interpretation
/// believes so.
fn reaches(i: &Instruction, insn: &Insn, second: &Second, memory: Option<u8>) -> bool {
    if let Op::String { .. } = insn.op {
        return true; // Their operands are implicit to one decoder.
    }
    let Some(n) = memory else {
        return !has_memory(i);
    };
    if first_address(i) != address(second.operand(n)) {
        return false;
    }
    let Some((believed, _)) = believed(i, insn) else {
        return true;
    };
    match second.behavior().operand_access(n) {
        Some(here) if here.is_write() => believed == Access::Write,
        Some(here) if here.is_read() => believed != Access::None,
        _ => false,
    }
}

/// Whether the second decoding reaches no more bytes than the interpretation
/// believes.
fn fits(i: &Instruction, insn: &Insn, second: &Second, memory: Option<u8>) -> bool {
    match (memory, believed(i, insn)) {
        (Some(_), Some((_, bytes))) => size(second).is_some_and(|s| u16::from(s) <= bytes),
        _ => true,
    }
}

/// Direction and size of the access; `None` where nothing is reached, nothing
/// happens, or other rules judge.
fn believed(i: &Instruction, insn: &Insn) -> Option<(Access, u16)> {
    match insn.op {
        Op::Table { .. } => Some((Access::Read, 8)),
        Op::Prefetch | Op::String { .. } => None,
        _ if matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop) => None,
        _ if allow::is_cache_hint(i.mnemonic()) => None,
        _ => Some((insn.memory.access, insn.memory.size)),
    }
}

/// Collects the general-purpose registers that are written.
struct Written(RegSet);

impl AccessVisitor for Written {
    fn register_write(&mut self, r: RegSpec) {
        let number = match r.class() {
            register_class::Q | register_class::D | register_class::W | register_class::RB => {
                r.num()
            }
            // `ah` to `bh` are 4 to 7: parts of the first four.
            register_class::B => r.num() & 3,
            _ => return,
        };
        self.0 = self.0.or(Reg(number).set());
    }
    fn register_read(&mut self, _: RegSpec) {}
    fn memory_read(&mut self, _: Option<u64>, _: u32) {}
    fn memory_write(&mut self, _: Option<u64>, _: u32) {}
}

/// Instructions of which [`does`] compared the destination.
fn is_known(op: Op) -> bool {
    matches!(
        op,
        Op::Copy { .. }
            | Op::Copy32 { .. }
            | Op::Constant { .. }
            | Op::Lea { .. }
            | Op::Alu { .. }
            | Op::Compare { .. }
            | Op::MoveIfAbove { .. }
            | Op::Table { .. }
            | Op::Call(_)
            | Op::Jump(_)
            | Op::Branch(Condition::Above | Condition::NotEqual, _)
    )
}

/// Whether every register that the second decoding writes is one that the
/// interpretation takes for written. The reverse costs precision only.
fn writes(insn: &Insn, second: &Second) -> bool {
    if is_known(insn.op) {
        return true;
    }
    let mut written = Written(RegSet::NONE);
    // Strings, `bt` on memory and clocks: the decoder does not say.
    let _ = second.behavior().visit_accesses(&mut written);
    written.0.0 & !insn.writes.0 == 0
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use iced_x86::{Code, Decoder, DecoderOptions, InstructionInfoFactory, OpCodeOperandKind};

    use super::*;
    use crate::allow::Verdict;
    use crate::classify::{self, Field};
    use crate::prefix;

    /// Every opcode byte of these maps behind `head`, with every register field
    /// and each way to write an address.
    fn every_opcode(head: &[u8], mut check: impl FnMut(&[u8; 24])) {
        for opcode in 0..=255u8 {
            for modrm in (0..=255u8).filter(|modrm| !matches!(modrm & 7, 3 | 6 | 7)) {
                let mut bytes = [0x11; 24];
                bytes[..head.len()].copy_from_slice(head);
                bytes[head.len()] = opcode;
                bytes[head.len() + 1] = modrm;
                // A base and an index, or none with a scale all the same.
                bytes[head.len() + 2] = [0x8b, 0x23, 0x63, 0xe3][usize::from(modrm >> 3 & 3)];
                check(&bytes);
            }
        }
    }

    /// What stands before the opcode: prefixes, REX and escape bytes, or VEX.
    fn heads() -> Vec<Vec<u8>> {
        let mut heads = Vec::new();
        let prefixes = [
            &[][..],
            &[0x66],
            &[0xf2],
            &[0xf3],
            &[0xf0],
            &[0x66, 0xf2],
            &[0x66, 0xf3],
        ];
        for prefix in prefixes {
            for rex in [&[][..], &[0x40], &[0x48], &[0x45], &[0x4f]] {
                for map in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
                    heads.push([prefix, rex, map].concat());
                }
            }
        }
        for map in 1..=3 {
            for third in 0..=255u8 {
                // vvvv: no register, xmm3 and xmm11.
                let (vvvv, inverted) = (third >> 3 & 15, if third & 0x20 == 0 { 0 } else { 0xe0 });
                if matches!(vvvv, 15 | 12 | 4) {
                    heads.push(vec![0xc4, inverted | map, third]);
                }
            }
        }
        for second in [0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0x65, 0x62] {
            heads.push(vec![0xc5, second]);
        }
        heads
    }

    /// The comparison of whatever the bytes begin with; `None` if a rule
    /// refuses it by name.
    fn compared(
        bytes: &[u8],
        factory: &mut InstructionInfoFactory,
    ) -> Option<(Instruction, Result<(), &'static str>)> {
        let i = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
        if allow::verdict(i.code()) != Verdict::Allowed {
            return None;
        }
        prefix::check(&i, &bytes[..i.len()]).ok()?;
        let insn = classify::classify(&i, Field::None, factory).ok()?;
        Some((i, agrees(&InstDecoder::default(), &i, &insn, bytes)))
    }

    /// Listed, but refused since the second decoder does not know better. No
    /// compiler emits them: W set where the manual ignores it, and VPCLMULQDQ of
    /// 256 bits, which is newer than it.
    const LOST: [Code; 3] = [
        Code::VEX_Vpextrb_r64m8_xmm_imm8,
        Code::VEX_Vpextrw_r64m16_xmm_imm8,
        Code::VEX_Vpclmulqdq_ymm_ymm_ymmm256_imm8,
    ];

    /// What [`crate::memo`] relies on.
    #[test]
    fn what_follows_an_instruction_changes_nothing() {
        let mut factory = InstructionInfoFactory::new();
        for head in heads() {
            every_opcode(&head, |bytes| {
                let Some((i, result)) = compared(bytes, &mut factory) else {
                    return;
                };
                for tail in [0x00, 0x66, 0xf0, 0xff] {
                    let mut other = *bytes;
                    other[i.len()..].fill(tail);
                    let (j, again) = compared(&other, &mut factory).expect("the same instruction");
                    assert_eq!((i, i.len(), result), (j, j.len(), again), "{bytes:02x?}");
                }
            });
        }
    }

    #[test]
    fn the_decoders_agree_on_every_listed_instruction() {
        let mut factory = InstructionInfoFactory::new();
        let (mut seen, mut differ) = (HashSet::new(), BTreeMap::new());
        for head in heads() {
            every_opcode(&head, |bytes| match compared(bytes, &mut factory) {
                Some((i, Ok(()))) => {
                    seen.insert(i.code());
                }
                Some((i, Err(reason))) if !LOST.contains(&i.code()) => {
                    let text = format!("{i}: {:02x?}: {reason}", &bytes[..i.len()]);
                    differ.entry(i.code() as u32).or_insert(text);
                }
                _ => {}
            });
        }
        let shown: Vec<&str> = differ.values().map(String::as_str).collect();
        assert!(shown.is_empty(), "{}", shown.join("\n"));
        let listed = Code::values().filter(|&code| allow::verdict(code) == Verdict::Allowed);
        let missing: Vec<Code> = listed
            .filter(|code| !seen.contains(code) && !LOST.contains(code))
            // This test writes no EVEX prefix; the fixture `class_avx512` has them.
            .filter(|code| !allow::wide_move(*code))
            // An absolute address is refused for its form.
            .filter(|code| {
                !code
                    .op_code()
                    .op_kinds()
                    .contains(&OpCodeOperandKind::mem_offs)
            })
            .collect();
        assert_eq!(missing, []);
    }
}
