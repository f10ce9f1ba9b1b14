//! A sample of the differential run, the features that it has to reach, the report of a
//! wild pointer, and that the comparison notices planted errors.

use conformance::differential::campaign::{self, Extent};
use conformance::differential::features::Instructions;
use conformance::differential::functions::{SUBJECTS, subject};
use conformance::differential::native;
use conformance::differential::session::Session;
use conformance::differential::trace::Ending;
use elf_loader::consts::SHF_EXECINSTR;
use process_lab::program::{self, LinkedCode, Scheme, Variant};
use process_lab::stock::{self, Stock};

fn with_stock(test: impl FnOnce(&Stock<'_>)) {
    let file = stock::find().unwrap_or_else(|error| panic!("{error}"));
    let stock = Stock::new(&file, native::import_entry()).expect("the stock module links");
    test(&stock);
}

fn programs(stock: &Stock<'_>) -> Vec<LinkedCode> {
    Variant::executable()
        .into_iter()
        .map(|variant| LinkedCode::new(stock, variant).expect("rewritten and verified"))
        .collect()
}

/// Every function, both schemes and poisoned: results, memory, calls and aborts agree, and
/// the code that ran has every kind of instruction that matters.
#[test]
fn functions_compute_the_same() {
    with_stock(|stock| {
        let programs = programs(stock);
        let subjects: Vec<_> = SUBJECTS.iter().collect();
        let plan = Extent {
            images: 25,
            stepped: 3,
            first: 0,
            jobs: 2,
        };
        let report =
            campaign::run(stock, &programs, &subjects, plan, &|_| {}).expect("the campaign runs");
        println!("{}", report.table(programs.len()));
        let differences: Vec<_> = report
            .rows
            .iter()
            .flat_map(|row| &row.differences)
            .collect();
        assert!(differences.is_empty(), "{differences:#?}");
        let compared = report
            .rows
            .iter()
            .filter(|row| row.compared() >= 20)
            .count();
        assert!(
            compared >= 150,
            "only {compared} functions were compared on 20 images"
        );
        assert!(
            report.total(campaign::Row::aborted) > 50,
            "too few wild pointers were met"
        );
        let unfinished = report.total(|row| row.ended(Ending::TimeBudget));
        assert!(
            unfinished * 50 < report.total(|row| row.images),
            "{unfinished} runs did not end"
        );
        for (feature, executed) in Instructions::of(stock).features(stock, &report.coverage) {
            println!("{feature:?}: {executed} instructions executed");
            assert!(executed > 0, "{feature:?} was never executed");
        }
    });
}

/// `e1000_io_write` is the one port access of the module: with the policy's
/// ports and with others.
#[test]
fn ports_are_as_the_policy_says() {
    with_stock(|stock| {
        let programs = programs(stock);
        let mut session = Session::new(stock, &programs).expect("workers");
        let subject = subject("e1000_io_write").expect("in the table");
        let mut seen = [0; Ending::ALL.len()];
        for image in 0..60 {
            let verdict = session.run(subject, image, false).expect("workers live");
            assert!(verdict.differences.is_empty(), "{:?}", verdict.differences);
            seen[verdict.native.ending as usize] += 1;
        }
        assert!(
            seen[Ending::Returned as usize] > 30 && seen[Ending::Port as usize] > 0,
            "{seen:?}"
        );
    });
}

/// A wild pointer ends in a report with function, offset and address, the same
/// as the native fault's, and the process goes on.
#[test]
fn a_wild_pointer_is_reported_and_the_process_goes_on() {
    with_stock(|stock| {
        let mut programs = programs(stock);
        // In a window a wild pointer has the low 32 bits of its address only.
        programs.retain(|program| Scheme::TABLES.contains(&program.variant.scheme));
        let mut session = Session::new(stock, &programs).expect("workers");
        let subject = subject("e1000_clean_rx_ring").expect("in the table");
        let (mut faults, mut returned_after) = (0, 0);
        let mut after_fault = false;
        for image in 0..80 {
            let verdict = session.run(subject, image, false).expect("workers live");
            assert!(verdict.differences.is_empty(), "{:?}", verdict.differences);
            match Ending::from_number(verdict.native.ending) {
                Ending::Fault => {
                    faults += 1;
                    for program in 0..programs.len() {
                        let report = session.twin_end(&verdict, program);
                        assert_eq!(report, session.native_end(&verdict));
                        assert!(
                            report.contains("fault on 0x") && report.contains("e1000_"),
                            "{report}"
                        );
                    }
                    after_fault = true;
                }
                Ending::Returned if after_fault => {
                    returned_after += 1;
                    after_fault = false;
                }
                _ => {}
            }
        }
        assert!(
            faults > 5 && returned_after > 5,
            "{faults} faults, {returned_after} returns after one"
        );
        session.check_unmapped().expect("dom0 is not mapped");
    });
}

/// The comparison is not blind: it detects rewritten code with one changed instruction.
#[test]
fn planted_errors_are_found() {
    with_stock(|stock| {
        let object = program::rewrite(&stock.object, Variant::ALL[0]).expect("rewritten");
        let mut missed = Vec::new();
        let names = [
            "e1000_set_msglevel",
            "e1000_config_collision_dist",
            "e1000_set_media_type",
        ];
        for name in names {
            let mut planted = object.clone();
            plant(&mut planted, name);
            let programs = [LinkedCode::link(stock, Variant::ALL[0], planted).expect("links")];
            let plan = Extent {
                images: 20,
                stepped: 0,
                first: 0,
                jobs: 1,
            };
            let subjects = [subject(name).expect("in the table")];
            let report = campaign::run(stock, &programs, &subjects, plan, &|_| {}).expect("runs");
            if report.differing() == 0 {
                missed.push(name);
            }
        }
        assert_eq!(missed, Vec::<&str>::new());
    });
}

/// Changes the displacement of the function's first translated address by 4.
fn plant(object: &mut elf_loader::Object<'static>, name: &str) {
    use iced_x86::{Decoder, DecoderOptions, Encoder, Mnemonic};
    let (_, symbol) = object
        .symbols()
        .find(|(_, s)| s.name == name)
        .expect("a function");
    let elf_loader::Place::In(id) = symbol.place else {
        panic!("{name} is not defined")
    };
    let (start, size) = (symbol.value as usize, symbol.size.max(64) as usize);
    let section = &mut object.sections[id.0 as usize];
    assert!(section.flags & SHF_EXECINSTR != 0);
    let code = section.data.to_mut();
    let end = (start + size).min(code.len());
    let instructions: Vec<_> =
        Decoder::with_ip(64, &code[start..end], start as u64, DecoderOptions::NONE)
            .into_iter()
            .collect();
    // The same in the check and in its slow path.
    let first = instructions
        .iter()
        .find(|i| i.mnemonic() == Mnemonic::Lea && i.memory_displ_size() > 0)
        .expect("a translated address");
    // (`==` does not compare their places.) A change in one of them alone is refused: only
    // objects that the verifier accepts are linked.
    for i in instructions.iter().filter(|i| *i == first) {
        let mut changed = *i;
        changed.set_memory_displacement64(i.memory_displacement64() + 4);
        let mut encoder = Encoder::new(64);
        encoder.encode(&changed, i.ip()).expect("encodes");
        let bytes = encoder.take_buffer();
        assert_eq!(bytes.len(), i.len(), "the displacement has room");
        code[i.ip() as usize..i.ip() as usize + bytes.len()].copy_from_slice(&bytes);
    }
}
