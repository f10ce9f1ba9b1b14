//! Machine code to instructions, functions and direct branch targets.
//!
//! Takes an object, gives [`Lifted`]: every byte of every code section decoded
//! exactly once, every relocation tied to the operand it fills, every direct
//! branch resolved to an instruction or an imported symbol. ET_REL keeps each
//! code reference in a relocation or a direct branch, so none of this guesses;
//! what does not fit is refused with its place.

use std::collections::HashSet;

use elf_loader::consts::{
    R_X86_64_32, R_X86_64_32S, R_X86_64_64, R_X86_64_NONE, R_X86_64_PC32, R_X86_64_PLT32,
    SHF_WRITE, STB_LOCAL, STT_FUNC,
};
use elf_loader::{Machine, Object, Place, Relocation, SectionId, SymbolId, Word};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic};

use crate::refusal::{Code, Refusal};

use crate::text;

/// Marks a call for the linker, fills nothing (psABI, table 4.9).
const R_X86_64_TLSDESC_CALL: u32 = 35;

/// Index of an instruction in [`Lifted::insts`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstIdx(pub u32);

/// Index of a function in [`Lifted::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FuncIdx(pub u32);

/// Index of a code section in [`Lifted::sections`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CodeIdx(pub u16);

/// Where a direct branch or call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// An instruction of this object.
    Inst(InstIdx),
    /// An imported routine.
    Import(SymbolId),
}

/// A value that a relocation puts into an operand: symbol plus addend, with the
/// instruction-relative correction of PC32 already taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value {
    /// The symbol.
    pub symbol: SymbolId,
    /// What is added to it.
    pub addend: i64,
    /// Relocation type in the original.
    pub kind: u32,
    /// Offset of the field in the original instruction, in bytes.
    pub at: u8,
}

/// One instruction and what its relocations mean.
#[derive(Clone, Debug)]
pub struct Inst {
    /// The decoded instruction; its `ip` is the offset in its section.
    pub iced: Instruction,
    /// Section.
    pub section: CodeIdx,
    /// The value in the displacement of the memory operand.
    pub displacement: Option<Value>,
    /// The value in the immediate.
    pub immediate: Option<Value>,
    /// Destination, if this is a direct branch or call.
    pub target: Option<Target>,
}

impl Inst {
    /// Offset in the section, in bytes.
    pub fn offset(&self) -> u64 {
        self.iced.ip()
    }
}

/// A code section.
#[derive(Clone, Debug)]
pub struct CodeSection {
    /// The section in the object.
    pub id: SectionId,
    /// Its instructions.
    pub insts: std::ops::Range<u32>,
    /// For each byte offset the instruction that starts there, or `NONE`.
    starts: Vec<u32>,
}

const NONE: u32 = u32::MAX;

/// A function: a named run of instructions, laid out and entered as a whole.
#[derive(Clone, Debug)]
pub struct Function {
    /// Name of the symbol, or `section+offset` for code that has none.
    pub name: String,
    /// Section.
    pub section: CodeIdx,
    /// Its instructions.
    pub insts: std::ops::Range<u32>,
    /// First byte in the original section.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Whether it is not emitted: padding that no branch reaches, or the
    /// replacement code of alternatives.
    pub padding: bool,
}

/// The code of an object.
#[derive(Debug)]
pub struct Lifted<'a> {
    /// The object.
    pub object: &'a Object<'a>,
    /// Its code sections in file order.
    pub sections: Vec<CodeSection>,
    /// All instructions, section by section, in address order.
    pub insts: Vec<Inst>,
    /// All functions, in the same order; every instruction is in exactly one.
    pub functions: Vec<Function>,
}

