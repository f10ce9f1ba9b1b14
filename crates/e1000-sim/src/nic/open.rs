//! The open view: BAR 0 as plain shared memory that a driver reads and writes
//! without a trap, for the time of transmit, interrupt handler and NAPI poll.
//!
//! ```text
//! open ─> publish ─> (driver runs) ─> absorb ─> publish ─> ... ─> absorb, audit, close
//! ```
//!
//! Memory cannot act on an access, so the device reads afterwards what was written.
//! That is possible for a short list of registers only; for all others it fails closed:
//!
//! | register | in memory | what a write means |
//! |---|---|---|
//! | TDT, RDT, ITR | the driver's last value | replaces (13.4.40, 13.4.29, 13.4.18) |
//! | IMS, IMC, ICS | 0 | ones set, clear, raise (13.4.20, 13.4.21, 13.4.19) |
//! | ICR | causes present at `publish`, bit 31 if one is unmasked | not allowed |
//! | STATUS, TDH, RDH | as at `publish` | not allowed |
//! | statistics | 0: a read adds nothing, the counts stay for a trapped read | not allowed |
//! | any other | as at `open` | not allowed, but see `rare.rs` |
//!
//! ICR's read clears (13.4.17). The interrupt handler's first access is that
//! read, and nothing else on the path reads ICR, so `absorb(.., handler_ran =
//! true)` clears exactly the causes that were published. A cause that was raised
//! again after `publish` stays, because the read may have been before it: at worst
//! one more interrupt, never one too few.
//!
//! The device sees a value, not the sequence of writes. ITR, TDT and RDT: the last
//! write wins, as on the device. IMS and IMC both written: `e1000_intr` masks
//! everything first, and unmasks later, when it ends or in the poll; so after a
//! handler the order is IMC, then IMS. If no handler ran in the window, no code of
//! e1000 writes both, and the order is unknown: an error.
//! (A handler that runs after a poll of the same window would reverse it; the
//! caller absorbs before it delivers an interrupt, which it must do anyway for
//! the handler to find the causes in ICR.)
//!
//! A trapped access while the view is open goes through [`Nic::beside`]: tails
//! and throttle that were written without a trap come first, and the access's changes
//! are put into the view afterwards. Bits that wait in IMS, IMC and ICS, and the
//! published ICR, stay as they are: the user of the view absorbs them.
//!
//! Whoever acknowledges before the handler runs (`early.rs`) shows it the causes that were
//! saved. Its read then clears none of the device's.
//!
//! While rings are taken (`guard.rs`), TDT and RDT in the view are the driver's, and the
//! device follows the tails that were checked.

use std::fmt;
use std::sync::atomic::{AtomicU32, Ordering};

use super::registers::{RegisterAccess, RegisterPlace, cause};
use super::{BAR0_BYTES, Nic, Register, Ring};

/// How many 32-bit words the view has.
pub const BAR_WORDS: usize = BAR0_BYTES as usize / 4;

/// Offsets after the last known register are published as 0.
const REGISTERS_END: u32 = 0x6000;

const _: () = {
    let mut index = 0;
    while index < Register::ALL.len() {
        assert!(Register::ALL[index].offset() < REGISTERS_END);
        index += 1;
    }
};

/// The driver's writes since the last `absorb`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Absorbed {
    /// TDT moved: [`Nic::process_transmit`] has work.
    pub transmit_tail: bool,
    /// RDT moved: there are receive descriptors.
    pub receive_tail: bool,
    /// Bits written to IMS.
    pub unmasked: u32,
    /// Bits written to IMC.
    pub masked: u32,
    /// Bits written to ICS.
    pub raised: u32,
    /// ITR was written.
    pub throttle: bool,
    /// The causes that the handler's read of ICR acknowledged.
    pub acknowledged: u32,
}

/// Why a write cannot be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Only a trapped access may write this.
    NotOpen,
    /// IMS and IMC were written and no handler ran: the order is unknown.
    OrderUnknown,
    /// The device is not in the open view.
    NotPublished,
    /// The memory given is not [`BAR_WORDS`] long; `value` is its length.
    WrongSize,
}

/// A write that the open view cannot follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untracked {
    /// Offset in BAR 0, in bytes.
    pub offset: u32,
    /// The present value.
    pub value: u32,
    /// Why it is an error.
    pub reason: Reason,
}

