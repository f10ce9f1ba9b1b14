//! Refusals: the places that cannot be rewritten, with what a person can do about them.
//!
//! Code that is not understood is never passed through. Each refusal has a stable code, a
//! place, the instruction, the reason and a remedy. A run collects all refusals, so
//! "which sites failed?" always has a complete answer.

mod explanations;

use serde::Serialize;

/// The stable code of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// The object is for a machine or word size that cannot be rewritten yet.
    Machine,
    /// The object was made by the rewriter.
    AlreadyRewritten,
    /// Code that the linker is to make (link-time optimisation).
    LinkTime,
    /// Bytes in a code section that are no instruction.
    Undecodable,
    /// A code section that is writable, or a name used twice.
    CodeSection,
    /// A relocation on no operand field, or of an unexpected type.
    Relocation,
    /// A branch that leaves the code, or lands inside an instruction.
    BranchTarget,
    /// Kernel metadata that is not laid out as expected.
    Metadata,
    /// An access that the kernel may replace by other instructions.
    Patched,
    /// Data that refers to the middle of a function.
    CodeReference,
    /// A function that begins or ends inside an instruction.
    Overlap,
    /// An instruction that only the kernel or hypervisor may execute.
    Privileged,
    /// An instruction whose memory accesses cannot be translated.
    Unsupported,
    /// An instruction of an extension that rewritten code does not use.
    Extension,
    /// A prefix without effect on its instruction.
    Prefix,
    /// An access below the stack pointer that spills would overwrite.
    RedZone,
    /// `rsp` is moved in a way that cannot be followed.
    StackPointer,
    /// No set of registers frees what the sequence needs.
    NoScratch,
    /// The direction flag is not known at a string instruction.
    Direction,
    /// A line of assembly text that cannot be changed or printed.
    Statement,
    /// More instructions than any driver has, or more refusals than are listed.
    TooMany,
}

