//! The cases of `tests/attacks`: parses the files and makes the objects.
//! `tests/attacks/README.md` has the format.

use std::path::{Path, PathBuf};
use std::{fs, io};

use svm_verify::{Accesses, Contract, Processor, Scheme, Target};

use super::module::link;
use super::{
    ABI, PAPER, STLB, WINDOW, WINDOW32, assemble, check, check_register, note, note_for, note_of,
    paper, returning, stlb,
};

/// The expected result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Refused, with this code among others.
    Refuse(String),
    /// Accepted: a control, which is an attack without the trick.
    Accept,
}

/// One object to be made.
#[derive(Clone, Debug)]
pub struct Case {
    /// `TARGET/TOPIC.s:LINE: NAME (SCHEME)`
    pub title: String,
    /// Name of its object's file, without directory.
    pub file: String,
    /// The target whose contract is demanded.
    pub target: Target,
    pub scheme: u32,
    /// The accesses that are demanded to be confined, and that the object's note names.
    pub accesses: Accesses,
    /// The processors that the object's note names.
    pub processor: Processor,
    /// The expected result.
    pub expected: Expected,
    /// The source's path, and the number, from 0, of the line with the expected result.
    pub said: (PathBuf, usize),
    /// The case is a whole source.
    pub whole: bool,
    pub code: String,
}

/// All cases, in the order of their files' names.
///
/// # Panics
/// If a file is not of the format: a case that is not understood tests nothing.
pub fn all() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/attacks");
    let mut cases = Vec::new();
    for target in [Target::Hypervisor, Target::Linux] {
        let name = target.as_str();
        for path in sources(&root.join(name)).expect("tests/attacks") {
            let topic = path.file_stem().expect("a name").to_string_lossy();
            let text = fs::read_to_string(&path).expect("a readable file");
            cases.extend(parse(target, &path, name, &topic, &text));
        }
    }
    cases
}

fn sources(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?;
    let paths: io::Result<Vec<_>> = entries.map(|e| e.map(|e| e.path())).collect();
    let mut paths = paths?;
    paths.retain(|path| path.extension().is_some_and(|e| e == "s"));
    paths.sort();
    Ok(paths)
}

/// The cases of one file.
pub fn parse(target: Target, path: &Path, directory: &str, topic: &str, text: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let starts: Vec<usize> = text
        .lines()
        .enumerate()
        .filter_map(|(n, line)| line.starts_with("### ").then_some(n))
        .collect();
    let lines: Vec<&str> = text.lines().collect();
    for (i, &start) in starts.iter().enumerate() {
        let end = starts.get(i + 1).copied().unwrap_or(lines.len());
        let place = format!("{directory}/{topic}.s:{}", start + 1);
        let name = &lines[start][4..];
        let own = match topic.split_once('-') {
            Some(("windows", _)) => vec![WINDOW32, WINDOW],
            Some(("window32", _)) => vec![WINDOW32],
            Some(("window", _)) => vec![WINDOW],
            _ => vec![STLB],
        };
        let accesses = if topic.starts_with("stores") {
            Accesses::Stores
        } else {
            Accesses::All
        };
        let (mut expected, mut schemes, mut whole, mut any) = (None, own, false, false);
        let mut line = start;
        let mut code = start + 1;
        while let Some(directive) = lines[code..end].first().and_then(|l| l.strip_prefix("# ")) {
            match directive.split_once(": ").unwrap_or((directive, "")) {
                ("refuse", rule) => {
                    (expected, line) = (Some(Expected::Refuse(rule.trim().into())), code);
                }
                ("accept", _) => (expected, line) = (Some(Expected::Accept), code),
                ("scheme", "stlb") => schemes = vec![STLB],
                ("scheme", "paper") => schemes = vec![PAPER],
                ("scheme", "window32") => schemes = vec![WINDOW32],
                ("scheme", "window") => schemes = vec![WINDOW],
                ("scheme", "both") => schemes = vec![STLB, PAPER],
                ("from", _) => {}
                ("processor", "any") => any = true,
                ("whole", _) => whole = true,
                _ => panic!("{place}: {directive}: no directive"),
            }
            code += 1;
        }
        let expected = expected.unwrap_or_else(|| panic!("{place}: neither refuse nor accept"));
        for number in schemes {
            let scheme = Scheme::from_number(number).expect("a scheme");
            let suffix = scheme.as_str();
            cases.push(Case {
                title: format!("{place}: {name} ({suffix})"),
                file: format!("{directory}-{topic}-{:03}-{suffix}.o", i + 1),
                target,
                scheme: number,
                accesses,
                processor: match any {
                    true => Processor::Any,
                    false => scheme.processor(),
                },
                expected: expected.clone(),
                said: (path.to_owned(), line),
                whole,
                code: lines[code..end].join("\n"),
            });
        }
    }
    cases
}

