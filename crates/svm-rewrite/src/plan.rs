//! Decides, for each instruction, how it will be emitted. Nothing is edited
//! here: a plan is data, and [`crate::apply`] is the one place that acts on it.

use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};
use liveness::{BlockId, Flag, LocSet, Predecessors, Program, Reg};

use foldhash::HashSet;

use crate::class::{Callee, Class, Repeat, Space};
use crate::flow::Flow;
use crate::lift::{InstIdx, Lifted, Target};
use crate::linkage::{self, Convention};
use crate::policy::Policy;
use crate::refusal::{Code, Refusal};
use crate::reuse::{self, Holding, Operand, Reuse, Step};
use crate::scheme::Scheme;
use crate::survey::Survey;
use crate::values::{Ids, Motion};

/// Registers that a sequence may overwrite. The last `spilled` of them are
/// live: pushed before and popped after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scratch {
    regs: [Reg; Scratch::MAX],
    len: u8,
    spilled: u8,
}

impl Scratch {
    /// More than any sequence asks for.
    const MAX: usize = 8;

    /// None.
    pub const EMPTY: Scratch = Scratch {
        regs: [Reg::RAX; Scratch::MAX],
        len: 0,
        spilled: 0,
    };

    /// All of them.
    pub fn all(&self) -> &[Reg] {
        &self.regs[..usize::from(self.len)]
    }

    /// Those that are live.
    pub fn spilled(&self) -> &[Reg] {
        &self.all()[usize::from(self.len - self.spilled)..]
    }

    fn push(&mut self, r: Reg, spilled: bool) {
        self.regs[usize::from(self.len)] = r;
        self.len += 1;
        self.spilled += u8::from(spilled);
    }
}

/// What happens to the arithmetic flags around a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flags {
    /// Nobody reads them.
    Dead,
    /// The compare at this instruction is repeated after the check.
    Recompute(InstIdx),
    /// Kept in a register with `lahf; seto`.
    Save(Reg),
}

impl Flags {
    /// The name as reports print it.
    pub fn as_str(self) -> &'static str {
        match self {
            Flags::Dead => "dead",
            Flags::Recompute(_) => "recomputed",
            Flags::Save(_) => "saved",
        }
    }
}

/// How one instruction is treated.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// What it is.
    pub class: Class,
    /// What its sequence may overwrite.
    pub scratch: Scratch,
    /// What happens to the flags.
    pub flags: Flags,
    /// What is live before it, operands of a repeated compare and translations
    /// that registers hold included.
    pub live: LocSet,
    /// The earlier translation that serves it; then it has no sequence.
    pub reuse: Option<Reuse>,
}

impl Plan {
    /// The register that its translation ends in, unless it is given back
    /// afterwards.
    fn dead_result(&self) -> Option<Reg> {
        let holder = match self.flags {
            Flags::Save(holder) => Some(holder),
            Flags::Dead | Flags::Recompute(_) => None,
        };
        let mut roles = self.scratch.all().iter().copied();
        let v = roles.find(|r| Some(*r) != holder)?;
        (!self.scratch.spilled().contains(&v)).then_some(v)
    }
}

/// Order of preference: short encodings first, and `rax` first because it can
/// hold the flags.
const PREFERENCE: [Reg; 15] = [
    Reg::RAX,
    Reg::RCX,
    Reg::RDX,
    Reg::RSI,
    Reg::RDI,
    Reg::R8,
    Reg::R9,
    Reg::R10,
    Reg::R11,
    Reg::RBX,
    Reg::RBP,
    Reg::R12,
    Reg::R13,
    Reg::R14,
    Reg::R15,
];

/// What is asked of an instruction each time that a search for later uses comes by:
/// kept small, for there is one for each of an object's.
#[derive(Clone, Copy, Debug)]
struct Known {
    /// Its operand, if it could share a translation.
    operand: Option<Operand>,
    /// What it does to values.
    motion: Motion,
    /// Whether translations survive it.
    survives: bool,
}

