//! `twin payload`: a rewritten driver becomes a file that a stock Xen loads.
//!
//! ```text
//! read ──> payload::build ──> rename
//! ```

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ::payload::{Dom0, Inputs, Kallsyms, Part, Payload, PayloadError, Refusal, Rewritten, Table};
use clap::Args;
use command_line::failure::Failure;
use command_line::input::{self, Input, describe};
use command_line::output::{self, Destination, Pending};
use command_line::text::count;

use crate::inputs::{read_once, refuse_overwriting};

const EXAMPLES: &str = "\
Examples:
  twin rewrite --scheme window e1000.ko -o e1000.twin.o
  twin rewrite --scheme window twin_hot.ko -o twin_hot.twin.o
  twin payload e1000.twin.o twin_hot.twin.o xen.o -o e1000.livepatch \\
      --table xen-4.17.table --kallsyms /proc/kallsyms --sections /sys/module
  twin payload e1000.twin.o twin_hot.twin.o xen.o -o e1000.livepatch \\
      --table xen-4.17.table --build-id $(xl info | sed -n 's/^build_id *: //p') \\
      --kallsyms dom0/kallsyms --sections dom0/sections
  xen-livepatch load e1000 e1000.livepatch

The code must be rewritten from the very modules that dom0 has loaded, and the
addresses copied as root while they are: the payload has them as constants, and
is good until one of the modules is unloaded or dom0 is started anew.

xen.o is the runtime with its platform for Xen. TABLE has what the payload needs
to know of one build of Xen; scripts/xen-table.sh makes it out of the package.
In DIR, section S of module M is the file M/S, or M/sections/S as in
/sys/module, and holds its address.

The driver and the hot routines are verified first. The payload is verified
again as it lies in the file, with dom0's addresses filled in. The same inputs
give the same bytes.

Exit status:
  0  done
  1  an input was refused, or a violation was found; an existing output is unchanged
  2  wrong usage, or a file that cannot be read or written";

/// The objects may be two or three, which clap's own line does not say.
const USAGE: &str = "twin payload [OPTIONS] --output <OUT> --table <TABLE> --kallsyms <FILE> \
    --sections <DIR> <DRIVER.o> [HOT.o] <RUNTIME.o>";

/// Options of `twin payload`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = USAGE)]
pub struct Opts {
    /// The rewritten driver, the rewritten hot routines (they may be left out), and the
    /// runtime's object.
    #[arg(value_names = ["DRIVER.o", "HOT.o", "RUNTIME.o"], num_args = 2..=3, required = true)]
    objects: Vec<PathBuf>,
    /// Write the payload there; `-` is standard output.
    #[arg(short, long, value_name = "OUT")]
    output: PathBuf,
    /// What is known of this build of Xen.
    #[arg(long, value_name = "TABLE")]
    table: PathBuf,
    /// Build-id of the hypervisor that runs, to be compared with the table's.
    #[arg(long, value_name = "ID")]
    build_id: Option<String>,
    /// The text of dom0's /proc/kallsyms.
    #[arg(long, value_name = "FILE")]
    kallsyms: PathBuf,
    /// The addresses of the modules' sections.
    #[arg(long, value_name = "DIR")]
    sections: PathBuf,
    /// The driver's name in dom0 [default: that of its file, up to the first dot].
    #[arg(long, value_name = "MODULE")]
    driver_module: Option<String>,
    /// The same of the hot routines.
    #[arg(long, value_name = "MODULE")]
    hot_module: Option<String>,
}

/// What the inputs are called in messages.
pub(super) struct Names {
    pub driver: String,
    pub hot: String,
    pub runtime: String,
    pub table: String,
    pub kallsyms: String,
    pub sections: String,
    pub output: String,
}

impl Opts {
    /// Makes the payload.
    pub fn run(self) -> Result<(), Failure> {
        let (driver, hot, runtime) = match &self.objects[..] {
            [driver, hot, runtime] => (driver, Some(hot), runtime),
            [driver, runtime] => (driver, None, runtime),
            _ => unreachable!("clap takes two or three"),
        };
        let destination = Destination::new(self.output.clone());
        let texts = [&self.table, &self.kallsyms];
        let read = self.objects.iter().chain(texts).map(PathBuf::as_path);
        read_once(read.clone())?;
        refuse_overwriting(&destination, read)?;
        let hot_module = hot.map(|hot| module(self.hot_module.as_deref(), hot));
        let driver_module = module(self.driver_module.as_deref(), driver);
        let modules = [Some(&driver_module), hot_module.as_ref()];
        for module in modules.into_iter().flatten() {
            // What cannot be listed is refused where it is read.
            let files = section_files(&self.sections, module).unwrap_or_default();
            refuse_overwriting(&destination, files.iter().map(PathBuf::as_path))?;
        }
        let names = Names {
            driver: input::name(driver),
            hot: hot.map_or(String::new(), |hot| input::name(hot)),
            runtime: input::name(runtime),
            table: input::name(&self.table),
            kallsyms: input::name(&self.kallsyms),
            sections: input::name(&self.sections),
            output: input::name(&self.output),
        };
        let refused = |refusal: Refusal| names.failure(refusal);
        let table = Table::parse(&text(&self.table)?).map_err(refused)?;
        if let Some(id) = &self.build_id {
            table.is_of(id).map_err(refused)?;
        }
        let kallsyms = text(&self.kallsyms)?;
        let mut dom0 = Dom0 {
            symbols: Kallsyms::parse(&kallsyms).map_err(refused)?,
            sections: BTreeMap::new(),
        };
        for module in modules.into_iter().flatten() {
            sections(&self.sections, module, &mut dom0.sections)?;
        }
        let (driver, runtime) = (Input::read_file(driver)?, Input::read_file(runtime)?);
        let hot = hot.map(|hot| Input::read_file(hot)).transpose()?;
        let (driver, runtime) = (driver.object()?, runtime.object()?);
        let hot = hot.as_ref().map(Input::object).transpose()?;
        let hot = hot.as_ref().zip(hot_module.as_deref());
        let built = ::payload::build(&Inputs {
            driver: Rewritten {
                object: &driver,
                module: &driver_module,
            },
            hot: hot.map(|(object, module)| Rewritten { object, module }),
            runtime: &runtime,
            table: &table,
            dom0: &dom0,
        });
        let built = built.map_err(|error| names.error(error))?;
        Pending::create(&destination)?.finish_with(&built.bytes)?;
        say(&destination, &built, &table)
    }
}

