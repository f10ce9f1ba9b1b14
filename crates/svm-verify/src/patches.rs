//! What the kernel may write over, and the ways that open then.
//!
//! A stock kernel changes the code of a module while it loads it and later:
//! alternatives, static branches and calls, thunks, trace entries, locks. It
//! goes by tables in the module. Each row here is one of them: which instruction
//! has to stand there, so that the kernel writes over that instruction and
//! nothing else, and where control may go besides.
//!
//! No instruction of a check is of a kind that the kernel writes over; where it
//! replaces ranges (alternatives, paravirt), no table read and no branch target
//! may be inside the range, and the replacement is interpreted with the facts
//! before the range and joined with those behind it.

use std::collections::{HashMap, HashSet};

use elf_loader::SectionId;
use elf_loader::special::{self, Entry, SpecialKind};
use twin_abi::sections;

use crate::insn::{Insn, Op, Target};
use crate::object::{CodeAt, Image};
use crate::program::Program;
use crate::report::Report;
use crate::violation::Code;

/// Ways that no branch shows, by instruction number.
#[derive(Default)]
pub struct Patches {
    /// With the facts before the instruction, also there.
    pub before: HashMap<u32, Vec<u32>>,
    /// If its memory operand faults, there.
    pub fixups: HashMap<u32, u32>,
    /// From a replacement's last instruction back behind the site.
    pub ends: HashMap<u32, u32>,
    /// `ud2` of a WARN: goes on.
    pub warns: HashSet<u32>,
    /// Instructions that give the address of code that is no function's start
    /// ([`crate::references`]).
    pub labels: HashSet<u32>,
    /// Ranges that are replaced as a whole: no branch leads inside.
    pub whole: Vec<std::ops::Range<u32>>,
}

