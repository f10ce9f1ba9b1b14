//! What differs between a native and a rewritten run, with everything that
//! reproduces it.

use std::fmt;

use elf_loader::{Object, Place};
use process_lab::error::Error;
use process_lab::shared::Shared;

use super::campaign::Execution;
use super::cases::{Case, FRAME};
use super::enter::Block;
use super::memory::{Memory, is_far_in};
use super::process::{Machine, counts, frame_bytes, frame_left, in_child, one};
use super::record::{Ending, Record};
use super::state::{FRAME_END, FRAME_TOP, Setting, State, place, state};

/// A difference between the two runs of one state.
#[derive(Clone, Debug)]
pub struct Difference {
    pub case: Case,
    /// The way it was rewritten and run.
    pub execution: Execution,
    /// Number of the state, and seed.
    pub state: (u64, u64),
    /// What is different, and how to see it again.
    pub text: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let case = &self.case;
        let (bytes, _) = super::object::encode(&case.instruction);
        let hex: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
        writeln!(
            f,
            "{}  [{}] form {}, {:?}, {:?} live, {:?}, {}, state {} of seed {}",
            svm_rewrite::syntax::plain(&case.instruction),
            hex.join(" "),
            case.form,
            case.mode,
            case.live,
            case.direction,
            self.execution,
            self.state.0,
            self.state.1,
        )?;
        f.write_str(&self.text)
    }
}

/// Whether two runs agree. A run that was not made, that died or that the native code
/// aborted agrees with nothing, not even with its like: it compares nothing.
pub fn agree(native: &Record, twin: &Record) -> bool {
    let compares_nothing = [Ending::None, Ending::Died, Ending::Aborted];
    native == twin && !compares_nothing.iter().any(|&ending| native.is(ending))
}

/// Whether a rewritten run need not do what the native one did: a window has the low bits
/// of addresses only, so what the processor refuses natively above that, or where the window
/// shows a page from above, it may not refuse there. The access is confined; nothing else is
/// promised of it.
pub fn is_out_of_reach(native: &Record, execution: Execution) -> bool {
    let is_beyond = |size| {
        let refused = native.trap == GENERAL_PROTECTION;
        refused || native.address >= size || is_far_in(size, native.address)
    };
    let size = execution.variant.scheme.window_size();
    native.is(Ending::Fault) && size.is_some_and(is_beyond)
}

/// #GP: of an address that is not canonical, or an operand that is not aligned.
const GENERAL_PROTECTION: u64 = 13;

/// The whole outcome of one run, for people.
#[derive(Clone, Debug, Default)]
struct Observed {
    record: Record,
    registers: [u64; 16],
    flags: u64,
    vectors: Vec<u8>,
    frame: Vec<u8>,
    memory: Vec<(u64, u8)>,
}

/// Runs one state again and describes it, in a child that sends text.
fn again<M: Machine>(
    case: (usize, &Case),
    state: &State,
    (pages, seed): (u64, u64),
    make: impl Fn(&Memory) -> Result<M, Error>,
) -> Result<Observed, Error> {
    const ROOM: usize = 1 << 20;
    let mut shared =
        Shared::new(ROOM as u64).map_err(Error::system("making room for an outcome"))?;
    in_child(|| {
        let mut memory = Memory::new(pages, seed)?;
        let mut machine = make(&memory)?;
        let record = one(&mut machine, &mut memory, &frame_bytes(), case, state);
        let frame = frame_left(case.1, machine.data_stack());
        let bytes = words(machine.block(), &record, frame, &mut memory);
        shared.write(0, &bytes[..bytes.len().min(ROOM)]);
        Ok(())
    })?;
    let mut bytes = vec![0; ROOM];
    shared.read(0, &mut bytes);
    Ok(outcome(&bytes))
}

/// An outcome as words: lengths first.
fn words(block: &Block, record: &Record, frame: &[u8], memory: &mut Memory) -> Vec<u8> {
    let (registers, flags) = block.registers();
    let (vectors, changes) = (block.vectors(), memory.changes());
    let lengths = [vectors.len(), frame.len(), changes.len()].map(|n| n as u64);
    let ended = [record.ending, record.trap, record.address, record.place];
    let head = lengths
        .into_iter()
        .chain(ended)
        .chain([flags])
        .chain(registers);
    let mut bytes: Vec<u8> = head.flat_map(u64::to_le_bytes).collect();
    bytes.extend(vectors);
    bytes.extend(frame);
    for (address, value) in changes {
        bytes.extend(address.to_le_bytes());
        bytes.push(value);
    }
    bytes
}

fn outcome(bytes: &[u8]) -> Observed {
    let word =
        |n: usize| u64::from_le_bytes(bytes[8 * n..8 * n + 8].try_into().expect("eight bytes"));
    let [vectors, frame, changes] = [0, 1, 2].map(|n| word(n) as usize);
    let record = Record {
        ending: word(3),
        trap: word(4),
        address: word(5),
        place: word(6),
        ..Record::default()
    };
    let start = 24 * 8;
    let rest = &bytes[start + vectors + frame..];
    let changed = rest.chunks_exact(9).take(changes).map(|chunk| {
        let address = u64::from_le_bytes(chunk[..8].try_into().expect("eight bytes"));
        (address, chunk[8])
    });
    Observed {
        record,
        registers: std::array::from_fn(|n| word(8 + n)),
        flags: word(7),
        vectors: bytes[start..start + vectors].to_vec(),
        frame: bytes[start + vectors..start + vectors + frame].to_vec(),
        memory: changed.collect(),
    }
}

