//! dom0's three objects, laid out and linked: a plan made before any process is
//! forked, so that all processes agree on every address.
//!
//! ```text
//! e1000.ko ─┐                ┌─ bytes at addresses ── load ─> machine memory
//! hot.o    ─┼─ read, layout, ┼─ symbols, for people and for the hypervisor
//! kernel.o ─┘  link          └─ Space: which memory is where
//! ```
//!
//! Undefined symbols of one object are the global symbols of the others. Those
//! that begin with `host_` are Rust functions, out of a call's reach: each gets a
//! stub at [`FAR`], which is also its address when taken as data. Percpu
//! sections are linked at small addresses ([`PERCPU_LINK`]), one object's after
//! the other's, and copied to every percpu area.

pub(crate) mod bugs;
pub mod fields;
pub mod files;
pub(crate) mod names;
pub(crate) mod patch;
pub(crate) mod symbols;

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

use elf_loader::link::{Layout, Linked, Protection, Segment, SymbolUse, layout, link};
use elf_loader::{Object, Place, Section, SectionId};

use super::error::LiveError;
use super::memory::{
    self, CANARY, CPUS, DRIVER, FAR, HOT, IMAGE_ROOM, KERNEL, Machine, PERCPU_LINK, PERCPU_SIZE,
    Shift, Sizes, Space, VMEMMAP,
};
use crate::image::bugs::{Warning, warnings};
use crate::image::names::Names;
pub use crate::image::symbols::Host;
use crate::image::symbols::{Far, Globals};

/// One of dom0's objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Module {
    /// `e1000.ko`.
    Driver,
    /// `hot.o`.
    Hot,
    /// `kernel.o`.
    Kernel,
}

impl Module {
    /// Where it is linked.
    fn base(self, shift: Shift) -> u64 {
        match self {
            Module::Driver => DRIVER,
            Module::Hot => shift.moved(HOT, 3),
            Module::Kernel => shift.moved(KERNEL, 5),
        }
    }
}

impl fmt::Display for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Module::Driver => "e1000.ko",
            Module::Hot => "hot.o",
            Module::Kernel => "kernel.o",
        })
    }
}

/// How an import without a definition is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The plan fails and names them all.
    Refuse,
    /// It is linked to a `ud2` of its own: calling it is an oops that names it.
    Trap,
}

/// An object with its place.
#[derive(Debug)]
pub struct Image<'f> {
    /// Which of the objects.
    pub module: Module,
    /// As it was read.
    pub object: Object<'f>,
    /// Where its sections are, percpu sections at their small addresses.
    pub layout: Layout,
    /// Whole pages by protection, percpu sections left out.
    pub segments: Vec<Segment>,
    /// The bytes of its sections.
    pub linked: Vec<Linked>,
}

/// Everything that is known before the fork.
#[derive(Debug)]
pub struct KernelPlan<'f> {
    images: Vec<Image<'f>>,
    space: Space,
    globals: Globals,
    far: Far,
    percpu: Vec<u8>,
    names: Names,
    warnings: HashMap<u64, Warning>,
}

