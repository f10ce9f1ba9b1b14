//! A sample of the fault campaign: `make faults` runs a thousand.

use e1000_sim::inject::campaign::{self, Options};
use e1000_sim::inject::fault::FaultKind;
use e1000_sim::inject::tally::Column;
use process_lab::program::Variant;

#[test]
fn faults_in_the_drivers_data_stop_the_driver_and_nothing_else() {
    let options = Options {
        faults: 5 * FaultKind::ALL.len() as u64,
        seed: 1,
        first: 0,
        verbose: true,
        variant: Variant::ALL[0],
    };
    let (tally, violations) =
        campaign::supervised(&options).unwrap_or_else(|error| panic!("{error}"));
    let tally = tally.get();
    println!("{}", tally.table());
    assert!(violations.is_empty(), "{violations:#?}");
    let injected = tally.total(Column::Injected);
    assert!(
        injected >= options.faults * 9 / 10,
        "only {injected} struck"
    );
    assert_eq!(tally.total(Column::Served), injected);
    // Faults detected by the stack protector, the call table and time limits occur.
    let ends = |kind, column| tally.count(kind, column) > 0;
    assert!(ends(FaultKind::StackCanary, Column::Detected));
    assert!(ends(FaultKind::StackReturn, Column::Aborted));
    assert!(ends(FaultKind::FunctionMiddle, Column::Aborted));
    assert!(ends(FaultKind::DmaAddress, Column::Detected));
    for column in [
        Column::Harmless,
        Column::Aborted,
        Column::TimeLimit,
        Column::Restarts,
    ] {
        assert!(tally.total(column) > 0, "no {column:?}");
    }
}
