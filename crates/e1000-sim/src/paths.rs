//! The four paths of the paper side by side (figures 5 to 8), a fifth to compare the last with, and how
//! rounds of packets on them are observed.
//!
//! | path | packets of | driver runs | between them |
//! |---|---|---|---|
//! | native | dom0 | in dom0, unmodified | nothing |
//! | dom0 | dom0 | in dom0, unmodified | interrupts go to the hypervisor first |
//! | guest | guests | in dom0, unmodified | front and back end, two processes |
//! | twin | guests | in the hypervisor, rewritten | the runtime |
//! | unconfined | guests | in the hypervisor, unmodified | nothing: a wild pointer reaches the hypervisor |

use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use process_lab::runtime::{self, Statistics};

use super::replay::grounds::Rewritten;
use super::replay::{self, Tape, Turn};
use super::system::{Blueprint, System, SystemError};
use crate::dom0::job::{Job, Look, LoopKind, observe};
use crate::engines::guest::{self, GuestEngine};
use crate::engines::staged::Staged;
use crate::engines::twin::TwinEngine;
use crate::hypervisor::unconfined::Unconfined;
use crate::measure::profile::{self, Component};
use crate::measure::steps::{self, Marks, Steps};
use crate::packets::card::OpenCard;
use crate::packets::packet_loop::Stop;
use crate::packets::round::{PacketDirection, Round, Runner, sources};
use crate::stages::{Stage, StageCounts, Stages};
use crate::traffic::source::{Shape, TrafficSource};
use crate::transport::command::Command;
use crate::transport::mailbox::InterruptOwner;
use crate::transport::rendezvous::Limits;

twin_abi::listed! {
    /// The paths of packets, as the paper orders its four.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum PacketPath {
        /// dom0 owns the machine.
        Native => "native",
        /// dom0 on a hypervisor.
        Dom0 => "dom0",
        /// A guest, through dom0.
        Guest => "guest",
        /// A guest, through the hypervisor instance.
        Twin => "twin",
        /// A guest, through the driver in the hypervisor as it is: twin without its confinement. No
        /// stages of the packet path.
        Unconfined => "unconfined",
    }
}

impl PacketPath {
    /// The component that runs when driver and hot routines do: its cycles include
    /// theirs.
    pub fn host(self) -> Component {
        match self {
            PacketPath::Native | PacketPath::Dom0 | PacketPath::Guest => Component::Dom0,
            PacketPath::Twin | PacketPath::Unconfined => Component::Hypervisor,
        }
    }
}

/// What is sent or received in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Whether packets are sent or received.
    pub direction: PacketDirection,
    /// How many packets.
    pub packets: u64,
    /// How it is observed.
    pub look: Look,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RoundResult {
    /// Packets and cycles.
    pub round: Round,
    /// Instructions, if they were counted.
    pub steps: Steps,
    /// Upcalls made in it.
    pub upcalls: u64,
}

/// The front ends of all guests by way of dom0.
pub type GuestRunner<'s> = Runner<'s, GuestEngine<'s>>;

/// All paths of one system, ready to run rounds.
pub struct Paths<'s> {
    /// The machine with dom0 and hypervisor.
    pub system: System<'s>,
    twin: Hypervisor<'s>,
    unconfined: Option<Rc<Unconfined<'s>>>,
    guest: Option<GuestRunner<'s>>,
    shape: Shape,
    guests: u32,
}

/// The hypervisor's runner: chosen when the instance starts, so that a path without stages
/// has none of their instructions.
enum Hypervisor<'s> {
    Plain(Box<Runner<'s, TwinEngine<'s>>>),
    Staged(Box<Runner<'s, Staged<'s>>>),
}