impl fmt::Display for Untracked {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let name = match RegisterPlace::at(self.offset) {
            Some(RegisterPlace::Register(register)) => register.name(),
            Some(RegisterPlace::Table(..)) => "a table",
            None => "no register",
        };
        let why = match self.reason {
            Reason::NotOpen => "is written without a trap; leave the open view first",
            Reason::OrderUnknown => "and IMC are both written and no interrupt handler ran",
            Reason::NotPublished => "is looked at before `open`",
            Reason::WrongSize => "belongs to a view of the wrong size",
        };
        let Untracked { offset, value, .. } = self;
        write!(f, "register {offset:#07x} ({name}) {why}: {value:#010x}")
    }
}

impl std::error::Error for Untracked {}

/// The values last published, to tell a driver's writes from the device's.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct Window {
    is_open: u32,
    icr: u32,
    status: u32,
    transmit_head: u32,
    receive_head: u32,
    /// Causes raised since: the handler may have read ICR before them.
    raised_since: u32,
    /// 1: ICR has what [`Nic::show_causes`] was given, not the device's causes.
    shown: u32,
}

impl Window {
    /// Causes were raised.
    #[inline(always)]
    pub fn raised(&mut self, causes: u32) {
        self.raised_since |= causes;
    }

    pub const fn off() -> Window {
        Window {
            is_open: 0,
            icr: 0,
            status: 0,
            transmit_head: 0,
            receive_head: 0,
            raised_since: 0,
            shown: 0,
        }
    }
}

/// How a register takes part in the open view.
enum Role {
    /// The driver may write it; the device never does.
    Driver,
    /// The driver's writes are bits to act on; it is 0 between them.
    Bits,
    /// The device keeps it fresh at every `publish`.
    Device,
    /// It reads 0 and is not written.
    Zero,
    /// It stays as at `open`.
    Constant,
}

fn role(register: Register) -> Role {
    match register {
        Register::Tdt | Register::Rdt | Register::Itr => Role::Driver,
        Register::Ims | Register::Imc | Register::Ics => Role::Bits,
        Register::Icr | Register::Status | Register::Tdh | Register::Rdh => Role::Device,
        other => match other.access() {
            RegisterAccess::Counter | RegisterAccess::CounterLow | RegisterAccess::CounterHigh => {
                Role::Zero
            }
            RegisterAccess::WriteOnly(_) => Role::Zero,
            RegisterAccess::Plain | RegisterAccess::ReadOnly | RegisterAccess::Side(_) => {
                Role::Constant
            }
        },
    }
}

/// A view of the right size: constant offsets into it need no check.
type Bar = [AtomicU32; BAR_WORDS];

#[inline(always)]
fn word(bar: &Bar, register: Register) -> &AtomicU32 {
    &bar[register.offset() as usize / 4]
}

#[inline(always)]
fn load(bar: &Bar, register: Register) -> u32 {
    word(bar, register).load(Ordering::Acquire)
}

#[inline(always)]
fn store(bar: &Bar, register: Register, value: u32) {
    word(bar, register).store(value, Ordering::Release);
}

/// Takes the bits written to a write-1 register and makes it 0 again; nothing
/// written at the same moment is lost.
#[inline(always)]
fn take(bar: &Bar, register: Register) -> u32 {
    match load(bar, register) {
        0 => 0,
        _ => word(bar, register).swap(0, Ordering::AcqRel),
    }
}

/// The device's register is as published.
#[inline(always)]
fn same(bar: &Bar, register: Register, expected: u32) -> Result<(), Untracked> {
    match load(bar, register) {
        value if value == expected => Ok(()),
        value => Err(untracked(register.offset(), value, Reason::NotOpen)),
    }
}

#[cold]
fn untracked(offset: u32, value: u32, reason: Reason) -> Untracked {
    Untracked {
        offset,
        value,
        reason,
    }
}

#[inline(always)]
fn right_size(bar: &[AtomicU32]) -> Result<&Bar, Untracked> {
    bar.try_into()
        .map_err(|_| untracked(0, bar.len() as u32, Reason::WrongSize))
}

impl Nic {
    /// Begins the open view: writes every register into `bar`. Whatever was in
    /// it is lost.
    ///
    /// # Errors
    /// [`Reason::WrongSize`].
    pub fn open(&mut self, bar: &[AtomicU32]) -> Result<(), Untracked> {
        let bar = right_size(bar)?;
        for (index, cell) in bar.iter().enumerate() {
            cell.store(self.open_value(index as u32 * 4), Ordering::Relaxed);
        }
        self.window.is_open = 1;
        self.publish_to(bar);
        Ok(())
    }

    /// Ends the open view; the next `absorb` needs an `open`.
    pub fn close(&mut self) {
        self.window.is_open = 0;
    }

    /// Whether the open view is in use.
    pub fn is_open(&self) -> bool {
        self.window.is_open != 0
    }

