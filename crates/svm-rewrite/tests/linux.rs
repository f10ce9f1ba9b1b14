//! `--target linux`: the result for each kind of kernel metadata, and the refusals.
//!
//! Also for whole modules of the stock kernel: every entry of every table names an
//! instruction of the kind that the kernel expects there.

use std::fmt::Write;

use elf_loader::special::{self, FieldRole, Referent, SpecialKind};
use elf_loader::{Object, SectionId};
use filetests::{Fixture, Section};
use iced_x86::{Decoder, DecoderOptions, Instruction};
use svm_rewrite::{Options, Refusal, Rewritten, Scheme, Target, listing, rewrite, syntax};
use svm_verify::{Contract, Violations};

fn main() {
    let emitted = Fixture::tests("linux", emitted);
    let refused = Fixture::tests("linux/refused", refused);
    let stock = [
        filetests::test(
            "tables of stock modules name what the kernel expects",
            tables_of_stock_modules,
        ),
        filetests::test("nothing more is imported", nothing_more_is_imported),
    ];
    filetests::run(emitted.chain(refused).chain(stock).collect());
}

fn try_rewrite(bytes: &[u8]) -> Result<Rewritten, Vec<Refusal>> {
    let object = elf_loader::read(bytes).expect("a readable object");
    rewrite(&object, Options::of(Target::Linux, Scheme::Stlb))
}

fn instruction(object: &Object<'_>, (id, at): (SectionId, u64)) -> Instruction {
    let code = &object.section(id).data[at as usize..];
    Decoder::with_ip(64, code, at, DecoderOptions::NONE).decode()
}

/// A place in code, and what is there.
fn place(object: &Object<'_>, to: (SectionId, u64)) -> String {
    let section = object.section(to.0);
    let at = to.1;
    if !section.is_code() {
        return format!("{}+{at:#x}", section.name);
    }
    if at == section.size {
        return format!("{}+{at:#x} (end)", section.name);
    }
    let found = instruction(object, to);
    format!("{}+{at:#x} `{}`", section.name, syntax::plain(&found))
}

/// All special sections, entry by entry, without the runtime's entries.
fn tables(object: &Object<'_>) -> String {
    let mut shown = String::new();
    for (id, section) in object.sections() {
        let Some(kind) = special::kind_of(&section.name) else {
            continue;
        };
        let entries = special::entries(object, id).expect("tables that the kernel can read");
        let own = entries.iter().filter(|e| {
            e.site()
                .is_none_or(|(id, _)| !object.section(id).name.starts_with(".twin"))
        });
        let mut lines = String::new();
        for entry in own {
            // The unwind entries are shown with their places.
            if kind == SpecialKind::OrcUnwind {
                continue;
            }
            write!(lines, " ").expect("a string");
            for reference in &entry.references {
                let to = match reference.to {
                    Referent::Here(id, at) => place(object, (id, at)),
                    Referent::Symbol(id, addend) => {
                        format!("{}{addend:+}", object.symbol(id).name)
                    }
                    Referent::Nothing => "nothing".to_owned(),
                };
                write!(lines, " {:?} {to}", reference.role).expect("a string");
            }
            match kind {
                SpecialKind::OrcUnwindIp => {
                    let n = entry.offset as usize / 4 * 6;
                    let id = object.section_named(".orc_unwind").expect("a pair");
                    let orc = &object.section(id).data[n..n + 6];
                    let sp = i16::from_le_bytes([orc[0], orc[1]]);
                    writeln!(lines, " sp {sp} flags {:#x}", orc[4]).expect("a string");
                }
                _ => writeln!(lines, " {:?}", entry.data).expect("a string"),
            }
        }
        if !lines.is_empty() {
            write!(shown, "{}:\n{lines}", section.name).expect("a string");
        }
    }
    shown
}

/// The object's own code without the runtime, which is in a file of its own.
fn own_code(object: &Object<'_>) -> String {
    let all = listing::all(object);
    all.split("section .twin.text")
        .next()
        .unwrap_or("")
        .to_owned()
}

/// Relocations of data.
fn data(object: &Object<'_>) -> String {
    let mut shown = String::new();
    for (_, section) in object.sections() {
        if section.is_code() || special::kind_of(&section.name).is_some() {
            continue;
        }
        for r in &section.relocations {
            let to = elf_loader::resolve_target(object, r).expect("a place in this object");
            let to = place(object, to);
            writeln!(shown, "{}+{:#x} -> {to}", section.name, r.offset).expect("a string");
        }
    }
    shown
}

fn written(object: &Object<'_>) -> Vec<u8> {
    elf_loader::write(object).expect("a writable object")
}

fn verified(object: &Object<'_>) -> Result<(), Violations> {
    let contract = Contract::of(svm_verify::Target::Linux).with(svm_verify::Scheme::Stlb);
    svm_verify::verify(object, contract).map(|_| ())
}

