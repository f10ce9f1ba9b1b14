//! Groups instructions into functions.

use elf_loader::consts::{STB_LOCAL, STT_FUNC};
use elf_loader::{Place, Symbol};
use foldhash::HashSet;
use iced_x86::{Code, FlowControl};

use super::starts::Start;
use super::{CodeIdx, Destination, Function, Inst, InstIdx, Lifter, is_filler};
use crate::refusal::RefusalCode;

/// A function symbol: where it begins, whether it is exported, where it ends, its name.
type Named = (u64, bool, u64, String);

/// The section of code that the kernel may copy over other code
/// (arch/x86/include/asm/alternative.h).
const REPLACEMENTS: &str = ".altinstr_replacement";

/// How names begin of the hash of a function's type (clang's `-fsanitize=kcfi`; `SYM_TYPED_START`,
/// include/linux/cfi_types.h).
pub const TYPE_HASH: &str = "__cfi_";

/// What direct branches and symbols say of instructions.
struct Reached {
    /// Whether a branch leads there, by index.
    by_branch: Vec<bool>,
    /// Those that a call leads to.
    by_call: HashSet<u32>,
    /// Places that other objects see: they are entered, whatever their names.
    by_others: HashSet<(CodeIdx, u64)>,
}

/// Whether a symbol in code is a function's: it says so, or other objects see it and may call
/// it. Assembly leaves the type out, and names are resolved without it (gABI chapter 4).
pub fn names_function(symbol: &Symbol<'_>) -> bool {
    symbol.kind == STT_FUNC || symbol.binding != STB_LOCAL
}

