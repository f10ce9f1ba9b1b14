//! The contract in which stores alone are confined: mutants of checked accesses, of which
//! one step of the check is dropped, and what is demanded of an object.
//! `tests/attacks/linux/stores.s` has the attack objects.

mod common;

use common::attack::checks;
use common::module::link;
use common::{ABI, LINUX, STLB, codes_for, note_of, verify};
use svm_verify::{Accesses, Contract, Scheme};
use twin_linux_runtime::Returns;

/// Accesses through `(%rax)` that only read.
const LOADS: [&str; 12] = [
    "mov (%rax), %rdx",
    "movzbl 8(%rax), %edx",
    "add (%rax), %rdx",
    "cmp %rdx, (%rax)",
    "testb $1, (%rax)",
    "bt $3, (%rax)",
    "vmovdqu (%rax), %ymm0",
    "vpaddd (%rax), %xmm0, %xmm1",
    "cmovne (%rax), %rdx",
    "imul $3, (%rax), %rdx",
    "push (%rax); pop %rdx",
    "movbe (%rax), %edx",
];

/// Accesses that write, or may.
const STORES: [&str; 16] = [
    "mov %rdx, (%rax)",
    "movb $1, 8(%rax)",
    "add %rdx, (%rax)",
    "lock decl (%rax)",
    "xchg %rdx, (%rax)",
    "lock cmpxchg %rdx, (%rax)",
    "xadd %rdx, (%rax)",
    "bts $3, (%rax)",
    "sete (%rax)",
    "push %rdx; pop (%rax)",
    "vmovdqu %ymm0, (%rax)",
    "vmovntdq %xmm0, (%rax)",
    "movnti %rdx, (%rax)",
    "pextrb $1, %xmm0, (%rax)",
    "vmovups %zmm0, (%rax)",
    "movbe %edx, (%rax)",
];

/// What reads where control goes to.
const DESTINATIONS: [&str; 2] = ["call *(%rax)", "jmp *8(%rax)"];

/// A module of a function with this body, whose note says that these accesses are
/// translated.
fn module(body: &str, accesses: Accesses) -> Vec<u8> {
    let body = checks(STLB, body.to_owned());
    let note = note_of([ABI, STLB, 64, 1], accesses as u32);
    let source = format!(
        "{note}.text\n.globl f\n.type f,@function\nf:\n{body}\nret\n.text\n.size f,.-f\n\
         .section .note.GNU-stack,\"\",@progbits\n"
    );
    link(
        &source,
        twin_linux_runtime::object(Scheme::Stlb, Returns::Thunk),
    )
}

fn accepted(body: &str, accesses: Accesses) -> bool {
    let contract = LINUX.confining(accesses);
    codes_for(contract, &module(body, accesses)).is_empty()
}

/// The access behind a check of `%rdi`, and the mutants: the access without the check, with
/// the address instead of the translation, and with the check's branch dropped.
fn mutants(access: &str) -> (String, [String; 3]) {
    let good = checks(STLB, format!("{{T:(%rdi)}}\n{access}"));
    let without = format!("mov %rdi, %rax\n{access}");
    let address = format!("{{T:(%rdi)}}\n{}", access.replace("(%rax)", "(%rdi)"));
    let unchecked = good.replace("ja .Lslow1", "");
    assert_ne!(unchecked, good);
    (good, [without, address, unchecked])
}

#[test]
fn a_check_dropped_is_refused_of_a_store_and_of_a_load_in_the_full_contract_alone() {
    for access in LOADS {
        let (good, bad) = mutants(access);
        assert!(
            Accesses::ALL.iter().all(|a| accepted(&good, *a)),
            "{access}"
        );
        for mutant in &bad {
            assert!(!accepted(mutant, Accesses::All), "{mutant}");
        }
        // The last one has half a check, which is no load of the driver's.
        assert!(accepted(&bad[0], Accesses::Stores), "{}", bad[0]);
        assert!(accepted(&bad[1], Accesses::Stores), "{}", bad[1]);
        assert!(!accepted(&bad[2], Accesses::Stores), "{}", bad[2]);
    }
    for access in STORES.iter().chain(&DESTINATIONS) {
        let (good, bad) = mutants(access);
        for accesses in Accesses::ALL {
            assert!(accepted(&good, accesses), "{access}");
            for mutant in &bad {
                assert!(!accepted(mutant, accesses), "{mutant}");
            }
        }
    }
}

#[test]
fn nobody_has_the_smaller_contract_who_did_not_ask_for_it() {
    let load = "mov (%rdi), %rax";
    let object = module(load, Accesses::Stores);
    assert_eq!(codes_for(LINUX, &object), ["object-contract"]);
    // The note lies: the code is judged by what is demanded.
    let lie = module(load, Accesses::All);
    assert_eq!(codes_for(LINUX, &lie), ["P1-untranslated"]);
    let demanded: Contract = LINUX.confining(Accesses::Stores);
    assert_eq!(codes_for(demanded, &lie), ["object-contract"]);
    let proof = verify(&object, demanded).expect("it keeps what it was made for");
    assert_eq!(proof.confined, Accesses::Stores);
    assert_eq!(
        (proof.accesses.unconfined, proof.accesses.translated),
        (1, 0)
    );
}
