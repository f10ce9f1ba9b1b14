//! One input, from reading to the finished file.

use command_line::assembler;
use command_line::codes::Code;
use command_line::failure::Failure;
use command_line::input::Input;
use command_line::output::Pending;
use svm_rewrite::{Refusal, Rewritten, Target};
use svm_verify::{Violation, Violations};

use super::Opts;
use super::jobs::Job;
use crate::report::Sites;
use crate::source;

/// The result for an input.
pub(super) struct Done {
    /// What was done.
    pub sites: Sites,
    /// Why nothing is proved about it.
    pub unverified: Option<&'static str>,
}

impl Opts {
    /// One input, from reading to the finished file.
    pub(super) fn rewrite(&self, job: &Job) -> Result<Done, Failure> {
        let input = Input::read(&job.input)?;
        match input.text() {
            Some(text) if job.output.is_text() => self.rewrite_text(job, &input, text),
            _ => self.rewrite_object(job, &input),
        }
    }

    fn rewrite_object(&self, job: &Job, input: &Input) -> Result<Done, Failure> {
        let file = &input.name;
        let target = self.target.unwrap_or(Target::Hypervisor);
        let rewritten = self.rewritten(input, target)?;
        let bytes = serialise(file, &rewritten)?;
        if !self.no_verify {
            self.verify(file, &bytes, target)?;
        }
        // Verified as it will lie on disk: nothing changes it after this point.
        Pending::create(&job.output)?.finish_with(&bytes)?;
        Ok(Done {
            sites: Sites::new(file, &rewritten.sites),
            unverified: self.no_verify.then_some("--no-verify"),
        })
    }

    /// Proves what was asked for, of the bytes as they will lie on disk.
    fn verify(&self, file: &str, bytes: &[u8], target: Target) -> Result<(), Failure> {
        let object = elf_loader::read(bytes).map_err(|error| internal(file, &error))?;
        svm_verify::verify(&object, self.contract(target))
            .map(|_| ())
            .map_err(|violations| unproved(file, violations))
    }

    fn rewritten(&self, input: &Input, target: Target) -> Result<Rewritten, Failure> {
        let rewritten = svm_rewrite::rewrite(&input.object()?, self.options(target));
        rewritten.map_err(|refusals| Failure::Refused {
            file: input.name.clone(),
            refusals,
        })
    }

    fn rewrite_text(&self, job: &Job, input: &Input, text: &[u8]) -> Result<Done, Failure> {
        let file = &input.name;
        let target = self.target.unwrap_or(Target::Process);
        let module = target == Target::Linux;
        let options = source::options(target, self.scheme)?;
        let assemble = |marked: &[u8]| assembler::assemble(file, marked);
        let printed = source::rewrite(file, text, options, assemble)?;
        let unverified = match (module, self.no_verify) {
            (_, true) => Some("--no-verify"),
            (false, _) => Some("the text of a program, mapped to itself"),
            (true, false) => None,
        };
        if unverified.is_none() {
            source::verify(file, &printed, self.scheme)?;
        }
        // Both ways have the same plans, and the report is about the original.
        let sites = match self.report.is_some() {
            true if module => Sites::new(file, &self.rewritten(input, target)?.sites),
            true => {
                let why = "a report of the sites of text is for --target linux; \
                           `twin cc --report` counts those of programs";
                return Err(Failure::input(file, why));
            }
            false => Sites::default(),
        };
        Pending::create(&job.output)?.finish_with(&printed.text)?;
        Ok(Done { sites, unverified })
    }
}

fn serialise(file: &str, rewritten: &Rewritten) -> Result<Vec<u8>, Failure> {
    elf_loader::write(&rewritten.object).map_err(|error| internal(file, &error))
}

/// The verifier's result for twin's own output. The rewriter leaves it to the verifier
/// whether a move of `rsp` in a module for a stock kernel can be followed, and whether
/// the code has become too long; any other violation is a defect of twin.
fn unproved(file: &str, violations: Violations) -> Failure {
    if let [too_long] = &violations.list[..]
        && too_long.code == svm_verify::Code::Section
    {
        let reason = format!("rewritten, it has {}", too_long.reason);
        return Failure::Refused {
            file: file.to_owned(),
            refusals: vec![Refusal::of_object(svm_rewrite::Code::TooMany, reason)],
        };
    }
    let moves = |v: &&Violation| v.code == svm_verify::Code::StackPointer;
    if violations.total == violations.list.iter().filter(moves).count() {
        let refused = violations.list.iter().map(unfollowed).collect();
        return Failure::Refused {
            file: file.to_owned(),
            refusals: refused,
        };
    }
    Failure::Violated {
        file: file.to_owned(),
        own: true,
        violations,
    }
}

/// A move of `rsp` that the verifier cannot follow, as a refusal.
fn unfollowed(violation: &Violation) -> Refusal {
    let reason = "the register or word that %rsp comes from cannot be followed to where the frame's address was put into it";
    Refusal {
        function: violation.function.clone().unwrap_or_default(),
        function_offset: violation.function_offset,
        instruction: violation.instruction.clone(),
        ..Refusal::at(
            svm_rewrite::Code::StackPointer,
            &violation.section,
            violation.offset,
            reason,
        )
    }
}

/// An object that this program made itself and cannot handle.
fn internal(file: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(
        file,
        Code::Internal,
        format!("internal error: the rewritten object is malformed: {error}; please report this"),
    )
}
