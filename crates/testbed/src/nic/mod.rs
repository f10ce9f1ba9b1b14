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
//!                 [pci]                  [registers]         [open]     (no trap)
//!                   └──────────┬──────────────┼────────────────┘
//!  set_link ─> [phy]  [eeprom] │   [statistics]   [interrupt] ─> interrupt_line
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
//! * Nothing is allocated, and nothing panics on what a driver or a wire does.
//! * DMA reaches memory through [`Bus`] only. A refused address stops the ring
//!   until the next device reset and is kept in [`Nic::faults`].
//! * Unknown registers read 0 and are counted in [`Nic::unknown_accesses`].
//!
//! `mmio_write` of TDT does not transmit by itself, for it has no bus: the
//! caller runs [`Nic::process_transmit`] afterwards.

pub mod checksum;
mod eeprom;
mod interrupt;
pub mod open;
mod pci;
pub mod phy;
mod receive;
pub mod registers;
mod statistics;
mod transmit;

pub use open::{Absorbed, BAR_WORDS, Reason, Untracked};
pub use receive::{Filter, Received};
pub use registers::{Register, Table};
pub use transmit::Transmitted;

use registers::{Access, Effect, Place, REGISTERS, cause, ctrl, status};

/// The size of BAR 0 in bytes: registers, then packet buffer memory.
pub const BAR0_BYTES: u32 = 128 * 1024;

/// The size of BAR 2 in bytes: the IOADDR and IODATA window.
pub const BAR2_BYTES: u32 = 64;

/// The longest frame in the transmit packet buffer, in bytes (3.3.3).
pub const FRAME_LIMIT: usize = 16288;

/// A DMA address that the bus refused.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BusFault {
    /// The first byte of the refused access.
    pub address: u64,
    /// How many bytes were asked for.
    pub length: u64,
}

/// Memory as the device's DMA reaches it. The implementor checks the address.
///
/// An aligned access of 8 bytes or less should be a single load or store, as it
/// is on a real bus: a driver may poll a descriptor while it is written back.
pub trait Bus {
    /// Fills `into` from memory at `address`.
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BusFault>;
    /// Stores `bytes` at `address`.
    fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), BusFault>;
}

/// The other end of the cable.
pub trait Wire {
    /// Takes a frame the device sends, without its FCS.
    fn transmit(&mut self, frame: &[u8]);
}

/// What the machine decides about the device before it has power.
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

/// Which ring a fault stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ring {
    /// The transmit ring.
    Transmit,
    /// The receive ring.
    Receive,
}

/// Why and how often rings stopped. A stopped ring stays so until a device
/// reset; these records stay until power is cycled.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// DMA addresses refused, both rings.
    pub bus: u64,
    /// Tails at or past the ring's end.
    pub bad_tails: u64,
    /// The last refused DMA address of transmit.
    pub transmit: BusFault,
    /// The last refused DMA address of receive.
    pub receive: BusFault,
    /// Packets whose descriptors contradict themselves or the limits; dropped.
    pub malformed: u64,
}

/// Accesses to offsets that no register is known at.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnknownAccesses {
    /// Reads; they gave 0.
    pub reads: u64,
    /// Writes; they changed nothing.
    pub writes: u64,
    /// The offset of the last one.
    pub last_offset: u32,
    /// 0 for a read; the value of a write.
    pub last_value: u32,
}

/// The device. See the module.
#[repr(C)]
#[derive(Clone)]
pub struct Nic {
    /// 0 without power.
    powered: u32,
    /// 0 when nothing is plugged in or the other end is off.
    cable: u32,
    /// The address behind the I/O window (IOADDR, 13.3).
    io_address: u32,
    /// The interrupt line: 1 when asserted.
    line: u32,
    /// Registers by their place in the table.
    registers: [u32; REGISTERS],
    /// MTA.
    multicast: [u32; 128],
    /// RAL and RAH, alternating.
    receive_address: [u32; 32],
    /// VFTA.
    vlan: [u32; 128],
    phy: phy::Phy,
    eeprom: eeprom::Eeprom,
    timers: interrupt::Timers,
    window: open::Window,
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

// It lives in shared memory: nothing to drop, nothing that points.
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

