//! The proof of a finished payload, from its bytes.
//!
//! It reads the file, takes the code of driver and hot routines out of it as it is there,
//! with dom0's addresses filled in, and gives that to `svm-verify` as an object. So all that
//! is said of instructions is proved of the very bytes that Xen loads. What a verifier of
//! objects cannot see is judged here, a function a rule:
//!
//! * **R1** Code refers to its own code, to stubs, to the runtime's entries, to the window's
//!   mask and to two absolute numbers of the runtime, and to nothing else: not to Xen.
//! * **R2** A stub has the form of [`crate::stubs`], leads to the runtime's two entries, is
//!   called at its start, and has no other function of the runtime's called than its routine's.
//! * **R3** The mask is 2^42 - 1 and not writable.
//! * **R4** The codemap ascends by dom0's addresses, so each has one place in the code; the
//!   verifier proves each place as an entry.
//! * **R5** Nothing but the codemap and the starts of functions in the code is referred to
//!   from outside, except by the arrays of numbers that tell where the code is.
//! * **R6** Nothing relocates a writable section into the code's place: code sections are
//!   executable, not writable, and no two have one name.
//!
//! * **R7** What the runtime is told of the code is so: `given.rs`.
//!
//! Nothing here uses what [`crate::build`] knew. What is believed: that the runtime's entries
//! do what `<twin/runtime.h>` says, that the window is where the runtime's symbol says, and
//! that Xen's loader does what the relocations say.

use std::borrow::Cow;

use elf_loader::consts::{
    R_X86_64_64, R_X86_64_PC32, R_X86_64_PLT32, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, STB_GLOBAL,
    STT_NOTYPE, STT_SECTION,
};
use elf_loader::{Object, Place, Relocation, Section, SectionId, Symbol, SymbolId};
use svm_verify::{Proof, is_entry};
use twin_abi::names::{
    HIGHEST, LOWEST, RUNTIME_PREFIX, STACK_VIEW, VM_PREFIX, WINDOW, WINDOW_MASK,
};
use twin_abi::{sections, window};

use crate::code::PayloadCode;
use crate::given;
use crate::output::names;
use crate::refusal::{Part, PayloadError, Refusal};
use crate::stubs::{CALL_OUT, ENTRY, STUB, own_name};

/// Proves that the code in a payload keeps the contract of a hypervisor.
///
/// # Errors
/// The file is no payload, breaks one of the rules above, or its code does not keep the
/// contract.
pub fn check(bytes: &[u8]) -> Result<Proof, PayloadError> {
    let payload = elf_loader::read(bytes).map_err(|error| bad(format!("{error}")))?;
    let view = View::new(&payload)?;
    let code = view.code[1..].to_vec();
    let proof = svm_verify::verify(&view.object()?, crate::contract());
    let proof = proof.map_err(|violations| PayloadError::Violated {
        part: Part::Output,
        violations,
    })?;
    given::check(&payload, &code, &proof).map_err(bad)?;
    Ok(proof)
}

fn bad(why: String) -> Refusal {
    let why = format!("the finished payload: {why}; please report this");
    Refusal::new(PayloadCode::Check, Part::Output, why)
}

/// Whether a section has rewritten code, by its name.
fn is_rewritten(section: &Section<'_>) -> bool {
    section.name.starts_with(names::DRIVER) || section.name.starts_with(names::HOT)
}

/// An object for the verifier, made of a payload: its code sections, their symbols, and the
/// names of what they refer to.
struct View<'p> {
    payload: &'p Object<'p>,
    object: Object<'p>,
    /// The sections of rewritten code in the payload, by their index in `object`.
    code: Vec<SectionId>,
    /// The symbols of `object` for those of the payload.
    symbols: Vec<Option<SymbolId>>,
}

