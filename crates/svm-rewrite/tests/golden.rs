//! One small `.s` for each addressing mode and site class: what is emitted for it, under
//! all schemes, and that the verifier accepts it. Below `refused`, the refusals.

use filetests::{Fixture, Section};
use svm_rewrite::{Options, Refusal, Rewritten, Scheme, listing, rewrite};
use svm_verify::Contract;

fn main() {
    let emitted = Fixture::tests("", emitted);
    let refused = Fixture::tests("refused", refused);
    filetests::run(emitted.chain(refused).collect());
}

fn try_rewrite(fixture: &Fixture, scheme: Scheme) -> Result<Rewritten, Vec<Refusal>> {
    let bytes = fixture.assemble();
    let object = elf_loader::read(&bytes).expect("the assembler makes readable objects");
    let options = Options {
        report: true,
        ..Options::new(scheme)
    };
    rewrite(&object, options)
}

fn emitted(fixture: &Fixture) -> Vec<Section> {
    let under = |scheme: Scheme| {
        let name = scheme.as_str();
        let rewritten = match try_rewrite(fixture, scheme) {
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
        svm_verify::verify(&object, contract)
            .unwrap_or_else(|violations| panic!("scheme {name}: {violations:#?}"));
        Section::new(name, listing::all(&object))
    };
    Scheme::ALL.into_iter().map(under).collect()
}

fn refused(fixture: &Fixture) -> Vec<Section> {
    let refusals = try_rewrite(fixture, Scheme::Stlb).err();
    vec![Section::of_lines("refused", &refusals.expect("a refusal"))]
}