impl<'s> Hypervisor<'s> {
    fn new(
        system: &System<'s>,
        guests: u32,
        shape: Shape,
        stages: Stages,
    ) -> Result<Hypervisor<'s>, SystemError> {
        let mut hypervisor = if stages.is_empty() {
            let engine = system.twin(limits())?;
            Hypervisor::Plain(Box::new(system.twin_runner(engine, guests, shape)?))
        } else {
            let engine = system.staged(limits(), guests, stages)?;
            Hypervisor::Staged(Box::new(system.staged_runner(engine, guests, shape)?))
        };
        hypervisor.card().close()?;
        Ok(hypervisor)
    }

    fn engine(&self) -> &TwinEngine<'s> {
        match self {
            Hypervisor::Plain(runner) => &runner.packet_loop.engine,
            Hypervisor::Staged(runner) => &runner.packet_loop.engine.twin,
        }
    }

    fn engine_mut(&mut self) -> &mut TwinEngine<'s> {
        match self {
            Hypervisor::Plain(runner) => &mut runner.packet_loop.engine,
            Hypervisor::Staged(runner) => &mut runner.packet_loop.engine.twin,
        }
    }

    fn sources(&mut self) -> &mut Vec<TrafficSource<'s>> {
        match self {
            Hypervisor::Plain(runner) => &mut runner.sources,
            Hypervisor::Staged(runner) => &mut runner.sources,
        }
    }

    fn card(&mut self) -> &mut OpenCard<'s> {
        match self {
            Hypervisor::Plain(runner) => &mut runner.packet_loop.card,
            Hypervisor::Staged(runner) => &mut runner.packet_loop.card,
        }
    }

    fn reshape(&mut self, card: OpenCard<'s>, sources: Vec<TrafficSource<'s>>, shape: Shape) {
        match self {
            Hypervisor::Plain(runner) => runner.reshape(card, sources, shape),
            Hypervisor::Staged(runner) => runner.reshape(card, sources, shape),
        }
    }

    fn run(&mut self, work: Work) -> Result<Round, Stop> {
        match self {
            Hypervisor::Plain(runner) => runner.run(work.direction, work.packets),
            Hypervisor::Staged(runner) => runner.run(work.direction, work.packets),
        }
    }

    fn counts(&self) -> StageCounts {
        match self {
            Hypervisor::Plain(_) => StageCounts::default(),
            Hypervisor::Staged(runner) => runner.packet_loop.engine.counts(),
        }
    }
}

/// The CPU of dom0 that has its packets and runs its back end.
const DOM0_CPU: usize = 0;
/// Most time for a round.
const ROUND_TIME: Duration = Duration::from_secs(120);

/// Waits of the paths between processes: no process spins, because both are on one
/// CPU. Single steps are slow, so the wait is long.
fn limits() -> Limits {
    Limits {
        spin: 0,
        time: ROUND_TIME,
    }
}

impl<'s> Paths<'s> {
    /// The paths of a system for packets of one shape from `guests` guests.
    pub fn new(system: System<'s>, guests: u32, shape: Shape) -> Result<Paths<'s>, SystemError> {
        Paths::with_stages(system, guests, shape, Stages::NONE)
    }

    /// The same; packets through the hypervisor have these stages.
    pub fn with_stages(
        mut system: System<'s>,
        guests: u32,
        shape: Shape,
        stages: Stages,
    ) -> Result<Paths<'s>, SystemError> {
        system.dom0.set_limits(limits());
        // dom0's back end has the same hot routines.
        let offload = stages.has(Stage::Offload);
        system.rings(DOM0_CPU)?.set_offload(offload);
        let twin = Hypervisor::new(&system, guests, shape, stages)?;
        declare(system.blueprint());
        Ok(Paths {
            system,
            twin,
            unconfined: None,
            guest: None,
            shape,
            guests,
        })
    }

