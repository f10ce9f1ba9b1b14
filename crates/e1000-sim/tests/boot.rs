//! The stock e1000.ko boots in the dom0 process, on the dom0 kernel shim and
//! the NIC's model: probe, open, link, statistics, close, remove.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use e1000_sim::dom0::host;
use e1000_sim::dom0::interface::text;
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::hypervisor::upcall::{self, Upcall, UpcallError};
use e1000_sim::image::files::Files;
use e1000_sim::image::{KernelPlan, Missing};
use e1000_sim::memory::{BAR, Machine, Sizes, driver_stack};
use e1000_sim::transport::mailbox::{Event, Mailbox, SharedPages};
use e1000_sim::transport::rendezvous::{Limits, NoAnswer};

#[path = "common/driver_stack.rs"]
mod driver_stack;
#[path = "common/turn.rs"]
mod turn;

use driver_stack::DriverStack;

/// The MAC address in the NIC's EEPROM.
const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const SECOND: u64 = 1_000_000_000;

fn limits() -> Limits {
    Limits::of_seconds(20)
}

/// All shared memory, before a dom0 starts.
struct World {
    plan: KernelPlan<'static>,
    machine: Machine,
    mailbox: SharedPages<Mailbox>,
}

impl World {
    fn new() -> World {
        static FILES: OnceLock<Files> = OnceLock::new();
        let files = FILES.get_or_init(|| Files::find().unwrap_or_else(|error| panic!("{error}")));
        let modules = files.modules();
        let plan = KernelPlan::new(Sizes::default(), &modules, &host::address, Missing::Refuse)
            .unwrap_or_else(|error| panic!("{error}"));
        World {
            machine: Machine::new(plan.space().sizes()).expect("memory"),
            mailbox: Mailbox::new().expect("memory"),
            plan,
        }
    }

    /// A dom0 whose NIC has power, and nothing booted.
    fn dom0(&self) -> Dom0<'_, 'static> {
        self.mailbox.get().power_on(MAC);
        Dom0::start(&self.plan, &self.machine, self.mailbox.get(), limits()).expect("dom0")
    }

    /// Runs `test` with a new dom0; a failure shows what it printed.
    fn with_dom0(&self, test: impl FnOnce(&mut Dom0<'_, '_>) -> Result<(), CommandError>) {
        let mark = self.mailbox.get().console.mark();
        let mut dom0 = self.dom0();
        let result = test(&mut dom0);
        let console = self.mailbox.get().console.since(mark);
        if let Err(error) = result {
            panic!("{error}\n{console}");
        }
        // Shown by `--nocapture`.
        println!("{console}");
    }
}

/// Boots, loads the driver, opens it and waits for the link.
fn start(dom0: &mut Dom0<'_, '_>) -> Result<(), CommandError> {
    dom0.boot()?;
    dom0.load("")?;
    dom0.open()?;
    dom0.link_wait(10 * SECOND)?;
    Ok(())
}

#[test]
fn the_stock_driver_boots_and_goes() {
    let _turn = turn::turn();
    World::new().with_dom0(|dom0| {
        dom0.boot()?;
        dom0.load("")?;
        let info = dom0.info()?;
        assert_ne!(info.net_device, 0, "probed");
        assert_eq!(info.mac[..6], MAC);
        assert_eq!(
            dom0.plan().describe(info.ndo_start_xmit),
            "e1000_xmit_frame+0x0 (e1000.ko)"
        );
        let driver = dom0.driver_info()?;
        assert_eq!(text(&driver.driver), "e1000");

        dom0.open()?;
        dom0.link_wait(10 * SECOND)?;
        let link = dom0.link()?;
        assert_eq!((link.carrier, link.link), (1, 1));
        assert_eq!(
            (link.speed, link.duplex),
            (1000, 1),
            "1000 Mb/s, full duplex"
        );
        assert_eq!(dom0.mailbox().events.get(Event::Carrier).1, 1);

        let values = dom0.ethtool_statistics()?;
        let value = |name: &str| values.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        assert_eq!(value("rx_packets"), Some(0));
        assert_eq!(value("tx_errors"), Some(0));
        dom0.tick(3 * SECOND)?;
        assert_eq!(dom0.ring_parameters()?.tx, 256);
        dom0.statistics()?;

        dom0.close()?;
        dom0.remove()?;
        assert_eq!(dom0.info()?.net_device, 0, "removed");
        assert_eq!(dom0.call("kernel_check_heap", &[])?.value, 0);
        Ok(())
    });
}

