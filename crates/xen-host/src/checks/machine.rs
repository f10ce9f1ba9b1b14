//! The machine: what the platform has room for, and what its code may meet.

use super::Verdict::Unknown;
use super::{Check, Row};
use crate::code::XenCode;
use crate::facts::Facts;

/// A machine with so many MiB has some above 4 GiB, since not all below are memory.
const TOO_MUCH: u64 = 4096;
/// One with so few has none there: the hole for devices begins above.
const LITTLE: u64 = 2048;

pub fn processor(facts: &Facts) -> Check {
    let row = Row(XenCode::Processor, "processor", "BMI2");
    match facts.bmi2 {
        Some(true) => row.judge(true, "it has BMI2", ""),
        Some(false) => row.judge(
            false,
            "it has no BMI2, which the checks of scheme `window` use (pext)",
            "use a machine with BMI2: Intel since Haswell, AMD since Excavator",
        ),
        None => row.judge(false, "/proc/cpuinfo shows no flags", "mount /proc"),
    }
}

fn number(facts: &Facts, name: &str) -> Option<u64> {
    facts.xl.as_ref().ok()?.number(name)
}

/// Xen's own limit, if it was started with one of 4 GiB or less (`mem=`).
fn limited(facts: &Facts) -> bool {
    let line = facts
        .xl
        .as_ref()
        .ok()
        .and_then(|xl| xl.value("xen_commandline"));
    let mut words = line.unwrap_or_default().split_whitespace();
    let limit = words.rfind(|word| word.starts_with("mem="));
    limit
        .and_then(|word| mebibytes(&word[4..]))
        .is_some_and(|mib| mib <= TOO_MUCH)
}

/// A size as Xen reads it (`parse_size_and_unit`): without a unit it is KiB.
fn mebibytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: u64 = digits.parse().ok()?;
    match &text[digits.len()..] {
        "T" | "t" => number.checked_mul(1 << 20),
        "G" | "g" => number.checked_mul(1 << 10),
        "M" | "m" => Some(number),
        "K" | "k" | "" => Some(number >> 10),
        "B" | "b" => Some(number >> 20),
        _ => None,
    }
}

pub fn memory(facts: &Facts) -> Check {
    let row = Row(XenCode::Memory, "memory", "all of it below 4 GiB");
    let remedy = "start Xen with mem=4G: what is above is then not used";
    match number(facts, "total_memory") {
        Some(mib) if mib >= TOO_MUCH => row.judge(false, format!("{mib} MiB"), remedy),
        Some(mib) if mib <= LITTLE || limited(facts) => row.judge(true, format!("{mib} MiB"), ""),
        Some(mib) => row.check(
            Unknown,
            format!("{mib} MiB, of which some may be above"),
            remedy,
        ),
        None => row.check(Unknown, "`xl info` does not show total_memory", remedy),
    }
}

pub fn cet(facts: &Facts) -> Check {
    let row = Row(XenCode::Cet, "CET", "off in Xen");
    let remedy = "start Xen with cet=no";
    match facts.cet {
        Some(false) => row.judge(true, "off in Xen", ""),
        Some(true) => row.judge(false, "Xen has turned it on", remedy),
        None => row.check(Unknown, "the beginning of Xen's log is gone", remedy),
    }
}

#[cfg(test)]
mod tests {
    use super::mebibytes;

    #[test]
    fn sizes_are_read_as_xen_reads_them() {
        let sizes = [
            "4G", "4096M", "4194304", "2g", "1T", "4294967296B", "x", "4GB",
        ];
        let expected = [
            Some(4096),
            Some(4096),
            Some(4096),
            Some(2048),
            Some(1 << 20),
            Some(4096),
            None,
            None,
        ];
        assert_eq!(sizes.map(mebibytes), expected);
    }
}
