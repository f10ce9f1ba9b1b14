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
//!
//! Before the first bytes of a section are the last ones of another: the kernel puts them one
//! behind the other, and which one is before which depends on the kernel. So what may be padding at
//! a section's end is judged as well, for the section that has most of it at its start.

use std::collections::BTreeSet;
use std::ops::Range;

use super::reader::Reader;
use crate::insn::{BranchTarget, CodeAt, Op};

/// Most bytes that the kernel writes over before one place: for each call three times
/// ([`super::alternatives`]), each time one padding further, and where it counts calls besides
/// (`CONFIG_CALL_THUNKS_DEBUG`) two instructions of 10 and 9 bytes.
const MOST: i64 = 3 * 19;
/// Fewer than it ever writes: `sarq $5, %gs:symbol(%rip)` alone has 9
/// (`INCREMENT_CALL_DEPTH`, arch/x86/include/asm/nospec-branch.h).
const FEWEST: i64 = 9;
/// Most that it writes where it does not count calls besides: the same with an address of 32 bits.
const USUAL: i64 = 10;
/// A `nop` of one byte.
pub(super) const NOP: u8 = 0x90;

/// The `nop`s before each function of the object and each place that is called in it, and those
/// at the ends of sections that may be before one; and where the first instruction is that is
/// none. Each once.
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
    let functions = reader.image.entered.iter();
    let functions = functions.filter_map(|&at| disassembly.at(at));
    let entered: BTreeSet<u32> = called.chain(functions).collect();
    let ends = Ends::new(reader);
    // The runtime's first slow path is called, and nothing of its section is before it.
    let mut sizes = BTreeSet::from([0]);
    let mut prefixes = Vec::new();
    for to in entered {
        let Some(insn) = disassembly.get(to) else {
            continue;
        };
        let start = CodeAt {
            section: insn.section,
            offset: i64::from(insn.at),
        };
        let run = run_before(reader, start);
        let is_first = run == start.offset;
        if is_first {
            sizes.insert(run);
        }
        let run = without_hash(reader, start, run);
        let together = is_first && may_write(run, ends.longest);
        if run >= FEWEST || together && run > 0 {
            prefixes.push((start, whole(reader, start, run, to)));
        }
    }
    for (end, run) in ends.list {
        // What is only in part at the end of one is at the end of a longer one.
        let outside = run + ends.only_nops;
        if !sizes.iter().any(|&inside| may_write(inside, outside)) {
            continue;
        }
        let last = CodeAt {
            offset: end.offset - 1,
            ..end
        };
        if let Some(n) = disassembly.around(last) {
            prefixes.push((end, whole(reader, end, run, n + 1)));
        }
    }
    prefixes
}

/// Of the `run` bytes before a place, those that are padding: the first ones may be the end of a
/// hash ([`super::types`]), whatever that looks like. What counts calls besides needs more than both.
fn without_hash(reader: &Reader<'_, '_>, place: CodeAt, run: i64) -> i64 {
    let first = CodeAt {
        offset: place.offset - run,
        ..place
    };
    let first = reader.disassembly.around(first);
    let hash = first.and_then(|n| reader.disassembly.get(n));
    let hash = hash.filter(|insn| {
        let bytes = reader.image.bytes(insn);
        matches!(bytes, Some([0xb8..=0xbf, _, _, _, _])) && !insn.relocated
    });
    let padding = hash.map(|insn| place.offset - i64::from(insn.at) - i64::from(insn.len));
    let padding = padding.filter(|padding| *padding >= USUAL && run < 2 * FEWEST);
    padding.unwrap_or(run)
}

/// Whether the kernel may write into the `outside` bytes before a section, whose first `inside`
/// ones are nops before a function: if its instructions are longer than these.
fn may_write(inside: i64, outside: i64) -> bool {
    let all = inside + outside;
    let usual = inside < USUAL && all >= FEWEST;
    outside > 0 && inside < MOST && (usual || all >= 2 * FEWEST)
}

/// How many bytes before a place look like nops, at most [`MOST`], or may do so when the module
/// runs: those that a relocation writes. The distance of a direct branch is none: it ends with
/// `0x90` only if it is -1.7 GiB or more, and neither the module ([`Size`](ViolationCode::Size))
/// nor the space between it and the kernel, which begins with other modules, is so large.
fn run_before(reader: &Reader<'_, '_>, place: CodeAt) -> i64 {
    let data = &reader.image.section(place.section).data;
    let is_branch = |at| {
        let insn = reader.disassembly.around(at);
        let insn = insn.and_then(|n| reader.disassembly.get(n));
        insn.is_some_and(|i| matches!(i.op, Op::Call(_) | Op::Jump(_) | Op::Branch(..)))
    };
    let may_be_nop = |offset: &i64| {
        let at = CodeAt {
            offset: *offset,
            ..place
        };
        data[*offset as usize] == NOP || reader.relocation(at).is_some() && !is_branch(at)
    };
    let first = (place.offset - MOST).max(0);
    (first..place.offset).rev().take_while(may_be_nop).count() as i64
}

/// What looks like padding at the ends of sections of code.
struct Ends {
    /// The end of each that has some, and how many bytes.
    list: Vec<(CodeAt, i64)>,
    /// Bytes in sections that are nothing else.
    only_nops: i64,
    /// Most bytes that may be before a section.
    longest: i64,
}

impl Ends {
    fn new(reader: &Reader<'_, '_>) -> Ends {
        let (mut list, mut only_nops, mut longest) = (Vec::new(), 0, 0);
        for section in 0..reader.image.code.len() as u16 {
            let end = CodeAt {
                section,
                offset: reader.image.section(section).size as i64,
            };
            let run = run_before(reader, end);
            if run == end.offset {
                only_nops += run;
            } else {
                longest = longest.max(run);
            }
            if run > 0 {
                list.push((end, run));
            }
        }
        Ends {
            list,
            only_nops,
            longest: longest + only_nops,
        }
    }
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
