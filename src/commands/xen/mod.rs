//! `twin xen`: a driver runs inside the Xen of a running system, and out of it again.
//!
//! ```text
//! check ──> conditions        attach ──> checked, made, loaded, attached ─┐
//! status ─> counts, aborts    detach, restart <───────────────────────────┘
//! ```

mod attach;
mod check;
mod make;
mod status;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use command_line::failure::Failure;
use command_line::interrupt;
use command_line::options::Format;
use command_line::output;
use xen_host::{CardCheck, Exclusive, Kit, Refusal, System};

const EXAMPLES: &str = "\
Examples:
  twin xen check eth0
  twin xen attach eth0
  twin xen attach --strict eth0
  twin xen attach --no-dma-check eth0
  twin xen status
  twin xen restart eth0
  twin xen detach eth0
  twin xen check --format json | jq '.checks[] | select(.verdict != \"holds\")'

Run it in dom0, as root. scripts/xen-install.sh in twin's source installs what
it needs besides this program: the runtime's object for Xen, a table of the
hypervisor's build, and dom0's modules for its kernel.

`attach` checks first, and then rewrites the driver's module and the hot
routines, verifies them, makes a payload of them for this start of dom0 and
verifies that too, loads it into Xen, and gives it the interface. If a step fails,
those before it are undone. While an interface is attached, guests use it, and
dom0's own packets to it are dropped.

`twin explain CODE` explains the code of each message.

Exit status:
  0  done; for `check`: no condition fails
  1  a condition does not hold, or a step was refused; nothing is changed, unless
     the message says what
  2  wrong usage, or a file that cannot be read or written";

/// Options of `twin xen`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct Opts {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Say whether a driver could run inside this Xen, and if not, why
    Check(CheckOpts),
    /// Put an interface's driver into Xen
    Attach(AttachOpts),
    /// Show what runs there: packets, interrupts, aborts, guests
    Status(StatusOpts),
    /// Give the interface back to dom0's driver
    Detach(DeviceOpts),
    /// Begin anew after an abort
    Restart(DeviceOpts),
}

/// What is installed, and where.
#[derive(Debug, Args)]
struct Installed {
    /// Directory of what is installed for Xen [default: $TWIN_XEN, else `xen/kit` or
    /// `lib/twin/xen` beside this program's directory].
    #[arg(long, value_name = "DIR")]
    kit: Option<PathBuf>,
}

/// The system.
#[derive(Debug, Args)]
struct Place {
    /// A made-up system, for tests.
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    root: PathBuf,
}

#[derive(Debug, Args)]
struct CheckOpts {
    /// The interface that you want to attach.
    #[arg(value_name = "DEV")]
    device: Option<String>,
    /// How to print the results.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    installed: Installed,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct AttachOpts {
    /// The interface: a card of the driver e1000.
    #[arg(value_name = "DEV")]
    device: String,
    /// Compare pointers with the addresses that dom0's kernel may have before they are used:
    /// slower, and more of the driver's mistakes are noticed.
    #[arg(long)]
    strict: bool,
    /// Do not check what the driver gives to the card: the card reads what the driver writes, and so
    /// may read and write any page of the machine. For cards that cannot be checked.
    #[arg(long)]
    no_dma_check: bool,
    #[command(flatten)]
    installed: Installed,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct StatusOpts {
    /// How to print it.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
struct DeviceOpts {
    /// The interface.
    #[arg(value_name = "DEV")]
    device: String,
    #[command(flatten)]
    place: Place,
}

impl Opts {
    /// Does it.
    pub fn run(self) -> Result<(), Failure> {
        match self.action {
            Action::Check(opts) => {
                let device = opts.device.as_deref();
                check::run(
                    &opts.place.system(),
                    &opts.installed.kit(),
                    device,
                    opts.format,
                )
            }
            Action::Attach(opts) => {
                let (system, kit) = (opts.place.system(), opts.installed.kit());
                attach::run(&system, &kit, &opts.wanted())
            }
            Action::Status(opts) => status::run(&opts.place.system(), opts.format),
            Action::Detach(opts) => detach(&opts.place.system(), &opts.device),
            Action::Restart(opts) => restart(&opts.place.system(), &opts.device),
        }
    }
}

impl AttachOpts {
    fn wanted(&self) -> attach::Wanted<'_> {
        attach::Wanted {
            device: &self.device,
            strict: self.strict,
            card: match self.no_dma_check {
                true => CardCheck::Off,
                false => CardCheck::AsSet,
            },
        }
    }
}

impl Place {
    fn system(&self) -> System {
        System::at(&self.root)
    }
}

impl Installed {
    /// The directory that was named, else the first that is there, else where it should be. Never
    /// one below the current directory: that is anybody's, and this is loaded into the kernel.
    fn kit(&self) -> Kit {
        let variable = std::env::var_os("TWIN_XEN").map(PathBuf::from);
        if let Some(folder) = self.kit.clone().or(variable) {
            return Kit::at(folder);
        }
        let program = std::env::current_exe().ok();
        let above = program
            .as_deref()
            .and_then(Path::parent)
            .and_then(Path::parent);
        let above = above.unwrap_or(Path::new("/usr"));
        let places = [above.join("xen/kit"), above.join("lib/twin/xen")];
        let found = places.iter().find(|folder| folder.is_dir());
        Kit::at(found.unwrap_or(&places[1]))
    }
}

fn detach(system: &System, device: &str) -> Result<(), Failure> {
    let _whole = interrupt::postpone();
    let _alone = alone(system, device)?;
    let left = xen_host::detach(system, device).map_err(|refusal| refused(device, &refusal))?;
    let rest = match &left.interfaces[..] {
        [] => "nothing of twin's is left in Xen or in dom0's kernel".to_owned(),
        guests => format!(
            "dom0's modules stay loaded for guests' interfaces ({}): shut these guests down, \
             then detach again",
            guests.join(", ")
        ),
    };
    let driver = match left.was_attached {
        true => "dom0's own driver has it again",
        false => "its driver was not in Xen",
    };
    output::text(format!("{device}: {driver}; {rest}\n").as_bytes())
}

fn restart(system: &System, device: &str) -> Result<(), Failure> {
    let _whole = interrupt::postpone();
    let _alone = alone(system, device)?;
    xen_host::restart(system, device).map_err(|refusal| refused(device, &refusal))?;
    output::text(format!("{device}: driven inside Xen, from the beginning\n").as_bytes())
}

/// Nobody else changes the system, which is a dom0 of Xen.
fn alone(system: &System, device: &str) -> Result<Exclusive, Failure> {
    let refused = |refusal: Refusal| refused(device, &refusal);
    xen_host::on_xen(system).map_err(refused)?;
    system.exclusive().map_err(refused)
}

/// A refusal that is about this interface.
fn refused(device: &str, refusal: &Refusal) -> Failure {
    Failure::refused(device, refusal.code, &refusal.why)
}
