//! `twin run`: small real runs. Most refusals are in `tests/cases/run`.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use crate::sandbox::{Answer, Sandbox};
use crate::simulator::twin_run;

fn target(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("target")
        .join(name);
    assert!(path.exists(), "{name} is missing: run `make support`");
    path
}

/// Runs with `e1000.ko` in the directory, and the support objects.
fn run(options: &[&str]) -> Answer {
    twin_run();
    let sandbox = Sandbox::with_driver();
    let module = std::fs::read(target("stock/e1000.ko")).expect("a module");
    sandbox.write("e1000.ko", module);
    let mut command = sandbox.twin(&[&["run"], options].concat());
    command.env("TWIN_SUPPORT", target("support"));
    Answer::of(command.output().expect("the program runs"))
}

/// Structures of another kernel may have their fields elsewhere.
#[test]
fn a_driver_of_another_kernel() {
    twin_run();
    let sandbox = Sandbox::new();
    let mut module = std::fs::read(target("stock/e1000.ko")).expect("a module");
    let magic = module.windows(9).position(|w| w == b"vermagic=");
    let first_digit = magic.expect("vermagic") + "vermagic=".len();
    module[first_digit] = b'5';
    sandbox.write("e1000.ko", module);
    let mut command = sandbox.twin(&["run", "e1000.ko"]);
    command.env("TWIN_SUPPORT", target("support"));
    let outcome = Answer::of(command.output().expect("the program runs"));
    assert_eq!((outcome.status, outcome.text()), (2, ""), "{outcome}");
    assert!(
        outcome
            .stderr
            .contains("the driver was built for kernel 5."),
        "{outcome}"
    );
}

/// The layout of the Debian package and `make install`, without files of this source
/// tree.
#[test]
fn an_installed_program_finds_its_objects() {
    let sandbox = Sandbox::new();
    for directory in ["bin", "lib", "lib/twin"] {
        std::fs::create_dir(sandbox.path(directory)).expect("a directory");
    }
    let twin = sandbox.path("bin/twin");
    install(Path::new(env!("CARGO_BIN_EXE_twin")), &twin);
    install(twin_run(), &sandbox.path("bin/twin-run"));
    let run = |variable: Option<&str>| {
        let mut command = Command::new(&twin);
        command.args(["run", "--path", "native,twin", "--packets", "4"]);
        command.arg(target("stock/e1000.ko"));
        command.env_remove("TWIN_SUPPORT").env("NO_COLOR", "1");
        command.envs(variable.map(|value| ("TWIN_SUPPORT", value)));
        command.current_dir(sandbox.path("lib"));
        Answer::of(command.output().expect("the program runs"))
    };
    let without = run(None);
    assert_eq!((without.status, without.text()), (2, ""), "{without}");
    assert!(without.stderr.contains("`make install`"), "{without}");
    for name in ["kernel.o", "hot.o"] {
        let from = target(&format!("support/{name}"));
        std::fs::copy(from, sandbox.path(&format!("lib/twin/{name}"))).expect("an object");
    }
    // A variable that is set to nothing names no directory.
    for variable in [None, Some("")] {
        let installed = run(variable);
        assert_eq!(installed.status, 0, "{installed}");
    }
}

/// A copy that can be executed at once. It is written by a process of its own: another test that forks
/// meanwhile would keep it open for writing, and the system then refuses to execute it (ETXTBSY).
fn install(from: &Path, to: &Path) {
    let status = Command::new("install").args([from, to]).status();
    assert!(status.expect("install runs").success());
}

/// `twin` alone in a directory, with a `twin-run` that `sh` makes.
fn alone(twin_run: &str) -> Output {
    let sandbox = Sandbox::new();
    let twin = sandbox.path("twin");
    install(Path::new(env!("CARGO_BIN_EXE_twin")), &twin);
    sandbox.write("script", twin_run);
    install(&sandbox.path("script"), &sandbox.path("twin-run"));
    let mut command = Command::new(&twin);
    command.args(["run", "e1000.ko", "--packets", "4"]);
    command.env("PATH", sandbox.path("nowhere"));
    command.output().expect("the program runs")
}

