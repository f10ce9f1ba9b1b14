//! Many faults, one after the other, in a hypervisor process that a supervisor
//! watches.
//!
//! ```text
//! supervisor ──> hypervisor process ──> dom0
//!      └─ watches: it lives, its pulse beats; counts are in shared memory
//! ```
//!
//! For each fault: guest 0 is served while it strikes; the outcome is classified; the
//! guards are checked; dom0 resets the driver; both guests are served.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use process_lab::patience::Patience;
use process_lab::process;
use process_lab::program::Variant;
use process_lab::random::{self, Random};

use super::anatomy::Anatomy;
use super::fault::{FaultEnding, FaultKind, Moment, Struck};
use super::faulty::Armed;
use super::guards::Guards;
use super::line::Line;
use super::recovery::{Mended, Quiet, Recovery};
use super::service::{Exchanged, Service};
use super::stack;
use super::tally::Tally;
use crate::LiveError;
use crate::dom0::interface::Feature;
use crate::hypervisor::instance::{DriverAbort, Stopped};
use crate::image::files::Files;
use crate::nic::{Faults, Ring};
use crate::packets::packet_loop::Stop;
use crate::stages::{Stage, Stages};
use crate::system::{Blueprint, System, SystemError};
use crate::transport::mailbox::SharedPages;
use crate::transport::rendezvous::Limits;

/// Guests that send and receive; the others' memory is guarded.
const GUESTS: u32 = 2;
/// Packets each way while a fault may strike.
const PACKETS: u32 = 24;
/// Processor time of one invocation.
const TIME_LIMIT: Duration = Duration::from_millis(100);
/// Seconds for a command to dom0: a hang costs as much.
const COMMAND: u64 = 1;
/// All code is checked each time after this many faults.
const CODE_EVERY: u64 = 100;
/// Time of the hypervisor's own without a pulse that counts as a hang. Its waits for a
/// hanging dom0 end much sooner.
const HANG: Duration = Duration::from_secs(600);
/// Time between polls.
const PIECE: Duration = Duration::from_millis(20);

/// The campaign to run.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many to inject.
    pub faults: u64,
    /// Other faults for other seeds.
    pub seed: u64,
    /// Begin with fault number.
    pub first: u64,
    /// Of these, inject those whose kind's name contains this.
    pub only: String,
    /// Leave descriptors for the card unchecked, to see what the check adds.
    pub unchecked: bool,
    /// Say what each fault was and became.
    pub verbose: bool,
    /// As JSON, a line each.
    pub json: bool,
    /// How the driver is rewritten.
    pub variant: Variant,
    /// Stages of the packet path. With `offload` the card does nothing of what that is for, with
    /// `aggregate` guests receive TCP segments.
    pub stages: Stages,
}

impl Options {
    /// How many faults that makes.
    pub fn count(&self) -> u64 {
        let numbers = self.first..self.first + self.faults;
        numbers.filter(|number| self.wants(*number)).count() as u64
    }

    fn wants(&self, number: u64) -> bool {
        kind_of(number).as_str().contains(&self.only)
    }
}

/// Runs faults in a process of their own and watches it. Gives the counts, and events
/// that must never happen.
///
/// # Errors
/// The process could not be made.
pub fn supervised(options: &Options) -> Result<(SharedPages<Tally>, Vec<String>), SystemError> {
    let pages = SharedPages::<Tally>::new()?;
    let tally = pages.get();
    let mut child = process::fork(|| run_here(options, tally))
        .map_err(LiveError::system("starting a process"))?;
    let mut violations = Vec::new();
    let pid = child.pid();
    let patience = || Patience::new(pid, HANG);
    let mut seen = (tally.pulse.load(Ordering::Relaxed), patience());
    while child.is_alive() {
        std::thread::sleep(PIECE);
        seen.1.waited(PIECE);
        let pulse = tally.pulse.load(Ordering::Relaxed);
        if pulse != seen.0 {
            seen = (pulse, patience());
        } else if seen.1.left().is_zero() {
            violations.push(format!("the hypervisor hangs: no progress in {HANG:?}"));
            child.kill();
        }
    }
    let fate = child.fate().unwrap_or_default();
    if tally.finished.load(Ordering::SeqCst) == 0 {
        violations.push(format!("the hypervisor process {fate}"));
    }
    let counted = tally.violations.load(Ordering::SeqCst);
    if counted > 0 {
        violations.push(format!("{counted} violations, see above"));
    }
    Ok((pages, violations))
}

fn run_here(options: &Options, tally: &Tally) -> i32 {
    match run(options, tally) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("faults: {error}");
            1
        }
    }
}

fn run(options: &Options, tally: &Tally) -> Result<(), SystemError> {
    let files = Files::find()?;
    let lacking: &[Feature] = match options.stages.has(Stage::Offload) {
        true => &Feature::ALL,
        false => &[],
    };
    let blueprint = Blueprint::new(&files, options.variant, &HashSet::new())?.without(lacking);
    blueprint.booted(limits(20), |system| {
        let mut campaign = Campaign::start(system, options, tally)?;
        for number in options.first..options.first + options.faults {
            if options.wants(number) {
                campaign.fault(number)?;
            }
        }
        campaign.check_code();
        Ok(())
    })?;
    tally.finished.store(1, Ordering::SeqCst);
    Ok(())
}