impl<'f> KernelPlan<'f> {
    /// Lays the objects out and links them.
    ///
    /// # Errors
    /// [`LiveError`] names the object and what is wrong with it.
    pub fn new(
        sizes: Sizes,
        files: &[(Module, &'f [u8])],
        host: Host<'_>,
        missing: Missing,
    ) -> Result<KernelPlan<'f>, LiveError> {
        KernelPlan::shifted(sizes, files, host, missing, Shift::default())
    }

    /// The same at other addresses.
    ///
    /// # Errors
    /// As [`KernelPlan::new`].
    pub fn shifted(
        sizes: Sizes,
        files: &[(Module, &'f [u8])],
        host: Host<'_>,
        missing: Missing,
        shift: Shift,
    ) -> Result<KernelPlan<'f>, LiveError> {
        let mut images = place(files, shift)?;
        let globals = Globals::new(&images)?;
        let far = Far::new(&images, &globals, host);
        if missing == Missing::Refuse && !far.missing.is_empty() {
            return Err(LiveError::Missing { names: far.missing });
        }
        // Every symbol has its address from here on.
        for image in &mut images {
            let resolve = |name: &str, _: SymbolUse| globals.get(name).or_else(|| far.get(name));
            image.linked = link(&image.object, &image.layout, &resolve)
                .map_err(|source| in_module(image.module, source))?;
            let address_of = |name: &str| globals.get(name).or_else(|| far.get(name));
            patch::apply(image.module, &image.object, &mut image.linked, &address_of)?;
        }
        let segments = images.iter().flat_map(|image| &image.segments);
        let space = Space::new(sizes, segments.chain(&far.segment()))?;
        Ok(KernelPlan {
            space,
            percpu: percpu_template(&images),
            names: Names::new(&images, &far),
            warnings: warnings(&images),
            images,
            globals,
            far,
        })
    }

    /// dom0's address space.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// An object, if it is part of the plan.
    pub fn image(&self, module: Module) -> Option<&Image<'f>> {
        self.images.iter().find(|image| image.module == module)
    }

    /// The dom0 address of a global symbol of any object. That of a percpu
    /// variable is its offset in each percpu area.
    pub fn symbol(&self, name: &str) -> Option<u64> {
        self.globals.get(name)
    }

    /// The dom0 address of a symbol that `module` defines, local or global.
    pub fn symbol_in(&self, module: Module, name: &str) -> Option<u64> {
        let image = self.image(module)?;
        let mut symbols = image.object.symbols();
        let (_, symbol) = symbols.find(|(_, s)| {
            s.name == name && !matches!(s.place, Place::Undefined | Place::Common)
        })?;
        image.address_of(symbol.place, symbol.value)
    }

    /// The dom0 address of a section of `module`.
    pub fn section(&self, module: Module, name: &str) -> Option<u64> {
        let image = self.image(module)?;
        image.layout.address(image.object.section_named(name)?)
    }

    /// Bytes of a section of `module`.
    pub fn section_size(&self, module: Module, name: &str) -> Option<u64> {
        let object = &self.image(module)?.object;
        Some(object.section(object.section_named(name)?).size)
    }

    /// What the symbol `twin_vm:<name>` of the rewritten `module` stands for:
    /// the dom0 address of the original's section or imported symbol.
    pub fn vm_address(&self, module: Module, name: &str) -> Option<u64> {
        self.section(module, name)
            .or_else(|| self.symbol(name))
            .or_else(|| self.far.get(name))
    }

    /// Imports without a definition ([`Missing::Trap`]).
    pub fn missing(&self) -> &[String] {
        &self.far.missing
    }

    /// Whether dom0 executes code there.
    pub fn is_code(&self, address: u64) -> bool {
        self.module_of(address).is_some() || self.far.range().contains(&address)
    }

    /// The addresses of a module's code.
    pub fn code(&self, module: Module) -> Option<Range<u64>> {
        let image = self.image(module)?;
        let code = |segment: &&Segment| segment.protection == Protection::Code;
        let segments = image.segments.iter().filter(code);
        segments
            .map(|segment| segment.addresses.clone())
            .reduce(|a, b| a.start.min(b.start)..a.end.max(b.end))
    }

    /// The module whose code is there.
    pub fn module_of(&self, address: u64) -> Option<Module> {
        let is_code = |segment: &Segment| {
            segment.protection == Protection::Code && segment.addresses.contains(&address)
        };
        let mut images = self.images.iter();
        images
            .find(|image| image.segments.iter().any(is_code))
            .map(|image| image.module)
    }

    /// `name+0x12 (module)`, or the number if nothing is known there.
    pub fn describe(&self, address: u64) -> String {
        self.names.describe(address)
    }

    /// The function that begins exactly at `address`: a permitted target of an
    /// indirect call.
    pub fn function_at(&self, address: u64) -> Option<(Module, &str)> {
        self.names.function_at(address)
    }

    /// File (as the dom0 address of its name) and line of the WARN whose `ud2`
    /// is at `address`; none for a BUG.
    pub fn warning_at(&self, address: u64) -> Option<(u64, u16)> {
        let warning = self.warnings.get(&address)?;
        warning.is_warning.then_some((warning.file, warning.line))
    }

    /// Writes images and percpu areas into the machine's memory, in their initial
    /// state. No code runs on them meanwhile.
    pub fn load(&self, machine: &Machine) {
        for image in &self.images {
            for section in image.linked.iter().filter(|l| l.address >= DRIVER) {
                self.store(machine, section.address, &section.bytes);
            }
        }
        self.store(machine, FAR, &self.far.bytes);
        for cpu in 0..CPUS {
            self.store(machine, memory::percpu(cpu), &self.percpu);
            self.store(machine, memory::percpu(cpu) + 0x28, &CANARY.to_le_bytes());
        }
        self.store_variables(machine);
    }

    /// Sets variables of kernel.o that describe the machine, if they exist.
    fn store_variables(&self, machine: &Machine) {
        let set = |name: &str, offset: u64, bytes: &[u8]| {
            if let Some(address) = self.symbol(name) {
                self.store(machine, address + offset, bytes);
            }
        };
        let direct_map = self.space.direct_map();
        set("page_offset_base", 0, &direct_map.to_le_bytes());
        set("vmemmap_base", 0, &VMEMMAP.to_le_bytes());
        for cpu in 0..CPUS {
            let area = memory::percpu(cpu);
            set("__per_cpu_offset", 8 * cpu as u64, &area.to_le_bytes());
            set("this_cpu_off", area, &area.to_le_bytes());
            set("cpu_number", area, &(cpu as u32).to_le_bytes());
        }
    }

    fn store(&self, machine: &Machine, dom0: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let at = self.space.machine_range(dom0, bytes.len() as u64);
        at.and_then(|at| machine.write(at, bytes))
            .expect("the space was made from the same layout");
    }
}

impl Image<'_> {
    pub(crate) fn address_of(&self, place: Place, value: u64) -> Option<u64> {
        match place {
            Place::In(section) => Some(self.layout.address(section)?.wrapping_add(value)),
            Place::Absolute => Some(value),
            Place::Undefined | Place::Common => None,
        }
    }
}

