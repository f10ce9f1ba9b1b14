//! Which registers something relies on at a place: some path from there accesses memory by what
//! they hold without a check, or by what is computed from it, or calls
//! where it leads. Any number may be in the others. `rsp` is always relied on; an object that
//! moves it by a register is not judged.
//!
//! A backward analysis. What is loaded from memory is a number to all: no sequence of the rewriter's
//! keeps an address there that something relies on, but of registers that it relies on beside.

use std::collections::HashMap;

use elf_loader::{Object, Relocation};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use svm_verify::Accesses;
use twin_abi::{names, stlb};

use super::Piece;
use super::held;
use super::reach::{Place, Reached};
use super::registers::{RSP, keeps_constant, number};

/// A set of general registers, by number: those that a place is computed from, and above them
/// those that it is computed from where a call leads.
pub(super) type Set = u32;

const ALL: Set = 0xffff;
const LEADS: u32 = 16;
/// What a function may have to keep for its caller: `rbx rbp r12-r15`.
const KEPT: Set = 1 << 3 | 1 << 5 | 0xf << 12;

/// What is relied on before each instruction.
pub(super) struct Relied {
    before: HashMap<Place, Set>,
}

impl Relied {
    /// Follows all paths back.
    pub fn new(object: &Object<'_>, reached: &Reached, accesses: Accesses) -> Relied {
        let is_constant = |at| keeps_constant(&Piece::at(object, at).decoded);
        if reached.is_partial() || !reached.places().all(is_constant) {
            let before = HashMap::new();
            return Relied { before };
        }
        let effect = |at| Effect::of(object, &Piece::at(object, at), accesses);
        let effects: HashMap<Place, Effect> = reached.places().map(|at| (at, effect(at))).collect();
        // What a call's function has to keep, which may be any: addresses to go to alone.
        let mut kept = 0;
        loop {
            let before = solved(reached, &effects, kept);
            let calls = reached.places().filter(|at| effects[at].is_call);
            let over_calls = calls.fold(0, |all, at| all | after(reached, &before, at, kept));
            let over_calls = over_calls & KEPT << LEADS;
            if over_calls & !kept == 0 {
                return Relied { before };
            }
            kept |= over_calls;
        }
    }

    /// All that is relied on before an instruction.
    pub fn at(&self, place: Place) -> Set {
        *self.before.get(&place).unwrap_or(&ALL)
    }
}

/// What is relied on before each instruction, if `kept` is where functions are left.
fn solved(reached: &Reached, effects: &HashMap<Place, Effect>, kept: Set) -> HashMap<Place, Set> {
    let mut before: HashMap<Place, Set> = HashMap::new();
    let mut open: Vec<Place> = reached.places().collect();
    while let Some(at) = open.pop() {
        let now = effects[&at].before(after(reached, &before, at, kept));
        if before.insert(at, now) != Some(now) {
            open.extend(reached.before(at));
        }
    }
    before
}

/// What is relied on behind an instruction.
fn after(reached: &Reached, before: &HashMap<Place, Set>, at: Place, kept: Set) -> Set {
    let mut next = reached.after(at).peekable();
    match next.peek() {
        None => kept,
        Some(_) => next.fold(0, |all, next| all | before.get(&next).unwrap_or(&0)),
    }
}

/// Whether a register is in a set.
pub(super) fn has(set: Set, register: Register) -> bool {
    let both = set | set >> LEADS;
    number(register.full_register()).is_none_or(|n| n == RSP || both & 1 << n != 0)
}

/// What an instruction does with what is relied on.
#[derive(Debug, Default)]
struct Effect {
    /// What it relies on itself.
    uses: Set,
    /// What it computes with.
    reads: Set,
    /// What has another value afterwards, or may have.
    writes: Set,
    /// What has another value afterwards. No access relies on a register over a call.
    sets: Set,
    /// Whether it calls a function.
    is_call: bool,
}

