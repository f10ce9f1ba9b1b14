//! Parameters of the driver reach it, also when dom0 is started again.

use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "common/system.rs"]
mod system;

use system::with_changed;

#[test]
fn the_driver_has_its_parameters_after_a_restart_too() {
    let limits = Limits::of_seconds(30);
    let parameters = "TxDescriptors=512 RxDescriptors=128";
    with_changed(
        Scheme::Stlb,
        |plan| plan.with_driver_args(parameters),
        limits,
        |mut system| {
            for _ in 0..2 {
                let ring = system.dom0.ring_parameters().expect("ethtool -g");
                assert_eq!((ring.tx, ring.rx), (512, 128));
                system.restart_dom0(limits).expect("it starts again");
            }
        },
    );
}