impl Names {
    fn of(&self, part: Part) -> &str {
        match part {
            Part::Driver => &self.driver,
            Part::Hot => &self.hot,
            Part::Runtime => &self.runtime,
            Part::Table => &self.table,
            Part::Kallsyms => &self.kallsyms,
            Part::Sections => &self.sections,
            Part::Output => &self.output,
        }
    }

    pub fn failure(&self, refusal: Refusal) -> Failure {
        Failure::refused(self.of(refusal.part), refusal.code, &refusal.why)
    }

    pub fn error(&self, error: PayloadError) -> Failure {
        match error {
            PayloadError::Refused(refusal) => self.failure(refusal),
            PayloadError::Violated { part, violations } => Failure::Violated {
                file: self.of(part).to_owned(),
                made_here: part == Part::Output,
                violations,
            },
        }
    }
}

/// A line about a payload that was written.
fn say(to: &Destination, payload: &Payload, table: &Table) -> Result<(), Failure> {
    // Standard output is the payload's.
    if *to == Destination::Stdout {
        return Ok(());
    }
    let (bytes, xen) = (payload.bytes.len(), table.version());
    let verified = verified(payload);
    let line = format!("{}: {bytes} bytes for Xen {xen}; {verified}\n", to.name());
    output::text(line.as_bytes())
}

/// What was proved of it, in words.
pub(super) fn verified(payload: &Payload) -> String {
    let proof = &payload.proof;
    let parts = [
        (proof.instructions, "instruction"),
        (proof.functions, "function"),
        (proof.accesses.window, "window access"),
        (proof.codemap, "entry point"),
        (payload.imports.len(), "import"),
    ];
    let parts: Vec<String> = parts
        .iter()
        .map(|(n, what)| count(*n as u64, what))
        .collect();
    format!("verified: confined ({})", parts.join(", "))
}

/// A module's name: as it is given, or that of its file.
fn module(given: Option<&str>, path: &Path) -> String {
    let file = || {
        path.file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    match given {
        Some(name) => name.to_owned(),
        // Modules have `_` where their files may have `-`.
        None => file()
            .split('.')
            .next()
            .unwrap_or_default()
            .replace('-', "_"),
    }
}

/// A file's text.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let bytes = Input::plain(path)?;
    String::from_utf8(bytes).map_err(|_| Failure::input(input::name(path), "this is not text"))
}

/// The addresses of a module's sections.
pub(super) fn sections(
    dir: &Path,
    module: &str,
    found: &mut BTreeMap<(String, String), u64>,
) -> Result<(), Failure> {
    for path in section_files(dir, module)? {
        let name = name_of(path.file_name().unwrap_or_default());
        found.insert((module.to_owned(), name), address(&path)?);
    }
    Ok(())
}

/// The files that hold them, one for each section.
fn section_files(dir: &Path, module: &str) -> Result<Vec<PathBuf>, Failure> {
    let own = dir.join(module);
    let dir = match own.join("sections") {
        inner if inner.is_dir() => inner,
        _ => own,
    };
    let entries = std::fs::read_dir(&dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    entries.map_err(|error| Failure::access(input::name(&dir), describe(&error)))
}

fn name_of(name: &OsStr) -> String {
    name.to_string_lossy().into_owned()
}

/// The address that a file of /sys/module/M/sections holds.
pub(super) fn address(path: &Path) -> Result<u64, Failure> {
    let text = text(path)?;
    let digits = text.trim();
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    match u64::from_str_radix(digits, 16) {
        Ok(address) if plain && address != 0 => Ok(address),
        _ => Err(Failure::refused(
            input::name(path),
            ::payload::PayloadCode::Dom0,
            format!(
                "`{}` is no address; copy the sections as root, who sees them",
                text.trim().escape_debug()
            ),
        )),
    }
}
