//! Machine code to instructions, functions and direct branch targets.
//!
//! Takes an object, gives [`Lifted`]: every byte of every code section is decoded
//! exactly once, every relocation is tied to the operand that it fills, every direct
//! branch is resolved to an instruction or an imported symbol. In an ET_REL object each
//! code reference is a relocation or a direct branch, so nothing is guessed. Anything
//! that does not fit is refused with its place.

mod decode;
mod functions;
pub mod got;
mod relocation;
pub mod starts;
pub mod syntax;

pub use decode::R_X86_64_TLSDESC_CALL;
pub use functions::{TYPE_HASH, names_function};

use std::num::NonZeroU32;

use elf_loader::{Object, Place, SectionId, SymbolId};
use foldhash::HashMap;
use iced_x86::{FlowControl, Instruction, Mnemonic};
use twin_abi::sections;

use crate::asm::Operand;
use crate::refusal::{self, Refusal, RefusalCode};

use decode::PendingBranch;
use starts::{Start, Starts};

/// Most instructions of an object, some 16 MiB of code. Each takes several hundred bytes
/// of memory until the object is rewritten.
pub const MOST_INSTRUCTIONS: usize = 1 << 22;

/// Most instructions of an object whose memory operands no field shows: string instructions
/// and `xlat`. Each takes up to 8 KiB, since a short one becomes some 50 instructions.
pub const MOST_STRINGS: usize = 1 << 16;

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
pub enum Destination {
    /// An instruction of this object.
    Inst(InstIdx),
    /// An imported routine.
    Import(SymbolId),
    /// A call of Xen: an entry of the imported page of these, so many bytes behind its start.
    Hypercall(SymbolId, u16),
    /// Behind the last instruction of a section, in a program: to what the linker puts there.
    /// gcc goes there where a `switch` has no such case (`__builtin_unreachable`).
    Behind(CodeIdx),
}

/// A value that a relocation puts into an operand: symbol plus addend, with the
/// instruction-relative correction of PC32 already taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocatedValue {
    /// The symbol.
    pub symbol: SymbolId,
    /// What is added to it.
    pub addend: i64,
    /// Relocation type in the original.
    pub kind: u32,
    /// Offset of the field in the original instruction, in bytes.
    pub at: u8,
}

/// Index of a value in [`Lifted::values`], from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueIdx(NonZeroU32);

impl ValueIdx {
    fn of(index: usize) -> ValueIdx {
        // There are fewer values than bytes of code.
        ValueIdx(NonZeroU32::MIN.saturating_add(index as u32))
    }

    /// The index, from 0.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// One instruction and the meaning of its relocations. Every phase goes over all
/// instructions, so this is as small as a cache line: the few values are stored
/// elsewhere.
#[derive(Clone, Debug)]
pub struct Inst {
    /// The decoded instruction; its `ip` is the offset in its section.
    pub iced: Instruction,
    /// Section.
    pub section: CodeIdx,
    /// The value in the displacement of the memory operand.
    pub displacement: Option<ValueIdx>,
    /// The value in the immediate.
    pub immediate: Option<ValueIdx>,
    /// Destination, if this is a direct branch or call.
    pub target: Option<Destination>,
}

const _: () = assert!(size_of::<Inst>() <= 64);

impl Inst {
    /// Offset in the section, in bytes.
    pub fn offset(&self) -> u64 {
        self.iced.ip()
    }

    /// The memory operand, of an instruction that has one.
    pub fn operand(&self) -> Operand {
        Operand {
            relocated: self.displacement.is_some(),
            ..Operand::of(&self.iced)
        }
    }

    /// The place in its own section that its memory operand names without a relocation.
    pub fn own_place(&self) -> Option<(CodeIdx, u64)> {
        let named = self.displacement.is_none() && self.iced.is_ip_rel_memory_operand();
        named.then(|| (self.section, self.iced.ip_rel_memory_address()))
    }

    /// The values in its operands.
    pub fn relocated_values(&self) -> impl Iterator<Item = ValueIdx> + use<> {
        [self.displacement, self.immediate].into_iter().flatten()
    }
}

/// A code section.
#[derive(Clone, Debug)]
pub struct CodeSection {
    /// The section in the object.
    pub id: SectionId,
    /// Its instructions.
    pub insts: std::ops::Range<u32>,
    starts: Starts,
}

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
    /// Whether control never comes here: padding that no branch reaches, or the
    /// replacements of alternatives, which the kernel copies elsewhere. It is not
    /// emitted, except where `--target linux` keeps the whole section.
    pub padding: bool,
    /// Whether a function symbol names it.
    pub has_symbol: bool,
    /// Whether it is entered with an empty frame. Otherwise it is a part of another function
    /// that the compiler moved elsewhere, or padding, which may stand before such a part.
    pub is_entered: bool,
    /// Whether it is the hash of the next function's type (kCFI), which callers read right before
    /// that. Control does not come there.
    pub is_type_hash: bool,
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
    /// Those of them that may lead elsewhere than to the next one, in the same order.
    pub transfers: Vec<InstIdx>,
    /// The values that relocations put into operands, each with its instruction, in
    /// the same order. The displacement of an instruction comes before its immediate.
    pub relocated_values: Vec<(InstIdx, RelocatedValue)>,
    /// All functions, in the same order; every instruction is in exactly one.
    pub functions: Vec<Function>,
    /// Where calls of the object lead, in order, but for beginnings of functions: subroutines of
    /// assembly, which are entered with an empty frame, too.
    pub subroutines: Vec<InstIdx>,
}

