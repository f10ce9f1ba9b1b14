//! What emitted code, the runtime and the verifier agree upon: names, numbers
//! and layouts, each stated once for Rust. `runtime/include/twin/abi.h` states
//! them once for C and assembly; the testbed's `abi_agreement` test compares
//! the two, so neither can drift.
//!
//! There is no logic here. The verifier may depend on this crate and on the object
//! reader, never on the rewriter.

/// Version of everything in this crate, stored in every rewritten object
/// (`.note.twin`). Verifiers and loaders refuse any other.
pub const ABI_VERSION: u32 = 6;

pub mod explanation;
mod listed;

/// Geometry of memory and of the software translation table (paper, 4.1).
pub mod stlb {
    /// log2 of the page size in bytes.
    pub const PAGE_SHIFT: u32 = 12;
    /// Page size in bytes.
    pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
    /// Entries in the table; a power of two.
    pub const ENTRIES: u64 = 4096;
    /// log2 of the bytes of one entry `{ u64 tag; u64 xlate; }`.
    pub const ENTRY_SHIFT: u32 = 4;
    /// Byte offset of the tag (a dom0 page address) inside an entry.
    pub const TAG: u64 = 0;
    /// Byte offset of the translation inside an entry.
    pub const XLATE: u64 = 8;
    /// Table index, in bytes, of virtual address `va`:
    /// `(va >> INDEX_SHIFT) & INDEX_MASK`.
    pub const INDEX_SHIFT: u32 = PAGE_SHIFT - ENTRY_SHIFT;
    /// See [`INDEX_SHIFT`].
    pub const INDEX_MASK: u64 = (ENTRIES - 1) << ENTRY_SHIFT;
    /// Consecutive pages that one valid entry maps, its own first: an access that
    /// begins in the first may end in the second (paper, footnote 2).
    pub const WINDOW_PAGES: u64 = 2;
    /// Bytes before a translated address that its translation also covers: dom0's
    /// page, or a hole. So the page before an entry's own is in its window too, and
    /// accesses below the checked one may share its translation.
    pub const BELOW: u64 = PAGE_SIZE;
    /// Bytes at and after a translated address that are certainly in its window: the
    /// address may be the last byte of the entry's own page.
    pub const COVERED: u64 = (WINDOW_PAGES - 1) * PAGE_SIZE + 1;
}

/// How emitted code reaches dom0's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Scheme {
    /// Figure 4 of the paper: compare the page with the tag, then
    /// `address ^= xlate`, where `xlate = page ^ mapped`.
    Paper = 0,
    /// Subtract the tag, compare the remainder with the page size, then
    /// `remainder += xlate`, where `xlate = mapped`.
    Stlb = 1,
    /// No table: the GS base is the start of a window of 4 GiB ([`window`]), and the
    /// prefixes 65 67 cut each address to its low 32 bits.
    Window32 = 2,
    /// No table: the window has 4 TiB ([`window::wide`]). An address is cut to its low 42
    /// bits in a register, by `pext` or `and`, and reached with the prefix 65.
    Window = 3,
}

impl Scheme {
    /// All schemes, the default first.
    pub const ALL: [Scheme; 4] = [
        Scheme::Stlb,
        Scheme::Paper,
        Scheme::Window32,
        Scheme::Window,
    ];

    /// The schemes with a translation table ([`stlb`]), the default first.
    pub const TABLES: [Scheme; 2] = [Scheme::Stlb, Scheme::Paper];

    /// Whether code for the target can have this scheme: a window is the hypervisor's
    /// to lay out.
    pub fn serves(self, target: Target) -> bool {
        match self {
            Scheme::Paper | Scheme::Stlb => true,
            Scheme::Window32 | Scheme::Window => target == Target::Hypervisor,
        }
    }

    /// Bytes of its window; `None` for a scheme with a table.
    pub fn window_size(self) -> Option<u64> {
        match self {
            Scheme::Paper | Scheme::Stlb => None,
            Scheme::Window32 => Some(window::SIZE),
            Scheme::Window => Some(window::wide::SIZE),
        }
    }

    /// What its code is for where nothing else is asked for: the fastest.
    pub fn processor(self) -> Processor {
        match self {
            Scheme::Paper | Scheme::Stlb | Scheme::Window32 => Processor::Any,
            Scheme::Window => Processor::Bmi2,
        }
    }

    /// The scheme with this number in `.note.twin`, if there is one.
    pub fn from_number(n: u32) -> Option<Scheme> {
        Scheme::ALL.into_iter().find(|&s| s as u32 == n)
    }

    /// What an entry's `xlate` holds for a page that is mapped at `mapped`; `None` for a
    /// scheme without a table.
    pub fn xlate(self, page: u64, mapped: u64) -> Option<u64> {
        match self {
            Scheme::Paper => Some(page ^ mapped),
            Scheme::Stlb => Some(mapped),
            Scheme::Window32 | Scheme::Window => None,
        }
    }

