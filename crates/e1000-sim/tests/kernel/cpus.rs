//! Upcalls of another CPU, concurrent with dom0's own work.

use e1000_sim::dom0::CommandError;
use e1000_sim::hypervisor::upcall::{self, Upcall};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;

use crate::setup::{MILLISECOND, SECOND, counters, heap_is_sound, with_link};

/// Calls as CPU `cpu`, as the hypervisor's driver does.
fn upcall(mailbox: &Mailbox, cpu: usize, function: u64, arguments: [u64; 3]) -> u64 {
    let [a, b, c] = arguments;
    let upcall = Upcall {
        function,
        arguments: [a, b, c, 0, 0, 0],
        stack: &[],
        window: 0..0,
    };
    let limits = Limits::of_seconds(60);
    // SAFETY: no window.
    let result = unsafe { upcall::call(&mailbox.upcalls[cpu], &upcall, &limits) };
    result
        .unwrap_or_else(|error| panic!("CPU {cpu}: {error}"))
        .0
}

#[test]
fn two_cpus_use_the_kernel_at_once() {
    with_link(|dom0| {
        let symbol = |name| dom0.plan().symbol(name).expect("kernel.o has it");
        let (kmalloc, kfree) = (symbol("__kmalloc"), symbol("kfree"));
        let (sleep, lock, unlock) = (
            symbol("msleep"),
            symbol("mutex_lock"),
            symbol("mutex_unlock"),
        );
        let timeout = symbol("kernel_tx_timeout");
        let before = counters(dom0)?;
        let mutex = dom0.call("__kmalloc", &[64, 0])?.value;
        dom0.call("__mutex_init", &[mutex, 0, 0])?;
        let mailbox = dom0.mailbox();
        std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                for i in 0..300u64 {
                    let size = 1 + i * 37 % 6000;
                    let objects = [0, 1, 2].map(|_| upcall(mailbox, 1, kmalloc, [size, 0, 0]));
                    assert!(objects.iter().all(|object| *object != 0));
                    upcall(mailbox, 1, lock, [mutex, 0, 0]);
                    upcall(mailbox, 1, sleep, [1, 0, 0]);
                    upcall(mailbox, 1, unlock, [mutex, 0, 0]);
                    if i % 50 == 0 {
                        upcall(mailbox, 1, timeout, [0; 3]);
                    }
                    for object in objects {
                        upcall(mailbox, 1, kfree, [object, 0, 0]);
                    }
                }
            });
            while !other.is_finished() {
                dom0.call("mutex_lock", &[mutex])?;
                dom0.call("msleep", &[2])?;
                dom0.call("mutex_unlock", &[mutex])?;
                let object = dom0.call("__kmalloc", &[77, 0])?.value;
                dom0.tick(MILLISECOND)?;
                dom0.call("kfree", &[object])?;
            }
            other.join().expect("the other CPU");
            Ok::<(), CommandError>(())
        })?;
        dom0.link_wait(10 * SECOND)?;
        let after = counters(dom0)?;
        assert_eq!(after.warnings, 0);
        assert!(after.works_run > before.works_run && after.sleeps > before.sleeps);
        heap_is_sound(dom0)
    });
}
