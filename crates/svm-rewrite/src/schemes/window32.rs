//! The scheme `window32`: no check. The prefixes 65 and 67 cut each address to the low 32
//! bits and count it from the start of a window (`docs/spec/window.md`). The accesses are
//! emitted by `encode/window`.

use super::{Cut, Reach, Row};

/// Nothing to emit, and no registers to overwrite.
pub const ROW: Row = Row {
    registers: 0,
    reuses: false,
    reach: Reach::PLACE,
    keeps_address: true,
    cut: Some(Cut::Prefix),
    absolute: None,
    relative: None,
};
