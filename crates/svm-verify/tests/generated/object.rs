//! From a program to a module: the parts of a linked one are replaced.

use std::borrow::Cow;
use std::collections::HashMap;

use elf_loader::consts::{R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PC64, R_X86_64_PLT32};
use elf_loader::{Object, Relocation, SectionId, SymbolId};

use svm_verify::Accesses;

use super::program::{FUNCTIONS, Line, Link, Named, Program};
use crate::common::module::link;
use crate::common::{ABI, STLB, note_of};

/// A module with a function for each that programs have, and all tables, to be filled.
pub fn template(accesses: Accesses) -> Vec<u8> {
    let functions: String = (0..FUNCTIONS)
        .map(|n| format!(".globl f{n}\n.type f{n},@function\nf{n}: ret\n.size f{n},1\n"))
        .collect();
    let note = note_of([ABI, STLB, 64, 1], accesses as u32);
    let runtime =
        twin_linux_runtime::object(svm_verify::Scheme::Stlb, twin_linux_runtime::Returns::Thunk);
    let source = format!(
        "{note}.text\n{functions}call imported\ncall __put_user_4\ncall *key(%rip)\n.data\n.balign 8\nkey: .quad f1, 0\n.section .altinstr_replacement,\"ax\"\n.Lr: nop
.section .altinstructions,\"a\"\n.long f0-., .Lr-.\n.section __ex_table,\"a\"\n.long f0-.,f0-.,1
.section __bug_table,\"aw\"\n.long f0-.,key-.\n.short 1,1\n.section __jump_table,\"aw\"\n.balign 8\n.long f0-.,f0-.\n.quad key-.\n.section .note.GNU-stack,\"\",@progbits\n"
    );
    link(&source, runtime)
}

/// Where everything is in the bytes.
pub struct Placed {
    pub text: Vec<u8>,
    pub replacements: Vec<u8>,
    pub labels: HashMap<u32, u64>,
    /// Fields in the text: where, and what they lead to.
    pub links: Vec<(u64, Link)>,
    pub replaced_links: Vec<(u64, Link)>,
    /// For each alternative, the bytes of its replacement.
    pub ranges: Vec<std::ops::Range<u64>>,
}

fn field(start: u64, bytes: &[u8], link: Link) -> u64 {
    match link {
        Link::Table(at, _) | Link::Named(Named { at, .. }) => start + at as u64,
        _ => start + bytes.len() as u64 - 4,
    }
}

/// Lays a program out. `None` if a label is missing.
pub fn place(program: &Program) -> Option<Placed> {
    let (mut text, mut links, mut labels) = (Vec::new(), Vec::new(), HashMap::new());
    for line in &program.lines {
        match line {
            Line::Label(label) => drop(labels.insert(*label, text.len() as u64)),
            Line::Insn(bytes, link) => {
                if *link != Link::None {
                    links.push((field(text.len() as u64, bytes, *link), *link));
                }
                text.extend(bytes);
            }
        }
    }
    let (mut replacements, mut replaced_links, mut ranges) = (vec![0xcc], Vec::new(), Vec::new());
    for alternative in &program.alternatives {
        let start = replacements.len() as u64;
        for (bytes, link) in &alternative.replacement {
            if *link != Link::None {
                let at = field(replacements.len() as u64, bytes, *link);
                replaced_links.push((at, *link));
            }
            replacements.extend(bytes);
        }
        ranges.push(start..replacements.len() as u64);
        replacements.push(0xcc);
    }
    for &(at, link) in &links {
        if let Link::To(label) = link {
            let distance = (*labels.get(&label)? as i64 - at as i64 - 4) as i32;
            text[at as usize..at as usize + 4].copy_from_slice(&distance.to_le_bytes());
        }
    }
    Some(Placed {
        text,
        replacements,
        labels,
        links,
        replaced_links,
        ranges,
    })
}

