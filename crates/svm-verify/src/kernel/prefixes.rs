//! What the kernel writes before functions.
//!
//! Linux 6.2 and later, if it counts the depth of calls, makes a call of a function into one of
//! the bytes before the function, and puts instructions there that count
//! (`patch_dest`, arch/x86/kernel/callthunks.c). It does so only if these bytes are all `0x90`.
//! It does not ask what they are a part of. The call need not be one that the object shows:
//! a static call may lead to any function whose address is in a key
//! (`callthunks_translate_call_dest`), and other modules call what is exported.
//!
//! The instructions write a per-CPU variable and the flags. At a function's start nothing is
//! known of the flags, so a path through them proves nothing that it did not before. So it
//! is enough that each of the bytes is a `nop` by itself and that nothing else may be written
//! there.

use std::collections::BTreeSet;
use std::ops::Range;

use super::reader::Reader;
use crate::insn::{BranchTarget, CodeAt, Op};

/// Most bytes that the kernel compares (`nops`, arch/x86/kernel/callthunks.c).
const MOST: i64 = 32;
/// Fewer than it ever writes: `sarq $5, %gs:symbol(%rip)` alone has 9
/// (`INCREMENT_CALL_DEPTH`, arch/x86/include/asm/nospec-branch.h).
const FEWEST: i64 = 9;
const NOP: u8 = 0x90;

/// The `nop`s before each function of the object and each place that is called in it, and where
/// the first instruction is that is none; each once.
pub(super) fn before_functions(
    reader: &Reader<'_, '_>,
) -> Vec<(CodeAt, Result<Range<u32>, &'static str>)> {
    let disassembly = reader.disassembly;
    let calls = disassembly
        .branches
        .iter()
        .filter_map(|&n| disassembly.get(n));
    let called = calls.filter_map(|insn| match insn.op {
        Op::Call(BranchTarget::Insn(to)) => Some(to),
        _ => None,
    });
    let functions = reader.image.globals.iter().chain(&reader.image.locals);
    let functions = functions.filter_map(|&at| disassembly.at(at));
    let entered: BTreeSet<u32> = called.chain(functions).collect();
    let prefixes = entered.into_iter().filter_map(|to| {
        let insn = disassembly.get(to)?;
        let start = CodeAt {
            section: insn.section,
            offset: i64::from(insn.at),
        };
        let data = &reader.image.section(start.section).data;
        let before = data.get(..insn.at as usize)?.iter().rev();
        let run = before
            .take(MOST as usize)
            .take_while(|b| **b == NOP)
            .count() as i64;
        (run >= FEWEST).then(|| (start, whole(reader, start, run, to)))
    });
    prefixes.collect()
}

/// The instructions that the `run` bytes before `start` belong to, if they are all `nop`s.
fn whole(
    reader: &Reader<'_, '_>,
    start: CodeAt,
    run: i64,
    to: u32,
) -> Result<Range<u32>, &'static str> {
    const INSIDE: &str = "bytes before a called function that look like padding, but are none";
    let at = CodeAt {
        offset: start.offset - run,
        ..start
    };
    let first = reader.disassembly.around(at).ok_or(INSIDE)?;
    // `nop`, or `xchg %ax, %ax`, whose last byte is the first of the run. A longer one would
    // swallow what the kernel writes.
    let is_short = |bytes: &[u8]| {
        let (last, prefixes) = bytes.split_last().unwrap_or((&0, &[]));
        *last == NOP && prefixes.iter().all(|b| *b == 0x66)
    };
    let mut insns = reader.disassembly.insns[first as usize..to as usize].iter();
    match insns.all(|insn| reader.image.bytes(insn).is_some_and(is_short)) {
        true => Ok(first..to),
        false => Err(INSIDE),
    }
}
