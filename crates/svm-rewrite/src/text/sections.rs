//! The sections of a text, by the directives that switch them and fill them.

use foldhash::HashMap;

/// What a section's contents mean to control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Instructions.
    Code,
    /// Data that is loaded.
    Data,
    /// The tables of exceptions.
    Unwinding,
    /// Not loaded, or read by unwinders: its contents are not used for jumps.
    Debug,
}

/// The current section, by the directives that switch it.
#[derive(Debug)]
pub struct Sections<'t> {
    /// The current one.
    pub current: Section,
    previous: Section,
    pushed: Vec<(Section, Section)>,
    /// Those that were named: a section's flags need to be said once.
    known: HashMap<&'t [u8], Section>,
}

impl Default for Sections<'_> {
    fn default() -> Self {
        Sections {
            current: Section::Code,
            previous: Section::Code,
            pushed: Vec::new(),
            known: HashMap::default(),
        }
    }
}

impl<'t> Sections<'t> {
    /// Whether the current section holds data that is loaded.
    pub fn is_data(&self) -> bool {
        matches!(self.current, Section::Code | Section::Data)
    }

    /// Whether the current section holds code.
    pub fn is_code(&self) -> bool {
        self.current == Section::Code
    }

    /// Follows a directive.
    pub fn directive(&mut self, name: &[u8], rest: &'t [u8]) {
        match name {
            b".text" => self.enter(Section::Code),
            b".data" | b".bss" => self.enter(Section::Data),
            b".section" => self.enter_named(rest),
            b".pushsection" => {
                self.pushed.push((self.current, self.previous));
                self.enter_named(rest);
            }
            // It is of the same section.
            b".subsection" => self.enter(self.current),
            b".popsection" => {
                if let Some((current, previous)) = self.pushed.pop() {
                    (self.current, self.previous) = (current, previous);
                }
            }
            b".previous" => std::mem::swap(&mut self.current, &mut self.previous),
            _ => {}
        }
    }

    fn enter(&mut self, section: Section) {
        self.previous = self.current;
        self.current = section;
    }

    fn enter_named(&mut self, arguments: &'t [u8]) {
        let name = name_of(arguments);
        let kind = *self
            .known
            .entry(name)
            .or_insert_with(|| kind_of(name, arguments));
        self.enter(kind);
    }
}

/// The name of a section, which may be in quotes.
fn name_of(arguments: &[u8]) -> &[u8] {
    let name = arguments.split(|b| *b == b',').next().unwrap_or_default();
    let name = name.trim_ascii();
    let inner = name.strip_prefix(b"\"");
    inner.and_then(|n| n.strip_suffix(b"\"")).unwrap_or(name)
}

fn kind_of(name: &[u8], arguments: &[u8]) -> Section {
    let starts = |prefix: &[u8]| name.starts_with(prefix);
    let is_information = starts(b".debug") || starts(b".note") || starts(b".stab");
    if name == b".eh_frame" || is_information && !has_flag(arguments, b"a") {
        Section::Debug
    } else if starts(b".gcc_except_table") {
        Section::Unwinding
    // A number may have any flag.
    } else if starts(b".text") || has_flag(arguments, b"x0123456789") {
        Section::Code
    } else {
        Section::Data
    }
}

/// Whether a section has one of these flags: `.init.text,"ax",@progbits`.
fn has_flag(arguments: &[u8], wanted: &[u8]) -> bool {
    let mut fields = arguments.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let flags = fields.nth(1).unwrap_or_default();
    flags.starts_with(b"\"") && flags.iter().any(|flag| wanted.contains(flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_what_its_first_flags_say() {
        let mut sections = Sections::default();
        let mut enter = |name: &[u8], rest: &'static [u8]| {
            sections.directive(name, rest);
            sections.current
        };
        assert_eq!(enter(b".section", b"code, \"ax\""), Section::Code);
        assert_eq!(enter(b".data", b""), Section::Data);
        assert_eq!(enter(b".pushsection", b"\"code\""), Section::Code);
        assert_eq!(enter(b".popsection", b""), Section::Data);
        assert_eq!(enter(b".text", b""), Section::Code);
        assert_eq!(enter(b".subsection", b"1"), Section::Code);
        assert_eq!(enter(b".previous", b""), Section::Code);
        assert_eq!(enter(b".section", b".note.t,\"a\""), Section::Data);
        assert_eq!(enter(b".section", b".note.u"), Section::Debug);
        assert_eq!(enter(b".section", b".eh_frame_table,\"a\""), Section::Data);
    }
}
