//! Kernel code on an ordinary thread.
//! (`crates/process-lab/src/enter.rs` says how this entry differs from the others.)
//!
//! ```text
//! host's stack                        kernel stack of the CPU, in the direct map
//! registers that calls keep ───────>  arguments 7 on
//!                                     return address
//!                                     ... kernel code ...
//! <── returned: rax, rdx
//! <── oops: the fault's handler resumes at `unwind`
//! ```
//!
//! `%gs` is the CPU's percpu area, which nothing in Rust or the C library uses.
//! A fault in kernel code that [`super::trap`] cannot perform is an oops: the
//! kernel stack is abandoned, with whatever locks the code held, and [`enter`]
//! returns it as an error.

use std::arch::global_asm;
use std::cell::{Cell, UnsafeCell};
use std::mem::offset_of;
use std::ops::Range;

use libc::{c_int, greg_t};
use process_lab::segments;
use process_lab::signals;
use thiserror::Error;

use super::oops::{Oops, Words};
use crate::error::LiveError;
use crate::memory;
use crate::transport::mailbox::STACK_ARGUMENTS;

/// Registers passed in and out, at offsets that the assembly uses.
#[repr(C)]
struct Context {
    host_rsp: u64,
    kernel_rsp: u64,
    function: u64,
    arguments: [u64; 6],
    rax: u64,
    rdx: u64,
}

const _: () = assert!(
    offset_of!(Context, host_rsp) == 0
        && offset_of!(Context, kernel_rsp) == 8
        && offset_of!(Context, function) == 16
        && offset_of!(Context, arguments) == 24
        && offset_of!(Context, rax) == 72
        && offset_of!(Context, rdx) == 80
);

global_asm!(
    ".text",
    // u64 enter(struct context *): 0 returned, 1 unwound.
    ".balign 16",
    ".globl twin_live_enter",
    "twin_live_enter:",
    process_lab::push_host_frame!(),
    "    movq  %rdi, %rbx",
    "    movq  %rsp, 0(%rbx)",
    "    movq  8(%rbx), %rsp",
    "    movq  24(%rbx), %rdi",
    "    movq  32(%rbx), %rsi",
    "    movq  40(%rbx), %rdx",
    "    movq  48(%rbx), %rcx",
    "    movq  56(%rbx), %r8",
    "    movq  64(%rbx), %r9",
    "    xorl  %eax, %eax",
    "    xorl  %ebp, %ebp",
    "    call  *16(%rbx)",
    "    movq  %rax, 72(%rbx)",
    "    movq  %rdx, 80(%rbx)",
    "    xorl  %eax, %eax",
    "    jmp   .Ltwin_live_leave",
    // Resumed here by a fault's handler, rdi = context.
    ".globl twin_live_unwind",
    "twin_live_unwind:",
    "    movq  %rdi, %rbx",
    "    movl  $1, %eax",
    ".Ltwin_live_leave:",
    "    movq  0(%rbx), %rsp",
    "    cld",
    process_lab::pop_host_frame!(),
    "    ret",
    options(att_syntax)
);

unsafe extern "C" {
    #[link_name = "twin_live_enter"]
    fn enter_code(context: *mut Context) -> u64;
    #[link_name = "twin_live_unwind"]
    fn unwind_code();
}

/// Why kernel code has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnterError {
    /// It was left by a fault.
    #[error("oops: {0}")]
    Oops(Box<Oops>),
    /// This thread is in kernel code: a host function may not enter it again.
    #[error("this thread is inside kernel code already; return from it first")]
    Nested,
    /// The thread is no CPU of dom0's.
    #[error("this thread is no dom0 CPU; call enter::attach first")]
    NotAttached,
    /// Too many arguments.
    #[error("{0} stack arguments, but there are at most {STACK_ARGUMENTS}")]
    TooManyArguments(usize),
}

/// A thread that is a CPU of dom0's. Owned by the thread itself; its signal
/// handlers use it as well.
struct Cpu {
    stack: Range<u64>,
    context: UnsafeCell<Context>,
    inside: Cell<bool>,
    /// How often this thread has gone inside.
    entries: Cell<u64>,
    oops: Cell<Oops>,
    last_words: Cell<Words>,
}

thread_local! {
    static CPU: Cell<*const Cpu> = const { Cell::new(std::ptr::null()) };
}

