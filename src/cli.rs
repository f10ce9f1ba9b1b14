//! The command line as data.

use clap::{Parser, Subcommand};

use crate::commands::{cc, completions, explain, man, payload, rewrite, run, stats, verify, xen};
use command_line::failure::Failure;

const EXAMPLES: &str = "\
Examples:
  twin rewrite e1000.ko -o e1000.twin.o
  twin verify e1000.twin.o
  twin explain e1000.ko --function e1000_clean | less -R

Exit status:
  0  done
  1  an input was refused, or a violation was found
  2  wrong usage, or a file that cannot be read or written";

/// Rewrites kernel drivers for a hypervisor, and proves what they can reach.
///
/// A driver's code is rewritten so that its accesses to memory go through a software translation,
/// and the result is verified. By the contract of a hypervisor it then reaches only its own stack
/// and the memory that it was given.
#[derive(Debug, Parser)]
#[command(name = "twin", version, long_version = crate::version::long(), after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Rewrite drivers and verify the results
    Rewrite(rewrite::Opts),
    /// Prove that rewritten objects keep the contract
    Verify(verify::Opts),
    /// Count what drivers' code consists of
    Stats(stats::Opts),
    /// Show what rewriting does, before and after, site by site
    Explain(explain::Opts),
    /// Compile C and rewrite the result
    Cc(cc::Opts),
    /// Make a rewritten driver a file that a stock Xen loads
    Payload(payload::Opts),
    /// Put a driver into the Xen of a running system, and take it out
    Xen(xen::Opts),
    /// Run the e1000 driver in the testbed and measure what packets cost
    Run(run::Opts),
    /// Print a completion script for a shell
    Completions(completions::Opts),
    /// Write manual pages
    Man(man::Opts),
}

impl Command {
    /// Runs it.
    pub fn run(self) -> Result<(), Failure> {
        match self {
            Command::Rewrite(opts) => opts.run(),
            Command::Verify(opts) => opts.run(),
            Command::Stats(opts) => opts.run(),
            Command::Explain(opts) => opts.run(),
            Command::Cc(opts) => opts.run(),
            Command::Payload(opts) => opts.run(),
            Command::Xen(opts) => opts.run(),
            Command::Run(_) => run::run(),
            Command::Completions(opts) => opts.run(),
            Command::Man(opts) => opts.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
