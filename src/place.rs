//! Where in the original a place of its result comes from, by `.twin.map`.

use command_line::failure::Failure;
use command_line::input::Input;
use elf_loader::{Object, SectionId};
use svm_rewrite::Refusal;
use twin_abi::sections;

/// What the verifier has the result refused for, at the places of the input that it was made from.
pub fn in_original(failure: Failure, input: &Input, result: &[u8]) -> Failure {
    let (Ok(original), Ok(result)) = (input.object(), elf_loader::read(result)) else {
        return failure;
    };
    match failure {
        Failure::Refused { file, refusals } => {
            let refusals = refusals.into_iter();
            let refusals = refusals.map(|refusal| moved(refusal, &original, &result));
            Failure::Refused {
                file,
                refusals: refusals.collect(),
            }
        }
        other => other,
    }
}

/// One outside of the rewritten code is given back as it is: tables of the kernel's keep their places.
fn moved(mut refusal: Refusal, original: &Object<'_>, result: &Object<'_>) -> Refusal {
    let Some(rows) = Rows::of(result, &refusal.section) else {
        return refusal;
    };
    refusal.offset = rows.original(refusal.offset);
    svm_rewrite::refusal_at(original, &refusal).unwrap_or(refusal)
}

/// The rows of one section: offset in the result, offset in the original, in order.
struct Rows(Vec<(u64, u64)>);

impl Rows {
    /// `None` if the section has none, or if another one has its name, too.
    fn of(result: &Object<'_>, name: &str) -> Option<Rows> {
        let section = result.section_named(name)?;
        let mut all = result.sections();
        if all.any(|(id, other)| id != section && other.name == name) {
            return None;
        }
        let map = &result.section(result.section_named(sections::MAP)?).data;
        let (entries, _) = map.as_chunks::<{ sections::MAP_ENTRY }>();
        let entries = entries.iter().map(words);
        let own = entries.filter(|[id, ..]| SectionId(*id) == section);
        let rows: Vec<_> = own.map(|[_, at, from]| (at.into(), from.into())).collect();
        (!rows.is_empty()).then_some(Rows(rows))
    }

    /// A row holds until the next. Before the first one nothing was moved.
    fn original(&self, offset: u64) -> u64 {
        let behind = self.0.partition_point(|(at, _)| *at <= offset);
        behind.checked_sub(1).map_or(offset, |row| self.0[row].1)
    }
}

fn words(entry: &[u8; sections::MAP_ENTRY]) -> [u32; 3] {
    let (words, _) = entry.as_chunks();
    [words[0], words[1], words[2]].map(u32::from_le_bytes)
}
