//! Cases as an object: one function each.
//!
//! ```text
//! fN:     lea   -0x200(%rsp), %rsp
//!         std                             downwards
//!         cmp   %r9, %r8                  flags of a compare are live
//!         INSTRUCTION
//!         cld                             downwards
//!         push  %rax ; lahf ; seto %al    all and compare: flags are live
//!         push  %rax ... push %r15        all: so are the registers
//!         lea   0x200+PUSHED(%rsp), %rsp
//!         ret
//! helper: lea   1(%rdx,%rax), %rax ; ret
//! ```
//!
//! An instruction that does not continue stands alone, a call before `lea` and
//! `ret`, `leave` after `push %rbp; mov %rsp, %rbp`.

use std::borrow::Cow;

use elf_loader::consts::{
    R_X86_64_32S, R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR, STB_GLOBAL,
    STT_FUNC, STT_NOTYPE,
};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};
use iced_x86::{Encoder, FlowControl, Instruction};

use super::AddressingForm;
use super::cases::{Case, Direction, FRAME, Live};
use super::memory::DATA;

/// Name of the symbol at [`DATA`].
pub const SYMBOL: &str = "dom0_data";
/// Name of the function to be called.
pub const HELPER: &str = "helper";

const DATA_SYMBOL: SymbolId = SymbolId(1);
const TEXT: SectionId = SectionId(1);

/// Bytes that a case pushes after its instruction.
pub fn pushed(live: Live) -> i32 {
    match live {
        Live::All => 8 * 16,
        Live::Few => 0,
        Live::Compared => 8 * 2,
    }
}

/// The object of some cases, each the function `fN` with the `N` that is paired with
/// it, and of the [`HELPER`].
pub fn object<'c>(cases: impl IntoIterator<Item = (usize, &'c Case)>) -> Object<'static> {
    let mut builder = Builder::default();
    for (number, case) in cases {
        let start = builder.text.len();
        builder.function(case);
        builder.define(Case::symbol(number), start);
    }
    let start = builder.text.len();
    builder.text.extend([0x48, 0x8d, 0x44, 0x02, 0x01, 0xc3]);
    builder.define(HELPER.to_owned(), start);
    builder.finish()
}

#[derive(Default)]
struct Builder {
    text: Vec<u8>,
    relocations: Vec<Relocation>,
    calls: Vec<u64>,
    symbols: Vec<Symbol<'static>>,
}

impl Builder {
    fn define(&mut self, name: String, start: usize) {
        self.symbols.push(Symbol {
            name: Cow::Owned(name),
            binding: STB_GLOBAL,
            kind: STT_FUNC,
            other: 0,
            place: Place::In(TEXT),
            value: start as u64,
            size: (self.text.len() - start) as u64,
        });
    }

    fn function(&mut self, case: &Case) {
        match case.instruction.flow_control() {
            FlowControl::Next if case.is_frame() => {
                self.text.extend([0x55, 0x48, 0x89, 0xe5]); // push %rbp ; mov %rsp, %rbp
                self.instruction(case);
                self.text.push(0xc3);
            }
            FlowControl::Next => self.framed(case),
            FlowControl::Call | FlowControl::IndirectCall => {
                self.frame(-FRAME);
                self.instruction(case);
                self.frame(FRAME);
                self.text.push(0xc3);
            }
            _ => self.instruction(case),
        }
    }

    fn framed(&mut self, case: &Case) {
        self.frame(-FRAME);
        if case.direction == Direction::Down {
            self.text.push(0xfd); // std
        }
        if case.live == Live::Compared {
            self.text.extend([0x4d, 0x39, 0xc8]); // cmp %r9, %r8
        }
        self.instruction(case);
        if case.direction == Direction::Down {
            self.text.push(0xfc); // cld
        }
        match case.live {
            Live::All => {
                self.observe_flags();
                for register in (0..16).filter(|r| *r != 4) {
                    self.push(register);
                }
            }
            Live::Compared => {
                self.observe_flags();
                self.push(0);
            }
            Live::Few => {}
        }
        self.frame(FRAME + pushed(case.live) - case.stack_change());
        self.text.push(0xc3);
    }

    /// `lea change(%rsp), %rsp`
    fn frame(&mut self, change: i32) {
        self.text.extend([0x48, 0x8d, 0xa4, 0x24]);
        self.text.extend(change.to_le_bytes());
    }

    fn observe_flags(&mut self) {
        self.push(0);
        self.text.extend([0x9f, 0x0f, 0x90, 0xc0]);
    }

    fn push(&mut self, register: u8) {
        if register >= 8 {
            self.text.push(0x41);
        }
        self.text.push(0x50 + register % 8);
    }

    fn instruction(&mut self, case: &Case) {
        let start = self.text.len() as u64;
        let mut bytes = encode(&case.instruction);
        if let Some((kind, at, width)) = relocation(case, &bytes.1) {
            let from_end = bytes.0.len() as i64 - at as i64;
            let pc = if kind == R_X86_64_PC32 { from_end } else { 0 };
            bytes.0[at..at + width].fill(0);
            self.relocations.push(Relocation {
                offset: start + at as u64,
                kind,
                symbol: DATA_SYMBOL,
                addend: (case.address - DATA) as i64 - pc,
            });
        }
        if case.is_direct_call() {
            let at = bytes.0.len() - 4;
            bytes.0[at..].fill(0);
            self.calls.push(start + at as u64);
        }
        self.text.extend(bytes.0);
    }

    fn finish(self) -> Object<'static> {
        let mut object = Object::new();
        let flags = SHF_ALLOC | SHF_EXECINSTR;
        let mut text = Section::with_data(".text", flags, 16, self.text);
        // The helper is the last symbol, after the null symbol and the data's.
        let helper = SymbolId(self.symbols.len() as u32 + 1);
        text.relocations = self.relocations;
        text.relocations
            .extend(self.calls.iter().map(|&offset| Relocation {
                offset,
                kind: R_X86_64_PLT32,
                symbol: helper,
                addend: -4,
            }));
        text.relocations.sort_by_key(|r| r.offset);
        object.sections.push(text);
        object.symbols.push(Symbol {
            name: Cow::Borrowed(SYMBOL),
            binding: STB_GLOBAL,
            kind: STT_NOTYPE,
            other: 0,
            place: Place::Undefined,
            value: 0,
            size: 0,
        });
        object.symbols.extend(self.symbols);
        object
    }
}

/// The instruction's bytes, and where its fields are.
pub fn encode(instruction: &Instruction) -> (Vec<u8>, iced_x86::ConstantOffsets) {
    let mut encoder = Encoder::new(64);
    let length = encoder.encode(instruction, 0);
    let fields = encoder.get_constant_offsets();
    length.expect("forms that do not encode are no forms");
    (encoder.take_buffer(), fields)
}

/// Type, offset in the instruction and width of the relocation that a mode needs.
fn relocation(case: &Case, fields: &iced_x86::ConstantOffsets) -> Option<(u32, usize, usize)> {
    let (at, width) = (fields.displacement_offset(), fields.displacement_size());
    let kind = match (case.mode, width) {
        (AddressingForm::Rip, 4) => R_X86_64_PC32,
        (AddressingForm::Absolute, 4) => R_X86_64_32S,
        (AddressingForm::Absolute, 8) => R_X86_64_64,
        _ => return None,
    };
    Some((kind, at, width))
}
