//! The dom0 process, and the supervisor's side of talking to it.
//!
//! ```text
//! supervisor            command slot         dom0: thread 0 = CPU 0, obeys
//! hypervisor CPU k      upcall slot k        dom0: thread k, percpu area k
//! ```
//!
//! An oops ends the request it happened in; the threads go on with the next. A
//! hanging or dead dom0 is an error to whoever waits for it.

use libc::c_int;
use thiserror::Error;

use super::command::{Command, Ending, FAILED, OOPS, RETURNED};
use super::enter::{self, EnterError};
use super::error::LiveError;
use super::host;
use super::image::Plan;
use super::job::{self, Site};
use super::mailbox::{Counter, Mailbox, UpcallSlot};
use super::memory::{self, Machine, driver_stack};
use super::process::{self, Child};
use super::rendezvous::{Limits, NoAnswer};
use super::trap::{self, Handler};
use super::wire::NicPort;
use super::work::{Local, Work};

/// A running dom0.
pub struct Dom0<'p, 'f> {
    plan: &'p Plan<'f>,
    machine: &'p Machine,
    mailbox: &'p Mailbox,
    child: Child,
    limits: Limits,
}

/// What a command gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The function's `rax`.
    pub value: u64,
    /// What dom0 printed meanwhile.
    pub console: String,
}

/// Why a command gave nothing.
#[derive(Clone, Debug, Error)]
pub enum CommandError {
    /// dom0 did not answer.
    #[error("{what}: {reason}{}{}", .fate.as_deref().map(|f| format!(" (it {f})")).unwrap_or_default(), tail(.console))]
    NoAnswer {
        /// What was asked.
        what: String,
        /// Why.
        reason: NoAnswer,
        /// What became of the process, if it ended.
        fate: Option<String>,
        /// What it printed.
        console: String,
    },
    /// The function was left by a fault.
    #[error("{what}: {report}{}", tail(.console))]
    Oops {
        /// What was asked.
        what: String,
        /// The fault, with names.
        report: String,
        /// What it printed.
        console: String,
    },
    /// dom0 could not begin.
    #[error("{what}: {failure}")]
    Failed {
        /// What was asked.
        what: String,
        /// Why.
        failure: Failure,
    },
    /// kernel.o has no such function.
    #[error("kernel.o has no function `{0}`; see crates/testbed/kernel/kernel.h")]
    NoFunction(String),
    /// The function answered with an error number.
    #[error("{what}: error {errno}{}", tail(.console))]
    Refused {
        /// What was asked.
        what: String,
        /// Negative, as in the kernel.
        errno: i64,
        /// What it printed.
        console: String,
    },
    /// Data by reference does not fit the exchange area.
    #[error("{what}: {length:#x} bytes do not fit the exchange area")]
    TooLarge {
        /// What was asked.
        what: String,
        /// Bytes.
        length: u64,
    },
}

fn tail(console: &str) -> String {
    if console.is_empty() {
        String::new()
    } else {
        format!("\ndom0 printed:\n{console}")
    }
}

/// Why dom0 did not begin with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[repr(u64)]
pub enum Failure {
    /// The number of a work, or words that are no command.
    #[error("there is no such command or work; see live/command.rs")]
    Unknown = 1,
    /// A work or host function entered kernel code from kernel code.
    #[error("the thread is inside kernel code already; return from it first")]
    Nested = 2,
    /// A thread that is no CPU.
    #[error("the thread is no CPU of dom0's; see enter::attach")]
    NotAttached = 3,
    /// Too many arguments.
    #[error("there are too many arguments on the stack")]
    Arguments = 4,
    /// A system call failed.
    #[error("a system call failed in dom0")]
    System = 5,
    /// The upcall's window.
    #[error("the stack window is no part of the CPU's driver stack; see memory::driver_stack")]
    Window = 6,
}

impl Failure {
    /// From the number in an [`Ending`].
    pub(super) fn from_number(number: u64) -> Failure {
        let all = [
            Failure::Nested,
            Failure::NotAttached,
            Failure::Arguments,
            Failure::System,
            Failure::Window,
        ];
        let known = all.into_iter().find(|failure| *failure as u64 == number);
        known.unwrap_or(Failure::Unknown)
    }
}

