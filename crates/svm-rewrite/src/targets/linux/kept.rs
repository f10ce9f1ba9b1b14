//! Finds the instructions that have to stay because of the kernel's metadata: the kernel
//! patches them or handles their faults, and looks at their bytes when it does.

use elf_loader::SectionId;
use elf_loader::special::{self, Entry, FieldRole, SpecialKind};
use foldhash::HashMap;
use iced_x86::{Code, Mnemonic, Register};

use super::series;
use super::unused::Unused;
use crate::analyse::class::Class;
use crate::analyse::classify::Kept;
use crate::analyse::type_checks;
use crate::frame::facts::FactsBefore;
use crate::frame::variants::Variant;
use crate::lift::{CodeIdx, FuncIdx, InstIdx, Lifted, TYPE_HASH};
use crate::refusal::{Refusal, RefusalCode};

/// Sections whose instructions all stay as they are: replacements of alternatives, which
/// never run in place, and trampolines of static calls, whose bytes the kernel checks.
pub fn is_verbatim(section: &str) -> bool {
    matches!(section, ".altinstr_replacement" | ".static_call.text")
}

/// Finds the instructions that stay, by index, and why.
///
/// # Errors
/// Metadata that cannot be read, or that names no whole instruction.
pub fn kept(lifted: &Lifted<'_>) -> Result<HashMap<u32, Kept>, Refusal> {
    let mut finder = Finder {
        lifted,
        found: HashMap::default(),
    };
    for (n, section) in lifted.sections.iter().enumerate() {
        if is_verbatim(lifted.section_name(CodeIdx(n as u16))) {
            let all = section.insts.clone();
            finder.found.extend(all.map(|i| (i, Kept::Section)));
        }
    }
    finder.type_hashes()?;
    let writes_calls = series::writes_calls(lifted.object);
    for check in type_checks::find(lifted)? {
        let call = InstIdx(check.insts().end - 1);
        if writes_calls && !has_room(lifted, call) {
            let reason = "the kernel (FineIBT) writes over six bytes there, and the call has others: \
                          compile with -mindirect-branch-cs-prefix, as the kernel does";
            return Err(lifted.refusal(RefusalCode::Metadata, call, reason));
        }
        // The call is classified as any other one, and stays.
        let own = check.insts().take(4);
        finder.found.extend(own.map(|i| (i, Kept::TypeCheck)));
    }
    let unused = Unused::find(lifted);
    let rest = unused.insts.iter().map(|i| (*i, Kept::Unused));
    finder.found.extend(rest);
    for (id, section) in lifted.object.sections() {
        let Some(kind) = special::kind_of(&section.name) else {
            continue;
        };
        let why = match kind {
            SpecialKind::JumpTable => Kept::StaticBranch,
            SpecialKind::AltInstructions => Kept::Alternative,
            SpecialKind::ParaInstructions => Kept::Paravirt,
            SpecialKind::ExTable => Kept::Fixup,
            SpecialKind::PatchableFunctionEntries => Kept::Prefix,
            SpecialKind::McountLoc => Kept::Trace,
            SpecialKind::SmpLocks
            | SpecialKind::RetpolineSites
            | SpecialKind::ReturnSites
            | SpecialKind::OrcUnwind
            | SpecialKind::OrcUnwindIp
            | SpecialKind::BugTable
            | SpecialKind::StaticCallSites
            | SpecialKind::AltInstrReplacement
            | SpecialKind::CallSites
            | SpecialKind::IbtEndbrSeal
            | SpecialKind::CfiSites
            | SpecialKind::KcfiTraps => continue,
        };
        let entries = special::entries(lifted.object, id)
            .map_err(|e| Refusal::at(RefusalCode::Metadata, &section.name, 0, e.to_string()))?;
        let used =
            |entry: &&Entry| !(why == Kept::Alternative && unused.entries.contains(&entry.offset));
        for entry in entries.iter().filter(used) {
            finder.entry(&section.name, entry, why)?;
        }
    }
    Ok(finder.found)
}

/// Whether it is a hash in another register than `%eax`.
fn counts_arguments(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let iced = &lifted.inst(i).iced;
    iced.code() == Code::Mov_r32_imm32 && iced.op0_register() != Register::EAX
}

/// Whether a call behind a check is one that the kernel does not write over, or has the bytes that it
/// writes.
fn has_room(lifted: &Lifted<'_>, call: InstIdx) -> bool {
    const PREFIX_CS: u8 = 0x2e;
    let bytes = lifted.bytes(call);
    lifted.inst(call).target.is_none() || bytes.len() == 6 && bytes[0] == PREFIX_CS
}

/// Keeps moves of `rsp` from a register that cannot become moves by a constant: if the
/// function aligns `rsp`, the distance back depends on `rsp` at entry; or the distance
/// is unknown for another reason. The verifier decides whether a kept move is sound.
pub fn keep_realigned(lifted: &Lifted<'_>, facts: &FactsBefore, classes: &mut [Class]) {
    let aligns = |i: u32| {
        let iced = &lifted.insts[i as usize].iced;
        iced.mnemonic() == Mnemonic::And && iced.op0_register() == Register::RSP
    };
    // Computed once for each function: many of its instructions may be moves.
    let mut aligning: HashMap<u32, bool> = HashMap::default();
    for (i, class) in classes.iter_mut().enumerate() {
        if *class == Class::FramePointerToStack {
            let i = InstIdx(i as u32);
            let function = lifted.function(lifted.function_of(i));
            let realigned = aligning
                .entry(function.insts.start)
                .or_insert_with(|| function.insts.clone().any(aligns));
            let from = lifted.inst(i).iced.op1_register();
            let before = facts.get(i, Variant::FIRST);
            let known = before.is_some_and(|facts| facts.distance_to(from).is_some());
            if !known || *realigned {
                *class = Class::Keep(None);
            }
        }
    }
}

