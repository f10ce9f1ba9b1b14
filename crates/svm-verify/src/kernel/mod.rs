//! The code that the kernel may write over, and the paths that this opens.
//!
//! A stock kernel changes the code of a module while it loads it and later:
//! alternatives, static branches and calls, thunks, trace entries, locks. Tables in the
//! module say where. For each table there is a rule here: which instruction has to be at
//! the place, so that the kernel writes over that instruction and nothing else, and
//! where control may go besides.
//!
//! * [`tables`]: which sections the kernel takes for these tables;
//! * [`alternatives`]: ranges that are replaced as a whole;
//! * [`prefixes`]: what the kernel writes before a function that is called;
//! * [`exceptions`]: what a handler does before it continues at a fixup;
//! * [`exports`]: the names by which other modules find what this one has;
//! * [`freed`]: what is gone when the module has begun;
//! * [`paravirt`]: calls that the kernel makes jumps of;
//! * [`this_module`]: the kernel's own record of the module;
//! * [`traced`]: which function a trace entry is of;
//! * [`types`]: checks of the types of functions, and what they read;
//! * [`fineibt`]: what kernels make of these checks;
//! * [`reader`]: from an entry to the instruction that it means;
//! * [`sites`]: whether that is one that the kernel may write over.
//!
//! No instruction of a check is of a kind that the kernel writes over. If the kernel
//! replaces a range, no table read and no branch target may be inside the range; the
//! replacement is interpreted with the facts before the range, and its result is joined
//! with the facts after the range. The kernels are Linux 5.10 to 7.3 ([`tables`] looks
//! which one); each rule names its source, and holds for all of them if it says nothing else.

mod alternatives;
mod exceptions;
mod exports;
mod fineibt;
pub mod freed;
mod paravirt;
mod prefixes;
mod reader;
pub mod references;
mod sites;
mod tables;
mod this_module;
mod traced;
mod types;

use std::collections::{HashMap, HashSet};

use elf_loader::special::{self, Entry, EntryData, SpecialKind};

use crate::findings::{Findings, ViolationCode};
use crate::insn::{BranchTarget, Disassembly, Insn, Op, Routine};
use crate::object::Image;
use alternatives::Ranges;
use reader::{Reader, SectionPlace};
use sites::{is_call, is_thunked, is_trace_call};
use types::Checks;

pub use exceptions::Fixup;
pub use fineibt::judge_taken;

/// The first kernel with static branches of 2 bytes (arch/x86/kernel/jump_label.c).
const FIRST_WITH_SHORT: tables::Series = (5, 14);

/// Paths that no branch shows, and other facts about single instructions, by instruction
/// number.
#[derive(Default)]
pub struct Patches {
    /// Control may also go to these, with the facts before the instruction.
    pub before: HashMap<u32, Vec<u32>>,
    /// One of these replacements may run instead of the range that begins here.
    pub instead: HashMap<u32, Vec<u32>>,
    /// Where control goes if the instruction faults.
    pub fixups: HashMap<u32, Fixup>,
    /// From a replacement's last instruction back to the instruction after the site.
    pub ends: HashMap<u32, u32>,
    /// First instructions of replacements: executed where they are copied to, not in
    /// place.
    pub copies: HashSet<u32>,
    /// `ud2` of a WARN, or what a kernel may take for one: control continues.
    pub warns: HashSet<u32>,
    /// Jumps that the kernel may turn into a return, or into one elsewhere, and calls of the
    /// trace entry, or nops that become such, which may write or use the return address.
    pub leaves: HashSet<u32>,
    /// Instructions that yield the address of code that is not the start of a function
    /// ([`crate::kernel::references`]).
    pub labels: HashSet<u32>,
    /// Those that yield the address of a symbol, and nothing more.
    pub names: HashSet<u32>,
    /// Ranges that are replaced as a whole, sorted: no branch leads inside.
    pub whole: Vec<std::ops::Range<u32>>,
    /// Reads of the hash of a type, each before the place that is then called ([`types`]).
    pub hashes: HashSet<u32>,
    /// Calls whose check the kernel writes over ([`fineibt`]).
    checked: HashSet<u32>,
    /// Calls that the kernel makes calls of the padding before what they call.
    counted: HashSet<u32>,
}

/// In which parts of [`Patches`] an instruction occurs. Nearly all occur in none: this saves
/// looking for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u16);

