//! Symbols (target `hypervisor`): what each may be used for, and which are entries.

use std::collections::HashSet;

use elf_loader::consts::{
    STB_GLOBAL, STB_LOCAL, STB_WEAK, STT_FILE, STT_FUNC, STT_NOTYPE, STT_OBJECT, STT_SECTION,
};
use elf_loader::{Place, SectionId, Symbol};
use twin_abi::names;

use super::{Image, Meaning};
use crate::findings::{Findings, ViolationCode};
use crate::insn::{CodeAt, Gpr, Routine};
use crate::targets::NamedMemory;

/// Whether a loader may enter the code at this symbol, whatever its name: it is a
/// function's symbol, or visible to other objects. Each of these places of an object for
/// a hypervisor is interpreted as the start of a function, with an empty frame. Loaders
/// enter code only at these places and through the codemap.
pub fn is_entry(symbol: &Symbol<'_>) -> bool {
    let defined = matches!(symbol.place, Place::In(_));
    defined && (symbol.kind == STT_FUNC || symbol.binding != STB_LOCAL)
}

impl<'o> Image<'o> {
    pub(super) fn check_symbols(&mut self, findings: &mut Findings<'o>) {
        let exported: HashSet<&str> = self
            .object
            .symbols()
            .filter(|(_, s)| s.binding != STB_LOCAL && s.place != Place::Undefined)
            .map(|(_, s)| &*s.name)
            .collect();
        self.check_twice(findings);
        for (id, symbol) in self.object.symbols() {
            let meaning = if id.0 == 0 {
                Ok(Meaning::Unusable("it is the null symbol"))
            } else {
                self.judge_symbol(symbol, &exported)
            };
            let meaning = meaning.unwrap_or_else(|reason| {
                findings.object(
                    ViolationCode::Symbol,
                    format!("symbol `{}`: {reason}", symbol.name),
                );
                Meaning::Unusable(reason)
            });
            self.symbols.push(meaning);
            if let (true, Place::In(section)) = (is_entry(symbol), symbol.place) {
                self.add_entry(symbol, section, findings);
            }
        }
    }

    /// Code is entered at this symbol from outside.
    fn add_entry(&mut self, symbol: &Symbol<'_>, section: SectionId, findings: &mut Findings<'o>) {
        match self.number(section) {
            Some(section) => self.entered.push(CodeAt {
                section,
                offset: i64::try_from(symbol.value).unwrap_or(-1),
            }),
            None => findings.object(
                ViolationCode::Symbol,
                format!("symbol `{}`: a function outside the code", symbol.name),
            ),
        }
    }

    /// A visible name is defined once; otherwise the loader would choose a definition.
    fn check_twice(&self, findings: &mut Findings<'o>) {
        let visible = |s: &Symbol<'_>| s.binding != STB_LOCAL && s.place != Place::Undefined;
        let mut seen = HashSet::new();
        for (_, symbol) in self.object.symbols().filter(|(_, s)| visible(s)) {
            if !seen.insert(&*symbol.name) {
                let name = &symbol.name;
                findings.object(
                    ViolationCode::Symbol,
                    format!("symbol `{name}`: it is defined twice"),
                );
            }
        }
    }

    fn judge_symbol(
        &self,
        symbol: &Symbol<'_>,
        exported: &HashSet<&str>,
    ) -> Result<Meaning, &'static str> {
        if !matches!(symbol.binding, STB_LOCAL | STB_GLOBAL | STB_WEAK) {
            return Err("its binding is none of local, global and weak");
        }
        if !matches!(
            symbol.kind,
            STT_NOTYPE | STT_OBJECT | STT_FUNC | STT_SECTION | STT_FILE
        ) {
            return Err("symbols of this type are not supported: how they resolve is not verified");
        }
        match symbol.place {
            Place::Common => Err("a common symbol is writable data"),
            Place::Absolute if symbol.kind == STT_FILE => Ok(Meaning::Unusable("it names a file")),
            Place::Absolute => Err("an absolute symbol may be any address"),
            Place::Undefined => judge_undefined(symbol, exported, self.rules.named_memory),
            Place::In(section) => self.judge_defined(symbol, section),
        }
    }

    fn judge_defined(
        &self,
        symbol: &Symbol<'_>,
        section: SectionId,
    ) -> Result<Meaning, &'static str> {
        let local = symbol.binding == STB_LOCAL;
        if !local && symbol.name.starts_with(names::RUNTIME_PREFIX) {
            return Err("an object may not define names of the runtime");
        }
        let Some(number) = self.number(section) else {
            return if local {
                Ok(Meaning::Unusable("it lies outside the code"))
            } else {
                Err("it exports something that is not code")
            };
        };
        match (symbol.binding, i64::try_from(symbol.value)) {
            (STB_WEAK, _) => Ok(Meaning::Unusable(
                "another definition may replace a weak one",
            )),
            (_, Ok(offset)) => Ok(Meaning::Code(CodeAt {
                section: number,
                offset,
            })),
            (_, Err(_)) => Err("its value is outside its section"),
        }
    }
}

