//! The stock e1000.ko boots in the dom0 process, on the dom0 kernel shim and
//! the NIC's model: probe, open, link, statistics, close, remove.

use std::time::Duration;

use testbed::live::dom0::{CommandError, Dom0};
use testbed::live::files::Files;
use testbed::live::host;
use testbed::live::image::{Missing, Plan};
use testbed::live::interface::text;
use testbed::live::mailbox::{Event, Mailbox};
use testbed::live::memory::{Machine, Sizes};
use testbed::live::rendezvous::Limits;

/// The MAC address in the NIC's EEPROM.
const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
const SECOND: u64 = 1_000_000_000;

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(20),
        ..Limits::default()
    }
}

/// Runs `test` with a dom0 that has power and nothing booted.
fn with_dom0(test: impl FnOnce(&mut Dom0<'_, '_>) -> Result<(), CommandError>) {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let modules = files.modules();
    let plan = Plan::new(Sizes::default(), &modules, &host::address, Missing::Refuse)
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
