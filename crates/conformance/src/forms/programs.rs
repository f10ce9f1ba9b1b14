//! Whole functions, natively and rewritten, on the machines of the forms.
//!
//! A body of any instructions gets the same frame as forms:
//!
//! ```text
//! f0:  lea  -0x200(%rsp), %rsp
//!      BODY
//!      cld
//!      lea  0x200(%rsp), %rsp
//!      ret
//! ```
//!
//! Runs are compared as for forms: registers that a caller gets back, vectors, frame,
//! dom0's memory, and place and kind of a fault.

use std::borrow::Cow;

use elf_loader::consts::{SHF_ALLOC, SHF_EXECINSTR, STB_GLOBAL, STT_FUNC};
use elf_loader::{Object, Place, Section, SectionId, Symbol};
use iced_x86::{Code, Decoder, DecoderOptions, Instruction, OpKind, Register};
use process_lab::address_space::{MODULE, PAGE};
use process_lab::error::Error;
use process_lab::random::Random;

use super::campaign::Execution;
use super::cases::{self, Case, FRAME, Live};
use super::compare::{agree, describe_state, is_out_of_reach, listing};
use super::enter::{BLOCK, BLOCK_BYTES};
use super::image::{self, Rewritten};
use super::memory::{DATA, FAR, FAR_PAGES, Memory, Placement, READ_ONLY};
use super::native::Native;
use super::process::{Machine, PATIENCE, frame_bytes, grant, in_child, one};
use super::record::{Ending, Record, Records};
use super::state::{ARITHMETIC, State, Table, VECTOR_IMAGES};
use super::twin::Twin;
use super::{AddressingForm, Reach, survey};

/// The result for a function.
#[derive(Debug)]
pub enum ExecutionVerdict {
    /// The rewriter refused it.
    Refused(String),
    /// The verifier refused the rewritten object.
    VerifierRefused(String),
    /// Both did the same in every state; how many ended with a fault.
    Same {
        /// States that were compared.
        states: usize,
        /// Of these, with a fault in both.
        faults: usize,
    },
    /// They did not; in words.
    Different(String),
}

/// Pages of data.
pub const PAGES: u64 = 8;

/// Rewrites, verifies and executes a body, from `states` states.
///
/// # Errors
/// A system call's or the linker's.
pub fn run(
    body: &[u8],
    execution: Execution,
    seed: u64,
    states: u64,
) -> Result<ExecutionVerdict, Error> {
    run_object(&object(body), execution, seed, states)
}

/// The same for an object with one code section, whose function `f0` makes a frame
/// of [`FRAME`] bytes and enters the others as it likes.
///
/// # Errors
/// A system call's or the linker's.
pub fn run_object(
    made: &Object<'_>,
    execution: Execution,
    seed: u64,
    states: u64,
) -> Result<ExecutionVerdict, Error> {
    let rewritten = match survey::rewrite(made, execution.variant) {
        Ok(object) => object,
        Err(refusals) => return Ok(ExecutionVerdict::Refused(refusals[0].to_string())),
    };
    if let Err(violations) = svm_verify::verify(&rewritten, execution.variant.contract()) {
        let list: Vec<String> = violations.list.iter().map(ToString::to_string).collect();
        return Ok(ExecutionVerdict::VerifierRefused(list.join("\n")));
    }
    compare(made, rewritten, execution, seed, states)
}

/// Executes an object as for [`run_object`], and its rewritten object, in which `f0` is
/// the same function.
///
/// # Errors
/// A system call's or the linker's.
pub fn compare(
    made: &Object<'_>,
    rewritten: Object<'_>,
    execution: Execution,
    seed: u64,
    states: u64,
) -> Result<ExecutionVerdict, Error> {
    let original = image::original(made)?;
    let program = Rewritten::new(rewritten, execution.variant)?;
    let native = |memory: &Memory| Native::new(&original, memory);
    let twin = |memory: &Memory| Twin::new(&program, memory, execution);
    let states: Vec<State> = (0..states).map(|n| state(seed, n)).collect();
    let (a, b) = (
        run_states(&states, (PAGES, seed, PATIENCE), native)?,
        run_states(&states, (PAGES, seed, PATIENCE), twin)?,
    );
    let same = |a: &Record, b: &Record| {
        let elsewhere = [a, b].into_iter().any(is_harness_address);
        agree(a, b) || several_reasons(made, a, b) || elsewhere || is_out_of_reach(a, execution)
    };
    let different = (0..states.len()).find(|&n| !same(&a[n], &b[n]));
    let Some(n) = different else {
        let faults = a.iter().filter(|r| r.is(Ending::Fault)).count();
        let states = states.len();
        return Ok(ExecutionVerdict::Same { states, faults });
    };
    let name = Case::symbol(0);
    let mut text = format!("{execution}, seed {seed:#x}, state {n}\n");
    text += &describe_state((0, &case()), &states[n], (PAGES, seed), native, twin)?;
    text += &format!("  recorded: native {}, rewritten {}\n", a[n], b[n]);
    text += &listing(made, &name);
    text += "  rewritten:\n";
    text += &listing(&program.object, &name);
    Ok(ExecutionVerdict::Different(text))
}

