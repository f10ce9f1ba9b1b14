//! The hypervisor instance as code: the rewritten driver and the rewritten hot
//! routines, linked to each other, to dom0's data and to stubs.
//!
//! ```text
//! 0x5000_0000  hot.o, rewritten      0x5100_0000  e1000.ko, rewritten
//! 0x5700_0000  stubs                 0x5800_0000  the translation table, or
//!                                    0x6000_0000_0000  the window
//! ```
//!
//! Undefined names of a rewritten object resolve to (paper, 5.2)
//!
//! | name | address |
//! |---|---|
//! | `twin_vm:<section or symbol>` | dom0's: data exists once |
//! | `twin_stlb`, `twin_window` | the table, the window's start |
//! | `twin_stack_view` | how far above the driver's stack dom0 has the data stack |
//! | a runtime entry | the runtime's |
//! | a hot routine | the rewritten one, unless it is to be an upcall; for the driver by a stub that notes the lock, if it takes or frees one |
//! | a host service | a stub into the hypervisor's own code |
//! | anything else dom0 has | a stub that makes an upcall |

use std::collections::{HashMap, HashSet};

use elf_loader::consts::{STB_LOCAL, STT_FUNC, STT_NOTYPE};
use elf_loader::link::SymbolUse;
use elf_loader::{Object, Place};
use process_lab::entries::{self, Entries};
use process_lab::error::Error;
use process_lab::program::{self, LinkedCode, STUBS, Variant};
use process_lab::runtime::{self, CodemapEntry};
use twin_abi::names;

use crate::image::{KernelPlan, Module};
use crate::memory::Shift;

/// Where the rewritten hot routines are.
pub const HOT: u64 = 0x5000_0000;
/// Where the rewritten driver is.
pub const DRIVER: u64 = 0x5100_0000;
/// Bytes of a stub, the runtime's `TWIN_TESTBED_STUB`.
pub const STUB: u64 = 32;

/// What a stub does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StubDestination {
    /// Calls dom0's routine at this address.
    Upcall(u64),
    /// A service of the hypervisor itself, by its number in the list given.
    Host(usize),
    /// Never returns: the driver found its stack overwritten.
    StackCorrupted,
    /// Notes a lock that the driver takes or frees, then goes to the rewritten routine.
    Lock(LockRoutine),
}

/// A hot routine that takes or frees the lock that is its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockRoutine {
    /// Its name in hot.o.
    pub name: &'static str,
    /// Whether it frees the lock.
    pub frees: bool,
    /// The name of its stub.
    stub: &'static str,
}

const LOCKS: [LockRoutine; 4] = {
    const fn of(name: &'static str, stub: &'static str, frees: bool) -> LockRoutine {
        LockRoutine { name, frees, stub }
    }
    [
        of("_raw_spin_lock", "note _raw_spin_lock", false),
        of(
            "_raw_spin_lock_irqsave",
            "note _raw_spin_lock_irqsave",
            false,
        ),
        of("_raw_spin_unlock", "note _raw_spin_unlock", true),
        of(
            "_raw_spin_unlock_irqrestore",
            "note _raw_spin_unlock_irqrestore",
            true,
        ),
    ]
};

/// A routine that driver code reaches through the hypervisor.
#[derive(Clone, Debug)]
pub struct Stub {
    pub name: String,
    /// What it does.
    pub target: StubDestination,
}

/// The hypervisor instance, ready to be loaded.
pub struct Payload {
    /// The hot routines.
    pub hot: LinkedCode,
    pub driver: LinkedCode,
    /// Stubs by number.
    pub stubs: Vec<Stub>,
    /// Permitted targets of indirect calls, ascending.
    pub codemap: Vec<CodemapEntry>,
    /// Whether the verifier found that none of it touches a vector register.
    pub vector_free: bool,
}

/// The inputs of a payload.
pub struct Parts<'a> {
    /// dom0's objects and where they are.
    pub plan: &'a KernelPlan<'a>,
    /// How to rewrite both.
    pub variant: Variant,
    /// Hot routines that are to be upcalls nevertheless (paper, figure 10).
    pub upcalls: &'a HashSet<String>,
    /// Names of the hypervisor's own services.
    pub services: &'a [&'a str],
    /// How far from [`HOT`] and [`DRIVER`] the code is.
    pub shift: Shift,
}

impl Payload {
    /// Rewrites, verifies and links.
    ///
    /// # Errors
    /// A refusal, a violation, or an undefined name.
    ///
    /// # Panics
    /// If the plan lacks one of the objects.
    pub fn new(parts: &Parts<'_>) -> Result<Payload, Error> {
        let rewritten = |module| {
            let image = parts.plan.image(module);
            let image = image.unwrap_or_else(|| panic!("the plan has no {module}"));
            program::rewrite(&image.object, parts.variant)
        };
        Payload::link(parts, rewritten(Module::Hot)?, rewritten(Module::Driver)?)
    }

