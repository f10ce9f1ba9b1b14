//! Any Ethernet module of the distribution: rewritten with all that it needs,
//! loaded into the stock kernel, and used on a card of QEMU's if it has one.

use std::path::Path;
use std::time::Duration;

use svm_rewrite::Scheme;

use super::Error;
use super::distribution::{Distribution, normal};
use super::machine::{Cable, Guest, MEMORY};
use super::modules;
use super::ramdisk::Ramdisk;
use super::report::GuestReport;
use super::server::{Server, noise};
use super::traces::{self, Traces};

const COMMON: &[u8] = include_bytes!("../guest/common.sh");
const TRAFFIC: &[u8] = include_bytes!("../guest/traffic.sh");
const LOADING: &[u8] = include_bytes!("../guest/loading.sh");
const CARD: &[u8] = include_bytes!("../guest/card.sh");

/// Bytes that go down, and up again.
const BYTES: usize = 2 << 20;

/// A card of QEMU's, and the modules that drive it.
#[derive(Clone, Copy, Debug)]
pub struct Card {
    /// QEMU's name for it.
    pub device: &'static str,
    /// Devices that it is plugged into.
    pub buses: &'static [&'static str],
    /// The module that drives it.
    pub driver: &'static str,
    /// Modules in addition to the driver's dependencies: those of its bus.
    pub beside: &'static [&'static str],
}

const fn pci(device: &'static str, driver: &'static str) -> Card {
    Card {
        device,
        buses: &[],
        driver,
        beside: &[],
    }
}

/// The cards of QEMU 7.2 that have a module in Debian's kernel. `ne2k_isa` and
/// `rocker` have none there; `pvrdma` is no Ethernet card; `8139too` leaves QEMU's
/// rtl8139 to `8139cp`; [`WITHOUT_FIRMWARE`] stands apart.
pub const CARDS: &[Card] = &[
    pci("e1000", "e1000"),
    pci("e1000-82544gc", "e1000"),
    pci("e1000-82545em", "e1000"),
    pci("e1000e", "e1000e"),
    pci("i82550", "e100"),
    pci("i82557a", "e100"),
    pci("i82557b", "e100"),
    pci("i82557c", "e100"),
    pci("i82558a", "e100"),
    pci("i82558b", "e100"),
    pci("i82559a", "e100"),
    pci("i82559b", "e100"),
    pci("i82559c", "e100"),
    pci("i82559er", "e100"),
    pci("i82562", "e100"),
    pci("i82801", "e100"),
    pci("ne2k_pci", "ne2k-pci"),
    pci("pcnet", "pcnet32"),
    pci("rtl8139", "8139cp"),
    pci("tulip", "tulip"),
    pci("vmxnet3", "vmxnet3"),
    Card {
        beside: &["virtio_pci"],
        ..pci("virtio-net-pci", "virtio_net")
    },
    Card {
        beside: &["virtio_pci"],
        ..pci("virtio-net-pci-transitional", "virtio_net")
    },
    Card {
        beside: &["virtio_pci"],
        ..pci("virtio-net-pci-non-transitional", "virtio_net")
    },
    Card {
        buses: &["qemu-xhci"],
        beside: &["xhci-pci"],
        ..pci("usb-net", "cdc_ether")
    },
];

/// The one card for which `e100` refuses to open without `e100/d102e_ucode.bin`
/// (`e100_request_firmware`: `required`), which Debian has among its non-free packages
/// only. The original module refuses too.
pub const WITHOUT_FIRMWARE: Card = pci("i82551", "e100");

/// The first card that a module drives.
pub fn card_of(driver: &str) -> Option<&'static Card> {
    CARDS
        .iter()
        .find(|card| normal(card.driver) == normal(driver))
}

