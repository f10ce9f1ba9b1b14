//! A model of Intel's 82540EM (PCI 8086:100e), the gigabit controller that the
//! stock `e1000.ko` drives.
//!
//! **Takes** register accesses of a driver, frames from a wire and the passing
//! of time; **gives** frames to a wire, DMA on a [`Bus`], and an interrupt line.
//! "The manual" is Intel's *PCI/PCI-X Family of Gigabit Ethernet Controllers
//! Software Developer's Manual*, 317453; the numbers in comments are its
//! sections.
//!
//! ```text
//!            config_read/write         mmio_read/write, io_read/write   (trapped)
//!                   │                         │        open, publish, absorb, audit
//!                 [pci]               [access, registers]    [open]     (no trap)
//!                   └──────────┬──────────────┼────────────────┘
//! set_link ─> [link, phy] [eeprom] [statistics]   [interrupt] ─> interrupt_line
//!                   └──────── Nic ────────────┴───── tick ─┘
//!                    ┌─────────┴─────────┐
//!  Wire <─ [transmit] ─ [checksum] ─ [receive] <─ receive(frame)
//!                    └──────── Bus ──────┘
//! ```
//!
//! Guarantees:
//! * The whole state is one [`Nic`]: integers and arrays of integers. Zeroed
//!   memory is a valid device without power, so it can live in memory that two
//!   processes share; the caller holds a lock around every call.
//! * Nothing is allocated, and no action of a driver or wire causes a panic.
//! * DMA reaches memory through [`Bus`] only. A refused address stops the ring
//!   until the next device reset and is kept in [`Nic::faults`].
//! * Unknown registers read 0 and are counted in [`Nic::unknown_accesses`].
//!
//! `mmio_write` of TDT does not transmit by itself, because it has no bus: the
//! caller runs [`Nic::process_transmit`] afterwards.

mod access;
pub(crate) mod checksum;
pub(crate) mod early;
mod eeprom;
mod faults;
mod guard;
mod interrupt;
mod link;
mod network;
pub(crate) mod open;
mod pci;
pub(crate) mod phy;
mod rare;
mod receive;
pub(crate) mod registers;
mod statistics;
mod transmit;

pub use access::UnknownAccesses;
pub use early::{CardMask, OF_RINGS};
pub use faults::{BusFault, Faults, Ring};
pub use guard::RingPlace;
pub use open::{Absorbed, BAR_WORDS, Reason, Untracked};
pub use receive::{Filter, Received};
pub use registers::{Register, Table};
pub use transmit::Transmitted;

use registers::REGISTERS;

/// The size of BAR 0 in bytes: registers, then packet buffer memory.
pub const BAR0_BYTES: u32 = 128 * 1024;

/// The size of BAR 2 in bytes: the IOADDR and IODATA window.
pub const BAR2_BYTES: u32 = 64;

/// Bytes of the frame check sequence: it is on the wire and is counted, but frames
/// come to the model and leave it without it.
const FCS: usize = 4;

/// The longest frame in the transmit packet buffer, in bytes (3.3.3).
pub const FRAME_LIMIT: usize = 16288;

/// Memory that the device's DMA reaches. The implementor checks the address.
///
/// An aligned access of 8 bytes or less should be a single load or store, as it
/// is on a real bus: a driver may poll a descriptor while it is written back.
pub trait Bus {
    /// Fills `into` from memory at `address`.
    ///
    /// # Errors
    /// The device may not reach all of it.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BusFault>;
    /// Stores `bytes` at `address`.
    ///
    /// # Errors
    /// The device may not reach all of it.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault>;
}

/// The other end of the cable.
pub trait Wire {
    /// Takes a frame the device sends, without its FCS.
    fn transmit(&mut self, frame: &[u8]);
}

/// The device's settings that the machine fixes before power-on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The MAC address in the EEPROM, in the order of transmission.
    pub mac: [u8; 6],
    /// Bus address of BAR 0; a multiple of 128 KiB below 4 GiB.
    pub bar0: u32,
    /// I/O port of BAR 2; a multiple of 64.
    pub io_base: u32,
    /// The interrupt line that configuration space reports.
    pub irq: u8,
}

