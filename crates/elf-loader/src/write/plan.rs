//! Plans the contents of the file: all sections, including appended ones, and the symbols
//! in their final order. Errors in the object are found here.
//!
//! Sections keep their ids. Appended, in this order and only if absent:
//! a `.rela*` for each section with relocations; `.symtab` and
//! `.strtab` if there is any symbol or relocation section; `.shstrtab`, unless
//! the object has a symbol name table of its own, which then holds the section
//! names as well (as LLVM writes objects).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::error::WriteError;
use crate::model::{Object, Place, Relocation, Role, Section, SectionId, SymbolId, WORD, consts};
use crate::reloc::relocation_type;

const SHF_INFO_LINK: u64 = 0x40;
const SHF_GROUP: u64 = 0x200;
const SHT_GROUP: u32 = 17;
const SHN_LORESERVE: usize = 0xff00;

/// Sections and symbols in their final order.
pub(super) struct FilePlan<'a> {
    /// Sections from index 1 on.
    pub sections: Vec<OutputSection<'a>>,
    /// Symbols by new index.
    pub symbols: Vec<SymbolId>,
    /// New index of each symbol.
    pub new_index: Vec<u32>,
    /// One table holds section and symbol names.
    pub shared_names: bool,
}

/// One section of the file.
pub(super) struct OutputSection<'a> {
    pub name: Cow<'a, str>,
    pub kind: u32,
    pub flags: u64,
    pub align: u64,
    pub entsize: u64,
    pub link: u32,
    pub info: u32,
    pub body: Body<'a>,
}

