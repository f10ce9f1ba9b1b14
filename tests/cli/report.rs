//! Reports, compared with their document: `docs/spec/report.md`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::{DRIVER, Sandbox, privileged};

/// A row of a table of fields.
struct Field {
    /// Names of types, as JSON has them.
    types: Vec<String>,
    always: bool,
}

/// The tables of fields, by their headings.
fn document() -> BTreeMap<String, BTreeMap<String, Field>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/spec/report.md");
    let page = std::fs::read_to_string(path).expect("the document");
    let mut tables: BTreeMap<String, BTreeMap<String, Field>> = BTreeMap::new();
    let mut heading = "";
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            heading = title;
        }
        let cells: Vec<_> = line.split('|').map(str::trim).collect();
        if let ["", name, types, there, _, ""] = cells[..]
            && let Some(name) = name.strip_prefix('`').and_then(|n| n.strip_suffix('`'))
        {
            let field = Field {
                types: types.split(" or ").map(str::to_owned).collect(),
                always: there == "always",
            };
            tables
                .entry(heading.to_owned())
                .or_default()
                .insert(name.to_owned(), field);
        }
    }
    tables
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    }
}

/// Compares an object with its table: no field more, none of another type, none missing.
/// Notes which fields were there.
fn compare(object: &Value, table: &BTreeMap<String, Field>, seen: &mut BTreeMap<String, usize>) {
    let object = object.as_object().expect("an object");
    for (name, value) in object {
        let field = table
            .get(name)
            .unwrap_or_else(|| panic!("`{name}` is not documented"));
        assert!(
            field.types.iter().any(|t| t == type_of(value)),
            "`{name}` is {value}, not {:?}",
            field.types
        );
        *seen.entry(name.clone()).or_default() += 1;
    }
    for (name, _) in table.iter().filter(|(_, field)| field.always) {
        assert!(object.contains_key(name), "no `{name}` in {object:?}");
    }
}

/// A run with results and refusals of every kind.
fn run(report: &str) -> (Sandbox, Vec<u8>) {
    let sandbox = Sandbox::with_driver();
    sandbox.assemble("evil.o", &privileged(2).replace("hlt", "vmlaunch"));
    sandbox.write("evil.s", privileged(1).replace("hlt", "vmlaunch"));
    sandbox.write("text.s", DRIVER.replace("ret", "jmp __x86_return_thunk"));
    sandbox.write("empty.o", "");
    let inputs = [
        "driver.o", "evil.o", "missing.o", "empty.o", "evil.s", "text.s",
    ];
    let options = [
        "rewrite", "--target", "linux", "-d", "out", "--report", report,
    ];
    let outcome = sandbox.run(&[&options[..], &inputs].concat());
    assert_eq!(outcome.status, 2, "{}", outcome.stderr);
    let bytes = sandbox.read(report);
    (sandbox, bytes)
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).expect("JSON")
}

#[test]
fn every_field_of_a_verification_is_documented_and_there() {
    let sandbox = Sandbox::with_driver();
    let stores = ["--target", "linux", "--accesses", "stores"];
    let made = sandbox.run(&[&["rewrite"], &stores[..], &["driver.o", "-o", "out.ko"]].concat());
    assert_eq!(made.status, 0, "{}", made.stderr);
    let full = ["rewrite", "--target", "linux", "driver.o", "-o", "full.ko"];
    assert_eq!(sandbox.run(&full).status, 0);
    let files = [
        "--format", "json", "--check-original", "driver.o", "out.ko", "full.ko", "driver.o",
        "missing.ko",
    ];
    let outcome = sandbox.run(&[&["verify"], &stores[..], &files].concat());
    let list = json(&outcome.stdout);
    let list = list.as_array().expect("a list");
    let verdicts: Vec<_> = list.iter().map(|one| one["verdict"].as_str()).collect();
    let expected = ["writes-checked", "refused", "refused", "unreadable"].map(Some);
    assert_eq!(verdicts, expected, "{}", outcome.stderr);
    let table = &document()["What `twin verify` prints"];
    let mut seen = BTreeMap::new();
    for one in list {
        compare(one, table, &mut seen);
    }
    for name in table.keys() {
        assert!(
            seen.contains_key(name),
            "`{name}` is documented and never there"
        );
    }
    let mut violations = Vec::new();
    for one in list {
        violations.extend(one["violations"].as_array().expect("a list"));
    }
    assert!(!violations.is_empty());
    for one in violations {
        compare(one, &document()["Violations"], &mut BTreeMap::new());
    }
    assert_eq!(list[0]["accesses"], "stores");
    assert_eq!(list[0]["counts"]["confined"], "stores");
    assert_ne!(list[0]["counts"]["accesses"]["unconfined"], 0);
}

