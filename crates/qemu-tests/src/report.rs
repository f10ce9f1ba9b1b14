//! Reads a guest's output: the results of its steps, the texts that it showed, and
//! the kernel's complaints.

use std::collections::BTreeMap;

use super::machine::GuestOutput;
use super::{Error, io};

/// Words of the kernel's complaints.
const COMPLAINTS: [&str; 14] = [
    "WARNING:",
    "BUG:",
    "Oops",
    "kernel BUG",
    "invalid opcode",
    "general protection",
    "Call Trace",
    "Kernel panic",
    "stack is not",
    "unwind",
    "rcu: INFO",
    "soft lockup",
    "no symbol version",
    "disagrees about version",
];

/// A step of the script.
#[derive(Clone, Debug)]
pub struct Step {
    /// As the script calls it.
    pub name: String,
    /// Whether it succeeded.
    pub ok: bool,
    /// Details.
    pub text: String,
}

/// A guest's output.
pub struct GuestReport {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// Texts by name.
    pub shown: BTreeMap<String, String>,
    /// Whether the script came to its end.
    pub done: bool,
    /// The kernel's console.
    pub console: String,
    /// Where console and results are.
    pub place: String,
}

impl GuestReport {
    /// Reads a guest's output.
    ///
    /// # Errors
    /// Its files cannot be read.
    pub fn read(outcome: &GuestOutput) -> Result<GuestReport, Error> {
        let text = |path: &std::path::Path| {
            let bytes = io(path.display().to_string(), std::fs::read(path))?;
            Ok(String::from_utf8_lossy(&bytes).replace('\r', ""))
        };
        let mut report = GuestReport {
            steps: Vec::new(),
            shown: BTreeMap::new(),
            done: false,
            console: text(&outcome.console)?,
            place: format!(
                "console: {}, results: {}, beside them qemu.log",
                outcome.console.display(),
                outcome.results.display()
            ),
        };
        report.results(&text(&outcome.results)?);
        Ok(report)
    }

    fn results(&mut self, text: &str) {
        let mut showing: Option<String> = None;
        for line in text.lines() {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (name, detail) = rest.split_once(' ').unwrap_or((rest, ""));
            match (word, &showing) {
                ("@end", _) => showing = None,
                (_, Some(name)) => {
                    let shown = self.shown.entry(name.clone()).or_default();
                    shown.push_str(line);
                    shown.push('\n');
                }
                ("@begin", None) => {
                    self.shown.insert(name.to_owned(), String::new());
                    showing = Some(name.to_owned());
                }
                ("@ok" | "@fail", None) => self.steps.push(Step {
                    name: name.to_owned(),
                    ok: word == "@ok",
                    text: detail.to_owned(),
                }),
                ("@done", None) => self.done = true,
                _ => {}
            }
        }
    }

    /// Adds a step that the host observed, with details.
    pub fn judge(&mut self, name: &str, ok: bool, text: String) {
        self.steps.push(Step {
            name: name.to_owned(),
            ok,
            text,
        });
    }

    /// The failures, in a few words each; empty if there is none.
    pub fn problems(&self) -> Vec<String> {
        let failed = self.steps.iter().filter(|s| !s.ok);
        let mut problems: Vec<String> = failed.map(|s| format!("{} {}", s.name, s.text)).collect();
        problems.extend(self.complaints().iter().map(|line| (*line).to_owned()));
        if !self.done {
            problems.push("the script did not end".to_owned());
        }
        problems
    }

    /// A text that the script showed.
    ///
    /// # Panics
    /// If it did not.
    pub fn text(&self, name: &str) -> &str {
        let shown = self.shown.get(name);
        shown.unwrap_or_else(|| panic!("the guest did not show {name} ({})", self.place))
    }

    /// Lines of the console in which the kernel complains.
    pub fn complaints(&self) -> Vec<&str> {
        let complains = |line: &&str| COMPLAINTS.iter().any(|c| line.contains(c));
        self.console.lines().filter(complains).collect()
    }

