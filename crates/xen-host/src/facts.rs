//! What a system is, as far as a driver in its Xen depends on it. Reading changes nothing.

use elf_loader::Object;
use payload::Table;

use crate::driver::{self, DRIVER, Likeness};
use crate::kit::Kit;
use crate::log::xen_log;
use crate::refusal::Refusal;
use crate::status::Status;
use crate::system::{ProgramError, System};
use crate::tools::{self, Loaded, XlInfo};

/// All that the checks judge.
#[derive(Clone, Debug)]
pub struct Facts {
    /// `/sys/hypervisor/type`.
    pub hypervisor: Option<String>,
    /// `/sys/hypervisor/guest_type`.
    pub guest_type: Option<String>,
    /// Whether this domain controls Xen.
    pub controls: bool,
    /// The hypervisor's build-id.
    pub build_id: Option<String>,
    /// The table of that build: its version, or why there is none.
    pub table: Result<String, String>,
    /// The platform's object: that it is there, or why not.
    pub platform: Result<(), String>,
    /// The kernel's release.
    pub release: Option<String>,
    /// Whether both of dom0's modules are installed for it; the kernels that they are for.
    pub modules: Result<(), Vec<String>>,
    /// Those of them that are loaded, and from another build.
    pub foreign: Vec<&'static str>,
    /// What makes the kernel refuse modules that are not signed.
    pub signatures: Option<&'static str>,
    /// Whether xen-netback is loaded, and dom0's module is not: the first one has the guests'
    /// interfaces. udev loads it when a guest's interface appears, whoever has that.
    pub netback: bool,
    /// Whether the kernel's addresses are shown.
    pub addresses: bool,
    /// Whether the processor has BMI2.
    pub bmi2: Option<bool>,
    /// What `xl info` says.
    pub xl: Result<XlInfo, ProgramError>,
    /// Whether Xen said at its start that it uses CET; `None` if its log is not whole.
    pub cet: Option<bool>,
    /// The payloads in Xen.
    pub payloads: Result<Vec<Loaded>, ProgramError>,
    /// The driver's module.
    pub driver: Driver,
    /// The interface that was asked for.
    pub interface: Option<Interface>,
    /// What dom0's modules say, if they are loaded.
    pub status: Result<Option<Status>, Refusal>,
}

/// The driver's module.
#[derive(Clone, Debug)]
pub struct Driver {
    /// Whether it is loaded.
    pub loaded: bool,
    /// Its file, and whether that is what is loaded.
    pub file: Option<(std::path::PathBuf, Likeness)>,
}

/// A network interface.
#[derive(Clone, Debug)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Whether there is one.
    pub exists: bool,
    /// The driver of its device.
    pub driver: Option<String>,
    /// Whether it is up.
    pub up: bool,
    /// Its transmit queues.
    pub queues: usize,
    /// Its MTU, in bytes.
    pub mtu: Option<u32>,
    /// Who else has requested the card's interrupt.
    pub sharers: Vec<String>,
    /// The bridge or bond that it is a port of.
    pub master: Option<String>,
    /// Interfaces whose packets go through it, the bridge or bond aside: a VLAN's, a macvlan.
    pub above: Vec<String>,
    /// Whether a default route of dom0's leads through it.
    pub default_route: bool,
}

impl Facts {
    /// Reads them.
    pub fn read(system: &System, kit: &Kit, interface: Option<&str>) -> Facts {
        let xl = XlInfo::read(system);
        let build_id = build_id(&xl);
        let release = system.word("proc/sys/kernel/osrelease");
        Facts {
            hypervisor: system.word("sys/hypervisor/type"),
            guest_type: system.word("sys/hypervisor/guest_type"),
            controls: controls(system),
            table: table(kit, build_id.as_deref()),
            build_id,
            platform: platform(kit),
            modules: modules(kit, release.as_deref()),
            foreign: foreign(system, kit, release.as_deref()),
            signatures: signatures(system),
            netback: driver::is_loaded(system, "xen_netback")
                && !driver::is_loaded(system, "twin_dom0"),
            addresses: addresses(system),
            bmi2: bmi2(system),
            xl,
            cet: cet(system),
            payloads: tools::payloads(system),
            driver: driver_of(system, release.as_deref()),
            interface: interface.map(|name| interface_of(system, name)),
            release,
            status: Status::read(system),
        }
    }
}