impl Lifter<'_> {
    /// Cuts each section at function symbols. Code that no symbol covers is padding
    /// or a function named after its place.
    ///
    /// If not all bytes were `decoded`, functions may lack their ends. Those bytes were
    /// refused already, so this is not refused again.
    pub fn find_functions(&mut self, decoded: bool) {
        let before = self.refusals.len();
        let symbols = self.function_symbols();
        let reached = self.reached(&symbols);
        for (index, found) in (0..).map(CodeIdx).zip(symbols) {
            let spans = self.spans(index, found);
            self.cut_section(index, &spans, &reached);
        }
        if !decoded {
            self.refusals.truncate(before);
        }
        self.find_subroutines(reached.by_call);
    }

    fn reached(&self, symbols: &[Vec<Named>]) -> Reached {
        let mut by_branch = vec![false; self.lifted.insts.len()];
        let mut by_call = HashSet::default();
        for inst in self.lifted.transfers.iter().map(|&i| self.lifted.inst(i)) {
            let Some(Destination::Inst(to)) = inst.target else {
                continue;
            };
            by_branch[to.0 as usize] = true;
            if inst.iced.flow_control() == FlowControl::Call {
                by_call.insert(to.0);
            }
        }
        let by_section = (0..).map(CodeIdx).zip(symbols);
        let visible = by_section.flat_map(|(section, found)| {
            let exported = found.iter().filter(|(_, exported, ..)| *exported);
            exported.map(move |(start, ..)| (section, *start))
        });
        Reached {
            by_branch,
            by_call,
            by_others: visible.collect(),
        }
    }

    fn find_subroutines(&mut self, mut called: HashSet<u32>) {
        for function in &self.lifted.functions {
            called.remove(&function.insts.start);
        }
        let mut inside: Vec<InstIdx> = called.into_iter().map(InstIdx).collect();
        inside.sort_unstable();
        self.lifted.subroutines = inside;
    }

    /// The function symbols of each code section, in one pass over all symbols.
    fn function_symbols(&self) -> Vec<Vec<Named>> {
        let mut found = vec![Vec::new(); self.lifted.sections.len()];
        let functions = self.lifted.object.symbols.iter();
        for s in functions.filter(|s| names_function(s)) {
            let Place::In(id) = s.place else { continue };
            let Some(section) = self.lifted.code_section(id) else {
                continue;
            };
            let size = self.lifted.object.section(id).data.len() as u64;
            if s.value < size {
                let end = s.value.saturating_add(s.size).min(size);
                // Of aliases, the local name is the driver's own (every module has
                // `cleanup_module`).
                let exported = s.binding != STB_LOCAL;
                found[section.0 as usize].push((s.value, exported, end, s.name.to_string()));
            }
        }
        found
    }

    /// `(start, end, name)` of the function symbols of a section, one for each
    /// start, in order.
    fn spans(&self, section: CodeIdx, mut found: Vec<Named>) -> Vec<(u64, u64, String)> {
        let id = self.lifted.sections[section.0 as usize].id;
        let size = self.lifted.object.section(id).data.len() as u64;
        found.sort();
        found.dedup_by_key(|f| f.0);
        let mut spans: Vec<(u64, u64, String)> = found
            .into_iter()
            .map(|(start, _, end, name)| (start, end, name))
            .collect();
        for i in 0..spans.len() {
            let next = spans.get(i + 1).map_or(size, |s| s.0);
            // What clang leaves behind a hash for the kernel to write to belongs to it.
            let is_type_hash =
                spans[i].2.starts_with(TYPE_HASH) && self.is_type_hash(section, spans[i].0, next);
            // A symbol without a size, as assembly files have, reaches to the next.
            if is_type_hash || spans[i].1 == spans[i].0 || spans[i].1 > next {
                spans[i].1 = next;
            }
        }
        spans
    }

    /// Whether the bytes from `start` to `end` are the hash of a type.
    fn is_type_hash(&self, section: CodeIdx, start: u64, end: u64) -> bool {
        let code = &self.lifted.sections[section.0 as usize];
        let number = |offset: u64| match code.starts.get(offset) {
            Start::Of(i) => Some(i as usize),
            Start::Middle | Start::End => None,
        };
        let range = number(start).zip(number(end));
        range.is_some_and(|(first, end)| is_type_hash(&self.lifted.insts[first..end]))
    }

    fn cut_section(&mut self, section: CodeIdx, spans: &[(u64, u64, String)], reached: &Reached) {
        let id = self.lifted.sections[section.0 as usize].id;
        let size = self.lifted.object.section(id).data.len() as u64;
        let mut at = 0;
        for (start, end, name) in spans {
            self.push_function(section, at, *start, None, reached);
            self.push_function(section, *start, *end, Some(name), reached);
            at = *end;
        }
        self.push_function(section, at, size, None, reached);
    }

    fn push_function(
        &mut self,
        section: CodeIdx,
        start: u64,
        end: u64,
        name: Option<&str>,
        reached: &Reached,
    ) {
        if start >= end {
            return;
        }
        let code = &self.lifted.sections[section.0 as usize];
        let edge = |offset: u64| match code.starts.get(offset) {
            Start::End => Some(code.insts.end),
            Start::Middle => None,
            Start::Of(i) => Some(i),
        };
        let (Some(first), Some(last)) = (edge(start), edge(end)) else {
            let id = code.id;
            self.refuse(
                RefusalCode::Overlap,
                id,
                start,
                "a function begins or ends inside an instruction",
            );
            return;
        };
        // An alternative's replacement is never run in place; the hypervisor
        // instance keeps the instructions that the object came with.
        let replacement = self.lifted.section_name(section) == REPLACEMENTS;
        let padding = replacement
            || name.is_none()
                && (first..last).all(|i| {
                    is_filler(&self.lifted.insts[i as usize].iced) && !reached.by_branch[i as usize]
                });
        // gcc jumps to what it splits off a function, with the function's frame. LLVM calls it
        // (HotColdSplitting), by a name of the same form.
        // The kernel's `static_cpu_has` is jumped to, too (arch/x86/include/asm/cpufeature.h).
        let is_part = match name {
            Some(name) => name.contains(".cold"),
            None => self.lifted.section_name(section) == ".altinstr_aux",
        };
        let entered =
            reached.by_call.contains(&first) || reached.by_others.contains(&(section, start));
        let is_type_hash = name.is_some_and(|name| name.starts_with(TYPE_HASH))
            && is_type_hash(&self.lifted.insts[first as usize..last as usize]);
        let is_entered = first < last && !padding && !is_type_hash && (!is_part || entered);
        let has_symbol = name.is_some();
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
            has_symbol,
            is_entered,
            is_type_hash,
        });
    }
}

//      nop ...
//      mov   $hash, %eax       # 5 bytes; callers read the last four
//      nop ...
//
/// Whether code is a hash of a type, with the `nop`s that clang aligns it by.
fn is_type_hash(insts: &[Inst]) -> bool {
    let is_nop = |inst: &Inst| inst.iced.code() == Code::Nopd && inst.iced.len() == 1;
    let mut hashes = insts.iter().filter(|inst| !is_nop(inst));
    let hash = hashes.next();
    let is_hash = |inst: &Inst| inst.iced.code() == Code::Mov_r32_imm32 && inst.iced.len() == 5;
    hash.is_some_and(is_hash) && hashes.next().is_none()
}
