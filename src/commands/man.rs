//! `twin man`: manual pages, one for `twin` and one for each subcommand, and theirs.

use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use command_line::failure::Failure;
use command_line::output::{Destination, Pending, create_dir};

use crate::cli::Cli;

const EXAMPLES: &str = "\
Examples:
  twin man ~/.local/share/man/man1
  twin man . && man ./twin-rewrite.1

Exit status:
  0  done
  2  wrong usage, or a page that cannot be written";

/// Options of `twin man`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Opts {
    /// Directory to write the pages to; made if it does not exist.
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

impl Opts {
    /// Writes the pages.
    pub fn run(self) -> Result<(), Failure> {
        create_dir(&self.dir)?;
        let mut twin = Cli::command().disable_help_subcommand(true);
        twin.build();
        pages(&self.dir, &twin)
    }
}

/// The page of a command, and those of the commands in it.
fn pages(dir: &Path, command: &Command) -> Result<(), Failure> {
    page(dir, command)?;
    let mut inner = command.get_subcommands();
    inner.try_for_each(|subcommand| pages(dir, subcommand))
}

fn page(dir: &Path, command: &Command) -> Result<(), Failure> {
    let man = Man::new(command.clone());
    let path = dir.join(man.get_filename());
    let mut bytes = Vec::new();
    man.render(&mut bytes)
        .map_err(|error| Failure::access(path.display(), error))?;
    Pending::create(&Destination::File(path))?.finish_with(&bytes)
}