/// Whether this is the control domain: xenfs says it, or the bit `XENFEAT_dom0` of the features
/// (xen/include/public/features.h).
fn controls(system: &System) -> bool {
    const DOM0: u64 = 1 << 11;
    let capabilities = system.word("proc/xen/capabilities").unwrap_or_default();
    let features = system.word("sys/hypervisor/properties/features");
    let features = features.and_then(|digits| u64::from_str_radix(&digits, 16).ok());
    capabilities.contains("control_d") || features.is_some_and(|bits| bits & DOM0 != 0)
}

/// As `xl` has it. The kernel's file of this name holds bytes, and ends at a zero among them.
fn build_id(xl: &Result<XlInfo, ProgramError>) -> Option<String> {
    let id = xl.as_ref().ok()?.value("build_id")?;
    let digits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| id.to_owned())
}

fn table(kit: &Kit, build_id: Option<&str>) -> Result<String, String> {
    let id = build_id.ok_or("`xl info` shows no build_id")?;
    let path = kit.table(id);
    let text = std::fs::read_to_string(&path)
        .map_err(|_| format!("there is no table of the build {id} in {}", path.display()))?;
    let table = Table::parse(&text).map_err(|refusal| format!("{}: {refusal}", path.display()))?;
    table.is_of(id).map_err(|refusal| refusal.to_string())?;
    Ok(table.version().to_owned())
}

fn platform(kit: &Kit) -> Result<(), String> {
    let path = kit.platform();
    let named = |why: &dyn std::fmt::Display| format!("{}: {why}", path.display());
    let bytes = std::fs::read(&path).map_err(|e| named(&crate::system::describe(&e)))?;
    let object: Result<Object<'_>, _> = elf_loader::read(&bytes);
    object.map(|_| ()).map_err(|error| named(&error))
}

fn modules(kit: &Kit, release: Option<&str>) -> Result<(), Vec<String>> {
    let is_there = |release| {
        let files = driver::OURS.map(|name| kit.module(release, name));
        files.iter().all(|file| file.is_file())
    };
    match release.is_some_and(is_there) {
        true => Ok(()),
        false => Err(kit.releases()),
    }
}

fn foreign(system: &System, kit: &Kit, release: Option<&str>) -> Vec<&'static str> {
    let is_foreign = |name: &&'static str| {
        let file = release.map(|release| kit.module(release, name));
        let file = file.filter(|file| file.is_file() && driver::is_loaded(system, name));
        file.is_some_and(|file| driver::likeness(system, name, &file) == Likeness::Other)
    };
    driver::OURS.into_iter().filter(is_foreign).collect()
}

/// A kernel that demands signatures says so in one of two places.
fn signatures(system: &System) -> Option<&'static str> {
    let enforced = system.word("sys/module/module/parameters/sig_enforce");
    let lockdown = system.word("sys/kernel/security/lockdown");
    if enforced.as_deref() == Some("Y") {
        return Some("module.sig_enforce");
    }
    let free = |modes: &String| modes.contains("[none]");
    lockdown.filter(|modes| !free(modes)).map(|_| "lockdown")
}

/// Others than root see zeroes (`kptr_restrict`). The first symbol may be zero for root, too.
fn addresses(system: &System) -> bool {
    let text = system.text("proc/kallsyms").unwrap_or_default();
    let mut addresses = text.lines().filter_map(|line| line.split(' ').next());
    addresses.any(|digits| digits.bytes().any(|digit| digit != b'0'))
}

