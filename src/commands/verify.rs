//! `twin verify`: the proof that rewritten objects keep a contract.
//!
//! The caller names the contract that the loader will demand. An object's own note
//! is compared with it and decides nothing.

use std::path::{Path, PathBuf};

use clap::Args;
use command_line::codes::CommandCode;
use command_line::failure::{Failure, Status};
use command_line::input::{self, Input};
use command_line::options::{Format, accesses, agree, scheme, suit, target_among};
use command_line::output;
use command_line::text::count;
use elf_loader::Object;
use serde::Serialize;
use svm_verify::{Accesses, Contract, Proof, Scheme, Target, Violation};

use crate::{inputs, mark, parallel};

const EXAMPLES: &str = "\
Examples:
  twin verify e1000.twin.o
  twin verify --scheme stlb confined/*.twin.o
  twin verify --target linux e1000.twin.ko
  twin verify --target linux --accesses stores e1000.twin.ko
  twin verify --target linux --check-original e1000.ko.xz e1000.twin.ko
  twin verify --format json e1000.twin.o | jq '.[].violations'

The contract is what you demand, never what the object says of itself: one that
was made for another is refused. A hypervisor demands `hypervisor`, and the scheme of
its instance. A module for a stock kernel has that kernel's rights: of it less is
proved, and `checked` is printed for it instead of `verified`.

With `--accesses stores` the contract is that writes are confined; reads are not.
An object whose loads stayed as they are keeps no other, so it is refused unless
this one is demanded.

The proof needs no trust in whoever made the object, and fails closed. What an
object was made from is another matter: there the object's own mark is compared,
which is as good as whoever made, or signed, it.

Exit status:
  0  every file keeps the contract
  1  a violation was found, a file is no rewritten object, or was made from
     another file than --check-original names
  2  wrong usage, or a file that cannot be read";

/// Options of `twin verify`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Rewritten objects, archives of them or directories; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "files_from")]
    files: Vec<PathBuf>,
    /// Verify also what this file lists; `-` is standard input.
    #[arg(long, value_name = "LIST")]
    files_from: Option<PathBuf>,
    /// Contract to demand.
    #[arg(long, value_name = "TARGET", default_value = Target::Hypervisor.as_str(),
          value_parser = target_among(&[Target::Hypervisor, Target::Linux]))]
    target: Target,
    /// The scheme that is demanded [default: any; the result says which].
    #[arg(long, value_name = "SCHEME", value_parser = scheme())]
    scheme: Option<Scheme>,
    /// Which accesses to memory have to be confined.
    #[arg(long, value_name = "ACCESSES", default_value = Accesses::All.as_str(),
          value_parser = accesses())]
    accesses: Accesses,
    /// Compare the hash in each object's mark with this file: what the object says it
    /// was made from.
    #[arg(long, value_name = "FILE")]
    check_original: Option<PathBuf>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

/// Version of the report as JSON. Further fields do not change it.
const VERSION: u32 = 1;

/// What is said of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Verdict {
    /// It reaches nothing but what the hypervisor gives it.
    Confined,
    /// It is what rewriting makes of a module, which has the kernel's rights.
    Checked,
    /// The same of what it writes; what it reads is not confined.
    WritesChecked,
    /// It does not keep the contract.
    Refused,
    /// It cannot be read, or is no object.
    Unreadable,
}

impl Verdict {
    /// What a proof amounts to.
    fn of(proof: &Proof) -> Verdict {
        match (proof.target, proof.confined) {
            (Target::Hypervisor, Accesses::All) => Verdict::Confined,
            (Target::Linux | Target::Process, Accesses::All) => Verdict::Checked,
            (_, Accesses::Stores) => Verdict::WritesChecked,
        }
    }
}

/// The result for one file, as JSON has it.
#[derive(Serialize)]
struct VerifyReport {
    /// Version of the format: a greater one may lack fields, or have them with another
    /// meaning.
    version: u32,
    file: String,
    /// The contract that was demanded.
    target: &'static str,
    /// The scheme that was proved, else the one that was demanded, if any.
    scheme: Option<&'static str>,
    /// The accesses that were demanded to be confined.
    accesses: &'static str,
    verdict: Verdict,
    /// Numbers of what was proved.
    #[serde(skip_serializing_if = "Option::is_none")]
    counts: Option<Proof>,
    /// The hash of --check-original's file, if the object's mark names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    original: Option<String>,
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

/// A file, or a member of one, with what was found.
type Verified = (String, Result<Proof, Failure>);

impl Opts {
    /// Verifies all files.
    pub fn run(self) -> Result<(), Failure> {
        agree(self.accesses, self.target)?;
        if let Some(scheme) = self.scheme {
            suit(scheme, self.target)?;
        }
        let contract = self.contract();
        let files = inputs::expand(&self.files, self.files_from.as_deref(), None)?;
        if files.is_empty() {
            let why = "the list names no file, so nothing would be proved; give one that does";
            return Err(Failure::Usage(why.to_owned()));
        }
        let all = [&self.check_original, &self.files_from]
            .into_iter()
            .flatten();
        inputs::read_once(all.chain(&files).map(PathBuf::as_path))?;
        let original = self.check_original.as_deref().map(Original::read);
        let original = original.transpose()?;
        let mut results = Vec::new();
        let mut failed = Status::Done;
        let result = parallel::each(
            &files,
            parallel::cores(),
            |path| verify(path, contract, original.as_ref()),
            |path, result| {
                // A file that cannot be read at all has been printed.
                let whole = |failure| vec![(input::name(path), Err(failure))];
                let (printed, parts) = match result {
                    Ok(parts) => (false, parts),
                    Err(failure) => (true, whole(failure)),
                };
                for (name, result) in parts {
                    if let (Err(failure), false) = (&result, printed) {
                        failure.print();
                        failed = failed.max(failure.status());
                    }
                    match self.format {
                        Format::Text => print(&name, &result, original.as_ref())?,
                        Format::Json => {
                            let original = original.as_ref().map(|o| &*o.contents);
                            results.push(VerifyReport::new(name, contract, result, original));
                        }
                    }
                }
                Ok(())
            },
        );
        if self.format == Format::Json {
            output::json(&results)?;
        }
        match (result, failed) {
            (Ok(()), Status::Done) => Ok(()),
            (Ok(()), failed) => Err(Failure::Reported(failed)),
            (Err(Failure::Reported(other)), failed) => Err(Failure::Reported(failed.max(other))),
            (Err(failure), _) => Err(failure),
        }
    }

    fn contract(&self) -> Contract {
        Contract {
            target: self.target,
            scheme: self.scheme,
            accesses: self.accesses,
        }
    }
}

/// A file that objects are said to be made from.
struct Original {
    name: String,
    /// The hash of what it holds, decompressed: that is what marks have.
    contents: String,
    /// Those of its members, if it is an archive.
    members: Vec<String>,
}

impl Original {
    fn read(path: &Path) -> Result<Original, Failure> {
        let input = Input::read_file(path)?;
        let members = input.members().transpose()?.unwrap_or_default();
        Ok(Original {
            contents: mark::hash(input.contents()),
            members: members.iter().map(|m| mark::hash(m.contents())).collect(),
            name: input.name,
        })
    }

    /// Compares an object's mark.
    fn check(&self, file: &str, object: &Object<'_>) -> Result<(), Failure> {
        let name = &self.name;
        let why = match mark::original(object) {
            Some(hash) if hash == self.contents || self.members.iter().any(|m| m == hash) => {
                return Ok(());
            }
            Some(hash) => format!(
                "it was made from a file with {hash}, and {name} has {}; give the file that it \
                 was made from, or rewrite {name}",
                self.contents
            ),
            None => format!("it has no mark that says what it was made from; rewrite {name}"),
        };
        Err(Failure::refused(file, CommandCode::Original, why))
    }
}

/// Verifies an object, or each member of an archive.
fn verify(
    path: &Path,
    contract: Contract,
    original: Option<&Original>,
) -> Result<Vec<Verified>, Failure> {
    let input = Input::read(path)?;
    let Some(members) = input.members() else {
        return verify_object(&input, contract, original)
            .map(|proof| vec![(input.name.clone(), Ok(proof))]);
    };
    let verified = |member: Input| {
        let result = verify_object(&member, contract, original);
        (member.name, result)
    };
    match members? {
        none if none.is_empty() => Err(Failure::input(&input.name, "the archive has no member")),
        members => Ok(members.into_iter().map(verified).collect()),
    }
}

fn verify_object(
    input: &Input,
    contract: Contract,
    original: Option<&Original>,
) -> Result<Proof, Failure> {
    let object = input.object()?;
    let proof = svm_verify::verify(&object, contract);
    let proof = proof.map_err(|violations| Failure::Violated {
        file: input.name.clone(),
        made_here: false,
        violations,
    })?;
    match original {
        Some(original) => original.check(&input.name, &object).map(|()| proof),
        None => Ok(proof),
    }
}

/// One line for a proof; failures are printed elsewhere.
fn print(
    name: &str,
    result: &Result<Proof, Failure>,
    original: Option<&Original>,
) -> Result<(), Failure> {
    let Ok(proof) = result else { return Ok(()) };
    let accesses = &proof.accesses;
    let confined = match svm_verify::Scheme::TABLES.contains(&proof.scheme) {
        true => [
            (proof.checks, "check"),
            (accesses.translated, "translated access"),
        ]
        .to_vec(),
        false => [(accesses.window, "window access")].to_vec(),
    };
    let parts = [
        &[
            (proof.instructions, "instruction"),
            (proof.functions, "function"),
        ],
        &confined[..],
        &[
            (accesses.stack, "stack access"),
            (accesses.string, "string instruction"),
            (proof.codemap, "entry point"),
        ],
    ];
    let unconfined = match proof.confined {
        Accesses::All => None,
        Accesses::Stores => Some((accesses.unconfined, "unconfined read")),
    };
    let parts = parts.concat().into_iter().chain(unconfined);
    let parts: Vec<String> = parts.map(|(n, thing)| count(n as u64, thing)).collect();
    let parts = parts.join(", ");
    let made = original.map_or_else(String::new, |o| format!("; made from {}", o.name));
    output::text(format!("{name}: {}: {parts}{made}\n", proved(proof)).as_bytes())
}

/// What was proved, in words.
fn proved(proof: &Proof) -> String {
    let contract = format!(
        "contract {}, scheme {}",
        proof.target.as_str(),
        proof.scheme.as_str()
    );
    match Verdict::of(proof) {
        Verdict::WritesChecked => format!(
            "writes checked: as a module for a stock kernel ({contract}, accesses stores), not \
             confined from that kernel; its writes are confined, its reads are not"
        ),
        Verdict::Confined => format!("verified: confined ({contract})"),
        Verdict::Checked | Verdict::Refused | Verdict::Unreadable => format!(
            "checked: as a module for a stock kernel ({contract}), not confined from that kernel"
        ),
    }
}

impl VerifyReport {
    fn new(
        file: String,
        contract: Contract,
        result: Result<Proof, Failure>,
        original: Option<&str>,
    ) -> VerifyReport {
        let mut made = VerifyReport {
            version: VERSION,
            file,
            target: contract.target.as_str(),
            scheme: contract.scheme.map(svm_verify::Scheme::as_str),
            accesses: contract.accesses.as_str(),
            verdict: Verdict::Unreadable,
            counts: None,
            original: None,
            code: None,
            error: None,
            violation_count: 0,
            violations: Vec::new(),
        };
        match result {
            Ok(proof) => {
                made.scheme = Some(proof.scheme.as_str());
                made.verdict = Verdict::of(&proof);
                made.original = original.map(str::to_owned);
                made.counts = Some(proof);
            }
            Err(Failure::Violated { violations, .. }) => {
                made.verdict = Verdict::Refused;
                made.violation_count = violations.total;
                made.violations = violations.list;
            }
            Err(Failure::Input { code, why, .. }) => {
                if code == CommandCode::Original.into() {
                    made.verdict = Verdict::Refused;
                }
                made.code = Some(code.as_str());
                made.error = Some(why);
            }
            Err(Failure::Access { why, .. }) => {
                made.code = Some(CommandCode::Access.as_str());
                made.error = Some(why);
            }
            Err(other) => made.error = Some(other.to_string()),
        }
        made
    }
}
