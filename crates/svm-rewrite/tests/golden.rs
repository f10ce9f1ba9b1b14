//! One small `.s` for each addressing mode and site class, assembled by the
//! system assembler: what is emitted for it, under both schemes, and that the
//! verifier accepts it. Snapshots are read by people before they are accepted.

use std::path::{Path, PathBuf};
use std::process::Command;

use svm_rewrite::{Options, Refusal, Rewritten, Scheme, listing, rewrite};

fn fixtures(below: &str) -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/fixtures")
        .join(below);
    let mut files: Vec<PathBuf> = std::fs::read_dir(&dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|entry| entry.expect("a directory entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "s"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no fixtures in {}", dir.display());
    files
}

fn assemble(source: &Path) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let object = dir.path().join("fixture.o");
    let status = Command::new("as")
        .arg(source)
        .arg("-o")
        .arg(&object)
        .status()
        .expect("the system assembler runs");
    assert!(status.success(), "{} does not assemble", source.display());
    std::fs::read(object).expect("the assembled object")
}

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

fn name(source: &Path) -> String {
    source
        .file_stem()
        .expect("a file name")
        .to_string_lossy()
        .into_owned()
}

#[test]
fn emitted_code() {
    for source in fixtures("") {
        let mut shown = std::fs::read_to_string(&source).expect("the fixture");
        for scheme in [Scheme::Stlb, Scheme::Paper] {
            let rewritten = try_rewrite(&source, scheme).unwrap_or_else(|refusals| {
                panic!("{} is refused: {}", source.display(), refusals[0]);
            });
            let bytes = elf_loader::write(&rewritten.object).expect("a writable object");
            let object = elf_loader::read(&bytes).expect("a readable object");
            if let Err(violations) = svm_verify::verify(&object) {
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
