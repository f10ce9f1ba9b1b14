//! The outcome of a run, in memory shared with the parent.
//!
//! ```text
//! +0     number of the run in progress
//! +64    [Record; cases * states]
//! ```

use std::fmt;

use process_lab::error::Error;
use process_lab::shared::Shared;

twin_abi::listed! {
    /// How a run ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[repr(u64)]
    pub enum Ending {
        /// The run was not made: there is no such function, or its state is not in the
        /// share that is run.
        None = 0,
        /// The function returned.
        Returned = 1,
        /// The processor refused: [`Record::trap`], [`Record::address`].
        Fault = 2,
        /// The processor does not know the instruction.
        Unknown = 3,
        /// The process died.
        Died = 4,
        /// The driver was aborted otherwise: [`Record::trap`] is the kind.
        Aborted = 5,
        /// The harness cannot set up this state here.
        Skipped = 6,
    }
}

/// One run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// [`Ending`].
    pub ending: u64,
    /// Trap number.
    pub trap: u64,
    /// What was accessed, if the processor tells.
    pub address: u64,
    /// Offset of the instruction in the original code.
    pub place: u64,
    /// The registers that count, as one word.
    pub registers: u64,
    /// The frame, as one word.
    pub frame: u64,
    /// dom0's memory, as one word.
    pub memory: u64,
}

impl Record {
    /// One that ended so.
    pub fn ended(ending: Ending) -> Record {
        Record {
            ending: ending as u64,
            ..Record::default()
        }
    }

    /// How it ended, if the number is one of [`Ending`]'s.
    pub fn how(&self) -> Option<Ending> {
        Ending::ALL.into_iter().find(|ending| self.is(*ending))
    }

    /// Whether it ended so.
    pub fn is(&self, ending: Ending) -> bool {
        self.ending == ending as u64
    }
}

/// The outcome, for people. The words that sum up the final state follow, so that two
/// runs that ended alike can be told apart.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let signal = libc::WTERMSIG(self.trap as i32);
        match self.how() {
            None | Some(Ending::None) => f.write_str("not run")?,
            Some(Ending::Returned) => f.write_str("returned")?,
            Some(Ending::Fault) => {
                write!(f, "faulted at +{:#x} with trap {}", self.place, self.trap)?;
                write!(f, " at {:#x}", self.address)?;
            }
            Some(Ending::Unknown) => f.write_str("not known to the processor")?,
            Some(Ending::Died) if signal == libc::SIGPROF => {
                f.write_str("still running when its time was over")?;
            }
            Some(Ending::Died) => write!(f, "died of signal {signal}")?,
            Some(Ending::Aborted) => {
                write!(f, "aborted at +{:#x}, kind {}", self.place, self.trap)?;
            }
            Some(Ending::Skipped) => f.write_str("skipped")?,
        }
        let [registers, frame, memory] = [self.registers, self.frame, self.memory];
        write!(
            f,
            " (registers and ports {registers:x}, frame {frame:x}, memory {memory:x})"
        )
    }
}

const START: usize = 64;

/// The records of one process.
pub struct Records(Shared);

impl Records {
    /// Room for `count` of them.
    pub fn new(count: usize) -> Result<Records, Error> {
        let length = START + count.max(1) * size_of::<Record>();
        Shared::new(length as u64)
            .map(Records)
            .map_err(Error::system("making room for records"))
    }

    fn slot(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.0.length(), "no such record");
        // SAFETY: checked to be inside the mapping.
        unsafe { self.0.as_ptr().add(offset) }
    }

    /// Record `n`.
    pub fn get(&self, n: usize) -> Record {
        let slot = self.slot(START + n * size_of::<Record>());
        // SAFETY: the slot is inside the mapping, aligned, and any bytes are a
        // record; its writer is done or dead.
        unsafe { slot.cast::<Record>().read() }
    }

    /// Writes record `n`.
    pub fn set(&mut self, n: usize, record: Record) {
        let slot = self.slot(START + n * size_of::<Record>());
        // SAFETY: as for `get`; one process writes.
        unsafe { slot.cast::<Record>().write(record) }
    }

    /// The run in progress.
    pub fn progress(&self) -> usize {
        // SAFETY: the first word of the mapping.
        unsafe { self.slot(0).cast::<u64>().read_volatile() as usize }
    }

    /// Notes the run in progress, for a parent that finds the process dead.
    pub fn set_progress(&mut self, n: usize) {
        // SAFETY: as for `progress`.
        unsafe { self.slot(0).cast::<u64>().write_volatile(n as u64) }
    }
}
