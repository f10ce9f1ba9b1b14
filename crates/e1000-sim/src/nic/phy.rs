//! The PHY: an M88E1011 on MDIC address 1, as the 82540EM has it inside
//! (chapter 11 and 13.4.8). Negotiation takes no time; the other end offers
//! everything up to 1000BASE-T full duplex and both pause directions.

/// PHY registers that the model implements (11.3, IEEE 802.3 22.2.4).
mod register {
    pub const CONTROL: usize = 0;
    pub const STATUS: usize = 1;
    pub const ID1: usize = 2;
    pub const ID2: usize = 3;
    pub const ADVERTISE: usize = 4;
    pub const PARTNER: usize = 5;
    pub const EXPANSION: usize = 6;
    pub const PARTNER_NEXT: usize = 8;
    pub const GIGABIT_CONTROL: usize = 9;
    pub const GIGABIT_STATUS: usize = 10;
    pub const EXTENDED_STATUS: usize = 15;
    pub const M88_CONTROL: usize = 16;
    pub const M88_STATUS: usize = 17;
    pub const M88_INTERRUPT_STATUS: usize = 19;
    pub const M88_EXTENDED_CONTROL: usize = 20;
    pub const M88_RECEIVE_ERRORS: usize = 21;
}
use register::*;

/// The PHY identifier in registers 2 and 3: M88E1011, which the driver expects with an
/// 82540 (its revision is the low nibble).
pub const IDENTIFIER: u32 = 0x0141_0c20;

/// CONTROL bits.
const RESET: u16 = 1 << 15;
const LOOPBACK: u16 = 1 << 14;
const SPEED_LOW: u16 = 1 << 13;
const AUTONEGOTIATE: u16 = 1 << 12;
const POWER_DOWN: u16 = 1 << 11;
const RESTART: u16 = 1 << 9;
const DUPLEX: u16 = 1 << 8;
const SPEED_HIGH: u16 = 1 << 6;

/// STATUS bits: abilities, then those that change.
const ABILITIES: u16 = 0x7949;
const NEGOTIATED: u16 = 1 << 5;
const LINK: u16 = 1 << 2;

/// What the other end offers: acknowledge, pause, 100 and 10 Mb/s, 802.3.
const OFFER: u16 = 0x45e1;
/// Master, both receivers fine, the other end can do 1000 full and half.
const GIGABIT_OFFER: u16 = 0x7c00;

/// M88 specific status: resolved and real-time link.
const RESOLVED: u16 = 1 << 11;
const REAL_LINK: u16 = 1 << 10;

/// MDIC fields (13.4.8).
const READY: u32 = 1 << 28;
const ERROR: u32 = 1 << 30;

/// The PHY's registers.
#[repr(C)]
#[derive(Clone)]
pub(super) struct Phy {
    registers: [u16; 32],
}

impl Phy {
    pub const fn off() -> Phy {
        Phy { registers: [0; 32] }
    }

    pub fn power_on(&mut self) {
        self.reset();
        self.negotiate(true);
    }

    /// Hardware reset (11.3): every register at its default, no link.
    pub fn reset(&mut self) {
        let r = &mut self.registers;
        *r = [0; 32];
        r[CONTROL] = AUTONEGOTIATE | DUPLEX | SPEED_HIGH;
        r[STATUS] = ABILITIES;
        r[ID1] = (IDENTIFIER >> 16) as u16;
        r[ID2] = IDENTIFIER as u16;
        r[ADVERTISE] = 0x0de1;
        r[GIGABIT_CONTROL] = 0x0e00;
        r[EXTENDED_STATUS] = 0x3000;
        r[M88_CONTROL] = 0x0068;
        r[M88_EXTENDED_CONTROL] = 0x0d60;
    }

    pub fn link_up(&self) -> bool {
        self.registers[M88_STATUS] & REAL_LINK != 0
    }

    /// 0, 1, 2 for 10, 100 and 1000 Mb/s, as STATUS.SPEED has it.
    pub fn speed(&self) -> u32 {
        u32::from(self.registers[M88_STATUS] >> 14)
    }

