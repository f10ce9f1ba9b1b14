//! The differences between the targets: one value of [`Rules`] for each, made of data
//! alone. A hypervisor has one for schemes with a table and one for schemes with a window.
//!
//! A phase reads the field for the rule that it judges and never tests which target or
//! scheme it is. So a new target is one more file next to [`hypervisor`] and [`linux`]. A
//! rule that only this target has is a new variant here; then every `match` on the field
//! has to handle it.

mod contract;
mod hypervisor;
mod linux;

use twin_abi::{Accesses, MadeFor, Processor, Scheme, Target};

pub use contract::Contract;

/// The rules of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The target whose rules they are.
    pub target: Target,
    /// What the object holds in addition to code.
    pub contents: Contents,
    /// What writes to the code after loading.
    pub patching: Patching,
    /// P3: which instructions may occur.
    pub instructions: Instructions,
    /// P3: the processors that have the instructions which cut addresses.
    pub processor: Processor,
    /// P1: which memory an operand may name without a translated address.
    pub named_memory: NamedMemory,
    /// P1: where operands that are only read may be.
    pub reads: Reads,
    /// P2: calls and jumps to an address in a register or in memory.
    pub indirect_branches: IndirectBranches,
    /// P2: how it is known that a function returns to where it was called from.
    pub return_words: ReturnWords,
    /// P2: where `int3` leads.
    pub breakpoints: Breakpoints,
    /// P2: code that no path reaches.
    pub unreached_code: UnreachedCode,
    /// P4: what a function's frame may look like, and who may write it.
    pub frames: Frames,
    /// P4: which registers a callee is trusted to keep.
    pub callees: Callees,
}

/// What the object holds in addition to code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Contents {
    /// The tables of the ABI and nothing that is loaded: data stays in dom0, and
    /// the loader supplies the runtime.
    CodeAlone,
    /// All of a module: its data, the kernel's tables and the runtime.
    Module,
}

/// What writes to the code after loading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patching {
    /// Nothing: the verified code is the code that runs.
    Never,
    /// The kernel, as the tables in the module say.
    ByKernelTables,
}

/// P3: which instructions may occur.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// Those that any process may execute.
    Unprivileged,
    /// Those of the kernel as well: system instructions and cache hints.
    Kernel,
}

/// P1: which memory an operand may name without a translated address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedMemory {
    /// None: symbols name places in dom0.
    None,
    /// A symbol's place, and per-CPU data through `%gs`.
    SymbolsAndPerCpu,
    /// The window, which every operand names by its prefixes 65 and 67. Nothing is
    /// translated.
    Window,
    /// A window of 42 bits: as above; by its prefix 65 and a displacement, or a base that is
    /// cut to the window, without 67.
    WideWindow,
}

impl NamedMemory {
    /// Whether dom0's memory is reached through a window.
    pub fn is_window(self) -> bool {
        match self {
            NamedMemory::Window | NamedMemory::WideWindow => true,
            NamedMemory::None | NamedMemory::SymbolsAndPerCpu => false,
        }
    }
}

/// P1: where operands that are only read may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// Where operands may be that are written, and where writing alone is forbidden.
    Confined,
    /// Anywhere, except those of indirect calls and jumps.
    Anywhere,
}

/// P2: calls and jumps to an address in a register or in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndirectBranches {
    /// None may occur: the runtime looks their target up in the codemap.
    Refused,
    /// Near ones may occur: their targets are left to the kernel's own policy.
    Near,
}

/// P2: how it is known that a function returns to where it was called from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReturnWords {
    /// The function keeps the return address in a shadow and compares it.
    Shadowed,
    /// It is on a stack that no memory operand reaches.
    OutOfReach,
    /// It is left to the kernel's own policy.
    Trusted,
}

/// P2: where `int3` leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Breakpoints {
    /// A handler may continue after it, so it is allowed only as padding.
    MayContinue,
    /// It ends the thread.
    EndThread,
}

/// P2: code that no path reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnreachedCode {
    /// Nothing but padding may be unreached.
    Refused,
    /// Any code may be unreached: it is not executed.
    Allowed,
}

/// P4: what a function's frame may look like, and who may write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames {
    /// Places in a frame are relative to `rsp` at entry, and only its own function writes
    /// it.
    Own,
    /// As compilers make them for a kernel: `rsp` may be aligned once, words of the
    /// frame may hold frame addresses, and callees may write their arguments.
    Compiled,
}

/// P4: which registers a callee is trusted to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callees {
    /// None but `rsp`.
    Untrusted,
    /// Those of the psABI (3.2.1).
    KeepByPsabi,
}

