//! Modules of the kernel that runs: their files, and whether a file is what is loaded.

use std::path::{Path, PathBuf};

use elf_loader::{Object, modinfo};

use crate::code::XenCode;
use crate::refusal::Refusal;
use crate::system::System;

/// The driver that can be run inside Xen.
pub const DRIVER: &str = "e1000";
/// dom0's module of the hot routines, which are rewritten too.
pub const HOT: &str = "twin_hot";
/// dom0's modules of twin's, in the order in which they are loaded.
pub const OURS: [&str; 2] = ["twin_dom0", HOT];

/// What identifies a build of a module.
const BUILD_ID: &str = ".note.gnu.build-id";

/// How a file and the module that is loaded compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// The same build.
    Same,
    /// Another one.
    Other,
    /// Neither has what builds are told apart by, or the file cannot be read: why.
    Unknown(String),
}

/// The file of a module, as `modprobe` would find it: named by `modules.dep` below
/// `/lib/modules/RELEASE`.
pub fn module_file(system: &System, release: &str, name: &str) -> Option<PathBuf> {
    let folder = format!("lib/modules/{release}");
    let list = system.text(&format!("{folder}/modules.dep")).ok()?;
    let files = list.lines().filter_map(|line| line.split_once(':'));
    let mut files = files.map(|(file, _)| file.trim());
    let file = files.find(|file| name_of(file) == name)?;
    // A name from the root is one already.
    Some(match file.starts_with('/') {
        true => system.path(file),
        false => system.path(&format!("{folder}/{file}")),
    })
}

/// A module's name by its file's: without endings, with `_` where the file has `-`.
fn name_of(file: &str) -> String {
    let file = file.rsplit('/').next().unwrap_or_default();
    file.split('.').next().unwrap_or_default().replace('-', "_")
}

/// Whether a module is loaded.
pub fn is_loaded(system: &System, name: &str) -> bool {
    system.has(&format!("sys/module/{name}/initstate"))
}

/// Whether a file is the module that is loaded, by its build-id, else by `srcversion`.
pub fn likeness(system: &System, name: &str, file: &Path) -> Likeness {
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return Likeness::Unknown(crate::system::describe(&error)),
    };
    let bytes = match elf_loader::input::decompress(bytes) {
        Ok(bytes) => bytes,
        Err(error) => return Likeness::Unknown(error.to_string()),
    };
    match elf_loader::read(&bytes) {
        Ok(object) => compare(system, name, &object),
        Err(error) => Likeness::Unknown(error.to_string()),
    }
}

/// The module that is loaded has to be the one that was read, whatever its file is by now.
///
/// # Errors
/// It is another build, or nothing tells builds of it apart.
pub fn loaded_from(system: &System, name: &str, read: &Object<'_>) -> Result<(), Refusal> {
    let why = match compare(system, name, read) {
        Likeness::Same => return Ok(()),
        Likeness::Other => {
            format!("the {name} that is loaded is another build: the file was replaced meanwhile")
        }
        Likeness::Unknown(why) => why,
    };
    Err(Refusal::new(
        XenCode::Module,
        format!("{why}; attach again"),
    ))
}

fn compare(system: &System, name: &str, object: &Object<'_>) -> Likeness {
    let note = std::fs::read(system.path(&format!("sys/module/{name}/notes/{BUILD_ID}"))).ok();
    let own = object.section_named(BUILD_ID);
    let own = own.map(|id| &object.section(id).data);
    let same = match (note, own) {
        (Some(note), Some(own)) => note[..] == own[..],
        _ => {
            let loaded = system.word(&format!("sys/module/{name}/srcversion"));
            let own = modinfo::values_of_key(object, "srcversion").pop();
            match (loaded, own) {
                (Some(loaded), Some(own)) => loaded == own,
                _ => {
                    return Likeness::Unknown(
                        "neither a build-id nor a srcversion tells builds of it apart".into(),
                    );
                }
            }
        }
    };
    if same {
        Likeness::Same
    } else {
        Likeness::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_is_named_by_its_file() {
        assert_eq!(
            name_of("kernel/drivers/net/xen-netback.ko.xz"),
            "xen_netback"
        );
        assert_eq!(name_of("updates/dkms/e1000.ko"), "e1000");
    }
}