    /// The guests of the hypervisor.
    pub fn twin_sources(&mut self) -> &mut Vec<TrafficSource<'s>> {
        self.twin.sources()
    }

    /// What the stages have counted.
    pub fn stage_counts(&self) -> StageCounts {
        self.twin.counts()
    }

    /// The front end's runner.
    pub fn guest(&mut self) -> Result<&mut GuestRunner<'s>, SystemError> {
        let runner = match self.guest.take() {
            Some(runner) => runner,
            None => self.new_guest()?,
        };
        Ok(self.guest.insert(runner))
    }

    /// The packets' shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The runtime's counts: misses of the table, collisions, entries.
    pub fn statistics(&self) -> Statistics {
        self.twin.engine().instance.statistics()
    }

    /// Changes the packets' shape.
    pub fn set_shape(&mut self, shape: Shape) -> Result<(), SystemError> {
        let machine = self.system.machine();
        let card = closed(self.system.card(self.guests)?)?;
        self.twin
            .reshape(card, sources(machine, self.guests, shape), shape);
        self.shape = shape;
        self.guest = None;
        Ok(())
    }

    /// Whether guests compute the checksums of the frames that they send, until the shape
    /// changes.
    pub fn guests_compute_checksums(&mut self, compute: bool) -> Result<(), SystemError> {
        let by_dom0 = &mut self.guest()?.sources;
        by_dom0.iter_mut().for_each(|guest| guest.sums = compute);
        let by_hypervisor = self.twin.sources();
        by_hypervisor
            .iter_mut()
            .for_each(|guest| guest.sums = compute);
        Ok(())
    }

    /// Runs a round.
    pub fn run(&mut self, path: PacketPath, work: Work) -> Result<RoundResult, SystemError> {
        // Within a round the loop delivers interrupts; dom0's kernel does not look
        // at the line by itself.
        self.system
            .mailbox()
            .set_interrupt_owner(InterruptOwner::Hypervisor);
        let seen = match path {
            PacketPath::Native => self.run_loop(LoopKind::Native, work),
            PacketPath::Dom0 => self.on_hypervisor(work),
            PacketPath::Guest => self.through_dom0(work),
            PacketPath::Twin => self.through_twin(work),
            PacketPath::Unconfined => self.through_unconfined(work),
        };
        self.system
            .mailbox()
            .set_interrupt_owner(InterruptOwner::Dom0);
        seen
    }

    fn job(&self, kind: LoopKind, work: Work) -> Command {
        Command::Job(Job {
            kind,
            direction: work.direction,
            packets: work.packets,
            shape: self.shape,
            guests: self.guests,
            look: work.look,
            net_device: self.system.info.net_device,
            rx_ring: self.system.info.rx_ring,
        })
    }

    fn outcome(&self) -> Result<RoundResult, SystemError> {
        let outcome = self.system.mailbox().outcome.take();
        let (round, steps) = outcome.map_err(Stop::Driver)?;
        Ok(RoundResult {
            round,
            steps,
            upcalls: 0,
        })
    }

    fn run_loop(&mut self, kind: LoopKind, work: Work) -> Result<RoundResult, SystemError> {
        let job = self.job(kind, work);
        self.system.dom0.command("a packet loop", job)?;
        self.outcome()
    }

    /// A thread plays the hypervisor that receives interrupts.
    fn on_hypervisor(&mut self, work: Work) -> Result<RoundResult, SystemError> {
        let event = &self.system.mailbox().event;
        let over = AtomicBool::new(false);
        event.enlist(std::process::id() as i32);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Acquire) {
                    event.serve(0, || ());
                }
            });
            let seen = self.run_loop(LoopKind::OnHypervisor, work);
            over.store(true, Ordering::Release);
            // The last one lets the thread see that the round is over.
            let _ = event.call(&limits(), || (), || ());
            seen
        })
    }

    fn through_dom0(&mut self, work: Work) -> Result<RoundResult, SystemError> {
        let round = |runner: &mut GuestRunner<'s>| runner.run(work.direction, work.packets);
        let (round, steps) = self.by_dom0(work.look, round)?;
        Ok(RoundResult {
            round,
            steps,
            upcalls: 0,
        })
    }

    /// Runs `work` with the front ends while dom0's thread 0 is the back end.
    ///
    /// # Errors
    /// Its own, or that of the back end.
    pub fn by_dom0(
        &mut self,
        look: Look,
        work: impl FnOnce(&mut GuestRunner<'s>) -> Result<Round, Stop>,
    ) -> Result<(Round, Steps), SystemError> {
        self.system
            .mailbox()
            .set_interrupt_owner(InterruptOwner::Hypervisor);
        let mut runner = match self.guest.take() {
            Some(runner) => runner,
            None => self.new_guest()?,
        };
        let observed = Work {
            direction: PacketDirection::Send,
            packets: 0,
            look,
        };
        let job = self.job(LoopKind::BackEnd, observed);
        let dom0 = &mut self.system.dom0;
        let (front, back) = std::thread::scope(|scope| {
            let back = scope.spawn(|| dom0.command("a back end", job).map(|_| ()));
            let front = runner.packet_loop.card.open();
            let front = front.and_then(|()| {
                let seen = observe(look, || work(&mut runner));
                let closed = runner.packet_loop.card.close();
                // The reason that packets stopped explains the registers' state.
                let seen = seen?;
                closed.map(|()| seen)
            });
            let ended = runner.packet_loop.engine.end();
            let back = back.join().expect("the thread does not panic");
            (front.and_then(|seen| ended.map(|()| seen)), back)
        });
        let (round, steps) = front?;
        back?;
        self.guest = Some(runner);
        let theirs = self.outcome()?;
        self.system
            .mailbox()
            .set_interrupt_owner(InterruptOwner::Dom0);
        Ok((round, steps.plus(&theirs.steps)))
    }

    /// Records what the driver does natively for a number of packets.
    ///
    /// # Errors
    /// [`SystemError`], also if the driver does something else when that is played.
    pub fn record(
        &mut self,
        direction: PacketDirection,
        packets: u64,
    ) -> Result<Tape, SystemError> {
        let look = Look::Record;
        let work = Work {
            direction,
            packets,
            look,
        };
        self.run(PacketPath::Native, work)?;
        let tape = self.system.mailbox().tape.get();
        tape.ok_or_else(|| SystemError::Lacking("dom0 left no tape".to_owned()))
    }

    /// Lets dom0's own driver play the tape that was recorded last.
    pub fn play_natively(&mut self) -> Result<Turn, SystemError> {
        let work = Work {
            direction: PacketDirection::Send,
            packets: 0,
            look: Look::Cycles,
        };
        self.run_loop(LoopKind::Tape, work)?;
        Ok(self.system.mailbox().tape.turn())
    }

    /// Lets the rewritten driver play it.
    pub fn play_rewritten(&mut self, tape: &Tape) -> Result<Turn, SystemError> {
        let instance = &mut self.twin.engine_mut().instance;
        let mut ground = Rewritten::new(instance, self.system.blueprint());
        Ok(replay::turn(tape, &mut ground).map_err(Stop::Driver)?)
    }

    /// What the rewritten driver executes when it plays it.
    pub fn count_rewritten(&mut self, tape: &Tape) -> Result<Steps, SystemError> {
        let instance = &mut self.twin.engine_mut().instance;
        let limited = instance.limit_time(ROUND_TIME);
        let mut ground = Rewritten::new(instance, self.system.blueprint());
        let steps = replay::count(tape, &mut ground, Component::Hypervisor);
        limited.and_then(|()| instance.limit_time(crate::hypervisor::time_limit::DEFAULT))?;
        Ok(steps.map_err(Stop::Driver)?)
    }

    fn new_guest(&self) -> Result<GuestRunner<'s>, SystemError> {
        let net = &self.system.mailbox().net;
        net.enlist(self.system.dom0.pid());
        let machine = self.system.machine();
        let engine = GuestEngine::new(net, machine, self.guests, limits());
        let sources = guest::sources(machine, self.guests, self.shape);
        Ok(Runner::new(
            engine,
            closed(self.system.unguarded_card(self.guests)?)?,
            sources,
            self.shape,
        ))
    }

    fn through_unconfined(&mut self, work: Work) -> Result<RoundResult, SystemError> {
        if matches!(self.twin, Hypervisor::Staged(_)) {
            return Err(SystemError::Lacking(NO_STAGES.to_owned()));
        }
        let unconfined = match self.unconfined.take() {
            Some(unconfined) => unconfined,
            None => self.system.unconfined()?,
        };
        let plan = &self.system.blueprint().plan;
        self.twin.engine_mut().unconfine(&unconfined, plan)?;
        self.unconfined = Some(unconfined);
        let seen = self.through_twin(work);
        self.twin.engine_mut().confine()?;
        seen
    }

    fn through_twin(&mut self, work: Work) -> Result<RoundResult, SystemError> {
        let twin = &mut self.twin;
        let before = twin.engine().instance.upcall_count();
        twin.card().open()?;
        // A trap after each instruction takes longer than a driver may.
        if work.look == Look::Steps {
            twin.engine().instance.limit_time(ROUND_TIME)?;
        }
        let seen = observe(work.look, || twin.run(work));
        if work.look == Look::Steps {
            let usual = crate::hypervisor::time_limit::DEFAULT;
            twin.engine().instance.limit_time(usual)?;
        }
        let closed = twin.card().close();
        let (round, steps) = seen?;
        closed?;
        let upcalls = twin.engine().instance.upcall_count() - before;
        Ok(RoundResult {
            round,
            steps,
            upcalls,
        })
    }
}

