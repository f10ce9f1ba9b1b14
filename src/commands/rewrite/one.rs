//! One input, from reading to the finished file.

use std::num::NonZero;

use command_line::assembler;
use command_line::failure::Failure;
use command_line::input::Input;
use command_line::options::agree;
use command_line::output::{self, Destination, Pending};
use elf_loader::archive::{self, Member};
use svm_rewrite::{Options, Target};

use super::Opts;
use super::jobs::Job;
use crate::mark;
use crate::object;
use crate::report::Sites;
use crate::signing::{self, Signer};
use crate::source;

/// What all inputs have in common.
pub(super) struct Work<'o> {
    /// The command line.
    pub opts: &'o Opts,
    /// Signs results, if that is asked for.
    pub signer: Option<Signer>,
    /// Where a report goes.
    pub report: Option<Destination>,
    /// How many threads work on one input.
    pub threads: NonZero<usize>,
}

/// The result for an input.
pub(super) struct Done {
    pub sites: Sites,
    /// Why nothing is proved about it.
    pub unverified: Option<&'static str>,
    /// What it was made for.
    pub target: Target,
    /// The hash of what it was made from.
    pub original: String,
    /// Whether the original ended in a signature.
    pub was_signed: bool,
    /// Whether the result does.
    pub signed: bool,
}

/// A rewritten object as it will lie on disk, and what was done, as a report has it.
struct Made {
    bytes: Vec<u8>,
    sites: Sites,
    /// The hash of what it was made from.
    original: String,
}

impl Work<'_> {
    /// One input, from reading to the finished file.
    pub(super) fn rewrite(&self, job: &Job) -> Result<Done, Failure> {
        let input = Input::read(&job.input)?;
        match (input.members(), input.text()) {
            (Some(members), _) => self.rewrite_archive(job, &input, &members?),
            (None, Some(text)) if job.output.is_text() => self.rewrite_text(job, &input, text),
            (None, Some(_)) if self.target() == Target::Process => {
                let why = "a program is rewritten as text, and stays text: give -o FILE.s";
                Err(Failure::Usage(why.to_owned()))
            }
            (None, _) => self.rewrite_object(job, &input),
        }
    }

    fn rewrite_object(&self, job: &Job, input: &Input) -> Result<Done, Failure> {
        let Made {
            mut bytes,
            sites,
            original,
        } = self.make(input)?;
        // Verified as it will lie on disk: nothing but the signature, which no reader of
        // objects looks at, is added after this point.
        if let Some(signer) = &self.signer {
            bytes = signer.sign(bytes);
        }
        self.write(job, &bytes)?;
        let unverified = self.opts.no_verify.then_some("--no-verify");
        Ok(self.done(input, original, sites, unverified, self.target()))
    }

    /// Every member, under its name and in its place; the index is made anew.
    fn rewrite_archive(
        &self,
        job: &Job,
        input: &Input,
        members: &[Input],
    ) -> Result<Done, Failure> {
        self.refuse_to_sign(input, "an archive")?;
        if members.is_empty() {
            return Err(Failure::input(&input.name, "the archive has no member"));
        }
        let (mut objects, mut sites) = (Vec::new(), Sites::default());
        for member in members {
            let made = self.make(member)?;
            if let Some(report) = &self.report {
                sites.extend(&made.sites, report);
            }
            objects.push(made.bytes);
        }
        // It was taken apart before: the members have their names.
        let names = archive::members(input.contents()).unwrap_or_default();
        let parts = names.iter().zip(&objects);
        let parts: Vec<_> = parts.map(|(m, data)| Member { data, ..*m }).collect();
        let bytes = archive::write(&parts);
        let bytes = bytes.map_err(|e| Failure::refused(&input.name, e.code(), e))?;
        self.write(job, &bytes)?;
        let unverified = self.opts.no_verify.then_some("--no-verify");
        let original = mark::hash(input.contents());
        Ok(self.done(input, original, sites, unverified, self.target()))
    }

    fn rewrite_text(&self, job: &Job, input: &Input, text: &[u8]) -> Result<Done, Failure> {
        let file = &input.name;
        self.refuse_to_sign(input, "assembly text")?;
        let target = self.opts.target.unwrap_or(Target::Process);
        let module = target == Target::Linux;
        let options = source::options(self.options(target))?;
        let assemble = |marked: &[u8]| assembler::assemble(file, marked);
        let printed = source::rewrite(file, text, options, None, assemble)?;
        let unverified = match (module, self.opts.no_verify) {
            (_, true) => Some("--no-verify"),
            (false, _) => Some("the text of a program, mapped to itself"),
            (true, false) => None,
        };
        match unverified {
            None => source::verify(file, &printed, options)?,
            Some(_) => source::assembles(file, &printed)?,
        }
        // Both ways have the same plans, and the report is about the original.
        let sites = match &self.report {
            Some(report) if module => Sites::new(
                file,
                &object::rewritten(input, self.options(target))?.sites,
                report,
            ),
            Some(_) => {
                let why = "a report of the sites of text is for --target linux; \
                           `twin cc --report` counts those of programs";
                return Err(Failure::input(file, why));
            }
            None => Sites::default(),
        };
        self.write(job, &printed.text)?;
        let original = mark::hash(input.contents());
        Ok(self.done(input, original, sites, unverified, target))
    }

    fn options(&self, target: Target) -> Options {
        self.opts.options(target, self.threads)
    }

    /// The target of objects.
    fn target(&self) -> Target {
        self.opts.target.unwrap_or(Target::Hypervisor)
    }

    /// An object: rewritten, marked, serialised, verified.
    fn make(&self, input: &Input) -> Result<Made, Failure> {
        let target = self.target();
        // Of standard output it is not known before that an object goes there.
        agree(self.opts.accesses, target)?;
        let demanded = (!self.opts.no_verify).then(|| self.opts.contract(target));
        let made = object::make(input, self.options(target), demanded)?;
        let sites = match &self.report {
            Some(report) => Sites::new(&input.name, &made.sites, report),
            None => Sites::default(),
        };
        Ok(Made {
            bytes: made.bytes,
            sites,
            original: made.original,
        })
    }

    fn refuse_to_sign(&self, input: &Input, what: &str) -> Result<(), Failure> {
        match self.signer {
            None => Ok(()),
            Some(_) => {
                let why = format!("--sign is for modules, and this is {what}");
                Err(Failure::input(&input.name, why))
            }
        }
    }

    /// Compresses as the output's name says, and gives it its name.
    fn write(&self, job: &Job, bytes: &[u8]) -> Result<(), Failure> {
        if let (Destination::File(path), Some(_)) = (&job.output, &self.opts.directory) {
            output::create_dir(output::directory(path))?;
        }
        match job.output.compression() {
            None => Pending::create(&job.output)?.finish_with(bytes),
            Some(format) => {
                let packed = format.pack(bytes);
                let packed = packed.map_err(|e| Failure::access(job.output.name(), e))?;
                Pending::create(&job.output)?.finish_with(&packed)
            }
        }
    }

    fn done(
        &self,
        input: &Input,
        original: String,
        sites: Sites,
        unverified: Option<&'static str>,
        target: Target,
    ) -> Done {
        Done {
            sites,
            unverified,
            target,
            original,
            was_signed: signing::is_signed(input.contents()),
            signed: self.signer.is_some(),
        }
    }
}
