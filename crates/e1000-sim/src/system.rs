//! The whole system put together: dom0 booted with the stock driver, and the
//! hypervisor instance (paper, figure 2).
//!
//! ```text
//! files ─> KernelPlan ─> Machine, Mailbox ─> dom0 process ─ boot, probe, open ─> Driver
//!            └──> Payload ──────────────> Instance ─────────────────────> TwinEngine
//! ```

use std::collections::HashSet;
use std::rc::Rc;

use elf_loader::Place;
use elf_loader::consts::STB_LOCAL;
use process_lab::program::Variant;
use process_lab::runtime::{PortRange, Region};
use thiserror::Error;

use super::LiveError;
use super::dom0::{CommandError, Dom0};
use super::image::{KernelPlan, Missing, Module};
use super::memory::{
    BAR, BAR_SIZE, DRIVER_STACK, Machine, PORTS, PORTS_SIZE, Shift, Sizes, data_stack, percpu,
};
use crate::dom0::host;
use crate::dom0::interface::{Feature, Info, IrqState, Plain, ReceiveMode};
use crate::engines::staged::{self, Staged};
use crate::engines::twin::{self, Driver, TwinEngine, VirtualInterrupts};
use crate::engines::{SERVICES, gather};
use crate::hypervisor::instance::{DataStack, Instance, Loading, Service, Upcalls};
use crate::hypervisor::payload::{Parts, Payload};
use crate::hypervisor::unconfined::Unconfined;
use crate::hypervisor::upcall::{self, Upcall};
use crate::image::files::Files;
use crate::memory::view::View;
use crate::packets::card::OpenCard;
use crate::packets::guard::Guard;
use crate::packets::outgoing::Outgoing;
use crate::packets::packet_loop::{Engine, Stop};
use crate::packets::rings::Rings;
use crate::packets::round::{Runner, sources};
use crate::stages::Stages;
use crate::traffic::source::{Shape, TrafficSource};
use crate::transport::mailbox::{InterruptOwner, Mailbox, UpcallSlot};
use crate::transport::rendezvous::Limits;

/// The MAC address in the card's EEPROM.
const CARD_MAC: [u8; 6] = [0x52, 0x54, 0x00, 0x12, 0x34, 0x56];
/// The hypervisor's CPU: its percpu area, rings and upcall slot.
pub const CPU: usize = 1;
const SECOND: u64 = 1_000_000_000;

/// Why the system cannot run.
#[derive(Debug, Error)]
pub enum SystemError {
    /// It could not be set up.
    #[error(transparent)]
    Live(#[from] LiveError),
    /// The driver was refused, or its rewriting rejected.
    #[error(transparent)]
    Testbed(#[from] process_lab::Error),
    /// A command to dom0 failed.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// Packets stopped.
    #[error(transparent)]
    Stop(#[from] Stopped),
    /// Something that must be there is not.
    #[error("{0}")]
    Lacking(String),
}

/// [`Stop`] as an error.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Stopped(pub Stop);

impl From<Stop> for SystemError {
    fn from(stop: Stop) -> SystemError {
        SystemError::Stop(Stopped(stop))
    }
}

/// What is decided before anything runs.
pub struct Blueprint<'f> {
    /// dom0's objects.
    pub plan: KernelPlan<'f>,
    /// The hypervisor instance.
    pub payload: Payload,
    /// The driver's parameters, as insmod takes them.
    pub driver_args: String,
    /// What the card does not do from the start on.
    pub lacking: Vec<Feature>,
}

impl<'f> Blueprint<'f> {
    /// Plans dom0, rewrites driver and hot routines, verifies and links them.
    /// `upcalls` are hot routines that are to be upcalls.
    pub fn new(
        files: &'f Files,
        variant: Variant,
        upcalls: &HashSet<String>,
    ) -> Result<Blueprint<'f>, SystemError> {
        Blueprint::shifted(files, variant, upcalls, Shift::default())
    }

    /// The same with code at other addresses.
    pub fn shifted(
        files: &'f Files,
        variant: Variant,
        upcalls: &HashSet<String>,
        shift: Shift,
    ) -> Result<Blueprint<'f>, SystemError> {
        let plan = shifted_plan(files, shift)?;
        let payload = Payload::new(&Parts {
            plan: &plan,
            variant,
            upcalls,
            services: &SERVICES,
            shift,
        })?;
        Ok(Blueprint {
            plan,
            payload,
            driver_args: String::new(),
            lacking: Vec::new(),
        })
    }

