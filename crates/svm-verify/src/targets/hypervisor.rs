//! A hypervisor instance: only code, which reaches dom0 through checks alone, or through
//! the window alone. The loader supplies the runtime and enters the code at functions,
//! visible names and codemap entries.

use twin_abi::{Processor, Target};

use super::{
    Breakpoints, Callees, Contents, Frames, IndirectBranches, Instructions, NamedMemory, Patching,
    Reads, ReturnWords, Rules, UnreachedCode,
};

/// The rules of `--target hypervisor` in a scheme with a table.
pub const TABLE: Rules = Rules {
    target: Target::Hypervisor,
    contents: Contents::CodeAlone,
    patching: Patching::Never,
    instructions: Instructions::Unprivileged,
    processor: Processor::Any,
    named_memory: NamedMemory::None,
    reads: Reads::Confined,
    indirect_branches: IndirectBranches::Refused,
    return_words: ReturnWords::Shadowed,
    breakpoints: Breakpoints::MayContinue,
    unreached_code: UnreachedCode::Refused,
    frames: Frames::Own,
    callees: Callees::Untrusted,
};

/// The same in a scheme with a window.
pub const WINDOW: Rules = Rules {
    named_memory: NamedMemory::Window,
    return_words: ReturnWords::OutOfReach,
    ..TABLE
};

/// The same in the scheme whose window has 42 bits.
pub const WIDE_WINDOW: Rules = Rules {
    named_memory: NamedMemory::WideWindow,
    processor: Processor::Bmi2,
    ..WINDOW
};

/// The same for processors without BMI2.
pub const WIDE_WINDOW_FOR_ANY: Rules = Rules {
    processor: Processor::Any,
    ..WIDE_WINDOW
};
