//! Modules built by kbuild with the line that the README prints, and no further argument.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sandbox::Sandbox;

/// The kernel's headers.
fn headers() -> PathBuf {
    filetests::kernel("headers")
}

/// The compiler that the kernel is made with: `gcc-12`.
fn kernels_compiler() -> String {
    let file = headers().join("include/config/auto.conf");
    let configuration = std::fs::read_to_string(file).expect("headers have it");
    let mut values = configuration.lines();
    let text = values.find_map(|line| line.strip_prefix("CONFIG_CC_VERSION_TEXT="));
    let name = text.and_then(|text| text.trim_matches('"').split(' ').next());
    name.expect("it names its compiler").to_owned()
}

/// Builds a fixture in a directory of its own; what make said.
fn built(fixture: &str, compiler: &str) -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    let from = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/kbuild")
        .join(fixture);
    for file in from.read_dir().expect("the fixture") {
        let file = file.expect("a file");
        std::fs::copy(file.path(), sandbox.path("").join(file.file_name())).expect("copied");
    }
    let output = Command::new("make")
        .arg("-C")
        .arg(headers())
        .arg(format!("M={}", sandbox.path("").display()))
        .arg(format!("CC={compiler}"))
        .arg("modules")
        // Not the job server of the make that may run this test.
        .env_remove("MAKEFLAGS")
        .output()
        .expect("make runs");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{fixture}: {said}");
    (sandbox, said)
}

fn twin(compiler: &str) -> String {
    format!(
        "{} cc --target linux -- {compiler}",
        env!("CARGO_BIN_EXE_twin")
    )
}

/// What objtool, modpost or a linker complains of.
fn complaints(said: &str) -> Vec<&str> {
    let mut lines = said.lines();
    let complains = |l: &&str| l.contains("warning") || l.contains("ERROR") || l.contains("error");
    let mut found: Vec<&str> = lines.by_ref().filter(complains).collect();
    // What kbuild says of every compiler that has another name than the kernel's.
    found.retain(|line| !line.contains("warning: the compiler differs"));
    found
}

fn is_checked(sandbox: &Sandbox, module: &str) {
    let verdict = sandbox
        .run(&["verify", "--target", "linux", "--format", "json", module])
        .ok()
        .json();
    let translated = verdict[0]["counts"]["accesses"]["translated"].as_u64();
    assert!(translated > Some(0), "{module}: {verdict}");
}

fn symbols(sandbox: &Sandbox, module: &str, name: &str) -> usize {
    let bytes = sandbox.read(module);
    let object = elf_loader::read(&bytes).expect("an object");
    object.symbols.iter().filter(|s| s.name == name).count()
}

#[test]
fn a_module_of_one_source_links_and_is_proved() {
    let (sandbox, said) = built("single", &twin(&kernels_compiler()));
    assert_eq!(complaints(&said), [""; 0], "{said}");
    is_checked(&sandbox, "hello.ko");
    has_the_kernels_forms(&sandbox, "hello.ko");
}

/// The log of the module's kernel names a refused access, and `modinfo` names what made it.
fn has_the_kernels_forms(sandbox: &Sandbox, module: &str) {
    let bytes = sandbox.read(module);
    let object = elf_loader::read(&bytes).expect("an object");
    let marks = elf_loader::modinfo::values_of_key(&object, "twin");
    assert_eq!(marks, ["0.1.0 scheme=stlb target=linux from=source"]);
    let bugs = object.section_named("__bug_table").expect("it has one");
    let entries = elf_loader::special::entries(&object, bugs).expect("of this kernel");
    let sites = entries.iter().filter_map(elf_loader::special::Entry::site);
    let of_runtime = sites.filter(|(id, _)| object.section(*id).name == ".twin.text");
    assert_eq!(of_runtime.count(), 1);
}

#[test]
fn a_module_of_several_sources_has_one_table() {
    let (sandbox, said) = built("several", &twin(&kernels_compiler()));
    assert_eq!(complaints(&said), [""; 0], "{said}");
    is_checked(&sandbox, "device.ko");
    has_the_kernels_forms(&sandbox, "device.ko");
    for name in ["twin_stlb", "twin_slow_rax"] {
        assert_eq!(symbols(&sandbox, "device.ko", name), 1, "{name}");
    }
    // objtool has made unwind entries for the slow paths of each object with code. In kernels
    // with IBT it reads the linked module: there the second object's entry points, which
    // nothing calls any more, have none, and their common parts have.
    let bytes = sandbox.read("device.ko");
    let object = elf_loader::read(&bytes).expect("an object");
    let id = object.section_named(".orc_unwind_ip").expect("it has one");
    let runtime = object.section_named(".twin.text").expect("it has one");
    let section = object.section(runtime);
    let of_runtime = |r: &&elf_loader::Relocation| {
        object.symbol(r.symbol).place == elf_loader::Place::In(runtime)
    };
    let entries = &object.section(id).relocations;
    let entries: Vec<_> = entries.iter().filter(of_runtime).collect();
    let second = |r: &&&elf_loader::Relocation| r.addend as u64 >= section.size / 2;
    assert!(entries.iter().filter(second).count() > 10);
    assert!(entries.len() > 40);
}

