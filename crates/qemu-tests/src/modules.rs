//! Modules for the guest: stock ones, rewritten for `--target linux`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use elf_loader::consts::STT_FUNC;
use elf_loader::{Object, Place, modinfo};
use iced_x86::{Decoder, DecoderOptions};
use svm_rewrite::{Accesses, Options, Scheme, Site, Target};
use svm_verify::Contract;
use twin_abi::names;

use super::{Error, io, of_kernel, package, target};

/// A rewritten module.
pub struct Module {
    /// As the kernel loads it.
    pub bytes: Vec<u8>,
    /// Where its functions begin: section name and offset.
    functions: BTreeMap<String, (String, u64)>,
    /// Where sequences spill: function, and an offset in it at which words are
    /// pushed.
    spills: Vec<(String, u64)>,
}

/// A module of the stock kernel, by its path below `kernel/`, as it is.
///
/// # Errors
/// It is not there.
pub fn stock(path: &str) -> Result<Vec<u8>, Error> {
    read(&package("modules/kernel").join(path))
}

/// A module that `make support` builds for the kernel that is booted.
///
/// # Errors
/// It is not there.
pub fn support(name: &str) -> Result<Vec<u8>, Error> {
    read(&of_kernel("support").join(name))
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    if !path.exists() {
        return Err(Error::Missing {
            what: "a kernel module",
            path: path.to_owned(),
        });
    }
    io(path.display().to_string(), std::fs::read(path))
}

/// A rewritten module that a build left below `target/`, verified. The places where
/// its sequences spill are not known.
///
/// # Errors
/// It is not there, or is refused.
pub fn built(path: &str) -> Result<Module, Error> {
    let path = target(path);
    verified(&path, read(&path)?)
}

/// A module that was rewritten elsewhere, verified.
///
/// # Errors
/// It is refused.
pub fn verified(name: &Path, bytes: Vec<u8>) -> Result<Module, Error> {
    let fail = |why: String| Error::Module {
        module: name.to_owned(),
        why,
    };
    let object = elf_loader::read(&bytes).map_err(|e| fail(e.to_string()))?;
    svm_verify::verify(&object, Contract::of(svm_verify::Target::Linux))
        .map_err(|violations| fail(violations.list[0].to_string()))?;
    let functions = functions(&object);
    Ok(Module {
        bytes,
        functions,
        spills: Vec::new(),
    })
}

/// Rewrites a module.
///
/// # Errors
/// The module is refused, or the verifier rejects the result.
pub fn rewrite(name: &str, bytes: &[u8], scheme: Scheme) -> Result<Module, Error> {
    rewrite_accesses(name, bytes, scheme, Accesses::All)
}

/// The same, with these accesses translated, and verified by that contract.
///
/// # Errors
/// See [`rewrite`].
pub fn rewrite_accesses(
    name: &str,
    bytes: &[u8],
    scheme: Scheme,
    accesses: Accesses,
) -> Result<Module, Error> {
    let fail = |why: String| Error::Module {
        module: PathBuf::from(name),
        why,
    };
    let object = elf_loader::read(bytes).map_err(|e| fail(e.to_string()))?;
    let options = Options {
        report: true,
        accesses,
        ..Options::of(Target::Linux, scheme)
    };
    let rewritten =
        svm_rewrite::rewrite(&object, options).map_err(|refusals| fail(refusals[0].to_string()))?;
    let bytes = elf_loader::write(&rewritten.object).map_err(|e| fail(e.to_string()))?;
    let reread = elf_loader::read(&bytes).map_err(|e| fail(e.to_string()))?;
    let contract = Contract::of(svm_verify::Target::Linux)
        .with(scheme)
        .confining(accesses);
    svm_verify::verify(&reread, contract)
        .map_err(|violations| fail(violations.list[0].to_string()))?;
    let functions = functions(&rewritten.object);
    let spilled = rewritten.sites.iter().filter(|s| !s.spills.is_empty());
    let spills = spilled
        .filter_map(|site| {
            let (section, start) = functions.get(&site.function)?;
            let at = behind_pushes(&rewritten.object, site)?;
            (**section == *site.section).then(|| (site.function.clone(), at - start))
        })
        .collect();
    Ok(Module {
        bytes,
        functions,
        spills,
    })
}

