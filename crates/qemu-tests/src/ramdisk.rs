//! An initramfs: an archive in the "new ASCII" format of cpio, which the kernel
//! unpacks at boot (Documentation/driver-api/early-userspace/buffer-format.rst).

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Error, io};

const DIRECTORY: u32 = 0o040_755;
const EXECUTABLE: u32 = 0o100_755;
const LINK: u32 = 0o120_777;

/// The busybox commands that the guest's script uses.
const APPLETS: [&str; 28] = [
    "sh", "mount", "insmod", "rmmod", "ip", "ping", "nc", "sha256sum", "poweroff", "dmesg", "cat",
    "echo", "sleep", "ls", "grep", "sed", "head", "tail", "wc", "mkdir", "seq", "cut", "sort",
    "uniq", "kill", "awk", "tee", "chroot",
];

/// An archive that is being written.
#[derive(Default)]
pub struct Ramdisk {
    bytes: Vec<u8>,
    inode: u32,
    directories: Vec<String>,
}

impl Ramdisk {
    /// The system that the script runs on: busybox, ethtool with its libraries,
    /// mount points.
    ///
    /// # Errors
    /// A program is not installed.
    pub fn system() -> Result<Ramdisk, Error> {
        let mut disk = Ramdisk::default();
        for name in ["bin", "proc", "sys", "dev", "tmp", "modules"] {
            disk.directory(name);
        }
        let busybox = installed("a static busybox", &["/usr/bin/busybox", "/bin/busybox"])?;
        disk.copy("bin/busybox", &busybox)?;
        for applet in APPLETS {
            disk.entry(&format!("bin/{applet}"), LINK, b"busybox");
        }
        let ethtool = installed("ethtool", &["/usr/sbin/ethtool", "/sbin/ethtool"])?;
        disk.copy("bin/ethtool", &ethtool)?;
        for library in libraries(&ethtool)? {
            disk.copy(library.trim_start_matches('/'), Path::new(&library))?;
        }
        Ok(disk)
    }

    /// A directory, and those above it; once.
    pub fn directory(&mut self, name: &str) {
        if name.is_empty() || self.directories.iter().any(|d| d == name) {
            return;
        }
        if let Some((above, _)) = name.rsplit_once('/') {
            self.directory(above);
        }
        self.directories.push(name.to_owned());
        self.entry(name, DIRECTORY, b"");
    }

    /// A copy of a file, executable, with the directories that it lies in.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn copy(&mut self, name: &str, from: &Path) -> Result<(), Error> {
        let bytes = io(from.display().to_string(), std::fs::read(from))?;
        self.file(name, &bytes);
        Ok(())
    }

    /// A file of these bytes, executable, with the directories that it lies in.
    pub fn file(&mut self, name: &str, bytes: &[u8]) {
        if let Some((above, _)) = name.rsplit_once('/') {
            self.directory(above);
        }
        self.entry(name, EXECUTABLE, bytes);
    }

    /// The whole archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, b"");
        self.bytes
    }

    /// Header of 110 characters, name, contents, each padded to words.
    fn entry(&mut self, name: &str, mode: u32, contents: &[u8]) {
        self.inode += 1;
        let fields = [
            self.inode,
            mode,
            0, // uid
            0, // gid
            1, // links
            0, // mtime
            contents.len() as u32,
            0, // device, major and minor
            0,
            0, // its own device, if it is one
            0,
            name.len() as u32 + 1,
            0, // checksum, none in this format
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(name.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(contents);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

fn installed(what: &'static str, paths: &[&str]) -> Result<PathBuf, Error> {
    let found = paths.iter().map(PathBuf::from).find(|p| p.exists());
    found.ok_or_else(|| Error::Missing {
        what,
        path: paths[0].into(),
    })
}

/// The libraries of a program, by absolute path, its loader included.
fn libraries(program: &Path) -> Result<Vec<String>, Error> {
    let listed = io("ldd", Command::new("ldd").arg(program).output())?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let words = text.split_whitespace().filter(|w| w.starts_with('/'));
    Ok(words.map(str::to_owned).collect())
}