/// How often upcall threads look at their slot before they sleep.
const UPCALL_SPIN: u32 = 2_000;

impl<'p, 'f> Dom0<'p, 'f> {
    /// Erases dom0's RAM, loads the images and starts the process. Before other
    /// threads exist; no earlier dom0 and no client of it is there.
    ///
    /// # Errors
    /// A system call's.
    pub fn start(
        plan: &'p Plan<'f>,
        machine: &'p Machine,
        mailbox: &'p Mailbox,
        limits: Limits,
    ) -> Result<Dom0<'p, 'f>, LiveError> {
        Dom0::start_with(plan, machine, mailbox, limits, &[])
    }

    /// As [`Dom0::start`], with functions for [`Command::Work`].
    ///
    /// # Errors
    /// A system call's.
    pub fn start_with(
        plan: &'p Plan<'f>,
        machine: &'p Machine,
        mailbox: &'p Mailbox,
        limits: Limits,
        works: &'static [Work],
    ) -> Result<Dom0<'p, 'f>, LiveError> {
        machine.erase_dom0()?;
        plan.load(machine);
        mailbox.command.meet.reset();
        mailbox.upcalls.iter().for_each(|slot| slot.meet.reset());
        let child = process::fork(|| run(plan, machine, mailbox, works))?;
        mailbox.command.meet.enlist(child.pid());
        let slots = mailbox.upcalls.iter();
        slots.for_each(|slot| slot.meet.enlist(child.pid()));
        Ok(Dom0 {
            plan,
            machine,
            mailbox,
            child,
            limits,
        })
    }

    /// The process.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// The plan.
    pub fn plan(&self) -> &'p Plan<'f> {
        self.plan
    }

    /// The machine.
    pub fn machine(&self) -> &'p Machine {
        self.machine
    }

    /// The mailbox.
    pub fn mailbox(&self) -> &'p Mailbox {
        self.mailbox
    }

    /// Changes how long commands may take.
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Whether it runs.
    pub fn is_alive(&self) -> bool {
        self.child.is_alive()
    }

    /// Kills it.
    pub fn kill(&mut self) {
        self.child.kill();
    }

    /// Asks and waits. `what` is for messages.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn command(&mut self, what: &str, command: Command) -> Result<Answer, CommandError> {
        let slot = &self.mailbox.command;
        let mark = self.mailbox.console.mark();
        // SAFETY: the client's turn, see `Rendezvous`.
        let ask = || unsafe { *slot.request.get() = command.encode() };
        // SAFETY: as above.
        let answer = || unsafe { *slot.answer.get() };
        let ending = slot.meet.call(&self.limits, ask, answer);
        let console = self.mailbox.console.since(mark);
        let what = what.to_owned();
        let ending = ending.map_err(|reason| CommandError::NoAnswer {
            what: what.clone(),
            reason,
            fate: self.child.fate(),
            console: console.clone(),
        })?;
        match ending.kind {
            RETURNED => Ok(Answer {
                value: ending.result,
                console,
            }),
            OOPS => Err(CommandError::Oops {
                what,
                report: ending.oops.report(self.plan),
                console,
            }),
            _ => Err(CommandError::Failed {
                what,
                failure: Failure::from_number(ending.result),
            }),
        }
    }

    /// Calls a function of any object by its name, as CPU 0.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn call(&mut self, name: &str, arguments: &[u64]) -> Result<Answer, CommandError> {
        let function = self
            .plan
            .symbol(name)
            .ok_or_else(|| CommandError::NoFunction(name.to_owned()))?;
        let mut six = [0; 6];
        six[..arguments.len()].copy_from_slice(arguments);
        let command = Command::Call {
            function,
            arguments: six,
        };
        self.command(name, command)
    }

    /// As [`Dom0::call`], for functions that answer a negative error number.
    ///
    /// # Errors
    /// [`CommandError`].
    pub fn check(&mut self, name: &str, arguments: &[u64]) -> Result<Answer, CommandError> {
        let answer = self.call(name, arguments)?;
        let errno = answer.value as i64;
        if (-4095..0).contains(&errno) {
            return Err(CommandError::Refused {
                what: name.to_owned(),
                errno,
                console: answer.console,
            });
        }
        Ok(answer)
    }

    /// Ends the process and waits for its end.
    pub fn exit(mut self) {
        // No answer is the answer.
        let _ = self.command("exit", Command::Exit);
        self.child.kill();
    }
}

