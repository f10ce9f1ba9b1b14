//! A stock Linux kernel: a whole module in place of the original. What compilers
//! and the kernel do with a module may stay; only memory that the driver computes
//! the address of goes through a check.

use twin_abi::{Processor, Target};

use super::{
    Breakpoints, Callees, Contents, Frames, IndirectBranches, Instructions, NamedMemory, Patching,
    Reads, ReturnWords, Rules, UnreachedCode,
};

/// The rules of `--target linux`.
pub const RULES: Rules = Rules {
    target: Target::Linux,
    contents: Contents::Module,
    patching: Patching::ByKernelTables,
    instructions: Instructions::Kernel,
    processor: Processor::Any,
    named_memory: NamedMemory::SymbolsAndPerCpu,
    reads: Reads::Confined,
    indirect_branches: IndirectBranches::Near,
    return_words: ReturnWords::Trusted,
    breakpoints: Breakpoints::EndThread,
    unreached_code: UnreachedCode::Allowed,
    frames: Frames::Compiled,
    callees: Callees::KeepByPsabi,
};

/// The same where stores alone are confined (`--accesses stores`).
pub const STORES: Rules = Rules {
    reads: Reads::Anywhere,
    ..RULES
};
