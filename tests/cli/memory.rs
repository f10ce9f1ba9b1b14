//! Less memory than the work needs: a message and a status, not an abort, and no output.

use std::process::Command;

use crate::sandbox::Sandbox;
use crate::stock;

/// More addresses than rewriting takes, in KiB.
const ENOUGH: u64 = 1 << 22;

#[test]
fn without_memory_it_says_so_and_leaves_nothing() {
    let (mut refused, mut limit) = (0, 16 << 10);
    loop {
        let sandbox = Sandbox::new();
        // The program itself takes some: where it cannot be loaded it says nothing.
        let script = "ulimit -v \"$1\" && \"$2\" --version >/dev/null 2>&1 || exit 77; \
                      exec \"$2\" rewrite -j 2 \"$3\" -d out";
        let ended = Command::new("sh")
            .args(["-c", script, "sh", &limit.to_string()])
            .arg(env!("CARGO_BIN_EXE_twin"))
            .arg(stock::e1000())
            .current_dir(sandbox.path(""))
            .output()
            .expect("sh");
        let said = String::from_utf8_lossy(&ended.stderr);
        match ended.status.code() {
            Some(0) => break,
            Some(77) => {}
            Some(2) => {
                refused += 1;
                assert!(
                    said.starts_with("twin: out of memory; "),
                    "{limit} KiB: {said}"
                );
                assert_eq!(said.lines().count(), 1, "{limit} KiB: {said}");
                assert!(sandbox.names().is_empty(), "{limit} KiB");
            }
            other => panic!("{limit} KiB: {other:?}: {said}"),
        }
        assert!(limit < ENOUGH, "{said}");
        limit += limit / 8;
    }
    assert!(refused > 0, "no limit was too low");
}
