//! The sequence for each class of instruction.
//!
//! [`Emitter`] has the state that all sequences share: the section being assembled, the
//! scheme, and the out-of-line parts to emit at the end of the function. Each file
//! below shows the assembly that it emits.

mod address;
pub mod apply;
mod bits;
pub mod control;
mod copy;
pub mod deep;
pub mod function;
mod keep;
mod memory;
mod port;
mod returns;
pub mod sites;
mod stack_pointer;
mod string;
mod switch;
mod window;

use elf_loader::Object;
use iced_x86::{Code, Instruction, Register};
use liveness::{LocSet, Reg};
use twin_abi::Processor;

use crate::analyse::Analysis;
use crate::analyse::class::Class;
use crate::analyse::flow::Flow;
use crate::analyse::references::References;
use crate::asm::encode::Form;
use crate::asm::import::{Import, Service};
use crate::asm::{
    Address, Assembler, Jump, Label, Labels, Operand, Position, Referent, Segment, movabs, r, ri,
    rr,
};
use crate::encode::apply::InstLabels;
use crate::encode::window::strict::Wild;
use crate::lift::{CodeIdx, CodeSection, InstIdx, Lifted};
use crate::plan::returns::begins_own;
use crate::plan::{CutBy, Flags, InstPlan};
use crate::registers::reg64;
use crate::schemes::{self, Cut, Row, Table};

/// Bytes below `rsp` that a leaf function may use (psABI 3.2.2).
const RED_ZONE: i64 = twin_abi::stack::BELOW_RSP;

/// What a target decides about emitted code.
pub struct Rules {
    /// How checks reach the table.
    pub table: Table,
    /// Whether data below `rsp` must survive what sequences push (psABI 3.2.2).
    pub has_red_zone: bool,
    /// Whether every translation is the address itself (paper, 5.1.2). If so, operands
    /// that overlap in the original overlap here too.
    pub translates_to_itself: bool,
    /// Whether the words of jump tables become numbers: the tables are the module's own,
    /// and no data may refer to the middle of a function.
    pub numbers_cases: bool,
    /// Whether the result has unwind tables, which need the number of pushed words.
    pub unwinds: bool,
    /// Who finds the destination of an indirect transfer.
    pub indirect: Indirect,
    /// Whether a branch to an import keeps all its bytes, because the kernel patches it.
    pub keeps_calls: bool,
    /// Whether the kernel may take a function that returns at once for the trampoline of a static
    /// call, and write five bytes there.
    pub pads_returns: bool,
    /// Whether padding and hashes of types before functions stay right before them: the kernel and
    /// other modules look there.
    pub keeps_prefixes: bool,
    /// Whether a kernel may execute a load in the processor's place, as in an encrypted guest, and
    /// take `%ah` for `%spl` then: a register's second byte is loaded by way of its first one.
    pub loads_low_bytes: bool,
    /// Whether the kernel of an object may take a `ud2` that is no WARN for a trap of its own, by what
    /// is 6, 13 or 19 bytes before: there are nops then.
    pub parts_traps: fn(&Object<'_>) -> bool,
    /// Whether all instructions of a section, given by name, stay as they are.
    pub is_verbatim: fn(&str) -> bool,
}

/// Who finds the destination of an indirect transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indirect {
    /// The runtime, in a table of what may be called.
    Runtime,
    /// The processor: code may call any address.
    Register,
    /// The same, where any register may hold an argument. The destination goes through a
    /// word of the red zone, which nothing needs at a call (psABI 3.2.2).
    RedZone,
}

/// The out-of-line part of a check: it calls the slow path and jumps back.
#[derive(Debug)]
struct Stub {
    slow: Label,
    back: Label,
    /// Computed again if the check destroyed it.
    address: Option<Address>,
    v: Reg,
    inst: InstIdx,
    /// Words pushed at the check.
    depth: i64,
}

/// From a place on, this many words are pushed beyond what the original has at
/// the instruction.
#[derive(Clone, Copy, Debug)]
pub struct Depth {
    /// The place.
    pub at: Position,
    /// The instruction whose sequence it is in.
    pub inst: InstIdx,
    pub words: i64,
}

/// Where an out-of-line part begins, and for which instruction.
pub type StubPlace = (Label, InstIdx);

