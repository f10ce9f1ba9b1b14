//! Decodes bytes to instructions: every byte of every code section belongs to exactly
//! one, each instruction is on the allow-list and means the same to a second decoder
//! (P3), each relocation is on one operand field ([`crate::decode::relocation`], P2),
//! each direct branch leads to an instruction (P2).
//!
//! Gives the [`Disassembly`] that the rest of the verifier works on.

pub mod allow;
pub mod classify;
mod memo;
mod operands;
mod prefix;
mod relocation;
pub mod second;
mod system;

use elf_loader::{Relocation, Section, SectionId, consts};
use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory};
use yaxpeax_x86::long_mode::InstDecoder;

use self::allow::Admission;
use self::classify::OperandField;
use self::memo::{Answer, Last, Memo, Operands, Remembered};
use self::relocation::{Destination, Relocated};
use crate::findings::{Findings, ViolationCode};
use crate::insn::{BranchTarget, CodeAt, Disassembly, Insn, Op, Routine, Starts, forced};
use crate::object::Image;
use crate::targets::{Contents, IndirectBranches, NamedMemory, Rules};

/// Most instructions of an object. Each takes some 60 bytes of memory until the end.
const MOST_INSTRUCTIONS: usize = 1 << 24;

/// Most direct branches of an object. A block may begin at each target, and the facts
/// there take some 400 bytes.
const MOST_BRANCHES: usize = 1 << 22;

/// Decodes all code. Reports violations of single instructions; `None` if some bytes are
/// not an instruction, so that the rest cannot be judged.
pub fn decode<'o>(
    image: &Image<'o>,
    remember: bool,
    findings: &mut Findings<'o>,
) -> Option<Disassembly> {
    let bytes: u64 = image
        .code
        .iter()
        .map(|&id| image.object.section(id).size)
        .sum();
    if bytes >= 1 << 31 {
        // Instructions are numbered with 32 bits, and not all numbers are used.
        findings.object(ViolationCode::Size, "more than 2 GiB of code");
        return None;
    }
    // An instruction is about 4 bytes long.
    let room = (bytes as usize / 4).min(MOST_INSTRUCTIONS);
    let mut disassembly = Disassembly::with_capacity(room);
    let mut branches = Vec::with_capacity(room / 4);
    let mut memo = match remember {
        true => Memo::new(bytes as usize),
        false => Memo::disabled(),
    };
    let mut complete = true;
    for number in 0..image.code.len() {
        let mut section = SectionDecoder {
            image,
            findings,
            id: image.code[number],
            number: number as u16,
            section: image.section(number as u16),
            next_relocation: 0,
            disassembly: &mut disassembly,
            branches: &mut branches,
            memo: &mut memo,
            factory: InstructionInfoFactory::new(),
            second: InstDecoder::default(),
        };
        complete &= section.run();
        if !complete && disassembly.insns.len() == MOST_INSTRUCTIONS {
            // The rest has no numbers: no branch to it could be told from a wrong one.
            return None;
        }
    }
    if branches.len() > MOST_BRANCHES {
        let reason = format!("more than {MOST_BRANCHES} direct branches");
        findings.object(ViolationCode::Size, reason);
        return None;
    }
    // --- every instruction has its number ---
    disassembly.branches = branches.iter().map(|(n, _)| *n).collect();
    for (n, destination) in branches {
        resolve(image, &mut disassembly, n, destination, findings);
    }
    complete.then_some(disassembly)
}

/// Fills in where branch number `n` goes.
fn resolve<'o>(
    image: &Image<'o>,
    disassembly: &mut Disassembly,
    n: u32,
    destination: Destination,
    findings: &mut Findings<'o>,
) {
    let insn = disassembly.insns[n as usize];
    let problem = match destination {
        Destination::Bad => None,
        Destination::Routine(routine) if may_reach(insn.op, routine) => {
            set_target(
                &mut disassembly.insns[n as usize].op,
                BranchTarget::Routine(routine),
            );
            None
        }
        Destination::Routine(_) => Some((
            ViolationCode::Callee,
            "the runtime entry is not reached by this kind of branch",
        )),
        Destination::Code(place) => match disassembly.at(place) {
            Some(target) => {
                set_target(
                    &mut disassembly.insns[n as usize].op,
                    BranchTarget::Insn(target),
                );
                None
            }
            None => Some((
                ViolationCode::Target,
                "no instruction starts at the branch's target",
            )),
        },
    };
    if let Some((code, reason)) = problem {
        findings.at(
            image.code[usize::from(insn.section)],
            u64::from(insn.at),
            code,
            reason,
        );
    }
}

