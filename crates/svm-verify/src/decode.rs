//! Bytes to instructions: every byte of every code section belongs to exactly
//! one, each is on the allow-list and means the same to a second decoder (P3),
//! each relocation is on one operand field (P2), each direct branch leads to an
//! instruction (P2).
//!
//! What the rest of the verifier works on is made here, once: [`Program`].

use elf_loader::consts::{R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32};
use elf_loader::{Relocation, Section, SectionId};
use iced_x86::{ConstantOffsets, Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use twin_abi::stlb;
use yaxpeax_x86::long_mode::InstDecoder;

use crate::allow::{self, Verdict};
use crate::classify::{self, Field};
use crate::insn::{Insn, Op, Target};
use crate::object::{CodeAt, Image, Meaning, Routine};
use crate::prefix;
use crate::report::Report;
use crate::second;
use crate::violation::Code;

/// Where instructions start in a section: a bit for each byte, and how many
/// instructions begin before each 64 bytes.
struct Starts {
    bits: Vec<u64>,
    before: Vec<u32>,
}

impl Starts {
    fn new(bytes: usize) -> Starts {
        let words = bytes.div_ceil(64);
        Starts {
            bits: vec![0; words],
            before: vec![0; words],
        }
    }

    /// Instruction `n` starts at byte `at`; called in ascending order.
    fn add(&mut self, at: usize, n: u32) {
        if self.bits[at / 64] == 0 {
            self.before[at / 64] = n;
        }
        self.bits[at / 64] |= 1 << (at % 64);
    }

    /// The instruction that starts at byte `at`.
    fn get(&self, at: usize) -> Option<u32> {
        let (word, bit) = (*self.bits.get(at / 64)?, 1 << (at % 64));
        (word & bit != 0).then(|| self.before[at / 64] + (word & (bit - 1)).count_ones())
    }
}

/// All instructions of an object.
pub struct Program {
    /// In the order of sections and offsets.
    pub insns: Vec<Insn>,
    /// For each code section, where they start.
    starts: Vec<Starts>,
}

impl Program {
    /// Number of the instruction that starts there.
    pub fn at(&self, place: CodeAt) -> Option<u32> {
        let section = self.starts.get(usize::from(place.section))?;
        section.get(usize::try_from(place.offset).ok()?)
    }

    /// Instruction number `n`.
    pub fn get(&self, n: u32) -> Option<&Insn> {
        self.insns.get(n as usize)
    }

    /// The instruction after number `n`, if it is in the same section.
    pub fn next(&self, n: u32) -> Option<u32> {
        let next = n.checked_add(1)?;
        (self.get(next)?.section == self.get(n)?.section).then_some(next)
    }
}

/// A direct branch before all instructions are known.
#[derive(Clone, Copy)]
enum Destination {
    Routine(Routine),
    Code(CodeAt),
    Bad,
}

/// Decodes all code. Reports what is wrong with single instructions; `None` if
/// some bytes are none, so that nothing can be said about the rest.
pub fn decode<'o>(image: &Image<'o>, report: &mut Report<'o>) -> Option<Program> {
    let bytes: u64 = image
        .code
        .iter()
        .map(|&id| image.object.section(id).size)
        .sum();
    if bytes >= 1 << 31 {
        // Instructions are numbered with 32 bits, and not all numbers are used.
        report.object(Code::Section, "more than 2 GiB of code");
        return None;
    }
    let mut program = Program {
        insns: Vec::with_capacity(bytes as usize / 4),
        starts: Vec::new(),
    };
    let mut branches = Vec::new();
    let mut complete = true;
    for number in 0..image.code.len() {
        let mut section = SectionDecoder {
            image,
            report,
            id: image.code[number],
            number: number as u16,
            section: image.section(number as u16),
            next_relocation: 0,
            program: &mut program,
            branches: &mut branches,
            factory: InstructionInfoFactory::new(),
            second: InstDecoder::default(),
        };
        complete &= section.run();
    }
    // Every instruction's number is known beyond this point.
    for (n, destination) in branches {
        resolve(image, &mut program, n, destination, report);
    }
    complete.then_some(program)
}

