//! Rewriting assembly text: golden files, which a person reads, and agreement with
//! rewriting objects. `tests/fixtures/source/*.s` are compilers' output
//! (`regenerate.sh`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use elf_loader::{Object, Place};
use filetests::{Fixture, Section, Trial, assemble};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use svm_rewrite::class::SiteClass;
use svm_rewrite::text::{Printed, Source};
use svm_rewrite::{Accesses, Options, Scheme, Site, Target, syntax};

fn main() {
    let mut tests: Vec<Trial> = Vec::new();
    for text in Fixture::of("source") {
        if target(&text) == Target::Linux {
            tests.push(text.property("agrees with its object", agrees_with_its_object));
        }
        tests.push(text.property("keeps the lines that stay", keeps_the_lines_that_stay));
        tests.push(text.test(rewritten));
    }
    tests.push(filetests::test(
        "lines that debuggers stop at stay so",
        lines_that_debuggers_stop_at,
    ));
    let e1000 = filetests::test(
        "e1000 is the same by text and by object",
        e1000_by_text_and_by_object,
    );
    // Needs examples/e1000/build.sh: make e1000.
    tests.push(e1000.with_ignored_flag(true));
    let dkms = filetests::test(
        "dkms packages are the same by text and by object",
        dkms_is_the_same_by_text_and_by_object,
    );
    // Needs scripts/dkms.sh: make programs.
    tests.push(dkms.with_ignored_flag(true));
    filetests::run(tests);
}

/// What a compiler's output is for.
fn target(text: &Fixture) -> Target {
    match text.name().starts_with("source/kernel") {
        true => Target::Linux,
        false => Target::Process,
    }
}

fn rewrite(text: &[u8], options: Options) -> Printed {
    let (source, marked) = Source::new(text);
    let bytes = assemble(&marked, &[]);
    let object = elf_loader::read(&bytes).expect("an object");
    let printed = source.rewrite(&object, options);
    printed.unwrap_or_else(|refusals| {
        let lines: Vec<String> = refusals.iter().map(ToString::to_string).collect();
        panic!("{}", lines.join("\n"))
    })
}

fn rewritten(text: &Fixture) -> Vec<Section> {
    let options = Options::of(target(text), Scheme::Stlb);
    let printed = rewrite(text.input.as_bytes(), options).text;
    let printed = String::from_utf8(printed).expect("the fixtures are ASCII");
    vec![Section::new("rewritten", printed)]
}

/// They are the same bytes in the same order.
fn keeps_the_lines_that_stay(text: &Fixture) {
    let options = Options::of(target(text), Scheme::Stlb);
    let printed = rewrite(text.input.as_bytes(), options).text;
    let new: Vec<&[u8]> = printed.split(|b| *b == b'\n').collect();
    let old: Vec<&[u8]> = text.input.as_bytes().split(|b| *b == b'\n').collect();
    let replaced = old.len() - in_common(&old, &new);
    let printed = String::from_utf8_lossy(&printed);
    let comments = printed.matches("# twin: ").count();
    assert!(
        replaced <= 2 * comments,
        "{replaced} lines, {comments} sites"
    );
}