    /// The same with parameters of the driver: `TxDescriptors=512 ...`.
    #[must_use]
    pub fn with_driver_args(self, driver_args: &str) -> Blueprint<'f> {
        Blueprint {
            driver_args: driver_args.to_owned(),
            ..self
        }
    }

    /// The same with a card that does not do these, as after `ethtool -K`.
    #[must_use]
    pub fn without(self, lacking: &[Feature]) -> Blueprint<'f> {
        Blueprint {
            lacking: lacking.to_vec(),
            ..self
        }
    }

    /// Boots dom0 and its card in this process, and runs `work` with them.
    ///
    /// # Errors
    /// The system's, or the work's.
    pub fn booted<T>(
        &self,
        limits: Limits,
        work: impl FnOnce(System<'_>) -> Result<T, SystemError>,
    ) -> Result<T, SystemError> {
        let machine = Machine::new(Sizes::default())?;
        let mailbox = Mailbox::new()?;
        work(System::start(self, &machine, mailbox.get(), limits)?)
    }

    /// The hot routines, by name: imports of the driver that hot.o defines.
    pub fn routines(&self) -> Vec<String> {
        routines(&self.plan)
    }
}

/// Lays dom0's objects out and links them.
pub fn plan(files: &Files) -> Result<KernelPlan<'_>, LiveError> {
    shifted_plan(files, Shift::default())
}

fn shifted_plan(files: &Files, shift: Shift) -> Result<KernelPlan<'_>, LiveError> {
    let (sizes, host) = (Sizes::default(), &host::address);
    KernelPlan::shifted(sizes, &files.modules(), host, Missing::Refuse, shift)
}

/// The hot routines that can be upcalls: all but the one that hands packets to the
/// hypervisor's switch. In dom0 it would hand them to dom0 (paper, 6.4).
pub fn upcallable(plan: &KernelPlan<'_>) -> Vec<String> {
    let mut names = routines(plan);
    names.retain(|name| name != "napi_gro_receive");
    names
}

/// Imports of the driver that hot.o defines, sorted.
pub fn routines(plan: &KernelPlan<'_>) -> Vec<String> {
    let (Some(driver), Some(hot)) = (plan.image(Module::Driver), plan.image(Module::Hot)) else {
        return Vec::new();
    };
    let defined: HashSet<&str> = hot
        .object
        .symbols()
        .filter(|(_, symbol)| symbol.place != Place::Undefined && symbol.binding != STB_LOCAL)
        .map(|(_, symbol)| &*symbol.name)
        .collect();
    let mut names: Vec<String> = driver
        .object
        .symbols()
        .filter(|(_, symbol)| symbol.place == Place::Undefined)
        .filter(|(_, symbol)| defined.contains(&*symbol.name))
        .map(|(_, symbol)| symbol.name.to_string())
        .collect();
    names.sort();
    names
}

/// The running system. Dropped, it ends dom0.
pub struct System<'s> {
    /// The process that has the driver.
    pub dom0: Dom0<'s, 's>,
    blueprint: &'s Blueprint<'s>,
    machine: &'s Machine,
    mailbox: &'s Mailbox,
    guard: Rc<Guard<'s>>,
    /// The driver's addresses and numbers, as dom0 reports them.
    pub driver: Driver,
    /// Further addresses in dom0.
    pub info: Info,
}

