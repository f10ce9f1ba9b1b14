//! Numbers and words for people.

/// A number with its thousands apart: `66,000`.
pub fn number(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of things: `1 function`, `2 functions`. `thing` is singular and
/// takes a plain plural.
pub fn count(n: u64, thing: &str) -> String {
    let plural = match (n, thing.ends_with("ss")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{} {thing}{plural}", number(n))
}

/// A text with names of anybody's choosing in it, as one line that a terminal only shows: what
/// [`acts`] but the tab as `\xHH`.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    show(&mut out, text, |c| acts(c) && c != '\t');
    out
}

/// Whether a character does something where text is shown: a control character, a break of the
/// line, or one that turns the order of those around it, so that a name is read as another one
/// (Unicode Standard Annexes 9, section 2, and 14, class BK).
pub(crate) fn acts(c: char) -> bool {
    let breaks = matches!(c, '\u{2028}' | '\u{2029}');
    let embeds = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let marks = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}');
    c.is_control() || breaks || embeds || marks
}

/// Adds a text, with each character for which `hidden` says so as `\xHH` for its bytes.
pub(crate) fn show(out: &mut String, text: &str, hidden: impl Fn(char) -> bool) {
    for c in text.chars() {
        match hidden(c) {
            true => show_bytes(out, c.encode_utf8(&mut [0; 4]).as_bytes()),
            false => out.push(c),
        }
    }
}

/// Adds bytes as `\xHH`.
pub(crate) fn show_bytes(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        out.push_str(&format!("\\x{byte:02x}"));
    }
}

/// The same for a text that has lines of its own.
pub fn visible(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(one_line).collect();
    lines.join("\n")
}

/// `part` of `whole` in per cent, one decimal; 0 if `whole` is 0.
pub fn percent(part: u64, whole: u64) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

/// Words of a text in lines of at most `columns`, each after `indent`. A longer
/// word has a line of its own.
pub fn wrap(text: &str, columns: usize, indent: &str) -> String {
    let mut out = String::new();
    let mut used = 0;
    for word in text.split_whitespace() {
        let width = word.chars().count();
        if used > 0 && indent.len() + used + 1 + width <= columns {
            out.push(' ');
            used += 1 + width;
        } else {
            out.push_str(if used > 0 { "\n" } else { "" });
            out.push_str(indent);
            used = width;
        }
        out.push_str(word);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_neither_move_a_terminals_cursor_nor_turn_its_text() {
        assert_eq!(one_line("a\tb\n\x1b[2J"), "a\tb\\x0a\\x1b[2J");
        assert_eq!(one_line("x\u{9b}2J"), "x\\xc2\\x9b2J");
        assert_eq!(one_line("ok\u{202e}o.lived"), "ok\\xe2\\x80\\xaeo.lived");
        assert_eq!(one_line("größer, שלום"), "größer, שלום");
    }

    #[test]
    fn thousands_are_set_apart() {
        assert_eq!(
            ["0", "999", "1,000", "66,000", "1,234,567"],
            [0, 999, 1000, 66_000, 1_234_567]
                .map(number)
                .each_ref()
                .map(String::as_str)
        );
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("a bc  def ghij", 8, "  "), "  a bc\n  def\n  ghij");
        assert_eq!(wrap("longer-than-that x", 8, ""), "longer-than-that\nx");
    }

    #[test]
    fn things_are_counted_in_words() {
        assert_eq!(
            (count(1, "check"), count(2, "access")),
            ("1 check".into(), "2 accesses".into())
        );
    }
}
