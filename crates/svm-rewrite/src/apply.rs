//! Acts on the plans: the one place that writes code.
//!
//! Functions keep their order and sections. Each is followed by the out-of-line
//! parts of its checks, so a place in them belongs to the function by symbol.

use std::rc::Rc;

use foldhash::HashMap;
use iced_x86::{FlowControl, Mnemonic};
use liveness::LocSet;

use crate::asm::{Jump, Label, Labels, Laid, Position};
use crate::class::Class;
use crate::copies::{Copies, Copy, is_entered};
use crate::flow::Flow;
use crate::forward::{Facts, FactsBefore};
use crate::lift::{CodeIdx, FuncIdx, InstIdx, Lifted, Target};
use crate::linkage;
use crate::plan::Plan;
use crate::refusal::{Code, Hitch, Refusal};
use crate::sequences::{Depth, Direction, Emitter, StubPlace};
use crate::{Analysis, Options};

/// The rewritten code, laid out.
pub struct Applied {
    /// One a code section, in order.
    pub sections: Vec<Laid>,
    /// Where labels are; instruction `n` has label `n`.
    pub labels: Labels,
    /// The end of each function's instructions, before its out-of-line parts.
    pub ends: Vec<Label>,
    /// The end of each function.
    pub function_ends: Vec<Label>,
    /// Out-of-line parts of what the labels stand for.
    pub stubs: Vec<StubPlace>,
    /// What is written again in further copies of functions: instructions and
    /// out-of-line parts, with what they were made from.
    pub copied: Vec<StubPlace>,
    /// One list a section, in order: from each place on so many words are pushed
    /// in the sequence of that instruction.
    pub depths: Vec<Vec<Depth>>,
    /// Where accesses with a `lock` prefix are.
    pub locked: Vec<(u16, InstIdx, Position)>,
    /// Where kept instructions end.
    pub kept_ends: HashMap<u32, Position>,
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

/// Emits all code of an object.
///
/// # Errors
/// Instructions that no sequence could be made for.
pub fn apply(
    analysis: &Analysis<'_>,
    plans: &[Plan],
    facts: &FactsBefore,
    copies: &Copies,
    options: Options,
) -> Result<Applied, Vec<Refusal>> {
    let (lifted, flow) = (analysis.lifted, &analysis.flow);
    let mut labels = Labels::new(lifted.insts.len());
    let mut refusals = Vec::new();
    let (mut assemblers, mut stubs) = (Vec::new(), Vec::new());
    let (mut ends, mut function_ends) = (Vec::new(), Vec::new());
    let (copy_labels, mut copied) = (CopyLabels::new(lifted, copies, &mut labels), Vec::new());
    let (mut depths, mut locked) = (Vec::new(), Vec::new());
    let mut kept_ends = HashMap::default();
    for section in 0..lifted.sections.len() as u16 {
        let policy = &analysis.policy;
        let mut emitter = Emitter::new(lifted, policy, &mut labels, section, options.scheme);
        for f in functions_of(lifted, CodeIdx(section)) {
            for copy in copies.of(f) {
                emitter.copy = copy_labels.of(copy);
                let mut writer = FunctionWriter {
                    emitter: &mut emitter,
                    flow,
                    plans,
                    facts,
                    copies,
                    copy,
                    poison: options.poison,
                    refusals: &mut refusals,
                };
                writer.function(f, &copy_labels);
                if copy == Copy::FIRST {
                    let end = emitter.labels.fresh();
                    emitter.place(end);
                    ends.push(end);
                    stubs.extend(emitter.finish_stubs());
                } else {
                    let insts = lifted.function(f).insts.clone();
                    copied.extend(insts.map(|i| (emitter.copy.of(InstIdx(i)), InstIdx(i))));
                    copied.extend(emitter.finish_stubs());
                }
            }
            let end = emitter.labels.fresh();
            emitter.place(end);
            function_ends.push(end);
        }
        assemblers.push(emitter.asm);
        depths.push(emitter.depths);
        locked.extend(emitter.locked.into_iter().map(|(i, at)| (section, i, at)));
        kept_ends.extend(emitter.kept_ends);
    }
    if !refusals.is_empty() {
        return Err(refusals);
    }
    let mut sections = Vec::new();
    for (n, asm) in assemblers.into_iter().enumerate() {
        // Sequences keep their short-only branches within reach by construction.
        let laid = asm.lay_out(n as u16, &labels).map_err(|_| {
            let name = lifted.section_name(CodeIdx(n as u16));
            vec![Refusal::at(
                Code::Unsupported,
                name,
                0,
                "a short branch does not reach its target",
            )]
        })?;
        sections.push(laid);
    }
    Ok(Applied {
        sections,
        labels,
        ends,
        function_ends,
        stubs,
        copied,
        depths,
        locked,
        kept_ends,
    })
}

/// The labels of further copies: of each, one for every instruction that is
/// copied at all.
struct CopyLabels {
    copies: Vec<CopyOf>,
}

impl CopyLabels {
    fn new(lifted: &Lifted<'_>, copies: &Copies, labels: &mut Labels) -> CopyLabels {
        let mut made = vec![CopyOf::default()];
        for copy in copies.all().skip(1) {
            let mut own = HashMap::default();
            for f in (0..lifted.functions.len() as u32).map(FuncIdx) {
                if copies.of(f).any(|c| c == copy) {
                    let insts = lifted.function(f).insts.clone();
                    own.extend(insts.map(|i| (i, labels.fresh())));
                }
            }
            made.push(CopyOf(Rc::new(own)));
        }
        CopyLabels { copies: made }
    }

