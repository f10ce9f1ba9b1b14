//! Packet loops that dom0 runs itself: with its own driver, unmodified, for its own
//! packets, for its own packets on a hypervisor, or for guests.

use std::cell::{RefCell, UnsafeCell};
use std::ops::Range;

use crate::engines::guest::{BackEnd, BridgeView, ByEvent, Dom0Kernel, Failure};
use crate::engines::native::{self, Directly, NativeEngine, Notify};
use crate::image::{KernelPlan, Module};
use crate::measure::profile::{self, Component};
use crate::measure::steps::{self, Steps};
use crate::memory::{self, BarMode, Machine};
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::{Engine, Stop};
use crate::packets::rings::Rings;
use crate::packets::round::{PacketDirection, Round, Runner, sources};
use crate::replay;
use crate::replay::grounds::Native;
use crate::replay::recorder::{self, Surroundings};
use crate::traffic::source::Shape;
use crate::transport::mailbox::Mailbox;
use crate::transport::rendezvous::Limits;

/// Whose packets are moved, and where interrupts go first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum LoopKind {
    /// dom0's, on the bare machine.
    Native = 1,
    /// dom0's, on a hypervisor that receives interrupts first.
    OnHypervisor = 2,
    /// Guests', until the front end ends.
    BackEnd = 3,
    /// Those of the last tape, by the driver alone.
    Tape = 4,
}

/// How a round is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Look {
    /// Processor cycles by component.
    Cycles = 0,
    /// Instructions, and what the driver does is recorded; of [`LoopKind::Native`].
    Record = 1,
    /// Instructions by component, one by one.
    Steps = 2,
}

/// A round of packets that dom0 is to run. Plain integers: it crosses processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Job {
    /// Whose packets.
    pub kind: LoopKind,
    /// The direction; not used for a back end.
    pub direction: PacketDirection,
    /// How many to move.
    pub packets: u64,
    /// What they are.
    pub shape: Shape,
    /// How many guests.
    pub guests: u32,
    /// How it is observed.
    pub look: Look,
    /// dom0 address of the device.
    pub net_device: u64,
    /// dom0 address of the ring of packets that dom0's stack delivers.
    pub rx_ring: u64,
}

/// Words of an encoded job.
pub const WORDS: usize = 7;
const SEGMENTS: u64 = 1 << 32;

impl Job {
    /// As words.
    pub fn encode(&self) -> [u64; WORDS] {
        let shape = match self.shape {
            Shape::Frames(size) => size as u64,
            Shape::Segments(payload) => payload as u64 | SEGMENTS,
        };
        let direction = match self.direction {
            PacketDirection::Send => 0,
            PacketDirection::Receive => 1,
        };
        [
            self.kind as u64 | (self.look as u64) << 8,
            direction,
            self.packets,
            shape,
            u64::from(self.guests),
            self.net_device,
            self.rx_ring,
        ]
    }

    /// From words, if they are one.
    pub fn decode(words: &[u64; WORDS]) -> Option<Job> {
        let size = words[3] as u32 as usize;
        Some(Job {
            kind: match words[0] & 0xff {
                1 => LoopKind::Native,
                2 => LoopKind::OnHypervisor,
                3 => LoopKind::BackEnd,
                4 => LoopKind::Tape,
                _ => return None,
            },
            look: match words[0] >> 8 {
                0 => Look::Cycles,
                1 => Look::Record,
                2 => Look::Steps,
                _ => return None,
            },
            direction: match words[1] {
                0 => PacketDirection::Send,
                1 => PacketDirection::Receive,
                _ => return None,
            },
            packets: words[2],
            shape: if words[3] & SEGMENTS != 0 {
                Shape::Segments(size)
            } else {
                Shape::Frames(size)
            },
            guests: u32::try_from(words[4]).ok()?,
            net_device: words[5],
            rx_ring: words[6],
        })
    }
}

/// The result of a job.
#[repr(C)]
pub struct JobOutcome {
    /// What was done.
    pub round: Round,
    /// Instructions, if they were counted; those of a back end too.
    pub steps: Steps,
    /// Why it ended early, if its text is not empty.
    pub failure: Failure,
}