impl Marks {
    /// In none.
    pub const NONE: Marks = Marks(0);
    /// [`Patches::before`].
    pub const BEFORE: Marks = Marks(1);
    /// [`Patches::instead`].
    pub const INSTEAD: Marks = Marks(1 << 1);
    /// [`Patches::fixups`].
    pub const FIXUP: Marks = Marks(1 << 2);
    /// [`Patches::ends`].
    pub const END: Marks = Marks(1 << 3);
    /// [`Patches::copies`].
    pub const COPY: Marks = Marks(1 << 4);
    /// [`Patches::warns`].
    pub const WARN: Marks = Marks(1 << 5);
    /// [`Patches::leaves`].
    pub const LEAVES: Marks = Marks(1 << 6);
    /// [`Patches::labels`].
    pub const LABEL: Marks = Marks(1 << 7);
    /// [`Patches::names`].
    pub const NAME: Marks = Marks(1 << 8);
    /// [`Patches::hashes`].
    pub const HASH: Marks = Marks(1 << 9);

    /// Those that make control go another way than the operation of the instruction says.
    pub const DIVERTS: Marks = Marks::BEFORE
        .with(Marks::INSTEAD)
        .with(Marks::FIXUP)
        .with(Marks::END)
        .with(Marks::WARN)
        .with(Marks::LEAVES);

    /// In those of both.
    const fn with(self, other: Marks) -> Marks {
        Marks(self.0 | other.0)
    }

    /// Whether it occurs in one of `parts`.
    pub const fn has(self, parts: Marks) -> bool {
        self.0 & parts.0 != 0
    }
}