impl<'p> View<'p> {
    /// R6. The code and its symbols.
    fn new(payload: &'p Object<'p>) -> Result<View<'p>, Refusal> {
        let mut view = View {
            payload,
            object: Object::new(),
            code: vec![SectionId(0)],
            symbols: vec![None; payload.symbols.len()],
        };
        for (id, section) in payload.sections().filter(|(_, s)| is_rewritten(s)) {
            if section.flags != SHF_ALLOC | SHF_EXECINSTR {
                return Err(bad(format!("section `{}` is not code", section.name)));
            }
            view.code.push(id);
            view.object.sections.push(Section {
                // Code's name, as the verifier asks for, and still one of its own.
                name: Cow::Owned(format!(".text{}", section.name)),
                data: Cow::Borrowed(&section.data),
                relocations: Vec::new(),
                ..*section
            });
        }
        let symbols = payload.symbols().skip(1);
        for (id, symbol) in symbols {
            let Place::In(section) = symbol.place else {
                continue;
            };
            if let Some(section) = view.own(section) {
                let place = Place::In(section);
                // A name that no import and no part of the runtime has: nothing depends on it.
                let name = Cow::Owned(format!(":{}", symbol.name));
                let symbol = view.add(Symbol {
                    name,
                    place,
                    ..*symbol
                });
                view.symbols[id.0 as usize] = Some(symbol);
            }
        }
        Ok(view)
    }

    /// The section of the view for one of the payload.
    fn own(&self, section: SectionId) -> Option<SectionId> {
        let at = self.code.iter().skip(1).position(|c| *c == section)?;
        Some(SectionId(at as u32 + 1))
    }

    fn add(&mut self, symbol: Symbol<'p>) -> SymbolId {
        self.object.symbols.push(symbol);
        SymbolId(self.object.symbols.len() as u32 - 1)
    }

    /// The complete object.
    fn object(mut self) -> Result<Object<'p>, Refusal> {
        for at in 1..self.code.len() {
            let section = self.payload.section(self.code[at]);
            for r in &section.relocations {
                let why = |why: &str| bad(format!("{}+{:#x}: {why}", section.name, r.offset));
                let symbol = self.reference(r).map_err(why)?;
                self.object.sections[at]
                    .relocations
                    .push(Relocation { symbol, ..*r });
            }
        }
        self.references_from_outside()?;
        self.codemap()?;
        let note = self.payload.section_named(sections::NOTE);
        let note = note.ok_or_else(|| bad("it has no note of the rewriter".into()))?;
        let note = self.payload.section(note).clone();
        self.object.sections.push(note);
        Ok(self.object)
    }

    /// R1. The symbol that the verifier sees for one that code refers to.
    fn reference(&mut self, r: &Relocation) -> Result<SymbolId, &'static str> {
        if !matches!(r.kind, R_X86_64_64 | R_X86_64_PC32 | R_X86_64_PLT32) {
            return Err("a relocation that Xen does not take");
        }
        if let Some(own) = self.symbols[r.symbol.0 as usize] {
            return Ok(own);
        }
        let payload = self.payload;
        let symbol = payload.symbol(r.symbol);
        let name: &str = match symbol.place {
            Place::Undefined | Place::Common => return Err("it refers to a symbol of Xen's"),
            Place::Absolute if [WINDOW, STACK_VIEW].contains(&&*symbol.name) => &symbol.name,
            Place::Absolute => return Err("it refers to an absolute number"),
            Place::In(section) => {
                let section = payload.section(section);
                match &*symbol.name {
                    WINDOW_MASK => mask(section, symbol)?,
                    // Any number will do for the proof: comparisons only end an invocation.
                    LOWEST | HIGHEST => bound(section, symbol)?,
                    _ if section.name == names::STUBS => stub(payload, section, symbol)?,
                    name if section.is_code() && name.starts_with(RUNTIME_PREFIX) => name,
                    _ => return Err("it refers to what is not the runtime's entry"),
                }
            }
        };
        let outside = self.outside(Cow::Borrowed(name));
        self.symbols[r.symbol.0 as usize] = Some(outside);
        Ok(outside)
    }

    fn outside(&mut self, name: Cow<'p, str>) -> SymbolId {
        self.add(Symbol {
            name,
            binding: STB_GLOBAL,
            kind: STT_NOTYPE,
            other: 0,
            place: Place::Undefined,
            value: 0,
            size: 0,
        })
    }

    /// R5.
    fn references_from_outside(&self) -> Result<(), Refusal> {
        for (_, section) in self.payload.sections() {
            let numbers = [names::CODEMAP, names::ARRAYS].contains(&&*section.name);
            if is_rewritten(section) || numbers && section.flags & SHF_WRITE == 0 {
                continue;
            }
            for r in &section.relocations {
                let symbol = self.payload.symbol(r.symbol);
                let inside = matches!(symbol.place, Place::In(id) if self.own(id).is_some());
                let start = match r.kind {
                    R_X86_64_64 => r.addend == 0,
                    _ => r.addend == -4,
                };
                let entry = is_entry(symbol) && symbol.kind != STT_SECTION && start;
                if inside && !entry {
                    let at = format!("{}+{:#x}", section.name, r.offset);
                    return Err(bad(format!("{at}: it refers into the middle of the code")));
                }
            }
        }
        Ok(())
    }

    /// R4. The codemap as the verifier reads it: VM addresses are numbers here, and all that
    /// it asks of them is that they ascend, so the row's number stands for each.
    fn codemap(&mut self) -> Result<(), Refusal> {
        let Some(id) = self.payload.section_named(names::CODEMAP) else {
            return Err(bad("it has no codemap".into()));
        };
        let map = self.payload.section(id);
        let (rows, rest) = map.data.as_chunks::<16>();
        if map.flags != SHF_ALLOC || !rest.is_empty() || map.relocations.len() != rows.len() {
            return Err(bad("its codemap has not one place for each address".into()));
        }
        let (mut last, mut relocations) = (None, Vec::new());
        let first = self.object.sections.get(1).map(|s| s.name.to_string());
        let vm = self.outside(Cow::Owned(format!(
            "{VM_PREFIX}{}",
            first.unwrap_or_default()
        )));
        for (n, (row, r)) in rows.iter().zip(&map.relocations).enumerate() {
            let (address, hyp) = row.split_at(8);
            let address = u64::from_le_bytes(address.try_into().unwrap_or_default());
            let place = self.symbols[r.symbol.0 as usize];
            let at = n as u64 * 16;
            let fine = last.replace(address) < Some(address)
                && hyp == [0; 8]
                && (r.offset, r.kind) == (at + 8, R_X86_64_64);
            let (true, Some(symbol)) = (fine, place) else {
                return Err(bad(format!(
                    "entry {n} of its codemap does not ascend, or is no code"
                )));
            };
            let kind = R_X86_64_64;
            let addend = n as i64;
            relocations.push(Relocation {
                offset: at,
                kind,
                symbol: vm,
                addend,
            });
            relocations.push(Relocation {
                offset: at + 8,
                symbol,
                ..*r
            });
        }
        let data = vec![0; map.data.len()];
        self.object.sections.push(Section {
            relocations,
            ..Section::with_data(sections::CODEMAP, SHF_ALLOC, 8, data)
        });
        Ok(())
    }
}

