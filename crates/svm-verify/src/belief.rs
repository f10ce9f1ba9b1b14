//! The verifier's beliefs about a single instruction, for a test that executes it and
//! compares (`conformance::belief`).
//!
//! There is no list of beliefs. An instruction goes through the rules of P3 as if it were
//! in an object. Then one [`Step`] is taken from facts made up for it: each register
//! holds a number with a name of its own, and the registers that it reaches memory
//! through hold translated addresses, or window pointers. The facts that are still known after it are what
//! the verifier believes unchanged; everything else may have changed.

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Register};
use twin_abi::Scheme;
use yaxpeax_x86::long_mode::InstDecoder;

use crate::decode;
use crate::decode::classify::{self, OperandField};
use crate::decode::second;
use crate::domain::{Bound, Direction, Form, Name, State, Value};
use crate::insn::{Access, Gpr, Insn, Op, Origin};
use crate::rules::{Laws, Site, Step};
use crate::schemes;
use crate::targets::{NamedMemory, Rules};

/// `rsp` before the instruction, relative to `rsp` at the function's entry.
const DEPTH: i32 = -2048;

/// What a register has to hold before the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// Any number: the instruction requires nothing of it.
    Any,
    /// A translated address, through which the instruction reaches memory.
    Pointer,
    /// `rsp` plus this many bytes.
    Frame(i32),
    /// At most this.
    AtMost(u8),
    /// Less than the window of 42 bits.
    Place,
    /// The count of a string instruction: no more than the translations of its pointers
    /// cover.
    Count,
}

/// What the verifier knows of a register after the instruction. All fields that are set
/// hold at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct After {
    /// It holds what this register held before.
    pub same: Option<u8>,
    /// It holds `rsp` from before plus this many bytes.
    pub frame: Option<i32>,
    /// It holds the low half of what this register held before.
    pub low_half: Option<u8>,
    /// It holds the page of what this register held before.
    pub page: Option<u8>,
    /// It holds at most this.
    pub at_most: Option<u8>,
    /// Its upper half is zero.
    pub clear: bool,
    /// It is less than the window of 42 bits.
    pub place: bool,
    /// It holds the number that the instruction itself names; all registers with this set
    /// hold the same number.
    pub named: bool,
}

/// How control leaves the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// To the next instruction.
    Next,
    /// To its target, and to the next instruction if it is conditional.
    Branch,
    /// To its target, with the address of the next instruction pushed.
    Call,
    /// To the address on top of the stack.
    Return,
    /// Not at all: it traps.
    Nowhere,
}

/// What the address of a memory operand counts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CountsFrom {
    /// Zero.
    Zero,
    /// The GS base, by a sum of 64 bits.
    Gs,
    /// The GS base, by a sum that is cut to 32 bits.
    GsInLowHalf,
}

/// A memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operand {
    /// Number of its base register.
    pub base: Option<u8>,
    /// Number of its index register, and the scale.
    pub index: Option<(u8, u8)>,
    /// Displacement in bytes.
    pub displacement: i32,
    /// Where the displacement is in the instruction's bytes.
    pub displacement_at: usize,
    /// The register with a bit's offset from there, which is in the operand's own bytes.
    pub bit: Option<u8>,
    /// What the sum of these counts from.
    pub from: CountsFrom,
    /// How many bytes are reached.
    pub size: u16,
    /// Whether they may be written.
    pub written: bool,
}

/// What the verifier believes of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Belief {
    /// Bytes of the instruction.
    pub length: usize,
    /// The requirement on each register before it, by its number in the encoding.
    pub before: [Before; 16],
    /// The facts about each register after it.
    pub after: [After; 16],
    /// Whether it may change a status flag.
    pub flags: bool,
    /// The direction flag after it; `None` if unchanged.
    pub direction: Option<bool>,
    /// Its explicit memory operand.
    pub operand: Option<Operand>,
    /// For string instructions, bytes of an element, and whether it is repeated.
    pub elements: Option<(u16, bool)>,
    /// How control leaves it.
    pub leaves: Leaves,
}

