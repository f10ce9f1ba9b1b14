//! Outputs: whole or not at all, the same bytes always, wherever they go.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::process::{Command, Stdio};

use crate::bad_input::gzip;
use crate::sandbox::{Answer, DRIVER, Sandbox};

/// What `twin rewrite driver.o` makes.
fn rewritten(sandbox: &Sandbox) -> Vec<u8> {
    sandbox
        .run(&["rewrite", "driver.o", "-o", "reference.o"])
        .ok();
    sandbox.read("reference.o")
}

#[test]
fn output_replaces_an_earlier_one_and_keeps_its_mode() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("out.o", "earlier");
    fs::set_permissions(sandbox.path("out.o"), fs::Permissions::from_mode(0o640))
        .expect("own file");
    sandbox.run(&["rewrite", "driver.o", "-o", "out.o"]).ok();
    assert!(sandbox.read("out.o").starts_with(b"\x7fELF"));
    let mode = fs::metadata(sandbox.path("out.o"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    assert_eq!(sandbox.names(), ["driver.o", "out.o"]);
}

#[test]
fn output_through_a_symbolic_link_goes_where_it_leads() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("real.o", "earlier");
    std::os::unix::fs::symlink("real.o", sandbox.path("link.o")).expect("a link");
    sandbox.run(&["rewrite", "driver.o", "-o", "link.o"]).ok();
    assert!(sandbox.read("real.o").starts_with(b"\x7fELF"));
    assert!(
        fs::symlink_metadata(sandbox.path("link.o"))
            .expect("a link")
            .is_symlink()
    );
}

#[test]
fn output_through_a_link_to_nothing_makes_the_file_that_it_names() {
    let sandbox = Sandbox::with_driver();
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    std::os::unix::fs::symlink("dir/second.o", sandbox.path("first.o")).expect("a link");
    std::os::unix::fs::symlink("../real.o", sandbox.path("dir/second.o")).expect("a link");
    sandbox.run(&["rewrite", "driver.o", "-o", "first.o"]).ok();
    assert!(sandbox.read("real.o").starts_with(b"\x7fELF"));
    assert!(
        fs::symlink_metadata(sandbox.path("first.o"))
            .expect("a link")
            .is_symlink()
    );
}

#[test]
fn two_outputs_are_not_one_file_by_a_link_to_nothing() {
    let sandbox = Sandbox::with_driver();
    std::os::unix::fs::symlink("out.o", sandbox.path("r.json")).expect("a link");
    let outcome = sandbox.run(&["rewrite", "driver.o", "-o", "out.o", "--report", "r.json"]);
    let expected = "twin: r.json: both driver.o and --report would be written there; give them different names\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (2, expected));
    assert!(!sandbox.path("out.o").exists());
}

#[test]
fn two_outputs_are_not_one_file_by_a_link() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("out.o", "earlier");
    std::os::unix::fs::symlink("out.o", sandbox.path("r.json")).expect("a link");
    let outcome = sandbox.run(&["rewrite", "driver.o", "-o", "out.o", "--report", "r.json"]);
    let expected = "twin: r.json: both driver.o and --report would be written there; give them different names\n";
    assert_eq!((outcome.status, outcome.stderr.as_str()), (2, expected));
    assert_eq!(sandbox.read("out.o"), b"earlier");
}

#[test]
fn a_device_is_written_to_and_stays_a_device() {
    let sandbox = Sandbox::with_driver();
    sandbox
        .run(&["rewrite", "driver.o", "-o", "/dev/null"])
        .ok();
    assert!(
        fs::metadata("/dev/null")
            .expect("a device")
            .file_type()
            .is_char_device()
    );
}

#[test]
fn help_that_cannot_be_printed_is_a_failure() {
    let sandbox = Sandbox::new();
    for word in ["--help", "--version"] {
        let full = fs::File::options().write(true).open("/dev/full");
        let mut twin = sandbox.twin(&[word]);
        let done = twin.stdout(full.expect("a device")).output();
        let done = done.expect("it starts");
        assert_eq!(done.status.code(), Some(2), "{word}");
        assert_eq!(
            String::from_utf8_lossy(&done.stderr),
            "twin: <stdout>: cannot be written: No space left on device\n"
        );
    }
}

#[test]
fn a_report_that_cannot_be_written_fails_and_results_stay() {
    let sandbox = Sandbox::with_driver();
    let outcome = sandbox.run(&[
        "rewrite", "driver.o", "-o", "out.o", "--report", "/dev/full",
    ]);
    assert_eq!(outcome.status, 2);
    assert!(
        outcome
            .stderr
            .starts_with("twin: /dev/full: cannot be written")
    );
    sandbox.run(&["verify", "out.o"]).ok();
}

