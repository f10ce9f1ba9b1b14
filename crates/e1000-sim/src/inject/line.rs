//! A fault as a line of JSON.

use serde::Serialize;

use super::fault::{FaultEnding, FaultKind, Struck};
use crate::hypervisor::instance::DriverAbort;

/// What a fault was and became.
#[derive(Debug, Serialize)]
pub(super) struct Line<'f> {
    fault: u64,
    kind: &'static str,
    /// What was changed; nothing if there was nothing to change.
    struck: Option<String>,
    /// A column of the table.
    ending: &'static str,
    /// The ending in words.
    said: String,
    /// The abort, if there was one: its place, and the locks that it held.
    abort: Option<&'f DriverAbort>,
}

impl<'f> Line<'f> {
    pub(super) fn new(
        fault: u64,
        kind: FaultKind,
        struck: Option<&Struck>,
        ending: &'f FaultEnding,
    ) -> Line<'f> {
        let (name, abort) = match ending {
            FaultEnding::Aborted(report) => ("aborted", Some(report)),
            FaultEnding::TimeLimit(report) => ("time limit", Some(report)),
            FaultEnding::Detected(_) => ("detected", None),
            FaultEnding::Noticed(_) => ("by guest", None),
            FaultEnding::Harmless => ("harmless", None),
        };
        Line {
            fault,
            kind: kind.as_str(),
            struck: struck.map(Struck::to_string),
            ending: name,
            said: ending.to_string(),
            abort,
        }
    }

    /// # Panics
    /// Never: all of it is text and numbers.
    pub(super) fn json(&self) -> String {
        serde_json::to_string(self).expect("text and numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hypervisor::instance::Lock;
    use process_lab::runtime;

    #[test]
    fn an_abort_has_its_locks() {
        let report = DriverAbort {
            kind: runtime::ABORT_TIME,
            reason: 0,
            address: 0,
            place: "e1000_xmit_frame+0x7 (e1000.ko)".to_owned(),
            locks: vec![Lock {
                name: Some("netdev_queue._xmit_lock"),
                address: 0x1000,
                by: "hot_transmit".to_owned(),
            }],
            more_locks: 2,
            import: None,
        };
        let ending = FaultEnding::TimeLimit(report);
        let said = "aborted: time limit exceeded at e1000_xmit_frame+0x7 (e1000.ko): 0x0; \
                    locks held: netdev_queue._xmit_lock 0x1000 taken by hot_transmit, and 2 more";
        assert_eq!(ending.to_string(), said);
        let json = Line::new(3, FaultKind::HeldLock, None, &ending).json();
        let wanted = r#""locks":[{"name":"netdev_queue._xmit_lock","address":4096,"by":"hot_transmit"}],"more_locks":2"#;
        assert!(json.contains(wanted), "{json}");
        assert!(json.contains(r#""ending":"time limit""#), "{json}");
    }
}
