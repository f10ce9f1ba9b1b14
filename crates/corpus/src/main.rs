//! `make corpus`: every module of the stock kernel for `linux`, the Ethernet modules
//! for `hypervisor`, and the cost of `objdump -d` over the same files to compare.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use corpus::{Cost, Meter, Tally};
use mimalloc::MiMalloc;
use svm_rewrite::Target;

/// The allocator that `twin` has, so that the cost is that of `twin`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Rewrite and verify every module of the stock kernel, and print what came of
/// it.
#[derive(Parser)]
#[command(
    after_help = "Exit status: 0 the goals are met (every Ethernet module, 99.5% of all), \
1 they are not, 2 the run could not be made."
)]
struct Arguments {
    /// Where the modules of the kernel package are.
    #[arg(long, default_value = "target/stock/modules")]
    modules: PathBuf,
    /// Modules at a time.
    #[arg(short, long, default_value_t = 2)]
    jobs: usize,
    /// Leave `objdump -d` out.
    #[arg(long)]
    no_objdump: bool,
}

const ETHERNET: &str = "drivers/net/ethernet";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("corpus: {error}; `make stock` fetches the kernel package");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> std::io::Result<bool> {
    let all = corpus::modules(&arguments.modules, "")?;
    let ethernet = corpus::modules(&arguments.modules, ETHERNET)?;
    if all.is_empty() {
        let reason = format!("no modules in {}", arguments.modules.display());
        return Err(std::io::Error::other(reason));
    }
    // First, because a child's peak begins with its parent's memory at the fork.
    let objdump = match arguments.no_objdump {
        true => None,
        false => Some(corpus::disassemble(&all, arguments.jobs)?),
    };
    let meter = Meter::of_this_process();
    let linux = corpus::run(&all, Target::Linux, arguments.jobs, &progress);
    let cost = meter.read();
    let meter = Meter::of_this_process();
    let hypervisor = corpus::run(&ethernet, Target::Hypervisor, arguments.jobs, &progress);
    let hypervisor_cost = meter.read();
    println!("| target | modules | instructions | sites | accepted | share |");
    println!("|---|---|---|---|---|---|");
    let ethernet_linux = of_ethernet(&linux);
    println!("{}", linux.row("linux"));
    println!("{}", ethernet_linux.row("linux, Ethernet"));
    println!("{}\n", hypervisor.row("hypervisor, Ethernet"));
    print!("{}", linux.refused());
    print!("{}", hypervisor.refused());
    println!("\n| | elapsed s | processor s | peak MiB |\n|---|---|---|---|");
    print_cost("rewrite and verify all for linux", cost);
    print_cost(
        "rewrite and verify Ethernet for hypervisor",
        hypervisor_cost,
    );
    if let Some(cost) = objdump {
        print_cost("objdump -d of all", cost);
    }
    let share = linux.accepted() as f64 / linux.modules.len() as f64;
    Ok(share >= 0.995
        && ethernet_linux.accepted() == ethernet_linux.modules.len()
        && hypervisor.accepted() == hypervisor.modules.len())
}

fn of_ethernet(tally: &Tally) -> Tally {
    let is_ethernet = |path: &PathBuf| path.to_string_lossy().contains(ETHERNET);
    Tally {
        modules: tally
            .modules
            .iter()
            .filter(|(path, _)| is_ethernet(path))
            .cloned()
            .collect(),
    }
}

fn print_cost(what: &str, cost: Cost) {
    println!(
        "| {what} | {:.1} | {:.1} | {:.0} |",
        cost.seconds, cost.processor, cost.peak
    );
}

fn progress(done: usize, all: usize) {
    let mut out = std::io::stderr();
    if out.is_terminal() {
        let end = if done == all { "\n" } else { "" };
        let _ = write!(out, "\r{done} of {all}{end}");
    } else if done == all || done.is_multiple_of(1000) {
        let _ = writeln!(out, "{done} of {all}");
    }
}
