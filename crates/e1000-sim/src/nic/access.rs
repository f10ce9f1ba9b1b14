//! Accesses of the driver: registers in BAR 0 and the window in BAR 2 (13.2,
//! 13.3), and the effect of a write to each register.

use super::registers::{Access, Effect, Place, Table, cause, ctrl};
use super::{Nic, Register};

/// Accesses to offsets without a known register.
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

impl UnknownAccesses {
    /// Counts a read; gives what it reads.
    fn read(&mut self, offset: u32) -> u32 {
        self.reads += 1;
        self.last_offset = offset;
        self.last_value = 0;
        0
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.writes += 1;
        self.last_offset = offset;
        self.last_value = value;
    }
}

impl Nic {
    /// Reads a register (13.2, 13.3): `offset` in BAR 0, in bytes. ICR and
    /// statistics are cleared by it.
    pub fn mmio_read(&mut self, offset: u32) -> u32 {
        if self.powered == 0 {
            return u32::MAX;
        }
        match Place::at(offset) {
            Some(Place::Register(register)) => self.read_register(register),
            Some(Place::Table(table, index)) => self.table(table)[index],
            None => self.unknown.read(offset),
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
            None => self.unknown.write(offset, value),
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
                    // 64 KiB in all; receive's remainder is transmit's.
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

    /// Reads the I/O window (13.3): IOADDR at 0, IODATA at 4.
    pub fn io_read(&mut self, offset: u32) -> u32 {
        match offset {
            _ if self.powered == 0 => u32::MAX,
            0 => self.io_address,
            4 => self.mmio_read(self.io_address),
            _ => self.unknown.read(offset),
        }
    }

    /// Writes the I/O window (13.3): IOADDR at 0, IODATA at 4.
    pub fn io_write(&mut self, offset: u32, value: u32) {
        match offset {
            _ if self.powered == 0 => {}
            // Bits 19:0 are implemented.
            0 => self.io_address = value & 0x000f_ffff,
            4 => self.mmio_write(self.io_address, value),
            _ => self.unknown.write(offset, value),
        }
    }

    /// Accesses to unknown registers since power-on.
    pub fn unknown_accesses(&self) -> &UnknownAccesses {
        &self.unknown
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
}
