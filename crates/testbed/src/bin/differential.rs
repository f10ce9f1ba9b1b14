//! Placeholder replaced by its author.
fn main() {}