#[test]
fn the_same_bytes_at_any_number_of_jobs() {
    let sandbox = Sandbox::new();
    let names: Vec<String> = (0..12).map(|i| format!("d{i}.o")).collect();
    for (i, name) in names.iter().enumerate() {
        let more = "mov (%rsi), %rdx\nmov %rdx, (%rdi)\n".repeat(50 * (12 - i));
        sandbox.assemble(name, &DRIVER.replace("1:  ", &format!("{more}1:  ")));
    }
    let made = |jobs: &str| -> Vec<Vec<u8>> {
        let options = ["rewrite", "-j", jobs, "-d", "out", "--report", "r.json"];
        let inputs: Vec<&str> = names.iter().map(String::as_str).collect();
        sandbox.run(&[&options[..], &inputs].concat()).ok();
        let outputs = names.iter().map(|name| format!("out/{name}"));
        outputs
            .chain(["r.json".to_owned()])
            .map(|name| sandbox.read(&name))
            .collect()
    };
    let one = made("1");
    assert_eq!(one, made("2"));
    assert_eq!(one, made("7"));
}

#[test]
fn compressed_inputs() {
    let sandbox = Sandbox::with_driver();
    let expected = rewritten(&sandbox);
    let object = sandbox.read("driver.o");
    sandbox.write("g.ko.gz", gzip(&object));
    sandbox.write("x.ko.xz", xz(&object));
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    sandbox.write(
        "z.ko.zst",
        ruzstd::encoding::compress_to_vec(&object[..], level),
    );
    // By content, not by name.
    sandbox.write("plain.o", gzip(&object));
    for name in ["g.ko.gz", "x.ko.xz", "z.ko.zst", "plain.o"] {
        sandbox.run(&["rewrite", name, "-o", "out.o"]).ok();
        assert_eq!(sandbox.read("out.o"), expected, "{name}");
    }
}

/// The output's name decides, and the distributions' own tools read what is written.
#[test]
fn compressed_outputs() {
    let sandbox = Sandbox::with_driver();
    let expected = rewritten(&sandbox);
    for (ending, tool) in [("gz", "gzip"), ("xz", "xz"), ("zst", "zstd")] {
        let name = format!("out.o.{ending}");
        sandbox.run(&["rewrite", "driver.o", "-o", &name]).ok();
        let unpacked = Command::new(tool)
            .args(["-dc", &name])
            .current_dir(sandbox.path(""))
            .output()
            .expect("it is installed (make setup)");
        assert!(unpacked.status.success(), "{tool}");
        assert_eq!(unpacked.stdout, expected, "{tool}");
        sandbox.run(&["verify", &name]).ok();
        let first = sandbox.read(&name);
        sandbox.run(&["rewrite", "driver.o", "-o", &name]).ok();
        assert_eq!(sandbox.read(&name), first, "{tool}");
    }
}

#[test]
fn schemes_differ_and_both_verify() {
    let sandbox = Sandbox::with_driver();
    for scheme in ["stlb", "paper"] {
        sandbox
            .run(&["rewrite", "--scheme", scheme, "driver.o", "-o", scheme])
            .ok();
        sandbox.run(&["verify", scheme]).ok();
    }
    assert_ne!(sandbox.read("stlb"), sandbox.read("paper"));
}