fn bmi2(system: &System) -> Option<bool> {
    let text = system.text("proc/cpuinfo").ok()?;
    let flags = text.lines().find_map(|line| line.strip_prefix("flags"))?;
    Some(flags.split_whitespace().any(|flag| flag == "bmi2"))
}

/// Xen's log has a line for each kind that it turns on (xen/arch/x86/setup.c), and has it only
/// as long as its beginning is kept.
fn cet(system: &System) -> Option<bool> {
    const ON: [&str; 2] = [
        "Enabling Supervisor Shadow Stacks",
        "Enabling Indirect Branch Tracking",
    ];
    let log = xen_log(system)?;
    if ON.iter().any(|line| log.contains(line)) {
        return Some(true);
    }
    // The first words of all.
    log.contains("Xen version ").then_some(false)
}

fn driver_of(system: &System, release: Option<&str>) -> Driver {
    let file = release.and_then(|release| driver::module_file(system, release, DRIVER));
    Driver {
        loaded: driver::is_loaded(system, DRIVER),
        file: file.map(|file| {
            let likeness = driver::likeness(system, DRIVER, &file);
            (file, likeness)
        }),
    }
}

fn interface_of(system: &System, name: &str) -> Interface {
    const UP: u32 = 1;
    let folder = format!("sys/class/net/{name}");
    let plain = !name.is_empty() && !name.contains('/') && !name.starts_with('.');
    let flags = system.word(&format!("{folder}/flags")).unwrap_or_default();
    let flags = u32::from_str_radix(flags.trim_start_matches("0x"), 16).unwrap_or(0);
    let queues = system.names(&format!("{folder}/queues"));
    let exists = plain && system.has(&folder);
    let master = system.link(&format!("{folder}/master"));
    Interface {
        name: name.to_owned(),
        exists,
        driver: system.link(&format!("{folder}/device/driver")),
        up: flags & UP != 0,
        queues: queues.iter().filter(|name| name.starts_with("tx-")).count(),
        mtu: system
            .word(&format!("{folder}/mtu"))
            .and_then(|bytes| bytes.parse().ok()),
        sharers: sharers(system, &folder, name),
        above: above(system, &folder, master.as_deref()),
        master,
        default_route: has_default_route(system, name),
    }
}

/// Those that the kernel has links to (net/core/dev.c, `__netdev_adjacent_dev_insert`), as to the master.
fn above(system: &System, folder: &str, master: Option<&str>) -> Vec<String> {
    let names = system.names(folder).into_iter();
    let names = names.filter_map(|name| name.strip_prefix("upper_").map(str::to_owned));
    names.filter(|name| Some(name.as_str()) != master).collect()
}

/// Of the main table for IPv4 (net/ipv4/fib_trie.c, fib_route_seq_show), of all tables for IPv6
/// (net/ipv6/route.c, rt6_info_route), in which the kernel's own route to nowhere is of `lo`.
fn has_default_route(system: &System, name: &str) -> bool {
    const ALL_ZERO: &str = "00000000000000000000000000000000";
    let table = |file| system.text(file).unwrap_or_default();
    let (four, six) = (table("proc/net/route"), table("proc/net/ipv6_route"));
    let four = four.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.first() == Some(&name)
            && words.get(1) == Some(&"00000000")
            && words.get(7) == Some(&"00000000")
    });
    let six = six.lines().map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.last() == Some(&name) && words.starts_with(&[ALL_ZERO, "00"])
    });
    four.chain(six).any(|is_default| is_default)
}

/// Of the names of all that have requested the interrupt of a card, those that are not the
/// interface's (Documentation/ABI/testing/sysfs-kernel-irq).
fn sharers(system: &System, folder: &str, name: &str) -> Vec<String> {
    let number = system.word(&format!("{folder}/device/irq"));
    let actions = number.and_then(|n| system.word(&format!("sys/kernel/irq/{n}/actions")));
    let actions = actions.unwrap_or_default();
    let others = actions
        .split(',')
        .filter(|one| !one.is_empty() && *one != name);
    others.map(str::to_owned).collect()
}
