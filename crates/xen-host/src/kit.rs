//! What is installed for a driver in Xen, besides `twin` itself.
//!
//! ```text
//! twin-xen.o                          the runtime and its platform
//! tables/BUILD-ID.table               of each build of Xen
//! modules/RELEASE/twin_dom0.ko        dom0's modules for each kernel
//! modules/RELEASE/twin_hot.ko
//! vif-twin                            what `xl` runs for a guest's interface
//! ```
//!
//! `scripts/xen-install.sh` makes it.

use std::path::{Path, PathBuf};

/// A directory with these files.
#[derive(Clone, Debug)]
pub struct Kit {
    folder: PathBuf,
}

impl Kit {
    /// What is in this directory.
    pub fn at(folder: impl Into<PathBuf>) -> Kit {
        Kit {
            folder: folder.into(),
        }
    }

    /// The directory.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The runtime and its platform.
    pub fn platform(&self) -> PathBuf {
        self.folder.join("twin-xen.o")
    }

    /// The table of the build with this id.
    pub fn table(&self, build_id: &str) -> PathBuf {
        self.folder.join(format!("tables/{build_id}.table"))
    }

    /// One of dom0's modules for a kernel.
    pub fn module(&self, release: &str, name: &str) -> PathBuf {
        self.folder.join(format!("modules/{release}/{name}.ko"))
    }

    /// The kernels that there are modules for.
    pub fn releases(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.join("modules"));
        let entries = entries.into_iter().flatten().filter_map(Result::ok);
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}
