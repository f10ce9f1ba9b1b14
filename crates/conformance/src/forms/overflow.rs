//! A function of a driver that gets a packet, natively and rewritten; the packet may be
//! longer than the function assumes.
//!
//! ```text
//! u64 f0(const void *packet)     the packet lies in dom0's memory at PACKET
//! dom0_data[0]                   MARK: written by code that no packet should reach
//! ```

use elf_loader::{Object, Place};
use iced_x86::{Code, Instruction, Register};
use process_lab::error::Error;
use process_lab::program::{ANYWHERE, Bounds, Variant};
use process_lab::runtime;

use super::campaign::Execution;
use super::cases::{self, Case, Live};
use super::copies::Copies;
use super::image::{self, Rewritten};
use super::memory::{DATA, Memory, Placement};
use super::native::Native;
use super::process::{Machine, frame_bytes, in_child, one};
use super::record::{Ending, Record, Records};
use super::state::{State, Table};
use super::twin::Twin;
use super::{AddressingForm, Reach};

/// dom0 address of the packet.
const PACKET: u64 = DATA + 0x1800;
/// dom0 address of the word that is not to be reached.
const MARK: u64 = DATA;
const PAGES: u64 = 8;
const SEED: u64 = 0x0be5_e5ed;

/// The result for a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// How the function ended.
    pub ended: Ended,
    /// Whether something wrote the mark.
    pub marked: bool,
}

/// How the function ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It returned; its registers, and what it left in memory, as two words.
    Returned(u64, u64),
    /// The driver was aborted, because a return address had been overwritten.
    Overwritten {
        /// With this.
        by: u64,
        /// In this function.
        function: String,
    },
    /// Anything else, in words.
    Otherwise(String),
}

/// A rewritten object in place.
pub struct Driver<'o> {
    original: &'o Object<'o>,
    program: Rewritten<'static>,
}

impl<'o> Driver<'o> {
    /// Links a rewritten object, verified or not.
    ///
    /// # Errors
    /// The linker's.
    pub fn new(
        original: &'o Object<'o>,
        rewritten: Object<'static>,
        variant: Variant,
    ) -> Result<Driver<'o>, Error> {
        let program = Rewritten::new(rewritten, variant)?;
        Ok(Driver { original, program })
    }

    /// Where the hypervisor has a function.
    pub fn address(&self, function: &str) -> Option<u64> {
        self.program.image.functions.get(function).copied()
    }

    /// Where the hypervisor has these bytes, as an instruction's or inside of one.
    pub fn address_of_bytes(&self, bytes: &[u8]) -> Option<u64> {
        let image = &self.program.image;
        let mut places = image.bytes.windows(bytes.len());
        let offset = places.position(|place| place == bytes)?;
        Some(image.span().0 + offset as u64)
    }

    /// Gives the rewritten function a packet. dom0's memory is where it is in dom0, too, so
    /// that an access without a translation would reach it.
    ///
    /// # Errors
    /// A system call's.
    pub fn receive(&self, packet: &[u8]) -> Result<Received, Error> {
        self.receive_within(packet, ANYWHERE)
    }

    /// The same, its pointers compared with these bounds if it is strict.
    ///
    /// # Errors
    /// A system call's.
    pub fn receive_within(&self, packet: &[u8], dom0: Bounds) -> Result<Received, Error> {
        let execution = Execution {
            variant: self.program.variant,
            identity: true,
            copies: Copies::Processor,
            dom0,
        };
        let twin = |memory: &Memory| Twin::new(&self.program, memory, execution);
        receive(self.original, packet, twin)
    }
}

/// The address of a function of the original, and its result for a packet that is made
/// with that address.
///
/// # Errors
/// The linker's, and a system call's.
pub fn receive_natively(
    original: &Object<'_>,
    function: &str,
    packet: impl Fn(u64) -> Vec<u8>,
) -> Result<Received, Error> {
    let image = image::original(original)?;
    let address = image.functions.get(function).copied().unwrap_or(0);
    let native = |memory: &Memory| Native::new(&image, memory);
    receive(original, &packet(address), native)
}

/// Calls the function in a process; gives the process's report.
fn receive<M: Machine>(
    original: &Object<'_>,
    packet: &[u8],
    make: impl Fn(&Memory) -> Result<M, Error>,
) -> Result<Received, Error> {
    let mut records = Records::new(2)?;
    let status = in_child(|| {
        let mut memory = Memory::new(PAGES, SEED)?;
        let mut machine = make(&memory)?;
        let state = state(packet);
        let record = one(
            &mut machine,
            &mut memory,
            &frame_bytes(),
            (0, &case()),
            &state,
        );
        let mark = |(address, _): &(u64, u8)| (MARK..MARK + 8).contains(address);
        let marked = u64::from(memory.changes().iter().any(mark));
        let memory = memory.restore();
        records.set(0, Record { memory, ..record });
        let mut second = Record::ended(Ending::None);
        second.memory = marked;
        records.set(1, second);
        Ok(())
    })?;
    let (record, marked) = (records.get(0), records.get(1).memory != 0);
    let ended = match record.how() {
        _ if status != 0 => Ended::Otherwise(format!("the process ended with status {status:#x}")),
        Some(Ending::Returned) => Ended::Returned(record.registers, record.memory),
        Some(Ending::Aborted) if record.trap == u64::from(runtime::ABORT_RETURN) => {
            Ended::Overwritten {
                by: record.address,
                function: function_at(original, record.place),
            }
        }
        _ => Ended::Otherwise(record.to_string()),
    };
    Ok(Received { ended, marked })
}

/// The function around an offset in the original's code.
fn function_at(original: &Object<'_>, offset: u64) -> String {
    let code = original.section_named(".text");
    let around = original.symbols().find(|(_, symbol)| {
        let here = code.is_some_and(|code| symbol.place == Place::In(code));
        here && offset.wrapping_sub(symbol.value) < symbol.size
    });
    around.map_or_else(String::new, |(_, symbol)| symbol.name.to_string())
}

fn state(packet: &[u8]) -> State {
    let mut registers = [0; 16];
    registers[Register::RDI.number()] = PACKET;
    State {
        registers,
        flags: 0x202,
        fs_base: DATA,
        vectors: 0,
        table: Table::Cold,
        placement: Placement::Middle,
        patches: vec![(PACKET, packet.to_vec())],
        order: 0,
    }
}

/// The function as a case: what machines ask of one.
fn case() -> Case {
    Case {
        form: 0,
        mode: AddressingForm::Implicit,
        reach: Reach::None,
        instruction: Instruction::with(Code::Nopd),
        live: Live::Few,
        direction: cases::Direction::Up,
        address: DATA,
    }
}
