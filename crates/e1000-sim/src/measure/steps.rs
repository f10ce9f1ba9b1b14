//! Instructions, counted exactly: the processor's single-step trap after each.
//!
//! Slow (a signal for each instruction), so it counts a few packets of a loop that has
//! warmed up. The profiler's ranges and phases give the component of an instruction.

use std::arch::asm;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use libc::{c_int, c_void, greg_t, siginfo_t, ucontext_t};
use process_lab::signals;

use super::profile::{ByComponent, Component, owner};
use crate::error::LiveError;
use crate::replay::recorder;

/// The processor's exception of a single step, #DB (SDM volume 3, 6.15); that of an `int3`
/// is another, #BP. A signal's `si_code` does not tell them apart: under a hypervisor that
/// gives the exception without DR6.BS, Linux takes it for an `int1`.
const DEBUG: greg_t = 1;

static STEPS: [AtomicU64; Component::ALL.len()] =
    [const { AtomicU64::new(0) }; Component::ALL.len()];
static LOOKUPS: AtomicU64 = AtomicU64::new(0);
static CALLS: [AtomicU64; ROUTINES] = [const { AtomicU64::new(0) }; ROUTINES];
static MARKS: AtomicPtr<Marks> = AtomicPtr::new(std::ptr::null_mut());
static LAST: AtomicU64 = AtomicU64::new(0);
static COUNTING: AtomicBool = AtomicBool::new(false);

/// Most routines whose calls are counted.
pub const ROUTINES: usize = 64;
/// The mark of an instruction that looks up the table; any other is the number of a
/// routine, from 1.
const LOOKUP: u8 = u8::MAX;

/// Code whose executions are counted: the instructions that look up the translation
/// table; the first instructions of routines, when a caller jumps there; and each of the
/// callers' instructions by itself.
pub struct Marks {
    start: u64,
    marked: Vec<u8>,
    callers: Range<u64>,
    /// How often the instruction at each byte of the callers was executed.
    executed: Vec<AtomicU64>,
}

impl Marks {
    /// Marks for code in `range`; calls of routines count if they come from
    /// `callers`.
    pub fn new(range: Range<u64>, callers: Range<u64>) -> Marks {
        Marks {
            start: range.start,
            marked: vec![0; (range.end - range.start) as usize],
            executed: callers.clone().map(|_| AtomicU64::new(0)).collect(),
            callers,
        }
    }

    /// Marks instructions that look up the table.
    ///
    /// # Panics
    /// If one is outside of the range.
    pub fn lookups(&mut self, addresses: impl IntoIterator<Item = u64>) {
        for address in addresses {
            self.marked[(address - self.start) as usize] = LOOKUP;
        }
    }

    /// Marks routines, which [`calls`] counts in this order.
    ///
    /// # Panics
    /// If one is outside of the range, or there are too many.
    pub fn routines(&mut self, addresses: impl IntoIterator<Item = u64>) {
        for (number, address) in addresses.into_iter().enumerate() {
            assert!(number < ROUTINES, "room for {ROUTINES} routines");
            self.marked[(address - self.start) as usize] = number as u8 + 1;
        }
    }

    /// Counts the execution of the instruction at `rip` after that at `last`.
    fn count(&self, rip: u64, last: u64) {
        let index = rip.wrapping_sub(self.start) as usize;
        let own = rip.wrapping_sub(self.callers.start) as usize;
        if let Some(executed) = self.executed.get(own) {
            executed.fetch_add(1, Ordering::Relaxed);
        }
        match self.marked.get(index).copied().unwrap_or(0) {
            0 => {}
            LOOKUP => _ = LOOKUPS.fetch_add(1, Ordering::Relaxed),
            routine if self.callers.contains(&last) => {
                CALLS[usize::from(routine) - 1].fetch_add(1, Ordering::Relaxed);
            }
            _ => {}
        }
    }
}

/// Calls of marked routines so far.
pub fn calls() -> [u64; ROUTINES] {
    std::array::from_fn(|i| CALLS[i].load(Ordering::Relaxed))
}