/// Where the bytes of a section come from.
pub(super) enum Body<'a> {
    /// Nowhere; it has this size.
    Nobits(u64),
    Bytes(Cow<'a, [u8]>),
    Symbols,
    Names(Names),
    Relocations(&'a [Relocation]),
}

/// What a string table names.
pub(super) enum Names {
    Symbols,
    Sections,
    Both,
}

impl<'a> FilePlan<'a> {
    pub fn new(object: &'a Object<'a>) -> Result<Self, WriteError> {
        check_object(object)?;
        let (symbols, first_global) = symbol_order(object);
        let mut new_index = vec![0; symbols.len()];
        for (new, old) in symbols.iter().enumerate() {
            new_index[old.0 as usize] = new as u32;
        }
        check_symbol_indices(object, &symbols)?;
        let roles = roles(object)?;
        let count = roles.len();
        if count >= SHN_LORESERVE {
            return Err(WriteError::TooManySections(count));
        }
        let find = |role: Role| roles.iter().position(|(r, _)| *r == role).unwrap_or(0) as u32;
        let tables = Tables {
            symbols: find(Role::SymbolTable),
            symbol_names: find(Role::SymbolNames),
            shared_names: find(Role::SectionNames) == 0,
            first_global,
            appended: appended_relocations(&roles),
        };
        let sections = roles
            .iter()
            .enumerate()
            .skip(1)
            .map(|(index, (role, section))| {
                tables.output(object, &new_index, index, *role, *section)
            });
        let sections = sections.collect::<Result<_, _>>()?;
        Ok(FilePlan {
            sections,
            symbols,
            new_index,
            shared_names: tables.shared_names,
        })
    }
}

fn check_object(object: &Object<'_>) -> Result<(), WriteError> {
    if object.sections.first().is_none_or(|s| s.role != Role::Null) {
        return Err(WriteError::NoNull("section"));
    }
    if object
        .symbols
        .first()
        .is_none_or(|s| s.place != Place::Undefined || !s.name.is_empty())
    {
        return Err(WriteError::NoNull("symbol"));
    }
    if object.symbols.len() > u32::MAX as usize {
        return Err(WriteError::TooManySymbols(object.symbols.len()));
    }
    for index in 1..object.symbols.len() {
        check_symbol(object, index).map_err(|problem| {
            let name = object.symbols[index].name.to_string();
            WriteError::Symbol {
                index,
                name,
                problem,
            }
        })?;
    }
    Ok(())
}

fn check_symbol(object: &Object<'_>, index: usize) -> Result<(), String> {
    let symbol = &object.symbols[index];
    if symbol.name.contains('\0') {
        return Err("its name has a zero byte; choose another".into());
    }
    if symbol.binding > 15 || symbol.kind > 15 {
        return Err("binding or kind is more than 15; use STB_* and STT_*".into());
    }
    match symbol.place {
        Place::In(SectionId(s)) if s == 0 || s as usize >= object.sections.len() => Err(format!(
            "it is in section {s}, which does not exist; add the section first"
        )),
        Place::In(id) if object.section(id).role != Role::Contents && symbol.value != 0 => Err(
            "it points into a table that is written anew; keep symbols in sections with contents"
                .into(),
        ),
        _ => Ok(()),
    }
}

/// Symbols with the locals first, otherwise in the given order, and the number
/// of locals, the null symbol included.
fn symbol_order(object: &Object<'_>) -> (Vec<SymbolId>, u32) {
    let is_global = |id: &SymbolId| object.symbol(*id).binding != consts::STB_LOCAL;
    let mut order: Vec<SymbolId> = object.symbols().map(|(id, _)| id).collect();
    // The null symbol is local and sorting is stable: it stays first.
    order.sort_by_key(|id| id.0 != 0 && is_global(id));
    let locals = order.iter().skip(1).filter(|id| !is_global(id)).count() + 1;
    (order, locals as u32)
}

/// Refuses contents that hold symbol indices if the order of symbols changes.
fn check_symbol_indices(object: &Object<'_>, order: &[SymbolId]) -> Result<(), WriteError> {
    if order
        .iter()
        .enumerate()
        .all(|(new, old)| new == old.0 as usize)
    {
        return Ok(());
    }
    for (id, section) in object.sections() {
        if matches!(
            section.kind,
            consts::SHT_LLVM_ADDRSIG | consts::SHT_LLVM_CALL_GRAPH_PROFILE
        ) {
            let problem = "it holds symbol indices, but a local symbol follows a global one; \
                           put local symbols first or drop the section";
            return Err(refuse(id.0 as usize, section, problem.into()));
        }
    }
    Ok(())
}

fn refuse(index: usize, section: &Section<'_>, problem: String) -> WriteError {
    WriteError::Section {
        index,
        name: section.name.to_string(),
        problem,
    }
}

/// All sections by index, the appended ones without a model.
type Roles<'a> = Vec<(Role, Option<&'a Section<'a>>)>;

fn roles<'a>(object: &'a Object<'a>) -> Result<Roles<'a>, WriteError> {
    let mut roles: Roles<'a> = object.sections.iter().map(|s| (s.role, Some(s))).collect();
    let mut seen = HashSet::new();
    for (index, section) in object.sections.iter().enumerate().skip(1) {
        check_role(object, index, section)?;
        if section.role != Role::Contents && !seen.insert(section.role) {
            let problem = "there is another section with the same role; keep one".to_string();
            return Err(refuse(index, section, problem));
        }
    }
    let mut relocated = vec![false; object.sections.len()];
    for section in &object.sections {
        if let Role::Relocations(target) = section.role {
            relocated[target.0 as usize] = true;
        }
    }
    for (id, section) in object.sections() {
        if !section.relocations.is_empty() && !relocated[id.0 as usize] {
            roles.push((Role::Relocations(id), None));
        }
    }
    let has = |roles: &Roles<'_>, role: Role| roles.iter().any(|(r, _)| *r == role);
    let any_relocations = roles.iter().any(|(r, _)| matches!(r, Role::Relocations(_)));
    let own_names = has(&roles, Role::SymbolNames);
    if object.symbols.len() > 1 || any_relocations || has(&roles, Role::SymbolTable) {
        for role in [Role::SymbolTable, Role::SymbolNames] {
            if !has(&roles, role) {
                roles.push((role, None));
            }
        }
    }
    if !own_names && !has(&roles, Role::SectionNames) {
        roles.push((Role::SectionNames, None));
    }
    Ok(roles)
}

fn check_role(object: &Object<'_>, index: usize, section: &Section<'_>) -> Result<(), WriteError> {
    let fail = |problem: &str| Err(refuse(index, section, problem.into()));
    let relocatable = section.role == Role::Contents && section.kind != consts::SHT_NOBITS;
    if !relocatable && !section.relocations.is_empty() {
        return fail("it has relocations but no contents; move them to the section they apply to");
    }
    if section.name.contains('\0') {
        return fail("its name has a zero byte; choose another");
    }
    if !section.align.is_power_of_two() {
        return fail("its alignment is not a power of two; 1 is the least");
    }
    match section.role {
        Role::Null => fail("only section 0 is the null section; use Role::Contents"),
        Role::Relocations(target) => match object.sections.get(target.0 as usize) {
            Some(t) if t.role == Role::Contents => Ok(()),
            _ => fail("it relocates a section that does not exist or has no contents"),
        },
        _ => Ok(()),
    }
}

/// Where the tables are, for the links between sections.
struct Tables {
    symbols: u32,
    symbol_names: u32,
    shared_names: bool,
    first_global: u32,
    /// The relocations that the object lacks, by the section that they are of.
    appended: HashMap<SectionId, u32>,
}

/// A section of relocations that the object lacks, by the section that they are of.
fn appended_relocations(roles: &Roles<'_>) -> HashMap<SectionId, u32> {
    let all = (0..).zip(roles);
    let appended = all.filter_map(|(index, (role, section))| match (role, section) {
        (Role::Relocations(target), None) => Some((*target, index)),
        _ => None,
    });
    appended.collect()
}

impl Tables {
    fn output<'a>(
        &self,
        object: &'a Object<'a>,
        new_index: &[u32],
        index: usize,
        role: Role,
        section: Option<&'a Section<'a>>,
    ) -> Result<OutputSection<'a>, WriteError> {
        let mut output = match section {
            Some(section) => output_of(section),
            None => appended(object, role),
        };
        match role {
            Role::Null => {}
            Role::Contents => {
                let Some(section) = section else {
                    return Ok(output);
                };
                if section.kind == SHT_GROUP {
                    output.link = self.symbols;
                    let signature = new_index.get(section.info as usize).ok_or_else(|| {
                        refuse(index, section, "its sh_info names no symbol; set it".into())
                    })?;
                    output.info = *signature;
                }
                output.body = contents(object, index, section)?;
                if let (SHT_GROUP, Body::Bytes(members)) = (section.kind, &mut output.body) {
                    self.add_members(members);
                }
            }
            Role::SymbolTable => {
                output.link = self.symbol_names;
                output.info = self.first_global;
                output.entsize = 24;
                output.align = output.align.max(WORD);
                output.body = Body::Symbols;
            }
            Role::SymbolNames if self.shared_names => output.body = Body::Names(Names::Both),
            Role::SymbolNames => output.body = Body::Names(Names::Symbols),
            Role::SectionNames => output.body = Body::Names(Names::Sections),
            Role::Relocations(target) => {
                output.kind = consts::SHT_RELA;
                output.link = self.symbols;
                output.info = target.0;
                output.entsize = 24;
                output.align = output.align.max(WORD);
                output.body = Body::Relocations(&object.section(target).relocations);
            }
        }
        Ok(output)
    }

    /// Relocations of a member are members, too (gABI chapter 4, "Section Groups"): what drops
    /// the group drops them.
    fn add_members(&self, group: &mut Cow<'_, [u8]>) {
        let (words, _) = group.as_chunks::<4>();
        // The first word has flags.
        let members = words.iter().skip(1).map(|word| u32::from_le_bytes(*word));
        let added = members.filter_map(|member| self.appended.get(&SectionId(member)));
        let added: Vec<u8> = added.flat_map(|index| index.to_le_bytes()).collect();
        if !added.is_empty() {
            group.to_mut().extend(added);
        }
    }
}

