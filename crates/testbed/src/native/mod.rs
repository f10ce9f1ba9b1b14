//! The native worker: the unmodified module at dom0's addresses.
//!
//! Nothing of the runtime takes part. Driver code runs on the stack block's
//! stack; `enter` goes there and back, stubs come to [`import_entry`]:
//!
//! ```text
//! host's stack                     driver stack
//! enter's frame        ─────────>  arguments 7 on: zeroes
//!                                  return to .Lreturned
//!                                  ... call an import: +0 number, +8 site
//! native_import        <─────────
//! ```
//!
//! What the processor refuses comes as a signal: a fault ends the run, a WARN's
//! `ud2` and port instructions are performed and skipped.

use std::arch::global_asm;
use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{c_int, c_void, siginfo_t, ucontext_t};

use crate::decode;
use crate::dom0::{Access, AddressSpace, KERNEL, PAGE, PERCPU, STACK, STACK_BLOCK, Shared};
use crate::error::Error;
use crate::model::{Call, Recorder};
use crate::signals;
use crate::stock::{Stock, thunk_register};
use crate::trace::{Channel, Ending, Outcome, Request};
use crate::worker::Machine;

/// Registers on their way between host and driver. One a process, for assembly
/// finds it by name; a worker has one thread.
#[repr(C)]
#[derive(Clone, Copy)]
struct Context {
    host_rsp: u64,
    driver_rsp: u64,
    /// `rdi rsi rdx rcx r8 r9`.
    arguments: [u64; 6],
    r10: u64,
    r11: u64,
    rax: u64,
    flags: u64,
    entry: u64,
    number: u64,
}

struct Cell(UnsafeCell<Context>);

// SAFETY: used by the one thread of a native worker, never at the same time
// from two places: assembly and Rust code take turns.
unsafe impl Sync for Cell {}

static CONTEXT: Cell = Cell(UnsafeCell::new(Context {
    host_rsp: 0,
    driver_rsp: 0,
    arguments: [0; 6],
    r10: 0,
    r11: 0,
    rax: 0,
    flags: 0,
    entry: 0,
    number: 0,
}));

/// The run that signal handlers and imports belong to.
static RUN: AtomicPtr<Run<'static>> = AtomicPtr::new(std::ptr::null_mut());

const _: () = assert!(
    offset_of!(Context, driver_rsp) == 8
        && offset_of!(Context, arguments) == 16
        && offset_of!(Context, r10) == 64
        && offset_of!(Context, rax) == 80
        && offset_of!(Context, flags) == 88
        && offset_of!(Context, entry) == 96
        && offset_of!(Context, number) == 104
);

global_asm!(
    ".text",
    // u64 enter(void): 0 returned, 1 unwound.
    ".balign 16",
    ".globl twin_testbed_enter",
    "twin_testbed_enter:",
    "    pushq %rbp",
    "    pushq %rbx",
    "    pushq %r12",
    "    pushq %r13",
    "    pushq %r14",
    "    pushq %r15",
    "    subq  $8, %rsp",
    "    movq  %rsp, {c}+0(%rip)",
    "    xorl  %ebx, %ebx",
    "    xorl  %ebp, %ebp",
    "    xorl  %r12d, %r12d",
    "    xorl  %r13d, %r13d",
    "    xorl  %r14d, %r14d",
    "    xorl  %r15d, %r15d",
    "    movq  {c}+8(%rip), %rsp",
    "    leaq  .Ltwin_testbed_returned(%rip), %rax",
    "    pushq %rax",
    "    pushq {c}+96(%rip)",
    "    jmp   .Ltwin_testbed_go",
    // An import's stub: +0 number, +8 site. Everything is kept.
    ".balign 16",
    ".globl twin_testbed_import_entry",
    "twin_testbed_import_entry:",
    "    popq  {c}+104(%rip)",
    "    pushfq",
    "    popq  {c}+88(%rip)",
    "    movq  %rdi, {c}+16(%rip)",
    "    movq  %rsi, {c}+24(%rip)",
    "    movq  %rdx, {c}+32(%rip)",
    "    movq  %rcx, {c}+40(%rip)",
    "    movq  %r8, {c}+48(%rip)",
    "    movq  %r9, {c}+56(%rip)",
    "    movq  %r10, {c}+64(%rip)",
    "    movq  %r11, {c}+72(%rip)",
    "    movq  %rax, {c}+80(%rip)",
    "    movq  %rsp, {c}+8(%rip)",
    "    movq  {c}+0(%rip), %rsp",
    "    cld",
    "    leaq  {c}(%rip), %rdi",
    "    call  {import}",
    "    testl %eax, %eax",
    "    jnz   twin_testbed_unwind",
    "    movq  {c}+8(%rip), %rsp",
    // To the driver: registers from the context, then to what is on its stack.
    // Single steps, if asked for, go on from here.
    ".globl twin_testbed_resume_start",
    "twin_testbed_resume_start:",
    ".Ltwin_testbed_go:",
    "    pushq {c}+88(%rip)",
    "    popfq",
    "    movq  {c}+16(%rip), %rdi",
    "    movq  {c}+24(%rip), %rsi",
    "    movq  {c}+32(%rip), %rdx",
    "    movq  {c}+40(%rip), %rcx",
    "    movq  {c}+48(%rip), %r8",
    "    movq  {c}+56(%rip), %r9",
    "    movq  {c}+64(%rip), %r10",
    "    movq  {c}+72(%rip), %r11",
    "    movq  {c}+80(%rip), %rax",
    "    ret",
    ".globl twin_testbed_resume_end",
    "twin_testbed_resume_end:",
    ".Ltwin_testbed_returned:",
    "    movq  %rax, {c}+80(%rip)",
    "    xorl  %eax, %eax",
    "    jmp   .Ltwin_testbed_leave",
    ".globl twin_testbed_unwind",
    "twin_testbed_unwind:",
    "    movl  $1, %eax",
    ".Ltwin_testbed_leave:",
    "    movq  {c}+0(%rip), %rsp",
    "    cld",
    "    addq  $8, %rsp",
    "    popq  %r15",
    "    popq  %r14",
    "    popq  %r13",
    "    popq  %r12",
    "    popq  %rbx",
    "    popq  %rbp",
    "    ret",
    c = sym CONTEXT,
    import = sym native_import,
    options(att_syntax)
);