    /// Where a page is mapped whose entry holds `xlate`; `None` as above.
    pub fn mapped(self, page: u64, xlate: u64) -> Option<u64> {
        match self {
            Scheme::Paper => Some(page ^ xlate),
            Scheme::Stlb => Some(xlate),
            Scheme::Window32 | Scheme::Window => None,
        }
    }

    /// Name on the command line and in reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Scheme::Paper => "paper",
            Scheme::Stlb => "stlb",
            Scheme::Window32 => "window32",
            Scheme::Window => "window",
        }
    }

    /// One line for people: what its check does.
    pub fn summary(self) -> &'static str {
        match self {
            Scheme::Paper => "Figure 4 of the paper, with 64-bit registers",
            Scheme::Stlb => "Subtract the tag, compare, add: the fastest with a table",
            Scheme::Window32 => "No check: 4 GiB of dom0 in a window that no address leaves",
            Scheme::Window => "No check: 4 TiB of dom0 in a window",
        }
    }
}

crate::listed! {
    /// What rewritten code runs on, and so which contract it keeps.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u32)]
    pub enum Target {
        /// A hypervisor, the testbed's or Xen: code only, whose data stays in dom0.
        /// The loader chooses where the code is placed.
        #[default]
        Hypervisor = 0 => "hypervisor",
        /// A stock Linux kernel: a module in place of the original, whose translations
        /// are the identity.
        Linux = 1 => "linux",
        /// A program in its own process, whose translations are the identity. Made from
        /// assembly text; nothing is proved of it.
        Process = 2 => "process",
    }
}

impl Target {
    /// The target with this number in `.note.twin`, if there is one.
    pub fn from_number(n: u32) -> Option<Target> {
        Target::ALL.into_iter().find(|&t| t as u32 == n)
    }

    /// One line for people: what such code is.
    pub fn summary(self) -> &'static str {
        match self {
            Target::Hypervisor => "A driver inside a hypervisor: confined to dom0's memory",
            Target::Linux => "A module for a stock Linux kernel, with that kernel's rights",
            Target::Process => "A program in its own process, mapped to itself",
        }
    }
}

crate::listed! {
    /// Which accesses to memory are translated, and so which are confined.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u32)]
    pub enum Accesses {
        /// Loads and stores.
        #[default]
        All = 0 => "all",
        /// What may write memory, and the destinations of indirect calls and jumps. Other
        /// loads stay as they are, and nothing is claimed of what they reach.
        Stores = 1 => "stores",
    }
}

impl Accesses {
    /// The mode with this number in `.note.twin`, if there is one.
    pub fn from_number(n: u32) -> Option<Accesses> {
        Accesses::ALL.into_iter().find(|&a| a as u32 == n)
    }

    /// Whether code for the target can have this mode: a load that stays reads what is at
    /// its own address, so that has to be the driver's.
    pub fn serves(self, target: Target) -> bool {
        match (self, target) {
            (Accesses::All, _) => true,
            (Accesses::Stores, Target::Linux | Target::Process) => true,
            (Accesses::Stores, Target::Hypervisor) => false,
        }
    }

    /// One line for people: what is translated.
    pub fn summary(self) -> &'static str {
        match self {
            Accesses::All => "Loads and stores: both are confined",
            Accesses::Stores => "Stores alone: writes are confined, reads are not",
        }
    }
}

crate::listed! {
    /// Which processors have the instructions that the rewriter adds. What the driver itself
    /// needs is the driver's.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    #[repr(u32)]
    pub enum Processor {
        /// Every x86-64 processor.
        #[default]
        Any = 0 => "any",
        /// Those with BMI2: `pext` cuts addresses (scheme `window`).
        Bmi2 = 1 => "bmi2",
    }
}

impl Processor {
    /// The processors with this number in `.note.twin`, if there are such.
    pub fn from_number(n: u32) -> Option<Processor> {
        Processor::ALL.into_iter().find(|&p| p as u32 == n)
    }

    /// Whether code in the scheme can be for these: no other scheme has a use for `pext`.
    pub fn serves(self, scheme: Scheme) -> bool {
        match self {
            Processor::Any => true,
            Processor::Bmi2 => scheme.processor() == Processor::Bmi2,
        }
    }

    /// One line for people: which these are.
    pub fn summary(self) -> &'static str {
        match self {
            Processor::Any => "Every x86-64 processor",
            Processor::Bmi2 => "Those with BMI2: addresses are cut by pext (scheme window)",
        }
    }
}

/// What an object was made for, as its note says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MadeFor {
    /// What it runs on.
    pub target: Target,
    /// How it reaches memory.
    pub scheme: Scheme,
    /// Which accesses go that way.
    pub accesses: Accesses,
    /// Which processors can run it.
    pub processor: Processor,
}