const NAMES: [&str; 16] = [
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13",
    "r14", "r15",
];

/// Says what is different between the two runs of a state.
pub fn describe<N: Machine, T: Machine>(
    case: (usize, &Case),
    number: u64,
    setting: &Setting<'_>,
    native: impl Fn(&Memory) -> Result<N, Error>,
    twin: impl Fn(&Memory) -> Result<T, Error>,
) -> Result<String, Error> {
    let meets = state(case.1, number, setting);
    let (at, placement) = (place(case.1, &meets), meets.placement);
    let memory = (setting.pages, setting.seed);
    let text = describe_state(case, &meets, memory, native, twin)?;
    Ok(format!("  operand at {at:#x} ({placement:?})\n{text}"))
}

/// The same for any state. `memory` is the number of pages of data, and their seed.
pub fn describe_state<N: Machine, T: Machine>(
    case: (usize, &Case),
    meets: &State,
    memory: (u64, u64),
    native: impl Fn(&Memory) -> Result<N, Error>,
    twin: impl Fn(&Memory) -> Result<T, Error>,
) -> Result<String, Error> {
    let (table, flags) = (meets.table, meets.flags);
    let mut text = format!("  {table:?} table, flags {flags:#x}\n  in ");
    for (name, value) in NAMES.iter().zip(meets.registers) {
        text.push_str(&format!(" {name}={value:x}"));
    }
    text.push('\n');
    let native = again(case, meets, memory, native)?;
    let twin = again(case, meets, memory, twin)?;
    text.push_str(&differing(case.1, &native, &twin));
    Ok(text)
}

fn differing(case: &Case, native: &Observed, twin: &Observed) -> String {
    let mut text = String::new();
    let mut say = |what: &str, a: u64, b: u64| {
        if a != b {
            text.push_str(&format!("  {what}: native {a:#x}, rewritten {b:#x}\n"));
        }
    };
    let (a, b) = (&native.record, &twin.record);
    say("ending", a.ending, b.ending);
    say("trap", a.trap, b.trap);
    say("address", a.address, b.address);
    say("place", a.place, b.place);
    if a.is(Ending::Returned) && b.is(Ending::Returned) {
        let (counted, mask) = counts(case.live);
        for n in counted {
            say(NAMES[n], native.registers[n], twin.registers[n]);
        }
        say("flags", native.flags & mask, twin.flags & mask);
        let low = FRAME_END - native.frame.len() as u64;
        for (n, (a, b)) in native.frame.iter().zip(&twin.frame).enumerate() {
            let what = format!(
                "frame {:+}",
                low as i64 + n as i64 - FRAME_TOP as i64 + i64::from(FRAME)
            );
            say(&what, (*a).into(), (*b).into());
        }
        for (n, (a, b)) in native.vectors.iter().zip(&twin.vectors).enumerate() {
            say(&format!("vector state +{n}"), (*a).into(), (*b).into());
        }
    }
    text.push_str(&memory_differences(&native.memory, &twin.memory));
    text
}

fn memory_differences(native: &[(u64, u8)], twin: &[(u64, u8)]) -> String {
    const SHOWN: usize = 8;
    let only = |a: &[(u64, u8)], b: &[(u64, u8)]| -> Vec<(u64, u8)> {
        let other: std::collections::HashSet<_> = b.iter().collect();
        a.iter().filter(|x| !other.contains(x)).copied().collect()
    };
    let mut text = String::new();
    for (who, bytes) in [
        ("native", only(native, twin)),
        ("rewritten", only(twin, native)),
    ] {
        for (address, value) in bytes.iter().take(SHOWN) {
            text.push_str(&format!("  only {who}: [{address:#x}] = {value:#x}\n"));
        }
        if bytes.len() > SHOWN {
            text.push_str(&format!("  only {who}: {} bytes in all\n", bytes.len()));
        }
    }
    text
}

/// The listing of one function.
pub fn listing(object: &Object<'_>, name: &str) -> String {
    let mut out = String::new();
    let symbol = object.symbols.iter().find(|s| s.name == name);
    let Some((symbol, Place::In(section))) = symbol.map(|s| (s, s.place)) else {
        return out;
    };
    let range = symbol.value..symbol.value + symbol.size;
    for line in svm_rewrite::listing::Lister::of(object, section).list(&range, &[]) {
        out.push_str(&format!("{line}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_that_were_made_agree() {
        for ending in [Ending::Returned, Ending::Fault, Ending::Unknown] {
            let record = Record::ended(ending);
            assert!(agree(&record, &record), "{record}");
        }
        for ending in [Ending::None, Ending::Died, Ending::Aborted] {
            let record = Record::ended(ending);
            assert!(!agree(&record, &record), "{record}");
        }
    }
}
