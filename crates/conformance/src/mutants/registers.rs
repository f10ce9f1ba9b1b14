//! What is known of general registers on every path to a place: which hold the same number, and
//! which an address in the function's own frame. A forward analysis; where paths meet, what they
//! agree on is left.

use std::array;
use std::collections::{HashMap, HashSet};

use elf_loader::Object;
use iced_x86::{Code, FlowControl, Instruction, Mnemonic, OpKind, Register};
use svm_verify::Target;

use super::Piece;
use super::held::{self, writes};
use super::reach::{self, Place, Reached};

const COUNT: usize = 16;

/// What is known at each place, before the instruction there.
pub(super) struct Registers {
    known: HashMap<Place, Known>,
    /// Whether `rsp` moves by constants only, in all of the object: then no word of a frame
    /// becomes one.
    moves_by_constants: bool,
}

impl Registers {
    /// Follows all paths. In a module a call keeps what every function of the object keeps, and
    /// the kernel is trusted to keep; for a hypervisor a call keeps nothing.
    pub fn new(object: &Object<'_>, reached: &Reached, target: Target) -> Registers {
        let decoded = |at| Piece::at(object, at).decoded;
        let mut kept = if target == Target::Linux { KEPT } else { 0 };
        loop {
            let known = solved(object, reached, kept);
            let leaves = |at: &Place| reached.after(*at).next().is_none() && is_exit(&decoded(*at));
            let at_exits = known.iter().filter(|(at, _)| leaves(at));
            let still = at_exits.fold(kept, |all, (_, known)| all & known.kept());
            if still == kept {
                return Registers {
                    known,
                    moves_by_constants: reached.places().all(|at| keeps_constant(&decoded(at))),
                };
            }
            kept = still;
        }
    }

    /// Whether an instruction copies a register to one that holds the same already.
    pub fn copies_nothing(&self, copy: &Instruction, at: Place) -> bool {
        let known = self.known.get(&at).zip(copied(copy));
        known.is_some_and(|(known, (from, to))| known.alike[from] & 1 << to != 0)
    }

    /// The registers that hold what this one does at a place, itself among them.
    pub fn alike(&self, register: Register, at: Place) -> Vec<Register> {
        let known = self.known.get(&at).zip(number(register));
        let set = known.map_or(0, |(known, n)| known.alike[n]);
        let members = (0..COUNT).filter(|n| set & 1 << n != 0);
        members.map(|n| Register::RAX + n as u32).collect()
    }

    /// Whether an access would do no harm by `base` in place of its own base: the operand is in
    /// the own frame, at `rsp` or above it, and below the return address. A word that is
    /// written there is a number to all who read it, unless it becomes `rsp`.
    pub fn is_in_frame(&self, access: &Instruction, base: Register, at: Place) -> bool {
        let known = self.known.get(&at).zip(number(base));
        let Some((base, top)) = known.and_then(|(k, n)| k.frame[n].zip(k.frame[RSP])) else {
            return false;
        };
        let size = access.memory_size().size() as i64;
        let start = base.wrapping_add(access.memory_displacement64() as i64);
        let in_frame = (top..0).contains(&start) && size > 0 && start + size <= 0;
        let by_segment = matches!(access.segment_prefix(), Register::FS | Register::GS);
        in_frame && !by_segment && (self.moves_by_constants || held::only_reads(access))
    }
}

/// What is known at each place if a call keeps these registers.
fn solved(object: &Object<'_>, reached: &Reached, kept: u16) -> HashMap<Place, Known> {
    let functions: HashSet<Place> = reach::functions(object).map(|(at, _)| at).collect();
    let mut known = HashMap::new();
    // Code is entered at functions alone (docs/proof/linux.md, P2), unless a table says otherwise.
    for at in reached.places() {
        let is_named = functions.contains(&at) && reached.is_named(at);
        if is_named || reached.is_called(at) {
            known.insert(at, Known::entered());
        } else if reached.is_partial() {
            known.insert(at, Known::nothing());
        }
    }
    let mut open: Vec<Place> = known.keys().copied().collect();
    while let Some(at) = open.pop() {
        let piece = Piece::at(object, at);
        let mut after = known[&at];
        after.pass(object, &piece, kept);
        for next in reached.after(at) {
            let met = known.get(&next).map_or(after, |before| before.meet(&after));
            if known.insert(next, met) != Some(met) {
                open.push(next);
            }
        }
    }
    known
}

