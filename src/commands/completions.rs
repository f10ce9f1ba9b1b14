//! `twin completions`: a completion script on standard output.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use command_line::failure::Failure;
use command_line::output;

use crate::cli::Cli;

const EXAMPLES: &str = "\
Examples:
  twin completions bash > ~/.local/share/bash-completion/completions/twin
  twin completions zsh > ~/.zfunc/_twin

Exit status:
  0  done
  2  wrong usage";

/// Options of `twin completions`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// The shell to print a script for.
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Opts {
    /// Prints the script.
    pub fn run(self) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "twin", &mut script);
        output::text(&script)
    }
}
