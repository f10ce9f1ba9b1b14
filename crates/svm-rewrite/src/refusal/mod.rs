//! Refusals: the places that cannot be rewritten, with what a person can do about them.
//!
//! Code that is not understood is never passed through. Each refusal has a stable code, a
//! place, the instruction, the reason and a remedy. A run collects all refusals, so
//! "which sites failed?" always has a complete answer.

mod explanations;

use serde::Serialize;

/// Defines [`RefusalCode`], its names and remedies: one entry a code.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $remedy:literal;)*) => {
        twin_abi::listed! {
            /// The stable code of a refusal.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
            #[serde(rename_all = "kebab-case")]
            pub enum RefusalCode { $($(#[$doc])* $name => $text),* }
        }

        impl RefusalCode {
            /// What to do about it.
            pub fn remedy(self) -> &'static str {
                match self { $(RefusalCode::$name => $remedy,)* }
            }
        }
    };
}

codes! {
    /// The object is for a machine or word size that cannot be rewritten yet.
    Machine = "machine",
        "give an x86-64 relocatable object";
    /// What is asked for does not go together: target, scheme, accesses, processor, input.
    Options = "options",
        "choose others, as the reason says";
    /// The object was made by the rewriter.
    AlreadyRewritten = "already-rewritten",
        "give the original object, not the rewritten one";
    /// Code that the linker is to make (link-time optimisation).
    LinkTime = "link-time",
        "compile with -fno-lto";
    /// Bytes in a code section that are no instruction.
    Undecodable = "undecodable",
        "keep data out of code sections, or update twin if this is a new instruction";
    /// A code section that is writable or compressed, or a name used twice.
    CodeSection = "code-section",
        "give code sections names of their own (-funique-basic-block-section-names), or link an object's together with `ld -r`; keep them read-only and uncompressed";
    /// A relocation on no operand field, or of an unexpected type.
    Relocation = "relocation",
        "compile as the kernel does (-mcmodel=kernel -fno-pic -fno-common): no GOT, no thread-local storage, no common symbols";
    /// A branch that leaves the code, or lands inside an instruction.
    BranchTarget = "branch-target",
        "make the target a labelled instruction in a code section of this object";
    /// Kernel metadata that is not laid out as expected.
    Metadata = "metadata",
        "give a module of Linux 5.10 to 7.3, whose layouts are known";
    /// An access that the kernel may replace by other instructions.
    Patched = "patched",
        "leave this function in a module that is not rewritten, or build it without the alternative (CONFIG_PARAVIRT_SPINLOCKS and the like)";
    /// Data that refers to the middle of a function.
    CodeReference = "code-reference",
        "compile with -fno-jump-tables, as the kernel does, make the table const, or write a computed goto as a `switch`; keep pointers inside their data";
    /// A name in code that the result cannot have.
    Name = "name",
        "rename it (names that begin with twin_ are the runtime's), give it the type of a function, or declare it without `weak`";
    /// A function that begins or ends inside an instruction.
    Overlap = "overlap",
        "give each function its own bytes";
    /// An instruction that only the kernel or hypervisor may execute.
    Privileged = "privileged",
        "keep this function in the VM instance: leave it out of the object, or guard it there";
    /// An instruction whose memory accesses cannot be translated.
    Unsupported = "unsupported",
        "compile this function without that instruction (-mno-sse -mno-avx for kernel code, -mno-avx2 for programs), or leave it to the VM instance";
    /// An operand that names memory which the instruction may not reach so.
    NamedMemory = "named-memory",
        "name a variable of the module or of the kernel, and leave `const` out where it is written";
    /// An instruction of an extension that rewritten code does not use.
    Extension = "extension",
        "compile this function as the kernel compiles (-mno-80387 -mno-mmx -mno-avx512f, no intrinsics), or leave it to the VM instance";
    /// A prefix without effect on its instruction.
    Prefix = "prefix",
        "write the instruction without that prefix";
    /// An access below the stack pointer that spills would overwrite.
    RedZone = "red-zone",
        "compile with -mno-red-zone, as the kernel does";
    /// `rsp` is moved in a way that cannot be followed.
    StackPointer = "stack-pointer",
        "compile this function without alloca, arrays of variable length, large arrays on the stack and stack realignment";
    /// A thunk by which the compiler makes an indirect branch or a return of `ret`.
    Retpoline = "retpoline",
        "compile with -mindirect-branch=thunk-extern and -mfunction-return=thunk-extern, as the kernel does, or without either";
    /// No set of registers frees what the sequence needs.
    NoScratch = "no-scratch",
        "compile with optimisation, or split the instruction";
    /// The direction flag is not known at a string instruction.
    Direction = "direction",
        "set the direction with cld or std on every path to the string instruction, call or return";
    /// A line of assembly text that cannot be changed or printed.
    Statement = "statement",
        "write it as plain AT&T instructions and directives, one a statement, without macros";
    /// More instructions than any driver has, or more refusals than are listed.
    TooMany = "too-many",
        "give the objects one by one, before they are linked";
}

impl RefusalCode {
    /// What it means, why it cannot be passed through, what to do, an example.
    pub fn explanation(self) -> twin_abi::explanation::Explanation {
        explanations::explanation(self)
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
    pub code: RefusalCode,
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
    pub fn of_object(code: RefusalCode, reason: impl Into<String>) -> Refusal {
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
    pub fn at(code: RefusalCode, section: &str, offset: u64, reason: impl Into<String>) -> Refusal {
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
const MOST_REFUSALS: usize = 100_000;

/// A refusal of so many bytes is long: it has names that nobody reads.
const LONG: usize = 1000;

/// So many bytes a list may have that consists of long ones.
const MOST_BYTES: usize = 8 << 20;

/// Whether there is room for a refusal behind so many others.
pub fn fits(others: usize, refusal: &Refusal) -> bool {
    let Refusal {
        section,
        function,
        instruction,
        reason,
        ..
    } = refusal;
    let bytes = [section, function, instruction, reason].map(String::len);
    let bytes: usize = bytes.iter().sum();
    others < MOST_REFUSALS && (bytes <= LONG || others * bytes <= MOST_BYTES)
}

/// Whether the last of a list says that more are missing.
pub fn is_full(list: &[Refusal]) -> bool {
    let last = list.last();
    last.is_some_and(|last| last.code == RefusalCode::TooMany)
}

/// Adds to the list of an object. The last one that fits says that more are missing.
pub fn add(list: &mut Vec<Refusal>, refusal: Refusal) {
    if is_full(list) {
        return;
    }
    match list.len() + 1 < MOST_REFUSALS && fits(list.len(), &refusal) {
        true => list.push(refusal),
        false => list.push(Refusal::of_object(
            RefusalCode::TooMany,
            "further refusals are not listed",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each has its function's name, which is one in the file.
    #[test]
    fn a_list_of_refusals_with_long_names_is_short() {
        let named = |bytes: usize| Refusal {
            function: "f".repeat(bytes),
            ..Refusal::at(RefusalCode::Unsupported, ".text", 0, "it is")
        };
        for (bytes, most) in [(10, MOST_REFUSALS), (900, MOST_REFUSALS), (16_000, 530)] {
            let mut list = Vec::new();
            for _ in 0..MOST_REFUSALS + 10 {
                add(&mut list, named(bytes));
            }
            assert!(list.len() <= most, "{bytes}: {}", list.len());
            assert!(list.len() + 20 > most, "{bytes}: {}", list.len());
            let last = list.iter().position(|r| r.code == RefusalCode::TooMany);
            assert_eq!(last, Some(list.len() - 1));
        }
    }
}
