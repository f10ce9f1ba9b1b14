//! The rewritten driver, ready to be loaded: rewritten, verified, linked.
//!
//! ```text
//! 0x5000_0000  code | codemap          elf_loader::layout
//! after it     trampolines to the runtime's entries
//! 0x5700_0000  stubs, one for each import
//! 0x5800_0000  the translation table, or
//! 0x6000_0000_0000  the window, if the scheme has one
//! ```
//!
//! Nothing is mapped here; the rewritten worker does that.

use std::io;

use elf_loader::link::{
    Layout, LinkError, Linked, LowHalves, Resolve, SymbolUse, Trampolines, layout, link,
};
use elf_loader::{Object, Place, SectionId};
use iced_x86::{Decoder, DecoderOptions};
use svm_verify::{Contract, Processor, Proof, Target};
use twin_abi::{names, sections};

use crate::address_space::PAGE;
use crate::entries::Entries;
use crate::error::Error;
use crate::imports::{self, IMPORTS, Returns};
use crate::runtime;
use crate::stock::{Stock, dom0_address};
use crate::{code_memory, mapping};

/// Where the rewritten code is.
pub const CODE: u64 = 0x5000_0000;
/// Where the import stubs are.
pub const STUBS: u64 = 0x5700_0000;
/// Where the translation table is.
pub const STLB: u64 = 0x5800_0000;
/// Bytes of the translation table.
pub const STLB_SIZE: u64 = twin_abi::stlb::ENTRIES << twin_abi::stlb::ENTRY_SHIFT;
/// Where the mask of a window of 42 bits is, `twin_window_mask`: a scheme that has one has no
/// table. Not where a tag or a translation is, which instructions are counted by.
pub const WINDOW_MASK: u64 = STLB + 0x400;
/// Where the bounds of pointers are, [`names::LOWEST`] and [`names::HIGHEST`].
const BOUNDS: [u64; 2] = [WINDOW_MASK + 8, WINDOW_MASK + 16];
/// What strict code compares pointers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest address that dom0's memory may have.
    pub lowest: u64,
    /// The highest.
    pub highest: u64,
}

/// dom0's memory may be anywhere.
pub const ANYWHERE: Bounds = Bounds {
    lowest: 0,
    highest: u64::MAX,
};
/// Where the window is, `twin_window`: 2 MiB after a multiple of its size, so that the control
/// stack and the data stack are not in each other's way in the caches of AMD's processors
/// (`docs/spec/window.md`, where a window should be).
pub const WINDOW: u64 = 0x6000_0020_0000;
/// How far above the driver's stack dom0 has the data stack: `twin_stack_view`.
pub const STACK_VIEW: u64 = 0x4000_0000_0000;
/// [`STACK_VIEW`] where no code of dom0's runs: addresses on the data stack are those of the
/// stack, as in native code.
pub const NO_VIEW: u64 = 0;
/// Bytes of an import stub.
pub const STUB: u64 = 48;

/// A translation scheme.
pub type Scheme = svm_rewrite::Scheme;

/// A way of rewriting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variant {
    /// How it translates.
    pub scheme: Scheme,
    /// Which processors it is for.
    pub processor: Processor,
    /// Whether pointers are compared with dom0's first and last address.
    pub strict: bool,
    /// Whether each sequence also destroys every register and flag that
    /// liveness calls dead: a wrong liveness then shows.
    pub poison: bool,
}

const _: () = assert!(STACK_VIEW.is_multiple_of(twin_abi::window::SIZE));
// Of the bits 12 to 27 that the ways of a cache are predicted by, one differs between an address
// of a block and its place, whatever the block's address: nothing is carried into bit 21.
const _: () = assert!(WINDOW.is_multiple_of(1 << 21) && WINDOW >> 21 & 0x7f == 1);

impl Variant {
    /// A scheme as it is used on the processors that it is fastest on.
    pub fn plain(scheme: Scheme) -> Variant {
        Variant {
            scheme,
            processor: scheme.processor(),
            strict: false,
            poison: false,
        }
    }

    /// A scheme as it is used on this processor.
    pub fn here(scheme: Scheme) -> Variant {
        let plain = Variant::plain(scheme);
        match plain.is_executable() {
            true => plain,
            false => Variant {
                processor: Processor::Any,
                ..plain
            },
        }
    }

    const fn of(scheme: Scheme, processor: Processor) -> Variant {
        Variant {
            scheme,
            processor,
            strict: false,
            poison: false,
        }
    }