/// What a source is compiled to return by is what its kernel has.
#[test]
fn the_runtime_returns_as_the_source_is_compiled_to() {
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "int a(int *p) { return *p; }\n");
    // Nothing in it returns.
    sandbox.write("b.c", "int a(int *); int b(int **p) { return a(*p); }\n");
    let flags = "-O2 -mcmodel=kernel -mno-red-zone -fno-pic -fcf-protection=none \
                 -fno-asynchronous-unwind-tables -c";
    for (option, imports) in [
        ("-mfunction-return=thunk-extern", 1),
        ("-mfunction-return=keep", 0),
    ] {
        for name in ["a.c", "b.c"] {
            let mut line = vec!["cc", "--target", "linux", "--", "gcc"];
            line.extend(flags.split_whitespace());
            line.extend([option, name]);
            sandbox.run(&line).ok();
            let object = name.replace(".c", ".o");
            assert_eq!(
                symbols(&sandbox, &object, "__x86_return_thunk"),
                imports,
                "{object}"
            );
        }
        let mut command = Command::new("ld");
        command.args(["-r", "a.o", "b.o", "-o", "both.o"]);
        let status = command.current_dir(sandbox.path("")).status();
        assert!(status.expect("ld runs").success());
        sandbox.run(&["verify", "--target", "linux", "both.o"]).ok();
    }
}

/// What modpost writes for a module of that release, assembled with the module's code.
fn described(sandbox: &Sandbox, release: &str) -> crate::sandbox::Answer {
    let text = format!(
        "\t.section .modinfo,\"a\",@progbits\n\t.string \"vermagic={release} SMP mod_unload \"\n"
    );
    sandbox.write("m.mod.s", text);
    sandbox.run(&[
        "rewrite", "--target", "linux", "m.mod.s", "-o", "m.mod.twin.s",
    ])
}

#[test]
fn the_kernels_table_has_the_form_of_the_release_that_the_build_names() {
    let sandbox = Sandbox::new();
    for (release, size) in [
        ("5.10.0-46-amd64", 12),
        ("6.12.95", 12),
        ("7.3.4-amd64", 16),
    ] {
        let outcome = described(&sandbox, release);
        assert_eq!(outcome.status, 0, "{}", outcome.stderr);
        let mut command = Command::new("as");
        command.args(["m.mod.twin.s", "-o", "m.mod.o"]);
        let status = command.current_dir(sandbox.path("")).status();
        assert!(status.expect("as runs").success());
        let bytes = sandbox.read("m.mod.o");
        let object = elf_loader::read(&bytes).expect("an object");
        let bugs = object.section_named("__bug_table").expect("it has one");
        let section = object.section(bugs);
        let fields: Vec<_> = section.relocations.iter().map(|r| r.offset).collect();
        assert_eq!(
            (section.size, fields),
            (size, vec![0, size - 8]),
            "{release}"
        );
    }
    let outcome = described(&sandbox, "5.4.0-26-generic");
    assert_eq!(outcome.status, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("Linux 5.4.0-26-generic"),
        "{}",
        outcome.stderr
    );
}

/// Objects of two schemes have two kinds of checks and one table.
#[test]
fn objects_of_two_schemes_are_no_module() {
    let sandbox = Sandbox::new();
    sandbox.write("a.c", "int a(int *p) { return *p; }\n");
    sandbox.write("b.c", "int b(int *p) { return *p; }\n");
    let flags = "-O1 -mcmodel=kernel -mno-red-zone -fno-pic -fcf-protection=none \
                 -fno-asynchronous-unwind-tables -c";
    let compile = |scheme: &str, name: &str| {
        let mut line = vec!["cc", "--target", "linux", "--scheme", scheme, "--", "gcc"];
        line.extend(flags.split_whitespace());
        line.push(name);
        sandbox.run(&line).ok();
    };
    let link = |output: &str| {
        let mut command = Command::new("ld");
        command.args(["-r", "a.o", "b.o", "-o", output]);
        let status = command.current_dir(sandbox.path("")).status();
        assert!(status.expect("ld runs").success());
    };
    compile("stlb", "a.c");
    compile("stlb", "b.c");
    link("one.o");
    sandbox.run(&["verify", "--target", "linux", "one.o"]).ok();
    compile("paper", "b.c");
    link("two.o");
    let verdict = sandbox.run(&["verify", "--target", "linux", "two.o"]);
    assert_eq!(verdict.status, 1, "{}", verdict.stderr);
}
