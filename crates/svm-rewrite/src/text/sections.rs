//! The sections of a text, by the directives that switch them and fill them.

use foldhash::HashMap;

use super::expression;

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

/// Where the assembler puts what comes next. It keeps the unwind information of each place apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Spot<'t> {
    section: &'t [u8],
    /// The expression that numbers it; empty is the first.
    subsection: &'t [u8],
}

/// A section, and the place in it.
#[derive(Clone, Copy, Debug)]
struct Now<'t> {
    kind: Section,
    spot: Spot<'t>,
}

/// The current section, by the directives that switch it.
#[derive(Debug)]
pub struct Sections<'t> {
    now: Now<'t>,
    previous: Now<'t>,
    pushed: Vec<(Now<'t>, Now<'t>)>,
    /// Those that were named: a section's flags need to be said once.
    known: HashMap<&'t [u8], Section>,
}

impl Default for Sections<'_> {
    fn default() -> Self {
        let now = Now {
            kind: Section::Code,
            spot: Spot {
                section: b".text",
                subsection: b"",
            },
        };
        Sections {
            now,
            previous: now,
            pushed: Vec::new(),
            known: HashMap::default(),
        }
    }
}

impl<'t> Sections<'t> {
    /// What the current section is.
    pub fn current(&self) -> Section {
        self.now.kind
    }

    /// Its name, which is a symbol of its start, too.
    pub fn name(&self) -> &'t [u8] {
        self.now.spot.section
    }

    /// Where in it the assembler is.
    pub fn spot(&self) -> Spot<'t> {
        self.now.spot
    }

    /// Whether the current section holds data that is loaded.
    pub fn is_data(&self) -> bool {
        matches!(self.current(), Section::Code | Section::Data)
    }

    /// Whether the current section holds code.
    pub fn is_code(&self) -> bool {
        self.current() == Section::Code
    }

    /// Whether what stands here is not run together with what others put into the same section:
    /// `.init` is code that runs on from object to object, and so may subsections.
    pub fn is_apart(&self) -> bool {
        let Spot {
            section,
            subsection,
        } = self.now.spot;
        subsection.is_empty() && (section == b".text" || section.starts_with(b".text."))
    }

    /// Follows a directive.
    pub fn directive(&mut self, name: &[u8], rest: &'t [u8]) {
        match name {
            b".text" => self.enter(Section::Code, b".text", rest),
            b".data" => self.enter(Section::Data, b".data", rest),
            b".bss" => self.enter(Section::Data, b".bss", rest),
            b".section" => self.enter_named(rest, b""),
            b".pushsection" => {
                self.pushed.push((self.now, self.previous));
                // A number behind the name is a subsection's.
                let second = field(rest, 1);
                self.enter_named(
                    rest,
                    if second.starts_with(b"\"") {
                        b""
                    } else {
                        second
                    },
                );
            }
            // It is of the same section.
            b".subsection" => self.enter(self.now.kind, self.now.spot.section, rest),
            b".popsection" => {
                if let Some((now, previous)) = self.pushed.pop() {
                    (self.now, self.previous) = (now, previous);
                }
            }
            b".previous" => std::mem::swap(&mut self.now, &mut self.previous),
            _ => {}
        }
    }

    fn enter(&mut self, kind: Section, section: &'t [u8], subsection: &'t [u8]) {
        let subsection = match subsection {
            b"0" => b"",
            other => other,
        };
        let spot = Spot {
            section,
            subsection,
        };
        self.previous = std::mem::replace(&mut self.now, Now { kind, spot });
    }

    fn enter_named(&mut self, arguments: &'t [u8], subsection: &'t [u8]) {
        let name = name_of(arguments);
        let kind = *self
            .known
            .entry(name)
            .or_insert_with(|| kind_of(name, arguments));
        self.enter(kind, name, subsection);
    }
}

/// The `n`th of the arguments of a directive.
fn field(arguments: &[u8], n: usize) -> &[u8] {
    let field = expression::split(arguments).nth(n);
    field.unwrap_or_default().trim_ascii()
}

/// The name of a section, which may be in quotes.
fn name_of(arguments: &[u8]) -> &[u8] {
    let name = field(arguments, 0);
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
    } else if is_codes(name) || has_flag(arguments, b"x0123456789") {
        Section::Code
    } else {
        Section::Data
    }
}

/// Whether a section holds code by its name, without flags (bfd/elf.c, `special_sections`).
fn is_codes(name: &[u8]) -> bool {
    let starts = |prefix: &&[u8]| name.starts_with(prefix);
    let prefixes: [&[u8]; 3] = [b".text", b".gnu.linkonce.t", b".ltext"];
    prefixes.iter().any(starts) || matches!(name, b".init" | b".fini" | b".plt")
}

/// Whether a section has one of these flags: `.init.text,"ax",@progbits`, or behind the number of a
/// subsection `.init.text,1,"ax"`.
fn has_flag(arguments: &[u8], wanted: &[u8]) -> bool {
    let mut fields = [1, 2].map(|n| field(arguments, n)).into_iter();
    let flags = fields.find(|flags| flags.starts_with(b"\""));
    flags.is_some_and(|flags| flags.iter().any(|flag| wanted.contains(flag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_section_is_what_its_first_flags_say() {
        let mut sections = Sections::default();
        let mut enter = |name: &[u8], rest: &'static [u8]| {
            sections.directive(name, rest);
            sections.current()
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
        assert_eq!(enter(b".pushsection", b"pushed,0,\"ax\""), Section::Code);
        assert_eq!(enter(b".section", b"\"a,b\",\"ax\""), Section::Code);
        assert_eq!(enter(b".section", b".init"), Section::Code);
        assert_eq!(enter(b".section", b".init_array,\"aw\""), Section::Data);
    }

    #[test]
    fn a_subsection_is_a_place_of_its_own() {
        let mut sections = Sections::default();
        let mut enter = |name: &[u8], rest: &'static [u8]| {
            sections.directive(name, rest);
            sections.spot()
        };
        let text = enter(b".text", b"0");
        let other = enter(b".subsection", b"1");
        assert_ne!(text, other);
        assert_eq!(enter(b".previous", b""), text);
        assert_eq!(enter(b".pushsection", b".text, 1"), other);
        assert_eq!(enter(b".popsection", b""), text);
        assert_ne!(enter(b".pushsection", b".fixup, \"ax\""), text);
        assert_eq!(enter(b".section", b"\".text\", \"ax\""), text);
    }
}
