//! Compressed modules, made by the tools that distributions use.

use std::path::Path;
use std::process::Command;

use crate::common::{SAMPLE_64, assemble, stock_e1000};
use elf_loader::input::{InputError, decompress};

/// File `m` in `dir`, compressed by `tool`.
pub fn packed(tool: &str, dir: &Path) -> Vec<u8> {
    let output = Command::new(tool)
        .args(["-c", "m"])
        .current_dir(dir)
        .output();
    let output = output.unwrap_or_else(|e| panic!("{tool}: {e}; install it"));
    assert!(
        output.status.success(),
        "{tool}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output.stdout
}

#[test]
fn each_format_is_recognised_by_content() {
    for original in [assemble(&[], SAMPLE_64), stock_e1000()] {
        let dir = tempfile::tempdir().expect("temporary directory");
        std::fs::write(dir.path().join("m"), &original).expect("write");
        assert_eq!(decompress(original.clone()).expect("plain"), original);
        for tool in ["xz", "zstd", "gzip"] {
            let once = packed(tool, dir.path());
            assert_ne!(once, original);
            assert_eq!(decompress(once.clone()).expect(tool), original);
            let twice = [once.clone(), once].concat();
            assert_eq!(
                decompress(twice).expect(tool),
                original.repeat(2),
                "{tool}: two streams"
            );
        }
    }
}

#[test]
fn damage_is_reported_with_the_format() {
    let dir = tempfile::tempdir().expect("temporary directory");
    std::fs::write(dir.path().join("m"), assemble(&[], SAMPLE_64)).expect("write");
    for tool in ["xz", "zstd", "gzip"] {
        let good = packed(tool, dir.path());
        let cut = decompress(good[..good.len() - 9].to_vec()).expect_err("cut off");
        assert!(matches!(cut, InputError::Damaged { .. }), "{cut}");
        assert!(
            cut.to_string()
                .starts_with(&format!("the {tool} data is damaged")),
            "{cut}"
        );
        let mut flipped = good.clone();
        flipped[good.len() / 2] ^= 0x10;
        decompress(flipped).expect_err("checksums catch it");
    }
}