impl Patches {
    /// Reads the tables of a module for a stock kernel.
    pub fn new<'o>(image: &Image<'o>, program: &Program, report: &mut Report<'o>) -> Patches {
        let mut patches = Patches::default();
        let reader = Reader { image, program };
        let mut unwinding = Vec::new();
        for (id, section) in image.object.sections() {
            let Some(kind) = special::kind_of(&section.name) else {
                continue;
            };
            if kind == SpecialKind::AltInstrReplacement {
                continue;
            }
            let entries = match special::entries(image.object, id) {
                Ok(entries) => entries,
                Err(error) => {
                    report.at(id, 0, Code::Metadata, error.to_string());
                    continue;
                }
            };
            for entry in entries {
                if kind == SpecialKind::OrcUnwindIp {
                    unwinding.push((id, entry));
                } else if let Err(reason) = patches.entry(&reader, kind, &entry) {
                    report.at(id, entry.offset, Code::Metadata, reason);
                }
            }
        }
        // What the kernel may replace is known beyond this point.
        for (id, entry) in unwinding {
            if let Err(reason) = patches.unwinding(&reader, &entry) {
                report.at(id, entry.offset, Code::Metadata, reason);
            }
        }
        patches
    }

    /// An unwind entry begins with an instruction, or inside one that the kernel
    /// may replace by shorter ones (`pushf; pop %rax` for a paravirtual call).
    fn unwinding(&self, reader: &Reader<'_, '_>, entry: &Entry) -> Result<(), &'static str> {
        let site = entry.site().ok_or("it refers to no code")?;
        let end = reader.image.object.section(site.0).size;
        if reader.is_runtime(site.0) || site.1 == end || reader.insn(site).is_some() {
            return Ok(());
        }
        let around = reader.place(site).and_then(|at| reader.program.around(at));
        let replaced = |n: &u32| self.whole.iter().any(|range| range.contains(n));
        around
            .filter(replaced)
            .map(|_| ())
            .ok_or("an entry that begins inside an instruction")
    }

    /// Instructions at which blocks begin.
    pub fn leaders(&self) -> impl Iterator<Item = u32> {
        let before = self.before.values().flatten().copied();
        before
            .chain(self.fixups.values().copied())
            .chain(self.ends.values().copied())
    }

    /// Instructions that something is said about.
    pub fn sites(&self) -> impl Iterator<Item = u32> {
        let before = self.before.keys().copied();
        let others = self
            .fixups
            .keys()
            .chain(self.ends.keys())
            .chain(&self.warns)
            .chain(&self.labels);
        before.chain(others.copied())
    }

    /// Judges an entry of any table but `.orc_unwind_ip` by what the kernel does
    /// with it, and notes the ways that it opens.
    fn entry(
        &mut self,
        reader: &Reader<'_, '_>,
        kind: SpecialKind,
        entry: &Entry,
    ) -> Result<(), &'static str> {
        use SpecialKind as K;
        if kind == K::OrcUnwind {
            return Ok(());
        }
        let site = entry.site().ok_or("it refers to no code")?;
        if reader.is_runtime(site.0) {
            // What the runtime brings along for its own code.
            return match kind {
                K::ReturnSites => Ok(()),
                _ => Err("it refers to the runtime"),
            };
        }
        if kind == K::SmpLocks {
            return reader.lock(site).ok_or("no lock prefix is there");
        }
        let (n, insn) = reader.insn(site).ok_or("no instruction starts there")?;
        let is = |good: bool, reason| good.then_some(()).ok_or(reason);
        match kind {
            K::McountLoc => is(
                matches!(insn.op, Op::Call(Target::Routine(_))) && reader.names(insn, "__fentry__"),
                "not a call of the trace entry",
            ),
            K::RetpolineSites => is(
                reader.leaves(insn) && reader.names(insn, "__x86_indirect_thunk_"),
                "not a branch to an indirect thunk",
            ),
            K::ReturnSites => is(
                matches!(insn.op, Op::Jump(_))
                    && insn.len == 5
                    && reader.names(insn, "__x86_return_thunk"),
                "not a jump to the return thunk",
            ),
            K::StaticCallSites => is(
                matches!(insn.op, Op::Call(_) | Op::Jump(_)) && insn.len == 5 && insn.relocated,
                "not a call of a static call's trampoline",
            ),
            K::BugTable => {
                is(reader.image.bytes(insn) == Some(&[0x0f, 0x0b]), "not ud2")?;
                if entry.is_warning() {
                    self.warns.insert(n);
                }
                Ok(())
            }
            K::JumpTable => self.static_branch(reader, entry, n, insn),
            K::ExTable => {
                let (fixup, _) = entry
                    .target()
                    .and_then(|to| reader.insn(to))
                    .ok_or("its fixup is no instruction")?;
                is(
                    self.fixups.insert(n, fixup).is_none_or(|old| old == fixup),
                    "two fixups for one instruction",
                )
            }
            K::AltInstructions => self.alternative(reader, entry, site, n),
            K::ParaInstructions => {
                let range = reader.range(site, entry.site_len().into())?;
                self.whole.push(range);
                Ok(())
            }
            K::CallSites | K::IbtEndbrSeal | K::CfiSites => {
                Err("kernels that have this table are not known")
            }
            K::OrcUnwind | K::OrcUnwindIp | K::SmpLocks | K::AltInstrReplacement => Ok(()),
        }
    }

    //      nopl 0(%rax,%rax)       or      jmp target      # both of 5 bytes,
    //      xchg %ax, %ax           or      jmp target      # or both of 2
    //
    // The kernel writes as many bytes as it finds (arch_jump_entry_size), so the
    // short form must reach.
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
        let ways = self.before.entry(n).or_default();
        ways.push(target);
        match insn.op {
            Op::Jump(Target::Inside(to)) if matches!(insn.len, 2 | 5) && to == target => {
                ways.push(reader.program.next(n).ok_or("nothing follows it")?);
                Ok(())
            }
            _ if reader.image.bytes(insn) == Some(NOP5) => Ok(()),
            _ if reader.image.bytes(insn) == Some(NOP2) && near => Ok(()),
            _ => Err("neither a nop nor a jump to its target, of 5 bytes or of 2 that reach"),
        }
    }

    /// `.altinstructions`: the replacement, padded with nops, is written over the
    /// site, or it is not; both go on behind the site.
    fn alternative(
        &mut self,
        reader: &Reader<'_, '_>,
        entry: &Entry,
        site: Site,
        n: u32,
    ) -> Result<(), &'static str> {
        let length = u64::from(entry.site_len());
        let range = reader.range(site, length)?;
        let (back, _) = reader
            .insn((site.0, site.1 + length))
            .ok_or("nothing follows the replaced range")?;
        self.whole.push(range);
        let new = u64::from(entry.replacement_len());
        if new > length {
            return Err("the replacement is longer than what it replaces");
        }
        if new == 0 {
            self.before.entry(n).or_default().push(back);
            return Ok(());
        }
        let place = entry.target().ok_or("it has no replacement")?;
        let replacement = reader.range(place, new)?;
        self.before.entry(n).or_default().push(replacement.start);
        match self.ends.insert(replacement.end - 1, back) {
            Some(old) if old != back => Err("two sites share a replacement"),
            _ => Ok(()),
        }
    }
}

