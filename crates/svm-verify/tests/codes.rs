//! Every code of a violation has an explanation, and its example is refused with that
//! code.

mod common;

use common::{STLB, codes, object};
use svm_verify::ViolationCode;
use twin_abi::explanation::Example;

#[test]
fn texts_are_whole() {
    for code in ViolationCode::ALL {
        let text = code.explanation();
        for part in [text.meaning, text.why, text.remedy] {
            assert!(
                part.len() > 15 && part.ends_with(['.', ')']),
                "{code}: {part}"
            );
        }
        assert!(!text.example.text().is_empty(), "{code}");
    }
}

#[test]
fn examples_are_refused_with_their_code() {
    for code in ViolationCode::ALL {
        let Example::Assembly(body) = code.explanation().example else {
            continue;
        };
        let found = codes(&object(STLB, &format!(".globl f\nf: {body}")));
        assert!(
            found.contains(&code.as_str()),
            "{code}: refused with {found:?}\n{body}"
        );
    }
}
