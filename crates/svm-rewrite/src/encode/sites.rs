//! Emits the sequences of an object's sites without the code between them. For assembly
//! text: there, the code between is the text itself.

use std::ops::Range;

use iced_x86::FlowControl;

use super::apply::Decisions;
use super::function::FunctionWriter;
use crate::analyse::Analysis;
use crate::analyse::class::{Callee, Class, Space};
use crate::asm::{Assembler, Label, Labels, Position};
use crate::encode::Emitter;
use crate::frame::variants::Variant;
use crate::lift::{CodeIdx, FuncIdx, InstIdx};
use crate::refusal::{self, Refusal};

/// The sequence of one instruction.
#[derive(Clone, Debug)]
pub struct Site {
    /// The instruction.
    pub inst: InstIdx,
    /// Where it begins in its section's assembler.
    pub from: Position,
    /// Where it ends there.
    pub to: Position,
    /// Number of the section.
    pub section: u16,
    /// Labels made for it, those of its out-of-line part included.
    pub labels: Range<u32>,
}

/// An out-of-line part.
#[derive(Clone, Debug)]
pub struct Part {
    /// Its label.
    pub label: Label,
    /// Where it begins.
    pub from: Position,
    /// The instruction that it belongs to.
    pub inst: InstIdx,
}

/// The emitted code of one function.
#[derive(Clone, Debug)]
pub struct FunctionCode {
    /// Number of the section.
    pub section: u16,
    /// In the order of the instructions.
    pub sites: Vec<Site>,
    /// In the order of the sites.
    pub parts: Vec<Part>,
    /// Where the last part ends.
    pub parts_end: Position,
    /// Whether control may run out of the function's last instruction.
    pub falls_through: bool,
}

/// The emitted code of an object's sites.
pub struct SiteCode {
    /// One a section, not laid out.
    pub assemblers: Vec<Assembler>,
    /// Where labels are.
    pub labels: Labels,
    /// By function.
    pub functions: Vec<FunctionCode>,
    /// Calls that do not return, in order, after which control has to be stopped: an
    /// out-of-line part or another function may follow.
    pub closed: Vec<InstIdx>,
}

/// Emits the sites of all functions. `closes_calls` asks for [`SiteCode::closed`].
///
/// # Errors
/// Instructions that no sequence could be made for.
pub fn emit(decisions: &Decisions<'_>, closes_calls: bool) -> Result<SiteCode, Vec<Refusal>> {
    let analysis = decisions.analysis;
    let lifted = analysis.lifted;
    let mut labels = Labels::new(lifted.insts.len());
    let mut refusals = Vec::new();
    let mut assemblers = Vec::new();
    let mut functions = Vec::with_capacity(lifted.functions.len());
    for section in 0..lifted.sections.len() as u16 {
        let mut emitter = decisions.emitter(&mut labels, section);
        emitter.prints = true;
        // Functions are in the order of sections.
        while let Some(function) = lifted.functions.get(functions.len())
            && function.section == CodeIdx(section)
        {
            let f = FuncIdx(functions.len() as u32);
            let sites = emit_sites(&mut emitter, decisions, f, &mut refusals);
            let parts = emit_parts(&mut emitter);
            functions.push(FunctionCode {
                section,
                sites,
                parts,
                parts_end: emitter.asm.here(),
                falls_through: falls_through(analysis, f),
            });
        }
        assemblers.push(emitter.asm);
    }
    if refusals.is_empty() {
        Ok(SiteCode {
            assemblers,
            labels,
            functions,
            closed: match closes_calls {
                true => calls_that_never_return(analysis),
                false => Vec::new(),
            },
        })
    } else {
        Err(refusals)
    }
}

fn emit_sites(
    emitter: &mut Emitter<'_>,
    decisions: &Decisions<'_>,
    f: FuncIdx,
    refusals: &mut Vec<Refusal>,
) -> Vec<Site> {
    let lifted = decisions.analysis.lifted;
    let mut sites = Vec::new();
    for i in lifted.function(f).insts.clone().map(InstIdx) {
        if !is_site(decisions.plans[i.0 as usize].class) {
            continue;
        }
        let (from, first) = (emitter.asm.here(), emitter.labels.count());
        emitter.begin(i, Label(i.0));
        let mut writer = FunctionWriter {
            emitter,
            flow: &decisions.analysis.flow,
            decisions,
            variant: Variant::FIRST,
            poison: false,
            refusals,
        };
        if let Err(hitch) = writer.instruction(i) {
            refusal::add(refusals, lifted.refusal(hitch.code, i, hitch.reason));
        }
        sites.push(Site {
            inst: i,
            from,
            to: emitter.asm.here(),
            section: emitter.section,
            labels: first..emitter.labels.count(),
        });
    }
    sites
}

fn emit_parts(emitter: &mut Emitter<'_>) -> Vec<Part> {
    let places = emitter.finish_stubs();
    let part = |(label, inst)| Part {
        label,
        from: emitter.labels.get(label).1,
        inst,
    };
    places.into_iter().map(part).collect()
}

/// Whether an instruction of this class is replaced by a sequence. All others stay as
/// in the text.
pub fn is_site(class: Class) -> bool {
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
        | Class::CallIndirect(Callee::Memory(Space::Heap))
        | Class::JumpIndirect(Callee::Memory(Space::Heap)) => true,
        Class::Plain
        | Class::Stack
        | Class::Drop
        | Class::Unreached(_)
        | Class::AddressOf
        | Class::Branch
        | Class::CallIndirect(_)
        | Class::JumpIndirect(_)
        | Class::Return
        | Class::Trap(_)
        | Class::Port(_)
        | Class::FramePointerToStack
        | Class::Realign(_)
        | Class::Keep(_)
        | Class::StaticBranch => false,
    }
}

/// Whether control may run on after a function's last instruction.
fn falls_through(analysis: &Analysis<'_>, f: FuncIdx) -> bool {
    let lifted = analysis.lifted;
    let insts = &lifted.function(f).insts;
    let Some(last) = insts.clone().next_back().map(InstIdx) else {
        return false;
    };
    let inst = lifted.inst(last);
    match inst.iced.flow_control() {
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => true,
        FlowControl::Call | FlowControl::IndirectCall => !analysis.flow.never_returns(lifted, last),
        FlowControl::Interrupt => inst.iced.mnemonic() != iced_x86::Mnemonic::Int3,
        FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Return
        | FlowControl::Exception => false,
    }
}

fn calls_that_never_return(analysis: &Analysis<'_>) -> Vec<InstIdx> {
    let lifted = analysis.lifted;
    let calls = (0..lifted.insts.len() as u32).map(InstIdx).filter(|i| {
        let flow = lifted.inst(*i).iced.flow_control();
        matches!(flow, FlowControl::Call | FlowControl::IndirectCall)
    });
    calls
        .filter(|i| analysis.flow.never_returns(lifted, *i))
        .collect()
}