impl Lifted<'_> {
    /// The instruction.
    pub fn inst(&self, i: InstIdx) -> &Inst {
        &self.insts[i.0 as usize]
    }

    /// The values in the operands of an instruction.
    pub fn values_of(&self, inst: &Inst) -> impl Iterator<Item = RelocatedValue> {
        inst.relocated_values().map(|v| self.value(v))
    }

    /// The value in an operand.
    pub fn value(&self, v: ValueIdx) -> RelocatedValue {
        self.relocated_values[v.index()].1
    }

    /// The places in code that operands name, each with its instruction: by relocations, and by
    /// distances that the assembler knew (`lea f(%rip),%rax`, where `f` is local to the section).
    pub fn named_places(&self) -> impl Iterator<Item = (InstIdx, (CodeIdx, u64))> {
        let relocated = self.relocated_values.iter();
        let relocated = relocated
            .filter_map(|(i, value)| Some((*i, self.code_place(value.symbol, value.addend)?)));
        let insts = (0..).map(InstIdx).zip(&self.insts);
        relocated.chain(insts.filter_map(|(i, inst)| Some((i, inst.own_place()?))))
    }

    /// Where a direct branch goes.
    ///
    /// # Panics
    /// If the instruction is no direct branch. Lifting finds the destination of each.
    pub fn destination(&self, i: InstIdx) -> Destination {
        self.inst(i).target.expect("a direct branch")
    }

    /// The instruction that starts at that offset of that section.
    pub fn inst_at(&self, section: CodeIdx, offset: u64) -> Option<InstIdx> {
        match self.sections[section.0 as usize].starts.get(offset) {
            Start::Of(i) => Some(InstIdx(i)),
            Start::Middle | Start::End => None,
        }
    }

    /// The code section with this id, if it is one.
    pub fn code_section(&self, id: SectionId) -> Option<CodeIdx> {
        // In file order. This is called for every reference, and objects may have
        // thousands of sections.
        let found = self.sections.binary_search_by_key(&id, |s| s.id);
        found.ok().map(|i| CodeIdx(i as u16))
    }

    /// Whether an instruction is the first one of a section: the one before it is somewhere else
    /// in memory.
    pub fn begins_section(&self, i: u32) -> bool {
        let first = |section: &CodeSection| section.insts.start;
        self.sections.binary_search_by_key(&i, first).is_ok()
    }

    /// The functions of a code section.
    pub fn functions_of(&self, section: CodeIdx) -> impl Iterator<Item = FuncIdx> + use<> {
        let before = |s: u16| self.functions.partition_point(|f| f.section.0 < s) as u32;
        let end = match section.0.checked_add(1) {
            Some(next) => before(next),
            None => self.functions.len() as u32,
        };
        (before(section.0)..end).map(FuncIdx)
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

    /// The same for an instruction that is in `f` or in a function after it.
    pub fn function_from(&self, mut f: FuncIdx, i: InstIdx) -> FuncIdx {
        while self.function(f).insts.end <= i.0 {
            f.0 += 1;
        }
        f
    }

    /// The function with this index.
    pub fn function(&self, f: FuncIdx) -> &Function {
        &self.functions[f.0 as usize]
    }

    /// The original bytes of a code section.
    pub fn contents(&self, section: CodeIdx) -> &[u8] {
        let id = self.sections[usize::from(section.0)].id;
        &self.object.section(id).data
    }

    /// The original bytes of an instruction.
    pub fn bytes(&self, i: InstIdx) -> &[u8] {
        let inst = self.inst(i);
        let contents = self.contents(inst.section);
        &contents[inst.offset() as usize..inst.iced.next_ip() as usize]
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

    /// The code section of that name, if one alone has it.
    pub fn section_named(&self, name: &str) -> Option<CodeIdx> {
        let numbers = (0..self.sections.len() as u16).map(CodeIdx);
        let mut named = numbers.filter(|section| self.section_name(*section) == name);
        named.next().filter(|_| named.next().is_none())
    }

    /// A refusal at an instruction.
    pub fn refusal(&self, code: RefusalCode, i: InstIdx, reason: impl Into<String>) -> Refusal {
        let inst = self.inst(i);
        let mut refusal = Refusal::at(code, self.section_name(inst.section), inst.offset(), reason);
        // Where lifting failed, functions may not cover all code.
        let function = self.functions.get(self.function_of(i).0 as usize);
        if let Some(f) = function.filter(|f| f.insts.contains(&i.0)) {
            refusal.function.clone_from(&f.name);
            refusal.function_offset = inst.offset() - f.start;
        }
        refusal.instruction = syntax::original(self, i);
        refusal
    }

    /// [`Function::is_entered`].
    pub fn is_entered(&self, f: FuncIdx) -> bool {
        self.function(f).is_entered
    }

    /// Whether an instruction is the first of a function that is entered, or of a subroutine.
    pub fn is_entry(&self, i: InstIdx) -> bool {
        let f = self.function_of(i);
        self.function(f).insts.start == i.0 && self.is_entered(f) || self.is_subroutine(i)
    }

    /// Whether a subroutine begins there.
    pub fn is_subroutine(&self, i: InstIdx) -> bool {
        self.subroutines.binary_search(&i).is_ok()
    }

    /// Where the frame of an invocation may begin, in a function: at its first instruction, if
    /// it is entered, and at those of its subroutines.
    pub fn entries_of(&self, f: FuncIdx) -> impl Iterator<Item = InstIdx> {
        let function = self.function(f);
        let first = InstIdx(function.insts.start);
        let after = self.subroutines.partition_point(|i| *i < first);
        let inside = self.subroutines[after..].iter().copied();
        let inside = inside.take_while(|i| function.insts.contains(&i.0));
        function
            .is_entered
            .then_some(first)
            .into_iter()
            .chain(inside)
    }
}

/// Whether a section has a name that twin gives ([`twin_abi::sections`]).
pub fn is_twins(name: &str) -> bool {
    name == sections::NOTE || name.starts_with(sections::PREFIX)
}

/// Whether a section holds the compiler's own form of the code, for the linker: of gcc
/// (`LTO_SECTION_NAME_PREFIX`, lto-section-names.h) or of clang (`-ffat-lto-objects`).
fn is_for_linker(name: &str) -> bool {
    name.starts_with(".gnu.lto_") || name == ".llvm.lto"
}

/// Lifts all code of `object`.
///
/// # Errors
/// Every place that is not understood.
pub fn lift<'a>(object: &'a Object<'a>) -> Result<Lifted<'a>, Vec<Refusal>> {
    lift_for(object, false)
}

/// Lifts all code of `object`, which may have relocations of any type, and branches to the ends
/// of its sections, if `any_relocation` says so.
///
/// # Errors
/// Every place that is not understood.
pub fn lift_for<'a>(
    object: &'a Object<'a>,
    any_relocation: bool,
) -> Result<Lifted<'a>, Vec<Refusal>> {
    if let Some((_, section)) = object
        .sections()
        .find(|(_, section)| is_twins(&section.name))
    {
        let reason = format!(
            "the object has a {} section: it was made by twin",
            section.name
        );
        return Err(vec![Refusal::of_object(
            RefusalCode::AlreadyRewritten,
            reason,
        )]);
    }
    let sections = object.sections().map(|(_, section)| &*section.name);
    if let Some(name) = sections.into_iter().find(|name| is_for_linker(name)) {
        let reason = format!("it has {name}, from which the linker makes other code (-flto)");
        return Err(vec![Refusal::of_object(RefusalCode::LinkTime, reason)]);
    }
    let mut lifter = Lifter {
        lifted: Lifted {
            object,
            sections: Vec::new(),
            insts: Vec::new(),
            transfers: Vec::new(),
            relocated_values: Vec::new(),
            functions: Vec::new(),
            subroutines: Vec::new(),
        },
        refusals: Vec::new(),
        pending: Vec::new(),
        any_relocation,
        strings: 0,
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

/// The state of lifting: first [`decode`], then [`functions`].
struct Lifter<'a> {
    lifted: Lifted<'a>,
    refusals: Vec<Refusal>,
    pending: Vec<PendingBranch>,
    any_relocation: bool,
    /// How many string instructions and `xlat` there are so far.
    strings: usize,
}

