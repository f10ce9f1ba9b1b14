//! Programs of this workspace that execute rewritten code, or decide by the processor: tests that cargo and make have
//! built, and the testbed under each scheme.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use super::processors::Program;
use super::{Error, io, package, target};

/// Tests of a package: all of its targets, or those named, with the harness's filter.
struct Suite {
    package: &'static str,
    targets: &'static [&'static str],
    filter: &'static str,
}

const SUITES: [Suite; 4] = [
    Suite {
        package: "e1000-sim",
        targets: &[],
        filter: "",
    },
    Suite {
        package: "conformance",
        targets: &["executed", "replayed", "overflow", "wild", "entries"],
        filter: "",
    },
    Suite {
        package: "svm-rewrite",
        targets: &["threads", "programs"],
        filter: "",
    },
    Suite {
        package: "twin",
        targets: &["cli"],
        filter: "run::",
    },
];

/// The schemes of the testbed.
const SCHEMES: [&str; 4] = ["stlb", "paper", "window32", "window"];

/// All of them, in the order of their names. cargo builds what is not.
///
/// # Errors
/// cargo fails, or what make builds is not there.
pub fn programs() -> Result<Vec<Program>, Error> {
    let mut programs = made()?;
    programs.extend(SCHEMES.iter().map(|scheme| testbed(scheme)));
    programs.extend(tests()?);
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// The tests of the runtime and of the hot routines, natively and rewritten.
fn made() -> Result<Vec<Program>, Error> {
    let runtime = target("../runtime");
    let mut found = below(&runtime.join("build"))?;
    found.extend(below(&runtime.join("hot/build"))?);
    Ok(found)
}

fn below(directory: &Path) -> Result<Vec<Program>, Error> {
    let missing = || Error::Missing {
        what: "a directory of the runtime's tests, which `make test-runtime` builds",
        path: directory.to_owned(),
    };
    let directory = directory.canonicalize().map_err(|_| missing())?;
    let entries = io(
        directory.display().to_string(),
        std::fs::read_dir(&directory),
    )?;
    let paths = entries.flatten().map(|entry| entry.path());
    let programs: Vec<Program> = paths
        .filter(|path| path.extension().is_none())
        .filter_map(|path| {
            let name = path
                .file_name()?
                .to_str()?
                .strip_prefix("test-")?
                .to_owned();
            Some(Program {
                name: format!("runtime-{name}"),
                directory: directory.clone(),
                command: vec![path.to_str()?.to_owned()],
            })
        })
        .collect();
    match programs.is_empty() {
        true => Err(missing()),
        false => Ok(programs),
    }
}

/// The stock driver in the testbed, natively and rewritten.
fn testbed(scheme: &str) -> Program {
    let root = target("..");
    let place = |path: PathBuf| path.to_string_lossy().into_owned();
    let words = "--path native,twin --packets 100 --turns 0 --scheme";
    let mut command = vec![place(target("debug/twin-run")), place(package("e1000.ko"))];
    command.extend(words.split(' ').map(str::to_owned));
    command.push(scheme.to_owned());
    Program {
        name: format!("testbed-{scheme}"),
        directory: root,
        command,
    }
}

/// cargo's tests.
fn tests() -> Result<Vec<Program>, Error> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["test", "--workspace", "--no-run", "--message-format=json"])
        .current_dir(target(".."))
        .stderr(Stdio::inherit())
        .output();
    let output = io("cargo test --no-run", output)?;
    if !output.status.success() {
        let failed = std::io::Error::other(output.status.to_string());
        return io("cargo test --no-run", Err(failed));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(test).collect())
}

/// A test, by cargo's line about what it has built.
fn test(line: &str) -> Option<Program> {
    let built: Value = serde_json::from_str(line).ok()?;
    let executable = built["executable"].as_str()?;
    built["profile"]["test"].as_bool()?.then_some(())?;
    let directory = Path::new(built["manifest_path"].as_str()?).parent()?;
    let target = built["target"]["name"].as_str()?;
    let package = package_of(built["package_id"].as_str()?)?;
    let suite = SUITES.iter().find(|suite| {
        suite.package == package && (suite.targets.is_empty() || suite.targets.contains(&target))
    })?;
    let mut command = vec![executable.to_owned()];
    if !suite.filter.is_empty() {
        command.push(suite.filter.to_owned());
    }
    Some(Program {
        name: format!("{package}-{target}"),
        directory: directory.to_owned(),
        command,
    })
}

/// The name in a package's id: `path+file:///place/NAME#0.1.0`, or `path+file:///place#NAME@0.1.0` where the
/// directory is called otherwise (cargo's package id specifications).
fn package_of(id: &str) -> Option<&str> {
    let (place, version) = id.split_once('#')?;
    match version.split_once('@') {
        Some((name, _)) => Some(name),
        None => place.rsplit('/').next(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(package: &str, target: &str, test: bool) -> String {
        format!(
            r#"{{"reason":"compiler-artifact","package_id":"{package}","manifest_path":"/w/c/Cargo.toml","target":{{"name":"{target}"}},"profile":{{"test":{test}}},"executable":"/w/target/{target}"}}"#
        )
    }

    #[test]
    fn tests_of_the_suites_are_programs() {
        let of = |line: &str| test(line).map(|program| (program.name, program.command));
        let one = of(&built("path+file:///w/c/e1000-sim#0.1.0", "together", true));
        let command = vec!["/w/target/together".to_owned()];
        assert_eq!(one, Some(("e1000-sim-together".to_owned(), command)));
        let filtered = of(&built("path+file:///w/main#twin@0.1.0", "cli", true));
        assert_eq!(filtered.unwrap().1[1..], ["run::".to_owned()]);
        assert_eq!(
            of(&built("path+file:///w/c/e1000-sim#0.1.0", "twin", false)),
            None
        );
        assert_eq!(
            of(&built("path+file:///w/c/svm-verify#0.1.0", "good", true)),
            None
        );
        assert_eq!(of("not of cargo"), None);
    }
}
