//! kernel.o's entry points and structures, as `crates/e1000-sim/kernel/kernel.h`
//! has them; a test compiles the header and compares the layouts.

use crate::dom0::{Answer, CommandError, Dom0};
use crate::image::Module;
use crate::memory::{
    self, BAR, BAR_BUS, BAR_SIZE, CPUS, EXCHANGE, IRQ, PAGE, PORTS, PORTS_SIZE, VMEMMAP,
};

/// `KERNEL_CPUS`.
pub const KERNEL_CPUS: usize = 8;
/// `KERNEL_BARS`.
pub const KERNEL_BARS: usize = 6;
/// `KERNEL_NAME`.
pub const KERNEL_NAME: usize = 32;

/// Structures of kernel.h: integers in C layout, of which any bytes are a value.
///
/// # Safety
/// The above.
pub unsafe trait Plain: Copy {
    /// The value whose bytes are all zero.
    fn zero() -> Self {
        // SAFETY: any bytes are a value.
        unsafe { std::mem::zeroed() }
    }

    /// From its bytes.
    fn from_bytes(bytes: &[u8]) -> Self {
        assert!(bytes.len() >= size_of::<Self>(), "all bytes of it");
        // SAFETY: as many bytes as there must be; any bytes are a value.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }

    /// Its bytes, as the kernel has them.
    fn bytes(&self) -> &[u8] {
        // SAFETY: integers without padding (the layout test counts it).
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

macro_rules! plain {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "kernel.h says what each field is")]
        pub struct $name { $(pub $field: $kind),* }

        // SAFETY: integers and arrays of integers or of `Plain` structures.
        unsafe impl Plain for $name {}

        impl $name {
            /// Names and offsets of the fields, for the layout test.
            pub const FIELDS: &[(&str, usize)] =
                &[$((stringify!($field), std::mem::offset_of!($name, $field))),*];
        }
    )*};
}

plain! {
    /// `struct kernel_bar`.
    Bar { start: u64, size: u64, flags: u64, address: u64 }
    /// `struct kernel_boot_info`.
    BootInfo {
        size: u64, direct_map: u64, page_map: u64, ram_frames: u64, machine_frames: u64,
        first_free_frame: u64, cpus: u32, irq: u32, percpu: [u64; KERNEL_CPUS],
        bar: [Bar; KERNEL_BARS],
    }
    /// `struct kernel_module_info`.
    ModuleInfo {
        size: u64, init: u64, exit: u64, parameters: u64, parameters_size: u64,
        arguments: u64, ctors: u64,
    }
    /// `struct kernel_drvinfo`.
    DriverInfo {
        driver: [u8; KERNEL_NAME], version: [u8; KERNEL_NAME], firmware: [u8; KERNEL_NAME],
        bus: [u8; KERNEL_NAME],
    }
    /// `struct kernel_link`.
    Link {
        carrier: u32, link: u32, speed: u32, duplex: u32, autoneg: u32, supported: u32,
        advertising: u32, port: u32,
    }
    /// `struct kernel_ringparam`.
    RingParameters { rx: u32, tx: u32, rx_max: u32, tx_max: u32 }
    /// `struct kernel_named_value`.
    NamedValue { name: [u8; KERNEL_NAME], value: u64 }
    /// `struct kernel_statistics`.
    Statistics {
        rx_packets: u64, tx_packets: u64, rx_bytes: u64, tx_bytes: u64, rx_errors: u64,
        tx_errors: u64, rx_dropped: u64, tx_dropped: u64, multicast: u64, collisions: u64,
        rx_crc_errors: u64, rx_length_errors: u64, rx_missed_errors: u64, tx_carrier_errors: u64,
    }
    /// `struct kernel_info`.
    Info {
        size: u64, now: u64, net_device: u64, netdev_priv: u64, napi: u64, ndo_start_xmit: u64,
        ndo_tx_timeout: u64, poll: u64, irq_state: u64, rx_ring: u64, counters: u64,
        softnet_data: u64, current_task: u64, preempt_count: u64, cpu_number: u64, irq: u32,
        mtu: u32, flags: u32, carrier: u32, state: u64, features: u64, mac: [u8; 8],
        name: [u8; 16],
    }
    /// `struct kernel_irq_state`.
    IrqState { handler: u64, dev_id: u64, depth: u32, running: u32, count: u64, spurious: u64 }
    /// `struct kernel_counters`.
    Counters {
        pages_free: u64, pages_allocated: u64, allocations: u64, frees: u64, works_run: u64,
        timers_run: u64, warnings: u64, sleeps: u64, skb_allocated: u64, skb_freed: u64,
    }
}

