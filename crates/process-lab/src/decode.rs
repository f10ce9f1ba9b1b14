//! Single instructions of the native module, as far as signals need them.

use iced_x86::{
    Code, Decoder, DecoderOptions, Instruction, InstructionInfoFactory, Mnemonic, OpKind, Register,
};
use libc::c_int;

/// A port instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// `out`.
    pub output: bool,
    /// Bytes of an element: 1, 2 or 4.
    pub size: u64,
    /// The port, unless it is in `dx`.
    pub immediate: Option<u64>,
    /// Bytes of the instruction.
    pub length: u64,
}

/// Decodes one instruction at `ip`.
pub fn instruction(bytes: &[u8], ip: u64) -> Instruction {
    Decoder::with_ip(64, bytes, ip, DecoderOptions::NONE).decode()
}

/// The instruction as a port access, if it is one.
pub fn port(bytes: &[u8]) -> Option<Port> {
    let decoded = instruction(bytes, 0);
    let output = match decoded.mnemonic() {
        Mnemonic::In => false,
        Mnemonic::Out => true,
        _ => return None,
    };
    let size = match decoded.code() {
        Code::In_AL_DX | Code::In_AL_imm8 | Code::Out_DX_AL | Code::Out_imm8_AL => 1,
        Code::In_AX_DX | Code::In_AX_imm8 | Code::Out_DX_AX | Code::Out_imm8_AX => 2,
        _ => 4,
    };
    let is_immediate = |i: u32| decoded.op_kind(i) == OpKind::Immediate8;
    let immediate = (0..decoded.op_count())
        .any(is_immediate)
        .then(|| u64::from(decoded.immediate8()));
    Some(Port {
        output,
        size,
        immediate,
        length: decoded.len() as u64,
    })
}

/// The address that an access faulted on where the processor does not report it (#GP):
/// that of the first memory operand with a non-canonical address, else of the first.
pub fn address(bytes: &[u8], rip: u64, gs: u64, register: impl Fn(c_int) -> u64) -> Option<u64> {
    let decoded = instruction(bytes, rip);
    let mut factory = InstructionInfoFactory::new();
    let info = factory.info(&decoded);
    let not_canonical = |address: &u64| {
        let top = (*address as i64) >> 47;
        top != 0 && top != -1
    };
    let addresses: Vec<u64> = info
        .used_memory()
        .iter()
        .filter_map(|memory| memory.virtual_address(0, |r, _, _| value(r, gs, &register)))
        .collect();
    addresses
        .iter()
        .copied()
        .find(not_canonical)
        .or_else(|| addresses.first().copied())
}

fn value(register: Register, gs: u64, get: &impl Fn(c_int) -> u64) -> Option<u64> {
    match register {
        Register::GS => return Some(gs),
        Register::ES | Register::CS | Register::SS | Register::DS | Register::FS => return Some(0),
        _ => {}
    }
    let full = get(gregister(register.full_register())?);
    Some(match register.size() {
        8 => full,
        4 => full & 0xffff_ffff,
        _ => return None,
    })
}

/// Its index among a signal context's registers, for general ones of 64 bits.
pub fn gregister(register: Register) -> Option<c_int> {
    Some(match register {
        Register::RAX => libc::REG_RAX,
        Register::RCX => libc::REG_RCX,
        Register::RDX => libc::REG_RDX,
        Register::RBX => libc::REG_RBX,
        Register::RSP => libc::REG_RSP,
        Register::RBP => libc::REG_RBP,
        Register::RSI => libc::REG_RSI,
        Register::RDI => libc::REG_RDI,
        Register::R8 => libc::REG_R8,
        Register::R9 => libc::REG_R9,
        Register::R10 => libc::REG_R10,
        Register::R11 => libc::REG_R11,
        Register::R12 => libc::REG_R12,
        Register::R13 => libc::REG_R13,
        Register::R14 => libc::REG_R14,
        Register::R15 => libc::REG_R15,
        _ => return None,
    })
}

/// The index among a signal context's registers of the one that a thunk is named
/// for ([`crate::stock::thunk_register`]).
pub fn thunk_gregister(name: &str) -> c_int {
    match name {
        "rcx" => libc::REG_RCX,
        "r8" => libc::REG_R8,
        _ => libc::REG_RAX,
    }
}
