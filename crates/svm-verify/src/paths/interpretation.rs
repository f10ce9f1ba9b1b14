//! The result of interpreting all paths.

use crate::insn::Disassembly;
use crate::rules::{Broken, Proved};

/// The findings, from the final facts.
pub struct Interpretation {
    /// For each instruction, whether it was reached and how its operand was
    /// proved.
    pub proved: Vec<Proved>,
    /// Rules that are not met, by instruction number.
    pub broken: Vec<(u32, Broken)>,
    /// Checks with an out-of-line part or a prefetch.
    pub checks: usize,
    /// Functions: places with an empty frame that control enters.
    pub functions: usize,
}

impl Interpretation {
    /// Code that no path reaches: of each run, the first instruction that is not padding.
    pub fn unreached(&self, disassembly: &Disassembly) -> impl Iterator<Item = u32> {
        let stray =
            |n: usize| self.proved[n] == Proved::Unreached && !disassembly.insns[n].is_padding();
        (0..self.proved.len())
            .filter(move |&n| stray(n) && (n == 0 || !stray(n - 1)))
            .map(|n| n as u32)
    }
}