/// Makes the calling thread dom0's CPU `number`: `%gs`, kernel stack, a stack
/// for signal handlers. dom0's memory is mapped. For the thread's whole life.
pub fn attach(number: usize) -> Result<(), LiveError> {
    segments::set_gs(memory::percpu(number)).map_err(LiveError::system(segments::SETTING_GS))?;
    signals::alternate_stack().map_err(|_| LiveError::last("making a signal stack"))?;
    let cpu = Box::leak(Box::new(Cpu {
        stack: memory::kernel_stack(number),
        context: UnsafeCell::new(Context {
            host_rsp: 0,
            kernel_rsp: 0,
            function: 0,
            arguments: [0; 6],
            rax: 0,
            rdx: 0,
        }),
        inside: Cell::new(false),
        entries: Cell::new(0),
        oops: Cell::new(Oops::default()),
        last_words: Cell::new(Words::default()),
    }));
    CPU.set(cpu);
    Ok(())
}

/// The calling thread's CPU.
fn this_cpu() -> Option<&'static Cpu> {
    // SAFETY: null, or leaked by `attach` on this very thread.
    unsafe { CPU.get().as_ref() }
}

/// Calls the kernel function at `function` and gives its `rax`.
///
/// # Safety
/// dom0's memory is mapped here, [`super::trap::start`] was called, and the
/// function is dom0's: it changes dom0's memory only.
pub unsafe fn enter(function: u64, arguments: [u64; 6]) -> Result<u64, EnterError> {
    // SAFETY: the caller's promise.
    unsafe { enter_wide(function, arguments, &[]) }.map(|(rax, _)| rax)
}

/// As [`enter`], with arguments on the stack, and gives `(rax, rdx)`.
///
/// # Safety
/// As for [`enter`].
pub unsafe fn enter_wide(
    function: u64,
    arguments: [u64; 6],
    stack: &[u64],
) -> Result<(u64, u64), EnterError> {
    let cpu = this_cpu().ok_or(EnterError::NotAttached)?;
    if stack.len() > STACK_ARGUMENTS {
        return Err(EnterError::TooManyArguments(stack.len()));
    }
    if cpu.inside.replace(true) {
        return Err(EnterError::Nested);
    }
    cpu.entries.set(cpu.entries.get() + 1);
    let kernel_rsp = cpu.stack.end - (STACK_ARGUMENTS * 8) as u64;
    // SAFETY: this thread is not inside, so nothing uses the kernel stack; the
    // words are the stack's topmost.
    unsafe {
        std::ptr::copy_nonoverlapping(stack.as_ptr(), kernel_rsp as *mut u64, stack.len());
    }
    let context = cpu.context.get();
    // SAFETY: this thread is not inside, so nothing else uses the context. The
    // function is the caller's responsibility; its faults end in `unwind`.
    let unwound = unsafe {
        (*context).kernel_rsp = kernel_rsp;
        (*context).function = function;
        (*context).arguments = arguments;
        enter_code(context)
    };
    cpu.inside.set(false);
    if unwound != 0 {
        return Err(EnterError::Oops(Box::new(cpu.oops.get())));
    }
    // SAFETY: left.
    unsafe { Ok(((*context).rax, (*context).rdx)) }
}

/// Whether this thread is inside kernel code or a function called by it.
pub fn is_inside() -> bool {
    this_cpu().is_some_and(|cpu| cpu.inside.get())
}

/// The number of the entry, from 1, that this thread is inside of.
pub(crate) fn entered() -> Option<u64> {
    let cpu = this_cpu().filter(|cpu| cpu.inside.get())?;
    Some(cpu.entries.get())
}

/// For a fault's handler on a thread that is inside: records the oops and lets
/// the thread resume where `enter` returns it.
pub(crate) fn unwind(
    signal: c_int,
    address: u64,
    registers: &mut [greg_t; 23],
    is_code: impl Fn(u64) -> bool,
) {
    let Some(cpu) = this_cpu() else {
        signals::give_up(signal);
    };
    let mut oops = Oops::of_fault(signal, address, registers, &cpu.stack, is_code);
    oops.last_words = cpu.last_words.take();
    cpu.oops.set(oops);
    let context = cpu.context.get();
    registers[libc::REG_RIP as usize] = unwind_code as *const () as greg_t;
    registers[libc::REG_RDI as usize] = context as greg_t;
    // SAFETY: `enter_code` set it, and waits.
    registers[libc::REG_RSP as usize] = unsafe { (*context).host_rsp } as greg_t;
}

/// For a host function on a thread that is inside: the kernel cannot go on.
pub(crate) fn give_up_kernel(last_words: &[u8]) -> ! {
    match this_cpu() {
        Some(cpu) if cpu.inside.get() => cpu.last_words.set(Words::new(last_words)),
        _ => std::process::abort(),
    }
    // SAFETY: raises SIGILL, whose handler leaves kernel code.
    unsafe { std::arch::asm!("ud2", options(noreturn)) }
}
