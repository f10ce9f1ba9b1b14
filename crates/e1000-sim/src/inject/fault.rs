//! Kinds of faults, and the values that take the place of good ones.

use std::fmt;
use std::ops::Range;

use process_lab::program::{STLB, STUBS};
use process_lab::random::Random;

use crate::hypervisor::instance::DriverAbort;
use crate::hypervisor::payload;
use crate::memory::view::View;
use crate::memory::{BAR, DIRECT_MAP, DRIVER, DRIVER_STACK, VMEMMAP};

twin_abi::listed! {
    /// What is broken.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum FaultKind {
        /// A pointer in `e1000_adapter` goes somewhere else.
        AdapterPointer => "adapter: wild pointer",
        /// A ring's pointer to descriptors or buffers goes somewhere else.
        RingPointer => "ring: wild pointer",
        /// A pointer in a ring's buffer array goes somewhere else: `next`, skb, page, data.
        BufferPointer => "buffer array: wild pointer",
        /// A pointer or length of an `sk_buff` is wrong.
        SkBuff => "sk_buff: pointer or length",
        /// A pointer in `net_device`, its queue or `napi_struct` is wrong.
        DevicePointer => "net_device, napi: pointer",
        /// A ring's count, `next_to_use` or `next_to_clean` is out of range.
        RingIndex => "ring: index or count",
        /// The descriptors' bus address or size is wrong, and the card's own.
        RingAddress => "ring: descriptors' address",
        /// A function pointer goes to an unmapped address.
        FunctionNowhere => "function pointer: nowhere",
        /// A function pointer goes into the middle of a function.
        FunctionMiddle => "function pointer: mid-function",
        /// A function pointer goes to the hypervisor's code, to data, or to a kernel
        /// function of another type.
        FunctionForbidden => "function pointer: forbidden",
        /// A saved register or a variable on the driver's stack is wrong.
        StackWord => "stack: saved words",
        /// A return address on the driver's stack is wrong.
        StackReturn => "stack: return address",
        /// The stack protector's canary is overwritten.
        StackCanary => "stack: canary",
        /// A buffer's bus address in a descriptor is wrong.
        DmaAddress => "descriptor: DMA address",
        /// Data shared by hot routines and the hypervisor is wrong: requests, completions.
        Interface => "shared rings: index or entry",
        /// A lock is held and will never be freed.
        HeldLock => "lock left held",
        /// One bit is flipped, anywhere in the driver's data.
        BitFlip => "random bit",
        /// A pointer that packets use keeps its low 42 bits, and nothing of dom0's is there.
        UpperHalf => "pointer: upper half",
    }
}

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Before the driver is asked to send.
    BeforeTransmit,
    /// It has sent; the card has not seen it yet.
    AfterTransmit,
    /// Frames have come in, or were sent; the handler has not run.
    BeforeHandler,
    /// The driver hands a packet over: it is in the middle of its poll.
    Inside,
    /// At any instruction: another thread strikes while packets move. The seed determines
    /// the word, but not the instruction.
    Meanwhile,
}

impl FaultKind {
    /// When faults of this kind may strike.
    pub fn moments(self) -> &'static [Moment] {
        use Moment::{AfterTransmit, BeforeHandler, BeforeTransmit, Inside, Meanwhile};
        match self {
            FaultKind::StackWord | FaultKind::StackReturn | FaultKind::StackCanary => &[Inside],
            FaultKind::SkBuff => &[AfterTransmit, BeforeHandler, Inside],
            FaultKind::DmaAddress => &[BeforeTransmit, AfterTransmit],
            _ => &[
                BeforeTransmit, AfterTransmit, BeforeHandler, Inside, Meanwhile,
            ],
        }
    }
}

/// A fault as it struck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Struck {
    /// What was changed, in words.
    pub what: String,
    /// dom0 address.
    pub at: u64,
    /// Bytes that were changed, at most eight.
    pub size: u64,
    /// Its word before.
    pub before: u64,
    /// Its word from then on.
    pub after: u64,
}

impl fmt::Display for Struck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Struck {
            what,
            at,
            before,
            after,
            ..
        } = self;
        write!(f, "{what} at {at:#x}: {before:#x} became {after:#x}")
    }
}

impl Struck {
    /// Says when as well.
    pub fn at_moment(mut self, moment: Moment) -> Struck {
        self.what = format!("{moment:?}: {}", self.what);
        self
    }

    /// Takes it back if it lies in `range` and the word has not been written since:
    /// otherwise it would outlive a reset and change a later fault's outcome.
    pub fn take_back(&self, view: &View<'_>, range: &Range<u64>) {
        let size = self.size as usize;
        let mut now = [0; 8];
        let inside = range.contains(&self.at) && view.read(self.at, &mut now[..size]).is_some();
        if inside && now[..size] == self.after.to_le_bytes()[..size] {
            // Just read, so it is there.
            let _ = view.write(self.at, &self.before.to_le_bytes()[..size]);
        }
    }
}

/// The outcome of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultEnding {
    /// The invocation was aborted.
    Aborted(DriverAbort),
    /// It took too long and was aborted.
    TimeLimit(DriverAbort),
    /// Another part noticed: the card, the stack protector, the packet loop.
    Detected(String),
    /// Packets of the guest that was served were lost or damaged, which its own
    /// checks noticed; nothing stopped.
    Noticed(String),
    /// Every packet arrived undamaged.
    Harmless,
}

impl fmt::Display for FaultEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FaultEnding::Aborted(report) => write!(f, "aborted: {report}"),
            FaultEnding::TimeLimit(report) => write!(f, "aborted: {report}"),
            FaultEnding::Detected(what) => write!(f, "detected: {what}"),
            FaultEnding::Noticed(what) => write!(f, "noticed by the guest: {what}"),
            FaultEnding::Harmless => f.write_str("harmless"),
        }
    }
}

/// Addresses that a driver never needs, the hypervisor's own among them; `hypervisor_heap` is one
/// on the hypervisor's heap.
pub fn wild_address(random: &mut Random, dom0_ram: u64, hypervisor_heap: u64) -> u64 {
    let odd = random.below(4096);
    let choices = [
        0,
        odd,
        u64::MAX - odd,
        0x8000_0000_0000_0000 | random.word() >> 8,
        0x0000_7fff_ffff_f000 + odd,
        random.word(),
        // The hypervisor's: table, code, stubs, stack, context, heap.
        STLB + odd,
        payload::DRIVER + 0x1000 + odd,
        STUBS + odd,
        DRIVER_STACK + 0x3000 + odd,
        DRIVER_STACK + 0x7000 + odd,
        hypervisor_heap,
        // Limits of dom0's memory: its last bytes, guests' memory, struct pages, code.
        DIRECT_MAP + dom0_ram - 1 - random.below(16),
        DIRECT_MAP + dom0_ram + (odd << 9),
        VMEMMAP + (odd << 8),
        DRIVER + odd,
        BAR + (odd << 2),
        DIRECT_MAP + random.below(dom0_ram),
    ];
    choices[random.below(choices.len() as u64) as usize]
}

/// Indices that a ring of `count` never has, or does not have now.
pub fn wild_index(random: &mut Random, count: u64) -> u64 {
    let choices = [
        count,
        count + 1,
        count * 2 + random.below(1000),
        0xffff,
        0x7fff_ffff,
        0x8000_0000,
        0xffff_ffff,
        random.word() & 0xffff_ffff,
        random.below(count),
        0,
    ];
    choices[random.below(choices.len() as u64) as usize]
}
