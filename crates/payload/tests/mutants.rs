//! Inputs that are damaged, or made to deceive: objects, the table, dom0's addresses, in every
//! small way. Of each there is no payload, or one that is sound as it stands in its file: what the
//! parts that were not changed say of Xen is there, and nothing else.
//!
//! The same mutants each time. `TWIN_MUTANTS` is their number for each input, and
//! `TWIN_MUTANTS_OF` a folder with the inputs of a release (scripts/xen-payload.sh): `driver.o`,
//! `hot.o`, `runtime.o`, `xen.table`.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use common::Set;
use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHT_NOBITS};
use elf_loader::{Object, Place, Relocation, SectionId, SymbolId};
use payload::{Payload, PayloadError, check};

/// Mutants of each input.
const SOME: usize = 400;
/// No input may take longer: damage must not make work.
const LONGEST: Duration = Duration::from_secs(20);

fn count() -> usize {
    let asked = std::env::var("TWIN_MUTANTS");
    asked.map_or(SOME, |asked| asked.parse().expect("a number"))
}

/// Which of the three objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    Driver,
    Hot,
    Runtime,
}

#[test]
fn of_the_driver() {
    objects(Which::Driver);
}

#[test]
fn of_the_hot_routines() {
    objects(Which::Hot);
}

#[test]
fn of_the_runtime() {
    objects(Which::Runtime);
}

fn objects(which: Which) {
    let parts = Parts::from_environment();
    let payload = parts.build().expect("a payload");
    let sound = Essence::of(&payload.bytes);
    let mut random = Random::new(which as u64 + 1);
    let (mut made, mut slowest) = (0, Duration::ZERO);
    for number in 0..count() {
        let mut mutant = parts.clone();
        let bytes = match which {
            Which::Driver => &mut mutant.driver,
            Which::Hot => mutant.hot.as_mut().expect("hot routines"),
            Which::Runtime => &mut mutant.runtime,
        };
        let what = mutate(bytes, &mut random);
        let began = Instant::now();
        let result = mutant.build();
        slowest = slowest.max(began.elapsed());
        match result {
            Err(why) => assert!(!why.to_string().is_empty(), "{number}, {what}"),
            Ok(payload) => {
                made += 1;
                check(&payload.bytes).unwrap_or_else(|why| panic!("{number}, {what}: {why}"));
                let found = Essence::of(&payload.bytes);
                sound.compare(&found, which, &format!("{which:?} {number}, {what}"));
            }
        }
    }
    assert!(slowest < LONGEST, "one took {slowest:?}");
    eprintln!(
        "{which:?}: {} mutants, {made} payloads, {slowest:?} the slowest",
        count()
    );
}

#[test]
fn of_the_texts() {
    let parts = Parts::from_environment();
    let payload = parts.build().expect("a payload");
    let sound = Essence::of(&payload.bytes);
    let mut random = Random::new(9);
    for number in 0..count() {
        let mut mutant = parts.clone();
        let of_table = random.below(2) == 0;
        let text = match of_table {
            true => &mut mutant.table,
            false => &mut mutant.kallsyms,
        };
        let what = change_text(text, &mut random);
        if let Ok(payload) = mutant.build() {
            let what = format!("text {number}, {what}");
            check(&payload.bytes).unwrap_or_else(|why| panic!("{what}: {why}"));
            let found = Essence::of(&payload.bytes);
            // dom0's addresses are believed: a wrong one is a wrong result, and confined. Of a table
            // nothing is that is not as it was made.
            assert_eq!(
                (sound.code.len(), &sound.xen),
                (found.code.len(), &found.xen),
                "{what}"
            );
            assert!(!of_table || sound == found, "{what}");
        }
    }
}

// ---- Changing ------------------------------------------------------------------------

