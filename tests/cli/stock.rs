//! The stock e1000 module of Debian 12, as distributed.

use std::path::{Path, PathBuf};

use crate::sandbox::Sandbox;

/// The module: `TWIN_STOCK_E1000`, else what `make stock` leaves.
pub fn e1000() -> String {
    let path = std::env::var_os("TWIN_STOCK_E1000").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("target/stock/e1000.ko"),
        PathBuf::from,
    );
    assert!(
        path.is_file(),
        "{} is missing: run `make stock`",
        path.display()
    );
    path.to_str().expect("a UTF-8 path").to_owned()
}

#[test]
fn e1000_is_rewritten_and_verified_with_both_schemes() {
    let (sandbox, e1000) = (Sandbox::new(), e1000());
    for scheme in ["stlb", "paper"] {
        sandbox
            .run(&["rewrite", "--scheme", scheme, &e1000, "-o", "e1000.twin.o"])
            .ok();
        let verdict = sandbox
            .run(&["verify", "--format", "json", "e1000.twin.o"])
            .ok()
            .json();
        let proof = &verdict[0]["counts"];
        assert!(
            proof["instructions"].as_u64() > Some(18_000),
            "{scheme}: {proof}"
        );
        assert!(
            proof["accesses"]["translated"].as_u64() > Some(3_000),
            "{scheme}: {proof}"
        );
    }
}

#[test]
fn e1000_gives_the_same_bytes_twice() {
    let (sandbox, e1000) = (Sandbox::new(), e1000());
    for name in ["one.o", "two.o"] {
        sandbox.run(&["rewrite", &e1000, "-o", name]).ok();
    }
    assert_eq!(sandbox.read("one.o"), sandbox.read("two.o"));
}

#[test]
fn a_report_changes_no_byte_and_agrees_with_the_statistics() {
    let (sandbox, e1000) = (Sandbox::new(), e1000());
    sandbox.run(&["rewrite", &e1000, "-o", "plain.o"]).ok();
    sandbox
        .run(&["rewrite", &e1000, "-o", "told.o", "--report", "r.json"])
        .ok();
    assert_eq!(sandbox.read("plain.o"), sandbox.read("told.o"));

    let report: serde_json::Value = serde_json::from_slice(&sandbox.read("r.json")).expect("JSON");
    let sites = report["sites"].as_array().expect("a list");
    let stats = sandbox
        .run(&["stats", "--format", "json", &e1000])
        .ok()
        .json();
    for (class, count) in stats[0]["sites"].as_object().expect("an object") {
        let reported = sites
            .iter()
            .filter(|site| site["class"] == class.as_str())
            .count();
        assert_eq!(Some(reported as u64), count.as_u64(), "{class}");
    }
}

#[test]
fn e1000_statistics_are_complete() {
    let stats = Sandbox::new()
        .run(&["stats", "--format", "json", &e1000()])
        .ok()
        .json();
    let file = stats[0].as_object().expect("an object");
    let keys = [
        "file", "arch", "instructions", "functions", "text_bytes", "sites", "liveness",
    ];
    assert!(keys.iter().all(|key| file.contains_key(*key)), "{file:?}");
    let liveness = file["liveness"].as_object().expect("an object");
    assert!(liveness.contains_key("flags_live") && liveness["dead_registers"]["3+"].is_u64());
    assert!(file["sites"]["heap"].as_u64() > Some(3_000));
}

#[test]
fn explain_shows_the_receive_path() {
    let outcome = Sandbox::new()
        .run(&["explain", &e1000(), "--function", "e1000_clean_rx_irq"])
        .ok();
    for part in [
        "e1000_clean_rx_irq in .text",
        "twin_stlb+8(%r",
        "call twin_slow_r",
        "-- out of line --",
    ] {
        assert!(outcome.text().contains(part), "no {part}");
    }
}
