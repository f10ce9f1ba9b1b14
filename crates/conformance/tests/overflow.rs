//! A plain C overflow of a stack buffer, `tests/fixtures/overflow/receive.c`: natively the
//! packet chooses where the driver returns to, a function or the middle of a `movabs`.
//! Rewritten with a table, the driver is aborted and the report names the function; with a
//! window, the packet does not reach the return address.

use std::path::Path;
use std::process::Command;

use conformance::forms::overflow::{Driver, Ended, Received, receive_natively};
use elf_loader::Object;
use process_lab::program::Variant;

/// The fixture, as the kernel compiles its modules.
fn compiled() -> Vec<u8> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/overflow/receive.c");
    // Tests run at the same time.
    let folder = tempfile::tempdir().expect("a folder");
    let object = folder.path().join("receive.o");
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

/// What hides in the constant of `key`: `mov %eax,0x20000000; ret`.
const GADGET: [u8; 8] = [0x89, 0x04, 0x25, 0, 0, 0, 0x20, 0xc3];

/// Where the gadget is in `key`.
fn gadget_in_key(original: &Object<'_>) -> u64 {
    let text = original.section_named(".text").expect("code");
    let code = &original.sections[text.0 as usize].data;
    let mut places = code.windows(GADGET.len());
    let place = places
        .position(|bytes| bytes == GADGET)
        .expect("the constant") as u64;
    let key = original.symbols.iter().find(|symbol| symbol.name == "key");
    place - key.expect("the function").value
}

/// A packet that leads to an address when `parse` returns.
fn leading_to(address: u64) -> Vec<u8> {
    packet(32, OVER, address)
}

/// The two defects, in the original: the packet leads to a function that is never called, and
/// into the middle of an instruction.
#[test]
fn natively_the_packet_chooses_what_runs() {
    let bytes = compiled();
    let original = elf_loader::read(&bytes).expect("an object");
    let received = |function, packet: &dyn Fn(u64) -> Vec<u8>| {
        receive_natively(&original, function, packet).expect("a run")
    };
    assert!(!received("secret", &|_| packet(20, 0, 0)).marked);
    let secret = received("secret", &leading_to);
    assert!(secret.marked, "{secret:?}");
    let gadget = gadget_in_key(&original);
    let hidden = received("key", &|key| leading_to(key + gadget));
    assert!(hidden.marked, "{hidden:?}");
}

#[test]
fn an_overflow_ends_in_a_report_that_names_the_function() {
    let bytes = compiled();
    let original = elf_loader::read(&bytes).expect("an object");
    let good = packet(20, 0, 0);
    let natively = receive_natively(&original, "secret", |_| good.clone()).expect("a run");

    for variant in Variant::PLAIN {
        let name = variant.name();
        let rewritten = process_lab::program::rewrite(&original, variant).expect("verified");
        let bare = without_comparisons(&rewritten);
        let driver = Driver::new(&original, rewritten, variant).expect("linked");
        assert_eq!(driver.receive(&good).expect("a run"), natively, "{name}");
        for address in chosen_by_packets(&driver) {
            let got = driver.receive(&leading_to(address)).expect("a run");
            let expected = Ended::Overwritten {
                by: address,
                function: "parse".to_owned(),
            };
            assert_eq!(got.ended, expected, "{name}");
            assert!(!got.marked, "{name}: {got:?}");
        }

        // Without the comparisons the same packets succeed, and the verifier notices that
        // they are missing.
        let violations = svm_verify::verify(&bare, variant.contract())
            .expect_err("refused")
            .list;
        let code = svm_verify::ViolationCode::ReturnWord;
        assert!(violations.iter().any(|v| v.code == code), "{violations:?}");
        let driver = Driver::new(&original, bare, variant).expect("linked");
        for address in [secret(&driver), gadget(&driver)] {
            let got = driver.receive(&leading_to(address)).expect("a run");
            assert!(got.marked, "{name}: {got:?}");
        }
    }
}

/// With a window the return address is where no overflow reaches: whatever follows the
/// packet's first 32 bytes, the function returns the same to the same place.
#[test]
fn with_a_window_an_overflow_does_not_reach_the_return_address() {
    let windows = Variant::executable().into_iter();
    for variant in windows.filter(|v| v.scheme.window_size().is_some()) {
        returns_to_where_it_was_called_from(variant);
    }
}

fn returns_to_where_it_was_called_from(variant: Variant) {
    let bytes = compiled();
    let original = elf_loader::read(&bytes).expect("an object");
    let rewritten = process_lab::program::rewrite(&original, variant).expect("verified");
    let driver = Driver::new(&original, rewritten, variant).expect("linked");
    let result = |packet: &[u8]| match driver.receive(packet).expect("a run") {
        Received {
            ended: Ended::Returned(registers, _),
            marked: false,
        } => registers,
        other => panic!("{other:?}"),
    };
    let expected = result(&packet(32, 0, 0));
    assert_ne!(expected, result(&packet(20, 0, 0)));
    for address in chosen_by_packets(&driver) {
        assert_eq!(result(&leading_to(address)), expected, "{address:#x}");
    }
}

/// Where packets lead to: a function of the driver's own instance, the middle of its second
/// instruction, the instructions that hide in a constant, a function of dom0's instance, the
/// runtime.
fn chosen_by_packets(driver: &Driver<'_>) -> [u64; 5] {
    let secret = secret(driver);
    let dom0 = 0xffff_ffff_c000_1000;
    [secret, secret + 3, gadget(driver), dom0, runtime_address()]
}

fn secret(driver: &Driver<'_>) -> u64 {
    driver.address("secret").expect("a function")
}

fn gadget(driver: &Driver<'_>) -> u64 {
    driver.address_of_bytes(&GADGET).expect("the constant")
}

/// Some function of the hypervisor.
fn runtime_address() -> u64 {
    process_lab::runtime::entry_text().start
}
