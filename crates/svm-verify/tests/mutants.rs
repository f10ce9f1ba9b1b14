//! Good sequences, changed in every small way. A refused mutant is fine. An accepted one
//! is executed on a machine that checks every access: nothing may break the contract,
//! and unless the change was in the driver's own computation, its accesses to dom0 memory
//! must be exactly those of the original.

mod common;
use std::collections::HashSet;
use std::fmt::Write as _;
use std::process::Command;

use common::machine::{Cpu, End};
use common::sequences::{SEQUENCES, Sequence};
use common::*;
use svm_verify::{Options, ViolationCode};

/// A changed sequence.
struct Mutant {
    what: String,
    lines: Vec<String>,
    /// Whether only the driver's own lines were changed.
    own: bool,
}

fn text(line: &str) -> &str {
    line.trim_start_matches('!')
}

fn is_own(line: &str) -> bool {
    line.starts_with('!')
}

fn is_label(line: &str) -> bool {
    line.ends_with(':')
}

/// All mutants of a sequence; the first is the sequence itself.
fn mutants(sequence: &Sequence) -> Vec<Mutant> {
    let source = sequence.lines();
    let lines: Vec<String> = source.iter().map(|l| text(l).to_string()).collect();
    let mut all = vec![Mutant {
        what: "nothing".into(),
        lines: lines.clone(),
        own: false,
    }];
    let mut add =
        |what: String, own: bool, lines: Vec<String>| all.push(Mutant { what, lines, own });
    for (n, line) in source.iter().enumerate().filter(|(_, l)| !is_label(l)) {
        let replaced = |with: &[String]| {
            let mut new = lines.clone();
            new.splice(n..=n, with.iter().cloned());
            new
        };
        let own = is_own(line);
        add(format!("without `{line}`"), own, replaced(&[]));
        add(
            format!("`{line}` twice"),
            own,
            replaced(&[lines[n].clone(), lines[n].clone()]),
        );
        if let Some(next) = source.get(n + 1).filter(|l| !is_label(l)) {
            let mut swapped = lines.clone();
            swapped.swap(n, n + 1);
            add(
                format!("`{line}` after `{next}`"),
                own && is_own(next),
                swapped,
            );
        }
        for new in variants(text(line)) {
            add(format!("`{line}` as `{new}`"), own, replaced(&[new]));
        }
    }
    all
}

const WIDE: [&str; 9] = ["rax", "rcx", "rdx", "rbx", "rsp", "rsi", "rdi", "r8", "r10"];
const NARROW: [&str; 9] = [
    "eax", "ecx", "edx", "ebx", "esp", "esi", "edi", "r8d", "r10d",
];

/// The line with another register, width, number, operation or condition.
fn variants(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (at, register) in registers(line) {
        let same = if NARROW.contains(&&*register) || register.ends_with('d') {
            NARROW
        } else {
            WIDE
        };
        for new in same.iter().filter(|&&new| new != register) {
            all.push(splice(line, at + 1, register.len(), new));
        }
        // Both operands at another width, of the register alone.
        if let Some(w) = WIDE.iter().position(|&r| r == register) {
            all.push(splice(line, at + 1, register.len(), NARROW[w]));
        } else if let Some(w) = NARROW.iter().position(|&r| r == register) {
            all.push(splice(line, at + 1, register.len(), WIDE[w]));
        }
    }
    for (at, length, value) in numbers(line) {
        for new in [
            value + 1,
            value - 1,
            value + 8,
            value * 2,
            value / 2,
            -value,
            0,
            value + 4096,
            value ^ 0x1000,
        ] {
            if new != value {
                all.push(splice(line, at, length, &format!("{new}")));
            }
        }
    }
    let (operation, rest) = line.split_once(' ').unwrap_or((line, ""));
    let groups: [&[&str]; 5] = [
        &[
            "add", "sub", "and", "or", "xor", "cmp", "mov", "test", "lea",
        ],
        &["shr", "shl", "and"],
        &[
            "ja", "jae", "jb", "jbe", "je", "jne", "jg", "jge", "jl", "jle", "jo", "js", "jmp",
        ],
        &["cmova", "cmovae", "cmovb", "cmovbe", "cmove", "mov"],
        &["push", "pop"],
    ];
    for group in groups.iter().filter(|g| g.contains(&operation)) {
        all.extend(
            group
                .iter()
                .filter(|&&o| o != operation)
                .map(|o| format!("{o} {rest}")),
        );
    }
    all
}

