//! A directory of its own for each test, and `twin` run in it.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// A driver in a few lines: a load, a store, a call of the kernel.
pub const DRIVER: &str = "
        .text
        .globl  poll
        .type   poll, @function
poll:   mov     0x10(%rdi), %rax
        cmpl    $3, 8(%rax)
        je      1f
        movl    $1, (%rax)
        call    napi_schedule
1:      ret
        .size   poll, .-poll
";

/// A driver with `n` instructions that no driver may execute.
pub fn privileged(n: usize) -> String {
    format!(
        ".text\n.globl evil\n.type evil, @function\nevil:\n{}ret\n.size evil, .-evil\n",
        "hlt\n".repeat(n)
    )
}

/// A directory that goes away with the test.
pub struct Sandbox(TempDir);

/// The result of a run.
pub struct Answer {
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Sandbox {
    /// An empty one.
    pub fn new() -> Sandbox {
        Sandbox(tempfile::tempdir().expect("a temporary directory"))
    }

    /// One with `driver.o` in it.
    pub fn with_driver() -> Sandbox {
        let sandbox = Sandbox::new();
        sandbox.assemble("driver.o", DRIVER);
        sandbox
    }

    /// The path of a file in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file can be written");
    }

    /// Reads a file.
    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in it, sorted.
    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).expect("a directory");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        };
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }

    /// Assembles a source to an object.
    pub fn assemble(&self, object: &str, source: &str) {
        self.assemble_with(object, source, &["--64"]);
    }

    /// The same with options of the assembler.
    pub fn assemble_with(&self, object: &str, source: &str, options: &[&str]) {
        let mut command = Command::new("as");
        command
            .args(options)
            .arg("-o")
            .arg(self.path(object))
            .arg("-");
        let output = feed(&mut command, source.as_bytes());
        assert!(
            output.status.success(),
            "as: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// `twin`, to be run in it.
    pub fn twin<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_twin"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .env_remove("COLUMNS");
        command
    }

    /// Runs `twin`.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Answer {
        self.run_with(args, b"")
    }

    /// Runs `twin` with something on standard input.
    pub fn run_with<S: AsRef<OsStr>>(&self, args: &[S], stdin: &[u8]) -> Answer {
        Answer::of(feed(&mut self.twin(args), stdin))
    }
}

fn feed(command: &mut Command, stdin: &[u8]) -> Output {
    let command = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("the program starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    std::thread::scope(|scope| {
        // Not everyone reads to the end.
        scope.spawn(move || pipe.write_all(stdin).ok());
        child.wait_with_output().expect("the program ends")
    })
}

impl Answer {
    /// The output and status of a process.
    pub fn of(output: Output) -> Answer {
        Answer {
            status: output.status.code().expect("no signal"),
            stdout: output.stdout,
            stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
        }
    }

    /// The same of a command whose standard output nobody reads.
    pub fn unread(command: &mut Command) -> Answer {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let command = command.stdin(Stdio::null()).stdout(writer);
        Answer::of(command.output().expect("the program starts"))
    }

    /// Panics unless the run succeeded and printed nothing.
    pub fn ok(self) -> Answer {
        assert_eq!((self.status, self.stderr.as_str()), (0, ""));
        self
    }

    /// Standard output as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.stdout).expect("text is UTF-8")
    }

    /// Standard output as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).expect("JSON")
    }
}

/// For cases.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "status {}", self.status)?;
        if !self.stdout.is_empty() {
            write!(f, "--- stdout\n{}", self.text())?;
        }
        if !self.stderr.is_empty() {
            write!(f, "--- stderr\n{}", self.stderr)?;
        }
        Ok(())
    }
}