/// Names that mean something to the builder, to Xen, or to the runtime.
const NAMES: [&str; 24] = [
    "",
    "twin_window",
    "twin_window_mask",
    "twin_stack_view",
    "twin_import_entry",
    "twin_call_out",
    "twin_import_kfree",
    "twin_payload_codemap",
    "twin_payload_codemap_count",
    "twin_payload_text",
    "twin_function_poll",
    "twin_original_evtchn_send",
    "twin_value_domain_refcnt",
    "stub:kfree",
    "kfree",
    "entry",
    "host_receive",
    "printk",
    "evtchn_send",
    "request_irq",
    "hot_poll",
    "twin_vm:.init.text",
    "twin_vm:jiffies",
    "twin_hot:hot_poll",
];
const SECTIONS: [&str; 18] = [
    ".text",
    ".init.text",
    ".exit.text",
    ".driver.text",
    ".hot.text",
    ".text.twin.stubs",
    ".text.twin.originals",
    ".rodata.twin.codemap",
    ".rodata.twin.arrays",
    ".rodata.twin.texts",
    ".livepatch.funcs",
    ".livepatch.hooks.load",
    ".livepatch.hooks.apply",
    ".livepatch.depends",
    ".note.gnu.build-id",
    ".note.twin",
    ".twin.replace",
    ".twin.codemap",
];
const NUMBERS: [u64; 12] = [
    0,
    1,
    4,
    8,
    16,
    0x1000,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];
const KINDS: [u32; 10] = [0, 1, 2, 4, 9, 10, 11, 24, 37, 42];

/// Changes a file, and says how.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) -> String {
    match random.below(10) {
        0 => {
            let at = random.below(bytes.len());
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at:#x}")
        }
        1 => {
            let (at, value) = (random.below(bytes.len()), random.below(256) as u8);
            bytes[at] = value;
            format!("byte {at:#x} is {value:#x}")
        }
        2 => {
            let at = random.below(bytes.len() / 8) * 8;
            let value = *random.of(&NUMBERS);
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
            format!("word {at:#x} is {value:#x}")
        }
        3 => {
            // What precedes the section headers is most of it.
            let start = u64::from_le_bytes(bytes[40..48].try_into().expect("e_shoff")) as usize;
            let at = start + random.below(bytes.len().saturating_sub(start).max(8) / 8) * 8;
            let value = *random.of(&NUMBERS);
            if let Some(word) = bytes.get_mut(at..at + 8) {
                word.copy_from_slice(&value.to_le_bytes());
            }
            format!("header word {at:#x} is {value:#x}")
        }
        4 if random.below(8) == 0 => {
            bytes.truncate(random.below(bytes.len()));
            format!("cut to {:#x}", bytes.len())
        }
        _ => {
            let mut object = elf_loader::read(bytes).expect("an object");
            let what = change_object(&mut object, random);
            match elf_loader::write(&object) {
                Ok(changed) => *bytes = changed,
                Err(_) => return format!("{what}, which is no object"),
            }
            what
        }
    }
}

fn change_object(object: &mut Object<'_>, random: &mut Random) -> String {
    match random.below(3) {
        0 => change_relocation(object, random),
        1 => change_symbol(object, random),
        _ => change_section(object, random),
    }
}

fn change_relocation(object: &mut Object<'_>, random: &mut Random) -> String {
    let symbols = object.symbols.len();
    let related = |s: &&mut elf_loader::Section<'_>| !s.relocations.is_empty();
    let mut sections: Vec<_> = object.sections.iter_mut().filter(related).collect();
    let section = random.below(sections.len());
    let section = &mut sections[section];
    let at = random.below(section.relocations.len());
    let other = section.relocations[random.below(section.relocations.len())];
    let name = section.name.to_string();
    let r = &mut section.relocations[at];
    let before = *r;
    match random.below(8) {
        0 => {
            r.offset = r
                .offset
                .wrapping_add_signed(*random.of(&[-8, -4, -1, 1, 4, 8, 16]))
        }
        1 => r.kind = *random.of(&KINDS),
        2 | 3 => r.symbol = SymbolId(random.below(symbols) as u32),
        4 => {
            r.addend = r
                .addend
                .wrapping_add(*random.of(&[-16, -8, -4, -1, 1, 4, 8, 16]))
        }
        5 => r.addend = *random.of(&NUMBERS) as i64,
        6 => {
            *r = Relocation {
                offset: r.offset,
                ..other
            }
        }
        _ => {
            section.relocations.remove(at);
            return format!("{name}: without {before:x?}");
        }
    }
    format!("{name}: {before:x?} is {:x?}", section.relocations[at])
}

