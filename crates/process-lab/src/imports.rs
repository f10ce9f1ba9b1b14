//! The routines that e1000.ko imports: arguments, results and writes to memory.
//!
//! Each argument is a letter that gives its width, because only that many bits of a
//! register are the argument; the rest may differ between two compilations of the
//! same program (psABI 3.2.3):
//!
//! ```text
//! p l  64 bits     u  32 bits     h  16 bits     b  8 bits
//! f    64 bits, a printf format, which describes the arguments after it
//! ```
//!
//! Source: the prototypes in the BTF of Debian's linux-image-6.1 and the
//! kernel's documentation of each routine.

use Effect::*;
use Returns::*;

/// A routine's result in `rax`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Returns {
    /// Nothing: `rax` is garbage.
    Void,
    /// 0 or 1 in `al`, garbage above.
    Bool,
    /// 0, or sometimes a negative error number.
    Errno,
    /// A number below this in `eax`, garbage above.
    Small(u64),
    /// 0 in `eax`, garbage above.
    Zero,
    /// 16 random bits, garbage above.
    Half,
    /// 64 random bits.
    Word,
    /// A bus address, or the mapping error (all ones).
    Dma,
    /// A buffer in the heap, or sometimes null.
    Memory,
    /// An `sk_buff`, or sometimes null.
    Skb,
    /// A `struct page`, or sometimes null.
    Page,
    /// The network device.
    Netdev,
    /// The device's registers.
    Mmio,
    /// What the effect computes.
    Computed,
    /// It does not return.
    Never,
    /// It is no C function and keeps every register.
    KeepsAll,
}

/// A routine's effect on memory. Numbers name arguments, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// None.
    Nothing,
    /// Time passes, and the device changes some of its registers.
    Device,
    /// `memcpy(0, 1, 2)`.
    Copy,
    /// `memset(0, 1, 2)`.
    Set,
    /// `strncpy(0, 1, 2)`.
    CopyPadded,
    /// `strscpy(0, 1, 2)`.
    CopyString,
    /// `strnlen(0, 1)`.
    StringLength,
    /// `strchr(0, 1)`.
    FindByte,
    /// `find_next_bit(0, 1, 2)`.
    NextBit,
    /// Random bytes through a pointer.
    Fill {
        /// The pointer's argument.
        pointer: usize,
        /// How many random bytes are written there.
        bytes: u64,
    },
    /// `unit` random bytes for each of the `count`-th argument.
    FillCount {
        /// The pointer's argument.
        pointer: usize,
        /// The count's argument.
        count: usize,
        /// Bytes of one.
        unit: u64,
    },
}

/// An imported routine.
#[derive(Clone, Copy, Debug)]
pub struct Import {
    /// As the driver imports it.
    pub name: &'static str,
    /// Its arguments, see the module.
    pub arguments: &'static str,
    /// What a model of it puts into `rax`.
    pub returns: Returns,
    /// Its effect on memory.
    pub effect: Effect,
}

const fn row(
    name: &'static str,
    arguments: &'static str,
    returns: Returns,
    effect: Effect,
) -> Import {
    Import {
        name,
        arguments,
        returns,
        effect,
    }
}

/// The number of an imported routine: its place in [`IMPORTS`].
pub fn number(name: &str) -> Option<u32> {
    IMPORTS
        .iter()
        .position(|import| import.name == name)
        .map(|i| i as u32)
}

/// Imported variables with their bytes, in the variables region.
pub const VARIABLES: [(&str, u64); 12] = [
    ("jiffies", 8),
    ("page_offset_base", 8),
    ("vmemmap_base", 8),
    ("phys_base", 8),
    ("system_state", 8),
    ("system_wq", 8),
    ("kmalloc_caches", 512),
    ("param_ops_int", 64),
    ("param_ops_uint", 64),
    ("param_array_ops", 64),
    ("devmap_managed_key", 16),
    ("hugetlb_optimize_vmemmap_key", 16),
];

/// Imported per-CPU variables with their offsets from `%gs`.
pub const PERCPU_VARIABLES: [(&str, u64); 4] = [
    ("current_task", 0x100),
    ("cpu_number", 0x110),
    ("__preempt_count", 0x114),
    ("softnet_data", 0x200),
];

