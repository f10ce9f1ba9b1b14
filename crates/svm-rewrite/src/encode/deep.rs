//! How deep sequences make the stack where the original's own frame leaves little room
//! ([`crate::analyse::flow::Flow::deep_at`]).
//!
//! What a sequence pushes follows from registers, flags, comparisons and the scheme, and only
//! the code that writes it knows it all. So the sequences are written once to see it.

use std::collections::BTreeMap;

use twin_abi::stack;

use super::Emitter;
use super::apply::{Decisions, LabelsByVariant, Sink, apply};
use super::function::FunctionWriter;
use crate::analyse::flow::Flow;
use crate::frame::FramePlace;
use crate::frame::facts::FactsBefore;
use crate::frame::variants::Variant;
use crate::lift::{FuncIdx, InstIdx};

/// The deepest place of each function that is deeper than a frame may be, and its depth in
/// bytes. `keeps_frames`: a realigned frame stays one.
pub fn too_deep(decisions: &Decisions<'_>, keeps_frames: bool) -> Vec<(InstIdx, i64)> {
    let mut rehearsal = Rehearsal {
        flow: &decisions.analysis.flow,
        keeps_frames,
        facts: decisions.facts,
        found: BTreeMap::new(),
    };
    apply(decisions, false, &mut rehearsal);
    rehearsal.found.into_values().collect()
}

/// Sees the code written, and keeps none of it.
struct Rehearsal<'d> {
    flow: &'d Flow,
    keeps_frames: bool,
    facts: &'d FactsBefore,
    /// By function.
    found: BTreeMap<u32, (InstIdx, i64)>,
}

impl Rehearsal<'_> {
    /// How deep the original's stack is at an instruction, where that is nearly too deep.
    fn original(&self, i: InstIdx, variant: Variant) -> Option<i64> {
        match self.flow.deep_at(i)?.realigned {
            Some(deepest) if self.keeps_frames => Some(deepest),
            _ => {
                let FramePlace(rsp) = self.facts.get(i, variant)?.stack_pointer()?;
                Some(-rsp)
            }
        }
    }
}

impl Sink for Rehearsal<'_> {
    const ALL_VARIANTS: bool = true;

    fn function(&mut self, writer: &mut FunctionWriter<'_, '_>, f: FuncIdx, by: &LabelsByVariant) {
        writer.emitter.notes_depths = true;
        writer.whole(f, by);
    }

    fn out_of_line(&mut self, emitter: &mut Emitter<'_>, f: FuncIdx, variant: Variant) {
        emitter.finish_stubs();
        for depth in emitter.depths.drain(..) {
            let Some(original) = self.original(depth.inst, variant) else {
                continue;
            };
            let bytes = original + 8 * depth.words;
            let deepest = self
                .found
                .get(&f.0)
                .map_or(stack::MAX_FRAME, |(_, most)| *most);
            if depth.words > 0 && bytes > deepest {
                self.found.insert(f.0, (depth.inst, bytes));
            }
        }
    }

    fn section(&mut self, _emitter: Emitter<'_>) {}
}