impl Case {
    /// The contract that the loader demands; never taken from the object.
    pub fn contract(&self) -> Contract {
        let scheme = Scheme::from_number(self.scheme).expect("a scheme");
        Contract::of(self.target)
            .with(scheme)
            .confining(self.accesses)
    }

    pub fn object(&self) -> Vec<u8> {
        let code = expand(self.target, self.scheme, &self.code);
        if self.whole {
            return assemble(&code);
        }
        let function = format!(
            ".text\n.globl f\n.type f,@function\nf:\n{code}\n.text\n.size f,.-f\n\
             .section .note.GNU-stack,\"\",@progbits\n"
        );
        match self.target {
            Target::Hypervisor => {
                let processor = self.processor as u32;
                assemble(&(note_for([ABI, self.scheme, 64, 0], 0, processor) + &function))
            }
            Target::Process => panic!("nothing is proved of programs"),
            Target::Linux => {
                let scheme = Scheme::from_number(self.scheme).expect("a scheme");
                let note = note_of([ABI, self.scheme, 64, 1], self.accesses as u32);
                let source = note + &function;
                link(
                    &source,
                    twin_linux_runtime::object(scheme, twin_linux_runtime::Returns::Thunk),
                )
            }
        }
    }
}

/// Fills in the placeholders that `tests/attacks/README.md` lists. Only a hypervisor's
/// objects keep return addresses.
fn expand(target: Target, scheme: u32, code: &str) -> String {
    let text = match target {
        Target::Hypervisor => returning(code),
        Target::Linux | Target::Process => code.replace("{KEEP}", "").replace("{RET}", "ret"),
    };
    let both = check_register(scheme, "rdi", "rbx", "r10", "r11", 1)
        + &check_register(scheme, "rsi", "rbp", "r10", "r11", 2);
    let text = text
        .replace("{NOTE}", &note([ABI, scheme, 64, 0]))
        .replace("{ABI}", &ABI.to_string())
        .replace("{T}", "{T:(%rdi)}")
        .replace("{S}", &stlb("(%rdi)", 1))
        .replace("{P}", &paper("(%rdi)", 1))
        .replace("{B}", &both);
    altered_checks(scheme, checks(scheme, text)) + "\n"
}

/// Fills in `{T:ADDRESS}`, a check of that address, which leaves the translation in `%rax`,
/// and `{V:%FROM, %V, %I, %P}`, [`check_register`] with these registers.
pub fn checks(scheme: u32, mut text: String) -> String {
    let mut n = 0;
    while let Some(start) = text.find("{T:").or_else(|| text.find("{V:")) {
        n += 1;
        let end = start + text[start..].find('}').expect("the placeholder ends");
        let fields = &text[start + 3..end];
        let site = match &fields.replace('%', "").split(", ").collect::<Vec<_>>()[..] {
            [from, v, i, p] => check_register(scheme, from, v, i, p, n),
            _ => check(scheme, fields, n),
        };
        text.replace_range(start..=end, &site);
    }
    text
}

/// Fills in `{E:...}`, `{R:...}` and `{P:...}`, each of which ends with the case.
fn altered_checks(scheme: u32, code: String) -> String {
    let mut text = code.trim_end().to_owned();
    if let Some((start, edits)) = placeholder(&text, "{E:") {
        // The good check with its access, each edit made once, in order.
        let mut site = check(scheme, "(%rdi)", 1) + "mov (%rax), %al; ret\n";
        for edit in edits {
            let (from, to) = edit.split_once("=>").expect("an edit");
            assert!(site.contains(from), "{code}");
            site = site.replacen(from, to, 1);
        }
        text.replace_range(start.., &site);
    }
    if let Some((start, fields)) = placeholder(&text, "{R:") {
        // What makes %r8d the count from %edi, and the instruction.
        let [count, instruction] = &fields[..] else {
            panic!("{code}")
        };
        let site = format!(
            "{} mov %edi, %r8d; {count}; mov %rax, %rdi; mov %r8, %rcx; rep; {instruction}; ret",
            check_register(scheme, "rdi", "rax", "rcx", "rdx", 1)
        );
        text.replace_range(start.., &site);
    }
    if let Some((start, fields)) = placeholder(&text, "{P:") {
        let [page, copy, bits, compare, condition] = &fields[..] else {
            panic!("{code}")
        };
        let site = format!(
            "lea (%rdi), %rcx; mov %rcx, %rax; {page}; {copy}; {bits}; shr $8, %rcx
             {compare}; {condition} 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret
             2: call twin_slow_rax; jmp 1b"
        );
        text.replace_range(start.., &site);
    }
    text
}

/// Where a placeholder begins, and its fields. It ends with the text.
fn placeholder(text: &str, open: &str) -> Option<(usize, Vec<String>)> {
    let start = text.find(open)?;
    let body = &text[start + open.len()..text.len() - 1];
    Some((start, body.split('|').map(String::from).collect()))
}
