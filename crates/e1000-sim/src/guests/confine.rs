//! What a guest's process keeps: a forked process has all that its parent had mapped and open.
//!
//! Memory that processes share is given up but for the guest's own: unmapped, and without the file it cannot be
//! mapped again. What is private to the parent is a copy of the time of the fork. So guests are started
//! before dom0 and the hypervisor instance are, and the copy has nothing of theirs.

use std::io;
use std::ops::Range;

/// The first file that is no standard stream.
const FIRST_FILE: libc::c_uint = 3;

/// Gives up shared memory except for these addresses, whole pages, and all files but the standard streams. Only in a
/// process that has one thread and uses none of it any more.
///
/// # Errors
/// The system's; then something is left, and the process is not to go on.
pub fn confine(keep: &[Range<u64>]) -> io::Result<()> {
    let maps = std::fs::read_to_string("/proc/self/maps")?;
    for range in maps
        .lines()
        .filter_map(shared)
        .flat_map(|range| without(range, keep))
    {
        let length = (range.end - range.start) as usize;
        // SAFETY: nothing in this process refers to it, by the caller's promise.
        if unsafe { libc::munmap(range.start as *mut libc::c_void, length) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    // SAFETY: plain system call; nothing here uses the files any more.
    match unsafe { libc::syscall(libc::SYS_close_range, FIRST_FILE, libc::c_uint::MAX, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The addresses in a line of `/proc/PID/maps`, if the memory is shared (proc(5): `START-END rwxs ...`).
fn shared(line: &str) -> Option<Range<u64>> {
    let (addresses, rest) = line.split_once(' ')?;
    if rest.as_bytes().get(3) != Some(&b's') {
        return None;
    }
    let (start, end) = addresses.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(number(start)?..number(end)?)
}

/// What is in `range` and in none of these, in any order.
fn without(range: Range<u64>, keep: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut left = vec![range];
    for kept in keep {
        let parts = left.into_iter().flat_map(|part| {
            let below = part.start..part.end.min(kept.start);
            let above = part.start.max(kept.end)..part.end;
            [below, above]
        });
        left = parts.filter(|part| !part.is_empty()).collect();
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_lines_count() {
        let line = "7f00-8000 rw-s 00001000 00:01 2 /memfd:x (deleted)";
        assert_eq!(shared(line), Some(0x7f00..0x8000));
        assert_eq!(shared("7f00-8000 rw-p 00000000 00:00 0 [heap]"), None);
        assert_eq!(shared("x"), None);
    }

    #[test]
    fn what_is_kept_is_cut_out() {
        assert_eq!(without(0..10, &[]), vec![0..10]);
        assert_eq!(without(0..10, &[2..4, 6..8]), vec![0..2, 4..6, 8..10]);
        assert_eq!(without(0..10, &[6..8, 2..4]), vec![0..2, 4..6, 8..10]);
        assert_eq!(without(3..10, &[0..5, 9..20]), vec![5..9]);
        assert!(without(3..10, &[0..8, 8..20]).is_empty());
    }
}
