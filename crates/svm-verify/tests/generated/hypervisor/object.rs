//! From a program to an object of a hypervisor: code alone.

use std::borrow::Cow;

use elf_loader::consts::{R_X86_64_32S, R_X86_64_PLT32};
use elf_loader::{Object, Relocation, SymbolId};
use svm_verify::Scheme;

use super::linked::{Placed, slow};
use crate::common::object;
use crate::program::{FUNCTIONS, Link};

/// The registers that have a slow path.
const SLOW: [&str; 15] = [
    "rax", "rcx", "rdx", "rbx", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
    "r15",
];

/// An object with a function for each that programs have, and all that they name.
pub fn template(scheme: Scheme) -> Vec<u8> {
    let mut code = String::new();
    for n in 0..FUNCTIONS {
        code += &format!(".globl f{n}\n.type f{n},@function\nf{n}: ret\n");
    }
    code += "call imported\n";
    match Scheme::TABLES.contains(&scheme) {
        true => {
            code += "call twin_smashed\nsub twin_stlb(%rax),%rax\n";
            for r in SLOW {
                code += &format!("call twin_slow_{r}\n");
            }
        }
        false => {
            code += "movabs $twin_window,%rax\nmovabs $twin_stack_view,%rax\ncall twin_wild\n";
            code += "cmp twin_lowest(%rip),%rax\ncmp twin_highest(%rip),%rax\n";
        }
    }
    if scheme == Scheme::Window {
        code += "and twin_window_mask(%rip),%rax\n";
    }
    object(scheme as u32, &code)
}

/// Puts a program into the template.
pub fn module<'t>(template: &Object<'t>, placed: &Placed) -> Option<Object<'t>> {
    let mut object = template.clone();
    let symbol = |name: &str| {
        let found = template.symbols.iter().position(|s| s.name == name);
        SymbolId(found.expect("a symbol of the template") as u32)
    };
    for n in 0..FUNCTIONS {
        let id = symbol(&format!("f{n}")).0 as usize;
        object.symbols[id].value = *placed.labels.get(&n)?;
        object.symbols[id].size = 0;
    }
    let routine = |symbol| Some((R_X86_64_PLT32, symbol, -4));
    let of = |link: Link| match link {
        Link::None | Link::To(_) | Link::PutUser => None,
        Link::Import => routine(symbol("imported")),
        Link::Smashed => routine(symbol("twin_smashed")),
        Link::Slow(n) => routine(slow(template, n)?),
        Link::Table(_, half) => Some((R_X86_64_32S, symbol("twin_stlb"), half)),
        Link::Named(n) => Some((n.kind, symbol(n.name), n.addend)),
    };
    let links = placed.links.iter();
    let relocations = links.filter_map(|&(offset, link)| {
        let (kind, symbol, addend) = of(link)?;
        Some(Relocation {
            offset,
            kind,
            symbol,
            addend,
        })
    });
    let text = template.section_named(".text").expect("code");
    let section = &mut object.sections[text.0 as usize];
    section.relocations = relocations.collect();
    section.size = placed.text.len() as u64;
    section.data = Cow::Owned(placed.text.clone());
    Some(object)
}
