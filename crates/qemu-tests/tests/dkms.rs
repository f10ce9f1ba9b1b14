//! DKMS modules that scripts/dkms.sh left, in a stock kernel under QEMU: those that the plain
//! compiler made and those that `twin cc` made. Loaded with all that they need, which is
//! rewritten, too, for the second; those that need no hardware used; unloaded, and loaded again.
//! What the plainly compiled ones do is the measure.

use std::path::{Path, PathBuf};
use std::time::Duration;

use qemu_tests::distribution::Distribution;
use qemu_tests::report::GuestReport;
use qemu_tests::trial::Trial;
use svm_rewrite::Scheme;

const EXERCISE: &[u8] = include_bytes!("../guest/dkms.sh");

/// Below the repository's root.
const BUILT: &str = "target/dkms";

/// Modules that do not pass when they are plainly compiled: each is tried alone, so that what
/// it does to the kernel changes nothing for others. `hdaps` and `tp_smapi` import from
/// thinkpad_ec, which declines to stay loaded on another machine; `xt_DNETMAP` asks for a
/// kernel with CONFIG_NF_NAT; `xtrx` unloads with a warning of a reference count; `xt_CHAOS`
/// without DELUDE and TARPIT takes an error for a pointer.
const APART: [&str; 5] = ["hdaps", "tp_smapi", "xt_DNETMAP", "xtrx", "xt_CHAOS"];

/// gost-test tests the others of its package by names of ciphers, and asks the kernel for
/// their modes.
const LAST: [&str; 1] = ["gost_test"];
const MODES: [&str; 7] = ["ecb", "cbc", "ctr", "cfb", "ofb", "hmac", "cmac"];

/// Not a part of `make test`: the modules are built by `scripts/dkms.sh all`.
#[test]
#[ignore = "needs scripts/dkms.sh: make programs"]
fn dkms_modules_do_what_the_plainly_compiled_do() {
    let plain = built("plain");
    let rewritten = built("twin");
    let ours = rewritten.below(&format!("{BUILT}/twin"));
    assert_eq!(ours, plain.below(&format!("{BUILT}/plain")));
    assert!(!ours.is_empty());
    let together = |name: &&str| !APART.contains(name) && !LAST.contains(name);
    let mut modules = MODES.to_vec();
    modules.extend(ours.iter().copied().filter(together));
    modules.extend(LAST);

    let measure = run("dkms-plain", &plain, &modules, None);
    assert_eq!(measure.problems(), [""; 0], "{}", measure.place);
    let report = run("dkms", &rewritten, &modules, Some(Scheme::Stlb));
    assert_eq!(report.problems(), [""; 0], "{}", report.place);
    assert_eq!(verdicts(&report), verdicts(&measure));
}

/// What is tried apart fails by itself, and no step of it ends otherwise when it is rewritten.
/// Not a part of `make test`, for the same reason.
#[test]
#[ignore = "needs scripts/dkms.sh: make programs"]
fn what_is_tried_apart_fails_plainly_compiled() {
    let (plain, rewritten) = (built("plain"), built("twin"));
    for name in APART {
        let measure = run(&format!("dkms-plain-{name}"), &plain, &[name], None);
        assert!(
            !measure.problems().is_empty(),
            "{name} passes: {}",
            measure.place
        );
        let (trial, scheme) = (format!("dkms-{name}"), Some(Scheme::Stlb));
        let report = run(&trial, &rewritten, &[name], scheme);
        assert_eq!(verdicts(&report), verdicts(&measure), "{}", report.place);
    }
}

/// The stock kernel's modules and those of a way of building.
fn built(way: &str) -> Distribution {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let built: PathBuf = root.join(BUILT).join(way);
    let mut distribution = Distribution::stock().unwrap_or_else(|error| panic!("{error}"));
    distribution
        .add_below(built)
        .unwrap_or_else(|error| panic!("{error}; run scripts/dkms.sh all"));
    distribution
}

fn run(
    name: &str,
    distribution: &Distribution,
    modules: &[&str],
    scheme: Option<Scheme>,
) -> GuestReport {
    let trial = Trial {
        name: name.to_owned(),
        modules: modules.to_vec(),
        parameters: &[
            // It copies all memory there.
            ("lime", "path=/dev/null format=raw"),
            ("v4l2loopback", "card_label=twin"),
        ],
        exercise: Some(EXERCISE),
        scheme,
        limit: Duration::from_secs(1800),
        ..Trial::of("", None)
    };
    let outcome = trial
        .run(distribution)
        .unwrap_or_else(|error| panic!("{name}: {error}"));
    println!("{name}: {:.1} s", outcome.time.as_secs_f64());
    for step in &outcome.report.steps {
        let verdict = if step.ok { "ok  " } else { "FAIL" };
        println!("  {verdict} {} {}", step.name, step.text);
    }
    for complaint in outcome.report.complaints() {
        println!("  kernel: {complaint}");
    }
    outcome.report
}

/// Names of the steps, and whether each succeeded.
fn verdicts(report: &GuestReport) -> Vec<(&str, bool)> {
    let steps = report.steps.iter();
    steps.map(|step| (step.name.as_str(), step.ok)).collect()
}