impl Lifted<'_> {
    /// The instruction.
    pub fn inst(&self, i: InstIdx) -> &Inst {
        &self.insts[i.0 as usize]
    }

    /// The instruction that starts at that offset of that section.
    pub fn inst_at(&self, section: CodeIdx, offset: u64) -> Option<InstIdx> {
        let starts = &self.sections[section.0 as usize].starts;
        match starts.get(usize::try_from(offset).ok()?) {
            Some(&i) if i != NONE => Some(InstIdx(i)),
            _ => None,
        }
    }

    /// The code section with this id, if it is one.
    pub fn code_section(&self, id: SectionId) -> Option<CodeIdx> {
        self.sections
            .iter()
            .position(|s| s.id == id)
            .map(|i| CodeIdx(i as u16))
    }

    /// Name of a code section.
    pub fn section_name(&self, section: CodeIdx) -> &str {
        &self
            .object
            .section(self.sections[section.0 as usize].id)
            .name
    }

    /// The function that holds an instruction.
    pub fn function_of(&self, i: InstIdx) -> FuncIdx {
        FuncIdx(self.functions.partition_point(|f| f.insts.end <= i.0) as u32)
    }

    /// The function with this index.
    pub fn function(&self, f: FuncIdx) -> &Function {
        &self.functions[f.0 as usize]
    }

    /// The original bytes of an instruction.
    pub fn bytes(&self, i: InstIdx) -> &[u8] {
        let inst = self.inst(i);
        let section = self
            .object
            .section(self.sections[inst.section.0 as usize].id);
        &section.data[inst.offset() as usize..inst.iced.next_ip() as usize]
    }

    /// Name of an imported routine or of any symbol.
    pub fn symbol_name(&self, symbol: SymbolId) -> &str {
        &self.object.symbol(symbol).name
    }

    /// Where symbol plus offset is, if that is code of this object.
    pub fn code_place(&self, symbol: SymbolId, addend: i64) -> Option<(CodeIdx, u64)> {
        let symbol = self.object.symbol(symbol);
        let Place::In(id) = symbol.place else {
            return None;
        };
        Some((
            self.code_section(id)?,
            symbol.value.wrapping_add_signed(addend),
        ))
    }

    /// A refusal at an instruction.
    pub fn refusal(&self, code: Code, i: InstIdx, reason: impl Into<String>) -> Refusal {
        let inst = self.inst(i);
        let mut refusal = Refusal::at(code, self.section_name(inst.section), inst.offset(), reason);
        // Where lifting failed, functions may not cover all code.
        let function = self.functions.get(self.function_of(i).0 as usize);
        if let Some(f) = function.filter(|f| f.insts.contains(&i.0)) {
            refusal.function.clone_from(&f.name);
            refusal.function_offset = inst.offset() - f.start;
        }
        refusal.instruction = text::original(self, i);
        refusal
    }
}

/// Lifts all code of `object`.
///
/// # Errors
/// Every place that is not understood.
pub fn lift<'a>(object: &'a Object<'a>) -> Result<Lifted<'a>, Vec<Refusal>> {
    lift_for(object, crate::Target::User)
}

/// Lifts all code of `object` for a target. A program's code may have relocations
/// of any type: its text says what they are, and is kept.
///
/// # Errors
/// Every place that is not understood.
pub fn lift_for<'a>(
    object: &'a Object<'a>,
    target: crate::Target,
) -> Result<Lifted<'a>, Vec<Refusal>> {
    if object.machine != Machine::X86_64 || object.word != Word::W64 {
        return Err(vec![Refusal::of_object(
            Code::Machine,
            "only x86-64 objects can be rewritten so far",
        )]);
    }
    if object.section_named(twin_abi::sections::NOTE).is_some() {
        return Err(vec![Refusal::of_object(
            Code::AlreadyRewritten,
            "the object has a .note.twin section: it was made by twin",
        )]);
    }
    let mut lifter = Lifter {
        lifted: Lifted {
            object,
            sections: Vec::new(),
            insts: Vec::new(),
            functions: Vec::new(),
        },
        refusals: Vec::new(),
        pending: Vec::new(),
        any_relocation: target == crate::Target::Process,
    };
    lifter.decode_all();
    let decoded = lifter.refusals.is_empty();
    lifter.resolve_branches();
    lifter.find_functions(decoded);
    if lifter.refusals.is_empty() {
        Ok(lifter.lifted)
    } else {
        Err(lifter.located())
    }
}

/// A direct branch whose destination is known but not yet an instruction.
struct PendingBranch {
    from: InstIdx,
    place: PendingPlace,
}

enum PendingPlace {
    Code(SectionId, u64),
    Symbol(SymbolId),
}

struct Lifter<'a> {
    lifted: Lifted<'a>,
    refusals: Vec<Refusal>,
    pending: Vec<PendingBranch>,
    any_relocation: bool,
}

