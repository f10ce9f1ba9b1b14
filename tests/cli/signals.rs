//! Signals that end twin in the middle of its work. Nothing depends on time: an input is a
//! named pipe, and who has opened its other end knows that twin waits there.

use std::fs::File;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use crate::sandbox::Sandbox;

/// Starts `twin` with no signal ignored, even if these tests are run so that it is.
const DEFAULTS: [&str; 2] = ["env", "--default-signal=HUP,INT,QUIT,TERM,XCPU"];

fn twin(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = Command::new(DEFAULTS[0]);
    command
        .arg(DEFAULTS[1])
        .arg(env!("CARGO_BIN_EXE_twin"))
        .args(arguments)
        .current_dir(sandbox.path(""));
    command
}

/// Numbers of signals (signal(7)).
const SIGNALS: [(&str, i32); 5] = [
    ("HUP", 1),
    ("INT", 2),
    ("QUIT", 3),
    ("TERM", 15),
    ("XCPU", 24),
];

fn pipe(sandbox: &Sandbox, name: &str) {
    let made = Command::new("mkfifo").arg(sandbox.path(name)).status();
    assert!(made.expect("mkfifo").success());
}

fn send(signal: &str, child: &Child) {
    let kill = Command::new("kill")
        .args(["-s", signal, &child.id().to_string()])
        .status();
    assert!(kill.expect("kill").success());
}

/// Returns when the other side waits for bytes.
fn wait_for_reader(sandbox: &Sandbox, name: &str) -> File {
    let file = File::options().write(true).open(sandbox.path(name));
    file.expect("a named pipe")
}

#[test]
fn nothing_is_left_behind_and_outputs_stay_as_they_were() {
    for (signal, number) in SIGNALS {
        let sandbox = Sandbox::with_driver();
        pipe(&sandbox, "pipe.o");
        sandbox.write("r.json", "an earlier report");
        std::fs::create_dir(sandbox.path("out")).expect("a directory");
        sandbox.write("out/pipe.o", "an earlier output");
        let before = sandbox.names();
        let mut twin = twin(
            &sandbox,
            &["rewrite", "pipe.o", "-d", "out", "--report", "r.json"],
        );
        let mut twin = twin.spawn().expect("it starts");
        let writer = wait_for_reader(&sandbox, "pipe.o");
        // The report has a temporary name.
        assert_eq!(sandbox.names().len(), before.len() + 1);
        send(signal, &twin);
        let status = twin.wait().expect("it ends");
        drop(writer);
        assert_eq!(
            (status.code(), status.signal()),
            (None, Some(number)),
            "{signal}"
        );
        assert_eq!(sandbox.names(), before, "{signal}");
        assert_eq!(sandbox.read("r.json"), b"an earlier report");
        assert_eq!(sandbox.read("out/pipe.o"), b"an earlier output");
        let out = std::fs::read_dir(sandbox.path("out")).expect("a directory");
        assert_eq!(out.count(), 1, "{signal}");
    }
}

#[test]
fn a_shell_sees_128_and_the_number() {
    for (signal, number) in SIGNALS {
        let sandbox = Sandbox::new();
        pipe(&sandbox, "pipe.o");
        // The shell waits for twin, and has the number of its process.
        let script = format!(
            "{} '{}' rewrite pipe.o -o out.o & exec 3>pipe.o; kill -s {signal} $!; wait $!; \
             echo $? >status",
            DEFAULTS.join(" "),
            env!("CARGO_BIN_EXE_twin")
        );
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", &script]).current_dir(sandbox.path(""));
        let done = shell.stderr(Stdio::null()).status().expect("sh");
        assert!(done.success());
        assert_eq!(
            sandbox.read("status"),
            format!("{}\n", 128 + number).as_bytes()
        );
        assert_eq!(sandbox.names(), ["pipe.o", "status"]);
    }
}

/// The kernel sends SIGXFSZ besides. It ended twin, which left a part under another name.
#[test]
fn a_limit_on_the_size_of_files_is_a_failure_to_write() {
    let sandbox = Sandbox::with_driver();
    sandbox.write("out.o", "an earlier output");
    let before = sandbox.names();
    let script = format!(
        "ulimit -f 1; exec env --default-signal=XFSZ '{}' rewrite driver.o -o out.o",
        env!("CARGO_BIN_EXE_twin")
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &script]).current_dir(sandbox.path(""));
    let done = shell.output().expect("sh");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(said, "twin: out.o: cannot be written: File too large\n");
    assert_eq!(done.status.code(), Some(2));
    assert_eq!(sandbox.names(), before);
    assert_eq!(sandbox.read("out.o"), b"an earlier output");
}

