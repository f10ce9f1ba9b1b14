//! What differs from target to target, in one place: which instructions may
//! stay as they are, which are refused, which registers a sequence may have,
//! and what references in kept code mean.
//!
//! `hypervisor` confines: nothing may stay that reaches memory outside the frame.
//! `linux` is a module in place of the original, mapped to itself (paper,
//! 5.1.2): its own and the kernel's variables, per-CPU data and privileged
//! instructions are its business, and what the kernel patches stays what it is.
//! `process` is a program mapped to itself: [`crate::process`] says what stays.

use foldhash::HashMap;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use liveness::Reg;

use crate::asm::{Field, Referent};
use crate::class::{Callee, Class, Space, StringOp};
use crate::dom0;
use crate::import::Import;
use crate::lift::{InstIdx, Lifted, Value};
use crate::linux::{self, Kept};
use crate::refusal::Refusal;
use crate::schemes::Table;
use twin_abi::Target;

/// The policy for one object.
pub struct Policy {
    target: Target,
    /// Instructions that the kernel's metadata wants as they are.
    kept: HashMap<u32, Kept>,
}

impl Policy {
    /// The policy of a target for an object.
    ///
    /// # Errors
    /// Metadata that cannot be read, or names no whole instructions; operands
    /// whose relocations cannot be carried over.
    pub fn new(target: Target, lifted: &Lifted<'_>) -> Result<(Policy, Vec<Refusal>), Refusal> {
        let (kept, refusals) = match target {
            Target::Hypervisor => (HashMap::default(), dom0::check(lifted)),
            Target::Linux => (linux::kept(lifted)?, linux::check(lifted)),
            // The text keeps its symbols.
            Target::Process => (HashMap::default(), Vec::new()),
        };
        Ok((Policy { target, kept }, refusals))
    }

    /// The target.
    pub fn target(&self) -> Target {
        self.target
    }

    /// Whether this is a module for a stock kernel.
    pub fn is_linux(&self) -> bool {
        self.target == Target::Linux
    }

    /// Why metadata wants this instruction as it is.
    pub fn kept(&self, i: InstIdx) -> Option<Kept> {
        self.kept.get(&i.0).copied()
    }

    /// Whether this is a program.
    pub fn is_process(&self) -> bool {
        self.target == Target::Process
    }

    /// Whether data below `rsp` must survive what sequences push (psABI 3.2.2).
    pub fn has_red_zone(&self) -> bool {
        self.is_process()
    }

    /// How checks reach the table.
    pub fn table(&self) -> Table {
        table(self.target)
    }

    /// Whether every translation is the address itself (paper, 5.1.2), so that places
    /// which lie over each other in the original do so here.
    pub fn maps_to_itself(&self) -> bool {
        match self.target {
            Target::Hypervisor => false,
            Target::Linux | Target::Process => true,
        }
    }

    /// Whether a sequence may overwrite a register: unwinding a kernel module may
    /// need the caller's `rbp` at any place.
    pub fn may_be_scratch(&self, r: Reg) -> bool {
        match self.target {
            Target::Hypervisor => true,
            Target::Linux | Target::Process => r != Reg::RBP,
        }
    }

    /// Whether what leaves the object goes through a linker's veneer, which may
    /// overwrite `r10` and `r11` (psABI 3.2.1).
    pub fn has_veneers(&self) -> bool {
        match self.target {
            Target::Hypervisor => true,
            Target::Linux | Target::Process => false,
        }
    }

    /// What an instruction of this class is under the target.
    pub fn settle(&self, class: Class, iced: &Instruction) -> Class {
        match self.target {
            Target::Hypervisor | Target::Process => class,
            Target::Linux => settle(class, iced),
        }
    }