impl<'a> Lifter<'a> {
    fn refuse(&mut self, code: Code, section: SectionId, offset: u64, reason: impl Into<String>) {
        let name = self.lifted.object.section(section).name.clone();
        self.refusals.push(Refusal::at(code, &name, offset, reason));
    }

    /// The refusals, with function and instruction where these are known.
    fn located(self) -> Vec<Refusal> {
        let lifted = &self.lifted;
        let locate = |refusal: Refusal| {
            let section = lifted
                .object
                .section_named(&refusal.section)
                .and_then(|id| lifted.code_section(id));
            let place = section.and_then(|s| {
                (0..16).find_map(|back| lifted.inst_at(s, refusal.offset.checked_sub(back)?))
            });
            match place {
                Some(i) if refusal.code != Code::Undecodable => Refusal {
                    offset: refusal.offset,
                    ..lifted.refusal(refusal.code, i, refusal.reason.clone())
                },
                _ => refusal,
            }
        };
        self.refusals.into_iter().map(locate).collect()
    }

    fn decode_all(&mut self) {
        let object = self.lifted.object;
        let mut names = HashSet::new();
        for (id, section) in object.sections().filter(|(_, s)| s.is_code()) {
            if section.flags & SHF_WRITE != 0 {
                self.refuse(
                    Code::CodeSection,
                    id,
                    0,
                    "the section is writable and executable",
                );
            } else if !names.insert(section.name.clone()) {
                self.refuse(
                    Code::CodeSection,
                    id,
                    0,
                    "another code section has the same name",
                );
            } else {
                self.decode_section(id);
            }
        }
    }

    fn decode_section(&mut self, id: SectionId) {
        let section = self.lifted.object.section(id);
        let index = CodeIdx(self.lifted.sections.len() as u16);
        let first = self.lifted.insts.len() as u32;
        let mut starts = vec![NONE; section.data.len()];
        let mut relocations = section
            .relocations
            .iter()
            .filter(|r| !matches!(r.kind, R_X86_64_NONE | R_X86_64_TLSDESC_CALL))
            .peekable();
        let mut decoder = Decoder::with_ip(64, &section.data, 0, DecoderOptions::NONE);
        self.lifted.insts.reserve(section.data.len() / 4);
        while decoder.can_decode() {
            let iced = decoder.decode();
            if iced.is_invalid() {
                self.refuse(
                    Code::Undecodable,
                    id,
                    iced.ip(),
                    "these bytes are not an instruction",
                );
                break;
            }
            let mut inst = Inst {
                iced,
                section: index,
                displacement: None,
                immediate: None,
                target: None,
            };
            let from = InstIdx(self.lifted.insts.len() as u32);
            let mut branch = None;
            while let Some(r) = relocations.next_if(|r| r.offset < iced.next_ip()) {
                match tie(&decoder, &mut inst, r, self.any_relocation) {
                    Ok(Tie::Operand) => {}
                    Ok(Tie::Branch) => branch = Some(*r),
                    Err(reason) => self.refuse(Code::Relocation, id, r.offset, reason),
                }
            }
            if is_direct_branch(&iced) {
                match self.place_of_branch(id, &iced, branch) {
                    Ok(place) => self.pending.push(PendingBranch { from, place }),
                    Err(reason) => self.refuse(Code::BranchTarget, id, iced.ip(), reason),
                }
            }
            starts[iced.ip() as usize] = from.0;
            self.lifted.insts.push(inst);
        }
        let insts = first..self.lifted.insts.len() as u32;
        self.lifted.sections.push(CodeSection { id, insts, starts });
    }

    /// Destination of a direct branch: by displacement inside the section, by
    /// relocation outside it.
    fn place_of_branch(
        &self,
        section: SectionId,
        iced: &Instruction,
        relocation: Option<Relocation>,
    ) -> Result<PendingPlace, String> {
        let Some(r) = relocation else {
            return Ok(PendingPlace::Code(section, iced.near_branch_target()));
        };
        // The field ends the instruction: S + A - P is relative to P, the
        // destination to P + 4 (psABI 4.4.1).
        let addend = r.addend.wrapping_add((iced.next_ip() - r.offset) as i64);
        let symbol = self.lifted.object.symbol(r.symbol);
        match symbol.place {
            Place::In(id) => Ok(PendingPlace::Code(
                id,
                symbol.value.wrapping_add_signed(addend),
            )),
            Place::Undefined if addend == 0 => Ok(PendingPlace::Symbol(r.symbol)),
            Place::Undefined => Err(format!(
                "branch to {}{addend:+#x}, not to its start",
                symbol.name
            )),
            Place::Absolute | Place::Common => {
                Err(format!("branch to {}, which is not code", symbol.name))
            }
        }
    }

