//! Makes an object of rewritten code: sections, symbols, relocations, and the tables
//! that loader and verifier read. `docs/spec/object.md` has the format.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use elf_loader::consts::{
    R_X86_64_64, SHF_ALLOC, SHF_EXECINSTR, SHT_PROGBITS, STB_GLOBAL, STB_LOCAL, STT_FUNC,
    STT_NOTYPE, STT_SECTION,
};
use elf_loader::{Object, Place, Relocation, SectionId, Symbol, SymbolId};
use foldhash::{HashMap, HashSet};
use twin_abi::{MadeFor, sections};

use super::super::Build;
use super::super::sections::{map_section, note_section, relocation_kind, section};
use crate::analyse::codemap::Codemap;
use crate::analyse::reach;
use crate::analyse::switches::Switches;
use crate::asm::import::Import;
use crate::asm::{Label, Laid, Referent};
use crate::encode::apply::Applied;
use crate::lift::{CodeIdx, FuncIdx, Lifted};
use crate::plan::InstPlan;
use crate::refusal::Refusal;

/// Nothing that refers to code stays, so there is nothing to refuse.
pub fn prepare<'l>(
    lifted: &'l Lifted<'l>,
    _: &[InstPlan],
    _: &Switches,
) -> Result<Build<'l>, Vec<Refusal>> {
    let build =
        |applied: &mut Applied, codemap: &Codemap, made| emit(lifted, applied, codemap, made);
    Ok(Box::new(build))
}

/// Builds the object, and takes the code for it.
fn emit(
    lifted: &Lifted<'_>,
    applied: &mut Applied,
    codemap: &Codemap,
    made: MadeFor,
) -> Object<'static> {
    let mut builder = Builder::new(lifted);
    builder.code_sections(applied);
    builder.functions(applied);
    let imports = builder.imports(applied, codemap);
    builder.relocate_code(applied, &imports);
    builder.object.sections.push(note_section(made));
    builder.codemap(applied, codemap, &imports);
    let map = map_section(lifted, applied, code_section_id);
    builder.object.sections.push(map);
    builder.object
}

struct Builder<'l, 'a> {
    lifted: &'l Lifted<'a>,
    object: Object<'static>,
}

type Imports = HashMap<Import, SymbolId>;

fn symbol(
    name: &str,
    binding: u8,
    kind: u8,
    place: Place,
    value: u64,
    size: u64,
) -> Symbol<'static> {
    Symbol {
        name: Cow::Owned(name.to_owned()),
        binding,
        kind,
        other: 0,
        place,
        value,
        size,
    }
}

/// Code sections come first, after the null section.
fn code_section_id(code: CodeIdx) -> SectionId {
    SectionId(u32::from(code.0) + 1)
}

/// The symbol of a code section, in the same order.
fn section_symbol(code: CodeIdx) -> SymbolId {
    SymbolId(u32::from(code.0) + 1)
}

impl<'l, 'a> Builder<'l, 'a> {
    fn new(lifted: &'l Lifted<'a>) -> Builder<'l, 'a> {
        Builder {
            lifted,
            object: Object::new(),
        }
    }

    /// One section and section symbol for each; takes the code out of `applied`.
    fn code_sections(&mut self, applied: &mut Applied) {
        for (n, laid) in applied.sections.iter_mut().enumerate() {
            let code = CodeIdx(n as u16);
            let name = self.lifted.section_name(code).to_owned();
            let flags = SHF_ALLOC | SHF_EXECINSTR;
            self.object.sections.push(section(
                name,
                SHT_PROGBITS,
                flags,
                16,
                std::mem::take(&mut laid.bytes),
            ));
            let place = Place::In(code_section_id(code));
            self.object
                .symbols
                .push(symbol("", STB_LOCAL, STT_SECTION, place, 0, 0));
        }
    }