/// Makes plans for the instructions of one object.
pub struct Planner<'a> {
    lifted: &'a Lifted<'a>,
    surveys: &'a [Survey],
    flow: &'a Flow,
    scheme: Scheme,
    policy: &'a Policy,
    classes: &'a [Class],
    live_before: &'a [LocSet],
    /// Translations that registers hold before the next instruction.
    holding: Holding,
    /// Of each instruction; empty if the scheme uses no translation again.
    known: Vec<Known>,
    ids: Ids,
    /// The same behind each block; `None` for one that was not planned yet, for one
    /// that leads to none that is still to be planned, and for the hubs that returns
    /// go through.
    behind: Vec<Option<Box<Holding>>>,
    /// How many edges out of each block lead to blocks that are still to be planned.
    awaited: Vec<u32>,
    predecessors: Predecessors,
}

impl<'a> Planner<'a> {
    /// A planner for `lifted` under `scheme`, given the class of each instruction
    /// and what is live before it.
    pub fn new(
        lifted: &'a Lifted<'a>,
        surveys: &'a [Survey],
        flow: &'a Flow,
        scheme: Scheme,
        policy: &'a Policy,
        classes: &'a [Class],
        live_before: &'a [LocSet],
    ) -> Planner<'a> {
        let mut ids = Ids::default();
        let mut planner = Planner {
            holding: Holding::nothing(&mut ids),
            known: Vec::new(),
            ids,
            lifted,
            surveys,
            flow,
            scheme,
            policy,
            classes,
            live_before,
            behind: vec![None; flow.block_count()],
            awaited: vec![0; flow.block_count()],
            predecessors: Predecessors::of(flow),
        };
        for block in (0..flow.block_count() as u32).map(BlockId) {
            for from in planner.predecessors.of_block(block) {
                planner.awaited[from.0 as usize] += 1;
            }
        }
        if scheme.reuses() {
            let all = (0..lifted.insts.len() as u32).map(InstIdx);
            planner.known = all.map(|i| planner.know(i)).collect();
        }
        planner
    }

    fn know(&self, i: InstIdx) -> Known {
        let (inst, survey) = (self.lifted.inst(i), &self.surveys[i.0 as usize]);
        Known {
            operand: Operand::of(inst, self.class(i)),
            motion: Motion::of(inst, survey),
            survives: self.survives(i),
        }
    }

    /// Plans every instruction, in an order in which a block comes behind those
    /// that lead to it, but for the way back in a loop: a translation may be used
    /// again.
    ///
    /// # Errors
    /// Each instruction for which no registers can be freed.
    pub fn plan_all(mut self) -> Result<Vec<Plan>, Vec<Refusal>> {
        let mut plans = vec![None; self.classes.len()];
        let mut refusals = Vec::new();
        let starts: HashSet<u32> = self
            .lifted
            .functions
            .iter()
            .map(|f| f.insts.start)
            .collect();
        for block in liveness::postorder(self.flow).into_iter().rev() {
            let Some(insts) = self.flow.blocks().get(block.0 as usize).cloned() else {
                self.arrived(block);
                continue;
            };
            self.holding = match starts.contains(&insts.start) {
                true => Holding::nothing(&mut self.ids),
                false => self.arriving(block),
            };
            self.arrived(block);
            for i in insts {
                match self.plan(InstIdx(i)) {
                    Ok(plan) => plans[i as usize] = Some(plan),
                    Err(refusal) => refusals.push((i, refusal)),
                }
            }
            if self.awaited[block.0 as usize] > 0 {
                self.behind[block.0 as usize] = Some(Box::new(self.holding.clone()));
            }
        }
        if refusals.is_empty() {
            let plans = plans
                .into_iter()
                .map(|plan| plan.expect("it is in a block"));
            return Ok(plans.collect());
        }
        refusals.sort_by_key(|(i, _)| *i);
        Err(refusals.into_iter().map(|(_, refusal)| refusal).collect())
    }

    /// What registers hold on every way to a block.
    fn arriving(&mut self, block: BlockId) -> Holding {
        let ways = self.predecessors.of_block(block);
        let behind: Option<Vec<&Holding>> = ways
            .map(|from| self.behind[from.0 as usize].as_deref())
            .collect();
        let Some((first, others)) = behind.as_deref().and_then(<[_]>::split_first) else {
            return Holding::nothing(&mut self.ids);
        };
        let mut all = (*first).clone();
        for other in others {
            all.join(other, &mut self.ids);
        }
        all
    }

    /// What is known behind the blocks that lead to this one is not asked for here
    /// again.
    fn arrived(&mut self, block: BlockId) {
        for from in self.predecessors.of_block(block) {
            let from = from.0 as usize;
            self.awaited[from] -= 1;
            if self.awaited[from] == 0 {
                self.behind[from] = None;
            }
        }
    }

    fn plan(&mut self, i: InstIdx) -> Result<Plan, Refusal> {
        let operand = self.shared_operand(i);
        let plan = match operand.and_then(|operand| self.reused(i, &operand)) {
            Some(plan) => plan,
            None => self.translated(i, operand)?,
        };
        self.advance(i, operand, &plan);
        Ok(plan)
    }

    fn class(&self, i: InstIdx) -> Class {
        self.classes[i.0 as usize]
    }

    fn live(&self, i: InstIdx) -> LocSet {
        self.live_before[i.0 as usize]
    }

    /// The operand, if it may share its translation with others.
    fn shared_operand(&self, i: InstIdx) -> Option<Operand> {
        self.known.get(i.0 as usize)?.operand
    }

    fn reused(&self, i: InstIdx, operand: &Operand) -> Option<Plan> {
        let legacy_only = uses_high_byte(&self.lifted.inst(i).iced);
        let usable = |r: Reg| !legacy_only || r.number() < 8;
        let reuse = self.holding.find(operand, usable)?;
        Some(Plan {
            reuse: Some(reuse),
            ..self.untouched(i)
        })
    }

    fn untouched(&self, i: InstIdx) -> Plan {
        Plan {
            class: self.class(i),
            scratch: Scratch::EMPTY,
            flags: Flags::Dead,
            live: self.live(i).union(self.holding.registers()),
            reuse: None,
        }
    }

    fn translated(&mut self, i: InstIdx, operand: Option<Operand>) -> Result<Plan, Refusal> {
        let class = self.class(i);
        let need = self.need(class);
        let mut plan = self.untouched(i);
        let leaves = need.call_registers || class == Class::Branch;
        if leaves && self.policy.has_veneers() {
            self.leave_object(i, class, self.live(i), &mut plan)?;
        }
        if !need.translates {
            return Ok(plan);
        }
        let flags_live = self.live(i).intersects(LocSet::flags());
        let keeps_flags = flags_live && !need.keeps_flags;
        let carriers = operand.map_or(LocSet::empty(), |operand| self.carriers(i, &operand));
        loop {
            let mut chosen = Plan {
                live: self.live(i).union(self.holding.registers()),
                ..plan
            };
            let live = chosen.live;
            let done = self.choose(i, need.registers, live, keeps_flags, carriers, &mut chosen);
            let given_up = match &done {
                Ok(()) if chosen.scratch.spilled().is_empty() => false,
                // A spill takes two instructions, a check made anew eight: what
                // is used again soon is kept, all else is worth less.
                Ok(()) => self.give_up_idle(i),
                Err(_) => self.holding.give_up(0),
            };
            if !given_up {
                return done.map(|()| chosen);
            }
        }
    }

    /// Gives up a translation that serves nothing on the likely way from `i` on.
    fn give_up_idle(&mut self, i: InstIdx) -> bool {
        let idle = self
            .holding
            .held()
            .iter()
            .position(|held| !reuse::is_used(held, &self.holding.values, self.way_from(i)));
        idle.is_some_and(|n| self.holding.give_up(n))
    }

    /// The likely way from an instruction on.
    fn way_from(&self, i: InstIdx) -> impl Iterator<Item = Step> {
        let way = std::iter::successors(Some(i), |i| self.straight_on(*i));
        way.take(reuse::REACH).map_while(|k| self.step(k))
    }

    fn step(&self, i: InstIdx) -> Option<Step> {
        let known = self.known.get(i.0 as usize)?;
        Some(Step {
            operand: known.operand,
            motion: known.motion,
            writes: self.writes(i),
            live: self.live(i),
            survives: known.survives,
        })
    }

    /// Registers that can carry this translation to where it is used again.
    fn carriers(&self, i: InstIdx, operand: &Operand) -> LocSet {
        reuse::carriers(operand, &self.holding.values, self.way_from(i))
    }

    /// The instruction that follows on the way that compilers lay out as the
    /// likely one: no conditional branch is taken.
    fn straight_on(&self, i: InstIdx) -> Option<InstIdx> {
        let inst = self.lifted.inst(i);
        match (inst.iced.flow_control(), inst.target) {
            (FlowControl::UnconditionalBranch, Some(Target::Inst(to))) => Some(to),
            _ => Some(InstIdx(i.0 + 1)).filter(|next| (next.0 as usize) < self.classes.len()),
        }
    }

    /// Whether translations survive an instruction.
    fn survives(&self, i: InstIdx) -> bool {
        match self.class(i) {
            // Inside the object; if that is into another function, nothing
            // arrives there.
            Class::Branch => {
                let inst = self.lifted.inst(i);
                let jumps = inst.iced.flow_control() != FlowControl::Call;
                jumps && matches!(inst.target, Some(Target::Inst(_)))
            }
            // A branch ends its block anyway; a call leaves the driver.
            Class::Keep(_) => self.lifted.inst(i).iced.flow_control() == FlowControl::Next,
            class => reuse::survives(class),
        }
    }

    /// What registers hold after the instruction.
    fn advance(&mut self, i: InstIdx, operand: Option<Operand>, plan: &Plan) {
        let Some(&Known {
            motion, survives, ..
        }) = self.known.get(i.0 as usize)
        else {
            return;
        };
        if !survives {
            self.holding = Holding::nothing(&mut self.ids);
            return;
        }
        // Spilled registers come back, but the verifier does not know it of a
        // translation.
        self.holding.forget(set_of(plan.scratch.all()));
        if let Flags::Save(_) = plan.flags {
            // `lahf` borrows rax: it gets its value back, by a way that the
            // verifier does not follow.
            self.holding.forget(LocSet::reg(Reg::RAX));
        }
        if let (Some(operand), None, Some(v)) = (operand, plan.reuse, plan.dead_result()) {
            self.holding.hold(v, &operand);
        }
        let writes = self.writes(i);
        self.holding.forget(writes);
        self.holding.pass(motion, writes, &mut self.ids);
    }

    /// The psABI leaves r10 and r11 to whoever stands between caller and callee:
    /// here `twin_stlb_call` and the stubs of imports. Code that keeps something
    /// in them over an assembly routine has them spilled; such routines take no
    /// stack arguments.
    fn leave_object(
        &mut self,
        i: InstIdx,
        class: Class,
        live: LocSet,
        plan: &mut Plan,
    ) -> Result<(), Refusal> {
        let inst = self.lifted.inst(i);
        let import = match inst.target {
            Some(Target::Import(s)) => Some(linkage::convention(self.lifted.symbol_name(s))),
            Some(Target::Inst(_)) => return Ok(()),
            None => None,
        };
        let operands = self.registers_of(i).union(callee_register(class));
        let live = live.minus(operands);
        let across = [Reg::R10, Reg::R11]
            .into_iter()
            .filter(|r| live.intersects(LocSet::reg(*r)));
        let assembly = matches!(import, Some(Convention::KeepsAll | Convention::Private));
        for register in across {
            if !assembly || inst.iced.flow_control() != FlowControl::Call {
                let reason = "r10 or r11 is live over a transfer out of the object, where the psABI leaves them to linkers";
                return Err(self.lifted.refusal(Code::NoScratch, i, reason));
            }
            plan.scratch.push(register, true);
        }
        Ok(())
    }

    /// What the sequence of a class takes, see [`crate::sequences`].
    fn need(&self, class: Class) -> Need {
        let check = self.scheme.registers() + self.policy.table().registers();
        let translate = |registers| Need {
            translates: true,
            registers,
            ..Need::default()
        };
        match class {
            Class::Plain
            | Class::Stack
            | Class::Drop
            | Class::AddressOf
            | Class::Branch
            | Class::Return
            | Class::Trap(_)
            | Class::Port(_)
            | Class::FramePointerToStack
            | Class::Realign(_)
            | Class::Keep(_)
            | Class::StaticBranch => Need::default(),
            Class::Memory(space)
            | Class::Prefetch(space)
            | Class::PushMemory(space)
            | Class::PopMemory(space) => translate(check + extra_for(space)),
            // The bit's word and the masked offset, beside the check's own.
            Class::BitString(space) => translate((check + extra_for(space)).max(check + 2)),
            Class::Xlat => translate(check + 1),
            // The gate's rax is saved apart, and holds no translation.
            Class::PortString(..) => translate(check),
            Class::String(op, _, repeat) => {
                let pointers = usize::from(op.reads_rsi()) + usize::from(op.uses_rdi());
                let count = usize::from(repeat != Repeat::Once);
                // One register holds each translation; check and count share the rest.
                let registers = pointers + (check - 1).max(1) + count;
                Need {
                    translates: true,
                    registers,
                    keeps_flags: op.compares(),
                    call_registers: false,
                }
            }
            Class::CallIndirect(Callee::Memory(space))
            | Class::JumpIndirect(Callee::Memory(space))
                if space != Space::Stack =>
            {
                Need {
                    call_registers: true,
                    keeps_flags: true,
                    ..translate(check + extra_for(space))
                }
            }
            Class::CallIndirect(_) | Class::JumpIndirect(_) => Need {
                call_registers: true,
                ..Need::default()
            },
        }
    }

    fn choose(
        &mut self,
        i: InstIdx,
        registers: usize,
        live: LocSet,
        keeps_flags: bool,
        carriers: LocSet,
        plan: &mut Plan,
    ) -> Result<(), Refusal> {
        let inst = self.lifted.inst(i);
        let mut taken = self.registers_of(i);
        let mut recompute = None;
        if keeps_flags {
            // Behind the instruction its own registers are no more what was compared.
            recompute = self.compare_before(i, live).filter(|compare| {
                !restores_behind(plan.class)
                    || !self.registers_of(*compare).intersects(self.writes(i))
            });
            if let Some(compare) = recompute {
                let operands = self.registers_of(compare);
                taken = taken.union(operands);
                plan.live = plan.live.union(operands);
            }
        }
        let wanted = registers + usize::from(keeps_flags && recompute.is_none());
        let legacy_only = uses_high_byte(&inst.iced);
        let policy = self.policy;
        let usable = |r: Reg| policy.may_be_scratch(r) && (!legacy_only || r.number() < 8);
        // A register that the instruction only writes is dead before it and may
        // hold the address; one that it reads is live.
        // Not so for a string instruction, whose pointers are recovered after it
        // ran, or for a compare that is repeated.
        let is_string = matches!(plan.class, Class::String(..) | Class::PortString(..));
        let kept = if is_string || recompute.is_some() {
            taken
        } else {
            LocSet::empty()
        };
        let is_dead = |r: &Reg| {
            let r = LocSet::reg(*r);
            !live.intersects(r) && !kept.intersects(r)
        };
        // The result goes to a register that can carry it, if there is one.
        let carrier = PREFERENCE
            .into_iter()
            .find(|r| carriers.contains(LocSet::reg(*r)) && usable(*r) && is_dead(r));
        let others = PREFERENCE
            .into_iter()
            .filter(|r| Some(*r) != carrier && usable(*r) && is_dead(r));
        for r in carrier.into_iter().chain(others).take(wanted) {
            plan.scratch.push(r, false);
        }
        let missing = wanted - plan.scratch.all().len();
        if missing > 0 {
            self.spill(i, missing, usable, taken, live, plan)?;
        }
        if keeps_flags {
            plan.flags = match recompute {
                Some(compare) => Flags::Recompute(compare),
                None => Flags::Save(take_holder(&mut plan.scratch)),
            };
        }
        Ok(())
    }

    fn spill(
        &mut self,
        i: InstIdx,
        missing: usize,
        usable: impl Fn(Reg) -> bool,
        taken: LocSet,
        live: LocSet,
        plan: &mut Plan,
    ) -> Result<(), Refusal> {
        let inst = self.lifted.inst(i);
        if names_rsp_as_data(&inst.iced) {
            return Err(self.lifted.refusal(
                Code::NoScratch,
                i,
                "too few registers are dead, and spilling would change the rsp that it reads",
            ));
        }
        let taken = taken.union(self.holding.registers());
        let victims = PREFERENCE.into_iter().rev().filter(|&r| {
            usable(r) && live.intersects(LocSet::reg(r)) && !taken.intersects(LocSet::reg(r))
        });
        for r in victims.take(missing) {
            plan.scratch.push(r, true);
        }
        if plan.scratch.spilled().len() < missing {
            return Err(self.lifted.refusal(
                Code::NoScratch,
                i,
                "too few registers are free or can be spilled",
            ));
        }
        Ok(())
    }

    /// All registers that an instruction names or implies.
    fn registers_of(&self, i: InstIdx) -> LocSet {
        self.surveys[i.0 as usize].named
    }

    /// The `cmp` or `test` of registers and immediates that made the flags live
    /// at `i`, if repeating it just before `i` gives the same flags.
    fn compare_before(&self, i: InstIdx, live: LocSet) -> Option<InstIdx> {
        let block = self.flow.blocks()[self.flow.block_of(i).0 as usize].clone();
        let compare = (block.start..i.0)
            .rev()
            .map(InstIdx)
            .find(|&c| self.writes_flags(c))?;
        let iced = &self.lifted.inst(compare).iced;
        let repeatable = matches!(iced.mnemonic(), Mnemonic::Cmp | Mnemonic::Test)
            && (0..iced.op_count()).all(|op| iced.op_kind(op) != OpKind::Memory)
            && self.lifted.inst(compare).immediate.is_none()
            && !live.intersects(LocSet::flags().minus(compare_sets(iced)));
        let operands = self.registers_of(compare);
        let unchanged = (compare.0 + 1..i.0).all(|k| !self.writes(InstIdx(k)).intersects(operands));
        (repeatable && unchanged && !operands.intersects(LocSet::reg(Reg::RSP))).then_some(compare)
    }

    fn writes_flags(&self, i: InstIdx) -> bool {
        let iced = &self.lifted.inst(i).iced;
        iced.rflags_modified() != 0 || iced.flow_control() != FlowControl::Next
    }

    /// All registers that an instruction may change.
    fn writes(&self, i: InstIdx) -> LocSet {
        self.surveys[i.0 as usize].written
    }
}