    /// The value that `open` writes at an offset, for registers that `publish` does not
    /// write.
    pub(super) fn open_value(&self, offset: u32) -> u32 {
        match RegisterPlace::at(offset) {
            None => 0,
            Some(RegisterPlace::Table(table, index)) => self.table(table)[index],
            Some(RegisterPlace::Register(register)) => match role(register) {
                Role::Driver | Role::Device => self.shown(register),
                Role::Bits | Role::Zero => 0,
                Role::Constant if register == Register::Eecd => self.read_eecd(),
                Role::Constant => self.shown(register),
            },
        }
    }

    /// Writes what the device changes by itself: ICR, STATUS, TDH, RDH. Does
    /// nothing for a view of the wrong size, which `open` has refused.
    #[inline]
    pub fn publish(&mut self, bar: &[AtomicU32]) {
        if let Ok(bar) = right_size(bar) {
            self.publish_to(bar);
        }
    }

    #[inline(always)]
    fn publish_to(&mut self, bar: &Bar) {
        let now = Window {
            is_open: self.window.is_open,
            icr: self.present_icr(),
            status: self.peek(Register::Status),
            transmit_head: self.peek(Register::Tdh),
            receive_head: self.peek(Register::Rdh),
            raised_since: 0,
            shown: 0,
        };
        self.window = now;
        store(bar, Register::Status, now.status);
        store(bar, Register::Tdh, now.transmit_head);
        store(bar, Register::Rdh, now.receive_head);
        store(bar, Register::Icr, now.icr);
    }

    /// Shows causes in place of the device's until the handler has run, which reads them: they
    /// were acknowledged before it ([`Nic::acknowledge_early`]). Does nothing for a view of the
    /// wrong size.
    pub fn show_causes(&mut self, bar: &[AtomicU32], causes: u32) {
        let Ok(bar) = right_size(bar) else {
            return;
        };
        let asserted = if causes == 0 { 0 } else { cause::INT_ASSERTED };
        self.window.icr = causes | asserted;
        self.window.shown = 1;
        store(bar, Register::Icr, self.window.icr);
    }

    /// Acts on what the driver has written since `publish` or the last
    /// `absorb`, then publishes. `handler_ran`: the interrupt handler ran in
    /// between and so has read ICR.
    ///
    /// # Errors
    /// Every [`Reason`]; writes before the offending register have been done.
    #[inline]
    pub fn absorb(&mut self, bar: &[AtomicU32], handler_ran: bool) -> Result<Absorbed, Untracked> {
        let bar = right_size(bar)?;
        if self.window.is_open == 0 {
            return Err(untracked(0, 0, Reason::NotPublished));
        }
        self.unchanged(bar)?;
        let mut absorbed = Absorbed::default();
        // The handler's first access.
        if handler_ran {
            let seen = match self.window.shown {
                0 => self.window.icr & !self.window.raised_since,
                // The device's were acknowledged before; those that it has now, nobody has seen.
                _ => 0,
            };
            absorbed.acknowledged = self.peek(Register::Icr) & seen;
            self.acknowledge(seen);
        }
        absorbed.transmit_tail = self.follow_tail(bar, Ring::Transmit, Register::Tdt);
        absorbed.receive_tail = self.follow_tail(bar, Ring::Receive, Register::Rdt);
        let throttle = load(bar, Register::Itr) & Register::Itr.mask();
        if throttle != self.peek(Register::Itr) {
            absorbed.throttle = true;
            self.write_itr(throttle);
        }
        // IMS is taken first: an IMC that is written meanwhile is later.
        absorbed.unmasked = take(bar, Register::Ims);
        absorbed.masked = take(bar, Register::Imc);
        absorbed.raised = take(bar, Register::Ics);
        if absorbed.masked != 0 && absorbed.unmasked != 0 && !handler_ran {
            let offset = Register::Ims.offset();
            return Err(untracked(offset, absorbed.unmasked, Reason::OrderUnknown));
        }
        if absorbed.masked != 0 {
            self.mask(absorbed.masked);
        }
        if absorbed.raised != 0 {
            self.raise(absorbed.raised);
        }
        if absorbed.unmasked != 0 {
            self.unmask(absorbed.unmasked);
        }
        self.publish_to(bar);
        Ok(absorbed)
    }

