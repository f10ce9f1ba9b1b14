//! A plain C overflow of a stack buffer, `tests/fixtures/overflow/receive.c`: natively
//! the packet chooses where the driver returns to; rewritten and verified, the driver is
//! aborted and the report names the function.

use std::path::Path;
use std::process::Command;

use conformance::forms::overflow::{Driver, Ended, receive_natively};
use elf_loader::Object;
use process_lab::program::Variant;

/// The fixture, as the kernel compiles its modules.
fn compiled() -> Vec<u8> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/overflow/receive.c");
    let object = Path::new(env!("CARGO_TARGET_TMPDIR")).join("receive.o");
    let flags = "-O2 -ffreestanding -fno-builtin -fno-stack-protector -fno-pic -mcmodel=kernel \
                 -mno-red-zone -mgeneral-regs-only -fcf-protection=none \
                 -fno-asynchronous-unwind-tables -fno-tree-loop-distribute-patterns -c -o";
    let mut compiler = Command::new("gcc");
    let compiler = compiler.args(flags.split_whitespace()).arg(&object);
    let status = compiler.arg(&source).status().expect("gcc runs");
    assert!(status.success(), "{} does not compile", source.display());
    std::fs::read(object).expect("the object")
}

/// A packet of that many bytes, then words that all hold an address.
fn packet(bytes: u32, words: u32, address: u64) -> Vec<u8> {
    let mut packet = (bytes + 8 * words).to_le_bytes().to_vec();
    packet.extend((0..bytes).map(|n| (7 * n) as u8));
    packet.extend((0..words).flat_map(|_| address.to_le_bytes()));
    packet
}

/// What reaches from the buffer over the return address.
const OVER: u32 = 6;

/// The rewritten object without the comparisons' branches.
fn without_comparisons(rewritten: &Object<'static>) -> Object<'static> {
    const COMPARE: [u8; 4] = [0x4c, 0x39, 0x1c, 0x24]; // cmp %r11,(%rsp)
    const SHORT: u8 = 0x75; // jne rel8
    let mut object = rewritten.clone();
    let text = object.section_named(".text").expect("code");
    let code = object.sections[text.0 as usize].data.to_mut();
    let mut found = 0;
    for at in 0..code.len() - 6 {
        if code[at..at + 4] == COMPARE {
            assert_eq!(code[at + 4], SHORT, "a short branch");
            code[at + 4..at + 6].fill(0x90);
            found += 1;
        }
    }
    assert!(found >= 2, "{found} comparisons");
    object
}

#[test]
fn an_overflow_ends_in_a_report_that_names_the_function() {
    let bytes = compiled();
    let original = elf_loader::read(&bytes).expect("an object");
    let good = packet(20, 0, 0);

    let natively = receive_natively(&original, "secret", |_| good.clone()).expect("a run");
    assert!(!natively.marked);
    // The defect, in the original: the packet leads to a function that is never called.
    let led = |address| packet(32, OVER, address);
    let attacked = receive_natively(&original, "secret", led).expect("a run");
    assert!(attacked.marked, "{attacked:?}");

    for variant in Variant::PLAIN {
        let name = variant.name();
        let rewritten = process_lab::program::rewrite(&original, variant).expect("verified");
        let bare = without_comparisons(&rewritten);
        let driver = Driver::new(&original, rewritten, variant).expect("linked");
        assert_eq!(driver.receive(&good).expect("a run"), natively, "{name}");

        // Wherever the packet points: to a function of the driver's own instance, to
        // dom0's, to a place in the runtime.
        let own = driver.address("secret").expect("a function");
        let places = [own, own + 3, 0xffff_ffff_c000_1000, runtime_address()];
        for address in places {
            let got = driver.receive(&led(address)).expect("a run");
            let expected = Ended::Overwritten {
                by: address,
                function: "parse".to_owned(),
            };
            assert_eq!(got.ended, expected, "{name}");
            assert!(!got.marked, "{name}: {got:?}");
        }

        // Without the comparisons the same packet succeeds, and the verifier notices that
        // they are missing.
        let violations = svm_verify::verify(&bare, variant.contract())
            .expect_err("refused")
            .list;
        let code = svm_verify::ViolationCode::ReturnWord;
        assert!(violations.iter().any(|v| v.code == code), "{violations:?}");
        let driver = Driver::new(&original, bare, variant).expect("linked");
        let got = driver.receive(&led(own)).expect("a run");
        assert!(got.marked, "{name}: {got:?}");
    }
}

/// Some function of the hypervisor.
fn runtime_address() -> u64 {
    process_lab::runtime::entry_text().start
}
