//! Accesses of the driver: registers in BAR 0 and the window in BAR 2 (13.2,
//! 13.3), and the effect of a write to each register.

use super::registers::{RegisterAccess, RegisterPlace, Table, WriteEffect, cause, ctrl};
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
        match RegisterPlace::at(offset) {
            Some(RegisterPlace::Register(register)) => self.read_register(register),
            Some(RegisterPlace::Table(table, index)) => self.table(table)[index],
            None => self.unknown.read(offset),
        }
    }

    fn read_register(&mut self, register: Register) -> u32 {
        match register.access() {
            RegisterAccess::Plain | RegisterAccess::ReadOnly | RegisterAccess::CounterLow => {
                self.shown(register)
            }
            RegisterAccess::Counter => {
                let value = self.peek(register);
                self.poke(register, 0);
                value
            }
            RegisterAccess::CounterHigh => self.read_high_counter(register),
            RegisterAccess::WriteOnly(_) => 0,
            RegisterAccess::Side(effect) => match effect {
                WriteEffect::IcrAcknowledge => self.read_icr(),
                WriteEffect::Eecd => self.read_eecd(),
                WriteEffect::Control
                | WriteEffect::Eerd
                | WriteEffect::ControlExtended
                | WriteEffect::Mdic
                | WriteEffect::Ics
                | WriteEffect::Ims
                | WriteEffect::Imc
                | WriteEffect::Itr
                | WriteEffect::Rdtr
                | WriteEffect::Pba => self.peek(register),
            },
        }
    }

    /// Writes a register (13.2, 13.3). Does no DMA: after a write of TDT the
    /// caller runs [`Nic::process_transmit`].
    pub fn mmio_write(&mut self, offset: u32, value: u32) {
        if self.powered == 0 {
            return;
        }
        match RegisterPlace::at(offset) {
            Some(RegisterPlace::Register(register)) => self.write_register(register, value),
            Some(RegisterPlace::Table(table, index)) => {
                self.table_mut(table)[index] = value & table.mask(index);
            }
            None => self.unknown.write(offset, value),
        }
    }

    fn write_register(&mut self, register: Register, value: u32) {
        let masked = value & register.mask();
        if self.guarded_write(register, masked) {
            return;
        }
        match register.access() {
            RegisterAccess::Plain => self.poke(register, masked),
            RegisterAccess::ReadOnly
            | RegisterAccess::Counter
            | RegisterAccess::CounterLow
            | RegisterAccess::CounterHigh => {}
            RegisterAccess::Side(effect) | RegisterAccess::WriteOnly(effect) => match effect {
                WriteEffect::Control => self.write_control(masked),
                WriteEffect::Eecd => self.write_eecd(masked),
                WriteEffect::Eerd => self.write_eerd(masked),
                WriteEffect::ControlExtended => self.write_control_extended(masked),
                WriteEffect::Mdic => self.write_mdic(masked),
                WriteEffect::IcrAcknowledge => self.acknowledge(masked),
                WriteEffect::Ics => self.raise(masked),
                WriteEffect::Ims => self.unmask(masked),
                WriteEffect::Imc => self.mask(masked),
                WriteEffect::Itr => self.write_itr(masked),
                WriteEffect::Rdtr => self.write_rdtr(value),
                WriteEffect::Pba => {
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