fn change_symbol(object: &mut Object<'_>, random: &mut Random) -> String {
    let sections = object.sections.len();
    let at = random.below(object.symbols.len());
    let other = object.symbols[random.below(object.symbols.len())].clone();
    let symbol = &mut object.symbols[at];
    let before = format!("{symbol:x?}");
    match random.below(9) {
        0 => {
            symbol.value = symbol
                .value
                .wrapping_add_signed(*random.of(&[-8, -4, -1, 1, 4, 8, 16]))
        }
        1 => symbol.value = *random.of(&NUMBERS),
        2 => symbol.size = *random.of(&NUMBERS),
        3 => symbol.kind = *random.of(&[0, 1, 2, 3, 4, 6, 10]),
        4 => symbol.binding = *random.of(&[0, 1, 2, 10]),
        5 => {
            let inside = Place::In(SectionId(random.below(sections) as u32));
            symbol.place = *random.of(&[
                Place::Undefined,
                Place::Absolute,
                Place::Common,
                inside,
                inside,
            ]);
        }
        6 => symbol.name = (*random.of(&NAMES)).into(),
        7 => symbol.name = other.name,
        _ => *symbol = other,
    }
    format!("{before} is {:x?}", object.symbols[at])
}

fn change_section(object: &mut Object<'_>, random: &mut Random) -> String {
    let at = 1 + random.below(object.sections.len() - 1);
    let section = &mut object.sections[at];
    let name = section.name.to_string();
    let what = match random.below(9) {
        0 => {
            section.flags ^= *random.of(&[SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, 0x10, 0x200, 0x400]);
            format!("flags {:#x}", section.flags)
        }
        1 => {
            section.align = *random.of(&[0, 1, 2, 8, 4096, 8192, 1 << 20, 1 << 63]);
            format!("alignment {:#x}", section.align)
        }
        2 => {
            section.kind = *random.of(&[1, 7, SHT_NOBITS, 14, 0x7000_0001]);
            format!("type {:#x}", section.kind)
        }
        3 => {
            section.name = (*random.of(&SECTIONS)).into();
            format!("name {}", section.name)
        }
        4 if section.data.is_empty() => {
            section.size = *random.of(&[0, 1, 1 << 20, 1 << 22, 1 << 30]);
            format!("size {:#x}", section.size)
        }
        4..7 if !section.data.is_empty() => {
            let byte = random.below(section.data.len());
            section.data.to_mut()[byte] ^= 1 << random.below(8);
            format!("byte {byte:#x}")
        }
        7 => {
            let data = section.data.to_mut();
            data.extend_from_slice(&[0; 16]);
            section.size = data.len() as u64;
            "16 bytes more".into()
        }
        _ => {
            let copy = section.clone();
            object.sections.push(copy);
            "twice".into()
        }
    };
    format!("section {name}: {what}")
}

/// One character, one word, or one line.
fn change_text(text: &mut String, random: &mut Random) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let at = random.below(lines.len());
    let mut line: Vec<char> = lines[at].chars().collect();
    let before = lines[at].to_owned();
    let mut after = Vec::new();
    match random.below(5) {
        0 => {}
        1 => after = vec![before.clone(), before.clone()],
        2 if !line.is_empty() => {
            line.remove(random.below(line.len()));
            after.push(line.into_iter().collect());
        }
        3 if !line.is_empty() => {
            let place = random.below(line.len());
            line[place] = *random.of(&[
                '0', '1', '9', 'f', 'x', ' ', '-', '+', '#', 'T', '\u{0}', 'é',
            ]);
            after.push(line.into_iter().collect());
        }
        _ => {
            let other = lines[random.below(lines.len())]
                .split(' ')
                .next_back()
                .unwrap_or_default();
            let words = before.rsplit_once(' ').map_or("", |(words, _)| words);
            after.push(format!("{words} {other}"));
        }
    }
    let said = format!("line {}, `{before}`, is {after:?}", at + 1);
    let mut all: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
    all.splice(at..=at, after);
    *text = all.join("\n") + "\n";
    said
}

// ---- Judging -------------------------------------------------------------------------

/// A section as it is in the file: flags, bytes, and where each relocation leads.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    flags: u64,
    bytes: Vec<u8>,
    leads: Vec<(u64, u32, String, i64)>,
}

