//! Random C functions, compiled, natively and rewritten under each scheme.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use conformance::forms::builds::Build;
use conformance::forms::compiled::{Compiled, Tally};
use process_lab::Error;
use process_lab::verdict;

/// Compile random functions with many compilers and options, run them natively and rewritten,
/// and compare.
#[derive(Parser)]
#[command(after_help = "Exit status: 0 all the same, 1 not all, 2 the run could not be made.")]
struct Options {
    /// Objects to run instead, each with a function `f0`.
    objects: Vec<PathBuf>,
    /// First program.
    #[arg(long, default_value_t = 0)]
    first: u64,
    /// How many programs.
    #[arg(long, default_value_t = 100)]
    programs: u64,
    /// Builds of each.
    #[arg(long, default_value_t = 6)]
    builds: u64,
    /// Compilers; those that are not installed are left out.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "gcc-11,gcc-12,gcc-13,gcc-14,clang-13,\
        clang-14,clang-15,clang-16,clang-17,clang-18,clang-19,clang-20,clang-21,clang-22"
    )]
    compilers: Vec<String>,
    /// States of memory and registers of each.
    #[arg(long, default_value_t = 8)]
    states: u64,
    /// Where a program is compiled, and what is different is kept.
    #[arg(long, default_value = "target/compiled")]
    directory: PathBuf,
    /// Say how each object ended.
    #[arg(long)]
    verbose: bool,
}

fn main() -> ExitCode {
    verdict::exit("compiled", run(&Options::parse()))
}

fn run(options: &Options) -> Result<bool, Error> {
    let mut tally = Tally::default();
    for path in &options.objects {
        let bytes = std::fs::read(path).map_err(Error::system("reading an object"))?;
        compare(options, &mut tally, &path.display().to_string(), &bytes)?;
    }
    if options.objects.is_empty() {
        programs(options, &mut tally)?;
    }
    print!("{tally}");
    Ok(tally.is_good())
}

fn programs(options: &Options, tally: &mut Tally) -> Result<(), Error> {
    let directory = &options.directory;
    std::fs::create_dir_all(directory).map_err(Error::system("making a directory"))?;
    let compilers = conformance::forms::builds::installed(&options.compilers);
    for program in options.first..options.first + options.programs {
        for number in 0..options.builds {
            let build = Build::of(&compilers, program, number);
            let name = format!("program {program}, {build}");
            let Some(bytes) = build.compile(program, directory)? else {
                tally.uncompiled += 1;
                continue;
            };
            if !compare(options, tally, &name, &bytes)? {
                let kept = directory.join(format!("{program}-{number}.o"));
                std::fs::write(&kept, &bytes).map_err(Error::system("keeping an object"))?;
                println!("kept: {}", kept.display());
            }
        }
    }
    Ok(())
}

/// Compares one object; prints what is different.
fn compare(options: &Options, tally: &mut Tally, name: &str, bytes: &[u8]) -> Result<bool, Error> {
    let object = elf_loader::read(bytes)?;
    let compiled = Compiled::new(&object, 1, options.states)?;
    let lines = compiled.compare(tally)?;
    for line in &lines.wrong {
        println!("{name}: {line}");
    }
    if options.verbose {
        for line in &lines.other {
            println!("{name}: {line}");
        }
    }
    Ok(lines.wrong.is_empty())
}