    /// Verifies and links what was rewritten before.
    ///
    /// # Errors
    /// A violation, or an undefined name.
    pub fn link(
        parts: &Parts<'_>,
        hot: Object<'static>,
        driver: Object<'static>,
    ) -> Result<Payload, Error> {
        let stubs = stubs(parts);
        let numbers = numbers(&stubs);
        let linker = Linker { parts, numbers };
        let none = Entries::default();
        let base = parts.shift.moved(HOT, 3);
        let hot = LinkedCode::link_at(base, parts.variant, hot, &|name, use_| {
            linker.resolve(Module::Hot, &none, name, use_)
        })?;
        let base = parts.shift.moved(DRIVER, 7);
        let driver = LinkedCode::link_at(base, parts.variant, driver, &|name, use_| {
            linker.resolve(Module::Driver, &hot.entries, name, use_)
        })?;
        let mut codemap = [hot.entries.codemap(), driver.entries.codemap()].concat();
        codemap.retain(|entry| !linker.is_upcall(entry.vm));
        let codemap = entries::distinct(codemap)?;
        let vector_free = !hot.proof.vectors && !driver.proof.vectors;
        Ok(Payload {
            hot,
            driver,
            stubs,
            codemap,
            vector_free,
        })
    }

    /// Hypervisor address of a hot routine, or else of a function of the driver: so a
    /// driver's own function cannot replace a hot routine of the same name.
    pub fn function(&self, name: &str) -> Option<u64> {
        let hot = self.hot.entries.exported(name);
        hot.or_else(|| self.driver.entries.function(name))
    }

    /// Which object's code `rip` is in, and where it was in the original:
    /// section and offset.
    pub fn original(&self, rip: u64) -> Option<(&'static str, &str, u64)> {
        if let Some((section, offset)) = self.driver.original(rip) {
            return Some(("e1000.ko", section, offset));
        }
        let (section, offset) = self.hot.original(rip)?;
        Some(("hot.o", section, offset))
    }
}

/// Where stub `number` is.
pub fn stub_address(number: usize) -> u64 {
    STUBS + number as u64 * STUB
}

/// Every routine that either object might call out to: dom0's whole kernel, hot
/// routines that are to be upcalls, and the hypervisor's services.
fn stubs(parts: &Parts<'_>) -> Vec<Stub> {
    let services = parts
        .services
        .iter()
        .enumerate()
        .map(|(number, name)| Stub {
            name: (*name).to_string(),
            target: StubDestination::Host(number),
        });
    let upcalls = kernel_functions(parts.plan)
        .into_iter()
        .map(|(name, address)| {
            let target = if name == "__stack_chk_fail" {
                StubDestination::StackCorrupted
            } else {
                StubDestination::Upcall(address)
            };
            Stub { name, target }
        });
    let forced = parts.upcalls.iter().filter_map(|name| {
        let target = StubDestination::Upcall(parts.plan.symbol(name)?);
        Some(Stub {
            name: name.clone(),
            target,
        })
    });
    let locks = LOCKS.iter().map(|lock| Stub {
        name: lock.stub.to_owned(),
        target: StubDestination::Lock(*lock),
    });
    let mut stubs: Vec<_> = services.chain(upcalls).chain(locks).collect();
    let known: HashSet<String> = stubs.iter().map(|stub| stub.name.clone()).collect();
    stubs.extend(forced.filter(|stub| !known.contains(&stub.name)));
    stubs.sort_by(|a, b| a.name.cmp(&b.name));
    stubs.dedup_by(|a, b| a.name == b.name);
    stubs
}

/// The functions that dom0's kernel defines for others, with their addresses.
fn kernel_functions(plan: &KernelPlan<'_>) -> Vec<(String, u64)> {
    let Some(kernel) = plan.image(Module::Kernel) else {
        return Vec::new();
    };
    let symbols = kernel.object.symbols();
    symbols
        .filter(|(_, symbol)| symbol.binding != STB_LOCAL)
        .filter(|(_, symbol)| matches!(symbol.kind, STT_FUNC | STT_NOTYPE))
        .filter(|(_, symbol)| symbol.place != Place::Undefined)
        .filter_map(|(_, symbol)| Some((symbol.name.to_string(), plan.symbol(&symbol.name)?)))
        .filter(|(_, address)| plan.is_code(*address))
        .collect()
}

fn numbers(stubs: &[Stub]) -> HashMap<String, usize> {
    let named = stubs.iter().enumerate();
    named.map(|(i, stub)| (stub.name.clone(), i)).collect()
}

struct Linker<'a> {
    parts: &'a Parts<'a>,
    numbers: HashMap<String, usize>,
}

impl Linker<'_> {
    /// Whether dom0's routine at `vm` was requested as an upcall although a rewritten
    /// one exists.
    fn is_upcall(&self, vm: u64) -> bool {
        let mut forced = self.parts.upcalls.iter();
        forced.any(|name| self.parts.plan.symbol(name) == Some(vm))
    }

    fn resolve(&self, module: Module, hot: &Entries, name: &str, use_: SymbolUse) -> Option<u64> {
        if let Some(name) = name.strip_prefix(names::VM_PREFIX) {
            return self.parts.plan.vm_address(module, name);
        }
        if use_ == SymbolUse::Data {
            return program::runtime_data(name);
        }
        if let Some(entry) = runtime::entry(name) {
            return Some(entry);
        }
        let hot = hot.exported(name);
        let hot = hot.filter(|_| !self.parts.upcalls.contains(name));
        let lock = LOCKS.iter().find(|lock| hot.is_some() && lock.name == name);
        if let Some(lock) = lock {
            return self.stub(lock.stub);
        }
        hot.or_else(|| self.stub(name))
    }

    fn stub(&self, name: &str) -> Option<u64> {
        self.numbers.get(name).map(|number| stub_address(*number))
    }
}