/// Fills in where branch number `n` goes.
fn resolve<'o>(
    image: &Image<'o>,
    program: &mut Program,
    n: u32,
    destination: Destination,
    report: &mut Report<'o>,
) {
    let insn = program.insns[n as usize];
    let problem = match destination {
        Destination::Bad => None,
        Destination::Routine(routine) if may_reach(insn.op, routine) => {
            set_target(&mut program.insns[n as usize].op, Target::Routine(routine));
            None
        }
        Destination::Routine(_) => Some((
            Code::Callee,
            "the runtime entry is not reached by this kind of branch",
        )),
        Destination::Code(place) => match program.at(place) {
            Some(target) => {
                set_target(&mut program.insns[n as usize].op, Target::Inside(target));
                None
            }
            None => Some((Code::Target, "no instruction starts at the branch's target")),
        },
    };
    if let Some((code, reason)) = problem {
        report.at(
            image.code[usize::from(insn.section)],
            u64::from(insn.at),
            code,
            reason,
        );
    }
}

/// Roles of the names that are not in this object. Tail calls are jumps with or
/// without a condition.
fn may_reach(op: Op, routine: Routine) -> bool {
    match op {
        Op::Call(_) => true,
        Op::Jump(_) => matches!(routine, Routine::Imported | Routine::Indirect),
        Op::Branch(..) => routine == Routine::Imported,
        _ => false,
    }
}

fn set_target(op: &mut Op, to: Target) {
    match op {
        Op::Call(target) | Op::Jump(target) | Op::Branch(_, target) => *target = to,
        _ => {}
    }
}

struct SectionDecoder<'a, 'o> {
    image: &'a Image<'o>,
    report: &'a mut Report<'o>,
    id: SectionId,
    number: u16,
    section: &'o Section<'o>,
    next_relocation: usize,
    program: &'a mut Program,
    branches: &'a mut Vec<(u32, Destination)>,
    factory: InstructionInfoFactory,
    second: InstDecoder,
}