/// The block of memory that one CPU runs a driver on. It is aligned to its
/// size, so that emitted code finds the CPU's context by masking `rsp`:
///
/// ```text
/// +0x0000  guard page, never mapped
/// +0x1000  shadow of the driver stack: a copy of each return address on the stack,
///          [`SHADOW`](stack::SHADOW) bytes below it
/// +0x5000  guard pages, never mapped
/// +0x9000  driver stack, 4 pages, grows down from +0xd000
/// +0xd000  guard page, never mapped
/// +0xe000  struct twin_cpu   = (rsp | 0xffff) - 0x1fff
/// +0xf000  the host's: a page of its own, or never mapped. Xen finds its data of the CPU at
///          the end of an aligned stack of 32 KiB, by rsp | 0x7fff
/// ```
///
/// A translation to a page of the stack also covers the page before and the page after.
/// Each is a page of the stack or a guard page, so no pointer of the driver reaches the
/// shadow.
pub mod stack {
    /// Size and alignment of the block in bytes.
    pub const BLOCK: u64 = 0x10000;
    /// Offset of the lowest stack byte.
    pub const LOW: u64 = 0x9000;
    /// Offset one past the highest stack byte.
    pub const HIGH: u64 = 0xd000;
    /// Offset of `struct twin_cpu`.
    pub const CONTEXT: u64 = 0xe000;
    /// Offset of the page that is the host's.
    pub const HOST: u64 = 0xf000;
    /// Bytes from a return address on the stack down to its shadow copy.
    pub const SHADOW: u64 = 0x8000;
    /// Offset of the context's dom0 `%fs` base from `rsp | (BLOCK - 1)`.
    pub const FS_BASE_FROM_TOP: i64 = CONTEXT as i64 - (BLOCK as i64 - 1);
    /// Offset of the context's dom0 `%gs` base from `rsp | (BLOCK - 1)`.
    pub const GS_BASE_FROM_TOP: i64 = FS_BASE_FROM_TOP + 8;
    /// Most bytes a function may have below its return address, spills and
    /// outgoing arguments included: less than the guard page, so that the next
    /// call's return address cannot be written beyond it.
    pub const MAX_FRAME: i64 = 3968;
    /// Bytes below `rsp` that an instruction may touch (the kernel's `smp_mb`
    /// is `lock addl $0,-4(%rsp)`; psABI 3.2.2 calls them the red zone).
    pub const BELOW_RSP: i64 = 128;
    /// Bytes above its return address that any function may *read*: stack
    /// arguments. The code that enters the driver keeps that many mapped above.
    pub const INCOMING_ARGS: i64 = 64;
}

/// The window of the schemes without a table: a range of the hypervisor's addresses in
/// which dom0's page at address `A` appears at the window's start plus the low 32 bits of
/// `A`. While driver code runs, the GS base is the window's start. The pages before and
/// after the window are never mapped, nor is what no dom0 page claims.
pub mod window {
    /// Bytes of the window.
    pub const SIZE: u64 = 1 << 32;
    /// Bytes that are never mapped before the window's start and after its end: more
    /// than one instruction reaches beyond an address inside.
    pub const GUARD: u64 = 1 << 16;
    /// Bytes from the window's start that are never mapped, so that a small number
    /// taken for a pointer faults.
    pub const NULL_GUARD: u64 = 1 << 16;

    /// The window of the scheme `window`: the low 42 bits of an address are its place.
    pub mod wide {
        /// log2 of [`SIZE`].
        pub const BITS: u32 = 42;
        /// Bytes of the window.
        pub const SIZE: u64 = 1 << BITS;
        /// The window's last bytes are mapped once more before its start, so many: an
        /// operand may be a displacement alone, or reach below its base, and both are
        /// extended by their sign. dom0's kernel and modules have their addresses there.
        pub const MIRROR: u64 = 1 << 31;
        /// Bytes that are never mapped before the mirror and after the window's end: more
        /// than a displacement, a bit offset of 32 bits and an access reach beyond an
        /// address inside.
        pub const GUARD: u64 = 1 << 32;
        /// What an address is cut with.
        pub const MASK: u64 = SIZE - 1;
    }
}

