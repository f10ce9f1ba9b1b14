//! kCFI: checks of a function's type before a call through a pointer (`-fsanitize=kcfi`).
//!
//! ```text
//!     mov   $-hash, %r10d         # 6 bytes
//!     add   -4(%r11), %r10d       # 4; farther back by the padding before functions
//!     je    1f                    # 2
//!     ud2                         # 2
//! 1:  call  *%r11                 # or jmp, or a thunk
//! ```
//!
//! The second one reads wherever `%r11` leads. Whichever way control came to it, it then goes
//! nowhere but to that place, or stops there, because nothing may be put between. So what it reads
//! is next to code that runs, or to what faults.

use std::collections::HashSet;
use std::ops::Range;

use super::reader::Reader;
use crate::insn::{Access, BranchTarget, Gpr, Insn, Op, Origin, Routine};

/// Instructions before the call.
const CHECK: u32 = 4;
/// The register that clang adds in, and the one that it takes if the other has the pointer.
const SUMS: [(u8, Gpr); 2] = [(0xba, Gpr(10)), (0xbb, Gpr(11))];

/// The checks of a module.
#[derive(Default)]
pub(super) struct Checks {
    /// The calls and jumps that they are for, in order.
    transfers: Vec<u32>,
}

impl Checks {
    /// Finds them by their form.
    pub(super) fn find(reader: &Reader<'_, '_>) -> Checks {
        let branches = reader.disassembly.branches.iter();
        let behind = branches.filter_map(|&n| match reader.disassembly.insns[n as usize].op {
            Op::Branch(_, BranchTarget::Insn(to)) if to == n + 2 => Some(to),
            _ => None,
        });
        let mut transfers: Vec<u32> = behind.filter(|&n| is_checked(reader, n)).collect();
        transfers.sort_unstable();
        Checks { transfers }
    }

    /// The reads of hashes.
    pub(super) fn loads(&self) -> HashSet<u32> {
        self.transfers.iter().map(|n| n - CHECK + 1).collect()
    }

    /// The instructions of each check, with the call.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<u32>> {
        self.transfers.iter().map(|&n| n - CHECK..n + 1)
    }

    /// Whether instruction `n` is the trap of a check.
    pub(super) fn has_trap(&self, n: u32) -> bool {
        self.transfers.binary_search(&(n + 1)).is_ok()
    }

    /// The check before a call.
    pub(super) fn before(&self, n: u32) -> Option<Range<u32>> {
        let found = self.transfers.binary_search(&n);
        found.ok().map(|_| n - CHECK..n)
    }
}

/// The register that an indirect branch goes to.
pub(super) fn goes_to(insn: &Insn) -> Option<Gpr> {
    match insn.op {
        Op::CallIndirect(to) | Op::JumpIndirect(to) => to,
        Op::Call(BranchTarget::Routine(Routine::Thunk(to)))
        | Op::Jump(BranchTarget::Routine(Routine::Thunk(to))) => Some(to),
        _ => None,
    }
}

/// Whether a check stands before instruction `n`, for the register that it goes to.
fn is_checked(reader: &Reader<'_, '_>, n: u32) -> bool {
    let insns = |n: u32| reader.disassembly.get(n);
    let to = insns(n).and_then(goes_to);
    let (Some(to), Some(first)) = (to, n.checked_sub(CHECK)) else {
        return false;
    };
    let follow = (first..n).all(|before| reader.disassembly.next(before) == Some(before + 1));
    let [Some(hash), Some(load), Some(branch), Some(trap)] =
        [first, first + 1, first + 2, first + 3].map(insns)
    else {
        return false;
    };
    let bytes = |insn| reader.image.bytes(insn);
    let is_sum = |(opcode, sum): (u8, Gpr)| {
        matches!(bytes(hash), Some([0x41, o, _, _, _, _]) if *o == opcode)
            && adds(load, bytes(load), sum)
            && sum != to
    };
    follow
        && !hash.relocated
        && SUMS.into_iter().any(is_sum)
        && load.memory.base == to
        && bytes(branch) == Some(&[0x74, 0x02])
        && reader.is_ud2(trap)
}

/// Whether an instruction adds four bytes before the place in a register to `sum`.
fn adds(insn: &Insn, bytes: Option<&[u8]>, sum: Gpr) -> bool {
    let m = &insn.memory;
    matches!(bytes, Some([0x44 | 0x45, 0x03, ..]))
        && insn.writes == sum.set()
        && !insn.relocated
        && m.origin == Origin::Registers
        && m.access == Access::Read
        && !m.indexed
        && (i8::MIN.into()..=-4).contains(&m.disp)
}