impl Rules {
    /// The rules of code that was made for this; `None` if nothing is proved of such code,
    /// or there is none.
    pub fn of(made: MadeFor) -> Option<&'static Rules> {
        let MadeFor {
            target,
            scheme,
            accesses,
            processor,
        } = made;
        match (target, accesses) {
            _ if !scheme.serves(target) || !accesses.serves(target) => None,
            _ if !processor.serves(scheme) => None,
            (Target::Hypervisor, _) => Some(Rules::hypervisor(scheme, processor)),
            (Target::Linux, Accesses::All) => Some(&linux::RULES),
            (Target::Linux, Accesses::Stores) => Some(&linux::STORES),
            // Programs, of which nothing is proved.
            (Target::Process, _) => None,
        }
    }

    /// Those of a hypervisor instance on these processors.
    pub fn hypervisor(scheme: Scheme, processor: Processor) -> &'static Rules {
        match (scheme, processor) {
            (Scheme::Stlb | Scheme::Paper, _) => &hypervisor::TABLE,
            (Scheme::Window32, _) => &hypervisor::WINDOW,
            (Scheme::Window, Processor::Bmi2) => &hypervisor::WIDE_WINDOW,
            (Scheme::Window, Processor::Any) => &hypervisor::WIDE_WINDOW_FOR_ANY,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each rule by name with a target's value. Without `..`, so that a new rule has to
    /// be listed.
    fn listed(rules: &Rules) -> [(&'static str, String); 12] {
        let Rules {
            target: _,
            contents,
            patching,
            instructions,
            processor,
            named_memory,
            reads,
            indirect_branches,
            return_words,
            breakpoints,
            unreached_code,
            frames,
            callees,
        } = rules;
        [
            ("contents", format!("{contents:?}")),
            ("patching", format!("{patching:?}")),
            ("instructions", format!("{instructions:?}")),
            ("processor", format!("{processor:?}")),
            ("named_memory", format!("{named_memory:?}")),
            ("reads", format!("{reads:?}")),
            ("indirect_branches", format!("{indirect_branches:?}")),
            ("return_words", format!("{return_words:?}")),
            ("breakpoints", format!("{breakpoints:?}")),
            ("unreached_code", format!("{unreached_code:?}")),
            ("frames", format!("{frames:?}")),
            ("callees", format!("{callees:?}")),
        ]
    }

    /// The rules of code that was made for this. A match without `_`: a new variant does not
    /// compile until its rules are listed here.
    fn expected(made: MadeFor) -> Option<[&'static str; 12]> {
        if !made.processor.serves(made.scheme) {
            return None;
        }
        match (made.target, made.scheme, made.accesses) {
            (Target::Hypervisor, Scheme::Stlb | Scheme::Paper, Accesses::All) => Some([
                "CodeAlone", "Never", "Unprivileged", "Any", "None", "Confined", "Refused",
                "Shadowed", "MayContinue", "Refused", "Own", "Untrusted",
            ]),
            (Target::Hypervisor, Scheme::Window32, Accesses::All) => Some([
                "CodeAlone", "Never", "Unprivileged", "Any", "Window", "Confined", "Refused",
                "OutOfReach", "MayContinue", "Refused", "Own", "Untrusted",
            ]),
            (Target::Hypervisor, Scheme::Window, Accesses::All) => Some([
                "CodeAlone",
                "Never",
                "Unprivileged",
                match made.processor {
                    Processor::Any => "Any",
                    Processor::Bmi2 => "Bmi2",
                },
                "WideWindow",
                "Confined",
                "Refused",
                "OutOfReach",
                "MayContinue",
                "Refused",
                "Own",
                "Untrusted",
            ]),
            (Target::Linux, Scheme::Stlb | Scheme::Paper, Accesses::All) => Some([
                "Module", "ByKernelTables", "Kernel", "Any", "SymbolsAndPerCpu", "Confined",
                "Near", "Trusted", "EndThread", "Allowed", "Compiled", "KeepByPsabi",
            ]),
            (Target::Linux, Scheme::Stlb | Scheme::Paper, Accesses::Stores) => Some([
                "Module", "ByKernelTables", "Kernel", "Any", "SymbolsAndPerCpu", "Anywhere",
                "Near", "Trusted", "EndThread", "Allowed", "Compiled", "KeepByPsabi",
            ]),
            (Target::Hypervisor, _, Accesses::Stores)
            | (Target::Linux, Scheme::Window32 | Scheme::Window, _)
            | (Target::Process, ..) => None,
        }
    }

    #[test]
    fn every_rule_of_everything_that_code_is_made_for_is_listed() {
        let pairs = Target::ALL.map(|target| Scheme::ALL.map(|scheme| (target, scheme)));
        for (target, scheme) in pairs.into_iter().flatten() {
            let further = Accesses::ALL.map(|a| Processor::ALL.map(|p| (a, p)));
            for (accesses, processor) in further.into_iter().flatten() {
                let made = MadeFor {
                    target,
                    scheme,
                    accesses,
                    processor,
                };
                let (rules, expected) = (Rules::of(made), expected(made));
                assert_eq!(rules.is_some(), expected.is_some(), "{made:?}");
                let (Some(rules), Some(expected)) = (rules, expected) else {
                    continue;
                };
                assert_eq!(rules.target, target);
                for ((name, found), expected) in listed(rules).iter().zip(expected) {
                    assert_eq!(found, expected, "{name} of {made:?}");
                }
            }
        }
    }
}