impl<'o> SectionDecoder<'_, 'o> {
    /// Decodes the section. False if some bytes are no instruction.
    fn run(&mut self) -> bool {
        let bytes: &'o [u8] = &self.section.data;
        let mut starts = Starts::new(bytes.len());
        let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
        let mut instruction = Instruction::default();
        let mut complete = true;
        while decoder.can_decode() {
            let at = decoder.position();
            decoder.decode_out(&mut instruction);
            if instruction.is_invalid() {
                self.report
                    .at(self.id, at as u64, Code::Undecodable, "no instruction");
                complete = false;
                break;
            }
            starts.add(at, self.program.insns.len() as u32);
            self.one(&decoder, &instruction, at as u32, &bytes[at..]);
        }
        self.program.starts.push(starts);
        if complete && self.next_relocation < self.section.relocations.len() {
            let r = self.section.relocations[self.next_relocation];
            self.report
                .at(self.id, r.offset, Code::Relocation, "it is behind the code");
        }
        complete
    }

    fn violation(&mut self, at: u32, code: Code, reason: &'static str) {
        self.report.at(self.id, u64::from(at), code, reason);
    }

    /// The instruction at the start of `rest`.
    fn one(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, at: u32, rest: &[u8]) {
        let raw = &rest[..instruction.len()];
        let n = self.program.insns.len() as u32;
        let allowed = match allow::verdict(instruction.code()) {
            Verdict::Allowed if instruction.has_op_mask() => {
                Err((Code::Instruction, "with a mask it is not on the allow-list"))
            }
            Verdict::Allowed => prefix::check(instruction, raw),
            Verdict::Indirect => Err((Code::Indirect, "its target is not known")),
            Verdict::Refused => Err((Code::Instruction, "it is not on the allow-list")),
        };
        if let Err((code, reason)) = allowed {
            self.violation(at, code, reason);
        }
        let field = self.relocation(decoder, instruction, at);
        let mut insn = match classify::classify(instruction, field, &mut self.factory) {
            Ok(insn) => {
                // What is refused by name is not asked about.
                if let (Ok(()), Err(reason)) = (
                    allowed,
                    second::agrees(&self.second, instruction, &insn, rest),
                ) {
                    self.violation(at, Code::Decoders, reason);
                }
                insn
            }
            Err((code, reason, insn)) => {
                // Said once: what is not allowed is not looked at further.
                if allowed.is_ok() {
                    self.violation(at, code, reason);
                }
                insn
            }
        };
        insn.at = at;
        insn.section = self.number;
        insn.relocated = field != Field::None;
        insn.len = raw.len() as u8;
        // Nothing more is said about what follows; but a check that skips a
        // prefetch with a prefix too many is a check all the same.
        if allowed.is_err() && !matches!(insn.op, Op::Prefetch) {
            insn.op = Op::Stop;
        }
        if let Op::Call(_) | Op::Jump(_) | Op::Branch(..) = insn.op {
            self.branches
                .push((n, self.destination(instruction, field)));
        }
        self.program.insns.push(insn);
    }

    /// Where a direct branch goes.
    fn destination(&self, instruction: &Instruction, field: Field) -> Destination {
        match field {
            Field::None => {
                let target = instruction.near_branch_target();
                // Wraps for a branch to before the section: an offset that no
                // section has.
                let offset = target as i64;
                Destination::Code(CodeAt {
                    section: self.number,
                    offset,
                })
            }
            Field::Routine(routine) => Destination::Routine(routine),
            Field::Code(place) => Destination::Code(place),
            _ => Destination::Bad,
        }
    }

    /// What the instruction's relocation makes of its operand. Reports those
    /// that are none of the contract's.
    fn relocation(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, at: u32) -> Field {
        let end = u64::from(at) + instruction.len() as u64;
        let all = &self.section.relocations;
        let Some(&first) = all.get(self.next_relocation).filter(|r| r.offset < end) else {
            return Field::None;
        };
        self.next_relocation += 1;
        let mut result = Ok(());
        while all
            .get(self.next_relocation)
            .is_some_and(|r| r.offset < end)
        {
            self.next_relocation += 1;
            result = Err("two relocations in one instruction");
        }
        let fields = decoder.get_constant_offsets(instruction);
        let result = result.and_then(|()| self.judge(&first, instruction, at, &fields));
        result.unwrap_or_else(|reason| {
            self.report
                .at(self.id, first.offset, Code::Relocation, reason);
            Field::Bad
        })
    }

    /// The table of relocations in `ARCHITECTURE.md`, row by row.
    fn judge(
        &self,
        r: &Relocation,
        instruction: &Instruction,
        at: u32,
        fields: &ConstantOffsets,
    ) -> Result<Field, &'static str> {
        let meaning = self.image.meaning(r.symbol);
        if let Meaning::Unusable(reason) = meaning {
            return Err(reason);
        }
        let offset = r.offset.checked_sub(u64::from(at));
        let is = |has: bool, start: usize, size: usize, want: usize| {
            has && offset == Some(start as u64) && size == want
        };
        let imm = |want| {
            let (start, size) = (fields.immediate_offset(), fields.immediate_size());
            is(fields.has_immediate(), start, size, want)
        };
        let disp = {
            let (start, size) = (fields.displacement_offset(), fields.displacement_size());
            is(fields.has_displacement(), start, size, 4)
        };
        let branch = instruction.is_call_near()
            || instruction.is_jmp_short_or_near()
            || instruction.is_jcc_short_or_near();
        match (r.kind, meaning) {
            (R_X86_64_PC32 | R_X86_64_PLT32, Meaning::Routine(routine)) if branch && imm(4) => {
                // The field is the last of the instruction: S + A - P is
                // relative to its start, four bytes early.
                if r.addend == -4 {
                    Ok(Field::Routine(routine))
                } else {
                    Err("not the routine's start")
                }
            }
            (R_X86_64_PC32 | R_X86_64_PLT32, Meaning::Code(place)) if branch && imm(4) => {
                let to = place
                    .offset
                    .checked_add(r.addend)
                    .and_then(|o| o.checked_add(4));
                let offset = to.ok_or("its target is outside every section")?;
                Ok(Field::Code(CodeAt { offset, ..place }))
            }
            (R_X86_64_32S, Meaning::Vm) if !branch && imm(4) => Ok(Field::Immediate),
            (R_X86_64_32S, Meaning::Vm) if disp => Ok(Field::Displacement),
            (R_X86_64_64, Meaning::Vm) if imm(8) => Ok(Field::Immediate),
            (R_X86_64_32S, Meaning::Table) if disp => match u64::try_from(r.addend) {
                Ok(stlb::TAG) => Ok(Field::Tag),
                Ok(stlb::XLATE) => Ok(Field::Xlate),
                _ => Err("the table is read at its tag or at its translation only"),
            },
            _ => Err("not one of the relocations that the contract lists for this operand"),
        }
    }
}
