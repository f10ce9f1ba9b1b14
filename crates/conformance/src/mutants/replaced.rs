//! Mutants as long as the check: an instruction deleted, swapped with its
//! neighbour, with another register, a branch or call leading elsewhere.

use elf_loader::{Object, Relocation, SymbolId};
use iced_x86::{Code, Encoder, FlowControl, Instruction, Mnemonic, OpKind, Register};
use process_lab::random::Random;
use twin_abi::names;

use super::mutant::Change;
use super::{Check, Mutant, MutantKind, Piece};

impl Check {
    /// Its mutants. `others` are further checks of the same object: places to
    /// branch to. With `everywhere`, each other register is tried, and branches to every
    /// byte of the check; otherwise one register, and branches to every instruction.
    pub fn mutants(
        &self,
        object: &Object<'_>,
        others: &[Check],
        everywhere: bool,
        random: &mut Random,
    ) -> Vec<Mutant> {
        let mut all = Vec::new();
        let count = self.pieces.len() - 1;
        for i in 0..count {
            let spare = self.only_says_address(i);
            all.push(self.deleted(&self.pieces[i], spare));
            all.push(
                self.swapped(i)
                    .harmless_if(i == 0 && self.facts.copies_nothing),
            );
            all.extend(self.registers(&self.pieces[i], spare, everywhere, random));
        }
        for piece in &self.slow {
            all.push(self.deleted(piece, false));
            all.extend(self.registers(piece, false, everywhere, random));
            all.extend(self.other_slow_path(object, piece));
        }
        all.extend(self.retargeted(others, random));
        all.extend(self.inserted(everywhere, random));
        all.extend(self.prefixed(everywhere, random));
        all
    }

    pub(super) fn mutant(
        &self,
        kind: MutantKind,
        piece: &Piece,
        bytes: Vec<u8>,
        relocations: Vec<Relocation>,
        how: &str,
    ) -> Mutant {
        let range = piece.at..piece.at + bytes.len() as u64;
        let moved = relocations
            .into_iter()
            .map(|r| Relocation {
                offset: r.offset + piece.at,
                ..r
            })
            .collect();
        let text = format!("{}: `{}` {how}", self.place, piece.decoded);
        Mutant {
            kind,
            harmless: false,
            text,
            section: self.section,
            range,
            change: Change::Replace(bytes, moved),
        }
    }

    pub(super) fn deleted(&self, piece: &Piece, harmless: bool) -> Mutant {
        let nops = vec![0x90; piece.bytes.len()];
        let mutant = self.mutant(MutantKind::Deleted, piece, nops, Vec::new(), "deleted");
        Mutant { harmless, ..mutant }
    }

    pub(super) fn swapped(&self, i: usize) -> Mutant {
        let (a, b) = (&self.pieces[i], &self.pieces[i + 1]);
        // A branch goes to the same place from where it is now.
        let mut bytes = moved(b, a.at);
        bytes.extend(moved(a, a.at + b.bytes.len() as u64));
        let shifted = |r: &Relocation| Relocation {
            offset: r.offset + b.bytes.len() as u64,
            ..*r
        };
        let relocations = b
            .relocations
            .iter()
            .copied()
            .chain(a.relocations.iter().map(shifted))
            .collect();
        let how = format!("swapped with `{}`", b.decoded);
        self.mutant(MutantKind::Swapped, a, bytes, relocations, &how)
    }

    /// The register that held the address before the check, whole, if there
    /// is one.
    pub(super) fn source(&self) -> Option<Register> {
        let first = &self.pieces[0].decoded;
        match first.mnemonic() {
            Mnemonic::Mov if first.op1_kind() == OpKind::Register => Some(first.op1_register()),
            _ => None,
        }
    }

    /// Whether it copies the address to the register that it came from.
    pub(super) fn is_redundant(&self, piece: &Piece) -> bool {
        let copied = &piece.decoded;
        copied.mnemonic() == Mnemonic::Mov
            && copied.op1_register() == self.pieces[0].decoded.op0_register()
            && self.source() == Some(copied.op0_register())
    }

