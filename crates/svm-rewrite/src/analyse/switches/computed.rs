//! Refuses indirect jumps that may go to labels which no table of their own shows.

use foldhash::HashSet;
use iced_x86::FlowControl;
use liveness::LocSet;

use super::Switches;
use super::find::Finder;
use crate::analyse::class::Callee;
use crate::analyse::flow::Hints;
use crate::analyse::routines;
use crate::lift::{Destination, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Refuses switches where flags are live, and computed jumps that are no switch.
pub fn refusals(lifted: &Lifted<'_>, hints: &Hints, live_before: &[LocSet]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let live = |i: InstIdx| live_before[i.0 as usize];
    for (jump, _) in hints.switches.iter() {
        if live(jump).intersects(LocSet::flags()) {
            let reason = "flags are read after a jump through a table, and comparing what the \
                          table holds changes them";
            let refused = lifted.refusal(RefusalCode::CodeReference, jump, reason);
            refusal::add(&mut refusals, refused);
        }
    }
    if hints.refuses_computed {
        computed(lifted, &hints.switches, &live, &mut refusals);
    }
    refusals
}

/// Refuses indirect jumps that are no switch, in functions whose labels get elsewhere: the
/// jump may go to the label, and nothing says so.
fn computed(
    lifted: &Lifted<'_>,
    switches: &Switches,
    live: &dyn Fn(InstIdx) -> LocSet,
    refusals: &mut Vec<Refusal>,
) {
    let whole = |i: InstIdx| {
        let name = &lifted.function(lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    };
    let mut leaks: HashSet<&str> = switches.leaks.iter().map(|name| &**name).collect();
    for (jump, switch) in switches.iter() {
        if let Callee::Register(r) = switch.callee
            && let Some(case) = switch.cases.first()
            && switch
                .cases
                .iter()
                .any(|case| live(case.to).intersects(LocSet::reg(r)))
        {
            leaks.insert(whole(case.to));
            leaks.insert(whole(jump));
        }
    }
    let mut named: HashSet<&str> = HashSet::default();
    for (i, value) in &lifted.relocated_values {
        let place = lifted.code_place(value.symbol, value.addend);
        let to = place.and_then(|(code, at)| lifted.inst_at(code, at));
        let inside = |to: &InstIdx| lifted.function(lifted.function_of(*to)).insts.start != to.0;
        if to.filter(inside).is_some_and(|to| whole(to) == whole(*i)) {
            named.insert(whole(*i));
        }
    }
    if leaks.is_empty() && named.is_empty() {
        return;
    }
    let mut finder = None;
    for i in (0..lifted.insts.len() as u32).map(InstIdx) {
        let inst = lifted.inst(i);
        let thunk = |s| routines::indirect_thunk(lifted.symbol_name(s)).is_some();
        let jumps = match (inst.iced.flow_control(), inst.target) {
            (FlowControl::IndirectBranch, _) => true,
            (FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => thunk(s),
            _ => false,
        };
        if !jumps {
            continue;
        }
        let (leaks, named) = (leaks.contains(whole(i)), named.contains(whole(i)));
        let refused = match switches.at(i) {
            None if leaks => true,
            None if named => finder
                .get_or_insert_with(|| Finder::new(lifted))
                .may_be_label(i),
            None => false,
            Some(_) => leaks && named,
        };
        if refused {
            let reason = "an indirect jump in a function whose labels' addresses are in more \
                          than read-only tables for such jumps: a computed goto";
            refusal::add(
                refusals,
                lifted.refusal(RefusalCode::CodeReference, i, reason),
            );
        }
    }
}