/// What a payload says, as Xen's loader reads it: by names, not by numbers of symbols.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Essence {
    /// By name: the runtime's sections, hooks, what is replaced, and single numbers.
    trusted: BTreeMap<String, Found>,
    /// The rewritten code, a map for each prefix, and the codemap.
    code: BTreeMap<String, Found>,
    /// Xen's symbols.
    xen: BTreeSet<String>,
}

/// Rewritten code, and what is made of it and changes with it.
const CODE: [&str; 2] = [".driver", ".hot"];
const OF_CODE: [&str; 7] = [
    ".text.twin.stubs",
    ".rodata.twin.codemap",
    ".rodata.twin.arrays",
    ".rodata.twin.texts",
    ".note.gnu.build-id",
    ".note.twin",
    ".twin.origin",
];

impl Essence {
    fn of(bytes: &[u8]) -> Essence {
        let object = elf_loader::read(bytes).expect("a payload");
        let (mut trusted, mut code) = (BTreeMap::new(), BTreeMap::new());
        for (_, section) in object
            .sections()
            .filter(|(_, s)| s.role == elf_loader::Role::Contents)
        {
            let name = section.name.to_string();
            let is_code = CODE.iter().any(|prefix| name.starts_with(prefix));
            if OF_CODE.contains(&&*name) {
                continue;
            }
            let into = if is_code { &mut code } else { &mut trusted };
            into.entry(name).or_insert_with(|| found(&object, section));
        }
        for (_, symbol) in object.symbols() {
            if let Some(number) = single(&object, symbol) {
                assert!(trusted.insert(symbol.name.to_string(), number).is_none());
            }
        }
        let undefined = object
            .symbols()
            .skip(1)
            .filter(|(_, s)| s.place == Place::Undefined);
        let xen = undefined.map(|(_, s)| s.name.to_string()).collect();
        Essence { trusted, code, xen }
    }

    /// What was not changed is as it was.
    fn compare(&self, mutant: &Essence, which: Which, what: &str) {
        if which == Which::Runtime {
            assert_eq!(
                self.code.keys().collect::<Vec<_>>(),
                mutant.code.keys().collect::<Vec<_>>(),
                "{what}"
            );
        } else {
            assert_eq!(self.xen, mutant.xen, "{what}");
            assert_eq!(self.trusted, mutant.trusted, "{what}");
        }
        let others = |name: &&String| match which {
            Which::Driver => name.starts_with(".hot"),
            Which::Hot => name.starts_with(".driver"),
            Which::Runtime => true,
        };
        for name in self.code.keys().filter(others) {
            assert_eq!(
                self.code[name].bytes, mutant.code[name].bytes,
                "{what}: {name}"
            );
        }
    }
}

/// Numbers that the builder gives the runtime, and that do not depend on the code.
fn single(object: &Object<'_>, symbol: &elf_loader::Symbol<'_>) -> Option<Found> {
    const PREFIXES: [&str; 4] = [
        "twin_value_",
        "twin_dom0_",
        "twin_payload_abi",
        "twin_payload_build",
    ];
    let Place::In(id) = symbol.place else {
        return None;
    };
    let section = object.section(id);
    let own = section.name == ".rodata.twin.arrays"
        && PREFIXES.iter().any(|p| symbol.name.starts_with(p));
    let range = symbol.value as usize..(symbol.value + symbol.size) as usize;
    let inside = |r: &&Relocation| range.contains(&(r.offset as usize));
    own.then(|| Found {
        flags: section.flags,
        bytes: section.data[range.clone()].to_vec(),
        leads: section
            .relocations
            .iter()
            .filter(inside)
            .map(|r| lead(object, r))
            .collect(),
    })
}

fn found(object: &Object<'_>, section: &elf_loader::Section<'_>) -> Found {
    Found {
        flags: section.flags,
        bytes: section.data.to_vec(),
        leads: section
            .relocations
            .iter()
            .map(|r| lead(object, r))
            .collect(),
    }
}