// ---- In the process --------------------------------------------------------------

/// What signal handlers need. Lives as long as the process.
struct Process {
    plan: &'static Plan<'static>,
    machine: &'static Machine,
    mailbox: &'static Mailbox,
    nic: NicPort<'static>,
    works: &'static [Work],
}

fn run(plan: &Plan<'_>, machine: &Machine, mailbox: &Mailbox, works: &'static [Work]) -> c_int {
    // SAFETY: this process ends by `_exit` as soon as this function returned,
    // so what it inherited stays until then.
    let (plan, machine, mailbox) = unsafe {
        (
            std::mem::transmute::<&Plan<'_>, &'static Plan<'static>>(plan),
            std::mem::transmute::<&Machine, &'static Machine>(machine),
            std::mem::transmute::<&Mailbox, &'static Mailbox>(mailbox),
        )
    };
    let process: &Process = Box::leak(Box::new(Process {
        plan,
        machine,
        mailbox,
        nic: NicPort::new(mailbox, machine, plan.space().dma()),
        works,
    }));
    say_panics(mailbox);
    match prepare(process) {
        Ok(()) => process.obey(),
        Err(error) => {
            let text = format!("dom0 could not start: {error}\n");
            mailbox.console.write(text.as_bytes());
            1
        }
    }
}

/// A host function or thread that panics ends dom0, which its clients notice.
fn say_panics(mailbox: &'static Mailbox) {
    std::panic::set_hook(Box::new(|panic| {
        let text = format!("dom0's host: {panic}\n");
        mailbox.console.write(text.as_bytes());
        // SAFETY: ends the process.
        unsafe { libc::_exit(101) }
    }));
}

fn prepare(process: &'static Process) -> Result<(), LiveError> {
    process.plan.space().map(process.machine)?;
    host::start(process.mailbox);
    trap::start(process)?;
    enter::attach(0)?;
    for (number, slot) in process.mailbox.upcalls.iter().enumerate().skip(1) {
        std::thread::Builder::new()
            .name(format!("upcalls {number}"))
            .spawn(move || serve_upcalls(number, slot, process.mailbox))
            .map_err(|source| LiveError::System {
                what: "starting an upcall thread",
                source,
            })?;
    }
    Ok(())
}

impl Process {
    /// Thread 0.
    fn obey(&self) -> ! {
        let slot = &self.mailbox.command;
        loop {
            slot.meet.serve(0, || {
                self.mailbox.counters.add(Counter::Commands, 1);
                // SAFETY: the server's turn, see `Rendezvous`.
                let command = Command::decode(unsafe { &*slot.request.get() });
                if command == Some(Command::Exit) {
                    // SAFETY: ends the process; there is no answer.
                    unsafe { libc::_exit(0) }
                }
                let ending = command.map_or(failed(Failure::Unknown), |c| self.perform(&c));
                count_oops(self.mailbox, &ending);
                // SAFETY: as above.
                unsafe { *slot.answer.get() = ending };
            });
        }
    }

    fn perform(&self, command: &Command) -> Ending {
        match *command {
            Command::Call {
                function,
                arguments,
            } => {
                // SAFETY: `prepare` came before; the function is the
                // supervisor's choice, which it makes by the plan.
                ending(unsafe { enter::enter_wide(function, arguments, &[]) })
            }
            Command::Work { number, arguments } => match self.works.get(number as usize) {
                Some(work) => ending(work(&self.local(), arguments).map(|value| (value, 0))),
                None => failed(Failure::Unknown),
            },
            Command::Job(job) => {
                job::perform(&job, &self.site());
                Ending::default()
            }
            Command::SetBar(mode) => match memory::set_bar(mode) {
                Ok(()) => Ending::default(),
                Err(_) => failed(Failure::System),
            },
            Command::Exit => Ending::default(),
        }
    }

    fn site(&self) -> Site {
        Site {
            plan: self.plan,
            machine: self.machine,
            mailbox: self.mailbox,
        }
    }

    fn local(&self) -> Local<'_> {
        Local {
            plan: self.plan,
            machine: self.machine,
            mailbox: self.mailbox,
            nic: &self.nic,
        }
    }
}