/// A section and an offset in it.
type Site = (SectionId, u64);

/// Finds what the entries of the tables refer to.
struct Reader<'a, 'o> {
    image: &'a Image<'o>,
    program: &'a Program,
}

impl<'a, 'o> Reader<'a, 'o> {
    /// Whether a section is the runtime's code, which is compared, not decoded.
    fn is_runtime(&self, id: SectionId) -> bool {
        self.image.object.section(id).name == sections::LINUX_TEXT
    }

    fn place(&self, (id, offset): Site) -> Option<CodeAt> {
        Some(CodeAt {
            section: self.image.number(id)?,
            offset: i64::try_from(offset).ok()?,
        })
    }

    fn number(&self, site: Site) -> Option<u32> {
        self.program.at(self.place(site)?)
    }

    /// The instruction that starts there, and its number.
    fn insn(&self, site: Site) -> Option<(u32, &'a Insn)> {
        let n = self.number(site)?;
        Some((n, self.program.get(n)?))
    }

    /// Whether the instruction's relocation names a routine that begins so.
    fn names(&self, insn: &Insn, prefix: &str) -> bool {
        let relocation = self.image.relocations(insn).next();
        relocation.is_some_and(|r| self.image.object.symbol(r.symbol).name.starts_with(prefix))
    }

    /// Whether it is a direct branch out of the object's code.
    fn leaves(&self, insn: &Insn) -> bool {
        matches!(
            insn.op,
            Op::Call(Target::Routine(_))
                | Op::Jump(Target::Routine(_))
                | Op::Branch(_, Target::Routine(_))
        )
    }

    /// A `lock` prefix is there, with nothing but prefixes before it.
    fn lock(&self, (id, offset): Site) -> Option<()> {
        let data = &self.image.object.section(id).data;
        let at = usize::try_from(offset).ok()?;
        let starts = (0..4).filter_map(|back| at.checked_sub(back));
        let start = starts
            .into_iter()
            .find(|&s| self.number((id, s as u64)).is_some())?;
        let prefix = |b: &u8| matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf2 | 0xf3);
        (data.get(at) == Some(&0xf0) && data.get(start..at)?.iter().all(prefix)).then_some(())
    }

    /// The instructions of a range of bytes: whole ones, none of a check.
    fn range(&self, (id, start): Site, length: u64) -> Result<std::ops::Range<u32>, &'static str> {
        let (first, _) = self
            .insn((id, start))
            .ok_or("the range does not begin with an instruction")?;
        let mut n = first;
        let mut at = start;
        while at < start + length {
            let insn = self.program.get(n).ok_or("the range leaves its section")?;
            if u64::from(insn.at) != at {
                return Err("the range leaves its section");
            }
            if matches!(insn.op, Op::Table { .. }) {
                return Err("a part of a check may be replaced");
            }
            at += u64::from(insn.len);
            n += 1;
        }
        match at == start + length {
            true => Ok(first..n),
            false => Err("the range ends inside an instruction"),
        }
    }
}
