//! What the kernel and Xen say in their logs while something is done: the words behind an
//! error number.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::OFlags;

use crate::system::System;

/// The longest record of `/dev/kmsg` (kernel/printk: `PRINTKRB_RECORD_MAX` and its prefix).
const RECORD: usize = 8192;
/// What lines of dom0's modules begin with.
const OURS: &str = "twin: ";

/// A place in the kernel's log.
#[derive(Debug)]
pub struct KernelLog {
    file: Option<File>,
}

impl KernelLog {
    /// Its end. Where the log cannot be read, there will be no lines.
    pub fn mark(system: &System) -> KernelLog {
        let mut options = OpenOptions::new();
        let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
        let options = options.read(true).custom_flags(nonblocking);
        let at_end = |mut file: File| file.seek(SeekFrom::End(0)).ok().map(|_| file);
        let file = options.open(system.path("dev/kmsg")).ok().and_then(at_end);
        KernelLog { file }
    }

    /// What dom0's modules have written since, without what all their lines begin with.
    pub fn lines(&mut self) -> Vec<String> {
        let mut text = Vec::new();
        let mut record = [0; RECORD];
        while let Some(file) = &mut self.file {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(length) => text.extend_from_slice(&record[..length]),
                // Records that were overwritten meanwhile: the next ones are there.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        ours(&String::from_utf8_lossy(&text))
    }
}

/// The messages of our modules in records `priority,number,time,flags;message`
/// (Documentation/ABI/testing/dev-kmsg). Lines that begin with a blank belong to a record.
fn ours(records: &str) -> Vec<String> {
    let records = records.lines().filter(|line| !line.starts_with(' '));
    let messages = records.filter_map(|record| record.split_once(';'));
    messages
        .filter_map(|(_, message)| message.strip_prefix(OURS))
        .map(str::to_owned)
        .collect()
}

/// Xen's own log; `None` if `xl` cannot show it.
pub fn xen_log(system: &System) -> Option<String> {
    system.run("xl", &["dmesg"]).ok()
}

/// What was added to a log, of which the oldest lines may be gone since.
pub fn added<'t>(before: &str, after: &'t str) -> Vec<&'t str> {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let kept = (0..=before.len()).find(|&gone| after.starts_with(&before[gone..]));
    let known = before.len() - kept.unwrap_or(before.len());
    after[known..].to_vec()
}

/// The last words of Xen's loader or of the platform among lines of Xen's log:
/// `(XEN) twin: not applied: ...`, `(XEN) livepatch: twin: ...`.
pub fn xens_reason(lines: &[&str]) -> Option<String> {
    let said = |line: &&&str| line.contains("twin: ") || line.contains("livepatch: ");
    let line = lines.iter().rfind(said)?;
    let start = line.find("livepatch: ").or_else(|| line.find("twin: "))?;
    Some(line[start..].trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_lines_are_taken() {
        let records = "6,1,10,-;e1000: eth0 NIC Link is Up\n3,2,11,-;twin: lo is not a card of the driver e1000\n SUBSYSTEM=net\n";
        assert_eq!(ours(records), ["lo is not a card of the driver e1000"]);
    }

    #[test]
    fn lines_that_a_log_lost_are_not_new() {
        assert_eq!(added("a\nb\n", "a\nb\nc\n"), ["c"]);
        assert_eq!(added("a\nb\n", "b\nc\nd\n"), ["c", "d"]);
        assert_eq!(added("a\nb\n", "c\n"), ["c"]);
        assert_eq!(added("a\n", "a\n"), Vec::<&str>::new());
    }

    #[test]
    fn the_last_word_is_the_platforms_or_the_loaders() {
        let lines = [
            "(XEN) [12.3] twin: not applied: CET is on: start Xen with cet=no",
            "(XEN) d1 gone",
        ];
        assert_eq!(
            xens_reason(&lines).as_deref(),
            Some("twin: not applied: CET is on: start Xen with cet=no")
        );
        assert_eq!(xens_reason(&lines[1..]), None);
    }
}
