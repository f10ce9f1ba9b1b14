//! Inside the dom0 process: threads, commands, upcalls, and the data of its fault
//! handlers.

use libc::c_int;

use super::enter::{self, EnterError};
use super::host;
use super::job::{self, JobPlace};
use super::trap::{self, Handler};
use super::work::{Local, Work};
use crate::dom0::Failure;
use crate::dom0::clock;
use crate::error::LiveError;
use crate::image::KernelPlan;
use crate::live::emulated;
use crate::memory::{self, Machine, driver_stack};
use crate::transport::command::{Command, FAILED, KernelEnding, OOPS, RETURNED};
use crate::transport::mailbox::{Counter, Mailbox, UpcallSlot};
use crate::transport::wire::NicPort;

/// How often upcall threads poll their slot before they sleep.
const UPCALL_SPIN: u32 = 2_000;

/// Data of signal handlers. Lives as long as the process.
struct Process {
    plan: &'static KernelPlan<'static>,
    machine: &'static Machine,
    mailbox: &'static Mailbox,
    nic: NicPort<'static>,
    works: &'static [Work],
}

/// The whole life of the process.
pub(crate) fn run(
    plan: &KernelPlan<'_>,
    machine: &Machine,
    mailbox: &Mailbox,
    works: &'static [Work],
) -> c_int {
    // SAFETY: this process ends by `_exit` as soon as this function returned,
    // so what it inherited stays until then.
    let (plan, machine, mailbox) = unsafe {
        (
            std::mem::transmute::<&KernelPlan<'_>, &'static KernelPlan<'static>>(plan),
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
    host::start(process.mailbox, process.machine);
    trap::start(process)?;
    enter::attach(0)?;
    clock::watch(process.plan)?;
    for (number, slot) in process.mailbox.upcalls.iter().enumerate().skip(1) {
        std::thread::Builder::new()
            .name(format!("upcalls {number}"))
            .spawn(move || serve_upcalls(number, slot, process))
            .map_err(LiveError::system("starting an upcall thread"))?;
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

    fn perform(&self, command: &Command) -> KernelEnding {
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
                KernelEnding::default()
            }
            Command::Emulate => {
                emulated::perform(&self.site());
                KernelEnding::default()
            }
            Command::SetBar(mode) => match memory::set_bar(mode) {
                Ok(()) => KernelEnding::default(),
                Err(_) => failed(Failure::System),
            },
            Command::Exit => KernelEnding::default(),
        }
    }

    fn site(&self) -> JobPlace {
        JobPlace {
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

fn failed(failure: Failure) -> KernelEnding {
    KernelEnding {
        kind: FAILED,
        result: failure as u64,
        ..KernelEnding::default()
    }
}

fn ending(result: Result<(u64, u64), EnterError>) -> KernelEnding {
    match result {
        Ok((result, result_high)) => KernelEnding {
            kind: RETURNED,
            result,
            result_high,
            ..KernelEnding::default()
        },
        Err(EnterError::Oops(oops)) => KernelEnding {
            kind: OOPS,
            oops: *oops,
            ..KernelEnding::default()
        },
        Err(EnterError::Nested) => failed(Failure::Nested),
        Err(EnterError::NotAttached) => failed(Failure::NotAttached),
        Err(EnterError::TooManyArguments(_)) => failed(Failure::Arguments),
    }
}

fn count_oops(mailbox: &Mailbox, ending: &KernelEnding) {
    if ending.kind == OOPS {
        mailbox.counters.add(Counter::Oopses, 1);
    }
}

/// Thread `number`.
fn serve_upcalls(number: usize, slot: &UpcallSlot, process: &Process) {
    let mailbox = process.mailbox;
    let ready = enter::attach(number).and_then(|()| clock::watch(process.plan));
    if let Err(error) = ready {
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

/// Runs the requested function, with the driver's stack at the driver's addresses.
fn upcall(number: usize, slot: &UpcallSlot) -> KernelEnding {
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
        emulated::trapped_read(offset).unwrap_or_else(|| self.nic.mmio_read(offset))
    }

    fn mmio_write(&self, offset: u32, value: u32) {
        self.mailbox.counters.add(Counter::MmioTraps, 1);
        if emulated::trapped_write(offset, value).is_none() {
            self.nic.mmio_write(offset, value);
        }
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
