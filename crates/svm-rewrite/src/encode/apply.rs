//! Acts on the plans. Only this writes code.
//!
//! Functions keep their order and sections. Each is followed by the out-of-line
//! parts of its checks, so a place in them belongs to the function by symbol.

use std::rc::Rc;

use foldhash::HashMap;
use twin_abi::Scheme;

use super::function::FunctionWriter;
use super::{Depth, Emitter, Rules, StubPlace};
use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::asm::{Assembler, Label, Labels, Laid, Position};
use crate::frame::facts::FactsBefore;
use crate::frame::variants::{Variant, Variants};
use crate::frame::words::StackWords;
use crate::lift::{CodeIdx, FuncIdx, InstIdx, Lifted};
use crate::plan::InstPlan;
use crate::plan::returns::ReturnWords;
use crate::schemes::Row;

/// The rewritten code, laid out.
pub struct Applied {
    /// One a code section, in order.
    pub sections: Vec<Laid>,
    /// Where labels are; instruction `n` has label `n` in the first variant of its function.
    pub labels: Labels,
    /// The end of each function's instructions, before its out-of-line parts.
    pub ends: Vec<Label>,
    pub function_ends: Vec<Label>,
    /// Where the out-of-line parts of first variants begin.
    pub stubs: Vec<StubPlace>,
    /// Where instructions and out-of-line parts of further variants begin, and the
    /// instructions that they were made from ([`crate::frame::variants`]).
    pub further_variants: Vec<StubPlace>,
    /// One list a section, in order: how many words are pushed from a place on.
    pub depths: Vec<Vec<Depth>>,
    /// Where accesses with a `lock` prefix are, with the number of the section.
    pub locked: Vec<(u16, InstIdx, Position)>,
    /// Where jumps through thunks are that a switch replaced, with the number of the
    /// section.
    pub thunks: Vec<(u16, InstIdx, Position)>,
    /// Whether an instruction is left out: no path comes to it.
    pub left_out: Vec<bool>,
}

impl Applied {
    /// Section and offset of a label.
    pub fn place(&self, label: Label) -> (CodeIdx, u64) {
        let (section, position) = self.labels.get(label);
        (
            CodeIdx(section),
            self.sections[usize::from(section)].offset(position),
        )
    }
}

/// The decisions about an object's code.
#[derive(Clone, Copy)]
pub struct Decisions<'d> {
    /// Results of the analyses.
    pub analysis: &'d Analysis<'d>,
    /// What the target decides about emitted code.
    pub rules: &'static Rules,
    /// How addresses are translated.
    pub scheme: Scheme,
    /// Its row.
    pub row: &'static Row,
    /// What each instruction is.
    pub classes: &'d [Class],
    /// How each instruction is treated.
    pub plans: &'d [InstPlan],
    /// Stack facts.
    pub facts: &'d FactsBefore,
    /// The variants of functions.
    pub variants: &'d Variants,
    /// Where return addresses are kept and compared.
    pub returns: &'d ReturnWords,
    /// Which stack has which words, if there are two.
    pub words: Option<&'d StackWords>,
    /// [`Rules::parts_traps`] of the object, which may have thousands of sections.
    pub parts_traps: bool,
}

impl<'d> Decisions<'d> {
    pub fn emitter<'e>(&self, labels: &'e mut Labels, section: u16) -> Emitter<'e>
    where
        'd: 'e,
    {
        let row = self.row;
        Emitter::new(
            self.analysis, self.rules, labels, section, row, self.parts_traps,
        )
    }
}

/// What becomes of the code: an object's ([`object`]), or a text's ([`super::sites`]).
pub trait Sink {
    /// Whether a function is written in all its variants; a text has only the first.
    const ALL_VARIANTS: bool;

    /// Has a variant of a function written, except its out-of-line parts.
    fn function(&mut self, writer: &mut FunctionWriter<'_, '_>, f: FuncIdx, by: &LabelsByVariant);

