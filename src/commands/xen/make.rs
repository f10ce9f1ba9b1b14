//! The payload for this start of dom0, in memory: the driver's module and the hot routines are
//! rewritten and verified, then linked with the runtime and dom0's addresses, and verified
//! again.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use ::payload::{Dom0, Inputs, Kallsyms, Refusal, Rewritten, Table};
use command_line::failure::Failure;
use command_line::input::{self, Input};
use command_line::temporary::ScratchDirectory;
use svm_rewrite::{Options, Scheme, Target};
use svm_verify::Contract;
use xen_host::{DRIVER, Facts, HOT, Kit, System};

use crate::commands::payload::{self, Names};
use crate::object;

/// What a payload is made of, but for dom0's addresses.
pub(super) struct Parts<'s> {
    system: &'s System,
    driver: Module,
    hot: Module,
    runtime: Input,
    table: Table,
    names: Names,
}

/// A module of dom0's, and its rewritten code.
struct Module {
    name: &'static str,
    original: Input,
    rewritten: Vec<u8>,
}

/// A payload in a file that goes away with this.
pub(super) struct PayloadFile {
    path: PathBuf,
    /// What was proved, in words.
    pub proved: String,
    _directory: ScratchDirectory,
}

impl AsRef<Path> for PayloadFile {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl<'s> Parts<'s> {
    /// Reads and rewrites all that does not depend on dom0's addresses.
    pub fn read(
        system: &'s System,
        kit: &Kit,
        facts: &Facts,
        strict: bool,
    ) -> Result<Parts<'s>, Failure> {
        let release = facts.release.as_deref().unwrap_or_default();
        let build_id = facts.build_id.as_deref().unwrap_or_default();
        let driver = match &facts.driver.file {
            Some((file, _)) => file.clone(),
            None => return Err(Failure::access(DRIVER, "there is no file of this module")),
        };
        let hot = kit.module(release, HOT);
        let (platform, table) = (kit.platform(), kit.table(build_id));
        let names = Names {
            driver: input::name(&driver),
            hot: input::name(&hot),
            runtime: input::name(&platform),
            table: input::name(&table),
            kallsyms: input::name(&system.path("proc/kallsyms")),
            sections: input::name(&system.path("sys/module")),
            output: "the payload".to_owned(),
        };
        let refused = |refusal: Refusal| names.failure(refusal);
        let parsed = Table::parse(&payload::text(&table)?).map_err(refused)?;
        parsed.is_of(build_id).map_err(refused)?;
        Ok(Parts {
            system,
            driver: Module::confined(DRIVER, &driver, strict)?,
            hot: Module::confined(HOT, &hot, strict)?,
            runtime: Input::read_file(&platform)?,
            table: parsed,
            names,
        })
    }

    /// Makes the payload with the addresses that dom0 has now, in a directory that nobody else
    /// can look into.
    pub fn make(&self) -> Result<PayloadFile, Failure> {
        for module in [&self.driver, &self.hot] {
            module.is_loaded(self.system)?;
        }
        let refused = |refusal: Refusal| self.names.failure(refusal);
        let kallsyms = payload::text(&self.system.path("proc/kallsyms"))?;
        let dom0 = Dom0 {
            symbols: Kallsyms::parse(&kallsyms).map_err(refused)?,
            sections: self.sections()?,
        };
        let read = |bytes, name: &str| {
            elf_loader::read(bytes).map_err(|error| Failure::unreadable(name, &error))
        };
        let driver = read(&self.driver.rewritten, &self.names.driver)?;
        let hot = read(&self.hot.rewritten, &self.names.hot)?;
        let runtime = self.runtime.object()?;
        let built = ::payload::build(&Inputs {
            driver: Rewritten {
                object: &driver,
                module: self.driver.name,
            },
            hot: Some(Rewritten {
                object: &hot,
                module: self.hot.name,
            }),
            runtime: &runtime,
            table: &self.table,
            dom0: &dom0,
        });
        let built = built.map_err(|error| self.names.error(error))?;
        let (bytes, version) = (built.bytes.len(), self.table.version());
        let verified = payload::verified(&built);
        write(
            &built.bytes,
            format!("{version}: a payload of {bytes} bytes; {verified}"),
        )
    }

    /// Where the modules' sections are. That of the per-CPU section, which is not below
    /// /sys/module, dom0's module tells.
    fn sections(&self) -> Result<BTreeMap<(String, String), u64>, Failure> {
        let mut found = BTreeMap::new();
        let modules = self.system.path("sys/module");
        for module in [&self.driver, &self.hot] {
            payload::sections(&modules, module.name, &mut found)?;
        }
        let percpu = payload::address(&self.system.path("sys/kernel/twin/hot_percpu"))?;
        found.insert((HOT.to_owned(), ".data..percpu".to_owned()), percpu);
        Ok(found)
    }
}

impl Module {
    /// A module rewritten for the window that Xen has, and proved to be confined to it.
    fn confined(name: &'static str, file: &Path, strict: bool) -> Result<Module, Failure> {
        let options = Options {
            strict,
            ..Options::of(Target::Hypervisor, Scheme::Window)
        };
        let contract = Contract::of(Target::Hypervisor).with(Scheme::Window);
        let original = Input::read_file(file)?;
        let made = object::make(&original, options, Some(contract))?;
        Ok(Module {
            name,
            original,
            rewritten: made.bytes,
        })
    }

    /// Whether what was rewritten is what dom0 runs: its data is what the payload uses.
    fn is_loaded(&self, system: &System) -> Result<(), Failure> {
        let original = self.original.object()?;
        xen_host::loaded_from(system, self.name, &original)
            .map_err(|refusal| Failure::refused(&self.original.name, refusal.code, &refusal.why))
    }
}

/// `xen-livepatch load` names a payload by its file.
fn write(bytes: &[u8], proved: String) -> Result<PayloadFile, Failure> {
    const NOBODY_ELSE: u32 = 0o700;
    let directory = ScratchDirectory::create("twin-xen-")
        .map_err(|error| Failure::access("a temporary directory", input::describe(&error)))?;
    let path = directory.path().join("twin.livepatch");
    let failed =
        |error: &std::io::Error| Failure::access(input::name(&path), input::describe(error));
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(NOBODY_ELSE))
        .map_err(|error| failed(&error))?;
    fs::write(&path, bytes).map_err(|error| failed(&error))?;
    Ok(PayloadFile {
        path,
        proved,
        _directory: directory,
    })
}