/// The mailbox's place for the outcome of the last job.
#[repr(C)]
pub struct OutcomeSlot(UnsafeCell<JobOutcome>);

// SAFETY: written by dom0 while it serves a command, read after the answer by the
// process that sent the command.
unsafe impl Sync for OutcomeSlot {}

impl std::fmt::Debug for OutcomeSlot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("OutcomeSlot")
    }
}

impl OutcomeSlot {
    /// The result of the last job, or why it ended early. For the process that requested
    /// the job, after the answer.
    ///
    /// # Errors
    /// The reason.
    pub fn take(&self) -> Result<(Round, Steps), String> {
        // SAFETY: dom0 has answered and writes no more.
        let outcome = unsafe { &mut *self.0.get() };
        match outcome.failure.get() {
            text if text.is_empty() => Ok((outcome.round, outcome.steps)),
            text => Err(text),
        }
    }

    fn put(&self, result: Result<(Round, Steps), Stop>) {
        // SAFETY: dom0's turn.
        let outcome = unsafe { &mut *self.0.get() };
        match result {
            Ok((round, steps)) => {
                (outcome.round, outcome.steps) = (round, steps);
                outcome.failure.set("");
            }
            Err(stop) => outcome.failure.set(&stop.to_string()),
        }
    }
}

/// How interrupts reach dom0.
enum Announced {
    Directly(Directly),
    ByEvent(ByEvent<'static>),
}

impl Notify for Announced {
    fn interrupt(&mut self) {
        match self {
            Announced::Directly(direct) => direct.interrupt(),
            Announced::ByEvent(event) => event.interrupt(),
        }
    }

    fn waited(&mut self) -> u64 {
        match self {
            Announced::Directly(direct) => direct.waited(),
            Announced::ByEvent(event) => event.waited(),
        }
    }
}

type DomRunner = Runner<'static, NativeEngine<Announced>>;

thread_local! {
    /// The runner of the last job: its traffic sources go on counting.
    static RUNNER: RefCell<Option<(Job, DomRunner)>> = const { RefCell::new(None) };
    /// The back end: packets that are being sent may stay from one job to the next.
    static BACK_END: RefCell<Option<BackEnd<'static>>> = const { RefCell::new(None) };
}

/// Where a job runs.
pub struct JobPlace {
    /// dom0's plan.
    pub plan: &'static KernelPlan<'static>,
    /// The machine's memory and registers.
    pub machine: &'static Machine,
    /// What dom0 and supervisor share.
    pub mailbox: &'static Mailbox,
}

/// Performs a job on dom0's thread 0; the outcome is in the mailbox afterwards.
pub fn perform(job: &Job, place: &JobPlace) {
    declare(place.plan);
    let result = match job.kind {
        LoopKind::Native | LoopKind::OnHypervisor => own_packets(job, place),
        LoopKind::BackEnd => guests_packets(job, place),
        LoopKind::Tape => play(place).map(|()| (Round::default(), Steps::default())),
    };
    place.mailbox.outcome.put(result);
}

/// Declares the components' code to the profiler, once.
pub(crate) fn declare(plan: &KernelPlan<'_>) {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let owners = [
            (Module::Driver, Component::Driver),
            (Module::Hot, Component::Support),
        ];
        for (module, component) in owners {
            if let Some(code) = plan.code(module) {
                profile::declare(code.start, code.end, component);
            }
        }
        let thunks = thunks(plan);
        profile::declare_callers(thunks.start, thunks.end);
    });
}

/// kernel/thunks.S has them one after the other.
fn thunks(plan: &KernelPlan<'_>) -> Range<u64> {
    let ends = ["__x86_indirect_thunk_rax", "__SCT__cond_resched"];
    match ends.map(|name| plan.symbol(name)) {
        [Some(start), Some(end)] => start..end,
        _ => 0..0,
    }
}

fn lacking() -> Stop {
    Stop::Driver("kernel.o or hot.o lack an entry point".to_owned())
}