/// Where a relocation leads: by name, and of texts what is written there.
fn lead(object: &Object<'_>, r: &Relocation) -> (u64, u32, String, i64) {
    let symbol = object.symbol(r.symbol);
    let Place::In(id) = symbol.place else {
        return (
            r.offset,
            r.kind,
            format!("{:?} {}", symbol.place, symbol.name),
            r.addend,
        );
    };
    let section = object.section(id);
    if section.name == ".rodata.twin.texts" {
        let text = &section.data[(symbol.value as i64 + r.addend) as usize..];
        let end = text.iter().position(|&byte| byte == 0).expect("its end");
        return (
            r.offset,
            r.kind,
            String::from_utf8_lossy(&text[..end]).into_owned(),
            0,
        );
    }
    let code = CODE.iter().any(|prefix| section.name.starts_with(prefix));
    // Where a function is in changed code, the verifier has judged.
    let made = code || OF_CODE.contains(&&*section.name);
    let at = if made {
        String::new()
    } else {
        format!("+{:#x}", symbol.value)
    };
    (
        r.offset,
        r.kind,
        format!("{}{at}:{}", section.name, symbol.name),
        r.addend,
    )
}

// ---- Inputs --------------------------------------------------------------------------

/// What a payload is made of, as files.
#[derive(Clone)]
struct Parts {
    driver: Vec<u8>,
    hot: Option<Vec<u8>>,
    runtime: Vec<u8>,
    table: String,
    kallsyms: String,
    sections: BTreeMap<(String, String), u64>,
}

impl Parts {
    fn from_environment() -> Parts {
        match std::env::var("TWIN_MUTANTS_OF") {
            Ok(folder) => Parts::of_release(folder.as_ref()),
            Err(_) => Parts::by_hand(),
        }
    }

    fn by_hand() -> Parts {
        let set = Set::new();
        Parts {
            driver: common::assemble(&set.driver),
            hot: set.hot.as_deref().map(common::assemble),
            runtime: common::assemble(&set.runtime),
            table: payload::sealed(&set.table),
            kallsyms: set.kallsyms,
            sections: set.sections,
        }
    }

    /// With addresses of dom0 that are as good as any.
    fn of_release(folder: &std::path::Path) -> Parts {
        let file = |name: &str| {
            std::fs::read(folder.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
        };
        let mut parts = Parts {
            driver: file("driver.o"),
            hot: Some(file("hot.o")),
            runtime: file("runtime.o"),
            table: String::from_utf8(file("xen.table")).expect("a text"),
            kallsyms: String::new(),
            sections: BTreeMap::new(),
        };
        let mut names = BTreeSet::new();
        let hot = parts.hot.clone().unwrap_or_default();
        for (module, bytes) in [
            ("e1000", &parts.driver),
            ("twin_hot", &hot),
            ("", &parts.runtime),
        ] {
            let object = elf_loader::read(bytes).expect("an object");
            for (_, symbol) in object
                .symbols()
                .skip(1)
                .filter(|(_, s)| s.place == Place::Undefined)
            {
                let name = symbol
                    .name
                    .trim_start_matches("twin_vm:")
                    .trim_start_matches("twin_dom0_");
                if name.starts_with('.') {
                    let next = 0xffff_ffff_c040_0000 + 0x10_0000 * parts.sections.len() as u64;
                    parts.sections.insert((module.into(), name.into()), next);
                } else {
                    names.insert(name.to_owned());
                }
            }
        }
        for (n, name) in names.iter().enumerate() {
            parts.kallsyms += &format!(
                "{:016x} T {name}\n",
                0xffff_ffff_8100_0000u64 + 16 * n as u64
            );
        }
        parts
    }

    fn build(&self) -> Result<Payload, PayloadError> {
        let set = Set {
            kallsyms: self.kallsyms.clone(),
            sections: self.sections.clone(),
            ..Set::new()
        };
        let object = |bytes| {
            elf_loader::read(bytes).map_err(|why| {
                // The command's reader refuses it, before a payload is thought of.
                PayloadError::Refused(payload::Refusal::new(
                    payload::PayloadCode::Section,
                    payload::Part::Driver,
                    why.to_string(),
                ))
            })
        };
        let hot = self.hot.as_deref().map(object).transpose()?;
        let (driver, runtime) = (object(&self.driver)?, object(&self.runtime)?);
        common::make(&driver, hot.as_ref(), &runtime, &self.table, &set)
    }
}

/// xorshift64*: the same sequence every time.
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % limit
    }

    fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
