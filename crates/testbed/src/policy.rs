//! The ports that the driver may use: the same for both workers.

use crate::runtime::PortRange;

/// First and last permitted port.
pub const PORTS: PortRange = PortRange {
    first: 0x1000,
    last: 0xefff,
};

/// Whether all `size` ports from `port` on are permitted.
pub fn allows(port: u64, size: u64) -> bool {
    port >= u64::from(PORTS.first) && port + size - 1 <= u64::from(PORTS.last)
}
