//! Rewritten modules in a stock kernel under QEMU: loaded in place of the originals,
//! used, traced and patched by the kernel, unloaded.

use std::time::Duration;

use elf_loader::compression::Compression;
use qemu_tests::machine::{Cable, Guest, MEMORY};
use qemu_tests::modules::{self, Module};
use qemu_tests::ramdisk::Ramdisk;
use qemu_tests::report::{self, GuestReport};
use qemu_tests::server::{Server, noise};
use svm_rewrite::{Accesses, Scheme};

const COMMON: &[u8] = include_bytes!("../guest/common.sh");
const TRAFFIC_SCRIPT: &[u8] = include_bytes!("../guest/traffic.sh");
const NETWORK: &[u8] = include_bytes!("../guest/network.sh");
const STORES: &[u8] = include_bytes!("../guest/stores.sh");
const WILD: &[u8] = include_bytes!("../guest/wild.sh");

/// Bytes that go down, and up again.
const TRAFFIC: usize = 32 << 20;

/// How long a guest may take on a slow machine; usually a minute.
const LIMIT: Duration = Duration::from_secs(900);

/// A network driver and its parameters of the test.
struct Driver {
    name: &'static str,
    /// Below `kernel/`.
    path: &'static str,
    /// Modules that it needs, unmodified, below `kernel/`.
    needs: &'static [&'static str],
    card: &'static str,
    processor: &'static str,
    processors: u32,
    scheme: Scheme,
    /// Whether its rings can be resized.
    ring: bool,
    /// A parameter that can be read.
    parameter: &'static str,
    /// All its functions, as the function tracer's filter names them.
    filter: &'static str,
    /// Its output when its debug messages are switched on; empty if it has none.
    debug_message: &'static str,
    /// The prefix of its functions' names.
    prefix: &'static str,
    /// A function that every packet goes through.
    function: &'static str,
    /// Functions with spills that the script's steps run.
    busy: &'static [&'static str],
}

