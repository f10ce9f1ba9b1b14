//! Proves the arithmetic that the verifier's proof depends on, for all numbers.
//!
//! ```text
//! svm-verify/src/domain/bounds.rs ──translate──> definitions ─┐
//! theorems.rs ─────────────────────────────────────────┴──> z3 ──> proved or not
//! ```
//!
//! The solver has to confirm three things:
//!
//! 1. each theorem follows, and its assumptions are possible;
//! 2. each of the false statements listed with the theorems is refuted;
//! 3. each change of one operator or constant in the verifier's functions (a
//!    *mutant*) makes some theorem false. A gap in the theorems would show here.
//!
//! Not proved here: that the verifier calls these functions with the right numbers
//! (its own tests, the mutants of checks and the attack objects test that), and joins
//! and renames of its abstract state, which a test enumerates
//! (`svm-verify/src/domain/laws.rs`). The solver itself is trusted.

mod theorems;
mod translate;

use std::io::Write;
use std::process::{Command, ExitCode, Stdio};

use theorems::{PRELUDE, REFUTED, THEOREMS, Theorem};
use translate::{SourceChange, number, translate};

/// The verifier's own source.
const BOUNDS: &str = include_str!("../../svm-verify/src/domain/bounds.rs");

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(problem) => {
            eprintln!("prove: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Result<bool, String> {
    let mut good = true;
    let mut judge = |name: &str, holds: bool, expected: bool| {
        let word = if holds { "proved" } else { "refuted" };
        if holds != expected {
            println!("NOT AS EXPECTED  {word}: {name}");
            good = false;
        }
    };
    let (proved, possible) = ask(THEOREMS, None)?;
    for ((theorem, proved), possible) in THEOREMS.iter().zip(proved).zip(possible) {
        judge(theorem.name, proved && possible, true);
    }
    let (refuted, _) = ask(REFUTED, None)?;
    for (theorem, proved) in REFUTED.iter().zip(refuted) {
        judge(theorem.name, proved, false);
    }
    let translation = translate(BOUNDS, &theorems::constants(), None)?;
    for (place, (function, change)) in translation.places.iter().enumerate() {
        let (proved, _) = ask(THEOREMS, Some(SourceChange { place }))?;
        let name = format!("all, in spite of {change} in {function}");
        judge(&name, proved.iter().all(|&p| p), false);
    }
    println!(
        "{} theorems about {} functions, {} false statements refuted, {} mutants refuted: {}",
        THEOREMS.len(),
        translation.functions.len(),
        REFUTED.len(),
        translation.places.len(),
        if good {
            "as expected"
        } else {
            "NOT as expected"
        }
    );
    Ok(good)
}

/// For each theorem, whether it follows, and whether its assumptions are possible.
fn ask(
    theorems: &[Theorem],
    mutant: Option<SourceChange>,
) -> Result<(Vec<bool>, Vec<bool>), String> {
    let mut text = String::from("(set-logic QF_BV)\n(define-sort W () (_ BitVec 64))\n");
    let constants = theorems::constants();
    for (path, value) in &constants {
        let name = path.rsplit("::").next().unwrap_or(path);
        text += &format!("(define-fun {name} () W {})\n", number(*value));
    }
    let translation = translate(BOUNDS, &constants, mutant)?;
    for (name, value) in &translation.constants {
        text += &format!("(define-fun {name} () W {value})\n");
    }
    text += PRELUDE;
    text += &translation.text;
    for theorem in theorems {
        text += "(push 1)\n";
        for name in theorem.about {
            text += &format!("(declare-const {name} W)\n");
        }
        text += &format!("(assert {})\n(check-sat)\n", theorem.given);
        text += &format!("(assert (not {}))\n(check-sat)\n(pop 1)\n", theorem.then);
    }
    let answers = solve(&text)?;
    if answers.len() != 2 * theorems.len() {
        return Err(format!("z3 gave {} answers", answers.len()));
    }
    let (possible, refutable): (Vec<_>, Vec<_>) =
        answers.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    Ok((refutable.iter().map(|found| !found).collect(), possible))
}

/// The solver's answer to each question: true if there are numbers that satisfy it.
fn solve(text: &str) -> Result<Vec<bool>, String> {
    let mut z3 = Command::new("z3")
        .args(["-in", "-smt2"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("z3: {e}; `make prove` installs it"))?;
    let mut input = z3.stdin.take().ok_or("z3 takes no input")?;
    input
        .write_all(text.as_bytes())
        .map_err(|e| format!("z3: {e}"))?;
    drop(input);
    let output = z3.wait_with_output().map_err(|e| format!("z3: {e}"))?;
    let answer = |line: &str| match line {
        "sat" => Ok(true),
        "unsat" => Ok(false),
        other => Err(format!("z3 says: {other}")),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(answer).collect()
}
