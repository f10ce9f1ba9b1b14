//! A test in a process of its own, which has one hypervisor instance.

use process_lab::process;

/// Fails, with `name` said, unless `test` comes to its end there.
pub fn in_child(name: &str, test: impl FnOnce()) {
    let mut child = process::fork(|| {
        test();
        0
    })
    .expect("fork");
    child.wait();
    let fate = child.fate();
    assert_eq!(fate.as_deref(), Some("ended with status 0"), "{name}");
}
