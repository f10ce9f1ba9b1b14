//! The classes of instructions: how each has to be treated, as data.

use liveness::Reg;
use serde::Serialize;

use crate::analyse::flow::Trap;
use crate::asm::{Branch, Jump, Segment};
use crate::lift::InstIdx;

/// Where a memory operand points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// `disp(%rsp)`: the driver's own frame, left alone.
    Stack,
    /// Through registers: anywhere in dom0.
    Heap,
    /// At a constant address in dom0.
    Global,
    /// Relative to a segment base of dom0.
    PerCpu(Segment),
}

/// Where an indirect call or jump takes its destination from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callee {
    /// From this register.
    Register(Reg),
    /// From memory of this kind.
    Memory(Space),
}

/// The string operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringOp {
    /// `movs`
    Movs,
    /// `movs` whose source stays as it is
    MovsTo,
    /// `stos`
    Stos,
    /// `lods`
    Lods,
    /// `cmps`
    Cmps,
    /// `scas`
    Scas,
    /// `ins`, where the kernel's own instruction stays
    Ins,
    /// `outs`, where the kernel's own instruction stays
    Outs,
}

impl StringOp {
    /// Whether `rsi` is translated.
    pub fn translates_rsi(self) -> bool {
        matches!(
            self,
            StringOp::Movs | StringOp::Lods | StringOp::Cmps | StringOp::Outs
        )
    }
    /// Whether `rdi` is translated.
    pub fn translates_rdi(self) -> bool {
        !matches!(self, StringOp::Lods | StringOp::Outs)
    }
    /// Whether it writes to memory.
    pub fn writes(self) -> bool {
        matches!(
            self,
            StringOp::Movs | StringOp::MovsTo | StringOp::Stos | StringOp::Ins
        )
    }
    /// Whether two translated pointers lead to what it copies.
    pub fn copies(self) -> bool {
        self == StringOp::Movs
    }
    /// Whether it sets the arithmetic flags and may stop early.
    pub fn compares(self) -> bool {
        matches!(self, StringOp::Cmps | StringOp::Scas)
    }
}

/// Direction of a string instruction, by DF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// DF clear: upwards.
    Forward,
    /// DF set: downwards.
    Backward,
}

/// Repeat prefix of a string instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// None: one element.
    Once,
    /// `rep`: `rcx` elements; with `cmps`/`scas` `repe`, while equal.
    Rep,
    /// `repne`: while not equal. Means `rep` for the others.
    Repne,
}

/// Direction and width of port I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// `in` rather than `out`.
    pub input: bool,
    /// log2 of the width in bytes.
    pub log2: u8,
    /// The port, if it is in the instruction rather than in `dx`.
    pub number: Option<u8>,
}

/// What an instruction is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Reaches no memory, or the stack by `push`, `pop`: copied.
    Plain,
    /// Has a memory operand in its own frame: copied.
    Stack,
    /// Fills space, or only serves tracing: dropped.
    Drop,
    /// No path of a hypervisor instance comes here: dropped (`analyse/reach.rs`). The
    /// kind is the one that it had, for statistics.
    Unreached(Option<SiteClass>),
    /// One explicit memory operand outside the frame.
    Memory(Space),
    /// `prefetch*`: a hint, which must not become an abort.
    Prefetch(Space),
    /// `bt bts btr btc` with a register bit offset: reaches beyond its operand.
    BitString(Space),
    /// `xlat`.
    Xlat,
    /// A string instruction: operation, log2 of the element size, prefix.
    String(StringOp, u8, Repeat),
    /// `push` from memory.
    PushMemory(Space),
    /// `pop` into memory.
    PopMemory(Space),
    /// `lea sym(%rip),%reg`: the address of something in dom0.
    AddressOf(Reg),
    /// Direct call or jump, conditional or not.
    Branch(Branch),
    /// Indirect call.
    CallIndirect(Callee),
    /// Indirect jump: a tail call.
    JumpIndirect(Callee),
    /// Indirect jump through a table of labels of its own function.
    Switch(Callee),
    /// Return to the caller.
    Return,
    /// `ud2`.
    Trap(Trap),
    /// A trap by another instruction, where the kernel never goes on: it becomes `ud2`.
    Stop,
    /// The read of kCFI's hash of a type, where the call table decides instead: it adds this number,
    /// that of the right type.
    TypeHash(i32),
    /// `popf` in an object that never sets the direction flag.
    PopFlags,
    /// `in`, `out`.
    Port(Port),
    /// `ins`, `outs`: port, memory and prefix.
    PortString(Port, Repeat),
    /// `leave`, `mov %reg,%rsp`, `lea disp(%reg),%rsp`: `rsp` from a register that
    /// points into the frame.
    FramePointerToStack,
    /// `and $-alignment,%rsp`.
    Realign(u8),
    /// Stays as it is, its relocations carried over; counted as that kind.
    Keep(Option<SiteClass>),
    /// Stays as it is, and its operand is relative to the instruction itself: the place
    /// of this instruction.
    KeepOwnPlace(InstIdx),
    /// A branch inside the object that the kernel may replace by another one: it has its
    /// long form.
    KeepBranch(Jump),
    /// A `nop` that the kernel may replace by a `jmp` or a call, so it has the length of a long one.
    StaticNop,
}

