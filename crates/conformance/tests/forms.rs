//! A sample of the exhaustive run, and the reviewed list of refused forms.
//!
//! `TWIN_BLESS=1` writes the list anew; read it before you keep it.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

use conformance::forms::campaign::{self, Extent};
use conformance::forms::report::FormsReport;
use conformance::forms::survey::{self, FormVerdict};
use conformance::forms::{self, Enumeration, known};
use iced_x86::Code;
use process_lab::program::Variant;

struct Surveyed {
    enumeration: Enumeration,
    verdicts: Vec<FormVerdict>,
}

static SURVEYED: LazyLock<Surveyed> = LazyLock::new(|| {
    let enumeration = forms::all();
    let verdicts = survey::survey(&enumeration.forms, Variant::PLAIN[0]);
    Surveyed {
        enumeration,
        verdicts,
    }
});

/// Every refusal by code and reason, and the forms that the verifier does not accept.
#[test]
fn refusals_are_the_reviewed_ones() {
    let surveyed = &*SURVEYED;
    let found = survey::describe(
        &surveyed.enumeration.forms,
        &surveyed.verdicts,
        &surveyed.enumeration.lost,
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/forms__refusals.txt");
    filetests::agree(&path, &found).unwrap_or_else(|different| panic!("{different}"));
}

/// The rewriter refuses by name each form that the verifier does not allow.
#[test]
fn nothing_that_is_rewritten_is_left_to_the_verifier_to_refuse() {
    let surveyed = &*SURVEYED;
    let forms = forms::without_memory();
    let plain = survey::survey(&forms, Variant::PLAIN[0]);
    assert!(forms.len() > 2000, "{}", forms.len());
    let pairs = surveyed.enumeration.forms.iter().zip(&surveyed.verdicts);
    let left: Vec<String> = pairs
        .chain(forms.iter().zip(&plain))
        .filter(|(_, verdict)| matches!(verdict, FormVerdict::VerifierRefused(_)))
        // A function that returns so breaks the rule itself.
        .filter(|(form, _)| form.code != Code::Std)
        .map(|(form, verdict)| format!("{:?} at {:?}: {verdict:?}", form.code, form.mode))
        .collect();
    assert!(
        left.is_empty(),
        "{} forms:\n{}",
        left.len(),
        left.join("\n")
    );
}

/// A refusal does not depend on the scheme.
#[test]
fn both_schemes_refuse_the_same() {
    let surveyed = &*SURVEYED;
    let paper = survey::survey(&surveyed.enumeration.forms, Variant::PLAIN[1]);
    let pairs = surveyed.verdicts.iter().zip(&paper);
    for (form, (stlb, paper)) in surveyed.enumeration.forms.iter().zip(pairs) {
        assert_eq!(stlb, paper, "{:?} at {:?}", form.code, form.mode);
    }
}

/// The tables are enumerated: a library that forgot most of them would show.
#[test]
fn forms_are_many() {
    let surveyed = &*SURVEYED;
    let counts = survey::counts(&surveyed.enumeration.forms, &surveyed.verdicts);
    assert!(counts.forms > 60_000 && counts.codes > 3_500, "{counts:?}");
    assert!(counts.accepted > 25_000, "{counts:?}");
}

/// Executes one of so many forms, or those that are named, and prints the report. No state
/// may differ.
fn same(
    (states, string_states): (u64, u64),
    seed: u64,
    one_in: u64,
    only: Vec<usize>,
) -> FormsReport {
    let surveyed = &*SURVEYED;
    let extent = Extent {
        states,
        string_states,
        seeds: (seed, 1),
        one_in,
        only,
        jobs: 2,
        known: false,
    };
    let forms = &surveyed.enumeration.forms;
    let report = campaign::run(forms, &surveyed.verdicts, &extent, &|_, _| {});
    let report = report.expect("the campaign runs");
    println!("{report}");
    let described: Vec<String> = report.described.iter().map(ToString::to_string).collect();
    assert!(report.differences == 0, "{}", described.join("\n"));
    report
}

/// One form in many, each way: registers, flags, memory and faults agree.
#[test]
fn a_sample_of_forms_computes_the_same() {
    let report = same((16, 60), 0x7e57, 60, Vec::new());
    assert!(
        report.states > 100_000 && report.string_states > 30_000,
        "{report}"
    );
    assert!(report.faults > 1000, "faults are compared, too: {report}");
}

/// Forms that only a window refuses do not move the others: what runs rewritten is at the
/// places that the original has.
#[test]
fn forms_that_a_window_refuses_leave_others_where_they_are() {
    let surveyed = &*SURVEYED;
    let window = survey::survey(&surveyed.enumeration.forms, Variant::ALL[3]);
    let pairs = surveyed.verdicts.iter().zip(&window).enumerate();
    let with_table: Vec<_> = pairs
        .filter(|(_, (table, _))| table.is_rewritten())
        .collect();
    let refused = with_table.iter().filter(|(_, (_, w))| !w.is_rewritten());
    let last = with_table
        .iter()
        .rev()
        .filter(|(_, (_, w))| w.is_rewritten());
    let only = refused
        .take(4)
        .chain(last.step_by(400).take(60))
        .map(|(n, _)| *n);
    let report = same((64, 16), 0x3172, 1, only.collect());
    assert!(report.not_in_window > 0 && report.faults > 20, "{report}");
}

/// Every bit string with an offset in a register: the word that it is in, the bit and the flags
/// are the original's under every scheme.
#[test]
fn bit_strings_compute_the_same() {
    use iced_x86::Mnemonic::{Bt, Btc, Btr, Bts};
    use iced_x86::OpCodeOperandKind::{r16_reg, r32_reg, r64_reg};
    let forms = SURVEYED.enumeration.forms.iter().enumerate();
    let bits = forms.filter(|(_, form)| {
        let op_code = form.code.op_code();
        let by_register = matches!(op_code.op1_kind(), r16_reg | r32_reg | r64_reg);
        matches!(op_code.mnemonic(), Bt | Bts | Btr | Btc) && by_register
    });
    let report = same((16, 0), 0xb175, 1, bits.map(|(n, _)| n).collect());
    assert!(report.states > 10_000 && report.faults > 100, "{report}");
}

/// Strings to and from ports, every form: what the gate is asked for is what the manual
/// says, and memory, registers and faults agree.
#[test]
fn port_strings_compute_the_same() {
    use iced_x86::Mnemonic::{Insb, Insd, Insw, Outsb, Outsd, Outsw};
    let forms = SURVEYED.enumeration.forms.iter().enumerate();
    let ports = forms.filter(|(_, form)| {
        let mnemonic = form.code.mnemonic();
        matches!(mnemonic, Insb | Insw | Insd | Outsb | Outsw | Outsd)
    });
    let report = same((8, 16), 0x9047, 1, ports.map(|(n, _)| n).collect());
    assert!(
        report.string_states > 3_000 && report.faults > 20,
        "{report}"
    );
}

/// A known defect in code that the verifier refuses anyway is harmless. Those in code
/// that it accepts are named here: there is none.
#[test]
fn known_defects_that_are_verified_are_named() {
    let surveyed = &*SURVEYED;
    let mut names = BTreeSet::new();
    for (form, verdict) in surveyed.enumeration.forms.iter().zip(&surveyed.verdicts) {
        let case = forms::cases::of_form(0, form, 8)[0];
        if let (Some(n), FormVerdict::Accepted) = (known::of(&case), verdict) {
            names.insert(known::KNOWN[n].name);
        }
    }
    assert_eq!(names, BTreeSet::new());
}

/// AVX-512 is executed wherever the processor has it with masks of 64 bits; elsewhere the
/// report gives the number of forms that were not executed.
#[test]
fn wide_moves_are_executed_or_said_to_be_skipped() {
    use iced_x86::EncodingKind;
    let surveyed = &*SURVEYED;
    let pairs = surveyed.enumeration.forms.iter().zip(&surveyed.verdicts);
    let rewritten = |form: &forms::Form, verdict: &FormVerdict| {
        form.code.op_code().encoding() == EncodingKind::EVEX && verdict.is_rewritten()
    };
    let numbered = pairs.enumerate().filter(|(_, (f, v))| rewritten(f, v));
    let wide: Vec<usize> = numbered.map(|(n, _)| n).collect();
    assert!(wide.len() > 200, "{}", wide.len());
    let report = same((32, 1), 0x512, 1, wide.clone());
    let skipped = report.skipped.values().flatten();
    let skipped = skipped.filter(|n| wide.contains(n)).count();
    assert_eq!(report.forms.len() + skipped, wide.len(), "{report}");
    let has = std::arch::is_x86_feature_detected!("avx512bw");
    assert_eq!(skipped == 0, has, "{report}");
}

/// As a module for a stock kernel, what is verified with all accesses translated is verified
/// with stores alone translated: rewriter and verifier tell loads from stores alike.
#[test]
fn what_is_verified_as_a_module_is_verified_where_stores_alone_are_translated() {
    use forms::cases::{Case, Direction, Live};
    use svm_rewrite::{Accesses, Options, Scheme, Target};
    use svm_verify::Contract;
    const ONE_IN: usize = 5;
    let (mut verified, mut wrong) = (0, Vec::new());
    let all = SURVEYED.enumeration.forms.iter().enumerate();
    for (n, form) in all.step_by(ONE_IN) {
        let case = Case::new(n, form, Live::Few, Direction::Up, 8);
        let original = forms::object::object([(n, &case)]);
        let [full, stores] = Accesses::ALL.map(|accesses| {
            let options = Options {
                accesses,
                ..Options::of(Target::Linux, Scheme::Stlb)
            };
            let rewritten = svm_rewrite::rewrite(&original, options).ok()?;
            let contract = Contract::of(Target::Linux).confining(accesses);
            Some(svm_verify::verify(&rewritten.object, contract).map_err(|v| v.list[0].to_string()))
        });
        match (full, stores) {
            (_, Some(Ok(_))) => verified += 1,
            (Some(Err(_)) | None, Some(Err(_)) | None) => {}
            (Some(Ok(_)), Some(Err(violation))) => wrong.push(violation),
            (Some(Ok(_)), None) => wrong.push(format!("{:?} is refused", form.code)),
        }
    }
    println!("{verified} modules");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(verified > 5_000, "{verified}");
}