impl Effect {
    fn of(object: &Object<'_>, piece: &Piece, accesses: Accesses) -> Effect {
        let i = &piece.decoded;
        if let Some(translated) = held::slow_path(object, piece).and_then(number) {
            return Effect::setting(1 << translated);
        }
        let of_table = |r: &&Relocation| object.symbol(r.symbol).name == names::STLB;
        let table = piece.relocations.iter().find(of_table);
        if let (Some(field), Some(v)) = (table, number(i.op0_register()))
            && field.addend == stlb::XLATE as i64
        {
            return Effect::setting(1 << v);
        }
        let mut effect = Effect::of_registers(i);
        effect.is_call = matches!(
            i.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        );
        if effect.is_call {
            effect.sets = ALL;
        }
        effect.uses |= led_by(object, piece) << LEADS;
        let goes_on = i.flow_control() == FlowControl::Next;
        let may_be_any = accesses == Accesses::Stores && goes_on && held::only_reads(i);
        if table.is_none() && !may_be_any {
            effect.uses |= pointers(i, accesses);
        }
        effect
    }

    fn setting(sets: Set) -> Effect {
        Effect {
            writes: sets,
            sets,
            ..Effect::default()
        }
    }

    fn of_registers(i: &Instruction) -> Effect {
        let mut effect = Effect::default();
        let mut info = InstructionInfoFactory::new();
        let info = info.info(i);
        for used in info.used_registers() {
            let Some(n) = number(used.register().full_register()).filter(|n| *n != RSP) else {
                continue;
            };
            if !matches!(used.access(), OpAccess::Write) {
                effect.reads |= 1 << n;
            }
            if !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                effect.writes |= 1 << n;
            }
            if used.access() == OpAccess::Write && used.register().size() >= 4 {
                effect.sets |= 1 << n;
            }
        }
        effect.reads &= !only_places(i);
        effect
    }

    /// What is relied on before it, if this is afterwards.
    fn before(&self, after: Set) -> Set {
        let flows = |after: Set| match after & self.writes {
            0 => 0,
            _ => self.reads,
        };
        let (places, leads) = (after & ALL, after >> LEADS);
        // A callee may leave each register as it is.
        let kept = if self.is_call {
            leads
        } else {
            leads & !self.sets
        };
        let places = places & !self.sets | flows(places);
        places | (kept | flows(leads)) << LEADS | self.uses
    }
}

/// The registers that say where an instruction accesses memory. How often a string instruction
/// does is computed beside its checks, for whatever they translate: no mutant of these is argued
/// by what is relied on. Where stores alone are confined, what `movs` reads by may be any.
fn pointers(i: &Instruction, accesses: Accesses) -> Set {
    let in_memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    let named = [i.memory_base(), i.memory_index()];
    // A module's operand by `%gs:` may be anywhere.
    let reaches = in_memory
        && !matches!(i.mnemonic(), Mnemonic::Lea | Mnemonic::Nop)
        && i.segment_prefix() != Register::GS;
    let named = named.into_iter().filter(|_| reaches);
    let is_confined = |r: &Register| accesses == Accesses::All || *r != Register::RSI;
    let of_string = i.op_kinds().filter_map(string_pointer).filter(is_confined);
    let numbers = named
        .chain(of_string)
        .filter_map(|r| number(r.full_register()));
    numbers.filter(|n| *n != RSP).fold(0, |set, n| set | 1 << n)
}

/// The register that such an operand of a string instruction is reached by (SDM volume 1, 7.3.9).
fn string_pointer(kind: OpKind) -> Option<Register> {
    use OpKind as K;
    match kind {
        K::MemorySegSI | K::MemorySegESI | K::MemorySegRSI => Some(Register::RSI),
        K::MemoryESDI | K::MemoryESEDI | K::MemoryESRDI => Some(Register::RDI),
        K::MemorySegDI | K::MemorySegEDI | K::MemorySegRDI => Some(Register::RDI),
        _ => None,
    }
}

