//! What Xen's own tools tell: `xl info`, `xen-livepatch list`.

use std::collections::BTreeMap;

use crate::system::{ProgramError, System};

/// The lines `NAME : VALUE` of `xl info`.
#[derive(Clone, Debug, Default)]
pub struct XlInfo {
    values: BTreeMap<String, String>,
}

/// A payload in Xen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Its name.
    pub name: String,
    /// `APPLIED`, or another state.
    pub state: String,
}

impl Loaded {
    /// Whether Xen runs it.
    pub fn is_applied(&self) -> bool {
        self.state.starts_with("APPLIED")
    }
}

impl XlInfo {
    /// Asks `xl`.
    ///
    /// # Errors
    /// It is not there, or fails.
    pub fn read(system: &System) -> Result<XlInfo, ProgramError> {
        let text = system.run("xl", &["info"])?;
        let pairs = text.lines().filter_map(|line| line.split_once(':'));
        let pairs = pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
        Ok(XlInfo {
            values: pairs.collect(),
        })
    }

    /// A value.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// A value that is a decimal number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name)?.parse().ok()
    }
}

/// The payloads that Xen has. Its list has a heading and a rule, then `NAME | STATE | ...`.
///
/// # Errors
/// `xen-livepatch` is not there, or fails: a Xen without livepatching.
pub fn payloads(system: &System) -> Result<Vec<Loaded>, ProgramError> {
    let text = system.run("xen-livepatch", &["list"])?;
    let row = |line: &str| {
        let (name, rest) = line.split_once('|')?;
        let state = rest.split('|').next().unwrap_or_default();
        Some(Loaded {
            name: name.trim().to_owned(),
            state: state.trim().to_owned(),
        })
    };
    let rows = text.lines().filter_map(row);
    Ok(rows.filter(|row| row.name != "ID").collect())
}
