//! The progress of a measurement, on standard error if that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar; gone when dropped. It starts no thread: the testbed forks.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar for `what`; not shown until it is known of how much.
    pub fn new(what: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
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

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