fn failed(failure: Failure) -> Ending {
    Ending {
        kind: FAILED,
        result: failure as u64,
        ..Ending::default()
    }
}

fn ending(result: Result<(u64, u64), EnterError>) -> Ending {
    match result {
        Ok((result, result_high)) => Ending {
            kind: RETURNED,
            result,
            result_high,
            ..Ending::default()
        },
        Err(EnterError::Oops(oops)) => Ending {
            kind: OOPS,
            oops: *oops,
            ..Ending::default()
        },
        Err(EnterError::Nested) => failed(Failure::Nested),
        Err(EnterError::NotAttached) => failed(Failure::NotAttached),
        Err(EnterError::TooManyArguments(_)) => failed(Failure::Arguments),
    }
}

fn count_oops(mailbox: &Mailbox, ending: &Ending) {
    if ending.kind == OOPS {
        mailbox.counters.add(Counter::Oopses, 1);
    }
}

/// Thread `number`.
fn serve_upcalls(number: usize, slot: &UpcallSlot, mailbox: &Mailbox) {
    if let Err(error) = enter::attach(number) {
        let text = format!("dom0's upcall thread {number}: {error}\n");
        mailbox.console.write(text.as_bytes());
        return;
    }
    loop {
        slot.meet.serve(UPCALL_SPIN, || {
            mailbox.counters.add(Counter::Upcalls, 1);
            let ending = upcall(number, slot);
            count_oops(mailbox, &ending);
            // SAFETY: the server's turn, see `Rendezvous`.
            unsafe { *slot.answer.get() = ending };
        });
    }
}

/// Runs the asked function, with the driver's stack where the driver has it.
fn upcall(number: usize, slot: &UpcallSlot) -> Ending {
    // SAFETY: the server's turn, see `Rendezvous`.
    let request = unsafe { *slot.request.get() };
    let stack = driver_stack(number);
    let length = request.high.wrapping_sub(request.low);
    let inside = request.low >= stack.start && request.high <= stack.end;
    if length != 0 && (!inside || request.low > request.high) {
        return failed(Failure::Window);
    }
    let window = slot.window.get().cast::<u8>();
    let low = request.low as *mut u8;
    // SAFETY: the server's turn; the window was checked to lie in this CPU's
    // driver stack, which `Space::map` mapped and only this thread uses.
    unsafe { std::ptr::copy_nonoverlapping(window, low, length as usize) };
    // SAFETY: `prepare` came before; the function is the hypervisor's choice,
    // which it makes by the plan.
    let result = unsafe { enter::enter_wide(request.function, request.arguments, &request.stack) };
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(low, window, length as usize) };
    ending(result)
}

impl Handler for Process {
    fn is_code(&self, address: u64) -> bool {
        self.plan.is_code(address)
    }

    fn mmio_read(&self, offset: u32) -> u32 {
        self.mailbox.counters.add(Counter::MmioTraps, 1);
        self.nic.mmio_read(offset)
    }

    fn mmio_write(&self, offset: u32, value: u32) {
        self.mailbox.counters.add(Counter::MmioTraps, 1);
        self.nic.mmio_write(offset, value);
    }

    fn port_read(&self, port: u16, size: u32) -> Option<u32> {
        let offset = port_offset(port)?;
        self.mailbox.counters.add(Counter::PortTraps, 1);
        self.nic.io_read(offset, size)
    }

    fn port_write(&self, port: u16, size: u32, value: u32) -> Option<()> {
        let offset = port_offset(port)?;
        self.mailbox.counters.add(Counter::PortTraps, 1);
        self.nic.io_write(offset, size, value)
    }

    fn warn(&self, rip: u64) -> bool {
        let Some((_, line)) = self.plan.warning_at(rip) else {
            return false;
        };
        self.mailbox.counters.add(Counter::Warnings, 1);
        let place = self.plan.describe(rip);
        let text = format!("<4> WARNING in {place}, line {line}\n");
        self.mailbox.console.write(text.as_bytes());
        true
    }

    fn abandon(&self) {
        self.mailbox.abandon();
    }
}

fn port_offset(port: u16) -> Option<u32> {
    let offset = port.wrapping_sub(memory::PORTS);
    (offset < memory::PORTS_SIZE).then_some(u32::from(offset))
}