    fn of(&self, copy: Copy) -> CopyOf {
        self.copies[usize::from(copy.0)].clone()
    }
}

/// The labels of instructions as one copy of a function sees them.
#[derive(Clone, Default)]
pub struct CopyOf(Rc<HashMap<u32, Label>>);

impl CopyOf {
    /// The instruction in this copy, or the only one.
    pub fn of(&self, i: InstIdx) -> Label {
        self.0.get(&i.0).copied().unwrap_or(Label(i.0))
    }
}

fn functions_of(lifted: &Lifted<'_>, section: CodeIdx) -> Vec<FuncIdx> {
    (0..lifted.functions.len() as u32)
        .map(FuncIdx)
        .filter(|&f| lifted.function(f).section == section)
        .collect()
}

/// Emits instructions of one section.
pub struct FunctionWriter<'w, 'a> {
    /// Where it goes.
    pub emitter: &'w mut Emitter<'a>,
    /// Control flow.
    pub flow: &'w Flow,
    /// What was decided.
    pub plans: &'w [Plan],
    /// What is known of rsp.
    pub facts: &'w FactsBefore,
    /// How often functions are written.
    pub copies: &'w Copies,
    /// Which copy this is.
    pub copy: Copy,
    /// See [`Options::poison`].
    pub poison: bool,
    /// What could not be written.
    pub refusals: &'w mut Vec<Refusal>,
}

impl FunctionWriter<'_, '_> {
    fn function(&mut self, f: FuncIdx, labels: &CopyLabels) {
        let lifted = self.emitter.lifted;
        let function = lifted.function(f);
        let copied = self.emitter.is_copied();
        let emitted = !function.padding || copied;
        if emitted {
            self.emitter.asm.align(alignment(function.start));
        }
        for i in function.insts.clone() {
            let label = self.emitter.copy.of(InstIdx(i));
            self.emitter.begin(InstIdx(i), label);
            if i == function.insts.start && self.copy == Copy::FIRST && is_entered(lifted, f) {
                self.choose_copy(f, labels);
            }
            if emitted && let Err(hitch) = self.instruction(InstIdx(i)) {
                self.refusals
                    .push(lifted.refusal(hitch.code, InstIdx(i), hitch.reason));
            }
        }
        if emitted && !copied {
            self.leave(f);
        }
    }