/// The header fields of a section as they are.
fn output_of<'a>(section: &'a Section<'a>) -> OutputSection<'a> {
    OutputSection {
        name: Cow::Borrowed(&section.name),
        kind: section.kind,
        flags: section.flags,
        align: section.align,
        entsize: section.entsize,
        link: section.link,
        info: section.info,
        body: Body::Nobits(section.size),
    }
}

/// The header fields of a table that the object lacks.
fn appended<'a>(object: &'a Object<'a>, role: Role) -> OutputSection<'a> {
    let (name, kind, flags) = match role {
        Role::SymbolTable => (Cow::Borrowed(".symtab"), consts::SHT_SYMTAB, 0),
        Role::SymbolNames => (Cow::Borrowed(".strtab"), consts::SHT_STRTAB, 0),
        Role::Relocations(target) => {
            let target = object.section(target);
            let flags = SHF_INFO_LINK | target.flags & SHF_GROUP;
            let name = format!(".rela{}", target.name);
            (Cow::Owned(name), consts::SHT_RELA, flags)
        }
        _ => (Cow::Borrowed(".shstrtab"), consts::SHT_STRTAB, 0),
    };
    OutputSection {
        name,
        kind,
        flags,
        align: 1,
        entsize: 0,
        link: 0,
        info: 0,
        body: Body::Nobits(0),
    }
}

/// The bytes of a contents section, checked.
fn contents<'a>(
    object: &'a Object<'a>,
    index: usize,
    section: &'a Section<'a>,
) -> Result<Body<'a>, WriteError> {
    let length = section.data.len() as u64;
    if section.kind == consts::SHT_NOBITS {
        if length != 0 {
            return Err(refuse(
                index,
                section,
                "SHT_NOBITS with data; empty the data".into(),
            ));
        }
        return Ok(Body::Nobits(section.size));
    }
    if length != section.size {
        let problem = format!(
            "its size is {:#x}, but its data has {length:#x} bytes; set size after changing data",
            section.size
        );
        return Err(refuse(index, section, problem));
    }
    for (entry, relocation) in section.relocations.iter().enumerate() {
        check_relocation(object, relocation, length).map_err(|problem| WriteError::Relocation {
            section: section.name.to_string(),
            entry,
            offset: relocation.offset,
            problem,
        })?;
    }
    Ok(Body::Bytes(Cow::Borrowed(&section.data)))
}

/// Checks a relocation of a section of so many bytes.
fn check_relocation(
    object: &Object<'_>,
    relocation: &Relocation,
    length: u64,
) -> Result<(), String> {
    let kind = relocation_type(relocation.kind)
        .ok_or_else(|| format!("type {} is unknown for this machine", relocation.kind))?;
    if relocation.symbol.0 as usize >= object.symbols.len() {
        return Err(format!(
            "there is no symbol {}; add it first",
            relocation.symbol.0
        ));
    }
    let end = relocation
        .offset
        .checked_add(kind.width)
        .filter(|e| *e <= length);
    if end.is_none() {
        return Err(format!(
            "{} has {} bytes, past the section's end",
            kind.name, kind.width
        ));
    }
    Ok(())
}
