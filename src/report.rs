//! The report of `rewrite --report`: what was done at each site, what became of each
//! file, and what was refused. `docs/spec/report.md` has the format.
//!
//! ```json
//! {"version":1,"twin":"0.1.0","scheme":"stlb","accesses":"all","sites":[
//! {"file":"e1000.ko","section":".text","offset":4,"function":"e1000_open", ...},
//! ...
//! ],"files":[
//! {"file":"e1000.ko","result":"written", ...}
//! ],"refusals":[
//! ]}
//! ```
//!
//! One object on each line. Sites are written as they come, so the report of a whole
//! kernel takes no memory; the rest is little and is kept until the end. A report whose
//! name ends in `.jsonl` has the same objects as lines of their own, file by file.

use serde::Serialize;
use svm_rewrite::{Accesses, Refusal, Scheme, Site};

use command_line::codes::{AnyCode, CommandCode};
use command_line::failure::Failure;
use command_line::output::{Destination, Pending};

/// Version of the format: a greater one may lack fields, or have them with another
/// meaning. Further fields do not change it.
const VERSION: u32 = 1;

/// A report being written.
pub struct RewriteReport {
    output: Pending,
    form: Form,
}

/// The parts that are not written yet.
enum Form {
    Document {
        any_site: bool,
        files: Vec<u8>,
        refusals: Vec<u8>,
    },
    Lines,
}

/// Some sites as they stand in the report.
#[derive(Default)]
pub struct Sites(Vec<u8>);

/// What became of a file.
#[derive(Serialize)]
pub struct File<'a> {
    /// The input.
    pub file: &'a str,
    /// What became of it.
    pub result: FileOutcome,
    /// Where the result is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<&'static str>,
    /// Whether the verifier proved the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verified: Option<bool>,
    /// The hash of what the file holds, decompressed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub original: Option<&'a str>,
    /// Whether the original ended in a signature.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub was_signed: Option<bool>,
    /// Whether the result does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<bool>,
}

/// What became of a file.
#[derive(Clone, Copy, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOutcome {
    /// There is a result.
    Written,
    /// There is none; refusals say why.
    Refused,
}

#[derive(Serialize)]
struct Header {
    version: u32,
    twin: &'static str,
    scheme: &'static str,
    accesses: &'static str,
}

/// A line that says what it is.
#[derive(Serialize)]
struct Line<T> {
    record: &'static str,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
struct In<'a, T> {
    file: &'a str,
    #[serde(flatten)]
    what: T,
}

#[derive(Serialize)]
struct Refused<'a> {
    #[serde(flatten)]
    refusal: &'a Refusal,
    remedy: &'static str,
}

/// A file refused as a whole, or a defect of twin.
#[derive(Serialize)]
struct Rejected {
    code: &'static str,
    /// The rule that our own output breaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    violation: Option<&'static str>,
    reason: String,
}

impl Sites {
    /// The sites of one file, for a report there.
    pub fn new(file: &str, sites: &[Site], report: &Destination) -> Sites {
        let mut lines = Vec::new();
        for what in sites {
            let what = In { file, what };
            match is_lines(report) {
                true => push_line(&mut lines, "site", &what),
                false => push(&mut lines, &what),
            }
        }
        Sites(lines)
    }

    /// Adds those of another member.
    pub fn extend(&mut self, more: &Sites, report: &Destination) {
        if !is_lines(report) && !self.0.is_empty() && !more.0.is_empty() {
            self.0.extend_from_slice(b",\n");
        }
        self.0.extend_from_slice(&more.0);
    }
}

/// Whether a report there has a line for each object.
fn is_lines(report: &Destination) -> bool {
    match report {
        Destination::Stdout => false,
        Destination::File(path) => path.extension().is_some_and(|ending| ending == "jsonl"),
    }
}

