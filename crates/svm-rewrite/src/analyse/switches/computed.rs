//! Refuses indirect jumps that may go to labels which no table of their own shows.

use foldhash::HashSet;
use iced_x86::FlowControl;
use liveness::LocSet;

use super::Switches;
use super::escape::{Known, Until, Walk};
use super::find::Finder;
use crate::analyse::routines;
use crate::lift::{Destination, InstIdx, Lifted};
use crate::refusal::{self, Refusal, RefusalCode};

/// Refuses switches where flags are live, and computed jumps that are no switch.
pub fn refusals(lifted: &Lifted<'_>, switches: &Switches, live_before: &[LocSet]) -> Vec<Refusal> {
    let read = "a jump through a table that something else reads as well";
    let flags = "flags are read after a jump through a table, and comparing what the table holds \
                 changes them";
    let computed = "an indirect jump in a function whose labels' addresses are in more than \
                    read-only tables for such jumps: a computed goto";
    let live = |i: &InstIdx| live_before[i.0 as usize].intersects(LocSet::flags());
    let by_flags = switches.iter().map(|(jump, _)| jump).filter(live);
    let leaks = switches.leaks.iter().map(|&jump| (jump, read));
    let all = leaks
        .chain(by_flags.map(|jump| (jump, flags)))
        .chain(switches.computed.iter().map(|&jump| (jump, computed)));
    let mut refusals = Vec::new();
    for (jump, reason) in all {
        let refused = lifted.refusal(RefusalCode::CodeReference, jump, reason);
        refusal::add(&mut refusals, refused);
    }
    refusals
}

/// Indirect jumps that are no switch, in functions whose labels get elsewhere: the
/// jump may go to the label, and nothing says so. A label that is only an argument of calls
/// (`_THIS_IP_`) gets nowhere that a jump of the function takes it from.
///
/// A label may be where a function begins. Its address is then that of a function, which may get
/// anywhere, but places are not counted from it.
pub(super) fn find<'f>(
    lifted: &Lifted<'_>,
    switches: &Switches,
    finder: impl FnOnce() -> &'f Finder<'f, 'f>,
) -> Vec<InstIdx> {
    let whole = |i: InstIdx| {
        let name = &lifted.function(lifted.function_of(i)).name;
        name.split(".cold").next().unwrap_or_default()
    };
    let transfers = lifted.transfers.iter().copied();
    let jumps: Vec<InstIdx> = transfers
        .filter(|&i| jumps_by_register(lifted, i) && switches.at(i).is_none())
        .collect();
    let jumping: HashSet<&str> = jumps.iter().copied().map(whole).collect();
    let begins = |to: InstIdx| lifted.function(lifted.function_of(to)).insts.start == to.0;
    let named = lifted.named_places();
    let named: Vec<(InstIdx, bool)> = named
        .filter_map(|(i, (code, at))| Some((i, lifted.inst_at(code, at)?)))
        .filter(|(i, _)| jumping.contains(whole(*i)))
        .filter(|(i, to)| begins(*to) || whole(*to) == whole(*i))
        .map(|(i, to)| (i, begins(to)))
        .collect();
    if named.is_empty() {
        return Vec::new();
    }
    let finder = finder();
    let (known, own, cases) = (Known::default(), HashSet::default(), switches.cases());
    let walk = Walk {
        known: &known,
        own: &own,
        cases: &cases,
        until: Until::End,
        indexed: false,
        passed: false,
        returned: false,
    };
    let leaks = |(i, begins): &(InstIdx, bool)| match (finder.labelled(*i), begins) {
        (_, true) => finder.is_counted_from(*i, &walk),
        (Some(register), false) => finder.escapes([InstIdx(i.0 + 1)], register, &walk),
        (None, false) => true,
    };
    let named = named.into_iter().filter(leaks).map(|(i, _)| whole(i));
    let named: HashSet<&str> = named.collect();
    let leading = jumps.into_iter().filter(|i| named.contains(whole(*i)));
    leading.collect()
}

/// Whether an instruction jumps where a register or memory says, itself or through a thunk.
fn jumps_by_register(lifted: &Lifted<'_>, i: InstIdx) -> bool {
    let inst = lifted.inst(i);
    match (inst.iced.flow_control(), inst.target) {
        (FlowControl::IndirectBranch, _) => true,
        (FlowControl::UnconditionalBranch, Some(Destination::Import(s))) => {
            routines::indirect_thunk(lifted.symbol_name(s)).is_some()
        }
        _ => false,
    }
}
