//! Data shared by processes and CPUs: the device's lock, and per-CPU data.

use e1000_sim::hypervisor::upcall::{self, Upcall};
use e1000_sim::memory::CPUS;
use e1000_sim::transport::mailbox::Counter;
use process_lab::process;

use crate::traps::TDBAL;
use crate::world::{LIMITS, World, value};

#[test]
fn a_process_that_dies_with_the_device_leaves_it_to_others() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let mailbox = world.mailbox.get();
    value(&mut dom0, "small_write32", &[TDBAL, 0x7770]);
    let mut hypervisor = process::fork(|| {
        std::mem::forget(mailbox.device());
        0
    })
    .expect("fork");
    hypervisor.wait();
    assert_eq!(value(&mut dom0, "small_read32", &[TDBAL]), 0x7770);
    assert_eq!(mailbox.counters.get(Counter::LocksFromTheDead), 1);
}

#[test]
fn several_cpus_call_while_commands_run() {
    const CALLS: u64 = 3000;
    let world = World::new();
    let mut dom0 = world.dom0();
    let call = |cpu: usize| {
        let upcall = Upcall {
            function: world.plan.symbol("small_percpu").expect("a function"),
            arguments: [0; 6],
            stack: &[],
            window: 0..0,
        };
        for count in 1..=CALLS {
            let slot = &world.mailbox.get().upcalls[cpu];
            // SAFETY: there is no window.
            let (value, _) = unsafe { upcall::call(slot, &upcall, &LIMITS) }.expect("an answer");
            assert_eq!(value, 40 + count, "each CPU has its own count");
        }
    };
    std::thread::scope(|scope| {
        for cpu in 1..CPUS {
            scope.spawn(move || call(cpu));
        }
        for count in 1..=CALLS {
            assert_eq!(value(&mut dom0, "small_percpu", &[]), 40 + count);
        }
    });
    let upcalls = world.mailbox.get().counters.get(Counter::Upcalls);
    assert_eq!(upcalls, (CPUS as u64 - 1) * CALLS);
}
