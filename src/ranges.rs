//! Ranges of code that may throw, as gcc's text shows them: between `.LEHB5:` and `.LEHE5:`.
//!
//! gcc begins and ends a range at instructions that may throw. By default these are calls.
//! Under -fnon-call-exceptions, which is an attribute of functions, too, they are accesses as
//! well: unwinding out of a rewritten one would lose registers that its sequence has spilled.
//! An access between two calls of one range looks the same either way, and is not found, but in
//! languages whose accesses always throw: Ada and Go. The routine of their unwinders shows these.

use std::cell::LazyCell;

use svm_rewrite::{Refusal, RefusalCode};

/// Refuses a text in which something other than a call throws.
///
/// # Errors
/// The first place.
pub fn check(text: &[u8]) -> Result<(), Refusal> {
    match throwing(text) {
        None => Ok(()),
        Some(line) => {
            let reason = "a place that may throw is no call: the function has the attribute \
                          optimize(\"non-call-exceptions\"), or is in a language whose accesses \
                          throw (Ada, Go), and a rewritten access is several instructions";
            Err(Refusal {
                line,
                ..Refusal::of_object(RefusalCode::Options, reason)
            })
        }
    }
}

/// The line, from 1, of the first instruction at an end of a range that is no call; of the first
/// access in a range where accesses always throw.
fn throwing(text: &[u8]) -> Option<u32> {
    let always = LazyCell::new(|| always_throws(text));
    let (mut begins, mut inside, mut last) = (false, false, None);
    for (line, number) in text.split(|byte| *byte == b'\n').zip(1..) {
        if line.starts_with(b".LEHB") {
            (begins, inside) = (true, true);
        } else if line.starts_with(b".LEHE") {
            inside = false;
            if last.is_some() {
                return last;
            }
        } else if is_instruction(line) {
            last = (!is_transfer(line)).then_some(number);
            let is_end = std::mem::take(&mut begins);
            if last.is_some() && (is_end || inside && may_access(line) && *always) {
                return last;
            }
        }
    }
    None
}

/// Whether a text is in a language whose accesses throw, by the routine that unwinders call.
fn always_throws(text: &[u8]) -> bool {
    const ROUTINES: [&[u8]; 2] = [b"__gnat_personality_v0", b"__gccgo_personality_v0"];
    ROUTINES
        .iter()
        .any(|name| text.windows(name.len()).any(|part| part == *name))
}

/// Whether an instruction has an operand in memory, `lea` and `nop` apart.
fn may_access(line: &[u8]) -> bool {
    let name = line.trim_ascii_start();
    let is_address = name.starts_with(b"lea") || name.starts_with(b"nop");
    !is_address && line.contains(&b'(')
}

/// Whether it is one, as gcc indents them; directives and comments are indented, too.
fn is_instruction(line: &[u8]) -> bool {
    matches!(line, [b'\t', first, ..] if first.is_ascii_alphabetic())
}

/// A call, or a part of one through a thunk.
fn is_transfer(line: &[u8]) -> bool {
    let name = line.trim_ascii_start();
    ["call", "jmp", "notrack"]
        .iter()
        .any(|one| name.starts_with(one.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_begins_and_ends_with_calls() {
        let range = |inside: &str| {
            let text =
                format!("f:\n\tmovq (%rdi), %rax\n.LEHB0:\n{inside}.LEHE0:\n\tmovq %rax, (%rdi)\n");
            throwing(text.as_bytes())
        };
        assert_eq!(range("\tcall\tg\n"), None);
        assert_eq!(
            range("\t.loc 1 2\n.L3:\n\tcall\tg\n\tmovq (%rax), %rdi\n#APP\n\tnotrack call *%rdi\n"),
            None
        );
        assert_eq!(range("\tmovq (%rdi), %rax\n\tcall\tg\n"), Some(4));
        assert_eq!(range("\tcall\tg\n\tmovq (%rdi), %rax\n"), Some(5));
    }

    #[test]
    fn accesses_of_some_languages_throw_anywhere_in_a_range() {
        let range = |inside: &str, routine: &str| {
            let text = format!(
                "f:\n.LEHB0:\n\tcall\tg\n{inside}\tcall\tg\n.LEHE0:\n\tmovq (%rax), %rdi\n\
                 \t.cfi_personality 0x3,{routine}\n"
            );
            throwing(text.as_bytes())
        };
        let access = "\tmovq (%rax), %rdi\n";
        assert_eq!(range(access, "__gnat_personality_v0"), Some(4));
        assert_eq!(range(access, "__gccgo_personality_v0"), Some(4));
        assert_eq!(range(access, "__gxx_personality_v0"), None);
        let others = "\tleaq 8(%rax), %rdi\n\tmovq %rax, %rdi\n\tcall *(%rax)\n";
        assert_eq!(range(others, "__gnat_personality_v0"), None);
    }
}