/// The device. See the module.
#[repr(C)]
#[derive(Clone)]
pub struct Nic {
    /// 0 without power.
    powered: u32,
    /// 0 when nothing is plugged in or the other end is off.
    cable: u32,
    /// The register address that the I/O window accesses (IOADDR, 13.3).
    io_address: u32,
    /// The interrupt line: 1 when asserted.
    line: u32,
    /// Registers by their place in the table.
    registers: [u32; REGISTERS],
    multicast: [u32; 128],
    /// RAL and RAH, alternating.
    receive_address: [u32; 32],
    vlan: [u32; 128],
    phy: phy::Phy,
    eeprom: eeprom::Eeprom,
    timers: interrupt::Timers,
    window: open::Window,
    guarded: guard::Guarded,
    config: [u8; 256],
    /// The irq of [`Config`].
    irq: u32,
    /// 1 while a transmit fault stops the ring.
    transmit_stopped: u32,
    /// 1 while a receive fault stops the ring.
    receive_stopped: u32,
    /// 1 to leave the stored FCS unwritten; see [`Nic::skip_fcs`].
    fcs_skipped: u32,
    faults: Faults,
    unknown: UnknownAccesses,
    transmit: transmit::Transmit,
}

// It lives in shared memory: it needs no drop and contains no pointer.
const _: () = assert!(!std::mem::needs_drop::<Nic>());

impl Nic {
    /// A device without power: all zero.
    pub const fn off() -> Nic {
        Nic {
            powered: 0,
            cable: 0,
            io_address: 0,
            line: 0,
            registers: [0; REGISTERS],
            multicast: [0; 128],
            receive_address: [0; 32],
            vlan: [0; 128],
            phy: phy::Phy::off(),
            eeprom: eeprom::Eeprom::off(),
            timers: interrupt::Timers::off(),
            window: open::Window::off(),
            guarded: guard::Guarded::off(),
            config: [0; 256],
            irq: 0,
            transmit_stopped: 0,
            receive_stopped: 0,
            fcs_skipped: 0,
            faults: Faults {
                bus: 0,
                bad_tails: 0,
                transmit: BusFault {
                    address: 0,
                    length: 0,
                },
                receive: BusFault {
                    address: 0,
                    length: 0,
                },
                malformed: 0,
            },
            unknown: UnknownAccesses {
                reads: 0,
                writes: 0,
                last_offset: 0,
                last_value: 0,
            },
            transmit: transmit::Transmit::off(),
        }
    }

    /// Power on: EEPROM and PHY come up, the cable is plugged in, everything
    /// else is as after a device reset.
    pub fn power_on(&mut self, config: &Config) {
        self.powered = 1;
        self.cable = 1;
        self.io_address = 0;
        self.irq = u32::from(config.irq);
        self.fcs_skipped = 0;
        self.faults = Faults::default();
        self.unknown = UnknownAccesses::default();
        self.timers = interrupt::Timers::off();
        self.window = open::Window::off();
        self.guarded = guard::Guarded::off();
        self.eeprom.power_on(config.mac);
        self.phy.power_on();
        self.pci_power_on(config);
        self.reset();
    }

    /// Device reset (CTRL.RST, 13.4.1): registers take their reset values, the
    /// receive address comes from the EEPROM, stopped rings may run again. PCI
    /// configuration and the PHY stay.
    fn reset(&mut self) {
        for &register in Register::ALL {
            self.poke(register, register.reset());
        }
        self.multicast = [0; 128];
        self.receive_address = [0; 32];
        self.vlan = [0; 128];
        self.timers.disarm();
        self.line = 0;
        self.transmit_stopped = 0;
        self.receive_stopped = 0;
        self.transmit.reset();
        self.eeprom.reset_pins();
        let [low, high] = self.eeprom.receive_address();
        self.receive_address[0] = low;
        self.receive_address[1] = high;
        self.update_link();
    }

    /// Stops or resumes the computation of the FCS that is stored after a
    /// received frame while RCTL.SECRC is 0. If it is skipped, four zero bytes are
    /// stored, which is faster; only for drivers that do not read the FCS.
    pub fn skip_fcs(&mut self, skip: bool) {
        self.fcs_skipped = u32::from(skip);
    }
}
