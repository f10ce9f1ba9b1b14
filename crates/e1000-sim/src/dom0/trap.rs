//! Performs accesses to the NIC that fault, and handles other faults of kernel code.
//!
//! ```text
//! SIGSEGV  address in BAR      mov, movzx, movsx: NIC read or write, go on
//!          in, out             NIC port read or write, go on
//! SIGILL   ud2 of a WARN       reported, go on
//! any      in kernel code, or a function of it:  oops (see `enter`)
//! any      elsewhere           the process dies of it
//! ```
//!
//! Handlers run on the alternate stack of the faulting thread, which waits in
//! them: they may do what that thread may.

use std::sync::OnceLock;

use iced_x86::{Code, Decoder, DecoderOptions, Instruction, Mnemonic, OpKind, Register};
use libc::{c_int, c_void, greg_t, siginfo_t, ucontext_t};
use process_lab::{decode, signals};

use super::enter;
use crate::error::LiveError;
use crate::memory::{BAR, BAR_SIZE, PAGE};

/// Registers in the order of `REG_*`.
type Registers = [greg_t; 23];

/// The functions that the handlers need from their process.
pub trait Handler: Sync {
    /// Whether dom0 executes code there.
    fn is_code(&self, address: u64) -> bool;
    /// Reads a register of the NIC: `offset` a multiple of 4.
    fn mmio_read(&self, offset: u32) -> u32;
    /// Writes one.
    fn mmio_write(&self, offset: u32, value: u32);
    /// Reads a port; `None` if it is not the NIC's.
    fn port_read(&self, port: u16, size: u32) -> Option<u32>;
    /// Writes a port.
    fn port_write(&self, port: u16, size: u32, value: u32) -> Option<()>;
    /// A `ud2` at `rip`: `true` if it is a WARN's, which has been reported.
    fn warn(&self, rip: u64) -> bool;
    /// Kernel code is left for good: free the locks that this thread holds.
    fn abandon(&self);
}

static HANDLER: OnceLock<&'static dyn Handler> = OnceLock::new();

/// Installs the handlers. Once in a process, which is dom0 from then on.
pub fn start(handler: &'static dyn Handler) -> Result<(), LiveError> {
    let _ = HANDLER.set(handler);
    for signal in signals::PROCESSOR {
        signals::handle(signal, on_signal).map_err(|_| LiveError::last("catching faults"))?;
    }
    Ok(())
}

extern "C" fn on_signal(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let Some(handler) = HANDLER.get().filter(|_| enter::is_inside()) else {
        signals::give_up(signal);
    };
    // SAFETY: the kernel gives a handler the information and the context.
    let (address, registers) = unsafe {
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        ((*info).si_addr() as u64, registers)
    };
    if performed(*handler, signal, address, registers).is_none() {
        handler.abandon();
        enter::unwind(signal, address, registers, |word| handler.is_code(word));
    }
}

/// Performs the instruction if possible; changes nothing if it gives `None`.
fn performed(
    handler: &dyn Handler,
    signal: c_int,
    address: u64,
    registers: &mut Registers,
) -> Option<()> {
    let rip = registers[libc::REG_RIP as usize] as u64;
    if !handler.is_code(rip) {
        return None;
    }
    let instruction = instruction(handler, rip);
    match signal {
        libc::SIGILL if instruction.mnemonic() == Mnemonic::Ud2 => {
            handler.warn(rip).then_some(())?;
        }
        libc::SIGSEGV => {
            let offset = address.wrapping_sub(BAR);
            let general_protection = registers[libc::REG_TRAPNO as usize] == 13;
            if !general_protection && offset < BAR_SIZE {
                mmio(handler, &instruction, offset as u32, registers)?;
            } else {
                port(handler, &instruction, registers)?;
            }
        }
        _ => return None,
    }
    registers[libc::REG_RIP as usize] = instruction.next_ip() as greg_t;
    Some(())
}

/// The instruction at `rip`, which is code.
fn instruction(handler: &dyn Handler, rip: u64) -> Instruction {
    const LONGEST: u64 = 15;
    let page_end = (rip + 1).next_multiple_of(PAGE);
    let whole = page_end - rip >= LONGEST || handler.is_code(page_end);
    let length = if whole { LONGEST } else { page_end - rip };
    // SAFETY: code is mapped, page by page, and nothing writes it.
    let bytes = unsafe { std::slice::from_raw_parts(rip as *const u8, length as usize) };
    Decoder::with_ip(64, bytes, rip, DecoderOptions::NONE).decode()
}

// ---- Registers of the NIC ------------------------------------------------------

