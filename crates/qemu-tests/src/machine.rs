//! QEMU from start to power-off.

use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use process_lab::patience::Patience;
use rustix::fs::{FlockOperation, flock};

use super::{Error, io, package, target};

/// What is at the other end of the card's cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// QEMU's user network, which ends at the host's sockets.
    Host,
    /// A second card of the same model in the guest.
    Card,
}

impl Cable {
    /// QEMU's arguments for a card on it, with what it is plugged into.
    fn arguments(self, card: &str, buses: &[&str]) -> Vec<String> {
        let (networks, ends): (&[&str], &[&str]) = match self {
            Cable::Host => (&["user,id=network"], &["network"]),
            Cable::Card => (
                &["hubport,id=near,hubid=0", "hubport,id=far,hubid=0"],
                &["near", "far"],
            ),
        };
        let networks = networks.iter().map(|network| ["-netdev", network]);
        let buses = buses.iter().map(|bus| ["-device", bus]);
        let words = networks.chain(buses).flatten().map(str::to_owned);
        let cards = ends
            .iter()
            .flat_map(|end| ["-device".to_owned(), format!("{card},netdev={end}")]);
        words.chain(cards).collect()
    }
}

/// MiB that are enough for what is in a ramdisk.
pub const MEMORY: u32 = 512;

/// What to boot.
pub struct Guest<'g> {
    /// Names its files below `target/qemu`.
    pub name: &'g str,
    /// QEMU's model of a network card.
    pub card: &'g str,
    /// Devices that the card is plugged into, if it is not plugged into the machine.
    pub buses: &'g [&'g str],
    /// Its cable.
    pub cable: Cable,
    /// QEMU's model of a processor.
    pub processor: &'g str,
    /// Number of processors.
    pub processors: u32,
    /// Memory, in MiB.
    pub memory: u32,
    /// An initramfs, as the kernel unpacks it.
    pub ramdisk: Vec<u8>,
    /// Additional words of the kernel's command line.
    pub options: String,
    /// How long it may take, in the process's own time ([`Patience`]).
    pub limit: Duration,
}

/// Output of a guest.
pub struct GuestOutput {
    /// The kernel's console.
    pub console: PathBuf,
    /// The script's output.
    pub results: PathBuf,
    /// How long it took.
    pub time: Duration,
}

impl Guest<'_> {
    /// Boots the stock kernel and waits until it powers off.
    ///
    /// # Errors
    /// QEMU or the kernel is missing, or it takes too long.
    pub fn run(&self) -> Result<GuestOutput, Error> {
        self.run_with(&[])
    }

    /// The same with further arguments of QEMU.
    ///
    /// # Errors
    /// As above.
    pub fn run_with(&self, arguments: &[String]) -> Result<GuestOutput, Error> {
        let directory = target("qemu").join(self.name);
        io(
            directory.display().to_string(),
            std::fs::create_dir_all(&directory),
        )?;
        let _alone = alone(&directory)?;
        let ramdisk = directory.join("initrd.img");
        let write = std::fs::write(&ramdisk, &self.ramdisk);
        io(ramdisk.display().to_string(), write)?;
        let (console, results) = (directory.join("console.log"), directory.join("results.log"));
        let begin = Instant::now();
        let mut child = self.start(&kernel()?, &ramdisk, &console, &results, arguments)?;
        let ended = self.wait(&mut child)?;
        // No process of it runs on, however it ended.
        if !ended {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Timeout {
                seconds: self.limit.as_secs(),
                console,
            });
        }
        Ok(GuestOutput {
            console,
            results,
            time: begin.elapsed(),
        })
    }

    fn start(
        &self,
        kernel: &Path,
        ramdisk: &Path,
        console: &Path,
        results: &Path,
        arguments: &[String],
    ) -> Result<Child, Error> {
        // The kernel's test of its timer takes a host that gives QEMU too little time for
        // broken hardware (check_timer, arch/x86/kernel/apic/io_apic.c).
        let command_line = format!(
            "console=ttyS0 panic=-1 quiet no_timer_check {}",
            self.options
        );
        let file = |path: &Path| format!("file:{}", path.display());
        let mut qemu = Command::new("qemu-system-x86_64");
        // All processors take turns on one thread. With a thread for each, one of them may
        // execute for ever a breakpoint that another has removed from the kernel's code
        // (when tracing is switched on).
        qemu.args(["-accel", "tcg,thread=single"])
            .args(["-m", &self.memory.to_string()])
            .args(["-no-reboot", "-nodefaults"])
            .args(["-display", "none", "-monitor", "none"])
            .args(["-cpu", self.processor])
            .args(["-smp", &self.processors.to_string()])
            .args(self.cable.arguments(self.card, self.buses))
            .args(["-append", &command_line])
            .arg("-serial")
            .arg(file(console))
            .arg("-serial")
            .arg(file(results))
            .arg("-kernel")
            .arg(kernel)
            .arg("-initrd")
            .arg(ramdisk)
            .args(arguments)
            .stdin(Stdio::null());
        // QEMU's messages about the network's state, and about commands of some cards.
        let messages = console.with_file_name("qemu.log");
        let name = messages.display().to_string();
        let messages = io(name.clone(), std::fs::File::create(messages))?;
        qemu.stdout(io(name, messages.try_clone())?);
        qemu.stderr(messages);
        end_with_this_thread(&mut qemu);
        io(
            "qemu-system-x86_64 (scripts/setup.sh installs it)",
            qemu.spawn(),
        )
    }

    fn wait(&self, child: &mut Child) -> Result<bool, Error> {
        const PIECE: Duration = Duration::from_millis(50);
        let mut patience = Patience::new(child.id() as libc::pid_t, self.limit);
        while !patience.left().is_zero() {
            if io("qemu-system-x86_64", child.try_wait())?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(PIECE);
            patience.waited(PIECE);
        }
        Ok(false)
    }
}

/// Waits until no other process has a machine of the same name: they would write to the same
/// files.
fn alone(directory: &Path) -> Result<File, Error> {
    let path = directory.join("lock");
    let name = path.display().to_string();
    let lock = io(name.clone(), File::create(&path))?;
    if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
        eprintln!(
            "waiting for another process that uses {}",
            directory.display()
        );
        io(
            name,
            flock(&lock, FlockOperation::LockExclusive).map_err(Into::into),
        )?;
    }
    Ok(lock)
}

/// QEMU is killed when the thread that waits for it is gone, by whatever signal.
fn end_with_this_thread(qemu: &mut Command) {
    let ask = || {
        // SAFETY: a system call with two numbers; it may be made between fork and exec.
        match unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        }
    };
    // SAFETY: `ask` allocates nothing and takes no lock.
    unsafe { qemu.pre_exec(ask) };
}

/// The stock kernel.
fn kernel() -> Result<PathBuf, Error> {
    let boot = package("boot");
    let missing = || Error::Missing {
        what: "the stock kernel",
        path: boot.clone(),
    };
    let entries = std::fs::read_dir(&boot).map_err(|_| missing())?;
    let mut kernels: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().starts_with("vmlinuz")
        })
        .collect();
    kernels.sort();
    kernels.pop().ok_or_else(missing)
}