impl Patches {
    /// Reads the tables of a module for a stock kernel. `functions`: its entries, in order.
    pub fn new<'o>(
        image: &Image<'o>,
        disassembly: &Disassembly,
        functions: &[u32],
        findings: &mut Findings<'o>,
    ) -> Patches {
        let series = tables::judge(image, findings);
        this_module::judge(image.object, findings);
        let reader = Reader::new(image, disassembly, functions, series);
        let mut patches = Patches::default();
        patches.trampolines(&reader, findings);
        patches.traces(&reader);
        paravirt::judge(&reader, findings);
        let (mut ranges, mut others, mut unwinding) = (Ranges::default(), Vec::new(), Vec::new());
        let checks = Checks::find(&reader);
        patches.hashes = checks.loads();
        ranges.checks(&checks);
        // Nothing else is in it by now.
        ranges.trampolines(&patches.whole);
        for (id, section) in image.object.sections() {
            let Some(kind) = special::kind_of(&section.name) else {
                continue;
            };
            let entries = match special::entries(image.object, id) {
                Ok(entries) => entries,
                Err(error) => {
                    findings.at(id, 0, ViolationCode::Metadata, error.to_string());
                    continue;
                }
            };
            for entry in entries {
                let judged = match kind {
                    SpecialKind::OrcUnwindIp => {
                        unwinding.push((id, entry.offset, entry.site()));
                        continue;
                    }
                    SpecialKind::AltInstructions => ranges.alternative(&reader, id, &entry),
                    SpecialKind::KcfiTraps => patches.trap(&reader, &checks, &entry),
                    _ => patches.entry(&reader, kind, &entry).map(|site| {
                        others.extend(site.map(|n| (id, entry.offset, kind, n)));
                        if kind == SpecialKind::CfiSites {
                            let function = fineibt::function(&reader, &entry);
                            others.extend(function.map(|n| (id, entry.offset, kind, n)));
                        }
                    }),
                };
                if let Err(reason) = judged {
                    findings.at(id, entry.offset, ViolationCode::Metadata, reason);
                }
            }
        }
        ranges.prefixes(&reader, findings);
        if fineibt::is_there(image) {
            patches.fineibt(&reader, &checks, findings);
        }
        let traced = others
            .iter()
            .filter(|(_, _, kind, _)| *kind == SpecialKind::McountLoc);
        traced::judge(
            &reader,
            traced.map(|&(id, offset, _, n)| (id, offset, n)),
            findings,
        );
        // --- all ranges that the kernel may replace are known ---
        ranges.finish(&reader, findings);
        for &(id, offset, kind, n) in &others {
            if let Err(reason) = ranges.permits(kind, n) {
                findings.at(id, offset, ViolationCode::Metadata, reason);
            }
        }
        ranges.open(&reader, &mut patches);
        if fineibt::is_there(image) {
            let mut written: HashSet<u32> = patches.whole.iter().cloned().flatten().collect();
            written.extend(&patches.leaves);
            let reads = |kind| matches!(kind, SpecialKind::BugTable | SpecialKind::ExTable);
            let writes = others.iter().filter(|&&(_, _, kind, _)| !reads(kind));
            written.extend(writes.map(|&(.., n)| n));
            let warnings = warnings(&reader);
            for n in fineibt::misplaced(&reader, &checks, &patches, &written, &warnings) {
                let (section, offset) = image.place(&disassembly.insns[n as usize]);
                let reason = "a ud2 that kernels with FineIBT may take for the trap before a function, \
                              by an endbr64 6 or 19 bytes before it, and go on elsewhere";
                findings.at(section, offset, ViolationCode::Metadata, reason);
            }
            patches.warns.extend(fineibt::traps(&reader, &written));
        }
        for n in fineibt::entered(&reader, &patches, functions) {
            let (section, offset) = image.place(&disassembly.insns[n as usize]);
            let reason = "something leads to a call whose check the kernel writes over";
            findings.at(section, offset, ViolationCode::Metadata, reason);
        }
        patches.whole.sort_unstable_by_key(|r| (r.start, r.end));
        patches.whole.dedup();
        for (id, offset, site) in unwinding {
            if let Err(reason) = patches.unwinding(&reader, site) {
                findings.at(id, offset, ViolationCode::Metadata, reason);
            }
        }
        patches
    }

    /// Takes what a kernel with FineIBT writes over.
    fn fineibt<'o>(
        &mut self,
        reader: &Reader<'_, 'o>,
        checks: &Checks,
        findings: &mut Findings<'o>,
    ) {
        let entries = |kind: SpecialKind| {
            let table = reader.image.object.section_named(kind.name());
            let entries =
                table.and_then(|id| Some((id, special::entries(reader.image.object, id).ok()?)));
            entries
                .into_iter()
                .flat_map(|(id, list)| list.into_iter().map(move |e| (id, e)))
        };
        let sites: HashSet<SectionPlace> = entries(SpecialKind::CfiSites)
            .filter_map(|(_, entry)| entry.site())
            .collect();
        let calls: Vec<_> = entries(SpecialKind::RetpolineSites).collect();
        for (id, entry) in calls {
            let site = entry.site().and_then(|site| reader.insn(site));
            if let Some((n, _)) = site
                && let Err(reason) = fineibt::caller(reader, checks, n, self)
            {
                findings.at(id, entry.offset, ViolationCode::Metadata, reason);
            }
        }
        for (id, entry) in entries(SpecialKind::IbtEndbrSeal) {
            if let Err(reason) = fineibt::is_sealed(&sites, &entry) {
                findings.at(id, entry.offset, ViolationCode::Metadata, reason);
            }
        }
    }

    /// Takes the trampolines of static calls, which the kernel writes over when a call changes
    /// (`arch_static_call_transform`, arch/x86/kernel/static_call.c).
    fn trampolines<'o>(&mut self, reader: &Reader<'_, 'o>, findings: &mut Findings<'o>) {
        for n in reader.trampolines() {
            self.leaves.insert(n);
            match reader.returning_trampoline(n) {
                Some(Ok(range)) => self.whole.push(range),
                Some(Err(reason)) => {
                    let (section, offset) =
                        reader.image.place(&reader.disassembly.insns[n as usize]);
                    findings.at(section, offset, ViolationCode::Metadata, reason);
                }
                None => {}
            }
        }
    }

    //      call __fentry__
    //
    /// Takes the calls of the trace entry, whether a table names them or not: kernels without
    /// `CONFIG_DYNAMIC_FTRACE` read no table, and write over the word at `rsp`
    /// (`ftrace_graph_caller`, arch/x86/kernel/ftrace_64.S).
    fn traces(&mut self, reader: &Reader<'_, '_>) {
        let calls = reader.disassembly.branches.iter().copied();
        let is_trace = |n: &u32| is_trace_call(&reader.disassembly.insns[*n as usize]);
        self.leaves.extend(calls.filter(is_trace));
    }

    /// An unwind entry begins with an instruction, or inside one that the kernel
    /// may replace by shorter ones (`pushf; pop %rax` for a paravirtual call).
    fn unwinding(
        &self,
        reader: &Reader<'_, '_>,
        site: Option<SectionPlace>,
    ) -> Result<(), &'static str> {
        let site = site.ok_or("it refers to no code")?;
        let end = reader.image.object.section(site.0).size;
        if reader.is_runtime(site.0) || site.1 == end || reader.insn(site).is_some() {
            return Ok(());
        }
        let around = reader
            .place(site)
            .and_then(|at| reader.disassembly.around(at));
        let replaced = |n: &u32| {
            let after = self.whole.partition_point(|range| range.start <= *n);
            after > 0 && self.whole[after - 1].contains(n)
        };
        around
            .filter(replaced)
            .map(|_| ())
            .ok_or("an entry that begins inside an instruction")
    }

    /// Instructions at which blocks begin.
    pub fn leaders(&self) -> impl Iterator<Item = u32> {
        let ways = self.before.values().chain(self.instead.values()).flatten();
        let fixups = self.fixups.values().map(|fixup| fixup.to);
        ways.copied()
            .chain(fixups)
            .chain(self.ends.values().copied())
    }

    /// For each of `count` instructions, in which of these it occurs; empty if none occurs.
    pub fn marks(&self, count: usize) -> Vec<Marks> {
        let mut marks = Vec::new();
        let mut mark = |n: &u32, mark: Marks| {
            marks.resize(count, Marks::NONE);
            let own = &mut marks[*n as usize];
            *own = own.with(mark);
        };
        self.before.keys().for_each(|n| mark(n, Marks::BEFORE));
        self.instead.keys().for_each(|n| mark(n, Marks::INSTEAD));
        self.fixups.keys().for_each(|n| mark(n, Marks::FIXUP));
        self.ends.keys().for_each(|n| mark(n, Marks::END));
        self.copies.iter().for_each(|n| mark(n, Marks::COPY));
        self.warns.iter().for_each(|n| mark(n, Marks::WARN));
        self.leaves.iter().for_each(|n| mark(n, Marks::LEAVES));
        self.labels.iter().for_each(|n| mark(n, Marks::LABEL));
        self.names.iter().for_each(|n| mark(n, Marks::NAME));
        self.hashes.iter().for_each(|n| mark(n, Marks::HASH));
        marks
    }

    /// Judges an entry of any table but `.orc_unwind_ip` and `.altinstructions` by what
    /// the kernel does with it, and records the paths that it opens. Returns the
    /// instruction that it names.
    fn entry(
        &mut self,
        reader: &Reader<'_, '_>,
        kind: SpecialKind,
        entry: &Entry,
    ) -> Result<Option<u32>, &'static str> {
        use SpecialKind as K;
        if matches!(kind, K::OrcUnwind | K::AltInstrReplacement) {
            return Ok(None);
        }
        tables::keys(reader.image, entry)?;
        let site = entry.site().ok_or("it refers to no code")?;
        if reader.is_runtime(site.0) {
            let own = reader.is_runtimes_own(kind, entry, site);
            return own.then_some(None).ok_or("it refers to the runtime");
        }
        if kind == K::SmpLocks {
            return reader.lock(site).map(Some).ok_or("no lock prefix is there");
        }
        let (n, insn) = reader.insn(site).ok_or("no instruction starts there")?;
        let is = |good: bool, reason| good.then_some(()).ok_or(reason);
        match kind {
            K::McountLoc => {
                is(reader.is_traced(insn), "not a call of the trace entry")?;
                self.leaves.insert(n);
            }
            K::RetpolineSites => {
                is(is_thunked(insn), "not a branch to an indirect thunk")?;
            }
            K::ReturnSites => {
                is(reader.is_return(insn), "not a jump to the return thunk")?;
            }
            K::StaticCallSites => self.static_call(reader, entry, n, insn)?,
            // report_bug, lib/bug.c; an entry with arguments is not looked for by its
            // address, because the code passes its own (__WARN_trap,
            // arch/x86/kernel/traps.c of Linux 7.x)
            K::BugTable => {
                let stops = reader.is_ud2(insn);
                is(stops || entry.has_arguments(), "not ud2")?;
                if stops && entry.is_warning() {
                    self.warns.insert(n);
                }
            }
            K::JumpTable => self.static_branch(reader, entry, n, insn)?,
            K::ExTable => {
                let fixup = Fixup::new(reader, entry)?;
                is(
                    self.fixups.insert(n, fixup).is_none_or(|old| old == fixup),
                    "two fixups for one instruction",
                )?;
            }
            // apply_paravirt, arch/x86/kernel/alternative.c
            K::ParaInstructions => {
                is(
                    reader.is_paravirtual_call(insn, entry),
                    "not a call through the slot of pv_ops that the entry names",
                )?;
                self.whole.push(n..n + 1);
            }
            // patch_call, arch/x86/kernel/callthunks.c: each time one padding further before the callee
            K::CallSites => {
                is(is_call(insn), "not a call of a function")?;
                is(self.counted.insert(n), "a second entry for this call")?;
            }
            K::IbtEndbrSeal => is(reader.is_endbr64(insn), "not endbr64")?,
            // ftrace of x86 goes by __mcount_loc (FTRACE_CALLSITE_SECTION,
            // include/asm-generic/vmlinux.lds.h), so nothing is written here
            K::PatchableFunctionEntries => return Ok(None),
            K::CfiSites => fineibt::preamble(reader, site, self)?,
            K::OrcUnwind
            | K::KcfiTraps
            | K::OrcUnwindIp
            | K::SmpLocks
            | K::AltInstructions
            | K::AltInstrReplacement => {}
        }
        Ok(Some(n))
    }

    //      ud2
    //
    // handle_cfi_failure, arch/x86/kernel/cfi.c: it goes on, if the kernel only reports
    fn trap(
        &mut self,
        reader: &Reader<'_, '_>,
        checks: &Checks,
        entry: &Entry,
    ) -> Result<(), &'static str> {
        let site = entry.site().ok_or("it refers to no code")?;
        let trap = reader.insn(site).filter(|&(n, _)| checks.has_trap(n));
        let (n, _) = trap.ok_or("not the trap of a check of a type")?;
        self.warns.insert(n);
        Ok(())
    }

    //      nopl 0(%rax,%rax)       or      jmp target      # both of 5 bytes,
    //      xchg %ax, %ax           or      jmp target      # or both of 2
    //
    // The kernel writes as many bytes as it finds (arch_jump_entry_size), so the
    // short form must reach. Linux 5.13 and before know the long form alone, and stop at another.
    fn static_branch(
        &mut self,
        reader: &Reader<'_, '_>,
        entry: &Entry,
        n: u32,
        insn: &Insn,
    ) -> Result<(), &'static str> {
        const NOP5: &[u8] = &[0x0f, 0x1f, 0x44, 0x00, 0x00];
        const NOP2: &[u8] = &[0x66, 0x90];
        let (target, there) = entry
            .target()
            .and_then(|to| reader.insn(to))
            .ok_or("its target is no instruction")?;
        let distance = i64::from(there.at) - i64::from(insn.at) - 2;
        let near = there.section == insn.section && i8::try_from(distance).is_ok();
        if self.before.contains_key(&n) {
            return Err("a second entry for this place");
        }
        let mut ways = vec![target];
        let fits = match insn.op {
            Op::Jump(BranchTarget::Insn(to)) if matches!(insn.len, 2 | 5) && to == target => {
                ways.push(reader.disassembly.next(n).ok_or("nothing follows it")?);
                true
            }
            _ if reader.image.bytes(insn) == Some(NOP5) => true,
            _ => reader.image.bytes(insn) == Some(NOP2) && near,
        };
        let known = insn.len == 5
            || reader
                .series
                .is_none_or(|series| series >= FIRST_WITH_SHORT);
        self.before.insert(n, ways);
        if !known {
            return Err("a short one, which the module's kernel does not have");
        }
        fits.then_some(())
            .ok_or("neither a nop nor a jump to its target, of 5 bytes or of 2 that reach")
    }

    //      call __SCT__name        or      jmp __SCT__name
    //
    // The call may become a nop, the jump a return (__static_call_transform,
    // arch/x86/kernel/static_call.c), so that a jump is one out of an empty frame,
    // wherever the trampoline is. `tail` decides which the kernel expects; on
    // anything else it stops, and up to Linux 5.15 only warns (__static_call_validate).
    fn static_call(
        &mut self,
        reader: &Reader<'_, '_>,
        entry: &Entry,
        n: u32,
        insn: &Insn,
    ) -> Result<(), &'static str> {
        let tail = matches!(entry.data, EntryData::StaticCall { tail: true });
        let target = match (insn.op, tail) {
            (Op::Call(target), false) | (Op::Jump(target), true) => target,
            _ => return Err("not a call, or for a tail call not a jump"),
        };
        let own = matches!(target, BranchTarget::Insn(to) if reader.is_trampoline(to));
        let imported = target == BranchTarget::Routine(Routine::Imported)
            && reader.names(insn).starts_with("__SCT__");
        if tail {
            self.leaves.insert(n);
        }
        (insn.len == 5 && (own || imported))
            .then_some(())
            .ok_or("not a call of a static call's trampoline")
    }
}

/// The `ud2`s that the kernel's table of bugs calls warnings, and nothing else.
fn warnings(reader: &Reader<'_, '_>) -> HashSet<u32> {
    let object = reader.image.object;
    let table = object.section_named(SpecialKind::BugTable.name());
    let entries = table.and_then(|id| special::entries(object, id).ok());
    let entries = entries.unwrap_or_default();
    let of = |warning: bool| {
        let entries = entries.iter().filter(move |e| e.is_warning() == warning);
        let sites = entries.filter_map(|entry| reader.insn(entry.site()?));
        sites.map(|(n, _)| n)
    };
    let bugs: HashSet<u32> = of(false).collect();
    of(true).filter(|n| !bugs.contains(n)).collect()
}
