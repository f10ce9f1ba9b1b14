//! The ports that the driver may use: the same for both workers.

use process_lab::runtime::PortRange;

/// First and last permitted port.
pub static PORTS: PortRange = PortRange {
    first: 0x1000,
    last: 0xefff,
};

/// Whether all `size` ports from `port` on are permitted; `size` is 1, 2 or 4.
pub fn allows(port: u64, size: u64) -> bool {
    port >= u64::from(PORTS.first) && port + size - 1 <= u64::from(PORTS.last)
}