fn splice(line: &str, at: usize, length: usize, new: &str) -> String {
    format!("{}{new}{}", &line[..at], &line[at + length..])
}

fn registers(line: &str) -> Vec<(usize, String)> {
    line.match_indices('%')
        .map(|(at, _)| {
            let name = line[at + 1..]
                .chars()
                .take_while(char::is_ascii_alphanumeric)
                .collect();
            (at, name)
        })
        .collect()
}

/// Immediates and displacements: place, length, value.
fn numbers(line: &str) -> Vec<(usize, usize, i64)> {
    let starts = line.char_indices().filter(|&(at, c)| {
        let before = line[..at].chars().last().unwrap_or(' ');
        (c.is_ascii_digit() || c == '-') && matches!(before, '$' | ' ' | '+' | ',')
    });
    starts
        .filter_map(|(at, _)| {
            let token: String = line[at..]
                .chars()
                .take_while(|c| c.is_ascii_alphanumeric() || *c == '-')
                .collect();
            let digits = token.trim_start_matches('-');
            let value = match digits.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            let sign = if token.starts_with('-') { -1 } else { 1 };
            Some((at, token.len(), sign * value.ok()?))
        })
        .collect()
}

/// Assembles all mutants, each into a section of its own; drops those that the assembler
/// does not accept, and those that become no instruction: binutils 2.44 makes `seto %eax`
/// one of APX, and where code cannot be decoded the verifier looks at nothing else.
fn assemble_all(sequence: &Sequence, mutants: &mut Vec<Mutant>) -> Vec<u8> {
    loop {
        let bytes = assemble_accepted(sequence, mutants);
        let object = elf_loader::read(&bytes).expect("a relocatable object");
        let undecodable = undecodable(&object);
        if undecodable.is_empty() {
            return bytes;
        }
        let mut sections = (0..).map(|n| format!(".text.m{n}"));
        mutants.retain(|_| !undecodable.contains(&sections.next().expect("there is no last")));
    }
}

/// Sections with code that is no instruction.
fn undecodable(object: &elf_loader::Object<'_>) -> HashSet<String> {
    let violations = match svm_verify::verify_with(object, common::USER, EVERY) {
        Ok(_) => Vec::new(),
        Err(violations) => violations.list,
    };
    let undecodable = violations
        .into_iter()
        .filter(|v| v.code == ViolationCode::Undecodable);
    undecodable.map(|v| v.section).collect()
}

const EVERY: Options = Options { limit: usize::MAX };

/// Assembles them, and drops those that the assembler does not accept.
fn assemble_accepted(sequence: &Sequence, mutants: &mut Vec<Mutant>) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let (input, output) = (dir.path().join("in.s"), dir.path().join("out.o"));
    loop {
        let mut source = note([ABI, sequence.scheme, 64, 0]);
        let mut owner = vec![usize::MAX; source.lines().count()];
        for (n, mutant) in mutants.iter().enumerate() {
            let mut body = format!(".section .text.m{n},\"ax\",@progbits\n.globl f{n}\nf{n}:\n");
            for line in &mutant.lines {
                writeln!(body, "{}", line.replace('@', &format!("_{n}"))).expect("a string");
            }
            owner.extend(body.lines().map(|_| n));
            source += &body;
        }
        std::fs::write(&input, &source).expect("the source");
        let result = Command::new("as")
            .args(["--64", "-mx86-used-note=no", "-o"])
            .args([&output, &input])
            .output()
            .expect("the assembler");
        if result.status.success() {
            return std::fs::read(&output).expect("the object");
        }
        let message = String::from_utf8_lossy(&result.stderr);
        let bad: HashSet<usize> = message
            .lines()
            .filter_map(|l| l.split(':').nth(1)?.trim().parse::<usize>().ok())
            .map(|line| owner[line - 1])
            .collect();
        assert!(
            !bad.is_empty() && !bad.contains(&0) && !bad.contains(&usize::MAX),
            "{message}"
        );
        let mut n = 0;
        mutants.retain(|_| {
            n += 1;
            !bad.contains(&(n - 1))
        });
    }
}