    /// What `value` refers to, as emitted code names it.
    ///
    /// # Errors
    /// Why it cannot be named.
    pub fn referent(&self, lifted: &Lifted<'_>, value: Value) -> Result<Referent, &'static str> {
        match self.target {
            Target::Hypervisor => dom0::referent(lifted.object, value),
            Target::Linux => linux::referent(lifted, value),
            Target::Process => Ok(Referent::Import(Import::Own(value.symbol), value.addend)),
        }
    }

    /// The field of an instruction that stays as it is, for a value of this relocation
    /// type; `None` if it cannot be carried over.
    pub fn field(&self, kind: u32) -> Option<Field> {
        match self.target {
            Target::Hypervisor => dom0::field(kind),
            Target::Linux => linux::field(kind),
            // Its text says what it is.
            Target::Process => Some(Field::Abs32S),
        }
    }
}

/// How checks reach the table: a program may be loaded anywhere.
pub fn table(target: Target) -> Table {
    match target {
        Target::Hypervisor | Target::Linux => Table::Absolute,
        Target::Process => Table::Relative,
    }
}

/// What stays as it is in a module for a stock kernel.
fn settle(class: Class, iced: &Instruction) -> Class {
    let keep = Class::Keep(class.kind());
    match class {
        // Calls of `__fentry__`, and what stops speculation.
        Class::Drop if iced.flow_control() != FlowControl::Next => keep,
        Class::Drop
        | Class::Unreached(_)
        | Class::Branch
        | Class::Keep(_)
        | Class::StaticBranch => class,
        Class::Plain
        | Class::Stack
        | Class::Prefetch(_)
        | Class::AddressOf
        | Class::Return
        | Class::Trap(_)
        | Class::Port(_)
        | Class::Realign(_) => keep,
        Class::FramePointerToStack => class,
        Class::Memory(Space::Heap) => class,
        Class::Memory(Space::Stack | Space::Global | Space::PerCpu(_)) => keep,
        // One instruction must stay one.
        Class::BitString(Space::PerCpu(_)) => keep,
        Class::BitString(Space::Stack | Space::Heap | Space::Global) => class,
        Class::PushMemory(Space::Heap) | Class::PopMemory(Space::Heap) => class,
        Class::PushMemory(_) | Class::PopMemory(_) => keep,
        Class::Xlat | Class::String(..) => class,
        // The kernel has no gate: a string instruction with one pointer.
        Class::PortString(port, repeat) => {
            let op = if port.input {
                StringOp::Ins
            } else {
                StringOp::Outs
            };
            Class::String(op, port.log2, repeat)
        }
        // A thunk is a routine like any other, whose calls the kernel patches.
        Class::CallIndirect(Callee::Register(_)) | Class::JumpIndirect(Callee::Register(_)) => {
            match iced.op0_kind() {
                OpKind::Register => keep,
                _ => Class::Branch,
            }
        }
        Class::CallIndirect(Callee::Memory(Space::Heap))
        | Class::JumpIndirect(Callee::Memory(Space::Heap)) => class,
        Class::CallIndirect(Callee::Memory(_)) | Class::JumpIndirect(Callee::Memory(_)) => keep,
    }
}

/// Whether an instruction moves `rsp` in a way that frames of the kernel are made
/// with: by a constant, to alignment, from another register.
pub fn makes_frame(iced: &Instruction) -> bool {
    use Mnemonic as M;
    let to_rsp = iced.op_count() == 2
        && iced.op0_kind() == OpKind::Register
        && iced.op0_register() == Register::RSP;
    let from_register = iced.op1_kind() == OpKind::Register;
    let from_memory = iced.op1_kind() == OpKind::Memory;
    match iced.mnemonic() {
        // By what a register holds frames are made whose size nobody knows.
        M::Add | M::Sub | M::And => to_rsp && !from_memory && !from_register,
        M::Mov => to_rsp && !from_memory && points_to_frame(iced.op1_register()),
        M::Lea => to_rsp && iced.memory_index() == Register::None,
        M::Leave => true,
        _ => false,
    }
}

/// Registers that unwinding may count from. From any other, `rsp` comes by a
/// constant.
fn points_to_frame(register: Register) -> bool {
    matches!(register, Register::RBP | Register::R10)
}

/// Hints about caches, which an alternative may choose among.
pub fn is_cache_hint(iced: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        iced.mnemonic(),
        M::Prefetch
            | M::Prefetchw
            | M::Prefetchwt1
            | M::Prefetchnta
            | M::Prefetcht0
            | M::Prefetcht1
            | M::Prefetcht2
            | M::Clflush
            | M::Clflushopt
            | M::Clwb
            | M::Cldemote
    )
}
