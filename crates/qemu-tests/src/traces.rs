//! What the kernel's tracing shows of the modules of a trial: which of their functions
//! the function tracer saw, and whether stack traces through their frames are whole.

use std::collections::BTreeSet;

use super::modules::Module;
use super::report::{self, GuestReport};

/// Beginnings of names of the kernel's network functions that drivers call: stack traces
/// are taken from these, too. All that a driver calls would be locks and allocations of
/// the whole kernel.
const TRACED_IMPORTS: [&str; 9] = [
    "__alloc_skb", "__napi_", "__netdev_", "__netif_", "dma_", "gro_", "napi_", "netdev_", "netif_",
];

/// Counts of what was traced.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traces {
    /// Functions of the modules that the function tracer saw called.
    pub functions: usize,
    /// Different stack traces in which one of their functions has called another, or was
    /// interrupted: frames in the middle of rewritten code.
    pub stacks: usize,
}

impl std::ops::AddAssign for Traces {
    fn add_assign(&mut self, other: Traces) {
        self.functions += other.functions;
        self.stacks += other.stacks;
    }
}

/// The names of all functions of these modules, a line each.
pub fn functions(modules: &[Module]) -> String {
    lines(modules.iter().flat_map(Module::function_names))
}

/// The names of the kernel's functions from which stack traces are taken, a line each.
pub fn imports(modules: &[Module]) -> String {
    let imports: BTreeSet<String> = modules.iter().flat_map(Module::imports).collect();
    let traced = |name: &&String| TRACED_IMPORTS.iter().any(|begin| name.starts_with(begin));
    lines(imports.iter().filter(traced).map(String::as_str))
}

fn lines<'n>(names: impl Iterator<Item = &'n str>) -> String {
    names.map(|name| format!("{name}\n")).collect()
}

/// Judges the texts that the guest showed: as steps of the report, and as counts.
pub fn judge(report: &mut GuestReport, modules: &[Module]) -> Traces {
    /// How many functions each driver runs at least, and how many stacks it is in, for two
    /// pings and its interface down and up.
    const FEWEST: usize = 3;
    let own = |name: &str| modules.iter().any(|module| module.has(name));
    let shown = |report: &GuestReport, name: &str| {
        let text = report.shown.get(name);
        text.cloned().unwrap_or_default()
    };
    let traced = shown(report, "ftrace");
    let (functions, foreign): (Vec<&str>, Vec<&str>) = traced.lines().partition(|f| own(f));
    report.judge(
        "ftrace",
        functions.len() >= FEWEST && foreign.is_empty(),
        format!(
            "{} functions, not of the modules: {foreign:?}",
            functions.len()
        ),
    );
    let mut stacks = 0;
    for name in ["stacks", "timer"] {
        let of_modules = report::stacks(&shown(report, name));
        // The first frame of a trace from a function's entry says nothing of its code.
        let inside = |stack: &&Vec<String>| stack.iter().skip(1).any(|frame| own(frame));
        let through: Vec<&Vec<String>> = of_modules.iter().filter(inside).collect();
        let broken = of_modules.iter().find(|stack| !report::is_whole(stack));
        // The timer may miss a fast driver.
        let enough = name == "timer" || through.len() >= FEWEST;
        report.judge(
            name,
            enough && broken.is_none(),
            format!(
                "{} through the modules, not whole: {broken:?}",
                through.len()
            ),
        );
        stacks += through.len();
    }
    Traces {
        functions: functions.len(),
        stacks,
    }
}
