//! `twin xen` on a dom0 that is made up, with a small driver in the place of e1000: rewritten,
//! made a payload, loaded, attached, detached.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

use crate::made_up::{self, MadeUp};
use crate::sandbox::{Answer, DRIVER, Sandbox, privileged};

const HOT: &str = ".text\n.globl hot_poll\n.type hot_poll, @function\nhot_poll:\n\
    mov (%rdi), %rax\nret\n.size hot_poll, .-hot_poll\n";
/// What `twin payload` wants of a runtime, and no more.
const RUNTIME: &str = "
        .globl twin_window, twin_stack_view, twin_window_mask, twin_import_entry, twin_call_out
        .set twin_window, 0xffff838000000000
        .set twin_stack_view, 0x48400000000
        .section .rodata
        .balign 8
twin_window_mask: .quad 0x3ffffffffff
        .text
twin_import_entry:
twin_call_out: ret
load:   ret
        .section .livepatch.hooks.load, \"a\"
        .quad load
";

struct Dom0 {
    made: MadeUp,
    sandbox: Sandbox,
}

impl Dom0 {
    fn with_driver(driver: &str) -> Dom0 {
        let made = MadeUp::with_modules(driver, ".text\nf: ret\n", HOT);
        made.write("kit/twin-xen.o", filetests::assemble(RUNTIME, &["--64"]));
        let sandbox = Sandbox::new();
        std::fs::create_dir(sandbox.path("tmp")).expect("a directory");
        Dom0 { made, sandbox }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.twin(&["xen"]);
        command.args(words).arg("--root").arg(self.made.root());
        command
            .env("TWIN_XEN", self.made.kit())
            .env("TMPDIR", self.sandbox.path("tmp"));
        command
    }

    fn twin(&self, words: &[&str]) -> Output {
        let output = self.command(words).output().expect("twin runs");
        self.no_temporary_files();
        output
    }

    fn no_temporary_files(&self) {
        let left = std::fs::read_dir(self.sandbox.path("tmp")).expect("a directory");
        assert_eq!(left.count(), 0, "temporary files");
    }

    /// Standard output of a command that succeeds.
    fn says(&self, words: &[&str]) -> String {
        let output = self.twin(words);
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{words:?}: {out}{err}");
        out.into_owned()
    }