/// Length of the longest common subsequence.
fn in_common(a: &[&[u8]], b: &[&[u8]]) -> usize {
    let mut row = vec![0; b.len() + 1];
    for line in a {
        let mut diagonal = 0;
        for (n, other) in b.iter().enumerate() {
            let above = row[n + 1];
            row[n + 1] = match line == other {
                true => diagonal + 1,
                false => above.max(row[n]),
            };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// The printed text assembles to the instructions that rewriting the object emits,
/// function by function, including out-of-line parts.
fn agrees_with_its_object(text: &Fixture) {
    let original = text.assemble();
    let original = elf_loader::read(&original).expect("an object");
    let schemes = Scheme::ALL.into_iter();
    let schemes = schemes.filter(|scheme| scheme.serves(target(text)));
    for (scheme, accesses) in schemes.flat_map(|s| Accesses::ALL.map(|a| (s, a))) {
        let options = Options {
            report: true,
            accesses,
            ..Options::of(Target::Linux, scheme)
        };
        let printed = rewrite(text.input.as_bytes(), options);
        let by_object = svm_rewrite::rewrite(&original, options).expect("no refusal");
        let mut sites = BTreeMap::new();
        // These two become others without an access.
        let others = |instruction: &str| instruction == "popf" || instruction.starts_with("ud1");
        let replaced = |s: &&Site| s.scheme.is_some() || others(&s.instruction);
        for site in by_object.sites.iter().filter(replaced) {
            *sites.entry(site.class).or_insert(0) += 1;
        }
        assert_eq!(printed.rewritten, sites, "site classes and counts");
        let again = assemble(&printed.text, &[]);
        let again = elf_loader::read(&again).expect("an object");
        let mut found = functions(&again);
        for (function, expected) in functions(&by_object.object) {
            let Some(found) = found.remove(&function) else {
                panic!("{function} is gone");
            };
            similar(&text.name(), &function, &expected, &found);
        }
    }
}

/// The stock driver, built from source in two ways: once rewritten as text (`twin cc`),
/// once built plainly and then rewritten as objects. Both have the same classes and
/// counts of sites in each source, and the same instructions in each function. The
/// objects are those that objtool has processed.
fn e1000_by_text_and_by_object() {
    let built = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/examples/e1000");
    let plain = |object: &Path| {
        let name = object.file_name().expect("a name");
        built.join("original").join(name)
    };
    let compared = same_by_both_ways(&built.join("report.jsonl"), plain);
    assert!(compared >= 150);
}

/// The same for DKMS packages of Debian, built twice.
fn dkms_is_the_same_by_text_and_by_object() {
    let tree = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/dkms");
    let tree = tree.canonicalize().expect("it was built");
    let plain = |object: &Path| {
        let below = object.strip_prefix(tree.join("twin"));
        tree.join("plain").join(below.expect("built there"))
    };
    let compared = same_by_both_ways(&tree.join("report.jsonl"), plain);
    assert!(compared >= 20);
}

/// Compares each source of a report of `twin cc`, whose object lies beside it, with its
/// plainly built object. How many functions there were.
fn same_by_both_ways(report: &Path, plain: impl Fn(&Path) -> PathBuf) -> usize {
    let report = std::fs::read_to_string(report).expect("it was built");
    let options = Options {
        report: true,
        ..Options::of(Target::Linux, Scheme::Stlb)
    };
    let (mut all, mut compared) = (BTreeMap::new(), 0);
    for line in report.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a line of JSON");
        let source = PathBuf::from(row["source"].as_str().expect("a path"));
        let built = source.with_extension("o");
        // What kbuild tries the compiler with; and modpost's, which has no code.
        if !built.exists() || row["instructions"] == 0 {
            continue;
        }
        let name = built.display().to_string();
        let original = linked_alone(&plain(&built));
        let original = elf_loader::read(&original).expect("an object");
        let by_object = svm_rewrite::rewrite(&original, options).expect("no refusal");
        let mut sites: BTreeMap<String, u64> = BTreeMap::new();
        // A jump through a table becomes comparisons: no address is translated.
        let is_rewritten =
            |site: &&Site| site.scheme.is_some() || site.class == SiteClass::IndirectJump;
        for site in by_object.sites.iter().filter(is_rewritten) {
            let class = serde_json::to_value(site.class).expect("a name");
            let class = class.as_str().expect("a name").to_owned();
            *sites.entry(class).or_default() += 1;
        }
        let by_text: BTreeMap<String, u64> =
            serde_json::from_value(row["rewritten"].clone()).expect("counts");
        assert_eq!(by_text, sites, "{name}: site classes and counts");
        let text = linked_alone(&built);
        let text = elf_loader::read(&text).expect("an object");
        let mut found = functions(&text);
        for (function, expected) in functions(&by_object.object) {
            let found = found.remove(&function).expect("the same functions");
            similar(&name, &function, &expected, &found);
            compared += 1;
        }
        for (class, count) in sites {
            *all.entry(class).or_insert(0) += count;
        }
    }
    println!("{all:?} in {compared} functions, alike");
    compared
}

/// An object without the sections that linking a module discards, and without debugging
/// information, which may refer to them.
fn linked_alone(path: &Path) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let output = directory.path().join("x.o");
    let status = Command::new("objcopy")
        .args([
            "--wildcard", "--strip-debug", "--remove-section", ".discard.*",
        ])
        .args([path, &output])
        .status();
    let copied = status.expect("`objcopy` is installed").success();
    assert!(copied, "{}", path.display());
    std::fs::read(&output).expect("copied")
}

fn similar(file: &str, function: &str, expected: &[String], found: &[String]) {
    for (n, (e, f)) in expected.iter().zip(found).enumerate() {
        assert_eq!(e, f, "{file}: {function}: instruction {n}");
    }
    assert_eq!(expected.len(), found.len(), "{file}: {function}");
}

/// The instructions of each function of the original's sections, as text without
/// what layout decides.
fn functions(object: &Object<'_>) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    for (_, symbol) in object.symbols() {
        let Place::In(id) = symbol.place else {
            continue;
        };
        let section = object.section(id);
        let own = section.is_code() && !section.name.starts_with(".twin");
        if symbol.kind != elf_loader::consts::STT_FUNC || !own {
            continue;
        }
        let (from, to) = (symbol.value as usize, (symbol.value + symbol.size) as usize);
        let code = &section.data[from..to];
        let decoder = Decoder::with_ip(64, code, symbol.value, DecoderOptions::NONE);
        let (mut behind_call, mut behind_trap) = (false, false);
        let mut kept = Vec::new();
        for instruction in decoder.into_iter().filter(matters) {
            let traps = instruction.mnemonic() == Mnemonic::Ud2;
            // After a call that does not return, each way stops control differently.
            let closes = behind_call && traps;
            // After the comparisons that replace a jump through a thunk, an object keeps
            // the jump, never reached: the kernel's table names it (`encode/switch.rs`).
            let is_named_only = behind_trap && is_jump_elsewhere(&instruction);
            behind_call = closes || instruction.mnemonic() == Mnemonic::Call;
            behind_trap = traps && !closes;
            if !closes && !is_named_only {
                kept.push(normal(&instruction));
            }
        }
        all.insert(symbol.name.to_string(), kept);
    }
    all
}

