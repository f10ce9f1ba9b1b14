//! Child processes that run the states of a batch one after the other, and record each
//! result.

use std::io;

use process_lab::address_space::PAGE;
use process_lab::error::Error;
use process_lab::process::fork;
use process_lab::random::mix;

use super::cases::{Case, Live};
use super::enter::Block;
use super::memory::{Memory, digest};
use super::object::pushed;
use super::ports;
use super::record::{Ending, Record, Records};
use super::state::{FRAME_END, FRAME_TOP, SITE_RSP, Setting, State, state};

/// A machine that runs functions.
pub trait Machine {
    /// Runs the function of that name from `state`.
    fn run(&mut self, name: &str, state: &State, uses_fs: bool) -> Record;
    /// The registers that it left.
    fn block(&self) -> &Block;
    /// Bytes from where `rsp` points to where the frame's data is: another place only if
    /// there are two stacks.
    fn data_stack(&self) -> u64 {
        0
    }
}

/// The work of a child.
pub struct Work<'w> {
    /// Case and its number in names.
    pub cases: &'w [(usize, &'w Case)],
    /// What states have in common.
    pub setting: Setting<'w>,
    /// Seconds of processor time that each run has: [`PATIENCE`].
    pub patience: u32,
}

/// Which states are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// One state in this many.
    pub one_in: u64,
    /// Only those of `rep movs`.
    pub only_copies: bool,
}

impl Share {
    pub const ALL: Share = Share {
        one_in: 1,
        only_copies: false,
    };

    /// Whether a state of a case is run. If any is, the first one is: it shows whether
    /// the processor knows the instruction.
    pub fn has(self, case: &Case, state: u64) -> bool {
        let chosen = state == 0 || (state + case.form as u64).is_multiple_of(self.one_in);
        chosen && self.has_case(case)
    }

    /// Whether states of a case are run.
    pub fn has_case(self, case: &Case) -> bool {
        !self.only_copies || case.is_copy()
    }
}

impl Work<'_> {
    /// Runs of this work.
    pub fn runs(&self) -> usize {
        self.cases.len() * self.setting.count as usize
    }

    /// Case and state of a run.
    pub fn run(&self, n: usize) -> (usize, &Case, u64) {
        let states = self.setting.count as usize;
        let (number, case) = self.cases[n / states];
        (number, case, (n % states) as u64)
    }
}

/// Runs all of it in child processes, a new one whenever one dies. A run whose time was over is
/// run again, up to [`CHANCES`] times in all.
///
/// # Errors
/// A system call's, or a child that could not be set up.
pub fn run_all<M: Machine>(
    work: &Work<'_>,
    share: Share,
    name: &'static str,
    make: impl Fn(&Memory) -> Result<M, Error>,
) -> Result<Records, Error> {
    let mut records = Records::new(work.runs())?;
    let (mut first, mut late) = (0, 0);
    while first < work.runs() {
        records.set_progress(usize::MAX);
        let status = in_child(|| {
            let mut memory = Memory::new(work.setting.pages, work.setting.seed)?;
            let mut machine = make(&memory)?;
            serve(
                &mut machine,
                &mut memory,
                (work, share),
                &mut records,
                first,
            );
            Ok(())
        })?;
        if status == 0 {
            break;
        }
        let died = records.progress();
        if died == usize::MAX || libc::WIFEXITED(status) {
            return Err(Error::Rejected(format!(
                "the {name} process for forms ended with {status}"
            )));
        }
        late = match died == first {
            true => late + 1,
            false => 1,
        };
        first = died;
        if libc::WTERMSIG(status) == libc::SIGPROF && late < CHANCES {
            continue;
        }
        records.set(
            died,
            Record {
                trap: status as u64,
                ..Record::ended(Ending::Died)
            },
        );
        (first, late) = (died + 1, 0);
    }
    Ok(records)
}

/// Seconds of processor time after which one run is taken to go on for ever.
pub const PATIENCE: u32 = 20;

/// How often a run's time may be over before it is taken to go on for ever. Who has a virtual
/// machine may stop its processor for as long as he likes, and the system charges that to
/// whoever runs there: of 36 million runs on a Xeon in a virtual machine, one instruction had
/// taken 20 seconds, `lock dec` of a word in two pages.
const CHANCES: u32 = 3;

