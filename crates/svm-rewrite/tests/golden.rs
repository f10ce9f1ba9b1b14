//! One small `.s` for each addressing mode and site class: what is emitted for it, under
//! all schemes, and that the verifier accepts it. Below `refused`, the refusals. Below `any`,
//! what is emitted in the scheme `window` for processors without BMI2; that is verified for
//! the other fixtures, too. Below `strict`, what is emitted with comparisons of pointers.

use filetests::{Fixture, Section};
use svm_rewrite::{Options, Processor, Refusal, Rewritten, Scheme, Target, listing, rewrite};
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
    let deep = filetests::test("frames are refused where they are too large", deep_frames);
    filetests::run(
        emitted
            .chain(for_any)
            .chain(strict)
            .chain(refused)
            .chain(verified)
            .chain(strictly)
            .chain([deep])
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

/// Under every scheme the result verifies, or the frame is refused: by as many bytes too many as
/// it must be smaller to be accepted.
fn deep_frames() {
    let strict = WINDOWS.map(|scheme| Options {
        strict: true,
        ..Options::new(scheme)
    });
    for options in Scheme::ALL.map(Options::new).into_iter().chain(strict) {
        for body in DEEP_FRAMES {
            is_exact(options, |words| framed(LARGEST - 8 * words, body));
        }
    }
    // A realigned frame stays one under one target, and is replaced under the other. Where it is
    // aligned at worst, `and` takes 24 bytes, beside the word above.
    for target in [Target::Hypervisor, Target::Linux] {
        let options = Options::of(target, Scheme::Stlb);
        is_exact(options, |words| framed(LARGEST - 8 * words, ALL_LIVE));
        is_exact(options, |words| {
            realigned(LARGEST - 32 - 8 * words, ALL_LIVE)
        });
    }
}

fn is_exact(options: Options, text: impl Fn(usize) -> String) {
    let too_many: Vec<usize> = (0..WORDS)
        .map(|words| too_many_bytes(&text(words), options))
        .collect();
    let expected = (0..WORDS).map(|words| too_many[0].saturating_sub(8 * words));
    let agrees = too_many.iter().copied().eq(expected);
    assert!(agrees, "{options:?}: {}{too_many:?}", text(0));
    assert!(too_many[0] < 8 * WORDS);
}

/// Bytes that a frame may have.
const LARGEST: usize = 3968;

/// More than any of [`DEEP_FRAMES`] pushes.
const WORDS: usize = 14;

/// What is done in a frame: nothing is pushed for it, or some words are.
const DEEP_FRAMES: [&str; 6] = [
    "call g\n",
    "rep movsb\n",
    ALL_LIVE,
    "pop 8(%rsi)\n push 8(%rdi)\n",
    "in $0x70,%al\n",
    "mov %rsp,(%rdi)\n",
];

/// A string where flags and all registers are live.
const ALL_LIVE: &str = "rep movsb\n adc %rax,%rcx\n add %rdx,%rbx\n add %r8,%rsi\n add %r9,%r10\n\
                        add %r11,%r12\n add %r13,%r14\n add %r15,%rdi\n";

/// A function with a frame of so many bytes.
fn framed(size: usize, body: &str) -> String {
    function(&format!(
        "lea -{size}(%rsp),%rsp\n{body}lea {size}(%rsp),%rsp\n"
    ))
}

fn realigned(size: usize, body: &str) -> String {
    function(&format!(
        "push %rbp\nmov %rsp,%rbp\nand $-32,%rsp\nlea -{size}(%rsp),%rsp\n{body}mov %rbp,%rsp\n\
         pop %rbp\n"
    ))
}

fn function(body: &str) -> String {
    format!(".globl f\n.type f,@function\nf: {body}ret\n.size f,.-f\n")
}

/// By how many bytes a frame is too large; 0 if the result verifies.
fn too_many_bytes(text: &str, options: Options) -> usize {
    let bytes = filetests::assemble(text, &[]);
    let object = elf_loader::read(&bytes).expect("the assembler makes readable objects");
    match rewrite(&object, options) {
        Ok(rewritten) => {
            let contract = Contract::of(options.target).with(options.scheme);
            svm_verify::verify(&rewritten.object, contract)
                .unwrap_or_else(|violations| panic!("{violations:#?}\n{text}"));
            0
        }
        Err(refusals) => {
            let reason = refusals[0].to_string();
            let (_, bytes) = reason.split_once("the frame has ").expect(&reason);
            let (bytes, _) = bytes.split_once(' ').expect(&reason);
            bytes.parse::<usize>().expect("a number") - LARGEST
        }
    }
}

fn refused(fixture: &Fixture) -> Vec<Section> {
    let refusals = try_rewrite(fixture, Options::new(Scheme::Stlb)).err();
    vec![Section::of_lines("refused", &refusals.expect("a refusal"))]
}