    fn resolve_branches(&mut self) {
        for branch in std::mem::take(&mut self.pending) {
            let target = match branch.place {
                PendingPlace::Symbol(symbol) => Some(Target::Import(symbol)),
                PendingPlace::Code(id, offset) => self
                    .lifted
                    .code_section(id)
                    .and_then(|s| self.lifted.inst_at(s, offset))
                    .map(Target::Inst),
            };
            if target.is_none() {
                let inst = self.lifted.inst(branch.from);
                let (offset, id) = (
                    inst.offset(),
                    self.lifted.sections[inst.section.0 as usize].id,
                );
                self.refuse(
                    Code::BranchTarget,
                    id,
                    offset,
                    "the branch lands on no instruction of this object",
                );
            }
            self.lifted.insts[branch.from.0 as usize].target = target;
        }
    }

    /// Cuts each section at function symbols; what no symbol covers is padding
    /// or a function named after its place.
    ///
    /// Where bytes could not be decoded, functions lack their ends: not worth
    /// a refusal of its own.
    fn find_functions(&mut self, decoded: bool) {
        let before = self.refusals.len();
        let mut is_target = vec![false; self.lifted.insts.len()];
        for inst in &self.lifted.insts {
            if let Some(Target::Inst(t)) = inst.target {
                is_target[t.0 as usize] = true;
            }
        }
        for section in 0..self.lifted.sections.len() {
            let index = CodeIdx(section as u16);
            let spans = self.function_symbols(index);
            self.cut_section(index, &spans, &is_target);
        }
        if !decoded {
            self.refusals.truncate(before);
        }
    }

    /// `(start, end, name)` of the function symbols of a section, one for each
    /// start, in order.
    fn function_symbols(&mut self, section: CodeIdx) -> Vec<(u64, u64, String)> {
        let id = self.lifted.sections[section.0 as usize].id;
        let size = self.lifted.object.section(id).data.len() as u64;
        let mut found: Vec<_> = self
            .lifted
            .object
            .symbols
            .iter()
            .filter(|s| s.kind == STT_FUNC && s.place == Place::In(id) && s.value < size)
            // Of aliases the local name is the driver's own (`cleanup_module`
            // is everybody's).
            .map(|s| {
                (
                    s.value,
                    s.binding != STB_LOCAL,
                    s.value.saturating_add(s.size).min(size),
                    s.name.to_string(),
                )
            })
            .collect();
        found.sort();
        found.dedup_by_key(|f| f.0);
        let mut spans: Vec<(u64, u64, String)> = found
            .into_iter()
            .map(|(start, _, end, name)| (start, end, name))
            .collect();
        for i in 0..spans.len() {
            let next = spans.get(i + 1).map_or(size, |s| s.0);
            // A symbol without a size, as assembly files have, reaches to the next.
            if spans[i].1 == spans[i].0 || spans[i].1 > next {
                spans[i].1 = next;
            }
        }
        spans
    }

    fn cut_section(&mut self, section: CodeIdx, spans: &[(u64, u64, String)], is_target: &[bool]) {
        let id = self.lifted.sections[section.0 as usize].id;
        let size = self.lifted.object.section(id).data.len() as u64;
        let mut at = 0;
        for (start, end, name) in spans {
            self.push_function(section, at, *start, None, is_target);
            self.push_function(section, *start, *end, Some(name), is_target);
            at = *end;
        }
        self.push_function(section, at, size, None, is_target);
    }

