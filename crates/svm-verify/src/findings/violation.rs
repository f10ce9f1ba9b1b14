//! Violations: what the verifier reports about an object that it refuses.
//!
//! A [`Violation`] names the rule, the place, the instruction, why the rule is
//! not met and what to do. Its [`ViolationCode`] is stable: scripts and tests match on
//! the string of it, never on the wording of the reason.

use std::fmt;

use serde::{Serialize, Serializer};

/// The property that a violation breaks (`docs/proof/hypervisor.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Rule {
    /// The object itself: its kind, sections, symbols and tables.
    Object,
    /// Every access to memory is confined.
    P1,
    /// Control goes only where it was verified.
    P2,
    /// Only listed instructions occur, and two decoders agree on each.
    P3,
    /// `rsp` moves by constants, within the guard page.
    P4,
    /// Runtime state out of reach.
    P5,
}

/// Defines [`ViolationCode`], its names, rules and remedies: one entry a code.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $rule:ident, $remedy:literal;)*) => {
        twin_abi::listed! {
            /// Which rule exactly is not met.
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
            pub enum ViolationCode { $($(#[$doc])* $name => $text),* }
        }

        impl ViolationCode {
            /// The property it belongs to.
            pub fn rule(self) -> Rule {
                match self { $(ViolationCode::$name => Rule::$rule,)* }
            }

            /// What to do about it.
            pub fn remedy(self) -> &'static str {
                match self { $(ViolationCode::$name => $remedy,)* }
            }
        }
    };
}

codes! {
    /// Not an object made by this version of the rewriter.
    Foreign = "object-foreign", Object,
        "give the verifier the output of `twin rewrite` of this version";
    /// An object made for another contract than the one that is demanded.
    Contract = "object-contract", Object,
        "rewrite the original for this contract, or, if it is to be loaded where the other one holds, demand that";
    /// A section that a rewritten object does not have.
    Section = "object-section", Object,
        "keep only code, .note.twin, .twin.codemap, .twin.map and .twin.origin; data stays in dom0";
    /// A symbol that a rewritten object does not have.
    Symbol = "object-symbol", Object,
        "define only names of code, and refer to dom0 by twin_vm: names";
    /// `.twin.map` is not a sorted table of places in code.
    Map = "object-map", Object,
        "write whole entries, sorted by section and offset";
    /// `.twin.codemap` is not a table of pairs of VM address and entry point.
    Codemap = "P2-codemap", P2,
        "give each entry one relocation to a VM code address and one to a function entry";
    /// A memory operand whose address nothing confines.
    Untranslated = "P1-untranslated", P1,
        "translate the address and use the translated register with displacement 0";
    /// A translated register with an index or too far an access.
    Window = "P1-window", P1,
        "access at most 4097 bytes from a translated address, without an index";
    /// A stack access outside the function's own frame.
    StackBounds = "P1-stack-bounds", P1,
        "stay inside the frame, 128 bytes below it and 64 bytes of arguments above, or translate the address";
    /// A write to the return address or above it.
    ReturnSlot = "P1-return-slot", P1,
        "write only below the return address, or translate the address";
    /// `%fs:` or `%gs:`, 32-bit addressing, absolute or `%rip`-relative memory.
    AddressForm = "P1-address-form", P1,
        "compute the address into a register and translate it";
    /// In a scheme with a window, an operand that is not in the window by its own form.
    Operand = "P1-operand", P1,
        "give the operand the prefixes 65 and 67, once each, and registers of 32 bits or none";
    /// A memory operand that the instruction does not show.
    Implicit = "P1-implicit", P1,
        "use an instruction whose memory operand is explicit";
    /// A string instruction whose pointer is not a translated address, nor a window pointer.
    StringPointer = "P1-string-pointer", P1,
        "translate the pointer right before the string instruction, or make it a window pointer";
    /// `rep` with a count that is not bounded by what is covered.
    StringCount = "P1-string-count", P1,
        "bound %rcx by the elements covered from each pointer";
    /// A string instruction while the direction flag is unknown.
    StringDirection = "P1-string-direction", P1,
        "put cld or std on every path to the string instruction";
    /// `bt` and relatives with a register that may select a bit elsewhere.
    BitOffset = "P1-bit-offset", P1,
        "mask the bit offset to the operand's width";
    /// The CPU's context at any other place than its two segment bases.
    Context = "P1-context", P1,
        "read only the two segment bases, 8 bytes each";
    /// Code that no path reaches, and that is not padding.
    Unreached = "P2-unreached", P2,
        "leave the code out, or reach it: by a branch, a call, a function's symbol or the codemap";
    /// A branch to something that is not an instruction of this object.
    Target = "P2-target", P2,
        "branch to instruction starts of code sections";
    /// An indirect call or jump.
    Indirect = "P2-indirect", P2,
        "put the target into %r11 and call or jump to twin_stlb_call";
    /// A call or jump to a name that may not be called like this.
    Callee = "P2-callee", P2,
        "call imported routines and the runtime entries that the ABI lists";
    /// A relocation that is none of those that the contract lists.
    Relocation = "P2-relocation", P2,
        "relocate only whole operand fields, with the types and symbols of docs/spec/object.md";
    /// A table of the kernel that does not fit the code.
    Metadata = "P2-metadata", P2,
        "let each entry name the first byte of an instruction of the kind that the kernel expects";
    /// A check without an out-of-line part of its own of the required form.
    OutOfLine = "P2-out-of-line", P2,
        "give each check its own out-of-line part: the same address, the slow path, back";
    /// A return address that may not be the caller's, or its shadow misused.
    ReturnWord = "P2-return-word", P2,
        "keep the return address in its shadow where the function begins, and compare it before leaving";
    /// Code that runs past the end of its section.
    FallOff = "P2-fall-off", P2,
        "end the function with ret, a jump or ud2";
    /// A call, jump out or return while the direction flag may be set.
    Direction = "P2-direction", P2,
        "execute cld before calls and returns (psABI 3.2.1)";
    /// Bytes that are no instruction.
    Undecodable = "P3-undecodable", P3,
        "leave data out of code sections";
    /// Two decoders do not agree on an instruction, or only one reads any.
    Decoders = "P3-decoders", P3,
        "use another encoding of the instruction";
    /// An instruction that is not on the allow-list.
    Instruction = "P3-instruction", P3,
        "replace the instruction by what the runtime offers";
    /// A prefix that this instruction may not have.
    Prefix = "P3-prefix", P3,
        "drop the prefix";
    /// `rsp` changed by something other than a constant.
    StackPointer = "P4-rsp", P4,
        "move %rsp by constants only";
    /// `rsp` moved by something that is not a multiple of a word.
    Alignment = "P4-alignment", P4,
        "move %rsp by multiples of 8 bytes";
    /// Two paths meet with different depths of the stack.
    Depth = "P4-depth", P4,
        "leave the same depth on every path";
    /// A frame deeper than the guard page protects, or above its own start.
    Frame = "P4-frame", P4,
        "keep the frame within 3968 bytes, and never pop more than was pushed";
    /// A return or a tail call with a frame that is not empty.
    Return = "P4-return", P4,
        "pop the whole frame before leaving the function";
    /// The runtime is not the runtime, or something reaches into it.
    Runtime = "P5-runtime", P5,
        "link the runtime of this version, and name nothing of it but the slow paths and, in checks, the table";
    /// The translation table used outside a check.
    Table = "P5-table", P5,
        "read the table only in checks, as docs/spec/sequences.md shows them";
}

