//! `twin run`: what it refuses, and a small real run.

use std::path::{Path, PathBuf};

use insta::assert_snapshot;
use serde_json::Value;

use crate::sandbox::{Outcome, Sandbox};

fn target(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target")
        .join(name);
    assert!(path.exists(), "{name} is missing: run `make support`");
    path
}

/// Runs with `e1000.ko` in the directory, and the support objects.
fn run(options: &[&str]) -> Outcome {
    let sandbox = Sandbox::with_driver();
    let module = std::fs::read(target("stock/e1000.ko")).expect("a module");
    sandbox.write("e1000.ko", module);
    let mut command = sandbox.twin(&[&["run"], options].concat());
    command.env("TWIN_SUPPORT", target("support"));
    Outcome::of(command.output().expect("the program runs"))
}

fn wrong(options: &[&str]) -> Outcome {
    let outcome = run(options);
    assert_eq!((outcome.status, outcome.text()), (2, ""), "{outcome}");
    outcome
}

#[test]
fn no_module() {
    assert_snapshot!(wrong(&["e100.ko"]));
}

#[test]
fn another_driver() {
    assert_snapshot!(wrong(&["driver.o"]));
}

#[test]
fn no_support_objects() {
    assert_snapshot!(wrong(&["e1000.ko", "--support", "."]));
}

#[test]
fn packets_too_short() {
    assert_snapshot!(wrong(&["e1000.ko", "--size", "59"]));
}

#[test]
fn packets_too_long() {
    assert_snapshot!(wrong(&["e1000.ko", "--size", "1515"]));
}

#[test]
fn unknown_path() {
    assert_snapshot!(wrong(&["e1000.ko", "--path", "xen"]));
}

#[test]
fn unknown_upcall() {
    assert_snapshot!(wrong(&["e1000.ko", "--upcalls", "dma_map_page"]));
}

#[test]
fn experiments_choose_their_paths() {
    assert_snapshot!(wrong(&[
        "e1000.ko",
        "--experiment",
        "fig5",
        "--path",
        "twin"
    ]));
}

#[test]
fn damaged_module() {
    let sandbox = Sandbox::new();
    sandbox.write("e1000.ko", b"\x7fELF and no more");
    assert_snapshot!(sandbox.run(&["run", "e1000.ko"]));
}

/// Every packet arrives, and the keys of the contract are there.
#[test]
fn two_paths_as_json() {
    let options = [
        "--path",
        "native,twin",
        "--packets",
        "8",
        "--format",
        "json",
    ];
    let json = run(&[&["e1000.ko"], &options[..]].concat()).ok().json();
    assert_eq!(names(&json["paths"]), ["native", "twin"]);
    for path in ["native", "twin"] {
        for way in ["tx", "rx"] {
            check_way(&json["paths"][path][way]);
        }
        assert_eq!(json["paths"][path]["upcalls_per_packet"], 0.0);
        let stlb = &json["paths"][path]["stlb"];
        assert_eq!(names(stlb), ["collisions", "hits", "misses"]);
        assert_eq!(stlb["hits"].as_u64() > Some(0), path == "twin");
    }
    let ratio = &json["ratios"]["tx"];
    assert!(ratio["driver_instructions"].as_f64() > Some(1.0), "{ratio}");
    assert!(ratio["cycles"].is_f64() && ratio["driver_cycles"].is_f64());
}

fn check_way(way: &Value) {
    let expected = [
        "bytes",
        "corrupted",
        "cycles_per_packet",
        "driver_cycles_per_packet",
        "instructions_per_packet",
        "lost",
        "packets",
    ];
    assert_eq!(names(way), expected);
    assert_eq!(way["packets"], 8);
    assert_eq!(way["bytes"], 8 * 1514);
    assert_eq!((&way["lost"], &way["corrupted"]), (&0.into(), &0.into()));
    // No driver moves a packet in a hundred instructions.
    assert!(way["instructions_per_packet"].as_f64() > Some(100.0));
}

fn names(value: &Value) -> Vec<&str> {
    let object = value.as_object().expect("an object");
    let mut names: Vec<&str> = object.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_routine_that_is_an_upcall_is_counted() {
    let options = ["--path", "twin", "--packets", "4", "--format", "json"];
    let upcalls = ["--upcalls", "napi_consume_skb", "--size", "60"];
    let json = run(&[&["e1000.ko"], &options[..], &upcalls].concat())
        .ok()
        .json();
    assert_eq!(json["upcalls"], serde_json::json!(["napi_consume_skb"]));
    // One for each packet sent, none for those received.
    assert_eq!(json["paths"]["twin"]["upcalls_per_packet"], 0.5);
    assert_eq!(json["ratios"], Value::Null);
}

#[test]
fn table_1_is_made_of_calls() {
    let sandbox = Sandbox::new();
    let module = target("stock/e1000.ko");
    let mut command = sandbox.twin(&["run", "--experiment", "table1", "--packets", "4"]);
    command.arg(&module).env("TWIN_SUPPORT", target("support"));
    let outcome = Outcome::of(command.output().expect("the program runs")).ok();
    for routine in ["dma_map_page_attrs", "napi_consume_skb", "eth_type_trans"] {
        assert!(outcome.text().contains(routine), "{}", outcome.text());
    }
    let json: Value =
        serde_json::from_slice(&sandbox.read("target/bench/results.json")).expect("JSON");
    assert_eq!(json["frames"]["paths"]["twin"]["tx"]["packets"], 4);
}
