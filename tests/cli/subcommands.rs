//! The subcommands' output for a small driver, where `tests/cases` does not compare it
//! line by line.

use crate::sandbox::{Sandbox, privileged};

#[test]
fn verify_as_json() {
    let sandbox = Sandbox::with_driver();
    sandbox.run(&["rewrite", "driver.o", "-o", "out.o"]).ok();
    sandbox.write("empty.o", "");
    let outcome = sandbox.run(&["verify", "--format", "json", "out.o", "driver.o", "empty.o"]);
    assert_eq!(outcome.status, 1);
    let verdicts = outcome.json();
    let said: Vec<_> = (0..3).map(|i| verdicts[i]["verdict"].as_str()).collect();
    let expected = ["confined", "refused", "unreadable"].map(Some);
    assert_eq!(said, expected);
    for i in 0..3 {
        assert_eq!(verdicts[i]["target"], "hypervisor", "demanded, not claimed");
    }
    assert_eq!(verdicts[0]["scheme"], "stlb", "the one that was proved");
    assert!(verdicts[0]["counts"]["checks"].as_u64() > Some(0));
    assert_eq!(verdicts[1]["violations"][0]["file"].as_str(), None);
    assert!(verdicts[1]["violation_count"].as_u64() > Some(0));
    assert!(
        verdicts[2]["error"]
            .as_str()
            .is_some_and(|why| why.contains("empty"))
    );
}

#[test]
fn verify_finds_a_changed_byte() {
    let sandbox = Sandbox::with_driver();
    sandbox.run(&["rewrite", "driver.o", "-o", "out.o"]).ok();
    let mut bytes = sandbox.read("out.o");
    // `cmp $0xfff, %v` of a check asks for twice as much.
    let at = bytes
        .windows(4)
        .position(|w| w == 0xfff_u32.to_le_bytes())
        .expect("a check");
    bytes[at + 1] = 0x1f;
    sandbox.write("out.o", bytes);
    let outcome = sandbox.run(&["verify", "out.o"]);
    assert_eq!((outcome.status, outcome.text()), (1, ""));
    assert!(
        outcome.stderr.contains("out.o: P1-untranslated: .text+"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn explain_says_where_nothing_is_to_do() {
    let sandbox = Sandbox::new();
    sandbox.assemble(
        "d.o",
        ".text\n.globl f\n.type f, @function\nf: call g\n1: jmp 1b\n.size f, .-f\n",
    );
    let outcome = sandbox.run(&["explain", "d.o", "--function", "f"]).ok();
    assert_eq!(
        outcome.text(),
        "f: no site: every instruction stays as it is\n"
    );
}

/// Mnemonics of the instructions in lines of assembly, without labels and comments.
fn mnemonics<'t>(lines: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let instructions = lines.flat_map(|line| {
        let code = line.split('#').next().unwrap_or_default();
        let code = code.split_once(": ").map_or(code, |(_, code)| code);
        code.split(';')
    });
    let first = instructions.filter_map(|i| i.split_whitespace().next());
    first.filter(|m| !m.starts_with(['<', '.'])).collect()
}

#[test]
fn the_chunk_of_a_string_is_as_it_is_specified() {
    let sandbox = Sandbox::new();
    let source = ".globl f\n.type f, @function\nf: cld\n rep movsq\n ret\n.size f, .-f\n";
    sandbox.assemble("d.o", source);
    let outcome = sandbox.run(&["explain", "d.o"]).ok();
    let site = outcome
        .text()
        .split("\n\n")
        .find(|s| s.contains("rep movsq"));
    let emitted = site.expect("the site").lines().skip(1);
    let emitted = mnemonics(emitted.filter_map(|line| line.get(37..)));
    let page = include_str!("../../docs/spec/strings.md");
    let chunk = page.split("```").nth(1).expect("the fullest case");
    let specified = mnemonics(chunk.lines());
    let mut rest = emitted.iter();
    let missing = specified.iter().find(|m| !rest.any(|e| e == *m));
    assert_eq!(missing, None, "{specified:?}\n{emitted:?}");
    assert!(specified.len() > 40, "{specified:?}");
    let pushes = |list: &[&str]| list.iter().filter(|m| **m == "push").count();
    assert_eq!(pushes(&specified), pushes(&emitted));
}