#[test]
fn a_signal_that_was_ignored_stays_ignored() {
    let sandbox = Sandbox::with_driver();
    pipe(&sandbox, "pipe.o");
    let script = format!(
        "trap '' INT; exec '{}' rewrite pipe.o -o out.o",
        env!("CARGO_BIN_EXE_twin")
    );
    let mut shell = Command::new("sh");
    let mut twin = shell
        .args(["-c", &script])
        .current_dir(sandbox.path(""))
        .spawn()
        .expect("sh");
    let mut writer = wait_for_reader(&sandbox, "pipe.o");
    send("INT", &twin);
    writer
        .write_all(&sandbox.read("driver.o"))
        .expect("it reads");
    drop(writer);
    assert_eq!(twin.wait().expect("it ends").code(), Some(0));
    assert!(sandbox.path("out.o").exists());
}

/// The assembler waits for an included file while twin is ended.
#[test]
fn directories_between_two_steps_are_removed() {
    for (signal, number) in SIGNALS {
        let sandbox = Sandbox::new();
        pipe(&sandbox, "included.s");
        std::fs::create_dir(sandbox.path("tmp")).expect("a directory");
        let included = sandbox.path("included.s");
        sandbox.write(
            "driver.s",
            format!("\t.include \"{}\"\n", included.display()),
        );
        let mut twin = twin(&sandbox, &["rewrite", "driver.s", "-o", "out.o"]);
        let mut twin = twin
            .env("TMPDIR", sandbox.path("tmp"))
            .spawn()
            .expect("it starts");
        let writer = wait_for_reader(&sandbox, "included.s");
        let scratch = || {
            std::fs::read_dir(sandbox.path("tmp"))
                .expect("a directory")
                .count()
        };
        assert!(scratch() > 0);
        send(signal, &twin);
        let status = twin.wait().expect("it ends");
        assert_eq!(status.signal(), Some(number));
        let left: Vec<_> = std::fs::read_dir(sandbox.path("tmp"))
            .expect("a directory")
            .collect();
        assert!(left.is_empty(), "{left:?}");
        drop(writer);
        assert!(!sandbox.path("out.o").exists());
    }
}

/// A compiler waits for an included file while `twin cc` is ended: the compiler ends, too.
#[test]
fn a_compiler_and_its_files_do_not_stay() {
    for (signal, number) in SIGNALS {
        let sandbox = Sandbox::new();
        pipe(&sandbox, "included.h");
        std::fs::create_dir(sandbox.path("tmp")).expect("a directory");
        sandbox.write("x.c", "#include \"included.h\"\n");
        let before = sandbox.names();
        let mut twin = twin(&sandbox, &["cc", "--", "gcc", "-c", "x.c"]);
        let mut twin = twin
            .env("TMPDIR", sandbox.path("tmp"))
            .spawn()
            .expect("it starts");
        let writer = wait_for_reader(&sandbox, "included.h");
        let in_tmp = || std::fs::read_dir(sandbox.path("tmp")).expect("a directory");
        assert!(in_tmp().count() > 0);
        let gcc = children(twin.id());
        assert_eq!(gcc.len(), 1);
        send(signal, &twin);
        let status = twin.wait().expect("it ends");
        assert_eq!(status.signal(), Some(number));
        assert!(!is_running(gcc[0]), "{signal}");
        let left: Vec<_> = in_tmp().collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(sandbox.names(), before);
        drop(writer);
    }
}

/// The processes that a process has started (proc(5)).
fn children(of: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{of}/task")).expect("it runs");
    let of_task = |task: std::io::Result<std::fs::DirEntry>| {
        let file = task.expect("a task").path().join("children");
        std::fs::read_to_string(file).expect("a list")
    };
    let all: String = tasks.map(of_task).collect();
    all.split_whitespace()
        .map(|id| id.parse().expect("a number"))
        .collect()
}

/// Whether a process is there and has not ended: one that nobody has reaped is `Z`.
fn is_running(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}
