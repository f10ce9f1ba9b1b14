//! Code addresses of either worker as places in the original module.

use std::fmt;

use process_lab::program::LinkedCode;
use process_lab::stock::Stock;

/// A place in the original's code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginalPlace {
    pub section: String,
    /// Offset in it.
    pub offset: u64,
    /// The function there, and the offset in it.
    pub function: Option<(String, u64)>,
}

impl fmt::Display for OriginalPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.function {
            Some((name, offset)) => write!(
                f,
                "{name}+{offset:#x} ({}+{:#x})",
                self.section, self.offset
            ),
            None => write!(f, "{}+{:#x}", self.section, self.offset),
        }
    }
}

/// The place of a dom0 code address.
pub fn native(stock: &Stock<'_>, address: u64) -> Option<OriginalPlace> {
    let (section, offset) = stock.place(address)?;
    Some(site(stock, &stock.object.section(section).name, offset))
}

/// The place that an address of rewritten code stands for.
pub fn rewritten(stock: &Stock<'_>, program: &LinkedCode, address: u64) -> Option<OriginalPlace> {
    let (section, offset) = program.original(address)?;
    Some(site(stock, section, offset))
}

fn site(stock: &Stock<'_>, section: &str, offset: u64) -> OriginalPlace {
    let address = stock.section(section).map(|base| base + offset);
    let function = address.and_then(|address| {
        let found = stock
            .functions
            .iter()
            .find(|f| address.wrapping_sub(f.address) < f.size)?;
        Some((found.name.clone(), address - found.address))
    });
    OriginalPlace {
        section: section.to_owned(),
        offset,
        function,
    }
}