    /// Panics unless all steps succeeded, these among them, and the kernel did not
    /// complain.
    pub fn assert_good(&self, expected: &[&str]) {
        let failed: Vec<&Step> = self.steps.iter().filter(|s| !s.ok).collect();
        assert!(failed.is_empty(), "{failed:#?} ({})", self.place);
        for name in expected {
            let found = self.steps.iter().any(|s| s.name == *name);
            assert!(found, "step {name} is missing ({})", self.place);
        }
        let complaints = self.complaints();
        assert!(complaints.is_empty(), "{complaints:#?} ({})", self.place);
        assert!(self.done, "the script did not end ({})", self.place);
    }
}

/// The stack traces in a text of the kernel's tracing, innermost frame first.
pub fn stacks(text: &str) -> Vec<Vec<String>> {
    let mut stacks: Vec<Vec<String>> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        match line.trim_start().strip_prefix("=> ") {
            Some(frame) => {
                if !inside {
                    stacks.push(Vec::new());
                }
                let name = frame.split([' ', '+']).next().unwrap_or(frame);
                if let Some(stack) = stacks.last_mut() {
                    stack.push(name.to_owned());
                }
                inside = true;
            }
            None => inside = false,
        }
    }
    stacks
}

/// Whether the outermost frame is one where stacks of the kernel begin: an entry
/// from user space, a thread's start, an idle CPU's, or an exception's; or where
/// an exception came inside one of the kernel's indirect thunks, one a register,
/// which push their own return address and have no unwind entry before the new
/// one is stored (`UNWIND_HINT_EMPTY`, arch/x86/lib/retpoline.S of Linux 6.1; those
/// against ITS have none at all). The timer finds a processor there sooner or later.
pub fn is_whole(stack: &[String]) -> bool {
    let Some(outermost) = stack.last() else {
        return false;
    };
    let above = stack.iter().rev().nth(1);
    let is_exception = |frame: &String| frame.starts_with("asm_");
    const THUNKS: [&str; 2] = ["__x86_indirect_thunk_", "__x86_indirect_its_thunk_"];
    // What the kernel's start-up calls has a second name (arch/x86/boot/startup of 6.17 on).
    let thunk = outermost.strip_prefix("__pi_").unwrap_or(outermost);
    if THUNKS.iter().any(|begin| thunk.starts_with(begin)) {
        return above.is_some_and(is_exception);
    }
    // By the series: `ret_from_fork_asm` from 6.6 on, `common_startup_64` from 6.10 on.
    const ROOTS: [&str; 8] = [
        "entry_SYSCALL_64_after_hwframe",
        "ret_from_fork",
        "ret_from_fork_asm",
        "secondary_startup_64_no_verify",
        "common_startup_64",
        "start_kernel",
        "x86_64_start_kernel",
        "start_secondary",
    ];
    ROOTS.contains(&outermost.as_str()) || is_exception(outermost)
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    fn whole(frames: &[&str]) -> bool {
        let stack: Vec<String> = frames.iter().map(|&frame| frame.to_owned()).collect();
        is_whole(&stack)
    }

    /// The timer in an interrupt that came inside a thunk, as Linux 6.1 shows it natively.
    #[test]
    fn a_stack_may_end_in_any_thunk_that_was_interrupted() {
        for thunk in [
            "__x86_indirect_thunk_array",
            "__x86_indirect_its_thunk_r15",
            "__pi___x86_indirect_thunk_rax",
        ] {
            assert!(whole(&["virtnet_poll", "asm_common_interrupt", thunk]));
            assert!(!whole(&["virtnet_poll", thunk]));
        }
    }

    #[test]
    fn a_stack_that_ends_in_a_driver_is_not_whole() {
        assert!(!whole(&["asm_common_interrupt", "virtnet_poll"]));
        assert!(!whole(&[]));
        assert!(whole(&["virtnet_poll", "ret_from_fork"]));
    }
}
