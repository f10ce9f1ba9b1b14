//! One small `.s` for each addressing mode and site class: what is emitted for it, under
//! all schemes, and that the verifier accepts it. Below `refused`, the refusals. Below `any`,
//! what is emitted in the scheme `window` for processors without BMI2; that is verified for
//! the other fixtures, too. Below `strict`, what is emitted with comparisons of pointers.

use filetests::{Fixture, Section};
use svm_rewrite::{Options, Processor, Refusal, Rewritten, Scheme, listing, rewrite};
use svm_verify::Contract;

fn main() {
    let emitted = Fixture::tests("", emitted);
    let for_any = Fixture::tests("any", |fixture| vec![for_any(fixture)]);
    let strict = Fixture::tests("strict", |fixture| {
        WINDOWS.map(|s| strict(fixture, s)).into()
    });
    let refused = Fixture::tests("refused", refused);
    let verified = Fixture::of("").into_iter();
    let verified = verified.map(|f| f.property("for any processor", is_for_any));
    let strictly = Fixture::of("").into_iter();
    let strictly = strictly.map(|f| f.property("strictly", is_strict));
    filetests::run(
        emitted
            .chain(for_any)
            .chain(strict)
            .chain(refused)
            .chain(verified)
            .chain(strictly)
            .collect(),
    );
}

/// The schemes that can be strict.
const WINDOWS: [Scheme; 2] = [Scheme::Window32, Scheme::Window];

fn try_rewrite(fixture: &Fixture, options: Options) -> Result<Rewritten, Vec<Refusal>> {
    let bytes = fixture.assemble();
    let object = elf_loader::read(&bytes).expect("the assembler makes readable objects");
    let options = Options {
        report: true,
        ..options
    };
    rewrite(&object, options)
}

/// What is emitted, or why nothing is.
fn under(fixture: &Fixture, options: Options) -> Section {
    let (scheme, name) = (options.scheme, options.scheme.as_str());
    let rewritten = match try_rewrite(fixture, options) {
        Ok(rewritten) => rewritten,
        // A window has two stacks, and does not serve some uses of the only one.
        Err(refusals) if !Scheme::TABLES.contains(&scheme) => {
            return Section::of_lines(name, &refusals);
        }
        Err(refusals) => panic!("it is refused: {}", refusals[0]),
    };
    let bytes = elf_loader::write(&rewritten.object).expect("a writable object");
    let object = elf_loader::read(&bytes).expect("a readable object");
    let contract = Contract::of(svm_verify::Target::Hypervisor).with(scheme);
    let proof = svm_verify::verify(&object, contract)
        .unwrap_or_else(|violations| panic!("scheme {name}: {violations:#?}"));
    assert_eq!(proof.processor, options.processor);
    Section::new(name, listing::all(&object))
}

fn emitted(fixture: &Fixture) -> Vec<Section> {
    let under = |scheme| under(fixture, Options::new(scheme));
    Scheme::ALL.into_iter().map(under).collect()
}

/// In the scheme `window`, for processors without BMI2.
fn for_any(fixture: &Fixture) -> Section {
    let options = Options {
        processor: Processor::Any,
        ..Options::new(Scheme::Window)
    };
    under(fixture, options)
}

/// It is accepted (which [`under`] asks) by a verifier that refuses `pext` there, and where
/// the same for BMI2 is; other schemes have no use for BMI2.
fn is_for_any(fixture: &Fixture) {
    for_any(fixture);
    let of = |scheme, processor| {
        let options = Options {
            processor,
            ..Options::new(scheme)
        };
        try_rewrite(fixture, options).map(|_| ())
    };
    let any = of(Scheme::Window, Processor::Any);
    assert_eq!(any.is_ok(), of(Scheme::Window, Processor::Bmi2).is_ok());
    let refusals = of(Scheme::Stlb, Processor::Bmi2).expect_err("it has no pext");
    assert!(refusals[0].to_string().contains("--processor any"));
}

fn strict(fixture: &Fixture, scheme: Scheme) -> Section {
    let options = Options {
        strict: true,
        ..Options::new(scheme)
    };
    under(fixture, options)
}

/// It is accepted, which [`under`] asks, where the same without comparisons is, for any
/// processor too; other schemes have no use for comparisons.
fn is_strict(fixture: &Fixture) {
    let try_strictly = |options, strict| {
        let options = Options { strict, ..options };
        try_rewrite(fixture, options).map(|_| ())
    };
    for scheme in WINDOWS {
        strict(fixture, scheme);
        let options = Options::new(scheme);
        let (with, without) = (try_strictly(options, true), try_strictly(options, false));
        assert_eq!(with.is_ok(), without.is_ok());
    }
    let any = Options {
        processor: Processor::Any,
        strict: true,
        ..Options::new(Scheme::Window)
    };
    under(fixture, any);
    let refusals = try_strictly(Options::new(Scheme::Stlb), true).expect_err("it has checks");
    assert!(refusals[0].to_string().contains("--scheme window"));
}

fn refused(fixture: &Fixture) -> Vec<Section> {
    let refusals = try_rewrite(fixture, Options::new(Scheme::Stlb)).err();
    vec![Section::of_lines("refused", &refusals.expect("a refusal"))]
}