    /// Performs a trapped access, `access`, while others use the view without a
    /// trap. Registers that the driver writes keep the view's value unless the access
    /// itself changed them; so no concurrent write is lost.
    ///
    /// A write of the device's reset bit should end the use of the view by others: they
    /// see the reset values of all registers.
    pub fn beside<T>(&mut self, bar: &[AtomicU32], access: impl FnOnce(&mut Nic) -> T) -> T {
        const DRIVERS: [Register; 3] = [Register::Itr, Register::Tdt, Register::Rdt];
        let bar = match right_size(bar) {
            Ok(bar) if self.window.is_open != 0 => bar,
            _ => return access(self),
        };
        if self.is_guarded() {
            return self.beside_guarded(bar, access);
        }
        let followed = DRIVERS.map(|register| {
            let moved = self.follow(bar, register);
            if moved && register == Register::Itr {
                self.write_itr(self.peek(register));
            }
            self.peek(register)
        });
        let result = access(self);
        for (register, before) in DRIVERS.into_iter().zip(followed) {
            if self.peek(register) != before {
                store(bar, register, self.peek(register));
            }
        }
        result
    }

    /// The same for rings that are taken: the tails in the view are not the device's.
    fn beside_guarded<T>(&mut self, bar: &Bar, access: impl FnOnce(&mut Nic) -> T) -> T {
        const TAILS: [Register; 2] = [Register::Tdt, Register::Rdt];
        if self.follow(bar, Register::Itr) {
            self.write_itr(self.peek(Register::Itr));
        }
        let tails = TAILS.map(|tail| load(bar, tail) & tail.mask());
        let throttle = self.peek(Register::Itr);
        self.set_driver_tails(tails);
        let result = access(self);
        for ((tail, before), after) in TAILS.into_iter().zip(tails).zip(self.driver_tails()) {
            if after != before {
                store(bar, tail, after);
            }
        }
        if self.peek(Register::Itr) != throttle {
            store(bar, Register::Itr, self.peek(Register::Itr));
        }
        result
    }

    /// After a trapped write: updates the registers in the view that are never written
    /// without a trap. All of them, because a write to one may change others (a reset,
    /// the EEPROM, the link).
    pub fn show_constants(&self, bar: &[AtomicU32]) {
        let Ok(bar) = right_size(bar) else {
            return;
        };
        for (index, cell) in bar.iter().enumerate().take(REGISTERS_END as usize / 4) {
            let offset = index as u32 * 4;
            let shown = match RegisterPlace::at(offset) {
                None => false,
                Some(RegisterPlace::Table(..)) => true,
                Some(RegisterPlace::Register(register)) => matches!(role(register), Role::Constant),
            };
            if shown {
                cell.store(self.open_value(offset), Ordering::Release);
            }
        }
    }

    /// Takes a tail, from memory or as it was checked; true if it moved.
    #[inline(always)]
    fn follow_tail(&mut self, bar: &Bar, ring: Ring, register: Register) -> bool {
        match self.is_guarded() {
            true => self.follow_checked(ring),
            false => self.follow(bar, register),
        }
    }

    /// Takes a register from memory; true if it changed.
    #[inline(always)]
    fn follow(&mut self, bar: &Bar, register: Register) -> bool {
        let value = load(bar, register) & register.mask();
        let moved = value != self.peek(register);
        self.poke(register, value);
        moved
    }

    /// The device's own registers are as published.
    #[inline(always)]
    fn unchanged(&self, bar: &Bar) -> Result<(), Untracked> {
        let w = &self.window;
        same(bar, Register::Icr, w.icr)?;
        same(bar, Register::Status, w.status)?;
        same(bar, Register::Tdh, w.transmit_head)?;
        same(bar, Register::Rdh, w.receive_head)
    }

    /// Compares all of BAR 0 with the view's values: a change anywhere
    /// but in the registers that `absorb` follows is an error. 32,768 words:
    /// for the end of a window, not for each packet.
    ///
    /// # Errors
    /// The first such change, as [`Reason::NotOpen`]; and if there is no view, or
    /// `bar` is none.
    pub fn audit(&self, bar: &[AtomicU32]) -> Result<(), Untracked> {
        let bar = right_size(bar)?;
        if self.window.is_open == 0 {
            return Err(untracked(0, 0, Reason::NotPublished));
        }
        self.unchanged(bar)?;
        for (index, cell) in bar.iter().enumerate() {
            let offset = index as u32 * 4;
            let value = cell.load(Ordering::Acquire);
            if offset >= REGISTERS_END && value == 0 {
                continue;
            }
            if let Some(register) = Register::at(offset) {
                match role(register) {
                    Role::Driver | Role::Bits | Role::Device => continue,
                    Role::Zero | Role::Constant => {}
                }
            }
            if value != self.open_value(offset) {
                return Err(untracked(offset, value, Reason::NotOpen));
            }
        }
        Ok(())
    }
}
