//! What one instruction does to what is known, and whether it may.
//!
//! [`step`] takes the facts before an instruction and gives those after it. An
//! instruction that no rule speaks of makes the registers that it writes
//! unknown; rules only ever add knowledge to that. Above each rule stands the
//! code it is for.

use std::borrow::Cow;

use twin_abi::{Scheme, stack, stlb};

use crate::domain::{Again, Bound, Direction, Flags, Form, Name, Reg, RegSet, State, Value};
use crate::insn::{Access, Alu, Insn, Memory, Op, Origin, StringKind, TableRead, Target};
use crate::object::Routine;
use crate::stages::{context_top, covered_forward, mask, plus, shift};
use crate::violation::Code;

/// The largest alignment of a frame, in bytes.
const MAX_ALIGNMENT: i64 = 4096;

/// How an instruction's memory operand was proved; also says that the
/// instruction was reached at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proved {
    /// Not reached on any path.
    Unreached,
    /// Reached; no memory operand.
    Reached,
    /// In the own stack frame.
    Stack,
    /// Through a translated address.
    Translated,
    /// A half of a table entry, in a check.
    Table,
    /// A segment base in the CPU's context.
    Context,
    /// Elements of a string instruction.
    String,
    /// A symbol's place, per-CPU data, or an access whose faults the kernel
    /// answers.
    Kernel,
}

/// Where control goes after an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// To the next instruction.
    Fall,
    /// To the next one, after the function at this instruction returned.
    Called(u32),
    /// To another instruction.
    Jump(u32),
    /// To the next one or there; which, the flags decide.
    Branch(u32),
    /// Nowhere that is to be verified.
    End,
}

/// A rule that is not met.
pub type Broken = (Code, Cow<'static, str>);

fn broken<T>(code: Code, reason: &'static str) -> Result<T, Broken> {
    Err((code, Cow::Borrowed(reason)))
}

/// One instruction in the state before it, which becomes the state after it.
pub struct Step<'a> {
    /// Which table reads are valid.
    pub scheme: Scheme,
    /// Whether this is a module for a stock kernel.
    pub linux: bool,
    /// Whether the kernel answers what its memory operand faults with.
    pub faulting: bool,
    /// The name that the instruction gives.
    pub name: Name,
    /// The instruction.
    pub insn: &'a Insn,
    /// The facts.
    pub state: &'a mut State,
}