impl RewriteReport {
    /// Begins one.
    pub fn create(
        destination: &Destination,
        scheme: Scheme,
        accesses: Accesses,
    ) -> Result<RewriteReport, Failure> {
        let mut output = Pending::create(destination)?;
        let header = Header {
            version: VERSION,
            twin: env!("CARGO_PKG_VERSION"),
            scheme: scheme.as_str(),
            accesses: accesses.as_str(),
        };
        let mut begin = Vec::new();
        let form = match is_lines(destination) {
            true => {
                push_line(&mut begin, "report", &header);
                Form::Lines
            }
            false => {
                push(&mut begin, &header);
                // The object goes on.
                begin.pop();
                begin.extend_from_slice(b",\"sites\":[\n");
                Form::Document {
                    any_site: false,
                    files: Vec::new(),
                    refusals: Vec::new(),
                }
            }
        };
        output.write(&begin)?;
        Ok(RewriteReport { output, form })
    }

    /// Adds the sites of a file.
    pub fn add_sites(&mut self, sites: &Sites) -> Result<(), Failure> {
        if sites.0.is_empty() {
            return Ok(());
        }
        if let Form::Document { any_site, .. } = &mut self.form
            && std::mem::replace(any_site, true)
        {
            self.output.write(b",\n")?;
        }
        self.output.write(&sites.0)
    }

    /// Adds what became of a file.
    pub fn add_file(&mut self, file: &File<'_>) -> Result<(), Failure> {
        match &mut self.form {
            Form::Document { files, .. } => push(files, file),
            Form::Lines => return self.line("file", file),
        }
        Ok(())
    }

    /// Adds why a file was not rewritten.
    pub fn add_failure(&mut self, failure: &Failure) -> Result<(), Failure> {
        match failure {
            Failure::Refused { file, refusals } => {
                for refusal in refusals {
                    let remedy = refusal.code.remedy();
                    let what = Refused { refusal, remedy };
                    self.refusal(&In { file, what })?;
                }
            }
            Failure::Violated {
                file, violations, ..
            } => {
                for violation in &violations.list {
                    let violated = Some(violation.code.as_str());
                    self.reject(
                        file,
                        CommandCode::Internal.into(),
                        violated,
                        violation.to_string(),
                    )?;
                }
            }
            Failure::Input { file, code, why } => self.reject(file, *code, None, why.clone())?,
            Failure::Access { file, why } => {
                self.reject(file, CommandCode::Access.into(), None, why.clone())?;
            }
            Failure::Usage(_) | Failure::Child(_) | Failure::Reported(_) => {}
        }
        Ok(())
    }

    fn reject(
        &mut self,
        file: &str,
        code: AnyCode,
        violation: Option<&'static str>,
        reason: String,
    ) -> Result<(), Failure> {
        let code = code.as_str();
        let what = Rejected {
            code,
            violation,
            reason,
        };
        self.refusal(&In { file, what })
    }

    fn refusal(&mut self, refusal: &impl Serialize) -> Result<(), Failure> {
        match &mut self.form {
            Form::Document { refusals, .. } => push(refusals, refusal),
            Form::Lines => return self.line("refusal", refusal),
        }
        Ok(())
    }

    fn line(&mut self, record: &'static str, what: &impl Serialize) -> Result<(), Failure> {
        let mut line = Vec::new();
        push_line(&mut line, record, what);
        self.output.write(&line)
    }

    /// Ends it.
    pub fn finish(mut self) -> Result<(), Failure> {
        if let Form::Document {
            files, refusals, ..
        } = &self.form
        {
            self.output.write(b"\n],\"files\":[\n")?;
            self.output.write(files)?;
            self.output.write(b"\n],\"refusals\":[\n")?;
            self.output.write(refusals)?;
            self.output.write(b"\n]}\n")?;
        }
        self.output.finish()
    }
}

/// One more element of a list, on its own line.
fn push(lines: &mut Vec<u8>, element: &impl Serialize) {
    if !lines.is_empty() {
        lines.extend_from_slice(b",\n");
    }
    write(lines, element);
}

/// One more line, which says what it is.
fn push_line(lines: &mut Vec<u8>, record: &'static str, what: &impl Serialize) {
    write(lines, &Line { record, what });
    lines.push(b'\n');
}

fn write(out: &mut Vec<u8>, value: &impl Serialize) {
    serde_json::to_writer(out, value).expect("a report has string keys and no failing parts");
}