/// Puts a program into the template.
pub fn module<'t>(template: &Object<'t>, program: &Program, placed: &Placed) -> Option<Object<'t>> {
    let mut object = template.clone();
    let symbol = |name: &str| {
        let found = template.symbols.iter().position(|s| s.name == name);
        SymbolId(found.expect("a symbol of the template") as u32)
    };
    let section = |name: &str| template.section_named(name).expect("a section");
    let text = section(".text");
    // f0 is where the text begins.
    let relocation = |at: u64, link: Link| {
        let (kind, symbol, addend) = match link {
            Link::None | Link::Smashed | Link::Named(_) => return None,
            Link::To(label) => (
                R_X86_64_PC32,
                symbol("f0"),
                *placed.labels.get(&label)? as i64 - 4,
            ),
            Link::Import => (R_X86_64_PLT32, symbol("imported"), -4),
            Link::PutUser => (R_X86_64_PLT32, symbol("__put_user_4"), -4),
            Link::Slow(n) => (R_X86_64_PLT32, slow(template, n)?, -4),
            Link::Table(_, half) => (R_X86_64_32S, symbol("twin_stlb"), half),
        };
        Some(Relocation {
            offset: at,
            kind,
            symbol,
            addend,
        })
    };
    for n in 0..FUNCTIONS {
        let id = symbol(&format!("f{n}")).0 as usize;
        object.symbols[id].value = *placed.labels.get(&n)?;
        object.symbols[id].size = 0;
    }
    let mut fill = |id: SectionId, data: Vec<u8>, mut relocations: Vec<Relocation>| {
        relocations.sort_by_key(|r| r.offset);
        let section = &mut object.sections[id.0 as usize];
        section.size = data.len() as u64;
        section.data = Cow::Owned(data);
        section.relocations = relocations;
    };
    let outside = placed
        .links
        .iter()
        .filter(|(_, link)| !matches!(link, Link::To(_)));
    let list: Option<Vec<_>> = outside.map(|&(at, link)| relocation(at, link)).collect();
    fill(text, placed.text.clone(), list?);
    let list: Option<Vec<_>> = placed
        .replaced_links
        .iter()
        .map(|&(at, link)| relocation(at, link))
        .collect();
    let code = section(".altinstr_replacement");
    fill(code, placed.replacements.clone(), list?);
    let base = |id: SectionId| {
        let found = template.symbols.iter().position(|s| {
            s.kind == elf_loader::consts::STT_SECTION && s.place == elf_loader::Place::In(id)
        });
        found.map(|n| SymbolId(n as u32))
    };
    let here = |offset: u64, symbol: SymbolId, addend: u64| Relocation {
        offset,
        kind: R_X86_64_PC32,
        symbol,
        addend: addend as i64,
    };
    let of_text =
        |offset: u64, label: u32| Some(here(offset, symbol("f0"), *placed.labels.get(&label)?));
    let (mut data, mut list) = (Vec::new(), Vec::new());
    for (alternative, range) in program.alternatives.iter().zip(&placed.ranges) {
        let at = data.len() as u64;
        list.push(of_text(at, alternative.from)?);
        list.push(here(at + 4, base(code)?, range.start));
        let length = placed.labels.get(&alternative.to)? - placed.labels.get(&alternative.from)?;
        data.extend([0; 8]);
        data.extend(20u16.to_le_bytes());
        data.extend([u8::try_from(length).ok()?, (range.end - range.start) as u8]);
    }
    fill(section(".altinstructions"), data, list);
    let (mut data, mut list) = (Vec::new(), Vec::new());
    for &(from, to) in &program.fixups {
        let at = data.len() as u64;
        list.push(of_text(at, from)?);
        list.push(of_text(at + 4, to)?);
        data.extend([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);
    }
    fill(section("__ex_table"), data, list);
    let (mut data, mut list) = (Vec::new(), Vec::new());
    for &(from, to) in &program.branches {
        let at = data.len() as u64;
        list.push(of_text(at, from)?);
        list.push(of_text(at + 4, to)?);
        list.push(Relocation {
            offset: at + 8,
            kind: R_X86_64_PC64,
            symbol: symbol("key"),
            addend: 0,
        });
        data.extend([0; 16]);
    }
    fill(section("__jump_table"), data, list);
    let (mut data, mut list) = (Vec::new(), Vec::new());
    for &at in &program.warnings {
        let place = data.len() as u64;
        list.push(of_text(place, at)?);
        list.push(here(place + 4, symbol("key"), 0));
        data.extend([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0]);
    }
    fill(section("__bug_table"), data, list);
    let data = section(".data");
    let taken = Relocation {
        offset: 0,
        kind: R_X86_64_64,
        symbol: symbol("f1"),
        addend: 0,
    };
    fill(data, vec![0; 16], vec![taken]);
    Some(object)
}

/// The symbol of the slow path for a register.
pub fn slow(object: &Object<'_>, number: u32) -> Option<SymbolId> {
    const NAMES: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let name = format!("twin_slow_{}", NAMES[number as usize]);
    let found = object.symbols.iter().position(|s| s.name == name)?;
    Some(SymbolId(found as u32))
}
