//! The progress of a measurement, on standard error if that is a terminal.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// A bar; gone when dropped. It starts no thread: the testbed forks.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `what`; not shown until it is known of how much.
    pub fn new(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len}, {left} left");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.set_style(style.with_key("left", write_left));
        bar.set_message(what.to_owned());
        Progress(bar)
    }

    /// Sets how much is done, and of how much.
    pub fn set(&self, done: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(done);
        if self.0.is_hidden() {
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
    }
}

/// The library's own estimate follows the last steps, and is days after the first long one.
fn write_left(state: &ProgressState, out: &mut dyn Write) {
    let left = left(state.elapsed(), state.pos(), state.len().unwrap_or(0));
    // What cannot be formatted is not shown.
    let _ = write!(out, "{:#}", HumanDuration(left));
}

/// What is left of the time, if the rest takes as long for each as what is done.
fn left(elapsed: Duration, done: u64, all: u64) -> Duration {
    let rest = all.saturating_sub(done) as f64 / done.max(1) as f64;
    elapsed.mul_f64(rest)
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_takes_as_long_as_what_is_done() {
        let minute = Duration::from_secs(60);
        assert_eq!(left(minute, 22, 44), minute);
        assert_eq!(left(minute, 40, 44), minute / 10);
        assert_eq!(left(minute, 44, 44), Duration::ZERO);
        assert_eq!(left(minute, 50, 44), Duration::ZERO);
        assert_eq!(left(Duration::ZERO, 0, 44), Duration::ZERO);
    }
}