impl Code {
    /// Every code.
    pub const ALL: &'static [Code] = &[
        Code::Machine,
        Code::AlreadyRewritten,
        Code::LinkTime,
        Code::Undecodable,
        Code::CodeSection,
        Code::Relocation,
        Code::BranchTarget,
        Code::Metadata,
        Code::Patched,
        Code::CodeReference,
        Code::Overlap,
        Code::Privileged,
        Code::Unsupported,
        Code::Extension,
        Code::Prefix,
        Code::RedZone,
        Code::StackPointer,
        Code::NoScratch,
        Code::Direction,
        Code::Statement,
        Code::TooMany,
    ];

    /// What it means, why it cannot be passed through, what to do, an example.
    pub fn explanation(self) -> twin_abi::explanation::Explanation {
        explanations::explanation(self)
    }

    /// The code as printed, for example `code-reference`.
    pub fn as_str(self) -> &'static str {
        match self {
            Code::Machine => "machine",
            Code::AlreadyRewritten => "already-rewritten",
            Code::LinkTime => "link-time",
            Code::Undecodable => "undecodable",
            Code::CodeSection => "code-section",
            Code::Relocation => "relocation",
            Code::BranchTarget => "branch-target",
            Code::Metadata => "metadata",
            Code::Patched => "patched",
            Code::CodeReference => "code-reference",
            Code::Overlap => "overlap",
            Code::Privileged => "privileged",
            Code::Unsupported => "unsupported",
            Code::Extension => "extension",
            Code::Prefix => "prefix",
            Code::RedZone => "red-zone",
            Code::StackPointer => "stack-pointer",
            Code::NoScratch => "no-scratch",
            Code::Direction => "direction",
            Code::Statement => "statement",
            Code::TooMany => "too-many",
        }
    }

    /// What the user can do about it.
    pub fn remedy(self) -> &'static str {
        match self {
            Code::Machine => "give an x86-64 relocatable object",
            Code::AlreadyRewritten => "give the original object, not the rewritten one",
            Code::LinkTime => "compile with -fno-lto",
            Code::Undecodable => {
                "keep data out of code sections, or update twin if this is a new instruction"
            }
            Code::CodeSection => {
                "link code sections of one name together with `ld -r` and keep them read-only"
            }
            Code::Relocation => {
                "compile for the kernel's code model (-mcmodel=kernel -fno-pic): no GOT and no TLS relocations"
            }
            Code::BranchTarget => {
                "make the target a labelled instruction in a code section of this object"
            }
            Code::Metadata => "give a module of Linux 5.10 to 7.3, whose layouts are known",
            Code::Patched => {
                "leave this function in a module that is not rewritten, or build it without the alternative (CONFIG_PARAVIRT_SPINLOCKS and the like)"
            }
            Code::CodeReference => {
                "compile with -fno-jump-tables, as the kernel does, or make the table const"
            }
            Code::Overlap => "give each function its own bytes",
            Code::Privileged => {
                "keep this function in the VM instance: leave it out of the object, or guard it there"
            }
            Code::Unsupported => {
                "compile this function without that instruction (-mno-sse -mno-avx for kernel code), or leave it to the VM instance"
            }
            Code::Extension => {
                "compile this function as the kernel compiles (-mno-80387 -mno-mmx -mno-avx512f, no intrinsics), or leave it to the VM instance"
            }
            Code::Prefix => "write the instruction without that prefix",
            Code::RedZone => "compile with -mno-red-zone, as the kernel does",
            Code::StackPointer => {
                "compile this function without alloca, variable-length arrays and stack realignment"
            }
            Code::NoScratch => "compile with optimisation, or split the instruction",
            Code::Direction => {
                "set the direction with cld or std on every path to the string instruction, call or return"
            }
            Code::Statement => {
                "write it as plain AT&T instructions, one a statement, without macros"
            }
            Code::TooMany => "give the objects one by one, before they are linked",
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_zero(line: &u32) -> bool {
    *line == 0
}

/// One refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refusal {
    /// Stable code.
    pub code: Code,
    /// Line of the assembly text, from 1; 0 for objects.
    #[serde(skip_serializing_if = "is_zero")]
    pub line: u32,
    /// Section name; empty if the whole object is meant.
    pub section: String,
    /// Offset in the section, in bytes.
    pub offset: u64,
    /// Enclosing function, if one is known.
    pub function: String,
    /// Offset in that function, in bytes.
    pub function_offset: u64,
    /// The instruction in AT&T syntax, if there is one.
    pub instruction: String,
    /// Why.
    pub reason: String,
}

impl Refusal {
    /// A refusal of the whole object.
    pub fn of_object(code: Code, reason: impl Into<String>) -> Refusal {
        Refusal {
            code,
            line: 0,
            section: String::new(),
            offset: 0,
            function: String::new(),
            function_offset: 0,
            instruction: String::new(),
            reason: reason.into(),
        }
    }

    /// A refusal of a place in a section that is in no known function.
    pub fn at(code: Code, section: &str, offset: u64, reason: impl Into<String>) -> Refusal {
        Refusal {
            section: section.to_owned(),
            offset,
            ..Refusal::of_object(code, reason)
        }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.line != 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if !self.section.is_empty() {
            write!(f, "{}+{:#x}: ", self.section, self.offset)?;
        }
        if !self.function.is_empty() {
            write!(f, "in {}+{:#x}: ", self.function, self.function_offset)?;
        }
        if !self.instruction.is_empty() {
            write!(f, "`{}`: ", self.instruction)?;
        }
        write!(
            f,
            "{} [{}]; {}",
            self.reason,
            self.code.as_str(),
            self.code.remedy()
        )
    }
}

/// Most refusals of one object that are listed: far more than any driver has, and few
/// enough that a hostile object cannot use up the memory.
pub const MOST_REFUSALS: usize = 100_000;

/// Adds to the list of an object. The last one that fits says that more are missing.
pub fn add(list: &mut Vec<Refusal>, refusal: Refusal) {
    match list.len() + 1 {
        n if n < MOST_REFUSALS => list.push(refusal),
        MOST_REFUSALS => list.push(Refusal::of_object(
            Code::TooMany,
            "further refusals are not listed",
        )),
        _ => {}
    }
}