/// Whether kernels or compilers give a name like this to routines that continue at an address in a
/// register or on the stack (arch/x86/lib/retpoline.S of Linux 5.10 to 7.3; LLVM,
/// lib/Target/X86/X86IndirectThunks.cpp): a loader that resolved it would let the driver choose.
fn goes_anywhere(name: &str) -> bool {
    const BEGIN: [&str; 5] = [
        "__x86_indirect_",
        "__x86_retpoline_",
        "__llvm_retpoline_",
        "__llvm_external_retpoline_",
        "__llvm_lvi_thunk_",
    ];
    // Code that runs before the kernel's has its addresses has copies of this name.
    let name = name.strip_prefix("__pi_").unwrap_or(name);
    BEGIN.iter().any(|begin| name.starts_with(begin)) || name.ends_with("_return_thunk")
}

fn judge_undefined(
    symbol: &Symbol<'_>,
    exported: &HashSet<&str>,
    memory: NamedMemory,
) -> Result<Meaning, &'static str> {
    let name = &*symbol.name;
    if name.is_empty() || !matches!(symbol.kind, STT_NOTYPE | STT_OBJECT | STT_FUNC) {
        return Err("an undefined symbol without a name");
    }
    if symbol.binding == STB_LOCAL {
        return Err("an undefined symbol cannot be local");
    }
    if exported.contains(name) {
        return Err("it is both defined and undefined");
    }
    if let Some(there) = name.strip_prefix(names::VM_PREFIX) {
        return if there.is_empty() {
            Err("it names nothing in dom0")
        } else {
            Ok(Meaning::Vm)
        };
    }
    if goes_anywhere(name) {
        return Ok(Meaning::Unusable("it transfers control to any address"));
    }
    // Loaders leave a linker's own name unresolved (`simplify_symbols`, kernel/module/main.c).
    if name == "_GLOBAL_OFFSET_TABLE_" {
        return Ok(Meaning::Unusable("a symbol that may stay unresolved: zero"));
    }
    let meaning = match name {
        names::CALL => Meaning::Routine(Routine::Indirect),
        names::WARN => Meaning::Routine(Routine::Keeps),
        names::BUG => Meaning::Routine(Routine::Bug),
        _ if names::PORT_IN.contains(&name) => Meaning::Routine(Routine::PortIn),
        _ if names::PORT_OUT.contains(&name) => Meaning::Routine(Routine::Keeps),
        _ if name.starts_with(names::RUNTIME_PREFIX) => match memory {
            NamedMemory::Window => of_window(name)?,
            NamedMemory::WideWindow if name == names::WINDOW_MASK => Meaning::WindowMask,
            NamedMemory::WideWindow => of_window(name)?,
            NamedMemory::None | NamedMemory::SymbolsAndPerCpu => of_table(name)?,
        },
        _ => Meaning::Routine(Routine::Imported),
    };
    match symbol.binding {
        // gABI chapter 4: an unresolved weak symbol is zero.
        STB_WEAK => Ok(Meaning::Unusable("a weak symbol may stay unresolved: zero")),
        _ => Ok(meaning),
    }
}

/// Names of the runtime in schemes with a table.
fn of_table(name: &str) -> Result<Meaning, &'static str> {
    match (name, name.strip_prefix(names::SLOW_PREFIX)) {
        (names::STLB, _) => Ok(Meaning::Table),
        (names::SMASHED, _) => Ok(Meaning::Routine(Routine::Bug)),
        (_, Some(register)) => Ok(Meaning::Routine(Routine::Slow(slow_register(register)?))),
        _ => Err("the runtime has no such name in this scheme"),
    }
}

/// Names of the runtime in schemes with a window.
fn of_window(name: &str) -> Result<Meaning, &'static str> {
    match name {
        names::WINDOW => Ok(Meaning::Window),
        names::STACK_VIEW => Ok(Meaning::StackView),
        names::LOWEST | names::HIGHEST => Ok(Meaning::Bound),
        names::WILD => Ok(Meaning::Routine(Routine::Bug)),
        _ => Err("the runtime has no such name in this scheme"),
    }
}

/// The register of `twin_slow_<name>`.
pub fn slow_register(name: &str) -> Result<Gpr, &'static str> {
    const ORDER: [&str; 16] = [
        "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12",
        "r13", "r14", "r15",
    ];
    let number = ORDER
        .iter()
        .position(|&n| n == name && names::SLOW_REGISTERS.contains(&n));
    number
        .map(|n| Gpr(n as u8))
        .ok_or("there is no slow path for that register")
}