#[test]
fn a_killed_dom0_is_replaced_by_a_new_one() {
    let _turn = turn::turn();
    let world = World::new();
    world.with_dom0(|dom0| {
        start(dom0)?;
        dom0.kill();
        let error = dom0.link().expect_err("dead").to_string();
        assert!(error.contains("died of signal 9"), "{error}");
        Ok(())
    });
    world.with_dom0(|dom0| {
        start(dom0)?;
        assert_eq!(dom0.link()?.speed, 1000);
        Ok(())
    });
}

/// `drivers/pci/access.c`: `int pci_read_config_word(dev, where, u16 *val)`, as
/// a driver in the hypervisor calls it with a variable of its own stack.
#[test]
fn an_upcall_writes_to_a_variable_on_the_drivers_stack() {
    let _turn = turn::turn();
    let world = World::new();
    let _mapped = DriverStack::new();
    let stack = driver_stack(1);
    world.with_dom0(|dom0| {
        start(dom0)?;
        let symbol = |name| world.plan.symbol(name).expect("kernel.o has it");
        let view = world.plan.view(&world.machine);
        let device = view.word64(symbol("pci_device")).expect("dom0's memory");
        let device = device.load(Ordering::Relaxed);
        let variable = stack.end - 136;
        let mut slow = Duration::ZERO;
        let start = Instant::now();
        for (place, word) in [(0, 0x8086u16), (2, 0x100e)].into_iter().cycle().take(2000) {
            // SAFETY: in the driver stack that this test mapped.
            unsafe { (variable as *mut u16).write(0xffff) };
            let upcall = Upcall {
                function: symbol("pci_read_config_word"),
                arguments: [device, place, variable, 0, 0, 0],
                stack: &[],
                window: stack.end - 256..stack.end,
            };
            let begin = Instant::now();
            // SAFETY: the window is in that stack, which nothing else uses.
            let result =
                unsafe { upcall::call(&world.mailbox.get().upcalls[1], &upcall, &limits()) };
            slow = slow.max(begin.elapsed());
            assert_eq!(result.expect("an answer").0 as u32, 0);
            // SAFETY: as above.
            assert_eq!(unsafe { (variable as *const u16).read() }, word);
        }
        let mean = start.elapsed() / 2000;
        println!("an upcall takes {mean:?}, the slowest took {slow:?}");
        dom0.kill();
        let upcall = Upcall {
            function: symbol("pci_read_config_word"),
            arguments: [0; 6],
            stack: &[],
            window: 0..0,
        };
        // SAFETY: no window.
        let result = unsafe { upcall::call(&world.mailbox.get().upcalls[1], &upcall, &limits()) };
        assert!(matches!(result, Err(UpcallError::NoAnswer(NoAnswer::Dead))));
        Ok(())
    });
}

/// The driver's pointer to the NIC's registers is broken: its watchdog faults.
/// Its interface no longer works, but dom0 goes on, and so does a new one.
#[test]
fn an_oops_of_the_driver_leaves_dom0_standing() {
    let _turn = turn::turn();
    let world = World::new();
    world.with_dom0(|dom0| {
        start(dom0)?;
        let private = dom0.info()?.netdev_priv;
        let view = world.plan.view(&world.machine);
        let words = (private..private + 4096).step_by(8);
        let registers = words
            .filter_map(|at| view.word64(at))
            .find(|word| word.load(Ordering::Relaxed) == BAR)
            .expect("struct e1000_hw has the registers' address");
        registers.store(0x7000, Ordering::Relaxed);
        let error = dom0.tick(5 * SECOND).expect_err("an oops").to_string();
        println!("{error}");
        assert!(
            error.contains("page fault at 0xb000 in e1000_update_stats+"),
            "{error}"
        );
        assert!(error.contains("e1000_watchdog+"), "{error}");
        registers.store(BAR, Ordering::Relaxed);
        assert_ne!(dom0.info()?.net_device, 0, "dom0 answers");
        let error = dom0.close().expect_err("its locks are held").to_string();
        println!("{error}");
        Ok(())
    });
    world.with_dom0(|dom0| {
        start(dom0)?;
        dom0.close()?;
        dom0.remove()?;
        Ok(())
    });
}
