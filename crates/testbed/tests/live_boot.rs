//! The stock e1000.ko boots in the dom0 process, on the dom0 kernel shim and
//! the NIC's model: probe, open, link, statistics, close, remove.

use std::path::PathBuf;
use std::time::Duration;

use testbed::live::dom0::{CommandError, Dom0};
use testbed::live::host;
use testbed::live::image::{Missing, Module, Plan};
use testbed::live::interface::text;
use testbed::live::mailbox::{Event, Mailbox};
use testbed::live::memory::{Machine, Sizes};
use testbed::live::rendezvous::Limits;
use testbed::stock;

/// The MAC address in the NIC's EEPROM.
const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const SECOND: u64 = 1_000_000_000;

fn support(name: &str) -> Option<Vec<u8>> {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/support"));
    std::fs::read(root.join(name)).ok()
}

/// The three objects, or the reason why the test cannot run.
fn files() -> Result<Vec<(Module, Vec<u8>)>, String> {
    let need = |name: &str| {
        support(name).ok_or_else(|| format!("no target/support/{name}: run scripts/support.sh"))
    };
    Ok(vec![
        (Module::Driver, stock::find().map_err(|e| e.to_string())?),
        (Module::Hot, need("hot.o")?),
        (Module::Kernel, need("kernel.o")?),
    ])
}

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// Runs `test` with a dom0 that has power and nothing booted.
fn with_dom0(test: impl FnOnce(&mut Dom0<'_, '_>) -> Result<(), CommandError>) {
    let files = match files() {
        Ok(files) => files,
        Err(reason) => panic!("{reason}"),
    };
    let files: Vec<_> = files.iter().map(|(m, bytes)| (*m, &bytes[..])).collect();
    let plan = Plan::new(Sizes::default(), &files, &host::address, Missing::Refuse)
        .unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::new(plan.space().sizes()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    mailbox.get().power_on(MAC);
    let mut dom0 = Dom0::start(&plan, &machine, mailbox.get(), limits()).expect("dom0");
    if let Err(error) = test(&mut dom0) {
        panic!("{error}\n{}", mailbox.get().console.since(0));
    }
}

#[test]
fn the_stock_driver_boots_and_goes() {
    with_dom0(|dom0| {
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
