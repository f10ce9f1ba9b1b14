//! The kinds of instructions that were executed: the comparison says nothing about
//! others.

use iced_x86::{
    Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind,
    Register,
};

use process_lab::stock::{Function, Stock};

twin_abi::listed! {
    /// A kind of instruction that the differential run has to execute.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Feature {
        /// Reads memory.
        Load,
        /// Writes memory.
        Store,
        /// Reads and writes memory.
        ReadModifyWrite,
        /// With a `lock` prefix.
        Lock,
        /// `rep stos`.
        RepStos,
        /// `rep movs`.
        RepMovs,
        /// `bts` or another of its family with memory and a register: outside the
        /// plain effective address.
        BitString,
        /// A negative displacement from a register.
        NegativeDisplacement,
        /// Relative to `%gs`.
        PerCpu,
        /// Relative to `rip`: the module's or the kernel's variables.
        RipRelative,
        /// Port input or output.
        Port,
        /// A call through a thunk.
        IndirectCall,
        /// `lea` of a stack address: a variable passed by reference.
        StackReference,
        /// An index register.
        Indexed,
        /// `ud2`.
        Trap,
        /// `prefetcht0` or another of its family.
        Prefetch,
    }
}

/// The module's instructions.
pub struct Instructions {
    all: Vec<Instruction>,
}

impl Instructions {
    /// Decodes the module's code as it is linked.
    pub fn of(stock: &Stock<'_>) -> Instructions {
        let mut all = Vec::new();
        for (id, address) in stock.layout.placed() {
            let section = stock.object.section(id);
            if !section.is_code() {
                continue;
            }
            let Some((at, _)) = stock.space.offset(address, section.size.max(1)) else {
                continue;
            };
            let bytes = &stock.pristine[at..at + section.size as usize];
            all.extend(Decoder::with_ip(64, bytes, address, DecoderOptions::NONE));
        }
        all.sort_by_key(Instruction::ip);
        Instructions { all }
    }

    fn within(&self, function: &Function) -> &[Instruction] {
        let from = self.all.partition_point(|i| i.ip() < function.address);
        let to = self
            .all
            .partition_point(|i| i.ip() < function.address + function.size);
        &self.all[from..to]
    }

    /// How many instructions of a function and its cold part were executed, and how
    /// many there are.
    pub fn executed(&self, stock: &Stock<'_>, name: &str, coverage: &[u8]) -> (u64, u64) {
        let cold = format!("{name}.cold");
        let mut counts = (0, 0);
        for function in stock
            .functions
            .iter()
            .filter(|f| f.name == name || f.name == cold)
        {
            for instruction in self.within(function) {
                counts.0 += u64::from(is_covered(stock, coverage, instruction.ip()));
                counts.1 += 1;
            }
        }
        counts
    }

    /// Addresses of a function's runs of instructions that were not executed:
    /// the first and the last of each.
    pub fn missed(
        &self,
        function: &Function,
        stock: &Stock<'_>,
        coverage: &[u8],
    ) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut open = false;
        for instruction in self.within(function) {
            let at = instruction.ip();
            let missed = !is_covered(stock, coverage, at);
            match runs.last_mut() {
                Some(run) if missed && open => run.1 = at,
                _ if missed => runs.push((at, at)),
                _ => {}
            }
            open = missed;
        }
        runs
    }

    /// How many different instructions with each feature were executed.
    pub fn features(&self, stock: &Stock<'_>, coverage: &[u8]) -> Vec<(Feature, usize)> {
        let mut factory = InstructionInfoFactory::new();
        let executed: Vec<_> = self
            .all
            .iter()
            .filter(|i| is_covered(stock, coverage, i.ip()))
            .copied()
            .collect();
        let mut count = |feature| {
            let has = executed.iter().filter(|i| has(feature, i, &mut factory));
            (feature, has.count())
        };
        Feature::ALL.into_iter().map(&mut count).collect()
    }
}

fn is_covered(stock: &Stock<'_>, coverage: &[u8], address: u64) -> bool {
    let at = address.wrapping_sub(stock.code().start) as usize;
    coverage.get(at).is_some_and(|byte| *byte != 0)
}

fn has(feature: Feature, i: &Instruction, factory: &mut InstructionInfoFactory) -> bool {
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    let heap = memory && i.memory_base() != Register::RSP && i.mnemonic() != Mnemonic::Lea;
    let mut accesses = |wanted: OpAccess| {
        let info = factory.info(i);
        info.used_memory()
            .iter()
            .any(|m| m.access() == wanted && m.base() != Register::RSP)
    };
    match feature {
        Feature::Load => heap && accesses(OpAccess::Read),
        Feature::Store => heap && accesses(OpAccess::Write),
        Feature::ReadModifyWrite => heap && accesses(OpAccess::ReadWrite),
        Feature::Lock => i.has_lock_prefix(),
        Feature::RepStos => {
            i.has_rep_prefix()
                && i.is_string_instruction()
                && i.op0_kind() == OpKind::MemoryESRDI
                && i.op1_kind() == OpKind::Register
        }
        Feature::RepMovs => {
            i.has_rep_prefix()
                && i.op0_kind() == OpKind::MemoryESRDI
                && i.op1_kind() == OpKind::MemorySegRSI
        }
        Feature::BitString => {
            let family = [Mnemonic::Bt, Mnemonic::Bts, Mnemonic::Btr, Mnemonic::Btc];
            family.contains(&i.mnemonic()) && memory && i.op1_kind() == OpKind::Register
        }
        Feature::NegativeDisplacement => {
            heap && i.memory_base() != Register::RIP && (i.memory_displacement64() as i64) < 0
        }
        Feature::PerCpu => memory && i.memory_segment() == Register::GS,
        Feature::RipRelative => {
            heap && i.is_ip_rel_memory_operand() && i.memory_segment() == Register::DS
        }
        Feature::Port => matches!(i.mnemonic(), Mnemonic::In | Mnemonic::Out),
        Feature::IndirectCall => {
            i.is_call_near() && process_lab::stock::thunk_register(i.near_branch_target()).is_some()
        }
        Feature::StackReference => {
            i.mnemonic() == Mnemonic::Lea && i.memory_base() == Register::RSP
        }
        Feature::Indexed => heap && i.memory_index() != Register::None,
        Feature::Trap => i.mnemonic() == Mnemonic::Ud2,
        Feature::Prefetch => matches!(
            i.mnemonic(),
            Mnemonic::Prefetcht0
                | Mnemonic::Prefetcht1
                | Mnemonic::Prefetcht2
                | Mnemonic::Prefetchnta
                | Mnemonic::Prefetchw
        ),
    }
}