/// What a call of the machine's hypervisor keeps besides `rsp`; by other ports than VMware's it
/// changes six registers only.
fn kept_by_machine(i: &Instruction) -> u16 {
    const SIX: u16 = 0b1100_1111;
    match i.mnemonic() {
        Mnemonic::Out => !SIX,
        _ => 0,
    }
}

/// Whether a function is left by an instruction that nothing in the object follows.
fn is_exit(i: &Instruction) -> bool {
    !matches!(
        i.flow_control(),
        FlowControl::Exception | FlowControl::Interrupt
    )
}

/// What is known of all general registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Known {
    /// For each register the set of those that hold the same, itself among them.
    alike: [u16; COUNT],
    /// For those that hold an address of the frame its distance from `rsp` at the function's
    /// entry, where the return address is.
    frame: [Option<i64>; COUNT],
    /// For those that a function keeps, where the caller's value is.
    callers: [Callers; COUNT],
}

/// Where the value is that a register had at the function's entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Callers {
    /// In the register.
    here: bool,
    /// In this word of the frame, as `push` put it there.
    pushed: Option<i64>,
}

/// `rbx rbp r12-r15`.
const KEPT: u16 = 1 << 3 | 1 << 5 | 0xf << 12;

/// The number of `rsp`.
pub(super) const RSP: usize = 4;

impl Known {
    fn nothing() -> Known {
        Known {
            alike: array::from_fn(|n| 1 << n),
            frame: [None; COUNT],
            callers: [Callers::default(); COUNT],
        }
    }

    /// What is known where a function begins.
    fn entered() -> Known {
        let mut known = Known::nothing();
        known.frame[RSP] = Some(0);
        known.callers.iter_mut().for_each(|c| c.here = true);
        known
    }

    /// What both agree on.
    fn meet(&self, other: &Known) -> Known {
        let same = |n: usize| self.frame[n].filter(|_| self.frame[n] == other.frame[n]);
        Known {
            alike: array::from_fn(|n| self.alike[n] & other.alike[n]),
            frame: array::from_fn(same),
            callers: array::from_fn(|n| self.callers[n].meet(other.callers[n])),
        }
    }

    /// The registers that hold what the caller had in them.
    fn kept(&self) -> u16 {
        let here = (0..COUNT).filter(|n| self.callers[*n].here);
        here.fold(0, |set, n| set | 1 << n)
    }

    fn forget(&mut self, register: usize) {
        self.alike
            .iter_mut()
            .for_each(|set| *set &= !(1 << register));
        self.alike[register] = 1 << register;
        self.frame[register] = None;
        self.callers[register].here = false;
    }

    /// All but `rsp`, which a callee leaves where it was, and those that it keeps.
    fn forget_others(&mut self, kept: u16) {
        let callers = self.callers;
        (0..COUNT)
            .filter(|n| *n != RSP && kept & 1 << n == 0)
            .for_each(|n| self.forget(n));
        // What a callee does not keep, no function does.
        self.callers = array::from_fn(|n| callers[n].over_call(kept & 1 << n != 0));
    }

    fn copy(&mut self, from: usize, to: usize) {
        if from == to {
            return;
        }
        self.forget(to);
        self.frame[to] = self.frame[from];
        let set = self.alike[from] | 1 << to;
        (0..COUNT)
            .filter(|n| set & 1 << n != 0)
            .for_each(|n| self.alike[n] = set);
    }

    /// Goes over an instruction.
    fn pass(&mut self, object: &Object<'_>, piece: &Piece, kept: u16) {
        let i = &piece.decoded;
        let is_call = matches!(
            i.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        );
        match held::slow_path(object, piece).and_then(number) {
            Some(register) if is_call => self.forget(register),
            _ if is_call => self.forget_others(kept),
            _ if held::may_change_all(i) => self.forget_others(kept_by_machine(i)),
            _ => match copied(i) {
                Some((from, to)) => self.copy(from, to),
                None => self.compute(i),
            },
        }
    }

    fn compute(&mut self, i: &Instruction) {
        let computed = self.in_frame(i);
        let callers = self.after_words(i);
        (0..COUNT)
            .filter(|n| writes(i, Register::RAX + *n as u32))
            .for_each(|n| self.forget(n));
        if let Some((to, distance)) = computed {
            self.frame[to] = Some(distance);
        }
        self.callers = array::from_fn(|n| Callers {
            here: self.callers[n].here || callers[n].here && pops(i, n),
            // Interrupts write below `rsp`.
            pushed: callers[n]
                .pushed
                .filter(|word| self.frame[RSP].is_some_and(|top| *word >= top)),
        });
    }