struct Finder<'l, 'a> {
    lifted: &'l Lifted<'a>,
    found: HashMap<u32, Kept>,
}

impl Finder<'_, '_> {
    /// The hashes of types before functions.
    ///
    /// # Errors
    /// One that is none, or that is before no function: callers would find another number.
    fn type_hashes(&mut self) -> Result<(), Refusal> {
        let functions = (0..).map(FuncIdx).zip(&self.lifted.functions);
        for (f, function) in functions.filter(|(_, f)| f.name.starts_with(TYPE_HASH)) {
            let next = self.lifted.functions.get(f.0 as usize + 1);
            let is_before = next.is_some_and(|next| {
                (next.section, next.start) == (function.section, function.end) && next.has_symbol
            });
            if !function.is_type_hash || !is_before {
                let section = self.lifted.section_name(function.section);
                let reason = format!(
                    "`{}` is not the hash of a type as clang puts it before a function \
                     (-fsanitize=kcfi): mov $hash, %eax and nops",
                    function.name
                );
                let code = RefusalCode::Metadata;
                return Err(Refusal::at(code, section, function.start, reason));
            }
            let insts = function.insts.clone();
            let counting = insts
                .clone()
                .map(InstIdx)
                .find(|&i| counts_arguments(self.lifted, i));
            if let (Some(i), true) = (counting, series::has_fineibt(self.lifted.object)) {
                let behind = InstIdx(insts.end);
                self.may_count(behind)
                    .map_err(|reason| self.lifted.refusal(RefusalCode::Metadata, i, reason))?;
            }
            self.found.extend(insts.map(|i| (i, Kept::TypeCheck)));
        }
        Ok(())
    }

    /// Whether the kernel knows a hash in another register than `%eax`, before the function that begins
    /// there.
    ///
    /// # Errors
    /// Why it would be called as it is, and write an argument.
    fn may_count(&self, function: InstIdx) -> Result<(), &'static str> {
        if !series::knows_counting(self.lifted.object) {
            return Err(
                "the hash of a type in a register that says how many arguments the function has, which \
                 kernels (FineIBT) know from Linux 6.15 on: compile without -fsanitize-kcfi-arity",
            );
        }
        match self.lifted.inst(function).iced.code() == Code::Endbr64 {
            true => Ok(()),
            false => Err(
                "the hash of a type in a register that says how many arguments the function has: the \
                 kernel (FineIBT) calls it as it is, because the function does not begin with endbr64 \
                 (-fcf-protection=branch)",
            ),
        }
    }

    fn entry(&mut self, section: &str, entry: &Entry, why: Kept) -> Result<(), Refusal> {
        let (site, len) = match why {
            Kept::Prefix => (entry.site(), self.prefix(entry)),
            _ => (entry.reference(FieldRole::Site), entry.site_len().into()),
        };
        let Some(site) = site else {
            return Ok(());
        };
        let refused = |reason| Refusal::at(RefusalCode::Metadata, section, entry.offset, reason);
        let range = self.range(site, len);
        let range = range
            .ok_or_else(|| refused("its entry names no whole instructions of a code section"))?;
        let first = &self.lifted.inst(InstIdx(range.start)).iced;
        if why == Kept::Prefix && first.mnemonic() != Mnemonic::Nop {
            return Err(refused(
                "its entry names no nop, which the compiler leaves there",
            ));
        }
        for i in range {
            // The first reason counts, with one exception: `__ex_table` may name an
            // instruction inside an alternative (`clear_user`); then the fixup counts.
            let slot = self.found.entry(i).or_insert(why);
            if why == Kept::Fixup && *slot != Kept::Section {
                *slot = why;
            }
        }
        Ok(())
    }

    /// Bytes of the padding that an entry names: one-byte nops, up to the function.
    fn prefix(&self, entry: &Entry) -> u64 {
        const NOP: u8 = 0x90;
        let Some((id, start)) = entry.site() else {
            return 0;
        };
        let data = &self.lifted.object.section(id).data;
        let behind = data.get(start as usize..).unwrap_or_default();
        behind.iter().take_while(|byte| **byte == NOP).count() as u64
    }

    /// The instructions of `len` bytes from a place on; at least one.
    fn range(&self, (id, start): (SectionId, u64), len: u64) -> Option<std::ops::Range<u32>> {
        let section = self.lifted.code_section(id)?;
        let first = self.lifted.inst_at(section, start)?;
        let mut end = first.0;
        let code = &self.lifted.sections[usize::from(section.0)];
        while end < code.insts.end && self.lifted.inst(InstIdx(end)).offset() < start + len {
            end += 1;
        }
        if len > 0 && self.lifted.inst(InstIdx(end - 1)).iced.next_ip() != start + len {
            return None;
        }
        Some(first.0..end.max(first.0 + 1))
    }
}