/// The registers that are only where its operand in memory is: what it computes is not counted
/// from them.
fn only_places(i: &Instruction) -> Set {
    let is_operand = |n: usize| {
        (0..i.op_count()).any(|operand| {
            let is_register = i.op_kind(operand) == OpKind::Register;
            is_register && number(i.op_register(operand).full_register()) == Some(n)
        })
    };
    let named = [i.memory_base(), i.memory_index()];
    let places = named.into_iter().filter_map(|r| number(r.full_register()));
    let places = places.filter(|n| i.mnemonic() != Mnemonic::Lea && !is_operand(*n));
    places.fold(0, |set, n| set | 1 << n)
}

/// The registers by which it calls or goes somewhere, itself or by a thunk.
fn led_by(object: &Object<'_>, piece: &Piece) -> Set {
    const THUNK: &str = "__x86_indirect_thunk_";
    let by_itself = match piece.decoded.flow_control() {
        FlowControl::IndirectCall | FlowControl::IndirectBranch => {
            number(piece.decoded.op0_register())
        }
        _ => None,
    };
    let mut called = piece
        .relocations
        .iter()
        .map(|r| &object.symbol(r.symbol).name);
    let named = called
        .find_map(|name| name.strip_prefix(THUNK))
        .map(|name| {
            let is_named = |r: &Register| format!("{r:?}").eq_ignore_ascii_case(name);
            Register::values().find(is_named).and_then(number)
        });
    let of = |n: Option<usize>| n.map_or(ALL, |n| 1 << n);
    by_itself.map_or(0, |n| 1 << n) | named.map_or(0, of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::reach;
    use crate::mutants::sample::{at, function, with_call, with_word};

    /// `call` of something; `mov (%rdx),%eax`; `ret`.
    const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];
    const LOAD: [u8; 2] = [0x8b, 0x02];
    const RET: [u8; 1] = [0xc3];

    /// What is relied on where `f` begins.
    fn relied(object: &Object<'_>, accesses: Accesses) -> Set {
        let reached = &reach::reached(object);
        Relied::new(object, reached, accesses).at(at(0))
    }

    fn of(code: &[&[u8]], register: Register) -> bool {
        has(relied(&function(&code.concat()), Accesses::All), register)
    }

    #[test]
    fn an_access_relies_on_what_its_place_is_computed_from() {
        assert!(of(&[&LOAD, &RET], Register::RDX));
        assert!(!of(&[&LOAD, &RET], Register::RAX));
        // mov %rcx,%rdx; lea 8(%rcx,%rdx),%rdx; mov $0,%dl; jb over it; movsb
        assert!(of(&[&[0x48, 0x89, 0xca], &LOAD, &RET], Register::RCX));
        assert!(of(
            &[&[0x48, 0x8d, 0x54, 0x11, 0x08], &LOAD, &RET],
            Register::RCX
        ));
        assert!(of(&[&[0xb2, 0], &LOAD, &RET], Register::RDX));
        assert!(of(&[&[0x72, 0x02], &LOAD, &RET], Register::RDX));
        assert!(of(&[&[0xa4], &RET], Register::RSI));
        assert!(of(&[&[0xa4], &RET], Register::RDI));
        // stosb and scasb; lodsb
        for by_rdi in [0xaa, 0xae] {
            assert!(of(&[&[by_rdi], &RET], Register::RDI));
            assert!(!of(&[&[by_rdi], &RET], Register::RSI));
        }
        assert!(of(&[&[0xac], &RET], Register::RSI));
        assert!(!of(&[&[0xac], &RET], Register::RDI));
        // A later one relies on what these leave.
        assert!(of(&[&[0xaa, 0xa4], &RET], Register::RSI));
        // mov %rcx,%rsp: nothing is free.
        assert!(of(&[&[0x48, 0x89, 0xcc], &RET], Register::RDX));
    }

    #[test]
    fn a_number_is_any() {
        // push %rdx; mov %rdx,(%rsp); cmp %rdx,%rax
        assert!(!of(&[&[0x52], &RET], Register::RDX));
        assert!(!of(&[&[0x48, 0x89, 0x14, 0x24], &RET], Register::RDX));
        assert!(!of(&[&[0x48, 0x39, 0xd0], &RET], Register::RDX));
        // mov $0,%edx; mov %rcx,%rdx
        assert!(!of(&[&[0xba, 0, 0, 0, 0], &LOAD, &RET], Register::RDX));
        assert!(!of(&[&[0x48, 0x89, 0xca], &LOAD, &RET], Register::RDX));
    }

    #[test]
    fn a_translation_is_of_any_number() {
        // add WORD,%rdx
        let add = [0x48, 0x03, 0x14, 0x25, 0, 0, 0, 0];
        let object = function(&[&add[..], &LOAD, &RET].concat());
        let relies = |name, addend| {
            let object = with_word(object.clone(), 4, name, addend);
            has(relied(&object, Accesses::All), Register::RDX)
        };
        assert!(!relies(names::STLB, 8));
        assert!(relies(names::STLB, 0));
        assert!(relies("jiffies", 8));
    }

    #[test]
    fn calls_rely_on_where_they_lead_and_keep_nothing() {
        let object = function(&[&CALL[..], &LOAD, &RET].concat());
        let relies = |name| {
            has(
                relied(&with_call(object.clone(), 0, name), Accesses::All),
                Register::RDX,
            )
        };
        assert!(!relies("twin_slow_rdx"));
        assert!(relies("twin_slow_rax"));
        assert!(!relies("printk"));
        let object = function(&[&CALL[..], &RET].concat());
        let relies = |name| {
            has(
                relied(&with_call(object.clone(), 0, name), Accesses::All),
                Register::RDX,
            )
        };
        assert!(relies("__x86_indirect_thunk_rdx"));
        assert!(!relies("__x86_indirect_thunk_rax"));
        // mov %rdx,%rax or add (%rcx),%rax before it: by `rax`.
        let by_rax = |code: &[u8], register| {
            let object = function(&[code, &CALL, &RET].concat());
            let object = with_call(object, code.len() as u64, "__x86_indirect_thunk_rax");
            has(relied(&object, Accesses::Stores), register)
        };
        assert!(by_rax(&[0x48, 0x89, 0xd0], Register::RDX));
        assert!(by_rax(&[0x48, 0x03, 0x01], Register::RAX));
        assert!(!by_rax(&[0x48, 0x03, 0x01], Register::RCX));
        // call *%rdx; call *(%rdx)
        assert!(of(&[&[0xff, 0xd2], &RET], Register::RDX));
        assert!(of(&[&[0xff, 0x12], &RET], Register::RDX));
    }

    #[test]
    fn a_function_keeps_where_its_caller_goes() {
        // f: call g; call *%rbx; ret. g: ret
        let object = function(&[0xe8, 3, 0, 0, 0, 0xff, 0xd3, 0xc3, 0xc3]);
        let reached = &reach::reached(&object);
        let relied = Relied::new(&object, reached, Accesses::All).at(at(8));
        assert!(has(relied, Register::RBX));
        assert!(!has(relied, Register::RBP));
        assert!(!has(relied, Register::RAX));
    }

    #[test]
    fn a_load_relies_on_nothing_where_stores_alone_are_confined() {
        let load = function(&[&LOAD[..], &RET].concat());
        assert!(!has(relied(&load, Accesses::Stores), Register::RDX));
        let store = function(&[0x89, 0x02, 0xc3]);
        assert!(has(relied(&store, Accesses::Stores), Register::RDX));
        // movsb
        let copy = function(&[0xa4, 0xc3]);
        assert!(!has(relied(&copy, Accesses::Stores), Register::RSI));
        assert!(has(relied(&copy, Accesses::Stores), Register::RDI));
    }
}
