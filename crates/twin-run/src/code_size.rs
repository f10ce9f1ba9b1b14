//! How much code a driver has, before and after.

use serde::{Deserialize, Serialize};

use crate::run::Job;

/// Bytes of a driver's code.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct CodeSize {
    /// As the distribution has it.
    pub original: u64,
    /// Rewritten, with what is out of line.
    pub rewritten: u64,
}

impl CodeSize {
    /// Of the job's driver; nothing if it cannot be rewritten.
    pub fn of(job: &Job<'_>) -> Option<CodeSize> {
        let original = elf_loader::read(&job.files.driver).ok()?;
        let rewritten = process_lab::program::rewrite(&original, job.setup.variant).ok()?;
        let bytes = |object: &elf_loader::Object<'_>| {
            let code = object.sections.iter().filter(|section| section.is_code());
            code.map(|section| section.data.len() as u64).sum()
        };
        Some(CodeSize {
            original: bytes(&original),
            rewritten: bytes(&rewritten),
        })
    }

    /// Rewritten to original; 0 if that is not known.
    pub fn ratio(self) -> f64 {
        self.rewritten as f64 / self.original.max(1) as f64
    }
}