/// A jump whose target is a relocation's.
fn is_jump_elsewhere(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Jmp
        && instruction.op0_kind() == OpKind::NearBranch64
        && instruction.near_branch64() == instruction.next_ip()
}

/// Padding, and instructions that stop speculation or a run into padding, differ between
/// the two ways.
fn matters(instruction: &Instruction) -> bool {
    !matches!(instruction.mnemonic(), Mnemonic::Nop | Mnemonic::Int3)
}

fn normal(instruction: &Instruction) -> String {
    let mut instruction = *instruction;
    if instruction.op_count() > 0 && instruction.op0_kind() == OpKind::NearBranch64 {
        // Where it goes depends on the layout, as its length does.
        instruction.set_near_branch64(0);
    }
    if instruction.memory_base() == Register::RIP {
        instruction.set_memory_displacement64(0);
    }
    syntax::plain(&instruction)
}

/// `is_stmt` holds until another `.loc` changes it. Compilers rely on this, and
/// out-of-line parts come between.
fn lines_that_debuggers_stop_at() {
    let function = |name: &str, lines: [&str; 3]| {
        let [load, back, end] = lines;
        format!(
            "\t.globl\t{name}\n\t.type\t{name}, @function\n{name}:\n\t.cfi_startproc\n\
             \t.loc\t1 {load}\n\tmovq\t(%rdi), %rax\n\
             \t.loc\t1 {back}\n\tmovq\t(%rsi), %rcx\n\
             \t.loc\t1 {end}\n\tret\n\t.cfi_endproc\n\t.size\t{name}, .-{name}\n"
        )
    };
    let text = [
        "\t.text\n\t.file\t1 \"x.c\"\n".to_owned(),
        function("f", ["10 1 is_stmt 0", "11 1", "12 1 is_stmt 1"]),
        function("g", ["20 1", "21 1 is_stmt 0", "22 1"]),
        function("h", ["30 1", "31 1 is_stmt 1", "32 1 is_stmt 0"]),
        function("i", ["40 1", "41 1", "42 1 is_stmt 1"]),
    ]
    .concat();
    let printed = rewrite(text.as_bytes(), Options::of(Target::Process, Scheme::Stlb)).text;
    let printed = String::from_utf8(printed).expect("it was");
    // What the runtime's table is does not matter here.
    let stops = lines_to_stop_at(printed.as_bytes());
    assert_eq!(stops, lines_to_stop_at(text.as_bytes()), "{printed}");
}

/// The lines of the table that `as` makes, and whether debuggers stop there.
fn lines_to_stop_at(text: &[u8]) -> BTreeMap<u32, bool> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let object = directory.path().join("x.o");
    std::fs::write(&object, assemble(text, &[])).expect("writable");
    let run = Command::new("objdump")
        .arg("--dwarf=decodedline")
        .arg(&object)
        .output();
    let table = String::from_utf8(run.expect("`objdump` is installed").stdout).expect("ASCII");
    let mut lines = BTreeMap::new();
    for row in table.lines().filter_map(|row| row.strip_prefix("x.c")) {
        let fields: Vec<&str> = row.split_whitespace().collect();
        if let Some(Ok(line)) = fields.first().map(|line| line.parse()) {
            let stops = fields.last() == Some(&"x");
            assert_eq!(*lines.entry(line).or_insert(stops), stops, "line {line}");
        }
    }
    assert!(lines.len() >= 12, "{table}");
    lines
}