fn engine(job: &Job, place: &JobPlace) -> Result<NativeEngine<Announced>, Stop> {
    let announced = match job.kind {
        LoopKind::OnHypervisor => Announced::ByEvent(ByEvent {
            event: &place.mailbox.event,
            limits: Limits {
                spin: 0,
                ..Limits::default()
            },
            waited: 0,
        }),
        LoopKind::Native | LoopKind::BackEnd | LoopKind::Tape => Announced::Directly(Directly),
    };
    let (device, ring) = (job.net_device, job.rx_ring);
    NativeEngine::new(
        place.plan,
        place.machine,
        announced,
        device,
        memory::IRQ,
        ring,
    )
    .ok_or_else(lacking)
}

fn set_bar(mode: BarMode) -> Result<(), Stop> {
    memory::set_bar(mode).map_err(|error| Stop::Card(error.to_string()))
}

fn same_runner(a: &Job, b: &Job) -> bool {
    let key = |job: &Job| (job.kind, job.shape, job.guests, job.net_device, job.rx_ring);
    key(a) == key(b)
}

fn own_packets(job: &Job, place: &JobPlace) -> Result<(Round, Steps), Stop> {
    set_bar(BarMode::Open)?;
    let result = RUNNER.with_borrow_mut(|kept| {
        let runner = match kept.take() {
            Some((old, runner)) if same_runner(&old, job) => {
                runner.packet_loop.card.open()?;
                runner
            }
            _ => new_runner(job, place)?,
        };
        let (_, runner) = kept.insert((*job, runner));
        let result = match job.look {
            Look::Cycles | Look::Steps => {
                observe(job.look, || runner.run(job.direction, job.packets))
            }
            Look::Record => record(job, place, || runner.run(job.direction, job.packets)),
        };
        let closed = runner.packet_loop.card.close();
        let (round, steps) = result?;
        closed?;
        Ok((round, steps))
    });
    set_bar(BarMode::Trapped)?;
    result
}

fn new_runner(job: &Job, place: &JobPlace) -> Result<DomRunner, Stop> {
    let dma = place.plan.space().dma();
    let card = OpenCard::new(place.machine, place.mailbox, dma, job.guests as usize, None)?;
    let sources = sources(place.machine, job.guests, job.shape);
    Ok(Runner::new(engine(job, place)?, card, sources, job.shape))
}

fn untold(why: impl std::fmt::Display) -> Stop {
    Stop::Driver(why.to_string())
}

/// Records what the driver does in `work`, and checks that a play does the same.
fn record(
    job: &Job,
    place: &JobPlace,
    work: impl FnOnce() -> Result<Round, Stop>,
) -> Result<(Round, Steps), Stop> {
    let around = Surroundings {
        code: place.plan.code(Module::Driver).ok_or_else(lacking)?,
        thunks: thunks(place.plan),
        stack: memory::kernel_stack(0),
        gs: memory::percpu(0),
    };
    let (counted, recorder) = recorder::record(around, || steps::count(work));
    let (round, steps) = counted.map_err(untold)?;
    let round = round?;
    let tape = recorder.tape(job.packets, steps.of(Component::Driver));
    let tape = tape.map_err(|why| untold(format!("no tape: {why}")))?;
    let mut ground = Native::new(place.plan, place.machine);
    let again = replay::count(&tape, &mut ground, Component::Dom0).map_err(untold)?;
    if again.of(Component::Driver) != tape.instructions {
        return Err(untold(format!(
            "played, the driver takes {} instructions instead of {}",
            again.of(Component::Driver),
            tape.instructions
        )));
    }
    if !place.mailbox.tape.put(&tape) {
        return Err(untold("the tape is too long"));
    }
    Ok((round, steps))
}

/// Lets the driver play the last tape often enough.
fn play(place: &JobPlace) -> Result<(), Stop> {
    let tape = place.mailbox.tape.get().ok_or_else(|| untold("no tape"))?;
    set_bar(BarMode::Open)?;
    let turn = replay::turn(&tape, &mut Native::new(place.plan, place.machine));
    set_bar(BarMode::Trapped)?;
    place.mailbox.tape.put_turn(turn.map_err(untold)?);
    Ok(())
}

