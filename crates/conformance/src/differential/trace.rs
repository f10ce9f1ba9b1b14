//! Requests and outcomes between parent and worker, in shared memory.
//!
//! ```text
//! +0       Request   the parent writes it
//! +256     RunOutcome   the worker writes it, and
//! +512     [Event; MAX_EVENTS]
//! +COVERAGE          one byte for each byte of code: executed, when stepped
//! ```
//!
//! All three are plain data: any bytes are a value.

use process_lab::shared::Shared;

/// Most calls of one run that are recorded.
pub const MAX_EVENTS: usize = 1024;
/// Most arguments of a call that are recorded.
pub const MAX_ARGUMENTS: usize = 12;
/// Offset of the outcome.
const OUTCOME: usize = 256;
/// Offset of the events.
const EVENTS: usize = 512;
/// Offset of the coverage bytes.
pub const COVERAGE: usize = EVENTS + MAX_EVENTS * size_of::<Event>();

/// What to run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Request {
    /// dom0 address of the function.
    pub function: u64,
    /// As the psABI passes them, `rdi` first.
    pub arguments: [u64; 6],
    /// Seed of the imports' results.
    pub seed: u64,
    /// dom0 address of the network device.
    pub netdev: u64,
    /// dom0 address of the device's registers.
    pub mmio: u64,
    /// dom0 addresses of the socket buffers.
    pub skbs: [u64; 4],
    /// A range of free heap.
    pub arena: (u64, u64),
    /// Calls after which the run is stopped.
    pub call_budget: u64,
    /// Processor time after which the run is stopped, in microseconds.
    pub time_budget: u64,
    /// 1: record which instructions are executed (native only).
    pub step: u64,
    /// 1: begin with an empty translation table (rewritten only).
    pub fresh: u64,
}

twin_abi::listed! {
    /// How a run ended.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[repr(u64)]
    pub enum Ending {
        /// The function returned [`RunOutcome::result`].
        Returned = 0,
        /// It called a routine that does not return.
        Stopped = 1,
        /// It accessed [`RunOutcome::address`], which is not mapped.
        Fault = 2,
        /// It called or jumped to [`RunOutcome::address`], where no function begins.
        BadCall = 3,
        /// It met a BUG.
        Bug = 4,
        /// It used port [`RunOutcome::address`], which the policy does not name.
        Port = 5,
        /// The call budget was used up.
        CallBudget = 6,
        /// The time budget was used up; the place is random.
        TimeBudget = 7,
        /// An import was given an address that is not mapped.
        BadArgument = 8,
        /// Anything else: [`RunOutcome::detail`] says what.
        Broken = 9,
    }
}

impl Ending {
    /// The ending of this number; any other number means a broken worker.
    pub fn from_number(number: u64) -> Ending {
        Ending::ALL
            .get(number as usize)
            .copied()
            .unwrap_or(Ending::Broken)
    }
}

/// The outcome of a run.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunOutcome {
    /// [`Ending`].
    pub ending: u64,
    /// `rax`, if it returned.
    pub result: u64,
    /// The address that [`Ending`] describes for this ending.
    pub address: u64,
    /// Where: the instruction, or its return address if it is a call.
    pub rip: u64,
    /// 1: `rip` is a return address.
    pub after: u64,
    /// Events recorded.
    pub events: u64,
    /// For messages: the processor's trap number (native), the runtime's reason or
    /// kind of an abort, or what kept the run from beginning (rewritten).
    pub detail: u64,
    /// Nanoseconds in the function, imports included.
    pub time: u64,
}

impl RunOutcome {
    /// An address inside the instruction at which the run ended: a return address
    /// may be another function's first.
    pub fn place(&self) -> u64 {
        self.rip.wrapping_sub(self.after)
    }
}

/// Numbers of events that are not imports.
pub mod number {
    /// A `WARN` of the driver; it has no arguments.
    pub const WARN: u64 = 1 << 32;
    /// Port input: port, size.
    pub const PORT_IN: u64 = WARN + 1;
    /// Port output: port, size, value.
    pub const PORT_OUT: u64 = WARN + 2;
}

/// A call out of the driver.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// Number of the import, or one of [`number`].
    pub number: u64,
    /// Return address.
    pub site: u64,
    /// Arguments recorded.
    pub count: u64,
    /// The arguments, cut to their width.
    pub arguments: [u64; MAX_ARGUMENTS],
}

const _: () =
    assert!(size_of::<Request>() <= OUTCOME && size_of::<RunOutcome>() <= EVENTS - OUTCOME);

/// The shared memory between the parent and one worker.
#[derive(Debug)]
pub struct Channel(Shared);

/// Plain data of this module, which any bytes are a value of.
trait Plain: Copy + Default {}
impl Plain for Request {}
impl Plain for RunOutcome {}
impl Plain for Event {}

impl Channel {
    /// A channel with coverage for `code` bytes.
    pub fn new(code: u64) -> std::io::Result<Channel> {
        Shared::new((COVERAGE as u64 + code).next_multiple_of(4096)).map(Channel)
    }

    fn get<T: Plain>(&self, offset: usize) -> T {
        let mut value = T::default();
        // SAFETY: `T` is plain data without padding that matters: every byte
        // may be written with anything.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut((&raw mut value).cast::<u8>(), size_of::<T>())
        };
        self.0.read(offset, bytes);
        value
    }

    fn put<T: Plain>(&mut self, offset: usize, value: &T) {
        // SAFETY: `T` consists of 64-bit fields alone, so it has no padding.
        let bytes =
            unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) };
        self.0.write(offset, bytes);
    }

    /// The request, as it was last given.
    pub fn request(&self) -> Request {
        self.get(0)
    }

    /// Gives the request.
    pub fn set_request(&mut self, request: &Request) {
        self.put(0, request);
    }

    /// The outcome, as it was last given.
    pub fn outcome(&self) -> RunOutcome {
        self.get(OUTCOME)
    }

    /// Gives the outcome.
    pub fn set_outcome(&mut self, outcome: &RunOutcome) {
        self.put(OUTCOME, outcome);
    }

    /// Event number `i`.
    pub fn event(&self, i: usize) -> Event {
        assert!(i < MAX_EVENTS, "no such event");
        self.get(EVENTS + i * size_of::<Event>())
    }

    /// Gives event number `i`.
    pub fn set_event(&mut self, i: usize, event: &Event) {
        assert!(i < MAX_EVENTS, "no such event");
        self.put(EVENTS + i * size_of::<Event>(), event);
    }

    /// The coverage bytes, copied.
    pub fn coverage(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.0.length() - COVERAGE];
        self.0.read(COVERAGE, &mut bytes);
        bytes
    }

    /// Where the coverage bytes are, and how many.
    pub fn coverage_memory(&self) -> (*mut u8, usize) {
        // SAFETY: the offset is inside the mapping.
        (
            unsafe { self.0.as_ptr().add(COVERAGE) },
            self.0.length() - COVERAGE,
        )
    }
}