// Each instruction has one.
const _: () = assert!(size_of::<Class>() <= 8);

twin_abi::listed! {
    /// Classes as reports and statistics name them; scripts rely on these names.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SiteClass {
        /// Accesses to the driver's own stack frame.
        Stack => "stack",
        /// Accesses through registers.
        Heap => "heap",
        /// Accesses at a constant address.
        Global => "global",
        /// Accesses relative to `%fs` or `%gs`.
        Percpu => "percpu",
        /// String instructions: `movs`, `stos` and so on.
        String => "string",
        /// Bit tests whose offset is in a register.
        Bitstring => "bitstring",
        /// `push` and `pop` with an operand in memory.
        PushPop => "push_pop",
        /// Indirect call.
        IndirectCall => "indirect_call",
        /// Indirect jump.
        IndirectJump => "indirect_jump",
        /// Port I/O.
        PortIo => "port_io",
        /// Privileged or sensitive.
        Sensitive => "sensitive",
        /// Needs rewriting for another reason (returns, traps, addresses).
        Other => "other",
    }
}

impl SiteClass {
    fn of_space(space: Space) -> SiteClass {
        match space {
            Space::Stack => SiteClass::Stack,
            Space::Heap => SiteClass::Heap,
            Space::Global => SiteClass::Global,
            Space::PerCpu(_) => SiteClass::Percpu,
        }
    }
}

impl Class {
    /// Whether it has an operand `disp(%rsp)` that stays as it is, in code that has such.
    pub fn is_in_frame(self) -> bool {
        matches!(
            self,
            Class::Stack
                | Class::CallIndirect(Callee::Memory(Space::Stack))
                | Class::JumpIndirect(Callee::Memory(Space::Stack))
        )
    }

    /// Whether its sequence pushes `rbp` and takes it back. The kernel's own instruction is in it, and
    /// may be VMware's call by the bytes of a port, behind which the verifier believes nothing but `rsp`.
    pub fn saves_frame_pointer(self) -> bool {
        matches!(self, Class::String(StringOp::Ins | StringOp::Outs, 0, _))
    }

    /// The class as statistics count it; `None` for an instruction that reaches no
    /// memory and is copied or dropped.
    pub fn site_class(self) -> Option<SiteClass> {
        match self {
            Class::Plain
            | Class::Drop
            | Class::Branch(_)
            | Class::KeepBranch(_)
            | Class::StaticNop => None,
            Class::Keep(kind) | Class::Unreached(kind) => kind,
            Class::Stack | Class::PopFlags => Some(SiteClass::Stack),
            Class::Memory(space) | Class::Prefetch(space) => Some(SiteClass::of_space(space)),
            Class::BitString(_) => Some(SiteClass::Bitstring),
            Class::Xlat => Some(SiteClass::Heap),
            Class::String(..) => Some(SiteClass::String),
            Class::PushMemory(_) | Class::PopMemory(_) => Some(SiteClass::PushPop),
            Class::CallIndirect(_) => Some(SiteClass::IndirectCall),
            Class::JumpIndirect(_) | Class::Switch(_) => Some(SiteClass::IndirectJump),
            Class::Port(_) | Class::PortString(..) => Some(SiteClass::PortIo),
            Class::AddressOf(_)
            | Class::KeepOwnPlace(_)
            | Class::Return
            | Class::Trap(_)
            | Class::Stop
            | Class::TypeHash(_)
            | Class::FramePointerToStack
            | Class::Realign(_) => Some(SiteClass::Other),
        }
    }
}