impl Step<'_> {
    /// Executes the instruction. After an error the state is that after an
    /// instruction of which nothing is known, unless `rsp` is lost: then the
    /// path ends ([`Code::StackPointer`], [`Code::Frame`]).
    pub fn run(mut self) -> Result<(Next, Proved), Broken> {
        let proved = self.memory(&self.insn.memory);
        if self.linux {
            self.overwritten();
        }
        let next = self.effect();
        if self.insn.flags && !sets_flags(self.insn.op) {
            self.state.flags = Flags::Unknown;
        }
        match (next, proved?) {
            (Ok((next, Proved::Reached)), proved) => Ok((next, proved)),
            (next, _) => next,
        }
    }

    /// Registers, flags and control.
    fn effect(&mut self) -> Result<(Next, Proved), Broken> {
        let fall = |()| (Next::Fall, Proved::Reached);
        match self.insn.op {
            Op::Plain | Op::Prefetch => self.clobber().map(fall),
            Op::Copy { d, s } => self.copy(d, s).map(fall),
            Op::Copy32 { d, s } => self.copy32(d, s).map(fall),
            Op::Constant { d } => self.computed(d, RegSet::NONE, Form::Any).map(fall),
            Op::Lea { d, inputs, offset } => self.lea(d, inputs, offset).map(fall),
            Op::Alu { op, d, imm, wide } => self.arithmetic(op, d, imm, wide).map(fall),
            Op::Compare { left, right } => {
                self.state.flags = Flags::Compared { left, right };
                Ok((Next::Fall, Proved::Reached))
            }
            Op::MoveIfAbove { d, s } => self.move_if_above(d, s).map(fall),
            Op::Table { read, r, index } => self
                .table(read, r, index)
                .map(|()| (Next::Fall, Proved::Table)),
            Op::BitAt { r, bits } => self.bit_at(r, bits).map(fall),
            Op::Push => self.push().map(|()| (Next::Fall, Proved::Stack)),
            Op::PushRegister { s } => {
                let pushed = self.state.get(s).form;
                self.push()?;
                let at = self.state.get(Reg::RSP).form;
                self.state.saved.write(at, 8, pushed);
                Ok((Next::Fall, Proved::Stack))
            }
            Op::Load { d } => {
                let loaded = self.saved_at(&self.insn.memory);
                self.set(d, Value::of(loaded)).map(fall)
            }
            Op::Store { s } => {
                let (stored, m) = (self.state.get(s).form, self.insn.memory);
                if let Some(at) = self.frame_place(&m) {
                    self.state.saved.write(at, m.size, stored);
                }
                Ok((Next::Fall, Proved::Reached))
            }
            Op::PopFlags => {
                self.pop(None)?;
                self.state.direction = None;
                Ok((Next::Fall, Proved::Stack))
            }
            Op::Pop { d } => self.pop(Some(d)).map(|()| (Next::Fall, Proved::Stack)),
            Op::PopMemory => self.pop_memory().map(|()| (Next::Fall, Proved::Stack)),
            Op::Leave => self.leave().map(|()| (Next::Fall, Proved::Stack)),
            Op::Ret => self.leaves().map(|()| (Next::End, Proved::Reached)),
            Op::Call(target) => self.call(target).map(|next| (next, Proved::Reached)),
            Op::CallIndirect => self
                .call(Target::Routine(Routine::Imported))
                .map(|next| (next, Proved::Reached)),
            Op::JumpIndirect => self.leaves().map(|()| (Next::End, Proved::Reached)),
            Op::Jump(target) => self.jump(target).map(|next| (next, Proved::Reached)),
            Op::Branch(_, target) => self.branch(target).map(|next| (next, Proved::Reached)),
            Op::Stop => Ok((Next::End, Proved::Reached)),
            Op::Cld => Ok(self.set_direction(Direction::Forward)),
            Op::Std => Ok(self.set_direction(Direction::Backward)),
            Op::String { kind, shift, rep } => self
                .string(kind, shift, rep)
                .map(|()| (Next::Fall, Proved::String)),
        }
    }

    // ---- P1: memory -------------------------------------------------------

    fn memory(&self, m: &Memory) -> Result<Proved, Broken> {
        if m.access == Access::None {
            return Ok(Proved::Reached);
        }
        if self.faulting || m.origin != Origin::Registers {
            return Ok(Proved::Kernel);
        }
        let disp = i64::from(m.disp);
        match self.state.get(m.base).form {
            Form::Stack(_) | Form::Aligned(_) if self.linux && !m.indexed => {
                self.kernel_frame(m).map(|()| Proved::Stack)
            }
            // op disp(%rsp), or through a register that holds a stack address
            Form::Stack(at) if !m.indexed => self
                .frame(i64::from(at) + disp, m.size, m.access)
                .map(|()| Proved::Stack),
            Form::Stack(_) => broken(
                Code::StackBounds,
                "an index register is added to a stack address, which may leave the frame",
            ),
            // op disp(%v)
            Form::Translated(_) if m.indexed => broken(
                Code::Window,
                "an index register is added to a translated address",
            ),
            Form::Translated(_) if !covered(disp, m.size) => {
                Err((Code::Window, window_reason(m).into()))
            }
            Form::Translated(_) => Ok(Proved::Translated),
            // mov GS_BASE_FROM_TOP(%t), %t
            Form::ContextTop => {
                let base = [stack::FS_BASE_FROM_TOP, stack::GS_BASE_FROM_TOP].contains(&disp);
                match base && !m.indexed && m.size == 8 && m.access == Access::Read {
                    true => Ok(Proved::Context),
                    false => broken(Code::Context, "not a read of one of the segment bases"),
                }
            }
            form => Err((Code::Untranslated, untranslated_reason(m.base, form).into())),
        }
    }

    /// Where a memory operand lies in the frame.
    fn frame_place(&self, m: &Memory) -> Option<Form> {
        let in_frame = !m.indexed && m.origin == Origin::Registers;
        self.state
            .get(m.base)
            .form
            .moved(m.disp)
            .filter(|_| in_frame)
    }

    /// What a word of the frame holds.
    fn saved_at(&self, m: &Memory) -> Form {
        self.frame_place(m)
            .map_or(Form::Any, |at| self.state.saved.get(at))
    }

    /// Words of the frame that the instruction may write hold nothing known.
    fn overwritten(&mut self) {
        let m = self.insn.memory;
        if m.access == Access::Write
            && !matches!(self.insn.op, Op::Store { .. })
            && let Some(at) = self.frame_place(&m)
        {
            self.state.saved.write(at, m.size, Form::Any);
        }
    }

    //      op disp(%rsp)
    //      op disp(%rbp)       # and other registers with a frame address
    //
    // In a module for a stock kernel: anywhere from 128 bytes below `rsp` up to
    // what the caller passes, but not the return address.
    fn kernel_frame(&self, m: &Memory) -> Result<(), Broken> {
        const ARGUMENTS: i64 = 1024;
        let place = self.state.get(m.base).form.moved(m.disp);
        let (rsp, size) = (self.state.get(Reg::RSP).form, i64::from(m.size));
        let (at, end, origin) = match (place, self.state.realigned) {
            (Some(Form::Stack(at)), _) => (i64::from(at), i64::from(at) + size, 0),
            // The aligned stack begins at or below where `rsp` was before.
            (Some(Form::Aligned(at)), Some(from)) => {
                let end = i64::from(at) + size;
                (i64::from(at), end + i64::from(from), -MAX_ALIGNMENT)
            }
            _ => return broken(Code::StackBounds, "a stack address that wraps"),
        };
        let lowest = match (rsp, place) {
            (Form::Stack(rsp), Some(Form::Stack(_)))
            | (Form::Aligned(rsp), Some(Form::Aligned(_))) => i64::from(rsp),
            _ => -stack::MAX_FRAME,
        };
        if at < lowest - stack::BELOW_RSP {
            return broken(Code::StackBounds, "more than 128 bytes below %rsp");
        }
        let start = end - size;
        match m.access {
            Access::Write if end > 0 && start + origin < 8 => {
                broken(Code::ReturnSlot, "it may write the return address")
            }
            _ if end > 8 + ARGUMENTS => broken(
                Code::StackBounds,
                "above the arguments that any caller provides",
            ),
            _ => Ok(()),
        }
    }

    /// `size` bytes at `at` from the stack pointer at entry, where the return
    /// address lies.
    fn frame(&self, at: i64, size: u16, access: Access) -> Result<(), Broken> {
        let end = at + i64::from(size);
        let arguments = 8 + stack::INCOMING_ARGS;
        if at < i64::from(self.state.rsp()) - stack::BELOW_RSP {
            return broken(Code::StackBounds, "more than 128 bytes below %rsp");
        }
        match access {
            Access::Write if end > 0 => broken(
                Code::ReturnSlot,
                "it writes the return address or the caller's frame",
            ),
            _ if end > arguments => broken(
                Code::StackBounds,
                "above the arguments that any caller provides",
            ),
            _ => Ok(()),
        }
    }

    //      bts %r, (%v)        # %r at most 63
    fn bit_at(&mut self, r: Reg, bits: u8) -> Result<(), Broken> {
        let offset = self.state.get(r).form;
        self.clobber()?;
        match offset {
            // Per-CPU data; or where the kernel answers for it.
            _ if self.insn.memory.origin == Origin::PerCpu => Ok(()),
            Form::Below(most) if most < bits => Ok(()),
            _ => broken(
                Code::BitOffset,
                "the bit may lie outside the operand's own bytes",
            ),
        }
    }

    //      cld; mov %v,%rdi; mov %w,%rsi; mov %n,%rcx; rep movsq
    fn string(&mut self, kind: StringKind, shift: u8, rep: bool) -> Result<(), Broken> {
        let (pointers, written): (&[Reg], RegSet) = match kind {
            StringKind::Movs | StringKind::Cmps => {
                (&[Reg::RDI, Reg::RSI], Reg::RDI.set().or(Reg::RSI.set()))
            }
            StringKind::Stos | StringKind::Scas | StringKind::Ins => (&[Reg::RDI], Reg::RDI.set()),
            StringKind::Outs => (&[Reg::RSI], Reg::RSI.set()),
            StringKind::Lods => (&[Reg::RSI], Reg::RSI.set().or(Reg::RAX.set())),
        };
        let result = match self.faulting {
            true => Ok(()),
            false => self.pointers(pointers, shift, rep),
        };
        let counter = if rep { Reg::RCX.set() } else { RegSet::NONE };
        self.state.clobber(self.insn.writes.or(written).or(counter));
        result
    }

    fn pointers(&self, pointers: &[Reg], shift: u8, rep: bool) -> Result<(), Broken> {
        let Some(direction) = self.state.direction else {
            return broken(
                Code::StringDirection,
                "the direction flag differs between paths",
            );
        };
        let bounds = self.state.get(Reg::RCX).form.bounds();
        for &pointer in pointers {
            let Form::Translated(from) = self.state.get(pointer).form else {
                return broken(Code::StringPointer, "a pointer is not a translated address");
            };
            let wanted = from.map(|from| Bound {
                from,
                shift,
                direction,
            });
            if rep && !(wanted.is_some() && bounds.contains(&wanted)) {
                return broken(
                    Code::StringCount,
                    "%rcx is not bounded by what is covered from each pointer",
                );
            }
        }
        Ok(())
    }

    fn set_direction(&mut self, direction: Direction) -> (Next, Proved) {
        self.state.direction = Some(direction);
        (Next::Fall, Proved::Reached)
    }

    // ---- Names and stages of a check --------------------------------------

    /// Nothing is known of what the instruction writes.
    fn clobber(&mut self) -> Result<(), Broken> {
        self.state.clobber(self.insn.writes);
        match self.insn.writes.has(Reg::RSP) {
            true => broken(
                Code::StackPointer,
                "%rsp is written with something not constant",
            ),
            false => Ok(()),
        }
    }

    fn set(&mut self, d: Reg, value: Value) -> Result<(), Broken> {
        if d == Reg::RSP {
            return broken(
                Code::StackPointer,
                "%rsp is written with something not constant",
            );
        }
        self.state.write(d, value);
        Ok(())
    }

    //      mov %t, %v          # both hold the address that is named here
    //
    fn copy(&mut self, d: Reg, s: Reg) -> Result<(), Broken> {
        if d == Reg::RSP {
            return match self.state.get(s).form {
                form @ (Form::Stack(_) | Form::Aligned(_)) => self.move_rsp_to(form),
                _ => self.clobber(),
            };
        }
        self.state.name(s, self.name);
        let form = self.state.get(s).form;
        self.set(
            d,
            Value {
                name: Some(self.name),
                form,
            },
        )
    }

    //      mov %vd, %id        # the address's low half
    fn copy32(&mut self, d: Reg, s: Reg) -> Result<(), Broken> {
        if s == Reg::RSP || d == Reg::RSP {
            return self.clobber();
        }
        let name = match self.state.get(s).name {
            Some(name) => name,
            None => {
                self.state.name(s, self.name);
                self.name
            }
        };
        self.set(d, Value::of(Form::Low32(name)))
    }

    /// `%d` gets a named value that the instruction computed from `inputs`.
    fn computed(&mut self, d: Reg, inputs: RegSet, form: Form) -> Result<(), Broken> {
        self.state.rename(self.name);
        self.set(
            d,
            Value {
                name: Some(self.name),
                form,
            },
        )?;
        if !inputs.has(d) {
            self.state.again = Some(Again {
                name: self.name,
                inputs,
            });
        }
        Ok(())
    }

    //      lea ADDRESS, %v
    //      lea disp(%rsp), %r
    fn lea(&mut self, d: Reg, inputs: RegSet, offset: Option<(Reg, i32)>) -> Result<(), Broken> {
        let at = offset.and_then(|(base, disp)| self.state.get(base).form.moved(disp));
        match (d, at) {
            (Reg::RSP, Some(at)) => self.move_rsp_to(at),
            (Reg::RSP, None) => self.clobber(),
            (_, at) => self.computed(d, inputs, at.unwrap_or(Form::Any)),
        }
    }

    fn arithmetic(&mut self, op: Alu, d: Reg, imm: i32, wide: bool) -> Result<(), Broken> {
        let before = self.state.get(d);
        if op == Alu::Cmp {
            self.state.flags = self.window(d, before.form, imm, wide);
            return Ok(());
        }
        if self.linux && d == Reg::RSP && op == Alu::And && wide {
            return self.realign(before.form, imm);
        }
        let form = match op {
            Alu::And => mask(before, imm, wide),
            Alu::Shr => shift(before.form, imm),
            Alu::Xor => covered_forward(before.form, imm),
            Alu::Add => plus(before.form, imm, wide),
            Alu::Sub => imm
                .checked_neg()
                .map_or(Form::Any, |imm| plus(before.form, imm, wide)),
            Alu::Or => context_top(before.form, imm, wide),
            Alu::Cmp => Form::Any,
        };
        match (d, form) {
            (Reg::RSP, Form::Stack(_) | Form::Aligned(_)) => self.move_rsp_to(form),
            _ => self.set(d, Value::of(form)),
        }
    }

    //      cmp $0xfff, %v      # %v = address - tag
    fn window(&self, v: Reg, form: Form, imm: i32, wide: bool) -> Flags {
        match form {
            Form::Offset(address) if wide && i64::from(imm) == stlb::PAGE_SIZE as i64 - 1 => {
                Flags::Window {
                    register: v,
                    address,
                }
            }
            _ => Flags::Unknown,
        }
    }

    //      cmp %m, %n
    //      cmova %m, %n        # n = min(n, m)
    fn move_if_above(&mut self, d: Reg, s: Reg) -> Result<(), Broken> {
        let (old, new) = (self.state.get(d).form, self.state.get(s).form);
        let form = match self.state.flags == (Flags::Compared { left: d, right: s }) {
            true => old.minimum(new),
            false => Form::Any,
        };
        self.set(d, Value::of(form))
    }

    // ---- P5: the table ----------------------------------------------------

    fn table(&mut self, read: TableRead, r: Reg, index: Reg) -> Result<(), Broken> {
        let (value, at) = (self.state.get(r), self.state.get(index).form);
        let entry_of = |address: Name| at == Form::Index(address);
        let result = match (self.scheme, read, value.form, value.name) {
            // sub twin_stlb(%i), %v
            (Scheme::Stlb, TableRead::SubTag, _, Some(v)) if entry_of(v) => Form::Offset(v),
            // add twin_stlb+8(%i), %v
            (Scheme::Stlb, TableRead::AddXlate, Form::Checked(v), _) if entry_of(v) => {
                Form::Translated(Some(v))
            }
            // cmp twin_stlb(%i), %p
            (Scheme::Paper, TableRead::CmpTag, Form::Page(v), _) if entry_of(v) => {
                self.state.flags = Flags::Tag(v);
                return Ok(());
            }
            // xor twin_stlb+8(%i), %v
            (Scheme::Paper, TableRead::XorXlate, _, Some(v))
                if entry_of(v) && self.state.matched == Some(v) =>
            {
                self.state.matched = None;
                Form::Translated(Some(v))
            }
            _ => {
                self.clobber()?;
                self.state.flags = Flags::Unknown;
                return broken(Code::Table, table_reason(self.scheme, read));
            }
        };
        self.set(r, Value::of(result))
    }

    // ---- P4: the stack pointer --------------------------------------------

    fn move_rsp(&mut self, at: i64) -> Result<(), Broken> {
        match self.state.set_rsp(at) {
            true => Ok(()),
            false if at > 0 => broken(Code::Frame, "%rsp would be above the return address"),
            false => broken(Code::Frame, "the frame would reach over the guard page"),
        }
    }

    fn move_rsp_to(&mut self, form: Form) -> Result<(), Broken> {
        match self.state.set_rsp_to(form) {
            true => Ok(()),
            false => broken(
                Code::Frame,
                "%rsp would be above its origin, or reach over the guard page",
            ),
        }
    }

    //      and $-16, %rsp
    //
    // How far it moves depends on `rsp` at entry. Once a function: one more
    // would not be told from the first.
    fn realign(&mut self, before: Form, imm: i32) -> Result<(), Broken> {
        let alignment = -i64::from(imm);
        let (Form::Stack(at), 8..=MAX_ALIGNMENT, None, true) = (
            before,
            alignment,
            self.state.realigned,
            (alignment as u64).is_power_of_two(),
        ) else {
            return self.clobber();
        };
        self.state.realigned = Some(at);
        self.move_rsp_to(Form::Aligned(0))
    }

    fn push(&mut self) -> Result<(), Broken> {
        self.move_rsp(i64::from(self.state.rsp()) - 8)
    }

    fn pop(&mut self, d: Option<Reg>) -> Result<(), Broken> {
        let popped = self.state.saved.get(self.state.get(Reg::RSP).form);
        self.move_rsp(i64::from(self.state.rsp()) + 8)?;
        d.map_or(Ok(()), |d| self.set(d, Value::of(popped)))
    }

    /// `pop disp(%v)`: the address is computed after `rsp` has moved (SDM,
    /// POP), so that `rsp` itself may not be its base.
    fn pop_memory(&mut self) -> Result<(), Broken> {
        let m = self.insn.memory;
        self.pop(None)?;
        match m.base == Reg::RSP {
            true => broken(Code::StackBounds, "pop to memory through %rsp"),
            false => self.memory(&m).map(|_| ()),
        }
    }

    fn leave(&mut self) -> Result<(), Broken> {
        let frame = self.state.get(Reg::RBP).form;
        let (Form::Stack(_) | Form::Aligned(_)) = frame else {
            return broken(
                Code::StackPointer,
                "leave, but %rbp is not known to be in the frame",
            );
        };
        self.move_rsp_to(frame)?;
        self.pop(Some(Reg::RBP))
    }

    // ---- P2: control ------------------------------------------------------

    /// Leaves the function for good: `ret` and tail calls.
    fn leaves(&self) -> Result<(), Broken> {
        match self.state.get(Reg::RSP).form {
            Form::Stack(0) => self.direction_clear(),
            _ => broken(Code::Return, "the frame is not empty"),
        }
    }

    fn direction_clear(&self) -> Result<(), Broken> {
        match self.state.direction {
            Some(Direction::Forward) => Ok(()),
            _ => broken(
                Code::Direction,
                "the direction flag is not known to be clear",
            ),
        }
    }

    fn called(&mut self) {
        match self.linux {
            true => self.state.called_by_psabi(),
            false => self.state.called(),
        }
    }

    fn call(&mut self, target: Target) -> Result<Next, Broken> {
        let direction = self.direction_clear();
        let next = match target {
            Target::Inside(callee) => {
                self.called();
                Next::Called(callee)
            }
            Target::Routine(Routine::Imported | Routine::Indirect) | Target::Bad => {
                self.called();
                Next::Fall
            }
            Target::Routine(Routine::PortIn) => {
                self.state.clobber(Reg::RAX.set());
                Next::Fall
            }
            Target::Routine(Routine::Keeps) => Next::Fall,
            Target::Routine(Routine::Bug) => Next::End,
            // call twin_slow_<v>: parts of a check are not interpreted here.
            Target::Routine(Routine::Slow(r)) => {
                self.state.clobber(r.set());
                return broken(Code::OutOfLine, "the slow path outside a check");
            }
        };
        direction.map(|()| next)
    }

    fn jump(&mut self, target: Target) -> Result<Next, Broken> {
        match target {
            Target::Inside(to) => Ok(Next::Jump(to)),
            Target::Routine(_) => self.leaves().map(|()| Next::End),
            Target::Bad => Ok(Next::End),
        }
    }

    fn branch(&mut self, target: Target) -> Result<Next, Broken> {
        self.clobber()?;
        match target {
            Target::Inside(to) => Ok(Next::Branch(to)),
            Target::Routine(_) => self.leaves().map(|()| Next::Fall),
            Target::Bad => Ok(Next::Fall),
        }
    }
}