    /// Emits one instruction as its plan says.
    ///
    /// # Errors
    /// Why no sequence could be made for it.
    pub fn instruction(&mut self, i: InstIdx) -> Result<(), Hitch> {
        let plan = &self.plans[i.0 as usize];
        let e = &mut *self.emitter;
        if self.poison && !plan.scratch.all().is_empty() {
            e.poison(plan);
        }
        match plan.class {
            Class::Plain | Class::Stack => e.copy_inst(i),
            Class::Keep(_) => e.keep(i),
            Class::StaticBranch => e.static_branch(i),
            Class::Drop => Ok(()),
            Class::Memory(space) => e.memory(i, plan, space),
            Class::Prefetch(space) => e.prefetch(i, plan, space),
            Class::BitString(space) => e.bit_string(i, plan, space),
            Class::Xlat => {
                e.xlat(i, plan);
                Ok(())
            }
            Class::String(op, log2, repeat) => {
                let direction = direction(self.facts.get(i, self.copy))?;
                e.string(i, plan, op, log2, repeat, direction);
                Ok(())
            }
            Class::PortString(port, repeat) => {
                let direction = direction(self.facts.get(i, self.copy))?;
                e.port_string(i, plan, port, repeat, direction);
                Ok(())
            }
            Class::PushMemory(space) => e.push_memory(i, plan, space),
            Class::PopMemory(space) => e.pop_memory(i, plan, space),
            Class::AddressOf => e.address_of(i),
            Class::Branch => {
                e.branch(i, plan)?;
                if self.flow.stops(i) {
                    e.stop();
                }
                Ok(())
            }
            Class::CallIndirect(callee) => e.indirect(i, plan, callee, Jump::Call),
            Class::JumpIndirect(callee) => e.indirect(i, plan, callee, Jump::Always),
            Class::Return => {
                e.ret();
                Ok(())
            }
            Class::Trap(trap) => {
                e.trap(trap);
                Ok(())
            }
            Class::Port(port) => {
                e.port(port);
                Ok(())
            }
            Class::FramePointerToStack => {
                let from = e.frame_pointer(i);
                let facts = self.facts.get(i, self.copy);
                let distance = facts.and_then(|facts| facts.distance_to(from));
                let unknown = || {
                    Hitch::new(
                        Code::StackPointer,
                        "the distance from rsp to what it is set to is not known here",
                    )
                };
                e.frame_pointer_to_stack(i, distance.ok_or_else(unknown)?);
                Ok(())
            }
            Class::Realign(alignment) => {
                let facts = self.facts.get(i, self.copy);
                let padding = facts.and_then(|facts| facts.padding(alignment, self.copy));
                let unknown =
                    || Hitch::new(Code::StackPointer, "the frame's size is not known here");
                e.realign(padding.ok_or_else(unknown)?);
                Ok(())
            }
        }
    }

    /// At the entry, on to the copy for what `rsp` is modulo the alignment.
    fn choose_copy(&mut self, f: FuncIdx, labels: &CopyLabels) {
        let entry = InstIdx(self.emitter.lifted.function(f).insts.start);
        let entries: Vec<Label> = self.copies.of(f).map(|c| labels.of(c).of(entry)).collect();
        if entries.len() < 2 {
            return;
        }
        if self.plans[entry.0 as usize]
            .live
            .intersects(LocSet::flags())
        {
            let reason = "flags are live at the entry of a function that realigns its stack";
            let refusal = self
                .emitter
                .lifted
                .refusal(Code::StackPointer, entry, reason);
            self.refusals.push(refusal);
        }
        self.emitter.choose_by_rsp(&entries);
    }

    /// Control must not run from a function's last instruction into its
    /// out-of-line parts.
    fn leave(&mut self, f: FuncIdx) {
        let lifted = self.emitter.lifted;
        let last = &lifted.insts[lifted.function(f).insts.end as usize - 1];
        let next = match last.iced.flow_control() {
            FlowControl::Next | FlowControl::ConditionalBranch => self.continuation(f),
            // A call at the end does not return, or what follows at once is its
            // continuation.
            FlowControl::Call | FlowControl::IndirectCall => {
                let next = FuncIdx(f.0 + 1);
                let call = InstIdx(lifted.function(f).insts.end - 1);
                let returns = !self.flow.stops(call)
                    && !matches!(
                        last.target,
                        Some(Target::Import(s)) if linkage::never_returns(lifted.symbol_name(s))
                    );
                Some(next)
                    .filter(|n| returns && self.follows(f, *n) && !lifted.function(*n).padding)
            }
            _ => return,
        };
        match next {
            Some(next) => self.emitter.asm.branch(
                Jump::Always,
                self.emitter
                    .target(InstIdx(lifted.function(next).insts.start)),
            ),
            None => self.emitter.stop(),
        }
    }

    /// The function that control runs into behind `f`, over padding that does
    /// not stop it.
    fn continuation(&self, f: FuncIdx) -> Option<FuncIdx> {
        let lifted = self.emitter.lifted;
        let mut next = FuncIdx(f.0 + 1);
        while self.follows(f, next) {
            let function = lifted.function(next);
            let stops = |i: u32| lifted.insts[i as usize].iced.mnemonic() == Mnemonic::Int3;
            if !function.padding {
                return Some(next);
            }
            if function.insts.clone().any(stops) {
                return None;
            }
            next = FuncIdx(next.0 + 1);
        }
        None
    }

    fn follows(&self, f: FuncIdx, next: FuncIdx) -> bool {
        let lifted = self.emitter.lifted;
        lifted
            .functions
            .get(next.0 as usize)
            .is_some_and(|n| n.section == lifted.function(f).section)
    }
}

fn direction(facts: Option<&Facts>) -> Result<Direction, Hitch> {
    facts
        .and_then(Facts::direction)
        .ok_or_else(|| Hitch::new(Code::Direction, "the direction flag is not known here"))
}

/// Functions keep the alignment that they were given, up to 16 bytes.
fn alignment(start: u64) -> u32 {
    1 << start.trailing_zeros().min(4)
}
