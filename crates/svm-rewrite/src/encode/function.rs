//! Writes one function: each instruction as planned, and the code between them that
//! checks the return address or chooses the variant.

use iced_x86::{Code, FlowControl, Mnemonic};

use super::Emitter;
use super::apply::{Decisions, LabelsByVariant};
use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::analyse::flow::Exit;
use crate::asm::{Jump, Label};
use crate::encode::window::FrameHere;
use crate::frame::variants::Variant;
use crate::lift::{Destination, FuncIdx, InstIdx, Lifted, is_filler};

/// Writes one variant of a function.
pub struct FunctionWriter<'w, 'a> {
    /// Receives the code.
    pub emitter: &'w mut Emitter<'a>,
    pub decisions: &'w Decisions<'w>,
    pub variant: Variant,
    /// Whether registers that are dead before a sequence are overwritten there.
    pub poison: bool,
}

impl FunctionWriter<'_, '_> {
    /// Writes the function except its out-of-line parts.
    pub fn whole(&mut self, f: FuncIdx, labels: &LabelsByVariant) {
        let lifted = self.emitter.lifted;
        let function = lifted.function(f);
        let verbatim = self.emitter.is_verbatim();
        let emitted = !function.padding || verbatim;
        let before = f.0.checked_sub(1).map(FuncIdx);
        if emitted && self.keeps_prefix(f) && !function.is_type_hash {
            self.emitter.part();
        }
        if emitted && !before.is_some_and(|before| self.keeps_prefix(before)) {
            self.emitter.asm.align(alignment(function.start));
        }
        for i in function.insts.clone() {
            let label = self.emitter.inst_labels.of(InstIdx(i));
            if i != function.insts.start {
                self.check_above(InstIdx(i));
                if emitted && !verbatim && self.is_bug(InstIdx(i)) {
                    self.emitter.part_trap();
                }
            }
            self.emitter.begin(InstIdx(i), label);
            self.keep_return_word(f, InstIdx(i));
            if i == function.insts.start && self.variant == Variant::FIRST && lifted.is_entered(f) {
                self.choose_variant(f, labels);
            }
            if emitted {
                self.instruction(InstIdx(i));
            }
        }
        if emitted && !verbatim {
            self.leave(f);
        }
        if emitted && !verbatim && self.emitter.pads_returns() && returns_at_once(lifted, f) {
            self.emitter.pad();
        }
        if verbatim && self.may_lead_behind(f) {
            self.emitter.stop();
        }
    }

    /// Whether it is a `ud2` behind which nothing goes on. What the kernel knows it by is its own
    /// place, so what has to be before it is before its label.
    fn is_bug(&self, i: InstIdx) -> bool {
        let iced = &self.emitter.lifted.inst(i).iced;
        iced.code() == Code::Ud2 && self.decisions.analysis.exits[i.0 as usize] == Exit::Stop
    }

    /// Whether a section that stays as it is ends with a branch to the beginning of another
    /// section, which may be right behind it when it is loaded. Kernels would take that target
    /// for the end of a replacement, and not move it with the branch (`need_reloc`,
    /// arch/x86/kernel/alternative.c). So something has to be between.
    fn may_lead_behind(&self, f: FuncIdx) -> bool {
        let lifted = self.emitter.lifted;
        let last = lifted.function(f).insts.end - 1;
        let Some(Destination::Inst(to)) = lifted.inst(InstIdx(last)).target else {
            return false;
        };
        let all = |i: InstIdx| &lifted.sections[usize::from(lifted.inst(i).section.0)].insts;
        let before = all(to).start..to.0;
        all(InstIdx(last)).end == last + 1
            && all(to) != all(InstIdx(last))
            && before
                .into_iter()
                .all(|i| is_filler(&lifted.inst(InstIdx(i)).iced))
    }

    /// At an entry, copies the return address to the shadow. The variants of a function
    /// share one beginning.
    fn keep_return_word(&mut self, f: FuncIdx, i: InstIdx) {
        let begins = i.0 == self.emitter.lifted.function(f).insts.start;
        if begins && self.variant != Variant::FIRST {
            return;
        }
        if let Some(holder) = self.decisions.returns.kept_at(i) {
            self.emitter.keep_return_word(holder);
            if let (true, Some(label)) = (begins, self.emitter.own_beginning) {
                self.emitter.place(label);
            }
        }
    }

