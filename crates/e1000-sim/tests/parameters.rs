//! Parameters of the driver reach it, also when dom0 is started again.

use std::collections::HashSet;

use e1000_sim::image::files::Files;
use e1000_sim::memory::{Machine, Sizes};
use e1000_sim::system::{Blueprint, System};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::{Scheme, Variant};

#[test]
fn the_driver_has_its_parameters_after_a_restart_too() {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let blueprint = Blueprint::new(&files, Variant::here(Scheme::Stlb), &HashSet::new())
        .expect("it is rewritten")
        .with_driver_args("TxDescriptors=512 RxDescriptors=128");
    let machine = Machine::new(Sizes::default()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    let limits = Limits::of_seconds(30);
    let mut system = System::start(&blueprint, &machine, mailbox.get(), limits)
        .unwrap_or_else(|error| panic!("{error}"));
    for _ in 0..2 {
        let ring = system.dom0.ring_parameters().expect("ethtool -g");
        assert_eq!((ring.tx, ring.rx), (512, 128));
        system.restart_dom0(limits).expect("it starts again");
    }
}