/// The verifier's beliefs about the instruction at the start of the bytes, in an object
/// for target `hypervisor` and a scheme. `backward`: with the direction flag set. `None` if
/// a rule refuses it.
pub fn of(bytes: &[u8], scheme: Scheme, backward: bool) -> Option<Belief> {
    let rules = Rules::hypervisor(scheme, scheme.processor());
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    let i = decoder.decode();
    if i.is_invalid() || decode::allowed(&i, &bytes[..i.len()], rules).is_err() {
        return None;
    }
    let mut factory = InstructionInfoFactory::new();
    let insn = classify::classify(&i, OperandField::None, rules, &mut factory).ok()?;
    second::agrees(&InstDecoder::default(), &i, &insn, bytes).ok()?;
    let insn = Insn {
        len: i.len() as u8,
        ..insn
    };
    let fields = decoder.get_constant_offsets(&i);
    let before = before(&insn, rules);
    let mut state = facts(&insn, &before, rules, backward);
    let rsp = state.rsp();
    let laws = Laws::new(schemes::of(scheme), rules);
    let step = Step {
        laws: &laws,
        site: Site::PLAIN,
        name: Some(OWN),
        insn: &insn,
        state: &mut state,
    };
    step.run().ok()?;
    Some(Belief {
        length: i.len(),
        before,
        after: std::array::from_fn(|n| after(state.get(Gpr(n as u8)), rsp)),
        flags: insn.flags,
        direction: direction(insn.op),
        operand: operand(&insn, &i, fields.displacement_offset()),
        elements: match insn.op {
            Op::String { shift, rep, .. } => Some((1 << shift, rep)),
            _ => None,
        },
        leaves: leaves(insn.op),
    })
}

/// The name that the instruction itself gives, also under schemes that have no use for it.
const OWN: Name = Name::FIRST;

/// The name of what a register holds before it.
fn name_of(r: u8) -> Name {
    Name::of(u32::from(r) + 1)
}

/// The name of the address that is translated in a register.
fn address_in(r: u8) -> Name {
    Name::of(u32::from(r) + 17)
}

fn before(insn: &Insn, rules: &Rules) -> [Before; 16] {
    let mut before = [Before::Any; 16];
    before[usize::from(Gpr::RSP.0)] = Before::Frame(0);
    let m = &insn.memory;
    let reaches = |origin: Origin| m.access != Access::None && m.origin == origin;
    let (by_registers, cut) = (reaches(Origin::Registers), reaches(Origin::Cut));
    if (by_registers || cut) && m.base != Gpr::RSP {
        before[usize::from(m.base.0)] = if cut { Before::Place } else { Before::Pointer };
    }
    match insn.op {
        Op::String { .. } => {
            before[usize::from(Gpr::RDI.0)] = Before::Pointer;
            before[usize::from(Gpr::RSI.0)] = Before::Pointer;
            before[usize::from(Gpr::RCX.0)] = Before::Count;
        }
        Op::BitAt { r, bits } => before[usize::from(r.0)] = Before::AtMost(bits - 1),
        Op::And { s, .. } if rules.named_memory == NamedMemory::WideWindow && s != Gpr::RSP => {
            before[usize::from(s.0)] = Before::Place;
        }
        Op::Leave => before[usize::from(Gpr::RBP.0)] = Before::Frame(64),
        _ => {}
    }
    before
}

/// The facts that state `before`.
fn facts(insn: &Insn, before: &[Before; 16], rules: &Rules, backward: bool) -> State {
    let mut state = State::entry();
    state.direction = Some(match backward {
        true => Direction::Backward,
        false => Direction::Forward,
    });
    for n in 1..64 {
        // Every name in a state was given once.
        state.rename(Name::of(n));
    }
    // A function returns with an empty frame.
    let empty = matches!(insn.op, Op::Ret);
    let _ = empty || state.set_rsp(DEPTH.into());
    for (n, before) in (0..).zip(before) {
        let form = match *before {
            Before::Any => Form::Any,
            Before::Pointer if rules.named_memory == NamedMemory::Window => Form::WindowPointer,
            Before::Pointer if rules.named_memory == NamedMemory::WideWindow => Form::WidePointer,
            Before::Pointer => Form::Translated(Some(address_in(n))),
            Before::Frame(by) => Form::Stack(state.rsp() + by),
            Before::AtMost(most) => Form::Below(most),
            Before::Place => Form::Place,
            Before::Count => counted(insn.op, state.direction),
        };
        let name = Some(name_of(n));
        state.write(Gpr(n), Value { name, form });
    }
    state
}

