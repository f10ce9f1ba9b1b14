//! `--accesses stores`: what is emitted for a module and for a program, and what the
//! verifier then proves. `tests/fixtures/stores`.
//!
//! Also for all fixtures of modules, and whole modules of the stock kernel: no more than
//! loads stays without a check.

use std::path::Path;

use elf_loader::Object;
use filetests::{Fixture, Section, assemble};
use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
};
use svm_rewrite::text::Source;
use svm_rewrite::{
    Accesses, Options, Refusal, RefusalCode, Rewritten, Scheme, Target, listing, rewrite,
};
use svm_verify::{Contract, Violations};

fn main() {
    let emitted = Fixture::tests("stores", emitted);
    let of_modules = ["stores", "linux"].into_iter().flat_map(Fixture::of);
    let only_loads = of_modules.map(|f| f.property("only loads stay", only_loads_stay));
    let rest = [
        filetests::test("only loads stay in stock modules", in_stock_modules),
        filetests::test("a hypervisor has no such code", not_for_a_hypervisor),
    ];
    filetests::run(emitted.chain(only_loads).chain(rest).collect());
}

fn options(target: Target, accesses: Accesses) -> Options {
    Options {
        accesses,
        ..Options::of(target, Scheme::Stlb)
    }
}

fn module(bytes: &[u8], accesses: Accesses) -> Result<Rewritten, Vec<Refusal>> {
    let object = elf_loader::read(bytes).expect("a readable object");
    rewrite(&object, options(Target::Linux, accesses))
}

fn verify(bytes: &[u8], accesses: Accesses) -> Result<(), Violations> {
    let object = elf_loader::read(bytes).expect("a readable object");
    let contract = Contract::of(Target::Linux).confining(accesses);
    svm_verify::verify(&object, contract).map(|_| ())
}

fn emitted(fixture: &Fixture) -> Vec<Section> {
    let of_module = module(&fixture.assemble(), Accesses::Stores);
    let of_module = of_module.unwrap_or_else(|r| panic!("it is refused: {}", r[0]));
    let bytes = elf_loader::write(&of_module.object).expect("a writable object");
    verify(&bytes, Accesses::Stores).unwrap_or_else(|violations| panic!("{violations:#?}"));
    vec![
        Section::new("linux", own_code(&of_module.object)),
        Section::new("process", program(fixture)),
    ]
}

/// The object's own code without the runtime, which is in a file of its own.
fn own_code(object: &Object<'_>) -> String {
    let all = listing::all(object);
    let own = all.split("section .twin.text").next();
    own.unwrap_or_default().to_owned()
}

/// The fixture as a program's text, or why it is none.
fn program(fixture: &Fixture) -> String {
    let (source, marked) = Source::new(fixture.input.as_bytes());
    let bytes = assemble(&marked, &[]);
    let object = elf_loader::read(&bytes).expect("an object");
    match source.rewrite(&object, options(Target::Process, Accesses::Stores)) {
        Ok(printed) => String::from_utf8(printed.text).expect("the fixtures are ASCII"),
        Err(refusals) => refusals.iter().map(|r| format!("{r}\n")).collect(),
    }
}

fn only_loads_stay(fixture: &Fixture) {
    judge(&fixture.assemble());
}

fn in_stock_modules() {
    let stock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/stock/modules/kernel");
    let mut all = 0;
    for name in [
        "drivers/net/ethernet/intel/e1000/e1000.ko",
        "fs/btrfs/btrfs.ko",
    ] {
        let path = stock.join(name);
        let bytes = std::fs::read(&path);
        all += judge(&bytes.unwrap_or_else(|e| panic!("{}: {e}; run make stock", path.display())));
    }
    assert!(all > 1000, "{all} loads");
}

/// What stays without a check is read and not written, and the full form keeps the contract
/// for stores as well. Gives how many loads stay.
fn judge(original: &[u8]) -> usize {
    let written = |accesses| {
        let rewritten = module(original, accesses).map(|r| r.object).ok()?;
        Some(elf_loader::write(&rewritten).expect("a writable object"))
    };
    // Loads may stay where the kernel may put another instruction.
    if let Some(full) = written(Accesses::All) {
        verify(&noted(&full, Accesses::Stores), Accesses::Stores).expect("full code keeps it");
        verify(&full, Accesses::Stores).expect_err("the note says otherwise");
    }
    let stores = written(Accesses::Stores).expect("it is rewritten");
    verify(&stores, Accesses::Stores).unwrap_or_else(|violations| panic!("{violations:#?}"));
    let refused = verify(&stores, Accesses::All).expect_err("it does not choose its contract");
    assert_eq!(refused.list[0].code.as_str(), "object-contract");
    let Err(violations) = verify(&noted(&stores, Accesses::All), Accesses::All) else {
        return 0;
    };
    let object = elf_loader::read(&stores).expect("a readable object");
    for violation in &violations.list {
        let section = object.section_named(&violation.section).expect("a section");
        let code = &object.section(section).data[violation.offset as usize..];
        let found = Decoder::new(64, code, DecoderOptions::NONE).decode();
        assert!(only_reads(&found), "{violation}");
    }
    violations.total
}

/// Whether an instruction writes no memory but the stack.
fn only_reads(i: &Instruction) -> bool {
    let writes = |access| !matches!(access, OpAccess::Read | OpAccess::CondRead);
    let mut factory = InstructionInfoFactory::new();
    let written = factory
        .info(i)
        .used_memory()
        .iter()
        .any(|m| writes(m.access()));
    let pushes = i.mnemonic() == Mnemonic::Push && i.op0_kind() == OpKind::Memory;
    let copies = i.is_string_instruction()
        && matches!(
            i.mnemonic(),
            Mnemonic::Movsb | Mnemonic::Movsw | Mnemonic::Movsd | Mnemonic::Movsq
        );
    // The destination of a copy is judged by the contract for stores.
    !written || pushes || copies
}

/// The object with another word in its note.
fn noted(bytes: &[u8], accesses: Accesses) -> Vec<u8> {
    let mut object = elf_loader::read(bytes).expect("a readable object");
    let note = object.section_named(".note.twin").expect("its note");
    let data = object.sections[note.0 as usize].data.to_mut();
    // Behind 20 bytes of the note's head and four words.
    data[36..40].copy_from_slice(&(accesses as u32).to_le_bytes());
    elf_loader::write(&object).expect("a writable object")
}

fn not_for_a_hypervisor() {
    let bytes = assemble(b"f: mov (%rdi),%rax\n ret\n", &[]);
    let object = elf_loader::read(&bytes).expect("a readable object");
    for scheme in Scheme::ALL {
        let options = Options {
            scheme,
            ..options(Target::Hypervisor, Accesses::Stores)
        };
        let refusals = rewrite(&object, options).expect_err("it has dom0's addresses");
        assert_eq!(refusals[0].code, RefusalCode::Options);
        assert!(
            refusals[0].to_string().contains("--target linux"),
            "{}",
            refusals[0]
        );
    }
}
