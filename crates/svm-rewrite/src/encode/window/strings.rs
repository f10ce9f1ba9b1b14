//! String instructions of a scheme with a window: their operands have 64 bits and no prefix
//! for `rdi` (SDM volume 1, 7.3.9), so the registers hold pointers into the window while
//! one runs.

use iced_x86::Code;
use liveness::Reg;

use super::Emitter;
use crate::analyse::class::{Direction, Repeat, StringOp};
use crate::asm::import::Import;
use crate::asm::{Operand, r, rr};
use crate::lift::InstIdx;
use crate::plan::{CutBy, InstPlan};
use crate::registers::{reg32, reg64};

impl Emitter<'_> {
    /// The pointers of a string instruction become pointers into the window, and it runs
    /// once: the window shows every page at one place, and a guard ends it at either side.
    /// No flag is changed: `cmps` and `scas` leave them as they are where `rcx` is 0.
    pub(super) fn string_in_window(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        op: StringOp,
        log2: u8,
        repeat: Repeat,
        direction: Direction,
    ) {
        let mut pointers = Vec::with_capacity(2);
        pointers.extend(op.translates_rdi().then_some(Reg::RDI));
        pointers.extend(op.translates_rsi().then_some(Reg::RSI));
        self.open(plan);
        if op.compares() {
            self.stopping_early(i, plan, &pointers);
        } else {
            self.running_to_the_end(i, plan, &pointers, |p| end(p, log2, repeat, direction));
        }
        self.close(plan);
    }

    /// `movs`, `stos`, `lods`:
    ///
    /// ```text
    ///     <where the pointer ends> -> %t ; push %t        each
    ///     movabs $twin_window, %t
    ///     mov   %edi, %edi ; lea (%rdi,%t), %rdi          each; pext for 42 bits
    ///     rep movsb
    ///     pop   %rdi                                      each
    /// ```
    fn running_to_the_end(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        pointers: &[Reg],
        end: impl Fn(Reg) -> End,
    ) {
        let t = Self::roles(plan)[0];
        for &pointer in pointers {
            match end(pointer) {
                End::At(operand) => self.lea(&operand, t),
                End::Below { element, log2 } => {
                    self.mov(Reg::RCX, t);
                    self.emit(&r(Code::Not_rm64, reg64(t)));
                    self.lea(&Operand::indexed(pointer, t, log2).plus(element), t);
                }
            }
            self.push(t);
        }
        self.point_into_window(t, pointers, plan);
        self.copy_plain(i);
        for &pointer in pointers.iter().rev() {
            self.pop(pointer);
        }
    }

    /// `cmps`, `scas`:
    ///
    /// ```text
    ///     mov   %rdi, %t                                  each
    ///     mov   %edi, %edi
    ///     not   %rdi
    ///     lea   1(%t,%rdi), %t                            its high half
    ///     not   %rdi
    ///     push  %t
    ///     movabs $twin_window, %t
    ///     mov   %edi, %edi ; lea (%rdi,%t), %rdi          each
    ///     repne scasb
    ///     movabs $twin_window, %t
    ///     not   %rdi ; lea (%rdi,%t), %rdi ; not %rdi     each: less the window's start
    ///     pop   %t ; lea (%rdi,%t), %rdi                  each
    /// ```
    fn stopping_early(&mut self, i: InstIdx, plan: &InstPlan, pointers: &[Reg]) {
        let t = Self::roles(plan)[0];
        let not = |p: Reg| r(Code::Not_rm64, reg64(p));
        for &pointer in pointers {
            self.mov(pointer, t);
            self.cut_pointer(pointer, plan);
            self.emit(&not(pointer));
            self.lea(&Operand::indexed(t, pointer, 0).plus(1), t);
            self.emit(&not(pointer));
            self.push(t);
        }
        self.point_into_window(t, pointers, plan);
        self.copy_plain(i);
        self.constant(Import::Window, t);
        for &pointer in pointers {
            self.emit(&not(pointer));
            self.lea(&Operand::indexed(pointer, t, 0), pointer);
            self.emit(&not(pointer));
        }
        for &pointer in pointers.iter().rev() {
            self.pop(t);
            self.lea(&Operand::indexed(pointer, t, 0), pointer);
        }
    }

    /// Makes pointers into the window of pointers. Keeping flags around a cut takes rax, which
    /// may be `t`, so it comes first.
    fn point_into_window(&mut self, t: Reg, pointers: &[Reg], plan: &InstPlan) {
        let first = self.cuts_in_registers() && self.cut_apart(plan) == CutBy::AndKeepingFlags;
        if first {
            for &pointer in pointers {
                self.cut_pointer(pointer, plan);
            }
        }
        self.constant(Import::Window, t);
        for &pointer in pointers {
            if !first {
                self.cut_pointer(pointer, plan);
            }
            self.lea(&Operand::indexed(pointer, t, 0), pointer);
        }
    }

    /// `mov %edi, %edi`, or `pext twin_window_mask(%rip), %rdi, %rdi`.
    fn cut_pointer(&mut self, pointer: Reg, plan: &InstPlan) {
        match self.cuts_in_registers() {
            true => self.cut(pointer, pointer, self.cut_apart(plan)),
            false => self.emit(&rr(Code::Mov_r32_rm32, reg32(pointer), reg32(pointer))),
        }
    }
}

/// Where a pointer is after a string instruction.
enum End {
    /// At this address.
    At(Operand),
    /// `rcx` elements of so many bytes below: `pointer + element + element * ~rcx`.
    Below { element: i64, log2: u8 },
}

fn end(pointer: Reg, log2: u8, repeat: Repeat, direction: Direction) -> End {
    let element = 1 << log2;
    match (repeat, direction) {
        (Repeat::Once, Direction::Forward) => End::At(Operand::at(pointer, element)),
        (Repeat::Once, Direction::Backward) => End::At(Operand::at(pointer, -element)),
        (_, Direction::Forward) => End::At(Operand::indexed(pointer, Reg::RCX, log2)),
        (_, Direction::Backward) => End::Below { element, log2 },
    }
}
