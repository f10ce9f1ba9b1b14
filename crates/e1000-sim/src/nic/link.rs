//! The cable, and its state in MAC and PHY registers.

use super::registers::{cause, ctrl, status};
use super::{Nic, Register};

impl Nic {
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
    pub(super) fn update_link(&mut self) {
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
    /// what [`super::Wire::transmit`] takes to [`Nic::receive`].
    pub fn loopback(&self) -> bool {
        self.phy.loopback()
    }
}