#[test]
fn a_broken_pipe_is_quiet() {
    let sandbox = Sandbox::new();
    let source = DRIVER.replace(
        "1:  ",
        &format!("{}1:  ", "mov (%rsi), %rdx\n".repeat(5000)),
    );
    sandbox.assemble("long.o", &source);
    let mut command = sandbox.twin(&["explain", "long.o"]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // Read a little, then close.
    let mut start = [0; 16];
    child
        .stdout
        .take()
        .expect("a pipe")
        .read_exact(&mut start)
        .expect("a beginning");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn a_verdict_does_not_depend_on_who_reads_it() {
    let sandbox = Sandbox::with_driver();
    rewritten(&sandbox);
    Answer::unread(&mut sandbox.twin(&["verify", "reference.o"])).ok();
    for (status, failed, args) in [
        (1, "driver.o", "verify reference.o driver.o"),
        (1, "driver.o", "verify driver.o reference.o"),
        (1, "driver.o", "verify --format json driver.o"),
        (2, "missing.o", "verify --format json missing.o"),
        (2, "missing.o", "stats driver.o missing.o"),
    ] {
        let words: Vec<&str> = args.split(' ').collect();
        let answer = Answer::unread(&mut sandbox.twin(&words));
        assert_eq!(answer.status, status, "{args}: {answer}");
        assert!(answer.stderr.contains(failed), "{args}: {answer}");
    }
}

#[test]
fn an_object_into_a_broken_pipe_is_a_failure() {
    let sandbox = Sandbox::with_driver();
    // The reader is gone before twin begins; the status is that of twin.
    let script = format!(
        "mkfifo gone; {{ read go <gone; '{}' rewrite driver.o -o -; echo $? >status; }} | \
         {{ exec <&-; echo go >gone; }}",
        env!("CARGO_BIN_EXE_twin")
    );
    let mut shell = Command::new("sh");
    let done = shell
        .args(["-c", &script])
        .current_dir(sandbox.path("."))
        .output()
        .expect("sh");
    assert_eq!(
        sandbox.read("status"),
        b"2\n",
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 6);
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

/// `twin` with standard output as a shell's redirection makes it.
fn redirected(sandbox: &Sandbox, words: &str, redirection: &str) -> (Option<i32>, String) {
    let twin = sandbox.twin::<&str>(&[]);
    let line = format!("exec \"$0\" {words} {redirection}");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(line).arg(twin.get_program());
    let done = shell.current_dir(sandbox.path("")).env("NO_COLOR", "1");
    let done = done.output().expect("a shell");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    (done.status.code(), said)
}

/// Each way to print something.
const PRINTING: [&str; 16] = [
    "rewrite driver.o -o -",
    "rewrite driver.o -o out.o --report -",
    "stats driver.o",
    "stats --format json driver.o",
    "explain driver.o",
    "explain --html driver.o",
    "explain P1-window",
    "explain --codes",
    "verify reference.o",
    "verify --format json reference.o",
    "completions bash",
    "cc -- gcc -S -o - add.c",
    "run driver.o",
    "--help",
    "explain --help",
    "--version",
];

#[test]
fn output_that_nobody_can_have_is_a_failure() {
    let sandbox = Sandbox::with_driver();
    rewritten(&sandbox);
    sandbox.write("add.c", "int add(int *a) { return *a + 1; }\n");
    // Closed, open for reading only, full.
    for (to, why) in [
        (">&-", "Bad file descriptor"),
        ("1</dev/null", "Bad file descriptor"),
        (">/dev/full", "No space left on device"),
    ] {
        for words in PRINTING {
            if words == "run driver.o" && to == ">/dev/full" {
                // It is no e1000: refused before anything is printed.
                continue;
            }
            let expected = format!("twin: <stdout>: cannot be written: {why}\n");
            assert_eq!(
                redirected(&sandbox, words, to),
                (Some(2), expected),
                "{words} {to}"
            );
        }
    }
}

#[test]
fn without_a_standard_output_work_is_done_that_prints_nothing() {
    let sandbox = Sandbox::with_driver();
    let expected = rewritten(&sandbox);
    sandbox.write("add.c", "int add(int *a) { return *a + 1; }\n");
    let all_three = "<&- >&- 2>&-";
    for words in ["rewrite driver.o -o out.o", "man pages"] {
        assert_eq!(
            redirected(&sandbox, words, all_three),
            (Some(0), String::new())
        );
    }
    assert_eq!(sandbox.read("out.o"), expected);
    let compiled = redirected(&sandbox, "cc -- gcc -c -o add.o add.c", ">&-");
    assert_eq!(compiled, (Some(0), String::new()));
    assert!(sandbox.read("add.o").starts_with(b"\x7fELF"));
}

/// The compiler prints, and says itself that it cannot.
#[test]
fn a_compiler_that_cannot_print_or_read_fails() {
    let sandbox = Sandbox::new();
    sandbox.write("add.c", "int add(int *a) { return *a + 1; }\n");
    for (words, stream) in [
        ("cc -- gcc -E add.c", ">&-"),
        ("cc -- gcc -c -x c - -o add.o", "<&-"),
    ] {
        let (status, said) = redirected(&sandbox, words, stream);
        assert_eq!(status, Some(1), "{words}: {said}");
        assert!(said.contains("Bad file descriptor"), "{words}: {said}");
    }
    assert!(!sandbox.path("add.o").exists());
}

#[test]
fn input_that_is_closed_is_not_an_empty_one() {
    let sandbox = Sandbox::with_driver();
    let expected = "twin: <stdin>: Bad file descriptor\n".to_owned();
    for words in ["rewrite - -o out.o", "verify -", "stats --files-from -"] {
        let answer = redirected(&sandbox, words, "<&-");
        assert_eq!(answer, (Some(2), expected.clone()), "{words}");
    }
}
