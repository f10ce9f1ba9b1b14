//! The scheme `window`: no check. An address is cut to its low 42 bits in a register, and the
//! prefix 65 counts it from the start of a window (`docs/spec/window.md`). The accesses are
//! emitted by `encode/window`.

use twin_abi::Processor;

use super::{Cut, Reach, Row};

/// The register that an address is cut in. What it holds serves other accesses through the
/// same base as well.
pub const ROW: Row = Row {
    registers: 1,
    reuses: true,
    reach: Reach::PLACE,
    keeps_address: true,
    cut: Some(Cut::Register(Processor::Bmi2)),
    absolute: None,
    relative: None,
};

/// The same for processors without BMI2: there is no `pext`, so an address is cut by `and`,
/// which changes the flags.
pub const FOR_ANY: Row = Row {
    cut: Some(Cut::Register(Processor::Any)),
    ..ROW
};