#[test]
fn every_field_is_documented_and_every_documented_field_is_there() {
    let tables = document();
    let (_, bytes) = run("r.json");
    let mut report = json(&bytes);
    let lists = report.as_object_mut().expect("an object");
    let mut take = |name: &str| match lists.remove(name) {
        Some(Value::Array(list)) => list,
        other => panic!("{name}: {other:?}"),
    };
    let parts = [
        ("Sites", take("sites")),
        ("Files", take("files")),
        ("Refusals", take("refusals")),
    ];
    compare(&report, &tables["The report"], &mut BTreeMap::new());
    for (heading, list) in parts {
        let mut seen = BTreeMap::new();
        for object in &list {
            compare(object, &tables[heading], &mut seen);
        }
        // A defect of twin is not at hand.
        let documented = tables[heading].keys().filter(|name| *name != "violation");
        let missing: Vec<_> = documented
            .filter(|name| !seen.contains_key(*name))
            .collect();
        assert!(missing.is_empty(), "{heading}: no {missing:?}");
    }
    assert_eq!(report["version"], 1);
}

#[test]
fn json_lines_have_the_same_objects_file_by_file() {
    let (_, document) = run("r.json");
    let (_, lines) = run("r.jsonl");
    let document = json(&document);
    let text = String::from_utf8(lines).expect("UTF-8");
    let mut lines: Vec<Value> = text.lines().map(|line| json(line.as_bytes())).collect();
    let mut kinds = Vec::new();
    for line in &mut lines {
        let kind = line.as_object_mut().and_then(|o| o.remove("record"));
        kinds.push(
            kind.and_then(|k| k.as_str().map(str::to_owned))
                .expect("a kind"),
        );
    }
    let of = |kind: &str| -> Vec<&Value> {
        let all = lines.iter().zip(&kinds);
        all.filter(|(_, k)| *k == kind)
            .map(|(line, _)| line)
            .collect()
    };
    for (kind, list) in [
        ("site", "sites"),
        ("file", "files"),
        ("refusal", "refusals"),
    ] {
        let list: Vec<_> = document[list].as_array().expect("a list").iter().collect();
        assert!(!list.is_empty());
        assert_eq!(of(kind), list);
    }
    assert_eq!((kinds[0].as_str(), of("report").len()), ("report", 1));
    assert_eq!(lines[0]["version"], document["version"]);
    // What is said of a file comes before the file, and after the file before it.
    let mut files = of("file").into_iter();
    let mut file = files.next();
    for (line, kind) in lines.iter().zip(&kinds).skip(1) {
        assert_eq!(Some(&line["file"]), file.map(|f| &f["file"]));
        if kind == "file" {
            file = files.next();
        }
    }
}

#[test]
fn a_report_of_nothing_is_a_report() {
    let sandbox = Sandbox::new();
    for report in ["r.json", "r.jsonl"] {
        sandbox.write("list", "");
        let options = [
            "rewrite", "--files-from", "list", "-d", "out", "--report", report,
        ];
        sandbox.run(&options).ok();
        assert_eq!(json(&sandbox.read(report))["version"], 1);
    }
}
