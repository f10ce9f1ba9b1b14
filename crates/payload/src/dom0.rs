//! dom0's addresses: the kernel's symbols and the sections of loaded modules.
//!
//! `twin_vm:NAME` of a module means its section `NAME` if dom0 has one, else a symbol: the
//! kernel's, else one of another module. `/proc/kallsyms` has a line for each:
//!
//! ```text
//! ffffffff81a00000 T kfree
//! ffffffffc0123000 t e1000_clean    [e1000]
//! ```
//!
//! Exported symbols are global, which is an upper-case type. So static functions of the same
//! name are passed over.

use std::collections::{BTreeMap, HashMap};

use crate::code::PayloadCode;
use crate::refusal::{Part, Refusal};
use crate::table::hexadecimal;

/// dom0's addresses.
#[derive(Clone, Debug, Default)]
pub struct Dom0<'a> {
    /// The kernel's symbols.
    pub symbols: Kallsyms<'a>,
    /// The address of each section of each module, by module and section.
    pub sections: BTreeMap<(String, String), u64>,
}

/// A symbol of the kernel or of a module.
#[derive(Clone, Copy, Debug)]
struct Known {
    address: u64,
    global: bool,
    in_module: bool,
}

/// The symbols that `/proc/kallsyms` shows.
#[derive(Clone, Debug, Default)]
pub struct Kallsyms<'a> {
    known: HashMap<&'a str, Vec<Known>>,
}

impl<'a> Kallsyms<'a> {
    /// Reads the text.
    ///
    /// # Errors
    /// A line that is not understood; or that all addresses are zero, which is what the
    /// kernel shows to others than root.
    pub fn parse(text: &'a str) -> Result<Kallsyms<'a>, Refusal> {
        let mut known: HashMap<&str, Vec<Known>> = HashMap::new();
        let mut any = false;
        for (number, line) in text.lines().enumerate() {
            let Some((name, symbol)) = read(line) else {
                return Err(refuse(format!(
                    "line {}, `{}`, is no symbol; copy /proc/kallsyms as it is",
                    number + 1,
                    line.escape_debug()
                )));
            };
            any |= symbol.address != 0;
            known.entry(name).or_default().push(symbol);
        }
        match any {
            true if !text.ends_with('\n') => Err(refuse(
                "its last line has no end: it is cut off; copy /proc/kallsyms as it is".into(),
            )),
            true => Ok(Kallsyms { known }),
            false => Err(refuse(
                "it has no address but zero; copy /proc/kallsyms as root (kptr_restrict)".into(),
            )),
        }
    }

    /// The address of a symbol that modules may refer to.
    fn address(&self, name: &str) -> Result<Option<u64>, Vec<u64>> {
        let all = self.known.get(name).map_or(&[][..], Vec::as_slice);
        for in_module in [false, true] {
            let group = all.iter().filter(|s| s.global && s.in_module == in_module);
            let mut addresses: Vec<u64> = group.map(|s| s.address).collect();
            addresses.sort_unstable();
            addresses.dedup();
            match addresses[..] {
                [] => continue,
                [address] => return Ok(Some(address)),
                _ => return Err(addresses),
            }
        }
        Ok(None)
    }
}

fn read(line: &str) -> Option<(&str, Known)> {
    let mut words = line.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let symbol = Known {
        address: hexadecimal(address)?,
        global: kind.len() == 1 && kind.starts_with(|c: char| c.is_ascii_uppercase()),
        in_module: words.next().is_some(),
    };
    (kind.len() == 1).then_some((name, symbol))
}

impl Dom0<'_> {
    /// The address of `twin_vm:name` in code of `module`, which is `part` of the inputs.
    pub(crate) fn address(&self, part: Part, module: &str, name: &str) -> Result<u64, Refusal> {
        let key = (module.to_owned(), name.to_owned());
        if let Some(&address) = self.sections.get(&key) {
            return Ok(address);
        }
        if name.starts_with('.') {
            let why = format!(
                "it refers to section `{name}` of module `{module}`, which has no address in \
                 dom0; rewrite the module that is loaded, and give the directory with its \
                 sections"
            );
            return Err(Refusal::new(PayloadCode::NoAddress, part, why));
        }
        self.symbol(part, name)
    }

    /// The address of a symbol that modules may refer to.
    pub(crate) fn symbol(&self, part: Part, name: &str) -> Result<u64, Refusal> {
        let why = match self.symbols.address(name) {
            Ok(Some(0)) => format!(
                "it refers to `{name}`, whose address in dom0 is zero; copy /proc/kallsyms as \
                 root (kptr_restrict)"
            ),
            Ok(Some(address)) => return Ok(address),
            Ok(None) => format!(
                "it refers to `{name}`, which dom0's kernel does not have; copy /proc/kallsyms \
                 while the module is loaded"
            ),
            Err(several) => format!(
                "it refers to `{name}`, of which dom0's kernel has several, at {several:#x?}; \
                 give a text with the one that the module uses"
            ),
        };
        Err(Refusal::new(PayloadCode::NoAddress, part, why))
    }
}

fn refuse(why: String) -> Refusal {
    Refusal::new(PayloadCode::Dom0, Part::Kallsyms, why)
}
