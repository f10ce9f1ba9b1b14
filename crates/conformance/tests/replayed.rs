//! The effects that processors may have on strings copied over themselves through two
//! windows, tested on any processor. A test of the test: the code once emitted, with
//! chunks as long as the windows, must be found wrong, and today's code right.

use std::path::Path;
use std::process::Command;

use conformance::forms::campaign::{EXECUTIONS, Execution};
use conformance::forms::copies::Copies;
use conformance::forms::programs::{Verdict, compare, run_object};
use process_lab::program::Scheme;

/// Images of memory and registers, and states of each.
const SEEDS: u64 = 2;
const STATES: u64 = 16;

/// A copy over itself: its direction, and whether the target lies below the source.
#[derive(Clone, Copy, Debug)]
struct Copy {
    backward: bool,
    below: bool,
}

impl Copy {
    fn all() -> impl Iterator<Item = Copy> {
        let each = [false, true].into_iter();
        each.flat_map(|backward| [false, true].map(|below| Copy { backward, below }))
    }

    /// Whether the original reads again what it has written.
    fn repeats(self) -> bool {
        self.backward == self.below
    }

    /// Assembles a fixture for `test`.
    fn assemble(self, name: &str, test: &str) -> Vec<u8> {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/replayed");
        let stem = format!("{test}-{name}-{}-{}.o", self.backward, self.below);
        let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join(stem);
        let mut assembler = Command::new("as");
        for (symbol, value) in [("BACKWARD", self.backward), ("BELOW", self.below)] {
            let definition = format!("{symbol}={}", u8::from(value));
            assembler.arg("--defsym").arg(definition);
        }
        let source = fixtures.join(name).with_extension("s");
        let status = assembler.arg(source).arg("-o").arg(&object).status();
        assert!(status.expect("the assembler runs").success(), "{name}");
        std::fs::read(object).expect("the assembled object")
    }
}

fn replays() -> impl Iterator<Item = (Execution, u64)> {
    let replayed = EXECUTIONS
        .into_iter()
        .filter(|execution| execution.copies != Copies::Processor);
    replayed.flat_map(|execution| (0..SEEDS).map(move |seed| (execution, seed)))
}

#[test]
fn chunks_that_end_where_the_other_string_begins_are_copied_right_by_every_machine() {
    for copy in Copy::all() {
        let bytes = copy.assemble("copy", "right");
        let original = elf_loader::read(&bytes).expect("an object");
        for (execution, seed) in replays() {
            let verdict = run_object(&original, execution, seed, STATES).expect("machines");
            let same = matches!(verdict, Verdict::Same { states, .. } if states == STATES as usize);
            assert!(same, "{copy:?}, {execution}: {verdict:?}");
        }
    }
}

#[test]
fn chunks_as_long_as_the_windows_are_found_wrong_by_the_fast_machine() {
    for copy in Copy::all() {
        let [original, whole] = ["copy", "whole_chunks"].map(|name| copy.assemble(name, "wrong"));
        let original = elf_loader::read(&original).expect("an object");
        let mut wrong = [0, 0];
        for (execution, seed) in
            replays().filter(|(execution, _)| execution.variant.scheme == Scheme::Stlb)
        {
            let whole = elf_loader::read(&whole).expect("an object");
            let verdict = compare(&original, whole, execution, seed, STATES).expect("machines");
            let different = match verdict {
                Verdict::Same { .. } => false,
                Verdict::Different(_) => true,
                other => panic!("{copy:?}, {execution}: {other:?}"),
            };
            wrong[usize::from(execution.copies == Copies::Fast)] += u64::from(different);
        }
        let what = if copy.repeats() { "repeats" } else { "moves" };
        assert_eq!(wrong, [0, SEEDS], "{copy:?}, which {what}: cautious, fast");
    }
}
