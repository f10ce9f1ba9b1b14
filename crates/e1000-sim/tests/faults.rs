//! A sample of the fault campaign: `make faults` runs a thousand.

use e1000_sim::inject::campaign::{self, Options};
use e1000_sim::inject::fault::FaultKind;
use e1000_sim::inject::tally::{Column, Tally};
use e1000_sim::stages::{Stage, Stages};
use e1000_sim::transport::mailbox::SharedPages;
use process_lab::program::{Scheme, Variant};

#[path = "common/turn.rs"]
mod turn;

/// A sample of a scheme's faults: nothing but the driver stopped. Gives the counts, and
/// how many faults there were.
fn sample(scheme: Scheme) -> (SharedPages<Tally>, u64) {
    sample_of(Variant::here(scheme), "", Stages::NONE)
}

/// The same of the kinds whose name contains this.
fn sample_of(variant: Variant, only: &str, stages: Stages) -> (SharedPages<Tally>, u64) {
    let options = Options {
        faults: 5 * FaultKind::ALL.len() as u64,
        seed: 1,
        first: 0,
        only: only.to_owned(),
        unchecked: false,
        verbose: true,
        json: false,
        variant,
        stages,
    };
    let (pages, violations) =
        campaign::supervised(&options).unwrap_or_else(|error| panic!("{error}"));
    let tally = pages.get();
    println!("{}", tally.table());
    assert!(violations.is_empty(), "{violations:#?}");
    assert_eq!(tally.total(Column::Served), tally.total(Column::Injected));
    (pages, options.faults)
}

/// Faults detected by the stack protector, the call table and time limits occur.
fn all_endings_occur(tally: &Tally) {
    let ends = |kind, column| tally.count(kind, column) > 0;
    assert!(ends(FaultKind::StackCanary, Column::Detected));
    assert!(ends(FaultKind::FunctionMiddle, Column::Aborted));
    // The runtime finds each before the card uses it, and none by the card.
    assert!(ends(FaultKind::DmaAddress, Column::Aborted));
    assert!(!ends(FaultKind::DmaAddress, Column::Detected));
    for column in [
        Column::Harmless,
        Column::Aborted,
        Column::TimeLimit,
        Column::Restarts,
    ] {
        assert!(tally.total(column) > 0, "no {column:?}");
    }
}

#[test]
fn faults_in_the_drivers_data_stop_the_driver_and_nothing_else() {
    let _turn = turn::turn();
    let (pages, faults) = sample(Scheme::Stlb);
    let tally = pages.get();
    let injected = tally.total(Column::Injected);
    assert!(injected >= faults * 9 / 10, "only {injected} struck");
    assert!(tally.count(FaultKind::StackReturn, Column::Aborted) > 0);
    all_endings_occur(tally);
}

#[test]
fn nor_do_they_through_a_window() {
    let _turn = turn::turn();
    through_a_window(Scheme::Window32);
}

#[test]
fn nor_through_a_window_of_42_bits() {
    let _turn = turn::turn();
    through_a_window(Scheme::Window);
}

/// With every stage of the packet path, on a card that does nothing for packets that are sent.
#[test]
fn nor_do_they_with_all_stages() {
    let _turn = turn::turn();
    let variant = Variant::here(Scheme::Stlb);
    let (pages, faults) = sample_of(variant, "", Stages::of(Stage::ALL));
    let tally = pages.get();
    let injected = tally.total(Column::Injected);
    assert!(injected >= faults * 8 / 10, "only {injected} struck");
    all_endings_occur(tally);
}

fn through_a_window(scheme: Scheme) {
    let (pages, faults) = sample(scheme);
    let tally = pages.get();
    let injected = tally.total(Column::Injected);
    assert!(injected >= faults * 8 / 10, "only {injected} struck");
    // The driver's own stack has none.
    assert_eq!(tally.count(FaultKind::StackReturn, Column::Injected), 0);
    all_endings_occur(tally);
}

/// A pointer that is dom0's but for its upper half: a table refuses it, a window shows the page
/// that it was, and strict code notices it as often as the table.
#[test]
fn strict_code_notices_upper_halves_that_a_window_does_not() {
    let _turn = turn::turn();
    let kind = FaultKind::UpperHalf;
    let aborts = |variant| {
        let (pages, _) = sample_of(variant, kind.as_str(), Stages::NONE);
        pages.get().count(kind, Column::Aborted)
    };
    let with_a_table = aborts(Variant::here(Scheme::Stlb));
    assert!(with_a_table > 0);
    for scheme in [Scheme::Window32, Scheme::Window] {
        let plain = Variant::here(scheme);
        assert_eq!(aborts(plain), 0, "{scheme:?}");
        let strict = Variant {
            strict: true,
            ..plain
        };
        assert_eq!(aborts(strict), with_a_table, "{scheme:?}");
    }
}