/// Whether a branch of this kind may go to the routine. Tail calls are jumps, with
/// or without a condition.
fn may_reach(op: Op, routine: Routine) -> bool {
    match op {
        Op::Call(_) => true,
        Op::Jump(_) => matches!(
            routine,
            Routine::Imported | Routine::Indirect | Routine::Thunk(_)
        ),
        Op::Branch(..) => matches!(routine, Routine::Imported | Routine::Thunk(_)),
        _ => false,
    }
}

fn set_target(op: &mut Op, to: BranchTarget) {
    match op {
        Op::Call(target) | Op::Jump(target) | Op::Branch(_, target) => *target = to,
        _ => {}
    }
}

/// Decodes one section, from its first byte to its last.
struct SectionDecoder<'a, 'o> {
    image: &'a Image<'o>,
    findings: &'a mut Findings<'o>,
    /// The section: in the object, and among those with code.
    id: SectionId,
    number: u16,
    section: &'o Section<'o>,
    /// Index of the first relocation that no instruction so far had.
    next_relocation: usize,
    /// The result, for all sections.
    disassembly: &'a mut Disassembly,
    branches: &'a mut Vec<(u32, Destination)>,
    memo: &'a mut Memo,
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
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if forced::begins(rest) || at == 0 && forced::follows(rest) {
                self.violation(at as u32, ViolationCode::Prefix, forced::REASON);
            }
            let first = self.disassembly.insns.len() as u32;
            if first as usize == MOST_INSTRUCTIONS {
                let reason = format!("more than {MOST_INSTRUCTIONS} instructions");
                self.findings
                    .at(self.id, at as u64, ViolationCode::Size, reason);
                break;
            }
            let length = match self.again(at as u32, rest) {
                Some(length) => length,
                None => {
                    if !decode_at(&mut decoder, at, &mut instruction) {
                        self.violation(at as u32, ViolationCode::Undecodable, "no instruction");
                        break;
                    }
                    self.anew(&decoder, &instruction, at as u32, rest);
                    instruction.len()
                }
            };
            starts.add(at, first);
            at += length;
        }
        self.disassembly.add_section(starts);
        let complete = at == bytes.len();
        if complete && self.next_relocation < self.section.relocations.len() {
            let r = self.section.relocations[self.next_relocation];
            self.findings.at(
                self.id,
                r.offset,
                ViolationCode::Relocation,
                "it is behind the code",
            );
        }
        complete
    }

    fn violation(&mut self, at: u32, code: ViolationCode, reason: &'static str) {
        self.findings.at(self.id, u64::from(at), code, reason);
    }

    /// Takes the instruction at the start of `rest` from the memo, and gives its length.
    /// Changes nothing if it is not there, or if its relocation differs in any way that
    /// matters.
    fn again(&mut self, at: u32, rest: &[u8]) -> Option<usize> {
        let next = self.section.relocations.get(self.next_relocation);
        let distance = next.map_or(u64::MAX, |r| r.offset.saturating_sub(u64::from(at)));
        let answer = self.memo.find(rest, distance)?;
        let Answer { known, length, .. } = answer;
        let end = at + length as u32;
        let relocated = match known.field {
            OperandField::None => Relocated::NONE,
            _ => match self.relocations(at, end, known.operands) {
                (1, Ok(relocated)) if relocated.field == known.field => relocated,
                _ => return None,
            },
        };
        let target = u64::from(end).wrapping_add(answer.distance);
        let (insn, to) = (answer.insn(), self.destination(relocated, target));
        self.next_relocation += usize::from(relocated.field != OperandField::None);
        self.push(at, insn, to);
        Some(length)
    }

    /// Judges the instruction at the start of `rest` by all rules.
    fn anew(&mut self, decoder: &Decoder<'_>, instruction: &Instruction, at: u32, rest: &[u8]) {
        let rules = self.image.rules;
        let admission = self.memo.admission(instruction, rules.instructions);
        let allowed = judged(admission, instruction, &rest[..instruction.len()], rules);
        if let Err((code, reason)) = allowed {
            self.violation(at, code, reason);
        }
        self.disassembly.vectors |= allow::touches_vectors(instruction.code());
        let operands = self.operands(decoder, instruction, at);
        let relocated = self.relocation(at, instruction.len(), operands);
        let (mut insn, good) = self.classified(instruction, relocated.field, at, rest, allowed);
        insn.relocated = relocated.field != OperandField::None;
        insn.len = instruction.len() as u8;
        if good && let Some(known) = Remembered::new(instruction, insn, relocated.field, operands) {
            let known = match relocated.field {
                OperandField::None => known.of_any(Last::of(instruction, &insn, decoder)),
                _ => known,
            };
            self.memo.keep(rest, known);
        }
        // Later instructions on this path are not judged. But a check that skips a
        // prefetch with a prefix too many is still a check.
        if allowed.is_err() && !matches!(insn.op, Op::Prefetch) {
            insn.op = Op::Stop;
        }
        let target = instruction.near_branch_target();
        self.push(at, insn, self.destination(relocated, target));
    }

    /// The instruction for the interpretation, and whether no rule refuses it.
    fn classified(
        &mut self,
        instruction: &Instruction,
        field: OperandField,
        at: u32,
        rest: &[u8],
        allowed: Result<Admission, (ViolationCode, &'static str)>,
    ) -> (Insn, bool) {
        let rules = self.image.rules;
        let classified = classify::classify(instruction, field, rules, &mut self.factory);
        let Ok(admission) = allowed else {
            // Reported once: an instruction that is not allowed is not judged further.
            return (classified.unwrap_or_else(|(.., insn)| insn), false);
        };
        let (insn, result) = match classified {
            Ok(insn) => {
                let agrees = match admission {
                    Admission::System => second::same_length(&self.second, instruction, rest),
                    _ => second::agrees(&self.second, instruction, &insn, rest),
                };
                (
                    insn,
                    agrees.map_err(|reason| (ViolationCode::Decoders, reason)),
                )
            }
            Err((code, reason, insn)) => (insn, Err((code, reason))),
        };
        if let Err((code, reason)) = result {
            self.violation(at, code, reason);
        }
        (insn, result.is_ok() && field != OperandField::Bad)
    }

    /// Adds an instruction to the disassembly.
    fn push(&mut self, at: u32, mut insn: Insn, to: Destination) {
        (insn.at, insn.section) = (at, self.number);
        if let Op::Call(_) | Op::Jump(_) | Op::Branch(..) = insn.op {
            self.branches
                .push((self.disassembly.insns.len() as u32, to));
        }
        self.disassembly.insns.push(insn);
    }

    /// Where a direct branch goes that leads to `target` without a relocation.
    fn destination(&self, relocated: Relocated, target: u64) -> Destination {
        match relocated.field {
            // Wraps for a branch to before the section: an offset that no
            // section has.
            OperandField::None => Destination::Code(CodeAt {
                section: self.number,
                offset: target as i64,
            }),
            _ => relocated.to,
        }
    }

    /// Where the instruction's relocation may be, if it has one.
    fn operands(&self, decoder: &Decoder<'_>, instruction: &Instruction, at: u32) -> Operands {
        let end = u64::from(at) + instruction.len() as u64;
        match self.section.relocations.get(self.next_relocation) {
            Some(r) if r.offset < end => {
                Operands::new(instruction, &decoder.get_constant_offsets(instruction))
            }
            _ => Operands::default(),
        }
    }

    /// What the instruction's relocation makes of its operand. Reports relocations that
    /// the contract does not list.
    fn relocation(&mut self, at: u32, length: usize, operands: Operands) -> Relocated {
        let first = self.section.relocations.get(self.next_relocation);
        let (inside, judged) = self.relocations(at, at + length as u32, operands);
        self.next_relocation += inside;
        judged.unwrap_or_else(|reason| {
            let offset = first.map_or(0, |r| r.offset);
            self.findings
                .at(self.id, offset, ViolationCode::Relocation, reason);
            Relocated::operand(OperandField::Bad)
        })
    }

    /// Whether it is what objtool leaves of the relocation of a call that it made a nop
    /// (`--mnop`, `create_mcount_loc_sections`, tools/objtool/check.c). The kernel does nothing
    /// with it (`R_X86_64_NONE`, `__apply_relocate_add`, arch/x86/kernel/module.c).
    fn is_trace_nop(&self, at: u32, r: &Relocation) -> bool {
        const NOP: &[u8] = &[0x0f, 0x1f, 0x44, 0, 0];
        let code = self.section.data.get(at as usize..).unwrap_or_default();
        self.image.rules.contents == Contents::Module
            && r.kind == consts::R_X86_64_NONE
            && r.offset == u64::from(at) + 1
            && code.starts_with(NOP)
    }

    /// How many of the next relocations are before `end`, where the instruction
    /// ends, and what they make of it.
    fn relocations(
        &self,
        at: u32,
        end: u32,
        operands: Operands,
    ) -> (usize, Result<Relocated, &'static str>) {
        let rest = &self.section.relocations[self.next_relocation..];
        let inside = rest.iter().take_while(|r| r.offset < u64::from(end));
        match inside.count() {
            0 => (0, Ok(Relocated::NONE)),
            1 if self.is_trace_nop(at, &rest[0]) => (1, Ok(Relocated::NONE)),
            1 => (1, relocation::judge(self.image, &rest[0], at, operands)),
            2 if self.image.rules.named_memory == NamedMemory::SymbolsAndPerCpu => {
                let both = [&rest[0], &rest[1]];
                (2, relocation::judge_both(self.image, both, at, operands))
            }
            n => (n, Err(relocation::TWO)),
        }
    }
}

