//! Bugs that the shim must catch: of the heap, and sleeping where it is forbidden.

use e1000_sim::dom0::{CommandError, Dom0};

use crate::setup::{heap_is_sound, with_dom0, write};

/// The kernel's last message when it cannot go on.
fn dies(dom0: &mut Dom0<'_, '_>, function: &str, arguments: &[u64]) -> String {
    match dom0.call(function, arguments) {
        Err(CommandError::Oops { console, .. }) => console,
        other => panic!("{function} went on: {other:?}"),
    }
}

#[test]
fn a_second_free_is_a_bug() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let object = dom0.call("__kmalloc", &[100, 0])?.value;
        dom0.call("__kmalloc", &[100, 0])?;
        dom0.call("kfree", &[object])?;
        let text = dies(dom0, "kfree", &[object]);
        assert!(text.contains("of what is free already"), "{text}");
        Ok(())
    });
}

#[test]
fn a_write_after_the_free_is_found() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let object = dom0.call("__kmalloc", &[100, 0])?.value;
        dom0.call("__kmalloc", &[100, 0])?;
        dom0.call("kfree", &[object])?;
        write(dom0, object + 77, b"x");
        assert_eq!(dom0.call("kernel_check_heap", &[])?.value, 1);
        let text = dies(dom0, "__kmalloc", &[100, 0]);
        assert!(text.contains("was written at +77"), "{text}");
        Ok(())
    });
}

#[test]
fn memory_is_reused_and_runs_out() {
    with_dom0(|dom0| {
        dom0.boot()?;
        for size in [1u64, 32, 33, 100, 2048, 2049, 5000, 70_000] {
            let first = dom0.call("__kmalloc", &[size, 0])?.value;
            let aligned = size.next_power_of_two().clamp(32, 4096);
            assert_eq!(first % aligned, 0, "{size}");
            dom0.call("kfree", &[first])?;
        }
        assert_eq!(dom0.call("__kmalloc", &[0, 0])?.value, 16, "ZERO_SIZE_PTR");
        let mut taken = Vec::new();
        loop {
            match dom0.call("__kmalloc", &[1 << 20, 0])?.value {
                0 => break,
                address => taken.push(address),
            }
        }
        assert!(taken.len() > 40 && taken.len() < 64, "{} MiB", taken.len());
        for address in taken {
            dom0.call("kfree", &[address])?;
        }
        heap_is_sound(dom0)
    });
}

#[test]
fn sleeping_with_a_lock_held_is_a_bug() {
    with_dom0(|dom0| {
        dom0.boot()?;
        let lock = dom0.give("lock", &[0; 64])?;
        dom0.call("_raw_spin_lock", &[lock])?;
        let text = dies(dom0, "msleep", &[1]);
        assert!(text.contains("sleeping while atomic"), "{text}");
        Ok(())
    });
}
