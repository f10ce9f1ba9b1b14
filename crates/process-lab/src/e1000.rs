//! Sizes and offsets of the stock driver's structures, as its BTF has them.

/// Bytes of `struct net_device`, which the adapter follows.
pub const NETDEV_SIZE: u64 = 0x980;
/// Bytes of `struct e1000_adapter`: the argument of `alloc_etherdev_mqs` in
/// `e1000_probe`.
pub const ADAPTER_SIZE: u64 = 0x9b0;
/// Offset of `hw` in it.
pub const HW: u64 = 0x488;
/// Offset of `napi` in it.
pub const NAPI: u64 = 0x2b0;
/// Offset of `dev` in `struct pci_dev`.
pub const PDEV_DEVICE: u64 = 0xd0;
/// Bytes of `struct e1000_tx_buffer`.
pub const TX_BUFFER: u64 = 0x28;