/// Whether both ended at the same instruction, which has several reasons to fault:
/// neither operand of a `movs` or `cmps` can be reached, or an operand that must be
/// aligned is neither aligned nor mapped. No manual says which fault comes first.
fn several_reasons(original: &Object<'_>, a: &Record, b: &Record) -> bool {
    const ACCESS: [u64; 2] = [13, 14];
    let faults = |r: &Record| r.is(Ending::Fault) && ACCESS.contains(&r.trap);
    if !faults(a) || !faults(b) || (a.place, a.memory) != (b.place, b.memory) {
        return false;
    }
    let code = original.sections[1].data.get(a.place as usize..);
    let at = Decoder::new(64, code.unwrap_or_default(), DecoderOptions::NONE).decode();
    let operands = (0..at.op_count()).filter(|&n| at.op_kind(n) != OpKind::Register);
    let two = at.is_string_instruction() && operands.count() == 2;
    two || at.memory_size().size() >= 16 && a.trap != b.trap
}

/// Whether a run was stopped at memory of the harness, not dom0's: code, the driver's
/// stack, the registers' block. A program that computes an address there by chance is
/// not comparable: the native process has memory that the rewritten one lacks, and a
/// string that runs over its own stack reads words that its sequence has pushed.
fn is_harness_address(run: &Record) -> bool {
    let dom0 = DATA..READ_ONLY + PAGE;
    let harness = MODULE..BLOCK + BLOCK_BYTES;
    let page_fault = run.is(Ending::Fault) && run.trap == 14;
    page_fault && harness.contains(&run.address) && !dom0.contains(&run.address)
}

/// The function as a case: what machines ask of one.
pub fn case() -> Case {
    Case {
        form: 0,
        mode: AddressingForm::Implicit,
        reach: Reach::None,
        instruction: Instruction::with(Code::Nopd),
        live: Live::Few,
        direction: cases::Direction::Up,
        address: DATA,
    }
}

fn object(body: &[u8]) -> Object<'static> {
    let mut text = Vec::new();
    frame(&mut text, -FRAME);
    text.extend(body);
    text.push(0xfc); // cld
    frame(&mut text, FRAME);
    text.push(0xc3);
    let size = text.len() as u64;
    let mut object = Object::new();
    let flags = SHF_ALLOC | SHF_EXECINSTR;
    let section = Section::with_data(".text", flags, 16, text);
    object.sections.push(section);
    object.symbols.push(Symbol {
        name: Cow::Owned(Case::symbol(0)),
        binding: STB_GLOBAL,
        kind: STT_FUNC,
        other: 0,
        place: Place::In(SectionId(1)),
        value: 0,
        size,
    });
    object
}

/// `lea change(%rsp), %rsp`
fn frame(text: &mut Vec<u8>, change: i32) {
    text.extend([0x48, 0x8d, 0xa4, 0x24]);
    text.extend(change.to_le_bytes());
}

/// One process that runs all states, or dies at one of them; all of them together
/// have `patience` seconds.
pub fn run_states<M: Machine>(
    states: &[State],
    (pages, seed, patience): (u64, u64, u32),
    make: impl Fn(&Memory) -> Result<M, Error>,
) -> Result<Vec<Record>, Error> {
    let mut records = Records::new(states.len())?;
    let status = in_child(|| {
        grant(patience);
        let mut memory = Memory::new(pages, seed)?;
        let mut machine = make(&memory)?;
        let (frame, case) = (frame_bytes(), case());
        for (n, state) in states.iter().enumerate() {
            records.set_progress(n);
            let record = one(&mut machine, &mut memory, &frame, (0, &case), state);
            let memory = memory.restore();
            records.set(n, Record { memory, ..record });
        }
        Ok(())
    })?;
    if status != 0 {
        let died = Record {
            trap: status as u64,
            ..Record::ended(Ending::Died)
        };
        records.set(records.progress(), died);
    }
    Ok((0..states.len()).map(|n| records.get(n)).collect())
}

/// State `number`: pointers and small numbers in registers, and both in memory,
/// so that what is loaded can be used.
pub fn state(seed: u64, number: u64) -> State {
    let mut random = Random::new(seed ^ number << 32);
    // Most programs would end at their first accesses if all registers were random.
    let gentle = !number.is_multiple_of(4);
    let value = |random: &mut Random| match gentle && !random.one_in(16) {
        true if random.one_in(2) => Placement::Far.address(random, PAGES),
        true => Placement::Aligned.address(random, PAGES),
        false => value(random),
    };
    let words: Vec<u8> = (0..PAGES * PAGE / 8)
        .flat_map(|_| value(&mut random).to_le_bytes())
        .collect();
    let mut registers = std::array::from_fn(|_| value(&mut random));
    // A count of what fits.
    registers[Register::RCX.number()] = random.below(300);
    let far: Vec<u8> = (0..FAR_PAGES * PAGE / 8)
        .flat_map(|_| value(&mut random).to_le_bytes())
        .collect();
    let tables = [Table::Cold, Table::Warm, Table::Colliding, Table::Shuffled];
    State {
        registers,
        flags: random.word() & ARITHMETIC | 0x202,
        fs_base: DATA,
        vectors: random.below(VECTOR_IMAGES as u64) as usize,
        table: tables[number as usize / 2 % 4],
        placement: Placement::Middle,
        patches: vec![(DATA, words), (FAR, far)],
        order: random.word(),
    }
}

/// A pointer into dom0's data, probably near a page's end; a small number; or any
/// number except an address of this process's own memory.
fn value(random: &mut Random) -> u64 {
    const NOWHERE: u64 = 0x4000_0000_8000_0000;
    match random.below(8) {
        0..=2 => Placement::Aligned.address(random, PAGES),
        3 | 4 => {
            let n = random.below(11);
            Placement::number(n, random).address(random, PAGES)
        }
        5 => random.below(64),
        6 => random.below(64).wrapping_neg(),
        _ => random.word() | NOWHERE,
    }
}