/// Which frames are received besides those to the own address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum ReceiveMode {
    /// Broadcast and the groups.
    Groups = 0,
    /// All (`KERNEL_RX_PROMISC`).
    Promiscuous = 1,
    /// All groups (`KERNEL_RX_ALLMULTI`).
    AllGroups = 2,
}

const IORESOURCE_IO: u64 = 0x100;
const IORESOURCE_MEM: u64 = 0x200;

/// A name that C text ends.
pub fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

/// Most statistics of a driver.
const MOST_VALUES: usize = 512;

/// What a card can do for the stack: `enum` in the kernel's `netdev_features.h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Feature {
    /// A packet may be in several pieces (`sg`).
    ScatterGather = 0,
    /// Checksums of what is sent (`tx`).
    Checksums = 3,
    /// Segments of TCP over IPv4 are cut (`tso`).
    Segmentation = 16,
}

impl Feature {
    /// All of them.
    pub const ALL: [Feature; 3] = [
        Feature::ScatterGather,
        Feature::Checksums,
        Feature::Segmentation,
    ];

    /// In a set.
    pub fn bit(self) -> u64 {
        1 << self as u32
    }
}

impl Dom0<'_, '_> {
    /// Starts kernel.o: the first command.
    ///
    /// # Errors
    /// [`CommandError`], as for all of the following.
    pub fn boot(&mut self) -> Result<Answer, CommandError> {
        let info = self.boot_info();
        let at = self.give("kernel_boot", info.bytes())?;
        self.check("kernel_boot", &[at])
    }

    fn boot_info(&self) -> BootInfo {
        let space = self.plan().space();
        let mut info = BootInfo {
            size: size_of::<BootInfo>() as u64,
            direct_map: space.direct_map(),
            page_map: VMEMMAP,
            ram_frames: space.sizes().ram().end / PAGE,
            machine_frames: space.sizes().total() / PAGE,
            first_free_frame: space.heap().start / PAGE,
            cpus: CPUS as u32,
            irq: IRQ,
            ..BootInfo::zero()
        };
        for cpu in 0..CPUS {
            info.percpu[cpu] = memory::percpu(cpu);
        }
        info.bar[0] = Bar {
            start: u64::from(BAR_BUS),
            size: BAR_SIZE,
            flags: IORESOURCE_MEM,
            address: BAR,
        };
        info.bar[2] = Bar {
            start: u64::from(PORTS),
            size: u64::from(PORTS_SIZE),
            flags: IORESOURCE_IO,
            address: 0,
        };
        info
    }

    /// Loads the driver with module parameters (`TxDescriptors=256 ...`).
    pub fn load(&mut self, arguments: &str) -> Result<Answer, CommandError> {
        let plan = self.plan();
        let symbol = |name| plan.symbol_in(Module::Driver, name);
        let parameters = plan.section(Module::Driver, "__param");
        let size = plan.section_size(Module::Driver, "__param");
        let info_size = size_of::<ModuleInfo>();
        let info = ModuleInfo {
            size: info_size as u64,
            init: symbol("init_module").unwrap_or(0),
            exit: symbol("cleanup_module").unwrap_or(0),
            parameters: parameters.unwrap_or(0),
            parameters_size: size.unwrap_or(0),
            arguments: EXCHANGE.start + info_size as u64,
            ctors: 0,
        };
        let mut bytes = info.bytes().to_vec();
        bytes.extend_from_slice(arguments.as_bytes());
        bytes.push(0);
        let at = self.give("kernel_load", &bytes)?;
        self.check("kernel_load", &[at])
    }

    /// Closes and removes the driver.
    pub fn remove(&mut self) -> Result<Answer, CommandError> {
        self.check("kernel_remove", &[])
    }

    /// `ip link set up`.
    pub fn open(&mut self) -> Result<Answer, CommandError> {
        self.check("kernel_open", &[])
    }

    /// `ip link set down`.
    pub fn close(&mut self) -> Result<Answer, CommandError> {
        self.check("kernel_close", &[])
    }

    /// Lets virtual time pass.
    pub fn tick(&mut self, nanoseconds: u64) -> Result<Answer, CommandError> {
        self.call("kernel_tick", &[nanoseconds])
    }

    /// Waits for the carrier, at most that much virtual time.
    pub fn link_wait(&mut self, nanoseconds: u64) -> Result<Answer, CommandError> {
        self.check("kernel_link_wait", &[nanoseconds])
    }

    /// Delivers the NIC's interrupt to dom0's driver.
    pub fn interrupt(&mut self) -> Result<Answer, CommandError> {
        self.call("kernel_interrupt", &[u64::from(IRQ)])
    }

    /// The link settings that `ethtool` shows.
    pub fn link(&mut self) -> Result<Link, CommandError> {
        self.query("kernel_ethtool_link", Link::zero())
    }

