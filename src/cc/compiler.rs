//! The compiler as it was given: its name, after the launchers that it is started by
//! (`ccache gcc`), as kernel builds have it in `CC`.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, Stdio};

use command_line::standard;

use super::auxiliary::Family;

/// Programs that are given a compiler's whole command line and run it. The compiler's name
/// is their next argument.
const LAUNCHERS: [&str; 5] = ["ccache", "sccache", "distcc", "icecc", "buildcache"];

/// A compiler, perhaps with launchers before it.
#[derive(Clone, Copy, Debug)]
pub struct Compiler<'c> {
    words: &'c [OsString],
}

impl<'c> Compiler<'c> {
    /// Takes a command line apart: the compiler and its arguments. There is at least a word.
    pub fn split(command: &'c [OsString]) -> (Compiler<'c>, &'c [OsString]) {
        let launchers = command.iter().take_while(|word| is_launcher(word)).count();
        // A launcher by itself is what it is.
        let named = (launchers + 1).min(command.len());
        let (words, given) = command.split_at(named);
        (Compiler { words }, given)
    }

    /// Runs it; arguments are to be added.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program());
        command.args(self.words.iter().skip(1));
        command.stdin(standard::input()).stdout(standard::output());
        command
    }

    /// Whether it takes C for C++, as `clang++` does.
    pub fn is_for_cpp(&self) -> bool {
        let name = self
            .words
            .last()
            .and_then(|word| Path::new(word).file_name());
        name.is_some_and(|name| name.to_string_lossy().contains("++"))
    }

    /// Asks it what it is.
    pub fn family(&self) -> Family {
        let mut command = self.command();
        let answer = command.arg("--version").stdout(Stdio::piped()).output();
        answer.map_or(Family::Gcc, |answer| {
            Family::of(&String::from_utf8_lossy(&answer.stdout))
        })
    }

    /// The program that is run.
    pub fn program(&self) -> &'c OsStr {
        self.words.first().map_or(OsStr::new(""), |word| word)
    }
}

fn is_launcher(word: &OsStr) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str);
    name.is_some_and(|name| LAUNCHERS.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_come_before_a_compiler() {
        let of = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            let (compiler, given) = Compiler::split(&words);
            (compiler.words.len(), given.len())
        };
        assert_eq!(of("gcc -c x.c"), (1, 2));
        assert_eq!(of("ccache gcc -c x.c"), (2, 2));
        assert_eq!(of("/usr/bin/ccache distcc gcc-12 x.c"), (3, 1));
        assert_eq!(of("ccache"), (1, 0));
    }
}