fn emitted(fixture: &Fixture) -> Vec<Section> {
    let rewritten = try_rewrite(&fixture.assemble())
        .unwrap_or_else(|refusals| panic!("it is refused: {}", refusals[0]));
    let bytes = written(&rewritten.object);
    let object = elf_loader::read(&bytes).expect("a readable object");
    verified(&object).unwrap_or_else(|violations| panic!("{violations:#?}"));
    vec![
        Section::new("code", own_code(&object)),
        Section::new("tables", tables(&object)),
        Section::new("data", data(&object)),
    ]
}

/// What is refused by the rewriter, or stays as it is and is refused by the verifier.
fn refused(fixture: &Fixture) -> Vec<Section> {
    let lines = match try_rewrite(&fixture.assemble()) {
        Err(refusals) => Section::of_lines("refused", &refusals),
        Ok(rewritten) => {
            let bytes = written(&rewritten.object);
            let object = elf_loader::read(&bytes).expect("a readable object");
            let violations = verified(&object).expect_err("a refusal");
            Section::of_lines("refused", &violations.list)
        }
    };
    vec![lines]
}

/// What the kernel expects at a place that a table names.
fn is_expected(kind: SpecialKind, role: FieldRole, bytes: &[u8]) -> bool {
    let starts = |patterns: &[&[u8]]| patterns.iter().any(|p| bytes.starts_with(p));
    match (kind, role) {
        (SpecialKind::McountLoc, _) => starts(&[&[0xe8]]),
        (SpecialKind::SmpLocks, _) => starts(&[&[0xf0]]),
        // A call or jump, perhaps conditional, perhaps with a segment prefix.
        (SpecialKind::RetpolineSites, _) => {
            starts(&[&[0xe8], &[0xe9], &[0x0f], &[0x2e, 0xe8], &[0x2e, 0xe9]])
        }
        (SpecialKind::ReturnSites, _) => starts(&[&[0xe9], &[0x0f]]),
        (SpecialKind::BugTable, FieldRole::Site) => starts(&[&[0x0f, 0x0b]]),
        (SpecialKind::JumpTable, FieldRole::Site) => {
            starts(&[&[0x0f, 0x1f, 0x44, 0x00, 0x00], &[0xe9]])
        }
        (SpecialKind::StaticCallSites, FieldRole::Site) => starts(&[&[0xe8], &[0xe9]]),
        _ => true,
    }
}

/// Stock modules with all kinds of tables: e1000, and modules with the tables that it
/// lacks.
fn tables_of_stock_modules() {
    let modules = [
        "kernel/drivers/net/ethernet/intel/e1000/e1000.ko",
        "kernel/drivers/net/ethernet/intel/ice/ice.ko",
        "kernel/net/mac80211/mac80211.ko",
        "kernel/fs/btrfs/btrfs.ko",
    ];
    for module in modules {
        let bytes = std::fs::read(filetests::kernel("modules").join(module)).expect("a module");
        let original = elf_loader::read(&bytes).expect("a module");
        let rewritten = try_rewrite(&bytes).unwrap_or_else(|r| panic!("{module}: {}", r[0]));
        let object = &rewritten.object;
        for (id, section) in object.sections() {
            let Some(kind) = special::kind_of(&section.name) else {
                continue;
            };
            let entries = special::entries(object, id).expect("tables that the kernel can read");
            if kind != SpecialKind::OrcUnwind && kind != SpecialKind::OrcUnwindIp {
                let before = special::entries(&original, id).expect("its own");
                assert!(entries.len() >= before.len(), "{module} {}", section.name);
            }
            for entry in entries {
                for reference in &entry.references {
                    let Referent::Here(id, at) = reference.to else {
                        continue;
                    };
                    let code = object.section(id);
                    if code.is_code() && at < code.size {
                        let bytes = &code.data[at as usize..];
                        assert!(
                            is_expected(kind, reference.role, bytes),
                            "{module}: {}+{:#x} names {}",
                            section.name,
                            reference.offset,
                            place(object, (id, at)),
                        );
                    }
                }
            }
        }
    }
}

/// A module is loaded by a kernel that has the original's imports: it imports nothing else,
/// and its checksums are the original's.
fn nothing_more_is_imported() {
    let path = filetests::kernel("modules/kernel/drivers/net/ethernet/8390/ne2k-pci.ko");
    let bytes = std::fs::read(path).expect("a module");
    let original = elf_loader::read(&bytes).expect("a module");
    let rewritten = try_rewrite(&bytes).expect("it is accepted").object;
    let imports = |object: &Object<'_>| {
        let symbols = object.symbols.iter();
        let undefined = symbols.filter(|s| s.place == elf_loader::Place::Undefined);
        let names = undefined.map(|s| s.name.to_string());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(imports(&rewritten), imports(&original));
    let versions = |object: &Object<'_>| {
        let id = object
            .section_named("__versions")
            .expect("it has checksums");
        object.section(id).data.to_vec()
    };
    assert_eq!(versions(&rewritten), versions(&original));
}
