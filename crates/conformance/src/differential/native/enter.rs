//! From the host's stack to the driver's and back; stubs of the kernel region
//! come to [`import_entry`].
//! (`crates/process-lab/src/enter.rs` says how this entry differs from the others.)
//!
//! ```text
//! host's stack                     driver stack
//! enter's frame        ─────────>  arguments 7 on: zeroes
//!                                  return to .Lreturned
//!                                  ... call an import: +0 number, +8 site
//! native_import        <─────────
//! ```

use std::arch::global_asm;
use std::cell::UnsafeCell;
use std::mem::offset_of;
use std::sync::atomic::Ordering;

use libc::c_int;
use process_lab::address_space::START_RSP;

use super::RUN;
use crate::differential::model::Call;
use crate::differential::trace::Request;

/// Registers passed between host and driver. One in a process, because assembly finds
/// it by name; a worker has one thread.
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
    process_lab::push_host_frame!(),
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
    // To the driver: registers from the context, then to the address on its stack.
    // Single steps, if requested, go on from here.
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
    process_lab::pop_host_frame!(),
    "    ret",
    c = sym CONTEXT,
    import = sym native_import,
    options(att_syntax)
);

unsafe extern "C" {
    #[link_name = "twin_testbed_enter"]
    pub(super) fn enter() -> u64;
    #[link_name = "twin_testbed_import_entry"]
    fn import_entry_code();
    #[link_name = "twin_testbed_unwind"]
    pub(super) fn unwind();
    #[link_name = "twin_testbed_resume_start"]
    pub(super) fn resume_start();
    #[link_name = "twin_testbed_resume_end"]
    pub(super) fn resume_end();
}

/// Where the stubs of the kernel region go.
pub fn import_entry() -> u64 {
    import_entry_code as *const () as u64
}

/// Flags after a call: nothing may depend on them.
const GARBAGE_FLAGS: u64 = 0x8d7;
pub(super) const TRAP_FLAG: u64 = 0x100;

pub(super) fn prepare(request: &Request, step: bool) {
    let context = Context {
        host_rsp: 0,
        driver_rsp: START_RSP,
        arguments: request.arguments,
        r10: 0,
        r11: 0,
        rax: 0,
        flags: 0x202 | if step { TRAP_FLAG } else { 0 },
        entry: request.function,
        number: 0,
    };
    // SAFETY: no driver code runs, so nothing else uses the context.
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

/// The result of the function that was entered.
///
/// # Safety
/// No driver code runs.
pub(super) unsafe fn result() -> u64 {
    // SAFETY: the caller's promise: nothing else uses the context.
    unsafe { (*CONTEXT.0.get()).rax }
}

/// The host's stack pointer, to unwind to.
///
/// # Safety
/// Driver code was entered.
pub(super) unsafe fn host_rsp() -> u64 {
    // SAFETY: the caller's promise: `enter` set it.
    unsafe { (*CONTEXT.0.get()).host_rsp }
}