    /// Both schemes with a table as they are used.
    pub const PLAIN: [Variant; 2] = [
        Variant::of(Scheme::Stlb, Processor::Any),
        Variant::of(Scheme::Paper, Processor::Any),
    ];
    /// The schemes with a window, for each kind of processor.
    pub const WINDOWS: [Variant; 3] = [
        Variant::of(Scheme::Window32, Processor::Any),
        Variant::of(Scheme::Window, Processor::Bmi2),
        Variant::of(Scheme::Window, Processor::Any),
    ];
    /// The strict ones.
    pub const STRICT: [Variant; 2] = [
        Variant {
            strict: true,
            ..Variant::WINDOWS[0]
        },
        Variant {
            strict: true,
            ..Variant::WINDOWS[1]
        },
    ];
    /// All of them, and the poisoned default.
    pub const ALL: [Variant; 8] = [
        Variant::PLAIN[0],
        Variant::PLAIN[1],
        Variant {
            poison: true,
            ..Variant::PLAIN[0]
        },
        Variant::WINDOWS[0],
        Variant::WINDOWS[1],
        Variant::WINDOWS[2],
        Variant::STRICT[0],
        Variant::STRICT[1],
    ];

    /// [`Variant::ALL`] that this processor executes; says what is left out.
    pub fn executable() -> Vec<Variant> {
        let (executable, left_out): (Vec<Variant>, Vec<Variant>) = Variant::ALL
            .into_iter()
            .partition(|variant| variant.is_executable());
        for variant in left_out {
            eprintln!("skipped: {}", Error::Processor(variant.name()));
        }
        executable
    }

    /// Whether this processor has the instructions that the rewriter adds.
    pub fn is_executable(self) -> bool {
        has_instructions(self.processor)
    }

    /// As the rewriter takes it.
    pub fn options(self) -> svm_rewrite::Options {
        svm_rewrite::Options {
            processor: self.processor,
            strict: self.strict,
            poison: self.poison,
            ..svm_rewrite::Options::new(self.scheme)
        }
    }

    /// The contract of objects that are loaded into an instance of this variant.
    pub fn contract(self) -> Contract {
        Contract::of(Target::Hypervisor).with(self.scheme)
    }

    /// For tables and messages: the scheme, or what is special.
    pub fn name(self) -> &'static str {
        match self {
            Variant {
                poison: true,
                strict: true,
                ..
            } => "strict, poisoned",
            Variant {
                strict: true,
                scheme: Scheme::Window32,
                ..
            } => "window32, strict",
            Variant { strict: true, .. } => "window, strict",
            Variant {
                poison: true,
                scheme: Scheme::Window32,
                ..
            } => "window32, poisoned",
            Variant {
                poison: true,
                scheme: Scheme::Window,
                processor,
                ..
            } => match processor {
                Processor::Bmi2 => "window, poisoned",
                Processor::Any => "window for any processor, poisoned",
            },
            Variant {
                poison: false,
                scheme: Scheme::Window,
                processor: Processor::Any,
                ..
            } => "window for any processor",
            Variant { poison: true, .. } => "poisoned",
            Variant { scheme, .. } => scheme.as_str(),
        }
    }
}

/// Whether this processor is one of these.
fn has_instructions(processor: Processor) -> bool {
    match processor {
        Processor::Any => true,
        Processor::Bmi2 => is_x86_feature_detected!("bmi2"),
    }
}

/// A rewritten object at its addresses: the driver, or the hot routines.
pub struct LinkedCode {
    /// Where it is linked to run.
    pub base: u64,
    /// How it was rewritten.
    pub variant: Variant,
    /// The rewritten object.
    pub object: Object<'static>,
    /// Where its sections are.
    pub layout: Layout,
    /// Their bytes.
    pub linked: Vec<Linked>,
    /// The trampolines after them.
    pub trampolines: Trampolines,
    /// Where it may be entered.
    pub entries: Entries,
    /// What was proved of it.
    pub proof: Proof,
    /// Rows of `.twin.map`: section, offset in it, offset in the original.
    map: Vec<(u32, u32, u32)>,
}

