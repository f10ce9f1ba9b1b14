//! All codes that messages and reports carry, wherever they come from, and
//! their long texts.
//!
//! Each crate has an enum of its own. This module has the program's, for failures of
//! the command line itself, and the union of all.

use twin_abi::explanation::{Example, Explanation};

twin_abi::listed! {
    /// What goes wrong outside the library crates.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum CommandCode {
        /// A file that cannot be read or written.
        Access => "access",
        /// A file that is sound, but not what the command works on.
        Input => "input",
        /// A function that the object does not have.
        NoFunction => "no-function",
        /// An object that was made from another file.
        Original => "original",
        /// A defect of twin itself.
        Internal => "internal",
    }
}

impl CommandCode {
    fn explanation(self) -> Explanation {
        let (meaning, why, remedy, example) = match self {
            CommandCode::Access => (
                "A file could not be read or written. The exit status is 2.",
                "The message has the system's reason. An output that could not be written is not there, and one that was there before stays as it was. The other results of the same command stay, also where only its report could not be written.",
                "Check the name, permissions and free space. Outputs are written beside their final name and renamed, so the directory must be writable too.",
                "$ twin rewrite e1000.ko -o /proc/e1000.twin.o",
            ),
            CommandCode::Input => (
                "The file can be read, but is not what this command works on.",
                "The message says what it is, and what is taken instead.",
                "Give what the message asks for; `twin COMMAND --help` has examples.",
                "$ twin run ixgbe.ko        # the testbed's card is an e1000",
            ),
            CommandCode::NoFunction => (
                "The object has no function of the name given with --function.",
                "Explaining another function instead would mislead.",
                "Use one of the names that the message suggests; `nm -C FILE` lists all. Static functions may have been inlined.",
                "$ twin explain e1000.ko --function e1000_cleen",
            ),
            CommandCode::Original => (
                "The object keeps the contract, but was not made from the file given with --check-original, by the hash in its mark, or has no mark.",
                "A mark has the SHA-256 of the whole file that was rewritten, decompressed, its signature included. One byte of difference is another file.",
                "Give the file that it was made from, plain or compressed, or rewrite the file that you have. `modinfo` shows a module's mark; of an object for a hypervisor `readelf -p .twin.origin` does.",
                "$ twin verify --target linux --check-original e1000e.ko e1000.twin.ko",
            ),
            CommandCode::Internal => (
                "twin met a defect of its own: the object that it made does not verify, or a step failed that cannot fail.",
                "No output is written unless it verifies.",
                "Please report it with the input, the command line and `twin --version`. The violations listed with it have codes of their own. Until it is fixed, leaving out the function that the message names usually helps.",
                "the message begins with `internal error:`",
            ),
        };
        Explanation {
            meaning,
            why,
            remedy,
            example: Example::Text(example),
        }
    }
}

/// A code of any crate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnyCode {
    /// A file that cannot be read as an object.
    Reader(elf_loader::ReaderCode),
    /// A place that cannot be rewritten.
    Refusal(svm_rewrite::RefusalCode),
    /// A rule that an object breaks.
    Violation(svm_verify::ViolationCode),
    /// A reason why no payload is made.
    Payload(payload::PayloadCode),
    /// A condition of `twin xen` that does not hold, or a step of it that failed.
    Xen(xen_host::XenCode),
    /// Anything else.
    Command(CommandCode),
}

impl From<elf_loader::ReaderCode> for AnyCode {
    fn from(code: elf_loader::ReaderCode) -> AnyCode {
        AnyCode::Reader(code)
    }
}

impl From<payload::PayloadCode> for AnyCode {
    fn from(code: payload::PayloadCode) -> AnyCode {
        AnyCode::Payload(code)
    }
}

impl From<xen_host::XenCode> for AnyCode {
    fn from(code: xen_host::XenCode) -> AnyCode {
        AnyCode::Xen(code)
    }
}

impl From<CommandCode> for AnyCode {
    fn from(code: CommandCode) -> AnyCode {
        AnyCode::Command(code)
    }
}

/// A crate's codes.
pub struct Origin {
    /// Where they come from.
    pub title: &'static str,
    /// All of them.
    pub codes: fn() -> Vec<AnyCode>,
}

