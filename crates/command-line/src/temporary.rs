//! Temporary files and directories: they go away when they are dropped, and also when
//! a signal ends the program.
//!
//! Each is made and listed under one lock. Who removes all of them keeps that lock, so
//! that nothing is made afterwards.

use std::collections::BTreeMap;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

/// What is there now because of this run.
static LIST: Mutex<BTreeMap<PathBuf, TemporaryKind>> = Mutex::new(BTreeMap::new());

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TemporaryKind {
    /// A file that has no lasting name yet.
    File,
    /// A directory of our own, with all that is in it.
    Scratch,
    /// A directory for outputs, of use only if there are some. It stays listed.
    ForOutputs,
}

fn list() -> MutexGuard<'static, BTreeMap<PathBuf, TemporaryKind>> {
    LIST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One entry of the list; dropping it takes the entry out.
struct Listed(PathBuf);

impl Drop for Listed {
    fn drop(&mut self) {
        list().remove(&self.0);
    }
}

/// Makes something and lists it before anybody can remove all.
fn listed<T>(
    kind: TemporaryKind,
    make: impl FnOnce() -> io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> io::Result<(T, Listed)> {
    let mut list = list();
    let made = make()?;
    let path = path(&made).to_owned();
    list.insert(path.clone(), kind);
    Ok((made, Listed(path)))
}

/// A file without a lasting name.
pub struct TemporaryFile {
    // Dropped first: an entry outlives its file.
    file: NamedTempFile,
    _listed: Listed,
}

impl TemporaryFile {
    /// One in this directory, with this mode before the umask.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(directory: &Path, mode: u32) -> io::Result<TemporaryFile> {
        let make = || {
            tempfile::Builder::new()
                .prefix(".twin-")
                .permissions(Permissions::from_mode(mode))
                .tempfile_in(directory)
        };
        let (file, _listed) = listed(TemporaryKind::File, make, NamedTempFile::path)?;
        Ok(TemporaryFile { file, _listed })
    }

    /// Gives it exactly this mode.
    ///
    /// # Errors
    /// The system does not allow it.
    pub fn set_mode(&self, mode: u32) -> io::Result<()> {
        let file = self.file.as_file();
        file.set_permissions(Permissions::from_mode(mode))
    }

    /// Renames it: it stays.
    ///
    /// # Errors
    /// The system does not allow it; the file is gone.
    pub fn persist(self, path: &Path) -> io::Result<()> {
        let persisted = self.file.persist(path);
        persisted.map(drop).map_err(|error| error.error)
    }
}

impl io::Write for TemporaryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A directory for files between two steps.
pub struct ScratchDirectory {
    directory: tempfile::TempDir,
    _listed: Listed,
}

impl ScratchDirectory {
    /// One where the system has such directories; `prefix` begins its name.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn create(prefix: &str) -> io::Result<ScratchDirectory> {
        let make = || {
            let place = std::env::temp_dir();
            let within = |place: &Path| tempfile::Builder::new().prefix(prefix).tempdir_in(place);
            // As compilers do: a place that is set but cannot be used is no reason to stop.
            within(&place).or_else(|error| {
                let others = ["/tmp", "/var/tmp", "."].map(Path::new);
                let found = others.into_iter().find_map(|other| within(other).ok());
                found.ok_or(error)
            })
        };
        let (directory, _listed) = listed(TemporaryKind::Scratch, make, tempfile::TempDir::path)?;
        Ok(ScratchDirectory { directory, _listed })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes a new directory in it.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn directory(&self) -> io::Result<PathBuf> {
        tempfile::tempdir_in(self.path()).map(tempfile::TempDir::keep)
    }
}

/// Makes a directory for outputs, and those above it, unless they exist. Those that are still
/// empty are removed if a signal ends the program, and by [`remove_empty_directories`].
///
/// # Errors
/// One cannot be made.
pub fn create_dir_all(directory: &Path) -> io::Result<()> {
    let mut list = list();
    let missing = directory.ancestors().take_while(|d| !d.exists());
    let missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    let made = std::fs::create_dir_all(directory);
    list.extend(missing.into_iter().map(|d| (d, TemporaryKind::ForOutputs)));
    made
}

/// Removes directories for outputs in which there is none. What was there before this run stays.
pub fn remove_empty_directories() {
    // A directory comes after the one that it lies in.
    for (path, kind) in list().iter().rev() {
        if *kind == TemporaryKind::ForOutputs {
            // One that holds something is not removed (rmdir(2)).
            let _ = std::fs::remove_dir(path);
        }
    }
}

/// Removes all that is listed. Whoever wants to make more waits for ever, so the caller
/// has to end the program.
pub fn remove_all() {
    let list = list();
    // A directory comes after the one that it lies in.
    for (path, kind) in list.iter().rev() {
        // What cannot be removed stays: there is nobody left to tell.
        let _ = match kind {
            TemporaryKind::File => std::fs::remove_file(path),
            TemporaryKind::Scratch => remove_scratch(path),
            TemporaryKind::ForOutputs => std::fs::remove_dir(path),
        };
    }
    std::mem::forget(list);
}

/// Removes the files that are listed, and the directories in which there is none, unless this
/// thread or another is about to change the list. Takes no memory, unless a path
/// has hundreds of bytes: what lies in a directory of our own stays. The caller has to end the program.
pub fn remove_without_memory() {
    let Ok(list) = LIST.try_lock() else {
        return;
    };
    // A directory comes after the one that it lies in.
    for (path, kind) in list.iter().rev() {
        // What cannot be removed stays: there is nobody left to tell.
        let _ = match kind {
            TemporaryKind::File => std::fs::remove_file(path),
            TemporaryKind::ForOutputs => std::fs::remove_dir(path),
            TemporaryKind::Scratch => Ok(()),
        };
    }
    std::mem::forget(list);
}

/// An assembler that still runs may add a file while the others are removed.
fn remove_scratch(path: &Path) -> io::Result<()> {
    const TRIES: usize = 16;
    (1..TRIES)
        .find_map(|_| std::fs::remove_dir_all(path).ok())
        .map_or_else(|| std::fs::remove_dir_all(path), Ok)
}