fn set_of(registers: &[Reg]) -> LocSet {
    let registers = registers.iter().map(|r| LocSet::reg(*r));
    registers.fold(LocSet::empty(), LocSet::union)
}

/// What a class's sequence takes.
#[derive(Default)]
struct Need {
    /// It translates: overwrites registers and flags.
    translates: bool,
    /// How many registers.
    registers: usize,
    /// It keeps or sets the flags itself.
    keeps_flags: bool,
    /// It goes through `twin_stlb_call`: r10 and r11.
    call_registers: bool,
}

/// Segment-relative addresses are summed in a register before the check.
fn extra_for(space: Space) -> usize {
    match space {
        Space::PerCpu(_) => 1,
        Space::Stack | Space::Heap | Space::Global => 0,
    }
}

/// Whether the flags come back behind the instruction and not right before it: it is
/// a loop, whose own instructions change them.
fn restores_behind(class: Class) -> bool {
    match class {
        Class::String(_, _, repeat) => repeat != Repeat::Once,
        Class::PortString(..) => true,
        _ => false,
    }
}

/// `test` leaves AF undefined (SDM volume 2, TEST): it cannot give it back.
fn compare_sets(iced: &Instruction) -> LocSet {
    match iced.mnemonic() {
        Mnemonic::Test => LocSet::flags().minus(LocSet::flag(Flag::Adjust)),
        _ => LocSet::flags(),
    }
}