/// Where codes come from, in the order in which a driver meets them.
pub const ORIGINS: [Origin; 6] = [
    Origin {
        title: "Files that cannot be read",
        codes: || all(&elf_loader::ReaderCode::ALL, AnyCode::Reader),
    },
    Origin {
        title: "Refusals of `twin rewrite`",
        codes: || all(&svm_rewrite::RefusalCode::ALL, AnyCode::Refusal),
    },
    Origin {
        title: "Violations that `twin verify` finds",
        codes: || all(&svm_verify::ViolationCode::ALL, AnyCode::Violation),
    },
    Origin {
        title: "Refusals of `twin payload`",
        codes: || all(&payload::PayloadCode::ALL, AnyCode::Payload),
    },
    Origin {
        title: "Checks and refusals of `twin xen`",
        codes: || all(&xen_host::XenCode::ALL, AnyCode::Xen),
    },
    Origin {
        title: "Everything else",
        codes: || all(&CommandCode::ALL, AnyCode::Command),
    },
];

fn all<C: Copy>(codes: &[C], any: fn(C) -> AnyCode) -> Vec<AnyCode> {
    codes.iter().copied().map(any).collect()
}

impl AnyCode {
    /// Every code there is.
    pub fn all() -> Vec<AnyCode> {
        ORIGINS.iter().flat_map(|of| (of.codes)()).collect()
    }

    /// The code of this name; case does not matter.
    pub fn named(name: &str) -> Option<AnyCode> {
        let same = |code: &AnyCode| code.as_str().eq_ignore_ascii_case(name);
        AnyCode::all().into_iter().find(same)
    }

    /// The code as printed.
    pub fn as_str(self) -> &'static str {
        match self {
            AnyCode::Reader(code) => code.as_str(),
            AnyCode::Refusal(code) => code.as_str(),
            AnyCode::Violation(code) => code.as_str(),
            AnyCode::Payload(code) => code.as_str(),
            AnyCode::Xen(code) => code.as_str(),
            AnyCode::Command(code) => code.as_str(),
        }
    }

    /// Its long text.
    pub fn explanation(self) -> Explanation {
        match self {
            AnyCode::Reader(code) => code.explanation(),
            AnyCode::Refusal(code) => code.explanation(),
            AnyCode::Violation(code) => code.explanation(),
            AnyCode::Payload(code) => code.explanation(),
            AnyCode::Xen(code) => code.explanation(),
            AnyCode::Command(code) => code.explanation(),
        }
    }
}

/// Assembly with labels at the margin and instructions indented.
pub fn instructions(body: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some((label, rest)) => format!("{:<8}{rest}", format!("{label}:")),
        None => format!("        {line}"),
    };
    body.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::fmt::Write;

    const BEGIN: &str = "<!-- codes: made from the texts in the crates; `TWIN_BLESS=1 cargo test -p command-line codes` renews it -->\n";

    /// The part of `docs/troubleshooting.md` that lists all codes.
    fn markdown() -> String {
        let mut out = String::new();
        for Origin { title, codes } in ORIGINS {
            let _ = writeln!(out, "## {title}\n");
            for code in codes() {
                let text = code.explanation();
                let _ = writeln!(out, "### `{}`\n\n{}\n", code.as_str(), text.meaning);
                let _ = writeln!(
                    out,
                    "*Why:* {}\n\n*What to do:* {}\n",
                    text.why, text.remedy
                );
                match text.example {
                    Example::Assembly(body) => {
                        let _ = writeln!(out, "```asm\n{}\n```\n", instructions(body));
                    }
                    Example::Text(text) => {
                        let _ = writeln!(out, "```\n{text}\n```\n");
                    }
                }
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
        out
    }

    #[test]
    fn every_code_is_distinct_and_names_a_remedy() {
        let mut seen = HashSet::new();
        for code in AnyCode::all() {
            let name = code.as_str().to_ascii_lowercase();
            assert!(seen.insert(name), "{} twice", code.as_str());
            let text = code.explanation();
            assert!(text.remedy.len() > 10, "{}", code.as_str());
            assert_eq!(AnyCode::named(code.as_str()), Some(code));
        }
        assert!(seen.len() > 60);
    }

    #[test]
    fn the_troubleshooting_guide_has_every_text() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/troubleshooting.md");
        let page = std::fs::read_to_string(path).expect("docs/troubleshooting.md");
        let (head, _) = page.split_once(BEGIN).expect("the line where codes begin");
        let page = format!("{head}{BEGIN}\n{}", markdown());
        filetests::agree(path.as_ref(), &page).unwrap_or_else(|different| panic!("{different}"));
    }
}
