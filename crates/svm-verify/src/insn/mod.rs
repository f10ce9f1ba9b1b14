//! An instruction as the interpretation needs it: its effect on registers, its memory
//! operand, where control goes. Compact, because all instructions of an object are kept,
//! as a [`Disassembly`].
//!
//! Only data: [`crate::decode`] fills it in, every later phase reads it.

mod disassembly;
pub mod forced;
mod places;
mod registers;

pub use disassembly::{Disassembly, Starts};
pub use places::{BranchTarget, CodeAt, Routine};
pub use registers::{Gpr, GprSet};

/// A decoded instruction.
#[derive(Clone, Copy, Debug)]
pub struct Insn {
    /// Byte offset in its section.
    pub at: u32,
    /// Length in bytes.
    pub len: u8,
    /// Whether it changes any status flag.
    pub flags: bool,
    /// Whether a relocation applies to it.
    pub relocated: bool,
    /// Whether it moves registers of 64 bits, as `cmovcc` does, and computes nothing, or what it
    /// puts in one is of 64 bits (target `linux`).
    pub moves: bool,
    /// Number of the code section.
    pub section: u16,
    /// General-purpose registers that it writes, in part or wholly.
    pub writes: GprSet,
    /// Those that it writes by itself. The others, a hypervisor may write.
    pub results: GprSet,
    /// General-purpose registers of which something may be in the results, also what an
    /// address is made of where more is computed than loaded. Only of [`Op::Plain`], [`Op::Misread`],
    /// [`Op::String`] and [`Op::Branch`].
    pub reads: GprSet,
    /// Those that it may write and may leave, each as it is: what a hypervisor does is not known.
    pub stays: GprSet,
    /// Those that it writes whose upper half it certainly clears, where that matters (schemes
    /// with a window).
    pub low: GprSet,
    /// Its explicit memory operand.
    pub memory: MemoryOperand,
    pub op: Op,
}

impl Insn {
    /// Whether it only fills space, where no path leads.
    pub fn is_padding(&self) -> bool {
        matches!(self.op, Op::Nop | Op::Breakpoint | Op::Stop)
    }
}

/// An explicit memory operand, `disp(%base)` or, if indexed, anything else.
#[derive(Clone, Copy, Debug)]
pub struct MemoryOperand {
    /// What happens there.
    pub access: Access,
    /// Whether an index register is added.
    pub indexed: bool,
    /// What the address is relative to.
    pub origin: Origin,
    /// Size in bytes.
    pub size: u16,
    /// Base register; meaningless unless the address is made of registers.
    pub base: Gpr,
    /// Displacement in bytes.
    pub disp: i32,
}

impl MemoryOperand {
    /// The operand of instructions that have none.
    pub const NONE: MemoryOperand = MemoryOperand {
        access: Access::None,
        indexed: false,
        origin: Origin::Registers,
        size: 0,
        base: Gpr(0),
        disp: 0,
    };
}

/// What an address is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The registers in it.
    Registers,
    /// A symbol, and nothing else (target `linux`).
    Symbol,
    /// The base of `%gs` (target `linux`).
    PerCpu,
    /// The start of the window: prefixes 65 and 67, registers of 32 bits or none (schemes
    /// with a window).
    Window,
    /// The start of the window, and nothing else (scheme `window`).
    NearWindow,
    /// The start of the window and a base of 64 bits, which has to be a place in it (scheme
    /// `window`).
    Cut,
    /// Zero, and registers of 32 bits (target `linux`): below 4 GiB, whatever is known of
    /// the whole registers.
    Narrow,
    /// A symbol and registers, or no register of 64 bits: where that is, is not known, and
    /// it is only read (where stores alone are confined).
    Unknown,
}

/// What an instruction does with its memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No access, or one that was refused when it was decoded.
    None,
    /// It is read and not written.
    Read,
    /// Write, perhaps after a read.
    Write,
}

/// Arithmetic with an immediate operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alu {
    /// `add`, `inc`.
    Add,
    /// `sub`.
    Sub,
    /// `and`.
    And,
    /// `or`.
    Or,
    /// `xor`.
    Xor,
    /// `shr`.
    Shr,
    /// `cmp`.
    Cmp,
}

/// A read of half a table entry, `op twin_stlb(%i), %v` or `op twin_stlb+8(%i), %v`.
/// The schemes say which there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRead {
    /// What is done with it and the register.
    pub op: Alu,
    pub half: Half,
}

/// Half of a table entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// The page that the entry is about.
    Tag,
    /// The word that makes an address of that page a translated one.
    Xlate,
}