impl<'s> System<'s> {
    /// Starts dom0 and has it load, probe and open the driver.
    pub fn start(
        blueprint: &'s Blueprint<'s>,
        machine: &'s Machine,
        mailbox: &'s Mailbox,
        limits: Limits,
    ) -> Result<System<'s>, SystemError> {
        mailbox.power_on(CARD_MAC);
        mailbox.set_interrupt_owner(InterruptOwner::Dom0);
        let mut dom0 = Dom0::start(&blueprint.plan, machine, mailbox, limits)?;
        let (driver, info) = bring_up(&mut dom0, blueprint)?;
        let guard = Guard::new(machine, blueprint.plan.space().dma())?;
        Ok(System {
            dom0,
            blueprint,
            machine,
            mailbox,
            guard: Rc::new(guard),
            driver,
            info,
        })
    }

    /// Kills dom0 and starts it again, with a fresh card.
    pub fn restart_dom0(&mut self, limits: Limits) -> Result<(), SystemError> {
        self.dom0.kill();
        self.mailbox.power_on(CARD_MAC);
        self.mailbox.set_interrupt_owner(InterruptOwner::Dom0);
        self.dom0 = Dom0::start(&self.blueprint.plan, self.machine, self.mailbox, limits)?;
        (self.driver, self.info) = bring_up(&mut self.dom0, self.blueprint)?;
        Ok(())
    }

    /// Asks dom0 again where the driver is: after a reset.
    pub fn refresh(&mut self) -> Result<(), SystemError> {
        (self.driver, self.info) = describe(&mut self.dom0)?;
        Ok(())
    }

    /// Loads the hypervisor instance. Once in a process.
    pub fn twin(&self, limits: Limits) -> Result<TwinEngine<'s>, SystemError> {
        self.twin_with(limits, twin::HOST_RECEIVE)
    }

    /// As [`System::twin`], with another `host_receive`.
    pub fn twin_with(
        &self,
        limits: Limits,
        receive: Service,
    ) -> Result<TwinEngine<'s>, SystemError> {
        let instance = Instance::load(Loading {
            payload: &self.blueprint.payload,
            plan: &self.blueprint.plan,
            regions: self.regions(),
            ports: PortRange {
                first: PORTS,
                last: PORTS + PORTS_SIZE - 1,
            },
            block: DRIVER_STACK,
            data_stack: DataStack {
                fd: self.machine.fd(),
                offset: data_stack(CPU),
            },
            gs_base: percpu(CPU),
            memory: self.memory(),
            guard: Rc::clone(&self.guard),
            services: vec![receive, gather::host_gather],
            upcalls: Box::new(ToDom0 {
                slot: &self.mailbox.upcalls[CPU],
                limits,
            }),
        })?;
        let rings = self.rings(CPU)?;
        let interrupts = self.virtual_interrupts()?;
        let outgoing = Outgoing::new(self.machine.frames());
        TwinEngine::new(
            instance, self.machine, rings, outgoing, self.driver, interrupts,
        )
        .ok_or_else(|| lacking("hot.o lacks an entry point, or the driver its handler"))
    }

    /// Loads the driver into the hypervisor as it is, to be run by the engine instead of its rewritten
    /// code. Once in a process, after the instance.
    ///
    /// # Errors
    /// A system call's.
    pub fn unconfined(&self) -> Result<Rc<Unconfined<'s>>, SystemError> {
        let (plan, guard) = (&self.blueprint.plan, Rc::clone(&self.guard));
        let receive = twin::receive_unconfined;
        Ok(Rc::new(Unconfined::load(
            plan, self.machine, guard, CPU, receive,
        )?))
    }

    /// Loads the hypervisor instance with stages of the packet path. Once in a process.
    pub fn staged(
        &self,
        limits: Limits,
        guests: u32,
        stages: Stages,
    ) -> Result<Staged<'s>, SystemError> {
        let twin = self.twin_with(limits, staged::HOST_RECEIVE)?;
        let mut engine = Staged::new(twin, self.machine, guests, Stages::NONE);
        engine.set_stages(stages);
        Ok(engine)
    }

    /// Interrupts of the card are the hypervisor's from here on.
    pub fn take_interrupts(&self) {
        self.mailbox.set_interrupt_owner(InterruptOwner::Hypervisor);
    }

    /// A runner of that, with guests attached.
    pub fn staged_runner(
        &self,
        engine: Staged<'s>,
        guests: u32,
        shape: Shape,
    ) -> Result<Runner<'s, Staged<'s>>, SystemError> {
        self.runner(engine, Staged::attach, guests, shape)
    }

    /// A runner of the hypervisor instance with guests attached.
    pub fn twin_runner(
        &self,
        engine: TwinEngine<'s>,
        guests: u32,
        shape: Shape,
    ) -> Result<Runner<'s, TwinEngine<'s>>, SystemError> {
        self.runner(engine, TwinEngine::attach, guests, shape)
    }

    fn runner<E: Engine>(
        &self,
        mut engine: E,
        attach: impl Fn(&mut E, &TrafficSource<'_>) -> bool,
        guests: u32,
        shape: Shape,
    ) -> Result<Runner<'s, E>, SystemError> {
        let sources = sources(self.machine, guests, shape);
        if !sources.iter().all(|source| attach(&mut engine, source)) {
            let what = format!("the switch has no place for {guests} guests");
            return Err(SystemError::Lacking(what));
        }
        self.take_interrupts();
        Ok(Runner::new(engine, self.card(guests)?, sources, shape))
    }

    /// The card with open registers, for the hypervisor instance: its rings are checked.
    pub fn card(&self, flows: u32) -> Result<OpenCard<'s>, SystemError> {
        self.open_card(flows, Some(Rc::clone(&self.guard)))
    }

    /// The card with open registers, for dom0's driver: it uses dom0's rings.
    pub fn unguarded_card(&self, flows: u32) -> Result<OpenCard<'s>, SystemError> {
        self.open_card(flows, None)
    }

    fn open_card(
        &self,
        flows: u32,
        guard: Option<Rc<Guard<'s>>>,
    ) -> Result<OpenCard<'s>, SystemError> {
        let dma = self.blueprint.plan.space().dma();
        let (machine, mailbox) = (self.machine, self.mailbox);
        Ok(OpenCard::new(machine, mailbox, dma, flows as usize, guard)?)
    }

    /// The check of the card's rings.
    pub fn guard(&self) -> &Guard<'s> {
        &self.guard
    }

    /// The rings of a CPU.
    ///
    /// # Errors
    /// [`SystemError::Lacking`].
    pub fn rings(&self, cpu: usize) -> Result<Rings, SystemError> {
        let hot_shared = self.blueprint.plan.symbol("hot_shared");
        hot_shared
            .and_then(|at| Rings::new(&self.memory(), at, cpu))
            .ok_or_else(|| lacking("hot.o's rings are not set up"))
    }

    /// The machine's memory and registers.
    pub fn machine(&self) -> &'s Machine {
        self.machine
    }

    /// What processes share.
    pub fn mailbox(&self) -> &'s Mailbox {
        self.mailbox
    }

    /// The plan and the payload.
    pub fn blueprint(&self) -> &'s Blueprint<'s> {
        self.blueprint
    }

    /// dom0's memory.
    pub fn memory(&self) -> View<'s> {
        View::new(self.blueprint.plan.space(), self.machine)
    }

    fn virtual_interrupts(&self) -> Result<VirtualInterrupts<'s>, SystemError> {
        let memory = self.memory();
        let word = |name: &str| {
            let offset = self.blueprint.plan.symbol(name)?;
            memory.word32(percpu(0) + offset)
        };
        // Untrusted, as everything that dom0 reports.
        let state = self.info.irq_state;
        let depth = std::mem::offset_of!(IrqState, depth) as u64;
        let running = std::mem::offset_of!(IrqState, running) as u64;
        let words = (
            word("hot_vif"),
            word("hot_vif_pending"),
            memory.word32(state.wrapping_add(depth)),
            memory.word32(state.wrapping_add(running)),
        );
        match words {
            (Some(enabled), Some(pending), Some(depth), Some(running)) => Ok(VirtualInterrupts {
                enabled,
                pending,
                depth,
                running,
            }),
            _ => Err(lacking("hot.o has no hot_vif, or dom0 no interrupt state")),
        }
    }

    fn regions(&self) -> Vec<Region> {
        let space = self.blueprint.plan.space();
        let memory = space.regions().iter();
        let memory = memory.map(|region| region.for_runtime(self.machine.fd()));
        let registers = Region {
            dom0_start: BAR,
            length: BAR_SIZE,
            file_offset: 0,
            fd: self.machine.bar_fd(),
            writable: 1,
        };
        memory.chain([registers]).collect()
    }
}