#[test]
fn arguments_and_status_are_those_of_twin_run() {
    let outcome = Answer::of(alone("#!/bin/sh\necho \"$@\"\nexit 7\n"));
    assert_eq!(
        (outcome.status, outcome.text()),
        (7, "e1000.ko --packets 4\n"),
        "{outcome}"
    );
}

#[test]
fn a_signal_is_that_of_twin_run() {
    let output = alone("#!/bin/sh\nkill -TERM $$\n");
    assert_eq!(output.status.signal(), Some(15));
}

/// Every packet arrives, and the keys of the contract are there.
#[test]
fn two_paths_as_json() {
    let options = [
        "--path", "native,twin", "--packets", "8", "--format", "json",
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
    assert!(ratio["cycles_p10"].is_f64(), "{ratio}");
    // On a busy machine something may have disturbed each of the two recordings.
    let [low, high] = ["driver_cycles_p10", "driver_cycles_p90"].map(|end| {
        assert!(names(ratio).contains(&end), "{ratio}");
        &ratio[end]
    });
    assert!(low.is_f64() || low.is_null(), "{ratio}");
    assert_eq!(low.is_f64(), high.is_f64(), "{ratio}");
    // So few packets are no figure.
    for figure in [
        "cycles",
        "cycles_between",
        "driver_cycles",
        "driver_cycles_between",
    ] {
        assert!(ratio[figure].is_null(), "{ratio}");
    }
    assert!(
        names(ratio).contains(&"driver_cycles_unsubtracted"),
        "{ratio}"
    );
    let [native, twin] = ["native", "twin"].map(|path| {
        let driver = &json["paths"][path]["detail"]["tx"]["driver"];
        driver["instructions"].as_f64().expect("a number")
    });
    assert!(100.0 < native && native < twin, "{native} {twin}");
    assert!(json["processor"]["version"].is_string(), "{json}");
}

#[test]
fn parameters_of_the_driver_are_in_the_results() {
    let options = [
        "--path",
        "twin",
        "--packets",
        "8",
        "--turns",
        "0",
        "--format",
        "json",
        "--driver-args",
        "TxDescriptors=512 InterruptThrottleRate=4000",
    ];
    let json = run(&[&["e1000.ko"], &options[..]].concat()).ok().json();
    let said = "TxDescriptors=512 InterruptThrottleRate=4000";
    assert_eq!(json["driver_args"], said, "{json}");
}

fn check_way(way: &Value) {
    let expected = [
        "bytes",
        "corrupted",
        "cycles_per_packet",
        "driver_cycles_per_packet",
        "foreign",
        "instructions_per_packet",
        "lost",
        "packets",
    ];
    assert_eq!(names(way), expected);
    assert_eq!(way["packets"], 8);
    assert_eq!(way["bytes"], 8 * 1514);
    assert_eq!((&way["lost"], &way["corrupted"]), (&0.into(), &0.into()));
    assert_eq!(way["foreign"], 0);
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
    let outcome = Answer::of(command.output().expect("the program runs")).ok();
    for routine in ["dma_map_page_attrs", "napi_consume_skb", "eth_type_trans"] {
        assert!(outcome.text().contains(routine), "{}", outcome.text());
    }
    let json: Value =
        serde_json::from_slice(&sandbox.read("target/bench/results.json")).expect("JSON");
    assert_eq!(json["frames"]["paths"]["twin"]["tx"]["packets"], 4);
}

/// As `make bench`, with few packets: every figure is drawn, and its parts add up.
#[test]
fn all_experiments_leave_figures_whose_parts_add_up() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.twin(&["run", "--experiment", "all", "--output", "out"]);
    command
        // A recording has an eighth of the packets, and each of its instructions is a signal.
        .args(["--packets", "8", "--turns", "2", "--stepped", "2"])
        .args(["--guests", "2"])
        .arg(target("stock/e1000.ko"))
        .env("TWIN_SUPPORT", target("support"));
    let outcome = Answer::of(command.output().expect("the program runs")).ok();
    for name in [
        "fig5", "fig6", "fig7", "fig8", "fig10", "slowdown", "codesize",
    ] {
        let svg = sandbox.read(&format!("out/{name}.svg"));
        let svg = String::from_utf8(svg).expect("text");
        assert!(svg.starts_with("<svg") && svg.contains("native") | svg.contains("twin"));
        assert!(
            !svg.contains("NaN") && !svg.contains("inf"),
            "{name}: {svg}"
        );
    }
    assert_eq!(sandbox.read("out/results.txt"), outcome.text().as_bytes());
    for part in [
        "Figure 5", "Figure 10", "Slow-down", "Table 1", "eth_type_trans",
    ] {
        assert!(outcome.text().contains(part), "{}", outcome.text());
    }
    let json: Value = serde_json::from_slice(&sandbox.read("out/results.json")).expect("JSON");
    let list = |name: &str| json[name].as_array().expect("runs").clone();
    let (schemes, upcalls) = (list("schemes"), list("upcalls"));
    // Without BMI2, `window` is measured as it is made for any processor.
    let window = match is_x86_feature_detected!("bmi2") {
        true => "window",
        false => "window for any processor",
    };
    let names = ["stlb", "paper", "window32", window];
    assert_eq!(schemes.len() % names.len(), 0);
    for runs in [
        &schemes[..],
        &upcalls,
        &[json["frames"].clone(), json["segments"].clone()],
    ] {
        runs.iter().for_each(check_parts);
    }
    check_paths(&json["frames"]["paths"]);
    for runs in schemes.chunks(names.len()) {
        let of = |i: usize| runs[i]["ratios"]["rx"]["driver_instructions"].as_f64();
        for (run, name) in runs.iter().zip(names) {
            assert_eq!(run["scheme"].as_str(), Some(name));
            let bytes = |which: &str| run["code"][which].as_u64();
            assert!(bytes("original") < bytes("rewritten"), "{run}");
        }
        // A window costs hardly anything, one of 42 bits a little, figure 4 of the paper the
        // most.
        assert!(Some(1.0) <= of(2) && of(2) < of(0), "{runs:?}");
        assert!(of(0) < of(1), "{runs:?}");
        assert!(of(2) < of(3) && of(3) < of(0), "{runs:?}");
    }
    // Each point has one routine more, and calls dom0 no less often.
    for (number, point) in upcalls.iter().enumerate() {
        assert_eq!(point["upcalls"].as_array().map(Vec::len), Some(number));
        let calls = point["paths"]["twin"]["upcalls_per_packet"].as_f64();
        assert_eq!(calls > Some(0.0), number > 0, "{point}");
    }
}

