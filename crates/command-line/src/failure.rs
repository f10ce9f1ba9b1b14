//! All failures, each with its message and its exit status.

use std::fmt;
use std::process::ExitCode;

use svm_rewrite::Refusal;
use svm_verify::Violations;

use crate::codes::{AnyCode, CommandCode};
use crate::text::{one_line, visible};

/// Refusals of one file that are printed; a report holds all.
const SHOWN: usize = 20;

/// Exit status: a graver one is greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Done.
    Done = 0,
    /// An input was refused, or a violation was found.
    Refused = 1,
    /// Wrong usage, or a file that cannot be read or written.
    Usage = 2,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// Why a command, or its work on one file, ended early.
#[derive(Debug)]
pub enum Failure {
    /// The command line asks for something impossible.
    Usage(String),
    /// A file cannot be read or written.
    Access {
        /// Its name.
        file: String,
        /// Why.
        why: String,
    },
    /// An input as a whole is not accepted.
    Input {
        /// Its name.
        file: String,
        /// The stable code of the reason.
        code: AnyCode,
        /// Why, and what to do.
        why: String,
    },
    /// Places of an input that cannot be rewritten.
    Refused {
        /// Its name.
        file: String,
        /// All of them.
        refusals: Vec<Refusal>,
    },
    /// An object that the verifier does not accept.
    Violated {
        /// Name of the object, or of the input that it was made from.
        file: String,
        /// Whether this run of the program made the object.
        made_here: bool,
        /// The violations.
        violations: Violations,
    },
    /// A compiler failed, said why, and ended with this status.
    Child(u8),
    /// The failures have been printed already, file by file.
    Reported(Status),
}

impl Failure {
    /// A file that cannot be read or written.
    pub fn access(file: impl fmt::Display, why: impl fmt::Display) -> Failure {
        Failure::Access {
            file: file.to_string(),
            why: why.to_string(),
        }
    }

    /// An input that is not accepted, for a reason without a code of its own.
    pub fn input(file: impl fmt::Display, why: impl fmt::Display) -> Failure {
        Failure::refused(file, CommandCode::Input, why)
    }

    /// An input that is not accepted.
    pub fn refused(
        file: impl fmt::Display,
        code: impl Into<AnyCode>,
        why: impl fmt::Display,
    ) -> Failure {
        Failure::Input {
            file: file.to_string(),
            code: code.into(),
            why: why.to_string(),
        }
    }

    /// A file that cannot be read as an object.
    pub fn unreadable(file: impl fmt::Display, error: &elf_loader::ReadError) -> Failure {
        Failure::refused(file, error.code(), one_line(&error.to_string()))
    }

    /// The exit status that it leads to.
    pub fn status(&self) -> Status {
        match self {
            Failure::Usage(_) | Failure::Access { .. } => Status::Usage,
            Failure::Input { .. } | Failure::Refused { .. } | Failure::Violated { .. } => {
                Status::Refused
            }
            Failure::Child(_) => Status::Refused,
            Failure::Reported(status) => *status,
        }
    }

    /// The exit status of this program.
    pub fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Child(code) => ExitCode::from(*code),
            _ => self.status().into(),
        }
    }

    /// Prints it on standard error.
    pub fn print(&self) {
        crate::output::say(&self.to_string());
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Usage(why) => writeln!(f, "twin: {}", visible(why)),
            Failure::Access { file, why } => {
                writeln!(f, "twin: {}: {}", one_line(file), visible(why))
            }
            Failure::Input { file, code, why } => {
                let (file, why) = (one_line(file), visible(why));
                writeln!(f, "twin: {file}: {why} [{}]", code.as_str())
            }
            Failure::Refused { file, refusals } => {
                lines(f, file, refusals, refusals.len(), "--report")
            }
            Failure::Violated {
                file,
                made_here: false,
                violations,
            } => lines(f, file, &violations.list, violations.total, "--format json"),
            Failure::Violated {
                file,
                made_here: true,
                violations,
            } => {
                let file = one_line(file);
                writeln!(
                    f,
                    "twin: {file}: internal error: the rewritten object does not verify, so it was \
                     not written; please report this"
                )?;
                lines(f, &file, &violations.list, violations.total, "--report")
            }
            Failure::Child(_) | Failure::Reported(_) => Ok(()),
        }
    }
}

/// The first of `all` things said about a file, a line each, whatever names the file has in it;
/// `option` shows the rest.
fn lines<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    file: &str,
    list: &[T],
    all: usize,
    option: &str,
) -> fmt::Result {
    let (file, shown) = (one_line(file), list.len().min(SHOWN));
    for line in &list[..shown] {
        writeln!(f, "{file}: {}", one_line(&line.to_string()))?;
    }
    match all - shown {
        0 => Ok(()),
        more => writeln!(f, "{file}: and {more} more (see {option})"),
    }
}
