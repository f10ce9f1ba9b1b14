//! One small `.s` for each addressing mode and site class, assembled by the
//! system assembler: what is emitted for it, under both schemes, and that the
//! verifier accepts it. Snapshots are read by people before they are accepted.

mod common;

use std::path::Path;

use common::{assemble, fixtures, name};
use svm_rewrite::{Options, Refusal, Rewritten, Scheme, listing, rewrite};
use svm_verify::Contract;

fn try_rewrite(source: &Path, scheme: Scheme) -> Result<Rewritten, Vec<Refusal>> {
    let bytes = assemble(source);
    let object = elf_loader::read(&bytes).expect("the assembler makes readable objects");
    rewrite(
        &object,
        Options {
            report: true,
            ..Options::new(scheme)
        },
    )
}

#[test]
fn emitted_code() {
    for source in fixtures("") {
        let mut shown = std::fs::read_to_string(&source).expect("the fixture");
        for scheme in Scheme::ALL {
            let rewritten = try_rewrite(&source, scheme).unwrap_or_else(|refusals| {
                panic!("{} is refused: {}", source.display(), refusals[0]);
            });
            let bytes = elf_loader::write(&rewritten.object).expect("a writable object");
            let object = elf_loader::read(&bytes).expect("a readable object");
            if let Err(violations) = svm_verify::verify(
                &object,
                Contract::of(svm_verify::Target::Hypervisor).with(scheme),
            ) {
                panic!(
                    "{} ({}): {violations:#?}",
                    source.display(),
                    scheme.as_str()
                );
            }
            shown.push_str(&format!(
                "\n==== {} ====\n{}",
                scheme.as_str(),
                listing::all(&object)
            ));
        }
        insta::assert_snapshot!(name(&source), shown);
    }
}

#[test]
fn refusals() {
    let mut shown = String::new();
    for source in fixtures("refused") {
        let refusals = try_rewrite(&source, Scheme::Stlb)
            .err()
            .unwrap_or_else(|| panic!("{} is not refused", source.display()));
        for refusal in refusals {
            shown.push_str(&format!("{}: {refusal}\n", name(&source)));
        }
    }
    insta::assert_snapshot!("refusals", shown);
}
