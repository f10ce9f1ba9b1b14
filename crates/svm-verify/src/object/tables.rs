//! The two tables: `.twin.codemap`, the places where the code may be entered, and
//! `.twin.map`, the original place of each place. `twin_abi` has their layout.

use std::collections::HashMap;

use elf_loader::consts::R_X86_64_64;
use elf_loader::{SectionId, SymbolId};
use twin_abi::{names, sections};

use super::{Image, Meaning};
use crate::findings::{Findings, ViolationCode};
use crate::insn::CodeAt;

impl<'o> Image<'o> {
    pub(super) fn check_codemap(&mut self, findings: &mut Findings<'o>) {
        let Some(id) = self.object.section_named(sections::CODEMAP) else {
            return;
        };
        let section = self.object.section(id);
        if !section.size.is_multiple_of(16) {
            findings.at(
                id,
                0,
                ViolationCode::Codemap,
                "its size is not a multiple of 16",
            );
        }
        if let Some(at) = section.data.iter().position(|&b| b != 0) {
            findings.at(
                id,
                at as u64,
                ViolationCode::Codemap,
                "bytes under the relocations are not zero",
            );
        }
        if section.relocations.len() as u64 != section.size / 8 {
            findings.at(
                id,
                0,
                ViolationCode::Codemap,
                "not two relocations for each entry",
            );
            return;
        }
        let names: HashMap<&str, usize> = self
            .code
            .iter()
            .enumerate()
            .map(|(n, &c)| (&*self.object.section(c).name, n))
            .collect();
        let (mut expected, mut last) = (0, None);
        for r in &section.relocations {
            let target = if r.offset != expected || r.kind != R_X86_64_64 {
                Err("a relocation that is not R_X86_64_64 on a word of its own")
            } else if expected % 16 == 0 {
                let at = self.vm_code(r.symbol, r.addend, &names);
                at.and_then(|at| match last.replace(at) < Some(at) {
                    true => Ok(None),
                    false => Err("VM addresses do not ascend, or one has two entries"),
                })
            } else {
                self.entry_point(r.symbol, r.addend).map(Some)
            };
            match target {
                Ok(Some(at)) => self.codemap.push((r.offset, at)),
                Ok(None) => {}
                Err(reason) => findings.at(id, r.offset, ViolationCode::Codemap, reason),
            }
            expected += 8;
        }
    }

    /// The first half of a codemap entry: an address in a VM code section. Returns the
    /// number of the section in this object and the offset in the VM section, so that
    /// equal addresses give equal pairs. (The loader has to check that sections do not
    /// overlap in dom0.)
    fn vm_code(
        &self,
        symbol: SymbolId,
        offset: i64,
        names: &HashMap<&str, usize>,
    ) -> Result<(usize, u32), &'static str> {
        let vm = self.meaning(symbol) == Meaning::Vm;
        let symbol = self.object.symbols.get(symbol.0 as usize);
        let name = symbol.and_then(|s| s.name.strip_prefix(names::VM_PREFIX));
        let section = name.filter(|_| vm).and_then(|name| names.get(name));
        let section =
            section.ok_or("the VM address is not `twin_vm:` and a code section of this object")?;
        let offset = u32::try_from(offset).map_err(|_| "the VM address is outside its section")?;
        Ok((*section, offset))
    }

    /// The second half: a place in this object's code.
    fn entry_point(&self, symbol: SymbolId, addend: i64) -> Result<CodeAt, &'static str> {
        match self.meaning(symbol) {
            Meaning::Code(at) => at
                .offset
                .checked_add(addend)
                .map(|offset| CodeAt { offset, ..at })
                .ok_or("the entry point is outside every section"),
            _ => Err("the entry point is not in this object's code"),
        }
    }

    pub(super) fn check_map(&self, findings: &mut Findings<'o>) {
        let Some(map) = self.object.section_named(sections::MAP) else {
            return;
        };
        let section = self.object.section(map);
        let (entries, rest) = section.data.as_chunks::<{ sections::MAP_ENTRY }>();
        if !rest.is_empty() {
            findings.at(
                map,
                0,
                ViolationCode::Map,
                "its size is not a multiple of 12",
            );
        }
        let word =
            |e: &[u8; 12], at: usize| u32::from_le_bytes([e[at], e[at + 1], e[at + 2], e[at + 3]]);
        let mut last = 0;
        // Nearly all entries are for the section of the one before.
        let (mut found, mut size) = (None, None);
        for (n, entry) in entries.iter().enumerate() {
            let (id, at) = (word(entry, 0), u64::from(word(entry, 4)));
            // In the order of the sections, and in each in that of the places.
            let here = u64::from(id) << 32 | at;
            if found.replace(id) != Some(id) {
                let number = self.number(SectionId(id));
                size = number.map(|number| self.section(number).size);
            }
            let reason = match size {
                None => "an entry for something that is not a code section",
                Some(size) if at > size => "an entry for a place past the end of its section",
                Some(_) if here < last => "entries are not sorted",
                Some(_) => {
                    last = here;
                    continue;
                }
            };
            findings.at(
                map,
                (n * sections::MAP_ENTRY) as u64,
                ViolationCode::Map,
                reason,
            );
        }
    }
}