/// Components add up to a packet's cost, in cycles and in instructions.
fn check_parts(run: &Value) {
    let paths = run["paths"].as_object().expect("paths");
    let ways = paths
        .iter()
        .flat_map(|(path, it)| ["tx", "rx"].map(|way| (path, it, way)));
    for (name, path, way) in ways.filter(|(_, path, way)| path[way].is_object()) {
        let sum = |parts: &Value| -> f64 {
            let parts = parts.as_object().expect("parts").values();
            parts.filter_map(Value::as_f64).sum()
        };
        let (flow, detail) = (&path[way], &path["detail"][way]);
        for (all, parts) in [
            ("cycles_per_packet", "cycles"),
            ("instructions_per_packet", "instructions"),
        ] {
            let all = flow[all].as_f64().expect("a number");
            let parts = sum(&detail[parts]);
            assert!(
                (all - parts).abs() <= all * 1e-6,
                "{name} {way}: {all} {parts} {detail}"
            );
        }
        assert_eq!(
            (&flow["lost"], &flow["corrupted"]),
            (&0.into(), &0.into()),
            "{name} {way}"
        );
    }
}

/// The stock driver does the same for a guest as for dom0, and cycles are assigned to the
/// component that ran.
fn check_paths(paths: &Value) {
    for way in ["tx", "rx"] {
        let of = |path: &str, what: &str, part: &str| {
            let value = paths[path]["detail"][way][what][part].as_f64();
            value.expect("a number")
        };
        let driver = |path| of(path, "instructions", "driver");
        let apart = (driver("guest") - driver("native")).abs();
        assert!(apart < driver("native") / 20.0, "{way}: {apart}");
        for part in ["hypervisor", "dom0", "guest"] {
            assert!(of("guest", "cycles", part) > 0.0, "{way} {part}");
        }
        assert!(of("dom0", "cycles", "hypervisor") > 0.0, "{way}");
        assert_eq!(of("native", "cycles", "hypervisor"), 0.0, "{way}");
    }
}