fn good<T>(result: Result<T, qemu_tests::Error>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

impl Driver {
    /// Runs the whole script and checks every result.
    fn run(&self) {
        let stock = good(modules::stock(self.path));
        self.run_as(&good(modules::rewrite(self.path, &stock, self.scheme)));
    }

    /// The same with a module that was rewritten elsewhere.
    fn run_as(&self, module: &Module) {
        let data = noise(TRAFFIC, 6);
        let server = good(Server::start(data));
        let probes = self.probes(module);
        let report = self.boot(module, &server, &good(server.sum()), &probes);
        report.assert_good(&[
            "load", "load-carrier", "ping", "taint", "types", "init-freed", "download", "upload",
            "statistics", "mtu-ping", "link-ping", "ftrace-ping", "kprobe", "static-calls",
            "dyndbg-traffic", "dyndbg", "unload", "reload-ping", "unload-again",
        ]);
        let received = server.received();
        assert!(received == [data], "32 MiB arrive as they were sent");
        assert!(
            report.console.contains(self.debug_message),
            "{:?} is not in the log ({})",
            self.debug_message,
            report.place
        );
        self.traced(module, &report);
        self.unwound(module, &report, "stacks", 1);
        self.unwound(module, &report, "probes", probes.len().min(1));
        self.unwound(module, &report, "timer", 5);
        self.interrupted(module, &report);
    }

    fn boot(
        &self,
        module: &Module,
        server: &Server,
        sum: &str,
        probes: &[(String, u64)],
    ) -> GuestReport {
        let mut disk = good(Ramdisk::system());
        disk.file("init", NETWORK);
        disk.file("common.sh", COMMON);
        disk.file("traffic.sh", TRAFFIC_SCRIPT);
        disk.file(&format!("modules/{}.ko", self.name), &module.bytes);
        for path in self.needs {
            let name = path.rsplit('/').next().unwrap_or(path);
            disk.file(&format!("modules/{name}"), &good(modules::stock(path)));
        }
        let lines = probes.iter().enumerate();
        let lines = lines.map(|(n, (f, at))| format!("spill{n} {f}+{at}\n"));
        disk.file("probes", lines.collect::<String>().as_bytes());
        let guest = Guest {
            name: self.name,
            card: self.card,
            buses: &[],
            cable: Cable::Host,
            processor: self.processor,
            processors: self.processors,
            memory: MEMORY,
            ramdisk: disk.finish(),
            options: format!(
                "twin.module={} twin.down={} twin.up={} twin.sum={sum} twin.ring={} \
                 twin.parameter={} twin.filter={} twin.prefix={} \
                 twin.function={} twin.btf={} twin.taint={}",
                self.name,
                server.down,
                server.up,
                if self.ring { "yes" } else { "no" },
                self.parameter,
                self.filter,
                self.prefix,
                self.function,
                types(&module.bytes),
                taint(&module.bytes),
            ),
            limit: LIMIT,
        };
        let outcome = good(guest.run());
        println!("{}: {:.1} s", self.name, outcome.time.as_secs_f64());
        let report = good(GuestReport::read(&outcome));
        for step in &report.steps {
            println!(
                "{} {} {}",
                if step.ok { "ok  " } else { "FAIL" },
                step.name,
                step.text
            );
        }
        report
    }

    /// Some stack traces are from the middle of the driver, not from its callees.
    fn interrupted(&self, module: &Module, report: &GuestReport) {
        let stacks = report::stacks(report.text("timer"));
        let inside = |stack: &&Vec<String>| {
            let interrupt = stack
                .iter()
                .position(|frame| frame.starts_with("asm_sysvec_"));
            let below = interrupt.and_then(|n| stack.get(n + 1));
            below.is_some_and(|frame| module.has(frame) || frame.starts_with("twin_"))
        };
        let count = stacks.iter().filter(inside).count();
        println!("{}: {count} times interrupted in its own code", self.name);
        assert!(count > 0, "{stacks:#?} ({})", report.place);
    }

    /// Where to probe: in the middle of sequences that spill.
    fn probes(&self, module: &Module) -> Vec<(String, u64)> {
        println!("{}: spills in {:?}", self.name, module.spills());
        module.spilled(self.busy, 3)
    }

    /// The function tracer names functions of the driver.
    fn traced(&self, module: &Module, report: &GuestReport) {
        let text = report.text("ftrace");
        let mut seen: Vec<&str> = text
            .split_whitespace()
            .filter(|word| module.has(word))
            .collect();
        seen.sort_unstable();
        seen.dedup();
        println!("{}: traced {seen:?}", self.name);
        assert!(seen.len() >= 3, "{seen:?} ({})", report.place);
    }

    /// Stack traces with frames of the driver in them reach the beginning of the stack.
    fn unwound(&self, module: &Module, report: &GuestReport, name: &str, least: usize) {
        let stacks = report::stacks(report.text(name));
        let own: Vec<_> = stacks
            .iter()
            .filter(|stack| stack.iter().any(|frame| module.has(frame)))
            .collect();
        println!(
            "{}: {name}: {} stacks, {} through the driver",
            self.name,
            stacks.len(),
            own.len()
        );
        assert!(own.len() >= least, "{stacks:#?} ({})", report.place);
        for stack in &own {
            assert!(report::is_whole(stack), "{stack:#?} ({})", report.place);
        }
    }
}

/// The driver of the network card that everyone has.
const E1000: Driver = Driver {
    name: "e1000",
    path: "drivers/net/ethernet/intel/e1000/e1000.ko",
    needs: &[],
    card: "e1000",
    processor: "qemu64",
    processors: 2,
    scheme: Scheme::Stlb,
    ring: true,
    parameter: "copybreak",
    filter: ":mod:e1000",
    prefix: "e1000_",
    function: "e1000_clean",
    debug_message: "Issuing a global reset to MAC",
    busy: &[
        "e1000_init_hw",
        "e1000_get_speed_and_duplex",
        "e1000_xmit_frame",
    ],
};

#[test]
fn e1000_on_two_processors() {
    E1000.run();
}

/// The driver as a kernel build made it with `twin cc` as its compiler, assembly
/// text on the way: on one processor, where the kernel takes the `lock` prefixes
/// out that `.smp_locks` names. Not a part of `make test`: `make e1000` builds the module
/// from the kernel's source, and runs this.
#[test]
#[ignore = "needs examples/e1000/build.sh: make e1000"]
fn e1000_compiled_from_source() {
    let module = good(modules::built("examples/e1000/e1000.ko"));
    Driver {
        processors: 1,
        ..E1000
    }
    .run_as(&module);
}

/// With one processor the kernel takes the `lock` prefixes out, and page tables
/// of five levels move all addresses.
#[test]
fn rtl8139cp_on_one_processor_with_five_levels_of_page_tables() {
    Driver {
        name: "8139cp",
        path: "drivers/net/ethernet/realtek/8139cp.ko",
        needs: &["drivers/net/mii.ko"],
        card: "rtl8139",
        processor: "max",
        processors: 1,
        scheme: Scheme::Paper,
        ring: false,
        parameter: "",
        // The filter takes a name that begins with a digit for a number.
        filter: "cp_*",
        prefix: "cp_",
        function: "cp_interrupt",
        debug_message: "",
        busy: &[
            "cp_rx_poll", "cp_start_xmit", "cp_interrupt", "cp_open", "cp_tx",
        ],
    }
    .run();
}

/// A driver with a wild pointer is stopped, with a line in the log that names its place
/// and the address; the kernel goes on. Faults that the driver lets the kernel handle, in
/// memory of the kernel and of a process, are handled.
#[test]
fn a_wild_pointer_stops_its_driver_and_an_expected_fault_does_not() {
    // The address, and the function of wild.c that writes there.
    const STRAYS: [(u64, &str); 6] = [
        (0x8, "wild_write"),                   // the null page
        (0x7fff_0000_1000, "wild_write"),      // user space
        (0x8000_0000_0000_0000, "wild_write"), // not canonical
        (0xffff_ffff_ffff_ffe2, "wild_write"), // an error pointer, -ENODEV less a field
        (0x18, "wild_write_init"),             // in .init.text
        (0x28, "wild_write_cold"),             // in .text.unlikely
    ];
    let original = good(modules::support("wild.ko"));
    let module = good(modules::rewrite("wild.ko", &original, Scheme::Stlb));
    let mut disk = good(Ramdisk::system());
    disk.file("init", WILD);
    disk.file("common.sh", COMMON);
    disk.file("modules/wild.ko", &module.bytes);
    let faulting = good(modules::support("fixup.ko"));
    let rewritten = good(modules::rewrite("fixup.ko", &faulting, Scheme::Stlb));
    disk.file("modules/fixup-original.ko", &faulting);
    disk.file("modules/fixup-rewritten.ko", &rewritten.bytes);
    let restoring = good(modules::support("flags.ko"));
    let restored = good(modules::rewrite("flags.ko", &restoring, Scheme::Stlb));
    disk.file("modules/flags-original.ko", &restoring);
    disk.file("modules/flags-rewritten.ko", &restored.bytes);
    for n in 1..=2 {
        let name = format!("modules/flags{n}.ko.gz");
        disk.file(&name, &packed(&restored.bytes, "flags", n));
    }
    // A module that was stopped while it was loaded stays loaded: each address needs one
    // with another name.
    for n in 1..=STRAYS.len() {
        disk.file(
            &format!("modules/wild{n}.ko.gz"),
            &packed(&module.bytes, "wild", n),
        );
    }
    let place = |from: &str| match from {
        "wild_write_init" => 1,
        "wild_write_cold" => 2,
        _ => 0,
    };
    let list = STRAYS.map(|(address, from)| format!("{address}:{}", place(from)));
    let guest = Guest {
        name: "wild",
        card: "e1000",
        buses: &[],
        cable: Cable::Host,
        processor: "qemu64",
        processors: 1,
        memory: MEMORY,
        ramdisk: disk.finish(),
        options: format!("twin.addresses={}", list.join(",")),
        limit: LIMIT,
    };
    let report = good(GuestReport::read(&good(guest.run())));
    let failed: Vec<_> = report.steps.iter().filter(|s| !s.ok).collect();
    assert!(
        failed.is_empty() && report.done,
        "{failed:#?} ({})",
        report.place
    );
    assert_eq!(report.console.matches("wild: went on").count(), 1);
    // Seven accesses, as they were and rewritten.
    assert_eq!(report.console.matches(": answered").count(), 14);
    // Flags: with interrupts, without, and with them again, as it was and rewritten.
    let restored = report.console.matches("flags: interrupts 0, 1, 0").count();
    assert_eq!(restored, 2);
    for place in ["flags_restore+0x", "flags_trap+0x"] {
        let stops = format!("RIP: 0010:{place}");
        assert!(
            report.console.contains(&stops),
            "no {stops} ({})",
            report.place
        );
    }
    for (n, (address, from)) in STRAYS.into_iter().enumerate() {
        // They add to the second word. The kernel's report of a BUG: what it is, the
        // registers, and the calls, of which the first is that of the slow path.
        let module_name = format!("[wild{}]", n + 1);
        let mut reports = report.console.split("kernel BUG at ").skip(1);
        let own = reports.find(|text| text.contains(&module_name));
        let text = own.unwrap_or_else(|| panic!("nothing of {module_name} ({})", report.place));
        assert!(
            text.starts_with("twin: an access to what is no address of the kernel:0!"),
            "{text}"
        );
        let (_, slow) = text
            .split_once(" twin_slow_")
            .expect("the slow path called");
        let (register, calls) = slow.split_once('+').expect("its register");
        let register = match register.len() {
            2 => format!("{:0>3}", register.to_uppercase()),
            _ => register.to_uppercase(),
        };
        let held = format!("{register}: {:016x}", address + 8);
        assert!(text.contains(&held), "no {held} in {text}");
        let begin = format!(" {from}+0x");
        let (_, offset) = calls.split_once(&begin).unwrap_or_else(|| panic!("{text}"));
        let line = offset.lines().next().unwrap_or_default();
        let (offset, size) = line.split_once('/').expect("offset/size");
        let size = size
            .split(' ')
            .next()
            .expect("a size")
            .trim_start_matches("0x");
        let number = |hex: &str| u64::from_str_radix(hex, 16).expect("a number");
        // The kernel counts the padding, too.
        let padding = number(size).checked_sub(module.size(from));
        assert!(padding.is_some_and(|padding| padding < 16), "{line}");
        assert!(
            module.returns_from_slow_path(from, number(offset)),
            "no slow path returns there: {line}"
        );
    }
}

/// Where stores alone are translated, a driver that writes user memory is stopped, and one
/// that reads it is not. Where all accesses are, both are.
#[test]
fn a_stray_store_is_stopped_and_a_stray_load_is_not_where_stores_alone_are_translated() {
    let original = good(modules::support("wild.ko"));
    let built = |accesses| {
        let built = modules::rewrite_accesses("wild.ko", &original, Scheme::Stlb, accesses);
        good(built).bytes
    };
    let (stores, all) = (built(Accesses::Stores), built(Accesses::All));
    let mut disk = good(Ramdisk::system());
    disk.file("init", STORES);
    disk.file("common.sh", COMMON);
    for (n, module) in [(1, &stores), (2, &stores), (3, &all), (4, &all)] {
        disk.file(
            &format!("modules/wild{n}.ko.gz"),
            &packed(module, "wild", n),
        );
    }
    let guest = Guest {
        name: "stores",
        card: "e1000",
        buses: &[],
        cable: Cable::Host,
        // Without SMAP: the processor lets the kernel reach user memory.
        processor: "qemu64",
        processors: 1,
        memory: MEMORY,
        ramdisk: disk.finish(),
        options: String::new(),
        limit: LIMIT,
    };
    let report = good(GuestReport::read(&good(guest.run())));
    let failed: Vec<_> = report.steps.iter().filter(|s| !s.ok).collect();
    assert!(
        failed.is_empty() && report.done,
        "{failed:#?} ({})",
        report.place
    );
    let said = |text: &str| report.console.matches(text).count();
    assert_eq!(said("wild: read "), 1, "{}", report.place);
    assert_eq!(said("wild: went on"), 1, "{}", report.place);
    // The three others, each by the slow path.
    assert_eq!(said("kernel BUG at twin: an access"), 3, "{}", report.place);
    for module in ["[wild2]", "[wild3]", "[wild4]"] {
        assert_ne!(said(module), 0, "{module} ({})", report.place);
    }
}

/// The kernel's taint by a module that was not built with the kernel, as its `.modinfo`
/// says (TAINT_OOT_MODULE, include/linux/panic.h).
fn taint(module: &[u8]) -> u64 {
    const OUT_OF_TREE: u64 = 1 << 12;
    let object = elf_loader::read(module).expect("a module");
    let id = object
        .section_named(".modinfo")
        .expect("every module has it");
    let mut facts = object.section(id).data.split(|b| *b == 0);
    match facts.any(|fact| fact == b"intree=Y") {
        true => 0,
        false => OUT_OF_TREE,
    }
}

/// Bytes of the module's types, as the kernel shows them below /sys/kernel/btf.
fn types(module: &[u8]) -> u64 {
    let object = elf_loader::read(module).expect("a module");
    let types = object.section_named(".BTF");
    types.map_or(0, |id| object.section(id).size)
}

/// Under another name, and compressed: `insmod` then gives the kernel the bytes (`init_module`), not
/// the file. A process that is stopped in `finit_module` leaves a part of its stack in a list
/// of the kernel's (`idempotent_init_module`, kernel/module/main.c, since Linux 6.5), and another
/// file's load may fault there.
fn packed(bytes: &[u8], name: &str, n: usize) -> Vec<u8> {
    let packed = Compression::Gzip.pack(&renamed(bytes, name, n));
    packed.expect("gzip in memory")
}

/// The module of this name under the name `<name><n>`: it stands in `__this_module`.
fn renamed(bytes: &[u8], name: &str, n: usize) -> Vec<u8> {
    let mut object = elf_loader::read(bytes).expect("a module");
    let id = object
        .section_named(".gnu.linkonce.this_module")
        .expect("a module has one");
    let data = object.sections[id.0 as usize].data.to_mut();
    let at = data
        .windows(name.len() + 1)
        .position(|w| w.starts_with(name.as_bytes()) && w.ends_with(b"\0"))
        .expect("its name");
    data[at + name.len()] = b'0' + n as u8;
    elf_loader::write(&object).expect("a module")
}
