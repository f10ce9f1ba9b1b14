//! The modules of the stock kernel's package by name, and what each needs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use elf_loader::modinfo;

use super::{Error, io, package};

/// All modules.
pub struct Distribution {
    /// Where each is, by name as the kernel has it (`-` is `_`).
    modules: BTreeMap<String, PathBuf>,
    /// Names of what other series have as modules and this kernel's image has in itself.
    built_in: BTreeSet<String>,
}

/// A module's name as the kernel has it.
pub fn normal(name: &str) -> String {
    name.replace('-', "_")
}

impl Distribution {
    /// The package that `make stock` unpacks.
    ///
    /// # Errors
    /// It is not there.
    pub fn stock() -> Result<Distribution, Error> {
        let list = package("modules/modules.builtin");
        let list = std::fs::read_to_string(&list).map_err(|_| Error::Missing {
            what: "the stock kernel's list of what it has in itself",
            path: list,
        })?;
        let names = list.lines().filter_map(|line| Path::new(line).file_stem());
        let mut distribution = Distribution {
            modules: BTreeMap::new(),
            built_in: names.map(|name| normal(&name.to_string_lossy())).collect(),
        };
        distribution.add_below(package("modules/kernel"))?;
        Ok(distribution)
    }

    /// All modules below a directory, too, in place of those of the same names.
    ///
    /// # Errors
    /// It is not there.
    pub fn add_below(&mut self, directory: PathBuf) -> Result<(), Error> {
        let mut left = vec![directory];
        while let Some(directory) = left.pop() {
            let entries = std::fs::read_dir(&directory).map_err(|_| Error::Missing {
                what: "a directory of kernel modules",
                path: directory.clone(),
            })?;
            for entry in entries.flatten() {
                let path = entry.path();
                match path.extension() {
                    _ if path.is_dir() => left.push(path),
                    Some(e) if e == "ko" => {
                        let name = path.file_stem().unwrap_or_default().to_string_lossy();
                        self.modules.insert(normal(&name), path.clone());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Name and version of the package of the kernel image.
    ///
    /// # Errors
    /// It is not there.
    pub fn version() -> Result<String, Error> {
        let path = package("VERSION");
        let text = io(path.display().to_string(), std::fs::read_to_string(&path))?;
        Ok(text.trim().to_owned())
    }

    /// Where the module of that name is.
    pub fn path(&self, name: &str) -> Option<&Path> {
        self.modules.get(&normal(name)).map(PathBuf::as_path)
    }

    /// The modules whose path has this in it.
    pub fn below(&self, part: &str) -> Vec<&str> {
        let inside = |(_, path): &(&String, &PathBuf)| path.to_string_lossy().contains(part);
        let names = self.modules.iter().filter(inside);
        names.map(|(name, _)| name.as_str()).collect()
    }

    /// These modules and all their dependencies, in an order in which they can be
    /// loaded, without those that the kernel has in itself.
    ///
    /// # Errors
    /// One is not in the package, or cannot be read.
    pub fn in_order(&self, names: &[&str]) -> Result<Vec<String>, Error> {
        let mut order = Vec::new();
        for name in names {
            self.add(&normal(name), &mut order)?;
        }
        Ok(order)
    }

    fn add(&self, name: &str, order: &mut Vec<String>) -> Result<(), Error> {
        let is_built_in = self.path(name).is_none() && self.built_in.contains(name);
        if is_built_in || order.iter().any(|known| known == name) {
            return Ok(());
        }
        let needs = Needs::of(&self.read(name)?);
        for needed in &needs.modules {
            self.add(needed, order)?;
        }
        for wanted in &needs.softly {
            // An algorithm's name is an alias; the module that implements it in C has
            // another name.
            let names = [wanted.clone(), format!("{wanted}_generic")];
            if let Some(name) = names.iter().find(|name| self.path(name).is_some()) {
                self.add(name, order)?;
            }
        }
        order.push(name.to_owned());
        Ok(())
    }

    /// A module's bytes.
    ///
    /// # Errors
    /// It is not in the package, or cannot be read.
    pub fn read(&self, name: &str) -> Result<Vec<u8>, Error> {
        let path = self.path(name).ok_or_else(|| Error::Missing {
            what: "a module of this name in the stock kernel's package",
            path: name.into(),
        })?;
        io(path.display().to_string(), std::fs::read(path))
    }
}

/// A module's dependencies, from its `.modinfo`.
struct Needs {
    /// `depends=`: modules whose symbols it imports.
    modules: Vec<String>,
    /// `softdep=pre:`: modules that it requests when it is loaded.
    softly: Vec<String>,
}

impl Needs {
    fn of(module: &[u8]) -> Needs {
        let object = elf_loader::read(module).ok();
        let list = |key: &str, prefix: &str, between: char| -> Vec<String> {
            let values = object
                .iter()
                .flat_map(|object| modinfo::values_of_key(object, key));
            let named = values.filter_map(|value| value.strip_prefix(prefix));
            let names = named.flat_map(|list| list.split(between));
            names.filter(|name| !name.is_empty()).map(normal).collect()
        };
        Needs {
            modules: list("depends", "", ','),
            softly: list("softdep", "pre: ", ' '),
        }
    }
}