    /// Checks the return address before an entry that control runs into from above.
    fn check_above(&mut self, entry: InstIdx) {
        if let Some(check) = self.decisions.returns.check_above(entry) {
            self.emitter.check_return_word(entry, check);
        }
    }

    /// Emits one instruction as its plan says.
    pub fn instruction(&mut self, i: InstIdx) {
        let Decisions { plans, returns, .. } = *self.decisions;
        let plan = &plans[i.0 as usize];
        let (facts, variant) = (self.decisions.facts, self.variant);
        let facts = || known(facts.get(i, variant));
        let e = &mut *self.emitter;
        if self.poison && !plan.scratch.all().is_empty() {
            e.poison(plan);
        }
        if let Some(check) = &plan.pointers {
            e.check_pointers(i, check);
        }
        if let Some(check) = returns.check_before(i) {
            e.check_return_word(i, check);
        }
        if let Some(words) = self.decisions.words {
            let here = FrameHere {
                inst: i,
                iced: &e.lifted.inst(i).iced,
                variant,
                facts: self.decisions.facts,
                words,
            };
            if e.through_window(i, plan, &here) {
                return;
            }
        }
        match plan.class {
            Class::Plain | Class::Stack => e.copy_inst(i),
            Class::Keep(_) => e.keep(i),
            Class::KeepOwnPlace(place) => e.keep_own_place(i, place),
            Class::KeepBranch(jump) => e.keep_branch(i, jump),
            Class::StaticNop => e.static_nop(),
            Class::Drop | Class::Unreached(_) => {}
            Class::Memory(space) => e.memory(i, plan, space),
            Class::Prefetch(space) => e.prefetch(i, plan, space),
            Class::BitString(space) => e.bit_string(i, plan, space),
            Class::Xlat => e.xlat(i, plan),
            Class::String(op, log2, repeat) => {
                let direction = known(facts().direction());
                e.string(i, plan, op, log2, repeat, direction);
            }
            Class::PortString(port, repeat) => {
                let direction = known(facts().direction());
                e.port_string(i, plan, port, repeat, direction);
            }
            Class::PushMemory(space) => e.push_memory(i, plan, space),
            Class::PopMemory(space) => e.pop_memory(i, plan, space),
            Class::AddressOf(to) => e.address_of(i, to),
            Class::Branch(branch) => {
                e.branch(i, plan, branch);
                if self.decisions.analysis.flow.never_returns(i) {
                    e.stop();
                }
            }
            Class::CallIndirect(callee) => e.indirect(i, plan, callee, Jump::Call),
            Class::JumpIndirect(callee) => e.indirect(i, plan, callee, Jump::Always),
            Class::Switch(_) => {
                let switch = self.decisions.analysis.switches.at(i);
                e.switch(i, plan, switch.expect("its class says so"));
            }
            Class::Return => e.ret(),
            Class::Trap(trap) => e.trap(trap),
            Class::Stop => e.stop(),
            Class::PopFlags => e.pop_flags(i),
            Class::TypeHash(hash) => e.type_hash(i, hash),
            Class::Port(port) => e.port(port),
            Class::FramePointerToStack => {
                let distance = known(facts().stack_move(&e.lifted.inst(i).iced));
                e.frame_pointer_to_stack(i, distance);
            }
            Class::Realign(alignment) => e.realign(known(facts().padding(alignment, variant))),
        }
    }

    /// At the entry, jumps to the variant for `rsp` modulo the alignment, if there are
    /// several.
    fn choose_variant(&mut self, f: FuncIdx, labels: &LabelsByVariant) {
        let entry = InstIdx(self.emitter.lifted.function(f).insts.start);
        let entries: Vec<Label> = self
            .decisions
            .variants
            .of(f)
            .map(|c| labels.of(c).of(entry))
            .collect();
        if entries.len() < 2 {
            return;
        }
        self.emitter.choose_by_rsp(&entries);
    }

    /// Whether nothing may be between a function and the next one.
    fn keeps_prefix(&self, f: FuncIdx) -> bool {
        self.emitter.keeps_prefixes() && is_prefix(self.emitter.lifted, f)
    }

