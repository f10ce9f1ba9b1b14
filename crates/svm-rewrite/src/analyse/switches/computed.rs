//! Refuses indirect jumps that may go to labels which no table of their own shows.

use foldhash::HashSet;
use iced_x86::FlowControl;
use liveness::LocSet;

use super::Switches;
use super::escape::Walk;
use super::find::Finder;
use crate::analyse::flow::Hints;
use crate::analyse::routines;
use crate::lift::{Destination, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Refuses switches where flags are live, and computed jumps that are no switch.
pub fn refusals(lifted: &Lifted<'_>, hints: &Hints, live_before: &[LocSet]) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let live = |i: InstIdx| live_before[i.0 as usize];
    for &jump in &hints.switches.leaks {
        let reason = "a jump through a table that something else reads as well";
        refusal::add(
            &mut refusals,
            lifted.refusal(RefusalCode::CodeReference, jump, reason),
        );
    }
    for (jump, _) in hints.switches.iter() {
        if live(jump).intersects(LocSet::flags()) {
            let reason = "flags are read after a jump through a table, and comparing what the \
                          table holds changes them";
            let refused = lifted.refusal(RefusalCode::CodeReference, jump, reason);
            refusal::add(&mut refusals, refused);
        }
    }
    if hints.refuses_computed {
        computed(lifted, &hints.switches, &mut refusals);
    }
    refusals
}

/// Refuses indirect jumps that are no switch, in functions whose labels get elsewhere: the
/// jump may go to the label, and nothing says so. A label that is only an argument of calls
/// (`_THIS_IP_`) gets nowhere that a jump of the function takes it from.
fn computed(lifted: &Lifted<'_>, switches: &Switches, refusals: &mut Vec<Refusal>) {
    let whole = |i: InstIdx| {
        let name = &lifted.function(lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    };
    let labels = lifted.relocated_values.iter().filter(|(i, value)| {
        let place = lifted.code_place(value.symbol, value.addend);
        let to = place.and_then(|(code, at)| lifted.inst_at(code, at));
        let inside = |to: &InstIdx| lifted.function(lifted.function_of(*to)).insts.start != to.0;
        to.filter(inside).is_some_and(|to| whole(to) == whole(*i))
    });
    let labels: Vec<InstIdx> = labels.map(|(i, _)| *i).collect();
    if labels.is_empty() {
        return;
    }
    let finder = Finder::new(lifted);
    let (own, cases) = (HashSet::default(), switches.cases());
    let walk = Walk {
        own: &own,
        cases: &cases,
        indexed: false,
        passed: false,
        returned: false,
    };
    let leaks = |i: &InstIdx| match finder.labelled(*i) {
        Some(register) => finder.escapes([InstIdx(i.0 + 1)], register, &walk),
        None => true,
    };
    let named: HashSet<&str> = labels.into_iter().filter(leaks).map(whole).collect();
    if named.is_empty() {
        return;
    }
    for i in (0..lifted.insts.len() as u32).map(InstIdx) {
        let inst = lifted.inst(i);
        let thunk = |s| routines::indirect_thunk(lifted.symbol_name(s)).is_some();
        let jumps = match (inst.iced.flow_control(), inst.target) {
            (FlowControl::IndirectBranch, _) => true,
            (FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => thunk(s),
            _ => false,
        };
        if jumps && switches.at(i).is_none() && named.contains(whole(i)) {
            let reason = "an indirect jump in a function whose labels' addresses are in more \
                          than read-only tables for such jumps: a computed goto";
            refusal::add(
                refusals,
                lifted.refusal(RefusalCode::CodeReference, i, reason),
            );
        }
    }
}
