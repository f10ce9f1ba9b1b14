//! Counts of the sites in an object's code (`twin stats`).

use iced_x86::Mnemonic;
use serde::Serialize;
use twin_abi::Accesses;

use crate::analyse::Analysis;
use crate::analyse::class::{Class, SiteClass};
use crate::analyse::classify;

/// Counts of sites by class, in instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[allow(
    missing_docs,
    reason = "each field is described at the class of its name, in `SiteClass`"
)]
pub struct Sites {
    pub stack: u64,
    pub heap: u64,
    pub global: u64,
    pub percpu: u64,
    pub string: u64,
    pub bitstring: u64,
    pub push_pop: u64,
    pub indirect_call: u64,
    pub indirect_jump: u64,
    pub port_io: u64,
    pub sensitive: u64,
}

/// How many registers are dead before heap accesses, in accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeadRegisters {
    /// Accesses before which no register is dead.
    #[serde(rename = "0")]
    pub none: u64,
    /// Accesses before which one register is dead.
    #[serde(rename = "1")]
    pub one: u64,
    /// Accesses before which two registers are dead.
    #[serde(rename = "2")]
    pub two: u64,
    /// Three or more.
    #[serde(rename = "3+")]
    pub three_or_more: u64,
}

/// Liveness before heap accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LivenessCounts {
    /// Heap accesses before which an arithmetic flag is live.
    pub flags_live: u64,
    /// By number of dead registers.
    pub dead_registers: DeadRegisters,
}

/// Statistics of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Stats {
    /// Instructions in code sections.
    pub instructions: u64,
    /// Functions, padding not counted.
    pub functions: u64,
    /// Bytes in code sections.
    pub text_bytes: u64,
    /// Sites by class.
    pub sites: Sites,
    /// Liveness before heap accesses.
    pub liveness: LivenessCounts,
}

/// Counts the instructions by the class that each has; those that have none, because they
/// are refused, count as sensitive. Of accesses to memory these are counted.
pub fn stats(
    analysis: &Analysis<'_>,
    classes: impl Iterator<Item = Option<Class>>,
    accesses: Accesses,
) -> Stats {
    let lifted = analysis.lifted;
    let mut stats = Stats {
        instructions: lifted.insts.len() as u64,
        functions: lifted.functions.iter().filter(|f| !f.padding).count() as u64,
        text_bytes: lifted
            .sections
            .iter()
            .map(|s| lifted.object.section(s.id).data.len() as u64)
            .sum(),
        ..Stats::default()
    };
    for (i, class) in classes.enumerate() {
        let Some(class) = class else {
            stats.sites.sensitive += 1;
            continue;
        };
        let Some(kind) = class.site_class() else {
            continue;
        };
        if accesses == Accesses::Stores && !may_store(analysis, i, kind) {
            continue;
        }
        if let Some(counter) = stats.sites.counter(kind) {
            *counter += 1;
        }
        if kind == SiteClass::Heap && matches!(class, Class::Memory(_) | Class::Unreached(_)) {
            stats.liveness.count(analysis.live_before[i]);
        }
    }
    stats
}

/// Whether an instruction of that kind may write memory by an operand, or reaches none by
/// one.
fn may_store(analysis: &Analysis<'_>, i: usize, kind: SiteClass) -> bool {
    match kind {
        SiteClass::Stack
        | SiteClass::Heap
        | SiteClass::Global
        | SiteClass::Percpu
        | SiteClass::String
        | SiteClass::Bitstring => !classify::only_reads(&analysis.surveys[i]),
        // Both write: one of them the stack alone.
        SiteClass::PushPop => analysis.lifted.insts[i].iced.mnemonic() == Mnemonic::Pop,
        SiteClass::IndirectCall
        | SiteClass::IndirectJump
        | SiteClass::PortIo
        | SiteClass::Sensitive
        | SiteClass::Other => true,
    }
}

impl Sites {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.rows().iter().map(|(_, count)| count).sum()
    }

    fn counter(&mut self, kind: SiteClass) -> Option<&mut u64> {
        Some(match kind {
            SiteClass::Stack => &mut self.stack,
            SiteClass::Heap => &mut self.heap,
            SiteClass::Global => &mut self.global,
            SiteClass::Percpu => &mut self.percpu,
            SiteClass::String => &mut self.string,
            SiteClass::Bitstring => &mut self.bitstring,
            SiteClass::PushPop => &mut self.push_pop,
            SiteClass::IndirectCall => &mut self.indirect_call,
            SiteClass::IndirectJump => &mut self.indirect_jump,
            SiteClass::PortIo => &mut self.port_io,
            SiteClass::Sensitive => &mut self.sensitive,
            SiteClass::Other => return None,
        })
    }

    /// Name and count of each class, in the order in which they are printed.
    pub fn rows(&self) -> [(&'static str, u64); 11] {
        let rows = [
            (SiteClass::Stack, self.stack),
            (SiteClass::Heap, self.heap),
            (SiteClass::Global, self.global),
            (SiteClass::Percpu, self.percpu),
            (SiteClass::String, self.string),
            (SiteClass::Bitstring, self.bitstring),
            (SiteClass::PushPop, self.push_pop),
            (SiteClass::IndirectCall, self.indirect_call),
            (SiteClass::IndirectJump, self.indirect_jump),
            (SiteClass::PortIo, self.port_io),
            (SiteClass::Sensitive, self.sensitive),
        ];
        rows.map(|(kind, count)| (kind.as_str(), count))
    }
}

impl LivenessCounts {
    fn count(&mut self, live: liveness::LocSet) {
        self.flags_live += u64::from(live.intersects(liveness::LocSet::flags()));
        let dead = &mut self.dead_registers;
        match liveness::dead_registers(live).len() {
            0 => dead.none += 1,
            1 => dead.one += 1,
            2 => dead.two += 1,
            _ => dead.three_or_more += 1,
        }
    }

    /// Heap accesses in all.
    pub fn total(&self) -> u64 {
        let d = &self.dead_registers;
        d.none + d.one + d.two + d.three_or_more
    }
}