/// As many elements as both pointers of a string instruction cover.
fn counted(op: Op, direction: Option<Direction>) -> Form {
    match (op, direction) {
        (Op::String { shift, .. }, Some(direction)) => {
            let bound = Bound {
                from: address_in(Gpr::RDI.0),
                shift,
                direction,
            };
            Form::Count(bound, Some(address_in(Gpr::RSI.0)))
        }
        _ => Form::Any,
    }
}

/// What a value says in terms of the registers before the instruction.
fn after(value: Value, rsp: i32) -> After {
    let held_by = |name: Name| (0..16).find(|&r| name_of(r) == name);
    let mut after = After {
        same: value.name.and_then(held_by),
        named: value.name == Some(OWN),
        ..After::default()
    };
    match value.form {
        Form::Stack(at) => after.frame = Some(at - rsp),
        Form::Low32(name) => after.low_half = held_by(name),
        Form::Page(name) => after.page = held_by(name),
        Form::Below(most) => after.at_most = Some(most),
        Form::LowHalf => after.clear = true,
        Form::Place => after.place = true,
        // Of names that no register has here, or of addresses that are made up.
        Form::Any
        | Form::Aligned(_)
        | Form::LoadedStack(_)
        | Form::LoadedAligned(_)
        | Form::ContextTop
        | Form::ReturnWord
        | Form::Shifted(_)
        | Form::PageBits(_)
        | Form::Index(_)
        | Form::Offset(_)
        | Form::Checked(_)
        | Form::Translated(_)
        | Form::PageOffset(..)
        | Form::Count(..)
        | Form::WindowStart
        | Form::WindowPointer
        | Form::WidePointer => {}
    }
    after
}

fn direction(op: Op) -> Option<bool> {
    match op {
        Op::Cld => Some(false),
        Op::Std => Some(true),
        _ => None,
    }
}

fn operand(insn: &Insn, i: &Instruction, displacement_at: usize) -> Option<Operand> {
    let m = &insn.memory;
    let from = counts_from(m.origin);
    let number = |r: Register| (r != Register::None).then(|| r.number() as u8);
    let scale = i.memory_index_scale() as u8;
    // The address is computed after `rsp` has moved (SDM volume 2, POP).
    let moved = match (insn.op, i.memory_base()) {
        (Op::PopMemory, Register::ESP) => i.stack_pointer_increment(),
        _ => 0,
    };
    (m.access != Access::None).then_some(Operand {
        base: number(i.memory_base()),
        index: number(i.memory_index()).map(|index| (index, scale)),
        displacement: m.disp.wrapping_add(moved),
        displacement_at,
        bit: match insn.op {
            Op::BitAt { r, .. } => Some(r.0),
            _ => None,
        },
        from,
        size: m.size,
        written: m.access == Access::Write,
    })
}

fn counts_from(origin: Origin) -> CountsFrom {
    match origin {
        Origin::Window => CountsFrom::GsInLowHalf,
        Origin::NearWindow | Origin::Cut | Origin::PerCpu => CountsFrom::Gs,
        Origin::Registers | Origin::Symbol | Origin::Narrow | Origin::Unknown => CountsFrom::Zero,
    }
}

fn leaves(op: Op) -> Leaves {
    match op {
        Op::Jump(_) | Op::Branch(..) => Leaves::Branch,
        Op::Call(_) => Leaves::Call,
        Op::Ret => Leaves::Return,
        Op::Stop => Leaves::Nowhere,
        _ => Leaves::Next,
    }
}