fn lacking(what: &str) -> SystemError {
    SystemError::Lacking(what.to_owned())
}

/// Starts dom0, probes and opens the device, and lets it receive all addresses' packets.
fn bring_up(
    dom0: &mut Dom0<'_, '_>,
    blueprint: &Blueprint<'_>,
) -> Result<(Driver, Info), SystemError> {
    dom0.boot()?;
    dom0.load(&blueprint.driver_args)?;
    dom0.set_features(&[], &blueprint.lacking)?;
    dom0.open()?;
    dom0.link_wait(10 * SECOND)?;
    dom0.set_receive_mode(ReceiveMode::Promiscuous, &[])?;
    describe(dom0)
}

fn describe(dom0: &mut Dom0<'_, '_>) -> Result<(Driver, Info), SystemError> {
    let info = dom0.info()?;
    let state = irq_state(dom0, &info)?;
    let driver = Driver {
        net_device: info.net_device,
        handler: state.handler,
        irq: info.irq,
        dev_id: state.dev_id,
    };
    Ok((driver, info))
}

fn irq_state(dom0: &Dom0<'_, '_>, info: &Info) -> Result<IrqState, SystemError> {
    let mut bytes = [0; size_of::<IrqState>()];
    let space = dom0.plan().space();
    space
        .machine_range(info.irq_state, bytes.len() as u64)
        .and_then(|at| dom0.machine().read(at, &mut bytes))
        .ok_or_else(|| lacking("dom0's interrupt state is not in its memory"))?;
    Ok(IrqState::from_bytes(&bytes))
}

/// Upcalls by the mailbox.
struct ToDom0<'m> {
    slot: &'m UpcallSlot,
    limits: Limits,
}

impl Upcalls for ToDom0<'_> {
    fn upcall(&mut self, call: &Upcall<'_>) -> Result<(u64, u64), String> {
        // SAFETY: the window is the waiting driver's stack.
        let answer = unsafe { upcall::call(self.slot, call, &self.limits) };
        answer.map_err(|error| error.to_string())
    }
}
