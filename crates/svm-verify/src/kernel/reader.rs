//! From an entry of a table to the instruction that it means.

use elf_loader::consts::{R_X86_64_32S, R_X86_64_PC32, R_X86_64_PLT32};
use elf_loader::reloc::relocation_type;
use elf_loader::special::{Entry, EntryData};
use elf_loader::{Place, Relocation, SectionId, Symbol};
use twin_abi::sections;

use super::tables::{self, Series};
use crate::insn::{CodeAt, Disassembly, Insn, Op, Origin};
use crate::object::{Image, Meaning};

/// A section and an offset in it.
pub(super) type SectionPlace = (SectionId, u64);

/// `ud1 %esp, %ecx`: follows the jump of a static call's trampoline and occurs nowhere
/// else (`tramp_ud`, arch/x86/kernel/static_call.c). In Linux 5.17 and before nothing follows it.
const TRAMPOLINE: [u8; 3] = [0x0f, 0xb9, 0xcc];
/// The first kernel that looks for it.
const FIRST_WITH_MARK: Series = (5, 18);
/// What the kernel writes over a trampoline: `jmp rel32`, or a return filled up.
const WRITTEN: u64 = 5;

/// Finds what the entries of the tables refer to.
pub(super) struct Reader<'a, 'o> {
    pub(super) image: &'a Image<'o>,
    pub(super) disassembly: &'a Disassembly,
    /// The kernel that the module is for, if it says which.
    pub(super) series: Option<Series>,
    /// Whether it may take what an entry of `__ex_table` has besides places for a routine, where that
    /// shows a type.
    pub(super) is_routine: bool,
    /// Whether it takes no `endbr64` for one ([`tables::lacks_ibt`]).
    pub(super) lacks_ibt: bool,
    /// First instructions of functions, in order.
    functions: &'a [u32],
    /// Those whose name is a trampoline's.
    named: Vec<u32>,
    /// Whether the kernel asks of a trampoline how it begins, and nothing else.
    unmarked: bool,
}

impl<'a, 'o> Reader<'a, 'o> {
    pub(super) fn new(
        image: &'a Image<'o>,
        disassembly: &'a Disassembly,
        functions: &'a [u32],
        series: Option<Series>,
    ) -> Reader<'a, 'o> {
        Reader {
            image,
            disassembly,
            series,
            is_routine: series == Some((5, 15)) && tables::may_name_routines(image),
            lacks_ibt: tables::lacks_ibt(image),
            functions,
            named: trampolines_by_name(image, disassembly),
            unmarked: are_unmarked(image, series),
        }
    }