/// Rewrites an object. [`LinkedCode::link_at`] verifies it.
///
/// # Errors
/// The rewriter's refusals.
pub fn rewrite(object: &Object<'_>, variant: Variant) -> Result<Object<'static>, Error> {
    Ok(svm_rewrite::rewrite(object, variant.options())?.object)
}

impl LinkedCode {
    /// Rewrites, verifies and links.
    ///
    /// # Errors
    /// As [`rewrite`] and [`LinkedCode::link_at`].
    pub fn new(stock: &Stock<'_>, variant: Variant) -> Result<LinkedCode, Error> {
        LinkedCode::link(stock, variant, rewrite(&stock.object, variant)?)
    }

    /// Verifies and links an object that was rewritten from the stock module.
    ///
    /// # Errors
    /// As [`LinkedCode::link_at`].
    pub fn link(
        stock: &Stock<'_>,
        variant: Variant,
        object: Object<'static>,
    ) -> Result<LinkedCode, Error> {
        let resolve = |name: &str, use_: SymbolUse| resolve(stock, name, use_);
        LinkedCode::link_at(CODE, variant, object, &resolve)
    }

    /// Links a rewritten object to run at `base`, with the addresses that
    /// `resolve` gives for its undefined names, which `docs/spec/object.md` lists. Only
    /// an object that the verifier proves to keep the contract of an instance of this
    /// variant is linked.
    ///
    /// # Errors
    /// The verifier's violations, the linker's, or a processor that cannot run it.
    pub fn link_at(
        base: u64,
        variant: Variant,
        object: Object<'static>,
        resolve: &dyn Fn(&str, SymbolUse) -> Option<u64>,
    ) -> Result<LinkedCode, Error> {
        let proof = svm_verify::verify(&object, variant.contract())
            .map_err(|violations| Error::Rejected(violations.to_string()))?;
        if !has_instructions(proof.processor) {
            return Err(Error::Processor(proof.scheme.as_str()));
        }
        // Only verified bytes are laid out, and only their entries are entered.
        let layout = layout(&object, base, |_, _| true)?;
        let trampolines = Trampolines::new(&object, layout.span().end, &resolve)?;
        let linked = link_as(
            variant.scheme,
            &object,
            &layout,
            &trampolines.resolver(&resolve),
        )?;
        let entries = Entries::of(&object, &layout, &linked)?;
        let map = map_rows(&object);
        Ok(LinkedCode {
            base,
            variant,
            object,
            layout,
            linked,
            trampolines,
            entries,
            proof,
            map,
        })
    }

    /// The code: first address, and address after the trampolines.
    pub fn text(&self) -> (u64, u64) {
        let end = self.trampolines.base + self.trampolines.bytes.len() as u64;
        (self.base, end.next_multiple_of(PAGE))
    }

    /// Where control at `rip` was in the original: name of the section and
    /// offset in it.
    pub fn original(&self, rip: u64) -> Option<(&str, u64)> {
        let (section, offset) = self.place(rip)?;
        let after = self
            .map
            .partition_point(|row| (row.0, row.1) <= (section.0, offset as u32));
        let row = self.map.get(after.checked_sub(1)?)?;
        (row.0 == section.0).then(|| (&*self.object.section(section).name, u64::from(row.2)))
    }

    /// Functions, and the parts that compilers split off, by address: for reports.
    pub fn labels(&self) -> Vec<(u64, &str)> {
        let code = |id: SectionId| self.object.section(id).is_code();
        let mut labels: Vec<_> = self
            .object
            .symbols()
            .filter_map(|(_, symbol)| match symbol.place {
                Place::In(id) if code(id) && !symbol.name.is_empty() => {
                    Some((self.layout.address(id)? + symbol.value, &*symbol.name))
                }
                _ => None,
            })
            .collect();
        labels.sort_unstable();
        labels
    }

    /// Addresses of the instructions that read tags of the translation table.
    pub fn lookups(&self) -> Vec<u64> {
        self.naming(STLB + twin_abi::stlb::TAG)
    }

    /// Addresses of the instructions that read a translation from the table: one for
    /// each look-up, executed on a hit.
    pub fn hits(&self) -> Vec<u64> {
        self.naming(STLB + twin_abi::stlb::XLATE)
    }

    fn naming(&self, displacement: u64) -> Vec<u64> {
        let code = self
            .linked
            .iter()
            .filter(|l| self.object.section(l.section).is_code());
        let instructions = code.flat_map(|l| {
            Decoder::with_ip(64, &l.bytes, l.address, DecoderOptions::NONE).into_iter()
        });
        instructions
            .filter(|instruction| instruction.memory_displacement64() == displacement)
            .map(|instruction| instruction.ip())
            .collect()
    }

    fn place(&self, rip: u64) -> Option<(SectionId, u64)> {
        let code = self
            .linked
            .iter()
            .filter(|l| self.object.section(l.section).is_code());
        code.map(|l| (l.section, l.address, l.bytes.len() as u64))
            .find(|(_, start, size)| rip.wrapping_sub(*start) < *size)
            .map(|(id, start, _)| (id, rip - start))
    }

    /// The code of all import stubs, [`STUB`] bytes each:
    /// ```text
    /// +0   49 ba GARBAGE       movabs $garbage, %r10    # calls destroy it
    /// +10  4d 85 d2            test   %r10, %r10        # and the flags
    /// +13  41 bb NUMBER        mov    $number, %r11d
    /// +19  ff 25 0f 00 00 00   jmp    *+40
    /// +40  .quad twin_import_entry
    /// ```
    /// and for a routine that is no C function and keeps every register
    /// ```text
    /// +0   41 53               push   %r11
    /// +2   41 bb NUMBER        mov    $number, %r11d
    /// +8   ff 15 1a 00 00 00   call   *+40
    /// +14  41 5b               pop    %r11
    /// +16  c3                  ret
    /// ```
    pub fn stubs() -> Vec<u8> {
        let mut all = vec![0xcc; IMPORTS.len() * STUB as usize];
        for (number, stub) in all.chunks_mut(STUB as usize).enumerate() {
            let set_number = [&[0x41, 0xbb][..], &(number as u32).to_le_bytes()].concat();
            let code = if IMPORTS[number].returns == Returns::KeepsAll {
                [
                    &[0x41, 0x53][..],
                    &set_number,
                    &[0xff, 0x15, 26, 0, 0, 0, 0x41, 0x5b, 0xc3],
                ]
                .concat()
            } else {
                let garbage = crate::random::mix(number as u64 + 1).to_le_bytes();
                let jump = [0xff, 0x25, 15, 0, 0, 0];
                [
                    &[0x49, 0xba][..],
                    &garbage,
                    &[0x4d, 0x85, 0xd2],
                    &set_number,
                    &jump,
                ]
                .concat()
            };
            stub[..code.len()].copy_from_slice(&code);
            stub[40..]
                .copy_from_slice(&(runtime::twin_import_entry as *const () as u64).to_le_bytes());
        }
        all
    }
}

/// Links as the scheme's code is to be linked.
///
/// # Errors
/// The linker's.
pub fn link_as(
    scheme: Scheme,
    object: &Object<'_>,
    layout: &Layout,
    resolve: &dyn Resolve,
) -> Result<Vec<Linked>, LinkError> {
    match scheme {
        Scheme::Paper | Scheme::Stlb => link(object, layout, resolve),
        Scheme::Window32 | Scheme::Window => link(object, layout, &LowHalves(resolve)),
    }
}

/// Maps what code of a scheme reads besides dom0's memory: the table, writable for the runtime;
/// or the mask and the bounds of dom0's pointers. Once in a process.
///
/// # Errors
/// The system call's, or the addresses are taken.
pub fn map_constants(scheme: Scheme, dom0: Bounds) -> io::Result<()> {
    match scheme {
        Scheme::Paper | Scheme::Stlb => mapping::new_memory(STLB, STLB_SIZE).map(|_| ()),
        Scheme::Window32 | Scheme::Window => {
            let mask = twin_abi::window::wide::MASK.to_le_bytes();
            let (lowest, highest) = (dom0.lowest.to_le_bytes(), dom0.highest.to_le_bytes());
            let words: [(u64, &[u8]); 3] = [
                (WINDOW_MASK, &mask),
                (BOUNDS[0], &lowest),
                (BOUNDS[1], &highest),
            ];
            code_memory::load(STLB, STLB + PAGE, &words)
        }
    }
}

/// The address of a name of the runtime that is data.
pub fn runtime_data(name: &str) -> Option<u64> {
    match name {
        names::STLB => Some(STLB),
        names::WINDOW => Some(WINDOW),
        names::WINDOW_MASK => Some(WINDOW_MASK),
        names::STACK_VIEW => Some(STACK_VIEW),
        names::LOWEST => Some(BOUNDS[0]),
        names::HIGHEST => Some(BOUNDS[1]),
        _ => None,
    }
}

/// The stub of import `number`.
pub fn stub(number: u32) -> u64 {
    STUBS + u64::from(number) * STUB
}

fn resolve(stock: &Stock<'_>, name: &str, use_: SymbolUse) -> Option<u64> {
    if let Some(name) = name.strip_prefix(names::VM_PREFIX) {
        return stock.section(name).or_else(|| dom0_address(name));
    }
    match (name, use_) {
        (names::STACK_VIEW, SymbolUse::Data) => return Some(NO_VIEW),
        (_, SymbolUse::Data) => return runtime_data(name),
        (_, SymbolUse::Call) => {}
    }
    runtime::entry(name).or_else(|| imports::number(name).map(stub))
}

/// Rows of `.twin.map`: section, offset in it, offset in the original's section.
pub fn map_rows(object: &Object<'_>) -> Vec<(u32, u32, u32)> {
    let Some(id) = object.section_named(sections::MAP) else {
        return Vec::new();
    };
    let word = |bytes: &[u8], i: usize| {
        u32::from_le_bytes(bytes[4 * i..4 * i + 4].try_into().expect("four bytes"))
    };
    let entries = object.section(id).data.chunks_exact(sections::MAP_ENTRY);
    entries
        .map(|entry| (word(entry, 0), word(entry, 1), word(entry, 2)))
        .collect()
}
