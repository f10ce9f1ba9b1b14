//! Signals while the driver runs: single steps, the time budget, and faults of the
//! processor.

use std::sync::atomic::Ordering;

use libc::{c_int, c_void, siginfo_t, ucontext_t};
use process_lab::address_space::{KERNEL, PAGE, PERCPU, STACK_BLOCK};
use process_lab::decode;
use process_lab::signals;
use process_lab::stock::thunk_register;

use super::enter::{TRAP_FLAG, host_rsp, resume_end, resume_start, unwind};
use super::{RUN, Run};
use crate::differential::trace::{Ending, RunOutcome};

pub(super) extern "C" fn on_signal(signal: c_int, _: *mut siginfo_t, context: *mut c_void) {
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
                RunOutcome {
                    ending: Ending::TimeBudget as u64,
                    rip,
                    ..RunOutcome::default()
                },
            );
        }
    }

    fn end(&mut self, registers: &mut Registers, outcome: RunOutcome) {
        self.fault = Some(outcome);
        registers[libc::REG_RIP as usize] = unwind as *const () as i64;
        registers[libc::REG_EFL as usize] &= !(TRAP_FLAG as i64);
        // SAFETY: `enter` set it.
        registers[libc::REG_RSP as usize] = unsafe { host_rsp() } as i64;
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

    /// How the run ends; `None` if it goes on.
    fn outcome(
        &mut self,
        signal: c_int,
        registers: &mut Registers,
        rip: u64,
        rsp: u64,
    ) -> Option<RunOutcome> {
        if !self.is_driver_code(rip) {
            let target = thunk_register(rip)
                .map_or(rip, |name| get(registers, decode::thunk_gregister(name)));
            // SAFETY: `rsp` points into the driver stack (checked by the
            // caller) or its guard, which a call cannot have reached.
            let site = unsafe { *(rsp as *const u64) };
            return Some(RunOutcome {
                ending: Ending::BadCall as u64,
                address: target,
                rip: site,
                after: 1,
                ..RunOutcome::default()
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
        Some(RunOutcome {
            ending: Ending::Fault as u64,
            address,
            rip,
            detail: trap,
            ..RunOutcome::default()
        })
    }

    fn code_at(&self, rip: u64) -> Vec<u8> {
        let end = self.machine.stock.code().end.min(rip + 15);
        // SAFETY: the range is mapped code.
        unsafe { std::slice::from_raw_parts(rip as *const u8, (end - rip) as usize) }.to_vec()
    }

    /// A `ud2`: a WARN is skipped as the kernel's handler does.
    fn illegal(&mut self, registers: &mut Registers, rip: u64, code: &[u8]) -> Option<RunOutcome> {
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
        Some(RunOutcome {
            ending: ending as u64,
            rip,
            ..RunOutcome::default()
        })
    }

    /// A port instruction, which user space may not execute: perform it.
    fn port(
        &mut self,
        registers: &mut Registers,
        rip: u64,
        access: &decode::Port,
    ) -> Option<RunOutcome> {
        let port = access
            .immediate
            .unwrap_or(get(registers, libc::REG_RDX) & 0xffff);
        if !crate::differential::ports::allows(port, access.size) {
            return Some(RunOutcome {
                ending: Ending::Port as u64,
                address: port,
                rip,
                ..RunOutcome::default()
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
