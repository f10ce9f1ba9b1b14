//! The report of `rewrite --report`: what was done at each site, and what was
//! refused.
//!
//! ```json
//! {"scheme":"stlb","sites":[
//! {"file":"e1000.ko","section":".text","offset":4,"function":"e1000_open", ...},
//! ...
//! ],"refusals":[
//! {"file":"other.ko","code":"privileged","section":".text", ..., "remedy":"..."}
//! ]}
//! ```
//!
//! One object on each line. Sites are written as they come, so the report of a whole
//! kernel takes no memory; refusals are few and are kept until the end.

use serde::Serialize;
use svm_rewrite::{Refusal, Site};

use command_line::codes::{AnyCode, Code};
use command_line::failure::Failure;
use command_line::output::{Destination, Pending};

/// A report being written.
pub struct Report {
    output: Pending,
    any_site: bool,
    refusals: Vec<u8>,
}

/// Some sites as they stand in the report.
#[derive(Default)]
pub struct Sites(Vec<u8>);

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
    /// The sites of one file.
    pub fn new(file: &str, sites: &[Site]) -> Sites {
        let mut lines = Vec::new();
        for what in sites {
            push(&mut lines, &In { file, what });
        }
        Sites(lines)
    }
}

impl Report {
    /// Begins one.
    pub fn create(destination: &Destination, scheme: &str) -> Result<Report, Failure> {
        let mut output = Pending::create(destination)?;
        output.write(format!("{{\"scheme\":\"{scheme}\",\"sites\":[\n").as_bytes())?;
        Ok(Report {
            output,
            any_site: false,
            refusals: Vec::new(),
        })
    }

    /// Adds the sites of a file.
    pub fn add_sites(&mut self, sites: &Sites) -> Result<(), Failure> {
        if sites.0.is_empty() {
            return Ok(());
        }
        if self.any_site {
            self.output.write(b",\n")?;
        }
        self.any_site = true;
        self.output.write(&sites.0)
    }

    /// Adds why a file was not rewritten.
    pub fn add_failure(&mut self, failure: &Failure) {
        match failure {
            Failure::Refused { file, refusals } => {
                for refusal in refusals {
                    let remedy = refusal.code.remedy();
                    let what = Refused { refusal, remedy };
                    push(&mut self.refusals, &In { file, what });
                }
            }
            Failure::Violated {
                file, violations, ..
            } => {
                for violation in &violations.list {
                    let violated = Some(violation.code.as_str());
                    self.reject(file, Code::Internal.into(), violated, violation.to_string());
                }
            }
            Failure::Input { file, code, why } => self.reject(file, *code, None, why.clone()),
            Failure::Access { file, why } => {
                self.reject(file, Code::Access.into(), None, why.clone());
            }
            Failure::Usage(_) | Failure::Child(_) | Failure::BrokenPipe | Failure::Reported(_) => {}
        }
    }

    fn reject(
        &mut self,
        file: &str,
        code: AnyCode,
        violation: Option<&'static str>,
        reason: String,
    ) {
        let code = code.as_str();
        let what = Rejected {
            code,
            violation,
            reason,
        };
        push(&mut self.refusals, &In { file, what });
    }

    /// Ends it.
    pub fn finish(mut self) -> Result<(), Failure> {
        self.output.write(b"\n],\"refusals\":[\n")?;
        self.output.write(&self.refusals)?;
        self.output.write(b"\n]}\n")?;
        self.output.finish()
    }
}

/// One more element of a list, on its own line.
fn push(lines: &mut Vec<u8>, element: &impl Serialize) {
    if !lines.is_empty() {
        lines.extend_from_slice(b",\n");
    }
    serde_json::to_writer(lines, element).expect("a report has string keys and no failing parts");
}