    pub fn full_duplex(&self) -> bool {
        self.registers[M88_STATUS] & 1 << 13 != 0
    }

    pub fn loopback(&self) -> bool {
        self.registers[CONTROL] & LOOPBACK != 0
    }

    /// Sets the link's state from cable and settings.
    pub fn negotiate(&mut self, cable: bool) {
        let control = self.registers[CONTROL];
        let up = (cable || control & LOOPBACK != 0) && control & POWER_DOWN == 0;
        let automatic = control & AUTONEGOTIATE != 0;
        let (speed, duplex) = if automatic {
            self.resolve()
        } else {
            let high = u16::from(control & SPEED_HIGH != 0);
            let low = u16::from(control & SPEED_LOW != 0);
            (high << 1 | low, control & DUPLEX != 0)
        };
        let r = &mut self.registers;
        let met = up && automatic;
        r[PARTNER] = if met { OFFER } else { 0 };
        r[EXPANSION] = u16::from(met);
        r[GIGABIT_STATUS] = if met { GIGABIT_OFFER } else { 0 };
        r[STATUS] = ABILITIES;
        r[M88_STATUS] = 0;
        if up {
            r[STATUS] |= LINK | if automatic { NEGOTIATED } else { 0 };
            r[M88_STATUS] = speed << 14 | u16::from(duplex) << 13 | RESOLVED | REAL_LINK;
        }
    }

    /// The best mode that both ends advertise (IEEE 802.3 28B.3): speed code
    /// and duplex.
    fn resolve(&self) -> (u16, bool) {
        let advertised = self.registers[ADVERTISE];
        let gigabit = self.registers[GIGABIT_CONTROL];
        let modes = [
            (gigabit & 1 << 9, 2, true),
            (gigabit & 1 << 8, 2, false),
            (advertised & 1 << 8, 1, true),
            (advertised & 1 << 7, 1, false),
            (advertised & 1 << 6, 0, true),
        ];
        modes
            .into_iter()
            .find(|mode| mode.0 != 0)
            .map_or((0, false), |(_, speed, duplex)| (speed, duplex))
    }

    /// Performs the access in an MDIC value; gives what MDIC then reads and
    /// whether the link may have changed.
    pub fn mdic(&mut self, value: u32, cable: bool) -> (u32, bool) {
        let index = (value >> 16 & 0x1f) as usize;
        let address = value >> 21 & 0x1f;
        let operation = value >> 26 & 3;
        let base = value & !(READY | ERROR);
        if address != 1 {
            // No PHY answers: the data lines float high.
            return (base | READY | ERROR, false);
        }
        match operation {
            1 => {
                let link = self.write(index, value as u16, cable);
                (base | READY, link)
            }
            2 => {
                let read = self.read(index);
                (base & 0xffff_0000 | u32::from(read) | READY, false)
            }
            _ => (base | READY | ERROR, false),
        }
    }

    fn read(&mut self, index: usize) -> u16 {
        let value = self.registers[index];
        match index {
            // Latched and counted since the last read.
            M88_INTERRUPT_STATUS | M88_RECEIVE_ERRORS => self.registers[index] = 0,
            _ => {}
        }
        value
    }

    /// Writes a PHY register; true when the link may have changed.
    fn write(&mut self, index: usize, value: u16, cable: bool) -> bool {
        match index {
            CONTROL => {
                // Software reset keeps the settings and applies them (11.3.1).
                self.registers[CONTROL] = value & !(RESET | RESTART) & 0xffc0;
                self.negotiate(cable);
                true
            }
            STATUS | ID1 | ID2 | PARTNER | EXPANSION | PARTNER_NEXT | GIGABIT_STATUS
            | EXTENDED_STATUS | M88_STATUS | M88_INTERRUPT_STATUS | M88_RECEIVE_ERRORS => false,
            _ => {
                self.registers[index] = value;
                false
            }
        }
    }
}
