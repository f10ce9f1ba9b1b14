//! Assembly text rewritten to assembly text.
//!
//! ```text
//! text ──> marked text ──as──> object ──> rewritten text, and the runtime
//!                                              │
//!                     `linux`: ──as──> object ─┘──> verify
//! ```
//!
//! Text for `linux` is a part of a module, and its object is verified as a module would be.
//! Text for `process` is a program's, mapped to itself: the proof is about drivers,
//! whose stack and frames have known sizes, and does not hold for programs.

use std::borrow::Cow;

use elf_loader::Object;
use svm_rewrite::text::{self, Expansion, Printed, Returns, Source};
use svm_rewrite::{Options, Refusal, RefusalCode, Scheme, Target};
use svm_verify::Contract;

use command_line::assembler;
use command_line::failure::Failure;
use command_line::options::suit;

use crate::{mark, object, ranges};

/// The table and the slow paths of a program, part of each of its texts, linked
/// once.
const PROCESS_RUNTIME: &str = include_str!("../runtime/platform/process/process.s");

/// The options to rewrite a text by that stays text.
///
/// # Errors
/// The target takes no text, or the scheme is not for programs.
pub fn options(options: Options) -> Result<Options, Failure> {
    if options.target != Target::Hypervisor {
        suit(options.scheme, options.target)?;
    }
    match (options.target, options.scheme) {
        (Target::Hypervisor, _) => {
            let why = "for a hypervisor, text must become an object: give -o FILE.o";
            Err(Failure::Usage(why.to_owned()))
        }
        (Target::Linux | Target::Process, scheme)
            if !svm_rewrite::suits(scheme, options.target) =>
        {
            let why = format!(
                "--scheme {} has absolute addresses, which programs cannot have; `{}` is for them",
                scheme.as_str(),
                Scheme::Stlb.as_str()
            );
            Err(Failure::Usage(why))
        }
        (Target::Linux | Target::Process, _) => Ok(options),
    }
}

/// Rewrites a text; `assemble` turns the marked text into an object. `returns` is what is
/// known of how the compiler's functions return, for a text without any.
///
/// # Errors
/// The text is refused, or cannot be assembled.
pub fn rewrite<E: From<Failure>>(
    name: &str,
    text: &[u8],
    options: Options,
    returns: Option<Returns>,
    assemble: impl Fn(&[u8]) -> Result<Vec<u8>, E>,
) -> Result<Printed, E> {
    let refused = |refusals| Failure::Refused {
        file: name.to_owned(),
        refusals,
    };
    ranges::check(text).map_err(|refusal| refused(vec![refusal]))?;
    let job = Text {
        name,
        options,
        returns,
        assemble: &assemble,
    };
    let refusals = match job.rewrite(Source::new(text))? {
        Ok(printed) => return Ok(printed),
        Err(refusals) => refusals,
    };
    let plainer = |text: &[u8]| text::plainer(text, |text| assemble(text).ok());
    let plain = plainer(text);
    let (text, refusals) = match &plain {
        None => (text, refusals),
        // Of this one refusals are about its code.
        Some(plain) => match job.rewrite(Source::new(plain))? {
            Ok(printed) => return Ok(printed),
            Err(refusals) => (&**plain, refusals),
        },
    };
    // Lines that become several instructions, or none, may be macros and repetitions.
    let is_statement = refusals.iter().any(|r| r.code == RefusalCode::Statement);
    let expansion = match job.expansion(text) {
        Err(failure) if is_statement => return Err(failure),
        expansion => expansion.ok().flatten(),
    };
    let Some(mut expansion) = expansion else {
        return Err(refused(refusals).into());
    };
    let mut printed = job.rewrite(Source::expanded(&expansion))?;
    if printed.is_err()
        && let Some(plain) = plainer(&expansion.text)
    {
        expansion.text = plain;
        printed = job.rewrite(Source::expanded(&expansion))?;
    }
    // Others are no clearer without macros.
    Ok(printed.map_err(|expanded| refused(if is_statement { expanded } else { refusals }))?)
}

/// How a text is rewritten.
struct Text<'t, A> {
    name: &'t str,
    options: Options,
    returns: Option<Returns>,
    assemble: &'t A,
}

