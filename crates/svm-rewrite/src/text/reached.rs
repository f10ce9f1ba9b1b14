//! Which bytes that directives make are instructions, and which may be data: tables of
//! constants stand in sections of code, too, and some look like an instruction.
//!
//! Bytes are instructions where control comes to them from lines that are instructions, by
//! branches or by running on, or where a function or a global symbol without a type begins.
//! They are not where an operand reads them, or where a symbol says that they are an object's.
//!
//! ```text
//!         ret
//!         .p2align 4              nops that nothing runs into
//! tab:    .value 0xc031           would run on, and is not run
//!         .value 3
//!
//!         call 1f
//!         .value 3                what was called may read it, by its return address
//! 1:      pop  %rdx
//! ```

use elf_loader::Place;
use elf_loader::consts::{STB_LOCAL, STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE, STT_OBJECT};
use foldhash::HashSet;
use iced_x86::{FlowControl, Instruction, Mnemonic};

use crate::lift::{CodeIdx, Destination, Inst, InstIdx, Lifted};

/// Where control comes to, and what operands read.
pub struct Reached {
    /// By instruction: control comes there.
    run: Vec<bool>,
    read: HashSet<(CodeIdx, u64)>,
    /// Symbols of data: section, first byte, one past the last.
    objects: Vec<(CodeIdx, u64, u64)>,
}

impl Reached {
    /// Looks at all instructions; `written` says of each whether a line of the text is one.
    pub fn of(lifted: &Lifted<'_>, written: &[bool]) -> Reached {
        let mut reached = Reached {
            run: vec![false; lifted.insts.len()],
            read: lifted
                .insts
                .iter()
                .filter_map(|inst| read_place(lifted, inst))
                .collect(),
            objects: objects(lifted).collect(),
        };
        let lines = (0..).map(InstIdx).zip(written);
        let lines = lines.filter(|(i, written)| **written && !pads(&lifted.inst(*i).iced));
        let mut found: Vec<InstIdx> = lines.map(|(i, _)| i).collect();
        found.extend(entries(lifted));
        while let Some(i) = found.pop() {
            if std::mem::replace(&mut reached.run[i.0 as usize], true) {
                continue;
            }
            if let Some(Destination::Inst(to)) = lifted.inst(i).target {
                found.push(to);
            }
            found.extend(next(lifted, i, written));
        }
        reached
    }

    /// Whether the bytes of an instruction are run.
    pub fn is_run(&self, lifted: &Lifted<'_>, i: InstIdx) -> bool {
        let inst = lifted.inst(i);
        let (start, end) = (inst.offset(), inst.iced.next_ip());
        self.run[i.0 as usize]
            && !(start..end).any(|at| self.read.contains(&(inst.section, at)))
            && !self
                .objects
                .iter()
                .any(|(code, from, to)| *code == inst.section && *from < end && start < *to)
    }
}

/// Where functions begin.
fn entries(lifted: &Lifted<'_>) -> impl Iterator<Item = InstIdx> {
    let symbols = lifted.object.symbols();
    let functions = symbols.filter(|(_, s)| names_code(s.kind, s.binding));
    functions.filter_map(|(id, _)| {
        let (code, at) = lifted.code_place(id, 0)?;
        lifted.inst_at(code, at)
    })
}

/// Whether a symbol of this type is a function's: it says so, or says nothing and others may
/// call it.
fn names_code(kind: u8, binding: u8) -> bool {
    match kind {
        STT_FUNC | STT_GNU_IFUNC => true,
        STT_NOTYPE => binding != STB_LOCAL,
        _ => false,
    }
}

/// The places in code that symbols call objects.
fn objects(lifted: &Lifted<'_>) -> impl Iterator<Item = (CodeIdx, u64, u64)> {
    let symbols = lifted.object.symbols();
    let objects = symbols.filter(|(_, s)| s.kind == STT_OBJECT);
    objects.filter_map(|(id, symbol)| {
        let (code, at) = lifted.code_place(id, 0)?;
        Some((code, at, at.saturating_add(symbol.size)))
    })
}

/// The instruction behind, if control runs on into it. What a directive makes behind a call
/// or a trap may be data: calls may not return, or read what follows them.
fn next(lifted: &Lifted<'_>, i: InstIdx, written: &[bool]) -> Option<InstIdx> {
    let behind = InstIdx(i.0 + 1);
    let inst = lifted.inst(i);
    let next = lifted.insts.get(behind.0 as usize)?;
    let runs_on = match inst.iced.flow_control() {
        FlowControl::Return
        | FlowControl::UnconditionalBranch
        | FlowControl::IndirectBranch
        | FlowControl::Exception => false,
        FlowControl::Call | FlowControl::IndirectCall | FlowControl::Interrupt => {
            written[behind.0 as usize]
        }
        FlowControl::Next | FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => true,
    };
    (runs_on && next.section == inst.section).then_some(behind)
}

/// Whether an instruction may stand between code and data, where nothing comes to it.
fn pads(iced: &Instruction) -> bool {
    matches!(
        iced.mnemonic(),
        Mnemonic::Nop | Mnemonic::Int3 | Mnemonic::Hlt
    )
}

/// The place in code that an operand reads or writes.
fn read_place(lifted: &Lifted<'_>, inst: &Inst) -> Option<(CodeIdx, u64)> {
    match inst.iced.mnemonic() {
        Mnemonic::Lea => None,
        _ => displaced_place(lifted, inst),
    }
}

/// The place in code that the displacement of an operand leads to.
pub fn displaced_place(lifted: &Lifted<'_>, inst: &Inst) -> Option<(CodeIdx, u64)> {
    let iced = &inst.iced;
    match inst.displacement {
        Some(value) => {
            let value = lifted.value(value);
            match lifted.object.symbol(value.symbol).place {
                Place::In(_) => lifted.code_place(value.symbol, value.addend),
                _ => None,
            }
        }
        None if iced.is_ip_rel_memory_operand() => {
            Some((inst.section, iced.ip_rel_memory_address()))
        }
        None => None,
    }
}