/// The condition of a conditional branch, as far as it matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    /// `ja`.
    Above,
    /// `jne`.
    NotEqual,
    /// Any other, `loop` and `jrcxz` included.
    Other,
}

/// String instructions without their element size and prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringKind {
    /// `movs`.
    Movs,
    /// `stos`.
    Stos,
    /// `lods`.
    Lods,
    /// `cmps`.
    Cmps,
    /// `scas`.
    Scas,
    /// `ins` (target `linux`).
    Ins,
    /// `outs` (target `linux`).
    Outs,
}

/// The sum that `lea` computes, all of 64 bits and not relocated.
#[derive(Clone, Copy, Debug)]
pub enum Sum {
    /// A base and a displacement.
    Offset(Gpr, i32),
    /// Two registers and nothing else.
    Registers(Gpr, Gpr),
    /// Any other.
    Other,
}

impl StringKind {
    /// Whether it writes to memory, at `rdi`.
    pub fn writes(self) -> bool {
        matches!(self, StringKind::Movs | StringKind::Stos | StringKind::Ins)
    }
}

/// What an instruction does, in addition to [`Insn::writes`] and [`Insn::memory`].
#[derive(Clone, Copy, Debug)]
pub enum Op {
    /// Nothing that the interpretation follows.
    Plain,
    /// `mov %s, %d` of 64 bits.
    Copy { d: Gpr, s: Gpr },
    /// `mov %s, %d` of 32 bits.
    Copy32 { d: Gpr, s: Gpr },
    /// `mov $constant, %d` of 32 or 64 bits, perhaps relocated; `small` is the constant if it
    /// is not relocated and fits.
    Constant { d: Gpr, small: Option<u8> },
    /// `movabs $twin_window, %d` (schemes with a window).
    WindowStart { d: Gpr },
    /// `pext twin_window_mask(%rip), %s, %d`, `and` or `mov` of it to `%d` (scheme `window`).
    Cut { d: Gpr },
    /// `and %s, %d` of 64 bits.
    And { d: Gpr, s: Gpr },
    /// `lea`.
    Lea { d: Gpr, inputs: GprSet, sum: Sum },
    /// Arithmetic on `%d` with an immediate that is not relocated, on 64 bits
    /// if `wide`, else on 32.
    Alu {
        op: Alu,
        d: Gpr,
        imm: i32,
        wide: bool,
    },
    /// `cmp %right, %left` of 64 bits.
    Compare { left: Gpr, right: Gpr },
    /// `cmp bound(%rip), %r` of 64 bits, where the bound is one of dom0's addresses (schemes
    /// with a window).
    CompareBound { r: Gpr },
    /// `cmova %s, %d` of 64 bits.
    MoveIfAbove { d: Gpr, s: Gpr },
    /// `xchg %b, %a` of 64 bits (target `linux`).
    Exchange { a: Gpr, b: Gpr },
    /// A read of half a table entry; `cmp` writes no register.
    Table { read: TableRead, r: Gpr, index: Gpr },
    /// `prefetch (...)`.
    Prefetch,
    /// `bt` and relatives on memory with the bit offset in `%r`.
    BitAt { r: Gpr, bits: u8 },
    /// `push` of anything.
    Push,
    /// `push %s` (target `linux`).
    PushRegister { s: Gpr },
    /// `mov memory, %d` of 64 bits.
    Load { d: Gpr },
    /// A load that the kernel of an encrypted guest may take for something else: `mov memory, %ah`,
    /// `%ch`, `%dh` or `%bh`, `vshufps` and `vshufpd` of memory (target `linux`).
    Misread,
    /// `mov %s, memory` of 64 bits.
    Store { s: Gpr },
    /// `cmp %s, memory` of 64 bits.
    CompareMemory { s: Gpr },
    /// `popf` (target `linux`).
    PopFlags,
    /// `pop %d`.
    Pop { d: Gpr },
    /// `pop` to memory.
    PopMemory,
    /// `leave`.
    Leave,
    /// `ret`.
    Ret,
    /// `call`.
    Call(BranchTarget),
    /// `call` to an address in that register, or in memory (target `linux`).
    CallIndirect(Option<Gpr>),
    /// `jmp` there (target `linux`).
    JumpIndirect(Option<Gpr>),
    /// `jmp`.
    Jump(BranchTarget),
    /// A conditional branch.
    Branch(Condition, BranchTarget),
    /// `nop` of any length.
    Nop,
    /// `ud2`.
    Stop,
    /// `int3`.
    Breakpoint,
    /// `cld`.
    Cld,
    /// `std`.
    Std,
    /// A string instruction on elements of `1 << shift` bytes.
    String {
        kind: StringKind,
        shift: u8,
        rep: bool,
    },
}
