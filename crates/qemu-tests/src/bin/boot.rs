//! `make boot`: Ethernet modules of the distribution, rewritten, in a stock kernel
//! under QEMU, on the cards that it has; with `--load`, all the others as well.

use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Parser;
use process_lab::verdict;
use qemu_tests::Error;
use qemu_tests::distribution::Distribution;
use qemu_tests::traces::Traces;
use qemu_tests::trial::{CARDS, Card, Outcome, Trial, WITHOUT_FIRMWARE, card_of};
use svm_rewrite::Scheme;

/// Rewrite Ethernet modules of the stock kernel's package with everything that
/// they need, boot the stock kernel under QEMU, load them in place of the
/// originals, and use the card.
#[derive(Parser)]
#[command(after_help = "Examples:
  boot ne2k-pci                 on the card of QEMU's that it drives
  boot e100 --card i82559er
  boot e100 --original          is it the rewriting, or the driver itself?
  boot                          every card of QEMU's, a line each
  boot --load                   every Ethernet module: loaded, unloaded, loaded again
  KERNEL=6.12 boot              another kernel, that scripts/kernel.sh has fetched

On each card: pings, 2 MiB each way, ethtool, link down and up; every function of the
modules traced; stack traces from them, from the kernel's functions that they call and
from the timer's interrupt, each of which must reach the start of its stack; unload, load
again, pings, unload. The kernel must not complain.

Consoles are left below target/qemu/.

Exit status: 0 everything works, 1 something does not, 2 it could not be tried.")]
struct Arguments {
    /// Modules, by name; every card of QEMU's if none is named.
    modules: Vec<String>,
    /// QEMU's name of the card, if the module drives several.
    #[arg(long)]
    card: Option<String>,
    /// Load and unload every Ethernet module of the package, all at once.
    #[arg(long)]
    load: bool,
    /// Use the paper's scheme.
    #[arg(long)]
    paper: bool,
    /// Leave the modules as they are, to compare.
    #[arg(long, conflicts_with = "paper")]
    original: bool,
}

fn main() -> ExitCode {
    verdict::exit("boot", run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, Error> {
    let distribution = Distribution::stock()?;
    let trials = match (arguments.load, arguments.modules.as_slice()) {
        (true, _) => vec![Trial {
            name: "load".to_owned(),
            modules: distribution.below("drivers/net/ethernet/"),
            // The code of a thousand modules, under emulation.
            limit: Duration::from_secs(1800),
            ..Trial::of("", None)
        }],
        (false, []) => CARDS
            .iter()
            .map(|card| Trial::of(card.driver, Some(card)))
            .collect(),
        (false, names) => names
            .iter()
            .map(|name| Trial::of(name, chosen(name, arguments.card.as_deref())))
            .collect(),
    };
    let scheme = match (arguments.original, arguments.paper) {
        (true, _) => None,
        (_, true) => Some(Scheme::Paper),
        _ => Some(Scheme::Stlb),
    };
    let all = scheme.map_or("as they are", |_| "all rewritten");
    println!("| card | modules, {all} | works | functions traced | stacks through them | s |");
    println!("|---|---|---|---|---|---|");
    let mut sums = Sums::default();
    for trial in trials {
        let trial = Trial { scheme, ..trial };
        sums.cards += 1;
        if let Some(traced) = one(&trial, &distribution) {
            sums.good += 1;
            sums.traced += traced;
        }
    }
    if arguments.modules.is_empty() && !arguments.load {
        let Card { device, driver, .. } = WITHOUT_FIRMWARE;
        println!("| {device} | {driver} | left out: wants firmware that is not free | | | |");
    }
    if !arguments.load {
        sums.print()?;
    }
    Ok(sums.good == sums.cards)
}

/// The sums of all trials.
#[derive(Default)]
struct Sums {
    cards: usize,
    good: usize,
    traced: Traces,
}

impl Sums {
    /// One line for a table of kernels.
    fn print(&self) -> Result<(), Error> {
        let kernel = std::env::var(qemu_tests::KERNEL).unwrap_or_default();
        let kernel = match kernel.as_str() {
            "" => "(stock)",
            named => named,
        };
        println!(
            "\n| `KERNEL=` | package | booted on | cards | functions traced | stacks through them |"
        );
        println!("|---|---|---|---|---|---|");
        println!(
            "| {kernel} | {} | {} | {} of {} | {} | {} |",
            Distribution::version()?,
            today()?,
            self.good,
            self.cards,
            self.traced.functions,
            self.traced.stacks,
        );
        Ok(())
    }
}

/// The date, by the system's own program.
fn today() -> Result<String, Error> {
    let output = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let output = output.map_err(|source| Error::Io {
        what: "date".to_owned(),
        source,
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn chosen(driver: &str, device: Option<&str>) -> Option<&'static Card> {
    match device {
        Some(device) => CARDS
            .iter()
            .chain([&WITHOUT_FIRMWARE])
            .find(|card| card.device == device),
        None => card_of(driver),
    }
}

/// Runs one trial and prints its line; what was traced, if all of it works.
fn one(trial: &Trial<'_>, distribution: &Distribution) -> Option<Traces> {
    let card = trial.card.map_or("none", |card| card.device);
    let modules = match distribution.in_order(&trial.modules) {
        Ok(order) if order.len() > 12 => format!("{} modules", order.len()),
        Ok(order) => order.join(" "),
        Err(_) => trial.modules.join(" "),
    };
    let Outcome {
        report,
        time,
        traced,
    } = match trial.run(distribution) {
        Ok(outcome) => outcome,
        Err(error) => {
            println!("| {card} | {modules} | no: {error} | | | |");
            return None;
        }
    };
    let problems = report.problems();
    let works = if problems.is_empty() { "yes" } else { "no" };
    println!(
        "| {card} | {modules} | {works} | {} | {} | {:.0} |",
        traced.functions,
        traced.stacks,
        time.as_secs_f64()
    );
    for problem in &problems {
        eprintln!("  {problem}");
    }
    if !problems.is_empty() {
        eprintln!("  {}", report.place);
    }
    problems.is_empty().then_some(traced)
}