#[test]
fn explain_takes_codes_in_any_case() {
    let sandbox = Sandbox::new();
    let codes = [
        "p1-untranslated", "P1-UNTRANSLATED", "elf-empty", "internal",
    ];
    let texts = codes.map(|code| sandbox.run(&["explain", code]).ok().text().to_owned());
    assert_eq!(texts[0], texts[1]);
    assert!(texts.iter().all(|text| text.contains("\nWhat to do\n")));
}

#[test]
fn options_that_do_not_go_together_are_wrong_usage() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("x.s", "nop\n");
    let commands = [
        "rewrite --target linux --scheme window driver.o -o out.o",
        "rewrite --target process --scheme window32 driver.o -o out.o",
        "rewrite --scheme window x.s -o out.s",
        "explain --target linux --scheme window driver.o",
        "verify --target linux --scheme window32 driver.o",
        "cc --target linux --scheme window -- gcc -c x.c",
        "rewrite --accesses stores driver.o -o -",
    ];
    for command in commands {
        let outcome = sandbox.run(&command.split(' ').collect::<Vec<_>>());
        assert_eq!((outcome.status, outcome.text()), (2, ""), "{command}");
        let said = &outcome.stderr;
        let expected = [
            "twin: --scheme window",
            "twin: --accesses stores is not for",
        ];
        assert!(
            expected.iter().any(|e| said.starts_with(e)) && said.contains("; use --"),
            "{command}: {said}"
        );
    }
    assert_eq!(sandbox.names(), ["driver.o", "x.s"]);
}

/// The second reader would find nothing, and blame the file.
#[test]
fn standard_input_is_read_once() {
    let sandbox = Sandbox::with_driver();
    let commands = [
        "rewrite - - -d out",
        "payload - - -o out --table table --kallsyms kallsyms --sections sections",
        "payload driver.o - -o out --table - --kallsyms kallsyms --sections sections",
        "rewrite driver.o -o out --target linux --sign - -",
    ];
    for command in commands {
        let outcome = sandbox.run(&command.split(' ').collect::<Vec<_>>());
        let once = "twin: standard input (`-`) can be read only once\n";
        assert_eq!(outcome.status, 2, "{command}");
        assert_eq!(outcome.stderr, once, "{command}");
    }
    assert_eq!(sandbox.names(), ["driver.o"]);
}

/// What to do was said of another object than this.
#[test]
fn an_object_of_a_program_is_refused_for_what_was_asked() {
    let sandbox = Sandbox::with_driver();
    let outcome = sandbox.run(&["rewrite", "--target", "process", "driver.o", "-o", "out.o"]);
    assert_eq!(outcome.status, 1);
    assert_eq!(
        outcome.stderr,
        "driver.o: programs are rewritten only as assembly text, which shows their jump tables; \
         use `twin cc` [options]; choose others, as the reason says\n"
    );
}

#[test]
fn explain_lists_every_code() {
    let sandbox = Sandbox::new();
    let list = sandbox.run(&["explain", "--codes"]).ok();
    let codes: Vec<&str> = list
        .text()
        .lines()
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|code| !code.is_empty())
        .collect();
    assert!(codes.len() > 60, "{codes:?}");
    for code in codes {
        assert!(
            sandbox
                .run(&["explain", code])
                .ok()
                .text()
                .starts_with(code)
        );
    }
}

#[test]
fn explain_prefers_a_file_to_a_code() {
    let sandbox = Sandbox::with_driver();
    std::fs::rename(sandbox.path("driver.o"), sandbox.path("machine")).expect("a new name");
    let outcome = sandbox.run(&["explain", "machine"]).ok();
    assert!(outcome.text().starts_with("poll in .text"));
}

