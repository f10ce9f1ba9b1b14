//! An administrator's settings, and module parameters.

use e1000_sim::dom0::Dom0;
use e1000_sim::dom0::interface::Feature;

use crate::setup::{SECOND, counters, heap_is_sound, with_dom0, with_link};

#[test]
fn settings_change_while_the_interface_is_up() {
    with_link(|dom0| {
        for mtu in [1000u64, 1500, 9000, 16110, 1500] {
            dom0.check("kernel_set_mtu", &[mtu])?;
            dom0.link_wait(10 * SECOND)?;
            assert_eq!(u64::from(dom0.info()?.mtu), mtu);
        }
        assert!(
            dom0.check("kernel_set_mtu", &[20_000]).is_err(),
            "too large"
        );

        let mac = [2, 4, 6, 8, 10, 12];
        let at = dom0.give("mac", &mac)?;
        dom0.check("kernel_set_mac", &[at])?;
        assert_eq!(dom0.info()?.mac[..6], mac);

        dom0.check("kernel_set_rx_mode", &[1, 0, 0])?;
        let groups = [1, 0, 0x5e, 0, 0, 1, 0x33, 0x33, 0, 0, 0, 1];
        let at = dom0.give("groups", &groups)?;
        dom0.check("kernel_set_rx_mode", &[0, at, 2])?;
        for vlan in [1, 7, 4095] {
            dom0.check("kernel_vlan_add", &[vlan])?;
        }
        dom0.check("kernel_vlan_kill", &[7])?;

        dom0.check("kernel_ethtool_set_ringparam", &[512, 128])?;
        dom0.link_wait(10 * SECOND)?;
        let ring = dom0.ring_parameters()?;
        assert_eq!((ring.rx, ring.tx), (512, 128));
        dom0.tick(5 * SECOND)?;
        assert_eq!(counters(dom0)?.warnings, 0);
        heap_is_sound(dom0)
    });
}

/// `ethtool -K`: what the card no longer does for the stack.
#[test]
fn features_change_while_the_interface_is_up() {
    with_link(|dom0| {
        let features = |dom0: &mut Dom0<'_, '_>| dom0.info().map(|info| info.features);
        let some = [
            Feature::ScatterGather,
            Feature::Segmentation,
            Feature::Checksums,
        ];
        let bits = some.iter().fold(0, |bits, feature| bits | feature.bit());
        assert_eq!(features(dom0)? & bits, bits);
        dom0.set_features(&[], &some)?;
        assert_eq!(features(dom0)? & bits, 0);
        dom0.set_features(&[Feature::Checksums], &[])?;
        assert_eq!(features(dom0)? & bits, Feature::Checksums.bit());
        dom0.set_features(&some, &[])?;
        assert_eq!(features(dom0)? & bits, bits);
        heap_is_sound(dom0)
    });
}

#[test]
fn module_parameters_are_parsed_and_checked() {
    with_dom0(|dom0| {
        dom0.boot()?;
        assert!(dom0.load("NoSuch=1").is_err());
        assert!(dom0.load("TxDescriptors=many").is_err());
        dom0.load("TxDescriptors=128 RxDescriptors=512,64 debug=1")?;
        let ring = dom0.ring_parameters()?;
        assert_eq!((ring.tx, ring.rx), (128, 512));
        Ok(())
    });
}

#[test]
fn a_receive_ring_larger_than_its_buffers_is_refused_by_its_number() {
    with_dom0(|dom0| {
        dom0.boot()?;
        dom0.load("RxDescriptors=1024")?;
        Ok(())
    });
    with_dom0(|dom0| {
        dom0.boot()?;
        // The driver rounds it up to a multiple of eight.
        let error = dom0.load("RxDescriptors=1025").expect_err("too large");
        let said = "1032 receive descriptors: the hot routines have buffers for 1024";
        assert!(error.to_string().contains(said), "{error}");
        Ok(())
    });
}