    /// Standard error of one that is refused.
    fn refuses(&self, words: &[&str]) -> String {
        let output = self.twin(words);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

#[test]
fn a_driver_goes_into_xen_and_out_of_it() {
    let dom0 = Dom0::with_driver(DRIVER);
    let before = dom0.made.picture();
    let check = dom0.says(&["check", "eth0"]);
    assert!(
        check.ends_with("eth0 can be driven inside this Xen\n"),
        "{check}"
    );
    assert_eq!(dom0.made.picture(), before);
    let attached = dom0.says(&["attach", "eth0"]);
    assert!(
        attached.starts_with("eth0: driven inside Xen 4.17.7: a payload of "),
        "{attached}"
    );
    assert!(attached.contains("verified: confined ("), "{attached}");
    let again = dom0.refuses(&["attach", "eth0"]);
    assert!(
        again.contains("eth0 is driven inside Xen already"),
        "{again}"
    );
    let status = dom0.says(&["status"]);
    assert!(
        status.contains("2,006 sent, 3,308 received (12 of them for no guest)"),
        "{status}"
    );
    assert!(
        status.contains("300 segments of TCP in 20 of those received"),
        "{status}"
    );
    assert!(
        status.contains("4,000 on processor 0, 321 on processor 1"),
        "{status}"
    );
    let json = dom0.says(&["status", "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["interface"], "eth0");
    assert_eq!(json["xen"]["state"], "attached");
    assert_eq!(json["xen"]["interfaces"][0]["received_bytes"], 4_989_144);
    dom0.says(&["restart", "eth0"]);
    let detached = dom0.says(&["detach", "eth0"]);
    assert!(detached.contains("nothing of twin's is left"), "{detached}");
    assert_eq!(dom0.made.picture(), before);
}

#[test]
fn an_abort_is_named() {
    let dom0 = Dom0::with_driver(DRIVER);
    let dead = made_up::ATTACHED
        .replace("state 1", "state 2")
        .replace("aborts 0", "aborts 1")
        .replace("abort-what -", "abort-what a fault")
        .replace("abort-reason 0", "abort-reason 14")
        .replace("abort-at -", "abort-at e1000:e1000_intr+0x20/0x1c0 [twin]");
    dom0.made.write("root/sys/kernel/twin/status", dead);
    let status = dom0.says(&["status"]);
    let first = status.lines().next().expect("a line");
    assert_eq!(
        first,
        "eth0: ABORTED, nothing moves by the card: a fault (14) at e1000:e1000_intr+0x20/0x1c0 [twin], \
         dom0's address 0, entered at -"
    );
    assert!(status.contains("`twin xen restart eth0`"), "{status}");
}

#[test]
fn a_driver_that_is_refused_changes_nothing() {
    let dom0 = Dom0::with_driver(&privileged(1));
    let before = dom0.made.picture();
    let refused = dom0.refuses(&["attach", "eth0"]);
    assert!(
        refused.contains("e1000.ko: .text+0x0: in evil"),
        "{refused}"
    );
    assert_eq!(dom0.made.picture(), before);
}

/// dom0 lacks a symbol that the driver calls: known only once the modules are loaded.
#[test]
fn a_payload_that_cannot_be_made_leaves_nothing() {
    let dom0 = Dom0::with_driver(DRIVER);
    dom0.made
        .write("root/proc/kallsyms", "ffffffff81a00000 T startup_64\n");
    let before = dom0.made.picture();
    let refused = dom0.refuses(&["attach", "eth0"]);
    assert!(refused.contains("napi_schedule"), "{refused}");
    assert!(refused.contains("[payload-address]"), "{refused}");
    assert_eq!(dom0.made.picture(), before);
}

/// The module that is loaded is the one of its file, and both are not what was rewritten.
#[test]
fn a_module_that_was_replaced_meanwhile_is_not_used() {
    let dom0 = Dom0::with_driver(DRIVER);
    let module = format!("kit/modules/{}/twin_hot.ko", made_up::RELEASE);
    let (old, note) = (
        dom0.made.read(&module),
        dom0.made.read("root/state/note-twin_hot"),
    );
    // Another build: its build-id ends with another byte.
    let at = old.windows(note.len()).position(|bytes| bytes == note);
    let last = at.expect("the note") + note.len() - 1;
    let mut new = old;
    new[last] ^= 1;
    dom0.made.write("root/state/new-twin_hot", &new);
    dom0.made.write(
        "root/state/note-twin_hot",
        &new[last + 1 - note.len()..=last],
    );
    let before = dom0.made.picture();
    let refused = dom0.refuses(&["attach", "eth0"]);
    assert!(refused.contains("replaced meanwhile"), "{refused}");
    assert!(refused.contains("[xen-module]"), "{refused}");
    assert_eq!(dom0.made.picture(), before);
}

/// It is anybody's, and what is installed goes into the kernel and into Xen.
#[test]
fn nothing_is_taken_from_below_the_current_directory() {
    let dom0 = Dom0::with_driver(DRIVER);
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
    let path = |name: &str| folder.path().join(name);
    for name in ["bin", "target/xen"] {
        std::fs::create_dir_all(path(name)).expect("a directory");
    }
    // Not a copy: while that is written, nobody can execute it, and other tests' children
    // may have it open for longer.
    std::fs::hard_link(env!("CARGO_BIN_EXE_twin"), path("bin/twin")).expect("a link");
    std::os::unix::fs::symlink(dom0.made.kit(), path("target/xen/kit")).expect("a link");
    let mut check = Command::new(path("bin/twin"));
    check.args(["xen", "check", "--root"]).arg(dom0.made.root());
    check.current_dir(folder.path()).env_remove("TWIN_XEN");
    let output = check.output().expect("twin runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("[xen-platform]"), "{said}");
}

/// The signal comes while dom0's module is being loaded: it ends twin when all is done.
#[test]
fn a_signal_waits_until_the_system_is_whole() {
    const TERM: i32 = 15;
    let dom0 = Dom0::with_driver(DRIVER);
    let before = dom0.made.picture();
    let pipe = dom0.made.path("root/state/wait");
    let made = Command::new("mkfifo").arg(&pipe).status();
    assert!(made.expect("mkfifo").success());
    // These tests may have been started with the signal ignored.
    let attach = dom0.command(&["attach", "eth0"]);
    let mut twin = Command::new("env");
    let environment = attach
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    twin.arg("--default-signal=TERM").envs(environment);
    twin.arg(attach.get_program()).args(attach.get_args());
    let mut twin = twin.stdout(Stdio::null()).spawn().expect("twin runs");
    // Who has opened it knows that insmod waits at its other end.
    let end = std::fs::File::options().write(true).open(&pipe);
    let end = end.expect("insmod waits");
    std::fs::remove_file(&pipe).expect("a pipe");
    let kill = Command::new("kill").arg(twin.id().to_string()).status();
    assert!(kill.expect("kill").success());
    drop(end);
    assert_eq!(twin.wait().expect("it ends").signal(), Some(TERM));
    dom0.no_temporary_files();
    assert!(
        dom0.says(&["status"])
            .starts_with("eth0: driven inside Xen")
    );
    dom0.says(&["detach", "eth0"]);
    assert_eq!(dom0.made.picture(), before);
}

#[test]
fn every_condition_that_fails_is_named_at_once() {
    let dom0 = Dom0::with_driver(DRIVER);
    dom0.made.write("root/proc/cpuinfo", "flags : fpu\n");
    dom0.made.write(
        "root/state/xl-dmesg",
        "(XEN) Enabling Indirect Branch Tracking\n",
    );
    let refused = dom0.refuses(&["attach", "eth1"]);
    let codes: Vec<&str> = refused
        .lines()
        .filter_map(|line| {
            line.rsplit_once('[')
                .map(|(_, code)| code.trim_end_matches(']'))
        })
        .collect();
    assert_eq!(
        codes,
        ["xen-processor", "xen-cet", "xen-interface"],
        "{refused}"
    );
    for check in [
        &["check", "eth1"][..],
        &["check", "eth1", "--format", "json"],
    ] {
        let unread = Answer::unread(&mut dom0.command(check));
        assert_eq!(unread.status, 1, "{unread}");
    }
    let json = dom0.twin(&["check", "eth1", "--format", "json"]);
    assert_eq!(json.status.code(), Some(1));
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["works"], false);
    let checks = json["checks"].as_array().expect("checks").iter();
    let fails = checks.filter(|check| check["verdict"] == "fails");
    assert!(fails.clone().all(|check| check["remedy"].is_string()));
    assert_eq!(fails.count(), 3);
}
