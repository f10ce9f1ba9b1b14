//! Why an object could not be written: always a mistake in the code that built it.

use thiserror::Error;

/// Why [`crate::write()`] refused an object.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// Section 0 or symbol 0 is missing or not the null entry.
    #[error("{0} 0 must be the null {0}; begin with `Object::new`")]
    NoNull(&'static str),
    /// More sections than plain section indices can number.
    #[error("{0} sections are more than an ELF file numbers plainly (65279); merge some")]
    TooManySections(usize),
    /// More symbols than relocations can number.
    #[error("{0} symbols are more than a relocation can number; drop unused ones")]
    TooManySymbols(usize),
    /// A section that cannot be written.
    #[error("section {index} `{name}`: {problem}")]
    Section {
        /// Its index in the object.
        index: usize,
        /// Its name in the object.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A symbol that cannot be written.
    #[error("symbol {index} `{name}`: {problem}")]
    Symbol {
        /// Its index in the object.
        index: usize,
        /// Its name in the object.
        name: String,
        /// What is wrong and what to do.
        problem: String,
    },
    /// A relocation that cannot be written.
    #[error("relocation {entry} of section `{section}` (offset {offset:#x}): {problem}")]
    Relocation {
        /// Name of the section that it applies to.
        section: String,
        /// Its index in the section's list.
        entry: usize,
        /// Offset of the field.
        offset: u64,
        /// What is wrong and what to do.
        problem: String,
    },
    /// The file would be too large for its word size.
    #[error("the ELF file cannot be laid out: {0}; make it smaller")]
    Layout(String),
}

impl WriteError {
    pub(super) fn backend(error: object::write::Error) -> WriteError {
        WriteError::Layout(error.to_string())
    }
}