    /// Reads a register (13.2, 13.3): `offset` in BAR 0, in bytes. ICR and
    /// statistics are cleared by it.
    pub fn mmio_read(&mut self, offset: u32) -> u32 {
        if self.powered == 0 {
            return u32::MAX;
        }
        match Place::at(offset) {
            Some(Place::Register(register)) => self.read_register(register),
            Some(Place::Table(table, index)) => self.table(table)[index],
            None => {
                self.unknown.reads += 1;
                self.unknown.last_offset = offset;
                self.unknown.last_value = 0;
                0
            }
        }
    }

    fn read_register(&mut self, register: Register) -> u32 {
        match register.access() {
            Access::Plain | Access::ReadOnly | Access::CounterLow => self.peek(register),
            Access::Counter => {
                let value = self.peek(register);
                self.poke(register, 0);
                value
            }
            Access::CounterHigh => self.read_high_counter(register),
            Access::WriteOnly(_) => 0,
            Access::Side(effect) => match effect {
                Effect::IcrAcknowledge => self.read_icr(),
                Effect::Eecd => self.read_eecd(),
                Effect::Control
                | Effect::Eerd
                | Effect::ControlExtended
                | Effect::Mdic
                | Effect::Ics
                | Effect::Ims
                | Effect::Imc
                | Effect::Itr
                | Effect::Rdtr
                | Effect::Pba => self.peek(register),
            },
        }
    }

    /// Writes a register (13.2, 13.3). Does no DMA: after a write of TDT the
    /// caller runs [`Nic::process_transmit`].
    pub fn mmio_write(&mut self, offset: u32, value: u32) {
        if self.powered == 0 {
            return;
        }
        match Place::at(offset) {
            Some(Place::Register(register)) => self.write_register(register, value),
            Some(Place::Table(table, index)) => {
                self.table_mut(table)[index] = value & table.mask(index);
            }
            None => {
                self.unknown.writes += 1;
                self.unknown.last_offset = offset;
                self.unknown.last_value = value;
            }
        }
    }

    fn write_register(&mut self, register: Register, value: u32) {
        let masked = value & register.mask();
        match register.access() {
            Access::Plain => self.poke(register, masked),
            Access::ReadOnly | Access::Counter | Access::CounterLow | Access::CounterHigh => {}
            Access::Side(effect) | Access::WriteOnly(effect) => match effect {
                Effect::Control => self.write_control(masked),
                Effect::Eecd => self.write_eecd(masked),
                Effect::Eerd => self.write_eerd(masked),
                Effect::ControlExtended => self.write_control_extended(masked),
                Effect::Mdic => self.write_mdic(masked),
                Effect::IcrAcknowledge => self.acknowledge(masked),
                Effect::Ics => self.raise(masked),
                Effect::Ims => self.unmask(masked),
                Effect::Imc => self.mask(masked),
                Effect::Itr => self.write_itr(masked),
                Effect::Rdtr => self.write_rdtr(value),
                Effect::Pba => {
                    // 64 KiB in all; what receive leaves is transmit's.
                    let receive = masked.min(64);
                    self.poke(Register::Pba, (64 - receive) << 16 | receive);
                }
            },
        }
    }

    /// CTRL and its second address (13.4.1).
    fn write_control(&mut self, value: u32) {
        if value & ctrl::RST != 0 {
            self.reset();
            return;
        }
        let before = self.peek(Register::Ctrl);
        self.poke(Register::Ctrl, value);
        self.poke(Register::CtrlDup, value);
        if value & ctrl::PHY_RST != 0 && before & ctrl::PHY_RST == 0 {
            self.phy.reset();
            self.phy.negotiate(self.cable != 0);
        }
        self.update_link();
    }

    /// CTRL_EXT (13.4.6): EE_RST, bit 13, reloads the EEPROM and clears itself.
    fn write_control_extended(&mut self, value: u32) {
        const EE_RST: u32 = 1 << 13;
        self.poke(Register::CtrlExt, value & !EE_RST);
        if value & EE_RST != 0 {
            let [low, high] = self.eeprom.receive_address();
            self.receive_address[0] = low;
            self.receive_address[1] = high;
        }
    }

    /// MDIC (13.4.8): the access completes at once.
    fn write_mdic(&mut self, value: u32) {
        const INTERRUPT: u32 = 1 << 29;
        let (answer, link) = self.phy.mdic(value, self.cable != 0);
        self.poke(Register::Mdic, answer);
        if link {
            self.update_link();
        }
        if value & INTERRUPT != 0 {
            self.raise(cause::MDAC);
        }
    }

    /// Plugs the cable in or pulls it. A change raises LSC (13.4.17) and shows
    /// in STATUS.LU and the PHY.
    pub fn set_link(&mut self, up: bool) {
        self.cable = u32::from(up);
        if self.powered != 0 {
            self.phy.negotiate(up);
            self.update_link();
        }
    }

