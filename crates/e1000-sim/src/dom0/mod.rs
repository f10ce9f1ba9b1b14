//! The dom0 process, and the supervisor's side of talking to it.
//!
//! ```text
//! supervisor            command slot         dom0: thread 0 = CPU 0, obeys
//! hypervisor CPU k      upcall slot k        dom0: thread k, percpu area k
//! ```
//!
//! An oops ends the request it happened in; the threads go on with the next. If dom0
//! hangs or is dead, a wait for it ends with an error.

pub(crate) mod clock;
pub mod enter;
pub mod host;
pub mod interface;
pub mod job;
pub(crate) mod oops;
pub(crate) mod threads;
pub(crate) mod trap;
pub mod work;

use process_lab::process::{self, Child};
use thiserror::Error;

use super::error::LiveError;
use super::image::KernelPlan;
use super::memory::Machine;
use crate::dom0::work::Work;
use crate::memory::view::View;
use crate::transport::command::{Command, OOPS, RETURNED};
use crate::transport::mailbox::Mailbox;
use crate::transport::rendezvous::{Limits, NoAnswer};

/// A running dom0.
pub struct Dom0<'p, 'f> {
    plan: &'p KernelPlan<'f>,
    machine: &'p Machine,
    mailbox: &'p Mailbox,
    child: Child,
    limits: Limits,
}

/// The result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The function's `rax`.
    pub value: u64,
    /// dom0's console output meanwhile.
    pub console: String,
}

/// Why a command has no result.
#[derive(Clone, Debug, Error)]
pub enum CommandError {
    /// dom0 did not answer.
    #[error("{what}: {reason}{}{}", .fate.as_deref().map(|f| format!(" (it {f})")).unwrap_or_default(), tail(.console))]
    NoAnswer {
        /// What was asked.
        what: String,
        /// Whether it ended, or took too long.
        reason: NoAnswer,
        /// How the process ended, if it has.
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
        /// Why it could not.
        failure: Failure,
    },
    /// kernel.o has no such function.
    #[error("kernel.o has no function `{0}`; see crates/e1000-sim/kernel/kernel.h")]
    NoFunction(String),
    /// The function returned an error number.
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
        /// Bytes of the data.
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

/// Why dom0 did not begin a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[repr(u64)]
pub enum Failure {
    /// A work of unknown number, or words that are no command.
    #[error("there is no such command or work; see transport/command.rs")]
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
    /// From the number in a [`KernelEnding`](crate::transport::command::KernelEnding).
    pub(crate) fn from_number(number: u64) -> Failure {
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

impl<'p, 'f> Dom0<'p, 'f> {
    /// Erases dom0's RAM, loads the images and starts the process. To be called before
    /// other threads exist, and when no earlier dom0 or client of it exists.
    pub fn start(
        plan: &'p KernelPlan<'f>,
        machine: &'p Machine,
        mailbox: &'p Mailbox,
        limits: Limits,
    ) -> Result<Dom0<'p, 'f>, LiveError> {
        Dom0::start_with(plan, machine, mailbox, limits, &[])
    }

    /// As [`Dom0::start`], with functions for [`Command::Work`].
    pub fn start_with(
        plan: &'p KernelPlan<'f>,
        machine: &'p Machine,
        mailbox: &'p Mailbox,
        limits: Limits,
        works: &'static [Work],
    ) -> Result<Dom0<'p, 'f>, LiveError> {
        machine.erase_dom0()?;
        plan.load(machine);
        mailbox.command.meet.reset();
        mailbox.upcalls.iter().for_each(|slot| slot.meet.reset());
        let child = process::fork(|| threads::run(plan, machine, mailbox, works))
            .map_err(LiveError::system("starting a process"))?;
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

    /// The process, for signals and /proc.
    pub fn pid(&self) -> i32 {
        self.child.pid()
    }

    /// The objects in it and their addresses.
    pub fn plan(&self) -> &'p KernelPlan<'f> {
        self.plan
    }

    /// The machine that it runs on.
    pub fn machine(&self) -> &'p Machine {
        self.machine
    }

    /// dom0's memory.
    pub fn view(&self) -> View<'p> {
        self.plan.view(self.machine)
    }

    /// What it shares with the supervisor.
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

    /// As [`Dom0::call`], for functions that return a negative error number.
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
        // No answer is expected: the process ends.
        let _ = self.command("exit", Command::Exit);
        self.child.kill();
    }
}
