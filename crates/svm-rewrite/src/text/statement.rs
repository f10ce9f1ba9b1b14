//! Splits assembly text into statements: where each begins and ends, and of which kind
//! it is. The meaning of instructions is left to `as`.
//!
//! The lexical rules are those of GNU as for x86 ELF (as.info, "Syntax" and
//! "x86-Chars"): `#` to the end of the line and `/* */` are comments, `/` too as
//! the first character of a statement, `;` and newlines separate statements, strings
//! and character constants may hold any of these. `# 5 "x.c"`, `#APP` and `#NO_APP` are
//! comments by these rules.
//!
//! A newline in a comment ends a statement for the assembler of Debian 12 (2.40), and is a
//! blank for that of Debian 13 (2.44). It ends one here, and where the statement would go on
//! behind the comment the text is a [`Misread`].

use foldhash::HashSet;

use super::directives::{are_prefixes, is_end, is_repetition};
use super::expression::end_of_string;
use super::operand;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// `name:`
    Label,
    /// `name = expression`
    Assignment,
    /// `.name ...`
    Directive,
    /// `mnemonic operands`
    Instruction,
    /// A prefix as a statement of its own, such as `lock;` or `.byte 0x66`: part of the next
    /// instruction.
    Prefix,
    /// Text that may become other than one instruction: bodies of repetitions, and uses of
    /// macros.
    Opaque,
    /// The definition of a macro, which becomes nothing in its place.
    Definition,
}

/// One statement, by its bytes in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    pub kind: StatementKind,
    /// Its line, from 1.
    pub line: u32,
    /// Offset of its first byte in the text.
    pub start: u32,
    /// One past the name of label, symbol, directive or mnemonic.
    pub name_end: u32,
    /// One past the last byte, comments and trailing blanks excluded.
    pub end: u32,
}

impl Statement {
    /// Its name, of a label without the colon.
    pub fn name<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.start as usize..self.name_end as usize]
    }

    /// What follows the name.
    pub fn rest<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        text[self.name_end as usize..self.end as usize].trim_ascii_start()
    }

    /// Whether it is written as a directive.
    pub fn is_directive(&self, text: &[u8]) -> bool {
        text[self.start as usize] == b'.'
    }

    /// Whether all its operands are numbers.
    pub fn is_constant(&self, text: &[u8]) -> bool {
        let digits = |field: &[u8]| {
            field.first().is_some_and(u8::is_ascii_digit)
                && field.iter().all(u8::is_ascii_alphanumeric)
        };
        let mut fields = self.rest(text).split(|b| *b == b',');
        fields.all(|field| digits(field.trim_ascii()))
    }

    pub fn text<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.start as usize..self.end as usize]
    }
}

/// Bytes of the longest: `xacquire`, `rex.wrxb`.
const LONGEST_PREFIX: usize = 8;

/// Whether a word is a prefix of instructions, which `as` takes as a statement of its own; case does
/// not matter. `wait` is an instruction.
pub fn is_prefix(word: &[u8]) -> bool {
    let mut lower = [0; LONGEST_PREFIX];
    let Some(lower) = lower.get_mut(..word.len()) else {
        return false;
    };
    lower.copy_from_slice(word);
    lower.make_ascii_lowercase();
    match &*lower {
        b"lock" | b"rep" | b"repe" | b"repz" | b"repne" | b"repnz" | b"data16" | b"data32"
        | b"addr16" | b"addr32" | b"word" | b"dword" | b"aword" | b"adword" | b"cs" | b"ds"
        | b"es" | b"fs" | b"gs" | b"ss" | b"notrack" | b"bnd" | b"ht" | b"hnt" | b"xacquire"
        | b"xrelease" => true,
        [b'r', b'e', b'x', rest @ ..] => is_rex(rest),
        _ => false,
    }
}

/// Whether this is what stands behind `rex` in a prefix: `rex64xyz`, `rex.wrxb`, and each of these
/// with less.
fn is_rex(rest: &[u8]) -> bool {
    let bits = |rest: &[u8], of: &[u8]| rest.iter().all(|b| of.contains(b));
    match rest.strip_prefix(b".") {
        Some(set) => bits(set, b"wrxb"),
        None => bits(rest.strip_prefix(b"64").unwrap_or(rest), b"xyz"),
    }
}

