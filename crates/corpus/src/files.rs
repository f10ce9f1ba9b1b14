//! The files of a kernel's modules, as distributions lay them out and compress them.
//!
//! Takes a directory, gives paths. What is compressed is told by the name here; how it is
//! read again is told by its contents (`elf_loader::input`).

use std::io::{Error, Result};
use std::path::{Path, PathBuf};

/// How the name of a module ends: as it is, or compressed (`MODULE_COMPRESS_*`,
/// kernel/module/Kconfig).
const ENDS: [&str; 4] = [".ko", ".ko.xz", ".ko.zst", ".ko.gz"];
/// Where the files of a kernel's package have the directory of a release.
const TREES: [&str; 2] = ["lib/modules", "usr/lib/modules"];

/// The name of the module in a file of that path; `None` if the file is no module.
pub fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy();
    let mut stems = ENDS.iter().filter_map(|end| name.strip_suffix(end));
    stems.next().map(str::to_owned)
}

/// Whether a module is compressed, by its name.
pub fn is_compressed(path: &Path) -> bool {
    path.extension().is_some_and(|end| end != "ko")
}

/// All modules below a directory, by path; only those whose path has `part` in it. Links to
/// directories are not followed, because `build` leads to sources.
///
/// # Errors
/// A directory that cannot be read.
pub fn modules(directory: &Path, part: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                left.push(path);
            } else if module_name(&path).is_some() && path.to_string_lossy().contains(part) {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The directory of the only release in a tree of a kernel's package, which may be unpacked
/// anywhere; any other directory is its own.
///
/// # Errors
/// A directory that cannot be read, or several releases.
pub fn of_release(directory: &Path) -> Result<PathBuf> {
    for tree in TREES.map(|tree| directory.join(tree)) {
        if !tree.is_dir() {
            continue;
        }
        let entries = std::fs::read_dir(&tree)?.collect::<Result<Vec<_>>>()?;
        let mut releases: Vec<PathBuf> = entries.iter().map(|entry| entry.path()).collect();
        releases.retain(|path| path.is_dir());
        match (releases.pop(), releases.pop()) {
            (Some(one), None) => return Ok(one),
            (None, _) => {}
            _ => {
                let why = "modules of several kernels: give the directory of each";
                return Err(Error::other(why));
            }
        }
    }
    Ok(directory.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory of files, which the test's end removes.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str, files: &[&str]) -> Tree {
            let name = format!("twin-corpus-{name}-{}", std::process::id());
            let root = std::env::temp_dir().join(name);
            for file in files {
                let path = root.join(file);
                let directory = path.parent().expect("below the root");
                std::fs::create_dir_all(directory).expect("a directory");
                std::fs::write(path, b"").expect("a file");
            }
            Tree(root)
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_module_is_plain_or_compressed() {
        for end in ENDS {
            let name = module_name(Path::new(&format!("kernel/net/a.b{end}")));
            assert_eq!(name.as_deref(), Some("a.b"), "{end}");
        }
        for other in ["a.o", "a.ko.debug", "a.zst", "modules.order", "ko"] {
            assert_eq!(module_name(Path::new(other)), None, "{other}");
        }
        assert!(!is_compressed(Path::new("a.ko")) && is_compressed(Path::new("a.ko.zst")));
    }

    #[test]
    fn modules_of_a_tree_are_found_whatever_compresses_them() {
        let files = [
            "kernel/a.ko",
            "kernel/x/b.ko.xz",
            "kernel/x/c.ko.zst",
            "d.ko.gz",
        ];
        let tree = Tree::new("found", &[&files[..], &["modules.dep"]].concat());
        std::os::unix::fs::symlink(&tree.0, tree.0.join("build")).expect("a link");
        let mut expected = files.map(|file| tree.0.join(file)).to_vec();
        expected.sort();
        assert_eq!(modules(&tree.0, "").expect("a tree"), expected);
        let some = modules(&tree.0, "kernel/x/").expect("a tree");
        assert_eq!(some.len(), 2);
    }

    #[test]
    fn a_package_has_one_release_below_lib_or_usr() {
        for tree in TREES {
            let file = format!("{tree}/6.14.0-15-generic/kernel/drivers/a.ko.zst");
            let package = Tree::new(&tree.replace('/', "-"), &[&file]);
            let release = package.0.join(tree).join("6.14.0-15-generic");
            assert_eq!(of_release(&package.0).expect("one"), release);
            assert_eq!(of_release(&release).expect("itself"), release);
        }
        let both = ["lib/modules/6.1/a.ko", "lib/modules/6.2/a.ko"];
        let package = Tree::new("several", &both);
        assert!(of_release(&package.0).is_err());
    }
}