unsafe extern "C" {
    #[link_name = "twin_testbed_enter"]
    fn enter() -> u64;
    #[link_name = "twin_testbed_import_entry"]
    fn import_entry_code();
    #[link_name = "twin_testbed_unwind"]
    fn unwind();
    #[link_name = "twin_testbed_resume_start"]
    fn resume_start();
    #[link_name = "twin_testbed_resume_end"]
    fn resume_end();
}

/// Where the stubs of the kernel region go.
pub fn import_entry() -> u64 {
    import_entry_code as *const () as u64
}

/// Flags that a call leaves: nothing may depend on them.
const GARBAGE_FLAGS: u64 = 0x8d7;
const TRAP_FLAG: u64 = 0x100;

/// The run in progress.
struct Run<'w> {
    machine: &'w Native<'w>,
    recorder: Recorder<'w>,
    step: bool,
    coverage: (*mut u8, usize),
    fault: Option<Outcome>,
}

/// The native worker's machine.
pub struct Native<'f> {
    stock: &'f Stock<'f>,
}

fn map_at(
    address: u64,
    length: u64,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: u64,
) -> Result<(), Error> {
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: with FIXED_NOREPLACE nothing that exists is replaced.
    let at = unsafe {
        libc::mmap(
            address as *mut c_void,
            length as usize,
            protection,
            flags,
            fd,
            offset as libc::off_t,
        )
    };
    if at as u64 == address {
        Ok(())
    } else {
        Err(Error::last("mapping dom0's memory"))
    }
}

impl<'f> Native<'f> {
    /// Maps dom0's memory at its addresses, and a driver stack. For a process
    /// that does nothing else.
    ///
    /// # Errors
    /// A system call's.
    pub fn new(stock: &'f Stock<'f>, memory: &Shared) -> Result<Native<'f>, Error> {
        for region in stock.space.regions() {
            let protection = match region.access {
                Access::Code => libc::PROT_READ | libc::PROT_EXEC,
                Access::ReadOnly => libc::PROT_READ,
                Access::Writable => libc::PROT_READ | libc::PROT_WRITE,
            };
            map_at(
                region.start,
                region.length,
                protection,
                libc::MAP_SHARED,
                memory.fd(),
                region.offset,
            )?;
        }
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        map_at(
            STACK.0,
            STACK.1 - STACK.0,
            libc::PROT_READ | libc::PROT_WRITE,
            anonymous,
            -1,
            0,
        )?;
        const ARCH_SET_GS: c_int = 0x1001;
        // SAFETY: Rust and the C library use %fs; %gs is nobody's.
        if unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_SET_GS, PERCPU) } != 0 {
            return Err(Error::last("setting the base of %gs"));
        }
        signals::alternate_stack()?;
        for signal in [
            libc::SIGSEGV,
            libc::SIGBUS,
            libc::SIGILL,
            libc::SIGFPE,
            libc::SIGTRAP,
            libc::SIGPROF,
        ] {
            signals::handle(signal, on_signal)?;
        }
        Ok(Native { stock })
    }
}