/// Whether a statement is nothing but prefixes: `lock`, `cs ds`, `data16, data16`.
fn are_prefixes_alone(statement: &[u8]) -> bool {
    let statement = operand::without_comments(statement);
    let mut words = statement
        .split(|b| is(BLANK, *b) || matches!(b, b',' | b'/'))
        .filter(|word| !word.is_empty());
    words.all(is_prefix)
}

const SYMBOL: u8 = 1;
const BLANK: u8 = 2;
/// May end a statement or hide its end.
const SPECIAL: u8 = 4;

const CLASS: [u8; 256] = {
    let mut class = [0; 256];
    let mut c = 0;
    while c < 256 {
        let b = c as u8;
        if b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'@' | b'?') || b >= 128 {
            class[c] = SYMBOL;
        } else if matches!(b, b' ' | b'\t' | b'\r' | 0x0c) {
            class[c] = BLANK;
        } else if matches!(b, b'\n' | b';' | b'#' | b'/' | b'"' | b'\'') {
            class[c] = SPECIAL;
        }
        c += 1;
    }
    class
};

fn is(class: u8, byte: u8) -> bool {
    CLASS[usize::from(byte)] & class != 0
}

/// Splits a text into statements. This never fails; wrong splits are found when
/// statements are tied to the assembler's output.
pub fn split(text: &[u8]) -> Vec<Statement> {
    split_to_end(text).0
}

/// Where a text may be something else to an assembler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Misread {
    /// The line, from 1, in which the comment or string begins.
    pub line: u32,
    pub reason: &'static str,
}

/// What is appended to the text would be a part of it.
const OPEN: &str = "a comment or string begins here and does not end";
const JOINED: &str = "a comment begins here, inside a statement, and something follows its end \
    in a later line: to some assemblers that is a statement of its own, to others it is not";
const UNSCRUBBED: &str = "the assembler reads a text that begins so by other rules; leave the line \
    out";

/// The same, and the first place that may be misread, or else the end.
pub fn split_to_end(text: &[u8]) -> (Vec<Statement>, Option<Misread>) {
    let mut splitter = Splitter {
        text,
        at: 0,
        line: 1,
        // As compilers write them.
        statements: Vec::with_capacity(text.len() / 16),
        macros: HashSet::default(),
        opaque: 0,
        defining: false,
        misread: None,
    };
    if is_unscrubbed(text) {
        splitter.misread(1, UNSCRUBBED);
    }
    while splitter.next() {}
    (splitter.statements, splitter.misread)
}

/// Whether blanks and comments are not taken out before the assembler reads a text (gas/input-file.c).
fn is_unscrubbed(text: &[u8]) -> bool {
    let rest = text.strip_prefix(b"#NO_APP");
    rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_whitespace))
}

/// Whether a preprocessor's line, `# 5 "x.c"`, has a name that goes on in the next line.
fn has_open_name(line: &[u8]) -> bool {
    let number = line[1..].trim_ascii_start();
    let digits = number.iter().take_while(|b| b.is_ascii_digit()).count();
    let name = number[digits..].trim_ascii_start().strip_prefix(b"\"");
    digits > 0 && name.is_some_and(|name| end_of_string(name).is_none())
}

struct Splitter<'t> {
    text: &'t [u8],
    at: usize,
    line: u32,
    statements: Vec<Statement>,
    /// Names of macros, in lower case: so `as` compares them.
    macros: HashSet<Vec<u8>>,
    /// How many macro or repetition bodies are open.
    opaque: u32,
    /// Of these, the outermost is a macro's.
    defining: bool,
    misread: Option<Misread>,
}

