//! A Markdown page as the sessions in it.
//!
//! ````text
//! ```console              a session: lines that begin with `$ ` are run by sh, the
//! $ twin verify x.o       others are what they print, standard error included
//! x.o: verified: ...      `...` at the end of a line is any rest of that line,
//! ...                     on a line of its own any number of lines
//! ```
//!
//! ```asm file=x.s         a file that later sessions find in their directory
//! ```
//! ````
//!
//! Blocks of any other kind are only read.

/// Lines of a page.
pub struct Page<'t> {
    pub parts: Vec<Part<'t>>,
}

pub enum Part<'t> {
    /// Copied.
    Text(&'t str),
    /// A command with what it prints, by lines.
    Command(&'t str, Vec<&'t str>),
    /// The content of a file.
    File(&'t str, Vec<&'t str>),
}

enum State {
    Outside,
    Session,
    File,
    Other,
}

impl<'t> Page<'t> {
    pub fn parse(text: &'t str) -> Page<'t> {
        let mut parts = Vec::new();
        let mut state = State::Outside;
        for line in text.lines() {
            let fence = line.strip_prefix("```");
            match (&state, fence) {
                (State::Outside, Some(info)) => {
                    parts.push(Part::Text(line));
                    state = match (info, info.split_once("file=")) {
                        ("console", _) => State::Session,
                        (_, Some((_, name))) => {
                            parts.push(Part::File(name, Vec::new()));
                            State::File
                        }
                        _ => State::Other,
                    };
                }
                (_, Some(_)) => {
                    parts.push(Part::Text(line));
                    state = State::Outside;
                }
                (State::Session, None) => match (line.strip_prefix("$ "), parts.last_mut()) {
                    (Some(command), _) => parts.push(Part::Command(command, Vec::new())),
                    (None, Some(Part::Command(_, output))) => output.push(line),
                    _ => parts.push(Part::Text(line)),
                },
                (State::File, None) => match parts.last_mut() {
                    Some(Part::File(_, content)) => content.push(line),
                    _ => unreachable!("a file's content follows its name"),
                },
                (State::Outside | State::Other, None) => parts.push(Part::Text(line)),
            }
        }
        Page { parts }
    }
}

/// Whether these lines match the pattern.
pub fn matches(pattern: &[&str], lines: &[&str]) -> bool {
    match (pattern.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((&"...", rest)), _) => {
            (0..=lines.len()).any(|skipped| matches(rest, &lines[skipped..]))
        }
        (Some((wanted, pattern)), Some((line, lines))) => {
            same(wanted, line) && matches(pattern, lines)
        }
        _ => false,
    }
}

fn same(wanted: &str, line: &str) -> bool {
    match wanted.strip_suffix("...") {
        Some(start) => line.starts_with(start),
        None => wanted == line,
    }
}

/// The text with each number, decimal with commas or hexadecimal, as one `#`.
pub fn without_numbers(text: &str) -> String {
    let mut all = String::new();
    let mut inside = false;
    for c in text.chars() {
        // A hexadecimal number begins with a digit, as an offset does: 0x1f.
        let goes_on = inside && (c.is_ascii_hexdigit() || c == 'x' || c == ',');
        if !c.is_ascii_digit() && !goes_on {
            all.push(c);
        } else if !inside {
            all.push('#');
        }
        inside = c.is_ascii_digit() || goes_on;
    }
    all
}

/// The lines in the pattern's form: where it leaves out the middle, the same number of
/// lines before and after.
pub fn renewed(pattern: &[&str], lines: &[&str]) -> Vec<String> {
    let owned = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect();
    let Some(gap) = pattern.iter().position(|line| *line == "...") else {
        return owned(lines);
    };
    let (head, tail) = (gap, pattern.len() - gap - 1);
    if head + tail >= lines.len() {
        return owned(lines);
    }
    [&lines[..head], &["..."], &lines[lines.len() - tail..]]
        .concat()
        .iter()
        .map(|line| (*line).to_owned())
        .collect()
}

#[test]
fn left_out_is_what_the_pattern_leaves_out() {
    assert!(matches(&["a", "...", "d"], &["a", "b", "c", "d"]));
    assert!(matches(&["a b ..."], &["a b c d"]));
    assert!(matches(&["..."], &[]));
    assert!(!matches(&["a", "..."], &["b"]));
    assert!(!matches(&["a"], &["a", "b"]));
    assert_eq!(
        renewed(&["x", "...", "y"], &["1", "2", "3"]),
        ["1", "...", "3"]
    );
    assert_eq!(renewed(&["x"], &["1", "2"]), ["1", "2"]);
}

#[test]
fn numbers_are_one_sign() {
    assert_eq!(
        without_numbers("x.o: 44,666 checks, .text+0xd99 in r10d"),
        "x.o: # checks, .text+# in r#"
    );
    assert_ne!(without_numbers("1 refused"), without_numbers("1 verified"));
}

#[test]
fn a_session_is_commands_and_their_output() {
    let text = "# Title\n```console\n$ a\nb\n$ c\n```\n```asm file=x.s\nret\n```\n";
    let page = Page::parse(text);
    let command = |part: &Part<'static>| match part {
        Part::Command(command, output) => Some((*command, output.clone())),
        Part::Text(_) | Part::File(..) => None,
    };
    let commands: Vec<_> = page.parts.iter().filter_map(command).collect();
    assert_eq!(commands, [("a", vec!["b"]), ("c", vec![])]);
    assert!(
        page.parts
            .iter()
            .any(|p| matches!(p, Part::File("x.s", c) if c == &["ret"]))
    );
}