impl<A, E: From<Failure>> Text<'_, A>
where
    A: Fn(&[u8]) -> Result<Vec<u8>, E>,
{
    fn rewrite(
        &self,
        (source, marked): (Source<'_>, Vec<u8>),
    ) -> Result<Result<Printed, Vec<Refusal>>, E> {
        if let Err(refusals) = source.check() {
            return Ok(Err(refusals));
        }
        let bytes = (self.assemble)(&marked)?;
        let object = self.read(&bytes)?;
        let mut printed = match source.rewrite(&object, self.options) {
            Ok(printed) => printed,
            Err(refusals) => return Ok(Err(refusals)),
        };
        match self.added(&object, &printed) {
            Ok(added) if added.is_empty() => {}
            Ok(added) => {
                printed.text.extend_from_slice(b"\n\t.att_syntax\n");
                printed.text.extend_from_slice(added.as_bytes());
            }
            Err(refusal) => return Ok(Err(vec![refusal])),
        }
        Ok(source.check_macros(&printed.text).map(|()| printed))
    }

    fn read<'o>(&self, bytes: &'o [u8]) -> Result<Object<'o>, Failure> {
        elf_loader::read(bytes).map_err(|e| Failure::unreadable(self.name, &e))
    }

    /// The text with its macros written out, if it is assembled to the same object.
    fn expansion(&self, text: &[u8]) -> Result<Option<Expansion>, E> {
        let Some(expansion) = text::expand(text) else {
            return Ok(None);
        };
        // It may be wrong, and the assembler may not take it.
        let (original, expanded) = ((self.assemble)(text)?, (self.assemble)(&expansion.text)?);
        let same = text::same(&self.read(&original)?, &self.read(&expanded)?);
        Ok(same.then_some(expansion))
    }

    /// What a text brings along: the runtime, and what the text that describes a module says
    /// of it.
    fn added(&self, object: &Object<'_>, printed: &Printed) -> Result<Cow<'static, str>, Refusal> {
        match self.options.target {
            Target::Process => Ok(PROCESS_RUNTIME.into()),
            // A text for a hypervisor becomes an object.
            Target::Hypervisor => Ok("".into()),
            Target::Linux => {
                let mut added = String::new();
                if let Some(stop) = text::module_stop(object)? {
                    added += &stop;
                    added += &mark::text(self.options);
                }
                // Without code nothing calls it. modpost's `.mod.c` is such a source: kbuild
                // runs no objtool on it, so its copy would have no unwind tables.
                if printed.stats.instructions != 0 {
                    let shown = text::module_returns(object);
                    let returns = match (shown, self.returns) {
                        (Returns::Plain, Some(compiled)) => compiled,
                        (shown, _) => shown,
                    };
                    added += &text::module_runtime(self.options.made_for(), returns);
                }
                Ok(added.into())
            }
        }
    }
}

/// Shows that an assembler takes the rewritten text of a program: what depends on the length
/// of code, as `.if . - f > 8`, may not be assembled any more.
///
/// # Errors
/// It does not.
pub fn assembles(name: &str, printed: &Printed) -> Result<(), Failure> {
    assembler::assemble(&rewritten(name), &printed.text).map(drop)
}

/// Proves that rewritten text for `linux`, assembled, is confined.
///
/// # Errors
/// It is not, or cannot be assembled.
pub fn verify(name: &str, printed: &Printed, options: Options) -> Result<(), Failure> {
    if !printed.unresolved.is_empty() {
        return Err(Failure::Refused {
            file: name.to_owned(),
            refusals: printed.unresolved.clone(),
        });
    }
    let mut text = Cow::Borrowed(&*printed.text);
    if printed.stats.instructions == 0 {
        // It is a part of a module that has the runtime from other objects.
        let runtime = text::module_runtime(options.made_for(), Returns::Plain);
        text.to_mut().extend_from_slice(runtime.as_bytes());
    }
    let bytes = assembler::assemble(name, &text)?;
    let object = elf_loader::read(&bytes).map_err(|e| Failure::unreadable(name, &e))?;
    let contract = Contract::of(Target::Linux)
        .with(options.scheme)
        .confining(options.accesses);
    let proof = svm_verify::verify(&object, contract);
    proof.map(drop).map_err(|violations| {
        match object::unproved(name, contract, violations) {
            // Their places are not those of the original.
            Failure::Refused { refusals, .. } => Failure::Refused {
                file: rewritten(name),
                refusals,
            },
            other => other,
        }
    })
}

/// What messages call the rewritten text.
fn rewritten(name: &str) -> String {
    format!("{name}, rewritten")
}