    /// Whether the MAC sees a link (STATUS.LU).
    pub fn link_up(&self) -> bool {
        self.peek(Register::Status) & status::LU != 0
    }

    /// Recomputes STATUS from PHY and CTRL (13.4.2); a change of LU is an LSC.
    fn update_link(&mut self) {
        let before = self.peek(Register::Status);
        let control = self.peek(Register::Ctrl);
        let mut now = status::PCI66;
        if self.phy.link_up() && control & ctrl::SLU != 0 {
            now |= status::LU;
        }
        now |= if control & ctrl::FRCSPD != 0 {
            (control >> 8 & 3) << 6
        } else {
            self.phy.speed() << 6 | self.phy.speed() << 8
        };
        let duplex = if control & ctrl::FRCDPX != 0 {
            control & ctrl::FD != 0
        } else {
            self.phy.full_duplex()
        };
        if duplex {
            now |= status::FD;
        }
        self.poke(Register::Status, now);
        if (before ^ now) & status::LU != 0 {
            self.raise(cause::LSC);
        }
    }

    /// Whether the PHY loops frames back (BMCR bit 14): the caller then hands
    /// what [`Wire::transmit`] takes to [`Nic::receive`].
    pub fn loopback(&self) -> bool {
        self.phy.loopback()
    }

    /// Reads the I/O window (13.3): IOADDR at 0, IODATA at 4.
    pub fn io_read(&mut self, offset: u32) -> u32 {
        match offset {
            _ if self.powered == 0 => u32::MAX,
            0 => self.io_address,
            4 => self.mmio_read(self.io_address),
            _ => {
                self.unknown.reads += 1;
                self.unknown.last_offset = offset;
                self.unknown.last_value = 0;
                0
            }
        }
    }

    /// Writes the I/O window (13.3): IOADDR at 0, IODATA at 4.
    pub fn io_write(&mut self, offset: u32, value: u32) {
        match offset {
            _ if self.powered == 0 => {}
            // Bits 19:0 are implemented.
            0 => self.io_address = value & 0x000f_ffff,
            4 => self.mmio_write(self.io_address, value),
            _ => {
                self.unknown.writes += 1;
                self.unknown.last_offset = offset;
                self.unknown.last_value = value;
            }
        }
    }

    /// Faults since power-on.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Whether a fault has stopped the ring.
    pub fn stopped(&self, ring: Ring) -> bool {
        match ring {
            Ring::Transmit => self.transmit_stopped != 0,
            Ring::Receive => self.receive_stopped != 0,
        }
    }

    /// Accesses to unknown registers since power-on.
    pub fn unknown_accesses(&self) -> &UnknownAccesses {
        &self.unknown
    }

    /// Stops or resumes the computation of the FCS that is stored behind a
    /// received frame while RCTL.SECRC is 0: skipped, four zero bytes are
    /// stored. A driver that does not look at it is served faster.
    pub fn skip_fcs(&mut self, skip: bool) {
        self.fcs_skipped = u32::from(skip);
    }

    /// The words of a table.
    pub fn table(&self, table: Table) -> &[u32] {
        match table {
            Table::Multicast => &self.multicast,
            Table::ReceiveAddress => &self.receive_address,
            Table::Vlan => &self.vlan,
        }
    }

    fn table_mut(&mut self, table: Table) -> &mut [u32] {
        match table {
            Table::Multicast => &mut self.multicast,
            Table::ReceiveAddress => &mut self.receive_address,
            Table::Vlan => &mut self.vlan,
        }
    }

    /// Records a refused DMA address and stops the ring; configuration space
    /// reports the received master abort.
    #[cold]
    fn bus_fault(&mut self, ring: Ring, fault: BusFault) {
        self.faults.bus += 1;
        match ring {
            Ring::Transmit => {
                self.faults.transmit = fault;
                self.transmit_stopped = 1;
            }
            Ring::Receive => {
                self.faults.receive = fault;
                self.receive_stopped = 1;
            }
        }
        self.pci_master_abort();
    }

    /// Records a tail past the ring's end and stops the ring.
    #[cold]
    fn bad_tail(&mut self, ring: Ring) {
        self.faults.bad_tails += 1;
        match ring {
            Ring::Transmit => self.transmit_stopped = 1,
            Ring::Receive => self.receive_stopped = 1,
        }
    }
}