    /// `ethtool -i`.
    pub fn driver_info(&mut self) -> Result<DriverInfo, CommandError> {
        self.query("kernel_ethtool_drvinfo", DriverInfo::zero())
    }

    /// `ethtool -g`.
    pub fn ring_parameters(&mut self) -> Result<RingParameters, CommandError> {
        self.query("kernel_ethtool_ringparam", RingParameters::zero())
    }

    /// `ethtool -K`: what the card does for the stack.
    pub fn set_features(
        &mut self,
        on: &[Feature],
        off: &[Feature],
    ) -> Result<Answer, CommandError> {
        let bits = |features: &[Feature]| features.iter().fold(0, |bits, f| bits | f.bit());
        self.check("kernel_set_features", &[bits(on), bits(off)])
    }

    /// `ip -s link`.
    pub fn statistics(&mut self) -> Result<Statistics, CommandError> {
        self.query("kernel_statistics", Statistics::zero())
    }

    /// Addresses in dom0.
    pub fn info(&mut self) -> Result<Info, CommandError> {
        let size = size_of::<Info>() as u64;
        self.query(
            "kernel_info",
            Info {
                size,
                ..Info::zero()
            },
        )
    }

    /// `ethtool -S`: names and values.
    pub fn ethtool_statistics(&mut self) -> Result<Vec<(String, u64)>, CommandError> {
        const ENTRY: usize = size_of::<NamedValue>();
        let what = "kernel_ethtool_stats";
        let at = self.give(what, &[0; MOST_VALUES * ENTRY])?;
        let count = self.check(what, &[at, MOST_VALUES as u64])?.value as usize;
        let mut bytes = vec![0; count.min(MOST_VALUES) * ENTRY];
        self.take(&mut bytes);
        let word = |entry: &[u8]| u64::from_le_bytes(entry.try_into().expect("eight bytes"));
        let entries = bytes.chunks_exact(ENTRY);
        Ok(entries
            .map(|entry| (text(&entry[..KERNEL_NAME]), word(&entry[KERNEL_NAME..])))
            .collect())
    }

    /// Which frames are received besides those to the own address.
    pub fn set_receive_mode(
        &mut self,
        mode: ReceiveMode,
        groups: &[[u8; 6]],
    ) -> Result<Answer, CommandError> {
        let what = "kernel_set_rx_mode";
        let at = self.give(what, groups.as_flattened())?;
        self.check(what, &[mode as u64, at, groups.len() as u64])
    }

    /// `ethtool -d`.
    pub fn registers(&mut self) -> Result<Vec<u8>, CommandError> {
        const MOST: usize = 4096;
        let at = self.give("kernel_ethtool_regs", &[0; MOST])?;
        let count = self.check("kernel_ethtool_regs", &[at, MOST as u64])?.value;
        let mut bytes = vec![0; (count as usize).min(MOST)];
        self.take(&mut bytes);
        Ok(bytes)
    }

    /// `ethtool -e`.
    pub fn eeprom(&mut self, offset: u32, length: u32) -> Result<Vec<u8>, CommandError> {
        let mut bytes = vec![0; length as usize];
        let at = self.give("kernel_ethtool_eeprom", &bytes)?;
        let arguments = [u64::from(offset), at, u64::from(length)];
        self.check("kernel_ethtool_eeprom", &arguments)?;
        self.take(&mut bytes);
        Ok(bytes)
    }

    /// Calls `function` with a structure by reference and gives the structure as the
    /// function left it.
    fn query<T: Plain>(&mut self, function: &str, value: T) -> Result<T, CommandError> {
        let at = self.give(function, value.bytes())?;
        self.check(function, &[at])?;
        let mut bytes = vec![0; size_of::<T>()];
        self.take(&mut bytes);
        Ok(T::from_bytes(&bytes))
    }

    /// Puts bytes into the exchange area and gives their dom0 address. They stay
    /// until the next `give`.
    pub fn give(&mut self, what: &str, bytes: &[u8]) -> Result<u64, CommandError> {
        let at = self.exchange();
        if bytes.len() as u64 > EXCHANGE.end - EXCHANGE.start {
            return Err(CommandError::TooLarge {
                what: what.to_owned(),
                length: bytes.len() as u64,
            });
        }
        self.machine()
            .write(at, bytes)
            .expect("the exchange area is dom0's RAM");
        Ok(EXCHANGE.start)
    }

    /// The exchange area's machine address.
    fn exchange(&self) -> u64 {
        EXCHANGE.start - self.plan().space().direct_map()
    }

    /// Reads from the exchange area's begin.
    pub fn take(&self, into: &mut [u8]) {
        let at = self.exchange();
        self.machine()
            .read(at, into)
            .expect("the exchange area is dom0's RAM");
    }
}