    /// Function symbols: local ones, then global ones, each with its
    /// out-of-line parts.
    fn functions(&mut self, applied: &Applied) {
        let mut globals = Vec::new();
        let symbols = &self.lifted.object.symbols;
        let mut exported: HashMap<(SectionId, u64), Vec<&Symbol<'_>>> = HashMap::default();
        for s in symbols.iter().filter(|s| s.binding != STB_LOCAL) {
            if let Place::In(id) = s.place {
                exported.entry((id, s.value)).or_default().push(s);
            }
        }
        for (n, function) in self
            .lifted
            .functions
            .iter()
            .enumerate()
            .filter(|(_, f)| !f.padding)
        {
            let (code, start) = applied.place(Label(function.insts.start));
            let (_, end) = applied.place(applied.function_ends[n]);
            let place = Place::In(code_section_id(code));
            let original = self.lifted.sections[usize::from(code.0)].id;
            // Only code that may be entered with an empty frame is called a function.
            let kind = match reach::is_entry(self.lifted, FuncIdx(n as u32)) {
                true => STT_FUNC,
                false => STT_NOTYPE,
            };
            self.object.symbols.push(symbol(
                &function.name,
                STB_LOCAL,
                kind,
                place,
                start,
                end - start,
            ));
            for s in exported
                .get(&(original, function.start))
                .into_iter()
                .flatten()
            {
                globals.push(symbol(
                    &s.name,
                    s.binding,
                    STT_FUNC,
                    place,
                    start,
                    end - start,
                ));
            }
        }
        // A function known by its global name only needs no local one.
        let global_names: BTreeSet<_> = globals.iter().map(|g| g.name.clone()).collect();
        self.object
            .symbols
            .retain(|s| s.kind != STT_FUNC || !global_names.contains(&s.name));
        self.object.symbols.append(&mut globals);
    }

    /// One undefined symbol for each name that code or codemap refers to, in
    /// the order of the names.
    fn imports(&mut self, applied: &Applied, codemap: &Codemap) -> Imports {
        let referred = applied.sections.iter().flat_map(Laid::references);
        let mut wanted: HashSet<Import> = referred
            .filter_map(|(_, _, referent)| match referent {
                Referent::Import(import, _) => Some(import),
                Referent::Label(_) => None,
            })
            .collect();
        wanted.extend(codemap.iter().map(|(code, _)| self.vm_code(*code)));
        let mut by_name: BTreeMap<String, Vec<Import>> = BTreeMap::new();
        for import in wanted {
            by_name
                .entry(import.name(self.lifted.object))
                .or_default()
                .push(import);
        }
        let mut ids = Imports::default();
        for (name, imports) in by_name {
            let id = SymbolId(self.object.symbols.len() as u32);
            self.object.symbols.push(symbol(
                &name,
                STB_GLOBAL,
                STT_NOTYPE,
                Place::Undefined,
                0,
                0,
            ));
            ids.extend(imports.into_iter().map(|import| (import, id)));
        }
        ids
    }

    /// The VM instance's code section.
    fn vm_code(&self, code: CodeIdx) -> Import {
        Import::Section(self.lifted.sections[usize::from(code.0)].id)
    }

    fn relocate_code(&mut self, applied: &Applied, imports: &Imports) {
        for (n, laid) in applied.sections.iter().enumerate() {
            let relocations = &mut self.object.sections[n + 1].relocations;
            relocations.reserve_exact(laid.references().len());
            for (offset, field, referent) in laid.references() {
                let (kind, from_end) = relocation_kind(field);
                let (symbol, addend) = match referent {
                    Referent::Label(label) => {
                        let (code, at) = applied.place(label);
                        (section_symbol(code), at as i64)
                    }
                    Referent::Import(import, addend) => (imports[&import], addend),
                };
                relocations.push(Relocation {
                    offset,
                    kind,
                    symbol,
                    addend: addend + from_end,
                });
            }
            relocations.sort_by_key(|r| r.offset);
        }
    }

    fn codemap(&mut self, applied: &Applied, codemap: &Codemap, imports: &Imports) {
        const WORD: u64 = 8;
        let mut table = section(
            sections::CODEMAP.to_owned(),
            SHT_PROGBITS,
            SHF_ALLOC,
            WORD,
            vec![0; codemap.len() * 2 * WORD as usize],
        );
        for (n, (code, original)) in codemap.iter().enumerate() {
            let offset = n as u64 * 2 * WORD;
            let vm = imports[&self.vm_code(*code)];
            let inst = self
                .lifted
                .inst_at(*code, *original)
                .expect("entries are function starts");
            let (_, at) = applied.place(Label(inst.0));
            table.relocations.extend([
                Relocation {
                    offset,
                    kind: R_X86_64_64,
                    symbol: vm,
                    addend: *original as i64,
                },
                Relocation {
                    offset: offset + WORD,
                    kind: R_X86_64_64,
                    symbol: section_symbol(*code),
                    addend: at as i64,
                },
            ]);
        }
        self.object.sections.push(table);
    }
}