/// Names in the symbol table of a rewritten object.
pub mod names {
    /// Undefined symbols with this prefix are in dom0: `twin_vm:.rodata` is the
    /// address of the original's section there, `twin_vm:jiffies` that of
    /// `jiffies`. Never called directly.
    pub const VM_PREFIX: &str = "twin_vm:";
    /// The translation table: [`super::stlb::ENTRIES`] entries, at an address
    /// that a sign-extended 32-bit displacement reaches.
    pub const STLB: &str = "twin_stlb";
    /// `twin_slow_<reg>`, reg one of [`SLOW_REGISTERS`]: takes a dom0 virtual
    /// address in that register and returns its translation there. It keeps every
    /// other register, but not the flags, which a check overwrites before it calls.
    /// It does not return if the address is refused. (Target `linux`: keeps the
    /// flags as well, and there is none for `rbp`.)
    pub const SLOW_PREFIX: &str = "twin_slow_";
    /// The registers that a slow path can be entered with.
    pub const SLOW_REGISTERS: [&str; 15] = [
        "rax", "rcx", "rdx", "rbx", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
        "r14", "r15",
    ];
    /// Called or jumped to with a VM code address in `r11`: continues at the
    /// matching address of the hypervisor instance. Keeps all registers except
    /// `r10`, `r11` and the flags. Aborts if the address is not in the codemap.
    pub const CALL: &str = "twin_stlb_call";
    /// `twin_in8 twin_in16 twin_in32`: `in` from the port in `dx` to
    /// `al/ax/eax` if the policy allows that port, else abort. Keep all other
    /// registers and the flags.
    pub const PORT_IN: [&str; 3] = ["twin_in8", "twin_in16", "twin_in32"];
    /// The same for `out`: port in `dx`, data in `al/ax/eax`.
    pub const PORT_OUT: [&str; 3] = ["twin_out8", "twin_out16", "twin_out32"];
    /// In place of a `ud2` that is a WARN: reports and returns. Keeps all registers
    /// and the flags.
    pub const WARN: &str = "twin_warn";
    /// In place of any other `ud2`: aborts. Does not return.
    pub const BUG: &str = "twin_bug";
    /// Called where a return address has changed: aborts. Does not return.
    pub const SMASHED: &str = "twin_smashed";
    /// Schemes with a window: the window's start, taken by `movabs` alone.
    pub const WINDOW: &str = "twin_window";
    /// Schemes with a window: what is added to an address on the control stack to give the
    /// address at which dom0 has the same place of the data stack: a multiple of
    /// [`super::window::SIZE`]. Taken by `movabs` alone.
    pub const STACK_VIEW: &str = "twin_stack_view";
    /// Scheme `window`: [`super::window::wide::MASK`], 8 bytes that are never written, less
    /// than 2 GiB from the code. Read by `pext`, `and` and `mov` alone, relative to `rip`.
    pub const WINDOW_MASK: &str = "twin_window_mask";
    /// `--strict`: called where a pointer is outside of [`LOWEST`] to [`HIGHEST`], with
    /// the pointer on the stack. Aborts; does not return.
    pub const WILD: &str = "twin_wild";
    /// `--strict`: the lowest address that a pointer may have, 8 bytes that are never written,
    /// less than 2 GiB from the code. Read by `cmp` alone, relative to `rip`.
    pub const LOWEST: &str = "twin_lowest";
    /// `--strict`: the highest, likewise.
    pub const HIGHEST: &str = "twin_highest";
    /// Every name of the runtime begins with this; a driver's own imports may not.
    pub const RUNTIME_PREFIX: &str = "twin_";
}

/// Sections that the rewriter adds.
pub mod sections {
    /// `SHT_NOTE`, owner `"twin\0"`, type 1, descriptor six little-endian
    /// `u32`: ABI version, scheme, word size in bits, target, accesses, processor.
    pub const NOTE: &str = ".note.twin";
    /// Owner of the note, without its terminating zero.
    pub const NOTE_OWNER: &str = "twin";
    /// Type of the note.
    pub const NOTE_TYPE: u32 = 1;
    /// Allocated, read-only. Entries of two words `{ vm, hypervisor }`, both
    /// filled by relocations: exactly the code addresses that may be reached
    /// through [`super::names::CALL`].
    pub const CODEMAP: &str = ".twin.codemap";
    /// Not allocated. Entries of three `u32`: index of the section in this
    /// object, offset in it, offset in the original section of the same name.
    /// Sorted; an entry holds until the next. It translates offsets in reports.
    pub const MAP: &str = ".twin.map";
    /// What the names of all sections but the note begin with.
    pub const PREFIX: &str = ".twin.";
    /// Bytes of one entry of [`MAP`].
    pub const MAP_ENTRY: usize = 12;
    /// Not allocated. What the object was made from and how: the text that a module for
    /// a stock kernel has in `.modinfo`.
    pub const ORIGIN: &str = ".twin.origin";
    /// Target `linux`: the runtime's code.
    pub const LINUX_TEXT: &str = ".twin.text";
    /// Target `linux`: the message that the runtime logs.
    pub const LINUX_RODATA: &str = ".twin.rodata";
    /// Target `linux`: the translation table.
    pub const LINUX_STLB: &str = ".twin.stlb";
}