/// Performs a load or a store of the kinds that compilers make for readl and
/// writel and their siblings.
fn mmio(
    handler: &dyn Handler,
    instruction: &Instruction,
    offset: u32,
    registers: &mut Registers,
) -> Option<()> {
    use Mnemonic::{Mov, Movsx, Movsxd, Movzx};
    let size = instruction.memory_size().size();
    if !matches!(size, 1 | 2 | 4 | 8) || instruction.op_count() != 2 {
        return None;
    }
    let is_memory = |operand| instruction.op_kind(operand) == OpKind::Memory;
    match instruction.mnemonic() {
        Mov if is_memory(0) => {
            let value = match instruction.op_kind(1) {
                OpKind::Register => get(registers, instruction.op1_register())?,
                _ => instruction.immediate(1),
            };
            store(handler, offset, size, value);
        }
        Mov | Movzx if is_memory(1) => {
            let value = load(handler, offset, size);
            set(registers, instruction.op0_register(), value)?;
        }
        Movsx | Movsxd if is_memory(1) => {
            let unused = 64 - 8 * size as u32;
            let value = load(handler, offset, size);
            let extended = (value << unused) as i64 >> unused;
            set(registers, instruction.op0_register(), extended as u64)?;
        }
        _ => return None,
    }
    Some(())
}

/// Registers are 32 bits wide; wider accesses are two, narrower ones a part.
fn load(handler: &dyn Handler, offset: u32, size: usize) -> u64 {
    let word = |offset: u32| u64::from(handler.mmio_read(offset & !3));
    if size == 8 {
        return word(offset) | word(offset + 4) << 32;
    }
    let value = word(offset) >> (8 * (offset & 3));
    value & (u64::MAX >> (64 - 8 * size))
}

fn store(handler: &dyn Handler, offset: u32, size: usize, value: u64) {
    match size {
        8 => {
            handler.mmio_write(offset & !3, value as u32);
            handler.mmio_write((offset & !3) + 4, (value >> 32) as u32);
        }
        4 => handler.mmio_write(offset & !3, value as u32),
        _ => {
            let shift = 8 * (offset & 3);
            let mask = (u32::MAX >> (32 - 8 * size)) << shift;
            let old = handler.mmio_read(offset & !3);
            handler.mmio_write(offset & !3, old & !mask | (value as u32) << shift & mask);
        }
    }
}

// ---- Ports ---------------------------------------------------------------------

fn port(handler: &dyn Handler, instruction: &Instruction, registers: &mut Registers) -> Option<()> {
    let size = match instruction.code() {
        Code::In_AL_DX | Code::In_AL_imm8 | Code::Out_DX_AL | Code::Out_imm8_AL => 1,
        Code::In_AX_DX | Code::In_AX_imm8 | Code::Out_DX_AX | Code::Out_imm8_AX => 2,
        Code::In_EAX_DX | Code::In_EAX_imm8 | Code::Out_DX_EAX | Code::Out_imm8_EAX => 4,
        _ => return None,
    };
    let is_output = instruction.mnemonic() == Mnemonic::Out;
    let port = match instruction.op_kind(u32::from(!is_output)) {
        OpKind::Register => get(registers, Register::DX)? as u16,
        _ => u16::from(instruction.immediate8()),
    };
    let register = instruction.op_register(u32::from(is_output));
    if is_output {
        let value = get(registers, register)? as u32;
        return handler.port_write(port, size, value);
    }
    let value = handler.port_read(port, size)?;
    set(registers, register, u64::from(value))
}

// ---- Registers of the processor ------------------------------------------------

/// How far up in the full register a register begins, in bits.
fn shift_of(register: Register) -> u32 {
    match register {
        Register::AH | Register::BH | Register::CH | Register::DH => 8,
        _ => 0,
    }
}

fn get(registers: &Registers, register: Register) -> Option<u64> {
    let full = registers[decode::gregister(register.full_register())? as usize] as u64;
    let value = full >> shift_of(register);
    Some(value & (u64::MAX >> (64 - 8 * register.size())))
}

/// Writes a register; a write of 32 bits clears the upper half (SDM volume 1,
/// 3.4.1.1).
fn set(registers: &mut Registers, register: Register, value: u64) -> Option<()> {
    let full = &mut registers[decode::gregister(register.full_register())? as usize];
    let shift = shift_of(register);
    let mask = match register.size() {
        4 | 8 => u64::MAX,
        size => (u64::MAX >> (64 - 8 * size)) << shift,
    };
    let value = match register.size() {
        4 => value & u64::from(u32::MAX),
        _ => value,
    };
    *full = ((*full as u64) & !mask | value << shift & mask) as greg_t;
    Some(())
}
