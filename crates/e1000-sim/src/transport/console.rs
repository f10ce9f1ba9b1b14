//! dom0's console output, in memory that other processes read.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::SpinLock;

const SIZE: usize = 1 << 18;

/// The last 256 KiB of text. All zeroes is an empty one.
#[repr(C)]
#[derive(Debug)]
pub struct Console {
    lock: SpinLock,
    produced: AtomicU64,
    bytes: UnsafeCell<[u8; SIZE]>,
}

// SAFETY: the bytes are reached under the lock only.
unsafe impl Sync for Console {}

impl Console {
    /// Appends text.
    pub fn write(&self, text: &[u8]) {
        let _guard = self.lock.lock();
        let start = self.produced.load(Ordering::Relaxed);
        // SAFETY: under the lock.
        let bytes = unsafe { &mut *self.bytes.get() };
        for (i, byte) in text.iter().enumerate() {
            bytes[(start as usize + i) % SIZE] = *byte;
        }
        self.produced
            .store(start + text.len() as u64, Ordering::Release);
    }

    /// How much was ever written: the mark for [`Console::since`].
    pub fn mark(&self) -> u64 {
        self.produced.load(Ordering::Acquire)
    }

    /// What was written since `mark`, as far as it is still there.
    pub fn since(&self, mark: u64) -> String {
        let _guard = self.lock.lock();
        let end = self.produced.load(Ordering::Relaxed);
        let start = mark.clamp(end.saturating_sub(SIZE as u64), end);
        // SAFETY: under the lock.
        let bytes = unsafe { &*self.bytes.get() };
        let text: Vec<u8> = (start..end).map(|i| bytes[i as usize % SIZE]).collect();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// For a thread that was interrupted in `write` and never goes on.
    pub(crate) fn abandon(&self) {
        self.lock.release_if_mine();
    }
}

#[cfg(test)]
mod tests {
    use crate::transport::mailbox::Mailbox;

    #[test]
    fn text_is_kept_since_a_mark() {
        let mailbox = Mailbox::new().expect("memory");
        let console = &mailbox.get().console;
        console.write(b"first\n");
        let mark = console.mark();
        assert_eq!(console.since(mark), "");
        console.write(b"second\n");
        assert_eq!(console.since(mark), "second\n");
        assert_eq!(console.since(0), "first\nsecond\n");
        (0..super::SIZE).for_each(|_| console.write(b"x"));
        assert_eq!(console.since(0).len(), super::SIZE);
    }
}