/// All of them.
#[rustfmt::skip]
pub static IMPORTS: [Import; 133] = [
    row("__SCT__cond_resched", "", Zero, Nothing),
    row("__SCT__preempt_schedule", "", KeepsAll, Nothing),
    row("___pskb_trim", "pu", Errno, Nothing),
    row("__alloc_skb", "uuuu", Skb, Nothing),
    row("__const_udelay", "l", Void, Device),
    row("__dev_kfree_skb_any", "pu", Void, Nothing),
    row("__dynamic_netdev_dbg", "ppf", Void, Nothing),
    row("__folio_put", "p", Void, Nothing),
    row("__kmalloc", "lu", Memory, Nothing),
    row("__local_bh_enable_ip", "lu", Void, Nothing),
    row("__napi_alloc_skb", "puu", Skb, Nothing),
    row("__napi_schedule", "p", Void, Nothing),
    row("__netdev_alloc_frag_align", "uu", Memory, Nothing),
    row("__pci_register_driver", "ppp", Errno, Nothing),
    row("__pskb_pull_tail", "pu", Memory, Nothing),
    row("__put_devmap_managed_page_refs", "pu", Bool, Nothing),
    row("__skb_pad", "pub", Errno, Nothing),
    row("__stack_chk_fail", "", Never, Nothing),
    row("__udelay", "l", Void, Device),
    row("__warn_printk", "f", Void, Nothing),
    row("_dev_err", "pf", Void, Nothing),
    row("_dev_info", "pf", Void, Nothing),
    row("_dev_warn", "pf", Void, Nothing),
    row("_find_next_bit", "pll", Computed, NextBit),
    row("_printk", "f", Small(99), Nothing),
    row("_raw_spin_lock", "p", Void, Nothing),
    row("_raw_spin_lock_irqsave", "p", Word, Nothing),
    row("_raw_spin_unlock", "p", Void, Nothing),
    row("_raw_spin_unlock_irqrestore", "pl", Void, Nothing),
    row("alloc_etherdev_mqs", "uuu", Netdev, Nothing),
    row("alloc_pages", "uu", Page, Nothing),
    row("cancel_delayed_work_sync", "p", Bool, Nothing),
    row("cancel_work_sync", "p", Bool, Nothing),
    row("consume_skb", "p", Void, Nothing),
    row("csum_ipv6_magic", "ppubu", Half, Nothing),
    row("delayed_work_timer_fn", "p", Void, Nothing),
    row("dev_addr_mod", "pupl", Void, Nothing),
    row("dev_driver_string", "p", Memory, Nothing),
    row("device_set_wakeup_enable", "pb", Errno, Nothing),
    row("disable_hardirq", "u", Bool, Nothing),
    row("dma_alloc_attrs", "plpul", Memory, Fill { pointer: 2, bytes: 8 }),
    row("dma_free_attrs", "plpll", Void, Nothing),
    row("dma_map_page_attrs", "ppllul", Dma, Nothing),
    row("dma_set_coherent_mask", "pl", Errno, Nothing),
    row("dma_set_mask", "pl", Errno, Nothing),
    row("dma_sync_single_for_cpu", "pllu", Void, Nothing),
    row("dma_sync_single_for_device", "pllu", Void, Nothing),
    row("dma_unmap_page_attrs", "pllul", Void, Nothing),
    row("dql_completed", "pu", Void, Nothing),
    row("dql_reset", "p", Void, Nothing),
    row("enable_irq", "u", Void, Nothing),
    row("eth_type_trans", "pp", Half, Nothing),
    row("eth_validate_addr", "p", Errno, Nothing),
    row("ethtool_convert_legacy_u32_to_link_mode", "pu", Void, Fill { pointer: 0, bytes: 16 }),
    row("ethtool_convert_link_mode_to_legacy_u32", "pp", Bool, Fill { pointer: 0, bytes: 4 }),
    row("ethtool_op_get_ts_info", "pp", Errno, Nothing),
    row("fortify_panic", "p", Never, Nothing),
    row("free_irq", "up", Memory, Nothing),
    row("free_netdev", "p", Void, Nothing),
    row("init_timer_key", "ppupp", Void, Nothing),
    row("ioread16_rep", "ppl", Void, FillCount { pointer: 1, count: 2, unit: 2 }),
    row("ioremap", "ll", Mmio, Nothing),
    row("iounmap", "p", Void, Nothing),
    row("iowrite16_rep", "ppl", Void, Nothing),
    row("is_vmalloc_addr", "p", Bool, Nothing),
    row("kfree", "p", Void, Nothing),
    row("kfree_skb_reason", "pu", Void, Nothing),
    row("kmalloc_trace", "pul", Memory, Nothing),
    row("memcpy", "ppl", Computed, Copy),
    row("memset", "pul", Computed, Set),
    row("msleep", "u", Void, Device),
    row("msleep_interruptible", "u", Zero, Device),
    row("mutex_lock", "p", Void, Nothing),
    row("mutex_unlock", "p", Void, Nothing),
    row("napi_build_skb", "pu", Skb, Nothing),
    row("napi_complete_done", "pu", Bool, Nothing),
    row("napi_consume_skb", "pu", Void, Nothing),
    row("napi_disable", "p", Void, Nothing),
    row("napi_enable", "p", Void, Nothing),
    row("napi_get_frags", "p", Skb, Nothing),
    row("napi_gro_frags", "p", Small(5), Nothing),
    row("napi_gro_receive", "pp", Small(5), Nothing),
    row("napi_schedule_prep", "p", Bool, Nothing),
    row("net_ratelimit", "", Bool, Nothing),
    row("netdev_err", "pf", Void, Nothing),
    row("netdev_info", "pf", Void, Nothing),
    row("netdev_warn", "pf", Void, Nothing),
    row("netif_carrier_off", "p", Void, Nothing),
    row("netif_carrier_on", "p", Void, Nothing),
    row("netif_device_attach", "p", Void, Nothing),
    row("netif_device_detach", "p", Void, Nothing),
    row("netif_napi_add_weight", "pppu", Void, Nothing),
    row("netif_schedule_queue", "p", Void, Nothing),
    row("netif_tx_wake_queue", "p", Void, Nothing),
    row("page_frag_free", "p", Void, Nothing),
    row("pci_clear_mwi", "p", Void, Nothing),
    row("pci_disable_device", "p", Void, Nothing),
    row("pci_enable_device", "p", Errno, Nothing),
    row("pci_enable_device_mem", "p", Errno, Nothing),
    row("pci_enable_wake", "pub", Errno, Nothing),
    row("pci_ioremap_bar", "pu", Mmio, Nothing),
    row("pci_read_config_word", "pup", Errno, Fill { pointer: 2, bytes: 2 }),
    row("pci_release_selected_regions", "pu", Void, Nothing),
    row("pci_request_selected_regions", "pup", Errno, Nothing),
    row("pci_save_state", "p", Errno, Nothing),
    row("pci_select_bars", "pl", Small(64), Nothing),
    row("pci_set_master", "p", Void, Nothing),
    row("pci_set_mwi", "p", Errno, Nothing),
    row("pci_set_power_state", "pu", Errno, Nothing),
    row("pci_unregister_driver", "p", Void, Nothing),
    row("pci_wake_from_d3", "pb", Errno, Nothing),
    row("pcix_get_mmrbc", "p", Small(5), Nothing),
    row("pcix_set_mmrbc", "pu", Errno, Nothing),
    row("print_hex_dump", "ppuuuplb", Void, Nothing),
    row("pskb_expand_head", "puuu", Errno, Nothing),
    row("queue_delayed_work_on", "uppl", Bool, Nothing),
    row("queue_work_on", "upp", Bool, Nothing),
    row("register_netdev", "p", Errno, Nothing),
    row("request_threaded_irq", "upplpp", Errno, Nothing),
    row("skb_clone_tx_timestamp", "p", Void, Nothing),
    row("skb_copy_bits", "pupu", Errno, FillCount { pointer: 2, count: 3, unit: 1 }),
    row("skb_put", "pu", Memory, Nothing),
    row("skb_trim", "pu", Void, Nothing),
    row("skb_tstamp_tx", "pp", Void, Nothing),
    row("strchr", "pu", Computed, FindByte),
    row("strncpy", "ppl", Computed, CopyPadded),
    row("strnlen", "pl", Computed, StringLength),
    row("strscpy", "ppl", Computed, CopyString),
    row("synchronize_irq", "u", Void, Nothing),
    row("unregister_netdev", "p", Void, Nothing),
    row("usleep_range_state", "llu", Void, Device),
    row("vfree", "p", Void, Nothing),
    row("vzalloc", "l", Memory, Nothing),
];
