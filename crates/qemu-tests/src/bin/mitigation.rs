//! `make mitigation`: QEMU's own e1000 with its moderation of interrupts on and off, under the
//! stock kernel and driver. An outside check of the rows of the emulated card.

use std::process::ExitCode;

use clap::Parser;
use process_lab::verdict;
use qemu_tests::Error;
use qemu_tests::moderation::{Load, Mitigation, Side, run};

/// Boot the stock kernel under QEMU's emulation with two e1000 cards on one cable, send small
/// frames from one to the other, and count interrupts and register accesses of both, with
/// QEMU's `mitigation` on and off.
#[derive(Parser)]
#[command(
    after_help = "The guest's clock follows its instructions, one a nanosecond: counts do not depend on
this machine's speed. Consoles are left below target/qemu/.

Exit status: 0 counted, 1 frames were lost or the kernel complained, 2 it could not be run."
)]
struct Arguments {
    /// Frames of each run.
    #[arg(long, default_value_t = 20_000)]
    frames: u64,
}

fn main() -> ExitCode {
    verdict::exit("mitigation", table(&Arguments::parse()))
}

fn table(arguments: &Arguments) -> Result<bool, Error> {
    println!(
        "| mitigation | parameter | us a frame asked | kpps | | interrupts a ms | frames an interrupt | register accesses a frame |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let mut good = true;
    for delay in [0, 50_000] {
        for (mitigation, throttle) in [
            (Mitigation::Off, 0),
            (Mitigation::Off, 4000),
            (Mitigation::On, 0),
            (Mitigation::On, 4000),
        ] {
            let load = Load {
                mitigation,
                throttle,
                frames: arguments.frames,
                delay,
            };
            good &= one(&load)?;
        }
    }
    Ok(good)
}

/// Two lines: the card that sends, and the one that receives.
fn one(load: &Load) -> Result<bool, Error> {
    let (report, seen) = run("mitigation", load)?;
    let line = |way: &str, side: &Side| {
        println!(
            "| {} | {} | {} | {:.1} | {way} | {:.2} | {:.2} | {:.3} |",
            match load.mitigation {
                Mitigation::On => "on",
                Mitigation::Off => "off",
            },
            load.throttle,
            load.delay / 1000,
            seen.kpps(),
            seen.interrupts_khz(side),
            side.frames_an_interrupt(),
            side.accesses_a_frame(),
        );
    };
    line("sent", &seen.sender);
    line("received", &seen.receiver);
    let mut problems = report.problems();
    let frames = [seen.sender.frames, seen.receiver.frames];
    if frames != [load.frames; 2] {
        problems.push(format!("frames sent and received: {frames:?}"));
    }
    for problem in &problems {
        eprintln!("  {problem}");
    }
    Ok(problems.is_empty())
}
