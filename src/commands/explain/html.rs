//! Sites as one page for a browser: all functions in one JSON value, which the
//! page's script turns into elements function by function.
//!
//! ```text
//! {"file", "scheme", "instructions", "classes": ["heap", ...],
//!  "strings": ["mov (%rdi),%rax", ...],            each text once
//!  "functions": [{"name", "section", "rows": [ROW, ...]}, ...]}
//!
//! ROW   [offset, label or "", string] or, for a site, [offset, label, string, SITE]
//! SITE  {"c": class, "m": scheme, "s": scratch, "p": spills, "f": flags,
//!        "a": added instructions, "l": [LINE, ...]}
//! LINE  string; [label, string]; -1: what follows is out of line;
//!       [label, -1]: the label of what follows the site
//! ```

use std::collections::HashMap;

use command_line::text::one_line;
use elf_loader::Object;
use serde::Serialize;
use svm_rewrite::listing::{Line, Lister};
use svm_rewrite::{Rewritten, Site, shortened};

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

#[derive(Serialize)]
struct Data<'a> {
    file: &'a str,
    scheme: &'static str,
    instructions: u64,
    classes: Vec<String>,
    strings: Vec<String>,
    functions: Vec<Function>,
}

#[derive(Serialize)]
struct Function {
    name: String,
    section: String,
    rows: Vec<Row>,
}

/// One original instruction.
#[derive(Serialize)]
#[serde(untagged)]
enum Row {
    Kept(u64, String, usize),
    Site(u64, String, usize, Treated),
}

/// A site's sequence.
#[derive(Serialize)]
struct Treated {
    #[serde(rename = "c")]
    class: usize,
    #[serde(rename = "m", skip_serializing_if = "Option::is_none")]
    scheme: Option<&'static str>,
    #[serde(rename = "s", skip_serializing_if = "String::is_empty")]
    scratch: String,
    #[serde(rename = "p", skip_serializing_if = "String::is_empty")]
    spills: String,
    #[serde(rename = "f")]
    flags: &'static str,
    #[serde(rename = "a")]
    added: i64,
    #[serde(rename = "l")]
    lines: Vec<After>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum After {
    /// A string, or -1: elsewhere.
    Plain(i64),
    /// The same with a label.
    Labelled(String, i64),
}

/// Numbers for strings that occur often.
#[derive(Default)]
struct Table {
    all: Vec<String>,
    numbers: HashMap<String, usize>,
}

impl Table {
    fn number(&mut self, text: String) -> usize {
        let next = self.all.len();
        *self.numbers.entry(text).or_insert_with_key(|text| {
            self.all.push(one_line(text));
            next
        })
    }
}

/// The page for a file, or for one function of it.
pub fn page(
    file: &str,
    scheme: &'static str,
    original: &Object<'_>,
    rewritten: &Rewritten,
    function: Option<&str>,
) -> String {
    let sites = rewritten.sites.iter();
    let mut gathering = Gathering {
        sites: sites
            .map(|site| ((&*site.section, site.offset), site))
            .collect(),
        classes: Table::default(),
        strings: Table::default(),
    };
    let mut functions = Vec::new();
    for (id, section) in original.sections().filter(|(_, s)| s.is_code()) {
        let mut before = Lister::of(original, id);
        let Some(mut after) = Lister::new(&rewritten.object, &section.name) else {
            continue;
        };
        for (name, range) in before.functions() {
            if function.is_some_and(|wanted| wanted != name) {
                continue;
            }
            let lines = before.list(&range, &[]);
            functions.push(Function {
                name: one_line(&shortened(name)),
                section: one_line(&shortened(&*section.name)),
                rows: gathering.rows(&section.name, lines, &mut after),
            });
        }
    }
    // Where several names are at one place, all but one have no instructions.
    functions.retain(|function| !function.rows.is_empty());
    fill(&Data {
        file,
        scheme,
        instructions: functions.iter().map(|f| f.rows.len() as u64).sum(),
        classes: gathering.classes.all,
        strings: gathering.strings.all,
        functions,
    })
}

/// Data collected while functions are listed.
struct Gathering<'a> {
    /// By section and offset.
    sites: HashMap<(&'a str, u64), &'a Site>,
    classes: Table,
    strings: Table,
}

impl Gathering<'_> {
    /// The original's lines of a function with what became of each; `after`
    /// lists the rewritten section.
    fn rows(&mut self, section: &str, lines: Vec<Line>, after: &mut Lister<'_>) -> Vec<Row> {
        let row = |line| {
            let Line::Instruction {
                offset,
                label,
                text,
            } = line
            else {
                return None;
            };
            let label = one_line(&label.unwrap_or_default());
            let text = self.strings.number(text);
            Some(match self.sites.get(&(section, offset)) {
                None => Row::Kept(offset, label, text),
                Some(site) => {
                    let class = self.classes.number(site.class.as_str().to_owned());
                    let lines = after.list(&site.emitted, &site.out_of_line);
                    let treated = treated(site, class, lines, &mut self.strings);
                    Row::Site(offset, label, text, treated)
                }
            })
        };
        lines.into_iter().filter_map(row).collect()
    }
}

fn treated(site: &Site, class: usize, lines: Vec<Line>, strings: &mut Table) -> Treated {
    let after = |line| match line {
        Line::Instruction { label, text, .. } => {
            let text = strings.number(text) as i64;
            label.map_or(After::Plain(text), |label| {
                After::Labelled(one_line(&label), text)
            })
        }
        Line::Elsewhere => After::Plain(-1),
        Line::End(label) => After::Labelled(one_line(&label), -1),
    };
    Treated {
        class,
        scheme: site.scheme,
        scratch: site.scratch.join(" "),
        spills: site.spills.join(" "),
        flags: site.flags,
        added: site.added_instructions,
        lines: lines.into_iter().map(after).collect(),
    }
}

fn fill(data: &Data<'_>) -> String {
    // `<` occurs in JSON only inside strings; escaped there, no text can end the
    // element that the data stands in.
    let json = serde_json::to_string(data)
        .expect("the data has string keys and no failing parts")
        .replace('<', "\\u003c");
    let parts = [
        ("@TITLE@", escape(data.file)),
        ("@STYLE@", STYLE.to_owned()),
        ("@DATA@", json),
        ("@SCRIPT@", SCRIPT.to_owned()),
    ];
    // In the page's order, each searched for after the one before: so text inside a
    // part is never taken for a mark.
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len());
    let mut rest = PAGE;
    for (mark, text) in parts {
        let (before, after) = rest.split_once(mark).expect("the page has this mark");
        page.push_str(before);
        page.push_str(&text);
        rest = after;
    }
    page.push_str(rest);
    page
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_ends_the_script() {
        let data = Data {
            file: "</script><b>&",
            scheme: "stlb",
            instructions: 0,
            classes: vec!["heap".to_owned()],
            strings: vec!["@SCRIPT@".to_owned(), "</script>".to_owned()],
            functions: Vec::new(),
        };
        let page = fill(&data);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(page.contains("<title>&lt;/script>"));
        assert!(page.contains("\\u003c/script>"));
        assert_eq!(
            page.matches("@SCRIPT@").count(),
            1,
            "the name stays as it is"
        );
    }
}
