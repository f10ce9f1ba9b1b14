//! Which pages of BAR 0 trap. The three pages that transmit, handler and poll of e1000 touch are
//! apart, so each can be memory by itself:
//!
//! ```text
//! 0x0000  control   STATUS, ICR, ITR, IMS, IMC     also CTRL, MDIC, RCTL, ...
//! 0x2000  receive   RDT                            also its base, length, head, delays
//! 0x3000  transmit  TDT                            also its base, length, head, delays
//! ```
//!
//! All other pages trap always: statistics change when they are read.

use crate::error::LiveError;
use crate::memory::{BarMode, PAGE, PageMode, set_bar, set_bar_page};
use crate::nic::Register;

/// A page that can be memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BarPage {
    /// Causes and masks.
    Control,
    /// The receive tail.
    Receive,
    /// The transmit tail.
    Transmit,
}

impl BarPage {
    /// The page of a register's offset in BAR 0; `None` if it always traps.
    pub fn of(offset: u32) -> Option<BarPage> {
        [BarPage::Control, BarPage::Receive, BarPage::Transmit]
            .into_iter()
            .find(|page| u64::from(page.register().offset()) / PAGE == u64::from(offset) / PAGE)
    }

    const fn register(self) -> Register {
        match self {
            BarPage::Control => Register::Icr,
            BarPage::Receive => Register::Rdt,
            BarPage::Transmit => Register::Tdt,
        }
    }
}

/// The pages' protection, and its changes.
#[derive(Debug)]
pub struct Pages {
    modes: [PageMode; 3],
    /// Pages made writable.
    pub opened: u64,
    /// Pages protected that were writable.
    pub rearmed: u64,
}

impl Pages {
    /// All trap.
    ///
    /// # Errors
    /// A system call's.
    pub fn new() -> Result<Pages, LiveError> {
        set_bar(BarMode::Trapped)?;
        Ok(Pages {
            modes: [PageMode::Trapped; 3],
            opened: 0,
            rearmed: 0,
        })
    }

    /// Whether a write goes to memory.
    pub fn is_open(&self, page: BarPage) -> bool {
        self.modes[page as usize] == PageMode::Open
    }

    /// Changes a page; whether it was writable and is not any more.
    ///
    /// # Errors
    /// A system call's.
    pub fn set(&mut self, page: BarPage, mode: PageMode) -> Result<bool, LiveError> {
        let before = std::mem::replace(&mut self.modes[page as usize], mode);
        if before == mode {
            return Ok(false);
        }
        set_bar_page(page.register().offset(), mode)?;
        self.opened += u64::from(mode == PageMode::Open);
        let rearmed = before == PageMode::Open;
        self.rearmed += u64::from(rearmed);
        Ok(rearmed)
    }
}

impl Drop for Pages {
    /// Whatever happened, the card's model performs all accesses afterwards.
    fn drop(&mut self) {
        // Nothing can be done about it: an access would then change memory, which the card's
        // next user overwrites.
        let _ = set_bar(BarMode::Trapped);
    }
}
