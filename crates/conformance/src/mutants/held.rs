//! Whether a register still holds the translated address of an earlier check, and what
//! the address of this one is used for.

use std::collections::HashSet;

use elf_loader::{Object, Relocation};
use iced_x86::{
    FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use twin_abi::{names, stlb};

use super::Piece;
use crate::mutants::reach::{Place, Reached};

/// An object and the paths through it.
pub(super) struct Paths<'o> {
    pub object: &'o Object<'o>,
    pub reached: &'o Reached,
}

impl Paths<'_> {
    /// Whether `register` has a translated address at `place` on every path to it: then
    /// skipping a whole check there accesses that window, as far as it covers.
    pub fn hold(&self, register: Register, place: Place) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![place];
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            if self.reached.is_entry(at) {
                return false;
            }
            for before in self.reached.before(at) {
                let piece = Piece::at(self.object, before);
                match self.leaves_translated(&piece, register) {
                    Some(true) => {}
                    Some(false) => return false,
                    None => open.push(before),
                }
            }
        }
        true
    }

    /// Whether nothing but loads uses what `register` has at `place`, on every path from it:
    /// by operands that it is the base of.
    pub fn only_loads(&self, register: Register, place: Place) -> bool {
        let mut seen = HashSet::new();
        let mut open = vec![place];
        while let Some(at) = open.pop() {
            if self.reached.is_partial() {
                return false;
            }
            if !seen.insert(at) {
                continue;
            }
            let piece = Piece::at(self.object, at);
            match self.use_of(&piece, register) {
                Use::Other => return false,
                Use::Lost => {}
                Use::Load | Use::None => open.extend(self.reached.after(at)),
            }
        }
        true
    }

    /// Whether `register` has a translated address after the instruction; `None` if the
    /// instruction does not change that.
    fn leaves_translated(&self, piece: &Piece, register: Register) -> Option<bool> {
        let i = &piece.decoded;
        let adds_translation = |r: &Relocation| {
            r.addend == stlb::XLATE as i64 && self.object.symbol(r.symbol).name == names::STLB
        };
        if piece.relocations.iter().any(adds_translation) && i.op0_register() == register {
            return Some(true);
        }
        if i.flow_control() == FlowControl::Call {
            return match self.called(piece, register) {
                Called::Translates => Some(true),
                Called::Keeps => None,
                Called::Any => Some(false),
            };
        }
        if i.flow_control() == FlowControl::IndirectCall || may_change_all(i) {
            return Some(false);
        }
        writes(i, register).then_some(false)
    }

    /// What a call does with a register.
    fn called(&self, call: &Piece, register: Register) -> Called {
        match slow_path(self.object, call) {
            Some(translated) if translated == register => Called::Translates,
            Some(_) => Called::Keeps,
            None => Called::Any,
        }
    }

    /// What an instruction does with a register that holds an address. A call and a return
    /// lose it: no check relies on a register over either.
    fn use_of(&self, piece: &Piece, register: Register) -> Use {
        let i = &piece.decoded;
        match i.flow_control() {
            FlowControl::Call => match self.called(piece, register) {
                Called::Keeps => Use::None,
                Called::Translates | Called::Any => Use::Lost,
            },
            FlowControl::Return => Use::Lost,
            _ if !names(i, register) => match i.flow_control() {
                FlowControl::Next
                | FlowControl::ConditionalBranch
                | FlowControl::UnconditionalBranch => Use::None,
                _ => Use::Other,
            },
            FlowControl::Next if loads_by(i, register) => match sets(i, register) {
                true => Use::Lost,
                false => Use::Load,
            },
            FlowControl::Next if is_set(i, register) => Use::Lost,
            _ => Use::Other,
        }
    }
}

/// What a call does with a register.
enum Called {
    /// It is the slow path that translates it.
    Translates,
    /// It is the slow path of another one.
    Keeps,
    /// It is not known.
    Any,
}

/// What an instruction does with a register that holds an address.
enum Use {
    /// Nothing.
    None,
    /// It loads by it.
    Load,
    /// It does not use it, and nothing can afterwards.
    Lost,
    /// Anything else.
    Other,
}

