//! The effects that processors may have on strings copied over themselves through two
//! windows, tested on any processor. A test of the test: the code once emitted, with
//! chunks as long as the windows, must be found wrong, and today's code right.

use conformance::forms::campaign::{EXECUTIONS, Execution};
use conformance::forms::copies::Copies;
use conformance::forms::programs::{ExecutionVerdict, compare, run_object};
use filetests::Fixture;
use process_lab::program::Scheme;

/// Images of memory and registers, and states of each.
const SEEDS: u64 = 2;
const STATES: u64 = 16;

/// A copy over itself: its direction, and whether the target lies below the source.
#[derive(Clone, Copy, Debug)]
struct Overlap {
    backward: bool,
    below: bool,
}

impl Overlap {
    fn all() -> impl Iterator<Item = Overlap> {
        let each = [false, true].into_iter();
        each.flat_map(|backward| [false, true].map(|below| Overlap { backward, below }))
    }

    /// Whether the original reads again what it has written.
    fn repeats(self) -> bool {
        self.backward == self.below
    }

    fn assemble(self, fixture: &Fixture) -> Vec<u8> {
        let symbols = [("BACKWARD", self.backward), ("BELOW", self.below)];
        let symbols = symbols.map(|(name, value)| format!("--defsym={name}={}", u8::from(value)));
        filetests::assemble(&fixture.input, &symbols.each_ref().map(String::as_str))
    }
}

/// A copy, and the code that once was emitted for it.
fn fixtures() -> [Fixture; 2] {
    let fixtures = Fixture::of("replayed");
    let named = |name: &str| {
        fixtures
            .iter()
            .find(|fixture| fixture.name() == name)
            .cloned()
    };
    ["replayed/copy", "replayed/whole_chunks"].map(|name| named(name).expect("a fixture"))
}

fn replays() -> impl Iterator<Item = (Execution, u64)> {
    let replayed = EXECUTIONS
        .into_iter()
        .filter(|execution| execution.copies != Copies::Processor);
    replayed.flat_map(|execution| (0..SEEDS).map(move |seed| (execution, seed)))
}

#[test]
fn chunks_that_end_where_the_other_string_begins_are_copied_right_by_every_machine() {
    let [copied, _] = fixtures();
    for copy in Overlap::all() {
        let bytes = copy.assemble(&copied);
        let original = elf_loader::read(&bytes).expect("an object");
        for (execution, seed) in replays() {
            let verdict = run_object(&original, execution, seed, STATES).expect("machines");
            let same = matches!(verdict, ExecutionVerdict::Same { states, .. } if states == STATES as usize);
            assert!(same, "{copy:?}, {execution}: {verdict:?}");
        }
    }
}

#[test]
fn chunks_as_long_as_the_windows_are_found_wrong_by_the_fast_machine() {
    let fixtures = fixtures();
    for copy in Overlap::all() {
        let [original, whole] = fixtures.each_ref().map(|fixture| copy.assemble(fixture));
        let original = elf_loader::read(&original).expect("an object");
        let mut wrong = [0, 0];
        for (execution, seed) in
            replays().filter(|(execution, _)| execution.variant.scheme == Scheme::Stlb)
        {
            let whole = elf_loader::read(&whole).expect("an object");
            let verdict = compare(&original, whole, execution, seed, STATES).expect("machines");
            let different = match verdict {
                ExecutionVerdict::Same { .. } => false,
                ExecutionVerdict::Different(_) => true,
                other => panic!("{copy:?}, {execution}: {other:?}"),
            };
            wrong[usize::from(execution.copies == Copies::Fast)] += u64::from(different);
        }
        let what = if copy.repeats() { "repeats" } else { "moves" };
        assert_eq!(wrong, [0, SEEDS], "{copy:?}, which {what}: cautious, fast");
    }
}
