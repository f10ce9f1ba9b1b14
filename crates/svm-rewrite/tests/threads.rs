//! The functions of one object by several threads: the result, and what is said of an object
//! that is refused, are the same for any number of them.

use std::fmt::Write;
use std::num::NonZero;
use std::path::Path;

use elf_loader::Object;
use svm_rewrite::{Options, Scheme, Target, rewrite};

/// More than there are processors, and more than there are shares of some objects.
const THREADS: [usize; 4] = [2, 3, 7, 64];

/// All that a rewriting gives, as bytes and text.
fn made(object: &Object<'_>, options: Options, threads: usize) -> (Vec<u8>, String) {
    let options = Options {
        threads: NonZero::new(threads).expect("one at least"),
        report: true,
        ..options
    };
    match rewrite(object, options) {
        Ok(made) => {
            let bytes = elf_loader::write(&made.object).expect("a writable object");
            (bytes, format!("{:?} {:?}", made.stats, made.sites))
        }
        Err(refusals) => (Vec::new(), format!("{refusals:?}")),
    }
}

fn is_the_same(object: &Object<'_>, options: Options) {
    let alone = made(object, options, 1);
    for threads in THREADS {
        let with = made(object, options, threads);
        assert!(with == alone, "{options:?} with {threads} threads");
    }
}

#[test]
fn a_stock_module_becomes_the_same() {
    let stock = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/stock/modules/kernel");
    let path = stock.join("drivers/net/ethernet/intel/e1000/e1000.ko");
    let bytes = std::fs::read(&path);
    let bytes = bytes.unwrap_or_else(|e| panic!("{}: {e}; run make stock", path.display()));
    let object = elf_loader::read(&bytes).expect("a module");
    for scheme in Scheme::ALL {
        is_the_same(&object, Options::new(scheme));
    }
    is_the_same(&object, Options::of(Target::Linux, Scheme::Stlb));
}

/// Functions enough for several shares, each with an instruction that is refused.
#[test]
fn refusals_are_the_same_and_in_the_same_order() {
    let mut text = String::from("\t.text\n");
    for n in 0..600 {
        let fill = "\tmov (%rdi),%rax\n".repeat(1 + n % 23);
        write!(text, "\t.type f{n},@function\nf{n}:\n{fill}\thlt\n\tret\n").expect("text");
        writeln!(text, "\t.size f{n},.-f{n}").expect("text");
    }
    let bytes = filetests::assemble(&text, &[]);
    let object = elf_loader::read(&bytes).expect("an object");
    let refusals = rewrite(&object, Options::new(Scheme::Stlb)).expect_err("it has hlt");
    assert_eq!(refusals.len(), 600);
    is_the_same(&object, Options::new(Scheme::Stlb));
}
