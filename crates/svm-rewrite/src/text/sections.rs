//! The sections of a text, by the directives that switch them and fill them.

/// What a section's contents mean to control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Instructions.
    Code,
    /// Data that is loaded.
    Data,
    /// The tables of exceptions.
    Unwinding,
    /// Its contents are not used for jumps.
    Debug,
}

/// The current section, by the directives that switch it.
#[derive(Debug)]
pub struct Sections {
    /// The current one.
    pub current: Section,
    previous: Section,
    pushed: Vec<(Section, Section)>,
}

impl Default for Sections {
    fn default() -> Sections {
        Sections {
            current: Section::Code,
            previous: Section::Code,
            pushed: Vec::new(),
        }
    }
}

impl Sections {
    /// Whether the current section holds data that is loaded.
    pub fn is_data(&self) -> bool {
        matches!(self.current, Section::Code | Section::Data)
    }

    /// Whether the current section holds code.
    pub fn is_code(&self) -> bool {
        self.current == Section::Code
    }

    /// Follows a directive.
    pub fn directive(&mut self, name: &[u8], rest: &[u8]) {
        match name {
            b".text" => self.enter(Section::Code),
            b".data" | b".bss" => self.enter(Section::Data),
            b".section" => self.enter(kind_of(rest)),
            b".pushsection" => {
                self.pushed.push((self.current, self.previous));
                self.enter(kind_of(rest));
            }
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
}

fn kind_of(arguments: &[u8]) -> Section {
    let name = arguments.strip_prefix(b"\"").unwrap_or(arguments);
    let starts = |prefix: &[u8]| name.starts_with(prefix);
    if starts(b".debug") || starts(b".eh_frame") || starts(b".note") || starts(b".stab") {
        Section::Debug
    } else if starts(b".gcc_except_table") {
        Section::Unwinding
    } else if starts(b".text") || is_executable(arguments) {
        Section::Code
    } else {
        Section::Data
    }
}

/// Whether flags, `.init.text,"ax",@progbits`, say that a section holds code.
fn is_executable(arguments: &[u8]) -> bool {
    let mut fields = arguments.split(|b| *b == b',').map(<[u8]>::trim_ascii);
    let flags = fields.nth(1).unwrap_or_default();
    flags.starts_with(b"\"") && flags.contains(&b'x')
}
