//! How each instruction continues, and the control flow that no instruction shows:
//! static branches, alternatives, exception fixups, WARNs, and where indirect jumps go.

use foldhash::{HashMap, HashSet};
use iced_x86::{FlowControl, Mnemonic};

use crate::analyse::flow::metadata::ExtraEdges;
use crate::analyse::routines;
use crate::analyse::switches::Switches;
use crate::lift::{Destination, InstIdx, Lifted, is_filler};
use crate::refusal::Refusal;

/// Control flow that no instruction and no metadata shows.
#[derive(Debug, Default)]
pub struct Hints {
    /// Where indirect jumps go inside the object.
    pub by_jumps: Vec<InstIdx>,
    /// Jumps through tables that were found, each with its own places.
    pub switches: Switches,
    /// Where control continues when a call is unwound (landing pads).
    pub by_unwinding: Vec<InstIdx>,
    /// Where code elsewhere may enter, beside the functions: it brings nothing along.
    pub entered: Vec<InstIdx>,
    /// Functions that a linker may replace by others of their name, by the index of
    /// their first instruction.
    pub replaceable: HashSet<u32>,
    /// Instructions that do nothing and that the text has itself, by index. Tools take them for
    /// calls of their own, and read registers there: valgrind's requests, probes of USDT.
    pub markers: HashSet<u32>,
}

/// Which calling conventions the code may have, apart from those that calls inside the
/// object show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conventions {
    /// The psABI's.
    #[default]
    Psabi,
    /// Any: a function may keep each register for its caller, may return something in it,
    /// and may have an argument in it. Options (`-fcall-saved-rcx`, `-ffixed-r11`) and
    /// attributes (`preserve_most`, `regcall`, `no_caller_saved_registers`) ask for such.
    Any,
}

impl Hints {
    /// What an object shows: its jump tables.
    pub fn of_object(lifted: &Lifted<'_>) -> Hints {
        Hints {
            switches: Switches::find(lifted),
            ..Hints::default()
        }
    }

    /// What the object of a text shows.
    pub fn of_text(lifted: &Lifted<'_>) -> Hints {
        Hints {
            switches: Switches::of_addresses(lifted),
            ..Hints::default()
        }
    }
}

/// How an instruction continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// To the next instruction only.
    Next,
    /// To a branch target, and to the next instruction if conditional.
    Jump { to: InstIdx, conditional: bool },
    /// To one of the places in a table.
    Table,
    /// Into a function of this object and back to the instruction after the call.
    CallLocal(InstIdx),
    /// Out of this object and back: an import, or an indirect call.
    CallOut,
    /// Out of this object without return (`__stack_chk_fail`).
    CallStop,
    /// Out of this object for good: a tail call, direct or indirect.
    TailOut,
    /// Back to the caller.
    Return,
    /// Nowhere: `ud2` that is a BUG, `int3`, where no handler goes on behind them.
    Stop,
}

/// What a `ud2` stands for. After that of a WARN control continues; after that of a BUG
/// it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trap {
    /// `BUGFLAG_WARNING` is set for this address, or it is one of kCFI's.
    Warn,
    /// It is not, or the address has no entry.
    Bug,
}

/// Control flow that no instruction shows.
pub struct HiddenFlow {
    /// From metadata.
    pub extra: ExtraEdges,
    /// From hints.
    pub tables: Tables,
    /// Indirect jumps that go to a place in a table, by instruction.
    by_table: HashSet<u32>,
}

impl HiddenFlow {
    /// Reads metadata and hints.
    ///
    /// # Errors
    /// Metadata that cannot be read: an edge may be missing.
    pub fn find(lifted: &Lifted<'_>, hints: &Hints) -> Result<HiddenFlow, Refusal> {
        let tables = Tables::find(lifted, hints);
        Ok(HiddenFlow {
            extra: ExtraEdges::find(lifted)?,
            by_table: tables.jumps.iter().map(|(i, _)| i.0).collect(),
            tables,
        })
    }

    /// Whether this indirect jump stays inside its function.
    pub fn goes_by_table(&self, i: InstIdx) -> bool {
        self.by_table.contains(&i.0)
    }

    /// What `ud2` at this instruction stands for.
    pub fn trap(&self, i: InstIdx) -> Trap {
        if self.extra.warns.contains(&i.0) {
            Trap::Warn
        } else {
            Trap::Bug
        }
    }

    /// How an instruction continues.
    #[inline]
    pub fn exit(&self, lifted: &Lifted<'_>, i: InstIdx, conventions: Conventions) -> Exit {
        match lifted.inst(i).iced.flow_control() {
            FlowControl::Next => Exit::Next,
            _ => self.exit_of_transfer(lifted, i, conventions),
        }
    }

    /// How an instruction continues that may lead elsewhere than to the next one.
    fn exit_of_transfer(&self, lifted: &Lifted<'_>, i: InstIdx, conventions: Conventions) -> Exit {
        match exit_of(lifted, i, &self.extra.warns, conventions) {
            Exit::TailOut if self.goes_by_table(i) => Exit::Table,
            // A program's handler of SIGTRAP or SIGILL may go on behind it, and a debugger does.
            Exit::Stop if conventions == Conventions::Any => Exit::Next,
            exit => exit,
        }
    }