    /// The callers' values after what an instruction does to words of the frame. Pointers are
    /// trusted not to lead to these, as the contract does (docs/proof/linux.md, P4).
    fn after_words(&self, i: &Instruction) -> [Callers; COUNT] {
        let top = self.frame[RSP];
        let pushes = i.mnemonic() == Mnemonic::Push || i.mnemonic() == Mnemonic::Pushfq;
        let pushed_at = top.map(|top| top + i64::from(i.stack_pointer_increment()));
        let base = number(i.memory_base()).and_then(|n| self.frame[n]);
        let written = base.filter(|_| !held::only_reads(i)).map(|base| {
            let start = base.wrapping_add(i.memory_displacement64() as i64);
            start - 7..start + i.memory_size().size() as i64
        });
        let is_indexed = i.memory_index() != Register::None;
        array::from_fn(|n| {
            let Callers { here, pushed } = self.callers[n];
            let lost = |word: &i64| {
                let is_written = written
                    .as_ref()
                    .is_some_and(|w| is_indexed || w.contains(word));
                is_written || pushes && pushed_at.is_none_or(|at| (at - 7..at + 8).contains(word))
            };
            let is_push = i.mnemonic() == Mnemonic::Push
                && i.op0_kind() == OpKind::Register
                && number(i.op0_register()) == Some(n);
            let word = pushed.filter(|word| !lost(word));
            Callers {
                here: word.is_some() && word == top,
                pushed: word.or(pushed_at.filter(|_| is_push && here)),
            }
        })
    }

    /// The register that an instruction makes an address of the frame, and which.
    fn in_frame(&self, i: &Instruction) -> Option<(usize, i64)> {
        let (from, to, by) = match i.mnemonic() {
            _ if !keeps_constant(i) => return None,
            Mnemonic::Lea if i.memory_index() == Register::None => {
                let by = i.memory_displacement64() as i64;
                (number(i.memory_base())?, number(i.op0_register())?, by)
            }
            Mnemonic::Push | Mnemonic::Pop | Mnemonic::Pushfq | Mnemonic::Popfq => {
                (RSP, RSP, i64::from(i.stack_pointer_increment()))
            }
            Mnemonic::Add | Mnemonic::Sub if adds_to_rsp(i) => {
                let by = i.immediate(1) as i64;
                (
                    RSP,
                    RSP,
                    if i.mnemonic() == Mnemonic::Add {
                        by
                    } else {
                        -by
                    },
                )
            }
            _ => return None,
        };
        Some((to, self.frame[from]?.checked_add(by)?))
    }
}

impl Callers {
    fn meet(self, other: Callers) -> Callers {
        Callers {
            here: self.here && other.here,
            pushed: self.pushed.filter(|_| self.pushed == other.pushed),
        }
    }

    fn over_call(self, is_kept: bool) -> Callers {
        Callers {
            here: self.here && is_kept,
            ..self
        }
    }
}

/// Whether an instruction pops a whole register.
fn pops(i: &Instruction, register: usize) -> bool {
    i.code() == Code::Pop_r64 && number(i.op0_register()) == Some(register)
}

/// The number of a register of 64 bits.
pub(super) fn number(register: Register) -> Option<usize> {
    register
        .is_gpr64()
        .then(|| register as usize - Register::RAX as usize)
}

/// The registers of a whole copy.
fn copied(i: &Instruction) -> Option<(usize, usize)> {
    let is_copy = matches!(i.code(), Code::Mov_r64_rm64 | Code::Mov_rm64_r64)
        && i.op0_kind() == OpKind::Register
        && i.op1_kind() == OpKind::Register;
    let registers = number(i.op1_register()).zip(number(i.op0_register()));
    registers.filter(|_| is_copy)
}

fn adds_to_rsp(i: &Instruction) -> bool {
    i.op0_kind() == OpKind::Register
        && i.op0_register() == Register::RSP
        && matches!(
            i.op1_kind(),
            OpKind::Immediate8to64 | OpKind::Immediate32to64
        )
}