/// Pseudo-random numbers (xorshift), the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Registers that point around page boundaries, and pages for the table:
    /// of those pointers, or colliding with them.
    fn machine(&mut self, scheme: u32) -> Cpu {
        let mut regs = [0; 16];
        let mut pages = Vec::new();
        for r in &mut regs {
            let page = 0xffff_8880_0000_0000 | (self.next() & 0x3fff_f000);
            let offset = match self.next() % 4 {
                0 => 0,
                1 => 0xfff,
                2 => 0xff0 + self.next() % 16,
                _ => self.next() & 0xfff,
            };
            *r = page + offset;
            match self.next() % 4 {
                0 => pages.push(page),
                1 => pages.push(page ^ 0x4000_0000_0000),
                2 => pages.extend([page, page + 0x1000]),
                _ => {}
            }
        }
        // Mostly small indexes and counts.
        for r in [1, 6] {
            if self.next() % 3 == 1 {
                regs[r] = self.next() % 2000;
            }
        }
        let mut machine = Cpu::new(scheme == PAPER, regs, &pages);
        machine.hostile = self.next().is_multiple_of(2);
        machine
    }
}

/// What the driver and dom0 can see of a run.
fn visible(machine: &Cpu, scratch: &[usize]) -> Vec<u64> {
    (0..16)
        .filter(|r| !scratch.contains(r))
        .map(|r| machine.regs[r])
        .collect()
}

/// Executes an accepted mutant, in its section, and the original for comparison.
fn judge(
    sequence: &Sequence,
    object: &elf_loader::Object<'_>,
    original: &str,
    section: &str,
    own: bool,
) -> Result<(), String> {
    let find = |name: &str| object.section(object.section_named(name).expect("a section"));
    let mut random = Random(0x1234_5678_9abc_def1);
    for _ in 0..sequence.runs() {
        let start = random.machine(sequence.scheme);
        let (mut expected, mut actual) = (start.clone(), start);
        let first = expected.run(object, find(original));
        let second = actual.run(object, find(section));
        if let End::Breach(reason) = &first {
            return Err(format!("the original: {reason}"));
        }
        if let End::Breach(reason) = second {
            return Err(reason);
        }
        let same = first == second
            && expected.events == actual.events
            && visible(&expected, sequence.scratch) == visible(&actual, sequence.scratch);
        if !own && !same {
            return Err(format!(
                "it does something else: {:x?} {:x?}",
                expected.events, actual.events
            ));
        }
    }
    Ok(())
}

/// Whether a few runs of the mutant leave the contract.
fn breaches(sequence: &Sequence, object: &elf_loader::Object<'_>, section: &str) -> bool {
    let section = object.section(object.section_named(section).expect("a section"));
    let mut random = Random(0x1234_5678_9abc_def1);
    (0..sequence.runs() / 4).any(|_| {
        let mut machine = random.machine(sequence.scheme);
        matches!(machine.run(object, section), End::Breach(_))
    })
}

/// Sections of the object that have a violation.
fn refused(object: &elf_loader::Object<'_>) -> HashSet<String> {
    let result = svm_verify::verify_with(object, common::USER, EVERY);
    let anew = svm_verify::verify_without_memo(object, common::USER, EVERY);
    assert_eq!(format!("{result:?}"), format!("{anew:?}"));
    match result {
        Ok(_) => HashSet::new(),
        Err(v) => v.list.into_iter().map(|v| v.section).collect(),
    }
}

