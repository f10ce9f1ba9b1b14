//! How fast objects are verified: `cargo run --release -p svm-verify --example
//! speed -- FILE.o...` prints instructions and seconds of the best of five runs.

use std::time::Instant;

use svm_verify::{Contract, Target};

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).expect("the file");
        let object = elf_loader::read(&bytes).expect("a relocatable object");
        let mut best = f64::INFINITY;
        let mut result = None;
        for _ in 0..5 {
            let start = Instant::now();
            result = Some(svm_verify::verify(
                &object,
                Contract::of(Target::Hypervisor),
            ));
            best = best.min(start.elapsed().as_secs_f64());
        }
        match result {
            Some(Ok(proof)) => {
                let rate = proof.instructions as f64 / best / 1e6;
                println!(
                    "{path}: {} instructions, {best:.4} s, {rate:.1} M/s",
                    proof.instructions
                );
                println!("{proof:?}");
            }
            Some(Err(violations)) => {
                println!("{path}: {} violations\n{violations}", violations.total)
            }
            None => {}
        }
    }
}