/// The register that a call of a slow path translates: that changes no other.
pub(super) fn slow_path(object: &Object<'_>, call: &Piece) -> Option<Register> {
    let mut called = call
        .relocations
        .iter()
        .map(|r| &object.symbol(r.symbol).name);
    let name = called.find_map(|name| name.strip_prefix(names::SLOW_PREFIX))?;
    let is_named = |r: &Register| r.is_gpr64() && format!("{r:?}").eq_ignore_ascii_case(name);
    Register::values().find(is_named)
}

/// Whether an instruction may change any register but `rsp`: the machine's hypervisor answers
/// it, and an access to a port may be a call of VMware's.
pub(super) fn may_change_all(i: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        i.mnemonic(),
        M::In | M::Out | M::Insb | M::Insw | M::Insd | M::Outsb | M::Outsw | M::Outsd
    ) || matches!(i.mnemonic(), M::Vmcall | M::Vmmcall)
}

fn names(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let mut used = info.info(i).used_registers().iter();
    used.any(|u| u.register().full_register() == register)
}

/// Whether the register is the base of an operand in memory that is only read, and is read
/// for nothing else.
fn loads_by(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let info = info.info(i);
    let is_itself = |n| {
        let is_register = i.op_kind(n) == OpKind::Register;
        is_register && i.op_register(n).full_register() == register
    };
    let mut operands = 0..i.op_count();
    i.memory_base() == register
        && i.memory_index() != register
        && i.mnemonic() != Mnemonic::Lea
        && only_reads(i)
        && operands.all(|n| !is_itself(n) || info.op_access(n) == OpAccess::Write)
}

/// Whether the instruction writes all of the register and reads nothing of it.
fn is_set(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let mut used = info.info(i).used_registers().iter();
    let writes =
        used.all(|u| u.register().full_register() != register || u.access() == OpAccess::Write);
    writes && sets(i, register)
}

/// Whether the instruction leaves nothing of what the register held: a write of 32 bits clears
/// the others.
pub(super) fn sets(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    let mut used = info.info(i).used_registers().iter();
    used.any(|u| {
        let whole = u.register().full_register() == register && u.register().size() >= 4;
        whole && u.access() == OpAccess::Write
    })
}

/// Whether an instruction writes no memory.
pub(super) fn only_reads(i: &Instruction) -> bool {
    let mut info = InstructionInfoFactory::new();
    let info = info.info(i);
    let memory = info.used_memory().iter();
    let reads = |access| matches!(access, OpAccess::Read | OpAccess::CondRead);
    memory.into_iter().all(|m| reads(m.access()))
}

