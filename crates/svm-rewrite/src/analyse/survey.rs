//! Facts about each instruction from the decoder's tables, looked up once for control
//! flow, classification, planning and stack facts.

use iced_x86::{
    Code, FlowControl, Instruction, InstructionInfo, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};
use liveness::x86::EffectFinder;
use liveness::{Effect, LocSet, Reg, WholeRegisters};

use crate::analyse::routines;
use crate::asm::Operand;
use crate::registers::{gpr, has_memory, names, register_operands};

/// Facts about one instruction that do not depend on its context. One of each instruction is
/// kept, and most phases go over them, so this is small.
#[derive(Clone, Copy, Debug)]
pub struct Survey {
    /// All general registers that it names or implies.
    named: WholeRegisters,
    /// Those that it may change.
    written: WholeRegisters,
    /// What it does to memory, by an operand or without naming it.
    pub memory: MemoryEffect,
    /// Whether it names `rsp`, whole, also as a base, or moves it.
    pub uses_stack: bool,
    /// Whether it names `rsp` or a part, or has an operand `disp(%reg)`, which may be in the
    /// frame.
    pub may_reach_frame: bool,
    /// Whether it is `std` or `cld`.
    pub sets_direction: bool,
}

/// What an instruction does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryEffect {
    /// It reaches none.
    Untouched,
    /// It reads and never writes.
    Read,
    /// It may write.
    Written,
}

const _: () = assert!(size_of::<Survey>() <= 8);

impl Survey {
    /// All general registers that it names or implies.
    pub fn named(&self) -> LocSet {
        self.named.locations()
    }

    /// Those that it may change.
    pub fn written(&self) -> LocSet {
        self.written.locations()
    }

    /// Those of either kind.
    pub fn registers(&self) -> LocSet {
        self.named.union(self.written).locations()
    }

    /// Whether it may change a register.
    pub fn writes(&self, register: Reg) -> bool {
        self.written.contains(register)
    }
}

/// Surveys instructions; keeps the decoder's buffers.
pub struct Surveyor {
    info: InstructionInfoFactory,
    finder: EffectFinder,
}

impl Surveyor {
    pub fn new() -> Surveyor {
        Surveyor {
            info: InstructionInfoFactory::new(),
            finder: EffectFinder::new(),
        }
    }

    /// The facts about an instruction, and what it does to liveness.
    pub fn of(&mut self, iced: &Instruction) -> (Survey, Effect) {
        let info = self.info.info(iced);
        let mut survey = Survey {
            named: WholeRegisters::NONE,
            written: WholeRegisters::NONE,
            memory: memory(info),
            uses_stack: iced.is_stack_instruction() || names_rsp(iced),
            may_reach_frame: may_reach_frame(iced),
            sets_direction: matches!(iced.mnemonic(), Mnemonic::Std | Mnemonic::Cld),
        };
        for used in info.used_registers() {
            let Some(register) = gpr(used.register()).map(WholeRegisters::of) else {
                continue;
            };
            survey.named = survey.named.union(register);
            if !only_reads(used.access()) {
                survey.written = survey.written.union(register);
            }
        }
        (survey, self.finder.effect_of(iced, info))
    }
}

/// Whether an instruction names `rsp`, whole, or has an operand whose address counts from it.
fn names_rsp(iced: &Instruction) -> bool {
    iced.memory_base() == Register::RSP || names(iced, Register::RSP)
}

fn may_reach_frame(iced: &Instruction) -> bool {
    let base = iced.memory_base();
    let through_base = || base == Register::RSP || Operand::of(iced).simple().is_some();
    base != Register::None && has_memory(iced) && through_base()
        || register_operands(iced).any(|r| gpr(r) == Some(Reg::RSP))
}

fn memory(info: &InstructionInfo) -> MemoryEffect {
    let used = info.used_memory();
    if used.is_empty() {
        MemoryEffect::Untouched
    } else if used.iter().all(|m| only_reads(m.access())) {
        MemoryEffect::Read
    } else {
        MemoryEffect::Written
    }
}

fn only_reads(access: OpAccess) -> bool {
    matches!(access, OpAccess::Read | OpAccess::CondRead)
}

/// In a module for a stock kernel a hypervisor may be called. Then it reads and writes more
/// registers than the decoder's tables say: all but `rsp` and `rbp`. It is called by `vmcall`,
/// and by `in (%dx),%eax`, VMware's "backdoor" (arch/x86/include/asm/{kvm_para,vmware}.h of
/// Linux 6.1). Compilers rely on `rbp` over both.
///
/// By any other access to a port QEMU may be called as VMware is, or the machine's firmware:
/// arguments and results are in [`FIRMWARES`].
///
/// A byte of a port may be VMware's faster call, which changes `rbp` as well; its sequence takes
/// that back ([`crate::analyse::class::Class::saves_frame_pointer`]). It reads no more than the
/// decoder says: an object that makes this call is refused.
pub fn assume_hypervisor(iced: &Instruction, survey: &mut Survey, effect: &mut Effect) {
    use Mnemonic::*;
    if iced.code() == Code::In_EAX_DX || routines::is_hypercall(iced) {
        effect.uses = LocSet::registers();
        survey.written = HYPERVISORS;
        return;
    }
    let port = matches!(iced.mnemonic(), In | Out);
    let bytes = matches!(iced.mnemonic(), Insb | Insw | Insd | Outsb | Outsw | Outsd);
    if port || bytes {
        survey.written = survey.written.union(FIRMWARES);
    }
    if port {
        effect.uses = effect.uses.union(FIRMWARES.locations());
    }
    if routines::moves_port_bytes(iced) {
        survey.named = survey.named.union(WholeRegisters::of(Reg::RBP));
        survey.written = HYPERVISORS;
    }
}

/// Registers in which firmware has arguments and results where a driver calls it by a port
/// (`i8k_smm_func`, drivers/hwmon/dell-smm-hwmon.c; `raise_smi`, drivers/platform/x86/dell/dcdbas.c), and
/// which QEMU writes (hw/i386/vmport.c, vmmouse.c).
const FIRMWARES: WholeRegisters = WholeRegisters::of(Reg::RAX)
    .union(WholeRegisters::of(Reg::RBX))
    .union(WholeRegisters::of(Reg::RCX))
    .union(WholeRegisters::of(Reg::RDX))
    .union(WholeRegisters::of(Reg::RSI))
    .union(WholeRegisters::of(Reg::RDI));

/// Registers that a hypervisor may change where it is called.
const HYPERVISORS: WholeRegisters = WholeRegisters::ALL
    .minus(WholeRegisters::of(Reg::RSP))
    .minus(WholeRegisters::of(Reg::RBP));

/// Registers that [`crate::frame`] follows: those in which compilers and the kernel's
/// assembly keep addresses of the frame while `rsp` is elsewhere. The others change at
/// nearly every instruction.
pub const FOLLOWED: LocSet = LocSet::registers()
    .minus(LocSet::reg(Reg::RAX))
    .minus(LocSet::reg(Reg::RCX))
    .minus(LocSet::reg(Reg::RDX))
    .minus(LocSet::reg(Reg::RSI))
    .minus(LocSet::reg(Reg::RDI));

/// Whether an instruction may change a fact of [`crate::frame`]. Nearly none does.
pub fn may_change_facts(iced: &Instruction, survey: &Survey) -> bool {
    survey.memory == MemoryEffect::Written
        || survey.written().intersects(FOLLOWED)
        || survey.sets_direction
        || matches!(
            iced.flow_control(),
            FlowControl::Call | FlowControl::IndirectCall
        )
}
