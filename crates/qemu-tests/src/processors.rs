//! Programs of this project on processors that the machine at hand is not: QEMU's emulation of older and other
//! ones, in a stock kernel, with the host's files below a layer that is in memory.
//!
//! What is executed depends on the processor: how strings are copied (`fsrm`), how the GS base is written
//! (`wrgsbase`, or a system call), whether pointers are cut by `pext`, which instructions a test may execute at all. The
//! emulator has the models' features, not their timing, and no AVX-512.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::Error;
use super::distribution::Distribution;
use super::machine::{Cable, Guest};
use super::ramdisk::Ramdisk;
use super::report::GuestReport;

const COMMON: &[u8] = include_bytes!("../guest/common.sh");
const SCRIPT: &[u8] = include_bytes!("../guest/processors.sh");

/// Modules of the stock kernel that the guest needs to see the host's files.
const MODULES: [&str; 3] = ["virtio_pci", "9pnet_virtio", "9p"];
/// And for what it writes.
const LAYER: &str = "overlay";
/// MiB: what the programs write is in memory, too.
const MEMORY: u32 = 4096;

/// A program, as the guest executes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its step's name, one word.
    pub name: String,
    /// Where it is started.
    pub directory: PathBuf,
    /// The program and its arguments.
    pub command: Vec<String>,
}

impl Program {
    /// Its line in the guest's script.
    fn line(&self) -> String {
        let directory = self.directory.to_string_lossy();
        let words = self.command.iter().map(String::as_str);
        let words: Vec<String> = [&*self.name, &*directory]
            .into_iter()
            .chain(words)
            .map(quoted)
            .collect();
        format!("program {}\n", words.join(" "))
    }
}

/// A word for the shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What came of the programs on one processor.
pub struct Outcome {
    /// A step for each program.
    pub report: GuestReport,
    /// How long it took.
    pub time: Duration,
}

/// Boots the stock kernel on a processor of QEMU's and executes programs one after the other.
///
/// # Errors
/// The guest could not be run, or takes longer than `limit` of the emulator's own time.
pub fn run(processor: &str, programs: &[Program], limit: Duration) -> Result<Outcome, Error> {
    let begin = Instant::now();
    let name = format!("processor-{processor}");
    let guest = Guest {
        name: &name,
        card: "e1000",
        buses: &[],
        cable: Cable::Host,
        processor,
        // The emulator has all of them take turns on one thread.
        processors: 1,
        memory: MEMORY,
        ramdisk: ramdisk(programs)?,
        options: String::new(),
        limit,
    };
    // Nothing of the host's can be written through it.
    let files = "local,path=/,mount_tag=files,security_model=none,readonly=on,multidevs=remap";
    let output = guest.run_with(&["-virtfs".to_owned(), files.to_owned()])?;
    Ok(Outcome {
        report: GuestReport::read(&output)?,
        time: begin.elapsed(),
    })
}

fn ramdisk(programs: &[Program]) -> Result<Vec<u8>, Error> {
    let distribution = Distribution::stock()?;
    let needed: Vec<&str> = MODULES.into_iter().chain([LAYER]).collect();
    let order = distribution.in_order(&needed)?;
    let mut disk = Ramdisk::system()?;
    for module in &order {
        disk.file(&format!("modules/{module}.ko"), &distribution.read(module)?);
    }
    disk.file("modules/order", order.join("\n").as_bytes());
    disk.file("init", SCRIPT);
    disk.file("common.sh", COMMON);
    let lines: String = programs.iter().map(Program::line).collect();
    disk.file("programs", lines.as_bytes());
    Ok(disk.finish())
}
