//! `make boot`: Ethernet modules of the distribution, rewritten, in a stock kernel
//! under QEMU, on the cards that it has; with `--load`, all the others as well.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use process_lab::verdict;
use qemu_tests::Error;
use qemu_tests::distribution::Distribution;
use qemu_tests::trial::{CARDS, Card, Trial, WITHOUT_FIRMWARE, card_of};
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
    println!("| card | modules, {all} | works | s |\n|---|---|---|---|");
    let mut good = true;
    for trial in trials {
        good &= one(&Trial { scheme, ..trial }, &distribution);
    }
    if arguments.modules.is_empty() && !arguments.load {
        let Card { device, driver, .. } = WITHOUT_FIRMWARE;
        println!("| {device} | {driver} | left out: wants firmware that is not free | |");
    }
    Ok(good)
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

/// Runs one trial and prints its line; gives what went wrong.
fn one(trial: &Trial<'_>, distribution: &Distribution) -> bool {
    let card = trial.card.map_or("none", |card| card.device);
    let modules = match distribution.in_order(&trial.modules) {
        Ok(order) if order.len() > 12 => format!("{} modules", order.len()),
        Ok(order) => order.join(" "),
        Err(_) => trial.modules.join(" "),
    };
    let (report, time) = match trial.run(distribution) {
        Ok(done) => done,
        Err(error) => {
            println!("| {card} | {modules} | no: {error} | |");
            return false;
        }
    };
    let problems = report.problems();
    let works = if problems.is_empty() { "yes" } else { "no" };
    println!(
        "| {card} | {modules} | {works} | {:.0} |",
        time.as_secs_f64()
    );
    for problem in &problems {
        eprintln!("  {problem}");
    }
    if !problems.is_empty() {
        eprintln!("  {}", report.place);
    }
    problems.is_empty()
}