    /// The relocation that writes the byte at a place, if one does.
    pub(super) fn relocation(&self, place: CodeAt) -> Option<&'o Relocation> {
        let all = &self.image.section(place.section).relocations;
        let at = u64::try_from(place.offset).ok()?;
        let last = all.partition_point(|r| r.offset <= at).checked_sub(1)?;
        let width = relocation_type(all[last].kind).map_or(8, |t| t.width);
        (at - all[last].offset < width).then_some(&all[last])
    }

    /// Whether the byte at a place may be this one when the module runs. What a relocation
    /// writes is not in the file, and its symbol and addend may make it anything.
    pub(super) fn may_be(&self, place: CodeAt, byte: u8) -> bool {
        let data = &self.image.section(place.section).data;
        let at = usize::try_from(place.offset).ok();
        at.and_then(|at| data.get(at)) == Some(&byte) || self.relocation(place).is_some()
    }

    /// Whether a section is the runtime's code, which is compared, not decoded.
    pub(super) fn is_runtime(&self, id: SectionId) -> bool {
        self.image.object.section(id).name == sections::LINUX_TEXT
    }

    /// Whether the runtime jumps to the return thunk there.
    pub(super) fn returns(&self, (id, offset): SectionPlace) -> bool {
        let (object, field) = (self.image.object, offset.saturating_add(1));
        let all = &object.section(id).relocations;
        let first = all.partition_point(|r| r.offset < field);
        let found = all.get(first).filter(|r| r.offset == field);
        found.is_some_and(|r| object.symbol(r.symbol).name == "__x86_return_thunk")
    }

    pub(super) fn place(&self, (id, offset): SectionPlace) -> Option<CodeAt> {
        Some(CodeAt {
            section: self.image.number(id)?,
            offset: i64::try_from(offset).ok()?,
        })
    }

    fn number(&self, site: SectionPlace) -> Option<u32> {
        self.disassembly.at(self.place(site)?)
    }

    /// The instruction that starts there, and its number.
    pub(super) fn insn(&self, site: SectionPlace) -> Option<(u32, &'a Insn)> {
        let n = self.number(site)?;
        Some((n, self.disassembly.get(n)?))
    }

    /// Whether a function begins with instruction `n`, by its name.
    pub(super) fn is_function(&self, n: u32) -> bool {
        self.functions.binary_search(&n).is_ok()
    }

    /// The name in the instruction's relocation; none if it has none.
    pub(super) fn names(&self, insn: &Insn) -> &'o str {
        let relocation = self.image.relocations(insn).next();
        relocation.map_or("", |r| &self.image.object.symbol(r.symbol).name)
    }

    /// The instruction whose `lock` prefix is there. It must not have another segment
    /// prefix: the kernel puts `ds` in the place of `lock`.
    pub(super) fn lock(&self, (id, offset): SectionPlace) -> Option<u32> {
        let data = &self.image.object.section(id).data;
        let at = usize::try_from(offset).ok()?;
        let starts = (0..4).filter_map(|back| at.checked_sub(back));
        let start = starts
            .into_iter()
            .find(|&s| self.number((id, s as u64)).is_some())?;
        let prefix = |b: &u8| matches!(b, 0x66 | 0x67 | 0xf2 | 0xf3);
        let (n, insn) = self.insn((id, start as u64))?;
        let good = data.get(at) == Some(&0xf0)
            && data.get(start..at)?.iter().all(prefix)
            && insn.memory.origin != Origin::PerCpu;
        good.then_some(n)
    }

    /// Jumps and returns of static calls' trampolines: a call of the kernel may write there.
    pub(super) fn trampolines(&self) -> impl Iterator<Item = u32> {
        let all = (0..).zip(&self.disassembly.insns);
        let found = all.filter(|&(n, insn)| may_be_trampoline(insn) && self.is_trampoline(n));
        found.map(|(n, _)| n)
    }

    //      ret; int3; nop; nop; nop        # ARCH_DEFINE_STATIC_CALL_NULL_TRAMP
    //
    // The kernel asks for the first byte alone (__static_call_validate,
    // arch/x86/kernel/static_call.c).
    /// The instructions that the kernel writes over where trampoline `n` is a return: it, and
    /// padding that is nothing else. `None` where it is a jump, which is all that is written over.
    pub(super) fn returning_trampoline(
        &self,
        n: u32,
    ) -> Option<Result<std::ops::Range<u32>, &'static str>> {
        const MORE: &str = "it returns at once and no padding follows up to five bytes, so a kernel \
             may take it for a static call's trampoline and write over what follows: align functions \
             (-falign-functions=16, which -Os leaves out)";
        let insn = self.disassembly.get(n)?;
        let is_padding = |n: u32| {
            let insn = self.disassembly.get(n);
            insn.is_some_and(|insn| matches!(insn.op, Op::Nop | Op::Breakpoint))
        };
        let site = (self.image.code[usize::from(insn.section)], insn.at.into());
        let whole = || {
            let range = self.range(site, WRITTEN).map_err(|_| MORE)?;
            let mut rest = range.start + 1..range.end;
            rest.all(is_padding).then_some(range).ok_or(MORE)
        };
        matches!(insn.op, Op::Ret).then(whole)
    }

    /// Whether instruction `n` is the jump or return of a trampoline. Where the kernel looks for
    /// no mark, each function that begins so may be one.
    pub(super) fn is_trampoline(&self, n: u32) -> bool {
        let insn = self.disassembly.get(n);
        let Some(insn) = insn.filter(|insn| may_be_trampoline(insn)) else {
            return false;
        };
        let here = CodeAt {
            section: insn.section,
            offset: insn.at.into(),
        };
        let behind = self
            .image
            .section(insn.section)
            .data
            .get(insn.at as usize + 5..);
        behind.is_some_and(|behind| behind.starts_with(&TRAMPOLINE))
            || self.named.binary_search(&n).is_ok()
            || self.functions.binary_search(&n).is_ok()
                && (self.unmarked || self.seeks_mark() && self.may_be_marked(here))
    }

    /// Whether the kernel looks for a trampoline's mark, if it is known which one it is.
    fn seeks_mark(&self) -> bool {
        self.series.is_none_or(|series| series >= FIRST_WITH_MARK)
    }

    /// Whether a trampoline's mark may be behind a jump or return of five bytes.
    fn may_be_marked(&self, here: CodeAt) -> bool {
        let place = |by| CodeAt {
            offset: here.offset + by,
            ..here
        };
        let mut mark = TRAMPOLINE.iter().zip(WRITTEN as i64..);
        mark.all(|(byte, by)| self.may_be(place(by), *byte))
    }

    //      call *pv_ops+8*OPERATION(%rip)
    //
    // The kernel writes a call of what is in that slot, of 5 bytes, or nops
    // (paravirt_patch, arch/x86/kernel/paravirt.c).
    pub(super) fn is_paravirtual_call(&self, insn: &Insn, entry: &Entry) -> bool {
        let EntryData::Paravirt {
            operation,
            site_len,
        } = entry.data
        else {
            return false;
        };
        let Some(r) = self.image.relocations(insn).next() else {
            return false;
        };
        let symbol = self.image.object.symbol(r.symbol);
        let relative = matches!(r.kind, R_X86_64_PC32 | R_X86_64_PLT32);
        let slot = 8 * i64::from(operation) - if relative { 4 } else { 0 };
        matches!(insn.op, Op::CallIndirect(None))
            && insn.memory.origin == Origin::Symbol
            && symbol.place == Place::Undefined
            && symbol.name == "pv_ops"
            && (relative || r.kind == R_X86_64_32S)
            && r.addend == slot
            && site_len == insn.len
    }

    /// The instructions of a range of bytes: whole ones, none of a check.
    pub(super) fn range(
        &self,
        (id, start): SectionPlace,
        length: u64,
    ) -> Result<std::ops::Range<u32>, &'static str> {
        const LEAVES: &str = "the range leaves its section";
        let (first, _) = self
            .insn((id, start))
            .ok_or("the range does not begin with an instruction")?;
        let end = start.checked_add(length).ok_or(LEAVES)?;
        let (mut n, mut at) = (first, start);
        while at < end {
            let insn = self.disassembly.get(n).ok_or(LEAVES)?;
            if u64::from(insn.at) != at {
                return Err(LEAVES);
            }
            if matches!(insn.op, Op::Table { .. }) {
                return Err("a part of a check may be replaced");
            }
            at += u64::from(insn.len);
            n += 1;
        }
        match at == end {
            true => Ok(first..n),
            false => Err("the range ends inside an instruction"),
        }
    }
}