impl Machine for Native<'_> {
    fn run(&mut self, memory: &mut Shared, channel: &mut Channel) -> Outcome {
        let request = channel.request();
        let coverage = channel.coverage_memory();
        clear_stack();
        let space: &AddressSpace = &self.stock.space;
        let recorder = Recorder::new(space, memory, channel, request);
        let mut run = Run {
            machine: self,
            recorder,
            step: request.step != 0,
            coverage,
            fault: None,
        };
        prepare(&request, run.step);
        RUN.store((&raw mut run).cast(), Ordering::SeqCst);
        signals::arm_timer(request.time_budget);
        // SAFETY: the context is prepared, dom0 is mapped, and faults end in
        // `unwind`; the function is the driver's, which reaches dom0's memory
        // and its stack as long as its pointers are right. Wild ones are random
        // 64-bit words, which practically never hit the host's mappings.
        let unwound = unsafe { enter() };
        signals::arm_timer(0);
        RUN.store(std::ptr::null_mut(), Ordering::SeqCst);
        // SAFETY: the driver is left.
        let result = unsafe { (*CONTEXT.0.get()).rax };
        let returned = Outcome {
            ending: Ending::Returned as u64,
            result,
            ..Outcome::default()
        };
        let unwound_by = run.fault.or(run.recorder.ended()).unwrap_or_default();
        let mut outcome = if unwound == 0 { returned } else { unwound_by };
        outcome.events = run.recorder.events();
        outcome
    }
}

fn clear_stack() {
    let (low, high) = STACK;
    // SAFETY: the driver stack is mapped here and nobody runs on it.
    unsafe { std::ptr::write_bytes(low as *mut u8, 0, (high - low) as usize) };
}

fn prepare(request: &Request, step: bool) {
    let context = Context {
        host_rsp: 0,
        driver_rsp: STACK.1 - twin_abi::stack::INCOMING_ARGS as u64,
        arguments: request.arguments,
        r10: 0,
        r11: 0,
        rax: 0,
        flags: 0x202 | if step { TRAP_FLAG } else { 0 },
        entry: request.function,
        number: 0,
    };
    // SAFETY: no driver code runs, so the context is nobody's.
    unsafe { *CONTEXT.0.get() = context };
}

/// Called by the stubs' code, on the host's stack. Not 0: the run ends.
extern "C" fn native_import(context: &mut Context) -> c_int {
    // SAFETY: set by `run`, which is waiting in `enter`.
    let run = unsafe { &mut *RUN.load(Ordering::SeqCst) };
    // SAFETY: the driver called, so its stack holds the return address.
    let site = unsafe { *(context.driver_rsp as *const u64) };
    let call = Call {
        number: context.number as u32,
        registers: context.arguments,
        stack: context.driver_rsp + 8,
        site,
    };
    let Some(answer) = run.recorder.call(&call) else {
        return 1;
    };
    let trap = if run.step { TRAP_FLAG } else { 0 };
    if answer.clobbers {
        context.arguments = answer.garbage;
        context.r10 = answer.garbage[0] ^ answer.garbage[1];
        context.r11 = answer.garbage[2] ^ answer.garbage[3];
        context.rax = answer.result;
        context.flags = GARBAGE_FLAGS | 0x200;
    }
    context.flags = context.flags & !TRAP_FLAG | trap;
    0
}

extern "C" fn on_signal(signal: c_int, _: *mut siginfo_t, context: *mut c_void) {
    let run = RUN.load(Ordering::SeqCst);
    // SAFETY: the kernel gives a handler the interrupted context.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    if run.is_null() {
        if signal != libc::SIGPROF && signal != libc::SIGTRAP {
            signals::give_up(signal);
        }
        registers[libc::REG_EFL as usize] &= !(TRAP_FLAG as i64);
        return;
    }
    // SAFETY: set by `run`, which is waiting in `enter`.
    let run = unsafe { &mut *run };
    match signal {
        libc::SIGTRAP => run.stepped(registers),
        libc::SIGPROF => run.timed_out(registers),
        _ => run.faulted(signal, registers),
    }
}

type Registers = [libc::greg_t; 23];

fn get(registers: &Registers, register: c_int) -> u64 {
    registers[register as usize] as u64
}

