//! Other Ethernet modules of the distribution in a stock kernel under QEMU, each
//! with all that it needs, all of it rewritten. `make boot` tries every card.

use qemu_tests::distribution::Distribution;
use qemu_tests::trial::{Trial, card_of};

fn works(driver: &str) {
    let card = card_of(driver);
    assert!(card.is_some(), "QEMU has a card for {driver}");
    let distribution = Distribution::stock().unwrap_or_else(|error| panic!("{error}"));
    let trial = Trial::of(driver, card);
    let outcome = trial.run(&distribution).unwrap_or_else(|e| panic!("{e}"));
    println!(
        "{driver}: {:.1} s, {:?}",
        outcome.time.as_secs_f64(),
        outcome.traced
    );
    let report = outcome.report;
    let problems = report.problems();
    assert!(problems.is_empty(), "{problems:#?} ({})", report.place);
}

/// Ports instead of memory; a module that prints nothing, so that twin has to supply the
/// versions of the runtime's imports.
#[test]
fn ne2k_pci_through_ports() {
    works("ne2k-pci");
}

/// Eight modules that call each other.
#[test]
fn virtio_net_with_its_bus() {
    works("virtio_net");
}
