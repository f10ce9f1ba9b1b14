//! Why a campaign could not be run. A difference is no error: it is a result.

use std::io;
use std::path::PathBuf;

use svm_rewrite::Refusal;
use thiserror::Error;

/// Why something could not be set up or went wrong around the runs.
#[derive(Debug, Error)]
pub enum Error {
    /// The stock module is not there.
    #[error("cannot read the stock module {}: {source}; run `make stock`, or name it in TWIN_STOCK_E1000", path.display())]
    NoStock {
        /// Where it was looked for.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The module is no object.
    #[error("the stock module: {0}")]
    Read(#[from] elf_loader::ReadError),
    /// The module or the rewritten object cannot be linked.
    #[error("linking: {0}")]
    Link(#[from] elf_loader::link::LinkError),
    /// The rewriter refused the module.
    #[error("the rewriter refused the driver: {first} (first of {count})")]
    Refused {
        /// How many refusals there are.
        count: usize,
        /// The first of them, as the rewriter says it.
        first: String,
    },
    /// The verifier rejected the rewritten object.
    #[error("the verifier rejected the rewritten object: {0}")]
    Rejected(String),
    /// The code has instructions that this processor lacks.
    #[error(
        "{0} is for processors with BMI2, and this one has none: rewrite it for any (--processor any)"
    )]
    Processor(&'static str),
    /// The object would be entered where it must not be.
    #[error("the rewritten object's entries: {0}")]
    Entries(String),
    /// A system call failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A worker process died or does not answer.
    #[error("the {worker} worker {how}, running {function} on image {image}")]
    Worker {
        /// Which of them: native, or how the driver was rewritten.
        worker: &'static str,
        /// What happened to it.
        how: String,
        /// The function of the driver that it ran.
        function: String,
        /// The image's number.
        image: u64,
    },
    /// No function of that name can be run.
    #[error("`{0}` is not in the table of functions")]
    NoFunction(String),
    /// Nothing that is to be done has such a name.
    #[error("no object and scheme has `{0}` in its name")]
    NoSubject(String),
    /// dom0's memory is mapped where it must not be.
    #[error("the rewritten worker has {0:#x} of dom0 mapped")]
    Mapped(u64),
}

impl From<Vec<Refusal>> for Error {
    fn from(refusals: Vec<Refusal>) -> Error {
        let first = refusals.first();
        Error::Refused {
            count: refusals.len(),
            first: first.map_or_else(String::new, ToString::to_string),
        }
    }
}

impl Error {
    /// For `map_err`: the failure of a system call that was to do `what`.
    pub fn system(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::System { what, source }
    }

    /// The last system call's failure.
    pub fn last(what: &'static str) -> Error {
        Error::System {
            what,
            source: io::Error::last_os_error(),
        }
    }
}