fn kind_of(number: u64) -> FaultKind {
    FaultKind::ALL[(number % FaultKind::ALL.len() as u64) as usize]
}

/// Limits of that many seconds: of dom0's start, of commands to it, and of upcalls.
fn limits(seconds: u64) -> Limits {
    Limits::of_seconds(seconds)
}

struct Campaign<'s> {
    system: System<'s>,
    service: Service<'s>,
    guards: Guards<'s>,
    quiet: Quiet,
    options: &'s Options,
    tally: &'s Tally,
    done: u64,
}

impl<'s> Campaign<'s> {
    fn start(
        mut system: System<'s>,
        options: &'s Options,
        tally: &'s Tally,
    ) -> Result<Campaign<'s>, SystemError> {
        system.dom0.set_limits(limits(COMMAND));
        let engine = system.twin_with(limits(1), stack::host_receive)?;
        system.guard().switch_off(options.unchecked);
        engine.instance.limit_time(TIME_LIMIT)?;
        let quiet = Quiet::note(&system);
        let (machine, blueprint) = (system.machine(), system.blueprint());
        let guards = Guards::new(machine, blueprint, GUESTS..machine.sizes().guests)?;
        Ok(Campaign {
            service: Service::staged(&system, engine, GUESTS, options.stages)?,
            system,
            guards,
            quiet,
            options,
            tally,
            done: 0,
        })
    }

    /// One fault, from arming to serving again.
    fn fault(&mut self, number: u64) -> Result<(), SystemError> {
        let kind = kind_of(number);
        let neighbour = (self.service.damage(1), self.guards.guest(1));
        let before = *self.system.mailbox().device().faults();
        let armed = self.arm(kind, number)?;
        let lasting = lasting(&armed.anatomy);
        let moment = armed.moment;
        let (served, struck) = match moment {
            Moment::Meanwhile => self.serve_meanwhile(armed),
            _ => self.serve_with(armed),
        };
        let struck = struck.map(|struck| struck.at_moment(moment));
        let ending = self.ending(served, &before);
        self.tally.beat();
        if struck.is_none() {
            self.unexpected_ending(number, kind, &ending);
        }
        self.say(number, kind, struck.as_ref(), &ending);
        let what = struck.as_ref().map_or(String::new(), Struck::to_string);
        let story = format!("fault {number}, {}, {what}: {ending}", kind.as_str());
        self.check(&story, neighbour);
        if struck.is_some() {
            self.tally.ended(kind, &ending);
        }
        self.mend(kind, &story, struck.as_ref(), &lasting)
    }

    fn recovery(&mut self) -> Recovery<'s, '_> {
        Recovery {
            system: &mut self.system,
            service: &mut self.service,
            quiet: &self.quiet,
            start: limits(20),
            limits: limits(COMMAND),
        }
    }

    /// The driver's data; those of a new dom0 if this one's cannot be found.
    fn anatomy(&mut self) -> Result<Anatomy<'s>, SystemError> {
        for _ in 0..2 {
            let (plan, machine) = (&self.system.blueprint().plan, self.system.machine());
            let mailbox = self.system.mailbox();
            let found = Anatomy::find(plan, machine, mailbox, self.system.info);
            if let Some(anatomy) = found {
                return Ok(anatomy);
            }
            self.recovery().restart()?;
        }
        let what = "a driver that is as inject/anatomy.rs has it";
        Err(SystemError::Lacking(what.to_owned()))
    }

    fn arm(&mut self, kind: FaultKind, number: u64) -> Result<Armed<'s>, SystemError> {
        let mut random = Random::new(random::seed(
            kind.as_str(),
            number ^ self.options.seed << 32,
        ));
        let anatomy = self.anatomy()?;
        let moments = kind.moments();
        let moment = moments[random.below(moments.len() as u64) as usize];
        Ok(Armed {
            anatomy: Arc::new(anatomy),
            payload: &self.system.blueprint().payload,
            kind,
            moment,
            countdown: random.below(3),
            random,
            hypervisor_heap: self.guards.heap_address(),
            struck: None,
        })
    }

    fn serve_with(&mut self, armed: Armed<'s>) -> (Result<Exchanged, Stop>, Option<Struck>) {
        self.service.packet_loop.engine.armed = Some(armed);
        let served = self.serve();
        let armed = self.service.packet_loop.engine.armed.take();
        (served, armed.and_then(|armed| armed.struck))
    }

    /// The fault strikes from another thread, which ends before dom0's recovery, because
    /// a new dom0 is forked from this process.
    fn serve_meanwhile(
        &mut self,
        mut armed: Armed<'s>,
    ) -> (Result<Exchanged, Stop>, Option<Struck>) {
        std::thread::scope(|scope| {
            let striker = scope.spawn(move || {
                armed.meanwhile();
                armed.struck
            });
            let served = self.serve();
            let struck = striker.join().unwrap_or_default();
            // It may have struck late: let packets meet it now.
            let served = served.and_then(|first| Ok(first.and(self.serve()?)));
            (served, struck)
        })
    }

    /// Guest 0 is served, packet by packet at first, until the fault has struck and
    /// could have an effect.
    fn serve(&mut self) -> Result<Exchanged, Stop> {
        [2, 2, 2, 2, PACKETS]
            .into_iter()
            .try_fold(Exchanged::default(), |sum, packets| {
                Ok(sum.and(self.service.exchange(0..1, packets)?))
            })
    }

    fn ending(&mut self, served: Result<Exchanged, Stop>, before: &Faults) -> FaultEnding {
        match self.service.packet_loop.engine.engine.twin.take_stopped() {
            Some(Stopped::Aborted(report)) => return aborted(report),
            Some(stopped) => return FaultEnding::Detected(stopped.to_string()),
            None => {}
        }
        let exchanged = match served {
            Err(stop) => return FaultEnding::Detected(stop.to_string()),
            Ok(exchanged) => exchanged,
        };
        if let Some(what) = self.card_noticed(before) {
            return FaultEnding::Detected(what);
        }
        if exchanged == Exchanged::default() {
            FaultEnding::Harmless
        } else {
            FaultEnding::Noticed(format!("{exchanged:?}"))
        }
    }

    /// Accesses that the card refused, or the driver's writes to registers that it may
    /// not write.
    fn card_noticed(&mut self, before: &Faults) -> Option<String> {
        let audited = self.service.packet_loop.card.close();
        let device = self.system.mailbox().device();
        if device.faults() != before {
            return Some(format!("the card refused: {:?}", device.faults()));
        }
        if device.stopped(Ring::Transmit) || device.stopped(Ring::Receive) {
            return Some("the card stopped a ring".to_owned());
        }
        audited.err().map(|stop| stop.to_string())
    }

    fn unexpected_ending(&self, number: u64, kind: FaultKind, ending: &FaultEnding) {
        if *ending != FaultEnding::Harmless {
            self.violation(&format!(
                "fault {number}, {}, did not strike, but: {ending}",
                kind.as_str()
            ));
        }
    }

    /// Guards, and the guest that was not served.
    fn check(&mut self, story: &str, neighbour: (u64, u32)) {
        if let Some(what) = self.guards.changed() {
            self.violation(&format!("{what} changed: {story}"));
        }
        if self.guards.guest(1) != neighbour.1 {
            self.violation(&format!("guest 1's memory changed: {story}"));
        }
        if self.service.damage(1) != neighbour.0 {
            self.violation(&format!("guest 1 got damaged packets: {story}"));
        }
        self.done += 1;
        if self.done.is_multiple_of(CODE_EVERY) {
            self.check_code();
        }
    }

    fn check_code(&self) {
        if let Some(what) = self.guards.code_changed() {
            self.violation(&format!("{what} changed"));
        }
    }

    fn mend(
        &mut self,
        kind: FaultKind,
        story: &str,
        struck: Option<&Struck>,
        lasting: &[Range<u64>],
    ) -> Result<(), SystemError> {
        match self.recovery().mend() {
            Ok((how, why)) => {
                if self.options.verbose
                    && let Some(why) = why
                {
                    let line = why.lines().next().unwrap_or_default();
                    println!("           new dom0: {line}");
                }
                if let Some(struck) = struck {
                    self.tally.mended(kind, how);
                    self.take_back(how, struck, lasting);
                }
                Ok(())
            }
            Err(why) => {
                self.violation(&format!("not served again: {why}: {story}"));
                Err(SystemError::Lacking("a system that serves".to_owned()))
            }
        }
    }

    fn take_back(&self, how: Mended, struck: &Struck, lasting: &[Range<u64>]) {
        if how == Mended::Reset {
            let view = self.system.blueprint().plan.view(self.system.machine());
            lasting
                .iter()
                .for_each(|range| struck.take_back(&view, range));
        }
    }

    fn violation(&self, what: &str) {
        self.tally.violation();
        eprintln!("VIOLATION: {what}");
    }

    fn say(&self, number: u64, kind: FaultKind, struck: Option<&Struck>, ending: &FaultEnding) {
        if self.options.json {
            println!("{}", Line::new(number, kind, struck, ending).json());
            return;
        }
        if !self.options.verbose {
            return;
        }
        match struck {
            Some(struck) => println!(
                "{number:6} {}: {struck}\n           {ending}",
                kind.as_str()
            ),
            None => println!("{number:6} {}: nothing there to strike", kind.as_str()),
        }
    }
}

/// Memory that a reset of the driver does not change.
fn lasting(anatomy: &Anatomy<'_>) -> [Range<u64>; 3] {
    let device = anatomy.info.net_device..anatomy.adapter.end;
    [device, anatomy.tx.structure(), anatomy.rx.structure()]
}

fn aborted(report: DriverAbort) -> FaultEnding {
    let said = report.import.as_deref().unwrap_or_default();
    if report.is_time_limit() {
        FaultEnding::TimeLimit(report)
    } else if said.contains("canary") {
        FaultEnding::Detected(report.to_string())
    } else {
        FaultEnding::Aborted(report)
    }
}