/// Gives this process that many seconds of processor time from now on; then SIGPROF
/// ends it. Other processes' time, or time in which the process is stopped, is not
/// counted (setitimer(2)): so a busy machine does not change which runs die of it.
pub fn grant(seconds: u32) {
    let once = |seconds: u32| libc::timeval {
        tv_sec: seconds.into(),
        tv_usec: 0,
    };
    let timer = libc::itimerval {
        it_interval: once(0),
        it_value: once(seconds),
    };
    // SAFETY: plain system calls about this process; no handler is replaced that other
    // code needs.
    let armed = unsafe {
        libc::signal(libc::SIGPROF, libc::SIG_DFL);
        libc::setitimer(libc::ITIMER_PROF, &timer, std::ptr::null_mut())
    };
    assert_eq!(armed, 0, "a timer of whole seconds is accepted");
}

/// Runs `body` in a child process; gives its wait status. The child has
/// [`PATIENCE`] seconds, unless it [`grant`]s itself more.
pub fn in_child(body: impl FnOnce() -> Result<(), Error>) -> Result<i32, Error> {
    let child = fork(|| {
        grant(PATIENCE);
        match body() {
            Ok(()) => 0,
            Err(error) => {
                eprintln!("{error}");
                2
            }
        }
    });
    let status = child
        .map_err(Error::system("starting a process for forms"))?
        .wait();
    let gone = || Error::system("waiting for a process for forms")(io::ErrorKind::NotFound.into());
    status.ok_or_else(gone)
}

fn serve(
    machine: &mut impl Machine,
    memory: &mut Memory,
    (work, share): (&Work<'_>, Share),
    records: &mut Records,
    first: usize,
) {
    let frame = frame_bytes();
    for n in first..work.runs() {
        let (number, case, state_number) = work.run(n);
        // An instruction that the processor does not know stays unknown.
        if state_number > 0 && records.get(n - 1).is(Ending::Unknown) {
            records.set(n, records.get(n - 1));
            continue;
        }
        if !share.has(case, state_number) {
            continue;
        }
        records.set_progress(n);
        grant(work.patience);
        let state = state(case, state_number, &work.setting);
        let record = one(machine, memory, &frame, (number, case), &state);
        let settled = Record {
            memory: memory.restore(),
            ..record
        };
        records.set(n, settled);
    }
}

/// Runs one state; the memory is left as the run left it.
pub fn one(
    machine: &mut impl Machine,
    memory: &mut Memory,
    frame: &[u8],
    (number, case): (usize, &Case),
    state: &State,
) -> Record {
    let data = machine.data_stack();
    fill_frame(frame, data);
    for (address, bytes) in &state.patches {
        memory.patch(*address, bytes);
        patch_frame(*address, bytes, data);
    }
    ports::reset();
    let mut record = machine.run(&Case::symbol(number), state, case.uses_fs());
    if record.is(Ending::Returned) {
        record.registers = registers_word(machine.block(), case.live);
        record.frame = digest(frame_left(case, data));
        // Not where a fault ended it: the gate may have been used for an element of
        // which only the first byte is mapped.
        record.registers ^= ports::done();
    }
    record
}

/// Registers by number that a caller gets back: rax rdx rbx rsp rbp r12 to r15.
const RETURNED: [usize; 9] = [0, 2, 3, 4, 5, 12, 13, 14, 15];

/// The registers and flags that are compared when the function has returned. Where all
/// are live after the instruction, it has pushed them; before a return to a caller that
/// reads none, the comparison of the return address may clobber `r11` and the flags.
pub fn counts(live: Live) -> (Vec<usize>, u64) {
    const DIRECTION: u64 = 0x400;
    const R11: usize = 11;
    match live {
        Live::All => ((0..16).filter(|r| *r != R11).collect(), DIRECTION),
        Live::Few | Live::Compared => (RETURNED.to_vec(), DIRECTION),
    }
}

fn registers_word(block: &Block, live: Live) -> u64 {
    let (registers, flags) = block.registers();
    let (counted, mask) = counts(live);
    let hash = counted
        .iter()
        .fold(flags & mask, |hash, &n| mix(hash ^ registers[n]));
    mix(hash ^ digest(&block.vectors()))
}

/// Lowest address that a case's function writes for itself.
const FRAME_LOW: u64 = SITE_RSP - 0x400;

/// What the frame of a case's function holds before each run.
pub fn frame_bytes() -> Vec<u8> {
    super::memory::pristine(FRAME_TOP - FRAME_LOW, 0x6672_616d)
}

fn fill_frame(frame: &[u8], data: u64) {
    let to = (FRAME_LOW + data) as *mut u8;
    // SAFETY: the driver's stacks are mapped here and no code runs on them.
    unsafe { std::ptr::copy_nonoverlapping(frame.as_ptr(), to, frame.len()) }
}

fn patch_frame(address: u64, bytes: &[u8], data: u64) {
    if address >= FRAME_LOW && address.saturating_add(bytes.len() as u64) <= FRAME_TOP {
        // SAFETY: inside the mapped driver stack, on which no code runs.
        unsafe {
            let to = (address + data) as *mut u8;
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len());
        }
    }
}