/// Runs `work` and observes it as requested.
///
/// # Errors
/// Its own, or why it cannot be observed.
pub fn observe(
    look: Look,
    work: impl FnOnce() -> Result<Round, Stop>,
) -> Result<(Round, Steps), Stop> {
    // What comes before a component begins is nobody's: frames that are made, for one. The
    // round before may have ended in another component.
    profile::enter_phase(Component::Idle);
    match look {
        Look::Cycles => Ok((work()?, Steps::default())),
        Look::Steps | Look::Record => {
            let (round, steps) = steps::count(work).map_err(untold)?;
            Ok((round?, steps))
        }
    }
}

/// dom0's kernel for the back end. The front end drives the card.
struct Kernel {
    engine: NativeEngine<Announced>,
    bridge: BridgeView,
    route: u64,
    attach: u64,
    detach: u64,
    release: u64,
}

impl Kernel {
    fn new(job: &Job, place: &JobPlace) -> Result<Kernel, Stop> {
        let symbol = |name| place.plan.symbol(name).ok_or_else(lacking);
        let state = native::run(symbol("kernel_bridge")?, [0; 6])?;
        let bridge = BridgeView::new(&place.plan.view(place.machine), state);
        Ok(Kernel {
            engine: engine(job, place)?,
            bridge: bridge.ok_or_else(|| untold("dom0 has no bridge of this layout"))?,
            route: symbol("kernel_bridge_route")?,
            attach: symbol("kernel_bridge_attach")?,
            detach: symbol("kernel_bridge_detach")?,
            release: symbol("kernel_bridge_release")?,
        })
    }
}

/// Calls a function that gives a count, or a negative error.
fn count_of(function: u64, arguments: [u64; 2]) -> Result<u32, Stop> {
    let [first, second] = arguments;
    let answer = native::run(function, [first, second, 0, 0, 0, 0])? as i64;
    u32::try_from(answer).map_err(|_| untold(format!("dom0's bridge: error {answer}")))
}

impl Dom0Kernel for Kernel {
    fn rings(&mut self) -> &mut Rings {
        self.engine.rings()
    }

    fn transmit(&mut self, count: u32) -> Result<u32, Stop> {
        self.engine.transmit(count)
    }

    fn interrupt(&mut self) -> Result<bool, Stop> {
        self.engine.handle()
    }

    fn bridge(&mut self) -> &mut BridgeView {
        &mut self.bridge
    }

    fn route(&mut self, first: u32, count: u32) -> Result<u32, Stop> {
        count_of(self.route, [first.into(), count.into()])
    }

    fn port(&mut self, port: u32, mac: Option<u64>) -> Result<(), Stop> {
        let (function, mac) = match mac {
            Some(mac) => (self.attach, mac),
            None => (self.detach, 0),
        };
        count_of(function, [port.into(), mac]).map(|_| ())
    }

    fn release(&mut self, count: u32) -> Result<(), Stop> {
        count_of(self.release, [count.into(), 0]).map(|_| ())
    }
}

fn guests_packets(job: &Job, place: &JobPlace) -> Result<(Round, Steps), Stop> {
    set_bar(BarMode::Open)?;
    let net = &place.mailbox.net;
    let mut kernel = Kernel::new(job, place)?;
    kernel.engine.delivered().bridge(true);
    kernel.rings().set_aggregate(net.aggregate());
    let observed = observe(job.look, || {
        BACK_END.with_borrow_mut(|back| {
            let back = back.get_or_insert_with(|| BackEnd::new(net, place.machine));
            back.serve(&mut kernel);
        });
        Ok(Round::default())
    });
    kernel.rings().set_aggregate(0);
    kernel.engine.delivered().bridge(false);
    set_bar(BarMode::Trapped)?;
    observed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_survive_the_crossing() {
        for (kind, look, shape) in [
            (LoopKind::Native, Look::Cycles, Shape::Frames(60)),
            (LoopKind::OnHypervisor, Look::Record, Shape::Segments(64240)),
            (LoopKind::BackEnd, Look::Steps, Shape::Frames(1514)),
        ] {
            let job = Job {
                kind,
                direction: PacketDirection::Receive,
                packets: 1 << 40,
                shape,
                guests: 8,
                look,
                net_device: 0x1000_0000_1234,
                rx_ring: 7,
            };
            assert_eq!(Job::decode(&job.encode()), Some(job));
        }
        assert_eq!(Job::decode(&[0; WORDS]), None);
    }
}