    /// Whether an instruction only says which address is translated, and nothing else depends on
    /// that, or does nothing.
    pub(super) fn only_says_address(&self, n: usize) -> bool {
        n == 0 && self.facts.counted.is_empty() || self.is_redundant(&self.pieces[n])
    }

    /// Each register operand as another register, or as each other one.
    fn registers(
        &self,
        piece: &Piece,
        spare: bool,
        everywhere: bool,
        random: &mut Random,
    ) -> Vec<Mutant> {
        let mut made = Vec::new();
        let mut attempt = |changed: Instruction, harmless: bool| {
            let Some(bytes) = encode(&changed, piece) else {
                return;
            };
            let kind = match names_rsp(&changed) {
                true => MutantKind::StackPointer,
                false => MutantKind::Register,
            };
            let how = format!("as `{changed}`");
            let mutant = self.mutant(kind, piece, bytes, piece.relocations.clone(), &how);
            made.push(mutant.harmless_if(harmless));
        };
        let mut others = |register| match everywhere {
            true => all_others(register),
            false => vec![other(register, random)],
        };
        for operand in 0..piece.decoded.op_count() {
            if piece.decoded.op_kind(operand) != OpKind::Register {
                continue;
            }
            let register = piece.decoded.op_register(operand);
            let is_copy = piece.decoded.mnemonic() == Mnemonic::Mov && operand == 1;
            let is_first = self.pieces[0].at == piece.at;
            let is_index = self.pieces[1].at == piece.at && register.size() == 4;
            for now in others(register)
                .into_iter()
                .chain([stack_pointer(register)])
            {
                let mut changed = piece.decoded;
                changed.set_op_register(operand, now);
                let now = now.full_register();
                let same = self.source() == Some(now)
                    || is_index && self.facts.alike.contains(&now)
                    || is_first && self.facts.counted.contains(&now);
                // What is written instead is overwritten.
                let spare = spare && (operand > 0 || self.may_overwrite(piece, now));
                attempt(changed, is_copy && same || spare);
            }
        }
        if is_general(piece.decoded.memory_base()) {
            for now in others(piece.decoded.memory_base()) {
                let mut changed = piece.decoded;
                changed.set_memory_base(now);
                attempt(changed, spare);
            }
        }
        made
    }

    fn retargeted(&self, others: &[Check], random: &mut Random) -> Vec<Mutant> {
        let count = self.pieces.len() - 1;
        let branch = &self.pieces[count - 2];
        let mut targets: Vec<u64> = self.pieces.iter().map(|p| p.at).collect();
        targets.extend(self.slow.iter().skip(1).map(|p| p.at));
        let mut made: Vec<_> = targets
            .iter()
            .filter_map(|target| self.branching(branch, *target))
            .collect();
        for other in others.iter().filter(|other| other.section == self.section) {
            let slow = other.pieces[other.pieces.len() - 3]
                .decoded
                .near_branch_target();
            made.extend(self.branching(branch, slow));
        }
        if let Some(back) = self
            .slow
            .iter()
            .find(|p| p.decoded.flow_control() == FlowControl::UnconditionalBranch)
        {
            made.extend(
                targets
                    .iter()
                    .filter_map(|target| self.branching(back, *target)),
            );
            let other = &others[random.below(others.len() as u64) as usize];
            if other.section == self.section {
                made.extend(self.branching(back, other.pieces[other.pieces.len() - 1].at));
            }
        }
        made
    }

    /// The branch with another target that its field reaches.
    pub(super) fn branching(&self, branch: &Piece, target: u64) -> Option<Mutant> {
        if target == branch.decoded.near_branch_target() || !branch.relocations.is_empty() {
            return None;
        }
        let bytes = with_target(branch, branch.at, target)?;
        let how = format!("leading to {target:#x}");
        Some(self.mutant(MutantKind::Retargeted, branch, bytes, Vec::new(), &how))
    }

