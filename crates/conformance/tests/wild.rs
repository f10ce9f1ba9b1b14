//! A pointer that a packet chose, which is dom0's but for its upper half. With a window it leads
//! to dom0's memory, unnoticed; strict code ends the invocation there.

use conformance::forms::overflow::{Driver, Ended, receive_natively};
use elf_loader::Object;
use process_lab::program::{Bounds, Variant, rewrite};

/// `f0(const void *packet)`: the third instruction follows what the packet holds.
const SOURCE: &str = "
        .globl f0
        .type f0, @function
f0:     mov 8(%rdi), %rcx
        mov (%rdi), %rdx
        mov 16(%rdx), %rax
        ret
        .size f0, . - f0";

/// Where the pointer is followed, in the original.
const PLACE: u64 = 7;

/// The same, through a sum.
const SUM: &str = "
        .globl f0
        .type f0, @function
f0:     mov 8(%rdi), %rcx
        mov (%rdi), %rdx
        mov 16(%rcx,%rdx), %rax
        ret
        .size f0, . - f0";

/// The same, where a flag is live.
const FLAGS: &str = "
        .globl f0
        .type f0, @function
f0:     mov 8(%rdi), %rcx
        mov (%rdi), %rax
        cmp %rcx, %rdi
        mov 16(%rax), %rax
        adc %rcx, %rax
        ret
        .size f0, . - f0";

/// The same by a string instruction, and with nothing to read.
const STRING: &str = "
        .globl f0
        .type f0, @function
f0:     mov 8(%rdi), %rcx
        mov (%rdi), %rsi
        cld
        rep lodsq
        mov %rcx, %rax
        ret
        .size f0, . - f0";

/// What dom0's memory spans in the harness.
const DOM0: Bounds = Bounds {
    lowest: 0x1000_0000,
    highest: 0x3fff_ffff,
};

/// A pointer into dom0's memory.
const GOOD: u64 = 0x2000_2000;

fn assembled(source: &str) -> Vec<u8> {
    filetests::assemble(source, &[])
}

fn packet(pointer: u64, second: u64) -> Vec<u8> {
    [pointer, second].map(u64::to_le_bytes).concat()
}

/// The addresses that have the same place as [`GOOD`] in a window.
fn wild(variant: Variant) -> [u64; 3] {
    let size = variant.scheme.window_size().expect("a window");
    [GOOD + size, GOOD + 5 * size, GOOD.wrapping_sub(size)]
}

fn driver<'o>(original: &'o Object<'o>, variant: Variant) -> Driver<'o> {
    let rewritten = rewrite(original, variant).expect("rewritten");
    Driver::new(original, rewritten, variant).expect("linked")
}

fn executable(variants: &[Variant]) -> impl Iterator<Item = Variant> {
    variants.iter().copied().filter(|v| v.is_executable())
}

#[test]
fn a_window_alone_does_not_notice_it() {
    let bytes = assembled(SOURCE);
    let original = elf_loader::read(&bytes).expect("an object");
    let natively = receive_natively(&original, "f0", |_| packet(GOOD, 0)).expect("a run");
    assert!(
        matches!(natively.ended, Ended::Returned(..)),
        "{natively:?}"
    );
    for variant in executable(&Variant::WINDOWS) {
        let driver = driver(&original, variant);
        for wild in wild(variant) {
            let got = driver
                .receive_within(&packet(wild, 0), DOM0)
                .expect("a run");
            assert!(
                matches!(got.ended, Ended::Returned(..)),
                "{}: {wild:#x}: {got:?}",
                variant.name()
            );
        }
    }
}

/// Good pointers go on as they do natively; wild ones end in a report with the pointer and, of
/// the original, the place.
fn strictly(source: &str, second: u64, place: u64) {
    let bytes = assembled(source);
    let original = elf_loader::read(&bytes).expect("an object");
    let natively = receive_natively(&original, "f0", |_| packet(GOOD, second)).expect("a run");
    assert!(
        matches!(natively.ended, Ended::Returned(..)),
        "{natively:?}"
    );
    for variant in executable(&Variant::STRICT) {
        let name = variant.name();
        let driver = driver(&original, variant);
        let good = driver.receive_within(&packet(GOOD, second), DOM0);
        assert_eq!(good.expect("a run"), natively, "{name}");
        for wild in wild(variant) {
            let got = driver
                .receive_within(&packet(wild, second), DOM0)
                .expect("a run");
            let Ended::Otherwise(what) = got.ended else {
                panic!("{name}: {wild:#x}: {got:?}");
            };
            assert!(
                what.contains(&format!("faulted at +{place:#x} ")),
                "{name}: {what}"
            );
        }
    }
}

#[test]
fn strict_code_notices_it() {
    strictly(SOURCE, 0, PLACE);
}

#[test]
fn strict_code_notices_it_in_a_sum() {
    strictly(SUM, 8, PLACE);
    strictly(SUM, 0u64.wrapping_sub(8), PLACE);
}

#[test]
fn strict_code_notices_it_where_flags_are_live() {
    strictly(FLAGS, 0, 10);
}

#[test]
fn strict_code_notices_it_in_a_string_that_is_not_empty() {
    strictly(STRING, 2, 8);
    let bytes = assembled(STRING);
    let original = elf_loader::read(&bytes).expect("an object");
    for variant in executable(&Variant::STRICT) {
        let driver = driver(&original, variant);
        for wild in wild(variant) {
            let got = driver
                .receive_within(&packet(wild, 0), DOM0)
                .expect("a run");
            assert!(matches!(got.ended, Ended::Returned(..)), "{got:?}");
        }
    }
}
