//! Which bytes that directives make are instructions, and which may be data: tables of
//! constants stand in sections of code, too, and some look like an instruction.
//!
//! Bytes are instructions where control runs into them, branches go, or a function begins,
//! unless an operand reads them.

use elf_loader::Place;
use elf_loader::consts::STB_LOCAL;
use foldhash::HashSet;
use iced_x86::{FlowControl, Mnemonic};

use crate::lift::{CodeIdx, Destination, Inst, InstIdx, Lifted};

/// Where control comes to, and what operands read.
pub struct Reached {
    entered: HashSet<u32>,
    read: HashSet<(CodeIdx, u64)>,
}

impl Reached {
    /// Looks at all instructions.
    pub fn of(lifted: &Lifted<'_>) -> Reached {
        let mut entered: HashSet<u32> = HashSet::default();
        let mut read = HashSet::default();
        for inst in &lifted.insts {
            if let Some(Destination::Inst(to)) = inst.target {
                entered.insert(to.0);
            }
            read.extend(read_place(lifted, inst));
        }
        let functions = lifted.functions.iter().filter(|f| f.has_symbol);
        entered.extend(functions.map(|f| f.insts.start));
        for (id, symbol) in lifted.object.symbols() {
            if symbol.binding != STB_LOCAL
                && let Some((code, at)) = lifted.code_place(id, 0)
            {
                entered.extend(lifted.inst_at(code, at).map(|i| i.0));
            }
        }
        Reached { entered, read }
    }

    /// Whether the bytes of an instruction are run.
    pub fn is_run(&self, lifted: &Lifted<'_>, i: InstIdx) -> bool {
        let inst = lifted.inst(i);
        let mut bytes = inst.offset()..inst.iced.next_ip();
        (self.entered.contains(&i.0) || runs_into(lifted, i))
            && !bytes.any(|at| self.read.contains(&(inst.section, at)))
    }
}

/// Whether the instruction before continues here.
fn runs_into(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let Some(before) = i.0.checked_sub(1).map(InstIdx) else {
        return false;
    };
    let before = lifted.inst(before);
    before.section == lifted.inst(i).section
        && !matches!(
            before.iced.flow_control(),
            FlowControl::Return
                | FlowControl::UnconditionalBranch
                | FlowControl::IndirectBranch
                | FlowControl::Exception
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