    /// The call to the slow path of another register.
    fn other_slow_path(&self, object: &Object<'_>, piece: &Piece) -> Vec<Mutant> {
        let slow: Vec<SymbolId> = object
            .symbols()
            .filter(|(_, s)| s.name.starts_with(names::SLOW_PREFIX))
            .map(|(id, _)| id)
            .collect();
        let [call] = piece.relocations.as_slice() else {
            return Vec::new();
        };
        let Some(at) = slow.iter().position(|id| *id == call.symbol) else {
            return Vec::new();
        };
        let symbol = slow[(at + 1) % slow.len()];
        let relocations = vec![Relocation { symbol, ..*call }];
        let how = format!("leading to {}", object.symbol(symbol).name);
        vec![self.mutant(
            MutantKind::Retargeted,
            piece,
            piece.bytes.clone(),
            relocations,
            &how,
        )]
    }
}

/// The instruction's bytes at another address: a branch keeps its target.
fn moved(piece: &Piece, to: u64) -> Vec<u8> {
    if piece.decoded.is_jcc_short_or_near() && piece.relocations.is_empty() {
        return with_target(piece, to, piece.decoded.near_branch_target())
            .unwrap_or_else(|| piece.bytes.clone());
    }
    piece.bytes.clone()
}

/// A direct branch at `at` with this target, in the same number of bytes.
fn with_target(piece: &Piece, at: u64, target: u64) -> Option<Vec<u8>> {
    let mut bytes = piece.bytes.clone();
    let distance = target.wrapping_sub(at);
    write_target(&mut bytes, 0, piece.bytes.len(), distance)?;
    Some(bytes)
}

/// Makes the branch of `length` bytes at offset `at` of the code lead to offset
/// `target`, if its field is wide enough.
pub(super) fn write_target(code: &mut [u8], at: u64, length: usize, target: u64) -> Option<()> {
    let end = at as usize + length;
    let distance = target.wrapping_sub(end as u64) as i64;
    if length <= 3 {
        code[end - 1] = i8::try_from(distance).ok()? as u8;
    } else {
        let distance = i32::try_from(distance).ok()?;
        code[end - 4..end].copy_from_slice(&distance.to_le_bytes());
    }
    Some(())
}

/// The changed instruction, if it has the same shape: equally long, its
/// relocated field where it was.
fn encode(changed: &Instruction, piece: &Piece) -> Option<Vec<u8>> {
    if matches!(changed.code(), Code::INVALID) {
        return None;
    }
    let mut encoder = Encoder::new(64);
    encoder.encode(changed, piece.at).ok()?;
    let offsets = encoder.get_constant_offsets();
    let bytes = encoder.take_buffer();
    let field = piece.relocations.first().map(|r| r.offset as usize);
    let is_kept = field.is_none_or(|at| {
        offsets.has_displacement() && offsets.displacement_offset() == at
            || offsets.has_immediate() && offsets.immediate_offset() == at
    });
    (bytes.len() == piece.bytes.len() && bytes != piece.bytes && is_kept).then_some(bytes)
}

/// The stack pointer by a name of the same width.
fn stack_pointer(register: Register) -> Register {
    match register.size() {
        8 => Register::RSP,
        4 => Register::ESP,
        _ => register,
    }
}

fn names_rsp(i: &Instruction) -> bool {
    (0..i.op_count()).any(|n| {
        i.op_kind(n) == OpKind::Register && i.op_register(n).full_register() == Register::RSP
    })
}

fn is_general(register: Register) -> bool {
    register.is_gpr() && register != Register::RSP
}

/// Another general register of the same width, not the stack pointer.
fn other(register: Register, random: &mut Random) -> Register {
    let all = all_others(register);
    match all.is_empty() {
        true => register,
        false => all[random.below(all.len() as u64) as usize],
    }
}

/// All of them.
fn all_others(register: Register) -> Vec<Register> {
    let (first, last) = match register.size() {
        8 => (Register::RAX, Register::R15),
        4 => (Register::EAX, Register::R15D),
        _ => return Vec::new(),
    };
    Register::values()
        .filter(|r| *r >= first && *r <= last && *r != register)
        .filter(|r| r.full_register() != Register::RSP)
        .collect()
}
