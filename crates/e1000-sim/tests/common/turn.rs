//! A test's turn: it forks, and a child has copies of the locks that other threads hold, such as
//! a decoder's table that is just made. So no other test of the program runs meanwhile.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits for it. Held to the end of the test.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