/// Emits sequences into one section.
pub struct Emitter<'a> {
    /// The code being rewritten.
    pub lifted: &'a Lifted<'a>,
    /// Which calls return.
    flow: &'a Flow,
    /// What its relocated fields become.
    references: &'a References,
    /// The original bytes of the section.
    contents: &'a [u8],
    /// The section being assembled.
    pub asm: Assembler,
    /// All labels of the object; those below the instruction count are the
    /// instructions' own.
    pub labels: &'a mut Labels,
    pub section: u16,
    /// Labels of instructions in the current variant of the function.
    pub inst_labels: InstLabels,
    /// The target of the current function's jumps to its own beginning, if it differs
    /// from the beginning.
    pub own_beginning: Option<Label>,
    /// Whether `depths` is written.
    pub notes_depths: bool,
    /// How many words are pushed, place by place.
    pub depths: Vec<Depth>,
    /// Where accesses with a `lock` prefix are.
    pub locked: Vec<(InstIdx, Position)>,
    /// Where jumps through thunks are that a switch replaced.
    pub thunks: Vec<(InstIdx, Position)>,
    /// Whether the code becomes text: names reach further than sections, and objtool
    /// makes the tables of thunks.
    pub prints: bool,
    rules: &'static Rules,
    /// [`Rules::parts_traps`] of the object.
    parts_traps: bool,
    scheme: &'static Row,
    stubs: Vec<Stub>,
    /// Targets of failed comparisons of return addresses, each with the instruction
    /// after the comparison.
    smashed: Vec<StubPlace>,
    /// Out-of-line parts of comparisons of pointers.
    wild: Vec<Wild>,
    /// The instruction whose sequence is being emitted.
    current: InstIdx,
    /// Words pushed in it so far.
    words: i64,
}

