//! `twin verify`: the proof that rewritten objects are confined.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use svm_verify::{Proof, Violation};

use super::Format;
use crate::codes::Code;
use crate::failure::Failure;
use crate::input::{self, Input};
use crate::output;
use crate::parallel;
use crate::text::count;

const EXAMPLES: &str = "\
Examples:
  twin verify e1000.twin.o
  twin verify confined/*.twin.o
  twin verify --format json e1000.twin.o | jq '.[].violations'

The proof needs no trust in whoever made the object, and fails closed.

Exit status:
  0  every file is confined
  1  a violation was found, or a file is no rewritten object
  2  wrong usage, or a file that cannot be read";

/// Options of `twin verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Rewritten objects; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// The result for one file, as JSON has it.
#[derive(Serialize)]
struct Verdict {
    file: String,
    verified: bool,
    /// What was proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<Proof>,
    /// The stable code of why it could not be read as an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
    /// Why it could not be read as an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// How many violations there are; `violations` may hold fewer.
    violation_count: usize,
    violations: Vec<Violation>,
}

impl Opts {
    /// Verifies all files.
    pub fn run(self) -> Result<(), Failure> {
        let mut verdicts = Vec::new();
        let result = parallel::each(
            &self.files,
            parallel::cores(),
            |path| verify(path),
            |path, result| match self.format {
                Format::Text => print(path, &result),
                Format::Json => {
                    verdicts.push(Verdict::new(path, result));
                    Ok(())
                }
            },
        );
        if self.format == Format::Json {
            output::json(&verdicts)?;
        }
        result
    }
}

fn verify(path: &Path) -> Result<Proof, Failure> {
    let input = Input::read(path)?;
    svm_verify::verify(&input.object()?).map_err(|violations| Failure::Violated {
        file: input.name.clone(),
        own: false,
        violations,
    })
}

/// One line for a proof; failures are printed elsewhere.
fn print(path: &Path, result: &Result<Proof, Failure>) -> Result<(), Failure> {
    let Ok(proof) = result else { return Ok(()) };
    let accesses = &proof.accesses;
    let parts = [
        (proof.instructions, "instruction"),
        (proof.functions, "function"),
        (proof.checks, "check"),
        (accesses.translated, "translated access"),
        (accesses.stack, "stack access"),
        (accesses.string, "string instruction"),
        (proof.codemap, "entry point"),
    ];
    let parts = parts.map(|(n, thing)| count(n as u64, thing)).join(", ");
    output::text(format!("{}: verified: {parts}\n", input::name(path)).as_bytes())
}

impl Verdict {
    fn new(path: &Path, result: Result<Proof, Failure>) -> Verdict {
        let mut verdict = Verdict {
            file: input::name(path),
            verified: result.is_ok(),
            proof: None,
            code: None,
            error: None,
            violation_count: 0,
            violations: Vec::new(),
        };
        match result {
            Ok(proof) => verdict.proof = Some(proof),
            Err(Failure::Violated { violations, .. }) => {
                verdict.violation_count = violations.total;
                verdict.violations = violations.list;
            }
            Err(Failure::Input { code, why, .. }) => {
                verdict.code = Some(code.as_str());
                verdict.error = Some(why);
            }
            Err(Failure::Access { why, .. }) => {
                verdict.code = Some(Code::Access.as_str());
                verdict.error = Some(why);
            }
            Err(other) => verdict.error = Some(other.to_string()),
        }
        verdict
    }
}