/// Whether an instruction writes any part of the register.
pub(super) fn writes(i: &Instruction, register: Register) -> bool {
    let mut info = InstructionInfoFactory::new();
    info.info(i).used_registers().iter().any(|used| {
        let kept = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
        used.register().full_register() == register && !kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::reach;
    use crate::mutants::sample::{
        at, function, with_bug, with_call, with_jump, with_table, with_word,
    };

    /// `add WORD,%rdx`; the word's address is at byte 4.
    const ADD: [u8; 8] = [0x48, 0x03, 0x14, 0x25, 0, 0, 0, 0];

    fn holds(object: &Object<'_>, place: u64) -> bool {
        let reached = &reach::reached(object);
        Paths { object, reached }.hold(Register::RDX, at(place))
    }

    fn only_loads(object: &Object<'_>) -> bool {
        let reached = &reach::reached(object);
        Paths { object, reached }.only_loads(Register::RDX, at(0))
    }

    #[test]
    fn the_translation_alone_makes_a_translated_address() {
        let object = function(&[&ADD[..], &[0x8b, 0x02, 0xc3]].concat());
        assert!(holds(&with_word(object.clone(), 4, names::STLB, 8), 8));
        assert!(!holds(&with_word(object.clone(), 4, names::STLB, 0), 8));
        assert!(!holds(&with_word(object, 4, "jiffies", 8), 8));
    }

    #[test]
    fn a_register_may_change_behind_a_warning() {
        // jb ud2; add; jmp over; ud2; mov (%rdx),%eax; ret
        let code = [
            &[0x72, 0x0a],
            &ADD[..],
            &[0xeb, 0x02, 0x0f, 0x0b, 0x8b, 0x02, 0xc3],
        ]
        .concat();
        let object = with_word(function(&code), 6, names::STLB, 8);
        assert!(holds(&object, 0xe));
        assert!(!holds(&with_bug(object.clone(), 0xc, 1), 0xe));
        // A BUG is the end.
        assert!(holds(&with_bug(object, 0xc, 0), 0xe));
    }

    #[test]
    fn a_register_may_change_where_a_static_branch_leads() {
        // nop; add; mov (%rdx),%eax; ret; and apart: xor %edx,%edx; jmp to the mov
        let code = [
            &[0x0f, 0x1f, 0x44, 0, 0],
            &ADD[..],
            &[0x8b, 0x02, 0xc3, 0xcc, 0xcc, 0x31, 0xd2, 0xeb, 0xf7],
        ];
        let object = with_word(function(&code.concat()), 9, names::STLB, 8);
        assert!(holds(&object, 0xd));
        assert!(!holds(&with_jump(object, 0, 0x12), 0xd));
    }

    #[test]
    fn nothing_is_held_beside_a_table_that_is_not_followed() {
        let object = function(&[&ADD[..], &[0x8b, 0x02, 0xc3]].concat());
        let object = with_word(object, 4, names::STLB, 8);
        let table = with_table(object, ".altinstructions", &[0], &[]);
        assert!(!holds(&table, 8));
        assert!(!only_loads(&with_table(
            function(&[0xc3]),
            "__ex_table",
            &[0],
            &[]
        )));
    }

    #[test]
    fn what_is_only_loaded_by_is_told_from_what_is_stored_by() {
        // mov (%rdx),%eax; movzwl 8(%rdx),%ecx; mov (%rdx,%rax),%ecx; cmp %eax,(%rdx)
        for load in [
            &[0x8b, 0x02][..],
            &[0x0f, 0xb7, 0x4a, 0x08],
            &[0x8b, 0x0c, 0x02],
            &[0x39, 0x02],
        ] {
            assert!(
                only_loads(&function(&[load, &[0xc3]].concat())),
                "{load:x?}"
            );
        }
        // mov %eax,(%rdx); add %eax,(%rdx); mov %rdx,%rax; push %rdx; lea 8(%rdx),%rdx;
        // mov (%rdx,%rdx),%eax; add (%rdx),%rdx; mov %rdx,(%rax); cmpxchg %ecx,(%rdx)
        let others: [&[u8]; 9] = [
            &[0x89, 0x02],
            &[0x01, 0x02],
            &[0x48, 0x89, 0xd0],
            &[0x52],
            &[0x48, 0x8d, 0x52, 0x08],
            &[0x8b, 0x04, 0x12],
            &[0x48, 0x03, 0x12],
            &[0x48, 0x89, 0x10],
            &[0x0f, 0xb1, 0x0a],
        ];
        for other in others {
            assert!(
                !only_loads(&function(&[other, &[0xc3]].concat())),
                "{other:x?}"
            );
            // The same behind a load.
            let code = [&[0x8b, 0x02], other, &[0xc3]].concat();
            assert!(!only_loads(&function(&code)), "{other:x?}");
        }
    }

    #[test]
    fn a_store_by_another_address_is_not_this_ones() {
        let store = [0x89, 0x02, 0xc3];
        // mov (%rdx),%edx; mov $0,%edx
        for lost in [&[0x8b, 0x12][..], &[0xba, 0, 0, 0, 0]] {
            assert!(only_loads(&function(&[lost, &store].concat())), "{lost:x?}");
        }
        // mov $0,%dl leaves the rest; so may cmovb %eax,%edx.
        for kept in [&[0xb2, 0][..], &[0x0f, 0x42, 0xd0]] {
            assert!(
                !only_loads(&function(&[kept, &store].concat())),
                "{kept:x?}"
            );
        }
        let called = function(&[&[0xe8, 0, 0, 0, 0][..], &store].concat());
        assert!(only_loads(&with_call(called.clone(), 0, "printk")));
        assert!(only_loads(&with_call(called.clone(), 0, "twin_slow_rdx")));
        assert!(!only_loads(&with_call(called, 0, "twin_slow_rax")));
        // jb to the store, over mov (%rdx),%eax; ret
        assert!(!only_loads(&function(&[
            0x72, 0x03, 0x8b, 0x02, 0xc3, 0x89, 0x02, 0xc3
        ])));
    }
}