/// Executions so far of the instruction at each byte of the callers.
pub fn executed() -> Vec<u64> {
    // SAFETY: null, or leaked by `mark`.
    let marks = unsafe { MARKS.load(Ordering::Relaxed).as_ref() };
    let counts = marks.map(|marks| marks.executed.iter());
    let counts = counts.into_iter().flatten();
    counts.map(|n| n.load(Ordering::Relaxed)).collect()
}

/// Executions of each of the callers' instructions since then, by address, those that
/// were executed at all.
pub fn executed_since(before: &[u64]) -> Vec<(u64, u64)> {
    // SAFETY: null, or leaked by `mark`.
    let Some(marks) = (unsafe { MARKS.load(Ordering::Relaxed).as_ref() }) else {
        return Vec::new();
    };
    let now = executed();
    let times = now.iter().zip(before).map(|(now, before)| now - before);
    let all = (marks.callers.start..).zip(times);
    all.filter(|(_, times)| *times > 0).collect()
}

/// Instructions by component, and table look-ups.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Steps {
    /// By component.
    pub by: ByComponent,
    /// Executions of marked instructions.
    pub lookups: u64,
}

impl Steps {
    fn now() -> Steps {
        Steps {
            by: std::array::from_fn(|i| STEPS[i].load(Ordering::Relaxed)),
            lookups: LOOKUPS.load(Ordering::Relaxed),
        }
    }

