//! A system as a root directory: its files are read and written, its programs run.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::fs::{FlockOperation, flock};

use crate::code::XenCode;
use crate::refusal::Refusal;

/// Where programs of an administrator are, besides `PATH`.
const FOLDERS: [&str; 4] = ["usr/sbin", "usr/bin", "sbin", "bin"];
/// Held while something is changed.
const LOCK: &str = "run/twin-xen.lock";
/// Who may open a file may lock it (flock(2)), and would keep root out.
const OWNER_ONLY: u32 = 0o600;

/// A running system, or a tree like one.
#[derive(Clone, Debug)]
pub struct System {
    root: PathBuf,
}

/// While it lives, no other `twin xen` changes the system.
#[derive(Debug)]
pub struct Exclusive {
    _lock: File,
}

/// Why a program's result is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProgramError {
    /// It is not installed.
    Missing,
    /// It failed; what it printed.
    Failed(String),
}

impl System {
    /// The system below this directory.
    pub fn at(root: impl Into<PathBuf>) -> System {
        System { root: root.into() }
    }

    /// The path of a file, which is named from the root.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.trim_start_matches('/'))
    }

    /// A file's text.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    pub fn text(&self, name: &str) -> io::Result<String> {
        fs::read_to_string(self.path(name))
    }

    /// A file's text without blanks around it; `None` if it cannot be read.
    pub fn word(&self, name: &str) -> Option<String> {
        Some(self.text(name).ok()?.trim().to_owned())
    }

    /// The names in a directory, sorted; none if it cannot be read.
    pub fn names(&self, name: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path(name)).into_iter().flatten();
        let entries = entries.filter_map(Result::ok);
        let mut names: Vec<String> = entries
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// The last part of where a link leads.
    pub fn link(&self, name: &str) -> Option<String> {
        let target = fs::read_link(self.path(name)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    /// Whether there is a file or directory of this name.
    pub fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Writes a word to a control of the kernel's, at once: it judges each write by itself.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn write(&self, name: &str, word: &str) -> io::Result<()> {
        if let Some(kernel) = self.made_up_kernel() {
            let status = Command::new(kernel)
                .args([name, word])
                .env("ROOT", &self.root)
                .status()?;
            return match status.code() {
                Some(0) => Ok(()),
                errno => Err(io::Error::from_raw_os_error(errno.unwrap_or_default())),
            };
        }
        let mut file = OpenOptions::new().write(true).open(self.path(name))?;
        file.write_all(word.as_bytes())
    }

    /// In a tree that is made up, a program `kernel CONTROL WORD` answers, by an error number.
    fn made_up_kernel(&self) -> Option<PathBuf> {
        let program = self.path("kernel");
        (!self.is_running() && program.is_file()).then_some(program)
    }

    fn is_running(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where a program is.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let own = FOLDERS.map(|folder| self.root.join(folder));
        let xen = self.path(&format!("usr/lib/xen-{}/bin", self.xen_release()));
        let environment = match self.is_running() {
            true => std::env::var_os("PATH").unwrap_or_default(),
            false => Default::default(),
        };
        let places = std::env::split_paths(&environment).chain(own).chain([xen]);
        let mut files = places.map(|folder| folder.join(name));
        files.find(|file| file.is_file())
    }

    /// Xen's release, by which Debian names its tools' directory: `4.17`.
    fn xen_release(&self) -> String {
        let part = |name| self.word(&format!("sys/hypervisor/version/{name}"));
        format!(
            "{}.{}",
            part("major").unwrap_or_default(),
            part("minor").unwrap_or_default()
        )
    }

    /// Runs a program to its end and gives what it printed. It is not of the terminal's process
    /// group, so that a key that interrupts this program does not stop that one half way.
    ///
    /// # Errors
    /// It is not there, cannot be run, or says that it failed.
    pub fn run<S: AsRef<OsStr>>(&self, name: &str, args: &[S]) -> Result<String, ProgramError> {
        let program = self.program(name).ok_or(ProgramError::Missing)?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).process_group(0);
        command.env("LC_ALL", "C");
        if !self.is_running() {
            // For the programs of a tree that is made up.
            command.env("ROOT", &self.root);
        }
        let output = command
            .output()
            .map_err(|error| ProgramError::Failed(error.to_string()))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(ProgramError::Failed(
                text(&output.stdout) + &text(&output.stderr),
            )),
        }
    }

    /// Waits for nobody: either this run alone may change the system now, or it may not.
    ///
    /// # Errors
    /// Another run is at work, or the lock cannot be had.
    pub fn exclusive(&self) -> Result<Exclusive, Refusal> {
        let path = self.path(LOCK);
        let open = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(OWNER_ONLY)
            .open(&path);
        // An earlier release made it for everybody.
        let open = open.and_then(|file| {
            file.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
            Ok(file)
        });
        let file = open.map_err(|error| {
            Refusal::new(
                XenCode::Busy,
                format!(
                    "/{LOCK} cannot be opened: {}; run this as root",
                    describe(&error)
                ),
            )
        })?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Exclusive { _lock: file }),
            Err(_) => Err(Refusal::new(
                XenCode::Busy,
                format!("another `twin xen` is at work (/{LOCK}); wait until it has ended"),
            )),
        }
    }
}

impl ProgramError {
    /// The reason in one line: the last that was printed, or that the program is not there.
    pub fn line(&self) -> &str {
        match self {
            ProgramError::Missing => "it is not installed",
            ProgramError::Failed(output) => {
                let mut lines = output.lines().map(str::trim);
                let last = lines.rfind(|line| !line.is_empty());
                last.unwrap_or("it failed and said nothing")
            }
        }
    }
}

/// The system's error message, without Rust's error number.
pub fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}
