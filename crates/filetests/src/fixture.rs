//! A fixture: assembly, and what is expected of it, as comments.
//!
//! ```text
//! # Base register alone.          the input, as the assembler takes it
//! f:      mov (%rdi),%rax
//!         ret
//!
//! # expect: stlb                  a section: its name,
//! #| f:                           and its lines
//! #|       mov %rdi,%rax
//! ```
//!
//! A section without lines is left out.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use libtest_mimic::Trial;

/// Begins the line that names a section.
const EXPECT: &str = "# expect: ";

/// Something that is expected of a fixture.
pub struct Section {
    name: &'static str,
    text: String,
}

impl Section {
    /// A text of any number of lines.
    pub fn new(name: &'static str, text: String) -> Section {
        Section { name, text }
    }

    /// Each item in a line of its own.
    pub fn of_lines(name: &'static str, items: &[impl Display]) -> Section {
        let lines = items.iter().map(|item| format!("{item}\n"));
        Section::new(name, lines.collect())
    }
}

/// A file below `tests/fixtures`.
#[derive(Clone)]
pub struct Fixture {
    path: PathBuf,
    /// All that stands above the first section.
    pub input: String,
}

impl Fixture {
    /// The fixtures of a folder below `tests/fixtures`, without those of folders in it.
    pub fn of(folder: &str) -> Vec<Fixture> {
        let files = crate::files(&root().join(folder), "s");
        files.into_iter().map(Fixture::read).collect()
    }

    /// Reads a file.
    pub fn read(path: PathBuf) -> Fixture {
        let text = std::fs::read_to_string(&path);
        let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let input = input(&text).to_owned();
        Fixture { path, input }
    }

    /// Its path below `tests/fixtures`, without the extension.
    pub fn name(&self) -> String {
        let path = self.path.strip_prefix(root()).unwrap_or(&self.path);
        path.with_extension("").display().to_string()
    }

    /// Its object.
    pub fn assemble(&self) -> Vec<u8> {
        crate::assemble(&self.input, &[])
    }

    /// Compares what was found with the sections of the file, or writes it.
    ///
    /// # Errors
    ///
    /// The lines that differ, unless they are written.
    pub fn expect(&self, found: &[Section]) -> Result<(), String> {
        crate::agree(&self.path, &text(&self.input, found))
    }

    /// The tests that compare what `find` makes of each fixture of a folder.
    pub fn tests(folder: &str, find: fn(&Fixture) -> Vec<Section>) -> impl Iterator<Item = Trial> {
        let fixtures = Fixture::of(folder).into_iter();
        fixtures.map(move |fixture| fixture.test(find))
    }

    /// A test of something that is not written in the file.
    pub fn property(&self, name: &str, check: fn(&Fixture)) -> Trial {
        let fixture = self.clone();
        Trial::test(format!("{}: {name}", self.name()), move || {
            check(&fixture);
            Ok(())
        })
    }

    /// The test that compares what `find` makes of the fixture.
    pub fn test(self, find: fn(&Fixture) -> Vec<Section>) -> Trial {
        Trial::test(self.name(), move || Ok(self.expect(&find(&self))?))
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures")
}

/// What stands above the sections of a fixture's text, without the blank line between.
fn input(text: &str) -> &str {
    let end = text.find(&format!("\n{EXPECT}"));
    &text[..end.unwrap_or(text.len())]
}

/// The text of a fixture.
fn text(input: &str, sections: &[Section]) -> String {
    let mut text = input.to_owned();
    for Section {
        name,
        text: expected,
    } in sections
    {
        let lines = expected.trim_end_matches('\n');
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{EXPECT}{name}\n"));
        for line in lines.split('\n') {
            let blank = if line.is_empty() { "" } else { " " };
            text.push_str(&format!("#|{blank}{line}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Section, input, text};

    #[test]
    fn the_input_of_a_text_is_what_it_was_made_of() {
        for source in ["f: ret\n", "f: ret\n\n", "# only a comment\n\n\n", ""] {
            let sections = [("a", "f:\n\n  ret\n"), ("none", ""), ("b", "x")];
            let sections = sections.map(|(name, text)| Section::new(name, text.to_owned()));
            let all = text(source, &sections);
            assert_eq!(input(&all), source);
            assert!(all.ends_with("\n# expect: a\n#| f:\n#|\n#|   ret\n\n# expect: b\n#| x\n"));
            assert_eq!(input(source), source);
        }
    }
}