impl ViolationCode {
    /// What it means, why it cannot be accepted, what to do, an example.
    pub fn explanation(self) -> twin_abi::explanation::Explanation {
        super::explanations::explanation(self)
    }
}

impl fmt::Display for ViolationCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ViolationCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One place where an object does not keep the contract.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The property that is broken.
    pub rule: Rule,
    /// The exact rule.
    pub code: ViolationCode,
    /// Name of the section; empty where the whole object is meant.
    pub section: String,
    /// Byte offset in the section.
    pub offset: u64,
    /// The function around it: the nearest symbol at or before the offset.
    pub function: Option<String>,
    /// Offset from that symbol in bytes.
    pub function_offset: u64,
    /// The instruction in AT&T syntax; empty where none is meant.
    pub instruction: String,
    /// Why the rule is not met.
    pub reason: String,
    /// What to do.
    pub remedy: &'static str,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.code)?;
        if !self.section.is_empty() {
            write!(f, "{}+{:#x}", self.section, self.offset)?;
            if let Some(function) = &self.function {
                write!(f, " ({function}+{:#x})", self.function_offset)?;
            }
            f.write_str(": ")?;
        }
        if !self.instruction.is_empty() {
            write!(f, "`{}`: ", self.instruction)?;
        }
        write!(f, "{}; {}", self.reason, self.remedy)
    }
}

/// Why an object is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Violations {
    /// The first of them, at most as many as [`crate::Options::limit`], in the
    /// order of the object.
    pub list: Vec<Violation>,
    /// How many there are in all.
    pub total: usize,
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for violation in &self.list {
            writeln!(f, "{violation}")?;
        }
        match self.total - self.list.len() {
            0 => Ok(()),
            more => writeln!(f, "and {more} more"),
        }
    }
}

impl std::error::Error for Violations {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_begin_with_their_rule() {
        let mut seen = std::collections::HashSet::new();
        for code in ViolationCode::ALL {
            assert!(seen.insert(code.as_str()), "{code} twice");
            let prefix = match code.rule() {
                Rule::Object => "object-".to_string(),
                rule => format!("{rule:?}-"),
            };
            assert!(code.as_str().starts_with(&prefix), "{code}");
            assert!(!code.remedy().is_empty());
        }
    }
}