impl Run<'_> {
    fn is_driver_code(&self, rip: u64) -> bool {
        self.machine.stock.code().contains(&rip)
    }

    /// One instruction was executed under single step.
    fn stepped(&mut self, registers: &mut Registers) {
        let rip = get(registers, libc::REG_RIP);
        let code = self.machine.stock.code();
        let (coverage, length) = self.coverage;
        if code.contains(&rip) && ((rip - code.start) as usize) < length {
            // SAFETY: checked to be inside the coverage bytes, which this
            // process alone writes.
            unsafe { *coverage.add((rip - code.start) as usize) = 1 };
            return;
        }
        let resuming = resume_start as *const () as u64..resume_end as *const () as u64;
        let in_stub = rip.wrapping_sub(KERNEL) < 16 * PAGE;
        if !resuming.contains(&rip) && !in_stub {
            registers[libc::REG_EFL as usize] &= !(TRAP_FLAG as i64);
        }
    }

    fn timed_out(&mut self, registers: &mut Registers) {
        let rip = get(registers, libc::REG_RIP);
        if self.is_driver_code(rip) {
            self.end(
                registers,
                Outcome {
                    ending: Ending::TimeBudget as u64,
                    rip,
                    ..Outcome::default()
                },
            );
        }
    }

    fn end(&mut self, registers: &mut Registers, outcome: Outcome) {
        self.fault = Some(outcome);
        registers[libc::REG_RIP as usize] = unwind as *const () as i64;
        registers[libc::REG_EFL as usize] &= !(TRAP_FLAG as i64);
        // SAFETY: `enter` set it.
        registers[libc::REG_RSP as usize] = unsafe { (*CONTEXT.0.get()).host_rsp } as i64;
    }

    fn faulted(&mut self, signal: c_int, registers: &mut Registers) {
        let rip = get(registers, libc::REG_RIP);
        let rsp = get(registers, libc::REG_RSP);
        if rsp.wrapping_sub(STACK_BLOCK) >= twin_abi::stack::BLOCK {
            signals::give_up(signal);
        }
        if let Some(outcome) = self.outcome(signal, registers, rip, rsp) {
            self.end(registers, outcome);
        }
    }

    /// How the run ends; nothing if it goes on.
    fn outcome(
        &mut self,
        signal: c_int,
        registers: &mut Registers,
        rip: u64,
        rsp: u64,
    ) -> Option<Outcome> {
        if !self.is_driver_code(rip) {
            let target = thunk_register(rip).map_or(rip, |name| get(registers, decode::greg(name)));
            // SAFETY: `rsp` points into the driver stack (checked by the
            // caller) or its guard, which a call cannot have reached.
            let site = unsafe { *(rsp as *const u64) };
            return Some(Outcome {
                ending: Ending::BadCall as u64,
                address: target,
                rip: site,
                after: 1,
                ..Outcome::default()
            });
        }
        let code = self.code_at(rip);
        if signal == libc::SIGILL {
            return self.illegal(registers, rip, &code);
        }
        if let Some(port) = decode::port(&code) {
            return self.port(registers, rip, &port);
        }
        const PAGE_FAULT: u64 = 14;
        let trap = get(registers, libc::REG_TRAPNO);
        let address = match trap {
            PAGE_FAULT => get(registers, libc::REG_CR2),
            _ => decode::address(&code, rip, PERCPU, |register| get(registers, register))
                .unwrap_or(0),
        };
        Some(Outcome {
            ending: Ending::Fault as u64,
            address,
            rip,
            detail: trap,
            ..Outcome::default()
        })
    }

    fn code_at(&self, rip: u64) -> Vec<u8> {
        let end = self.machine.stock.code().end.min(rip + 15);
        // SAFETY: the range is mapped code.
        unsafe { std::slice::from_raw_parts(rip as *const u8, (end - rip) as usize) }.to_vec()
    }

    /// A `ud2`: a WARN is skipped as the kernel's handler does.
    fn illegal(&mut self, registers: &mut Registers, rip: u64, code: &[u8]) -> Option<Outcome> {
        const UD2: [u8; 2] = [0x0f, 0x0b];
        if code.starts_with(&UD2) && self.machine.stock.warns.contains(&rip) {
            registers[libc::REG_RIP as usize] += UD2.len() as i64;
            self.recorder.warn(rip + UD2.len() as u64);
            return None;
        }
        let ending = if code.starts_with(&UD2) {
            Ending::Bug
        } else {
            Ending::Broken
        };
        Some(Outcome {
            ending: ending as u64,
            rip,
            ..Outcome::default()
        })
    }

    /// A port instruction, which user space may not execute: perform it.
    fn port(
        &mut self,
        registers: &mut Registers,
        rip: u64,
        access: &decode::Port,
    ) -> Option<Outcome> {
        let port = access
            .immediate
            .unwrap_or(get(registers, libc::REG_RDX) & 0xffff);
        if !crate::policy::allows(port, access.size) {
            return Some(Outcome {
                ending: Ending::Port as u64,
                address: port,
                rip,
                ..Outcome::default()
            });
        }
        let mask = u64::MAX >> (64 - 8 * access.size);
        let rax = get(registers, libc::REG_RAX);
        if access.output {
            self.recorder.port_out(port, access.size, rax & mask);
        } else {
            let value = self.recorder.port_in(port, access.size);
            let kept = if access.size == 4 { 0 } else { rax & !mask };
            registers[libc::REG_RAX as usize] = (kept | u64::from(value) & mask) as i64;
        }
        registers[libc::REG_RIP as usize] = (rip + access.length) as i64;
        None
    }
}
