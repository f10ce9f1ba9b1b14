//! The verifier's beliefs about instructions agree with this processor: a sample.
//! `make test-exhaustive` tries all encodings.
//!
//! One test, because it handles the processor's signals of its process.

use conformance::belief;

/// One encoding in this many.
const SHARE: u64 = 400;

#[test]
fn a_sample_of_encodings_does_what_the_verifier_believes() {
    let missed = belief::wrong_beliefs_that_pass().expect("memory for instructions");
    assert_eq!(missed, [""; 0], "a wrong belief was not noticed");
    let report = belief::run(SHARE).expect("memory for instructions");
    println!("{report}");
    assert_eq!(report.wrong, 0, "{:#?}", report.described);
    assert!(report.executed > 1000, "hardly anything was executed");
}