    /// Control must not run from a function's last instruction into its
    /// out-of-line parts.
    fn leave(&mut self, f: FuncIdx) {
        let lifted = self.emitter.lifted;
        let last = InstIdx(lifted.function(f).insts.end - 1);
        if matches!(
            self.decisions.plans[last.0 as usize].class,
            Class::Unreached(_)
        ) {
            return self.emitter.stop();
        }
        if !runs_on(self.decisions.analysis, last) || self.keeps_prefix(f) {
            return;
        }
        match continuation(self.decisions.analysis, f) {
            Some(next) => {
                let entry = InstIdx(lifted.function(next).insts.start);
                self.check_above(entry);
                let target = self.emitter.target(entry);
                self.emitter.asm.branch(Jump::Always, target);
            }
            None => self.emitter.stop(),
        }
    }
}

/// Whether control may run from an instruction into the next one, if all calls return.
pub fn runs_on(analysis: &Analysis<'_>, i: InstIdx) -> bool {
    match analysis.exits[i.0 as usize] {
        Exit::Next | Exit::CallLocal(_) | Exit::CallOut | Exit::CallStop => true,
        Exit::Jump { conditional, .. } => conditional,
        Exit::TailOut => {
            let flow = analysis.lifted.inst(i).iced.flow_control();
            flow != FlowControl::UnconditionalBranch && flow != FlowControl::IndirectBranch
        }
        Exit::Table | Exit::Return | Exit::Stop => false,
    }
}

/// The function that control runs into out of `f`, if it runs out of its last instruction.
pub fn continuation(analysis: &Analysis<'_>, f: FuncIdx) -> Option<FuncIdx> {
    let lifted = analysis.lifted;
    let last = InstIdx(lifted.function(f).insts.end - 1);
    match lifted.inst(last).iced.flow_control() {
        // A call at the end does not return, or what follows at once is its continuation.
        FlowControl::Call | FlowControl::IndirectCall => {
            let returns = !analysis.flow.never_returns(last);
            let next = FuncIdx(f.0 + 1);
            Some(next).filter(|n| returns && follows(lifted, f, *n) && !lifted.function(*n).padding)
        }
        _ => behind_padding(lifted, f),
    }
}

/// The next function of the section, over padding that does not stop control.
fn behind_padding(lifted: &Lifted<'_>, f: FuncIdx) -> Option<FuncIdx> {
    let mut next = FuncIdx(f.0 + 1);
    while follows(lifted, f, next) {
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

fn follows(lifted: &Lifted<'_>, f: FuncIdx, next: FuncIdx) -> bool {
    let next = lifted.functions.get(next.0 as usize);
    next.is_some_and(|n| n.section == lifted.function(f).section)
}

/// Whether a function is what belongs to the next one, right before that: `nop`s that kernels
/// write over (`__pfx_f`), or the hash of its type, which callers look for there.
fn is_prefix(lifted: &Lifted<'_>, f: FuncIdx) -> bool {
    let function = lifted.function(f);
    let is_nop = |i: u32| lifted.insts[i as usize].iced.code() == Code::Nopd;
    let is_named = function.has_symbol && !function.padding;
    let is_prefix = function.is_type_hash || is_named && function.insts.clone().all(is_nop);
    let next = lifted.functions.get(f.0 as usize + 1);
    let next = next.filter(|next| !next.padding && next.section == function.section);
    is_prefix && next.is_some_and(|next| next.start == function.end)
}

/// Whether a function is a return and nothing else, and another one may follow within the five
/// bytes that a kernel writes which takes it for the trampoline of a static call
/// (`__static_call_transform`, arch/x86/kernel/static_call.c). Compilers that align functions leave
/// room.
pub fn returns_at_once(lifted: &Lifted<'_>, f: FuncIdx) -> bool {
    const APART: u32 = 8;
    let function = lifted.function(f);
    let returns = |i: u32| lifted.insts[i as usize].iced.mnemonic() == Mnemonic::Ret;
    if function.padding || function.insts.len() != 1 || !function.insts.clone().all(returns) {
        return false;
    }
    let later = lifted.functions.iter().skip(f.0 as usize + 1);
    let mut later = later.take_while(|next| next.section == function.section);
    let next = later.find(|next| !next.padding);
    next.is_some_and(|next| alignment(function.start).min(alignment(next.start)) < APART)
}

/// A stack fact that a sequence needs: [`crate::plan::stack`] refused code without it.
fn known<T>(fact: Option<T>) -> T {
    fact.expect("checked before anything was written")
}

/// Functions keep the alignment that they had, up to 16 bytes.
fn alignment(start: u64) -> u32 {
    1 << start.trailing_zeros().min(4)
}