impl<'a> Emitter<'a> {
    /// An emitter for a section.
    pub fn new(
        analysis: &'a Analysis<'a>,
        rules: &'static Rules,
        labels: &'a mut Labels,
        section: u16,
        scheme: &'static Row,
        parts_traps: bool,
    ) -> Emitter<'a> {
        let lifted = analysis.lifted;
        let contents = lifted.contents(CodeIdx(section));
        let CodeSection { insts, .. } = &lifted.sections[usize::from(section)];
        // Each instruction has one, and a sequence that pushes some more.
        let depths = if rules.unwinds {
            insts.len() + insts.len() / 4
        } else {
            0
        };
        Emitter {
            lifted,
            flow: &analysis.flow,
            references: &analysis.references,
            contents,
            asm: Assembler::for_code(contents.len()),
            labels,
            section,
            inst_labels: InstLabels::default(),
            own_beginning: None,
            notes_depths: rules.unwinds,
            depths: Vec::with_capacity(depths),
            locked: Vec::new(),
            thunks: Vec::new(),
            prints: false,
            rules,
            parts_traps,
            scheme,
            stubs: Vec::new(),
            smashed: Vec::new(),
            wild: Vec::new(),
            current: InstIdx(0),
            words: 0,
        }
    }

    /// The original bytes of an instruction of the section.
    fn bytes(&self, i: InstIdx) -> &'a [u8] {
        let inst = self.lifted.inst(i);
        &self.contents[inst.offset() as usize..inst.iced.next_ip() as usize]
    }

    /// Whether all instructions of this section stay as they are.
    pub fn is_verbatim(&self) -> bool {
        let name = self.lifted.section_name(CodeIdx(self.section));
        (self.rules.is_verbatim)(name)
    }

    /// Begins the sequence of an instruction, whose label in the current variant is
    /// `label`.
    pub fn begin(&mut self, i: InstIdx, label: Label) {
        self.place(label);
        self.current = i;
        self.words = 0;
        self.note_depth();
    }

    /// Adds to the number of words on the stack.
    fn pushed(&mut self, words: i64) {
        self.words += words;
        self.note_depth();
    }

    /// Records the depth, for unwind tables and [`deep`].
    fn note_depth(&mut self) {
        if self.notes_depths {
            self.depths.push(Depth {
                at: self.asm.here(),
                inst: self.current,
                words: self.words,
            });
        }
    }

    /// Places a label here.
    pub fn place(&mut self, label: Label) {
        self.labels.place(label, self.section, self.asm.here());
    }

    /// The target of a branch to an instruction: the instruction in the same variant of
    /// the function. A branch to an entry goes to the code that chooses the variant.
    pub fn target(&self, to: InstIdx) -> Label {
        let function = self.flow.function_of(self.flow.block_of(to));
        let entry = self.lifted.function(function).insts.start == to.0;
        match entry && self.lifted.is_entered(function) {
            true => Label(to.0),
            false => self.inst_labels.of(to),
        }
    }

    /// A new label, here.
    pub fn fresh_here(&mut self) -> Label {
        let label = self.labels.fresh();
        self.place(label);
        label
    }

    fn emit(&mut self, instruction: &Instruction) {
        self.asm.inst(instruction);
    }

    fn push(&mut self, reg: Reg) {
        self.emit(&r(Code::Push_r64, reg64(reg)));
        self.pushed(1);
    }

    fn pop(&mut self, reg: Reg) {
        self.emit(&r(Code::Pop_r64, reg64(reg)));
        self.pushed(-1);
    }

    fn mov(&mut self, from: Reg, to: Reg) {
        self.asm.registers(Form::MOV, to, from);
    }

    fn lea(&mut self, operand: &Operand, to: Reg) {
        self.asm.lea(operand, None, to);
    }

    /// Pushes the spilled registers and saves the flags.
    ///
    /// ```text
    ///     push  %spilled ...
    ///     mov   %rax, %h ; lahf ; seto %al ; xchg %rax, %h      (%h not %rax)
    /// ```
    fn open(&mut self, plan: &InstPlan) {
        if self.skips_red_zone(plan) {
            self.skip_red_zone();
        }
        for reg in plan.scratch.spilled() {
            self.push(*reg);
        }
        if let Flags::Save(holder) = plan.flags {
            if holder != Reg::RAX {
                self.mov(Reg::RAX, holder);
            }
            self.emit(&Instruction::with(Code::Lahf));
            self.emit(&r(Code::Seto_rm8, Register::AL));
            if holder != Reg::RAX {
                self.emit(&rr(Code::Xchg_rm64_r64, reg64(holder), Register::RAX));
            }
        }
    }

    /// Whether the sequence pushes where data below `rsp` may be live.
    fn skips_red_zone(&self, plan: &InstPlan) -> bool {
        let pushes = !plan.scratch.spilled().is_empty() || matches!(plan.class, Class::String(..));
        pushes && self.rules.has_red_zone
    }

    /// Bytes between the original's `rsp` and what the sequence pushed.
    fn skipped(&self, plan: &InstPlan) -> i64 {
        if self.skips_red_zone(plan) {
            RED_ZONE
        } else {
            0
        }
    }

    /// ```text
    ///     lea   -128(%rsp), %rsp
    /// ```
    fn skip_red_zone(&mut self) {
        self.lea(&Operand::at(Reg::RSP, -RED_ZONE), Reg::RSP);
        self.pushed(RED_ZONE / 8);
    }

    fn unskip_red_zone(&mut self) {
        self.lea(&Operand::at(Reg::RSP, RED_ZONE), Reg::RSP);
        self.pushed(-RED_ZONE / 8);
    }

    /// Overwrites registers and flags that liveness calls dead, so that an error there
    /// becomes visible.
    ///
    /// ```text
    ///     movabs $0x5eeddead0000000n, %dead ...
    ///     neg   %dead                       if no flag is live
    /// ```
    pub fn poison(&mut self, plan: &InstPlan) {
        const POISON: u64 = 0x5eed_dead_0000_0000;
        let mut last = None;
        for reg in liveness::dead_registers(plan.live) {
            self.emit(&movabs(reg, POISON | u64::from(reg.number())));
            last = Some(reg);
        }
        if let Some(reg) = last.filter(|_| !plan.live.intersects(LocSet::flags())) {
            self.emit(&r(Code::Neg_rm64, reg64(reg)));
        }
    }

    /// Restores the flags, after the last instruction of a check and before the access,
    /// which may read them. `add` sets OF from the byte that `seto` left in `al`, `sahf`
    /// the rest.
    ///
    /// ```text
    ///     xchg  %rax, %h ; add $0x7f, %al ; sahf ; mov %h, %rax
    /// ```
    fn restore_flags(&mut self, plan: &InstPlan) {
        match plan.flags {
            Flags::Dead => {}
            Flags::Recompute(compare) => self.copy_plain(compare),
            Flags::Save(holder) => {
                if holder != Reg::RAX {
                    self.emit(&rr(Code::Xchg_rm64_r64, reg64(holder), Register::RAX));
                }
                self.emit(&ri(Code::Add_rm8_imm8, Register::AL, 0x7f));
                self.emit(&Instruction::with(Code::Sahf));
                if holder != Reg::RAX {
                    self.mov(holder, Reg::RAX);
                }
            }
        }
    }

    fn close(&mut self, plan: &InstPlan) {
        for reg in plan.scratch.spilled().iter().rev() {
            self.pop(*reg);
        }
        if self.skips_red_zone(plan) {
            self.unskip_red_zone();
        }
    }

    /// [`InstPlan::roles`], for sequences that pick among them.
    fn roles(plan: &InstPlan) -> Vec<Reg> {
        plan.roles().collect()
    }

    /// A check with an out-of-line slow path; after it, `v` holds the translation. Or the
    /// address's place, which [`Emitter::translated`] counts from the window's start.
    fn check(&mut self, inst: InstIdx, address: Address, v: Reg, others: &[Reg]) {
        if let Some(Cut::Register(processor)) = self.scheme.cut {
            let by = match processor {
                Processor::Bmi2 => CutBy::Pext,
                // The plan saved the flags: no check keeps them.
                Processor::Any => CutBy::And,
            };
            return self.cut_address(&address, v, by);
        }
        let slow = self.labels.fresh();
        self.check_or_skip(&address, v, others, slow);
        let back = self.fresh_here();
        let address = (!self.scheme.keeps_address).then_some(address);
        self.stubs.push(Stub {
            slow,
            back,
            address,
            v,
            inst,
            depth: self.words,
        });
    }

    /// What the address in `pointer` leads to. It is checked in `v`; in a window of 32 bits the
    /// operand itself confines it, and `v` is left alone.
    fn checked(&mut self, i: InstIdx, pointer: Reg, v: Reg, others: &[Reg]) -> Operand {
        if self.scheme.cut == Some(Cut::Prefix) {
            return Operand::at(pointer, 0).in_window();
        }
        self.check(i, Address::Copy(pointer), v, others);
        self.translated(v, 0)
    }

    /// A check that jumps to `miss` on a miss.
    fn check_or_skip(&mut self, address: &Address, v: Reg, others: &[Reg], miss: Label) {
        let table = self.rules.table;
        let check = schemes::Check {
            address,
            v,
            others,
            miss,
        };
        self.scheme.emit(table, &mut self.asm, &check);
    }

    /// What is `displacement` bytes from the address that `v` holds the translation of.
    fn translated(&self, v: Reg, displacement: i64) -> Operand {
        Operand {
            segment: self.cuts_in_registers().then_some(Segment::Gs),
            ..Operand::at(v, displacement)
        }
    }

    /// Whether addresses are cut to a window in registers.
    fn cuts_in_registers(&self) -> bool {
        matches!(self.scheme.cut, Some(Cut::Register(_)))
    }

    /// Emits the out-of-line parts of the checks since the last call:
    ///
    /// ```text
    /// slow:   <address> -> %v              unless the scheme kept it
    ///         lea   -128(%rsp), %rsp       if data may be in the red zone
    ///         call  twin_slow_<v>
    ///         lea   128(%rsp), %rsp        if data may be in the red zone
    ///         jmp   back
    /// ```
    pub fn finish_stubs(&mut self) -> Vec<StubPlace> {
        let mut places = Vec::with_capacity(self.stubs.len());
        let mut stubs = std::mem::take(&mut self.stubs);
        for stub in stubs.drain(..) {
            self.place(stub.slow);
            (self.current, self.words) = (stub.inst, stub.depth);
            self.note_depth();
            if let Some(address) = &stub.address {
                address.emit(&mut self.asm, stub.v);
            }
            // A sequence that pushed has skipped the red zone already.
            let skips = self.rules.has_red_zone && stub.depth == 0;
            if skips {
                self.skip_red_zone();
            }
            self.asm
                .branch_out(Jump::Call, Referent::Import(Import::Slow(stub.v), 0));
            if skips {
                self.unskip_red_zone();
            }
            self.asm.branch(Jump::Always, stub.back);
            places.push((stub.slow, stub.inst));
        }
        // The next function's use the same memory.
        self.stubs = stubs;
        places.extend(self.finish_smashed());
        places.extend(self.finish_wild());
        places
    }

    /// The target of a jump: the instruction. A jump of a function to its own beginning
    /// stays in the invocation, so it skips the copying of the return address.
    fn jump_target(&self, from: InstIdx, to: InstIdx) -> Label {
        match self.own_beginning {
            Some(label) if begins_own(self.lifted, from, to) => label,
            _ => self.target(to),
        }
    }

    fn call_runtime(&mut self, jump: Jump, service: Service) {
        self.asm
            .branch_out(jump, Referent::Import(Import::Runtime(service), 0));
    }
}
