//! How dom0's memory is reached: one file and one row for each scheme.
//!
//! A scheme with a table emits only the check. A check first puts the address into `v`, leaves the
//! translated address in `v`, and overwrites its other registers and the flags. The code
//! for a miss is out of line, in [`crate::encode::Emitter::finish_stubs`].
//! `docs/writing-a-scheme.md` states what a scheme must guarantee.

mod paper;
mod stlb;
mod window;
mod window32;

use liveness::Reg;
use twin_abi::{Processor, Scheme};

use crate::asm::encode::Form;
use crate::asm::import::Import;
use crate::asm::{Address, Assembler, Label, Referent};

/// The properties of a scheme.
pub struct Row {
    /// Registers that a check overwrites, `v` included.
    pub registers: usize,
    /// Whether a translation may serve several accesses.
    pub reuses: bool,
    /// How far from its address accesses may use it.
    pub reach: Reach,
    /// Whether the slow path finds the address still in `v`.
    pub keeps_address: bool,
    /// How addresses get into the window, where there is one instead of a table;
    /// [`crate::encode`] sends accesses through it.
    pub cut: Option<Cut>,
    /// Emits the check where the table is at a constant address; `None` for a scheme
    /// without checks.
    absolute: Option<fn(&mut Assembler, &Check<'_>)>,
    /// Emits it where the table is reached relative to `rip`; `None` if the scheme
    /// has no such form.
    relative: Option<fn(&mut Assembler, &Check<'_>)>,
}

/// How far from an address accesses may use its translation.
#[derive(Clone, Copy, Debug)]
pub struct Reach {
    /// Bytes before the address.
    pub below: i64,
    /// Bytes from the address on.
    pub from: i64,
}

impl Reach {
    /// Of a translation by a table.
    pub const TRANSLATION: Reach = Reach {
        below: twin_abi::stlb::BELOW as i64,
        from: twin_abi::stlb::COVERED as i64,
    };
    /// Of a place in a window, whose guards are larger than any displacement. One of 16 bits
    /// is enough for what drivers have behind a pointer.
    pub const PLACE: Reach = Reach {
        below: 1 << 15,
        from: (1 << 15) - 1,
    };
}

/// How an address is cut to its place in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// By the operand's prefix 67.
    Prefix,
    /// In a register, before it is used, by instructions of these processors.
    Register(Processor),
}

/// The row of a scheme, in code for these processors. The list of all schemes is
/// [`Scheme::ALL`].
pub fn row(scheme: Scheme, processor: Processor) -> &'static Row {
    match (scheme, processor) {
        (Scheme::Stlb, _) => &stlb::ROW,
        (Scheme::Paper, _) => &paper::ROW,
        (Scheme::Window32, _) => &window32::ROW,
        (Scheme::Window, Processor::Bmi2) => &window::ROW,
        (Scheme::Window, Processor::Any) => &window::FOR_ANY,
    }
}

/// One check that is to be emitted.
pub struct Check<'c> {
    /// The address that is checked.
    pub address: &'c Address,
    /// The register that receives the translated address.
    pub v: Reg,
    /// At least `registers - 1` more registers to overwrite, and one more where the
    /// table is [`Table::Relative`].
    pub others: &'c [Reg],
    /// Where the check branches to if the table has no translation.
    pub miss: Label,
}

/// How a check reaches the translation table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// At a constant address.
    Absolute,
    /// Relative to `rip`, through one more register.
    Relative,
}

impl Table {
    /// Number of registers that it takes in addition to the scheme's.
    pub fn registers(self) -> usize {
        match self {
            Table::Absolute => 0,
            Table::Relative => 1,
        }
    }
}

impl Row {
    /// Whether accesses are checked; if not, they are cut to a window.
    pub fn has_checks(&self) -> bool {
        self.absolute.is_some()
    }

    /// Whether the scheme has a check that reaches such a table.
    pub fn reaches(&self, table: Table) -> bool {
        match table {
            Table::Absolute => self.absolute.is_some(),
            Table::Relative => self.relative.is_some(),
        }
    }

    /// Emits a check.
    ///
    /// # Panics
    /// If the scheme does not reach the table; [`crate::rewrite`] refuses that before.
    pub fn emit(&self, table: Table, asm: &mut Assembler, check: &Check<'_>) {
        let emit = match table {
            Table::Absolute => self.absolute,
            Table::Relative => self.relative,
        };
        emit.expect("the scheme reaches the table")(asm, check);
    }
}

/// An operation with one half of the entry that `index` selects.
fn with_entry(asm: &mut Assembler, form: Form, register: Reg, index: Reg, half: u64) {
    asm.table(
        form,
        register,
        index,
        Referent::Import(Import::Stlb, half as i64),
    );
}
