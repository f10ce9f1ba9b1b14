//! `make corpus`: every module of a stock kernel, or of several, for `linux`, the Ethernet
//! modules for `hypervisor`, and the cost of `objdump -d` over the same files to compare.

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use corpus::{Cost, Kernel, Survey};
use mimalloc::MiMalloc;

/// The allocator that `twin` has, so that the cost is that of `twin`.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Rewrite and verify every module of stock kernels, and print what came of it: of one kernel
/// all that is known, of several a row each.
#[derive(Parser)]
#[command(
    after_help = "Exit status: 0 the goals are met (of each kernel every Ethernet module, 99.5% of \
all), 1 they are not, 2 the run could not be made."
)]
struct Arguments {
    /// Where the modules of a kernel package are, or of several.
    #[arg(long, value_name = "DIR", num_args = 1.., default_value = "target/stock/modules")]
    modules: Vec<PathBuf>,
    /// Modules at a time.
    #[arg(short, long, default_value_t = 2)]
    jobs: usize,
    /// Leave `objdump -d` out. Its time is never part of the last line's.
    #[arg(long)]
    no_objdump: bool,
}

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
    let kernels = arguments.modules.iter().map(|path| Kernel::find(path));
    let kernels = kernels.collect::<std::io::Result<Vec<_>>>()?;
    // First, because a child's peak begins with its parent's memory at the fork.
    let objdump = match arguments.no_objdump {
        true => None,
        false => {
            let all: Vec<PathBuf> = kernels.iter().flat_map(|k| k.modules.clone()).collect();
            Some(corpus::disassemble(&all, arguments.jobs)?)
        }
    };
    let mut surveys = Vec::new();
    for kernel in &kernels {
        if kernels.len() > 1 {
            eprintln!("{}", kernel.release);
        }
        surveys.push(kernel.survey(arguments.jobs, &progress));
    }
    match &*surveys {
        [survey] => print_one(survey, objdump),
        _ => print_several(&surveys, objdump),
    }
    println!("\n{}", corpus::total(&surveys, cores(arguments.jobs)));
    Ok(surveys.iter().all(Survey::meets_goals))
}

/// Those that as many threads can have here.
fn cores(jobs: usize) -> usize {
    let all = std::thread::available_parallelism().map_or(jobs, usize::from);
    jobs.max(1).min(all)
}

fn print_one(survey: &Survey, objdump: Option<Cost>) {
    println!("| target | modules | instructions | sites | accepted | share |");
    println!("|---|---|---|---|---|---|");
    println!("{}", survey.linux.row("linux"));
    println!("{}", survey.ethernet.row("linux, Ethernet"));
    println!("{}\n", survey.hypervisor.row("hypervisor, Ethernet"));
    print!("{}", survey.linux.refused());
    print!("{}", survey.hypervisor.refused());
    println!("\n{COSTS}");
    print_cost("rewrite and verify all for linux", survey.linux_cost);
    print_cost(
        "rewrite and verify Ethernet for hypervisor",
        survey.hypervisor_cost,
    );
    if let Some(cost) = objdump {
        print_cost("objdump -d of all", cost);
    }
}

fn print_several(surveys: &[Survey], objdump: Option<Cost>) {
    println!("{}", Survey::HEADER);
    for survey in surveys {
        println!("{}", survey.row());
    }
    for survey in surveys {
        let refused = survey.linux.refused() + &survey.hypervisor.refused();
        if !refused.is_empty() {
            print!("\n{}:\n\n{refused}", survey.release);
        }
    }
    if let Some(cost) = objdump {
        println!("\n{COSTS}");
        print_cost("objdump -d of all", cost);
    }
}

const COSTS: &str = "| | elapsed s | processor s | peak MiB |\n|---|---|---|---|";

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
