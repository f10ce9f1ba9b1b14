//! Registers that share a page with causes and masks, and that a driver rarely writes: RCTL and TCTL,
//! CTRL, addresses of flow control. While the page is memory the device finds out by looking.
//!
//! | register | when its value differs from the device's |
//! |---|---|
//! | RCTL, TCTL, CTRL without its resets, others that are settings | it is written now |
//! | CTRL with a reset, CTRL_EXT, EECD, EERD, MDIC | an error |
//! | RXCW | nothing: it is read only, and reads its value again |
//!
//! Settings are written in the order of their addresses, before tails, throttle and masks of the same
//! look: what enables a ring is before the tail that fills it, and what disables one holds for what
//! was put there just before, as it may on a card.
//!
//! A register whose write starts something must trap: two writes look like one, the same value
//! twice like none, and the driver waits for an answer that nobody gives while the device side
//! sleeps. Which of them a driver writes at all is up to who opens the page.

use std::sync::atomic::{AtomicU32, Ordering};

use super::open::{Reason, Untracked};
use super::registers::ctrl;
use super::{BAR_WORDS, Nic, Register};

/// What a write that nobody saw means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rare {
    /// The value is all there is to it.
    Setting,
    /// A setting, but for CTRL's resets.
    Control,
    /// Each write starts something.
    Start,
    /// A write changes nothing.
    ReadOnly,
}

/// In the order of their addresses.
const RARE: [(Register, Rare); 20] = [
    (Register::Ctrl, Rare::Control),
    (Register::CtrlDup, Rare::Control),
    (Register::Eecd, Rare::Start),
    (Register::Eerd, Rare::Start),
    (Register::CtrlExt, Rare::Start),
    (Register::Fla, Rare::Setting),
    (Register::Mdic, Rare::Start),
    (Register::Fcal, Rare::Setting),
    (Register::Fcah, Rare::Setting),
    (Register::Fct, Rare::Setting),
    (Register::Vet, Rare::Setting),
    (Register::Rctl, Rare::Setting),
    (Register::Fcttv, Rare::Setting),
    (Register::Txcw, Rare::Setting),
    (Register::Rxcw, Rare::ReadOnly),
    (Register::Tctl, Rare::Setting),
    (Register::Tipg, Rare::Setting),
    (Register::Tbt, Rare::Setting),
    (Register::Ait, Rare::Setting),
    (Register::Ledctl, Rare::Setting),
];

const PAGE: u32 = 4096;

/// Every register of the page is followed: here, or by `absorb`.
const _: () = {
    let mut index = 0;
    let mut rare = 0;
    while index < Register::ALL.len() {
        let offset = Register::ALL[index].offset();
        let followed = matches!(
            Register::ALL[index],
            Register::Status
                | Register::Icr
                | Register::Itr
                | Register::Ics
                | Register::Ims
                | Register::Imc
        );
        if offset < PAGE && !followed {
            assert!(RARE[rare].0.offset() == offset);
            rare += 1;
        }
        index += 1;
    }
    assert!(rare == RARE.len());
};

impl Nic {
    /// Acts on what the driver has written to rarely used registers of page 0 since `open`, or since
    /// the last time; gives how many. Each word is read once. One that is written meanwhile is
    /// found the next time.
    ///
    /// # Errors
    /// [`Reason::NotOpen`] for a register whose writes start something: nothing has been done about
    /// it, nor about those after it. [`Reason::NotPublished`], [`Reason::WrongSize`].
    pub fn absorb_rare(&mut self, bar: &[AtomicU32]) -> Result<u32, Untracked> {
        let untracked = |offset, value, reason| Untracked {
            offset,
            value,
            reason,
        };
        if bar.len() != BAR_WORDS {
            return Err(untracked(0, bar.len() as u32, Reason::WrongSize));
        }
        if !self.is_open() {
            return Err(untracked(0, 0, Reason::NotPublished));
        }
        let mut found = 0;
        for (register, rare) in RARE {
            let offset = register.offset();
            let word = &bar[offset as usize / 4];
            let (value, expected) = (word.load(Ordering::Acquire), self.open_value(offset));
            if value == expected {
                continue;
            }
            found += 1;
            let resets = value & (ctrl::RST | ctrl::PHY_RST) != 0;
            match rare {
                Rare::Start => return Err(untracked(offset, value, Reason::NotOpen)),
                Rare::Control if resets => return Err(untracked(offset, value, Reason::NotOpen)),
                Rare::Control | Rare::Setting => self.mmio_write(offset, value),
                Rare::ReadOnly => {}
            }
            // Bits that do not exist read as 0, and CTRL has two addresses.
            self.show(bar, register, value);
            let other = match register {
                Register::Ctrl => Register::CtrlDup,
                Register::CtrlDup => Register::Ctrl,
                _ => continue,
            };
            self.show(bar, other, expected);
        }
        Ok(found)
    }

    /// Shows a register, unless the driver has just written another value than `seen`.
    fn show(&self, bar: &[AtomicU32], register: Register, seen: u32) {
        let offset = register.offset();
        let shown = self.open_value(offset);
        // A failure is a write that the next look finds.
        let _ = bar[offset as usize / 4].compare_exchange(
            seen,
            shown,
            Ordering::AcqRel,
            Ordering::Relaxed,
        );
    }
}
