//! Statements that make several instructions, taken apart: directives, and x87 instructions that
//! wait before (SDM volume 1, 8.3.11 and 8.3.12).
//!
//! ```text
//!     .long 0x9066A4F3    ──>    .byte 0xf3,0xa4; .byte 0x66,0x90
//!     fstcw (%rdi)        ──>    fwait; fnstcw (%rdi)
//! ```
//!
//! So each has a statement that can be replaced by itself. That text counts only if it is
//! assembled to the same object ([`same`](super::same)), and whether such bytes are run is
//! judged afterwards, as of any others.

use iced_x86::{Decoder, DecoderOptions, Instruction};

use super::directives::width;
use super::statement::{Statement, StatementKind, split};

/// A text with one instruction for each statement. `None` if it is so already.
pub fn one_each(text: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut copied) = (Vec::new(), 0);
    let mut behind_instruction = false;
    for statement in &split(text) {
        match statement.kind {
            StatementKind::Instruction => {
                behind_instruction = true;
                if let Some(name) = waiting(statement.name(text)) {
                    out.extend_from_slice(&text[copied..statement.start as usize]);
                    out.extend_from_slice(b"fwait; ");
                    out.extend_from_slice(name);
                    copied = statement.name_end as usize;
                }
            }
            StatementKind::Prefix => behind_instruction = true,
            StatementKind::Label => {}
            StatementKind::Directive if behind_instruction => {
                behind_instruction = false;
                if let Some(apart) = taken_apart(text, statement) {
                    out.extend_from_slice(&text[copied..statement.start as usize]);
                    out.extend_from_slice(apart.as_bytes());
                    copied = statement.end as usize;
                    behind_instruction = true;
                }
            }
            _ => behind_instruction = false,
        }
    }
    out.extend_from_slice(&text[copied..]);
    (copied != 0).then_some(out)
}

/// The name without a wait of an x87 instruction that waits before.
fn waiting(name: &[u8]) -> Option<&'static [u8]> {
    match name {
        b"fstcw" => Some(b"fnstcw"),
        b"fstsw" => Some(b"fnstsw"),
        b"fstenv" => Some(b"fnstenv"),
        b"fsave" => Some(b"fnsave"),
        b"finit" => Some(b"fninit"),
        b"fclex" => Some(b"fnclex"),
        _ => None,
    }
}

/// A directive of numbers that makes several whole instructions, as one of bytes for each.
fn taken_apart(text: &[u8], statement: &Statement) -> Option<String> {
    let width = width(statement.name(text)).filter(|_| statement.is_constant(text))?;
    let fields = statement.rest(text).split(|b| *b == b',');
    let numbers = fields.map(|field| number(field.trim_ascii()));
    let mut bytes = Vec::new();
    for number in numbers {
        let all = number?.to_le_bytes();
        let (kept, cut) = all.split_at(width);
        if cut.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    let decoder = Decoder::new(64, &bytes, DecoderOptions::NONE);
    let insts: Vec<Instruction> = decoder.into_iter().collect();
    let several = insts.len() > 1 && !insts.iter().any(Instruction::is_invalid);
    let directive = |inst: &Instruction| {
        let bytes = &bytes[inst.ip() as usize..inst.next_ip() as usize];
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:#04x}")).collect();
        format!(".byte {}", bytes.join(","))
    };
    several.then(|| insts.iter().map(directive).collect::<Vec<_>>().join("; "))
}

/// A number, decimal or hexadecimal.
fn number(digits: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(digits).ok()?;
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None if digits.len() > 1 && digits.starts_with('0') => None,
        None => digits.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directives_of_several_instructions_behind_one_are_taken_apart() {
        let of = |text: &str| {
            let apart = one_each(text.as_bytes());
            apart.map(|text| String::from_utf8(text).expect("ASCII"))
        };
        assert_eq!(
            of("cld\n.long 0x9066A4F3 # copy\nret").as_deref(),
            Some("cld\n.byte 0xf3,0xa4; .byte 0x66,0x90 # copy\nret")
        );
        assert_eq!(of("cld\n.byte 0xf3,0xa4"), None);
        assert_eq!(of("cld\n.byte 0x90, 0x0f, 0xff"), None);
        assert_eq!(of(".data\n.long 0x9066A4F3"), None);
        assert_eq!(of("cld\n.byte 0x90, 0x390"), None);
        assert_eq!(of("cld\n.byte 0x90, 020"), None);
    }

    #[test]
    fn instructions_that_wait_are_taken_apart() {
        let of = |text: &str| {
            one_each(text.as_bytes()).map(|text| String::from_utf8(text).expect("ASCII"))
        };
        assert_eq!(
            of("f: fstcw -2(%rsp); finit\nfstsw\tax").as_deref(),
            Some("f: fwait; fnstcw -2(%rsp); fwait; fninit\nfwait; fnstsw\tax")
        );
        assert_eq!(of("fnstcw (%rdi)\nfstp %st(0)"), None);
    }
}
