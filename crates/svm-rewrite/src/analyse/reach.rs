//! Finds the code of an object that a hypervisor instance can execute.
//!
//! The code of an instance is never patched. So a static branch stays as it was
//! compiled, alternatives keep the instructions that the object came with, and an
//! exception fixup is never taken. Code that only those lead to is dead there, and is
//! left out: the verifier interprets only code that some path reaches, proves only what
//! it interprets, and refuses the rest.
//!
//! Liveness is computed before, so it includes the edges of the code that is left out.

use iced_x86::{FlowControl, Mnemonic};

use crate::analyse::class::Class;
use crate::analyse::codemap::Codemap;
use crate::analyse::flow::{Exit, Flow, Trap};
use crate::analyse::switches::Switches;
use crate::lift::{FuncIdx, InstIdx, Lifted};

/// Whether a loader may enter the object at a function by its symbol: true for all
/// functions except the parts that a compiler split off.
pub fn is_entry(lifted: &Lifted<'_>, f: FuncIdx) -> bool {
    let function = lifted.function(f);
    function.has_symbol && !function.padding && lifted.is_entered(f)
}

/// Leaves out code that no entry reaches; entries are functions with a symbol and those
/// in the `codemap`. Instructions that stop speculation stay; where one is reached, it
/// is a BUG.
pub fn leave_out(
    lifted: &Lifted<'_>,
    flow: &Flow,
    exits: &[Exit],
    switches: &Switches,
    codemap: &Codemap,
    classes: &mut [Class],
) {
    let entered = (0..lifted.functions.len() as u32)
        .map(FuncIdx)
        .filter(|&f| {
            let function = lifted.function(f);
            is_entry(lifted, f) || codemap.contains(&(function.section, function.start))
        })
        .map(|f| lifted.function(f).insts.start);
    let reach = Reach {
        lifted,
        flow,
        exits,
        switches,
    };
    let reached = reach.from(entered);
    for (insts, reached) in flow.blocks().iter().zip(reached) {
        for i in insts.clone().map(|i| i as usize) {
            let stops = || lifted.insts[i].iced.mnemonic() == Mnemonic::Int3;
            // Of all instructions only these are looked at: they are many.
            let stops = exits[i] == Exit::Stop && stops();
            let class = &mut classes[i];
            match (reached, stops) {
                (false, false) => *class = Class::Unreached(class.site_class()),
                (true, true) => *class = Class::Trap(Trap::Bug),
                (false, true) | (true, false) => {}
            }
        }
    }
}

struct Reach<'a> {
    lifted: &'a Lifted<'a>,
    flow: &'a Flow,
    exits: &'a [Exit],
    switches: &'a Switches,
}

impl Reach<'_> {
    /// The blocks that are reached from these instructions.
    fn from(&self, entries: impl Iterator<Item = u32>) -> Vec<bool> {
        let mut reached = vec![false; self.flow.blocks().len()];
        let mut work: Vec<u32> = entries.collect();
        while let Some(from) = work.pop() {
            let mut next = Some(from);
            while let Some(first) = next {
                // All that is led to begins a block, and only the last instruction of one leads
                // elsewhere than to the next.
                let block = self.flow.block_of(InstIdx(first)).0 as usize;
                if std::mem::replace(&mut reached[block], true) {
                    break;
                }
                let last = self.flow.blocks()[block].end - 1;
                let (behind, elsewhere) = self.after(InstIdx(last));
                work.extend(elsewhere);
                if self.exits[last as usize] == Exit::Table {
                    let switch = self.switches.at(InstIdx(last));
                    let cases = switch.iter().flat_map(|switch| &switch.cases);
                    work.extend(cases.map(|case| case.to.0));
                }
                next = behind;
            }
        }
        reached
    }

    /// Where control goes from an instruction: to the next one, and elsewhere.
    fn after(&self, i: InstIdx) -> (Option<u32>, Option<u32>) {
        let count = self.lifted.insts.len() as u32;
        let next = Some(i.0 + 1).filter(|&next| next < count && !self.lifted.begins_section(next));
        match self.exits[i.0 as usize] {
            Exit::Next | Exit::CallOut => (next, None),
            Exit::Jump { to, conditional } => (next.filter(|_| conditional), Some(to.0)),
            Exit::CallLocal(to) => (next.filter(|_| !self.flow.never_returns(i)), Some(to.0)),
            Exit::TailOut => {
                let flow = self.lifted.inst(i).iced.flow_control();
                let conditional = flow == FlowControl::ConditionalBranch;
                (next.filter(|_| conditional), None)
            }
            Exit::Table | Exit::CallStop | Exit::Return | Exit::Stop => (None, None),
        }
    }
}