/// The register that an indirect transfer through a thunk reads.
fn callee_register(class: Class) -> LocSet {
    match class {
        Class::CallIndirect(Callee::Register(r)) | Class::JumpIndirect(Callee::Register(r)) => {
            LocSet::reg(r)
        }
        _ => LocSet::empty(),
    }
}

/// The register that keeps the flags: `rax` if it was got, since `lahf` needs
/// it anyway, else the last one. It leaves the scratch registers' order alone
/// otherwise, so spilled ones stay last.
fn take_holder(scratch: &mut Scratch) -> Reg {
    let len = usize::from(scratch.len);
    let regs = &mut scratch.regs[..len];
    let dead = len - usize::from(scratch.spilled);
    // rax comes first in the order of preference when it is dead.
    if dead > 0 && regs[0] == Reg::RAX {
        regs[..dead].rotate_left(1);
        return regs[dead - 1];
    }
    regs[len - 1]
}

/// `ah ch dh bh` cannot stand beside a register that needs a REX prefix.
fn uses_high_byte(iced: &Instruction) -> bool {
    (0..iced.op_count()).any(|op| {
        iced.op_kind(op) == OpKind::Register
            && matches!(
                iced.op_register(op),
                Register::AH | Register::CH | Register::DH | Register::BH
            )
    })
}

fn names_rsp_as_data(iced: &Instruction) -> bool {
    (0..iced.op_count()).any(|op| {
        iced.op_kind(op) == OpKind::Register
            && iced.op_register(op).full_register() == Register::RSP
    })
}