/// R3.
pub fn mask<'p>(section: &Section<'_>, symbol: &'p Symbol<'_>) -> Result<&'p str, &'static str> {
    const BYTES: [u8; 8] = window::wide::MASK.to_le_bytes();
    let at = symbol.value as usize;
    let there = section.data.get(at..).and_then(|rest| rest.get(..8));
    let patched = given::touching(section, symbol.value, 8).next().is_some();
    match there == Some(&BYTES[..]) && section.flags & SHF_WRITE == 0 && !patched {
        true => Ok(&symbol.name),
        false => Err("the window's mask is not 2^42 - 1, or may be written"),
    }
}

/// R3, of a bound of dom0's addresses: eight bytes that nobody writes.
fn bound<'p>(section: &Section<'_>, symbol: &'p Symbol<'_>) -> Result<&'p str, &'static str> {
    let end = symbol.value.checked_add(8);
    let inside = end.is_some_and(|end| end <= section.data.len() as u64);
    match inside && section.flags & (SHF_WRITE | SHF_EXECINSTR) == 0 {
        true => Ok(&symbol.name),
        false => Err("a bound of dom0's addresses may be written, or is no word of .rodata"),
    }
}

/// R2. The name of the routine that a stub is for.
fn stub<'p>(
    payload: &Object<'_>,
    section: &Section<'_>,
    symbol: &'p Symbol<'_>,
) -> Result<&'p str, &'static str> {
    let bytes = section
        .data
        .get(symbol.value as usize..(symbol.value + STUB) as usize);
    let leads = |r: &Relocation, offset: u64, name: &str| {
        let place = (r.offset, r.addend) == (symbol.value + offset, -4);
        place && &*payload.symbol(r.symbol).name == name && r.kind != R_X86_64_64
    };
    let there: Vec<&Relocation> = given::touching(section, symbol.value, STUB).collect();
    let name = symbol.name.strip_prefix(names::STUB_PREFIX);
    let own = name.and_then(own_name);
    let good = match (bytes, &there[..]) {
        // mov $number, %r11d; jmp twin_import_entry
        (Some([0x41, 0xbb, _, _, _, _, 0xe9, 0, 0, 0, 0, rest @ ..]), [jump]) => {
            filled(rest) && leads(jump, 7, ENTRY)
        }
        // lea routine(%rip), %r11; jmp twin_call_out
        (Some([0x4c, 0x8d, 0x1d, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0, rest @ ..]), [lea, jump]) => {
            let routine = own.is_some_and(|own| leads(lea, 3, &own));
            filled(rest) && routine && leads(jump, 8, CALL_OUT)
        }
        _ => false,
    };
    let is_code = section.flags == SHF_ALLOC | SHF_EXECINSTR;
    match (good && is_code && symbol.value.is_multiple_of(STUB), name) {
        (true, Some(name)) => Ok(name),
        _ => Err("it refers to what is no stub"),
    }
}

fn filled(rest: &[u8]) -> bool {
    rest.iter().all(|&byte| byte == 0xcc)
}
