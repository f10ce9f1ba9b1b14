//! Emits the sequences of an object's sites without the code between them. For assembly
//! text: there, the code between is the text itself.

use std::ops::Range;

use super::apply::{Decisions, LabelsByVariant, Sink, apply};
use super::function::{FunctionWriter, continuation, returns_at_once, runs_on};
use crate::analyse::Analysis;
use crate::analyse::class::{Callee, Class, Space};
use crate::asm::{Assembler, Label, Labels, Position};
use crate::encode::Emitter;
use crate::frame::variants::Variant;
use crate::lift::{FuncIdx, InstIdx};

/// The sequence of one instruction.
#[derive(Clone, Debug)]
pub struct SiteSequence {
    pub inst: InstIdx,
    /// Where it begins in its section's assembler.
    pub from: Position,
    /// Where it ends there.
    pub to: Position,
    pub section: u16,
    /// Labels made for it, those of its out-of-line part included.
    pub labels: Range<u32>,
}

/// An out-of-line part.
#[derive(Clone, Debug)]
pub struct Part {
    pub label: Label,
    /// Where it begins.
    pub from: Position,
    /// The instruction that it belongs to.
    pub inst: InstIdx,
}

/// The emitted code of one function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    pub section: u16,
    /// In the order of the instructions.
    pub sites: Vec<SiteSequence>,
    /// In the order of the sites.
    pub parts: Vec<Part>,
    /// Where the last part ends.
    pub parts_end: Position,
    /// What comes behind its last instruction.
    pub end: End,
}

/// What comes behind the last instruction of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Control does not come there.
    Closed,
    /// Control would run off the section, or into padding: it has to be stopped.
    Stopped,
    /// Control runs on into what follows.
    Open,
    /// Control does not come there, and the next function may not follow at once.
    Padded,
}

/// The emitted code of an object's sites.
pub struct SiteCode {
    /// One a section, not laid out.
    pub assemblers: Vec<Assembler>,
    pub labels: Labels,
    pub functions: Vec<FunctionCode>,
    /// Calls that do not return, in order, after which control has to be stopped: an
    /// out-of-line part or another function may follow.
    pub closed: Vec<InstIdx>,
    /// Whether control may come to any label, and not only by branches that name it.
    pub any_label: bool,
}

/// Emits the sites of all functions. `closes_calls` asks for [`SiteCode::closed`] and
/// [`End::Stopped`].
pub fn emit(decisions: &Decisions<'_>, closes_calls: bool) -> SiteCode {
    let analysis = decisions.analysis;
    let mut sites = Sites {
        analysis,
        closes_calls,
        assemblers: Vec::new(),
        functions: Vec::with_capacity(analysis.lifted.functions.len()),
        sites: Vec::new(),
    };
    let labels = apply(decisions, false, &mut sites);
    SiteCode {
        assemblers: sites.assemblers,
        labels,
        functions: sites.functions,
        closed: match closes_calls {
            true => calls_that_never_return(analysis),
            false => Vec::new(),
        },
        any_label: !closes_calls,
    }
}

/// What was written so far of a text.
struct Sites<'s> {
    analysis: &'s Analysis<'s>,
    closes_calls: bool,
    assemblers: Vec<Assembler>,
    functions: Vec<FunctionCode>,
    /// Those of the current function.
    sites: Vec<SiteSequence>,
}

impl Sites<'_> {
    fn end(&self, emitter: &Emitter<'_>, f: FuncIdx) -> End {
        let lifted = self.analysis.lifted;
        let function = lifted.function(f);
        let Some(last) = function.insts.clone().next_back().map(InstIdx) else {
            return End::Closed;
        };
        if emitter.pads_returns() && !emitter.is_verbatim() && returns_at_once(lifted, f) {
            return End::Padded;
        }
        let never_returns = self.analysis.flow.never_returns(last);
        if never_returns || !runs_on(self.analysis, last) {
            return End::Closed;
        }
        // A program's may be a part of a function that the linker puts together (`.init`). What
        // the kernel copies has the length that it has.
        let stays = !self.closes_calls || function.padding || emitter.is_verbatim();
        match continuation(self.analysis, f) {
            None if !stays => End::Stopped,
            _ => End::Open,
        }
    }
}

impl Sink for Sites<'_> {
    const ALL_VARIANTS: bool = false;

    fn function(&mut self, writer: &mut FunctionWriter<'_, '_>, f: FuncIdx, _: &LabelsByVariant) {
        let (lifted, plans) = (self.analysis.lifted, writer.decisions.plans);
        writer.emitter.prints = true;
        let insts = lifted.function(f).insts.clone().map(InstIdx);
        for i in insts.filter(|i| is_site(plans[i.0 as usize].class)) {
            let (from, first) = (writer.emitter.asm.here(), writer.emitter.labels.count());
            writer.emitter.begin(i, Label(i.0));
            writer.instruction(i);
            self.sites.push(SiteSequence {
                inst: i,
                from,
                to: writer.emitter.asm.here(),
                section: writer.emitter.section,
                labels: first..writer.emitter.labels.count(),
            });
        }
    }

    fn out_of_line(&mut self, emitter: &mut Emitter<'_>, f: FuncIdx, _: Variant) {
        let places = emitter.finish_stubs();
        let part = |(label, inst)| Part {
            label,
            from: emitter.labels.get(label).1,
            inst,
        };
        self.functions.push(FunctionCode {
            section: emitter.section,
            sites: std::mem::take(&mut self.sites),
            parts: places.into_iter().map(part).collect(),
            parts_end: emitter.asm.here(),
            end: self.end(emitter, f),
        });
    }

    fn section(&mut self, emitter: Emitter<'_>) {
        self.assemblers.push(emitter.asm);
    }
}

/// Whether an instruction of this class is replaced by a sequence. All others stay as
/// in the text.
fn is_site(class: Class) -> bool {
    match class {
        Class::Memory(_)
        | Class::Prefetch(_)
        | Class::BitString(_)
        | Class::Xlat
        | Class::String(..)
        | Class::PortString(..)
        | Class::PushMemory(_)
        | Class::PopMemory(_)
        | Class::Switch(_)
        | Class::Stop
        | Class::PopFlags
        | Class::TypeHash(_)
        | Class::CallIndirect(Callee::Memory(Space::Heap))
        | Class::JumpIndirect(Callee::Memory(Space::Heap)) => true,
        Class::Plain
        | Class::Stack
        | Class::Drop
        | Class::Unreached(_)
        | Class::AddressOf(_)
        | Class::Branch(_)
        | Class::CallIndirect(_)
        | Class::JumpIndirect(_)
        | Class::Return
        | Class::Trap(_)
        | Class::Port(_)
        | Class::FramePointerToStack
        | Class::Realign(_)
        | Class::Keep(_)
        | Class::KeepOwnPlace(_)
        | Class::KeepBranch(_)
        | Class::StaticNop => false,
    }
}

fn calls_that_never_return(analysis: &Analysis<'_>) -> Vec<InstIdx> {
    let insts = (0..analysis.lifted.insts.len() as u32).map(InstIdx);
    insts.filter(|i| analysis.flow.never_returns(*i)).collect()
}