/// Instructions whose rule says what the flags mean.
fn sets_flags(op: Op) -> bool {
    matches!(
        op,
        Op::Compare { .. }
            | Op::Alu { op: Alu::Cmp, .. }
            | Op::Table {
                read: TableRead::CmpTag,
                ..
            }
    )
}

/// Whether `size` bytes at a displacement from a translated address are all in
/// its window, or in a hole of it.
fn covered(disp: i64, size: u16) -> bool {
    -(stlb::BELOW as i64) <= disp && disp + i64::from(size) <= stlb::COVERED as i64
}

fn window_reason(m: &Memory) -> String {
    format!(
        "{} bytes at displacement {} are not all within the {} before and the {} after that a translation covers",
        m.size,
        m.disp,
        stlb::BELOW,
        stlb::COVERED
    )
}

fn untranslated_reason(base: Reg, form: Form) -> &'static str {
    match form {
        Form::Offset(_) => {
            "the base register is an offset in the window, neither checked nor translated"
        }
        Form::Checked(_) => "the base register is a checked offset, not translated yet",
        Form::Index(_) => "an index of the table is not an address",
        _ if base == Reg::RBP => "%rbp is not proved to point into the frame, nor translated",
        _ => "nothing confines the base register",
    }
}

fn table_reason(scheme: Scheme, read: TableRead) -> &'static str {
    match (scheme, read) {
        (Scheme::Stlb, TableRead::SubTag) => {
            "the registers are not an address and the index of that address"
        }
        (Scheme::Stlb, TableRead::AddXlate) => {
            "the register is not an offset in the window that was checked for this entry"
        }
        (Scheme::Paper, TableRead::CmpTag) => {
            "the registers are not a page and the index of that page"
        }
        (Scheme::Paper, TableRead::XorXlate) => {
            "the register is not an address whose page was compared with this entry's tag"
        }
        (Scheme::Stlb, TableRead::CmpTag | TableRead::XorXlate)
        | (Scheme::Paper, TableRead::SubTag | TableRead::AddXlate) => {
            "the object's scheme does not read the table like this"
        }
    }
}
