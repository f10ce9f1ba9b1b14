//! The cost of a packet by component.
//!
//! The packet loop says which component runs. Declared code counts for its own
//! component at any time: driver and hot routines run while their host does.
//!
//! Code that driver and hot routines have to go through, slow paths and thunks, counts
//! for its caller: without the rewriting, or on another processor, its work would be
//! done by the caller's own code.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use libc::{c_int, ucontext_t};

twin_abi::listed! {
    /// A component that takes time (paper, figures 7 and 8, and the card, which takes no
    /// processor time on a real machine).
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u32)]
    pub enum Component {
        /// Not in the packet loop.
        Idle = 0,
        /// The driver, original or rewritten.
        Driver = 1,
        /// The hot routines: in dom0 or in the hypervisor, depending on the path.
        Support = 2,
        /// The hypervisor: runtime, switch, entries.
        Hypervisor = 3,
        /// dom0's kernel and its programs.
        Dom0 = 4,
        /// The guests' own work.
        Guest = 5,
        /// The model of the card, and the check of packets that leave it.
        Card = 6,
    }
}

impl Component {
    /// All that are counted in a packet's cost.
    pub const COSTS: [Component; 5] = [
        Component::Driver,
        Component::Support,
        Component::Hypervisor,
        Component::Dom0,
        Component::Guest,
    ];
}

/// A number for each component, indexed by the component.
pub type ByComponent = [u64; Component::ALL.len()];

/// Ranges that can be declared.
const RANGES: usize = 8;

static PHASE: AtomicU32 = AtomicU32::new(0);
static STARTS: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static ENDS: [AtomicU64; RANGES] = [const { AtomicU64::new(0) }; RANGES];
static OWNERS: [AtomicU32; RANGES] = [const { AtomicU32::new(0) }; RANGES];
static DECLARED: AtomicUsize = AtomicUsize::new(0);
/// Ranges of code that belongs to its callers: slow paths, and thunks where dom0's own code runs.
static CALLERS: [[AtomicU64; 2]; 2] = [const { [const { AtomicU64::new(0) }; 2] }; 2];
static CALLERS_DECLARED: AtomicUsize = AtomicUsize::new(0);
/// For each, how many ranges of components had been declared: its callers are those since the one before.
static CALLERS_AFTER: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Words of the stack among which such code has its caller: `twin_slow_<reg>` and its
/// callees keep six words at most (runtime/core/entry_x86_64.S).
const CALLER_WORDS: usize = 6;

/// Sets the component that the thread runs from here on.
#[inline]
pub fn enter_phase(component: Component) {
    PHASE.store(component as u32, Ordering::Relaxed);
}

/// Declares code at `[start, end)` to be a component's.
///
/// # Panics
/// If there are too many.
pub fn declare(start: u64, end: u64, component: Component) {
    let index = DECLARED.fetch_add(1, Ordering::SeqCst);
    assert!(index < RANGES, "room for {RANGES} ranges");
    STARTS[index].store(start, Ordering::Relaxed);
    ENDS[index].store(end, Ordering::Relaxed);
    OWNERS[index].store(component as u32, Ordering::Relaxed);
}

/// Declares code at `[start, end)` to be its callers', which were declared before it: a word of the
/// stack may be the address of other code, as dom0's are of what the rewritten code calls. While it
/// runs, the stack has at least six readable words. Declared again, it has more callers.
///
/// # Panics
/// If there are too many.
pub fn declare_callers(start: u64, end: u64) {
    let known = callers().position(|range| range == (start..end));
    let index = known.unwrap_or_else(|| CALLERS_DECLARED.fetch_add(1, Ordering::SeqCst));
    assert!(index < CALLERS.len(), "room for {} ranges", CALLERS.len());
    CALLERS_AFTER[index].store(DECLARED.load(Ordering::SeqCst), Ordering::Relaxed);
    CALLERS[index][0].store(start, Ordering::Relaxed);
    CALLERS[index][1].store(end, Ordering::Relaxed);
}

/// The component of the interrupted instruction.
///
/// # Safety
/// The context is that of a signal handler that runs.
pub(crate) unsafe fn owner(context: &ucontext_t) -> Component {
    let register = |number: c_int| context.uc_mcontext.gregs[number as usize] as u64;
    let (rip, stack) = (register(libc::REG_RIP), register(libc::REG_RSP));
    let phase = PHASE.load(Ordering::Relaxed);
    let found = match (phase == Component::Idle as u32, callers_of(rip)) {
        // Outside the loop the same code is part of no packet's cost.
        (true, _) => None,
        // SAFETY: the range is where the stack has these words.
        (false, Some(owners)) => unsafe { caller(stack, owners) },
        (false, None) => declared(rip, 0..RANGES),
    };
    let number = found.unwrap_or(phase);
    Component::ALL[number as usize % Component::ALL.len()]
}

/// The ranges of components that may have called the code at `rip`, if it belongs to its callers.
fn callers_of(rip: u64) -> Option<Range<usize>> {
    let index = callers().position(|range| range.contains(&rip))?;
    let end = |index: usize| CALLERS_AFTER[index].load(Ordering::Relaxed);
    Some(index.checked_sub(1).map_or(0, end)..end(index))
}

fn callers() -> impl Iterator<Item = Range<u64>> {
    CALLERS.iter().map(|range| {
        let [start, end] = range.each_ref().map(|bound| bound.load(Ordering::Relaxed));
        start..end
    })
}

/// The component of the code that called into this stack: by the first return address.
///
/// # Safety
/// Six words above `stack` are readable.
unsafe fn caller(stack: u64, owners: Range<usize>) -> Option<u32> {
    (0..CALLER_WORDS).find_map(|word| {
        // SAFETY: as promised by the caller.
        let address = unsafe { (stack as *const u64).add(word).read_unaligned() };
        declared(address, owners.clone())
    })
}

/// The component of the code at an address, by these ranges.
fn declared(address: u64, among: Range<usize>) -> Option<u32> {
    let ranges = DECLARED.load(Ordering::Relaxed).min(RANGES);
    let found = (among.start..among.end.min(ranges)).find(|i| {
        let [start, end] = [&STARTS[*i], &ENDS[*i]].map(|bound| bound.load(Ordering::Relaxed));
        (start..end).contains(&address)
    });
    found.map(|i| OWNERS[i].load(Ordering::Relaxed))
}

/// The processor's time-stamp counter.
#[inline]
pub fn cycles() -> u64 {
    // SAFETY: every x86-64 processor has it.
    unsafe { std::arch::x86_64::_rdtsc() }
}