#[test]
fn accepted_mutants_mean_the_same_or_are_the_drivers_own_business() {
    let (mut made, mut accepted, mut caught, mut wrong) = (0, 0, 0, String::new());
    for sequence in SEQUENCES {
        let mut mutants = mutants(sequence);
        let bytes = assemble_all(sequence, &mut mutants);
        let object = elf_loader::read(&bytes).expect("a relocatable object");
        let refused = refused(&object);
        assert!(
            !refused.contains(".text.m0"),
            "{} itself is refused",
            sequence.name
        );
        assert!(!refused.contains(""), "the object as a whole is refused");
        for (n, mutant) in mutants.iter().enumerate() {
            made += 1;
            let section = format!(".text.m{n}");
            if refused.contains(&section) {
                caught += usize::from(breaches(sequence, &object, &section));
                continue;
            }
            accepted += 1;
            if let Err(reason) = judge(sequence, &object, ".text.m0", &section, mutant.own) {
                writeln!(wrong, "{}: {}: {reason}", sequence.name, mutant.what).expect("a string");
            }
        }
    }
    println!("{made} mutants, {accepted} accepted, {caught} of the others leave the contract");
    // The judge can tell.
    assert!(caught > 500, "{caught}");
    assert!(
        made > 3000 && accepted * 2 < made,
        "{made} mutants, {accepted} accepted"
    );
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn branches_to_every_byte_are_refused_unless_confined() {
    let (mut made, mut wrong) = (0, String::new());
    for sequence in SEQUENCES {
        let mut original = vec![mutants(sequence).swap_remove(0)];
        let bytes = assemble_all(sequence, &mut original);
        let good = elf_loader::read(&bytes).expect("a relocatable object");
        let id = good.section_named(".text.m0").expect("the code");
        let code = good.section(id).data.to_vec();
        let mut decoder = iced_x86::Decoder::with_ip(64, &code, 0, 0);
        for i in decoder.iter() {
            let short = i.is_jcc_short() || i.is_jmp_short();
            if !short {
                continue;
            }
            let field = i.next_ip() as usize - 1;
            for to in -1i64..=code.len() as i64 {
                let Ok(rel) = i8::try_from(to - i.next_ip() as i64) else {
                    continue;
                };
                if rel as u8 == code[field] {
                    continue;
                }
                made += 1;
                let mut object = good.clone();
                // The original stays in the same object, for the comparison.
                object.sections[id.0 as usize].data.to_mut()[field] = rel as u8;
                if !refused(&object).is_empty() {
                    continue;
                }
                let mut random = Random(99);
                for _ in 0..sequence.runs() {
                    let mut machine = random.machine(sequence.scheme);
                    if let End::Breach(reason) = machine.run(&object, object.section(id)) {
                        writeln!(wrong, "{}: `{i}` to {to:#x}: {reason}", sequence.name)
                            .expect("a string");
                        break;
                    }
                }
            }
        }
    }
    assert!(made > 500, "{made}");
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn changed_bytes_are_refused_unless_confined() {
    let mut wrong = String::new();
    for sequence in SEQUENCES {
        let mut original = vec![mutants(sequence).swap_remove(0)];
        let bytes = assemble_all(sequence, &mut original);
        let good = elf_loader::read(&bytes).expect("a relocatable object");
        let id = good.section_named(".text.m0").expect("the code");
        for at in 0..good.section(id).data.len() {
            for bit in 0..8 {
                let mut object = good.clone();
                object.sections[id.0 as usize].data.to_mut()[at] ^= 1 << bit;
                if !refused(&object).is_empty() {
                    continue;
                }
                let mut random = Random(77);
                for _ in 0..sequence.runs() / 4 {
                    let mut machine = random.machine(sequence.scheme);
                    match machine.run(&object, object.section(id)) {
                        // The machine knows the sequences' instructions only.
                        End::Breach(reason) if !reason.contains("does not know") => {
                            writeln!(
                                wrong,
                                "{}: bit {bit} of byte {at:#x}: {reason}",
                                sequence.name
                            )
                            .expect("a string");
                            break;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