    fn push_function(
        &mut self,
        section: CodeIdx,
        start: u64,
        end: u64,
        name: Option<&str>,
        is_target: &[bool],
    ) {
        if start >= end {
            return;
        }
        let code = &self.lifted.sections[section.0 as usize];
        let edge = |offset: u64| match code.starts.get(offset as usize) {
            None => Some(code.insts.end),
            Some(&NONE) => None,
            Some(&i) => Some(i),
        };
        let (Some(first), Some(last)) = (edge(start), edge(end)) else {
            let id = code.id;
            self.refuse(
                Code::Overlap,
                id,
                start,
                "a function begins or ends inside an instruction",
            );
            return;
        };
        // An alternative's replacement is never run in place; the hypervisor
        // instance keeps the instructions that the object came with.
        let replacement = self.lifted.section_name(section) == ".altinstr_replacement";
        let padding = replacement
            || name.is_none()
                && (first..last).all(|i| {
                    is_filler(&self.lifted.insts[i as usize].iced) && !is_target[i as usize]
                });
        let name = match name {
            Some(name) => name.to_owned(),
            None => format!("{}+{start:#x}", self.lifted.section_name(section)),
        };
        self.lifted.functions.push(Function {
            name,
            section,
            insts: first..last,
            start,
            end,
            padding,
        });
    }
}

/// What a relocation fills.
enum Tie {
    Operand,
    Branch,
}

/// Ties a relocation to the operand of `inst` whose field it fills.
fn tie(
    decoder: &Decoder<'_>,
    inst: &mut Inst,
    r: &Relocation,
    any_relocation: bool,
) -> Result<Tie, String> {
    let fields = decoder.get_constant_offsets(&inst.iced);
    let at = (r.offset - inst.iced.ip()) as usize;
    let width = match r.kind {
        R_X86_64_64 => 8,
        R_X86_64_PC32 | R_X86_64_PLT32 | R_X86_64_32 | R_X86_64_32S => 4,
        other if any_relocation => width_of(other)?,
        other => return Err(format!("relocation type {other} is not expected in code")),
    };
    let pc_relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
    let value = Value {
        symbol: r.symbol,
        addend: r.addend,
        kind: r.kind,
        at: at as u8,
    };
    if is_direct_branch(&inst.iced) {
        return if pc_relative && at + width == inst.iced.len() {
            Ok(Tie::Branch)
        } else {
            Err("a branch with a relocation that is not its displacement".into())
        };
    }
    if fields.has_displacement()
        && at == fields.displacement_offset()
        && width == fields.displacement_size()
    {
        if pc_relative != inst.iced.is_ip_rel_memory_operand() && !any_relocation {
            return Err(
                "relocation type and addressing mode disagree about the instruction pointer".into(),
            );
        }
        let correction = if pc_relative {
            (inst.iced.next_ip() - r.offset) as i64
        } else {
            0
        };
        inst.displacement = Some(Value {
            addend: r.addend + correction,
            ..value
        });
        return Ok(Tie::Operand);
    }
    if fields.has_immediate()
        && at == fields.immediate_offset()
        && width == fields.immediate_size()
        && !pc_relative
    {
        inst.immediate = Some(value);
        return Ok(Tie::Operand);
    }
    Err("the relocation fills no operand of the instruction there".into())
}

/// Bytes of the field of a relocation type (psABI, table 4.9).
fn width_of(kind: u32) -> Result<usize, String> {
    Ok(match kind {
        // 64, DTPMOD64, DTPOFF64, TPOFF64, PC64, GOTOFF64, GOT64 .. PLTOFF64, SIZE64
        1 | 16..=18 | 24 | 25 | 27..=31 | 33 => 8,
        // 16, PC16
        12 | 13 => 2,
        // 8, PC8
        14 | 15 => 1,
        // GOT32, GOTPCREL, TLSGD .. TPOFF32, GOTPC32, SIZE32, GOTPC32_TLSDESC,
        // GOTPCRELX, REX_GOTPCRELX
        3 | 9 | 19..=23 | 26 | 32 | 34 | 41 | 42 => 4,
        other => return Err(format!("relocation type {other} is not known")),
    })
}

/// Whether this is a branch or call with its destination in the instruction.
pub fn is_direct_branch(iced: &Instruction) -> bool {
    match iced.flow_control() {
        FlowControl::ConditionalBranch => true,
        FlowControl::UnconditionalBranch => iced.is_jmp_short_or_near(),
        FlowControl::Call => iced.is_call_near(),
        FlowControl::XbeginXabortXend => iced.mnemonic() == Mnemonic::Xbegin,
        FlowControl::Next
        | FlowControl::IndirectBranch
        | FlowControl::Return
        | FlowControl::IndirectCall
        | FlowControl::Interrupt
        | FlowControl::Exception => false,
    }
}

/// Whether this only fills space.
pub fn is_filler(iced: &Instruction) -> bool {
    matches!(iced.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}