/// Whether an instruction leaves `rsp`, or moves it by a constant.
pub(super) fn keeps_constant(i: &Instruction) -> bool {
    match i.mnemonic() {
        Mnemonic::Call | Mnemonic::Ret | Mnemonic::Push | Mnemonic::Pushfq | Mnemonic::Popfq => {
            true
        }
        Mnemonic::Pop => i.op0_kind() != OpKind::Register || i.op0_register() != Register::RSP,
        Mnemonic::Add | Mnemonic::Sub if adds_to_rsp(i) => true,
        Mnemonic::Lea if i.op0_register() == Register::RSP => {
            i.memory_base() == Register::RSP && i.memory_index() == Register::None
        }
        _ => !writes(i, Register::RSP),
    }
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions};

    use super::*;
    use crate::mutants::sample::{at, function, with_call};

    /// `mov %eax,(%r10)` and `mov (%r10),%eax`.
    const STORE: [u8; 3] = [0x41, 0x89, 0x02];
    const LOAD: [u8; 3] = [0x41, 0x8b, 0x02];
    /// `call` of something.
    const CALL: [u8; 5] = [0xe8, 0, 0, 0, 0];

    fn registers(object: &Object<'_>) -> Registers {
        Registers::new(object, &reach::reached(object), Target::Hypervisor)
    }

    fn decoded(bytes: &[u8], ip: u64) -> Instruction {
        Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
    }

    /// Whether the access is harmless by `rdx`, behind `sub $0x18,%rsp`, `lea N(%rsp),%rdx`
    /// and more, in a function that goes on so.
    fn is_in_frame(access: [u8; 3], n: i8, more: &[u8], rest: &[u8]) -> bool {
        let code = [
            &[0x48, 0x83, 0xec, 0x18, 0x48, 0x8d, 0x54, 0x24, n as u8],
            more,
        ]
        .concat();
        let end = code.len() as u64;
        let object = function(&[&code, &access[..], rest, &[0xc3]].concat());
        let object = match more == CALL {
            true => with_call(object, end - 5, "printk"),
            false => object,
        };
        registers(&object).is_in_frame(&decoded(&access, end), Register::RDX, at(end))
    }

    #[test]
    fn an_access_between_rsp_and_the_return_address_is_in_the_frame() {
        for n in [0, 8, 0x14] {
            assert!(is_in_frame(STORE, n, &[], &[]), "{n}");
            assert!(is_in_frame(LOAD, n, &[], &[]), "{n}");
        }
        // Over the return address; above it; below `rsp`.
        for n in [0x15, 0x18, 0x20, -1, -8] {
            assert!(!is_in_frame(STORE, n, &[], &[]), "{n}");
            assert!(!is_in_frame(LOAD, n, &[], &[]), "{n}");
        }
    }

    #[test]
    fn pushes_and_pops_move_the_frame() {
        // pop %rcx: what `rdx` leads to is below `rsp`. push %rcx: it is not.
        assert!(!is_in_frame(STORE, 0, &[0x59], &[]));
        assert!(is_in_frame(STORE, 8, &[0x59], &[]));
        assert!(is_in_frame(STORE, -8, &[0x51], &[]));
        // pop %rsp, and $-16,%rsp: nothing is known.
        assert!(!is_in_frame(LOAD, 8, &[0x5c], &[]));
        assert!(!is_in_frame(LOAD, 8, &[0x48, 0x83, 0xe4, 0xf0], &[]));
    }

    #[test]
    fn a_register_that_something_writes_is_not_known() {
        // lea 8(%rdx),%rdx; lea 8(%rdx,%rax),%rdx; mov %edx,%edx; inc %rdx
        assert!(is_in_frame(LOAD, 0, &[0x48, 0x8d, 0x52, 0x08], &[]));
        assert!(!is_in_frame(LOAD, 0, &[0x48, 0x8d, 0x54, 0x02, 0x08], &[]));
        assert!(!is_in_frame(LOAD, 0, &[0x89, 0xd2], &[]));
        assert!(!is_in_frame(LOAD, 0, &[0x48, 0xff, 0xc2], &[]));
        // A call; in (%dx),%eax, which may be VMware's.
        assert!(!is_in_frame(LOAD, 0, &CALL, &[]));
        assert!(!is_in_frame(LOAD, 0, &[0xed], &[]));
        // jb over mov %rax,%rdx: on one path it is another one.
        assert!(!is_in_frame(LOAD, 0, &[0x72, 0x03, 0x48, 0x89, 0xc2], &[]));
    }

    #[test]
    fn nothing_is_written_where_a_word_may_become_rsp() {
        // mov %rbp,%rsp; leave; pop %rsp
        for rest in [&[0x48, 0x89, 0xec][..], &[0xc9], &[0x5c]] {
            assert!(!is_in_frame(STORE, 8, &[], rest), "{rest:x?}");
            assert!(is_in_frame(LOAD, 8, &[], rest), "{rest:x?}");
        }
    }

    /// Whether `mov %rbx,%rdi` copies nothing after `mov %rdi,%rbx` and more.
    fn copies_nothing(more: &[u8], called: &str) -> bool {
        let copy = [0x48, 0x89, 0xdf];
        let code = [&[0x48, 0x89, 0xfb], more].concat();
        let end = code.len() as u64;
        let object = function(&[&code[..], &copy, &[0xc3]].concat());
        let object = match more == CALL {
            true => with_call(object, end - 5, called),
            false => object,
        };
        registers(&object).copies_nothing(&decoded(&copy, end), at(end))
    }

    #[test]
    fn a_copy_of_what_is_there_copies_nothing() {
        assert!(copies_nothing(&[], ""));
        // mov %rbx,%rcx; xor %ebx,%ebx; mov %rcx,%rbx
        let by_a_third = [0x48, 0x89, 0xd9, 0x31, 0xdb, 0x48, 0x89, 0xcb];
        assert!(copies_nothing(&by_a_third, ""));
        assert!(copies_nothing(&CALL, "twin_slow_rax"));
        // mov %edi,%edi; mov %ebx,%ebx; mov %bl,%dil; xchg %rbx,%rax
        for other in [
            &[0x89, 0xff][..],
            &[0x89, 0xdb],
            &[0x40, 0x88, 0xdf],
            &[0x48, 0x93],
        ] {
            assert!(!copies_nothing(other, ""), "{other:x?}");
        }
        assert!(!copies_nothing(&CALL, "twin_slow_rdi"));
        assert!(!copies_nothing(&CALL, "printk"));
        // jb over xor %ebx,%ebx
        assert!(!copies_nothing(&[0x72, 0x02, 0x31, 0xdb], ""));
    }

    /// Whether a call of `g`, which has this code, keeps `rbx` in a module.
    fn keeps(g: &[u8]) -> bool {
        // f: sub $8,%rsp; mov %rsp,%rbx; call g; mov (%rbx),%eax; add $8,%rsp; ret
        let f = [
            &[
                0x53, 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xe3, 0xe8, 8, 0, 0, 0,
            ][..],
            &[0x8b, 0x03, 0x48, 0x83, 0xc4, 0x08, 0x5b, 0xc3],
        ];
        let mut object = function(&[&f.concat(), g].concat());
        let mut symbol = object.symbols[1].clone();
        symbol.value = 21;
        object.symbols.push(symbol);
        let access = decoded(&[0x8b, 0x00], 13);
        let reached = &reach::reached(&object);
        let of = |target| Registers::new(&object, reached, target);
        assert!(!of(Target::Hypervisor).is_in_frame(&access, Register::RBX, at(13)));
        of(Target::Linux).is_in_frame(&access, Register::RBX, at(13))
    }

    #[test]
    fn a_call_keeps_what_every_function_keeps() {
        // ret; push %rbx, xor %ebx,%ebx, pop %rbx, ret
        assert!(keeps(&[0xc3]));
        assert!(keeps(&[0x53, 0x31, 0xdb, 0x5b, 0xc3]));
        // xor %ebx,%ebx; then pushed; another word popped; another register pushed
        assert!(!keeps(&[0x31, 0xdb, 0xc3]));
        assert!(!keeps(&[0x31, 0xdb, 0x53, 0x5b, 0xc3]));
        assert!(!keeps(&[0x53, 0x51, 0x5b, 0x59, 0xc3]));
        assert!(!keeps(&[0x51, 0x31, 0xdb, 0x5b, 0xc3]));
        // push %rbx; mov %eax,(%rsp); pop %rbx: the word is overwritten.
        assert!(!keeps(&[0x53, 0x89, 0x04, 0x24, 0x5b, 0xc3]));
        // push %rbx; pop %rcx; push %rcx... below rsp in between: xor %ebx,%ebx; push; pop.
        assert!(!keeps(&[0x53, 0x59, 0x31, 0xdb, 0x50, 0x5b, 0xc3]));
        // push %rbx; add $8,%rsp; xor %ebx,%ebx; sub $8,%rsp; pop %rbx
        let below = [
            0x53, 0x48, 0x83, 0xc4, 8, 0x31, 0xdb, 0x48, 0x83, 0xec, 8, 0x5b, 0xc3,
        ];
        assert!(!keeps(&below));
    }

    #[test]
    fn a_copy_of_half_a_register_is_none() {
        // mov %edi,%ebx; mov %rbx,%rdi
        let object = function(&[0x89, 0xfb, 0x48, 0x89, 0xdf, 0xc3]);
        let copy = decoded(&[0x48, 0x89, 0xdf], 2);
        assert!(!registers(&object).copies_nothing(&copy, at(2)));
    }
}