impl<'t> Splitter<'t> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(b'\n')
    }

    fn skip(&mut self, class: u8) {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|b| !is(class, *b));
        self.at += end.unwrap_or(rest.len());
    }

    /// One separator, comment or statement; false at the end of the text.
    fn next(&mut self) -> bool {
        self.skip(BLANK);
        if self.at >= self.text.len() {
            return false;
        }
        match self.peek(0) {
            b'\n' => {
                self.at += 1;
                self.line += 1;
            }
            b';' => self.at += 1,
            b'#' => self.skip_preprocessors(),
            b'/' if self.peek(1) == b'*' => self.skip_block_comment(),
            b'/' => self.skip_line(),
            _ => self.statement(),
        }
        true
    }

    fn skip_line(&mut self) {
        let rest = &self.text[self.at..];
        let end = rest.iter().position(|b| *b == b'\n');
        self.at += end.unwrap_or(rest.len());
    }

    /// A comment, or what a preprocessor says of lines, which has a string.
    fn skip_preprocessors(&mut self) {
        let start = self.at;
        self.skip_line();
        let begins_line = start == 0 || matches!(self.text[start - 1], b'\n' | b';');
        if begins_line && has_open_name(&self.text[start..self.at]) {
            self.misread(self.line, OPEN);
        }
    }

    /// Behind what ends with so many bytes, if it began in `line`.
    fn close(&mut self, bytes: usize, line: u32) {
        self.at += bytes;
        if self.at > self.text.len() {
            self.at = self.text.len();
            self.misread(line, OPEN);
        }
    }

    fn misread(&mut self, line: u32, reason: &'static str) {
        self.misread.get_or_insert(Misread { line, reason });
    }

    fn skip_block_comment(&mut self) {
        let line = self.line;
        self.at += 2;
        while self.at < self.text.len() && !(self.peek(0) == b'*' && self.peek(1) == b'/') {
            self.line += u32::from(self.peek(0) == b'\n');
            self.at += 1;
        }
        self.close(2, line);
    }

    /// Behind a comment that ended a statement: to the end of its last line, if nothing but
    /// comments is there.
    fn skip_to_separator(&mut self, line: u32) {
        loop {
            self.skip(BLANK);
            match self.peek(0) {
                b'/' if self.peek(1) == b'*' => self.skip_block_comment(),
                b'\n' | b';' | b'#' => return,
                _ => return self.misread(line, JOINED),
            }
        }
    }

    fn skip_string(&mut self) {
        let line = self.line;
        self.at += 1;
        while self.at < self.text.len() && self.peek(0) != b'"' {
            if self.peek(0) == b'\\' {
                self.at += 1;
            }
            self.line += u32::from(self.peek(0) == b'\n');
            self.at += 1;
        }
        self.close(1, line);
    }

    /// `'c`, `'\n`, `'c'`
    fn skip_character(&mut self) {
        let bytes = if self.peek(1) == b'\\' { 3 } else { 2 };
        self.close(bytes, self.line);
        if self.peek(0) == b'\'' {
            self.at += 1;
        }
    }

    fn statement(&mut self) {
        let (start, line) = (self.at, self.line);
        if self.peek(0) == b'"' {
            self.skip_string();
        } else {
            self.skip(SYMBOL);
        }
        let name_end = self.at;
        self.skip(BLANK);
        let named = name_end > start;
        let kind = match self.peek(0) {
            b':' if named => {
                self.at += 1;
                StatementKind::Label
            }
            b'=' if named => StatementKind::Assignment,
            _ if self.text[start] == b'.' => StatementKind::Directive,
            _ => StatementKind::Instruction,
        };
        let end = match kind {
            StatementKind::Label => self.at,
            _ => self.skip_rest(name_end),
        };
        let statement = Statement {
            kind,
            line,
            start: start as u32,
            name_end: name_end as u32,
            end: end as u32,
        };
        let kind = self.judge(&statement);
        self.statements.push(Statement { kind, ..statement });
    }

    /// To the end of the statement; gives the end without trailing blanks.
    fn skip_rest(&mut self, name_end: usize) -> usize {
        let mut end = name_end;
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            let plain = rest.iter().position(|b| is(SPECIAL, *b));
            let plain = &rest[..plain.unwrap_or(rest.len())];
            let solid = plain.iter().rposition(|b| !is(BLANK, *b));
            end = solid.map_or(end, |last| self.at + last + 1);
            self.at += plain.len();
            match self.peek(0) {
                b'\n' | b';' | b'#' => break,
                b'/' if self.peek(1) == b'*' => {
                    let line = self.line;
                    self.skip_block_comment();
                    if self.line != line {
                        self.skip_to_separator(line);
                        break;
                    }
                    continue;
                }
                b'"' => self.skip_string(),
                b'\'' => self.skip_character(),
                _ => self.at += 1,
            }
            end = self.at;
        }
        end
    }

    fn judge(&mut self, statement: &Statement) -> StatementKind {
        match statement.kind {
            StatementKind::Directive => self.judge_directive(statement),
            _ if self.opaque > 0 => self.body(),
            StatementKind::Instruction => {
                let name = statement.name(self.text);
                if self.is_macro(name) {
                    StatementKind::Opaque
                } else if is_prefix(name) && are_prefixes_alone(statement.text(self.text)) {
                    StatementKind::Prefix
                } else {
                    StatementKind::Instruction
                }
            }
            other => other,
        }
    }

    fn judge_directive(&mut self, statement: &Statement) -> StatementKind {
        let name = statement.name(self.text);
        let kind = self.body();
        match name {
            b".macro" => {
                let name = statement.rest(self.text);
                let end = name.iter().position(|b| !is(SYMBOL, *b));
                let name = &name[..end.unwrap_or(name.len())];
                self.macros.insert(name.to_ascii_lowercase());
                self.defining |= self.opaque == 0;
                self.opaque += 1;
                self.body()
            }
            _ if is_repetition(name) => {
                self.opaque += 1;
                self.body()
            }
            _ if is_end(name) => {
                self.opaque = self.opaque.saturating_sub(1);
                self.defining &= self.opaque > 0;
                if kind == StatementKind::Directive {
                    StatementKind::Opaque
                } else {
                    kind
                }
            }
            _ if self.opaque > 0 => kind,
            _ if self.is_macro(name) => StatementKind::Opaque,
            b".byte" if are_prefixes(statement.rest(self.text)) => StatementKind::Prefix,
            _ => StatementKind::Directive,
        }
    }

    fn is_macro(&self, name: &[u8]) -> bool {
        !self.macros.is_empty() && self.macros.contains(&name.to_ascii_lowercase())
    }

    /// What a directive is that is in the body of a macro or repetition, if it is in one.
    fn body(&self) -> StatementKind {
        match (self.opaque, self.defining) {
            (0, _) => StatementKind::Directive,
            (_, true) => StatementKind::Definition,
            (_, false) => StatementKind::Opaque,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<(StatementKind, u32, String)> {
        let text = text.as_bytes();
        let show = |s: &Statement| {
            let text = String::from_utf8_lossy(s.text(text)).into_owned();
            (s.kind, s.line, text)
        };
        split(text).iter().map(show).collect()
    }

    fn texts(text: &str) -> Vec<String> {
        kinds(text).into_iter().map(|k| k.2).collect()
    }

    #[test]
    fn separators_and_comments() {
        assert_eq!(
            texts("a: nop # c ; d\n\tlock; addl $1,(%rax) ; ret\n# 1 \"x;y\"\n"),
            ["a:", "nop", "lock", "addl $1,(%rax)", "ret"]
        );
        assert_eq!(
            texts("/ whole line\n nop /* a\n;b */ ; ret"),
            ["nop", "ret"]
        );
        assert_eq!(
            texts("nop;/ c\nnop; / d; ret\na:/ e\n nop /* f\n */ ret /* g */ # h"),
            ["nop", "nop", "a:", "nop", "ret"]
        );
        assert_eq!(texts("#APP\n# 5 \"a.c\" 1\n\tnop\n#NO_APP\n"), ["nop"]);
    }

    #[test]
    fn strings_and_characters_hide_separators() {
        assert_eq!(
            texts(".string \"a;b#c\\\"d\" ; nop\n movb $';, %al # x\n movb $'\\'', %al"),
            [
                ".string \"a;b#c\\\"d\"",
                "nop",
                "movb $';, %al",
                "movb $'\\'', %al"
            ]
        );
    }

    #[test]
    fn kinds_of_statements() {
        use StatementKind::*;
        let found =
            kinds("1: .byte 1\nx = 5\nlock\naddl $1,(%rax)\nrep movsb\n{vex} nop\n.byte 0x66, 242");
        let found: Vec<StatementKind> = found.into_iter().map(|k| k.0).collect();
        assert_eq!(
            found,
            [
                Label, Directive, Assignment, Prefix, Instruction, Instruction, Instruction, Prefix
            ]
        );
    }

    /// What makes no instruction of its own, as `as` has it, and what makes one.
    #[test]
    fn all_prefixes_are_known() {
        for text in [
            "rex",
            "rexx",
            "rex64",
            "rex64xyz",
            "REX.B",
            "rex.wrxb",
            "word",
            "adword",
            "ht",
            "hnt",
            "cs ds",
            "cs,ds",
            "data16 /* a */ rex64",
            "XRELEASE",
        ] {
            assert_eq!(kinds(text)[0].0, StatementKind::Prefix, "{text}");
        }
        for text in [
            "wait", "fwait", "nop", "rep movsb", "rep/movsb", "lock/incl (%rdi)", "rexec", "ht x",
            "rex.q", "{rex} nop",
        ] {
            assert_eq!(kinds(text)[0].0, StatementKind::Instruction, "{text}");
        }
    }

    #[test]
    fn macros_are_opaque() {
        use StatementKind::*;
        let found = kinds(".macro M x\n nop\n.endm\n m 5\n.rept 2\nret\n.endr\nret");
        let found: Vec<StatementKind> = found.into_iter().map(|k| k.0).collect();
        assert_eq!(
            found,
            [
                Definition, Definition, Definition, Opaque, Opaque, Opaque, Opaque, Instruction
            ]
        );
    }

    #[test]
    fn what_goes_on_behind_a_comment_over_lines_is_found() {
        let misread = |text: &str| split_to_end(text.as_bytes()).1;
        let joined = |line| {
            Some(Misread {
                line,
                reason: JOINED,
            })
        };
        for text in [
            "nop /* a\n */ ret",
            "nop /* a\n */ /* b */ret",
            "nop /* a\n */ /* b\n */ ret",
            "rep /* a\n */ movsb",
            ".byte 1 /*\n*/ , 2",
            "nop /* a\n */ / b",
            "x = 1 /*\n*/ y:",
        ] {
            assert_eq!(misread(text), joined(1), "{text:?}");
            assert_eq!(misread(&format!("ret\n{text}")), joined(2), "{text:?}");
        }
        for text in [
            "nop /* a\n */\nret",
            "nop /* a\n */ ; ret",
            "nop /* a\n */ # b",
            "nop /* a\n */ ",
            "nop /* a\n */ /* b */\nret",
            "/* a\n */ nop",
            "x: /* a\n */ nop",
            "nop; /* a\n */ ret",
            "nop /* a */ ; ret",
            ".ascii \"/*\n*/ \", \"b\"",
            "nop /* a\n */ /* b\n */",
        ] {
            assert_eq!(misread(text), None, "{text:?}");
        }
    }

    #[test]
    fn what_does_not_end_is_found_by_its_line() {
        let open = |text: &str| split_to_end(text.as_bytes()).1.map(|place| place.line);
        for text in [
            "nop\n/* a\n", "nop\n /*", "nop\n /*/", "nop\nnop /* *", "\n.ascii \"a\n",
        ] {
            assert_eq!(open(text), Some(2), "{text:?}");
        }
        for text in [
            "nop\n# 5 \"a\n\" \n",
            "nop\n#7\"a\\\"\n",
            "nop\nnop;# 5 \"a",
        ] {
            assert_eq!(open(text), Some(2), "{text:?}");
        }
        for text in ["\n.ascii \"a\\", "\n.byte '", "\n.byte '\\", "\n.ascii \""] {
            assert_eq!(open(text), Some(2), "{text:?}");
        }
        for text in [
            "", "/* a */", "/**/", "# /*", ".byte 'a", ".byte '\\n", ".ascii \"/*\"", "/",
            "# 5 \"a.c\" 2", "# 5 a\"", " # 5 \"a", "# a 5 \"", "nop # 5 \"", "#APP",
            "\n#NO_APP\n",
        ] {
            assert_eq!(open(text), None, "{text:?}");
        }
        assert_eq!(open("#NO_APP\n"), Some(1));
    }

    #[test]
    fn lines_are_counted_through_comments_and_strings() {
        let found = kinds("nop\n/* a\n b */ ret\n\n nop");
        let lines: Vec<u32> = found.into_iter().map(|k| k.1).collect();
        assert_eq!(lines, [1, 3, 5]);
    }
}
