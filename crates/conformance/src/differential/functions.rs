//! The functions of e1000.ko that are run, and the parameters of each.
//!
//! Source of the parameters: the prototypes in the module's own BTF.

use Parameter::*;

/// What to pass.
#[derive(Clone, Copy, Debug)]
pub enum Parameter {
    /// `struct net_device *`.
    Netdev,
    /// `struct e1000_adapter *`.
    Adapter,
    /// `struct e1000_hw *`.
    Hw,
    /// `struct pci_dev *`.
    Pdev,
    /// `struct device *` of the `pci_dev`.
    Device,
    /// `struct e1000_tx_ring *`.
    TxRing,
    /// `struct e1000_rx_ring *`.
    RxRing,
    /// `struct e1000_tx_buffer *`, one of the ring's.
    TxBuffer,
    /// `struct sk_buff *`.
    Skb,
    /// `struct napi_struct *` of the adapter.
    Napi,
    /// The member of the adapter at this offset.
    Work(u64),
    /// Memory of no known shape.
    Buffer,
    /// Memory with 32-bit fields at these offsets, each one of these values.
    Record(&'static [Field]),
    /// A number below this.
    Below(u64),
    /// One of these.
    OneOf(&'static [u64]),
    /// 8 random bits, garbage above.
    Byte,
    /// 16 random bits, garbage above.
    Half,
    /// 32 bits, often small, garbage above.
    Int,
    /// 64 random bits.
    Word,
}

/// The offset of a 32-bit field and what it may be.
pub type Field = (u64, &'static [u64]);

/// `struct ethtool_test`: flags.
const TEST: &[Field] = &[(4, &[0, 1, 1])];
/// `struct ethtool_eeprom`: magic (device and vendor), offset, length.
const EEPROM: &[Field] = &[
    (4, &[0x100e_8086, 0x100e_8086, 0x1004_8086]),
    (8, &[0, 1, 2, 5, 64]),
    (12, &[0, 1, 2, 3, 8, 33]),
];
/// `struct ethtool_wolinfo`: options.
const WAKE: &[Field] = &[(8, &[0, 1, 2, 4, 8, 0x20, 0x40, 0x2f])];
/// `struct ethtool_ringparam`: pending receive, mini, jumbo, transmit.
const RINGS: &[Field] = &[
    (0x14, &[0, 80, 256, 9999]),
    (0x18, &[0, 0, 0, 1]),
    (0x1c, &[0]),
    (0x20, &[0, 80, 256, 9999]),
];
/// `struct ethtool_coalesce`: receive microseconds.
const COALESCE: &[Field] = &[(4, &[0, 1, 2, 3, 4, 50, 100, 10_000])];
/// `struct ifreq` with `struct mii_ioctl_data`: PHY and register, value.
const MII: &[Field] = &[
    (0x10, &[0, 0x0004_0001, 0x0010_0001]),
    (0x14, &[0, 0x1000, 0x2100, 0x0140, 0x8000]),
];

/// A function and its parameters.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name in the symbol table.
    pub name: &'static str,
    /// Its parameters, at most six.
    pub parameters: &'static [Parameter],
}

const fn f(name: &'static str, parameters: &'static [Parameter]) -> Subject {
    Subject { name, parameters }
}

/// The function of this name.
pub fn subject(name: &str) -> Option<&'static Subject> {
    SUBJECTS.iter().find(|subject| subject.name == name)
}

/// All of them: every function of the module but the cold parts, which are
/// entered from these.
pub static SUBJECTS: [Subject; 159] = [
    f(
        "e1000_alloc_dummy_rx_buffers",
        &[Adapter, RxRing, Below(32)],
    ),
    f("e1000_fix_features", &[Netdev, Word]),
    f("e1000_setup_rctl", &[Adapter]),
    f("e1000_configure_rx", &[Adapter]),
    f(
        "e1000_alloc_jumbo_rx_buffers",
        &[Adapter, RxRing, Below(32)],
    ),
    f("e1000_clean_rx_irq", &[Adapter, RxRing, Buffer, Below(64)]),
    f("e1000_alloc_rx_buffers", &[Adapter, RxRing, Below(32)]),
    f(
        "e1000_clean_jumbo_rx_irq",
        &[Adapter, RxRing, Buffer, Below(64)],
    ),
    f("e1000_regdump", &[Adapter]),
    f("e1000_init_module", &[]),
    f(
        "e1000_tbi_should_accept",
        &[Adapter, Byte, Byte, Int, Buffer],
    ),
    f(
        "e1000_update_itr",
        &[Adapter, OneOf(&[0, 1, 2, 3]), Below(40), Below(20000)],
    ),
    f("e1000_request_irq", &[Adapter]),
    f("e1000_intr", &[Int, Netdev]),
    f("e1000_down_and_stop", &[Adapter]),
    f("e1000_update_phy_info_task", &[Work(0x958)]),
    f(
        "e1000_unmap_and_free_tx_resource",
        &[Adapter, TxBuffer, Below(66)],
    ),
    f("e1000_power_down_phy", &[Adapter]),
    f("e1000_exit_module", &[]),
    f("e1000_tx_timeout", &[Netdev, Int]),
    f("e1000_remove", &[Pdev]),
    f("e1000_maybe_stop_tx", &[Netdev, TxRing, Below(64)]),
    f("e1000_82547_tx_fifo_stall_task", &[Work(0x900)]),
    f("e1000_clean_tx_ring", &[Adapter, TxRing]),
    f("e1000_netpoll", &[Netdev]),
    f("e1000_leave_82542_rst", &[Adapter]),
    f("e1000_clean_rx_ring", &[Adapter, RxRing]),
    f("e1000_enter_82542_rst", &[Adapter]),
    f("e1000_set_rx_mode", &[Netdev]),
    f("e1000_set_mac", &[Netdev, Buffer]),
    f("e1000_clean", &[Napi, Below(66)]),
    f("e1000_vlan_rx_kill_vid", &[Netdev, Half, Below(4096)]),
    f("e1000_vlan_filter_on_off", &[Adapter, Below(2)]),
    f("e1000_update_mng_vlan", &[Adapter]),
    f("e1000_vlan_rx_add_vid", &[Netdev, Half, Below(4096)]),
    f("e1000_configure", &[Adapter]),
    f("e1000_xmit_frame", &[Skb, Netdev]),
    f("e1000_io_resume", &[Pdev]),
    f("e1000_io_slot_reset", &[Pdev]),
    f("e1000_probe", &[Pdev, Buffer]),
    f("e1000_watchdog", &[Work(0x8a8)]),
    f("e1000_reset_task", &[Work(0x888)]),
    f("e1000_io_error_detected", &[Pdev, Below(5)]),
    f("__e1000_shutdown", &[Pdev, Buffer]),
    f("e1000_suspend", &[Device]),
    f("e1000_shutdown", &[Pdev]),
    f("e1000_resume", &[Device]),
    f("e1000_change_mtu", &[Netdev, Below(17000)]),
    f("e1000_set_features", &[Netdev, Word]),
    f(
        "e1000_ioctl",
        &[
            Netdev,
            Record(MII),
            OneOf(&[0x8947, 0x8948, 0x8949, 0x89b0]),
        ],
    ),
    f("e1000_acquire_eeprom", &[Hw]),
    f("e1000_shift_out_ee_bits", &[Hw, Half, Below(17)]),
    f("e1000_standby_eeprom", &[Hw]),
    f("e1000_release_eeprom", &[Hw]),
    f("e1000_shift_out_mdi_bits", &[Hw, Int, Below(17)]),
    f("e1000_write_phy_reg_ex", &[Hw, Below(34), Half]),
    f("e1000_shift_in_ee_bits", &[Hw, Below(17)]),
    f("e1000_spi_eeprom_ready", &[Hw]),
    f("e1000_do_write_eeprom", &[Hw, Below(64), Below(6), Buffer]),
    f("e1000_do_read_eeprom", &[Hw, Below(64), Below(6), Buffer]),
    f("e1000_read_phy_reg_ex", &[Hw, Below(34), Buffer]),
    f("e1000_config_fc_after_link_up", &[Hw]),
    f("e1000_config_mac_to_phy", &[Hw]),
    f("e1000_get_cable_length", &[Hw, Buffer, Buffer]),
    f("e1000_check_polarity", &[Hw, Buffer]),
    f("e1000_phy_init_script", &[Hw]),
    f("e1000_polarity_reversal_workaround", &[Hw]),
    f("e1000_config_dsp_after_link_change", &[Hw, Below(2)]),
    f("e1000_copper_link_rtl_setup", &[Hw]),
    f("e1000_get_pauseparam", &[Netdev, Buffer]),
    f("e1000_get_msglevel", &[Netdev]),
    f("e1000_set_msglevel", &[Netdev, Int]),
    f("e1000_get_regs_len", &[Netdev]),
    f("e1000_get_eeprom_len", &[Netdev]),
    f("e1000_get_ringparam", &[Netdev, Buffer, Buffer, Buffer]),
    f("e1000_test_intr", &[Int, Netdev]),
    f("e1000_get_sset_count", &[Netdev, Below(4)]),
    f("e1000_wol_exclusion", &[Adapter, Buffer]),
    f("e1000_get_coalesce", &[Netdev, Buffer, Buffer, Buffer]),
    f(
        "e1000_set_coalesce",
        &[Netdev, Record(COALESCE), Buffer, Buffer],
    ),
    f(
        "reg_set_and_check",
        &[Adapter, Buffer, Below(0x6000), Int, Int],
    ),
    f(
        "reg_pattern_test",
        &[Adapter, Buffer, Below(0x6000), Int, Int],
    ),
    f("e1000_set_link_ksettings", &[Netdev, Buffer]),
    f("e1000_get_link_ksettings", &[Netdev, Buffer]),
    f("e1000_get_ethtool_stats", &[Netdev, Buffer, Buffer]),
    f("e1000_set_phys_id", &[Netdev, Below(5)]),
    f("e1000_get_strings", &[Netdev, Below(2), Buffer]),
    f("e1000_phy_reset_clk_and_crs", &[Adapter]),
    f("e1000_get_regs", &[Netdev, Buffer, Buffer]),
    f("e1000_free_desc_rings", &[Adapter]),
    f("e1000_link_test", &[Adapter, Buffer]),
    f("e1000_set_pauseparam", &[Netdev, Buffer]),
    f("e1000_set_eeprom", &[Netdev, Record(EEPROM), Buffer]),
    f("e1000_nway_reset", &[Netdev]),
    f("e1000_set_wol", &[Netdev, Record(WAKE)]),
    f("e1000_get_drvinfo", &[Netdev, Buffer]),
    f("e1000_get_wol", &[Netdev, Buffer]),
    f("e1000_get_link", &[Netdev]),
    f("e1000_set_phy_loopback", &[Adapter]),
    f("e1000_get_eeprom", &[Netdev, Record(EEPROM), Buffer]),
    f(
        "e1000_set_ringparam",
        &[Netdev, Record(RINGS), Buffer, Buffer],
    ),
    f("e1000_diag_test", &[Netdev, Record(TEST), Buffer]),
    f("e1000_validate_option.isra.0", &[Buffer, Buffer, Adapter]),
    f("e1000_check_copper_options", &[Adapter]),
    f("e1000_set_mac_type", &[Hw]),
    f("e1000_read_mac_addr", &[Hw]),
    f("e1000_phy_setup_autoneg", &[Hw]),
    f("e1000_set_ethtool_ops", &[Netdev]),
    f("e1000_reset", &[Adapter]),
    f("e1000_pci_clear_mwi", &[Hw]),
    f("e1000_up", &[Adapter]),
    f("e1000_down", &[Adapter]),
    f("e1000_pci_set_mwi", &[Hw]),
    f("e1000_check_for_link", &[Hw]),
    f("e1000_update_stats", &[Adapter]),
    f("e1000_rar_set", &[Hw, Buffer, Below(16)]),
    f("e1000_write_vfta", &[Hw, Below(64), Int]),
    f("e1000_has_link", &[Adapter]),
    f("e1000_setup_all_tx_resources", &[Adapter]),
    f("e1000_led_on", &[Hw]),
    f("e1000_pcix_set_mmrbc", &[Hw, Int]),
    f("e1000_force_mac_fc", &[Hw]),
    f("e1000_config_collision_dist", &[Hw]),
    f("e1000_get_hw_dev", &[Hw]),
    f("e1000_phy_reset", &[Hw]),
    f("e1000_phy_hw_reset", &[Hw]),
    f("e1000_validate_mdi_setting", &[Hw]),
    f("e1000_validate_eeprom_checksum", &[Hw]),
    f("e1000_reset_hw", &[Hw]),
    f("e1000_led_off", &[Hw]),
    f(
        "e1000_set_spd_dplx",
        &[Adapter, OneOf(&[10, 100, 1000, 2500]), Below(2)],
    ),
    f("e1000_get_speed_and_duplex", &[Hw, Buffer, Buffer]),
    f("e1000_get_bus_info", &[Hw]),
    f("e1000_close", &[Netdev]),
    f("e1000_update_adaptive", &[Hw]),
    f("e1000_reinit_locked", &[Adapter]),
    f("e1000_hash_mc_addr", &[Hw, Buffer]),
    f("e1000_set_media_type", &[Hw]),
    f("e1000_reset_adaptive", &[Hw]),
    f("e1000_free_all_tx_resources", &[Adapter]),
    f("e1000_init_eeprom_params", &[Hw]),
    f("e1000_init_hw", &[Hw]),
    f("e1000_write_phy_reg", &[Hw, Below(34), Half]),
    f("e1000_pcix_get_mmrbc", &[Hw]),
    f("e1000_write_eeprom", &[Hw, Below(64), Below(6), Buffer]),
    f("e1000_read_eeprom", &[Hw, Below(64), Below(6), Buffer]),
    f("e1000_power_up_phy", &[Adapter]),
    f("e1000_setup_link", &[Hw]),
    f("e1000_io_write", &[Hw, Below(0x10000), Int]),
    f("e1000_update_eeprom_checksum", &[Hw]),
    f("e1000_check_options", &[Adapter]),
    f("e1000_setup_all_rx_resources", &[Adapter]),
    f("e1000_read_phy_reg", &[Hw, Below(34), Buffer]),
    f("e1000_setup_led", &[Hw]),
    f("e1000_open", &[Netdev]),
    f("e1000_enable_mng_pass_thru", &[Hw]),
    f("e1000_cleanup_led", &[Hw]),
    f("e1000_free_all_rx_resources", &[Adapter]),
    f("e1000_phy_get_info", &[Hw, Buffer]),
];