impl Lifter<'_> {
    fn refuse(
        &mut self,
        code: RefusalCode,
        section: SectionId,
        offset: u64,
        reason: impl Into<String>,
    ) {
        let name = self.lifted.object.section(section).name.clone();
        let refusal = Refusal::at(code, &name, offset, reason);
        refusal::add(&mut self.refusals, refusal);
    }

    /// The refusals, with function and instruction where these are known.
    fn located(self) -> Vec<Refusal> {
        let lifted = &self.lifted;
        let ids = lifted.sections.iter().map(|s| s.id);
        let named = ids.map(|id| &*lifted.object.section(id).name);
        let by_name: HashMap<&str, CodeIdx> = named.zip((0..).map(CodeIdx)).collect();
        let locate = |refusal: Refusal| {
            let section = by_name.get(&*refusal.section).copied();
            let place = section.and_then(|s| {
                (0..16).find_map(|back| lifted.inst_at(s, refusal.offset.checked_sub(back)?))
            });
            match place {
                Some(i) if refusal.code != RefusalCode::Undecodable => Refusal {
                    offset: refusal.offset,
                    ..lifted.refusal(refusal.code, i, refusal.reason.clone())
                },
                _ => refusal,
            }
        };
        self.refusals.into_iter().map(locate).collect()
    }
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
