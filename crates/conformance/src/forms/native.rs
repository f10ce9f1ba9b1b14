//! The original code at dom0's addresses, on memory at dom0's addresses.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};

use libc::{c_int, siginfo_t, ucontext_t};
use process_lab::address_space::{STACK, STACK_BLOCK};
use process_lab::error::Error;
use process_lab::{code_memory, mapping, segments, signals};

use super::enter::{self, Block};
use super::image::Image;
use super::memory::Memory;
use super::ports;
use super::process::Machine;
use super::record::{Ending, Record};
use super::state::{GS_BASE, State};

/// What the handler found: trap, address, instruction; a process has one run at
/// a time.
static FAULT: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];

/// The native process's machine.
pub struct Native<'i> {
    image: &'i Image,
    block: Block,
}

impl<'i> Native<'i> {
    /// Maps code, memory and a driver stack. For a process that does nothing
    /// else.
    pub fn new(image: &'i Image, memory: &Memory) -> Result<Native<'i>, Error> {
        memory.map_at_dom0()?;
        let (start, end) = image.span();
        code_memory::load(start, end, &[(start, &image.bytes)])
            .map_err(Error::system("mapping memory for forms"))?;
        mapping::new_memory(STACK.0, STACK.1 - STACK.0)
            .map_err(Error::system("mapping memory for forms"))?;
        segments::set_gs(GS_BASE).map_err(Error::system(segments::SETTING_GS))?;
        signals::alternate_stack()?;
        for signal in signals::PROCESSOR {
            signals::handle_at(signal, enter::signal_entry())?;
        }
        Ok(Native {
            image,
            block: Block::new()?,
        })
    }
}

impl Machine for Native<'_> {
    fn run(&mut self, name: &str, state: &State, uses_fs: bool) -> Record {
        if uses_fs && !self.block.can_use_fs() {
            return Record::ended(Ending::Skipped);
        }
        let Some(&entry) = self.image.functions.get(name) else {
            return Record::ended(Ending::None);
        };
        self.block.load(state, entry, uses_fs);
        // SAFETY: the block is loaded, the stack mapped, and the handlers
        // resume at `unwind`.
        if unsafe { enter::native() } {
            return Record::ended(Ending::Returned);
        }
        let [trap, address, rip] = std::array::from_fn(|i| FAULT[i].load(Ordering::Relaxed));
        fault(trap, address, rip.wrapping_sub(self.image.start))
    }

    fn block(&self) -> &Block {
        &self.block
    }
}

/// A processor fault as both processes report it: #SS and #GP count as the same, and
/// have no address.
pub fn fault(trap: u64, address: u64, place: u64) -> Record {
    const INVALID: u64 = 6;
    const STACK_FAULT: u64 = 12;
    const PROTECTION: u64 = 13;
    const PAGE_FAULT: u64 = 14;
    let ending = if trap == INVALID {
        Ending::Unknown
    } else {
        Ending::Fault
    };
    Record {
        trap: if trap == STACK_FAULT {
            PROTECTION
        } else {
            trap
        },
        address: if trap == PAGE_FAULT { address } else { 0 },
        place,
        ..Record::ended(ending)
    }
}

/// Called on the alternate stack with the host's `%fs`.
pub(super) extern "C" fn on_signal(signal: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the kernel gives a handler the interrupted context.
    let registers = unsafe { &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs };
    let get = |register: c_int| registers[register as usize] as u64;
    if get(libc::REG_RSP).wrapping_sub(STACK_BLOCK) >= twin_abi::stack::BLOCK {
        signals::give_up(signal);
    }
    let mut found = [libc::REG_TRAPNO, libc::REG_CR2, libc::REG_RIP].map(get);
    if found[0] == u64::from(ports::TRAP as u32) {
        match ports::step(registers) {
            ports::Step::Done => return,
            ports::Step::Fault(trap, address) => [found[0], found[1]] = [trap, address],
            ports::Step::Other => {}
        }
    }
    for (slot, value) in FAULT.iter().zip(found) {
        slot.store(value, Ordering::Relaxed);
    }
    registers[libc::REG_RIP as usize] = enter::unwind() as i64;
    registers[libc::REG_EFL as usize] &= !signals::DIRTY_FLAGS;
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::super::enter::{Features, features};
    use super::super::process::in_child;
    use super::super::state::Table;
    use super::*;
    use crate::forms::memory::Placement;
    use process_lab::address_space::MODULE;

    /// Functions of one instruction that changes one vector register, and of none.
    const CHANGES: [(&str, &[u8]); 5] = [
        ("nothing", &[]),
        ("xmm7", &[0xc5, 0xf9, 0x6f, 0xf9]), // vmovdqa %xmm1,%xmm7
        ("zmm9", &[0x62, 0x73, 0xb5, 0x48, 0x3a, 0xcb, 0x01]), // vinserti64x4 $1,%ymm3,%zmm9,%zmm9
        ("zmm31", &[0x62, 0x61, 0xfe, 0x48, 0x6f, 0xfa]), // vmovdqu64 %zmm2,%zmm31
        ("k5", &[0xc4, 0xe1, 0xfb, 0x92, 0xe8]), // kmovq %rax,%k5
    ];

    fn image() -> Image {
        let (mut bytes, mut functions) = (Vec::new(), HashMap::new());
        for (name, code) in CHANGES {
            functions.insert(name.to_owned(), MODULE + bytes.len() as u64);
            bytes.extend(code.iter().copied().chain([0xc3]));
        }
        Image {
            start: MODULE,
            bytes,
            functions,
        }
    }

    #[test]
    fn every_vector_register_of_the_processor_is_seen() {
        if features() != Features::Avx512 {
            eprintln!("skipped: no AVX-512 with masks of 64 bits");
            return;
        }
        let image = image();
        let status = in_child(|| {
            let memory = Memory::new(8, 0)?;
            let mut native = Native::new(&image, &memory)?;
            let state = State {
                registers: [0x1234_5678; 16],
                flags: 0x202,
                fs_base: 0,
                vectors: 0,
                table: Table::Cold,
                placement: Placement::Middle,
                patches: Vec::new(),
                order: 0,
            };
            let mut seen = Vec::new();
            for (name, _) in CHANGES {
                assert!(native.run(name, &state, false).is(Ending::Returned));
                seen.push(native.block().vectors());
            }
            assert!(seen[1..].iter().all(|vectors| *vectors != seen[0]));
            Ok(())
        });
        assert_eq!(status.expect("a child"), 0);
    }
}