/// Decodes the instruction at an offset of the section. False if there is none.
fn decode_at(decoder: &mut Decoder<'_>, at: usize, instruction: &mut Instruction) -> bool {
    if decoder.set_position(at).is_err() {
        return false;
    }
    decoder.set_ip(at as u64);
    decoder.decode_out(instruction);
    !instruction.is_invalid()
}

/// What admits the instruction with the prefixes that it has.
///
/// # Errors
/// Why it may not occur.
pub fn allowed(
    instruction: &Instruction,
    raw: &[u8],
    rules: &Rules,
) -> Result<Admission, (ViolationCode, &'static str)> {
    let admission = allow::admission_among(instruction, rules.instructions);
    judged(admission, instruction, raw, rules)
}

/// The same where it is known what the lists say of the instruction.
fn judged(
    admission: Admission,
    instruction: &Instruction,
    raw: &[u8],
    rules: &Rules,
) -> Result<Admission, (ViolationCode, &'static str)> {
    let judged = match admission {
        Admission::Allowed if instruction.has_op_mask() => Err((
            ViolationCode::Instruction,
            "with a mask it is not on the allow-list",
        )),
        Admission::System if !system::is_usual(instruction.code(), raw) => Err((
            ViolationCode::Instruction,
            "its ModRM byte is one of memory, by which kernels find another length",
        )),
        Admission::Allowed | Admission::System => prefix::check(instruction, raw, rules),
        // Thunks and retpolines may lead anywhere as well: left to the kernel's policy.
        Admission::Indirect
            if rules.indirect_branches == IndirectBranches::Near && is_near(instruction) =>
        {
            prefix::check(instruction, raw, rules)
        }
        Admission::Indirect => Err((ViolationCode::Indirect, "its target is not known")),
        Admission::Refused => Err((ViolationCode::Instruction, "it is not on the allow-list")),
    };
    judged.map(|()| admission)
}

/// Whether an indirect call or jump goes to a 64-bit address, not to another
/// segment.
fn is_near(instruction: &Instruction) -> bool {
    use iced_x86::FlowControl::{IndirectBranch, IndirectCall};
    let memory = instruction.op0_kind() == iced_x86::OpKind::Memory;
    matches!(instruction.flow_control(), IndirectCall | IndirectBranch)
        && (!memory || instruction.memory_size().size() == 8)
}
