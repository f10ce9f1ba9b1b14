//! P1: where an instruction's memory operand is, and whether it may be there.

use twin_abi::{stack, stlb};

use super::{Broken, Proved, Step, broken, unmet};
use crate::domain::Form;
use crate::domain::bounds::{self, MAX_ALIGNMENT};
use crate::findings::ViolationCode;
use crate::insn::{Access, Gpr, MemoryOperand, Op, Origin, StringKind};
use crate::targets::{Frames, Reads};

impl Step<'_> {
    /// Judges an operand. Where stores alone are confined, what is only read may be
    /// anywhere; what is read from a place that is known counts as ever.
    #[inline]
    pub(super) fn memory(&self, m: &MemoryOperand) -> Result<Proved, Broken> {
        match m.access {
            Access::None => Ok(Proved::Reached),
            Access::Read | Access::Write => self.reached(m),
        }
    }

    fn reached(&self, m: &MemoryOperand) -> Result<Proved, Broken> {
        match self.confined(m) {
            Err(_) if self.reads_anywhere(m) => Ok(Proved::Unconfined),
            judged => judged,
        }
    }

    //      op (%r), %x
    //
    // Not `call *(%r)`: where control goes is as confined as ever.
    fn reads_anywhere(&self, m: &MemoryOperand) -> bool {
        let transfer = matches!(self.insn.op, Op::CallIndirect(_) | Op::JumpIndirect(_));
        self.laws.rules.reads == Reads::Anywhere && m.access == Access::Read && !transfer
    }

    fn confined(&self, m: &MemoryOperand) -> Result<Proved, Broken> {
        let form = self.state.get(m.base).form;
        // The frame does not fault: an entry of `__ex_table` says nothing about it.
        if m.origin == Origin::Narrow && !self.site.faulting {
            return broken(
                ViolationCode::AddressForm,
                "addresses of 32 bits are not dom0's",
            );
        }
        let excused = (self.site.faulting || self.site.reads_hash) && !form.in_frame();
        match m.origin {
            _ if excused => return self.excused_operand(m, form),
            // `Narrow` only where the kernel answers for faults, see above.
            Origin::Symbol | Origin::PerCpu | Origin::Narrow => return Ok(Proved::Kernel),
            // Its form confines it (`crate::decode`).
            Origin::Window | Origin::NearWindow => return Ok(Proved::Window),
            Origin::Cut if self.laws.scheme.is_place(form) => return Ok(Proved::Window),
            Origin::Cut => {
                return broken(
                    ViolationCode::Operand,
                    "it has no prefix 67, and its base is not cut to the window",
                );
            }
            Origin::Unknown => {
                return broken(ViolationCode::Untranslated, "nothing confines the address");
            }
            Origin::Registers => {}
        }
        if self.laws.rules.named_memory.is_window() {
            return self.besides_window(m, form);
        }
        if let Some(judged) = self.return_word(m) {
            return judged.map(|()| Proved::Stack);
        }
        let disp = i64::from(m.disp);
        match form {
            Form::Stack(_) | Form::Aligned(_)
                if self.laws.rules.frames == Frames::Compiled && !m.indexed =>
            {
                self.compiled_frame(m).map(|()| Proved::Stack)
            }
            // op disp(%rsp), or through a register that holds a stack address
            Form::Stack(at) if !m.indexed => self
                .frame(i64::from(at) + disp, m.size, m.access)
                .map(|()| Proved::Stack),
            Form::Stack(_) => broken(
                ViolationCode::StackBounds,
                "an index register is added to a stack address, which may leave the frame",
            ),
            // op disp(%v)
            Form::Translated(_) if m.indexed => broken(
                ViolationCode::Window,
                "an index register is added to a translated address",
            ),
            Form::Translated(_) if !bounds::covered(disp, m.size.into()) => {
                Err(unmet(ViolationCode::Window, window_reason(m)))
            }
            Form::Translated(_) => Ok(Proved::Translated),
            Form::ContextTop => segment_base(m),
            form => broken(
                ViolationCode::Untranslated,
                untranslated_reason(m.base, form),
            ),
        }
    }

    //      mov %x, (%r)            # listed in __ex_table
    //
    /// Judges an operand that is not in the frame as far as that is known, and whose faults the kernel
    /// answers for. A word of the frame may hold the address that was stored there: then it is in the
    /// frame.
    fn excused_operand(&self, m: &MemoryOperand, form: Form) -> Result<Proved, Broken> {
        let loaded = m.origin == Origin::Registers && form.trusted().in_frame();
        match loaded {
            true if m.indexed && m.access == Access::Write => broken(
                ViolationCode::StackBounds,
                "an index register is added to what may be a stack address",
            ),
            true if !m.indexed => self.compiled_frame(m).map(|()| Proved::Kernel),
            _ => Ok(Proved::Kernel),
        }
    }

    //      mov disp(%rsp), %r      # the own return address
    //
    /// Judges an operand without the prefixes of the window. What is read is known to be on
    /// the control stack: the word that the caller's `call` pushed, and no other.
    fn besides_window(&self, m: &MemoryOperand, form: Form) -> Result<Proved, Broken> {
        match form {
            Form::ContextTop => segment_base(m),
            Form::Stack(at)
                if i64::from(at) + i64::from(m.disp) == 0
                    && !m.indexed
                    && m.base == Gpr::RSP
                    && matches!(self.insn.op, Op::Load { .. }) =>
            {
                Ok(Proved::Stack)
            }
            _ => broken(
                ViolationCode::Operand,
                "it has neither prefix 65 nor prefix 67",
            ),
        }
    }

    /// Whether it may write outside its own frame.
    pub(super) fn writes_by_pointer(&self) -> bool {
        let strings = matches!(self.insn.op, Op::String { kind, .. } if kind.writes());
        let m = &self.insn.memory;
        strings || m.access == Access::Write && self.state.frame_place(m).is_none()
    }

    /// The form that a word of the frame holds.
    pub(super) fn saved_at(&self, m: &MemoryOperand) -> Form {
        let place = self.state.frame_place(m);
        place.map_or(Form::Any, |at| self.state.saved.get(at).loaded())
    }

    //      op disp(%rsp)
    //      op disp(%rbp)       # and other registers with a frame address
    //
    // In a frame as compilers make it: anywhere from 128 bytes below `rsp` up to
    // what the caller passes, but not the return address.
    pub(super) fn compiled_frame(&self, m: &MemoryOperand) -> Result<(), Broken> {
        const ARGUMENTS: i64 = 1024;
        let place = self.state.get(m.base).form.trusted().moved(m.disp);
        let (rsp, size) = (self.state.get(Gpr::RSP).form, i64::from(m.size));
        let Some((at, start, slack)) = self.bytes_of_frame(place) else {
            return broken(ViolationCode::StackBounds, "a stack address that wraps");
        };
        let lowest = match (rsp, place) {
            (Form::Stack(rsp), Some(Form::Stack(_)))
            | (Form::Aligned(rsp), Some(Form::Aligned(_))) => i64::from(rsp),
            _ => -stack::MAX_FRAME,
        };
        if bounds::below_frame(at, lowest) {
            return broken(ViolationCode::StackBounds, "more than 128 bytes below %rsp");
        }
        // The aligned part may be lower than `rsp` is by now.
        let deepest = place.and_then(|place| self.state.lowest(place));
        if deepest.is_none_or(|at| bounds::below_frame(at, -stack::MAX_FRAME)) {
            return broken(
                ViolationCode::StackBounds,
                "it may reach over the guard page",
            );
        }
        match m.access {
            Access::Write if bounds::reaches_return(start, size, slack) => {
                broken(ViolationCode::ReturnSlot, "it may write the return address")
            }
            _ if bounds::above_arguments(start, size, ARGUMENTS) => broken(
                ViolationCode::StackBounds,
                "above the arguments that any caller provides",
            ),
            _ => Ok(()),
        }
    }

    /// How far a place of the frame is from what it counts from, how far from the return address at
    /// most, and how much less that may be.
    fn bytes_of_frame(&self, place: Option<Form>) -> Option<(i64, i64, i64)> {
        match (place, self.state.realigned) {
            (Some(Form::Stack(at)), _) => Some((at.into(), at.into(), 0)),
            // The aligned stack begins at or below where `rsp` was before.
            (Some(Form::Aligned(at)), Some(from)) => {
                let start = i64::from(at) + i64::from(from);
                Some((at.into(), start, MAX_ALIGNMENT))
            }
            _ => None,
        }
    }

    //      mov (%rsp), %rax
    //
    /// Whether it may read the own return address, a place in the code of a caller.
    pub(super) fn reads_return_address(&self) -> bool {
        let m = &self.insn.memory;
        m.access != Access::None && self.has_return_address(m)
    }

    //      mov %rsp, %rsi
    //      lodsq
    //
    /// The same of `lods`. Without a known count it may be any word of the frame.
    pub fn lods_return_address(&self) -> bool {
        let Op::String {
            kind: StringKind::Lods,
            shift,
            rep,
        } = self.insn.op
        else {
            return false;
        };
        let in_frame = self.state.get(Gpr::RSI).form.trusted().in_frame();
        match self.state.extent(shift, rep) {
            None => in_frame && self.laws.rules.frames == Frames::Compiled,
            Some((disp, size)) => self.has_return_address(&MemoryOperand {
                disp,
                size,
                base: Gpr::RSI,
                ..MemoryOperand::NONE
            }),
        }
    }

    fn has_return_address(&self, m: &MemoryOperand) -> bool {
        let compiled = self.laws.rules.frames == Frames::Compiled;
        let place = self.state.frame_place(m).filter(|_| compiled);
        self.bytes_of_frame(place.map(Form::trusted))
            .is_some_and(|(_, start, slack)| bounds::reaches_return(start, m.size.into(), slack))
    }

    /// Judges `size` bytes at `at`, relative to the stack pointer at entry, which points
    /// to the return address.
    fn frame(&self, at: i64, size: u16, access: Access) -> Result<(), Broken> {
        let size = i64::from(size);
        if bounds::below_frame(at, self.state.rsp().into()) {
            return broken(ViolationCode::StackBounds, "more than 128 bytes below %rsp");
        }
        match access {
            Access::Write if bounds::reaches_caller(at, size) => broken(
                ViolationCode::ReturnSlot,
                "it writes the return address or the caller's frame",
            ),
            _ if bounds::above_arguments(at, size, stack::INCOMING_ARGS) => broken(
                ViolationCode::StackBounds,
                "above the arguments that any caller provides",
            ),
            _ => Ok(()),
        }
    }

    //      mov (%v), %ah
    //      vshufps $1, (%v), %x, %y
    //
    // In an encrypted guest the kernel executes a load from a device in the processor's place. Of the
    // first it takes the register's number for that of `%spl`, `%bpl`, `%sil` or `%dil`
    // (`insn_get_modrm_reg_ptr` in `vc_handle_mmio`, arch/x86/kernel/sev.c, and in `handle_mmio`,
    // arch/x86/coco/tdx/tdx.c of Linux 6.1). The other is `movb $1, (%v)` to it, because it asks for the
    // byte 0xc6 behind a VEX prefix as without one (`insn_decode_mmio`, arch/x86/lib/insn-eval.c), and `%v`
    // the register of the lower half. No device is in the frame or in the module's data.
    pub(super) fn misread(&mut self) -> Result<(), Broken> {
        let m = &self.insn.memory;
        let place = self.state.frame_place(m).filter(|at| at.in_frame());
        let is_no_device = place.is_some() || m.origin == Origin::Symbol;
        self.clobber()?;
        match is_no_device {
            true => Ok(()),
            false => broken(
                ViolationCode::Instruction,
                "in an encrypted guest kernels take it for another instruction; load the low byte, or all of the vector by a move",
            ),
        }
    }

    //      bts %r, (%v)        # %r at most 63
    pub(super) fn bit_at(&mut self, r: Gpr, bits: u8) -> Result<(), Broken> {
        let offset = self.state.get(r).form;
        self.clobber()?;
        match offset {
            // Per-CPU data; or where the kernel answers for it.
            _ if self.insn.memory.origin == Origin::PerCpu => Ok(()),
            // In the window, too: manuals do not say that the bytes which the offset adds are
            // added before the address is cut to 32 bits (SDM volume 2, BT).
            Form::Below(most) if most < bits => Ok(()),
            _ if self.reads_anywhere(&self.insn.memory) => Ok(()),
            _ => broken(
                ViolationCode::BitOffset,
                "the bit may lie outside the operand's own bytes",
            ),
        }
    }
}

//      mov GS_BASE_FROM_TOP(%t), %t
fn segment_base(m: &MemoryOperand) -> Result<Proved, Broken> {
    let bases = [stack::FS_BASE_FROM_TOP, stack::GS_BASE_FROM_TOP];
    let base = bases.contains(&m.disp.into()) && !m.indexed;
    match base && m.size == 8 && m.access == Access::Read {
        true => Ok(Proved::Context),
        false => broken(
            ViolationCode::Context,
            "not a read of one of the segment bases",
        ),
    }
}

fn window_reason(m: &MemoryOperand) -> String {
    format!(
        "{} bytes at displacement {} are not all within the {} before and the {} after that a translation covers",
        m.size,
        m.disp,
        stlb::BELOW,
        stlb::COVERED
    )
}

fn untranslated_reason(base: Gpr, form: Form) -> &'static str {
    match form {
        Form::Offset(_) => {
            "the base register is an offset in the window, neither checked nor translated"
        }
        Form::Checked(_) => "the base register is a checked offset, not translated yet",
        Form::Index(_) => "an index of the table is not an address",
        _ if base == Gpr::RBP => "%rbp is not proved to point into the frame, nor translated",
        _ => "nothing confines the base register",
    }
}
