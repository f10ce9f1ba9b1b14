//! Every code of a refusal has an explanation, and its example is refused with that
//! code.

use std::collections::HashSet;

use svm_rewrite::{Options, Refusal, RefusalCode, Scheme};
use twin_abi::explanation::Example;

#[test]
fn codes_are_distinct_and_kebab_case() {
    let mut seen = HashSet::new();
    for code in RefusalCode::ALL {
        let text = code.as_str();
        assert!(seen.insert(text), "{text} twice");
        assert!(
            text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'),
            "{text}"
        );
        let json = serde_json::to_value(code).expect("a string");
        assert_eq!(json, text, "reports and messages spell it alike");
    }
}

#[test]
fn texts_are_whole() {
    for code in RefusalCode::ALL {
        let text = code.explanation();
        for part in [text.meaning, text.why, text.remedy] {
            assert!(
                part.len() > 40 && part.ends_with(['.', ')']),
                "{code:?}: {part}"
            );
        }
        assert!(!text.example.text().is_empty(), "{code:?}");
    }
}

#[test]
fn examples_are_refused_with_their_code() {
    for code in RefusalCode::ALL {
        let Example::Assembly(body) = code.explanation().example else {
            continue;
        };
        let found: Vec<RefusalCode> = refusals(body).iter().map(|r| r.code).collect();
        assert!(
            found.contains(&code),
            "{code:?}: refused with {found:?}\n{body}"
        );
    }
}

fn refusals(body: &str) -> Vec<Refusal> {
    let end = if body.contains(".size") {
        ""
    } else {
        ".size f,.-f\n"
    };
    let text = format!(".text\n.globl f\n.type f,@function\nf:\n{body}\n{end}");
    let bytes = filetests::assemble(text, &[]);
    let object = elf_loader::read(&bytes).expect("the assembler makes readable objects");
    let rewritten = svm_rewrite::rewrite(&object, Options::new(Scheme::Stlb));
    rewritten.err().unwrap_or_default()
}
