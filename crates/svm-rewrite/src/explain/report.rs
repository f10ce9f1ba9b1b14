//! What was done at each site, for `--report` and `explain`.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::analyse::class::SiteClass;
use crate::asm::Label;
use crate::encode::apply::{Applied, Decisions};
use crate::explain::shortened;
use crate::lift::InstIdx;
use crate::lift::syntax;

/// What was done at one original instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Site {
    /// The code section that it is in, its whole name: the sites of a section share it.
    #[serde(serialize_with = "cut")]
    pub section: Arc<str>,
    /// Offset in the original section, in bytes.
    pub offset: u64,
    /// The function that it is in.
    pub function: String,
    /// The original instruction, AT&T syntax.
    pub instruction: String,
    /// Its class, as statistics count it.
    pub class: SiteClass,
    /// Scheme, if the site translates; `reuse` if an earlier translation serves.
    pub scheme: Option<&'static str>,
    /// Registers the sequence overwrites.
    pub scratch: Vec<&'static str>,
    /// Those of them that are live and spilled.
    pub spills: Vec<&'static str>,
    /// `dead`, `recomputed` or `saved`.
    pub flags: &'static str,
    /// What is done here about the function's return address: `kept`, `compared`,
    /// `restored`.
    pub return_address: Vec<&'static str>,
    /// Emitted instructions less the original one.
    pub added_instructions: i64,
    /// Bytes emitted in line, as a range of offsets in the new section.
    pub emitted: std::ops::Range<u64>,
    /// Bytes emitted out of line, as ranges of offsets in the new section.
    pub out_of_line: Vec<std::ops::Range<u64>>,
}

/// Whether an instruction of this kind goes to the window under a scheme that has one.
fn reaches_memory(kind: SiteClass) -> bool {
    use SiteClass as K;
    match kind {
        K::Stack | K::Heap | K::Global | K::Percpu | K::String | K::Bitstring | K::PushPop => true,
        K::IndirectCall | K::IndirectJump | K::PortIo | K::Sensitive | K::Other => false,
    }
}

fn cut<S: Serializer>(name: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shortened(&**name))
}

fn names(regs: &[liveness::Reg]) -> Vec<&'static str> {
    regs.iter().map(|r| r.name()).collect()
}

/// All sites in address order.
pub fn sites(decisions: &Decisions<'_>, applied: &Applied) -> Vec<Site> {
    let lifted = decisions.analysis.lifted;
    let stubs = StubRanges::new(applied, lifted.functions.len());
    let names_of_sections: Vec<Arc<str>> = lifted
        .sections
        .iter()
        .map(|code| Arc::from(&*lifted.object.section(code.id).name))
        .collect();
    let mut sites = Vec::new();
    for (f, function) in lifted
        .functions
        .iter()
        .enumerate()
        .filter(|(_, f)| !f.padding)
    {
        for i in function.insts.clone() {
            let plan = &decisions.plans[i as usize];
            let return_address = decisions.returns.at(InstIdx(i));
            let other = (!return_address.is_empty()).then_some(SiteClass::Other);
            let Some(class) = plan.class.site_class().or(other) else {
                continue;
            };
            let next = if i + 1 == function.insts.end {
                applied.ends[f]
            } else {
                Label(i + 1)
            };
            let (section, start) = applied.place(Label(i));
            let emitted = start..applied.place(next).1;
            let out_of_line = stubs.of(InstIdx(i));
            let bytes = &applied.sections[usize::from(section.0)].bytes;
            let count = |r: &std::ops::Range<u64>| {
                count_instructions(&bytes[r.start as usize..r.end as usize])
            };
            let translates = match decisions.words {
                Some(_) => reaches_memory(class),
                None => !plan.scratch.all().is_empty(),
            };
            let scheme = match plan.reuse {
                Some(_) => Some("reuse"),
                None => translates.then(|| decisions.scheme.as_str()),
            };
            sites.push(Site {
                section: Arc::clone(&names_of_sections[usize::from(section.0)]),
                offset: lifted.insts[i as usize].offset(),
                function: shortened(&*function.name).into_owned(),
                instruction: shortened(syntax::original(lifted, InstIdx(i))).into_owned(),
                class,
                scheme,
                scratch: names(plan.scratch.all()),
                spills: names(plan.scratch.spilled()),
                flags: plan.flags.as_str(),
                return_address,
                added_instructions: count(&emitted) + out_of_line.iter().map(count).sum::<i64>()
                    - 1,
                emitted,
                out_of_line,
            });
        }
    }
    sites
}

fn count_instructions(bytes: &[u8]) -> i64 {
    iced_x86::Decoder::new(64, bytes, iced_x86::DecoderOptions::NONE)
        .iter()
        .count() as i64
}

/// Where the out-of-line parts of each instruction are.
struct StubRanges {
    /// Sorted by instruction.
    ranges: Vec<(InstIdx, std::ops::Range<u64>)>,
}

impl StubRanges {
    fn new(applied: &Applied, functions: usize) -> StubRanges {
        // A part ends where the next begins, or with its function.
        let mut bounds: Vec<_> = applied
            .stubs
            .iter()
            .chain(&applied.further_variants)
            .map(|(label, _)| applied.place(*label))
            .collect();
        bounds.extend((0..functions).map(|f| applied.place(applied.function_ends[f])));
        bounds.sort();
        let mut ranges: Vec<_> = applied
            .stubs
            .iter()
            .map(|(label, inst)| {
                let at = applied.place(*label);
                let end = bounds[bounds.partition_point(|b| *b <= at)].1;
                (*inst, at.1..end)
            })
            .collect();
        ranges.sort_by_key(|(inst, range)| (*inst, range.start));
        StubRanges { ranges }
    }

    fn of(&self, i: InstIdx) -> Vec<std::ops::Range<u64>> {
        let from = self.ranges.partition_point(|(inst, _)| *inst < i);
        self.ranges[from..]
            .iter()
            .take_while(|(inst, _)| *inst == i)
            .map(|(_, r)| r.clone())
            .collect()
    }
}