/// A trial to run.
#[derive(Clone, Debug)]
pub struct Trial<'t> {
    /// Names its files below `target/qemu`.
    pub name: String,
    /// The modules to load; their dependencies are loaded too.
    pub modules: Vec<&'t str>,
    /// What modules are given when they are loaded.
    pub parameters: &'t [(&'t str, &'t str)],
    /// A script that uses the modules once they are loaded.
    pub exercise: Option<&'t [u8]>,
    /// The card, if there is one.
    pub card: Option<&'static Card>,
    /// Translation scheme; `None` leaves the modules as the distribution has them, to
    /// see what a card or a driver does by itself.
    pub scheme: Option<Scheme>,
    /// How long it may take.
    pub limit: Duration,
}

impl<'t> Trial<'t> {
    /// A module on its card, if QEMU has one.
    pub fn of(driver: &'t str, card: Option<&'static Card>) -> Trial<'t> {
        let mut modules = card.map_or(Vec::new(), |card| card.beside.to_vec());
        modules.push(driver);
        Trial {
            name: match card {
                Some(card) => format!("{}-{}", normal(driver), card.device),
                None => normal(driver),
            },
            modules,
            parameters: &[],
            exercise: None,
            card,
            scheme: Some(Scheme::Stlb),
            limit: Duration::from_secs(600),
        }
    }

    /// Rewrites all modules that are not yet, if a scheme is given, boots, and reads the output.
    ///
    /// # Errors
    /// A module is refused or missing, or the guest could not be run.
    pub fn run(&self, distribution: &Distribution) -> Result<Outcome, Error> {
        let data = noise(BYTES, 6);
        let server = Server::start(data)?;
        let order = distribution.in_order(&self.modules)?;
        let mut disk = Ramdisk::system()?;
        disk.file("init", CARD);
        disk.file("common.sh", COMMON);
        disk.file("traffic.sh", TRAFFIC);
        disk.file("loading.sh", LOADING);
        disk.file("order", (order.join("\n") + "\n").as_bytes());
        let mut modules = Vec::new();
        for name in &order {
            let original = distribution.read(name)?;
            let module = match self.scheme {
                _ if modules::is_marked(&original) => modules::verified(Path::new(name), original)?,
                Some(scheme) => modules::rewrite(name, &original, scheme)?,
                None => modules::original(name, original)?,
            };
            disk.file(&format!("modules/{name}.ko"), &module.bytes);
            modules.push(module);
        }
        for (module, parameters) in self.parameters {
            disk.file(&format!("parameters/{module}"), parameters.as_bytes());
        }
        if let Some(script) = self.exercise {
            disk.file("exercise", script);
        }
        disk.file("functions", traces::functions(&modules).as_bytes());
        disk.file("imports", traces::imports(&modules).as_bytes());
        let guest = Guest {
            name: &self.name,
            card: self.card.map_or("e1000", |card| card.device),
            buses: self.card.map_or(&[], |card| card.buses),
            cable: Cable::Host,
            processor: "qemu64",
            processors: 2,
            memory: MEMORY,
            ramdisk: disk.finish(),
            options: format!(
                "twin.down={} twin.up={} twin.sum={} twin.bytes={BYTES} twin.card={}",
                server.down,
                server.up,
                server.sum()?,
                if self.card.is_some() { "yes" } else { "no" },
            ),
            limit: self.limit,
        };
        let output = guest.run()?;
        let mut report = GuestReport::read(&output)?;
        let mut traced = Traces::default();
        if self.card.is_some() {
            let arrived = server.received();
            let whole = arrived.iter().all(|bytes| bytes == data);
            let times = format!("{} times", arrived.len());
            report.judge("arrived", whole && !arrived.is_empty(), times);
            traced = traces::judge(&mut report, &modules);
        }
        Ok(Outcome {
            report,
            time: output.time,
            traced,
        })
    }
}

/// What came of a trial.
pub struct Outcome {
    /// The guest's steps, and what the host observed.
    pub report: GuestReport,
    /// How long the guest ran.
    pub time: Duration,
    /// What the kernel's tracing saw of the modules.
    pub traced: Traces,
}
