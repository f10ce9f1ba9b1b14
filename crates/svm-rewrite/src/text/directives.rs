//! Kinds of directives, by their names (as.info, "Pseudo Ops").

/// Directives that go to another section.
pub fn switches(name: &[u8]) -> bool {
    matches!(
        name,
        b".section"
            | b".text"
            | b".data"
            | b".bss"
            | b".pushsection"
            | b".popsection"
            | b".previous"
            | b".subsection"
    )
}

/// Directives that make bytes, which may be instructions.
pub fn makes_bytes(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 22] = [
        b".byte", b".2byte", b".4byte", b".8byte", b".value", b".short", b".hword", b".word",
        b".int", b".long", b".quad", b".octa", b".ascii", b".asciz", b".string", b".fill",
        b".skip", b".space", b".zero", b".insn", b".incbin", b".nops",
    ];
    NAMES.contains(&name)
}

/// Directives that make strings, which are no instructions.
pub fn makes_strings(name: &[u8]) -> bool {
    matches!(name, b".ascii" | b".asciz") || name.starts_with(b".string")
}

/// Directives that fill up to a multiple: with `nop`s in code, and where there are many of these
/// with a jump over them (gas/config/tc-i386.c, i386_generate_nops).
pub fn aligns(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 7] = [
        b".align", b".p2align", b".p2alignw", b".p2alignl", b".balign", b".balignw", b".balignl",
    ];
    NAMES.contains(&name)
}

/// Directives that make no bytes: they say something of a symbol, or for debuggers.
pub fn declares(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 14] = [
        b".globl", b".global", b".local", b".weak", b".hidden", b".protected", b".internal",
        b".type", b".size", b".file", b".ident", b".loc", b".set", b".equ",
    ];
    NAMES.contains(&name) || name.starts_with(b".cfi_")
}

/// Bytes of each operand of a directive that makes numbers.
pub fn width(name: &[u8]) -> Option<usize> {
    match name {
        b".byte" => Some(1),
        b".2byte" | b".value" | b".short" | b".hword" | b".word" => Some(2),
        b".4byte" | b".long" | b".int" => Some(4),
        b".8byte" | b".quad" => Some(8),
        _ => None,
    }
}

/// Directives whose operands may be addresses of labels, or numbers made of them, that are put into
/// data or become the value of a symbol. Assemblers get new ones: all are that are not known to be
/// others.
pub fn is_data(name: &[u8]) -> bool {
    let is_other = (declares(name) && !is_assignment(name))
        || switches(name)
        || aligns(name)
        || fills(name) && !name.starts_with(b".dcb")
        || has_no_labels(name)
        || is_repetition(name)
        || is_end(name)
        || Conditional::of(name).is_some();
    name.starts_with(b".") && !is_other
}

/// Directives that make strings, fractions and debug information, define macros and symbols without a
/// value, or speak to the assembler alone.
fn has_no_labels(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 43] = [
        b".ascii",
        b".asciz",
        b".string",
        b".string8",
        b".string16",
        b".string32",
        b".string64",
        b".float",
        b".single",
        b".double",
        b".tfloat",
        b".hfloat",
        b".bfloat16",
        b".comm",
        b".common",
        b".lcomm",
        b".largecomm",
        b".tls_common",
        b".symver",
        b".extern",
        b".version",
        b".addrsig",
        b".addrsig_sym",
        b".attach_to_group",
        b".macro",
        b".purgem",
        b".exitm",
        b".altmacro",
        b".noaltmacro",
        b".include",
        b".print",
        b".warning",
        b".error",
        b".err",
        b".line",
        b".linefile",
        b".arch",
        b".att_syntax",
        b".intel_syntax",
        b".code64",
        b".stabs",
        b".stabn",
        b".stabd",
    ];
    NAMES.contains(&name)
}

/// Directives of numbers that a length of code always fits, since they have four bytes or more, and
/// those that make no bytes of them.
pub fn fits_lengths(name: &[u8]) -> bool {
    const NAMES: [&[u8]; 5] = [b".octa", b".slong", b".dc.a", b".dc.l", b".reloc"];
    is_assignment(name) || NAMES.contains(&name) || width(name).is_some_and(|width| width >= 4)
}

/// Directives that make as many bytes as their operands say.
pub fn fills(name: &[u8]) -> bool {
    let more = name.starts_with(b".dcb") || name.starts_with(b".ds");
    more || matches!(
        name,
        b".fill" | b".skip" | b".space" | b".zero" | b".nops" | b".org"
    )
}

/// Directives that give a symbol a value.
pub fn is_assignment(name: &[u8]) -> bool {
    matches!(name, b".set" | b".equ" | b".equiv" | b".eqv")
}

/// Whether the operands of a `.byte` are prefixes of instructions (SDM volume 2, 2.1 and 2.2.1).
pub fn are_prefixes(operands: &[u8]) -> bool {
    operands.split(|b| *b == b',').all(|field| {
        matches!(
            byte(field.trim_ascii()),
            Some(0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
        )
    })
}

/// A number of one byte, decimal or hexadecimal.
fn byte(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    match digits.strip_prefix("0x") {
        Some(digits) => u8::from_str_radix(digits, 16).ok(),
        None if digits.starts_with('0') => None,
        None => digits.parse().ok(),
    }
}

/// Directives that open a body which is assembled several times.
pub fn is_repetition(name: &[u8]) -> bool {
    matches!(
        name,
        b".rept" | b".rep" | b".irp" | b".irep" | b".irpc" | b".irepc"
    )
}

/// Directives that end the body of a macro or a repetition.
pub fn is_end(name: &[u8]) -> bool {
    matches!(name, b".endm" | b".endr")
}

/// A directive of conditional assembly (as.info, ".if").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditional {
    /// `.if` and its variants.
    If,
    /// `.else`, `.elseif`.
    Else,
    /// `.endif`.
    End,
}

impl Conditional {
    /// What a directive of this name is.
    pub fn of(name: &[u8]) -> Option<Conditional> {
        match name {
            b".endif" | b".endc" => Some(Conditional::End),
            b".else" | b".elseif" | b".elsec" => Some(Conditional::Else),
            _ if name.starts_with(b".if") => Some(Conditional::If),
            _ => None,
        }
    }
}