    fn since(&self, before: &Steps) -> Steps {
        Steps {
            by: std::array::from_fn(|i| self.by[i] - before.by[i]),
            lookups: self.lookups - before.lookups,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Steps) -> Steps {
        Steps {
            by: std::array::from_fn(|i| self.by[i] + other.by[i]),
            lookups: self.lookups + other.lookups,
        }
    }

    /// Instructions of a component.
    pub fn of(&self, component: Component) -> u64 {
        self.by[component as usize]
    }

    /// Instructions of all components of a packet's cost.
    pub fn costs(&self) -> u64 {
        Component::COSTS.iter().map(|c| self.of(*c)).sum()
    }
}

/// Has executions of marked instructions counted from now on. For the process's
/// life: a signal handler reads them.
pub fn mark(marks: Marks) {
    MARKS.store(Box::into_raw(Box::new(marks)), Ordering::SeqCst);
}

/// Runs `work` and counts what this thread executes in it.
pub fn count<T>(work: impl FnOnce() -> T) -> Result<(T, Steps), LiveError> {
    // SAFETY: all zeroes is a valid value.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: plain system call that only reads the present handler.
    if unsafe { libc::sigaction(libc::SIGTRAP, std::ptr::null(), &mut old) } != 0 {
        return Err(LiveError::last("asking for the handler of traps"));
    }
    signals::handle(libc::SIGTRAP, on_step)
        .map_err(|_| LiveError::last("installing the handler of steps"))?;
    let before = Steps::now();
    COUNTING.store(true, Ordering::SeqCst);
    step(true);
    let result = work();
    step(false);
    COUNTING.store(false, Ordering::SeqCst);
    let steps = Steps::now().since(&before);
    // SAFETY: the handler that was there.
    if unsafe { libc::sigaction(libc::SIGTRAP, &old, std::ptr::null_mut()) } != 0 {
        return Err(LiveError::last("restoring the handler of traps"));
    }
    Ok((result, steps))
}

/// Whether steps are counted now.
pub(crate) fn counting() -> bool {
    COUNTING.load(Ordering::Relaxed)
}

/// While counting: resumes or suspends it, for work that is not to be counted.
#[inline(never)]
pub(crate) fn attend(on: bool) {
    step(on);
}

/// Sets or clears the trap flag (SDM volume 1, 3.4.3.3).
fn step(on: bool) {
    // SAFETY: changes no flag but TF, whose trap has a handler by now.
    unsafe {
        if on {
            asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
        } else {
            asm!("pushfq", "and qword ptr [rsp], -0x101", "popfq");
        }
    }
}

extern "C" fn on_step(signal: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler the context.
    let (trap, rip) = unsafe {
        let registers = &(*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        (
            registers[libc::REG_TRAPNO as usize],
            registers[libc::REG_RIP as usize] as u64,
        )
    };
    if trap != DEBUG || !COUNTING.load(Ordering::Relaxed) {
        // int3 in the measured code: it cannot be performed here.
        signals::give_up(signal);
    }
    // SAFETY: this is a handler, and the context its own.
    recorder::step(unsafe { &(*context.cast::<ucontext_t>()).uc_mcontext.gregs });
    // The trap comes before the instruction at rip; a repeated string instruction
    // traps before each of its elements (SDM volume 3, 17.3.1.4).
    let last = LAST.swap(rip, Ordering::Relaxed);
    if last == rip {
        return;
    }
    // SAFETY: this is a handler, and the context its own.
    let owner = unsafe { owner(&*context.cast()) };
    STEPS[owner as usize].fetch_add(1, Ordering::Relaxed);
    // SAFETY: null, or leaked by `mark`.
    if let Some(marks) = unsafe { MARKS.load(Ordering::Relaxed).as_ref() } {
        marks.count(rip, last);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::super::profile::enter_phase;
    use super::*;

    /// The process has one handler of steps, and [`count`] sets it.
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

    #[test]
    fn a_loop_of_known_length_is_counted_exactly() {
        let _alone = ONE_AT_A_TIME.lock();
        let run = |rounds: u64| {
            let (_, steps) = count(|| {
                enter_phase(Component::Guest);
                // SAFETY: counts a register down.
                unsafe {
                    asm!("2:", "dec {0}", "jnz 2b", inout(reg) rounds => _);
                    let mut filled = [0u8; 64];
                    asm!("rep stosb", inout("rdi") filled.as_mut_ptr() => _,
                        inout("rcx") 64 => _, in("al") 1u8);
                }
                enter_phase(Component::Idle);
            })
            .expect("single steps");
            steps.of(Component::Guest)
        };
        assert_eq!(run(1100) - run(100), 2000);
        assert!(run(1) < 100, "a string instruction is one: {}", run(1));
    }

    /// Sends this thread a SIGTRAP that says `TRAP_BRKPT`, while steps are counted.
    ///
    /// That is what Linux makes of a step without DR6.BS, which some hypervisors give now and
    /// then. The context's number of the exception is that of the thread's last one (Linux,
    /// `setup_sigcontext`): a step's. `int1` cannot stand for it: where an AMD processor
    /// runs it as a guest, `rip` stays at it, and it comes again without end.
    const UNSAID: libc::c_long = libc::SYS_rt_tgsigqueueinfo;
    /// A system call without effect, to compare with.
    const NOTHING: libc::c_long = libc::SYS_getpid;

    #[test]
    fn a_step_that_does_not_say_so_is_counted_once() {
        const TRAP_BRKPT: c_int = 1;
        let _alone = ONE_AT_A_TIME.lock();
        // SAFETY: all zeroes is a valid value.
        let mut info: siginfo_t = unsafe { std::mem::zeroed() };
        info.si_signo = libc::SIGTRAP;
        info.si_code = TRAP_BRKPT;
        // SAFETY: plain system calls.
        let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
        let run = |call: libc::c_long| {
            let mut result = call;
            let (_, steps) = count(|| {
                enter_phase(Component::Guest);
                // SAFETY: the call reads `info` at most, and `on_step` handles the signal.
                unsafe {
                    asm!("nop", "syscall", "nop", inout("rax") result, in("rdi") process,
                        in("rsi") thread, in("rdx") libc::SIGTRAP, in("r10") &raw const info,
                        out("rcx") _, out("r11") _);
                }
                enter_phase(Component::Idle);
            })
            .expect("single steps");
            assert!(result >= 0, "{call}: {result}");
            steps.of(Component::Guest)
        };
        assert!(
            run(UNSAID).abs_diff(run(NOTHING)) <= 2,
            "{} and {}",
            run(UNSAID),
            run(NOTHING)
        );
    }
}