/// Stages import services that only rewritten code reaches.
const NO_STAGES: &str = "the unconfined path has no stages";

/// The card, to be opened for each round.
fn closed(mut card: OpenCard<'_>) -> Result<OpenCard<'_>, SystemError> {
    card.close()?;
    Ok(card)
}

/// Tells the profiler which addresses are rewritten code, and at which it looks up the
/// table and calls hot routines.
pub(crate) fn declare(blueprint: &Blueprint<'_>) {
    let payload = &blueprint.payload;
    let owners = [
        (&payload.driver, Component::Driver),
        (&payload.hot, Component::Support),
    ];
    for (program, component) in owners {
        let (start, end) = program.text();
        profile::declare(start, end, component);
    }
    let translation = runtime::translation_text();
    profile::declare_callers(translation.start, translation.end);
    let (start, _) = payload.hot.text();
    let (driver, end) = payload.driver.text();
    let mut marks = Marks::new(start..end, driver..end);
    marks.lookups(payload.hot.lookups());
    marks.lookups(payload.driver.lookups());
    let routines = blueprint.routines();
    let entry = |name: &String| payload.hot.entries.exported(name);
    marks.routines(routines.iter().filter_map(entry));
    steps::mark(marks);
}

/// Keeps this process and its later children on one processor, so that cycles of two
/// processes that take turns add up.
pub fn pin() -> std::io::Result<()> {
    // SAFETY: all zeroes is the empty set; the macros write inside it.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu().max(0) as usize, &mut set);
        set
    };
    // SAFETY: the set is as large as said.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Gives this process and its later children a higher priority than others, if that is
/// permitted. Otherwise each switch between two processes that take turns could let a
/// third one run.
pub fn hurry() {
    const NICE: libc::c_int = -15;
    // SAFETY: plain system call; a refusal changes nothing.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICE) };
}
