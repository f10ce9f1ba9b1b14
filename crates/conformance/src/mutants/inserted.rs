//! Mutants that are longer than the check: an instruction twice, a branch into
//! the check's middle, the stack pointer moved, an access beyond what the check
//! covers.

use elf_loader::Object;
use iced_x86::{Encoder, Mnemonic};
use process_lab::random::Random;
use twin_abi::stlb;

use super::held::only_reads;
use super::mutant::Change;
use super::splice::New;
use super::{Check, Mutant, MutantKind, Piece};

/// Conditional, so that the check is entered both ways.
const JB: [u8; 6] = [0x0f, 0x82, 0, 0, 0, 0];

impl Check {
    /// All of them; into every byte of the check if `everywhere`, else into every
    /// instruction.
    pub(super) fn inserted(&self, everywhere: bool, random: &mut Random) -> Vec<Mutant> {
        let mut made = Vec::new();
        let check = &self.pieces[..self.pieces.len() - 1];
        for (n, piece) in check.iter().enumerate() {
            let spare = self.only_says_address(n) || is_idempotent(piece);
            made.push(self.twice(piece, spare));
        }
        for piece in &self.slow {
            made.push(self.twice(piece, is_idempotent(piece)));
        }
        made.extend(self.entered(everywhere));
        made.extend(self.stack_moved(random));
        made.extend(self.grown());
        made
    }

    pub(super) fn splice(
        &self,
        kind: MutantKind,
        at: u64,
        length: usize,
        new: Vec<New>,
        how: &str,
    ) -> Mutant {
        Mutant {
            kind,
            harmless: false,
            text: format!("{}: {how}", self.place),
            section: self.section,
            range: at..at + length as u64,
            change: Change::Splice(new),
        }
    }

    pub(super) fn twice(&self, piece: &Piece, harmless: bool) -> Mutant {
        let how = format!("`{}` twice", piece.decoded);
        let new = vec![New::copy(piece)];
        let mutant = self.splice(MutantKind::Duplicated, piece.at, 0, new, &how);
        Mutant { harmless, ..mutant }
    }

    /// A branch before the check that skips part of it.
    fn entered(&self, everywhere: bool) -> Vec<Mutant> {
        let start = self.pieces[0].at;
        let end = self.pieces[self.pieces.len() - 1].at;
        let instructions: Vec<u64> = self.pieces.iter().map(|p| p.at).collect();
        (start + 1..=end)
            .filter(|at| everywhere || instructions.contains(at))
            .map(|at| {
                let how = format!("entered at its byte {}", at - start);
                let branch = New {
                    target: Some(at),
                    ..New::plain(&JB)
                };
                let mutant = self.splice(MutantKind::Entered, start, 0, vec![branch], &how);
                let held = self.facts.held && self.facts.counted.is_empty();
                let skips_all = at == end && (held || self.facts.needless);
                let harmless = instructions.contains(&at) && self.skips_nothing(at) || skips_all;
                Mutant { harmless, ..mutant }
            })
            .collect()
    }

    /// Whether the instructions before `at` only say which address is translated; see the
    /// module [`super`].
    fn skips_nothing(&self, at: u64) -> bool {
        let skipped = self.pieces.iter().take_while(|p| p.at < at);
        skipped.enumerate().all(|(n, _)| self.only_says_address(n))
    }

    /// `push`, `pop` and `lea` on the stack pointer at some place in the check.
    fn stack_moved(&self, random: &mut Random) -> Vec<Mutant> {
        let moves: [(&str, &[u8]); 5] = [
            ("push %rax", &[0x50]),
            ("pop %rax", &[0x58]),
            ("lea -8(%rsp),%rsp", &[0x48, 0x8d, 0x64, 0x24, 0xf8]),
            ("lea 8(%rsp),%rsp", &[0x48, 0x8d, 0x64, 0x24, 0x08]),
            ("mov %rax,%rsp", &[0x48, 0x89, 0xc4]),
        ];
        let made = moves.into_iter().map(|(name, bytes)| {
            let before = &self.pieces[random.below(self.pieces.len() as u64) as usize];
            let how = format!("`{name}` before `{}`", before.decoded);
            let new = vec![New::plain(bytes)];
            self.splice(MutantKind::StackPointer, before.at, 0, new, &how)
        });
        made.collect()
    }

    /// The access with displacements just outside what the check covers.
    fn grown(&self) -> Vec<Mutant> {
        let access = &self.pieces[self.pieces.len() - 1];
        let i = &access.decoded;
        let size = i.memory_size().size() as i64;
        if !self.is_accessed() || size == 0 || !access.relocations.is_empty() {
            return Vec::new();
        }
        let covered = stlb::COVERED as i64;
        [
            covered - size + 1,
            covered,
            -(stlb::BELOW as i64) - 1,
            i64::from(i32::MAX),
            i64::from(i32::MIN),
        ]
        .into_iter()
        .filter_map(|displacement| {
            let mut changed = *i;
            changed.set_memory_displacement64(displacement as u64);
            changed.set_memory_displ_size(8);
            let mut encoder = Encoder::new(64);
            encoder.encode(&changed, access.at).ok()?;
            let how = format!("`{i}` at {displacement:#x}");
            let new = vec![New::plain(&encoder.take_buffer())];
            let mutant = self.splice(MutantKind::Grown, access.at, access.bytes.len(), new, &how);
            let harmless = self.may_read_anything() && only_reads(i);
            Some(Mutant { harmless, ..mutant })
        })
        .collect()
    }
}

/// Whether the instruction is idempotent.
fn is_idempotent(piece: &Piece) -> bool {
    let i = &piece.decoded;
    let reads_itself = i.memory_base() == i.op0_register() || i.memory_index() == i.op0_register();
    match i.mnemonic() {
        Mnemonic::Mov | Mnemonic::Lea => !reads_itself,
        Mnemonic::And | Mnemonic::Cmp | Mnemonic::Ja | Mnemonic::Jne | Mnemonic::Jmp => true,
        _ => false,
    }
}

/// The range of the function that a check is in.
pub(super) fn function_of(object: &Object<'_>, check: &Check) -> std::ops::Range<u64> {
    let at = check.pieces[0].at;
    let inside = |s: &&elf_loader::Symbol<'_>| {
        s.place == elf_loader::Place::In(check.section) && (s.value..s.value + s.size).contains(&at)
    };
    let symbol = object.symbols.iter().find(inside);
    symbol.map_or(at..at, |s| s.value..s.value + s.size)
}