/// Whether an instruction is of the kind that a trampoline begins with. With a condition and a
/// distance of 32 bits it is one of a tail call to Linux 6.2 and later, and to releases of older ones
/// (`__is_Jcc`, arch/x86/kernel/static_call.c).
fn may_be_trampoline(insn: &Insn) -> bool {
    const LONG: u8 = 6;
    matches!(insn.op, Op::Jump(_) | Op::Ret)
        || matches!(insn.op, Op::Branch(..)) && insn.len == LONG
}

/// First instructions of functions whose name is that of a trampoline, in order.
fn trampolines_by_name(image: &Image<'_>, disassembly: &Disassembly) -> Vec<u32> {
    let symbols = image.object.symbols();
    let named = symbols.filter_map(|(id, symbol)| match image.meaning(id) {
        Meaning::Code(at) if symbol.name.starts_with("__SCT__") => disassembly.at(at),
        _ => None,
    });
    let mut named: Vec<u32> = named.collect();
    named.sort_unstable();
    named
}

/// Sections by which the kernel finds tracepoints, which name their trampolines
/// (`static_call_tramp`, include/linux/tracepoint-defs.h), or events that have one.
const TRACEPOINTS: [&str; 3] = ["__tracepoints_ptrs", "_ftrace_events", "__bpf_raw_tp_map"];
/// How the names of routines begin that write over the trampolines that they are given.
const UPDATES: [&str; 4] = [
    "__static_call_update",
    "arch_static_call_transform",
    "tracepoint_probe_",
    "trace_event_reg",
];

/// Whether the kernel may take any jump or return of the module for a trampoline's: it looks for no
/// mark, and the module brings keys that name trampolines, or hands them over. An object that is to
/// be linked does not say for which kernel it is.
fn are_unmarked(image: &Image<'_>, series: Option<Series>) -> bool {
    let object = image.object;
    let updates = |s: &Symbol<'_>| {
        s.place == Place::Undefined && UPDATES.iter().any(|name| s.name.starts_with(name))
    };
    let has = |name: &&str| object.section_named(name).is_some();
    series.is_none_or(|series| series < FIRST_WITH_MARK)
        && (TRACEPOINTS.iter().any(has) || object.symbols().any(|(_, s)| updates(s)))
}
