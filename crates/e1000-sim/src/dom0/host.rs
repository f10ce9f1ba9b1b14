//! The functions that kernel.o imports from its host: `host_*` of
//! `crates/e1000-sim/kernel/kernel.h`, which documents each. They run on dom0's
//! threads, on kernel stacks, inside kernel code.

use std::sync::OnceLock;

use super::enter;
use crate::memory::{self, Machine};
use crate::transport::mailbox::Mailbox;

static MAILBOX: OnceLock<&'static Mailbox> = OnceLock::new();
static MACHINE: OnceLock<&'static Machine> = OnceLock::new();

/// Gives the functions their mailbox and machine. Once in a process.
pub(crate) fn start(mailbox: &'static Mailbox, machine: &'static Machine) {
    let _ = MAILBOX.set(mailbox);
    let _ = MACHINE.set(machine);
}

/// The address of a host function, for [`crate::image::KernelPlan::new`].
pub fn address(name: &str) -> Option<u64> {
    Some(match name {
        "host_console" => console as *const () as u64,
        "host_config_read" => config_read as *const () as u64,
        "host_config_write" => config_write as *const () as u64,
        "host_advance" => advance as *const () as u64,
        "host_interrupt_pending" => interrupt_pending as *const () as u64,
        "host_guest_read" => guest_read as *const () as u64,
        "host_idle" => idle as *const () as u64,
        "host_fatal" => fatal as *const () as u64,
        "host_event" => event as *const () as u64,
        _ => return None,
    })
}

fn mailbox() -> &'static Mailbox {
    MAILBOX.get().expect("kernel code runs after start")
}

/// # Safety
/// `text` has `length` bytes that stay for a while.
unsafe fn bytes<'t>(text: *const u8, length: u64) -> &'t [u8] {
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(text, length as usize) }
}

/// # Safety
/// Called by kernel.o, with text of that length.
unsafe extern "C" fn console(level: u32, text: *const u8, length: u64) {
    let mut line = format!("<{level}> ").into_bytes();
    // SAFETY: kernel.h's promise.
    line.extend_from_slice(unsafe { bytes(text, length) });
    line.push(b'\n');
    mailbox().console.write(&line);
}

/// # Safety
/// As `console`.
unsafe extern "C" fn fatal(text: *const u8, length: u64) -> ! {
    // SAFETY: kernel.h's promise.
    enter::give_up_kernel(unsafe { bytes(text, length) })
}

extern "C" fn config_read(offset: u32, size: u32) -> u32 {
    mailbox().device().config_read(offset, size)
}

extern "C" fn config_write(offset: u32, size: u32, value: u32) {
    mailbox().device().config_write(offset, size, value);
}

extern "C" fn advance(ns: u64) {
    mailbox().device().tick(ns);
}

extern "C" fn interrupt_pending(irq: u32) -> u32 {
    let ours = irq == memory::IRQ && mailbox().dom0_has_interrupts();
    u32::from(ours && mailbox().device().interrupt_line())
}

/// # Safety
/// Called by kernel.o, with room for that many bytes.
unsafe extern "C" fn guest_read(to: *mut u8, machine: u64, length: u32) -> u32 {
    let from = MACHINE.get().and_then(|all| all.at(machine, length.into()));
    let Some(from) = from else { return 0 };
    // SAFETY: `at` checked the source, kernel.h has promised the room; guests may change the
    // bytes, which are copied once.
    unsafe { std::ptr::copy_nonoverlapping(from, to, length as usize) };
    1
}

extern "C" fn idle() {
    std::thread::yield_now();
}

extern "C" fn event(event: u32, argument: u64) {
    mailbox().events.note(event, argument);
}