fn in_module(module: Module, source: elf_loader::link::LinkError) -> LiveError {
    LiveError::Link { module, source }
}

// ---- Placing -----------------------------------------------------------------

fn is_percpu(section: &Section<'_>) -> bool {
    section.name.starts_with(".data..percpu")
}

fn place<'f>(files: &[(Module, &'f [u8])], shift: Shift) -> Result<Vec<Image<'f>>, LiveError> {
    let mut percpu_end = PERCPU_LINK;
    let mut images = Vec::new();
    for (module, bytes) in files {
        images.push(place_one(*module, bytes, shift, &mut percpu_end)?);
    }
    if percpu_end > PERCPU_SIZE {
        return Err(LiveError::NoRoom {
            what: "percpu data".to_owned(),
            needed: percpu_end,
            room: PERCPU_SIZE,
        });
    }
    Ok(images)
}

fn place_one<'f>(
    module: Module,
    bytes: &'f [u8],
    shift: Shift,
    percpu_end: &mut u64,
) -> Result<Image<'f>, LiveError> {
    let object = elf_loader::read(bytes).map_err(|source| LiveError::Read { module, source })?;
    let far = layout(&object, module.base(shift), |_, section| {
        !is_percpu(section)
    })
    .map_err(|source| in_module(module, source))?;
    let size = (far.span().end).saturating_sub(module.base(Shift::default()));
    if size > IMAGE_ROOM {
        return Err(LiveError::NoRoom {
            what: module.to_string(),
            needed: size,
            room: IMAGE_ROOM,
        });
    }
    let near: HashMap<SectionId, u64> = object
        .sections()
        .filter(|(_, section)| is_percpu(section))
        .map(|(id, section)| {
            let start = percpu_end.next_multiple_of(section.align.max(64));
            *percpu_end = start + section.size;
            (id, start)
        })
        .collect();
    Ok(Image {
        module,
        layout: Layout::from_fn(&object, |id| {
            near.get(&id).copied().or_else(|| far.address(id))
        }),
        segments: far.segments().to_vec(),
        linked: Vec::new(),
        object,
    })
}

fn percpu_template(images: &[Image<'_>]) -> Vec<u8> {
    let mut template = vec![0; PERCPU_SIZE as usize];
    let sections = images.iter().flat_map(|image| &image.linked);
    for section in sections.filter(|section| section.address < DRIVER) {
        let start = section.address as usize;
        template[start..start + section.bytes.len()].copy_from_slice(&section.bytes);
    }
    template
}