/// Whether a module says that twin has rewritten it.
pub fn is_marked(bytes: &[u8]) -> bool {
    let object = elf_loader::read(bytes).ok();
    object.is_some_and(|object| !modinfo::values_of_key(&object, "twin").is_empty())
}

/// A module as it is, to compare with. No sequence spills in it.
///
/// # Errors
/// It is no object.
pub fn original(name: &str, bytes: Vec<u8>) -> Result<Module, Error> {
    let functions = match elf_loader::read(&bytes) {
        Ok(object) => functions(&object),
        Err(error) => {
            return Err(Error::Module {
                module: PathBuf::from(name),
                why: error.to_string(),
            });
        }
    };
    Ok(Module {
        bytes,
        functions,
        spills: Vec::new(),
    })
}

fn functions(object: &Object<'_>) -> BTreeMap<String, (String, u64)> {
    let functions = object.symbols.iter().filter(|s| s.kind == STT_FUNC);
    let placed = functions.filter_map(|s| match s.place {
        Place::In(id) => Some((
            s.name.to_string(),
            (object.section(id).name.to_string(), s.value),
        )),
        _ => None,
    });
    placed.collect()
}

/// The instruction of a site's sequence that follows its `push`es.
fn behind_pushes(object: &Object<'_>, site: &Site) -> Option<u64> {
    let section = object.section(object.section_named(&site.section)?);
    let (start, end) = (site.emitted.start, site.emitted.end);
    let code = &section.data[start as usize..end as usize];
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let behind = decoder.iter().nth(site.spills.len())?;
    Some(behind.ip())
}

impl Module {
    /// Bytes of a function, out-of-line parts included; 0 if there is none.
    pub fn size(&self, name: &str) -> u64 {
        let object = elf_loader::read(&self.bytes).ok();
        let function = object
            .iter()
            .flat_map(|o| &o.symbols)
            .find(|s| s.kind == STT_FUNC && s.name == name);
        function.map_or(0, |s| s.size)
    }

    /// Whether a check's call of the slow path returns to that place in a function.
    pub fn returns_from_slow_path(&self, name: &str, offset: u64) -> bool {
        // The call's distance is its last four bytes.
        const DISTANCE: u64 = 4;
        let (Ok(object), Some((section, start))) =
            (elf_loader::read(&self.bytes), self.functions.get(name))
        else {
            return false;
        };
        let Some(section) = object.section_named(section) else {
            return false;
        };
        let relocations = &object.section(section).relocations;
        relocations.iter().any(|r| {
            r.offset + DISTANCE == start + offset
                && object.symbol(r.symbol).name.starts_with(names::SLOW_PREFIX)
        })
    }

    /// Whether the module has a function of that name.
    pub fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// The names of its functions.
    pub fn function_names(&self) -> impl Iterator<Item = &str> {
        self.functions.keys().map(String::as_str)
    }

    /// The names that it takes from the kernel and from other modules.
    pub fn imports(&self) -> Vec<String> {
        let object = elf_loader::read(&self.bytes).ok();
        let symbols = object.iter().flat_map(|object| &object.symbols);
        let undefined = symbols.filter(|s| s.place == Place::Undefined);
        undefined.map(|s| s.name.to_string()).collect()
    }

    /// Places at which a sequence has pushed words, as `function` and offset: at
    /// most `each` of each of these functions.
    pub fn spilled(&self, functions: &[&str], each: usize) -> Vec<(String, u64)> {
        let of = |name: &&str| {
            let spills = self.spills.iter().filter(move |(f, _)| f == *name);
            spills.take(each).cloned().collect::<Vec<_>>()
        };
        functions.iter().flat_map(of).collect()
    }

    /// How many sequences spill, by function.
    pub fn spills(&self) -> BTreeMap<&str, usize> {
        let mut count = BTreeMap::new();
        for (function, _) in &self.spills {
            *count.entry(function.as_str()).or_default() += 1;
        }
        count
    }
}
