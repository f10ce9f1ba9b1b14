//! String instructions (paper, 5.1.1): a loop over chunks that the current translations
//! cover, with the original instruction inside.

use iced_x86::{Code, Register};
use liveness::Reg;
use twin_abi::stlb;

use super::Emitter;
use crate::analyse::class::{Direction, Repeat, StringOp};
use crate::asm::{Address, Jump, Operand, ShortOnly, cc, r, ri, rr};
use crate::lift::InstIdx;
use crate::plan::{Flags, InstPlan};
use crate::registers::{reg32, reg64};

/// A pointer register, and the register that holds its translation.
#[derive(Clone, Copy)]
struct Pointer {
    register: Reg,
    translated: Reg,
}

/// Role registers of one string site.
struct Roles {
    pointers: Vec<Pointer>,
    /// For the checks and the counts.
    others: Vec<Reg>,
    /// Elements in the chunk.
    count: Option<Reg>,
}

impl Emitter<'_> {
    /// Emits a string instruction.
    pub fn string(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        op: StringOp,
        log2: u8,
        repeat: Repeat,
        direction: Direction,
    ) {
        let roles = string_roles(op, repeat, &Self::roles(plan));
        self.open(plan);
        match repeat {
            Repeat::Once => self.one_element(i, plan, &roles),
            Repeat::Rep | Repeat::Repne => {
                self.repeated(i, plan, op, log2, repeat, direction, &roles)
            }
        }
        self.close(plan);
    }

    /// Without prefix; `movs` is the longest case:
    ///
    /// ```text
    ///     <check of %rdi> -> %v
    ///     <check of %rsi> -> %w
    ///     push  %rdi ; push %rsi
    ///     mov   %v, %rdi ; mov %w, %rsi
    ///     movs
    ///     <rsi = rsi - w + old rsi, same for rdi>
    ///     <flags>
    /// ```
    fn one_element(&mut self, i: InstIdx, plan: &InstPlan, roles: &Roles) {
        self.translate_pointers(i, roles);
        self.restore_flags(plan);
        self.enter_chunk(roles);
        self.operation(i, plan);
        self.leave_chunk(roles);
    }

    /// The original instruction:
    ///
    /// ```text
    ///     push  %rbp                        bytes of a port only
    ///     outsb
    ///     pop   %rbp
    /// ```
    fn operation(&mut self, i: InstIdx, plan: &InstPlan) {
        let saves = plan.class.saves_frame_pointer();
        if saves {
            self.push(Reg::RBP);
        }
        self.copy_plain(i);
        if saves {
            self.pop(Reg::RBP);
        }
    }

    /// With prefix:
    ///
    /// ```text
    ///     lea   (%rsi), %rsi                movs only, see `two_numbers`
    ///     jrcxz done                        flags stay, nothing is reached
    /// loop:
    ///     <check of %rdi> -> %v
    ///     <check of %rsi> -> %w
    ///     <elements covered from %rdi> -> %n
    ///     <elements covered from %rsi> -> %o
    ///     cmp   %o, %n ; cmova %o, %n
    ///     <elements between %rsi and %rdi>  movs only, see `apart`
    ///     cmp   %rcx, %n ; cmova %rcx, %n   the chunk
    ///     sub   %n, %rcx ; push %rcx        elements left after it
    ///     push  %rdi ; push %rsi
    ///     mov   %v, %rdi ; mov %w, %rsi ; mov %n, %rcx
    ///     rep movs
    ///     <rsi = rsi - w + old rsi, same for rdi>       without flags
    ///     pop   %n ; lea (%rcx,%n), %rcx
    ///     jne   done                        repe only: stopped early
    ///     jrcxz done
    ///     jmp   loop
    /// done:
    /// ```
    #[allow(
        clippy::too_many_arguments,
        reason = "each is a property of the one instruction"
    )]
    fn repeated(
        &mut self,
        i: InstIdx,
        plan: &InstPlan,
        op: StringOp,
        log2: u8,
        repeat: Repeat,
        direction: Direction,
        roles: &Roles,
    ) {
        let done = self.labels.fresh();
        let n = roles
            .count
            .expect("a repeated string instruction has a count register");
        let overlap = op.copies() && !self.rules.translates_to_itself;
        if overlap {
            self.two_numbers();
        }
        self.around(ShortOnly::JRCXZ, |e| e.asm.branch(Jump::Always, done));
        let again = self.fresh_here();
        self.translate_pointers(i, roles);
        for (k, pointer) in roles.pointers.iter().enumerate() {
            let count = if k == 0 { n } else { roles.others[0] };
            self.covered(pointer.register, count, log2, direction);
            if k > 0 {
                self.minimum(n, count);
            }
        }
        if overlap {
            self.apart(n, roles.others[0], log2);
        }
        self.minimum(n, Reg::RCX);
        self.emit(&rr(Code::Sub_r64_rm64, Register::RCX, reg64(n)));
        self.push(Reg::RCX);
        self.enter_chunk(roles);
        self.mov(n, Reg::RCX);
        self.operation(i, plan);
        self.leave_chunk(roles);
        self.pop(n);
        self.lea(&Operand::indexed(Reg::RCX, n, 0), Reg::RCX);
        match (op.compares(), repeat) {
            (true, Repeat::Repne) => self.asm.branch(Jump::If(cc::E), done),
            (true, Repeat::Rep | Repeat::Once) => self.asm.branch(Jump::If(cc::NE), done),
            (false, _) => {}
        }
        self.asm.branch_unless(ShortOnly::JRCXZ, again, done);
        self.place(done);
        // Comparing operations leave the flags of their last element.
        debug_assert!(!op.compares() || plan.flags == Flags::Dead);
        self.restore_flags(plan);
    }

    /// Source and target are two numbers for the verifier, also where the driver has just
    /// copied one to the other. It has one name for a number: with one before the loop and
    /// two after the first chunk, it would not know at the labels of `apart` whose the
    /// translations are, and refuse the chunk.
    ///
    /// ```text
    ///     lea   (%rsi), %rsi
    /// ```
    fn two_numbers(&mut self) {
        self.lea(&Operand::at(Reg::RSI, 0), Reg::RSI);
    }

    fn translate_pointers(&mut self, i: InstIdx, roles: &Roles) {
        for pointer in &roles.pointers {
            self.check(
                i,
                Address::Copy(pointer.register),
                pointer.translated,
                &roles.others,
            );
        }
    }

    fn enter_chunk(&mut self, roles: &Roles) {
        for pointer in &roles.pointers {
            self.push(pointer.register);
        }
        for pointer in &roles.pointers {
            self.mov(pointer.translated, pointer.register);
        }
    }

    fn leave_chunk(&mut self, roles: &Roles) {
        for pointer in roles.pointers.iter().rev() {
            let old = roles.others[0];
            self.pop(old);
            self.untranslate(pointer, old);
        }
    }

    /// `not` and `lea` undo a translation without touching the flags:
    /// `pointer = pointer - translated + address`.
    ///
    /// ```text
    ///     not   %translated
    ///     lea   1(%pointer,%translated), %pointer
    ///     lea   (%pointer,%address), %pointer
    /// ```
    fn untranslate(&mut self, pointer: &Pointer, address: Reg) {
        let (register, translated) = (pointer.register, pointer.translated);
        self.emit(&r(Code::Not_rm64, reg64(translated)));
        self.lea(&Operand::indexed(register, translated, 0).plus(1), register);
        self.lea(&Operand::indexed(register, address, 0), register);
    }

    /// The number of elements that the window certainly holds from a pointer on, at least
    /// one. Upwards there are `2 * PAGE - offset` bytes; rounding down one byte earlier
    /// costs nothing. Downwards these are the element at the pointer and those that begin
    /// between it and the start of its page.
    ///
    /// ```text
    ///     mov   %edi, %nd
    ///     and   $0xfff, %nd
    ///     xor   $0x1fff, %nd                forward
    ///     shr   $log2, %nd
    ///     add   $1, %nd                     backward
    /// ```
    fn covered(&mut self, pointer: Reg, n: Reg, log2: u8, direction: Direction) {
        const OFFSET_MASK: i32 = stlb::PAGE_SIZE as i32 - 1;
        const LAST_BYTE: i32 = (stlb::WINDOW_PAGES * stlb::PAGE_SIZE) as i32 - 1;
        self.emit(&rr(Code::Mov_r32_rm32, reg32(n), reg32(pointer)));
        self.emit(&ri(Code::And_rm32_imm32, reg32(n), OFFSET_MASK));
        if direction == Direction::Forward {
            self.emit(&ri(Code::Xor_rm32_imm32, reg32(n), LAST_BYTE));
        }
        if log2 > 0 {
            self.emit(&ri(Code::Shr_rm32_imm8, reg32(n), i32::from(log2)));
        }
        if direction == Direction::Backward {
            self.emit(&ri(Code::Add_rm32_imm32, reg32(n), 1));
        }
    }

    /// `n = min(n, elements between source and target)`, at least one: no byte of a
    /// chunk is both read and written.
    ///
    /// The pointers are translated separately, so strings that overlap in dom0 are two
    /// mappings of the same pages here. `rep movs` compares linear addresses: if these
    /// do not overlap, it moves groups of elements at a time and loads ahead of its own
    /// stores (SDM volume 1, 7.3.9.3; volume 3, 8.2.4, whose condition for it is that
    /// source and destination do not overlap). Neither way matters if the bytes read and
    /// the bytes written are disjoint, or if the chunk is one element.
    ///
    /// ```text
    ///     lea   0x1fff(%rdi), %m            no chunk has more bytes than that
    ///     sub   %rsi, %m
    ///     cmp   $0x3ffe, %m
    ///     ja    apart
    ///     sub   $0x1fff, %md
    ///     jae   above
    ///     neg   %md
    /// above:
    ///     shr   $log2, %md
    ///     cmp   $1, %md ; adc $0, %md       nearer than an element: one
    ///     cmp   %m, %n ; cmova %m, %n
    /// apart:
    /// ```
    fn apart(&mut self, n: Reg, m: Reg, log2: u8) {
        const MOST_BYTES: i32 = (stlb::WINDOW_PAGES * stlb::PAGE_SIZE) as i32 - 1;
        let (above, apart) = (self.labels.fresh(), self.labels.fresh());
        self.lea(&Operand::at(Reg::RDI, MOST_BYTES.into()), m);
        self.emit(&rr(Code::Sub_r64_rm64, reg64(m), Register::RSI));
        self.emit(&ri(Code::Cmp_rm64_imm32, reg64(m), 2 * MOST_BYTES));
        self.asm.branch(Jump::If(cc::A), apart);
        self.emit(&ri(Code::Sub_rm32_imm32, reg32(m), MOST_BYTES));
        self.asm.branch(Jump::If(cc::AE), above);
        self.emit(&r(Code::Neg_rm32, reg32(m)));
        self.place(above);
        if log2 > 0 {
            self.emit(&ri(Code::Shr_rm32_imm8, reg32(m), i32::from(log2)));
        }
        self.emit(&ri(Code::Cmp_rm32_imm8, reg32(m), 1));
        self.emit(&ri(Code::Adc_rm32_imm8, reg32(m), 0));
        self.minimum(n, m);
        self.place(apart);
    }

    /// `n = min(n, other)`, unsigned.
    fn minimum(&mut self, n: Reg, other: Reg) {
        self.emit(&rr(Code::Cmp_r64_rm64, reg64(n), reg64(other)));
        self.emit(&rr(Code::Cmova_r64_rm64, reg64(n), reg64(other)));
    }
}

fn string_roles(op: StringOp, repeat: Repeat, scratch: &[Reg]) -> Roles {
    let mut free = scratch.iter().copied();
    let mut next = || {
        free.next()
            .expect("the plan has as many registers as plan::Need says")
    };
    let mut pointers = Vec::with_capacity(2);
    if op.translates_rdi() {
        pointers.push(Pointer {
            register: Reg::RDI,
            translated: next(),
        });
    }
    if op.translates_rsi() {
        pointers.push(Pointer {
            register: Reg::RSI,
            translated: next(),
        });
    }
    let count = (repeat != Repeat::Once).then(&mut next);
    Roles {
        pointers,
        others: free.collect(),
        count,
    }
}