#[test]
fn every_message_has_a_code_that_is_explained() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("empty.o", "");
    sandbox.assemble("evil.o", &privileged(1));
    sandbox.run(&[
        "rewrite", "empty.o", "evil.o", "-d", "out", "--report", "r.json",
    ]);
    let report: serde_json::Value =
        serde_json::from_slice(&sandbox.read("r.json")).expect("a report");
    let refusals = report["refusals"].as_array().expect("refusals");
    let codes: Vec<&str> = refusals.iter().filter_map(|r| r["code"].as_str()).collect();
    assert_eq!(codes, ["elf-empty", "privileged"]);
    let verdict = sandbox
        .run(&["verify", "--format", "json", "empty.o", "driver.o"])
        .json();
    assert_eq!(verdict[0]["code"], "elf-empty");
    assert_eq!(verdict[1]["violations"][0]["code"], "object-foreign");
}

#[test]
fn explain_in_colour_when_asked() {
    let sandbox = Sandbox::with_driver();
    let mut command = sandbox.twin(&["explain", "driver.o"]);
    let coloured = command
        .env_remove("NO_COLOR")
        .env("CLICOLOR_FORCE", "1")
        .output()
        .expect("it runs");
    assert!(coloured.stdout.contains(&0x1b));
    assert!(!sandbox.run(&["explain", "driver.o"]).stdout.contains(&0x1b));
}

#[test]
fn completions_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let outcome = Sandbox::new().run(&["completions", shell]).ok();
        assert!(outcome.text().contains("no-verify"), "{shell}");
    }
}

#[test]
fn manual_pages_for_every_subcommand() {
    let sandbox = Sandbox::new();
    sandbox.run(&["man", "man1"]).ok();
    let pages = [
        "", "-rewrite", "-verify", "-stats", "-explain", "-completions", "-man", "-xen",
    ];
    for page in pages {
        let text = sandbox.read(&format!("man1/twin{page}.1"));
        let text = String::from_utf8(text).expect("text");
        assert!(
            text.contains(".TH") && text.contains("Exit status"),
            "{page}"
        );
    }
    // Those of a subcommand's own are named in its page.
    let text = String::from_utf8(sandbox.read("man1/twin-xen.1")).expect("text");
    for action in ["check", "attach", "status", "detach", "restart"] {
        assert!(
            text.contains(&format!("twin\\-xen\\-{action}(1)")),
            "{action}"
        );
        sandbox.read(&format!("man1/twin-xen-{action}.1"));
    }
}

/// A file of 109 KB, of which the text had 50 MB: 1,000 calls and 1,000 loads that have a name of 16,000 bytes each, in a section
/// and a function with such names.
#[test]
fn explain_does_not_print_a_long_name_everywhere() {
    let sandbox = Sandbox::new();
    let [function, section, import] = ["f", ".text.", "g"].map(|start| {
        let rest = "long_".repeat(16_000 / 5);
        format!("{start}{rest}")
    });
    let line = |n: usize| format!("call {import}\nmov {import}+{n}(%rip),%rax\n");
    let lines: String = (0..1000).map(line).collect();
    let source = format!(
        ".section {section},\"ax\"\n.globl {function}\n.type {function},@function\n\
         {function}:\n{lines}ret\n.size {function}, .-{function}\n"
    );
    sandbox.assemble("long.o", &source);
    let whole = sandbox.run(&["explain", "long.o"]).ok();
    let one = ["explain", "long.o", "--function", &function];
    let one = sandbox.run(&one).ok();
    assert!(whole.text().contains("1,002 sites"));
    assert!(whole.text() == one.text());
    let page = sandbox.run(&["explain", "long.o", "--html"]).ok();
    let report = [
        "rewrite", "long.o", "-o", "out.o", "--report", "report.json",
    ];
    sandbox.run(&report).ok();
    for (what, bytes) in [
        ("text", whole.stdout.len()),
        ("page", page.stdout.len()),
        ("report", sandbox.read("report.json").len()),
    ] {
        assert!((1 << 20..8 << 20).contains(&bytes), "{what}: {bytes}");
    }
}