    /// Lets calls of routines that never return go on where the compiler took them for such as
    /// do: gcc then has code behind them that nothing else leads to. Lustre declares
    /// `lbug_with_loc` in one way in some releases, and in the other in others. To go on is what
    /// any call does, so no path is lost.
    pub fn go_on_behind_stops(&self, lifted: &Lifted<'_>, exits: &mut [Exit]) {
        let stops = lifted.transfers.iter().copied();
        let stops = stops.filter(|i| exits[i.0 as usize] == Exit::CallStop);
        let stops = stops.filter(|i| is_code_behind(lifted, *i));
        let mut behind: HashSet<u32> = stops.map(|i| i.0 + 1).collect();
        if behind.is_empty() {
            return;
        }
        for i in &lifted.transfers {
            if let Exit::Jump { to, .. } | Exit::CallLocal(to) = &exits[i.0 as usize] {
                behind.remove(&to.0);
            }
        }
        let by_metadata = self.extra.edges.iter().map(|(_, to)| to);
        for to in by_metadata.chain(self.tables.places.iter().flatten()) {
            behind.remove(&to.0);
        }
        for i in behind {
            exits[i as usize - 1] = Exit::CallOut;
        }
    }
}

/// Whether more of the function than what fills space stands behind a call.
fn is_code_behind(lifted: &Lifted<'_>, call: InstIdx) -> bool {
    let end = lifted.function(lifted.function_of(call)).insts.end;
    let next = InstIdx(call.0 + 1);
    next.0 < end && {
        let iced = &lifted.inst(next).iced;
        !is_filler(iced) && iced.flow_control() != FlowControl::Exception
    }
}

fn exit_of(
    lifted: &Lifted<'_>,
    i: InstIdx,
    warns: &HashSet<u32>,
    conventions: Conventions,
) -> Exit {
    let inst = lifted.inst(i);
    let iced = &inst.iced;
    match (iced.flow_control(), inst.target) {
        (FlowControl::Next, _) => Exit::Next,
        (
            FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend,
            Some(Destination::Inst(to)),
        ) => Exit::Jump {
            to,
            conditional: true,
        },
        // A conditional tail call, which leaves the object or falls through.
        (FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend, _) => Exit::TailOut,
        (FlowControl::UnconditionalBranch, Some(Destination::Inst(to))) => Exit::Jump {
            to,
            conditional: false,
        },
        (FlowControl::UnconditionalBranch, Some(Destination::Import(s)))
            if routines::is_return_thunk(lifted.symbol_name(s)) =>
        {
            Exit::Return
        }
        (FlowControl::UnconditionalBranch | FlowControl::IndirectBranch, _) => Exit::TailOut,
        (FlowControl::Call, Some(Destination::Inst(to))) => Exit::CallLocal(to),
        (FlowControl::Call, Some(Destination::Import(s)))
            if routines::never_returns(lifted.symbol_name(s), conventions) =>
        {
            Exit::CallStop
        }
        (FlowControl::Call, None) if routines::is_hypercall(iced) => Exit::Next,
        (FlowControl::Call | FlowControl::IndirectCall, _) => Exit::CallOut,
        (FlowControl::Return, _) => Exit::Return,
        (FlowControl::Exception, _) if iced.mnemonic() == Mnemonic::Ud2 && warns.contains(&i.0) => {
            Exit::Next
        }
        (FlowControl::Exception, _) => Exit::Stop,
        (FlowControl::Interrupt, _) if iced.mnemonic() == Mnemonic::Int3 => Exit::Stop,
        (FlowControl::Interrupt, _) => Exit::Next,
    }
}

/// Indirect jumps and the sets of places that they may go to.
#[derive(Default)]
pub struct Tables {
    /// Each jump, and its set.
    pub jumps: Vec<(InstIdx, u32)>,
    /// Each call that may be unwound out of, and its set.
    pub calls: Vec<(InstIdx, u32)>,
    /// What is in each set.
    pub places: Vec<Vec<InstIdx>>,
}

impl Tables {
    /// Finds them. Both parts of a function that the compiler split count as one,
    /// and any jump of it may go to any place in it.
    fn find(lifted: &Lifted<'_>, hints: &Hints) -> Tables {
        let mut tables = Tables::default();
        for (jump, switch) in hints.switches.iter() {
            tables.jumps.push((jump, tables.places.len() as u32));
            tables
                .places
                .push(switch.cases.iter().map(|case| case.to).collect());
        }
        // Nothing in the object leads to these places.
        if !hints.entered.is_empty() {
            tables.places.push(hints.entered.clone());
        }
        if hints.by_jumps.is_empty() && hints.by_unwinding.is_empty() {
            return tables;
        }
        let whole = |i: InstIdx| {
            let name = &lifted.function(lifted.function_of(i)).name;
            name.split(".cold").next().unwrap_or_default()
        };
        let mut sets: HashMap<(&str, bool), u32> = HashMap::default();
        let jumps = hints.by_jumps.iter().map(|i| (i, false));
        for (&i, unwound) in jumps.chain(hints.by_unwinding.iter().map(|i| (i, true))) {
            let next = tables.places.len() as u32;
            let set = *sets.entry((whole(i), unwound)).or_insert(next);
            if set == next {
                tables.places.push(Vec::new());
            }
            tables.places[set as usize].push(i);
        }
        for i in (0..lifted.insts.len() as u32).map(InstIdx) {
            match lifted.inst(i).iced.flow_control() {
                FlowControl::IndirectBranch if hints.switches.at(i).is_none() => {
                    if let Some(&set) = sets.get(&(whole(i), false)) {
                        tables.jumps.push((i, set));
                    }
                }
                FlowControl::Call | FlowControl::IndirectCall => {
                    if let Some(&set) = sets.get(&(whole(i), true)) {
                        tables.calls.push((i, set));
                    }
                }
                _ => {}
            }
        }
        tables
    }
}