    /// Has the out-of-line parts written, which follow.
    fn out_of_line(&mut self, emitter: &mut Emitter<'_>, f: FuncIdx, variant: Variant);

    /// All variants of a function are written.
    fn function_end(&mut self, _emitter: &mut Emitter<'_>) {}

    /// All functions of a section are written.
    fn section(&mut self, emitter: Emitter<'_>);
}

/// Writes all code, in order. Nothing is decided here, and so nothing is refused. Gives
/// where labels are.
pub fn apply<S: Sink>(decisions: &Decisions<'_>, poison: bool, sink: &mut S) -> Labels {
    let lifted = decisions.analysis.lifted;
    let mut labels = Labels::new(lifted.insts.len());
    let by_variant = LabelsByVariant::new(lifted, decisions.variants, &mut labels);
    for section in 0..lifted.sections.len() as u16 {
        let mut emitter = decisions.emitter(&mut labels, section);
        for f in lifted.functions_of(CodeIdx(section)) {
            emitter.own_beginning = beginning(lifted, f, decisions.returns, emitter.labels);
            let variants = decisions.variants.of(f);
            for variant in variants.filter(|v| S::ALL_VARIANTS || *v == Variant::FIRST) {
                emitter.inst_labels = by_variant.of(variant);
                let mut writer = FunctionWriter {
                    emitter: &mut emitter,
                    decisions,
                    variant,
                    poison,
                };
                sink.function(&mut writer, f, &by_variant);
                sink.out_of_line(&mut emitter, f, variant);
            }
            sink.function_end(&mut emitter);
        }
        emitter.asm.forget_encodings();
        sink.section(emitter);
    }
    labels
}

/// Writes all code of an object.
pub fn object(decisions: &Decisions<'_>, poison: bool) -> Applied {
    let mut written = Written::default();
    let labels = apply(decisions, poison, &mut written);
    // --- all code is written; the rest collects the results ---
    let assemblers = (0..).zip(written.assemblers);
    let unreached = |class: &Class| matches!(class, Class::Unreached(_));
    Applied {
        sections: assemblers.map(|(n, asm)| asm.lay_out(n, &labels)).collect(),
        labels,
        ends: written.ends,
        function_ends: written.function_ends,
        stubs: written.stubs,
        further_variants: written.further_variants,
        depths: written.depths,
        locked: written.locked,
        thunks: written.thunks,
        left_out: decisions.classes.iter().map(unreached).collect(),
    }
}

/// What was written so far of an object; see [`Applied`].
#[derive(Default)]
struct Written {
    assemblers: Vec<Assembler>,
    ends: Vec<Label>,
    function_ends: Vec<Label>,
    stubs: Vec<StubPlace>,
    further_variants: Vec<StubPlace>,
    depths: Vec<Vec<Depth>>,
    thunks: Vec<(u16, InstIdx, Position)>,
    locked: Vec<(u16, InstIdx, Position)>,
}

impl Sink for Written {
    const ALL_VARIANTS: bool = true;

    fn function(&mut self, writer: &mut FunctionWriter<'_, '_>, f: FuncIdx, by: &LabelsByVariant) {
        writer.whole(f, by);
    }

    fn out_of_line(&mut self, emitter: &mut Emitter<'_>, f: FuncIdx, variant: Variant) {
        if variant == Variant::FIRST {
            self.ends.push(emitter.fresh_here());
            self.stubs.extend(emitter.finish_stubs());
        } else {
            let insts = emitter.lifted.function(f).insts.clone().map(InstIdx);
            let insts = insts.map(|i| (emitter.inst_labels.of(i), i));
            self.further_variants.extend(insts);
            self.further_variants.extend(emitter.finish_stubs());
        }
    }

    fn function_end(&mut self, emitter: &mut Emitter<'_>) {
        self.function_ends.push(emitter.fresh_here());
    }

    fn section(&mut self, emitter: Emitter<'_>) {
        let section = emitter.section;
        let thunks = emitter.thunks.into_iter();
        self.thunks.extend(thunks.map(|(i, at)| (section, i, at)));
        let locked = emitter.locked.into_iter();
        self.locked.extend(locked.map(|(i, at)| (section, i, at)));
        self.depths.push(emitter.depths);
        self.assemblers.push(emitter.asm);
    }
}

/// The target of a function's jumps to its own beginning, if it differs from the
/// beginning: the place after the return address is copied.
fn beginning(
    lifted: &Lifted<'_>,
    f: FuncIdx,
    returns: &ReturnWords,
    labels: &mut Labels,
) -> Option<Label> {
    let entry = InstIdx(lifted.function(f).insts.start);
    returns.kept_at(entry).map(|_| labels.fresh())
}

pub struct LabelsByVariant(Vec<InstLabels>);

impl LabelsByVariant {
    fn new(lifted: &Lifted<'_>, variants: &Variants, labels: &mut Labels) -> LabelsByVariant {
        let mut made = vec![InstLabels::default()];
        for variant in variants.all().skip(1) {
            let mut own = HashMap::default();
            for f in (0..lifted.functions.len() as u32).map(FuncIdx) {
                if variants.of(f).any(|c| c == variant) {
                    let insts = lifted.function(f).insts.clone();
                    own.extend(insts.map(|i| (i, labels.fresh())));
                }
            }
            made.push(InstLabels(Rc::new(own)));
        }
        LabelsByVariant(made)
    }

    /// Those of one variant.
    pub fn of(&self, variant: Variant) -> InstLabels {
        self.0[usize::from(variant.0)].clone()
    }
}

/// The labels of instructions as one variant of a function sees them. In the first variant
/// instruction `n` has label `n`; a further variant has labels of its own for all
/// functions that are written in it.
#[derive(Clone, Default)]
pub struct InstLabels(Rc<HashMap<u32, Label>>);

impl InstLabels {
    /// The label of an instruction in this variant; that in the first one where the
    /// instruction's function has no such variant.
    pub fn of(&self, i: InstIdx) -> Label {
        self.0.get(&i.0).copied().unwrap_or(Label(i.0))
    }
}
