//! `twin verify`: the proof that rewritten objects keep a contract.
//!
//! The caller names the contract that the loader will demand. An object's own note
//! is compared with it and decides nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use command_line::codes::Code;
use command_line::failure::Failure;
use command_line::input::{self, Input};
use command_line::options::{Format, scheme, target_among};
use command_line::output;
use command_line::text::count;
use serde::Serialize;
use svm_verify::{Contract, Proof, Scheme, Target, Violation};

use crate::parallel;

const EXAMPLES: &str = "\
Examples:
  twin verify e1000.twin.o
  twin verify --scheme stlb confined/*.twin.o
  twin verify --target linux e1000.twin.ko
  twin verify --format json e1000.twin.o | jq '.[].violations'

The contract is what you demand, never what the object says of itself: one that
was made for another is refused. A hypervisor demands `hypervisor`, and the scheme of
its instance. A module for a stock kernel has that kernel's rights: of it less is
proved, and `checked` is printed for it instead of `verified`.

The proof needs no trust in whoever made the object, and fails closed.

Exit status:
  0  every file keeps the contract
  1  a violation was found, or a file is no rewritten object
  2  wrong usage, or a file that cannot be read";

/// Options of `twin verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Rewritten objects; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Contract to demand.
    #[arg(long, value_name = "TARGET", default_value = Target::Hypervisor.as_str(),
          value_parser = target_among(&[Target::Hypervisor, Target::Linux]))]
    target: Target,
    /// The scheme that is demanded [default: any; the result says which].
    #[arg(long, value_name = "SCHEME", value_parser = scheme())]
    scheme: Option<Scheme>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// What is said of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    /// It reaches nothing but what the hypervisor gives it.
    Confined,
    /// It is what rewriting makes of a module, which has the kernel's rights.
    Checked,
    /// It does not keep the contract.
    Refused,
    /// It cannot be read, or is no object.
    Unreadable,
}

impl Verdict {
    /// What a proof amounts to.
    fn of(proof: &Proof) -> Verdict {
        match proof.target {
            Target::Hypervisor => Verdict::Confined,
            Target::Linux | Target::Process => Verdict::Checked,
        }
    }
}

/// The result for one file, as JSON has it.
#[derive(Serialize)]
struct Report {
    file: String,
    /// The contract that was demanded.
    target: &'static str,
    /// The scheme that was proved, else the one that was demanded, if any.
    scheme: Option<&'static str>,
    verdict: Verdict,
    /// Numbers of what was proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Proof>,
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
        let contract = self.contract();
        let mut results = Vec::new();
        let result = parallel::each(
            &self.files,
            parallel::cores(),
            |path| verify(path, contract),
            |path, result| match self.format {
                Format::Text => print(path, &result),
                Format::Json => {
                    results.push(Report::new(path, contract, result));
                    Ok(())
                }
            },
        );
        if self.format == Format::Json {
            output::json(&results)?;
        }
        result
    }

    fn contract(&self) -> Contract {
        Contract {
            target: self.target,
            scheme: self.scheme,
        }
    }
}

fn verify(path: &Path, contract: Contract) -> Result<Proof, Failure> {
    let input = Input::read(path)?;
    svm_verify::verify(&input.object()?, contract).map_err(|violations| Failure::Violated {
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
    let name = input::name(path);
    output::text(format!("{name}: {}: {parts}\n", proved(proof)).as_bytes())
}

/// What was proved, in words.
fn proved(proof: &Proof) -> String {
    let contract = format!(
        "(contract {}, scheme {})",
        proof.target.as_str(),
        proof.scheme.as_str()
    );
    match proof.target {
        svm_verify::Target::Hypervisor => format!("verified: confined {contract}"),
        svm_verify::Target::Linux | svm_verify::Target::Process => format!(
            "checked: as a module for a stock kernel {contract}, not confined from that kernel"
        ),
    }
}

impl Report {
    fn new(path: &Path, contract: Contract, result: Result<Proof, Failure>) -> Report {
        let mut made = Report {
            file: input::name(path),
            target: contract.target.as_str(),
            scheme: contract.scheme.map(svm_verify::Scheme::as_str),
            verdict: Verdict::Unreadable,
            counts: None,
            code: None,
            error: None,
            violation_count: 0,
            violations: Vec::new(),
        };
        match result {
            Ok(proof) => {
                made.scheme = Some(proof.scheme.as_str());
                made.verdict = Verdict::of(&proof);
                made.counts = Some(proof);
            }
            Err(Failure::Violated { violations, .. }) => {
                made.verdict = Verdict::Refused;
                made.violation_count = violations.total;
                made.violations = violations.list;
            }
            Err(Failure::Input { code, why, .. }) => {
                made.code = Some(code.as_str());
                made.error = Some(why);
            }
            Err(Failure::Access { why, .. }) => {
                made.code = Some(Code::Access.as_str());
                made.error = Some(why);
            }
            Err(other) => made.error = Some(other.to_string()),
        }
        made
    }
}