/// The bytes of its frame that a function is responsible for: with its pushed words, but
/// without words that a sequence may have spilled below these, or above the frame at the
/// function's beginning. No function reads the word there before it writes it. `data` is
/// [`Machine::data_stack`].
pub fn frame_left(case: &Case, data: u64) -> &'static [u8] {
    if case.is_jump() || case.is_frame() {
        return &[];
    }
    let below = pushed(case.live) - case.stack_change();
    let low = SITE_RSP.wrapping_add_signed(-i64::from(below));
    let bytes = (FRAME_END - low) as usize;
    // SAFETY: inside the mapped driver stack, on which no code runs while the
    // slice is used.
    unsafe { std::slice::from_raw_parts((low + data) as *const u8, bytes) }
}

const _: () = assert!(FRAME_TOP - FRAME_LOW < PAGE);

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::cases::of_form;
    use super::*;

    /// Uses up processor time: this many milliseconds in each run, or for ever.
    struct Slow {
        block: Block,
        milliseconds: [Option<u64>; 3],
        runs: usize,
    }

    impl Machine for Slow {
        fn run(&mut self, _: &str, _: &State, _: bool) -> Record {
            let (milliseconds, start) = (self.milliseconds[self.runs], Instant::now());
            self.runs += 1;
            let long = |n| start.elapsed() >= Duration::from_millis(n);
            while !milliseconds.is_some_and(long) {
                std::hint::spin_loop();
            }
            Record::ended(Ending::Skipped)
        }

        fn block(&self) -> &Block {
            &self.block
        }
    }

    /// How each of three runs ended, with a second for each.
    fn endings(milliseconds: [Option<u64>; 3]) -> Vec<Record> {
        const PAGES: u64 = 8;
        let forms = super::super::all().forms;
        let case = of_form(0, &forms[0], PAGES)[0];
        let pristine = Setting::memory(PAGES, 0);
        let setting = Setting {
            pages: PAGES,
            pristine: &pristine,
            count: 3,
            seed: 0,
            helper: 0,
        };
        let work = Work {
            cases: &[(0, &case)],
            setting,
            patience: 1,
        };
        let records = run_all(&work, Share::ALL, "slow", |_| {
            let (low, high) = process_lab::address_space::STACK;
            let stack = process_lab::mapping::new_memory(low, high - low);
            stack.map_err(Error::system("mapping a stack"))?;
            let (block, runs) = (Block::new()?, 0);
            Ok(Slow {
                block,
                milliseconds,
                runs,
            })
        })
        .unwrap();
        (0..3).map(|n| records.get(n)).collect()
    }

    #[test]
    fn each_run_has_its_own_time() {
        let records = endings([Some(600); 3]);
        assert!(records.iter().all(|r| r.is(Ending::Skipped)), "{records:?}");
    }

    #[test]
    fn a_run_whose_time_was_over_once_is_run_again() {
        // The next process begins with its first entry.
        let records = endings([Some(1), None, Some(1)]);
        assert!(records.iter().all(|r| r.is(Ending::Skipped)), "{records:?}");
    }

    #[test]
    fn a_run_without_end_is_told_from_one_that_went_wrong() {
        let records = endings([None; 3]);
        assert!(records.iter().all(|r| r.is(Ending::Died)), "{records:?}");
        assert!(records[1].to_string().starts_with("still running when"));
    }
}
